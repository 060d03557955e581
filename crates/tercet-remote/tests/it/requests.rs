//! The number and the ranges of requests.

use proptest::prelude::*;
use tercet_core::ByteSource;
use tercet_testkit::source_conformance;

use super::*;

/// The requested ranges so far, and the bytes sent.
fn requested(server: &Server) -> (Vec<(u64, u64)>, u64) {
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.method == "GET"), "{requests:?}");
    let ranges = requests.iter().map(|request| request.range.unwrap()).collect();
    let sent = requests.iter().map(|request| request.sent).sum();
    server.clear_requests();
    (ranges, sent)
}

#[test]
fn remote_files_pass_the_conformance_tests() {
    for len in [0, 1, 31, 4096, 16_383, 16_384, 16_385, 100_000, 300_000] {
        let (server, bytes) = server(len);
        let url = server.url("/a.tgm");
        let remote = Remote::open(&url, &RemoteOptions::default()).unwrap();
        source_conformance(&remote, &url, &bytes);
        assert_eq!(remote.is_remote(), len > 0);
    }
}

#[test]
fn opening_is_one_request_for_the_first_block() {
    let (server, _) = server(1 << 20);
    let remote = open(&server);
    assert_eq!(requested(&server), (vec![(0, 8 * KIB)], 8 * KIB));
    remote.read_at(span(100, 5000)).unwrap();
    assert_eq!(requested(&server).0, [], "the first block is cached");
}

#[test]
fn a_large_read_is_one_request_for_its_own_bytes() {
    let (server, bytes) = server(4 << 20);
    let remote = open(&server);
    server.clear_requests();
    let large = span(1_000_001, 2_000_000);
    assert_eq!(remote.read_at(large).unwrap(), bytes[1_000_001..3_000_001]);
    assert_eq!(requested(&server), (vec![(1_000_001, 3_000_001)], 2_000_000));
}

#[test]
fn a_large_read_uses_cached_blocks_at_both_ends() {
    let (server, bytes) = server(1 << 20);
    let remote = open(&server);
    remote.read_at(span(500 * KIB, 10)).unwrap();
    server.clear_requests();
    let found = remote.read_at(span(KIB, 500 * KIB)).unwrap();
    assert_eq!(found, bytes[1024..501 * 1024]);
    assert_eq!(requested(&server).0, [(8 * KIB, 496 * KIB)]);
    assert_eq!(remote.read_at(span(0, 16 * KIB + 1)).unwrap(), bytes[..=16 * 1024]);
    assert_eq!(requested(&server).0.len(), 1, "large reads are not cached");
}

#[test]
fn sequential_reads_grow_and_fetch_no_byte_twice() {
    let (server, bytes) = server(4 << 20);
    let remote = open(&server);
    for start in (0..bytes.len()).step_by(1000) {
        let len = 1000.min(bytes.len() - start);
        assert_eq!(remote.read_at(span(start as u64, len as u64)).unwrap(), bytes[start..start + len]);
    }
    let (ranges, sent) = requested(&server);
    assert_eq!(sent, 4 << 20);
    let lens: Vec<u64> = ranges.iter().map(|(first, end)| (end - first) / (8 * KIB)).collect();
    assert_eq!(lens[..8], [1, 3, 5, 9, 17, 33, 65, 129]);
    assert_eq!(ranges.len(), 10);
}

#[test]
fn random_reads_fetch_one_block_each() {
    let (server, _) = server(4 << 20);
    let remote = open(&server);
    server.clear_requests();
    for block in [200, 100, 150, 50] {
        remote.read_at(span(block * 8 * KIB + 5, 100)).unwrap();
    }
    let (ranges, sent) = requested(&server);
    assert_eq!((ranges.len(), sent), (4, 4 * 8 * KIB));
}

#[test]
fn the_cache_is_bounded() {
    let (server, _) = server(1 << 20);
    let mut options = RemoteOptions::default();
    options.cache_bytes = 32 * KIB;
    let remote = Remote::open(&server.url("/a.tgm"), &options).unwrap();
    server.clear_requests();
    for block in [10, 20, 30, 40] {
        remote.read_at(span(block * 8 * KIB, 1)).unwrap();
    }
    remote.read_at(span(40 * 8 * KIB + 9, 1)).unwrap();
    assert_eq!(requested(&server).0.len(), 4);
    // The first block was evicted.
    remote.read_at(span(0, 1)).unwrap();
    assert_eq!(requested(&server).0, [(0, 8 * KIB)]);
}

