//! `.tatami` files and collections: columns, rows, statistics of columns.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Instant;

use axum::http::header;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use tercet::Container;
use tercet::tatami::aggregate::Aggregate;
use tercet::tatami::predicate::{BindError, ParsedFilter};
use tercet::tatami::{Expr, File, LogicalType, Scalar, Schema, Type};

use super::cells::{CellType, cell, scalar};
use super::{cached, entry, wrong_format};
use crate::catalog::{Entry, EntryKind, Stamp};
use crate::endpoint::{Call, Content, Endpoint, Parameter, Run};
use crate::failure::Failure;
use crate::reply::{Reply, Shortest, millis};

/// The maximum number of distinct values that are counted.
const MAX_DISTINCT: usize = 1 << 16;
/// The number of bins of a histogram.
const BINS: usize = 20;

const WHERE: Parameter = Parameter::text("where", "Filter rows: `status = 200 and url like \"https://a%\"`");

pub(crate) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        path: "/api/tatami/{id}",
        tag: "tables",
        summary: "Columns of a .tatami file or collection, with stored statistics",
        parameters: &[Parameter::id()],
        run: Run::Work,
        content: &[Content::json::<TableJson>()],
        handler: describe,
    },
    Endpoint {
        path: "/api/tatami/{id}/rows",
        tag: "tables",
        summary: "Rows of a .tatami file or collection",
        parameters: &[
            Parameter::id(),
            Parameter::list("columns", "The columns, by name [default: all]"),
            WHERE,
            Parameter::integer("offset", 0, u64::MAX, "Matching rows to skip"),
            Parameter::integer("limit", 0, 10_000, "Maximum number of rows [default: 100]"),
            Parameter::one_of("format", &["json", "arrow"], "Media type [default: json]"),
            Parameter::flag("count", "Count all matching rows"),
            Parameter::flag("full", "Long strings in full"),
        ],
        run: Run::Work,
        content: &[Content::json::<RowsJson>(), Content::other("application/vnd.apache.arrow.stream")],
        handler: rows,
    },
    Endpoint {
        path: "/api/tatami/{id}/columns/{column}",
        tag: "tables",
        summary: "Statistics of the values of a column",
        parameters: &[
            Parameter::id(),
            Parameter::text("column", "The name of the column").in_path(),
            WHERE,
            Parameter::integer("top", 0, 1000, "The number of most frequent values [default: 20]"),
        ],
        run: Run::Work,
        content: &[Content::json::<StatsJson>()],
        handler: statistics,
    },
];

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "TableFile")]
struct TableJson {
    id: String,
    path: String,
    version: String,
    file_len: u64,
    format: EntryKind,
    rows: u64,
    role: &'static str,
    sorted_by: Option<String>,
    searchable: bool,
    columns: Vec<ColumnJson>,
    metadata: Vec<[String; 2]>,
    groups: usize,
    members: Option<Vec<MemberJson>>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Member")]
struct MemberJson {
    id: Option<String>,
    path: String,
    rows: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Column")]
struct ColumnJson {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    logical_type: Option<String>,
    nullable: bool,
    nulls: Option<u64>,
    distinct: Option<u64>,
    min: Json,
    max: Json,
    raw_bytes: u64,
    stored_bytes: u64,
    encodings: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RowColumn")]
struct RowColumnJson {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    logical_type: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Rows")]
struct RowsJson {
    columns: Vec<RowColumnJson>,
    offset: u64,
    limit: u64,
    /// The number of rows of the file.
    total: u64,
    /// The number of matching rows, if it is known.
    matched: Option<u64>,
    rows: Vec<Vec<Json>>,
    /// Row and column of strings that are cut.
    cut: Vec<[usize; 2]>,
    took_ms: Shortest<f64>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ColumnStats")]
struct StatsJson {
    column: String,
    #[serde(rename = "type")]
    kind: String,
    logical_type: Option<String>,
    rows: u64,
    nulls: u64,
    distinct: Option<u64>,
    min: Json,
    max: Json,
    mean: Option<Shortest<f64>>,
    sum: Json,
    top: Option<Vec<ValueJson>>,
    histogram: Option<HistogramJson>,
    took_ms: Shortest<f64>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ValueCount")]
struct ValueJson {
    value: Json,
    count: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Histogram")]
struct HistogramJson {
    edges: Vec<f64>,
    counts: Vec<u64>,
}

/// The rows of a file or of all members of a collection.
struct Table {
    entry: Arc<Entry>,
    stamp: Stamp,
    files: Vec<File>,
    members: Option<Vec<MemberJson>>,
}

impl Table {
    fn open(call: &Call<'_>) -> Result<Self, Failure> {
        let entry = entry(call)?;
        if entry.kind == EntryKind::Collection {
            let snapshot = call.state.catalog.snapshot();
            let collection = call.state.catalog.collection(&entry)?;
            let (mut files, mut members) = (Vec::new(), Vec::new());
            for member in collection.members() {
                call.work.check_deadline()?;
                let file = collection.open_member(member)?.without_deleted_documents()?;
                let path = if entry.path == "." {
                    member.path.clone()
                } else {
                    format!("{}/{}", entry.path, member.path)
                };
                let listed = snapshot.entries.iter().find(|other| other.path == path);
                members.push(MemberJson {
                    id: listed.map(|listed| listed.id.clone()),
                    path,
                    rows: file.live_rows(),
                });
                files.push(file);
            }
            let stamp = entry.stamp.clone();
            return Ok(Self { entry, stamp, files, members: Some(members) });
        }
        let opened = call.state.catalog.opened(&entry)?;
        let Container::Tatami(file) = &opened.container else {
            return Err(wrong_format(&entry, "a .tatami file"));
        };
        let file = file.without_deleted_documents()?;
        Ok(Self { stamp: opened.stamp.clone(), entry, files: vec![file], members: None })
    }

