//! Coordinates of an axis: numbers, times or strings, from labels or from a coordinate dataset.

use std::collections::HashSet;
use std::fmt;

use tercet_core::cf_time::{Calendar, CfTime, PartialTime, TimeUnits};
use tercet_core::tensor::AxisSlice;
use tercet_core::{Class, Diagnostic as _, ElementType, escape};

use crate::error::Error;
use crate::file::Dataset;

/// Coordinates of the positions of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Coordinates {
    /// The values.
    pub values: CoordinateValues,
    /// The units of numbers, from the coordinate dataset.
    pub units: Option<String>,
    /// Labels as they are stored.
    labels: Option<Vec<String>>,
    /// Type of the stored numbers: labels are rounded to it before they are compared.
    element: Option<ElementType>,
    /// Calendar of times, which decides what dates exist; `None` if it is unknown.
    calendar: Option<Calendar>,
    /// Whether the numbers are times of which some are missing or out of range. They cannot be searched.
    has_missing_times: bool,
}

/// Values of coordinates.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CoordinateValues {
    /// Numbers.
    Numbers(Vec<f64>),
    /// Times.
    Times(Vec<CfTime>),
    /// Strings.
    Strings(Vec<String>),
}

/// What identifies a coordinate.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Number(u64),
    Text(String),
}

impl Dataset<'_> {
    /// Coordinates of an axis: its labels, or the values of the 1-D dataset named like the axis. `None` if it has
    /// neither. Numbers and ISO times among labels are recognised if all labels are such.
    pub fn coordinates(&self, axis: usize) -> Result<Option<Coordinates>, Error> {
        if let Some(labels) = self.labels(axis) {
            return Ok(Some(Coordinates::from_labels(labels.to_vec())));
        }
        match self.coordinate_dataset(axis) {
            Some(coordinate) => Coordinates::from_dataset(&coordinate).map(Some),
            None => Ok(None),
        }
    }

    /// Coordinates of an axis, like [`coordinates`](Self::coordinates); `None` if they are damaged or invalid. Positions are
    /// selected and computed without them.
    pub fn readable_coordinates(&self, axis: usize) -> Result<Option<Coordinates>, Error> {
        match self.coordinates(axis) {
            Err(error) if is_unusable(&error) => Ok(None),
            coordinates => coordinates,
        }
    }

    /// The error of coordinates that are damaged or invalid; `None` if they are not.
    pub fn coordinate_error(&self, axis: usize) -> Option<Error> {
        self.coordinates(axis).err().filter(is_unusable)
    }

    /// The coordinate dataset of an axis: the 1-D dataset with the name and the length of the axis.
    pub fn coordinate_dataset(&self, axis: usize) -> Option<Self> {
        let name = self.axis_name(axis)?;
        let extent = self.shape().get(axis)?;
        self.file.datasets().find(|other| other.name() == name && other.shape() == [*extent])
    }
}

/// Whether an error is one of the stored coordinates, not of the system.
fn is_unusable(error: &Error) -> bool {
    matches!(error.class(), Class::Malformed | Class::Corrupt | Class::Unsupported | Class::Request)
}

impl Coordinates {
    fn new(values: CoordinateValues) -> Self {
        Self { values, units: None, labels: None, element: None, calendar: None, has_missing_times: false }
    }

    /// Coordinates of labels: numbers or ISO times if all labels are such, else strings.
    pub fn from_labels(labels: Vec<String>) -> Self {
        let numbers: Option<Vec<f64>> = labels.iter().map(|label| label.trim().parse().ok()).collect();
        let times = || labels.iter().map(|label| PartialTime::parse(label)).collect::<Option<Vec<_>>>();
        let mut calendar = None;
        let values = match numbers {
            Some(numbers) => CoordinateValues::Numbers(numbers),
            None => match times() {
                Some(times) => {
                    // Labels name no calendar: one with other dates is recognised by them.
                    let is_usual = times.iter().all(|time| time.exists_in(Calendar::Standard));
                    calendar = is_usual.then_some(Calendar::Standard);
                    CoordinateValues::Times(times.iter().map(|time| time.start).collect())
                }
                None => CoordinateValues::Strings(labels.clone()),
            },
        };
        Self { labels: Some(labels), calendar, ..Self::new(values) }
    }

