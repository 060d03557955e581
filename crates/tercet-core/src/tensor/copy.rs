//! Copying a rectangular part of one array into another.
//!
//! Reading a chunk into a selection and extracting a chunk from an array are the same operation: copy each element
//! of a box, with strides on both sides. [`BoxCopy`] prepares it: axes that are contiguous on both sides are
//! merged, so that a copy of whole rows becomes one `memcpy` per run and a copy of whole chunks a single one.

use std::fmt;

/// A prepared copy of a box of elements between two byte slices.
#[derive(Clone, Debug)]
pub struct BoxCopy {
    element: usize,
    /// Outermost first; merged. Strides in bytes.
    axes: Vec<Axis>,
    from: usize,
    to: usize,
}

#[derive(Clone, Copy, Debug)]
struct Axis {
    count: usize,
    from_stride: usize,
    to_stride: usize,
}

/// The error of a box that exceeds one of the slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyError;

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the box to copy exceeds its array")
    }
}

impl std::error::Error for CopyError {}

impl BoxCopy {
    /// A copy of `counts` elements of `element` bytes on each axis, from offset `from` to offset `to`, with these
    /// strides. All offsets and strides are in bytes; the three slices have one entry for each axis.
    pub fn new(
        element: usize,
        counts: &[usize],
        (from, from_strides): (usize, &[usize]),
        (to, to_strides): (usize, &[usize]),
    ) -> Self {
        let mut axes: Vec<Axis> = Vec::with_capacity(counts.len());
        let given = counts.iter().zip(from_strides).zip(to_strides);
        for ((&count, &from_stride), &to_stride) in given {
            if count == 1 {
                continue;
            }
            let inner = Axis { count, from_stride, to_stride };
            match axes.last_mut() {
                Some(outer) if outer.continues_into(inner) => {
                    *outer = Axis { count: outer.count.saturating_mul(count), ..inner };
                }
                _ => axes.push(inner),
            }
        }
        Self { element, axes, from, to }
    }

    /// The length in bytes, if the copy is contiguous on both sides.
    pub fn contiguous_len(&self) -> Option<usize> {
        match self.axes[..] {
            [] => Some(self.element),
            [axis] if axis.is_contiguous(self.element) => axis.count.checked_mul(self.element),
            _ => None,
        }
    }

    /// Copies the elements.
    pub fn run(&self, from: &[u8], to: &mut [u8]) -> Result<(), CopyError> {
        if self.axes.iter().any(|axis| axis.count == 0) {
            return Ok(());
        }
        // Check the last byte of each side once; the loops below stay inside.
        self.check(from.len(), self.from, |axis| axis.from_stride)?;
        self.check(to.len(), self.to, |axis| axis.to_stride)?;
        match self.element {
            1 => walk::<1>(&self.axes, &from[self.from..], &mut to[self.to..]),
            2 => walk::<2>(&self.axes, &from[self.from..], &mut to[self.to..]),
            4 => walk::<4>(&self.axes, &from[self.from..], &mut to[self.to..]),
            8 => walk::<8>(&self.axes, &from[self.from..], &mut to[self.to..]),
            16 => walk::<16>(&self.axes, &from[self.from..], &mut to[self.to..]),
            _ => return Err(CopyError),
        }
        Ok(())
    }

    fn check(&self, len: usize, start: usize, stride: impl Fn(&Axis) -> usize) -> Result<(), CopyError> {
        let mut end = start.checked_add(self.element);
        for axis in &self.axes {
            let reach = (axis.count - 1).checked_mul(stride(axis));
            end = end.zip(reach).and_then(|(end, reach)| end.checked_add(reach));
        }
        if end.is_some_and(|end| end <= len) { Ok(()) } else { Err(CopyError) }
    }
}

impl Axis {
    fn continues_into(self, inner: Axis) -> bool {
        inner.count.checked_mul(inner.from_stride) == Some(self.from_stride)
            && inner.count.checked_mul(inner.to_stride) == Some(self.to_stride)
    }

    fn is_contiguous(self, element: usize) -> bool {
        self.from_stride == element && self.to_stride == element
    }
}

