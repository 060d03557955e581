//! Merges several segments into one.
//!
//! ```text
//! rows    live rows of each input  ─▶ renumbered in input order
//! terms   k-way merge              ─▶ posting lists concatenated with the new numbers
//! ```
//!
//! Text is not tokenized again: postings and norms come from the inputs. The result equals a segment built from the
//! same documents.

use std::collections::BTreeSet;

use tercet_core::{Progress, Sink, checksum};

use super::access::LengthsWriter;
use super::columns;
use super::inverted::InvertedWriter;
use super::positions::{Positions, Singles};
use super::segment::Segment;
use super::terms::Entry;
use crate::column::{Column, Values};
use crate::error::{Error, ErrorKind};
use crate::scalar::Scalar;
use crate::writer::{Writer, WriterOptions, Written};

/// Rows per batch.
const BATCH_ROWS: u64 = 2048;

/// The key of the mark of segments that updates of a collection write.
pub(crate) const UPDATE_MARK: &str = "tercet.update";

/// The new number of a dropped document.
const DROPPED: u32 = u32::MAX;

/// Options of a merge.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct MergeOptions {
    /// Keep only the last document with the same ID, by input and row.
    pub dedup: bool,
    /// Writer options.
    pub writer: WriterOptions,
}

impl MergeOptions {
    /// Sets whether only the last document with the same ID is kept.
    pub fn with_dedup(mut self, dedup: bool) -> Self {
        self.dedup = dedup;
        self
    }

    /// Sets the writer options.
    pub fn with_writer(mut self, writer: WriterOptions) -> Self {
        self.writer = writer;
        self
    }
}

/// The result of a merge.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Merged<D> {
    /// The new file.
    pub written: Written<D>,
    /// Documents of the inputs, including deleted ones.
    pub documents: u64,
    /// Documents that were deleted in the inputs.
    pub deleted: u64,
    /// Documents replaced by another one with the same ID.
    pub duplicates: u64,
    /// Whether some inputs have positions of terms and others not: the new file has none.
    pub drops_positions: bool,
}

/// Merges the live documents of several segments.
///
/// Memory: a batch of rows, one posting list, and four bytes per input document (twenty with dedup).
pub fn merge<S: Sink>(
    segments: &[Segment],
    sink: S,
    options: MergeOptions,
    progress: &dyn Progress,
) -> Result<Merged<S::Output>, Error> {
    let Some(first) = segments.first() else {
        return Err(Error::new("merge".into(), ErrorKind::NotASegment));
    };
    check_same_schema(segments)?;
    let documents = segments.iter().map(Segment::document_count).sum();
    let live: u64 = segments.iter().map(Segment::live_document_count).sum();
    if live >= u64::from(DROPPED) {
        let fault = ErrorKind::from(std::io::Error::other("a segment has at most 2³² - 2 documents"));
        return Err(first.file().error(fault));
    }
    let mut kept: Vec<Vec<bool>> = segments.iter().map(live_rows).collect();
    let duplicates =
        if options.dedup { drop_duplicates(&segments.iter().collect::<Vec<_>>(), &mut kept)? } else { 0 };
    let numbers = numbered(&kept);
    drop(kept);

    let mut writer_options = options.writer.for_documents();
    // A merged file is not a member of the collection of its inputs.
    let pairs = first.file().inner().user_pairs().into_iter();
    writer_options.metadata.extend(pairs.filter(|(key, _)| key != UPDATE_MARK));
    let schema = (**first.file().schema()).clone();
    let mut writer = Writer::new(sink, schema, writer_options)?.with_page_headers();
    let mut lengths = LengthsWriter::default();
    for (segment, numbers) in segments.iter().zip(&numbers) {
        copy_rows(segment, numbers, &mut writer, &mut lengths, progress)?;
    }
    let mut inverted = copy_terms(segments, &numbers, progress)?;
    inverted.lengths = Some(lengths);
    writer.attach(inverted);
    let written = writer.finish()?;
    let with_positions = segments.iter().filter(|segment| segment.has_positions()).count();
    let drops_positions = with_positions > 0 && with_positions < segments.len();
    Ok(Merged { written, documents, deleted: documents - live, duplicates, drops_positions })
}

