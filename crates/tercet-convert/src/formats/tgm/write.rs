//! `.tgm` files as a sink of variables.
//!
//! Fields are encoded as they arrive, variable by variable, and kept in a temporary file; messages are assembled in their order when all
//! coordinates and keys are known.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use serde_json::Value as Json;
use tercet_core::{DType, Progress};
use tercet_tet::Compression;
use tercet_tgm::{
    Compression as Codec, DataObjectDescriptor, EncodeOptions, Entry, GlobalMetadata, Message, Pipeline,
    PreEncoded, Value, Writer, WriterOptions, encode_message, encode_pre_encoded,
};

use super::keys::{self, Keys};
use super::mars;
use super::read::{DESCRIPTOR, same};
use super::special::{self, Axis, Special};
use super::{EXTRA, KEYS, ORDER, RECORD};
use crate::arrays::source::refused;
use crate::arrays::{
    ArraySink, Attr, AttrData, Header, Kind, Number, Values, Variable, as_text, number_at, place_of,
};
use crate::formats::grib::is_level_name;
use crate::{Error, ErrorKind};

/// How variables are divided into messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Split {
    /// One message per position of the dimensions of time, step, member and level: one field of GRIB files.
    #[default]
    Auto,
    /// One message per position of these dimensions. They are the first of their variables.
    Axes(Vec<String>),
    /// One message per variable.
    Variable,
    /// One message with all variables.
    File,
}

/// Dimensions that are divided by default.
const AXES: [&str; 26] = [
    "time",
    "valid_time",
    "date",
    "forecast_reference_time",
    "step",
    "hour",
    "number",
    "member",
    "ensemble",
    "realization",
    "level",
    "lev",
    "levelist",
    "plev",
    "pressure",
    "pressure_level",
    "model_level",
    "isobaricInhPa",
    "isobaric",
    "height",
    "heightAboveGround",
    "depth",
    "altitude",
    "month",
    "year",
    "day",
];

/// The largest coordinate or companion variable that is kept in memory.
const MAX_KEPT_BYTES: u64 = 1 << 30;

/// Writes a `.tgm` file.
#[derive(Debug)]
pub(crate) struct TgmSink {
    writer: Writer,
    name: String,
    header: Header,
    roles: Vec<Role>,
    split: Split,
    compression: Compression,
    /// The maximum error of each variable.
    max_error: Vec<Option<f64>>,
    spool: std::fs::File,
    spooled: u64,
    fields: Vec<Spooled>,
    /// Values of coordinates and companions, by variable.
    kept: BTreeMap<usize, Kept>,
    /// Values of scalars, by variable.
    scalars: BTreeMap<usize, f64>,
    /// Whether the positions of a dimension are recorded, by dimension.
    indexed: RefCell<HashMap<String, bool>>,
}

/// An encoded object in the temporary file.
#[derive(Debug)]
struct Spooled {
    variable: usize,
    position: u64,
    start: u64,
    len: u64,
    masked: bool,
}

#[derive(Debug)]
enum Kept {
    Bytes(Vec<u8>),
    Strings(Vec<String>),
}

/// What becomes of a variable.
#[derive(Clone, Debug)]
enum Role {
    /// Objects, one per position of the first `outer` dimensions.
    Data { outer: usize, record: Option<Json> },
    /// An object that messages repeat.
    Repeated(Json),
    /// Coordinates of a dimension that messages are divided along, or a companion of another variable.
    Kept,
}

/// The record of a variable or the file. Formats without JSON attributes store it as a string.
fn record(attrs: &[Attr]) -> Option<Json> {
    let found = attrs.iter().find(|attr| attr.name == RECORD)?;
    let parsed = match &found.value {
        AttrData::Json(json) => Some(json.clone()),
        AttrData::Text(text) => serde_json::from_str(text).ok(),
        _ => None,
    };
    parsed.filter(Json::is_object)
}

/// Whether an attribute of another format is a key of its own, so that other programs see it.
pub(super) fn is_visible(name: &str, axes: &[Axis]) -> bool {
    name != "name"
        && name != special::KEY
        && !name.contains(['.', '\\'])
        && !axes.iter().any(|axis| axis.name == name)
}

impl TgmSink {
    pub(crate) fn create(
        path: &Path,
        header: Header,
        split: Split,
        compression: Compression,
        max_error: Vec<Option<f64>>,
        overwrite: bool,
    ) -> Result<Self, Error> {
        let name = path.to_string_lossy().into_owned();
        let roles = roles(&header, &split, &name)?;
        let spool = tempfile::tempfile_in(
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")),
        )
        .map_err(|error| Error::new(name.as_str().into(), ErrorKind::from(error)))?;
        let writer = Writer::create(path, WriterOptions::new().with_overwrite(overwrite))?;
        Ok(Self {
            writer,
            name,
            header,
            roles,
            split,
            compression,
            max_error,
            spool,
            spooled: 0,
            fields: Vec::new(),
            kept: BTreeMap::new(),
            scalars: BTreeMap::new(),
            indexed: RefCell::default(),
        })
    }

