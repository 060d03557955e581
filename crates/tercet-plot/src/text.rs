//! Plots as text for terminals.

use tercet_core::escape;
use unicode_width::UnicodeWidthStr as _;

use crate::colormap::{Colormap, Rgb};
use crate::plot::Plot;
use crate::ticks::Tick;

mod field;
mod series;

#[cfg(test)]
mod tests;

/// Options of text output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextOptions {
    /// Columns of the terminal.
    pub width: usize,
    /// Lines of the plot, without title and scale. By default the shape of the values decides, within `max_height`.
    pub height: Option<usize>,
    /// The largest height if none is set.
    pub max_height: usize,
    /// The colors that the terminal has.
    pub colors: Colors,
    /// The colors of values.
    pub colormap: Colormap,
}

/// The colors that a terminal has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colors {
    /// None: values are shades of characters.
    #[default]
    None,
    /// The palette of 256 colors.
    Palette,
    /// 24 bits per color.
    True,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { width: 80, height: None, max_height: 20, colors: Colors::None, colormap: Colormap::default() }
    }
}

impl TextOptions {
    /// Sets the width.
    pub fn with_width(mut self, width: usize) -> Self {
        self.width = width;
        self
    }

    /// Sets the height.
    pub fn with_height(mut self, height: Option<usize>) -> Self {
        self.height = height;
        self
    }

    /// Sets the largest height.
    pub fn with_max_height(mut self, height: usize) -> Self {
        self.max_height = height;
        self
    }

    /// Sets the colors of the terminal.
    pub fn with_colors(mut self, colors: Colors) -> Self {
        self.colors = colors;
        self
    }

    /// Sets the colors of values.
    pub fn with_colormap(mut self, colormap: Colormap) -> Self {
        self.colormap = colormap;
        self
    }
}

/// The smallest plot that is drawn.
const MIN_SIZE: (usize, usize) = (20, 3);
/// The largest one.
const MAX_SIZE: (usize, usize) = (1000, 500);

impl Plot {
    /// The plot as lines of text, with escape sequences for colors. Each line ends with a line break.
    pub fn to_text(&self, options: &TextOptions) -> String {
        let options = TextOptions { width: options.width.clamp(MIN_SIZE.0, MAX_SIZE.0), ..*options };
        let mut lines = vec![bold(&cut(&escape::name(&self.heading()), options.width), options.colors)];
        match self.drawn_range() {
            None => lines.push("no values: all are missing".to_owned()),
            Some(range) => match &self.y {
                Some(y) => field::draw(self, y, range, &options, &mut lines),
                None => series::draw(self, range, &options, &mut lines),
            },
        }
        lines.iter().flat_map(|line| [line.trim_end(), "\n"]).collect()
    }
}

/// The beginning of a text that fits.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        if out.width() + 2 > width {
            break;
        }
        out.push(c);
    }
    out + "…"
}

fn bold(text: &str, colors: Colors) -> String {
    if colors == Colors::None { text.to_owned() } else { format!("\x1b[1m{text}\x1b[0m") }
}

/// The cell of a fraction of an axis.
fn cell(fraction: f64, cells: usize) -> usize {
    crate::resample::to_index(fraction * crate::resample::as_f64(cells), cells)
}

/// The lines under a plot: axis, tick labels, caption. `left` is the width of the labels of the vertical axis.
fn bottom(ticks: &[Tick], caption: &str, left: usize, width: usize, lines: &mut Vec<String>) {
    let mut rule: Vec<char> = vec!['─'; width];
    let mut labels: Vec<char> = vec![' '; width];
    let mut free = 0;
    for tick in ticks {
        let at = cell(tick.fraction, width);
        let text: Vec<char> = tick.label.chars().collect();
        let start = at.saturating_sub(text.len() / 2).min(width.saturating_sub(text.len()));
        if start < free || text.len() > width {
            continue;
        }
        rule[at] = '┬';
        labels[start..start + text.len()].copy_from_slice(&text);
        free = start + text.len() + 1;
    }
    let text = |chars: Vec<char>| chars.into_iter().collect::<String>();
    lines.push(format!("{:left$} └{}", "", text(rule)));
    lines.push(format!("{:left$}  {}", "", text(labels)));
    let caption = cut(&escape::name(caption), width);
    let indent = left + 2 + (width - caption.width().min(width)) / 2;
    lines.push(format!("{:indent$}{caption}", ""));
}

/// The ticks of a vertical axis of this many lines, from top to bottom: a label for some lines.
fn left_labels(ticks: impl Iterator<Item = (f64, String)>, lines: usize) -> Vec<Option<String>> {
    let mut labels = vec![None; lines];
    for (fraction, label) in ticks {
        labels[cell(fraction, lines)].get_or_insert(label);
    }
    labels
}

/// The widest of some labels.
fn widest(labels: &[Option<String>]) -> usize {
    labels.iter().flatten().map(|label| label.width()).max().unwrap_or(0)
}

/// Sets the color of the text, and its background.
fn colors(foreground: Option<Rgb>, background: Option<Rgb>, depth: Colors) -> String {
    let code = |layer: u8, color: Rgb| match depth {
        Colors::True => format!("{layer};2;{};{};{}", color[0], color[1], color[2]),
        _ => format!("{layer};5;{}", palette(color)),
    };
    let mut codes = vec!["0".to_owned()];
    codes.extend(foreground.map(|color| code(38, color)));
    codes.extend(background.map(|color| code(48, color)));
    format!("\x1b[{}m", codes.join(";"))
}

/// The nearest color of the palette: a cube of six levels, and greys.
fn palette([red, green, blue]: Rgb) -> u8 {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let level =
        |value: u8| (0u8..6).min_by_key(|&level| LEVELS[usize::from(level)].abs_diff(value)).unwrap_or(0);
    let (r, g, b) = (level(red), level(green), level(blue));
    let square = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
    let distance = |[r, g, b]: Rgb| square(r, red) + square(g, green) + square(b, blue);
    let cube = [r, g, b].map(|level| LEVELS[usize::from(level)]);
    let grey = (0u8..24).min_by_key(|&grey| distance([8 + grey * 10; 3])).unwrap_or(0);
    if distance([8 + grey * 10; 3]) < distance(cube) { 232 + grey } else { 16 + 36 * r + 6 * g + b }
}
