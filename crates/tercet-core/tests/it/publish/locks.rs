//! Concurrent writers to one file.

use super::*;

#[test]
fn concurrent_writers_keep_their_temporary_files() {
    let dir = directory();
    let path = dir.path().join("a");
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let path = &path;
            scope.spawn(move || {
                for _ in 0..25 {
                    match create(Arc::new(RealDisk), path, &[b'0' + thread; 64]) {
                        Ok(_) => {}
                        Err(error) => {
                            let error = PublishError::recover(error).unwrap();
                            assert!(matches!(error, PublishError::Busy { .. }), "{error:?}");
                        }
                    }
                }
            });
        }
    });
    let found = fs::read(&path).unwrap();
    assert!(found.len() == 64 && found.iter().all(|byte| *byte == found[0]));
    assert!(others(dir.path()).is_empty());
}

#[test]
fn a_writer_whose_temporary_file_is_removed_creates_another() {
    let dir = directory();
    let path = dir.path().join("a");
    let (directory, target) = (dir.path().to_owned(), path.clone());
    let disk = FaultyDisk::real().concurrently(Op::Create, move || {
        let other = AtomicFile::create(&target).unwrap();
        assert_eq!(
            names(&directory).len(),
            1,
            "the first file is not locked, so the other writer removes it"
        );
        drop(other);
    });
    create(Arc::new(disk), &path, NEW).unwrap();
    assert_eq!(fs::read(&path).unwrap(), NEW);
    assert_eq!(names(dir.path()), ["a"]);
}

#[test]
fn a_file_replaced_before_the_lock_is_locked_again() {
    let dir = directory();
    let path = dir.path().join("a");
    put(&path, OLD);
    let target = path.clone();
    let disk = FaultyDisk::real().concurrently(Op::Open, move || {
        create(Arc::new(RealDisk), &target, NEW).unwrap();
    });
    append(Arc::new(disk), &path, b" and more").unwrap();
    assert_eq!(fs::read(&path).unwrap(), [NEW, b" and more"].concat());
}

#[test]
fn a_second_writer_gets_busy() {
    let dir = directory();
    let path = dir.path().join("a");
    put(&path, OLD);
    let first = FileLock::acquire(&path).unwrap();
    let is_busy = |error: PublishError| matches!(error, PublishError::Busy { .. });
    assert!(is_busy(FileLock::acquire(&path).unwrap_err()));
    assert!(is_busy(AtomicFile::create(&path).unwrap_err()));
    let atomic_file = first.replace().unwrap();
    assert!(is_busy(FileLock::acquire(&path).unwrap_err()), "the successor keeps the lock");
    assert_eq!(fs::read(&path).unwrap(), OLD, "readers are not stopped");
    write(atomic_file, NEW).unwrap();
    assert_eq!(fs::read(&path).unwrap(), NEW);
    FileLock::acquire(&path).unwrap().check().unwrap();
    append(Arc::new(RealDisk), &path, b" and more").unwrap();
    assert_eq!(fs::read(&path).unwrap(), [NEW, b" and more"].concat());
}

#[test]
fn no_update_is_lost() {
    const EACH: usize = 20;
    let dir = directory();
    let path = dir.path().join("a");
    put(&path, b"....");
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let path = &path;
            scope.spawn(move || {
                let mut n_done = 0;
                while n_done < EACH {
                    match append(Arc::new(RealDisk), path, &[b'0' + thread]) {
                        Ok(_) => n_done += 1,
                        Err(error) => assert_eq!(error.kind(), ErrorKind::ResourceBusy, "{error:?}"),
                    }
                }
            });
        }
    });
    let mut found = fs::read(&path).unwrap();
    found.sort_unstable();
    let expected = [&b"...."[..], &[b'0'; EACH], &[b'1'; EACH], &[b'2'; EACH], &[b'3'; EACH]].concat();
    assert_eq!(found, expected);
}

#[test]
fn a_file_replaced_under_the_lock_is_detected() {
    let dir = directory();
    let path = dir.path().join("a");
    for remove in [false, true] {
        put(&path, OLD);
        let lock = FileLock::acquire(&path).unwrap();
        let atomic_file = lock.replace().unwrap();
        if remove {
            fs::remove_file(&path).unwrap();
        } else {
            put(&dir.path().join("b"), b"from elsewhere");
            fs::rename(dir.path().join("b"), &path).unwrap();
        }
        let error = PublishError::recover(write(atomic_file, NEW).unwrap_err()).unwrap();
        assert!(matches!(error, PublishError::Replaced { .. }), "{error:?}");
        let expected = (!remove).then_some(b"from elsewhere".to_vec());
        assert_eq!(fs::read(&path).ok(), expected);
        assert!(others(dir.path()).is_empty());
    }
}

#[test]
fn a_plain_write_replaces_any_file() {
    let dir = directory();
    let path = dir.path().join("a");
    put(&path, OLD);
    let atomic_file = AtomicFile::create(&path).unwrap();
    put(&dir.path().join("b"), b"from elsewhere");
    fs::rename(dir.path().join("b"), &path).unwrap();
    write(atomic_file, NEW).unwrap();
    assert_eq!(fs::read(&path).unwrap(), NEW);

    let atomic_file = AtomicFile::create(&dir.path().join("new")).unwrap();
    put(&dir.path().join("new"), OLD);
    let lock = FileLock::acquire(&dir.path().join("new")).unwrap();
    let error = PublishError::recover(write(atomic_file, NEW).unwrap_err()).unwrap();
    assert!(matches!(error, PublishError::Busy { .. }), "unless another writer is changing it");
    drop(lock);

    let atomic_file = AtomicFile::create(&dir.path().join("dir")).unwrap();
    fs::create_dir(dir.path().join("dir")).unwrap();
    assert!(matches!(atomic_file.publish(), Err(PublishError::NotAFile { kind: EntryKind::Directory, .. })));
}

#[test]
fn changing_a_missing_file_is_an_error() {
    let dir = directory();
    let error = FileLock::acquire(&dir.path().join("a")).unwrap_err();
    assert!(matches!(error, PublishError::Io { operation: Operation::Open, .. }));
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(names(dir.path()).is_empty());
}

#[test]
fn file_systems_without_locks_can_be_written_but_not_changed() {
    let dir = directory();
    let path = dir.path().join("a");
    put(&path, OLD);
    let disk = FaultyDisk::real().on(Op::Lock, Fault::Refuse(ErrorKind::Unsupported));
    let error = FileLock::acquire_on(Arc::new(disk.clone()), &path).unwrap_err();
    assert!(matches!(error, PublishError::Io { operation: Operation::Lock, .. }));
    assert!(error.hint().unwrap().to_string().contains("no locks"));
    create(Arc::new(disk), &path, NEW).unwrap();
    assert_eq!(fs::read(&path).unwrap(), NEW);
}
