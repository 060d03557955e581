//! UUID, creation time and creator in the header.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

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
    /// The stamp of a new file.
    pub(super) fn new(options: &WriterOptions) -> Self {
        let WriterOptions { uuid, created_millis, creator_id, .. } = *options;
        if options.provenance == Provenance::Off {
            return Self { uuid, created_millis, creator_id };
        }
        // Reproducible builds set the time. Other platforms have no random numbers.
        let is_random = cfg!(any(unix, windows)) && clock::source_date_epoch().is_none();
        Self {
            uuid: if uuid == [0; 16] && is_random { random_uuid() } else { uuid },
            created_millis: if created_millis == 0 { clock::unix_millis() } else { created_millis },
            creator_id: if creator_id == 0 { CREATOR_ID } else { creator_id },
        }
    }
}

/// A version 4 UUID. The keys of a hash table of the standard library are random.
pub(crate) fn random_uuid() -> [u8; 16] {
    let mut out = [0; 16];
    for half in out.chunks_mut(8) {
        half.copy_from_slice(&RandomState::new().build_hasher().finish().to_le_bytes());
    }
    out[6] = out[6] & 0x0f | 0x40;
    out[8] = out[8] & 0x3f | 0x80;
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_fields_are_recorded() {
        let options = WriterOptions::new();
        let (a, b) = (Stamp::new(&options), Stamp::new(&options));
        assert!(a.created_millis > 0);
        assert_eq!(a.creator_id, CREATOR_ID);
        if clock::source_date_epoch().is_none() {
            assert_ne!(a.uuid, b.uuid);
            assert_eq!((a.uuid[6] >> 4, a.uuid[8] >> 6), (4, 2));
        }
        let set = options.with_uuid([7; 16]).with_created_millis(5).with_creator_id(9);
        assert_eq!(Stamp::new(&set), Stamp { uuid: [7; 16], created_millis: 5, creator_id: 9 });
    }

    #[test]
    fn nothing_is_recorded_on_request() {
        let none = Stamp { uuid: [0; 16], created_millis: 0, creator_id: 0 };
        assert_eq!(Stamp::new(&WriterOptions::new().with_provenance(Provenance::Off)), none);
        assert_eq!(Stamp::new(&WriterOptions::interop()), none);
    }
}
