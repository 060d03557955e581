//! Ways of storing an array that are worth a try.

use std::fmt;

use tercet_codec::bytes::{blosc2, lz4, sz3, zfp, zstd};

use super::Trial;
use crate::descriptor::DataObjectDescriptor;
use crate::dtype::Dtype;
use crate::encode::EncodeOptions;
use crate::pipeline::{NONE, PACKING, PipelineError, SHUFFLE};
use crate::value::Value;

/// A way of storing an array.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What is asked of the encoder.
    pub descriptor: DataObjectDescriptor,
    is_lossless: bool,
}

impl Candidate {
    /// Everything that is worth a try for these values: without loss, and, for float64 values and a bound on their
    /// error, with. `descriptor` says what the values are.
    pub fn all(descriptor: &DataObjectDescriptor, values: &[u8], bound: Option<f64>) -> Vec<Self> {
        let mut all: Vec<Self> = lossless(descriptor)
            .into_iter()
            .map(|descriptor| Self { descriptor, is_lossless: true })
            .collect();
        if let (Some(bound), Dtype::Float64) = (bound.filter(|bound| *bound > 0.0), descriptor.dtype) {
            let lossy = lossy(descriptor, values, bound);
            all.extend(lossy.into_iter().map(|descriptor| Self { descriptor, is_lossless: false }));
        }
        all
    }

    /// What a descriptor asks for.
    pub fn given(descriptor: &DataObjectDescriptor) -> Self {
        let is_lossless = descriptor.encoding == NONE && !["zfp", "sz3"].contains(&&*descriptor.compression);
        Self { descriptor: descriptor.clone(), is_lossless }
    }

    /// Whether every value comes back as it was.
    pub fn is_lossless(&self) -> bool {
        self.is_lossless
    }

    /// Stores values in this way.
    pub fn encode(&self, values: &[u8], options: &EncodeOptions) -> Result<Trial, PipelineError> {
        Trial::of(&self.descriptor, values, options)
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let descriptor = &self.descriptor;
        let param = |key: &str| descriptor.params.get(key).map(Value::printed).unwrap_or_default();
        let mut parts = Vec::new();
        if descriptor.encoding != NONE {
            parts.push(format!("{} {} bits", descriptor.encoding, param("sp_bits_per_value")));
        }
        if descriptor.filter != NONE {
            parts.push(descriptor.filter.clone());
        }
        match &*descriptor.compression {
            NONE => {}
            "zfp" => {
                let mode = param("zfp_mode");
                let mode = mode.strip_prefix("fixed_").unwrap_or(&mode);
                let bound = if mode == "accuracy" { "tolerance" } else { mode };
                parts.push(format!("zfp {mode} {}", param(&format!("zfp_{bound}"))));
            }
            "sz3" => {
                parts.push(format!("sz3 {} {}", param("sz3_error_bound_mode"), param("sz3_error_bound")));
            }
            "zstd" => parts.push(format!("zstd {}", param("zstd_level")).trim_end().to_owned()),
            "blosc2" => {
                let inner = format!("blosc2 {} {}", param("blosc2_codec"), param("blosc2_clevel"));
                parts.push(inner.trim_end().to_owned());
            }
            name => parts.push(name.to_owned()),
        }
        if parts.is_empty() {
            parts.push(NONE.to_owned());
        }
        f.write_str(&parts.join(" + "))
    }
}

/// The general compressors that are built in, over anything.
fn general(descriptor: &DataObjectDescriptor) -> Vec<DataObjectDescriptor> {
    let mut all = vec![descriptor.clone()];
    if zstd::is_built_in() {
        all.push(descriptor.clone().with_compression("zstd").with_param("zstd_level", 3));
    }
    if lz4::is_built_in() {
        all.push(descriptor.clone().with_compression("lz4"));
    }
    all
}

fn with_blosc2(descriptor: &DataObjectDescriptor) -> Vec<DataObjectDescriptor> {
    let one = |codec: &str| {
        let descriptor = descriptor.clone().with_compression("blosc2");
        descriptor.with_param("blosc2_codec", codec).with_param("blosc2_clevel", 5)
    };
    if blosc2::is_built_in() { vec![one("lz4"), one("zstd")] } else { Vec::new() }
}

