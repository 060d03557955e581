//! Valid combinations of stages.
//!
//! The reference accepts most of the combinations that are rejected here and returns wrong values without an error.

use super::error::PipelineError;
use super::{COMPRESSIONS, ENCODINGS, FILTERS, NONE, PACKING, SHUFFLE};
use crate::descriptor::DataObjectDescriptor;
use tercet_core::DType;

/// Rejects unknown names.
pub(super) fn check_names(descriptor: &DataObjectDescriptor) -> Result<(), PipelineError> {
    let stages = [
        ("encoding", &descriptor.encoding, ENCODINGS),
        ("filter", &descriptor.filter, FILTERS),
        ("compression", &descriptor.compression, COMPRESSIONS),
    ];
    for (stage, name, known) in stages {
        if !known.contains(&&**name) {
            return Err(PipelineError::Unknown { stage, name: name.as_str().into() });
        }
    }
    Ok(())
}

/// Rejects invalid combinations; `bits` is the number of bits per packed value.
pub(super) fn check_combination(
    descriptor: &DataObjectDescriptor,
    bits: Option<u32>,
) -> Result<(), PipelineError> {
    let refuse = |what: String, reason| Err(PipelineError::Combination { what: what.into(), reason });
    let dtype = descriptor.dtype;
    let compression = &*descriptor.compression;
    if descriptor.encoding == PACKING && dtype != DType::F64 {
        return refuse(format!("encoding `{PACKING}` of {dtype} values"), "is not defined: only float64 is");
    }
    let is_filtered = descriptor.filter != NONE;
    let is_bare = descriptor.encoding == NONE && !is_filtered;
    match compression {
        "zfp" | "sz3" if !is_bare => {
            let stage =
                if is_filtered { format!("filter `{SHUFFLE}`") } else { format!("encoding `{PACKING}`") };
            refuse(format!("compression `{compression}` after {stage}"), "would take its bytes for numbers")
        }
        "zfp" | "sz3" if dtype != DType::F64 => refuse(
            format!("compression `{compression}` of {dtype} values"),
            "is not defined: only float64 is",
        ),
        "rle" | "roaring" if dtype != DType::Bitmask => refuse(
            format!("compression `{compression}` of {dtype} values"),
            "is not defined: only bitmask is",
        ),
        "rle" | "roaring" if is_filtered => refuse(
            format!("compression `{compression}` after filter `{SHUFFLE}`"),
            "is not defined: it takes the bits as they are",
        ),
        "szip" => match bits {
            Some(8 | 16 | 24 | 32) => Ok(()),
            Some(bits) => refuse(
                format!("compression `szip` of {bits}-bit packed values"),
                "would lose their high bits; use 8, 16, 24 or 32 bits",
            ),
            None if is_filtered || matches!(dtype.bits(), 8 | 16 | 32) => Ok(()),
            None => refuse(
                format!("compression `szip` of {dtype} values"),
                "is not defined: its samples have 8, 16 or 32 bits",
            ),
        },
        "blosc2" if bits == Some(0) => refuse(
            "compression `blosc2` of 0-bit packed values".to_owned(),
            "is not defined: there are no bytes to compress",
        ),
        "blosc2" if dtype == DType::Bitmask && !is_filtered => refuse(
            "compression `blosc2` of bitmask values".to_owned(),
            "is not defined: its elements are bytes",
        ),
        _ => Ok(()),
    }
}
