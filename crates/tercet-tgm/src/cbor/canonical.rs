//! The canonical form: sorting of values, verification of bytes.

use std::borrow::Cow;
use std::cmp::Ordering;

use tercet_core::{Budget, Limits};

use super::decode::{deeper, float, simple};
use super::encode::{encode, shortest_float, without_zeros};
use super::head::{Head, Reader, major};
use super::{CborError, CborErrorKind, MAX_DEPTH, NonCanonical, decode};
use crate::value::Value;

/// Sorts the maps of a value at every depth by the encoded bytes of their keys. Duplicate keys and containers nested too
/// deeply are errors; the value is then unchanged.
pub fn canonicalize(value: &mut Value) -> Result<(), CborError> {
    check_writable(value, 0)?;
    sort(value);
    Ok(())
}

/// Rejects what no reader accepts: duplicate keys, and containers nested too deeply, counted from `depth`.
pub(crate) fn check_writable(value: &Value, depth: usize) -> Result<(), CborError> {
    let inside = depth + 1;
    let is_container = matches!(value, Value::Array(_) | Value::Map(_) | Value::Tag(..));
    if is_container && inside > MAX_DEPTH {
        return Err(CborError::new(0, CborErrorKind::Depth));
    }
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| check_writable(item, inside)),
        Value::Tag(_, inner) => check_writable(inner, inside),
        Value::Map(pairs) => {
            for (key, value) in pairs {
                check_writable(key, inside)?;
                check_writable(value, inside)?;
            }
            let mut keys: Vec<_> = pairs.iter().map(|(key, _)| (encode(key), key)).collect();
            keys.sort_by(|a, b| a.0.cmp(&b.0));
            let twice = keys.windows(2).find(|keys| matches!(keys, [a, b] if a.0 == b.0));
            match twice.and_then(|keys| keys.first()) {
                Some((_, key)) => Err(CborError::new(0, CborErrorKind::Duplicate(key.printed()))),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn sort(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(sort),
        Value::Tag(_, inner) => sort(inner),
        Value::Map(pairs) => {
            for (key, value) in pairs.iter_mut() {
                sort(key);
                sort(value);
            }
            pairs.sort_by_cached_key(|(key, _)| encode(key));
        }
        _ => {}
    }
}

/// Checks that bytes are exactly one item in the canonical form of RFC 8949, section 4.2.1.
///
/// Integers, lengths, tags, floats and bignums are as short as possible, lengths are definite, map keys are sorted by their
/// bytes without duplicates, and nothing follows the item. A NaN must be `f97e00`.
///
/// ```
/// use tercet_tgm::cbor::{CborErrorKind, NonCanonical, verify_canonical_cbor};
///
/// assert!(verify_canonical_cbor(b"\xa2\x61a\x01\x61b\x02").is_ok());
/// let error = verify_canonical_cbor(b"\xa2\x61b\x01\x61a\x02").unwrap_err();
/// assert_eq!((error.at, error.reason), (4, CborErrorKind::NotCanonical(NonCanonical::KeyOrder)));
/// ```
pub fn verify_canonical_cbor(bytes: &[u8]) -> Result<(), CborError> {
    let mut walker = Walker { reader: Reader::new(bytes), is_strict: true };
    walker.item(0)?;
    match walker.reader.rest().len() {
        0 => Ok(()),
        left => Err(CborError::new(walker.reader.at(), CborErrorKind::Leftover(left))),
    }
}

/// Checks that the keys of every map, in canonical form, are sorted and without duplicates. Long forms, indefinite
/// lengths and trailing bytes are accepted.
pub fn key_order(bytes: &[u8]) -> Result<(), CborError> {
    Walker { reader: Reader::new(bytes), is_strict: false }.item(0)
}

/// A pass over one item that builds no value.
struct Walker<'a> {
    reader: Reader<'a>,
    /// Whether all rules apply, or only those about keys.
    is_strict: bool,
}

impl<'a> Walker<'a> {
    fn item(&mut self, depth: usize) -> Result<(), CborError> {
        let head = self.reader.head()?;
        self.item_of(head, depth)
    }

