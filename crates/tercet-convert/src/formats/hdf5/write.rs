//! Writer of HDF5 and NetCDF-4 files, with the crate `hdf5-writer`.
//!
//! Dimensions are stored as NetCDF-4 does: a dimension scale each, to which the axes of datasets refer. The library keeps the whole file in
//! memory, so there is a limit.

use std::io::Write as _;
use std::path::Path;

use hdf5_writer::{
    AttributeBuilder, ByteOrder, CompoundField, DatasetBuilder, Datatype, EnumMember, FILTER_DEFLATE,
    FILTER_SHUFFLE, FilterDescription, Hdf5Builder, ReferenceType, StringEncoding, StringPadding, StringSize,
    UNLIMITED, VarLenKind, WriteOptions,
};
use tercet_core::publish::AtomicFile;
use tercet_core::{DType, Progress};
use tercet_tet::Compression;

use super::NON_COORDINATE;
use crate::arrays::sink::slabs;
use crate::arrays::source::refused;
use crate::arrays::{ArraySink, Attr, AttrData, Dim, Header, Kind, Values, Variable};
use crate::formats::unwind::guarded;
use crate::{Error, ErrorKind, chunking};

/// The values of a file, which are in memory up to three times.
const MAX_BYTES: u64 = 1 << 30;
/// The longest attribute that is stored in the header of its dataset.
const MAX_INLINE: usize = 60_000;
/// Smaller variables are not worth a chunk index.
const MIN_CHUNKED: u64 = 4096;
/// The deflate level: as fast as others, and nearly as small as the highest.
const DEFLATE_LEVEL: u32 = 4;

/// Writes an HDF5 or NetCDF-4 file.
#[derive(Debug)]
pub(crate) struct Hdf5Sink {
    file: AtomicFile,
    name: String,
    header: Header,
    is_netcdf: bool,
    is_compressed: bool,
    values: Vec<Content>,
}

#[derive(Clone, Debug)]
enum Content {
    None,
    Bytes(Vec<u8>),
    Strings(Vec<String>),
}

impl Hdf5Sink {
    /// Starts a file. `is_netcdf`: with the attribute by which others know a NetCDF-4 file.
    pub(crate) fn create(
        path: &Path,
        header: Header,
        compression: Compression,
        is_netcdf: bool,
        overwrite: bool,
    ) -> Result<Self, Error> {
        let name = path.to_string_lossy().into_owned();
        let error = |kind: ErrorKind| Error::new(name.as_str().into(), kind);
        if matches!(compression, Compression::Zstd { .. }) {
            return Err(refused(&name, "HDF5 files are compressed with deflate here, not with Zstandard"));
        }
        if header.bytes() > MAX_BYTES {
            let bytes = header.bytes();
            let detail = format!(
                "NetCDF-4 and HDF5 files are built in memory: the values have {bytes} bytes, and at most {MAX_BYTES} (1 GiB) are \
                 supported; .nc5 (NetCDF CDF-5) and .zarr files are written in any size"
            );
            return Err(refused(&name, detail));
        }
        let file = if overwrite { AtomicFile::create(path) } else { AtomicFile::create_new(path) };
        let file = file.map_err(|publish| error(publish.into()))?;
        let values = vec![Content::None; header.variables.len()];
        let is_compressed = compression != Compression::None;
        Ok(Self { file, name, header, is_netcdf, is_compressed, values })
    }

    /// The path of a dataset. A variable with the name of a dimension that is not its coordinate has another one.
    fn path(&self, variable: &Variable) -> String {
        let is_coordinate = variable.dims.len() == 1 && variable.dims[0] == variable.name;
        if is_coordinate || self.header.dim(&variable.name).is_none() {
            return variable.name.clone();
        }
        match variable.name.rsplit_once('/') {
            Some((group, name)) => format!("{group}/{NON_COORDINATE}{name}"),
            None => format!("{NON_COORDINATE}{}", variable.name),
        }
    }

    /// The datasets that refer to a dimension.
    fn references(&self, dim: &Dim) -> Option<AttributeBuilder> {
        let mut entries = Vec::new();
        for variable in &self.header.variables {
            let is_scale =
                variable.dims.len() == 1 && variable.name == dim.name && variable.dims[0] == dim.name;
            for (axis, _) in
                variable.dims.iter().enumerate().filter(|(_, name)| **name == dim.name && !is_scale)
            {
                entries.push((self.path(variable), u32::try_from(axis).unwrap_or(0)));
            }
        }
        (!entries.is_empty()).then(|| AttributeBuilder::object_reference_list("REFERENCE_LIST", entries))
    }

    fn scale_attributes(
        &self,
        mut dataset: DatasetBuilder,
        dim: &Dim,
        label: &str,
    ) -> Result<DatasetBuilder, hdf5_writer::Error> {
        let number = self.header.dims.iter().position(|found| found.name == dim.name).unwrap_or(0);
        dataset = dataset
            .attribute(AttributeBuilder::fixed_string("CLASS", "DIMENSION_SCALE"))
            .attribute(AttributeBuilder::fixed_string("NAME", label))
            .attribute(AttributeBuilder::scalar("_Netcdf4Dimid", i32::try_from(number).unwrap_or(0))?);
        Ok(match self.references(dim) {
            Some(references) => dataset.attribute(references),
            None => dataset,
        })
    }

