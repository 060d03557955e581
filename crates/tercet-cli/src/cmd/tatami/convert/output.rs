//! Writing tables of any format.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use tercet::arrow;
use tercet::core::Sink as _;
use tercet::core::publish::AtomicFile;
use tercet::tatami::{BatchError, Column, Error, ErrorKind, LogicalType, Writer, Written};

use super::format::Format;
use super::input::Open;
use super::named;
use crate::cmd::tatami::create::options::Layout;
use crate::cmd::tatami::warnings::warning;
use crate::failure::Failure;
use crate::output::{Output, Spool, Stream, atomic_file, send, stream_file};
use crate::render::{RecordWriter, RowWriter, pieces};
use crate::ui::Ui;

/// Counts of written rows and bytes.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) rows: u64,
    pub(super) bytes: u64,
    /// Values that the format cannot represent.
    pub(super) warnings: Vec<String>,
}

/// The destination of bytes.
enum Bytes {
    Path(Box<AtomicFile>),
    Spool(Spool),
    /// Written sequentially.
    Stdout(BufWriter<io::Stdout>),
}

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Path(atomic_file) => atomic_file.write(bytes),
            Self::Spool(spool) => spool.write(bytes),
            Self::Stdout(out) => out.write(bytes),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Path(atomic_file) => atomic_file.flush(),
            Self::Spool(spool) => spool.flush(),
            Self::Stdout(out) => out.flush(),
        }
    }
}

/// A writer that counts bytes.
struct Counted {
    out: Bytes,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A table writer.
pub(super) struct Target {
    name: Arc<str>,
    kind: Kind,
    end: End,
}

enum Kind {
    Path(Box<Writer<AtomicFile>>),
    Spool(Box<Writer<Spool>>),
    Arrow(Box<arrow::TableWriter<Counted>>),
    Jsonl(RowWriter, Counted),
    Csv(RecordWriter, Counted),
}

/// The final step after writing.
enum End {
    Nothing,
    Stream(Box<Stream>),
    Stdout,
}

impl Target {
    pub(super) fn create(
        output: Output,
        format: Format,
        input: &Open,
        logical_types: &[Option<LogicalType>],
        layout: &Layout,
        force: bool,
    ) -> Result<Self, Failure> {
        let table = input.table();
        let is_terminal = output.is_terminal();
        let (name, bytes, end): (Arc<str>, Goal, End) = match output {
            Output::Path(path) => (named(&path), Goal::Path(path), End::Nothing),
            Output::Stream(stream) => (stream.name(), Goal::Spool, End::Stream(Box::new(stream))),
            Output::Stdout => ("standard output".into(), Goal::Stdout, End::Stdout),
        };
        if format == Format::Tatami {
            let mut options = layout.options()?;
            for (key, value) in input.pairs() {
                options = options.with_metadata(key, value);
            }
            let schema = table.schema().clone();
            let kind = match bytes {
                Goal::Path(path) => {
                    Kind::Path(Box::new(Writer::create(&path, schema, options.with_overwrite(force))?))
                }
                Goal::Spool | Goal::Stdout => {
                    let writer = Writer::new(Spool::new()?, schema, options);
                    let named = |error: Error| Error::new(Arc::clone(&name), error.into_kind());
                    Kind::Spool(Box::new(writer.map_err(named)?.with_name(Arc::clone(&name))))
                }
            };
            return Ok(Self { name, kind, end });
        }
        let out = match bytes {
            Goal::Path(path) => Bytes::Path(Box::new(atomic_file(&path, force)?)),
            Goal::Spool => Bytes::Spool(Spool::new()?),
            Goal::Stdout => Bytes::Stdout(BufWriter::with_capacity(1 << 16, io::stdout())),
        };
        let mut out = Counted { out, bytes: 0 };
        let columns = table.schema().fields().iter().zip(logical_types.iter().copied());
        let kind = if let Some(format) = format.in_arrow() {
            Kind::Arrow(Box::new(arrow::TableWriter::new(format, &name, table, out)?))
        } else if let Some(delimiter) = format.delimiter() {
            let writer = RecordWriter::new(delimiter, columns).with_escapes(is_terminal);
            let mut header = Vec::new();
            writer.header(&mut header);
            out.write_all(&header).map_err(|error| write_failure(&name, error))?;
            Kind::Csv(writer, out)
        } else {
            Kind::Jsonl(RowWriter::new(columns), out)
        };
        Ok(Self { name, kind, end })
    }