fn walk<const N: usize>(axes: &[Axis], from: &[u8], to: &mut [u8]) {
    match axes {
        [] => to[..N].copy_from_slice(&from[..N]),
        [axis] if axis.is_contiguous(N) => {
            let run = axis.count * N;
            to[..run].copy_from_slice(&from[..run]);
        }
        [axis] => strided::<N>(*axis, from, to),
        [axis, inner @ ..] => {
            for i in 0..axis.count {
                walk::<N>(inner, &from[i * axis.from_stride..], &mut to[i * axis.to_stride..]);
            }
        }
    }
}

fn strided<const N: usize>(axis: Axis, from: &[u8], to: &mut [u8]) {
    // Iteration over chunks lets the compiler drop the bounds checks of the common cases.
    if axis.to_stride == N {
        for (i, out) in to.chunks_exact_mut(N).take(axis.count).enumerate() {
            let at = i * axis.from_stride;
            out.copy_from_slice(&from[at..at + N]);
        }
    } else {
        for i in 0..axis.count {
            let (at, out) = (i * axis.from_stride, i * axis.to_stride);
            to[out..out + N].copy_from_slice(&from[at..at + N]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The slow obvious version: one element at a time.
    fn naive(copy: (&[usize], usize, &[usize], usize, &[usize]), size: usize, from: &[u8], to: &mut [u8]) {
        let (counts, from_start, from_strides, to_start, to_strides) = copy;
        let total: usize = counts.iter().product();
        for linear in 0..total {
            let (mut rest, mut f, mut t) = (linear, from_start, to_start);
            for axis in (0..counts.len()).rev() {
                let i = rest % counts[axis];
                rest /= counts[axis];
                f += i * from_strides[axis];
                t += i * to_strides[axis];
            }
            to[t..t + size].copy_from_slice(&from[f..f + size]);
        }
    }

    fn dense(shape: &[usize], size: usize) -> Vec<usize> {
        let mut strides = vec![size; shape.len()];
        for axis in (0..shape.len().saturating_sub(1)).rev() {
            strides[axis] = strides[axis + 1] * shape[axis + 1];
        }
        strides
    }

    proptest! {
        #[test]
        fn equals_one_element_at_a_time(
            axes in prop::collection::vec((1usize..5, 0usize..3, 0usize..3, 1usize..4), 0..5),
            size in prop::sample::select(vec![1usize, 2, 4, 8]),
        ) {
            let counts: Vec<usize> = axes.iter().map(|a| a.0).collect();
            let steps: Vec<usize> = axes.iter().map(|a| a.3).collect();
            let from_shape: Vec<usize> = axes.iter().map(|a| a.0 * a.3 + a.1).collect();
            let to_shape: Vec<usize> = axes.iter().map(|a| a.0 + a.2).collect();
            let from_strides: Vec<usize> =
                dense(&from_shape, size).iter().zip(&steps).map(|(stride, step)| stride * step).collect();
            let to_strides = dense(&to_shape, size);
            let from: Vec<u8> = (0..from_shape.iter().product::<usize>() * size).map(|i| (i * 7 + 1) as u8).collect();
            let mut fast = vec![0; to_shape.iter().product::<usize>() * size];
            let mut slow = fast.clone();
            BoxCopy::new(size, &counts, (0, &from_strides), (0, &to_strides)).run(&from, &mut fast).unwrap();
            naive((&counts, 0, &from_strides, 0, &to_strides), size, &from, &mut slow);
            prop_assert_eq!(fast, slow);
        }
    }

    #[test]
    fn whole_rows_become_one_run() {
        let copy = BoxCopy::new(4, &[3, 5], (0, &[20, 4]), (8, &[20, 4]));
        assert_eq!(copy.contiguous_len(), Some(60));
        let copy = BoxCopy::new(4, &[3, 5], (0, &[24, 4]), (0, &[20, 4]));
        assert_eq!(copy.contiguous_len(), None);
    }

    #[test]
    fn leaving_the_array_is_an_error() {
        let copy = BoxCopy::new(4, &[3, 5], (0, &[20, 4]), (0, &[20, 4]));
        assert_eq!(copy.run(&[0; 59], &mut [0; 60]), Err(CopyError));
        assert_eq!(copy.run(&[0; 60], &mut [0; 59]), Err(CopyError));
        assert_eq!(copy.run(&[0; 60], &mut [0; 60]), Ok(()));
        let copy = BoxCopy::new(8, &[usize::MAX, 2], (0, &[usize::MAX, 8]), (0, &[8, 8]));
        assert_eq!(copy.run(&[0; 60], &mut [0; 60]), Err(CopyError));
    }
}
