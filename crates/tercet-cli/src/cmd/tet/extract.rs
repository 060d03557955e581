//! `tet extract`.

use std::io::{Seek, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use serde::Serialize;
use tercet::convert::npy;
use tercet::core::publish::PublishError;
use tercet::core::{CommonError, Progress, Selection, Shape, escape};
use tercet::tet::{self, Export, ReadOptions};

use super::report::warn_if_partly_protected;
use crate::args::{ForceArgs, limits};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::{ArrayFormat, Output, Spool, atomic_file, display_path, stream_failure};
use crate::render::human_size;
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Dataset name
    #[arg(value_name = "DATASET")]
    dataset: String,
    /// Slice, `start:stop:step` per axis: `0:10,::2`. Omitted axes are selected in full
    #[arg(short, long, value_name = "SLICES")]
    select: Option<String>,
    /// Output format [default: `npy` for *.npy, else `raw`, also for `-`]
    #[arg(long = "as", value_name = "FORMAT")]
    format: Option<ArrayFormat>,
    /// Output file or URL; `-` writes raw values to standard output, or a .npy file with `--as npy`
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
    let output = Output::open(&args.output, args.force.force)?;
    if !args.input.is_stdin() {
        output.must_not_be(&args.input.path)?;
    }
    let file = args.open()?;
    warn_if_partly_protected(&file, out)?;
    let dataset = file.dataset(&args.dataset)?;
    let selection = match &args.select {
        Some(text) => dataset.selection(text)?,
        None => Selection::full(dataset.shape()),
    };
    let export = dataset.export(&selection)?;
    let dtype = dataset.grid()?.element();
    let shape = selection.shape();
    let header = match ArrayFormat::infer(args.format, &args.output) {
        ArrayFormat::Npy => npy::header(dtype, &shape)
            .ok_or_else(|| Failure::request(format!("{dtype} is not supported by NumPy")))?,
        ArrayFormat::Raw => Vec::new(),
    };
    let bar = out.bar("extracting", export.bytes());
    match output {
        Output::Path(path) => {
            let mut atomic_file = atomic_file(&path, args.force.force)?;
            write_all(&header, &export, &mut atomic_file, &bar)?;
            atomic_file.publish()?;
        }
        Output::Stream(mut stream) => {
            if export.is_sequential() {
                stream.write_all(&header).map_err(|error| stream_failure(&error))?;
                export.stream(&mut stream, &bar).map_err(of_stream)?;
                stream.finish()?;
            } else {
                let mut spool = Spool::new()?;
                write_all(&header, &export, &mut spool, &bar)?;
                spool.stream_to(stream)?;
            }
        }
        Output::Stdout if export.is_sequential() => {
            let sink = out.bytes()?;
            sink.write_all(&header).map_err(|error| Failure::output(&error))?;
            export.stream(sink, &bar).map_err(of_stdout)?;
            return Ok(Outcome::Done);
        }
        Output::Stdout => {
            let mut spool = Spool::new()?;
            write_all(&header, &export, &mut spool, &bar)?;
            drop(bar);
            spool.send(out)?;
            return Ok(Outcome::Done);
        }
    }
    drop(bar);
    let bytes = header.len() as u64 + export.bytes();
    let path = display_path(&args.output);
    if out.is_json() {
        let (dataset, dtype) = (dataset.name(), dtype.to_string());
        out.json(&ExtractJson { path, dataset, dtype, shape: &shape, bytes })?;
    } else {
        let name = escape::name(dataset.name());
        out.summary(format_args!("{path}: `{name}`, {dtype} {shape}, {}", human_size(bytes)))?;
    }
    Ok(Outcome::Done)
}

impl Args {
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

/// Writes header and values to a seekable output.
fn write_all(
    header: &[u8],
    export: &Export<'_>,
    out: &mut (impl Write + Seek),
    progress: &dyn Progress,
) -> Result<(), Failure> {
    out.write_all(header).map_err(|error| match PublishError::recover(error) {
        Ok(error) => error.into(),
        Err(error) => Failure::io("cannot write the temporary file", &error),
    })?;
    Ok(export.write_at(out, header.len() as u64, progress)?)
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
