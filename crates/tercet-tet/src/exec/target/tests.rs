#![expect(clippy::disallowed_methods, reason = "these tests look at real files")]

use std::fs;
use std::io::Write as _;

use tercet_core::publish::PublishError;
use tercet_core::{Class, CommonError, Diagnostic as _, Hint};

use super::*;

/// A directory with a source file, a sibling outside, and a cache that does not exist.
struct OutputRange {
    _directory: tempfile::TempDir,
    base: PathBuf,
    data: PathBuf,
    outside: PathBuf,
}

impl OutputRange {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(directory.path()).unwrap();
        let (data, outside) = (base.join("data"), base.join("outside"));
        fs::create_dir(&data).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(data.join("a.tet"), b"source").unwrap();
        fs::write(outside.join("precious"), b"precious").unwrap();
        Self { _directory: directory, base, data, outside }
    }

    fn outputs(&self, allowed: &[PathBuf]) -> Outputs {
        let mut outputs = Outputs::new(Some(&self.data.join("a.tet")), allowed, 0).unwrap();
        outputs.cache = vec![self.base.join("cache/tetration")];
        outputs
    }

    /// Every name below the base, including directories.
    fn listing(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut directories = vec![self.base.clone()];
        while let Some(directory) = directories.pop() {
            for item in fs::read_dir(&directory).unwrap() {
                let item = item.unwrap();
                if item.file_type().unwrap().is_dir() {
                    directories.push(item.path());
                }
                found.push(item.path());
            }
        }
        found.sort();
        found
    }
}

fn write(outputs: &Outputs, path: &Path) -> Result<PathBuf, ErrorKind> {
    let output = outputs.open(outputs.spot(path)?)?;
    let mut atomic_file = output.stage()?;
    atomic_file.write_all(b"result")?;
    let path = atomic_file.publish()?;
    output.keep();
    Ok(path)
}

#[test]
fn relative_paths_lie_beside_the_source() {
    let place = OutputRange::new();
    let outputs = place.outputs(&[]);
    for name in ["x.bin", "new/deeper/x.bin", "./y.bin", "new/../z.bin", "a.tet.bin"] {
        let path = write(&outputs, Path::new(name)).unwrap();
        assert_eq!(fs::canonicalize(&path).unwrap(), path, "{name}");
        assert_eq!(fs::read(place.data.join(name)).unwrap(), b"result", "{name}");
    }
    let absolute = place.data.join("new/w.bin");
    assert_eq!(write(&outputs, &absolute).unwrap(), absolute);
    assert_eq!(fs::read(place.data.join("a.tet")).unwrap(), b"source");
}

#[test]
fn what_lies_outside_is_refused_and_nothing_is_made() {
    let place = OutputRange::new();
    let outputs = place.outputs(&[]);
    let before = place.listing();
    let absolute = place.outside.join("new/x.bin");
    for path in ["../outside/x.bin", "../x.bin", "no/such/../../../outside/x", absolute.to_str().unwrap()] {
        let error = write(&outputs, Path::new(path)).unwrap_err();
        assert!(
            matches!(error, ErrorKind::Target { reason: TargetError::Outside | TargetError::Dots, .. }),
            "{path}: {error}"
        );
        assert_eq!(error.class(), Class::Request);
    }
    for path in ["", "new/", "new/.", "..", "."] {
        let error = write(&outputs, Path::new(path)).unwrap_err();
        assert!(matches!(error, ErrorKind::Target { reason: TargetError::NoName, .. }), "{path}: {error}");
    }
    assert_eq!(place.listing(), before);
    let allowed = place.outputs(std::slice::from_ref(&place.outside));
    assert_eq!(write(&allowed, &absolute).unwrap(), absolute);
    assert_eq!(write(&allowed, Path::new("../outside/y")).unwrap(), place.outside.join("y"));
}

#[test]
fn a_directory_is_no_file() {
    let place = OutputRange::new();
    fs::create_dir(place.data.join("sub")).unwrap();
    let error = write(&place.outputs(&[]), Path::new("sub")).unwrap_err();
    assert!(
        matches!(error, ErrorKind::Target { reason: TargetError::NotAFile(EntryKind::Directory), .. }),
        "{error}"
    );
}

