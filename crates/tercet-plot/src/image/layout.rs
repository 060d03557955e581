//! The parts of an image: title, axes, values, color bar, remarks.

use super::canvas::{Align, Area};
use super::font::Size;
use super::{Image, ImageOptions, part};
use crate::colormap::{Colormap, Rgb};
use crate::plot::{self, Axis, Plot, units_text};
use crate::resample::{self, as_f64, to_index};
use crate::ticks::{self, Tick};

const BLACK: Rgb = [20, 20, 20];
const GREY: Rgb = [110, 110, 110];
const GRID: Rgb = [228, 228, 228];
/// Missing values: light stripes.
const MISSING: [Rgb; 2] = [[250, 250, 250], [222, 222, 222]];
const LINE: Rgb = [31, 98, 168];
/// The distance between parts.
const GAP: usize = 12;
const TICK: usize = 6;
/// The width of a color bar.
const BAR: usize = 22;

pub(super) fn draw(plot: &Plot, options: &ImageOptions) -> Image {
    let Some(range) = plot.drawn_range() else { return no_values(plot, options) };
    let is_field = plot.y.is_some();
    let range = if is_field { range } else { padded(range) };
    let values = ticks::numbers(range.0, range.1, 8);
    // The vertical axis has values or coordinates. Their widths decide the margins.
    let left_ticks: Vec<Tick> = match &plot.y {
        Some(y) => vertical_ticks(plot, y),
        None => values
            .iter()
            .filter_map(|(value, label)| {
                Some(Tick { fraction: 1.0 - plot::fraction(*value, range)?, label: label.clone() })
            })
            .collect(),
    };
    let widest = |labels: &mut dyn Iterator<Item = &String>| {
        labels.map(|label| Size::Small.width(label)).max().unwrap_or(0)
    };
    let line = Size::Small.height();
    let left = GAP + line + 4 + widest(&mut left_ticks.iter().map(|tick| &tick.label)) + TICK + 4;
    let right = if is_field {
        GAP * 2 + BAR + TICK + 4 + widest(&mut values.iter().map(|(_, label)| label)) + GAP
    } else {
        GAP * 2
    };
    let remarks = plot.remarks(plot.shape);
    let top = GAP + Size::Large.height() + GAP;
    let bottom = TICK + 4 + line + 4 + line + GAP + if remarks.is_empty() { 0 } else { line + 2 };
    let width = options.width.saturating_sub(left + right).max(40);
    let height = match options.height {
        Some(height) => height.saturating_sub(top + bottom).max(40),
        None => default_height(plot, width),
    };
    let mut image = Image::new(options.width, top + height + bottom);
    let area = Area { left, top, width, height };
    let title_end = if is_field { units_left(plot, area, options.width) } else { options.width };
    let title = fitted(&plot.heading(), Size::Large, title_end.saturating_sub(left + GAP));
    image.text(&title, (left, GAP), Align::Left, Size::Large, BLACK);
    if is_field {
        fill_field(&mut image, plot, range, area, options.colormap);
        color_bar(&mut image, plot, (range, &values), area, options.colormap);
    } else {
        fill_series(&mut image, plot, range, area, &left_ticks);
    }
    image.frame(area, BLACK);
    for tick in &left_ticks {
        let y = top + to_index(part(tick.fraction, height), height);
        image.horizontal(left - 1 - TICK, y, TICK, BLACK);
        let at = (left - TICK - 4, y.saturating_sub(line / 2));
        image.text(&tick.label, at, Align::Right, Size::Small, BLACK);
    }
    horizontal_axis(&mut image, plot, area);
    let caption = match &plot.y {
        Some(y) => y.caption(),
        None => plot.units.as_deref().map(|units| units_text(units).to_owned()).unwrap_or_default(),
    };
    image.upwards(&fitted(&caption, Size::Small, height), (GAP / 2, top + height / 2), Size::Small, BLACK);
    let below = top + height + TICK + 4 + line + 4 + line + 4;
    let remarks = fitted(&remarks.join("; "), Size::Small, options.width - left);
    image.text(&remarks, (left, below), Align::Left, Size::Small, GREY);
    image
}

fn no_values(plot: &Plot, options: &ImageOptions) -> Image {
    let mut image = Image::new(options.width, options.height.unwrap_or(200));
    let title = fitted(&plot.heading(), Size::Large, options.width - 2 * GAP);
    image.text(&title, (GAP, GAP), Align::Left, Size::Large, BLACK);
    image.text("no values: all are missing", (GAP, 4 * GAP), Align::Left, Size::Small, GREY);
    image
}

/// About square cells, but neither a strip nor a column; a series is half as high as wide.
fn default_height(plot: &Plot, width: usize) -> usize {
    let (rows, columns) = plot.shape;
    let ratio = match plot.y {
        Some(_) => (as_f64(rows) / as_f64(columns.max(1))).clamp(0.25, 1.0),
        None => 0.45,
    };
    to_index((as_f64(width) * ratio).round(), usize::MAX).max(120)
}

