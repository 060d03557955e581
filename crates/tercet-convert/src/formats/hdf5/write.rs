//! Writer of HDF5 and NetCDF-4 files, with the crate `hdf5-writer`.
//!
//! Dimensions are stored as NetCDF-4 does: a dimension scale each, to which the axes of datasets refer. The library encodes the
//! structure and the strings; values are written behind them, chunk by chunk, so that they may be larger than memory.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

use hdf5_writer::{
    AttributeBuilder, ByteOrder, CompoundField, DatasetBuilder, Datatype, EnumMember, FILTER_DEFLATE,
    FILTER_SHUFFLE, FilterDescription, Hdf5Builder, ReferenceType, StringEncoding, StringPadding, StringSize,
    UNLIMITED, VarLenKind, WriteOptions,
};
use rayon::prelude::*;
use tercet_codec::shuffle::shuffle;
use tercet_core::publish::AtomicFile;
use tercet_core::tensor::BoxCopy;
use tercet_core::{DType, Progress};
use tercet_tet::Compression;

use super::NON_COORDINATE;
use super::chunk_index::{self, StoredChunk};
use super::skeleton::Skeleton;
use crate::arrays::sink::slabs;
use crate::arrays::source::refused;
use crate::arrays::{ArraySink, Attr, AttrData, Dim, Header, Kind, Values, Variable};
use crate::formats::strided::strides;
use crate::formats::unwind::guarded;
use crate::{Error, ErrorKind, chunking};

/// The strings of a file, which are in memory several times.
const MAX_STRINGS: u64 = 1 << 30;
/// The values of the chunks that are compressed at a time.
const BATCH: u64 = 64 << 20;
/// The values of a chunk: its length has 32 bits.
const MAX_CHUNK: u64 = u32::MAX as u64 / 2;
/// Values start at multiples of this.
const ALIGNMENT: u64 = 8;
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
    layout: FileLayout,
    skeleton: Skeleton,
    /// The place of the header of each variable in the skeleton.
    headers: Vec<usize>,
    /// Where the next values are written.
    end: u64,
}

/// The structure of a file, for the library.
#[derive(Debug)]
struct FileLayout {
    header: Header,
    /// The strings of variables of strings.
    strings: Vec<Option<Vec<String>>>,
    is_netcdf: bool,
    is_compressed: bool,
}

impl Hdf5Sink {
    /// Starts a file. `is_netcdf`: with the attribute by which others know a NetCDF-4 file. `strings`: those of each variable of strings.
    pub(crate) fn create(
        path: &Path,
        header: Header,
        strings: Vec<Option<Vec<String>>>,
        compression: Compression,
        is_netcdf: bool,
        overwrite: bool,
    ) -> Result<Self, Error> {
        let name = path.to_string_lossy().into_owned();
        let error = |kind: ErrorKind| Error::new(name.as_str().into(), kind);
        if matches!(compression, Compression::Zstd { .. }) {
            return Err(refused(&name, "HDF5 files are compressed with deflate here, not with Zstandard"));
        }
        let texts = strings.iter().flatten().flatten();
        let total = texts.fold(0u64, |total, text| total.saturating_add(text.len() as u64 + 16));
        if total > MAX_STRINGS {
            let detail =
                format!("its strings need {total} bytes; at most {MAX_STRINGS} are written to HDF5 files");
            return Err(refused(&name, detail));
        }
        for variable in &header.variables {
            let size = variable.item_size().max(1) as u64;
            let chunk = variable.chunks.iter().flatten();
            let bytes = chunk.fold(size, |bytes, extent| bytes.saturating_mul(*extent));
            if bytes > MAX_CHUNK {
                let detail =
                    format!("a chunk of `{}` has {bytes} bytes; HDF5 allows {MAX_CHUNK}", variable.name);
                return Err(refused(&name, detail));
            }
        }
        let is_compressed = compression != Compression::None;
        let layout = FileLayout { header, strings, is_netcdf, is_compressed };
        let (skeleton, headers) = guarded(&name, || {
            let bytes = layout.encode().map_err(|error| refused(&name, error.to_string()))?;
            let mut skeleton = Skeleton { bytes };
            let paths: Vec<String> = layout.header.variables.iter().map(|item| layout.path(item)).collect();
            let unexpected = |reason: String| refused(&name, format!("cannot write HDF5: {reason}"));
            let headers = skeleton.headers(&paths).map_err(unexpected)?;
            // The values of a dimension without coordinates are not stored.
            let dims: Vec<&Dim> = layout.plain_dims().collect();
            let paths: Vec<String> = dims.iter().map(|dim| dim.name.clone()).collect();
            for (header, dim) in skeleton.headers(&paths).map_err(unexpected)?.into_iter().zip(dims) {
                skeleton.set_unwritten(header, dim.len.saturating_mul(4)).map_err(unexpected)?;
            }
            Ok((skeleton, headers))
        })?;
        let file = if overwrite { AtomicFile::create(path) } else { AtomicFile::create_new(path) };
        let file = file.map_err(|publish| error(publish.into()))?;
        let end = (skeleton.bytes.len() as u64).next_multiple_of(ALIGNMENT);
        Ok(Self { file, name, layout, skeleton, headers, end })
    }

