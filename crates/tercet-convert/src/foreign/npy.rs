//! NumPy's `.npy` files: one array each.
//!
//! ```text
//! 0         6        8                    10 or 12          header end
//! ┌─────────┬────────┬────────────────────┬─────────────────┬──────────────────────────────┐
//! │ \x93NUMPY │ x.y  │ length: u16 or u32 │ {'descr': …}    │ values, C or Fortran order   │
//! └─────────┴────────┴────────────────────┴─────────────────┴──────────────────────────────┘
//! ```
//!
//! The header is a Python dictionary. It is parsed here, by a parser that knows literals only; nothing of a file is
//! ever evaluated or unpickled. Arrays of numbers are read; arrays of anything else are refused by name.
//!
//! [`Array`] reads every array of numbers, [`Npy`] those that a `.tet` file can hold, as the types that it has.

mod array;
mod element;
mod error;
mod header;
mod literal;
mod run;
mod write;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use tercet_core::{ByteSource, ElementType, Shape};

pub use array::{Array, MAX_RANK};
pub use element::Element;
pub use error::{Error, ErrorKind, ForeignType, Region, ShapeErrorKind};
pub use write::header;

use header::Header;

/// An open `.npy` file whose array a `.tet` file can hold: any part of it, as row-major little-endian bytes.
///
/// Like [`Array`], with the types that `.tet` files have.
#[derive(Debug)]
pub struct Npy {
    array: Array,
    stored: Stored,
}

/// How elements of the file become elements of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// They are the same.
    Plain(ElementType),
    /// Truth values become `u8`: 0, or 1 for anything else.
    Bool,
    /// Numbers of one byte with a sign become `i16`, the smallest type that holds them all.
    Int8,
}

impl Stored {
    /// The type of the elements that are read.
    pub const fn dtype(self) -> ElementType {
        match self {
            Self::Plain(dtype) => dtype,
            Self::Bool => ElementType::U8,
            Self::Int8 => ElementType::I16,
        }
    }

    /// What becomes of an element type. `None` if a `.tet` file has no place for it.
    fn of(element: Element) -> Option<Self> {
        match element {
            Element::Bool => Some(Self::Bool),
            Element::I8 => Some(Self::Int8),
            other => other.core().map(Self::Plain),
        }
    }
}

impl Npy {
    /// Opens a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_source(array::open_file(path.as_ref())?)
    }

    /// Opens a file whose bytes come from elsewhere.
    pub fn open_source(source: Arc<dyn ByteSource>) -> Result<Self, Error> {
        let name = source.name().clone();
        let read = || {
            let array = Array::read(source, &check)?;
            Ok(Self { stored: stored(array.element(), array.descr())?, array })
        };
        read().map_err(|fault| Error::new(name, fault))
    }

    /// The name of the file, as it was opened.
    pub fn name(&self) -> &str {
        self.array.name()
    }

    /// The element type of the values that are read.
    pub fn dtype(&self) -> ElementType {
        self.stored.dtype()
    }

    /// How the values are stored in the file, in NumPy's words: `<f4`, `|b1`, …
    pub fn descr(&self) -> &str {
        self.array.descr()
    }

    /// How the elements of the file become elements of [`dtype`](Self::dtype).
    pub fn stored(&self) -> Stored {
        self.stored
    }

    /// The extents of the array, each at least 1, 1 to 8 of them.
    pub fn shape(&self) -> &Shape {
        self.array.shape()
    }

    /// Whether the first axis is the fastest in the file.
    pub fn is_fortran(&self) -> bool {
        self.array.is_fortran()
    }

    /// The bytes of the whole array, once read.
    pub fn bytes(&self) -> u64 {
        // Checked when the file was opened; widening at most doubles a size of at most 63 bits.
        self.shape().bytes(self.dtype().size()).unwrap_or(u64::MAX)
    }

    /// Fills `out` with the values of a box: `extents` positions from `start` on, on each axis; row-major,
    /// little-endian, of [`dtype`](Self::dtype).
    pub fn read_box(&self, start: &[u64], extents: &[u64], out: &mut [u8]) -> Result<(), Error> {
        if self.stored != Stored::Int8 {
            return self.array.read_box(start, extents, out);
        }
        let narrow = self.array.bytes_in(start, extents).map_err(|fault| self.array.error(fault))?;
        let (expected, found) = (narrow.saturating_mul(2), out.len() as u64);
        if expected != found {
            return Err(self.array.error(ErrorKind::BufferSize { expected, found }));
        }
        // What is to be widened is copied to the end of the buffer and widened from there.
        let half = out.len() / 2;
        self.array.read_box(start, extents, &mut out[half..])?;
        widen(out);
        Ok(())
    }
}

/// Refuses what no dataset can hold.
fn check(header: &Header) -> Result<(), ErrorKind> {
    stored(header.element, &header.descr)?;
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

fn stored(element: Element, descr: &str) -> Result<Stored, ErrorKind> {
    Stored::of(element)
        .ok_or_else(|| ErrorKind::ForeignType { kind: ForeignType::Complex, descr: descr.into() })
}

/// Widens the bytes in the second half of the buffer. Element `i` is read at `half + i` and written at `2 i`, so
/// nothing is overwritten before it is read.
fn widen(out: &mut [u8]) {
    let half = out.len() / 2;
    for i in 0..half {
        let value = i16::from(out[half + i].cast_signed());
        out[2 * i..2 * i + 2].copy_from_slice(&value.to_le_bytes());
    }
}