    fn io<T>(&self, result: std::io::Result<T>) -> Result<T, Error> {
        result.map_err(|error| Error::new(self.name.as_str().into(), ErrorKind::from(error)))
    }

    /// Encodes an object and adds it to the temporary file.
    fn spool(
        &mut self,
        variable: usize,
        position: u64,
        descriptor: &DataObjectDescriptor,
        bytes: &mut [u8],
    ) -> Result<(), Error> {
        let item = &self.header.variables[variable];
        let masked = item.dtype().is_some_and(|dtype| mask(dtype, item, bytes));
        let options = EncodeOptions::new()
            .with_allowed(true, true)
            .with_max_error(self.max_error.get(variable).copied().flatten());
        let message = encode_message(&GlobalMetadata::default(), &[(descriptor, bytes)], &options)
            .map_err(|error| Error::new(self.name.as_str().into(), ErrorKind::Tgm(error.into_kind())))?;
        self.add(variable, position, &message, masked)
    }

    /// Adds an encoded object to the temporary file.
    fn add(&mut self, variable: usize, position: u64, message: &[u8], masked: bool) -> Result<(), Error> {
        let (start, len) = (self.spooled, message.len() as u64);
        let written = self.spool.write_all(message);
        self.io(written)?;
        self.spooled += len;
        self.fields.push(Spooled { variable, position, start, len, masked });
        Ok(())
    }

    /// Adds the Zstandard frames of an object to the temporary file. Values that need a mask are encoded again.
    fn carry(
        &mut self,
        variable: usize,
        position: u64,
        descriptor: &DataObjectDescriptor,
        frames: &[u8],
        buffer: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        let item = &self.header.variables[variable];
        let len = buffer.len();
        let decoded = tercet_codec::bytes::zstd::decode_new(frames, len, buffer);
        let is_finite = |element: &[u8]| !matches!(number_at(descriptor.dtype, element), Some(Number::Float(value)) if !value.is_finite());
        let size = item.item_size();
        let can_have_mask =
            descriptor.dtype.is_float() || matches!(descriptor.dtype, DType::C64 | DType::C128);
        if decoded.is_err() || can_have_mask && !buffer.chunks_exact(size).all(is_finite) {
            buffer.resize(len, 0);
            return Ok(false);
        }
        if mask(descriptor.dtype, item, buffer) {
            return Ok(false);
        }
        let object = PreEncoded { descriptor, payload: frames };
        let options = EncodeOptions::new();
        let message = encode_pre_encoded(&GlobalMetadata::default(), &[object], &options)
            .map_err(|error| Error::new(self.name.as_str().into(), ErrorKind::Tgm(error.into_kind())))?;
        self.add(variable, position, &message, false)?;
        Ok(true)
    }

    /// The descriptor of objects whose payload is Zstandard frames of the values; `None` if the pipeline of the objects is another one.
    fn zstd_descriptor(&self, variable: usize, dtype: DType, shape: &[u64]) -> Option<DataObjectDescriptor> {
        if matches!(dtype, DType::C64 | DType::C128) {
            return None;
        }
        let stored = self
            .pipeline(variable)
            .and_then(|pipeline| lossless(DataObjectDescriptor::new(dtype, shape), pipeline));
        match stored {
            Some(stored) => (stored.filter == "none" && stored.compression == "zstd").then_some(stored),
            None => Pipeline::builder()
                .with_compression(Codec::Zstd { level: None })
                .apply(DataObjectDescriptor::new(dtype, shape))
                .ok(),
        }
    }

    /// The pipeline that objects of a variable had.
    fn pipeline(&self, variable: usize) -> Option<&Json> {
        let record = match &self.roles[variable] {
            Role::Data { record, .. } => record.as_ref(),
            Role::Repeated(record) => Some(record),
            Role::Kept => None,
        };
        record.and_then(|record| record.get("pipeline")).filter(|_| self.compression == Compression::Auto)
    }

