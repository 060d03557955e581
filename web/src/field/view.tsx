// A field: image with sliders, colour bar, value under the cursor, series, difference.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, json, plane, useLoad } from "../lib/api";
import { count, latitude, longitude, number, plural } from "../lib/format";
import { change, useRoute } from "../lib/router";
import type { ArrayJson, PlaneHeader } from "../lib/types";
import { CopyAs, Popover, Problem, Spinner, color, useDark, useDebounced, useSize } from "../ui/common";
import { Icon } from "../ui/icons";
import { type Figure, type Tile, type View, draw, heightFor, paint, plotBox, toPosition } from "./canvas";
import { COLORMAPS, isSigned, lookup } from "./colormap";
import { type AxisValues, NO_VALUES, Scale, labelAt } from "./scale";
import { Series } from "./series";
import type { Selection, Source } from "./source";

/** Values on each side of a tile; more would not be seen. */
const MAX_SIDE = 1024;
const PLAY_MS = 350;
export const PICK_COLORS = ["#e8590c", "#1c7ed6", "#2f9e44", "#ae3ec9", "#c2255c", "#0c8599"];

interface Pick {
  x: number;
  y: number;
}

/** The state of a field in the URL. */
interface FieldState {
  y: number;
  x: number;
  at: number[];
  colormap: string | null;
  range: string;
  coast: boolean;
  zoom: View | null;
  picks: Pick[];
  along: number | null;
}

function readState(source: Source, params: URLSearchParams): FieldState {
  const rank = source.axes.length;
  const valid = (text: string | null, fallback: number) => {
    const value = text === null ? Number.NaN : Number(text);
    return Number.isInteger(value) && value >= 0 && value < rank ? value : fallback;
  };
  let y = valid(params.get("y"), source.map?.lat ?? Math.max(0, rank - 2));
  let x = valid(params.get("x"), source.map?.lon ?? rank - 1);
  if (x === y) {
    [y, x] = [source.map?.lat ?? Math.max(0, rank - 2), source.map?.lon ?? rank - 1];
  }
  const at = source.axes.map(() => 0);
  for (const part of (params.get("at") ?? "").split(",")) {
    const [axis, position] = part.split(":").map(Number);
    const size = axis === undefined ? undefined : source.axes[axis]?.size;
    if (axis !== undefined && size !== undefined && position !== undefined && Number.isInteger(position) && position >= 0 && position < size) {
      at[axis] = position;
    }
  }
  const zoom = (params.get("zoom") ?? "").split(",").map(Number);
  const picks = (params.get("pick") ?? "")
    .split(";")
    .map((part) => part.split(",").map(Number))
    .flatMap(([py, px]) => (py !== undefined && px !== undefined && Number.isInteger(py) && Number.isInteger(px) && py >= 0 && px >= 0 && py < (source.axes[y]?.size ?? 0) && px < (source.axes[x]?.size ?? 0) ? [{ y: py, x: px }] : []))
    .slice(0, PICK_COLORS.length);
  const along = params.get("along");
  return {
    y,
    x,
    at,
    colormap: COLORMAPS.find((name) => name === params.get("cmap")) ?? null,
    range: params.get("range") ?? "auto",
    coast: params.get("coast") !== "0",
    zoom: zoom.length === 4 && zoom.every(Number.isFinite) && (zoom[0] ?? 0) < (zoom[1] ?? 0) && (zoom[2] ?? 0) < (zoom[3] ?? 0) ? { x0: zoom[0] ?? 0, x1: zoom[1] ?? 0, y0: zoom[2] ?? 0, y1: zoom[3] ?? 0 } : null,
    picks,
    along: along === null ? null : valid(along, 0),
  };
}

interface LoadedTile {
  tile: Tile;
  header: PlaneHeader;
}

/** Loads a rectangle of the plane; rows follow axis `y` even where it comes after `x`. */
async function loadTile(source: Source, state: FieldState, at: number[], view: View, max: [number, number], signal: AbortSignal): Promise<LoadedTile> {
  const [y0, y1] = [Math.floor(view.y0), Math.ceil(view.y1)];
  const [x0, x1] = [Math.floor(view.x0), Math.ceil(view.x1)];
  const selection: Selection = source.axes.map((_, axis) => (axis === state.y ? [y0, y1] : axis === state.x ? [x0, x1] : at[axis] ?? 0));
  const swapped = state.y > state.x;
  const { header, values } = await plane(source.url(selection, { format: "f32", max: (swapped ? [max[1], max[0]] : max).join(",") }), signal);
  const [a, b] = [header.shape[0] ?? 1, header.shape[1] ?? 1];
  if (header.shape.length !== 2) {
    throw new ApiError(0, "malformed", `The server sent ${header.shape.length} axes for a plane.`);
  }
  const [rows, columns] = swapped ? [b, a] : [a, b];
  let ordered = values;
  if (swapped) {
    ordered = new Float32Array(values.length);
    for (let i = 0; i < rows; i++) {
      for (let j = 0; j < columns; j++) {
        ordered[i * columns + j] = values[j * rows + i] ?? Number.NaN;
      }
    }
  }
  const whole = rows === y1 - y0 && columns === x1 - x0;
  return { tile: { x0, x1, y0, y1, rows, columns, values: ordered, exact: whole && header.exact }, header };
}

