//! `tet extract`.

use std::io::{Seek, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use tercet::convert::npy;
use tercet::core::publish::PublishError;
use tercet::core::{Progress, Selection, escape};
use tercet::tet::{self, Export, ReadOptions};

use super::report::warn_of_gaps;
use crate::address::of_object;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::{ArrayFormat, Output, Spool, atomic_file, shown};
use crate::render::human_size;
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// The dataset
    #[arg(value_name = "DATASET")]
    dataset: String,
    /// The part to take, `start:stop:step` for each axis: `0:10,::2`. Axes left out are taken whole
    #[arg(short, long, value_name = "SLICES")]
    select: Option<String>,
    /// The format: a NumPy file, or the values alone (row-major, little-endian). Without it, `npy` for outputs
    /// called `*.npy` and `raw` for all others
    #[arg(long = "as", value_name = "FORMAT")]
    format: Option<ArrayFormat>,
    /// The file to write; `-` writes to standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Replace a file that is there already
    #[arg(long)]
    force: bool,
    /// Do not check checksums: for what can be had of a damaged file
    #[arg(long)]
    ignore_checksums: bool,
    /// How the file is read: mapped into memory, or by position (for files that may be truncated meanwhile)
    #[arg(long, value_name = "HOW", default_value = "pread")]
    access: Access,
}

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Access {
    Mmap,
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
    let output = Output::of(&args.output, args.force)?;
    if !args.input.is_stdin() {
        output.must_not_be(&args.input.path)?;
    }
    let file = args.open()?;
    warn_of_gaps(&file, out)?;
    let dataset = file.dataset(&args.dataset)?;
    let selection = match &args.select {
        Some(text) => dataset.select(text)?,
        None => Selection::full(dataset.shape()),
    };
    let export = dataset.export(&selection)?;
    let dtype = dataset.grid()?.element();
    let shape = selection.shape();
    let header = match ArrayFormat::of(args.format, &args.output) {
        ArrayFormat::Npy => npy::header(dtype, &shape),
        ArrayFormat::Raw => Vec::new(),
    };
    let bar = out.bar("extracting", export.bytes());
    match output {
        Output::Path(path) => {
            let mut atomic_file = atomic_file(&path, args.force)?;
            write_all(&header, &export, &mut atomic_file, &bar)?;
            atomic_file.publish()?;
            drop(bar);
            let size = human_size(header.len() as u64 + export.bytes());
            let (name, path) = (escape::name(dataset.name()), shown(&path));
            out.line(format_args!("{path}: `{name}`, {dtype} {shape}, {size}"))?;
        }
        Output::Object(mut object) => {
            let name = object.name();
            if export.is_sequential() {
                object.write_all(&header).map_err(|error| of_object(&error))?;
                export.stream(&mut object, &bar).map_err(of_upload)?;
                object.finish()?;
            } else {
                let mut spool = Spool::new()?;
                write_all(&header, &export, &mut spool, &bar)?;
                spool.upload(object)?;
            }
            drop(bar);
            let size = human_size(header.len() as u64 + export.bytes());
            let dataset = escape::name(dataset.name());
            out.line(format_args!("{name}: `{dataset}`, {dtype} {shape}, {size}"))?;
        }
        Output::Stdout if export.is_sequential() => {
            let sink = out.bytes()?;
            sink.write_all(&header).map_err(|error| Failure::output(&error))?;
            export.stream(sink, &bar).map_err(of_stdout)?;
        }
        Output::Stdout => {
            let mut spool = Spool::new()?;
            write_all(&header, &export, &mut spool, &bar)?;
            drop(bar);
            spool.send(out)?;
        }
    }
    Ok(Outcome::Done)
}

impl Args {
    fn open(&self) -> Result<tet::File, Failure> {
        let options = ReadOptions::new().with_ignore_checksums(self.ignore_checksums);
        match self.access {
            Access::Mmap if self.input.is_on_disk() => {
                Ok(options.with_access(tet::Access::Mmap).open(&self.input.path)?)
            }
            _ => self.input.open_tet(options),
        }
    }
}

/// Writes header and values to an output that can seek.
fn write_all(
    header: &[u8],
    export: &Export<'_>,
    out: &mut (impl Write + Seek),
    progress: &dyn Progress,
) -> Result<(), Failure> {
    out.write_all(header).map_err(|error| match PublishError::recover(error) {
        Ok(error) => error.into(),
        Err(error) => Failure::io("cannot write to the temporary file", &error),
    })?;
    Ok(export.write_at(out, header.len() as u64, progress)?)
}

/// An error of a stream to standard output, which is not about the file that is read.
fn of_upload(error: tet::Error) -> Failure {
    match error.kind() {
        tet::ErrorKind::Write(cause) => of_object(cause),
        _ => error.into(),
    }
}

fn of_stdout(error: tet::Error) -> Failure {
    match error.kind() {
        tet::ErrorKind::Write(cause) => Failure::output(cause),
        _ => error.into(),
    }
}
