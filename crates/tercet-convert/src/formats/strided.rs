//! Strided copy of a box from a file into a buffer.

use tercet_core::tensor::{BoxCopy, CopyError};
use tercet_core::{ByteSource, SourceError, Span};

/// Reads up to this size cost hardly more than the request.
pub(crate) const SMALL_READ: usize = 64 * 1024;

/// A box in the file and its position in the buffer. Offsets and strides in bytes.
pub(crate) struct Run {
    pub(crate) size: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) axes: Vec<RunAxis>,
}

/// An axis of the box.
#[derive(Clone, Copy)]
pub(crate) struct RunAxis {
    pub(crate) count: usize,
    pub(crate) from_stride: usize,
    pub(crate) to_stride: usize,
}

impl Run {
    /// Copies the box, from this offset of the bytes read.
    pub(crate) fn prepare(&self, from: usize) -> BoxCopy {
        let each = |part: fn(&RunAxis) -> usize| -> Vec<usize> { self.axes.iter().map(part).collect() };
        let counts = each(|axis| axis.count);
        let (from_strides, to_strides) = (each(|axis| axis.from_stride), each(|axis| axis.to_stride));
        BoxCopy::new(self.size, &counts, (from, &from_strides), (self.to, &to_strides))
    }

    /// Reads the box from a source whose array starts at `base`: in one piece if the piece is not much larger than the box, else
    /// divided along the slowest axis.
    pub(crate) fn fetch<E>(&self, source: &dyn ByteSource, base: u64, out: &mut [u8]) -> Result<(), E>
    where
        E: From<SourceError> + From<CopyError>,
    {
        let (reach, wanted) = (self.reach(), self.bytes());
        let start = base + self.from as u64;
        if self.prepare(0).contiguous_len() == Some(wanted) {
            source.read_into(start, &mut out[self.to..self.to + wanted])?;
        } else if reach <= SMALL_READ.max(wanted.saturating_mul(2)) {
            let piece = source.read_at(Span::at(start, reach as u64).unwrap_or(Span::empty(start)))?;
            self.prepare(0).run(&piece, out)?;
        } else {
            for part in self.split() {
                part.fetch::<E>(source, base, out)?;
            }
        }
        Ok(())
    }

    /// Number of bytes from the first of the box in the file to the last.
    pub(crate) fn reach(&self) -> usize {
        self.axes.iter().map(|axis| (axis.count - 1) * axis.from_stride).sum::<usize>() + self.size
    }

    /// Size of the box in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.axes.iter().map(|axis| axis.count).product::<usize>() * self.size
    }

    /// Divides the box along the slowest axis, into parts of about a small read each.
    pub(crate) fn split(&self) -> Vec<Run> {
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

/// Byte strides of a row-major array.
pub(crate) fn strides(shape: &[u64], size: usize) -> Vec<usize> {
    let mut strides = vec![size; shape.len()];
    for axis in (0..shape.len().saturating_sub(1)).rev() {
        strides[axis] =
            strides[axis + 1].saturating_mul(usize::try_from(shape[axis + 1]).unwrap_or(usize::MAX));
    }
    strides
}

/// Copies a box of a row-major array in memory.
pub(crate) fn copy_box(
    bytes: &[u8],
    shape: &[u64],
    size: usize,
    (start, extents): (&[u64], &[u64]),
    out: &mut [u8],
) -> Result<(), CopyError> {
    let fit = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let (from, to) = (strides(shape, size), strides(extents, size));
    let offset = start.iter().zip(&from).map(|(at, stride)| fit(*at).saturating_mul(*stride)).sum();
    let counts: Vec<usize> = extents.iter().map(|extent| fit(*extent)).collect();
    BoxCopy::new(size, &counts, (offset, &from), (0, &to)).run(bytes, out)
}