/** The first tile minus the second, and statistics of the difference. */
function subtract(a: LoadedTile, b: LoadedTile): LoadedTile {
  const values = new Float32Array(a.tile.values.length);
  const present: number[] = [];
  for (let i = 0; i < values.length; i++) {
    const difference = (a.tile.values[i] ?? Number.NaN) - (b.tile.values[i] ?? Number.NaN);
    values[i] = difference;
    if (Number.isFinite(difference)) {
      present.push(difference);
    }
  }
  const sorted = Float32Array.from(present).sort();
  const part = (fraction: number) => sorted[Math.min(sorted.length - 1, Math.floor(fraction * sorted.length))] ?? null;
  return {
    tile: { ...a.tile, values, exact: a.tile.exact && b.tile.exact },
    header: { ...a.header, min: part(0), max: part(1), p2: part(0.02), p98: part(0.98), missing: values.length - present.length, count: values.length, exact: a.header.exact && b.header.exact },
  };
}

export interface FieldProps {
  source: Source;
  /** A field to subtract. */
  other?: Source | null;
  /** Controls that the view adds to the toolbar. */
  tools?: preact.ComponentChildren;
}

export function Field({ source, other = null, tools }: FieldProps) {
  const { params } = useRoute();
  if (source.axes.length === 0) {
    return <ScalarValue source={source} />;
  }
  if (source.axes.some((axis) => axis.size === 0)) {
    return <p class="note">This array has no values: an axis has the size 0.</p>;
  }
  if (source.axes.length === 1) {
    return <Line source={source} tools={tools} />;
  }
  return <Plane key={source.axes.map((axis) => axis.size).join()} source={source} other={other} tools={tools} params={params} />;
}

function ScalarValue({ source }: { source: Source }) {
  const url = source.url([], {});
  const loaded = useLoad<ArrayJson>(url, (signal) => json(url, signal));
  return loaded.error !== null ? (
    <Problem error={loaded.error} retry={loaded.reload} />
  ) : (
    <p class="scalar">
      {loaded.data === null ? "…" : typeof loaded.data.values === "number" ? number(loaded.data.values, 10) : String(loaded.data.values ?? "missing")} <span class="muted">{source.units}</span>
    </p>
  );
}

/** A 1-D array as a line. */
function Line({ source, tools }: { source: Source; tools?: preact.ComponentChildren }) {
  const size = source.axes[0]?.size ?? 0;
  return (
    <div class="field">
      <div class="field-tools">
        {tools}
        <span class="spacer" />
        <CopyAs snippets={source.snippets([[0, size]], { colormap: "viridis", low: null, high: null })} />
      </div>
      <Series source={source} along={0} points={[{ selection: [[0, size]], label: source.title, color: PICK_COLORS[1] ?? "" }]} height={320} />
    </div>
  );
}

function useAxisValues(source: Source): AxisValues[] | null {
  const loaded = useLoad(`${source.key} coordinates`, (signal) =>
    Promise.all(
      source.axes.map((axis, i) => (axis.size > 100_000 ? Promise.resolve(NO_VALUES) : source.coordinates(i, signal).catch((error: unknown) => (signal.aborted ? Promise.reject(error) : NO_VALUES)))),
    ),
  );
  return loaded.data;
}

