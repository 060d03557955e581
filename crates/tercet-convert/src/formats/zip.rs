//! ZIP archives: the directory, and members that are stored or deflated.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::Arc;

use bytes::Bytes;
use tercet_core::limits::check_limit;
use tercet_core::source::Memory;
use tercet_core::{ByteSource, Limits, SourceError, Span};

use crate::arrays::source::{malformed, unsupported};
use crate::{Error, ErrorKind};

/// The bytes that are read at a time for a checksum.
const PIECE: u64 = 1 << 20;

/// An archive.
#[derive(Debug)]
pub(crate) struct Archive {
    source: Arc<dyn ByteSource>,
    members: BTreeMap<String, Member>,
    limits: Limits,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    header: u64,
    stored: u64,
    len: u64,
    method: u16,
    crc: u32,
}

fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + len)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

impl Archive {
    /// Reads the directory of an archive.
    pub(crate) fn open(source: Arc<dyn ByteSource>, limits: Limits) -> Result<Self, Error> {
        let name = source.name().clone();
        let members = directory(&*source, limits).map_err(|kind| Error::new(name.clone(), kind))?;
        let members =
            members.ok_or_else(|| malformed(&name, "the directory of the ZIP archive is damaged"))?;
        let limits = limits.for_file(source.len());
        Ok(Self { source, members, limits })
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        self.source.name()
    }

    /// The number of bytes of the archive.
    pub(crate) fn len(&self) -> u64 {
        self.source.len()
    }

    /// The names of all members.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    fn damaged(&self, name: &str) -> Error {
        malformed(self.source.name(), format!("the member `{name}` is damaged"))
    }

    /// Reads a span of the archive for a member.
    fn read_span(&self, name: &str, start: u64, len: u64) -> Result<Bytes, Error> {
        let span = Span::at(start, len).filter(|span| span.end() <= self.source.len());
        let span = span.ok_or_else(|| self.damaged(name))?;
        self.source.read_at(span).map_err(|source| Error::new(self.source.name().clone(), source.into()))
    }

    /// Where the stored bytes of a member start.
    fn start(&self, name: &str, member: &Member) -> Result<u64, Error> {
        let head = self.read_span(name, member.header, 30)?;
        let (names, extra) = (number(&head, 26, 2).unwrap_or(0), number(&head, 28, 2).unwrap_or(0));
        if number(&head, 0, 4) != Some(0x0403_4b50) {
            return Err(self.damaged(name));
        }
        member.header.checked_add(30 + names + extra).ok_or_else(|| self.damaged(name))
    }

    /// A member as a source; `None` if there is none of this name. One that is stored as it is stays in the archive, and its checksum is
    /// verified here; others are decompressed into memory.
    pub(crate) fn open_member(&self, name: &str) -> Result<Option<Arc<dyn ByteSource>>, Error> {
        let Some(member) = self.members.get(name) else { return Ok(None) };
        if member.method != 0 {
            let bytes = self.read(name)?.unwrap_or_default();
            return Ok(Some(Arc::new(Memory::new(name, bytes))));
        }
        let start = self.start(name, member)?;
        let mut crc = flate2::Crc::new();
        let mut at = 0;
        while at < member.len {
            let len = PIECE.min(member.len - at);
            crc.update(&self.read_span(name, start.saturating_add(at), len)?);
            at += len;
        }
        if member.stored != member.len || crc.sum() != member.crc {
            return Err(self.damaged(name));
        }
        let archive = Arc::clone(&self.source);
        Ok(Some(Arc::new(StoredMember { archive, name: name.into(), start, len: member.len })))
    }

    /// Reads a member; `None` if there is none of this name.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some(member) = self.members.get(name) else { return Ok(None) };
        let damaged = || self.damaged(name);
        let len = check_limit("a member of the archive", member.len, self.limits.chunk_bytes)
            .map_err(|limit| Error::new(self.source.name().clone(), limit.into()))?;
        let stored = self.read_span(name, self.start(name, member)?, member.stored)?;
        let bytes = match member.method {
            0 => stored.to_vec(),
            8 => {
                let mut bytes = Vec::new();
                let mut inflate =
                    flate2::read::DeflateDecoder::new(&stored[..]).take(member.len.saturating_add(1));
                inflate.read_to_end(&mut bytes).map_err(|_| damaged())?;
                bytes
            }
            method => {
                return Err(unsupported(
                    self.source.name(),
                    format!("`{name}` has the compression method {method}"),
                ));
            }
        };
        let mut crc = flate2::Crc::new();
        crc.update(&bytes);
        if bytes.len() != len || crc.sum() != member.crc {
            return Err(damaged());
        }
        Ok(Some(bytes))
    }
}

