// Search: results while typing, facets, sort, paging, and the document beside its hits.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type ApiError, json, path, useLoad } from "../lib/api";
import { count, duration, filterColumn, filterString, plain, plural, pythonString, shellWord } from "../lib/format";
import { applied, change, href, route, useRoute } from "../lib/router";
import type { FileEntry, Info, SearchAnswer, SearchResult, Suggestions } from "../lib/types";
import { Badge, CopyAs, Empty, Highlighted, Popover, Problem, Skeleton, isTyping } from "../ui/common";
import { Icon } from "../ui/icons";
import { DocumentPane } from "./document";

const PAGE = 10;
const MAX_DEEP = 10_000;
const RANKS = [
  ["relevance", "Relevance"],
  ["bm25", "BM25"],
  ["native", "Native"],
] as const;

/** The facets of the URL: field and chosen values. */
function chosenFacets(params: URLSearchParams): Map<string, string[]> {
  const chosen = new Map<string, string[]>();
  for (const [key, value] of params) {
    if (key.startsWith("f.")) {
      const field = key.slice(2);
      chosen.set(field, [...(chosen.get(field) ?? []), value]);
    }
  }
  return chosen;
}

/** The filter of the URL together with the chosen facets. */
function whereOf(params: URLSearchParams): string | null {
  const parts: string[] = [];
  const where = params.get("where")?.trim();
  if (where) {
    parts.push(`(${where})`);
  }
  for (const [field, values] of chosenFacets(params)) {
    if (field !== "file") {
      parts.push(`${filterColumn(field)} in (${values.map(literal).join(", ")})`);
    }
  }
  return parts.length === 0 ? null : parts.length === 1 && where && parts[0] === `(${where})` ? where : parts.join(" and ");
}

const literal = (value: string) => (/^n:/.test(value) ? value.slice(2) : filterString(value.replace(/^s:/, "")));

/** How a facet value is kept in the URL: numbers and strings have different prefixes. */
const facetKey = (value: unknown) => (typeof value === "number" || typeof value === "boolean" ? `n:${value}` : `s:${plain(value)}`);

