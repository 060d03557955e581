//! Memory budget of an execution.

use tercet_core::limits::LimitExceeded;

use crate::query::document::ExecutionOptions;
use crate::wire::index::MemoryBudget;

/// Budget if the available memory is unknown.
const UNKNOWN_HOST: u64 = 256 << 20;
/// Default budget, in basis points (hundredths of a percent) of the available memory.
const DEFAULT_BPS: u64 = 2500;
/// Percentage of the available memory above which a selection is out of core.
const IN_CORE_PERCENT: u64 = 85;

/// Memory budget and available memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) budget: u64,
    /// Available bytes, if known.
    pub(crate) available: Option<u64>,
}

impl Memory {
    /// The first that is given: bytes of the query, bytes of the file, percent of the query, percent of the file, a
    /// quarter of the available memory.
    pub(crate) fn new(options: &ExecutionOptions, file: MemoryBudget, available: Option<u64>) -> Self {
        let percent = options.percent_bps.filter(|&bps| bps > 0).map(u64::from);
        let file_percent = Some(u64::from(file.percent_bps)).filter(|&bps| bps > 0);
        let bps = percent.or(file_percent).unwrap_or(DEFAULT_BPS);
        let of_host = |available: u64| {
            u64::try_from(u128::from(available) * u128::from(bps) / 10_000).unwrap_or(u64::MAX)
        };
        let fixed = options.memory_budget_bytes.or(Some(u64::from(file.bytes)).filter(|&bytes| bytes > 0));
        let budget = fixed.unwrap_or_else(|| available.map_or(UNKNOWN_HOST, of_host)).max(1);
        Self { budget, available }
    }

    /// Whether a selection of `bytes` bytes is larger than most of the memory.
    pub(crate) fn is_out_of_core(&self, bytes: u64) -> bool {
        self.available.is_some_and(|available| {
            u128::from(bytes) * 100 > u128::from(available) * u128::from(IN_CORE_PERCENT)
        })
    }
}

/// Results smaller than this are allocated without a check.
const SMALL_RESULT: u64 = 256 << 20;

/// Rejects a result larger than the available memory. Operating systems overcommit, and kill the process that uses the
/// memory.
pub(crate) fn check_available(bytes: u64) -> Result<(), LimitExceeded> {
    match available().filter(|_| bytes > SMALL_RESULT) {
        Some(available) if bytes > available => {
            Err(LimitExceeded { what: "the result", requested: bytes, allowed: available })
        }
        _ => Ok(()),
    }
}

/// Available memory, if known: `MemAvailable` of the kernel, or the remainder of the control group's limit if that is
/// less.
#[cfg(target_os = "linux")]
pub(crate) fn available() -> Option<u64> {
    let meminfo = text("/proc/meminfo")?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    let host = kib.saturating_mul(1024);
    let limit = text("/sys/fs/cgroup/memory.max").and_then(|text| text.trim().parse::<u64>().ok());
    let used = text("/sys/fs/cgroup/memory.current").and_then(|text| text.trim().parse::<u64>().ok());
    Some(match limit.zip(used) {
        Some((limit, used)) => host.min(limit.saturating_sub(used)),
        None => host,
    })
}

#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "the kernel's own files have no length to map")]
fn text(path: &str) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn available() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(bytes: Option<u64>, percent_bps: Option<u16>) -> ExecutionOptions {
        ExecutionOptions { memory_budget_bytes: bytes, percent_bps, ..ExecutionOptions::default() }
    }

    #[test]
    fn results_beyond_the_machine_are_refused() {
        assert!(check_available(SMALL_RESULT).is_ok());
        if available().is_some() {
            let error = check_available(u64::MAX).unwrap_err();
            assert_eq!((error.what, error.requested), ("the result", u64::MAX));
        }
    }

    #[test]
    fn the_first_given_value_is_used() {
        let budget = |query, file: (u16, u32), available| {
            Memory::new(&query, MemoryBudget { percent_bps: file.0, bytes: file.1 }, available).budget
        };
        let host = Some(1_000_000);
        assert_eq!(budget(options(Some(7), Some(100)), (200, 9), host), 7);
        assert_eq!(budget(options(None, Some(100)), (200, 9), host), 9);
        assert_eq!(budget(options(None, Some(100)), (200, 0), host), 10_000);
        assert_eq!(budget(options(None, Some(0)), (200, 0), host), 20_000);
        assert_eq!(budget(options(None, None), (0, 0), host), 250_000);
        assert_eq!(budget(options(None, None), (0, 0), None), UNKNOWN_HOST);
        assert_eq!(budget(options(None, None), (0, 0), Some(0)), 1);
    }
}
