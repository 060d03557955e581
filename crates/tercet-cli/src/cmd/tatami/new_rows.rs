//! New rows of a file or collection: tables of any format.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tercet::convert::tables::{CsvOptions, DeclaredColumns, Rows, Sample, Table, TableOptions, TextOptions};
use tercet::core::progress::NoProgress;
use tercet::core::{Progress, escape};
use tercet::tatami::{Bitmap, Column, Field, File, LogicalType, Schema, Type, WriterOptions};

use super::ingest::format::Format;
use super::ingest::sources;
use crate::failure::Failure;
use crate::input::Input;
use crate::output::display_path;
use crate::render::parse_size;
use crate::ui::{Ui, WARN, paint};

/// Where new rows are read.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct NewRowsArgs {
    /// New rows: a file, directory, glob pattern or URL; `-` reads standard input. Repeatable
    #[arg(long, value_name = "FILE", required = true)]
    from: Vec<PathBuf>,
    /// Format of the new rows [default: detected from content and file extension]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Maximum size of standard input, which is buffered in a temporary file
    #[arg(long, value_name = "SIZE", default_value = "64GiB", value_parser = parse_size, display_order = 900)]
    max_stdin: u64,
}

/// New rows with the columns of a file.
pub(super) struct NewRows {
    table: Table,
    schema: Schema,
    /// For each column of the schema its position in the table; `None` for nulls.
    positions: Vec<Option<usize>>,
    /// Logical types of new columns.
    annotations: Vec<(String, String)>,
    warnings: Vec<(Arc<str>, String)>,
}

impl NewRowsArgs {
    /// The names of the inputs.
    pub(super) fn names(&self) -> String {
        self.from.iter().map(|path| display_path(path)).collect::<Vec<_>>().join(", ")
    }

    /// Opens the new rows: with the columns of a file, or with inferred ones.
    pub(super) fn open(&self, columns: Option<&File>) -> Result<NewRows, Failure> {
        let input = |path: &Path| Ok(Input { path: path.to_owned(), max_stdin: self.max_stdin });
        let (sources, format) = sources(&self.from, input, self.format, columns.is_some())?;
        let declared = columns.filter(|_| format.is_text()).map(|file| {
            let is_annotation = |(key, _): &&(String, String)| {
                file.schema().fields().iter().any(|field| *key == LogicalType::key(&field.name))
            };
            let annotations = file.footer().pairs.iter().filter(is_annotation).cloned().collect();
            DeclaredColumns { fields: file.schema().fields().to_vec(), annotations }
        });
        let csv = CsvOptions::new().with_header(Some(true));
        // Rows are written while they are read: no later row may change the types.
        let text = TextOptions::new().with_csv(csv).with_sample(Sample::All);
        let options = TableOptions::new().with_text(text).with_declared(declared);
        #[cfg(feature = "arrow")]
        let options = options.with_arrow(
            tercet::arrow::Options::new().with_column_options(tercet::arrow::ColumnOptions::none()),
        );
        let mut table = Table::open(&sources, format.in_library(), &options, &NoProgress)?;
        let warnings = table.warnings();
        let Some(file) = columns else {
            let schema = table.schema().clone();
            let positions = (0..schema.len()).map(Some).collect();
            let annotations = table.pairs();
            return Ok(NewRows { table, schema, positions, annotations, warnings });
        };
        let schema: Schema = (**file.schema()).clone();
        let positions = if format.is_text() {
            table.set_schema(schema.clone());
            (0..schema.len()).map(Some).collect()
        } else {
            positions(&table, file)?
        };
        Ok(NewRows { table, schema, positions, annotations: Vec::new(), warnings })
    }
}

impl NewRows {
    /// The columns.
    pub(super) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Adds the logical types of new columns to the options of files.
    pub(super) fn annotated(&self, options: WriterOptions) -> WriterOptions {
        self.annotations
            .iter()
            .fold(options, |options, (key, value)| options.with_metadata(key.clone(), value.clone()))
    }