function Plane({ source, other, tools, params }: { source: Source; other: Source | null; tools?: preact.ComponentChildren; params: URLSearchParams }) {
  const state = readState(source, params);
  const dark = useDark();
  const axes = useAxisValues(source);
  const yAxis = source.axes[state.y] as Source["axes"][number];
  const xAxis = source.axes[state.x] as Source["axes"][number];
  const full: View = useMemo(() => ({ x0: 0, x1: xAxis.size, y0: 0, y1: yAxis.size }), [xAxis.size, yAxis.size]);
  const [live, setLive] = useState<View | null>(null);
  const view = clampView(live ?? state.zoom ?? full, full);
  const yValues = axes?.[state.y] ?? NO_VALUES;
  const xValues = axes?.[state.x] ?? NO_VALUES;
  const yScale = useMemo(() => new Scale(yAxis.size, yValues), [yAxis.size, yValues]);
  const xScale = useMemo(() => new Scale(xAxis.size, xValues), [xAxis.size, xValues]);
  const isMap = source.map !== null && source.map.lat === state.y && source.map.lon === state.x && yScale.order !== 0 && xScale.order !== 0;
  const expectsMap = source.map !== null && source.map.lat === state.y && source.map.lon === state.x;
  const flip = yScale.order > 0;

  // The planes: the whole one, and the visible part in more detail where the whole one is made of means.
  const fixed = state.at;
  const slice = `${source.key}|${other?.key ?? ""}|${state.y},${state.x}|${fixed.filter((_, axis) => axis !== state.y && axis !== state.x).join(",")}`;
  const load = async (rectangle: View, signal: AbortSignal) => {
    const first = loadTile(source, state, fixed, rectangle, [MAX_SIDE, MAX_SIDE], signal);
    if (other === null) {
      return first;
    }
    const [a, b] = await Promise.all([first, loadTile(other, state, fixed.map((position, axis) => Math.min(position, (other.axes[axis]?.size ?? 1) - 1)), rectangle, [MAX_SIDE, MAX_SIDE], signal)]);
    return subtract(a, b);
  };
  const whole = useLoad<LoadedTile>(slice, (signal) => load(full, signal));
  const zoomed = state.zoom !== null && whole.data !== null && !whole.data.tile.exact;
  const part = state.zoom === null ? full : clampView(state.zoom, full);
  const detail = useLoad<LoadedTile>(zoomed ? `${slice}|${Math.floor(part.x0)},${Math.ceil(part.x1)},${Math.floor(part.y0)},${Math.ceil(part.y1)}` : null, (signal) => load(part, signal), { delay: 120 });
  const current = zoomed && detail.data !== null && detail.key?.startsWith(slice) ? detail.data : whole.data;

  const header = current?.header ?? null;
  const scale = rangeOf(state.range, header, other !== null);
  const signed = scale !== null && isSigned(scale.low, scale.high);
  const colormap = state.colormap ?? (other !== null || signed ? "coolwarm" : "viridis");
  const range = scale !== null && (other !== null || (signed && state.range !== "full" && !state.range.includes(","))) ? symmetric(scale) : scale;
  const table = useMemo(() => lookup(colormap), [colormap]);
  const images = useMemo(() => {
    if (range === null) {
      return [];
    }
    const colors = { table, low: range.low, high: range.high };
    return [whole.data, zoomed ? detail.data : null].flatMap((loaded) => (loaded === null ? [] : [{ canvas: paint(loaded.tile, colors), tile: loaded.tile }]));
  }, [whole.data, detail.data, zoomed, table, range?.low, range?.high]);

  // Layout: the proportions of the full plane, so that nothing moves when values arrive.
  const [frame, size] = useSize<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const left = isMap || expectsMap ? 46 : 64;
  const aspect = expectsMap && isMap ? Math.abs((xScale.coordinate(xAxis.size) - xScale.coordinate(0)) / (yScale.coordinate(yAxis.size) - yScale.coordinate(0))) : Math.max(0.6, Math.min(3.2, xAxis.size / yAxis.size));
  const height = heightFor(size.width || 640, left, Number.isFinite(aspect) && aspect > 0 ? aspect : 2, Math.max(260, Math.min(window.innerHeight * 0.5, 620)));
  let width = size.width;
  if (width > 0) {
    width = Math.min(width, Math.round((height - 36) * aspect) + left + 14);
    width = Math.max(width, Math.min(size.width, 260));
  }
  const box = plotBox(width, height, left);
  const [cursor, setCursor] = useState<Pick | null>(null);
  const picks = state.picks.map((pick, i) => ({ ...pick, color: PICK_COLORS[i] ?? "" }));

  useEffect(() => {
    const element = canvas.current;
    if (element === null || width === 0) {
      return;
    }
    const figure: Figure = {
      width,
      height,
      ratio: window.devicePixelRatio || 1,
      view,
      full,
      flip,
      x: { scale: xScale, axis: xValues, label: xAxis.label, kind: isMap ? "lon" : "other" },
      y: { scale: yScale, axis: yValues, label: yAxis.label, kind: isMap ? "lat" : "other" },
      images,
      coast: isMap && state.coast,
      cursor,
      picks,
      theme: { text: color("muted"), line: color("line-strong"), missing: color("missing"), missingLine: color("missing-line") },
    };
    element.style.width = `${width}px`;
    element.style.height = `${height}px`;
    const id = requestAnimationFrame(() => draw(element, box, figure));
    return () => cancelAnimationFrame(id);
  });

  // Zooming moves the picture at once and the URL a moment later.
  const settle = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const moveTo = (next: View) => {
    const clamped = clampView(next, full);
    setLive(clamped);
    clearTimeout(settle.current);
    settle.current = setTimeout(() => {
      change({ zoom: isFull(clamped, full) ? null : [clamped.x0, clamped.x1, clamped.y0, clamped.y1].map((value) => Number(value.toFixed(2))).join(",") }, true);
      setLive(null);
    }, 200);
  };
  useEffect(() => () => clearTimeout(settle.current), []);
  const zoomBy = (factor: number, x = (view.x0 + view.x1) / 2, y = (view.y0 + view.y1) / 2) => moveTo(scaled(view, full, factor, x, y));

  const gesture = useGestures({
    canvas,
    locate: (sx, sy) => toPosition(box, view, flip, sx, sy),
    inside: (sx, sy) => sx >= box.left && sx <= box.left + box.width && sy >= box.top && sy <= box.top + box.height,
    zoom: zoomBy,
    pan: (dx, dy) => {
      const w = view.x1 - view.x0;
      const h = view.y1 - view.y0;
      const mx = (-dx / box.width) * w;
      const my = ((flip ? dy : -dy) / box.height) * h;
      moveTo({ x0: view.x0 + mx, x1: view.x1 + mx, y0: view.y0 + my, y1: view.y1 + my });
    },
    hover: (at) => setCursor(at === null ? null : cellAt(at[0], at[1], full)),
    pick: (at, add) => choose(cellAt(at[0], at[1], full), add),
  });

  const choose = (cell: Pick | null, add: boolean) => {
    if (cell === null) {
      return;
    }
    const same = state.picks.findIndex((pick) => pick.x === cell.x && pick.y === cell.y);
    const kept = same >= 0 ? state.picks.filter((_, i) => i !== same) : add ? [...state.picks, cell].slice(-PICK_COLORS.length) : [cell];
    change({ pick: kept.map((pick) => `${pick.y},${pick.x}`).join(";") }, true);
  };
  const onKey = (event: KeyboardEvent) => {
    const moves: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, flip ? 1 : -1], ArrowDown: [0, flip ? -1 : 1] };
    const move = moves[event.key];
    if (move !== undefined) {
      event.preventDefault();
      const from = cursor ?? { x: Math.floor((view.x0 + view.x1) / 2), y: Math.floor((view.y0 + view.y1) / 2) };
      const pace = event.shiftKey ? 10 : 1;
      setCursor({ x: Math.max(0, Math.min(xAxis.size - 1, from.x + move[0] * pace)), y: Math.max(0, Math.min(yAxis.size - 1, from.y + move[1] * pace)) });
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(cursor, event.shiftKey);
    } else if (event.key === "+" || event.key === "=") {
      zoomBy(1 / 1.5, cursor?.x, cursor?.y);
    } else if (event.key === "-") {
      zoomBy(1.5, cursor?.x, cursor?.y);
    } else if (event.key === "0") {
      moveTo(full);
    } else if (event.key === "Escape" && cursor !== null) {
      event.stopPropagation();
      setCursor(null);
    }
  };

  const sliders = source.axes.flatMap((axis, i) => (i === state.y || i === state.x ? [] : [{ axis, i }]));
  const selection = (rectangle: View | null): Selection =>
    source.axes.map((_, axis) => {
      if (axis === state.y) {
        return rectangle === null ? [0, yAxis.size] : [Math.floor(rectangle.y0), Math.ceil(rectangle.y1)];
      }
      return axis === state.x ? (rectangle === null ? [0, xAxis.size] : [Math.floor(rectangle.x0), Math.ceil(rectangle.x1)]) : (fixed[axis] ?? 0);
    });
  const setPosition = (axis: number, position: number) =>
    change({ at: source.axes.map((_, i) => (i === axis ? position : (fixed[i] ?? 0))).flatMap((value, i) => (value === 0 || i === state.y || i === state.x ? [] : [`${i}:${value}`])).join(",") }, true);
  const freeze = () => {
    if (range !== null && !state.range.includes(",")) {
      change({ range: `${Number(range.low.toPrecision(6))},${Number(range.high.toPrecision(6))}` }, true);
    }
  };

  const failed = whole.error ?? detail.error;
  const along = state.along !== null && state.along < source.axes.length ? state.along : (sliders.find(({ axis }) => axis.size > 1)?.i ?? state.x);
  return (
    <div class="field">
      <div class="field-tools">
        {source.axes.length > 2 && <AxesMenu source={source} state={state} />}
        <label class="select-label">
          <span class="visually-hidden">Colour map</span>
          <select class="select small" value={colormap} onChange={(event) => change({ cmap: event.currentTarget.value }, true)}>
            {COLORMAPS.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <RangeMenu state={state} header={header} range={range} />
        {expectsMap && (
          <button type="button" class="button small toggle" aria-pressed={state.coast} onClick={() => change({ coast: state.coast ? "0" : null }, true)}>
            <Icon name="globe" /> Coast
          </button>
        )}
        {tools}
        <span class="spacer" />
        <CopyAs snippets={source.snippets(selection(state.zoom === null ? null : part), { colormap, low: state.range.includes(",") ? (range?.low ?? null) : null, high: state.range.includes(",") ? (range?.high ?? null) : null })} />
      </div>
      {sliders.length > 0 && (
        <div class="sliders">
          {sliders.map(({ axis, i }) => (
            <Slider key={i} label={axis.label} size={axis.size} position={fixed[i] ?? 0} text={labelAt(axes?.[i] ?? NO_VALUES, fixed[i] ?? 0)} set={(position) => setPosition(i, position)} busy={whole.loading} onPlay={freeze} />
          ))}
        </div>
      )}
      <div class="plot-frame" ref={frame}>
        <div class={`plot ${whole.loading && whole.data !== null ? "stale" : ""}`} ref={(element) => sized(element, width, height)}>
          {failed !== null && current === null ? (
            <Problem error={failed} retry={whole.reload} />
          ) : (
            <canvas
              ref={canvas}
              tabIndex={0}
              role="application"
              aria-roledescription="map of values"
              aria-label={`${source.title}: ${yAxis.label} by ${xAxis.label}. Arrow keys move the cursor, Enter shows a series, plus and minus zoom.`}
              class={`plot-canvas ${isFull(view, full) ? "" : "zoomed"}`}
              onKeyDown={onKey}
              {...gesture}
            />
          )}
          <span class="button-group zoom-group" role="group" aria-label="Zoom">
            <button type="button" class="button small" aria-label="Zoom in" title="Zoom in (+)" onClick={() => zoomBy(1 / 1.6)}>
              <Icon name="plus" />
            </button>
            <button type="button" class="button small" aria-label="Zoom out" title="Zoom out (−)" disabled={isFull(view, full)} onClick={() => zoomBy(1.6)}>
              <Icon name="minus" />
            </button>
            <button type="button" class="button small" aria-label="Whole field" title="Whole field (0)" disabled={isFull(view, full)} onClick={() => moveTo(full)}>
              <Icon name="fit" />
            </button>
          </span>
          {current === null && failed === null && (
            <div class="plot-loading">
              <Spinner label="Loading values" />
            </div>
          )}
        </div>
        {failed !== null && current !== null && <Problem error={failed} retry={whole.reload} />}
        <ColorBar range={range} table={table} units={other === null || other.units === source.units ? source.units : null} clipped={header} dark={dark} name={other === null ? (source.title) : `${source.title} − ${other.title}`} />
      </div>
      <Readout source={source} other={other} state={state} at={fixed} cursor={cursor} axes={axes} tile={current?.tile ?? null} isMap={isMap} xScale={xScale} yScale={yScale} header={header} />
      {picks.length > 0 && (
        <section class="series-panel card" aria-label="Series">
          <div class="series-head">
            <h3>
              Series along{" "}
              <select class="select small" aria-label="Axis of the series" value={along} onChange={(event) => change({ along: event.currentTarget.value }, true)}>
                {source.axes.map((axis, i) => (
                  <option key={i} value={i}>
                    {axis.label}
                  </option>
                ))}
              </select>
            </h3>
            <span class="muted small-text">Shift-click adds a point.</span>
            <button type="button" class="button small" onClick={() => change({ pick: null, along: null }, true)}>
              <Icon name="close" /> Close
            </button>
          </div>
          <Series
            source={source}
            along={along}
            marked={along === state.y || along === state.x ? null : (fixed[along] ?? 0)}
            height={220}
            points={picks.map((pick) => ({
              color: pick.color,
              label: placeOf(pick, along, state, isMap, xScale, yScale, xValues, yValues, source),
              selection: source.axes.map((axis, i) => (i === along ? [0, axis.size] : i === state.y ? pick.y : i === state.x ? pick.x : (fixed[i] ?? 0))),
            }))}
            onPick={(position) => along !== state.y && along !== state.x && setPosition(along, position)}
          />
        </section>
      )}
    </div>
  );
}

