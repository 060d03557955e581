//! Groups and windows of positions along an axis.

use std::collections::HashMap;
use std::sync::Arc;

use tercet_core::cf_time::CfTime;

use super::{Axis, CoordinateValues, Coordinates};
use crate::query::operation::Scalar;
use crate::query::resolved::{Groups, Padding, Role, Rolling};

/// Groups of positions of an axis.
pub struct Group {
    pub(super) axis: AxisKey,
    key: Key,
}

/// What positions are grouped by.
enum Key {
    /// Maps the label of a position to the name of its group.
    Label(Box<dyn Fn(&str) -> String + Send + Sync>),
    /// Maps the number of a position to the name of its group.
    Position(Box<dyn Fn(u64) -> String + Send + Sync>),
    Time(TimePart),
}

/// A part of the time of a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum TimePart {
    Year,
    Month,
    Day,
    Hour,
    /// Three months, named by their initials: `DJF` (December to February), `MAM`, `JJA`, `SON`.
    Season,
}

impl TimePart {
    /// Parses `year`, `month`, `day`, `hour` or `season`.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "year" => Self::Year,
            "month" => Self::Month,
            "day" => Self::Day,
            "hour" => Self::Hour,
            "season" => Self::Season,
            _ => return None,
        })
    }

    /// The name: `year`, `month`, `day`, `hour` or `season`.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Year => "year",
            Self::Month => "month",
            Self::Day => "day",
            Self::Hour => "hour",
            Self::Season => "season",
        }
    }

    fn number(self, time: &CfTime) -> i64 {
        match self {
            Self::Year => time.year.into(),
            Self::Month => time.month.into(),
            Self::Day => time.day.into(),
            Self::Hour => time.hour.into(),
            Self::Season => (i64::from(time.month) % 12) / 3,
        }
    }

    fn name(self, number: i64) -> String {
        match self {
            Self::Season => ["DJF", "MAM", "JJA", "SON"][usize::try_from(number).unwrap_or(0) % 4].to_owned(),
            _ => number.to_string(),
        }
    }
}

/// An owned [`Axis`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AxisKey {
    Number(usize),
    Name(String),
}

impl AxisKey {
    pub(super) fn as_axis(&self) -> Axis<'_> {
        match self {
            Self::Number(number) => Axis::Number(*number),
            Self::Name(name) => Axis::Name(name),
        }
    }
}

impl From<Axis<'_>> for AxisKey {
    fn from(axis: Axis<'_>) -> Self {
        match axis {
            Axis::Number(number) => Self::Number(number),
            Axis::Name(name) => Self::Name(name.to_owned()),
        }
    }
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Group({:?})", self.axis)
    }
}

impl Group {
    /// Groups positions by a function of their labels; an axis without labels is an error.
    pub fn labels<'a>(
        axis: impl Into<Axis<'a>>,
        key: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> Self {
        Self { axis: axis.into().into(), key: Key::Label(Box::new(key)) }
    }

    /// Groups positions by a part of their times, in ascending order of that part.
    pub fn time<'a>(axis: impl Into<Axis<'a>>, part: TimePart) -> Self {
        Self { axis: axis.into().into(), key: Key::Time(part) }
    }

    /// Groups positions by a function of their numbers.
    pub fn positions<'a>(
        axis: impl Into<Axis<'a>>,
        key: impl Fn(u64) -> String + Send + Sync + 'static,
    ) -> Self {
        Self { axis: axis.into().into(), key: Key::Position(Box::new(key)) }
    }

    /// The name of the dimension of the groups, if it is not that of the axis.
    pub(super) fn dim_name(&self) -> Option<&'static str> {
        match self.key {
            Key::Time(part) => Some(part.key()),
            Key::Label(_) | Key::Position(_) => None,
        }
    }

    /// The groups of `count` positions, and their names. The error describes coordinates that cannot be grouped.
    pub(super) fn groups(
        &self,
        count: usize,
        coordinates: Option<&Coordinates>,
    ) -> Result<(Groups, Vec<String>), &'static str> {
        match &self.key {
            Key::Label(key) => match coordinates {
                Some(labels) => Ok(groups_of((0..count).map(|position| key(&labels.text(position))))),
                None => Err("it has neither labels nor a coordinate dataset"),
            },
            Key::Position(key) => Ok(groups_of((0..count).map(|position| key(position as u64)))),
            Key::Time(part) => {
                let Some(CoordinateValues::Times(times)) = coordinates.map(|of| &of.values) else {
                    return Err("its coordinates are not times");
                };
                let mut numbers: Vec<i64> = times.iter().map(|time| part.number(time)).collect();
                let slots = numbers.clone();
                numbers.sort_unstable();
                numbers.dedup();
                let number = |value: i64| {
                    u32::try_from(numbers.partition_point(|&other| other < value)).unwrap_or(u32::MAX)
                };
                let slots: Arc<[u32]> = slots.into_iter().map(number).collect();
                let count = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                let names = numbers.iter().map(|&value| part.name(value)).collect();
                Ok((Groups { numbers: slots, count, padding: None, size: 0 }, names))
            }
        }
    }
}

