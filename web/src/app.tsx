// The frame of the page: header, navigation, the current view.

import { useEffect, useRef, useState } from "preact/hooks";
import { json, useLoad, whenUnauthorized } from "./lib/api";
import { decoded, go, href, useRoute } from "./lib/router";
import type { FileList, Info } from "./lib/types";
import { ThemeSwitch } from "./theme";
import { Problem, isTyping } from "./ui/common";
import { Icon, Logo } from "./ui/icons";
import { SignIn, signIn } from "./views/signin";
import { FilesView } from "./views/files";
import { SearchView } from "./views/search";

const POLL_MS = 5000;

export function App() {
  const { parts } = useRoute();
  const [locked, setLocked] = useState(false);
  const [ready, setReady] = useState(false);
  useEffect(() => {
    whenUnauthorized(() => setLocked(true));
    const token = /^#token=(.+)$/.exec(location.hash)?.[1];
    if (token === undefined) {
      setReady(true);
    } else {
      // The token must not stay in the address bar. A wrong one leads to the form.
      go([], {}, true);
      void signIn(decoded(token)).catch(() => {}).finally(() => setReady(true));
    }
  }, []);

  const info = useLoad<Info>(ready && !locked ? "info" : null, (signal) => json("api/info", signal));
  const files = useFiles(ready && !locked);

  // A single file is shown at once.
  useEffect(() => {
    if (info.data?.mode === "file" && info.data.file !== null && parts.length === 0) {
      go(["file", info.data.file], {}, true);
    }
  }, [info.data, parts.length]);

  const hasSearch = (info.data?.search?.segments ?? 0) > 0;
  const place = parts[0] ?? (info.data === null ? "" : hasSearch ? "search" : "files");
  const showFiles = place === "file" || place === "files";

  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event.target)) {
        event.preventDefault();
        const box = document.querySelector<HTMLInputElement>("[data-slash]");
        if (box !== null) {
          box.focus();
          box.select();
        } else if (hasSearch) {
          go(["search"]);
        }
      }
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [hasSearch]);

  const main = useRef<HTMLElement>(null);
  return (
    <>
      <a
        class="skip-link"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href="#/">
          <Logo />
          <span class="brand-name">tercet</span>
          {info.data && <span class="brand-root">{info.data.root}</span>}
        </a>
        <nav class="top-nav" aria-label="Views">
          {hasSearch && (
            <a href={href(["search"])} aria-current={place === "search" ? "page" : undefined}>
              <Icon name="search" /> Search
            </a>
          )}
          <a href={href(["files"])} aria-current={showFiles ? "page" : undefined}>
            <Icon name="folder" /> Files
          </a>
        </nav>
        <ThemeSwitch />
      </header>
      <main id="main" class={`place-${showFiles ? "files" : "search"}`} ref={main} tabIndex={-1}>
        {locked ? (
          <SignIn done={() => setLocked(false)} />
        ) : info.error !== null && info.data === null ? (
          <div class="page">
            <h1 class="visually-hidden">Tercet</h1>
            <Problem error={info.error} retry={info.reload} />
          </div>
        ) : place === "search" && hasSearch && info.data !== null ? (
          <SearchView info={info.data} files={files.data?.files ?? null} />
        ) : showFiles ? (
          <FilesView info={info.data} list={files} />
        ) : place === "" ? null : (
          <div class="page">
            <h1>Not found</h1>
            <p>
              There is no view with this URL. <a href="#/">Start again.</a>
            </p>
          </div>
        )}
      </main>
    </>
  );
}

/** The list of files, fetched again every few seconds; an unchanged list costs one small answer. */
function useFiles(enabled: boolean) {
  const list = useLoad<FileList>(enabled ? "files" : null, allFiles);
  const reload = useRef(list.reload);
  reload.current = list.reload;
  useEffect(() => {
    if (!enabled) {
      return;
    }
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") {
        reload.current();
      }
    }, POLL_MS);
    return () => clearInterval(timer);
  }, [enabled]);
  return list;
}

const PAGE = 1000;

async function allFiles(signal: AbortSignal): Promise<FileList> {
  const first = await json<FileList>(`api/files?limit=${PAGE}`, signal);
  while (first.files.length < first.total) {
    const next = await json<FileList>(`api/files?limit=${PAGE}&offset=${first.files.length}`, signal);
    if (next.files.length === 0) {
      break;
    }
    first.files.push(...next.files);
  }
  return first;
}

