//! Facets: how many of the matching documents have each value of a column.

use std::collections::HashMap;

use super::rows;
use crate::aggregate::Aggregate;
use crate::column::Values;
use crate::error::{Error, ErrorKind};
use crate::logical_type::LogicalType;
use crate::scalar::Scalar;
use crate::schema::Type;
use crate::search::segment::{Matches, Segment};

/// The values of a column in the matching documents.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Facet {
    /// The column.
    pub column: String,
    /// Its type.
    pub kind: Type,
    /// Its logical type.
    pub logical_type: Option<LogicalType>,
    /// The most frequent values, then by value.
    pub values: Vec<FacetValue>,
    /// The number of distinct values.
    pub distinct: u64,
    /// Documents with other values.
    pub others: u64,
    /// Documents without a value.
    pub missing: u64,
}

/// A value and its documents.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FacetValue {
    /// The value.
    pub value: Scalar,
    /// The matching documents with it.
    pub documents: u64,
}

/// Counts the distinct elements of each list; returns the number of documents without any.
fn count_elements(
    segment: &Segment,
    column: usize,
    matches: &Matches,
    counts: &mut HashMap<Vec<u8>, (Scalar, u64)>,
) -> Result<u64, Error> {
    let mut missing = 0;
    for batch in segment.file().scan().rows(rows(matches))?.column_positions(&[column])?.batches() {
        let batch = batch?;
        let Some(Values::List(lists)) = batch.columns.first().map(|column| &column.values) else { continue };
        for row in 0..lists.ends.len() {
            let mut here: Vec<Scalar> =
                lists.range(row).filter_map(|element| lists.elements.scalar(element)).collect();
            here.sort_by(|one, other| one.order(other).unwrap_or(std::cmp::Ordering::Equal));
            here.dedup();
            missing += u64::from(here.is_empty());
            for value in here {
                counts.entry(value.to_bytes()).or_insert((value, 0)).1 += 1;
            }
        }
    }
    Ok(missing)
}

/// The facet of a column, of a list by its elements. Documents of segments without the column have no value, unless no segment has it.
pub(super) fn facet(
    segments: &[Segment],
    found: &[Matches],
    column: &str,
    limit: usize,
) -> Result<Facet, Error> {
    let mut out: Option<Facet> = None;
    let mut counts: HashMap<Vec<u8>, (Scalar, u64)> = HashMap::new();
    let mut missing = 0;
    for (segment, matches) in segments.iter().zip(found) {
        let file = segment.file();
        let Some(index) = file.schema().index_of(column) else {
            missing += matches.rows.count() as u64;
            continue;
        };
        let field = &file.schema().fields()[index];
        let (kind, logical_type) = (field.kind, file.logical_types()[index]);
        if let Some(first) = &out
            && (first.kind, first.logical_type) != (field.scalar(), logical_type)
        {
            let reason = format!("the types of column `{}` differ", tercet_core::escape::name(column));
            let other = segments.first().map_or("", |first| first.file().name()).into();
            return Err(file.error(ErrorKind::SchemaMismatch { other, reason: reason.into() }));
        }
        out.get_or_insert_with(|| Facet {
            column: column.to_owned(),
            kind: field.scalar(),
            logical_type,
            values: Vec::new(),
            distinct: 0,
            others: 0,
            missing: 0,
        });
        if kind == Type::List {
            missing += count_elements(segment, index, matches, &mut counts)?;
            continue;
        }
        let result = file.scan().rows(rows(matches))?.aggregate(&[column], &[Aggregate::Count])?;
        let [keys, documents] = &result.columns[..] else { continue };
        for row in 0..documents.len() {
            let Some(Scalar::UInt64(documents)) = documents.scalar(row) else { continue };
            match keys.scalar(row) {
                Some(value) => {
                    counts.entry(value.to_bytes()).or_insert((value, 0)).1 += documents;
                }
                None => missing += documents,
            }
        }
    }
    let Some(mut out) = out else {
        let Some(first) = segments.first() else {
            return Err(Error::new("search".into(), ErrorKind::NotASegment));
        };
        return Err(first
            .file()
            .column_index(column)
            .map_or_else(|error| error, |_| first.file().error(ErrorKind::NotASegment)));
    };
    let mut values: Vec<FacetValue> =
        counts.into_values().map(|(value, documents)| FacetValue { value, documents }).collect();
    values.sort_by(|one, other| {
        let by_value = || one.value.order(&other.value).unwrap_or(std::cmp::Ordering::Equal);
        other.documents.cmp(&one.documents).then_with(by_value)
    });
    out.distinct = values.len() as u64;
    out.others = values.iter().skip(limit).map(|value| value.documents).sum();
    values.truncate(limit);
    (out.values, out.missing) = (values, missing);
    Ok(out)
}
