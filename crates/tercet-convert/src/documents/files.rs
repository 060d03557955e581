//! Document files and their formats.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tercet_tatami::Collection;

use super::error::{Error, ErrorKind};
use super::ignore::Patterns;

/// Bytes by which a binary format is recognized.
const HEAD_LEN: u64 = 1024;
/// Bytes read at a time.
const READ_LEN: usize = 1 << 18;
/// Files with patterns of ignored files.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];
/// Maximum size of one.
const MAX_IGNORE_BYTES: u64 = 1 << 20;

/// The format of a document file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DocumentFormat {
    /// Plain text, one document.
    Text,
    /// Markdown, one document with its first heading as title.
    Markdown,
    /// HTML, one document.
    Html,
    /// JSON Lines, one document per line.
    Jsonl,
    /// TREC, documents between `<DOC>` and `</DOC>`.
    Trec,
    /// Parquet, one document per row.
    #[cfg(feature = "arrow")]
    Parquet,
    /// Arrow IPC, one document per row.
    #[cfg(feature = "arrow")]
    Arrow,
    /// `.tatami`, one document per row.
    Tatami,
}

impl DocumentFormat {
    /// The format of a file extension; that of `a.jsonl.gz` is `jsonl`.
    pub fn for_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let plain = [".gz", ".zst", ".zstd"].iter().find_map(|end| name.strip_suffix(end));
        let is_compressed = plain.is_some();
        let (_, extension) = plain.unwrap_or(&name).rsplit_once('.')?;
        let format = match extension {
            "txt" | "text" => Some(Self::Text),
            "md" | "markdown" => Some(Self::Markdown),
            "html" | "htm" | "xhtml" => Some(Self::Html),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            "trec" | "sgml" => Some(Self::Trec),
            #[cfg(feature = "arrow")]
            "parquet" => Some(Self::Parquet),
            #[cfg(feature = "arrow")]
            "arrow" | "feather" | "ipc" | "arrows" => Some(Self::Arrow),
            "tatami" => Some(Self::Tatami),
            _ => None,
        };
        format.filter(|format| format.is_text() || !is_compressed)
    }

    /// The binary format of the first bytes.
    fn for_content(head: &[u8]) -> Option<Self> {
        match head {
            #[cfg(feature = "arrow")]
            [b'P', b'A', b'R', b'1', ..] => Some(Self::Parquet),
            #[cfg(feature = "arrow")]
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Some(Self::Arrow),
            [b'T', b'A', b'T', b'1', ..] => Some(Self::Tatami),
            _ => None,
        }
    }

    /// Whether a file is a table with columns.
    pub(super) fn is_table(self) -> bool {
        !self.is_text()
    }

    /// Whether a file has many documents, which are read sequentially.
    pub(super) const fn is_stream(self) -> bool {
        !matches!(self, Self::Text | Self::Markdown | Self::Html)
    }

    fn is_text(self) -> bool {
        #[cfg(feature = "arrow")]
        if matches!(self, Self::Parquet | Self::Arrow) {
            return false;
        }
        self != Self::Tatami
    }
}

/// A document file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DocumentFile {
    /// The path.
    pub path: PathBuf,
    /// The path relative to the directory in which it was found, with `/`, or with that directory: see
    /// [`Files::with_directories`]. The end of the URL.
    pub name: String,
    /// The format.
    pub format: DocumentFormat,
    /// The size.
    pub bytes: u64,
    /// Whether the caller named the file, rather than a directory that has it.
    pub is_named: bool,
    /// The directory of the collection of which it is a member. Its manifest has the deleted rows.
    pub collection: Option<PathBuf>,
}

impl DocumentFile {
    /// Whether it can be read twice.
    pub(super) fn is_regular(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|meta| meta.is_file())
    }

    /// The path for messages.
    pub(super) fn location(&self) -> Arc<str> {
        self.path.to_string_lossy().into()
    }
}

/// The files of directories that are read. Patterns have the rules of `.gitignore`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileFilter {
    /// Only files that match one of these patterns; all without any.
    pub include: Vec<String>,
    /// No files and directories that match one of these patterns.
    pub exclude: Vec<String>,
    /// Whether hidden files are read: those whose names start with a dot.
    pub hidden: bool,
    /// Whether files are read that a `.gitignore` or `.ignore` file excludes.
    pub ignored: bool,
}

impl FileFilter {
    /// All files but hidden and ignored ones.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the patterns of files to read and to skip.
    pub fn with_patterns(mut self, include: Vec<String>, exclude: Vec<String>) -> Self {
        (self.include, self.exclude) = (include, exclude);
        self
    }

    /// Sets whether hidden and ignored files are read.
    pub fn with_all(mut self, hidden: bool, ignored: bool) -> Self {
        (self.hidden, self.ignored) = (hidden, ignored);
        self
    }
}

/// A walk through a directory.
struct Walk<'a> {
    root: &'a Path,
    include: Patterns,
    exclude: Patterns,
    /// The patterns of ignore files, with the directories of the files: the outermost first.
    ignore: Vec<(Place, Patterns)>,
    out: Vec<(String, PathBuf, u64)>,
}

