//! Byte ranges that cannot overflow.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

/// A half-open range of bytes, `start..end`, that is known not to overflow.
///
/// The constructors are checked, so arithmetic on untrusted offsets is handled once:
///
/// ```
/// use tercet_core::Span;
///
/// let span = Span::at(40, 8).unwrap();
/// assert_eq!(span.to_string(), "40..48");
/// assert_eq!(Span::at(u64::MAX, 1), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Span {
    start: u64,
    end: u64,
}

impl Span {
    /// The first `len` bytes.
    pub const fn first(len: u64) -> Self {
        Self { start: 0, end: len }
    }

    /// An empty span at `start`.
    pub const fn empty(start: u64) -> Self {
        Self { start, end: start }
    }

    /// `len` bytes from `start`, unless the end overflows.
    pub const fn at(start: u64, len: u64) -> Option<Self> {
        match start.checked_add(len) {
            Some(end) => Some(Self { start, end }),
            None => None,
        }
    }

    /// `len` bytes from `start`, cut at the largest offset where the end overflows.
    ///
    /// For messages about a declared length: the span that is printed must exist.
    pub const fn clamped(start: u64, len: u64) -> Self {
        Self { start, end: start.saturating_add(len) }
    }

    /// The bytes from `start` up to `end`, unless `end` is before `start`.
    pub const fn between(start: u64, end: u64) -> Option<Self> {
        if start <= end { Some(Self { start, end }) } else { None }
    }

    /// The first byte.
    pub const fn start(self) -> u64 {
        self.start
    }

    /// The byte after the last one.
    pub const fn end(self) -> u64 {
        self.end
    }

    /// The number of bytes.
    pub const fn len(self) -> u64 {
        self.end - self.start
    }

    /// Whether the span is empty.
    pub const fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Whether `inner` is inside.
    pub const fn contains(self, inner: Span) -> bool {
        self.start <= inner.start && inner.end <= self.end
    }

    /// Whether the two have a byte in common.
    pub const fn overlaps(self, other: Span) -> bool {
        self.start < other.end && other.start < self.end && !self.is_empty() && !other.is_empty()
    }

    /// `len` bytes at `offset` of this span, if they are inside.
    pub const fn slice(self, offset: u64, len: u64) -> Option<Self> {
        let Some(start) = self.start.checked_add(offset) else { return None };
        match Self::at(start, len) {
            Some(inner) if self.contains(inner) => Some(inner),
            _ => None,
        }
    }

    /// The length as a `usize`, unless it does not fit this platform.
    pub fn len_usize(self) -> Option<usize> {
        usize::try_from(self.len()).ok()
    }

    /// The range for indexing a buffer, unless it does not fit this platform.
    pub fn to_range(self) -> Option<Range<usize>> {
        Some(usize::try_from(self.start).ok()?..usize::try_from(self.end).ok()?)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Span({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflow_is_not_a_span() {
        assert_eq!(Span::at(u64::MAX - 3, 4), None);
        assert_eq!(Span::at(u64::MAX - 4, 4).map(Span::end), Some(u64::MAX));
        assert_eq!(Span::between(5, 4), None);
        assert_eq!(Span::clamped(u64::MAX - 3, 9), Span::at(u64::MAX - 3, 3).unwrap());
    }

    #[test]
    fn slices_stay_inside() {
        let outer = Span::at(10, 10).unwrap();
        assert_eq!(outer.slice(2, 8), Span::at(12, 8));
        assert_eq!(outer.slice(2, 9), None);
        assert_eq!(outer.slice(u64::MAX, 1), None);
    }

    #[test]
    fn empty_spans_overlap_nothing() {
        let span = Span::first(8);
        assert!(span.overlaps(Span::at(7, 1).unwrap()));
        assert!(!span.overlaps(Span::at(8, 1).unwrap()));
        assert!(!span.overlaps(Span::empty(4)));
    }
}
