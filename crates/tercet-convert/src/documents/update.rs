//! Updates of a collection of search segments: only documents that changed are indexed.
//!
//! ```text
//! documents of the files ─▶ fingerprint ─┬─ known ─▶ stays
//!                                        └─ new, changed ─▶ a new segment ─┐
//! documents of the collection that are old or gone ────────────────────────┴▶ one new manifest ─▶ merges
//! ```
//!
//! A document is known by its ID and compared by the fingerprint of all its fields, which the segments store in a column. Of documents
//! with the same ID, the last one counts. If files could not be read, no document is deleted because it is missing.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use tercet_core::{Progress, checksum};
use tercet_tatami::collection::{Member, MemberId};
use tercet_tatami::scan::RowSelection;
use tercet_tatami::search::build::doc_id;
use tercet_tatami::search::{
    AnalyzerChoice, FieldValue, MergePolicy, Segment, SegmentBuilder, SegmentOptions, SegmentSize,
    StorageMode,
};
use tercet_tatami::{Collection, Field, LogicalType, Profile, Scalar, Type, WriterOptions};

use super::columns::{Columns, FINGERPRINT};
use super::error::Error;
use super::files::Files;
use super::read::{DocumentOptions, DocumentReport, read};
use super::{Document, segment_options};

/// The number of columns before the further ones.
const COLUMNS: usize = 8;

/// Options of an update.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UpdateOptions {
    /// What of the documents is stored. Another mode than that of the collection indexes all documents again.
    pub mode: StorageMode,
    /// Options of the files.
    pub writer: WriterOptions,
    /// The analyzer. Another one than that of the collection indexes all documents again; [`AnalyzerChoice::Auto`] keeps it.
    pub analyzer: AnalyzerChoice,
    /// Whether positions are recorded. Another choice than that of the collection indexes all documents again.
    pub positions: bool,
    /// The indexing buffer in bytes.
    pub memory_bytes: u64,
    /// How documents are read, and their columns. Other columns than those of the collection index all documents again.
    pub documents: DocumentOptions,
    /// When segments are merged.
    pub policy: MergePolicy,
}

impl UpdateOptions {
    /// The language is detected, and documents are stored as a whole.
    pub fn new(documents: DocumentOptions) -> Self {
        let SegmentOptions { writer, memory_bytes, .. } = SegmentOptions::new();
        let (mode, analyzer, policy) = (StorageMode::Full, AnalyzerChoice::Auto, MergePolicy::default());
        Self { mode, writer, analyzer, positions: false, memory_bytes, documents, policy }
    }

    /// Sets what is stored.
    pub fn with_mode(mut self, mode: StorageMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the options of the files.
    pub fn with_writer(mut self, writer: WriterOptions) -> Self {
        self.writer = writer;
        self
    }

    /// Sets the analyzer.
    pub fn with_analyzer(mut self, analyzer: AnalyzerChoice) -> Self {
        self.analyzer = analyzer;
        self
    }

    /// Sets whether positions are recorded.
    pub fn with_positions(mut self, positions: bool) -> Self {
        self.positions = positions;
        self
    }

    /// Sets the indexing buffer in bytes.
    pub fn with_memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }
}

/// What an update did.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct UpdateReport {
    /// New documents.
    pub added: u64,
    /// Documents that replaced older versions.
    pub changed: u64,
    /// Documents that are as they were.
    pub unchanged: u64,
    /// Documents that are gone.
    pub deleted: u64,
    /// Missing documents that were kept, because files could not be read.
    pub kept: u64,
    /// Why all documents were indexed again, if they were.
    pub rebuilt: Option<&'static str>,
    /// Segments that were replaced by merged ones.
    pub merged: u64,
    /// The segments of the collection.
    pub segments: u64,
    /// The documents of the collection.
    pub documents: u64,
    /// The size of the segments.
    pub bytes: u64,
    /// What was read.
    pub read: DocumentReport,
}

/// The first bytes of the SHA-256 of an ID.
type Key = [u8; 16];

/// A document of the collection or of the files.
#[derive(Debug, Default)]
struct Known {
    /// Its member, row and fingerprint in the collection; no fingerprint if it is indexed again in any case.
    old: Option<(u32, u64, Option<u64>)>,
    now: Now,
}

/// What the files have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Now {
    /// Nothing.
    #[default]
    Missing,
    /// The same.
    Same,
    /// A version in this row of the new segment.
    New(u64),
}

/// The documents of a collection.
#[derive(Debug, Default)]
struct Documents {
    known: HashMap<Key, Known>,
    /// Rows to delete, by member.
    deleted: Vec<(MemberId, Vec<u64>)>,
}

