//! A merged segment equals one built from the same documents.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_tatami::search::{
    Cluster, DeleteBy, DeleteOptions, Document, MergeOptions, Query, Ranking, SearchOptions, Segment,
    SegmentBuilder, SegmentOptions, delete, merge,
};
use tercet_tatami::{ErrorKind, File, ReadOptions, Scalar, VerifyOptions, WriterOptions, verify};

/// A document: ID, title and body.
type Page = (String, String, String);

fn built(pages: &[Page], snippets: bool) -> Vec<u8> {
    let options = if snippets { SegmentOptions::new().snippet_only() } else { SegmentOptions::new() };
    let mut builder = SegmentBuilder::new(Cursor::new(Vec::new()), options).unwrap();
    for (id, title, body) in pages {
        let url = format!("https://example.org/{id}");
        builder.add(&Document::new(&url, title).with_id(id).with_body(body.as_bytes())).unwrap();
    }
    builder.finish().unwrap().written.output
}

fn open(bytes: &[u8]) -> Segment {
    let source = Memory::new("segment", bytes.to_vec());
    File::from_source(Arc::new(source), ReadOptions::new()).unwrap().segment().unwrap().unwrap()
}

fn merged(segments: &[Segment], dedup: bool) -> Vec<u8> {
    let options = MergeOptions::default().with_dedup(dedup);
    merge(segments, Cursor::new(Vec::new()), options, &NoProgress).unwrap().written.output
}

/// The payloads of term dictionary, postings and skip tables.
fn inverted(bytes: &[u8]) -> [Vec<u8>; 3] {
    let file = File::from_source(Arc::new(Memory::new("a", bytes.to_vec())), ReadOptions::new()).unwrap();
    let inverted = file.footer().inverted.unwrap();
    let part =
        |offset: u64, length: u64| bytes[offset as usize + 32..(offset + 32 + length) as usize].to_vec();
    [
        part(inverted.term_dict_offset, inverted.term_dict_length),
        part(inverted.postings_offset, inverted.postings_length),
        part(inverted.skips_offset, inverted.skips_length),
    ]
}

fn columns(bytes: &[u8]) -> Vec<Vec<Option<Scalar>>> {
    let file = File::from_source(Arc::new(Memory::new("a", bytes.to_vec())), ReadOptions::new()).unwrap();
    let all: Vec<usize> = (0..file.schema().len()).collect();
    let columns = file.read_columns(&all).unwrap();
    columns.iter().map(|column| (0..column.len()).map(|row| column.scalar(row)).collect()).collect()
}

fn assert_valid(bytes: &[u8]) {
    let source = Arc::new(Memory::new("a", bytes.to_vec()));
    let report = verify(source, VerifyOptions::default().with_deep(true), &NoProgress).unwrap();
    assert!(report.ok, "{report:?}");
}

fn same(one: &[u8], other: &[u8]) {
    assert_eq!(inverted(one), inverted(other), "words, lists and skip tables");
    assert_eq!(columns(one), columns(other), "rows");
    assert_valid(one);
}

