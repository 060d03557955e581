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

mod fault;
mod header;
mod literal;
mod write;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use tercet_core::source::Mmap;
use tercet_core::tensor::BoxCopy;
use tercet_core::{ByteSource, DType, Malformed, Shape, Site, Span, Why};

pub use fault::{Error, Fault, ForeignType, Region, ShapeWhy};
pub use header::Stored;
pub use write::header;

use header::{Header, Order};

/// An open `.npy` file: any part of its array, as row-major little-endian bytes.
///
/// Big-endian values are swapped, Fortran order is transposed, on the way out. A part of a little-endian array in C
/// order is copied once, from the mapped file. Memory does not grow with the file, and several threads may read
/// at the same time.
#[derive(Debug)]
pub struct Npy {
    source: Arc<dyn ByteSource>,
    header: Header,
    /// Where the values start.
    start: u64,
    /// The values, when reading them costs no copy.
    mapped: Option<Bytes>,
    /// Bytes from one position to the next on each axis of the file.
    strides: Vec<usize>,
}

impl Npy {
    /// Opens a file and maps it. The warnings of [`Mmap`] about files that change apply.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let source =
            Mmap::open(path).map_err(|error| Error::new(path.to_string_lossy().into(), error.into()))?;
        Self::open_source(Arc::new(source))
    }

    /// Opens a file whose bytes come from elsewhere.
    pub fn open_source(source: Arc<dyn ByteSource>) -> Result<Self, Error> {
        let name = source.name().clone();
        Self::read(source).map_err(|fault| Error::new(name, fault))
    }

    fn read(source: Arc<dyn ByteSource>) -> Result<Self, Fault> {
        let (header, start) = Header::read(&source)?;
        let size = header.element_size();
        let bytes = header.shape.bytes(size).filter(|&bytes| bytes.checked_add(start).is_some());
        let bytes = bytes.ok_or(Fault::Shape { why: ShapeWhy::TooLarge, shape: header.shape.clone() })?;
        let values = source.len().saturating_sub(start);
        let malformed =
            |span, why| Malformed { site: Site { region: Region::Data, field: "values", span }, why };
        let there = |len| Span::at(start, len).unwrap_or(Span::empty(start));
        if values < bytes {
            return Err(malformed(there(values), Why::Truncated { need: bytes, have: values }).into());
        }
        if values > bytes {
            let rest = Span::at(start + bytes, values - bytes).unwrap_or(Span::empty(start));
            return Err(malformed(rest, Why::Leftover { len: values - bytes }).into());
        }
        // From here on every offset and stride inside the values fits into memory.
        tercet_core::limits::within("the array", bytes, isize::MAX as u64)?;
        let mapped = if source.is_zero_copy() { Some(source.read_at(there(bytes))?) } else { None };
        let strides = header.strides();
        Ok(Self { source, header, start, mapped, strides })
    }

    /// The name of the file, as it was opened.
    pub fn name(&self) -> &str {
        self.source.name()
    }

    /// The element type of the values that are read.
    pub fn dtype(&self) -> DType {
        self.header.stored.dtype()
    }

    /// How the values are stored in the file, in NumPy's words: `<f4`, `|b1`, …
    pub fn descr(&self) -> &str {
        &self.header.descr
    }

    /// How the elements of the file become elements of [`dtype`](Self::dtype).
    pub fn stored(&self) -> Stored {
        self.header.stored
    }

    /// The extents of the array, each at least 1, 1 to 8 of them.
    pub fn shape(&self) -> &Shape {
        &self.header.shape
    }

    /// Whether the first axis is the fastest in the file.
    pub fn is_fortran(&self) -> bool {
        self.header.order == Order::Fortran
    }

    /// The bytes of the whole array, once read.
    pub fn bytes(&self) -> u64 {
        // Checked when the file was opened; widening at most doubles a size of at most 63 bits.
        self.shape().bytes(self.dtype().size()).unwrap_or(u64::MAX)
    }

    /// Fills `out` with the values of a box: `extents` positions from `start` on, on each axis; row-major,
    /// little-endian, of [`dtype`](Self::dtype).
    pub fn read_box(&self, start: &[u64], extents: &[u64], out: &mut [u8]) -> Result<(), Error> {
        self.try_read_box(start, extents, out).map_err(|fault| Error::new(self.source.name().clone(), fault))
    }

    fn try_read_box(&self, start: &[u64], extents: &[u64], out: &mut [u8]) -> Result<(), Fault> {
        let shape = self.shape();
        let inside = |((&at, &count), &extent): ((&u64, &u64), &u64)| {
            at.checked_add(count).is_some_and(|end| end <= extent)
        };
        let fits = start.len() == shape.len()
            && extents.len() == shape.len()
            && start.iter().zip(extents).zip(shape.iter()).all(inside);
        if !fits {
            return Err(Fault::NoSuchBox { start: start.into(), extents: extents.into() });
        }
        let expected = Shape::from(extents).bytes(self.dtype().size());
        if expected != Some(out.len() as u64) {
            let expected = expected.unwrap_or(u64::MAX);
            return Err(Fault::BufferSize { expected, found: out.len() as u64 });
        }
        if out.is_empty() {
            return Ok(());
        }
        let size = self.header.element_size();
        // What is to be widened is copied to the end of the buffer and widened from there.
        let narrow = out.len() / self.dtype().size() * size;
        let copied = out.len() - narrow;
        self.copy(&self.plan(start, extents), &mut out[copied..])?;
        self.header.stored.finish(self.header.swapped, out);
        Ok(())
    }

    /// The copy of a box into a dense row-major buffer. Axes are in the order of the file, slowest first: reading
    /// in the order of the file is worth more than writing in the order of the buffer, which is small.
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

    fn copy(&self, run: &Run, out: &mut [u8]) -> Result<(), Fault> {
        match &self.mapped {
            Some(values) => run.prepare(run.from).run(values, out).map_err(Fault::from),
            None => self.fetch(run, out),
        }
    }

    /// Copies from a source that must be read: in one piece if the piece is not much larger than what is wanted of
    /// it, else cut along the slowest axis.
    fn fetch(&self, run: &Run, out: &mut [u8]) -> Result<(), Fault> {
        let (reach, wanted) = (run.reach(), run.bytes());
        let start = self.start + run.from as u64;
        if run.prepare(0).contiguous_len() == Some(wanted) {
            self.source.read_into(start, &mut out[run.to..run.to + wanted])?;
        } else if reach <= SMALL_READ.max(wanted.saturating_mul(2)) {
            let piece = self.source.read_at(Span::at(start, reach as u64).unwrap_or(Span::empty(start)))?;
            run.prepare(0).run(&piece, out)?;
        } else {
            for part in run.split() {
                self.fetch(&part, out)?;
            }
        }
        Ok(())
    }
}

