//! Which files there are, and what they are.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::{Page, html, markdown};
use crate::failure::Failure;

/// The most bytes of one document.
pub(super) const MOST_BYTES: u64 = 1 << 30;

/// Bytes of the files that are read at a time, and how many of them.
const WAVE_BYTES: u64 = 16 << 20;
const WAVE_FILES: usize = 1024;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Kind {
    /// One document, as it is
    Text,
    /// One document, its title in the first heading
    Markdown,
    /// One document, stripped of its tags
    Html,
    /// A document on each line
    Jsonl,
    /// Documents between <DOC> and </DOC>
    Trec,
    /// A document in each row
    #[cfg(feature = "arrow")]
    Parquet,
}

impl Kind {
    fn of(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
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

    /// Whether a file holds many documents, which are read one after the other.
    const fn is_stream(self) -> bool {
        !matches!(self, Self::Text | Self::Markdown | Self::Html)
    }
}

/// A file to read.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    /// Its path within the folder that was named.
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) bytes: u64,
}

/// The files that are meant, in the order of the command line, those of a folder by name; and how many of them hold nothing.
pub(super) fn all(
    inputs: &[PathBuf],
    format: Option<Kind>,
    output: &Path,
) -> Result<(Vec<Source>, u64), Failure> {
    let (mut out, mut skipped) = (Vec::new(), 0);
    for input in inputs {
        let meta = fs::metadata(input).map_err(|error| refused(input, &error))?;
        if meta.is_dir() {
            let mut found = Vec::new();
            walk(input, input, &mut found)?;
            found.sort_by(|a, b| a.0.cmp(&b.0));
            for (name, path, bytes) in found {
                match format.or_else(|| Kind::of(&path)) {
                    Some(kind) if path != output => out.push(Source { path, name, kind, bytes }),
                    _ => skipped += 1,
                }
            }
        } else {
            let kind = format.or_else(|| Kind::of(input)).unwrap_or(Kind::Text);
            let name = slashed(input);
            out.push(Source { path: input.clone(), name, kind, bytes: meta.len() });
        }
    }
    Ok((out, skipped))
}

/// All files below a folder. Links to folders are not followed: they may lead back.
fn walk(root: &Path, folder: &Path, out: &mut Vec<(String, PathBuf, u64)>) -> Result<(), Failure> {
    let entries = fs::read_dir(folder).map_err(|error| refused(folder, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| refused(folder, &error))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(|error| refused(&path, &error))?;
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

/// Files that are read together.
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
        let (wave, behind) = rest.split_at(len);
        rest = behind;
        Some(wave)
    })
}

/// The document of a file that holds one, and whether the file was UTF-8.
pub(super) fn page(source: &Source, prefix: &str) -> Result<(Page, bool), Failure> {
    let file = open(source)?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| refused(&source.path, &error))?;
    if bytes.len() as u64 > MOST_BYTES {
        let name = crate::output::shown(&source.path);
        return Err(Failure::request(format!("{name}: a document of more than 1 GiB")));
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

/// Opens a file to be read from its start to its end.
#[expect(clippy::disallowed_methods, reason = "documents come as streams, of which nothing is read twice")]
pub(super) fn open(source: &Source) -> Result<fs::File, Failure> {
    fs::File::open(&source.path).map_err(|error| refused(&source.path, &error))
}

pub(super) fn refused(path: &Path, error: &std::io::Error) -> Failure {
    Failure::io(&format!("cannot read {}", crate::output::shown(path)), error)
}
