//! Runs: the values of a BLOBREF column that are compressed together.
//!
//! ```text
//! uvarint count │ count uvarint lengths │ the values, one behind the other
//! ```

use tercet_codec::varint;

/// How many of the next values make each run: a run is closed before a value that would take it past `target` bytes. A
/// larger value is a run of its own. The last run may take more values when there will be some.
pub(crate) fn plan(lengths: impl IntoIterator<Item = u64>, target: u64) -> Vec<u64> {
    let mut runs = Vec::new();
    let (mut count, mut bytes) = (0, 0u64);
    for len in lengths {
        if count > 0 && bytes.saturating_add(len) > target {
            runs.push(count);
            (count, bytes) = (0, 0);
        }
        count += 1;
        bytes = bytes.saturating_add(len);
    }
    if count > 0 {
        runs.push(count);
    }
    runs
}

/// The payload of values that lie behind one another.
pub(crate) fn to_payload(lengths: &[u32], values: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(values.len() + lengths.len() * 3 + varint::MAX_BYTES);
    varint::put(lengths.len() as u64, &mut out);
    for len in lengths {
        varint::put(u64::from(*len), &mut out);
    }
    out.extend_from_slice(values);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_known_bytes() {
        let payload = to_payload(&[2, 0, 3], b"abxyz");
        assert_eq!(payload, [3, 2, 0, 3, 0x61, 0x62, 0x78, 0x79, 0x7a]);
    }

    #[test]
    fn runs_are_closed_before_they_are_too_long() {
        assert_eq!(plan([3, 4, 10, 1], 7), [2, 1, 1]);
        assert_eq!(plan([], 7), Vec::<u64>::new());
        assert_eq!(plan([100], 7), [1]);
        assert_eq!(plan([0, 0, 8, 0], 7), [2, 1, 1]);
    }
}
