//! Manifests of collections.

use std::path::Component;

use tercet_tatami::collection::log::{Record, replay, salvage};
use tercet_tatami::collection::{ManifestWarning, Replay};

/// Replays a log, appends to it like a writer, and rewrites it: no live record may be lost.
pub(in super::super) fn run(input: &[u8]) {
    let saved = salvage(input);
    let Ok(read) = replay(input) else {
        if let Ok(saved) = saved {
            let is_damage =
                |odd: &_| matches!(odd, ManifestWarning::Damaged { .. } | ManifestWarning::Truncated { .. });
            assert!(saved.warnings.iter().any(is_damage));
        }
        return;
    };
    let saved = saved.unwrap_or_else(|error| panic!("read, but not saved: {error}"));
    assert_eq!(saved.members, read.members, "a log without damage is saved as it is read");
    assert!(
        read.members.is_sorted_by(|one, other| one.path < other.path),
        "one entry for each path, in order"
    );
    for member in &read.members {
        let path = member.location("/root".as_ref());
        let up = |path: &std::path::Path| path.components().any(|part| part == Component::ParentDir);
        assert!(path.is_none_or(|path| path.starts_with("/root") && !up(&path)));
    }
    compacted(&read);
    if input.len() >= 5 {
        appended(input, &read);
    }
}

fn compacted(read: &Replay) {
    let new = read.compacted();
    let again = replay(&new).unwrap_or_else(|error| panic!("a compacted log cannot be read: {error}"));
    assert_eq!(again.members, read.members);
    let expected: &[_] = if read.members.is_empty() { &[ManifestWarning::NoRecords] } else { &[] };
    assert_eq!(again.warnings, expected);
    assert_eq!(again.records, read.members.len() as u64);
    assert_eq!(again.end, new.len() as u64);
}

/// A torn record is truncated, and an appended one exists.
fn appended(input: &[u8], read: &Replay) {
    let keep = usize::try_from(read.end).unwrap_or(usize::MAX);
    let mut log = input.get(..keep).unwrap_or_else(|| panic!("the records end past the end")).to_vec();
    let removed = read.members.first().map_or([0; 16], |member| member.id);
    Record::Remove(removed).put(&mut log);
    let again = replay(&log).unwrap_or_else(|error| panic!("an appended log cannot be read: {error}"));
    assert_eq!(again.members, read.members.get(1..).unwrap_or_default());
    assert_eq!(again.records, read.records + 1);
}

/// Recomputes the checksums of the records, as far as their lengths are valid.
pub(in super::super) fn recompute_checksums(bytes: &mut [u8]) {
    let mut at = 5;
    while let Some((len, start)) = bytes.get(at + 1..).and_then(|rest| length(rest, at + 1)) {
        let Some(end) = start.checked_add(len).filter(|end| end + 4 <= bytes.len()) else { return };
        let crc = tercet_core::checksum::crc32c(&bytes[at..end]);
        bytes[end..end + 4].copy_from_slice(&crc.to_le_bytes());
        at = end + 4;
    }
}

/// Decodes a minimal length, and returns its end.
fn length(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let mut value = 0usize;
    for (index, byte) in bytes.iter().take(4).enumerate() {
        value |= usize::from(byte & 0x7f) << (7 * index);
        if *byte < 0x80 {
            return Some((value, at + index + 1));
        }
    }
    None
}
