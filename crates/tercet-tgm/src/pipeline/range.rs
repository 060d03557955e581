//! Decoding of element ranges of a payload.

use std::ops::Range;

use tercet_codec::bytes::blosc2;
use tercet_codec::bytes::szip::{self, Szip};

use super::decode::zeroed;
use super::error::PipelineError;
use super::parameters::SZIP_OFFSETS;
use super::{Codec, Pipeline};
use crate::descriptor::DataObjectDescriptor;
use crate::value::Value;
use tercet_core::DType;

/// The number of values in a zfp block.
const ZFP_BLOCK: u64 = 4;

/// How a range of elements is read.
#[derive(Clone, Debug)]
pub(crate) enum RangePlan {
    /// These bytes of the payload, which are the payload of the elements from `first` on.
    Part {
        /// The byte range in the payload.
        bytes: Range<u64>,
        /// The number of the first element.
        first: u64,
        /// The pipeline of those elements.
        pipeline: Box<Pipeline>,
    },
    /// Intervals of an szip stream.
    Intervals(Intervals),
    /// Blocks of a blosc2 frame, which locates them itself.
    Blocks,
    /// The complete payload.
    Full,
}

/// The intervals of an szip stream for a range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Intervals {
    pub(crate) szip: Szip,
    /// The first interval, and the end, exclusive.
    pub(crate) first: u64,
    pub(crate) end: u64,
    /// The number of samples of the stream.
    samples: u64,
    /// The number of samples per interval.
    each: u64,
}

impl Intervals {
    /// The number of samples of the stream.
    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }

    /// The number of intervals of the stream.
    pub(crate) fn count(&self) -> u64 {
        self.samples.div_ceil(self.each)
    }

    /// The first stored offset that differs from the correct ones in `starts`.
    pub(crate) fn wrong_entry(&self, stored: &[u64], starts: &[u64]) -> Option<PipelineError> {
        let count = usize::try_from(self.count()).unwrap_or(usize::MAX);
        let starts = &starts[..starts.len().min(count)];
        let entries = stored.iter().map(Some).chain(std::iter::repeat(None)).zip(starts).enumerate();
        let mut entries = entries.filter(|(_, (found, start))| *found != Some(*start));
        match entries.next() {
            Some((entry, (found, start))) => Some(PipelineError::SzipOffset {
                entry: entry as u64,
                found: found.copied(),
                expected: Some(*start),
            }),
            None => stored.get(starts.len()).map(|found| PipelineError::SzipOffset {
                entry: starts.len() as u64,
                found: Some(*found),
                expected: None,
            }),
        }
    }
}

impl Pipeline {
    /// Plans the read of a range of elements.
    pub(crate) fn plan_range(&self, range: &Range<u64>) -> RangePlan {
        if self.dtype == DType::Bitmask || self.shuffle.is_some() {
            return RangePlan::Full;
        }
        match &self.codec {
            Codec::None => match &self.packing {
                // Eight packed values end at a byte boundary.
                Some(packing) => self.part(range, 8, packing.bits.into(), 1),
                None => self.part(range, 1, self.dtype.bits().into(), 1),
            },
            Codec::Zfp(zfp) => match zfp.bits_per_block() {
                // 64 blocks end at a word boundary of the stream.
                Some(bits) => self.part(range, 64 * ZFP_BLOCK, bits, ZFP_BLOCK),
                None => RangePlan::Full,
            },
            // Missing padding is detected only at the end of the stream.
            Codec::Szip(szip, _) if szip.promises_padding() => RangePlan::Full,
            Codec::Szip(szip, _) => {
                let each = szip.interval_samples();
                let (first, end) = (range.start / each, range.end.div_ceil(each));
                RangePlan::Intervals(Intervals { szip: *szip, first, end, samples: self.elements, each })
            }
            Codec::Blosc2(_) => RangePlan::Blocks,
            _ => RangePlan::Full,
        }
    }

    /// All intervals of an szip stream, shuffled or not. `None` if they cannot be located without decoding.
    pub(crate) fn intervals(&self) -> Option<Intervals> {
        let Codec::Szip(szip, _) = &self.codec else { return None };
        if szip.promises_padding() {
            return None;
        }
        let samples = self.encoded_len / szip.sample_bytes() as u64;
        let each = szip.interval_samples();
        Some(Intervals { szip: *szip, first: 0, end: samples.div_ceil(each), samples, each })
    }

    /// The part of a payload with `bits` bits per `values` values; every `align` values end at a byte or word boundary.
    fn part(&self, range: &Range<u64>, align: u64, bits: u64, values: u64) -> RangePlan {
        let position = |element: u64| {
            let bits = u128::from(element / values) * u128::from(bits);
            u64::try_from(bits / 8).unwrap_or(u64::MAX)
        };
        let first = range.start / align * align;
        let end = range.end.checked_next_multiple_of(align).unwrap_or(u64::MAX).min(self.elements);
        let end_byte = if end == self.elements { self.stored_len().unwrap_or(0) } else { position(end) };
        let pipeline = Box::new(self.for_elements(end - first));
        RangePlan::Part { bytes: position(first)..end_byte, first, pipeline }
    }

    /// The same pipeline for fewer elements.
    fn for_elements(&self, elements: u64) -> Self {
        let len = |bytes: Option<u64>| bytes.unwrap_or(u64::MAX);
        let raw_len = len(self.dtype.byte_len(elements));
        let encoded_len = match &self.packing {
            Some(packing) => len(packing.packed_len(elements)),
            None => raw_len,
        };
        Self { elements, raw_len, encoded_len, ..self.clone() }
    }

