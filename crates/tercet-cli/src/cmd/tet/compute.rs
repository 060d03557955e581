//! `tet mean`, `tet max` and the other verbs that reduce a dataset.

use tercet::tet::{self, Comparison, Dataset, Group, Op, ReadOptions, Reduce, TimePart, Weights, Window};

use super::extract::Access;
use super::report::warn_if_partly_protected;
use super::result_text;
use super::save::{SaveArgs, explain, warn};
use super::selection::{SelectArgs, split};
use crate::args::{LimitArgs, limits};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tet mean era5.tet t2m                                  one number
  tet mean era5.tet t2m --over time                      a map
  tet max era5.tet t --over lat,lon --sel level=850 --sel lat=60..30
  tet mean era5.tet t2m --weights 'cos(lat)' --over lat,lon -o series.csv
  tet mean era5.tet t2m --group-by time.month -o months.tet
  tet mean era5.tet t2m --rolling time=24 --json
  tet count era5.tet t2m --where 'value > 300' --over time

Missing values (NaN, _FillValue, values outside of valid_range) are skipped, and packed values are
decoded.";

/// The arguments of every verb that reduces a dataset.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("limit", |arg| arg.help("Print at most N rows; 0 prints all [default: 32]")))]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Dataset name
    #[arg(value_name = "DATASET")]
    dataset: String,
    /// Axes to reduce, by name or number [default: all; with groups or windows, their axis alone]
    #[arg(long, value_name = "AXES", value_delimiter = ',', allow_hyphen_values = true)]
    over: Vec<String>,
    #[command(flatten)]
    select: SelectArgs,
    /// Use matching values only: `value > 250 and value <= 300`
    #[arg(long = "where", value_name = "FILTER", allow_hyphen_values = true)]
    filter: Option<String>,
    /// Compute one result per group: `time.month`, `time.season`, `time.year`, `time.day`, `time.hour`, or `AXIS` for
    /// one group per label
    #[arg(long, value_name = "AXIS[.PART]")]
    group_by: Option<String>,
    /// Compute one result per window of SIZE adjacent positions; a window has the label of its last position
    #[arg(long, value_name = "AXIS=SIZE")]
    rolling: Option<String>,
    /// Weight the positions of an axis: `cos(lat)` for the area of grid cells
    #[arg(long, value_name = "WEIGHTS")]
    weights: Option<String>,
    /// Compute further operations in the same pass: `max,std,count`
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    ops: Vec<String>,
    /// Skip missing values (default)
    #[arg(long, overrides_with = "no_skipna")]
    skipna: bool,
    /// Include missing values as NaN: results from them are NaN
    #[arg(long, conflicts_with = "raw")]
    no_skipna: bool,
    /// Use stored values: packed values are not decoded, and fill values and NaN are not skipped
    #[arg(long, conflicts_with = "skipna")]
    raw: bool,
    #[command(flatten)]
    save: SaveArgs,
    #[command(flatten)]
    limit: LimitArgs,
    /// Explain how the result is computed
    #[arg(long)]
    explain: bool,
    /// Ignore chunk statistics; compute from values only
    #[arg(long)]
    no_stats: bool,
    /// Skip checksum verification, for data recovery
    #[arg(long)]
    ignore_checksums: bool,
    /// Access method: `mmap`, or `pread` for files that may be truncated while they are read
    #[arg(long, value_name = "METHOD", default_value = "pread")]
    access: Access,
}

/// The arguments of `tet quantile`.
#[derive(Debug, clap::Args)]
pub(crate) struct QuantileArgs {
    #[command(flatten)]
    args: Args,
    /// Quantiles between 0 and 1: `0.9`, or several: `0.1,0.5,0.9`
    #[arg(long = "q", value_name = "Q", value_delimiter = ',', required = true)]
    quantiles: Vec<f64>,
}

/// The arguments of `tet histogram`.
#[derive(Debug, clap::Args)]
pub(crate) struct HistogramArgs {
    #[command(flatten)]
    args: Args,
    /// Number of bins of equal width
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=4096))]
    bins: u32,
    /// Range of the bins; values outside are in no bin and are counted separately [default: min and max of all values]
    #[arg(long, value_name = "MIN..MAX", allow_hyphen_values = true)]
    range: Option<String>,
}

/// Runs a verb of one operation.
pub(crate) fn run(args: &Args, op: Op, out: &mut Ui) -> Result<Outcome, Failure> {
    run_ops(args, vec![op], out)
}

pub(crate) fn quantile(args: &QuantileArgs, out: &mut Ui) -> Result<Outcome, Failure> {
    let ops = args.quantiles.iter().map(|&q| Op::Quantile { q }).collect();
    run_ops(&args.args, ops, out)
}

pub(crate) fn histogram(args: &HistogramArgs, out: &mut Ui) -> Result<Outcome, Failure> {
    let range = args.range.as_deref().map(|text| {
        let bound = |bound: &str| bound.trim().parse::<f64>().ok();
        let bounds = text.split_once("..").and_then(|(min, max)| Some((bound(min)?, bound(max)?)));
        bounds.ok_or_else(|| {
            Failure::request(format!("`--range {text}`: expected MIN..MAX"))
                .with_hint("write `--range 250..310`")
        })
    });
    let range = range.transpose()?;
    run_ops(&args.args, vec![Op::Histogram { bins: args.bins, range }], out)
}

