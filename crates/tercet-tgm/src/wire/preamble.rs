//! The preamble.

use tercet_core::{FieldReader, Malformed, Reason};

use super::ids::{MAGIC, MIN_MESSAGE, MessageFlags, PREAMBLE_LEN, VERSION};
use crate::region::{Part, Region};

/// The first 24 bytes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preamble {
    /// The flags: which frames the message contains.
    pub flags: MessageFlags,
    /// Reserved: 0, ignored by readers.
    pub reserved: u32,
    /// The length of the message, with preamble and postamble; 0 if it was not known when the preamble was written.
    pub total_length: u64,
}

impl Preamble {
    /// Parses a preamble at offset `at` of the file.
    pub(crate) fn parse(message: u64, at: u64, bytes: &[u8]) -> Result<Self, Malformed<Region>> {
        let mut fields = FieldReader::new(Region { message, part: Part::Preamble }, at, bytes);
        fields.magic("magic", MAGIC)?;
        let version = fields.u16_be("version")?;
        if version != VERSION {
            let reason = Reason::UnknownVersion { found: version.into(), known: "3" };
            return Err(fields.fault("version", 2, reason));
        }
        let flags = MessageFlags(fields.u16_be("flags")?);
        let reserved = fields.u32_be("reserved")?;
        let total_length = fields.u64_be("total_length")?;
        if total_length != 0 && total_length < MIN_MESSAGE {
            let reason = Reason::OutOfRange { found: total_length, allowed: "0 or at least 48" };
            return Err(fields.fault("total_length", 8, reason));
        }
        Ok(Self { flags, reserved, total_length })
    }

    /// The length of the message, if it is stored.
    pub fn known_length(&self) -> Option<u64> {
        (self.total_length != 0).then_some(self.total_length)
    }

    /// The encoded preamble.
    pub(crate) fn to_bytes(self) -> [u8; 24] {
        let mut out = [0; 24];
        let fields: [&[u8]; 5] = [
            MAGIC,
            &VERSION.to_be_bytes(),
            &self.flags.0.to_be_bytes(),
            &self.reserved.to_be_bytes(),
            &self.total_length.to_be_bytes(),
        ];
        for (to, from) in out.iter_mut().zip(fields.into_iter().flatten()) {
            *to = *from;
        }
        out
    }
}

const _: () = assert!(PREAMBLE_LEN == 24);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preambles_round_trip() {
        let preamble = Preamble { flags: MessageFlags(0x95), reserved: 7, total_length: 576 };
        assert_eq!(Preamble::parse(0, 0, &preamble.to_bytes()), Ok(preamble));
    }

    #[test]
    fn wrong_fields_are_named() {
        let good = Preamble { flags: MessageFlags(0), reserved: 0, total_length: 48 }.to_bytes();
        let field = |at: usize, byte: u8| {
            let mut bad = good;
            *bad.get_mut(at).unwrap() = byte;
            Preamble::parse(0, 100, &bad).unwrap_err().site
        };
        assert_eq!(field(0, b'X').field, "magic");
        assert_eq!(field(9, 4).field, "version");
        assert_eq!(field(23, 47).field, "total_length");
        assert_eq!(field(23, 47).span.to_string(), "116..124");
    }
}