    /// The descriptor of the objects of a variable.
    fn descriptor(
        &self,
        variable: usize,
        dtype: DType,
        shape: &[u64],
    ) -> Result<DataObjectDescriptor, Error> {
        let plain = DataObjectDescriptor::new(dtype, shape);
        if self.max_error.get(variable).copied().flatten().is_some() {
            return Ok(plain);
        }
        if let Some(pipeline) = self.pipeline(variable)
            && let Some(descriptor) = lossless(plain.clone(), pipeline)
        {
            return Ok(descriptor);
        }
        let size = dtype.size().unwrap_or(1);
        let bytes = shape.iter().fold(size as u64, |bytes, extent| bytes.saturating_mul(*extent));
        let level = match self.compression {
            Compression::None => return Ok(plain),
            Compression::Auto if bytes < 512 => return Ok(plain),
            Compression::Auto => None,
            Compression::Zstd { level } => Some(level),
        };
        let builder = Pipeline::builder().with_shuffle(size > 1).with_compression(Codec::Zstd { level });
        builder.apply(plain).map_err(|error| refused(&self.name, error.to_string()))
    }
}

/// The stored pipeline, if it keeps every value.
fn lossless(mut descriptor: DataObjectDescriptor, pipeline: &Json) -> Option<DataObjectDescriptor> {
    let text = |key: &str| pipeline.get(key).and_then(Json::as_str);
    let compression = text("compression")?;
    if text("encoding")? != "none" || !["none", "zstd", "lz4", "szip", "blosc2"].contains(&compression) {
        return None;
    }
    descriptor = descriptor.with_filter(text("filter")?).with_compression(compression);
    for (key, value) in pipeline.as_object()? {
        if !["encoding", "filter", "compression"].contains(&key.as_str()) {
            descriptor = descriptor.with_param(key, Value::from_json(value));
        }
    }
    Some(descriptor)
}

/// The roles of all variables.
fn roles(header: &Header, split: &Split, name: &str) -> Result<Vec<Role>, Error> {
    let mut roles: Vec<Role> = Vec::new();
    for variable in &header.variables {
        let record = record(&variable.attrs);
        if let Some(record) = &record
            && record.get("repeated").is_some_and(Json::is_array)
            && variable.shape.len() == 1
        {
            roles.push(Role::Repeated(record.clone()));
            continue;
        }
        let axes =
            record.as_ref().and_then(|record| record.get("axes")).and_then(Json::as_array).map(Vec::len);
        let outer = match axes {
            Some(axes) if axes <= variable.shape.len() => axes,
            _ => outer_axes(variable, split, name)?,
        };
        let record = record.filter(|_| axes.is_some_and(|axes| axes <= variable.shape.len()));
        roles.push(Role::Data { outer, record });
    }
    // Coordinates of divided dimensions and companions are not objects.
    let mut kept: Vec<String> = Vec::new();
    for (variable, role) in header.variables.iter().zip(&roles) {
        let Role::Data { outer, record } = role else { continue };
        kept.extend(variable.dims[..*outer].iter().cloned());
        if record.is_some() {
            kept.extend([ORDER, KEYS].map(|suffix| format!("{}{suffix}", variable.name)));
        }
    }
    for (variable, role) in header.variables.iter().zip(&mut roles) {
        let is_coordinate = coordinate_rank(variable).is_some()
            || variable.name.ends_with(ORDER)
            || variable.name.ends_with(KEYS);
        let has_record = matches!(role, Role::Data { record: Some(_), .. });
        if is_coordinate && !has_record && kept.contains(&variable.name) {
            *role = Role::Kept;
        }
    }
    Ok(roles)
}

/// The number of axes of coordinates: one, or two for characters.
fn coordinate_rank(variable: &Variable) -> Option<usize> {
    let is_first = variable.dims.first() == Some(&variable.name);
    match (variable.kind, variable.dims.len()) {
        (Kind::Char, 2) if is_first => Some(2),
        (Kind::Number(_) | Kind::String, 1) if is_first => Some(1),
        _ => None,
    }
}

/// The number of first dimensions that messages are divided along.
fn outer_axes(variable: &Variable, split: &Split, name: &str) -> Result<usize, Error> {
    // A coordinate is one object.
    if coordinate_rank(variable).is_some() {
        return Ok(0);
    }
    let text_axes = usize::from(matches!(variable.kind, Kind::Char));
    let most = variable.dims.len().saturating_sub(text_axes);
    match split {
        Split::Auto if matches!(variable.kind, Kind::Number(_)) => {
            // Something is left for the object.
            let outer = variable.dims.iter().take_while(|dim| is_divided(variable, last_name(dim))).count();
            Ok(outer.min(most.saturating_sub(1)))
        }
        Split::Auto | Split::File | Split::Variable => Ok(0),
        Split::Axes(axes) => {
            if variable.kind == Kind::String {
                return Ok(0);
            }
            let outer = variable.dims[..most].iter().take_while(|dim| axes.contains(dim)).count();
            if let Some(inner) = variable.dims[outer..].iter().find(|dim| axes.contains(dim)) {
                return Err(refused(
                    name,
                    format!(
                        "`{inner}` is not the first dimension of `{}`, so messages cannot be split along it",
                        variable.name
                    ),
                ));
            }
            Ok(outer)
        }
    }
}

