//! Writing tables of any format.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "arrow")]
use tercet::arrow;
use tercet::convert::tables::{Compression, Encoder, Rows, Table, rejected_row};
use tercet::core::publish::AtomicFile;
use tercet::core::{Sink as _, escape};
use tercet::tatami::{BatchError, Column, Error, ErrorKind, LogicalType, Writer, Written};

use super::format::Format;
use crate::cmd::tatami::layout::Layout;
use crate::cmd::tatami::warnings::warning;
use crate::failure::Failure;
use crate::output::{Output, Spool, atomic_file, send, stream_file};
use crate::render::{RecordWriter, RowWriter, pieces};
use crate::ui::Ui;

/// Counts of written rows and bytes.
#[derive(Debug)]
pub(in crate::cmd::tatami) struct Counts {
    pub(in crate::cmd::tatami) rows: u64,
    pub(in crate::cmd::tatami) bytes: u64,
    /// Row groups of a .tatami file.
    pub(in crate::cmd::tatami) groups: u64,
    /// Features that other readers do not support.
    pub(in crate::cmd::tatami) requires: u64,
    /// The columns as written.
    pub(in crate::cmd::tatami) columns: Vec<tercet::tatami::Field>,
    /// Values that the format cannot represent.
    pub(in crate::cmd::tatami) warnings: Vec<String>,
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
    rows: u64,
    columns: Vec<tercet::tatami::Field>,
    /// Columns with nulls, if nullability is not known in advance.
    has_nulls: Option<Vec<bool>>,
}

enum Kind {
    Path(Box<Writer<AtomicFile>>),
    Spool(Box<Writer<Spool>>),
    #[cfg(feature = "arrow")]
    Arrow(Box<arrow::TableWriter<Counted>>),
    Jsonl(RowWriter, Encoder<Counted>),
    Csv(RecordWriter, Encoder<Counted>),
}

impl Target {
    pub(super) fn create(
        output: &Output,
        format: Format,
        table: &Table,
        logical_types: &[Option<LogicalType>],
        layout: &Layout,
        force: bool,
    ) -> Result<Self, Failure> {
        let name: Arc<str> = match output {
            Output::Path(path) => path.to_string_lossy().into_owned().into(),
            Output::Stream(stream) => stream.name(),
            Output::Stdout => "standard output".into(),
        };
        let compression = compression(output, format)?;
        let columns = table.schema().fields().to_vec();
        let has_nulls = table.has_unknown_nulls().then(|| vec![false; columns.len()]);
        let target = |name, kind| Ok(Self { name, kind, rows: 0, columns, has_nulls });
        if format == Format::Tatami {
            let mut options = layout.options()?;
            for (key, value) in table.pairs() {
                options = options.with_metadata(key, value);
            }
            let schema = table.schema().clone();
            let kind = match output {
                Output::Path(path) => {
                    Kind::Path(Box::new(Writer::create(path, schema, options.with_overwrite(force))?))
                }
                Output::Stream(_) | Output::Stdout => {
                    let writer = Writer::new(Spool::new()?, schema, options);
                    let named = |error: Error| Error::new(Arc::clone(&name), error.into_kind());
                    Kind::Spool(Box::new(writer.map_err(named)?.with_name(Arc::clone(&name))))
                }
            };
            return target(name, kind);
        }
        let out = match output {
            Output::Path(path) => Bytes::Path(Box::new(atomic_file(path, force)?)),
            Output::Stream(_) => Bytes::Spool(Spool::new()?),
            Output::Stdout => Bytes::Stdout(BufWriter::with_capacity(1 << 16, io::stdout())),
        };
        let out = Counted { out, bytes: 0 };
        #[cfg(feature = "arrow")]
        if let Some(format) = format.in_arrow() {
            let arrow_table = table.arrow_table()?;
            let kind = Kind::Arrow(Box::new(arrow::TableWriter::new(format, &name, &arrow_table, out)?));
            return target(name, kind);
        }
        let typed = table.schema().fields().iter().zip(logical_types.iter().copied());
        let mut out = Encoder::new(out, compression).map_err(|error| write_failure(&name, error))?;
        let kind = if let Some(delimiter) = format.delimiter() {
            let writer = RecordWriter::new(delimiter, typed).with_escapes(output.is_terminal());
            let mut header = Vec::new();
            writer.header(&mut header);
            out.write_all(&header).map_err(|error| write_failure(&name, error))?;
            Kind::Csv(writer, out)
        } else {
            Kind::Jsonl(RowWriter::new(typed), out)
        };
        target(name, kind)
    }

