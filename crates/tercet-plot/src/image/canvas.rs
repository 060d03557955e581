//! Drawing of rectangles, lines and text.

use super::Image;
use super::font::{Size, letters};
use crate::colormap::Rgb;
use crate::resample::{as_f64, to_index};

/// A rectangle: left, top, width, height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) left: usize,
    pub(super) top: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// The place of a text relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Center,
    Right,
}

impl Image {
    pub(super) fn new(width: usize, height: usize) -> Self {
        Self { width, height, pixels: vec![[255; 3]; width * height] }
    }

    /// Sets a pixel; outside of the image nothing is drawn.
    pub(super) fn set(&mut self, x: usize, y: usize, color: Rgb) {
        if x < self.width
            && let Some(pixel) = self.pixels.get_mut(y * self.width + x)
        {
            *pixel = color;
        }
    }

    /// Mixes a color into a pixel; `cover` is from 0 to 1.
    fn mix(&mut self, x: usize, y: usize, color: Rgb, cover: f64) {
        let Some(below) = self.pixel(x, y) else { return };
        let mut mixed = below;
        for (mixed, (above, below)) in mixed.iter_mut().zip(color.into_iter().zip(below)) {
            let value = f64::from(below) + (f64::from(above) - f64::from(below)) * cover.clamp(0.0, 1.0);
            *mixed = u8::try_from(to_index(value.round(), 256)).unwrap_or(255);
        }
        self.set(x, y, mixed);
    }

    pub(super) fn horizontal(&mut self, left: usize, y: usize, width: usize, color: Rgb) {
        (left..left + width).for_each(|x| self.set(x, y, color));
    }

    pub(super) fn vertical(&mut self, x: usize, top: usize, height: usize, color: Rgb) {
        (top..top + height).for_each(|y| self.set(x, y, color));
    }

    /// A frame around an area.
    pub(super) fn frame(&mut self, area: Area, color: Rgb) {
        let Area { left, top, width, height } = area;
        for y in [top - 1, top + height] {
            self.horizontal(left - 1, y, width + 2, color);
        }
        for x in [left - 1, left + width] {
            self.vertical(x, top - 1, height + 2, color);
        }
    }

    /// Text on a line whose top is at `y`.
    pub(super) fn text(&mut self, text: &str, (x, y): (usize, usize), align: Align, size: Size, color: Rgb) {
        let width = size.width(text);
        let mut x = match align {
            Align::Left => x,
            Align::Center => x.saturating_sub(width / 2),
            Align::Right => x.saturating_sub(width),
        };
        for letter in letters(text).filter_map(|c| size.letter(c)) {
            for (row, grey) in letter.rows().enumerate() {
                for (column, &grey) in grey.iter().enumerate() {
                    self.mix(x + column, y + row, color, f64::from(grey) / 255.0);
                }
            }
            x += letter.width();
        }
    }

    /// Text from bottom to top, centred at `y`; its left edge is at `x`.
    pub(super) fn upwards(&mut self, text: &str, (x, y): (usize, usize), size: Size, color: Rgb) {
        let mut bottom = y + size.width(text) / 2;
        for letter in letters(text).filter_map(|c| size.letter(c)) {
            for (row, grey) in letter.rows().enumerate() {
                for (column, &grey) in grey.iter().enumerate() {
                    if let Some(y) = bottom.checked_sub(column) {
                        self.mix(x + row, y, color, f64::from(grey) / 255.0);
                    }
                }
            }
            bottom = bottom.saturating_sub(letter.width());
        }
    }

    /// A line of two pixels with smooth edges, inside of an area.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), area: Area, color: Rgb) {
        self.stroke(from, to, 1.5, area, color);
    }

    /// A dot of seven pixels with smooth edges, inside of an area.
    pub(super) fn dot(&mut self, at: (f64, f64), area: Area, color: Rgb) {
        self.stroke(at, at, 4.0, area, color);
    }

    /// All pixels at most `reach` from a line.
    fn stroke(&mut self, from: (f64, f64), to: (f64, f64), reach: f64, area: Area, color: Rgb) {
        let range = |low: f64, high: f64, first: usize, len: usize| {
            let start = to_index(low - reach, usize::MAX).max(first);
            start..(to_index(high + reach, usize::MAX) + 1).min(first + len)
        };
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx * dx + dy * dy;
        for y in range(from.1.min(to.1), from.1.max(to.1), area.top, area.height) {
            for x in range(from.0.min(to.0), from.0.max(to.0), area.left, area.width) {
                let (px, py) = (as_f64(x) + 0.5 - from.0, as_f64(y) + 0.5 - from.1);
                let along = if length > 0.0 { ((px * dx + py * dy) / length).clamp(0.0, 1.0) } else { 0.0 };
                let distance = (px - along * dx).hypot(py - along * dy);
                let cover = reach - distance;
                if cover > 0.0 {
                    self.mix(x, y, color, cover);
                }
            }
        }
    }
}
