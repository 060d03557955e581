//! Reader of blob values.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use rayon::prelude::*;
use tercet_codec::bytes::zstd;
use tercet_codec::varint;
use tercet_core::limits::check_limit;
use tercet_core::{Budget, FieldReader, Limits, Reason, Span};

use super::pick::Picker;
use crate::block_codec::{Record, fault};
use crate::chunk::number;
use crate::column::{Column, Strings, Values, View};
use crate::error::ErrorKind;
use crate::file::{Inner, check_dictionary, section_fault};
use crate::region::Region;
use crate::schema::Type;
use crate::wire::cursor::Varints as _;
use crate::wire::footer::{BLOBS, BlobColumn, Footer, Run};
use crate::wire::ids::{Codec, Kind};
use crate::wire::page::HEADER_LEN;

/// Runs that are read together from a remote file.
const RUNS_AT_ONCE: usize = 16;

/// Number of cached decoded runs: consecutive rows are mostly in one run.
const CACHED_RUNS: usize = 4;

/// The values of one BLOBREF column.
#[derive(Debug)]
pub(crate) struct BlobReader {
    pub(crate) column: usize,
    /// The number of the first value of each row group, then the total.
    groups: Vec<u64>,
    /// The number of the first value of each run, then the total.
    runs: Vec<u64>,
    descriptor: usize,
    dictionary: Option<usize>,
    kept: Mutex<VecDeque<(usize, Arc<DecodedRun>)>>,
    /// The run of the last single-value read.
    last_picked: AtomicUsize,
}

/// A decoded run.
#[derive(Debug)]
struct DecodedRun {
    bytes: Bytes,
    /// The start of the first value, then the end of each value.
    ends: Vec<u32>,
}

impl BlobReader {
    /// One reader per BLOBREF column.
    pub(crate) fn all(footer: &Footer, recovery: bool) -> Result<Vec<Self>, ErrorKind> {
        let mut descriptors = HashMap::new();
        for (index, blob) in footer.blobs.iter().enumerate() {
            descriptors.entry(blob.column).or_insert(index);
        }
        let fields = footer.schema.fields().iter().enumerate();
        let columns = fields.filter(|(_, field)| field.kind == Type::BlobRef);
        columns
            .map(|(column, _)| {
                Self::new(footer, column, descriptors.get(&(column as u64)).copied(), recovery)
            })
            .collect()
    }

    fn new(
        footer: &Footer,
        column: usize,
        descriptor: Option<usize>,
        recovery: bool,
    ) -> Result<Self, ErrorKind> {
        let groups = sums(
            footer
                .groups
                .iter()
                .map(|group| group.chunks.get(column).map_or(0, |chunk| chunk.values - chunk.nulls)),
        )?;
        let Some(descriptor) = descriptor else {
            if groups.last() == Some(&0) {
                let runs = vec![0];
                let (kept, last_picked) = (Mutex::default(), AtomicUsize::new(usize::MAX));
                let descriptor = usize::MAX;
                return Ok(Self { column, groups, runs, descriptor, dictionary: None, kept, last_picked });
            }
            let rule = "a BLOBREF column with values has a descriptor";
            return Err(section_fault(BLOBS, "column_id", Reason::Unexpected { rule }));
        };
        let blob = &footer.blobs[descriptor];
        let runs = sums(blob.runs.iter().map(|run| run.values))?;
        if runs.last() != groups.last() && !(recovery && runs.last() > groups.last()) {
            let reason = Reason::Mismatch {
                found: runs.last().copied().unwrap_or(0),
                expected: groups.last().copied().unwrap_or(0),
                because: "the non-null rows of the column",
            };
            return Err(section_fault(BLOBS, "num_values", reason));
        }
        let dictionary =
            if blob.dictionary == 0 { None } else { Some(check_dictionary(footer, blob.dictionary)?) };
        let last_picked = AtomicUsize::new(usize::MAX);
        Ok(Self { column, groups, runs, descriptor, dictionary, kept: Mutex::default(), last_picked })
    }

    /// The number of the first value of a row group.
    pub(crate) fn first_of_group(&self, group: usize) -> u64 {
        self.groups.get(group).copied().unwrap_or(0)
    }

    /// Reads the blob values of the non-null rows from `start` on; the first value has the number `first`.
    pub(crate) fn fill(
        &self,
        inner: &Inner,
        first: u64,
        out: &mut Column,
        start: usize,
        budget: &Budget,
    ) -> Result<(), ErrorKind> {
        let rows = out.len();
        let present = match &out.validity {
            Some(validity) => validity.ones_in(start, rows),
            None => rows - start,
        };
        let Values::Bytes(strings) = &mut out.values else { return Ok(()) };
        strings.views_mut().truncate(start);
        self.read(inner, first, first + present as u64, strings, budget)?;
        if present == rows - start {
            return Ok(());
        }
        if let Some(validity) = &out.validity {
            let views = strings.views_mut();
            let mut from = start + present;
            views.resize(rows, View::EMPTY);
            for row in (start..rows).rev() {
                let view = if validity.get(row) {
                    from -= 1;
                    views[from]
                } else {
                    View::EMPTY
                };
                views[row] = view;
            }
        }
        Ok(())
    }

