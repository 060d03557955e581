//! Pruning of row groups and pages by statistics, without decoding values.

use std::ops::Range;
use std::sync::Arc;

use crate::chunk::PageTable;
use crate::error::ErrorKind;
use crate::file::Inner;
use crate::page::bounds::Bounds;
use crate::predicate::{Comparison, Leaf, Mask, Predicate, Summary, TriState};
use crate::prune::bloom::Bloom;
use crate::scalar::Scalar;
use crate::schema::Type;
use crate::wire::footer::Zone;
use crate::wire::ids::{Encoding, file_flags, page_flags};

/// The structure that pruned rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PrunedBy {
    /// Zone maps and null counts.
    Zone,
    /// A bloom filter.
    Bloom,
    /// Page statistics.
    Bounds,
    /// A dictionary.
    Dictionary,
}

/// Rows of a group with the same verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Relative to the row group.
    pub(super) rows: Range<u64>,
    pub(super) verdict: Verdict,
}

/// The result for some rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No row matches.
    Never(PrunedBy),
    /// All rows match.
    Always,
    /// Undecided: tested by value.
    Maybe,
}

/// The plan for a row group.
#[derive(Debug)]
pub(super) struct GroupPlan {
    pub(super) group: usize,
    /// The result for the group.
    pub(super) verdict: Verdict,
    /// The rows of the group, in order; all of them unless the scan is restricted.
    pub(super) segments: Vec<Segment>,
    /// Pages of the filter columns, and the number of those that are not decoded.
    pub(super) pages: u64,
    pub(super) pages_skipped: u64,
    /// The results of comparisons for each dictionary value, by comparison.
    answers: Vec<DictionaryAnswer>,
}

/// The results of a comparison for the values of a dictionary.
#[derive(Debug)]
struct DictionaryAnswer {
    /// The number of the comparison.
    comparison: usize,
    values: Mask,
    /// Whether any value makes it true, and whether any makes it false.
    yes: bool,
    no: bool,
}

impl GroupPlan {
    /// The results of a comparison for each dictionary value of its column, if they are known.
    pub(super) fn dictionary_answer(&self, comparison: usize) -> Option<&Mask> {
        self.answers.iter().find(|answer| answer.comparison == comparison).map(|answer| &answer.values)
    }

    /// The plan without a filter.
    pub(super) fn everything(inner: &Inner, group: usize) -> Self {
        let rows = inner.footer.groups.get(group).map_or(0, |group| group.rows);
        Self::uniform(group, rows, Verdict::Always)
    }

    /// The rows of the plan.
    pub(super) fn rows(&self) -> u64 {
        self.segments.iter().fold(0, |sum, segment| sum.saturating_add(segment.rows.end - segment.rows.start))
    }

    /// Keeps only these rows, relative to the group and ascending.
    pub(super) fn restrict(&mut self, rows: &[Range<u64>]) {
        let mut kept = Vec::new();
        for segment in &self.segments {
            let first = rows.partition_point(|range| range.end <= segment.rows.start);
            let inside = rows[first..].iter().take_while(|range| range.start < segment.rows.end);
            kept.extend(inside.map(|range| Segment {
                rows: range.start.max(segment.rows.start)..range.end.min(segment.rows.end),
                verdict: segment.verdict,
            }));
        }
        self.segments = kept;
    }

    fn uniform(group: usize, rows: u64, verdict: Verdict) -> Self {
        let segments = if rows == 0 { Vec::new() } else { vec![Segment { rows: 0..rows, verdict }] };
        Self { group, verdict, segments, pages: 0, pages_skipped: 0, answers: Vec::new() }
    }

    /// Evaluates zone maps and bloom filters, then page statistics.
    pub(super) fn make(inner: &Inner, predicate: &Predicate, group: usize) -> Result<Self, ErrorKind> {
        let rows = inner.group(group)?.rows;
        let mut by = PrunedBy::Zone;
        let tri_state = predicate.tri_state(&mut |leaf| {
            let (column, test) = match leaf {
                Leaf::Test(_, column, test) => (column, test),
                Leaf::Columns(pair) => {
                    let left = chunk_summary(inner, group, pair.left)?;
                    return Ok(pair.tri_state(&left, &chunk_summary(inner, group, pair.right)?));
                }
            };
            let tri_state = test.tri_state(&chunk_summary(inner, group, column)?);
            if tri_state.yes && filtered_out(inner, group, column, test)? {
                by = PrunedBy::Bloom;
                return Ok::<_, ErrorKind>(TriState { yes: false, ..tri_state });
            }
            Ok(tri_state)
        })?;
        let columns = predicate.columns();
        let count = |column: &usize| inner.chunk(group, *column).map_or(0, |chunk| chunk.pages);
        let pages = columns.iter().map(count).sum();
        let verdict = match tri_state {
            _ if tri_state.is_never() => Verdict::Never(by),
            _ if tri_state.is_always() => Verdict::Always,
            _ => Verdict::Maybe,
        };
        if verdict != Verdict::Maybe {
            let mut plan = Self::uniform(group, rows, verdict);
            (plan.pages, plan.pages_skipped) = (pages, pages);
            return Ok(plan);
        }
        let column_pages: Vec<ColumnPages> = columns
            .iter()
            .map(|column| ColumnPages::plan(inner, group, *column, predicate))
            .collect::<Result<_, ErrorKind>>()?;
        let mut plan =
            Self { group, verdict, segments: Vec::new(), pages, pages_skipped: 0, answers: Vec::new() };
        plan.cut(&column_pages, predicate, rows);
        plan.pages_skipped = plan.skipped(&column_pages);
        plan.answers = column_pages.into_iter().flat_map(|pages| pages.dictionary).collect();
        Ok(plan)
    }

