//! Page encoding.
//!
//! ```text
//! rows of a column ─▶ non-null values ─▶ shortest encoding ─▶ [bitmap][encoded values]
//! ```
//!
//! The pages of a column share a value dictionary and a symbol table ([`Tools`]): pages of one column are encoded sequentially,
//! different columns in parallel.

mod dictionary;
mod list;
mod number;
mod strings;

use std::cmp::Ordering;
use std::ops::Range;

use bytes::Bytes;
use tercet_codec::ints::Scheme;

use crate::column::{Bitmap, Column, Values, each_values};
use crate::error::ErrorKind;
use crate::scalar::Scalar;
use crate::schema::{Field, Type};
use crate::wire::footer::Zone;
use crate::wire::ids::Encoding;
use crate::writer::{Choice, WriterOptions};

pub(crate) use dictionary::ValueDictionary;
use number::FloatTools;
pub(crate) use number::Number;
pub(crate) use strings::StringEncoder;

/// The shared state of the pages of one column.
#[derive(Debug)]
pub(crate) struct Tools {
    /// Whether floats may be bit-packed.
    native: bool,
    /// Chooses the encoding of floats.
    floats: FloatTools,
    /// The value dictionary, if the column supports one.
    pub(crate) values: Option<ValueDictionary>,
    /// Chooses FSST for strings.
    pub(crate) text: StringEncoder,
}

impl Tools {
    /// `columns` is the number of columns, which share the memory of the dictionaries.
    pub(crate) fn new(field: &Field, options: &WriterOptions, columns: usize) -> Self {
        let native = options.is_native();
        Self {
            native,
            floats: FloatTools::new(field.kind, options),
            values: native.then(|| ValueDictionary::new(field.scalar(), options, columns)).flatten(),
            text: StringEncoder::new(field.scalar(), options),
        }
    }
}

/// An uncompressed page.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) encoding: Encoding,
    /// Number of null rows.
    pub(crate) nulls: usize,
    /// Bitmap and values.
    pub(crate) payload: Vec<u8>,
    /// Whether floats are byte-split.
    pub(crate) split: bool,
    pub(crate) bounds: Bounds,
    /// The compressed payload, if it is known from the choice of the encoding.
    pub(crate) compressed: Option<Choice>,
}

/// The encoded values of a page.
#[derive(Debug)]
struct Stream {
    encoding: Encoding,
    split: bool,
    bounds: Bounds,
    /// The compressed payload that ends with these values.
    compressed: Option<Choice>,
}

impl Stream {
    fn new(encoding: Encoding, bounds: Bounds) -> Self {
        Self { encoding, split: false, bounds, compressed: None }
    }
}

/// The minimum and maximum of some values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bounds {
    /// `None` without values other than NaN.
    pub(crate) zone: Option<Zone>,
    /// Whether NaN was skipped.
    pub(crate) has_nan: bool,
}

/// The payload of some rows of a column.
pub(crate) fn page(
    field: &Field,
    column: &Column,
    rows: Range<usize>,
    tools: &mut Tools,
) -> Result<Encoded, ErrorKind> {
    let rows = Rows::new(column, rows);
    let mut payload = Vec::new();
    rows.put_bitmap(&mut payload);
    let Stream { encoding, split, bounds, compressed } = match &column.values {
        _ if field.kind == Type::BlobRef => Stream::new(Encoding::Plain, Bounds::default()),
        Values::List(lists) => list::encode(lists, &rows, tools, &mut payload)?,
        values => stream(values, &rows, tools, &mut payload)?,
    };
    Ok(Encoded { encoding, nulls: rows.nulls, payload, split, bounds, compressed })
}

/// Appends the non-null values in the shortest encoding, and returns it.
fn stream(
    values: &Values,
    rows: &Rows<'_>,
    tools: &mut Tools,
    out: &mut Vec<u8>,
) -> Result<Stream, ErrorKind> {
    each_values!(
        values,
        fixed(values) => number::encode(&rows.present(values), tools, out),
        bool(values) => Ok(bools(&rows.present(values), out)),
        bytes(values) => {
            let present: Vec<&[u8]> = rows.positions().map(|row| values.get(row)).collect();
            strings::encode(&present, tools, out)
        },
        // The schema rejects lists of lists.
        list(_lists) => Ok(Stream::new(Encoding::Plain, Bounds::default())),
    )
}

