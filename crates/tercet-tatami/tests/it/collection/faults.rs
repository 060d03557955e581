//! Disk faults, power cuts and concurrent writers.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tercet_core::publish::{Disk, RealDisk};
use tercet_tatami::collection::MANIFEST;
use tercet_tatami::{Collection, Error, ReadOptions};
use tercet_testkit::faults::for_each_fault;
use tercet_testkit::powercut::for_each_cut;

use super::write;

fn prepare(dir: &Path, names: &[&str], added: usize) {
    for (at, name) in names.iter().enumerate() {
        write(&dir.join(name), &[(at as i64, Some("x"))]);
    }
    let paths: Vec<_> = names[..added].iter().map(|name| dir.join(name)).collect();
    if added > 0 {
        Collection::open(dir).unwrap().add(&paths).unwrap();
    }
}

fn open(disk: Arc<dyn Disk>, dir: &Path) -> Collection {
    Collection::open_on(disk, dir, ReadOptions::new()).unwrap()
}

fn live(dir: &Path) -> Vec<String> {
    let collection = Collection::open(dir).unwrap();
    collection.members().iter().map(|member| member.path.clone()).collect()
}

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Runs one change with every fault: it is applied or not, and a change that returned is durable.
fn assert_atomic(added: usize, change: impl Fn(&mut Collection, &Path) -> Result<(), Error>) {
    let real: Arc<dyn Disk> = Arc::new(RealDisk);
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path(), &NAMES, added);
    let old = live(dir.path());
    change(&mut open(real, dir.path()), dir.path()).unwrap();
    let new = live(dir.path());
    let runs = for_each_fault(
        |dir| prepare(dir, &NAMES, added),
        |disk, dir| change(&mut open(disk, dir), dir),
        |trial| {
            let now = live(trial.directory);
            match &trial.result {
                Ok(()) => assert_eq!(now, new, "done, but it is not there"),
                Err(error) => {
                    assert!(now == old || now == new, "{now:?}");
                    assert!(error.to_string().contains(MANIFEST), "{error}");
                }
            }
            // A failed change can be repeated.
            change(&mut Collection::open(trial.directory).unwrap(), trial.directory).ok();
            assert_eq!(live(trial.directory), new);
        },
    );
    assert!(runs > 5, "{runs} faults");
    let cuts = for_each_cut(
        |dir| prepare(dir, &NAMES, added),
        |disk, dir| change(&mut open(disk, dir), dir).unwrap(),
        |cut| {
            let after = tempfile::tempdir().unwrap();
            cut.write_to(after.path()).unwrap();
            let now = live(after.path());
            assert!(now == old || now == new, "{cut}: {now:?}");
            assert!(now == new || !cut.complete, "{cut}: done, but the power cut undoes it");
            // The next change can append to the log.
            Collection::open(after.path()).unwrap().add(&[after.path().join("a")]).unwrap();
            assert!(live(after.path()).contains(&"a".to_owned()));
        },
    );
    assert!(cuts > 1, "{cuts} cuts");
}

#[test]
fn adding_the_first_file_is_atomic() {
    assert_atomic(0, |collection, dir| collection.add(&[dir.join("a")]).map(drop));
}

#[test]
fn adding_another_file_is_atomic() {
    assert_atomic(2, |collection, dir| collection.add(&[dir.join("c")]).map(drop));
}

#[test]
fn removing_a_file_is_atomic() {
    assert_atomic(3, |collection, dir| {
        let path = dir.join("b");
        if collection.member("b").is_some() { collection.remove(&[path]).map(drop) } else { Ok(()) }
    });
}

#[test]
fn compaction_is_atomic() {
    assert_atomic(3, |collection, _| collection.compact(false).map(drop));
}

/// Every file added by any of several writers is a member at the end.
#[test]
fn concurrent_writers_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..40).map(|number| format!("{number:02}.tatami")).collect();
    for (at, name) in names.iter().enumerate() {
        write(&dir.path().join(name), &[(at as i64, None)]);
    }
    std::thread::scope(|scope| {
        for part in names.chunks(10) {
            let root = dir.path();
            scope.spawn(move || {
                for (at, name) in part.iter().enumerate() {
                    Collection::open(root).unwrap().add(&[root.join(name)]).unwrap();
                    if at % 4 == 3 {
                        Collection::open(root).unwrap().compact(false).unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(live(dir.path()), names);
    let rest: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(rest.len(), names.len() + 1, "no temporary file is left");
}