/// Whether a dimension is divided by default: one of [`AXES`], also if a number makes its name unique; in a variable from GRIB also those of its
/// levels and of fields whose keys do not vary independently.
fn is_divided(variable: &Variable, dim: &str) -> bool {
    let is_grib = variable.attr("GRIB_typeOfLevel").is_some();
    let is_known = |name: &str| AXES.contains(&name) || is_grib && (name == "field" || is_level_name(name));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_known(dim) || dim.rsplit_once('_').is_some_and(|(name, number)| is_number(number) && is_known(name))
}

fn last_name(dim: &str) -> &str {
    dim.rsplit('/').next().unwrap_or(dim)
}

/// Whether an element is NaN.
pub(super) fn is_nan(dtype: DType, element: &[u8]) -> bool {
    matches!(number_at(dtype, element), Some(Number::Float(value)) if value.is_nan())
}

/// Replaces elements.
pub(super) fn replace(dtype: DType, bytes: &mut [u8], is_replaced: impl Fn(DType, &[u8]) -> bool, by: &[u8]) {
    for element in bytes.chunks_exact_mut(dtype.size().unwrap_or(1)) {
        if is_replaced(dtype, element) {
            element.copy_from_slice(by);
        }
    }
}

/// Replaces the fill value of floats by NaN, which is stored as a mask. A field that has both is not changed.
fn mask(dtype: DType, variable: &Variable, bytes: &mut [u8]) -> bool {
    let nan = match dtype {
        DType::F32 => f32::NAN.to_le_bytes().to_vec(),
        DType::F64 => f64::NAN.to_le_bytes().to_vec(),
        _ => return false,
    };
    let Some(AttrData::Numbers(numbers)) = variable.attr("_FillValue") else { return false };
    if numbers.dtype != dtype || numbers.len() != 1 || is_nan(dtype, &numbers.bytes) {
        return false;
    }
    if record(&variable.attrs).is_some() {
        return false;
    }
    let size = nan.len();
    let is_fill = |element: &[u8]| element == numbers.bytes;
    let has_fill = bytes.chunks_exact(size).any(is_fill);
    if !has_fill || bytes.chunks_exact(size).any(|element| is_nan(dtype, element)) {
        return false;
    }
    replace(dtype, bytes, |_, element| is_fill(element), &nan);
    true
}

impl ArraySink for TgmSink {
    fn write(&mut self, variable: usize, values: &Values<'_>, progress: &dyn Progress) -> Result<(), Error> {
        let item = self.header.variables[variable].clone();
        let cancelled = |cancelled| Error::new(self.name.as_str().into(), ErrorKind::from(cancelled));
        progress.check().map_err(cancelled)?;
        let (size, dtype) = (item.item_size(), item.dtype().unwrap_or(DType::U8));
        let outer = match self.roles[variable] {
            Role::Data { outer, .. } => outer,
            Role::Repeated(_) => 0,
            Role::Kept => {
                let len =
                    tercet_core::limits::check_limit("coordinates in memory", item.bytes(), MAX_KEPT_BYTES)
                        .map_err(|limit| Error::new(self.name.as_str().into(), limit.into()))?;
                let mut bytes = vec![0; len];
                (values.fill)(&vec![0; item.shape.len()], &item.shape, &mut bytes)?;
                self.kept.insert(variable, Kept::Bytes(bytes));
                return Ok(());
            }
        };
        let inner = &item.shape[outer..];
        let bytes = inner.iter().fold(size as u64, |bytes, extent| bytes.saturating_mul(*extent));
        let len =
            tercet_core::limits::check_limit("an object", bytes, tercet_core::Limits::default().array_bytes)
                .map_err(|limit| Error::new(self.name.as_str().into(), limit.into()))?;
        let descriptor = self.descriptor(variable, dtype, inner)?;
        let mut object = vec![1; outer];
        object.extend(inner);
        let stored = values
            .carried(&object)
            .and_then(|stored| Some((stored, self.zstd_descriptor(variable, dtype, inner)?)));
        let mut buffer = vec![0; len];
        // An object is a chunk.
        values.each_block(&item.shape, size, &object, &mut |part, read| {
            for number in 0..part.len() {
                let stop = |stop| Error::new(self.name.as_str().into(), ErrorKind::from(stop));
                progress.check().map_err(stop)?;
                let (coords, position) = (part.coords(number), part.linear(number));
                let (start, extents) = part.window(&coords);
                let frames = stored.as_ref().map_or(Ok(None), |(stored, _)| stored(&coords))?;
                let is_carried = match (frames, &stored) {
                    (Some(frames), Some((_, carried))) => {
                        self.carry(variable, position, carried, &frames, &mut buffer)?
                    }
                    _ => false,
                };
                if !is_carried {
                    read(&start, &extents, &mut buffer)?;
                    if let (true, Some(number)) = (item.shape.is_empty(), number_at(dtype, &buffer)) {
                        self.scalars.insert(variable, number.as_f64());
                    }
                    self.spool(variable, position, &descriptor, &mut buffer)?;
                }
                progress.advance(bytes);
            }
            Ok(())
        })
    }

