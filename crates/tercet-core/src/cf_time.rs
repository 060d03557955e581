//! Times by the CF conventions: calendars, and numbers such as "hours since 1900-01-01".
//!
//! ```
//! use tercet_core::cf_time::{PartialTime, TimeUnits};
//!
//! let units = TimeUnits::parse("hours since 1900-01-01 00:00:0.0", None).unwrap();
//! let time = units.decode(1_081_080.0).unwrap();
//! assert_eq!(time.to_string(), "2023-05-01T00:00:00");
//! assert!(PartialTime::parse("2023-05").unwrap().contains(&time));
//! ```

use std::fmt;

/// Calendar of a time coordinate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Calendar {
    /// `standard` or `gregorian`: Julian before 15 October 1582.
    #[default]
    Standard,
    /// `proleptic_gregorian`.
    ProlepticGregorian,
    /// `julian`.
    Julian,
    /// `noleap` or `365_day`: no leap years.
    NoLeap,
    /// `all_leap` or `366_day`: all years are leap years.
    AllLeap,
    /// `360_day`: twelve months of 30 days.
    Days360,
}

/// A time in any calendar, without a time zone. Times of one calendar are ordered by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub struct CfTime {
    pub year: i32,
    pub month: u8,
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    pub nanosecond: u32,
}

const DAY: i128 = 86_400_000_000_000;
const HOUR: i128 = DAY / 24;
const MINUTE: i128 = HOUR / 60;
const SECOND: i128 = MINUTE / 60;
/// Days before each month of a year without a leap day.
const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

impl Calendar {
    /// The calendar of the attribute `calendar`.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name.trim().to_ascii_lowercase().as_str() {
            "standard" | "gregorian" => Self::Standard,
            "proleptic_gregorian" => Self::ProlepticGregorian,
            "julian" => Self::Julian,
            "noleap" | "365_day" => Self::NoLeap,
            "all_leap" | "366_day" => Self::AllLeap,
            "360_day" => Self::Days360,
            _ => return None,
        })
    }

    /// The value of the attribute `calendar`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::ProlepticGregorian => "proleptic_gregorian",
            Self::Julian => "julian",
            Self::NoLeap => "noleap",
            Self::AllLeap => "all_leap",
            Self::Days360 => "360_day",
        }
    }

    fn is_leap(self, year: i32) -> bool {
        let julian = year.rem_euclid(4) == 0;
        let gregorian = julian && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0);
        match self {
            Self::Standard if year < 1583 => julian,
            Self::Standard | Self::ProlepticGregorian => gregorian,
            Self::Julian => julian,
            Self::NoLeap | Self::Days360 => false,
            Self::AllLeap => true,
        }
    }

    /// Number of days of a month.
    fn month_days(self, year: i32, month: u8) -> u8 {
        match month {
            _ if self == Self::Days360 => 30,
            2 if self.is_leap(year) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    /// Days since 1 January of year 0 of the Gregorian calendar; since that of the calendar itself for model calendars.
    fn days(self, time: &CfTime) -> i64 {
        let (year, month, day) = (i64::from(time.year), usize::from(time.month), i64::from(time.day));
        let is_gregorian = (time.year, time.month, time.day) >= (1582, 10, 15);
        let leap_day = i64::from(month > 2 && self.is_leap(time.year));
        let in_year = BEFORE[(month - 1).min(11)] + leap_day + day - 1;
        // Leap days before this year; year 0 is one of the leap years.
        let before = year - 1;
        let julian = before.div_euclid(4) + 1;
        let gregorian = julian - before.div_euclid(100) + before.div_euclid(400);
        match self {
            Self::Days360 => year * 360 + (i64::from(time.month) - 1) * 30 + day - 1,
            Self::NoLeap => year * 365 + in_year,
            Self::AllLeap => year * 366 + in_year,
            Self::ProlepticGregorian => year * 365 + gregorian + in_year,
            Self::Standard if is_gregorian => year * 365 + gregorian + in_year,
            // The two calendars agree in the third century: the Julian one began two days earlier.
            Self::Standard | Self::Julian => year * 365 + julian + in_year - 2,
        }
    }

    /// The date of a number of days.
    fn date(self, days: i64) -> Option<(i32, u8, u8)> {
        // The mean year of the calendar, so that the estimate is a few years off at most, however far the date is.
        let year_days = match self {
            Self::Days360 => 360.0,
            Self::NoLeap => 365.0,
            Self::AllLeap => 366.0,
            Self::Standard if days < 0 => 365.25,
            Self::Standard | Self::ProlepticGregorian => 365.2425,
            Self::Julian => 365.25,
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "an estimate")]
        let mut year = (days as f64 / year_days) as i64;
        let start = |year: i64| {
            let year = i32::try_from(year).ok()?;
            let first = CfTime { year, month: 1, day: 1, hour: 0, minute: 0, second: 0, nanosecond: 0 };
            Some(self.days(&first))
        };
        while start(year)? > days {
            year -= 1;
        }
        while start(year + 1)? <= days {
            year += 1;
        }
        let year = i32::try_from(year).ok()?;
        let time = |month, day| CfTime { year, month, day, hour: 0, minute: 0, second: 0, nanosecond: 0 };
        let month = (1..=12u8).rev().find(|&month| self.days(&time(month, 1)) <= days)?;
        // These days do not exist: 4 October 1582 is followed by the 15th.
        let exists =
            |day: u8| (year, month) != (1582, 10) || self != Self::Standard || !(5..15).contains(&day);
        let days_of_month = (1..=self.month_days(year, month)).filter(|&day| exists(day));
        let day = { days_of_month }.find(|&day| self.days(&time(month, day)) == days)?;
        Some((year, month, day))
    }

    /// Nanoseconds between two times.
    pub fn between(self, from: &CfTime, to: &CfTime) -> i128 {
        self.nanoseconds(to) - self.nanoseconds(from)
    }

    fn nanoseconds(self, time: &CfTime) -> i128 {
        i128::from(self.days(time)) * DAY
            + i128::from(time.hour) * HOUR
            + i128::from(time.minute) * MINUTE
            + i128::from(time.second) * SECOND
            + i128::from(time.nanosecond)
    }

    fn time(self, nanoseconds: i128) -> Option<CfTime> {
        let (year, month, day) = self.date(i64::try_from(nanoseconds.div_euclid(DAY)).ok()?)?;
        let rest = nanoseconds.rem_euclid(DAY);
        let part = |unit: i128, of: i128| u8::try_from(rest / unit % of).unwrap_or(0);
        let nanosecond = u32::try_from(rest % SECOND).unwrap_or(0);
        let (hour, minute, second) = (part(HOUR, 24), part(MINUTE, 60), part(SECOND, 60));
        Some(CfTime { year, month, day, hour, minute, second, nanosecond })
    }
}

