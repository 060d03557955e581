//! Non-finite values: detection, extraction into masks, restoration.
//!
//! A mask has one bit per element, the first in the highest bit of the first byte; the spare bits of the last byte are
//! zero. The kind of a complex element is that of its worse part: NaN before +Inf before -Inf. All bytes are little-endian.
//!
//! ```
//! use tercet_codec::finite::{self, Float, NonFinite};
//!
//! let mut bytes: Vec<u8> = [1.0f32, f32::NAN, 3.0].iter().flat_map(|v| v.to_le_bytes()).collect();
//! assert_eq!(finite::first(&bytes, Float::F32, false, false), Some((1, NonFinite::Nan)));
//! let masks = finite::extract_masks(&mut bytes, Float::F32).unwrap();
//! assert_eq!(masks.nan.as_deref(), Some(&[0b0100_0000][..]));
//! finite::restore(&mut bytes, Float::F32, NonFinite::Nan, &[0b0100_0000], 0);
//! assert_eq!(bytes[4..8], 0x7fc0_0000u32.to_le_bytes());
//! ```

mod arch;
mod lanes;
mod restore;
#[cfg(test)]
mod tests;

use std::fmt;

use rayon::prelude::*;

use crate::CodecError;
use lanes::{BLOCK, Kinds};
pub use restore::restore;
pub(crate) use restore::{pattern, restore_piece};

/// Elements per task: whole blocks that fit into the L2 cache.
pub(crate) const PIECE: usize = 1 << 14;

/// Inputs below this size are not worth another thread.
const WORTH_SPLITTING: usize = 1 << 19;

/// Element types that can be NaN or infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Float {
    /// IEEE half precision.
    F16,
    /// The upper half of a float32.
    Bf16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// Two float32, real part first.
    C64,
    /// Two float64, real part first.
    C128,
}

impl Float {
    /// The bytes of one element.
    pub fn width(self) -> usize {
        self.lane_width() * self.parts()
    }

    /// The numbers in one element.
    fn parts(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 | Self::F32 | Self::F64 => 1,
            Self::C64 | Self::C128 => 2,
        }
    }

    /// The bytes of one number.
    fn lane_width(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::C64 => 4,
            Self::F64 | Self::C128 => 8,
        }
    }
}

/// Kind of a non-finite number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonFinite {
    /// NaN of any sign and payload.
    Nan,
    /// Positive infinity.
    PosInf,
    /// Negative infinity.
    NegInf,
}

impl fmt::Display for NonFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nan => "NaN",
            Self::PosInf => "+Inf",
            Self::NegInf => "-Inf",
        })
    }
}

/// Positions of the non-finite elements: one mask per kind that occurs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Masks {
    /// NaN elements.
    pub nan: Option<Vec<u8>>,
    /// Positive infinities.
    pub pos_inf: Option<Vec<u8>>,
    /// Negative infinities.
    pub neg_inf: Option<Vec<u8>>,
}

/// The first non-finite element that is not allowed, and its kind. Bytes after the last whole element are ignored.
pub fn first(bytes: &[u8], float: Float, allow_nan: bool, allow_inf: bool) -> Option<(u64, NonFinite)> {
    if allow_nan && allow_inf {
        return None;
    }
    let whole = &bytes[..bytes.len() / float.width() * float.width()];
    let piece_len = PIECE * float.width();
    let in_piece = |(index, piece): (usize, &[u8])| {
        let (position, what) = first_in_piece(piece, float, allow_nan, allow_inf)?;
        Some(((index * PIECE + position) as u64, what))
    };
    if is_worth_splitting(whole) {
        whole.par_chunks(piece_len).enumerate().find_map_first(in_piece)
    } else {
        whole.chunks(piece_len).enumerate().find_map(in_piece)
    }
}

fn first_in_piece(
    piece: &[u8],
    float: Float,
    allow_nan: bool,
    allow_inf: bool,
) -> Option<(usize, NonFinite)> {
    piece.chunks(BLOCK * float.width()).enumerate().find_map(|(index, block)| {
        let (position, what) = lanes::kinds(block, float).without(allow_nan, allow_inf).first()?;
        Some((index * BLOCK + position, what))
    })
}

