//! Default chunk shapes.

/// Maximum chunk size of [`default_chunk_shape`], in bytes.
pub const LARGEST_CHUNK: u64 = 4 << 20;

/// The default chunk shape of an array.
///
/// Rows stay whole: axes are added to the chunk from the last one on, as long as the chunk has at most [`LARGEST_CHUNK`]
/// bytes. The first axis that does not fit is divided into equal parts, the axes before it into single positions. So a chunk
/// is a contiguous range of the array, an array of up to 4 MiB is one chunk, and the chunks of a larger one have between 1
/// and 4 MiB: large enough for the disk and for compression, small enough for small selections.
///
/// ```
/// use tercet_convert::chunking::default_chunk_shape;
///
/// assert_eq!(default_chunk_shape(&[8760, 721, 1440], 4), [1, 721, 1440]);
/// assert_eq!(default_chunk_shape(&[8760, 721, 1440], 8), [1, 361, 1440]);
/// assert_eq!(default_chunk_shape(&[100, 100], 8), [100, 100]);
/// assert_eq!(default_chunk_shape(&[1_000_000_000], 4), [1_048_219]);
/// ```
pub fn default_chunk_shape(shape: &[u64], element_size: usize) -> Vec<u64> {
    let mut chunk = vec![1; shape.len()];
    let mut bytes = element_size.max(1) as u64;
    for (slot, &extent) in chunk.iter_mut().zip(shape).rev() {
        let room = (LARGEST_CHUNK / bytes).max(1);
        if extent > room {
            let parts = extent.div_ceil(room);
            *slot = extent.div_ceil(parts);
            break;
        }
        *slot = extent.max(1);
        bytes *= *slot;
    }
    chunk
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn chunks_are_whole_rows_of_one_to_four_mebibytes(
            shape in prop::collection::vec(prop_oneof![1u64..10, 1u64..5000, 1u64..u64::MAX], 1..9),
            size in prop::sample::select(vec![1usize, 2, 4, 8]),
        ) {
            let chunk = default_chunk_shape(&shape, size);
            let bytes = |extents: &[u64]| extents.iter().fold(size as u128, |a, &b| a.saturating_mul(b.into()));
            prop_assert!(chunk.iter().zip(&shape).all(|(c, s)| (1..=*s).contains(c)));
            prop_assert!(bytes(&chunk) <= LARGEST_CHUNK.into());
            if bytes(&shape) <= LARGEST_CHUNK.into() {
                prop_assert_eq!(&chunk, &shape);
            } else {
                prop_assert!(bytes(&chunk) >= 1 << 20, "{:?}", chunk);
            }
            // A contiguous range: whole axes after the divided one, single positions before it.
            let cut = chunk.iter().zip(&shape).rposition(|(c, s)| c != s).unwrap_or(0);
            prop_assert!(chunk[..cut].iter().all(|&c| c == 1));
        }
    }

    #[test]
    fn parts_of_an_axis_are_even() {
        // 1 + 4 MiB / 8 positions: two halves, not one whole chunk and one of a single position.
        assert_eq!(default_chunk_shape(&[524_289], 8), [262_145]);
    }

    #[test]
    fn unusual_shapes_are_handled() {
        assert_eq!(default_chunk_shape(&[], 4), Vec::<u64>::new());
        assert_eq!(default_chunk_shape(&[0, 3], 4), [1, 3]);
        assert_eq!(default_chunk_shape(&[2, 2], 0), [2, 2]);
        assert_eq!(default_chunk_shape(&[u64::MAX; 8], 8)[..7], [1; 7]);
    }
}
