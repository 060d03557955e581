//! `tercet convert` and `tet convert`: array files from any format to any other.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tercet::convert::ErrorKind;
use tercet::convert::arrays::{
    self, ArraySource, ConvertOptions, Fate, Fidelity, GribPacking, NetCdfVersion, OutputFormat, Plan, Split,
    Subject, View, ViewOptions,
};
use tercet::core::{DType, escape, threads};
use tercet::tet::Compression;

use crate::args::{ForceArgs, JsonArgs, OutputArgs, read_options};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::{display_path, is_file_or_new, is_stdout, write_by_path};
use crate::remote;
use crate::render::human_size;
use crate::ui::{GOOD, Ui, WARN, paint};

const EXAMPLES: &str = "\
Examples:
  tercet convert era5.nc era5.tet                  NetCDF to .tet, verified
  tercet convert --plan era5.nc era5.tet           what would be kept, changed or lost
  tercet convert era5.grib era5.tet                GRIB 1 or 2: fields stacked to cubes
  tercet convert era5.tet part.nc --var t2m --sel time=2024-06 --unpack
  tercet convert maps.tet series.tet --chunk time=744,lat=10,lon=10
  tercet convert forecast.tgm forecast.tet         messages stacked into cubes
  tercet convert era5.nc era5.tgm --split-axis time

Exit code 0: converted; 1: a variable could not be converted, or something is not exact and --strict is given.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "independent options")]
pub(crate) struct Args {
    /// Input file, directory or URL. The format is detected; the URL of a Zarr store ends in `.zarr` or `/`
    #[arg(value_name = "IN")]
    input: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
    /// Output format [default: by the file extension; required for `-`]
    #[arg(long, value_name = "FORMAT")]
    to: Option<Target>,
    /// Print what would be kept, changed and not carried; write nothing
    #[arg(long)]
    plan: bool,
    /// Write nothing unless everything is exact
    #[arg(long)]
    strict: bool,
    /// Do not read the output again to compare it with the input
    #[arg(long)]
    no_verify: bool,
    /// Number of threads of the conversion [default: as --threads]
    #[arg(long, value_name = "N")]
    jobs: Option<std::num::NonZeroUsize>,
    /// Convert only these variables, with their coordinates, bounds and grid mappings. Repeatable
    #[arg(long, value_name = "NAME", help_heading = "Selection", value_delimiter = ',')]
    var: Vec<String>,
    /// Select by coordinate or label: `level=850`, `lat=60..30` (both ends included), `lat=~52.3` (nearest), `time=2024-06`.
    /// Repeatable
    #[arg(long, value_name = "DIM=LABELS", help_heading = "Selection")]
    sel: Vec<String>,
    /// Select by position, from 0: `time=0..24` (without 24), `time=-1`, `lat=::2`. Repeatable
    #[arg(long, value_name = "DIM=POSITIONS", help_heading = "Selection")]
    isel: Vec<String>,
    /// Rename a variable or dimension. Repeatable
    #[arg(long, value_name = "OLD=NEW", help_heading = "Values")]
    rename: Vec<String>,
    /// Decode packed values: apply `scale_factor` and `add_offset`, replace missing values by NaN
    #[arg(long, help_heading = "Values")]
    unpack: bool,
    /// Element type of all float data variables, or of one: `f32`, `t2m=f32`. Repeatable
    #[arg(long, value_name = "[NAME=]TYPE", help_heading = "Values")]
    dtype: Vec<String>,
    /// Round float data variables to this absolute error, or one of them: `0.01`, `t2m=0.01`. For .tet, .tgm and GRIB
    /// files. Repeatable
    #[arg(long, value_name = "[NAME=]ERROR", help_heading = "Values")]
    max_error: Vec<String>,
    /// Bits per value of a GRIB file, instead of an error [default: IEEE floats, exact]
    #[arg(long, value_name = "N", help_heading = "Values", conflicts_with = "max_error")]
    bits: Option<u32>,
    /// Packing of a GRIB file [default: ccsds with --max-error or --bits, else ieee]
    #[arg(long, value_name = "PACKING", help_heading = "Storage")]
    packing: Option<Packing>,
    /// Messages of a .tgm output [default: one for each time, step, member and level]
    #[arg(long, value_name = "BY", help_heading = "Messages", conflicts_with = "split_axis")]
    split_by: Option<SplitBy>,
    /// Write one message for each position of these dimensions, which must be the first ones. Repeatable
    #[arg(long, value_name = "DIM", help_heading = "Messages", value_delimiter = ',')]
    split_axis: Vec<String>,
    /// Chunk extents: `time=24,lat=180` [default: those of the input, or up to 4 MiB]
    #[arg(long, value_name = "DIM=N,…", help_heading = "Storage", value_delimiter = ',')]
    chunk: Vec<String>,
    /// Compress chunks with Zstandard at this level; 0 for none [default: if a sample shrinks]
    #[arg(long, value_name = "LEVEL", help_heading = "Storage", num_args = 0..=1, default_missing_value = "3")]
    zstd: Option<i32>,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    json: JsonArgs,
}

