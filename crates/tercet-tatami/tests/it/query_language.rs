//! Queries with fields, prefixes, fuzzy terms, distances and boosts; segments with analyzers.

use std::io::Cursor;
use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_tatami::search::{
    Analyzer, AnalyzerChoice, Cluster, Document, MergeOptions, Query, Ranking, SearchOptions, Segment,
    SegmentBuilder, SegmentOptions, merge,
};
use tercet_tatami::{File, ReadOptions, WriterOptions};

/// ID, title and body of each page.
const PAGES: [(&str, &str, &str); 6] = [
    ("salvage", "Salvaging wrecks", "A tug salvages the ship. The colour of the ship is red."),
    ("colors", "Red colors", "Painters mix colors; salvation is not needed."),
    ("memory", "Memory safety", "The borrow checker makes memory safe without a collector."),
    ("garbage", "Garbage collection", "A collector finds memory that no one needs."),
    ("tokyo", "東京都庁", "東京都庁は新宿にあります。"),
    ("cafe", "Cafés", "Le café de la gare"),
];

fn segment(analyzer: AnalyzerChoice) -> Segment {
    opened(built(analyzer, &PAGES))
}

fn built(analyzer: AnalyzerChoice, pages: &[(&str, &str, &str)]) -> Vec<u8> {
    let options = SegmentOptions::new().with_analyzer(analyzer);
    let mut builder = SegmentBuilder::new(Cursor::new(Vec::new()), options).unwrap();
    for (id, title, body) in pages {
        let url = format!("https://example.org/{id}");
        builder.add(&Document::new(&url, title).with_id(id).with_body(body.as_bytes())).unwrap();
    }
    builder.finish().unwrap().written.output
}

fn opened(bytes: Vec<u8>) -> Segment {
    let source = Arc::new(Memory::new("segment", bytes));
    File::from_source(source, ReadOptions::new()).unwrap().segment().unwrap().unwrap()
}

fn english() -> AnalyzerChoice {
    AnalyzerChoice::Fixed("english".parse().unwrap())
}

