//! Parquet documents.

use std::collections::HashMap;
use std::sync::Arc;

use tercet_arrow::{ColumnOptions, Format, Options, TableReader};
use tercet_core::{escape, source};
use tercet_tatami::{Column, Scalar, Type};

use super::Stopped;
use super::error::{Error, ErrorKind};
use super::read::Reader;

/// Reads the documents of a Parquet file. Other columns may have any type.
pub(super) fn read<E>(reader: &mut Reader<'_, E>) -> Result<(), Stopped<E>> {
    let names = reader.fields();
    let options = Options::new().with_column_options(ColumnOptions::none()).with_columns(Some(names.all()));
    let missing = |column: &str| ErrorKind::Fields(format!("no column `{}`", escape::name(column)).into());
    let source = source::File::open(reader.path()).map_err(|error| reader.error(ErrorKind::Source(error)))?;
    let rows = TableReader::open(Arc::new(source), Format::Parquet, &options, None);
    let rows = rows.map_err(|error| match error.kind() {
        tercet_arrow::ErrorKind::NoSuchColumns { .. } => match names.given().first() {
            Some(column) => reader.error(missing(column)),
            None => reader.error(ErrorKind::Fields(names.nameless().into())),
        },
        _ => parquet_error(error),
    })?;
    let total = rows.total().unwrap_or(0).max(1);
    let positions: HashMap<String, usize> = rows
        .table()
        .schema()
        .fields()
        .iter()
        .enumerate()
        .map(|(at, field)| (field.name.to_string(), at))
        .collect();
    if let Some(name) = names.given().into_iter().find(|name| !positions.contains_key(*name)) {
        return Err(reader.error(missing(name)).into());
    }
    let has_body = names.has_body(|name| positions.contains_key(name));
    for field in rows.table().schema().fields() {
        if matches!(field.kind, Type::List | Type::Bool) {
            let reason = format!("column `{}`: expected a string column", escape::name(&field.name));
            return Err(reader.error(ErrorKind::Fields(reason.into())).into());
        }
    }
    let (mut number, mut documents) = (0u64, 0);
    for columns in rows {
        let columns = columns.map_err(parquet_error)?;
        let count = columns.first().map_or(0, Column::len);
        for row in 0..count {
            match names.document(|name| Ok(positions.get(name).and_then(|at| text(&columns[*at], row)))) {
                Ok(document) => {
                    documents += 1;
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

fn parquet_error(error: tercet_arrow::Error) -> Error {
    let location: Arc<str> = error.location().into();
    Error::new(location, ErrorKind::Parquet(Box::new(error.into_kind())))
}

/// A value as text; `None` for null.
fn text(column: &Column, row: usize) -> Option<String> {
    match column.scalar(row)? {
        Scalar::Bytes(bytes) => Some(
            String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        ),
        other => Some(other.to_string()),
    }
}
