//! The manifest of a collection: a log of records.
//!
//! ```text
//! "TMAN" │ u8 1 │ u8 kind, uvarint length, body, u32 CRC-32C │ …
//! ```
//!
//! The first record of a log written here holds the length of the log, so that a truncated log is noticed wherever it is
//! cut. Other programs skip the record, because its kind is unknown to them, and append after the stated length. If
//! such a program dies, it leaves an incomplete record at the end: readers skip this tail with a warning, and the next writer drops it.
//! Every other record that is not intact is damage, which is an error: it was acknowledged.
//!
//! Deleted rows of a member are a record of a kind of its own. Other programs would skip it and return these rows, so a log with such a
//! record has version 2, which they refuse.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use tercet_core::checksum::{crc32c, crc32c_append};
use tercet_core::num::counted;
use tercet_core::{FieldReader, Malformed, Reason, Span, escape};

use super::member::{Member, MemberId};
use crate::error::ErrorKind;
use crate::region::Region;
use crate::scan::RowSelection;
use crate::wire::cursor::{Varints as _, put};

/// The magic.
pub const MAGIC: &[u8; 4] = b"TMAN";
/// The version of logs without deleted rows.
pub const VERSION: u8 = 1;
/// The version of logs with deleted rows.
pub const VERSION_WITH_DELETED_ROWS: u8 = 2;
/// Length of the header before the records.
pub(super) const HEADER_LEN: usize = 5;

const ADD: u8 = 1;
const REMOVE: u8 = 2;
const SET_TIER: u8 = 3;
/// The length of the log. Other programs skip unknown kinds.
const LENGTH: u8 = 128;
/// Deleted rows of a member.
const DELETE_ROWS: u8 = 129;
/// Bytes of a record with the length of the log.
const LENGTH_LEN: usize = 14;

/// One change to a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A file is added, or replaces the one with its ID.
    Add(Box<Member>),
    /// A file is removed.
    Remove(MemberId),
    /// The tier of a file is set.
    SetTier(MemberId, u8),
    /// Rows of a file are deleted, in addition to those deleted before.
    DeleteRows(MemberId, RowSelection),
}

impl Record {
    /// Appends the encoded record.
    pub fn put(&self, out: &mut Vec<u8>) {
        let (kind, body) = match self {
            Self::Add(member) => (ADD, member.to_bytes()),
            Self::Remove(id) => (REMOVE, id.to_vec()),
            Self::SetTier(id, tier) => (SET_TIER, id.iter().copied().chain([*tier]).collect()),
            Self::DeleteRows(id, rows) => (DELETE_ROWS, deleted_to_bytes(id, rows)),
        };
        put_record(kind, &body, out);
    }
}

/// `id │ uvarint ranges: uvarint gap to the previous range, uvarint rows`
fn deleted_to_bytes(id: &MemberId, rows: &RowSelection) -> Vec<u8> {
    let mut out = id.to_vec();
    put(rows.ranges().len() as u64, &mut out);
    let mut at = 0;
    for range in rows.ranges() {
        put(range.start - at, &mut out);
        put(range.end - range.start, &mut out);
        at = range.end;
    }
    out
}

/// The deleted rows of a record body after the ID. They must be rows of the member, ascending and disjoint.
fn parse_deleted(
    region: Region,
    start: u64,
    body: &[u8],
    rows: u64,
) -> Result<RowSelection, Malformed<Region>> {
    let mut fields = FieldReader::new(region, start, body);
    let count = fields.count("range_count", 2)?;
    let mut ranges = Vec::with_capacity(count);
    let mut at = 0u64;
    for _ in 0..count {
        let (gap, len) = (fields.uvarint("range_gap")?, fields.uvarint("range_rows")?);
        let first = at.checked_add(gap);
        let end = first.and_then(|first| first.checked_add(len)).filter(|end| *end <= rows && len > 0);
        let (Some(first), Some(end)) = (first, end) else {
            let reason = Reason::OutOfRange { found: at.saturating_add(gap), allowed: "rows of the member" };
            return Err(fields.fault("range_rows", 1, reason));
        };
        ranges.push(first..end);
        at = end;
    }
    Ok(ranges.into())
}

