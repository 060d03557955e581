// Tables: rows of a `.tatami` file or collection, drawn as they scroll into view.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type ApiError, asError, json, path, useLoad } from "../lib/api";
import { bytes, count, duration, filterColumn, filterString, number, plain, plural, pythonString, shellWord, time } from "../lib/format";
import { change, useRoute } from "../lib/router";
import type { Column, ColumnStats, FileEntry, Rows, TableFile } from "../lib/types";
import { CopyAs, CopyButton, Empty, Popover, Problem, Skeleton, useSize } from "../ui/common";
import { Icon } from "../ui/icons";
import { WhereBox } from "./messages";
import { QueryProblem } from "./search";

const PAGE = 100;
const ROW = 33;
/** Browsers limit the height of an element; larger tables scroll in proportion. */
const MAX_HEIGHT = 8_000_000;
const PAGES_KEPT = 60;

export function TableView({ file }: { file: FileEntry }) {
  const url = path(["api", "tatami", file.id]);
  const loaded = useLoad<TableFile>(`${url} ${file.version}`, (signal) => json(url, signal));
  if (loaded.error !== null && loaded.data === null) {
    return <Problem error={loaded.error} retry={loaded.reload} />;
  }
  return loaded.data === null ? <Skeleton lines={12} /> : <Table file={file} table={loaded.data} />;
}

function Table({ file, table }: { file: FileEntry; table: TableFile }) {
  const { params } = useRoute();
  const where = params.get("where") ?? "";
  const chosen = params.get("columns")?.split(",").filter((name) => table.columns.some((column) => column.name === name));
  const columns = chosen && chosen.length > 0 ? chosen.flatMap((name) => table.columns.filter((column) => column.name === name)) : table.columns.slice(0, 40);
  const isAll = !chosen || chosen.length === 0;
  const names = columns.map((column) => column.name);
  const query = { where: where || null, columns: isAll && table.columns.length <= 40 ? null : names.join(",") };
  const base = ["api", "tatami", file.id, "rows"];
  const key = `${file.id} ${file.version} ${where} ${names.join(",")}`;

  const first = useLoad<Rows>(key, (signal) => json(path(base, { ...query, limit: PAGE }), signal));
  const counted = useLoad<Rows>(where === "" ? null : `count ${file.id} ${file.version} ${where}`, (signal) => json(path(base, { where, columns: names[0] ?? null, limit: 1, count: true }), signal), { fresh: true });
  const total = where === "" ? table.rows : (counted.data?.matched ?? null);
  const known = total ?? (first.data === null ? 0 : first.data.rows.length + (first.data.rows.length === PAGE ? PAGE : 0));
  const row = params.get("row");
  const column = params.get("stats");

  return (
    <div class="table-view">
      <div class="field-tools">
        <WhereBox value={where} placeholder={exampleFilter(table.columns)} error={first.error} label="Filter rows" apply={(text) => change({ where: text, row: null })} />
        <ColumnsMenu table={table} names={names} />
        <CopyAs snippets={snippets(file, isAll ? null : names, where)} />
      </div>
      {first.error !== null && <QueryProblem error={first.error} query={where} retry={first.reload} parameter="where" />}
      <p class="muted list-count" role="status">
        {where === "" ? plural(table.rows, "row") : total === null ? (counted.error !== null ? "number of rows unknown" : "counting…") : `${count(total)} of ${plural(table.rows, "row")}`}
        {table.sorted_by && `, sorted by ${table.sorted_by}`}
        {first.data !== null && first.error === null && <span class="timing"> · {duration(first.data.took_ms)}</span>}
      </p>
      <div class={`table-split ${row !== null || column !== null ? "has-side" : ""}`}>
        {first.data === null ? (
          first.error === null && <Skeleton lines={12} />
        ) : first.data.rows.length === 0 && first.error === null && !first.loading ? (
          <Empty icon="table" title={where === "" ? "No rows" : "No row matches"}>
            {where !== "" && (
              <button type="button" class="button" onClick={() => change({ where: null })}>
                Clear the filter
              </button>
            )}
          </Empty>
        ) : (
          <VirtualRows key={key} url={(offset) => path(base, { ...query, limit: PAGE, offset })} first={first.data} columns={columns} total={known} selected={row === null ? null : Number(row)} stale={first.loading} statsOf={column} />
        )}
        {row !== null ? (
          <RowPane key={`${key} ${row}`} url={path(base, { where: where || null, offset: Number(row), limit: 1, full: true })} number={Number(row)} />
        ) : column !== null ? (
          <ColumnPane key={column} file={file} column={table.columns.find((item) => item.name === column) ?? null} where={where} />
        ) : null}
      </div>
    </div>
  );
}

