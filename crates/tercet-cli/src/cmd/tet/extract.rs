//! `tet extract`.

use std::io::{Seek, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use serde::Serialize;
use tercet::convert::{ResultFormat, npy};
use tercet::core::num::counted;
use tercet::core::publish::PublishError;
use tercet::core::{CommonError, Progress, Shape, escape};
use tercet::tet::{self, Export, ReadOptions, Select};

use super::report::warn_if_partly_protected;
use super::save::{FileFormat, Target, infer};
use super::selection::SelectArgs;
use crate::args::{ForceArgs, limits};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::{Output, Spool, atomic_file, display_path, is_stdout, stream_failure};
use crate::render::human_size;
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Dataset name
    #[arg(value_name = "DATASET")]
    dataset: String,
    #[command(flatten)]
    select: SelectArgs,
    /// Decode values by the CF conventions: scale packed values, and replace missing ones by NaN. Without it, values are
    /// extracted as they are stored
    #[arg(long)]
    decode: bool,
    /// Output format [default: by the file extension; `raw` for `-`]
    #[arg(long = "as", value_name = "FORMAT")]
    format: Option<FileFormat>,
    /// Output file or URL: *.npy, *.tet, *.csv, *.json, or *.bin, *.raw, *.dat for raw values; `-` writes raw values to
    /// standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    force: ForceArgs,
    /// Skip checksum verification, for data recovery
    #[arg(long)]
    ignore_checksums: bool,
    /// Access method: `mmap`, or `pread` for files that may be truncated while they are read
    #[arg(long, value_name = "METHOD", default_value = "pread")]
    access: Access,
}

/// The JSON summary.
#[derive(Debug, Serialize)]
struct ExtractJson<'a> {
    path: String,
    dataset: &'a str,
    dtype: String,
    shape: &'a Shape,
    bytes: u64,
    /// Whether the values are decoded; else they are as stored.
    decoded: bool,
    /// The number of missing values among decoded ones.
    skipped: u64,
}

/// How a file is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Access {
    /// Memory mapping
    Mmap,
    /// Positional reads
    Pread,
}

impl From<Access> for tet::Access {
    fn from(access: Access) -> Self {
        match access {
            Access::Mmap => Self::Mmap,
            Access::Pread => Self::Pread,
        }
    }
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let target = Target::open(&args.output, args.file_format()?, args.force.force)?;
    if !args.input.is_stdin() {
        target.output.must_not_be(&args.input.path)?;
    }
    let file = args.open()?;
    warn_if_partly_protected(&file, out)?;
    let dataset = file.dataset(&args.dataset)?;
    let select = args.select.apply(dataset)?;
    if args.decode && select.is_rounded_by_decoding()? {
        out.note("warning: integers beyond 2^53 are rounded to f64, because other values are missing; without `--decode` they are exact")?;
    }
    if matches!(target.format, ResultFormat::Npy | ResultFormat::Raw) {
        stream(args, &select, target, out)?;
    } else {
        target.output.reserve_stdout(out)?;
        target.save_selection(&select, args.decode, out)?;
    }
    Ok(Outcome::Done)
}

