//! Formatting and parsing of logical types.

use std::io::Write as _;

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Time};
use jiff::fmt::temporal::Pieces;

use super::{Int256, LogicalType, Unit};
use crate::scalar::Scalar;
use crate::schema::Type;

const MILLIS_OF_DAY: i64 = 86_400_000;
const MICROS_OF_DAY: i64 = 86_400_000_000;
const NANOS_OF_DAY: i64 = 86_400_000_000_000;
/// More trailing zeros than this exceed any decimal.
const MAX_TRAILING_ZEROS: i64 = 100;

/// A stored value.
#[derive(Clone, Copy, Debug)]
pub enum StoredValue<'a> {
    /// An integer.
    Number(i64),
    /// Bytes.
    Bytes(&'a [u8]),
}

/// The position of a literal among integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LiteralPosition {
    /// Equal to this value.
    At(Int256),
    /// Between this value and the next.
    After(Int256),
}

impl LogicalType {
    /// A scalar as text; `None` for values without a representation, which are printed as they are stored.
    pub fn format(self, value: &Scalar) -> Option<String> {
        let stored = match value {
            Scalar::Int8(value) => StoredValue::Number((*value).into()),
            Scalar::Int16(value) => StoredValue::Number((*value).into()),
            Scalar::Int32(value) => StoredValue::Number((*value).into()),
            Scalar::Int64(value) => StoredValue::Number(*value),
            Scalar::Bytes(value) => StoredValue::Bytes(value),
            _ => return None,
        };
        let mut text = Vec::new();
        self.write(stored, &mut text).then(|| String::from_utf8_lossy(&text).into_owned())
    }

    /// Appends the formatted value. Values without a representation, such as timestamps after the year 9999, append nothing;
    /// the stored number is printed instead.
    pub fn write(self, value: StoredValue<'_>, out: &mut Vec<u8>) -> bool {
        let text = match (self, value) {
            (Self::Utf8 | Self::Json | Self::Enum, StoredValue::Bytes(bytes)) => {
                out.extend_from_slice(bytes);
                return true;
            }
            (Self::Uuid, StoredValue::Bytes(bytes)) => return write_uuid(bytes, out),
            (Self::Decimal { scale, .. }, StoredValue::Number(number)) => {
                let mut room = [0; 20];
                decimal(number < 0, digits_of(number.unsigned_abs(), &mut room), scale, out);
                return true;
            }
            (Self::Decimal { scale, width, .. }, StoredValue::Bytes(bytes))
                if bytes.len() == usize::from(width) =>
            {
                let Some(number) = Int256::from_bytes(bytes) else { return false };
                decimal(number.is_negative(), number.digits().as_bytes(), scale, out);
                return true;
            }
            (Self::Date32, StoredValue::Number(days)) => return write_day(days, out),
            (Self::Date64, StoredValue::Number(millis)) if millis % MILLIS_OF_DAY == 0 => {
                return write_day(millis / MILLIS_OF_DAY, out);
            }
            (Self::Time(unit), StoredValue::Number(count)) => time(count, unit).map(|time| time.to_string()),
            (Self::Duration(unit), StoredValue::Number(count)) => {
                duration(count, unit, out);
                return true;
            }
            (Self::Timestamp { .. }, StoredValue::Number(micros)) => return write_instant(micros, "Z", out),
            (Self::LocalTimestamp(_), StoredValue::Number(micros)) => return write_instant(micros, "", out),
            _ => None,
        };
        text.inspect(|text| out.extend_from_slice(text.as_bytes())).is_some()
    }

    /// Parses a literal to the stored value of a column type; `None` if it is not exact.
    pub fn read(self, kind: Type, text: &str) -> Option<Scalar> {
        match self {
            Self::Utf8 | Self::Enum => return Some(Scalar::Bytes(text.as_bytes().to_vec())),
            Self::Json => return is_json(text.as_bytes()).then(|| Scalar::Bytes(text.as_bytes().to_vec())),
            Self::Uuid => return read_uuid(text).map(|bytes| Scalar::Bytes(bytes.to_vec())),
            _ => {}
        }
        match self.position(text)? {
            LiteralPosition::At(number) if self.has_digits_for(number) => self.stored(kind, number),
            _ => None,
        }
    }

