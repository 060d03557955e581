//! Writer of column chunks: pages and bloom filter.

use std::ops::Range;

use rayon::prelude::*;
use tercet_codec::bytes::zstd::{self, Dictionary};
use tercet_core::checksum::crc32c;

use super::WriterOptions;
use super::compress::{Choice, Compressor};
use crate::column::{Column, Values};
use crate::error::ErrorKind;
use crate::page::bounds;
use crate::page::encode::{self, Encoded, Number, Tools, ValueDictionary};
use crate::prune::bloom;
use crate::schema::{Field, Type};
use crate::wire::footer::Zone;
use crate::wire::ids::{Codec, Encoding, Kind, page_flags, requires};
use crate::wire::page::PageHeader;

/// A page dictionary is tried if a column starts with this many pages …
const TRIAL_PAGES: usize = 8;
/// … of at most this size on average.
const TRIAL_PAGE_BYTES: usize = 32 << 10;
/// Maximum size of a page dictionary.
const PAGE_DICTIONARY_BYTES: usize = 16 << 10;

/// The shared state of the pages of a column, in all row groups.
#[derive(Debug)]
pub(super) struct ColumnWriter {
    pub(super) field: Field,
    pub(super) tools: Tools,
    pub(super) page_dictionary: PageDictionary,
    /// Features required by the pages so far.
    pub(super) requires: u64,
    /// Whether the value dictionary has been compared with the other encodings.
    is_proven: bool,
}

/// The compression dictionary of pages.
#[derive(Debug)]
pub(super) enum PageDictionary {
    /// Not decided yet.
    Untried,
    /// Not worthwhile.
    Disabled,
    Kept {
        dictionary: Dictionary,
        /// Whether any page uses it.
        used: bool,
    },
}

/// Encoded pages and their compression.
type CompressedPages = (Vec<Encoded>, Vec<Choice>);

/// A compressed page.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) header: PageHeader,
    pub(super) stored: Vec<u8>,
    pub(super) zone: Option<Zone>,
}

impl ColumnWriter {
    /// `columns` is the number of columns, which share memory.
    pub(super) fn new(field: &Field, options: &WriterOptions, columns: usize) -> Self {
        let may_try = options.is_native() && options.codec == Codec::Zstd;
        Self {
            field: field.clone(),
            tools: Tools::new(field, options, columns),
            page_dictionary: if may_try { PageDictionary::Untried } else { PageDictionary::Disabled },
            requires: 0,
            is_proven: false,
        }
    }

    /// The pages of some rows: encoded sequentially, because they share a dictionary, and compressed in parallel. `is_last`:
    /// no rows follow that could use the same dictionary.
    pub(super) fn pages(
        &mut self,
        column: &Column,
        cuts: &[Range<usize>],
        options: &WriterOptions,
        is_last: bool,
    ) -> Result<Vec<Page>, ErrorKind> {
        let compressor = Compressor::new(options);
        let mut encoded = self.encode(column, cuts)?;
        let dictionary = match &self.page_dictionary {
            PageDictionary::Kept { dictionary, .. } => Some(dictionary),
            _ => None,
        };
        let mut choices = compress(compressor, &mut encoded, dictionary)?;
        if !self.is_proven
            && let Some(payload) = self.tools.values.as_ref().and_then(ValueDictionary::payload)
        {
            self.is_proven = true;
            let pages = (&encoded[..], &choices[..]);
            if let Some(other) = self.without_values(column, cuts, compressor, pages, &payload, is_last)? {
                (encoded, choices) = other;
            }
        }
        if let PageDictionary::Untried = self.page_dictionary {
            self.page_dictionary = PageDictionary::Disabled;
            if let Some((dictionary, better)) = try_dictionary(compressor, &mut encoded, &choices)? {
                self.page_dictionary = PageDictionary::Kept { dictionary, used: false };
                choices = better;
            }
        }
        let pages = encoded.into_iter().zip(choices).zip(cuts);
        Ok(pages.map(|((encoded, choice), rows)| self.page(encoded, choice, rows, options)).collect())
    }

