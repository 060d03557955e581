//! Descriptors of data objects: shape, element type, pipeline.

use std::collections::BTreeMap;

use crate::cbor;
use crate::dtype::{ByteOrder, DTYPES};
use crate::metadata::{
    Entry, Keys, MetadataError, MetadataErrorKind, entry_of, string_of, type_error, u64_of, u64s_of,
};
use crate::pipeline::{COMPRESSIONS, ENCODINGS, FILTERS, Mask, NONE};
use crate::value::Value;
use tercet_core::DType;

#[cfg(test)]
mod tests;

/// The keys that are fields of a descriptor. All others are parameters.
const FIELDS: [&str; 10] =
    ["type", "ndim", "shape", "strides", "dtype", "byte_order", "encoding", "filter", "compression", "masks"];

/// The descriptor of a data object.
#[derive(Clone, Debug, PartialEq)]
pub struct DataObjectDescriptor {
    /// The type of the object, `ntensor`.
    pub obj_type: String,
    /// The number of dimensions. Readers do not compare it with the shape.
    pub ndim: u64,
    /// The extents.
    pub shape: Vec<u64>,
    /// The strides in elements. Stored, but not used.
    pub strides: Vec<u64>,
    /// The element type.
    pub dtype: DType,
    /// The byte order, if stored.
    pub byte_order: Option<ByteOrder>,
    /// The encoding: `none` or `simple_packing`.
    pub encoding: String,
    /// The filter: `none` or `shuffle`.
    pub filter: String,
    /// The compression: `none` or the name of a compressor.
    pub compression: String,
    /// The positions of the masks of NaN and infinities.
    pub masks: Option<Value>,
    /// All other keys: parameters of the pipeline and of the user.
    pub params: BTreeMap<String, Value>,
}

impl DataObjectDescriptor {
    /// A descriptor of contiguous little-endian elements without a pipeline.
    pub fn new(dtype: DType, shape: impl Into<Vec<u64>>) -> Self {
        let shape = shape.into();
        Self {
            obj_type: "ntensor".to_owned(),
            ndim: shape.len() as u64,
            strides: Self::row_major_strides(&shape),
            shape,
            dtype,
            byte_order: Some(ByteOrder::Little),
            encoding: NONE.to_owned(),
            filter: NONE.to_owned(),
            compression: NONE.to_owned(),
            masks: None,
            params: BTreeMap::new(),
        }
    }

    /// Sets the encoding: `none` or `simple_packing`.
    pub fn with_encoding(mut self, encoding: &str) -> Self {
        encoding.clone_into(&mut self.encoding);
        self
    }

    /// Sets the filter: `none` or `shuffle`.
    pub fn with_filter(mut self, filter: &str) -> Self {
        filter.clone_into(&mut self.filter);
        self
    }

    /// Sets the compression: `none` or the name of a compressor.
    pub fn with_compression(mut self, compression: &str) -> Self {
        compression.clone_into(&mut self.compression);
        self
    }

    /// Sets a parameter.
    pub fn with_param(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.params.insert(key.to_owned(), value.into());
        self
    }