/// Updates a collection of search segments: indexes the documents of files that changed, deletes those that are gone.
///
/// The directory is created if it does not exist. A document is known by its ID and compared by a fingerprint of all its
/// fields; of documents with the same ID, the last one counts. If files could not be read, no document is deleted because
/// it is missing.
pub fn update<E>(
    directory: &Path,
    files: &Files,
    options: &UpdateOptions,
    progress: &dyn Progress,
) -> Result<UpdateReport, E>
where
    E: From<Error> + From<tercet_tatami::Error>,
{
    std::fs::create_dir_all(directory)
        .map_err(|error| Error::new(directory.to_string_lossy().into(), super::ErrorKind::Open(error)))?;
    let mut collection = Collection::open(directory)?;
    let mut update = collection.update_segments()?;
    let mut report = UpdateReport::default();
    let mut columns = with_fingerprint(&options.documents.columns);
    let mut analyzer = options.analyzer;
    let mut documents = Documents::default();
    let members = update.members().to_vec();
    let mut segments = Vec::new();
    for member in &members {
        let segment = update.open(member)?;
        if !update.has_unique_ids(&segment) {
            return Err(Error::new(Arc::clone(segment.file().name()), super::ErrorKind::NotUpdated).into());
        }
        segments.push(segment);
    }
    if let Some(first) = segments.first() {
        if analyzer == AnalyzerChoice::Auto {
            analyzer = AnalyzerChoice::Fixed(first.analyzer());
        }
        report.rebuilt = unlike(&segments, &mut columns, analyzer, options);
    }
    for (number, (member, segment)) in (0..).zip(members.iter().zip(&segments)) {
        documents.read(number, member, segment, report.rebuilt.is_none())?;
    }
    drop(segments);

    // Each file has a UUID of its own.
    let mut writer = options.writer.clone().with_overwrite(false).with_uuid([0; 16]);
    let (key, value) = update.metadata();
    writer = writer.with_metadata(key, value);
    for (key, value) in &columns.annotations {
        writer = writer.with_metadata(key, value);
    }
    let builder = segment_options(options.mode, writer)
        .with_analyzer(analyzer)
        .with_memory_bytes(options.memory_bytes)
        .with_positions(options.positions)
        .with_fields(columns.fields.clone());
    let mut builder = SegmentBuilder::create(update.next_path()?, builder)?;
    let reading = options.documents.clone().with_columns(columns.clone());
    let mut dropped: Vec<u64> = Vec::new();
    let mut buffer = Vec::new();
    report.read = read(&files.found, &reading, progress, |document: &Document| {
        let fingerprint = fingerprint(document, &mut buffer);
        let known = documents.known.entry(key_of(document)).or_default();
        // Of several documents with this ID, the last one counts.
        if let Now::New(row) = known.now {
            dropped.push(row);
        }
        if known.old.is_some_and(|(_, _, old)| old == Some(fingerprint)) {
            known.now = Now::Same;
            return Ok(());
        }
        known.now = Now::New(builder.documents());
        let mut values = document.values.clone();
        values.resize(columns.fields.len(), FieldValue::Null);
        if let Some(last) = values.last_mut() {
            *last = Scalar::UInt64(fingerprint).into();
        }
        Ok::<_, E>(builder.add(&tercet_tatami::search::Document::from(document).with_values(&values))?)
    })?;
    let is_complete = files.skipped.is_empty() && report.read.skipped == 0;
    documents.compare(&members, is_complete, &mut report);
    let added = if builder.documents() > dropped.len() as u64 {
        builder.finish()?;
        Some(RowSelection::from(dropped))
    } else {
        drop(builder);
        None
    };
    let deleted: Vec<(MemberId, RowSelection)> =
        documents.deleted.into_iter().map(|(id, rows)| (id, rows.into())).collect();
    update.finish(added, &deleted)?;
    report.merged = merge(&mut collection, options, progress)?;
    report.segments = collection.members().len() as u64;
    (report.documents, report.bytes) = (collection.rows(), collection.bytes());
    Ok(report)
}

/// The columns with that of the fingerprints.
fn with_fingerprint(columns: &Columns) -> Columns {
    let mut out = columns.clone();
    out.push_made(Field::new(FINGERPRINT, Type::UInt64).with_nulls());
    out
}

/// The further columns of a segment and their annotations.
type StoredColumns<'a> = (&'a [Field], Vec<(String, String)>);

/// How the segments differ from those that would be written. The columns get the order of the first segment.
fn unlike(
    segments: &[Segment],
    columns: &mut Columns,
    analyzer: AnalyzerChoice,
    options: &UpdateOptions,
) -> Option<&'static str> {
    let mut first: Option<StoredColumns<'_>> = None;
    for segment in segments {
        if analyzer != AnalyzerChoice::Fixed(segment.analyzer()) {
            return Some("another analyzer");
        }
        let is_snippet = matches!(options.mode, StorageMode::Snippet(_));
        if segment.is_snippet_only() != is_snippet {
            return Some("another storage mode");
        }
        let records = options.positions && !is_snippet && options.writer.profile == Profile::Native;
        if segment.has_positions() != records {
            return Some("positions");
        }
        let file = segment.file();
        let further = file.schema().fields().get(COLUMNS..).unwrap_or_default();
        let is_about = |key: &str| further.iter().any(|field| LogicalType::key(&field.name) == key);
        let pairs: Vec<(String, String)> =
            file.footer().pairs.iter().filter(|(key, _)| is_about(key)).cloned().collect();
        match &first {
            Some((fields, annotations)) if *fields != further || *annotations != pairs => {
                return Some("other columns");
            }
            Some(_) => {}
            None => first = Some((further, pairs)),
        }
    }
    let (fields, pairs) = first?;
    match columns.in_order_of(fields, &pairs) {
        Some(ordered) => {
            *columns = ordered;
            None
        }
        None => Some("other columns"),
    }
}

