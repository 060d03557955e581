// Numbers, sizes and times for people.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(count: number | null | undefined): string {
  if (count === null || count === undefined) {
    return "–";
  }
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** A count with thin separators: 12,345. */
export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : grouped.format(value);
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** A measured value with at most `digits` significant digits. */
export function number(value: number | null | undefined, digits = 6): string {
  if (value === null || value === undefined || Number.isNaN(value)) {
    return "missing";
  }
  if (!Number.isFinite(value)) {
    return value > 0 ? "+inf" : "−inf";
  }
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) {
    return value.toExponential(Math.max(0, Math.min(digits - 1, 4))).replace("-", "−").replace(/\.?0+e/, "e");
  }
  return String(Number(value.toPrecision(digits))).replace("-", "−");
}

export function duration(ms: number): string {
  return ms < 1 ? `${Math.max(1, Math.round(ms * 1000))} µs` : ms < 100 ? `${ms.toFixed(1)} ms` : ms < 10_000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** A time as text, without zero seconds: 2024-06-21 12:00. Other strings stay. */
export function time(text: string): string {
  const match = /^(\d{4,}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(\.\d+)?(Z|\+00:00)?$/.exec(text);
  if (match === null) {
    return text;
  }
  const seconds = (match[3] ?? "") === ":00" && match[4] === undefined ? "" : `${match[3] ?? ""}${match[4] ?? ""}`;
  return `${match[1]} ${match[2]}${seconds}`;
}

export function ago(iso: string | null, now = Date.now()): string {
  const then = iso === null ? Number.NaN : Date.parse(iso);
  if (Number.isNaN(then)) {
    return "–";
  }
  const seconds = (now - then) / 1000;
  if (seconds < 60) {
    return "just now";
  }
  for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]] as const) {
    if (seconds >= size) {
      const n = Math.floor(seconds / size);
      return n > 60 && unit === "day" ? time(iso ?? "").slice(0, 10) : `${n} ${unit}${n === 1 ? "" : "s"} ago`;
    }
  }
  return "–";
}

export function latitude(value: number): string {
  return value === 0 ? "0°" : `${number(Math.abs(value), 5)}°${value > 0 ? "N" : "S"}`;
}

/** A longitude within 180 degrees of Greenwich. */
export function longitude(value: number): string {
  const wrapped = ((((value + 180) % 360) + 360) % 360) - 180;
  return wrapped === 0 ? "0°" : wrapped === -180 ? "180°" : `${number(Math.abs(wrapped), 5)}°${wrapped > 0 ? "E" : "W"}`;
}

/** Any value of metadata on one line. */
export function plain(value: unknown): string {
  if (value === null || value === undefined) {
    return "–";
  }
  return typeof value === "string" ? value : JSON.stringify(value);
}

export function shape(sizes: number[]): string {
  return sizes.length === 0 ? "scalar" : sizes.map((size) => count(size)).join(" × ");
}

/** A word for a POSIX shell. */
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A string literal of Python. */
export function pythonString(text: string): string {
  return JSON.stringify(text);
}

/** A string literal of the filter language. */
export function filterString(text: string): string {
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n").replaceAll("\t", "\\t").replaceAll("\r", "\\r")}"`;
}

/** A column name of the filter language. */
export function filterColumn(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_.]*$/.test(name) ? name : `\`${name.replaceAll("`", "``")}\``;
}

/** About `wanted` round numbers between two ends. */
export function ticks(low: number, high: number, wanted: number): number[] {
  const [from, to] = low < high ? [low, high] : [high, low];
  const span = to - from;
  if (!(span > 0) || !Number.isFinite(span)) {
    return Number.isFinite(from) ? [from] : [];
  }
  const rough = span / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough * 0.999) ?? 10);
  const found = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9 && found.length < 100; i++) {
    found.push(Number((i * step).toPrecision(12)));
  }
  return found;
}

/** Degrees look best in steps of 1, 2, 5, 10, 15, 30, 45, 60. */
export function degreeTicks(low: number, high: number, wanted: number): number[] {
  const [from, to] = low < high ? [low, high] : [high, low];
  const rough = (to - from) / Math.max(1, wanted);
  const step = [1, 2, 5, 10, 15, 20, 30, 45, 60, 90].find((size) => size >= rough);
  if (step === undefined || rough < 0.5) {
    return ticks(low, high, wanted);
  }
  const found = [];
  for (let value = Math.ceil(from / step) * step; value <= to + 1e-9; value += step) {
    found.push(value);
  }
  return found;
}
