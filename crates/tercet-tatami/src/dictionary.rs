//! Dictionaries: compression dictionaries, value dictionaries and symbol tables.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use tercet_codec::bytes::zstd;
use tercet_codec::strings::fsst::Symbols;
use tercet_core::limits::check_limit;
use tercet_core::{FieldReader, Reason, Span};

use crate::block_codec::fault;
use crate::column::Values;
use crate::error::ErrorKind;
use crate::file::{Inner, ReadOptions, check_dictionary, section_fault};
use crate::page::decode;
use crate::region::Region;
use crate::schema::{Field, Type};
use crate::wire::cursor::Varints as _;
use crate::wire::footer::{FEATURES, Footer};
use crate::wire::ids::{DictionaryKind, Kind, Role};

/// The dictionaries of a file, loaded on first use.
#[derive(Debug)]
pub(crate) struct Dictionaries {
    /// Dictionary number by column and role.
    uses: HashMap<(u64, u8), usize>,
    loaded: Vec<OnceLock<Loaded>>,
    /// Held while a dictionary is loaded, so that concurrent threads load it once.
    loading: Mutex<()>,
}

/// A loaded dictionary.
#[derive(Clone, Debug)]
enum Loaded {
    Compression(Arc<zstd::Dictionary>),
    Values(Arc<Values>),
    Symbols(Arc<Symbols>),
}

impl Dictionaries {
    pub(crate) fn new(footer: &Footer) -> Result<Self, ErrorKind> {
        let mut uses = HashMap::new();
        for resource in footer.features.iter().flat_map(|features| &features.resources) {
            if matches!(resource.role, Role::Unknown(_)) {
                continue;
            }
            let index = check_dictionary(footer, resource.dictionary)?;
            if resource.column >= footer.schema.len() as u64 {
                let reason = Reason::OutOfRange { found: resource.column, allowed: "the number of a column" };
                return Err(section_fault(FEATURES, "column_id", reason));
            }
            uses.insert((resource.column, resource.role.id()), index);
        }
        let loaded = footer.dictionaries.iter().map(|_| OnceLock::new()).collect();
        Ok(Self { uses, loaded, loading: Mutex::default() })
    }

    fn position(&self, column: usize, role: Role) -> Option<usize> {
        self.uses.get(&(column as u64, role.id())).copied()
    }
}

impl Inner {
    /// The value dictionary of a column.
    pub(crate) fn value_dictionary(
        &self,
        column: usize,
        site: (Region, u64),
    ) -> Result<Arc<Values>, ErrorKind> {
        let index = self.resource(column, Role::Values, site)?;
        match self.dictionary(index, Some(self.field(column)))? {
            Loaded::Values(values) => Ok(values),
            _ => Err(wrong_kind(index, self, "2 (values)")),
        }
    }

    /// The symbol table of a column.
    pub(crate) fn symbols(&self, column: usize, site: (Region, u64)) -> Result<Arc<Symbols>, ErrorKind> {
        let index = self.resource(column, Role::Symbols, site)?;
        match self.dictionary(index, Some(self.field(column)))? {
            Loaded::Symbols(symbols) => Ok(symbols),
            _ => Err(wrong_kind(index, self, "7 (symbols)")),
        }
    }

    /// The compression dictionary of the pages of a column.
    pub(crate) fn page_dictionary(
        &self,
        column: usize,
        site: (Region, u64),
    ) -> Result<Arc<zstd::Dictionary>, ErrorKind> {
        let index = self.resource(column, Role::Pages, site)?;
        self.compression_dictionary(index)
    }

    /// A compression dictionary.
    pub(crate) fn compression_dictionary(&self, index: usize) -> Result<Arc<zstd::Dictionary>, ErrorKind> {
        match self.dictionary(index, None)? {
            Loaded::Compression(dictionary) => Ok(dictionary),
            _ => Err(wrong_kind(index, self, "0 (content) or 1 (trained)")),
        }
    }

    fn resource(
        &self,
        column: usize,
        role: Role,
        (region, offset): (Region, u64),
    ) -> Result<usize, ErrorKind> {
        self.dictionaries.position(column, role).ok_or_else(|| {
            let rule = "a page that needs a dictionary belongs to a column that has one";
            fault(region, "encoding", offset, 1, Reason::Unexpected { rule })
        })
    }

    fn dictionary(&self, index: usize, field: Option<&Field>) -> Result<Loaded, ErrorKind> {
        let Some(slot) = self.dictionaries.loaded.get(index) else {
            let reason = Reason::OutOfRange { found: index as u64, allowed: "the number of a dictionary" };
            return Err(section_fault(FEATURES, "dict_index", reason));
        };
        if let Some(loaded) = slot.get() {
            return Ok(loaded.clone());
        }
        let _turn = self.dictionaries.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = slot.get() {
            return Ok(loaded.clone());
        }
        let loaded = self.load_dictionary(index, field)?;
        Ok(slot.get_or_init(|| loaded).clone())
    }

    /// The payload, kind and byte range of a dictionary record.
    pub(crate) fn dictionary_payload(
        &self,
        index: usize,
    ) -> Result<(DictionaryKind, Bytes, Span), ErrorKind> {
        let entry = self.footer.dictionaries[index];
        let region = dictionary_region(index);
        let record = self.record(region, entry.offset, Kind::Dictionary)?;
        let raw = u64::from(record.header.raw_bytes);
        if raw != entry.raw_bytes {
            let because = "the length in the footer";
            let reason = Reason::Mismatch { found: raw, expected: entry.raw_bytes, because };
            return Err(fault(region, "uncompressed_size", entry.offset + 8, 4, reason));
        }
        let kind = DictionaryKind::from_id(record.header.encoding.id()).ok_or_else(|| {
            let allowed = "0, 1, 2 or 7";
            let reason = Reason::OutOfRange { found: record.header.encoding.id().into(), allowed };
            fault(region, "encoding", entry.offset + 1, 1, reason)
        })?;
        let payload = self.decompress(region, record.span, &record.stored, record.header.codec, raw, None)?;
        Ok((kind, payload, record.span))
    }

