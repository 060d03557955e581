//! `.npy` files as a source of one variable.

use std::path::Path;
use std::sync::Arc;

use tercet_core::ByteSource;

use super::Array;
use crate::Error;
use crate::arrays::dims::DimTable;
use crate::arrays::{ArraySource, Header, Kind, Variable};

/// A `.npy` file: a variable with the name of the file.
#[derive(Debug)]
pub(crate) struct NpySource {
    array: Array,
    header: Header,
}

impl NpySource {
    /// Opens a file.
    pub(crate) fn open(source: Arc<dyn ByteSource>) -> Result<Self, Error> {
        let stem = Path::new(&**source.name()).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = stem.filter(|stem| !stem.is_empty()).unwrap_or_else(|| "data".to_owned());
        let array = Array::from_source(source)?;
        let mut dims = DimTable::new();
        let shape = array.shape().to_vec();
        let names = dims.resolve(&name, &[], &shape);
        let kind = Kind::Number(array.dtype());
        let variable = Variable { name, kind, dims: names, shape, chunks: None, attrs: Vec::new() };
        let header = Header {
            format: "NumPy .npy".to_owned(),
            dims: dims.into_dims(|_| false),
            variables: vec![variable],
            ..Header::default()
        };
        Ok(Self { array, header })
    }
}

impl ArraySource for NpySource {
    fn name(&self) -> &str {
        self.array.name()
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn read_box(&self, _: usize, start: &[u64], extents: &[u64], out: &mut [u8]) -> Result<(), Error> {
        Ok(self.array.read_box(start, extents, out)?)
    }
}