export function SearchView({ info, files }: { info: Info; files: FileEntry[] | null }) {
  const { params } = useRoute();
  const query = params.get("q") ?? "";
  const [text, setText] = useState(query);
  const input = useRef<HTMLInputElement>(null);
  const typed = useRef(query);

  // The URL follows the box while typing; the box follows the URL on back and forward. A deferred effect would run after
  // the next key and put back the text without it.
  useLayoutEffect(() => {
    if (query !== typed.current) {
      typed.current = query;
      setText(query);
    }
  }, [query]);
  const type = (value: string) => {
    const first = typed.current === "";
    typed.current = value;
    setText(value);
    change({ q: value, page: null, doc: null, in: null, n: null }, !first || value === "");
  };

  const page = Math.max(1, Number(params.get("page") ?? "1") || 1);
  const where = whereOf(params);
  const facets = info.search?.facets ?? [];
  const rank = params.get("rank") ?? "relevance";
  const sort = params.get("sort") ?? "score";
  const key = query.trim() === "" ? null : path(["api", "search"], {
    q: query,
    limit: PAGE,
    offset: (page - 1) * PAGE,
    rank: rank === "relevance" ? null : rank,
    sort: sort === "score" ? null : sort,
    where,
    facets: facets.length === 0 ? null : facets.slice(0, 8).join(","),
    in: chosenFacets(params).get("file")?.map((id) => id.slice(2)).join(",") ?? null,
    highlight: 300,
  });
  const answer = useLoad<SearchAnswer & { wall: number }>(key, async (signal) => {
    const start = performance.now();
    const found = await json<SearchAnswer>(key ?? "", signal);
    return { ...found, wall: performance.now() - start };
  });
  const data = key === null ? null : answer.data;

  const suggestions = useLoad<Suggestions>(
    text.trim() === "" || text.endsWith(" ") ? null : path(["suggest"], { q: text, limit: 6 }),
    (signal) => json(path(["suggest"], { q: text, limit: 6 }), signal),
  );
  const offered = (suggestions.data?.query === text ? suggestions.data.suggestions : []).filter((item) => item.text !== text);
  const ghost = offered[0]?.text.startsWith(text) ? offered[0].text.slice(text.length) : "";

  useEffect(() => {
    document.title = query === "" ? "Search · Tercet" : `${query} · Tercet`;
  }, [query]);
  useEffect(() => {
    if (params.get("doc") === null) {
      input.current?.focus({ preventScroll: true });
    }
  }, []);

  const list = useRef<HTMLOListElement>(null);
  const focusResult = (index: number) => {
    const links = list.current?.querySelectorAll<HTMLAnchorElement>("a.result-title") ?? [];
    links[Math.max(0, Math.min(index, links.length - 1))]?.focus();
  };
  const onInputKey = (event: KeyboardEvent) => {
    const box = input.current;
    if (box === null) {
      return;
    }
    if (event.key === "ArrowDown" || event.key === "Enter") {
      event.preventDefault();
      focusResult(0);
    } else if (event.key === "ArrowRight" && ghost !== "" && box.selectionStart === text.length) {
      event.preventDefault();
      type(text + ghost);
    } else if (event.key === "Escape") {
      event.preventDefault();
      if (params.get("doc") !== null) {
        change({ doc: null, in: null, n: null });
      } else {
        type("");
      }
    }
  };
  const onListKey = (event: KeyboardEvent) => {
    const links = [...(list.current?.querySelectorAll<HTMLAnchorElement>("a.result-title") ?? [])];
    const at = links.indexOf(document.activeElement as HTMLAnchorElement);
    if (event.key === "ArrowDown") {
      event.preventDefault();
      focusResult(at + 1);
    } else if (event.key === "ArrowUp") {
      event.preventDefault();
      if (at <= 0) {
        input.current?.focus();
      } else {
        focusResult(at - 1);
      }
    }
  };
  // Escape leads back: from the document to the list, from the list to the box.
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented || isTyping(event.target)) {
        return;
      }
      const opened = route().params.get("doc");
      if (opened === null) {
        input.current?.focus();
        return;
      }
      change({ doc: null, in: null, n: null });
      requestAnimationFrame(() => {
        const links = [...(list.current?.querySelectorAll<HTMLAnchorElement>("a.result-title") ?? [])];
        (links.find((link) => link.dataset.doc === opened) ?? links[0])?.focus();
      });
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);

  const doc = params.get("doc");
  const openLink = (result: SearchResult) =>
    href(["search"], applied(params, { doc: result.doc_id, in: result.file.id, n: result.document }));
  const hasFilters = where !== null || chosenFacets(params).size > 0;

  return (
    <div class={`search ${doc === null ? "" : "has-doc"} ${query.trim() === "" ? "is-start" : ""}`}>
      <div class="search-head">
        <h1 class={query.trim() === "" ? "search-title" : "visually-hidden"}>Search {info.root}</h1>
        <form role="search" class="search-box" onSubmit={(event) => event.preventDefault()}>
          <Icon name="search" size={20} />
          <div class="search-field">
            <span class="ghost" aria-hidden="true">
              <span class="ghost-typed">{text}</span>
              {ghost}
            </span>
            <input
              ref={input}
              data-slash
              type="search"
              aria-label="Search"
              placeholder={`Search ${plural(info.search?.documents ?? 0, "document")}`}
              autocomplete="off"
              autocapitalize="off"
              spellcheck={false}
              enterkeyhint="search"
              value={text}
              onInput={(event) => type(event.currentTarget.value)}
              onKeyDown={onInputKey}
            />
          </div>
          <kbd class="slash" aria-hidden="true">/</kbd>
          <SyntaxHelp />
        </form>
        <div class="suggestions" role="group" aria-label="Suggestions">
          {offered.slice(0, 6).map((item) => (
            <button
              key={item.text}
              type="button"
              class="chip"
              onClick={() => {
                type(item.text);
                input.current?.focus();
              }}
            >
              {item.text} <span class="muted">{count(item.documents)}</span>
            </button>
          ))}
        </div>
      </div>
      {query.trim() === "" ? (
        <Start info={info} files={files} />
      ) : (
        <div class="search-body">
          {doc === null && <Facets answer={data} fields={facets} files={files} params={params} />}
          <section class="results" aria-label="Results" aria-busy={answer.loading}>
            <div class="results-head">
              <p class="results-count" role="status">
                {data === null ? (answer.loading ? "Searching…" : "") : <Count data={data} page={page} />}
              </p>
              <div class="results-tools">
                {sortsOf(info).length > 1 && (<label class="select-label">
                  <span class="visually-hidden">Sort by</span>
                  <select class="select small" value={sort} onChange={(event) => change({ sort: event.currentTarget.value === "score" ? null : event.currentTarget.value, page: null })}>
                    {sortsOf(info).map(([value, label]) => (
                      <option key={value} value={value}>
                        {label}
                      </option>
                    ))}
                  </select>
                </label>)}
                <label class="select-label">
                  <span class="visually-hidden">Ranking</span>
                  <select class="select small" value={rank} onChange={(event) => change({ rank: event.currentTarget.value === "relevance" ? null : event.currentTarget.value, page: null })}>
                    {RANKS.map(([value, label]) => (
                      <option key={value} value={value}>
                        {label}
                      </option>
                    ))}
                  </select>
                </label>
                <CopyAs snippets={snippets(info, query, where)} />
              </div>
            </div>
            <FilterChips params={params} files={files} />
            {answer.error !== null ? (
              <QueryProblem error={answer.error} query={query} retry={answer.reload} />
            ) : data === null ? (
              <Skeleton lines={8} />
            ) : (
              <>
                {data.notes.map((note) => (
                  <p key={note} class="note">
                    <Icon name="info" /> {note}
                  </p>
                ))}
                {data.results.length === 0 ? (
                  <Empty icon="search" title={page > 1 ? "No more results" : "Nothing found"}>
                    <p class="muted">
                      {hasFilters ? "No document matches the query and the filters." : `None of the ${plural(data.documents, "document")} matches.`} Try fewer words, a prefix such as <code>memo*</code>, or <code>colour~1</code> for
                      spelling.
                    </p>
                    {hasFilters && (
                      <button type="button" class="button" onClick={() => change(clearFilters(params))}>
                        Clear filters
                      </button>
                    )}
                  </Empty>
                ) : (
                  <ol class={`result-list ${answer.loading ? "stale" : ""}`} ref={list} onKeyDown={onListKey} start={data.offset + 1}>
                    {data.results.map((result) => (
                      <li key={`${result.file.id} ${result.document}`} class={doc === result.doc_id ? "result selected" : "result"}>
                        <Result result={result} link={openLink(result)} selected={doc === result.doc_id} />
                      </li>
                    ))}
                  </ol>
                )}
                <Pages data={data} page={page} params={params} />
              </>
            )}
          </section>
          {doc !== null && <DocumentPane key={doc} id={doc} file={params.get("in")} document={params.get("n")} query={query} close={() => change({ doc: null, in: null, n: null })} />}
        </div>
      )}
    </div>
  );
}

