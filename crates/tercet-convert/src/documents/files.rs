//! Document files and their formats.

use std::collections::HashMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{Error, ErrorKind};

/// Bytes by which a binary format is recognized.
const HEAD_LEN: u64 = 1024;

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
}

impl DocumentFormat {
    /// The format of a file extension.
    pub fn for_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "txt" | "text" => Some(Self::Text),
            "md" | "markdown" => Some(Self::Markdown),
            "html" | "htm" | "xhtml" => Some(Self::Html),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            "trec" | "sgml" => Some(Self::Trec),
            #[cfg(feature = "arrow")]
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }

    /// Whether a file has many documents, which are read sequentially.
    pub(super) const fn is_stream(self) -> bool {
        !matches!(self, Self::Text | Self::Markdown | Self::Html)
    }

    fn is_text(self) -> bool {
        #[cfg(feature = "arrow")]
        return self != Self::Parquet;
        #[cfg(not(feature = "arrow"))]
        true
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
}

impl DocumentFile {
    /// The path for messages.
    pub(super) fn location(&self) -> Arc<str> {
        self.path.to_string_lossy().into()
    }
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
    /// Whether names start with the directory that was added.
    with_directories: bool,
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
    /// named file without a known one is text.
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
                #[cfg(feature = "arrow")]
                if meta.is_file() && first_bytes(path).is_some_and(|head| head.starts_with(b"PAR1")) {
                    return DocumentFormat::Parquet;
                }
                DocumentFormat::Text
            };
            let format = format.or_else(|| DocumentFormat::for_path(path)).unwrap_or_else(by_content);
            let (path, name, bytes) = (path.to_path_buf(), slashed(path), meta.len());
            let file = DocumentFile { path, name, format, bytes, is_named: true };
            check(&file)?;
            self.found.push(file);
            return Ok(());
        }
        let mut below = Vec::new();
        self.walk(path, path, &mut below).map_err(|error| named(ErrorKind::Read(error)))?;
        below.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, path, bytes) in below {
            let Some(format) = format.or_else(|| DocumentFormat::for_path(&path)) else {
                self.unsupported += 1;
                continue;
            };
            let file = DocumentFile { path, name, format, bytes, is_named: false };
            match check(&file) {
                Ok(()) => self.found.push(file),
                Err(error) => self.skipped.push(error),
            }
        }
        Ok(())
    }

    /// All files below a directory. Links to directories are not followed: they may form a cycle.
    fn walk(
        &mut self,
        root: &Path,
        directory: &Path,
        out: &mut Vec<(String, PathBuf, u64)>,
    ) -> std::io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                if let Err(error) = self.walk(root, &path, out) {
                    self.skipped.push(Error::new(path.to_string_lossy().into(), ErrorKind::Read(error)));
                }
            } else if let Ok(meta) = fs::metadata(&path)
                && meta.is_file()
            {
                let below =
                    if self.with_directories { &path } else { path.strip_prefix(root).unwrap_or(&path) };
                let name = slashed(below);
                out.push((name, path, meta.len()));
            }
        }
        Ok(())
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

/// Opens a file for sequential reading.
#[expect(clippy::disallowed_methods, reason = "documents are read sequentially, also from pipes")]
pub(super) fn open(path: &Path) -> std::io::Result<fs::File> {
    fs::File::open(path)
}

fn slashed(path: &Path) -> String {
    let text = path.to_string_lossy();
    if std::path::MAIN_SEPARATOR == '/' { text.into_owned() } else { text.replace('\\', "/") }
}
