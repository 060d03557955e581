//! Decoding of element ranges.

use std::borrow::Cow;
use std::ops::Range;

use tercet_codec::CodecError;
use tercet_codec::bytes::szip;
use tercet_core::Span;
use tercet_core::limits::check_limit;
use tercet_core::tensor::Buffer;
use tercet_core::threads::install;

use super::stored::StoredBytes;
use super::values::Values;
use super::{Object, tensor};
use crate::error::{Error, ErrorKind};
use crate::pipeline::{Intervals, PipelineError, RangePlan};
use tercet_core::DType;
use tercet_core::Tensor;

/// The decoded ranges of an object.
#[derive(Debug)]
pub struct Ranges {
    /// The values of each range as one-dimensional arrays, in the requested order.
    pub arrays: Vec<Tensor>,
    /// Whether the hash of the object is verified, now or earlier. Never for an object without a hash, and not by
    /// default for remote files: [`Object::verify`] reads the complete object.
    pub verified: bool,
}

impl<'a> Object<'a> {
    /// Decodes ranges of elements, numbered in row-major order.
    ///
    /// Reads and decodes only the required bytes if the pipeline allows it (no compression, packed or not; `szip`, `blosc2`
    /// and `zfp` at a fixed rate; without `shuffle`), else the complete object, once for all ranges. The hash of a local object
    /// is verified once per open file.
    ///
    /// ```
    /// use tercet_tgm::{DataObjectDescriptor, DType, EncodeOptions, GlobalMetadata, Message, encode_message};
    ///
    /// let descriptor = DataObjectDescriptor::new(DType::U8, [5]).with_compression("zstd");
    /// let bytes = encode_message(&GlobalMetadata::default(), &[(&descriptor, &[5, 6, 7, 8, 9])], &EncodeOptions::new())?;
    /// let message = Message::from_bytes("example", bytes)?;
    /// let found = message.object(0)?.decode_ranges(&[1..3, 4..5])?;
    /// assert_eq!(found.arrays[0].bytes(), [6, 7]);
    /// assert_eq!(found.arrays[1].bytes(), [9]);
    /// assert!(found.verified);
    /// # Ok::<(), tercet_tgm::Error>(())
    /// ```
    pub fn decode_ranges(&self, ranges: &[Range<u64>]) -> Result<Ranges, Error> {
        install(self.options.common.threads, || self.read_ranges(ranges)).map_err(|fault| self.error(fault))
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Ranges, ErrorKind> {
        let values = self.values()?;
        let mut arrays = self.buffers(ranges)?;
        let wanted = |range: &&Range<u64>| range.start < range.end;
        let plans: Vec<_> =
            ranges.iter().filter(wanted).map(|range| values.pipeline.plan_range(range)).collect();
        let mut loaded = Loaded::default();
        // If everything is read, its hash is verified on the way.
        if plans.iter().any(|plan| matches!(plan, RangePlan::Full)) {
            loaded.decoded = Some(self.decode_all(&values)?);
        } else if plans.iter().any(|plan| self.needs_payload(&values, plan)) {
            loaded.payload = Some(self.with_stored(|stored| Ok(stored.slice(0..self.payload_len(stored))))?);
        } else if self.is_checked() && !self.verification_cache.is_verified(&self.frame) {
            super::verify_frame(self.source, self.message, &self.frame)?;
            self.verification_cache.insert_verified(&self.frame);
        }
        for (range, bytes) in ranges.iter().zip(&mut arrays) {
            if range.start < range.end {
                self.read_range(&values, &loaded, range, bytes)?;
            }
        }
        if loaded.decoded.is_none() && values.has_masks() {
            let stored = StoredBytes::read(self.source, self.spans.region)?;
            for (range, bytes) in ranges.iter().zip(&mut arrays) {
                values.restore(&stored, range.start, bytes)?;
            }
        }
        let array = |(range, bytes): (&Range<u64>, Buffer)| {
            tensor(self.descriptor.dtype, vec![range.end - range.start], bytes)
        };
        let arrays = ranges.iter().zip(arrays).map(array).collect::<Result<_, _>>()?;
        Ok(Ranges { arrays, verified: self.verification_cache.is_verified(&self.frame) })
    }

    /// The byte ranges of the file that decoding of these ranges reads.
    pub(crate) fn range_spans(&self, ranges: &[Range<u64>]) -> Result<Vec<Span>, ErrorKind> {
        let (values, payload) = (self.values()?, self.spans.payload);
        let mut spans = Vec::new();
        if values.has_masks() {
            spans.push(self.spans.region);
        }
        for range in ranges.iter().filter(|range| range.start < range.end) {
            let bytes = match values.pipeline.plan_range(range) {
                RangePlan::Part { bytes, .. } => Some(bytes),
                RangePlan::Intervals(intervals) => {
                    let starts = self.known_starts(&values, &intervals);
                    let bits = starts.and_then(|starts| self.between(&starts, &intervals));
                    bits.map(|(start, end)| start / 8..end.div_ceil(8))
                }
                RangePlan::Blocks | RangePlan::Full => None,
            };
            match bytes {
                Some(bytes) => {
                    spans.extend(payload.slice(bytes.start, bytes.end.saturating_sub(bytes.start)));
                }
                None => return Ok(vec![self.frame.body()]),
            }
        }
        Ok(spans)
    }

    /// Whether the hash is verified before values are returned.
    fn is_checked(&self) -> bool {
        self.options.common.verify && !self.source.is_remote()
    }

    /// Whether a range needs all stored bytes, although not all are decoded.
    fn needs_payload(&self, values: &Values, plan: &RangePlan) -> bool {
        match plan {
            RangePlan::Blocks => true,
            RangePlan::Intervals(intervals) => self.known_starts(values, intervals).is_none(),
            RangePlan::Part { .. } | RangePlan::Full => false,
        }
    }

    /// Buffers for the ranges, after checking that they are inside the array.
    fn buffers(&self, ranges: &[Range<u64>]) -> Result<Vec<Buffer>, ErrorKind> {
        let elements = self.descriptor.elements().unwrap_or(0);
        let mut total = 0u64;
        let buffer = |range: &Range<u64>| {
            let Range { start, end } = *range;
            if start > end || end > elements {
                let region = self.frame.region(self.message);
                return Err(ErrorKind::NoSuchElements { region, start, end, elements });
            }
            let len = self.descriptor.dtype.byte_len(end - start).unwrap_or(u64::MAX);
            total = total.saturating_add(len);
            check_limit("all ranges together", total, self.array_limit())?;
            Ok(Buffer::zeroed(check_limit("a range", len, self.array_limit())?)?)
        };
        ranges.iter().map(buffer).collect()
    }

    /// The complete decoded array.
    fn decode_all(&self, values: &Values) -> Result<Buffer, ErrorKind> {
        let len = check_limit("the array", values.len(), self.array_limit())?;
        let mut all = Buffer::zeroed(len)?;
        self.fill(values, &mut all)?;
        Ok(all)
    }

    fn read_range(
        &self,
        values: &Values,
        loaded: &Loaded<'a>,
        range: &Range<u64>,
        out: &mut [u8],
    ) -> Result<(), ErrorKind> {
        if let Some(all) = &loaded.decoded {
            values.pipeline.cut(all, range.start, out);
            if self.descriptor.dtype == DType::Bitmask {
                clear_spare_bits(range.end - range.start, out);
            }
            return Ok(());
        }
        let done = match values.pipeline.plan_range(range) {
            RangePlan::Part { bytes, first, pipeline } => {
                let stored = self.payload_part(loaded, bytes)?;
                pipeline.decode_part(&stored, first, range, out)
            }
            RangePlan::Blocks => {
                let stored = self.payload_part(loaded, 0..self.spans.payload.len())?;
                values.pipeline.decode_blocks(&stored, range, out)
            }
            RangePlan::Intervals(intervals) => {
                return self.read_intervals(values, loaded, &intervals, range, out);
            }
            RangePlan::Full => {
                values.pipeline.cut(&self.decode_all(values)?, range.start, out);
                Ok(())
            }
        };
        done.map_err(|error| values.wrong(error))
    }

    /// Decodes intervals of an szip stream.
    fn read_intervals(
        &self,
        values: &Values,
        loaded: &Loaded<'a>,
        intervals: &Intervals,
        range: &Range<u64>,
        out: &mut [u8],
    ) -> Result<(), ErrorKind> {
        let wrong = |error| values.wrong(error);
        if let Some(starts) = self.known_starts(values, intervals)
            && let Some((start, end)) = self.between(&starts, intervals)
        {
            let bytes = self.payload_part(loaded, start / 8..end.div_ceil(8))?;
            let stop = values.pipeline.decode_intervals(intervals, &bytes, start % 8, range, out);
            match stop {
                Ok(stop) if self.ends_at(start / 8 * 8 + stop, end) => return Ok(()),
                // The offsets were not verified and are wrong: index the stream from its start.
                _ => self.verification_cache.distrust_offsets(&self.frame),
            }
        }
        let starts = self.starts(values, loaded, intervals)?;
        let (start, end) = self.between(&starts, intervals).ok_or_else(|| {
            let detail = "its intervals do not follow one another".to_owned();
            wrong(CodecError::Decode { codec: "szip", detail }.into())
        })?;
        let bytes = self.payload_part(loaded, start / 8..end.div_ceil(8))?;
        values.pipeline.decode_intervals(intervals, &bytes, start % 8, range, out).map_err(wrong)?;
        Ok(())
    }

    /// The offsets of intervals, if they need not be searched.
    ///
    /// Stored offsets can be wrong (the reference implementation writes wrong ones), and decoding from a wrong offset returns
    /// wrong values without an error. They are trusted in messages of this library, whose writer checks them, and if verification
    /// is off; even then, an interval must end at the next offset. Otherwise the stream is indexed from its
    /// start once, which is much cheaper than decoding it.
    fn known_starts<'v>(&self, values: &'v Values, intervals: &Intervals) -> Option<Cow<'v, [u64]>> {
        let known = self.verification_cache.intervals(&self.frame);
        if known.len() as u64 > intervals.end || known.len() as u64 == intervals.count() {
            return Some(Cow::Owned(known));
        }
        let is_believed = self.trusts_offsets || !self.is_checked();
        let stored = values.pipeline.stored_offsets().filter(|_| is_believed)?;
        let is_complete = stored.len() as u64 == intervals.count();
        (is_complete && !self.verification_cache.has_distrusted_offsets(&self.frame))
            .then_some(Cow::Borrowed(stored))
    }

    /// The first wrong szip offset in the descriptor. Decoding of the complete object does not use these offsets;
    /// programs that decode ranges may.
    pub fn wrong_szip_offset(&self) -> Result<Option<PipelineError>, Error> {
        let find = || {
            let values = self.values()?;
            let Some(stored) = values.pipeline.stored_offsets() else { return Ok(None) };
            let Some(intervals) = values.pipeline.intervals() else { return Ok(None) };
            let starts = self.starts(&values, &Loaded::default(), &intervals)?;
            Ok(intervals.wrong_entry(stored, &starts))
        };
        find().map_err(|fault: ErrorKind| self.error(fault))
    }

    /// The correct offsets of intervals, at least up to the requested ones.
    fn starts(
        &self,
        values: &Values,
        loaded: &Loaded<'a>,
        intervals: &Intervals,
    ) -> Result<Vec<u64>, ErrorKind> {
        let mut starts = self.verification_cache.intervals(&self.frame);
        let found = starts.len() as u64;
        if found <= intervals.end && found < intervals.count() {
            let payload = self.payload_part(loaded, 0..self.spans.payload.len())?;
            szip::index(&payload, &intervals.szip, intervals.samples(), &mut starts, intervals.end)
                .map_err(|error| values.wrong(error.into()))?;
            self.verification_cache.insert_intervals(&self.frame, starts.clone());
        }
        Ok(starts)
    }

    /// The bit range from the first interval to the end of the last one, or to the end of the stream.
    fn between(&self, starts: &[u64], intervals: &Intervals) -> Option<(u64, u64)> {
        let start_of = |interval: u64| starts.get(usize::try_from(interval).ok()?).copied();
        let total_bits = self.spans.payload.len().checked_mul(8)?;
        let start = start_of(intervals.first)?;
        let end = if intervals.end == intervals.count() { total_bits } else { start_of(intervals.end)? };
        (start <= end && end <= total_bits).then_some((start, end))
    }

    /// Whether decoding stopped at the expected bit: the next offset, or inside the last byte of the stream.
    fn ends_at(&self, stop: u64, end: u64) -> bool {
        let total_bits = self.spans.payload.len() * 8;
        if end == total_bits { stop <= end && end - stop < 8 } else { stop == end }
    }

    /// Bytes of the payload, from memory if they are loaded.
    fn payload_part(&self, loaded: &Loaded<'a>, bytes: Range<u64>) -> Result<StoredBytes<'a>, ErrorKind> {
        let payload = self.spans.payload;
        if let Some(all) = &loaded.payload {
            let inside = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(all.len());
            return Ok(all.slice(inside(bytes.start)..inside(bytes.end)));
        }
        let span = payload.slice(bytes.start, bytes.end.saturating_sub(bytes.start));
        Ok(StoredBytes::read(self.source, span.unwrap_or(Span::empty(payload.start())))?)
    }

    /// The length of the payload in `stored`, where masks follow it.
    fn payload_len(&self, stored: &[u8]) -> usize {
        self.spans.payload.len_usize().unwrap_or(usize::MAX).min(stored.len())
    }
}

/// Bytes that several ranges need.
#[derive(Default)]
struct Loaded<'a> {
    /// All values.
    decoded: Option<Buffer>,
    /// All stored bytes.
    payload: Option<StoredBytes<'a>>,
}

/// Clears the bits after the last element.
fn clear_spare_bits(elements: u64, bits: &mut [u8]) {
    if let (Some(last), rest @ 1..) = (bits.last_mut(), elements % 8) {
        *last &= 0xff << (8 - rest);
    }
}
