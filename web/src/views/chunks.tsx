// The chunk map of a dataset, coloured by checksum state or by statistics.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { lookup } from "../field/colormap";
import { type ApiError, asError, json, path } from "../lib/api";
import { bytes, count, number, plural, shape } from "../lib/format";
import { href } from "../lib/router";
import type { ChecksumState, ChunkTable, Dataset, TetFile } from "../lib/types";
import { Problem, Spinner, StateDot, color, stateText, useDark, useSize } from "../ui/common";
import { Icon } from "../ui/icons";

const PAGE = 10_000;
const VERIFY_PAGE = 200;
const MAX_CHUNKS = 100_000;

const MODES = [
  ["state", "Checksum state"],
  ["min", "Minimum"],
  ["max", "Maximum"],
  ["missing", "Missing values"],
  ["ratio", "Stored / raw bytes"],
  ["offset", "Position in the file"],
] as const;
type Mode = (typeof MODES)[number][0];

/** All chunks of a dataset, up to a limit. */
async function allChunks(tet: TetFile, dataset: Dataset, signal: AbortSignal): Promise<ChunkTable> {
  const base = ["api", "tet", tet.id, dataset.name, "chunks"];
  const table = await json<ChunkTable>(path(base, { limit: PAGE }), signal);
  while (table.number.length < Math.min(table.total, MAX_CHUNKS)) {
    const next = await json<ChunkTable>(path(base, { limit: PAGE, offset: table.number.length }), signal);
    if (next.number.length === 0) {
      break;
    }
    for (const key of ["number", "coords", "offset_bytes", "stored_bytes", "raw_bytes", "codec", "state", "min", "max", "missing", "errors"] as const) {
      (table[key] as unknown[]).push(...(next[key] as unknown[]));
    }
  }
  return table;
}

