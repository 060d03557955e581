//! One object of a message as a source.

use tercet_core::Tensor;
use tercet_tgm::File;

use super::keys;
use crate::Error;
use crate::arrays::dims::DimTable;
use crate::arrays::source::check_box;
use crate::arrays::{ArraySource, Attr, Header, Kind, Variable};
use crate::formats::strided::copy_box;

/// One object, decoded.
#[derive(Debug)]
pub(crate) struct ObjectSource {
    name: String,
    header: Header,
    values: Tensor,
}

impl ObjectSource {
    /// Decodes an object; its metadata are the attributes.
    pub(crate) fn open(file: &File, message: u64, object: u64) -> Result<Self, Error> {
        let found = file.message(message)?;
        let values = found.object(object)?.decode()?;
        let name = super::object_name(found.metadata(), object);
        let attrs = super::object_keys(found.metadata(), object);
        let attrs: Vec<Attr> =
            attrs.iter().map(|(key, value)| Attr::new(key.clone(), keys::attribute(value))).collect();
        let mut dims = DimTable::new();
        let shape = values.shape().to_vec();
        let names = dims.resolve(&name, &[], &shape);
        let kind = Kind::Number(values.dtype());
        let variable = Variable { name, kind, dims: names, shape, chunks: None, attrs };
        let header = Header {
            format: "Tensogram .tgm".to_owned(),
            dims: dims.into_dims(|_| false),
            variables: vec![variable],
            ..Header::default()
        };
        Ok(Self { name: file.name().to_string(), header, values })
    }
}

impl ArraySource for ObjectSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn read_box(&self, _: usize, start: &[u64], extents: &[u64], out: &mut [u8]) -> Result<(), Error> {
        let item = &self.header.variables[0];
        check_box(&self.name, &item.shape, item.item_size(), (start, extents), out.len())?;
        copy_box(self.values.bytes(), &item.shape, item.item_size(), (start, extents), out)
            .map_err(|error| Error::new(self.name.as_str().into(), error.into()))
    }
}
