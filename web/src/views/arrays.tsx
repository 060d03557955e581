// Arrays: datasets of a `.tet` file, the field of one, its chunks and attributes.

import { useMemo, useState } from "preact/hooks";
import { Field } from "../field/view";
import { type Source, datasetSource } from "../field/source";
import { json, path, useLoad } from "../lib/api";
import { bytes, count, plain, plural, shape, time } from "../lib/format";
import { applied, change, href, useRoute } from "../lib/router";
import type { Dataset, FileEntry, FileList, TetFile } from "../lib/types";
import { Attrs, Empty, Popover, Problem, Skeleton, Tabs } from "../ui/common";
import { ChunkMap } from "./chunks";

export function ArraysView({ file }: { file: FileEntry }) {
  const { parts, params } = useRoute();
  const url = path(["api", "tet", file.id]);
  const loaded = useLoad<TetFile>(`${url} ${file.version}`, (signal) => json(url, signal));
  const tet = loaded.data;
  const wanted = parts[2] ?? null;
  const dataset = tet === null ? null : (tet.datasets.find((item) => item.name === wanted) ?? (wanted === null ? preferred(tet.datasets) : null));

  if (loaded.error !== null && tet === null) {
    return <Problem error={loaded.error} retry={loaded.reload} />;
  }
  if (tet === null) {
    return <Skeleton lines={12} />;
  }
  if (tet.datasets.length === 0) {
    return (
      <Empty icon="grid" title="No datasets">
        <p class="muted">This file holds no arrays.</p>
      </Empty>
    );
  }
  return (
    <div class="arrays">
      <DatasetList file={file} datasets={tet.datasets} current={dataset?.name ?? null} />
      <div class="dataset">
        {dataset === null ? (
          <Empty icon="grid" title="No such dataset">
            <p class="muted">
              <code>{wanted}</code> is not in this file. Choose one from the list.
            </p>
          </Empty>
        ) : (
          <DatasetPage key={dataset.name} tet={tet} dataset={dataset} params={params} />
        )}
      </div>
    </div>
  );
}

/** The dataset shown first: the one with most axes and values. */
function preferred(datasets: Dataset[]): Dataset | null {
  const size = (dataset: Dataset) => (dataset.problem === null ? dataset.shape.length * 1e15 + dataset.shape.reduce((a, b) => a * b, 1) : -1);
  return datasets.toSorted((a, b) => size(b) - size(a))[0] ?? null;
}

