// Icons: strokes of a 16-pixel grid.

const PATHS = {
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10Zm3.6-1.4L14 14",
  folder: "M2 4.5A1.5 1.5 0 0 1 3.5 3h2.6l1.4 1.7h5A1.5 1.5 0 0 1 14 6.2v5.3a1.5 1.5 0 0 1-1.5 1.5h-9A1.5 1.5 0 0 1 2 11.5Z",
  chevron: "m6 3.5 4.5 4.5L6 12.5",
  down: "m3.5 6 4.5 4.5L12.5 6",
  close: "m4 4 8 8m0-8-8 8",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8 1.5v1.3m0 10.4v1.3M1.5 8h1.3m10.4 0h1.3M3.4 3.4l.9.9m7.4 7.4.9.9m0-9.2-.9.9m-7.4 7.4-.9.9",
  moon: "M13.5 9.6A5.8 5.8 0 0 1 6.4 2.5a5.8 5.8 0 1 0 7.1 7.1Z",
  auto: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 2v12m0-12c8 0 8 12 0 12",
  play: "M5 3.2v9.6l7.5-4.8Z",
  pause: "M5.2 3.5v9m5.6-9v9",
  copy: "M5.5 5.5v-2A1.5 1.5 0 0 1 7 2h5.5A1.5 1.5 0 0 1 14 3.5V9a1.5 1.5 0 0 1-1.5 1.5h-2M3.5 5.5H9A1.5 1.5 0 0 1 10.5 7v5.5A1.5 1.5 0 0 1 9 14H3.5A1.5 1.5 0 0 1 2 12.5V7a1.5 1.5 0 0 1 1.5-1.5Z",
  check: "m3 8.5 3.2 3.2L13 4.8",
  warning: "M8 2.2 1.8 13h12.4ZM8 6.5v3.2m0 1.7v.2",
  bytes: "M2.5 3h11v3h-11Zm0 3h5v3.5h-5Zm5 0h6v3.5h-6Zm-5 3.5h11V13h-11Z",
  grid: "M2.5 2.5h11v11h-11Zm3.7 0v11m3.6-11v11m-7.3-7.3h11m-11 3.6h11",
  list: "M5.5 4H14M5.5 8H14M5.5 12H14M2.2 4h.2m-.2 4h.2m-.2 4h.2",
  table: "M2.5 3h11v10h-11Zm0 3.3h11M6.5 3v10",
  chart: "M2.5 2.5v11h11M5 10l2.5-3 2 1.6L13 4.5",
  info: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12Zm0-6.5V11M8 5v.2",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  fit: "M2.5 6V2.5H6m4 0h3.5V6m0 4v3.5H10m-4 0H2.5V10",
  globe: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM2.2 8h11.6M8 2c3 3.4 3 8.6 0 12M8 2c-3 3.4-3 8.6 0 12",
  diff: "M3 5h10M3 11h10M8 2.2v5.6",
  download: "M8 2.5v7.3m0 0L4.9 6.9M8 9.8l3.1-2.9M2.5 13h11",
  live: "M8 9.2a1.2 1.2 0 1 0 0-2.4 1.2 1.2 0 0 0 0 2.4ZM4.8 11.2a4.5 4.5 0 0 1 0-6.4m6.4 0a4.5 4.5 0 0 1 0 6.4M2.7 13.3a7.5 7.5 0 0 1 0-10.6m10.6 0a7.5 7.5 0 0 1 0 10.6",
  shield: "M8 1.8 2.8 3.6v4c0 3.3 2.2 5.4 5.2 6.6 3-1.2 5.2-3.3 5.2-6.6v-4Zm-2.4 6 1.7 1.7 3.1-3.2",
  link: "M6.8 9.2a2.6 2.6 0 0 0 3.7 0l2.2-2.2A2.6 2.6 0 0 0 9 3.3l-.8.8m1 2.7a2.6 2.6 0 0 0-3.7 0L3.3 9A2.6 2.6 0 0 0 7 12.7l.8-.8",
  menu: "M2 4h12M2 8h12M2 12h12",
  external: "M6 3H3.5v9.5H13V10M9 2.8h4.2V7M13 3 7.5 8.5",
  columns: "M2.5 3h11v10h-11ZM6.2 3v10M9.8 3v10",
  filter: "M2 3.5h12L9.5 9v4.2l-3-1.5V9Z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width={size} height={size} aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" />
      <path d="M8 10h16M8 16h10M8 22h13" />
    </svg>
  );
}
