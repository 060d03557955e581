//! Human-readable sizes in bytes.

use tercet::core::num::counted;

const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/// A size with a binary unit: `2.6 MiB`.
#[expect(clippy::cast_precision_loss, reason = "one decimal is printed")]
pub(crate) fn human_size(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64;
    let mut unit = 0;
    // 1023.95 KiB would be printed as 1024.0 KiB.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A size with the exact number of bytes where it is rounded: `2.6 MiB (2726298 bytes)`.
pub(crate) fn size_and_bytes(bytes: u64) -> String {
    if bytes < 1024 { counted(bytes, "byte") } else { format!("{} ({bytes} bytes)", human_size(bytes)) }
}

/// A compression ratio: `4.02`.
#[expect(clippy::cast_precision_loss, reason = "two decimals are printed")]
pub(crate) fn ratio(before: u64, after: u64) -> String {
    if after == 0 { "–".to_owned() } else { format!("{:.2}", before as f64 / after as f64) }
}

/// Parses a size: `4096`, `64KiB`, `1.5 GiB`, `10MB`. `KB` is 1000 bytes, `K` and `KiB` are 1024.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "range checked before")]
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(format!("unknown size unit `{}`; use B, KiB, MiB, GiB or TiB", unit.trim())),
    };
    let wrong = || format!("invalid size `{text}`; write 4096, 64KiB or 1.5GiB");
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(|| format!("size `{text}` exceeds 2^64 bytes"));
    }
    let value: f64 = number.parse().map_err(|_| wrong())?;
    #[expect(clippy::cast_precision_loss, reason = "a fraction is not exact anyway")]
    let bytes = value * factor as f64;
    if (0.0..9.2e18).contains(&bytes) { Ok(bytes as u64) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        let printed = [0, 1023, 1024, 1_048_575, 1 << 20, 2_726_298, u64::MAX].map(human_size);
        assert_eq!(printed, ["0 B", "1023 B", "1.0 KiB", "1.0 MiB", "1.0 MiB", "2.6 MiB", "16384.0 PiB"]);
    }

    #[test]
    fn ratios_are_of_something() {
        assert_eq!([ratio(8, 2), ratio(1, 3), ratio(0, 5), ratio(5, 0)], ["4.00", "0.33", "0.00", "–"]);
    }

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("64KiB", 65_536),
            ("64 k", 65_536),
            ("1.5GiB", 3 << 29),
            ("10MB", 10_000_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "x", "-1", "1.2.3", "5 parsecs", "18446744073709551615k", "."] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