export function ChunkMap({ tet, dataset }: { tet: TetFile; dataset: Dataset }) {
  const [table, setTable] = useState<ChunkTable | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [turn, setTurn] = useState(0);
  const [mode, setMode] = useState<Mode>("state");
  const [chosen, setChosen] = useState<number | null>(null);
  const [hovered, setHovered] = useState<number | null>(null);
  const [verified, setVerified] = useState<number | null>(null);
  const running = useRef<AbortController | null>(null);

  useEffect(() => {
    const abort = new AbortController();
    setError(null);
    allChunks(tet, dataset, abort.signal).then(setTable, (failure: unknown) => {
      if (!abort.signal.aborted) {
        setError(asError(failure));
      }
    });
    return () => {
      abort.abort();
      running.current?.abort();
    };
  }, [tet.id, tet.version, dataset.name, turn]);

  const verify = async () => {
    if (table === null) {
      return;
    }
    const abort = new AbortController();
    running.current = abort;
    try {
      for (let offset = 0; offset < table.number.length; offset += VERIFY_PAGE) {
        setVerified(offset);
        const part = await json<ChunkTable>(path(["api", "tet", tet.id, dataset.name, "chunks"], { offset, limit: VERIFY_PAGE, verify: true }), abort.signal);
        setTable((old) => {
          if (old === null) {
            return old;
          }
          const [state, errors] = [[...old.state], [...old.errors]];
          part.state.forEach((value, i) => {
            state[offset + i] = value;
            errors[offset + i] = part.errors[i] ?? null;
          });
          return { ...old, state, errors };
        });
      }
    } catch (failure) {
      if (!abort.signal.aborted) {
        setError(asError(failure));
      }
    }
    setVerified(null);
  };

  if (error !== null && table === null) {
    return <Problem error={error} retry={() => setTurn(turn + 1)} />;
  }
  if (table === null) {
    return <Spinner label="Loading chunks" />;
  }
  const counts = new Map<ChecksumState, number>();
  for (const state of table.state) {
    counts.set(state, (counts.get(state) ?? 0) + 1);
  }
  const shown = hovered ?? chosen;
  return (
    <div class="chunks">
      <div class="field-tools">
        <label class="select-label">
          <span>Colour by</span>
          <select class="select small" value={mode} onChange={(event) => setMode(event.currentTarget.value as Mode)}>
            {MODES.map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <button type="button" class="button small" disabled={verified !== null} onClick={verify}>
          <Icon name="shield" /> {verified === null ? "Verify chunks" : `Verifying ${count(verified)} of ${count(table.number.length)}`}
        </button>
        <span class="spacer" />
        <span class="muted small-text">
          {plural(table.total, "chunk")} of {shape(table.chunk_shape)}, grid {shape(table.counts)}
          {table.number.length < table.total && `; the first ${count(table.number.length)} are shown`}
        </span>
      </div>
      {error !== null && <Problem error={error} />}
      <div class="card padded chunk-card">
        <ChunkCanvas table={table} mode={mode} chosen={chosen} hovered={hovered} hover={setHovered} choose={setChosen} />
        {mode === "state" ? (
          <ul class="legend">
            {(["ok", "unverified", "damaged", "unprotected", "missing"] as const)
              .filter((state) => counts.has(state))
              .map((state) => (
                <li key={state}>
                  <StateDot state={state} label /> <span class="muted">{count(counts.get(state))}</span>
                </li>
              ))}
          </ul>
        ) : (
          <ScaleLegend values={valuesOf(table, mode)} mode={mode} units={dataset.units} />
        )}
      </div>
      <div class="chunk-detail card padded" aria-live="polite">
        {shown === null ? (
          <p class="muted">Point at a chunk, or use the arrow keys in the map, to see its place, size and statistics.</p>
        ) : (
          <dl class="facts-list">
            <Fact name="Chunk" value={`[${(table.coords[shown] ?? []).join(", ")}]`} />
            <Fact name="Covers" value={(table.coords[shown] ?? []).map((coordinate, axis) => rangeText(coordinate, table.chunk_shape[axis] ?? 1, dataset.shape[axis] ?? 1, dataset.axes[axis]?.name ?? String(axis))).join(", ")} />
            <div>
              <dt>State</dt>
              <dd>
                <StateDot state={table.state[shown] ?? "unverified"} label />
                {table.errors[shown] && <span class="error-text"> {table.errors[shown]}</span>}
              </dd>
            </div>
            <Fact name="Values" value={table.min[shown] === null || table.min[shown] === undefined ? "no statistics" : `${number(table.min[shown])} … ${number(table.max[shown])} ${dataset.units ?? ""}`} />
            <Fact name="Missing" value={count(table.missing[shown])} />
            <Fact name="Stored" value={`${bytes(table.stored_bytes[shown])} of ${bytes(table.raw_bytes[shown])}, ${table.codec[shown] ?? "raw"}`} />
            <div>
              <dt>Bytes</dt>
              <dd>
                {table.offset_bytes[shown] === null || table.offset_bytes[shown] === undefined ? (
                  "not stored"
                ) : (
                  <a href={href(["file", tet.id], { tab: "bytes", at: `${table.offset_bytes[shown]}-${(table.offset_bytes[shown] ?? 0) + (table.stored_bytes[shown] ?? 0)}` })}>
                    {count(table.offset_bytes[shown])} … {count((table.offset_bytes[shown] ?? 0) + (table.stored_bytes[shown] ?? 0))}
                  </a>
                )}
              </dd>
            </div>
          </dl>
        )}
      </div>
    </div>
  );
}

const rangeText = (coordinate: number, chunk: number, size: number, name: string) => `${name} ${coordinate * chunk}..${Math.min(size, (coordinate + 1) * chunk)}`;

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function valuesOf(table: ChunkTable, mode: Mode): (number | null)[] {
  switch (mode) {
    case "ratio":
      return table.stored_bytes.map((stored, i) => (stored === null || !table.raw_bytes[i] ? null : stored / (table.raw_bytes[i] ?? 1)));
    case "offset":
      return table.offset_bytes;
    case "state":
      return [];
    default:
      return table[mode];
  }
}

function extent(values: (number | null)[]): [number, number] | null {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    if (value !== null && value !== undefined && Number.isFinite(value)) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  return low <= high ? [low, high] : null;
}

function ScaleLegend({ values, mode, units }: { values: (number | null)[]; mode: Mode; units: string | null }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    canvas.current?.getContext("2d")?.putImageData(new ImageData(new Uint8ClampedArray(lookup("viridis")), 256, 1), 0, 0);
  }, []);
  const ends = extent(values);
  const text = (value: number) => (mode === "ratio" ? `${(100 * value).toFixed(1)} %` : mode === "offset" ? bytes(value) : mode === "missing" ? count(value) : `${number(value, 5)} ${units ?? ""}`);
  return (
    <div class="scale-legend">
      {ends === null ? (
        <span class="muted">No statistics are stored.</span>
      ) : (
        <>
          <span>{text(ends[0])}</span>
          <canvas ref={canvas} width={256} height={1} />
          <span>{text(ends[1])}</span>
        </>
      )}
    </div>
  );
}

interface Layout {
  cell: number;
  width: number;
  height: number;
  at: (index: number) => [number, number];
  find: (x: number, y: number) => number | null;
}

