//! Fields of objects: the properties that a listing shows beside metadata.

use tercet_core::tensor::{bf16, f16};
use tercet_core::{DType, Tensor};

use crate::descriptor::DataObjectDescriptor;
use crate::error::Error;
use crate::object::Object;
use crate::pipeline::{MaskKind, is_pipeline_parameter};
use crate::precision::Candidate;
use crate::value::Value;

/// A property of an object: a descriptor field, a size, or a statistic of its values.
///
/// ```
/// use tercet_tgm::{DataObjectDescriptor, DType, EncodeOptions, Field, GlobalMetadata, Message, Value, encode_message};
///
/// let descriptor = DataObjectDescriptor::new(DType::U8, [3]);
/// let bytes = encode_message(&GlobalMetadata::default(), &[(&descriptor, &[7, 8, 9])], &EncodeOptions::new())?;
/// let message = Message::from_bytes("example", bytes)?;
/// let object = message.object(0)?;
/// assert_eq!(object.field(Field::DType)?, Value::from("uint8"));
/// assert_eq!(object.field(Field::Mean)?, Value::from(8.0));
/// # Ok::<(), tercet_tgm::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// The number of the message in its file.
    Message,
    /// The number of the object in its message.
    Object,
    /// The extents.
    Shape,
    /// The number of axes.
    Ndim,
    /// The strides in elements, as stored.
    Strides,
    /// The element type.
    DType,
    /// The byte order: `little` or `big`.
    ByteOrder,
    /// Encoding, filter and compression, as one string.
    Encoding,
    /// The filter.
    Filter,
    /// The compressor.
    Compression,
    /// The masks: names of the non-finite values they mark, separated by spaces; null if there are none.
    Masks,
    /// The stored bytes of payload and masks.
    Size,
    /// The bytes of the decoded array.
    RawSize,
    /// The decoded size divided by the stored size.
    Ratio,
    /// The offset of the object in the file.
    Offset,
    /// The minimum, without NaN.
    Min,
    /// The maximum, without NaN.
    Max,
    /// The mean, without NaN.
    Mean,
    /// The number of NaN.
    Nans,
}

impl Field {
    /// All fields with their names.
    pub const ALL: [(&'static str, Self); 19] = [
        ("message", Self::Message),
        ("object", Self::Object),
        ("shape", Self::Shape),
        ("ndim", Self::Ndim),
        ("strides", Self::Strides),
        ("dtype", Self::DType),
        ("byte_order", Self::ByteOrder),
        ("encoding", Self::Encoding),
        ("filter", Self::Filter),
        ("compression", Self::Compression),
        ("masks", Self::Masks),
        ("size", Self::Size),
        ("raw_size", Self::RawSize),
        ("ratio", Self::Ratio),
        ("offset", Self::Offset),
        ("min", Self::Min),
        ("max", Self::Max),
        ("mean", Self::Mean),
        ("nans", Self::Nans),
    ];

    /// The field of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, field)| *field)
    }

    /// Whether the values of the object must be decoded.
    pub const fn is_statistic(self) -> bool {
        matches!(self, Self::Min | Self::Max | Self::Mean | Self::Nans)
    }
}

/// The names of the masks of a descriptor.
fn masks(descriptor: &DataObjectDescriptor) -> Vec<&'static str> {
    let has = |kind: &MaskKind| {
        let masks = descriptor.masks.as_ref().and_then(|masks| masks.untagged().get(kind.name()));
        masks.is_some_and(|mask| *mask.untagged() != Value::Null)
    };
    MaskKind::ALL.into_iter().filter(has).map(MaskKind::name).collect()
}

/// Statistics of the values of an object.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ArrayStats {
    /// The minimum without NaN: an integer or a float; null without numbers.
    pub min: Value,
    /// The maximum without NaN: an integer or a float; null without numbers.
    pub max: Value,
    /// The mean without NaN; null without numbers.
    pub mean: Value,
    /// The number of NaN; null for types that are not numbers.
    pub nans: Value,
}

impl ArrayStats {
    /// Computes the statistics. Those of complex numbers and bits are null.
    pub fn new(array: &Tensor) -> Self {
        let float = |values: &mut dyn Iterator<Item = f64>| Self::of_floats(values);
        let integer = |values: &mut dyn Iterator<Item = i128>| Self::of_integers(values);
        macro_rules! values {
            ($type:ty, $with:expr, $map:expr) => {
                match array.view().to_vec::<$type>() {
                    Some(values) => $with(&mut values.into_iter().map($map)),
                    None => Self::none(),
                }
            };
        }
        match array.dtype() {
            DType::F64 => values!(f64, float, |value| value),
            DType::F32 => values!(f32, float, f64::from),
            DType::F16 => values!(f16, float, f64::from),
            DType::BF16 => values!(bf16, float, f64::from),
            DType::I8 => values!(i8, integer, i128::from),
            DType::I16 => values!(i16, integer, i128::from),
            DType::I32 => values!(i32, integer, i128::from),
            DType::I64 => values!(i64, integer, i128::from),
            DType::U8 => values!(u8, integer, i128::from),
            DType::U16 => values!(u16, integer, i128::from),
            DType::U32 => values!(u32, integer, i128::from),
            DType::U64 => values!(u64, integer, i128::from),
            _ => Self::none(),
        }
    }

    fn none() -> Self {
        Self { min: Value::Null, max: Value::Null, mean: Value::Null, nans: Value::Null }
    }

