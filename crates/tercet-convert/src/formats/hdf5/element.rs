//! Element types of datasets.

use hdf5_reader::error::{Error, Result};
use hdf5_reader::{ByteOrder, Datatype, H5Type, StringSize, VarLenKind};
use tercet_core::DType;

use crate::arrays::Kind;

/// An element of N bytes, as it is stored.
#[derive(Clone)]
#[repr(transparent)]
pub(super) struct Raw<const N: usize>(pub(super) [u8; N]);

impl<const N: usize> H5Type for Raw<N> {
    fn hdf5_type() -> Datatype {
        Datatype::Opaque { size: u32::try_from(N).unwrap_or(0), tag: String::new() }
    }

    fn from_bytes(bytes: &[u8], _: &Datatype) -> Result<Self> {
        let bytes = bytes.get(..N).and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| Error::InvalidData(format!("an element has fewer than {N} bytes")))
    }

    fn element_size(_: &Datatype) -> usize {
        N
    }

    fn decode_vec(raw: &[u8], _: &Datatype, count: usize) -> Option<Result<Vec<Self>>> {
        let bytes = raw.get(..count.checked_mul(N)?)?;
        Some(Ok(bytes.as_chunks::<N>().0.iter().map(|element| Self(*element)).collect()))
    }
}

/// The type of a variable and the size of the units to swap.
pub(super) fn kind(datatype: &Datatype) -> std::result::Result<(Kind, usize), String> {
    let swap = |order: ByteOrder, size: usize| if order == ByteOrder::BigEndian { size } else { 1 };
    let number = |dtype: DType, order: ByteOrder| Ok((Kind::Number(dtype), swap(order, dtype.swap_unit())));
    match datatype {
        Datatype::FixedPoint { size, signed, byte_order } => match (size, signed) {
            (1, true) => number(DType::I8, *byte_order),
            (1, false) => number(DType::U8, *byte_order),
            (2, true) => number(DType::I16, *byte_order),
            (2, false) => number(DType::U16, *byte_order),
            (4, true) => number(DType::I32, *byte_order),
            (4, false) => number(DType::U32, *byte_order),
            (8, true) => number(DType::I64, *byte_order),
            (8, false) => number(DType::U64, *byte_order),
            _ => Err(format!("integers of {size} bytes are not supported")),
        },
        Datatype::FloatingPoint { size, byte_order } => match size {
            2 => number(DType::F16, *byte_order),
            4 => number(DType::F32, *byte_order),
            8 => number(DType::F64, *byte_order),
            _ => Err(format!("floats of {size} bytes are not supported")),
        },
        Datatype::Bitfield { size, byte_order } => match size {
            1 => number(DType::U8, *byte_order),
            2 => number(DType::U16, *byte_order),
            4 => number(DType::U32, *byte_order),
            8 => number(DType::U64, *byte_order),
            _ => Err(format!("bit fields of {size} bytes are not supported")),
        },
        Datatype::Enum { base, members } => {
            let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
            match kind(base)? {
                (Kind::Number(DType::I8 | DType::U8), _) if names == ["FALSE", "TRUE"] => {
                    Ok((Kind::Number(DType::Bool), 1))
                }
                base => Ok(base),
            }
        }
        Datatype::Compound { size, fields } => match fields.as_slice() {
            [re, im] if re.name == "r" && im.name == "i" && re.datatype == im.datatype => {
                match (kind(&re.datatype)?, size) {
                    ((Kind::Number(DType::F32), swap), 8) => Ok((Kind::Number(DType::C64), swap)),
                    ((Kind::Number(DType::F64), swap), 16) => Ok((Kind::Number(DType::C128), swap)),
                    _ => Err("compound types are not supported".to_owned()),
                }
            }
            _ => Err("compound types are not supported".to_owned()),
        },
        Datatype::String { size: StringSize::Fixed(1), .. } => Ok((Kind::Char, 1)),
        Datatype::String { .. } | Datatype::VarLen { kind: VarLenKind::String, .. } => Ok((Kind::String, 1)),
        Datatype::VarLen { .. } => Err("sequences of variable length are not supported".to_owned()),
        Datatype::Array { .. } => Err("array types are not supported".to_owned()),
        Datatype::Opaque { .. } => Err("opaque types are not supported".to_owned()),
        Datatype::Reference { .. } => Err("references are not supported".to_owned()),
    }
}

/// The most members of an enum that a remark lists.
const LISTED_MEMBERS: usize = 8;

/// The remark on a type whose member names are lost; `None` for other types and bools.
pub(super) fn enum_names(datatype: &Datatype) -> Option<String> {
    let Datatype::Enum { base, members } = datatype else { return None };
    if matches!(kind(datatype), Ok((Kind::Number(DType::Bool), _))) {
        return None;
    }
    let mut members: Vec<(Option<i128>, &str)> =
        members.iter().map(|member| (number(base, &member.value), member.name.as_str())).collect();
    members.sort_unstable();
    let mut names: Vec<String> = members
        .iter()
        .take(LISTED_MEMBERS)
        .map(|(value, name)| value.map_or_else(|| (*name).to_owned(), |value| format!("{value} = {name}")))
        .collect();
    if members.len() > LISTED_MEMBERS {
        names.push("…".to_owned());
    }
    Some(format!("enum names are not kept: {}", names.join(", ")))
}

/// The value of an integer.
fn number(datatype: &Datatype, bytes: &[u8]) -> Option<i128> {
    let Datatype::FixedPoint { size, signed, byte_order } = datatype else { return None };
    let mut bytes = bytes.get(..usize::from(*size))?.to_vec();
    if *byte_order == ByteOrder::BigEndian {
        bytes.reverse();
    }
    let is_negative = *signed && bytes.last().is_some_and(|byte| *byte >= 0x80);
    let mut wide = [if is_negative { 0xff } else { 0 }; 16];
    wide.get_mut(..bytes.len())?.copy_from_slice(&bytes);
    Some(i128::from_le_bytes(wide))
}
