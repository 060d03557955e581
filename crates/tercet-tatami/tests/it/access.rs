//! The access index: partial reads find what whole ones find, read little, and never answer from damaged bytes.

use std::fmt::Write as _;
use std::io::Cursor;
use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_core::{ByteSource, Class, Diagnostic as _, Limits};
use tercet_tatami::search::{
    Analyzer, AnalyzerChoice, Document, MergeOptions, Query, Ranking, SearchOptions, Segment, SegmentBuilder,
    SegmentOptions, merge,
};
use tercet_tatami::{Error, File, Provenance, ReadOptions, VerifyOptions, WriterOptions, verify};
use tercet_testkit::counting::Counting;
use tercet_testkit::damage;

/// Documents with a few frequent and many rare words.
pub(super) fn built(documents: u64, words: u64, writer: WriterOptions) -> Vec<u8> {
    let analyzer = AnalyzerChoice::Fixed(Analyzer::STANDARD);
    let writer = writer.with_provenance(Provenance::Off);
    let options = SegmentOptions::new().with_writer(writer).with_analyzer(analyzer);
    let mut builder = SegmentBuilder::new(Cursor::new(Vec::new()), options).unwrap();
    let mut state = 99u64;
    let mut next = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    for number in 0..documents {
        let mut body = String::new();
        for _ in 0..2 + next(30) {
            let end = 1 + next(words);
            let _ = write!(body, "w{:x} ", next(end));
        }
        let (url, title) = (format!("u/{number}"), format!("w{:x}", next(words)));
        builder.add(&Document::new(&url, &title).with_body(body.as_bytes())).unwrap();
    }
    builder.finish().unwrap().written.output
}

fn opened(bytes: Vec<u8>) -> Result<Segment, Error> {
    let options = ReadOptions::new().with_limits(Limits::small());
    Ok(File::from_source(Arc::new(Memory::new("segment", bytes)), options)?.segment()?.unwrap())
}

const QUERIES: [&str; 9] =
    ["w1", "wa2 w1", "+w3 w4 -w5", "title:w1", "\"w1 w2\"", "w1f*", "w1a~1", "-w1", "w0 w1 w2 w3 w7d"];

/// What the verbs that read a segment return: hits of all rankings, terms, stored fields.
fn results(segment: &Segment, queries: &[&str]) -> Result<Vec<String>, Error> {
    let mut out = Vec::new();
    for query in queries {
        let query = Query::parse(query).unwrap();
        for ranking in [Ranking::Native, Ranking::Bm25, Ranking::Relevance] {
            let options = SearchOptions::new(7).with_ranking(ranking);
            let found = segment.find(&query, &options)?;
            for hit in &found.hits {
                out.push(format!("{} {:08x}", hit.document, hit.score.to_bits()));
                for term in segment.explain(&query, &options, hit.document)? {
                    out.push(format!("{term:?}"));
                }
            }
            let documents: Vec<u32> = found.hits.iter().map(|hit| hit.document).collect();
            out.push(format!("{:?}", segment.documents(&documents)?));
        }
    }
    Ok(out)
}

fn terms(segment: &Segment) -> Result<Vec<String>, Error> {
    let mut out = Vec::new();
    segment.for_each_term(|term, info| out.push(format!("{term:?} {info:?}")))?;
    Ok(out)
}

#[test]
fn partial_reads_find_what_whole_ones_find() {
    for (documents, words) in [(0, 1), (1, 5), (3, 9), (400, 300), (9000, 4000)] {
        let native = built(documents, words, WriterOptions::new());
        let whole = opened(built(documents, words, WriterOptions::interop())).unwrap();
        let partial = opened(native.clone()).unwrap();
        assert!(partial.file().footer().access.is_some() && whole.file().footer().access.is_none());
        assert_eq!(
            results(&partial, &QUERIES).unwrap(),
            results(&whole, &QUERIES).unwrap(),
            "{documents} documents"
        );
        // Again, from caches.
        assert_eq!(
            results(&partial, &QUERIES).unwrap(),
            results(&whole, &QUERIES).unwrap(),
            "{documents} documents"
        );
        assert_eq!(terms(&partial).unwrap(), terms(&whole).unwrap(), "{documents} documents");
        assert_eq!(partial.term_count(), whole.term_count());
        let options = VerifyOptions::default().with_deep(true);
        let report = verify(Arc::new(Memory::new("segment", native.clone())), options, &NoProgress).unwrap();
        assert!(report.ok, "{:?}", report.findings);
        let options =
            MergeOptions::default().with_writer(WriterOptions::new().with_provenance(Provenance::Off));
        let merged = merge(&[partial], Cursor::new(Vec::new()), options, &NoProgress).unwrap();
        assert!(merged.written.output == native, "a merge writes the same bytes");
    }
}

