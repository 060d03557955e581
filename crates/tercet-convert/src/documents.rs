//! Documents of text files, for a search segment.
//!
//! ```text
//! a directory ──▶ Files::add ──▶ DocumentFile ──┐
//!                                               ├─ read ──▶ Document ──▶ tercet_tatami::search::SegmentBuilder
//! text, Markdown, HTML ── charset ── text ──────┤
//! JSONL ── FieldNames, Columns ─────────────────┤
//! Parquet, Arrow, .tatami ── the same ──────────┤
//! TREC ── <DOC> … </DOC> ───────────────────────┘
//! ```
//!
//! Text that is not UTF-8 is decoded: by its byte order mark, by the encoding that a page declares, or by a guess, which is
//! reported. A file that cannot be read is an error if the caller named it; of a directory it is skipped and reported.
//!
//! ```
//! use tercet_convert::documents::{Document, DocumentOptions, Error, Files, read};
//! use tercet_core::progress::NoProgress;
//!
//! # let directory = tempfile::tempdir()?;
//! # #[expect(clippy::disallowed_methods, reason = "an example makes its own input")]
//! std::fs::write(directory.path().join("a.html"), b"<meta charset=gbk><title>T</title><p>\xd6\xd0\xce\xc4")?;
//! let mut files = Files::new();
//! files.add(directory.path(), None, |_| None)?;
//! let mut bodies = Vec::new();
//! let report = read(&files.found, &DocumentOptions::new(), &NoProgress, |document: &Document| {
//!     bodies.push((document.title.clone(), document.body.clone()));
//!     Ok::<_, Error>(())
//! })?;
//! assert_eq!((report.documents, bodies), (1, vec![("T".to_owned(), "中文".to_owned())]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod charset;
mod columns;
mod error;
mod fields;
mod files;
mod html;
mod ignore;
mod jsonl;
mod markdown;
mod read;
mod table;
mod trec;
#[cfg(any(unix, windows))]
mod update;

pub use charset::{Decoded, decode_html, decode_text};
pub use columns::{Columns, Dropped};
pub use error::{Error, ErrorKind};
pub use fields::FieldNames;
pub use files::{DocumentFile, DocumentFormat, FileFilter, Files};
pub use html::{HtmlText, html_text};
pub use markdown::markdown_title;
pub use read::{DocumentOptions, DocumentReport, OnError, read};
#[cfg(any(unix, windows))]
pub use update::{UpdateOptions, UpdateReport, update};

use tercet_tatami::search::{self, FieldValue, SegmentOptions, StorageMode};
use tercet_tatami::{LogicalType, WriterOptions};

/// A document to index.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Document {
    /// The document ID; by default the hexadecimal SHA-256 of the URL.
    pub id: Option<String>,
    /// The URL.
    pub url: String,
    /// The title.
    pub title: String,
    /// The text.
    pub body: String,
    /// Anchor text of inbound links: indexed, not stored.
    pub anchor: String,
    /// The values of the [`Columns`]; empty if none has one.
    pub values: Vec<FieldValue>,
}

impl<'a> From<&'a Document> for search::Document<'a> {
    fn from(document: &'a Document) -> Self {
        let mut out = Self::new(&document.url, &document.title)
            .with_body(document.body.as_bytes())
            .with_anchor(document.anchor.as_bytes())
            .with_values(&document.values);
        out.doc_id = document.id.as_deref();
        out
    }
}

/// The options of a segment of documents: the stored bodies are annotated as text.
pub fn segment_options(mode: StorageMode, writer: WriterOptions) -> SegmentOptions {
    let writer = match mode {
        StorageMode::Full => writer.with_metadata(LogicalType::key("body"), "string"),
        StorageMode::Snippet(_) => writer,
    };
    SegmentOptions::new().with_mode(mode).with_writer(writer)
}

/// Maximum size of a document.
const MAX_BYTES: u64 = 1 << 30;

/// Why the documents of a file end before its end.
enum Stopped<E> {
    /// The file cannot be read on.
    File(Error),
    /// The caller stopped.
    Consumer(E),
}

impl<E> From<Error> for Stopped<E> {
    fn from(error: Error) -> Self {
        Self::File(error)
    }
}
