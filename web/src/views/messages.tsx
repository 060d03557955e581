// Messages of a `.tgm` file: list with filter, one object as a field, live follow.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Field } from "../field/view";
import { objectSource } from "../field/source";
import { type ApiError, asError, events, json, path, useLoad } from "../lib/api";
import { bytes, count, plain, plural, pythonString, shape } from "../lib/format";
import { applied, change, href, route, useRoute } from "../lib/router";
import type { FileEntry, Message, MessageList, MessageRow, ObjectRow } from "../lib/types";
import { Attrs, CopyAs, Empty, Problem, Skeleton, StateDot } from "../ui/common";
import { Icon } from "../ui/icons";
import { QueryProblem } from "./search";

const PAGE = 200;
const KEYS_SHOWN = 4;

export function MessagesView({ file }: { file: FileEntry }) {
  const { params } = useRoute();
  const where = params.get("where") ?? "";
  const following = params.get("live") === "1";
  const base = ["api", "tgm", file.id];
  const first = useLoad<MessageList>(`${file.id} ${where} ${following ? "live" : file.version}`, (signal) => json(path(base, { where: where || null, limit: PAGE, order: following ? "desc" : null }), signal), { fresh: false });
  const [more, setMore] = useState<MessageRow[]>([]);
  const [ended, setEnded] = useState(false);
  const [busy, setBusy] = useState(false);
  const [moreError, setMoreError] = useState<ApiError | null>(null);
  useEffect(() => {
    setMore([]);
    setEnded(false);
  }, [first.data]);

  const live = useFollow(file, following && first.data !== null, (first.data?.total ?? 0) - 1);
  const list = first.data;
  const rows = useMemo(() => {
    if (list === null) {
      return [];
    }
    return following ? [...live.rows.toReversed(), ...list.messages, ...more] : [...list.messages, ...more];
  }, [list, more, live.rows, following]);
  const loadMore = async () => {
    if (list === null || busy) {
      return;
    }
    setBusy(true);
    setMoreError(null);
    try {
      const next = await json<MessageList>(path(base, { where: where || null, limit: PAGE, offset: list.messages.length + more.length, order: following ? "desc" : null }));
      setMore((old) => [...old, ...next.messages]);
      setEnded(next.messages.length < PAGE);
    } catch (failure) {
      setMoreError(asError(failure));
    }
    setBusy(false);
  };

  // The newest message is shown while following, unless one is chosen.
  const chosenNumber = params.get("m");
  const newest = following ? live.rows.at(-1)?.message ?? list?.messages[0]?.message : undefined;
  const number = chosenNumber === null ? (newest ?? rows.find((row) => row.problem === null)?.message ?? rows[0]?.message ?? null) : Number(chosenNumber);

  return (
    <div class="messages">
      <section class="message-list card" aria-label="Messages">
        <div class="message-tools">
          <WhereBox value={where} placeholder='step >= 6 and name = "t"' error={list === null ? null : first.error} label="Filter messages" apply={(text) => change({ where: text, m: null, o: null })} />
          <button type="button" class={`button small toggle live ${following ? "on" : ""}`} aria-pressed={following} onClick={() => change({ live: following ? null : "1", m: null })}>
            <Icon name="live" /> {following ? "Live" : "Follow"}
          </button>
        </div>
        {first.error !== null && (
          <QueryProblem error={first.error} query={where} retry={first.reload} parameter="where" />
        )}
        <p class="muted list-count" role="status">
          {list === null ? <>&nbsp;</> : where === "" ? plural(list.total + live.rows.length, "message") : list.matched === null ? `at least ${plural(rows.length, "match", "matches")}` : `${count(list.matched)} of ${plural(list.total, "message")}`}
          {following && <span class={`live-state ${live.state}`}> · {live.text}</span>}
        </p>
        {list === null && first.error === null ? (
          <Skeleton lines={10} />
        ) : list === null ? null : rows.length === 0 ? (
          <Empty icon="list" title={where === "" ? "No messages yet" : "No message matches"}>
            {where === "" ? <p class="muted">Messages appear here as they are written. Press Follow.</p> : <button type="button" class="button" onClick={() => change({ where: null })}>Clear the filter</button>}
          </Empty>
        ) : (
          <MessageTable rows={rows} keys={(list.keys.length > 0 ? list.keys : varyingKeys(list.messages)).slice(0, KEYS_SHOWN)} current={number} fresh={live.rows} />
        )}
        {list !== null && !ended && rows.length >= PAGE && (list.matched === null || rows.length < list.matched) && (
          <button type="button" class="button small wide" disabled={busy} onClick={loadMore}>
            {busy ? "Loading…" : "Show more"}
          </button>
        )}
        {moreError !== null && <Problem error={moreError} />}
        {(list?.gaps ?? []).map((gap) => (
          <p key={gap.span.start} class="note">
            <Icon name="warning" /> {gap.problem ?? `${gap.kind}: bytes ${count(gap.span.start)} … ${count(gap.span.end)}`}
          </p>
        ))}
        {list?.cut_tail ? (
          <p class="note">
            <Icon name="warning" /> The file ends inside a message.
          </p>
        ) : null}
      </section>
      <section class="message-detail" aria-label="Message">
        {number === null || Number.isNaN(number) ? null : <MessagePage file={file} number={number} object={Number(params.get("o") ?? "0")} />}
      </section>
    </div>
  );
}

