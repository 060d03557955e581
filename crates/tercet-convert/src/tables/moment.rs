//! Dates and times of CSV fields and JSON strings: the ISO 8601 forms that databases and spreadsheets export.

/// A date or time, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// Days since 1970: `2024-06-21`.
    Date(i32),
    /// Microseconds since midnight: `12:34:56.789`.
    Time(i64),
    /// Microseconds since 1970 without time zone: `2024-06-21 12:34:56`.
    Local(i64),
    /// Microseconds since 1970 in UTC: `2024-06-21T12:34:56Z`.
    Utc(i64),
}

pub(super) const MICROS_OF_DAY: i64 = 86_400_000_000;

impl Moment {
    /// Parses a field; `None` for other text, and for dates and times that do not exist.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        match text.get(..5)? {
            [_, _, _, _, b'-'] => {}
            [_, _, b':', ..] => return time(text).map(Self::Time),
            _ => return None,
        }
        let day = date(text.get(..10)?)?;
        if text.len() == 10 {
            return Some(Self::Date(day));
        }
        let [b' ' | b'T', clock @ ..] = &text[10..] else { return None };
        let (clock, is_utc) = match clock {
            [clock @ .., b'Z'] | [clock @ .., b'+', b'0', b'0', b':', b'0', b'0'] => (clock, true),
            clock => (clock, false),
        };
        // Spreadsheets omit the seconds.
        let micros = if clock.len() == 5 {
            let mut whole = *b"00:00:00";
            whole[..5].copy_from_slice(clock);
            time(&whole)?
        } else {
            time(clock)?
        };
        let micros = i64::from(day) * MICROS_OF_DAY + micros;
        Some(if is_utc { Self::Utc(micros) } else { Self::Local(micros) })
    }
}

fn two(digits: &[u8]) -> Option<u32> {
    let [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] = digits else { return None };
    Some(u32::from(tens - b'0') * 10 + u32::from(ones - b'0'))
}

/// Days since 1970 of `YYYY-MM-DD` in the years 1 to 9999.
pub(super) fn date(text: &[u8]) -> Option<i32> {
    let [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1] = text else { return None };
    let year = two(&[*y0, *y1])? * 100 + two(&[*y2, *y3])?;
    let (month, day) = (two(&[*m0, *m1])?, two(&[*d0, *d1])?);
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if year == 0 || !(1..=days).contains(&day) {
        return None;
    }
    // Years start in March, so that a leap day is the last day.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    let since = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    Some(since.cast_signed() - 719_468)
}

/// Microseconds since midnight of `HH:MM:SS` with up to six decimals.
pub(super) fn time(text: &[u8]) -> Option<i64> {
    let ([h0, h1, b':', m0, m1, b':', s0, s1], rest) = text.split_first_chunk::<8>()? else { return None };
    let (hours, minutes, seconds) = (two(&[*h0, *h1])?, two(&[*m0, *m1])?, two(&[*s0, *s1])?);
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let fraction = match rest {
        [] => 0,
        [b'.', digits @ ..] if (1..=6).contains(&digits.len()) => {
            let mut micros = 0;
            for index in 0..6 {
                let digit = digits.get(index).copied().unwrap_or(b'0');
                if !digit.is_ascii_digit() {
                    return None;
                }
                micros = micros * 10 + i64::from(digit - b'0');
            }
            micros
        }
        _ => return None,
    };
    Some(i64::from((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + fraction)
}

#[cfg(test)]
mod tests {
    use jiff::civil::{Date, date as civil};

    use super::*;

    #[test]
    fn every_day_of_ten_millennia_is_that_of_the_library() {
        let epoch = civil(1970, 1, 1);
        let (mut day, mut number) = (civil(1, 1, 1), 0);
        while day < civil(9999, 12, 31) {
            if number % 7 == 0 || day.day() > 27 {
                let days = epoch.until(day).unwrap().get_days();
                assert_eq!(date(day.to_string().as_bytes()), Some(days), "{day}");
            }
            (day, number) = (day.tomorrow().unwrap(), number + 1);
        }
        for text in
            ["2023-02-29", "1900-02-29", "2024-00-10", "2024-13-01", "2024-04-31", "0000-01-01", "2024-1-01"]
        {
            assert_eq!(date(text.as_bytes()), None, "{text}");
            assert!(text.parse::<Date>().is_err() || text.starts_with("0000"), "{text}");
        }
    }

    #[test]
    fn times_have_up_to_six_decimals() {
        let day = 19_895 * MICROS_OF_DAY;
        let noon = 12 * 3_600_000_000;
        for (text, expected) in [
            ("2024-06-21", Some(Moment::Date(19_895))),
            ("12:00:00", Some(Moment::Time(noon))),
            ("12:00:00.5", Some(Moment::Time(noon + 500_000))),
            ("2024-06-21 12:00:00", Some(Moment::Local(day + noon))),
            ("2024-06-21 12:00", Some(Moment::Local(day + noon))),
            ("2024-06-21T12:00:00.000001Z", Some(Moment::Utc(day + noon + 1))),
            ("2024-06-21 12:00:00+00:00", Some(Moment::Utc(day + noon))),
            ("2024-06-21 12:00:00+02:00", None),
            ("2024-06-21T12:00:60Z", None),
            ("2024-06-21T24:00:00Z", None),
            ("2024-06-21 12:00:00.0000001", None),
            ("12:00", None),
            ("21/06/2024", None),
            ("2024-06-21x", None),
            ("", None),
        ] {
            assert_eq!(Moment::parse(text.as_bytes()), expected, "{text}");
        }
    }
}
