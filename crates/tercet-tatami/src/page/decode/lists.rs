//! Pages of lists.

use bytes::Bytes;
use tercet_codec::ints;
use tercet_core::limits::check_limit;
use tercet_core::{FieldReader, Reason};

use super::{PageReader, scheme, spread};
use crate::column::{Bitmap, Column, Values};
use crate::error::ErrorKind;
use crate::schema::Type;
use crate::wire::cursor::Varints as _;
use crate::wire::ids::Encoding;

/// Maximum number of elements in one page.
const MAX_ELEMENTS: u64 = 1 << 24;

impl PageReader<'_> {
    /// Appends `n` lists that fill `body`.
    pub(super) fn lists(&self, body: &Bytes, n: usize, out: &mut Column) -> Result<(), ErrorKind> {
        let Values::List(out) = &mut out.values else { return Ok(()) };
        let mut fields = FieldReader::new(self.region, self.payload_span().start(), body);
        let encoding = fields.byte("lengths_encoding")?;
        let lengths_size = fields.uvarint("lengths_size")?;
        let stream = fields.take("lengths", lengths_size)?;
        let Some(scheme) = scheme(Encoding::from_id(encoding)) else {
            let reason = Reason::OutOfRange { found: encoding.into(), allowed: "0, 1, 3, 4, 5 or 6" };
            return Err(self.fault("lengths_encoding", 32, 1, reason));
        };
        let mut lengths: Vec<u32> = Vec::new();
        ints::decode(scheme, stream, n, &mut lengths).map_err(|error| self.codec(error))?;
        let count = fields.uvarint("element_count")?;
        let sum: u64 = lengths.iter().map(|len| u64::from(*len)).sum();
        if count != sum {
            let reason = Reason::Mismatch { found: count, expected: sum, because: "the sum of the lengths" };
            return Err(self.fault("element_count", 32, 0, reason));
        }
        if count > MAX_ELEMENTS {
            let reason = Reason::OutOfRange { found: count, allowed: "at most 16777216 in one page" };
            return Err(self.fault("element_count", 32, 0, reason));
        }
        let kind = self.field().scalar();
        let bytes = count.saturating_mul(kind.memory_width());
        check_limit("the elements of a page", bytes, self.inner.options.common.limits.chunk_bytes)?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let flags = fields.byte("element_flags")?;
        if flags > 1 {
            let reason = Reason::OutOfRange { found: flags.into(), allowed: "0 or 1" };
            return Err(self.fault("element_flags", 32, 0, reason));
        }
        let at = body.len() - fields.remaining();
        let (validity, rest) = if flags == 1 {
            let (bitmap, rest) = self.bitmap(body, at, count)?;
            (Some(bitmap), rest)
        } else {
            (None, body.slice(at..))
        };
        let present = validity.as_ref().map_or(count, Bitmap::ones);
        let before = out.elements.len();
        self.values(&rest, kind, present, &mut out.elements.values)?;
        if let (Type::String, Values::Bytes(strings)) = (kind, &out.elements.values)
            && self.check_utf8(strings, before, None).is_err()
        {
            return Err(self.fault("elements", 32, 0, Reason::NotUtf8));
        }
        if let Some(validity) = &validity {
            spread(&mut out.elements.values, before, present, validity);
        }
        let elements = Column { values: Values::default(), validity };
        match (&mut out.elements.validity, elements.validity) {
            (Some(all), Some(validity)) => all.extend_from(&validity, 0, count),
            (Some(all), None) => all.push_many(true, count),
            (None, Some(validity)) => {
                let mut all = Bitmap::filled(before, true);
                all.extend_from(&validity, 0, count);
                out.elements.validity = Some(all);
            }
            (None, None) => {}
        }
        let mut end = out.ends.last().copied().unwrap_or(0);
        out.ends.extend(lengths.iter().map(|len| {
            end += u64::from(*len);
            end
        }));
        Ok(())
    }
}