    fn put(&mut self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let written = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.write_all(bytes));
        written.map_err(|io| Error::new(self.name.as_str().into(), io.into()))
    }

    /// Writes bytes at the end and returns where they are.
    fn append(&mut self, bytes: &[u8]) -> Result<u64, Error> {
        let at = self.end;
        self.put(at, bytes)?;
        self.end = (at + bytes.len() as u64).next_multiple_of(ALIGNMENT);
        Ok(at)
    }

    fn set_layout(&mut self, variable: usize, address: u64, len: u64) -> Result<(), Error> {
        let set = self.skeleton.set_layout(self.headers[variable], address, len);
        set.map_err(|reason| refused(&self.name, format!("cannot write HDF5: {reason}")))
    }

    /// Writes the values in one piece.
    fn write_contiguous(
        &mut self,
        variable: usize,
        values: &Values<'_>,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let item = &self.layout.header.variables[variable];
        let (shape, size, total) = (item.shape.clone(), item.item_size(), item.bytes());
        let begin = self.end;
        let mut at = begin;
        let mut buffer = Vec::new();
        for (start, extents) in slabs(&shape, size, values.source_chunks.as_deref()) {
            progress.check().map_err(|cancelled| Error::new(self.name.as_str().into(), cancelled.into()))?;
            let len = extents.iter().product::<u64>() * size as u64;
            buffer.clear();
            buffer.resize(usize::try_from(len).unwrap_or(usize::MAX), 0);
            (values.fill)(&start, &extents, &mut buffer)?;
            self.put(at, &buffer)?;
            at += len;
            progress.advance(len);
        }
        self.end = at.next_multiple_of(ALIGNMENT);
        self.set_layout(variable, begin, total)
    }

    /// Writes the values chunk by chunk. Chunks are compressed in parallel and stored in order, so that the file does not depend on the
    /// number of threads.
    fn write_chunks(
        &mut self,
        variable: usize,
        chunk: &[u64],
        values: &Values<'_>,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let item = self.layout.header.variables[variable].clone();
        let encoder = ChunkEncoder {
            size: item.item_size(),
            shape: chunk,
            fill: fill_value(&item).unwrap_or_default(),
            is_compressed: self.layout.is_filtered(&item),
        };
        let bytes = chunk.iter().product::<u64>() * encoder.size as u64;
        let batch = (BATCH / bytes.max(1)).clamp(1, 4096);
        let mut chunks = Vec::new();
        let name = self.name.clone();
        values.each_block(&item.shape, encoder.size, chunk, &mut |part, read| {
            let mut first = 0;
            while first < part.len() {
                let next = part.len().min(first + batch);
                let encoded: Vec<(Vec<u64>, Vec<u8>)> = (first..next)
                    .into_par_iter()
                    .map(|number| {
                        progress
                            .check()
                            .map_err(|cancelled| Error::new(name.as_str().into(), cancelled.into()))?;
                        let (start, extents) = part.window(&part.coords(number));
                        let len = extents.iter().product::<u64>() * encoder.size as u64;
                        let mut values = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
                        read(&start, &extents, &mut values)?;
                        progress.advance(len);
                        let stored = encoder.encode(values, &extents);
                        Ok((start, stored.map_err(|reason| refused(&name, reason))?))
                    })
                    .collect::<Result<_, Error>>()?;
                for (start, stored) in encoded {
                    let len =
                        u32::try_from(stored.len()).map_err(|_| refused(&name, "a chunk is too large"))?;
                    chunks.push(StoredChunk { address: self.append(&stored)?, len, start });
                }
                first = next;
            }
            Ok(())
        })?;
        // Blocks may come in another order than that of the index.
        chunks.sort_by(|left, right| left.start.cmp(&right.start));
        let (nodes, root) = chunk_index::encode(&chunks, chunk, self.end);
        self.append(&nodes)?;
        self.set_layout(variable, root, 0)
    }
}