/// Checks that all segments have the same storage mode and columns.
fn check_same_schema(segments: &[Segment]) -> Result<(), Error> {
    let Some((first, rest)) = segments.split_first() else { return Ok(()) };
    for segment in rest {
        let unlike = |reason: &str| {
            let other = (&**first.file().name()).into();
            Err(segment.file().error(ErrorKind::SchemaMismatch { other, reason: reason.into() }))
        };
        if segment.analyzer() != first.analyzer() {
            let analyzers = format!(
                "the analyzers differ ({} and {}); index the documents again with the same one",
                first.analyzer(),
                segment.analyzer()
            );
            return unlike(&analyzers);
        }
        if segment.is_snippet_only() != first.is_snippet_only() {
            return unlike("one stores complete documents and the other snippets");
        }
        let (one, other) = (first.file().schema().fields(), segment.file().schema().fields());
        let same = one.len() == other.len()
            && one.iter().zip(other).all(|(a, b)| {
                a.name == b.name && (a.kind, a.element, a.nullable) == (b.kind, b.element, b.nullable)
            });
        if !same {
            return unlike("the columns differ");
        }
    }
    Ok(())
}

/// Whether each document is live.
pub(super) fn live_rows(segment: &Segment) -> Vec<bool> {
    let count = u32::try_from(segment.document_count()).unwrap_or(u32::MAX);
    (0..count).map(|row| segment.live.as_ref().is_none_or(|live| live.contains(row))).collect()
}

/// Drops all but the last document of each ID; returns the number of dropped documents.
///
/// IDs are compared by hash, and in full if the hashes are equal.
pub(super) fn drop_duplicates(segments: &[&Segment], kept: &mut [Vec<bool>]) -> Result<u64, Error> {
    let mut all: Vec<(u64, u32, u32)> = Vec::new();
    for (at, segment) in segments.iter().enumerate() {
        let segment_number = u32::try_from(at).unwrap_or(u32::MAX);
        let mut row = 0u32;
        let scan = segment.file().with_deleted_rows().scan().column_positions(&[columns::DOC_ID])?;
        for batch in scan.with_batch_rows(BATCH_ROWS).without_read_ahead().batches() {
            let batch = batch?.columns;
            for inside in 0..batch[0].len() {
                if kept[at][row as usize]
                    && let Some(Scalar::Bytes(id)) = batch[0].scalar(inside)
                {
                    all.push((checksum::xxh3(&id), segment_number, row));
                }
                row += 1;
            }
        }
    }
    all.sort_unstable();
    let mut dropped = 0;
    for same in all.chunk_by(|one, other| one.0 == other.0).filter(|same| same.len() > 1) {
        // From the end: the last document of each ID.
        let mut seen: BTreeSet<Vec<u8>> = BTreeSet::new();
        for (_, at, row) in same.iter().rev() {
            let (at, row) = (*at as usize, *row);
            let ids = segments[at].file().take(&[row.into()], &[columns::DOC_ID])?;
            let Some(Scalar::Bytes(id)) = ids[0].scalar(0) else { continue };
            if !seen.insert(id) {
                kept[at][row as usize] = false;
                dropped += 1;
            }
        }
    }
    Ok(dropped)
}

/// The new number of each document.
fn numbered(kept: &[Vec<bool>]) -> Vec<Vec<u32>> {
    let mut next = 0;
    let mut number = |kept: bool| {
        let number = if kept { next } else { DROPPED };
        next += u32::from(kept);
        number
    };
    kept.iter().map(|rows| rows.iter().map(|kept| number(*kept)).collect()).collect()
}

