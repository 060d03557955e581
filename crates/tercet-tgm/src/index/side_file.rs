//! The index in a file of its own, beside the file that it lists: `run.tgm.idx`.
//!
//! It is the message of an index with the length and a hash of the listed file, by which a stale one is recognized.

#[cfg(any(unix, windows))]
use std::io::{Seek, Write};
#[cfg(any(unix, windows))]
use std::path::{Path, PathBuf};

use tercet_core::checksum::Xxh3;
use tercet_core::{ByteSource, CommonError, Span};

use super::find::{MessageEnd, check_complete};
use super::{IndexError, IndexLookup, MARK, MessageIndex};
use crate::error::ErrorKind;
use crate::options::ReadOptions;
#[cfg(any(unix, windows))]
use crate::{encode::Provenance, index::IndexBuilder, value::Value};

/// The keys of the mark: the length of the listed file, and a hash of its first and last bytes.
const FILE_BYTES: &str = "file_bytes";
const FILE_HASH: &str = "file_hash";
/// The number of first and of last bytes that are hashed.
const HASHED: u64 = 4 << 10;

/// The path of the index file of a file: `run.tgm.idx` for `run.tgm`.
#[cfg(any(unix, windows))]
pub fn index_file_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".idx");
    name.into()
}

/// The bytes of a file that an index lists.
#[cfg(any(unix, windows))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coverage {
    bytes: u64,
    hash: u64,
}

#[cfg(any(unix, windows))]
impl Coverage {
    /// All bytes of a file.
    pub(crate) fn all(source: &dyn ByteSource) -> Result<Self, ErrorKind> {
        Ok(Self { bytes: source.len(), hash: hash(source, source.len())? })
    }

    /// Writes an index file.
    pub(crate) fn write<W: Write + Seek>(
        self,
        index: IndexBuilder,
        sink: W,
        provenance: Provenance,
    ) -> Result<(), ErrorKind> {
        let hash = Value::from(format!("{:016x}", self.hash).as_str());
        let more = [(FILE_BYTES.to_owned(), Value::from(self.bytes)), (FILE_HASH.to_owned(), hash)];
        index.write_with(sink, provenance, more.into())
    }
}

/// A hash of the first and the last bytes before `end`.
fn hash(source: &dyn ByteSource, end: u64) -> Result<u64, ErrorKind> {
    let mut hash = Xxh3::new();
    hash.update(&end.to_le_bytes());
    let len = end.min(HASHED);
    for start in [0, end - len] {
        hash.update(&source.read_at(Span::at(start, len).unwrap_or(Span::empty(start)))?);
    }
    Ok(hash.digest())
}

/// The index of a file from its index file, if it is not stale.
pub(crate) fn read_side_file(
    side_file: &dyn ByteSource,
    source: &dyn ByteSource,
    options: &ReadOptions,
) -> Result<IndexLookup, ErrorKind> {
    let end = Span::empty(source.len());
    let read = |(index, covered): (MessageIndex, u64)| {
        if covered != source.len() {
            return Err(IndexError::Stale { covered, len: source.len() });
        }
        check_complete(source, index)
    };
    match parse(side_file, source, options).and_then(read) {
        Ok(index) => Ok(IndexLookup::Found(Box::new(index))),
        // An I/O error does not make the index invalid.
        Err(IndexError::Message(fault)) if matches!(*fault, ErrorKind::Common(CommonError::Source(_))) => {
            Err(*fault)
        }
        Err(error) => Ok(IndexLookup::Rejected(end, error)),
    }
}

/// The index of the first bytes of a file, and their number, from an index file. `None` if it belongs to other bytes.
#[cfg(any(unix, windows))]
pub(crate) fn covered(
    side_file: &dyn ByteSource,
    source: &dyn ByteSource,
    options: &ReadOptions,
) -> Option<(MessageIndex, u64)> {
    parse(side_file, source, options).ok()
}

fn parse(
    side_file: &dyn ByteSource,
    source: &dyn ByteSource,
    options: &ReadOptions,
) -> Result<(MessageIndex, u64), IndexError> {
    let fault = |error: ErrorKind| IndexError::Message(Box::new(error));
    let missing = |what| IndexError::Missing { what };
    let message = MessageEnd::read(side_file, side_file.len()).map_err(|error| fault(error.into()))?;
    let message = message.filter(|message| message.message.start() == 0).ok_or(missing("message"))?;
    if !message.is_marked(side_file, options).map_err(fault)? {
        return Err(missing("version"));
    }
    let message = message.open(side_file, options)?;
    let mark = message.metadata().extra.get(MARK);
    let covered = mark.and_then(|mark| mark.get(FILE_BYTES)?.as_u64()).ok_or(missing(FILE_BYTES))?;
    let stored = mark.and_then(|mark| mark.get(FILE_HASH)?.as_text()).ok_or(missing(FILE_HASH))?;
    if covered > source.len() {
        return Err(IndexError::Stale { covered, len: source.len() });
    }
    if stored != format!("{:016x}", hash(source, covered).map_err(fault)?) {
        return Err(IndexError::OtherFile);
    }
    Ok((MessageIndex::read(Span::empty(covered), message)?, covered))
}
