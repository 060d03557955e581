//! The faulty and the recording disk detect faulty writers. The tests of the writers show that correct ones pass.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use tercet_core::publish::Disk;
use tercet_testkit::faults::{Fault, FaultyDisk, Op, for_each_fault};
use tercet_testkit::powercut::{Cut, Event, Recorder, Survivors, for_each_cut};

const OLD: &[u8] = b"old bytes";
const NEW: &[u8] = b"the new bytes";

fn prepare(directory: &Path) {
    fs::write(directory.join("a"), OLD).expect("a directory to prepare");
}

fn write_in_place(disk: &dyn Disk, directory: &Path) -> io::Result<()> {
    let mut file = disk.open_existing(&directory.join("a"))?;
    file.write_all(NEW)?;
    file.sync_all()?;
    disk.sync_directory(directory)
}

fn write_aside(disk: &dyn Disk, directory: &Path, sync_file: bool, sync_directory: bool) -> io::Result<()> {
    let mut file = disk.create_new(&directory.join("b"), None)?;
    file.write_all(NEW)?;
    if sync_file {
        file.sync_all()?;
    }
    disk.rename(&directory.join("b"), &directory.join("a"))?;
    if sync_directory {
        disk.sync_directory(directory)?;
    }
    Ok(())
}

/// The cuts after which the file is neither old nor new, or old although the writer had finished.
fn bad_cuts(scenario: impl FnOnce(Arc<dyn Disk>, &Path)) -> Vec<Cut> {
    let mut bad = Vec::new();
    for_each_cut(prepare, scenario, |cut| {
        let found = cut.file("a");
        let good = found == Some(NEW) || (found == Some(OLD) && !cut.complete);
        if !good {
            bad.push(cut.clone());
        }
    });
    bad
}

#[test]
fn a_syncing_writer_survives_every_power_cut() {
    let bad = bad_cuts(|disk, directory| write_aside(disk.as_ref(), directory, true, true).unwrap());
    assert!(bad.is_empty(), "{}", bad[0]);
}

#[test]
fn a_rename_before_the_sync_of_the_bytes_is_found() {
    let bad = bad_cuts(|disk, directory| write_aside(disk.as_ref(), directory, false, true).unwrap());
    assert!(bad.iter().any(|cut| cut.file("a") == Some(b"") && cut.survivors == Survivors::None));
    assert!(bad.iter().any(|cut| cut.file("a") == Some(&[0; NEW.len()])));
    assert!(bad.iter().any(|cut| cut.file("a") == Some(&NEW[..NEW.len() / 2])));
}

#[test]
fn a_missing_sync_of_the_directory_is_found() {
    let bad = bad_cuts(|disk, directory| write_aside(disk.as_ref(), directory, true, false).unwrap());
    assert!(!bad.is_empty());
    assert!(bad.iter().all(|cut| cut.complete && cut.file("a") == Some(OLD)), "old, where new was promised");
}

#[test]
fn a_write_in_place_is_found() {
    let bad = bad_cuts(|disk, directory| write_in_place(disk.as_ref(), directory).unwrap());
    assert!(bad.iter().any(|cut| cut.file("a") == Some(b"the netes")), "torn in the middle");
}

#[test]
fn a_file_removed_without_a_sync_may_come_back() {
    let mut there = [false; 2];
    for_each_cut(
        prepare,
        |disk, directory| disk.remove(&directory.join("a")).unwrap(),
        |cut| there[usize::from(cut.file("a").is_some())] = true,
    );
    assert_eq!(there, [true, true]);
}

#[test]
fn cuts_can_be_written_to_a_directory_and_recorded_events_are_in_order() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("sub")).unwrap();
    fs::write(directory.path().join("sub/kept"), b"kept").unwrap();
    let recorder = Recorder::new(directory.path()).unwrap();
    write_aside(recorder.disk().as_ref(), directory.path(), true, true).unwrap();
    let events = recorder.events();
    assert!(matches!(
        events.as_slice(),
        [
            Event::Create { file: 1, .. },
            Event::Write { file: 1, offset: 0, .. },
            Event::SyncFile { file: 1 },
            Event::Rename { .. },
            Event::SyncDirectory { .. },
        ]
    ));
    recorder.for_each_cut(|cut| {
        let into = tempfile::tempdir().unwrap();
        cut.write_to(into.path()).unwrap();
        assert_eq!(fs::read(into.path().join("sub/kept")).unwrap(), b"kept");
        assert_eq!(fs::read(into.path().join("a")).ok().as_deref(), cut.file("a"));
    });
}

#[test]
fn an_in_place_writer_fails_the_fault_tests() {
    let caught = catch_unwind(AssertUnwindSafe(|| {
        for_each_fault(
            prepare,
            |disk, directory| write_in_place(disk.as_ref(), directory),
            |trial| {
                let found = fs::read(trial.directory.join("a")).ok();
                tercet_testkit::old_or_new(found.as_deref(), Some(OLD), NEW);
            },
        )
    }));
    assert!(caught.is_err());
}

#[test]
fn every_operation_fails_in_turn() {
    let n_failed = std::cell::Cell::new(0);
    let n_runs = for_each_fault(
        prepare,
        |disk, directory| write_aside(disk.as_ref(), directory, true, true),
        |trial| n_failed.set(n_failed.get() + usize::from(trial.result.is_err())),
    );
    // Five operations refused once, refused in two ways with all later ones, and late; more for create and write;
    // four full disks. Short and interrupted writes, locks and the sound run do not fail.
    assert_eq!(n_failed.get(), 5 * 4 + 1 + 1 + 4);
    assert_eq!(n_runs, n_failed.get() + 7);
}

#[test]
fn faults_are_injected_at_the_right_operation() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    let disk = FaultyDisk::real().with_free_bytes(5).with_short_writes(3);
    let mut file = disk.create_new(&path, None).unwrap();
    assert_eq!(file.write(b"12345678").unwrap(), 3);
    assert_eq!(file.write(b"45678").unwrap(), 2);
    assert_eq!(file.write(b"678").unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(disk.written_bytes(), 5);
    assert_eq!(fs::read(&path).unwrap(), b"12345");

    let disk = FaultyDisk::real().with_interrupted_writes();
    let mut file = disk.open_existing(&path).unwrap();
    assert_eq!(file.write(b"x").unwrap_err().kind(), ErrorKind::Interrupted);
    assert_eq!(file.write(b"x").unwrap(), 1);
    assert_eq!(file.write(b"x").unwrap_err().kind(), ErrorKind::Interrupted);
    assert_eq!(disk.operations(), [Op::Open, Op::Write, Op::Write, Op::Write]);

    let disk = FaultyDisk::real()
        .at(0, Fault::Refuse(ErrorKind::PermissionDenied))
        .on(Op::Lock, Fault::Held)
        .on(Op::Remove, Fault::Late(ErrorKind::TimedOut));
    assert_eq!(disk.open_existing(&path).unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert!(!disk.open_existing(&path).unwrap().try_lock().unwrap());
    assert_eq!(disk.remove(&path).unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(!path.exists(), "late: it happened all the same");
}
