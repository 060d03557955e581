//! Reads the documents of files: those of files with one document in parallel.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Read;
use std::sync::Arc;

use rayon::prelude::*;
use tercet_core::Progress;
use tercet_core::progress::Cancelled;

use super::charset::{Decoded, decode_html, decode_text};
use super::columns::Columns;
use super::error::{Error, ErrorKind};
use super::fields::FieldNames;
use super::files::{DocumentFile, DocumentFormat, open};
use super::html::html_text;
use super::markdown::markdown_title;
use super::{Document, MAX_BYTES, Stopped, jsonl, trec};

/// Bytes and number of files read in parallel.
const WAVE_BYTES: u64 = 16 << 20;
const WAVE_FILES: usize = 1024;
/// Problems that are kept; more are counted.
const MAX_PROBLEMS: usize = 1000;
/// Documents whose IDs are compared: each takes 8 bytes.
const MAX_IDS: usize = 1 << 24;

/// What to do with a file or document that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// Fail at the first one.
    Stop,
    /// Skip and report it.
    Skip,
}

/// How documents are read.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DocumentOptions {
    /// The start of the URLs of files with one document.
    pub url_prefix: String,
    /// The fields of JSONL and tables.
    pub fields: FieldNames,
    /// What to do with a file or document that cannot be read; by default, [`Stop`](OnError::Stop) for named files and
    /// [`Skip`](OnError::Skip) for those of directories.
    pub on_error: Option<OnError>,
    /// The columns for other fields.
    pub columns: Columns,
}

impl DocumentOptions {
    /// Default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the start of the URLs.
    pub fn with_url_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.url_prefix = prefix.into();
        self
    }

    /// Sets the fields of JSONL and Parquet.
    pub fn with_fields(mut self, fields: FieldNames) -> Self {
        self.fields = fields;
        self
    }

    /// Sets the columns for other fields.
    pub fn with_columns(mut self, columns: Columns) -> Self {
        self.columns = columns;
        self
    }

    /// Sets what to do with a file or document that cannot be read.
    pub fn with_on_error(mut self, on_error: Option<OnError>) -> Self {
        self.on_error = on_error;
        self
    }
}

/// What was read.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct DocumentReport {
    /// The number of documents.
    pub documents: u64,
    /// The first files and documents that were skipped.
    pub problems: Vec<Error>,
    /// The number of all that were skipped.
    pub skipped: u64,
    /// The number of files with bytes that are invalid in their encoding.
    pub invalid_bytes: u64,
    /// Files that are not UTF-8 and declare no encoding, with the guessed one.
    pub guessed: Vec<(Arc<str>, &'static str)>,
    /// Files with documents without a body field, and their number.
    pub no_text: Vec<(Arc<str>, u64)>,
    /// The number of documents with the ID of an earlier one, among the first 16,777,216 documents.
    pub duplicates: u64,
}

/// The IDs of documents, as hashes of 64 bits: equal hashes of different IDs are as good as impossible.
#[derive(Default)]
struct Ids(Vec<u64>);

impl Ids {
    fn add(&mut self, document: &Document) {
        if self.0.len() < MAX_IDS {
            let mut hasher = DefaultHasher::new();
            // Without an ID, it is made of the URL.
            let id = document.id.as_deref();
            (id, id.is_none().then_some(&document.url)).hash(&mut hasher);
            self.0.push(hasher.finish());
        }
    }

    fn duplicates(mut self) -> u64 {
        self.0.sort_unstable();
        self.0.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64
    }
}

impl DocumentReport {
    fn problem(&mut self, error: Error) {
        self.skipped += 1;
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(error);
        }
    }

    fn note_encoding(&mut self, location: &Arc<str>, encoding: &Encoded) {
        self.invalid_bytes += u64::from(encoding.has_errors);
        if let Some(name) = encoding.guessed {
            self.guessed.push((Arc::clone(location), name));
        }
    }
}

/// How the bytes of a file were decoded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Encoded {
    pub(super) has_errors: bool,
    pub(super) guessed: Option<&'static str>,
}

impl From<&Decoded> for Encoded {
    fn from(decoded: &Decoded) -> Self {
        let guessed = decoded.is_guessed.then_some(decoded.encoding);
        Self { has_errors: decoded.has_errors, guessed }
    }
}

/// Passes the documents of files to a function, in order. An error of the function ends the reading.
pub fn read<E: From<Error>>(
    files: &[DocumentFile],
    options: &DocumentOptions,
    progress: &dyn Progress,
    mut each: impl FnMut(&Document) -> Result<(), E>,
) -> Result<DocumentReport, E> {
    let mut report = DocumentReport::default();
    let mut ids = Ids::default();
    let mut each = |document: &Document| {
        ids.add(document);
        each(document)
    };
    for wave in waves(files) {
        if let [file] = wave
            && file.format.is_stream()
        {
            let mut reader = Reader { file, options, progress, report: &mut report, each: &mut each };
            let done = match file.format {
                format if format.is_table() => super::table::read(&mut reader),
                DocumentFormat::Trec => trec::read(&mut reader),
                _ => jsonl::read(&mut reader),
            };
            match done {
                Ok(()) => {}
                Err(Stopped::Consumer(error)) => return Err(error),
                Err(Stopped::File(error)) if error.is_fatal(file, options.on_error) => {
                    return Err(error.into());
                }
                Err(Stopped::File(error)) => report.problem(error),
            }
            continue;
        }
        let pages: Vec<_> = wave.par_iter().map(|file| page(file, &options.url_prefix)).collect();
        for (page, file) in pages.into_iter().zip(wave) {
            let cancelled = || Error::new(file.location(), ErrorKind::Cancelled(Cancelled));
            if progress.is_cancelled() {
                return Err(cancelled().into());
            }
            match page {
                Ok((document, encoded)) => {
                    report.note_encoding(&file.location(), &encoded);
                    report.documents += 1;
                    each(&document)?;
                }
                Err(error) if error.is_fatal(file, options.on_error) => return Err(error.into()),
                Err(error) => report.problem(error),
            }
            progress.advance(file.bytes);
        }
    }
    report.duplicates = ids.duplicates();
    Ok(report)
}

