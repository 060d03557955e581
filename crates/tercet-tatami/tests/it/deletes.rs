//! Deletes from segments of the reference.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use tercet_core::progress::NoProgress;
use tercet_core::publish::Disk;
use tercet_core::{Class, Diagnostic as _};
use tercet_tatami::predicate::Expr;
use tercet_tatami::search::{DeleteBy, DeleteOptions, Deleted, Segment, analyze, delete, delete_on, score};
use tercet_tatami::{Error, ErrorKind, File, Scalar, VerifyOptions, verify};
use tercet_testkit::faults::for_each_fault;
use tercet_testkit::old_or_new;
use tercet_testkit::powercut::for_each_cut;

/// A copy of a golden segment.
fn copied(name: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    let golden = tercet_testkit::golden("tatami")?;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    fs::copy(golden.join(name), &path).unwrap();
    Some((dir, path))
}

fn segment(path: &Path) -> Segment {
    File::open(path).unwrap().segment().unwrap().unwrap()
}

fn ids(path: &Path) -> Vec<String> {
    let column = File::open(path).unwrap().read_column(0).unwrap();
    let text = |row| match column.scalar(row) {
        Some(Scalar::Bytes(id)) => String::from_utf8(id).unwrap(),
        other => panic!("{other:?}"),
    };
    (0..column.len()).map(text).collect()
}

/// Scores every document that contains a term, one by one.
fn exhaustive(segment: &Segment, query: &str, k: usize, deleted: &BTreeSet<u32>) -> Vec<(u32, u32)> {
    let mut scores: std::collections::BTreeMap<u32, f32> = std::collections::BTreeMap::new();
    for term in analyze::tokens(query.as_bytes()) {
        let Some(info) = segment.term(&term).unwrap() else { continue };
        let idf = score::idf(segment.document_count(), info.documents);
        for (document, frequency) in info.postings {
            *scores.entry(document).or_default() += score::term(idf, frequency);
        }
    }
    let mut all: Vec<(u32, f32)> =
        scores.into_iter().filter(|(document, _)| !deleted.contains(document)).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    all.truncate(k);
    all.into_iter().map(|(document, score)| (document, score.to_bits())).collect()
}

fn found(segment: &Segment, query: &str, k: usize) -> Vec<(u32, u32)> {
    segment.search(query, k).unwrap().iter().map(|hit| (hit.document, hit.score.to_bits())).collect()
}

fn assert_valid(path: &Path) {
    let source = std::sync::Arc::new(tercet_core::source::File::open(path).unwrap());
    let report = verify(source, VerifyOptions::default().with_deep(true), &NoProgress).unwrap();
    assert!(report.ok, "{report:?}");
}

#[test]
fn deletes_accumulate_and_change_nothing_else() {
    let Some((_dir, path)) = copied("seg_full.tatami") else { return };
    let before = fs::read(&path).unwrap();
    let old = File::open(&path).unwrap();
    let (footer, ids) = (old.header().footer_offset as usize, ids(&path));
    let terms: Vec<String> = {
        let mut terms = Vec::new();
        segment(&path)
            .for_each_term(|term, _| terms.push(String::from_utf8(term.to_vec()).unwrap()))
            .unwrap();
        terms
    };
    let columns = old.read_columns(&(0..8).collect::<Vec<_>>()).unwrap();
    let mut deleted = BTreeSet::new();
    for step in [vec![3u32, 7], vec![7, 8], vec![0, 199], vec![50, 51, 52]] {
        let to_delete: Vec<String> = step.iter().map(|row| ids[*row as usize].clone()).collect();
        let new = step.iter().filter(|row| deleted.insert(**row)).count() as u64;
        let done = delete(&path, &DeleteBy::Ids(&to_delete), DeleteOptions::new()).unwrap();
        assert_eq!((done.deleted, done.documents), (new, ids.len() as u64));
        assert_eq!(done.live, ids.len() as u64 - deleted.len() as u64);
        assert_valid(&path);
        let segment = segment(&path);
        assert_eq!(segment.live_document_count(), done.live);
        for query in terms.iter().step_by(40).map(String::as_str).chain(["https example", "rimopesha heavy"])
        {
            for k in [1, 10, 1000] {
                assert_eq!(
                    found(&segment, query, k),
                    exhaustive(&segment, query, k, &deleted),
                    "{query} {k}"
                );
            }
        }
        let after = fs::read(&path).unwrap();
        assert_eq!(after[64..footer], before[64..footer], "everything in front stays");
        let file = File::open(&path).unwrap();
        assert_eq!(file.header().uuid, old.header().uuid);
        assert_eq!(file.header().flags, old.header().flags);
        let now = file.read_columns(&(0..8).collect::<Vec<_>>()).unwrap();
        assert_eq!(format!("{now:?}").len(), format!("{columns:?}").len());
        // The file has one live-docs record after any number of deletes.
        assert_eq!(file.header().footer_offset as usize, footer + 32 + 2 + 8 * ids.len().div_ceil(64));
    }
}

