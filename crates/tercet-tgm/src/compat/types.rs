//! The types of the documentation, with `ciborium` values and serde.

use std::collections::BTreeMap;
use std::fmt;

use ciborium::Value;
use serde::{Deserialize, Serialize};

use super::error::{Result, TensogramError};
use crate::cbor::{CborError, CborErrorKind, MAX_DEPTH};
use crate::dtype::ByteOrder;
use crate::metadata::Entry;
use crate::value::Value as OurValue;
use tercet_core::DType;

/// A map of metadata: the entries of `base`, `extra`, `reserved` and `params`.
pub type Section = BTreeMap<String, Value>;

/// The metadata of a message.
///
/// ```
/// use tercet_tgm::compat::GlobalMetadata;
///
/// let metadata: GlobalMetadata = serde_json::from_str(r#"{"_extra_": {"centre": "ecmf"}}"#)?;
/// assert_eq!(metadata.extra["centre"].as_text(), Some("ecmf"));
/// assert_eq!(serde_json::to_string(&metadata)?, r#"{"_extra_":{"centre":"ecmf"}}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "AnyMetadata")]
pub struct GlobalMetadata {
    /// The version of the message, which its preamble stores: 3. Any other one is an error when the message is encoded.
    #[serde(skip)]
    pub version: u16,
    /// Entry `i` belongs to object `i`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub base: Vec<Section>,
    /// What the library adds: time, UUID, encoder.
    #[serde(rename = "_reserved_", skip_serializing_if = "BTreeMap::is_empty")]
    pub reserved: Section,
    /// Metadata of the message, from the user.
    #[serde(rename = "_extra_", skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: Section,
}

impl Default for GlobalMetadata {
    fn default() -> Self {
        Self {
            version: super::WIRE_VERSION,
            base: Vec::new(),
            reserved: Section::new(),
            extra: Section::new(),
        }
    }
}

/// Metadata as it is read: other keys go into `_extra_`.
#[derive(Deserialize)]
struct AnyMetadata {
    #[serde(default)]
    base: Vec<Section>,
    #[serde(rename = "_reserved_", default)]
    reserved: Section,
    #[serde(rename = "_extra_", default)]
    extra: Section,
    #[serde(flatten)]
    rest: Section,
}

impl TryFrom<AnyMetadata> for GlobalMetadata {
    type Error = String;

    fn try_from(any: AnyMetadata) -> Result<Self, String> {
        let AnyMetadata { base, reserved, mut extra, rest } = any;
        for (key, value) in rest {
            if extra.contains_key(&key) {
                return Err(format!("the key `{key}` is also in `_extra_`"));
            }
            extra.insert(key, value);
        }
        Ok(Self { version: super::WIRE_VERSION, base, reserved, extra })
    }
}

/// The element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Dtype {
    Float16,
    Bfloat16,
    Float32,
    Float64,
    Complex64,
    Complex128,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Bitmask,
}

/// The two names of every element type.
const DTYPES: [(Dtype, DType); 15] = [
    (Dtype::Float16, DType::F16),
    (Dtype::Bfloat16, DType::BF16),
    (Dtype::Float32, DType::F32),
    (Dtype::Float64, DType::F64),
    (Dtype::Complex64, DType::C64),
    (Dtype::Complex128, DType::C128),
    (Dtype::Int8, DType::I8),
    (Dtype::Int16, DType::I16),
    (Dtype::Int32, DType::I32),
    (Dtype::Int64, DType::I64),
    (Dtype::Uint8, DType::U8),
    (Dtype::Uint16, DType::U16),
    (Dtype::Uint32, DType::U32),
    (Dtype::Uint64, DType::U64),
    (Dtype::Bitmask, DType::Bitmask),
];

impl Dtype {
    /// The length of an element in bytes; 0 for bitmasks.
    pub fn byte_width(self) -> usize {
        (DType::from(self).bits() / 8) as usize
    }
}

impl From<Dtype> for DType {
    fn from(dtype: Dtype) -> Self {
        DTYPES.iter().find(|(name, _)| *name == dtype).map_or(Self::U8, |(_, ours)| *ours)
    }
}

impl TryFrom<DType> for Dtype {
    type Error = TensogramError;

    fn try_from(dtype: DType) -> Result<Self> {
        let found = DTYPES.iter().find(|(_, ours)| *ours == dtype).map(|(name, _)| *name);
        found.ok_or_else(|| TensogramError::Metadata(format!("messages have no element type {dtype}")))
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(DType::from(*self).name())
    }
}

/// The descriptor of a data object. All keys that are not fields are in `params`, also in serde.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataObjectDescriptor {
    /// The type of the object, `ntensor`.
    #[serde(rename = "type")]
    pub obj_type: String,
    /// The number of dimensions.
    pub ndim: u64,
    /// The extents.
    pub shape: Vec<u64>,
    /// The strides in elements.
    pub strides: Vec<u64>,
    /// The element type.
    pub dtype: Dtype,
    /// The byte order; little-endian if not stored.
    #[serde(default = "little")]
    pub byte_order: ByteOrder,
    /// `none` or `simple_packing`.
    pub encoding: String,
    /// `none` or `shuffle`.
    pub filter: String,
    /// `none` or the name of a compressor.
    pub compression: String,
    /// The positions of the masks of NaN and infinities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masks: Option<MasksMetadata>,
    /// Parameters of the pipeline and of the user.
    #[serde(flatten)]
    pub params: Section,
}

const fn little() -> ByteOrder {
    ByteOrder::Little
}

