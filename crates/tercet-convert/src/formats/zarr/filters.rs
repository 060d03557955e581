//! Filters: array-to-array codecs of numcodecs, which come before the serializer.
//!
//! They work on the elements of a chunk in the order of the file. Decoding undoes the last filter first.

use serde_json::Value;
use tercet_core::DType;

use crate::arrays::{Number, number_at, push_number};

/// An element type in a file: the type, and whether its bytes are big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoredType {
    pub(super) dtype: DType,
    pub(super) is_big: bool,
}

/// A filter.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Filter {
    /// Differences of neighbours.
    Delta { decoded: StoredType, stored: StoredType },
    /// `stored / scale + offset`.
    ScaleOffset { decoded: StoredType, stored: StoredType, scale: f64, offset: f64 },
    /// Another element type.
    Cast { decoded: StoredType, stored: StoredType },
    /// Eight bools in a byte, after the number of bits that fill the last one.
    PackBits,
}

type Decode<T> = Result<T, String>;

impl StoredType {
    /// Parses a type of NumPy: `<f4`, `|u1`.
    pub(super) fn parse(text: &str) -> Decode<Self> {
        let wrong = || format!("the data type `{text}` is not supported");
        let (order, name) = text.split_at_checked(1).ok_or_else(wrong)?;
        let dtype = match name {
            "b1" => DType::Bool,
            "i1" => DType::I8,
            "i2" => DType::I16,
            "i4" => DType::I32,
            "i8" => DType::I64,
            "u1" => DType::U8,
            "u2" => DType::U16,
            "u4" => DType::U32,
            "u8" => DType::U64,
            "f2" => DType::F16,
            "f4" => DType::F32,
            "f8" => DType::F64,
            "c8" => DType::C64,
            "c16" => DType::C128,
            _ => return Err(wrong()),
        };
        Ok(Self { dtype, is_big: order == ">" })
    }

    fn size(self) -> usize {
        self.dtype.size().unwrap_or(1)
    }

    fn numbers(self, bytes: &[u8]) -> impl Iterator<Item = Decode<Number>> {
        let mut element = [0; 16];
        bytes.chunks_exact(self.size()).map(move |stored| {
            let element = &mut element[..stored.len()];
            element.copy_from_slice(stored);
            if self.is_big {
                element.reverse();
            }
            number_at(self.dtype, element).ok_or_else(|| format!("{} has no filters", self.dtype))
        })
    }

    /// Appends a number as NumPy converts it: floats are rounded, and the fraction is cut off for integers.
    #[expect(clippy::cast_possible_truncation, reason = "the conversion of the filter")]
    fn push(self, number: Number, out: &mut Vec<u8>) -> Decode<()> {
        use tercet_core::tensor::f16;
        let at = out.len();
        let rounded = match (self.dtype, number) {
            (DType::F16, number) => Number::Float(f16::from_f64(number.as_f64()).to_f64()),
            (DType::F32, number) => Number::Float(f64::from(number.as_f64() as f32)),
            (DType::F64, number) => Number::Float(number.as_f64()),
            (_, Number::Float(value)) => Number::Float(value.trunc()),
            (_, number) => number,
        };
        if !push_number(self.dtype, rounded, out) {
            return Err(format!("a filtered value does not fit into {}", self.dtype));
        }
        if self.is_big {
            out[at..].reverse();
        }
        Ok(())
    }
}

impl Filter {
    /// The filter of a name; `None` if it is none of numbers.
    pub(super) fn parse(name: &str, options: &Value) -> Decode<Option<Self>> {
        let typed = |key: &str| match options.get(key).and_then(Value::as_str) {
            Some(text) => StoredType::parse(text).map(Some),
            None => Ok(None),
        };
        let number = |key: &str| {
            let value = options.get(key).and_then(Value::as_f64);
            value.ok_or_else(|| format!("the filter `{name}` has no `{key}`"))
        };
        let missing = || format!("the filter `{name}` has no type");
        match name {
            "delta" | "fixedscaleoffset" | "quantize" => {
                let decoded = typed("dtype")?.ok_or_else(missing)?;
                let stored = typed("astype")?.unwrap_or(decoded);
                Ok(Some(match name {
                    "delta" => Self::Delta { decoded, stored },
                    "quantize" => Self::Cast { decoded, stored },
                    _ => {
                        let (scale, offset) = (number("scale")?, number("offset")?);
                        Self::ScaleOffset { decoded, stored, scale, offset }
                    }
                }))
            }
            "astype" => {
                let decoded = typed("decode_dtype")?.ok_or_else(missing)?;
                let stored = typed("encode_dtype")?.ok_or_else(missing)?;
                Ok(Some(Self::Cast { decoded, stored }))
            }
            "packbits" => Ok(Some(Self::PackBits)),
            _ => Ok(None),
        }
    }

