//! The queries that were asked: a file of JSON lines in the user's cache, newest last.
//!
//! It is a convenience: whatever is wrong with it, a query is answered all the same.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tercet::core::publish::{AtomicFile, Disk as _, FileLock, Operation, PublishError, RealDisk};
use tercet::core::{Span, escape};
use tercet::tet::{Query, unix_seconds};

use crate::address;
use crate::failure::Failure;
use crate::input;
use crate::ui::{Ui, WARN, paint};

/// Rows that are kept, unless the environment says otherwise.
const ROWS: usize = 50;
/// Rows that can be asked for.
const MOST_ROWS: usize = 10_000;
/// What is read of a file that has grown beyond all measure: its end.
const MOST_BYTES: u64 = 16 << 20;
/// Longer queries are not kept: they live in files of their own.
const MOST_ENTRY_BYTES: usize = 64 << 10;

/// How long a command waits for others that write their rows.
const ATTEMPTS: usize = 20;
const PAUSE: Duration = Duration::from_millis(20);

/// A query that was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Unix seconds.
    pub(super) at: u64,
    /// The file that answered.
    pub(super) tet: Option<String>,
    /// Whether values were read.
    #[serde(default)]
    pub(super) execute: bool,
    /// The document.
    pub(super) query: serde_json::Value,
}

/// Where the history is.
#[derive(Debug)]
pub(super) struct History {
    path: PathBuf,
    most: usize,
}

/// Reason a history cannot be used.
#[derive(Debug)]
enum Trouble {
    Read(Failure),
    Write(PublishError),
    Folder(io::Error),
    NotAHistory,
}

/// Notes a query that was answered. What goes wrong is told, and is no failure.
pub(super) fn record(tet: &Path, execute: bool, query: &Query, out: &mut Ui) -> Result<(), Failure> {
    if is_off() {
        return Ok(());
    }
    let Some(history) = History::find() else { return Ok(()) };
    // The row must mean the same file wherever it is run from. A path that JSON cannot hold is not noted.
    let absolute = match address::of(tet) {
        // An address with a secret in it is nobody's to keep.
        Some(address) if address::shown(address) != address => return Ok(()),
        Some(address) => Some(address.into()),
        None => std::path::absolute(tet).ok(),
    };
    let Some(tet) = absolute.as_deref().and_then(Path::to_str) else { return Ok(()) };
    let at = unix_seconds();
    let entry = Entry { at, tet: Some(tet.to_owned()), execute, query: query.to_json().clone() };
    match history.add(entry) {
        Ok(()) => Ok(()),
        Err(trouble) => {
            let said = format!("the query history was not saved: {}", trouble.told(&history.path));
            out.note(format_args!("{} {said}", paint(WARN, "warning:")))
        }
    }
}

/// Whether the user wants no history.
fn is_off() -> bool {
    let value = std::env::var_os("TET_NO_QUERY_HISTORY").unwrap_or_default();
    let no = ["", "0", "false", "no"];
    !no.iter().any(|word| value.eq_ignore_ascii_case(word))
}

impl History {
    /// The history of this user; `None` on a system that has no place for it.
    pub(super) fn find() -> Option<Self> {
        let most = std::env::var("TET_QUERY_HISTORY_MAX").ok().and_then(|text| text.trim().parse().ok());
        let most = most.unwrap_or(ROWS).clamp(1, MOST_ROWS);
        let given = std::env::var_os("TET_QUERY_HISTORY_FILE").filter(|path| !path.is_empty());
        let path = match given {
            Some(path) => path.into(),
            None => cache()?.join("tetration").join("query_history.jsonl"),
        };
        Some(Self { path, most })
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// How many rows are kept.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// The rows that can be read, oldest first.
    pub(super) fn entries(&self) -> Result<Vec<Entry>, Failure> {
        match self.read() {
            Ok(entries) => Ok(entries),
            Err(trouble) => Err(trouble.into_failure(&self.path)),
        }
    }

    /// Removes the file; `false` if there is none.
    pub(super) fn clear(&self) -> Result<bool, Failure> {
        self.entries()?;
        match RealDisk.remove(&self.path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Failure::io(&format!("{}: cannot remove", shown(&self.path)), &error)),
        }
    }

