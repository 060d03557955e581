//! Reader of Arrow IPC files and streams, message by message. Lengths are validated before arrow allocates.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{Block, Message, MessageHeader, root_as_footer, root_as_message};
use arrow_schema::SchemaRef;
use tercet_core::{ByteSource, Class, Limits, Span};

use crate::error::{Batch, Error, ErrorKind, from_arrow};

mod batch_header;
mod layout;
mod schema;

pub(crate) use schema::decode_schema;

/// Continuation marker at the start of a message.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Magic at the end of a file.
const MAGIC: &[u8; 6] = b"ARROW1";
/// Length of the padded magic at the start of a file.
const HEAD_LEN: u64 = 8;
/// Length of the footer length and the magic.
const TAIL_LEN: u64 = 10;

/// Reads the record batches of a file or a stream.
pub(crate) struct Batches {
    source: Arc<dyn ByteSource>,
    limits: Limits,
    schema: SchemaRef,
    positions: MessagePositions,
    dictionaries: HashMap<i64, ArrayRef>,
    /// Number of record and dictionary batches so far, for messages.
    counts: [u64; 2],
    /// Whether a stream ended without an end-of-stream marker.
    is_truncated: Arc<AtomicBool>,
}

/// Positions of the messages.
enum MessagePositions {
    /// Listed in the footer of a file.
    Listed(std::vec::IntoIter<MessagePosition>),
    /// The next message of a stream; `None` at the end.
    Next(Option<u64>),
}

/// Position and kind of a message.
struct MessagePosition {
    kind: Batch,
    at: u64,
    head: u64,
    body: u64,
}

impl Batches {
    /// Opens a file: the footer has the schema and the positions of the messages.
    pub(crate) fn from_file(source: Arc<dyn ByteSource>, limits: Limits) -> Result<Self, Error> {
        let wrong = |message: &str| wrong(&*source, message);
        let tail = source.len().checked_sub(TAIL_LEN).filter(|start| *start >= HEAD_LEN);
        let tail = tail.ok_or_else(|| wrong("truncated Arrow file"))?;
        let bytes = read(&*source, tail, TAIL_LEN)?;
        let (size, magic) = bytes.split_at(4);
        if magic != MAGIC {
            return Err(wrong("truncated Arrow file: the magic at the end is missing"));
        }
        let size = number(size).ok_or_else(|| wrong("invalid footer length"))?;
        let start = tail.checked_sub(size).filter(|start| *start >= HEAD_LEN);
        let start = start.ok_or_else(|| wrong("invalid footer length: longer than the file"))?;
        let footer = read(&*source, start, size)?;
        let footer = root_as_footer(&footer).map_err(|_| wrong("malformed footer"))?;
        let schema = footer.schema().ok_or_else(|| wrong("footer without schema"))?;
        let mut positions = Vec::new();
        for block in footer.dictionaries().into_iter().flatten() {
            positions.push(message_position(&*source, Batch::Dictionary, block)?);
        }
        for block in footer.recordBatches().into_iter().flatten() {
            positions.push(message_position(&*source, Batch::Record, block)?);
        }
        let schema = decode_schema(schema).map_err(|message| wrong(&message))?;
        let schema = Arc::new(schema);
        Ok(Self::new(source, limits, schema, MessagePositions::Listed(positions.into_iter())))
    }

    /// Opens a stream: the first message is the schema.
    pub(crate) fn from_stream(source: Arc<dyn ByteSource>, limits: Limits) -> Result<Self, Error> {
        let first = next_message(&*source, 0)?.ok_or_else(|| wrong(&*source, "empty stream"))?;
        let message = first.message(&*source)?;
        let schema = message.header_as_schema();
        let schema =
            schema.ok_or_else(|| wrong(&*source, "the first message of the stream is not a schema"))?;
        let schema = Arc::new(decode_schema(schema).map_err(|message| wrong(&*source, &message))?);
        let next = first.body_start.checked_add(first.body_len);
        Ok(Self::new(source, limits, schema, MessagePositions::Next(next)))
    }

