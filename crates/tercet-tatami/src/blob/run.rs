//! Runs: values of a BLOBREF column that are compressed together.
//!
//! ```text
//! uvarint count │ count uvarint lengths │ the values, concatenated
//! ```

use tercet_codec::varint;

/// Whether a run of `values` values and `bytes` bytes ends before a value of `next` bytes: no run exceeds `target` bytes, unless
/// it has a single value.
pub(crate) fn ends(values: usize, bytes: u64, next: u64, target: u64) -> bool {
    values > 0 && bytes.saturating_add(next) > target
}

/// The head of a run: number and lengths of its values.
pub(crate) fn head(lengths: &[u32]) -> Vec<u8> {
    let mut out = Vec::with_capacity(lengths.len() * 3 + varint::MAX_BYTES);
    varint::put(lengths.len() as u64, &mut out);
    for len in lengths {
        varint::put(u64::from(*len), &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_known_bytes() {
        assert_eq!(head(&[2, 0, 300]), [3, 2, 0, 0xac, 0x02]);
    }

    #[test]
    fn runs_are_closed_before_they_are_too_long() {
        let plan = |lengths: &[u64]| {
            let mut runs: Vec<Vec<u64>> = vec![vec![]];
            for len in lengths {
                let last = runs.last_mut().unwrap();
                if ends(last.len(), last.iter().sum(), *len, 7) {
                    runs.push(vec![]);
                }
                runs.last_mut().unwrap().push(*len);
            }
            runs.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(plan(&[3, 4, 10, 1]), [2, 1, 1]);
        assert_eq!(plan(&[100]), [1]);
        assert_eq!(plan(&[0, 0, 8, 0]), [2, 1, 1]);
    }
}
