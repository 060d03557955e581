//! The time that writers record.

/// The current time in Unix seconds, or `SOURCE_DATE_EPOCH` if that is a number.
pub fn unix_seconds() -> u64 {
    source_date_epoch().unwrap_or_else(|| now().as_secs())
}

/// The current time in Unix milliseconds, or that of `SOURCE_DATE_EPOCH` if that is a number.
pub fn unix_millis() -> u64 {
    let fixed = source_date_epoch().map(|seconds| seconds.saturating_mul(1000));
    fixed.unwrap_or_else(|| u64::try_from(now().as_millis()).unwrap_or(u64::MAX))
}

/// The time that a reproducible build sets.
pub fn source_date_epoch() -> Option<u64> {
    std::env::var("SOURCE_DATE_EPOCH").ok()?.trim().parse().ok()
}

#[cfg(not(target_arch = "wasm32"))]
fn now() -> std::time::Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

#[cfg(target_arch = "wasm32")]
fn now() -> std::time::Duration {
    std::time::Duration::ZERO // no clock without a host
}
