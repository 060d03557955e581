//! Dense reads: a selection of a dataset into one array.
//!
//! A read is split into *bands*: tiles whose part of the result is contiguous. Bands are assigned to
//! threads as disjoint slices; inside a band tiles are decoded in order. A single band (a wide array with one row of
//! tiles) is decoded by all threads together instead.

use rayon::prelude::*;
use tercet_core::checksum;
use tercet_core::limits::check_limit;
use tercet_core::progress::NoProgress;
use tercet_core::tensor::BoxCopy;
use tercet_core::{ByteSource as _, Malformed, Progress, Reason, Selection, Site, Tensor};

use crate::Region;
use crate::chunk::PIECE;
use crate::error::{Error, ErrorKind};
use crate::file::{ChunkRef, Dataset};
use crate::grid::Grid;
use crate::wire::ids::{Codec, MAX_RANK};

type Coordinates = [u64; MAX_RANK];

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
        let read = || {
            let grid = self.checked_grid()?;
            let bytes = self.selection_bytes(grid, selection)?;
            check_limit("the selection", bytes, self.file.options.limits.array_bytes)?;
            self.check_touched(grid, selection)?;
            let mut tensor = Tensor::zeros(grid.element(), selection.shape())?;
            self.fill(grid, selection, tensor.bytes_mut(), &NoProgress)?;
            Ok(tensor)
        };
        read().map_err(|fault| self.file.error(fault))
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
            self.fill(grid, selection, out, progress)
        };
        read().map_err(|fault| self.file.error(fault))
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

    pub(crate) fn fill(
        &self,
        grid: &Grid,
        selection: &Selection,
        out: &mut [u8],
        progress: &dyn Progress,
    ) -> Result<(), ErrorKind> {
        let tiles = grid.touched(selection);
        let bands = bands(grid, selection, &tiles);
        let shape = selection.shape();
        if bands.len() == 1 && tiles.len() > 1 {
            return self.fill_together(grid, selection, &tiles, out, progress);
        }
        // Split the result into one slice per band; bands are consecutive.
        let mut work = Vec::with_capacity(bands.len());
        let mut rest = out;
        for band in bands {
            let (mine, others) = rest.split_at_mut(band.bytes);
            work.push((band, mine));
            rest = others;
        }
        work.into_par_iter().try_for_each_init(Vec::new, |scratch, (band, out)| {
            let mut origin = [0; MAX_RANK];
            let counts = band.origin_and_counts(grid, selection, &tiles, &mut origin);
            let strides = dense_strides(&counts, grid.element().size());
            debug_assert_eq!(counts.len(), shape.rank());
            for tile in &tiles[band.tiles.clone()] {
                progress.check()?;
                self.place_tile(grid, selection, tile, (&origin, &strides), out, scratch)?;
                progress.advance(grid.tile_bytes(&tile[..grid.rank()]));
            }
            Ok(())
        })
    }

    /// Reads one band: all threads decode tiles, a few at a time; copies into the result are sequential.
    fn fill_together(
        &self,
        grid: &Grid,
        selection: &Selection,
        tiles: &[Coordinates],
        out: &mut [u8],
        progress: &dyn Progress,
    ) -> Result<(), ErrorKind> {
        let strides = dense_strides(&selection.shape(), grid.element().size());
        let origin = [0; MAX_RANK];
        for batch in tiles.chunks(rayon::current_num_threads().max(1)) {
            progress.check()?;
            let loaded: Vec<(ChunkRef, bytes::Bytes)> = batch
                .par_iter()
                .map(|tile| self.load_tile(&tile[..grid.rank()]))
                .collect::<Result<_, ErrorKind>>()?;
            for (tile, (_, raw)) in batch.iter().zip(loaded) {
                scatter(grid, selection, tile, (&origin, &strides)).run(&raw, out)?;
                progress.advance(raw.len() as u64);
            }
        }
        Ok(())
    }

    fn load_tile(&self, tile: &[u64]) -> Result<(ChunkRef, bytes::Bytes), ErrorKind> {
        let chunk_ref = self.find_chunk(tile)?;
        let stored = self.fetch(tile, &chunk_ref)?;
        if chunk_ref.codec == Codec::Raw {
            return Ok((chunk_ref, stored));
        }
        let mut raw = self.room(&chunk_ref)?;
        self.decode(tile, &chunk_ref, &stored, &mut raw)?;
        Ok((chunk_ref, raw.into()))
    }

    fn place_tile(
        &self,
        grid: &Grid,
        selection: &Selection,
        tile: &Coordinates,
        target: (&Coordinates, &[usize]),
        out: &mut [u8],
        scratch: &mut Vec<u8>,
    ) -> Result<(), ErrorKind> {
        let coords = &tile[..grid.rank()];
        let chunk_ref = self.find_chunk(coords)?;
        let copy = scatter(grid, selection, tile, target);
        if out.len() as u64 == chunk_ref.raw_len && copy.contiguous_len() == Some(out.len()) {
            // The band is this tile: decode in place.
            return self.load(coords, &chunk_ref, out);
        }
        if chunk_ref.codec == Codec::Raw && self.file.source.is_zero_copy() {
            let whole = chunk_ref.span.len_usize().is_some_and(|len| copy.reads_all(len));
            let Some(expected) = self.crc_to_check(&chunk_ref)?.filter(|_| whole) else {
                let stored = self.fetch(coords, &chunk_ref)?;
                return Ok(copy.run(&stored, out)?);
            };
            // One pass over memory for checksum and copy.
            let stored = self.file.source.read_at(chunk_ref.span)?;
            let mut crc = 0;
            let look = |piece: &[u8]| crc = checksum::crc32c_append(crc, piece);
            copy.run_pieces(&stored, out, PIECE, look)?;
            return self.check_crc(coords, &chunk_ref, expected, crc);
        }
        let len = check_limit("a chunk", chunk_ref.raw_len, self.file.options.limits.chunk_bytes)?;
        scratch.resize(len, 0);
        self.load(coords, &chunk_ref, scratch)?;
        Ok(copy.run(scratch, out)?)
    }
}

