//! Segment builder: the records of the reference, the same bytes for any number of threads, exact results.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tercet_core::source::Memory;
use tercet_tatami::search::evaluate::{self, Judgements, Measures};
use tercet_tatami::search::{
    Analyzer, AnalyzerChoice, Document, Query, Ranking, SearchOptions, Segment, SegmentBuilder,
    SegmentOptions, StorageMode, analyze, build, score,
};
use tercet_tatami::{Expr, File, Provenance, ReadOptions, Values, WriterOptions};

#[derive(Clone, Debug, Default)]
struct Page {
    id: String,
    url: String,
    title: String,
    body: String,
    anchor: String,
}

impl Page {
    fn document(&self) -> Document<'_> {
        Document::new(&self.url, &self.title)
            .with_id(&self.id)
            .with_body(self.body.as_bytes())
            .with_anchor(self.anchor.as_bytes())
    }

    /// Its terms with their frequencies.
    fn terms(&self) -> BTreeMap<String, u32> {
        let mut out = BTreeMap::new();
        for field in [&self.body, &self.title, &self.anchor, &self.url] {
            for term in analyze::tokens(field.as_bytes()) {
                *out.entry(term).or_insert(0) += 1;
            }
        }
        out
    }

    fn length(&self) -> u32 {
        let fields = [&self.body, &self.title, &self.anchor, &self.url];
        fields.iter().map(|field| analyze::tokens(field.as_bytes()).len().min(65_535) as u32).sum()
    }
}

fn built(pages: &[Page], options: SegmentOptions) -> Vec<u8> {
    let mut builder = SegmentBuilder::new(Cursor::new(Vec::new()), options).unwrap();
    for page in pages {
        builder.add(&page.document()).unwrap();
    }
    builder.finish().unwrap().written.output
}

fn opened(bytes: Vec<u8>) -> Segment {
    let source = Arc::new(Memory::new("segment", bytes));
    File::from_source(source, ReadOptions::new()).unwrap().segment().unwrap().unwrap()
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }

    /// Small numbers are likelier, about as `1 / n`.
    fn zipf(&mut self, end: usize) -> usize {
        let bits = self.below(usize::BITS as usize - end.leading_zeros() as usize);
        (self.below(1 << bits) + (1 << bits) - 1).min(end - 1)
    }
}

fn corpus(seed: u64, pages: usize, terms: usize) -> Vec<Page> {
    let mut random = Random(seed);
    let text = |count: usize, random: &mut Random| {
        (0..count).map(|_| format!("w{}", random.zipf(terms))).collect::<Vec<_>>().join(" ")
    };
    (0..pages)
        .map(|number| {
            let len = 1 + random.zipf(120);
            Page {
                id: format!("d{number:06}"),
                url: format!("https://x.example/{number}"),
                title: text(3, &mut random),
                body: text(len, &mut random),
                anchor: if number % 5 == 0 { text(2, &mut random) } else { String::new() },
            }
        })
        .collect()
}

fn golden() -> Option<(PathBuf, Value, Vec<Page>)> {
    let dir = tercet_testkit::golden("tatami")?;
    let read = |name: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(dir.join(name)).unwrap()).unwrap()
    };
    let (manifest, docs) = (read("manifest.json"), read("docs.json"));
    let text = |page: &Value, key: &str| page[key].as_str().unwrap_or_default().to_owned();
    let pages = docs.as_array().unwrap().iter().map(|page| Page {
        id: text(page, "doc_id"),
        url: text(page, "url"),
        title: text(page, "title"),
        body: text(page, "body"),
        anchor: text(page, "anchor"),
    });
    let pages = pages.collect();
    Some((dir, manifest, pages))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// The common content of two segments of the same documents, for any writer.
fn parts(segment: &Segment) -> (Vec<String>, String) {
    let file = segment.file();
    let columns = file.read_columns(&(0..8).collect::<Vec<_>>()).unwrap();
    let hash = |values: &Values| match values {
        Values::Bytes(strings) => {
            let mut hash = Sha256::new();
            for text in strings.iter() {
                hash.update((text.len() as u64).to_le_bytes());
                hash.update(text);
            }
            hex(&hash.finalize())
        }
        Values::UInt16(norms) => format!("{norms:?}"),
        other => panic!("{other:?}"),
    };
    let mut dump = Sha256::new();
    segment
        .for_each_term(|term, info| {
            dump.update(term);
            dump.update(format!("\t{}\t{}", info.documents, info.singleton));
            for (document, frequency) in info.postings {
                dump.update(format!("\t{document}:{frequency}"));
            }
            dump.update("\n");
        })
        .unwrap();
    (columns.iter().map(|column| hash(&column.values)).collect(), hex(&dump.finalize()))
}

