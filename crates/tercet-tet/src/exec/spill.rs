//! Spill: writes a selection unchanged as row-major, little-endian values without a header. Also replaces the elements
//! that a filter excludes, wherever the shape of the selection is kept.

use rayon::prelude::*;
use tercet_core::tensor::f16;
use tercet_core::{ElementType, Selection, with_element};

use super::job::Job;
use super::number::Number;
use super::predicate::{Predicate, fill_value};
use super::target::Outputs;
use crate::error::ErrorKind;
use crate::query::answer::{Execution, Preview, Value};
use crate::query::run::RunOptions;

#[cfg(any(unix, windows))]
mod files;
#[cfg(test)]
mod tests;

#[cfg(any(unix, windows))]
pub(crate) use files::{Head, Placed, plan, spill};

/// Elements that are blanked at a time.
const CELLS: usize = 64 << 10;

/// A result that was written to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spilled {
    /// Path; `None` for an unnamed temporary file.
    pub(crate) path: Option<String>,
    /// Bytes of the elements.
    pub(crate) bytes: u64,
}

impl Spilled {
    /// JSON members of the result. Their names mention the first supported element type; all types use them.
    pub(crate) fn details(self) -> Vec<(&'static str, Value)> {
        let path = self.path.map(|path| ("spill_f32_path", Value::Text(path)));
        path.into_iter().chain([("spill_f32_bytes", Value::Count(self.bytes))]).collect()
    }
}

/// Executes a query without an operation: writes the selection to a file, or returns only a preview.
pub(crate) fn execute(job: &Job<'_>, options: &RunOptions) -> Result<Execution, ErrorKind> {
    let Some(path) = &job.resolved.spill else {
        let preview = super::preview::preview(job, options.preview)?;
        return Ok(Execution {
            preview: Some(preview),
            memory_strategy: "capped_in_memory",
            ..Execution::default()
        });
    };
    let outputs = Outputs::new(job.dataset.file.path(), &options.spill_allow, options.preview)?;
    let (spilled, cells) = spill(job, path, &outputs)?;
    let dtype = job.plan.grid.element();
    let truncated = job.plan.element_count() > options.preview;
    Ok(Execution {
        preview: Some(Preview { cells, dtype, truncated }),
        memory_strategy: "mmap_spill",
        details: spilled.details(),
        ..Execution::default()
    })
}

/// This platform has no files.
#[cfg(not(any(unix, windows)))]
fn spill(
    _job: &Job<'_>,
    path: &str,
    _outputs: &Outputs,
) -> Result<(Spilled, Option<tercet_core::Tensor>), ErrorKind> {
    Err(ErrorKind::Target { path: path.into(), reason: crate::error::TargetError::NoFiles })
}

/// Whether some elements are excluded.
fn is_masked(job: &Job<'_>) -> bool {
    job.resolved.filter.is_some() || job.resolved.positions.is_some()
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
    with_element!(job.plan.grid.element(), |T| blank_cells::<T>(job, selection, bytes))
}

fn blank_cells<T: Number>(job: &Job<'_>, selection: &Selection, bytes: &mut [u8]) -> Result<(), ErrorKind> {
    let blank = blank_value::<T>(job)?.swap_le();
    let resolved = job.resolved;
    let predicate = resolved.filter.as_ref().map(|filter| Predicate::<T>::new(filter, resolved.fill));
    let labels = resolved.positions.as_ref().map(|positions| {
        let axis = positions.axis;
        let below: u64 = selection.shape()[axis + 1..].iter().product();
        let (own, all) = (selection.axes()[axis], job.plan.selection.axes()[axis]);
        // Maps the number of an element to whether its position is included.
        move |cell: u64| {
            let position = own.start + cell / below % own.count() * own.step;
            let number = position.saturating_sub(all.start) / all.step;
            usize::try_from(number).ok().and_then(|number| positions.counts.get(number)) == Some(&true)
        }
    });
    let size = size_of::<T>();
    bytes.par_chunks_mut(CELLS * size).enumerate().for_each(|(chunk, bytes)| {
        for (cell, bytes) in ((chunk * CELLS) as u64..).zip(bytes.chunks_exact_mut(size)) {
            let value = || bytemuck::pod_read_unaligned::<T>(bytes).swap_le();
            let passes = predicate.as_ref().is_none_or(|predicate| predicate.passes(value()));
            if !passes || labels.as_ref().is_some_and(|counts| !counts(cell)) {
                bytes.copy_from_slice(bytemuck::bytes_of(&blank));
            }
        }
    });
    Ok(())
}
