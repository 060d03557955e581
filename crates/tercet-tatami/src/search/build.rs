//! Building a search segment from documents.
//!
//! ```text
//! document ─▶ block of documents ─▶ sorted terms ─▶ runs ─▶ merge ─▶ inverted region
//!                             └──▶ columns ─▶ pages              after the rows
//! ```
//!
//! Blocks are inverted in parallel on the current rayon pool while preceding rows are written. Sorted runs are kept in
//! memory up to a limit, then spilled to temporary files. Block boundaries depend only on the documents, and runs are merged in
//! order, so the output depends neither on the number of threads nor on the memory limit.
//!
//! ```
//! use std::io::Cursor;
//! use tercet_tatami::search::{Document, SegmentBuilder, SegmentOptions};
//!
//! let mut builder = SegmentBuilder::new(Cursor::new(Vec::new()), SegmentOptions::new())?;
//! builder.add(&Document::new("https://a.example/", "Cities").with_body(b"Bonn and Ulm"))?;
//! let built = builder.finish()?;
//! assert_eq!((built.written.rows, built.terms), (1, 7));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod invert;
mod merge;
mod run;
mod values;

use std::path::{Path, PathBuf};
#[cfg(any(unix, windows))]
use std::sync::Arc;

use rayon::prelude::*;
use sha2::{Digest as _, Sha256};
use tercet_core::Sink;
#[cfg(any(unix, windows))]
use tercet_core::publish::{AtomicFile, Disk, RealDisk};

use super::access::LengthsWriter;
use super::analyze::SNIPPET_CHARS;
use super::analyzer::{self, Analyzer};
use super::inverted::InvertedWriter;
use crate::column::{Column, Strings, Values};
use crate::error::{Error, ErrorKind};
use crate::schema::{Field, Schema, SchemaError, Type};
use crate::writer::{Writer, WriterOptions, Written};
use invert::InvertedBlock;
use merge::Runs;
pub use values::FieldValue;
use values::{Misfit, ValueColumns};

/// Maximum text bytes per block.
const BLOCK_BYTES: usize = 2 << 20;
/// Maximum documents per block.
const BLOCK_DOCUMENTS: usize = 1 << 16;
/// Blocks inverted in parallel, per thread and in total: their text and terms are in memory.
const THREAD_BLOCKS: usize = 3;
const WAVE_BLOCKS: usize = 16;
/// Bytes whose language is detected, in total and of one document.
const SAMPLE_BYTES: usize = 64 << 10;
const SAMPLE_DOCUMENT_BYTES: usize = 4 << 10;

/// Storage mode of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageMode {
    /// Store complete documents.
    Full,
    /// Store snippets of this many characters.
    Snippet(usize),
}

/// The choice of an analyzer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnalyzerChoice {
    /// This one.
    Fixed(Analyzer),
    /// That of the language of the first documents; see [`Analyzer::detect`].
    Auto,
}

/// Options of a segment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SegmentOptions {
    /// Storage mode.
    pub mode: StorageMode,
    /// Writer options.
    pub writer: WriterOptions,
    /// Indexing buffer in bytes; spills to temporary files beyond this size.
    pub memory_bytes: u64,
    /// The analyzer; by default the tokens of the format.
    pub analyzer: AnalyzerChoice,
    /// Whether positions of terms are recorded: phrases are found without reading texts. Ignored in segments of snippets, which have no
    /// phrases, and in the interop profile.
    pub positions: bool,
    /// Further columns: stored and nullable, not indexed. Filters, facets and sorting use them.
    pub fields: Vec<Field>,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        let analyzer = AnalyzerChoice::Fixed(Analyzer::PLAIN);
        let (mode, writer, fields) = (StorageMode::Full, WriterOptions::new(), Vec::new());
        Self { mode, writer, memory_bytes: 128 << 20, analyzer, positions: false, fields }
    }
}

impl SegmentOptions {
    /// Complete documents with default writer options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the storage mode.
    pub fn with_mode(mut self, mode: StorageMode) -> Self {
        self.mode = mode;
        self
    }

    /// Stores only snippets.
    pub fn snippet_only(self) -> Self {
        self.with_mode(StorageMode::Snippet(SNIPPET_CHARS))
    }

    /// Sets the writer options.
    pub fn with_writer(mut self, writer: WriterOptions) -> Self {
        self.writer = writer;
        self
    }

