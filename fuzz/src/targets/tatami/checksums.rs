//! Recomputes the checksums of mutated files.

use tercet_core::checksum::crc32c;

/// Rewrites the checksums of header, records and footer.
///
/// Records are consecutive from the end of the header on, so they are found without the footer. The footer position in the
/// header is corrected too: a file of another length would be rejected immediately.
pub(in crate::targets) fn recompute(input: &mut [u8]) {
    let Some(trailer) = input.len().checked_sub(12).filter(|trailer| *trailer >= 64) else { return };
    let footer_len = number(input, trailer);
    let Some(footer) = trailer.checked_sub(footer_len).filter(|footer| *footer >= 64) else { return };
    let crc = crc32c(&input[footer..trailer]);
    put(input, trailer + 4, crc);
    input[40..48].copy_from_slice(&(footer as u64).to_le_bytes());
    let crc = crc32c(&input[..60]);
    put(input, 60, crc);
    let mut at = 64;
    while at + 32 <= footer {
        let end = (at + 32).saturating_add(number(input, at + 12));
        if end > footer {
            return;
        }
        let crc = crc32c(&input[at + 32..end]);
        put(input, at + 24, crc);
        // Other writers leave the checksum of the header empty.
        if number(input, at + 28) != 0 {
            let crc = crc32c(&input[at..at + 28]);
            put(input, at + 28, crc);
        }
        at = end;
    }
}

fn number(input: &[u8], at: usize) -> usize {
    let bytes = input.get(at..).and_then(|bytes| bytes.first_chunk::<4>());
    bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize)
}

fn put(input: &mut [u8], at: usize, crc: u32) {
    input[at..at + 4].copy_from_slice(&crc.to_le_bytes());
}
