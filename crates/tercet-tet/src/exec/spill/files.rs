//! Spill files: write a selection block by block.

use std::io::{Seek, SeekFrom, Write};

use tercet_core::{ElementType, Selection, Tensor, with_element};
use tercet_kernel::{Plane, SlotNumbers};

use super::{blank_value, is_masked};
use crate::compute::OutputFile;
use crate::error::ErrorKind;
use crate::exec::dense::{DenseWriter, Numbers};
use crate::exec::job::Job;
use crate::exec::number::Number;
use crate::exec::target::Outputs;
use crate::export::{BLOCK_BYTES, Export};
use crate::query::resolved::Role;

/// Minimum block size, for any budget.
const MIN_BLOCK: u64 = 64 << 10;

/// Writes the selection to a file. Returns the location and the preview.
pub(crate) fn spill(
    job: &Job<'_>,
    path: &str,
    outputs: &Outputs,
) -> Result<(OutputFile, Option<Tensor>), ErrorKind> {
    let output = outputs.open(outputs.spot(std::path::Path::new(path))?)?;
    let numbers = Numbers { shift: vec![0.0], divisor: Vec::new() };
    let roles = vec![Role::Reduced; job.plan.grid.rank()];
    let dense = DenseWriter::new(job, &numbers, &roles);
    let dtype = job.plan.grid.element();
    let export = plan(job, &dense, dtype)?;
    let mut head = Head::new(job, outputs.preview, dtype)?;
    if is_masked(job) {
        with_element!(job.plan.grid.element(), |T| blank_value::<T>(job).map(drop))?;
    }
    let mut placed = OffsetWriter::new(output.stage()?);
    let fill = |part: &Selection, origin: &[u64], out: &mut [u8]| {
        if !is_masked(job) {
            return dense.copy_part((part, origin), out);
        }
        with_element!(job.plan.grid.element(), |T| {
            dense.write_part::<T>(copy, blank_value(job)?, (part, origin), out)
        })
    };
    export.each_run(&fill, |at, run| {
        head.look(at, run);
        placed.put(at, run)
    })?;
    dense.check()?;
    let path = placed.into_inner().publish()?;
    output.keep();
    let path = Some(path.to_string_lossy().into_owned());
    Ok((OutputFile { path, bytes: export.bytes() }, head.into_values()))
}

/// Copies rows unchanged.
fn copy<T: Number>((from, to): (&[T], &mut [T]), plane: Plane, _: SlotNumbers<'_>, _: usize) {
    for row in 0..plane.rows {
        let from = &from[row * plane.from_row..][..plane.width];
        to[row * plane.to_row..][..plane.width].copy_from_slice(from);
    }
}

/// Splits the selection into blocks of an element type that leave memory for other buffers in the budget.
pub(crate) fn plan<'a>(
    job: &Job<'a>,
    dense: &DenseWriter<'_>,
    dtype: ElementType,
) -> Result<Export<'a>, ErrorKind> {
    let (stored, size) = (job.plan.grid.element().size() as u64, dtype.size() as u64);
    let block = (job.budget / 4).clamp(MIN_BLOCK, BLOCK_BYTES) * stored / size;
    let export = job.dataset.plan_export(&job.plan.selection, block, dense.can_split())?;
    Ok(export.with_element_size(dtype.size()))
}

/// Writer of bytes at given offsets of a file; seeks only if necessary.
#[derive(Debug)]
pub(crate) struct OffsetWriter<W> {
    out: W,
    at: u64,
}

impl<W: Write + Seek> OffsetWriter<W> {
    /// Wraps an empty file.
    pub(crate) fn new(out: W) -> Self {
        Self { out, at: 0 }
    }

    pub(crate) fn put(&mut self, at: u64, bytes: &[u8]) -> Result<(), ErrorKind> {
        if self.at != at {
            self.out.seek(SeekFrom::Start(at))?;
        }
        self.out.write_all(bytes)?;
        self.at = at + bytes.len() as u64;
        Ok(())
    }

    pub(crate) fn into_inner(self) -> W {
        self.out
    }
}

/// Preview of a result: its first elements, collected as blocks are written.
#[derive(Debug)]
pub(crate) struct Head {
    values: Option<Tensor>,
}

impl Head {
    /// Allocates memory for the first `most` elements, of this type.
    pub(crate) fn new(job: &Job<'_>, most: u64, dtype: ElementType) -> Result<Self, ErrorKind> {
        let most = most.min(job.plan.element_count());
        let bytes = most.saturating_mul(dtype.size() as u64);
        tercet_core::limits::check_limit("the preview", bytes, job.dataset.file.options.limits.array_bytes)?;
        let values = (most > 0).then(|| Tensor::zeros(dtype, [most].into())).transpose()?;
        Ok(Self { values })
    }

    /// Copies the bytes of the first elements from a block of the result.
    pub(crate) fn look(&mut self, at: u64, bytes: &[u8]) {
        let Some(values) = &mut self.values else { return };
        let wanted = usize::try_from(at).ok().and_then(|at| values.bytes_mut().get_mut(at..));
        if let Some(wanted) = wanted {
            let len = wanted.len().min(bytes.len());
            wanted[..len].copy_from_slice(&bytes[..len]);
        }
    }

    pub(crate) fn into_values(self) -> Option<Tensor> {
        self.values
    }
}