fn page() -> impl Strategy<Value = Page> {
    let term = prop_oneof![3 => "[a-c]", 1 => "[a-z]{2,3}"];
    let text = prop::collection::vec(term, 0..30).prop_map(|terms| terms.join(" "));
    ("[0-9]{1,2}", "[a-c]{1,2}", text)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(32)))]

    #[test]
    fn a_merged_segment_equals_a_segment_built_at_once(
        parts in prop::collection::vec(prop::collection::vec(page(), 0..60), 1..4),
        deleted in prop::collection::vec(0..60usize, 0..8),
        snippets in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut segments = Vec::new();
        let mut left: Vec<Page> = Vec::new();
        for (number, pages) in parts.iter().enumerate() {
            // IDs are made unique, so that the deleted documents are known.
            let pages: Vec<Page> =
                pages.iter().enumerate().map(|(at, page)| (format!("{number}-{at}"), page.1.clone(), page.2.clone())).collect();
            let path = dir.path().join(format!("{number}.tatami"));
            std::fs::write(&path, built(&pages, snippets)).unwrap();
            let deleted_ids: Vec<String> = deleted.iter().map(|at| format!("{number}-{at}")).collect();
            delete(&path, &DeleteBy::Ids(&deleted_ids), DeleteOptions::new()).unwrap();
            left.extend(pages.into_iter().filter(|page| !deleted_ids.contains(&page.0)));
            segments.push(File::open(&path).unwrap().segment().unwrap().unwrap());
        }
        same(&merged(&segments, false), &built(&left, snippets));
    }

    #[test]
    fn the_last_document_of_each_id_is_kept(
        parts in prop::collection::vec(prop::collection::vec(page(), 0..40), 1..4),
    ) {
        let segments: Vec<Segment> = parts.iter().map(|pages| open(&built(pages, false))).collect();
        let all: Vec<&Page> = parts.iter().flatten().collect();
        let mut last: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, page) in all.iter().enumerate() {
            last.insert(&page.0, at);
        }
        let kept: Vec<Page> =
            all.iter().enumerate().filter(|(at, page)| last[page.0.as_str()] == *at).map(|(_, page)| (*page).clone()).collect();
        same(&merged(&segments, true), &built(&kept, false));
    }

    /// Clusters without deletes rank like one segment with all documents.
    #[test]
    fn a_cluster_scores_as_one_segment(
        parts in prop::collection::vec(prop::collection::vec(page(), 1..50), 1..5),
        query in prop::collection::vec("[a-c]", 1..4),
        k in 1..30usize,
    ) {
        let named: Vec<Vec<Page>> = parts
            .iter()
            .enumerate()
            .map(|(number, pages)| pages.iter().enumerate().map(|(at, page)| (format!("{number}-{at}"), page.1.clone(), page.2.clone())).collect())
            .collect();
        let segments: Vec<Segment> = named.iter().map(|pages| open(&built(pages, true))).collect();
        let one = open(&built(&named.concat(), true));
        let query = Query::terms(&query.join(" "));
        let cluster = Cluster::new(&segments);
        // Twice, because a search caches block statistics for the next one.
        for rank in [Ranking::Bm25, Ranking::Native, Ranking::Relevance, Ranking::Bm25, Ranking::Relevance] {
            let options = SearchOptions::new(k).with_ranking(rank);
            for segment in &segments {
                segment.find(&query, &options).unwrap();
            }
            let (hits, stats) = cluster.find(&query, &options, None).unwrap();
            let whole = one.find(&query, &options).unwrap().hits;
            let bits = |scores: Vec<f32>| scores.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            prop_assert_eq!(
                bits(hits.iter().map(|hit| hit.score).collect()),
                bits(whole.iter().map(|hit| hit.score).collect())
            );
            prop_assert!(hits.is_sorted_by(|a, b| (b.score, &a.doc_id) < (a.score, &b.doc_id)));
            prop_assert!(stats.visited <= stats.candidates && stats.candidates <= segments.len() as u64);
            for hit in &hits {
                let terms = cluster.explain(&query, &options, hit).unwrap();
                let sum = terms.iter().fold(0.0f32, |sum, term| sum + term.score);
                prop_assert_eq!(sum.to_bits(), hit.score.to_bits());
            }
        }
    }
}

/// The merged segment of the reference, rebuilt from its documents.
#[test]
fn merging_reproduces_the_reference_segment() {
    let Some(golden) = tercet_testkit::golden("tatami") else { return };
    let read = |name: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(golden.join(name)).unwrap()).unwrap()
    };
    let docs = read("docs.json");
    let docs = docs.as_array().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, docs: &[Value]| {
        let path = dir.path().join(name);
        let options = SegmentOptions::new().snippet_only();
        let mut builder = SegmentBuilder::create(&path, options.with_overwrite(true)).unwrap();
        for doc in docs {
            let text = |field: &str| doc[field].as_str().unwrap_or_default();
            let document = Document::new(text("url"), text("title"))
                .with_id(text("doc_id"))
                .with_body(text("body").as_bytes())
                .with_anchor(text("anchor").as_bytes());
            builder.add(&document).unwrap();
        }
        builder.finish().unwrap();
        path
    };
    let (first, second) = (write("a.tatami", &docs[..90]), write("b.tatami", &docs[90..200]));
    let deleted_ids: Vec<String> =
        docs[..90].iter().step_by(5).map(|doc| doc["doc_id"].as_str().unwrap().to_owned()).collect();
    delete(&first, &DeleteBy::Ids(&deleted_ids), DeleteOptions::new()).unwrap();
    let segment = |path: &Path| File::open(path).unwrap().segment().unwrap().unwrap();
    let ours = merged(&[segment(&first), segment(&second)], false);
    let manifest = read("manifest.json");
    let entry =
        manifest["files"].as_array().unwrap().iter().find(|entry| entry["path"] == "seg_merged.tatami");
    let expected = &entry.unwrap()["layout"]["inverted"];
    let [_, postings, skips] = inverted(&ours);
    let hash = |bytes: &[u8]| format!("{:x}", Sha256::digest(bytes));
    assert_eq!(hash(&postings), expected["postings_payload_sha256"].as_str().unwrap());
    assert_eq!(hash(&skips), expected["skips_payload_sha256"].as_str().unwrap());
    assert_eq!(columns(&ours), columns(&std::fs::read(golden.join("seg_merged.tatami")).unwrap()));
}

#[test]
fn incompatible_segments_are_rejected() {
    let pages = vec![("1".to_owned(), "a".to_owned(), "b".to_owned())];
    let segments = [open(&built(&pages, true)), open(&built(&pages, false))];
    let error = merge(&segments, Cursor::new(Vec::new()), MergeOptions::default(), &NoProgress).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::SchemaMismatch { .. }), "{error}");
    assert!(merge(&[], Cursor::new(Vec::new()), MergeOptions::default(), &NoProgress).is_err());
    let interop = MergeOptions::default().with_writer(WriterOptions::interop());
    let done = merge(&segments[..1], Cursor::new(Vec::new()), interop, &NoProgress).unwrap();
    assert_eq!((done.documents, done.deleted, done.written.rows), (1, 0, 1));
    assert_valid(&done.written.output);
}
