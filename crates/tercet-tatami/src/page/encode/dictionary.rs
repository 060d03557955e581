//! The value dictionary of a column.
//!
//! The new values of a page are added tentatively, and removed again if another encoding is shorter. Codes are assigned in
//! order of first use, so that the output does not depend on hashing.

#[cfg(test)]
mod tests;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use tercet_codec::ints::{self, Integer, Scheme};
use tercet_codec::varint;

use super::encoding_of;
use crate::error::ErrorKind;
use crate::schema::Type;
use crate::writer::WriterOptions;

/// Candidate schemes for codes.
const CODE_CASCADE: [Scheme; 5] =
    [Scheme::BitpackFor, Scheme::Delta, Scheme::Rle, Scheme::GroupVarint, Scheme::Pfor];

/// Values of the dictionaries of all columns …
const MAX_TOTAL_BYTES: u64 = 256 << 20;
/// … of which each column has at least this share.
const MIN_SHARE_BYTES: u64 = 64 << 10;

/// Maximum number of pieces in a sample of a page …
const MAX_PIECES: usize = 64;
/// … minimum …
const MIN_PIECES: usize = 16;
/// … and number of values in each.
const PIECE_LEN: usize = 64;

/// The values of a column with codes.
#[derive(Debug)]
pub(crate) struct ValueDictionary {
    entries: Entries,
    /// Open addressing: code + 1, or 0 for an empty slot. Always at most half full.
    slots: Vec<u32>,
    /// Random key, so that inputs cannot be crafted to collide.
    seed: u64,
    /// Length of the values in PLAIN.
    plain_bytes: u64,
    max_values: usize,
    max_bytes: u64,
    /// Whether any page uses it.
    used: bool,
}

/// A page whose new values were added tentatively; kept or rolled back before the next one.
#[derive(Debug)]
pub(super) struct Trial {
    codes: Vec<u32>,
    inner: Scheme,
    /// Encoded length of the page and of its new values.
    pub(super) bytes: u64,
    /// Number and length of the values before the trial.
    before: (usize, u64),
}

/// Values in the order of their codes.
#[derive(Debug)]
enum Entries {
    /// Bit patterns and their width in PLAIN.
    Numbers { keys: Vec<u64>, width: usize },
    /// Concatenated bytes and the end of each value.
    Strings { bytes: Vec<u8>, ends: Vec<usize> },
}

impl Entries {
    fn len(&self) -> usize {
        match self {
            Self::Numbers { keys, .. } => keys.len(),
            Self::Strings { ends, .. } => ends.len(),
        }
    }
}

impl ValueDictionary {
    /// An empty dictionary; `None` for unsupported types.
    ///
    /// `columns` is the number of columns, which share the memory.
    pub(super) fn new(kind: Type, options: &WriterOptions, columns: usize) -> Option<Self> {
        let share = (MAX_TOTAL_BYTES / columns.max(1) as u64).max(MIN_SHARE_BYTES);
        let entries = match (kind, kind.width()) {
            (_, Some(width)) => Entries::Numbers { keys: Vec::new(), width },
            (Type::String | Type::Bytes, _) => Entries::Strings { bytes: Vec::new(), ends: Vec::new() },
            _ => return None,
        };
        Some(Self {
            entries,
            slots: vec![0; 64],
            seed: RandomState::new().build_hasher().finish(),
            plain_bytes: 0,
            max_values: usize::try_from(options.dictionary_max_values).unwrap_or(usize::MAX),
            max_bytes: u64::from(options.dictionary_max_bytes).min(share),
            used: false,
        })
    }

    /// The record, if a page uses it: `uvarint count`, then the values in PLAIN.
    pub(crate) fn payload(&self) -> Option<Vec<u8>> {
        if !self.used {
            return None;
        }
        let mut out = Vec::new();
        varint::put(self.entries.len() as u64, &mut out);
        match &self.entries {
            Entries::Numbers { keys, width } => {
                for key in keys {
                    out.extend_from_slice(&key.to_le_bytes()[..*width]);
                }
            }
            Entries::Strings { bytes, ends } => {
                let mut start = 0;
                for end in ends {
                    varint::put((end - start) as u64, &mut out);
                    out.extend_from_slice(&bytes[start..*end]);
                    start = *end;
                }
            }
        }
        Some(out)
    }

    /// Tries to encode numbers; `None` if page and new values would take `best` bytes or more.
    pub(super) fn try_numbers<T: Integer>(&mut self, values: &[T], best: u64) -> Option<Trial> {
        let known = |this: &Self, value: &T| this.find_number(value.widen());
        let width = |_: &T| size_of::<T>() as u64;
        if self.is_unpromising(
            values,
            best,
            known,
            |this, value| hash_number(this.seed, value.widen()),
            width,
        ) {
            return None;
        }
        let before = self.mark();
        let codes = self.number_codes(values, best);
        self.trial(before, codes, best)
    }

