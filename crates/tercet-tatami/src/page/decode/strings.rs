//! Pages of strings and bytes.

use bytes::Bytes;
use tercet_codec::ints;
use tercet_codec::{CodecError, varint};
use tercet_core::limits::check_limit;
use tercet_core::{FieldReader, Reason};

use super::{PageReader, scheme};
use crate::column::{Bitmap, Strings, Values, View};
use crate::error::ErrorKind;
use crate::wire::cursor::Varints as _;
use crate::wire::ids::Encoding;

/// Bytes that the FSST decoder may write after the last value.
const SPARE: usize = tercet_codec::strings::fsst::MAX_SYMBOL_BYTES;

/// Appends `n` length-prefixed values that fill `bytes`, without copying.
pub(super) fn plain(out: &mut Strings, bytes: &Bytes, n: usize) -> Result<(), CodecError> {
    let failed = |detail: String| CodecError::Decode { codec: "plain", detail };
    if n > bytes.len() {
        return Err(failed(format!("{} bytes cannot contain {n} lengths", bytes.len())));
    }
    if n == 0 && bytes.is_empty() {
        return Ok(());
    }
    if u32::try_from(bytes.len()).is_err() {
        return Err(failed(format!("{} bytes exceed the maximum page size", bytes.len())));
    }
    let buffer = out.add_buffer(bytes.clone());
    let views = out.views_mut();
    let before = views.len();
    // Filled in place: a push would check the capacity each time.
    views.resize(before + n, View::EMPTY);
    let done = find_values(bytes, buffer, &mut views[before..]);
    if done.is_err() {
        views.truncate(before);
    }
    done
}

/// Locates the values by their lengths.
#[expect(clippy::cast_possible_truncation, reason = "the buffer has less than 4 GiB")]
fn find_values(bytes: &[u8], buffer: u32, views: &mut [View]) -> Result<(), CodecError> {
    let failed = |detail: String| CodecError::Decode { codec: "plain", detail };
    let n = views.len();
    let mut at = 0;
    for view in views {
        let (len, used) = varint::get(&bytes[at..])?;
        let start = at + used;
        if len > (bytes.len() - start) as u64 {
            return Err(failed(format!("a value of {len} bytes starts at {start} of {}", bytes.len())));
        }
        *view = View { buffer, start: start as u32, len: len as u32 };
        at = start + len as usize;
    }
    if at != bytes.len() {
        return Err(failed(format!("{n} values end after {at} of {} bytes", bytes.len())));
    }
    Ok(())
}

/// Appends the strings of codes, which are in range, without copying.
pub(super) fn take(dictionary: &Strings, codes: &[u32], out: &mut Strings) {
    let Some(buffer) = dictionary.shared_buffer() else {
        out.push_empty(codes.len());
        return;
    };
    let buffer = out.add_buffer(buffer);
    let views = dictionary.views();
    out.push_views(codes.iter().map(|code| View { buffer, ..views[*code as usize] }));
}

impl PageReader<'_> {
    /// Appends `n` FSST-encoded values.
    pub(super) fn fsst(&self, body: &Bytes, n: usize, out: &mut Values) -> Result<(), ErrorKind> {
        let symbols = self.inner.symbols(self.column, (self.region, self.offset + 1))?;
        let Values::Bytes(out) = out else { return Ok(()) };
        let (lengths, coded, total) = self.fsst_parts(body, n)?;
        // The decoder writes up to one symbol past the end.
        let mut raw = self.inner.pool.take(total.saturating_add(SPARE));
        let mut ends = Vec::with_capacity(n);
        symbols.decode_all(coded, &lengths, total, &mut ends, &mut raw).map_err(|error| self.codec(error))?;
        if n == 0 {
            return Ok(());
        }
        let buffer = out.add_buffer(self.inner.pool.lend(raw));
        let mut start = 0;
        out.push_views(ends.into_iter().map(|end| {
            // `raw_total` was checked to fit 32 bits.
            let end = u32::try_from(end).unwrap_or(u32::MAX);
            let view = View { buffer, start, len: end - start };
            start = end;
            view
        }));
        Ok(())
    }

    /// The code lengths of the `n` values, all codes, and the decoded length.
    pub(super) fn fsst_parts<'b>(
        &self,
        body: &'b [u8],
        n: usize,
    ) -> Result<(Vec<u32>, &'b [u8], usize), ErrorKind> {
        let mut fields = FieldReader::new(self.region, self.payload_span().start(), body);
        let raw_total = fields.uvarint("raw_total")?;
        let encoding = fields.byte("lengths_encoding")?;
        let lengths_size = fields.uvarint("lengths_size")?;
        let stream = fields.take("lengths", lengths_size)?;
        let coded = fields.take("coded", fields.remaining() as u64)?;
        let Some(scheme) = scheme(Encoding::from_id(encoding)) else {
            let reason = Reason::OutOfRange { found: encoding.into(), allowed: "0, 1, 3, 4, 5 or 6" };
            return Err(self.fault("lengths_encoding", 32, 1, reason));
        };
        let mut lengths: Vec<u32> = Vec::new();
        ints::decode(scheme, stream, n, &mut lengths).map_err(|error| self.codec(error))?;
        let most = (coded.len() as u64).saturating_mul(8).min(u32::MAX.into());
        if raw_total > most {
            let reason =
                Reason::OutOfRange { found: raw_total, allowed: "at most eight times the coded bytes" };
            return Err(self.fault("raw_total", 32, 0, reason));
        }
        let total =
            check_limit("the strings of a page", raw_total, self.inner.options.common.limits.chunk_bytes)?;
        Ok((lengths, coded, total))
    }

    /// Rejects invalid UTF-8 in the values from `start` on, which are those of the non-null rows.
    pub(super) fn check_utf8(
        &self,
        strings: &Strings,
        start: usize,
        validity: Option<&Bitmap>,
    ) -> Result<(), ErrorKind> {
        // Dictionary values are validated when the dictionary is loaded.
        if self.inner.options.allow_invalid_utf8 || self.header.encoding == Encoding::Dictionary {
            return Ok(());
        }
        let Some(bad) = strings.first_invalid_utf8(start) else { return Ok(()) };
        let index = bad - start;
        let row = validity.map_or(index, |validity| validity.positions().nth(index).unwrap_or(index));
        let column = self.field().name.as_ref().into();
        Err(ErrorKind::NotUtf8 { column, row: self.first_row + row as u64 })
    }
}
