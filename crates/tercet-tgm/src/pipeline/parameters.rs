//! The typed parameters of a descriptor.

use std::collections::BTreeMap;

use tercet_codec::bytes::blosc2::{Blosc2, Inner, Shuffle};
use tercet_codec::bytes::sz3::Sz3;
use tercet_codec::bytes::szip::{self, Szip};
use tercet_codec::bytes::zfp::Zfp;
use tercet_codec::bytes::zstd;
use tercet_codec::pack::Packing;

use super::error::PipelineError;
use crate::metadata::{MetadataError, MetadataErrorKind, type_error, u64s_of};
use crate::value::Value;

/// The parameters of a packing, in the order in which errors name them.
pub(super) const SP_BITS: &str = "sp_bits_per_value";
pub(super) const SP_REFERENCE: &str = "sp_reference_value";
pub(super) const SP_BINARY: &str = "sp_binary_scale_factor";
pub(super) const SP_DECIMAL: &str = "sp_decimal_scale_factor";
/// The bit offsets of the intervals of an szip stream.
pub(super) const SZIP_OFFSETS: &str = "szip_block_offsets";

/// The parameters of one descriptor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters<'a>(&'a BTreeMap<String, Value>);

impl<'a> Parameters<'a> {
    pub(super) fn new(parameters: &'a BTreeMap<String, Value>) -> Self {
        Self(parameters)
    }

