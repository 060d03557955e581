//! Recomputes the hashes of mutated messages.

use tercet_core::checksum::xxh3;
use tercet_tgm::{Message, ReadOptions};

/// Rewrites the hash of every frame that can be found.
pub(in crate::targets) fn recompute(input: &mut [u8]) {
    let options = ReadOptions::new().with_verify(false).with_strict(false);
    let spans = tercet_tgm::scan(input);
    for span in spans {
        let Some(range) = span.to_range() else { continue };
        let bytes = &mut input[range];
        let Ok(message) = Message::from_bytes_with("input", bytes.to_vec(), options) else { continue };
        let Ok(layout) = message.layout() else { continue };
        for frame in layout.frames.clone() {
            let (Some(body), Some(whole)) = (frame.body().to_range(), frame.span.to_range()) else {
                continue;
            };
            if frame.hash().is_some() {
                let hash = xxh3(&bytes[body]);
                bytes[whole.end - 12..whole.end - 4].copy_from_slice(&hash.to_be_bytes());
            }
        }
    }
}