    fn write_strings(&mut self, variable: usize, strings: &[String]) -> Result<(), Error> {
        if matches!(self.roles[variable], Role::Kept) {
            self.kept.insert(variable, Kept::Strings(strings.to_vec()));
            return Ok(());
        }
        let width = strings.iter().map(String::len).max().unwrap_or(0).max(1);
        if let Some(text) = strings.iter().find(|text| text.ends_with('\0')) {
            return Err(refused(&self.name, format!("the string {text:?} ends with a zero byte")));
        }
        let mut shape = self.header.variables[variable].shape.clone();
        shape.push(width as u64);
        let mut bytes = Vec::with_capacity(strings.len().saturating_mul(width));
        for text in strings {
            bytes.extend(text.as_bytes());
            bytes.resize(bytes.len() + width - text.len(), 0);
        }
        let descriptor = self.descriptor(variable, DType::U8, &shape)?;
        self.spool(variable, 0, &descriptor, &mut bytes)
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        // Blocks of a source with other chunks are not in the order of their fields.
        self.fields.sort_by_key(|field| (field.variable, field.position));
        for (metadata, objects) in self.messages()? {
            let mut stored = Vec::new();
            for object in objects {
                let field = &self.fields[object.field];
                let mut bytes = vec![0; usize::try_from(field.len).unwrap_or(usize::MAX)];
                let start = field.start;
                let read =
                    self.spool.seek(SeekFrom::Start(start)).and_then(|_| self.spool.read_exact(&mut bytes));
                self.io(read)?;
                let message = Message::from_bytes(&self.name, bytes)?;
                let part = message.object(0)?;
                let mut descriptor = part.descriptor().clone();
                descriptor.params.extend(object.params);
                stored.push((descriptor, part.stored()?));
            }
            let objects: Vec<PreEncoded<'_>> =
                stored.iter().map(|(descriptor, payload)| PreEncoded { descriptor, payload }).collect();
            let message = encode_pre_encoded(&metadata, &objects, &EncodeOptions::new())
                .map_err(|error| Error::new(self.name.as_str().into(), ErrorKind::Tgm(error.into_kind())))?;
            self.writer.raw(&message)?;
        }
        self.writer.finish()?;
        Ok(())
    }
}

/// An object of a message: the field, and parameters of its descriptor.
struct Placed {
    field: usize,
    params: BTreeMap<String, Value>,
}

/// An object with its metadata, before it is part of a message.
struct Planned {
    /// Where its message and the object are in the file.
    order: (u64, u64),
    placed: Placed,
    entry: Entry,
    extra: Entry,
}