/// Encodes chunks.
struct ChunkEncoder<'a> {
    size: usize,
    shape: &'a [u64],
    /// The value of elements outside of the array; zeros if it is empty.
    fill: Vec<u8>,
    is_compressed: bool,
}

impl ChunkEncoder<'_> {
    /// Chunks are stored whole, also at the edge.
    fn encode(&self, values: Vec<u8>, extents: &[u64]) -> Result<Vec<u8>, String> {
        let mut bytes = values;
        if extents != self.shape {
            let elements = self.shape.iter().product::<u64>();
            let elements = usize::try_from(elements).map_err(|error| error.to_string())?;
            let mut whole =
                if self.fill.is_empty() { vec![0; elements * self.size] } else { self.fill.repeat(elements) };
            let counts: Vec<usize> =
                extents.iter().map(|extent| usize::try_from(*extent).unwrap_or(0)).collect();
            let (from, to) = (strides(extents, self.size), strides(self.shape, self.size));
            BoxCopy::new(self.size, &counts, (0, &from), (0, &to))
                .run(&bytes, &mut whole)
                .map_err(|error| error.to_string())?;
            bytes = whole;
        }
        if !self.is_compressed {
            return Ok(bytes);
        }
        if self.size > 1 {
            let mut planes = vec![0; bytes.len()];
            shuffle(&bytes, self.size, &mut planes).map_err(|error| error.to_string())?;
            bytes = planes;
        }
        let level = flate2::Compression::new(DEFLATE_LEVEL);
        let mut deflate = flate2::write::ZlibEncoder::new(Vec::new(), level);
        deflate.write_all(&bytes).and_then(|()| deflate.finish()).map_err(|error| error.to_string())
    }
}

/// The fill value of a variable, if it has one of its type.
fn fill_value(variable: &Variable) -> Option<Vec<u8>> {
    match variable.attr("_FillValue") {
        Some(AttrData::Numbers(fill)) if Some(fill.dtype) == variable.dtype() && fill.len() == 1 => {
            Some(fill.bytes.clone())
        }
        _ => None,
    }
}

