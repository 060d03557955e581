//! Arguments for axes and positions.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use tercet_core::tensor::IndexSlice;

/// An axis, by number or by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Axis<'a> {
    Number(usize),
    Name(&'a str),
}

impl From<usize> for Axis<'_> {
    fn from(number: usize) -> Self {
        Self::Number(number)
    }
}

impl<'a> From<&'a str> for Axis<'a> {
    fn from(name: &'a str) -> Self {
        Self::Name(name)
    }
}

impl<'a> From<&'a String> for Axis<'a> {
    fn from(name: &'a String) -> Self {
        Self::Name(name)
    }
}

/// A range of positions of an axis. Slices in the words of Python are ranges as well: see [`IndexSlice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionRange(pub(super) IndexSlice);

impl From<IndexSlice> for PositionRange {
    fn from(slice: IndexSlice) -> Self {
        Self(slice)
    }
}

impl From<u64> for PositionRange {
    fn from(position: u64) -> Self {
        let start = Some(i64::try_from(position).unwrap_or(i64::MAX));
        Self(IndexSlice { start, is_single: true, ..IndexSlice::FULL })
    }
}

impl PositionRange {
    /// Parses `5`, `-1`, `0..24` (without 24), `..-1`, or a slice in the words of Python: `0:24:6`, `::-1`.
    ///
    /// ```
    /// use tercet_tet::PositionRange;
    ///
    /// assert_eq!(PositionRange::parse("0..24"), Some((0..24).into()));
    /// assert_eq!(PositionRange::parse("0..=24"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        match text.split_once("..") {
            Some((start, stop)) if !text.contains(':') => IndexSlice::parse(&format!("{start}:{stop}")),
            _ => IndexSlice::parse(text),
        }
        .map(Self)
    }
}

macro_rules! ranges {
    ($($type:ty, |$range:ident| ($start:expr, $stop:expr);)*) => {$(
        impl From<$type> for PositionRange {
            fn from($range: $type) -> Self {
                // Positions beyond the range of i64 are beyond every axis as well.
                let signed = |position: u64| i64::try_from(position).unwrap_or(i64::MAX);
                let (start, stop): (Option<u64>, Option<u64>) = ($start, $stop);
                Self(IndexSlice { start: start.map(signed), stop: stop.map(signed), ..IndexSlice::FULL })
            }
        }
    )*};
}

ranges! {
    Range<u64>, |range| (Some(range.start), Some(range.end));
    RangeFrom<u64>, |range| (Some(range.start), None);
    RangeTo<u64>, |range| (None, Some(range.end));
    RangeInclusive<u64>, |range| (Some(*range.start()), Some(range.end().saturating_add(1)));
    RangeToInclusive<u64>, |range| (None, Some(range.end.saturating_add(1)));
    RangeFull, |_range| (None, None);
}
