//! Reading, as lenient as the format requires.

use tercet_core::Budget;
use tercet_core::tensor::f16;

use super::head::{Head, Read, Reader, major};
use super::{CborError, CborErrorKind, MAX_DEPTH};
use crate::value::Value;

/// The initial capacity of a container in items.
const FIRST_CAPACITY: u64 = 8;

/// Reads one item and returns it with its length in bytes. The bytes after it are not examined.
///
/// Keys in any order, duplicate keys, long forms and indefinite lengths are accepted. `undefined` reads as null, a
/// bignum as an integer if it fits; other tags are kept. Memory for items and strings is reserved from
/// `budget`, and released on failure.
pub fn decode(bytes: &[u8], budget: &Budget) -> Result<(Value, usize), CborError> {
    let mut decoder = Decoder { reader: Reader::new(bytes), budget, left: budget.left(), spent: 0 };
    let mut value = Value::Null;
    decoder.item(&mut value, 0)?;
    // Other users of the budget may have reserved bytes in the meantime.
    budget.reserve(decoder.spent).map_err(|exceeded| CborError::new(0, CborErrorKind::Limit(exceeded)))?;
    Ok((value, decoder.reader.at()))
}

/// A tagged item, or the integer if it is a bignum.
pub(crate) fn tagged(tag: u64, inner: Value) -> Value {
    let integer = match (tag, &inner) {
        (2, Value::Bytes(bytes)) => magnitude(bytes),
        (3, Value::Bytes(bytes)) => magnitude(bytes).map(|magnitude| -1 - magnitude),
        _ => None,
    };
    integer.map_or_else(|| Value::Tag(tag, Box::new(inner)), Value::Integer)
}

/// The bytes of a bignum as an integer, if it fits.
fn magnitude(bytes: &[u8]) -> Option<i128> {
    let mut sum = 0_i128;
    for &byte in super::encode::without_zeros(bytes) {
        sum = sum.checked_mul(256)?.checked_add(i128::from(byte))?;
    }
    Some(sum)
}

/// The float of a head.
#[expect(clippy::cast_possible_truncation, reason = "the head determines the number of bits")]
pub(super) fn float(head: Head) -> Option<f64> {
    match head.info() {
        25 => Some(f16::from_bits(head.argument as u16).to_f64()),
        26 => Some(f64::from(f32::from_bits(head.argument as u32))),
        27 => Some(f64::from_bits(head.argument)),
        _ => None,
    }
}

/// The error of an unsupported simple value.
pub(super) fn simple(head: Head) -> CborErrorKind {
    CborErrorKind::Simple(u8::try_from(head.argument).unwrap_or(head.info()))
}

/// The nesting depth inside a container.
pub(super) fn deeper(head: Head, depth: usize) -> Read<usize> {
    if depth < MAX_DEPTH { Ok(depth + 1) } else { Err(head.fault(CborErrorKind::Depth).into()) }
}

struct Decoder<'a, 'b> {
    reader: Reader<'a>,
    budget: &'b Budget,
    /// Bytes that may still be reserved, and bytes reserved.
    left: u64,
    spent: u64,
}

impl Decoder<'_, '_> {
    /// Reads an item into its slot. Values are large, and returning them through results copies them in pieces that
    /// stall the processor: reading in place halves the time for 100,000 messages.
    fn item(&mut self, slot: &mut Value, depth: usize) -> Read<()> {
        let head = self.reader.head()?;
        self.item_of(head, slot, depth)
    }

    fn item_of(&mut self, head: Head, slot: &mut Value, depth: usize) -> Read<()> {
        self.reserve(head, size_of::<Value>())?;
        match head.major() {
            major::UNSIGNED => *slot = Value::Integer(i128::from(head.argument)),
            major::NEGATIVE => *slot = Value::Integer(-1 - i128::from(head.argument)),
            major::BYTES => *slot = Value::Bytes(self.bytes(head)?),
            major::TEXT => *slot = Value::Text(self.text(head)?),
            major::ARRAY => *slot = Value::Array(self.array(head, depth)?),
            major::MAP => *slot = Value::Map(self.map(head, depth)?),
            major::TAG => *slot = self.tag(head, depth)?,
            _ => match head.info() {
                20 => *slot = Value::Bool(false),
                21 => *slot = Value::Bool(true),
                22 | 23 => *slot = Value::Null,
                _ => *slot = Value::Float(float(head).ok_or_else(|| head.fault(simple(head)))?),
            },
        }
        Ok(())
    }

