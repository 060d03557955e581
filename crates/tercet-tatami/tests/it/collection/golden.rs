//! The collection of the reference implementation.

use std::path::PathBuf;

use serde_json::Value;
use tercet_tatami::collection::log;
use tercet_tatami::collection::{MANIFEST, ManifestWarning, Member};
use tercet_tatami::predicate::{Comparison, Expr, Literal};
use tercet_tatami::{Collection, ErrorKind, File, Scalar};

fn golden() -> Option<(PathBuf, Value)> {
    let dir = tercet_testkit::golden("tatami")?;
    let text = std::fs::read_to_string(dir.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    Some((dir, manifest["collection"].clone()))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn paths(members: &[Member]) -> Vec<&str> {
    members.iter().map(|member| member.path.as_str()).collect()
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item.as_str().unwrap()).collect()
}

#[test]
fn members_match_the_reference() {
    let Some((dir, expected)) = golden() else { return };
    let collection = Collection::open(dir.join("collection")).unwrap();
    assert_eq!(collection.replay().records, 9);
    assert!(
        (collection.replay().dead_fraction() - expected["dead_fraction"].as_f64().unwrap()).abs() < 1e-12
    );
    let live = expected["live"].as_array().unwrap();
    assert_eq!(collection.members().len(), live.len());
    for (member, expected) in collection.members().iter().zip(live) {
        assert_eq!(member.path, expected["path"].as_str().unwrap());
        assert_eq!(member.rows, expected["rows"].as_u64().unwrap());
        assert_eq!(member.bytes, expected["bytes"].as_u64().unwrap());
        assert_eq!(format!("{:08x}", member.footer_crc), expected["footer_crc"].as_str().unwrap());
        assert_eq!(hex(&member.id), expected["uuid_hex"].as_str().unwrap());
        assert_eq!(u64::from(member.tier), expected["tier"].as_u64().unwrap());
        assert_eq!(member.created_millis, expected["created_millis"].as_u64().unwrap());
        assert_eq!(member.sort_column, expected["sort_column"].as_str().unwrap());
        assert_eq!(u64::from(member.sort_type), expected["sort_type"].as_u64().unwrap());
        assert_eq!(hex(&member.sort_min), expected["sort_min_hex"].as_str().unwrap());
        assert_eq!(hex(&member.sort_max), expected["sort_max_hex"].as_str().unwrap());
        let crawls = if expected["crawls"].is_null() { Vec::new() } else { strings(&expected["crawls"]) };
        assert_eq!(member.crawls, crawls);
        let zones: Vec<Value> = member
            .zones
            .iter()
            .map(|zone| {
                serde_json::json!({"column": zone.column, "type": zone.kind, "min_hex": hex(&zone.min), "max_hex": hex(&zone.max)})
            })
            .collect();
        assert_eq!(Value::from(zones), expected["zones"]);
    }
}

/// Member entries equal those of the reference, including the ID.
#[test]
fn member_entries_match_the_reference() {
    let Some((dir, _)) = golden() else { return };
    let root = dir.join("collection");
    for member in Collection::open(&root).unwrap().members() {
        let file = File::open(root.join(&member.path)).unwrap();
        let mut ours = Member::describe(&member.path, &file);
        (ours.tier, ours.crawls, ours.created_millis) =
            (member.tier, member.crawls.clone(), member.created_millis);
        assert_eq!(ours, *member);
    }
}

#[test]
fn variants_have_the_members_of_the_reference_or_are_reported() {
    let Some((dir, expected)) = golden() else { return };
    for (name, live) in expected["variants"].as_object().unwrap() {
        let bytes = std::fs::read(dir.join(name)).unwrap();
        let replayed = log::replay(&bytes);
        if name.contains("mid_flip") {
            // The reference silently loses every record after the damaged one.
            assert!(matches!(replayed, Err(ErrorKind::ManifestDamaged { .. })), "{name}");
            let saved = log::salvage(&bytes).unwrap();
            assert!(saved.warnings.iter().any(|odd| matches!(odd, ManifestWarning::Damaged { .. })));
            assert_eq!(paths(&saved.members), ["part-0.tatami", "part-1.tatami", "part-3.tatami"]);
            continue;
        }
        let replayed = replayed.unwrap();
        assert_eq!(paths(&replayed.members), strings(live), "{name}");
        let torn = replayed.warnings.iter().any(|odd| matches!(odd, ManifestWarning::TornTail { .. }));
        assert_eq!(torn, name.contains("tail"), "{name}: {:?}", replayed.warnings);
        let unknown = replayed.warnings.iter().any(|odd| matches!(odd, ManifestWarning::UnknownKind { .. }));
        assert_eq!(unknown, name.contains("unknown"), "{name}: {:?}", replayed.warnings);
    }
}

#[test]
fn a_compacted_log_has_the_bytes_of_the_reference() {
    let Some((dir, _)) = golden() else { return };
    let expected = std::fs::read(dir.join("manifests/compacted.manifest")).unwrap();
    let bytes = std::fs::read(dir.join("collection").join(MANIFEST)).unwrap();
    assert_eq!(log::replay(&bytes).unwrap().compacted(), expected);
    let copy = tempfile::tempdir().unwrap();
    std::fs::write(copy.path().join(MANIFEST), &bytes).unwrap();
    let done = Collection::open(copy.path()).unwrap().compact(false).unwrap();
    assert_eq!((done.live, done.records), (3, 9));
    // Ours starts with a record of the length of the log, which other programs skip.
    let ours = std::fs::read(copy.path().join(MANIFEST)).unwrap();
    assert_eq!(ours[..5], expected[..5]);
    assert_eq!(ours[5..15], [&[128, 8][..], &(ours.len() as u64).to_le_bytes()].concat());
    assert_eq!(ours[19..], expected[5..]);
}

fn filter(predicate: &Value) -> Expr {
    let column = predicate["col"].as_str().unwrap().to_owned();
    let value = |name: &str| {
        let text = predicate[name].as_str().unwrap().to_owned();
        if matches!(&*column, "id" | "status") { Literal::Number(text) } else { Literal::Text(text) }
    };
    let test = match predicate["op"].as_str().unwrap() {
        "eq" => Comparison::Eq(value("value")),
        "lt" => Comparison::Lt(value("value")),
        "ge" => Comparison::Ge(value("value")),
        "between" => Comparison::Between(value("value"), value("hi")),
        "is_null" => Comparison::IsNull,
        other => panic!("unknown test {other}"),
    };
    Expr::Comparison { column, test }
}

#[test]
fn scans_match_the_reference() {
    let Some((dir, expected)) = golden() else { return };
    let collection = Collection::open(dir.join("collection")).unwrap();
    let scans = expected["scans"].as_array().unwrap();
    assert_eq!(scans.len(), 6);
    for scan in scans {
        let filter = filter(&scan["pred"]);
        let faulty = scan["reference_fault"] == true;
        let kept: Vec<&str> =
            collection.prune(&filter).unwrap().iter().map(|member| member.path.as_str()).collect();
        if faulty {
            assert_eq!(kept.len(), 3, "nulls are not counted in the manifest");
        } else {
            assert_eq!(kept, strings(&scan["prune_keeps"]), "{scan}");
        }
        let found = collection.scan().columns(&["id"]).unwrap().filter(&filter).unwrap();
        let mut ids: Vec<i64> = Vec::new();
        for batch in found.batches().unwrap() {
            let batch = batch.unwrap().batch;
            let number = |row| match batch.columns[0].scalar(row) {
                Some(Scalar::Int64(id)) => id,
                other => panic!("{other:?}"),
            };
            ids.extend((0..batch.rows.len()).map(number));
        }
        let expected = if faulty { &scan["correct_ids"] } else { &scan["ids"] };
        let expected: Vec<i64> = expected.as_array().unwrap().iter().map(|id| id.as_i64().unwrap()).collect();
        assert_eq!(ids, expected, "{scan}");
        assert_eq!(found.count().unwrap(), expected.len() as u64);
    }
}

#[test]
fn lookups_match_the_reference() {
    let Some((dir, expected)) = golden() else { return };
    let collection = Collection::open(dir.join("collection")).unwrap();
    for lookup in expected["lookups"].as_array().unwrap() {
        let key = lookup["key"].as_str().unwrap();
        if lookup["error"].is_string() {
            let error = collection.lookup(&Scalar::Int32(4)).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::KeyType { .. }), "{error}");
            continue;
        }
        let found = collection.lookup(&collection.parse_key(key).unwrap()).unwrap();
        assert_eq!(found.files_opened, lookup["files_opened"].as_u64().unwrap(), "{key}");
        assert_eq!(found.found.is_some(), lookup["found"].as_bool().unwrap(), "{key}");
        if let Some((member, _, found)) = found.found {
            assert_eq!(member.path, lookup["member"].as_str().unwrap());
            assert_eq!(found.group as u64, lookup["group"].as_u64().unwrap());
            assert_eq!(found.row_in_group, lookup["row"].as_u64().unwrap());
        }
    }
}