    /// The directory of temporary files: that of the output.
    pub(super) fn directory(output: &Output) -> Option<&Path> {
        match output {
            Output::Path(path) => path
                .parent()
                .map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent }),
            _ => None,
        }
    }

    /// Writes rows. The output is not published yet.
    pub(super) fn push(&mut self, rows: &Rows) -> Result<(), Failure> {
        let name = &self.name;
        let columns = &rows.columns;
        let count = columns.first().map_or(0, Column::len);
        self.rows += count as u64;
        if let Some(has_nulls) = &mut self.has_nulls {
            for (seen, column) in has_nulls.iter_mut().zip(columns) {
                *seen |= column.nulls() > 0;
            }
        }
        let write = |rows: Vec<Vec<u8>>, out: &mut Encoder<Counted>| {
            rows.iter().try_for_each(|text| out.write_all(text)).map_err(|error| write_failure(name, error))
        };
        match &mut self.kind {
            Kind::Path(writer) => {
                let before = writer.rows();
                writer.append(columns).map_err(|error| explained(error, rows, before))
            }
            Kind::Spool(writer) => {
                let before = writer.rows();
                writer.append(columns).map_err(|error| explained(error, rows, before))
            }
            #[cfg(feature = "arrow")]
            Kind::Arrow(sink) => Ok(sink.append(columns.clone())?),
            Kind::Jsonl(writer, out) => write(pieces(writer, columns, count), out),
            Kind::Csv(writer, out) => write(pieces(writer, columns, count), out),
        }
    }

    /// Publishes the table.
    pub(super) fn finish(self, output: Output, out: &mut Ui) -> Result<Counts, Failure> {
        let Self { name, kind, rows, mut columns, has_nulls } = self;
        let is_present = |column: usize| has_nulls.as_ref().is_some_and(|seen| !seen[column]);
        for (index, field) in columns.iter_mut().enumerate() {
            field.nullable &= !is_present(index);
        }
        let mut counts = Counts { rows, bytes: 0, groups: 0, requires: 0, columns, warnings: Vec::new() };
        let encoder = match kind {
            Kind::Path(mut writer) => {
                writer.declare_present(is_present);
                let Written { bytes, groups, requires, .. } = writer.finish()?;
                return Ok(Counts { bytes, groups, requires, ..counts });
            }
            Kind::Spool(mut writer) => {
                writer.declare_present(is_present);
                let Written { bytes, groups, requires, output: file, .. } = writer.finish()?;
                delivered(file, output, out)?;
                return Ok(Counts { bytes, groups, requires, ..counts });
            }
            #[cfg(feature = "arrow")]
            Kind::Arrow(sink) => {
                return published(sink.finish()?.output, counts, &name, output, out);
            }
            Kind::Jsonl(writer, encoder) => {
                let what = "NaN and infinities are written as null";
                counts.warnings.extend(warning(&name, &writer, what, |losses| losses.not_finite));
                encoder
            }
            Kind::Csv(writer, encoder) => {
                let what = "NaN payload bits are lost: written as NaN, and as null in lists";
                counts.warnings.extend(warning(&name, &writer, what, |losses| losses.not_finite));
                encoder
            }
        };
        let counted = encoder.finish().map_err(|error| write_failure(&name, error))?;
        published(counted, counts, &name, output, out)
    }
}

/// The compression of the output, by its file extension. Only text is compressed as a whole.
fn compression(output: &Output, format: Format) -> Result<Compression, Failure> {
    let path = match output {
        Output::Path(path) => path.to_string_lossy().into_owned(),
        Output::Stream(stream) => stream.name().to_string(),
        Output::Stdout => return Ok(Compression::None),
    };
    let compression = Compression::for_name(&path);
    if compression != Compression::None && !format.is_text() {
        let message = format!("{}: only CSV, TSV and JSONL are compressed as a whole", escape::name(&path));
        return Err(Failure::request(message).with_hint("use a name without `.gz`, `.zst` or `.zstd`"));
    }
    Ok(compression)
}

/// Publishes the written bytes.
fn published(
    counted: Counted,
    counts: Counts,
    name: &Arc<str>,
    output: Output,
    out: &mut Ui,
) -> Result<Counts, Failure> {
    let Counted { out: mut written, bytes } = counted;
    written.flush().map_err(|error| write_failure(name, error))?;
    match written {
        Bytes::Path(atomic_file) => {
            drop(atomic_file.finish().map_err(|error| write_failure(name, error))?);
        }
        Bytes::Spool(spool) => {
            delivered(spool.finish().map_err(|error| write_failure(name, error))?, output, out)?;
        }
        Bytes::Stdout(_) => {}
    }
    Ok(Counts { bytes, ..counts })
}

/// Copies a temporary file to its destination.
fn delivered(file: File, output: Output, out: &mut Ui) -> Result<(), Failure> {
    match output {
        Output::Path(_) => Ok(()),
        Output::Stdout => send(file, out),
        Output::Stream(stream) => stream_file(file, stream).map(drop),
    }
}

fn write_failure(name: &Arc<str>, error: io::Error) -> Failure {
    Error::new(Arc::clone(name), error.into()).into()
}

/// An error of the writer; errors of a row are reported with the input line.
fn explained(failed: Error, rows: &Rows, before: u64) -> Failure {
    let ErrorKind::Batch(error) = failed.kind() else { return failed.into() };
    let is_unsorted = matches!(**error, BatchError::Unsorted { .. });
    let hint = |failure: Failure| {
        if is_unsorted {
            failure.with_hint("sort the rows with `--sort NAME`, or omit `--sort-key`")
        } else {
            failure
        }
    };
    let Some((row, column, reason)) = rejected_row(error, before) else { return failed.into() };
    let Some(lines) = &rows.lines else { return hint(failed.into()) };
    let line = usize::try_from(row).ok().and_then(|row| lines.get(row));
    let prefix = line.map_or_else(String::new, |line| format!("line {line}: "));
    let input = escape::name(&rows.input);
    hint(Failure::request(format!("{input}: {prefix}column `{}`: {reason}", escape::name(column))))
}
