//! Bloom filters of row groups.
//!
//! ```text
//! u32 probes = 7 │ u32 bits, a power of two │ bits / 8 bytes
//! ```
//!
//! A key is the scalar encoding of a value. Its FNV-1a hash `h` gives the bits `h + i·d` for `i` in `0..7`, where `d` is `h` rotated
//! right by 17.

use bytes::Bytes;
use tercet_core::{FieldReader, Malformed, Reason};

use crate::block_codec::fault;
use crate::chunk::number;
use crate::error::ErrorKind;
use crate::file::Inner;
use crate::region::Region;
use crate::scalar::Scalar;
use crate::wire::ids::Kind;

/// Bits set per key.
const PROBES: u32 = 7;

/// The maximum number of probes per key.
const MAX_PROBES: u32 = 64;

/// Bits per key, before rounding up to a power of two.
const BITS_PER_KEY: u64 = 10;

/// Length of the header before the bits.
const HEAD_LEN: usize = 8;

/// Builder of a bloom filter.
#[derive(Clone, Debug)]
pub(crate) struct Builder {
    /// The payload of the record.
    payload: Vec<u8>,
    mask: u32,
}

impl Builder {
    /// A filter for a number of keys.
    pub(crate) fn new(keys: u64) -> Self {
        let wanted = keys.saturating_mul(BITS_PER_KEY).max(64);
        let bits = wanted.min(1 << 31).next_power_of_two();
        let bits = u32::try_from(bits).unwrap_or(1 << 31);
        let mut payload = vec![0; HEAD_LEN + bits as usize / 8];
        payload[..4].copy_from_slice(&PROBES.to_le_bytes());
        payload[4..HEAD_LEN].copy_from_slice(&bits.to_le_bytes());
        Self { payload, mask: bits - 1 }
    }

    /// Adds the hash of a value.
    #[inline]
    pub(crate) fn add(&mut self, hash: u32) {
        let bits = &mut self.payload[HEAD_LEN..];
        for bit in probes_of(hash, PROBES) {
            let bit = bit & self.mask;
            bits[(bit >> 3) as usize] |= 1 << (bit & 7);
        }
    }

    /// The payload of the record.
    pub(crate) fn into_payload(self) -> Vec<u8> {
        self.payload
    }
}

/// A parsed bloom filter.
#[derive(Clone, Debug)]
pub(crate) struct Bloom {
    probes: u32,
    mask: u32,
    bits: Bytes,
}

impl Bloom {
    /// Reads the bloom filter of a file with this number.
    pub(crate) fn read(inner: &Inner, index: usize) -> Result<Self, ErrorKind> {
        let region = Region::Bloom { index: number(index) };
        let Some(entry) = inner.footer.indexes.get(index) else {
            let reason = Reason::OutOfRange { found: index as u64, allowed: "the number of a bloom filter" };
            return Err(fault(region, "bloom_ref", 0, 0, reason));
        };
        let record = inner.record(region, entry.offset, Kind::Index)?;
        Ok(Self::parse(region, record.span.start(), &record.stored)?)
    }

    /// Parses the payload at `offset`.
    pub(crate) fn parse(region: Region, offset: u64, payload: &Bytes) -> Result<Self, Malformed<Region>> {
        let mut fields = FieldReader::new(region, offset, payload);
        let probes = fields.u32_le("probes")?;
        let bits = fields.u32_le("bits")?;
        if !bits.is_power_of_two() || bits < 8 {
            let reason = Reason::OutOfRange { found: bits.into(), allowed: "a power of two from 8" };
            return Err(fields.fault("bits", 4, reason));
        }
        let found = fields.take("array", u64::from(bits / 8))?;
        let bits_at = payload.slice_ref(found);
        fields.finish()?;
        Ok(Self { probes, mask: bits - 1, bits: bits_at })
    }

    /// Whether the value may occur; `false` is certain.
    ///
    /// Zeros of both signs are equal but have different keys, so both are looked up.
    pub(crate) fn may_contain(&self, value: &Scalar) -> bool {
        let has = |value: &Scalar| self.has(&value.to_bytes());
        match value {
            Scalar::Float32(zero) if *zero == 0.0 => {
                has(&Scalar::Float32(0.0)) || has(&Scalar::Float32(-0.0))
            }
            Scalar::Float64(zero) if *zero == 0.0 => {
                has(&Scalar::Float64(0.0)) || has(&Scalar::Float64(-0.0))
            }
            value => has(value),
        }
    }

