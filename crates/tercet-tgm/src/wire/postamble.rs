//! The postamble.

use tercet_core::{FieldReader, Malformed};

use super::ids::END_MAGIC;
use crate::region::{Part, Region};

/// The last 24 bytes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Postamble {
    /// The offset of the first footer frame, or of the postamble, from the start of the message.
    pub first_footer_offset: u64,
    /// The length of the message; 0 if the writer could not seek.
    pub total_length: u64,
}

impl Postamble {
    /// Parses a postamble at offset `at` of the file.
    pub(crate) fn parse(message: u64, at: u64, bytes: &[u8]) -> Result<Self, Malformed<Region>> {
        let mut fields = FieldReader::new(Region { message, part: Part::Postamble }, at, bytes);
        let first_footer_offset = fields.u64_be("first_footer_offset")?;
        let total_length = fields.u64_be("total_length")?;
        fields.magic("end_magic", END_MAGIC)?;
        Ok(Self { first_footer_offset, total_length })
    }

    /// The encoded postamble.
    pub(crate) fn to_bytes(self) -> [u8; 24] {
        let mut out = [0; 24];
        let (offset, length) = (self.first_footer_offset.to_be_bytes(), self.total_length.to_be_bytes());
        for (to, from) in out.iter_mut().zip(offset.iter().chain(&length).chain(END_MAGIC)) {
            *to = *from;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postambles_round_trip() {
        let postamble = Postamble { first_footer_offset: 552, total_length: 576 };
        assert_eq!(Postamble::parse(0, 0, &postamble.to_bytes()), Ok(postamble));
        let mut bad = postamble.to_bytes();
        *bad.last_mut().unwrap() ^= 1;
        assert_eq!(Postamble::parse(0, 0, &bad).unwrap_err().site.field, "end_magic");
    }
}
