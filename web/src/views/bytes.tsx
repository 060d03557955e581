// Bytes: the layout of a file as a zoomable picture and a tree, every region with its meaning and checksum state.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type ApiError, asError, events, json, path, rawBytes, useLoad } from "../lib/api";
import { bytes, count, duration, plain, plural } from "../lib/format";
import { change, useRoute } from "../lib/router";
import type { ChecksumState, FileEntry, Finding, Outline, OutlineNode, Span, Verification } from "../lib/types";
import { Problem, Skeleton, StateDot, color, stateText, useDark, useSize } from "../ui/common";
import { Icon } from "../ui/icons";

/** A region of the outline with its place in the tree. */
interface Region {
  id: number;
  node: OutlineNode;
  depth: number;
  parent: Region | null;
  children: Region[];
}

function regionsOf(root: OutlineNode): Region[] {
  const all: Region[] = [];
  const add = (node: OutlineNode, depth: number, parent: Region | null): Region => {
    const region: Region = { id: all.length, node, depth, parent, children: [] };
    all.push(region);
    for (const part of node.parts ?? []) {
      region.children.push(add(part, depth + 1, region));
    }
    return region;
  };
  add(root, 0, null);
  return all;
}

const RANK: ChecksumState[] = ["damaged", "unverified", "missing", "unprotected", "ok"];

/** The ranges that overlap a span. */
function overlapping(states: Outline["states"], span: Span): Outline["states"] {
  let low = 0;
  let high = states.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((states[middle]?.end ?? 0) <= span.start) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  let end = low;
  while (end < states.length && (states[end]?.start ?? 0) < span.end) {
    end += 1;
  }
  return states.slice(low, end);
}

/** The worst state of the bytes of a span. */
function stateOf(span: Span, states: Outline["states"]): ChecksumState {
  let worst: ChecksumState | null = null;
  let covered = 0;
  for (const item of overlapping(states, span)) {
    covered += Math.min(span.end, item.end) - Math.max(span.start, item.start);
    if (worst === null || RANK.indexOf(item.state) < RANK.indexOf(worst)) {
      worst = item.state;
    }
    if (worst === "damaged") {
      return worst;
    }
  }
  return worst === null || covered < span.end - span.start ? "unverified" : worst;
}

export function BytesView({ file }: { file: FileEntry }) {
  const { params } = useRoute();
  const url = path(["api", "files", file.id, "outline"], { max_rows: 512 });
  const loaded = useLoad<Outline>(`${url} ${file.version}`, (signal) => json(url, signal));
  const verification = useVerification(file);
  const data = loaded.data;
  const all = useMemo(() => (data === null ? [] : regionsOf(data.outline)), [data]);
  const findings = verification.report?.report.findings ?? [];
  const states = useMemo(() => merged(data, findings, verification.report !== null), [data, verification.report]);
  const worst = useMemo(() => all.map((region) => stateOf(region.node.span, states)), [all, states]);
  const length = data?.file_len ?? 0;

  const at = spanParameter(params.get("at"), length);
  const chosen = useMemo(() => (at === null ? null : innermost(all, at)), [all, at?.start, at?.end]);
  const zoom = spanParameter(params.get("zoom"), length) ?? { start: 0, end: Math.max(1, length) };
  const choose = (region: Region | null, replace = false) => change({ at: region === null ? null : `${region.node.span.start}-${region.node.span.end}` }, replace);
  const setZoom = (span: Span, replace: boolean) => change({ zoom: span.start <= 0 && span.end >= length ? null : `${Math.round(span.start)}-${Math.round(span.end)}` }, replace);

  if (loaded.error !== null && data === null) {
    return (
      <>
        <VerifyBar verification={verification} deep={params.get("deep") === "1"} />
        <Problem error={loaded.error} retry={loaded.reload} />
        <RawOnly file={file} />
      </>
    );
  }
  if (data === null) {
    return <Skeleton lines={10} />;
  }
  const shown = chosen ?? all[0] ?? null;
  return (
    <div class="bytes">
      <VerifyBar verification={verification} deep={params.get("deep") === "1"} />
      {findings.some((finding) => !finding.ok || finding.severity !== "info") && <Findings findings={findings} open={(span) => change({ at: `${span.start}-${span.end}`, zoom: null })} />}
      <section class="card padded" aria-label="Picture of the file">
        <Icicle all={all} worst={worst} states={states} length={length} zoom={zoom} chosen={chosen} choose={choose} setZoom={setZoom} />
        <ul class="legend">
          {(["ok", "damaged", "unverified", "unprotected"] as const)
            .filter((state) => worst.includes(state))
            .map((state) => (
              <li key={state}>
                <StateDot state={state} label />
              </li>
            ))}
          <li class="muted hide-narrow">scroll to zoom, drag to move, double-click a region to fill the picture</li>
        </ul>
      </section>
      <div class="bytes-split">
        <section class="card" aria-label="Regions">
          <RegionTree all={all} worst={worst} chosen={chosen} choose={choose} />
        </section>
        {shown !== null && <RegionPane file={file} region={shown} state={worst[shown.id] ?? "unverified"} zoomTo={(span) => setZoom(span, false)} findings={findings} />}
      </div>
    </div>
  );
}