    fn has(&self, key: &[u8]) -> bool {
        // Filters of other writers may declare any number of probes. Using fewer never causes a false negative.
        let probes = self.probes.min(MAX_PROBES);
        probes_of(hash(key), probes).all(|bit| {
            let bit = bit & self.mask;
            self.bits[(bit >> 3) as usize] >> (bit & 7) & 1 == 1
        })
    }
}

/// The hash of a value in scalar encoding. Keys with the same hash set the same bits.
#[inline]
pub(crate) fn hash(key: &[u8]) -> u32 {
    key.iter().fold(2_166_136_261_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(16_777_619))
}

/// The probes of a hash, before reduction to the number of bits.
fn probes_of(hash: u32, probes: u32) -> impl Iterator<Item = u32> {
    let step = hash.rotate_right(17);
    (0..probes).map(move |probe| hash.wrapping_add(probe.wrapping_mul(step)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filter(keys: &[&[u8]]) -> Vec<u8> {
        let mut builder = Builder::new(keys.len() as u64);
        for key in keys {
            builder.add(hash(key));
        }
        builder.into_payload()
    }

    fn read(payload: Vec<u8>) -> Result<Bloom, Malformed<Region>> {
        Bloom::parse(Region::Bloom { index: 0 }, 100, &payload.into())
    }

    #[test]
    fn filters_have_the_expected_bytes() {
        assert_eq!(
            filter(&[b"a", b"hello"]),
            [7, 0, 0, 0, 64, 0, 0, 0, 0x30, 0x06, 0x01, 0x01, 0x80, 0x18, 0x44, 0x45]
        );
        assert_eq!(
            filter(&[&[0xc8, 0, 0, 0]]),
            [7, 0, 0, 0, 64, 0, 0, 0, 0x02, 0x02, 0x02, 0x20, 0x20, 0x20, 0x20, 0x00]
        );
    }

    #[test]
    fn zeros_of_both_signs_are_found() {
        let bloom = read(filter(&[&(-0.0f64).to_le_bytes()])).unwrap();
        assert!(bloom.may_contain(&Scalar::Float64(0.0)));
        assert!(bloom.may_contain(&Scalar::Float64(-0.0)));
        assert!(!bloom.may_contain(&Scalar::Float64(1.0)));
    }

    #[test]
    fn invalid_filters_are_rejected() {
        let good = filter(&[b"a"]);
        for cut in 0..good.len() {
            assert!(read(good[..cut].to_vec()).is_err(), "truncated to {cut}");
        }
        assert!(read([&good[..], &[0]].concat()).is_err());
        for bits in [0u32, 1, 7, 63, 65] {
            let mut bad = good.clone();
            bad[4..8].copy_from_slice(&bits.to_le_bytes());
            assert!(read(bad).is_err(), "{bits} bits");
        }
    }

    #[test]
    fn the_number_of_probes_is_bounded() {
        let mut many = filter(&[b"a"]);
        many[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        many[8..].fill(0xff);
        assert!(read(many).unwrap().may_contain(&Scalar::Bytes(b"x".to_vec())));
    }

    proptest! {
        #[test]
        fn added_keys_are_found(keys in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..300)) {
            let slices: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            let bloom = read(filter(&slices)).unwrap();
            for key in keys {
                prop_assert!(bloom.may_contain(&Scalar::Bytes(key)));
            }
        }

        #[test]
        fn the_false_positive_rate_is_low(seed in any::<u64>()) {
            let key = |index: u64| (seed ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes();
            let keys: Vec<[u8; 8]> = (0..1000).map(key).collect();
            let slices: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
            let bloom = read(filter(&slices)).unwrap();
            let wrong = (1000..2000).filter(|index| bloom.has(&key(*index))).count();
            prop_assert!(wrong < 60, "{wrong} of 1000");
        }
    }
}
