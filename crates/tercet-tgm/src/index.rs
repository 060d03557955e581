//! The message index of a file: positions of messages and values of their keys, stored in a message at the end.
//!
//! The index is an ordinary message, which other readers ignore. With it, two reads locate all messages of a file and
//! the values of indexed keys. The byte layout is specified in `docs/spec/tgm.md`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tercet_core::{Budget, Span};

use crate::cbor;
use crate::message::Message;
use crate::metadata::{Entry, GlobalMetadata, RESERVED};
use crate::scan::Scan;
use crate::value::Value;
use crate::wire::ids::MIN_MESSAGE;

mod build;
mod error;
mod find;
mod side_file;

#[cfg(any(unix, windows))]
pub(crate) use build::check_keys;
pub use build::{IndexBuilder, IndexKeys, MAX_KEYS};
pub use error::IndexError;
#[cfg(any(unix, windows))]
pub(crate) use find::find_last;
pub(crate) use find::{IndexLookup, find, has_mark, marked};
#[cfg(any(unix, windows))]
pub use side_file::index_file_path;
pub(crate) use side_file::read_side_file;
#[cfg(any(unix, windows))]
pub(crate) use side_file::{Coverage, covered};

/// The key in `_extra_` that marks an index.
pub(crate) const MARK: &str = "tercet_catalogue";
/// The key in `base` that describes an object of the index.
const ENTRY: &str = "catalogue";
/// The version that this library writes.
const VERSION: u64 = 2;
/// The first version. Its values are those of the first object of a message that has the key: they are not used.
const FIRST_VERSION: u64 = 1;
/// Names of the objects.
const LENGTHS: &str = "lengths";
const GAPS: &str = "gaps";
const CODES: &str = "codes";
const VALUES: &str = "values";

/// The maximum length of the head of a CBOR array.
const CBOR_HEAD: u64 = 9;

/// The code of a value that is too long for the index.
const NOT_STORED: u32 = u32::MAX;

impl GlobalMetadata {
    /// Whether this is the metadata of an index.
    pub fn is_message_index(&self) -> bool {
        self.is_marked() && self.extra.get(MARK).is_some_and(|mark| mark.get("version").is_some())
    }

    /// Whether the message is marked as an index and has no other objects. A data message that happens to have the key
    /// is not an index and must not be treated as one.
    fn is_marked(&self) -> bool {
        let is_column = |entry: &Entry| entry.contains_key(ENTRY) || entry.keys().all(|key| key == RESERVED);
        self.extra.contains_key(MARK) && self.base.iter().all(is_column)
    }
}

/// The positions of the messages of a file, and the values of some of their keys.
///
/// ```
/// use tercet_tgm::{IndexKeys, DataObjectDescriptor, DType, EncodeOptions, File, GlobalMetadata, Value, Writer, WriterOptions};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("run.tgm");
/// let descriptor = DataObjectDescriptor::new(DType::U8, [1]);
/// let mut writer = Writer::create(&path, WriterOptions::new().with_index(Some(IndexKeys::All)))?;
/// for step in 0..100 {
///     let metadata = GlobalMetadata { extra: [("step".to_owned(), step.into())].into(), ..Default::default() };
///     writer.message(&metadata, &[(&descriptor, &[7])], &EncodeOptions::new())?;
/// }
/// writer.finish()?;
///
/// let file = File::open(&path)?;
/// let index = file.index()?.expect("written above");
/// let steps = index.column("step")?.expect("all keys are in it");
/// assert_eq!(steps.matching(|step| step == Some(&Value::from(42))), [42]);
/// assert_eq!(file.message_count()?, 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MessageIndex {
    span: Span,
    version: u64,
    message: Message,
    scan: Arc<Scan>,
    /// The objects with the codes and values of each key.
    keys: Vec<(String, u64, u64)>,
    /// Columns that are already decoded.
    columns: Mutex<BTreeMap<String, Arc<Column>>>,
}

/// The values of one key in all messages.
#[derive(Debug)]
pub struct Column {
    /// For each message: 0 if it does not have the key, [`NOT_STORED`] if its value is not in the index or its objects have
    /// different values, else the number of the value, from 1.
    codes: Vec<u32>,
    values: Vec<Value>,
}

