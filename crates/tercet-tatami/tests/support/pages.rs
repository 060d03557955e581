//! The records of a file, read through the public tables.

use std::sync::Arc;

use tercet_codec::bytes::{lz4, zstd};
use tercet_core::source::Memory;
use tercet_tatami::format::Chunk;
use tercet_tatami::format::PageHeader;
use tercet_tatami::format::{Codec, page_flags};
use tercet_tatami::{File, ReadOptions, Region};

/// The length of the header of a record.
const HEADER_LEN: u64 = 32;

/// A file in memory, and its bytes.
pub(crate) struct Bytes {
    pub(crate) bytes: Vec<u8>,
    pub(crate) file: File,
}

/// A record and its payload, decompressed unless that needs a dictionary.
pub(crate) struct Record {
    pub(crate) header: PageHeader,
    pub(crate) stored: Vec<u8>,
    pub(crate) payload: Option<Vec<u8>>,
}

impl Bytes {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let source = Arc::new(Memory::new("test", bytes.clone()));
        let file = File::from_source(source, ReadOptions::new()).unwrap();
        Self { bytes, file }
    }

    pub(crate) fn record(&self, offset: u64) -> Record {
        let at = usize::try_from(offset).unwrap();
        let region = Region::Header;
        let guarded = self.file.footer().features.is_some();
        let header = PageHeader::parse(region, offset, &self.bytes[at..at + 32], guarded).unwrap();
        let stored = self.bytes[at + 32..at + 32 + header.stored_bytes as usize].to_vec();
        assert_eq!(tercet_core::checksum::crc32c(&stored), header.payload_crc);
        let mut coded = &stored[..];
        if header.has(page_flags::BOUNDS) {
            assert_eq!(&coded[..4], [0x50, 0x2a, 0x4d, 0x18]);
            let len = u32::from_le_bytes(coded[4..8].try_into().unwrap()) as usize;
            coded = &coded[8 + len..];
        }
        let mut raw = vec![0; header.raw_bytes as usize];
        let payload = match header.codec {
            Codec::None => Some(coded.to_vec()),
            Codec::Zstd => {
                zstd::decode(coded, &mut raw).unwrap();
                Some(raw)
            }
            Codec::Lz4 => {
                lz4::block::decode(coded, &mut raw).unwrap();
                Some(raw)
            }
            _ => None,
        };
        Record { header, stored, payload }
    }

    pub(crate) fn pages(&self, chunk: &Chunk) -> Vec<Record> {
        let mut at = chunk.offset;
        let mut out = Vec::new();
        for _ in 0..chunk.pages {
            let record = self.record(at);
            at += HEADER_LEN + u64::from(record.header.stored_bytes);
            out.push(record);
        }
        out
    }

    /// The pages of a column in all groups.
    pub(crate) fn column_pages(&self, column: usize) -> Vec<Record> {
        self.file.footer().groups.iter().flat_map(|group| self.pages(&group.chunks[column])).collect()
    }
}
