//! Atomic files and locks.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tercet_core::publish::{
    AtomicFile, Disk, EntryKind, FileLock, Operation, PublishError, RealDisk, is_stale_temp,
};
use tercet_core::sink::Sink;
use tercet_core::{Class, Diagnostic};
use tercet_testkit::faults::{Fault, FaultyDisk, Op, for_each_fault};
use tercet_testkit::old_or_new;
use tercet_testkit::powercut::for_each_cut;

mod directory;
mod locks;
#[cfg(unix)]
mod unix;

const OLD: &[u8] = b"the old content";
const NEW: &[u8] = b"the new content, which is longer";

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory to work in")
}

fn put(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("a file to start with");
}

/// Writes `bytes` in three pieces, with a seek back, so that several operations can fail.
fn write(mut out: AtomicFile, bytes: &[u8]) -> io::Result<PathBuf> {
    let (head, body) = bytes.split_at(4);
    out.write_all(b"????")?;
    out.write_all(body)?;
    out.seek(SeekFrom::Start(0))?;
    out.write_all(head)?;
    out.flush()?;
    out.finish()
}

fn create(disk: Arc<dyn Disk>, path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    write(AtomicFile::create_on(disk, path)?, bytes)
}

/// What `append` does: lock, read, write the old bytes and more.
fn append(disk: Arc<dyn Disk>, path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let lock = FileLock::acquire_on(disk, path)?;
    let all = [fs::read(lock.path())?, bytes.to_vec()].concat();
    write(lock.replace()?, &all)
}

fn names(directory: &Path) -> Vec<OsString> {
    let items = fs::read_dir(directory).expect("a directory to list");
    let mut names: Vec<OsString> = items.map(|item| item.expect("a name").file_name()).collect();
    names.sort();
    names
}

/// Every file of the directory but `a`.
fn others(directory: &Path) -> Vec<OsString> {
    names(directory).into_iter().filter(|name| name != "a").collect()
}

#[test]
fn a_new_file_appears_at_publish() {
    let dir = directory();
    let path = dir.path().join("a");
    let mut out = AtomicFile::create(&path).unwrap();
    out.write_all(NEW).unwrap();
    out.flush().unwrap();
    assert!(!path.exists());
    assert_eq!(others(dir.path()).len(), 1, "the unfinished file is beside the target");
    assert_eq!(out.publish().unwrap(), path);
    assert_eq!(fs::read(&path).unwrap(), NEW);
    assert_eq!(names(dir.path()), ["a"]);
}

#[test]
fn a_dropped_file_is_removed() {
    let dir = directory();
    let path = dir.path().join("a");
    put(&path, OLD);
    let mut out = AtomicFile::create(&path).unwrap();
    out.write_all(NEW).unwrap();
    drop(out);
    assert_eq!(fs::read(&path).unwrap(), OLD);
    assert_eq!(names(dir.path()), ["a"]);
}

#[test]
fn buffered_large_and_seeking_writes_are_correct() {
    let dir = directory();
    let path = dir.path().join("a");
    let mut out = AtomicFile::create(&path).unwrap();
    let mut model = io::Cursor::new(Vec::new());
    let mut both = |to: Option<SeekFrom>, bytes: &[u8]| {
        if let Some(to) = to {
            assert_eq!(out.seek(to).unwrap(), model.seek(to).unwrap());
        }
        out.write_all(bytes).unwrap();
        model.write_all(bytes).unwrap();
        assert_eq!(out.stream_position().unwrap(), model.position());
    };
    for i in 0..100_000_u32 {
        both(None, &i.to_le_bytes());
    }
    both(None, &vec![7; 300 * 1024]);
    both(None, b"small");
    both(None, &vec![9; 256 * 1024]);
    both(Some(SeekFrom::Start(5)), b"HEAD");
    both(Some(SeekFrom::Current(-2)), b"!!");
    both(Some(SeekFrom::End(10)), b"after a gap");
    both(Some(SeekFrom::End(0)), b"end");
    out.publish().unwrap();
    assert!(fs::read(&path).unwrap() == model.into_inner());
}

#[test]
fn length_can_be_set() {
    let dir = directory();
    let path = dir.path().join("a");
    let mut out = AtomicFile::create(&path).unwrap();
    out.write_all(b"abcdef").unwrap();
    out.set_len(8).unwrap();
    out.set_len(7).unwrap();
    out.publish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"abcdef\0");
}

#[test]
fn a_directory_target_is_refused() {
    let dir = directory();
    let error = AtomicFile::create(dir.path()).unwrap_err();
    assert!(matches!(error, PublishError::NotAFile { kind: EntryKind::Directory, .. }));
    assert_eq!(error.class(), Class::Request);
    assert!(error.to_string().ends_with("is a directory, not a file"));
    assert!(matches!(FileLock::acquire(dir.path()), Err(PublishError::NotAFile { .. })));
}

