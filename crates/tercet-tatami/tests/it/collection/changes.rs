//! Upserts, deletions and appends: of collections and of files, against a map of keys.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::publish::{Disk, RealDisk};
use tercet_tatami::change::{FileUpsert, UpsertOptions, delete_rows, delete_rows_on};
use tercet_tatami::collection::{AppendOptions, MANIFEST, log};
use tercet_tatami::{
    Collection, Column, Error, Expr, Field, File, ReadOptions, Scalar, Schema, Type, Values, VerifyOptions,
    Writer, WriterOptions,
};
use tercet_testkit::faults::for_each_fault;
use tercet_testkit::powercut::for_each_cut;

use crate::columns::Noise;

type Rows = Vec<(i64, String)>;

fn schema(sorted: bool) -> Schema {
    let key = Field::new("key", Type::Int64);
    let key = if sorted { key.with_sort_key() } else { key };
    Schema::new(vec![key, Field::new("name", Type::String)]).unwrap()
}

fn columns(rows: &[(i64, String)]) -> [Column; 2] {
    let keys = rows.iter().map(|(key, _)| *key).collect();
    let names = rows.iter().map(|(_, name)| name.as_bytes()).collect();
    [Column::new(Values::Int64(keys)), Column::new(Values::Bytes(names))]
}

fn small() -> WriterOptions {
    WriterOptions::new().with_row_group_max_rows(7).with_page_max_values(3)
}

fn options() -> AppendOptions {
    AppendOptions::new().with_writer(small()).with_file_bytes(200)
}

fn rows_of(batch: &[Column]) -> Rows {
    let text = |scalar: Scalar| match scalar {
        Scalar::Bytes(bytes) => String::from_utf8(bytes).unwrap(),
        other => panic!("{other}"),
    };
    let key = |scalar: Scalar| match scalar {
        Scalar::Int64(key) => key,
        other => panic!("{other}"),
    };
    (0..batch[0].len())
        .map(|row| (key(batch[0].scalar(row).unwrap()), text(batch[1].scalar(row).unwrap())))
        .collect()
}

/// All rows of a collection, sorted by key.
fn content(dir: &Path) -> Rows {
    let collection = Collection::open(dir).unwrap();
    let mut rows: Rows = collection
        .scan()
        .batches()
        .unwrap()
        .flat_map(|batch| rows_of(&batch.unwrap().batch.columns))
        .collect();
    rows.sort();
    rows
}

fn file_content(path: &Path) -> Rows {
    let file = File::open(path).unwrap();
    file.scan().batches().flat_map(|batch| rows_of(&batch.unwrap().columns)).collect()
}

fn upsert(collection: &mut Collection, sorted: bool, rows: &[(i64, String)]) -> Result<(), Error> {
    let mut upsert = collection.upsert("key", &schema(sorted), options())?;
    for some in rows.chunks(5) {
        upsert.append(&columns(some))?;
    }
    upsert.finish(&NoProgress).map(drop)
}

fn some_rows(noise: &mut Noise, tag: usize) -> Rows {
    let count = 1 + noise.below(30);
    (0..count).map(|row| (noise.below(60) as i64, format!("{tag}.{row}"))).collect()
}