function spanParameter(text: string | null, length: number): Span | null {
  const match = /^(\d+)-(\d+)$/.exec(text ?? "");
  if (match === null) {
    return null;
  }
  const [start, end] = [Number(match[1]), Math.min(Number(match[2]), Math.max(length, 1))];
  return start < end ? { start, end } : null;
}

/** The region with exactly this span, else the smallest that contains it. */
function innermost(all: Region[], span: Span): Region | null {
  let found: Region | null = null;
  for (const region of all) {
    const { start, end } = region.node.span;
    if (start === span.start && end === span.end) {
      return region;
    }
    if (start <= span.start && end >= span.end && (found === null || end - start <= found.node.span.end - found.node.span.start)) {
      found = region;
    }
  }
  return found;
}

/** The states of the outline with what verification found. */
function merged(outline: Outline | null, findings: Finding[], verified: boolean): Outline["states"] {
  const damaged = findings.flatMap((finding) => (finding.ok || finding.severity !== "error" || !finding.site?.span ? [] : [finding.site.span])).sort((a, b) => a.start - b.start);
  let states = outline?.states ?? [];
  if (verified && (damaged.length > 0 || findings.every((finding) => finding.ok))) {
    // Everything was read; what is not named below is right.
    states = fill(states, outline?.file_len ?? 0).map((item) => (item.state === "unverified" ? { ...item, state: "ok" } : item));
  }
  for (const span of damaged) {
    states = states.flatMap((item) => {
      const parts = [];
      if (item.start < span.start) {
        parts.push({ ...item, end: Math.min(item.end, span.start) });
      }
      if (item.end > span.end) {
        parts.push({ ...item, start: Math.max(item.start, span.end) });
      }
      return parts.filter((part) => part.start < part.end);
    });
    states = [...states, { ...span, state: "damaged" as const }].sort((a, b) => a.start - b.start);
  }
  return states;
}

/** States with the gaps between them as `unverified`. */
function fill(states: Outline["states"], length: number): Outline["states"] {
  const filled: Outline["states"] = [];
  let at = 0;
  for (const item of states) {
    if (item.start > at) {
      filled.push({ start: at, end: item.start, state: "unverified" });
    }
    filled.push(item);
    at = Math.max(at, item.end);
  }
  if (at < length) {
    filled.push({ start: at, end: length, state: "unverified" });
  }
  return filled;
}

interface Verifying {
  running: boolean;
  progress: { bytes: number; total: number } | null;
  report: Verification | null;
  error: ApiError | null;
  start: (deep: boolean) => void;
  stop: () => void;
}