    /// A dimension without a coordinate variable.
    fn dimension(&self, dim: &Dim) -> Result<DatasetBuilder, hdf5_writer::Error> {
        let zeros = vec![0; usize::try_from(dim.len).unwrap_or(0).saturating_mul(4)];
        let datatype = Datatype::FloatingPoint { size: 4, byte_order: ByteOrder::LittleEndian };
        let mut dataset = DatasetBuilder::new(&dim.name, datatype, vec![dim.len]).raw_data(zeros);
        if dim.unlimited {
            dataset = dataset.max_shape(vec![UNLIMITED]).chunked(vec![dim.len.clamp(1, 1024)]);
        }
        let label = format!("This is a netCDF dimension but not a netCDF variable.{:>10}", dim.len);
        self.scale_attributes(dataset, dim, &label)
    }

    fn dataset(&self, variable: &Variable, content: &Content) -> Result<DatasetBuilder, hdf5_writer::Error> {
        let path = self.path(variable);
        let is_unlimited = |dim: &String| self.header.dim(dim).is_some_and(|dim| dim.unlimited);
        let mut dataset = match content {
            Content::Strings(strings) => {
                DatasetBuilder::vlen_string_data(&path, variable.shape.clone(), strings)?
            }
            Content::Bytes(bytes) => {
                DatasetBuilder::new(&path, datatype(variable.kind), variable.shape.clone())
                    .raw_data(bytes.clone())
            }
            Content::None => DatasetBuilder::new(&path, datatype(variable.kind), variable.shape.clone()),
        };
        let can_grow = variable.dims.iter().any(is_unlimited);
        let is_large = variable.bytes() >= MIN_CHUNKED && self.is_compressed && variable.kind != Kind::String;
        if !variable.shape.is_empty() && (can_grow || is_large) {
            let chunk = variable.chunks.clone().unwrap_or_else(|| {
                chunking::default_chunk_shape(&variable.shape, variable.item_size().max(1))
            });
            dataset = dataset.chunked(chunk.into_iter().map(|extent| extent.max(1)).collect::<Vec<_>>());
            if can_grow {
                let most =
                    |(dim, extent): (&String, &u64)| if is_unlimited(dim) { UNLIMITED } else { *extent };
                dataset = dataset
                    .max_shape(variable.dims.iter().zip(&variable.shape).map(most).collect::<Vec<_>>());
            }
            if is_large {
                let filter =
                    |id: u16, client_data: Vec<u32>| FilterDescription { id, name: None, client_data };
                let size = u32::try_from(variable.item_size()).unwrap_or(1);
                if size > 1 {
                    dataset = dataset.filter(filter(FILTER_SHUFFLE, vec![size]));
                }
                dataset = dataset.filter(filter(FILTER_DEFLATE, vec![DEFLATE_LEVEL]));
            }
        }
        if let Some(AttrData::Numbers(fill)) = variable.attr("_FillValue")
            && Some(fill.dtype) == variable.dtype()
            && fill.len() == 1
        {
            dataset = dataset.fill_value(fill.bytes.clone());
        }
        let scale = self.header.dim(&variable.name).filter(|dim| variable.dims == [dim.name.clone()]);
        dataset = match scale {
            Some(dim) => {
                let label = dim.name.rsplit('/').next().unwrap_or_default();
                self.scale_attributes(dataset, dim, label)?
            }
            None if variable.dims.is_empty() => dataset.attribute(no_dimensions()),
            None => {
                let targets = variable.dims.iter().map(|dim| vec![dim.clone()]).collect();
                dataset.attribute(AttributeBuilder::vlen_object_references("DIMENSION_LIST", targets))
            }
        };
        for attr in &variable.attrs {
            dataset = dataset.attribute(attribute(&attr.name, &attr.value, self.is_netcdf)?);
        }
        Ok(dataset)
    }

    fn encode(&self) -> Result<Vec<u8>, hdf5_writer::Error> {
        let mut builder = Hdf5Builder::new();
        if self.is_netcdf {
            let version = format!("version=2,tercet={}", env!("CARGO_PKG_VERSION"));
            builder = builder.attribute(AttributeBuilder::fixed_string("_NCProperties", version));
        }
        let is_group = |path: &str| {
            let inside = |name: &str| name.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
            self.header.variables.iter().any(|variable| inside(&variable.name))
                || self.header.dims.iter().any(|dim| inside(&dim.name))
        };
        for Attr { name, value } in &self.header.attrs {
            builder = match name.rsplit_once('/').filter(|(group, _)| is_group(group)) {
                Some((group, name)) => {
                    builder.group_attribute(group, attribute(name, value, self.is_netcdf)?)
                }
                None => builder.attribute(attribute(name, value, self.is_netcdf)?),
            };
        }
        for dim in &self.header.dims {
            let coordinate = self.header.find(&dim.name).map(|found| &self.header.variables[found]);
            if coordinate.is_none_or(|variable| variable.dims != [dim.name.clone()]) {
                builder = builder.dataset(self.dimension(dim)?);
            }
        }
        for (variable, content) in self.header.variables.iter().zip(&self.values) {
            builder = builder.dataset(self.dataset(variable, content)?);
        }
        builder.into_plan()?.encode(WriteOptions::default())
    }
}

