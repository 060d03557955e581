//! Single values out of a run that is decoded part by part.

use std::ops::{ControlFlow, Range};

use tercet_codec::varint;

use crate::column::Strings;
use crate::wire::footer::Run;

/// Consumes parts of a payload until it has the requested values.
#[derive(Debug)]
pub(super) struct Picker {
    /// The wanted values, in ascending order.
    indices: Vec<usize>,
    /// The expected shape of the payload.
    values: u64,
    raw_bytes: u64,
    /// The beginning of the payload, until the lengths are known.
    head: Vec<u8>,
    /// Positions of the requested values, once the lengths are known.
    places: Option<Vec<Range<usize>>>,
    /// Wanted values that are complete.
    done: usize,
    /// Bytes of the payload that were seen.
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
            places: None,
            done: 0,
            seen: 0,
            bytes: Vec::new(),
        }
    }

    /// Consumes the next part. It stops when it has all values, and also when the payload is not as expected: then it is
    /// not [done](Self::is_done).
    pub(super) fn take(&mut self, part: &[u8]) -> ControlFlow<()> {
        if self.places.is_some() {
            return self.copy(part);
        }
        self.head.extend_from_slice(part);
        match self.parse() {
            Ok(Some(places)) => {
                self.places = Some(places);
                let head = std::mem::take(&mut self.head);
                self.copy(&head)
            }
            Ok(None) => ControlFlow::Continue(()),
            Err(Strange) => ControlFlow::Break(()),
        }
    }

    /// Whether all values are there.
    pub(super) fn is_done(&self) -> bool {
        self.places.as_ref().is_some_and(|places| self.done == places.len())
    }

    /// Appends the values once all are present.
    pub(super) fn push_to(&self, out: &mut Strings) {
        let mut start = 0;
        for place in self.places.iter().flatten() {
            out.push(&self.bytes[start..start + place.len()]);
            start += place.len();
        }
    }

    /// Positions of the requested values; none while lengths are missing.
    fn parse(&self) -> Result<Option<Vec<Range<usize>>>, Strange> {
        let Some((count, mut at)) = next(&self.head, 0)? else { return Ok(None) };
        if count != self.values {
            return Err(Strange);
        }
        // Each length has a byte at least.
        if ((self.head.len() - at) as u64) < count {
            return Ok(None);
        }
        let mut wanted = self.indices.iter().peekable();
        let mut places = Vec::with_capacity(self.indices.len());
        let mut end = 0u64;
        for index in 0..usize::try_from(count).map_err(|_| Strange)? {
            let Some((len, behind)) = next(&self.head, at)? else { return Ok(None) };
            at = behind;
            let start = end;
            end = end.checked_add(len).filter(|end| *end <= self.raw_bytes).ok_or(Strange)?;
            while wanted.next_if(|wanted| **wanted == index).is_some() {
                places.push((start, end));
            }
        }
        if wanted.next().is_some() || end + at as u64 != self.raw_bytes {
            return Err(Strange);
        }
        let place = |value: u64| usize::try_from(value).map(|value| value + at).map_err(|_| Strange);
        places
            .into_iter()
            .map(|(start, end)| Ok(place(start)?..place(end)?))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// Copies the bytes of requested values.
    fn copy(&mut self, part: &[u8]) -> ControlFlow<()> {
        let (from, to) = (self.seen, self.seen + part.len());
        self.seen = to;
        let Some(places) = &self.places else { return ControlFlow::Break(()) };
        while let Some(place) = places.get(self.done) {
            let (start, end) = (place.start.max(from), place.end.min(to));
            if start < end {
                self.bytes.extend_from_slice(&part[start - from..end - from]);
            }
            if place.end > to {
                return ControlFlow::Continue(());
            }
            self.done += 1;
        }
        ControlFlow::Break(())
    }
}

/// A payload that is not as it should be.
#[derive(Debug)]
struct Strange;

/// The varint at a position and the bytes after it; none if it is incomplete.
fn next(bytes: &[u8], at: usize) -> Result<Option<(u64, usize)>, Strange> {
    let rest = bytes.get(at..).unwrap_or_default();
    match varint::get(rest) {
        Ok((value, used)) => Ok(Some((value, at + used))),
        Err(_) if rest.len() < varint::MAX_BYTES => Ok(None),
        Err(_) => Err(Strange),
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

    /// The values, and how many bytes of the payload were read.
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
    fn values_come_out_of_parts_of_any_size() {
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
    fn strange_payloads_give_nothing() {
        let (payload, run) = payload(&[5, 3, 200]);
        let more = |values, raw_bytes| Run { raw_bytes, values, ..run };
        assert!(picked(&payload, run, &[1], 10).is_some());
        assert!(picked(&payload, run, &[3], 10).is_none(), "there is no such value");
        assert!(picked(&payload, more(4, run.raw_bytes), &[1], 10).is_none());
        assert!(picked(&payload, more(3, run.raw_bytes - 1), &[1], 10).is_none());
        assert!(picked(&payload, more(3, run.raw_bytes + 1), &[1], 10).is_none());
        assert!(picked(&payload[..6], run, &[1], 10).is_none(), "the value is missing");
        assert!(picked(&[0xff; 30], run, &[1], 10).is_none());
    }
}
