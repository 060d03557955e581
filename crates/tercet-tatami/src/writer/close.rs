//! Finishing a file: runs, dictionaries, filters, footer, trailer and header.

use std::io::SeekFrom;
use std::sync::Arc;

use tercet_core::Sink;
use tercet_core::checksum::crc32c;

use super::chunk::{ColumnWriter, PageDictionary};
use super::compress::Compressor;
use super::provenance::Stamp;
use super::{Writer, Written};
use crate::error::ErrorKind;
use crate::page::encode::ValueDictionary;
use crate::schema::Type;
use crate::search::access::BlockSums;
use crate::search::{self, inverted::Part};
use crate::wire::footer::{
    AccessSection, BlobColumn, DictionaryEntry, Features, Footer, Inverted, Resource, Run, Statistics,
};
use crate::wire::header::{Header, MAGIC};
use crate::wire::ids::{Codec, DictionaryKind, Encoding, Kind, Role, file_flags, offers, requires};
use crate::wire::page::PageHeader;

/// Format version of written files.
const VERSION: (u16, u16) = (1, 1);

/// The checksum algorithm of the header: CRC-32C.
const CRC32C: u8 = 1;

/// Finishes a file after its row groups.
pub(super) fn close<S: Sink>(mut writer: Writer<S>) -> Result<Written<S::Output>, ErrorKind> {
    let mut features = Features { offers: offers::HEADER_SUMS | offers::FLOAT_ZONES, ..Features::default() };
    let mut dictionaries = Vec::new();
    let blobs = writer.put_blobs(&mut dictionaries, &mut features)?;
    writer.put_resources(&mut dictionaries, &mut features)?;
    writer.put_filters()?;
    let inverted = writer.inverted.take().map(|inverted| writer.put_inverted(inverted)).transpose()?;
    let (inverted, records) = inverted.unzip();
    let (access, positions, page_headers) = records.unwrap_or_default();
    features.requires |= writer.columns.iter().fold(0, |all, column| all | column.requires);
    let requires = features.requires;
    let footer = Footer {
        schema: Arc::new(writer.schema.clone()),
        groups: std::mem::take(&mut writer.groups),
        blobs,
        dictionaries,
        indexes: std::mem::take(&mut writer.indexes),
        inverted,
        access,
        positions,
        page_headers,
        pairs: writer.pairs(),
        statistics: Statistics {
            rows: writer.rows,
            raw_bytes: writer.totals.raw,
            stored_bytes: writer.totals.stored,
        },
        features: Some(features),
        unknown: Vec::new(),
    };
    let footer_offset = writer.at;
    let bytes = footer.to_bytes();
    let len = u32::try_from(bytes.len())
        .map_err(|_| ErrorKind::from(std::io::Error::other("the footer exceeds 4 GiB")))?;
    writer.write(&bytes)?;
    writer.write(&len.to_le_bytes())?;
    writer.write(&crc32c(&bytes).to_le_bytes())?;
    writer.write(MAGIC)?;
    let header = writer.header(&footer, footer_offset);
    writer.sink.seek(SeekFrom::Start(0))?;
    writer.sink.write_all(&header.to_bytes())?;
    let (rows, groups, bytes) = (writer.rows, footer.groups.len() as u64, writer.at);
    let output = writer.sink.finish()?;
    Ok(Written { output, rows, groups, bytes, requires })
}

impl<S: Sink> Writer<S> {
    /// Writes the runs of all blob columns, then their dictionaries.
    fn put_blobs(
        &mut self,
        dictionaries: &mut Vec<DictionaryEntry>,
        features: &mut Features,
    ) -> Result<Vec<BlobColumn>, ErrorKind> {
        let mut out = Vec::new();
        let mut kept = Vec::new();
        for blobs in std::mem::take(&mut self.blobs) {
            let blobs = blobs.finish()?;
            let start = self.at;
            self.at += blobs.spool.copy_to(&mut self.sink)?;
            let runs: Vec<Run> =
                blobs.runs.into_iter().map(|run| Run { offset: run.offset + start, ..run }).collect();
            self.totals.raw += runs.iter().map(|run| run.raw_bytes).sum::<u64>();
            self.totals.stored += runs.iter().map(|run| run.stored_bytes).sum::<u64>();
            if blobs.codec == Codec::Lz4 && !runs.is_empty() {
                features.requires |= requires::LZ4;
            }
            kept.push(blobs.dictionary);
            out.push(BlobColumn { column: blobs.column as u64, dictionary: 0, codec: blobs.codec, runs });
        }
        for (blob, dictionary) in out.iter_mut().zip(kept) {
            let Some((kind, content)) = dictionary else { continue };
            if kind == DictionaryKind::Trained {
                features.requires |= requires::TRAINED;
            }
            blob.dictionary = self.put_dictionary(kind, &content, dictionaries)?;
        }
        Ok(out)
    }

