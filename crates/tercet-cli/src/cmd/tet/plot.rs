//! `tet plot`: draw a series or a field.

use std::io::Write as _;
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde::Serialize;
use tercet::Format;
use tercet::plot::{self, Colormap, Colors, ImageOptions, Plot, PlotError, TextOptions};
use tercet::tet::File;

use super::selection::SelectArgs;
use crate::args::{ForceArgs, JsonArgs, read_options};
use crate::failure::{Failure, Outcome};
use crate::input::{Input, must_be};
use crate::output::{Output, atomic_file, display_path, stream_failure};
use crate::render::{human_size, shell_quoted};
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tet plot weather.tet t2m --isel time=0                     a map in the terminal
  tet plot weather.tet t2m --sel lat=~52.5 --sel lon=~13.4   a series
  tet plot weather.tet t2m --isel time=0 --png map.png       a PNG image

Values are decoded; missing ones are blank. Larger fields are reduced to block means. NO_COLOR=1 draws with \
characters instead of colors, COLORTERM=truecolor with 24-bit colors.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Dataset to draw
    #[arg(value_name = "DATASET")]
    dataset: String,
    #[command(flatten)]
    select: SelectArgs,
    /// Write a PNG image instead of text; `-` is standard output
    #[arg(long, value_name = "FILE")]
    png: Option<PathBuf>,
    /// Width in characters, or pixels of a PNG image [default: width of the terminal; 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(20..=8192))]
    width: Option<u32>,
    /// Height in lines, or pixels of a PNG image [default: by the shape of the values]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=8192))]
    height: Option<u32>,
    /// Colormap
    #[arg(long, value_name = "NAME", default_value = "viridis")]
    cmap: ColormapName,
    /// Range of the color scale: `250..300` [default: min and max of the values]
    #[arg(long, value_name = "MIN..MAX", allow_hyphen_values = true, value_parser = parse_range)]
    range: Option<(f64, f64)>,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    json: JsonArgs,
}

/// The name of a color map.
#[derive(Clone, Copy, Debug)]
struct ColormapName(Colormap);

impl ValueEnum for ColormapName {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [ColormapName; Colormap::ALL.len()] = {
            let mut all = [ColormapName(Colormap::Viridis); Colormap::ALL.len()];
            let mut number = 0;
            while number < all.len() {
                all[number] = ColormapName(Colormap::ALL[number]);
                number += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}

/// The JSON summary of an image.
#[derive(Debug, Serialize)]
struct ImageJson {
    path: String,
    bytes: usize,
    width: usize,
    height: usize,
}

/// Values that are kept on each axis: more than a terminal or a default image shows.
const MAX_VALUES: u64 = 2048;

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    if args.png.is_none() {
        out.must_not_be_json("plot")?;
    }
    if let Some(path) = &args.png
        && path.extension().is_some_and(|extension| !extension.eq_ignore_ascii_case("png"))
    {
        let path = display_path(path);
        return Err(Failure::request(format!("{path}: not a PNG file name; use the extension `.png`")));
    }
    let output = args.png.as_deref().map(|path| Output::open(path, args.force.force)).transpose()?;
    if let Some(output) = &output {
        output.must_not_be(&args.input.path)?;
        output.reserve_stdout(out)?;
    }
    let source = must_be(args.input.source()?, Format::Tet)?;
    let file = File::from_source(source, read_options())?;
    let select = args.select.apply(file.dataset(&args.dataset)?)?;
    let most = args.width.map_or(MAX_VALUES, |width| MAX_VALUES.max(width.into()));
    let plot = plot::from_tet(&select, most).map_err(explained)?.with_range(args.range);
    match output {
        None => out.line(plot.to_text(&args.text_options()).trim_end())?,
        Some(output) => args.write_png(&plot, output, out)?,
    }
    Ok(Outcome::Done)
}

/// `MIN..MAX`.
fn parse_range(text: &str) -> Result<(f64, f64), String> {
    let wrong = || format!("invalid range `{text}`; expected two numbers, like `250..300`");
    let (low, high) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let (low, high) = (number(low).ok_or_else(wrong)?, number(high).ok_or_else(wrong)?);
    if low < high { Ok((low, high)) } else { Err(wrong()) }
}

/// An error with the options that select fewer axes.
fn explained(error: PlotError) -> Failure {
    match error {
        PlotError::Tet(error) => (*error).into(),
        PlotError::Dimensions { ref axes, .. } => {
            let failure = Failure::request(error.to_string());
            // The last two axes are most often those of a map.
            let surplus = axes.iter().take(axes.len().saturating_sub(2));
            let options = surplus.map(|axis| match &axis.first {
                Some(first) => format!("--sel {}", shell_quoted(&format!("{}={first}", axis.name))),
                None => format!("--isel {}", shell_quoted(&format!("{}=0", axis.name))),
            });
            let options: Vec<String> = options.collect();
            if options.is_empty() {
                return failure.with_hint("select a range: `--sel AXIS=FROM..TO`");
            }
            failure.with_hint(format!("select one position of the others, like `{}`", options.join(" ")))
        }
        other => Failure::request(other.to_string()),
    }
}

impl Args {
    fn text_options(&self) -> TextOptions {
        let terminal = terminal_size::terminal_size_of(std::io::stdout());
        let (width, height) = terminal.map_or((80, 24), |(width, height)| (width.0.into(), height.0.into()));
        let size = |given: Option<u32>| given.and_then(|given| usize::try_from(given).ok());
        // Title, axis, scale and prompt take ten lines.
        TextOptions::default()
            .with_width(size(self.width).unwrap_or(width))
            .with_height(size(self.height))
            .with_max_height(usize::max(height, 24) - 10)
            .with_colors(colors())
            .with_colormap(self.cmap.0)
    }