    /// Undoes the filter. `len` is the number of bytes of the elements of a chunk before all filters.
    pub(super) fn decode(&self, bytes: Vec<u8>, len: usize) -> Decode<Vec<u8>> {
        match self {
            Self::Delta { decoded, stored } => delta(&bytes, *decoded, *stored),
            Self::ScaleOffset { decoded, stored, scale, offset } => {
                let scaled = |number: Number| Number::Float(number.as_f64() / scale + offset);
                each(&bytes, *decoded, *stored, scaled)
            }
            Self::Cast { decoded, stored } if decoded == stored => Ok(bytes),
            Self::Cast { decoded, stored } => each(&bytes, *decoded, *stored, |number| number),
            Self::PackBits => {
                let (unused, packed) = bytes.split_first().ok_or("packed bits are truncated")?;
                let bits = (packed.len() * 8).checked_sub(usize::from(*unused));
                if bits != Some(len) {
                    return Err("packed bits have another length than the chunk".to_owned());
                }
                Ok((0..len).map(|bit| packed[bit / 8] >> (7 - bit % 8) & 1).collect())
            }
        }
    }
}

fn each(
    bytes: &[u8],
    decoded: StoredType,
    stored: StoredType,
    convert: impl Fn(Number) -> Number,
) -> Decode<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len() / stored.size() * decoded.size());
    for number in stored.numbers(bytes) {
        decoded.push(convert(number?), &mut out)?;
    }
    Ok(out)
}

/// Sums of differences, in the arithmetic of the decoded type: integers wrap.
fn delta(bytes: &[u8], decoded: StoredType, stored: StoredType) -> Decode<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len() / stored.size() * decoded.size());
    if decoded.dtype.is_float() {
        let mut sum = 0f64;
        for number in stored.numbers(bytes) {
            // Sums are rounded to the type, as NumPy adds them.
            sum += number?.as_f64();
            let at = out.len();
            decoded.push(Number::Float(sum), &mut out)?;
            let mut element = out[at..].to_vec();
            if decoded.is_big {
                element.reverse();
            }
            sum = number_at(decoded.dtype, &element).map_or(sum, Number::as_f64);
        }
        return Ok(out);
    }
    let mut sum = 0u64;
    for number in stored.numbers(bytes) {
        let step = match number? {
            // The low bits of a two's complement number.
            Number::Int(value) => u64::from_le_bytes(value.to_le_bytes()[..8].try_into().unwrap_or([0; 8])),
            Number::Float(_) => return Err("differences of integers are floats".to_owned()),
        };
        sum = sum.wrapping_add(step);
        let at = out.len();
        out.extend(&sum.to_le_bytes()[..decoded.size().min(8)]);
        if decoded.is_big {
            out[at..].reverse();
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decode(name: &str, options: &Value, bytes: &[u8], len: usize) -> Decode<Vec<u8>> {
        Filter::parse(name, options)?.ok_or("no filter")?.decode(bytes.to_vec(), len)
    }

    #[test]
    fn differences_are_summed_and_wrap() {
        let options = json!({"dtype": "<u1", "astype": "|i1"});
        assert_eq!(decode("delta", &options, &[250, 10, 255, 0], 4).unwrap(), [250, 4, 3, 3]);
        let options = json!({"dtype": ">i2"});
        assert_eq!(decode("delta", &options, &[1, 0, 255, 255], 4).unwrap(), [1, 0, 0, 255]);
        let floats: Vec<u8> = [1.5f32, -0.25, 8.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        let sums: Vec<u8> = [1.5f32, 1.25, 9.25].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(decode("delta", &json!({"dtype": "<f4"}), &floats, 12).unwrap(), sums);
    }

    #[test]
    fn scaled_integers_become_floats() {
        let options = json!({"dtype": "<f8", "astype": "|u1", "scale": 10, "offset": 1000});
        let expected: Vec<u8> =
            [1000.0f64, 1000.5, 1025.5].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(decode("fixedscaleoffset", &options, &[0, 5, 255], 24).unwrap(), expected);
        assert!(decode("fixedscaleoffset", &json!({"dtype": "<f8"}), &[], 0).is_err());
    }

    #[test]
    fn bits_are_unpacked_from_the_highest() {
        assert_eq!(
            decode("packbits", &Value::Null, &[6, 0b1100_0000, 0b0100_0000], 10).unwrap(),
            [1, 1, 0, 0, 0, 0, 0, 0, 0, 1]
        );
        for damaged in [&[][..], &[0], &[9, 1], &[0, 1, 2]] {
            assert!(decode("packbits", &Value::Null, damaged, 9).is_err());
        }
    }

    #[test]
    fn values_that_do_not_fit_are_errors() {
        let options = json!({"encode_dtype": "<i2", "decode_dtype": "|u1"});
        assert_eq!(decode("astype", &options, &[7, 0], 1).unwrap(), [7]);
        assert!(decode("astype", &options, &[255, 255], 1).is_err());
        assert!(decode("astype", &json!({"encode_dtype": "<q9"}), &[], 1).is_err());
    }
}