    /// Whether a decimal fits the precision of its type; always true for other types.
    pub(crate) fn has_digits_for(self, number: Int256) -> bool {
        match self {
            Self::Decimal { precision, .. } => number.digits().len() <= precision.into(),
            _ => true,
        }
    }

    /// An integer as a stored value of a column type, if it is in range.
    pub(crate) fn stored(self, kind: Type, number: Int256) -> Option<Scalar> {
        Some(match (kind, self) {
            (Type::Int32, _) => Scalar::Int32(i32::try_from(number.to_i64()?).ok()?),
            (Type::Int64 | Type::TimestampMicros, _) => Scalar::Int64(number.to_i64()?),
            (_, Self::Decimal { width, .. }) => Scalar::Bytes(number.to_bytes(width.into())?),
            _ => return None,
        })
    }

    /// The position of a literal among stored values. Numeric literals of date and time types are stored values.
    pub(crate) fn position(self, text: &str) -> Option<LiteralPosition> {
        match self {
            Self::Utf8 | Self::Json | Self::Enum | Self::Uuid => None,
            Self::Decimal { scale, .. } => number(text, scale),
            _ if is_number(text) => match number(text, 0)? {
                position @ LiteralPosition::At(_) => Some(position),
                LiteralPosition::After(_) => None,
            },
            Self::Date32 => Some(among(read_day(text)?.into(), 1)),
            Self::Date64 => Some(among(i128::from(read_day(text)?) * i128::from(MILLIS_OF_DAY), 1)),
            Self::Time(unit) => {
                let is_time = |byte: u8| byte.is_ascii_digit() || matches!(byte, b':' | b'.');
                let time: Time =
                    (text.bytes().all(is_time) && !has_leap_second(text)).then(|| text.parse().ok())??;
                let nanos = time.duration_since(Time::midnight()).as_nanos();
                Some(among(nanos, unit.nanos()))
            }
            Self::Duration(unit) => {
                // The parser also accepts other notations, with years and months.
                let is_iso = text.trim_start_matches(['-', '+']).starts_with('P');
                let duration: SignedDuration = is_iso.then(|| text.parse().ok())??;
                Some(among(duration.as_nanos(), unit.nanos()))
            }
            Self::Timestamp { .. } => {
                let pieces = (!has_leap_second(text)).then(|| Pieces::parse(text).ok())??;
                let offset = i128::from(pieces.to_numeric_offset()?.seconds());
                let nanos =
                    nanos_of(pieces.date(), pieces.time()?)? - offset * i128::from(Unit::Seconds.nanos());
                Some(among(nanos, Unit::Micros.nanos()))
            }
            Self::LocalTimestamp(_) => {
                // The parser would ignore an offset.
                let (_, clock) = text.split_once(['T', 't', ' ']).unwrap_or((text, ""));
                let is_plain = !clock.contains(['-', '+', '[']) && !has_leap_second(text);
                let time: DateTime = is_plain.then(|| text.parse().ok())??;
                Some(among(nanos_of(time.date(), time.time())?, Unit::Micros.nanos()))
            }
        }
    }
}

/// Whether bytes are one JSON value.
pub fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

/// Appends a UUID: hexadecimal digits in groups of 8, 4, 4, 4 and 12.
fn write_uuid(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    if bytes.len() != 16 {
        return false;
    }
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
    true
}

