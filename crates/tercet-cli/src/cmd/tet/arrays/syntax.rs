//! Parsers of option values.

use tercet::tet::MemoryBudget;

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

pub(super) fn parse_chunk(text: &str) -> Result<Vec<u64>, String> {
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

/// The zstd level of a codec, or `None` for no compression.
pub(super) fn parse_compression(text: &str) -> Result<Option<i32>, String> {
    match split_level(text.trim())? {
        ("none", None) => Ok(None),
        ("none", Some(_)) => Err("`none` has no levels".to_owned()),
        ("zstd", level) => Ok(Some(level.unwrap_or(DEFAULT_LEVEL))),
        (codec, _) => Err(format!("unknown codec `{codec}`; expected `none`, `zstd` or `zstd:LEVEL`")),
    }
}

/// Validates a compression level; it is parsed again when the array names are known.
pub(super) fn zstd(text: &str) -> Result<String, String> {
    parse_zstd(unscoped(text)).map(|_| text.to_owned())
}

/// A level, or `None` for no compression.
pub(super) fn parse_zstd(text: &str) -> Result<Option<i32>, String> {
    match text.trim() {
        "none" => Ok(None),
        "" => Ok(Some(DEFAULT_LEVEL)),
        level => level
            .parse()
            .map(Some)
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
        for (text, level) in [("none", None), ("zstd", Some(3)), ("zstd:9", Some(9)), ("zstd:-5", Some(-5))] {
            assert_eq!(parse_compression(text), Ok(level));
            assert!(compression(text).is_ok() && compression(&format!("a:b:{text}")).is_ok());
        }
        for wrong in ["", "lz4", "none:3", "zstd:", "zstd:high", "3"] {
            assert!(parse_compression(wrong).is_err() && compression(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shapes_and_levels_are_checked_after_the_name() {
        assert!(chunk("64,64").is_ok() && chunk("a:b:1, 2").is_ok());
        assert!(chunk("0,1").is_err() && chunk("a:").is_err() && chunk("1,,2").is_err());
        assert!(zstd("3").is_ok() && zstd("a:-5").is_ok() && zstd("a:").is_ok() && zstd("a:none").is_ok());
        assert!(zstd("out.tet").is_err());
        assert_eq!(parse_zstd(""), Ok(Some(3)));
    }
}