    /// Coordinates of an axis from its coordinate dataset, whose own axis may have any name, or none.
    pub(crate) fn from_dataset(dataset: &Dataset<'_>) -> Result<Self, Error> {
        let numbers = dataset.read_numbers()?;
        let attribute = |name: &str| dataset.info().and_then(|info| info.attrs.get(name)).map(String::as_str);
        let units = attribute("units");
        let mut has_missing_times = false;
        if let Some(units) = units.and_then(|units| TimeUnits::parse(units, attribute("calendar"))) {
            let times: Option<Vec<CfTime>> = numbers.iter().map(|&number| units.decode(number)).collect();
            if let Some(times) = times {
                let calendar = Some(units.calendar());
                return Ok(Self { calendar, ..Self::new(CoordinateValues::Times(times)) });
            }
            // Positions can be selected without times: only a search by time fails.
            has_missing_times = true;
        }
        let units = units.map(str::to_owned);
        let values = CoordinateValues::Numbers(numbers);
        Ok(Self { units, element: dataset.element(), has_missing_times, ..Self::new(values) })
    }

    /// The first coordinate from a position on that an earlier position has as well, as text. A selection by it is
    /// ambiguous.
    pub fn repeated(&self, from: usize) -> Option<String> {
        let mut seen = HashSet::new();
        // −0 is 0 for selections.
        let key = |position: usize| match &self.values {
            CoordinateValues::Numbers(numbers) if self.labels.is_none() => {
                Key::Number((numbers[position] + 0.0).to_bits())
            }
            _ => Key::Text(self.text(position)),
        };
        (0..self.len())
            .find(|&position| !seen.insert(key(position)) && position >= from)
            .map(|at| self.text(at))
    }

    /// Number of positions.
    pub fn len(&self) -> usize {
        match &self.values {
            CoordinateValues::Numbers(numbers) => numbers.len(),
            CoordinateValues::Times(times) => times.len(),
            CoordinateValues::Strings(strings) => strings.len(),
        }
    }

    /// Whether there are no positions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A coordinate as text.
    pub fn text(&self, position: usize) -> String {
        if let Some(label) = self.labels.as_ref().and_then(|labels| labels.get(position)) {
            return label.clone();
        }
        match &self.values {
            CoordinateValues::Numbers(numbers) => match self.element {
                // The shortest text that is this number in its stored type.
                Some(ElementType::F32) => to_f32(numbers[position]).to_string(),
                _ => numbers[position].to_string(),
            },
            CoordinateValues::Times(times) => times[position].to_string(),
            CoordinateValues::Strings(strings) => strings[position].clone(),
        }
    }

    /// Times as seconds since 1970-01-01, with their units and calendar; `None` if the coordinates are not times.
    pub fn epoch_seconds(&self) -> Option<(Vec<f64>, &'static str, Calendar)> {
        let CoordinateValues::Times(times) = &self.values else { return None };
        let calendar = self.calendar.unwrap_or(Calendar::ProlepticGregorian);
        let units = "seconds since 1970-01-01 00:00:00";
        let encoder = TimeUnits::parse(units, Some(calendar.name()))?;
        Some((times.iter().map(|time| encoder.encode(time)).collect(), units, calendar))
    }

    /// The coordinates of selected positions.
    pub(crate) fn selected(&self, slice: AxisSlice, reversed: bool) -> Self {
        fn pick<T: Clone>(values: &[T], slice: AxisSlice, reversed: bool) -> Vec<T> {
            let usize_of = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
            let values = values.get(usize_of(slice.start)..usize_of(slice.stop)).unwrap_or_default();
            let mut values: Vec<T> = values.iter().step_by(usize_of(slice.step)).cloned().collect();
            if reversed {
                values.reverse();
            }
            values
        }
        let values = match &self.values {
            CoordinateValues::Numbers(numbers) => CoordinateValues::Numbers(pick(numbers, slice, reversed)),
            CoordinateValues::Times(times) => CoordinateValues::Times(pick(times, slice, reversed)),
            CoordinateValues::Strings(strings) => CoordinateValues::Strings(pick(strings, slice, reversed)),
        };
        let labels = self.labels.as_ref().map(|labels| pick(labels, slice, reversed));
        Self { values, labels, units: self.units.clone(), ..*self }
    }

    /// The coordinates of some positions.
    pub(crate) fn at(&self, positions: &[usize]) -> Self {
        fn pick<T: Clone>(values: &[T], positions: &[usize]) -> Vec<T> {
            positions.iter().filter_map(|&position| values.get(position)).cloned().collect()
        }
        let values = match &self.values {
            CoordinateValues::Numbers(numbers) => CoordinateValues::Numbers(pick(numbers, positions)),
            CoordinateValues::Times(times) => CoordinateValues::Times(pick(times, positions)),
            CoordinateValues::Strings(strings) => CoordinateValues::Strings(pick(strings, positions)),
        };
        let labels = self.labels.as_ref().map(|labels| pick(labels, positions));
        Self { values, labels, units: self.units.clone(), ..*self }
    }