/// Parses a UUID with or without hyphens.
fn read_uuid(text: &str) -> Option<[u8; 16]> {
    let text = text.as_bytes();
    let is_hyphenated = text.len() == 36 && [8, 13, 18, 23].iter().all(|at| text[*at] == b'-');
    if !is_hyphenated && text.len() != 32 {
        return None;
    }
    let mut digits = text.iter().filter(|byte| !is_hyphenated || **byte != b'-');
    let mut next = || char::from(*digits.next()?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut out = [0; 16];
    for byte in &mut out {
        *byte = next()? << 4 | next()?;
    }
    // Hyphens elsewhere leave digits over or are none.
    digits.next().is_none().then_some(out)
}

/// Nanoseconds since 1970.
fn nanos_of(date: Date, time: Time) -> Option<i128> {
    let days = i128::from(EPOCH.until(date).ok()?.get_days());
    Some(days * i128::from(NANOS_OF_DAY) + time.duration_since(Time::midnight()).as_nanos())
}

/// Whether a time has a leap second, which the parser would read as 59.
fn has_leap_second(text: &str) -> bool {
    let clock = text.split_once(['T', 't', ' ']).map_or(text, |(_, clock)| clock);
    let mut digits = clock.bytes().filter(u8::is_ascii_digit).skip(4);
    digits.next() == Some(b'6') && digits.next() == Some(b'0')
}

/// The position of a count of a finer unit among multiples of a coarser unit.
fn among(count: i128, per_unit: i64) -> LiteralPosition {
    let per_unit = i128::from(per_unit);
    let floor = Int256::from(count.div_euclid(per_unit));
    if count.rem_euclid(per_unit) == 0 { LiteralPosition::At(floor) } else { LiteralPosition::After(floor) }
}

/// Whether a string is a JSON number.
pub fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole.len() == 1 || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}

/// The position of a scaled number among integers; `None` if it exceeds any decimal.
fn number(text: &str, scale: i8) -> Option<LiteralPosition> {
    if !is_number(text) {
        return None;
    }
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    if digits.iter().all(|digit| *digit == b'0') {
        return Some(LiteralPosition::At(Int256::default()));
    }
    let exponent: i64 = exponent.parse().ok()?;
    let fraction_digits = i64::try_from(fraction.len()).ok()?;
    let moved = exponent.checked_sub(fraction_digits)?.checked_add(scale.into())?;
    if moved >= 0 {
        let zeros = usize::try_from(moved.min(MAX_TRAILING_ZEROS)).ok()?;
        let all = digits.iter().copied().chain(std::iter::repeat_n(b'0', zeros));
        return Int256::from_digits(negative, all).map(LiteralPosition::At);
    }
    let cut = usize::try_from(moved.unsigned_abs()).map_or(0, |moved| digits.len().saturating_sub(moved));
    let floor = Int256::from_digits(negative, digits[..cut].iter().copied())?;
    if digits[cut..].iter().all(|digit| *digit == b'0') {
        return Some(LiteralPosition::At(floor));
    }
    Some(LiteralPosition::After(if negative { floor.before()? } else { floor }))
}

/// Formats a number into a buffer of 20 digits.
fn digits_of(mut number: u64, room: &mut [u8; 20]) -> &[u8] {
    let mut start = room.len();
    loop {
        start -= 1;
        room[start] = b'0' + (number % 10).to_le_bytes()[0];
        number /= 10;
        if number == 0 {
            return &room[start..];
        }
    }
}

/// Appends a decimal from the digits of its unscaled integer.
fn decimal(negative: bool, digits: &[u8], scale: i8, out: &mut Vec<u8>) {
    if negative {
        out.push(b'-');
    }
    let Ok(fraction_digits) = usize::try_from(scale) else {
        out.extend_from_slice(digits);
        if digits != b"0" {
            out.extend(std::iter::repeat_n(b'0', scale.unsigned_abs().into()));
        }
        return;
    };
    let whole = digits.len().saturating_sub(fraction_digits);
    out.extend_from_slice(if whole == 0 { b"0" } else { &digits[..whole] });
    if fraction_digits > 0 {
        out.push(b'.');
        out.extend(std::iter::repeat_n(b'0', fraction_digits.saturating_sub(digits.len())));
        out.extend_from_slice(&digits[whole..]);
    }
}

