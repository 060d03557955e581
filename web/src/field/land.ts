// The outline of land (Natural Earth), in the form that land.mjs writes.

import encoded from "virtual:land";

/** A ring as longitude and latitude in turn. */
export type Ring = Float32Array;

const UNITS_PER_DEGREE = 20;
let decoded: Ring[] | null = null;

export function land(): Ring[] {
  decoded ??= decode(atob(encoded));
  return decoded;
}

function decode(text: string): Ring[] {
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = text.charCodeAt(at++);
      value |= (byte & 127) << shift;
      if (byte < 128) {
        return value;
      }
    }
  };
  const signed = () => {
    const value = varint();
    return value & 1 ? -((value + 1) >> 1) : value >> 1;
  };
  return Array.from({ length: varint() }, () => {
    const ring = new Float32Array(2 * varint());
    let [x, y] = [0, 0];
    for (let i = 0; i < ring.length; i += 2) {
      x += signed();
      y += signed();
      ring[i] = x / UNITS_PER_DEGREE;
      ring[i + 1] = y / UNITS_PER_DEGREE;
    }
    return ring;
  });
}