    fn read(&self) -> Result<Vec<Entry>, Trouble> {
        if matches!(std::fs::metadata(&self.path), Err(error) if error.kind() == io::ErrorKind::NotFound) {
            return Ok(Vec::new());
        }
        let source = input::open(&self.path).map_err(Trouble::Read)?;
        let len = source.len();
        let start = len.saturating_sub(MOST_BYTES);
        let Some(span) = Span::between(start, len) else { return Ok(Vec::new()) };
        let bytes =
            source.read_at(span).map_err(|error| Trouble::Read(Failure::source(source.name(), error)))?;
        let mut lines = bytes.split(|byte| *byte == b'\n');
        if start > 0 {
            // The first line is only the end of one.
            lines.next();
        }
        let lines = lines.map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
        let mut is_empty = true;
        let rows = lines.inspect(|_| is_empty = false).filter_map(|line| serde_json::from_slice(line).ok());
        let entries: Vec<Entry> = rows.collect();
        // A file of something else must not be lost to a misspelled path.
        if entries.is_empty() && !is_empty { Err(Trouble::NotAHistory) } else { Ok(entries) }
    }

    /// Adds a row, or refreshes the last one if it is the same.
    fn add(&self, entry: Entry) -> Result<(), Trouble> {
        let is_long = serde_json::to_vec(&entry).is_ok_and(|line| line.len() > MOST_ENTRY_BYTES);
        if is_long {
            return Ok(());
        }
        // Locked before it is read, so that two commands at the same time do not lose each other's rows.
        let lock = match patiently(|| FileLock::acquire(&self.path)) {
            Ok(lock) => Some(lock),
            Err(PublishError::Io { operation: Operation::Open, source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                make_folder(&self.path).map_err(Trouble::Folder)?;
                None
            }
            Err(error) => return Err(Trouble::Write(error)),
        };
        let mut entries = self.read()?;
        match entries.last_mut() {
            Some(last) if last.is_like(&entry) => last.at = entry.at,
            _ => entries.push(entry),
        }
        let old = entries.len().saturating_sub(self.most);
        let atomic_file = match lock {
            Some(lock) => lock.replace_private(),
            None => AtomicFile::create_private(&self.path),
        };
        write(&entries[old..], atomic_file.map_err(Trouble::Write)?).map_err(Trouble::Write)
    }
}

impl Entry {
    /// Whether the same was asked.
    fn is_like(&self, other: &Self) -> bool {
        (&self.tet, self.execute, &self.query) == (&other.tet, other.execute, &other.query)
    }
}

/// Tries again while another command writes its row, which takes a moment.
fn patiently<T>(attempt: impl Fn() -> Result<T, PublishError>) -> Result<T, PublishError> {
    for _ in 0..ATTEMPTS {
        match attempt() {
            Err(PublishError::Busy { .. }) => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
    attempt()
}

fn write(entries: &[Entry], mut atomic_file: AtomicFile) -> Result<(), PublishError> {
    for entry in entries {
        let mut line = serde_json::to_vec(entry).unwrap_or_default();
        line.push(b'\n');
        // The error is kept: publishing answers it.
        let _ = atomic_file.write_all(&line);
    }
    atomic_file.publish().map(|_| ())
}

/// The folder of a file, for its owner alone where it is new.
fn make_folder(path: &Path) -> io::Result<()> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// The folder for things that can be lost.
#[cfg(not(windows))]
fn cache() -> Option<PathBuf> {
    let from = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    from("XDG_CACHE_HOME").or_else(|| Some(from("HOME")?.join(".cache")))
}

/// The folder for things that can be lost.
#[cfg(windows)]
fn cache() -> Option<PathBuf> {
    std::env::var_os("LOCALAPPDATA").map(PathBuf::from).filter(|path| path.is_absolute())
}

impl Trouble {
    fn into_failure(self, path: &Path) -> Failure {
        match self {
            Self::Read(failure) => failure,
            Self::Write(error) => error.into(),
            trouble @ Self::Folder(_) => Failure::new(tercet::core::Class::Io, trouble.told(path)),
            trouble @ Self::NotAHistory => {
                let hint = "`TET_QUERY_HISTORY_FILE` names the file; remove it if it is not needed";
                Failure::request(trouble.told(path)).with_hint(hint)
            }
        }
    }

    fn told(&self, path: &Path) -> String {
        match self {
            Self::Read(Failure::Error(report)) => report.message.clone(),
            Self::Read(_) => format!("{}: cannot read", shown(path)),
            Self::Write(error) => match std::error::Error::source(error) {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            },
            Self::Folder(error) => format!("{}: cannot create its folder: {error}", shown(path)),
            Self::NotAHistory => format!("{}: is not a query history", shown(path)),
        }
    }
}

fn shown(path: &Path) -> String {
    escape::name(&path.to_string_lossy()).into_owned()
}
