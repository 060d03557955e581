//! Dense reads: a selection of a dataset into one array.

use std::ops::Range;

use tercet_core::limits::check_limit;
use tercet_core::progress::NoProgress;
use tercet_core::tensor::AxisSlice;
use tercet_core::{Malformed, Progress, Reason, Selection, Site, Tensor};

use crate::Region;
use crate::error::{Error, ErrorKind};
use crate::exec::dense::{self, Copy};
use crate::exec::job::{Counters, Scope};
use crate::file::Dataset;
use crate::grid::Grid;

impl Dataset<'_> {
    /// Reads a selection.
    ///
    /// ```no_run
    /// let file = tercet_tet::File::open("era5.tet")?;
    /// let t2m = file.dataset("t2m")?;
    /// let tensor = t2m.select().slices("0:10,::2")?.read()?;
    /// let values: &[f32] = tensor.as_slice().expect("t2m holds f32");
    /// # Ok::<(), tercet_tet::Error>(())
    /// ```
    pub fn read(&self, selection: &Selection) -> Result<Tensor, Error> {
        self.read_counted(selection, (None, &NoProgress)).map_err(|fault| self.file.error(fault))
    }

    /// Reads a selection and counts what is read.
    pub(crate) fn read_counted(
        &self,
        selection: &Selection,
        counted: (Option<&Counters>, &dyn Progress),
    ) -> Result<Tensor, ErrorKind> {
        let grid = self.checked_grid()?;
        let bytes = self.selection_bytes(grid, selection)?;
        check_limit("the selection", bytes, self.file.options.limits.array_bytes)?;
        self.check_touched(grid, selection)?;
        let mut tensor = Tensor::zeros(grid.element(), selection.shape())?;
        self.fill(grid, selection, tensor.bytes_mut(), counted)?;
        Ok(tensor)
    }

    /// Reads the whole array.
    pub fn read_all(&self) -> Result<Tensor, Error> {
        let grid = self.grid()?;
        self.read(&Selection::full(grid.shape()))
    }

    /// Reads a selection into a buffer of exactly its size: row-major, little-endian.
    ///
    /// After an error the contents of the buffer are undefined.
    pub fn read_into(
        &self,
        selection: &Selection,
        out: &mut [u8],
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let mut read = || {
            let grid = self.checked_grid()?;
            let expected = self.selection_bytes(grid, selection)?;
            if expected != out.len() as u64 {
                return Err(ErrorKind::BufferSize { expected, found: out.len() as u64 });
            }
            self.check_touched(grid, selection)?;
            self.fill(grid, selection, out, (None, progress))
        };
        read().map_err(|fault| self.file.error(fault))
    }

    /// Reads the values of a chunk of another grid of the same array.
    pub(crate) fn read_chunk_of(&self, grid: &Grid, coords: &[u64], out: &mut [u8]) -> Result<(), Error> {
        let slices = (0..grid.rank()).map(|axis| {
            let (start, stop) = grid.window(axis, coords[axis]);
            AxisSlice { start, stop, step: 1 }
        });
        let selection = Selection::new(slices.collect(), grid.shape());
        let selection = selection.map_err(|error| self.file.error(error.into()))?;
        self.read_into(&selection, out, &NoProgress)
    }

    /// The bytes of a selection of this dataset.
    pub(crate) fn selection_bytes(&self, grid: &Grid, selection: &Selection) -> Result<u64, ErrorKind> {
        // A selection may have been made for another array.
        let checked = Selection::new(selection.axes().to_vec(), grid.shape())?;
        checked.shape().bytes(grid.element().size()).ok_or_else(|| ErrorKind::BadDataset {
            dataset: self.name().into(),
            reason: crate::error::DatasetError::TooLarge,
        })
    }

    /// Fails if the file has far fewer chunks than the selection touches, before they are listed.
    pub(crate) fn check_touched(&self, grid: &Grid, selection: &Selection) -> Result<(), ErrorKind> {
        let rows = self.file.rows.count();
        // A few missing chunks are reported by name when they are read.
        let most = rows.saturating_mul(2).saturating_add(1 << 10);
        if grid.touched_count(selection).is_none_or(|touched| touched > most) {
            let span = self.file.catalog.superblock.index_span();
            let site = Site { region: Region::IndexHeader, field: "entry_count", span };
            let allowed = "at least the number of chunks that the selection touches";
            return Err(Malformed { site, reason: Reason::OutOfRange { found: rows, allowed } }.into());
        }
        Ok(())
    }

    /// Reads a selection into a buffer of its size.
    pub(crate) fn fill(
        &self,
        grid: &Grid,
        selection: &Selection,
        out: &mut [u8],
        (counters, progress): (Option<&Counters>, &dyn Progress),
    ) -> Result<(), ErrorKind> {
        let scope = Scope {
            dataset: *self,
            grid,
            selection,
            planned: None,
            positions: None,
            reversed: &[],
            progress,
            counters,
            parallel: true,
        };
        let ranges: Vec<Range<u64>> = selection.axes().iter().map(|slice| 0..slice.count()).collect();
        self.file.on_threads(|| {
            let visitor = dense::visitor(scope);
            dense::write(&visitor, &ranges, out, &Copy { size: grid.element().size() })?;
            visitor.chunks.finish()
        })
    }
}

/// Byte strides of a dense row-major array.
pub(crate) fn dense_strides(shape: &[u64], size: usize) -> Vec<usize> {
    let mut strides = vec![size; shape.len()];
    for axis in (0..shape.len().saturating_sub(1)).rev() {
        let extent = usize::try_from(shape[axis + 1]).unwrap_or(usize::MAX);
        strides[axis] = strides[axis + 1].saturating_mul(extent);
    }
    strides
}