    /// Passes all rows to a function.
    pub(super) fn read(
        &mut self,
        progress: &(dyn Progress + Sync),
        mut append: impl FnMut(&[Column]) -> Result<(), Failure> + Send,
    ) -> Result<(), Failure> {
        let Self { table, schema, positions, warnings, .. } = self;
        let is_same = positions.iter().enumerate().all(|(to, from)| *from == Some(to));
        // Without `--on-error`, the first invalid record is an error.
        let found = table.read(progress, &mut |_| {}, |Rows { columns, .. }| {
            if is_same && columns.len() == positions.len() {
                return append(&columns);
            }
            let rows = columns.first().map_or(0, Column::len);
            let column =
                |(field, from): (&Field, &Option<usize>)| match from.and_then(|from| columns.get(from)) {
                    Some(column) => column.clone(),
                    None => nulls(field, rows),
                };
            append(&schema.fields().iter().zip(positions.iter()).map(column).collect::<Vec<_>>())
        })?;
        warnings.extend(found);
        Ok(())
    }

    /// Reports problems that did not prevent reading.
    pub(super) fn warn(&self, out: &mut Ui) -> Result<(), Failure> {
        for (name, warning) in &self.warnings {
            out.note(format_args!("{} {}: {warning}", paint(WARN, "warning:"), escape::name(name)))?;
        }
        Ok(())
    }
}

fn nulls(field: &Field, rows: usize) -> Column {
    let mut column = Column::empty(field);
    column.values.push_zeros(rows);
    column.with_validity(Bitmap::filled(rows, false))
}

/// Finds the columns of a file in a table with types.
fn positions(table: &Table, file: &File) -> Result<Vec<Option<usize>>, Failure> {
    let (name, other) = (escape::name(&table.name()).into_owned(), escape::name(file.name()).into_owned());
    let refuse = |column: &str, reason: &str| {
        Failure::request(format!("{name}: column `{}`: {reason}", escape::name(column)))
    };
    let (ours, theirs) = (file.schema(), table.schema());
    if let Some(field) = theirs.fields().iter().find(|field| ours.index_of(&field.name).is_none()) {
        return Err(refuse(&field.name, &format!("not in {other}")));
    }
    let (our_types, their_types) = (file.logical_types(), table.logical_types());
    let mut positions = Vec::new();
    for (field, our_type) in ours.fields().iter().zip(our_types) {
        let position = theirs.index_of(&field.name);
        match position {
            Some(at) => {
                let found = &theirs.fields()[at];
                if !is_storable(found, field) || usual(found, their_types[at]) != usual(field, our_type) {
                    let kind = |field: &Field, known: Option<LogicalType>| {
                        known.map_or_else(|| field.scalar().to_string(), |known| known.to_string())
                    };
                    let (one, two) = (kind(found, their_types[at]), kind(field, our_type));
                    return Err(refuse(&field.name, &format!("is {one}, but {two} in {other}")).with_hint(
                        "JSON Lines have no types: `tatami convert IN - --to jsonl`, and `--from -`",
                    ));
                }
            }
            None if field.nullable => {}
            None => return Err(refuse(&field.name, "non-nullable column is missing")),
        }
        positions.push(position);
    }
    Ok(positions)
}

/// Whether values of a column can be stored in a column of a file.
fn is_storable(from: &Field, to: &Field) -> bool {
    let is_bytes = |kind: Type| matches!(kind, Type::String | Type::Bytes | Type::BlobRef);
    match (from.kind, to.kind) {
        (kind, Type::BlobRef | Type::Bytes) => is_bytes(kind),
        (one, two) => one == two && from.element == to.element,
    }
}

/// The logical type, if it changes the meaning of values.
fn usual(field: &Field, logical_type: Option<LogicalType>) -> Option<LogicalType> {
    match logical_type {
        Some(LogicalType::Utf8 | LogicalType::Enum) => None,
        None if field.scalar() == Type::TimestampMicros => Some(LogicalType::UTC),
        known => known,
    }
}
