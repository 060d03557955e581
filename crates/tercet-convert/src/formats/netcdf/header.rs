//! Parser and writer of headers, without I/O.

use tercet_core::DType;

use super::{TYPES, Version, padded, swap, type_number};
use crate::arrays::{Attr, AttrData, Dim, Kind, Numbers};

const DIMENSIONS: u32 = 0x0a;
const VARIABLES: u32 = 0x0b;
const ATTRIBUTES: u32 = 0x0c;

/// A parsed header.
#[derive(Debug)]
pub(super) struct ParsedHeader {
    pub(super) version: Version,
    /// `None` if the file was streamed: the number of records follows from its length.
    pub(super) records: Option<u64>,
    pub(super) dims: Vec<Dim>,
    pub(super) attrs: Vec<Attr>,
    pub(super) variables: Vec<ParsedVariable>,
}

#[derive(Debug)]
pub(super) struct ParsedVariable {
    pub(super) name: String,
    pub(super) dims: Vec<usize>,
    pub(super) attrs: Vec<Attr>,
    pub(super) kind: Kind,
    /// The offset of the values.
    pub(super) begin: u64,
}

/// Why a header does not parse.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeaderError {
    /// More bytes are needed.
    Short,
    /// The bytes do not follow the format.
    Malformed(String),
}

type Parse<T> = Result<T, HeaderError>;

fn malformed<T>(detail: impl Into<String>) -> Parse<T> {
    Err(HeaderError::Malformed(detail.into()))
}

/// The cursor over the first bytes of a file.
struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
    version: Version,
}

impl<'b> Cursor<'b> {
    fn take(&mut self, len: u64) -> Parse<&'b [u8]> {
        let len = usize::try_from(len).map_err(|_| HeaderError::Short)?;
        let end = self.at.checked_add(len).ok_or(HeaderError::Short)?;
        let bytes = self.bytes.get(self.at..end).ok_or(HeaderError::Short)?;
        self.at = end;
        Ok(bytes)
    }

    fn u32(&mut self) -> Parse<u32> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn u64(&mut self) -> Parse<u64> {
        let high = self.u32()?;
        Ok(u64::from(high) << 32 | u64::from(self.u32()?))
    }

    /// A count or a size.
    fn count(&mut self) -> Parse<u64> {
        if self.version == Version::Cdf5 { self.u64() } else { self.u32().map(u64::from) }
    }

    fn offset(&mut self) -> Parse<u64> {
        if self.version == Version::Classic { self.u32().map(u64::from) } else { self.u64() }
    }

    fn name(&mut self, what: &str) -> Parse<String> {
        let len = self.count()?;
        if len > 1 << 16 {
            return malformed(format!("the name of {what} at byte {} has {len} bytes", self.at));
        }
        let bytes = self.take(padded(len))?;
        let name = &bytes[..usize::try_from(len).unwrap_or(0)];
        match std::str::from_utf8(name) {
            Ok(name) if !name.is_empty() => Ok(name.to_owned()),
            _ => malformed(format!("the name of {what} at byte {} is empty or not UTF-8", self.at)),
        }
    }

    /// The number of entries of a list. Each needs at least `least` bytes.
    fn list(&mut self, tag: u32, what: &str) -> Parse<u64> {
        let at = self.at;
        let (found, count) = (self.u32()?, self.count()?);
        match (found, count) {
            (0, 0) => Ok(0),
            (found, count) if found == tag => Ok(count),
            _ => malformed(format!("the list of {what} at byte {at} has the tag {found:#x}, not {tag:#x}")),
        }
    }

    fn kind(&mut self) -> Parse<Kind> {
        let (at, number) = (self.at, self.u32()?);
        match TYPES.into_iter().find(|(found, _)| *found == number) {
            Some((_, kind)) => Ok(kind),
            None => malformed(format!("unknown element type {number} at byte {at}")),
        }
    }

    fn attributes(&mut self) -> Parse<Vec<Attr>> {
        let count = self.list(ATTRIBUTES, "attributes")?;
        let mut attrs = Vec::new();
        for _ in 0..count {
            let name = self.name("an attribute")?;
            let kind = self.kind()?;
            let dtype = dtype_of(kind);
            let count = self.count()?;
            let len = count.checked_mul(dtype.size().unwrap_or(1) as u64).ok_or(HeaderError::Short)?;
            let bytes = self.take(padded(len))?;
            let bytes = &bytes[..usize::try_from(len).unwrap_or(0)];
            let value = if kind == Kind::Char {
                AttrData::Text(text(bytes))
            } else {
                let mut bytes = bytes.to_vec();
                swap(dtype, &mut bytes);
                AttrData::Numbers(Numbers { dtype, bytes, is_list: count != 1 })
            };
            attrs.push(Attr { name, value });
        }
        Ok(attrs)
    }
}

/// The text of characters. NetCDF does not define an encoding: UTF-8, else Latin-1. Trailing NULs are padding.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    match std::str::from_utf8(&bytes[..end]) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes[..end].iter().map(|byte| char::from(*byte)).collect(),
    }
}

fn dtype_of(kind: Kind) -> DType {
    match kind {
        Kind::Number(dtype) => dtype,
        Kind::Char | Kind::String => DType::U8,
    }
}