impl MessageIndex {
    /// Parses the index at `span` of its file.
    fn read(span: Span, message: Message) -> Result<Self, IndexError> {
        let mark = message.metadata().extra.get(MARK);
        let number = |key| mark.and_then(|mark| mark.get(key)?.as_u64());
        let version = number("version").ok_or(IndexError::Missing { what: "version" })?;
        if !(FIRST_VERSION..=VERSION).contains(&version) {
            return Err(IndexError::Version { found: version });
        }
        let count = number("messages").ok_or(IndexError::Missing { what: "messages" })?;
        // A count that exceeds the file is rejected before memory is allocated.
        if count > span.start() / MIN_MESSAGE {
            return Err(IndexError::Count { found: count, room: span.start() / MIN_MESSAGE });
        }
        let objects = Objects::parse(&message)?;
        let (lengths, gaps) =
            (numbers(&message, objects.lengths, count)?, numbers(&message, objects.gaps, count)?);
        let scan = message_table(&lengths, &gaps, span)?;
        let (scan, columns) = (Arc::new(scan), Mutex::default());
        let keys = if version == VERSION { objects.keys } else { Vec::new() };
        Ok(Self { span, version, message, scan, keys, columns })
    }

    /// The byte range in the file. Empty, at the end of the file, if the index is in a file of its own.
    pub fn span(&self) -> Span {
        self.span
    }

    /// The byte ranges of the messages.
    pub fn scan(&self) -> &Arc<Scan> {
        &self.scan
    }

    /// Whether this library would write the same version.
    #[cfg(any(unix, windows))]
    pub(crate) fn is_current(&self) -> bool {
        self.version == VERSION
    }

    /// The indexed keys. Those of an index of the first version are not used.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|(key, ..)| key.as_str())
    }

    /// Whether all keys of the messages are indexed.
    pub fn has_all_keys(&self) -> bool {
        let mark = self.message.metadata().extra.get(MARK);
        mark.and_then(|mark| mark.get("all_keys")?.as_bool()) == Some(true)
    }

    /// The values of a key, if it is indexed. They are decoded once.
    pub fn column(&self, key: &str) -> Result<Option<Arc<Column>>, IndexError> {
        let Some((_, codes, values)) = self.keys.iter().find(|(found, ..)| found == key) else {
            return Ok(None);
        };
        let mut columns = self.columns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(column) = columns.get(key) {
            return Ok(Some(Arc::clone(column)));
        }
        let column = Arc::new(self.read_column(key, *codes, *values)?);
        columns.insert(key.to_owned(), Arc::clone(&column));
        Ok(Some(column))
    }

    fn read_column(&self, key: &str, codes: u64, values: u64) -> Result<Column, IndexError> {
        let (values, codes) = (self.message.object(values)?, self.message.object(codes)?);
        let count = self.scan.messages.len() as u64;
        // Checked before memory is allocated.
        let most = count.saturating_mul(build::MAX_VALUE_LEN as u64).saturating_add(CBOR_HEAD);
        if values.descriptor().elements().is_none_or(|bytes| bytes > most) {
            return Err(IndexError::InvalidValues { key: key.into() });
        }
        if codes.descriptor().elements() != Some(count) {
            return Err(IndexError::Missing { what: CODES });
        }
        let bytes = values.decode()?;
        let budget = Budget::new("the values of a key", self.message.options().common.limits.metadata_bytes);
        let wrong = || IndexError::InvalidValues { key: key.into() };
        let (items, used) = cbor::decode(bytes.bytes(), &budget).map_err(|_| wrong())?;
        let Value::Array(values) = items else { return Err(wrong()) };
        if used != bytes.bytes().len() {
            return Err(wrong());
        }
        let codes = codes.decode()?.to_vec::<u32>();
        let codes = codes.filter(|codes| codes.len() == self.scan.messages.len());
        let codes = codes.ok_or(IndexError::Missing { what: CODES })?;
        match codes.iter().position(|&code| code != NOT_STORED && code as usize > values.len()) {
            Some(message) => Err(IndexError::UnknownCode { key: key.into(), message: message as u64 }),
            None => Ok(Column { codes, values }),
        }
    }
}