    fn encode(&mut self, column: &Column, cuts: &[Range<usize>]) -> Result<Vec<Encoded>, ErrorKind> {
        cuts.iter().map(|rows| encode::page(&self.field, column, rows.clone(), &mut self.tools)).collect()
    }

    /// The first pages without the value dictionary, which is then dropped, if that is shorter.
    ///
    /// The encoding is chosen before compression, where a dictionary of values that hardly repeat looks better than it is.
    fn without_values(
        &mut self,
        column: &Column,
        cuts: &[Range<usize>],
        compressor: Compressor,
        (pages, choices): (&[Encoded], &[Choice]),
        payload: &[u8],
        is_last: bool,
    ) -> Result<Option<CompressedPages>, ErrorKind> {
        let raw: usize = pages.iter().map(|page| page.payload.len()).sum();
        // Few values in many rows always pay.
        let is_decided = matches!(self.page_dictionary, PageDictionary::Kept { .. });
        if compressor.codec == Codec::None || payload.len() < raw / 4 || is_decided {
            return Ok(None);
        }
        let record = compressor.record(payload)?.1.len();
        // Later row groups use the same values.
        let charge = if is_last { record } else { record / 2 };
        let with = stored_len(pages, choices) + charge;
        let values = self.tools.values.take();
        let mut other = self.encode(column, cuts)?;
        let choices = compress(compressor, &mut other, None)?;
        if stored_len(&other, &choices) < with {
            return Ok(Some((other, choices)));
        }
        self.tools.values = values;
        Ok(None)
    }

    fn page(
        &mut self,
        encoded: Encoded,
        choice: Choice,
        rows: &Range<usize>,
        options: &WriterOptions,
    ) -> Page {
        let Encoded { encoding, nulls, payload, split, bounds, .. } = encoded;
        let block = bounds
            .zone
            .as_ref()
            .filter(|_| options.writes_bounds())
            .and_then(|zone| bounds::block(zone, self.field.scalar(), bounds.has_nan));
        let flags = [
            (block.is_some(), page_flags::BOUNDS),
            (nulls > 0, page_flags::NULLS),
            (split, page_flags::SPLIT),
        ];
        let flags = flags.into_iter().filter_map(|(set, flag)| set.then_some(flag)).sum();
        let (codec, raw_bytes) = (choice.codec, payload.len());
        let mut stored = block.unwrap_or_default();
        let has_block = !stored.is_empty();
        let bytes = choice.bytes.unwrap_or(payload);
        if has_block {
            stored.extend_from_slice(&bytes);
        } else {
            stored = bytes;
        }
        let (required_features, marked) = required_features(&self.field, encoding, codec, flags);
        self.requires |= required_features;
        if let PageDictionary::Kept { used, .. } = &mut self.page_dictionary {
            *used |= codec == Codec::ZstdDict;
        }
        let header = PageHeader {
            kind: Kind::Data,
            encoding,
            codec,
            marked,
            flags,
            values: short(rows.len()),
            raw_bytes: short(raw_bytes),
            stored_bytes: short(stored.len()),
            nulls: short(nulls),
            first_row: short(rows.start),
            payload_crc: crc32c(&stored),
        };
        Page { header, stored, zone: bounds.zone }
    }
}

