// The responses of the server, as far as the page uses them. What the server describes as any JSON has more exact types here.

import type * as Server from "./generated";

/** A response with other types of some of its properties. */
type Refined<T, R extends { [K in keyof R]: K extends keyof T ? unknown : never }> = Omit<T, keyof R> & R;

export type Format = Server.EntryKind;
export type { Axis, ChunkTable, Column, FileEntry, FileList, Info, Suggestions } from "./generated";

export interface Span {
  start: number;
  end: number;
}

/** The body of an error; a proxy may answer with another one. */
export type ErrorBody = Pick<Server.Error, "error"> & Partial<Server.Error>;

export type ChecksumState = Server.RangeState["state"];

export interface OutlineNode {
  name: string;
  span: Span;
  value?: unknown;
  parts?: OutlineNode[];
}

export type Outline = Refined<Server.Outline, { outline: OutlineNode }>;

export interface Finding {
  check: string;
  severity: "info" | "warning" | "error";
  ok: boolean;
  site?: { region?: string; span?: Span };
  detail?: string;
}

export type Verification = Refined<Server.Verification, { took_ms: number; report: { ok: boolean; file_len: number; findings: Finding[] } }>;

export type Attributes = Record<string, unknown>;

export type Dataset = Refined<Server.Dataset, { encoding: Attributes | null }>;

export type TetFile = Refined<Server.TetFile, { history: { time: string | null; op: string; source?: string | null; params?: unknown }[]; datasets: Dataset[] }>;

export type Coordinates = Refined<Server.Coordinates, { values: (number | string | null)[] }>;

/** Values as JSON, of a dataset or an object. */
export type ArrayJson = Omit<Server.ObjectValues, "name"> & { coords?: Record<string, unknown> };

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

/** An object in the list of messages, or of one message: then with all that is known about it. */
export type ObjectRow = Server.ObjectRow & Partial<Refined<Omit<Server.MessageObject, keyof Server.ObjectRow>, { descriptor: Attributes }>>;

export type MessageRow = Refined<Server.MessageRow, { objects: ObjectRow[] }>;

export type MessageList = Refined<Server.MessageList, { messages: MessageRow[]; gaps: { span: Span; kind: string; problem?: string }[] }>;

export type Message = Refined<Server.Message, { metadata: Attributes; objects: ObjectRow[] }>;

export type TableFile = Server.TableFile;

export type Rows = Refined<Server.Rows, { took_ms: number }>;

export type ColumnStats = Refined<Server.ColumnStats, { took_ms: number }>;

export type Mark = Marked["marks"][number];

export type Marked = Pick<Server.Marked, "text" | "marks">;

export type SearchResult = Server.SearchResult;

export type SearchAnswer = Refined<Server.SearchAnswer, { took_ms: number }>;

export type Document = Server.Document;
