// Small parts that several views use.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { ApiError } from "../lib/api";
import type { Attributes, ChecksumState, Format, Mark } from "../lib/types";
import { plain } from "../lib/format";
import { Icon, type IconName } from "./icons";

/** Text with its hits in `<mark>`. The text is never parsed as HTML. */
export function Highlighted({ text, marks }: { text: string; marks: Mark[] }) {
  const parts: ComponentChildren[] = [];
  let at = 0;
  for (const [start, end] of marks) {
    if (start < at || end <= start || end > text.length) {
      continue;
    }
    parts.push(text.slice(at, start), <mark>{text.slice(start, end)}</mark>);
    at = end;
  }
  parts.push(text.slice(at));
  return <>{parts}</>;
}

export function Problem({ error, retry }: { error: ApiError; retry?: () => void }) {
  return (
    <div class="problem" role="alert">
      <Icon name="warning" size={20} />
      <div>
        <p class="problem-text">{error.message}</p>
        {error.hint && <p class="muted">{error.hint}</p>}
        {retry && error.code !== "invalid_request" && (
          <button type="button" class="button small" onClick={retry}>
            Try again
          </button>
        )}
      </div>
    </div>
  );
}

export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <span class="empty-icon">
        <Icon name={icon} size={28} />
      </span>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** Grey bars in place of text that is loading. */
export function Skeleton({ lines = 3 }: { lines?: number }) {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, i) => (
        <span key={i} class={`bar bar-${i % 4}`} />
      ))}
    </div>
  );
}

export function Badge({ format }: { format: Format | string }) {
  const text: Record<string, string> = { tet: "tet", tgm: "tgm", tatami: "tatami", collection: "dir" };
  return <span class={`badge badge-${text[format] === undefined ? "other" : format}`}>{text[format] ?? format}</span>;
}

const STATES: Record<ChecksumState, string> = {
  ok: "checksum verified",
  damaged: "damaged",
  unverified: "not verified yet",
  unprotected: "no checksum",
  missing: "not stored",
};

export function stateText(state: ChecksumState): string {
  return STATES[state] ?? state;
}

export function StateDot({ state, label = false }: { state: ChecksumState; label?: boolean }) {
  return (
    <span class={`state state-${state}`} title={stateText(state)}>
      <span class="dot" aria-hidden="true" />
      <span class={label ? "" : "visually-hidden"}>{stateText(state)}</span>
    </span>
  );
}

export interface Tab {
  id: string;
  label: string;
  icon: IconName;
  href: string;
}

export function Tabs({ tabs, current, label }: { tabs: Tab[]; current: string; label: string }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map((tab) => (
        <a key={tab.id} href={tab.href} class="tab" aria-current={tab.id === current ? "page" : undefined}>
          <Icon name={tab.icon} />
          {tab.label}
        </a>
      ))}
    </nav>
  );
}

const isShort = (value: object): value is unknown[] => Array.isArray(value) && value.length > 0 && value.length <= 12 && value.every((item) => typeof item !== "object" || item === null);

