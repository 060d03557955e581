//! Files in an open directory stay in it.

use std::ffi::OsStr;

use tercet_core::publish::Directory;

use super::*;

fn os(name: &str) -> &OsStr {
    OsStr::new(name)
}

#[test]
fn a_file_is_created_replaced_and_stale_temps_are_removed() {
    let dir = directory();
    put(&dir.path().join(".a.tercet-00000000deadbeef.tmp"), b"of a dead writer");
    let open = Directory::open(dir.path()).unwrap();
    for content in [OLD, NEW] {
        let path = write(open.stage(os("a"), false, true).unwrap(), content).unwrap();
        assert_eq!(path, open.path().join("a"));
        assert_eq!(fs::read(&path).unwrap(), content);
        assert!(others(dir.path()).is_empty());
    }
    assert_eq!(open.look(os("a")).unwrap().unwrap().kind, EntryKind::File);
    assert_eq!(open.look(os("b")).unwrap(), None);
    let held = FileLock::acquire(&dir.path().join("a")).unwrap();
    assert!(
        matches!(open.stage(os("a"), false, true), Err(PublishError::Busy { .. })),
        "locks are those of any writer"
    );
    drop(held);
}

#[test]
fn only_single_names_are_accepted() {
    let dir = directory();
    let open = Directory::open(dir.path()).unwrap();
    for name in ["", ".", "..", "a/b", "a/", "/a", "./a"] {
        assert_eq!(open.enter(os(name)).unwrap_err().kind(), ErrorKind::InvalidInput, "{name}");
        assert_eq!(open.make(os(name), false).unwrap_err().kind(), ErrorKind::InvalidInput, "{name}");
        assert!(open.look(os(name)).is_err(), "{name}");
    }
    assert!(names(dir.path()).is_empty());
}

#[test]
fn subdirectories_are_created_opened_and_removed() {
    let dir = directory();
    let open = Directory::open(dir.path()).unwrap();
    assert!(open.make(os("sub"), true).unwrap());
    assert!(!open.make(os("sub"), true).unwrap());
    let sub = open.enter(os("sub")).unwrap();
    assert_eq!(sub.id().unwrap(), open.look(os("sub")).unwrap().unwrap().id);
    write(sub.stage(os("a"), false, true).unwrap(), NEW).unwrap();
    assert!(open.remove_directory(os("sub")).is_err(), "not empty");
    fs::remove_file(dir.path().join("sub/a")).unwrap();
    open.remove_directory(os("sub")).unwrap();
    assert!(names(dir.path()).is_empty());
    put(&dir.path().join("a"), OLD);
    assert!(open.enter(os("a")).is_err(), "a file is no directory");
}

#[test]
fn a_temporary_file_has_no_name() {
    let dir = directory();
    let mut file = Directory::open(dir.path()).unwrap().temporary().unwrap();
    file.write_all(NEW).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    assert_eq!(io::read_to_string(&file).unwrap().as_bytes(), NEW);
    #[cfg(unix)]
    assert!(names(dir.path()).is_empty());
    drop(file);
    assert!(names(dir.path()).is_empty());
}

#[test]
fn every_refused_operation_leaves_the_old_or_the_new_file() {
    let sound = directory();
    put(&sound.path().join("a"), OLD);
    let disk = FaultyDisk::new(Arc::new(Directory::open(sound.path()).unwrap()));
    create(Arc::new(disk.clone()), &sound.path().join("a"), NEW).unwrap();
    let operations = disk.operations().len();
    assert!(operations > 10, "{operations}");
    for number in 0..operations {
        let dir = directory();
        put(&dir.path().join("a"), OLD);
        let open = Directory::open(dir.path()).unwrap();
        let disk = FaultyDisk::new(Arc::new(open.clone())).at(number, Fault::Refuse(ErrorKind::Other));
        let result = create(Arc::new(disk), &dir.path().join("a"), NEW);
        let is_new = old_or_new(fs::read(dir.path().join("a")).ok().as_deref(), Some(OLD), NEW);
        assert!(is_new || result.is_err(), "operation {number}");
        drop(open.stage(os("a"), false, true).unwrap());
        assert!(others(dir.path()).is_empty(), "operation {number}");
    }
}

#[test]
fn new_files_replace_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let open = Directory::open(dir.path()).unwrap();
    let path = dir.path().join("a");
    for private in [false, true] {
        // A file that appears before the output is published stays as it is, and so does one that exists.
        let mut late = open.stage(os("a"), private, false).unwrap();
        late.write_all(NEW).unwrap();
        fs::write(&path, OLD).unwrap();
        assert!(matches!(late.publish(), Err(PublishError::Exists { .. })));
        assert!(matches!(open.stage(os("a"), private, false), Err(PublishError::Exists { .. })));
        assert_eq!(fs::read(&path).unwrap(), OLD);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
        fs::remove_file(&path).unwrap();
        let mut first = open.stage(os("a"), private, false).unwrap();
        first.write_all(NEW).unwrap();
        first.publish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), NEW);
        fs::remove_file(&path).unwrap();
    }
}

#[cfg(unix)]
mod links {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn no_link_is_followed() {
        let dir = directory();
        fs::create_dir(dir.path().join("inside")).unwrap();
        fs::create_dir(dir.path().join("outside")).unwrap();
        put(&dir.path().join("outside/a"), OLD);
        symlink("../outside", dir.path().join("inside/sub")).unwrap();
        symlink("../outside/a", dir.path().join("inside/a")).unwrap();
        let inside = Directory::open(&dir.path().join("inside")).unwrap();
        assert!(inside.enter(os("sub")).is_err());
        assert_eq!(inside.look(os("sub")).unwrap().unwrap().kind, EntryKind::Link);
        assert!(inside.stage(os("a"), false, true).is_err());
        assert_eq!(fs::read(dir.path().join("outside/a")).unwrap(), OLD);
        assert_eq!(names(&dir.path().join("outside")), ["a"]);
    }

    #[test]
    fn a_moved_directory_keeps_its_handle() {
        let dir = directory();
        fs::create_dir(dir.path().join("here")).unwrap();
        let open = Directory::open(&dir.path().join("here")).unwrap();
        let mut atomic_file = open.stage(os("a"), false, true).unwrap();
        atomic_file.write_all(NEW).unwrap();
        fs::rename(dir.path().join("here"), dir.path().join("there")).unwrap();
        fs::create_dir(dir.path().join("here")).unwrap();
        atomic_file.publish().unwrap();
        assert_eq!(fs::read(dir.path().join("there/a")).unwrap(), NEW);
        assert!(names(&dir.path().join("here")).is_empty());
    }

    #[test]
    fn private_directories_have_owner_only_permissions() {
        let dir = directory();
        let open = Directory::open(dir.path()).unwrap();
        open.make(os("own"), true).unwrap();
        assert_eq!(fs::metadata(dir.path().join("own")).unwrap().mode() & 0o777, 0o700);
    }
}