/** Sets the size of an element by script: the content security policy permits no style attributes. */
function sized(element: HTMLElement | null, width: number, height: number): void {
  if (element !== null) {
    element.style.width = width > 0 ? `${width}px` : "";
    element.style.height = `${height}px`;
  }
}

function placeOf(pick: Pick, along: number, state: FieldState, isMap: boolean, xScale: Scale, yScale: Scale, xValues: AxisValues, yValues: AxisValues, source: Source): string {
  const parts = [];
  if (along !== state.y) {
    parts.push(isMap ? latitude(yScale.coordinate(pick.y + 0.5)) : `${source.axes[state.y]?.label} ${labelAt(yValues, pick.y)}`);
  }
  if (along !== state.x) {
    parts.push(isMap ? longitude(xScale.coordinate(pick.x + 0.5)) : `${source.axes[state.x]?.label} ${labelAt(xValues, pick.x)}`);
  }
  return parts.join(", ");
}

function cellAt(x: number, y: number, full: View): Pick | null {
  const cell = { x: Math.floor(x), y: Math.floor(y) };
  return cell.x < 0 || cell.y < 0 || cell.x >= full.x1 || cell.y >= full.y1 ? null : cell;
}

const isFull = (view: View, full: View) => view.x1 - view.x0 >= full.x1 - 1e-6 && view.y1 - view.y0 >= full.y1 - 1e-6;