#[test]
fn a_missing_directory_is_named() {
    let dir = directory();
    let error = AtomicFile::create(&dir.path().join("no/a")).unwrap_err();
    assert!(
        matches!(&error, PublishError::NoDirectory { directory, .. } if *directory == dir.path().join("no"))
    );
    assert_eq!(error.class(), Class::Io);
}

#[test]
fn a_directory_that_refuses_new_files_is_named() {
    let dir = directory();
    let refuse = Fault::Refuse(ErrorKind::PermissionDenied);
    let disk = Arc::new(FaultyDisk::real().on(Op::Create, refuse));
    let error = AtomicFile::create_on(disk, &dir.path().join("a")).unwrap_err();
    assert!(matches!(&error, PublishError::Directory { directory, .. } if directory == dir.path()));
    assert!(error.to_string().contains(&*dir.path().to_string_lossy()));
    assert!(error.hint().unwrap().to_string().contains("permissions"));
}

#[test]
fn stale_temps_are_removed_only_if_their_writer_is_dead() {
    let dir = directory();
    let path = dir.path().join("a");
    let dead = dir.path().join(".a.tercet-0123456789abcdef.tmp");
    let of_another = dir.path().join(".b.tercet-0123456789abcdef.tmp");
    let lookalike = dir.path().join(".a.tercet-0123456789ABCDEF.tmp");
    for path in [&dead, &of_another, &lookalike] {
        put(path, b"half");
    }
    let alive = AtomicFile::create(&path).unwrap();
    assert!(!dead.exists());
    assert!(of_another.exists() && lookalike.exists());
    let second = AtomicFile::create(&path).unwrap();
    let unfinished = || names(dir.path()).iter().filter(|name| is_stale_temp(name, "a".as_ref())).count();
    assert_eq!(unfinished(), 2, "the second writer leaves the first one alone");
    write(alive, OLD).unwrap();
    write(second, NEW).unwrap();
    assert_eq!(fs::read(&path).unwrap(), NEW);
    assert_eq!(unfinished(), 0);
}

#[test]
fn nothing_is_published_after_a_failed_write() {
    let dir = directory();
    let path = dir.path().join("a");
    put(&path, OLD);
    let disk = FaultyDisk::real().with_free_bytes(3);
    let mut out = AtomicFile::create_on(Arc::new(disk), &path).unwrap();
    out.write_all(NEW).unwrap();
    let error = out.flush().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    let error = PublishError::recover(error).unwrap();
    assert!(error.hint().unwrap().to_string().contains("full"));
    let later = PublishError::recover(out.write(b"x").unwrap_err()).unwrap();
    assert!(matches!(later, PublishError::Incomplete { .. }));
    assert!(matches!(out.publish(), Err(PublishError::Incomplete { .. })));
    assert_eq!(fs::read(&path).unwrap(), OLD);
    assert_eq!(names(dir.path()), ["a"]);
}

#[test]
fn short_and_interrupted_writes_are_completed() {
    let dir = directory();
    let path = dir.path().join("a");
    let disk = FaultyDisk::real().with_short_writes(3).with_interrupted_writes();
    create(Arc::new(disk), &path, NEW).unwrap();
    assert_eq!(fs::read(&path).unwrap(), NEW);
}

#[test]
fn a_failed_directory_sync_reports_that_the_file_is_in_place() {
    let dir = directory();
    let path = dir.path().join("a");
    let disk = FaultyDisk::real().on(Op::SyncDirectory, Fault::Refuse(ErrorKind::Other));
    let error = PublishError::recover(create(Arc::new(disk), &path, NEW).unwrap_err()).unwrap();
    assert!(matches!(error, PublishError::Io { operation: Operation::SyncDirectory, .. }));
    assert!(error.hint().unwrap().to_string().contains("in place"));
    assert_eq!(fs::read(&path).unwrap(), NEW);
}

/// Runs the scenario with every fault: the file is old or new, new on success, and no temporary file stays.
fn survives_every_fault(
    old: Option<&[u8]>,
    new: &[u8],
    run: impl Fn(Arc<dyn Disk>, &Path) -> io::Result<PathBuf>,
) {
    let n_runs = for_each_fault(
        |directory| {
            if let Some(old) = old {
                put(&directory.join("a"), old);
            }
            put(&directory.join(".a.tercet-00000000deadbeef.tmp"), b"of a dead writer");
        },
        |disk, directory| run(disk, &directory.join("a")),
        |trial| {
            let path = trial.directory.join("a");
            let is_new = old_or_new(fs::read(&path).ok().as_deref(), old, new);
            assert!(is_new || trial.result.is_err(), "success was reported");
            drop(AtomicFile::create(&path).expect("the next writer is not stopped"));
            assert!(others(trial.directory).is_empty(), "{:?}", others(trial.directory));
        },
    );
    assert!(n_runs > 50, "{n_runs}");
}

#[test]
fn every_fault_leaves_nothing_or_the_new_file() {
    survives_every_fault(None, NEW, |disk, path| create(disk, path, NEW));
}

