// Everything the file says about itself.

import { json, path, useLoad } from "../lib/api";
import { plain } from "../lib/format";
import type { FileEntry } from "../lib/types";
import { CopyButton, Problem, Skeleton } from "../ui/common";

export function InfoView({ file }: { file: FileEntry }) {
  const url = path(["api", "files", file.id, "summary"]);
  const loaded = useLoad<{ summary: unknown }>(`${url} ${file.version}`, (signal) => json(url, signal));
  if (loaded.error !== null && loaded.data === null) {
    return <Problem error={loaded.error} retry={loaded.reload} />;
  }
  if (loaded.data === null) {
    return <Skeleton lines={10} />;
  }
  return (
    <section class="card padded">
      <div class="section-head">
        <h2>Summary</h2>
        <CopyButton text={JSON.stringify(loaded.data.summary, null, 2)} label="Copy JSON" />
      </div>
      <Json value={loaded.data.summary} depth={0} />
    </section>
  );
}

const OPEN_DEPTH = 2;
const MAX_ENTRIES = 200;

/** A JSON value as nested, collapsible lists. */
function Json({ value, depth }: { value: unknown; depth: number }) {
  if (typeof value !== "object" || value === null) {
    return <span class={`json-${value === null ? "null" : typeof value}`}>{plain(value)}</span>;
  }
  const isList = Array.isArray(value);
  const entries: [string, unknown][] = isList ? value.map((item, i) => [String(i), item]) : Object.entries(value);
  if (entries.length === 0) {
    return <span class="muted">{isList ? "empty list" : "empty"}</span>;
  }
  if (isList && entries.length <= 12 && entries.every(([, item]) => typeof item !== "object" || item === null)) {
    return <span class="json-list">[{entries.map(([, item]) => plain(item)).join(", ")}]</span>;
  }
  return (
    <dl class="json">
      {entries.slice(0, MAX_ENTRIES).map(([key, item]) =>
        typeof item === "object" && item !== null && Object.keys(item).length > 0 && !(Array.isArray(item) && item.length <= 12 && item.every((part) => typeof part !== "object")) ? (
          <div key={key} class="json-branch">
            <dt class="visually-hidden">{key}</dt>
            <dd>
              <details open={depth < OPEN_DEPTH && entries.length < 12}>
                <summary>
                  {key} <span class="muted">{Array.isArray(item) ? `${item.length} items` : "name" in item && typeof item.name === "string" ? item.name : ""}</span>
                </summary>
                <Json value={item} depth={depth + 1} />
              </details>
            </dd>
          </div>
        ) : (
          <div key={key}>
            <dt>{key}</dt>
            <dd>
              <Json value={item} depth={depth + 1} />
            </dd>
          </div>
        ),
      )}
      {entries.length > MAX_ENTRIES && <p class="muted">and {entries.length - MAX_ENTRIES} more</p>}
    </dl>
  );
}
