//! Conversion of an array of another format to a dataset of a `.tet` file.

use tercet_core::{Progress, Sink};
use tercet_tet::{Dataset, DatasetId, Grid, Writer};

use crate::Error;
use crate::npy::Npy;

/// Writes all values of `array` as the chunks of `dataset`, in parallel and in bounded memory.
///
/// The dataset has the shape and the element type of the array ([`Npy::shape`], [`Npy::dtype`]); its chunks may have any
/// shape.
pub fn store<S: Sink>(
    array: &Npy,
    writer: &mut Writer<S>,
    dataset: DatasetId,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let grid = writer.grid(dataset).clone();
    writer.fill(dataset, |coords, out| read_chunk(array, &grid, coords, out), progress)
}

/// The largest absolute difference between the values of `array` and those of a stored dataset of the same shape.
pub fn max_abs_error(array: &Npy, dataset: &Dataset<'_>, progress: &dyn Progress) -> Result<f64, Error> {
    let grid = dataset.grid()?;
    dataset.max_abs_error(|coords, out| read_chunk(array, grid, coords, out), progress)
}

/// Reads the values of a chunk.
fn read_chunk(array: &Npy, grid: &Grid, coords: &[u64], out: &mut [u8]) -> Result<(), Error> {
    let start: Vec<u64> =
        coords.iter().enumerate().map(|(axis, &coordinate)| grid.window(axis, coordinate).0).collect();
    array.read_box(&start, &grid.chunk_shape_at(coords), out).map_err(Error::from)
}
