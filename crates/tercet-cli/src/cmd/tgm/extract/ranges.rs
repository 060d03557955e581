//! Ranges of values of an object.

use std::ops::Range;

use tercet::tgm::{DType, Object, Tensor};

use super::values::Values;
use crate::failure::Failure;
use crate::ui::Ui;

/// `START:COUNT` of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    start: u64,
    count: u64,
}

pub(super) fn span(text: &str) -> Result<Span, String> {
    let wrong = || format!("expected START:COUNT, like `100:50`, found `{text}`");
    let number = |part: &str| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u64>().ok().filter(|_| digits).ok_or_else(wrong)
    };
    let (start, count) = text.split_once(':').ok_or_else(wrong)?;
    let span = Span { start: number(start)?, count: number(count)? };
    match span.start.checked_add(span.count) {
        Some(_) => Ok(span),
        None => Err(format!("range `{text}` overflows")),
    }
}

impl Span {
    fn range(self) -> Range<u64> {
        self.start..self.start.saturating_add(self.count)
    }
}

/// The number of values in all ranges.
pub(super) fn total(spans: &[Span]) -> Result<u64, Failure> {
    let total = spans.iter().try_fold(0_u64, |sum, span| sum.checked_add(span.count));
    total.ok_or_else(|| Failure::request("the ranges overflow"))
}

/// Reads and concatenates the ranges. Prints a note if no hash was verified.
pub(super) fn read(object: &Object<'_>, spans: &[Span], out: &mut Ui) -> Result<Values, Failure> {
    let ranges: Vec<Range<u64>> = spans.iter().map(|span| span.range()).collect();
    let found = object.decode_ranges(&ranges)?;
    if !found.verified {
        note_unverified(object, out)?;
    }
    Ok(Values::Joined(join(object.descriptor().dtype, spans, &found.arrays)))
}

/// Prints a note about values whose hash was not verified, once for all objects.
pub(super) fn note_unverified(object: &Object<'_>, out: &mut Ui) -> Result<(), Failure> {
    let reason = if object.frame().hash().is_none() { "the object has no hash" } else { "use `--verify`" };
    out.note_once(format_args!("note: hash not verified: {reason}"))
}

fn join(dtype: DType, spans: &[Span], arrays: &[Tensor]) -> Vec<u8> {
    if dtype != DType::Bitmask {
        return arrays.iter().map(Tensor::bytes).collect::<Vec<_>>().concat();
    }
    let bits = spans.iter().zip(arrays).flat_map(|(span, array)| bits(array.bytes(), span.count));
    let mut joined = Vec::new();
    for (at, bit) in bits.enumerate() {
        if at % 8 == 0 {
            joined.push(0);
        }
        if let Some(byte) = joined.last_mut() {
            *byte |= u8::from(bit) << (7 - at % 8);
        }
    }
    joined
}

/// The first `count` bits, most significant bit first.
fn bits(bytes: &[u8], count: u64) -> impl Iterator<Item = bool> {
    let all = bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte << bit & 0x80 != 0));
    all.take(usize::try_from(count).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_two_numbers() {
        assert_eq!(span("3:0"), Ok(Span { start: 3, count: 0 }));
        assert_eq!(span("10:5").map(Span::range), Ok(10..15));
        for text in ["", ":", "3", "3:", ":3", "-1:2", "1:+2", "1:2:3", "18446744073709551615:1", "a:b"] {
            assert!(span(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sums_do_not_wrap() {
        let far = Span { start: 0, count: u64::MAX };
        assert!(total(&[far, Span { start: 0, count: 1 }]).is_err());
        assert_eq!(total(&[]).unwrap(), 0);
    }

    #[test]
    fn bits_are_taken_from_the_highest() {
        let taken: Vec<bool> = bits(&[0b1010_0000, 0b1000_0000], 9).collect();
        assert_eq!(taken, [true, false, true, false, false, false, false, false, true]);
    }
}
