//! Input files and their types.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use tercet::core::SourceError;
use tercet::{HEAD_LEN, OtherFormat};

use super::{Page, html, markdown};
use crate::failure::Failure;
use crate::input::{binary_format, head, must_be_local, must_be_text};
use crate::output::display_path;

/// Maximum size of a document.
pub(super) const MAX_BYTES: u64 = 1 << 30;

/// Bytes and number of files read in parallel.
const WAVE_BYTES: u64 = 16 << 20;
const WAVE_FILES: usize = 1024;

/// The type of an input file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Kind {
    /// Plain text, one document
    Text,
    /// Markdown, one document with its first heading as title
    Markdown,
    /// HTML, one document
    Html,
    /// JSON Lines, one document per line
    Jsonl,
    /// TREC, documents between <DOC> and </DOC>
    Trec,
    /// Parquet, one document per row
    #[cfg(feature = "arrow")]
    Parquet,
}

impl Kind {
    fn from_path(path: &Path) -> Option<Self> {
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

    /// The type of a file without a known extension, by its first bytes.
    fn from_content(path: &Path) -> Option<Self> {
        match OtherFormat::detect(&head(path, HEAD_LEN)?)? {
            #[cfg(feature = "arrow")]
            OtherFormat::Parquet => Some(Self::Parquet),
            _ => None,
        }
    }

    /// The first bytes of a file of this type, which must be text; none for pipes, which are read once.
    fn text_head(self, path: &Path) -> Vec<u8> {
        #[cfg(feature = "arrow")]
        if self == Self::Parquet {
            return Vec::new();
        }
        let is_file = fs::metadata(path).is_ok_and(|meta| meta.is_file());
        is_file.then(|| head(path, HEAD_LEN)).flatten().unwrap_or_default()
    }

    /// Whether a file has many documents, which are read sequentially.
    const fn is_stream(self) -> bool {
        !matches!(self, Self::Text | Self::Markdown | Self::Html)
    }
}

/// An input file.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    /// The path relative to the given directory.
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) bytes: u64,
}

/// The input files.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// In command-line order, those of a directory by name.
    pub(super) sources: Vec<Source>,
    /// The number of files in directories with unsupported extensions.
    pub(super) skipped: u64,
    /// Files in directories that are not text: name and format.
    pub(super) binary_files: Vec<(String, String)>,
}

/// Finds the input files.
pub(super) fn all(inputs: &[PathBuf], format: Option<Kind>, output: &Path) -> Result<Found, Failure> {
    let mut out = Found::default();
    for input in inputs {
        must_be_local(input, "index")?;
        let meta = fs::metadata(input).map_err(|error| open_failure(input, error))?;
        if meta.is_dir() {
            let mut found = Vec::new();
            walk(input, input, &mut found)?;
            found.sort_by(|a, b| a.0.cmp(&b.0));
            for (name, path, bytes) in found {
                match format.or_else(|| Kind::from_path(&path)) {
                    Some(kind) if path != output => match binary_format(&kind.text_head(&path)) {
                        None => out.sources.push(Source { path, name, kind, bytes }),
                        Some(format) => out.binary_files.push((display_path(&path), format)),
                    },
                    _ => out.skipped += 1,
                }
            }
        } else {
            let kind = format.or_else(|| Kind::from_path(input)).or_else(|| Kind::from_content(input));
            let kind = kind.unwrap_or(Kind::Text);
            must_be_text(&input.to_string_lossy(), &kind.text_head(input), "a document")?;
            let name = slashed(input);
            out.sources.push(Source { path: input.clone(), name, kind, bytes: meta.len() });
        }
    }
    Ok(out)
}

/// All files below a directory. Links to directories are not followed: they may form a cycle.
fn walk(root: &Path, directory: &Path, out: &mut Vec<(String, PathBuf, u64)>) -> Result<(), Failure> {
    let entries = fs::read_dir(directory).map_err(|error| read_failure(directory, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| read_failure(directory, &error))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(|error| read_failure(&path, &error))?;
        if kind.is_dir() {
            walk(root, &path, out)?;
        } else if let Ok(meta) = fs::metadata(&path)
            && meta.is_file()
        {
            let name = slashed(path.strip_prefix(root).unwrap_or(&path));
            out.push((name, path, meta.len()));
        }
    }
    Ok(())
}

fn slashed(path: &Path) -> String {
    let text = path.to_string_lossy();
    if std::path::MAIN_SEPARATOR == '/' { text.into_owned() } else { text.replace('\\', "/") }
}

/// Groups of files that are read in parallel.
pub(super) fn waves(sources: &[Source]) -> impl Iterator<Item = &[Source]> {
    let mut rest = sources;
    std::iter::from_fn(move || {
        let first = rest.first()?;
        let mut len = 1;
        if !first.kind.is_stream() {
            let mut bytes = first.bytes;
            while let Some(next) = rest.get(len).filter(|next| !next.kind.is_stream())
                && bytes + next.bytes <= WAVE_BYTES
                && len < WAVE_FILES
            {
                bytes += next.bytes;
                len += 1;
            }
        }
        let (wave, later) = rest.split_at(len);
        rest = later;
        Some(wave)
    })
}

/// Reads the document of a file; returns whether it is valid UTF-8.
pub(super) fn page(source: &Source, prefix: &str) -> Result<(Page, bool), Failure> {
    let file = open(source)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| read_failure(&source.path, &error))?;
    if bytes.len() as u64 > MAX_BYTES {
        let name = crate::output::display_path(&source.path);
        return Err(Failure::request(format!("{name}: document exceeds 1 GiB")));
    }
    let (text, is_utf8) = match String::from_utf8(bytes) {
        Ok(text) => (text, true),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), false),
    };
    let file_name = source.name.rsplit('/').next().unwrap_or(&source.name).to_owned();
    let (title, body) = match source.kind {
        Kind::Html => {
            let stripped = html::strip(&text);
            (stripped.title, stripped.text)
        }
        Kind::Markdown => (markdown::title(&text).unwrap_or_default().to_owned(), text),
        _ => (String::new(), text),
    };
    let title = if title.is_empty() { file_name } else { title };
    let url = format!("{prefix}{}", source.name);
    Ok((Page { id: None, url, title, body, anchor: String::new() }, is_utf8))
}

/// Opens a file for sequential reading.
#[expect(clippy::disallowed_methods, reason = "documents are read sequentially")]
pub(super) fn open(source: &Source) -> Result<fs::File, Failure> {
    fs::File::open(&source.path).map_err(|error| open_failure(&source.path, error))
}

fn open_failure(path: &Path, error: std::io::Error) -> Failure {
    Failure::source(&path.to_string_lossy(), SourceError::Open(error))
}

pub(super) fn read_failure(path: &Path, error: &std::io::Error) -> Failure {
    Failure::io(&format!("cannot read {}", crate::output::display_path(path)), error)
}