    /// Type of the stored numbers; `None` for labels.
    pub(crate) fn element(&self) -> Option<ElementType> {
        self.element
    }

    /// Labels as they are stored; `None` for coordinates of a dataset.
    pub fn labels(&self) -> Option<&[String]> {
        self.labels.as_deref()
    }

    /// Finds the positions of a label or of an inclusive range of labels: the first, and the one after the last.
    pub(crate) fn find(&self, labels: &LabelSelection) -> Result<(u64, u64), LabelError> {
        if self.has_missing_times {
            return Err(LabelError::MissingTimes);
        }
        let found = match labels {
            LabelSelection::One(label) => self.find_one(label)?,
            LabelSelection::Range(from, to) => {
                let found = self.find_range(from.as_ref(), to.as_ref());
                found.map_err(|error| match (error, from, to) {
                    (LabelError::Empty { descends: Some(descends), .. }, Some(first), Some(last))
                        if self.find_range(Some(last), Some(first)).is_ok() =>
                    {
                        let swapped = Some(format!("{last}..{first}"));
                        LabelError::Empty { descends: Some(descends), swapped }
                    }
                    (error, ..) => error,
                })?
            }
            LabelSelection::Nearest { label, tolerance } => {
                let position = self.find_nearest(label, *tolerance)?;
                (position, position + 1)
            }
        };
        Ok((found.0 as u64, found.1 as u64))
    }

    /// Whether labels that select the positions `start..stop` select a single one, so that results have no dimension for the
    /// axis: one label or the nearest one, but no range and no part of a time.
    pub(crate) fn is_single(&self, labels: &LabelSelection, (start, stop): (u64, u64)) -> bool {
        stop - start == 1
            && match labels {
                LabelSelection::One(label) => !self.is_partial_time(label),
                LabelSelection::Range(..) => false,
                LabelSelection::Nearest { .. } => true,
            }
    }

    /// Whether a label is a part of a time, as a month is of the labels of days: it selects a range, also of one position.
    fn is_partial_time(&self, label: &Label) -> bool {
        let CoordinateValues::Times(times) = &self.values else { return false };
        let text = label.to_string();
        if self.labels.as_ref().is_some_and(|labels| labels.contains(&text)) {
            return false;
        }
        let Some(PartialTime { start, last, .. }) = PartialTime::parse(&text) else { return false };
        // The label leaves open what differs in the first and the last of its times.
        let opens_day = start.day != last.day;
        let opens = |open: bool, part: fn(&CfTime) -> bool| open && times.iter().any(part);
        opens_day
            || opens(start.hour != last.hour, |time| time.hour != 0)
            || opens(start.minute != last.minute, |time| time.minute != 0)
            || opens(start.second != last.second, |time| time.second != 0)
            || opens(start.nanosecond != last.nanosecond, |time| time.nanosecond != 0)
    }

    fn find_one(&self, label: &Label) -> Result<(usize, usize), LabelError> {
        let text = label.to_string();
        // The same text wins over the same number: `1` is not `001` if both exist.
        if let Some(labels) = &self.labels
            && labels.contains(&text)
        {
            return contiguous(labels.iter().map(|other| *other == text), label);
        }
        let missing = || LabelError::NotFound { label: text.clone(), nearest: self.suggestion(label) };
        match &self.values {
            CoordinateValues::Numbers(numbers) => {
                let number = self.number(label)?;
                if !numbers.contains(&number) {
                    return Err(missing());
                }
                #[expect(clippy::float_cmp, reason = "labels are compared exactly")]
                let is = |&other: &f64| other == number;
                if let Some(labels) = &self.labels {
                    let mut equal =
                        labels.iter().zip(numbers).filter(|(_, other)| is(other)).map(|(text, _)| text);
                    let first = equal.next();
                    if let (Some(first), Some(other)) = (first, equal.find(|other| Some(*other) != first)) {
                        let (first, other) = (first.clone(), other.clone());
                        return Err(LabelError::SeveralLabels { label: text, first, other });
                    }
                }
                contiguous(numbers.iter().map(is), label)
            }
            CoordinateValues::Times(times) => {
                let time = self.time(label)?;
                if !times.iter().any(|other| time.contains(other)) {
                    return Err(missing());
                }
                contiguous(times.iter().map(|other| time.contains(other)), label)
            }
            CoordinateValues::Strings(strings) => {
                if !strings.contains(&text) {
                    return Err(missing());
                }
                contiguous(strings.iter().map(|other| *other == text), label)
            }
        }
    }

