// Drawing of a field: the image, coastlines, axes, marks. No state of its own but the canvas.

import { degreeTicks, latitude, longitude, number, ticks } from "../lib/format";
import { land } from "./land";
import { type AxisValues, type Scale, labelAt } from "./scale";

/** A rectangle in positions of the two axes. */
export interface View {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
}

/** Values of a rectangle, row-major. With fewer values than positions each value is the mean of a block. */
export interface Tile extends View {
  rows: number;
  columns: number;
  values: Float32Array;
  exact: boolean;
}

export interface Colors {
  table: Uint8ClampedArray;
  low: number;
  high: number;
}

export interface Figure {
  width: number;
  height: number;
  ratio: number;
  view: View;
  full: View;
  flip: boolean;
  x: { scale: Scale; axis: AxisValues; label: string; kind: "lon" | "other" };
  y: { scale: Scale; axis: AxisValues; label: string; kind: "lat" | "other" };
  images: { canvas: HTMLCanvasElement; tile: Tile }[];
  coast: boolean;
  cursor: { x: number; y: number } | null;
  picks: { x: number; y: number; color: string }[];
  theme: { text: string; line: string; missing: string; missingLine: string };
}

export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** The image of a tile: one pixel per value, transparent where it is missing. */
export function paint(tile: Tile, colors: Colors): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = tile.columns;
  canvas.height = tile.rows;
  const context = canvas.getContext("2d");
  if (context === null) {
    return canvas;
  }
  const image = context.createImageData(tile.columns, tile.rows);
  const pixels = new Uint32Array(image.data.buffer);
  const table = new Uint32Array(colors.table.buffer);
  const factor = colors.high > colors.low ? 256 / (colors.high - colors.low) : 0;
  for (let i = 0; i < pixels.length; i++) {
    const value = tile.values[i] ?? Number.NaN;
    if (value === value) {
      const at = factor === 0 ? (value < colors.low ? 0 : value > colors.high ? 255 : 128) : (value - colors.low) * factor;
      pixels[i] = table[at < 0 ? 0 : at > 255 ? 255 : at | 0] ?? 0;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const BOTTOM = 26;
const TOP = 10;
const RIGHT = 14;

/** Where the values are drawn, inside the canvas: in the proportions of the full view. */
export function plotBox(width: number, height: number, left: number): Box {
  return { left, top: TOP, width: Math.max(10, width - left - RIGHT), height: Math.max(10, height - TOP - BOTTOM) };
}

/** The height of a canvas of this width. */
export function heightFor(width: number, left: number, aspect: number, limit: number): number {
  const inner = Math.max(10, width - left - RIGHT) / aspect;
  return Math.round(Math.max(180, Math.min(inner, limit)) + TOP + BOTTOM);
}

export function toScreen(box: Box, view: View, flip: boolean, x: number, y: number): [number, number] {
  const v = (y - view.y0) / (view.y1 - view.y0);
  return [box.left + ((x - view.x0) / (view.x1 - view.x0)) * box.width, box.top + (flip ? 1 - v : v) * box.height];
}

export function toPosition(box: Box, view: View, flip: boolean, sx: number, sy: number): [number, number] {
  const v = (sy - box.top) / box.height;
  return [view.x0 + ((sx - box.left) / box.width) * (view.x1 - view.x0), view.y0 + (flip ? 1 - v : v) * (view.y1 - view.y0)];
}

export function draw(canvas: HTMLCanvasElement, box: Box, figure: Figure): void {
  const context = canvas.getContext("2d");
  if (context === null) {
    return;
  }
  const { width, height, ratio, view, flip, theme } = figure;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(box.left, box.top, box.width, box.height);
  context.clip();
  context.fillStyle = theme.missing;
  context.fillRect(box.left, box.top, box.width, box.height);
  hatch(context, box, theme.missingLine);
  context.imageSmoothingEnabled = false;
  for (const { canvas: image, tile } of figure.images) {
    const [ax, ay] = toScreen(box, view, flip, tile.x0, flip ? tile.y1 : tile.y0);
    const [bx, by] = toScreen(box, view, flip, tile.x1, flip ? tile.y0 : tile.y1);
    context.save();
    if (flip) {
      context.translate(0, ay + by);
      context.scale(1, -1);
    }
    context.drawImage(image, ax, ay, bx - ax, by - ay);
    context.restore();
  }
  if (figure.coast) {
    drawLand(context, box, figure);
  }
  drawMarks(context, box, figure);
  context.restore();
  context.strokeStyle = theme.line;
  context.lineWidth = 1;
  context.strokeRect(box.left - 0.5, box.top - 0.5, box.width + 1, box.height + 1);
  drawAxes(context, box, figure);
}

function hatch(context: CanvasRenderingContext2D, box: Box, line: string): void {
  context.strokeStyle = line;
  context.lineWidth = 1;
  context.beginPath();
  for (let x = -box.height; x < box.width; x += 9) {
    context.moveTo(box.left + x, box.top + box.height);
    context.lineTo(box.left + x + box.height, box.top);
  }
  context.stroke();
}

/** Edges across or along the antimeridian and at the end of the data are cuts of the outline, not coast. */
const isCut = (a: number, b: number, lat0: number, lat1: number) => Math.abs(a - b) > 180 || (Math.abs(a) > 179.9 && Math.abs(b) > 179.9) || (lat0 < -85.5 && lat1 < -85.5);

function drawLand(context: CanvasRenderingContext2D, box: Box, figure: Figure): void {
  const { x, y, view, flip } = figure;
  if (x.scale.order === 0 || y.scale.order === 0) {
    return;
  }
  const ends = [x.scale.coordinate(view.x0), x.scale.coordinate(view.x1)];
  const [west, east] = [Math.min(...ends), Math.max(...ends)];
  context.beginPath();
  for (const ring of land()) {
    for (const shift of [-360, 0, 360]) {
      let inside = false;
      for (let i = 0; i < ring.length && !inside; i += 2) {
        const lon = (ring[i] ?? 0) + shift;
        inside = lon >= west - 1 && lon <= east + 1;
      }
      if (!inside) {
        continue;
      }
      let pen = false;
      for (let i = 0; i < ring.length; i += 2) {
        const lon = ring[i] ?? 0;
        const lat = ring[i + 1] ?? 0;
        const [sx, sy] = toScreen(box, view, flip, x.scale.position(lon + shift), y.scale.position(lat));
        if (pen && !isCut(ring[i - 2] ?? 0, lon, ring[i - 1] ?? 0, lat)) {
          context.lineTo(sx, sy);
        } else {
          context.moveTo(sx, sy);
        }
        pen = true;
      }
    }
  }
  context.lineJoin = "round";
  context.strokeStyle = "rgba(255,255,255,.55)";
  context.lineWidth = 2.4;
  context.stroke();
  context.strokeStyle = "rgba(10,14,20,.85)";
  context.lineWidth = 1;
  context.stroke();
}

function drawMarks(context: CanvasRenderingContext2D, box: Box, figure: Figure): void {
  const { view, flip } = figure;
  for (const pick of figure.picks) {
    const [sx, sy] = toScreen(box, view, flip, pick.x + 0.5, pick.y + 0.5);
    context.beginPath();
    context.arc(sx, sy, 5, 0, 2 * Math.PI);
    context.fillStyle = pick.color;
    context.fill();
    context.lineWidth = 2;
    context.strokeStyle = "#fff";
    context.stroke();
  }
  if (figure.cursor !== null) {
    const [ax, ay] = toScreen(box, view, flip, figure.cursor.x, figure.cursor.y);
    const [bx, by] = toScreen(box, view, flip, figure.cursor.x + 1, figure.cursor.y + 1);
    const [left, top] = [Math.min(ax, bx), Math.min(ay, by)];
    const [w, h] = [Math.abs(bx - ax), Math.abs(by - ay)];
    const grow = Math.max(0, 7 - Math.min(w, h)) / 2;
    context.lineWidth = 3;
    context.strokeStyle = "rgba(255,255,255,.9)";
    context.strokeRect(left - grow, top - grow, w + 2 * grow, h + 2 * grow);
    context.lineWidth = 1.3;
    context.strokeStyle = "#111";
    context.strokeRect(left - grow, top - grow, w + 2 * grow, h + 2 * grow);
  }
}

interface Tick {
  at: number;
  text: string;
}

/** Ticks of an axis between two positions. */
export function axisTicks(scale: Scale, axis: AxisValues, kind: "lat" | "lon" | "other", from: number, to: number, wanted: number): Tick[] {
  if (scale.numbers !== null && scale.order !== 0) {
    const [a, b] = [scale.coordinate(Math.max(from, 0)), scale.coordinate(Math.min(to, scale.size))];
    const found = kind === "other" ? ticks(a, b, wanted) : degreeTicks(a, b, wanted);
    return found.map((value) => ({ at: scale.position(value), text: kind === "lat" ? latitude(value) : kind === "lon" ? longitude(value) : number(value) }));
  }
  const step = Math.max(1, Math.ceil((to - from) / Math.max(1, wanted)));
  const found: Tick[] = [];
  for (let i = Math.ceil(Math.max(0, from) / step) * step; i < Math.min(to, scale.size); i += step) {
    found.push({ at: i + 0.5, text: labelAt(axis, i) });
  }
  return found;
}

function drawAxes(context: CanvasRenderingContext2D, box: Box, figure: Figure): void {
  const { view, flip, theme } = figure;
  context.font = FONT;
  context.fillStyle = theme.text;
  context.strokeStyle = theme.line;
  context.lineWidth = 1;
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const tick of axisTicks(figure.y.scale, figure.y.axis, figure.y.kind, view.y0, view.y1, Math.max(2, box.height / 56))) {
    const [, sy] = toScreen(box, view, flip, view.x0, tick.at);
    if (sy >= box.top - 1 && sy <= box.top + box.height + 1) {
      context.beginPath();
      context.moveTo(box.left - 5, sy);
      context.lineTo(box.left, sy);
      context.stroke();
      context.fillText(shorten(context, tick.text, box.left - 12), box.left - 8, sy);
    }
  }
  context.textAlign = "center";
  context.textBaseline = "top";
  let last = Number.NEGATIVE_INFINITY;
  const across = axisTicks(figure.x.scale, figure.x.axis, figure.x.kind, view.x0, view.x1, Math.max(2, box.width / 84));
  for (const tick of across) {
    const [sx] = toScreen(box, view, flip, tick.at, view.y0);
    const half = context.measureText(tick.text).width / 2;
    if (sx >= box.left - 1 && sx <= box.left + box.width + 1 && sx - half > last + 8) {
      context.beginPath();
      context.moveTo(sx, box.top + box.height);
      context.lineTo(sx, box.top + box.height + 5);
      context.stroke();
      const centre = Math.min(Math.max(sx, half + 2), figure.width - half - 2);
      context.fillText(tick.text, centre, box.top + box.height + 8);
      last = centre + half;
    }
  }
}

function shorten(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) {
    return text;
  }
  let cut = text;
  while (cut.length > 1 && context.measureText(`${cut}…`).width > width) {
    cut = cut.slice(0, -1);
  }
  return `${cut}…`;
}