    /// Tries to encode strings; `None` if page and new values would take `best` bytes or more.
    pub(super) fn try_strings(&mut self, values: &[&[u8]], best: u64) -> Option<Trial> {
        let known = |this: &Self, value: &&[u8]| this.find_string(value);
        let width = |value: &&[u8]| value.len() as u64 + varint::len(value.len() as u64) as u64;
        if self.is_unpromising(values, best, known, |this, value| hash_string(this.seed, value), width) {
            return None;
        }
        let before = self.mark();
        let codes = self.string_codes(values, best);
        self.trial(before, codes, best)
    }

    fn mark(&self) -> (usize, u64) {
        (self.entries.len(), self.plain_bytes)
    }

    fn trial(&mut self, before: (usize, u64), codes: Option<Vec<u32>>, best: u64) -> Option<Trial> {
        if let Some(codes) = codes {
            let (inner, inner_bytes) = ints::choose(&codes, &CODE_CASCADE);
            let bytes = self.plain_bytes - before.1 + 1 + inner_bytes;
            let trial = Trial { codes, inner, bytes, before };
            if bytes < best {
                return Some(trial);
            }
        }
        self.truncate(before);
        None
    }

    /// Appends the codes of a trial.
    pub(super) fn keep(&mut self, trial: &Trial, out: &mut Vec<u8>) -> Result<(), ErrorKind> {
        self.used = true;
        out.push(encoding_of(trial.inner).id());
        Ok(ints::encode(trial.inner, &trial.codes, out)?)
    }

    /// Rolls back a trial.
    pub(super) fn roll_back(&mut self, trial: &Trial) {
        self.truncate(trial.before);
    }

