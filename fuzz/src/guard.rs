//! Runs a target and saves its input after a panic, a hang or excessive memory use.

use std::fmt;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tercet_testkit::alloc::measure;

use crate::Target;

/// An input that takes longer hangs.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// Kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The target panicked; the message is on stderr.
    Panic,
    /// The target timed out.
    Hang,
    /// The target allocated too much memory.
    Memory {
        /// Peak bytes allocated.
        bytes: usize,
    },
}

/// A failing input.
#[derive(Debug)]
pub struct Crash {
    /// The target that failed.
    pub target: &'static str,
    /// The kind of failure.
    pub fault: ErrorKind,
    /// The path of the saved input.
    pub path: PathBuf,
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.fault {
            ErrorKind::Panic => write!(f, "{} panics on {path}", self.target),
            ErrorKind::Hang => write!(f, "{} hangs on {path}", self.target),
            ErrorKind::Memory { bytes } => write!(f, "{} allocates {bytes} bytes on {path}", self.target),
        }
    }
}

struct Running {
    target: &'static str,
    input: Vec<u8>,
    since: Instant,
}

/// Watchdog of running targets.
pub struct Guard {
    dir: PathBuf,
    running: Arc<Mutex<Option<Running>>>,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl Guard {
    /// Saves failing inputs in `directory`. After a hang `on_hang` is called from another thread; a hung target cannot be stopped, so
    /// it should end the process.
    pub fn new(dir: &Path, timeout: Duration, on_hang: impl Fn(&Crash) + Send + 'static) -> Self {
        let running = Arc::new(Mutex::new(None::<Running>));
        let guard = Self { dir: dir.to_owned(), running: Arc::clone(&running) };
        let dir = dir.to_owned();
        thread::spawn(move || {
            // Ends with the guard, whose half of the slot is then dropped.
            while Arc::strong_count(&running) > 1 {
                thread::sleep(timeout / 20);
                let hung = lock(&running).take_if(|run| run.since.elapsed() > timeout);
                if let Some(run) = hung {
                    let path = save(&dir, run.target, &run.input);
                    on_hang(&Crash { target: run.target, fault: ErrorKind::Hang, path });
                }
            }
        });
        guard
    }

    /// Runs one input to its end; a panic or too much memory is an error.
    pub fn run(&self, target: &Target, input: &[u8]) -> Result<(), Crash> {
        *lock(&self.running) =
            Some(Running { target: target.name, input: input.to_vec(), since: Instant::now() });
        let (outcome, allocated) = measure(|| catch_unwind(AssertUnwindSafe(|| (target.run)(input))));
        *lock(&self.running) = None;
        let bytes = allocated.peak_bytes.max(allocated.largest_bytes);
        let fault = if outcome.is_err() {
            ErrorKind::Panic
        } else if bytes > target.memory.saturating_add(input.len().saturating_mul(64)) {
            ErrorKind::Memory { bytes }
        } else {
            return Ok(());
        };
        Err(Crash { target: target.name, fault, path: save(&self.dir, target.name, input) })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Saves an input; if that fails, the path still names it.
fn save(dir: &Path, target: &str, input: &[u8]) -> PathBuf {
    let path = dir.join(format!("{target}-{:016x}", digest(input)));
    if let Err(error) = fs::create_dir_all(dir).and_then(|()| fs::write(&path, input)) {
        eprintln!("cannot save {}: {error}", path.display());
    }
    path
}

/// FNV-1a: a name for the input, equal for equal inputs.
fn digest(input: &[u8]) -> u64 {
    input
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("tercet-fuzz-{name}-{}", std::process::id())))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn faulty(input: &[u8]) {
        match input {
            b"panic" => panic!("on purpose"),
            b"hang" => thread::sleep(Duration::from_millis(400)),
            b"flood" => drop(std::hint::black_box(vec![0_u8; 1 << 22])),
            _ => {}
        }
    }

    const FAULTY: Target =
        Target { name: "faulty", corpus: "", run: faulty, recompute_checksums: None, memory: 1 << 21 };

    #[test]
    fn a_panic_saves_its_input() {
        let scratch = Scratch::new("panic");
        let guard = Guard::new(&scratch.0, TIMEOUT, |_| {});
        assert!(guard.run(&FAULTY, b"fine").is_ok());
        let crash = guard.run(&FAULTY, b"panic").unwrap_err();
        assert_eq!(crash.fault, ErrorKind::Panic);
        assert_eq!(fs::read(crash.path).unwrap(), b"panic");
    }

    #[test]
    fn excessive_memory_saves_its_input() {
        let scratch = Scratch::new("flood");
        let guard = Guard::new(&scratch.0, TIMEOUT, |_| {});
        let crash = guard.run(&FAULTY, b"flood").unwrap_err();
        assert!(matches!(crash.fault, ErrorKind::Memory { bytes } if bytes >= 1 << 22));
        assert_eq!(fs::read(crash.path).unwrap(), b"flood");
    }

    #[test]
    fn a_hang_is_reported() {
        let scratch = Scratch::new("hang");
        let (sender, receiver) = mpsc::channel();
        let guard = Guard::new(&scratch.0, Duration::from_millis(40), move |crash: &Crash| {
            let _ = sender.send((crash.fault, fs::read(&crash.path).unwrap()));
        });
        let _ = guard.run(&FAULTY, b"hang");
        assert_eq!(receiver.try_recv(), Ok((ErrorKind::Hang, b"hang".to_vec())));
    }
}
