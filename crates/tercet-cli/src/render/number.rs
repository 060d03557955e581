//! Human-readable numbers.

/// A number rounded to 6 decimals, without trailing zeros: `7.109375`.
///
/// Very small and very large numbers are written with an exponent.
pub(crate) fn rounded(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() {
        return special(value);
    }
    if !(5e-7..1e21).contains(&size) {
        return scientific(value, 6);
    }
    trimmed(format!("{value:.6}"))
}

/// A number with 7 significant digits, as many as an f32 has: `0.0001234568`.
pub(crate) fn significant(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() {
        return special(value);
    }
    if !(1e-4..1e15).contains(&size) {
        return scientific(value, 6);
    }
    #[expect(clippy::cast_possible_truncation, reason = "between -4 and 14")]
    let magnitude = size.log10().floor() as i32;
    let decimals = usize::try_from(6 - magnitude).unwrap_or(0);
    trimmed(format!("{value:.decimals$}"))
}

/// The shortest digits that parse to the same number.
pub(crate) fn exact(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return special(value);
    }
    if (1e-5..1e16).contains(&value.abs()) { value.to_string() } else { format!("{value:e}") }
}

fn special(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { value.to_string() }
}

fn scientific(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$e}");
    match text.split_once('e') {
        Some((digits, exponent)) => format!("{}e{exponent}", trimmed(digits.to_owned())),
        None => text,
    }
}

/// Removes trailing zeros after the decimal point.
fn trimmed(mut text: String) -> String {
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_decimals_or_an_exponent() {
        for (value, text) in [
            (7.109_375, "7.109375"),
            (5.617_187_5, "5.617188"),
            (6.0, "6"),
            (-0.0, "0"),
            (1_234_567.0, "1234567"),
            (19_659_237_165_008_207_872.0, "19659237165008207872"),
            (1e300, "1e300"),
            (1.25e-9, "1.25e-9"),
            (0.000_001, "0.000001"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(rounded(value), text);
        }
    }

    #[test]
    fn seven_significant_digits() {
        for (value, text) in [
            (283.291_666_666, "283.2917"),
            (0.000_123_456_789, "0.0001234568"),
            (123_456_789.0, "123456789"),
            (-1.0, "-1"),
            (1e-5, "1e-5"),
            (1.234_567_89e20, "1.234568e20"),
            (9.999_999_99, "10"),
        ] {
            assert_eq!(significant(value), text);
        }
    }

    #[test]
    fn exact_numbers_can_be_read_back() {
        for value in [0.1 + 0.2, 3.867_187_5, 1e16, 1.5e-7, 1e300, f64::MIN_POSITIVE, -2.0] {
            assert_eq!(exact(value).parse::<f64>().unwrap().to_bits(), value.to_bits(), "{}", exact(value));
        }
        assert_eq!(exact(3.867_187_5), "3.8671875");
        assert_eq!(exact(1e300), "1e300");
    }
}
