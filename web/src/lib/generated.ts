// The responses of the server: written by types.mjs from openapi.json.

/** The part of a parameter that an error is about, in UTF-16 code units. */
export interface At {
  parameter: string;
  start: number;
  end: number;
}

export interface Axis {
  name: string | null;
  index: number;
  size: number;
  /** Where the coordinates are. */
  coordinates: "labels" | "dataset" | null;
  kind: "numbers" | "times" | "strings" | null;
  units: string | null;
  /** What the axis is by the CF conventions. */
  standard: "lat" | "lon" | "time" | "vertical" | null;
  first: unknown;
  last: unknown;
}

export interface AxisObject {
  message: number;
  object: number;
  units: string | null;
}

export interface ChunkTable {
  dataset: string;
  chunk_shape: number[];
  counts: number[];
  /** The number of chunks of the dataset. */
  total: number;
  /** The number of chunks that match. */
  listed: number;
  offset: number;
  number: number[];
  coords: number[][];
  offset_bytes: (number | null)[];
  stored_bytes: (number | null)[];
  raw_bytes: number[];
  codec: (string | null)[];
  state: ("ok" | "unverified" | "damaged" | "unprotected" | "missing")[];
  min: (number | null)[];
  max: (number | null)[];
  missing: (number | null)[];
  errors: (string | null)[];
}

export interface Column {
  name: string;
  type: string;
  logical_type: string | null;
  nullable: boolean;
  nulls: number | null;
  distinct: number | null;
  min: unknown;
  max: unknown;
  raw_bytes: number;
  stored_bytes: number;
  encodings: string[];
}

export interface ColumnStats {
  column: string;
  type: string;
  logical_type: string | null;
  rows: number;
  nulls: number;
  distinct: number | null;
  min: unknown;
  max: unknown;
  mean: number | null;
  sum: unknown;
  top: ValueCount[] | null;
  histogram: Histogram | null;
  took_ms: number | null;
}

export interface Coordinates {
  axis: string;
  index: number;
  size: number;
  kind: "numbers" | "times" | "strings" | null;
  source: "labels" | "dataset" | null;
  units: string | null;
  offset: number;
  values: unknown[];
  epoch_seconds: number[] | null;
}

export interface Dataset {
  name: string;
  dtype: string | null;
  shape: number[];
  chunk_shape: number[];
  /** The number of chunks on each axis. */
  chunk_counts: number[];
  chunks: number | null;
  raw_bytes: number | null;
  stored_bytes: number | null;
  attrs: Record<string, string>;
  units: string | null;
  long_name: string | null;
  encoding: unknown;
  packed: boolean;
  fill: number | null;
  axes: Axis[];
  /** The axes of latitudes and longitudes. */
  map: MapAxes | null;
  is_coordinate: boolean;
  problem: string | null;
}

export interface Document {
  doc_id: string;
  file: FileRef;
  document: number;
  url: string;
  title: Marked;
  body: DocumentBody | null;
  body_is_snippet: boolean;
  fields: DocumentField[];
  hits: number;
}

/** A text with its matches. */
export interface DocumentBody {
  text: string;
  /** Ranges of the text in UTF-16 code units, in order. */
  marks: [number, number][];
  /** The text for HTML: escaped, then marked. */
  html: string;
  truncated: boolean;
}

export interface DocumentField {
  name: string;
  type: string;
  value: unknown;
}

/** What an entry is. */
export type EntryKind = "tet" | "tgm" | "tatami" | "collection";

/** The body of an error. */
export interface Error {
  /** The error, as a sentence. */
  error: string;
  /** Its kind. */
  code: string;
  /** What to do about it. */
  hint: string | null;
  /** The part of the parameter that it is about. */
  at: At | null;
  /** The ID of the request, as in the log. */
  request_id: string;
}

export interface Facet {
  field: string;
  values: FacetValue[];
  /** The number of further distinct values. */
  more: number;
  /** The number of documents without a value. */
  missing: number;
}

export interface FacetValue {
  value: unknown;
  count: number;
}

/** A listed file or collection. */
export interface FileEntry {
  id: string;
  path: string;
  name: string;
  directory: string;
  format: EntryKind;
  size: number;
  modified: string | null;
  version: string;
  summary: string | null;
  searchable: boolean;
  documents: number | null;
  /** The ID of the collection that the file is a member of. */
  collection: string | null;
  /** Why the file cannot be opened. */
  problem: string | null;
}

export interface FileList {
  root: string;
  generation: string;
  /** The number of entries that match. */
  total: number;
  offset: number;
  files: FileEntry[];
  /** Files that look like ours and are not listed. */
  skipped: number;
}

export interface FileRef {
  id: string;
  path: string;
}

export interface Histogram {
  edges: number[];
  counts: number[];
}

/** What is served. */
export interface Info {
  name: string;
  version: string;
  mode: "directory" | "file";
  /** The name of the served directory. */
  root: string;
  /** The ID of the only file. */
  file: string | null;
  /** Differs if the list of files differs. */
  generation: string;
  files: number;
  /** The number of files of each format. */
  formats: Record<string, number>;
  search: SearchInfo;
  limits: LimitsInfo;
  token_required: boolean;
  arrow: boolean;
  colormaps: string[];
}

export interface LimitsInfo {
  max_k: number;
  default_k: number;
  timeout_ms: number;
  max_rows: number;
  max_values: number;
  max_query_terms: number;
  max_in_flight: number;
  max_document_bytes: number;
}

export interface MapAxes {
  lat: number;
  lon: number;
}