function exampleFilter(columns: Column[]): string {
  const column = columns.find((item) => /int|float/.test(item.type) && typeof item.max === "number");
  if (column !== undefined) {
    return `${filterColumn(column.name)} > ${plain(column.min)}`;
  }
  const text = columns.find((item) => item.type === "string");
  return text === undefined ? "filter" : `${filterColumn(text.name)} contains "…"`;
}

const isNumber = (column: { type: string; logical_type: string | null }) => /^(u?int|float)/.test(column.type) && !/date|time|stamp/.test(column.logical_type ?? "");

/** The width of a column in pixels, from its type and name: the same before and after rows arrive. */
function widthOf(column: Column): number {
  const name = 8 * column.name.length + 58;
  const values: Record<string, number> = { bool: 70, string: 220, bytes: 180, list: 220, blobref: 320, timestamp_micros: 190 };
  return Math.min(420, Math.max(name, values[column.type] ?? 110));
}

function VirtualRows({ url, first, columns, total, selected, stale, statsOf }: { url: (offset: number) => string; first: Rows; columns: Column[]; total: number; selected: number | null; stale: boolean; statsOf: string | null }) {
  const pages = useRef(new Map<number, Rows>([[0, first]]));
  const asked = useRef(new Set<number>());
  const [, redraw] = useState(0);
  const [error, setError] = useState<ApiError | null>(null);
  const [scroller, size] = useSize<HTMLDivElement>();
  const [scroll, setScroll] = useState(0);
  const widths = useMemo(() => columns.map(widthOf), [columns]);
  pages.current.set(0, first);

  const height = Math.min(MAX_HEIGHT, total * ROW);
  const viewport = Math.max(200, size.height - ROW);
  const fraction = height > viewport ? scroll / (height - viewport) : 0;
  const visible = Math.ceil(viewport / ROW) + 1;
  const top = Math.max(0, Math.min(total - visible + 1, height >= MAX_HEIGHT ? Math.round(fraction * (total - visible + 1)) : Math.floor(scroll / ROW)));
  const from = Math.max(0, top - 8);
  const to = Math.min(total, top + visible + 8);
  const offset = height >= MAX_HEIGHT ? scroll - (top - from) * ROW : from * ROW;

  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(() => {
      for (let page = Math.floor(from / PAGE); page * PAGE < to; page++) {
        if (!pages.current.has(page) && !asked.current.has(page)) {
          asked.current.add(page);
          json<Rows>(url(page * PAGE), abort.signal)
            .then((rows) => {
              pages.current.set(page, rows);
              for (const old of [...pages.current.keys()].filter((other) => other !== 0 && other !== page)) {
                if (pages.current.size <= PAGES_KEPT) {
                  break;
                }
                pages.current.delete(old);
              }
              setError(null);
            })
            .catch((failure: unknown) => {
              if (!abort.signal.aborted) {
                setError(asError(failure));
              }
            })
            .finally(() => {
              asked.current.delete(page);
              redraw((n) => n + 1);
            });
        }
      }
    }, 40);
    return () => clearTimeout(timer);
  }, [from, to, total]);

  const rowAt = (index: number): unknown[] | undefined => pages.current.get(Math.floor(index / PAGE))?.rows[index % PAGE];
  const grid = useRef<HTMLDivElement>(null);
  const onKey = (event: KeyboardEvent) => {
    const element = scroller.current;
    if (element === null || (event.target as HTMLElement).closest("[role=columnheader]") !== null) {
      return;
    }
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: visible - 2, PageUp: 2 - visible };
    const step = steps[event.key];
    if (step !== undefined && selected !== null) {
      event.preventDefault();
      const next = Math.max(0, Math.min(total - 1, selected + step));
      change({ row: next, stats: null }, true);
      if (next < top || next >= top + visible - 2) {
        element.scrollTop = height >= MAX_HEIGHT ? (next / total) * height : Math.max(0, (next - Math.floor(visible / 2)) * ROW);
      }
    } else if (event.key === "Enter" && selected === null) {
      change({ row: top, stats: null });
    } else if (event.key === "Escape" && selected !== null) {
      change({ row: null });
    }
  };
  const rowWidth = widths.reduce((a, b) => a + b, 72);
  const set = (element: HTMLElement | null, styles: Partial<CSSStyleDeclaration>) => {
    if (element !== null) {
      Object.assign(element.style, styles);
    }
  };
  return (
    <div class={`rows card ${stale ? "stale" : ""}`}>
      {error !== null && <Problem error={error} />}
      <div class="rows-scroll" ref={scroller} tabIndex={0} role="grid" aria-label="Rows" aria-rowcount={total + 1} aria-colcount={columns.length + 1} onScroll={(event) => setScroll(event.currentTarget.scrollTop)} onKeyDown={onKey}>
        <div role="rowgroup" class="rows-head" ref={(element) => set(element, { width: `${rowWidth}px` })}>
          <div role="row" aria-rowindex={1} class="row head">
            <span role="columnheader" class="cell number-cell">
              #
            </span>
            {columns.map((column, i) => (
              <span key={column.name} role="columnheader" class={`cell ${isNumber(column) ? "right" : ""}`} ref={(element) => set(element, { width: `${widths[i]}px` })}>
                <button type="button" class="column-button" aria-pressed={statsOf === column.name} title={`${column.name}: ${column.logical_type ?? column.type}. Show statistics.`} onClick={() => change({ stats: statsOf === column.name ? null : column.name, row: null })}>
                  <span class="column-name">{column.name}</span>
                  <span class="column-type">{shortType(column)}</span>
                </button>
              </span>
            ))}
          </div>
        </div>
        <div role="rowgroup" class="rows-body" ref={(element) => { grid.current = element; set(element, { height: `${height}px`, width: `${rowWidth}px` }); }}>
          <div class="rows-window" role="presentation" ref={(element) => set(element, { transform: `translateY(${offset}px)` })}>
            {Array.from({ length: Math.max(0, to - from) }, (_, i) => {
              const index = from + i;
              const values = rowAt(index);
              return (
                <div key={index} role="row" aria-rowindex={index + 2} aria-selected={index === selected} class={`row ${index === selected ? "selected" : ""}`} onClick={() => change({ row: index === selected ? null : index, stats: null }, true)}>
                  <span role="rowheader" class="cell number-cell muted tabular">
                    {count(index)}
                  </span>
                  {columns.map((column, c) => (
                    <span key={column.name} role="gridcell" class={`cell ${isNumber(column) ? "right tabular" : ""}`} ref={(element) => set(element, { width: `${widths[c]}px` })}>
                      {values === undefined ? <span class="bar" /> : <Value value={values[c]} />}
                    </span>
                  ))}
                </div>
              );
            })}
          </div>
        </div>
      </div>
    </div>
  );
}