    fn new(
        source: Arc<dyn ByteSource>,
        limits: Limits,
        schema: SchemaRef,
        positions: MessagePositions,
    ) -> Self {
        Self {
            source,
            limits,
            schema,
            positions,
            dictionaries: HashMap::new(),
            counts: [0; 2],
            is_truncated: Arc::default(),
        }
    }

    /// Whether the stream ended without an end-of-stream marker; valid once all batches are read.
    pub(crate) fn is_truncated(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_truncated)
    }

    /// The schema.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn read(&mut self) -> Result<Option<RecordBatch>, Error> {
        loop {
            let (head, kind) = match &mut self.positions {
                MessagePositions::Listed(positions) => match positions.next() {
                    Some(position) => (listed_message(&*self.source, &position)?, Some(position.kind)),
                    None => return Ok(None),
                },
                MessagePositions::Next(at) => {
                    let Some(start) = at.take() else { return Ok(None) };
                    if start >= self.source.len() {
                        self.is_truncated.store(true, Ordering::Relaxed);
                    }
                    let Some(head) = next_message(&*self.source, start)? else { return Ok(None) };
                    *at = head.body_start.checked_add(head.body_len);
                    (head, None)
                }
            };
            if let Some(batch) = self.decode(&head, kind)? {
                return Ok(Some(batch));
            }
        }
    }

    /// Decodes a message; `None` for a dictionary batch, which is kept.
    fn decode(&mut self, head: &Head, wanted: Option<Batch>) -> Result<Option<RecordBatch>, Error> {
        let source = &*self.source;
        let message = head.message(source)?;
        let name = source.name();
        let (kind, data, dictionary) = match message.header_type() {
            MessageHeader::RecordBatch => (Batch::Record, message.header_as_record_batch(), None),
            MessageHeader::DictionaryBatch => {
                let dictionary = message.header_as_dictionary_batch();
                (Batch::Dictionary, dictionary.and_then(|dictionary| dictionary.data()), dictionary)
            }
            _ => {
                return Err(wrong(
                    source,
                    "unexpected message: expected a record batch or a dictionary batch",
                ));
            }
        };
        if wanted.is_some_and(|wanted| wanted != kind) {
            return Err(wrong(source, "batch kind differs from the footer"));
        }
        let data = data.ok_or_else(|| wrong(source, "batch without header"))?;
        let index = self.counts[kind as usize];
        self.counts[kind as usize] += 1;
        let span = head.body_span(source)?;
        // Copied: validated bytes must not change while they are used.
        let mut body = MutableBuffer::from_len_zeroed(in_memory(source, span.len())?);
        source.read_into(span.start(), &mut body).map_err(|error| read_error(source, error))?;
        let body = Buffer::from(body);
        let version = message.version();
        let columns = match &dictionary {
            None => layout::Columns::Rows(&self.schema),
            Some(dictionary) => layout::Columns::Dictionary(&self.schema, dictionary.id()),
        };
        batch_header::batch(&data, &body, self.limits)
            .and_then(|lens| batch_header::buffers(&columns, &data, &lens, version))
            .map_err(|error| error.at(name, kind, index, span))?;
        let in_arrow = |error| from_arrow(name, error);
        if let Some(dictionary) = dictionary {
            let dictionaries = &mut self.dictionaries;
            read_dictionary(&body, dictionary, &self.schema, dictionaries, &version).map_err(in_arrow)?;
            return Ok(None);
        }
        let schema = Arc::clone(&self.schema);
        let batch = read_record_batch(&body, data, schema, &self.dictionaries, None, &version);
        batch.map(Some).map_err(in_arrow)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// The header of a message and the position of its body.
struct Head {
    bytes: bytes::Bytes,
    body_start: u64,
    body_len: u64,
}

impl Head {
    fn message(&self, source: &dyn ByteSource) -> Result<Message<'_>, Error> {
        root_as_message(&self.bytes).map_err(|_| wrong(source, "malformed message header"))
    }

    fn body_span(&self, source: &dyn ByteSource) -> Result<Span, Error> {
        let span = Span::at(self.body_start, self.body_len).filter(|span| span.end() <= source.len());
        span.ok_or_else(|| wrong(source, "message body extends past the end of the file"))
    }
}

