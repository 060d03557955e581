//! Rows of `.tatami` files.

use std::fmt::Write as _;

use tercet::core::Progress;
use tercet::tatami::logical_type::StoredValue;
use tercet::tatami::predicate::ParsedFilter;
use tercet::tatami::{Column, File, LogicalType, Scalar, Scan, Type, Values};

use super::{OrMessage as _, check};
use crate::text::{message, safe};
use crate::views::TableColumn;

/// The elements of a list that are shown.
const MAX_ELEMENTS: usize = 50;

pub(super) fn columns(file: &File) -> Vec<TableColumn> {
    let logical_types = file.logical_types();
    let columns = file.schema().fields().iter().zip(logical_types);
    let column = |(field, logical): (&tercet::tatami::Field, Option<LogicalType>)| {
        let kind = match (field.element, logical) {
            (_, Some(logical)) => logical.to_string(),
            (Some(element), None) => format!("list<{element}>"),
            (None, None) => field.kind.to_string(),
        };
        let is_text = matches!(field.kind, Type::String | Type::Bytes) || field.element.is_some();
        TableColumn { name: safe(&field.name), kind, is_number: !is_text }
    };
    columns.map(column).collect()
}

/// A scan with a filter.
fn scan(file: &File, filter: &str) -> Result<Scan, String> {
    let scan = file.scan();
    if filter.trim().is_empty() {
        return Ok(scan);
    }
    let parsed = ParsedFilter::new(filter).or_message()?;
    parsed.bind(file.schema(), &file.logical_types()).map_err(|(error, _)| message(&error))?;
    scan.filter(parsed.expr()).or_message()
}

/// The values of some rows as text.
pub(super) fn rows(
    file: &File,
    filter: &str,
    (offset, limit): (u64, u64),
    progress: &dyn Progress,
) -> Result<Vec<Vec<String>>, String> {
    let scan = scan(file, filter)?.offset(offset).limit(limit).with_batch_rows(limit.clamp(1, 256));
    let logical_types = file.logical_types();
    let fields = file.schema().fields();
    let mut rows = Vec::new();
    for batch in scan.batches() {
        check(progress)?;
        let batch = batch.or_message()?;
        for row in 0..batch.rows.len() {
            let columns = batch.columns.iter().zip(fields).zip(&logical_types);
            let value =
                |((column, field), logical): ((&Column, &tercet::tatami::Field), &Option<LogicalType>)| {
                    let kind = field.element.unwrap_or(field.kind);
                    text(column, row, kind, *logical)
                };
            rows.push(columns.map(value).collect());
        }
    }
    Ok(rows)
}

/// Counts row group by row group, so that it can be cancelled.
pub(super) fn count(file: &File, filter: &str, progress: &dyn Progress) -> Result<u64, String> {
    let scan = scan(file, filter)?;
    let mut count = 0;
    for group in 0..file.group_count() {
        check(progress)?;
        count += scan.clone().groups(&[group]).or_message()?.count().or_message()?;
    }
    Ok(count)
}

/// A value as text: nothing for null.
fn text(column: &Column, row: usize, kind: Type, logical: Option<LogicalType>) -> String {
    if !column.is_present(row) {
        return String::new();
    }
    if let Values::List(lists) = &column.values {
        let range = lists.range(row);
        let is_cut = range.len() > MAX_ELEMENTS;
        let elements = range.take(MAX_ELEMENTS).map(|at| text(&lists.elements, at, kind, logical));
        let elements: Vec<String> = elements.collect();
        return format!("[{}{}]", elements.join(", "), if is_cut { ", …" } else { "" });
    }
    column.scalar(row).map(|value| scalar(&value, kind, logical)).unwrap_or_default()
}

/// A scalar as text.
pub(super) fn scalar(value: &Scalar, kind: Type, logical: Option<LogicalType>) -> String {
    let is_text = kind == Type::String || logical == Some(LogicalType::Utf8);
    let stored = match value {
        Scalar::Int8(value) => Some(StoredValue::Number((*value).into())),
        Scalar::Int16(value) => Some(StoredValue::Number((*value).into())),
        Scalar::Int32(value) => Some(StoredValue::Number((*value).into())),
        Scalar::Int64(value) => Some(StoredValue::Number(*value)),
        Scalar::Bytes(value) => Some(StoredValue::Bytes(value)),
        _ => None,
    };
    if let (Some(logical), Some(stored)) = (logical.filter(|kind| *kind != LogicalType::Utf8), stored) {
        let mut out = Vec::new();
        if logical.write(stored, &mut out) {
            return safe(&String::from_utf8_lossy(&out));
        }
    }
    match value {
        // A prefix is enough: cells are cut.
        Scalar::Bytes(bytes) if is_text => safe(&String::from_utf8_lossy(&bytes[..bytes.len().min(8192)])),
        Scalar::Bytes(bytes) => {
            let mut out = String::from("0x");
            for byte in bytes.iter().take(64) {
                // Writing to a String cannot fail.
                let _ = write!(out, "{byte:02x}");
            }
            if bytes.len() > 64 {
                out.push('…');
            }
            out
        }
        other => other.to_string(),
    }
}