/// A member that is stored as it is.
#[derive(Debug)]
struct StoredMember {
    archive: Arc<dyn ByteSource>,
    name: Arc<str>,
    start: u64,
    len: u64,
}

impl ByteSource for StoredMember {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, span: Span) -> Result<Bytes, SourceError> {
        let inside = Some(span).filter(|span| span.end() <= self.len);
        let inside = inside.and_then(|span| Span::at(self.start.checked_add(span.start())?, span.len()));
        self.archive.read_at(inside.ok_or(SourceError::PastEnd { span, len: self.len })?)
    }

    fn read_into(&self, start: u64, out: &mut [u8]) -> Result<(), SourceError> {
        let past_end = SourceError::PastEnd { span: Span::empty(start), len: self.len };
        match start.checked_add(out.len() as u64) {
            Some(end) if end <= self.len => self.archive.read_into(self.start + start, out),
            _ => Err(past_end),
        }
    }

    fn is_remote(&self) -> bool {
        self.archive.is_remote()
    }
}

/// The members; `None` if the directory is damaged.
fn directory(source: &dyn ByteSource, limits: Limits) -> Result<Option<BTreeMap<String, Member>>, ErrorKind> {
    let tail_len = source.len().min(65_557);
    let tail_start = source.len() - tail_len;
    let tail = source.read_at(Span::at(tail_start, tail_len).unwrap_or(Span::empty(0)))?;
    let Some(at) = tail.windows(4).rposition(|bytes| bytes == b"PK\x05\x06") else { return Ok(None) };
    let field = |offset: usize, len: usize| number(&tail, at + offset, len);
    let (Some(mut count), Some(mut len), Some(mut start)) = (field(10, 2), field(12, 4), field(16, 4)) else {
        return Ok(None);
    };
    if start == u64::from(u32::MAX) || count == 0xffff || len == u64::from(u32::MAX) {
        // The locator of the large form is stored before.
        let Some(locator) = at.checked_sub(20) else { return Ok(None) };
        let Some(place) = number(&tail, locator + 8, 8) else { return Ok(None) };
        let Some(span) = Span::at(place, 56).filter(|span| span.end() <= source.len()) else {
            return Ok(None);
        };
        let end = source.read_at(span)?;
        let fields = (number(&end, 32, 8), number(&end, 40, 8), number(&end, 48, 8));
        let (Some(large_count), Some(large_len), Some(large_start)) = fields else { return Ok(None) };
        (count, len, start) = (large_count, large_len, large_start);
    }
    check_limit("the directory of the archive", len, limits.metadata_bytes)?;
    let Some(span) = Span::at(start, len).filter(|span| span.end() <= source.len()) else { return Ok(None) };
    let bytes = source.read_at(span)?;
    let mut members = BTreeMap::new();
    let mut at = 0;
    for _ in 0..count {
        let field = |offset: usize, len: usize| number(&bytes, at + offset, len);
        if field(0, 4) != Some(0x0201_4b50) {
            return Ok(None);
        }
        let numbers = (field(10, 2), field(16, 4), field(20, 4), field(24, 4), field(42, 4));
        let (Some(method), Some(crc), Some(stored), Some(len), Some(header)) = numbers else {
            return Ok(None);
        };
        let lens = (field(28, 2), field(30, 2), field(32, 2));
        let (Some(name_len), Some(extra_len), Some(comment_len)) = lens else { return Ok(None) };
        let fit = |number: u64| usize::try_from(number).unwrap_or(usize::MAX / 4);
        let names = at + 46..at + 46 + fit(name_len);
        let extra = bytes.get(names.end..names.end + fit(extra_len));
        let (Some(name), Some(extra)) = (bytes.get(names.clone()), extra) else { return Ok(None) };
        let mut member = Member {
            header,
            stored,
            len,
            method: u16::try_from(method).unwrap_or(0),
            crc: u32::try_from(crc).unwrap_or(0),
        };
        large_fields(extra, &mut member);
        if let Ok(name) = std::str::from_utf8(name) {
            members.insert(name.to_owned(), member);
        }
        at = names.end + fit(extra_len) + fit(comment_len);
    }
    Ok(Some(members))
}

/// Replaces fields of 32 bits by those of the extra field for large members.
fn large_fields(mut extra: &[u8], member: &mut Member) {
    while let (Some(id), Some(len)) = (number(extra, 0, 2), number(extra, 2, 2)) {
        let len = usize::try_from(len).unwrap_or(0);
        let Some(body) = extra.get(4..4 + len) else { return };
        if id == 1 {
            let mut at = 0;
            for slot in [&mut member.len, &mut member.stored, &mut member.header] {
                if *slot == u64::from(u32::MAX) {
                    *slot = number(body, at, 8).unwrap_or(*slot);
                    at += 8;
                }
            }
        }
        extra = &extra[4 + len..];
    }
}