    fn rows(&self) -> u64 {
        self.files.iter().map(File::live_rows).sum()
    }

    /// The columns of the first file; those of the other members are the same.
    fn schema(&self) -> Option<(&Schema, Vec<Option<LogicalType>>)> {
        self.files.first().map(|file| (&**file.schema(), file.logical_types()))
    }

    /// A filter for every file.
    fn filter(&self, call: &Call<'_>) -> Result<Option<Expr>, Failure> {
        let Some(text) = call.params.get("where") else { return Ok(None) };
        let parsed = parse(text)?;
        for file in &self.files {
            bind(&parsed, text, file.schema(), &file.logical_types())?;
        }
        Ok(Some(parsed.expr().clone()))
    }
}

/// Parses a filter.
pub(super) fn parse(text: &str) -> Result<ParsedFilter, Failure> {
    ParsedFilter::new(text).map_err(|error| {
        let at = error.at.min(text.len());
        let end = text[at..].chars().next().map_or(at, |c| at + c.len_utf8());
        Failure::request(format!("invalid filter: {error}")).with_at("where", text, &(at..end))
    })
}

/// Checks a filter against columns.
pub(super) fn bind(
    parsed: &ParsedFilter,
    text: &str,
    schema: &Schema,
    logical_types: &[Option<LogicalType>],
) -> Result<(), Failure> {
    let bound = parsed.bind(schema, logical_types);
    bound.map(drop).map_err(|(error, span)| {
        let failure = Failure::request(error.to_string()).with_at("where", text, &span);
        match &error {
            BindError::NoSuchColumn { nearest: Some(name), .. } => {
                failure.with_hint(format!("did you mean `{}`?", crate::catalog::shown(name)))
            }
            BindError::NoSuchColumn { column, as_value: true, .. } => {
                failure.with_hint(format!("quote strings: {column:?}"))
            }
            BindError::NoSuchColumn { available, .. } => failure.with_hint(format!("columns: {available}")),
            _ => failure,
        }
    })
}

fn kind_of(field: &tercet::tatami::Field) -> String {
    match field.element {
        Some(element) => format!("list<{element}>"),
        None => field.kind.to_string(),
    }
}

fn describe(call: &Call<'_>) -> Result<Reply, Failure> {
    let table = Table::open(call)?;
    cached(call, &table.stamp, || {
        let mut columns: Vec<ColumnJson> = Vec::new();
        if let Some((schema, logical_types)) = table.schema() {
            for (index, field) in schema.fields().iter().enumerate() {
                call.work.check_deadline()?;
                columns.push(column(&table, index, field, logical_types.get(index).copied().flatten())?);
            }
        }
        let first = table.files.first();
        let sorted_by =
            table.schema().and_then(|(schema, _)| Some(schema.fields()[schema.sort_key()?].name.to_string()));
        let is_segment = first.is_some_and(|file| file.footer().inverted.is_some());
        let metadata = match (&table.members, first) {
            (None, Some(file)) => file.summary()?.metadata,
            _ => Vec::new(),
        };
        let (rows, entry) = (table.rows(), Arc::clone(&table.entry));
        Ok(Reply::json(&TableJson {
            id: entry.id.clone(),
            path: entry.path.clone(),
            version: table.stamp.version(),
            file_len: table.files.iter().map(File::len).sum(),
            format: entry.kind,
            rows,
            role: if is_segment { "search-segment" } else { "document-store" },
            sorted_by,
            searchable: entry.facts.is_searchable,
            columns,
            metadata,
            groups: table.files.iter().map(File::group_count).sum(),
            members: table.members.clone(),
        }))
    })
}

/// What the footers say about a column.
fn column(
    table: &Table,
    index: usize,
    field: &tercet::tatami::Field,
    logical_type: Option<LogicalType>,
) -> Result<ColumnJson, Failure> {
    let kind = field.element.unwrap_or(field.kind);
    let cell = CellType::new(kind, logical_type, true);
    let mut json = ColumnJson {
        name: field.name.to_string(),
        kind: kind_of(field),
        logical_type: logical_type.map(|kind| kind.to_string()),
        nullable: field.nullable,
        nulls: Some(0),
        distinct: None,
        min: Json::Null,
        max: Json::Null,
        raw_bytes: 0,
        stored_bytes: 0,
        encodings: Vec::new(),
    };
    let mut bounds: Option<(Scalar, Scalar)> = None;
    let mut is_bounded = true;
    for file in &table.files {
        let footer = file.footer();
        let mut values = 0u64;
        let mut nulls = 0u64;
        for chunk in footer.groups.iter().filter_map(|group| group.chunks.get(index)) {
            values += chunk.values;
            nulls += chunk.nulls;
            json.raw_bytes += chunk.raw_bytes;
            json.stored_bytes += chunk.stored_bytes;
        }
        json.nulls = json.nulls.map(|sum| sum + nulls);
        for blob in footer.blobs.iter().filter(|blob| blob.column == index as u64) {
            json.raw_bytes += blob.runs.iter().map(|run| run.raw_bytes).sum::<u64>();
            json.stored_bytes += blob.runs.iter().map(|run| run.stored_bytes).sum::<u64>();
        }
        json.distinct = json.distinct.max(file.dictionary_values(index)?);
        for group in 0..file.group_count().min(4) {
            for page in file.pages(group, index)? {
                for name in [page.header.encoding.to_string(), page.header.codec.to_string()] {
                    if name != "none" && !json.encodings.contains(&name) {
                        json.encodings.push(name);
                    }
                }
            }
        }
        match file.column_bounds(index) {
            Some((low, high)) => {
                let less = |a: &Scalar, b: &Scalar| a.order(b).is_some_and(Ordering::is_lt);
                bounds = Some(match bounds.take() {
                    None => (low, high),
                    Some((min, max)) => {
                        (if less(&low, &min) { low } else { min }, if less(&max, &high) { high } else { max })
                    }
                });
            }
            None => is_bounded &= values == nulls,
        }
    }
    // Decimals in bytes are not in the order of numbers.
    let is_ordered = kind != Type::Bytes || !logical_type.is_some_and(LogicalType::is_number);
    // Statistics include deleted rows.
    let has_deleted = table.files.iter().any(|file| file.live_rows() < file.rows());
    if let Some((min, max)) = bounds.filter(|_| is_bounded && is_ordered && !has_deleted) {
        (json.min, json.max) = (scalar(&min, cell).0, scalar(&max, cell).0);
    }
    if has_deleted {
        json.nulls = None;
    }
    Ok(json)
}

#[expect(clippy::too_many_lines, reason = "one pass over the files")]
fn rows(call: &Call<'_>) -> Result<Reply, Failure> {
    let started = Instant::now();
    let table = Table::open(call)?;
    cached(call, &table.stamp, || {
        let filter = table.filter(call)?;
        let limit: u64 = call.params.number("limit").unwrap_or(100);
        if limit > call.state.options.max_rows {
            return Err(Failure::request(format!("`limit` must be at most {}", call.state.options.max_rows)));
        }
        let offset: u64 = call.params.number("offset").unwrap_or(0);
        let names = call.params.list("columns");
        let Some(first) = table.files.first() else {
            let json = RowsJson {
                columns: Vec::new(),
                offset,
                limit,
                total: 0,
                matched: Some(0),
                rows: Vec::new(),
                cut: Vec::new(),
                took_ms: millis(started.elapsed()),
            };
            return Ok(Reply::json(&json));
        };
        let positions = if names.is_empty() {
            (0..first.schema().len()).collect()
        } else {
            names.iter().map(|name| first.column_index(name)).collect::<Result<Vec<_>, _>>()?
        };
        let (fields, logical_types) = (first.schema().fields(), first.logical_types());
        let columns: Vec<_> = positions
            .iter()
            .map(|&at| RowColumnJson {
                name: fields[at].name.to_string(),
                kind: kind_of(&fields[at]),
                logical_type: logical_types[at].map(|kind| kind.to_string()),
            })
            .collect();
        let is_cut = !call.params.flag("full");
        let cells: Vec<_> = positions
            .iter()
            .map(|&at| {
                CellType::new(fields[at].element.unwrap_or(fields[at].kind), logical_types[at], is_cut)
            })
            .collect();
        let names: Vec<&str> = positions.iter().map(|&at| &*fields[at].name).collect();
        let is_arrow = call.params.get("format") == Some("arrow");
        let mut batches = Vec::new();
        let (mut rows, mut cut) = (Vec::new(), Vec::new());
        let (mut skip, mut left) = (offset, limit);
        let mut matched = Some(0u64);
        for file in &table.files {
            call.work.check_deadline()?;
            let mut scan = file.scan().columns(&names)?;
            if let Some(filter) = &filter {
                scan = scan.filter(filter)?;
            }
            let wants_count = call.params.flag("count");
            // The rows of this file, to skip it as a whole.
            let known = match &filter {
                None => Some(file.live_rows()),
                Some(_) if wants_count => Some(count(call, &scan)?),
                Some(_) => None,
            };
            matched = matched.zip(known).map(|(sum, known)| sum + known);
            if left == 0 && (known.is_some() || !wants_count) {
                if known.is_none() {
                    matched = None;
                }
                continue;
            }
            if let Some(known) = known.filter(|known| *known <= skip) {
                skip -= known;
                continue;
            }
            let scan = scan.offset(skip).limit(left).with_batch_rows(left.clamp(1, 1024));
            let mut found = 0;
            for batch in scan.batches() {
                call.work.check_deadline()?;
                let batch = batch?;
                found += batch.rows.len() as u64;
                if is_arrow {
                    batches.push(batch.columns);
                    continue;
                }
                for row in 0..batch.rows.len() {
                    let values =
                        batch.columns.iter().zip(&cells).enumerate().map(|(column, (values, kind))| {
                            let (json, is_cut) = cell(values, row, *kind);
                            if is_cut {
                                cut.push([rows.len(), column]);
                            }
                            json
                        });
                    let values = values.collect();
                    rows.push(values);
                }
            }
            left -= found;
            skip = match known {
                Some(_) => 0,
                // How many rows of this file match is known only if some came back.
                None if found > 0 || skip == 0 => 0,
                None => skip.saturating_sub(count(call, &filtered(file, filter.as_ref())?)?),
            };
        }
        if is_arrow {
            return arrow(first, &positions, batches);
        }
        let total = table.rows();
        Ok(Reply::json(&RowsJson {
            columns,
            offset,
            limit,
            total,
            matched,
            rows,
            cut,
            took_ms: millis(started.elapsed()),
        }))
    })
}

fn filtered(file: &File, filter: Option<&Expr>) -> Result<tercet::tatami::Scan, Failure> {
    let scan = file.scan();
    Ok(match filter {
        Some(filter) => scan.filter(filter)?,
        None => scan,
    })
}

/// Counts group by group, so that it can be cancelled.
fn count(call: &Call<'_>, scan: &tercet::tatami::Scan) -> Result<u64, Failure> {
    let mut count = 0;
    for group in 0..scan.file().group_count() {
        call.work.check_deadline()?;
        count += scan.clone().groups(&[group])?.count()?;
    }
    Ok(count)
}

#[cfg(feature = "arrow")]
fn arrow(
    file: &File,
    positions: &[usize],
    batches: Vec<Vec<tercet::tatami::Column>>,
) -> Result<Reply, Failure> {
    use tercet::arrow::{Format, Table, TableWriter};
    let failed = |error: tercet::arrow::Error| Failure::from_error(&error);
    let table = Table::from_file(file, positions).map_err(failed)?;
    let mut writer =
        TableWriter::new(Format::ArrowStream, file.name(), &table, Vec::new()).map_err(failed)?;
    for columns in batches {
        writer.append(columns).map_err(failed)?;
    }
    let written = writer.finish().map_err(failed)?;
    let reply = Reply::bytes("application/vnd.apache.arrow.stream", written.output);
    Ok(reply.with_header(header::CONTENT_DISPOSITION, "attachment; filename=\"rows.arrows\""))
}

#[cfg(not(feature = "arrow"))]
fn arrow(_: &File, _: &[usize], _: Vec<Vec<tercet::tatami::Column>>) -> Result<Reply, Failure> {
    let _ = header::CONTENT_DISPOSITION;
    Err(Failure::request("this build has no Arrow"))
}

fn statistics(call: &Call<'_>) -> Result<Reply, Failure> {
    let started = Instant::now();
    let table = Table::open(call)?;
    cached(call, &table.stamp, || {
        let filter = table.filter(call)?;
        let name = call.params.path("column");
        let top: usize = call.params.number("top").unwrap_or(20);
        let Some((schema, logical_types)) = table.schema() else {
            return Err(Failure::not_found(format!("no column `{}`", crate::catalog::shown(name))));
        };
        let Some(index) = schema.index_of(name) else {
            return Err(Failure::not_found(format!("no column `{}`", crate::catalog::shown(name))));
        };
        let (field, logical_type) = (&schema.fields()[index], logical_types[index]);
        let cell_type = CellType::new(field.element.unwrap_or(field.kind), logical_type, true);
        let is_list = field.element.is_some();
        let is_number = !is_list
            && logical_type.is_none_or(LogicalType::is_number)
            && !matches!(
                field.kind,
                Type::Bool | Type::String | Type::Bytes | Type::BlobRef | Type::TimestampMicros
            );
        let mut counts: std::collections::HashMap<Vec<u8>, (Json, u64)> = std::collections::HashMap::new();
        let mut numbers = Numbers::default();
        let (mut rows, mut nulls, mut is_complete) = (0u64, 0u64, !is_list);
        let (mut min, mut max): (Option<Scalar>, Option<Scalar>) = (None, None);
        for file in &table.files {
            let scan = filtered(file, filter.as_ref())?.columns(&[name])?;
            for batch in scan.batches() {
                call.work.check_deadline()?;
                let batch = batch?;
                let Some(values) = batch.columns.first() else { continue };
                for row in 0..batch.rows.len() {
                    rows += 1;
                    if !values.is_present(row) {
                        nulls += 1;
                        continue;
                    }
                    let Some(value) = values.scalar(row) else { continue };
                    if is_number && let Some(number) = number(&value) {
                        numbers.push(number);
                    }
                    let less = |a: &Scalar, b: &Scalar| a.order(b).is_some_and(Ordering::is_lt);
                    if min.as_ref().is_none_or(|min| less(&value, min)) {
                        min = Some(value.clone());
                    }
                    if max.as_ref().is_none_or(|max| less(max, &value)) {
                        max = Some(value.clone());
                    }
                    if !is_complete {
                        continue;
                    }
                    let key = key(&value);
                    if let Some((_, count)) = counts.get_mut(&key) {
                        *count += 1;
                    } else if counts.len() < MAX_DISTINCT {
                        counts.insert(key, (scalar(&value, cell_type).0, 1));
                    } else {
                        is_complete = false;
                        counts = std::collections::HashMap::new();
                    }
                }
            }
        }
        let mut bins = numbers.bins().filter(|_| logical_type.is_none());
        if let Some(bins) = &mut bins {
            fill(bins, &numbers, call, &table, filter.as_ref(), name)?;
        }
        let (sum, mean) =
            if is_number { sums(call, &table, name, filter.as_ref())? } else { (Json::Null, None) };
        let distinct = is_complete.then_some(counts.len() as u64);
        let top = is_complete.then(|| {
            let mut all: Vec<(Vec<u8>, (Json, u64))> = counts.into_iter().collect();
            all.sort_by(|(a, (_, most)), (b, (_, count))| count.cmp(most).then_with(|| a.cmp(b)));
            all.into_iter().take(top).map(|(_, (value, count))| ValueJson { value, count }).collect()
        });
        // Decimals in bytes are not in the order of numbers.
        let is_decimal = logical_type.is_some_and(LogicalType::is_number);
        let is_ordered = !is_list && (field.kind != Type::Bytes || !is_decimal);
        let shown = |bound: Option<Scalar>| {
            bound.filter(|_| is_ordered).map_or(Json::Null, |bound| scalar(&bound, cell_type).0)
        };
        Ok(Reply::json(&StatsJson {
            column: name.to_owned(),
            kind: kind_of(field),
            logical_type: logical_type.map(|kind| kind.to_string()),
            rows,
            nulls,
            distinct,
            min: shown(min),
            max: shown(max),
            mean,
            sum,
            top,
            histogram: bins.map(Bins::into_json),
            took_ms: millis(started.elapsed()),
        }))
    })
}

/// Exact sum and mean, by the library; of a collection its members' sums are not added.
fn sums(
    call: &Call<'_>,
    table: &Table,
    name: &str,
    filter: Option<&Expr>,
) -> Result<(Json, Option<Shortest<f64>>), Failure> {
    let [file] = &table.files[..] else { return Ok((Json::Null, None)) };
    call.work.check_deadline()?;
    let none: [&str; 0] = [];
    let result = filtered(file, filter)?.aggregate(&none, &[Aggregate::sum(name), Aggregate::mean(name)])?;
    let of = |at: usize| {
        let kind = CellType::new(result.fields[at].kind, result.logical_types[at], true);
        cell(&result.columns[at], 0, kind).0
    };
    let mean = of(1).as_f64().map(Shortest);
    Ok((of(0), mean))
}

#[expect(clippy::cast_precision_loss, reason = "for display")]
fn number(value: &Scalar) -> Option<f64> {
    let number = match value {
        Scalar::Int8(value) => f64::from(*value),
        Scalar::Int16(value) => f64::from(*value),
        Scalar::Int32(value) => f64::from(*value),
        Scalar::Int64(value) => *value as f64,
        Scalar::UInt8(value) => f64::from(*value),
        Scalar::UInt16(value) => f64::from(*value),
        Scalar::UInt32(value) => f64::from(*value),
        Scalar::UInt64(value) => *value as f64,
        Scalar::Float32(value) => f64::from(*value),
        Scalar::Float64(value) => *value,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

/// Bytes that are equal for equal values, in their order where it matters.
fn key(value: &Scalar) -> Vec<u8> {
    match value {
        Scalar::Bytes(bytes) => bytes.clone(),
        other => other.to_string().into_bytes(),
    }
}

/// The range of numbers, and the numbers themselves if there are not too many.
#[derive(Debug, Default)]
struct Numbers {
    kept: Vec<f64>,
    /// Whether there are more.
    is_cut: bool,
    range: Option<(f64, f64)>,
}

impl Numbers {
    fn push(&mut self, number: f64) {
        let (low, high) = self.range.unwrap_or((number, number));
        self.range = Some((low.min(number), high.max(number)));
        if self.kept.len() < MAX_DISTINCT {
            self.kept.push(number);
        } else {
            self.is_cut = true;
        }
    }

    /// Empty bins of the range; `None` if the numbers are equal.
    fn bins(&self) -> Option<Bins> {
        let (low, high) = self.range?;
        // Halves, so that the difference of extreme values is finite.
        let width = high / 2.0 - low / 2.0;
        (width > 0.0).then(|| Bins { low, high, width, counts: vec![0; BINS] })
    }
}

/// The bins of a histogram.
#[derive(Debug)]
struct Bins {
    low: f64,
    high: f64,
    /// Half of the difference.
    width: f64,
    counts: Vec<u64>,
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bins"
)]
impl Bins {
    fn add(&mut self, number: f64) {
        let fraction = (number / 2.0 - self.low / 2.0) / self.width;
        self.counts[((fraction * BINS as f64) as usize).min(BINS - 1)] += 1;
    }

    fn into_json(self) -> HistogramJson {
        let edge = |at: usize| {
            let part = at as f64 / BINS as f64;
            self.low * (1.0 - part) + self.high * part
        };
        HistogramJson { edges: (0..=BINS).map(edge).collect(), counts: self.counts }
    }
}

/// Counts the numbers of a column; if not all were kept, they are read again.
fn fill(
    bins: &mut Bins,
    numbers: &Numbers,
    call: &Call<'_>,
    table: &Table,
    filter: Option<&Expr>,
    name: &str,
) -> Result<(), Failure> {
    if !numbers.is_cut {
        for number in &numbers.kept {
            bins.add(*number);
        }
        return Ok(());
    }
    for file in &table.files {
        let scan = filtered(file, filter)?.columns(&[name])?;
        for batch in scan.batches() {
            call.work.check_deadline()?;
            let batch = batch?;
            let Some(values) = batch.columns.first() else { continue };
            let present = (0..batch.rows.len()).filter(|row| values.is_present(*row));
            present.filter_map(|row| number(&values.scalar(row)?)).for_each(|number| bins.add(number));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(numbers: &[f64]) -> Option<HistogramJson> {
        let mut all = Numbers::default();
        for number in numbers {
            all.push(*number);
        }
        let mut bins = all.bins()?;
        for number in numbers {
            bins.add(*number);
        }
        Some(bins.into_json())
    }

    #[test]
    fn histograms_count_every_value_once() {
        let numbers: Vec<f64> = (0..=100).map(f64::from).collect();
        let found = histogram(&numbers).unwrap();
        assert_eq!((found.counts.iter().sum::<u64>(), found.edges.len()), (101, 21));
        assert_eq!((found.edges[0], found.edges[20]), (0.0, 100.0));
        assert!(histogram(&[1.0, 1.0]).is_none() && histogram(&[]).is_none());
        assert_eq!(histogram(&[f64::MIN, f64::MAX]).unwrap().counts.iter().sum::<u64>(), 2);
    }

    #[test]
    fn the_memory_of_a_histogram_is_bounded() {
        let mut numbers = Numbers::default();
        for number in 0..300_000 {
            numbers.push(number.into());
        }
        assert!(numbers.is_cut && numbers.kept.capacity() <= MAX_DISTINCT);
        assert_eq!(numbers.range, Some((0.0, 299_999.0)));
    }
}
