//! The heads of items: initial byte and argument.

use super::{CborError, CborErrorKind};

/// The major types.
pub(super) mod major {
    pub(in crate::cbor) const UNSIGNED: u8 = 0;
    pub(in crate::cbor) const NEGATIVE: u8 = 1;
    pub(in crate::cbor) const BYTES: u8 = 2;
    pub(in crate::cbor) const TEXT: u8 = 3;
    pub(in crate::cbor) const ARRAY: u8 = 4;
    pub(in crate::cbor) const MAP: u8 = 5;
    pub(in crate::cbor) const TAG: u8 = 6;
    pub(in crate::cbor) const SIMPLE: u8 = 7;
}

/// The low bits of an initial byte for an indefinite length or a break.
const INDEFINITE: u8 = 31;

/// An initial byte and the argument after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// The offset of the item.
    pub(super) at: usize,
    /// The initial byte.
    pub(super) initial: u8,
    /// The argument: a number, a length, a tag or the bits of a float.
    pub(super) argument: u64,
}

impl Head {
    pub(super) const fn major(self) -> u8 {
        self.initial >> 5
    }

    pub(super) const fn info(self) -> u8 {
        self.initial & 31
    }

    pub(super) const fn is_indefinite(self) -> bool {
        self.info() == INDEFINITE
    }

    pub(super) const fn is_break(self) -> bool {
        self.initial == 0xff
    }

    /// Whether no shorter head has the same argument. Not meaningful for floats.
    pub(super) const fn is_shortest(self) -> bool {
        match self.info() {
            24 => self.argument >= 24,
            25 => self.argument > 0xff,
            26 => self.argument > 0xffff,
            27 => self.argument > 0xffff_ffff,
            _ => true,
        }
    }

    /// An error at this item.
    pub(super) const fn fault(self, reason: CborErrorKind) -> CborError {
        CborError::new(self.at, reason)
    }
}

/// Errors are rare and large; boxing them keeps results small.
pub(super) type Read<T> = Result<T, Box<CborError>>;

/// A cursor over CBOR.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// Bytes not read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// The bytes read since `start`.
    pub(super) fn since(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start..self.at).unwrap_or_default()
    }

    /// Whether the next item is a byte string.
    pub(super) fn is_at_bytes(&self) -> bool {
        self.rest().first().is_some_and(|initial| initial >> 5 == major::BYTES)
    }

    /// Reads the head of any item, a break included.
    pub(super) fn head_or_break(&mut self) -> Read<Head> {
        let at = self.at;
        let Some((&initial, rest)) = self.rest().split_first() else {
            return Err(CborError::new(at, CborErrorKind::Truncated { need: 1, have: 0 }).into());
        };
        let info = initial & 31;
        let (argument, len) = match info {
            0..24 => (u64::from(info), 0),
            24 => (rest.first().map_or(0, |&byte| u64::from(byte)), 1),
            25 => (be::<2>(rest), 2),
            26 => (be::<4>(rest), 4),
            27 => (be::<8>(rest), 8),
            INDEFINITE if matches!(initial >> 5, major::BYTES..=major::MAP | major::SIMPLE) => (0, 0),
            _ => return Err(CborError::new(at, CborErrorKind::Reserved(initial)).into()),
        };
        if rest.len() < len {
            let (need, have) = (len as u64 + 1, rest.len() as u64 + 1);
            return Err(CborError::new(at, CborErrorKind::Truncated { need, have }).into());
        }
        self.at = at + 1 + len;
        Ok(Head { at, initial, argument })
    }

    /// Reads the head of an item.
    pub(super) fn head(&mut self) -> Read<Head> {
        let head = self.head_or_break()?;
        if head.is_break() { Err(head.fault(CborErrorKind::UnexpectedBreak).into()) } else { Ok(head) }
    }

    /// Reads the head of the next item of a container of indefinite length, or its end.
    pub(super) fn head_before_break(&mut self) -> Read<Option<Head>> {
        self.head_or_break().map(|head| (!head.is_break()).then_some(head))
    }

    /// Checks that `items` items of one byte each can follow a head.
    pub(super) fn expect(&self, head: Head, items: u64) -> Read<()> {
        let (rest, len) = (self.rest().len() as u64, (self.at - head.at) as u64);
        if items <= rest {
            return Ok(());
        }
        Err(head.fault(CborErrorKind::Truncated { need: items.saturating_add(len), have: rest + len }).into())
    }

    /// Reads the bytes of a string of definite length.
    pub(super) fn string(&mut self, head: Head) -> Read<&'a [u8]> {
        self.expect(head, head.argument)?;
        let taken = usize::try_from(head.argument).ok().and_then(|len| self.rest().get(..len));
        let taken = taken.unwrap_or_default();
        self.at += taken.len();
        Ok(taken)
    }

    /// Reads the next part of a string of indefinite length, or its end.
    pub(super) fn chunk(&mut self, head: Head) -> Read<Option<(Head, &'a [u8])>> {
        let Some(part) = self.head_before_break()? else { return Ok(None) };
        if part.major() != head.major() || part.is_indefinite() {
            return Err(part.fault(CborErrorKind::Chunk(part.initial)).into());
        }
        Ok(Some((part, self.string(part)?)))
    }
}

/// A big-endian number of `N` bytes; 0 if there are fewer.
fn be<const N: usize>(bytes: &[u8]) -> u64 {
    bytes.first_chunk::<N>().map_or(0, |bytes| bytes.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
}
