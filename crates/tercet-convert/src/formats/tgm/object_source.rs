//! One object of a message as a source.

use tercet_core::Tensor;
use tercet_tgm::{File, GlobalMetadata, Value};

use super::keys;
use super::read::{Contents, coordinate_kind, coordinates};
use crate::Error;
use crate::arrays::dims::DimTable;
use crate::arrays::source::{check_box, refused};
use crate::arrays::{ArraySource, Attr, Header, Kind, Variable};
use crate::formats::strided::copy_box;

/// Values of an object, or of several that are stacked, with the metadata as attributes.
#[derive(Debug)]
pub struct ObjectSource {
    name: String,
    header: Header,
    values: Tensor,
    /// The coordinates of the first axis.
    coordinates: Option<Contents>,
}

impl ObjectSource {
    /// Decodes an object.
    pub(crate) fn open(file: &File, message: u64, object: u64) -> Result<Self, Error> {
        let found = file.message(message)?;
        let values = found.object(object)?.decode()?;
        Ok(Self::new(file.name(), found.metadata(), object, values))
    }

    /// Values of an object, or a part of them; `file` is for errors.
    pub fn new(file: &str, metadata: &GlobalMetadata, object: u64, values: Tensor) -> Self {
        let found = super::object_keys(metadata, object);
        Self::with_axis(file, super::object_name(metadata, object), &found, None, values)
    }

    /// Values of several objects along a new first axis: it has the name of a metadata key, and its values as coordinates. The
    /// attributes are the keys that all objects share.
    pub fn stacked(
        file: &str,
        objects: &[(&GlobalMetadata, u64)],
        key: &str,
        axis: &[Value],
        values: Tensor,
    ) -> Self {
        let mut all = objects.iter().map(|(metadata, object)| super::object_keys(metadata, *object));
        let mut shared = all.next().unwrap_or_default();
        for other in all {
            shared.retain(|(key, value)| {
                other.iter().any(|(found, other)| found == key && super::read::same(value, other))
            });
        }
        shared.retain(|(found, _)| found != key);
        let name = objects.first().map(|(metadata, object)| super::object_name(metadata, *object));
        Self::with_axis(file, name.unwrap_or_default(), &shared, Some((key, axis)), values)
    }

    fn with_axis(
        file: &str,
        name: String,
        found: &[(String, Value)],
        axis: Option<(&str, &[Value])>,
        values: Tensor,
    ) -> Self {
        let shape = values.shape().to_vec();
        let outer = usize::from(axis.is_some());
        let label = axis.map(|(key, _)| keys::last(key));
        let inner = ["dims", "dim_names", "dimensions"].iter().find_map(|key| {
            let (_, value) = found.iter().find(|(found, _)| found == key)?;
            value.as_array().filter(|names| names.len() + outer == shape.len())
        });
        let inner = inner.unwrap_or_default().iter().map(Value::as_text);
        let names: Vec<Option<&str>> = label.as_deref().into_iter().map(Some).chain(inner).collect();
        let mut dims = DimTable::new();
        let names = dims.resolve(&name, &names, &shape);
        let attrs = found.iter().map(|(key, value)| Attr::new(key.clone(), keys::attribute(value))).collect();
        let kind = Kind::Number(values.dtype());
        let mut variables = Vec::new();
        let mut stored = None;
        if let (Some((_, values)), Some(dim)) = (axis, names.first()) {
            let kind = coordinate_kind(values);
            stored = coordinates(values, kind);
            let shape = vec![values.len() as u64];
            let (name, dims) = (dim.clone(), vec![dim.clone()]);
            variables.push(Variable { name, kind, dims, shape, chunks: None, attrs: Vec::new() });
            if stored.is_none() {
                variables.clear();
            }
        }
        variables.insert(0, Variable { name, kind, dims: names, shape, chunks: None, attrs });
        let header = Header {
            format: "Tensogram .tgm".to_owned(),
            dims: dims.into_dims(|_| false),
            variables,
            ..Header::default()
        };
        Self { name: file.to_owned(), header, values, coordinates: stored }
    }
}

impl ArraySource for ObjectSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn read_box(&self, variable: usize, start: &[u64], extents: &[u64], out: &mut [u8]) -> Result<(), Error> {
        let item = &self.header.variables[variable];
        check_box(&self.name, &item.shape, item.item_size(), (start, extents), out.len())?;
        let bytes = match (variable, &self.coordinates) {
            (0, _) => self.values.bytes(),
            (_, Some(Contents::Bytes(bytes))) => bytes,
            _ => return Err(refused(&self.name, format!("variable `{}` contains strings", item.name))),
        };
        copy_box(bytes, &item.shape, item.item_size(), (start, extents), out)
            .map_err(|error| Error::new(self.name.as_str().into(), error.into()))
    }

    fn read_strings(&self, variable: usize) -> Result<Vec<String>, Error> {
        match &self.coordinates {
            Some(Contents::Strings(strings)) if variable > 0 => Ok(strings.clone()),
            _ => Err(refused(&self.name, "the variable contains no strings")),
        }
    }
}