#[test]
fn a_collection_has_one_newest_row_per_key() {
    for seed in 0..40 {
        let sorted = seed % 2 == 0;
        let mut noise = Noise(seed + 1);
        let dir = tempfile::tempdir().unwrap();
        let mut collection = Collection::open(dir.path()).unwrap();
        let mut model: BTreeMap<i64, String> = BTreeMap::new();
        for step in 0..12 {
            match noise.below(5) {
                0 if !model.is_empty() => {
                    let from = noise.below(60) as i64;
                    let filter = Expr::parse(&format!("key between {from} and {}", from + 7)).unwrap();
                    let before = model.len();
                    model.retain(|key, _| !(from..=from + 7).contains(key));
                    let done = collection.delete_rows(&filter, &NoProgress).unwrap();
                    assert_eq!(done.deleted as usize, before - model.len());
                    assert_eq!(done.rows as usize, model.len());
                }
                1 if collection.members().len() > 1 => {
                    let paths: Vec<String> =
                        collection.members().iter().take(2).map(|member| member.path.clone()).collect();
                    let output = dir.path().join(format!("merged-{step}.tatami"));
                    collection.merge(&paths, &output, small(), &NoProgress).unwrap();
                }
                2 if !collection.members().is_empty() => drop(collection.compact(false).unwrap()),
                _ => {
                    let rows = some_rows(&mut noise, step);
                    upsert(&mut collection, sorted, &rows).unwrap();
                    model.extend(rows);
                }
            }
            let expected: Rows = model.clone().into_iter().collect();
            assert_eq!(content(dir.path()), expected, "seed {seed}, step {step}");
            if model.is_empty() {
                continue;
            }
            assert_eq!(collection.rows() as usize, model.len());
            let filter = Expr::parse("key >= 30 and name != \"x\"").unwrap();
            let count = collection.scan().filter(&filter).unwrap().count().unwrap();
            assert_eq!(count as usize, model.range(30..).count());
            let limited = collection.scan().limit(3).batches().unwrap();
            let returned: usize = limited.map(|batch| batch.unwrap().batch.rows.len()).sum();
            assert_eq!(returned, model.len().min(3));
            if sorted {
                for key in 0..60 {
                    let found = collection.lookup(&Scalar::Int64(key)).unwrap().found;
                    let row = found.map(|(_, file, at)| rows_of(&file.take(&[at.row], &[0, 1]).unwrap()));
                    let expected = model.get(&key).map(|name| vec![(key, name.clone())]);
                    assert_eq!(row, expected, "seed {seed}, step {step}, key {key}");
                }
            }
            let report = Collection::verify(
                dir.path(),
                ReadOptions::new(),
                VerifyOptions::new().with_deep(true),
                &NoProgress,
            );
            assert!(report.unwrap().ok);
            let parts = collection.scan().partitions(3).unwrap();
            let read = |part: &tercet_tatami::scan::Partition| {
                part.open(ReadOptions::new()).unwrap().count().unwrap()
            };
            assert_eq!(parts.iter().map(read).sum::<u64>() as usize, model.len());
        }
    }
}

#[test]
fn a_file_has_one_newest_row_per_key() {
    for seed in 0..20 {
        let sorted = seed % 2 == 0;
        let mut noise = Noise(seed + 100);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tatami");
        let writer = Writer::create(&path, schema(sorted), small().with_metadata("source", "test")).unwrap();
        writer.finish().unwrap();
        let mut model: BTreeMap<i64, String> = BTreeMap::new();
        for step in 0..8 {
            if noise.below(3) == 0 {
                let key = noise.below(60) as i64;
                let filter = Expr::parse(&format!("key < {key}")).unwrap();
                delete_rows(&path, &filter, ReadOptions::new(), small(), &NoProgress).unwrap();
                model.retain(|old, _| *old >= key);
            } else {
                let rows = some_rows(&mut noise, step);
                let options = UpsertOptions::new().with_writer(small()).with_part_bytes(100);
                let mut upsert = FileUpsert::open(&path, "key", options).unwrap();
                rows.chunks(4).for_each(|some| upsert.append(&columns(some)).unwrap());
                upsert.finish(&NoProgress).unwrap();
                model.extend(rows);
            }
            let mut found = file_content(&path);
            if !sorted {
                found.sort();
            }
            assert_eq!(found, model.clone().into_iter().collect::<Rows>(), "seed {seed}, step {step}");
            let file = File::open(&path).unwrap();
            assert!(file.footer().pairs.contains(&("source".to_owned(), "test".to_owned())));
            assert_eq!(dir.path().read_dir().unwrap().count(), 1, "no temporary file is left");
        }
    }
}

fn row(key: i64, name: &str) -> (i64, String) {
    (key, name.to_owned())
}

fn prepare(dir: &Path) {
    let mut collection = Collection::open(dir).unwrap();
    let rows: Rows = (0..40).map(|key| row(key, "old")).collect();
    upsert(&mut collection, true, &rows).unwrap();
}