/// Appends a date. Four-digit years are formatted here, ten times as fast as by the library.
fn write_day(days: i64, out: &mut Vec<u8>) -> bool {
    let Some((year, month, day)) = civil_from_days(days) else {
        let text = day(days).map(|date| date.to_string());
        return text.inspect(|text| out.extend_from_slice(text.as_bytes())).is_some();
    };
    let digit = |number: u32| b'0' + (number % 10).to_le_bytes()[0];
    out.extend_from_slice(&[
        digit(year / 1000),
        digit(year / 100),
        digit(year / 10),
        digit(year),
        b'-',
        digit(month / 10),
        digit(month),
        b'-',
        digit(day / 10),
        digit(day),
    ]);
    true
}

/// Year, month and day of a day in the years 0 to 9999. Years start in March, so that a leap day is the last day.
fn civil_from_days(days: i64) -> Option<(u32, u32, u32)> {
    // Days since 1 March of year 0; the library handles January and February of that year.
    let days = u32::try_from(days.checked_add(719_468)?).ok()?;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era.checked_mul(400)? + u32::from(month <= 2);
    (year <= 9999).then_some((year, month, day))
}

const EPOCH: Date = Date::constant(1970, 1, 1);

fn day(days: i64) -> Option<Date> {
    let span = jiff::Span::new().try_days(days).ok()?;
    EPOCH.checked_add(span).ok()
}

fn read_day(text: &str) -> Option<i32> {
    let date: Date = text.parse().ok()?;
    // The parser also accepts a date followed by a time.
    (date.to_string() == text).then(|| EPOCH.until(date).ok()).flatten().map(|span| span.get_days())
}

fn time(count: i64, unit: Unit) -> Option<Time> {
    let nanos = count.checked_mul(unit.nanos()).filter(|nanos| (0..NANOS_OF_DAY).contains(nanos))?;
    Time::midnight().checked_add(SignedDuration::from_nanos(nanos)).ok()
}

/// `PT90.5S`: seconds only, without minutes and hours.
fn duration(count: i64, unit: Unit, out: &mut Vec<u8>) {
    let per_second = Unit::Seconds.nanos() / unit.nanos();
    let (sign, count) = (if count < 0 { "-" } else { "" }, count.unsigned_abs());
    let per_second = per_second.unsigned_abs();
    let (seconds, rest) = (count / per_second, count % per_second);
    let nanos = rest * unit.nanos().unsigned_abs();
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{sign}PT{seconds}");
    if nanos > 0 {
        let digits = format!("{nanos:09}");
        let _ = write!(out, ".{}", digits.trim_end_matches('0'));
    }
    out.push(b'S');
}

