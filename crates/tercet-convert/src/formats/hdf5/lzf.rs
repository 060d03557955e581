//! The filter LZF of h5py.

/// The number of the filter.
pub(super) const ID: u16 = 32_000;

/// Decompresses up to `most` bytes; `None` if the bytes are damaged.
pub(super) fn decode(bytes: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&control) = bytes.get(at) {
        at += 1;
        let control = usize::from(control);
        if control < 32 {
            out.extend_from_slice(bytes.get(at..at + control + 1)?);
            at += control + 1;
        } else {
            let mut len = control >> 5;
            if len == 7 {
                len += usize::from(*bytes.get(at)?);
                at += 1;
            }
            let distance = ((control & 31) << 8 | usize::from(*bytes.get(at)?)) + 1;
            at += 1;
            let start = out.len().checked_sub(distance)?;
            // The copy may overlap its own output.
            for position in start..start + len + 2 {
                out.push(out[position]);
            }
        }
        if out.len() > most {
            return None;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_copies_are_decoded() {
        assert_eq!(decode(&[2, b'a', b'b', b'c', 0x60, 2], 100).unwrap(), b"abcabcab");
        assert_eq!(decode(&[0, b'a', 0xe0, 3, 0], 100).unwrap(), b"a".repeat(13));
        for damaged in [&[5, 1][..], &[0x20, 0], &[0, 1, 0x20, 5], &[0xe0]] {
            assert_eq!(decode(damaged, 100), None);
        }
        assert_eq!(decode(&[0, b'a', 0xe0, 255, 0], 100), None);
    }
}