#[test]
fn existing_files_are_replaced_only_on_request() {
    let place = OutputRange::new();
    let outputs = place.outputs(&[]);
    let path = place.data.join("x.bin");
    let is_refused = |error: &ErrorKind| {
        let exists = matches!(error, ErrorKind::Common(CommonError::Publish(PublishError::Exists { path: found })) if *found == path);
        exists && error.hint() == Some(Hint::Overwrite)
    };
    fs::write(&path, b"old").unwrap();
    for name in ["x.bin", "./x.bin", path.to_str().unwrap()] {
        let error = write(&outputs, Path::new(name)).unwrap_err();
        assert!(is_refused(&error), "{name}: {error}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }
    write(&outputs.clone().with_overwrite(true), Path::new("x.bin")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"result");

    // A file that appears while the result is written is kept as well.
    fs::remove_file(&path).unwrap();
    let output = outputs.open(outputs.spot(Path::new("x.bin")).unwrap()).unwrap();
    let mut atomic_file = output.stage().unwrap();
    atomic_file.write_all(b"result").unwrap();
    fs::write(&path, b"new").unwrap();
    let error = ErrorKind::from(atomic_file.publish().unwrap_err());
    assert!(is_refused(&error), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fs::read_dir(&place.data).unwrap().count(), 2, "no temporary file is left");
}

#[test]
fn the_source_is_refused_by_all_its_names() {
    let place = OutputRange::new();
    fs::hard_link(place.data.join("a.tet"), place.data.join("twin.tet")).unwrap();
    let outputs = place.outputs(&[]);
    let absolute = place.data.join("a.tet");
    for path in ["a.tet", "./a.tet", "../data/a.tet", "twin.tet", absolute.to_str().unwrap()] {
        let error = write(&outputs, Path::new(path)).unwrap_err();
        assert!(matches!(error, ErrorKind::Target { reason: TargetError::Source, .. }), "{path}: {error}");
    }
    // The path becomes a name of the source after the check.
    let spot = outputs.spot(Path::new("later.tet")).unwrap();
    fs::hard_link(place.data.join("a.tet"), place.data.join("later.tet")).unwrap();
    assert!(matches!(outputs.open(spot), Err(ErrorKind::Target { reason: TargetError::Source, .. })));
    assert_eq!(fs::read(place.data.join("a.tet")).unwrap(), b"source");
}

#[test]
fn files_without_a_name_go_to_the_cache() {
    let place = OutputRange::new();
    let outputs = place.outputs(&[]);
    let output = outputs.automatic().unwrap();
    let path = output.path();
    assert!(path.starts_with(place.base.join("cache/tetration")), "{path:?}");
    drop(output);
    assert!(!place.base.join("cache").exists(), "a place that was not used leaves nothing");
    let output = outputs.automatic().unwrap();
    let mut atomic_file = output.stage().unwrap();
    atomic_file.write_all(b"kept").unwrap();
    let first = atomic_file.publish().unwrap();
    output.keep();
    assert_ne!(first, path, "names differ");
    assert_eq!(fs::read(first).unwrap(), b"kept");

    let (mut file, directory) = outputs.temporary().unwrap();
    assert_eq!(directory, place.base.join("cache/tetration"));
    file.write_all(b"gone").unwrap();
    assert_eq!(fs::read_dir(place.base.join("cache/tetration")).unwrap().count(), 1);

    let nowhere = Outputs { cache: Vec::new(), ..outputs };
    assert!(matches!(nowhere.automatic(), Err(ErrorKind::Target { reason: TargetError::NoCache, .. })));
    nowhere.temporary().unwrap().0.write_all(b"elsewhere").unwrap();
}

#[test]
fn a_cache_that_cannot_be_had_is_named() {
    let place = OutputRange::new();
    // A file exists at the path of the cache directory.
    let cache = place.outside.join("precious");
    let outputs = Outputs { cache: vec![cache.clone()], ..place.outputs(&[]) };
    match outputs.automatic() {
        Err(ErrorKind::Target { path, reason: TargetError::Io(_) }) => {
            assert!(path.starts_with(cache.to_str().unwrap()), "{path}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_failure_leaves_no_directory() {
    let place = OutputRange::new();
    let outputs = place.outputs(&[]);
    let before = place.listing();
    let output = outputs.open(outputs.spot(Path::new("new/deeper/x.bin")).unwrap()).unwrap();
    let mut atomic_file = output.stage().unwrap();
    atomic_file.write_all(b"half").unwrap();
    assert_ne!(place.listing(), before);
    drop(atomic_file);
    drop(output);
    assert_eq!(place.listing(), before);
}

#[test]
fn bytes_in_memory_have_no_directory() {
    let place = OutputRange::new();
    let outputs = Outputs::new(None, std::slice::from_ref(&place.outside), 0).unwrap();
    let error = write(&outputs, Path::new("x.bin")).unwrap_err();
    assert!(matches!(error, ErrorKind::Target { reason: TargetError::NoBase, .. }), "{error}");
    write(&outputs, &place.outside.join("x.bin")).unwrap();
}

#[test]
fn a_bare_name_is_in_the_working_directory() {
    assert_eq!(directory_of(Path::new("a.tet")), Path::new("."));
    assert_eq!(directory_of(Path::new("b/a.tet")), Path::new("b"));
}

#[cfg(unix)]
mod links {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_is_never_written_through() {
        let place = OutputRange::new();
        symlink(&place.outside, place.data.join("out")).unwrap();
        symlink(place.outside.join("precious"), place.data.join("file")).unwrap();
        symlink(place.outside.join("missing"), place.data.join("dangling")).unwrap();
        symlink("a.tet", place.data.join("inside")).unwrap();
        let outputs = place.outputs(&[]);
        let before = place.listing();
        for path in ["out/x.bin", "out/precious", "out/new/x.bin", "file", "dangling", "dangling/x", "inside"]
        {
            let error = write(&outputs, Path::new(path)).unwrap_err();
            assert!(matches!(error, ErrorKind::Target { .. }), "{path}: {error}");
        }
        assert_eq!(place.listing(), before);
        assert_eq!(fs::read(place.outside.join("precious")).unwrap(), b"precious");
    }

    #[test]
    fn files_in_the_cache_are_for_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = OutputRange::new();
        let outputs = place.outputs(&[]);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let output = outputs.automatic().unwrap();
        let path = output.stage().unwrap().publish().unwrap();
        output.keep();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(&place.base.join("cache/tetration")), 0o700);
        let named = write(&outputs, &place.base.join("cache/tetration/named.bin")).unwrap();
        assert_eq!(mode(&named), 0o600);
        // The cache may be below the directory of the source, as in a home directory.
        let below = Outputs { cache: vec![place.data.join("cache/tetration")], ..place.outputs(&[]) };
        let output = below.automatic().unwrap();
        let path = output.stage().unwrap().publish().unwrap();
        output.keep();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        // Elsewhere the umask applies, as for every new file.
        let beside = write(&outputs, Path::new("x.bin")).unwrap();
        fs::write(place.data.join("plain"), b"").unwrap();
        assert_eq!(mode(&beside), mode(&place.data.join("plain")));
    }

    #[test]
    fn a_link_that_stays_inside_leads_to_its_directory() {
        let place = OutputRange::new();
        fs::create_dir(place.data.join("real")).unwrap();
        symlink("real", place.data.join("alias")).unwrap();
        let path = write(&place.outputs(&[]), Path::new("alias/x.bin")).unwrap();
        assert_eq!(path, place.data.join("real/x.bin"));
    }

    #[test]
    fn a_directory_swapped_for_a_link_after_the_check_leads_nowhere() {
        let place = OutputRange::new();
        fs::create_dir_all(place.data.join("sub/deep")).unwrap();
        let outputs = place.outputs(&[]);
        // Held by handle: the file is created in the checked directory, even if that was moved.
        let spot = outputs.spot(Path::new("sub/deep/x.bin")).unwrap();
        fs::rename(place.data.join("sub"), place.data.join("moved")).unwrap();
        symlink(&place.outside, place.data.join("sub")).unwrap();
        fs::create_dir(place.outside.join("deep")).unwrap();
        let output = outputs.open(spot).unwrap();
        let mut atomic_file = output.stage().unwrap();
        atomic_file.write_all(b"result").unwrap();
        atomic_file.publish().unwrap();
        output.keep();
        assert_eq!(fs::read_dir(place.outside.join("deep")).unwrap().count(), 0);
        assert_eq!(fs::read(place.data.join("moved/deep/x.bin")).unwrap(), b"result");
        // A link replaces a directory that was to be created.
        let spot = outputs.spot(Path::new("new/x.bin")).unwrap();
        symlink(&place.outside, place.data.join("new")).unwrap();
        assert!(matches!(outputs.open(spot), Err(ErrorKind::Target { reason: TargetError::Io(_), .. })));
        // A link replaces the file after the check.
        let spot = outputs.spot(Path::new("late.bin")).unwrap();
        let output = outputs.open(spot).unwrap();
        symlink(place.outside.join("precious"), place.data.join("late.bin")).unwrap();
        assert!(output.stage().is_err());
        assert_eq!(fs::read(place.outside.join("precious")).unwrap(), b"precious");
    }

    #[test]
    fn a_link_put_there_while_writing_is_not_followed() {
        let place = OutputRange::new();
        let outputs = place.outputs(&[]);
        let output = outputs.open(outputs.spot(Path::new("x.bin")).unwrap()).unwrap();
        let mut atomic_file = output.stage().unwrap();
        atomic_file.write_all(b"result").unwrap();
        symlink(place.outside.join("precious"), place.data.join("x.bin")).unwrap();
        assert!(atomic_file.publish().is_err());
        assert_eq!(fs::read(place.outside.join("precious")).unwrap(), b"precious");
        assert_eq!(fs::read_dir(&place.data).unwrap().count(), 2, "no temporary file is left");
    }

    #[test]
    fn a_file_opened_through_a_link_is_the_source_too() {
        let place = OutputRange::new();
        symlink("../data/a.tet", place.outside.join("link.tet")).unwrap();
        let allowed = std::slice::from_ref(&place.data);
        let outputs = Outputs::new(Some(&place.outside.join("link.tet")), allowed, 0).unwrap();
        let error = write(&outputs, &place.data.join("a.tet")).unwrap_err();
        assert!(matches!(error, ErrorKind::Target { reason: TargetError::Source, .. }), "{error}");
    }
}
