// What a field is drawn from: a dataset of a `.tet` file, or an object of a message.

import { type Query, json, path } from "../lib/api";
import { pythonString, shellWord } from "../lib/format";
import type { Snippet } from "../ui/common";
import type { ArrayJson, Coordinates, Dataset, ObjectRow, TetFile } from "../lib/types";
import { type AxisValues, NO_VALUES } from "./scale";

export interface SourceAxis {
  /** How the axis is named in requests. */
  id: string;
  label: string;
  size: number;
  standard: "lat" | "lon" | "time" | "vertical" | null;
}

/** One position or a range of positions per axis. */
export type Selection = (number | [number, number])[];

export interface Source {
  key: string;
  title: string;
  units: string | null;
  dtype: string;
  axes: SourceAxis[];
  map: { lat: number; lon: number } | null;
  url(selection: Selection, query: Query): string;
  coordinates(axis: number, signal?: AbortSignal): Promise<AxisValues>;
  snippets(selection: Selection, style: { colormap: string; low: number | null; high: number | null }): Snippet[];
}

function isel(source: { axes: SourceAxis[] }, selection: Selection): string[] {
  return selection.flatMap((chosen, axis) => {
    const id = source.axes[axis]?.id ?? String(axis);
    if (typeof chosen === "number") {
      return [`${id}=${chosen}`];
    }
    return chosen[0] === 0 && chosen[1] === source.axes[axis]?.size ? [] : [`${id}=${chosen[0]}..${chosen[1]}`];
  });
}

const pythonIndex = (selection: Selection, axes: SourceAxis[]) =>
  selection.map((chosen, axis) => (typeof chosen === "number" ? String(chosen) : chosen[0] === 0 && chosen[1] === axes[axis]?.size ? ":" : `${chosen[0]}:${chosen[1]}`)).join(", ");

export function datasetSource(file: TetFile, dataset: Dataset): Source {
  const axes = dataset.axes.map((axis): SourceAxis => ({
    id: axis.name ?? String(axis.index),
    label: axis.name ?? `axis ${axis.index}`,
    size: axis.size,
    standard: axis.standard ?? null,
  }));
  const base = ["api", "tet", file.id, dataset.name];
  return {
    key: `${file.id} ${file.version} ${dataset.name}`,
    title: dataset.name,
    units: dataset.units,
    dtype: dataset.dtype ?? "",
    axes,
    map: dataset.map,
    url: (selection, query) => path(base, { ...query, isel: isel({ axes }, selection) }),
    async coordinates(axis, signal) {
      // A coordinate over itself would always be a straight line.
      if (dataset.axes[axis]?.coordinates === null || dataset.is_coordinate) {
        return NO_VALUES;
      }
      const found = await json<Coordinates>(path([...base, "coords", axis], { limit: 100_000 }), signal);
      return { kind: found.kind, units: found.units, values: found.values, seconds: found.epoch_seconds ?? null };
    },
    snippets(selection, style) {
      const shown = isel({ axes }, selection).map((text) => ` --isel ${shellWord(text)}`).join("");
      const scale = style.low === null || style.high === null ? "" : ` --range=${style.low}..${style.high}`;
      const name = shellWord(dataset.name);
      const local = shellWord(file.path);
      return [
        { name: "Python", text: `import tercet\n\nfield = tercet.open(${pythonString(file.path)})[${pythonString(dataset.name)}]\nvalues = field[${pythonIndex(selection, axes)}]` },
        { name: "Plot", text: `tet plot ${local} ${name}${shown} --cmap ${style.colormap}${scale} --png ${shellWord(`${dataset.name.replaceAll("/", "-")}.png`)}` },
        { name: "Extract", text: `tet extract ${local} ${name}${shown} --decode -o ${shellWord(`${dataset.name.replaceAll("/", "-")}.npy`)}` },
        { name: "HTTP", text: `curl '${location.origin}${location.pathname}${path(base, { isel: isel({ axes }, selection), format: "npy" }).replaceAll("'", "%27")}' -o values.npy` },
      ];
    },
  };
}

export function objectSource(file: { id: string; path: string; version: string }, message: number, object: ObjectRow): Source {
  const map = object.map ?? null;
  const coords = object.coords ?? [];
  const axes = object.shape.map((size, axis): SourceAxis => ({
    id: String(axis),
    label: object.dims?.[axis] ?? `axis ${axis}`,
    size,
    standard: map?.lat === axis ? "lat" : map?.lon === axis ? "lon" : null,
  }));
  const base = ["api", "tgm", file.id, message, object.object];
  const units = object.units ?? object.metadata.units;
  return {
    key: `${file.id} ${message}.${object.object} ${object.hash ?? file.version}`,
    title: object.name ?? `object ${object.object}`,
    units: typeof units === "string" ? units : null,
    dtype: object.dtype,
    axes,
    map,
    url: (selection, query) => path(base, { ...query, isel: isel({ axes }, selection) }),
    async coordinates(axis, signal) {
      const from = coords[axis] ?? null;
      if (from === null) {
        return NO_VALUES;
      }
      const found = await json<ArrayJson>(path(["api", "tgm", file.id, from.message, from.object]), signal);
      const values = Array.isArray(found.values) ? (found.values as (number | string | null)[]) : [];
      return { kind: "numbers", units: from.units, values, seconds: null };
    },
    snippets(selection) {
      const local = shellWord(file.path);
      const part = isel({ axes }, selection).length === 0 ? "" : ` -s ${pythonIndex(selection, axes).replaceAll(" ", "")}`;
      return [
        { name: "Python", text: `import tercet\n\nmessage = tercet.open(${pythonString(file.path)})[${message}]\nvalues = message[${object.object}].to_numpy()[${pythonIndex(selection, axes) || "()"}]` },
        { name: "Extract", text: `tgm extract ${local} ${message}.${object.object}${part} -o values.npy` },
        { name: "HTTP", text: `curl '${location.origin}${location.pathname}${path(base, { isel: isel({ axes }, selection), format: "npy" }).replaceAll("'", "%27")}' -o values.npy` },
      ];
    },
  };
}