    fn descriptor<'a>(&self, inner: &'a Inner) -> Option<&'a BlobColumn> {
        inner.footer.blobs.get(self.descriptor)
    }

    /// Appends values `from..to` to `out`; their bytes are reserved from the budget.
    pub(crate) fn read(
        &self,
        inner: &Inner,
        from: u64,
        to: u64,
        out: &mut Strings,
        budget: &Budget,
    ) -> Result<(), ErrorKind> {
        let mut at = from;
        while at < to {
            let run = self.runs.partition_point(|first| *first <= at).saturating_sub(1);
            let (first, end) = (self.runs[run], self.runs.get(run + 1).copied().unwrap_or(at));
            let decoded = self.run(inner, run, None)?;
            let upto = to.min(end);
            let index = |value: u64| usize::try_from(value - first).unwrap_or(usize::MAX);
            let (low, high) = (index(at), index(upto));
            let whole = (high - low) * 2 >= decoded.ends.len();
            if whole {
                budget.reserve(decoded.bytes.len() as u64)?;
                let buffer = out.add_buffer(decoded.bytes.clone());
                out.push_views(decoded.ends[low..=high].windows(2).map(|ends| View {
                    buffer,
                    start: ends[0],
                    len: ends[1] - ends[0],
                }));
            } else {
                // A few values of many are copied, so that the run can be freed.
                budget.reserve((decoded.ends[high] - decoded.ends[low]).into())?;
                for ends in decoded.ends[low..=high].windows(2) {
                    out.push(&decoded.bytes[ends[0] as usize..ends[1] as usize]);
                }
            }
            at = upto;
        }
        Ok(())
    }

    /// Appends the values of some rows of a page; `base` is the number of the first value of the page.
    pub(crate) fn take(
        &self,
        inner: &Inner,
        base: u64,
        validity: Option<&crate::column::Bitmap>,
        rows: &[usize],
        out: &mut Strings,
    ) -> Result<(), ErrorKind> {
        let budget = inner.budget();
        // Non-null values before the last row, so that each bit is counted once.
        let (mut counted, mut ordinal) = (0, base);
        for row in rows {
            let Some(validity) = validity else {
                let at = base + *row as u64;
                self.read(inner, at, at + 1, out, &budget)?;
                continue;
            };
            ordinal += validity.ones_in(counted, *row) as u64;
            counted = *row;
            if validity.get(*row) {
                self.read(inner, ordinal, ordinal + 1, out, &budget)?;
            } else {
                out.push_empty(1);
            }
        }
        Ok(())
    }

    /// Appends single values by number, ascending; `None` appends an empty value. Each run is decoded once, up to its last
    /// requested value; several runs in parallel.
    pub(crate) fn pick(
        &self,
        inner: &Inner,
        wanted: &[Option<u64>],
        out: &mut Strings,
        budget: &Budget,
    ) -> Result<(), ErrorKind> {
        let numbers: Vec<u64> = wanted.iter().copied().flatten().collect();
        let mut parts: Vec<(usize, &[u64])> = Vec::new();
        let mut left = &numbers[..];
        while let Some(first) = left.first() {
            let run = self.runs.partition_point(|start| start <= first).saturating_sub(1);
            let end = self.runs.get(run + 1).copied().unwrap_or(u64::MAX);
            let here = left.partition_point(|number| *number < end).max(1);
            parts.push((run, &left[..here]));
            left = &left[here..];
        }
        let mut picked = Vec::with_capacity(parts.len());
        let at_once = if inner.source.is_remote() { RUNS_AT_ONCE } else { parts.len().max(1) };
        for parts in parts.chunks(at_once) {
            let fetched = self.fetch_runs(inner, parts.iter().map(|(run, _)| *run))?;
            let pick = || {
                parts
                    .par_iter()
                    .map(|(run, numbers)| {
                        let mut some = Strings::new();
                        self.pick_of_run(inner, *run, numbers, fetched.get(run), &mut some, budget)?;
                        Ok(some)
                    })
                    .collect::<Result<Vec<Strings>, ErrorKind>>()
            };
            picked.extend(inner.on_threads(pick)?);
        }
        let mut values = picked.iter().flat_map(Strings::iter);
        for number in wanted {
            match number {
                Some(_) => out.push(values.next().unwrap_or_default()),
                None => out.push_empty(1),
            }
        }
        Ok(())
    }

    /// The stored bytes of runs of a remote file that are not cached, each with its header.
    fn fetch_runs(
        &self,
        inner: &Inner,
        runs: impl Iterator<Item = usize>,
    ) -> Result<HashMap<usize, Bytes>, ErrorKind> {
        if !inner.source.is_remote() {
            return Ok(HashMap::new());
        }
        let (mut numbers, mut spans) = (Vec::new(), Vec::new());
        for run in runs.filter(|run| self.kept(*run).is_none()) {
            let region = Region::Run { column: number(self.column), run: number(run) };
            let (_, entry) = self.entry(inner, run)?;
            numbers.push(run);
            spans.push(inner.body_span(
                region,
                entry.offset,
                HEADER_LEN.saturating_add(entry.stored_bytes),
            )?);
        }
        Ok(numbers.into_iter().zip(inner.source.read_many(&spans)?).collect())
    }

    fn pick_of_run(
        &self,
        inner: &Inner,
        run: usize,
        numbers: &[u64],
        fetched: Option<&Bytes>,
        out: &mut Strings,
        budget: &Budget,
    ) -> Result<(), ErrorKind> {
        // A run that is requested again is cached: single-row reads are mostly of neighbouring rows.
        let again = self.last_picked.swap(run, Ordering::Relaxed) == run;
        let (first, end) = (self.runs[run], self.runs.get(run + 1).copied().unwrap_or(0));
        let few = numbers.len() as u64 * 4 < end.saturating_sub(first) || numbers.len() == 1;
        if !again && few && self.kept(run).is_none() {
            let indices: Vec<usize> =
                numbers.iter().map(|number| usize::try_from(number - first).unwrap_or(usize::MAX)).collect();
            if let Some(picker) = self.stream_run(inner, run, &indices, fetched)? {
                budget.reserve(picker.bytes.len() as u64)?;
                picker.push_to(out);
                return Ok(());
            }
        }
        self.run(inner, run, fetched)?;
        for number in numbers {
            self.read(inner, *number, number + 1, out, budget)?;
        }
        Ok(())
    }

    /// Values of a run, decoded up to the last of them; `None` if the run must be decoded completely.
    fn stream_run(
        &self,
        inner: &Inner,
        run: usize,
        indices: &[usize],
        fetched: Option<&Bytes>,
    ) -> Result<Option<Picker>, ErrorKind> {
        let region = Region::Run { column: number(self.column), run: number(run) };
        let (blob, entry) = self.entry(inner, run)?;
        if self.dictionary.is_some() || blob.codec != Codec::Zstd {
            return Ok(None);
        }
        let record = Self::record(inner, region, entry, fetched)?;
        check_limit("a decompressed payload", entry.raw_bytes, inner.options.common.limits.chunk_bytes)?;
        let mut picker = Picker::new(indices, entry);
        // Reading the complete run reports the error.
        let broke_off = zstd::decode_parts(&record.stored, |part| picker.take(part)).unwrap_or(false);
        Ok(Some(picker).filter(|picker| broke_off && picker.is_done()))
    }

    /// A cached decoded run.
    fn kept(&self, run: usize) -> Option<Arc<DecodedRun>> {
        let kept = self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        kept.iter().find(|(kept, _)| *kept == run).map(|(_, decoded)| Arc::clone(decoded))
    }

    /// A decoded run; `fetched` are its stored bytes, if they have been read.
    fn run(&self, inner: &Inner, run: usize, fetched: Option<&Bytes>) -> Result<Arc<DecodedRun>, ErrorKind> {
        if let Some(decoded) = self.kept(run) {
            return Ok(decoded);
        }
        let decoded = Arc::new(self.decode_run(inner, run, fetched)?);
        let mut kept = self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if kept.len() >= CACHED_RUNS {
            kept.pop_front();
        }
        kept.push_back((run, Arc::clone(&decoded)));
        Ok(decoded)
    }

    /// The column of a run and its footer entry.
    fn entry<'a>(&self, inner: &'a Inner, run: usize) -> Result<(&'a BlobColumn, Run), ErrorKind> {
        let entry = self.descriptor(inner).and_then(|blob| Some((blob, *blob.runs.get(run)?)));
        entry.ok_or_else(|| {
            section_fault(BLOBS, "run_count", Reason::Unexpected { rule: "every value is in a run" })
        })
    }

    /// Reads the stored bytes of a run and compares its header with the footer.
    fn record(
        inner: &Inner,
        region: Region,
        entry: Run,
        fetched: Option<&Bytes>,
    ) -> Result<Record, ErrorKind> {
        let record = match fetched {
            Some(bytes) => inner.record_in(region, entry.offset, Kind::Run, bytes)?,
            None => inner.record(region, entry.offset, Kind::Run)?,
        };
        let header = &record.header;
        let numbers = [
            ("num_values", 4, u64::from(header.values), entry.values),
            ("uncompressed_size", 8, u64::from(header.raw_bytes), entry.raw_bytes),
            ("stored_size", 12, u64::from(header.stored_bytes), entry.stored_bytes),
        ];
        for (field, at, found, expected) in numbers {
            if found != expected {
                let because = "the descriptor of the run in the footer";
                let reason = Reason::Mismatch { found, expected, because };
                return Err(fault(region, field, entry.offset + at, 4, reason));
            }
        }
        Ok(record)
    }

    /// Reads and checks one run.
    fn decode_run(
        &self,
        inner: &Inner,
        run: usize,
        fetched: Option<&Bytes>,
    ) -> Result<DecodedRun, ErrorKind> {
        let region = Region::Run { column: number(self.column), run: number(run) };
        let (blob, entry) = self.entry(inner, run)?;
        let record = Self::record(inner, region, entry, fetched)?;
        let (codec, dictionary) = match self.dictionary {
            Some(index) => (Codec::ZstdDict, Some(inner.compression_dictionary(index)?)),
            None => (blob.codec, None),
        };
        let raw = inner.decompress(
            region,
            record.span,
            &record.stored,
            codec,
            entry.raw_bytes,
            dictionary.as_deref(),
        )?;
        parse_run(region, record.span, raw, entry.values, &inner.options.common.limits)
    }

    /// The runs with values `from..to`, each with its value range.
    pub(crate) fn runs_of(&self, from: u64, to: u64) -> impl Iterator<Item = (usize, Range<u64>)> {
        let first = self.runs.partition_point(|first| *first <= from).saturating_sub(1);
        let runs = self.runs.windows(2).enumerate().skip(first);
        runs.map(move |(run, ends)| (run, ends[0].max(from)..ends[1].min(to)))
            .take_while(move |(_, values)| values.start < to)
            .filter(|(_, values)| !values.is_empty())
    }

    /// Reads and checks one run, and caches it.
    pub(crate) fn check_run(&self, inner: &Inner, run: usize) -> Result<(), ErrorKind> {
        self.run(inner, run, None).map(|_| ())
    }

    /// The number of runs.
    pub(crate) fn run_count(&self) -> u64 {
        self.runs.len().saturating_sub(1) as u64
    }

    /// Reads and checks every run and reports each error.
    pub(crate) fn verify(&self, inner: &Inner, each: &mut dyn FnMut(ErrorKind)) {
        for run in 0..self.runs.len().saturating_sub(1) {
            if let Err(fault) = self.decode_run(inner, run, None) {
                each(fault);
            }
        }
    }
}

