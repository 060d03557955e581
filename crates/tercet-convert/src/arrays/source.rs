//! [`ArraySource`]: the reader of an array file.

use tercet_core::limits::check_limit;
use tercet_core::{DType, Limits, Shape, Tensor};

use super::model::{Header, Kind};
use crate::{Error, ErrorKind};

/// The reader of an array file: the structure, and the values of any box of a variable.
///
/// Sources are shared between threads.
pub trait ArraySource: Send + Sync {
    /// The path or URL, for errors.
    fn name(&self) -> &str;

    /// The structure of the file.
    fn header(&self) -> &Header;

    /// The limits of what is read.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// Reads a box of a variable of numbers or characters into `out`: `extents` positions from `start` on, on each axis;
    /// row-major, little-endian.
    fn read_box(&self, variable: usize, start: &[u64], extents: &[u64], out: &mut [u8]) -> Result<(), Error>;

    /// Reads all strings of a variable, row-major.
    fn read_strings(&self, variable: usize) -> Result<Vec<String>, Error> {
        let name = self.header().variables.get(variable).map_or("", |variable| &variable.name);
        Err(refused(self.name(), format!("variable `{name}` does not contain strings")))
    }

    /// Whether a small box costs as much as a whole chunk, because chunks are compressed.
    fn is_chunked(&self, variable: usize) -> bool {
        self.header().variables.get(variable).is_some_and(|variable| variable.chunks.is_some())
    }

    /// Whether the chunks of a variable are stored as Zstandard frames of row-major, little-endian values, so that
    /// [`stored_chunk`](Self::stored_chunk) returns them.
    fn zstd(&self, _variable: usize) -> Option<ZstdChunks> {
        None
    }

    /// The largest absolute error of the values that were read so far, if they are cast to a type that does not hold all of them.
    fn cast_error(&self, _variable: usize) -> Option<f64> {
        None
    }

    /// The frames of the chunk at coordinates in the chunk grid: those of its values, without positions outside of the array. `None` if the chunk is
    /// missing, or not stored like that.
    fn stored_chunk(&self, _variable: usize, _coords: &[u64]) -> Result<Option<Vec<u8>>, Error> {
        Ok(None)
    }
}

/// Chunks that are stored as Zstandard frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ZstdChunks {
    /// The level of compression, if the file records it.
    pub level: Option<i32>,
}

/// Reads a box of a variable as a tensor.
pub fn read_tensor(
    source: &dyn ArraySource,
    variable: usize,
    start: &[u64],
    extents: &[u64],
) -> Result<Tensor, Error> {
    let item = &source.header().variables[variable];
    let dtype = item.dtype().unwrap_or(DType::U8);
    let shape = Shape::from(extents);
    let bytes = shape.bytes(dtype.size().unwrap_or(1)).unwrap_or(u64::MAX);
    check_limit("a variable", bytes, source.limits().chunk_bytes)
        .map_err(|limit| Error::new(source.name().into(), limit.into()))?;
    let mut tensor =
        Tensor::zeros(dtype, shape).map_err(|memory| Error::new(source.name().into(), memory.into()))?;
    source.read_box(variable, start, extents, tensor.bytes_mut())?;
    Ok(tensor)
}

/// Reads all values of a variable as a tensor. Strings are not numbers.
pub fn read_all(source: &dyn ArraySource, variable: usize) -> Result<Tensor, Error> {
    let item = &source.header().variables[variable];
    if item.kind == Kind::String {
        return Err(refused(source.name(), format!("variable `{}` contains strings", item.name)));
    }
    read_tensor(source, variable, &vec![0; item.shape.len()], &item.shape)
}

/// The error of a request that cannot be met.
pub(crate) fn refused(name: &str, detail: impl Into<String>) -> Error {
    Error::new(name.into(), ErrorKind::Refused(detail.into().into()))
}

/// The error of a file that does not follow its format.
pub(crate) fn malformed(name: &str, detail: impl Into<String>) -> Error {
    Error::new(name.into(), ErrorKind::Malformed(detail.into().into()))
}

/// The error of a feature of another format that is not supported.
pub(crate) fn unsupported(name: &str, detail: impl Into<String>) -> Error {
    Error::new(name.into(), ErrorKind::Unsupported(detail.into().into()))
}

/// Checks that a box is inside a shape and has the length of a buffer.
pub(crate) fn check_box(
    name: &str,
    shape: &[u64],
    item_size: usize,
    (start, extents): (&[u64], &[u64]),
    len: usize,
) -> Result<(), Error> {
    let inside = |((&at, &count), &extent): ((&u64, &u64), &u64)| {
        at.checked_add(count).is_some_and(|end| end <= extent)
    };
    let fits = start.len() == shape.len()
        && extents.len() == shape.len()
        && start.iter().zip(extents).zip(shape).all(inside);
    let bytes = Shape::from(extents).bytes(item_size);
    if fits && bytes == Some(len as u64) {
        return Ok(());
    }
    Err(refused(name, format!("the box {start:?} + {extents:?} is not part of an array of shape {shape:?}")))
}