    /// Sets whether an existing file is replaced.
    pub fn with_overwrite(mut self, overwrite: bool) -> Self {
        self.writer.overwrite = overwrite;
        self
    }

    /// Sets the analyzer.
    pub fn with_analyzer(mut self, analyzer: AnalyzerChoice) -> Self {
        self.analyzer = analyzer;
        self
    }

    /// Sets whether positions of terms are recorded.
    pub fn with_positions(mut self, positions: bool) -> Self {
        self.positions = positions;
        self
    }

    /// Whether the segment has positions.
    fn records_positions(&self) -> bool {
        self.positions && self.mode == StorageMode::Full && self.writer.is_native()
    }

    /// Sets the further columns.
    pub fn with_fields(mut self, fields: Vec<Field>) -> Self {
        self.fields = fields;
        self
    }

    /// Sets the indexing buffer in bytes.
    pub fn with_memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }
}

/// A document to index.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Document<'a> {
    /// The document ID; by default the hexadecimal SHA-256 of the URL.
    pub doc_id: Option<&'a str>,
    /// The URL; its terms are also indexed.
    pub url: &'a str,
    /// Its title.
    pub title: &'a str,
    /// The body.
    pub body: &'a [u8],
    /// Anchor text of inbound links: indexed, not stored.
    pub anchor: &'a [u8],
    /// The values of [`SegmentOptions::fields`], in their order; missing ones are null.
    pub values: &'a [FieldValue],
}

impl<'a> Document<'a> {
    /// A document without a body.
    pub fn new(url: &'a str, title: &'a str) -> Self {
        Self { url, title, ..Self::default() }
    }

    /// Sets the document ID.
    pub fn with_id(mut self, doc_id: &'a str) -> Self {
        self.doc_id = Some(doc_id);
        self
    }

    /// Sets the body.
    pub fn with_body(mut self, body: &'a [u8]) -> Self {
        self.body = body;
        self
    }

    /// Sets the values of the further columns.
    pub fn with_values(mut self, values: &'a [FieldValue]) -> Self {
        self.values = values;
        self
    }

    /// Sets the anchor text of inbound links.
    pub fn with_anchor(mut self, anchor: &'a [u8]) -> Self {
        self.anchor = anchor;
        self
    }
}

/// The default ID of a document: the hexadecimal SHA-256 of its URL.
pub fn doc_id(url: &str) -> String {
    use std::fmt::Write as _;

    Sha256::digest(url.as_bytes()).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The names of the columns of every segment; further columns must have others.
pub const COLUMN_NAMES: [&str; 9] =
    ["doc_id", "url", "title", "body", "snippet", "norm_body", "norm_title", "norm_anchor", "norm_url"];

/// The columns of a segment without further ones.
pub fn schema(mode: StorageMode) -> Result<Schema, SchemaError> {
    schema_with(mode, &[])
}

fn schema_with(mode: StorageMode, further: &[Field]) -> Result<Schema, SchemaError> {
    let text = match mode {
        StorageMode::Full => Field::new("body", Type::BlobRef),
        StorageMode::Snippet(_) => Field::new("snippet", Type::String),
    };
    let mut fields = vec![
        Field::new("doc_id", Type::String).with_bloom(),
        Field::new("url", Type::String),
        Field::new("title", Type::String),
        text,
    ];
    let norms = ["norm_body", "norm_title", "norm_anchor", "norm_url"];
    fields.extend(norms.map(|name| Field::new(name, Type::UInt16)));
    Schema::new(values::with_fields(fields, further))
}

/// A block of consecutive documents.
#[derive(Debug, Default)]
struct Block {
    ids: Strings,
    urls: Strings,
    titles: Strings,
    bodies: Strings,
    anchors: Strings,
    values: ValueColumns,
    bytes: usize,
}

/// Builds a search segment. [`finish`](Self::finish) publishes it; dropping the builder discards it.
#[derive(Debug)]
pub struct SegmentBuilder<S> {
    writer: Writer<S>,
    mode: StorageMode,
    fields: Vec<Field>,
    has_positions: bool,
    analyzer: AnalyzerChoice,
    directory: Option<PathBuf>,
    documents: u64,
    /// The open block, and full blocks before it.
    open: Block,
    full: Vec<Block>,
    /// Inverted blocks that are not written yet.
    counted: Vec<(Block, InvertedBlock)>,
    /// The first document of the next block to invert.
    next: u32,
    runs: Runs,
    lengths: LengthsWriter,
}

/// A finished segment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Built<D> {
    /// The file.
    pub written: Written<D>,
    /// The number of distinct terms.
    pub terms: u64,
    /// The analyzer.
    pub analyzer: Analyzer,
}

