//! Tick positions and labels: round numbers, round times, some of the strings.

use std::borrow::Cow;

use tercet_core::cf_time::{CfTime, TimeUnits};
use tercet_core::escape;

use crate::plot::{Axis, Coordinates, short_time};
use crate::resample::{as_f64, to_index};

/// A tick of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// The place along the axis, from 0 to 1.
    pub(crate) fraction: f64,
    pub(crate) label: String,
}

/// Round numbers in a range, at most about `most` of them, with their labels.
pub(crate) fn numbers(low: f64, high: f64, most: usize) -> Vec<(f64, String)> {
    let span = high - low;
    if !(span.is_finite() && span > 0.0) {
        return vec![(low, label(low, 0.0))];
    }
    multiples(low, high, round_step(span / as_f64(most.max(1))))
}

/// Round angles in a range.
fn degrees(low: f64, high: f64, most: usize) -> Vec<(f64, String)> {
    let least = (high - low) / as_f64(most.max(1));
    match [10.0, 15.0, 30.0, 45.0, 60.0, 90.0].into_iter().find(|step| *step >= least) {
        Some(step) if least > 5.0 => multiples(low, high, step),
        _ => numbers(low, high, most),
    }
}

/// The multiples of a step in a range, with their labels.
fn multiples(low: f64, high: f64, step: f64) -> Vec<(f64, String)> {
    let span = high - low;
    let first = (low / step).ceil();
    let mut found = Vec::new();
    for number in 0..1000 {
        let value = (first + f64::from(number)) * step;
        // The last digit of a bound may be rounded.
        if value > high + span * 1e-9 {
            break;
        }
        found.push((value, label(value, step)));
    }
    found
}

/// The next larger 1, 2 or 5 times a power of ten.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let digits = least / power;
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| *factor >= digits - 1e-9).unwrap_or(10.0);
    factor * power
}

/// The text of a tick: as many decimals as the step has.
pub(crate) fn label(value: f64, step: f64) -> String {
    let value = if value == 0.0 || value.abs() < step * 1e-6 { 0.0 } else { value };
    if step == 0.0 {
        return short(value);
    }
    let exponent = step.log10().floor();
    if exponent < -5.0 || value.abs() >= 1e7 {
        let digits = if value == 0.0 { 0.0 } else { (value.abs().log10().floor() - exponent).max(0.0) };
        return format!("{value:.*e}", to_index(digits, 17));
    }
    format!("{value:.*}", to_index(-exponent, 17))
}

/// A number with a few digits.
fn short(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e7).contains(&size) { format!("{value:.3e}") } else { format!("{value}") }
}

impl Axis {
    /// The ticks, at most about `most` of them.
    pub(crate) fn ticks(&self, most: usize) -> Vec<Tick> {
        let count = to_index(f64::from(u32::try_from(self.extent).unwrap_or(u32::MAX)), usize::MAX);
        if count == 0 {
            return Vec::new();
        }
        let mut ticks = self.all_ticks(count, most);
        // Descending coordinates make ticks from right to left.
        ticks.sort_by(|first, second| first.fraction.total_cmp(&second.fraction));
        ticks
    }

    fn all_ticks(&self, count: usize, most: usize) -> Vec<Tick> {
        let at = |position: f64| (position + 0.5) / as_f64(count);
        let tick = |position: f64, label: String| Tick { fraction: at(position), label };
        match &self.coordinates {
            // Every coordinate of a short axis.
            Coordinates::Numbers(values) if count <= most => {
                some(count, most, |index| short(values[index])).collect()
            }
            Coordinates::Positions => {
                let last = as_f64(count - 1);
                let found = numbers(0.0, last.max(f64::MIN_POSITIVE), most).into_iter();
                let whole = found.filter(|(value, _)| value.fract() == 0.0 && *value <= last);
                whole.map(|(value, _)| tick(value, format!("{value}"))).collect()
            }
            Coordinates::Numbers(values) => match monotonic_range(values) {
                Some((low, high)) => self
                    .round_numbers(low, high, most)
                    .into_iter()
                    .filter_map(|(value, label)| Some(tick(position(values, value)?, label)))
                    .collect(),
                None => some(count, most, |index| short(values[index])).collect(),
            },
            Coordinates::Times(times) => match time_ticks(times, most) {
                Some(ticks) => ticks.into_iter().map(|(position, label)| tick(position, label)).collect(),
                None => some(count, most, |index| short_time(&times[index])).collect(),
            },
            Coordinates::Strings(strings) => some(count, most, |index| shortened(&strings[index])).collect(),
        }
    }
}

