//! Search for applications: pages, totals, facets and sorting equal a full evaluation; newest versions; suggestions.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;
use std::sync::atomic::{AtomicU64, Ordering};

use tercet_core::{Diagnostic as _, Progress};
use tercet_tatami::search::{
    Analyzer, AnalyzerChoice, Counting, Document, DocumentHit, Query, Ranking, SearchRequest, Searcher,
    Segment, SegmentBuilder, SegmentOptions, SortBy,
};
use tercet_tatami::{Expr, File, Scalar, Values, WriterOptions};

/// ID, title and body.
type Page = (String, String, String);

fn built(pages: &[Page], analyzer: Analyzer, created: u64) -> Segment {
    let writer = WriterOptions::new().with_created_millis(created).with_row_group_max_rows(97);
    let options = SegmentOptions::new().with_writer(writer).with_analyzer(AnalyzerChoice::Fixed(analyzer));
    let mut builder = SegmentBuilder::new(Cursor::new(Vec::new()), options).unwrap();
    for (id, title, body) in pages {
        builder.add(&Document::new("u", title).with_id(id).with_body(body.as_bytes())).unwrap();
    }
    let bytes = builder.finish().unwrap().written.output;
    File::from_bytes("segment", bytes).unwrap().segment().unwrap().unwrap()
}

/// Pages with a few frequent and many rare words.
fn pages(seed: u64, count: usize) -> Vec<Page> {
    let mut state = seed;
    let mut next = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    let mut text = |most: u64| {
        let words = next(most);
        let mut word = || {
            let end = 1 + next(60);
            format!("w{}", next(end))
        };
        (0..words).map(|_| word()).collect::<Vec<_>>().join(" ")
    };
    (0..count).map(|number| (format!("d{number:04}"), text(4), text(30))).collect()
}

fn request(query: &str) -> SearchRequest {
    SearchRequest::new(Query::parse(query).unwrap().dedup_terms()).with_snippet_bytes(0)
}

fn places(hits: &[DocumentHit]) -> Vec<(usize, u32)> {
    hits.iter().map(|hit| (hit.segment, hit.document)).collect()
}

/// The norms of the titles of each segment.
fn norms(searcher: &Searcher) -> Vec<Vec<u16>> {
    let norms = |segment: &Segment| match &segment.file().read_column(5).unwrap().values {
        Values::UInt16(norms) => norms.clone(),
        other => panic!("{other:?}"),
    };
    searcher.segments().iter().map(norms).collect()
}

const QUERIES: [&str; 14] = [
    "w1",
    "w1 w2",
    "w3 w40 w7",
    "+w1 w2",
    "w1 -w2",
    "-w1",
    "*",
    "w1 AND (w2 OR w50)",
    "\"w1 w2\"",
    "w4* w1",
    "title:w1",
    "body:w2 w1",
    "w999",
    "\"w1 w2\"~3 -w3",
];

#[test]
fn pages_totals_facets_and_orders_equal_a_full_evaluation() {
    let all = pages(7, 600);
    let one = Searcher::from_segment(built(&all, Analyzer::STANDARD, 0));
    let parts = [&all[..200], &all[200..450], &all[450..]];
    let several = parts.map(|part| built(part, Analyzer::STANDARD, 0));
    let several = Searcher::new(several.into()).unwrap();
    let filters = [None, Some(Expr::col("norm_title").ge(2u16)), Some(Expr::col("norm_title").ge(100u16))];
    for searcher in [one, several] {
        let norms = norms(&searcher);
        for (query, filter) in
            QUERIES.iter().flat_map(|query| filters.iter().map(move |filter| (query, filter)))
        {
            let request = request(query).with_filter(filter.clone());
            let full = searcher.search(&request.clone().with_limit(usize::MAX)).unwrap();
            let expected = places(&full.hits);
            let distinct: BTreeSet<_> = expected.iter().collect();
            assert_eq!(distinct.len(), expected.len(), "{query}");
            assert_eq!(full.total.unwrap().documents, expected.len() as u64, "{query}");

            let mut paged = Vec::new();
            for offset in (0..expected.len() + 20).step_by(7) {
                let page = searcher
                    .search(&request.clone().with_limit(7).with_offset(offset).with_counting(Counting::Exact))
                    .unwrap();
                let total = page.total.unwrap();
                assert!(total.is_exact && total.documents == expected.len() as u64, "{query} {total:?}");
                paged.extend(places(&page.hits));
            }
            assert_eq!(paged, expected, "{query}");
            let bounded = searcher.search(&request.clone().with_limit(1)).unwrap().total.unwrap();
            assert!(bounded.documents <= expected.len() as u64, "{query}");
            assert!(!bounded.is_exact || bounded.documents == expected.len() as u64, "{query}");

            let value = |place: &(usize, u32)| norms[place.0][place.1 as usize];
            let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
            for place in &expected {
                *counts.entry(value(place)).or_default() += 1;
            }
            let found = searcher
                .search(&request.clone().with_limit(0).with_facets(vec!["norm_title".into()], 2))
                .unwrap();
            let [facet] = &found.facets[..] else { panic!("{query}") };
            let mut expected_values: Vec<(u64, u16)> =
                counts.iter().map(|(value, count)| (*count, *value)).collect();
            expected_values.sort_by_key(|(count, value)| (u64::MAX - count, *value));
            let values: Vec<(u64, Scalar)> =
                facet.values.iter().map(|value| (value.documents, value.value.clone())).collect();
            let first_two = expected_values.iter().take(2);
            let first_two: Vec<_> =
                first_two.map(|(count, value)| (*count, Scalar::UInt16(*value))).collect();
            assert_eq!(values, first_two, "{query}");
            assert_eq!(facet.distinct, counts.len() as u64);
            let others: u64 = expected_values.iter().skip(2).map(|(count, _)| count).sum();
            assert_eq!((facet.others, facet.missing), (others, 0), "{query}");
            assert_eq!(found.total.unwrap().documents, expected.len() as u64);

            for descending in [false, true] {
                let sort = if descending {
                    SortBy::descending("norm_title")
                } else {
                    SortBy::ascending("norm_title")
                };
                let mut sorted = expected.clone();
                sorted.sort_by_key(|place| {
                    let value = i32::from(value(place));
                    (if descending { -value } else { value }, *place)
                });
                let request = request.clone().with_sort(Some(sort)).with_limit(5).with_offset(3);
                let found = searcher.search(&request).unwrap();
                let page: Vec<_> = sorted.into_iter().skip(3).take(5).collect();
                assert_eq!(places(&found.hits), page, "{query} {descending}");
                assert!(found.hits.iter().all(|hit| hit.score.is_none()));
            }
        }
    }
}

