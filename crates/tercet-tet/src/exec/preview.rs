//! Preview: the first elements of a selection.

use tercet_core::tensor::AxisSlice;
use tercet_core::{Selection, Tensor};

use super::job::Job;
use crate::compute::Preview;
use crate::error::ErrorKind;

/// First `most` elements of the selection, row-major.
pub(crate) fn preview(job: &Job<'_>, most: u64) -> Result<Preview, ErrorKind> {
    let grid = &job.plan.grid;
    let count = job.plan.element_count();
    let truncated = count > most;
    let most = most.min(count);
    if most == 0 {
        return Ok(Preview { values: None, dtype: grid.element(), truncated });
    }
    let reversed = &job.resolved.reversed;
    let head = head(&job.plan.selection, reversed, most);
    let bytes = job.dataset.selection_bytes(grid, &head)?;
    tercet_core::limits::check_limit("the preview", bytes, job.dataset.file.options.limits.array_bytes)?;
    let mut tensor = Tensor::zeros(grid.element(), head.shape())?;
    let is_input = job.resolved.operation.is_some();
    // The inputs of an operation are printed beside it, and not part of its reads.
    let counters = (!is_input).then_some(&job.counters);
    job.dataset.fill(grid, &head, tensor.bytes_mut(), (counters, job.progress))?;
    if !is_input {
        super::spill::blank(job, &head, tensor.bytes_mut())?;
    }
    crate::compute::reverse(&mut tensor, reversed);
    first(&tensor, most).map(|values| Preview { values: Some(values), dtype: grid.element(), truncated })
}

/// First elements of an array, as one dimension.
pub(crate) fn first(tensor: &Tensor, most: u64) -> Result<Tensor, ErrorKind> {
    let mut values = Tensor::zeros(tensor.dtype(), [most].into())?;
    let len = values.bytes().len();
    values.bytes_mut().copy_from_slice(&tensor.bytes()[..len]);
    Ok(values)
}

/// Smallest leading part of a selection with `most` elements; of reversed axes, the trailing part.
fn head(selection: &Selection, reversed: &[bool], most: u64) -> Selection {
    let mut axes: Vec<AxisSlice> = selection.axes().to_vec();
    let mut wanted = most;
    // Starting at the innermost axis: the complete axis while more elements are wanted than it has.
    for (axis, slice) in axes.iter_mut().enumerate().rev() {
        let count = slice.count();
        let take = wanted.min(count).max(1);
        if reversed.get(axis) == Some(&true) {
            slice.start += (count - take) * slice.step;
        }
        slice.stop = slice.start + (take - 1) * slice.step + 1;
        wanted = wanted.div_ceil(count);
    }
    let shape: Vec<u64> = axes.iter().map(|slice| slice.stop).collect();
    Selection::new(axes, &shape).unwrap_or_else(|_| selection.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_hold_enough_and_little_more() {
        let selection = Selection::parse("1:9:2,0:6,2:5", &[10, 6, 8]).unwrap();
        let shape = |most| head(&selection, &[], most).shape().to_vec();
        assert_eq!(shape(1), [1, 1, 1]);
        assert_eq!(shape(3), [1, 1, 3]);
        assert_eq!(shape(4), [1, 2, 3]);
        assert_eq!(shape(18), [1, 6, 3]);
        assert_eq!(shape(19), [2, 6, 3]);
        assert_eq!(shape(72), [4, 6, 3]);
        let reversed = head(&selection, &[true, false, true], 2);
        let first: Vec<u64> = reversed.axes().iter().map(|slice| slice.start).collect();
        assert_eq!((first, reversed.shape().to_vec()), (vec![7, 0, 3], vec![1, 1, 2]));
    }
}
