//! Bits, most significant first.
//!
//! Readers have no state: a position is a number, and a window of the bits behind it is one unaligned load. That keeps
//! loads of later bits independent of earlier ones, so the processor overlaps them. Behind the end there are zeros;
//! whoever walks compares the position with the length once per block.

/// The bits behind `at` from the top down: 57 at least, zeros behind the end.
#[inline(always)]
pub(super) fn window(stored: &[u8], at: u64) -> u64 {
    u64::from_be_bytes(eight(stored, at)) << (at & 7)
}

/// The bits behind `at` from the bottom up: 57 at least, zeros behind them and behind the end.
#[inline(always)]
pub(super) fn window_upwards(stored: &[u8], at: u64) -> u64 {
    u64::from_be_bytes(eight(stored, at)).reverse_bits() >> (at & 7)
}

/// Eight bytes from the one that holds bit `at`.
#[inline(always)]
fn eight(stored: &[u8], at: u64) -> [u8; 8] {
    // Positions stay within the stream or a little behind it; what does not fit a pointer is behind every slice.
    let byte = usize::try_from(at >> 3).unwrap_or(usize::MAX);
    match stored.get(byte..).and_then(<[u8]>::first_chunk) {
        Some(bytes) => *bytes,
        None => eight_at_the_end(stored, byte),
    }
}

#[cold]
fn eight_at_the_end(stored: &[u8], byte: usize) -> [u8; 8] {
    let mut bytes = [0; 8];
    let left = stored.get(byte..).unwrap_or_default();
    bytes[..left.len()].copy_from_slice(left);
    bytes
}

/// Zeros before the next one behind `at`, and the position behind that one.
#[inline(always)]
pub(super) fn unary(stored: &[u8], at: u64) -> Option<(u64, u64)> {
    let mut from = at;
    loop {
        let word = window(stored, from);
        if word != 0 {
            let end = from + u64::from(word.leading_zeros()) + 1;
            return Some((end - 1 - at, end));
        }
        from += 57;
        if from >= stored.len() as u64 * 8 {
            return None;
        }
    }
}

/// Collects bits.
///
/// They go into a buffer that [`Writer::reserve`] makes: every [`Writer::put`] stores eight bytes without asking how many
/// of them are new. [`Writer::flush`] hands the whole ones on.
#[derive(Debug, Default)]
pub(super) struct Writer {
    buffer: Vec<u8>,
    /// Bytes handed on.
    flushed: u64,
    /// Whole bytes in the buffer.
    whole: usize,
    /// Bits behind the whole bytes, from the top down.
    pending: u64,
    /// How many there are, fewer than 8.
    count: u32,
}

/// The most bits that can be put at once.
pub(super) const MOST: u32 = 56;

impl Writer {
    /// Bits written.
    pub(super) fn position(&self) -> u64 {
        (self.flushed + self.whole as u64) * 8 + u64::from(self.count)
    }

    /// Makes room for the bits of so many bytes; says how many bytes could not be had.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<(), u64> {
        // A store of eight bytes may begin with the last of them.
        let needed = self.whole + bytes + 16;
        if needed > self.buffer.len() {
            let more = needed - self.buffer.len();
            self.buffer.try_reserve_exact(more).map_err(|_| more as u64)?;
            self.buffer.resize(needed, 0);
        }
        Ok(())
    }

    /// Appends the `count` low bits of `value`, at most [`MOST`]; the others must be zero. The room must be reserved.
    #[inline(always)]
    pub(super) fn put(&mut self, value: u64, count: u32) {
        debug_assert!(count <= MOST && (value >> count) == 0, "{count} bits of {value:#x}");
        // Two shifts, because one by 64 is none when nothing is to be put.
        self.pending |= value << 1 << (63 - self.count - count);
        self.count += count;
        self.buffer[self.whole..self.whole + 8].copy_from_slice(&self.pending.to_be_bytes());
        let full = self.count & !7;
        self.whole += full as usize / 8;
        self.pending <<= full;
        self.count &= 7;
    }

    /// Appends `zeros` zeros and a one.
    #[inline(always)]
    pub(super) fn put_unary(&mut self, mut zeros: u64) {
        while zeros >= u64::from(MOST) {
            self.put(0, MOST);
            zeros -= u64::from(MOST);
        }
        self.put(1, zeros as u32 + 1);
    }

    /// Appends the whole bytes to `out`; says how many bytes could not be had.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) -> Result<(), u64> {
        out.try_reserve(self.whole + 1).map_err(|_| self.whole as u64 + 1)?;
        out.extend_from_slice(&self.buffer[..self.whole]);
        self.flushed += self.whole as u64;
        self.whole = 0;
        Ok(())
    }

    /// Completes the last byte by zeros and appends what is left to `out`; says how many bytes could not be had.
    pub(super) fn finish(mut self, out: &mut Vec<u8>) -> Result<(), u64> {
        self.flush(out)?;
        if self.count > 0 {
            out.push(self.pending.to_be_bytes()[0]);
        }
        Ok(())
    }
}