    /// Splits the rows at the page starts of all filter columns, and evaluates each range.
    fn cut(&mut self, column_pages: &[ColumnPages], predicate: &Predicate, rows: u64) {
        let mut starts: Vec<u64> = column_pages.iter().flat_map(ColumnPages::starts).collect();
        starts.push(0);
        starts.sort_unstable();
        starts.dedup();
        let mut cursors = vec![0; column_pages.len()];
        for (index, start) in starts.iter().enumerate() {
            let end = starts.get(index + 1).copied().unwrap_or(rows);
            for (cursor, column_pages) in cursors.iter_mut().zip(column_pages) {
                while column_pages
                    .table
                    .pages
                    .get(*cursor + 1)
                    .is_some_and(|page| u64::from(page.header.first_row) <= *start)
                {
                    *cursor += 1;
                }
            }
            let mut by = PrunedBy::Bounds;
            let tri_state = predicate.tri_state(&mut |leaf| {
                let pages_of = |column: usize| {
                    column_pages.iter().zip(&cursors).find(|(column_pages, _)| column_pages.column == column)
                };
                let (number, column, test) = match leaf {
                    Leaf::Test(number, column, test) => (number, column, test),
                    Leaf::Columns(pair) => {
                        let summary = |column| {
                            pages_of(column).and_then(|(pages, cursor)| pages.summaries.get(*cursor))
                        };
                        let both = summary(pair.left).zip(summary(pair.right));
                        return Ok(both.map_or(TriState::ANY, |(left, right)| pair.tri_state(left, right)));
                    }
                };
                let Some((column_pages, cursor)) = pages_of(column) else {
                    return Ok::<_, ErrorKind>(TriState::ANY);
                };
                let (tri_state, dictionary) = column_pages.tri_state(*cursor, number, test);
                if dictionary {
                    by = PrunedBy::Dictionary;
                }
                Ok(tri_state)
            });
            let tri_state = tri_state.unwrap_or(TriState::ANY);
            let verdict = match tri_state {
                _ if tri_state.is_never() => Verdict::Never(by),
                _ if tri_state.is_always() => Verdict::Always,
                _ => Verdict::Maybe,
            };
            match self.segments.last_mut() {
                Some(last) if last.verdict == verdict => last.rows.end = end,
                _ => self.segments.push(Segment { rows: *start..end, verdict }),
            }
        }
        self.segments.retain(|segment| !segment.rows.is_empty());
    }

    /// The number of pages without undecided rows.
    fn skipped(&self, column_pages: &[ColumnPages]) -> u64 {
        let open: Vec<&Range<u64>> = self
            .segments
            .iter()
            .filter(|segment| segment.verdict == Verdict::Maybe)
            .map(|segment| &segment.rows)
            .collect();
        let skipped = |column_pages: &ColumnPages| {
            column_pages
                .table
                .pages
                .iter()
                .filter(|page| {
                    let start = u64::from(page.header.first_row);
                    let end = start + u64::from(page.header.values);
                    let next = open.partition_point(|rows| rows.end <= start);
                    open.get(next).is_none_or(|rows| rows.start >= end)
                })
                .count() as u64
        };
        column_pages.iter().map(skipped).sum()
    }
}

/// The pages of one column and their statistics.
#[derive(Debug)]
struct ColumnPages {
    column: usize,
    table: Arc<PageTable>,
    summaries: Vec<Summary>,
    /// The results of each comparison of this column for the dictionary values.
    dictionary: Vec<DictionaryAnswer>,
}