#[test]
fn reference_segments_are_reproduced() {
    let Some((dir, manifest, pages)) = golden() else { return };
    let cases: [(&str, usize, StorageMode, u64); 3] = [
        ("seg_full.tatami", 400, StorageMode::Full, 131_072),
        ("seg_snippet.tatami", 400, StorageMode::Snippet(200), 150),
        ("seg_snippet40.tatami", 60, StorageMode::Snippet(40), 131_072),
    ];
    for (name, count, form, rows) in cases {
        let entry = manifest["files"].as_array().unwrap().iter().find(|entry| entry["path"] == name).unwrap();
        let reference = File::open(dir.join(name)).unwrap().segment().unwrap().unwrap();
        let (columns, _) = parts(&reference);
        for writer in [WriterOptions::new(), WriterOptions::interop()] {
            let options =
                SegmentOptions::new().with_mode(form).with_writer(writer.with_row_group_max_rows(rows));
            let segment = opened(built(&pages[..count], options));
            let (ours, dump) = parts(&segment);
            assert_eq!(ours, columns, "{name}");
            assert_eq!(dump, entry["terms_dump_sha256"].as_str().unwrap(), "{name}");
            assert_eq!(segment.is_snippet_only(), form != StorageMode::Full);
            for query in entry["queries"].as_array().unwrap() {
                let k = usize::try_from(query["k"].as_i64().unwrap().max(0)).unwrap();
                let hits = segment.search(query["q"].as_str().unwrap(), k).unwrap();
                let found: Vec<(u64, String)> = hits
                    .iter()
                    .map(|hit| (hit.document.into(), format!("{:08x}", hit.score.to_bits())))
                    .collect();
                let expected: Vec<(u64, String)> = query["hits"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|hit| (hit[0].as_u64().unwrap(), hit[3].as_str().unwrap().to_owned()))
                    .collect();
                assert_eq!(found, expected, "{name} {query}");
            }
        }
    }
}

#[test]
fn ids_are_hashes_of_urls() {
    let Some((_, _, pages)) = golden() else { return };
    let named = pages.iter().filter(|page| page.id == build::doc_id(&page.url)).count();
    assert!(named > pages.len() / 2, "{named}");
}

#[test]
fn an_empty_segment_is_valid() {
    for form in [StorageMode::Full, StorageMode::Snippet(200)] {
        let segment = opened(built(&[], SegmentOptions::new().with_mode(form)));
        assert_eq!((segment.document_count(), segment.term_count()), (0, 0));
        assert!(segment.search("anything", 10).unwrap().is_empty());
        let options = SearchOptions::new(10).with_ranking(Ranking::Bm25);
        assert!(segment.find(&Query::parse("+a b").unwrap(), &options).unwrap().hits.is_empty());
    }
}

/// Threads and memory change no byte. The corpus has several blocks of text, and one document larger than a block.
#[test]
fn threads_and_memory_change_no_byte() {
    let mut pages = corpus(7, 12_000, 30_000);
    pages[500].body = (0..400_000).map(|n| format!("long{}", n % 50_000)).collect::<Vec<_>>().join(" ");
    let make = |threads: usize, memory: u64| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let writer = WriterOptions::new().with_provenance(Provenance::Off);
        let options = SegmentOptions::new().with_writer(writer).with_memory_bytes(memory);
        pool.install(|| built(&pages, options))
    };
    let one = make(1, 1 << 30);
    assert_eq!(make(8, 1 << 30), one, "threads");
    assert_eq!(make(3, 1), one, "every run in a file");
    assert_eq!(make(2, 3 << 20), one, "some runs in files");
}

const RANKINGS: [Ranking; 3] = [Ranking::Native, Ranking::Bm25, Ranking::Relevance];

/// The score of a document for a query.
type Score<'a> = Box<dyn Fn(usize) -> Option<f32> + 'a>;

/// A naive scorer: every document, every term, in query order.
struct Oracle {
    pages: Vec<(BTreeMap<String, u32>, u32)>,
    average: f64,
    found: BTreeMap<String, u64>,
    occurrences: BTreeMap<String, u64>,
    bodies: Vec<[Vec<String>; 3]>,
}