/// Replaces every non-finite element by +0.0 and returns the masks.
///
/// No mask is allocated for kinds that do not occur, and nothing is written while all elements are finite.
pub fn extract_masks(bytes: &mut [u8], float: Float) -> Result<Masks, CodecError> {
    if !bytes.len().is_multiple_of(float.width()) {
        return Err(CodecError::Parameter {
            codec: "a float mask",
            name: "a length of",
            found: format!("{} bytes", bytes.len()),
            allowed: "elements must be whole",
        });
    }
    let elements = bytes.len() / float.width();
    let piece_len = PIECE * float.width();
    let extract_masks = |piece: &mut [u8]| {
        let mut noted = PieceMasks::default();
        extract_masks_part(piece, float, &mut noted, 0)?;
        Ok(noted)
    };
    let pieces: Result<Vec<_>, CodecError> = if is_worth_splitting(bytes) {
        bytes.par_chunks_mut(piece_len).map(extract_masks).collect()
    } else {
        bytes.chunks_mut(piece_len).map(extract_masks).collect()
    };
    Masks::from_pieces(&pieces?, elements)
}

/// Extracts from a part of a piece; the part starts with block number `first` of the piece.
pub(crate) fn extract_masks_part(
    part: &mut [u8],
    float: Float,
    noted: &mut PieceMasks,
    first: usize,
) -> Result<(), CodecError> {
    for (index, block) in part.chunks_mut(BLOCK * float.width()).enumerate() {
        let kinds = lanes::kinds(block, float);
        if kinds.any() != 0 {
            restore::write(block, float, kinds.any(), 0);
            noted.note(first + index, kinds)?;
        }
    }
    Ok(())
}

/// Sets the masks for a part of a piece of float64; the part starts with block number `first` of the piece.
///
/// One byte per four values: the lower half marks non-finite values, the upper half NaN, the lowest bit the first
/// value.
pub(crate) fn add_masks(
    part: &[u8],
    seen: &[u8],
    noted: &mut PieceMasks,
    first: usize,
) -> Result<(), CodecError> {
    let blocks = part.chunks(BLOCK * 8).zip(seen.as_chunks::<{ BLOCK / 4 }>().0);
    for (index, (block, seen)) in blocks.enumerate() {
        let seen = u128::from_le_bytes(*seen);
        if seen != 0 {
            let (not_finite, nan) = (lanes::join_halves(seen), lanes::join_halves(seen >> 4));
            noted.note(first + index, lanes::tell_apart(block, Float::F64, not_finite, nan))?;
        }
    }
    Ok(())
}

/// The masks of one piece, NaN, +Inf, -Inf: empty until the kind occurs, then of the length of a whole piece.
///
/// Page faults of a large mask cost more than the scan: no mask is allocated that may stay empty.
#[derive(Default)]
pub(crate) struct PieceMasks([Vec<u8>; 3]);

impl PieceMasks {
    /// Sets the bits of block number `index`.
    fn note(&mut self, index: usize, kinds: Kinds) -> Result<(), CodecError> {
        for (row, word) in self.0.iter_mut().zip([kinds.nan, kinds.pos_inf, kinds.neg_inf]) {
            if word == 0 {
                continue;
            }
            if row.is_empty() {
                *row = with_room(PIECE / 8)?;
                row.resize(PIECE / 8, 0);
            }
            if let Some(bytes) = row.as_chunks_mut().0.get_mut(index) {
                *bytes = word.reverse_bits().to_be_bytes();
            }
        }
        Ok(())
    }
}

impl Masks {
    /// Joins the masks of all pieces of `elements` elements.
    pub(crate) fn from_pieces(pieces: &[PieceMasks], elements: usize) -> Result<Self, CodecError> {
        let join = |kind: usize| {
            if pieces.iter().all(|piece| piece.0[kind].is_empty()) {
                return Ok(None);
            }
            let len = elements.div_ceil(8);
            let mut mask = with_room(len)?;
            for PieceMasks(rows) in pieces {
                let part = (len - mask.len()).min(PIECE / 8);
                match rows[kind].get(..part) {
                    Some(row) => mask.extend_from_slice(row),
                    None => mask.resize(mask.len() + part, 0),
                }
            }
            Ok(Some(mask))
        };
        Ok(Self { nan: join(0)?, pos_inf: join(1)?, neg_inf: join(2)? })
    }
}

fn with_room(len: usize) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(len)
        .map_err(|_| CodecError::OutOfMemory { codec: "a float mask", bytes: len as u64 })?;
    Ok(bytes)
}

fn is_worth_splitting(bytes: &[u8]) -> bool {
    bytes.len() >= WORTH_SPLITTING && rayon::current_num_threads() > 1
}