/// How variables are divided into messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SplitBy {
    /// One message with all variables
    File,
    /// One message per variable
    Variable,
    /// One message for each position of the first unlimited dimension, or of time
    Record,
}

impl SplitBy {
    /// The option of the library for the dimensions of a source.
    pub(crate) fn split(self, source: &dyn ArraySource) -> Split {
        match self {
            Self::File => Split::File,
            Self::Variable => Split::Variable,
            Self::Record => {
                let dims = &source.header().dims;
                let dim = dims
                    .iter()
                    .find(|dim| dim.unlimited)
                    .or_else(|| dims.iter().find(|dim| dim.name == "time"));
                dim.map_or(Split::File, |dim| Split::Axes(vec![dim.name.clone()]))
            }
        }
    }
}

/// Output formats by name.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Target {
    /// .tet file
    Tet,
    /// .tgm file
    Tgm,
    /// NetCDF classic (CDF-1)
    Nc3,
    /// NetCDF 64-bit offset (CDF-2)
    Nc64,
    /// NetCDF CDF-5
    Cdf5,
    /// NetCDF-4
    Nc4,
    /// HDF5
    Hdf5,
    /// Zarr version 3 store
    Zarr,
    /// NumPy array
    Npy,
    /// NumPy archive of arrays
    Npz,
    /// GRIB edition 2
    Grib,
}

/// Packings of GRIB files.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Packing {
    /// Integers of a fixed number of bits, which every program reads
    Simple,
    /// Integers compressed by CCSDS 121.0-B-3
    Ccsds,
    /// IEEE floats, exact
    Ieee,
}

impl From<Target> for OutputFormat {
    fn from(target: Target) -> Self {
        match target {
            Target::Tet => Self::Tet,
            Target::Tgm => Self::Tgm,
            Target::Zarr => Self::Zarr,
            Target::Npy => Self::Npy,
            Target::Npz => Self::Npz,
            Target::Grib => Self::Grib,
            Target::Nc4 => Self::NetCdf4,
            Target::Hdf5 => Self::Hdf5,
            Target::Nc3 => Self::NetCdf(Some(NetCdfVersion::Classic)),
            Target::Nc64 => Self::NetCdf(Some(NetCdfVersion::Offset64)),
            Target::Cdf5 => Self::NetCdf(Some(NetCdfVersion::Cdf5)),
        }
    }
}

/// The JSON output.
#[derive(Serialize)]
struct ConvertJson<'a> {
    input: String,
    input_format: &'a str,
    output: String,
    output_format: &'a str,
    written: bool,
    verified: bool,
    exact: usize,
    changed: usize,
    not_carried: usize,
    fidelity: &'a Fidelity,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let output = args.output.path();
    if args.to.is_none() && output.extension().is_some_and(|extension| extension == "tatami") {
        return args.catalog(out);
    }
    let format = output_format(output, args.to)?;
    let source = open(&args.input)?;
    if let (Ok(from), Ok(to)) = (args.input.canonicalize(), output.canonicalize())
        && from == to
    {
        return Err(Failure::request(format!("{}: the output is the input", display_path(output))));
    }
    let view = View::new(&*source, &args.view()?)?;
    let mut options = args.options()?;
    if let Some(split) = args.split_by {
        options.split = split.split(&view);
    }
    let plan = arrays::plan_conversion(&view, format, &options)?;
    let refuses = args.strict && !plan.fidelity.is_exact();
    if args.plan || refuses {
        args.show(&plan, source.header().format.as_str(), false, out)?;
        if refuses && !args.plan {
            out.note("error: not everything is exact, and --strict is given; nothing was written")?;
        }
        return Ok(args.outcome(&plan));
    }
    let plan = write_by_path(output, format.extension(), args.force.force, out, |path, out| {
        let bar = out.bar("converting", plan.bytes());
        Ok(threads::install(args.jobs, || arrays::convert(&view, path, format, &options, &bar))?)
    })?;
    args.show(&plan, source.header().format.as_str(), true, out)?;
    Ok(args.outcome(&plan))
}