const shortType = (column: { type: string; logical_type: string | null }) => (column.logical_type ?? column.type).replace("timestamp_micros", "timestamp");

function Value({ value }: { value: unknown }) {
  if (value === null || value === undefined) {
    return <span class="null">null</span>;
  }
  if (typeof value === "string") {
    return <>{time(value)}</>;
  }
  return <>{plain(value)}</>;
}

function RowPane({ url, number: index, }: { url: string; number: number }) {
  const loaded = useLoad<Rows>(url, (signal) => json(url, signal));
  const values = loaded.data?.rows[0];
  return (
    <aside class="side card padded" aria-label="Row">
      <div class="section-head">
        <h2>Row {count(index)}</h2>
        <div>
          {values !== undefined && <CopyButton label="Copy JSON" text={JSON.stringify(Object.fromEntries((loaded.data?.columns ?? []).map((column, i) => [column.name, values[i]])), null, 2)} />}
          <button type="button" class="button small quiet" aria-label="Close" onClick={() => change({ row: null }, true)}>
            <Icon name="close" />
          </button>
        </div>
      </div>
      {loaded.error !== null ? (
        <Problem error={loaded.error} retry={loaded.reload} />
      ) : values === undefined ? (
        <Skeleton lines={6} />
      ) : (
        <dl class="attrs">
          {(loaded.data?.columns ?? []).map((column, i) => (
            <div key={column.name}>
              <dt>{column.name}</dt>
              <dd class="row-value">{values[i] === null ? <span class="null">null</span> : plain(values[i])}</dd>
            </div>
          ))}
        </dl>
      )}
    </aside>
  );
}