function sortsOf(info: Info): [string, string][] {
  const names: Record<string, string> = { score: "Best first", title: "Title A–Z", "-title": "Title Z–A", url: "URL A–Z", "-url": "URL Z–A", norm_body: "Shortest first", "-norm_body": "Longest first" };
  const sorts = info.search?.sorts ?? ["score"];
  return sorts.flatMap((sort): [string, string][] => (sort === "score" ? [[sort, names.score ?? sort]] : [[sort, names[sort] ?? `${sort} ↑`], [`-${sort}`, names[`-${sort}`] ?? `${sort} ↓`]]));
}

function clearFilters(params: URLSearchParams): Record<string, null> {
  const changes: Record<string, null> = { where: null, page: null };
  for (const key of params.keys()) {
    if (key.startsWith("f.")) {
      changes[key] = null;
    }
  }
  return changes;
}

function Count({ data, page }: { data: SearchAnswer & { wall: number }; page: number }) {
  const timing = Object.entries(data.timing ?? {});
  const title = [...timing.map(([name, ms]) => `${name.replace(/_ms$/, "")} ${duration(ms)}`), `with transfer ${duration(data.wall)}`].join(" · ");
  return (
    <>
      <strong>{data.matches_exact ? "" : "at least "}{plural(data.matches, "match", "matches")}</strong> in {plural(data.documents, "document")}
      {page > 1 && `, page ${page}`}{" "}
      <span class="muted timing" title={title}>
        {duration(data.took_ms)}
      </span>
    </>
  );
}

function Result({ result, link, selected }: { result: SearchResult; link: string; selected: boolean }) {
  return (
    <article>
      <h2 class="result-heading">
        <a class="result-title" href={link} data-doc={result.doc_id} aria-current={selected ? "true" : undefined}>
          {result.title || result.url || result.doc_id}
        </a>
      </h2>
      <p class="result-meta">
        <span class="result-url">{result.url || result.doc_id}</span>
        <span class="result-file" title={`Segment ${result.file.path}, document ${result.document}`}>
          {result.file.path}
        </span>
        {result.score !== null && (
          <span class="score" title="Score">
            {result.score.toFixed(3)}
          </span>
        )}
      </p>
      {result.snippet && (
        <p class="result-snippet">
          <Highlighted text={result.snippet.text} marks={result.snippet.marks} />
        </p>
      )}
    </article>
  );
}

