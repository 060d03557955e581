//! Documents of Parquet, Arrow and `.tatami` files: one per row.

use std::collections::HashMap;
use std::io;
#[cfg(feature = "arrow")]
use std::sync::Arc;

#[cfg(feature = "arrow")]
use tercet_arrow::{ColumnOptions, Format, Options, TableReader};
use tercet_core::escape;
#[cfg(feature = "arrow")]
use tercet_core::{ByteSource, Span, source};
use tercet_tatami::search::FieldValue;
use tercet_tatami::{Collection, Column, Field, File, LogicalType, Scalar, Type, Values};

use super::Stopped;
use super::columns::{Columns, FINGERPRINT, Found};
use super::error::{Error, ErrorKind};
use super::fields::FieldNames;
use super::files::{DocumentFile, DocumentFormat};
use super::read::Reader;

/// Rows per batch of a `.tatami` file.
const BATCH_ROWS: u64 = 1024;

/// An open table.
struct Table {
    fields: Vec<Field>,
    logical_types: Vec<Option<LogicalType>>,
    annotations: Vec<(String, String)>,
    /// Columns of types that a segment cannot store.
    unsupported: Vec<String>,
    rows: u64,
    batches: Box<dyn Iterator<Item = Result<Vec<Column>, Error>>>,
}

/// Opens a file for some of its columns, or for all that can be stored.
fn open(file: &DocumentFile, wanted: Option<&dyn Fn(&str) -> bool>) -> Result<Table, Error> {
    match file.format {
        #[cfg(feature = "arrow")]
        DocumentFormat::Parquet | DocumentFormat::Arrow => arrow(file, wanted),
        _ => tatami(file, wanted),
    }
}

#[cfg(feature = "arrow")]
fn arrow(file: &DocumentFile, wanted: Option<&dyn Fn(&str) -> bool>) -> Result<Table, Error> {
    use tercet_arrow::ErrorKind as ArrowError;

    let failed = |kind| Error::new(file.location(), kind);
    let source: Arc<dyn ByteSource> =
        Arc::new(source::File::open(&file.path).map_err(|error| failed(ErrorKind::Source(error)))?);
    let head = source.read_at(Span::first(source.len().min(8)));
    let head = head.map_err(|error| failed(ErrorKind::Source(error)))?;
    let format = match file.format {
        DocumentFormat::Parquet => Format::Parquet,
        _ => tercet_arrow::detect(&head).unwrap_or(Format::ArrowFile),
    };
    let open = |columns: Vec<String>| {
        let options = Options::new().with_column_options(ColumnOptions::none()).with_columns(Some(columns));
        TableReader::open(Arc::clone(&source), format, &options, None)
    };
    // Without columns, the error lists all.
    let all = match open(Vec::new()) {
        Ok(table) => table.names().to_vec(),
        Err(error) => match error.into_kind() {
            ArrowError::NoSuchColumns { columns } => columns,
            kind => return Err(failed(ErrorKind::Parquet(Box::new(kind)))),
        },
    };
    let mut columns: Vec<String> =
        all.into_iter().filter(|name| wanted.is_none_or(|wanted| wanted(name))).collect();
    let mut unsupported = Vec::new();
    let rows = loop {
        match open(columns.clone()) {
            Ok(rows) => break rows,
            Err(error) => match error.kind() {
                ArrowError::UnsupportedTypes { columns: others } if unsupported.is_empty() => {
                    unsupported.extend(others.iter().map(|other| other.column.clone()));
                    columns.retain(|name| !unsupported.contains(name));
                }
                ArrowError::NoSuchColumns { .. } => return Ok(Table::empty(unsupported)),
                _ => return Err(arrow_error(error)),
            },
        }
    };
    let fields = rows.table().schema().fields().to_vec();
    let annotations = rows.table().annotations();
    Ok(Table {
        logical_types: LogicalType::for_fields(&fields, &annotations),
        fields,
        annotations,
        unsupported,
        rows: rows.total().unwrap_or(0),
        batches: Box::new(rows.map(|columns| columns.map_err(arrow_error))),
    })
}