impl ParsedHeader {
    /// Parses a header from the first bytes of a file.
    pub(super) fn parse(bytes: &[u8]) -> Parse<Self> {
        let version = match bytes.get(..4) {
            Some(b"CDF\x01") => Version::Classic,
            Some(b"CDF\x02") => Version::Offset64,
            Some(b"CDF\x05") => Version::Cdf5,
            Some(_) => return malformed("the file does not start with the signature of NetCDF"),
            None => return Err(HeaderError::Short),
        };
        let mut cursor = Cursor { bytes, at: 4, version };
        let records = cursor.count()?;
        let streaming = if version == Version::Cdf5 { u64::MAX } else { u64::from(u32::MAX) };
        let records = (records != streaming).then_some(records);
        let mut dims: Vec<Dim> = Vec::new();
        for _ in 0..cursor.list(DIMENSIONS, "dimensions")? {
            let name = cursor.name("a dimension")?;
            let len = cursor.count()?;
            let unlimited = len == 0;
            if unlimited && dims.iter().any(|dim| dim.unlimited) {
                return malformed(format!("the dimension `{name}` is a second unlimited one"));
            }
            dims.push(Dim { name, len, unlimited });
        }
        let attrs = cursor.attributes()?;
        let mut variables = Vec::new();
        for _ in 0..cursor.list(VARIABLES, "variables")? {
            let name = cursor.name("a variable")?;
            let rank = cursor.count()?;
            if rank > 1024 {
                return malformed(format!("the variable `{name}` has {rank} dimensions"));
            }
            let mut numbers = Vec::new();
            for axis in 0..rank {
                let number = cursor.count()?;
                let dim = usize::try_from(number).ok().filter(|number| *number < dims.len());
                let Some(dim) = dim else {
                    return malformed(format!("the variable `{name}` has the unknown dimension {number}"));
                };
                if dims[dim].unlimited && axis > 0 {
                    return malformed(format!("the unlimited dimension of `{name}` is not the first"));
                }
                numbers.push(dim);
            }
            let attrs = cursor.attributes()?;
            let kind = cursor.kind()?;
            // The size overflows for large variables; it follows from the shape.
            let _size = cursor.count()?;
            let begin = cursor.offset()?;
            variables.push(ParsedVariable { name, dims: numbers, attrs, kind, begin });
        }
        Ok(Self { version, records, dims, attrs, variables })
    }
}

/// A variable to be written.
pub(super) struct PlannedVariable<'h> {
    pub(super) name: &'h str,
    pub(super) dims: Vec<u32>,
    pub(super) attrs: &'h [Attr],
    pub(super) kind: Kind,
    pub(super) size: u64,
    pub(super) begin: u64,
}

/// Writes a header. Attributes of other types than those of the version are skipped: the plan has none.
pub(super) fn encode(
    version: Version,
    records: u64,
    dims: &[Dim],
    attrs: &[Attr],
    variables: &[PlannedVariable<'_>],
) -> Vec<u8> {
    let mut out = Encoder { out: Vec::new(), version };
    out.out.extend([b'C', b'D', b'F', version.byte()]);
    out.count(records);
    out.list(DIMENSIONS, dims.len());
    for dim in dims {
        out.name(&dim.name);
        out.count(if dim.unlimited { 0 } else { dim.len });
    }
    out.attributes(attrs);
    out.list(VARIABLES, variables.len());
    for variable in variables {
        out.name(variable.name);
        out.count(variable.dims.len() as u64);
        variable.dims.iter().for_each(|dim| out.count((*dim).into()));
        out.attributes(variable.attrs);
        out.u32(type_number(variable.kind, version).unwrap_or(2));
        // The largest size that a field of 32 bits can hold represents all larger ones.
        let size = if version == Version::Cdf5 { variable.size } else { variable.size.min(u32::MAX.into()) };
        out.count(size);
        out.offset(variable.begin);
    }
    out.out
}

struct Encoder {
    out: Vec<u8>,
    version: Version,
}

impl Encoder {
    fn u32(&mut self, value: u32) {
        self.out.extend(value.to_be_bytes());
    }

    fn count(&mut self, value: u64) {
        if self.version == Version::Cdf5 {
            self.out.extend(value.to_be_bytes());
        } else {
            self.u32(u32::try_from(value).unwrap_or(u32::MAX));
        }
    }

    fn offset(&mut self, value: u64) {
        if self.version == Version::Classic {
            self.u32(u32::try_from(value).unwrap_or(u32::MAX));
        } else {
            self.out.extend(value.to_be_bytes());
        }
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.out.extend(bytes);
        self.out.resize(self.out.len().next_multiple_of(4), 0);
    }

    fn name(&mut self, name: &str) {
        self.count(name.len() as u64);
        self.padded(name.as_bytes());
    }

    fn list(&mut self, tag: u32, count: usize) {
        self.u32(if count == 0 { 0 } else { tag });
        self.count(count as u64);
    }

    fn attributes(&mut self, attrs: &[Attr]) {
        let values: Vec<(&str, u32, u64, Vec<u8>)> = attrs
            .iter()
            .filter_map(|attr| match &attr.value {
                AttrData::Text(text) => {
                    Some((attr.name.as_str(), 2, text.len() as u64, text.clone().into_bytes()))
                }
                AttrData::Numbers(numbers) => {
                    let number = type_number(Kind::Number(numbers.dtype), self.version)?;
                    let mut bytes = numbers.bytes.clone();
                    swap(numbers.dtype, &mut bytes);
                    Some((attr.name.as_str(), number, numbers.len() as u64, bytes))
                }
                AttrData::Strings(_) | AttrData::Json(_) => None,
            })
            .collect();
        self.list(ATTRIBUTES, values.len());
        for (name, number, count, bytes) in values {
            self.name(name);
            self.u32(number);
            self.count(count);
            self.padded(&bytes);
        }
    }
}
