// Requests to the server.

import { useEffect, useRef, useState } from "preact/hooks";
import type { ErrorBody, PlaneHeader } from "./types";

/** A failed request: what the server says, or why there was no answer. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string | null = null,
    readonly at: { parameter: string; start: number; end: number } | null = null,
  ) {
    super(message);
  }
}

export type Query = Record<string, string | number | boolean | null | undefined | (string | number)[]>;

/** A relative URL (the page may be below a prefix of a proxy) with encoded segments and parameters; null and undefined values are omitted. */
export function path(segments: (string | number)[], query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== null && item !== undefined) {
        search.append(key, String(item));
      }
    }
  }
  const text = search.toString();
  return `${segments.map((segment) => encodeURIComponent(segment)).join("/")}${text === "" ? "" : `?${text}`}`;
}

let onUnauthorized: () => void = () => {};

/** What to do when the server asks for a token. */
export function whenUnauthorized(action: () => void): void {
  onUnauthorized = action;
}

const RETRIES = 3;

function pause(milliseconds: number, signal: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

/** Sends a request. Overload is retried after the delay that the server names. */
export async function request(url: string, init: RequestInit = {}): Promise<Response> {
  for (let attempt = 0; ; attempt++) {
    let response: Response;
    try {
      response = await fetch(url, init);
    } catch (error) {
      if (init.signal?.aborted) {
        throw error;
      }
      throw new ApiError(0, "offline", "The server does not answer.", "Is `tercet serve` still running?");
    }
    if (response.ok) {
      return response;
    }
    if (response.status === 503 && attempt < RETRIES) {
      const seconds = Number(response.headers.get("Retry-After") ?? "1");
      await pause((Number.isFinite(seconds) ? Math.min(seconds, 5) : 1) * 1000 * (1 + Math.random() / 2), init.signal ?? null);
      continue;
    }
    const failure = await errorOf(response);
    if (response.status === 401) {
      onUnauthorized();
    }
    throw failure;
  }
}

async function errorOf(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => "");
  try {
    const body = JSON.parse(text) as ErrorBody;
    if (typeof body.error === "string") {
      return new ApiError(response.status, body.code ?? "error", body.error, body.hint ?? null, body.at ?? null);
    }
  } catch {
    // Not JSON: the status says enough.
  }
  return new ApiError(response.status, "error", text.trim().slice(0, 200) || `HTTP status ${response.status}`);
}

export async function json<T>(url: string, signal?: AbortSignal): Promise<T> {
  const response = await request(url, { signal: signal ?? null, headers: { Accept: "application/json" } });
  return (await response.json()) as T;
}

/** A plane of values with its header. */
export async function plane(url: string, signal?: AbortSignal): Promise<{ header: PlaneHeader; values: Float32Array }> {
  const response = await request(url, { signal: signal ?? null });
  const header = JSON.parse(response.headers.get("Tercet-Array") ?? "{}") as PlaneHeader;
  const bytes = await response.arrayBuffer();
  const count = header.shape.reduce((a, b) => a * b, 1);
  if (bytes.byteLength !== 4 * count) {
    throw new ApiError(0, "malformed", `The server sent ${bytes.byteLength} bytes for ${count} values.`);
  }
  return { header, values: littleEndian(bytes) };
}

function littleEndian(bytes: ArrayBuffer): Float32Array {
  if (new Uint8Array(new Uint32Array([1]).buffer)[0] === 1) {
    return new Float32Array(bytes);
  }
  const view = new DataView(bytes);
  return Float32Array.from({ length: bytes.byteLength / 4 }, (_, i) => view.getFloat32(4 * i, true));
}

export async function rawBytes(id: string, start: number, end: number, signal?: AbortSignal): Promise<Uint8Array> {
  if (end <= start) {
    return new Uint8Array();
  }
  const response = await request(path(["api", "files", id, "raw"]), {
    signal: signal ?? null,
    headers: { Range: `bytes=${start}-${end - 1}` },
  });
  const bytes = new Uint8Array(await response.arrayBuffer());
  return response.status === 206 ? bytes : bytes.slice(start, end);
}

export interface Loaded<T> {
  data: T | null;
  error: ApiError | null;
  loading: boolean;
}

/**
 * Data of a key. While a new key loads, the data of the old one stays, so that the page does not jump; `fresh` empties it.
 * A null key loads nothing.
 */
export function useLoad<T>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<T>,
  options: { fresh?: boolean; delay?: number } = {},
): Loaded<T> & { reload: () => void; key: string | null } {
  const [state, setState] = useState<Loaded<T> & { key: string | null }>({ data: null, error: null, loading: key !== null, key });
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    if (key === null) {
      setState({ data: null, error: null, loading: false, key });
      return;
    }
    const abort = new AbortController();
    setState((old) => ({ data: options.fresh ? null : old.data, error: null, loading: true, key: options.fresh ? key : old.key }));
    const start = async () => {
      try {
        if (options.delay) {
          await pause(options.delay, abort.signal);
        }
        const data = await latest.current(abort.signal);
        if (!abort.signal.aborted) {
          setState({ data, error: null, loading: false, key });
        }
      } catch (error) {
        if (!abort.signal.aborted) {
          setState((old) => ({ data: options.fresh ? null : old.data, error: asError(error), loading: false, key }));
        }
      }
    };
    void start();
    return () => abort.abort();
  }, [key, turn]);
  return { ...state, reload: () => setTurn((n) => n + 1) };
}

export function asError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, "page", error instanceof Error ? error.message : String(error));
}

export interface ServerEvent {
  event: string;
  id: string | null;
  data: string;
}

/** Reads server-sent events until the stream ends or is aborted. */
export async function events(url: string, signal: AbortSignal, each: (event: ServerEvent) => void, lastId: string | null = null): Promise<void> {
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (lastId !== null) {
    headers["Last-Event-ID"] = lastId;
  }
  const response = await request(url, { signal, headers });
  if (response.body === null) {
    return;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return;
    }
    buffer = (buffer + value).replaceAll("\r\n", "\n");
    for (let end = buffer.indexOf("\n\n"); end >= 0; end = buffer.indexOf("\n\n")) {
      const event = parseEvent(buffer.slice(0, end));
      buffer = buffer.slice(end + 2);
      if (event !== null) {
        each(event);
      }
    }
  }
}

function parseEvent(block: string): ServerEvent | null {
  let event = "message";
  let id: string | null = null;
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const at = line.indexOf(":");
    const field = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
    if (field === "event") {
      event = value;
    } else if (field === "id") {
      id = value;
    } else if (field === "data") {
      data.push(value);
    }
  }
  return data.length === 0 ? null : { event, id, data: data.join("\n") };
}