function ColumnPane({ file, column, where }: { file: FileEntry; column: Column | null; where: string }) {
  const url = column === null ? null : path(["api", "tatami", file.id, "columns", column.name], { where: where || null, top: 12 });
  const loaded = useLoad<ColumnStats>(url === null ? null : `${url} ${file.version}`, (signal) => json(url ?? "", signal));
  const stats = loaded.data;
  if (column === null) {
    return null;
  }
  const most = Math.max(1, ...(stats?.top ?? []).map((item) => item.count));
  return (
    <aside class="side card padded" aria-label={`Statistics of ${column.name}`}>
      <div class="section-head">
        <h2>{column.name}</h2>
        <button type="button" class="button small quiet" aria-label="Close" onClick={() => change({ stats: null })}>
          <Icon name="close" />
        </button>
      </div>
      <p class="facts">
        <span>{column.logical_type ?? column.type}</span>
        {column.encodings.length > 0 && <span>{column.encodings.join(", ")}</span>}
        {column.stored_bytes !== null && (
          <span>
            {bytes(column.stored_bytes)} <span class="muted">of {bytes(column.raw_bytes)}</span>
          </span>
        )}
      </p>
      {loaded.error !== null ? (
        <Problem error={loaded.error} retry={loaded.reload} />
      ) : stats === null ? (
        <Skeleton lines={8} />
      ) : (
        <>
          <dl class="facts-list">
            <StatFact name={where === "" ? "Rows" : "Matching rows"} value={count(stats.rows)} />
            <StatFact name="Null" value={`${count(stats.nulls)}${stats.rows > 0 && stats.nulls > 0 ? ` (${((100 * stats.nulls) / stats.rows).toFixed(1)} %)` : ""}`} />
            <StatFact name="Distinct" value={count(stats.distinct)} />
            <StatFact name="Min" value={stats.min === null ? "–" : plain(stats.min)} />
            <StatFact name="Max" value={stats.max === null ? "–" : plain(stats.max)} />
            {stats.mean !== null && <StatFact name="Mean" value={number(stats.mean)} />}
          </dl>
          {stats.histogram !== null && stats.histogram.counts.length > 0 && <Histogram histogram={stats.histogram} />}
          {stats.top !== null && stats.top.length > 0 && (
            <>
              <h3>Most frequent</h3>
              <ul class="top-values">
                {stats.top.map((item, i) => (
                  <li key={i}>
                    <button type="button" class="top-value" title="Filter by this value" onClick={() => change({ where: narrowed(where, column, item.value), row: null })}>
                      <span class="top-bar" ref={(element) => { if (element) { element.style.width = `${(100 * item.count) / most}%`; } }} />
                      <span class="top-text">{item.value === null ? "null" : plain(item.value) || "(empty)"}</span>
                      <span class="top-count tabular">{count(item.count)}</span>
                    </button>
                  </li>
                ))}
              </ul>
            </>
          )}
        </>
      )}
    </aside>
  );
}