#[test]
fn columns_that_cannot_be_used_are_errors() {
    let searcher = Searcher::from_segment(built(&pages(1, 20), Analyzer::STANDARD, 0));
    for (request, message) in [
        (request("*").with_facets(vec!["none".into()], 3), "has no column `none`"),
        (request("*").with_sort(Some(SortBy::ascending("none"))), "has no column `none`"),
        (request("*").with_sort(Some(SortBy::ascending("body"))), "column `body` is blobref"),
    ] {
        let error = searcher.search(&request).unwrap_err().to_string();
        assert!(error.to_lowercase().contains(message), "{error}");
    }
}

#[test]
fn the_newest_version_of_a_document_is_found() {
    let page = |id: &str, body: &str| (id.to_owned(), String::new(), body.to_owned());
    let old = [page("a", "fox fox fox"), page("b", "fox"), page("c", "dog")];
    let new = [page("a", "a fox and many other words"), page("b", "cat"), page("d", "fox")];
    let found = |searcher: &Searcher, query: &str| {
        let found = searcher.search(&request(query).with_limit(50)).unwrap();
        let mut ids: Vec<(String, usize)> =
            found.hits.iter().map(|hit| (hit.stored.doc_id.clone(), hit.segment)).collect();
        ids.sort();
        (ids, found.total.unwrap().documents)
    };
    let id = |id: &str, segment: usize| (id.to_owned(), segment);
    for (times, newest) in [([1, 2], 1), ([2, 1], 0), ([0, 0], 1)] {
        let mut segments = vec![
            built(if newest == 1 { &old } else { &new }, Analyzer::STANDARD, times[0]),
            built(if newest == 1 { &new } else { &old }, Analyzer::STANDARD, times[1]),
        ];
        let oldest = 1 - newest;
        let searcher = Searcher::new(std::mem::take(&mut segments)).unwrap();
        assert_eq!((searcher.documents(), searcher.older_versions()), (4, 2));
        assert_eq!(found(&searcher, "fox"), (vec![id("a", newest), id("d", newest)], 2));
        assert_eq!(found(&searcher, "dog"), (vec![id("c", oldest)], 1));
        assert_eq!(found(&searcher, "*").1, 4);
        let facet = searcher.search(&request("*").with_facets(vec!["doc_id".into()], 9)).unwrap();
        assert_eq!(facet.facets[0].distinct, 4);
        assert!(facet.facets[0].values.iter().all(|value| value.documents == 1));
    }
}