impl ColumnPages {
    fn plan(inner: &Inner, group: usize, column: usize, predicate: &Predicate) -> Result<Self, ErrorKind> {
        let reader = inner.chunk_reader(group, column);
        let table = reader.page_table()?;
        let kind = inner.field(column).scalar();
        let sort_key = inner.field(column).sort_key && inner.header.has(file_flags::SORTED);
        let index = if sort_key && inner.chunk(group, column)?.page_index.is_some() {
            Some(reader.key_index()?)
        } else {
            None
        };
        let chunk = chunk_summary(inner, group, column)?;
        let mut summaries = Vec::with_capacity(table.pages.len());
        let mut coded = false;
        for (number, entry) in table.pages.iter().enumerate() {
            coded |= entry.header.encoding == Encoding::Dictionary;
            let mut summary = Summary {
                nulls: Some(entry.header.nulls.into()),
                rows: entry.header.values.into(),
                bounds: chunk.bounds.clone(),
                exact: false,
                nan: kind.is_float(),
            };
            let indexed = index.as_ref().and_then(|index| index.pages.get(number)?.zone.as_ref());
            if let Some(zone) = indexed.filter(|zone| inner.trusted(kind, 1, zone)) {
                summary.bounds = scalars(kind, zone);
                summary.exact = true;
            } else if entry.header.has(page_flags::BOUNDS) {
                let page = reader.page(number, entry);
                if let Some(bounds) = page.split_bounds(&page.stored()?)?.0 {
                    summary.nan = bounds.has_nan;
                    summary.exact = bounds.min_exact && bounds.max_exact;
                    summary.bounds = from_bounds(kind, &bounds);
                }
            }
            summaries.push(summary);
        }
        let dictionary = if coded { dictionary_answers(inner, column, predicate)? } else { Vec::new() };
        Ok(Self { column, table, summaries, dictionary })
    }

    fn starts(&self) -> impl Iterator<Item = u64> + '_ {
        self.table.pages.iter().map(|page| u64::from(page.header.first_row))
    }

    /// The possible results of a comparison in a page, and whether the dictionary decided it.
    fn tri_state(&self, page: usize, number: usize, test: &Comparison<Scalar>) -> (TriState, bool) {
        let Some((summary, entry)) = self.summaries.get(page).zip(self.table.pages.get(page)) else {
            return (TriState::ANY, false);
        };
        let tri_state = test.tri_state(summary);
        if entry.header.encoding != Encoding::Dictionary {
            return (tri_state, false);
        }
        let Some(answer) = self.dictionary.iter().find(|answer| answer.comparison == number) else {
            return (tri_state, false);
        };
        let decided = (tri_state.yes && !answer.yes) || (tri_state.no && !answer.no);
        let (yes, no) = (tri_state.yes && answer.yes, tri_state.no && answer.no);
        (TriState { yes, no, ..tri_state }, decided)
    }
}

fn dictionary_answers(
    inner: &Inner,
    column: usize,
    predicate: &Predicate,
) -> Result<Vec<DictionaryAnswer>, ErrorKind> {
    let site = (crate::Region::Chunk { group: 0, column: crate::chunk::number(column) }, 0);
    let values = inner.value_dictionary(column, site)?;
    // Dictionary codes of lists are elements, whose results are not those of rows.
    if inner.field(column).kind == Type::List {
        return Ok(Vec::new());
    }
    let mut out = Vec::new();
    // No short circuit, so that every comparison is visited.
    visit(predicate, &mut |comparison, tested, test| {
        if tested == column && !matches!(test, Comparison::IsNull) {
            let mask = test.values(&values);
            let yes = mask.count();
            let (yes, no) = (yes > 0, yes < values.len());
            out.push(DictionaryAnswer { comparison, values: mask, yes, no });
        }
    });
    Ok(out)
}

/// Visits the comparisons of a filter: number, column, comparison.
fn visit<'a>(predicate: &'a Predicate, each: &mut impl FnMut(usize, usize, &'a Comparison<Scalar>)) {
    match predicate {
        Predicate::Comparison { column, test, number } => each(*number, *column, test),
        Predicate::Columns(_) => {}
        Predicate::And(parts) | Predicate::Or(parts) => parts.iter().for_each(|part| visit(part, each)),
        Predicate::Not(part) => visit(part, each),
    }
}

/// The statistics of a chunk in the footer.
pub(super) fn chunk_summary(inner: &Inner, group: usize, column: usize) -> Result<Summary, ErrorKind> {
    let chunk = inner.chunk(group, column)?;
    let kind = inner.field(column).scalar();
    let zone = chunk.zone.as_ref().filter(|zone| inner.trusted(kind, chunk.pages, zone));
    Ok(Summary {
        bounds: zone.and_then(|zone| scalars(kind, zone)),
        exact: true,
        nan: kind.is_float(),
        nulls: Some(chunk.nulls),
        rows: chunk.values,
    })
}

fn scalars(kind: Type, zone: &Zone) -> Option<(Scalar, Scalar)> {
    Some((Scalar::from_bytes(kind, &zone.min)?, Scalar::from_bytes(kind, &zone.max)?))
}

fn from_bounds(kind: Type, bounds: &Bounds) -> Option<(Scalar, Scalar)> {
    scalars(kind, &bounds.zone)
}

/// Whether the bloom filter of a chunk excludes all values of a comparison.
fn filtered_out(
    inner: &Inner,
    group: usize,
    column: usize,
    test: &Comparison<Scalar>,
) -> Result<bool, ErrorKind> {
    let Some(members) = test.members() else { return Ok(false) };
    let chunk = inner.chunk(group, column)?;
    let number = chunk.bloom.and_then(|number| usize::try_from(number.checked_sub(1)?).ok());
    // An unreadable filter is ignored.
    let Some(filter) = number.and_then(|index| Bloom::read(inner, index).ok()) else { return Ok(false) };
    Ok(!members.into_iter().any(|value| filter.may_contain(value)))
}