impl Oracle {
    fn new(pages: &[Page]) -> Self {
        let total: u64 = pages.iter().map(|page| u64::from(page.length())).sum();
        let average = total as f64 / pages.len() as f64;
        let (mut found, mut occurrences) = (BTreeMap::new(), BTreeMap::new());
        for (term, frequency) in pages.iter().flat_map(Page::terms) {
            *found.entry(term.clone()).or_insert(0) += 1;
            *occurrences.entry(term).or_insert(0) += u64::from(frequency);
        }
        let tokens = |text: &str| analyze::tokens(text.as_bytes());
        Self {
            bodies: pages
                .iter()
                .map(|page| [tokens(&page.body), tokens(&page.title), tokens(&page.url)])
                .collect(),
            pages: pages.iter().map(|page| (page.terms(), page.length())).collect(),
            average,
            found,
            occurrences,
        }
    }

    fn score(&self, ranking: Ranking, document: usize, term: &str) -> Option<f32> {
        let (terms, length) = &self.pages[document];
        let frequency = *terms.get(term)?;
        let found = self.found[term];
        let idf = score::idf(self.pages.len() as u64, found);
        let bm25 = |k1: f32, b: f32| {
            let factor = k1 * (1.0 - b + b * (f64::from(*length) / self.average) as f32);
            frequency as f32 * (k1 + 1.0) / (frequency as f32 + factor)
        };
        Some(match ranking {
            Ranking::Native => score::term(idf, frequency),
            Ranking::Bm25 => idf * bm25(1.2, 0.75),
            Ranking::Relevance => {
                idf * (self.occurrences[term] as f64 / found as f64) as f32 * bm25(0.9, 0.4)
            }
        })
    }

    fn holds(&self, document: usize, phrase: &[&str]) -> bool {
        self.bodies[document]
            .iter()
            .any(|text| text.windows(phrase.len()).any(|some| some.iter().eq(phrase.iter())))
    }

    /// The best documents by a scoring function.
    fn best(
        &self,
        k: usize,
        allowed: &dyn Fn(usize) -> bool,
        score: &dyn Fn(usize) -> Option<f32>,
    ) -> Vec<(u32, u32)> {
        let mut out: Vec<(u32, f32)> = (0..self.pages.len())
            .filter(|document| allowed(*document))
            .filter_map(|document| Some((document as u32, score(document)?)))
            .collect();
        out.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        out.truncate(k);
        out.into_iter().map(|(document, score)| (document, score.to_bits())).collect()
    }
}

fn bits(segment: &Segment, query: &str, options: &SearchOptions<'_>) -> Vec<(u32, u32)> {
    let found = segment.find(&Query::parse(query).unwrap(), options).unwrap();
    found.hits.iter().map(|hit| (hit.document, hit.score.to_bits())).collect()
}

#[test]
fn block_skipping_does_not_change_results() {
    for (seed, pages, terms) in [(1, 900, 40), (2, 3000, 2000), (3, 60, 300)] {
        let pages = corpus(seed, pages, terms);
        let oracle = Oracle::new(&pages);
        let segment = opened(built(&pages, SegmentOptions::new().snippet_only()));
        let mut random = Random(seed + 100);
        let even = segment.filter(&Expr::parse("norm_body >= 8").unwrap()).unwrap();
        for round in 0..500 {
            let count = 1 + random.below(5);
            let query: Vec<String> = (0..count).map(|_| format!("w{}", random.zipf(terms))).collect();
            let k = [1, 3, 10, 100, 10_000][random.below(5)];
            let rank = RANKINGS[round % 3];
            let filter = (round % 5 == 0).then_some(&even);
            let options = SearchOptions::new(k).with_ranking(rank).with_filter(filter);
            let allowed = |document: usize| filter.is_none_or(|mask| mask.get(document));
            let expected = oracle.best(k, &allowed, &|document| {
                let mut sum = None;
                for term in &query {
                    if let Some(score) = oracle.score(rank, document, term) {
                        sum = Some(sum.unwrap_or(0.0) + score);
                    }
                }
                sum
            });
            assert_eq!(bits(&segment, &query.join(" "), &options), expected, "{query:?} {k} {rank:?}");
        }
    }
}