impl<S: Sink + Send> SegmentBuilder<S> {
    /// Starts a segment in a sink.
    pub fn new(sink: S, options: SegmentOptions) -> Result<Self, Error> {
        let schema = schema_with(options.mode, &options.fields);
        let schema = schema.map_err(|error| Error::new("output".into(), error.into()))?;
        let writer = Writer::new(sink, schema, options.writer.clone().for_documents())?;
        Ok(Self::with_writer(writer, None, options))
    }

    fn with_writer(writer: Writer<S>, directory: Option<&Path>, options: SegmentOptions) -> Self {
        Self {
            writer: writer.with_page_headers(),
            mode: options.mode,
            has_positions: options.records_positions(),
            fields: options.fields,
            analyzer: options.analyzer,
            directory: directory.map(Path::to_owned),
            documents: 0,
            open: Block::default(),
            full: Vec::new(),
            counted: Vec::new(),
            next: 0,
            runs: Runs::new(directory, options.memory_bytes),
            lengths: LengthsWriter::default(),
        }
    }

    /// The number of documents so far.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Adds a document.
    pub fn add(&mut self, document: &Document<'_>) -> Result<(), Error> {
        self.add_document(document).map_err(|kind| self.writer.error(kind))
    }

    fn add_document(&mut self, document: &Document<'_>) -> Result<(), ErrorKind> {
        // The maximum number marks the end of a posting list.
        if self.documents + 1 >= u64::from(u32::MAX) {
            return Err(ErrorKind::from(std::io::Error::other("a segment has at most 2³² - 2 documents")));
        }
        let made;
        let id = if let Some(id) = document.doc_id {
            id
        } else {
            made = doc_id(document.url);
            &made
        };
        let parts = [document.url.as_bytes(), document.title.as_bytes(), document.body, document.anchor];
        if parts.iter().any(|part| u32::try_from(part.len()).is_err()) || id.len() > u32::MAX as usize {
            return Err(ErrorKind::from(std::io::Error::other("a document field exceeds 4 GiB")));
        }
        let block = &mut self.open;
        block.ids.push(id.as_bytes());
        block.urls.push(document.url.as_bytes());
        block.titles.push(document.title.as_bytes());
        block.bodies.push(document.body);
        block.anchors.push(document.anchor);
        block.bytes += block.values.push(&self.fields, document.values).map_err(|Misfit(at)| {
            let name = self.fields.get(at).map_or("", |field| &*field.name);
            let reason = format!("a value of column `{}` has another type", tercet_core::escape::name(name));
            ErrorKind::from(std::io::Error::other(reason))
        })?;
        block.bytes += parts.iter().map(|part| part.len()).sum::<usize>();
        self.documents += 1;
        if block.bytes >= BLOCK_BYTES || block.ids.len() >= BLOCK_DOCUMENTS {
            self.full.push(std::mem::take(&mut self.open));
            if self.full.len() >= (THREAD_BLOCKS * rayon::current_num_threads()).min(WAVE_BLOCKS) {
                self.invert_blocks()?;
            }
        }
        Ok(())
    }

    /// Inverts the full blocks while the preceding ones are written.
    fn invert_blocks(&mut self) -> Result<(), ErrorKind> {
        let before = std::mem::take(&mut self.counted);
        let blocks = std::mem::take(&mut self.full);
        let mut firsts = Vec::with_capacity(blocks.len());
        for block in &blocks {
            firsts.push(self.next);
            self.next += u32::try_from(block.ids.len()).unwrap_or(u32::MAX);
        }
        let analyzer = match self.analyzer {
            AnalyzerChoice::Fixed(analyzer) => analyzer,
            // Of the first block, whose end depends on the documents only.
            AnalyzerChoice::Auto => blocks.first().map_or(Analyzer::STANDARD, detected),
        };
        self.analyzer = AnalyzerChoice::Fixed(analyzer);
        let (mode, has_positions) = (self.mode, self.has_positions);
        let (writer, runs, lengths) = (&mut self.writer, &mut self.runs, &mut self.lengths);
        let (written, counted) = rayon::join(
            || put(writer, runs, lengths, before),
            || -> Vec<(Block, InvertedBlock)> {
                let work = blocks.into_par_iter().zip(firsts);
                work.map(|(block, first)| {
                    let counted = invert::count(&block, first, mode, analyzer, has_positions);
                    (block, counted)
                })
                .collect()
            },
        );
        self.counted = counted;
        written
    }