/// Checks that a block of the footer is inside the file.
fn message_position(source: &dyn ByteSource, kind: Batch, block: &Block) -> Result<MessagePosition, Error> {
    let parts = (
        u64::try_from(block.offset()),
        u64::try_from(block.metaDataLength()),
        u64::try_from(block.bodyLength()),
    );
    let (Ok(at), Ok(head), Ok(body)) = parts else {
        return Err(wrong(source, "footer block of negative length"));
    };
    let end = at.checked_add(head).and_then(|end| end.checked_add(body));
    if end.is_none_or(|end| end > source.len()) {
        return Err(wrong(source, "footer block extends past the end of the file"));
    }
    Ok(MessagePosition { kind, at, head, body })
}

fn listed_message(source: &dyn ByteSource, position: &MessagePosition) -> Result<Head, Error> {
    let bytes = read(source, position.at, position.head)?;
    let start = if bytes.starts_with(&CONTINUATION) { 8 } else { 4 };
    if bytes.len() <= start {
        return Err(wrong(source, "footer block without message"));
    }
    Ok(Head { bytes: bytes.slice(start..), body_start: position.at + position.head, body_len: position.body })
}

/// Reads the header of the message at a position; `None` at the end of the stream.
fn next_message(source: &dyn ByteSource, at: u64) -> Result<Option<Head>, Error> {
    let left = source.len().saturating_sub(at);
    if left == 0 {
        return Ok(None);
    }
    let head = read(source, at, left.min(8))?;
    // Streams of Arrow before 0.15 have no continuation marker.
    let (size, start) = match head.strip_prefix(&CONTINUATION) {
        Some(size) => (size, at + 8),
        None => (head.get(..4).unwrap_or(&[]), at + 4),
    };
    let size = size.try_into().ok().map(i32::from_le_bytes);
    let size = size.ok_or_else(|| wrong(source, "truncated message"))?;
    let size = u64::try_from(size).map_err(|_| wrong(source, "message of negative length"))?;
    if size == 0 {
        return Ok(None);
    }
    let body_start = start.checked_add(size).filter(|end| *end <= source.len());
    let body_start = body_start.ok_or_else(|| wrong(source, "message extends past the end of the file"))?;
    let mut head = Head { bytes: read(source, start, size)?, body_start, body_len: 0 };
    let len = head.message(source)?.bodyLength();
    head.body_len = u64::try_from(len).map_err(|_| wrong(source, "message of negative length"))?;
    head.body_span(source)?;
    Ok(Some(head))
}

fn number(bytes: &[u8]) -> Option<u64> {
    let bytes: [u8; 4] = bytes.try_into().ok()?;
    u64::try_from(i32::from_le_bytes(bytes)).ok()
}

fn in_memory(source: &dyn ByteSource, len: u64) -> Result<usize, Error> {
    usize::try_from(len).map_err(|_| wrong(source, "message too large for memory"))
}

fn read(source: &dyn ByteSource, start: u64, len: u64) -> Result<bytes::Bytes, Error> {
    let span = Span::at(start, len).ok_or_else(|| wrong(source, "byte range overflow"))?;
    source.read_at(span).map_err(|error| read_error(source, error))
}

fn read_error(source: &dyn ByteSource, error: tercet_core::SourceError) -> Error {
    Error::new(Arc::clone(source.name()), error.into())
}

fn wrong(source: &dyn ByteSource, message: &str) -> Error {
    let kind = ErrorKind::Format { class: Class::Malformed, message: message.to_owned() };
    Error::new(Arc::clone(source.name()), kind)
}