function Pages({ data, page, params }: { data: SearchAnswer; page: number; params: URLSearchParams }) {
  const last = Math.min(Math.ceil(data.matches / PAGE), Math.floor(MAX_DEEP / PAGE));
  const more = data.results.length === PAGE && (page < last || !data.matches_exact);
  if (page === 1 && !more) {
    return null;
  }
  const link = (n: number) => href(["search"], applied(params, { page: n === 1 ? null : n, doc: null, in: null, n: null }));
  const from = Math.max(1, Math.min(page - 2, last - 4));
  const numbers = Array.from({ length: Math.max(0, Math.min(5, last - from + 1)) }, (_, i) => from + i);
  return (
    <nav class="pages" aria-label="Pages">
      {page > 1 && (
        <a class="button small" href={link(page - 1)} rel="prev">
          Previous
        </a>
      )}
      {numbers.map((n) => (
        <a key={n} class="button small page-number" href={link(n)} aria-label={`Page ${n}`} aria-current={n === page ? "page" : undefined}>
          {n}
        </a>
      ))}
      {more && (
        <a class="button small" href={link(page + 1)} rel="next">
          Next
        </a>
      )}
    </nav>
  );
}

function Facets({ answer, fields, files, params }: { answer: SearchAnswer | null; fields: string[]; files: FileEntry[] | null; params: URLSearchParams }) {
  const [where, setWhere] = useState(params.get("where") ?? "");
  useLayoutEffect(() => setWhere(params.get("where") ?? ""), [params.get("where")]);
  const chosen = chosenFacets(params);
  const narrow = useMemo(() => matchMedia("(max-width: 900px)").matches, []);
  const toggle = (field: string, key: string) => {
    const values = chosen.get(field) ?? [];
    change({ [`f.${field}`]: values.includes(key) ? values.filter((value) => value !== key) : [...values, key], page: null });
  };
  const places = (files ?? []).filter((file) => file.searchable && file.collection === null);
  const shown = (answer?.facets ?? []).filter((facet) => facet.values.length > 0 || chosen.has(facet.field));
  return (
    <aside class="facets" aria-label="Filters">
      <details open={!narrow}>
        <summary>
          <Icon name="filter" /> Filters
        </summary>
        {answer === null && fields.length > 0 && <Skeleton lines={6} />}
        {shown.map((facet) => {
          const picked = chosen.get(facet.field) ?? [];
          const absent = picked.filter((key) => !facet.values.some((value) => facetKey(value.value) === key));
          return (
            <fieldset key={facet.field} class="facet">
              <legend>{facet.field}</legend>
              {[...facet.values.map((value) => [facetKey(value.value), plain(value.value), value.count] as const), ...absent.map((key) => [key, key.slice(2), 0] as const)].map(([key, label, n]) => (
                <label key={key} class="facet-value">
                  <input type="checkbox" checked={picked.includes(key)} onChange={() => toggle(facet.field, key)} />
                  <span class="facet-label" title={label}>
                    {label === "" ? "(empty)" : label}
                  </span>
                  <span class="facet-count">{count(n)}</span>
                </label>
              ))}
              {facet.more > 0 && <p class="muted small-text">{plural(facet.more, "more value")}</p>}
            </fieldset>
          );
        })}
        {(places.length > 1 || chosen.has("file")) && (
          <fieldset class="facet">
            <legend>file</legend>
            {places.map((file) => (
              <label key={file.id} class="facet-value">
                <input type="checkbox" checked={chosen.get("file")?.includes(`s:${file.id}`) ?? false} onChange={() => toggle("file", `s:${file.id}`)} />
                <span class="facet-label" title={file.path}>
                  {file.path}
                </span>
                <span class="facet-count">{count(file.documents)}</span>
              </label>
            ))}
          </fieldset>
        )}
        <form
          class="facet where"
          onSubmit={(event) => {
            event.preventDefault();
            change({ where, page: null });
          }}
        >
          <label for="search-where">Where</label>
          <input id="search-where" class="input mono" value={where} placeholder="norm_body > 100" spellcheck={false} onInput={(event) => setWhere(event.currentTarget.value)} onBlur={() => change({ where, page: null })} />
        </form>
      </details>
    </aside>
  );
}