fn put_record(kind: u8, body: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.push(kind);
    put(body.len() as u64, out);
    out.extend_from_slice(body);
    let crc = crc32c(&out[start..]);
    out.extend_from_slice(&crc.to_le_bytes());
}

/// A log of encoded records, preceded by its length.
#[cfg(any(unix, windows))]
pub(super) fn sealed(records: &[u8]) -> Vec<u8> {
    let mut out = header(has_deleted_rows(records));
    let length = (HEADER_LEN + LENGTH_LEN + records.len()) as u64;
    put_record(LENGTH, &length.to_le_bytes(), &mut out);
    out.extend_from_slice(records);
    out
}

/// Whether encoded records delete rows.
fn has_deleted_rows(records: &[u8]) -> bool {
    let mut at = 0;
    while let Some(record) = framed(records, at) {
        if record.kind == DELETE_ROWS {
            return true;
        }
        at = record.end;
    }
    false
}

/// A problem in a log that is skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ManifestWarning {
    /// The last bytes are not a complete record: an unfinished append of another program.
    TornTail {
        /// Their offset.
        offset: u64,
        /// Their number.
        bytes: u64,
    },
    /// An intact record of an unknown kind.
    UnknownKind {
        /// Its offset.
        offset: u64,
        /// Its kind.
        record_kind: u8,
    },
    /// An intact record whose contents cannot be parsed.
    Unreadable {
        /// Its offset.
        offset: u64,
        /// The reason.
        reason: String,
    },
    /// A file was added again with another ID, without removing its old entry.
    Superseded {
        /// Its path.
        path: String,
    },
    /// Damaged bytes that a salvage skipped.
    Damaged {
        /// Their offset.
        offset: u64,
        /// Their number.
        bytes: u64,
    },
    /// The end of the log is missing; a salvage kept what is left.
    Truncated {
        /// The number of missing bytes.
        bytes: u64,
    },
    /// The log has a header and no records: compacted by another program after the last member was removed, or truncated.
    NoRecords,
}

impl fmt::Display for ManifestWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TornTail { offset, bytes } => write!(
                f,
                "skipped the last {} of the manifest (at byte {offset}): incomplete record, from an interrupted \
                 change by another program",
                counted(*bytes, "byte")
            ),
            Self::UnknownKind { offset, record_kind } => {
                write!(f, "skipped a manifest record of unknown kind {record_kind} (at byte {offset})")
            }
            Self::Unreadable { offset, reason } => {
                write!(f, "skipped an unreadable manifest record (at byte {offset}): {reason}")
            }
            Self::Superseded { path } => {
                write!(f, "the old entry of `{}` was not removed", escape::name(path))
            }
            Self::Damaged { offset, bytes } => {
                let bytes = counted(*bytes, "damaged byte");
                write!(f, "skipped {bytes} of the manifest (at byte {offset})")
            }
            Self::Truncated { bytes } => {
                write!(f, "the last {} of the manifest are missing", counted(*bytes, "byte"))
            }
            Self::NoRecords => f.write_str("the manifest has no records"),
        }
    }
}

/// The state after all records of a log.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Replay {
    /// The live members, sorted by path.
    pub members: Vec<Member>,
    /// Intact records, including those of unknown kinds; without the length of the log.
    pub records: u64,
    /// The start of the first record after the length of the log.
    pub start: u64,
    /// The end of the intact records, where a writer appends.
    pub end: u64,
    /// Skipped problems.
    pub warnings: Vec<ManifestWarning>,
}

impl Replay {
    /// The fraction of records that a compaction would remove.
    #[expect(clippy::cast_precision_loss, reason = "a share, not a count")]
    pub fn dead_fraction(&self) -> f64 {
        let dead = self.records.saturating_sub(self.members.len() as u64);
        if self.records == 0 { 0.0 } else { dead as f64 / self.records as f64 }
    }

    /// The log of only the live members, without its length: the bytes that other programs write.
    pub fn compacted(&self) -> Vec<u8> {
        let mut members = Vec::new();
        self.put_members(&mut members);
        let mut out = header(has_deleted_rows(&members));
        out.extend_from_slice(&members);
        out
    }

