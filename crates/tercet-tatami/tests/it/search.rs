//! Search segments of the reference: the same terms, ranking and scores, bit for bit.

use serde_json::Value;
use sha2::{Digest, Sha256};
use tercet_tatami::File;
use tercet_tatami::search::{Segment, analyze, score};

fn manifest() -> Option<(std::path::PathBuf, Value)> {
    let dir = tercet_testkit::golden("tatami")?;
    let text = std::fs::read_to_string(dir.join("manifest.json")).unwrap();
    Some((dir, serde_json::from_str(&text).unwrap()))
}

fn segments() -> Vec<(Segment, Value)> {
    let Some((dir, manifest)) = manifest() else { return Vec::new() };
    let files = manifest["files"].as_array().unwrap();
    files
        .iter()
        .filter_map(|entry| {
            let file = File::open(dir.join(entry["path"].as_str().unwrap())).unwrap();
            Some((file.segment().unwrap()?, entry.clone()))
        })
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

#[test]
fn tokens_and_snippets_match_the_reference() {
    let Some((_, manifest)) = manifest() else { return };
    let mut checked = 0;
    for group in manifest["tokenizer_vectors"].as_array().unwrap() {
        for vector in group["tokenize"].as_array().into_iter().flatten() {
            let text = unhex(vector["text_hex"].as_str().unwrap());
            let expected: Vec<&str> = vector["tokens"]
                .as_array()
                .map_or(Vec::new(), |tokens| tokens.iter().map(|token| token.as_str().unwrap()).collect());
            assert_eq!(analyze::tokens(&text), expected, "{:?}", String::from_utf8_lossy(&text));
            checked += 1;
        }
        for vector in group["snippet"].as_array().into_iter().flatten() {
            let text = unhex(vector["body_hex"].as_str().unwrap());
            let limit = usize::try_from(vector["max_runes"].as_u64().unwrap()).unwrap();
            assert_eq!(analyze::snippet(&text, limit), vector["snippet"].as_str().unwrap(), "{vector}");
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
}

#[test]
fn query_hits_match_the_reference_bit_for_bit() {
    let mut queries = 0;
    for (segment, entry) in segments() {
        for query in entry["queries"].as_array().into_iter().flatten() {
            let text = query["q"].as_str().unwrap();
            let k = usize::try_from(query["k"].as_i64().unwrap().max(0)).unwrap();
            let hits = segment.search(text, k).unwrap();
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
            assert_eq!(found, expected, "{} `{text}`", segment.file().name());
            queries += 1;
        }
    }
    assert!(queries == 0 || queries >= 150, "{queries}");
}

#[test]
fn postings_match_the_reference() {
    for (segment, entry) in segments() {
        let mut hash = Sha256::new();
        segment
            .for_each_term(|term, info| {
                hash.update(term);
                hash.update(format!("\t{}\t{}", info.documents, info.singleton));
                for (document, frequency) in info.postings {
                    hash.update(format!("\t{document}:{frequency}"));
                }
                hash.update("\n");
            })
            .unwrap();
        let found = hex(&hash.finalize());
        if let Some(expected) = entry["terms_dump_sha256"].as_str() {
            assert_eq!(found, expected, "{}", segment.file().name());
        }
        let expected = &entry["segment"];
        assert_eq!(segment.document_count(), expected["num_docs"].as_u64().unwrap());
        assert_eq!(segment.live_document_count(), expected["live_docs"].as_u64().unwrap());
        assert_eq!(segment.term_count(), expected["num_terms"].as_u64().unwrap());
        assert_eq!(segment.is_snippet_only(), expected["snippet_only"].as_bool().unwrap());
    }
}

#[test]
fn block_skipping_does_not_change_results() {
    for (segment, _) in segments() {
        let mut terms: Vec<(String, Vec<(u32, u32)>)> = Vec::new();
        segment
            .for_each_term(|term, info| {
                terms.push((String::from_utf8(term.to_vec()).unwrap(), info.postings));
            })
            .unwrap();
        if terms.is_empty() {
            continue;
        }
        terms.sort_by_key(|(_, postings)| std::cmp::Reverse(postings.len()));
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(state >> 33).unwrap() % below
        };
        for round in 0..200 {
            let count = 1 + round % 4;
            let picked: Vec<usize> = (0..count)
                .map(|_| if random(2) == 0 { random(terms.len().min(20)) } else { random(terms.len()) })
                .collect();
            let query: Vec<&str> = picked.iter().map(|at| terms[*at].0.as_str()).collect();
            // All documents, term by term in query order.
            let mut scores = std::collections::BTreeMap::new();
            for at in &picked {
                let postings = &terms[*at].1;
                let idf = score::idf(segment.document_count(), postings.len() as u64);
                for (document, frequency) in postings {
                    *scores.entry(*document).or_insert(0.0f32) += score::term(idf, *frequency);
                }
            }
            let live = segment.live_document_count() == segment.document_count();
            if !live {
                continue;
            }
            let mut expected: Vec<(u32, u32)> =
                scores.into_iter().map(|(document, score)| (document, score.to_bits())).collect();
            expected.sort_by(|a, b| f32::from_bits(b.1).total_cmp(&f32::from_bits(a.1)).then(a.0.cmp(&b.0)));
            let k = [1, 3, 10, 1000][round % 4];
            expected.truncate(k);
            let found: Vec<(u32, u32)> = segment
                .search(&query.join(" "), k)
                .unwrap()
                .into_iter()
                .map(|hit| (hit.document, hit.score.to_bits()))
                .collect();
            assert_eq!(found, expected, "{query:?}");
        }
    }
}