    /// A parameter without its tags.
    fn get(self, key: &str) -> Option<&'a Value> {
        self.0.get(key).map(Value::untagged)
    }

    fn required(self, key: &'static str) -> Result<&'a Value, MetadataError> {
        self.get(key).ok_or_else(|| MetadataError::new(key, MetadataErrorKind::Missing))
    }

    fn number(self, key: &'static str) -> Result<f64, MetadataError> {
        let value = self.required(key)?;
        let allowed = "a float, or an integer up to 2^53";
        value.as_f64().ok_or_else(|| type_error(value, key, allowed))
    }

    fn unsigned(self, key: &'static str) -> Result<u64, MetadataError> {
        let value = self.required(key)?;
        value.as_u64().ok_or_else(|| wrong_integer(value, key, "an integer from 0"))
    }

    fn integer(self, key: &'static str) -> Result<Option<i32>, MetadataError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let integer = value.as_i128().and_then(|integer| i32::try_from(integer).ok());
        integer.map(Some).ok_or_else(|| wrong_integer(value, key, "an integer of 32 bits"))
    }

    fn text(self, key: &'static str) -> Result<Option<&'a str>, MetadataError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_text().map(Some).ok_or_else(|| type_error(value, key, "a string"))
    }

    /// The number of bits per packed value.
    pub(super) fn bits(self) -> Result<u32, MetadataError> {
        let found = self.unsigned(SP_BITS)?;
        let bits = u32::try_from(found).ok().filter(|bits| *bits <= 64);
        let reason = MetadataErrorKind::OutOfRange { found: found.into(), allowed: "0 to 64" };
        bits.ok_or_else(|| MetadataError::new(SP_BITS, reason))
    }

    /// The decimal scale, if given.
    pub(super) fn decimal_scale(self) -> Result<Option<i32>, MetadataError> {
        self.integer(SP_DECIMAL)
    }

    /// Reference value and binary scale, if given. One without the other is an error.
    pub(super) fn explicit_packing(self) -> Result<Option<(f64, i32)>, MetadataError> {
        match (self.get(SP_REFERENCE), self.integer(SP_BINARY)?) {
            (None, None) => Ok(None),
            (Some(_), Some(binary_scale)) => Ok(Some((self.number(SP_REFERENCE)?, binary_scale))),
            (Some(_), None) => Err(MetadataError::new(SP_BINARY, MetadataErrorKind::Missing)),
            (None, Some(_)) => Err(MetadataError::new(SP_REFERENCE, MetadataErrorKind::Missing)),
        }
    }

    /// A packing with all its parameters.
    pub(super) fn packing(self) -> Result<Packing, PipelineError> {
        let missing = |key| MetadataError::new(key, MetadataErrorKind::Missing);
        let bits = self.bits()?;
        let (reference, binary_scale) = self.explicit_packing()?.ok_or_else(|| missing(SP_REFERENCE))?;
        let decimal_scale = self.decimal_scale()?.ok_or_else(|| missing(SP_DECIMAL))?;
        let packing = Packing { reference, binary_scale, decimal_scale, bits };
        packing.check()?;
        Ok(packing)
    }

    /// The element size of the shuffle filter, which must divide the `len` bytes.
    pub(super) fn shuffle(self, len: u64) -> Result<usize, MetadataError> {
        const KEY: &str = "shuffle_element_size";
        let found = self.unsigned(KEY)?;
        let size = usize::try_from(found).ok().filter(|size| *size > 0 && len.is_multiple_of(found));
        let allowed = "a divisor of the bytes that are shuffled";
        size.ok_or_else(|| {
            MetadataError::new(KEY, MetadataErrorKind::OutOfRange { found: found.into(), allowed })
        })
    }

    pub(super) fn zstd_level(self) -> Result<i32, MetadataError> {
        Ok(self.integer("zstd_level")?.unwrap_or(zstd::DEFAULT_LEVEL))
    }

    /// Inner codec and level; type size and shuffle come from the pipeline.
    pub(super) fn blosc2(self) -> Result<Blosc2, MetadataError> {
        let codec = match self.text("blosc2_codec")? {
            None => Inner::Lz4,
            Some(name) => Inner::parse(name).ok_or_else(|| {
                let allowed = "`blosclz`, `lz4`, `lz4hc`, `zlib` or `zstd`";
                let reason = MetadataErrorKind::Unknown { found: name.to_owned(), allowed };
                MetadataError::new("blosc2_codec", reason)
            })?,
        };
        let found = self.integer("blosc2_clevel")?.unwrap_or(5);
        let level = u8::try_from(found).ok().filter(|level| *level <= 9).ok_or_else(|| {
            let reason = MetadataErrorKind::OutOfRange { found: found.into(), allowed: "0 to 9" };
            MetadataError::new("blosc2_clevel", reason)
        })?;
        Ok(Blosc2 { codec, level, type_size: 1, shuffle: Shuffle::Bytes })
    }

    /// The parameters of szip for samples of `bits` bits. Packed samples are big-endian, independent of the
    /// stored byte order.
    pub(super) fn szip(self, bits: u32, is_packed: bool) -> Result<Szip, PipelineError> {
        let implied = if is_packed { szip::flags::MSB } else { 0 };
        let flags = self.unsigned("szip_flags")? | implied;
        Ok(Szip::new(bits, self.unsigned("szip_block_size")?, self.unsigned("szip_rsi")?, flags)?)
    }

    /// The stored offsets of intervals.
    pub(super) fn szip_offsets(self) -> Result<Option<Vec<u64>>, MetadataError> {
        let Some(value) = self.get(SZIP_OFFSETS) else { return Ok(None) };
        u64s_of(value, SZIP_OFFSETS).map(Some)
    }

    pub(super) fn zfp(self) -> Result<Zfp, PipelineError> {
        const KEY: &str = "zfp_mode";
        let zfp = match self.text(KEY)? {
            None => return Err(MetadataError::new(KEY, MetadataErrorKind::Missing).into()),
            Some("fixed_rate") => Zfp::FixedRate(self.number("zfp_rate")?),
            Some("fixed_precision") => {
                let found = self.unsigned("zfp_precision")?;
                let precision = u32::try_from(found).map_err(|_| {
                    let reason = MetadataErrorKind::OutOfRange { found: found.into(), allowed: "0 to 64" };
                    MetadataError::new("zfp_precision", reason)
                })?;
                Zfp::FixedPrecision(precision)
            }
            Some("fixed_accuracy") => Zfp::FixedAccuracy(self.number("zfp_tolerance")?),
            Some(name) => {
                let allowed = "`fixed_rate`, `fixed_precision` or `fixed_accuracy`";
                let reason = MetadataErrorKind::Unknown { found: name.to_owned(), allowed };
                return Err(MetadataError::new(KEY, reason).into());
            }
        };
        zfp.check()?;
        Ok(zfp)
    }

    pub(super) fn sz3(self) -> Result<Sz3, PipelineError> {
        const KEY: &str = "sz3_error_bound_mode";
        let bound = self.number("sz3_error_bound")?;
        match self.text(KEY)? {
            None => Err(MetadataError::new(KEY, MetadataErrorKind::Missing).into()),
            Some("abs") => Ok(Sz3::Abs(bound)),
            Some("rel") => Ok(Sz3::Rel(bound)),
            Some("psnr") => Ok(Sz3::Psnr(bound)),
            Some(name) => {
                let reason =
                    MetadataErrorKind::Unknown { found: name.to_owned(), allowed: "`abs`, `rel` or `psnr`" };
                Err(MetadataError::new(KEY, reason).into())
            }
        }
    }
}

fn wrong_integer(value: &Value, key: &str, allowed: &'static str) -> MetadataError {
    match value.as_i128() {
        Some(found) => MetadataError::new(key, MetadataErrorKind::OutOfRange { found, allowed }),
        None => type_error(value, key, allowed),
    }
}
