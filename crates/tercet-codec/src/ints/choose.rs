//! Encoded lengths by scheme.

use super::frame::Frame;
use super::{Integer, Scheme, arch, bitpack, delta, group, pfor, rle};

/// All schemes in trial order: an earlier one wins a tie.
pub const CASCADE: [Scheme; 6] =
    [Scheme::Plain, Scheme::BitpackFor, Scheme::Delta, Scheme::Rle, Scheme::GroupVarint, Scheme::Pfor];

/// The scheme with the shortest stream for `values`, and its length. On a tie the first candidate wins. If no candidate
/// accepts the values: [`Scheme::Plain`], which accepts all.
///
/// Nothing is encoded: each candidate costs at most one pass.
pub fn choose<T: Integer>(values: &[T], candidates: &[Scheme]) -> (Scheme, u64) {
    let measured = Measured::new(values);
    let mut best = None;
    for &scheme in candidates {
        if let Some(len) = measured.encoded_len(scheme)
            && best.is_none_or(|(_, shortest)| len < shortest)
        {
            best = Some((scheme, len));
        }
    }
    best.unwrap_or_else(|| (Scheme::Plain, measured.plain_len()))
}

/// Values with cached statistics.
#[derive(Debug)]
pub(super) struct Measured<'a, T> {
    values: &'a [T],
    /// The minimum and the maximum.
    pub(super) extent: Option<(T, T)>,
}

impl<'a, T: Integer> Measured<'a, T> {
    pub(super) fn new(values: &'a [T]) -> Self {
        Self { values, extent: arch::extent(values) }
    }

    /// The maximum as 64 bits; a negative value is above all others.
    pub(super) fn widest(&self) -> u64 {
        self.extent.map_or(0, |(low, high)| low.widen().max(high.widen()))
    }

    /// Length of the stream; `None` if the scheme does not accept the values.
    pub(super) fn encoded_len(&self, scheme: Scheme) -> Option<u64> {
        let values = self.values;
        let len = match scheme {
            Scheme::Plain => self.plain_len(),
            Scheme::BitpackFor => self
                .extent
                .map_or(1, |(low, high)| Frame::between(low.widen(), high.widen()).encoded_len(values.len())),
            Scheme::Delta => delta::encoded_len(values, arch::frame_of_differences(values)),
            Scheme::Rle => rle::encoded_len(values, bitpack::bits(self.widest())),
            Scheme::GroupVarint if self.widest() <= group::MAX_INTEGER => arch::group_varint_len(values),
            Scheme::Pfor if self.widest() <= pfor::MAX_INTEGER && values.len() <= pfor::MAX_VALUES => {
                pfor::cheapest(values).1
            }
            Scheme::GroupVarint | Scheme::Pfor => return None,
        };
        Some(len)
    }

    fn plain_len(&self) -> u64 {
        size_of_val(self.values) as u64
    }
}

/// The minimum and the maximum; `None` without values.
#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled again for each instruction set")]
pub(super) fn extent<T: Integer>(values: &[T]) -> Option<(T, T)> {
    let &first = values.first()?;
    let (mut low, mut high) = (first, first);
    for &value in values {
        low = low.min(value);
        high = high.max(value);
    }
    Some((low, high))
}