/// Runs a change with every fault and every power cut: it is applied or not.
fn assert_atomic(change: impl Fn(Arc<dyn Disk>, &Path) -> Result<(), Error>) {
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path());
    let old = content(dir.path());
    change(Arc::new(RealDisk), dir.path()).unwrap();
    let new = content(dir.path());
    assert_ne!(old, new);
    let runs = for_each_fault(
        prepare,
        |disk, dir| change(disk, dir),
        |trial| {
            let now = content(trial.directory);
            match &trial.result {
                Ok(()) => assert_eq!(now, new),
                Err(_) => assert!(now == old || now == new),
            }
        },
    );
    assert!(runs > 5, "{runs}");
    let cuts = for_each_cut(
        prepare,
        |disk, dir| change(disk, dir).unwrap(),
        |cut| {
            let after = tempfile::tempdir().unwrap();
            cut.write_to(after.path()).unwrap();
            let now = content(after.path());
            assert!(now == old || now == new, "{cut}: {now:?}");
            assert!(now == new || !cut.complete, "{cut}: done, but the power cut undoes it");
        },
    );
    assert!(cuts > 1, "{cuts}");
}

#[test]
fn changes_of_a_collection_are_atomic() {
    assert_atomic(|disk, dir| {
        let mut collection = Collection::open_on(disk, dir, ReadOptions::new())?;
        upsert(&mut collection, true, &[row(3, "new"), row(99, "new"), row(3, "newest")])
    });
    assert_atomic(|disk, dir| {
        let mut collection = Collection::open_on(disk, dir, ReadOptions::new())?;
        collection.delete_rows(&Expr::parse("key >= 20").unwrap(), &NoProgress).map(drop)
    });
}

#[test]
fn deleting_rows_of_a_file_is_atomic() {
    let filter = Expr::parse("key < 10").unwrap();
    let make = |dir: &Path| {
        let mut writer = Writer::create(dir.join("a.tatami"), schema(true), small()).unwrap();
        writer.append(&columns(&(0..30).map(|key| row(key, "x")).collect::<Rows>())).unwrap();
        writer.finish().unwrap();
    };
    let runs = for_each_fault(
        make,
        |disk, dir| {
            delete_rows_on(disk, &dir.join("a.tatami"), &filter, ReadOptions::new(), small(), &NoProgress)
        },
        |trial| {
            let rows = file_content(&trial.directory.join("a.tatami")).len();
            assert_eq!(rows, if trial.result.is_ok() { 20 } else { rows });
            assert!(rows == 20 || rows == 30);
        },
    );
    assert!(runs > 5, "{runs}");
}

#[test]
fn manifests_with_deleted_rows_are_refused_by_older_programs() {
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path());
    let version = || fs::read(dir.path().join(MANIFEST)).unwrap()[4];
    assert_eq!(version(), log::VERSION);
    let mut collection = Collection::open(dir.path()).unwrap();
    collection.delete_rows(&Expr::parse("key = 1").unwrap(), &NoProgress).unwrap();
    assert_eq!(version(), log::VERSION_WITH_DELETED_ROWS);
    let output = dir.path().join("all.tatami");
    let paths: Vec<String> = collection.members().iter().map(|member| member.path.clone()).collect();
    collection.merge(&paths, &output, small(), &NoProgress).unwrap();
    collection.compact(false).unwrap();
    assert_eq!((version(), collection.rows(), collection.deleted_rows()), (log::VERSION, 39, 0));
}

#[test]
fn deleted_rows_stay_deleted_when_the_file_is_added_again() {
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path());
    let mut collection = Collection::open(dir.path()).unwrap();
    collection.delete_rows(&Expr::parse("key < 5").unwrap(), &NoProgress).unwrap();
    let paths: Vec<_> = collection.members().iter().map(|member| dir.path().join(&member.path)).collect();
    collection.add(&paths).unwrap();
    assert_eq!(collection.rows(), 35);
    assert_eq!(content(dir.path()).len(), 35);
}

