//! `tgm convert-netcdf`, `convert-grib`, `to-netcdf`, `to-grib`: conversions under the names of the reference implementation.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tercet::convert::arrays::{
    self, ArraySource, ConvertOptions, Fidelity, OutputFormat, Plan, Split, View, ViewOptions,
};
use tercet::core::{Class, escape, threads};
use tercet::tet::Compression;

use crate::args::{ForceArgs, JsonArgs};
use crate::cmd::convert::{SplitBy, open};
use crate::failure::{Failure, Outcome};
use crate::output::{display_path, json_path, write_by_path};
use crate::ui::Ui;

/// Options of conversions to messages.
#[derive(Debug, clap::Args)]
pub(super) struct ToMessages {
    /// Input files, directories or URLs
    #[arg(value_name = "INPUTS", required = true)]
    inputs: Vec<PathBuf>,
    /// Output file or URL; `-` is standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Write nothing unless everything is exact
    #[arg(long)]
    strict: bool,
    /// Number of threads
    #[arg(long, value_name = "N")]
    jobs: Option<std::num::NonZeroUsize>,
    /// Compress with Zstandard at this level; 0 for none
    #[arg(long, value_name = "LEVEL")]
    zstd: Option<i32>,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    json: JsonArgs,
}

const NETCDF_EXAMPLES: &str = "\
Examples:
  tgm convert-netcdf era5.nc -o era5.tgm                      one message with all variables
  tgm convert-netcdf era5.nc -o era5.tgm --split-by record    one message per time";

#[derive(Debug, clap::Args)]
#[command(after_help = NETCDF_EXAMPLES)]
pub(crate) struct NetcdfArgs {
    #[command(flatten)]
    common: ToMessages,
    /// How variables are divided into messages
    #[arg(long, value_name = "BY", default_value = "file")]
    split_by: SplitBy,
    /// Keep CF attributes. They are always kept; the option is accepted for compatibility
    #[arg(long, hide = true)]
    cf: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct GribArgs {
    #[command(flatten)]
    common: ToMessages,
    /// Write one message per field instead of one message with all fields
    #[arg(long)]
    split: bool,
    /// Keep all keys. They are always kept; the option is accepted for compatibility
    #[arg(long, hide = true)]
    all_keys: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// Input .tgm file or URL
    #[arg(value_name = "INPUT")]
    input: PathBuf,
    /// Output file or URL; `-` is standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Write nothing unless everything is exact
    #[arg(long)]
    strict: bool,
    /// Number of threads
    #[arg(long, value_name = "N")]
    jobs: Option<std::num::NonZeroUsize>,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Serialize)]
struct NamedJson<'a> {
    output: String,
    output_format: &'a str,
    written: bool,
    inputs: Vec<InputJson<'a>>,
}

#[derive(Serialize)]
struct InputJson<'a> {
    input: String,
    fidelity: &'a Fidelity,
}

pub(super) fn netcdf(args: &NetcdfArgs, out: &mut Ui) -> Result<Outcome, Failure> {
    let is_grib = |format: &str| format.to_ascii_uppercase().contains("GRIB");
    to_messages(&args.common, true, &|format| !is_grib(format), &|source| args.split_by.split(source), out)
}

pub(super) fn grib(args: &GribArgs, out: &mut Ui) -> Result<Outcome, Failure> {
    let is_grib = |format: &str| format.to_ascii_uppercase().contains("GRIB");
    let split = |_: &dyn ArraySource| if args.split { Split::Auto } else { Split::File };
    to_messages(&args.common, false, &is_grib, &split, out)
}