#[test]
fn a_search_reads_little_of_a_large_segment() {
    let mut read = Vec::new();
    for documents in [4000, 32_000] {
        let bytes = built(documents, 3 * documents, WriterOptions::new());
        let source = Counting::new(Memory::new("segment", bytes.clone())).with_copies().shared();
        let file = File::from_source(Arc::<Counting<Memory>>::clone(&source), ReadOptions::new()).unwrap();
        let segment = file.segment().unwrap().unwrap();
        let query = Query::parse("w123").unwrap();
        let options = SearchOptions::new(10).with_ranking(Ranking::Relevance);
        let found = segment.find(&query, &options).unwrap();
        assert!(!found.hits.is_empty());
        assert_eq!(source.len(), bytes.len() as u64);
        read.push((source.bytes(), bytes.len() as u64));
    }
    let [(small, _), (large, len)] = read[..] else { panic!() };
    assert!(large < len / 8, "{large} of {len} bytes");
    assert!(large < 3 * small, "{small} bytes of the small segment, {large} of the large one");
}

/// The number of pages does not matter: their headers are copied into one record.
#[test]
fn a_hit_is_fetched_with_few_reads() {
    let mut reads = Vec::new();
    for documents in [4000, 32_000] {
        let bytes = built(documents, 3 * documents, WriterOptions::new());
        let source = Counting::new(Memory::new("segment", bytes)).with_copies().shared();
        let file = File::from_source(Arc::<Counting<Memory>>::clone(&source), ReadOptions::new()).unwrap();
        let segment = file.segment().unwrap().unwrap();
        source.reset();
        let number = u32::try_from(documents - 1).unwrap();
        assert_eq!(segment.documents(&[number]).unwrap()[0].url, format!("u/{number}"));
        segment.text(number).unwrap();
        reads.push((source.reads(), source.bytes()));
    }
    assert!(reads[1].0 <= 10 && reads[1].0 <= reads[0].0 + 1, "{reads:?}");
    assert!(reads[1].1 < 2 * reads[0].1, "{reads:?}");
}

/// Copies of page headers that are damaged, or belong to other pages, are not used.
#[test]
fn damaged_copies_of_page_headers_are_not_used() {
    let bytes = built(3000, 900, WriterOptions::new());
    let segment = opened(bytes.clone()).unwrap();
    let record = segment.file().footer().page_headers.unwrap();
    assert!(record.length >= 4 * 32);
    let all: Vec<u32> = (0..3000).collect();
    let expected = segment.documents(&all).unwrap();
    // Some bytes of the headers, without their checksums.
    for at in (0..record.length).filter(|at| at % 7 == 3 && at % 32 < 28) {
        let mut damaged = bytes.clone();
        let at = usize::try_from(record.offset + 32 + at).unwrap();
        damaged[at] ^= 1;
        assert!(opened(damaged.clone()).unwrap().documents(&all).unwrap() == expected, "byte {at}");
        // A copy with a checksum of its own that agrees with nothing.
        let start = at - (at - usize::try_from(record.offset).unwrap()) % 32;
        let sum = tercet_core::checksum::crc32c(&damaged[start..start + 28]).to_le_bytes();
        damaged[start + 28..start + 32].copy_from_slice(&sum);
        if let Ok(found) = opened(damaged.clone()).unwrap().documents(&all) {
            assert!(found == expected, "byte {at}");
        }
        let options = VerifyOptions::default().with_deep(true);
        let source: Arc<dyn ByteSource> = Arc::new(Memory::new("segment", damaged));
        assert!(!verify(source, options, &NoProgress).unwrap().ok, "verify does not notice byte {at}");
    }
    let interop = opened(built(300, 90, WriterOptions::interop())).unwrap();
    assert!(interop.file().footer().page_headers.is_none());
}

#[test]
fn every_flipped_byte_is_noticed_or_harmless() {
    let bytes = built(60, 40, WriterOptions::new());
    let segment = opened(bytes.clone()).unwrap();
    let queries = &QUERIES[2..5];
    let (expected, expected_terms) = (results(&segment, queries).unwrap(), terms(&segment).unwrap());
    let merged = |segment: Segment| {
        let options =
            MergeOptions::default().with_writer(WriterOptions::new().with_provenance(Provenance::Off));
        merge(&[segment], Cursor::new(Vec::new()), options, &NoProgress).map(|merged| merged.written.output)
    };
    let expected_merge = merged(segment).unwrap();
    let mut unnoticed = 0;
    // One change of each byte.
    for (number, (at, damaged)) in damage::flips(&bytes).enumerate() {
        if number % 9 != at * 5 % 9 {
            continue;
        }
        let options = VerifyOptions::default().with_limits(Limits::small());
        let source: Arc<dyn ByteSource> = Arc::new(Memory::new("segment", damaged.clone()));
        let report = verify(source, options, &NoProgress).unwrap();
        assert!(!report.ok, "verify does not notice byte {at}");
        let Ok(segment) = opened(damaged.clone()) else { continue };
        match results(&segment, queries) {
            Ok(found) => {
                unnoticed += 1;
                assert!(found == expected, "byte {at} changes hits");
            }
            Err(error) => assert_ne!(error.class(), Class::Io, "{error}"),
        }
        if let Ok(found) = terms(&segment) {
            assert!(found == expected_terms, "byte {at} changes terms");
        }
        if let Ok(found) = merged(segment) {
            assert!(found == expected_merge, "byte {at} changes a merged segment");
        }
    }
    assert!(unnoticed < bytes.len() / 2, "{unnoticed} of {} bytes are not read", bytes.len());
}
