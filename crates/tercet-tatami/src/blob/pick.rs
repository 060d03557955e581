//! Single values of a run that is decoded incrementally.

use std::ops::{ControlFlow, Range};

use tercet_codec::varint;

use crate::column::Strings;
use crate::wire::footer::Run;

/// Consumes a payload incrementally until it has the requested values.
#[derive(Debug)]
pub(super) struct Picker {
    /// The requested values, ascending.
    indices: Vec<usize>,
    /// Number of values and length that the footer declares.
    values: u64,
    raw_bytes: u64,
    /// The start of the payload, until the lengths are known.
    head: Vec<u8>,
    /// Byte ranges of the requested values, once the lengths are known.
    ranges: Option<Vec<Range<usize>>>,
    /// Number of complete requested values.
    done: usize,
    /// Bytes of the payload consumed so far.
    seen: usize,
    /// The requested values, concatenated.
    pub(super) bytes: Vec<u8>,
}

impl Picker {
    pub(super) fn new(indices: &[usize], run: Run) -> Self {
        Self {
            indices: indices.to_vec(),
            values: run.values,
            raw_bytes: run.raw_bytes,
            head: Vec::new(),
            ranges: None,
            done: 0,
            seen: 0,
            bytes: Vec::new(),
        }
    }

    /// Consumes the next bytes. Breaks when all values are complete, or when the payload is malformed; then it is not
    /// [done](Self::is_done).
    pub(super) fn take(&mut self, part: &[u8]) -> ControlFlow<()> {
        if self.ranges.is_some() {
            return self.copy(part);
        }
        self.head.extend_from_slice(part);
        match self.parse() {
            Ok(Some(ranges)) => {
                self.ranges = Some(ranges);
                let head = std::mem::take(&mut self.head);
                self.copy(&head)
            }
            Ok(None) => ControlFlow::Continue(()),
            Err(Malformed) => ControlFlow::Break(()),
        }
    }

    /// Whether all values are complete.
    pub(super) fn is_done(&self) -> bool {
        self.ranges.as_ref().is_some_and(|ranges| self.done == ranges.len())
    }

    /// Appends the values, if all are complete.
    pub(super) fn push_to(&self, out: &mut Strings) {
        let mut start = 0;
        for range in self.ranges.iter().flatten() {
            out.push(&self.bytes[start..start + range.len()]);
            start += range.len();
        }
    }

    /// Byte ranges of the requested values; `None` while lengths are missing.
    fn parse(&self) -> Result<Option<Vec<Range<usize>>>, Malformed> {
        let Some((count, mut at)) = next(&self.head, 0)? else { return Ok(None) };
        if count != self.values {
            return Err(Malformed);
        }
        // Each length takes at least one byte.
        if ((self.head.len() - at) as u64) < count {
            return Ok(None);
        }
        let mut wanted = self.indices.iter().peekable();
        let mut ranges = Vec::with_capacity(self.indices.len());
        let mut end = 0u64;
        for index in 0..usize::try_from(count).map_err(|_| Malformed)? {
            let Some((len, after)) = next(&self.head, at)? else { return Ok(None) };
            at = after;
            let start = end;
            end = end.checked_add(len).filter(|end| *end <= self.raw_bytes).ok_or(Malformed)?;
            while wanted.next_if(|wanted| **wanted == index).is_some() {
                ranges.push((start, end));
            }
        }
        if wanted.next().is_some() || end + at as u64 != self.raw_bytes {
            return Err(Malformed);
        }
        let offset = |value: u64| usize::try_from(value).map(|value| value + at).map_err(|_| Malformed);
        ranges
            .into_iter()
            .map(|(start, end)| Ok(offset(start)?..offset(end)?))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// Copies the bytes of requested values.
    fn copy(&mut self, part: &[u8]) -> ControlFlow<()> {
        let (from, to) = (self.seen, self.seen + part.len());
        self.seen = to;
        let Some(ranges) = &self.ranges else { return ControlFlow::Break(()) };
        while let Some(range) = ranges.get(self.done) {
            let (start, end) = (range.start.max(from), range.end.min(to));
            if start < end {
                self.bytes.extend_from_slice(&part[start - from..end - from]);
            }
            if range.end > to {
                return ControlFlow::Continue(());
            }
            self.done += 1;
        }
        ControlFlow::Break(())
    }
}

/// A malformed payload.
#[derive(Debug)]
struct Malformed;

/// The varint at a position and the position after it; `None` if it is incomplete.
fn next(bytes: &[u8], at: usize) -> Result<Option<(u64, usize)>, Malformed> {
    let rest = bytes.get(at..).unwrap_or_default();
    match varint::get(rest) {
        Ok((value, used)) => Ok(Some((value, at + used))),
        Err(_) if rest.len() < varint::MAX_BYTES => Ok(None),
        Err(_) => Err(Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::run;

    fn payload(lengths: &[u32]) -> (Vec<u8>, Run) {
        let total: u32 = lengths.iter().sum();
        let mut payload = run::head(lengths);
        payload.extend((0..total).map(|at| (at * 7 % 251).to_le_bytes()[0]));
        let (values, raw_bytes) = (lengths.len() as u64, payload.len() as u64);
        (payload, Run { offset: 0, stored_bytes: 0, raw_bytes, values })
    }

    /// The values and the number of bytes consumed.
    fn picked(payload: &[u8], run: Run, indices: &[usize], part: usize) -> Option<(Vec<Vec<u8>>, usize)> {
        let mut picker = Picker::new(indices, run);
        let mut seen = 0;
        for part in payload.chunks(part) {
            seen += part.len();
            if picker.take(part).is_break() {
                break;
            }
        }
        picker.is_done().then(|| {
            let mut out = Strings::new();
            picker.push_to(&mut out);
            (out.iter().map(<[u8]>::to_vec).collect(), seen)
        })
    }

    #[test]
    fn values_are_extracted_from_chunks_of_any_size() {
        let lengths = [5, 0, 300, 1, 0, 70, 0];
        let (payload, run) = payload(&lengths);
        let bytes = &payload[payload.len() - 376..];
        let value = |index: usize| {
            let start: u32 = lengths[..index].iter().sum();
            bytes[start as usize..(start + lengths[index]) as usize].to_vec()
        };
        for part in [1, 2, 7, 100, 1000] {
            for indices in [&[0][..], &[2], &[1, 1, 2], &[3, 4, 5], &[0, 1, 2, 3, 4, 5, 6], &[6], &[]] {
                let (found, seen) = picked(&payload, run, indices, part).unwrap();
                assert_eq!(found, indices.iter().map(|index| value(*index)).collect::<Vec<_>>());
                if indices == [0] {
                    assert!(seen < 14 + part, "{seen} bytes for the first value");
                }
            }
        }
    }

    #[test]
    fn malformed_payloads_yield_nothing() {
        let (payload, run) = payload(&[5, 3, 200]);
        let more = |values, raw_bytes| Run { raw_bytes, values, ..run };
        assert!(picked(&payload, run, &[1], 10).is_some());
        assert!(picked(&payload, run, &[3], 10).is_none(), "no such value");
        assert!(picked(&payload, more(4, run.raw_bytes), &[1], 10).is_none());
        assert!(picked(&payload, more(3, run.raw_bytes - 1), &[1], 10).is_none());
        assert!(picked(&payload, more(3, run.raw_bytes + 1), &[1], 10).is_none());
        assert!(picked(&payload[..6], run, &[1], 10).is_none(), "the value is missing");
        assert!(picked(&[0xff; 30], run, &[1], 10).is_none());
    }
}
