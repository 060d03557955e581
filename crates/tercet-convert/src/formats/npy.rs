//! NumPy `.npy` files: one array each.
//!
//! ```text
//! 0         6        8                    10 or 12          header end
//! ┌─────────┬────────┬────────────────────┬─────────────────┬──────────────────────────────┐
//! │ \x93NUMPY │ x.y  │ length: u16 or u32 │ {'descr': …}    │ values, C or Fortran order   │
//! └─────────┴────────┴────────────────────┴─────────────────┴──────────────────────────────┘
//! ```
//!
//! The header is a Python dictionary, parsed by a parser for literals only; nothing of a file is evaluated or unpickled.
//! Numeric arrays are read; others are rejected by name.
//!
//! [`Array`] reads every numeric array, [`Npy`] those that a `.tet` file can store.

mod archive;
mod array;
mod dtype;
mod error;
mod header;
mod literal;
mod source;
mod write;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use tercet_core::{ByteSource, DType, Location, Shape};

pub(crate) use archive::{NpySink, NpzSource};
pub use array::{Array, MAX_RANK};
pub use dtype::{DTYPES, type_string};
pub use error::{Error, ErrorKind, Region, ShapeErrorKind, UnsupportedDtype};
pub(crate) use source::NpySource;
pub use write::header;

use header::Header;

/// An open `.npy` file whose array a `.tet` file can store: any part of it, as row-major little-endian bytes.
///
/// Like [`Array`], with the element types of `.tet`.
#[derive(Debug)]
pub struct Npy {
    array: Array,
    conversion: ElementConversion,
}

/// Conversion of the elements of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementConversion {
    /// Unchanged.
    Plain(DType),
    /// Bools become uint8: 0, or 1 for anything else.
    Bool,
    /// int8 becomes int16: `.tet` has no int8.
    Int8,
}

impl ElementConversion {
    /// The element type that is read.
    pub const fn dtype(self) -> DType {
        match self {
            Self::Plain(dtype) => dtype,
            Self::Bool => DType::U8,
            Self::Int8 => DType::I16,
        }
    }

    /// The conversion of an element type; `None` if `.tet` cannot store it.
    fn for_dtype(dtype: DType) -> Option<Self> {
        match dtype {
            DType::Bool => Some(Self::Bool),
            DType::I8 => Some(Self::Int8),
            other => other.element().map(|_| Self::Plain(other)),
        }
    }
}

impl Npy {
    /// Opens a file.
    pub fn open(location: impl Into<Location>) -> Result<Self, Error> {
        Self::from_source(array::open_location(&location.into())?)
    }

    /// Opens a source of bytes.
    pub fn from_source(source: Arc<dyn ByteSource>) -> Result<Self, Error> {
        let name = source.name().clone();
        let read = || {
            let array = Array::read(source, &check)?;
            Ok(Self { conversion: conversion(array.dtype(), array.descr())?, array })
        };
        read().map_err(|fault| Error::new(name, fault))
    }

    /// The name of the file.
    pub fn name(&self) -> &str {
        self.array.name()
    }

    /// The element type of the values that are read.
    pub fn dtype(&self) -> DType {
        self.conversion.dtype()
    }

    /// The size of an element of [`dtype`](Self::dtype) in bytes.
    pub fn item_size(&self) -> usize {
        // Types of whole bytes only are converted.
        self.dtype().size().unwrap_or(1)
    }

    /// The element type of the file as NumPy type string: `<f4`, `|b1`, …
    pub fn descr(&self) -> &str {
        self.array.descr()
    }

    /// The conversion from the element type of the file to [`dtype`](Self::dtype).
    pub fn conversion(&self) -> ElementConversion {
        self.conversion
    }

    /// The shape: 1 to 8 axes, each of at least 1.
    pub fn shape(&self) -> &Shape {
        self.array.shape()
    }

    /// Whether the array is in Fortran order.
    pub fn is_fortran(&self) -> bool {
        self.array.is_fortran()
    }

    /// The length of the array in bytes, after conversion.
    pub fn bytes(&self) -> u64 {
        // Checked when the file was opened; widening at most doubles a size of at most 63 bits.
        self.shape().bytes(self.item_size()).unwrap_or(u64::MAX)
    }

    /// Reads a box into `out`: `extents` positions from `start` on, on each axis; row-major, little-endian, of
    /// [`dtype`](Self::dtype).
    pub fn read_box(&self, start: &[u64], extents: &[u64], out: &mut [u8]) -> Result<(), Error> {
        if self.conversion != ElementConversion::Int8 {
            return self.array.read_box(start, extents, out);
        }
        let narrow = self.array.bytes_in(start, extents).map_err(|fault| self.array.error(fault))?;
        let (expected, found) = (narrow.saturating_mul(2), out.len() as u64);
        if expected != found {
            return Err(self.array.error(ErrorKind::BufferSize { expected, found }));
        }
        // Elements to widen are read into the end of the buffer and widened from there.
        let half = out.len() / 2;
        self.array.read_box(start, extents, &mut out[half..])?;
        widen(out);
        Ok(())
    }
}

/// Rejects shapes that no dataset can have.
fn check(header: &Header) -> Result<(), ErrorKind> {
    conversion(header.dtype, &header.descr)?;
    let reason = match header.shape.rank() {
        0 => ShapeErrorKind::NoAxes,
        rank if rank > tercet_tet::MAX_RANK => {
            ShapeErrorKind::TooManyAxes { rank, most: tercet_tet::MAX_RANK }
        }
        _ => match header.shape.iter().position(|&extent| extent == 0) {
            Some(axis) => ShapeErrorKind::Empty { axis },
            None => return Ok(()),
        },
    };
    Err(ErrorKind::Shape { reason, shape: header.shape.clone() })
}

fn conversion(dtype: DType, descr: &str) -> Result<ElementConversion, ErrorKind> {
    ElementConversion::for_dtype(dtype)
        .ok_or_else(|| ErrorKind::UnsupportedDtype { kind: UnsupportedDtype::Complex, descr: descr.into() })
}

/// Widens the bytes in the second half of the buffer. Element `i` is read at `half + i` and written at `2 i`, so nothing is
/// overwritten before it is read.
fn widen(out: &mut [u8]) {
    let half = out.len() / 2;
    for i in 0..half {
        let value = i16::from(out[half + i].cast_signed());
        out[2 * i..2 * i + 2].copy_from_slice(&value.to_le_bytes());
    }
}
