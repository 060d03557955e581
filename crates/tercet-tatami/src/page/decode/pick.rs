//! Single rows of a page.
//!
//! Fixed-width values and dictionary codes are read at their positions; strings are located by their lengths. Pages without
//! random access (RLE, DELTA, nulls, lists) are decoded completely.

use bytes::Bytes;
use tercet_codec::CodecError;
use tercet_codec::ints::{self, Scheme};
use tercet_codec::varint;
use tercet_core::Reason;

use super::{PageReader, as_bits, is_stream_type, scheme, take};
use crate::column::{Column, Strings, Values};
use crate::error::ErrorKind;
use crate::schema::Type;
use crate::wire::ids::{Encoding, page_flags};

/// If at least one row in this many is requested, the entire page is decoded: the vector kernels are faster.
const FULL_DECODE_RATIO: usize = 8;

impl PageReader<'_> {
    /// Appends rows of the page, ascending and relative to its first row, to `out`. The checksum of `stored` is already
    /// verified.
    pub(crate) fn pick(&self, stored: &Bytes, rows: &[usize], out: &mut Column) -> Result<(), ErrorKind> {
        self.check_header()?;
        let kind = self.field().kind;
        let n = self.header.values as usize;
        let is_plain_text = kind.is_bytes() && self.header.encoding == Encoding::Plain;
        let scheme = scheme(self.header.encoding).filter(|scheme| is_integer_stream(kind, *scheme));
        let is_coded = self.header.encoding == Encoding::Dictionary && kind != Type::Bool;
        let is_symbols = self.header.encoding == Encoding::Fsst && kind.is_bytes();
        let enterable = is_plain_text || is_coded || is_symbols || scheme.is_some();
        let sequential = self.header.has_nulls() || self.header.has(page_flags::SPLIT) || kind == Type::List;
        if let Some(row) = rows.iter().find(|row| **row >= n) {
            let (row, rows) = (self.first_row + *row as u64, self.first_row + n as u64);
            return Err(ErrorKind::NoSuchRow { row, rows });
        }
        if sequential || !enterable || rows.len() * FULL_DECODE_RATIO >= n {
            return self.pick_of_all(stored, rows, out);
        }
        let body = self.payload(stored)?;
        match scheme {
            _ if is_plain_text => {
                let Values::Bytes(strings) = &mut out.values else { return Ok(()) };
                let from = strings.len();
                plain_strings(&body, rows, strings).map_err(|error| self.codec(error))?;
                self.check_picked(kind, strings, from, rows)?;
            }
            _ if is_coded => self.pick_codes(&body, rows, &mut out.values)?,
            Some(scheme) => {
                numbers(scheme, &body, n, rows, &mut out.values).map_err(|error| self.codec(error))?;
            }
            None => {
                let Values::Bytes(strings) = &mut out.values else { return Ok(()) };
                let from = strings.len();
                self.pick_fsst(&body, rows, strings)?;
                self.check_picked(kind, strings, from, rows)?;
            }
        }
        if let Some(all) = &mut out.validity {
            all.push_many(true, rows.len());
        }
        Ok(())
    }

    fn pick_of_all(&self, stored: &Bytes, rows: &[usize], out: &mut Column) -> Result<(), ErrorKind> {
        let mut all = Column::empty(self.field());
        self.decode(stored, &mut all)?;
        for row in rows {
            out.extend_from(&all, *row, row + 1);
        }
        Ok(())
    }

    fn pick_codes(&self, body: &Bytes, rows: &[usize], out: &mut Values) -> Result<(), ErrorKind> {
        let dictionary = self.inner.value_dictionary(self.column, (self.region, self.offset + 1))?;
        let (scheme, stream) = self.code_stream(body)?;
        let mut codes: Vec<u32> = Vec::with_capacity(rows.len());
        ints::pick(scheme, stream, self.header.values as usize, rows, &mut codes)
            .map_err(|error| self.codec(error))?;
        self.check_codes(&codes, dictionary.len())?;
        match (&*dictionary, out) {
            // Copied, so that a few strings do not keep the dictionary alive.
            (Values::Bytes(strings), Values::Bytes(out)) => {
                for code in &codes {
                    out.push(strings.get(*code as usize));
                }
            }
            (dictionary, out) => take(dictionary, &codes, out),
        }
        Ok(())
    }

    fn pick_fsst(&self, body: &Bytes, rows: &[usize], out: &mut Strings) -> Result<(), ErrorKind> {
        let symbols = self.inner.symbols(self.column, (self.region, self.offset + 1))?;
        let (lengths, coded, _) = self.fsst_parts(body, self.header.values as usize)?;
        let (mut at, mut row, mut text) = (0usize, 0, Vec::new());
        for wanted in rows {
            at = lengths[row..*wanted].iter().fold(at, |at, len| at.saturating_add(*len as usize));
            row = *wanted;
            let end = at.saturating_add(lengths[row] as usize);
            let Some(codes) = coded.get(at..end) else {
                let reason = Reason::Truncated { need: end as u64, have: coded.len() as u64 };
                return Err(self.fault("coded", 32, 0, reason));
            };
            text.clear();
            symbols.decode_one(codes, &mut text).map_err(|error| self.codec(error))?;
            out.push(&text);
        }
        Ok(())
    }

    /// Rejects invalid UTF-8 in the values from `from` on, which are those of `rows`.
    fn check_picked(
        &self,
        kind: Type,
        strings: &Strings,
        from: usize,
        rows: &[usize],
    ) -> Result<(), ErrorKind> {
        if kind != Type::String || self.inner.options.allow_invalid_utf8 {
            return Ok(());
        }
        let is_wrong = |index: &usize| simdutf8::basic::from_utf8(strings.get(from + index)).is_err();
        match (0..rows.len()).find(is_wrong) {
            None => Ok(()),
            Some(index) => Err(ErrorKind::NotUtf8 {
                column: self.field().name.as_ref().into(),
                row: self.first_row + rows[index] as u64,
            }),
        }
    }
}