fn vertical_ticks(plot: &Plot, y: &Axis) -> Vec<Tick> {
    let flipped = plot.is_flipped();
    let mut ticks = y.ticks(8);
    for tick in ticks.iter_mut().filter(|_| flipped) {
        tick.fraction = 1.0 - tick.fraction;
    }
    ticks
}

/// The text, or its beginning.
fn fitted(text: &str, size: Size, width: usize) -> String {
    if size.width(text) <= width {
        return text.to_owned();
    }
    let most = width / size.width("m").max(1);
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

fn horizontal_axis(image: &mut Image, plot: &Plot, area: Area) {
    let Area { left, top, width, height } = area;
    let bottom = top + height;
    let mut free = 0;
    for tick in plot.x.ticks((width / 90).max(2)) {
        let x = left + to_index(part(tick.fraction, width), width);
        let half = Size::Small.width(&tick.label) / 2;
        if x < free + half || x + half > image.width {
            continue;
        }
        free = x + half + GAP;
        image.vertical(x, bottom + 1, TICK, BLACK);
        image.text(&tick.label, (x, bottom + TICK + 4), Align::Center, Size::Small, BLACK);
    }
    let caption = fitted(&plot.x.caption(), Size::Small, width);
    let at = (left + width / 2, bottom + TICK + 4 + Size::Small.height() + 4);
    image.text(&caption, at, Align::Center, Size::Small, BLACK);
}

fn fill_field(image: &mut Image, plot: &Plot, range: (f64, f64), area: Area, map: Colormap) {
    let Area { left, top, width, height } = area;
    let values = resample::field(&plot.values, plot.shape, (height, width));
    let flipped = plot.is_flipped();
    for (row, values) in values.chunks(width).enumerate() {
        let y = top + if flipped { height - 1 - row } else { row };
        for (column, &value) in values.iter().enumerate() {
            let x = left + column;
            let color = match plot::fraction(value, range) {
                Some(fraction) => map.color(fraction),
                None => MISSING[usize::from((x + y) % 8 < 2)],
            };
            image.set(x, y, color);
        }
    }
}

fn color_bar(
    image: &mut Image,
    plot: &Plot,
    (range, values): ((f64, f64), &[(f64, String)]),
    area: Area,
    map: Colormap,
) {
    let Area { top, height, .. } = area;
    let left = bar_left(area);
    for row in 0..height {
        let fraction = 1.0 - (as_f64(row) + 0.5) / as_f64(height);
        image.horizontal(left, top + row, BAR, map.color(fraction));
    }
    image.frame(Area { left, width: BAR, ..area }, BLACK);
    for (value, label) in values {
        let Some(fraction) = plot::fraction(*value, range) else { continue };
        let y = top + to_index(part(1.0 - fraction, height), height);
        image.horizontal(left + BAR + 1, y, TICK, BLACK);
        let at = (left + BAR + TICK + 5, y.saturating_sub(Size::Small.height() / 2));
        image.text(label, at, Align::Left, Size::Small, BLACK);
    }
    if let Some(units) = &plot.units {
        let at = (units_left(plot, area, image.width), top.saturating_sub(Size::Small.height() + 4));
        image.text(units_text(units), at, Align::Left, Size::Small, BLACK);
    }
}

fn bar_left(area: Area) -> usize {
    area.left + area.width + 2 * GAP
}

/// The left edge of the units above a color bar: that of the bar, unless they are too long.
fn units_left(plot: &Plot, area: Area, width: usize) -> usize {
    let Some(units) = &plot.units else { return width };
    bar_left(area).min(width.saturating_sub(Size::Small.width(units_text(units)) + 4))
}

/// A range with a margin, so that the line does not touch the frame.
fn padded((low, high): (f64, f64)) -> (f64, f64) {
    let margin = (high - low) * 0.04;
    if margin.is_finite() { (low - margin, high + margin) } else { (low, high) }
}

fn fill_series(image: &mut Image, plot: &Plot, range: (f64, f64), area: Area, left_ticks: &[Tick]) {
    let Area { left, top, width, height } = area;
    for tick in left_ticks {
        image.horizontal(left, top + to_index(part(tick.fraction, height), height), width, GRID);
    }
    for tick in plot.x.ticks((width / 90).max(2)) {
        image.vertical(left + to_index(part(tick.fraction, width), width), top, height, GRID);
    }
    let count = plot.shape.1.min(width);
    let values = resample::field(&plot.values, (1, plot.shape.1), (1, count));
    let point = |(index, &value): (usize, &f64)| {
        let x = as_f64(left) + (as_f64(index) + 0.5) / as_f64(count) * as_f64(width);
        Some((x, as_f64(top) + (1.0 - plot::fraction(value, range)?) * as_f64(height)))
    };
    let points: Vec<Option<(f64, f64)>> = values.iter().enumerate().map(point).collect();
    let mut last = None;
    for (index, point) in points.iter().enumerate() {
        if let Some(to) = *point {
            // A value between two gaps is a dot.
            let alone = last.is_none() && points.get(index + 1).is_none_or(Option::is_none);
            match last {
                Some(from) => image.line(from, to, area, LINE),
                None if alone => image.dot(to, area, LINE),
                None => {}
            }
        }
        last = *point;
    }
}