fn with_szip(descriptor: &DataObjectDescriptor, flags: i32) -> DataObjectDescriptor {
    let descriptor = descriptor.clone().with_compression("szip").with_param("szip_rsi", 128);
    descriptor.with_param("szip_block_size", 16).with_param("szip_flags", flags)
}

fn with_shuffle(descriptor: &DataObjectDescriptor, size: u32) -> DataObjectDescriptor {
    descriptor.clone().with_filter(SHUFFLE).with_param("shuffle_element_size", size)
}

fn lossless(descriptor: &DataObjectDescriptor) -> Vec<DataObjectDescriptor> {
    let mut all = general(descriptor);
    let dtype = descriptor.dtype;
    if dtype == Dtype::Bitmask {
        all.push(descriptor.clone().with_compression("rle"));
        all.push(descriptor.clone().with_compression("roaring"));
        return all;
    }
    all.extend(with_blosc2(descriptor));
    let bytes = dtype.bits() / 8;
    if bytes > 1 {
        all.extend(general(&with_shuffle(descriptor, bytes)).into_iter().skip(1));
    }
    match dtype {
        Dtype::Uint8 | Dtype::Uint16 | Dtype::Uint32 => all.push(with_szip(descriptor, 8)),
        Dtype::Int8 | Dtype::Int16 | Dtype::Int32 => all.push(with_szip(descriptor, 9)),
        _ => {}
    }
    all
}

fn lossy(descriptor: &DataObjectDescriptor, values: &[u8], bound: f64) -> Vec<DataObjectDescriptor> {
    let mut all = Vec::new();
    if let Some((reference, scale, least)) = packing(descriptor, values, bound) {
        let packed = |bits: u32| {
            descriptor
                .clone()
                .with_encoding(PACKING)
                .with_param("sp_reference_value", reference)
                .with_param("sp_binary_scale_factor", scale)
                .with_param("sp_decimal_scale_factor", 0)
                .with_param("sp_bits_per_value", bits)
        };
        all.extend(general(&packed(least)));
        let whole = least.max(1).next_multiple_of(8);
        if whole <= 32 {
            all.push(with_szip(&packed(whole), 8));
        }
        if whole <= 64 {
            if whole != least {
                all.extend(general(&packed(whole)).into_iter().skip(1));
            }
            all.extend(general(&with_shuffle(&packed(whole), whole / 8)).into_iter().skip(1));
            all.extend(with_blosc2(&packed(whole)));
        }
    }
    if zfp::is_built_in() {
        let zfp = descriptor.clone().with_compression("zfp").with_param("zfp_mode", "fixed_accuracy");
        all.push(zfp.with_param("zfp_tolerance", bound));
    }
    if sz3::is_built_in() {
        let sz3 = descriptor.clone().with_compression("sz3").with_param("sz3_error_bound_mode", "abs");
        all.push(sz3.with_param("sz3_error_bound", bound));
    }
    all
}

/// Reference value, binary scale and fewest bits of a packing whose steps are at most twice the bound apart.
fn packing(descriptor: &DataObjectDescriptor, values: &[u8], bound: f64) -> Option<(f64, i32, u32)> {
    let little = super::little_endian(descriptor, values);
    let (numbers, _) = little.as_chunks::<8>();
    let numbers = numbers.iter().map(|bytes| f64::from_le_bytes(*bytes)).filter(|number| number.is_finite());
    let (low, high) = numbers
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), number| (low.min(number), high.max(number)));
    let range = high - low;
    if !range.is_finite() {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "logarithms of doubles are small")]
    let scale = ((2.0 * bound).log2().floor() as i32).clamp(-256, 256);
    // One more than the largest number of steps, so that rounding up fits too.
    let steps = range * f64::exp2(f64::from(-scale)) + 1.0;
    let bits = (0..=64).find(|bits| f64::exp2(f64::from(*bits)) >= steps.ceil())?;
    Some((low, scale, bits))
}