/** Filter with the language of `--where`; applied on Enter or when the focus leaves. */
export function WhereBox({ value, placeholder, error, label, apply, slash = true }: { value: string; placeholder: string; error: ApiError | null; label: string; apply: (text: string) => void; slash?: boolean }) {
  const [text, setText] = useState(value);
  // Not deferred: the effect must not replace what is typed after this render.
  useLayoutEffect(() => setText(value), [value]);
  return (
    <form
      class="where-box"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        apply(text.trim());
      }}
    >
      <Icon name="filter" />
      <input
        data-slash={slash ? true : undefined}
        class={`input mono ${error !== null ? "invalid" : ""}`}
        aria-label={label}
        aria-invalid={error !== null}
        placeholder={placeholder}
        spellcheck={false}
        autocomplete="off"
        autocapitalize="off"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape" && text !== "") {
            event.preventDefault();
            setText("");
            apply("");
          }
        }}
      />
      {text.trim() !== value && (
        <button type="submit" class="button small primary">
          Apply
        </button>
      )}
      {text.trim() === value && value !== "" && (
        <button type="button" class="button small quiet" aria-label="Clear the filter" onClick={() => apply("")}>
          <Icon name="close" />
        </button>
      )}
    </form>
  );
}

const field = (row: MessageRow, key: string): unknown => {
  for (const source of [row.metadata, ...row.objects.map((object) => object.metadata)]) {
    if (key in source) {
      return source[key];
    }
    let value: unknown = source;
    for (const part of key.split(".")) {
      value = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[part] : undefined;
    }
    if (value !== undefined) {
      return value;
    }
  }
  return undefined;
};

/** Keys of the metadata, nested ones with dots, whose values differ between messages; names first. */
function varyingKeys(rows: MessageRow[]): string[] {
  const values = new Map<string, Set<string>>();
  const add = (prefix: string, source: Record<string, unknown>, depth: number) => {
    for (const [key, value] of Object.entries(source)) {
      if (key.startsWith("_") || key === "base") {
        continue;
      }
      if (typeof value !== "object" || value === null) {
        const seen = values.get(prefix + key) ?? new Set();
        values.set(prefix + key, seen.add(plain(value)));
      } else if (depth < 2 && !Array.isArray(value)) {
        add(`${prefix}${key}.`, value as Record<string, unknown>, depth + 1);
      }
    }
  };
  for (const row of rows.slice(0, 200)) {
    add("", row.metadata, 0);
    for (const object of row.objects) {
      add("", object.metadata, 0);
    }
  }
  const keys = [...values.keys()];
  const varying = keys.filter((key) => (values.get(key)?.size ?? 0) > 1);
  const name = keys.includes("name") ? "name" : "mars.param";
  return [...keys.filter((key) => key === name), ...varying].filter((key, i, all) => all.indexOf(key) === i);
}

