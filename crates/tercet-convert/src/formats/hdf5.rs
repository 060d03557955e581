//! HDF5 and NetCDF-4 files, read with the crate `hdf5-reader`.
//!
//! Dimensions follow the conventions of NetCDF-4: dimension scales, `DIMENSION_LIST`, `_Netcdf4Coordinates`. Axes without a
//! scale are `dim_0`, `dim_1`, ….

mod attribute;
mod chunk_index;
mod element;
mod filter;
mod links;
mod lzf;
mod skeleton;
#[cfg(test)]
mod tests;
mod tree;
mod write;

use std::sync::{Arc, Mutex, PoisonError};

use hdf5_reader::{Dataset, Hdf5File, OpenOptions, SliceInfo, SliceInfoElem, StorageBuffer};
use tercet_core::{ByteSource, DType, Limits, SourceError, Span};

use crate::Error;
use crate::arrays::source::{check_box, malformed, refused};
use crate::arrays::{ArraySource, Header, Kind};
use crate::formats::unwind::guarded;
use element::Raw;
pub(crate) use write::Hdf5Sink;

/// Before the name of a variable that has the name of a dimension but is not its coordinate.
const NON_COORDINATE: &str = "_nc4_non_coord_";

/// An open HDF5 or NetCDF-4 file.
pub(crate) struct Hdf5 {
    name: Arc<str>,
    header: Header,
    datasets: Vec<StoredDataset>,
    failure: Arc<ReadFailure>,
    /// The datasets refer to it.
    _file: Hdf5File,
}

struct StoredDataset {
    dataset: Dataset,
    /// The size of the units whose bytes are reversed; 1 for little-endian files.
    swap: usize,
}

/// The bytes of a file, for the library.
struct Bytes {
    source: Arc<dyn ByteSource>,
    failure: Arc<ReadFailure>,
}

/// An error of the source of bytes, of which the library keeps the text only.
#[derive(Debug, Default)]
struct ReadFailure(Mutex<Option<SourceError>>);

impl ReadFailure {
    fn set(&self, error: SourceError) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// The error of the source, or else one of the file.
    fn or_malformed(&self, name: &Arc<str>, detail: impl Into<String>) -> Error {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Error::new(name.clone(), error.into()),
            None => malformed(name, detail),
        }
    }

    fn is_set(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

impl hdf5_reader::Storage for Bytes {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read_range(&self, offset: u64, len: usize) -> hdf5_reader::error::Result<StorageBuffer> {
        let available = self.source.len().saturating_sub(offset);
        let needed = len as u64;
        if needed > available {
            return Err(hdf5_reader::error::Error::UnexpectedEof { offset, needed, available });
        }
        let span = Span::at(offset, needed).unwrap_or(Span::empty(offset));
        let bytes = self.source.read_at(span).map_err(|error| {
            let text = format!("cannot read bytes {span}: {error}");
            self.failure.set(error);
            hdf5_reader::error::Error::InvalidData(text)
        })?;
        Ok(StorageBuffer::from_vec(bytes.to_vec()))
    }
}

impl Hdf5 {
    /// Opens a file.
    pub(crate) fn open(source: Arc<dyn ByteSource>, limits: Limits) -> Result<Self, Error> {
        let name = source.name().clone();
        guarded(&name.clone(), || {
            let limits = limits.for_file(source.len());
            let fit = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
            let failure = Arc::new(ReadFailure::default());
            let options = OpenOptions::default()
                .with_filter_registry(filter::registry(fit(limits.chunk_bytes)))
                .with_max_chunk_bytes(fit(limits.chunk_bytes))
                .with_max_read_bytes(fit(limits.chunk_bytes));
            let storage: hdf5_reader::storage::DynStorage =
                Arc::new(Bytes { source, failure: failure.clone() });
            let file = Hdf5File::from_storage_with_options(storage, options)
                .map_err(|error| failure.or_malformed(&name, error.to_string()))?;
            let (header, datasets) = tree::read(&file, &name)?;
            if failure.is_set() {
                return Err(failure.or_malformed(&name, ""));
            }
            Ok(Self { name: name.clone(), header, datasets, failure, _file: file })
        })
    }
}

impl ArraySource for Hdf5 {
    fn name(&self) -> &str {
        &self.name
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn read_box(&self, variable: usize, start: &[u64], extents: &[u64], out: &mut [u8]) -> Result<(), Error> {
        let item = &self.header.variables[variable];
        check_box(self.name(), &item.shape, item.item_size(), (start, extents), out.len())?;
        if out.is_empty() {
            return Ok(());
        }
        let stored = &self.datasets[variable];
        guarded(&self.name, || {
            match item.item_size() {
                1 => self.read::<1>(stored, start, extents, out),
                2 => self.read::<2>(stored, start, extents, out),
                4 => self.read::<4>(stored, start, extents, out),
                8 => self.read::<8>(stored, start, extents, out),
                16 => self.read::<16>(stored, start, extents, out),
                _ => Err(refused(&self.name, format!("`{}` contains strings", item.name))),
            }?;
            match stored.swap {
                2 => out.as_chunks_mut::<2>().0.iter_mut().for_each(|unit| unit.reverse()),
                4 => out.as_chunks_mut::<4>().0.iter_mut().for_each(|unit| unit.reverse()),
                8 => out.as_chunks_mut::<8>().0.iter_mut().for_each(|unit| unit.reverse()),
                _ => {}
            }
            if item.kind == Kind::Number(DType::Bool) {
                for byte in out.iter_mut() {
                    *byte = u8::from(*byte != 0);
                }
            }
            Ok(())
        })
    }

    fn read_strings(&self, variable: usize) -> Result<Vec<String>, Error> {
        let stored = &self.datasets[variable];
        guarded(&self.name, || {
            let strings = stored.dataset.read_strings();
            strings.map_err(|error| self.failure.or_malformed(&self.name, error.to_string()))
        })
    }
}

impl Hdf5 {
    fn read<const N: usize>(
        &self,
        stored: &StoredDataset,
        start: &[u64],
        extents: &[u64],
        out: &mut [u8],
    ) -> Result<(), Error> {
        let selections = start
            .iter()
            .zip(extents)
            .map(|(&start, &extent)| SliceInfoElem::Slice { start, end: start + extent, step: 1 })
            .collect();
        let selection = SliceInfo { selections };
        let dataset = &stored.dataset;
        // Several chunks are decoded on all threads.
        let values = if start.is_empty() {
            dataset.read_array::<Raw<N>>()
        } else if dataset.chunks().is_some() {
            dataset.read_slice_parallel::<Raw<N>>(&selection)
        } else {
            dataset.read_slice::<Raw<N>>(&selection)
        };
        let values = values.map_err(|error| self.failure.or_malformed(&self.name, error.to_string()))?;
        let wrong = || malformed(&self.name, format!("`{}` has values of another number", dataset.name()));
        if values.len() * N != out.len() {
            return Err(wrong());
        }
        for (value, slot) in values.iter().zip(out.chunks_exact_mut(N)) {
            slot.copy_from_slice(&value.0);
        }
        Ok(())
    }
}
