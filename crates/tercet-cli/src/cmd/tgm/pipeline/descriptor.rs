//! Pipeline options to object descriptors.

use tercet::tgm::{DType, DataObjectDescriptor};

use super::{
    BITS, BLOSC2_LEVEL, Compression, Encoding, Filter, Pipeline, SZIP_BLOCK, SZIP_RSI, can_widen, name,
};
use crate::failure::Failure;

/// An object that the pipeline cannot store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cmd::tgm) struct Unfit {
    pub(in crate::cmd::tgm) reason: String,
    hint: Option<String>,
}

impl Unfit {
    fn new(reason: String) -> Self {
        Self { reason, hint: None }
    }

    /// The error for an object of this name.
    pub(in crate::cmd::tgm) fn failure(self, object: &str) -> Failure {
        let failure = Failure::request(format!("{object}: {}", self.reason));
        match self.hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

/// The descriptor of an object with the pipeline of the options.
pub(super) fn apply(pipeline: &Pipeline, plain: DataObjectDescriptor) -> Result<DataObjectDescriptor, Unfit> {
    must_fit(pipeline, plain.dtype)?;
    let mut descriptor = plain;
    if pipeline.encoding == Some(Encoding::SimplePacking) {
        descriptor = descriptor.with_encoding(&name(Encoding::SimplePacking));
        descriptor = descriptor.with_param("sp_bits_per_value", pipeline.bits.unwrap_or(BITS));
        if let Some(scale) = pipeline.decimal_scale {
            descriptor = descriptor.with_param("sp_decimal_scale_factor", scale);
        }
    }
    if pipeline.filter == Some(Filter::Shuffle) {
        let size = element_size(pipeline, descriptor.dtype)?;
        descriptor = descriptor.with_filter(&name(Filter::Shuffle)).with_param("shuffle_element_size", size);
    }
    Ok(compress(pipeline, descriptor))
}

/// Rejects dtypes that a stage does not support.
fn must_fit(pipeline: &Pipeline, dtype: DType) -> Result<(), Unfit> {
    if let Some(stage) = pipeline.needs_float64().filter(|_| dtype != DType::F64) {
        let reason = format!("{stage} requires float64, found {dtype}");
        let hint = can_widen(dtype).then(|| "add `--widen` to convert to float64 if exact".to_owned());
        return Err(Unfit { reason, hint });
    }
    match pipeline.compression {
        Some(codec @ (Compression::Rle | Compression::Roaring)) if dtype != DType::Bitmask => {
            Err(Unfit::new(format!("compression `{}` requires bitmask, found {dtype}", name(codec))))
        }
        _ => Ok(()),
    }
}

/// Element size of the shuffle filter.
fn element_size(pipeline: &Pipeline, dtype: DType) -> Result<u32, Unfit> {
    if pipeline.encoding == Some(Encoding::SimplePacking) {
        let bits = pipeline.bits.unwrap_or(BITS);
        if bits == 0 || !bits.is_multiple_of(8) {
            let reason = format!("filter `shuffle` requires whole bytes; packed values have {bits} bits");
            let whole = bits.max(1).next_multiple_of(8);
            return Err(Unfit { reason, hint: Some(format!("use `--bits {whole}`")) });
        }
        return Ok(bits / 8);
    }
    if dtype == DType::Bitmask {
        return Err(Unfit::new(format!("filter `shuffle` requires whole bytes, found {dtype}")));
    }
    Ok(dtype.bits() / 8)
}

fn compress(pipeline: &Pipeline, descriptor: DataObjectDescriptor) -> DataObjectDescriptor {
    let Some(codec) = pipeline.compression else { return descriptor };
    let flags = pipeline.szip_flags.unwrap_or_else(|| szip_flags(&descriptor));
    let descriptor = descriptor.with_compression(&name(codec));
    match codec {
        Compression::None | Compression::Lz4 | Compression::Rle | Compression::Roaring => descriptor,
        Compression::Zstd => match pipeline.compression_level {
            Some(level) => descriptor.with_param("zstd_level", level),
            None => descriptor,
        },
        Compression::Blosc2 => descriptor
            .with_param("blosc2_codec", &*name(pipeline.blosc2_codec.unwrap_or_default()))
            .with_param("blosc2_clevel", pipeline.compression_level.unwrap_or(BLOSC2_LEVEL)),
        Compression::Szip => descriptor
            .with_param("szip_rsi", pipeline.szip_rsi.unwrap_or(SZIP_RSI))
            .with_param("szip_block_size", pipeline.szip_block_size.unwrap_or(SZIP_BLOCK))
            .with_param("szip_flags", flags),
        Compression::Zfp => zfp(pipeline, descriptor),
        Compression::Sz3 => descriptor
            .with_param("sz3_error_bound_mode", &*name(pipeline.sz3_mode.unwrap_or_default()))
            .with_param("sz3_error_bound", pipeline.sz3_bound.unwrap_or_default()),
    }
}

/// Preprocessing is on; samples are signed for signed integers without encoding or filter.
fn szip_flags(descriptor: &DataObjectDescriptor) -> u32 {
    let is_bare = descriptor.encoding == "none" && descriptor.filter == "none";
    let is_signed = matches!(descriptor.dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    if is_bare && is_signed { 9 } else { 8 }
}

fn zfp(pipeline: &Pipeline, descriptor: DataObjectDescriptor) -> DataObjectDescriptor {
    if let Some(rate) = pipeline.zfp_rate {
        return descriptor.with_param("zfp_mode", "fixed_rate").with_param("zfp_rate", rate);
    }
    if let Some(precision) = pipeline.zfp_precision {
        return descriptor.with_param("zfp_mode", "fixed_precision").with_param("zfp_precision", precision);
    }
    // `check` ensures that one of the three modes is given.
    let tolerance = pipeline.zfp_tolerance.unwrap_or_default();
    descriptor.with_param("zfp_mode", "fixed_accuracy").with_param("zfp_tolerance", tolerance)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(pipeline: &Pipeline, dtype: DType) -> Result<String, String> {
        let plain = DataObjectDescriptor::new(dtype, [4]);
        let parts = |d: DataObjectDescriptor| {
            let params: Vec<String> =
                d.params.iter().map(|(key, value)| format!("{key}={}", value.printed())).collect();
            format!("{}/{}/{} {}", d.encoding, d.filter, d.compression, params.join(" "))
        };
        apply(pipeline, plain).map(parts).map_err(|unfit| unfit.reason)
    }

    #[test]
    fn defaults_are_those_of_the_format() {
        let codec = |compression| Pipeline { compression: Some(compression), ..Pipeline::default() };
        let szip = codec(Compression::Szip);
        for (dtype, flags) in [(DType::U16, 8), (DType::I16, 9), (DType::F32, 8)] {
            let expected = format!("none/none/szip szip_block_size=16 szip_flags={flags} szip_rsi=128");
            assert_eq!(applied(&szip, dtype), Ok(expected));
        }
        assert_eq!(applied(&codec(Compression::Zstd), DType::I8), Ok("none/none/zstd ".to_owned()));
        let blosc2 = applied(&codec(Compression::Blosc2), DType::I8);
        assert_eq!(blosc2, Ok("none/none/blosc2 blosc2_clevel=5 blosc2_codec=lz4".to_owned()));
        let packing = Pipeline { encoding: Some(Encoding::SimplePacking), ..Pipeline::default() };
        let packed = applied(&packing, DType::F64);
        assert_eq!(packed, Ok("simple_packing/none/none sp_bits_per_value=16".to_owned()));
    }

    #[test]
    fn shuffled_elements_are_whole_bytes() {
        let mut pipeline = Pipeline { filter: Some(Filter::Shuffle), ..Pipeline::default() };
        assert_eq!(applied(&pipeline, DType::C64).unwrap(), "none/shuffle/none shuffle_element_size=8");
        pipeline.encoding = Some(Encoding::SimplePacking);
        pipeline.bits = Some(24);
        assert!(applied(&pipeline, DType::F64).unwrap().contains("shuffle_element_size=3"));
        pipeline.bits = Some(12);
        assert!(applied(&pipeline, DType::F64).unwrap_err().contains("12 bits"));
        pipeline.compression = Some(Compression::Szip);
        pipeline.bits = Some(16);
        assert!(applied(&pipeline, DType::F64).unwrap().contains("szip_flags=8"));
    }
}