    fn load_dictionary(&self, index: usize, field: Option<&Field>) -> Result<Loaded, ErrorKind> {
        let (kind, payload, span) = self.dictionary_payload(index)?;
        let region = dictionary_region(index);
        let codec = |error| ErrorKind::Codec { region, span, error: Box::new(error) };
        Ok(match kind {
            DictionaryKind::Raw => Loaded::Compression(Arc::new(zstd::Dictionary::raw(payload.to_vec()))),
            DictionaryKind::Trained => {
                Loaded::Compression(Arc::new(zstd::Dictionary::trained(payload.to_vec()).map_err(codec)?))
            }
            DictionaryKind::Symbols => {
                Loaded::Symbols(Arc::new(parse_symbols(region, span.start(), &payload)?))
            }
            DictionaryKind::Values => {
                let Some(field) = field else { return Err(wrong_kind(index, self, "0 or 1")) };
                let values = parse_values(region, span, &payload, field.scalar(), &self.options)?;
                Loaded::Values(Arc::new(values))
            }
        })
    }
}

pub(crate) fn dictionary_region(index: usize) -> Region {
    Region::Dictionary { index: u32::try_from(index).unwrap_or(u32::MAX) }
}

fn wrong_kind(index: usize, inner: &Inner, allowed: &'static str) -> ErrorKind {
    let offset = inner.footer.dictionaries.get(index).map_or(0, |entry| entry.offset);
    let rule = match allowed {
        "2 (values)" => "value codes refer to a value dictionary",
        "7 (symbols)" => "symbol codes refer to a symbol table",
        _ => "payloads are compressed with content or trained dictionaries",
    };
    fault(dictionary_region(index), "encoding", offset + 1, 1, Reason::Unexpected { rule })
}

/// The values of a dictionary record: a count, then the concatenated values.
pub(crate) fn parse_values(
    region: Region,
    span: Span,
    payload: &Bytes,
    kind: Type,
    options: &ReadOptions,
) -> Result<Values, ErrorKind> {
    let mut fields = FieldReader::new(region, span.start(), payload);
    let count = fields.count("value_count", 1)?;
    // An empty string takes one byte here, but a view in memory.
    let bytes = (count as u64).saturating_mul(kind.memory_width());
    check_limit("the values of a dictionary", bytes, options.common.limits.chunk_bytes)?;
    let rest = payload.slice(payload.len() - fields.remaining()..);
    let mut values = Values::empty(&Field::new("values", kind));
    decode::plain(&mut values, kind, &rest, count).map_err(|error| ErrorKind::Codec {
        region,
        span,
        error: Box::new(error),
    })?;
    let strict = !options.allow_invalid_utf8;
    if let (true, Type::String, Values::Bytes(strings)) = (strict, kind, &values) {
        let bad = strings.iter().position(|text| simdutf8::basic::from_utf8(text).is_err());
        if bad.is_some() {
            return Err(fault(region, "values", span.start(), span.len(), Reason::NotUtf8));
        }
    }
    Ok(values)
}

/// The payload of a symbol table: version, count, lengths minus one in three bits each, bytes.
pub(crate) fn symbols_payload(symbols: &Symbols) -> Vec<u8> {
    let list: Vec<&[u8]> = symbols.symbols().collect();
    let mut out = vec![1, u8::try_from(list.len()).unwrap_or(u8::MAX)];
    let mut bits = vec![0; (3 * list.len()).div_ceil(8)];
    for (index, symbol) in list.iter().enumerate() {
        let len = u8::try_from(symbol.len() - 1).unwrap_or(7);
        for bit in 0..3 {
            let at = 3 * index + bit;
            bits[at / 8] |= (len >> bit & 1) << (at % 8);
        }
    }
    out.extend_from_slice(&bits);
    for symbol in list {
        out.extend_from_slice(symbol);
    }
    out
}

/// Parses a symbol table.
pub(crate) fn parse_symbols(region: Region, start: u64, payload: &[u8]) -> Result<Symbols, ErrorKind> {
    let mut fields = FieldReader::new(region, start, payload);
    let version = fields.byte("version")?;
    if version != 1 {
        return Err(fields
            .fault("version", 1, Reason::UnknownVersion { found: version.into(), known: "1" })
            .into());
    }
    let count = usize::from(fields.byte("symbol_count")?);
    let bits = fields.take("symbol_lengths", (3 * count).div_ceil(8) as u64)?;
    let bit = |at: usize| usize::from(bits[at / 8] >> (at % 8) & 1);
    let mut symbols = Vec::with_capacity(count);
    for index in 0..count {
        let len = 1 + bit(3 * index) + 2 * bit(3 * index + 1) + 4 * bit(3 * index + 2);
        symbols.push(fields.take("symbol", len as u64)?.to_vec());
    }
    fields.finish()?;
    Symbols::new(&symbols).map_err(|error| ErrorKind::Codec {
        region,
        span: Span::at(start, payload.len() as u64).unwrap_or(Span::empty(start)),
        error: Box::new(error),
    })
}
