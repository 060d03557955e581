//! The query history: a JSON Lines file in the user's cache directory, newest last.
//!
//! Best effort: a problem with the history never fails a query.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tercet::core::Span;
use tercet::core::publish::{AtomicFile, Disk as _, FileLock, Operation, PublishError, RealDisk};
use tercet::tet::{Query, unix_seconds};

use crate::failure::Failure;
use crate::input;
use crate::output::display_path;
use crate::remote;
use crate::ui::{Ui, WARN, paint};

/// Default number of entries.
const ROWS: usize = 50;
/// Maximum number of entries.
const MAX_ENTRIES: usize = 10_000;
/// Bytes read from the end of the file.
const MAX_BYTES: u64 = 16 << 20;
/// Longer queries are not recorded.
const MAX_ENTRY_BYTES: usize = 64 << 10;

/// Retries while another command writes to the history.
const ATTEMPTS: usize = 20;
const PAUSE: Duration = Duration::from_millis(20);

/// A recorded query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Unix seconds.
    pub(super) at: u64,
    /// The queried file.
    pub(super) tet: Option<String>,
    /// Whether the query was executed.
    #[serde(default)]
    pub(super) execute: bool,
    /// The query document.
    pub(super) query: serde_json::Value,
}

/// The history file.
#[derive(Debug)]
pub(super) struct History {
    path: PathBuf,
    most: usize,
}

/// An error of the history file.
#[derive(Debug)]
enum HistoryError {
    Read(Failure),
    Write(PublishError),
    Directory(io::Error),
    NotAHistory,
}

/// Records a query. Problems are printed as warnings.
pub(super) fn record(tet: &Path, execute: bool, query: &Query, out: &mut Ui) -> Result<(), Failure> {
    if is_off() {
        return Ok(());
    }
    let Some(history) = History::find() else { return Ok(()) };
    // An absolute path is recorded. A path that is not UTF-8 is not recorded.
    let absolute = match remote::url_of(tet) {
        // A URL with credentials is not recorded.
        Some(url) if remote::redacted(url) != url => return Ok(()),
        Some(url) => Some(url.into()),
        None => std::path::absolute(tet).ok(),
    };
    let Some(tet) = absolute.as_deref().and_then(Path::to_str) else { return Ok(()) };
    let at = unix_seconds();
    let entry = Entry { at, tet: Some(tet.to_owned()), execute, query: query.to_json().clone() };
    match history.add(entry) {
        Ok(()) => Ok(()),
        Err(error) => {
            let message = format!("cannot save the query history: {}", error.message(&history.path));
            out.note(format_args!("{} {message}", paint(WARN, "warning:")))
        }
    }
}

/// Whether the history is disabled.
fn is_off() -> bool {
    let value = std::env::var_os("TET_NO_QUERY_HISTORY").unwrap_or_default();
    let no = ["", "0", "false", "no"];
    !no.iter().any(|word| value.eq_ignore_ascii_case(word))
}

impl History {
    /// The history of this user; `None` without a cache directory.
    pub(super) fn find() -> Option<Self> {
        let most = std::env::var("TET_QUERY_HISTORY_MAX").ok().and_then(|text| text.trim().parse().ok());
        let most = most.unwrap_or(ROWS).clamp(1, MAX_ENTRIES);
        let given = std::env::var_os("TET_QUERY_HISTORY_FILE").filter(|path| !path.is_empty());
        let path = match given {
            Some(path) => path.into(),
            None => cache()?.join("tetration").join("query_history.jsonl"),
        };
        Some(Self { path, most })
    }

    /// The path of the history file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The maximum number of entries kept.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// The readable entries, oldest first.
    pub(super) fn entries(&self) -> Result<Vec<Entry>, Failure> {
        match self.read() {
            Ok(entries) => Ok(entries),
            Err(error) => Err(error.into_failure(&self.path)),
        }
    }