    fn find_range(&self, from: Option<&Label>, to: Option<&Label>) -> Result<(usize, usize), LabelError> {
        match &self.values {
            CoordinateValues::Numbers(numbers) => {
                let number = |label: &Label| match self.number(label)? {
                    number if number.is_nan() => Err(LabelError::NotFinite { label: label.to_string() }),
                    number => Ok(number),
                };
                let from = from.map(number).transpose()?;
                let to = to.map(number).transpose()?;
                bounded(numbers, from.map(|from| (from, from)), to.map(|to| (to, to)))
            }
            CoordinateValues::Times(times) => {
                let bounds = |label: &Label| self.time(label).map(|time| (time.start, time.last));
                bounded(times, from.map(bounds).transpose()?, to.map(bounds).transpose()?)
            }
            CoordinateValues::Strings(strings) => {
                let bounds = |label: &Label| (label.to_string(), label.to_string());
                bounded(strings, from.map(bounds), to.map(bounds))
            }
        }
    }

    fn find_nearest(&self, label: &Label, tolerance: Option<f64>) -> Result<usize, LabelError> {
        // Of two labels at the same distance the larger one is taken.
        let nearest = match &self.values {
            CoordinateValues::Numbers(numbers) => {
                let number = self.number(label)?;
                if !number.is_finite() {
                    return Err(LabelError::NotFinite { label: label.to_string() });
                }
                let places = numbers.iter().enumerate().filter(|(_, other)| !other.is_nan());
                let key = |other: f64| ((other - number).abs(), -other);
                places
                    .map(|(place, &other)| (place, key(other)))
                    .min_by(|a, b| a.1.partial_cmp(&b.1).unwrap_or(std::cmp::Ordering::Equal))
                    .map(|(place, (distance, _))| (place, distance))
            }
            CoordinateValues::Times(times) => {
                let time = self.time(label)?.start;
                let calendar = self.calendar.unwrap_or(Calendar::ProlepticGregorian);
                let seconds = |other: &CfTime| {
                    let nanoseconds = calendar.between(&time, other);
                    #[expect(clippy::cast_precision_loss, reason = "a distance")]
                    let seconds = nanoseconds as f64 / 1e9;
                    seconds
                };
                let places = times.iter().enumerate().map(|(place, other)| (place, seconds(other)));
                places
                    .min_by(|a, b| a.1.abs().total_cmp(&b.1.abs()).then(b.1.total_cmp(&a.1)))
                    .map(|(place, seconds)| (place, seconds.abs()))
            }
            CoordinateValues::Strings(_) => {
                return Err(LabelError::NoOrder { detail: "the nearest label of strings" });
            }
        };
        match nearest {
            Some((place, distance)) if tolerance.is_none_or(|tolerance| distance <= tolerance) => Ok(place),
            Some((place, distance)) => {
                let unit = if matches!(self.values, CoordinateValues::Times(_)) { " s" } else { "" };
                let (label, nearest) = (label.to_string(), self.text(place));
                Err(LabelError::TooFar { label, nearest, distance, unit })
            }
            None => Err(LabelError::NotFound { label: label.to_string(), nearest: None }),
        }
    }

    /// The number of a label, rounded to the type of the coordinates.
    fn number(&self, label: &Label) -> Result<f64, LabelError> {
        let number = match label {
            Label::Number(number) => *number,
            Label::Text(text) => text
                .trim()
                .parse()
                .map_err(|_| LabelError::WrongKind { label: text.clone(), expected: "a number" })?,
        };
        Ok(match self.element {
            Some(ElementType::F16) => tercet_core::tensor::f16::from_f64(number).to_f64(),
            Some(ElementType::F32) => f64::from(to_f32(number)),
            _ => number,
        })
    }

    /// The times of a label.
    fn time(&self, label: &Label) -> Result<PartialTime, LabelError> {
        let text = label.to_string();
        let Some(time) = PartialTime::parse(&text) else {
            return Err(LabelError::WrongKind { label: text, expected: "an ISO date or time" });
        };
        if self.calendar.is_some_and(|calendar| !time.exists_in(calendar)) {
            return Err(LabelError::NoSuchDate { label: text });
        }
        Ok(time)
    }

    /// Parses a selection as [`LabelSelection::parse`] does. A text that is a label of this axis selects that label, also
    /// if it contains `..` or starts with `~`.
    pub fn parse_selection(&self, text: &str) -> LabelSelection {
        match &self.labels {
            Some(labels) if labels.iter().any(|label| label == text) => {
                LabelSelection::One(Label::Text(text.to_owned()))
            }
            _ => LabelSelection::parse(text),
        }
    }