function MessageTable({ rows, keys, current, fresh }: { rows: MessageRow[]; keys: string[]; current: number | null; fresh: MessageRow[] }) {
  const { params } = useRoute();
  const list = useRef<HTMLTableSectionElement>(null);
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") {
      return;
    }
    const links = [...(list.current?.querySelectorAll<HTMLAnchorElement>("a") ?? [])];
    const at = links.indexOf(document.activeElement as HTMLAnchorElement);
    const next = links[at + (event.key === "ArrowDown" ? 1 : -1)];
    if (next !== undefined) {
      event.preventDefault();
      next.focus();
      change({ m: next.dataset.number ?? null, o: null }, true);
    }
  };
  const isFresh = new Set(fresh.map((row) => row.message));
  return (
    <div class="table-frame message-frame" tabIndex={0} role="group" aria-label="List of messages">
      <table class="message-table">
        <thead>
          <tr>
            <th scope="col" class="right">#</th>
            {keys.map((key) => (
              <th scope="col" key={key} title={key}>
                {key.slice(key.lastIndexOf(".") + 1)}
              </th>
            ))}
            <th scope="col">Objects</th>
            <th scope="col" class="right">Size</th>
          </tr>
        </thead>
        <tbody ref={list} onKeyDown={onKey}>
          {rows.map((row) => (
            <tr key={row.message} class={`${row.message === current ? "selected" : ""} ${isFresh.has(row.message) ? "fresh" : ""}`} onClick={() => change({ m: row.message, o: null })}>
              <td class="right tabular">
                <a href={href(route().parts, applied(params, { m: row.message, o: null }))} data-number={row.message} aria-current={row.message === current ? "true" : undefined} aria-label={`Message ${row.message}`}>
                  {row.message}
                </a>
              </td>
              {keys.map((key) => (
                <td key={key}>{field(row, key) === undefined ? "" : plain(field(row, key))}</td>
              ))}
              <td class="muted">
                {row.problem !== null ? (
                  <span class="error-text">{row.problem}</span>
                ) : row.objects.length === 1 ? (
                  `${row.objects[0]?.dtype} ${shape(row.objects[0]?.shape ?? [])}`
                ) : (
                  plural(row.objects.length, "object")
                )}
              </td>
              <td class="right tabular muted">{bytes(row.length)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const LIVE_KEPT = 500;

/** New messages of a growing file. The connection is opened again after it breaks. */
function useFollow(file: FileEntry, enabled: boolean, after: number) {
  const [rows, setRows] = useState<MessageRow[]>([]);
  const [status, setStatus] = useState({ state: "waiting", text: "connecting" });
  const start = useRef(after);
  start.current = after;
  useEffect(() => {
    setRows([]);
    if (!enabled) {
      return;
    }
    const abort = new AbortController();
    let last: string | null = null;
    const texts: Record<string, string> = { waiting: "waiting for messages", caught_up: "waiting for messages", replaced: "the file was replaced", truncated: "the file was cut", removed: "the file was removed", shutting_down: "the server stops" };
    const run = async () => {
      while (!abort.signal.aborted) {
        try {
          setStatus({ state: "on", text: "waiting for messages" });
          const url = path(["api", "tgm", file.id, "follow"], { after: last === null && start.current >= 0 ? start.current : null });
          await events(
            url,
            abort.signal,
            (event) => {
              last = event.id ?? last;
              if (event.event === "message") {
                const row = JSON.parse(event.data) as MessageRow;
                setRows((old) => [...old.filter((other) => other.message !== row.message), row].slice(-LIVE_KEPT));
                setStatus({ state: "on", text: `message ${row.message} arrived` });
              } else if (event.event === "state") {
                const state = (JSON.parse(event.data) as { state: string }).state;
                setStatus({ state: state === "waiting" || state === "caught_up" ? "on" : "off", text: texts[state] ?? state });
              } else if (event.event === "error") {
                setStatus({ state: "off", text: (JSON.parse(event.data) as { error: string }).error });
              } else if (event.event === "damaged") {
                setStatus({ state: "off", text: (JSON.parse(event.data) as { problem: string }).problem });
              }
            },
            last,
          );
        } catch (failure) {
          if (abort.signal.aborted) {
            return;
          }
          setStatus({ state: "off", text: `${asError(failure).message} Trying again.` });
        }
        await new Promise((resolve) => setTimeout(resolve, 1500));
      }
    };
    void run();
    return () => abort.abort();
  }, [file.id, enabled]);
  return { rows, ...status };
}

function MessagePage({ file, number, object }: { file: FileEntry; number: number; object: number }) {
  const url = path(["api", "tgm", file.id, number]);
  const loaded = useLoad<Message>(url, (signal) => json(url, signal));
  const message = loaded.data;
  const chosen = message?.objects.find((item) => item.object === object) ?? message?.objects[0] ?? null;
  const key = message === null || chosen === null ? "" : `${message.message}.${chosen.object} ${file.version}`;
  const source = useMemo(() => (message === null || chosen === null ? null : objectSource(file, message.message, chosen)), [key]);
  if (loaded.error !== null) {
    return <Problem error={loaded.error} retry={loaded.reload} />;
  }
  if (message === null) {
    return <Skeleton lines={10} />;
  }
  return (
    <>
      <div class="dataset-head">
        <h2>
          Message {message.message}
          {chosen?.name && <span class="long-name muted"> {chosen.name}</span>}
        </h2>
        <p class="facts">
          {chosen !== null && (
            <>
              <span>
                {chosen.dtype} {shape(chosen.shape)}
              </span>
              <span>{chosen.encoding}</span>
              <span>
                {bytes(chosen.stored_bytes)} <span class="muted">of {bytes(chosen.raw_bytes)}</span>
              </span>
              {chosen.state && (
                <span>
                  <StateDot state={chosen.state} label />
                </span>
              )}
            </>
          )}
          <span>
            bytes{" "}
            <a href={href(["file", file.id], { tab: "bytes", at: `${message.offset}-${message.offset + message.length}` })}>
              {count(message.offset)} … {count(message.offset + message.length)}
            </a>
          </span>
        </p>
        {message.objects.length > 1 && (
          <div class="segmented object-switch" role="group" aria-label="Objects">
            {message.objects.map((item) => (
              <button key={item.object} type="button" aria-pressed={item.object === chosen?.object} onClick={() => change({ o: item.object === 0 ? null : item.object }, true)}>
                {item.name ?? `object ${item.object}`}
              </button>
            ))}
          </div>
        )}
      </div>
      {source === null || chosen === null ? <Empty icon="list" title="No objects" /> : isNumeric(chosen) ? <Field source={source} /> : <p class="note">Values of the type {chosen.dtype} are not drawn.</p>}
      <MessageMetadata file={file} message={message} object={chosen} />
    </>
  );
}

const isNumeric = (object: ObjectRow) => /^(float|f|int|i|uint|u|bool|bfloat|bf)\d*/.test(object.dtype) && !object.dtype.startsWith("complex");

function MessageMetadata({ file, message, object }: { file: FileEntry; message: Message; object: ObjectRow | null }) {
  // `base` repeats the metadata of the objects.
  const { base, _reserved_, _extra_, ...named } = message.metadata;
  const own = typeof _extra_ === "object" && _extra_ !== null ? { ...named, ..._extra_ } : named;
  return (
    <div class="columns">
      <section class="card padded">
        <h3>Metadata of the message</h3>
        <Attrs attrs={own} empty="The message has none of its own." />
      </section>
      {object !== null && (
        <section class="card padded">
          <div class="section-head">
            <h3>Metadata of the object</h3>
            <CopyAs
              label="Copy as"
              snippets={[
                { name: "Python", text: `import tercet\n\nmetadata = tercet.open(${pythonString(file.path)})[${message.message}].metadata` },
                { name: "JSON", text: JSON.stringify({ message: message.metadata, object: object.metadata }, null, 2) },
              ]}
            />
          </div>
          <Attrs attrs={object.metadata} empty="No metadata." />
          {object.descriptor && (
            <details>
              <summary>Descriptor</summary>
              <Attrs attrs={object.descriptor} />
            </details>
          )}
        </section>
      )}
    </div>
  );
}