function clampView(view: View, full: View): View {
  const fit = (low: number, high: number, end: number): [number, number] => {
    const span = Math.min(high - low, end);
    const start = Math.max(0, Math.min(low, end - span));
    return [start, start + span];
  };
  const [x0, x1] = fit(view.x0, view.x1, full.x1);
  const [y0, y1] = fit(view.y0, view.y1, full.y1);
  return { x0, x1, y0, y1 };
}

/** The view made larger by a factor around a point, in the proportions of the full one and not beyond four elements. */
function scaled(view: View, full: View, factor: number, x: number, y: number): View {
  const share = Math.max(Math.min(1, 4 / Math.max(full.x1, full.y1)), Math.min(1, ((view.x1 - view.x0) / full.x1) * factor));
  const [w, h] = [full.x1 * share, full.y1 * share];
  const [fx, fy] = [(x - view.x0) / (view.x1 - view.x0), (y - view.y0) / (view.y1 - view.y0)];
  return { x0: x - fx * w, x1: x + (1 - fx) * w, y0: y - fy * h, y1: y + (1 - fy) * h };
}

function rangeOf(text: string, header: PlaneHeader | null, difference: boolean): { low: number; high: number } | null {
  const [low, high] = text.split(",").map(Number);
  if (!difference && text.includes(",") && low !== undefined && high !== undefined && Number.isFinite(low) && Number.isFinite(high) && low <= high) {
    return { low, high };
  }
  const ends = text === "full" ? [header?.min, header?.max] : [header?.p2, header?.p98];
  const [a, b] = [ends[0] ?? header?.min ?? null, ends[1] ?? header?.max ?? null];
  if (header === null) {
    return null;
  }
  // A plane that is almost everywhere the same is shown from end to end.
  return a === b && header.min !== null && header.max !== null ? { low: header.min, high: header.max } : { low: a ?? 0, high: b ?? 0 };
}

