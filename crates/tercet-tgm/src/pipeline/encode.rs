//! Encoding: values → payload.

use std::borrow::Cow;

use tercet_codec::bits::{rle, roaring};
use tercet_codec::bytes::{blosc2, lz4, sz3, szip, zfp, zstd};
use tercet_codec::finite::{self, Float, Masks};
use tercet_codec::pack::Packing;
use tercet_codec::shuffle;

use super::decode::zeroed;
use super::error::PipelineError;
use super::parameters::{Parameters, SP_BINARY, SP_BITS, SP_DECIMAL, SP_REFERENCE, SZIP_OFFSETS};
use super::{Codec, PACKING, Pipeline, rules};
use crate::descriptor::DataObjectDescriptor;
use crate::dtype::{ByteOrder, float_type, swap_in_place};
use crate::encode::EncodeOptions;
use crate::value::Value;

/// The maximum block size of libaec.
const MAX_SZIP_BLOCK: u64 = 64;

/// Encodes values with the pipeline of a descriptor; returns the descriptor with all parameters, and the
/// payload with its masks. Unchanged values are not copied.
pub(crate) fn encode<'a>(
    descriptor: &'a DataObjectDescriptor,
    values: &'a [u8],
    options: &EncodeOptions,
) -> Result<(Cow<'a, DataObjectDescriptor>, Cow<'a, [u8]>), PipelineError> {
    rules::check_names(descriptor)?;
    let mut descriptor = Cow::Borrowed(descriptor);
    let float = float_type(descriptor.dtype);
    let is_packed = descriptor.encoding == PACKING;
    let requested = if is_packed { Some(RequestedPacking::parse(&descriptor)?) } else { None };
    let mut values = Values { given: values, order: descriptor.stored_order(), little: None };
    let is_allowed = options.allow_nan || options.allow_inf;
    let mut masks = Masks::default();
    if let Some(float) = float {
        values.make_little_endian(descriptor.dtype.swap_unit());
        // Packing detects non-finite values itself.
        if !is_packed || is_allowed {
            refuse_non_finite(values.little_endian(), float, options)?;
        }
        if is_allowed && !is_packed && finite::first(values.little_endian(), float, false, false).is_some() {
            masks = finite::extract_masks(values.to_mut(), float)?;
        }
    }
    let packing =
        requested.map(|requested| requested.resolve(values.little_endian(), is_allowed)).transpose()?;
    if let Some(packing) = packing {
        write_packing(&mut descriptor, packing);
    }
    let pipeline = Pipeline::with_packing(&descriptor, packing)?;
    let mut bytes = values.into_input(&pipeline);
    if let Some(packing) = packing {
        let mut packed = zeroed(pipeline.encoded_len)?;
        if is_allowed {
            masks = packing.pack_masked(&bytes, &mut packed)?;
        } else {
            packing.pack(&bytes, &mut packed)?;
        }
        bytes = Cow::Owned(packed);
    }
    if let Some(size) = pipeline.shuffle {
        let mut shuffled = zeroed(pipeline.encoded_len)?;
        shuffle::shuffle(&bytes, size, &mut shuffled)?;
        bytes = Cow::Owned(shuffled);
    }
    let (mut payload, offsets) = pipeline.compress(bytes)?;
    if let Some(offsets) = offsets {
        let offsets = offsets.into_iter().map(Value::from).collect();
        descriptor.to_mut().params.insert(SZIP_OFFSETS.to_owned(), Value::Array(offsets));
    }
    if let Some(entry) = super::masks::append(&masks, pipeline.elements, options, &mut payload)? {
        descriptor.to_mut().masks = Some(entry);
    }
    Ok((descriptor, payload))
}

/// Rejects non-finite values unless they are allowed.
fn refuse_non_finite(little: &[u8], float: Float, options: &EncodeOptions) -> Result<(), PipelineError> {
    match finite::first(little, float, options.allow_nan, options.allow_inf) {
        Some((index, what)) => Err(PipelineError::NonFinite { index, what }),
        None => Ok(()),
    }
}

/// The values to be encoded.
struct Values<'a> {
    /// In the byte order of the descriptor.
    given: &'a [u8],
    order: ByteOrder,
    /// A little-endian copy, if they are big-endian or changed.
    little: Option<Vec<u8>>,
}

impl<'a> Values<'a> {
    fn make_little_endian(&mut self, unit: usize) {
        if self.order == ByteOrder::Big {
            let mut little = self.given.to_vec();
            swap_in_place(&mut little, unit);
            self.little = Some(little);
        }
    }