#[test]
fn every_fault_leaves_the_old_or_the_new_file() {
    survives_every_fault(Some(OLD), NEW, |disk, path| create(disk, path, NEW));
}

#[test]
fn every_fault_in_a_change_leaves_the_old_or_the_new_file() {
    survives_every_fault(Some(OLD), &[OLD, NEW].concat(), |disk, path| append(disk, path, NEW));
}

#[test]
fn every_power_cut_leaves_the_old_or_the_new_file() {
    let append_all = [OLD, NEW].concat();
    for (old, new, change) in [(None, NEW, false), (Some(OLD), NEW, false), (Some(OLD), &append_all, true)] {
        let mut n_new = 0;
        let n_cuts = for_each_cut(
            |directory| {
                if let Some(old) = old {
                    put(&directory.join("a"), old);
                }
                put(&directory.join(".a.tercet-00000000deadbeef.tmp"), b"of a dead writer");
            },
            |disk, directory| {
                let run = if change { append } else { create };
                run(disk, &directory.join("a"), NEW).expect("no fault is injected");
            },
            |cut| {
                let is_new = old_or_new(cut.file("a"), old, new);
                assert!(is_new || !cut.complete, "published means durable");
                n_new += usize::from(is_new);
            },
        );
        assert!(n_cuts > 10 && n_new > 0 && n_new < n_cuts, "{n_new} of {n_cuts}");
    }
}

/// Runs one test of this binary in a child process, marked by an environment variable.
fn run_child(test: &str, path: &Path, umask: &str) -> std::process::ExitStatus {
    let binary = std::env::current_exe().expect("the path of this test");
    let mut command = if cfg!(unix) {
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"umask "$0" && exec "$@""#, umask]).arg(binary);
        shell
    } else {
        Command::new(binary)
    };
    command.args(["--exact", &format!("publish::{test}"), "--nocapture"]).env("TERCET_TEST_CHILD", path);
    let output = command.output().expect("the test can be started");
    assert!(output.stdout.windows(14).any(|part| part == b"running 1 test"), "no test is named {test}");
    output.status
}

fn child_path() -> Option<PathBuf> {
    std::env::var_os("TERCET_TEST_CHILD").map(PathBuf::from)
}

#[test]
fn the_stale_temp_of_a_killed_writer_is_removed_by_the_next_one() {
    if let Some(path) = child_path() {
        let mut out = AtomicFile::create(&path).unwrap();
        out.write_all(NEW).unwrap();
        out.flush().unwrap();
        std::process::abort();
    }
    let dir = directory();
    let path = dir.path().join("a");
    put(&path, OLD);
    let status = run_child("the_stale_temp_of_a_killed_writer_is_removed_by_the_next_one", &path, "022");
    assert!(!status.success());
    assert_eq!(others(dir.path()).len(), 1, "a dead process cannot clean up");
    assert_eq!(fs::read(&path).unwrap(), OLD);
    drop(FileLock::acquire(&path).unwrap());
    drop(AtomicFile::create(&path).unwrap());
    assert_eq!(names(dir.path()), ["a"]);
}

/// A file that appears during a write is replaced only on request.
#[test]
fn create_new_replaces_no_file() {
    let directory = directory();
    let path = directory.path().join("a.tet");
    write(AtomicFile::create_new(&path).unwrap(), NEW).unwrap();
    assert_eq!(fs::read(&path).unwrap(), NEW);
    let there = AtomicFile::create_new(&path).unwrap_err();
    assert!(matches!(there, PublishError::Exists { .. }), "{there}");
    assert_eq!((there.class(), there.kind()), (Class::Request, ErrorKind::AlreadyExists));
    // With hard links, without them, and at the last moment.
    let other = directory.path().join("b.tet");
    let disks: [Arc<dyn Disk>; 3] = [Arc::new(RealDisk), Arc::new(FaultyDisk::real()), {
        let other = other.clone();
        Arc::new(FaultyDisk::real().concurrently(Op::SyncFile, move || put(&other, OLD)))
    }];
    for disk in disks {
        let _ = fs::remove_file(&other);
        let atomic_file = AtomicFile::create_new_on(disk, &other).unwrap();
        put(&other, OLD);
        let error = PublishError::recover(write(atomic_file, NEW).unwrap_err()).unwrap();
        assert!(matches!(error, PublishError::Exists { .. }), "{error}");
        assert_eq!(fs::read(&other).unwrap(), OLD);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}

/// With every fault: no file or the new file.
#[test]
fn create_new_is_atomic() {
    let create = |disk: Arc<dyn Disk>, directory: &Path| {
        write(AtomicFile::create_new_on(disk, &directory.join("a.tet"))?, NEW).map(drop)
    };
    for_each_fault(
        |_| {},
        |disk, directory| create(disk, directory),
        |trial| {
            let found = fs::read(trial.directory.join("a.tet")).ok();
            assert!(old_or_new(found.as_deref(), None, NEW) || trial.result.is_err());
        },
    );
}
