//! Selections: rectangular, strided parts of arrays.

use std::fmt;

use serde::Serialize;

use super::Shape;
use crate::{Class, Diagnostic};

/// A slice `start:stop:step` of one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct AxisSlice {
    /// The first position.
    pub start: u64,
    /// The end, exclusive.
    pub stop: u64,
    /// The distance between positions, at least 1.
    pub step: u64,
}

impl AxisSlice {
    /// Every position of an axis.
    pub const fn full(extent: u64) -> Self {
        Self { start: 0, stop: extent, step: 1 }
    }

    /// The number of positions.
    pub const fn count(self) -> u64 {
        (self.stop - self.start).div_ceil(self.step)
    }

    /// The last position.
    pub const fn last(self) -> u64 {
        self.start + (self.count() - 1) * self.step
    }

    /// The selected positions inside `low..high`: the index of the first one and their number.
    pub fn hits(self, low: u64, high: u64) -> Option<(u64, u64)> {
        // Divisions are slow, and most slices have step 1.
        let steps = |distance: u64| if self.step == 1 { distance } else { distance.div_ceil(self.step) };
        let first = steps(low.saturating_sub(self.start));
        let end = steps(high.min(self.stop).saturating_sub(self.start));
        (first < end).then(|| (first, end - first))
    }
}

/// A slice of one axis as Python writes it: negative positions count from the end, a negative step reverses the order.
///
/// ```
/// use tercet_core::tensor::IndexSlice;
///
/// let (slice, is_reversed) = IndexSlice::parse("-1:2:-3").unwrap().resolve(0, 10).unwrap();
/// assert_eq!((slice.start, slice.stop, slice.step, is_reversed), (3, 10, 3, true)); // 9, 6, 3
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IndexSlice {
    /// The first position.
    pub start: Option<i64>,
    /// The end, exclusive.
    pub stop: Option<i64>,
    /// The step, not 0.
    pub step: i64,
    /// Whether the slice is a single position: `start` alone.
    pub is_single: bool,
}

impl IndexSlice {
    /// Every position of an axis.
    pub const FULL: Self = Self { start: None, stop: None, step: 1, is_single: false };

    /// Parses `n` or `start:stop:step`; every part of the latter is optional.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |part: &str| match part.trim() {
            "" => Some(None),
            digits if digits.starts_with('+') => None,
            digits => digits.parse().ok().map(Some),
        };
        let parts: Vec<&str> = text.split(':').collect();
        Some(match parts[..] {
            [single] => Self { start: Some(number(single)??), stop: None, step: 1, is_single: true },
            [start, stop] => Self { start: number(start)?, stop: number(stop)?, ..Self::FULL },
            [start, stop, step] => {
                let step = number(step)?.unwrap_or(1);
                Self { start: number(start)?, stop: number(stop)?, step, is_single: false }
            }
            _ => return None,
        })
    }

    /// The selected positions of an axis of `extent` positions, in ascending order, and whether the slice reverses
    /// them.
    pub fn resolve(&self, axis: usize, extent: u64) -> Result<(AxisSlice, bool), SelectionError> {
        let signed = i64::try_from(extent).unwrap_or(i64::MAX);
        let from_end = |position: i64| if position < 0 { position.saturating_add(signed) } else { position };
        let outside = |position: i64| SelectionError::Position { axis, position, extent };
        let unsigned = |position: i64| u64::try_from(from_end(position)).map_err(|_| outside(position));
        if self.is_single {
            let position = self.start.unwrap_or(0);
            let start = unsigned(position)?;
            if start >= extent {
                return Err(outside(position));
            }
            return Ok((AxisSlice { start, stop: start + 1, step: 1 }, false));
        }
        let step = self.step.unsigned_abs();
        if step == 0 {
            return Err(SelectionError::ZeroStep { axis });
        }
        if self.step > 0 {
            let start = self.start.map_or(Ok(0), unsigned)?;
            let stop = self.stop.map_or(Ok(extent), unsigned)?;
            return Ok((AxisSlice { start, stop, step }, false));
        }
        // From `first` down to, and without, `end`.
        let first = self.start.map_or(Ok(extent.saturating_sub(1)), unsigned)?;
        if first >= extent {
            return Err(outside(self.start.unwrap_or(0)));
        }
        let end = self.stop.map(unsigned).transpose()?;
        if end.is_some_and(|end| end >= first) {
            let (start, stop) = (first, end.unwrap_or(0));
            return Err(SelectionError::Empty { axis, start, stop });
        }
        let count = (first - end.map_or(0, |end| end + 1)) / step;
        Ok((AxisSlice { start: first - count * step, stop: first + 1, step }, true))
    }
}

/// A rectangular, possibly strided, part of an array: one [`AxisSlice`] for each axis.
///
/// The constructors check that a selection is not empty and is inside its array.
///
/// ```
/// use tercet_core::{Selection, Shape};
///
/// let shape = Shape::from([10, 6]);
/// let selection = Selection::parse("2:8,::3", &shape).unwrap();
/// assert_eq!(selection.shape(), Shape::from([6, 2]));
/// assert!(Selection::parse("2:11", &shape).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Selection {
    axes: Vec<AxisSlice>,
}