#[test]
fn without_a_cache_every_read_is_exact() {
    let (server, bytes) = server(1 << 20);
    let mut options = RemoteOptions::default();
    options.cache_bytes = 0;
    let remote = Remote::open(&server.url("/a.tgm"), &options).unwrap();
    server.clear_requests();
    assert_eq!(remote.read_at(span(7, 3)).unwrap(), bytes[7..10]);
    assert_eq!(remote.read_at(span(7, 3)).unwrap(), bytes[7..10]);
    assert_eq!(requested(&server), (vec![(7, 10), (7, 10)], 6));
}

#[test]
fn near_spans_are_coalesced() {
    let (server, bytes) = server(4 << 20);
    let remote = open(&server);
    server.clear_requests();
    // Two large spans 5 KB apart, a distant one, a cached one, an empty one; unordered.
    let spans = [
        span(3_000_000, 100_000),
        span(1_000_000, 100_000),
        span(1_105_000, 100_000),
        span(50, 60),
        span(2_000_000, 0),
    ];
    let found = remote.read_many(&spans).unwrap();
    for (span, found) in spans.iter().zip(&found) {
        assert_eq!(*found, bytes[span.to_range().unwrap()], "{span}");
    }
    let (mut ranges, sent) = requested(&server);
    ranges.sort_unstable();
    assert_eq!(ranges, [(1_000_000, 1_205_000), (3_000_000, 3_100_000)]);
    assert_eq!(sent, 305_000);
}

#[test]
fn small_spans_of_read_many_are_cached() {
    let (server, bytes) = server(4 << 20);
    let remote = open(&server);
    server.clear_requests();
    let spans: Vec<Span> = (1..9).map(|i| span(i * 400_000, 24)).collect();
    let found = remote.read_many(&spans).unwrap();
    assert!(spans.iter().zip(&found).all(|(span, found)| *found == bytes[span.to_range().unwrap()]));
    assert_eq!(requested(&server).0.len(), 8);
    remote.read_many(&spans).unwrap();
    remote.read_at(span(400_024, 100)).unwrap();
    assert_eq!(requested(&server).0, []);
}

#[test]
fn read_many_checks_every_span() {
    let (server, _) = server(1000);
    let remote = open(&server);
    let error = remote.read_many(&[span(0, 10), span(995, 10)]).unwrap_err();
    assert!(matches!(error, SourceError::PastEnd { .. }), "{error:?}");
}

#[test]
fn calls_may_come_from_another_runtime() {
    let (server, bytes) = server(300_000);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let url = server.url("/a.tgm");
    let in_pool = runtime.block_on(async {
        let task = tokio::task::spawn_blocking(move || {
            let remote = Remote::open(&url, &RemoteOptions::default()).unwrap();
            remote.read_at(span(100_000, 100_000)).unwrap()
        });
        task.await.unwrap()
    });
    assert_eq!(in_pool, bytes[100_000..200_000]);
    let inside = runtime.block_on(async { open(&server).read_at(span(9, 9)).unwrap() });
    assert_eq!(inside, bytes[9..18]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(48)))]

    /// Reads in any order return the bytes of the file.
    #[test]
    fn every_sequence_of_reads_gives_the_bytes(
        len in 1usize..400_000,
        block in prop::sample::select(vec![1u64, 1000, 4096, 16_384, 100_000]),
        cache in prop::sample::select(vec![0u64, 5000, 40_000, 1 << 20]),
        reads in prop::collection::vec((any::<u64>(), prop_oneof![0u64..40, 0u64..70_000, 0u64..400_000]), 1..12),
        together in prop::collection::vec(any::<bool>(), 12),
    ) {
        let (server, bytes) = server(len);
        let mut options = RemoteOptions::default();
        // One-byte blocks would mean one request each.
        options.block_bytes = if len > 2000 { block.max(1000) } else { block };
        options.cache_bytes = cache;
        let remote = Remote::open(&server.url("/a.tgm"), &options).unwrap();
        let spans: Vec<Span> = reads.iter().map(|(at, most)| {
            let start = at % len as u64;
            span(start, (*most).min(len as u64 - start))
        }).collect();
        for (at, inner) in spans.iter().enumerate() {
            let requested = if together[at] { &spans[at..] } else { &spans[at..=at] };
            let found = if together[at] {
                remote.read_many(requested).unwrap()
            } else {
                vec![remote.read_at(*inner).unwrap()]
            };
            for (span, found) in requested.iter().zip(found) {
                prop_assert!(found == bytes[span.to_range().unwrap()], "{}", span);
            }
        }
    }
}
