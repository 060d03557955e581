//! The index frame, whose size changes the offsets in it.

use super::error::EncodeError;
use crate::index_and_hash::IndexFrame;
use crate::wire::align8;
use crate::wire::ids::FRAME_HEADER_LEN;

/// The offsets of object frames, the first at `start` or after it, each at a multiple of 8.
pub(crate) fn compute_object_offsets(start: u64, lengths: &[u64]) -> Option<Vec<u64>> {
    let mut at = align8(start)?;
    let mut offsets = Vec::with_capacity(lengths.len());
    for &length in lengths {
        offsets.push(at);
        at = at.checked_add(length).and_then(align8)?;
    }
    Some(offsets)
}

/// The CBOR of the index frame of a message whose object frames have these lengths. `before` and `after` are the lengths
/// of the header frames before and after the index, with padding; the preamble is part of `before`.
///
/// The offsets depend on the size of the index, and its size on the offsets. The first pass uses offsets of 0, each
/// later pass the size of the previous one. Larger offsets never make the index smaller, so the size only grows,
/// and a number has at most nine bytes: the passes end for any number of objects. Two or three passes are not
/// always enough.
pub(crate) fn build_index_frame(
    before: u64,
    after: u64,
    lengths: &[u64],
) -> Result<(Vec<u8>, Vec<u64>), EncodeError> {
    let mut index = IndexFrame { offsets: vec![0; lengths.len()], lengths: lengths.to_vec() };
    let mut cbor = index.to_cbor();
    loop {
        let frame = padded_len(cbor.len() as u64).ok_or(EncodeError::TooLarge)?;
        let start = before.checked_add(frame).and_then(|at| at.checked_add(after));
        let offsets = start.and_then(|start| compute_object_offsets(start, lengths));
        let offsets = offsets.ok_or(EncodeError::TooLarge)?;
        if offsets == index.offsets {
            return Ok((cbor, offsets));
        }
        index.offsets = offsets;
        cbor = index.to_cbor();
    }
}

/// The length of a frame with a CBOR body, with padding.
pub(crate) fn padded_len(body: u64) -> Option<u64> {
    body.checked_add(FRAME_HEADER_LEN + 12).and_then(align8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The index is correct for every number of objects.
    #[test]
    fn the_index_converges_for_every_number_of_objects() {
        for count in 0..=2000 {
            for length in [37, 149, 5123] {
                let lengths = vec![length; count];
                let (cbor, offsets) = build_index_frame(240, 88, &lengths).unwrap();
                let start = 240 + padded_len(cbor.len() as u64).unwrap() + 88;
                assert_eq!(Some(&offsets), compute_object_offsets(start, &lengths).as_ref());
                assert_eq!(cbor, IndexFrame { offsets, lengths }.to_cbor());
            }
        }
    }

    #[test]
    fn offsets_are_multiples_of_8() {
        assert_eq!(compute_object_offsets(25, &[3, 8, 9]), Some(vec![32, 40, 48]));
        assert_eq!(compute_object_offsets(u64::MAX - 3, &[1]), None);
    }
}