    /// Writes all rows. The output is not published yet.
    pub(super) fn fill(mut self, rows: Receiver<Vec<Column>>) -> Result<Filled, Failure> {
        let mut count = 0;
        for columns in rows {
            count += columns.first().map_or(0, Column::len) as u64;
            self.push(columns)?;
        }
        Ok(Filled { target: self, rows: count })
    }

    fn push(&mut self, columns: Vec<Column>) -> Result<(), Failure> {
        let name = &self.name;
        let rows = columns.first().map_or(0, Column::len);
        let write = |rows: Vec<Vec<u8>>, out: &mut Counted| {
            rows.iter().try_for_each(|text| out.write_all(text)).map_err(|error| write_failure(name, error))
        };
        match &mut self.kind {
            Kind::Path(writer) => writer.append(&columns).map_err(explained),
            Kind::Spool(writer) => writer.append(&columns).map_err(explained),
            Kind::Arrow(sink) => Ok(sink.append(columns)?),
            Kind::Jsonl(writer, out) => write(pieces(writer, &columns, rows), out),
            Kind::Csv(writer, out) => write(pieces(writer, &columns, rows), out),
        }
    }
}

/// The destination of a new table.
enum Goal {
    Path(PathBuf),
    Spool,
    Stdout,
}

/// A table with all rows written.
pub(super) struct Filled {
    target: Target,
    rows: u64,
}

impl Filled {
    /// Publishes the table.
    pub(super) fn finish(self, out: &mut Ui) -> Result<Counts, Failure> {
        let Self { target: Target { name, kind, end }, rows } = self;
        let mut warnings = Vec::new();
        let counted = match kind {
            Kind::Path(writer) => {
                let Written { bytes, .. } = writer.finish()?;
                return Ok(Counts { rows, bytes, warnings });
            }
            Kind::Spool(writer) => {
                let Written { bytes, output, .. } = writer.finish()?;
                delivered(output, end, out)?;
                return Ok(Counts { rows, bytes, warnings });
            }
            Kind::Arrow(sink) => sink.finish()?.output,
            Kind::Jsonl(writer, counted) => {
                let what = "NaN and infinities are written as null";
                warnings.extend(warning(&name, &writer, what, |losses| losses.not_finite));
                counted
            }
            Kind::Csv(writer, counted) => {
                let what = "NaN payload bits are lost: written as NaN, and as null in lists";
                warnings.extend(warning(&name, &writer, what, |losses| losses.not_finite));
                counted
            }
        };
        let Counted { out: mut written, bytes } = counted;
        written.flush().map_err(|error| write_failure(&name, error))?;
        match written {
            Bytes::Path(atomic_file) => {
                drop(atomic_file.finish().map_err(|error| write_failure(&name, error))?);
            }
            Bytes::Spool(spool) => {
                delivered(spool.finish().map_err(|error| write_failure(&name, error))?, end, out)?;
            }
            Bytes::Stdout(_) => {}
        }
        Ok(Counts { rows, bytes, warnings })
    }
}

/// Copies a temporary file to its destination.
fn delivered(file: File, end: End, out: &mut Ui) -> Result<(), Failure> {
    match end {
        End::Nothing => Ok(()),
        End::Stdout => send(file, out),
        End::Stream(stream) => stream_file(file, *stream).map(drop),
    }
}

fn write_failure(name: &Arc<str>, error: io::Error) -> Failure {
    arrow::Error::new(Arc::clone(name), error.into()).into()
}

/// An error of the writer with a hint.
fn explained(error: Error) -> Failure {
    let is_unsorted =
        matches!(error.kind(), ErrorKind::Batch(error) if matches!(**error, BatchError::Unsorted { .. }));
    let failure = Failure::from(error);
    if is_unsorted { failure.with_hint("sort the input first, or omit `--sort-key`") } else { failure }
}