function FilterChips({ params, files }: { params: URLSearchParams; files: FileEntry[] | null }) {
  const chosen = [...chosenFacets(params)];
  const where = params.get("where");
  if (chosen.length === 0 && !where) {
    return null;
  }
  return (
    <div class="filter-chips" aria-label="Active filters" role="group">
      {chosen.flatMap(([field, values]) =>
        values.map((value) => (
          <button key={`${field} ${value}`} type="button" class="chip active" onClick={() => change({ [`f.${field}`]: values.filter((other) => other !== value), page: null })}>
            {field}: {(field === "file" ? files?.find((file) => file.id === value.slice(2))?.path : undefined) ?? value.slice(2)} <Icon name="close" size={12} />
            <span class="visually-hidden">(remove)</span>
          </button>
        )),
      )}
      {where && (
        <button type="button" class="chip active" onClick={() => change({ where: null, page: null })}>
          {where} <Icon name="close" size={12} />
          <span class="visually-hidden">(remove)</span>
        </button>
      )}
    </div>
  );
}

/** An error of a query, with its place if that is known. */
export function QueryProblem({ error, query, retry, parameter = "q" }: { error: ApiError; query: string; retry?: () => void; parameter?: string }) {
  const at = error.at?.parameter === parameter ? error.at : null;
  return (
    <div>
      {at !== null && (
        <p class="query-error" aria-hidden="true">
          {query.slice(0, at.start)}
          <span class="wrong">{query.slice(at.start, Math.max(at.end, at.start + 1)) || " "}</span>
          {query.slice(Math.max(at.end, at.start + 1))}
        </p>
      )}
      <Problem error={error} retry={retry} />
    </div>
  );
}

function snippets(info: Info, query: string, where: string | null) {
  const filter = where === null ? "" : ` --where ${shellWord(where)}`;
  return [
    { name: "Command line", text: `tatami search ${shellWord(info.root)} ${shellWord(query)}${filter}` },
    { name: "HTTP", text: `curl '${location.origin}${location.pathname}${path(["api", "search"], { q: query, where }).replaceAll("'", "%27")}'` },
    { name: "Python", text: `import tercet\n\nsegment = tercet.open("segment.tatami")\nhits = segment.search(${pythonString(query)}, k=10)` },
  ];
}

const SYNTAX: [string, string][] = [
  ["memory safety", "either word; both rank higher"],
  ["+memory -collector", "must have, must not have"],
  ['"memory safety"', "the phrase"],
  ['"memory safety"~3', "within 3 words"],
  ["title:memory", "in a field"],
  ["salvag*", "prefix"],
  ["colour~1", "one typing error"],
  ["(a OR b) AND c", "groups"],
];

function SyntaxHelp() {
  return (
    <Popover label="Query syntax" icon="info" align="right" iconOnly>
      {(close) => (
        <div class="syntax">
          <h2>Query syntax</h2>
          <dl>
            {SYNTAX.map(([example, meaning]) => (
              <div key={example}>
                <dt>
                  <button
                    type="button"
                    class="link mono"
                    onClick={() => {
                      change({ q: example, page: null });
                      close();
                    }}
                  >
                    {example}
                  </button>
                </dt>
                <dd>{meaning}</dd>
              </div>
            ))}
          </dl>
          <h2>Keys</h2>
          <p class="keys">
            <kbd>/</kbd> search <kbd>→</kbd> complete <kbd>↓</kbd> <kbd>↑</kbd> results <kbd>Enter</kbd> open <kbd>n</kbd> <kbd>p</kbd> hits <kbd>Esc</kbd> back
          </p>
        </div>
      )}
    </Popover>
  );
}

function Start({ info, files }: { info: Info; files: FileEntry[] | null }) {
  const searchable = (files ?? []).filter((file) => file.searchable && file.collection === null);
  const other = (files ?? []).filter((file) => !file.searchable && file.collection === null);
  return (
    <div class="start">
      <p class="muted start-line">
        {plural(info.search?.documents ?? 0, "document")} in {plural(info.search?.segments ?? 0, "segment")}. Type to search<span class="hide-narrow">; <kbd>/</kbd> brings you back here</span>.
      </p>
      <div class="start-columns">
        <FileCards title="Searched here" files={searchable} />
        <FileCards title="Also in this directory" files={other} />
      </div>
    </div>
  );
}

function FileCards({ title, files }: { title: string; files: FileEntry[] }) {
  if (files.length === 0) {
    return null;
  }
  return (
    <section>
      <h2 class="section-title">{title}</h2>
      <ul class="cards">
        {files.slice(0, 8).map((file) => (
          <li key={file.id}>
            <a class="file-card" href={href(["file", file.id])}>
              <Badge format={file.format} />
              <span class="file-card-name">{file.path}</span>
              <span class="muted">{file.summary ?? ""}</span>
            </a>
          </li>
        ))}
      </ul>
      {files.length > 8 && <a href={href(["files"])}>All {count(files.length)} files</a>}
    </section>
  );
}
