//! Candidate pipelines.

use std::fmt;

use tercet_codec::bytes::{blosc2, lz4, sz3, zfp, zstd};
use tercet_codec::pack::BINARY_SCALES;
use tercet_core::threads::install;

use super::Trial;
use crate::descriptor::DataObjectDescriptor;
use crate::encode::EncodeOptions;
use crate::pipeline::{NONE, PACKING, PipelineError, SHUFFLE};
use crate::value::Value;
use tercet_core::DType;

/// Larger arrays are not encoded with the highest level: it compresses a few megabytes per second.
const LARGE: usize = 64 << 20;

/// A candidate pipeline.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The descriptor with the pipeline.
    pub descriptor: DataObjectDescriptor,
    is_lossless: bool,
}

impl Candidate {
    /// The candidates for these values: lossless ones and, for float64 values and an error bound, lossy ones with the largest
    /// packing steps within the bound. Levels are the default ones. `descriptor` has no pipeline.
    pub fn all(descriptor: &DataObjectDescriptor, values: &[u8], bound: Option<f64>) -> Vec<Self> {
        let mut all: Vec<Self> = lossless(descriptor)
            .into_iter()
            .map(|descriptor| Self { descriptor, is_lossless: true })
            .collect();
        if let (Some(bound), DType::F64) = (bound, descriptor.dtype) {
            let lossy = lossy(descriptor, values, bound);
            all.extend(lossy.into_iter().map(|descriptor| Self { descriptor, is_lossless: false }));
        }
        all
    }

    /// The pipeline of a descriptor.
    pub fn given(descriptor: &DataObjectDescriptor) -> Self {
        let is_lossless = descriptor.encoding == NONE && !["zfp", "sz3"].contains(&&*descriptor.compression);
        Self { descriptor: descriptor.clone(), is_lossless }
    }

    /// Whether decoding returns the original values.
    pub fn is_lossless(&self) -> bool {
        self.is_lossless
    }

    /// Whether a higher level can make it smaller, at the same error.
    pub(super) fn has_levels(&self) -> bool {
        let descriptor = &self.descriptor;
        let is_zstd = |key| descriptor.params.get(key).and_then(Value::as_text) == Some("zstd");
        descriptor.compression == "zstd" || descriptor.compression == "blosc2" && is_zstd("blosc2_codec")
    }

    /// Whether both have the same encoding, filter and compression.
    pub(super) fn is_same_kind(&self, other: &Self) -> bool {
        let kind = |of: &Self| {
            let of = &of.descriptor;
            (of.encoding.clone(), of.filter.clone(), of.compression.clone())
        };
        kind(self) == kind(other)
    }

    /// The same with higher levels, for an array of `len` bytes: `all`, or the highest that takes an acceptable time.
    pub(super) fn slower(&self, len: usize, all: bool) -> Vec<Self> {
        let (key, levels): (_, &[i32]) = match &*self.descriptor.compression {
            "zstd" if all => ("zstd_level", &[9, 19]),
            "zstd" if len > LARGE => ("zstd_level", &[9]),
            "zstd" => ("zstd_level", &[19]),
            "blosc2" => ("blosc2_clevel", &[9]),
            _ => return Vec::new(),
        };
        let with = |level: &i32| Self {
            descriptor: self.descriptor.clone().with_param(key, *level),
            is_lossless: self.is_lossless,
        };
        levels.iter().map(with).collect()
    }

