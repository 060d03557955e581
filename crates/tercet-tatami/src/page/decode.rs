//! Page decoding.

mod lists;
mod pick;
mod strings;

use bytes::Bytes;
use tercet_codec::CodecError;
use tercet_codec::ints::{self, Integer, Scheme};
use tercet_core::limits::check_limit;
use tercet_core::{Reason, Span};

use crate::block_codec::fault;
use crate::column::{Bitmap, Column, Values, each_values};
use crate::error::ErrorKind;
use crate::file::Inner;
use crate::page::bounds::{self, Bounds};
use crate::region::Region;
use crate::schema::{Field, Type};
use crate::wire::ids::{Codec, Encoding, Kind, page_flags};
use crate::wire::page::{HEADER_LEN, PageHeader};

/// Reads a page: its header, with its position.
#[derive(Clone, Debug)]
pub(crate) struct PageReader<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) column: usize,
    pub(crate) region: Region,
    /// The offset of its header.
    pub(crate) offset: u64,
    pub(crate) header: PageHeader,
    /// The file row number of its first row.
    pub(crate) first_row: u64,
}

impl PageReader<'_> {
    fn field(&self) -> &Field {
        self.inner.field(self.column)
    }

    /// The byte range of the stored payload, which must be between header and footer.
    pub(crate) fn stored_span(&self) -> Result<Span, ErrorKind> {
        self.inner.body_span(self.region, self.offset + HEADER_LEN, self.header.stored_bytes.into())
    }

    /// A stored payload whose checksum is verified.
    pub(crate) fn checked(&self, stored: Bytes) -> Result<Bytes, ErrorKind> {
        self.inner.check_payload(self.region, self.stored_span()?, &self.header, &stored)?;
        Ok(stored)
    }

    /// Reads the stored payload, verified.
    pub(crate) fn stored(&self) -> Result<Bytes, ErrorKind> {
        self.checked(self.inner.source.read_at(self.stored_span()?)?)
    }

    /// Rejects a page whose rows exceed the memory limit: few bytes can encode many equal values.
    pub(crate) fn check_rows(&self) -> Result<(), ErrorKind> {
        let width = self.field().kind.memory_width();
        let bytes = u64::from(self.header.values).saturating_mul(width);
        check_limit("the values of a page", bytes, self.inner.page_limit())?;
        Ok(())
    }

    /// Error of a field of the page header.
    fn fault(&self, field: &'static str, at: u64, len: u64, reason: Reason) -> ErrorKind {
        fault(self.region, field, self.offset + at, len, reason)
    }

    fn payload_span(&self) -> Span {
        self.header.payload_span(self.offset).unwrap_or(Span::empty(self.offset))
    }

    fn codec(&self, error: CodecError) -> ErrorKind {
        ErrorKind::Codec { region: self.region, span: self.payload_span(), error: Box::new(error) }
    }

    /// Checks that the header is consistent.
    pub(crate) fn check_header(&self) -> Result<(), ErrorKind> {
        let header = &self.header;
        if header.kind != Kind::Data {
            let reason = Reason::OutOfRange { found: header.kind.id().into(), allowed: "0 (a page)" };
            return Err(self.fault("kind", 0, 1, reason));
        }
        let featured = self.inner.footer.features.is_some();
        let known = if featured {
            page_flags::BOUNDS | page_flags::NULLS | page_flags::SPLIT
        } else {
            page_flags::NULLS
        };
        if header.flags & !known != 0 {
            let reason =
                Reason::OutOfRange { found: header.flags.into(), allowed: "a combination of known bits" };
            return Err(self.fault("flags", 3, 1, reason));
        }
        if header.marked && !featured {
            let rule = "marked pages require a features section";
            return Err(self.fault("codec", 2, 1, Reason::Unexpected { rule }));
        }
        if !header.marked && needs_mark(header, self.field()) {
            let rule = "a page that older readers would misread is marked";
            return Err(self.fault("codec", 2, 1, Reason::Unexpected { rule }));
        }
        if header.has_nulls() {
            if header.present().is_none() {
                let reason =
                    Reason::OutOfRange { found: header.nulls.into(), allowed: "at most the number of rows" };
                return Err(self.fault("null_count", 16, 4, reason));
            }
            // Without a header checksum, a flipped bit could turn values into a bitmap.
            if header.nulls == 0 && !self.inner.has_header_checksums() {
                let rule = "a page without nulls has no validity bitmap";
                return Err(self.fault("flags", 3, 1, Reason::Unexpected { rule }));
            }
        } else if header.nulls != 0 {
            let rule = "a page with nulls has a validity bitmap";
            return Err(self.fault("null_count", 16, 4, Reason::Unexpected { rule }));
        }
        Ok(())
    }

    /// Checks that codec and encoding are known and valid for the column type.
    pub(crate) fn check_encoding(&self) -> Result<(), ErrorKind> {
        if let Codec::Unknown(id) = self.header.codec {
            let reason = Reason::UnknownId { found: id.into(), known: "0 to 3" };
            return Err(self.fault("codec", 2, 1, reason));
        }
        let (encoding, kind) = (self.header.encoding, self.field().scalar());
        let is_valid = match encoding {
            // Blob pages have no values.
            _ if self.field().kind == Type::BlobRef => true,
            Encoding::Plain => true,
            Encoding::Bitmap => kind == Type::Bool,
            Encoding::Dictionary => kind != Type::Bool,
            Encoding::Fsst => matches!(kind, Type::String | Type::Bytes),
            encoding => scheme(encoding).is_some_and(|scheme| is_stream_type(kind, scheme)),
        };
        if is_valid { Ok(()) } else { Err(self.wrong_encoding()) }
    }

    /// The error of an encoding that the column type does not have.
    fn wrong_encoding(&self) -> ErrorKind {
        let reason = match self.header.encoding {
            Encoding::Unknown(id) => Reason::UnknownId { found: id.into(), known: "0 to 8" },
            _ => Reason::Unexpected { rule: "the encoding is valid for the column type" },
        };
        self.fault("encoding", 1, 1, reason)
    }

    /// Checks the sizes that follow from header and type, without decompression.
    pub(crate) fn check_sizes(&self, stored: &Bytes) -> Result<(), ErrorKind> {
        let (_, body) = self.split_bounds(stored)?;
        let header = &self.header;
        let raw = u64::from(header.raw_bytes);
        let mismatch = |found: u64, expected: u64, because: &'static str| {
            self.fault("uncompressed_size", 8, 4, Reason::Mismatch { found, expected, because })
        };
        if header.codec == Codec::None && body.len() as u64 != raw {
            return Err(mismatch(raw, body.len() as u64, "the stored size of an uncompressed page"));
        }
        let bitmap = if header.has_nulls() { u64::from(header.values).div_ceil(8) } else { 0 };
        let present = u64::from(header.values.saturating_sub(header.nulls));
        let expected = match (header.encoding, self.field().kind) {
            (_, Type::BlobRef) => Some(bitmap),
            (Encoding::Plain | Encoding::Bitmap, Type::Bool) => Some(bitmap + present.div_ceil(8)),
            (Encoding::Plain, kind) => kind.width().map(|width| bitmap + present * width as u64),
            _ => None,
        };
        match expected {
            Some(expected) if expected != raw => {
                Err(mismatch(raw, expected, "the number and width of the values"))
            }
            None if bitmap > raw => Err(mismatch(raw, bitmap, "the validity bitmap, at least")),
            _ => Ok(()),
        }
    }

    /// The statistics before the payload, if any, and the bytes after them.
    pub(crate) fn split_bounds(&self, stored: &Bytes) -> Result<(Option<Bounds>, Bytes), ErrorKind> {
        if !self.header.has(page_flags::BOUNDS) {
            return Ok((None, stored.clone()));
        }
        let start = self.payload_span().start();
        let (bounds, len) = bounds::parse(self.region, start, stored, self.field().scalar())?;
        Ok((Some(bounds), stored.slice(len..)))
    }

    /// The decompressed payload.
    pub(crate) fn payload(&self, stored: &Bytes) -> Result<Bytes, ErrorKind> {
        let (_, body) = self.split_bounds(stored)?;
        let dictionary = match self.header.codec {
            Codec::ZstdDict => Some(self.inner.page_dictionary(self.column, (self.region, self.offset + 2))?),
            _ => None,
        };
        let (codec, raw) = (self.header.codec, self.header.raw_bytes.into());
        self.inner.decompress(self.region, self.payload_span(), &body, codec, raw, dictionary.as_deref())
    }

    /// Appends the rows of the page to `out`. The checksum of `stored` is already verified.
    pub(crate) fn decode(&self, stored: &Bytes, out: &mut Column) -> Result<(), ErrorKind> {
        self.check_header()?;
        let payload = self.payload(stored)?;
        let rows = self.header.values as usize;
        let (validity, body) = self.validity(&payload)?;
        let present = rows - self.header.nulls as usize;
        let before = out.len();
        let field = self.field();
        // A few bytes can declare many rows that are all null or all equal.
        out.values.try_reserve(rows)?;
        match field.kind {
            Type::BlobRef => {
                if !body.is_empty() {
                    let reason = Reason::Leftover { len: body.len() as u64 };
                    return Err(self.fault("payload", 32, self.header.stored_bytes.into(), reason));
                }
                // The values themselves are in the blob region.
                out.values.push_zeros(present);
            }
            Type::List => self.lists(&body, present, out)?,
            kind => self.values(&body, kind, present, &mut out.values)?,
        }
        if let (Type::String, Values::Bytes(strings)) = (field.kind, &out.values) {
            self.check_utf8(strings, before, validity.as_ref())?;
        }
        if let Some(validity) = &validity {
            spread(&mut out.values, before, present, validity);
        }
        match (&mut out.validity, validity) {
            (Some(all), Some(validity)) => all.extend_from(&validity, 0, rows),
            (Some(all), None) => all.push_many(true, rows),
            (None, Some(validity)) => {
                let mut all = Bitmap::filled(before, true);
                all.extend_from(&validity, 0, rows);
                out.validity = Some(all);
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// The validity of the page, without decoding values.
    pub(crate) fn decode_validity(&self, stored: &Bytes) -> Result<Option<Bitmap>, ErrorKind> {
        self.check_header()?;
        if !self.header.has_nulls() {
            return Ok(None);
        }
        Ok(self.validity(&self.payload(stored)?)?.0)
    }

    fn validity(&self, payload: &Bytes) -> Result<(Option<Bitmap>, Bytes), ErrorKind> {
        if !self.header.has_nulls() {
            return Ok((None, payload.clone()));
        }
        let rows = self.header.values as usize;
        let (bitmap, rest) = self.bitmap(payload, 0, rows)?;
        let (ones, present) = (bitmap.ones() as u64, u64::from(self.header.values - self.header.nulls));
        if ones != present {
            let because = "the number of non-null rows";
            let reason = Reason::Mismatch { found: ones, expected: present, because };
            return Err(self.fault("validity", 32, 0, reason));
        }
        Ok((Some(bitmap), rest))
    }

    /// A bitmap at the start of the payload, and the bytes after it.
    fn bitmap(&self, payload: &Bytes, at: usize, len: usize) -> Result<(Bitmap, Bytes), ErrorKind> {
        let end = at + len.div_ceil(8);
        let Some(bytes) = payload.get(at..end) else {
            let reason = Reason::Truncated { need: end as u64, have: payload.len() as u64 };
            return Err(self.fault("validity", 32, 0, reason));
        };
        let bitmap = Bitmap::from_bytes(bytes, len).ok_or_else(|| {
            self.fault("validity", 32, 0, Reason::Unexpected { rule: "unused bits of a bitmap are zero" })
        })?;
        Ok((bitmap, payload.slice(end..)))
    }

    /// Appends `n` values that fill `body`.
    fn values(&self, body: &Bytes, kind: Type, n: usize, out: &mut Values) -> Result<(), ErrorKind> {
        let encoding = self.header.encoding;
        if self.header.has(page_flags::SPLIT) {
            if encoding != Encoding::Plain || !kind.is_float() || self.field().kind == Type::List {
                let rule = "only PLAIN floats are byte-split";
                return Err(self.fault("flags", 3, 1, Reason::Unexpected { rule }));
            }
            let width = kind.width().unwrap_or(1);
            if body.len() != n * width {
                let reason = Reason::Mismatch {
                    found: body.len() as u64,
                    expected: (n * width) as u64,
                    because: "the width of the values",
                };
                return Err(self.fault("payload", 32, 0, reason));
            }
            let mut unsplit = vec![0; body.len()];
            tercet_codec::shuffle::unshuffle(body, width, &mut unsplit).map_err(|error| self.codec(error))?;
            return plain(out, kind, &Bytes::from(unsplit), n).map_err(|error| self.codec(error));
        }
        match (encoding, kind) {
            (Encoding::Plain, _) | (Encoding::Bitmap, Type::Bool) => {
                plain(out, kind, body, n).map_err(|error| self.codec(error))
            }
            (Encoding::Dictionary, kind) if kind != Type::Bool => self.dictionary_codes(body, n, out),
            (Encoding::Fsst, Type::String | Type::Bytes) => self.fsst(body, n, out),
            (encoding, kind) => {
                if let Some(scheme) = scheme(encoding).filter(|scheme| is_stream_type(kind, *scheme)) {
                    return integers(scheme, out, body, n).map_err(|error| self.codec(error));
                }
                Err(self.wrong_encoding())
            }
        }
    }

    fn dictionary_codes(&self, body: &Bytes, n: usize, out: &mut Values) -> Result<(), ErrorKind> {
        let dictionary = self.inner.value_dictionary(self.column, (self.region, self.offset + 1))?;
        if n == 0 && body.is_empty() {
            return Ok(());
        }
        let (scheme, stream) = self.code_stream(body)?;
        let mut codes: Vec<u32> = Vec::new();
        ints::decode(scheme, stream, n, &mut codes).map_err(|error| self.codec(error))?;
        self.check_codes(&codes, dictionary.len())?;
        take(&dictionary, &codes, out);
        Ok(())
    }

    /// The dictionary code of each row, 0 for null rows, and the validity.
    pub(crate) fn decode_codes(&self, stored: &Bytes) -> Result<(Vec<u32>, Option<Bitmap>), ErrorKind> {
        self.check_header()?;
        let payload = self.payload(stored)?;
        let rows = self.header.values as usize;
        let (validity, body) = self.validity(&payload)?;
        let present = rows - self.header.nulls as usize;
        let mut codes = Values::UInt32(Vec::new());
        // A few bytes can declare many rows that are all null or all equal.
        codes.try_reserve(rows)?;
        let Values::UInt32(present_codes) = &mut codes else { return Ok((Vec::new(), validity)) };
        if present > 0 || !body.is_empty() {
            let dictionary = self.inner.value_dictionary(self.column, (self.region, self.offset + 1))?;
            let (scheme, stream) = self.code_stream(&body)?;
            ints::decode(scheme, stream, present, present_codes).map_err(|error| self.codec(error))?;
            self.check_codes(present_codes, dictionary.len())?;
        }
        if let Some(validity) = &validity {
            spread(&mut codes, 0, present, validity);
        }
        match codes {
            Values::UInt32(codes) => Ok((codes, validity)),
            _ => Ok((Vec::new(), validity)),
        }
    }

    /// The code stream of a body and its scheme.
    fn code_stream<'b>(&self, body: &'b [u8]) -> Result<(Scheme, &'b [u8]), ErrorKind> {
        let Some((inner, stream)) = body.split_first() else {
            let reason = Reason::Truncated { need: 1, have: 0 };
            return Err(self.fault("inner_encoding", 32, 1, reason));
        };
        let scheme = scheme(Encoding::from_id(*inner)).filter(|scheme| *scheme != Scheme::Plain);
        scheme.map(|scheme| (scheme, stream)).ok_or_else(|| {
            let reason = Reason::OutOfRange { found: (*inner).into(), allowed: "1, 3, 4, 5 or 6" };
            self.fault("inner_encoding", 32, 1, reason)
        })
    }

    /// Rejects codes out of range.
    fn check_codes(&self, codes: &[u32], values: usize) -> Result<(), ErrorKind> {
        match codes.iter().copied().max() {
            Some(largest) if largest as usize >= values => {
                let allowed = "a code of the dictionary";
                let reason = Reason::OutOfRange { found: largest.into(), allowed };
                Err(self.fault("codes", 32, 0, reason))
            }
            _ => Ok(()),
        }
    }
}

/// Whether readers that support only the older encodings would misread the page.
pub(crate) fn needs_mark(header: &PageHeader, field: &Field) -> bool {
    if !matches!(header.codec, Codec::None | Codec::Zstd) {
        return false;
    }
    field.kind == Type::List
        || matches!(header.encoding, Encoding::Dictionary | Encoding::Fsst)
        || (field.kind.is_float() && header.encoding != Encoding::Plain)
        || header.has(page_flags::SPLIT)
        || (header.codec == Codec::None && header.has(page_flags::BOUNDS))
}

/// The integer stream scheme of an encoding.
const fn scheme(encoding: Encoding) -> Option<Scheme> {
    Some(match encoding {
        Encoding::Plain => Scheme::Plain,
        Encoding::Rle => Scheme::Rle,
        Encoding::BitpackFor => Scheme::BitpackFor,
        Encoding::Delta => Scheme::Delta,
        Encoding::GroupVarint => Scheme::GroupVarint,
        Encoding::PforDelta => Scheme::Pfor,
        _ => return None,
    })
}

/// Whether a type can be encoded as an integer stream.
const fn is_stream_type(kind: Type, scheme: Scheme) -> bool {
    kind.is_integer()
        || (kind.is_float() && matches!(scheme, Scheme::Rle | Scheme::BitpackFor | Scheme::Delta))
}

/// Appends `n` plain values that fill `bytes`.
pub(crate) fn plain(out: &mut Values, kind: Type, bytes: &Bytes, n: usize) -> Result<(), CodecError> {
    match out {
        Values::Bool(bools) => {
            if bytes.len() != n.div_ceil(8) {
                let detail = format!("{n} bits take {} bytes, found {}", n.div_ceil(8), bytes.len());
                return Err(CodecError::Decode { codec: "bitmap", detail });
            }
            bools.extend((0..n).map(|at| bytes[at / 8] >> (at % 8) & 1 == 1));
            Ok(())
        }
        Values::Bytes(strings) => strings::plain(strings, bytes, n),
        Values::List(_) => {
            Err(CodecError::Decode { codec: "plain", detail: format!("no values of type {kind}") })
        }
        numbers => integers(Scheme::Plain, numbers, bytes, n),
    }
}

/// The values as integers of the same width.
fn as_bits<T, B>(
    values: &mut Vec<T>,
    read: impl FnOnce(&mut Vec<B>) -> Result<(), CodecError>,
) -> Result<(), CodecError>
where
    T: bytemuck::Pod,
    B: bytemuck::Pod + Integer,
{
    let mut bits: Vec<B> = bytemuck::cast_vec(std::mem::take(values));
    let done = read(&mut bits);
    *values = bytemuck::cast_vec(bits);
    done
}

/// Appends `n` numbers of a stream that fills `bytes`; floats as bits.
fn integers(scheme: Scheme, out: &mut Values, bytes: &[u8], n: usize) -> Result<(), CodecError> {
    match out {
        Values::Int8(v) => ints::decode(scheme, bytes, n, v),
        Values::Int16(v) => ints::decode(scheme, bytes, n, v),
        Values::Int32(v) => ints::decode(scheme, bytes, n, v),
        Values::Int64(v) => ints::decode(scheme, bytes, n, v),
        Values::UInt8(v) => ints::decode(scheme, bytes, n, v),
        Values::UInt16(v) => ints::decode(scheme, bytes, n, v),
        Values::UInt32(v) => ints::decode(scheme, bytes, n, v),
        Values::UInt64(v) => ints::decode(scheme, bytes, n, v),
        Values::Float32(v) => as_bits::<f32, u32>(v, |bits| ints::decode(scheme, bytes, n, bits)),
        Values::Float64(v) => as_bits::<f64, u64>(v, |bits| ints::decode(scheme, bytes, n, bits)),
        Values::Bool(_) | Values::Bytes(_) | Values::List(_) => {
            Err(CodecError::Decode { codec: scheme.name(), detail: "not an integer stream".to_owned() })
        }
    }
}

/// Appends the values of codes, which are in range.
fn take(dictionary: &Values, codes: &[u32], out: &mut Values) {
    fn pick<T: Copy>(values: &[T], codes: &[u32], out: &mut Vec<T>) {
        out.extend(codes.iter().map(|code| values[*code as usize]));
    }
    match (dictionary, out) {
        (Values::Bool(values), Values::Bool(out)) => pick(values, codes, out),
        (Values::Int8(values), Values::Int8(out)) => pick(values, codes, out),
        (Values::Int16(values), Values::Int16(out)) => pick(values, codes, out),
        (Values::Int32(values), Values::Int32(out)) => pick(values, codes, out),
        (Values::Int64(values), Values::Int64(out)) => pick(values, codes, out),
        (Values::UInt8(values), Values::UInt8(out)) => pick(values, codes, out),
        (Values::UInt16(values), Values::UInt16(out)) => pick(values, codes, out),
        (Values::UInt32(values), Values::UInt32(out)) => pick(values, codes, out),
        (Values::UInt64(values), Values::UInt64(out)) => pick(values, codes, out),
        (Values::Float32(values), Values::Float32(out)) => pick(values, codes, out),
        (Values::Float64(values), Values::Float64(out)) => pick(values, codes, out),
        (Values::Bytes(values), Values::Bytes(out)) => strings::take(values, codes, out),
        (values, out) => debug_assert!(false, "{} are no {}", values.type_name(), out.type_name()),
    }
}

/// Moves the `present` values after `start` to their rows; null slots become zero or empty.
fn spread(values: &mut Values, start: usize, present: usize, validity: &Bitmap) {
    fn vector<T: Copy + Default>(values: &mut Vec<T>, start: usize, present: usize, validity: &Bitmap) {
        values.resize(start + validity.len(), T::default());
        let mut from = start + present;
        // From the end, eight rows at a time: a value never moves to an earlier slot.
        for (index, bits) in validity.as_bytes().iter().enumerate().rev() {
            let rows = 8 * index..validity.len().min(8 * index + 8);
            let slots = start + rows.start..start + rows.end;
            match *bits {
                0 => values[slots].fill(T::default()),
                0xff => {
                    from -= 8;
                    values.copy_within(from..from + 8, slots.start);
                }
                bits => {
                    for row in (0..rows.len()).rev() {
                        let is_present = bits >> row & 1 == 1;
                        from -= usize::from(is_present);
                        values[slots.start + row] = if is_present { values[from] } else { T::default() };
                    }
                }
            }
        }
    }
    each_values!(
        values,
        fixed(v) => vector(v, start, present, validity),
        bool(v) => vector(v, start, present, validity),
        bytes(v) => vector(v.views_mut(), start, present, validity),
        list(v) => {
            // A null row ends where the previous row ends.
            let base = if start == 0 { 0 } else { v.ends[start - 1] };
            vector(&mut v.ends, start, present, validity);
            let mut end = base;
            for (row, slot) in v.ends[start..].iter_mut().enumerate() {
                if validity.get(row) {
                    end = *slot;
                } else {
                    *slot = end;
                }
            }
        },
    );
}
