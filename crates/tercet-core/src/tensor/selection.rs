//! Selections: rectangular, strided parts of arrays.

use std::fmt;

use serde::Serialize;

use super::Shape;
use crate::{Class, Diagnose};

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
    /// Every part is optional; missing axes are selected whole; a single number `n` means `n:n+1` and keeps its axis.
    pub fn parse(text: &str, shape: &[u64]) -> Result<Self, SelectionError> {
        let parts: Vec<&str> = text.split(',').collect();
        if parts.len() > shape.len() {
            return Err(SelectionError::WrongRank { found: parts.len(), rank: shape.len() });
        }
        let mut axes = Vec::with_capacity(shape.len());
        for (axis, &extent) in shape.iter().enumerate() {
            axes.push(match parts.get(axis) {
                Some(part) => parse_slice(part, axis, extent)?,
                None => AxisSlice::full(extent),
            });
        }
        Self::new(axes, shape)
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

fn parse_slice(text: &str, axis: usize, extent: u64) -> Result<AxisSlice, SelectionError> {
    let wrong = || SelectionError::Syntax { axis, text: text.to_owned() };
    let number = |part: &str, default: u64| match part.trim() {
        "" => Ok(default),
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().map_err(|_| wrong()),
        _ => Err(wrong()),
    };
    let parts: Vec<&str> = text.split(':').collect();
    match parts[..] {
        [single] if single.trim().is_empty() => Err(wrong()),
        [single] => {
            let start = number(single, 0)?;
            let stop = start.checked_add(1).ok_or_else(wrong)?;
            Ok(AxisSlice { start, stop, step: 1 })
        }
        [start, stop] => Ok(AxisSlice { start: number(start, 0)?, stop: number(stop, extent)?, step: 1 }),
        [start, stop, step] => {
            Ok(AxisSlice { start: number(start, 0)?, stop: number(stop, extent)?, step: number(step, 1)? })
        }
        _ => Err(wrong()),
    }
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
            Self::Syntax { axis, text } => {
                let text = crate::escape::name(text);
                write!(f, "selection `{text}` on axis {axis} is not `start:stop:step` of whole numbers")
            }
        }
    }
}

impl std::error::Error for SelectionError {}

impl Diagnose for SelectionError {
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
    }

    #[test]
    fn impossible_selections_are_refused() {
        let shape = [10, 6];
        for text in
            ["", "5:5", "6:5", "0:11", "::0", "-1:", "1:2:3:4", "a", ":,:,:", "99999999999999999999", "10"]
        {
            assert!(Selection::parse(text, &shape).is_err(), "{text}");
        }
        let max = u64::MAX;
        assert!(Selection::parse(&max.to_string(), &[max]).is_err());
    }

    proptest! {
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