#[test]
fn rows_beyond_a_member_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path());
    let collection = Collection::open(dir.path()).unwrap();
    let bytes = fs::read(dir.path().join(MANIFEST)).unwrap();
    let member = &collection.members()[0];
    for (start, end) in [(0, member.rows + 1), (member.rows, member.rows + 1), (u64::MAX - 1, u64::MAX)] {
        let rows: Vec<_> = std::iter::once(start..end).collect();
        let mut bytes = bytes.clone();
        log::Record::DeleteRows(member.id, rows.into()).put(&mut bytes);
        assert!(log::replay(&bytes).is_err());
        assert!(log::salvage(&bytes).is_ok());
    }
}

#[test]
fn appended_rows_become_members_of_bounded_size() {
    let dir = tempfile::tempdir().unwrap();
    let mut collection = Collection::open(dir.path()).unwrap();
    let mut append = collection.append(&schema(true), options()).unwrap();
    let rows: Rows = (0..200).rev().map(|key| row(key, "x")).collect();
    rows.chunks(10).for_each(|some| append.append(&columns(some)).unwrap());
    let done = append.finish().unwrap();
    assert_eq!(done.rows, 200);
    assert!(done.members.len() > 5, "{:?}", done.members);
    assert_eq!(content(dir.path()).len(), 200);
}

#[test]
fn keys_must_identify_rows() {
    let dir = tempfile::tempdir().unwrap();
    let fields = vec![Field::new("x", Type::Float64), Field::new("n", Type::Int32).with_nulls()];
    let path = dir.path().join("a.tatami");
    Writer::create(&path, Schema::new(fields).unwrap(), small()).unwrap().finish().unwrap();
    let error = FileUpsert::open(&path, "x", UpsertOptions::new()).unwrap_err();
    assert!(error.to_string().contains("cannot identify rows"), "{error}");
    assert!(FileUpsert::open(&path, "missing", UpsertOptions::new()).is_err());
    let mut upsert = FileUpsert::open(&path, "n", UpsertOptions::new()).unwrap();
    let null = Column::new(Values::Int32(vec![0])).with_validity([false].into_iter().collect());
    upsert.append(&[Column::new(Values::Float64(vec![1.0])), null]).unwrap();
    let error = upsert.finish(&NoProgress).unwrap_err();
    assert!(error.to_string().contains("no value in the key column `n`"), "{error}");
}

/// Offset and limit count the matching rows of all members.
#[test]
fn scans_have_an_offset_and_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let mut collection = Collection::open(dir.path()).unwrap();
    for start in [0, 20, 40] {
        let rows: Rows = (start..start + 20).map(|key| (key, format!("name {key}"))).collect();
        upsert(&mut collection, true, &rows).unwrap();
    }
    collection.delete_rows(&Expr::parse("key in (3, 4, 25)").unwrap(), &NoProgress).unwrap();
    for filter in ["key >= 0", "key > 12 and name contains '3'", "key > 100", "key between 18 and 41"] {
        let scan = collection.scan().filter(&Expr::parse(filter).unwrap()).unwrap();
        let read = |scan: &tercet_tatami::collection::CollectionScan<'_>| -> Rows {
            scan.batches().unwrap().flat_map(|batch| rows_of(&batch.unwrap().batch.columns)).collect()
        };
        let all = read(&scan);
        assert!(!all.is_empty() || filter.contains("100"));
        for offset in 0..all.len() + 2 {
            for limit in [0, 1, 5, 100] {
                let some = scan.clone().offset(offset as u64).limit(limit as u64);
                let expected: Rows = all.iter().skip(offset).take(limit).cloned().collect();
                assert_eq!(read(&some), expected, "{filter} {offset} {limit}");
                assert_eq!(some.count().unwrap(), expected.len() as u64, "{filter} {offset} {limit}");
            }
        }
        assert!(scan.clone().offset(1).partitions(2).is_err());
        let explain = scan.explain().unwrap();
        assert_eq!(explain.files, collection.members().len());
        assert_eq!(explain.files_pruned, explain.files - scan.members().unwrap().len());
        assert_eq!(explain.members.len(), explain.files - explain.files_pruned);
        let matching: u64 = explain.members.iter().map(|member| member.explained.rows_tested).sum();
        assert!(matching <= collection.rows());
    }
}
