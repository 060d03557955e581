//! Building of the message index.

use std::collections::HashMap;
use std::io::{Seek, Write};

use tercet_codec::bytes::zstd;
use tercet_core::Span;

use super::{CODES, ENTRY, GAPS, IndexError, LENGTHS, MARK, MessageIndex, NOT_STORED, VALUES, VERSION};
use crate::cbor;
use crate::descriptor::DataObjectDescriptor;
use crate::encode::{EncodeOptions, Provenance, StreamingEncoder};
use crate::error::{Error, ErrorKind};
use crate::metadata::{EXTRA, Entry, GlobalMetadata, RESERVED};
use crate::value::Value;
use tercet_core::DType;

/// The maximum number of keys: their description must fit into the last bytes of the index.
pub const MAX_KEYS: usize = 64;
/// The maximum length of a key in bytes.
const MAX_KEY_LEN: usize = 128;
/// The maximum length of a stored value as CBOR.
pub(super) const MAX_VALUE_LEN: usize = 256;
/// The maximum depth of nested maps in which keys are found.
const MAX_KEY_DEPTH: usize = 4;

/// The keys to index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexKeys {
    /// All keys whose values are not maps, up to [`MAX_KEYS`], in order of first occurrence.
    All,
    /// These keys, as in [`GlobalMetadata::get`].
    Only(Vec<String>),
}

/// Builds the index of a file.
#[derive(Debug)]
pub struct IndexBuilder {
    finds_keys: bool,
    columns: Vec<Column>,
    lengths: Vec<u64>,
    gaps: Vec<u64>,
    /// The end of the last message.
    end: u64,
}

#[derive(Debug)]
struct Column {
    key: String,
    codes: Vec<u32>,
    values: Vec<Value>,
    /// The code of each value, by its CBOR.
    known: HashMap<Vec<u8>, u32>,
}

impl Column {
    /// A column for a key that the first `messages` messages do not have.
    fn new(key: &str, messages: usize) -> Self {
        Self { key: key.to_owned(), codes: vec![0; messages], values: Vec::new(), known: HashMap::new() }
    }

    fn push(&mut self, value: Option<&Value>) {
        let code = value.map_or(0, |value| self.code(value));
        self.codes.push(code);
    }

    fn code(&mut self, value: &Value) -> u32 {
        let cbor = cbor::encode(value);
        let next = u32::try_from(self.values.len() + 1).unwrap_or(NOT_STORED);
        if cbor.len() > MAX_VALUE_LEN || next == NOT_STORED {
            return NOT_STORED;
        }
        *self.known.entry(cbor).or_insert_with(|| {
            self.values.push(value.clone());
            next
        })
    }
}

impl IndexBuilder {
    /// An empty index.
    pub fn new(keys: &IndexKeys) -> Self {
        let columns = match keys {
            IndexKeys::All => Vec::new(),
            IndexKeys::Only(keys) => {
                let mut columns: Vec<Column> = Vec::new();
                for key in keys {
                    if columns.iter().all(|column| column.key != *key) {
                        columns.push(Column::new(key, 0));
                    }
                }
                columns
            }
        };
        let finds_keys = *keys == IndexKeys::All;
        Self { finds_keys, columns, lengths: Vec::new(), gaps: Vec::new(), end: 0 }
    }

    /// A builder that continues an existing index. One of an earlier version is not continued: it has no values.
    pub fn resume(message_index: &MessageIndex) -> Result<Self, IndexError> {
        if message_index.version < VERSION {
            return Err(IndexError::Version { found: message_index.version });
        }
        let mut builder = Self::new(&IndexKeys::Only(Vec::new()));
        builder.finds_keys = message_index.has_all_keys();
        for key in message_index.keys() {
            let Some(column) = message_index.column(key)? else { continue };
            let codes = column.codes.clone();
            let known =
                column.values.iter().zip(1..).map(|(value, code)| (cbor::encode(value), code)).collect();
            let (key, values) = (key.to_owned(), column.values.clone());
            builder.columns.push(Column { key, codes, values, known });
        }
        for span in &message_index.scan.messages {
            builder.add_span(*span);
        }
        Ok(builder)
    }

