//! `tet advise`: sizes and speeds of datasets with other compressions and roundings.

use serde::Serialize;
use tercet::Format;
use tercet::core::{Shape, escape};
use tercet::tet::{self, Advice, Compression, File, Rounding};

use super::arrays::syntax;
use crate::args::{JsonArgs, read_options};
use crate::failure::{Failure, Outcome};
use crate::input::{Input, must_be};
use crate::render::{Table, human_size, shell_quoted, significant};
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tet advise weather.tet                     every dataset
  tet advise weather.tet t2m                 one dataset
  tet advise weather.tet t2m --max-error 0.01 --max-error 0.1

A sample of at most 8 MiB per dataset is measured on one thread: sizes are estimates. The automatic choice is marked \
with *.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Datasets to measure [default: all]
    #[arg(value_name = "DATASET")]
    datasets: Vec<String>,
    /// Maximum error to try. Repeatable [default: powers of ten below a hundredth of the range of the values]
    #[arg(long, value_name = "E", allow_negative_numbers = true, value_parser = syntax::parse_max_error)]
    max_error: Vec<Rounding>,
    #[command(flatten)]
    json: JsonArgs,
}

/// The trials of a dataset as JSON.
#[derive(Debug, Serialize)]
struct AdviceJson {
    dataset: String,
    dtype: &'static str,
    shape: Shape,
    raw_bytes: u64,
    stored_bytes: u64,
    sample_bytes: u64,
    trials: Vec<TrialJson>,
}

#[derive(Debug, Serialize)]
struct TrialJson {
    compression: String,
    max_error: Option<f64>,
    /// Whether `create` chooses it by default.
    automatic: bool,
    bytes: u64,
    ratio: f64,
    max_abs_error: f64,
    encode_mb_s: f64,
    decode_mb_s: f64,
    /// The options of `create` and `repack`.
    options: String,
}

/// The list of all datasets, and the file.
#[derive(Debug, Serialize)]
struct Report {
    path: String,
    datasets: Vec<AdviceJson>,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let source = must_be(args.input.source()?, Format::Tet)?;
    let file = File::from_source(source, read_options())?;
    let error = |rounding: &Rounding| match rounding {
        Rounding::MaxError(error) => Some(*error),
        Rounding::KeepBits(_) => None,
    };
    let errors: Vec<f64> = args.max_error.iter().filter_map(error).collect();
    let mut datasets = Vec::new();
    if args.datasets.is_empty() {
        datasets.extend(file.datasets());
    }
    for name in &args.datasets {
        datasets.push(file.dataset(name)?);
    }
    let bar = out.bar("measuring", 0);
    let mut advice = Vec::with_capacity(datasets.len());
    for dataset in &datasets {
        advice.push(AdviceJson::new(&tet::advise(dataset, &errors, &bar)?));
    }
    drop(bar);
    let report = Report { path: file.name().to_owned(), datasets: advice };
    if args.json.json {
        out.json(&report)?;
    } else {
        report.print(out)?;
    }
    Ok(Outcome::Done)
}

impl AdviceJson {
    fn new(advice: &Advice) -> Self {
        let trials = advice.trials.iter().map(|trial| {
            let compression = match trial.compression {
                Compression::Zstd { level } => format!("zstd:{level}"),
                _ => "none".to_owned(),
            };
            let max_error = match trial.rounding {
                Some(Rounding::MaxError(error)) => Some(error),
                _ => None,
            };
            let options = match max_error {
                Some(error) => format!("--max-error {error}"),
                None => format!("--compression {compression}"),
            };
            TrialJson {
                automatic: trial.rounding.is_none() && trial.compression == advice.automatic,
                compression,
                max_error,
                bytes: trial.measured.bytes,
                ratio: rounded(trial.measured.ratio),
                max_abs_error: trial.measured.max_abs_error,
                encode_mb_s: trial.measured.encode_mb_s.round(),
                decode_mb_s: trial.measured.decode_mb_s.round(),
                options,
            }
        });
        Self {
            trials: trials.collect(),
            dataset: advice.dataset.clone(),
            dtype: advice.dtype.name(),
            shape: advice.shape.clone(),
            raw_bytes: advice.raw_bytes,
            stored_bytes: advice.stored_bytes,
            sample_bytes: advice.sample_bytes,
        }
    }
}

fn rounded(ratio: f64) -> f64 {
    (ratio * 1e4).round() / 1e4
}

impl Report {
    fn print(&self, out: &mut Ui) -> Result<(), Failure> {
        for (number, advice) in self.datasets.iter().enumerate() {
            if number > 0 {
                out.line("")?;
            }
            let (name, dtype, shape) = (escape::name(&advice.dataset), advice.dtype, &advice.shape);
            let (raw, stored) = (human_size(advice.raw_bytes), human_size(advice.stored_bytes));
            out.line(format_args!("{name}: {dtype} {shape}, {raw}, stored in {stored}"))?;
            let heads = ["", "options", ">size", ">of raw", ">max error", ">encode MB/s", ">decode MB/s"];
            let mut table = Table::new(&heads);
            for trial in &advice.trials {
                table.row([
                    if trial.automatic { "*" } else { "" }.to_owned(),
                    trial.options.clone(),
                    human_size(trial.bytes),
                    format!("{:.0} %", trial.ratio * 100.0),
                    significant(trial.max_abs_error),
                    trial.encode_mb_s.to_string(),
                    trial.decode_mb_s.to_string(),
                ]);
            }
            out.line(table)?;
        }
        if self.datasets.is_empty() {
            return out.line("no datasets");
        }
        let path = shell_quoted(&self.path);
        out.note(format_args!("note: rewrite the file with `tet repack {path} OUT.tet OPTIONS`"))
    }
}
