//! Reader of `.npy` files with any numeric element type.

use std::sync::Arc;

use bytes::Bytes;
use tercet_core::source::Access;
use tercet_core::{ByteSource, DType, Location, Malformed, Reason, Shape, Site, Span};

use super::dtype;
use super::error::{Error, ErrorKind, Region, ShapeErrorKind};
use super::header::{Header, Order};
use crate::formats::strided::{Run, RunAxis};

#[cfg(test)]
mod tests;

/// Maximum number of axes in NumPy.
pub const MAX_RANK: usize = 64;

/// An open `.npy` file: any part of its array, as row-major little-endian bytes.
///
/// Big-endian values are swapped and Fortran order is transposed while reading. A part of a little-endian array in C order
/// is copied once. Memory does not grow with the file, and several threads may read at the same time.
///
/// Supports the element types in [`DTYPES`](super::DTYPES), 0 to [`MAX_RANK`] axes, and empty arrays. [`Npy`](super::Npy) reads what a `.tet` file can
/// store.
///
/// ```
/// use std::sync::Arc;
/// use tercet_convert::npy::{self, Array};
/// use tercet_core::DType;
/// use tercet_core::source::Memory;
///
/// let mut file = npy::header(DType::C64, &[]).unwrap();
/// file.extend([1.5f32, -2.0].iter().flat_map(|part| part.to_le_bytes()));
/// let array = Array::from_source(Arc::new(Memory::new("z.npy", file)))?;
/// assert_eq!((array.dtype(), array.shape().rank(), array.bytes()), (DType::C64, 0, 8));
/// # Ok::<(), npy::Error>(())
/// ```
#[derive(Debug)]
pub struct Array {
    source: Arc<dyn ByteSource>,
    header: Header,
    /// Start of the values.
    start: u64,
    /// The values, if reading them needs no copy.
    mapped: Option<Bytes>,
    /// Strides in bytes on each axis of the file.
    strides: Vec<usize>,
}

impl Array {
    /// Opens a file.
    pub fn open(location: impl Into<Location>) -> Result<Self, Error> {
        Self::from_source(open_location(&location.into())?)
    }

    /// Opens a source of bytes.
    pub fn from_source(source: Arc<dyn ByteSource>) -> Result<Self, Error> {
        let name = source.name().clone();
        Self::read(source, &check_rank).map_err(|fault| Error::new(name, fault))
    }

    /// Opens a file if `accept` accepts its header.
    pub(super) fn read(
        source: Arc<dyn ByteSource>,
        accept: &dyn Fn(&Header) -> Result<(), ErrorKind>,
    ) -> Result<Self, ErrorKind> {
        let (header, start) = Header::read(&source)?;
        accept(&header)?;
        let bytes = header.bytes_of(&header.shape).filter(|&bytes| bytes.checked_add(start).is_some());
        let bytes = bytes
            .ok_or(ErrorKind::Shape { reason: ShapeErrorKind::TooLarge, shape: header.shape.clone() })?;
        let values = source.len().saturating_sub(start);
        let malformed =
            |span, reason| Malformed { site: Site { region: Region::Data, field: "values", span }, reason };
        let span_of = |len| Span::at(start, len).unwrap_or(Span::empty(start));
        if values < bytes {
            return Err(malformed(span_of(values), Reason::Truncated { need: bytes, have: values }).into());
        }
        if values > bytes {
            let rest = Span::at(start + bytes, values - bytes).unwrap_or(Span::empty(start));
            return Err(malformed(rest, Reason::Leftover { len: values - bytes }).into());
        }
        // From here on every offset and stride inside the values fits into memory.
        tercet_core::limits::check_limit("the array", bytes, isize::MAX as u64)?;
        let mapped = if source.is_zero_copy() { Some(source.read_at(span_of(bytes))?) } else { None };
        let strides = header.strides();
        Ok(Self { source, header, start, mapped, strides })
    }

    /// The name of the file.
    pub fn name(&self) -> &str {
        self.source.name()
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.header.dtype
    }

    /// The element type of the file as NumPy type string: `>f4`, `|b1`, …
    pub fn descr(&self) -> &str {
        &self.header.descr
    }

    /// The shape. A scalar has none.
    pub fn shape(&self) -> &Shape {
        &self.header.shape
    }

    /// Whether the array is in Fortran order.
    pub fn is_fortran(&self) -> bool {
        self.header.order == Order::Fortran
    }

    /// The length of the array in bytes.
    pub fn bytes(&self) -> u64 {
        // Checked when the file was opened.
        self.header.bytes_of(self.shape()).unwrap_or(u64::MAX)
    }