    /// Writes the used page dictionaries, column by column.
    fn put_resources(
        &mut self,
        dictionaries: &mut Vec<DictionaryEntry>,
        features: &mut Features,
    ) -> Result<(), ErrorKind> {
        for column in 0..self.columns.len() {
            for (role, kind, payload) in resources(&self.columns[column]) {
                let dictionary = self.put_dictionary(kind, &payload, dictionaries)?;
                features.resources.push(Resource { column: column as u64, role, dictionary });
            }
        }
        Ok(())
    }

    /// Writes a dictionary record and returns its number.
    fn put_dictionary(
        &mut self,
        kind: DictionaryKind,
        payload: &[u8],
        dictionaries: &mut Vec<DictionaryEntry>,
    ) -> Result<u64, ErrorKind> {
        let (codec, stored) = Compressor::new(&self.options).record(payload)?;
        let short = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
        let header = PageHeader {
            kind: Kind::Dictionary,
            encoding: Encoding::from_id(kind.id()),
            codec,
            marked: false,
            flags: 0,
            values: 1,
            raw_bytes: short(payload.len()),
            stored_bytes: short(stored.len()),
            nulls: 0,
            first_row: 0,
            payload_crc: crc32c(&stored),
        };
        dictionaries.push(DictionaryEntry { offset: self.at, raw_bytes: payload.len() as u64 });
        self.totals.raw += payload.len() as u64;
        self.totals.stored += stored.len() as u64;
        self.write(&header.to_bytes())?;
        self.write(&stored)?;
        Ok(dictionaries.len() as u64)
    }

    fn put_filters(&mut self) -> Result<(), ErrorKind> {
        let start = self.at;
        let spool = std::mem::replace(&mut self.blooms, super::Spool::new(None));
        self.at += spool.copy_to(&mut self.sink)?;
        self.indexes.iter_mut().for_each(|entry| entry.offset += start);
        Ok(())
    }

    /// Writes the records of the inverted region.
    fn put_inverted(
        &mut self,
        inverted: search::inverted::Inverted,
    ) -> Result<(Inverted, OwnRecords), ErrorKind> {
        if inverted.documents > self.rows {
            return Err(ErrorKind::from(std::io::Error::other("postings of documents that do not exist")));
        }
        let mut sums: [Vec<u8>; 3] = Default::default();
        let (term_dict_offset, term_dict_length, sum) = self.put_index(inverted.dictionary)?;
        sums[0] = sum;
        let (postings_offset, postings_length, sum) = self.put_index(inverted.postings)?;
        sums[1] = sum;
        let (skips_offset, skips_length, sum) = self.put_index(inverted.skips)?;
        sums[2] = sum;
        let mut entry = Inverted {
            term_dict_offset,
            term_dict_length,
            postings_offset,
            postings_length,
            skips_offset,
            skips_length,
            num_terms: inverted.terms,
            num_docs: self.rows,
            live_offset: 0,
            live_length: 0,
        };
        let mut access = None;
        if let Some(lengths) = inverted.lengths.filter(|_| self.options.is_native()) {
            let (payload, root) = inverted.access.finish(&entry, &inverted.index, lengths, &sums)?;
            let root_crc = crc32c(&payload[..root]);
            let (offset, length, _) = self.put_index(Part::from_memory(payload))?;
            access = Some(AccessSection { offset, length, root_length: root as u64, root_crc });
        }
        let mut positions = None;
        if let Some(written) = inverted.positions.filter(|_| self.options.is_native()) {
            let (payload, root_length, root_crc) = written.into_record(&entry)?;
            let (offset, length, _) = self.put_index(payload)?;
            positions = Some(AccessSection { offset, length, root_length, root_crc });
        }
        let mut page_headers = None;
        if let Some(headers) = self.page_headers.take().filter(|headers| !headers.is_empty()) {
            let (offset, length, _) = self.put_index(Part::from_memory(headers))?;
            page_headers = Some(AccessSection { offset, length, ..AccessSection::default() });
        }
        // Last: a later deletion replaces it.
        if let Some(live) = inverted.live {
            (entry.live_offset, entry.live_length, _) = self.put_index(Part::from_memory(live.to_bytes()))?;
        }
        Ok((entry, (access, positions, page_headers)))
    }