#[cfg(feature = "arrow")]
fn arrow_error(error: tercet_arrow::Error) -> Error {
    let location: Arc<str> = error.location().into();
    Error::new(location, ErrorKind::Parquet(Box::new(error.into_kind())))
}

fn tatami_error(error: tercet_tatami::Error) -> Error {
    Error::new(error.location().into(), ErrorKind::Tatami(Box::new(error.into_kind())))
}

fn tatami(file: &DocumentFile, wanted: Option<&dyn Fn(&str) -> bool>) -> Result<Table, Error> {
    let table = match &file.collection {
        None => File::open(&file.path).map_err(tatami_error)?,
        Some(directory) => {
            let collection = Collection::open(directory.as_path()).map_err(tatami_error)?;
            // Removed since the files were listed.
            let removed = || Error::new(file.location(), ErrorKind::Open(io::ErrorKind::NotFound.into()));
            let member = collection.member(&file.name).ok_or_else(removed)?;
            collection.open_member(member).map_err(tatami_error)?
        }
    };
    let table = table.without_deleted_documents().map_err(tatami_error)?;
    // The lengths of documents and the fingerprints of updates are made again.
    let is_segment = table.footer().inverted.is_some();
    let is_made = |name: &str| is_segment && (name.starts_with("norm_") || name == FINGERPRINT);
    let all = table.schema().fields();
    let is_wanted = |name: &str| !is_made(name) && wanted.is_none_or(|wanted| wanted(name));
    let positions: Vec<usize> = (0..all.len()).filter(|at| is_wanted(&all[*at].name)).collect();
    if positions.is_empty() {
        return Ok(Table::empty(Vec::new()));
    }
    let fields = positions.iter().map(|at| all[*at].clone()).collect();
    let logical_types = positions.iter().map(|at| table.logical_types()[*at]).collect();
    let annotations = table.footer().pairs.clone();
    let scan = table.scan().column_positions(&positions).map_err(tatami_error)?;
    let batches = scan.with_batch_rows(BATCH_ROWS).batches();
    let batches = batches.map(|batch| batch.map(|batch| batch.columns).map_err(tatami_error));
    let rows = table.live_rows();
    Ok(Table {
        fields,
        logical_types,
        annotations,
        unsupported: Vec::new(),
        rows,
        batches: Box::new(batches),
    })
}

impl Table {
    fn empty(unsupported: Vec<String>) -> Self {
        Self {
            fields: Vec::new(),
            logical_types: Vec::new(),
            annotations: Vec::new(),
            unsupported,
            rows: 0,
            batches: Box::new(std::iter::empty()),
        }
    }
}

/// Finds the columns of a file that are not fields of documents.
pub(super) fn infer(file: &DocumentFile, names: &FieldNames, found: &mut Found) -> Result<(), Error> {
    let table = open(file, None)?;
    let has = |name: &str| table.fields.iter().any(|field| *field.name == *name);
    let used = names.used(has);
    for (field, logical_type) in table.fields.iter().zip(&table.logical_types) {
        if !used.contains(&Some(&*field.name)) {
            let key = LogicalType::key(&field.name);
            let annotation = table.annotations.iter().find(|pair| pair.0 == key).map(|pair| pair.1.as_str());
            found.column(field, logical_type.zip(annotation));
        }
    }
    for name in table.unsupported {
        if !used.contains(&Some(name.as_str())) {
            found.unsupported(name);
        }
    }
    Ok(())
}