/// Reading so many bytes costs hardly more than asking for them.
const SMALL_READ: usize = 64 * 1024;

/// A box in the file and its place in the buffer. Offsets and strides in bytes.
struct Run {
    size: usize,
    from: usize,
    to: usize,
    axes: Vec<RunAxis>,
}

#[derive(Clone, Copy)]
struct RunAxis {
    count: usize,
    from_stride: usize,
    to_stride: usize,
}

impl Run {
    fn prepare(&self, from: usize) -> BoxCopy {
        let each = |part: fn(&RunAxis) -> usize| -> Vec<usize> { self.axes.iter().map(part).collect() };
        let counts = each(|axis| axis.count);
        let (from_strides, to_strides) = (each(|axis| axis.from_stride), each(|axis| axis.to_stride));
        BoxCopy::new(self.size, &counts, (from, &from_strides), (self.to, &to_strides))
    }

    /// From the first byte of the box in the file to the last.
    fn reach(&self) -> usize {
        self.axes.iter().map(|axis| (axis.count - 1) * axis.from_stride).sum::<usize>() + self.size
    }

    fn bytes(&self) -> usize {
        self.axes.iter().map(|axis| axis.count).product::<usize>() * self.size
    }

    /// The same box in parts: a few positions of the slowest axis each, as many as a small read reaches.
    fn split(&self) -> Vec<Run> {
        let Some((first, rest)) = self.axes.split_first() else { return Vec::new() };
        let group = (SMALL_READ / first.from_stride).max(1);
        let part = |low: usize| {
            let count = group.min(first.count - low);
            let outer = (count > 1).then_some(RunAxis { count, ..*first });
            Run {
                size: self.size,
                from: self.from + low * first.from_stride,
                to: self.to + low * first.to_stride,
                axes: outer.into_iter().chain(rest.iter().copied()).collect(),
            }
        };
        (0..first.count).step_by(group).map(part).collect()
    }
}