    /// Reads a descriptor. Encoding, filter and compression may be unknown names.
    pub fn from_value(value: Value) -> Result<Self, MetadataError> {
        let mut entry = entry_of(value, Keys::At(""))?;
        let mut field = |key: &'static str| {
            entry.remove(key).ok_or_else(|| MetadataError::new(key, MetadataErrorKind::Missing))
        };
        Ok(Self {
            obj_type: string_of(field("type")?, "type")?,
            ndim: u64_of(&field("ndim")?, "ndim")?,
            shape: u64s_of(&field("shape")?, "shape")?,
            strides: u64s_of(&field("strides")?, "strides")?,
            dtype: dtype_of(field("dtype")?)?,
            encoding: string_of(field("encoding")?, "encoding")?,
            filter: string_of(field("filter")?, "filter")?,
            compression: string_of(field("compression")?, "compression")?,
            byte_order: entry.remove("byte_order").map(byte_order_of).transpose()?,
            masks: entry.remove("masks").map_or(Ok(None), masks_of)?,
            params: entry,
        })
    }

    /// The descriptor as a map. A parameter with the name of a field is omitted.
    pub fn to_value(&self) -> Value {
        let mut entry: Entry = self.params.clone();
        let mut field = |key: &str, value: Value| entry.insert(key.to_owned(), value);
        field("type", self.obj_type.as_str().into());
        field("ndim", self.ndim.into());
        field("shape", numbers(&self.shape));
        field("strides", numbers(&self.strides));
        field("dtype", self.dtype.name().into());
        field("encoding", self.encoding.as_str().into());
        field("filter", self.filter.as_str().into());
        field("compression", self.compression.as_str().into());
        match self.byte_order {
            Some(order) => entry.insert("byte_order".to_owned(), order.name().into()),
            None => entry.remove("byte_order"),
        };
        match &self.masks {
            Some(masks) => entry.insert("masks".to_owned(), masks.clone()),
            None => entry.remove("masks"),
        };
        entry.into()
    }

    /// The descriptor as canonical CBOR.
    pub fn to_cbor(&self) -> Vec<u8> {
        cbor::encode(&self.to_value())
    }

    /// The number of elements, unless it overflows. 1 without dimensions.
    pub fn elements(&self) -> Option<u64> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        self.shape.iter().try_fold(1_u64, |product, &n| product.checked_mul(n))
    }

    /// The byte order of the stored bytes: little-endian unless stored otherwise, on every host.
    pub fn stored_order(&self) -> ByteOrder {
        self.byte_order.unwrap_or(ByteOrder::Little)
    }

    /// Whether the payload is the elements themselves: no encoding, filter, compression or masks.
    pub fn is_plain(&self) -> bool {
        [&self.encoding, &self.filter, &self.compression].into_iter().all(|name| name == NONE)
            && Mask::all(self).is_ok_and(|masks| masks.is_empty())
    }

    /// Row-major strides in elements.
    pub fn row_major_strides(shape: &[u64]) -> Vec<u64> {
        let mut strides = vec![1; shape.len()];
        let mut product = 1_u64;
        for (stride, &n) in strides.iter_mut().zip(shape).rev() {
            *stride = product;
            product = product.saturating_mul(n);
        }
        strides
    }

    /// Checks the rules that bind writers only.
    pub fn check_for_writing(&self) -> Result<(), MetadataError> {
        let known = |key: &'static str, found: &str, names: &[&str], allowed| {
            let unknown = || MetadataErrorKind::Unknown { found: found.to_owned(), allowed };
            if names.contains(&found) { Ok(()) } else { Err(MetadataError::new(key, unknown())) }
        };
        if self.obj_type.is_empty() {
            let reason =
                MetadataErrorKind::Unknown { found: String::new(), allowed: "a string that is not empty" };
            return Err(MetadataError::new("type", reason));
        }
        if !DTYPES.contains(&self.dtype) {
            let found = self.dtype.name().to_owned();
            let reason = MetadataErrorKind::Unknown { found, allowed: DTYPE_NAMES };
            return Err(MetadataError::new("dtype", reason));
        }
        let n_dims = self.shape.len() as u64;
        for (key, found) in [("ndim", self.ndim), ("strides", self.strides.len() as u64)] {
            if found != n_dims {
                let because = if key == "ndim" { "the length of `shape`" } else { "as many as `shape` has" };
                let reason = MetadataErrorKind::Mismatch { found, expected: n_dims, because };
                return Err(MetadataError::new(key, reason));
            }
        }
        if self.elements().is_none() {
            return Err(MetadataError::new("shape", MetadataErrorKind::Overflow));
        }
        known("encoding", &self.encoding, ENCODINGS, "`none` or `simple_packing`")?;
        known("filter", &self.filter, FILTERS, "`none` or `shuffle`")?;
        known(
            "compression",
            &self.compression,
            COMPRESSIONS,
            "`none`, `szip`, `zstd`, `lz4`, `blosc2`, `zfp`, `sz3`, `rle` or `roaring`",
        )?;
        match FIELDS.into_iter().find(|field| self.params.contains_key(*field)) {
            Some(field) => Err(MetadataError::new(field, MetadataErrorKind::Duplicate { other: "params" })),
            None => Ok(()),
        }
    }

    /// The entry `_reserved_.tensor` of the object's metadata.
    pub fn tensor_entry(&self) -> Value {
        Value::Map(vec![
            ("ndim".into(), self.ndim.into()),
            ("dtype".into(), self.dtype.name().into()),
            ("shape".into(), numbers(&self.shape)),
            ("strides".into(), numbers(&self.strides)),
        ])
    }

    /// The length of the payload in a payload region of `region` bytes: it ends at the first mask.
    pub(crate) fn payload_len_in(&self, region: u64) -> Result<u64, MetadataError> {
        let mut payload = region;
        for mask in Mask::all(self)? {
            let Mask { offset, length, .. } = mask;
            if offset.checked_add(length).is_none_or(|end| end > region) {
                let path = format!("masks.{}", mask.kind);
                return Err(MetadataError::new(
                    path,
                    MetadataErrorKind::OutOfBounds { offset, length, region },
                ));
            }
            payload = payload.min(offset);
        }
        Ok(payload)
    }
}

/// The names of the element types, for error messages.
const DTYPE_NAMES: &str = "`float16`, `bfloat16`, `float32`, `float64`, `complex64`, `complex128`, `int8` to `int64`, \
                           `uint8` to `uint64` or `bitmask`";

fn dtype_of(value: Value) -> Result<DType, MetadataError> {
    let name = string_of(value, "dtype")?;
    let reason = |found| MetadataErrorKind::Unknown { found, allowed: DTYPE_NAMES };
    let unknown = |found| MetadataError::new("dtype", reason(found));
    let dtype = DType::from_name(&name).filter(|dtype| DTYPES.contains(dtype));
    dtype.ok_or_else(|| unknown(name))
}

fn byte_order_of(value: Value) -> Result<ByteOrder, MetadataError> {
    let name = string_of(value, "byte_order")?;
    match name.as_str() {
        "big" => Ok(ByteOrder::Big),
        "little" => Ok(ByteOrder::Little),
        _ => {
            let reason = MetadataErrorKind::Unknown { found: name, allowed: "`big` or `little`" };
            Err(MetadataError::new("byte_order", reason))
        }
    }
}

fn masks_of(value: Value) -> Result<Option<Value>, MetadataError> {
    match value.untagged() {
        Value::Null => Ok(None),
        Value::Map(_) => Ok(Some(value)),
        other => Err(type_error(other, "masks", "a map or null")),
    }
}

fn numbers(numbers: &[u64]) -> Value {
    Value::Array(numbers.iter().map(|&number| number.into()).collect())
}