#[test]
fn deleting_nothing_leaves_the_file_unchanged() {
    let Some((_dir, path)) = copied("seg_snippet.tatami") else { return };
    let before = fs::read(&path).unwrap();
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let missing = ["unknown".to_owned()];
    let done = delete(&path, &DeleteBy::Ids(&missing), DeleteOptions::new()).unwrap();
    assert_eq!((done.deleted, done.not_found), (0, missing.to_vec()));
    assert_eq!(delete(&path, &DeleteBy::Ids(&[]), DeleteOptions::new()).unwrap().deleted, 0);
    assert_eq!(
        delete(&path, &DeleteBy::Filter(&Expr::parse("url = \"\"").unwrap()), DeleteOptions::new())
            .unwrap()
            .deleted,
        0
    );
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), time);
}

#[test]
fn documents_are_deleted_by_filter() {
    let Some((_dir, path)) = copied("seg_full.tatami") else { return };
    let filter = Expr::parse("norm_body < 30").unwrap();
    let matching = File::open(&path).unwrap().scan().filter(&filter).unwrap().count().unwrap();
    assert!(matching > 0);
    let done = delete(&path, &DeleteBy::Filter(&filter), DeleteOptions::new()).unwrap();
    assert_eq!(done.deleted, matching);
    assert_eq!(segment(&path).live_document_count(), done.documents - matching);
    assert_eq!(delete(&path, &DeleteBy::Filter(&filter), DeleteOptions::new()).unwrap().deleted, 0);
    assert_valid(&path);
}

/// The flat dictionary of older files, and a segment that has deletes.
#[test]
fn documents_can_be_deleted_from_golden_segments() {
    for name in ["seg_flat_dict.tatami", "seg_deleted.tatami", "seg_tiny.tatami", "seg_merged.tatami"] {
        let Some((_dir, path)) = copied(name) else { return };
        let before = segment(&path).live_document_count();
        let to_delete = ids(&path).pop().unwrap();
        let done = delete(&path, &DeleteBy::Ids(&[to_delete]), DeleteOptions::new()).unwrap();
        assert!(done.deleted >= 1, "{name}");
        assert_eq!(segment(&path).live_document_count(), before - done.deleted, "{name}");
        assert_valid(&path);
    }
}

#[test]
fn delete_needs_a_search_segment() {
    let Some((_dir, path)) = copied("sorted_str.tatami") else { return };
    let before = fs::read(&path).unwrap();
    let error =
        delete(&path, &DeleteBy::Filter(&Expr::parse("id > 0").unwrap()), DeleteOptions::new()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotASegment), "{error}");
    assert_eq!(error.class(), Class::Request);
    assert_eq!(fs::read(&path).unwrap(), before);
    let missing = path.with_file_name("nothing.tatami");
    assert_eq!(delete(&missing, &DeleteBy::Ids(&[]), DeleteOptions::new()).unwrap_err().class(), Class::Io);
}

#[test]
fn deletes_are_atomic() {
    let Some((_dir, path)) = copied("seg_tiny.tatami") else { return };
    let old = fs::read(&path).unwrap();
    let to_delete = [ids(&path).remove(1)];
    delete(&path, &DeleteBy::Ids(&to_delete), DeleteOptions::new()).unwrap();
    let new = fs::read(&path).unwrap();
    let prepare = |dir: &Path| fs::write(dir.join("a.tatami"), &old).unwrap();
    let act = |disk: Arc<dyn Disk>, dir: &Path| -> Result<Deleted, Error> {
        delete_on(disk, &dir.join("a.tatami"), &DeleteBy::Ids(&to_delete), DeleteOptions::new())
    };
    let runs = for_each_fault(prepare, act, |trial| {
        let now = fs::read(trial.directory.join("a.tatami")).ok();
        let is_new = old_or_new(now.as_deref(), Some(&old), &new);
        assert!(is_new || trial.result.is_err(), "done, but the file is the old one");
    });
    assert!(runs > 20, "{runs} faults");
    let cuts = for_each_cut(
        prepare,
        |disk, dir| drop(act(disk, dir).unwrap()),
        |cut| {
            let is_new = old_or_new(cut.file("a.tatami"), Some(&old), &new);
            assert!(is_new || !cut.complete, "done, but the power cut undoes it");
        },
    );
    assert!(cuts > 5, "{cuts} cuts");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(24)))]

    #[test]
    fn any_documents_can_be_deleted(
        steps in prop::collection::vec(prop::collection::btree_set(0..400u32, 1..60), 1..4),
        query in prop::collection::vec(0..400usize, 1..5),
        k in 1..40usize,
    ) {
        let Some((_dir, path)) = copied("seg_full.tatami") else { return Ok(()) };
        let ids = ids(&path);
        let mut deleted = BTreeSet::new();
        for step in steps {
            let rows = step.into_iter().filter(|row| (*row as usize) < ids.len());
            let rows: Vec<u32> = rows.collect();
            let to_delete: Vec<String> = rows.iter().map(|row| ids[*row as usize].clone()).collect();
            delete(&path, &DeleteBy::Ids(&to_delete), DeleteOptions::new()).unwrap();
            deleted.extend(rows);
        }
        let segment = segment(&path);
        prop_assert_eq!(segment.live_document_count(), (ids.len() - deleted.len()) as u64);
        let mut terms = Vec::new();
        segment.for_each_term(|term, _| terms.push(String::from_utf8(term.to_vec()).unwrap())).unwrap();
        let query: Vec<&str> = query.iter().map(|at| terms[at % terms.len()].as_str()).collect();
        let query = query.join(" ");
        prop_assert_eq!(found(&segment, &query, k), exhaustive(&segment, &query, k, &deleted));
    }
}