#[test]
fn query_operators_and_parentheses_are_applied() {
    let pages = corpus(11, 700, 120);
    let oracle = Oracle::new(&pages);
    let segment = opened(built(&pages, SegmentOptions::new()));
    let mut random = Random(5);
    for round in 0..60 {
        let terms: Vec<String> = (0..4).map(|_| format!("w{}", random.zipf(120))).collect();
        let [a, b, c, d] = [&terms[0][..], &terms[1], &terms[2], &terms[3]];
        let rank = RANKINGS[round % 3];
        let k = [1, 10, 5000][round / 3 % 3];
        let score = |document: usize, term: &str| oracle.score(rank, document, term);
        let add = |sum: f32, document: usize, terms: &[&str]| {
            terms.iter().filter_map(|term| score(document, term)).fold(sum, |sum, score| sum + score)
        };
        let has = |document: usize, term: &str| score(document, term).is_some();
        let cases: [(String, Score<'_>); 6] = [
            (format!("{a} AND {b}"), Box::new(|n| (has(n, a) && has(n, b)).then(|| add(0.0, n, &[a, b])))),
            (format!("+{a} {b} -{c}"), Box::new(|n| (has(n, a) && !has(n, c)).then(|| add(0.0, n, &[a, b])))),
            (
                format!("({a} {b}) AND ({c} OR {d})"),
                Box::new(|n| {
                    ((has(n, a) || has(n, b)) && (has(n, c) || has(n, d))).then(|| add(0.0, n, &[a, b, c, d]))
                }),
            ),
            (
                format!("{a} ({b} AND {c}) NOT {d}"),
                Box::new(|n| {
                    let both = has(n, b) && has(n, c);
                    if has(n, d) || !(has(n, a) || both) {
                        return None;
                    }
                    let sum = add(0.0, n, &[a]);
                    Some(if both { add(sum, n, &[b, c]) } else { sum })
                }),
            ),
            (
                format!("\"{a} {b}\" {c}"),
                Box::new(|n| {
                    let phrase = oracle.holds(n, &[a, b]);
                    if !phrase && !has(n, c) {
                        return None;
                    }
                    let sum = if phrase { add(0.0, n, &[a, b]) } else { 0.0 };
                    Some(add(sum, n, &[c]))
                }),
            ),
            (
                format!("{a} -\"{b} {c}\""),
                Box::new(|n| (has(n, a) && !oracle.holds(n, &[b, c])).then(|| add(0.0, n, &[a]))),
            ),
        ];
        for (query, score) in cases {
            let options = SearchOptions::new(k).with_ranking(rank);
            assert_eq!(bits(&segment, &query, &options), oracle.best(k, &|_| true, &score), "{query} {k}");
        }
    }
}

#[test]
fn phrase_queries_read_few_documents() {
    let pages = corpus(12, 800, 60);
    let oracle = Oracle::new(&pages);
    let segment = opened(built(&pages, SegmentOptions::new()));
    for (a, b) in [("w1", "w2"), ("w0", "w40"), ("w30", "w31"), ("w5", "nothing")] {
        let query = Query::parse(&format!("\"{a} {b}\"")).unwrap();
        let found = segment.find(&query, &SearchOptions::new(1000)).unwrap();
        let both = |document: &usize| {
            oracle.score(Ranking::Native, *document, a).is_some()
                && oracle.score(Ranking::Native, *document, b).is_some()
        };
        let most = (0..pages.len()).filter(both).count() as u64;
        assert!(found.stats.documents_read <= most, "{a} {b}: {} of {most}", found.stats.documents_read);
    }
    let short = opened(built(&pages, SegmentOptions::new().snippet_only()));
    let error = short.find(&Query::parse("\"w1 w2\"").unwrap(), &SearchOptions::new(10)).unwrap_err();
    assert!(error.to_string().contains("snippet-only"), "{error}");
}

/// A frequent and a rare term: most blocks of the frequent one are skipped.
#[test]
fn a_rare_term_skips_blocks_of_a_frequent_term() {
    let mut pages = corpus(13, 40_000, 5000);
    for number in (0..pages.len()).step_by(pages.len() / 12) {
        pages[number].body.push_str(" needle needle needle");
    }
    let segment = opened(built(&pages, SegmentOptions::new().snippet_only()));
    let (_, all) = segment.search_with_stats("w0 needle", usize::MAX >> 1).unwrap();
    let (_, some) = segment.search_with_stats("w0 needle", 10).unwrap();
    assert!(all.blocks_decoded > 100, "{all:?}");
    assert!(
        some.blocks_decoded * 5 < all.blocks_decoded,
        "{} of {}",
        some.blocks_decoded,
        all.blocks_decoded
    );
    assert_eq!(some.blocks, some.blocks_decoded + some.blocks_skipped);
}

/// Every changed byte and every truncation is detected or does not change what is read.
#[test]
fn damage_in_a_segment_is_detected_or_harmless() {
    let pages = corpus(3, 40, 30);
    let bytes = built(&pages, SegmentOptions::new().snippet_only());
    let answer = |bytes: Vec<u8>| -> Result<_, tercet_tatami::Error> {
        let file = File::from_source(Arc::new(Memory::new("segment", bytes)), ReadOptions::new())?;
        let Some(segment) = file.segment()? else { return Ok(None) };
        let hits = segment.search("w0 w1 w2 w3", 10)?;
        let bits: Vec<(u32, u32)> = hits.iter().map(|hit| (hit.document, hit.score.to_bits())).collect();
        let options = SearchOptions::new(5).with_ranking(Ranking::Bm25);
        let more = segment.find(&Query::parse("+w0 w1 -w7").unwrap(), &options)?.hits;
        let stored = segment.documents(&(0..40).collect::<Vec<_>>())?;
        Ok(Some((bits, more, stored)))
    };
    let right = answer(bytes.clone()).unwrap();
    assert!(right.is_some());
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 1 << (at % 8);
        if let Ok(found) = answer(bad) {
            // The header checksum covers the flags: a segment stays a segment.
            assert_eq!(found, right, "byte {at}");
        }
        assert!(answer(bytes[..at].to_vec()).is_err(), "cut at {at}");
    }
}

