//! Bit reader and writer, most significant bit first.
//!
//! Readers are stateless: a position is a number, and a window of the bits from it on is one unaligned load. Loads of later
//! bits are independent of earlier ones, so the CPU overlaps them. Past the end there are zeros; callers compare the
//! position with the length once per block.

/// The bits from `at` on, from the top down: at least 57, zeros past the end.
#[inline(always)]
pub(super) fn window(stored: &[u8], at: u64) -> u64 {
    u64::from_be_bytes(eight(stored, at)) << (at & 7)
}

/// The bits from `at` on, from the bottom up: at least 57, zeros after them and past the end.
#[inline(always)]
pub(super) fn window_upwards(stored: &[u8], at: u64) -> u64 {
    u64::from_be_bytes(eight(stored, at)).reverse_bits() >> (at & 7)
}

/// Eight bytes from the one that contains bit `at`.
#[inline(always)]
fn eight(stored: &[u8], at: u64) -> [u8; 8] {
    // Positions stay within the stream or slightly past it; larger ones are past every slice.
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

/// Number of zeros before the next one from `at` on, and the position after that one.
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

/// Bit writer.
///
/// Writes to a buffer of [`Writer::reserve`]: every [`Writer::put`] stores eight bytes regardless of how many of them are
/// new. [`Writer::flush`] appends the whole bytes to the output.
#[derive(Debug, Default)]
pub(super) struct Writer {
    buffer: Vec<u8>,
    /// Bytes flushed.
    flushed: u64,
    /// Whole bytes in the buffer.
    whole: usize,
    /// Bits after the whole bytes, from the top down.
    pending: u64,
    /// Number of these bits, fewer than 8.
    count: u32,
}

/// Maximum number of bits per call.
pub(super) const MAX_PUT: u32 = 56;

impl Writer {
    /// Number of bits written.
    pub(super) fn position(&self) -> u64 {
        (self.flushed + self.whole as u64) * 8 + u64::from(self.count)
    }

    /// Reserves room for the bits of `N` bytes; the error is the number of bytes that could not be allocated.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<(), u64> {
        // A store of eight bytes may start at the last of them.
        let needed = self.whole + bytes + 16;
        if needed > self.buffer.len() {
            let more = needed - self.buffer.len();
            self.buffer.try_reserve_exact(more).map_err(|_| more as u64)?;
            self.buffer.resize(needed, 0);
        }
        Ok(())
    }

    /// Appends the `count` low bits of `value`, at most [`MAX_PUT`]; the others must be zero. The room must be reserved.
    #[inline(always)]
    pub(super) fn put(&mut self, value: u64, count: u32) {
        debug_assert!(count <= MAX_PUT && (value >> count) == 0, "{count} bits of {value:#x}");
        // Two shifts: a shift by 64 is undefined.
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
        while zeros >= u64::from(MAX_PUT) {
            self.put(0, MAX_PUT);
            zeros -= u64::from(MAX_PUT);
        }
        self.put(1, zeros as u32 + 1);
    }

    /// Appends the whole bytes to `out`; the error is the number of bytes that could not be allocated.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) -> Result<(), u64> {
        out.try_reserve(self.whole + 1).map_err(|_| self.whole as u64 + 1)?;
        out.extend_from_slice(&self.buffer[..self.whole]);
        self.flushed += self.whole as u64;
        self.whole = 0;
        Ok(())
    }

    /// Pads the last byte with zeros and appends the rest to `out`; the error is the number of bytes that could not be allocated.
    pub(super) fn finish(mut self, out: &mut Vec<u8>) -> Result<(), u64> {
        self.flush(out)?;
        if self.count > 0 {
            out.push(self.pending.to_be_bytes()[0]);
        }
        Ok(())
    }
}