/// Reads the documents of a file.
pub(super) fn read<E>(reader: &mut Reader<'_, E>) -> Result<(), Stopped<E>> {
    let (names, columns) = (reader.fields(), reader.columns());
    let wanted = |name: &str| names.is_usual(name) || columns.position(name).is_some();
    let table = open(reader.file(), Some(&wanted))?;
    let positions: HashMap<String, usize> =
        table.fields.iter().zip(0..).map(|(field, at)| (field.name.to_string(), at)).collect();
    let has = |name: &str| positions.contains_key(name);
    if let Some(name) = names.given().into_iter().find(|name| !has(name)) {
        let reason = format!("no column `{}`", escape::name(name));
        return Err(reader.error(ErrorKind::Fields(reason.into())).into());
    }
    if !names.has_name(has) {
        return Err(reader.error(ErrorKind::Fields(names.nameless().into())).into());
    }
    let has_body = names.has_body(has);
    for name in names.used(has).into_iter().flatten() {
        let field = positions.get(name).map(|at| &table.fields[*at]);
        if field.is_some_and(|field| matches!(field.kind, Type::List | Type::Bool)) {
            let reason = format!("column `{}`: expected a string column", escape::name(name));
            return Err(reader.error(ErrorKind::Fields(reason.into())).into());
        }
    }
    // The column of the segment for each column of the file.
    let used = names.used(has);
    let further: Vec<(usize, usize)> = table
        .fields
        .iter()
        .enumerate()
        .filter(|(_, field)| !used.contains(&Some(&*field.name)))
        .filter_map(|(from, field)| Some((from, columns.position(&field.name)?)))
        .collect();
    let total = table.rows.max(1);
    let (mut number, mut documents) = (0u64, 0);
    for batch in table.batches {
        let batch = batch?;
        let count = batch.first().map_or(0, Column::len);
        for row in 0..count {
            let text = |name: &str| {
                let at = *positions.get(name)?;
                text(&batch[at], row, table.logical_types[at])
            };
            match names.document(|name| Ok(text(name))) {
                Ok(mut document) => {
                    documents += 1;
                    document.values = values(&batch, row, &further, &table.logical_types, columns);
                    reader.add(&document)?;
                }
                Err(reason) => {
                    reader.problem(ErrorKind::Document { unit: "row", number, reason: reason.into() })?;
                }
            }
            number += 1;
        }
        reader.advance(reader.bytes().saturating_mul(count as u64) / total)?;
    }
    reader.no_text(if has_body { 0 } else { documents });
    Ok(())
}

/// The values of the further columns in a row.
fn values(
    batch: &[Column],
    row: usize,
    further: &[(usize, usize)],
    logical_types: &[Option<LogicalType>],
    columns: &Columns,
) -> Vec<FieldValue> {
    let mut out = vec![FieldValue::Null; columns.fields.len()];
    for (from, to) in further {
        let column = &batch[*from];
        let is_list = columns.fields[*to].kind == Type::List;
        out[*to] = match &column.values {
            _ if !column.is_present(row) => FieldValue::Null,
            Values::List(lists) => {
                let elements = lists.range(row).map(|element| lists.elements.scalar(element));
                if is_list {
                    FieldValue::List(
                        elements.map(|element| element.map_or(FieldValue::Null, Into::into)).collect(),
                    )
                } else {
                    let json = |element: Option<Scalar>| element.map(|element| element.to_json(true));
                    let json = elements.map(|element| json(element).unwrap_or_default()).collect();
                    Scalar::Bytes(serde_json::Value::Array(json).to_string().into_bytes()).into()
                }
            }
            _ => match column.scalar(row) {
                Some(value) => columns.of_scalar(*to, value, logical_types[*from]),
                None => FieldValue::Null,
            },
        };
    }
    out
}

/// A value as text; `None` for null.
fn text(column: &Column, row: usize, logical_type: Option<LogicalType>) -> Option<String> {
    let value = column.scalar(row)?;
    if let Some(text) = logical_type.and_then(|known| known.format(&value)) {
        return Some(text);
    }
    match value {
        Scalar::Bytes(bytes) => Some(
            String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        ),
        other => Some(other.to_string()),
    }
}