    /// Decodes a range from a part that starts with element `first`.
    pub(crate) fn decode_part(
        &self,
        stored: &[u8],
        first: u64,
        range: &Range<u64>,
        values: &mut [u8],
    ) -> Result<(), PipelineError> {
        match (&self.packing, &self.codec) {
            (Some(packing), Codec::None) => packing.unpack(stored, range.start - first, values)?,
            _ if self.elements == range.end - range.start => {
                self.decode(stored, &[], values)?;
            }
            _ => {
                let mut all = zeroed(self.raw_len)?;
                self.decode(stored, &[], &mut all)?;
                self.cut(&all, range.start - first, values);
            }
        }
        Ok(())
    }

    /// Decodes a range from the blocks of a frame.
    pub(crate) fn decode_blocks(
        &self,
        stored: &[u8],
        range: &Range<u64>,
        values: &mut [u8],
    ) -> Result<(), PipelineError> {
        let Some(packing) = &self.packing else {
            let start = self.byte_of(range.start);
            blosc2::decode_range(stored, start, values, self.encoded_len)?;
            self.to_little_endian(values);
            return Ok(());
        };
        let first = range.start / 8 * 8;
        let start = packing.packed_len(first).unwrap_or(u64::MAX);
        let end = packing.packed_len(range.end).unwrap_or(u64::MAX);
        let mut packed = zeroed(end - start)?;
        blosc2::decode_range(stored, start, &mut packed, self.encoded_len)?;
        Ok(packing.unpack(&packed, range.start - first, values)?)
    }

    /// Decodes a range from intervals, the first of which starts at bit `at` of `stored`; returns the bit after them.
    pub(crate) fn decode_intervals(
        &self,
        intervals: &Intervals,
        stored: &[u8],
        at: u64,
        range: &Range<u64>,
        values: &mut [u8],
    ) -> Result<u64, PipelineError> {
        let Intervals { szip, first, end, samples, each } = intervals;
        let start = first * each;
        let sample_bytes = szip.sample_bytes() as u64;
        let mut all = zeroed((end.saturating_mul(*each).min(*samples) - start).saturating_mul(sample_bytes))?;
        let end = szip::decode_from(stored, szip, *samples, *first, at, &mut all)?;
        if let Some(packing) = &self.packing {
            packing.unpack(&all, range.start - start, values)?;
        } else {
            self.cut(&all, range.start - start, values);
            self.to_little_endian(values);
        }
        Ok(end)
    }

    /// The stored offsets of the intervals of an szip stream.
    pub(crate) fn stored_offsets(&self) -> Option<&[u64]> {
        match &self.codec {
            Codec::Szip(_, offsets) => offsets.as_deref(),
            _ => None,
        }
    }

    /// Copies the values from element `first` on.
    pub(crate) fn cut(&self, all: &[u8], first: u64, values: &mut [u8]) {
        if self.dtype == DType::Bitmask {
            return cut_bits(all, first, values);
        }
        let start = usize::try_from(self.byte_of(first)).unwrap_or(usize::MAX);
        if let Some(wanted) = start.checked_add(values.len()).and_then(|end| all.get(start..end)) {
            values.copy_from_slice(wanted);
        }
    }

    fn byte_of(&self, element: u64) -> u64 {
        element.saturating_mul(u64::from(self.dtype.bits() / 8))
    }
}

/// Rejects wrong szip offsets. Payloads that this build cannot parse are not checked.
pub(crate) fn check_szip_offsets(
    descriptor: &DataObjectDescriptor,
    payload: &[u8],
) -> Result<(), PipelineError> {
    if descriptor.compression != "szip" {
        return Ok(());
    }
    let Ok(pipeline) = Pipeline::new(descriptor) else { return Ok(()) };
    let (Some(stored), Some(intervals)) = (pipeline.stored_offsets(), pipeline.intervals()) else {
        return Ok(());
    };
    let mut starts = vec![0];
    if szip::index(payload, &intervals.szip, intervals.samples, &mut starts, intervals.end).is_err() {
        return Ok(());
    }
    match intervals.wrong_entry(stored, &starts) {
        Some(wrong) => Err(wrong),
        None => Ok(()),
    }
}

/// The parameters of an szip payload with wrong offsets, with correct ones.
pub(crate) fn with_correct_szip_offsets(
    descriptor: &DataObjectDescriptor,
    payload: &[u8],
) -> Option<DataObjectDescriptor> {
    let pipeline = Pipeline::new(descriptor).ok()?;
    let (stored, intervals) = (pipeline.stored_offsets()?, pipeline.intervals()?);
    let mut starts = vec![0];
    let followed = szip::index(payload, &intervals.szip, intervals.samples, &mut starts, intervals.end);
    if followed.is_ok() && intervals.wrong_entry(stored, &starts).is_none() {
        return None;
    }
    let mut right = descriptor.clone();
    if followed.is_ok() {
        starts.truncate(usize::try_from(intervals.count()).unwrap_or(usize::MAX));
        let starts = starts.into_iter().map(Value::from).collect();
        right.params.insert(SZIP_OFFSETS.to_owned(), Value::Array(starts));
    } else {
        // Their offsets are not stored; readers compute them.
        right.params.remove(SZIP_OFFSETS);
    }
    Some(right)
}

/// Copies bits; the first one is the highest bit of the first byte. Bits after the last one are not cleared.
fn cut_bits(all: &[u8], first: u64, out: &mut [u8]) {
    let (start, shift) = (usize::try_from(first / 8).unwrap_or(usize::MAX), (first % 8) as u32);
    let byte = |at: usize| u16::from(all.get(start.saturating_add(at)).copied().unwrap_or(0));
    for (at, out) in out.iter_mut().enumerate() {
        *out = ((byte(at) << 8 | byte(at + 1)) << shift >> 8) as u8;
    }
}
