//! Page statistics: minimum and maximum, stored before the payload of a page.
//!
//! ```text
//! 50 2a 4d 18 │ u32 body length │ u8 form, bytes min, bytes max
//! ```
//!
//! It is a skippable Zstandard frame: readers without support for page statistics skip it.

use tercet_core::{FieldReader, Malformed, Reason};

use crate::region::Region;
use crate::scalar::Scalar;
use crate::schema::Type;
use crate::wire::cursor::{Varints as _, put_bytes};
use crate::wire::footer::Zone;

const MAGIC: &[u8; 4] = &[0x50, 0x2a, 0x4d, 0x18];

/// Maximum length of string bounds; longer strings are truncated.
const MAX_STRING_LEN: usize = 64;

const MIN_EXACT: u8 = 1;
const MAX_EXACT: u8 = 2;
const HAS_NAN: u8 = 4;

/// The bounds of one page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Bounds of the non-null values, except NaN.
    pub zone: Zone,
    /// Some value equals the minimum.
    pub min_exact: bool,
    /// Some value equals the maximum.
    pub max_exact: bool,
    /// The page contains NaN.
    pub has_nan: bool,
}

/// The encoded statistics of a page; `None` if it has none.
pub(crate) fn block(zone: &Zone, kind: Type, has_nan: bool) -> Option<Vec<u8>> {
    let (min, max) = if kind.is_bytes() {
        let min = &zone.min[..zone.min.len().min(MAX_STRING_LEN)];
        (min.to_vec(), truncate_up(&zone.max)?)
    } else {
        (zone.min.to_vec(), zone.max.to_vec())
    };
    let mut form = if has_nan { HAS_NAN } else { 0 };
    form |= if min.len() == zone.min.len() { MIN_EXACT } else { 0 };
    form |= if max[..] == zone.max[..] { MAX_EXACT } else { 0 };
    let mut body = vec![form];
    put_bytes(&min, &mut body);
    put_bytes(&max, &mut body);
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&u32::try_from(body.len()).ok()?.to_le_bytes());
    out.extend_from_slice(&body);
    Some(out)
}

/// An upper bound of at most 64 bytes; `None` if there is none.
fn truncate_up(max: &[u8]) -> Option<Vec<u8>> {
    if max.len() <= MAX_STRING_LEN {
        return Some(max.to_vec());
    }
    let mut out = max[..MAX_STRING_LEN].to_vec();
    while out.last() == Some(&0xff) {
        out.pop();
    }
    *out.last_mut()? += 1;
    Some(out)
}

/// The statistics at the start of a stored payload, and their length. `start` is the offset of the payload.
pub(crate) fn parse(
    region: Region,
    start: u64,
    stored: &bytes::Bytes,
    kind: Type,
) -> Result<(Bounds, usize), Malformed<Region>> {
    let mut fields = FieldReader::new(region, start, stored);
    fields.magic("bounds_magic", MAGIC)?;
    let len = fields.u32_le("bounds_length")?;
    let mut fields = FieldReader::new(region, fields.position(), fields.take("bounds", len.into())?);
    let form = fields.byte("bounds_form")?;
    if form & !(MIN_EXACT | MAX_EXACT | HAS_NAN) != 0 {
        let reason =
            Reason::OutOfRange { found: form.into(), allowed: "a combination of the three known bits" };
        return Err(fields.fault("bounds_form", 1, reason));
    }
    let min = stored.slice_ref(fields.bytes("bounds_min")?);
    let max = stored.slice_ref(fields.bytes("bounds_max")?);
    let is_valid = |bytes: &[u8]| Scalar::from_bytes(kind, bytes).is_some();
    if !(is_valid(&min) && is_valid(&max)) {
        let reason = Reason::Unexpected { rule: "bounds are values of the column" };
        return Err(fields.fault("bounds_max", max.len() as u64, reason));
    }
    fields.finish()?;
    let bounds = Bounds {
        zone: Zone { min, max },
        min_exact: form & MIN_EXACT != 0,
        max_exact: form & MAX_EXACT != 0,
        has_nan: form & HAS_NAN != 0,
    };
    Ok((bounds, 8 + len as usize))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const REGION: Region = Region::Page { group: 0, column: 0, page: 0 };

    fn zone(min: &[u8], max: &[u8]) -> Zone {
        Zone { min: Bytes::copy_from_slice(min), max: Bytes::copy_from_slice(max) }
    }

    #[test]
    fn numbers_have_the_expected_bytes() {
        let zone = zone(&[7, 0, 0, 0], &[9, 0, 0, 0]);
        let block = Bytes::from(block(&zone, Type::Int32, false).unwrap());
        let expected = [0x50, 0x2a, 0x4d, 0x18, 0x0b, 0, 0, 0, 3, 4, 7, 0, 0, 0, 4, 9, 0, 0, 0];
        assert_eq!(block[..], expected);
        let (bounds, len) = parse(REGION, 0, &block, Type::Int32).unwrap();
        assert_eq!(len, block.len());
        assert_eq!(bounds, Bounds { zone, min_exact: true, max_exact: true, has_nan: false });
    }

    #[test]
    fn truncated_strings_are_still_bounds() {
        let mut high = vec![b'b'; 100];
        high[63] = 0xff;
        let block = Bytes::from(block(&zone(&[b'a'; 70], &high), Type::Bytes, false).unwrap());
        let (bounds, _) = parse(REGION, 0, &block, Type::Bytes).unwrap();
        assert_eq!(&bounds.zone.min[..], [b'a'; 64]);
        assert!(!bounds.min_exact && !bounds.max_exact);
        assert_eq!(bounds.zone.max.len(), 63);
        assert!(bounds.zone.max[..] > high[..]);
        assert_eq!(super::block(&zone(b"", &[0xff; 65]), Type::Bytes, false), None);
    }

    #[test]
    fn invalid_statistics_are_rejected() {
        let good = block(&zone(&[7, 0, 0, 0], &[9, 0, 0, 0]), Type::Int32, true).unwrap();
        for cut in 0..good.len() {
            assert!(parse(REGION, 0, &Bytes::copy_from_slice(&good[..cut]), Type::Int32).is_err(), "{cut}");
        }
        assert!(parse(REGION, 0, &Bytes::from(good.clone()), Type::Int64).is_err());
        assert!(parse(REGION, 0, &Bytes::from(good), Type::Int32).unwrap().0.has_nan);
    }
}
