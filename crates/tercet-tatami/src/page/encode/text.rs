//! Text and bytes.

use bytes::Bytes;
use tercet_codec::varint;

use super::{Bounds, Tools};
use crate::fault::Fault;
use crate::schema::Type;
use crate::wire::footer::Zone;
use crate::wire::ids::Encoding;
use crate::writer::WriterOptions;

/// The symbols of a column of text, and whether they pay.
#[derive(Debug)]
pub(crate) struct TextTools {}

impl TextTools {
    pub(super) fn new(_kind: Type, _options: &WriterOptions) -> Self {
        Self {}
    }

    /// The record of the symbols, if there are some.
    pub(crate) fn payload(&self) -> Option<Vec<u8>> {
        None
    }
}

/// Appends values in the shortest encoding.
pub(super) fn encode(
    values: &[&[u8]],
    tools: &mut Tools,
    out: &mut Vec<u8>,
) -> Result<(Encoding, Bounds), Fault> {
    let bounds = bounds(values);
    if values.is_empty() {
        return Ok((Encoding::Plain, bounds));
    }
    let best = plain_len(values);
    if let Some(dictionary) = &mut tools.values
        && dictionary.encode_texts(values, best, out)?
    {
        return Ok((Encoding::Dictionary, bounds));
    }
    put_plain(values, best, out);
    Ok((Encoding::Plain, bounds))
}

fn plain_len(values: &[&[u8]]) -> u64 {
    values.iter().map(|value| value.len() as u64 + varint::len(value.len() as u64) as u64).sum()
}

fn put_plain(values: &[&[u8]], len: u64, out: &mut Vec<u8>) {
    out.reserve(usize::try_from(len).unwrap_or(0));
    for value in values {
        varint::put(value.len() as u64, out);
        out.extend_from_slice(value);
    }
}

fn bounds(values: &[&[u8]]) -> Bounds {
    let (Some(min), Some(max)) = (values.iter().min(), values.iter().max()) else {
        return Bounds::default();
    };
    let zone = Zone { min: Bytes::copy_from_slice(min), max: Bytes::copy_from_slice(max) };
    Bounds { zone: Some(zone), has_nan: false }
}