/** Metadata as a table of keys and values; nested values as indented JSON. */
export function Attrs({ attrs, empty = "No attributes." }: { attrs: Attributes | null | undefined; empty?: string }) {
  const entries = Object.entries(attrs ?? {});
  if (entries.length === 0) {
    return <p class="muted">{empty}</p>;
  }
  return (
    <dl class="attrs">
      {entries.map(([key, value]) => (
        <div key={key}>
          <dt>{key}</dt>
          <dd>{typeof value === "object" && value !== null ? isShort(value) ? value.map(plain).join(", ") : <pre>{JSON.stringify(value, null, 2)}</pre> : plain(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A button with a panel that opens below it. Escape and a click elsewhere close the panel. */
export function Popover({
  label,
  icon,
  children,
  align = "left",
  title,
  small = true,
  iconOnly = false,
}: {
  label: string;
  icon: IconName;
  children: (close: () => void) => ComponentChildren;
  align?: "left" | "right";
  title?: string;
  small?: boolean;
  iconOnly?: boolean;
}) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  useEffect(() => {
    if (!open) {
      return;
    }
    const outside = (event: Event) => {
      if (!root.current?.contains(event.target as Node)) {
        setOpen(false);
      }
    };
    document.addEventListener("pointerdown", outside);
    const first = root.current?.querySelector<HTMLElement>(".popover button, .popover select, .popover input, .popover a");
    first?.focus();
    return () => document.removeEventListener("pointerdown", outside);
  }, [open]);
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  return (
    <div
      class="popover-root"
      ref={root}
      onKeyDown={(event) => {
        if (open && event.key === "Escape") {
          event.stopPropagation();
          close();
        }
      }}
    >
      <button
        ref={button}
        type="button"
        class={`button ${small ? "small" : ""}`}
        aria-expanded={open}
        aria-controls={id}
        aria-label={iconOnly ? label : undefined}
        title={title ?? (iconOnly ? label : undefined)}
        onClick={() => setOpen(!open)}
      >
        <Icon name={icon} />
        {!iconOnly && label}
        {!iconOnly && <Icon name="down" size={12} />}
      </button>
      <div id={id} class={`popover ${align}`} hidden={!open}>
        {open && children(close)}
      </div>
    </div>
  );
}

/** Copies text and says so for a moment. */
export function CopyButton({ text, label, small = true }: { text: string; label: string; small?: boolean }) {
  const [state, setState] = useState<"idle" | "done" | "failed">("idle");
  const copy = async () => {
    setState((await copyText(text)) ? "done" : "failed");
    setTimeout(() => setState("idle"), 1600);
  };
  return (
    <button type="button" class={`button ${small ? "small" : ""}`} onClick={copy}>
      <Icon name={state === "done" ? "check" : "copy"} />
      <span aria-live="polite">{state === "done" ? "Copied" : state === "failed" ? "Cannot copy" : label}</span>
    </button>
  );
}

/** The clipboard of the browser, or a selection where it needs a secure origin. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "visually-hidden";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

export interface Snippet {
  name: string;
  text: string;
}

/** "Copy as": snippets that give what the page shows. */
export function CopyAs({ snippets, label = "Copy as" }: { snippets: Snippet[]; label?: string }) {
  return (
    <Popover label={label} icon="copy" align="right">
      {() => (
        <div class="snippets">
          {snippets.map((snippet) => (
            <div key={snippet.name} class="snippet">
              <div class="snippet-head">
                <strong>{snippet.name}</strong>
                <CopyButton text={snippet.text} label="Copy" />
              </div>
              <pre tabIndex={0}>{snippet.text}</pre>
            </div>
          ))}
        </div>
      )}
    </Popover>
  );
}

export function Spinner({ label = "Loading" }: { label?: string }) {
  return (
    <span class="spinner" role="status">
      <span class="visually-hidden">{label}</span>
    </span>
  );
}

/** The width and height of an element, kept up to date. */
export function useSize<T extends HTMLElement>(): [{ current: T | null }, { width: number; height: number }] {
  const ref = useRef<T>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  useEffect(() => {
    const element = ref.current;
    if (element === null) {
      return;
    }
    const measure = () => setSize({ width: element.clientWidth, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);
  return [ref, size];
}

/** A value that follows another one after it has been still for a while. */
export function useDebounced<T>(value: T, milliseconds: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}

/** Whether the page is dark now; components that draw on canvas follow it. */
export function useDark(): boolean {
  const [dark, setDark] = useState(isDark());
  useEffect(() => {
    const update = () => setDark(isDark());
    const media = matchMedia("(prefers-color-scheme: dark)");
    media.addEventListener("change", update);
    window.addEventListener("themechange", update);
    return () => {
      media.removeEventListener("change", update);
      window.removeEventListener("themechange", update);
    };
  }, []);
  return dark;
}

export function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
}

/** A colour of the style sheet, for drawing on canvas. */
export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** True where the arrow keys and letters belong to what has the focus. */
export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
}
