//! Conformance of every source; special files are refused.

use std::fs;
use std::path::{Path, PathBuf};

use tercet_core::source::{File, LazyFile, Memory, Mmap};
use tercet_core::{ByteSource, Class, Diagnostic, SourceError, Span};
use tercet_testkit::counting::Counting;
use tercet_testkit::source_conformance;

/// Lengths around 0 and the sizes of words and pages.
const LENGTHS: [usize; 8] = [0, 1, 2, 31, 32, 4096, 4097, 100_000];

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(31) >> 3).to_le_bytes()[0]).collect()
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory to work in")
}

/// Calls `check` with files of several lengths.
fn for_each_file(check: impl Fn(&Path, &str, &[u8])) {
    let dir = directory();
    for len in LENGTHS {
        let path: PathBuf = dir.path().join(format!("{len}.bin"));
        let bytes = content(len);
        fs::write(&path, &bytes).expect("a file to read");
        check(&path, &path.to_string_lossy(), &bytes);
    }
}

#[test]
fn memory_conforms() {
    for len in LENGTHS {
        let bytes = content(len);
        let source = Memory::new("in memory", bytes.clone());
        source_conformance(&source, "in memory", &bytes);
        assert!(source.is_zero_copy());
    }
}

#[test]
fn files_conform() {
    for_each_file(|path, name, bytes| {
        let source = File::open(path).unwrap();
        source_conformance(&source, name, bytes);
        assert!(!source.is_zero_copy());
    });
}

#[test]
fn lazy_files_conform() {
    for_each_file(|path, name, bytes| {
        let source = LazyFile::open(path).unwrap();
        source_conformance(&source, name, bytes);
        assert!(!source.is_zero_copy());
    });
}

/// A later read returns the same file or an error.
#[test]
fn a_lazy_file_detects_changes() {
    let dir = directory();
    let path = dir.path().join("a.bin");
    fs::write(&path, b"abc").expect("a file to read");
    let source = LazyFile::open(&path).unwrap();
    assert_eq!(source.read_at(Span::first(3)).unwrap(), "abc");
    let other = dir.path().join("b.bin");
    fs::write(&other, b"abd").expect("a file to read");
    fs::rename(&other, &path).expect("a file in its place");
    let changed = source.read_at(Span::first(3)).unwrap_err();
    assert!(changed.to_string().contains("changed while it was read"), "{changed}");
    fs::remove_file(&path).expect("a file to remove");
    assert!(matches!(source.read_at(Span::first(3)), Err(SourceError::Open(_))));
}

#[test]
fn maps_conform() {
    for_each_file(|path, name, bytes| {
        let source = Mmap::open(path).unwrap();
        source_conformance(&source, name, bytes);
        assert!(source.is_zero_copy());
    });
}

#[test]
fn shared_sources_conform() {
    for_each_file(|path, name, bytes| {
        let source: std::sync::Arc<dyn ByteSource> = std::sync::Arc::new(File::open(path).unwrap());
        source_conformance(&source, name, bytes);
        let map: std::sync::Arc<dyn ByteSource> = std::sync::Arc::new(Mmap::open(path).unwrap());
        source_conformance(&map, name, bytes);
        assert!(map.is_zero_copy());
    });
}

#[test]
fn counting_sources_conform_and_count() {
    let bytes = content(1000);
    let source = Counting::new(Memory::new("counted", bytes.clone()));
    source_conformance(&source, "counted", &bytes);
    assert!(source.is_zero_copy());
    source.reset();
    source.read_at(Span::first(10)).unwrap();
    source.read_into(500, &mut [0; 7]).unwrap();
    assert_eq!((source.reads(), source.bytes()), (2, 17));
    assert_eq!(source.spans(), [Span::first(10), Span::between(500, 507).unwrap()]);

    let copying = Counting::new(Memory::new("counted", bytes.clone())).with_copies();
    source_conformance(&copying, "counted", &bytes);
    assert!(!copying.is_zero_copy());
}

#[test]
fn reads_share_the_bytes_of_memory_and_maps() {
    let dir = directory();
    let path = dir.path().join("a");
    fs::write(&path, content(5000)).unwrap();
    for source in
        [&Memory::new("m", content(5000)) as &dyn ByteSource, &Mmap::open(&path).unwrap() as &dyn ByteSource]
    {
        let (one, two) =
            (source.read_at(Span::first(5000)).unwrap(), source.read_at(Span::first(10)).unwrap());
        assert_eq!(one.as_ptr(), two.as_ptr());
    }
}

#[test]
fn bytes_outlive_their_source() {
    let dir = directory();
    let path = dir.path().join("a");
    fs::write(&path, content(5000)).unwrap();
    let source = Mmap::open(&path).unwrap();
    let bytes = source.read_at(Span::at(4000, 1000).unwrap()).unwrap();
    drop(source);
    fs::remove_file(&path).unwrap();
    assert!(bytes == content(5000)[4000..]);
}

#[test]
fn a_truncated_file_is_a_read_error() {
    let dir = directory();
    let path = dir.path().join("a");
    fs::write(&path, content(5000)).unwrap();
    let source = File::open(&path).unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(100).unwrap();
    assert_eq!(source.len(), 5000, "the length is that of the moment of opening");
    assert!(source.read_at(Span::first(100)).is_ok());
    let error = source.read_at(Span::first(101)).unwrap_err();
    assert!(matches!(error, SourceError::PastEnd { len: 100, .. }), "{error:?}");
    assert_eq!(error.class(), Class::Io);
}

#[test]
fn missing_files_and_directories_are_refused() {
    let dir = directory();
    let missing = dir.path().join("missing");
    for result in [File::open(&missing).map(drop), Mmap::open(&missing).map(drop)] {
        assert!(matches!(result, Err(SourceError::Open(_))), "{result:?}");
    }
    for result in [File::open(dir.path()).map(drop), Mmap::open(dir.path()).map(drop)] {
        assert!(matches!(result, Err(SourceError::NotAFile { kind: "a directory" })), "{result:?}");
    }
}

#[cfg(unix)]
mod special {
    use super::*;

    fn refused(path: &Path, expected: &str) {
        for result in [File::open(path).map(drop), Mmap::open(path).map(drop)] {
            match result {
                Err(SourceError::NotAFile { kind }) => assert_eq!(kind, expected),
                other => panic!("{}: {other:?}", path.display()),
            }
        }
    }

    #[test]
    fn devices_are_refused() {
        refused(Path::new("/dev/zero"), "a device");
        refused(Path::new("/dev/null"), "a device");
    }

    #[test]
    fn a_pipe_without_a_writer_does_not_block() {
        let dir = directory();
        let path = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        refused(&path, "a pipe");
        // Through a link as well.
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        refused(&link, "a pipe");
    }

    #[test]
    fn a_socket_is_refused() {
        let dir = directory();
        let path = dir.path().join("s");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        refused(&path, "a socket");
    }

    #[test]
    fn names_that_are_not_utf8_are_displayed_lossily() {
        use std::os::unix::ffi::OsStrExt as _;
        let dir = directory();
        let path = dir.path().join(std::ffi::OsStr::from_bytes(b"a\xff.bin"));
        fs::write(&path, b"abc").unwrap();
        let source = File::open(&path).unwrap();
        assert!(source.name().ends_with("a\u{fffd}.bin"));
        assert!(source.read_at(Span::first(3)).unwrap() == b"abc"[..]);
    }
}
