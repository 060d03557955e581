//! Recorded positions: phrases match the same documents as by their texts, without reading them.

use std::fmt::Write as _;
use std::io::Cursor;
use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_tatami::search::{
    Analyzer, AnalyzerChoice, Document, MergeOptions, Query, Ranking, SearchOptions, Segment, SegmentBuilder,
    SegmentOptions, merge,
};
use tercet_tatami::{Error, File, Provenance, ReadOptions, VerifyOptions, WriterOptions, verify};

fn built(documents: std::ops::Range<u64>, words: u64, analyzer: &str, positions: bool) -> Vec<u8> {
    let writer = WriterOptions::new().with_provenance(Provenance::Off);
    let analyzer = AnalyzerChoice::Fixed(analyzer.parse().unwrap());
    let options = SegmentOptions::new().with_writer(writer).with_analyzer(analyzer).with_positions(positions);
    // Runs are spilled after each block.
    let mut builder = SegmentBuilder::new(Cursor::new(Vec::new()), options.with_memory_bytes(1)).unwrap();
    for number in documents {
        let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % end
        };
        let mut text = |count: u64| {
            let mut out = String::new();
            for _ in 0..count {
                let end = 1 + next(words);
                let _ = write!(out, "w{:x} ", next(end));
            }
            out
        };
        let (body, title, anchor) = (text(number % 40), text(number % 4), text(number % 3));
        let url = format!("w1/w2/{number}");
        let document = Document::new(&url, &title).with_body(body.as_bytes()).with_anchor(anchor.as_bytes());
        builder.add(&document).unwrap();
    }
    builder.finish().unwrap().written.output
}

fn opened(bytes: Vec<u8>) -> Result<Segment, Error> {
    let file = File::from_source(Arc::new(Memory::new("segment", bytes)), ReadOptions::new())?;
    Ok(file.segment()?.unwrap())
}

const QUERIES: [&str; 12] = [
    "\"w0 w1\"",
    "\"w1 w2\"",
    "\"w0 w0\"",
    "\"w1 w0\"~2",
    "\"w2 w1 w0\"~40",
    "title:\"w0 w1\"",
    "url:\"w1 w2\"",
    "body:\"w1 w2\"",
    "+w3 -\"w0 w1\"",
    "\"w1f w0\" w2",
    "w0-w1 +w1-w2",
    "\"w0 w1\" AND (\"w1 w0\" OR w9)",
];

/// The hits of all rankings and queries, and how many texts were read.
fn results(segment: &Segment) -> Result<(Vec<String>, u64), Error> {
    let (mut out, mut read) = (Vec::new(), 0);
    for query in QUERIES {
        for ranking in [Ranking::Native, Ranking::Bm25, Ranking::Relevance] {
            let options = SearchOptions::new(50).with_ranking(ranking);
            let found = segment.find(&Query::parse(query).unwrap(), &options)?;
            read += found.stats.documents_read;
            let hits: Vec<(u32, u32)> =
                found.hits.iter().map(|hit| (hit.document, hit.score.to_bits())).collect();
            out.push(format!("{query} {ranking:?} {hits:?}"));
        }
    }
    Ok((out, read))
}

#[test]
fn positions_find_what_texts_find() {
    for analyzer in ["plain", "standard", "english"] {
        for (documents, words) in [(1, 3), (30, 8), (700, 40), (3000, 300)] {
            let has_fields = analyzer != "plain";
            let with = opened(built(0..documents, words, analyzer, true)).unwrap();
            let without = opened(built(0..documents, words, analyzer, false)).unwrap();
            assert!(with.has_positions() && !without.has_positions());
            if !has_fields {
                let options = SearchOptions::new(50);
                for query in QUERIES.iter().filter(|query| !query.contains(':')) {
                    let query = Query::parse(query).unwrap();
                    let (one, other) = (with.find(&query, &options), without.find(&query, &options));
                    assert_eq!(one.unwrap().hits, other.unwrap().hits);
                }
                continue;
            }
            let ((found, read), (expected, read_before)) =
                (results(&with).unwrap(), results(&without).unwrap());
            assert_eq!(found, expected, "{analyzer} {documents}");
            // Only phrases of the body, and those with a term in a single document.
            if documents >= 700 {
                assert!(read * 3 <= read_before, "{read} of {read_before}");
            }
        }
    }
}

#[test]
fn positions_are_verified_and_merged() {
    let one = built(0..500, 50, "standard", true);
    let parts = [built(0..200, 50, "standard", true), built(200..500, 50, "standard", true)];
    let options =
        || MergeOptions::default().with_writer(WriterOptions::new().with_provenance(Provenance::Off));
    let open = |parts: &[Vec<u8>]| -> Vec<Segment> {
        parts.iter().map(|part| opened(part.clone()).unwrap()).collect()
    };
    let merged = merge(&open(&parts), Cursor::new(Vec::new()), options(), &NoProgress).unwrap();
    assert!(merged.written.output == one, "a merge writes the bytes of one segment");
    for bytes in [one.clone(), merged.written.output] {
        let deep = VerifyOptions::default().with_deep(true);
        let report = verify(Arc::new(Memory::new("segment", bytes)), deep, &NoProgress).unwrap();
        assert!(report.ok, "{:?}", report.findings);
    }
    // Without the positions of all, there are none.
    let mixed = [parts[0].clone(), built(200..500, 50, "standard", false)];
    let merged = merge(&open(&mixed), Cursor::new(Vec::new()), options(), &NoProgress).unwrap();
    assert!(merged.written.output == built(0..500, 50, "standard", false));
}

/// Every changed byte is reported or changes no result.
#[test]
fn damaged_positions_never_answer_wrong() {
    let bytes = built(0..60, 12, "standard", true);
    let expected = results(&opened(bytes.clone()).unwrap()).unwrap();
    let file =
        File::from_source(Arc::new(Memory::new("segment", bytes.clone())), ReadOptions::new()).unwrap();
    let section = file.footer().positions.unwrap();
    let record = section.offset..section.offset + 32 + section.length;
    let mut reported = 0;
    for at in record.clone() {
        let mut bad = bytes.clone();
        bad[usize::try_from(at).unwrap()] ^= 1 << (at % 8);
        match opened(bad.clone()).and_then(|segment| results(&segment)) {
            Ok(found) => assert_eq!(found, expected, "byte {at}"),
            Err(_) => reported += 1,
        }
        let report = verify(Arc::new(Memory::new("segment", bad)), VerifyOptions::default(), &NoProgress);
        assert!(report.is_err() || !report.unwrap().ok, "byte {at}");
    }
    assert!(reported * 2 > record.end - record.start, "{reported}");
}

#[test]
fn interop_segments_and_snippets_have_no_positions() {
    let options = SegmentOptions::new().with_positions(true);
    for options in [options.clone().with_writer(WriterOptions::interop()), options.snippet_only()] {
        let mut builder = SegmentBuilder::new(Cursor::new(Vec::new()), options).unwrap();
        builder.add(&Document::new("u", "t").with_body(b"a b a")).unwrap();
        let segment = opened(builder.finish().unwrap().written.output).unwrap();
        assert!(!segment.has_positions());
        assert_eq!(segment.analyzer(), Analyzer::PLAIN);
    }
}
