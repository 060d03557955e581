//! Search segments compared with tantivy: the same terms, the same stored fields, one segment, in one process.
//!
//! ```text
//! search run --corpus pages.tatami --dir DIR      documents of a segment that keeps them whole
//! search run --corpus zipf --documents 200000 --dir DIR
//! search bounded --bytes 2147483648 --out FILE       indexes text that is made on the way, for a run with little memory
//! ```

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};
use tercet_bench::search::corpus::{self, Page, Random};
use tercet_bench::search::peer::Peer;
use tercet_bench::{number, option};
use tercet_tatami::File;
use tercet_tatami::search::{
    Document, Query, Ranking, SearchOptions, Segment, SegmentBuilder, SegmentOptions,
};

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("run") => run(),
        Some("bounded") => bounded(),
        _ => panic!("usage: search run|bounded"),
    }
}

/// Indexes a corpus of this many bytes that is never in memory at once.
fn bounded() {
    let (bytes, path) = (number("--bytes", 1 << 31), PathBuf::from(option("--out").expect("--out")));
    let (mut random, mut text_bytes, mut documents) = (Random::new(9), 0, 0);
    let start = Instant::now();
    let mut builder = SegmentBuilder::create(&path, SegmentOptions::new().with_overwrite(true)).unwrap();
    while text_bytes < bytes {
        let page = corpus::zipf(documents, &mut random, 2000, 2_000_000);
        text_bytes += page.body.len() as u64;
        documents += 1;
        builder.add(&Document::new(&page.url, &page.title).with_body(page.body.as_bytes())).unwrap();
    }
    let built = builder.finish().unwrap();
    println!(
        "{}",
        json!({"documents": documents, "text_bytes": text_bytes, "bytes": built.written.bytes, "terms": built.terms,
            "seconds": start.elapsed().as_secs_f64()})
    );
}

fn run() {
    let dir = PathBuf::from(option("--dir").expect("--dir"));
    let corpus = option("--corpus").expect("--corpus");
    let max_documents = number("--documents", u64::MAX);
    let pages = match corpus.as_str() {
        "zipf" => {
            let mut random = Random::new(7);
            (0..max_documents).map(|number| corpus::zipf(number, &mut random, 300, 500_000)).collect()
        }
        path => corpus::read(Path::new(path), max_documents),
    };
    let repeat = number("--repeat", 3);
    let (report, segment) = build(&pages, &dir, repeat);
    let (peer_report, peer) = build_peer(&pages, &dir, repeat);
    let text_bytes: usize =
        pages.iter().map(|page| page.body.len() + page.title.len() + page.url.len()).sum();
    let queries = queries(&segment, &pages);
    drop(pages);
    let rounds = usize::try_from(number("--rounds", 7)).unwrap();
    let timed: Vec<Value> =
        queries.iter().map(|(name, queries)| race(name, queries, &segment, &peer, rounds)).collect();
    let result = json!({"documents": segment.document_count(), "terms": segment.term_count(), "text_bytes": text_bytes,
        "ours": report, "peer": peer_report, "queries": timed});
    println!("{result}");
}

fn build(pages: &[Page], dir: &Path, repeat: u64) -> (Value, Segment) {
    let path = dir.join("ours.tatami");
    let mut seconds = Vec::new();
    for _ in 0..repeat {
        let start = Instant::now();
        let mut builder = SegmentBuilder::create(&path, SegmentOptions::new().with_overwrite(true)).unwrap();
        for page in pages {
            let document =
                Document::new(&page.url, &page.title).with_id(&page.id).with_body(page.body.as_bytes());
            builder.add(&document).unwrap();
        }
        builder.finish().unwrap();
        seconds.push(start.elapsed().as_secs_f64());
    }
    let file = File::open(&path).unwrap();
    let inverted = file.footer().inverted.clone().expect("a segment");
    let parts = [inverted.term_dict_length, inverted.postings_length, inverted.skips_length];
    let opening = Instant::now();
    let segment = file.segment().unwrap().unwrap();
    let open_us = opening.elapsed().as_micros();
    let report = json!({"seconds": seconds, "bytes": std::fs::metadata(&path).unwrap().len(),
        "inverted_bytes": parts.iter().sum::<u64>(), "parts": parts, "open_us": open_us});
    (report, segment)
}

