//! Thread pools for [`ReadOptions::threads`](crate::ReadOptions::threads): [`install`]; the pool of a program:
//! [`start_global_pool`]; thread limits: [`can_start`].

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// The maximum number of threads per core; more are not faster. It also bounds the number of cached pools.
const MAX_THREADS_PER_CORE: usize = 4;

/// The pools by number of threads. A pool is kept until the process ends; its idle threads sleep.
static POOLS: Mutex<BTreeMap<usize, Arc<ThreadPool>>> = Mutex::new(BTreeMap::new());

/// Runs `work` so that its rayon operations use `threads` threads, and returns its result.
///
/// `None` runs `work` on the calling thread; its parallel parts use the current pool, which is rayon's global pool
/// unless the caller is inside another one. `Some(n)` runs `work` inside a pool of `n` threads, at most 4 per core.
/// There is one pool per number of threads in a process: all open files share it, and a call costs two thread switches,
/// not the start of a pool. Inside a pool of `n` threads, `work` runs on the calling thread.
///
/// If the system cannot start the threads, `work` runs on the calling thread alone. That thread then remains a pool of
/// one, because rayon cannot undo this.
///
/// Nested calls may use different numbers; the innermost one decides.
///
/// ```
/// use std::num::NonZeroUsize;
/// use tercet_core::threads::install;
///
/// assert_eq!(install(NonZeroUsize::new(3), rayon::current_num_threads), 3);
/// ```
pub fn install<R: Send>(threads: Option<NonZeroUsize>, work: impl FnOnce() -> R + Send) -> R {
    let Some(threads) = threads.map(clamp) else { return work() };
    // Outside every pool, `current_num_threads` would start the global one.
    if rayon::current_thread_index().is_some() && rayon::current_num_threads() == threads {
        return work();
    }
    match pool(threads) {
        Some(pool) => pool.install(work),
        None => on_this_thread(work),
    }
}

/// Starts rayon's global pool with this many threads; for programs. Does nothing if the pool exists.
///
/// If the system cannot start them (process limits), the calling thread alone is the pool. Rayon itself would fail, and
/// then panic in every later parallel operation, because it builds its global pool only once. So the threads are started
/// here first and handed over to rayon. Starting other threads as a test would not do: the limit also counts threads that
/// have not ended completely.
pub fn start_global_pool(threads: NonZeroUsize) {
    let threads = clamp(threads);
    let (sender, receiver) = mpsc::channel::<rayon::ThreadBuilder>();
    let receiver = Arc::new(Mutex::new(receiver));
    let started = (0..threads).try_for_each(|_| {
        let receiver = Arc::clone(&receiver);
        let run = move || {
            let thread = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
            // Without a sender there is no pool to run for.
            if let Ok(thread) = thread {
                thread.run();
            }
        };
        std::thread::Builder::new().spawn(run).map(drop)
    });
    let built = match started {
        Ok(()) => ThreadPoolBuilder::new()
            .num_threads(threads)
            .spawn_handler(|thread| sender.send(thread).map_err(|_| io::ErrorKind::BrokenPipe.into()))
            .build_global(),
        Err(_) => ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global(),
    };
    // The only error left is a pool that exists.
    drop(built);
}

/// Whether the system starts this many threads at the same time, in addition to the current ones.
///
/// Thread pools panic, or cannot be built again, where it does not: process limits, or no memory.
pub fn can_start(threads: usize) -> io::Result<()> {
    let barrier = Mutex::new(());
    let closed = barrier.lock();
    std::thread::scope(|scope| {
        let wait = || drop(barrier.lock());
        let all =
            (0..threads).try_for_each(|_| std::thread::Builder::new().spawn_scoped(scope, wait).map(drop));
        drop(closed);
        all
    })
}

fn clamp(threads: NonZeroUsize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    threads.get().min(cores.saturating_mul(MAX_THREADS_PER_CORE))
}

/// The pool of this many threads. `None` if they cannot be started; the next call tries again.
fn pool(threads: usize) -> Option<Arc<ThreadPool>> {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pool) = pools.get(&threads) {
        return Some(Arc::clone(pool));
    }
    let name = move |index| format!("tercet-{threads}-{index}");
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build().ok()?);
    pools.insert(threads, Arc::clone(&pool));
    Some(pool)
}

/// Runs `work` in a pool that consists of the calling thread, so that its parallel parts start no threads either.
fn on_this_thread<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    match ThreadPoolBuilder::new().num_threads(1).use_current_thread().build() {
        Ok(pool) => pool.install(work),
        // The thread belongs to a pool already: the one that cannot be replaced.
        Err(_) => work(),
    }
}

#[cfg(test)]
mod tests {
    use rayon::prelude::*;

    use super::*;

    fn current(threads: usize) -> usize {
        install(NonZeroUsize::new(threads), rayon::current_num_threads)
    }

    #[test]
    fn the_global_pool_is_started_once() {
        // Another test of this process may have started it with another number of threads.
        start_global_pool(NonZeroUsize::new(2).unwrap());
        let size = std::thread::spawn(rayon::current_num_threads).join().unwrap();
        start_global_pool(NonZeroUsize::new(3).unwrap());
        assert_eq!(std::thread::spawn(rayon::current_num_threads).join().unwrap(), size);
        assert_eq!((0..1000u64).into_par_iter().sum::<u64>(), 499_500);
    }

    #[test]
    fn threads_can_be_started_here() {
        assert!(super::can_start(0).is_ok() && super::can_start(3).is_ok());
    }

    #[test]
    fn pools_have_the_requested_size() {
        assert_eq!((current(1), current(2), current(3)), (1, 2, 3));
        let used = install(NonZeroUsize::new(1), || {
            let mut threads: Vec<_> =
                (0..64).into_par_iter().map(|_| rayon::current_thread_index()).collect();
            threads.dedup();
            threads
        });
        assert_eq!(used, [Some(0)]);
    }

    #[test]
    fn the_number_of_threads_is_bounded() {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        assert_eq!(clamp(NonZeroUsize::MAX), cores * MAX_THREADS_PER_CORE);
        assert_eq!(clamp(NonZeroUsize::MIN), 1);
    }

    #[test]
    fn pools_are_shared() {
        let (first, second) = (pool(2).unwrap(), pool(2).unwrap());
        assert!(Arc::ptr_eq(&first, &second));
    }

    #[test]
    fn the_innermost_call_decides() {
        let nested = install(NonZeroUsize::new(2), || {
            (current(3), current(2), install(None, rayon::current_num_threads))
        });
        assert_eq!(nested, (3, 2, 2));
    }

    #[test]
    fn none_runs_on_the_calling_thread() {
        let caller = std::thread::current().id();
        assert_eq!(install(None, || std::thread::current().id()), caller);
    }

    #[test]
    fn the_fallback_starts_no_thread() {
        let (caller, sizes) = std::thread::spawn(|| {
            let caller = std::thread::current().id();
            let run = || on_this_thread(|| (std::thread::current().id(), rayon::current_num_threads()));
            // The second call finds the thread in a pool.
            (caller, [run(), run()])
        })
        .join()
        .unwrap();
        assert_eq!(sizes, [(caller, 1), (caller, 1)]);
    }
}