    /// Appends a record for each live member.
    pub(super) fn put_members(&self, out: &mut Vec<u8>) {
        for member in &self.members {
            Record::Add(Box::new(member.clone())).put(out);
            if !member.deleted.is_empty() {
                Record::DeleteRows(member.id, (*member.deleted).clone()).put(out);
            }
        }
    }
}

/// The header of the log.
fn header(deletes_rows: bool) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.push(if deletes_rows { VERSION_WITH_DELETED_ROWS } else { VERSION });
    out
}

/// Applies all records. Damage is an error, a torn tail that another program left is not.
pub fn replay(bytes: &[u8]) -> Result<Replay, ErrorKind> {
    Walk::new(bytes)?.map_or_else(|| Ok(Replay::default()), |walk| walk.run(false))
}

/// Applies all records of an existing file. A file without a complete header is truncated: what it held is unknown.
#[cfg(any(unix, windows))]
pub(super) fn replay_file(bytes: &[u8]) -> Result<Replay, ErrorKind> {
    if bytes.len() < HEADER_LEN {
        let (found, expected) = (bytes.len() as u64, HEADER_LEN as u64);
        return Err(ErrorKind::ManifestTruncated { found, expected });
    }
    replay(bytes)
}

/// Applies all intact records, including those after damaged ones.
pub fn salvage(bytes: &[u8]) -> Result<Replay, ErrorKind> {
    Walk::new(bytes)?.map_or_else(|| Ok(Replay::default()), |walk| walk.run(true))
}

/// A verified record.
struct Framed<'a> {
    kind: u8,
    body: &'a [u8],
    /// The offsets of the body and of the next record.
    body_start: usize,
    end: usize,
}

struct Walk<'a> {
    bytes: &'a [u8],
    live: BTreeMap<MemberId, Member>,
    /// The ID of the file at each path.
    paths: BTreeMap<String, MemberId>,
    out: Replay,
}

impl<'a> Walk<'a> {
    /// Checks the header; `None` if it is truncated, which is an empty collection.
    fn new(bytes: &'a [u8]) -> Result<Option<Self>, Malformed<Region>> {
        if bytes.len() < HEADER_LEN {
            return Ok(None);
        }
        let mut fields = FieldReader::new(Region::Manifest { record: None }, 0, bytes);
        fields.magic("magic", MAGIC)?;
        let version = fields.byte("version")?;
        if !matches!(version, VERSION | VERSION_WITH_DELETED_ROWS) {
            let reason = Reason::UnknownVersion { found: version.into(), known: "1 and 2" };
            return Err(fields.fault("version", 1, reason));
        }
        Ok(Some(Self { bytes, live: BTreeMap::new(), paths: BTreeMap::new(), out: Replay::default() }))
    }

    fn run(mut self, salvage: bool) -> Result<Replay, ErrorKind> {
        let mut at = HEADER_LEN;
        let stated = self.stated_length();
        let len = self.bytes.len() as u64;
        match stated {
            Some(stated) => {
                at += LENGTH_LEN;
                if let Some(bytes) = stated.checked_sub(len).filter(|bytes| *bytes > 0) {
                    if !salvage {
                        return Err(ErrorKind::ManifestTruncated { found: len, expected: stated });
                    }
                    self.out.warnings.push(ManifestWarning::Truncated { bytes });
                }
            }
            None if self.bytes.len() == HEADER_LEN => self.out.warnings.push(ManifestWarning::NoRecords),
            None => {}
        }
        (self.out.start, self.out.end) = (at as u64, at as u64);
        while at < self.bytes.len() {
            if let Some(record) = framed(self.bytes, at) {
                if let Err(malformed) = self.apply(at, &record) {
                    // A skipped record would bring deleted rows back.
                    if !salvage {
                        return Err(malformed.into());
                    }
                    let (offset, reason) = (at as u64, malformed.to_string());
                    self.out.warnings.push(ManifestWarning::Unreadable { offset, reason });
                }
                at = record.end;
                self.out.end = at as u64;
                continue;
            }
            let (offset, left) = (at as u64, (self.bytes.len() - at) as u64);
            match next_intact(self.bytes, at) {
                Next::None if self.is_torn(at, stated) => {
                    self.out.warnings.push(ManifestWarning::TornTail { offset, bytes: left });
                    break;
                }
                Next::None | Next::Unclear if !salvage => return Err(self.damage(at, self.bytes.len())),
                Next::Unclear => return Err(self.damage(at, self.bytes.len())),
                Next::None => {
                    self.out.warnings.push(ManifestWarning::Damaged { offset, bytes: left });
                    break;
                }
                Next::At(next) if salvage => {
                    self.out.warnings.push(ManifestWarning::Damaged { offset, bytes: (next - at) as u64 });
                    at = next;
                }
                Next::At(next) => return Err(self.damage(at, next)),
            }
        }
        self.out.members = self.paths.values().filter_map(|id| self.live.remove(id)).collect();
        Ok(self.out)
    }