pub(super) trait Fatal {
    /// Whether the error of a file ends the reading.
    fn is_fatal(&self, file: &DocumentFile, on_error: Option<OnError>) -> bool;
}

impl Fatal for Error {
    fn is_fatal(&self, file: &DocumentFile, on_error: Option<OnError>) -> bool {
        let by_default = if file.is_named { OnError::Stop } else { OnError::Skip };
        matches!(self.kind(), ErrorKind::Cancelled(_)) || on_error.unwrap_or(by_default) == OnError::Stop
    }
}

/// Groups of files that are read in parallel.
fn waves(files: &[DocumentFile]) -> impl Iterator<Item = &[DocumentFile]> {
    let mut rest = files;
    std::iter::from_fn(move || {
        let first = rest.first()?;
        let mut len = 1;
        if !first.format.is_stream() {
            let mut bytes = first.bytes;
            while let Some(next) = rest.get(len).filter(|next| !next.format.is_stream())
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

/// Reads the document of a file.
fn page(file: &DocumentFile, prefix: &str) -> Result<(Document, Encoded), Error> {
    let named = |kind| Error::new(file.location(), kind);
    let input = open(&file.path).map_err(|error| named(ErrorKind::Open(error)))?;
    let mut bytes = Vec::new();
    input.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| named(ErrorKind::Read(error)))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(named(ErrorKind::TooLarge { line: None }));
    }
    let file_name = file.name.rsplit('/').next().unwrap_or(&file.name);
    let is_html = file.format == DocumentFormat::Html;
    let decoded = if is_html { decode_html(bytes) } else { decode_text(bytes) };
    let encoded = Encoded::from(&decoded);
    let (title, body) = match file.format {
        DocumentFormat::Html => {
            let page = html_text(&decoded.text);
            (page.title, page.text)
        }
        DocumentFormat::Markdown => (markdown_title(&decoded.text).unwrap_or_default(), decoded.text),
        _ => (String::new(), decoded.text),
    };
    let title = if title.is_empty() { file_name.to_owned() } else { title };
    let url = format!("{prefix}{}", file.name);
    Ok((Document { url, title, body, ..Document::default() }, encoded))
}

/// Reads a file with many documents.
pub(super) struct Reader<'a, E> {
    file: &'a DocumentFile,
    options: &'a DocumentOptions,
    progress: &'a dyn Progress,
    report: &'a mut DocumentReport,
    each: &'a mut dyn FnMut(&Document) -> Result<(), E>,
}

impl<'a, E> Reader<'a, E> {
    pub(super) fn open(&self) -> Result<Box<dyn Read + Send>, Error> {
        open(&self.file.path).map_err(|error| self.error(ErrorKind::Open(error)))
    }

    pub(super) fn file(&self) -> &'a DocumentFile {
        self.file
    }

    pub(super) fn columns(&self) -> &'a Columns {
        &self.options.columns
    }

    pub(super) fn bytes(&self) -> u64 {
        self.file.bytes
    }

    pub(super) fn fields(&self) -> &'a FieldNames {
        &self.options.fields
    }

    pub(super) fn error(&self, kind: ErrorKind) -> Error {
        Error::new(self.file.location(), kind)
    }

    /// Passes a document on.
    pub(super) fn add(&mut self, document: &Document) -> Result<(), Stopped<E>> {
        self.report.documents += 1;
        (self.each)(document).map_err(Stopped::Consumer)
    }

    /// Skips a document, or fails.
    pub(super) fn problem(&mut self, kind: ErrorKind) -> Result<(), Error> {
        let error = self.error(kind);
        if error.is_fatal(self.file, self.options.on_error) {
            return Err(error);
        }
        self.report.problem(error);
        Ok(())
    }

    /// Reports bytes that were read.
    pub(super) fn advance(&self, bytes: u64) -> Result<(), Error> {
        self.progress.advance(bytes);
        self.progress.check().map_err(|cancelled| self.error(ErrorKind::Cancelled(cancelled)))
    }

    pub(super) fn note_encoding(&mut self, encoded: &Encoded) {
        self.report.note_encoding(&self.file.location(), encoded);
    }

    /// Reports documents without a body field.
    pub(super) fn no_text(&mut self, documents: u64) {
        if documents > 0 {
            self.report.no_text.push((self.file.location(), documents));
        }
    }
}