    /// Removes the file; `false` if it does not exist.
    pub(super) fn clear(&self) -> Result<bool, Failure> {
        self.entries()?;
        match RealDisk.remove(&self.path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Failure::io(&format!("{}: cannot remove", display_path(&self.path)), &error)),
        }
    }

    fn read(&self) -> Result<Vec<Entry>, HistoryError> {
        if matches!(std::fs::metadata(&self.path), Err(error) if error.kind() == io::ErrorKind::NotFound) {
            return Ok(Vec::new());
        }
        let source = input::open(&self.path).map_err(HistoryError::Read)?;
        let len = source.len();
        let start = len.saturating_sub(MAX_BYTES);
        let Some(span) = Span::between(start, len) else { return Ok(Vec::new()) };
        let bytes = source
            .read_at(span)
            .map_err(|error| HistoryError::Read(Failure::source(source.name(), error)))?;
        let mut lines = bytes.split(|byte| *byte == b'\n');
        if start > 0 {
            // The first line is incomplete.
            lines.next();
        }
        let lines = lines.map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
        let mut is_empty = true;
        let rows = lines.inspect(|_| is_empty = false).filter_map(|line| serde_json::from_slice(line).ok());
        let entries: Vec<Entry> = rows.collect();
        // A misspelled path must not overwrite an unrelated file.
        if entries.is_empty() && !is_empty { Err(HistoryError::NotAHistory) } else { Ok(entries) }
    }

    /// Adds an entry, or updates the time of the last one if it is the same query.
    fn add(&self, entry: Entry) -> Result<(), HistoryError> {
        let is_long = serde_json::to_vec(&entry).is_ok_and(|line| line.len() > MAX_ENTRY_BYTES);
        if is_long {
            return Ok(());
        }
        // Locked before reading, so that concurrent commands do not lose entries.
        let lock = match retry_while_busy(|| FileLock::acquire(&self.path)) {
            Ok(lock) => Some(lock),
            Err(PublishError::Io { operation: Operation::Open, source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                create_parent(&self.path).map_err(HistoryError::Directory)?;
                None
            }
            Err(error) => return Err(HistoryError::Write(error)),
        };
        let mut entries = self.read()?;
        match entries.last_mut() {
            Some(last) if last.is_same_query(&entry) => last.at = entry.at,
            _ => entries.push(entry),
        }
        let old = entries.len().saturating_sub(self.most);
        let atomic_file = match lock {
            Some(lock) => lock.replace_private(),
            None => AtomicFile::create_private(&self.path),
        };
        write(&entries[old..], atomic_file.map_err(HistoryError::Write)?).map_err(HistoryError::Write)
    }
}

impl Entry {
    /// Whether this is the same query on the same file.
    fn is_same_query(&self, other: &Self) -> bool {
        (&self.tet, self.execute, &self.query) == (&other.tet, other.execute, &other.query)
    }
}

/// Retries while the file is locked by another command.
fn retry_while_busy<T>(attempt: impl Fn() -> Result<T, PublishError>) -> Result<T, PublishError> {
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
        // A write error is returned by `publish`.
        let _ = atomic_file.write_all(&line);
    }
    atomic_file.publish().map(|_| ())
}

/// Creates the parent directory, accessible by its owner only.
fn create_parent(path: &Path) -> io::Result<()> {
    let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else { return Ok(()) };
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(parent)
}

/// The cache directory.
#[cfg(not(windows))]
fn cache() -> Option<PathBuf> {
    let from = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    from("XDG_CACHE_HOME").or_else(|| Some(from("HOME")?.join(".cache")))
}

/// The cache directory.
#[cfg(windows)]
fn cache() -> Option<PathBuf> {
    std::env::var_os("LOCALAPPDATA").map(PathBuf::from).filter(|path| path.is_absolute())
}

impl HistoryError {
    fn into_failure(self, path: &Path) -> Failure {
        match self {
            Self::Read(failure) => failure,
            Self::Write(error) => error.into(),
            error @ Self::Directory(_) => Failure::new(tercet::core::Class::Io, error.message(path)),
            error @ Self::NotAHistory => {
                let hint = "set `TET_QUERY_HISTORY_FILE` to another file, or remove this one";
                Failure::request(error.message(path)).with_hint(hint)
            }
        }
    }

    fn message(&self, path: &Path) -> String {
        match self {
            Self::Read(Failure::Error(report)) => report.message.clone(),
            Self::Read(_) => format!("{}: cannot read", display_path(path)),
            Self::Write(error) => match std::error::Error::source(error) {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            },
            Self::Directory(error) => format!("{}: cannot create its directory: {error}", display_path(path)),
            Self::NotAHistory => format!("{}: not a query history", display_path(path)),
        }
    }
}