/// One group per name, in order of first occurrence, and the names.
pub(crate) fn groups_of(names: impl Iterator<Item = String>) -> (Groups, Vec<String>) {
    let mut by_name: HashMap<String, u32> = HashMap::new();
    let mut order = Vec::new();
    let numbers: Arc<[u32]> = names
        .map(|name| {
            // The names of all positions are held in memory: there are fewer than 2³².
            let next = u32::try_from(order.len()).unwrap_or(u32::MAX);
            *by_name.entry(name).or_insert_with_key(|name| {
                order.push(name.clone());
                next
            })
        })
        .collect();
    let count = u32::try_from(order.len()).unwrap_or(u32::MAX);
    (Groups { numbers, count, padding: None, size: 0 }, order)
}

/// Windows along an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    pub(super) axis: AxisKey,
    pub(super) span: WindowSpan,
}

/// Size and position of windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WindowSpan {
    pub(crate) size: u64,
    pub(crate) step: u64,
    pub(crate) rolling: bool,
    /// Whether short windows are the last ones; else the first ones.
    pub(crate) at_end: bool,
    pub(crate) padding: Padding,
}

impl Window {
    /// Rolling windows of `size` positions along an axis.
    pub fn rolling<'a>(axis: impl Into<Axis<'a>>, size: u64) -> Self {
        Self::new(axis.into(), size, true)
    }

    /// Bins of `size` adjacent positions; the last one may be shorter.
    pub fn bins<'a>(axis: impl Into<Axis<'a>>, size: u64) -> Self {
        Self::new(axis.into(), size, false)
    }

    fn new(axis: Axis<'_>, size: u64, rolling: bool) -> Self {
        let padding = Padding { value: None, min_count: 1 };
        Self { axis: axis.into(), span: WindowSpan { size, step: 1, rolling, at_end: !rolling, padding } }
    }

    /// Sets the step from one rolling window to the next: 1 by default.
    pub fn step(mut self, step: u64) -> Self {
        self.span.step = step;
        self
    }

    /// Sets the minimum number of values of a window; with fewer, its result is NaN. 1 by default.
    pub fn min_count(mut self, count: u64) -> Self {
        self.span.padding.min_count = count;
        self
    }

    /// Aligns bins with the end of the axis: the first one may be shorter.
    pub fn align_end(mut self) -> Self {
        self.span.at_end = self.span.rolling;
        self
    }

    /// Pads windows that extend past the start of the axis with a value: rolling windows begin there, and the first
    /// bin is the short one.
    pub fn pad_start(self, value: Scalar) -> Self {
        self.pad(value, false)
    }

    /// Pads windows that extend past the end of the axis with a value.
    pub fn pad_end(self, value: Scalar) -> Self {
        self.pad(value, true)
    }

    fn pad(mut self, value: Scalar, at_end: bool) -> Self {
        self.span.padding.value = Some(value);
        self.span.at_end = at_end;
        self
    }
}

impl WindowSpan {
    /// The role of an axis of `extent` selected positions. The caller checks that there are between 1 and `extent`
    /// positions in a window, and fewer than 2³² bins.
    pub(crate) fn role(&self, extent: u64) -> Role {
        if self.rolling { Role::Rolling(self.windows(extent)) } else { Role::Grouped(self.bins(extent)) }
    }

    /// Adjacent bins; the last one may be shorter, or the first one if they are aligned with the end.
    pub(crate) fn bins(&self, extent: u64) -> Groups {
        let size = self.size;
        let count = extent.div_ceil(size);
        let missing = if self.at_end { 0 } else { count * size - extent };
        let number = |bin: u64| u32::try_from(bin).unwrap_or(u32::MAX);
        let numbers = (0..extent).map(|position| number((position + missing) / size)).collect();
        Groups { numbers, count: number(count), padding: Some(self.padding), size }
    }

    /// Windows inside the axis; with padding they may extend past its start or end.
    pub(crate) fn windows(&self, extent: u64) -> Rolling {
        let &Self { size, step, padding, .. } = self;
        let is_padded = padding.value.is_some();
        let starts = if is_padded { extent } else { extent - size + 1 };
        let over_start = is_padded && !self.at_end;
        let first = if over_start { 1 - i64::try_from(size).unwrap_or(i64::MAX) } else { 0 };
        Rolling { size, step, first, count: starts.div_ceil(step), padding, separate: false }
    }
}