fn datatype(kind: Kind) -> Datatype {
    let byte_order = ByteOrder::LittleEndian;
    let integer = |size: u8, signed: bool| Datatype::FixedPoint { size, signed, byte_order };
    let float = |size: u8| Datatype::FloatingPoint { size, byte_order };
    let complex = |size: u8| {
        let field = |name: &str, byte_offset: u32| CompoundField {
            name: name.to_owned(),
            byte_offset,
            datatype: float(size),
        };
        Datatype::Compound { size: u32::from(size) * 2, fields: vec![field("r", 0), field("i", size.into())] }
    };
    match kind {
        Kind::String => Datatype::String {
            size: StringSize::Variable,
            encoding: StringEncoding::Utf8,
            padding: StringPadding::NullTerminate,
        },
        Kind::Char => Datatype::String {
            size: StringSize::Fixed(1),
            encoding: StringEncoding::Ascii,
            padding: StringPadding::NullTerminate,
        },
        Kind::Number(dtype) => match dtype {
            DType::Bool => {
                let member = |name: &str, value: u8| EnumMember { name: name.to_owned(), value: vec![value] };
                Datatype::Enum {
                    base: Box::new(integer(1, true)),
                    members: vec![member("FALSE", 0), member("TRUE", 1)],
                }
            }
            DType::F16 => float(2),
            DType::F32 => float(4),
            DType::F64 => float(8),
            DType::C64 => complex(4),
            DType::C128 => complex(8),
            DType::I8 => integer(1, true),
            DType::I16 => integer(2, true),
            DType::I32 => integer(4, true),
            DType::I64 => integer(8, true),
            DType::U16 => integer(2, false),
            DType::U32 => integer(4, false),
            DType::U64 => integer(8, false),
            _ => integer(1, false),
        },
    }
}

/// The list of dimensions of a scalar.
fn no_dimensions() -> AttributeBuilder {
    let reference = Datatype::Reference { ref_type: ReferenceType::Object, size: 8 };
    let list = Datatype::VarLen {
        base: Box::new(reference),
        kind: VarLenKind::Sequence,
        encoding: StringEncoding::Ascii,
        padding: StringPadding::NullTerminate,
    };
    AttributeBuilder::new("DIMENSION_LIST", list, vec![0], Vec::new())
}

fn attribute(name: &str, value: &AttrData, is_netcdf: bool) -> Result<AttributeBuilder, hdf5_writer::Error> {
    match value {
        AttrData::Text(text) if text.len() <= MAX_INLINE && !text.contains('\0') => {
            Ok(AttributeBuilder::fixed_string(name, text))
        }
        AttrData::Text(text) => AttributeBuilder::vlen_strings(name, &[text.as_str()]),
        AttrData::Strings(texts) => AttributeBuilder::vlen_strings(name, texts),
        AttrData::Numbers(numbers) => {
            // NetCDF-4 has no scalar attributes, only lists.
            let shape = if numbers.is_list || is_netcdf { vec![numbers.len() as u64] } else { Vec::new() };
            Ok(AttributeBuilder::new(
                name,
                datatype(Kind::Number(numbers.dtype)),
                shape,
                numbers.bytes.clone(),
            ))
        }
        AttrData::Json(_) => Ok(AttributeBuilder::fixed_string(name, value.to_text())),
    }
}

impl ArraySink for Hdf5Sink {
    fn write(&mut self, variable: usize, values: &Values<'_>, progress: &dyn Progress) -> Result<(), Error> {
        let item = &self.header.variables[variable];
        let size = item.item_size();
        let mut bytes = vec![0; usize::try_from(item.bytes()).unwrap_or(usize::MAX)];
        let mut rest = &mut bytes[..];
        for (start, extents) in slabs(&item.shape, size, values.source_chunks.as_deref()) {
            progress.check().map_err(|cancelled| Error::new(self.name.as_str().into(), cancelled.into()))?;
            let len = usize::try_from(extents.iter().product::<u64>() * size as u64).unwrap_or(usize::MAX);
            let (slab, after) = rest.split_at_mut(len.min(rest.len()));
            (values.fill)(&start, &extents, slab)?;
            progress.advance(len as u64);
            rest = after;
        }
        self.values[variable] = Content::Bytes(bytes);
        Ok(())
    }

    fn write_strings(&mut self, variable: usize, strings: &[String]) -> Result<(), Error> {
        self.values[variable] = Content::Strings(strings.to_vec());
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        let bytes =
            guarded(&self.name, || self.encode().map_err(|error| refused(&self.name, error.to_string())))?;
        self.values.clear();
        let error = |kind: ErrorKind| Error::new(self.name.as_str().into(), kind);
        self.file.write_all(&bytes).map_err(|io| error(io.into()))?;
        self.file.publish().map_err(|publish| error(publish.into()))?;
        Ok(())
    }
}