    /// Whether a sample shows that a page has too many new values.
    ///
    /// The sample consists of short pieces of the entire page, so that neither runs nor distant repeats are missed. Of `s`
    /// values drawn from `c` distinct ones, about `s·g(s/c)` are distinct, with `g(x) = 1 / (1 + x/2 + x²/12)`.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        clippy::cast_possible_truncation,
        reason = "an estimate"
    )]
    fn is_unpromising<V>(
        &self,
        values: &[V],
        best: u64,
        find: impl Fn(&Self, &V) -> bool,
        hash: impl Fn(&Self, &V) -> u64,
        width: impl Fn(&V) -> u64,
    ) -> bool {
        let pieces = (values.len() / (4 * PIECE_LEN)).min(MAX_PIECES);
        if pieces < MIN_PIECES {
            return false;
        }
        let mut seen: Vec<u64> = Vec::with_capacity(pieces * PIECE_LEN);
        let mut bytes = 0;
        for piece in 0..pieces {
            let start = piece * (values.len() - PIECE_LEN) / (pieces - 1);
            for value in &values[start..start + PIECE_LEN] {
                if !find(self, value) {
                    seen.push(hash(self, value));
                    bytes += width(value);
                }
            }
        }
        let drawn = seen.len() as f64;
        seen.sort_unstable();
        seen.dedup();
        let different = seen.len() as f64;
        if different * 2.0 < drawn || seen.is_empty() {
            return false;
        }
        // Only arithmetic that rounds the same on every machine, because the result affects the output.
        let per_value = ((drawn / different - 1.0) / 3.0 + 0.25).sqrt() * 6.0 - 3.0;
        let new_rows = values.len() as f64 * drawn / (pieces * PIECE_LEN) as f64;
        let x = per_value * new_rows / drawn;
        let new_values = new_rows / (1.0 + x / 2.0 + x * x / 12.0);
        let code_bits = 64 - (self.entries.len() as u64 + new_values as u64).leading_zeros();
        let cost = new_values * bytes as f64 / drawn + values.len() as f64 * f64::from(code_bits) / 8.0;
        // If no value of the sample repeats, hardly any does: draws from half as many values would repeat dozens of times.
        let room = if seen.len() as f64 >= drawn { 1.0 } else { 1.25 };
        cost > best as f64 * room
    }

    fn find_number(&self, key: u64) -> bool {
        let Entries::Numbers { keys, .. } = &self.entries else { return false };
        let mut slot = self.home(hash_number(self.seed, key));
        while self.slots[slot] != 0 {
            if keys[self.slots[slot] as usize - 1] == key {
                return true;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        false
    }

    fn find_string(&self, value: &[u8]) -> bool {
        let Entries::Strings { bytes, ends } = &self.entries else { return false };
        let mut slot = self.home(hash_string(self.seed, value));
        while self.slots[slot] != 0 {
            if text(bytes, ends, self.slots[slot] as usize - 1) == value {
                return true;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        false
    }

    /// Whether a new value of this length may be added: within the limits, and the page can still be shorter.
    fn admit(&mut self, plain_len: u64, page_start: u64, best: u64) -> bool {
        let total = self.plain_bytes + plain_len;
        let fits = self.entries.len() < self.max_values && total <= self.max_bytes;
        if !fits || total - page_start >= best {
            return false;
        }
        self.plain_bytes = total;
        if (self.entries.len() + 1) * 2 > self.slots.len() {
            self.grow();
        }
        true
    }

    fn number_codes<T: Integer>(&mut self, values: &[T], best: u64) -> Option<Vec<u32>> {
        let page_start = self.plain_bytes;
        let mut codes = Vec::with_capacity(values.len());
        // Consecutive values are often equal.
        let mut last = None;
        for value in values {
            let key = value.widen();
            if let Some((_, code)) = last.filter(|(last, _)| *last == key) {
                codes.push(code);
                continue;
            }
            let mut slot = self.home(hash_number(self.seed, key));
            let code = loop {
                let Entries::Numbers { keys, width } = &mut self.entries else { return None };
                match self.slots[slot] {
                    0 => {
                        let width = *width as u64;
                        if !self.admit(width, page_start, best) {
                            return None;
                        }
                        let code = self.insert(hash_number(self.seed, key));
                        if let Entries::Numbers { keys, .. } = &mut self.entries {
                            keys.push(key);
                        }
                        break code;
                    }
                    used if keys[used as usize - 1] == key => break used - 1,
                    _ => slot = (slot + 1) & (self.slots.len() - 1),
                }
            };
            last = Some((key, code));
            codes.push(code);
        }
        Some(codes)
    }

    fn string_codes(&mut self, values: &[&[u8]], best: u64) -> Option<Vec<u32>> {
        let page_start = self.plain_bytes;
        let mut codes = Vec::with_capacity(values.len());
        let mut last: Option<(&[u8], u32)> = None;
        for &value in values {
            if let Some((_, code)) = last.filter(|(last, _)| *last == value) {
                codes.push(code);
                continue;
            }
            let hash = hash_string(self.seed, value);
            let mut slot = self.home(hash);
            let code = loop {
                let Entries::Strings { bytes, ends } = &self.entries else { return None };
                match self.slots[slot] {
                    0 => {
                        let len = value.len() as u64;
                        if !self.admit(len + varint::len(len) as u64, page_start, best) {
                            return None;
                        }
                        let code = self.insert(hash);
                        if let Entries::Strings { bytes, ends } = &mut self.entries {
                            bytes.extend_from_slice(value);
                            ends.push(bytes.len());
                        }
                        break code;
                    }
                    used if text(bytes, ends, used as usize - 1) == value => break used - 1,
                    _ => slot = (slot + 1) & (self.slots.len() - 1),
                }
            };
            last = Some((value, code));
            codes.push(code);
        }
        Some(codes)
    }

    #[expect(clippy::cast_possible_truncation, reason = "truncated to the number of slots")]
    fn home(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    /// Inserts the next code into the next free slot of a hash.
    fn insert(&mut self, hash: u64) -> u32 {
        let mut slot = self.home(hash);
        while self.slots[slot] != 0 {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        // There are at most 2³² - 1 values, as the option is a `u32`.
        let code = u32::try_from(self.entries.len()).unwrap_or(u32::MAX - 1);
        self.slots[slot] = code + 1;
        code
    }

    fn hash_of(&self, code: usize) -> u64 {
        match &self.entries {
            Entries::Numbers { keys, .. } => hash_number(self.seed, keys[code]),
            Entries::Strings { bytes, ends } => hash_string(self.seed, text(bytes, ends, code)),
        }
    }

    /// Doubles the slots. Codes are inserted in order, so that the newest stays last in its probe chain.
    fn grow(&mut self) {
        let len = self.slots.len() * 2;
        self.slots.clear();
        self.slots.resize(len, 0);
        for code in 0..self.entries.len() {
            let mut slot = self.home(self.hash_of(code));
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (self.slots.len() - 1);
            }
            self.slots[slot] = u32::try_from(code + 1).unwrap_or(u32::MAX);
        }
    }

    /// Removes the newest values down to `len`. The newest is last in its probe chain, so its slot can be freed.
    fn truncate(&mut self, (len, plain_bytes): (usize, u64)) {
        self.plain_bytes = plain_bytes;
        while self.entries.len() > len {
            let code = self.entries.len() - 1;
            let mut slot = self.home(self.hash_of(code));
            while self.slots[slot] as usize != code + 1 {
                slot = (slot + 1) & (self.slots.len() - 1);
            }
            self.slots[slot] = 0;
            match &mut self.entries {
                Entries::Numbers { keys, .. } => keys.truncate(code),
                Entries::Strings { bytes, ends } => {
                    ends.truncate(code);
                    bytes.truncate(ends.last().copied().unwrap_or(0));
                }
            }
        }
    }
}

fn text<'a>(bytes: &'a [u8], ends: &[usize], code: usize) -> &'a [u8] {
    let start = if code == 0 { 0 } else { ends[code - 1] };
    &bytes[start..ends[code]]
}

const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// Folded multiply: every input bit affects the low bits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the two halves of a product")]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[inline]
fn hash_number(seed: u64, key: u64) -> u64 {
    fold(key ^ seed, MIX)
}

#[inline]
fn hash_string(seed: u64, text: &[u8]) -> u64 {
    let mut hash = seed ^ text.len() as u64;
    let (words, rest) = text.as_chunks::<8>();
    for word in words {
        hash = fold(hash ^ u64::from_le_bytes(*word), MIX);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    fold(hash ^ u64::from_le_bytes(last), MIX ^ seed)
}