    fn write_png(&self, plot: &Plot, output: Output, out: &mut Ui) -> Result<(), Failure> {
        let size = |given: Option<u32>| given.and_then(|given| usize::try_from(given).ok());
        let mut options = ImageOptions::default().with_height(size(self.height)).with_colormap(self.cmap.0);
        if let Some(width) = size(self.width) {
            options = options.with_width(width);
        }
        let image = plot.to_image(&options);
        let bytes = image.to_png().map_err(|error| Failure::request(error.to_string()))?;
        let (name, path) = (output.name(), self.png.clone().unwrap_or_default());
        match output {
            Output::Path(path) => {
                let mut file = atomic_file(&path, self.force.force)?;
                file.write_all(&bytes)
                    .map_err(|error| Failure::io(&format!("cannot write {name}"), &error))?;
                file.publish()?;
            }
            Output::Stream(mut stream) => {
                stream.write_all(&bytes).map_err(|error| stream_failure(&error))?;
                stream.finish()?;
            }
            Output::Stdout => {
                return out.bytes()?.write_all(&bytes).map_err(|error| Failure::output(&error));
            }
        }
        let (width, height) = (image.width(), image.height());
        if self.json.json {
            let path = path.to_string_lossy().into_owned();
            return out.json(&ImageJson { path, bytes: bytes.len(), width, height });
        }
        out.summary(format_args!("{name}: {width}×{height} pixels, {}", human_size(bytes.len() as u64)))
    }
}

/// The colors of standard output, by the usual environment variables.
pub(crate) fn colors() -> Colors {
    if anstream::AutoStream::choice(&std::io::stdout()) == anstream::ColorChoice::Never {
        return Colors::None;
    }
    match std::env::var("COLORTERM") {
        Ok(value) if matches!(value.as_str(), "truecolor" | "24bit") => Colors::True,
        _ => Colors::Palette,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_two_ascending_numbers() {
        assert_eq!(parse_range("250..300"), Ok((250.0, 300.0)));
        assert_eq!(parse_range("-1.5 .. 2e3"), Ok((-1.5, 2000.0)));
        for wrong in ["", "1", "2..1", "1..1", "a..b", "nan..1", "1..inf"] {
            assert!(parse_range(wrong).is_err(), "{wrong}");
        }
    }
}
