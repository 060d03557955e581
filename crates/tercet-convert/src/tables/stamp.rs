//! Timestamps of a declared unit, stored as microseconds.

use tercet_tatami::logical_type::is_number;
use tercet_tatami::{Field, LogicalType, Scalar, Type};

use super::build::display;
use super::token::Token;

/// The nanoseconds of a timestamp unit, if annotated.
pub(super) fn unit(field: &Field, annotations: &[(String, String)]) -> Option<i64> {
    let key = LogicalType::key(&field.name);
    let (_, annotation) = annotations.iter().find(|(found, _)| *found == key)?;
    let inside = annotation.strip_prefix("timestamp[")?.strip_suffix(']')?;
    match inside.split(',').next()? {
        "s" => Some(1_000_000_000),
        "ms" => Some(1_000_000),
        "us" => Some(1_000),
        "ns" => Some(1),
        _ => None,
    }
}

/// Parses a timestamp: a number in the unit, or a time with at most its precision.
pub(super) fn stamp(
    kind: Type,
    logical_type: LogicalType,
    unit: i64,
    token: &Token<'_>,
) -> Result<i64, String> {
    let text: &str = match token {
        Token::Null => return Ok(0),
        Token::Number(text) | Token::Loose(text) => text,
        Token::Text(text) => text,
        token => return Err(format!("{} is not {logical_type}", display(token))),
    };
    let wrong =
        || format!("{} is not a valid {logical_type}, like {}", display(token), logical_type.example());
    if is_number(text) {
        let number: i64 = text.parse().map_err(|_| wrong())?;
        let nanos = i128::from(number) * i128::from(unit);
        if nanos % 1000 != 0 {
            return Err(format!("{} has a higher precision than microseconds", display(token)));
        }
        // Values outside the calendar range are printed as stored numbers; they are larger than any valid number of the unit.
        let is_stored = || jiff::Timestamp::from_microsecond(number).is_err() && is_whole(number, unit);
        return match i64::try_from(nanos / 1000) {
            Ok(micros) => Ok(micros),
            Err(_) if is_stored() => Ok(number),
            Err(_) => Err(wrong()),
        };
    }
    let Some(Scalar::Int64(micros)) = logical_type.read(kind, text) else { return Err(wrong()) };
    if !is_whole(micros, unit) {
        let name = if unit > 1_000_000 { "seconds" } else { "milliseconds" };
        return Err(format!("{} has a higher precision than {name}", display(token)));
    }
    Ok(micros)
}

/// Whether microseconds are a multiple of the unit.
fn is_whole(micros: i64, unit: i64) -> bool {
    i128::from(micros) * 1000 % i128::from(unit) == 0
}

#[cfg(test)]
mod tests {
    use tercet_tatami::Values;

    use super::super::build::{Builder, ValueParser};
    use super::*;

    #[test]
    fn timestamps_are_parsed_in_their_unit() {
        let field = Field::new("t", Type::TimestampMicros);
        let one = |annotation: &str, text: &'static str| {
            let annotations = [(LogicalType::key("t"), annotation.to_owned())];
            let parser = ValueParser::all(std::slice::from_ref(&field), &annotations)[0];
            let mut builder = Builder::new(field.clone(), parser);
            builder.push(Token::Loose(text)).map(|()| builder.take().values)
        };
        let micros = |value| Ok(Values::Int64(vec![value]));
        assert_eq!(one("timestamp[s]", "-2"), micros(-2_000_000));
        assert_eq!(one("timestamp[ms, UTC]", "2"), micros(2_000));
        assert_eq!(one("timestamp[us]", "2"), micros(2));
        assert_eq!(one("timestamp[s]", "9223372036854000000"), micros(9_223_372_036_854_000_000));
        assert_eq!(one("timestamp[ns]", "2000"), micros(2));
        assert_eq!(one("timestamp[s]", "1970-01-01T00:00:01"), micros(1_000_000));
        assert_eq!(one("timestamp[ns]", "1970-01-01T00:00:00.000001"), micros(1));
        for (annotation, text) in [
            ("timestamp[ns]", "2001"),
            ("timestamp[s]", "9223372036855"),
            ("timestamp[s]", "1.5"),
            ("timestamp[s]", "1970-01-01T00:00:01.5"),
            ("timestamp[ms]", "1970-01-01T00:00:01.0005"),
        ] {
            assert!(one(annotation, text).is_err(), "{annotation} {text}");
        }
    }
}