/** A text with its matches. */
export interface Marked {
  text: string;
  /** Ranges of the text in UTF-16 code units, in order. */
  marks: [number, number][];
  /** The text for HTML: escaped, then marked. */
  html: string;
}

export interface Member {
  id: string | null;
  path: string;
  rows: number;
}

export interface Message {
  message: number;
  offset: number;
  length: number;
  version: number;
  metadata: unknown;
  objects: MessageObject[];
}

export interface MessageList {
  id: string;
  path: string;
  version: string;
  file_len: number;
  /** The number of messages. */
  total: number;
  /** The number of matching messages, if it is known. */
  matched: number | null;
  offset: number;
  /** Metadata keys of the listed messages whose values vary. */
  keys: string[];
  messages: MessageRow[];
  gaps: unknown[];
  cut_tail: string | null;
}

export interface MessageObject {
  object: number;
  name: string | null;
  dtype: string;
  shape: number[];
  encoding: string;
  stored_bytes: number;
  raw_bytes: number | null;
  metadata: Record<string, unknown>;
  descriptor: unknown;
  hash: string | null;
  state: "ok" | "unverified" | "damaged" | "unprotected" | "missing";
  units: string | null;
  /** The names of the axes, as far as the metadata or coordinates name them. */
  dims: (string | null)[];
  /** The objects with the coordinates of the axes. */
  coords: (AxisObject | null)[];
  /** The axes of latitudes and longitudes. */
  map: MapAxes | null;
}

export interface MessageRow {
  message: number;
  offset: number;
  length: number;
  metadata: Record<string, unknown>;
  objects: ObjectRow[];
  problem: string | null;
}

export interface ObjectRow {
  object: number;
  name: string | null;
  dtype: string;
  shape: number[];
  encoding: string;
  stored_bytes: number;
  raw_bytes: number | null;
  metadata: Record<string, unknown>;
}

export interface ObjectValues {
  name: string | null;
  dims: string[];
  shape: number[];
  dtype: string;
  units: string | null;
  values: unknown;
}

export interface Outline {
  id: string;
  path: string;
  file_len: number;
  /** A tree of `{name, span: {start, end}, value?, parts?}`. */
  outline: unknown;
  /** Byte ranges whose checksums are known to match or not. */
  states: RangeState[];
}

export interface RangeState {
  start: number;
  end: number;
  state: "ok" | "unverified" | "damaged" | "unprotected" | "missing";
}

export interface ReferenceHit {
  doc_id: string;
  url: string;
  title: string;
  snippet?: string;
  score: number | null;
}

/** The results of a search. */
export interface ReferenceSearch {
  query: string;
  k: number;
  /** The number of results. */
  total: number;
  took_ms: number | null;
  stats: ReferenceVisited;
  results: ReferenceHit[];
}

export interface ReferenceVisited {
  candidates: number;
  visited: number;
  threshold: number | null;
}

export interface RowColumn {
  name: string;
  type: string;
  logical_type: string | null;
}

export interface Rows {
  columns: RowColumn[];
  offset: number;
  limit: number;
  /** The number of rows of the file. */
  total: number;
  /** The number of matching rows, if it is known. */
  matched: number | null;
  rows: unknown[][];
  /** Row and column of strings that are cut. */
  cut: [number, number][];
  took_ms: number | null;
}

export interface SearchAnswer {
  query: string;
  offset: number;
  limit: number;
  /** The number of matching documents. */
  matches: number;
  /** Whether it is exact; otherwise a lower bound. */
  matches_exact: boolean;
  documents: number;
  segments: number;
  took_ms: number | null;
  timing: SearchTiming;
  /** Sentences about the query. */
  notes: string[];
  results: SearchResult[];
  facets?: Facet[] | null;
}

export interface SearchInfo {
  segments: number;
  documents: number;
  /** Columns that `facets` can count. */
  facets: string[];
  /** What `sort` can be. */
  sorts: string[];
}

export interface SearchResult {
  doc_id: string;
  file: FileRef;
  document: number;
  url: string;
  title: string;
  /** None if the documents are sorted by a column. */
  score: number | null;
  snippet: Marked | null;
}

export interface SearchTiming {
  open_ms: number | null;
  search_ms: number | null;
  count_ms: number | null;
  fetch_ms: number | null;
  highlight_ms: number | null;
}

export interface ServerStats {
  shards: number;
  docs: number;
  cache_len: number;
  max_in_flight: number;
  in_flight: number;
  total: number;
  rejected: number;
  timed_out: number;
  canceled: number;
  failed: number;
}

export interface Suggestion {
  text: string;
  term: string;
  documents: number;
}

export interface Suggestions {
  query: string;
  prefix: string;
  suggestions: Suggestion[];
}

export interface Summary {
  id: string;
  path: string;
  format: EntryKind;
  file_len: number;
  /** As the format defines it. */
  summary: unknown;
}

export interface TableFile {
  id: string;
  path: string;
  version: string;
  file_len: number;
  format: EntryKind;
  rows: number;
  role: string;
  sorted_by: string | null;
  searchable: boolean;
  columns: Column[];
  metadata: [string, string][];
  groups: number;
  members: Member[] | null;
}

export interface TetFile {
  id: string;
  path: string;
  version: string;
  file_len: number;
  /** `checked`, `partial`, `absent`, `unknown` or `ignored`. */
  protection: string;
  attrs: Record<string, unknown>;
  history: unknown;
  datasets: Dataset[];
}

export interface ValueCount {
  value: unknown;
  count: number;
}

export interface Verification {
  id: string;
  path: string;
  deep: boolean;
  took_ms: number | null;
  /** `{ok, path, file_len, findings: [{check, severity, ok, site?, detail?}], …}`. */
  report: unknown;
}
