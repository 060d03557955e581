//! Portable conversion of single values, also used at the ends of the vector loops.

use super::VALUE;

/// Parameters of the conversion to integers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forward {
    pub(super) reference: f64,
    pub(super) scale: f64,
    /// Maximum integer.
    pub(super) max: u64,
    pub(super) bits: u32,
}

/// Parameters of the conversion to values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backward {
    pub(super) reference: f64,
    pub(super) scale: f64,
    pub(super) bits: u32,
}

/// The largest double below one half.
///
/// Adding it and truncating rounds halves away from zero: the sum of a number just below a half stays below one, where the
/// sum with one half itself would round up, and integers of any size are unchanged.
pub(super) const ALMOST_HALF: f64 = 0.5 - f64::EPSILON / 4.0;

impl Forward {
    /// The integer of a value.
    pub(super) fn integer(&self, value: f64) -> u64 {
        let scaled = (value - self.reference) * self.scale;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "cuts the fraction and saturates, both on purpose"
        )]
        let rounded = (scaled + ALMOST_HALF) as u64;
        rounded.min(self.max)
    }
}

impl Backward {
    /// The value of an integer.
    pub(super) fn value(&self, integer: u64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "the format rounds integers beyond 2^53 to doubles")]
        let integer = integer as f64;
        self.reference + self.scale * integer
    }
}

/// Packs `values` and returns whether all of them are finite. `packed` starts on a whole byte and has room for all.
pub(super) fn pack(rule: &Forward, values: &[u8], packed: &mut [u8]) -> bool {
    let mut out = BitWriter::new(packed);
    let all_finite = pack_into(rule, values, &mut out);
    out.finish();
    all_finite
}

/// Appends the integers of `values` and returns whether all values are finite.
pub(super) fn pack_into(rule: &Forward, values: &[u8], out: &mut BitWriter<'_>) -> bool {
    let mut all_finite = true;
    for bytes in values.as_chunks::<VALUE>().0 {
        let value = f64::from_le_bytes(*bytes);
        all_finite &= value.is_finite();
        out.push(rule.integer(value), rule.bits);
    }
    all_finite
}

/// Unpacks values that start on a whole byte of `packed`.
pub(super) fn unpack(rule: &Backward, packed: &[u8], values: &mut [u8]) {
    unpack_at(rule, packed, 0, values);
}

/// Unpacks values that start at value number `first` of `packed`, most of them with `kernel`, which expects them on a
/// whole byte.
#[expect(clippy::cast_possible_truncation, reason = "positions in memory, checked before")]
pub(super) fn unpack_from(
    rule: &Backward,
    packed: &[u8],
    first: u64,
    values: &mut [u8],
    kernel: impl Fn(&Backward, &[u8], &mut [u8]),
) {
    if rule.bits == 0 {
        values.as_chunks_mut::<VALUE>().0.fill(rule.reference.to_le_bytes());
        return;
    }
    // Eight values are whole bytes at every width.
    let head = (8 - first % 8) % 8 * VALUE as u64;
    let (head, rest) = values.split_at_mut((head as usize).min(values.len()));
    let start = u128::from(first) * u128::from(rule.bits);
    let (byte, bit) = ((start / 8) as usize, (start % 8) as usize);
    unpack_at(rule, &packed[byte.min(packed.len())..], bit, head);
    let bytes = (bit + head.len() / VALUE * rule.bits as usize) / 8;
    let start = byte.saturating_add(bytes).min(packed.len());
    kernel(rule, &packed[start..], rest);
}

fn unpack_at(rule: &Backward, packed: &[u8], first_bit: usize, values: &mut [u8]) {
    let mut bit = first_bit;
    for bytes in values.as_chunks_mut::<VALUE>().0 {
        *bytes = rule.value(integer_at(packed, bit, rule.bits)).to_le_bytes();
        bit += rule.bits as usize;
    }
}

/// The integer of `bits` bits (at least 1) that starts at bit `at`; bits past the end are zero.
fn integer_at(packed: &[u8], at: usize, bits: u32) -> u64 {
    let (byte, skip) = (at / 8, at % 8);
    let rest = packed.get(byte..).unwrap_or_default();
    let word = match rest.first_chunk() {
        Some(word) => u64::from_be_bytes(*word),
        None => rest.iter().rev().fold(0, |word, &byte| word >> 8 | u64::from(byte) << 56),
    };
    let mut window = word << skip;
    if skip + bits as usize > 64 {
        window |= u64::from(rest.get(8).copied().unwrap_or(0)) >> (8 - skip);
    }
    window >> (u64::BITS - bits)
}

/// Writer of consecutive integers, most significant bit first.
pub(super) struct BitWriter<'a> {
    words: std::slice::IterMut<'a, [u8; 8]>,
    /// The bytes after the last whole word.
    rest: &'a mut [u8],
    /// The current word, filled from its most significant bit.
    word: u64,
    filled: u32,
}

impl<'a> BitWriter<'a> {
    pub(super) fn new(out: &'a mut [u8]) -> Self {
        let (words, rest) = out.as_chunks_mut::<8>();
        Self { words: words.iter_mut(), rest, word: 0, filled: 0 }
    }

    /// Appends the lowest `bits` bits (1 to 64) of `integer`, which has no others set.
    #[inline]
    pub(super) fn push(&mut self, integer: u64, bits: u32) {
        let free = u64::BITS - self.filled;
        if bits < free {
            self.word |= integer << (free - bits);
            self.filled += bits;
            return;
        }
        let left = bits - free;
        if let Some(word) = self.words.next() {
            *word = (self.word | integer >> left).to_be_bytes();
        }
        self.word = integer.unbounded_shl(u64::BITS - left);
        self.filled = left;
    }

    /// Writes the rest; the spare bits of the last byte are zero.
    pub(super) fn finish(mut self) {
        if self.filled > 0
            && let Some(word) = self.words.next()
        {
            *word = self.word.to_be_bytes();
            return;
        }
        for (byte, from) in self.rest.iter_mut().zip(self.word.to_be_bytes()) {
            *byte = from;
        }
    }
}
