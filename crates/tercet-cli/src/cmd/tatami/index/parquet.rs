//! Parquet documents.

use std::collections::HashMap;

use tercet::arrow::{ColumnOptions, ErrorKind, Format, Options, TableReader};
use tercet::core::{Progress as _, escape};
use tercet::tatami::{Column, Scalar, Type};

use super::Page;
use super::files::Source;
use super::jsonl::Names;
use crate::failure::Failure;
use crate::ui::Bar;

/// Reads the documents of a Parquet file; returns the number of documents without a body column. Other columns may have any type.
pub(super) fn read(
    source: &Source,
    names: &Names,
    bar: &Bar,
    add: &mut dyn FnMut(&Page) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let options = Options::new().with_column_options(ColumnOptions::none()).with_columns(Some(names.all()));
    let name = crate::output::display_path(&source.path);
    let missing = |column: &str| Failure::request(format!("{name}: no column `{}`", escape::name(column)));
    let rows = TableReader::open(crate::input::open(&source.path)?, Format::Parquet, &options, None);
    let rows = rows.map_err(|error| match error.kind() {
        ErrorKind::NoSuchColumns { .. } => match names.given().first() {
            Some(column) => missing(column),
            None => Failure::request(format!("{name}: {}", names.nameless())),
        },
        _ => error.into(),
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
    if let Some(message) = names.given().into_iter().find(|message| !positions.contains_key(*message)) {
        return Err(missing(message));
    }
    let has_body = names.has_body(|name| positions.contains_key(name));
    for field in rows.table().schema().fields() {
        if matches!(field.kind, Type::List | Type::Bool) {
            return Err(Failure::request(format!(
                "{name}: column `{}`: expected a string column",
                escape::name(&field.name)
            )));
        }
    }
    let mut number = 0u64;
    for columns in rows {
        let columns = columns?;
        let count = columns.first().map_or(0, Column::len);
        for row in 0..count {
            let page = names.page(|name| Ok(positions.get(name).and_then(|at| text(&columns[*at], row))));
            let page = page.map_err(|reason| Failure::request(format!("{name}: row {number}: {reason}")))?;
            add(&page)?;
            number += 1;
        }
        bar.advance(source.bytes.saturating_mul(count as u64) / total);
    }
    Ok(if has_body { 0 } else { number })
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