/// Opens a Zarr store: a directory, or a URL that ends in `.zarr` or `/`.
pub(crate) fn open_store(path: &Path) -> Result<Option<Box<dyn ArraySource>>, Failure> {
    if path.is_dir() {
        return Ok(Some(arrays::open_path_with(path, read_options())?));
    }
    remote::url_of(path).map_or(Ok(None), remote::open_store)
}

/// Opens any array file: a path, a directory or a URL.
pub(crate) fn open(path: &Path) -> Result<Box<dyn ArraySource>, Failure> {
    if let Some(store) = open_store(path)? {
        return Ok(store);
    }
    let source = Input::new(path).source()?;
    match arrays::open_source_with(source.clone(), read_options()) {
        // The name of its format is more helpful.
        Err(error) if matches!(error.kind(), ErrorKind::UnknownFormat) => {
            tercet::detect_source(&*source)?;
            Err(error.into())
        }
        opened => Ok(opened?),
    }
}

/// The format of an output: the given one, or that of the file extension.
pub(crate) fn output_format(output: &Path, to: Option<Target>) -> Result<OutputFormat, Failure> {
    let format = match to {
        Some(target) => target.into(),
        None => OutputFormat::from_path(output).ok_or_else(|| {
            let path = display_path(output);
            let failure = Failure::request(format!("{path}: cannot infer the format from the file name"));
            failure.with_hint(format!("the extensions are {}; or use `--to`", OutputFormat::EXTENSIONS))
        })?,
    };
    if format == OutputFormat::Zarr && (is_stdout(output) || !is_file_or_new(output)) {
        let message = format!(
            "{}: a Zarr store is a directory, which is not written to a stream",
            display_path(output)
        );
        return Err(Failure::request(message).with_hint("write it to a directory"));
    }
    Ok(format)
}

