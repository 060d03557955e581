//! Series as lines of braille dots: two columns and four rows of dots per character.

use unicode_width::UnicodeWidthStr as _;

use super::{Colors, TextOptions, bottom, left_labels, widest};
use crate::plot::{self, Plot};
use crate::resample::{self, as_f64, to_index};
use crate::ticks;

/// The lines of a plot by default.
const HEIGHT: usize = 14;

pub(super) fn draw(plot: &Plot, range: (f64, f64), options: &TextOptions, lines: &mut Vec<String>) {
    let height =
        options.height.unwrap_or(HEIGHT.min(options.max_height)).clamp(super::MIN_SIZE.1, super::MAX_SIZE.1);
    let range = padded(range);
    let fraction = |value: f64| plot::fraction(value, range);
    let ticks = ticks::numbers(range.0, range.1, (height / 2).clamp(3, 7));
    let labels = left_labels(
        ticks.into_iter().filter_map(|(value, label)| Some((1.0 - fraction(value)?, label))),
        height,
    );
    let left = widest(&labels);
    let width = options.width.saturating_sub(left + 2).max(8);
    let mut dots = Dots::new(width, height);
    // At most one value per column of dots.
    let count = plot.shape.1.min(dots.width);
    let values = resample::field(&plot.values, (1, plot.shape.1), (1, count));
    let at = |index: usize, value: f64| {
        let x = (as_f64(index) + 0.5) / as_f64(count) * as_f64(dots.width);
        let y = (1.0 - fraction(value)?) * as_f64(dots.height - 1);
        Some((to_index(x, dots.width), to_index(y.round(), dots.height)))
    };
    let points: Vec<Option<(usize, usize)>> =
        values.iter().enumerate().map(|(index, &value)| at(index, value)).collect();
    let mut last = None;
    for point in points {
        match (last, point) {
            (Some(from), Some(to)) => dots.line(from, to),
            (None, Some(to)) => dots.set(to),
            _ => {}
        }
        last = point;
    }
    let (color, reset) = match options.colors {
        Colors::None => ("", ""),
        _ => ("\x1b[36m", "\x1b[0m"),
    };
    for (line, label) in labels.iter().enumerate() {
        let mark = if label.is_some() { '┤' } else { '│' };
        let label = label.as_deref().unwrap_or_default();
        let pad = " ".repeat(left - label.width().min(left));
        lines.push(format!("{pad}{label} {mark}{color}{}{reset}", dots.text(line).trim_end()));
    }
    bottom(&plot.x.ticks(width / 9), &plot.x.caption(), left, width, lines);
    lines.extend(plot.remarks((1, count)).into_iter().map(|remark| format!("{:left$}  {remark}", "")));
}

/// A range with a margin, so that the line does not touch the edges.
fn padded((low, high): (f64, f64)) -> (f64, f64) {
    let margin = (high - low) * 0.03;
    if margin.is_finite() { (low - margin, high + margin) } else { (low, high) }
}

/// Dots in braille characters.
struct Dots {
    columns: usize,
    width: usize,
    height: usize,
    cells: Vec<u8>,
}

impl Dots {
    fn new(columns: usize, lines: usize) -> Self {
        Self { columns, width: columns * 2, height: lines * 4, cells: vec![0; columns * lines] }
    }

    fn set(&mut self, (x, y): (usize, usize)) {
        // Dots are numbered down the columns; the fourth row was added later.
        const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
        if let Some(cell) = self.cells.get_mut(y / 4 * self.columns + x / 2) {
            *cell |= BITS[y % 4][x % 2];
        }
    }

    /// Sets the dots of a straight line.
    fn line(&mut self, from: (usize, usize), to: (usize, usize)) {
        let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
        for step in 0..=steps {
            let part = as_f64(step) / as_f64(steps);
            let between = |from: usize, to: usize| {
                to_index((as_f64(from) + (as_f64(to) - as_f64(from)) * part).round(), usize::MAX)
            };
            self.set((between(from.0, to.0), between(from.1, to.1)));
        }
    }

    fn text(&self, line: usize) -> String {
        let cells = &self.cells[line * self.columns..(line + 1) * self.columns];
        let glyph = |&cell: &u8| match cell {
            0 => ' ',
            dots => char::from_u32(0x2800 + u32::from(dots)).unwrap_or(' '),
        };
        cells.iter().map(glyph).collect()
    }
}