impl FileLayout {
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
        let datatype = Datatype::FloatingPoint { size: 4, byte_order: ByteOrder::LittleEndian };
        let mut dataset = DatasetBuilder::new(&dim.name, datatype, vec![dim.len]).fill_value(vec![0; 4]);
        if dim.unlimited {
            dataset = dataset.max_shape(vec![UNLIMITED]).chunked(vec![dim.len.clamp(1, 1024)]);
        }
        let label = format!("This is a netCDF dimension but not a netCDF variable.{:>10}", dim.len);
        self.scale_attributes(dataset, dim, &label)
    }

    /// The dimensions without a coordinate variable.
    fn plain_dims(&self) -> impl Iterator<Item = &Dim> {
        let has_coordinate = |dim: &Dim| {
            let found = self.header.find(&dim.name).map(|found| &self.header.variables[found]);
            found.is_some_and(|variable| variable.dims == [dim.name.clone()])
        };
        self.header.dims.iter().filter(move |dim| !has_coordinate(dim))
    }

    fn is_unlimited(&self, dim: &str) -> bool {
        self.header.dim(dim).is_some_and(|dim| dim.unlimited)
    }

    /// Whether chunks are compressed.
    fn is_filtered(&self, variable: &Variable) -> bool {
        variable.bytes() >= MIN_CHUNKED && self.is_compressed && variable.kind != Kind::String
    }

    /// The chunk shape; `None` for contiguous values. A chunk is not larger than a dimension that cannot grow.
    fn chunk_shape(&self, variable: &Variable) -> Option<Vec<u64>> {
        let can_grow = variable.dims.iter().any(|dim| self.is_unlimited(dim));
        if variable.shape.is_empty() || !(can_grow || self.is_filtered(variable)) {
            return None;
        }
        let chunk = variable
            .chunks
            .clone()
            .unwrap_or_else(|| chunking::default_chunk_shape(&variable.shape, variable.item_size().max(1)));
        let fits = |((chunk, extent), dim): ((u64, &u64), &String)| {
            let most = if self.is_unlimited(dim) { u64::from(u32::MAX) } else { (*extent).max(1) };
            chunk.clamp(1, most)
        };
        Some(chunk.into_iter().zip(&variable.shape).zip(&variable.dims).map(fits).collect())
    }

    fn dataset(
        &self,
        variable: &Variable,
        strings: Option<&Vec<String>>,
    ) -> Result<DatasetBuilder, hdf5_writer::Error> {
        let path = self.path(variable);
        let mut dataset = if let Some(strings) = strings {
            DatasetBuilder::vlen_string_data(&path, variable.shape.clone(), strings)?
        } else {
            // Without a fill value the library asks for the values.
            let fill = fill_value(variable).unwrap_or_else(|| vec![0; variable.item_size()]);
            DatasetBuilder::new(&path, datatype(variable.kind), variable.shape.clone()).fill_value(fill)
        };
        if let Some(chunk) = self.chunk_shape(variable) {
            dataset = dataset.chunked(chunk);
            if variable.dims.iter().any(|dim| self.is_unlimited(dim)) {
                let most = |(dim, extent): (&String, &u64)| {
                    if self.is_unlimited(dim) { UNLIMITED } else { *extent }
                };
                dataset = dataset
                    .max_shape(variable.dims.iter().zip(&variable.shape).map(most).collect::<Vec<_>>());
            }
            if self.is_filtered(variable) {
                let filter =
                    |id: u16, client_data: Vec<u32>| FilterDescription { id, name: None, client_data };
                let size = u32::try_from(variable.item_size()).unwrap_or(1);
                if size > 1 {
                    dataset = dataset.filter(filter(FILTER_SHUFFLE, vec![size]));
                }
                dataset = dataset.filter(filter(FILTER_DEFLATE, vec![DEFLATE_LEVEL]));
            }
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
        for Attr { name, value } in &self.header.attrs {
            let is_path =
                |group: &str| group.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
            builder = match name.rsplit_once('/').filter(|(group, name)| is_path(group) && !name.is_empty()) {
                Some((group, name)) => {
                    builder.group_attribute(group, attribute(name, value, self.is_netcdf)?)
                }
                None => builder.attribute(attribute(name, value, self.is_netcdf)?),
            };
        }
        for dim in self.plain_dims() {
            builder = builder.dataset(self.dimension(dim)?);
        }
        for (number, variable) in self.header.variables.iter().enumerate() {
            let strings = self.strings.get(number).and_then(Option::as_ref);
            builder = builder.dataset(self.dataset(variable, strings)?);
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
        let item = &self.layout.header.variables[variable];
        if item.bytes() == 0 {
            return Ok(());
        }
        match self.layout.chunk_shape(item) {
            Some(chunk) => self.write_chunks(variable, &chunk, values, progress),
            None => self.write_contiguous(variable, values, progress),
        }
    }

    fn write_strings(&mut self, _variable: usize, _strings: &[String]) -> Result<(), Error> {
        // They are part of the skeleton.
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        let end = self.end;
        let set = self.skeleton.set_len(end);
        set.map_err(|reason| refused(&self.name, format!("cannot write HDF5: {reason}")))?;
        let bytes = std::mem::take(&mut self.skeleton.bytes);
        self.put(0, &bytes)?;
        let error = |publish: tercet_core::publish::PublishError| {
            Error::new(self.name.as_str().into(), publish.into())
        };
        self.file.set_len(end).map_err(error)?;
        self.file.publish().map_err(error)?;
        Ok(())
    }
}
