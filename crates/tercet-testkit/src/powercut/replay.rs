//! The states of a disk after a power cut.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Event;

/// Up to this number of unsynced name changes, every combination is tried.
const MAX_COMBINED: usize = 6;

/// Which of the unsynced bytes of every file survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survivors {
    /// None: the files are as at their last sync; a file without one is empty.
    None,
    /// All of them.
    All,
    /// Lengths only, with zeros as bytes.
    Zeros,
    /// The first half of the changes, and half of the change in the middle.
    FirstHalf,
    /// The last change only: the disk reordered the writes.
    LastOnly,
}

impl Survivors {
    /// Every variant.
    pub const EACH: [Self; 5] = [Self::None, Self::All, Self::Zeros, Self::FirstHalf, Self::LastOnly];
}

/// One state in which a power cut can leave a directory.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The number of events that happened before the cut.
    pub after: usize,
    /// Whether the cut comes after the end of the scenario.
    pub complete: bool,
    /// The files by path.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// Which unsynced bytes survived.
    pub survivors: Survivors,
    /// Which unsynced changes of names survived, `1` or `0` for each, oldest first.
    pub names: String,
    last: String,
}

impl Cut {
    /// The bytes of a file, if it exists.
    pub fn file(&self, path: impl AsRef<Path>) -> Option<&[u8]> {
        self.files.get(path.as_ref()).map(Vec::as_slice)
    }

    /// Writes the files into a directory.
    pub fn write_to(&self, directory: &Path) -> io::Result<()> {
        for (path, bytes) in &self.files {
            let path = directory.join(path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            #[expect(clippy::disallowed_methods, reason = "a state to look at, not an output")]
            fs::write(path, bytes)?;
        }
        Ok(())
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "power cut after event {} ({}); surviving bytes: {:?}; surviving names: [{}]",
            self.after, self.last, self.survivors, self.names
        )
    }
}

/// The disk at one moment: the durable state and the changes since.
#[derive(Debug)]
pub(super) struct Model {
    files: Vec<Image>,
    /// The file that each path names now.
    now: BTreeMap<PathBuf, usize>,
    /// The file that each path names durably.
    durable: BTreeMap<PathBuf, usize>,
    unsynced: Vec<NameChange>,
}

#[derive(Debug, Default)]
struct Image {
    synced: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    SetLen(usize),
}

#[derive(Debug)]
struct NameChange {
    /// The removed path.
    gone: Option<PathBuf>,
    /// The new path.
    set: Option<(PathBuf, usize)>,
}

impl Model {
    pub(super) fn new(before: &BTreeMap<PathBuf, Vec<u8>>) -> Self {
        let files =
            before.values().map(|bytes| Image { synced: bytes.clone(), unsynced: Vec::new() }).collect();
        let durable: BTreeMap<PathBuf, usize> = before.keys().cloned().zip(0..).collect();
        Self { files, now: durable.clone(), durable, unsynced: Vec::new() }
    }

    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::Create { file, path } => {
                self.image(*file);
                self.now.insert(path.clone(), *file);
                self.unsynced.push(NameChange { gone: None, set: Some((path.clone(), *file)) });
            }
            Event::Write { file, offset, bytes } => {
                let change = Change::Write { offset: in_memory(*offset), bytes: bytes.clone() };
                self.image(*file).unsynced.push(change);
            }
            Event::SetLen { file, len } => self.image(*file).unsynced.push(Change::SetLen(in_memory(*len))),
            Event::SyncFile { file } => {
                let image = self.image(*file);
                image.synced = image.surviving(Survivors::All);
                image.unsynced.clear();
            }
            Event::Rename { from, to } => {
                let file = self.now.remove(from);
                let set = file.map(|file| (to.clone(), file));
                self.now.extend(set.clone());
                self.unsynced.push(NameChange { gone: Some(from.clone()), set });
            }
            Event::Remove { path } => {
                self.now.remove(path);
                self.unsynced.push(NameChange { gone: Some(path.clone()), set: None });
            }
            Event::SyncDirectory { directory } => {
                let durable = &mut self.durable;
                self.unsynced.retain(|change| {
                    let synced = change.is_in(directory);
                    if synced {
                        change.apply(durable);
                    }
                    !synced
                });
            }
        }
    }

    /// Every state that a cut at this moment can leave.
    pub(super) fn cuts(&self, after: usize, complete: bool, last: Option<&Event>) -> Vec<Cut> {
        let mut cuts = Vec::new();
        for kept in combinations(self.unsynced.len()) {
            let mut names = self.durable.clone();
            for (change, _) in self.unsynced.iter().zip(&kept).filter(|(_, kept)| **kept) {
                change.apply(&mut names);
            }
            for survivors in Survivors::EACH {
                let bytes =
                    |file: usize| self.files.get(file).map_or_else(Vec::new, |f| f.surviving(survivors));
                cuts.push(Cut {
                    after,
                    complete,
                    files: names.iter().map(|(path, &file)| (path.clone(), bytes(file))).collect(),
                    survivors,
                    names: kept.iter().map(|&kept| if kept { '1' } else { '0' }).collect(),
                    last: last.map_or_else(|| "nothing".into(), short),
                });
            }
        }
        cuts
    }

    fn image(&mut self, file: usize) -> &mut Image {
        if self.files.len() <= file {
            self.files.resize_with(file + 1, Image::default);
        }
        &mut self.files[file]
    }
}

