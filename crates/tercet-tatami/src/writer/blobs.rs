//! Writer of the runs of a BLOBREF column.
//!
//! Values are buffered independently of row groups. The first window decides whether a dictionary is used; then runs are
//! compressed in parallel and spooled ([`Spool`]) until all row groups are written.

use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;
use tercet_codec::bytes::zstd::{self, Dictionary};
use tercet_core::checksum::crc32c;

use super::WriterOptions;
use super::compress::{Compressor, is_worthwhile};
use super::spool::Spool;
use crate::blob::run;
use crate::column::Column;
use crate::error::ErrorKind;
use crate::wire::footer::Run;
use crate::wire::ids::{Codec, DictionaryKind, Encoding, Kind};
use crate::wire::page::PageHeader;

/// Buffered bytes of values, shared by all blob columns. The first window decides on the dictionary.
const WINDOW_BYTES: usize = 64 << 20;
/// Minimum window per column.
const MIN_WINDOW_BYTES: usize = 8 << 20;
/// Maximum memory kept for reuse.
const SPARE_BYTES: usize = 32 << 20;
/// Maximum dictionary size.
const DICTIONARY_BYTES: usize = 64 << 10;
/// Minimum sample for a dictionary.
const MIN_SAMPLE_BYTES: usize = 256;
/// Maximum training data.
const TRAINING_BYTES: usize = 8 << 20;
/// A run must fit into a record of less than 4 GiB.
const MAX_TARGET: u64 = 1 << 31;
/// Beyond this size, a dictionary is tried on a subset of the runs first.
const TRIAL_BYTES: usize = 8 << 20;
/// Minimum gain of a dictionary in the native profile: compression takes 1.5 times as long, and a run must be decoded completely
/// to read one value. If a raw dictionary has less gain, none is trained.
const MIN_GAIN_PERCENT: usize = 5;
/// Runs of this size are tried with a dictionary: one value is read by decoding up to the size of its run …
const SMALL_TARGET: u64 = 256 << 10;
/// … and they may be this much larger than long runs.
const MAX_LOSS_PERCENT: usize = 2;
/// Space before the values of a run, for their number and lengths.
const HEAD_SPACE: usize = 16 << 10;
/// The initial capacity of a run.
const INITIAL_CAPACITY: u64 = 4 << 20;

/// The buffered values of one column and its spooled runs.
#[derive(Debug)]
pub(super) struct BlobRuns {
    pub(super) column: usize,
    target: u64,
    window_bytes: usize,
    native: bool,
    compressor: Compressor,
    /// Closed runs, not compressed yet.
    closed: Vec<Values>,
    /// The open run.
    open: Values,
    /// Bytes of all buffered values.
    held: usize,
    decided: bool,
    dictionary: Option<Dictionary>,
    /// Buffers of written runs for reuse, which saves page faults.
    spare: Vec<Vec<u8>>,
    spool: Spool,
    /// Spooled runs, with offsets relative to the spool.
    runs: Vec<Run>,
}

/// The result for a column.
#[derive(Debug)]
pub(super) struct Blobs {
    pub(super) column: usize,
    pub(super) codec: Codec,
    pub(super) dictionary: Option<(DictionaryKind, Vec<u8>)>,
    pub(super) spool: Spool,
    pub(super) runs: Vec<Run>,
}

impl BlobRuns {
    /// `columns` is the number of blob columns, which share the memory.
    pub(super) fn new(
        column: usize,
        columns: usize,
        directory: Option<&Path>,
        options: &WriterOptions,
    ) -> Self {
        Self {
            column,
            target: options.blob_run_target_bytes.min(MAX_TARGET),
            window_bytes: (WINDOW_BYTES / columns.max(1)).max(MIN_WINDOW_BYTES),
            native: options.is_native(),
            compressor: Compressor::new(options),
            closed: Vec::new(),
            open: Values::default(),
            held: 0,
            // Other codecs have no dictionaries.
            decided: options.codec != Codec::Zstd,
            dictionary: None,
            spare: Vec::new(),
            spool: Spool::new(directory),
            runs: Vec::new(),
        }
    }