/// Whether the values of a page are an integer stream.
fn is_integer_stream(kind: Type, scheme: Scheme) -> bool {
    kind.width().is_some() && (scheme == Scheme::Plain || is_stream_type(kind, scheme))
}

/// Walks the lengths and copies the values of `rows`.
fn plain_strings(bytes: &[u8], rows: &[usize], out: &mut Strings) -> Result<(), CodecError> {
    let mut rest = bytes;
    let mut row = 0;
    for wanted in rows {
        let mut found: &[u8] = &[];
        // A row may be requested more than once.
        if row > *wanted {
            let last = out.len() - 1;
            let again = out.get(last).to_vec();
            out.push(&again);
            continue;
        }
        while row <= *wanted {
            let (len, used) = varint::get(rest)?;
            let end = usize::try_from(len).ok().and_then(|len| used.checked_add(len));
            let Some(value) = end.and_then(|end| rest.get(used..end)) else {
                let at = bytes.len() - rest.len() + used;
                let detail = format!("a value of {len} bytes starts at {at} of {}", bytes.len());
                return Err(CodecError::Decode { codec: "plain", detail });
            };
            found = value;
            rest = &rest[used + value.len()..];
            row += 1;
        }
        out.push(found);
    }
    Ok(())
}

/// Appends the numbers at `rows` of a stream of `n`; floats as bits.
fn numbers(
    scheme: Scheme,
    bytes: &[u8],
    n: usize,
    rows: &[usize],
    out: &mut Values,
) -> Result<(), CodecError> {
    match out {
        Values::Int8(v) => ints::pick(scheme, bytes, n, rows, v),
        Values::Int16(v) => ints::pick(scheme, bytes, n, rows, v),
        Values::Int32(v) => ints::pick(scheme, bytes, n, rows, v),
        Values::Int64(v) => ints::pick(scheme, bytes, n, rows, v),
        Values::UInt8(v) => ints::pick(scheme, bytes, n, rows, v),
        Values::UInt16(v) => ints::pick(scheme, bytes, n, rows, v),
        Values::UInt32(v) => ints::pick(scheme, bytes, n, rows, v),
        Values::UInt64(v) => ints::pick(scheme, bytes, n, rows, v),
        Values::Float32(v) => as_bits::<f32, u32>(v, |bits| ints::pick(scheme, bytes, n, rows, bits)),
        Values::Float64(v) => as_bits::<f64, u64>(v, |bits| ints::pick(scheme, bytes, n, rows, bits)),
        Values::Bool(_) | Values::Bytes(_) | Values::List(_) => {
            Err(CodecError::Decode { codec: scheme.name(), detail: "not an integer stream".to_owned() })
        }
    }
}