/// Consecutive tiles whose part of the result is contiguous.
pub(crate) struct Band {
    pub(crate) tiles: std::ops::Range<usize>,
    pub(crate) bytes: usize,
}

impl Band {
    /// The origin of the band in the result, and its extents.
    pub(crate) fn origin_and_counts(
        &self,
        grid: &Grid,
        selection: &Selection,
        tiles: &[Coordinates],
        origin: &mut Coordinates,
    ) -> Vec<u64> {
        let (first, last) = (&tiles[self.tiles.start], &tiles[self.tiles.end - 1]);
        let axes = selection.axes().iter().enumerate();
        axes.map(|(axis, slice)| {
            let (low, _) = grid.window(axis, first[axis]);
            let (_, high) = grid.window(axis, last[axis]);
            let (start, count) = slice.hits(low, high).unwrap_or((0, 0));
            origin[axis] = start;
            count
        })
        .collect()
    }
}

/// Splits tiles into bands.
///
/// Tiles with equal coordinates on the leading axes are contiguous in the result as long as all but the last of
/// those axes have one selected position in each tile.
pub(crate) fn bands(grid: &Grid, selection: &Selection, tiles: &[Coordinates]) -> Vec<Band> {
    let single = |axis: usize| grid.chunk_shape()[axis] == 1 || selection.axes()[axis].count() == 1;
    let leading = 1 + (0..grid.rank() - 1).take_while(|&axis| single(axis)).count();
    let mut bands = Vec::new();
    let mut start = 0;
    while start < tiles.len() {
        let same = |tile: &Coordinates| tile[..leading] == tiles[start][..leading];
        let end = start + tiles[start..].iter().take_while(|tile| same(tile)).count();
        let mut band = Band { tiles: start..end, bytes: 0 };
        let counts = band.origin_and_counts(grid, selection, tiles, &mut [0; MAX_RANK]);
        // Fits: the bands together are the result, which is in memory.
        let bytes = counts.iter().product::<u64>() * grid.element().size() as u64;
        band.bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        bands.push(band);
        start = end;
    }
    bands
}

/// The copy of the selected elements of a tile into a result that starts at `origin`.
fn scatter(
    grid: &Grid,
    selection: &Selection,
    tile: &Coordinates,
    (origin, strides): (&Coordinates, &[usize]),
) -> BoxCopy {
    let size = grid.element().size();
    let rank = grid.rank();
    let tile_strides = dense_strides(&grid.tile_shape(&tile[..rank]), size);
    let (mut from, mut to) = (0usize, 0usize);
    let mut counts = [0usize; MAX_RANK];
    let mut from_strides = [0usize; MAX_RANK];
    for (axis, slice) in selection.axes().iter().enumerate() {
        let (low, high) = grid.window(axis, tile[axis]);
        let (first, count) = slice.hits(low, high).unwrap_or((0, 0));
        let position = slice.start + first * slice.step;
        // Tiles and results are in memory, so their offsets fit; `run` checks them against the slices anyway.
        let usize_of = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        from = from.saturating_add(usize_of(position - low).saturating_mul(tile_strides[axis]));
        to = to.saturating_add(usize_of(first - origin[axis]).saturating_mul(strides[axis]));
        counts[axis] = usize_of(count);
        from_strides[axis] = usize_of(slice.step).saturating_mul(tile_strides[axis]);
    }
    BoxCopy::new(size, &counts[..rank], (from, &from_strides[..rank]), (to, strides))
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
