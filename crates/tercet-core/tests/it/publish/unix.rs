//! Unix: modes, links, special files and names.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").mode() & 0o7777
}

#[test]
fn a_new_file_follows_the_umask() {
    if let Some(path) = child_path() {
        create(Arc::new(RealDisk), &path, NEW).unwrap();
        return;
    }
    for (umask, expected) in [("022", 0o644), ("027", 0o640), ("077", 0o600), ("000", 0o666)] {
        let dir = directory();
        let path = dir.path().join("a");
        assert!(run_child("unix::a_new_file_follows_the_umask", &path, umask).success());
        assert_eq!(mode(&path), expected, "{umask}: {:o}", mode(&path));
    }
}

#[test]
fn the_mode_of_a_replaced_file_is_kept_and_never_widened() {
    let dir = directory();
    let path = dir.path().join("a");
    for kept in [0o600, 0o640, 0o666, 0o444, 0o755] {
        put(&path, OLD);
        fs::set_permissions(&path, fs::Permissions::from_mode(kept)).unwrap();
        let atomic_file = AtomicFile::create(&path).unwrap();
        let unfinished = dir.path().join(&others(dir.path())[0]);
        assert_eq!(mode(&unfinished) & !kept & 0o077, 0, "{kept:o}: {:o}", mode(&unfinished));
        write(atomic_file, NEW).unwrap();
        assert_eq!(mode(&path), kept);
        assert_eq!(fs::read(&path).unwrap(), NEW);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_private_file_is_never_readable_by_others() {
    let dir = directory();
    let path = dir.path().join("a");
    let check = |atomic_file: AtomicFile| {
        assert_eq!(mode(&dir.path().join(&others(dir.path())[0])), 0o600);
        write(atomic_file, NEW).unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(fs::read(&path).unwrap(), NEW);
    };
    check(AtomicFile::create_private(&path).unwrap());
    for open in [0o644, 0o666, 0o640] {
        fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
        check(AtomicFile::create_private(&path).unwrap());
        fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
        check(FileLock::acquire(&path).unwrap().replace_private().unwrap());
    }
}

#[test]
fn links_are_kept_and_their_targets_replaced() {
    let dir = directory();
    fs::create_dir(dir.path().join("data")).unwrap();
    fs::create_dir(dir.path().join("links")).unwrap();
    let file = dir.path().join("data/a");
    put(&file, OLD);
    let (first, second) = (dir.path().join("links/first"), dir.path().join("second"));
    symlink("../data/a", &first).unwrap();
    symlink(&first, &second).unwrap();
    let atomic_file = AtomicFile::create(&second).unwrap();
    assert_eq!(names(&dir.path().join("data")).len(), 2, "staged beside the real target");
    assert_eq!(fs::canonicalize(write(atomic_file, NEW).unwrap()).unwrap(), fs::canonicalize(&file).unwrap());
    assert_eq!(fs::read(&file).unwrap(), NEW);
    assert!(fs::symlink_metadata(&first).unwrap().is_symlink());
    assert!(fs::symlink_metadata(&second).unwrap().is_symlink());

    let held = FileLock::acquire(&file).unwrap();
    assert!(matches!(FileLock::acquire(&second), Err(PublishError::Busy { .. })), "one file, one lock");
    drop(held);

    let dangling = dir.path().join("dangling");
    symlink("data/b", &dangling).unwrap();
    create(Arc::new(RealDisk), &dangling, NEW).unwrap();
    assert_eq!(fs::read(dir.path().join("data/b")).unwrap(), NEW);
    assert!(fs::symlink_metadata(&dangling).unwrap().is_symlink());
}

#[test]
fn link_loops_are_an_error() {
    let dir = directory();
    symlink("y", dir.path().join("x")).unwrap();
    symlink("x", dir.path().join("y")).unwrap();
    let error = AtomicFile::create(&dir.path().join("x")).unwrap_err();
    assert!(matches!(error, PublishError::LinkLoop { .. }));
    symlink("no/such/file", dir.path().join("z")).unwrap();
    let error = AtomicFile::create(&dir.path().join("z")).unwrap_err();
    assert!(matches!(error, PublishError::NoDirectory { .. }));
}

#[test]
fn pipes_sockets_and_devices_are_refused() {
    let dir = directory();
    let pipe = dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let socket = dir.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let device = Path::new("/dev/null");
    for (path, expected) in
        [(&*pipe, EntryKind::Fifo), (&*socket, EntryKind::Socket), (device, EntryKind::Device)]
    {
        let error = AtomicFile::create(path).unwrap_err();
        assert!(matches!(error, PublishError::NotAFile { kind, .. } if kind == expected), "{error:?}");
        assert_eq!(error.class(), Class::Request);
    }
    assert_eq!(names(dir.path()), ["pipe", "socket"]);
}

#[test]
fn pipes_and_links_named_like_stale_temps_are_kept() {
    let dir = directory();
    let pipe = dir.path().join(".a.tercet-0000000000000001.tmp");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let precious = dir.path().join("precious");
    put(&precious, OLD);
    let link = dir.path().join(".a.tercet-0000000000000002.tmp");
    symlink(&precious, &link).unwrap();
    create(Arc::new(RealDisk), &dir.path().join("a"), NEW).unwrap();
    assert_eq!(fs::read(&precious).unwrap(), OLD);
    assert!(pipe.exists() && link.is_symlink());
}

#[test]
fn names_may_be_long_and_need_not_be_utf8() {
    let dir = directory();
    for name in [&b"caf\xe9.tet"[..], &[0xff; 255], &[b'n'; 255]] {
        let path = dir.path().join(OsStr::from_bytes(name));
        for content in [OLD, NEW] {
            create(Arc::new(RealDisk), &path, content).unwrap();
            assert_eq!(fs::read(&path).unwrap(), content);
        }
        assert_eq!(names(dir.path()), [OsStr::from_bytes(name)]);
        fs::remove_file(&path).unwrap();
    }
}