fn build_peer(pages: &[Page], dir: &Path, repeat: u64) -> (Value, Peer) {
    let path = dir.join("tantivy");
    let (mut one, mut all) = (Vec::new(), Vec::new());
    for _ in 0..repeat {
        for (threads, seconds) in [(2, &mut all), (1, &mut one)] {
            let start = Instant::now();
            Peer::build(pages, &path, threads);
            seconds.push(start.elapsed().as_secs_f64());
        }
    }
    let peer = Peer::open(&path);
    let sizes = peer.sizes(&path);
    let report = json!({"seconds_one_thread": one, "seconds_two_threads_and_merge": all, "bytes": sizes.all,
        "inverted_bytes": sizes.inverted, "parts": sizes.parts});
    (report, peer)
}

/// Queries of one kind.
type TermQueries = Vec<Vec<String>>;

fn queries(segment: &Segment, pages: &[Page]) -> Vec<(&'static str, TermQueries)> {
    let mut frequent: Vec<(u64, String)> = Vec::new();
    segment
        .for_each_term(|term, info| {
            frequent.push((info.documents, String::from_utf8_lossy(term).into_owned()));
        })
        .unwrap();
    frequent.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    frequent.truncate(30);
    let mut random = Random::new(3);
    // A term at a random position of a random document: frequent and rare ones occur.
    let some = |count: usize, random: &mut Random| -> TermQueries {
        (0..200)
            .map(|_| {
                (0..count)
                    .map(|_| {
                        loop {
                            let page = &pages[random.below(pages.len())];
                            let terms = tercet_tatami::search::analyze::tokens(page.body.as_bytes());
                            if !terms.is_empty() {
                                return terms[random.below(terms.len())].clone();
                            }
                        }
                    })
                    .collect()
            })
            .collect()
    };
    let four: TermQueries = (0..200)
        .map(|_| (0..4).map(|_| frequent[random.below(frequent.len())].1.clone()).collect())
        .collect();
    let mut all = vec![
        ("1 word", some(1, &mut random)),
        ("2 words", some(2, &mut random)),
        ("3 words", some(3, &mut random)),
        ("4 frequent words", four),
    ];
    // To run one kind alone.
    if let Some(kind) = option("--kind") {
        all.retain(|(name, _)| name.starts_with(&kind));
    }
    all
}

/// The three sides alternate over all queries; each query counts with its median.
fn race(name: &str, term_queries: &TermQueries, segment: &Segment, peer: &Peer, rounds: usize) -> Value {
    let side = option("--side");
    let parsed: Vec<Query> = term_queries.iter().map(|terms| Query::terms(&terms.join(" "))).collect();
    let peer_queries: Vec<_> = term_queries.iter().map(|terms| peer.query(terms)).collect();
    let mut times = vec![[const { Vec::new() }; 3]; term_queries.len()];
    let (mut blocks, mut decoded) = (0, 0);
    for round in 0..=rounds {
        for which in 0..3 {
            if side.as_ref().is_some_and(|side| *side != ["ours", "peer", "format"][which]) {
                continue;
            }
            for (index, times) in times.iter_mut().enumerate() {
                let start = Instant::now();
                let found = match which {
                    0 | 2 => {
                        let rank = if which == 0 { Ranking::Bm25 } else { Ranking::Native };
                        let found =
                            segment.find(&parsed[index], &SearchOptions::new(10).with_ranking(rank)).unwrap();
                        if which == 0 && round == rounds {
                            blocks += found.stats.blocks;
                            decoded += found.stats.blocks_decoded;
                        }
                        found.hits.len()
                    }
                    _ => peer.search(&peer_queries[index]).len(),
                };
                let took = start.elapsed().as_nanos() as f64 / 1000.0;
                assert!(found > 0);
                // The first round warms the caches of all.
                if round > 0 {
                    times[which].push(took);
                }
            }
        }
    }
    let timings = |which: usize| {
        let mut all: Vec<f64> = times
            .iter()
            .map(|times| {
                let mut some = times[which].clone();
                some.sort_by(f64::total_cmp);
                some.get(some.len() / 2).copied().unwrap_or(f64::NAN)
            })
            .collect();
        all.sort_by(f64::total_cmp);
        json!({"p50_us": all[all.len() / 2], "p99_us": all[all.len() * 99 / 100]})
    };
    json!({"kind": name, "queries": term_queries.len(), "ours": timings(0), "peer": timings(1), "format": timings(2),
        "blocks": blocks, "blocks_decoded": decoded})
}