fn run_ops(args: &Args, mut ops: Vec<Op>, out: &mut Ui) -> Result<Outcome, Failure> {
    for name in &args.ops {
        let op: Op = name.trim().parse().map_err(|unknown: tet::UnknownOp| {
            let failure = Failure::request(format!("`--ops`: {unknown}"));
            match &unknown.nearest {
                Some(nearest) => failure.with_hint(format!("did you mean `{nearest}`?")),
                None if matches!(&*unknown.name, "quantile" | "histogram") => failure
                    .with_hint(format!("write `quantile_0.9` for a quantile, or use `tet {}`", unknown.name)),
                None => failure.with_hint(format!("operations: {}", Op::NAMES.join(", "))),
            }
        })?;
        if !ops.contains(&op) {
            ops.push(op);
        }
    }
    let target = args.save.open((!args.input.is_stdin()).then_some(&*args.input.path), out)?;
    let file = args.open()?;
    warn_if_partly_protected(&file, out)?;
    let request = args.reduce(file.dataset(&args.dataset)?, ops)?.request()?;
    let bar = out.bar("computing", 0);
    let results = request.results(&bar)?;
    drop(bar);
    warn(&results, out)?;
    match target {
        Some(target) => target.save(&results, out)?,
        None if out.is_json() => out.json(&results)?,
        None => result_text::print(&results, args.limit.or(result_text::ROWS), out)?,
    }
    if args.explain {
        explain(&results, out)?;
    }
    Ok(Outcome::Done)
}

impl Args {
    fn open(&self) -> Result<tet::File, Failure> {
        let options = ReadOptions::new().with_verify(!self.ignore_checksums).with_limits(limits());
        match self.access {
            Access::Mmap if self.input.is_on_disk() => {
                Ok(tet::File::open_with(&self.input.path, options.with_access(tet::Access::Mmap))?)
            }
            _ => self.input.open_tet(options),
        }
    }

    /// The reduction of the selected part of a dataset.
    fn reduce<'f>(&self, dataset: Dataset<'f>, ops: Vec<Op>) -> Result<Reduce<'f>, Failure> {
        let mut select = self.select.apply(dataset)?.statistics(!self.no_stats);
        if let Some(text) = &self.filter {
            let comparisons = Comparison::parse(text).map_err(|error| {
                let failure = Failure::request(format!("`--where`: {}", error.detail));
                failure.with_excerpt_to_end(text, &error.at)
            })?;
            select = comparisons.into_iter().fold(select, tet::Select::filter);
        }
        if self.raw {
            select = select.raw();
        } else if self.no_skipna {
            select = select.skipna(false);
        }
        let mut axes =
            self.over.iter().map(|axis| dataset.axis(axis.trim())).collect::<Result<Vec<_>, _>>()?;
        let over_all = axes.is_empty();
        let mut reduce = select.reduce(ops);
        if let Some(text) = &self.group_by {
            let (axis, group) = group(dataset, text)?;
            axes.extend(over_all.then_some(axis));
            reduce = reduce.group_by(group);
        }
        if let Some(text) = &self.rolling {
            let (axis, size) = split(text, "--rolling", "time=24")?;
            let axis = dataset.axis(axis)?;
            let size = size.parse().map_err(|_| {
                let failure =
                    Failure::request(format!("`--rolling {text}`: invalid number of positions `{size}`"));
                failure.with_hint("write `--rolling time=24`")
            })?;
            axes.extend(over_all.then_some(axis));
            reduce = reduce.window(Window::rolling(axis, size));
        }
        if let Some(text) = &self.weights {
            let weights = Weights::parse(text).ok_or_else(|| {
                let failure = Failure::request(format!("`--weights {text}`: unknown weights"));
                failure.with_hint("write `--weights 'cos(lat)'` with the name of the axis of latitudes")
            })?;
            reduce = reduce.weights(weights);
        }
        Ok(reduce.over(axes).with_shared_bins()?)
    }
}

/// The axis and the groups of `AXIS` or `AXIS.PART`.
fn group(dataset: Dataset<'_>, text: &str) -> Result<(usize, Group), Failure> {
    // An axis may have a dot in its name.
    let by_labels = |axis| (axis, Group::labels(axis, str::to_owned));
    match text.rsplit_once('.') {
        Some((axis, part)) if dataset.axis(text).is_err() => {
            let axis = dataset.axis(axis)?;
            let part = TimePart::parse(part).ok_or_else(|| {
                let failure =
                    Failure::request(format!("`--group-by {text}`: unknown part of a time `{part}`"));
                failure.with_hint("the parts are year, season, month, day and hour")
            })?;
            Ok((axis, Group::time(axis, part)))
        }
        _ => Ok(by_labels(dataset.axis(text)?)),
    }
}