function symmetric(range: { low: number; high: number }) {
  const size = Math.max(Math.abs(range.low), Math.abs(range.high));
  return { low: -size, high: size };
}

function AxesMenu({ source, state }: { source: Source; state: FieldState }) {
  const set = (key: "y" | "x", axis: number) => {
    const next = { y: state.y, x: state.x, [key]: axis };
    if (next.y === next.x) {
      [next.y, next.x] = [state.x, state.y];
    }
    change({ y: next.y, x: next.x, zoom: null, pick: null, at: null }, true);
  };
  const options = source.axes.map((axis, i) => (
    <option key={i} value={i}>
      {axis.label} ({count(axis.size)})
    </option>
  ));
  return (
    <Popover label={`${source.axes[state.y]?.label} × ${source.axes[state.x]?.label}`} icon="grid" title="Axes of the image">
      {() => (
        <div class="form-grid">
          <label for="axis-y">Vertical</label>
          <select id="axis-y" class="select" value={state.y} onChange={(event) => set("y", Number(event.currentTarget.value))}>
            {options}
          </select>
          <label for="axis-x">Horizontal</label>
          <select id="axis-x" class="select" value={state.x} onChange={(event) => set("x", Number(event.currentTarget.value))}>
            {options}
          </select>
        </div>
      )}
    </Popover>
  );
}

function RangeMenu({ state, header, range }: { state: FieldState; header: PlaneHeader | null; range: { low: number; high: number } | null }) {
  const fixed = state.range.includes(",");
  const label = fixed ? "Fixed range" : state.range === "full" ? "Min – max" : "2–98 %";
  const set = (low: string, high: string) => {
    if (low.trim() !== "" && high.trim() !== "" && Number(low) <= Number(high)) {
      change({ range: `${Number(low)},${Number(high)}` }, true);
    }
  };
  const [low, high] = [String(Number((range?.low ?? 0).toPrecision(6))), String(Number((range?.high ?? 1).toPrecision(6)))];
  return (
    <Popover label={label} icon="chart" title="Range of the colours">
      {(close) => (
        <div class="range-menu">
          <div class="menu" role="group" aria-label="Range of the colours">
            {[
              ["auto", "2nd to 98th percentile"],
              ["full", "Minimum to maximum"],
            ].map(([value, text]) => (
              <button key={value} type="button" class="menu-item" aria-pressed={!fixed && state.range === value} onClick={() => { change({ range: value === "auto" ? null : value }, true); close(); }}>
                {text}
                {header !== null && <span class="muted">{value === "full" ? `${number(header.min, 5)} … ${number(header.max, 5)}` : `${number(header.p2, 5)} … ${number(header.p98, 5)}`}</span>}
              </button>
            ))}
          </div>
          <div class="form-grid">
            <label for="range-low">From</label>
            <input id="range-low" class="input" type="number" step="any" value={low} onChange={(event) => set(event.currentTarget.value, high)} />
            <label for="range-high">To</label>
            <input id="range-high" class="input" type="number" step="any" value={high} onChange={(event) => set(low, event.currentTarget.value)} />
          </div>
        </div>
      )}
    </Popover>
  );
}