/// Merges segments as the policy says; returns how many were replaced.
fn merge(
    collection: &mut Collection,
    options: &UpdateOptions,
    progress: &dyn Progress,
) -> Result<u64, tercet_tatami::Error> {
    let mut merged = 0;
    loop {
        let size = |member: &Member| SegmentSize { documents: member.rows, live: member.live_rows() };
        let sizes: Vec<SegmentSize> = collection.members().iter().map(size).collect();
        let Some(chosen) = options.policy.choose(&sizes) else { return Ok(merged) };
        let chosen: Vec<Member> = chosen.into_iter().map(|at| collection.members()[at].clone()).collect();
        let mut writer = options.writer.clone();
        writer.uuid = [0; 16];
        match collection.merge_segments(&chosen, writer, progress) {
            // Documents of files that could not be read may be in segments with other columns.
            Err(error) if matches!(error.kind(), tercet_tatami::ErrorKind::SchemaMismatch { .. }) => {
                return Ok(merged);
            }
            done => done?,
        };
        merged += chosen.len() as u64;
    }
}

impl Documents {
    /// Adds the live documents of a member. Of several with the same ID, the last one counts.
    fn read(
        &mut self,
        number: u32,
        member: &Member,
        segment: &Segment,
        with_fingerprints: bool,
    ) -> Result<(), tercet_tatami::Error> {
        self.deleted.push((member.id, Vec::new()));
        let columns: &[&str] = if with_fingerprints { &["doc_id", FINGERPRINT] } else { &["doc_id"] };
        for batch in segment.file().scan().columns(columns)?.batches() {
            let batch = batch?;
            for (at, row) in batch.rows.iter().enumerate() {
                let fingerprint = match batch.columns.get(1).and_then(|column| column.scalar(at)) {
                    Some(Scalar::UInt64(fingerprint)) => Some(fingerprint),
                    _ => None,
                };
                let Some(Scalar::Bytes(id)) = batch.columns[0].scalar(at) else { continue };
                let known = self.known.entry(hashed(&id)).or_default();
                if let Some((member, row, _)) = known.old.replace((number, *row, fingerprint)) {
                    self.deleted[member as usize].1.push(row);
                }
            }
        }
        Ok(())
    }

    /// Deletes the documents that were replaced, and those that are gone.
    fn compare(&mut self, members: &[Member], is_complete: bool, report: &mut UpdateReport) {
        debug_assert_eq!(self.deleted.len(), members.len());
        #[expect(clippy::iter_over_hash_type, reason = "rows are sorted by the selection")]
        for known in self.known.values() {
            let is_deleted = match (known.old, known.now) {
                (None, Now::New(_)) => {
                    report.added += 1;
                    false
                }
                (Some(_), Now::New(_)) => {
                    report.changed += 1;
                    true
                }
                (Some(_), Now::Same) => {
                    report.unchanged += 1;
                    false
                }
                (Some(_), Now::Missing) if is_complete => {
                    report.deleted += 1;
                    true
                }
                (Some(_), Now::Missing) => {
                    report.kept += 1;
                    false
                }
                (None, _) => false,
            };
            if let Some((member, row, _)) = known.old.filter(|_| is_deleted) {
                self.deleted[member as usize].1.push(row);
            }
        }
    }
}

fn key_of(document: &Document) -> Key {
    match &document.id {
        Some(id) => hashed(id.as_bytes()),
        None => hashed(doc_id(&document.url).as_bytes()),
    }
}

fn hashed(id: &[u8]) -> Key {
    let mut key = [0; 16];
    key.copy_from_slice(&blake3::hash(id).as_bytes()[..16]);
    key
}

/// The fingerprint of all fields.
fn fingerprint(document: &Document, buffer: &mut Vec<u8>) -> u64 {
    buffer.clear();
    for text in [&document.url, &document.title, &document.body, &document.anchor] {
        buffer.extend_from_slice(&(text.len() as u64).to_le_bytes());
        buffer.extend_from_slice(text.as_bytes());
    }
    for value in &document.values {
        put_value(value, buffer);
    }
    checksum::xxh3(buffer)
}

fn put_value(value: &FieldValue, out: &mut Vec<u8>) {
    match value {
        FieldValue::Null => out.push(0),
        FieldValue::Scalar(value) => {
            let bytes = value.to_bytes();
            out.push(1);
            out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            out.extend_from_slice(&bytes);
        }
        FieldValue::List(elements) => {
            out.push(2);
            out.extend_from_slice(&(elements.len() as u64).to_le_bytes());
            for element in elements {
                put_value(element, out);
            }
        }
    }
}