/// The directory of an ignore file.
enum Place {
    /// The root relative to it.
    Above(PathBuf),
    /// Relative to the root.
    Below(PathBuf),
}

/// Document files, and files of directories that are none.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Files {
    /// In the order in which they were added, those of a directory by name.
    pub found: Vec<DocumentFile>,
    /// The number of files in directories with unsupported extensions.
    pub unsupported: u64,
    /// Files in directories that cannot be read or are not text.
    pub skipped: Vec<Error>,
    /// The number of hidden, ignored and excluded files and directories.
    pub filtered: u64,
    /// Whether names start with the directory that was added.
    with_directories: bool,
    filter: FileFilter,
}

impl Files {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether the names of files start with the directory that was added, so that files of several directories have
    /// different names.
    #[must_use]
    pub fn with_directories(mut self, yes: bool) -> Self {
        self.with_directories = yes;
        self
    }

    /// Sets the files of directories that are read.
    #[must_use]
    pub fn with_filter(mut self, filter: FileFilter) -> Self {
        self.filter = filter;
        self
    }

    /// Rejects two files of one document each with the same name: their URLs and IDs would be the same.
    pub fn check_names(&self) -> Result<(), Error> {
        let mut seen = HashMap::new();
        for file in self.found.iter().filter(|file| !file.format.is_stream()) {
            if let Some(other) = seen.insert(&*file.name, file) {
                let (other, name) = (other.location(), file.name.as_str().into());
                return Err(Error::new(file.location(), ErrorKind::SameName { other, name }));
            }
        }
        Ok(())
    }

    /// Adds a file, or all files below a directory in the order of their names. Without a format, it follows the extension; a
    /// named file without a known one is text. Of a collection without other documents, the members are added.
    ///
    /// `binary_format` names the format of a file that is not text, by its first bytes.
    pub fn add(
        &mut self,
        path: &Path,
        format: Option<DocumentFormat>,
        binary_format: impl Fn(&[u8]) -> Option<String>,
    ) -> Result<(), Error> {
        let named = |kind| Error::new(path.to_string_lossy().into(), kind);
        let meta = fs::metadata(path).map_err(|error| named(ErrorKind::Open(error)))?;
        let check = |file: &DocumentFile| match head(file).as_deref().and_then(&binary_format) {
            Some(found) => Err(Error::new(file.location(), ErrorKind::Binary(found.into()))),
            None => Ok(()),
        };
        if !meta.is_dir() {
            let by_content = || {
                // Parquet files have many extensions.
                let head = meta.is_file().then(|| first_bytes(path)).flatten().unwrap_or_default();
                DocumentFormat::for_content(&head).unwrap_or(DocumentFormat::Text)
            };
            let format = format.or_else(|| DocumentFormat::for_path(path)).unwrap_or_else(by_content);
            let (path, name, bytes) = (path.to_path_buf(), slashed(path), meta.len());
            let file = DocumentFile { path, name, format, bytes, is_named: true, collection: None };
            check(&file)?;
            self.found.push(file);
            return Ok(());
        }
        if format == Some(DocumentFormat::Tatami) && self.add_members(path)? {
            return Ok(());
        }
        let patterns = |all: &[String]| {
            let mut out = Patterns::default();
            for pattern in all {
                let failed = |reason| named(ErrorKind::Pattern { pattern: pattern.as_str().into(), reason });
                out.push(pattern).map_err(failed)?;
            }
            Ok::<_, Error>(out)
        };
        let mut walk = Walk {
            root: path,
            include: patterns(&self.filter.include)?,
            exclude: patterns(&self.filter.exclude)?,
            ignore: Vec::new(),
            out: Vec::new(),
        };
        if !self.filter.ignored {
            walk.add_ancestors();
        }
        self.walk(&mut walk, path).map_err(|error| named(ErrorKind::Read(error)))?;
        let (found, skipped, unsupported) = (self.found.len(), self.skipped.len(), self.unsupported);
        let mut below = walk.out;
        below.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, path, bytes) in below {
            // Segments in the directory are results of earlier runs, not documents.
            let by_name =
                || DocumentFormat::for_path(&path).filter(|format| *format != DocumentFormat::Tatami);
            let Some(format) = format.or_else(by_name) else {
                self.unsupported += 1;
                continue;
            };
            let file = DocumentFile { path, name, format, bytes, is_named: false, collection: None };
            match check(&file) {
                Ok(()) => self.found.push(file),
                Err(error) => self.skipped.push(error),
            }
        }
        let is_none = (found, skipped) == (self.found.len(), self.skipped.len());
        if format.is_none() && is_none && self.add_members(path)? {
            self.unsupported = unsupported;
        }
        Ok(())
    }

    /// Adds the members of a collection; false if the directory is none.
    fn add_members(&mut self, directory: &Path) -> Result<bool, Error> {
        let failed = |error: tercet_tatami::Error| {
            Error::new(error.location().into(), ErrorKind::Tatami(Box::new(error.into_kind())))
        };
        let collection = Collection::open(directory).map_err(failed)?;
        if !collection.manifest_path().exists() {
            return Ok(false);
        }
        collection.check_records().map_err(failed)?;
        self.found.extend(collection.members().iter().map(|member| DocumentFile {
            path: directory.join(&member.path),
            name: member.path.clone(),
            format: DocumentFormat::Tatami,
            bytes: member.bytes,
            is_named: true,
            collection: Some(directory.to_path_buf()),
        }));
        Ok(true)
    }

    /// All files below a directory. Links to directories are not followed: they may form a cycle.
    fn walk(&mut self, walk: &mut Walk<'_>, directory: &Path) -> io::Result<()> {
        let before = walk.ignore.len();
        if !self.filter.ignored {
            walk.add_ignore_files(directory);
        }
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let path = entry.path();
            let is_directory = entry.file_type()?.is_dir();
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            if is_hidden && !self.filter.hidden || walk.skips(&path, is_directory) {
                self.filtered += 1;
            } else if is_directory {
                if let Err(error) = self.walk(walk, &path) {
                    self.skipped.push(Error::new(path.to_string_lossy().into(), ErrorKind::Read(error)));
                }
            } else if let Ok(meta) = fs::metadata(&path)
                && meta.is_file()
            {
                let below =
                    if self.with_directories { &path } else { path.strip_prefix(walk.root).unwrap_or(&path) };
                let name = slashed(below);
                walk.out.push((name, path, meta.len()));
            }
        }
        walk.ignore.truncate(before);
        Ok(())
    }
}