/// Writes values of any size.
fn stream(args: &Args, select: &Select<'_>, target: Target, out: &mut Ui) -> Result<(), Failure> {
    let dataset = select.dataset();
    let dtype = select.value_type(args.decode)?;
    let shape = Shape::new(select.shape());
    let header = match target.format {
        ResultFormat::Npy => npy::header(dtype, &shape)
            .ok_or_else(|| Failure::request(format!("{dtype} is not supported by NumPy")))?,
        _ => Vec::new(),
    };
    // Stored values in their order are copied chunk by chunk; others are decoded or reversed in order. NaN is counted.
    let is_unchanged = !args.decode || (dataset.cf_encoding()?.is_empty() && !dtype.is_float());
    let is_plain = !select.is_reversed() && is_unchanged;
    let values = if is_plain {
        Values::Stored(dataset.export(&select.selection()?)?)
    } else {
        Values::Ordered { select, decode: args.decode }
    };
    let bytes = header.len() as u64 + shape.bytes(dtype.size()).unwrap_or(u64::MAX);
    let bar = out.bar("extracting", bytes);
    let missing = match target.output {
        Output::Path(path) => {
            let mut atomic_file = atomic_file(&path, args.force.force)?;
            let missing = values.write_to(&header, &mut atomic_file, &bar)?;
            atomic_file.publish()?;
            missing
        }
        Output::Stream(mut stream) => {
            if values.is_sequential() {
                stream.write_all(&header).map_err(|error| stream_failure(&error))?;
                let missing = values.stream(&mut stream, &bar).map_err(of_stream)?;
                stream.finish()?;
                missing
            } else {
                let mut spool = Spool::new()?;
                let missing = values.write_to(&header, &mut spool, &bar)?;
                spool.stream_to(stream)?;
                missing
            }
        }
        Output::Stdout if values.is_sequential() => {
            let sink = out.bytes()?;
            sink.write_all(&header).map_err(|error| Failure::output(&error))?;
            return values.stream(sink, &bar).map(drop).map_err(of_stdout);
        }
        Output::Stdout => {
            let mut spool = Spool::new()?;
            values.write_to(&header, &mut spool, &bar)?;
            drop(bar);
            return spool.send(out);
        }
    };
    drop(bar);
    let path = display_path(&args.output);
    if out.is_json() {
        let (dataset, dtype) = (dataset.name(), dtype.to_string());
        let (decoded, skipped) = (args.decode, missing);
        return out.json(&ExtractJson { path, dataset, dtype, shape: &shape, bytes, decoded, skipped });
    }
    let name = escape::name(dataset.name());
    let kind = if args.decode { "decoded" } else { "stored" };
    let missing =
        if missing > 0 { format!(", {}", counted(missing, "missing value")) } else { String::new() };
    let size = human_size(bytes);
    out.summary(format_args!("{path}: {kind} values of `{name}`, {dtype} {shape}{missing}, {size}"))
}

/// The values to be written.
enum Values<'a> {
    Stored(Export<'a>),
    Ordered { select: &'a Select<'a>, decode: bool },
}

impl Values<'_> {
    /// Whether the values are written in order, so that they can be streamed.
    fn is_sequential(&self) -> bool {
        match self {
            Self::Stored(export) => export.is_sequential(),
            Self::Ordered { .. } => true,
        }
    }

    /// Writes the values in order. Returns the number of missing ones.
    fn stream(&self, out: &mut dyn Write, progress: &dyn Progress) -> Result<u64, tet::Error> {
        match self {
            Self::Stored(export) => export.stream(out, progress).map(|()| 0),
            Self::Ordered { select, decode } => select.write_values(*decode, out, progress),
        }
    }

    /// Writes header and values to a seekable output. Returns the number of missing values.
    fn write_to(
        &self,
        header: &[u8],
        out: &mut (impl Write + Seek),
        progress: &dyn Progress,
    ) -> Result<u64, Failure> {
        out.write_all(header).map_err(|error| match PublishError::recover(error) {
            Ok(error) => error.into(),
            Err(error) => Failure::io("cannot write the temporary file", &error),
        })?;
        let written = match self {
            Self::Stored(export) => export.write_at(out, header.len() as u64, progress).map(|()| 0),
            Self::Ordered { .. } => self.stream(out, progress),
        };
        Ok(written?)
    }
}

impl Args {
    /// The format of the output. Standard output, pipes and devices have no extension: they get raw values.
    fn file_format(&self) -> Result<ResultFormat, Failure> {
        let is_device =
            is_stdout(&self.output) || std::fs::metadata(&self.output).is_ok_and(|found| !found.is_file());
        if is_device && self.format.is_none() {
            return Ok(ResultFormat::Raw);
        }
        infer(self.format, &self.output)
    }

    fn open(&self) -> Result<tet::File, Failure> {
        let options = ReadOptions::new().with_verify(!self.ignore_checksums).with_limits(limits());
        match self.access {
            Access::Mmap if self.input.is_on_disk() => {
                let options = options.with_access(tercet::core::source::Access::Mmap);
                Ok(tet::File::open_with(&self.input.path, options)?)
            }
            _ => self.input.open_tet(options),
        }
    }
}

/// An error of the output, not of the input file.
fn of_stream(error: tet::Error) -> Failure {
    match error.kind() {
        tet::ErrorKind::Common(CommonError::Write(cause)) => stream_failure(cause),
        _ => error.into(),
    }
}

fn of_stdout(error: tet::Error) -> Failure {
    match error.kind() {
        tet::ErrorKind::Common(CommonError::Write(cause)) => Failure::output(cause),
        _ => error.into(),
    }
}