    fn bytes(&mut self, head: Head) -> Read<Vec<u8>> {
        let mut out = Vec::new();
        if !head.is_indefinite() {
            let bytes = self.reader.string(head)?;
            self.reserve(head, bytes.len())?;
            return Ok(bytes.to_vec());
        }
        while let Some((part, bytes)) = self.reader.chunk(head)? {
            self.reserve(part, bytes.len())?;
            out.extend_from_slice(bytes);
        }
        Ok(out)
    }

    fn text(&mut self, head: Head) -> Read<String> {
        if !head.is_indefinite() {
            let bytes = self.reader.string(head)?;
            return self.utf8(head, bytes).map(str::to_owned);
        }
        let mut out = String::new();
        while let Some((part, bytes)) = self.reader.chunk(head)? {
            out.push_str(self.utf8(part, bytes)?);
        }
        Ok(out)
    }

    fn utf8<'t>(&mut self, head: Head, bytes: &'t [u8]) -> Read<&'t str> {
        self.reserve(head, bytes.len())?;
        std::str::from_utf8(bytes).map_err(|_| head.fault(CborErrorKind::NotUtf8).into())
    }

    fn array(&mut self, head: Head, depth: usize) -> Read<Vec<Value>> {
        let depth = deeper(head, depth)?;
        self.reader.expect(head, head.argument)?;
        let mut items = Vec::with_capacity(capacity(head));
        if head.is_indefinite() {
            while let Some(head) = self.reader.head_before_break()? {
                self.item_of(head, slot(&mut items), depth)?;
            }
        } else {
            for _ in 0..head.argument {
                self.item(slot(&mut items), depth)?;
            }
        }
        Ok(items)
    }

    fn map(&mut self, head: Head, depth: usize) -> Read<Vec<(Value, Value)>> {
        let depth = deeper(head, depth)?;
        self.reader.expect(head, head.argument.saturating_mul(2))?;
        let mut pairs = Vec::with_capacity(capacity(head));
        if head.is_indefinite() {
            while let Some(head) = self.reader.head_before_break()? {
                let (key, value) = pair(&mut pairs);
                self.item_of(head, key, depth)?;
                self.item(value, depth)?;
            }
        } else {
            for _ in 0..head.argument {
                let (key, value) = pair(&mut pairs);
                self.item(key, depth)?;
                self.item(value, depth)?;
            }
        }
        Ok(pairs)
    }

    fn tag(&mut self, head: Head, depth: usize) -> Read<Value> {
        // A bignum is a number, not a container.
        let is_bignum = matches!(head.argument, 2 | 3) && self.reader.is_at_bytes();
        let depth = if is_bignum { depth } else { deeper(head, depth)? };
        let mut inner = Value::Null;
        self.item(&mut inner, depth)?;
        Ok(tagged(head.argument, inner))
    }

    fn reserve(&mut self, head: Head, bytes: usize) -> Read<()> {
        self.spent = self.spent.saturating_add(bytes as u64);
        if self.spent <= self.left {
            return Ok(());
        }
        // The error comes from the budget, which knows its name and size.
        if let Err(exceeded) = self.budget.reserve(self.spent) {
            return Err(head.fault(CborErrorKind::Limit(exceeded)).into());
        }
        self.budget.release(self.spent);
        self.left = self.budget.left();
        Ok(())
    }
}

/// The initial capacity of a container; it grows with its items.
fn capacity(head: Head) -> usize {
    usize::try_from(head.argument.min(FIRST_CAPACITY)).unwrap_or_default()
}

/// The slot of the next array item.
fn slot(items: &mut Vec<Value>) -> &mut Value {
    items.push_mut(Value::Null)
}

/// The slot of the next map pair.
fn pair(pairs: &mut Vec<(Value, Value)>) -> (&mut Value, &mut Value) {
    let (key, value) = pairs.push_mut((Value::Null, Value::Null));
    (key, value)
}
