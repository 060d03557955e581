// A document with its hits marked.

import { useEffect, useRef, useState } from "preact/hooks";
import { json, path, useLoad } from "../lib/api";
import { count, plain, plural } from "../lib/format";
import { href } from "../lib/router";
import type { Document } from "../lib/types";
import { Highlighted, Problem, Skeleton, isTyping } from "../ui/common";
import { Icon } from "../ui/icons";

const MAX_TEXT = 262_144;

export function DocumentPane({ id, file, document: number, query, close }: { id: string; file: string | null; document: string | null; query: string; close: () => void }) {
  const [max, setMax] = useState(MAX_TEXT);
  const url = path(["doc", id], { q: query, in: file, document: number, max });
  const loaded = useLoad<Document>(url, (signal) => json(url, signal));
  const pane = useRef<HTMLElement>(null);
  const text = useRef<HTMLDivElement>(null);
  const [hit, setHit] = useState(-1);
  const data = loaded.data;

  const step = (by: number) => {
    const marks = text.current?.querySelectorAll("mark") ?? [];
    if (marks.length === 0) {
      return;
    }
    const next = (hit + by + marks.length) % marks.length;
    marks[hit]?.classList.remove("current");
    marks[next]?.classList.add("current");
    marks[next]?.scrollIntoView({ block: "center" });
    setHit(next);
  };
  const stepNow = useRef(step);
  stepNow.current = step;

  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!isTyping(event.target) && !event.ctrlKey && !event.metaKey && !event.altKey && (event.key === "n" || event.key === "p")) {
        stepNow.current(event.key === "n" ? 1 : -1);
      }
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  useEffect(() => {
    pane.current?.focus({ preventScroll: true });
  }, [id]);

  const marks = data === null ? 0 : (data.body?.marks.length ?? 0) + (data.title?.marks.length ?? 0);
  const isLink = data !== null && /^https?:\/\//i.test(data.url);
  return (
    <aside class="document card" aria-label="Document" ref={pane} tabIndex={-1}>
      <div class="document-bar">
        <button type="button" class="button small" onClick={close}>
          <Icon name="close" /> Close <kbd>Esc</kbd>
        </button>
        {marks > 0 && (
          <span class="hit-steps" role="group" aria-label="Hits">
            <span class="muted" role="status">
              {hit < 0 ? plural(marks, "hit") : `${count(hit + 1)} of ${count(marks)}`}
            </span>
            <button type="button" class="button small" onClick={() => step(-1)} aria-label="Previous hit" title="Previous hit (p)">
              <span class="turn-up">
                <Icon name="down" />
              </span>
            </button>
            <button type="button" class="button small" onClick={() => step(1)} aria-label="Next hit" title="Next hit (n)">
              <Icon name="down" />
            </button>
          </span>
        )}
      </div>
      {loaded.error !== null ? (
        <Problem error={loaded.error} retry={loaded.reload} />
      ) : data === null ? (
        <Skeleton lines={10} />
      ) : (
        <div class="document-text" ref={text}>
          <h2 class="document-title">{data.title ? <Highlighted text={data.title.text} marks={data.title.marks} /> : data.url || data.doc_id}</h2>
          <p class="document-url">
            {isLink ? (
              <a href={data.url} rel="noreferrer noopener" target="_blank">
                {data.url} <Icon name="external" size={13} />
              </a>
            ) : (
              data.url
            )}
          </p>
          {data.body_is_snippet && <p class="note">This segment stores snippets only.</p>}
          {data.body === null ? (
            <p class="muted">No text is stored.</p>
          ) : (
            <div class="document-body">
              <Highlighted text={data.body.text} marks={data.body.marks} />
            </div>
          )}
          {data.body?.truncated && (
            <p class="note">
              The text is longer.{" "}
              <button type="button" class="link" onClick={() => setMax(max * 4)}>
                Show more
              </button>
            </p>
          )}
          <details class="document-fields">
            <summary>Fields</summary>
            <dl class="attrs">
              <div>
                <dt>doc_id</dt>
                <dd class="mono">{data.doc_id}</dd>
              </div>
              <div>
                <dt>file</dt>
                <dd>
                  <a href={href(["file", data.file.id])}>{data.file.path}</a>, document {count(data.document)}
                </dd>
              </div>
              {data.fields.map((field) => (
                <div key={field.name}>
                  <dt>{field.name}</dt>
                  <dd>{plain(field.value)}</dd>
                </div>
              ))}
            </dl>
          </details>
        </div>
      )}
    </aside>
  );
}
