// The files below the served directory: tree, list, and the page of one file.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Loaded } from "../lib/api";
import { ago, bytes, count, plural } from "../lib/format";
import { href, useRoute } from "../lib/router";
import type { FileEntry, FileList, Info } from "../lib/types";
import { Badge, Empty, Problem, Skeleton, type Tab, Tabs } from "../ui/common";
import { Icon } from "../ui/icons";
import { ArraysView } from "./arrays";
import { BytesView } from "./bytes";
import { InfoView } from "./info";
import { MessagesView } from "./messages";
import { TableView } from "./table";

export function FilesView({ info, list }: { info: Info | null; list: Loaded<FileList> & { reload: () => void } }) {
  const { parts, params } = useRoute();
  const id = parts[0] === "file" ? (parts[1] ?? null) : null;
  const files = list.data?.files ?? null;
  const file = files?.find((entry) => entry.id === id) ?? null;
  const [drawer, setDrawer] = useState(false);
  useEffect(() => setDrawer(false), [id, parts[2]]);

  useEffect(() => {
    document.title = `${parts[2] ?? file?.path ?? info?.root ?? "Files"} · Tercet`;
  }, [file?.path, parts[2], info?.root]);

  return (
    <div class={`browse ${drawer ? "drawer-open" : ""}`}>
      {info?.mode !== "file" && (
        <>
          <button type="button" class="button drawer-button" aria-expanded={drawer} aria-controls="file-tree" onClick={() => setDrawer(!drawer)}>
            <Icon name="menu" /> {file === null ? "Files" : file.path}
          </button>
          <aside class="sidebar" id="file-tree" aria-label="Files">
            <FileTree files={files} current={id} filter={params.get("find") ?? ""} />
          </aside>
        </>
      )}
      <div class="content">
        {id === null ? (
          <Overview info={info} list={list} filter={params.get("find") ?? ""} />
        ) : file !== null ? (
          <FilePage key={file.id} file={file} single={info?.mode === "file"} />
        ) : list.error !== null ? (
          <Problem error={list.error} retry={list.reload} />
        ) : files === null ? (
          <Skeleton lines={8} />
        ) : (
          <Empty icon="folder" title="This file is gone">
            <p class="muted">It was renamed, removed or replaced by something else.</p>
            <a class="button" href={href(["files"])}>
              All files
            </a>
          </Empty>
        )}
      </div>
    </div>
  );
}

interface Node {
  name: string;
  path: string;
  directories: Map<string, Node>;
  files: FileEntry[];
}

function treeOf(files: FileEntry[]): Node {
  const root: Node = { name: "", path: "", directories: new Map(), files: [] };
  for (const file of files) {
    let node = root;
    const parts = file.path.split("/");
    for (const part of parts.slice(0, -1)) {
      let next = node.directories.get(part);
      if (next === undefined) {
        next = { name: part, path: node.path === "" ? part : `${node.path}/${part}`, directories: new Map(), files: [] };
        node.directories.set(part, next);
      }
      node = next;
    }
    node.files.push(file);
  }
  return root;
}

function FileTree({ files, current, filter }: { files: FileEntry[] | null; current: string | null; filter: string }) {
  const [text, setText] = useState(filter);
  const wanted = text.trim().toLowerCase();
  const shown = useMemo(() => (files ?? []).filter((file) => file.path.toLowerCase().includes(wanted)), [files, wanted]);
  const tree = useMemo(() => treeOf(shown), [shown]);
  const list = useRef<HTMLDivElement>(null);
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") {
      return;
    }
    const items = [...(list.current?.querySelectorAll<HTMLElement>("a, summary") ?? [])].filter((item) => item.offsetParent !== null);
    const at = items.indexOf(document.activeElement as HTMLElement);
    const next = items[at + (event.key === "ArrowDown" ? 1 : -1)];
    if (next !== undefined) {
      event.preventDefault();
      next.focus();
    }
  };
  return (
    <div onKeyDown={onKey}>
      <div class="tree-filter">
        <Icon name="search" />
        <input data-slash type="search" class="input" placeholder="Filter files" aria-label="Filter files" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </div>
      <div class="tree" ref={list}>
        {files === null ? <Skeleton lines={8} /> : shown.length === 0 ? <p class="muted tree-empty">{files.length === 0 ? "No files." : "No file matches."}</p> : <TreeLevel node={tree} current={current} open={wanted !== ""} />}
      </div>
    </div>
  );
}

function TreeLevel({ node, current, open }: { node: Node; current: string | null; open: boolean }) {
  return (
    <ul>
      {[...node.directories.values()].map((directory) => (
        <li key={directory.path}>
          <details open={open || directory.directories.size + directory.files.length < 40}>
            <summary class="tree-directory">
              <Icon name="chevron" size={12} />
              {directory.name}
            </summary>
            <TreeLevel node={directory} current={current} open={open} />
          </details>
        </li>
      ))}
      {node.files.map((file) => (
        <li key={file.id}>
          <a class="tree-file" href={href(["file", file.id])} aria-current={file.id === current ? "page" : undefined} title={file.path}>
            <Badge format={file.format} />
            <span class="tree-name">{file.name}</span>
            {file.problem !== null && (
              <span class="tree-problem" title={file.problem}>
                <Icon name="warning" size={14} />
                <span class="visually-hidden">cannot be opened</span>
              </span>
            )}
          </a>
        </li>
      ))}
    </ul>
  );
}