    /// The most similar label.
    fn suggestion(&self, label: &Label) -> Option<String> {
        if let CoordinateValues::Strings(strings) = &self.values {
            let text = label.to_string();
            return crate::query::error::closest(&text, strings.iter().map(String::as_str));
        }
        self.find_nearest(label, None).ok().map(|place| self.text(place))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest f32")]
fn to_f32(number: f64) -> f32 {
    number as f32
}

/// The range of the positions that match; an error if they are not consecutive.
fn contiguous(matches: impl Iterator<Item = bool>, label: &Label) -> Result<(usize, usize), LabelError> {
    let places: Vec<usize> = matches.enumerate().filter(|(_, matches)| *matches).map(|(at, _)| at).collect();
    match (places.first(), places.last()) {
        (Some(&first), Some(&last)) if last - first + 1 == places.len() => Ok((first, last + 1)),
        (None, _) | (_, None) => Err(LabelError::NotFound { label: label.to_string(), nearest: None }),
        _ => Err(LabelError::Ambiguous { label: label.to_string() }),
    }
}

/// Positions from one label to another, both inclusive. A bound is a range of labels itself, as `2024-06` is.
fn bounded<T: PartialOrd>(
    values: &[T],
    from: Option<(T, T)>,
    to: Option<(T, T)>,
) -> Result<(usize, usize), LabelError> {
    let ascends = values.windows(2).all(|pair| pair[0] <= pair[1]);
    let descends = !ascends && values.windows(2).all(|pair| pair[0] >= pair[1]);
    if !ascends && !descends {
        // Unsorted labels have an order of positions only.
        let place = |bound: &(T, T)| {
            let is = |value: &T| bound.0 <= *value && *value <= bound.1;
            let mut places = values.iter().enumerate().filter(|(_, value)| is(value)).map(|(at, _)| at);
            match (places.next(), places.next()) {
                (Some(place), None) => Ok(place),
                _ => Err(LabelError::NoOrder { detail: "a range of labels that are not sorted" }),
            }
        };
        let start = from.as_ref().map(place).transpose()?.unwrap_or(0);
        let stop = to.as_ref().map(place).transpose()?.map_or(values.len(), |last| last + 1);
        return if start < stop {
            Ok((start, stop))
        } else {
            Err(LabelError::Empty { descends: None, swapped: None })
        };
    }
    let (start, stop) = if ascends {
        let start = from.map_or(0, |from| values.partition_point(|value| *value < from.0));
        (start, to.map_or(values.len(), |to| values.partition_point(|value| *value <= to.1)))
    } else {
        let start = from.map_or(0, |from| values.partition_point(|value| *value > from.1));
        (start, to.map_or(values.len(), |to| values.partition_point(|value| *value >= to.0)))
    };
    if start < stop {
        Ok((start, stop))
    } else {
        Err(LabelError::Empty { descends: Some(descends), swapped: None })
    }
}

/// A label: a number, or text that may be a number, a time or a string.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Label {
    Number(f64),
    Text(String),
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// A selection of positions by their labels.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LabelSelection {
    /// The positions with a label: exactly this number or string, or the times that it begins.
    One(Label),
    /// From one label to another, both included. Bounds may lie between labels if these are sorted.
    Range(Option<Label>, Option<Label>),
    /// The position with the nearest label.
    Nearest {
        /// The label.
        label: Label,
        /// Maximum distance: of times in seconds.
        tolerance: Option<f64>,
    },
}

impl LabelSelection {
    /// Parses `LABEL`, `FROM..TO` or `~LABEL`. Both ends of a range are included and optional; `~` selects the nearest
    /// label. A label in double quotes may contain `..` and start with `~`; a quotation mark in it is doubled.
    ///
    /// ```
    /// use tercet_tet::{Label, LabelSelection};
    ///
    /// assert_eq!(LabelSelection::parse("60..30"), (60.0..=30.0).into());
    /// assert_eq!(LabelSelection::parse("2024-06"), "2024-06".into());
    /// assert_eq!(LabelSelection::parse(r#""a..b""#), LabelSelection::One(Label::Text("a..b".to_owned())));
    /// ```
    pub fn parse(text: &str) -> Self {
        if let Some(label) = text.strip_prefix('~') {
            return Self::nearest(Label::parse(label.trim()));
        }
        let bound = |text: &str| {
            let text = text.strip_prefix('=').unwrap_or(text).trim();
            match quoted(text) {
                Some((label, "")) => Some(Label::Text(label)),
                _ => (!text.is_empty()).then(|| Label::parse(text)),
            }
        };
        if let Some((label, rest)) = quoted(text.trim()) {
            match rest.trim_start().strip_prefix("..") {
                Some(to) => return Self::Range(Some(Label::Text(label)), bound(to)),
                None if rest.is_empty() => return Self::One(Label::Text(label)),
                None => {}
            }
        }
        match text.split_once("..") {
            Some((from, to)) => Self::Range(bound(from), bound(to)),
            None => Self::One(Label::parse(text)),
        }
    }

