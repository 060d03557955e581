//! CF conventions: missing values and packing of a dataset, from its attributes.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use tercet_core::limits::check_limit;
use tercet_core::tensor::{OutOfMemory, f16};
use tercet_core::{ElementType, Tensor, with_element};
use tercet_kernel::{ComputeType, Decode};

use crate::compute::{Select, compare};
use crate::error::{Error, ErrorKind};
use crate::exec::{compute_fill, compute_filter, fill_value};
use crate::file::Dataset;
use crate::query::document::parse_scalar;
use crate::query::operation::Scalar;
use crate::query::resolved::{Filter, Values};

/// Missing values and packing of a dataset, from its attributes. All values are stored (packed) values.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CfEncoding {
    /// `_FillValue` and `missing_value`; `fill_value` if there is neither. NaN is always missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_values: Vec<Scalar>,
    /// `valid_min`, or the first number of `valid_range`: stored values below it are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_min: Option<Scalar>,
    /// `valid_max`, or the second number of `valid_range`: stored values above it are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_max: Option<Scalar>,
    /// `scale_factor`: decoded values are `stored · scale_factor + add_offset`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_factor: Option<f64>,
    /// `add_offset`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add_offset: Option<f64>,
}

impl CfEncoding {
    /// Whether values are stored as they are and none but NaN is missing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether decoded values differ from stored ones.
    pub fn is_packed(&self) -> bool {
        self.scale_factor.is_some() || self.add_offset.is_some()
    }

    /// The element type of decoded values: f64 for packed ones; a float type that holds all stored ones if some may be
    /// missing.
    pub fn decoded_type(&self, stored: ElementType) -> ElementType {
        use ElementType::{F16, F32, F64, I16, U8, U16};
        if self.is_packed() {
            return F64;
        }
        let may_miss = !self.missing_values.is_empty() || self.has_valid_range();
        match stored {
            F16 | F32 | F64 => stored,
            _ if !may_miss => stored,
            U8 | U16 | I16 => F32,
            _ => F64,
        }
    }

    fn has_valid_range(&self) -> bool {
        self.valid_min.is_some() || self.valid_max.is_some()
    }

    /// How a computation treats the values of an element type. If `selects_missing`, its filter selects missing values.
    pub(crate) fn values(
        &self,
        dtype: ElementType,
        skip_missing: bool,
        selects_missing: bool,
    ) -> (Option<Scalar>, Values) {
        let exists = |number: &Scalar| with_element!(dtype, |T| fill_value::<T>(*number).is_some());
        let mut fills: Vec<Scalar> = Vec::new();
        for &fill in self.missing_values.iter().filter(|fill| exists(fill)) {
            if !fill.to_f64().is_nan() && !fills.contains(&fill) {
                fills.push(fill);
            }
        }
        let masks = !fills.is_empty() || self.has_valid_range();
        let is_null_of_range = selects_missing && self.has_valid_range();
        // Stored values are compared as they are where possible: f64 rounds 64-bit integers.
        if self.is_packed() || fills.len() > 2 || (masks && !skip_missing) || is_null_of_range {
            let decode = Some(Arc::new(self.decode(dtype)));
            return (None, Values { skip_missing, decode, ..Values::default() });
        }
        let valid = self.bounds(dtype);
        let values = Values { skip_missing, other_fill: fills.get(1).copied(), valid, decode: None };
        (fills.first().copied(), values)
    }

    /// The range of valid values. Bounds are values of the element type, as in the attributes of other formats.
    fn bounds(&self, dtype: ElementType) -> [Option<Scalar>; 2] {
        let rounded = |bound: Scalar| match (bound, dtype) {
            (Scalar::Float(bound), ElementType::F16) => Scalar::Float(f16::from_f64(bound).to_f64()),
            #[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest")]
            (Scalar::Float(bound), ElementType::F32) => Scalar::Float(f64::from(bound as f32)),
            _ => bound,
        };
        [self.valid_min, self.valid_max].map(|bound| bound.map(rounded))
    }

    /// Decoding of stored values of an element type.
    pub(crate) fn decode(&self, dtype: ElementType) -> Decode {
        let [ge, le] = self.bounds(dtype);
        let valid = Filter { le, ge, ..Filter::default() };
        let bounds = compute_filter(&valid, [None; 2], dtype, ComputeType::for_dtype(dtype));
        Decode {
            missing: self.missing_values.iter().filter_map(|&number| compute_fill(number, dtype)).collect(),
            valid: self.has_valid_range().then_some((bounds.low, bounds.high)),
            scale: self.scale_factor.unwrap_or(1.0),
            offset: self.add_offset.unwrap_or(0.0),
        }
    }
}