    /// Appends the present values of some rows.
    pub(super) fn extend(&mut self, column: &Column, rows: Range<usize>) -> Result<(), ErrorKind> {
        let crate::column::Values::Bytes(values) = &column.values else { return Ok(()) };
        for row in rows.filter(|row| column.is_present(*row)) {
            let value = values.get(row);
            let bytes = self.open.values_len() as u64;
            if run::ends(self.open.lengths.len(), bytes, value.len() as u64, self.target) {
                self.close();
                if self.held >= self.window_bytes {
                    self.spool_closed()?;
                }
            }
            if self.open.bytes.is_empty() {
                self.open.bytes = self.spare.pop().unwrap_or_else(|| {
                    let room = usize::try_from(self.target.min(INITIAL_CAPACITY)).unwrap_or(0);
                    Vec::with_capacity(HEAD_SPACE + room.max(value.len()))
                });
                self.open.bytes.resize(HEAD_SPACE, 0);
            }
            self.open.bytes.extend_from_slice(value);
            // Longer values are rejected.
            self.open.lengths.push(u32::try_from(value.len()).unwrap_or(u32::MAX));
            self.held += value.len();
        }
        Ok(())
    }

    /// Writes the last runs.
    pub(super) fn finish(mut self) -> Result<Blobs, ErrorKind> {
        if !self.open.lengths.is_empty() {
            self.close();
        }
        self.spool_closed()?;
        let codec = match &self.dictionary {
            Some(_) => Codec::ZstdDict,
            None => self.compressor.codec,
        };
        let dictionary = self.dictionary.map(|dictionary| {
            let kind = if dictionary.is_trained() { DictionaryKind::Trained } else { DictionaryKind::Raw };
            (kind, dictionary.bytes().to_vec())
        });
        Ok(Blobs { column: self.column, codec, dictionary, spool: self.spool, runs: self.runs })
    }

    /// Closes the open run and frees spare capacity.
    fn close(&mut self) {
        let mut run = std::mem::take(&mut self.open);
        run.put_head();
        if run.bytes.capacity() / 2 > run.bytes.len() {
            run.bytes.shrink_to_fit();
        }
        run.lengths.shrink_to_fit();
        self.closed.push(run);
    }

    /// Compresses and spools the closed runs.
    fn spool_closed(&mut self) -> Result<(), ErrorKind> {
        let mut runs = std::mem::take(&mut self.closed);
        let stored = if self.decided || runs.is_empty() {
            self.compress(&runs, self.dictionary.as_ref())?
        } else {
            self.decided = true;
            if let Some(dictionary) = self.try_small_runs(&runs)? {
                self.target = SMALL_TARGET;
                self.dictionary = Some(dictionary);
                runs = runs.into_iter().flat_map(|run| run.split(SMALL_TARGET)).collect();
                self.compress(&runs, self.dictionary.as_ref())?
            } else {
                let (dictionary, stored) = self.choose_dictionary(&runs)?;
                self.dictionary = dictionary;
                stored
            }
        };
        for (run, stored) in runs.iter().zip(&stored) {
            self.push(run, stored)?;
        }
        let mut kept: usize = self.spare.iter().map(Vec::capacity).sum();
        for mut run in runs {
            kept += run.bytes.capacity();
            if kept > SPARE_BYTES {
                break;
            }
            run.bytes.clear();
            self.spare.push(run.bytes);
        }
        self.held = self.open.values_len();
        Ok(())
    }

    fn compress<R: std::borrow::Borrow<Values> + Sync>(
        &self,
        runs: &[R],
        dictionary: Option<&Dictionary>,
    ) -> Result<Vec<CompressedRun>, ErrorKind> {
        runs.par_iter()
            .map(|values| {
                let payload = values.borrow().payload();
                let mut bytes = self.compressor.run(payload, dictionary)?;
                bytes.shrink_to_fit();
                Ok(CompressedRun { raw_bytes: payload.len(), bytes })
            })
            .collect()
    }

