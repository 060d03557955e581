//! Hits sorted by a column.

use std::cmp::Ordering;

use super::RankedDocument;
use super::rows;
use crate::error::{Error, ErrorKind};
use crate::scalar::Scalar;
use crate::schema::Type;
use crate::search::options::Cancel;
use crate::search::segment::{Matches, Segment};

/// The order of hits by a column. Documents without a value, and those of segments without the column, are last; equal ones are in the
/// order of their segments and rows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SortBy {
    /// The column.
    pub column: String,
    /// Whether the largest value is first.
    pub descending: bool,
}

impl SortBy {
    /// The smallest value first.
    pub fn ascending(column: impl Into<String>) -> Self {
        Self { column: column.into(), descending: false }
    }

    /// The largest value first.
    pub fn descending(column: impl Into<String>) -> Self {
        Self { column: column.into(), descending: true }
    }
}

/// A document and its value.
type Keyed = (Option<Scalar>, usize, u32);

/// The first `wanted` matching documents.
pub(super) fn sorted(
    segments: &[Segment],
    found: &[Matches],
    sort: &SortBy,
    wanted: usize,
    cancel: Cancel<'_>,
) -> Result<Vec<RankedDocument>, Error> {
    let mut best: Vec<Keyed> = Vec::new();
    let mut first_kind = None;
    super::check_column(segments, &sort.column)?;
    for (at, (segment, matches)) in segments.iter().zip(found).enumerate() {
        let file = segment.file();
        let Some(column) = file.schema().index_of(&sort.column) else {
            for row in matches.rows.positions() {
                best.push((None, at, u32::try_from(row).unwrap_or(u32::MAX)));
                if best.len() / 2 > wanted {
                    cut(&mut best, sort, wanted);
                }
            }
            continue;
        };
        let kind = file.schema().fields()[column].kind;
        check(segment, &sort.column, kind, *first_kind.get_or_insert(kind))?;
        for batch in file.scan().rows(rows(matches))?.column_positions(&[column])?.batches() {
            let batch = batch?;
            cancel.check().map_err(|cancelled| file.error(cancelled.into()))?;
            for (index, row) in batch.rows.iter().enumerate() {
                let value = batch.columns[0].scalar(index).filter(|value| !value.is_nan());
                best.push((value, at, u32::try_from(*row).unwrap_or(u32::MAX)));
            }
            // Memory: twice the wanted hits and a batch.
            if best.len() / 2 > wanted {
                cut(&mut best, sort, wanted);
            }
        }
    }
    cut(&mut best, sort, wanted);
    Ok(best
        .into_iter()
        .map(|(_, segment, document)| RankedDocument { segment, document, score: None })
        .collect())
}

fn check(segment: &Segment, column: &str, kind: Type, first: Type) -> Result<(), Error> {
    if matches!(kind, Type::List | Type::BlobRef) {
        let function = "sorting by it";
        let kind = kind.to_string().into();
        return Err(segment.file().error(ErrorKind::NoAggregate { function, column: column.into(), kind }));
    }
    if kind != first {
        let reason = format!("the types of column `{}` differ", tercet_core::escape::name(column));
        let other = "the first segment".into();
        return Err(segment.file().error(ErrorKind::SchemaMismatch { other, reason: reason.into() }));
    }
    Ok(())
}

/// Sorts, and keeps the first documents.
fn cut(best: &mut Vec<Keyed>, sort: &SortBy, wanted: usize) {
    best.sort_by(|one, other| {
        let by_value = match (&one.0, &other.0) {
            (Some(one), Some(other)) => {
                let order = one.order(other).unwrap_or(Ordering::Equal);
                if sort.descending { order.reverse() } else { order }
            }
            (one, other) => other.is_some().cmp(&one.is_some()),
        };
        by_value.then_with(|| (one.1, one.2).cmp(&(other.1, other.2)))
    });
    best.truncate(wanted);
}