impl Selection {
    /// The whole array.
    pub fn full(shape: &[u64]) -> Self {
        Self { axes: shape.iter().map(|&extent| AxisSlice::full(extent)).collect() }
    }

    /// One slice for each axis of `shape`.
    pub fn new(axes: Vec<AxisSlice>, shape: &[u64]) -> Result<Self, SelectionError> {
        if axes.len() != shape.len() {
            return Err(SelectionError::WrongRank { found: axes.len(), rank: shape.len() });
        }
        for (axis, (slice, &extent)) in axes.iter().zip(shape).enumerate() {
            let AxisSlice { start, stop, step } = *slice;
            if step == 0 {
                return Err(SelectionError::ZeroStep { axis });
            }
            if start >= stop {
                return Err(SelectionError::Empty { axis, start, stop });
            }
            if stop > extent {
                return Err(SelectionError::OutOfRange { axis, stop, extent });
            }
        }
        Ok(Self { axes })
    }

    /// Parses `start:stop:step` slices separated by commas, outermost axis first.
    ///
    /// Every part is optional; missing axes are selected whole, and so are those of `...`; a single number `n` keeps its
    /// axis; negative positions count from the end. A selection has no order: negative steps are refused.
    pub fn parse(text: &str, shape: &[u64]) -> Result<Self, SelectionError> {
        let parsed = Self::parse_indexed(text, shape)?;
        match parsed.reversed.iter().position(|&reversed| reversed) {
            Some(axis) => Err(SelectionError::NegativeStep { axis }),
            None => Ok(parsed.selection),
        }
    }

    /// Like `parse`, with negative steps: returns the axes that are reversed, and those of single numbers as well.
    pub fn parse_indexed(text: &str, shape: &[u64]) -> Result<IndexedSelection, SelectionError> {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let dots = parts.iter().filter(|part| **part == "...").count();
        let wrong = |axis: usize, text: &str| SelectionError::Syntax { axis, text: text.to_owned() };
        if dots > 1 {
            return Err(wrong(0, text));
        }
        if parts.len() - dots > shape.len() {
            return Err(SelectionError::WrongRank { found: parts.len() - dots, rank: shape.len() });
        }
        let skipped = shape.len() - (parts.len() - dots);
        let mut axes = Vec::with_capacity(shape.len());
        let (mut reversed, mut single) = (Vec::with_capacity(shape.len()), Vec::with_capacity(shape.len()));
        for part in parts {
            let axis = axes.len();
            if part == "..." {
                axes.extend(shape[axis..axis + skipped].iter().map(|&extent| AxisSlice::full(extent)));
                reversed.resize(axes.len(), false);
                single.resize(axes.len(), false);
                continue;
            }
            let index = IndexSlice::parse(part).ok_or_else(|| wrong(axis, part))?;
            let (slice, is_reversed) = index.resolve(axis, shape[axis])?;
            axes.push(slice);
            reversed.push(is_reversed);
            single.push(index.is_single);
        }
        axes.extend(shape[axes.len()..].iter().map(|&extent| AxisSlice::full(extent)));
        reversed.resize(axes.len(), false);
        single.resize(axes.len(), false);
        Ok(IndexedSelection { selection: Self::new(axes, shape)?, reversed, single })
    }

    /// The slices, outermost axis first.
    pub fn axes(&self) -> &[AxisSlice] {
        &self.axes
    }

    /// The extents of the selected part.
    pub fn shape(&self) -> Shape {
        Shape::new(self.axes.iter().map(|slice| slice.count()).collect::<Vec<_>>())
    }

    /// Whether this selects all of an array of this shape.
    pub fn is_full(&self, shape: &[u64]) -> bool {
        self.axes.len() == shape.len()
            && self.axes.iter().zip(shape).all(|(&slice, &extent)| slice == AxisSlice::full(extent))
    }
}

/// A selection as Python writes it, for each axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedSelection {
    /// The positions, in ascending order.
    pub selection: Selection,
    /// Axes whose positions are in descending order, by a negative step.
    pub reversed: Vec<bool>,
    /// Axes of which a single number selects one position.
    pub single: Vec<bool>,
}

/// The error of a selection that does not fit its array.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the words of the message")]
pub enum SelectionError {
    /// The number of slices differs from the number of axes.
    WrongRank { found: usize, rank: usize },
    /// A step of zero.
    ZeroStep { axis: usize },
    /// No position is selected.
    Empty { axis: usize, start: u64, stop: u64 },
    /// The end exceeds the axis.
    OutOfRange { axis: usize, stop: u64, extent: u64 },
    /// A position outside of the axis.
    Position { axis: usize, position: i64, extent: u64 },
    /// A negative step where the order cannot be reversed.
    NegativeStep { axis: usize },
    /// Not `start:stop:step`.
    Syntax { axis: usize, text: String },
}