function Overview({ info, list, filter }: { info: Info | null; list: Loaded<FileList> & { reload: () => void }; filter: string }) {
  const files = list.data?.files ?? null;
  const [format, setFormat] = useState("");
  const shown = (files ?? []).filter((file) => (format === "" || file.format === format) && file.path.includes(filter));
  const formats = [...new Set((files ?? []).map((file) => file.format))];
  const total = shown.reduce((sum, file) => sum + (file.format === "collection" ? 0 : file.size), 0);
  return (
    <div class="overview">
      <div class="page-head">
        <div>
          <h1>{info?.root ?? "Files"}</h1>
          <p class="muted">
            {files === null ? <>&nbsp;</> : `${plural(shown.length, "entry", "entries")}, ${bytes(total)}`}
            {(list.data?.skipped ?? 0) > 0 && `; ${count(list.data?.skipped)} not listed (links out of the directory, or unreadable)`}
          </p>
        </div>
        {formats.length > 1 && (
          <div class="segmented" role="group" aria-label="Format">
            {["", ...formats].map((name) => (
              <button key={name} type="button" aria-pressed={format === name} onClick={() => setFormat(name)}>
                {name === "" ? "All" : name}
              </button>
            ))}
          </div>
        )}
      </div>
      {list.error !== null && files === null ? (
        <Problem error={list.error} retry={list.reload} />
      ) : files === null ? (
        <Skeleton lines={8} />
      ) : files.length === 0 ? (
        <Empty icon="folder" title="No files here yet">
          <p class="muted">
            New <code>.tet</code>, <code>.tgm</code> and <code>.tatami</code> files appear by themselves. <code>tercet demo</code> writes some to try.
          </p>
        </Empty>
      ) : (
        <div class="table-frame card">
          <table class="file-table">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col" class="hide-narrow">Contents</th>
                <th scope="col" class="right">Size</th>
                <th scope="col" class="hide-narrow">Changed</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((file) => (
                <tr key={file.id}>
                  <td>
                    <a class="file-link" href={href(["file", file.id])}>
                      <Badge format={file.format} />
                      <span class="file-path">{file.path}</span>
                    </a>
                    {file.problem !== null && <p class="error-text small-text">{file.problem}</p>}
                  </td>
                  <td class="muted hide-narrow">{file.summary ?? ""}</td>
                  <td class="right tabular">{bytes(file.size)}</td>
                  <td class="muted hide-narrow" title={file.modified ?? ""}>
                    {ago(file.modified)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

const DATA_TAB: Record<string, { label: string; icon: Tab["icon"] }> = {
  tet: { label: "Arrays", icon: "grid" },
  tgm: { label: "Messages", icon: "list" },
  tatami: { label: "Table", icon: "table" },
  collection: { label: "Table", icon: "table" },
};

function FilePage({ file, single }: { file: FileEntry; single: boolean }) {
  const { parts, params } = useRoute();
  const isFile = file.format !== "collection";
  const tab = params.get("tab") ?? (file.problem !== null && isFile ? "bytes" : "data");
  const data = DATA_TAB[file.format] ?? { label: "Data", icon: "grid" as const };
  const link = (id: string) => href(["file", file.id, ...(id === "data" ? parts.slice(2, 3) : [])], { tab: id === "data" ? null : id });
  const tabs: Tab[] = [
    { id: "data", label: data.label, icon: data.icon, href: link("data") },
    { id: "info", label: "Info", icon: "info", href: link("info") },
    ...(isFile ? [{ id: "bytes", label: "Bytes", icon: "bytes" as const, href: link("bytes") }] : []),
  ];
  const directory = file.directory === "" ? "" : `${file.directory}/`;
  return (
    <article class="file-page">
      <header class="file-head">
        <div class="file-title">
          <Badge format={file.format} />
          <h1 title={file.path}>
            <span class="muted directory">{directory}</span>
            {file.name}
          </h1>
          <p class="muted file-facts">
            {bytes(file.size)}
            {file.summary && <> · {file.summary}</>}
            {" · "}
            <span title={file.modified ?? ""}>{ago(file.modified)}</span>
          </p>
        </div>
        <div class="file-actions">
          {isFile && (
            <a class="button small" href={`api/files/${file.id}/raw`} download={file.name}>
              <Icon name="download" /> Download
            </a>
          )}
          {file.searchable && !single && (
            <button type="button" class="button small" onClick={() => { location.hash = href(["search"], { "f.file": `s:${file.id}` }); }}>
              <Icon name="search" /> Search
            </button>
          )}
        </div>
        <Tabs tabs={tabs} current={tab} label="Views of this file" />
      </header>
      {file.problem !== null && (
        <div class="problem" role="alert">
          <Icon name="warning" size={20} />
          <div>
            <p class="problem-text">{file.problem}</p>
            <p class="muted">The byte layout and verification may still show what is left.</p>
          </div>
        </div>
      )}
      {tab === "bytes" && isFile ? (
        <BytesView file={file} />
      ) : tab === "info" ? (
        <InfoView file={file} />
      ) : file.problem !== null ? null : file.format === "tet" ? (
        <ArraysView file={file} />
      ) : file.format === "tgm" ? (
        <MessagesView file={file} />
      ) : (
        <TableView file={file} />
      )}
    </article>
  );
}

