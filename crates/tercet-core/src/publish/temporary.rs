//! Unfinished files: their names, their locks, and the removal of those whose writer died.

use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use super::target::Target;
use super::{Access, Disk, DiskFile, Kind, Operation, PublishError};

const MARK: &str = ".tercet-";
const END: &str = ".tmp";
const RANDOM_LEN: usize = 16;
/// Common file systems allow names of 255 bytes.
const MAX_NAME: usize = 255;
const MAX_STEM: usize = MAX_NAME - 1 - MARK.len() - RANDOM_LEN - END.len();
/// Each further attempt means that another writer got in between; that this happens so often does not.
const ATTEMPTS: usize = 16;

/// Whether `name` is an unfinished file of a writer to `target`, both names in one folder.
///
/// Very long names share their unfinished names with others that start alike.
pub fn is_stale_temp(name: &OsStr, target: &OsStr) -> bool {
    let random = name
        .as_encoded_bytes()
        .strip_prefix(prefix(target).as_encoded_bytes())
        .and_then(|rest| rest.strip_suffix(END.as_bytes()));
    random.is_some_and(|r| r.len() == RANDOM_LEN && r.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
}

/// Creates the unfinished file of a writer, locked.
pub(super) fn create(
    disk: &dyn Disk,
    target: &Target,
    like: Option<&Access>,
) -> Result<(PathBuf, Box<dyn DiskFile>), PublishError> {
    for _ in 0..ATTEMPTS {
        let path = target.folder.join(unfinished_name(target.name()));
        let mut file = match disk.create_new(&path, like) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(refused_by_folder(target, error)),
        };
        match lock_new(disk, &path, file.as_mut()) {
            Ok(true) => return Ok((path, file)),
            outcome => {
                // Nothing is in it; if it cannot be removed, the next writer tries again.
                let _ = disk.remove(&path);
                outcome.map_err(|error| target.error(Operation::Lock, error))?;
            }
        }
    }
    Err(PublishError::Busy { path: target.shown.clone() })
}

/// Locks a file that was just created; `false` when another writer took it for a leftover in between.
fn lock_new(disk: &dyn Disk, path: &std::path::Path, file: &mut dyn DiskFile) -> io::Result<bool> {
    match file.try_lock() {
        Ok(true) => {}
        Ok(false) => return Ok(false),
        // Where nobody can lock, nobody clears.
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

/// Removes the unfinished files of dead writers to the target, as far as possible.
///
/// A failure here stops nobody: the leftovers stay until a later writer.
pub(super) fn clear_leftovers(disk: &dyn Disk, target: &Target) {
    let names = disk.list(&target.folder, &|name| is_stale_temp(name, target.name()));
    for name in names.unwrap_or_default() {
        let path = target.folder.join(name);
        // Opening a named pipe or a link of that name would reach something else.
        if !disk.entry(&path).is_ok_and(|entry| entry.kind == Kind::File) {
            continue;
        }
        let Ok(mut file) = disk.open_existing(&path) else { continue };
        // A lock means that the writer lives. Without: it died, or it has finished and the path is gone, or it
        // is about to lock what it created, will see that the path is gone, and will create another.
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

fn refused_by_folder(target: &Target, source: io::Error) -> PublishError {
    let (path, folder) = (target.shown.clone(), target.folder.clone());
    if source.kind() == io::ErrorKind::NotFound {
        PublishError::NoFolder { path, folder }
    } else {
        PublishError::Folder { path, folder, source }
    }
}

pub(super) fn unfinished_name(target: &OsStr) -> OsString {
    let mut name = prefix(target);
    name.push(format!("{:016x}", random()));
    name.push(END);
    name
}

fn prefix(target: &OsStr) -> OsString {
    let mut name = OsString::from(".");
    name.push(stem(target));
    name.push(MARK);
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

/// A number that no other writer draws, on purpose or by chance.
///
/// The keys of `RandomState` come from the system; process and time tell a forked child from its parent.
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
    fn own_names_are_recognised_and_others_are_not() {
        let target = OsStr::new("era5.tet");
        assert!(is_stale_temp(&unfinished_name(target), target));
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
            let name = unfinished_name(OsStr::new(&target));
            assert!(name.len() <= MAX_NAME && name.len() > MAX_NAME - 4, "{}", name.len());
            assert!(name.to_str().is_some());
            assert!(is_stale_temp(&name, OsStr::new(&target)));
        }
    }

    #[cfg(unix)]
    #[test]
    fn names_need_not_be_text() {
        use std::os::unix::ffi::OsStrExt;
        for target in [vec![0xff; 3], vec![0xff; 255]] {
            let target = OsStr::from_bytes(&target);
            let name = unfinished_name(target);
            assert!(name.len() <= MAX_NAME);
            assert!(name.as_bytes().starts_with(b".\xff\xff\xff"));
            assert!(is_stale_temp(&name, target));
        }
    }

    #[test]
    fn names_differ() {
        let names: std::collections::BTreeSet<_> =
            (0..1000).map(|_| unfinished_name(OsStr::new("a"))).collect();
        assert_eq!(names.len(), 1000);
    }
}