    /// The length of the log in its first record.
    fn stated_length(&self) -> Option<u64> {
        let record = framed(self.bytes, HEADER_LEN).filter(|record| record.kind == LENGTH)?;
        Some(u64::from_le_bytes(record.body.try_into().ok()?))
    }

    /// Whether the rest of the log is an unfinished append: after the acknowledged bytes, and shorter than its length says.
    fn is_torn(&self, at: usize, stated: Option<u64>) -> bool {
        let starts_with_length = at == HEADER_LEN && self.bytes.get(at) == Some(&LENGTH);
        let is_acknowledged = starts_with_length || stated.is_some_and(|stated| (at as u64) < stated);
        !is_acknowledged && !is_complete(self.bytes, at)
    }

    fn damage(&self, at: usize, end: usize) -> ErrorKind {
        let span = Span::between(at as u64, end as u64).unwrap_or(Span::empty(at as u64));
        ErrorKind::ManifestDamaged { record: self.out.records, span }
    }

    fn apply(&mut self, at: usize, record: &Framed<'_>) -> Result<(), Malformed<Region>> {
        let number = self.out.records;
        self.out.records += u64::from(record.kind != LENGTH);
        let offset = at as u64;
        let region = Region::Manifest { record: Some(u32::try_from(number).unwrap_or(u32::MAX)) };
        let id = record.body.get(..16).and_then(|id| MemberId::try_from(id).ok());
        let unreadable = |reason: &str| ManifestWarning::Unreadable { offset, reason: reason.to_owned() };
        match (record.kind, id) {
            (ADD, _) => match Member::parse(region, record.body_start as u64, record.body) {
                Ok(member) => self.add(member),
                Err(error) => self.out.warnings.push(unreadable(&error.to_string())),
            },
            (REMOVE, Some(id)) => self.remove(&id),
            // Another log was appended to this one.
            (LENGTH, _) => {}
            (SET_TIER, Some(id)) => match (record.body.get(16), self.live.get_mut(&id)) {
                (Some(tier), Some(member)) => member.tier = *tier,
                (None, _) => self.out.warnings.push(unreadable("missing tier")),
                (Some(_), None) => {}
            },
            (DELETE_ROWS, Some(id)) => {
                // Rows of a removed member are gone anyway.
                if let Some(member) = self.live.get_mut(&id) {
                    let start = (record.body_start + id.len()) as u64;
                    let body = record.body.get(id.len()..).unwrap_or_default();
                    let rows = parse_deleted(region, start, body, member.rows)?;
                    member.deleted = Arc::new(member.deleted.union(&rows));
                }
            }
            (REMOVE | SET_TIER | DELETE_ROWS, None) => self.out.warnings.push(unreadable("missing ID")),
            (kind, _) => self.out.warnings.push(ManifestWarning::UnknownKind { offset, record_kind: kind }),
        }
        Ok(())
    }

