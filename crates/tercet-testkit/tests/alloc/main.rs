//! Tests of the counting allocator.

use std::hint::black_box;

use tercet_testkit::alloc::{CountingAlloc, measure};

#[global_allocator]
static ALLOC: CountingAlloc = CountingAlloc;

const MIB: usize = 1 << 20;

// A single test: the counters are global, and a second test would run at the same time.
#[test]
fn peak_largest_and_remaining_bytes_are_measured() {
    let ((), stats) = measure(|| {
        for _ in 0..10 {
            drop(black_box(vec![0_u8; MIB]));
        }
    });
    assert!((MIB..2 * MIB).contains(&stats.peak_bytes), "one at a time: {stats:?}");
    assert_eq!(stats.largest_bytes, MIB);
    assert!(stats.count >= 10);
    assert!(stats.kept_bytes < MIB);

    let (kept, stats) = measure(|| (0..4).map(|_| vec![1_u8; MIB]).collect::<Vec<_>>());
    assert!(stats.peak_bytes >= 4 * MIB && stats.kept_bytes >= 4 * MIB, "{stats:?}");
    drop(kept);

    let ((), stats) = measure(|| {
        let mut grown: Vec<u8> = Vec::with_capacity(MIB);
        grown.reserve_exact(3 * MIB);
        drop(black_box(grown));
    });
    assert_eq!(stats.largest_bytes, 3 * MIB);

    let (refused, stats) = measure(|| Vec::<u8>::new().try_reserve_exact(isize::MAX as usize).is_err());
    assert!(refused);
    assert_eq!(stats.largest_bytes, isize::MAX as usize, "failed requests are counted");
    assert!(stats.peak_bytes < MIB);

    let ((), stats) = measure(|| {
        std::thread::spawn(|| drop(black_box(vec![0_u8; 5 * MIB]))).join().unwrap();
    });
    assert!(stats.peak_bytes >= 5 * MIB, "other threads count: {stats:?}");
}
