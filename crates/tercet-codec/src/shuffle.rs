//! Byte shuffle: the first bytes of all elements, then all second bytes, and so on.
//!
//! ```text
//! elements of 4 bytes    a0 a1 a2 a3  b0 b1 b2 b3  c0 c1 c2 c3
//! shuffled               a0 b0 c0  a1 b1 c1  a2 b2 c2  a3 b3 c3       four planes
//! ```
//!
//! ```
//! let mut planes = [0; 6];
//! tercet_codec::shuffle::shuffle(b"aAbBcC", 2, &mut planes).unwrap();
//! assert_eq!(&planes, b"abcABC");
//! ```

mod arch;
mod blocks;
#[cfg(test)]
mod tests;
mod three;
mod tiles;

use rayon::prelude::*;

use crate::CodecError;

/// Elements per task.
const PIECE: usize = 1 << 14;

/// Inputs below this size are not worth another thread.
const WORTH_SPLITTING: usize = 1 << 19;

/// Planes written together when there are many: as many as a cache line has bytes.
const PLANES: usize = 64;

/// Number of elements below which the order of reading does not matter.
const FEW: usize = 16;

/// Shuffles `raw`, elements of `size` bytes, into `out` of the same length.
pub fn shuffle(raw: &[u8], size: usize, out: &mut [u8]) -> Result<(), CodecError> {
    let count = elements(raw, size)?;
    if raw.len() != out.len() {
        return Err(wrong_length(raw.len(), out.len()));
    }
    if size == 1 || count <= 1 {
        out.copy_from_slice(raw);
    } else if count < FEW {
        for (byte, plane) in out.chunks_exact_mut(count).enumerate() {
            plane.iter_mut().zip(raw[byte..].iter().step_by(size)).for_each(|(to, from)| *to = *from);
        }
    } else if size > PLANES {
        let group = |(index, group): (usize, &mut [u8])| {
            let mut planes: Vec<_> = group.chunks_exact_mut(count).collect();
            tiles::split(raw, size, index * PLANES, &mut planes);
        };
        if is_worth_splitting(raw) {
            out.par_chunks_mut(PLANES * count).enumerate().for_each(group);
        } else {
            out.chunks_mut(PLANES * count).enumerate().for_each(group);
        }
    } else if is_worth_splitting(raw) {
        // Every task gets its part of every plane.
        let mut planes: Vec<_> = out.chunks_exact_mut(count).map(|plane| plane.chunks_mut(PIECE)).collect();
        let pieces: Vec<_> = raw
            .chunks(PIECE * size)
            .map(|piece| (piece, planes.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>()))
            .collect();
        pieces.into_par_iter().for_each(|(piece, mut planes)| split(piece, size, &mut planes));
    } else {
        split(raw, size, &mut out.chunks_exact_mut(count).collect::<Vec<_>>());
    }
    Ok(())
}

/// Unshuffles `stored` into `out` of the same length.
pub fn unshuffle(stored: &[u8], size: usize, out: &mut [u8]) -> Result<(), CodecError> {
    if stored.len() != out.len() {
        return Err(wrong_length(stored.len(), out.len()));
    }
    unshuffle_range(stored, size, 0, out)
}

/// Unshuffles the elements from number `first` on, as many as fill `out`. `stored` is the shuffled form of all elements.
pub fn unshuffle_range(stored: &[u8], size: usize, first: u64, out: &mut [u8]) -> Result<(), CodecError> {
    let (count, wanted) = (elements(stored, size)?, elements(out, size)?);
    let planes = match usize::try_from(first) {
        Ok(first) if first <= count && wanted <= count - first => Planes { stored, count, first },
        _ => {
            return Err(CodecError::Parameter {
                codec: "shuffle",
                name: "a range of",
                found: format!("{wanted} elements from number {first} on"),
                allowed: "it must be inside the stored elements",
            });
        }
    };
    if size == 1 {
        out.copy_from_slice(planes.plane(0, wanted));
    } else if is_worth_splitting(out) {
        // Tasks of wide elements have fewer of them.
        let piece = (PIECE * 8 / size).clamp(FEW, PIECE).next_multiple_of(FEW);
        out.par_chunks_mut(piece.saturating_mul(size))
            .enumerate()
            .for_each(|(index, out)| join(&planes.skip(index * piece), size, out));
    } else {
        join(&planes, size, out);
    }
    Ok(())
}

/// The planes of shuffled elements, from an element on.
struct Planes<'a> {
    stored: &'a [u8],
    /// The elements of each plane.
    count: usize,
    first: usize,
}

impl<'a> Planes<'a> {
    /// The next `len` bytes of a plane.
    fn plane(&self, byte: usize, len: usize) -> &'a [u8] {
        &self.stored[byte * self.count + self.first..][..len]
    }

    /// The planes after `elements` more elements.
    fn skip(&self, elements: usize) -> Self {
        Self { first: self.first + elements, ..*self }
    }
}

/// Shuffles elements of at most [`PLANES`] bytes to as many planes.
fn split(raw: &[u8], size: usize, planes: &mut [&mut [u8]]) {
    let done = match size {
        2 => blocks::split::<arch::Vector, 2>(raw, planes),
        3 => three::split(raw, planes),
        4 => blocks::split::<arch::Vector, 4>(raw, planes),
        8 => blocks::split::<arch::Vector, 8>(raw, planes),
        16 => blocks::split::<arch::Vector, 16>(raw, planes),
        _ => 0,
    };
    let mut rest: Vec<_> = planes.iter_mut().map(|plane| &mut plane[done..]).collect();
    tiles::split(&raw[done * size..], size, 0, &mut rest);
}

/// Unshuffles elements from planes.
fn join(planes: &Planes<'_>, size: usize, out: &mut [u8]) {
    let done = match size {
        2 => blocks::join::<arch::Vector, 2>(planes, out),
        3 => three::join(planes, out),
        4 => blocks::join::<arch::Vector, 4>(planes, out),
        8 => blocks::join::<arch::Vector, 8>(planes, out),
        16 => blocks::join::<arch::Vector, 16>(planes, out),
        _ => 0,
    };
    tiles::join(&planes.skip(done), size, &mut out[done * size..]);
}

/// The number of elements in `bytes`.
fn elements(bytes: &[u8], size: usize) -> Result<usize, CodecError> {
    if size > 0 && bytes.len().is_multiple_of(size) {
        return Ok(bytes.len() / size);
    }
    Err(CodecError::Parameter {
        codec: "shuffle",
        name: "elements of a size of",
        found: format!("{size} bytes in {} bytes", bytes.len()),
        allowed: "the size must divide the length",
    })
}

fn wrong_length(expected: usize, found: usize) -> CodecError {
    CodecError::WrongLength { codec: "shuffle", expected: expected as u64, found: found as u64 }
}

fn is_worth_splitting(bytes: &[u8]) -> bool {
    bytes.len() >= WORTH_SPLITTING && rayon::current_num_threads() > 1
}