function narrowed(where: string, column: Column, value: unknown): string {
  const name = filterColumn(column.name);
  const part = value === null ? `${name} is null` : typeof value === "string" && !(isNumber(column) && /^-?\d/.test(value)) ? `${name} = ${filterString(value)}` : `${name} = ${plain(value)}`;
  return where === "" ? part : where.includes(part) ? where : `(${where}) and ${part}`;
}

function StatFact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd title={value}>{value}</dd>
    </div>
  );
}

function Histogram({ histogram }: { histogram: { edges: number[]; counts: number[] } }) {
  const most = Math.max(1, ...histogram.counts);
  const [width, height] = [300, 90];
  const step = width / histogram.counts.length;
  return (
    <figure class="histogram">
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={`Histogram from ${number(histogram.edges[0])} to ${number(histogram.edges.at(-1))}`}>
        {histogram.counts.map((n, i) => (
          <rect key={i} x={i * step + 0.5} width={Math.max(1, step - 1)} y={height - (n / most) * height} height={(n / most) * height}>
            <title>
              {number(histogram.edges[i], 4)} … {number(histogram.edges[i + 1], 4)}: {count(n)}
            </title>
          </rect>
        ))}
      </svg>
      <figcaption>
        <span>{number(histogram.edges[0], 4)}</span>
        <span>{number(histogram.edges.at(-1), 4)}</span>
      </figcaption>
    </figure>
  );
}

function ColumnsMenu({ table, names }: { table: TableFile; names: string[] }) {
  const toggle = (name: string) => {
    const next = names.includes(name) ? names.filter((other) => other !== name) : table.columns.map((column) => column.name).filter((other) => other === name || names.includes(other));
    change({ columns: next.length === table.columns.length || next.length === 0 ? null : next.join(",") }, true);
  };
  return (
    <Popover label={names.length === table.columns.length ? "Columns" : `${names.length} of ${table.columns.length}`} icon="columns" align="right">
      {() => (
        <fieldset class="columns-menu">
          <legend>Columns</legend>
          {table.columns.map((column) => (
            <label key={column.name} class="facet-value">
              <input type="checkbox" checked={names.includes(column.name)} onChange={() => toggle(column.name)} />
              <span class="facet-label">{column.name}</span>
              <span class="facet-count">{shortType(column)}</span>
            </label>
          ))}
        </fieldset>
      )}
    </Popover>
  );
}

function snippets(file: FileEntry, names: string[] | null, where: string) {
  const local = shellWord(file.path);
  const columns = names === null ? "" : ` --columns ${shellWord(names.join(","))}`;
  const filter = where === "" ? "" : ` --where ${shellWord(where)}`;
  const list = names === null ? "" : `[${names.map(pythonString).join(", ")}]`;
  const args = [list, where === "" ? "" : `where=${pythonString(where)}`].filter(Boolean).join(", ");
  return [
    { name: "Command line", text: `tatami cat ${local}${columns}${filter}` },
    { name: "Python", text: `import tercet\n\ntable = tercet.open(${pythonString(file.path)})\nrows = table.scan(${args}).to_arrow()` },
    { name: "HTTP", text: `curl '${location.origin}${location.pathname}${path(["api", "tatami", file.id, "rows"], { columns: names?.join(",") ?? null, where: where || null, limit: 100 }).replaceAll("'", "%27")}'` },
  ];
}