impl fmt::Display for CfTime {
    /// ISO 8601, without a fraction if it is zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day, hour, minute, second, nanosecond } = *self;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if nanosecond > 0 {
            write!(f, ".{}", format!("{nanosecond:09}").trim_end_matches('0'))?;
        }
        Ok(())
    }
}

/// Units of a time coordinate: a unit of time and a reference time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeUnits {
    /// Nanoseconds of the unit.
    unit: i128,
    epoch: i128,
    calendar: Calendar,
}

impl TimeUnits {
    /// Parses the attributes `units` (`hours since 1900-01-01`) and `calendar`; `None` if they are not units of time.
    pub fn parse(units: &str, calendar: Option<&str>) -> Option<Self> {
        let calendar = calendar.map_or(Some(Calendar::default()), Calendar::parse)?;
        let (unit, epoch) = units.split_once(" since ")?;
        let unit = match unit.trim().to_ascii_lowercase().as_str() {
            "days" | "day" | "d" => DAY,
            "hours" | "hour" | "hrs" | "hr" | "h" => HOUR,
            "minutes" | "minute" | "mins" | "min" => MINUTE,
            "seconds" | "second" | "secs" | "sec" | "s" => SECOND,
            "milliseconds" | "millisecond" | "msecs" | "msec" | "ms" => SECOND / 1_000,
            "microseconds" | "microsecond" | "us" => SECOND / 1_000_000,
            "nanoseconds" | "nanosecond" | "ns" => 1,
            _ => return None,
        };
        let epoch = PartialTime::parse(epoch)?;
        if epoch.start.day > calendar.month_days(epoch.start.year, epoch.start.month) {
            return None;
        }
        let epoch = calendar.nanoseconds(&epoch.start) - epoch.offset;
        Some(Self { unit, epoch, calendar })
    }

    /// The time of a number; `None` for NaN, infinities and times out of range.
    pub fn decode(&self, number: f64) -> Option<CfTime> {
        if !number.is_finite() || number.abs() > 1e24 {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
        let (whole, rest) = (number.trunc() as i128, number.fract());
        #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "below one unit")]
        let rest = (rest * self.unit as f64).round() as i128;
        self.calendar.time(whole.checked_mul(self.unit)?.checked_add(self.epoch)?.checked_add(rest)?)
    }

    /// The number of a time.
    pub fn encode(&self, time: &CfTime) -> f64 {
        let since = self.calendar.nanoseconds(time) - self.epoch;
        #[expect(clippy::cast_precision_loss, reason = "rounded to the nearest f64")]
        let (whole, rest) = ((since.div_euclid(self.unit)) as f64, since.rem_euclid(self.unit) as f64);
        #[expect(clippy::cast_precision_loss, reason = "units are below 2^53")]
        let unit = self.unit as f64;
        whole + rest / unit
    }

    /// The calendar.
    pub fn calendar(&self) -> Calendar {
        self.calendar
    }
}

/// A time as people write it: from a year (`2024`) to a fraction of a second. It means all times that begin with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialTime {
    /// The first of these times.
    pub start: CfTime,
    /// The last of these times.
    pub last: CfTime,
    /// Offset of its time zone from UTC, in nanoseconds.
    offset: i128,
}