/// Pages have fewer than 2³² rows and bytes.
fn short(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Features required by a page, and whether it needs the mark.
fn required_features(field: &Field, encoding: Encoding, codec: Codec, flags: u8) -> (u64, bool) {
    let is_list = field.kind == Type::List;
    let split = flags & page_flags::SPLIT != 0;
    let packed_float =
        field.scalar().is_float() && !matches!(encoding, Encoding::Plain | Encoding::Dictionary);
    let bare_bounds = flags & page_flags::BOUNDS != 0 && codec == Codec::None;
    let features = [
        (encoding == Encoding::Dictionary, requires::DICTIONARY),
        (encoding == Encoding::Fsst, requires::FSST),
        (is_list, requires::LIST),
        (packed_float || split, requires::FLOAT),
        (bare_bounds, requires::BOUNDS),
    ];
    let unreadable: u64 = features.into_iter().filter_map(|(needed, bit)| needed.then_some(bit)).sum();
    let by_codec = match codec {
        Codec::Lz4 => requires::LZ4,
        Codec::ZstdDict => requires::ZSTD_DICT,
        _ => 0,
    };
    (unreadable | by_codec, unreadable != 0 && by_codec == 0)
}

fn compress(
    compressor: Compressor,
    pages: &mut [Encoded],
    dictionary: Option<&Dictionary>,
) -> Result<Vec<Choice>, ErrorKind> {
    let compress = |page: &mut Encoded| match page.compressed.take().filter(|_| dictionary.is_none()) {
        Some(known) => Ok(known),
        None => compressor.payload(&page.payload, dictionary),
    };
    pages.par_iter_mut().map(compress).collect()
}

/// The stored size of pages.
fn stored_len(pages: &[Encoded], choices: &[Choice]) -> usize {
    choices.iter().zip(pages).map(|(choice, page)| choice.stored_len(&page.payload)).sum()
}

/// A dictionary trained on the first pages of a column, if it makes them shorter.
fn try_dictionary(
    compressor: Compressor,
    pages: &mut [Encoded],
    without: &[Choice],
) -> Result<Option<(Dictionary, Vec<Choice>)>, ErrorKind> {
    let payloads: Vec<&[u8]> =
        pages.iter().map(|page| &page.payload[..]).filter(|payload| !payload.is_empty()).collect();
    let raw: usize = payloads.iter().map(|payload| payload.len()).sum();
    if payloads.len() < TRIAL_PAGES || raw >= payloads.len() * TRIAL_PAGE_BYTES {
        return Ok(None);
    }
    let Some(trained) = zstd::train(&payloads, PAGE_DICTIONARY_BYTES)? else { return Ok(None) };
    let record = compressor.record(&trained)?.1.len();
    let dictionary = Dictionary::trained(trained)?;
    let with = compress(compressor, pages, Some(&dictionary))?;
    Ok((stored_len(pages, &with) + record < stored_len(pages, without)).then_some((dictionary, with)))
}

/// The bloom filter of the non-null values of a column; `None` if there are none.
///
/// It is sized for distinct values, or, as other writers do, for all.
pub(super) fn filter(column: &Column, distinct: bool) -> Option<Vec<u8>> {
    match &column.values {
        Values::List(lists) => {
            // Elements of null rows are ignored.
            let rows = (0..column.len()).filter(|row| column.is_present(*row));
            let elements: Vec<usize> = rows.flat_map(|row| lists.range(row)).collect();
            filter_of(&lists.elements, elements.into_iter(), distinct)
        }
        _ => filter_of(column, 0..column.len(), distinct),
    }
}

fn filter_of(column: &Column, rows: impl Iterator<Item = usize> + Clone, distinct: bool) -> Option<Vec<u8>> {
    let present = rows.filter(|row| column.is_present(*row));
    let mut hashes: Vec<u32> = crate::column::each_values!(
        &column.values,
        fixed(values) => number_hashes(values, present),
        bool(values) => present.map(|row| bloom::hash(&[u8::from(values[row])])).collect(),
        bytes(values) => present.map(|row| bloom::hash(values.get(row))).collect(),
        list(_values) => return None,
    );
    if hashes.is_empty() {
        return None;
    }
    if distinct {
        hashes.sort_unstable();
        hashes.dedup();
    }
    let mut filter = bloom::Builder::new(hashes.len() as u64);
    for hash in hashes {
        filter.add(hash);
    }
    Some(filter.into_payload())
}

fn number_hashes<T: Number>(values: &[T], rows: impl Iterator<Item = usize>) -> Vec<u32> {
    use tercet_codec::ints::Integer as _;

    let hash = |row: usize| {
        let integer: T::Integer = bytemuck::cast(values[row]);
        bloom::hash(bytemuck::bytes_of(&integer.swap_if_big_endian()))
    };
    rows.map(hash).collect()
}