    /// A dictionary with which small runs are about as short as long ones, if there is one: the pieces that records share
    /// are in the dictionary, and single values are read much faster.
    fn try_small_runs(&self, runs: &[Values]) -> Result<Option<Dictionary>, ErrorKind> {
        let (bytes, values) = size(runs);
        let are_short = bytes as u64 <= (values as u64).saturating_mul(SMALL_TARGET / 4);
        let sample = sample(runs);
        if !self.native || 2 * SMALL_TARGET > self.target || !are_short || bytes as u64 <= 2 * SMALL_TARGET {
            return Ok(None);
        }
        let stride = bytes.div_ceil(TRIAL_BYTES);
        let some: Vec<&Values> = runs.iter().step_by(stride).collect();
        let small: Vec<Values> = some.iter().flat_map(|run| run.split(SMALL_TARGET)).collect();
        let raw: usize = some.iter().map(|run| run.payload().len()).sum();
        let plain = total(&self.compress(&some, None)?);
        if !is_worthwhile(raw, plain) {
            return Ok(None);
        }
        let cost = |candidate: &Dictionary, stored: Vec<CompressedRun>| {
            Ok::<_, ErrorKind>(total(&stored) + self.compressor.record(candidate.bytes())?.1.len() / stride)
        };
        let candidate = Dictionary::raw(sample);
        let with = cost(&candidate, self.compress(&small, Some(&candidate))?)?;
        if with > plain + plain / 100 * MAX_LOSS_PERCENT {
            return Ok(None);
        }
        let long = cost(&candidate, self.compress(&some, Some(&candidate))?)?;
        if with > long + long / 100 * MAX_LOSS_PERCENT {
            return Ok(None);
        }
        let Some(trained) = zstd::train(&training(runs), DICTIONARY_BYTES)? else {
            return Ok(Some(candidate));
        };
        let trained = Dictionary::trained(trained)?;
        let is_better = cost(&trained, self.compress(&small, Some(&trained))?)? < with;
        Ok(Some(if is_better { trained } else { candidate }))
    }

    /// The best dictionary for the buffered runs, if any, and the compressed runs.
    fn choose_dictionary(
        &self,
        runs: &[Values],
    ) -> Result<(Option<Dictionary>, Vec<CompressedRun>), ErrorKind> {
        let mut best = (None, self.compress(runs, None)?);
        let raw: usize = best.1.iter().map(|run| run.raw_bytes).sum();
        let mut smallest = total(&best.1);
        let sample = sample(runs);
        // Incompressible values need no dictionary.
        if sample.len() < MIN_SAMPLE_BYTES || self.native && !is_worthwhile(raw, smallest) {
            return Ok(best);
        }
        // The size that a dictionary has to beat.
        let goal =
            |before: usize| if self.native { before - before / 100 * MIN_GAIN_PERCENT } else { before };
        let limit = goal(smallest);
        // Evenly spaced runs, or all if there are few.
        let stride = raw.div_ceil(TRIAL_BYTES);
        let some: Vec<&Values> = runs.iter().step_by(stride).collect();
        let before: usize = best.1.iter().step_by(stride).map(|run| run.bytes.len()).sum();
        for is_trained in [false, true] {
            let candidate = match is_trained {
                false => Some(Dictionary::raw(sample.clone())),
                true if self.native => {
                    zstd::train(&training(runs), DICTIONARY_BYTES)?.map(Dictionary::trained).transpose()?
                }
                true => None,
            };
            let Some(candidate) = candidate else { continue };
            let record = self.compressor.record(candidate.bytes())?.1.len();
            if stride > 1 {
                let after = total(&self.compress(&some, Some(&candidate))?) + record / stride;
                if after >= goal(before) {
                    break;
                }
            }
            let stored = self.compress(runs, Some(&candidate))?;
            let size = total(&stored) + record;
            if size < smallest && size <= limit {
                smallest = size;
                best = (Some(candidate), stored);
            }
        }
        Ok(best)
    }