/// The IDs of the hits, sorted.
fn ids(segment: &Segment, query: &str) -> Vec<String> {
    let options = SearchOptions::new(100).with_ranking(Ranking::Relevance);
    let hits = segment.find(&Query::parse(query).unwrap(), &options).unwrap().hits;
    let documents: Vec<u32> = hits.iter().map(|hit| hit.document).collect();
    let mut ids: Vec<String> =
        segment.documents(&documents).unwrap().into_iter().map(|stored| stored.doc_id).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn every_form_of_a_query_finds_its_documents() {
    let segment = segment(english());
    let cases: [(&str, &[&str]); 25] = [
        ("salvage", &["salvage"]),
        ("salvag*", &["salvage"]),
        ("salva*", &["colors", "salvage"]),
        ("title:salva*", &["salvage"]),
        ("title:red", &["colors"]),
        ("body:red", &["salvage"]),
        ("red", &["colors", "salvage"]),
        ("body:memory", &["garbage", "memory"]),
        ("title:memory", &["memory"]),
        ("url:garbage", &["garbage"]),
        ("colour~1", &["colors", "salvage"]),
        ("colour", &["salvage"]),
        ("clor~1", &["colors"]),
        ("salvaging*", &["salvage"]),
        ("title:colr~1", &["colors"]),
        ("\"borrow checker\"", &["memory"]),
        ("\"borrow makes\"", &[]),
        ("\"borrow makes\"~1", &["memory"]),
        ("title:\"garbage collection\"", &["garbage"]),
        ("body:\"garbage collection\"", &[]),
        ("*", &["cafe", "colors", "garbage", "memory", "salvage", "tokyo"]),
        ("-memory", &["cafe", "colors", "salvage", "tokyo"]),
        ("memory -title:safety", &["garbage"]),
        ("都庁", &["tokyo"]),
        ("cafe", &["cafe"]),
    ];
    for (query, expected) in cases {
        assert_eq!(ids(&segment, query), expected, "{query}");
    }
}

#[test]
fn boosts_multiply_scores() {
    let segment = segment(english());
    let score = |query: &str| {
        let options = SearchOptions::new(1).with_ranking(Ranking::Relevance);
        segment.find(&Query::parse(query).unwrap(), &options).unwrap().hits[0].score
    };
    assert!((score("tug^2") - 2.0 * score("tug")).abs() < 1e-6);
    assert!((score("(tug ship)^3") - 3.0 * score("tug ship")).abs() < 1e-5);
    assert!((score("\"the ship\"^0.5") - 0.5 * score("\"the ship\"")).abs() < 1e-6);
}

/// Misspellings are rare, but rank below the word, and the more edits, the lower.
#[test]
fn fuzzy_words_rank_by_similarity() {
    let mut pages: Vec<(String, &str)> = (0..30).map(|n| (format!("d{n:02}"), "a colour is here")).collect();
    pages.push(("one".to_owned(), "a colous is here"));
    pages.push(("two".to_owned(), "a coloxy is here"));
    let pages: Vec<(&str, &str, &str)> = pages.iter().map(|(id, body)| (&id[..], "", *body)).collect();
    for analyzer in [Analyzer::PLAIN, Analyzer::STANDARD] {
        let whole = opened(built(AnalyzerChoice::Fixed(analyzer), &pages));
        let parts =
            [&pages[..3], &pages[3..]].map(|part| opened(built(AnalyzerChoice::Fixed(analyzer), part)));
        let query = Query::parse("colour~2").unwrap();
        for ranking in [Ranking::Native, Ranking::Bm25, Ranking::Relevance] {
            let options = SearchOptions::new(40).with_ranking(ranking);
            let hits = whole.find(&query, &options).unwrap().hits;
            let documents: Vec<u32> = hits.iter().map(|hit| hit.document).collect();
            assert_eq!(documents, (0..32).collect::<Vec<u32>>(), "{ranking:?}");
            let scores = [hits[29].score, hits[30].score, hits[31].score];
            assert!(scores[0] > scores[1] && scores[1] > scores[2] && scores[2] > 0.0, "{scores:?}");
            let (several, _) = Cluster::new(&parts).find(&query, &options, None).unwrap();
            let bits = |scores: Vec<f32>| scores.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            let one = bits(hits.iter().map(|hit| hit.score).collect());
            assert_eq!(bits(several.iter().map(|hit| hit.score).collect()), one, "{ranking:?}");
        }
    }
}

#[test]
fn queries_that_a_segment_cannot_evaluate_are_errors() {
    let plain = segment(AnalyzerChoice::Fixed(Analyzer::PLAIN));
    let fails = |segment: &Segment, query: &str| {
        let query = Query::parse(query).unwrap();
        segment.find(&query, &SearchOptions::new(10)).unwrap_err().to_string()
    };
    let fields = "its terms are not indexed by field";
    for query in ["title:red", "body:red", "title:r*", "a -url:x", "title:\"a b\""] {
        assert!(fails(&plain, query).contains(fields), "{query}");
    }
    let english = segment(english());
    assert!(fails(&english, "anchor:\"a b\"").contains("anchor texts are not stored"));
    let pages: Vec<(String, String)> = (0..1100).map(|n| (format!("d{n}"), format!("pre{n}"))).collect();
    let pages: Vec<(&str, &str, &str)> = pages.iter().map(|(id, body)| (&id[..], "", &body[..])).collect();
    let many = opened(built(AnalyzerChoice::Fixed(Analyzer::STANDARD), &pages));
    assert!(fails(&many, "pre*").contains("the prefix `pre` matches more than 1024 terms"));
    assert_eq!(ids(&many, "pre11*").len(), 11);
}

#[test]
fn highlights_mark_the_surface_form() {
    let segment = segment(english());
    let marked = |query: &str, document: u32| {
        let found = segment.highlight(&Query::parse(query).unwrap(), document, 200).unwrap();
        found.marks.iter().map(|mark| found.text[mark.clone()].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(marked("salvaging", 0), ["salvages"]);
    assert_eq!(marked("salva*", 0), ["salvages"]);
    assert_eq!(marked("東京都庁", 4), ["東京都庁"]);
    assert_eq!(marked("CAFE", 5), ["café"]);
}

#[test]
fn members_with_other_analyzers_are_searched_with_their_terms() {
    let plain = built(AnalyzerChoice::Fixed(Analyzer::PLAIN), &PAGES[..3]);
    let segments = [opened(plain), opened(built(english(), &PAGES[3..]))];
    let cluster = Cluster::new(&segments);
    assert_eq!(cluster.analyzers().len(), 2);
    for ranking in [Ranking::Native, Ranking::Bm25, Ranking::Relevance] {
        let options = SearchOptions::new(10).with_ranking(ranking);
        let found = |query: &str| {
            let (hits, _) = cluster.find(&Query::parse(query).unwrap(), &options, None).unwrap();
            let mut ids: Vec<String> =
                hits.iter().map(|hit| String::from_utf8(hit.doc_id.clone()).unwrap()).collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(found("memory"), ["garbage", "memory"]);
        // The stem occurs only in the member that stems.
        assert_eq!(found("memories"), ["garbage"]);
        assert_eq!(found("*").len(), 6);
        assert_eq!(found("-memory").len(), 4);
    }
    let error = merge(&segments, Cursor::new(Vec::new()), MergeOptions::default(), &NoProgress);
    assert!(error.unwrap_err().to_string().contains("the analyzers differ (plain and english)"));
}

#[test]
fn prefixes_score_in_a_cluster_as_in_one_segment() {
    let parts = [opened(built(english(), &PAGES[..3])), opened(built(english(), &PAGES[3..]))];
    let whole = segment(english());
    let cluster = Cluster::new(&parts);
    for query in ["co*", "colour~2 memory", "-co*", "body:collector ship^2"] {
        let query = Query::parse(query).unwrap();
        for ranking in [Ranking::Native, Ranking::Bm25, Ranking::Relevance] {
            let options = SearchOptions::new(10).with_ranking(ranking);
            let scores = |scores: Vec<f32>| scores.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            let one = whole.find(&query, &options).unwrap().hits;
            let (many, _) = cluster.find(&query, &options, None).unwrap();
            let one = scores(one.iter().map(|hit| hit.score).collect());
            assert_eq!(scores(many.iter().map(|hit| hit.score).collect()), one, "{query:?} {ranking:?}");
        }
    }
}

#[test]
fn analyzers_survive_merges_and_unknown_ones_are_refused() {
    let parts = [opened(built(english(), &PAGES[..3])), opened(built(english(), &PAGES[3..]))];
    let merged = merge(&parts, Cursor::new(Vec::new()), MergeOptions::default(), &NoProgress).unwrap();
    let merged = opened(merged.written.output);
    assert_eq!(merged.analyzer().name(), "english");
    assert_eq!(ids(&merged, "salvaging"), ["salvage"]);
    assert_eq!(ids(&merged, "title:memories"), ["memory"]);

    let writer = WriterOptions::new().with_metadata("tercet.analyzer", "9 klingon");
    let builder = SegmentBuilder::new(Cursor::new(Vec::new()), SegmentOptions::new().with_writer(writer));
    let bytes = builder.unwrap().finish().unwrap().written.output;
    let file = File::from_source(Arc::new(Memory::new("x", bytes)), ReadOptions::new()).unwrap();
    let error = file.segment().unwrap_err().to_string();
    assert!(error.contains("requires unsupported features (analyzer `9 klingon`)"), "{error}");
}

#[test]
fn the_language_is_detected() {
    assert_eq!(segment(AnalyzerChoice::Auto).analyzer().name(), "english");
    let german =
        [("a", "Häuser", "Die Häuser der Stadt sind alt und ihre Gärten werden von den Nachbarn gepflegt.")];
    let segment = opened(built(AnalyzerChoice::Auto, &german));
    assert_eq!(segment.analyzer().name(), "german");
    assert_eq!(ids(&segment, "Haus"), ["a"]);
}