impl PartialTime {
    /// Parses ISO 8601 dates and times: `2024`, `2024-06`, `2024-06-01T12:30`, `2024-06-01 12:30:15.5Z`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (date, time) = match text.find(['T', 't', ' ']) {
            Some(at) => (&text[..at], Some(text[at + 1..].trim())),
            None => (text, None),
        };
        let (sign, digits) = match date.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, date.strip_prefix('+').unwrap_or(date)),
        };
        let mut parts = digits.split('-');
        let year = parts.next()?;
        if year.len() < 4 && parts.clone().next().is_none() {
            return None; // a plain number
        }
        let year = sign * number::<i32>(year, 6)?;
        let month = optional(parts.next(), |part| in_range(part, 1, 12)).ok()?;
        let day = optional(parts.next(), |part| in_range(part, 1, 31)).ok()?;
        if parts.next().is_some() || (time.is_some_and(|time| !time.is_empty()) && day.is_none()) {
            return None;
        }
        let (clock, offset) = match time.filter(|time| !time.is_empty()) {
            Some(time) => zone(time)?,
            None => ("", 0),
        };
        let mut clock = clock.split(':').filter(|part| !part.is_empty());
        let hour = optional(clock.next(), |part| in_range(part, 0, 23)).ok()?;
        let minute = optional(clock.next(), |part| in_range(part, 0, 59)).ok()?;
        let second = optional(clock.next(), seconds).ok()?;
        if clock.next().is_some() {
            return None;
        }
        let (whole, fraction) = second.map_or((None, None), |(whole, fraction)| (Some(whole), fraction));
        let start = CfTime {
            year,
            month: month.unwrap_or(1),
            day: day.unwrap_or(1),
            hour: hour.unwrap_or(0),
            minute: minute.unwrap_or(0),
            second: whole.unwrap_or(0),
            nanosecond: fraction.unwrap_or(0),
        };
        // The last day of a month is 31 in every calendar: it only bounds a range.
        let last = CfTime {
            year,
            month: month.unwrap_or(12),
            day: day.unwrap_or(31),
            hour: hour.unwrap_or(23),
            minute: minute.unwrap_or(59),
            second: whole.unwrap_or(59),
            nanosecond: fraction.unwrap_or(999_999_999),
        };
        Some(Self { start, last, offset })
    }

    /// Whether the calendar has this day: 30 February exists in `360_day`, 29 February not in every year.
    pub fn exists_in(&self, calendar: Calendar) -> bool {
        let CfTime { year, month, day, .. } = self.start;
        let was_skipped =
            calendar == Calendar::Standard && (year, month) == (1582, 10) && (5..15).contains(&day);
        day <= calendar.month_days(year, month) && !was_skipped
    }

    /// Whether a time is one of these times.
    pub fn contains(&self, time: &CfTime) -> bool {
        (self.start..=self.last).contains(time)
    }
}

/// Parses a part that may be absent; an error if it is present and wrong.
fn optional<T>(part: Option<&str>, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, ()> {
    part.map(|part| parse(part).ok_or(())).transpose()
}

fn number<T: std::str::FromStr>(text: &str, most: usize) -> Option<T> {
    let digits = !text.is_empty() && text.len() <= most && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

fn in_range(text: &str, low: u8, high: u8) -> Option<u8> {
    number::<u8>(text, 2).filter(|number| (low..=high).contains(number))
}

/// Seconds and, if written, their fraction in nanoseconds.
fn seconds(text: &str) -> Option<(u8, Option<u32>)> {
    let (whole, fraction) = match text.split_once(['.', ',']) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    let fraction = match fraction {
        Some("") => Some(0),
        // Digits beyond nanoseconds are dropped.
        Some(digits) => {
            let nine: String = digits.chars().chain(std::iter::repeat('0')).take(9).collect();
            Some(number::<u32>(&nine, 9).filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))?)
        }
        None => None,
    };
    Some((in_range(whole, 0, 59)?, fraction))
}

