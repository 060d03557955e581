//! Header of `.npy` files: magic, version, and a dictionary of three entries.

use tercet_core::{ByteSource, DType, FieldReader, Malformed, Reason, Shape, Site, Span, limits};

use super::dtype;
use super::error::{ErrorKind, Region, UnsupportedDtype};
use super::literal::{self, Literal};

const MAGIC: &[u8] = b"\x93NUMPY";
/// Magic, version, and the longest form of the length.
const PREAMBLE_LEN: u64 = 12;
/// NumPy itself rejects headers of more than 10,000 bytes by default.
const HEADER_LIMIT: u64 = 1 << 20;

/// A parsed header.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) descr: Box<str>,
    pub(super) dtype: DType,
    /// Whether values are big-endian.
    pub(super) is_big_endian: bool,
    pub(super) order: Order,
    pub(super) shape: Shape,
}

/// Memory order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// C order: the last axis is the fastest.
    C,
    /// Fortran order: the first axis is the fastest.
    Fortran,
}

impl Header {
    /// Reads the header and returns it with the start of the values.
    pub(super) fn read(source: &dyn ByteSource) -> Result<(Self, u64), ErrorKind> {
        let preamble = source.read_at(Span::first(source.len().min(PREAMBLE_LEN)))?;
        let mut fields = FieldReader::new(Region::Preamble, 0, &preamble);
        fields.magic("magic", MAGIC)?;
        let [major, minor] = fields.array("version")?;
        let len = match (major, minor) {
            (1, 0) => u64::from(fields.u16_le("header_len")?),
            (2 | 3, 0) => u64::from(fields.u32_le("header_len")?),
            _ => return Err(ErrorKind::Version { major, minor }),
        };
        limits::check_limit("the npy header", len, HEADER_LIMIT)?;
        let start = fields.position();
        let span = Span::at(start, len).unwrap_or(Span::empty(start));
        let malformed = |field, reason| {
            ErrorKind::from(Malformed { site: Site { region: Region::Header, field, span }, reason })
        };
        let have = source.len().saturating_sub(start);
        if have < len {
            return Err(malformed("dictionary", Reason::Truncated { need: len, have }));
        }
        let bytes = source.read_at(span)?;
        let text = if major == 3 {
            std::str::from_utf8(&bytes).map_err(|_| malformed("dictionary", Reason::NotUtf8))?.to_owned()
        } else {
            // Latin-1: every byte is the character of that number.
            bytes.iter().map(|&byte| char::from(byte)).collect()
        };
        let header = Self::parse(&text, &malformed)?;
        Ok((header, span.end()))
    }