impl Args {
    /// Writes a catalog of the input.
    fn catalog(&self, out: &mut Ui) -> Result<Outcome, Failure> {
        let given = [
            ("--plan", self.plan),
            ("--strict", self.strict),
            ("--no-verify", self.no_verify),
            ("--jobs", self.jobs.is_some()),
            ("--var", !self.var.is_empty()),
            ("--sel", !self.sel.is_empty()),
            ("--isel", !self.isel.is_empty()),
            ("--rename", !self.rename.is_empty()),
            ("--unpack", self.unpack),
            ("--dtype", !self.dtype.is_empty()),
            ("--max-error", !self.max_error.is_empty()),
            ("--bits", self.bits.is_some()),
            ("--packing", self.packing.is_some()),
            ("--split-by", self.split_by.is_some()),
            ("--split-axis", !self.split_axis.is_empty()),
            ("--chunk", !self.chunk.is_empty()),
            ("--zstd", self.zstd.is_some()),
        ];
        if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
            let message =
                format!("`{option}` is for array files; a .tatami output is a catalog of the whole input");
            return Err(Failure::request(message));
        }
        // A table is not cataloged here, but converted.
        open(&self.input)?;
        let mut options = tercet::convert::catalog::CatalogOptions::new();
        options.read = read_options();
        options.overwrite = self.force.force;
        crate::cmd::catalog::write(
            std::slice::from_ref(&self.input),
            self.output.path(),
            &options,
            self.json.json,
            out,
        )
    }

    fn view(&self) -> Result<ViewOptions, Failure> {
        let pairs =
            |option: &str, values: &[String], example: &str| -> Result<Vec<(String, String)>, Failure> {
                values.iter().map(|text| pair(option, text, example)).collect()
            };
        let mut view = ViewOptions::default();
        view.variables.clone_from(&self.var);
        view.labels = pairs("--sel", &self.sel, "level=850")?;
        view.positions = pairs("--isel", &self.isel, "time=0..24")?;
        view.renames = pairs("--rename", &self.rename, "t2m=temperature")?;
        view.unpack = self.unpack;
        for text in &self.dtype {
            let (name, text) = optional_pair(text);
            let dtype: DType = text.parse().map_err(|_| {
                Failure::request(format!("`--dtype {text}`: unknown element type"))
                    .with_hint("write `f32`, `int16`, …")
            })?;
            if dtype.element().is_none() && dtype != DType::I8 {
                return Err(Failure::request(format!(
                    "`--dtype {text}`: values cannot be converted to {dtype}"
                )));
            }
            view.dtypes.push((name, dtype));
        }
        Ok(view)
    }

    fn options(&self) -> Result<ConvertOptions, Failure> {
        let mut options = ConvertOptions::new();
        for text in &self.chunk {
            let (dim, extent) = pair("--chunk", text, "time=24")?;
            let extent = extent.parse().map_err(|_| {
                Failure::request(format!("`--chunk {text}`: `{extent}` is not a number of positions"))
            })?;
            options.chunks.push((dim, extent));
        }
        for text in &self.max_error {
            let (name, text) = optional_pair(text);
            let error: f64 =
                text.parse().ok().filter(|error: &f64| error.is_finite() && *error > 0.0).ok_or_else(
                    || Failure::request(format!("`--max-error {text}`: expected a positive number")),
                )?;
            options.max_error.push((name, error));
        }
        options.bits = self.bits;
        options.grib_packing = match self.packing {
            None => GribPacking::Auto,
            Some(Packing::Simple) => GribPacking::Simple,
            Some(Packing::Ccsds) => GribPacking::Ccsds,
            Some(Packing::Ieee) => GribPacking::Ieee,
        };
        options.compression = match self.zstd {
            None => Compression::Auto,
            Some(0) => Compression::None,
            Some(level) => Compression::Zstd { level },
        };
        if !self.split_axis.is_empty() {
            options.split = Split::Axes(self.split_axis.clone());
        }
        options.overwrite = self.force.force;
        options.verify = !self.no_verify;
        options.skip_unreadable = !self.strict;
        Ok(options)
    }

    fn outcome(&self, plan: &Plan) -> Outcome {
        let failed = plan.has_lost_variables() || self.strict && !plan.fidelity.is_exact();
        if failed { Outcome::CheckFailed } else { Outcome::Done }
    }

    fn show(&self, plan: &Plan, input_format: &str, written: bool, out: &mut Ui) -> Result<(), Failure> {
        let fidelity = &plan.fidelity;
        let verified = written && !self.no_verify;
        if self.json.json {
            return out.json(&ConvertJson {
                input: display_path(&self.input),
                input_format,
                output: display_path(self.output.path()),
                output_format: plan.format.name(),
                written,
                verified,
                exact: fidelity.count(Fate::Exact),
                changed: fidelity.count(Fate::Changed),
                not_carried: fidelity.count(Fate::NotCarried),
                fidelity,
            });
        }
        let variables = fidelity.items.iter().filter(|item| item.subject == Subject::Variable);
        for item in variables.filter(|item| item.fate == Fate::Exact) {
            let planned = plan.header.variables.iter().find(|variable| variable.name == item.name);
            let shape = planned
                .map(|variable| format!("  {} {:?}", variable.kind, variable.shape))
                .unwrap_or_default();
            let note = item
                .detail
                .as_deref()
                .map(|detail| format!(": {}", escape::name(detail)))
                .unwrap_or_default();
            out.summary(format_args!(
                "{}        {}{shape}{note}",
                paint(GOOD, Fate::Exact),
                escape::name(&item.name)
            ))?;
        }
        for item in fidelity.inexact() {
            let detail = item.detail.as_deref().unwrap_or_default();
            let error = item.max_error.map(|error| format!("; max error {error}")).unwrap_or_default();
            let subject =
                if item.subject == Subject::Variable { String::new() } else { format!("{} ", item.subject) };
            out.summary(format_args!(
                "{}  {subject}{}: {}{error}",
                paint(WARN, format_args!("{:11}", item.fate)),
                escape::name(&item.name),
                escape::name(detail)
            ))?;
        }
        let state = match (written, verified) {
            (false, _) => "plan only",
            (true, true) => "written and verified",
            (true, false) => "written, not verified",
        };
        out.summary(format_args!(
            "{}: {} to {}, {} of values, {state}",
            display_path(self.output.path()),
            input_format,
            plan.format.name(),
            human_size(plan.bytes()),
        ))
    }
}

/// Splits `NAME=VALUE`.
fn pair(option: &str, text: &str, example: &str) -> Result<(String, String), Failure> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => {
            let failure = Failure::request(format!("`{option} {text}`: expected NAME=VALUE"));
            Err(failure.with_hint(format!("write `{option} {example}`")))
        }
    }
}

/// Splits `[NAME=]VALUE`.
fn optional_pair(text: &str) -> (Option<String>, &str) {
    match text.rsplit_once('=') {
        Some((name, value)) => (Some(name.trim().to_owned()), value.trim()),
        None => (None, text.trim()),
    }
}