    /// Encodes values.
    pub fn encode(&self, values: &[u8], options: &EncodeOptions) -> Result<Trial, PipelineError> {
        install(options.threads, || Trial::run(&self.descriptor, values, options))
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let descriptor = &self.descriptor;
        let param = |key: &str| descriptor.params.get(key).map(Value::printed).unwrap_or_default();
        let mut parts = Vec::new();
        if descriptor.encoding != NONE {
            let decimal = param("sp_decimal_scale_factor");
            let scale = if ["", "0"].contains(&&*decimal) { String::new() } else { format!(" D {decimal}") };
            parts.push(format!("{} {} bits{scale}", descriptor.encoding, param("sp_bits_per_value")));
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
            "szip" => {
                let (block, rsi) = (param("szip_block_size"), param("szip_rsi"));
                let block = if ["", "16"].contains(&&*block) { String::new() } else { format!(" {block}") };
                let rsi = if ["", "128"].contains(&&*rsi) { String::new() } else { format!(" rsi {rsi}") };
                parts.push(format!("szip{block}{rsi}"));
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

/// The general-purpose compressors that are built in.
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
    with_szip_blocks(descriptor, flags, 16)
}

fn with_szip_blocks(descriptor: &DataObjectDescriptor, flags: i32, block: u32) -> DataObjectDescriptor {
    let descriptor = descriptor.clone().with_compression("szip").with_param("szip_rsi", 128);
    descriptor.with_param("szip_block_size", block).with_param("szip_flags", flags)
}

fn with_shuffle(descriptor: &DataObjectDescriptor, size: u32) -> DataObjectDescriptor {
    descriptor.clone().with_filter(SHUFFLE).with_param("shuffle_element_size", size)
}

fn lossless(descriptor: &DataObjectDescriptor) -> Vec<DataObjectDescriptor> {
    let mut all = general(descriptor);
    let dtype = descriptor.dtype;
    if dtype == DType::Bitmask {
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
        DType::U8 | DType::U16 | DType::U32 => all.push(with_szip(descriptor, 8)),
        DType::I8 | DType::I16 | DType::I32 => all.push(with_szip(descriptor, 9)),
        _ => {}
    }
    all
}

fn lossy(descriptor: &DataObjectDescriptor, values: &[u8], bound: f64) -> Vec<DataObjectDescriptor> {
    let mut all = Vec::new();
    let little = super::little_endian(descriptor, values);
    if let Some(extent) = Extent::measure(&little) {
        // Multiples of a power of two are packed without loss; a bound may allow larger steps.
        let exact = extent.exact_scale(&little).map(|binary| Step { binary, decimal: 0 });
        let mut tried: Vec<Step> = exact.into_iter().collect();
        if bound > 0.0 {
            // Values with a common spacing, as those that were packed before, may be near multiples of a larger step.
            let larger = Step::larger(bound).into_iter();
            let larger = larger.filter(|step| extent.holds(&little, *step, bound)).take(LARGER_STEPS);
            let within = Step::at_most(bound, STEPS);
            tried.extend(larger.chain(within).filter(|step| Some(*step) != exact));
        }
        for step in tried {
            if let Some(bits) = extent.bits(step) {
                all.extend(packed(descriptor, extent.low, step, bits));
            }
        }
    }
    if zfp::is_built_in() && bound > 0.0 {
        let zfp = descriptor.clone().with_compression("zfp").with_param("zfp_mode", "fixed_accuracy");
        all.push(zfp.with_param("zfp_tolerance", bound));
    }
    if sz3::is_built_in() && bound > 0.0 {
        let sz3 = descriptor.clone().with_compression("sz3").with_param("sz3_error_bound_mode", "abs");
        all.push(sz3.with_param("sz3_error_bound", bound));
    }
    all
}

/// Packed values in the fewest bits and in full bytes.
fn packed(descriptor: &DataObjectDescriptor, low: f64, step: Step, least: u32) -> Vec<DataObjectDescriptor> {
    let with = |bits: u32| {
        descriptor
            .clone()
            .with_encoding(PACKING)
            .with_param("sp_reference_value", low)
            .with_param("sp_binary_scale_factor", step.binary)
            .with_param("sp_decimal_scale_factor", step.decimal)
            .with_param("sp_bits_per_value", bits)
    };
    let mut all = general(&with(least));
    let width = least.max(1).next_multiple_of(8);
    if width <= 32 {
        all.extend([16, 8, 32, 64].map(|block| with_szip_blocks(&with(width), 8, block)));
        // Fewer reference samples and offsets, for coarser access to parts.
        let coarse = |block| with_szip_blocks(&with(width), 8, block).with_param("szip_rsi", COARSE_RSI);
        all.extend([32, 64].map(coarse));
    }
    if width != least {
        all.extend(general(&with(width)).into_iter().skip(1));
    }
    all.extend(general(&with_shuffle(&with(width), width / 8)).into_iter().skip(1));
    all.extend(with_blosc2(&with(width)));
    all
}

/// The difference of two neighbouring packed values: 2^binary · 10^-decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    binary: i32,
    decimal: i32,
}

/// The reference sample interval of the coarser szip candidates, in blocks.
const COARSE_RSI: u32 = 1024;
/// The number of packing steps that are tried.
const STEPS: usize = 3;
/// The number of larger packing steps that are tried, and the largest in powers of two of the bound.
const LARGER_STEPS: usize = 2;
const MAX_STEP: i32 = 8;
/// The decimal scales that are tried. Among these products of powers one is within a few percent of any number.
const DECIMAL_SCALES: std::ops::RangeInclusive<i32> = -20..=20;

impl Step {
    fn size(self) -> f64 {
        f64::exp2(f64::from(self.binary)) * 10f64.powi(-self.decimal)
    }

    /// Steps of more than twice the bound, largest first.
    fn larger(bound: f64) -> Vec<Self> {
        let mut steps = Vec::new();
        for power in (1..=MAX_STEP).rev() {
            for step in Self::at_most(bound * f64::exp2(f64::from(power)), STEPS) {
                if step.size() > 2.0 * bound && !steps.contains(&step) {
                    steps.push(step);
                }
            }
        }
        steps.sort_by(|a, b| b.size().total_cmp(&a.size()));
        steps
    }

    /// The `count` largest steps of at most twice the bound, largest first, and the power of two.
    fn at_most(bound: f64, count: usize) -> Vec<Self> {
        let largest = 2.0 * bound;
        let step = |decimal: i32| {
            #[expect(clippy::cast_possible_truncation, reason = "logarithms of doubles are small")]
            let binary = (largest.log2() + f64::from(decimal) * std::f64::consts::LOG2_10).floor() as i32;
            let binary = binary.clamp(*BINARY_SCALES.start(), *BINARY_SCALES.end());
            let step = Self { binary, decimal };
            // Logarithms are rounded.
            if step.size() > largest { Self { binary: binary - 1, decimal } } else { step }
        };
        let is_valid = |step: &Self| BINARY_SCALES.contains(&step.binary) && step.size() <= largest;
        let mut steps: Vec<Self> = DECIMAL_SCALES.map(step).filter(is_valid).collect();
        // Of equal steps the one with the smaller decimal scale, which has the smaller rounding errors.
        steps.sort_by(|a, b| b.size().total_cmp(&a.size()).then(a.decimal.abs().cmp(&b.decimal.abs())));
        steps.truncate(count);
        let binary = step(0);
        if is_valid(&binary) && !steps.contains(&binary) {
            steps.push(binary);
        }
        steps
    }
}

fn finite(little: &[u8]) -> impl Iterator<Item = f64> {
    let (numbers, _) = little.as_chunks::<8>();
    numbers.iter().map(|bytes| f64::from_le_bytes(*bytes)).filter(|number| number.is_finite())
}

/// The minimum and maximum of the finite values.
#[derive(Clone, Copy)]
struct Extent {
    low: f64,
    high: f64,
}

impl Extent {
    /// `None` if there is no finite value, or the range overflows.
    fn measure(little: &[u8]) -> Option<Self> {
        let start = (f64::INFINITY, f64::NEG_INFINITY);
        let (low, high) =
            finite(little).fold(start, |(low, high), number| (low.min(number), high.max(number)));
        (high - low).is_finite().then_some(Self { low, high })
    }

    /// The number of bits for all steps.
    fn bits(self, step: Step) -> Option<u32> {
        // One more than the number of steps, so that rounding up fits.
        let steps = (self.high - self.low) / step.size() + 1.0;
        (0..=64).find(|bits| f64::exp2(f64::from(*bits)) >= steps.ceil())
    }

    /// Whether all values are within the bound of a multiple of a step. The first value that is not ends the search.
    fn holds(self, little: &[u8], step: Step, bound: f64) -> bool {
        let size = step.size();
        finite(little).all(|number| {
            let steps = ((number - self.low) / size).round();
            (self.low + steps * size - number).abs() <= bound
        })
    }

    /// The largest scale of which all differences from the minimum are multiples.
    fn exact_scale(self, little: &[u8]) -> Option<i32> {
        let mut scale = *BINARY_SCALES.end();
        for number in finite(little) {
            let distance = number - self.low;
            #[expect(clippy::float_cmp, reason = "whether the distance is exact")]
            if self.low + distance != number {
                return None;
            }
            if distance > 0.0 {
                scale = scale.min(lowest_bit(distance));
                // Noise in the last digits shows in the first values.
                let step = Step { binary: scale, decimal: 0 };
                self.bits(step).filter(|_| BINARY_SCALES.contains(&scale))?;
            }
        }
        Some(scale).filter(|_| self.high > self.low)
    }
}

/// The exponent of the lowest set bit of a nonzero number.
fn lowest_bit(number: f64) -> i32 {
    const FRACTION: u32 = f64::MANTISSA_DIGITS - 1;
    let bits = number.to_bits();
    let exponent = (bits >> FRACTION & 0x7ff) as i32;
    let fraction = bits & ((1 << FRACTION) - 1);
    // Subnormal numbers have no hidden bit.
    let (digits, exponent) = if exponent == 0 { (fraction, 1) } else { (fraction | 1 << FRACTION, exponent) };
    exponent - 1075 + digits.trailing_zeros().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_bits_are_found() {
        for (number, expected) in [(1.0, 0), (3.0, 0), (0.75, -2), (96.0, 5), (f64::MIN_POSITIVE, -1022)] {
            assert_eq!(lowest_bit(number), expected, "{number}");
        }
        assert_eq!(lowest_bit(f64::from_bits(6)), -1073);
    }

    #[test]
    fn steps_are_just_below_twice_the_bound() {
        for exponent in -60..60 {
            let bound = 10f64.powf(f64::from(exponent) / 7.0);
            let steps = Step::at_most(bound, 3);
            assert!(steps.len() >= 3 && steps.iter().any(|step| step.decimal == 0), "{bound}: {steps:?}");
            assert!(steps.iter().all(|step| step.size() <= 2.0 * bound), "{bound}: {steps:?}");
            assert!(steps[0].size() > 1.9 * bound, "{bound}: {} {steps:?}", steps[0].size());
        }
        assert_eq!(Step::at_most(0.5, 1)[0], Step { binary: 0, decimal: 0 });
        assert_eq!(Step::at_most(0.1, 1)[0], Step { binary: 1, decimal: 1 });
    }

    /// Values near multiples of 1/128: a step of more than twice the bound holds it.
    #[test]
    fn larger_steps_hold_for_spaced_values() {
        let spaced = |n: i32| f64::from(n * n % 911) / 128.0 + f64::from(n % 3) * 0.000_3;
        let spaced: Vec<u8> = (0..2000).flat_map(|n| spaced(n).to_le_bytes()).collect();
        let extent = Extent::measure(&spaced).unwrap();
        let steps = Step::larger(0.001);
        assert!(
            steps.is_sorted_by(|a, b| a.size() >= b.size()) && steps.iter().all(|step| step.size() > 0.002)
        );
        let found = steps.into_iter().find(|step| extent.holds(&spaced, *step, 0.001)).unwrap();
        assert_eq!(found, Step { binary: -7, decimal: 0 });
        let noise: Vec<u8> = (0..2000).flat_map(|n| f64::from(n).sqrt().to_le_bytes()).collect();
        let extent = Extent::measure(&noise).unwrap();
        assert!(!Step::larger(0.001).into_iter().any(|step| extent.holds(&noise, step, 0.001)));
    }

    #[test]
    fn values_that_are_multiples_are_packed_exactly() {
        let bytes = |values: &[f64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let scale = |values: &[f64]| {
            let little = bytes(values);
            let extent = Extent::measure(&little).unwrap();
            extent
                .exact_scale(&little)
                .map(|scale| (scale, extent.bits(Step { binary: scale, decimal: 0 }).unwrap()))
        };
        assert_eq!(scale(&[10.25, 10.5, f64::NAN, 11.25]), Some((-2, 3)));
        assert_eq!(scale(&[-6.0, 2.0]), Some((3, 1)));
        assert_eq!(scale(&[0.1, 0.2, 1e9]), None);
        assert_eq!(scale(&[5.0, 5.0]), None);
    }
}