#[test]
fn words_are_completed_and_corrected_as_they_are_written() {
    let page = |id: &str, body: &str| (id.to_owned(), "On Salvage".to_owned(), body.to_owned());
    let pages = [
        page("1", "Running ships; the café received wrecks."),
        page("2", "A runner receives a received letter. Cafés!"),
        page("3", "Runners run, salvaging the wreck of a ship in the river."),
    ];
    let english: Analyzer = "english".parse().unwrap();
    let one = Searcher::from_segment(built(&pages, english, 0));
    let parts = pages.each_ref().map(|page| built(std::slice::from_ref(page), english, 0));
    let several = Searcher::new(parts.into()).unwrap();
    let words = |found: Vec<tercet_tatami::search::Suggestion>| -> Vec<(String, u64)> {
        found.into_iter().map(|found| (found.word, found.documents)).collect()
    };
    let word = |word: &str, documents| (word.to_owned(), documents);
    for searcher in [one, several] {
        let complete = |text: &str| words(searcher.complete(text, 5).unwrap());
        assert_eq!(complete("the caf"), [word("café", 2)]);
        assert_eq!(complete("SHI"), [word("ships", 2)]);
        assert_eq!(complete("salvag"), [word("salvage", 3)]);
        assert_eq!(complete("running"), [word("running", 2)]);
        assert_eq!(complete("r").len(), 4);
        assert_eq!(complete("ships "), []);
        assert_eq!(complete("xyz"), []);
        let correct = |text: &str| words(searcher.correct(text, 3).unwrap());
        assert_eq!(correct("recieved"), [word("received", 2)]);
        assert_eq!(correct("whreck"), [word("wrecks", 2)]);
        assert_eq!(correct("zalvage"), [word("salvage", 3)]);
        assert_eq!(correct("completely"), []);
        let missing = searcher.missing_words(&Query::parse("ships recieved title:salvage").unwrap()).unwrap();
        assert_eq!(missing, ["recieved"]);
    }
}

#[test]
fn similar_documents_share_characteristic_words() {
    let page = |id: &str, body: &str| (id.to_owned(), String::new(), body.to_owned());
    let pages = [
        page("ship", "The wreck of a ship was salvaged; the salvage of the wreck took a year."),
        page("boat", "Salvaging a wreck is work for a boat and its crew in the year of the ship."),
        page("city", "The city is full of people who work in it."),
        page("town", "A town with a crew of people."),
    ];
    let searcher = Searcher::from_segment(built(&pages, "english".parse().unwrap(), 0));
    let (query, others) = searcher.similar_to("ship").unwrap().unwrap();
    let request = SearchRequest::new(query).with_filter(Some(others)).with_ranking(Ranking::Bm25);
    let found = searcher.search(&request).unwrap();
    let ids: Vec<&str> = found.hits.iter().map(|hit| hit.stored.doc_id.as_str()).collect();
    assert_eq!(ids, ["boat"]);
    assert!(found.hits[0].highlight.as_ref().unwrap().marks.len() >= 3);
    assert!(searcher.similar_to("none").unwrap().is_none());
}

/// Cancels after a number of tests.
struct Patience {
    tests: AtomicU64,
    most: u64,
}

impl Patience {
    fn new(most: u64) -> Self {
        Self { tests: AtomicU64::new(0), most }
    }
}

impl Progress for Patience {
    fn advance(&self, _bytes: u64) {}

    fn is_cancelled(&self) -> bool {
        self.tests.fetch_add(1, Ordering::Relaxed) >= self.most
    }
}

#[test]
fn searches_can_be_cancelled_wherever_they_work_long() {
    // Without positions, phrases are looked for in texts.
    let segment = |seed: u64| {
        let options = SegmentOptions::new().with_positions(false);
        let mut builder = SegmentBuilder::new(Cursor::new(Vec::new()), options).unwrap();
        for (id, title, body) in pages(seed, 700) {
            let (id, body) = (format!("{seed}-{id}"), format!("common words {body} common"));
            builder.add(&Document::new("u", &title).with_id(&id).with_body(body.as_bytes())).unwrap();
        }
        let bytes = builder.finish().unwrap().written.output;
        File::from_bytes("segment", bytes).unwrap().segment().unwrap().unwrap()
    };
    let searcher = Searcher::new(vec![segment(1), segment(2)]).unwrap();
    let sorted = request("w1").with_sort(Some(SortBy::ascending("title")));
    let cases = [
        // The least number of tests: blocks of postings, batches of candidates, texts, batches of rows, hits.
        ("one term", request("common"), 10),
        ("terms", request("w1 w2 w3"), 4),
        ("conjunction", request("+w1 -w40 w2"), 4),
        ("phrase", request("\"words common\""), 500),
        ("all", request("*").with_counting(Counting::Exact), 20),
        ("counted", request("\"common words\"").with_limit(1).with_counting(Counting::Exact), 500),
        ("sort", sorted, 6),
        ("facets", request("w1").with_facets(vec!["title".into(), "url".into()], 3), 6),
        ("excerpts", request("w1").with_snippet_bytes(100).with_limit(50), 50),
        ("expansion", request("w1").with_expand(true), 8),
    ];
    for (name, request, least) in cases {
        let patient = Patience::new(u64::MAX);
        let expected = searcher.search_with(&request, &patient).unwrap();
        assert_eq!(places(&expected.hits), places(&searcher.search(&request).unwrap().hits), "{name}");
        let tests = patient.tests.load(Ordering::Relaxed);
        assert!(tests >= least, "{name}: {tests} tests");
        for most in (0..tests).step_by(usize::try_from(tests / 20).unwrap().max(1)) {
            let impatient = Patience::new(most);
            let error = searcher.search_with(&request, &impatient).unwrap_err();
            assert!(error.is_cancelled(), "{name} after {most} tests: {error}");
            // It ends at once.
            assert_eq!(impatient.tests.load(Ordering::Relaxed), most + 1, "{name}");
        }
    }
}