fn to_messages(
    args: &ToMessages,
    unpack: bool,
    accepts: &dyn Fn(&str) -> bool,
    split: &dyn Fn(&dyn ArraySource) -> Split,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let mut sources = Vec::new();
    for input in &args.inputs {
        let source = open(input)?;
        let format = source.header().format.clone();
        if !accepts(&format) {
            let message = format!("{}: is a {format} file", display_path(input));
            let failure = Failure::new(Class::Request, message).with_location(input);
            return Err(failure.with_hint("`tercet convert` converts any format"));
        }
        sources.push(source);
    }
    let mut view = ViewOptions::default();
    view.unpack = unpack;
    let views = sources.iter().map(|source| View::new(&**source, &view)).collect::<Result<Vec<_>, _>>()?;
    let mut options = ConvertOptions::new();
    options.overwrite = args.force.force;
    options.skip_unreadable = !args.strict;
    options.compression = match args.zstd {
        None => Compression::Auto,
        Some(0) => Compression::None,
        Some(level) => Compression::Zstd { level },
    };
    let mut work = Vec::new();
    for view in &views {
        let mut options = options.clone();
        options.split = split(view);
        work.push((view as &dyn ArraySource, options));
    }
    if args.strict {
        for (source, options) in &work {
            let plan = arrays::plan_conversion(*source, OutputFormat::Tgm, options)?;
            if !plan.fidelity.is_exact() {
                return refuse(&plan, source.name(), out);
            }
        }
    }
    let total = work.iter().map(|(source, _)| source.header().bytes()).sum();
    let force = args.force.force;
    let plans = write_by_path(&args.output, "tgm", force, out, |path, out| {
        let bar = out.bar("converting", total);
        Ok(threads::install(args.jobs, || arrays::convert_to_messages(&work, path, force, &bar))?)
    })?;
    let named: Vec<(&Path, &Plan)> = args.inputs.iter().map(PathBuf::as_path).zip(&plans).collect();
    show(&named, &args.output, args.json.json, out)
}

pub(super) fn export(args: &ExportArgs, extension: &str, out: &mut Ui) -> Result<Outcome, Failure> {
    let by_name = OutputFormat::from_path(&args.output);
    let format = by_name.or_else(|| OutputFormat::from_path(Path::new(&format!("x.{extension}"))));
    let family = if extension == "nc" { "NETCDF" } else { "GRIB" };
    let format = format.filter(|format| format.name().to_ascii_uppercase().contains(family));
    let Some(format) = format else {
        let message = format!("{}: this verb does not write this format", display_path(&args.output));
        return Err(Failure::new(Class::Unsupported, message).with_hint("`tercet convert` writes any format"));
    };
    let source = open(&args.input)?;
    let mut options = ConvertOptions::new();
    options.overwrite = args.force.force;
    options.skip_unreadable = !args.strict;
    let plan = arrays::plan_conversion(&*source, format, &options)?;
    if args.strict && !plan.fidelity.is_exact() {
        return refuse(&plan, source.name(), out);
    }
    let plan = write_by_path(&args.output, format.extension(), args.force.force, out, |path, out| {
        let bar = out.bar("converting", plan.bytes());
        Ok(threads::install(args.jobs, || arrays::convert(&*source, path, format, &options, &bar))?)
    })?;
    show(&[(&args.input, &plan)], &args.output, args.json.json, out)
}

/// The outcome of `--strict` if something is not exact.
fn refuse(plan: &Plan, name: &str, out: &mut Ui) -> Result<Outcome, Failure> {
    print_changes(plan, out)?;
    out.note(format_args!(
        "error: {}: not everything is exact, and --strict is given; nothing was written",
        escape::name(name)
    ))?;
    Ok(Outcome::CheckFailed)
}

fn print_changes(plan: &Plan, out: &mut Ui) -> Result<(), Failure> {
    for item in plan.fidelity.inexact() {
        let detail = item.detail.as_deref().unwrap_or_default();
        out.summary(format_args!("{}  {}: {}", item.fate, escape::name(&item.name), escape::name(detail)))?;
    }
    Ok(())
}

fn show(plans: &[(&Path, &Plan)], output: &Path, json: bool, out: &mut Ui) -> Result<Outcome, Failure> {
    let is_lost = plans.iter().any(|(_, plan)| plan.has_lost_variables());
    let outcome = if is_lost { Outcome::CheckFailed } else { Outcome::Done };
    let format = plans.first().map_or("", |(_, plan)| plan.format.name());
    if json {
        let inputs = plans
            .iter()
            .map(|(input, plan)| InputJson { input: json_path(input), fidelity: &plan.fidelity })
            .collect();
        out.json(&NamedJson { output: json_path(output), output_format: format, written: true, inputs })?;
        return Ok(outcome);
    }
    for (_, plan) in plans {
        print_changes(plan, out)?;
    }
    let variables: usize = plans.iter().map(|(_, plan)| plan.header.variables.len()).sum();
    let plural = if variables == 1 { "" } else { "s" };
    out.summary(format_args!(
        "{}: {variables} variable{plural}, {format}, written and verified",
        display_path(output)
    ))?;
    Ok(outcome)
}