    /// Finishes the segment. A file on disk is published under its name.
    pub fn finish(mut self) -> Result<Built<S::Output>, Error> {
        let terms = self.complete().map_err(|kind| self.writer.error(kind))?;
        let analyzer = match self.analyzer {
            AnalyzerChoice::Fixed(analyzer) => analyzer,
            AnalyzerChoice::Auto => Analyzer::STANDARD,
        };
        Ok(Built { written: self.writer.finish()?, terms, analyzer })
    }

    /// Writes the remaining documents and attaches the inverted region; returns its number of terms.
    fn complete(&mut self) -> Result<u64, ErrorKind> {
        if !self.open.ids.is_empty() {
            self.full.push(std::mem::take(&mut self.open));
        }
        self.invert_blocks()?;
        let last = std::mem::take(&mut self.counted);
        put(&mut self.writer, &mut self.runs, &mut self.lengths, last)?;
        if let AnalyzerChoice::Fixed(analyzer) = self.analyzer
            && let Some(value) = analyzer.recorded()
        {
            self.writer.set_metadata(analyzer::KEY, &value);
        }
        let mut inverted = InvertedWriter::new(self.directory.as_deref());
        if self.has_positions {
            inverted = inverted.with_positions(self.directory.as_deref());
        }
        let runs = std::mem::replace(&mut self.runs, Runs::new(None, 0));
        runs.merge_into(&mut inverted, self.has_positions)?;
        let mut inverted = inverted.finish(None)?;
        inverted.lengths = Some(std::mem::take(&mut self.lengths));
        let terms = inverted.terms;
        self.writer.attach(inverted);
        Ok(terms)
    }
}

#[cfg(any(unix, windows))]
impl SegmentBuilder<AtomicFile> {
    /// Starts a segment on disk, published atomically by [`finish`](Self::finish). An existing file is replaced only with
    /// [`WriterOptions::overwrite`].
    pub fn create(path: impl AsRef<Path>, options: SegmentOptions) -> Result<Self, Error> {
        Self::create_on(Arc::new(RealDisk), path.as_ref(), options)
    }

    /// Starts a segment on another disk.
    pub fn create_on(disk: Arc<dyn Disk>, path: &Path, options: SegmentOptions) -> Result<Self, Error> {
        let schema = schema_with(options.mode, &options.fields)
            .map_err(|error| Error::new(path.display().to_string().into(), error.into()))?;
        let writer = Writer::create_on(disk, path, schema, options.writer.clone().for_documents())?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = parent.unwrap_or(Path::new("."));
        Ok(Self::with_writer(writer, Some(directory), options))
    }
}

/// The analyzer for the language of a block.
fn detected(block: &Block) -> Analyzer {
    let mut sample = String::new();
    let fields = block.titles.iter().zip(block.bodies.iter());
    for (title, body) in fields {
        if sample.len() >= SAMPLE_BYTES {
            break;
        }
        for text in [title, body] {
            sample.push_str(&String::from_utf8_lossy(&text[..text.len().min(SAMPLE_DOCUMENT_BYTES)]));
            sample.push(' ');
        }
    }
    Analyzer::detect(&sample)
}

/// Writes the rows of blocks and stores their runs.
fn put<S: Sink>(
    writer: &mut Writer<S>,
    runs: &mut Runs,
    lengths: &mut LengthsWriter,
    blocks: Vec<(Block, InvertedBlock)>,
) -> Result<(), ErrorKind> {
    for (block, counted) in blocks {
        for document in 0..block.ids.len() {
            lengths.push(counted.norms.iter().map(|norms| u32::from(norms[document])).sum())?;
        }
        let bodies = counted.snippets.unwrap_or(block.bodies);
        let mut columns: Vec<Column> =
            [block.ids, block.urls, block.titles, bodies].map(|text| Column::new(Values::Bytes(text))).into();
        columns.extend(counted.norms.map(|norm| Column::new(Values::UInt16(norm))));
        columns.extend(block.values.into_columns());
        writer.append_batch(&columns)?;
        runs.push(counted.run)?;
    }
    Ok(())
}