fn copy_rows<S: Sink>(
    segment: &Segment,
    numbers: &[u32],
    writer: &mut Writer<S>,
    lengths: &mut LengthsWriter,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let file = segment.file();
    let mut row = 0;
    for batch in file.with_deleted_rows().scan().with_batch_rows(BATCH_ROWS).without_read_ahead().batches() {
        progress.check().map_err(|stopped| file.error(stopped.into()))?;
        let batch = batch?.columns;
        let count = batch.first().map_or(0, Column::len);
        let wanted: Vec<usize> = (0..count).filter(|inside| numbers[row + inside] != DROPPED).collect();
        row += count;
        let piece = if wanted.len() == count {
            batch
        } else {
            batch.iter().map(|column| column.take(&wanted)).collect()
        };
        let norms = columns::NORMS.map(|column| match piece.get(column).map(|column| &column.values) {
            Some(Values::UInt16(norms)) => &norms[..],
            _ => &[],
        });
        for row in 0..wanted.len() {
            let length = norms.iter().map(|norms| norms.get(row).map_or(0, |norm| u32::from(*norm))).sum();
            lengths.push(length).map_err(|fault| file.error(fault))?;
        }
        writer.append(&piece)?;
    }
    Ok(())
}

/// Merges the terms of all segments.
fn copy_terms(
    segments: &[Segment],
    numbers: &[Vec<u32>],
    progress: &dyn Progress,
) -> Result<super::inverted::Inverted, Error> {
    let all_have_positions = segments.iter().all(Segment::has_positions);
    let mut inputs: Vec<TermCursor<'_>> = Vec::with_capacity(segments.len());
    for segment in segments {
        inputs.push(TermCursor::new(segment)?);
    }
    let mut writer = InvertedWriter::new(None);
    if all_have_positions {
        writer = writer.with_positions(None);
    }
    loop {
        let smallest = inputs.iter().filter_map(TermCursor::term).min();
        let Some(term) = smallest.map(<[u8]>::to_vec) else { break };
        let mut begun = false;
        for (input, numbers) in inputs.iter_mut().zip(numbers) {
            if input.term() != Some(&term[..]) {
                continue;
            }
            let file = input.segment.file();
            progress.check().map_err(|stopped| file.error(stopped.into()))?;
            let mut copy = || -> Result<(), ErrorKind> {
                let Some(entry) = input.entry() else { return Ok(()) };
                let mut one = |document: u32, frequency: u32, gaps: &[u8]| -> Result<(), ErrorKind> {
                    let number = numbers.get(document as usize).copied().unwrap_or(DROPPED);
                    if number == DROPPED {
                        return Ok(());
                    }
                    if !begun {
                        writer.begin(&term)?;
                        begun = true;
                    }
                    writer.push_with(number, frequency, gaps)
                };
                if let Some((positions, singles)) = input.positions.as_mut().filter(|_| all_have_positions) {
                    return input.segment.each_position(entry, positions, singles, one);
                }
                for (document, frequency) in input.segment.info(entry)?.postings {
                    one(document, frequency, &[])?;
                }
                Ok(())
            };
            copy().map_err(|fault| file.error(fault))?;
            input.advance()?;
        }
    }
    let failed = |fault| {
        segments
            .first()
            .map_or(Error::new("merge".into(), ErrorKind::NotASegment), |first| first.file().error(fault))
    };
    writer.finish(None).map_err(failed)
}

/// A cursor over the terms of a segment.
struct TermCursor<'a> {
    segment: &'a Segment,
    block: usize,
    left: std::vec::IntoIter<(Vec<u8>, Entry)>,
    /// The positions, and those of terms in single documents.
    positions: Option<(&'a Positions, Singles<'a>)>,
    current: Option<(Vec<u8>, Entry)>,
}

impl<'a> TermCursor<'a> {
    fn new(segment: &'a Segment) -> Result<Self, Error> {
        let positions = segment.positions().map(|positions| (positions, positions.singles()));
        let mut out = Self { segment, block: 0, left: Vec::new().into_iter(), positions, current: None };
        out.advance()?;
        Ok(out)
    }

    fn term(&self) -> Option<&[u8]> {
        self.current.as_ref().map(|(term, _)| &term[..])
    }

    fn entry(&self) -> Option<Entry> {
        self.current.as_ref().map(|(_, entry)| *entry)
    }

    fn advance(&mut self) -> Result<(), Error> {
        loop {
            self.current = self.left.next();
            if self.current.is_some() {
                return Ok(());
            }
            let block = self.segment.terms.terms(self.block);
            let Some(terms) = block.map_err(|fault| self.segment.file().error(fault))? else { return Ok(()) };
            self.left = terms.into_iter();
            self.block += 1;
        }
    }
}