    fn of_floats(values: &mut dyn Iterator<Item = f64>) -> Self {
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        // Neumaier's sum: the error does not grow with the number of values.
        let (mut sum, mut rest) = (0.0_f64, 0.0_f64);
        let (mut count, mut nans) = (0_u64, 0_u64);
        for value in values {
            if value.is_nan() {
                nans += 1;
                continue;
            }
            (min, max, count) = (min.min(value), max.max(value), count + 1);
            let total = sum + value;
            let lost = if sum.abs() >= value.abs() { (sum - total) + value } else { (value - total) + sum };
            if total.is_finite() {
                rest += lost;
            }
            sum = total;
        }
        let number = |value: f64| if count == 0 { Value::Null } else { Value::from(value) };
        #[expect(clippy::cast_precision_loss, reason = "a mean of more than 2^53 values")]
        let mean = (sum + rest) / count as f64;
        Self { min: number(min), max: number(max), mean: number(mean), nans: nans.into() }
    }

    fn of_integers(values: &mut dyn Iterator<Item = i128>) -> Self {
        let (mut bounds, mut sum, mut count) = (None, 0_i128, 0_u64);
        for value in values {
            let (min, max) = bounds.unwrap_or((value, value));
            bounds = Some((value.min(min), value.max(max)));
            // 2^63 values of 64 bits fit.
            sum = sum.saturating_add(value);
            count += 1;
        }
        let Some((min, max)) = bounds else { return Self { nans: 0.into(), ..Self::none() } };
        #[expect(clippy::cast_precision_loss, reason = "the mean is a float64")]
        let mean = sum as f64 / count as f64;
        Self { min: min.into(), max: max.into(), mean: mean.into(), nans: 0.into() }
    }

    /// The statistic of a field; null for other fields.
    pub fn get(&self, field: Field) -> Value {
        match field {
            Field::Min => self.min.clone(),
            Field::Max => self.max.clone(),
            Field::Mean => self.mean.clone(),
            Field::Nans => self.nans.clone(),
            _ => Value::Null,
        }
    }
}

impl Object<'_> {
    /// The stored bytes of payload and masks.
    pub fn stored_len(&self) -> u64 {
        self.payload_span().len().saturating_add(self.masks_span().len())
    }

    /// Decodes the object and computes statistics of its values.
    pub fn stats(&self) -> Result<ArrayStats, Error> {
        Ok(ArrayStats::new(&self.decode()?))
    }

    /// A parameter of the pipeline, like `sp_bits_per_value`: see [`is_pipeline_parameter`].
    pub fn pipeline_parameter(&self, key: &str) -> Option<&Value> {
        self.descriptor().params.get(key).filter(|_| is_pipeline_parameter(key))
    }

    /// The value of a field. Statistics decode the object: for several of them, use [`stats`](Self::stats).
    pub fn field(&self, field: Field) -> Result<Value, Error> {
        let descriptor = self.descriptor();
        let raw = || descriptor.elements().and_then(|elements| descriptor.dtype.byte_len(elements));
        Ok(match field {
            Field::Message => self.region().message.into(),
            Field::Object => self.index().into(),
            Field::Shape => Value::Array(descriptor.shape.iter().map(|&extent| extent.into()).collect()),
            Field::Ndim => descriptor.shape.len().into(),
            Field::Strides => Value::Array(descriptor.strides.iter().map(|&stride| stride.into()).collect()),
            Field::DType => descriptor.dtype.name().into(),
            Field::ByteOrder => descriptor.stored_order().name().into(),
            Field::Encoding => Candidate::given(descriptor).to_string().into(),
            Field::Filter => descriptor.filter.as_str().into(),
            Field::Compression => descriptor.compression.as_str().into(),
            Field::Masks => match masks(descriptor) {
                names if names.is_empty() => Value::Null,
                names => names.join(" ").into(),
            },
            Field::Size => self.stored_len().into(),
            Field::RawSize => raw().map_or(Value::Null, Value::from),
            Field::Ratio => match (raw(), self.stored_len()) {
                #[expect(clippy::cast_precision_loss, reason = "a ratio of sizes")]
                (Some(raw), stored) if stored > 0 => Value::from(raw as f64 / stored as f64),
                _ => Value::Null,
            },
            Field::Offset => self.frame().span.start().into(),
            Field::Min | Field::Max | Field::Mean | Field::Nans => self.stats()?.get(field),
        })
    }
}

#[cfg(test)]
mod tests {
    use tercet_core::Shape;

    use super::*;

    #[test]
    fn statistics_skip_nan_and_keep_integers_exact() {
        let array = Tensor::from_vec(Shape::from([4]), vec![1.5_f32, f32::NAN, -2.0, 3.5]).unwrap();
        let stats = ArrayStats::new(&array);
        assert_eq!((&stats.min, &stats.max), (&Value::from(-2.0), &Value::from(3.5)));
        assert_eq!((&stats.mean, &stats.nans), (&Value::from(1.0), &Value::from(1)));
        let array = Tensor::from_vec(Shape::from([2]), vec![u64::MAX, u64::MAX - 1]).unwrap();
        let stats = ArrayStats::new(&array);
        assert_eq!((&stats.min, &stats.max), (&Value::from(u64::MAX - 1), &Value::from(u64::MAX)));
        let array = Tensor::from_vec(Shape::from([1]), vec![f64::NAN]).unwrap();
        let stats = ArrayStats::new(&array);
        assert_eq!((&stats.min, &stats.mean, &stats.nans), (&Value::Null, &Value::Null, &Value::from(1)));
        let array = Tensor::from_vec(Shape::from([3]), vec![1e16, 1.0, -1e16]).unwrap();
        assert_eq!(ArrayStats::new(&array).mean, Value::from(1.0 / 3.0));
        let array = Tensor::from_vec(Shape::from([2]), vec![f64::INFINITY, 1.0]).unwrap();
        assert_eq!(ArrayStats::new(&array).mean, Value::from(f64::INFINITY));
    }
}