    fn add(&mut self, mut member: Member) {
        // The same file, added again: its deleted rows stay deleted.
        if let Some(old) = self.live.get(&member.id).filter(|old| old.is_same_file(&member)) {
            member.deleted = Arc::clone(&old.deleted);
        }
        self.remove(&member.id);
        // A path names one file: its old entry is obsolete.
        if let Some(stale) = self.paths.insert(member.path.clone(), member.id) {
            self.live.remove(&stale);
            self.out.warnings.push(ManifestWarning::Superseded { path: member.path.clone() });
        }
        self.live.insert(member.id, member);
    }

    fn remove(&mut self, id: &MemberId) {
        if let Some(member) = self.live.remove(id) {
            self.paths.remove(&member.path);
        }
    }
}

/// The record at an offset, if it is complete and its checksum matches.
fn framed(bytes: &[u8], at: usize) -> Option<Framed<'_>> {
    let (kind, body_start, len) = head(bytes, at)?;
    let end = body_start.checked_add(len)?;
    let body = bytes.get(body_start..end)?;
    let stored = bytes.get(end..)?.first_chunk::<4>()?;
    // The checksum covers the shortest encoding of the length, whichever is stored.
    let mut covered = vec![kind];
    put(len as u64, &mut covered);
    let crc = crc32c_append(crc32c(&covered), body);
    (crc == u32::from_le_bytes(*stored)).then_some(Framed { kind, body, body_start, end: end + 4 })
}

/// Kind and length of the record at an offset, and the offset of its body.
fn head(bytes: &[u8], at: usize) -> Option<(u8, usize, usize)> {
    let mut fields = FieldReader::new(Region::Manifest { record: None }, at as u64, bytes.get(at..)?);
    let kind = fields.byte("kind").ok()?;
    let len = usize::try_from(fields.uvarint("body_length").ok()?).ok()?;
    Some((kind, bytes.len() - fields.remaining(), len))
}

/// Whether the rest of the log has the length of a record, so that it is damaged and not incomplete.
fn is_complete(bytes: &[u8], at: usize) -> bool {
    let rest = bytes.get(at..).unwrap_or_default();
    // A file system may extend a file before it writes the contents.
    if rest.iter().all(|byte| *byte == 0) {
        return false;
    }
    let end = head(bytes, at).and_then(|(_, body_start, len)| body_start.checked_add(len)?.checked_add(4));
    end.is_some_and(|end| end <= bytes.len()) || is_intact_but_for_its_length(rest)
}

/// Whether bytes are a record whose length field alone is damaged.
fn is_intact_but_for_its_length(record: &[u8]) -> bool {
    let Some((kind, rest)) = record.split_first() else { return false };
    let Some((rest, stored)) = rest.split_last_chunk::<4>() else { return false };
    (1..=rest.len().min(10)).any(|width| {
        let body = &rest[width..];
        let mut covered = vec![*kind];
        put(body.len() as u64, &mut covered);
        covered.len() == 1 + width && crc32c_append(crc32c(&covered), body) == u32::from_le_bytes(*stored)
    })
}

enum Next {
    /// No intact record follows.
    None,
    At(usize),
    /// The search gave up: bytes can be crafted to look like records.
    Unclear,
}

/// Bytes hashed per byte of the log, at most, in the search for an intact record.
const EFFORT: usize = 64;

/// Finds an intact record of a known kind after a damaged one.
fn next_intact(bytes: &[u8], at: usize) -> Next {
    let mut effort = bytes.len().saturating_mul(EFFORT).max(1 << 20);
    for candidate in at + 1..bytes.len() {
        let Some((kind, body_start, len)) = head(bytes, candidate) else { continue };
        let Some(body) = body_start.checked_add(len).and_then(|end| bytes.get(body_start..end)) else {
            continue;
        };
        let plausible = match kind {
            ADD => true,
            REMOVE => len == 16,
            SET_TIER => len == 17,
            _ => false,
        };
        if !plausible {
            continue;
        }
        effort = match effort.checked_sub(2 * len) {
            Some(left) => left,
            None => return Next::Unclear,
        };
        let region = Region::Manifest { record: None };
        if kind == ADD && Member::parse(region, body_start as u64, body).is_err() {
            continue;
        }
        if framed(bytes, candidate).is_some() {
            return Next::At(candidate);
        }
    }
    Next::None
}