/// Appends a timestamp; nothing outside the calendar range.
fn write_instant(micros: i64, zone: &str, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    if !write_day(micros.div_euclid(MICROS_OF_DAY), out) {
        return false;
    }
    let micros = micros.rem_euclid(MICROS_OF_DAY);
    let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    // Writing to a Vec cannot fail.
    let _ = write!(out, "T{hours:02}:{minutes:02}:{seconds:02}");
    if micros > 0 {
        let _ = write!(out, ".{micros:06}");
        let trimmed = out[start..].iter().rev().take_while(|byte| **byte == b'0').count();
        out.truncate(out.len() - trimmed);
    }
    out.extend_from_slice(zone.as_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn display(logical_type: LogicalType, value: i64) -> Option<String> {
        let mut out = Vec::new();
        logical_type.write(StoredValue::Number(value), &mut out).then(|| String::from_utf8(out).unwrap())
    }

    const fn cents(scale: i8) -> LogicalType {
        LogicalType::Decimal { precision: 18, scale, width: 16 }
    }

    #[test]
    fn values_are_formatted_by_logical_type() {
        for (logical_type, value, expected) in [
            (cents(2), 1250, "12.50"),
            (cents(2), -5, "-0.05"),
            (cents(0), 7, "7"),
            (cents(3), 0, "0.000"),
            (cents(-3), 12, "12000"),
            (cents(-3), 0, "0"),
            (LogicalType::Date32, 18_262, "2020-01-01"),
            (LogicalType::Date32, -1, "1969-12-31"),
            (LogicalType::Date64, 86_400_000, "1970-01-02"),
            (LogicalType::Time(Unit::Millis), 45_296_789, "12:34:56.789"),
            (LogicalType::Time(Unit::Seconds), 0, "00:00:00"),
            (LogicalType::Duration(Unit::Millis), -1500, "-PT1.5S"),
            (LogicalType::Duration(Unit::Nanos), 1, "PT0.000000001S"),
            (LogicalType::Duration(Unit::Seconds), i64::MIN, "-PT9223372036854775808S"),
            (LogicalType::UTC, 1_577_836_800_500_000, "2020-01-01T00:00:00.5Z"),
            (LogicalType::LocalTimestamp(Unit::Micros), 1_577_836_800_000_000, "2020-01-01T00:00:00"),
            (LogicalType::LocalTimestamp(Unit::Micros), -1, "1969-12-31T23:59:59.999999"),
            (LogicalType::UTC, 253_402_300_799_000_000, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(display(logical_type, value).as_deref(), Some(expected));
            if value != i64::MIN {
                assert_eq!(
                    logical_type.read(Type::Int64, expected),
                    Some(Scalar::Int64(value)),
                    "{expected}"
                );
            }
        }
        for (logical_type, value) in [
            (LogicalType::Date32, i64::from(i32::MAX)),
            (LogicalType::Date64, 1),
            (LogicalType::Time(Unit::Seconds), 86_400),
            (LogicalType::Time(Unit::Seconds), -1),
            (LogicalType::UTC, i64::MAX),
            (LogicalType::LocalTimestamp(Unit::Micros), i64::MIN),
        ] {
            assert_eq!(display(logical_type, value), None, "{logical_type:?}");
            assert_eq!(logical_type.read(Type::Int64, &value.to_string()), Some(Scalar::Int64(value)));
        }
    }

    #[test]
    fn uuids_are_hexadecimal_and_json_is_checked() {
        let text = "00112233-4455-6677-8899-aabbccddeeff";
        let stored = Scalar::Bytes((0..16).map(|byte| byte * 0x11).collect());
        assert_eq!(LogicalType::Uuid.format(&stored).as_deref(), Some(text));
        for text in [text, "00112233-4455-6677-8899-AABBCCDDEEFF", "00112233445566778899aabbccddeeff"] {
            assert_eq!(LogicalType::Uuid.read(Type::Bytes, text), Some(stored.clone()), "{text}");
        }
        for text in [
            "",
            "00112233-4455-6677-8899-aabbccddeef",
            "00112233-4455-6677-8899-aabbccddeefg",
            "0011223344556677-8899-aabb-ccddeeff--",
            "0011223-34455-6677-8899-aabbccddeeff",
            "00112233-4455-6677-8899-aabbccdde-ff",
            "{00112233445566778899aabbccddeeff}",
        ] {
            assert_eq!(LogicalType::Uuid.read(Type::Bytes, text), None, "{text}");
        }
        assert_eq!(LogicalType::Uuid.format(&Scalar::Bytes(vec![0; 15])), None);
        let json = Scalar::Bytes(br#"{"a": [1]}"#.to_vec());
        assert_eq!(LogicalType::Json.read(Type::String, r#"{"a": [1]}"#), Some(json));
        for text in ["", "{", "a", "1 2", "{\"a\":1}}"] {
            assert_eq!(LogicalType::Json.read(Type::String, text), None, "{text}");
        }
    }

    #[test]
    fn dates_equal_the_calendar_library() {
        let ends =
            [i64::from(i32::MIN), -719_529, -719_528, -719_469, -719_468, 2_932_896, 2_932_897, i64::MAX];
        for days in (-800_000..3_000_000).step_by(17).chain(ends) {
            let mut out = Vec::new();
            let formatted = write_day(days, &mut out).then(|| String::from_utf8(out).unwrap());
            assert_eq!(formatted, day(days).map(|date| date.to_string()), "{days}");
        }
    }

    #[test]
    fn wide_decimals_keep_every_digit() {
        let logical_type = LogicalType::Decimal { precision: 38, scale: 10, width: 16 };
        for value in [0, 1, -1, i128::MAX / 10, -99_999_999_999_999_999_999_999_999_999_999_999_999] {
            let mut out = Vec::new();
            assert!(logical_type.write(StoredValue::Bytes(&value.to_be_bytes()), &mut out));
            let text = String::from_utf8(out).unwrap();
            let expected = Scalar::Bytes(value.to_be_bytes().to_vec());
            assert_eq!(logical_type.read(Type::Bytes, &text), Some(expected), "{text}");
        }
        assert!(!logical_type.write(StoredValue::Bytes(b"short"), &mut Vec::new()));
        assert_eq!(logical_type.read(Type::Bytes, &"9".repeat(29)), None, "too many digits");
    }

    #[test]
    fn numbers_follow_json() {
        for text in ["0", "-0", "1", "-12", "0.5", "1e5", "1E-5", "10.25e+3"] {
            assert!(is_number(text), "{text}");
        }
        for text in
            ["", "-", "01", "+1", ".5", "1.", "1e", "1e+", "0x1", "1_000", "NaN", "inf", " 1", "--1", "١"]
        {
            assert!(!is_number(text), "{text}");
        }
    }

    #[test]
    fn literals_are_located_among_stored_values() {
        let at = |value: i128| Some(LiteralPosition::At(value.into()));
        let after = |value: i128| Some(LiteralPosition::After(value.into()));
        for (text, scale, expected) in [
            ("12.5", 2, at(1250)),
            ("12.50000", 2, at(1250)),
            ("12.345", 2, after(1234)),
            ("-12.345", 2, after(-1235)),
            ("-0.001", 2, after(-1)),
            ("0.001", 2, after(0)),
            ("1.25e1", 2, at(1250)),
            ("1250e-2", 2, at(1250)),
            ("1e-400", 2, after(0)),
            ("0e99999999999999999999", 2, at(0)),
            ("1e400", 2, None),
            ("15000", -3, at(15)),
            ("15001", -3, after(15)),
            ("01", 0, None),
            ("1.", 0, None),
            ("x", 0, None),
        ] {
            assert_eq!(cents(scale).position(text), expected, "{text}");
        }
        assert_eq!(LogicalType::Date32.position("2020-01-01"), at(18_262));
        assert_eq!(LogicalType::Date32.position("2020-01-01T12:00:00"), None);
        assert_eq!(LogicalType::Date32.position("1.5"), None);
        assert_eq!(LogicalType::UTC.position("1970-01-01T00:00:00.0000015Z"), after(1));
        assert_eq!(LogicalType::UTC.position("1970-01-01T00:00:00"), None);
        assert_eq!(LogicalType::LocalTimestamp(Unit::Micros).position("1970-01-01T00:00:01"), at(1_000_000));
        assert_eq!(LogicalType::UTC.position("1970-01-01T02:00:01+02:00"), at(1_000_000));
        assert_eq!(LogicalType::UTC.position("9999-12-31T23:59:59.999999Z"), at(253_402_300_799_999_999));
        for leap in ["2016-12-31T23:59:60Z", "2016-12-31T235960Z", "2016-12-31 23:59:60.5Z"] {
            assert_eq!(LogicalType::UTC.position(leap), None, "{leap}");
        }
        assert_eq!(LogicalType::LocalTimestamp(Unit::Micros).position("2016-12-31T23:59:60"), None);
        assert_eq!(LogicalType::Time(Unit::Seconds).position("12:00:60"), None);
        assert_eq!(LogicalType::LocalTimestamp(Unit::Micros).position("1970-01-01T00:00:01+02:00"), None);
        assert_eq!(LogicalType::LocalTimestamp(Unit::Micros).position("1970-01-01T00:00:01Z"), None);
        assert_eq!(LogicalType::Time(Unit::Seconds).position("00:00:01.5"), after(1));
        assert_eq!(LogicalType::Duration(Unit::Seconds).position("PT1M0.5S"), after(60));
        assert_eq!(LogicalType::Duration(Unit::Seconds).position("1 minute"), None);
    }
}