/** Panels of the last two axes, one per position on the others, that wrap. */
function layoutOf(table: ChunkTable, width: number): Layout {
  const rank = table.counts.length;
  const columns = table.counts[rank - 1] ?? 1;
  const rows = rank > 1 ? (table.counts[rank - 2] ?? 1) : 1;
  const panelSize = rows * columns;
  const panels = Math.max(1, Math.ceil(table.number.length / Math.max(1, panelSize)));
  const gap = panels > 1 ? 10 : 0;
  let cell = 28;
  let across = 1;
  for (; cell > 1; cell -= 1) {
    across = Math.max(1, Math.floor((width + gap) / (columns * cell + gap)));
    const height = Math.ceil(panels / across) * (rows * cell + gap);
    if (columns * cell <= width && height <= 460) {
      break;
    }
  }
  across = Math.min(panels, Math.max(1, Math.floor((width + gap) / (columns * cell + gap))));
  const [pw, ph] = [columns * cell + gap, rows * cell + gap];
  const down = Math.ceil(panels / across);
  return {
    cell,
    width: Math.min(width, across * pw),
    height: Math.max(cell, down * ph - gap),
    at(index) {
      const panel = Math.floor(index / panelSize);
      const inside = index % panelSize;
      return [(panel % across) * pw + (inside % columns) * cell, Math.floor(panel / across) * ph + Math.floor(inside / columns) * cell];
    },
    find(x, y) {
      const [px, py] = [Math.floor(x / pw), Math.floor(y / ph)];
      const [cx, cy] = [Math.floor((x - px * pw) / cell), Math.floor((y - py * ph) / cell)];
      const index = (py * across + px) * panelSize + cy * columns + cx;
      return x < 0 || y < 0 || px >= across || cx >= columns || cy >= rows || index >= table.number.length ? null : index;
    },
  };
}

function ChunkCanvas({ table, mode, chosen, hovered, hover, choose }: { table: ChunkTable; mode: Mode; chosen: number | null; hovered: number | null; hover: (index: number | null) => void; choose: (index: number | null) => void }) {
  const [frame, size] = useSize<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const dark = useDark();
  const layout = useMemo(() => layoutOf(table, Math.max(1, size.width)), [table, size.width]);
  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context || size.width === 0) {
      return;
    }
    const ratio = window.devicePixelRatio || 1;
    element.width = Math.round(layout.width * ratio);
    element.height = Math.round(layout.height * ratio);
    element.style.width = `${layout.width}px`;
    element.style.height = `${layout.height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const values = valuesOf(table, mode);
    const ends = extent(values);
    const colors = lookup("viridis");
    const states: Record<ChecksumState, string> = { ok: color("state-ok"), damaged: color("state-damaged"), unverified: color("state-unverified"), unprotected: color("state-unprotected"), missing: color("missing-line") };
    const gap = layout.cell > 5 ? 2 : layout.cell > 2 ? 1 : 0;
    for (let i = 0; i < table.number.length; i++) {
      const [x, y] = layout.at(i);
      if (mode === "state") {
        context.fillStyle = states[table.state[i] ?? "unverified"];
      } else {
        const value = values[i];
        if (value === null || value === undefined || ends === null) {
          context.fillStyle = color("missing-line");
        } else {
          const at = 4 * Math.round((ends[1] > ends[0] ? (value - ends[0]) / (ends[1] - ends[0]) : 0.5) * 255);
          context.fillStyle = `rgb(${colors[at]},${colors[at + 1]},${colors[at + 2]})`;
        }
      }
      context.beginPath();
      context.roundRect(x, y, layout.cell - gap, layout.cell - gap, layout.cell > 12 ? 4 : 0);
      context.fill();
      if (table.state[i] === "damaged" && layout.cell > 8) {
        // A cross, so that damage shows without colours and in every mode.
        context.strokeStyle = mode === "state" ? "#fff" : color("state-damaged");
        context.lineWidth = 2;
        context.beginPath();
        const [a, b] = [layout.cell * 0.28, layout.cell * 0.72 - gap];
        context.moveTo(x + a, y + a);
        context.lineTo(x + b, y + b);
        context.moveTo(x + b, y + a);
        context.lineTo(x + a, y + b);
        context.stroke();
      }
    }
    for (const index of [chosen, hovered]) {
      if (index !== null) {
        const [x, y] = layout.at(index);
        context.strokeStyle = color("text");
        context.lineWidth = 2;
        context.strokeRect(x + 1, y + 1, layout.cell - gap - 2, layout.cell - gap - 2);
      }
    }
  }, [table, mode, chosen, hovered, layout, dark, size.width]);

  const locate = (event: MouseEvent) => {
    const rectangle = canvas.current?.getBoundingClientRect();
    return layout.find(event.clientX - (rectangle?.left ?? 0), event.clientY - (rectangle?.top ?? 0));
  };
  const onKey = (event: KeyboardEvent) => {
    const columns = table.counts.at(-1) ?? 1;
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
    const step = steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      choose(Math.max(0, Math.min(table.number.length - 1, (chosen ?? -step) + step)));
    }
  };
  return (
    <div ref={frame} class="chunk-frame">
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-roledescription="chunk map"
        aria-label={`Chunk map, ${plural(table.number.length, "chunk")}, ${chosen === null ? "none chosen" : `chunk ${(table.coords[chosen] ?? []).join(", ")}, ${stateText(table.state[chosen] ?? "unverified")}`}`}
        onPointerMove={(event) => hover(locate(event))}
        onPointerLeave={() => hover(null)}
        onClick={(event) => choose(locate(event))}
        onKeyDown={onKey}
      />
    </div>
  );
}