impl NameChange {
    fn is_in(&self, directory: &Path) -> bool {
        let path = self.set.as_ref().map(|(path, _)| path).or(self.gone.as_ref());
        path.is_some_and(|path| path.parent() == Some(directory))
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        if let Some(path) = &self.gone {
            names.remove(path);
        }
        names.extend(self.set.clone());
    }
}

impl Image {
    fn surviving(&self, survivors: Survivors) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        let n = self.unsynced.len();
        for (i, change) in self.unsynced.iter().enumerate() {
            match survivors {
                Survivors::All => change.apply(&mut bytes, usize::MAX),
                Survivors::Zeros => change.apply_zeros(&mut bytes),
                Survivors::FirstHalf if i < n / 2 => change.apply(&mut bytes, usize::MAX),
                Survivors::FirstHalf if i == n / 2 => change.apply(&mut bytes, change.len() / 2),
                Survivors::LastOnly if i + 1 == n => change.apply(&mut bytes, usize::MAX),
                Survivors::None | Survivors::FirstHalf | Survivors::LastOnly => {}
            }
        }
        bytes
    }
}

impl Change {
    fn len(&self) -> usize {
        match self {
            Self::Write { bytes, .. } => bytes.len(),
            Self::SetLen(_) => 0,
        }
    }

    /// Applies the first `max` bytes of the change.
    fn apply(&self, to: &mut Vec<u8>, max: usize) {
        match self {
            Self::Write { offset, bytes } => {
                let bytes = &bytes[..bytes.len().min(max)];
                let end = offset + bytes.len();
                if to.len() < end {
                    to.resize(end, 0);
                }
                to[*offset..end].copy_from_slice(bytes);
            }
            Self::SetLen(len) => to.resize(*len, 0),
        }
    }

    fn apply_zeros(&self, to: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes } => {
                Self::Write { offset: *offset, bytes: vec![0; bytes.len()] }.apply(to, usize::MAX);
            }
            Self::SetLen(_) => self.apply(to, usize::MAX),
        }
    }
}

/// The subsets of `n` changes that survive: every subset if there are few; otherwise every prefix, and each change
/// missing or alone.
fn combinations(n: usize) -> Vec<Vec<bool>> {
    if n <= MAX_COMBINED {
        return (0..1_usize << n).map(|bits| (0..n).map(|i| bits >> i & 1 == 1).collect()).collect();
    }
    let prefixes = (0..=n).map(|len| (0..n).map(|i| i < len).collect());
    let missing = (0..n).map(|one| (0..n).map(|i| i != one).collect());
    let single = (0..n).map(|one| (0..n).map(|i| i == one).collect());
    prefixes.chain(missing).chain(single).collect()
}

fn in_memory(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or_else(|_| panic!("offset {offset} is too large for a test"))
}

/// The event without its bytes.
fn short(event: &Event) -> String {
    match event {
        Event::Write { file, offset, bytes } => {
            format!("write {} bytes at {offset} of file {file}", bytes.len())
        }
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_changes_survive_in_every_combination() {
        assert_eq!(combinations(0), [Vec::<bool>::new()]);
        assert_eq!(combinations(2), [[false, false], [true, false], [false, true], [true, true]]);
        assert_eq!(combinations(10).len(), 11 + 10 + 10);
    }

    #[test]
    fn unsynced_bytes_survive_in_every_way() {
        let write = |offset, bytes: &[u8]| Change::Write { offset, bytes: bytes.to_vec() };
        let image = Image { synced: b"old".to_vec(), unsynced: vec![write(0, b"AB"), write(4, b"CD")] };
        let found = Survivors::EACH.map(|s| image.surviving(s));
        assert_eq!(found, [&b"old"[..], b"ABd\0CD", b"\0\0d\0\0\0", b"ABd\0C", b"old\0CD"]);
    }
}