impl TgmSink {
    /// The messages in their order.
    #[expect(clippy::single_match_else, reason = "the current message, or the next one")]
    fn messages(&self) -> Result<Vec<(GlobalMetadata, Vec<Placed>)>, Error> {
        let file = record(&self.header.attrs);
        let order = MessageOrder::new(file.as_ref());
        let mut planned: Vec<Planned> = Vec::new();
        let mut foreign = HashMap::new();
        for (number, field) in self.fields.iter().enumerate() {
            match &self.roles[field.variable] {
                Role::Data { outer, record: Some(record) } => {
                    if let Some(object) = self.native(number, field, *outer, record, &order)? {
                        planned.push(object);
                    }
                }
                Role::Repeated(record) => {
                    for item in record.get("repeated").and_then(Json::as_array).into_iter().flatten() {
                        let (Some(ordinal), Some(keys)) = (item.get(0).and_then(Json::as_u64), item.get(1))
                        else {
                            continue;
                        };
                        planned.push(self.planned(number, ordinal, &keys_of(keys), &order));
                    }
                }
                Role::Data { outer, record: None } => {
                    let object = self.foreign(number, field, *outer, &mut foreign)?;
                    planned.push(object);
                }
                Role::Kept => {}
            }
        }
        planned.sort_by_key(|object| object.order);
        let mut messages: Vec<(GlobalMetadata, Vec<Placed>)> = Vec::new();
        let mut current: Option<u64> = None;
        let mut empty: Vec<(u64, Entry)> = file
            .as_ref()
            .and_then(|record| record.get("empty"))
            .and_then(Json::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(number, extra)| {
                let extra = match Value::from_json(extra) {
                    Value::Map(pairs) => pairs,
                    _ => Vec::new(),
                };
                let entry = |(key, value): (Value, Value)| Some((key.as_text()?.to_owned(), value));
                Some((number.parse().ok()?, extra.into_iter().filter_map(entry).collect()))
            })
            .collect();
        empty.sort_by_key(|(number, _)| *number);
        let mut empty = empty.into_iter().peekable();
        for object in planned {
            while let Some((_, extra)) = empty.next_if(|(number, _)| *number < object.order.0) {
                messages.push((GlobalMetadata { extra, ..GlobalMetadata::default() }, Vec::new()));
                current = None;
            }
            let is_next = current == Some(object.order.0);
            match messages.last_mut().filter(|(metadata, _)| is_next && metadata.extra == object.extra) {
                Some((metadata, objects)) => {
                    metadata.base.push(object.entry);
                    objects.push(object.placed);
                }
                None => {
                    let metadata = GlobalMetadata {
                        base: vec![object.entry],
                        extra: object.extra,
                        ..GlobalMetadata::default()
                    };
                    messages.push((metadata, vec![object.placed]));
                }
            }
            current = Some(object.order.0);
        }
        messages.extend(
            empty.map(|(_, extra)| (GlobalMetadata { extra, ..GlobalMetadata::default() }, Vec::new())),
        );
        Ok(messages)
    }

    fn planned(&self, field: usize, ordinal: u64, keys: &Keys, file: &MessageOrder) -> Planned {
        let mut keys = keys.clone();
        // Attributes of the file that were changed since.
        for attr in self.header.attrs.iter().filter(|attr| attr.name != RECORD) {
            let path = format!("{EXTRA}{}", attr.name);
            let changed = keys.get(&path).is_none_or(|value| !is_rendered(value, &attr.value));
            if changed && !keys.keys().any(|key| key.starts_with(&format!("{path}."))) {
                keys.insert(path, keys::value(&attr.value));
            }
        }
        let params: BTreeMap<String, Value> = keys
            .iter()
            .filter_map(|(key, value)| Some((key.strip_prefix(DESCRIPTOR)?.to_owned(), value.clone())))
            .collect();
        keys.retain(|key, _| !key.starts_with(DESCRIPTOR));
        let (entry, extra) = keys::unflatten(&keys);
        Planned { order: (file.message(ordinal), ordinal), placed: Placed { field, params }, entry, extra }
    }

    /// An object of a variable that was stacked from messages; `None` if it was missing.
    fn native(
        &self,
        number: usize,
        field: &Spooled,
        outer: usize,
        record: &Json,
        file: &MessageOrder,
    ) -> Result<Option<Planned>, Error> {
        let item = &self.header.variables[field.variable];
        let place = usize::try_from(field.position).unwrap_or(usize::MAX);
        let position = place_of(&vec![0; outer], &item.shape[..outer], place);
        let ordinal = match record.get("order") {
            Some(order) => {
                let first = order.get("first").and_then(Json::as_u64).unwrap_or(0);
                let strides = order.get("strides").and_then(Json::as_array);
                let strides = strides.into_iter().flatten().map(|stride| stride.as_u64().unwrap_or(0));
                position
                    .iter()
                    .zip(strides)
                    .fold(first, |at, (index, stride)| at.saturating_add(index.saturating_mul(stride)))
            }
            None => match self.companion(field.variable, ORDER) {
                Some(Kept::Bytes(bytes)) => {
                    let element = bytes.as_chunks::<8>().0.get(place).map(|bytes| i64::from_le_bytes(*bytes));
                    match element.map(u64::try_from) {
                        Some(Ok(ordinal)) => ordinal,
                        Some(Err(_)) => return Ok(None),
                        None => field.position,
                    }
                }
                _ => field.position,
            },
        };
        let mut keys = record.get("constant").map(keys_of).unwrap_or_default();
        Self::apply_edits(item, record, &mut keys);
        if let Some(json) = self
            .companion(field.variable, KEYS)
            .and_then(|kept| self.text_at(kept, field.variable, KEYS, place))
            && let Ok(json) = serde_json::from_str::<Json>(&json)
        {
            keys.extend(keys_of(&json));
        }
        for (axis, item_axis) in record.get("axes").and_then(Json::as_array).into_iter().flatten().enumerate()
        {
            let Some(path) = item_axis.get(1).and_then(Json::as_str) else { continue };
            let is_json = item_axis.get(2) == Some(&Json::Bool(true));
            if let Some(value) = self.coordinate(&item.dims[axis], position[axis], is_json)? {
                keys.insert(path.to_owned(), value);
            }
        }
        Ok(Some(self.planned(number, ordinal, &keys, file)))
    }

