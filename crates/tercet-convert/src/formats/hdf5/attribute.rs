//! Attributes.

use std::collections::BTreeSet;

use hdf5_reader::messages::dataspace::DataspaceType;
use hdf5_reader::{Attribute, RawAttribute};

use super::element;
use crate::arrays::{Attr, AttrData, Kind, Numbers};

/// Attributes that store the structure of a NetCDF-4 file.
const INTERNAL: [&str; 10] = [
    "CLASS",
    "NAME",
    "DIMENSION_LIST",
    "DIMENSION_LABELS",
    "REFERENCE_LIST",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_nc3_strict",
    "_NCProperties",
    "_NCCOPY",
];

/// Whether an attribute stores the structure of the file. `CLASS` and `NAME` do so for dimension scales only.
pub(super) fn is_internal(name: &str, is_scale: bool) -> bool {
    INTERNAL.contains(&name) && (is_scale || !matches!(name, "CLASS" | "NAME"))
}

/// Why a dataset or an attribute with a null dataspace is not kept.
pub(super) const NULL: &str = "it has no value (null dataspace)";

/// The names of the attributes with a null dataspace. `raw` reads the attributes as they are stored.
pub(super) fn nulls(
    attributes: &[Attribute],
    raw: impl FnOnce() -> hdf5_reader::error::Result<Vec<RawAttribute>>,
) -> BTreeSet<String> {
    // A list without elements looks the same here.
    if !attributes.iter().any(|item| item.shape == [0]) {
        return BTreeSet::new();
    }
    let is_null = |item: &RawAttribute| item.message().dataspace.dataspace_type == DataspaceType::Null;
    let raw = raw().unwrap_or_default();
    raw.iter().filter(|item| is_null(item)).map(|item| item.name().to_owned()).collect()
}

/// Whether the value is text.
pub(super) fn is_text(attribute: &Attribute) -> bool {
    matches!(element::kind(&attribute.datatype), Ok((Kind::Char | Kind::String, _)))
}

/// Converts an attribute.
pub(super) fn convert(attribute: &Attribute) -> Result<Attr, String> {
    let count = attribute.num_elements().map_err(|error| error.to_string())?;
    let (kind, swap) = element::kind(&attribute.datatype)?;
    let value = match kind {
        Kind::Char | Kind::String => {
            let mut texts = attribute.read_strings().map_err(|error| error.to_string())?;
            if texts.len() == 1 && attribute.shape.len() <= 1 {
                AttrData::Text(texts.remove(0))
            } else if texts.is_empty() {
                AttrData::Text(String::new())
            } else {
                AttrData::Strings(texts)
            }
        }
        Kind::Number(dtype) => {
            let size = dtype.size().unwrap_or(1);
            let len = usize::try_from(count).ok().and_then(|count| count.checked_mul(size));
            let bytes = len.and_then(|len| attribute.raw_data.get(..len)).ok_or("the value is truncated")?;
            let mut bytes = bytes.to_vec();
            if swap > 1 {
                bytes.chunks_exact_mut(swap).for_each(<[u8]>::reverse);
            }
            if dtype == tercet_core::DType::Bool {
                let flags: Vec<serde_json::Value> = bytes.iter().map(|byte| (*byte != 0).into()).collect();
                let value = if count == 1 { flags[0].clone() } else { flags.into() };
                AttrData::Json(value)
            } else if matches!(dtype, tercet_core::DType::C64 | tercet_core::DType::C128) {
                return Err("complex attributes are not supported".to_owned());
            } else {
                AttrData::Numbers(Numbers { dtype, bytes, is_list: count != 1 })
            }
        }
    };
    Ok(Attr { name: attribute.name.clone(), value })
}