function Slider({ label, size, position, text, set, busy, onPlay }: { label: string; size: number; position: number; text: string; set: (position: number) => void; busy: boolean; onPlay: () => void }) {
  const [playing, setPlaying] = useState(false);
  const now = useRef({ position, busy, set });
  now.current = { position, busy, set };
  useEffect(() => {
    if (!playing) {
      return;
    }
    const timer = setInterval(() => {
      if (!now.current.busy) {
        now.current.set((now.current.position + 1) % size);
      }
    }, PLAY_MS);
    return () => clearInterval(timer);
  }, [playing, size]);
  return (
    <div class="slider">
      <button
        type="button"
        class="button small play"
        aria-label={playing ? `Stop ${label}` : `Play ${label}`}
        aria-pressed={playing}
        disabled={size < 2}
        onClick={() => {
          if (!playing) {
            onPlay();
          }
          setPlaying(!playing);
        }}
      >
        <Icon name={playing ? "pause" : "play"} />
      </button>
      <span class="slider-name">{label}</span>
      <input type="range" min={0} max={Math.max(0, size - 1)} step={1} value={position} disabled={size < 2} aria-label={label} aria-valuetext={text} onInput={(event) => set(Number(event.currentTarget.value))} />
      <output class="slider-value">
        {text} <span class="muted">{`${count(position + 1)}/${count(size)}`}</span>
      </output>
    </div>
  );
}

function ColorBar({ range, table, units, clipped, name }: { range: { low: number; high: number } | null; table: Uint8ClampedArray; units: string | null; clipped: PlaneHeader | null; dark: boolean; name: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (context) {
      context.putImageData(new ImageData(new Uint8ClampedArray(table), 256, 1), 0, 0);
    }
  }, [table]);
  const marks = range === null ? [] : [0, 0.25, 0.5, 0.75, 1].map((fraction) => range.low + fraction * (range.high - range.low));
  const below = range !== null && clipped?.min !== null && clipped !== null && (clipped.min ?? 0) < range.low - 1e-9 * Math.abs(range.low);
  const above = range !== null && clipped !== null && (clipped.max ?? 0) > range.high + 1e-9 * Math.abs(range.high);
  return (
    <div class="colorbar" role="img" aria-label={range === null ? "Colour bar" : `Colours of ${name} from ${number(range.low, 4)} to ${number(range.high, 4)} ${units ?? ""}`}>
      <div class="colorbar-name">
        {name}
        {units && <span class="muted"> [{units}]</span>}
      </div>
      <div class={`colorbar-row ${below ? "below" : ""} ${above ? "above" : ""}`}>
        <canvas ref={canvas} width={256} height={1} />
      </div>
      <div class="colorbar-labels">
        {marks.length === 0 ? <span>&nbsp;</span> : marks.map((value, i) => <span key={i}>{number(value, 4)}</span>)}
      </div>
    </div>
  );
}

/** The value under the cursor, or the statistics of the plane. */
function Readout({
  source,
  other,
  state,
  at,
  cursor,
  axes,
  tile,
  isMap,
  xScale,
  yScale,
  header,
}: {
  source: Source;
  other: Source | null;
  state: FieldState;
  at: number[];
  cursor: Pick | null;
  axes: AxisValues[] | null;
  tile: Tile | null;
  isMap: boolean;
  xScale: Scale;
  yScale: Scale;
  header: PlaneHeader | null;
}) {
  const still = useDebounced(cursor, 120);
  const wanted = still !== null && tile !== null && !tile.exact && other === null ? source.url(source.axes.map((_, axis) => (axis === state.y ? still.y : axis === state.x ? still.x : (at[axis] ?? 0))), {}) : null;
  const exact = useLoad<ArrayJson>(wanted, (signal) => json(wanted ?? "", signal), { fresh: true });
  if (cursor === null) {
    return (
      <p class="readout">
        {header === null ? (
          <>&nbsp;</>
        ) : (
          <>
            <span>
              <span class="muted">min</span> {number(header.min)}
            </span>
            <span>
              <span class="muted">max</span> {number(header.max)}
            </span>
            <span>
              <span class="muted">values</span> {count(header.count)}
            </span>
            {header.missing > 0 && (
              <span>
                <span class="muted">missing</span> {count(header.missing)}
              </span>
            )}
            {header.infinite > 0 && <span>{plural(header.infinite, "infinite value")}</span>}
            {tile !== null && !tile.exact && <span class="muted">drawn as {count(tile.rows)} × {count(tile.columns)} {header.exact ? "values" : "means"}</span>}
            <span class="muted hide-narrow">hover for values, click for a series, scroll to zoom</span>
          </>
        )}
      </p>
    );
  }
  const shown = tile === null ? null : valueAt(tile, cursor);
  const loaded = still?.x === cursor.x && still.y === cursor.y && exact.data !== null ? exact.data.values : undefined;
  const value = loaded === undefined ? shown : typeof loaded === "number" ? loaded : null;
  const isMean = tile !== null && !tile.exact && loaded === undefined;
  return (
    <p class="readout" role="status">
      <strong>
        {isMean ? "≈ " : ""}
        {number(value, 7)} {value !== null && !Number.isNaN(value) ? source.units : ""}
      </strong>
      <span>
        {isMap ? `${latitude(yScale.coordinate(cursor.y + 0.5))} ${longitude(xScale.coordinate(cursor.x + 0.5))}` : `${source.axes[state.y]?.label} ${labelAt(axes?.[state.y] ?? NO_VALUES, cursor.y)}, ${source.axes[state.x]?.label} ${labelAt(axes?.[state.x] ?? NO_VALUES, cursor.x)}`}
      </span>
      <span class="muted">
        [{source.axes.map((_, axis) => (axis === state.y ? cursor.y : axis === state.x ? cursor.x : (at[axis] ?? 0))).join(", ")}]
      </span>
    </p>
  );
}