    /// Attributes that were changed, added or removed since the record was made.
    fn apply_edits(item: &Variable, record: &Json, keys: &mut Keys) {
        let filled = record.get("filled") == Some(&Json::Bool(true));
        let is_ours =
            |name: &str| name == RECORD || name == "ancillary_variables" || (filled && name == "_FillValue");
        keys.retain(|key, _| {
            key.starts_with(EXTRA) || key.starts_with(DESCRIPTOR) || item.attr(key).is_some() || key == RECORD
        });
        for attr in item.attrs.iter().filter(|attr| !is_ours(&attr.name)) {
            if keys.get(&attr.name).is_none_or(|value| !is_rendered(value, &attr.value)) {
                keys.insert(attr.name.clone(), keys::value(&attr.value));
            }
        }
    }

    fn companion(&self, variable: usize, suffix: &str) -> Option<&Kept> {
        let name = format!("{}{suffix}", self.header.variables[variable].name);
        self.header.find(&name).and_then(|found| self.kept.get(&found))
    }

    /// The string at a position of a companion, which may be characters.
    fn text_at(&self, kept: &Kept, variable: usize, suffix: &str, place: usize) -> Option<String> {
        match kept {
            Kept::Strings(strings) => strings.get(place).cloned(),
            Kept::Bytes(bytes) => {
                let name = format!("{}{suffix}", self.header.variables[variable].name);
                let item = &self.header.variables[self.header.find(&name)?];
                characters(bytes, item, place)
            }
        }
        .filter(|text| !text.is_empty())
    }

    /// The coordinate of a dimension; `None` without coordinates.
    fn coordinate(&self, dim: &str, index: u64, is_json: bool) -> Result<Option<Value>, Error> {
        let Some(number) = self.header.find(dim) else { return Ok(None) };
        let Some(kept) = self.kept.get(&number) else { return Ok(None) };
        let item = &self.header.variables[number];
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let text = |text: String| {
            if is_json {
                serde_json::from_str(&text).map_or(Value::Text(text), |json: Json| Value::from_json(&json))
            } else {
                Value::Text(text)
            }
        };
        let value = match (kept, item.kind) {
            (Kept::Strings(strings), _) => strings.get(index).cloned().map(text),
            (Kept::Bytes(bytes), Kind::Number(dtype)) => {
                let size = dtype.size().unwrap_or(1);
                let element = bytes.chunks_exact(size).nth(index);
                element.and_then(|element| number_at(dtype, element)).map(|number| match number {
                    Number::Int(integer) => Value::Integer(integer),
                    Number::Float(float) => Value::Float(float),
                })
            }
            (Kept::Bytes(bytes), _) => characters(bytes, item, index).map(text),
        };
        match value {
            Some(value) => Ok(Some(value)),
            None => Err(refused(&self.name, format!("`{dim}` has no coordinate at {index}"))),
        }
    }

    /// Whether the order of the coordinates of a dimension cannot be found again from their values.
    fn needs_index(&self, dim: &str) -> Result<bool, Error> {
        if let Some(known) = self.indexed.borrow().get(dim) {
            return Ok(*known);
        }
        let len = self.header.dim(dim).map_or(0, |dim| dim.len);
        let mut values = Vec::new();
        for index in 0..len {
            match self.coordinate(dim, index, false)? {
                Some(value) => values.push(value),
                None => break,
            }
        }
        let needs = !super::stack::is_ordered(&values);
        self.indexed.borrow_mut().insert(dim.to_owned(), needs);
        Ok(needs)
    }