impl Column {
    /// Whether the index has the value of a message, or knows that the message does not have the key. Long values, and
    /// those of messages whose objects differ, are not stored.
    pub fn is_stored(&self, message: u64) -> bool {
        let code = usize::try_from(message).ok().and_then(|message| self.codes.get(message));
        code.is_some_and(|&code| code != NOT_STORED)
    }

    /// The value of a message, if the message has the key and the value is stored.
    pub fn value(&self, message: u64) -> Option<&Value> {
        let code = *self.codes.get(usize::try_from(message).ok()?)?;
        self.values.get(usize::try_from(code).ok()?.checked_sub(1)?)
    }

    /// The distinct values, in order of first occurrence.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The numbers of messages whose value matches, or is [not stored](Self::is_stored) and must be read from the message.
    /// `matches` is called once for each distinct value, with `None` for messages without the key.
    pub fn matching(&self, mut matches: impl FnMut(Option<&Value>) -> bool) -> Vec<u64> {
        let is_match: Vec<bool> = std::iter::once(matches(None))
            .chain(self.values.iter().map(|value| matches(Some(value))))
            .collect();
        let keep = |code: u32| code == NOT_STORED || is_match.get(code as usize).copied().unwrap_or(false);
        self.codes.iter().zip(0..).filter(|(code, _)| keep(**code)).map(|(_, number)| number).collect()
    }
}

/// The objects of an index by role.
struct Objects {
    lengths: u64,
    gaps: u64,
    keys: Vec<(String, u64, u64)>,
}

impl Objects {
    fn parse(message: &Message) -> Result<Self, IndexError> {
        let (mut lengths, mut gaps) = (None, None);
        let mut keys: BTreeMap<&str, (Option<u64>, Option<u64>)> = BTreeMap::new();
        let mut order = Vec::new();
        for (entry, number) in message.metadata().base.iter().zip(0..) {
            let Some(entry) = entry.get(ENTRY) else { continue };
            let text = |key| entry.get(key).and_then(Value::as_text);
            let key = text("key");
            let slot = match (text("column"), key) {
                (Some(LENGTHS), _) => &mut lengths,
                (Some(GAPS), _) => &mut gaps,
                (Some(CODES), Some(key)) => {
                    order.push(key);
                    &mut keys.entry(key).or_default().0
                }
                (Some(VALUES), Some(key)) => &mut keys.entry(key).or_default().1,
                // Later versions may add other columns.
                _ => continue,
            };
            if slot.replace(number).is_some() {
                return Err(IndexError::DuplicateColumn { object: number });
            }
        }
        let key = |key: &str| match keys.get(key) {
            Some((Some(codes), Some(values))) => Ok((key.to_owned(), *codes, *values)),
            _ => Err(IndexError::Missing { what: VALUES }),
        };
        Ok(Self {
            lengths: lengths.ok_or(IndexError::Missing { what: LENGTHS })?,
            gaps: gaps.ok_or(IndexError::Missing { what: GAPS })?,
            keys: order.into_iter().map(key).collect::<Result<_, _>>()?,
        })
    }
}

/// A column of `count` numbers.
fn numbers(message: &Message, object: u64, count: u64) -> Result<Vec<u64>, IndexError> {
    let object = message.object(object)?;
    // Checked before memory is allocated.
    if object.descriptor().elements() != Some(count) {
        return Err(IndexError::Missing { what: LENGTHS });
    }
    object.decode()?.to_vec().ok_or(IndexError::Missing { what: LENGTHS })
}

/// The byte ranges of the messages, which fill the file up to the index.
fn message_table(lengths: &[u64], gaps: &[u64], message_index: Span) -> Result<Scan, IndexError> {
    let mut scan = Scan::default();
    let mut at = 0u64;
    for ((&length, &gap), message) in lengths.iter().zip(gaps).zip(0..) {
        let start = at.checked_add(gap);
        let span = start.and_then(|start| Span::at(start, length));
        let span = span.filter(|span| length >= MIN_MESSAGE && span.end() <= message_index.start());
        let span = span.ok_or(IndexError::InvalidSpan { message, limit: message_index.start() })?;
        scan.unrecognized.extend(Span::between(at, span.start()).filter(|gap| !gap.is_empty()));
        at = span.end();
        scan.messages.push(span);
    }
    scan.unrecognized.extend(Span::between(at, message_index.start()).filter(|gap| !gap.is_empty()));
    Ok(scan)
}