function useVerification(file: FileEntry): Verifying {
  const [state, setState] = useState<Omit<Verifying, "start" | "stop">>({ running: false, progress: null, report: null, error: null });
  const abort = useRef<AbortController | null>(null);
  useEffect(() => {
    setState({ running: false, progress: null, report: null, error: null });
    return () => abort.current?.abort();
  }, [file.id, file.version]);
  const start = async (deep: boolean) => {
    const controller = new AbortController();
    abort.current?.abort();
    abort.current = controller;
    setState({ running: true, progress: null, report: null, error: null });
    let finished = false;
    try {
      await events(path(["api", "files", file.id, "verify"], { deep: deep ? true : null }), controller.signal, (event) => {
        const body = JSON.parse(event.data);
        if (event.event === "progress") {
          setState((old) => ({ ...old, progress: body }));
        } else if (event.event === "report") {
          finished = true;
          setState({ running: false, progress: null, report: body, error: null });
        } else if (event.event === "error") {
          finished = true;
          setState({ running: false, progress: null, report: null, error: asError(new Error(body.error)) });
        }
      });
      if (!finished && !controller.signal.aborted) {
        setState({ running: false, progress: null, report: null, error: asError(new Error("The server ended the verification.")) });
      }
    } catch (failure) {
      setState({ running: false, progress: null, report: null, error: controller.signal.aborted ? null : asError(failure) });
    }
  };
  return { ...state, start: (deep) => void start(deep), stop: () => abort.current?.abort() };
}

function VerifyBar({ verification, deep }: { verification: Verifying; deep: boolean }) {
  const { running, progress, report, error } = verification;
  const bad = report?.report.findings.filter((finding) => !finding.ok).length ?? 0;
  return (
    <div class={`verify-bar card ${report === null ? "" : report.report.ok ? "good" : "bad"}`}>
      <Icon name={report !== null && !report.report.ok ? "warning" : "shield"} size={20} />
      <p class="verify-text" role="status">
        {running
          ? progress === null
            ? "Verifying…"
            : `Verifying: ${bytes(progress.bytes)} of ${bytes(progress.total)}`
          : report === null
            ? "Structure and checksums are verified on every read. Verify the whole file now:"
            : report.report.ok
              ? `Valid: ${plural(report.report.findings.length, "check")} in ${duration(report.took_ms)}${report.deep ? ", all values decoded" : ""}.`
              : `Not valid: ${plural(bad, "finding")} in ${duration(report.took_ms)}.`}
      </p>
      {running && progress !== null && progress.total > 0 && <progress value={progress.bytes} max={progress.total} aria-label="Progress of the verification" />}
      <label class="facet-value deep">
        <input type="checkbox" checked={deep} onChange={() => change({ deep: !deep }, true)} /> decode values
      </label>
      {running ? (
        <button type="button" class="button small" onClick={verification.stop}>
          Stop
        </button>
      ) : (
        <button type="button" class="button small primary" onClick={() => verification.start(deep)}>
          Verify
        </button>
      )}
      {error !== null && <Problem error={error} />}
    </div>
  );
}

function Findings({ findings, open }: { findings: Finding[]; open: (span: Span) => void }) {
  const notable = findings.filter((finding) => !finding.ok || finding.severity !== "info");
  return (
    <section class="card findings" aria-label="Findings">
      <ul>
        {notable.slice(0, 200).map((finding, i) => (
          <li key={i} class={`finding ${finding.severity}`}>
            <span class="finding-severity">{finding.severity}</span>
            <div>
              <strong>{finding.check}</strong> {finding.detail}
              {finding.site && (
                <div class="small-text muted">
                  {finding.site.region}
                  {finding.site.span && (
                    <>
                      {" · "}
                      <button type="button" class="link" onClick={() => finding.site?.span && open(finding.site.span)}>
                        bytes {count(finding.site.span.start)} … {count(finding.site.span.end)}
                      </button>
                    </>
                  )}
                </div>
              )}
            </div>
          </li>
        ))}
      </ul>
      {notable.length > 200 && <p class="muted padded">and {count(notable.length - 200)} more</p>}
    </section>
  );
}

const LEVEL = 30;

