//! Deletes documents from a segment.
//!
//! Documents and posting lists stay unchanged; a live-docs record marks the live documents. The file is rewritten and replaced
//! atomically; its unchanged part is copied by the operating system where possible.
//!
//! ```text
//! header │ rows, terms, lists: unchanged │ live documents │ footer │ trailer
//! ```

use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;

use tercet_core::checksum::crc32c;
use tercet_core::publish::{AtomicFile, Disk, FileLock, PublishError, RealDisk};
use tercet_core::{FieldReader, Limits, Span};

use super::columns;
use super::live::Live;
use super::segment::Segment;
use crate::error::{Error, ErrorKind};
use crate::file::{Access, File, ReadOptions};
use crate::predicate::Expr;
use crate::region::Region;
use crate::scalar::Scalar;
use crate::wire::cursor::{Varints as _, put, put_bytes};
use crate::wire::footer::{INVERTED, TRAILER_LEN};
use crate::wire::header::{self, Header};
use crate::wire::page::{HEADER_LEN, PageHeader};

/// Size of copies without support of the operating system.
const COPY_LEN: u64 = 1 << 20;

/// The documents to delete.
#[derive(Clone, Debug)]
pub enum DeleteBy<'a> {
    /// Documents with these IDs.
    Ids(&'a [String]),
    /// Documents that match a filter.
    Filter(&'a Expr),
}

/// The result of a deletion.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Deleted {
    /// Documents deleted by this call.
    pub deleted: u64,
    /// Live documents left.
    pub live: u64,
    /// Documents of the file, including deleted ones.
    pub documents: u64,
    /// IDs without a live document.
    pub not_found: Vec<String>,
}

/// Options of a deletion.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct DeleteOptions {
    /// The maximum sizes accepted.
    pub limits: Limits,
}