    fn little_endian(&self) -> &[u8] {
        self.little.as_deref().unwrap_or(self.given)
    }

    fn to_mut(&mut self) -> &mut [u8] {
        self.little.get_or_insert_with(|| self.given.to_vec())
    }

    /// The input of the pipeline: numbers, or bytes in the order of the descriptor.
    fn into_input(self, pipeline: &Pipeline) -> Cow<'a, [u8]> {
        match self.little {
            Some(mut little) if pipeline.keeps_bytes() => {
                if self.order == ByteOrder::Big {
                    swap_in_place(&mut little, pipeline.dtype.swap_unit());
                }
                Cow::Owned(little)
            }
            Some(little) => Cow::Owned(little),
            None => Cow::Borrowed(self.given),
        }
    }
}

/// The requested packing of a descriptor.
struct RequestedPacking {
    bits: u32,
    decimal_scale: i32,
    explicit: Option<(f64, i32)>,
}

impl RequestedPacking {
    fn parse(descriptor: &DataObjectDescriptor) -> Result<Self, PipelineError> {
        let parameters = Parameters::new(&descriptor.params);
        let bits = parameters.bits()?;
        rules::check_combination(descriptor, Some(bits))?;
        let decimal_scale = parameters.decimal_scale()?.unwrap_or(0);
        Ok(Self { bits, decimal_scale, explicit: parameters.explicit_packing()? })
    }

    fn resolve(self, values: &[u8], skip_non_finite: bool) -> Result<Packing, PipelineError> {
        let Self { bits, decimal_scale, explicit } = self;
        let packing = match explicit {
            Some((reference, binary_scale)) => Packing { reference, binary_scale, decimal_scale, bits },
            None => Packing::for_values(values, bits, decimal_scale, skip_non_finite)?,
        };
        packing.check_for_writing()?;
        Ok(packing)
    }
}

/// Completes the parameters of a packing. Given parameters are kept.
fn write_packing(descriptor: &mut Cow<'_, DataObjectDescriptor>, packing: Packing) {
    let values = [
        (SP_BITS, packing.bits.into()),
        (SP_REFERENCE, Value::Float(packing.reference)),
        (SP_BINARY, packing.binary_scale.into()),
        (SP_DECIMAL, packing.decimal_scale.into()),
    ];
    for (key, value) in values {
        if !descriptor.params.contains_key(key) {
            descriptor.to_mut().params.insert(key.to_owned(), value);
        }
    }
}

/// Compressed bytes, and the szip offsets in them.
type Compressed<'a> = (Cow<'a, [u8]>, Option<Vec<u64>>);

impl Pipeline {
    /// Compresses the output of the previous stages; also returns the szip offsets.
    fn compress<'a>(&self, bytes: Cow<'a, [u8]>) -> Result<Compressed<'a>, PipelineError> {
        let mut out = Vec::new();
        let mut offsets = None;
        match &self.codec {
            Codec::None => return Ok((bytes, None)),
            Codec::Zstd { level } => zstd::encode(&bytes, *level, &mut out)?,
            Codec::Lz4 => lz4::encode(&bytes, &mut out)?,
            Codec::Blosc2(_) if bytes.is_empty() => return Err(no_elements("blosc2")),
            Codec::Blosc2(blosc2) => blosc2::encode(&bytes, blosc2, &mut out)?,
            Codec::Szip(szip, _) => {
                szip.check_for_writing()?;
                if szip.block() > MAX_SZIP_BLOCK {
                    let what = format!("szip blocks of {} samples", szip.block()).into();
                    return Err(PipelineError::Combination {
                        what,
                        reason: "are not supported by other readers",
                    });
                }
                offsets = Some(szip::encode(&bytes, szip, &mut out)?);
            }
            Codec::Zfp(zfp) => zfp::encode(&bytes, zfp, &mut out)?,
            Codec::Sz3(_) if bytes.is_empty() => return Err(no_elements("sz3")),
            Codec::Sz3(sz3) => sz3::encode(&bytes, sz3, &mut out)?,
            Codec::Rle => rle::encode_counted(&bytes, &mut out)?,
            Codec::Roaring => roaring::encode_counted(&bytes, &mut out)?,
        }
        Ok((Cow::Owned(out), offsets))
    }
}

fn no_elements(codec: &str) -> PipelineError {
    let what = format!("compression `{codec}` of an object without elements").into();
    PipelineError::Combination { what, reason: "is not defined" }
}
