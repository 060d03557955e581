//! The skeleton of a file: everything but the values of datasets, which follow it.
//!
//! The library encodes a file whose datasets have no values. The writer appends the values and then puts their addresses into
//! the headers of the datasets and the length into the superblock, with the checksums of both.

use hdf5_reader::Hdf5File;
use hdf5_reader::checksum::jenkins_lookup3;

use super::chunk_index::UNDEFINED;

/// The type of the message with the address of the values.
const LAYOUT: u8 = 8;
/// The place of the length of the file in the superblock, and the length of the superblock without its checksum.
const END_OF_FILE: usize = 28;
const SUPERBLOCK: usize = 44;

/// An encoded file without values.
#[derive(Debug)]
pub(super) struct Skeleton {
    pub(super) bytes: Vec<u8>,
}

/// A file that the library encodes in another way than expected.
type Unexpected = String;

impl Skeleton {
    /// The headers of the datasets at these paths.
    pub(super) fn headers(&self, paths: &[String]) -> Result<Vec<usize>, Unexpected> {
        let file = Hdf5File::from_bytes(&self.bytes).map_err(|error| error.to_string())?;
        let header = |path: &String| {
            let dataset = file.dataset(path).map_err(|error| format!("dataset `{path}`: {error}"))?;
            usize::try_from(dataset.address()).map_err(|error| error.to_string())
        };
        paths.iter().map(header).collect()
    }

    /// Puts the address of the values of a dataset into its header: of the index of chunks, or of contiguous values of this length.
    pub(super) fn set_layout(&mut self, header: usize, address: u64, len: u64) -> Result<(), Unexpected> {
        let wrong = || format!("the header at {header} has no layout message");
        let (layout, end) = self.layout(header).ok_or_else(wrong)?;
        let payload = self.bytes.get_mut(layout..end).ok_or_else(wrong)?;
        match payload {
            // Version 3: contiguous.
            [3, 1, rest @ ..] if rest.len() >= 16 => {
                rest[..8].copy_from_slice(&address.to_le_bytes());
                rest[8..16].copy_from_slice(&len.to_le_bytes());
            }
            // Chunked: the number of axes follows.
            [3, 2, _, rest @ ..] if rest.len() >= 8 => rest[..8].copy_from_slice(&address.to_le_bytes()),
            _ => return Err(wrong()),
        }
        let checksum = jenkins_lookup3(&self.bytes[header..end]);
        let slot = self.bytes.get_mut(end..end + 4).ok_or_else(wrong)?;
        slot.copy_from_slice(&checksum.to_le_bytes());
        Ok(())
    }

    /// The start of the layout message of an object header of version 2, and the end of its messages.
    fn layout(&self, header: usize) -> Option<(usize, usize)> {
        let bytes = self.bytes.get(header..)?;
        let flags = *bytes.get(5)?;
        // No times, no limits of attributes, no order of creation: only the width of the length.
        if !bytes.starts_with(b"OHDR\x02") || flags & !3 != 0 {
            return None;
        }
        let width = 1 << flags;
        let len = bytes.get(6..6 + width)?.iter().rev().fold(0, |len, byte| len << 8 | usize::from(*byte));
        let mut at = header.checked_add(6 + width)?;
        let end = at.checked_add(len)?;
        let mut found = None;
        while at < end {
            let [kind, low, high, _] = *self.bytes.get(at..)?.first_chunk::<4>()?;
            if kind == LAYOUT {
                found = Some(at + 4);
            }
            at += 4 + usize::from(u16::from_le_bytes([low, high]));
        }
        found.map(|layout| (layout, end))
    }

    /// Puts the length of the file into the superblock.
    pub(super) fn set_len(&mut self, len: u64) -> Result<(), Unexpected> {
        let wrong = || "another superblock than one of version 2".to_owned();
        let superblock = self.bytes.get_mut(..SUPERBLOCK + 4).ok_or_else(wrong)?;
        if superblock[8] != 2 || superblock[9..11] != [8, 8] {
            return Err(wrong());
        }
        superblock[END_OF_FILE..END_OF_FILE + 8].copy_from_slice(&len.to_le_bytes());
        let checksum = jenkins_lookup3(&superblock[..SUPERBLOCK]);
        superblock[SUPERBLOCK..].copy_from_slice(&checksum.to_le_bytes());
        Ok(())
    }

    /// Marks the values of a dataset as not stored: all have the fill value.
    pub(super) fn set_unwritten(&mut self, header: usize, len: u64) -> Result<(), Unexpected> {
        self.set_layout(header, UNDEFINED, len)
    }
}
