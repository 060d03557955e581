// The answers of the server, as far as the page uses them.

export type Format = "tet" | "tgm" | "tatami" | "collection";

export interface Span {
  start: number;
  end: number;
}

export interface ErrorBody {
  error: string;
  code?: string;
  hint?: string | null;
  at?: { parameter: string; start: number; end: number } | null;
}

export interface Info {
  name: string;
  version: string;
  mode: "directory" | "file";
  root: string;
  file: string | null;
  generation: string;
  files: number;
  formats: Partial<Record<Format, number>>;
  search: { segments: number; documents: number; facets?: string[]; sorts?: string[] } | null;
  limits: { max_k: number; max_rows: number; max_values: number; max_document_bytes?: number };
  token_required: boolean;
  colormaps?: string[];
}

export interface FileEntry {
  id: string;
  path: string;
  name: string;
  directory: string;
  format: Format;
  size: number;
  modified: string | null;
  version: string;
  summary: string | null;
  searchable: boolean;
  documents: number | null;
  collection: string | null;
  problem: string | null;
}

export interface FileList {
  root: string;
  generation: string;
  total: number;
  offset: number;
  files: FileEntry[];
  skipped: number;
}

export interface OutlineNode {
  name: string;
  span: Span;
  value?: unknown;
  parts?: OutlineNode[];
}

export type ChecksumState = "ok" | "damaged" | "unverified" | "unprotected" | "missing";

export interface Outline {
  file_len: number;
  outline: OutlineNode;
  states: (Span & { state: ChecksumState })[];
}

export interface Finding {
  check: string;
  severity: "info" | "warning" | "error";
  ok: boolean;
  site?: { region?: string; span?: Span };
  detail?: string;
}

export interface Verification {
  deep: boolean;
  took_ms: number;
  report: { ok: boolean; file_len: number; findings: Finding[] };
}

export type Attributes = Record<string, unknown>;

export interface Axis {
  name: string | null;
  index: number;
  size: number;
  coordinates: "labels" | "dataset" | null;
  kind: "numbers" | "times" | "strings" | null;
  units: string | null;
  first: unknown;
  last: unknown;
  standard?: "lat" | "lon" | "time" | "vertical" | null;
}

export interface Dataset {
  name: string;
  dtype: string | null;
  shape: number[];
  chunk_shape: number[];
  chunk_counts: number[];
  chunks: number | null;
  raw_bytes: number | null;
  stored_bytes: number | null;
  attrs: Attributes;
  units: string | null;
  long_name: string | null;
  encoding: Attributes | null;
  axes: Axis[];
  map: { lat: number; lon: number } | null;
  is_coordinate: boolean;
  problem: string | null;
}

export interface TetFile {
  id: string;
  path: string;
  version: string;
  file_len: number;
  protection: string;
  attrs: Attributes;
  history: { time: string | null; op: string; source?: string | null; params?: unknown }[];
  datasets: Dataset[];
}

export interface Coordinates {
  axis: string | null;
  index: number;
  size: number;
  kind: "numbers" | "times" | "strings" | null;
  units: string | null;
  offset: number;
  values: (number | string | null)[];
  epoch_seconds?: (number | null)[] | null;
}

export interface ArrayJson {
  dims: string[];
  shape: number[];
  dtype: string;
  units: string | null;
  values: unknown;
  coords?: Record<string, unknown>;
}

/** The header `Tercet-Array`. */
export interface PlaneHeader {
  dims: string[];
  shape: number[];
  selected: number[];
  units: string | null;
  count: number;
  missing: number;
  infinite: number;
  min: number | null;
  max: number | null;
  p2: number | null;
  p98: number | null;
  exact: boolean;
}

export interface ChunkTable {
  dataset: string;
  chunk_shape: number[];
  counts: number[];
  total: number;
  listed: number;
  offset: number;
  number: number[];
  coords: number[][];
  offset_bytes: (number | null)[];
  stored_bytes: (number | null)[];
  raw_bytes: (number | null)[];
  codec: (string | null)[];
  state: ChecksumState[];
  min: (number | null)[];
  max: (number | null)[];
  missing: (number | null)[];
  errors: (string | null)[];
}

export interface ObjectRow {
  object: number;
  name: string | null;
  dtype: string;
  shape: number[];
  encoding: string;
  stored_bytes: number;
  raw_bytes: number | null;
  metadata: Attributes;
  units?: string | null;
  hash?: string | null;
  state?: ChecksumState;
  /** The names of the axes, and the objects with their coordinates. */
  dims?: (string | null)[];
  coords?: ({ message: number; object: number; units: string | null } | null)[];
  descriptor?: Attributes;
  map?: { lat: number; lon: number } | null;
}

export interface MessageRow {
  message: number;
  offset: number;
  length: number;
  metadata: Attributes;
  objects: ObjectRow[];
  problem: string | null;
}

export interface MessageList {
  id: string;
  path: string;
  version: string;
  file_len: number;
  total: number;
  matched: number | null;
  offset: number;
  keys: string[];
  messages: MessageRow[];
  gaps: { span: Span; kind: string; problem?: string }[];
  cut_tail: unknown;
}

export interface Message {
  message: number;
  offset: number;
  length: number;
  version: number;
  metadata: Attributes;
  objects: ObjectRow[];
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
  raw_bytes: number | null;
  stored_bytes: number | null;
  encodings: string[];
}

export interface TableFile {
  id: string;
  path: string;
  version: string;
  file_len: number;
  format: string;
  rows: number;
  role: string;
  sorted_by: string | null;
  searchable: boolean;
  columns: Column[];
  metadata: Record<string, unknown>;
  groups: number | null;
  members: { id: string; path: string; rows: number | null }[] | null;
}

export interface Rows {
  columns: { name: string; type: string; logical_type: string | null }[];
  offset: number;
  limit: number;
  total: number;
  matched: number | null;
  rows: unknown[][];
  cut?: [number, number][];
  took_ms: number;
}

export interface ColumnStats {
  column: string;
  type: string;
  rows: number;
  nulls: number;
  distinct: number | null;
  min: unknown;
  max: unknown;
  mean: number | null;
  sum: number | null;
  top: { value: unknown; count: number }[] | null;
  histogram: { edges: number[]; counts: number[] } | null;
  took_ms: number;
}

export type Mark = [number, number];

export interface Marked {
  text: string;
  marks: Mark[];
}

export interface SearchResult {
  doc_id: string;
  file: { id: string; path: string };
  document: number;
  url: string;
  title: string;
  score: number | null;
  snippet: Marked | null;
}

export interface SearchAnswer {
  query: string;
  offset: number;
  limit: number;
  matches: number;
  matches_exact: boolean;
  documents: number;
  segments: number;
  took_ms: number;
  timing?: Record<string, number>;
  notes: string[];
  results: SearchResult[];
  facets?: { field: string; values: { value: unknown; count: number }[]; more: number; missing?: number }[];
}

export interface Suggestions {
  query: string;
  prefix: string;
  suggestions: { text: string; term: string; documents: number }[];
}

export interface Document {
  doc_id: string;
  file: { id: string; path: string };
  document: number;
  url: string;
  title: Marked | null;
  body: (Marked & { truncated: boolean }) | null;
  body_is_snippet: boolean;
  fields: { name: string; type: string; value: unknown }[];
  hits: number;
}