    /// The number of messages.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether the index has no messages.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.key.as_str())
    }

    /// Adds the next message of the file.
    pub fn push(&mut self, span: Span, metadata: &GlobalMetadata) {
        if self.finds_keys {
            self.find_keys(metadata);
        }
        for column in &mut self.columns {
            // Objects with different values are compared one by one.
            if metadata.is_shared(&column.key) {
                column.push(metadata.get(&column.key));
            } else {
                column.codes.push(NOT_STORED);
            }
        }
        self.add_span(span);
    }

    fn add_span(&mut self, span: Span) {
        self.gaps.push(span.start().saturating_sub(self.end));
        self.lengths.push(span.len());
        self.end = span.end();
    }

    fn find_keys(&mut self, metadata: &GlobalMetadata) {
        let mut found = Vec::new();
        for entry in metadata.base.iter().chain([&metadata.extra]) {
            for (key, value) in entry.iter().filter(|(key, _)| *key != RESERVED && is_step(key)) {
                leaves(key, value, 1, &mut found);
            }
        }
        for key in found {
            // The key was a map in earlier messages, which the index would report as missing.
            let is_inside = |other: &str| other.strip_prefix(&*key).is_some_and(|rest| rest.starts_with('.'));
            let is_new = self.columns.iter().all(|column| column.key != key && !is_inside(&column.key));
            // A name that looks like a section is not looked up in the objects.
            let is_section = [EXTRA, "extra", "version"].contains(&key.split('.').next().unwrap_or_default());
            if is_new && !is_section && self.columns.len() < MAX_KEYS {
                self.columns.push(Column::new(&key, self.lengths.len()));
            }
        }
    }

    /// Writes the index after the messages.
    pub fn write<W: Write + Seek>(self, sink: W, provenance: Provenance) -> Result<(), ErrorKind> {
        self.write_with(sink, provenance, Entry::new())
    }

    /// Writes the index with more entries in its mark.
    pub(super) fn write_with<W: Write + Seek>(
        self,
        sink: W,
        provenance: Provenance,
        more: Entry,
    ) -> Result<(), ErrorKind> {
        let number = |number: usize| Value::from(number as u64);
        let mut mark: Entry = [
            ("version".to_owned(), Value::from(VERSION)),
            ("messages".to_owned(), number(self.lengths.len())),
            ("all_keys".to_owned(), Value::from(self.finds_keys)),
        ]
        .into();
        mark.extend(more);
        let extra = [(MARK.to_owned(), Value::from(mark))].into();
        let metadata = GlobalMetadata { extra, ..GlobalMetadata::default() };
        let options = EncodeOptions::new().with_provenance(provenance);
        let mut encoder = StreamingEncoder::new(sink, &metadata, options).map_err(Error::into_kind)?;
        let mut put = |what: Entry, dtype: DType, bytes: &[u8]| -> Result<(), Error> {
            encoder.write_preceder([(ENTRY.to_owned(), Value::from(what))].into())?;
            let width = u64::from(dtype.bits() / 8);
            let descriptor = DataObjectDescriptor::new(dtype, [bytes.len() as u64 / width]);
            encoder.write_object(&compressed(descriptor, width), bytes)
        };
        let column = |name: &str| ("column".to_owned(), Value::from(name));
        for (name, numbers) in [(LENGTHS, &self.lengths), (GAPS, &self.gaps)] {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            put([column(name)].into(), DType::U64, &bytes).map_err(Error::into_kind)?;
        }
        for Column { key, codes, values, .. } in self.columns {
            let key = || ("key".to_owned(), Value::from(key.as_str()));
            let bytes: Vec<u8> = codes.iter().flat_map(|code| code.to_le_bytes()).collect();
            put([column(CODES), key()].into(), DType::U32, &bytes).map_err(Error::into_kind)?;
            put([column(VALUES), key()].into(), DType::U8, &cbor::encode(&Value::Array(values)))
                .map_err(Error::into_kind)?;
        }
        encoder.finish_with_length().map_err(Error::into_kind)?;
        Ok(())
    }
}

/// Rejects keys that an index cannot store.
#[cfg(any(unix, windows))]
pub(crate) fn check_keys(keys: &IndexKeys) -> Result<(), String> {
    let IndexKeys::Only(keys) = keys else { return Ok(()) };
    if keys.len() > MAX_KEYS {
        return Err(format!("{} keys, but an index has room for {MAX_KEYS}", keys.len()));
    }
    match keys.iter().find(|key| key.is_empty() || key.len() > MAX_KEY_LEN) {
        Some(key) => Err(format!("a key of {} bytes, but 1 to {MAX_KEY_LEN} are allowed", key.len())),
        None => Ok(()),
    }
}

fn compressed(descriptor: DataObjectDescriptor, width: u64) -> DataObjectDescriptor {
    if !zstd::is_built_in() {
        return descriptor;
    }
    let descriptor = descriptor.with_compression("zstd").with_param("zstd_level", 3);
    match width {
        1 => descriptor,
        width => descriptor.with_filter("shuffle").with_param("shuffle_element_size", width),
    }
}

/// The paths of all values that are not maps. An empty map is a value.
fn leaves(path: &str, value: &Value, depth: usize, found: &mut Vec<String>) {
    let before = found.len();
    if let Value::Map(pairs) = value
        && depth < MAX_KEY_DEPTH
    {
        for (key, value) in pairs {
            if let Some(key) = key.as_text().filter(|key| is_step(key)) {
                leaves(&format!("{path}.{key}"), value, depth + 1, found);
            }
        }
    }
    if found.len() == before && path.len() <= MAX_KEY_LEN {
        found.push(path.to_owned());
    }
}

/// Whether a name can be a component of a path: it must not contain a dot.
fn is_step(name: &str) -> bool {
    !name.is_empty() && !name.contains('.')
}
