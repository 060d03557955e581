// Positions on an axis and their coordinates.

import { time } from "../lib/format";

/** The coordinates of an axis as the field needs them. */
export interface AxisValues {
  kind: "numbers" | "times" | "strings" | null;
  units: string | null;
  values: (number | string | null)[];
  seconds: (number | null)[] | null;
}

export const NO_VALUES: AxisValues = { kind: null, units: null, values: [], seconds: null };

/**
 * Maps continuous positions to coordinates and back: the centre of element `i` is at `i + 0.5`. Coordinates are linear between centres
 * and beyond the ends.
 */
export class Scale {
  readonly size: number;
  readonly numbers: Float64Array | null;
  /** 1 ascending, −1 descending, 0 without order. */
  readonly order: number;

  constructor(size: number, axis: AxisValues) {
    this.size = size;
    const usable = axis.kind === "numbers" && axis.values.length === size && size > 0 && axis.values.every((value) => typeof value === "number" && Number.isFinite(value));
    this.numbers = usable ? Float64Array.from(axis.values as number[]) : null;
    this.order = this.numbers === null ? 0 : direction(this.numbers);
  }

  coordinate(position: number): number {
    const numbers = this.numbers;
    if (numbers === null) {
      return position;
    }
    if (this.size === 1) {
      return numbers[0] ?? 0;
    }
    const at = position - 0.5;
    const left = Math.max(0, Math.min(Math.floor(at), this.size - 2));
    const [a, b] = [numbers[left] ?? 0, numbers[left + 1] ?? 0];
    return a + (b - a) * (at - left);
  }

  position(coordinate: number): number {
    const numbers = this.numbers;
    if (numbers === null || this.order === 0) {
      return coordinate;
    }
    if (this.size === 1) {
      return 0.5;
    }
    let [low, high] = [0, this.size - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((numbers[middle] ?? 0) * this.order <= coordinate * this.order) {
        low = middle;
      } else {
        high = middle;
      }
    }
    const [a, b] = [numbers[low] ?? 0, numbers[low + 1] ?? 0];
    return low + 0.5 + (coordinate - a) / (b - a);
  }
}

function direction(numbers: Float64Array): number {
  const sign = numbers.length < 2 ? 1 : Math.sign((numbers[1] ?? 0) - (numbers[0] ?? 0));
  for (let i = 1; i < numbers.length; i++) {
    if (Math.sign((numbers[i] ?? 0) - (numbers[i - 1] ?? 0)) !== sign) {
      return 0;
    }
  }
  return sign;
}

/** The name of a position: its coordinate, or its number. */
export function labelAt(axis: AxisValues, position: number): string {
  const value = axis.values[position];
  if (value === undefined || value === null) {
    return String(position);
  }
  if (typeof value === "string") {
    return axis.kind === "times" ? time(value) : value;
  }
  const text = String(Number(value.toPrecision(7))).replace("-", "−");
  return axis.units && !/^degrees?/.test(axis.units) && !/ since /.test(axis.units) ? `${text} ${axis.units}` : text;
}
