//! UUID, creation time and creator in the header.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use tercet_core::checksum::Xxh3;
use tercet_core::clock;

use super::{Provenance, WriterOptions};

/// The creator ID of this library: `TRCT`.
const CREATOR_ID: u32 = u32::from_le_bytes(*b"TRCT");

/// When and by which program a file was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) uuid: [u8; 16],
    pub(super) created_millis: u64,
    pub(super) creator_id: u32,
}

impl Stamp {
    /// The stamp of a file with these contents (a hash of all payloads, and the checksum of the footer) and location.
    pub(super) fn new(options: &WriterOptions, contents: u64, footer_crc: u32, location: &str) -> Self {
        let WriterOptions { uuid, created_millis, creator_id, .. } = *options;
        if options.provenance == Provenance::Off {
            return Self { uuid, created_millis, creator_id };
        }
        let created_millis = if created_millis == 0 { clock::unix_millis() } else { created_millis };
        // In a collection, UUIDs are IDs: equal files with different names have different ones.
        let name = location.rsplit(['/', '\\']).next().unwrap_or_default();
        let uuid = if uuid == [0; 16] { new_uuid(contents, footer_crc, created_millis, name) } else { uuid };
        Self { uuid, created_millis, creator_id: if creator_id == 0 { CREATOR_ID } else { creator_id } }
    }
}

/// A version 8 UUID: random bits and a hash of the file. A reproducible build has no random bits.
fn new_uuid(contents: u64, footer_crc: u32, created_millis: u64, name: &str) -> [u8; 16] {
    let is_fixed = clock::source_date_epoch().is_some();
    let half = |number: u8| {
        let mut hash = Xxh3::new();
        hash.update(&[number]);
        hash.update(&contents.to_le_bytes());
        hash.update(&footer_crc.to_le_bytes());
        hash.update(&created_millis.to_le_bytes());
        hash.update(name.as_bytes());
        if !is_fixed {
            hash.update(&RandomState::new().build_hasher().finish().to_le_bytes());
        }
        hash.digest().to_be_bytes()
    };
    let mut out = [0; 16];
    out[..8].copy_from_slice(&half(0));
    out[8..].copy_from_slice(&half(1));
    out[6] = out[6] & 0x0f | 0x80;
    out[8] = out[8] & 0x3f | 0x80;
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_fields_are_recorded() {
        let options = WriterOptions::new();
        let (a, b) = (Stamp::new(&options, 1, 2, "a"), Stamp::new(&options, 1, 2, "a"));
        assert_eq!((a.uuid[6] >> 4, a.uuid[8] >> 6, a.creator_id), (8, 2, CREATOR_ID));
        assert!(a.created_millis > 1_700_000_000_000 - 1);
        if clock::source_date_epoch().is_none() {
            assert_ne!(a.uuid, b.uuid);
        }
        let set = options.with_uuid([7; 16]).with_created_millis(5).with_creator_id(9);
        assert_eq!(Stamp::new(&set, 1, 2, "a"), Stamp { uuid: [7; 16], created_millis: 5, creator_id: 9 });
    }

    #[test]
    fn uuids_depend_on_contents_and_name() {
        let same = new_uuid(1, 2, 3, "a");
        assert!(
            [new_uuid(9, 2, 3, "a"), new_uuid(1, 9, 3, "a"), new_uuid(1, 2, 3, "b")]
                .iter()
                .all(|id| *id != same)
        );
    }

    #[test]
    fn nothing_is_recorded_on_request() {
        let none = Stamp { uuid: [0; 16], created_millis: 0, creator_id: 0 };
        assert_eq!(Stamp::new(&WriterOptions::new().with_provenance(Provenance::Off), 1, 2, "a"), none);
        assert_eq!(Stamp::new(&WriterOptions::interop(), 1, 2, "a"), none);
    }
}
