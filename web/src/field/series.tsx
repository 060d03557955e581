// Values along one axis as lines (uPlot).

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { json, useLoad } from "../lib/api";
import { number, time } from "../lib/format";
import type { ArrayJson } from "../lib/types";
import { Problem, Spinner, color, useDark, useSize } from "../ui/common";
import { type AxisValues, NO_VALUES, labelAt } from "./scale";
import type { Selection, Source } from "./source";

export interface SeriesPoint {
  selection: Selection;
  label: string;
  color: string;
}

/** Ticks of times: largest step first; then the text, and what a new year, month or day adds to it. */
const TIME_TICKS: uPlot.Axis.Values = [
  [31_536_000, "{YYYY}", null, null, null, null, null, null, 1],
  [2_419_200, "{YYYY}-{MM}", null, null, null, null, null, null, 1],
  [86_400, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1],
  [60, "{HH}:{mm}", "\n{YYYY}-{MM}-{DD}", null, "\n{YYYY}-{MM}-{DD}", null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", "\n{YYYY}-{MM}-{DD}", null, "\n{YYYY}-{MM}-{DD}", null, null, null, 1],
  [0.001, "{ss}.{fff}", "\n{YYYY}-{MM}-{DD} {HH}:{mm}", null, "\n{YYYY}-{MM}-{DD} {HH}:{mm}", null, "\n{HH}:{mm}", null, 1],
];

interface Loaded {
  axis: AxisValues;
  lines: (number | null)[][];
}

export function Series({ source, along, points, height, marked = null, onPick }: { source: Source; along: number; points: SeriesPoint[]; height: number; marked?: number | null; onPick?: (position: number) => void }) {
  const urls = points.map((point) => source.url(point.selection, {}));
  const loaded = useLoad<Loaded>(`${along} ${urls.join(" ")}`, async (signal) => {
    const [axis, ...answers] = await Promise.all([source.coordinates(along, signal).catch(() => NO_VALUES), ...urls.map((url) => json<ArrayJson>(url, signal))]);
    return { axis, lines: answers.map((answer) => (Array.isArray(answer.values) ? answer.values : [answer.values]).map((value) => (typeof value === "number" ? value : typeof value === "boolean" ? Number(value) : null))) };
  });
  const [frame, size] = useSize<HTMLDivElement>();
  const chart = useRef<HTMLDivElement>(null);
  const dark = useDark();
  const plot = useRef<uPlot | null>(null);
  const pick = useRef(onPick);
  pick.current = onPick;
  const labels = points.map((point) => point.label).join("|");

  useEffect(() => {
    const host = chart.current;
    const data = loaded.data;
    if (host === null || data === null || size.width === 0 || data.lines.length !== points.length) {
      return;
    }
    const length = data.lines[0]?.length ?? 0;
    const seconds = data.axis.seconds?.length === length && data.axis.seconds.every((value) => value !== null && Number.isFinite(value)) ? (data.axis.seconds as number[]) : null;
    const numbers = data.axis.kind === "numbers" && data.axis.values.length === length && data.axis.values.every((value) => typeof value === "number") ? (data.axis.values as number[]) : null;
    const raw = seconds ?? numbers ?? Array.from({ length }, (_, i) => i);
    // uPlot needs ascending positions.
    const reversed = length > 1 && (raw[0] ?? 0) > (raw[length - 1] ?? 0);
    const order = <T,>(values: T[]) => (reversed ? values.toReversed() : values);
    const sorted = order(raw);
    const ascending = sorted.every((value, i) => i === 0 || value > (sorted[i - 1] ?? 0));
    const xs = ascending ? sorted : Array.from({ length }, (_, i) => i);
    const positionOf = (index: number) => (ascending && reversed ? length - 1 - index : index);
    const named = !ascending || (seconds === null && numbers === null);
    const nameOf = (index: number) => {
      const value = data.axis.values[positionOf(index)];
      return typeof value === "string" ? time(value) : value === undefined || value === null ? String(positionOf(index)) : labelAt(data.axis, positionOf(index));
    };
    const [text, line] = [color("muted"), color("line")];
    const font = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
    const axisStyle = { stroke: text, font, labelFont: font, labelSize: 20, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1, size: 5 } };
    const unit = source.units ?? "";
    const options: uPlot.Options = {
      width: size.width,
      height,
      tzDate: (ts) => uPlot.tzDate(new Date(ts * 1e3), "UTC"),
      scales: { x: { time: ascending && seconds !== null } },
      legend: { live: true },
      cursor: { points: { size: 8 }, drag: { x: true, y: false } },
      axes: [
        { ...axisStyle, ...(named ? { values: (_: uPlot, splits: number[]) => splits.map((split) => (Number.isInteger(split) ? nameOf(split) : "")), incrs: [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10000, 100000], space: 90 } : seconds !== null ? { values: TIME_TICKS } : {}) },
        { ...axisStyle, size: 64, label: unit, values: (_: uPlot, splits: number[]) => splits.map((value) => number(value, 6)) },
      ],
      series: [
        { label: source.axes[along]?.label ?? "", value: (_: uPlot, __: number, ___: number, index: number | null) => (index === null ? "–" : nameOf(index)) },
        ...points.map((point) => ({
          label: point.label,
          stroke: point.color,
          width: 2,
          spanGaps: false,
          points: { show: length <= 60, size: 5, fill: point.color },
          value: (_: uPlot, value: number | null) => (value === null ? "–" : `${number(value)} ${unit}`),
        })),
      ],
      hooks: {
        draw: [
          (u) => {
            if (marked === null) {
              return;
            }
            const at = u.valToPos(xs[positionOf(marked)] ?? 0, "x", true);
            const { ctx, bbox } = u;
            ctx.save();
            ctx.strokeStyle = text;
            ctx.setLineDash([5, 4]);
            ctx.lineWidth = 1.5;
            ctx.beginPath();
            ctx.moveTo(at, bbox.top);
            ctx.lineTo(at, bbox.top + bbox.height);
            ctx.stroke();
            ctx.restore();
          },
        ],
      },
    };
    const created = new uPlot(options, [xs, ...data.lines.map(ascending ? order : (values: (number | null)[]) => values)] as uPlot.AlignedData, host);
    created.over.addEventListener("click", () => {
      const index = created.cursor.idx;
      if (index !== null && index !== undefined) {
        pick.current?.(positionOf(index));
      }
    });
    plot.current = created;
    return () => created.destroy();
  }, [loaded.data, size.width, dark, marked, labels, height]);

  return (
    <div class="series" ref={frame}>
      {loaded.error !== null ? (
        <Problem error={loaded.error} retry={loaded.reload} />
      ) : (
        <div class="series-chart" ref={(element) => { chart.current = element; if (element) { element.style.minHeight = `${height + 34}px`; } }}>
          {loaded.data === null && <Spinner />}
        </div>
      )}
    </div>
  );
}
