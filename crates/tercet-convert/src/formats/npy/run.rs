//! Strided copy of a box from a file into a buffer.

use tercet_core::tensor::BoxCopy;

/// Reads up to this size cost hardly more than the request.
pub(super) const SMALL_READ: usize = 64 * 1024;

/// A box in the file and its position in the buffer. Offsets and strides in bytes.
pub(super) struct Run {
    pub(super) size: usize,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) axes: Vec<RunAxis>,
}

/// An axis of the box.
#[derive(Clone, Copy)]
pub(super) struct RunAxis {
    pub(super) count: usize,
    pub(super) from_stride: usize,
    pub(super) to_stride: usize,
}

impl Run {
    /// Copies the box, from this offset of the bytes read.
    pub(super) fn prepare(&self, from: usize) -> BoxCopy {
        let each = |part: fn(&RunAxis) -> usize| -> Vec<usize> { self.axes.iter().map(part).collect() };
        let counts = each(|axis| axis.count);
        let (from_strides, to_strides) = (each(|axis| axis.from_stride), each(|axis| axis.to_stride));
        BoxCopy::new(self.size, &counts, (from, &from_strides), (self.to, &to_strides))
    }

    /// Number of bytes from the first of the box in the file to the last.
    pub(super) fn reach(&self) -> usize {
        self.axes.iter().map(|axis| (axis.count - 1) * axis.from_stride).sum::<usize>() + self.size
    }

    /// Size of the box in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.axes.iter().map(|axis| axis.count).product::<usize>() * self.size
    }

    /// Divides the box along the slowest axis, into parts of about a small read each.
    pub(super) fn split(&self) -> Vec<Run> {
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
