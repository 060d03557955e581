//! Arguments for axes, positions and labels.

use std::fmt;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

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

/// A range of positions of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionRange {
    start: u64,
    /// End of the range, exclusive; `None` is the end of the axis.
    stop: Option<u64>,
}

impl PositionRange {
    /// Resolves to the first position and the one after the last, for `count` positions.
    pub(super) fn within(self, count: u64) -> (u64, u64) {
        (self.start, self.stop.unwrap_or(count))
    }
}

macro_rules! spans {
    ($($type:ty, |$range:ident| ($start:expr, $stop:expr);)*) => {$(
        impl From<$type> for PositionRange {
            fn from($range: $type) -> Self {
                Self { start: $start, stop: $stop }
            }
        }
    )*};
}

spans! {
    u64, |position| (position, Some(position.saturating_add(1)));
    Range<u64>, |range| (range.start, Some(range.end));
    RangeFrom<u64>, |range| (range.start, None);
    RangeTo<u64>, |range| (0, Some(range.end));
    RangeInclusive<u64>, |range| (*range.start(), Some(range.end().saturating_add(1)));
    RangeToInclusive<u64>, |range| (0, Some(range.end.saturating_add(1)));
    RangeFull, |_range| (0, None);
}

/// An inclusive range of labels of an axis. Numbers are compared with the labels as numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum LabelRange {
    /// Range of strings, by exact labels.
    Text(String, String),
    /// Range of numbers; the labels may ascend or descend.
    Number(f64, f64),
}

impl LabelRange {
    /// Finds the first position and the one after the last.
    pub(super) fn find(&self, labels: &[String]) -> Option<(u64, u64)> {
        let (start, last) = match self {
            Self::Text(start, stop) => {
                let at = |text: &String| labels.iter().position(|label| label == text);
                (at(start)?, at(stop)?)
            }
            Self::Number(a, b) => {
                let (low, high) = (a.min(*b), a.max(*b));
                let is_between =
                    |label: &String| label.trim().parse().is_ok_and(|x: f64| (low..=high).contains(&x));
                let start = labels.iter().position(is_between)?;
                let count = labels[start..].iter().take_while(|label| is_between(label)).count();
                (start, start + count - 1)
            }
        };
        (start <= last).then_some((start as u64, last as u64 + 1))
    }
}

impl fmt::Display for LabelRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(start, stop) if start == stop => write!(f, "label `{start}`"),
            Self::Text(start, stop) => write!(f, "labels `{start}` to `{stop}`"),
            Self::Number(start, stop) if start.total_cmp(stop).is_eq() => write!(f, "label {start}"),
            Self::Number(start, stop) => write!(f, "labels from {start} to {stop}"),
        }
    }
}

impl From<&str> for LabelRange {
    fn from(label: &str) -> Self {
        Self::Text(label.to_owned(), label.to_owned())
    }
}

impl From<RangeInclusive<&str>> for LabelRange {
    fn from(labels: RangeInclusive<&str>) -> Self {
        Self::Text((*labels.start()).to_owned(), (*labels.end()).to_owned())
    }
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl From<$type> for LabelRange {
            fn from(label: $type) -> Self {
                Self::Number(label.into(), label.into())
            }
        }

        impl From<RangeInclusive<$type>> for LabelRange {
            fn from(labels: RangeInclusive<$type>) -> Self {
                Self::Number((*labels.start()).into(), (*labels.end()).into())
            }
        }
    )*};
}

numbers!(f64, i32);