#[test]
fn explanations_sum_to_the_score() {
    let pages = corpus(21, 300, 50);
    let segment = opened(built(&pages, SegmentOptions::new()));
    let query = Query::parse("w1 +w3 -w9 w1").unwrap();
    for rank in RANKINGS {
        let options = SearchOptions::new(20).with_ranking(rank);
        let found = segment.find(&query, &options).unwrap();
        assert!(!found.hits.is_empty());
        for hit in found.hits {
            let terms = segment.explain(&query, &options, hit.document).unwrap();
            assert_eq!(terms.len(), 3);
            let sum = terms.iter().fold(0.0f32, |sum, term| sum + term.score);
            assert_eq!(sum.to_bits(), hit.score.to_bits());
        }
    }
}

/// An untuned ranking of the Vaswani collection: 11,429 abstracts, 93 queries with known answers.
#[test]
fn known_answers_are_found() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/text/vaswani");
    let Ok(text) = std::fs::read_to_string(dir.join("docs.trec")) else { return };
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    let topics = evaluate::parse_topics(&read("queries.trec").to_lowercase()).unwrap();
    let judged = Judgements::parse(&read("qrels.txt")).unwrap();
    let segment = |analyzer: AnalyzerChoice| {
        let options = SegmentOptions::new().snippet_only().with_analyzer(analyzer);
        let mut builder = SegmentBuilder::new(Cursor::new(Vec::new()), options).unwrap();
        for document in text.split("</DOC>").filter(|document| document.contains("<DOCNO>")) {
            let (id, body) = document.split_once("<DOCNO>").unwrap().1.split_once("</DOCNO>").unwrap();
            builder.add(&Document::new("", "").with_id(id.trim()).with_body(body.as_bytes())).unwrap();
        }
        opened(builder.finish().unwrap().written.output)
    };
    let (plain, auto) = (segment(AnalyzerChoice::Fixed(Analyzer::PLAIN)), segment(AnalyzerChoice::Auto));
    assert_eq!(auto.analyzer().name(), "english");
    let cases = [
        (&plain, Ranking::Native, 0.18, 0.35),
        (&plain, Ranking::Bm25, 0.19, 0.36),
        // BM25 over stems, as other engines rank by default.
        (&auto, Ranking::Bm25, 0.255, 0.43),
        (&auto, Ranking::Relevance, 0.28, 0.46),
    ];
    for (segment, rank, least_map, least_gain) in cases {
        let measures: Vec<Measures> = topics
            .iter()
            .filter_map(|topic| {
                let query = Query::terms(&topic.text);
                let query = if rank == Ranking::Native { query } else { query.dedup_terms() };
                let options = SearchOptions::new(evaluate::DEPTH).with_ranking(rank);
                let hits = segment.find(&query, &options).unwrap().hits;
                let documents: Vec<u32> = hits.iter().map(|hit| hit.document).collect();
                let stored = segment.documents(&documents).unwrap();
                let ranking: Vec<String> = stored.into_iter().map(|stored| stored.doc_id).collect();
                judged.measure(&topic.id, &ranking)
            })
            .collect();
        let mean = Measures::mean(&measures);
        println!("{} {rank:?}: {mean:?}", segment.analyzer());
        assert!(mean.queries > 80 && mean.map_100 >= least_map && mean.ndcg_10 >= least_gain, "{mean:?}");
    }
}