    /// The position with the nearest label.
    pub fn nearest(label: impl Into<Label>) -> Self {
        Self::Nearest { label: label.into(), tolerance: None }
    }
}

/// A label in double quotes at the start of a text, and the text after it. Two quotation marks in it are one.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('"')?;
    let mut label = String::new();
    loop {
        let (part, after) = rest.split_once('"')?;
        label.push_str(part);
        let Some(more) = after.strip_prefix('"') else { return Some((label, after)) };
        label.push('"');
        rest = more;
    }
}

impl Label {
    /// A number if the text is one, else the text.
    pub fn parse(text: &str) -> Self {
        // Text keeps labels such as `007` apart from numbers; it is compared with numbers as a number.
        match text.trim().parse::<f64>() {
            Ok(number) if number.to_string() == text.trim() => Self::Number(number),
            _ => Self::Text(text.to_owned()),
        }
    }
}

impl fmt::Display for LabelSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = |label: &Option<Label>| label.as_ref().map(Label::to_string).unwrap_or_default();
        match self {
            Self::One(label) => write!(f, "{label}"),
            Self::Range(from, to) => write!(f, "{}..{}", bound(from), bound(to)),
            Self::Nearest { label, .. } => write!(f, "nearest to {label}"),
        }
    }
}

/// Why labels select nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LabelError {
    NotFound {
        label: String,
        nearest: Option<String>,
    },
    TooFar {
        label: String,
        nearest: String,
        distance: f64,
        /// `s` of times.
        unit: &'static str,
    },
    WrongKind {
        label: String,
        expected: &'static str,
    },
    /// The label is found at positions that are not consecutive.
    Ambiguous {
        label: String,
    },
    /// Labels with different spellings are the same number.
    SeveralLabels {
        label: String,
        first: String,
        other: String,
    },
    /// The calendar of the axis has no such date.
    NoSuchDate {
        label: String,
    },
    /// The label is NaN or infinite, or so in the type of the coordinates.
    NotFinite {
        label: String,
    },
    MissingTimes,
    NoOrder {
        detail: &'static str,
    },
    /// No label is in the range; labels may be known to ascend or to descend.
    Empty {
        descends: Option<bool>,
        /// The range with its ends exchanged, if labels are in it.
        swapped: Option<String>,
    },
}

impl fmt::Display for LabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { label, nearest } => {
                write!(f, "no label `{}`", escape::name(label))?;
                match nearest {
                    Some(nearest) => write!(f, "; the nearest is `{}`", escape::name(nearest)),
                    None => Ok(()),
                }
            }
            Self::TooFar { label, nearest, distance, unit } => {
                let (label, nearest) = (escape::name(label), escape::name(nearest));
                write!(f, "no label near `{label}`: the nearest, `{nearest}`, is {distance}{unit} away")
            }
            Self::WrongKind { label, expected } => {
                write!(
                    f,
                    "the label `{}` is not {expected}, as the labels of this axis are",
                    escape::name(label)
                )
            }
            Self::Ambiguous { label } => {
                write!(f, "the label `{}` is at several positions that are not adjacent", escape::name(label))
            }
            Self::SeveralLabels { label, first, other } => {
                let (label, first, other) = (escape::name(label), escape::name(first), escape::name(other));
                write!(f, "the label `{label}` is ambiguous: `{first}` and `{other}` are the same number")
            }
            Self::NoSuchDate { label } => {
                write!(f, "`{}` does not exist in the calendar of this axis", escape::name(label))
            }
            Self::NotFinite { label } => {
                write!(f, "the label `{}` is not a finite number", escape::name(label))
            }
            Self::MissingTimes => {
                f.write_str("the coordinates have missing times, or times out of range; select positions")
            }
            Self::NoOrder { detail } => write!(f, "{detail} is not defined"),
            Self::Empty { descends: None, .. } => write!(f, "no label is in this range"),
            Self::Empty { descends: Some(descends), swapped } => {
                let order = if *descends { "descend" } else { "ascend" };
                write!(f, "no label is in this range: the labels {order}")?;
                match swapped {
                    Some(swapped) => write!(f, "; write `{}`", escape::name(swapped)),
                    None => Ok(()),
                }
            }
        }
    }
}