fn bools(present: &[bool], out: &mut Vec<u8>) -> Stream {
    let bits: Bitmap = present.iter().copied().collect();
    out.extend_from_slice(bits.as_bytes());
    let ones = bits.ones();
    let zone = (!present.is_empty()).then(|| {
        let byte = |bit: bool| Bytes::copy_from_slice(&[u8::from(bit)]);
        Zone { min: byte(ones == present.len()), max: byte(ones > 0) }
    });
    Stream::new(Encoding::Bitmap, Bounds { zone, has_nan: false })
}

/// Some rows of a column and their validity.
#[derive(Clone, Debug)]
struct Rows<'a> {
    range: Range<usize>,
    /// `None` if all are valid.
    validity: Option<&'a Bitmap>,
    nulls: usize,
}

impl<'a> Rows<'a> {
    fn new(column: &'a Column, range: Range<usize>) -> Self {
        let nulls =
            column.validity.as_ref().map_or(0, |bits| range.len() - bits.ones_in(range.start, range.end));
        Self { range, validity: column.validity.as_ref().filter(|_| nulls > 0), nulls }
    }

    /// Appends the validity bitmap, if a row is null.
    fn put_bitmap(&self, out: &mut Vec<u8>) {
        if let Some(validity) = self.validity {
            let mut bits = Bitmap::new();
            bits.extend_from(validity, self.range.start, self.range.end);
            out.extend_from_slice(bits.as_bytes());
        }
    }

    /// The non-null rows.
    fn positions(&self) -> impl Iterator<Item = usize> + '_ {
        let validity = self.validity;
        self.range.clone().filter(move |row| validity.is_none_or(|bits| bits.get(*row)))
    }

    /// The non-null values, copied only if there are nulls.
    fn present<'v, T: Copy>(&self, values: &'v [T]) -> std::borrow::Cow<'v, [T]> {
        if self.validity.is_none() {
            return (&values[self.range.clone()]).into();
        }
        let mut out = Vec::with_capacity(self.range.len() - self.nulls);
        out.extend(self.positions().map(|row| values[row]));
        out.into()
    }
}

/// The encoding of an integer stream scheme.
fn encoding_of(scheme: Scheme) -> Encoding {
    match scheme {
        Scheme::Plain => Encoding::Plain,
        Scheme::Rle => Encoding::Rle,
        Scheme::BitpackFor => Encoding::BitpackFor,
        Scheme::Delta => Encoding::Delta,
        Scheme::GroupVarint => Encoding::GroupVarint,
        Scheme::Pfor => Encoding::PforDelta,
    }
}

/// Appends a stream of lengths: encoding, size, bytes.
fn put_lengths(lengths: &[u32], out: &mut Vec<u8>) -> Result<(), ErrorKind> {
    let (scheme, len) = tercet_codec::ints::choose(lengths, &tercet_codec::ints::CASCADE);
    out.push(encoding_of(scheme).id());
    tercet_codec::varint::put(len, out);
    Ok(tercet_codec::ints::encode(scheme, lengths, out)?)
}

/// Extends a zone by another one; of equal bounds the first is kept.
pub(crate) fn widen(zone: &mut Option<Zone>, other: Option<&Zone>, kind: Type) {
    let Some(other) = other else { return };
    let Some(zone) = zone else {
        *zone = Some(other.clone());
        return;
    };
    let order = |a: &[u8], b: &[u8]| {
        Scalar::from_bytes(kind, a).zip(Scalar::from_bytes(kind, b)).and_then(|(a, b)| a.order(&b))
    };
    if order(&other.min, &zone.min) == Some(Ordering::Less) {
        zone.min = other.min.clone();
    }
    if order(&other.max, &zone.max) == Some(Ordering::Greater) {
        zone.max = other.max.clone();
    }
}
