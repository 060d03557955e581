//! Fields as half blocks, two values per character, or as shades.

use tercet_core::escape;
use unicode_width::UnicodeWidthStr as _;

use super::{Colors, TextOptions, bottom, cell, colors, cut, left_labels, widest};
use crate::colormap::Rgb;
use crate::plot::{self, Axis, Plot, units_text};
use crate::resample::{self, as_f64, to_index};
use crate::ticks;

/// Characters from low to high values.
const SHADES: [char; 10] = ['.', ':', '-', '~', '=', '+', '*', '#', '%', '@'];

pub(super) fn draw(plot: &Plot, y: &Axis, range: (f64, f64), options: &TextOptions, lines: &mut Vec<String>) {
    let per_line = if options.colors == Colors::None { 1 } else { 2 };
    // The labels decide the width of the field, and its height the labels: their width is nearly the same for any height.
    let width = |height: usize| {
        let labels = labels(plot, y, height);
        (options.width.saturating_sub(widest(&labels) + 2).max(8), labels)
    };
    let height = options.height.unwrap_or_else(|| default_height(plot, width(8).0, options.max_height));
    let height = height.clamp(super::MIN_SIZE.1, super::MAX_SIZE.1);
    let (width, labels) = width(height);
    let left = widest(&labels);
    let rows = height * per_line;
    let mut values = resample::field(&plot.values, plot.shape, (rows, width));
    if plot.is_flipped() {
        values = values.chunks(width).rev().flatten().copied().collect();
    }
    lines.push(cut(&escape::name(&y.caption()), options.width));
    for (line, label) in labels.iter().enumerate() {
        let mark = if label.is_some() { '┤' } else { '│' };
        let label = label.as_deref().unwrap_or_default();
        let mut text = format!("{}{label} {mark}", " ".repeat(left - label.width().min(left)));
        let row = |row: usize| &values[row * width..(row + 1) * width];
        let fraction = |value: f64| plot::fraction(value, range);
        if options.colors == Colors::None {
            text.extend(row(line).iter().map(|&value| fraction(value).map_or(' ', shade)));
        } else {
            let color = |value: f64| fraction(value).map(|fraction| options.colormap.color(fraction));
            let pairs = row(line * 2).iter().zip(row(line * 2 + 1));
            push_half_blocks(pairs.map(|(&top, &low)| (color(top), color(low))), options.colors, &mut text);
        }
        lines.push(text);
    }
    bottom(&plot.x.ticks(width / 9), &plot.x.caption(), left, width, lines);
    lines.push(String::new());
    scale(plot, range, options, left + 2, width.min(60), lines);
    lines.extend(plot.remarks((rows, width)).into_iter().map(|remark| format!("{:left$}  {remark}", "")));
}

/// About square cells, but neither a strip nor a column.
fn default_height(plot: &Plot, width: usize, most: usize) -> usize {
    let (rows, columns) = plot.shape;
    // A character is about twice as high as wide.
    let square = as_f64(width) * as_f64(rows) / as_f64(columns.max(1)) / 2.0;
    to_index(square.round(), usize::MAX).clamp(6, most.max(6))
}

fn labels(plot: &Plot, y: &Axis, height: usize) -> Vec<Option<String>> {
    let flipped = plot.is_flipped();
    let ticks = y
        .ticks((height / 2).clamp(2, 9))
        .into_iter()
        .map(|tick| (if flipped { 1.0 - tick.fraction } else { tick.fraction }, tick.label));
    left_labels(ticks, height)
}

fn shade(fraction: f64) -> char {
    SHADES[cell(fraction, SHADES.len())]
}

/// Characters whose upper and lower halves have different colors. Escape sequences are written where colors change.
fn push_half_blocks(
    pairs: impl Iterator<Item = (Option<Rgb>, Option<Rgb>)>,
    depth: Colors,
    text: &mut String,
) {
    let mut last = None;
    for (top, low) in pairs {
        let (glyph, foreground, background) = match (top, low) {
            (None, None) => (' ', None, None),
            (Some(top), None) => ('▀', Some(top), None),
            (None, Some(low)) => ('▄', Some(low), None),
            (Some(top), Some(low)) => ('▀', Some(top), Some(low)),
        };
        if last != Some((foreground, background)) {
            text.push_str(&colors(foreground, background, depth));
            last = Some((foreground, background));
        }
        text.push(glyph);
    }
    text.push_str("\x1b[0m");
}

/// The scale: all colors or shades, and numbers under them.
fn scale(
    plot: &Plot,
    (low, high): (f64, f64),
    options: &TextOptions,
    indent: usize,
    width: usize,
    lines: &mut Vec<String>,
) {
    let mut bar = " ".repeat(indent);
    for column in 0..width {
        let fraction = (as_f64(column) + 0.5) / as_f64(width);
        match options.colors {
            Colors::None => bar.push(shade(fraction)),
            depth => {
                bar.push_str(&colors(Some(options.colormap.color(fraction)), None, depth));
                bar.push('█');
            }
        }
    }
    if options.colors != Colors::None {
        bar.push_str("\x1b[0m");
    }
    lines.push(bar);
    let mut text: Vec<char> = vec![' '; width];
    let mut free = 0;
    for (value, label) in ticks::numbers(low, high, (width / 10).max(1)) {
        let Some(fraction) = plot::fraction(value, (low, high)) else { continue };
        let label: Vec<char> = label.chars().collect();
        let start =
            cell(fraction, width).saturating_sub(label.len() / 2).min(width.saturating_sub(label.len()));
        if start >= free && label.len() <= width {
            text[start..start + label.len()].copy_from_slice(&label);
            free = start + label.len() + 1;
        }
    }
    let numbers: String = text.into_iter().collect();
    let units = plot.units.as_deref().map(|units| escape::name(units_text(units))).unwrap_or_default();
    lines.push(format!("{:indent$}{numbers} {}", "", cut(&units, 30)));
}