macro_rules! labels {
    ($($type:ty, |$label:ident| $make:expr;)*) => {$(
        impl From<$type> for Label {
            fn from($label: $type) -> Self {
                $make
            }
        }

        impl From<$type> for LabelSelection {
            fn from(label: $type) -> Self {
                Self::One(label.into())
            }
        }
    )*};
}

labels! {
    &str, |label| Self::parse(label);
    String, |label| Self::parse(&label);
    f64, |label| Self::Number(label);
    i32, |label| Self::Number(label.into());
}

impl<L: Into<Label> + Clone> From<std::ops::RangeInclusive<L>> for LabelSelection {
    fn from(labels: std::ops::RangeInclusive<L>) -> Self {
        let (from, to) = labels.into_inner();
        Self::Range(Some(from.into()), Some(to.into()))
    }
}

impl<L: Into<Label>> From<std::ops::RangeFrom<L>> for LabelSelection {
    fn from(labels: std::ops::RangeFrom<L>) -> Self {
        Self::Range(Some(labels.start.into()), None)
    }
}

impl<L: Into<Label>> From<std::ops::RangeToInclusive<L>> for LabelSelection {
    fn from(labels: std::ops::RangeToInclusive<L>) -> Self {
        Self::Range(None, Some(labels.end.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(labels: &[&str]) -> Coordinates {
        Coordinates::from_labels(labels.iter().map(|label| (*label).to_owned()).collect())
    }

    fn find(coordinates: &Coordinates, text: &str) -> Result<(u64, u64), LabelError> {
        coordinates.find(&LabelSelection::parse(text))
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        let lat = labels(&["90", "60.0", "30", "0", "-30"]);
        assert_eq!(find(&lat, "60"), Ok((1, 2)));
        assert_eq!(find(&lat, "60..0"), Ok((1, 4)));
        assert_eq!(find(&lat, "70..-10"), Ok((1, 4)));
        assert_eq!(find(&lat, "..30"), Ok((0, 3)));
        assert_eq!(find(&lat, "-29.."), Ok((4, 5)));
        assert_eq!(
            find(&lat, "0..60"),
            Err(LabelError::Empty { descends: Some(true), swapped: Some("60..0".to_owned()) })
        );
        assert!(find(&lat, "0..60").unwrap_err().to_string().ends_with("the labels descend; write `60..0`"));
        assert_eq!(find(&lat, "50..40"), Err(LabelError::Empty { descends: Some(true), swapped: None }));
        for text in ["~nan", "~inf", "~-inf", "nan..30", "60..nan", "nan.."] {
            assert!(matches!(find(&lat, text), Err(LabelError::NotFinite { .. })), "{text}");
        }
        assert!(find(&lat, "nan").is_err());
        assert!(find(&lat, "61").unwrap_err().to_string().contains("the nearest is `60.0`"));
        assert!(matches!(find(&lat, "north"), Err(LabelError::WrongKind { .. })));
    }

    #[test]
    fn times_may_be_partial() {
        let time = labels(&["2024-05-31T18:00", "2024-06-01T00:00", "2024-06-30T18:00", "2024-07-01T00:00"]);
        assert_eq!(find(&time, "2024-06"), Ok((1, 3)));
        assert_eq!(find(&time, "2024-06-01..2024-06"), Ok((1, 3)));
        assert_eq!(find(&time, "2024"), Ok((0, 4)));
        assert_eq!(find(&time, "..2024-06-01"), Ok((0, 2)));
        assert!(find(&time, "2025").is_err());
        let nearest = LabelSelection::Nearest { label: "2024-06-20".into(), tolerance: None };
        assert_eq!(time.find(&nearest), Ok((2, 3)));
        let near = LabelSelection::Nearest { label: "2024-06-20".into(), tolerance: Some(3600.0) };
        let error = time.find(&near).unwrap_err().to_string();
        assert!(error.ends_with("the nearest, `2024-06-30T18:00`, is 928800 s away"), "{error}");
    }

    #[test]
    fn a_part_of_a_time_is_no_single_label() {
        let partial = |time: &Coordinates, text: &str| time.is_partial_time(&Label::parse(text));
        let months = labels(&["2024-01-01", "2024-02-01", "2024-03-01"]);
        assert!(partial(&months, "2024-02"));
        assert!(partial(&months, "2024"));
        assert!(!partial(&months, "2024-02-01"));
        assert!(!partial(&months, "2024-02-01T00:00"));
        let hours = labels(&["2024-02-01T00:00", "2024-02-02T06:00"]);
        assert!(partial(&hours, "2024-02-01"));
        assert!(!partial(&hours, "2024-02-01T00"));
        // A label as it is written is not a part of one.
        assert!(!partial(&labels(&["2024-01", "2024-02"]), "2024-02"));
        assert!(!partial(&labels(&["1", "2"]), "1"));
    }

    #[test]
    fn dates_exist_in_the_calendar() {
        let time = labels(&["2024-01-31", "2024-02-29", "2024-03-01"]);
        assert_eq!(find(&time, "2024-02-29..2024-03"), Ok((1, 3)));
        for text in ["2024-02-31", "..2024-02-30", "2024-02-31..2024-03-01", "~2023-02-29"] {
            assert!(matches!(find(&time, text), Err(LabelError::NoSuchDate { .. })), "{text}");
        }
        // A calendar of twelve months of 30 days.
        let days360 = labels(&["2024-02-28", "2024-02-30", "2024-03-01"]);
        assert_eq!(find(&days360, "2024-02-30"), Ok((1, 2)));
        assert_eq!(find(&days360, "..2024-02-30"), Ok((0, 2)));
        // Named: February has 30 days, so 1 March is one day after the last.
        let model = Coordinates { calendar: Some(Calendar::Days360), ..time };
        assert!(matches!(find(&model, "2024-01-31..2024-02"), Err(LabelError::NoSuchDate { .. })));
        let nearest = LabelSelection::Nearest { label: "2024-02-30".into(), tolerance: Some(86_400.0) };
        assert_eq!(model.find(&nearest), Ok((2, 3)));
    }

    #[test]
    fn the_same_text_wins() {
        let names = labels(&["a", "a..b", "b", "~b"]);
        let parsed = |text: &str| names.find(&names.parse_selection(text));
        assert_eq!(parsed("a..b"), Ok((1, 2)));
        assert_eq!(parsed("~b"), Ok((3, 4)));
        assert_eq!(parsed("a..~b"), Ok((0, 4)));
        let quoted = labels(&["0", "a..b", "b \"x\"", "c", "~d"]);
        assert_eq!(find(&quoted, r#""a..b""#), Ok((1, 2)));
        assert_eq!(find(&quoted, r#""~d""#), Ok((4, 5)));
        assert_eq!(find(&quoted, r#""a..b".."c""#), Ok((1, 4)));
        assert_eq!(find(&quoted, r#"..="c""#), Ok((0, 4)));
        assert_eq!(find(&quoted, r#""b ""x""".."#), Ok((2, 5)));
        assert!(find(&quoted, r#""a"b"#).is_err());
        let numbers = labels(&["001", "1", "1.0", "2.00"]);
        assert_eq!(find(&numbers, "1"), Ok((1, 2)));
        assert_eq!(find(&numbers, "001"), Ok((0, 1)));
        assert_eq!(find(&numbers, "2"), Ok((3, 4)));
        assert!(matches!(find(&numbers, "1e0"), Err(LabelError::SeveralLabels { .. })));
    }

    #[test]
    fn strings_and_unsorted_labels_are_found_by_position() {
        let names = labels(&["oslo", "lima", "rome", "lima"]);
        assert_eq!(find(&names, "oslo..rome"), Ok((0, 3)));
        assert_eq!(find(&names, "rome"), Ok((2, 3)));
        assert!(matches!(find(&names, "lima"), Err(LabelError::Ambiguous { .. })));
        assert!(matches!(find(&names, "lima..rome"), Err(LabelError::NoOrder { .. })));
        assert!(find(&names, "rom").unwrap_err().to_string().contains("`rome`"));
        let levels = labels(&["1000", "500", "850"]);
        assert_eq!(find(&levels, "1000..500"), Ok((0, 2)));
        assert!(find(&levels, "900..500").is_err());
    }

    #[test]
    fn equal_distances_take_the_larger_label() {
        let lat = labels(&["10", "20", "30"]);
        assert_eq!(lat.find(&LabelSelection::nearest(15.0)), Ok((1, 2)));
        assert_eq!(lat.find(&LabelSelection::nearest(24.0)), Ok((1, 2)));
        assert_eq!(lat.find(&LabelSelection::nearest("1e9")), Ok((2, 3)));
        assert_eq!(find(&lat, "~24"), Ok((1, 2)));
    }
}