impl fmt::Display for SelectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongRank { found, rank } => {
                write!(f, "selection has {found} axes, but the array has {rank}")
            }
            Self::ZeroStep { axis } => write!(f, "selection on axis {axis} has step 0"),
            Self::Empty { axis, start, stop } => {
                write!(f, "selection `{start}:{stop}` on axis {axis} is empty")
            }
            Self::OutOfRange { axis, stop, extent } => {
                write!(f, "selection on axis {axis} ends at {stop}, but the axis has {extent} positions")
            }
            Self::Position { axis, position, extent } => {
                write!(f, "position {position} on axis {axis}, but the axis has {extent} positions")
            }
            Self::NegativeStep { axis } => {
                write!(f, "selection on axis {axis} has a negative step, which is not supported here")
            }
            Self::Syntax { axis, text } => {
                let text = crate::escape::name(text);
                write!(f, "selection `{text}` on axis {axis} is not `start:stop:step` of whole numbers")
            }
        }
    }
}

impl std::error::Error for SelectionError {}

impl Diagnostic for SelectionError {
    fn class(&self) -> Class {
        Class::Request
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_part_is_optional() {
        let shape = [10, 6, 3];
        let parse = |text| Selection::parse(text, &shape).map(|s| s.shape().to_vec());
        assert_eq!(parse(":"), Ok(vec![10, 6, 3]));
        assert_eq!(parse("0:10,::2"), Ok(vec![10, 3, 3]));
        assert_eq!(parse("9, 1:2 ,2:"), Ok(vec![1, 1, 1]));
        assert_eq!(parse("..., 2"), Ok(vec![10, 6, 1]));
        assert_eq!(parse("3:,...,-2:"), Ok(vec![7, 6, 2]));
        assert_eq!(parse("..."), Ok(vec![10, 6, 3]));
        assert_eq!(parse("1,1,...,1"), Ok(vec![1, 1, 1]));
    }

    #[test]
    fn impossible_selections_are_refused() {
        let shape = [10, 6];
        for text in [
            "", "5:5", "6:5", "0:11", "::0", "::-1", "-11:", "-11", "1:2:3:4", "a", ":,:,:", "10", "...,...",
            "+1",
        ] {
            assert!(Selection::parse(text, &shape).is_err(), "{text}");
        }
        let max = u64::MAX;
        assert!(Selection::parse(&max.to_string(), &[max]).is_err());
    }

    proptest! {
        /// Python's rules: `range(extent)[start:stop:step]`.
        #[test]
        fn slices_are_those_of_python(
            extent in 1i64..12,
            start in prop::option::of(-12i64..12),
            stop in prop::option::of(-12i64..12),
            step in prop::sample::select(vec![-5i64, -3, -2, -1, 1, 2, 3, 5]),
        ) {
            let from_end = |position: i64| if position < 0 { position + extent } else { position };
            let (first, end) = if step > 0 {
                (start.map_or(0, from_end), stop.map_or(extent, from_end))
            } else {
                (start.map_or(extent - 1, from_end), stop.map_or(-1, from_end))
            };
            let mut expected = Vec::new();
            let mut position = first;
            while (step > 0 && position < end) || (step < 0 && position > end) {
                expected.push(position);
                position += step;
            }
            let slice = IndexSlice { start, stop, step, is_single: false };
            let extent = extent.cast_unsigned();
            match slice.resolve(0, extent) {
                Ok((slice, is_reversed)) if Selection::new(vec![slice], &[extent]).is_ok() => {
                    let mut found: Vec<i64> =
                        (slice.start..slice.stop).step_by(slice.step as usize).map(u64::cast_signed).collect();
                    if is_reversed {
                        found.reverse();
                    }
                    prop_assert_eq!(found, expected);
                }
                // Positions outside of the axis are refused, where Python clips them.
                _ => {
                    let inside = |position: Option<i64>, most: i64| {
                        position.is_none_or(|position| (0..=most).contains(&from_end(position)))
                    };
                    let most = extent.cast_signed();
                    let fits = inside(start, most - i64::from(step < 0)) && inside(stop, most);
                    prop_assert!(!fits || expected.is_empty(), "{expected:?}");
                }
            }
        }

        #[test]
        fn hits_are_the_positions_in_the_window(
            start in 0u64..20, len in 1u64..40, step in 1u64..9, low in 0u64..60, width in 0u64..30,
        ) {
            let slice = AxisSlice { start, stop: start + len, step };
            let positions: Vec<u64> = (slice.start..slice.stop).step_by(step as usize).collect();
            prop_assert_eq!(slice.count(), positions.len() as u64);
            prop_assert_eq!(slice.last(), *positions.last().unwrap());
            let inside: Vec<usize> = (0..positions.len())
                .filter(|&i| (low..low + width).contains(&positions[i]))
                .collect();
            let expected = inside.first().map(|&first| (first as u64, inside.len() as u64));
            prop_assert_eq!(slice.hits(low, low + width), expected);
        }
    }
}
