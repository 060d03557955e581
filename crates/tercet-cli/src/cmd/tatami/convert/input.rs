//! The rows of a table of any format.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tercet::arrow::{Options, Roles, Rows, Table, Timestamps};
use tercet::core::{ByteSource, Progress as _, SourceError, Span, escape};
use tercet::tatami::scan::Batches;
use tercet::tatami::{Column, Schema};

use super::format::Format;
use super::roles::RoleLists;
use crate::cmd::tatami::columns::Columns;
use crate::cmd::tatami::condition::Where;
use crate::cmd::tatami::create::schema::Declared;
use crate::cmd::tatami::create::table::TextTable;
use crate::cmd::tatami::open::open as open_file;
use crate::failure::Failure;
use crate::ui::{Bar, Ui, WARN, paint};

/// Rows of a batch of the reference implementation, after which alone it ends row groups.
const INTEROP_BATCH_ROWS: usize = 4096;
/// Bytes of a batch, unless one row has more.
const BATCH_BYTES: u64 = 16 << 20;

/// What the user wants of the input.
pub(super) struct Asked<'a> {
    pub(super) condition: &'a Where,
    pub(super) columns: &'a Columns,
    pub(super) declared: Option<&'a Declared>,
    pub(super) roles: &'a RoleLists,
    pub(super) timestamps: Timestamps,
    /// Roles are for files that have them: a text called `body` stays one in the others.
    pub(super) into_tatami: bool,
    pub(super) interop: bool,
    pub(super) batch: Option<usize>,
}

/// A table that is open.
pub(super) struct Open {
    table: Table,
    rows: Kind,
    read: Arc<AtomicU64>,
    /// Keys and values of the footer that go with the rows.
    pairs: Vec<(String, String)>,
}

enum Kind {
    Arrow(Box<Rows>),
    Tatami(Box<Batches>),
    Text(Box<TextTable>),
}

pub(super) fn open(
    source: Arc<dyn ByteSource>,
    format: Format,
    asked: &Asked<'_>,
    out: &mut Ui,
) -> Result<Open, Failure> {
    if format != Format::Tatami && (asked.condition.is_some() || asked.columns.is_some()) {
        let failure =
            Failure::request(format!("{}: `--where` and `--columns` ask .tatami files", source.name()));
        return Err(failure.with_hint("convert it to .tatami first"));
    }
    let is_text = matches!(format, Format::Csv | Format::Tsv | Format::Jsonl);
    if asked.declared.is_some() && !is_text {
        return Err(Failure::request(
            "`--schema` is for CSV and JSONL: the others tell the types of their columns",
        ));
    }
    let read = Arc::new(AtomicU64::new(0));
    let source: Arc<dyn ByteSource> = Arc::new(Watched { source, read: Arc::clone(&read) });
    let roles = if asked.into_tatami { asked.roles.roles() } else { Roles::none() };
    if let Some(format) = format.in_arrow() {
        let options =
            Options::new().with_roles(roles).with_timestamps(asked.timestamps).with_interop(asked.interop);
        let batch = asked.batch.or(asked.interop.then_some(INTEROP_BATCH_ROWS));
        let rows = Rows::open(source, format, &options, batch)?;
        for told in rows.warnings() {
            let name = escape::name(rows.table().name());
            out.note(format_args!("{} {name}: {told}", paint(WARN, "warning:")))?;
        }
        let table = rows.table().clone();
        let pairs = table.notes();
        return Ok(Open { table, rows: Kind::Arrow(Box::new(rows)), read, pairs });
    }
    if is_text {
        let name = Arc::clone(source.name());
        let text = TextTable::open(source, format.delimiter(), asked.declared, out)?;
        let mut fields = text.fields();
        roles.apply_said(&mut fields)?;
        let schema = Schema::new(fields).map_err(|error| Failure::request(error.to_string()))?;
        let table = Table::of_schema(&name, &schema)?;
        return Ok(Open { table, rows: Kind::Text(Box::new(text)), read, pairs: Vec::new() });
    }
    let file = open_file(source)?;
    let columns = asked.columns.of(&file)?;
    let table = Table::of_file(&file, &columns)?;
    let mut fields = table.schema().fields().to_vec();
    roles.apply_said(&mut fields)?;
    let schema = Schema::new(fields).map_err(|error| Failure::request(error.to_string()))?;
    let table = table.with_schema(schema);
    let fitting = file.rows_within(&columns, BATCH_BYTES).min(65_536);
    let rows = asked.batch.map_or(fitting, |rows| rows as u64);
    let mut scan = file.scan().column_positions(&columns)?.with_batch_rows(rows);
    if let Some(condition) = asked.condition.of(&file)? {
        scan = scan.filter(&condition)?;
    }
    let is_kept = |(key, _): &&(String, String)| {
        let of_format = key.starts_with("tatami.");
        !of_format
            && tercet::arrow::note::column_of(key).is_none_or(|name| table.schema().index_of(name).is_some())
    };
    let pairs = file.footer().pairs.iter().filter(is_kept).cloned().collect();
    Ok(Open { table, rows: Kind::Tatami(Box::new(scan.batches())), read, pairs })
}

impl Open {
    /// The columns.
    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// What the footer of a `.tatami` file made of it has to say.
    pub(super) fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    /// Hands over all rows.
    pub(super) fn read(
        self,
        bar: &Bar,
        mut each: impl FnMut(Vec<Column>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut told = 0;
        let mut go_on = || {
            let read = self.read.load(Ordering::Relaxed);
            bar.advance(read.saturating_sub(told));
            told = told.max(read);
            if bar.is_cancelled() { Err(Failure::Interrupted) } else { Ok(()) }
        };
        match self.rows {
            Kind::Arrow(rows) => {
                for columns in *rows {
                    go_on()?;
                    each(columns?)?;
                }
            }
            Kind::Tatami(batches) => {
                for batch in *batches {
                    go_on()?;
                    each(batch?.columns)?;
                }
            }
            Kind::Text(text) => text.read(self.table.schema(), bar, each)?,
        }
        Ok(())
    }
}

/// A source that tells how much of it was read.
#[derive(Debug)]
struct Watched {
    source: Arc<dyn ByteSource>,
    read: Arc<AtomicU64>,
}

impl ByteSource for Watched {
    fn name(&self) -> &Arc<str> {
        self.source.name()
    }
    fn len(&self) -> u64 {
        self.source.len()
    }
    fn read_at(&self, span: Span) -> Result<Bytes, SourceError> {
        self.read.fetch_add(span.len(), Ordering::Relaxed);
        self.source.read_at(span)
    }
    fn read_into(&self, start: u64, out: &mut [u8]) -> Result<(), SourceError> {
        self.read.fetch_add(out.len() as u64, Ordering::Relaxed);
        self.source.read_into(start, out)
    }
    fn read_many(&self, spans: &[Span]) -> Result<Vec<Bytes>, SourceError> {
        self.read.fetch_add(spans.iter().map(|span| span.len()).sum(), Ordering::Relaxed);
        self.source.read_many(spans)
    }
    fn is_zero_copy(&self) -> bool {
        self.source.is_zero_copy()
    }
    fn is_remote(&self) -> bool {
        self.source.is_remote()
    }
}