impl Axis {
    fn round_numbers(&self, low: f64, high: f64, most: usize) -> Vec<(f64, String)> {
        if self.is_degrees() { degrees(low, high, most) } else { numbers(low, high, most) }
    }
}

/// Evenly spaced positions with their labels.
fn some(count: usize, most: usize, label: impl Fn(usize) -> String) -> impl Iterator<Item = Tick> {
    let step = count.div_ceil(most.max(1)).max(1);
    (0..count)
        .step_by(step)
        .map(move |index| Tick { fraction: (as_f64(index) + 0.5) / as_f64(count), label: label(index) })
}

fn shortened(text: &str) -> String {
    const MAX_TICKS: usize = 16;
    // A label is too short for escape sequences.
    let is_plain = |c: char| matches!(escape::name(c.encode_utf8(&mut [0; 4])), Cow::Borrowed(_));
    let clean: String = text.chars().map(|c| if is_plain(c) { c } else { '?' }).collect();
    match clean.char_indices().nth(MAX_TICKS) {
        Some((end, _)) => format!("{}…", &clean[..end]),
        None => clean,
    }
}

/// The smallest and the largest value; `None` if the values neither ascend nor descend.
fn monotonic_range(values: &[f64]) -> Option<(f64, f64)> {
    let ascends = values.windows(2).all(|pair| pair[0] < pair[1]);
    let descends = values.windows(2).all(|pair| pair[0] > pair[1]);
    let (first, last) = (*values.first()?, *values.last()?);
    let finite = values.iter().all(|value| value.is_finite());
    (finite && (ascends || descends)).then_some((first.min(last), first.max(last)))
}

/// The position of a value among monotonic ones, with a fraction.
fn position(values: &[f64], value: f64) -> Option<f64> {
    let inside = |pair: &[f64]| {
        let (low, high) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
        low <= value && value <= high
    };
    if let Some(index) = values.windows(2).position(inside) {
        let (from, to) = (values[index], values[index + 1]);
        return Some(as_f64(index) + (value - from) / (to - from));
    }
    values.iter().position(|found| (found - value).abs() <= value.abs() * 1e-9).map(as_f64)
}

const HOUR: f64 = 3600.0;
const DAY: f64 = 24.0 * HOUR;
/// Steps shorter than a month, in seconds.
const STEPS: [f64; 14] = [
    1.0,
    5.0,
    15.0,
    30.0,
    60.0,
    300.0,
    900.0,
    1800.0,
    HOUR,
    2.0 * HOUR,
    3.0 * HOUR,
    6.0 * HOUR,
    12.0 * HOUR,
    DAY,
];
/// Steps of days, counted from the first day of each month.
const DAYS: [u8; 4] = [2, 5, 10, 15];
/// Steps of months.
const MONTHS: [i32; 11] = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200];

/// Round times with their positions; `None` if the times do not ascend.
fn time_ticks(times: &[CfTime], most: usize) -> Option<Vec<(f64, String)>> {
    let units = TimeUnits::parse("seconds since 1970-01-01", Some("proleptic_gregorian"))?;
    let seconds: Vec<f64> = times.iter().map(|time| units.encode(time)).collect();
    let (low, high) = monotonic_range(&seconds)?;
    if low >= high {
        return None;
    }
    let least = (high - low) / as_f64(most.max(1));
    let mut found = Vec::new();
    if let Some(step) = STEPS.into_iter().find(|step| *step >= least) {
        let first = (low / step).ceil();
        for number in 0..=most {
            let value = (first + as_f64(number)) * step;
            if value > high {
                break;
            }
            let time = units.decode(value)?;
            found.push((position(&seconds, value)?, time_label(&time, step)));
        }
        return Some(found);
    }
    if let Some(step) = DAYS.into_iter().find(|days| f64::from(*days) * DAY >= least) {
        let mut day = (low / DAY).ceil() * DAY;
        while day <= high {
            let time = units.decode(day)?;
            // The step before the next month is never much shorter than the others.
            if (time.day - 1) % step == 0 && time.day + step / 2 <= 30 {
                found.push((position(&seconds, day)?, time_label(&time, DAY)));
            }
            day += DAY;
        }
        return Some(found);
    }
    let step = MONTHS.into_iter().find(|months| f64::from(*months) * 30.5 * DAY >= least).unwrap_or(1200);
    let start = times.iter().min()?;
    let mut month = (start.year * 12 + i32::from(start.month) - 1).div_euclid(step) * step;
    for _ in 0..most + 2 {
        let (year, number) = (month.div_euclid(12), month.rem_euclid(12));
        let time = CfTime {
            year,
            month: u8::try_from(number + 1).unwrap_or(1),
            day: 1,
            hour: 0,
            minute: 0,
            second: 0,
            nanosecond: 0,
        };
        let value = units.encode(&time);
        if (low..=high).contains(&value) {
            let label = if step < 12 { format!("{year:04}-{:02}", number + 1) } else { format!("{year:04}") };
            found.push((position(&seconds, value)?, label));
        }
        month += step;
    }
    Some(found)
}