    /// The values in place, if the file is mapped and they need no swap, transposition or conversion.
    pub fn in_place(&self) -> Option<&[u8]> {
        self.mapped.as_deref().filter(|_| self.is_as_read())
    }

    /// The source and the byte range of the values, if they are stored as [`read_all`](Self::read_all) returns them.
    pub fn stored_values(&self) -> Option<(&dyn ByteSource, Span)> {
        let span = Span::at(self.start, self.bytes()).filter(|_| self.is_as_read())?;
        Some((&*self.source, span))
    }

    /// Whether the stored bytes are row-major and little-endian.
    fn is_as_read(&self) -> bool {
        let is_one_run = self.bytes() == 0
            || !self.is_fortran()
            || self.shape().iter().filter(|&&extent| extent != 1).count() <= 1;
        is_one_run && !self.is_swapped() && self.dtype() != DType::Bool
    }

    fn is_swapped(&self) -> bool {
        self.header.is_big_endian && self.header.element_size() > 1
    }

    /// Reads the complete array into `out`, row-major, little-endian; bools become bytes 0 and 1.
    pub fn read_all(&self, out: &mut [u8]) -> Result<(), Error> {
        self.read_box(&vec![0; self.shape().rank()], self.shape(), out)
    }

    /// Reads a box into `out`: `extents` positions from `start` on, on each axis; row-major, little-endian; bools become bytes 0
    /// and 1.
    pub fn read_box(&self, start: &[u64], extents: &[u64], out: &mut [u8]) -> Result<(), Error> {
        let mut read = || {
            let expected = self.bytes_in(start, extents)?;
            if expected != out.len() as u64 {
                return Err(ErrorKind::BufferSize { expected, found: out.len() as u64 });
            }
            if expected > 0 {
                self.copy(&self.plan(start, extents), out)?;
                dtype::convert(self.dtype(), self.header.is_big_endian, out);
            }
            Ok(())
        };
        read().map_err(|fault| self.error(fault))
    }

    /// Size of a box in bytes; it must be inside the array.
    pub(super) fn bytes_in(&self, start: &[u64], extents: &[u64]) -> Result<u64, ErrorKind> {
        let shape = self.shape();
        let inside = |((&at, &count), &extent): ((&u64, &u64), &u64)| {
            at.checked_add(count).is_some_and(|end| end <= extent)
        };
        let fits = start.len() == shape.len()
            && extents.len() == shape.len()
            && start.iter().zip(extents).zip(shape.iter()).all(inside);
        // A part is not larger than the array, which was checked when the file was opened.
        let bytes = if fits { self.header.bytes_of(extents) } else { None };
        bytes.ok_or_else(|| ErrorKind::OutOfBounds { start: start.into(), extents: extents.into() })
    }

    pub(super) fn error(&self, fault: ErrorKind) -> Error {
        Error::new(self.source.name().clone(), fault)
    }

    /// Copy of a box into a dense row-major buffer. Axes are in file order, slowest first: reading in file order is worth more
    /// than writing in buffer order, because the buffer is small.
    fn plan(&self, start: &[u64], extents: &[u64]) -> Run {
        // Every number below is at most the length of the values, which fits (see `read`).
        let fit = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let size = self.header.element_size();
        let mut axes = Vec::with_capacity(extents.len());
        let (mut from, mut to_stride) = (0, size);
        for axis in (0..extents.len()).rev() {
            let count = fit(extents[axis]);
            from += fit(start[axis]) * self.strides[axis];
            axes.push(RunAxis { count, from_stride: self.strides[axis], to_stride });
            to_stride *= count;
        }
        if self.header.order == Order::C {
            axes.reverse();
        }
        Run { size, from, to: 0, axes }
    }

    fn copy(&self, run: &Run, out: &mut [u8]) -> Result<(), ErrorKind> {
        match &self.mapped {
            Some(values) => run.prepare(run.from).run(values, out).map_err(ErrorKind::from),
            None => run.fetch(&*self.source, self.start, out),
        }
    }
}

/// Opens a file with positional reads.
/// Opens the bytes of a path. Those of a URL are opened by the caller, and read with `from_source`.
pub(super) fn open_location(location: &Location) -> Result<Arc<dyn ByteSource>, Error> {
    let opened = tercet_core::source::open_location(location, Access::Pread);
    opened.map_err(|error| Error::new(location.to_string().into(), error.into()))
}

fn check_rank(header: &Header) -> Result<(), ErrorKind> {
    let rank = header.shape.rank();
    if rank <= MAX_RANK {
        return Ok(());
    }
    let reason = ShapeErrorKind::TooManyAxes { rank, most: MAX_RANK };
    Err(ErrorKind::Shape { reason, shape: header.shape.clone() })
}