impl Select<'_> {
    /// Reads decoded values: packed ones are scaled, missing ones are NaN. The element type is that of
    /// [`value_type`](Self::value_type).
    pub fn read_decoded(&self) -> Result<Tensor, Error> {
        self.read_decoded_as(self.value_type(true)?)
    }

    /// Reads decoded values of a part of a selection, in the [`value_type`](Self::value_type) of the whole.
    pub fn read_decoded_as(&self, target: ElementType) -> Result<Tensor, Error> {
        let (dataset, stored) = (self.dataset(), self.read()?);
        let Some(dtype) = dataset.element() else { return Ok(stored) };
        let encoding = dataset.cf_encoding()?;
        let is_integer = !matches!(target, ElementType::F16 | ElementType::F32 | ElementType::F64);
        if encoding.is_empty() || (target == dtype && is_integer) {
            return Ok(stored);
        }
        let decode = || -> Result<Tensor, ErrorKind> {
            let bytes = stored.shape().bytes(target.size()).unwrap_or(u64::MAX);
            check_limit("the selection", bytes, dataset.file.options.limits.array_bytes)?;
            let mut decoded = Tensor::zeros(target, stored.shape().clone())?;
            let decode = encoding.decode(dtype);
            let mut numbers = [0.0; BLOCK];
            let blocks = decoded.bytes_mut().chunks_mut(BLOCK * target.size());
            for (block, out) in blocks.enumerate() {
                let numbers = &mut numbers[..out.len() / target.size()];
                decode.gather(dtype, &stored.bytes()[block * BLOCK * dtype.size()..], 1, numbers);
                for (number, out) in numbers.iter().zip(out.chunks_exact_mut(target.size())) {
                    put_float(*number, target, out);
                }
            }
            Ok(decoded)
        };
        decode().map_err(|kind| dataset.file.error(kind))
    }
}

/// Numbers decoded at a time.
const BLOCK: usize = 1 << 10;

/// Writes a decoded number as a little-endian float. Only numbers that are not packed are rounded: they come from that
/// type.
fn put_float(number: f64, target: ElementType, out: &mut [u8]) {
    match target {
        ElementType::F16 => out.copy_from_slice(&tercet_core::tensor::f16::from_f64(number).to_le_bytes()),
        #[expect(clippy::cast_possible_truncation, reason = "a number of this type")]
        ElementType::F32 => out.copy_from_slice(&(number as f32).to_le_bytes()),
        _ => out.copy_from_slice(&number.to_le_bytes()),
    }
}

impl Dataset<'_> {
    /// All values, decoded to f64; missing ones are NaN.
    pub(crate) fn read_numbers(&self) -> Result<Vec<f64>, Error> {
        let stored = self.read_all()?;
        let Some(dtype) = self.element() else { return Ok(Vec::new()) };
        let decode = self.cf_encoding()?.decode(dtype);
        let mut numbers = Vec::new();
        let count = stored.bytes().len() / dtype.size();
        let out_of_memory = |_| self.file.error(OutOfMemory { bytes: count * 8 }.into());
        numbers.try_reserve_exact(count).map_err(out_of_memory)?;
        numbers.resize(count, 0.0);
        decode.gather(dtype, stored.bytes(), 1, &mut numbers);
        Ok(numbers)
    }

    /// Missing values and packing, by the CF conventions. An attribute that is not a number is an error.
    pub fn cf_encoding(&self) -> Result<CfEncoding, Error> {
        self.read_cf_encoding().map_err(|kind| self.file.error(kind))
    }

    pub(crate) fn read_cf_encoding(&self) -> Result<CfEncoding, ErrorKind> {
        let Some(attrs) = self.info().map(|info| &info.attrs) else { return Ok(CfEncoding::default()) };
        CfEncoding::from_attrs(attrs)
            .map_err(|detail| ErrorKind::Compute { dataset: self.name().into(), detail: detail.into() })
    }
}