    /// Writes an index record and returns its offset, its payload length and the checksums of its blocks.
    fn put_index(&mut self, payload: Part) -> Result<(u64, u64, Vec<u8>), ErrorKind> {
        let (offset, len) = (self.at, payload.len());
        let Ok(bytes) = u32::try_from(len) else {
            let error = std::io::Error::other("a record of the inverted region exceeds 4 GiB");
            return Err(ErrorKind::from(error));
        };
        let header = PageHeader::index(bytes, payload.crc());
        self.write(&header.to_bytes())?;
        let mut summed = Summed { sink: &mut self.sink, sums: BlockSums::default() };
        payload.copy_to(&mut summed)?;
        let sums = summed.sums.finish();
        self.at += len;
        Ok((offset, len, sums))
    }

    fn pairs(&self) -> Vec<(String, String)> {
        let version = format!("{}.{}", VERSION.0, VERSION.1);
        let mut out = vec![("tatami.version".to_owned(), version)];
        if let Some(key) = self.schema.sort_key() {
            out.push(("tatami.sort_key".to_owned(), self.schema.fields()[key].name.to_string()));
        }
        out.extend(self.options.metadata.iter().cloned());
        out
    }

    fn header(&self, footer: &Footer, footer_offset: u64) -> Header {
        let has_blobs = self.schema.fields().iter().any(|field| field.kind == Type::BlobRef);
        let flags = [
            (self.schema.sort_key().is_some(), file_flags::SORTED),
            (has_blobs, file_flags::HAS_BLOB_REGION),
            (!footer.dictionaries.is_empty(), file_flags::HAS_DICT_REGION),
            (!footer.indexes.is_empty() || footer.inverted.is_some(), file_flags::HAS_INDEX_REGION),
            (footer.inverted.is_some(), file_flags::ROLE_SEARCH_SEG | file_flags::BLOCK_TREE),
        ];
        let default_codec = if self.options.codec == Codec::Lz4 { Codec::Lz4 } else { Codec::Zstd };
        let stamp = Stamp::new(&self.options);
        Header {
            major: VERSION.0,
            minor: VERSION.1,
            flags: flags.into_iter().filter_map(|(set, flag)| set.then_some(flag)).sum(),
            checksum: CRC32C,
            default_codec,
            page_size_hint: self.options.hint(),
            uuid: stamp.uuid,
            rows: self.rows,
            footer_offset,
            created_millis: stamp.created_millis,
            creator_id: stamp.creator_id,
        }
    }
}

/// The access index, the positions and the copied page headers.
type OwnRecords = (Option<AccessSection>, Option<AccessSection>, Option<AccessSection>);

/// A sink that computes the checksums of blocks.
struct Summed<'a, S> {
    sink: &'a mut S,
    sums: BlockSums,
}

impl<S: std::io::Write> std::io::Write for Summed<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.sums.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.sink.flush()
    }
}

/// The dictionaries of a column, in file order.
fn resources(column: &ColumnWriter) -> Vec<(Role, DictionaryKind, Vec<u8>)> {
    let mut out = Vec::new();
    if let Some(payload) = column.tools.values.as_ref().and_then(ValueDictionary::payload) {
        out.push((Role::Values, DictionaryKind::Values, payload));
    }
    if column.requires & requires::FSST != 0
        && let Some(payload) = column.tools.text.payload()
    {
        out.push((Role::Symbols, DictionaryKind::Symbols, payload));
    }
    if let PageDictionary::Kept { dictionary, used: true } = &column.page_dictionary {
        out.push((Role::Pages, DictionaryKind::Trained, dictionary.bytes().to_vec()));
    }
    out
}
