//! Temporary files of writers: names, locks, and removal of stale ones.

use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use super::target::Target;
use super::{Disk, DiskFile, EntryKind, Operation, Permissions, PublishError};

const INFIX: &str = ".tercet-";
const SUFFIX: &str = ".tmp";
const RANDOM_LEN: usize = 16;
/// Common file systems allow names of 255 bytes.
const MAX_NAME: usize = 255;
const MAX_STEM: usize = MAX_NAME - 1 - INFIX.len() - RANDOM_LEN - SUFFIX.len();
/// Each further attempt means that another writer interfered, which cannot happen this often.
const ATTEMPTS: usize = 16;

/// Whether `name` is a temporary file of a writer to `target`, both names in one directory.
///
/// Very long names with a common prefix share their temporary names.
pub fn is_stale_temp(name: &OsStr, target: &OsStr) -> bool {
    let random = name
        .as_encoded_bytes()
        .strip_prefix(prefix(target).as_encoded_bytes())
        .and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
    random.is_some_and(|r| r.len() == RANDOM_LEN && r.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
}

/// Creates and locks the temporary file of a writer.
pub(super) fn create(
    disk: &dyn Disk,
    target: &Target,
    like: Option<&Permissions>,
) -> Result<(PathBuf, Box<dyn DiskFile>), PublishError> {
    for _ in 0..ATTEMPTS {
        let path = target.directory.join(temp_name(target.name()));
        let mut file = match disk.create_new(&path, like) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(directory_error(target, error)),
        };
        match lock_new(disk, &path, file.as_mut()) {
            Ok(true) => return Ok((path, file)),
            outcome => {
                // It is empty; if it cannot be removed, the next writer removes it.
                let _ = disk.remove(&path);
                outcome.map_err(|error| target.error(Operation::Lock, error))?;
            }
        }
    }
    Err(PublishError::Busy { path: target.given.clone() })
}

/// Locks a file that was just created; `false` if another writer removed it as stale in between.
fn lock_new(disk: &dyn Disk, path: &std::path::Path, file: &mut dyn DiskFile) -> io::Result<bool> {
    match file.try_lock() {
        Ok(true) => {}
        Ok(false) => return Ok(false),
        // Without locks no writer removes stale files.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
        Err(error) => return Err(error),
    }
    let own = file.entry()?.id;
    match disk.entry(path) {
        Ok(entry) => Ok(entry.id == own),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes the temporary files of dead writers to the target, best effort.
///
/// On failure they stay until a later writer.
pub(super) fn remove_stale_temps(disk: &dyn Disk, target: &Target) {
    let names = disk.list(&target.directory, &|name| is_stale_temp(name, target.name()));
    for name in names.unwrap_or_default() {
        let path = target.directory.join(name);
        // A named pipe or a link of that name must not be opened.
        if !disk.entry(&path).is_ok_and(|entry| entry.kind == EntryKind::File) {
            continue;
        }
        let Ok(mut file) = disk.open_existing(&path) else { continue };
        // A lock means that the writer lives. Without a lock the writer died; or it has finished and the path is
        // gone; or it is about to lock the new file, will find the path gone, and will create another.
        if !file.try_lock().unwrap_or(false) {
            continue;
        }
        let same = match (file.entry(), disk.entry(&path)) {
            (Ok(opened), Ok(named)) => opened.id == named.id,
            _ => false,
        };
        if same {
            let _ = disk.remove(&path);
        }
    }
}

fn directory_error(target: &Target, source: io::Error) -> PublishError {
    let (path, directory) = (target.given.clone(), target.directory.clone());
    if source.kind() == io::ErrorKind::NotFound {
        PublishError::NoDirectory { path, directory }
    } else {
        PublishError::Directory { path, directory, source }
    }
}

pub(super) fn temp_name(target: &OsStr) -> OsString {
    let mut name = prefix(target);
    name.push(format!("{:016x}", random()));
    name.push(SUFFIX);
    name
}

fn prefix(target: &OsStr) -> OsString {
    let mut name = OsString::from(".");
    name.push(stem(target));
    name.push(INFIX);
    name
}

/// As much of the name as leaves room for the rest; text is cut between characters.
fn stem(target: &OsStr) -> OsString {
    if target.len() <= MAX_STEM {
        return target.to_owned();
    }
    #[cfg(unix)]
    if target.to_str().is_none() {
        use std::os::unix::ffi::OsStrExt;
        return OsStr::from_bytes(&target.as_bytes()[..MAX_STEM]).to_owned();
    }
    let text = target.to_string_lossy();
    text[..text.floor_char_boundary(MAX_STEM)].into()
}

/// A random number for the name of a temporary file.
///
/// The keys of `RandomState` come from the system; process ID and time distinguish a forked child from its parent.
fn random() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.write_u128(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos()));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temp_names_are_recognized() {
        let target = OsStr::new("era5.tet");
        assert!(is_stale_temp(&temp_name(target), target));
        assert!(is_stale_temp(OsStr::new(".era5.tet.tercet-0123456789abcdef.tmp"), target));
        for other in [
            "era5.tet",
            ".era5.tet.tercet-0123456789abcde.tmp",
            ".era5.tet.tercet-0123456789abcdeff.tmp",
            ".era5.tet.tercet-0123456789abcdeg.tmp",
            ".era5.tet.tercet-0123456789abcdef.tmp~",
            ".era5b.tet.tercet-0123456789abcdef.tmp",
            "xera5.tet.tercet-0123456789abcdef.tmp",
        ] {
            assert!(!is_stale_temp(OsStr::new(other), target), "{other}");
        }
    }

    #[test]
    fn names_fit_the_file_system() {
        for target in ["a".repeat(255), "é".repeat(127), "温".repeat(85)] {
            let name = temp_name(OsStr::new(&target));
            assert!(name.len() <= MAX_NAME && name.len() > MAX_NAME - 4, "{}", name.len());
            assert!(name.to_str().is_some());
            assert!(is_stale_temp(&name, OsStr::new(&target)));
        }
    }

    #[cfg(unix)]
    #[test]
    fn names_need_not_be_utf8() {
        use std::os::unix::ffi::OsStrExt;
        for target in [vec![0xff; 3], vec![0xff; 255]] {
            let target = OsStr::from_bytes(&target);
            let name = temp_name(target);
            assert!(name.len() <= MAX_NAME);
            assert!(name.as_bytes().starts_with(b".\xff\xff\xff"));
            assert!(is_stale_temp(&name, target));
        }
    }

    #[test]
    fn names_differ() {
        let names: std::collections::BTreeSet<_> = (0..1000).map(|_| temp_name(OsStr::new("a"))).collect();
        assert_eq!(names.len(), 1000);
    }
}