impl CfEncoding {
    /// Missing values and packing from attributes; the error says which attribute is invalid.
    pub(crate) fn from_attrs(attrs: &BTreeMap<String, String>) -> Result<Self, String> {
        let numbers = |name: &str| -> Result<Vec<Scalar>, String> {
            let Some(text) = attrs.get(name) else { return Ok(Vec::new()) };
            parse_numbers(text).ok_or_else(|| invalid_attribute(name, text, "not a number"))
        };
        let number = |name: &str| -> Result<Option<Scalar>, String> {
            match numbers(name)?[..] {
                [] => Ok(None),
                [number] => Ok(Some(number)),
                _ => Err(invalid_attribute(name, &attrs[name], "not one number")),
            }
        };
        if let Some(text) = attrs.get("_Unsigned").filter(|text| text.trim().eq_ignore_ascii_case("true")) {
            return Err(invalid_attribute("_Unsigned", text, "not supported"));
        }
        let mut missing_values = numbers("_FillValue")?;
        missing_values.extend(numbers("missing_value")?);
        if missing_values.is_empty() {
            missing_values = numbers("fill_value")?;
        }
        let (mut valid_min, mut valid_max) = (number("valid_min")?, number("valid_max")?);
        match numbers("valid_range")?[..] {
            [] => {}
            [min, max] => (valid_min, valid_max) = (Some(min), Some(max)),
            _ => return Err(invalid_attribute("valid_range", &attrs["valid_range"], "not two numbers")),
        }
        let order = valid_min.zip(valid_max).and_then(|(min, max)| compare(min, max));
        if order == Some(Ordering::Greater) {
            // All values would be missing.
            let (name, what) = if attrs.contains_key("valid_range") {
                ("valid_range", "not a minimum and a maximum")
            } else {
                ("valid_min", "greater than `valid_max`")
            };
            return Err(invalid_attribute(name, &attrs[name], what));
        }
        let float = |name: &str| -> Result<Option<f64>, String> {
            let number = number(name)?.map(Scalar::to_f64);
            match number {
                Some(number) if !number.is_finite() => {
                    Err(invalid_attribute(name, &attrs[name], "not a finite number"))
                }
                _ => Ok(number),
            }
        };
        let (scale_factor, add_offset) = (float("scale_factor")?, float("add_offset")?);
        // A factor of 1 and an offset of 0 change nothing.
        let scale_factor = scale_factor.filter(|factor| factor.total_cmp(&1.0).is_ne());
        let add_offset = add_offset.filter(|offset| offset.abs() > 0.0);
        Ok(Self { missing_values, valid_min, valid_max, scale_factor, add_offset })
    }
}

fn invalid_attribute(name: &str, text: &str, what: &str) -> String {
    let text = tercet_core::escape::name(text);
    format!("the attribute `{name}` is `{text}`, which is {what}")
}

/// Parses one number or several: separated by white space or commas, in brackets or not.
fn parse_numbers(text: &str) -> Option<Vec<Scalar>> {
    let text = text.trim();
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let words = inner.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty());
    let numbers: Vec<Scalar> = words.map(parse_scalar).collect::<Option<_>>()?;
    (!numbers.is_empty()).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_attributes_are_parsed() {
        let whole = |n: i128| Scalar::Whole(n);
        assert_eq!(parse_numbers("-999"), Some(vec![whole(-999)]));
        assert_eq!(parse_numbers("[0, 100]"), Some(vec![whole(0), whole(100)]));
        assert_eq!(parse_numbers(" 1.5 2e3 "), Some(vec![Scalar::Float(1.5), Scalar::Float(2e3)]));
        assert_eq!(parse_numbers(""), None);
        assert_eq!(parse_numbers("none"), None);
        assert_eq!(parse_numbers("1,x"), None);
    }

    #[test]
    fn the_minimum_is_not_greater_than_the_maximum() {
        let encoding = |attrs: &[(&str, &str)]| {
            let attrs = attrs.iter().map(|&(key, text)| (key.to_owned(), text.to_owned())).collect();
            CfEncoding::from_attrs(&attrs)
        };
        assert!(encoding(&[("valid_range", "[1, 5]")]).is_ok());
        assert!(encoding(&[("valid_range", "5 5")]).is_ok());
        assert!(encoding(&[("valid_range", "[5, 1]")]).unwrap_err().contains("`valid_range` is `[5, 1]`"));
        assert!(encoding(&[("valid_min", "2.5"), ("valid_max", "2")]).unwrap_err().contains("`valid_min`"));
        // Both are 2^53 in f64.
        let (less, greater) = ("9007199254740992", "9007199254740993");
        assert!(encoding(&[("valid_min", less), ("valid_max", greater)]).is_ok());
        assert!(encoding(&[("valid_min", greater), ("valid_max", less)]).is_err());
    }

    #[test]
    fn decoded_types_hold_every_stored_value() {
        let fill = CfEncoding { missing_values: vec![Scalar::Whole(-1)], ..CfEncoding::default() };
        let packed = CfEncoding { scale_factor: Some(0.5), ..CfEncoding::default() };
        for (stored, with_fill) in [
            (ElementType::I16, ElementType::F32),
            (ElementType::I32, ElementType::F64),
            (ElementType::F32, ElementType::F32),
        ] {
            assert_eq!(CfEncoding::default().decoded_type(stored), stored);
            assert_eq!(fill.decoded_type(stored), with_fill);
            assert_eq!(packed.decoded_type(stored), ElementType::F64);
        }
    }
}