fn time_label(time: &CfTime, step: f64) -> String {
    let midnight = time.hour == 0 && time.minute == 0 && time.second == 0;
    if step >= DAY || midnight {
        format!("{:02}-{:02}", time.month, time.day)
    } else if step >= 60.0 {
        format!("{:02}:{:02}", time.hour, time.minute)
    } else {
        format!("{:02}:{:02}:{:02}", time.hour, time.minute, time.second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64, most: usize) -> Vec<String> {
        numbers(low, high, most).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(labels(0.0, 100.0, 5), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(labels(-0.13, 0.31, 5), ["-0.1", "0.0", "0.1", "0.2", "0.3"]);
        assert_eq!(labels(231.7, 309.2, 4), ["240", "260", "280", "300"]);
        assert_eq!(labels(0.0, 3e-7, 3), ["0e0", "1e-7", "2e-7", "3e-7"]);
        assert_eq!(labels(5.0, 5.0, 3), ["5"]);
        assert_eq!(labels(0.0, 5e8, 2), ["0", "5e8"]);
    }

    #[test]
    fn numbers_are_found_among_descending_coordinates() {
        let axis =
            Axis::new("lat", 5).with_coordinates(Coordinates::Numbers(vec![90.0, 45.0, 0.0, -45.0, -90.0]));
        let ticks = axis.ticks(4);
        let found: Vec<(f64, &str)> = ticks.iter().map(|tick| (tick.fraction, tick.label.as_str())).collect();
        assert_eq!(found, [(0.1, "90"), (0.3, "45"), (0.5, "0"), (0.7, "-45"), (0.9, "-90")]);
        let axis = Axis::new("x", 3).with_coordinates(Coordinates::Numbers(vec![30.0, 10.0, 0.0]));
        let labels: Vec<String> = axis.ticks(2).into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels, ["20", "0"]);
        let labels: Vec<String> = axis.ticks(3).into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels, ["30", "10", "0"]);
    }

    #[test]
    fn times_have_round_steps() {
        let time = |day: u8, hour: u8| CfTime {
            year: 2024,
            month: 6,
            day,
            hour,
            minute: 0,
            second: 0,
            nanosecond: 0,
        };
        let hours: Vec<CfTime> = (0..24).map(|hour| time(21, hour)).collect();
        let found: Vec<String> = time_ticks(&hours, 5).unwrap().into_iter().map(|(_, label)| label).collect();
        assert_eq!(found, ["06-21", "06:00", "12:00", "18:00"]);
        let days: Vec<CfTime> = (1..30).map(|day| time(day, 0)).collect();
        let found: Vec<String> = time_ticks(&days, 4).unwrap().into_iter().map(|(_, label)| label).collect();
        assert_eq!(found, ["06-01", "06-11", "06-21"]);
        let years: Vec<CfTime> = (0..50).map(|n| CfTime { year: 1950 + n, ..time(1, 0) }).collect();
        let found: Vec<String> = time_ticks(&years, 6).unwrap().into_iter().map(|(_, label)| label).collect();
        assert_eq!(found, ["1960", "1970", "1980", "1990"]);
    }

    #[test]
    fn strings_are_thinned_and_cleaned() {
        let strings: Vec<String> = (0..100).map(|n| format!("station\x1b {n} with a long name")).collect();
        let axis = Axis::new("station", 100).with_coordinates(Coordinates::Strings(strings));
        let ticks = axis.ticks(5);
        assert_eq!(ticks.len(), 5);
        assert_eq!(ticks[0].label, "station? 0 with …");
    }
}