function Icicle({ all, worst, states, length, zoom, chosen, choose, setZoom }: { all: Region[]; worst: ChecksumState[]; states: Outline["states"]; length: number; zoom: Span; chosen: Region | null; choose: (region: Region | null, replace?: boolean) => void; setZoom: (span: Span, replace: boolean) => void }) {
  const [frame, size] = useSize<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const dark = useDark();
  const [hovered, setHovered] = useState<Region | null>(null);
  const [live, setLive] = useState<Span | null>(null);
  const view = live ?? zoom;
  const levels = Math.min(7, Math.max(1, ...all.map((region) => region.depth + 1)));
  const height = levels * LEVEL + 22;
  const settle = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const now = useRef({ view, size, length });
  now.current = { view, size, length };

  const move = (span: Span) => {
    const width = Math.max(Math.min(16, length), Math.min(length, span.end - span.start));
    const start = Math.max(0, Math.min(length - width, span.start));
    const next = { start, end: start + width };
    setLive(next);
    clearTimeout(settle.current);
    settle.current = setTimeout(() => {
      setZoom(next, true);
      setLive(null);
    }, 200);
  };
  const moveNow = useRef(move);
  moveNow.current = move;
  useEffect(() => () => clearTimeout(settle.current), []);

  useEffect(() => {
    const element = canvas.current;
    if (element === null) {
      return;
    }
    const onWheel = (event: WheelEvent) => {
      event.preventDefault();
      const { view: current, size: box } = now.current;
      const span = current.end - current.start;
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const shift = (event.deltaX / box.width) * span;
        moveNow.current({ start: current.start + shift, end: current.end + shift });
        return;
      }
      const factor = Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.005);
      const fraction = (event.clientX - element.getBoundingClientRect().left) / box.width;
      const place = current.start + fraction * span;
      moveNow.current({ start: place - fraction * span * factor, end: place + (1 - fraction) * span * factor });
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, []);

  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context || size.width === 0) {
      return;
    }
    const ratio = window.devicePixelRatio || 1;
    element.width = Math.round(size.width * ratio);
    element.height = Math.round(height * ratio);
    element.style.height = `${height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, size.width, height);
    const span = view.end - view.start;
    const x = (offset: number) => ((offset - view.start) / span) * size.width;
    const fills: Record<ChecksumState, string> = { ok: color("state-ok"), damaged: color("state-damaged"), unverified: color("state-unverified"), unprotected: color("state-unprotected"), missing: color("missing-line") };
    const [onFill, text] = [color("on-state"), color("text")];
    context.font = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
    context.textBaseline = "middle";
    // Thin neighbours share a pixel; only the first of them is drawn, unless one is damaged.
    const drawn = new Array<number>(levels).fill(-1);
    for (const region of all) {
      const { start, end } = region.node.span;
      if (region.depth >= levels || end <= view.start || start >= view.end) {
        continue;
      }
      const state = worst[region.id] ?? "unverified";
      const [left, right] = [Math.max(0, x(start)), Math.min(size.width, x(end))];
      const width = Math.max(1, right - left - (right - left > 3 ? 1 : 0));
      if (width <= 1 && state !== "damaged" && Math.floor(left) === drawn[region.depth]) {
        continue;
      }
      drawn[region.depth] = Math.floor(left);
      const top = region.depth * LEVEL;
      context.globalAlpha = region.depth % 2 === 0 ? 1 : 0.86;
      context.fillStyle = fills[region.children.length > 0 && width > 3 ? "unverified" : state];
      context.fillRect(left, top, width, LEVEL - 2);
      if (region.children.length > 0 && width > 3) {
        // A region of several parts shows where in it each state is.
        for (const item of overlapping(states, region.node.span)) {
          const [from, to] = [Math.max(left, x(item.start)), Math.min(left + width, x(item.end))];
          context.fillStyle = fills[item.state];
          context.fillRect(from, top, Math.max(item.state === "damaged" ? 2 : 0.5, to - from), LEVEL - 2);
        }
      }
      context.globalAlpha = 1;
      if (region === chosen || region === hovered) {
        context.strokeStyle = text;
        context.lineWidth = 2;
        context.strokeRect(left + 1, top + 1, Math.max(1, width - 2), LEVEL - 4);
      }
      if (width > 26) {
        context.save();
        context.beginPath();
        context.rect(left, top, width - 4, LEVEL);
        context.clip();
        context.fillStyle = onFill;
        context.fillText(region.node.name, left + 7, top + LEVEL / 2 - 0.5);
        context.restore();
      }
    }
    context.fillStyle = color("muted");
    const wanted = Math.max(2, Math.floor(size.width / 130));
    for (let i = 0; i <= wanted; i++) {
      const offset = Math.round(view.start + (span * i) / wanted);
      context.textAlign = i === 0 ? "left" : i === wanted ? "right" : "center";
      context.fillText(count(offset), x(offset), levels * LEVEL + 11);
    }
    context.textAlign = "left";
  }, [all, worst, states, size.width, view.start, view.end, chosen, hovered, dark, levels]);

  const find = (event: MouseEvent): Region | null => {
    const rectangle = canvas.current?.getBoundingClientRect();
    const [px, py] = [event.clientX - (rectangle?.left ?? 0), event.clientY - (rectangle?.top ?? 0)];
    const level = Math.floor(py / LEVEL);
    const scale = (view.end - view.start) / size.width;
    const [from, to] = [view.start + (px - 1) * scale, view.start + (px + 1) * scale];
    let found: Region | null = null;
    for (const region of all) {
      const { start, end } = region.node.span;
      if (region.depth === level && end > from && start < to && (found === null || (start <= view.start + px * scale && end > view.start + px * scale))) {
        found = region;
      }
    }
    return found;
  };
  const drag = useRef<{ x: number; view: Span; moved: boolean } | null>(null);
  const onKey = (event: KeyboardEvent) => {
    const span = view.end - view.start;
    const middle = (view.start + view.end) / 2;
    const actions: Record<string, () => void> = {
      "+": () => move({ start: middle - span / 4, end: middle + span / 4 }),
      "=": () => move({ start: middle - span / 4, end: middle + span / 4 }),
      "-": () => move({ start: middle - span, end: middle + span }),
      "0": () => move({ start: 0, end: length }),
      ArrowRight: () => move({ start: view.start + span / 8, end: view.end + span / 8 }),
      ArrowLeft: () => move({ start: view.start - span / 8, end: view.end - span / 8 }),
    };
    const action = actions[event.key];
    if (action !== undefined) {
      event.preventDefault();
      action();
    }
  };
  const label = hovered ?? chosen;
  return (
    <div ref={frame}>
      <canvas
        ref={canvas}
        class="icicle"
        tabIndex={0}
        role="application"
        aria-roledescription="picture of the byte layout"
        aria-label={`Byte layout, ${bytes(length)}. Plus and minus zoom, arrow keys move, 0 shows the whole file. The list of regions below says the same.`}
        onKeyDown={onKey}
        onPointerDown={(event) => {
          drag.current = { x: event.clientX, view, moved: false };
        }}
        onPointerMove={(event) => {
          const start = drag.current;
          if (start !== null && event.buttons !== 0) {
            if (Math.abs(event.clientX - start.x) > 4 || start.moved) {
              start.moved = true;
              const shift = ((start.x - event.clientX) / size.width) * (start.view.end - start.view.start);
              move({ start: start.view.start + shift, end: start.view.end + shift });
            }
          } else {
            setHovered(find(event));
          }
        }}
        onPointerUp={(event) => {
          if (drag.current !== null && !drag.current.moved) {
            choose(find(event));
          }
          drag.current = null;
        }}
        onPointerLeave={() => {
          drag.current = null;
          setHovered(null);
        }}
        onDblClick={(event) => {
          const region = find(event);
          if (region !== null) {
            setZoom(region.node.span, false);
          }
        }}
      />
      <p class="icicle-label" aria-live="off">
        {label === null ? (
          <span class="muted">{bytes(length)}</span>
        ) : (
          <>
            <strong>{label.node.name}</strong> <span class="muted">{`${count(label.node.span.start)} … ${count(label.node.span.end)}, ${bytes(label.node.span.end - label.node.span.start)}, ${stateText(worst[label.id] ?? "unverified")}`}</span>{" "}
            {label.node.value === undefined ? "" : plain(label.node.value)}
          </>
        )}
      </p>
    </div>
  );
}

const TREE_ROW = 30;

/** The outline as a tree; only rows in view are drawn. */
function RegionTree({ all, worst, chosen, choose }: { all: Region[]; worst: ChecksumState[]; chosen: Region | null; choose: (region: Region | null, replace?: boolean) => void }) {
  const [toggled, setToggled] = useState<Set<number>>(new Set());
  const [scroller, size] = useSize<HTMLDivElement>();
  const [scroll, setScroll] = useState(0);
  const isOpen = (region: Region) => region.children.length > 0 && (region.depth < 1 || (region.depth < 2 && region.children.length <= 12 && all.length < 400)) !== toggled.has(region.id);
  const path = useMemo(() => {
    const ids = new Set<number>();
    for (let region = chosen?.parent ?? null; region !== null; region = region.parent) {
      ids.add(region.id);
    }
    return ids;
  }, [chosen]);
  const rows = useMemo(() => {
    const shown: Region[] = [];
    const walk = (region: Region) => {
      shown.push(region);
      if (isOpen(region)) {
        region.children.forEach(walk);
      }
    };
    if (all[0] !== undefined) {
      walk(all[0]);
    }
    return shown;
  }, [all, toggled]);

  // The chosen region is always visible.
  useEffect(() => {
    const closed = [...path].filter((id) => all[id] !== undefined && !isOpen(all[id] as Region));
    if (closed.length > 0) {
      setToggled((old) => {
        const next = new Set(old);
        for (const id of closed) {
          if (next.has(id)) {
            next.delete(id);
          } else {
            next.add(id);
          }
        }
        return next;
      });
    }
  }, [path]);
  useEffect(() => {
    const element = scroller.current;
    const at = chosen === null ? -1 : rows.indexOf(chosen);
    if (element !== null && at >= 0 && (at * TREE_ROW < element.scrollTop || (at + 1) * TREE_ROW > element.scrollTop + element.clientHeight)) {
      element.scrollTop = Math.max(0, at * TREE_ROW - element.clientHeight / 2);
    }
  }, [chosen, rows]);

  const toggle = (region: Region) =>
    setToggled((old) => {
      const next = new Set(old);
      if (!next.delete(region.id)) {
        next.add(region.id);
      }
      return next;
    });
  const onKey = (event: KeyboardEvent) => {
    const at = chosen === null ? -1 : rows.indexOf(chosen);
    const current = rows[at] ?? null;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      choose(rows[Math.max(0, Math.min(rows.length - 1, at + (event.key === "ArrowDown" ? 1 : -1)))] ?? null, true);
    } else if (current !== null && event.key === "ArrowRight" && current.children.length > 0) {
      event.preventDefault();
      if (isOpen(current)) {
        choose(current.children[0] ?? null, true);
      } else {
        toggle(current);
      }
    } else if (current !== null && event.key === "ArrowLeft") {
      event.preventDefault();
      if (isOpen(current)) {
        toggle(current);
      } else {
        choose(current.parent, true);
      }
    } else if (current !== null && event.key === "Enter" && current.children.length > 0) {
      toggle(current);
    }
  };
  const from = Math.max(0, Math.floor(scroll / TREE_ROW) - 6);
  const to = Math.min(rows.length, Math.ceil((scroll + Math.max(300, size.height)) / TREE_ROW) + 6);
  return (
    <div class="region-scroll" ref={scroller} onScroll={(event) => setScroll(event.currentTarget.scrollTop)} tabIndex={0} role="tree" aria-label="Regions of the file" aria-activedescendant={chosen === null ? undefined : `region-${chosen.id}`} onKeyDown={onKey}>
      <div class="region-rows" role="presentation" ref={(element) => { if (element) { element.style.height = `${rows.length * TREE_ROW}px`; } }}>
        <div role="presentation" ref={(element) => { if (element) { element.style.transform = `translateY(${from * TREE_ROW}px)`; } }}>
          {rows.slice(from, to).map((region) => (
            <div
              key={region.id}
              id={`region-${region.id}`}
              role="treeitem"
              aria-level={region.depth + 1}
              aria-expanded={region.children.length > 0 ? isOpen(region) : undefined}
              aria-selected={region === chosen}
              class={`region-row ${region === chosen ? "selected" : ""}`}
              onClick={() => choose(region)}
            >
              <span class="region-name" ref={(element) => { if (element) { element.style.paddingLeft = `${region.depth * 16}px`; } }}>
                <span
                  class={`twist ${region.children.length === 0 ? "leaf" : isOpen(region) ? "open" : ""}`}
                  onClick={(event) => {
                    if (region.children.length > 0) {
                      event.stopPropagation();
                      toggle(region);
                    }
                  }}
                >
                  <Icon name="chevron" size={12} />
                </span>
                <StateDot state={worst[region.id] ?? "unverified"} />
                <span class="region-text">{region.node.name}</span>
              </span>
              <span class="region-value mono">{region.node.value === undefined ? "" : plain(region.node.value)}</span>
              <span class="region-range tabular muted">{count(region.node.span.start)}</span>
              <span class="region-size tabular muted">{bytes(region.node.span.end - region.node.span.start)}</span>
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

const HEX_PAGE = 512;

function RegionPane({ file, region, state, zoomTo, findings }: { file: FileEntry; region: Region; state: ChecksumState; zoomTo: (span: Span) => void; findings: Finding[] }) {
  const { span } = region.node;
  const related = findings.filter((finding) => finding.site?.span && finding.site.span.start < span.end && finding.site.span.end > span.start && !finding.ok);
  const trail: string[] = [];
  for (let at: Region | null = region; at !== null; at = at.parent) {
    trail.unshift(at.node.name);
  }
  return (
    <section class="card padded region-pane" aria-label="Region">
      <p class="muted small-text trail">{trail.slice(0, -1).join(" › ")}</p>
      <div class="section-head">
        <h2>{region.node.name}</h2>
        <button type="button" class="button small" onClick={() => zoomTo(span)}>
          <Icon name="fit" /> Zoom
        </button>
      </div>
      <dl class="facts-list">
        {region.node.value !== undefined && (
          <div>
            <dt>Value</dt>
            <dd class="mono wrap">{plain(region.node.value)}</dd>
          </div>
        )}
        <div>
          <dt>Bytes</dt>
          <dd>
            {count(span.start)} … {count(span.end)} ({plural(span.end - span.start, "byte")})
          </dd>
        </div>
        <div>
          <dt>State</dt>
          <dd>
            <StateDot state={state} label />
          </dd>
        </div>
      </dl>
      {related.slice(0, 3).map((finding, i) => (
        <p key={i} class="error-text">
          {finding.check}: {finding.detail}
        </p>
      ))}
      <Hex key={`${span.start} ${span.end}`} file={file} span={span} />
    </section>
  );
}

function RawOnly({ file }: { file: FileEntry }) {
  return (
    <section class="card padded">
      <h2>Raw bytes</h2>
      <Hex file={file} span={{ start: 0, end: file.size }} />
    </section>
  );
}

function Hex({ file, span }: { file: FileEntry; span: Span }) {
  const [page, setPage] = useState(0);
  const start = span.start + page * HEX_PAGE;
  const end = Math.min(span.end, start + HEX_PAGE);
  const pages = Math.max(1, Math.ceil((span.end - span.start) / HEX_PAGE));
  const loaded = useLoad(`${file.id} ${file.version} ${start} ${end}`, (signal) => rawBytes(file.id, start, end, signal));
  const [frame, size] = useSize<HTMLDivElement>();
  const per = size.width > 0 && size.width < 560 ? 8 : 16;
  const data = loaded.data;
  const lines = data === null ? [] : Array.from({ length: Math.ceil(data.length / per) }, (_, i) => data.subarray(i * per, (i + 1) * per));
  const hex = (value: number) => value.toString(16).padStart(2, "0");
  return (
    <div class="hex-frame" ref={frame}>
      {loaded.error !== null ? (
        <Problem error={loaded.error} retry={loaded.reload} />
      ) : (
        <pre class="hex" tabIndex={0} aria-label="Bytes of the region">
          {lines.map((line, i) => (
            <div key={i}>
              <span class="muted">{(start + i * per).toString(16).padStart(8, "0")}</span>
              {"  "}
              {[...line].map(hex).join(" ").padEnd(per * 3 - 1)}
              {"  "}
              <span class="hex-text">{[...line].map((value) => (value >= 32 && value < 127 ? String.fromCharCode(value) : "·")).join("")}</span>
            </div>
          ))}
        </pre>
      )}
      {pages > 1 && (
        <div class="hex-pages">
          <button type="button" class="button small" disabled={page === 0} onClick={() => setPage(page - 1)}>
            Previous
          </button>
          <span class="muted small-text tabular">
            {count(page + 1)} of {count(pages)}
          </span>
          <button type="button" class="button small" disabled={page + 1 >= pages} onClick={() => setPage(page + 1)}>
            Next
          </button>
        </div>
      )}
    </div>
  );
}