    fn push(&mut self, run: &Values, stored: &CompressedRun) -> Result<(), ErrorKind> {
        let short = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let codec = if self.dictionary.is_some() { Codec::ZstdDict } else { self.compressor.codec };
        let header = PageHeader {
            kind: Kind::Run,
            encoding: Encoding::Plain,
            codec,
            marked: false,
            flags: 0,
            values: short(run.lengths.len()),
            raw_bytes: short(stored.raw_bytes),
            stored_bytes: short(stored.bytes.len()),
            nulls: 0,
            first_row: 0,
            payload_crc: crc32c(&stored.bytes),
        };
        let offset = self.spool.push(&[&header.to_bytes(), &stored.bytes])?;
        self.runs.push(Run {
            offset,
            stored_bytes: stored.bytes.len() as u64,
            raw_bytes: stored.raw_bytes as u64,
            values: run.lengths.len() as u64,
        });
        Ok(())
    }
}

/// A run: values, their lengths, and the payload once it is closed.
#[derive(Debug, Default)]
struct Values {
    /// Space for number and lengths, then the concatenated values.
    bytes: Vec<u8>,
    lengths: Vec<u32>,
    /// Start of the payload.
    start: usize,
}

impl Values {
    /// Bytes of the values of an open run.
    fn values_len(&self) -> usize {
        self.bytes.len().saturating_sub(HEAD_SPACE)
    }

    /// Completes the payload.
    fn put_head(&mut self) {
        let head = run::head(&self.lengths);
        if let Some(start) = HEAD_SPACE.checked_sub(head.len())
            && let Some(room) = self.bytes.get_mut(start..HEAD_SPACE)
        {
            room.copy_from_slice(&head);
            self.start = start;
        } else {
            // Many short values: the space is too small.
            self.bytes.splice(..HEAD_SPACE.min(self.bytes.len()), head);
            self.start = 0;
        }
    }

    /// The same values in closed runs of another size.
    fn split(&self, target: u64) -> Vec<Self> {
        let mut out: Vec<Self> = Vec::new();
        let mut open = Self::default();
        for value in self.iter() {
            if run::ends(open.lengths.len(), open.values_len() as u64, value.len() as u64, target) {
                open.put_head();
                out.push(std::mem::take(&mut open));
            }
            if open.bytes.is_empty() {
                open.bytes.resize(HEAD_SPACE, 0);
            }
            open.bytes.extend_from_slice(value);
            open.lengths.push(u32::try_from(value.len()).unwrap_or(u32::MAX));
        }
        if !open.lengths.is_empty() {
            open.put_head();
            out.push(open);
        }
        out
    }

    /// The payload of a closed run.
    fn payload(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let total: usize = self.lengths.iter().map(|len| *len as usize).sum();
        let mut start = self.bytes.len() - total;
        self.lengths.iter().map(move |len| {
            let end = start + *len as usize;
            let value = &self.bytes[start..end];
            start = end;
            value
        })
    }
}

/// Concatenated, evenly spaced values of the runs.
fn sample(runs: &[Values]) -> Vec<u8> {
    let (total, count) = size(runs);
    let stride = if total > DICTIONARY_BYTES && count > 1 { total / DICTIONARY_BYTES } else { 1 };
    let mut out = Vec::new();
    for value in runs.iter().flat_map(Values::iter).step_by(stride) {
        let room = DICTIONARY_BYTES - out.len();
        out.extend_from_slice(&value[..value.len().min(room)]);
        if out.len() == DICTIONARY_BYTES {
            break;
        }
    }
    out
}

/// Training data: evenly spaced values of the runs, truncated.
fn training(runs: &[Values]) -> Vec<&[u8]> {
    let stride = size(runs).0 / TRAINING_BYTES + 1;
    let values = runs.iter().flat_map(Values::iter).step_by(stride);
    values.map(|value| &value[..value.len().min(DICTIONARY_BYTES)]).collect()
}

/// Total bytes and number of values of the runs.
fn size(runs: &[Values]) -> (usize, usize) {
    runs.iter().fold((0, 0), |(bytes, values), run| {
        let total: usize = run.lengths.iter().map(|len| *len as usize).sum();
        (bytes + total, values + run.lengths.len())
    })
}

/// A compressed run.
#[derive(Debug)]
struct CompressedRun {
    raw_bytes: usize,
    bytes: Vec<u8>,
}

fn total(runs: &[CompressedRun]) -> usize {
    runs.iter().map(|run| run.bytes.len()).sum()
}
