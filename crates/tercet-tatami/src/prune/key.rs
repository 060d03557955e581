//! The page index of the sort key: first row, minimum and maximum of each page.
//!
//! ```text
//! uvarint pages │ per page: uvarint first_row, uvarint offset, u8 present, [bytes min, bytes max]
//! ```

use bytes::Bytes;
use tercet_core::{FieldReader, Malformed, Reason};

use crate::region::Region;
use crate::wire::cursor::{Varints as _, put, put_bytes};
use crate::wire::footer::Zone;

/// The pages of the sort key in one row group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageIndex {
    /// The pages, in order.
    pub pages: Vec<PageBounds>,
}

/// One page of the sort key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageBounds {
    /// Its first row, relative to the row group.
    pub first_row: u64,
    /// The file offset of its header.
    pub offset: u64,
    /// Minimum and maximum key; `None` if all keys are null.
    pub zone: Option<Zone>,
}

impl PageIndex {
    /// Parses the payload of a page index at the file offset `start`.
    pub(crate) fn parse(group: u32, start: u64, payload: &Bytes) -> Result<Self, Malformed<Region>> {
        let mut fields = FieldReader::new(Region::PageIndex { group }, start, payload);
        let count = fields.count("page_count", 3)?;
        let mut pages = Vec::with_capacity(count);
        for _ in 0..count {
            let first_row = fields.uvarint("first_row")?;
            let offset = fields.uvarint("page_offset")?;
            let zone = match fields.byte("present")? {
                0 => None,
                1 => Some(Zone {
                    min: payload.slice_ref(fields.bytes("min")?),
                    max: payload.slice_ref(fields.bytes("max")?),
                }),
                other => {
                    let reason = Reason::OutOfRange { found: other.into(), allowed: "0 or 1" };
                    return Err(fields.fault("present", 1, reason));
                }
            };
            pages.push(PageBounds { first_row, offset, zone });
        }
        Ok(Self { pages })
    }

    /// The payload.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(self.pages.len() as u64, &mut out);
        for page in &self.pages {
            put(page.first_row, &mut out);
            put(page.offset, &mut out);
            out.push(u8::from(page.zone.is_some()));
            if let Some(zone) = &page.zone {
                put_bytes(&zone.min, &mut out);
                put_bytes(&zone.max, &mut out);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_test_vector_round_trips() {
        let page = |first_row, offset, min: &[u8], max: &[u8]| PageBounds {
            first_row,
            offset,
            zone: Some(Zone { min: Bytes::copy_from_slice(min), max: Bytes::copy_from_slice(max) }),
        };
        let index =
            PageIndex { pages: vec![page(0, 0x40, &[5, 0], &[6, 0]), page(2, 0x63, &[44, 1], &[44, 1])] };
        let bytes = [
            0x02, 0x00, 0x40, 0x01, 0x02, 0x05, 0x00, 0x02, 0x06, 0x00, 0x02, 0x63, 0x01, 0x02, 0x2c, 0x01,
            0x02, 0x2c, 0x01,
        ];
        assert_eq!(index.to_bytes(), bytes);
        assert_eq!(PageIndex::parse(0, 0, &Bytes::copy_from_slice(&bytes)).unwrap(), index);
        for cut in 0..bytes.len() {
            assert!(PageIndex::parse(0, 0, &Bytes::copy_from_slice(&bytes[..cut])).is_err());
        }
    }
}