impl Walk<'_> {
    /// Adds the ignore files of the directories above the root, up to that of its repository.
    fn add_ancestors(&mut self) {
        let Ok(root) = self.root.canonicalize() else { return };
        if root.join(".git").exists() {
            return;
        }
        let above: Vec<&Path> = root.ancestors().skip(1).collect();
        let Some(repository) = above.iter().position(|directory| directory.join(".git").exists()) else {
            return;
        };
        for directory in above[..=repository].iter().rev() {
            // Paths are relative to the directory of the patterns.
            let Ok(inside) = root.strip_prefix(directory) else { continue };
            self.add_patterns(directory, inside);
        }
    }

    fn add_ignore_files(&mut self, directory: &Path) {
        let below = directory.strip_prefix(self.root).unwrap_or(directory).to_path_buf();
        self.add_patterns(directory, &below);
    }

    fn add_patterns(&mut self, directory: &Path, place: &Path) {
        let is_above = !directory.starts_with(self.root);
        for name in IGNORE_FILES {
            let Ok(input) = open(&directory.join(name)) else { continue };
            let mut bytes = Vec::new();
            if input.take(MAX_IGNORE_BYTES).read_to_end(&mut bytes).is_err() {
                continue;
            }
            let patterns = Patterns::parse(&String::from_utf8_lossy(&bytes));
            if !patterns.is_empty() {
                let place = if is_above {
                    Place::Above(place.to_path_buf())
                } else {
                    Place::Below(place.to_path_buf())
                };
                self.ignore.push((place, patterns));
            }
        }
    }

    /// Whether a file or directory is excluded or ignored, or not included.
    fn skips(&self, path: &Path, is_directory: bool) -> bool {
        let below = path.strip_prefix(self.root).unwrap_or(path);
        let relative = slashed(below);
        if self.exclude.matches(&relative, is_directory) == Some(true) {
            return true;
        }
        if !is_directory && !self.include.is_empty() && self.include.matches(&relative, false) != Some(true) {
            return true;
        }
        // The patterns of the innermost directory decide.
        let decided = self.ignore.iter().rev().find_map(|(place, patterns)| {
            let path = match place {
                Place::Above(inside) => slashed(&inside.join(below)),
                Place::Below(directory) => slashed(below.strip_prefix(directory).ok()?),
            };
            patterns.matches(&path, is_directory)
        });
        decided == Some(true)
    }
}

/// The first bytes of a file that must be text; none for pipes, which are read once.
fn head(file: &DocumentFile) -> Option<Vec<u8>> {
    let is_file = fs::metadata(&file.path).is_ok_and(|meta| meta.is_file());
    (file.format.is_text() && is_file).then(|| first_bytes(&file.path)).flatten()
}

fn first_bytes(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    open(path).ok()?.take(HEAD_LEN).read_to_end(&mut head).ok()?;
    Some(head)
}

/// Opens a file for sequential reading; gzip and Zstandard are decompressed.
#[expect(clippy::disallowed_methods, reason = "documents are read sequentially, also from pipes")]
pub(super) fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    let mut file = BufReader::with_capacity(READ_LEN, fs::File::open(path)?);
    Ok(match file.fill_buf()? {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::stream::read::Decoder::with_buffer(file)?),
        _ => Box::new(file),
    })
}

fn slashed(path: &Path) -> String {
    let text = path.to_string_lossy();
    if std::path::MAIN_SEPARATOR == '/' { text.into_owned() } else { text.replace('\\', "/") }
}