/// Splits a time zone from a time: `Z`, `UTC`, `+02:00`.
fn zone(time: &str) -> Option<(&str, i128)> {
    let upper = time.to_ascii_uppercase();
    for name in ["UTC", "GMT", "Z"] {
        if upper.ends_with(name) {
            return Some((time[..time.len() - name.len()].trim(), 0));
        }
    }
    let Some(at) = time.rfind(['+', '-']) else { return Some((time, 0)) };
    let (clock, zone) = (time[..at].trim(), &time[at + 1..]);
    let (hours, minutes) = match zone.split_once(':') {
        Some(parts) => parts,
        None if zone.len() == 4 => zone.split_at(2),
        None => (zone, "0"),
    };
    let offset = i128::from(in_range(hours, 0, 23)?) * HOUR + i128::from(in_range(minutes, 0, 59)?) * MINUTE;
    Some((clock, if time[at..].starts_with('-') { -offset } else { offset }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> CfTime {
        PartialTime::parse(text).unwrap().start
    }

    #[test]
    fn every_day_of_every_calendar_comes_back() {
        for calendar in [
            Calendar::Standard,
            Calendar::ProlepticGregorian,
            Calendar::Julian,
            Calendar::NoLeap,
            Calendar::AllLeap,
            Calendar::Days360,
        ] {
            let mut last = None;
            for day in (-10_000..900_000).step_by(3).chain(577_500..577_900).chain(5_000_000..5_001_000) {
                let (year, month, day_of_month) = calendar.date(day).unwrap();
                let time = CfTime { day: day_of_month, month, year, ..time("2000-01-01") };
                assert_eq!(calendar.days(&time), day, "{calendar:?} {time}");
                if day < 577_500 {
                    assert!(last.is_none_or(|last| last < time), "{calendar:?} {time}");
                }
                last = Some(time);
            }
        }
    }

    #[test]
    fn known_times_are_decoded() {
        for (units, calendar, number, expected) in [
            ("days since 1970-01-01", None, 0.0, "1970-01-01T00:00:00"),
            ("days since 1970-01-01", None, 19_723.0, "2024-01-01T00:00:00"),
            ("hours since 1900-01-01 00:00:0.0", None, 1_081_080.0, "2023-05-01T00:00:00"),
            ("seconds since 2000-01-01T00:00:00Z", Some("gregorian"), 0.5, "2000-01-01T00:00:00.5"),
            ("days since 2000-02-28", Some("noleap"), 1.0, "2000-03-01T00:00:00"),
            ("days since 2000-02-28", Some("360_day"), 2.0, "2000-02-30T00:00:00"),
            ("days since 1582-10-04", None, 1.0, "1582-10-15T00:00:00"),
            ("days since 1582-10-04", Some("proleptic_gregorian"), 1.0, "1582-10-05T00:00:00"),
            ("minutes since 2024-03-01 02:00 +02:00", None, 90.0, "2024-03-01T01:30:00"),
            ("days since 2000-01-01", None, -0.25, "1999-12-31T18:00:00"),
        ] {
            let units = TimeUnits::parse(units, calendar).unwrap();
            let time = units.decode(number).unwrap();
            assert_eq!(time.to_string(), expected);
            assert!((units.encode(&time) - number).abs() < 1e-9, "{expected}");
        }
        assert_eq!(TimeUnits::parse("K", None), None);
        assert_eq!(TimeUnits::parse("months since 2000-01-01", None), None);
        assert_eq!(TimeUnits::parse("days since 2000-01-01", Some("lunar")), None);
        let days = TimeUnits::parse("days since 2000-01-01", None).unwrap();
        assert_eq!([f64::NAN, f64::INFINITY, 1e300, 1e23].map(|n| days.decode(n)), [None; 4]);
        // Dates near the ends of the range are found in a few steps.
        for calendar in ["standard", "julian", "noleap", "all_leap", "360_day", "proleptic_gregorian"] {
            let units = TimeUnits::parse("days since 2000-01-01", Some(calendar)).unwrap();
            for number in (0..20_000).flat_map(|n| [7.6e11 + f64::from(n), -7.6e11 - f64::from(n)]) {
                let time = units.decode(number).unwrap();
                assert!((units.encode(&time) - number).abs() < 1e-9, "{calendar} {time}");
            }
        }
    }

    #[test]
    fn partial_times_contain_their_times() {
        let june = PartialTime::parse("2024-06").unwrap();
        assert!(june.contains(&time("2024-06-30T23:59:59.9")) && !june.contains(&time("2024-07-01")));
        let hour = PartialTime::parse("2024-06-01T12").unwrap();
        assert!(hour.contains(&time("2024-06-01 12:59:00")) && !hour.contains(&time("2024-06-01 13:00")));
        for wrong in
            ["", "850", "60", "12.5", "2024-13", "2024-06-01-01", "2024-06T12", "2024-06-01T25", "x", "t"]
        {
            assert_eq!(PartialTime::parse(wrong), None, "{wrong}");
        }
    }
}
