//! Resource limits of the sz3 decoder process.
#![cfg_attr(
    unix,
    expect(unsafe_code, reason = "limits of a process have no safe interface; the one place they are set")
)]

use std::io;
use std::time::Duration;

/// Memory for the program and its libraries.
#[cfg(unix)]
const ROOM: u64 = 1 << 30;
/// Maximum copies of the values in memory.
#[cfg(unix)]
const COPIES: u64 = 8;

/// Limits memory, CPU time and core dumps of this process.
#[cfg(unix)]
pub(super) fn set(len: usize, time: Duration) -> io::Result<()> {
    let memory = (len as u64).saturating_mul(COPIES).saturating_add(ROOM);
    let limits =
        [(libc::RLIMIT_AS, memory), (libc::RLIMIT_CPU, time.as_secs().max(1)), (libc::RLIMIT_CORE, 0)];
    for (what, most) in limits {
        #[allow(clippy::useless_conversion, reason = "the type is another one on some systems")]
        let most = libc::rlim_t::try_from(most).unwrap_or(libc::RLIM_INFINITY);
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the pointer is to a value of the right type that lives as long as the call.
        if unsafe { libc::getrlimit(what, &raw mut limit) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // Keep a stricter limit.
        limit.rlim_cur = most.min(limit.rlim_cur);
        limit.rlim_max = most.min(limit.rlim_max);
        // SAFETY: as above; the call only reads the value.
        if unsafe { libc::setrlimit(what, &raw const limit) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// No such limits on this platform; the parent still enforces the time limit.
#[cfg(not(unix))]
pub(super) fn set(_len: usize, _time: Duration) -> io::Result<()> {
    Ok(())
}
