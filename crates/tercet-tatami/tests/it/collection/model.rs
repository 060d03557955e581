//! Changes and scans compared with a naive model.

use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;
use tercet_core::progress::NoProgress;
use tercet_tatami::predicate::Expr;
use tercet_tatami::{Collection, File, Scalar, WriterOptions};

use super::{three, write};

/// One step of a history.
#[derive(Clone, Debug)]
enum Step {
    /// Rewrites a file with this many rows.
    Write(u8, u8),
    Add(u8),
    Remove(u8),
    Tier(u8, u8),
    Compact,
    Torn(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let file = 0..4u8;
    prop_oneof![
        1 => (file.clone(), 1..9u8).prop_map(|(file, rows)| Step::Write(file, rows)),
        3 => file.clone().prop_map(Step::Add),
        1 => file.clone().prop_map(Step::Remove),
        1 => (file, any::<u8>()).prop_map(|(file, tier)| Step::Tier(file, tier)),
        1 => Just(Step::Compact),
        1 => (1..200u8).prop_map(Step::Torn),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(40)))]

    #[test]
    fn replayed_logs_match_a_map_model(steps in prop::collection::vec(step(), 1..25)) {
        let dir = tempfile::tempdir().unwrap();
        let name = |file: u8| format!("{file}.tatami");
        let mut files: BTreeMap<u8, u8> = BTreeMap::new();
        let mut model: BTreeMap<String, (u64, u8)> = BTreeMap::new();
        for file in 0..4 {
            write(&dir.path().join(name(file)), &[(0, None)]);
            files.insert(file, 1);
        }
        for step in steps {
            let mut collection = Collection::open(dir.path()).unwrap();
            match step {
                Step::Write(file, rows) => {
                    let rows_of: Vec<_> = (0..rows).map(|row| (i64::from(row), Some("y"))).collect();
                    write(&dir.path().join(name(file)), &rows_of);
                    files.insert(file, rows);
                }
                Step::Add(file) => {
                    collection.add(&[dir.path().join(name(file))]).unwrap();
                    model.insert(name(file), (u64::from(files[&file]), 0));
                }
                Step::Remove(file) => {
                    let removed = collection.remove(&[name(file)]);
                    prop_assert_eq!(removed.is_ok(), model.remove(&name(file)).is_some());
                }
                Step::Tier(file, tier) => {
                    let set = collection.set_tier(name(file), tier);
                    prop_assert_eq!(set.is_ok(), model.contains_key(&name(file)));
                    if let Some(member) = model.get_mut(&name(file)) {
                        member.1 = tier;
                    }
                }
                Step::Compact => {
                    collection.compact(false).unwrap();
                }
                Step::Torn(byte) => {
                    let path = collection.manifest_path();
                    if let Ok(mut bytes) = fs::read(&path) {
                        bytes.extend([byte, 90, 1, 2, 3]);
                        fs::write(&path, bytes).unwrap();
                    }
                }
            }
            let again = Collection::open(dir.path()).unwrap();
            let found: BTreeMap<String, (u64, u8)> =
                again.members().iter().map(|member| (member.path.clone(), (member.rows, member.tier))).collect();
            prop_assert_eq!(&found, &model);
        }
    }
}

/// Every row of every member, by a naive loop.
fn rows(collection: &Collection) -> Vec<(i64, Option<Vec<u8>>, f64)> {
    let mut out = Vec::new();
    for member in collection.members() {
        let file = collection.open_member(member).unwrap();
        let columns = file.read_columns(&[0, 1, 2]).unwrap();
        for row in 0..columns[0].len() {
            let Some(Scalar::Int64(key)) = columns[0].scalar(row) else { panic!("a key") };
            let Some(Scalar::Float64(weight)) = columns[2].scalar(row) else { panic!("a weight") };
            let note = columns[1].scalar(row).map(|note| note.to_bytes());
            out.push((key, note, weight));
        }
    }
    out
}

/// Whether a row matches a filter.
type Predicate = fn(&(i64, Option<Vec<u8>>, f64)) -> bool;

#[test]
fn pruned_members_hold_no_matching_row() {
    let (dir, files) = three();
    let mut collection = Collection::open(dir.path()).unwrap();
    collection.add(&files).unwrap();
    let all = rows(&collection);
    let cases: [(&str, usize, Predicate); 9] = [
        ("key < 50", 1, |row| row.0 < 50),
        ("key >= 110 and key < 205", 2, |row| row.0 >= 110 && row.0 < 205),
        ("not key < 115", 2, |row| row.0 >= 115),
        ("key = 7 or key = 207", 2, |row| row.0 == 7 || row.0 == 207),
        ("key = 50", 0, |_| false),
        ("note is null", 3, |row| row.1.is_none()),
        ("not note is null", 3, |row| row.1.is_some()),
        // Bounds do not cover NaN: float filters prune nothing.
        ("weight != 3", 3, |row| row.2 != 3.0),
        ("weight > 150", 3, |row| row.2 > 150.0),
    ];
    for (text, kept, holds) in cases {
        let filter = Expr::parse(text).unwrap();
        assert_eq!(collection.prune(&filter).unwrap().len(), kept, "{text}");
        let scan = collection.scan().columns(&["key"]).unwrap().filter(&filter).unwrap();
        let found: Vec<i64> = scan
            .batches()
            .unwrap()
            .flat_map(|batch| {
                let batch = batch.unwrap().batch;
                (0..batch.rows.len())
                    .map(move |row| match batch.columns[0].scalar(row) {
                        Some(Scalar::Int64(key)) => key,
                        other => panic!("{other:?}"),
                    })
                    .collect::<Vec<_>>()
            })
            .collect();
        let expected: Vec<i64> = all.iter().filter(|row| holds(row)).map(|row| row.0).collect();
        assert_eq!(found, expected, "{text}");
        assert_eq!(scan.count().unwrap(), expected.len() as u64, "{text}");
    }
    assert!(collection.scan().columns(&["nothing"]).is_err());
    assert!(collection.prune(&Expr::parse("nothing = 1").unwrap()).is_err());
}

#[test]
fn merged_members_are_sorted_by_key() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    write(&path("x"), &[(1, Some("x")), (3, Some("x")), (3, None), (9, Some("x"))]);
    write(&path("y"), &[(0, Some("y")), (3, Some("y")), (4, Some("y"))]);
    write(&path("z"), &(0..50).map(|key| (key, Some("z"))).collect::<Vec<_>>());
    let mut collection = Collection::open(dir.path()).unwrap();
    collection.add(&[path("x"), path("y"), path("z")]).unwrap();
    let mut expected = rows(&collection);
    expected.sort_by_key(|row| row.0);
    let member = collection.merge(&["x", "y", "z"], &path("all"), WriterOptions::new(), &NoProgress).unwrap();
    assert_eq!((member.path.as_str(), member.rows), ("all", 57));
    let again = Collection::open(dir.path()).unwrap();
    assert_eq!(again.members(), [member]);
    let found = rows(&again);
    let bits = |rows: &[(i64, Option<Vec<u8>>, f64)]| -> Vec<(i64, Option<Vec<u8>>, u64)> {
        rows.iter().map(|row| (row.0, row.1.clone(), row.2.to_bits())).collect()
    };
    assert_eq!(bits(&found), bits(&expected));
    assert_eq!(File::open(path("x")).unwrap().rows(), 4, "the old files stay");
}