impl DataObjectDescriptor {
    /// A contiguous array of this host's byte order without a pipeline.
    pub fn new(dtype: Dtype, shape: impl Into<Vec<u64>>) -> Self {
        let shape = shape.into();
        Self {
            obj_type: "ntensor".to_owned(),
            ndim: shape.len() as u64,
            strides: crate::DataObjectDescriptor::row_major_strides(&shape),
            shape,
            dtype,
            byte_order: ByteOrder::native(),
            encoding: "none".to_owned(),
            filter: "none".to_owned(),
            compression: "none".to_owned(),
            masks: None,
            params: Section::new(),
        }
    }
}

/// The masks of an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MasksMetadata {
    /// The mask of NaN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nan: Option<MaskDescriptor>,
    /// The mask of positive infinity.
    #[serde(rename = "inf+", default, skip_serializing_if = "Option::is_none")]
    pub pos_inf: Option<MaskDescriptor>,
    /// The mask of negative infinity.
    #[serde(rename = "inf-", default, skip_serializing_if = "Option::is_none")]
    pub neg_inf: Option<MaskDescriptor>,
}

/// The position and compression of a mask.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MaskDescriptor {
    /// `rle`, `roaring`, `blosc2`, `zstd`, `lz4` or `none`.
    pub method: String,
    /// The offset from the start of the payload.
    pub offset: u64,
    /// The length in bytes.
    pub length: u64,
    /// The parameters of the method.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: Section,
}

/// Values nested too deeply would overflow the stack.
pub(super) fn check_depth(value: &Value) -> Result<()> {
    let mut pending = vec![(value, 1)];
    while let Some((value, depth)) = pending.pop() {
        if depth > MAX_DEPTH + 1 {
            return Err(CborError::new(0, CborErrorKind::Depth).into());
        }
        match value {
            Value::Array(items) => pending.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Tag(_, inner) => pending.push((inner, depth + 1)),
            Value::Map(pairs) => {
                pending
                    .extend(pairs.iter().flat_map(|(key, value)| [key, value]).map(|item| (item, depth + 1)));
            }
            _ => {}
        }
    }
    Ok(())
}

pub(super) fn to_ours(value: &Value) -> Result<OurValue> {
    check_depth(value)?;
    let unknown = |error: crate::UnknownItem| TensogramError::Metadata(error.to_string());
    OurValue::try_from(value.clone()).map_err(unknown)
}

pub(super) fn entry_to_ours(section: &Section) -> Result<Entry> {
    section.iter().map(|(key, value)| Ok((key.clone(), to_ours(value)?))).collect()
}

pub(super) fn entry_from_ours(entry: Entry) -> Section {
    entry.into_iter().map(|(key, value)| (key, value.into())).collect()
}

/// Moves the values: strings and bytes are not copied.
impl From<crate::GlobalMetadata> for GlobalMetadata {
    fn from(metadata: crate::GlobalMetadata) -> Self {
        Self {
            version: super::WIRE_VERSION,
            base: metadata.base.into_iter().map(entry_from_ours).collect(),
            reserved: entry_from_ours(metadata.reserved),
            extra: entry_from_ours(metadata.extra),
        }
    }
}

impl TryFrom<&GlobalMetadata> for crate::GlobalMetadata {
    type Error = TensogramError;

    fn try_from(metadata: &GlobalMetadata) -> Result<Self> {
        if metadata.version != super::WIRE_VERSION {
            let (found, expected) = (metadata.version, super::WIRE_VERSION);
            return Err(TensogramError::Metadata(format!(
                "version {found} is not supported, only {expected}"
            )));
        }
        Ok(Self {
            base: metadata.base.iter().map(entry_to_ours).collect::<Result<_>>()?,
            extra: entry_to_ours(&metadata.extra)?,
            reserved: entry_to_ours(&metadata.reserved)?,
        })
    }
}

impl TryFrom<crate::DataObjectDescriptor> for DataObjectDescriptor {
    type Error = TensogramError;

    fn try_from(descriptor: crate::DataObjectDescriptor) -> Result<Self> {
        let byte_order = descriptor.stored_order();
        let masks = descriptor.masks.map(|masks| Value::from(masks).deserialized::<MasksMetadata>());
        let wrong = |error: ciborium::value::Error| TensogramError::Metadata(format!("masks: {error}"));
        Ok(Self {
            obj_type: descriptor.obj_type,
            ndim: descriptor.ndim,
            shape: descriptor.shape,
            strides: descriptor.strides,
            dtype: descriptor.dtype.try_into()?,
            byte_order,
            encoding: descriptor.encoding,
            filter: descriptor.filter,
            compression: descriptor.compression,
            masks: masks.transpose().map_err(wrong)?,
            params: entry_from_ours(descriptor.params),
        })
    }
}

impl TryFrom<&DataObjectDescriptor> for crate::DataObjectDescriptor {
    type Error = TensogramError;

    fn try_from(descriptor: &DataObjectDescriptor) -> Result<Self> {
        let masks = descriptor.masks.as_ref().map(Value::serialized).transpose();
        let masks = masks.map_err(|error| TensogramError::Metadata(format!("masks: {error}")))?;
        Ok(Self {
            obj_type: descriptor.obj_type.clone(),
            ndim: descriptor.ndim,
            shape: descriptor.shape.clone(),
            strides: descriptor.strides.clone(),
            dtype: descriptor.dtype.into(),
            byte_order: Some(descriptor.byte_order),
            encoding: descriptor.encoding.clone(),
            filter: descriptor.filter.clone(),
            compression: descriptor.compression.clone(),
            masks: masks.as_ref().map(to_ours).transpose()?,
            params: entry_to_ours(&descriptor.params)?,
        })
    }
}
