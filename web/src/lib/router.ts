// All state of the page is in the fragment of the URL: `#/path/parts?key=value`.

import { useEffect, useState } from "preact/hooks";

export interface Route {
  parts: string[];
  params: URLSearchParams;
}

export type Changes = Record<string, string | number | boolean | string[] | null | undefined>;

/** Percent-encoded text; invalid text is taken as it is. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The route of a fragment. A part that is not percent-encoded properly is taken as it is. */
export function parseRoute(fragment: string): Route {
  const text = fragment.replace(/^#?\/?/, "");
  const at = text.indexOf("?");
  const path = at < 0 ? text : text.slice(0, at);
  const parts = path.split("/").filter(Boolean).map(decoded);
  return { parts, params: new URLSearchParams(at < 0 ? "" : text.slice(at + 1)) };
}

/** The fragment of a route, a valid value of `href`. */
export function href(parts: string[], params?: Changes | URLSearchParams): string {
  const search = params instanceof URLSearchParams ? params : applied(new URLSearchParams(), params ?? {});
  const text = search.toString().replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%2F", "/");
  return `#/${parts.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

/** Parameters with changes; null, false and empty strings remove a key. */
export function applied(params: URLSearchParams, changes: Changes): URLSearchParams {
  const next = new URLSearchParams(params);
  for (const [key, value] of Object.entries(changes)) {
    next.delete(key);
    if (Array.isArray(value)) {
      for (const item of value) {
        next.append(key, item);
      }
    } else if (value === true) {
      next.set(key, "1");
    } else if (value !== null && value !== undefined && value !== false && value !== "") {
      next.set(key, String(value));
    }
  }
  return next;
}

const listeners = new Set<() => void>();
let current = parseRoute(location.hash);

export const route = (): Route => current;

function update(): void {
  current = parseRoute(location.hash);
  for (const listener of listeners) {
    listener();
  }
}

window.addEventListener("hashchange", update);

/** Goes to a route. `replace` keeps the history as it is: for typing, sliders and zooming. */
export function go(parts: string[], params?: Changes | URLSearchParams, replace = false): void {
  const target = href(parts, params);
  if (target === location.hash) {
    return;
  }
  if (replace) {
    history.replaceState(null, "", target);
  } else {
    history.pushState(null, "", target);
  }
  update();
}

/** Changes parameters of the current route. */
export function change(changes: Changes, replace = false): void {
  go(current.parts, applied(current.params, changes), replace);
}

window.addEventListener("popstate", update);

export function useRoute(): Route {
  const [, redraw] = useState(0);
  useEffect(() => {
    const listener = () => redraw((n) => n + 1);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  }, []);
  return current;
}