    fn parse(text: &str, malformed: &dyn Fn(&'static str, Reason) -> ErrorKind) -> Result<Self, ErrorKind> {
        let wrong = |field, detail: &str| malformed(field, Reason::Unparsable { detail: detail.to_owned() });
        let entries = literal::dictionary(text)
            .map_err(|error| malformed("dictionary", Reason::Unparsable { detail: error.to_string() }))?;
        let (mut descr, mut order, mut shape) = (None, None, None);
        for (key, value) in entries {
            let (slot, field) = match key.as_str() {
                "descr" => (&mut descr, "descr"),
                "fortran_order" => (&mut order, "fortran_order"),
                "shape" => (&mut shape, "shape"),
                _ => {
                    return Err(wrong("dictionary", "a key that is not `descr`, `fortran_order` or `shape`"));
                }
            };
            if slot.replace(value).is_some() {
                return Err(wrong(field, "it is a duplicate"));
            }
        }
        let descr = descr.ok_or_else(|| wrong("descr", "it is missing"))?;
        let order = match order {
            Some(Literal::Bool(true)) => Order::Fortran,
            Some(Literal::Bool(false)) => Order::C,
            Some(_) => return Err(wrong("fortran_order", "it is neither `True` nor `False`")),
            None => return Err(wrong("fortran_order", "it is missing")),
        };
        let shape = match shape {
            Some(Literal::Tuple(extents)) => {
                let extents = extents.iter().map(|extent| match extent {
                    Literal::Int(extent) => Ok(*extent),
                    _ => Err(wrong("shape", "an extent is not an integer")),
                });
                Shape::new(extents.collect::<Result<Vec<u64>, ErrorKind>>()?)
            }
            Some(_) => return Err(wrong("shape", "it is not a tuple")),
            None => return Err(wrong("shape", "it is missing")),
        };
        let (descr, dtype, is_big_endian) = parse_descr(descr).map_err(|error| match error {
            DescrError::Unsupported(kind, descr) => ErrorKind::UnsupportedDtype { kind, descr: descr.into() },
            DescrError::Wrong => wrong("descr", "it is neither a string nor a list of fields"),
        })?;
        Ok(Self { descr: descr.into(), dtype, is_big_endian, order, shape })
    }

    /// The size of one element in bytes.
    pub(super) fn element_size(&self) -> usize {
        // Only bitmasks have none, and NumPy does not have bitmasks.
        self.dtype.size().unwrap_or(1)
    }

    /// Size of `extents` elements in bytes; `None` on overflow. If one extent is 0 the others may be anything.
    pub(super) fn bytes_of(&self, extents: &[u64]) -> Option<u64> {
        if extents.contains(&0) {
            return Some(0);
        }
        extents.iter().try_fold(self.element_size() as u64, |bytes, &extent| bytes.checked_mul(extent))
    }

    /// Strides in bytes on each axis. The size of the array was checked.
    pub(super) fn strides(&self) -> Vec<usize> {
        let mut strides = vec![0; self.shape.rank()];
        let mut stride = self.element_size();
        let mut visit = |axis: usize| {
            strides[axis] = stride;
            stride = stride.saturating_mul(usize::try_from(self.shape[axis]).unwrap_or(usize::MAX));
        };
        match self.order {
            Order::C => (0..self.shape.rank()).rev().for_each(&mut visit),
            Order::Fortran => (0..self.shape.rank()).for_each(&mut visit),
        }
        strides
    }
}

enum DescrError {
    Unsupported(UnsupportedDtype, String),
    Wrong,
}

/// Parses a `descr` into element type and byte order.
fn parse_descr(descr: Literal) -> Result<(String, DType, bool), DescrError> {
    let unsupported =
        |kind, descr: &str| Err(DescrError::Unsupported(kind, descr.chars().take(60).collect()));
    let text = match descr {
        Literal::Text(text) => text,
        Literal::List(fields) => {
            let names: Vec<String> = fields.iter().filter_map(Literal::field_name).collect();
            return unsupported(UnsupportedDtype::Structured, &format!("[{}]", names.join(", ")));
        }
        Literal::Tuple(_) => return unsupported(UnsupportedDtype::Subarray, "(…)"),
        _ => return Err(DescrError::Wrong),
    };
    let mut kind = text.as_str();
    let order = match kind.chars().next() {
        Some(order @ ('<' | '>' | '|' | '=')) => {
            kind = &kind[1..];
            Some(order)
        }
        _ => None,
    };
    let Some(dtype) = dtype::parse(kind) else { return unsupported(unsupported_dtype(kind), &text) };
    match order {
        Some('<') => Ok((text, dtype, false)),
        Some('>') => Ok((text, dtype, true)),
        _ if dtype.size() == Some(1) => Ok((text, dtype, false)),
        _ => unsupported(UnsupportedDtype::NativeOrder, &text),
    }
}

fn unsupported_dtype(kind: &str) -> UnsupportedDtype {
    match (kind.chars().next(), kind) {
        (Some('O'), _) => UnsupportedDtype::Object,
        (Some('S' | 'a'), _) => UnsupportedDtype::Bytes,
        (Some('U'), _) => UnsupportedDtype::Text,
        (Some('V'), _) => UnsupportedDtype::Void,
        (_, "c20" | "c24" | "c32" | "G") => UnsupportedDtype::LongComplex,
        (Some('M'), _) => UnsupportedDtype::DateTime,
        (Some('m'), _) => UnsupportedDtype::TimeDelta,
        (_, "f10" | "f12" | "f16" | "g") => UnsupportedDtype::LongDouble,
        _ => UnsupportedDtype::Unknown,
    }
}
