//! Lengths in Arrow files, checked before the library allocates on their word.

use std::sync::Arc;

use arrow_ipc::{root_as_footer, root_as_message};
use tercet_core::{ByteSource, Class, Span};

use crate::error::Error;

/// What a message starts with.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// What a file ends with.
const MAGIC: &[u8; 6] = b"ARROW1";
/// What a file starts with, padded.
const HEAD_LEN: u64 = 8;

/// Goes from message to message of a stream, and refuses one that is longer than what is there.
pub(crate) fn check_stream(source: &dyn ByteSource) -> Result<(), Error> {
    let mut at = 0;
    while let Some(next) = check_message(source, at)? {
        at = next;
    }
    Ok(())
}

/// The same for the messages that the end of a file lists.
pub(crate) fn check_file(source: &dyn ByteSource) -> Result<(), Error> {
    let len = source.len();
    let tail = len
        .checked_sub(10)
        .filter(|start| *start >= HEAD_LEN)
        .ok_or_else(|| wrong(source, "is too short"))?;
    let bytes = read(source, tail, 10)?;
    let (size, magic) = bytes.split_at(4);
    if magic != MAGIC {
        return Err(wrong(source, "does not end like an Arrow file"));
    }
    let size = number(size).ok_or_else(|| wrong(source, "says nothing of its footer"))?;
    let start = tail.checked_sub(size).filter(|start| *start >= HEAD_LEN);
    let start = start.ok_or_else(|| wrong(source, "has a footer that is longer than the file"))?;
    let footer = read(source, start, size)?;
    let footer = root_as_footer(&footer).map_err(|_| wrong(source, "has a footer that cannot be read"))?;
    let blocks =
        footer.dictionaries().into_iter().flatten().chain(footer.recordBatches().into_iter().flatten());
    for block in blocks {
        let parts = (
            u64::try_from(block.offset()),
            u64::try_from(block.metaDataLength()),
            u64::try_from(block.bodyLength()),
        );
        let (Ok(offset), Ok(head), Ok(body)) = parts else {
            return Err(wrong(source, "has a block of a negative length"));
        };
        let end = offset.checked_add(head).and_then(|end| end.checked_add(body));
        if end.is_none_or(|end| end > len) {
            return Err(wrong(source, "has a block that is longer than the file"));
        }
    }
    Ok(())
}

/// The end of a message that starts somewhere; none at the end of the stream.
fn check_message(source: &dyn ByteSource, at: u64) -> Result<Option<u64>, Error> {
    let left = source.len().saturating_sub(at);
    if left < 8 {
        return Ok(None);
    }
    let head = read(source, at, 8)?;
    // Old streams have no mark before the length.
    let (size, start) = if head[..4] == CONTINUATION { (&head[4..], at + 8) } else { (&head[..4], at + 4) };
    let size = number(size).ok_or_else(|| wrong(source, "has a message of a negative length"))?;
    if size == 0 {
        return Ok(None);
    }
    let body = start.checked_add(size).filter(|end| *end <= source.len());
    let body = body.ok_or_else(|| wrong(source, "has a message that is longer than the file"))?;
    let message = read(source, start, size)?;
    let message =
        root_as_message(&message).map_err(|_| wrong(source, "has a message that cannot be read"))?;
    let len = u64::try_from(message.bodyLength()).ok();
    let end = len.and_then(|len| body.checked_add(len)).filter(|end| *end <= source.len());
    end.map(Some).ok_or_else(|| wrong(source, "has a message whose body is longer than the file"))
}

fn number(bytes: &[u8]) -> Option<u64> {
    let bytes: [u8; 4] = bytes.try_into().ok()?;
    u64::try_from(i32::from_le_bytes(bytes)).ok()
}

fn read(source: &dyn ByteSource, start: u64, len: u64) -> Result<bytes::Bytes, Error> {
    let span = Span::at(start, len).ok_or_else(|| wrong(source, "has a part that lies nowhere"))?;
    source.read_at(span).map_err(|error| Error::Source { name: Arc::clone(source.name()), error })
}

fn wrong(source: &dyn ByteSource, told: &str) -> Error {
    Error::Format { name: Arc::clone(source.name()), class: Class::Malformed, told: told.to_owned() }
}