    /// An object of a variable of another format.
    fn foreign(
        &self,
        number: usize,
        field: &Spooled,
        outer: usize,
        messages: &mut HashMap<(Vec<String>, u64), u64>,
    ) -> Result<Planned, Error> {
        let item = &self.header.variables[field.variable];
        let place = usize::try_from(field.position).unwrap_or(usize::MAX);
        let position = place_of(&vec![0; outer], &item.shape[..outer], place);
        let mut special = Special {
            dims: item.dims[outer..].to_vec(),
            kind: (!matches!(item.kind, Kind::Number(_))).then_some(item.kind),
            attrs: item.attrs.clone(),
            axes: Vec::new(),
            masked: field.masked,
        };
        if item.kind == Kind::String {
            special.dims.push("string".to_owned());
        }
        let mut entry = Entry::new();
        for (dim, index) in item.dims.iter().zip(&position) {
            let coordinate = self.header.find(dim).filter(|found| self.kept.contains_key(found));
            let variable = coordinate.map(|found| &self.header.variables[found]);
            let value = match self.coordinate(dim, *index, false)? {
                Some(value) => value,
                None => (*index).into(),
            };
            special.axes.push(Axis {
                name: dim.clone(),
                kind: variable.map(|variable| variable.kind),
                attrs: variable.map(|variable| variable.attrs.clone()).unwrap_or_default(),
                index: self.needs_index(dim)?.then_some(*index),
            });
            entry.insert(dim.clone(), value);
        }
        for attr in item.attrs.iter().filter(|attr| is_visible(&attr.name, &special.axes)) {
            entry.insert(attr.name.clone(), keys::value(&attr.value));
        }
        let at_position = |name: &str| {
            let number = self.header.find(name)?;
            let value = match item.dims.iter().zip(&position).find(|(dim, _)| *dim == name) {
                Some((_, index)) => match self.coordinate(name, *index, false).ok()?? {
                    #[expect(clippy::cast_precision_loss, reason = "coordinates are small")]
                    Value::Integer(integer) => integer as f64,
                    Value::Float(float) => float,
                    _ => return None,
                },
                None => *self.scalars.get(&number)?,
            };
            Some((value, &*self.header.variables[number].attrs))
        };
        if let Some(keys) = mars::keys(item, &at_position)
            && !entry.contains_key(mars::KEY)
        {
            entry.insert(mars::KEY.to_owned(), keys);
        }
        entry.insert("name".to_owned(), item.name.as_str().into());
        entry.insert(special::KEY.to_owned(), special.to_value());
        let mut extra: Entry = Entry::new();
        let attrs: Vec<Attr> = self.header.attrs.iter().filter(|attr| attr.name != RECORD).cloned().collect();
        for attr in attrs.iter().filter(|attr| is_visible(&attr.name, &[])) {
            extra.insert(attr.name.clone(), keys::value(&attr.value));
        }
        if !attrs.is_empty() {
            extra.insert(special::KEY.to_owned(), Special { attrs, ..Special::default() }.to_value());
        }
        let key = match self.split {
            Split::Variable => (vec![item.name.clone()], 0),
            Split::File => (Vec::new(), 0),
            Split::Auto | Split::Axes(_) => (item.dims[..outer].to_vec(), field.position),
        };
        let next = messages.len() as u64;
        let message = *messages.entry(key).or_insert(next);
        // After the messages with a record.
        let order = ((1 << 62) + message, number as u64);
        Ok(Planned { order, placed: Placed { field: number, params: BTreeMap::new() }, entry, extra })
    }
}

/// The characters of a string, without the padding.
fn characters(bytes: &[u8], item: &Variable, place: usize) -> Option<String> {
    let width = usize::try_from(*item.shape.last()?).ok()?.max(1);
    let text = bytes.chunks_exact(width).nth(place)?;
    let len = text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    std::str::from_utf8(&text[..len]).ok().map(str::to_owned)
}

fn keys_of(json: &Json) -> Keys {
    json.as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), Value::from_json(value)))
        .collect()
}

/// Whether an attribute shows a value, in any of the forms that formats store it in.
fn is_rendered(value: &Value, data: &AttrData) -> bool {
    let shown = keys::attribute(value);
    *data == shown || as_text(&shown).0 == *data || same(value, &keys::value(data))
}

/// The message of an object, by its number in the file.
enum MessageOrder {
    /// Messages of this many objects.
    Regular(u64),
    /// The number of the first object after each message.
    Ends(Vec<u64>),
}

impl MessageOrder {
    fn new(file: Option<&Json>) -> Self {
        match file.and_then(|record| record.get("objects")) {
            Some(Json::Array(counts)) => {
                let mut end = 0u64;
                let ends = counts.iter().map(|count| {
                    end = end.saturating_add(count.as_u64().unwrap_or(0));
                    end
                });
                Self::Ends(ends.collect())
            }
            Some(count) => Self::Regular(count.as_u64().unwrap_or(1).max(1)),
            None => Self::Regular(1),
        }
    }

    fn message(&self, ordinal: u64) -> u64 {
        match self {
            Self::Regular(count) => ordinal / count,
            Self::Ends(ends) => {
                let message = ends.partition_point(|end| *end <= ordinal) as u64;
                // Objects after the last recorded message have messages of their own.
                let past = ends.last().map_or(ordinal, |last| ordinal.saturating_sub(*last));
                if message == ends.len() as u64 { message + past } else { message }
            }
        }
    }
}
