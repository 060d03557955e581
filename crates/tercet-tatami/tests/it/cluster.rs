//! Clusters of reference segments: the same hits with the same scores, bit for bit.

use serde_json::Value;
use tercet_tatami::File;
use tercet_tatami::search::{Cluster, GlobalHit, Routing, Segment, SegmentSet};

fn golden() -> Option<(std::path::PathBuf, Value, Vec<Segment>)> {
    let dir = tercet_testkit::golden("tatami")?.join("cluster");
    let text = std::fs::read_to_string(dir.join("../manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    let open = |shard: usize| {
        File::open(dir.join(format!("shard-{shard}.tatami"))).unwrap().segment().unwrap().unwrap()
    };
    let segments = (0..3).map(open).collect();
    Some((dir, manifest["cluster"].clone(), segments))
}

fn summaries(hits: &[GlobalHit]) -> Vec<(u64, String, String)> {
    let summaries = hits.iter().map(|hit| {
        let id = String::from_utf8(hit.doc_id[..16].to_vec()).unwrap();
        (hit.document.into(), id, format!("{:08x}", hit.score.to_bits()))
    });
    summaries.collect()
}

fn expected(hits: &Value) -> Vec<(u64, String, String)> {
    let hits = hits.as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    hits.map(|hit| (hit[0].as_u64().unwrap(), text(&hit[1]), text(&hit[3]))).collect()
}

#[test]
fn cluster_and_index_match_the_reference() {
    let Some((_, cluster, segments)) = golden() else { return };
    let ours = Cluster::new(&segments);
    assert_eq!(ours.documents(), cluster["num_docs"].as_u64().unwrap());
    let queries = cluster["queries"].as_array().unwrap();
    assert_eq!(queries.len(), 36);
    for query in queries {
        let (text, k) = (query["q"].as_str().unwrap(), query["k"].as_u64().unwrap() as usize);
        let (hits, stats) = ours.search(text, k).unwrap();
        assert_eq!(summaries(&hits), expected(&query["cluster_hits"]), "{text}");
        assert_eq!(stats.candidates, query["candidates"].as_u64().unwrap(), "{text}");
        assert!(stats.visited <= stats.candidates);
        let threshold: f32 = query["threshold"].as_str().unwrap().parse().unwrap();
        assert_eq!(stats.threshold.to_bits(), threshold.to_bits(), "{text}");
        let hits = SegmentSet::new(&segments).search(text, k).unwrap();
        assert_eq!(summaries(&hits), expected(&query["index_hits"]), "{text}");
    }
}

#[test]
fn routing_bytes_match_the_reference() {
    let Some((dir, cluster, segments)) = golden() else { return };
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
    let routing = Routing::build(&segments).unwrap();
    assert_eq!(routing.terms.len() as u64, cluster["routing_terms"].as_u64().unwrap());
    let (portable, mappable) = (read("routing.uvarint"), read("routing.bin"));
    assert_eq!(Routing::parse_portable(&portable).unwrap(), routing);
    assert_eq!(Routing::parse_mappable(&mappable).unwrap(), routing);
    assert_eq!(routing.to_portable(), portable);
    assert_eq!(routing.to_mappable(), mappable);
}

#[test]
fn damaged_routing_is_rejected_or_valid() {
    let Some((dir, _, _)) = golden() else { return };
    for (name, parse) in [
        ("routing.uvarint", Routing::parse_portable as fn(&[u8]) -> Result<Routing, _>),
        ("routing.bin", Routing::parse_mappable),
    ] {
        let mut bytes = std::fs::read(dir.join(name)).unwrap();
        for cut in (0..bytes.len()).step_by(bytes.len() / 50) {
            assert!(parse(&bytes[..cut]).is_err(), "{name} cut at {cut}");
        }
        let all = 0..bytes.len();
        for at in (0..160).chain(all.step_by(bytes.len() / 60)) {
            bytes[at] ^= 0x81;
            if let Ok(other) = parse(&bytes) {
                // A routing that parses can be encoded again.
                assert_eq!(Routing::parse_portable(&other.to_portable()).unwrap(), other, "{name} byte {at}");
            }
            bytes[at] ^= 0x81;
        }
    }
}
