//! Spill: writes a selection unchanged as row-major, little-endian values without a header. Also replaces the elements
//! that a filter excludes, wherever the shape of the selection is kept.

use rayon::prelude::*;
use tercet_core::tensor::f16;
use tercet_core::{ElementType, Selection, with_element};

use super::job::Job;
use super::number::Number;
use super::predicate::{Predicate, fill_value};
use crate::error::ErrorKind;

#[cfg(any(unix, windows))]
mod files;
#[cfg(test)]
mod tests;

#[cfg(any(unix, windows))]
pub(crate) use files::{Head, OffsetWriter, plan, spill};

/// Elements that are blanked at a time.
const BLOCK_ELEMENTS: usize = 64 << 10;

/// This platform has no files.
#[cfg(not(any(unix, windows)))]
pub(crate) fn spill(
    _job: &Job<'_>,
    path: &str,
    _outputs: &super::target::Outputs,
) -> Result<(crate::compute::OutputFile, Option<tercet_core::Tensor>), ErrorKind> {
    Err(ErrorKind::Target { path: path.into(), reason: crate::error::TargetError::NoFiles })
}

/// Whether some elements are excluded.
fn is_masked(job: &Job<'_>) -> bool {
    job.resolved.dense_filter(job.plan.grid.element()).is_some() || job.resolved.positions.is_some()
}

/// Replacement for excluded elements: NaN, or the fill value of integers.
fn blank_value<T: Number>(job: &Job<'_>) -> Result<T, ErrorKind> {
    let nan = match T::ELEMENT {
        ElementType::F16 => Some(bytemuck::pod_read_unaligned(bytemuck::bytes_of(&f16::NAN))),
        ElementType::F32 => Some(bytemuck::pod_read_unaligned(bytemuck::bytes_of(&f32::NAN))),
        ElementType::F64 => Some(bytemuck::pod_read_unaligned(bytemuck::bytes_of(&f64::NAN))),
        _ => None,
    };
    let none = || ErrorKind::NoFill { dataset: job.dataset.name().into(), dtype: T::ELEMENT };
    nan.or_else(|| job.resolved.fill.and_then(fill_value::<T>)).ok_or_else(none)
}

/// Blanks the elements of a dense buffer that the filter or the labels of the query exclude. The buffer holds
/// `selection`, a part of the query's selection.
pub(crate) fn blank(job: &Job<'_>, selection: &Selection, bytes: &mut [u8]) -> Result<(), ErrorKind> {
    if !is_masked(job) {
        return Ok(());
    }
    with_element!(job.plan.grid.element(), |T| blank_elements::<T>(job, selection, bytes))
}

fn blank_elements<T: Number>(
    job: &Job<'_>,
    selection: &Selection,
    bytes: &mut [u8],
) -> Result<(), ErrorKind> {
    let blank = blank_value::<T>(job)?.swap_le();
    let resolved = job.resolved;
    let filter = resolved.dense_filter(T::ELEMENT);
    let predicate = filter.map(|filter| Predicate::<T>::new(&filter, resolved.fills()));
    let labels = resolved.positions.as_ref().map(|positions| {
        let axis = positions.axis;
        let below: u64 = selection.shape()[axis + 1..].iter().product();
        let (own, all) = (selection.axes()[axis], job.plan.selection.axes()[axis]);
        // Maps the number of an element to whether its position is included.
        move |element: u64| {
            let position = own.start + element / below % own.count() * own.step;
            let number = position.saturating_sub(all.start) / all.step;
            usize::try_from(number).ok().and_then(|number| positions.counts.get(number)) == Some(&true)
        }
    });
    let size = size_of::<T>();
    bytes.par_chunks_mut(BLOCK_ELEMENTS * size).enumerate().for_each(|(chunk, bytes)| {
        for (element, bytes) in ((chunk * BLOCK_ELEMENTS) as u64..).zip(bytes.chunks_exact_mut(size)) {
            let value = || bytemuck::pod_read_unaligned::<T>(bytes).swap_le();
            let passes = predicate.as_ref().is_none_or(|predicate| predicate.passes(value()));
            if !passes || labels.as_ref().is_some_and(|counts| !counts(element)) {
                bytes.copy_from_slice(bytemuck::bytes_of(&blank));
            }
        }
    });
    Ok(())
}
