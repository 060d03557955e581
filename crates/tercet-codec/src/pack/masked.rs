//! Packing of values with non-finite ones.

use rayon::prelude::*;

use super::samples::Forward;
use super::{PART, PIECE, PackError, Packing, VALUE, arch, is_worth_splitting};
use crate::CodecError;
use crate::finite::{self, Float, Masks, NonFinite, PieceMasks};

// Masks of a piece are split at pieces, those of a part between two words.
const _: () = assert!(PIECE == finite::PIECE && PIECE.is_multiple_of(PART) && PART.is_multiple_of(64));

impl Packing {
    /// Packs `values` with +0.0 for non-finite ones, and returns their masks.
    ///
    /// Equal to [`finite::extract_masks`] on a copy followed by [`Packing::pack`], without the copy and in one pass.
    pub fn pack_masked(&self, values: &[u8], packed: &mut [u8]) -> Result<Masks, PackError> {
        let rule = self.forward(values, packed)?;
        if self.bits == 0 {
            return Ok(finite::extract_masks(&mut copy(values)?, Float::F64)?);
        }
        let packed_len = PIECE / 8 * self.bits as usize;
        let pieces: Result<Vec<_>, CodecError> = if is_worth_splitting(values) {
            let pieces = values.par_chunks(PIECE * VALUE).zip(packed.par_chunks_mut(packed_len));
            pieces.map(|(values, packed)| pack_piece(&rule, values, packed)).collect()
        } else {
            let pieces = values.chunks(PIECE * VALUE).zip(packed.chunks_mut(packed_len));
            pieces.map(|(values, packed)| pack_piece(&rule, values, packed)).collect()
        };
        Ok(Masks::from_pieces(&pieces?, values.len() / VALUE)?)
    }

    /// Unpacks the values from number `first` on, as many as fill `values`, and restores the masked values in the order of the
    /// masks. A mask starts with the first value of the payload.
    ///
    /// Equal to [`Packing::unpack`] followed by [`finite::restore`] for each mask, in one pass over the values.
    pub fn unpack_masked(
        &self,
        packed: &[u8],
        first: u64,
        values: &mut [u8],
        masks: &[(NonFinite, &[u8])],
    ) -> Result<(), PackError> {
        self.unpack_pieces(packed, first, values, |start, piece| {
            for &(what, mask) in masks {
                let pattern = finite::pattern(Float::F64, what);
                finite::restore_piece(piece, Float::F64, pattern, mask, first + start);
            }
        })
    }
}

/// Packs one piece part by part.
fn pack_piece(rule: &Forward, values: &[u8], packed: &mut [u8]) -> Result<PieceMasks, CodecError> {
    let mut noted = PieceMasks::default();
    let parts = values.chunks(PART * VALUE).zip(packed.chunks_mut(PART / 8 * rule.bits as usize));
    for (index, (values, packed)) in parts.enumerate() {
        let block = index * (PART / 64);
        let mut seen = [0; PART / 4];
        if values.len() == PART * VALUE && arch::pack_noting(rule, values, packed, &mut seen) {
            finite::add_masks(values, &seen, &mut noted, block)?;
        } else {
            let mut copied = [0; PART * VALUE];
            let copied = &mut copied[..values.len()];
            copied.copy_from_slice(values);
            finite::extract_masks_part(copied, Float::F64, &mut noted, block)?;
            arch::pack(rule, copied, packed);
        }
    }
    Ok(noted)
}

fn copy(values: &[u8]) -> Result<Vec<u8>, CodecError> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(values.len())
        .map_err(|_| CodecError::OutOfMemory { codec: "simple_packing", bytes: values.len() as u64 })?;
    copy.extend_from_slice(values);
    Ok(copy)
}