    fn item_of(&mut self, head: Head, depth: usize) -> Result<(), CborError> {
        if head.major() != major::SIMPLE {
            self.rule(head, NonCanonical::Indefinite, !head.is_indefinite())?;
            self.rule(head, NonCanonical::LongArgument, head.is_shortest())?;
        }
        match head.major() {
            major::UNSIGNED | major::NEGATIVE => Ok(()),
            major::BYTES | major::TEXT => self.string(head),
            major::ARRAY => self.array(head, depth),
            major::MAP => self.map(head, depth),
            major::TAG => self.tag(head, depth),
            _ => self.simple(head),
        }
    }

    fn rule(&self, head: Head, rule: NonCanonical, is_kept: bool) -> Result<(), CborError> {
        if is_kept || !self.is_strict { Ok(()) } else { Err(head.fault(CborErrorKind::NotCanonical(rule))) }
    }

    fn simple(&self, head: Head) -> Result<(), CborError> {
        if (20..=23).contains(&head.info()) {
            return Ok(());
        }
        let float = float(head).ok_or_else(|| head.fault(simple(head)))?;
        self.rule(head, NonCanonical::LongFloat, shortest_float(float) == (head.info(), head.argument))
    }

    fn string(&mut self, head: Head) -> Result<(), CborError> {
        let check = |head: Head, bytes: &[u8]| {
            let is_valid = head.major() == major::BYTES || std::str::from_utf8(bytes).is_ok();
            if is_valid { Ok(()) } else { Err(head.fault(CborErrorKind::NotUtf8)) }
        };
        if !head.is_indefinite() {
            return check(head, self.reader.string(head)?);
        }
        while let Some((part, bytes)) = self.reader.chunk(head)? {
            check(part, bytes)?;
        }
        Ok(())
    }

    fn array(&mut self, head: Head, depth: usize) -> Result<(), CborError> {
        let depth = deeper(head, depth)?;
        self.reader.expect(head, head.argument)?;
        if head.is_indefinite() {
            while let Some(head) = self.reader.head_before_break()? {
                self.item_of(head, depth)?;
            }
        } else {
            for _ in 0..head.argument {
                self.item(depth)?;
            }
        }
        Ok(())
    }

    fn map(&mut self, head: Head, depth: usize) -> Result<(), CborError> {
        let depth = deeper(head, depth)?;
        self.reader.expect(head, head.argument.saturating_mul(2))?;
        let mut last = None;
        if head.is_indefinite() {
            while let Some(key) = self.reader.head_before_break()? {
                self.pair(key, depth, &mut last)?;
            }
        } else {
            for _ in 0..head.argument {
                let key = self.reader.head()?;
                self.pair(key, depth, &mut last)?;
            }
        }
        Ok(())
    }

    fn pair(&mut self, head: Head, depth: usize, last: &mut Option<Cow<'a, [u8]>>) -> Result<(), CborError> {
        self.item_of(head, depth)?;
        let key = self.key(head)?;
        let broken = last.as_ref().and_then(|last| match last.cmp(&key) {
            Ordering::Less => None,
            Ordering::Equal => Some(NonCanonical::DuplicateKey),
            Ordering::Greater => Some(NonCanonical::KeyOrder),
        });
        if let Some(rule) = broken {
            return Err(head.fault(CborErrorKind::NotCanonical(rule)));
        }
        *last = Some(key);
        self.item(depth)
    }

    /// The canonical form of the key that was just parsed.
    fn key(&self, head: Head) -> Result<Cow<'a, [u8]>, CborError> {
        let bytes = self.reader.since(head.at);
        let is_scalar = head.major() <= major::TEXT && !head.is_indefinite() && head.is_shortest();
        if self.is_strict || is_scalar {
            return Ok(Cow::Borrowed(bytes));
        }
        let budget = Budget::new("a map key", Limits::default().metadata_bytes);
        let (key, _) =
            decode(bytes, &budget).map_err(|error| CborError::new(head.at + error.at, error.reason))?;
        Ok(Cow::Owned(encode(&key)))
    }

    fn tag(&mut self, head: Head, depth: usize) -> Result<(), CborError> {
        if !matches!(head.argument, 2 | 3) || !self.reader.is_at_bytes() {
            let depth = deeper(head, depth)?;
            return self.item(depth);
        }
        let bytes = self.reader.head()?;
        let start = self.reader.at();
        self.item_of(bytes, depth)?;
        if bytes.is_indefinite() {
            return Ok(());
        }
        let digits = self.reader.since(start);
        let is_short = digits.len() > 8 && without_zeros(digits).len() == digits.len();
        self.rule(head, NonCanonical::LongBignum, is_short)
    }
}
