//! Outlines cover every byte of a file exactly once.

use proptest::prelude::*;
use tercet_core::OutlineOptions;
use tercet_testkit::{golden, leaves_partition};
use tercet_tgm::File;

use crate::samples;

fn partition(name: &str, bytes: Vec<u8>) -> Result<(), String> {
    let len = bytes.len() as u64;
    let outline = File::from_bytes(name, bytes).unwrap().outline(OutlineOptions::new()).unwrap();
    leaves_partition(&outline, len).map_err(|error| format!("{name}: {error}"))
}

/// Every golden file: unchanged, with unrecognized bytes before, between and after its messages, and truncated to half.
#[test]
fn leaves_partition_golden_files() {
    let Some(directory) = golden("tgm") else { return };
    let mut files = 0;
    for entry in std::fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "tgm") {
            continue;
        }
        files += 1;
        let name = path.to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).unwrap();
        let with_unrecognized = [b"junk!", &bytes[..], &[0; 13], &bytes[..], b"TENSOGRM"].concat();
        let half = bytes[..bytes.len() / 2].to_vec();
        for bytes in [bytes, with_unrecognized, half] {
            partition(&name, bytes).unwrap();
        }
    }
    assert_eq!(files, 61);
}

proptest! {
    #[test]
    fn leaves_partition_damaged_files(at in any::<prop::sample::Index>(), flip in 1u8.., unrecognized in 0usize..20) {
        for sample in samples::all() {
            let mut bytes = sample.bytes;
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            bytes.splice(0..0, vec![b'j'; unrecognized]);
            prop_assert_eq!(partition(sample.name, bytes), Ok(()));
        }
    }
}