function DatasetList({ file, datasets, current }: { file: FileEntry; datasets: Dataset[]; current: string | null }) {
  const [text, setText] = useState("");
  const shown = datasets.filter((dataset) => dataset.name.toLowerCase().includes(text.toLowerCase()));
  const groups = new Map<string, Dataset[]>();
  for (const dataset of shown) {
    const at = dataset.name.lastIndexOf("/");
    const group = at < 0 ? "" : dataset.name.slice(0, at);
    groups.set(group, [...(groups.get(group) ?? []), dataset]);
  }
  return (
    <nav class="dataset-list" aria-label="Datasets">
      {datasets.length > 12 && <input type="search" class="input" placeholder={`Filter ${datasets.length} datasets`} aria-label="Filter datasets" value={text} onInput={(event) => setText(event.currentTarget.value)} />}
      {[...groups].map(([group, members]) => (
        <div key={group}>
          {group !== "" && <h2 class="dataset-group">{group}/</h2>}
          <ul>
            {members.map((dataset) => (
              <li key={dataset.name}>
                <a class={`dataset-link ${dataset.is_coordinate ? "coordinate" : ""}`} href={href(["file", file.id, dataset.name])} aria-current={dataset.name === current ? "page" : undefined}>
                  <span class="dataset-name">{group === "" ? dataset.name : dataset.name.slice(group.length + 1)}</span>
                  <span class="muted dataset-shape">
                    {dataset.dtype} {shape(dataset.shape)}
                  </span>
                </a>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  );
}

function DatasetPage({ tet, dataset, params }: { tet: TetFile; dataset: Dataset; params: URLSearchParams }) {
  const part = params.get("part") ?? "view";
  const link = (id: string) => href(["file", tet.id, dataset.name], applied(params, { part: id === "view" ? null : id }));
  return (
    <>
      <div class="dataset-head">
        <h2>
          {dataset.name} {dataset.long_name && <span class="muted long-name">{dataset.long_name}</span>}
        </h2>
        <p class="facts">
          <span>{dataset.dtype}</span>
          <span>{dataset.axes.map((axis) => `${axis.name ?? `axis ${axis.index}`} ${count(axis.size)}`).join(" × ") || "scalar"}</span>
          {dataset.units && <span>{dataset.units}</span>}
          <span>
            {bytes(dataset.stored_bytes)}
            {dataset.raw_bytes !== null && dataset.stored_bytes !== null && dataset.raw_bytes > dataset.stored_bytes && <span class="muted"> of {bytes(dataset.raw_bytes)}</span>}
          </span>
        </p>
        <Tabs
          label="Views of this dataset"
          current={part}
          tabs={[
            { id: "view", label: "View", icon: "chart", href: link("view") },
            { id: "chunks", label: dataset.chunks === null ? "Chunks" : plural(dataset.chunks, "chunk"), icon: "grid", href: link("chunks") },
            { id: "attributes", label: "Attributes", icon: "list", href: link("attributes") },
          ]}
        />
      </div>
      {dataset.problem !== null ? (
        <Problem error={{ message: dataset.problem, hint: "The bytes view shows which regions are damaged.", code: "corrupt" } as never} />
      ) : part === "chunks" ? (
        <ChunkMap tet={tet} dataset={dataset} />
      ) : part === "attributes" ? (
        <Attributes tet={tet} dataset={dataset} />
      ) : (
        <DatasetField tet={tet} dataset={dataset} compare={params.get("minus")} />
      )}
    </>
  );
}

function DatasetField({ tet, dataset, compare }: { tet: TetFile; dataset: Dataset; compare: string | null }) {
  const source = useMemo(() => datasetSource(tet, dataset), [tet, dataset]);
  const [otherId, otherName] = compare === null ? [null, null] : [compare.slice(0, compare.indexOf("/")), compare.slice(compare.indexOf("/") + 1)];
  const url = otherId === null ? null : path(["api", "tet", otherId]);
  const loaded = useLoad<TetFile>(url, (signal) => (otherId === tet.id ? Promise.resolve(tet) : json(url ?? "", signal)));
  const found = otherId === null ? null : (loaded.data?.datasets.find((item) => item.name === otherName) ?? null);
  const fits = found !== null && sameShape(found, dataset);
  const other: Source | null = useMemo(() => {
    if (loaded.data === null || found === null || !fits) {
      return null;
    }
    const made = datasetSource(loaded.data, found);
    return { ...made, title: otherId === tet.id ? made.title : `${loaded.data.path}:${made.title}` };
  }, [loaded.data, found, fits]);
  return (
    <>
      {compare !== null && loaded.error !== null && <Problem error={loaded.error} />}
      {compare !== null && loaded.data !== null && !fits && (
        <p class="note" role="status">
          {found === null ? `No dataset ${otherName} in ${loaded.data.path}.` : `${otherName} is ${shape(found.shape)}, not ${shape(dataset.shape)}: no difference is shown.`}
        </p>
      )}
      <Field source={source} other={other} tools={dataset.shape.length > 1 && <CompareMenu tet={tet} dataset={dataset} compare={compare} />} />
    </>
  );
}

const sameShape = (a: Dataset, b: Dataset) => a.shape.length === b.shape.length && a.shape.every((size, i) => size === b.shape[i]);

function CompareMenu({ tet, dataset, compare }: { tet: TetFile; dataset: Dataset; compare: string | null }) {
  return (
    <Popover label={compare === null ? "Compare" : "Difference"} icon="diff" title="Difference of two datasets">
      {(close) => <CompareForm tet={tet} dataset={dataset} compare={compare} close={close} />}
    </Popover>
  );
}

function CompareForm({ tet, dataset, compare, close }: { tet: TetFile; dataset: Dataset; compare: string | null; close: () => void }) {
  const [fileId, setFileId] = useState(compare === null ? tet.id : compare.slice(0, compare.indexOf("/")));
  const files = useLoad<FileList>("tet files", (signal) => json(path(["api", "files"], { format: "tet", limit: 1000 }), signal));
  const url = path(["api", "tet", fileId]);
  const chosen = useLoad<TetFile>(url, (signal) => (fileId === tet.id ? Promise.resolve(tet) : json(url, signal)), { fresh: true });
  const fitting = (chosen.data?.datasets ?? []).filter((item) => sameShape(item, dataset) && !(fileId === tet.id && item.name === dataset.name));
  const current = compare?.startsWith(`${fileId}/`) ? compare.slice(fileId.length + 1) : "";
  return (
    <div class="form-grid">
      <p class="wide">
        {dataset.name} minus a dataset of the same shape, at the same positions.
      </p>
      <label for="compare-file">File</label>
      <select id="compare-file" class="select" value={fileId} onChange={(event) => setFileId(event.currentTarget.value)}>
        {(files.data?.files ?? [{ id: tet.id, path: tet.path }]).map((file) => (
          <option key={file.id} value={file.id}>
            {file.path}
          </option>
        ))}
      </select>
      <label for="compare-dataset">Dataset</label>
      <select
        id="compare-dataset"
        class="select"
        value={current}
        disabled={fitting.length === 0}
        onChange={(event) => {
          change({ minus: event.currentTarget.value === "" ? null : `${fileId}/${event.currentTarget.value}`, range: null });
          close();
        }}
      >
        <option value="">{chosen.loading ? "…" : fitting.length === 0 ? "none of this shape" : "choose"}</option>
        {fitting.map((item) => (
          <option key={item.name}>{item.name}</option>
        ))}
      </select>
      {compare !== null && (
        <button
          type="button"
          class="button small wide"
          onClick={() => {
            change({ minus: null });
            close();
          }}
        >
          Show {dataset.name} alone
        </button>
      )}
    </div>
  );
}

function Attributes({ tet, dataset }: { tet: TetFile; dataset: Dataset }) {
  return (
    <div class="columns">
      <section class="card padded">
        <h3>{dataset.name}</h3>
        <Attrs attrs={dataset.attrs} />
        {dataset.encoding && Object.keys(dataset.encoding).length > 0 && (
          <>
            <h3>Packing</h3>
            <Attrs attrs={dataset.encoding} />
          </>
        )}
        <h3>Axes</h3>
        <div class="table-frame">
          <table class="plain-table">
            <thead>
              <tr>
                <th scope="col">Axis</th>
                <th scope="col" class="right">Size</th>
                <th scope="col">From</th>
                <th scope="col">To</th>
                <th scope="col">Coordinates</th>
              </tr>
            </thead>
            <tbody>
              {dataset.axes.map((axis) => (
                <tr key={axis.index}>
                  <td>{axis.name ?? axis.index}</td>
                  <td class="right tabular">{count(axis.size)}</td>
                  <td>{typeof axis.first === "string" ? time(axis.first) : plain(axis.first)}</td>
                  <td>{typeof axis.last === "string" ? time(axis.last) : plain(axis.last)}</td>
                  <td class="muted">{axis.coordinates === null ? "none" : `${axis.coordinates}${axis.units ? `, ${axis.units}` : ""}`}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
      <section class="card padded">
        <h3>{tet.path}</h3>
        <Attrs attrs={tet.attrs} empty="No attributes of the file." />
        <h3>History</h3>
        {tet.history.length === 0 ? (
          <p class="muted">No history.</p>
        ) : (
          <ol class="history">
            {tet.history.map((row, i) => (
              <li key={i}>
                <strong>{row.op}</strong> <span class="muted">{row.time === null ? "" : time(row.time)}</span>
                {row.source && <div class="small-text">{row.source}</div>}
              </li>
            ))}
          </ol>
        )}
      </section>
    </div>
  );
}

