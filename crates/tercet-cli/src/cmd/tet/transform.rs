//! `tet transform`: an array of the same shape. `tet covariance`, `tet correlation`: matrices.

use clap::ValueEnum;
use tercet::tet::{self, Comparison, Method, Op, ReadOptions, Request, Select};

use super::report::warn_if_partly_protected;
use super::result_text;
use super::save::{SaveArgs, explain, warn};
use super::selection::SelectArgs;
use crate::args::{LimitArgs, limits};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::ui::Ui;

const TRANSFORM_EXAMPLES: &str = "\
Examples:
  tet transform era5.tet t2m center --over time -o anomaly.tet
  tet transform era5.tet t2m zscore --over time --sel lat=60..30 -o z.npy
  tet transform scores.tet x softmax --over class --json

Packed values are decoded. Missing values are not used, and are NaN in the result, which must fit in memory.";

const MATRIX_EXAMPLES: &str = "\
Examples:
  tet covariance stations.tet t2m --over time            of all pairs of stations
  tet correlation stations.tet t2m --over time -o r.tet

The dataset has two axes: that of the observations, and that of the variables, of which there are at most 1024. Packed values \
are decoded; a missing value is an error.";

/// Options of the verbs of this module.
#[derive(Debug, clap::Args)]
struct Common {
    #[command(flatten)]
    select: SelectArgs,
    /// Use stored values: packed values are not decoded, and fill values are ordinary values
    #[arg(long)]
    raw: bool,
    #[command(flatten)]
    save: SaveArgs,
    #[command(flatten)]
    limit: LimitArgs,
    /// Explain how the result is computed
    #[arg(long)]
    explain: bool,
    /// Skip checksum verification, for data recovery
    #[arg(long)]
    ignore_checksums: bool,
}

/// The arguments of `tet transform`.
#[derive(Debug, clap::Args)]
#[command(after_help = TRANSFORM_EXAMPLES, mut_arg("limit", |arg| arg.help("Print at most N rows; 0 prints all [default: 32]")))]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Dataset name
    #[arg(value_name = "DATASET")]
    dataset: String,
    /// Transform, with statistics over the axes of `--over`
    #[arg(value_name = "METHOD")]
    method: MethodArg,
    /// Axes of the statistics, by name or number [default: all]
    #[arg(long, value_name = "AXES", value_delimiter = ',', allow_hyphen_values = true)]
    over: Vec<String>,
    /// Use matching values only: `value > 250 and value <= 300`; others are NaN in the result
    #[arg(long = "where", value_name = "FILTER", allow_hyphen_values = true)]
    filter: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// The arguments of `tet covariance` and `tet correlation`.
#[derive(Debug, clap::Args)]
#[command(after_help = MATRIX_EXAMPLES, mut_arg("limit", |arg| arg.help("Print at most N rows; 0 prints all [default: 32]")))]
pub(crate) struct MatrixArgs {
    #[command(flatten)]
    input: Input,
    /// Dataset name
    #[arg(value_name = "DATASET")]
    dataset: String,
    /// Axis of the observations, by name or number
    #[arg(long, value_name = "AXIS", allow_hyphen_values = true)]
    over: String,
    #[command(flatten)]
    common: Common,
}

/// The methods of a transform.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum MethodArg {
    /// x − mean
    Center,
    /// (x − mean) / std
    Zscore,
    /// x / std
    Scale,
    /// (x − min) / (max − min)
    Minmax,
    /// x / Σ|x|
    L1,
    /// x / √Σx²
    L2,
    /// ln(1 + (x − min))
    Log1p,
    /// √(x − min)
    Sqrt,
    /// exp(x − max) / Σexp(x − max)
    Softmax,
}

impl From<MethodArg> for Method {
    fn from(method: MethodArg) -> Self {
        match method {
            MethodArg::Center => Self::Center,
            MethodArg::Zscore => Self::Zscore,
            MethodArg::Scale => Self::Scale,
            MethodArg::Minmax => Self::Minmax,
            MethodArg::L1 => Self::L1,
            MethodArg::L2 => Self::L2,
            MethodArg::Log1p => Self::Log1p,
            MethodArg::Sqrt => Self::Sqrt,
            MethodArg::Softmax => Self::Softmax,
        }
    }
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    args.common.run((&args.input, &args.dataset), out, |mut select| {
        if let Some(text) = &args.filter {
            let comparisons = Comparison::parse(text).map_err(|error| {
                let failure = Failure::request(format!("`--where`: {}", error.detail));
                failure.with_excerpt_to_end(text, &error.at)
            })?;
            select = comparisons.into_iter().fold(select, Select::filter);
        }
        let dataset = select.dataset();
        let axes = args.over.iter().map(|axis| dataset.axis(axis.trim())).collect::<Result<Vec<_>, _>>()?;
        Ok(select.transform(args.method.into()).over(axes).in_memory().request()?)
    })
}

/// Runs a verb whose result is a matrix.
pub(crate) fn matrix(args: &MatrixArgs, op: Op, out: &mut Ui) -> Result<Outcome, Failure> {
    args.common.run((&args.input, &args.dataset), out, |select| {
        let axis = select.dataset().axis(args.over.trim())?;
        Ok(select.reduce([op]).over([axis]).request()?)
    })
}

impl Common {
    fn run(
        &self,
        (input, dataset): (&Input, &str),
        out: &mut Ui,
        request: impl for<'f> FnOnce(Select<'f>) -> Result<Request<'f>, Failure>,
    ) -> Result<Outcome, Failure> {
        let target = self.save.open((!input.is_stdin()).then_some(&*input.path), out)?;
        let options = ReadOptions::new().with_verify(!self.ignore_checksums).with_limits(limits());
        let file = input.open_tet(options)?;
        warn_if_partly_protected(&file, out)?;
        let select = self.select.apply(file.dataset(dataset)?)?;
        let request = request(if self.raw { select.raw() } else { select })?;
        let bar = out.bar("computing", 0);
        let results = request.results(&bar).map_err(|error| match error.kind() {
            tet::ErrorKind::OverBudget { .. } => Failure::from(error)
                .with_hint("select a part of it, or run a query whose `write` names a file: `tet query`"),
            _ => error.into(),
        })?;
        drop(bar);
        warn(&results, out)?;
        match target {
            Some(target) => target.save(&results, out)?,
            None if out.is_json() => out.json(&results)?,
            None => result_text::print(&results, self.limit.or(result_text::ROWS), out)?,
        }
        if self.explain {
            explain(&results, out)?;
        }
        Ok(Outcome::Done)
    }
}