/** The value of a tile at a position: block `k` of `B` covers positions from `ceil(k*E/B)`. */
function valueAt(tile: Tile, cell: Pick): number | null {
  const row = Math.floor(((cell.y - tile.y0) * tile.rows) / (tile.y1 - tile.y0));
  const column = Math.floor(((cell.x - tile.x0) * tile.columns) / (tile.x1 - tile.x0));
  return row < 0 || column < 0 || row >= tile.rows || column >= tile.columns ? null : (tile.values[row * tile.columns + column] ?? null);
}

interface GestureActions {
  canvas: { current: HTMLCanvasElement | null };
  locate: (sx: number, sy: number) => [number, number];
  inside: (sx: number, sy: number) => boolean;
  zoom: (factor: number, x: number, y: number) => void;
  pan: (dx: number, dy: number) => void;
  hover: (at: [number, number] | null) => void;
  pick: (at: [number, number], add: boolean) => void;
}

/** Mouse, pen and touch: drag, wheel, pinch, click, double click. */
function useGestures(actions: GestureActions) {
  const now = useRef(actions);
  now.current = actions;
  const pointers = useRef(new Map<number, { x: number; y: number }>());
  const moved = useRef(false);
  const point = (event: { clientX: number; clientY: number }): [number, number] => {
    const rectangle = now.current.canvas.current?.getBoundingClientRect();
    return [event.clientX - (rectangle?.left ?? 0), event.clientY - (rectangle?.top ?? 0)];
  };
  // Wheel listeners of Preact are passive, so that they could not keep the page from scrolling.
  const element = actions.canvas.current;
  useEffect(() => {
    if (element === null) {
      return;
    }
    const onWheel = (event: WheelEvent) => {
      const [sx, sy] = point(event);
      if (now.current.inside(sx, sy)) {
        event.preventDefault();
        const [x, y] = now.current.locate(sx, sy);
        now.current.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.004), x, y);
      }
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [element]);
  return {
    onPointerDown(event: PointerEvent) {
      const [x, y] = point(event);
      pointers.current.set(event.pointerId, { x, y });
      if (pointers.current.size === 1) {
        moved.current = false;
      }
    },
    onPointerMove(event: PointerEvent) {
      const [x, y] = point(event);
      const before = pointers.current.get(event.pointerId);
      if (before === undefined) {
        now.current.hover(now.current.inside(x, y) ? now.current.locate(x, y) : null);
        return;
      }
      if (!moved.current && Math.hypot(x - before.x, y - before.y) < 4) {
        return;
      }
      if (!moved.current) {
        (event.currentTarget as HTMLElement).setPointerCapture?.(event.pointerId);
      }
      moved.current = true;
      now.current.hover(null);
      const others = [...pointers.current].filter(([id]) => id !== event.pointerId);
      const anchor = others[0]?.[1];
      if (anchor === undefined) {
        now.current.pan(x - before.x, y - before.y);
      } else {
        const [cx, cy] = now.current.locate((x + anchor.x) / 2, (y + anchor.y) / 2);
        now.current.zoom(Math.hypot(before.x - anchor.x, before.y - anchor.y) / Math.max(1, Math.hypot(x - anchor.x, y - anchor.y)), cx, cy);
      }
      pointers.current.set(event.pointerId, { x, y });
    },
    onPointerUp(event: PointerEvent) {
      const was = pointers.current.delete(event.pointerId);
      const [x, y] = point(event);
      if (was && !moved.current && event.button === 0 && now.current.inside(x, y)) {
        now.current.pick(now.current.locate(x, y), event.shiftKey);
        if (event.pointerType !== "mouse") {
          now.current.hover(now.current.locate(x, y));
        }
      }
    },
    onPointerCancel(event: PointerEvent) {
      pointers.current.delete(event.pointerId);
    },
    onPointerLeave(event: PointerEvent) {
      pointers.current.delete(event.pointerId);
      if (event.pointerType === "mouse") {
        now.current.hover(null);
      }
    },
  };
}