/// Prefix sums, from 0.
fn sums(counts: impl Iterator<Item = u64>) -> Result<Vec<u64>, ErrorKind> {
    let mut out = vec![0];
    let mut sum = 0u64;
    for count in counts {
        sum = sum.checked_add(count).ok_or_else(|| {
            section_fault(BLOBS, "num_values", Reason::Overflow { what: "the number of values" })
        })?;
        out.push(sum);
    }
    Ok(out)
}

/// The values of a run: their number, their lengths, their bytes.
fn parse_run(
    region: Region,
    span: Span,
    raw: Bytes,
    values: u64,
    limits: &Limits,
) -> Result<DecodedRun, ErrorKind> {
    let mut fields = FieldReader::new(region, span.start(), &raw);
    let count = fields.count("value_count", 1)?;
    if count as u64 != values {
        let reason =
            Reason::Mismatch { found: count as u64, expected: values, because: "the header of the run" };
        return Err(fault(region, "value_count", span.start(), 0, reason));
    }
    // A run of a few bytes can declare many empty values; each takes a view in memory.
    check_limit("the values of a run", values.saturating_mul(size_of::<View>() as u64), limits.chunk_bytes)?;
    let mut at = raw.len() - fields.remaining();
    let broken = |error| ErrorKind::Codec { region, span, error: Box::new(error) };
    // Ends relative to the first value, whose start is known after the last length.
    let mut ends = Vec::with_capacity(count + 1);
    ends.push(0);
    let mut need = 0u64;
    for _ in 0..count {
        let (len, used) = varint::get(&raw[at..]).map_err(broken)?;
        need = need.saturating_add(len);
        ends.push(u32::try_from(need).unwrap_or(u32::MAX));
        at += used;
    }
    let have = (raw.len() - at) as u64;
    if need != have {
        let reason = Reason::Mismatch { found: need, expected: have, because: "the bytes after the lengths" };
        return Err(fault(region, "value_lengths", span.start(), 0, reason));
    }
    // Payloads are shorter than 4 GiB, so every end fits.
    let start = u32::try_from(at).unwrap_or(u32::MAX);
    for end in &mut ends {
        *end = end.saturating_add(start);
    }
    Ok(DecodedRun { bytes: raw, ends })
}