impl DeleteOptions {
    /// The default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum sizes accepted.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

/// Deletes documents from a segment. If none matches, the file is not changed.
pub fn delete(path: &Path, delete_by: &DeleteBy<'_>, options: DeleteOptions) -> Result<Deleted, Error> {
    delete_on(Arc::new(RealDisk), path, delete_by, options)
}

/// Deletes documents from a segment on another disk.
pub fn delete_on(
    disk: Arc<dyn Disk>,
    path: &Path,
    delete_by: &DeleteBy<'_>,
    options: DeleteOptions,
) -> Result<Deleted, Error> {
    let named = |fault| Error::new(path.display().to_string().into(), fault);
    let lock = FileLock::acquire_on(disk, path).map_err(|error| named(missing(path, error)))?;
    let reading = ReadOptions::new().with_access(Access::Pread).with_limits(options.limits);
    let file = File::open_with(path, reading)?;
    let Some(segment) = file.segment()? else { return Err(file.error(ErrorKind::NotASegment)) };
    let documents = segment.document_count();
    let mut live = segment.live.clone().unwrap_or_else(|| Live::all(documents));
    let before = live.count();
    let (rows, not_found) = matching(&segment, delete_by, &live)?;
    for row in rows {
        live.delete(row);
    }
    let left = live.count();
    if left < before {
        let atomic_file = lock.replace().map_err(|error| named(error.into()))?;
        rewrite(&file, &live, atomic_file).map_err(named)?;
    }
    Ok(Deleted { deleted: before - left, live: left, documents, not_found })
}

/// Reports a missing file like every other reader.
fn missing(path: &Path, error: PublishError) -> ErrorKind {
    match tercet_core::source::File::open(path) {
        Err(source) => source.into(),
        Ok(_) => error.into(),
    }
}

/// The matching documents, and the IDs without a match.
fn matching(
    segment: &Segment,
    delete_by: &DeleteBy<'_>,
    live: &Live,
) -> Result<(Vec<u32>, Vec<String>), Error> {
    let short = |row: u64| u32::try_from(row).ok();
    let file = segment.file();
    match delete_by {
        DeleteBy::Filter(filter) => {
            let mut out = Vec::new();
            for batch in file.scan().column_positions(&[])?.filter(filter)?.batches() {
                out.extend(batch?.rows.into_iter().filter_map(short));
            }
            Ok((out, Vec::new()))
        }
        DeleteBy::Ids(ids) => {
            let mut wanted: std::collections::BTreeMap<&[u8], bool> =
                ids.iter().map(|id| (id.as_bytes(), false)).collect();
            let name = file.schema().fields()[columns::DOC_ID].name.to_string();
            let values = ids.iter().map(|id| Scalar::Bytes(id.clone().into_bytes()));
            // Zone maps and bloom filters prune row groups without any of the IDs.
            let filter = Expr::col(name).is_in(values);
            let mut out = Vec::new();
            if ids.is_empty() {
                return Ok((out, Vec::new()));
            }
            for batch in file.scan().column_positions(&[columns::DOC_ID])?.filter(&filter)?.batches() {
                let batch = batch?;
                for (index, row) in batch.rows.iter().enumerate() {
                    let Some(row) = short(*row).filter(|row| live.contains(*row)) else { continue };
                    if let Some(Scalar::Bytes(id)) = batch.columns[0].scalar(index)
                        && let Some(found) = wanted.get_mut(&id[..])
                    {
                        *found = true;
                    }
                    out.push(row);
                }
            }
            let missing = wanted.into_iter().filter(|(_, found)| !found);
            let not_found = missing.map(|(id, _)| String::from_utf8_lossy(id).into_owned()).collect();
            Ok((out, not_found))
        }
    }
}

/// Writes the file with a new live-docs record.
fn rewrite(file: &File, live: &Live, mut atomic_file: AtomicFile) -> Result<(), ErrorKind> {
    let inner = file.inner();
    let footer_offset = inner.header.footer_offset;
    let inverted = inner.footer.inverted.as_ref().ok_or(ErrorKind::NotASegment)?;
    // An old record right before the footer is replaced; elsewhere it stays.
    let old_end = inverted.live_offset.saturating_add(HEADER_LEN).saturating_add(inverted.live_length);
    let is_last = inverted.live_length > 0 && old_end == footer_offset;
    let live_offset = if is_last { inverted.live_offset } else { footer_offset };
    let payload = live.to_bytes();
    let live_length = payload.len() as u64;

    copy(file, live_offset, &mut atomic_file)?;
    atomic_file.write_all(&PageHeader::for_index(&payload).to_bytes())?;
    atomic_file.write_all(&payload)?;
    let new_offset = live_offset + HEADER_LEN + live_length;
    let old_footer = inner.source.read_at(inner.footer_span)?;
    let footer = with_live(&old_footer, inner.footer_span, (live_offset, live_length))?;
    let footer_len = u32::try_from(footer.len())
        .map_err(|_| ErrorKind::from(std::io::Error::other("the footer exceeds 4 GiB")))?;
    let mut tail = footer_len.to_le_bytes().to_vec();
    tail.extend(crc32c(&footer).to_le_bytes());
    tail.extend(header::MAGIC);
    debug_assert_eq!(tail.len() as u64, TRAILER_LEN);
    atomic_file.write_all(&footer).and_then(|()| atomic_file.write_all(&tail))?;
    let header = Header { footer_offset: new_offset, ..inner.header.clone() };
    atomic_file.seek(SeekFrom::Start(0))?;
    atomic_file.write_all(&header.to_bytes())?;
    atomic_file.publish()?;
    Ok(())
}

/// Copies the first bytes of the file.
fn copy(file: &File, len: u64, atomic_file: &mut AtomicFile) -> Result<(), ErrorKind> {
    let mut at = atomic_file.copy_from_replaced(0, len)?;
    while at < len {
        let piece = Span::at(at, COPY_LEN.min(len - at)).unwrap_or(Span::empty(at));
        atomic_file.write_all(&file.inner().source.read_at(piece)?)?;
        at += piece.len();
    }
    Ok(())
}

/// The footer with a new live-docs record. All other sections stay unchanged, including unknown ones.
fn with_live(footer: &[u8], span: Span, (offset, length): (u64, u64)) -> Result<Vec<u8>, ErrorKind> {
    let mut fields = FieldReader::new(Region::Footer, span.start(), footer);
    let mut out = vec![fields.byte("codec")?];
    while fields.remaining() > 0 {
        let tag = fields.uvarint("tag")?;
        let body = fields.bytes("section")?;
        put(tag, &mut out);
        if tag != INVERTED {
            put_bytes(body, &mut out);
            continue;
        }
        let mut numbers = FieldReader::new(Region::Section { tag }, span.start(), body);
        let mut new = Vec::with_capacity(body.len() + 8);
        for _ in 0..8 {
            put(numbers.uvarint("number")?, &mut new);
        }
        put(offset, &mut new);
        put(length, &mut new);
        put_bytes(&new, &mut out);
    }
    Ok(out)
}
