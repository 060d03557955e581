//! Parsers of option values.

use tercet::tet::{Compression, MemoryBudget, Rounding};

use crate::compression::split_level;
use crate::render::parse_size;

/// `KEY=VALUE`, cut at the first `=`.
pub(in super::super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE, like `units=K`".to_owned()),
    }
}

/// The value after the array name. Only for values without a colon.
fn unscoped(text: &str) -> &str {
    text.rsplit_once(':').map_or(text, |(_, value)| value)
}

/// Validates a chunk shape; it is parsed again when the array names are known.
pub(super) fn chunk(text: &str) -> Result<String, String> {
    parse_chunk(unscoped(text)).map(|_| text.to_owned())
}

pub(in super::super) fn parse_chunk(text: &str) -> Result<Vec<u64>, String> {
    let wrong =
        |part: &str| format!("invalid extent `{part}`; expected positive integers, like `1,721,1440`");
    text.split(',')
        .map(|part| part.trim().parse().ok().filter(|&extent| extent > 0).ok_or_else(|| wrong(part)))
        .collect()
}

/// Validates a codec; it is parsed again when the array names are known.
pub(super) fn compression(text: &str) -> Result<String, String> {
    // The name of the array may contain colons.
    let values = text.match_indices(':').map(|(at, _)| &text[at + 1..]);
    if values.into_iter().any(|value| parse_compression(value).is_ok()) {
        return Ok(text.to_owned());
    }
    parse_compression(text).map(|_| text.to_owned())
}

/// Parses a codec.
pub(in super::super) fn parse_compression(text: &str) -> Result<Compression, String> {
    match split_level(text.trim())? {
        ("none", None) => Ok(Compression::None),
        ("auto", None) => Ok(Compression::Auto),
        (codec @ ("none" | "auto"), Some(_)) => Err(format!("`{codec}` has no levels")),
        ("zstd", level) => Ok(Compression::Zstd { level: level.unwrap_or(DEFAULT_LEVEL) }),
        (codec, _) => {
            Err(format!("unknown codec `{codec}`; expected `none`, `zstd`, `zstd:LEVEL` or `auto`"))
        }
    }
}

/// Validates a maximum error; it is parsed again when the array names are known.
pub(super) fn max_error(text: &str) -> Result<String, String> {
    parse_max_error(unscoped(text)).map(|_| text.to_owned())
}

/// Parses a maximum error.
pub(in super::super) fn parse_max_error(text: &str) -> Result<Rounding, String> {
    match text.trim().parse::<f64>() {
        Ok(error) if error.is_finite() && error >= 0.0 => Ok(Rounding::MaxError(error)),
        _ => Err(format!("invalid maximum error `{text}`; expected a number, not negative, like `0.01`")),
    }
}

/// Validates a number of bits; it is parsed again when the array names are known.
pub(super) fn keep_bits(text: &str) -> Result<String, String> {
    parse_keep_bits(unscoped(text)).map(|_| text.to_owned())
}

/// Parses a number of mantissa bits.
pub(in super::super) fn parse_keep_bits(text: &str) -> Result<Rounding, String> {
    match text.trim().parse::<u32>() {
        Ok(bits) if bits <= 52 => Ok(Rounding::KeepBits(bits)),
        _ => Err(format!("invalid number of mantissa bits `{text}`; expected 0 to 52")),
    }
}

/// Validates a compression level; it is parsed again when the array names are known.
pub(super) fn zstd(text: &str) -> Result<String, String> {
    parse_zstd(unscoped(text)).map(|_| text.to_owned())
}

/// Parses a level, or `none`.
pub(super) fn parse_zstd(text: &str) -> Result<Compression, String> {
    match text.trim() {
        "none" => Ok(Compression::None),
        "" => Ok(Compression::Zstd { level: DEFAULT_LEVEL }),
        level => level
            .parse()
            .map(|level| Compression::Zstd { level })
            .map_err(|_| format!("invalid zstd level `{level}`; expected an integer or `none`")),
    }
}

const DEFAULT_LEVEL: i32 = 3;

/// A memory budget: bytes, or a percentage of memory.
pub(super) fn budget(text: &str) -> Result<MemoryBudget, String> {
    let mut budget = MemoryBudget::default();
    if let Some(percent) = text.trim().strip_suffix('%') {
        budget.percent_bps = parse_percent(percent.trim())
            .filter(|bps| (1..=10_000).contains(bps))
            .ok_or_else(|| format!("invalid percentage `{text}`; expected 0.01% to 100%"))?;
    } else {
        let bytes = parse_size(text)?;
        budget.bytes = u32::try_from(bytes).ok().filter(|&bytes| bytes > 0).ok_or_else(|| {
            format!("`{text}` is out of range: a file stores 1 byte to 4 GiB; use a percentage for more")
        })?;
    }
    Ok(budget)
}

/// Hundredths of a percent, exactly.
fn parse_percent(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 2 || !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let whole: u16 = whole.parse().ok()?;
    let fraction: u16 = format!("{fraction:0<2}").parse().ok()?;
    whole.checked_mul(100)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_bytes_or_percent() {
        let parsed = |text| budget(text).map(|budget| (budget.percent_bps, budget.bytes));
        assert_eq!(parsed("25%"), Ok((2500, 0)));
        assert_eq!(parsed("12.5 %"), Ok((1250, 0)));
        assert_eq!(parsed("0.01%"), Ok((1, 0)));
        assert_eq!(parsed("100%"), Ok((10_000, 0)));
        assert_eq!(parsed("512MiB"), Ok((0, 512 << 20)));
        for wrong in ["0", "0%", "100.01%", "4GiB", "-5%", "1.234%", "%", "x%", "1e2%", "."] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn codecs_have_levels() {
        let zstd = |level| Compression::Zstd { level };
        for (text, codec) in [
            ("none", Compression::None),
            ("auto", Compression::Auto),
            ("zstd", zstd(3)),
            ("zstd:9", zstd(9)),
            ("zstd:-5", zstd(-5)),
        ] {
            assert_eq!(parse_compression(text), Ok(codec));
            assert!(compression(text).is_ok() && compression(&format!("a:b:{text}")).is_ok());
        }
        for wrong in ["", "lz4", "none:3", "auto:3", "zstd:", "zstd:high", "3"] {
            assert!(parse_compression(wrong).is_err() && compression(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shapes_and_levels_are_checked_after_the_name() {
        assert!(chunk("64,64").is_ok() && chunk("a:b:1, 2").is_ok());
        assert!(chunk("0,1").is_err() && chunk("a:").is_err() && chunk("1,,2").is_err());
        assert!(zstd("3").is_ok() && zstd("a:-5").is_ok() && zstd("a:").is_ok() && zstd("a:none").is_ok());
        assert!(zstd("out.tet").is_err());
        assert_eq!(parse_zstd(""), Ok(Compression::Zstd { level: 3 }));
    }

    #[test]
    fn roundings_are_checked_after_the_name() {
        assert!(max_error("0.01").is_ok() && max_error("a:b:1e-3").is_ok() && max_error("0").is_ok());
        assert!(keep_bits("a:7").is_ok() && keep_bits("0").is_ok());
        for wrong in ["-1", "nan", "inf", "x", "", "a:"] {
            assert!(max_error(wrong).is_err(), "{wrong}");
        }
        for wrong in ["-1", "53", "7.5", "", "a:"] {
            assert!(keep_bits(wrong).is_err(), "{wrong}");
        }
    }
}
