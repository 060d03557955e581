//! `.tgm` files as a source of variables.

use std::sync::Arc;

use rayon::prelude::*;
use serde_json::{Map, Value as Json, json};
use tercet_core::tensor::AxisSlice;
use tercet_core::{ByteSource, DType, Selection};
use tercet_tgm::{ByteOrder, DataObjectDescriptor, File, Object, ReadOptions, Value, is_pipeline_parameter};

use super::keys::{self, Keys};
use super::mars;
use super::special::{self, Special};
use super::stack::{Cube, Dimension, Field, stack};
use super::{EXTRA, KEYS, ORDER, RECORD};
use crate::Error;
use crate::arrays::source::{check_box, malformed, refused};
use crate::arrays::{
    ArraySource, Attr, AttrData, Dim, Header, Kind, Numbers, Variable, ZstdChunks, push_number,
};

/// A `.tgm` file, stacked into cubes.
#[derive(Debug)]
pub(crate) struct TgmSource {
    file: File,
    header: Header,
    contents: Vec<Contents>,
}

/// The values of a variable.
#[derive(Debug)]
pub(super) enum Contents {
    /// Objects: a message and an object for each position of the outer dimensions.
    Objects { fields: Vec<Option<ObjectRef>>, outer: usize, fill: Vec<u8> },
    /// Bytes of strings with a last axis of this width, padded with zeros.
    Text { fields: Vec<Option<ObjectRef>>, width: u64 },
    /// Values in memory.
    Bytes(Vec<u8>),
    /// Strings in memory.
    Strings(Vec<String>),
}

/// An object of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObjectRef {
    message: u64,
    object: u64,
    /// NaN represents the fill value.
    masked: bool,
}

/// Names of coordinates of grids.
const LATITUDES: [&str; 3] = ["latitude", "lat", "latitudes"];
const LONGITUDES: [&str; 4] = ["longitude", "lon", "longitudes", "lng"];

/// Missing fields that are listed by their coordinates.
const LISTED: usize = 3;
/// The longest coordinate that is compared with those of other files, in bytes.
const MAX_COORDINATES: u64 = 16 << 20;

impl TgmSource {
    /// Reads the metadata of all messages.
    pub(crate) fn open(
        source: Arc<dyn ByteSource>,
        options: tercet_core::ReadOptions,
    ) -> Result<Self, Error> {
        let file = File::from_source(source, ReadOptions::from(options).with_allow_gaps(true))?;
        let mut header = Header { format: "Tensogram .tgm".to_owned(), ..Header::default() };
        for gap in file.gaps()? {
            let name = format!("bytes {}..{}", gap.span.start(), gap.span.end());
            header.unreadable.push((name, "not a valid message".to_owned()));
        }
        let Scanned { fields, messages, file_attrs } = scan(&file, &mut header)?;
        let cubes = stack(&fields);
        let mut builder =
            Builder { file: &file, fields: &fields, header, contents: Vec::new(), dims: Vec::new() };
        builder.file_attributes(&messages, &file_attrs);
        let grid = builder.grid_names(&cubes);
        for cube in &cubes {
            builder.cube(cube, &cubes, grid.as_ref())?;
        }
        let Builder { header, contents, .. } = builder;
        Ok(Self { file, header, contents })
    }

    fn decode(&self, field: ObjectRef, selection: Option<&Selection>, out: &mut [u8]) -> Result<(), Error> {
        let message = self.file.message(field.message)?;
        let object = message.object(field.object)?;
        match selection {
            None => object.decode_into(out)?,
            Some(selection) => {
                let part = object.decode_selection(selection)?;
                let bytes = part.array.bytes();
                if bytes.len() != out.len() {
                    return Err(malformed(self.file.name(), "an object changed while it was read"));
                }
                out.copy_from_slice(bytes);
            }
        }
        Ok(())
    }
}

/// The number of objects of a message, and the metadata of one without objects.
type MessageShape = (u64, Option<Json>);

/// The contents of a file.
struct Scanned {
    fields: Vec<Field>,
    messages: Vec<MessageShape>,
    /// Attributes of a file of another format.
    file_attrs: Vec<Attr>,
}

/// The objects of a file. Messages that cannot be read are reported.
fn scan(file: &File, header: &mut Header) -> Result<Scanned, Error> {
    let mut fields = Vec::new();
    let mut messages = Vec::new();
    let mut file_attrs = Vec::new();
    for number in 0..file.message_count()? {
        let message = match file.message(number) {
            Ok(message) => message,
            Err(error) => {
                header.unreadable.push((format!("message {number}"), error.kind().to_string()));
                continue;
            }
        };
        let mut count = 0;
        let metadata = message.metadata();
        let mut extra = metadata.extra.clone();
        if let Some(special) = extra.get(special::KEY).and_then(Special::parse) {
            extra.remove(special::KEY);
            file_attrs = special.attrs;
        }
        for index in 0..message.object_count() {
            let object = match message.object(index) {
                Ok(object) => object,
                Err(error) => {
                    header
                        .unreadable
                        .push((format!("message {number} object {index}"), error.kind().to_string()));
                    continue;
                }
            };
            let mut found = Keys::new();
            let mut special = None;
            if let Some(entry) = usize::try_from(index).ok().and_then(|index| metadata.base.get(index)) {
                let mut entry = entry.clone();
                special = entry.get(special::KEY).and_then(Special::parse);
                if let Some(special) = &special {
                    entry.remove(special::KEY);
                    if mars::is_derived(&special.attrs) {
                        entry.remove(mars::KEY);
                    }
                }
                keys::flatten(&entry, "", &mut found);
            }
            keys::flatten(&extra, EXTRA, &mut found);
            let descriptor = object.descriptor();
            for (key, value) in &descriptor.params {
                if !is_pipeline_parameter(key) {
                    found.insert(format!("{DESCRIPTOR}{key}"), value.clone());
                }
            }
            fields.push(Field {
                message: number,
                object: index,
                ordinal: fields.len() as u64,
                dtype: descriptor.dtype,
                shape: descriptor.shape.clone(),
                keys: found,
                special,
                pipeline: pipeline(descriptor),
            });
            count += 1;
        }
        let empty = (message.object_count() == 0).then(|| Value::from(metadata.extra.clone()).to_json());
        messages.push((count, empty));
    }
    Ok(Scanned { fields, messages, file_attrs })
}

/// The prefix of parameters of the user in a descriptor.
pub(super) const DESCRIPTOR: &str = "descriptor:";

/// The pipeline of an object, without offsets, which depend on the values.
fn pipeline(descriptor: &DataObjectDescriptor) -> Value {
    let mut parts: Vec<(Value, Value)> = vec![
        ("encoding".into(), descriptor.encoding.as_str().into()),
        ("filter".into(), descriptor.filter.as_str().into()),
        ("compression".into(), descriptor.compression.as_str().into()),
    ];
    let is_kept = |key: &str| is_pipeline_parameter(key) && !key.contains("offsets");
    let params = descriptor.params.iter().filter(|(key, _)| is_kept(key));
    parts.extend(params.map(|(key, value)| (key.as_str().into(), value.clone())));
    Value::Map(parts)
}

/// Builds the header of a file.
struct Builder<'f> {
    file: &'f File,
    fields: &'f [Field],
    header: Header,
    contents: Vec<Contents>,
    /// The values of the outer dimensions.
    dims: Vec<(String, Dimension)>,
}

impl Builder<'_> {
    fn push(&mut self, variable: Variable, contents: Contents) {
        self.header.variables.push(variable);
        self.contents.push(contents);
    }

    /// Attributes of the file: metadata that all messages share, and the number of their objects.
    fn file_attributes(&mut self, messages: &[MessageShape], typed: &[Attr]) {
        if let Some((first, others)) = self.fields.split_first() {
            for (key, value) in &first.keys {
                let Some(name) = key.strip_prefix(EXTRA) else { continue };
                let is_shared =
                    others.iter().all(|field| field.keys.get(key).is_some_and(|found| same(found, value)));
                if is_shared && name != RECORD {
                    let typed =
                        typed.iter().find(|attr| attr.name == name && same(&keys::value(&attr.value), value));
                    let attr = typed.cloned().unwrap_or_else(|| Attr::new(name, keys::attribute(value)));
                    self.header.attrs.push(attr);
                }
            }
        }
        // Those that are not keys of their own, and the order of the others.
        let hidden = typed.iter().filter(|attr| !super::write::is_visible(&attr.name, &[]));
        self.header.attrs.extend(hidden.cloned());
        let order =
            |attr: &Attr| typed.iter().position(|found| found.name == attr.name).unwrap_or(usize::MAX);
        self.header.attrs.sort_by_key(order);
        let is_native = self.fields.iter().any(|field| field.special.is_none());
        if is_native && messages.iter().any(|(count, _)| *count != 1) {
            let counts: Vec<u64> = messages.iter().map(|(count, _)| *count).collect();
            let mut record = Map::new();
            let is_constant = counts.iter().all(|count| *count == counts[0]);
            let objects = if is_constant { json!(counts[0]) } else { json!(counts) };
            record.insert("objects".to_owned(), objects);
            let empty: Map<String, Json> = messages
                .iter()
                .enumerate()
                .filter_map(|(number, (_, extra))| Some((number.to_string(), extra.clone()?)))
                .collect();
            if !empty.is_empty() {
                record.insert("empty".to_owned(), Json::Object(empty));
            }
            self.header.attrs.push(Attr::new(RECORD, AttrData::Json(Json::Object(record))));
        }
    }

    /// The names and lengths of latitudes and longitudes, if the file has them.
    fn grid_names(&self, cubes: &[Cube]) -> Option<[(String, u64); 2]> {
        let find = |names: &[&str]| {
            let cube = cubes.iter().find(|cube| names.contains(&cube.name.to_lowercase().as_str()))?;
            let first = cube.fields.iter().flatten().next()?;
            match self.fields[*first].shape[..] {
                [len] => Some((cube.name.clone(), len)),
                _ => None,
            }
        };
        Some([find(&LATITUDES)?, find(&LONGITUDES)?])
    }

    /// A dimension of an object: its name, unless that has another length or is an outer dimension.
    fn inner_dim(&mut self, wanted: &str, cube: &str, len: u64) -> String {
        let mut name = wanted.to_owned();
        let mut attempt = 0;
        loop {
            let is_outer = self.dims.iter().any(|(found, _)| *found == name);
            match self.header.dim(&name) {
                Some(dim) if dim.len == len && !is_outer => return name,
                None => break,
                Some(_) => {}
            }
            name =
                if attempt == 0 { format!("{cube}_{wanted}") } else { format!("{cube}_{wanted}_{attempt}") };
            attempt += 1;
        }
        self.header.dims.push(Dim { name: name.clone(), len, unlimited: false });
        name
    }

    /// An outer dimension with its coordinates. Cubes share it if their values are the same.
    fn outer_dim(
        &mut self,
        dimension: &Dimension,
        cube: &Cube,
        cubes: &[Cube],
        axis: Option<&special::Axis>,
    ) -> Result<String, Error> {
        if let Some((name, _)) = self.dims.iter().find(|(_, found)| found == dimension) {
            return Ok(name.clone());
        }
        let wanted = match (axis, &dimension.key) {
            (Some(axis), _) => axis.name.clone(),
            (None, Some(key)) => keys::last(key),
            (None, None) => "field".to_owned(),
        };
        let len = dimension.values.len() as u64;
        // A recorded axis shares its dimension with the objects that were read before: `valid_time` lies along `time`.
        let is_shared = |builder: &Self, name: &str| {
            axis.is_some()
                && builder.header.dim(name).is_some_and(|dim| dim.len == len)
                && !builder.dims.iter().any(|(found, _)| found == name)
        };
        let is_taken = |builder: &Self, name: &str| {
            builder.header.dim(name).is_some() && !is_shared(builder, name)
                || cubes.iter().any(|cube| cube.name == name)
        };
        let mut name = wanted.clone();
        let mut attempt = 0;
        while is_taken(self, &name) {
            name = if attempt == 0 {
                format!("{}_{wanted}", cube.name)
            } else {
                format!("{}_{wanted}_{attempt}", cube.name)
            };
            attempt += 1;
        }
        if self.header.dim(&name).is_none() {
            self.header.dims.push(Dim { name: name.clone(), len, unlimited: false });
        }
        self.dims.push((name.clone(), dimension.clone()));
        let has_coordinates = match axis {
            Some(axis) => axis.kind.is_some(),
            None => dimension.key.is_some(),
        };
        if has_coordinates {
            let kind = axis.and_then(|axis| axis.kind).unwrap_or_else(|| coordinate_kind(&dimension.values));
            let contents = coordinates(&dimension.values, kind).ok_or_else(|| {
                malformed(self.file.name(), format!("the values of `{name}` are not {kind}"))
            })?;
            let attrs = axis.map(|axis| axis.attrs.clone()).unwrap_or_default();
            let variable = Variable {
                name: name.clone(),
                kind,
                dims: vec![name.clone()],
                shape: vec![len],
                chunks: None,
                attrs,
            };
            self.push(variable, contents);
        }
        Ok(name)
    }

    fn cube(&mut self, cube: &Cube, cubes: &[Cube], grid: Option<&[(String, u64); 2]>) -> Result<(), Error> {
        let Some(first) = cube.fields.iter().flatten().next().map(|field| &self.fields[*field]) else {
            return Ok(());
        };
        if first.dtype.size().is_none() || first.dtype == DType::Bitmask {
            self.header.unreadable.push((cube.name.clone(), format!("{} is not supported", first.dtype)));
            return Ok(());
        }
        let special = first.special.clone();
        if let Some((variable, contents)) = self.same_in_files(cube, first)? {
            let dims = special.map(|special| special.dims).unwrap_or_default();
            let dims =
                variable.shape.iter().zip(&dims).map(|(len, dim)| self.inner_dim(dim, &cube.name, *len));
            let dims = dims.collect();
            self.push(Variable { dims, ..variable }, contents);
            return Ok(());
        }
        if let Some((variable, contents)) = self.same_everywhere(cube, first, special.is_some())? {
            let dim = self.inner_dim(&variable.name.clone(), &variable.name, variable.shape[0]);
            self.push(Variable { dims: vec![dim], ..variable }, contents);
            return Ok(());
        }
        let mut dims = Vec::new();
        for dimension in &cube.dimensions {
            let axis = special.as_ref().and_then(|special| {
                special.axes.iter().find(|axis| Some(&axis.name) == dimension.key.as_ref())
            });
            dims.push(self.outer_dim(dimension, cube, cubes, axis)?);
        }
        let outer_dims = dims.clone();
        let outer_shape: Vec<u64> =
            cube.dimensions.iter().map(|dimension| dimension.values.len() as u64).collect();
        let is_text = special.as_ref().is_some_and(|special| special.kind == Some(Kind::String));
        // The last axis of strings is their length.
        let axes = first.shape.len().saturating_sub(usize::from(is_text));
        for (axis, len) in first.shape[..axes].iter().enumerate() {
            let wanted = inner_name(first, special.as_ref(), axis, &cube.name, grid);
            // A coordinate has the name of its dimension.
            let name = self.inner_dim(&wanted, &cube.name, *len);
            dims.push(name);
        }
        let mut shape = outer_shape.clone();
        shape.extend(&first.shape);
        let kind = special.as_ref().and_then(|special| special.kind).unwrap_or(Kind::Number(first.dtype));
        let kind = if first.dtype == DType::U8 || matches!(kind, Kind::Number(_)) {
            kind
        } else {
            Kind::Number(first.dtype)
        };
        let (mut attrs, record) = match &special {
            Some(_) => (self.special_attributes(cube), None),
            None => self.native_attributes(cube, &outer_dims),
        };
        let missing = cube.fields.iter().filter(|field| field.is_none()).count();
        let mut fill = vec![0; first.dtype.size().unwrap_or(1)];
        if let Some(AttrData::Numbers(numbers)) =
            attrs.iter().find(|attr| attr.name == "_FillValue").map(|attr| &attr.value)
            && numbers.dtype == first.dtype
            && numbers.len() == 1
        {
            fill.clone_from(&numbers.bytes);
        } else if missing > 0 {
            fill = default_fill(first.dtype);
            if let Kind::Number(dtype) = kind {
                attrs.push(Attr::new("_FillValue", AttrData::Numbers(Numbers::scalar(dtype, fill.clone()))));
            }
        }
        if missing > 0 {
            self.header.notes.push((cube.name.clone(), missing_note(cube, &outer_dims, missing)));
        }
        let fields: Vec<Option<ObjectRef>> = cube
            .fields
            .iter()
            .map(|field| {
                let field = &self.fields[(*field)?];
                let masked = field.special.as_ref().is_some_and(|special| special.masked);
                Some(ObjectRef { message: field.message, object: field.object, masked })
            })
            .collect();
        if let Some(record) = record {
            self.companions(cube, &outer_dims, &outer_shape, record, &mut attrs);
        }
        let outer = outer_shape.len();
        let chunks = (!shape.is_empty()).then(|| {
            let mut chunks = vec![1; outer];
            chunks.extend(first.shape.iter().map(|extent| (*extent).max(1)));
            chunks
        });
        let mut variable = Variable { name: cube.name.clone(), kind, dims, shape, chunks, attrs };
        let contents = match kind {
            Kind::String if !first.shape.is_empty() => {
                variable.shape.pop();
                variable.chunks = None;
                Contents::Text { fields, width: *first.shape.last().unwrap_or(&0) }
            }
            _ => Contents::Objects { fields, outer, fill },
        };
        self.push(variable, contents);
        Ok(())
    }

    /// Coordinates of several files of another format are one variable if they are equal.
    fn same_in_files(&self, cube: &Cube, first: &Field) -> Result<Option<(Variable, Contents)>, Error> {
        let Some(special) = &first.special else { return Ok(None) };
        let is_number = special.kind.is_none() && !special.masked && special.axes.is_empty();
        let bytes = first
            .shape
            .iter()
            .fold(first.dtype.size().unwrap_or(1) as u64, |bytes, extent| bytes.saturating_mul(*extent));
        if cube.fields.len() < 2
            || !is_number
            || first.shape.len() > 1
            || special.dims.len() != first.shape.len()
            || bytes > MAX_COORDINATES
        {
            return Ok(None);
        }
        let mut values: Option<Vec<u8>> = None;
        for field in &cube.fields {
            let Some(field) = field.map(|field| &self.fields[field]) else { return Ok(None) };
            if field.special.as_ref() != Some(special) {
                return Ok(None);
            }
            let bytes = self.file.message(field.message)?.object(field.object)?.decode_to_vec()?;
            match &values {
                None => values = Some(bytes),
                Some(values) if *values == bytes => {}
                Some(_) => return Ok(None),
            }
        }
        let variable = Variable {
            name: cube.name.clone(),
            kind: Kind::Number(first.dtype),
            dims: Vec::new(),
            shape: first.shape.clone(),
            chunks: None,
            attrs: self.special_attributes(cube),
        };
        Ok(Some((variable, Contents::Bytes(values.unwrap_or_default()))))
    }

    /// Coordinates of a grid that every message repeats are one variable.
    fn same_everywhere(
        &self,
        cube: &Cube,
        first: &Field,
        is_special: bool,
    ) -> Result<Option<(Variable, Contents)>, Error> {
        let name = cube.name.to_lowercase();
        let is_grid = LATITUDES.contains(&name.as_str()) || LONGITUDES.contains(&name.as_str());
        if is_special || !is_grid || first.shape.len() != 1 || cube.fields.len() < 2 {
            return Ok(None);
        }
        let mut values: Option<Vec<u8>> = None;
        for field in &cube.fields {
            let Some(field) = field.map(|field| &self.fields[field]) else { return Ok(None) };
            let bytes = self.file.message(field.message)?.object(field.object)?.decode_to_vec()?;
            match &values {
                None => values = Some(bytes),
                Some(values) if *values == bytes => {}
                Some(_) => return Ok(None),
            }
        }
        let fields: Vec<Json> = cube
            .fields
            .iter()
            .flatten()
            .map(|field| {
                let field = &self.fields[*field];
                json!([field.ordinal, json_of(&field.keys)])
            })
            .collect();
        let record = json!({ "repeated": fields, "pipeline": first.pipeline.to_json() });
        let variable = Variable {
            name: cube.name.clone(),
            kind: Kind::Number(first.dtype),
            dims: vec![cube.name.clone()],
            shape: first.shape.clone(),
            chunks: None,
            attrs: {
                let mut attrs = visible(&constant_keys(cube, self.fields));
                attrs.push(Attr::new(RECORD, AttrData::Json(record)));
                attrs
            },
        };
        Ok(Some((variable, Contents::Bytes(values.unwrap_or_default()))))
    }

    /// The attributes of a variable of another format. Keys that were changed since count.
    fn special_attributes(&self, cube: &Cube) -> Vec<Attr> {
        let Some(first) = cube.fields.iter().flatten().next().map(|field| &self.fields[*field]) else {
            return Vec::new();
        };
        let special = first.special.clone().unwrap_or_default();
        let mut rest: Keys = constant_keys(cube, self.fields);
        rest.retain(|key, _| key != "name" && !key.starts_with(EXTRA));
        for axis in &special.axes {
            rest.remove(&axis.name);
        }
        let mut attrs = Vec::new();
        for attr in special.attrs {
            let stored = keys::value(&attr.value);
            match rest.remove(&attr.name) {
                Some(found) if same(&found, &stored) => attrs.push(attr),
                Some(found) => attrs.push(Attr::new(attr.name, keys::attribute(&found))),
                None if super::write::is_visible(&attr.name, &special.axes) => {}
                None => attrs.push(attr),
            }
        }
        attrs.extend(rest.iter().map(|(key, value)| Attr::new(key.clone(), keys::attribute(value))));
        attrs
    }

    /// The attributes of messages without a record of another format, and the record for writing them again.
    fn native_attributes(&self, cube: &Cube, dims: &[String]) -> (Vec<Attr>, Option<Map<String, Json>>) {
        let constant = constant_keys(cube, self.fields);
        let attrs = visible(&constant);
        let mut record = Map::new();
        record.insert("constant".to_owned(), json_of(&constant));
        let axes: Vec<Json> = cube
            .dimensions
            .iter()
            .zip(dims)
            .map(|(dimension, dim)| {
                let is_json = coordinate_kind(&dimension.values) == Kind::String
                    && dimension.values.iter().any(|value| value.as_text().is_none());
                json!([dim, dimension.key, is_json])
            })
            .collect();
        record.insert("axes".to_owned(), axes.into());
        let mut pipelines = cube.fields.iter().flatten().map(|field| &self.fields[*field].pipeline);
        if let Some(first) = pipelines.next()
            && pipelines.all(|other| other == first)
        {
            record.insert("pipeline".to_owned(), first.to_json());
        }
        (attrs, Some(record))
    }

    /// Adds the variables with the order of the fields and with other keys, and the record.
    #[expect(clippy::single_match_else, reason = "two forms of the order")]
    fn companions(
        &mut self,
        cube: &Cube,
        dims: &[String],
        shape: &[u64],
        mut record: Map<String, Json>,
        attrs: &mut Vec<Attr>,
    ) {
        let mut names = Vec::new();
        let companion = |name: &str, kind| Variable {
            name: name.to_owned(),
            kind,
            dims: dims.to_vec(),
            shape: shape.to_vec(),
            chunks: None,
            attrs: Vec::new(),
        };
        if cube.fields.contains(&None) {
            record.insert("filled".to_owned(), true.into());
        }
        let ordinals: Vec<Option<u64>> =
            cube.fields.iter().map(|field| field.map(|field| self.fields[field].ordinal)).collect();
        match regular_order(&ordinals, shape) {
            Some(order) => {
                record.insert("order".to_owned(), order);
            }
            None => {
                let name = format!("{}{ORDER}", cube.name);
                let number = |ordinal: &Option<u64>| ordinal.map_or(-1, u64::cast_signed);
                let bytes = ordinals.iter().flat_map(|ordinal| number(ordinal).to_le_bytes()).collect();
                self.push(companion(&name, Kind::Number(DType::I64)), Contents::Bytes(bytes));
                names.push(name);
            }
        }
        let constant = constant_keys(cube, self.fields);
        let is_axis =
            |key: &String| cube.dimensions.iter().any(|dimension| dimension.key.as_ref() == Some(key));
        let rest: Vec<Keys> = cube
            .fields
            .iter()
            .map(|field| {
                let keys = field.map(|field| self.fields[field].keys.clone()).unwrap_or_default();
                keys.into_iter().filter(|(key, _)| !constant.contains_key(key) && !is_axis(key)).collect()
            })
            .collect();
        if rest.iter().any(|keys| !keys.is_empty()) {
            let name = format!("{}{KEYS}", cube.name);
            let text = |keys: &Keys| if keys.is_empty() { String::new() } else { json_of(keys).to_string() };
            self.push(companion(&name, Kind::String), Contents::Strings(rest.iter().map(text).collect()));
            names.push(name);
        }
        if !names.is_empty() {
            attrs.push(Attr::text("ancillary_variables", names.join(" ")));
        }
        attrs.push(Attr::new(RECORD, AttrData::Json(Json::Object(record))));
    }
}

/// Keys that have the same value in all fields.
fn constant_keys(cube: &Cube, fields: &[Field]) -> Keys {
    let mut members = cube.fields.iter().flatten().map(|field| &fields[*field].keys);
    let Some(first) = members.next() else { return Keys::new() };
    let mut constant = first.clone();
    for keys in members {
        constant.retain(|key, value| keys.get(key).is_some_and(|found| same(found, value)));
    }
    // Dimensions of length 1 are constant as well.
    constant.retain(|key, _| !cube.dimensions.iter().any(|dimension| dimension.key.as_ref() == Some(key)));
    constant
}

/// Constant keys as attributes.
fn visible(constant: &Keys) -> Vec<Attr> {
    constant
        .iter()
        .filter(|(key, _)| !key.starts_with(EXTRA) && !key.starts_with(DESCRIPTOR) && *key != RECORD)
        .map(|(key, value)| Attr::new(key.clone(), keys::attribute(value)))
        .collect()
}

fn json_of(keys: &Keys) -> Json {
    Json::Object(keys.iter().map(|(key, value)| (key.clone(), value.to_json())).collect())
}

/// Whether two values are the same; floats are compared bit by bit.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        _ => a == b,
    }
}

/// The name of a dimension of an object.
fn inner_name(
    field: &Field,
    special: Option<&Special>,
    axis: usize,
    cube: &str,
    grid: Option<&[(String, u64); 2]>,
) -> String {
    if let Some(name) = special.and_then(|special| special.dims.get(axis)) {
        return name.clone();
    }
    let rank = field.shape.len();
    for key in ["dims", "dim_names", "dimensions"] {
        if let Some(names) = field.keys.get(key).and_then(Value::as_array).filter(|names| names.len() == rank)
            && let Some(name) = names[axis].as_text().filter(|name| !name.is_empty())
        {
            return name.to_owned();
        }
    }
    let lower = cube.to_lowercase();
    if rank == 1 && (LATITUDES.contains(&lower.as_str()) || LONGITUDES.contains(&lower.as_str())) {
        return cube.to_owned();
    }
    if let Some([lat, lon]) = grid
        && rank >= 2
        && field.shape[rank - 2..] == [lat.1, lon.1]
        && axis + 2 >= rank
    {
        return if axis + 2 == rank { lat.0.clone() } else { lon.0.clone() };
    }
    match (rank, rank - axis) {
        (1, _) => "point".to_owned(),
        (_, 1) => "x".to_owned(),
        (_, 2) => "y".to_owned(),
        _ => format!("dim_{axis}"),
    }
}

/// The type of coordinates: integers, floats, or strings. Mixed values are strings of JSON.
pub(super) fn coordinate_kind(values: &[Value]) -> Kind {
    if values.iter().all(|value| matches!(value, Value::Integer(_))) {
        Kind::Number(DType::I64)
    } else if values.iter().all(|value| matches!(value, Value::Float(_))) {
        Kind::Number(DType::F64)
    } else {
        Kind::String
    }
}

/// Coordinates of a type; `None` if a value does not fit.
#[expect(clippy::single_match_else, reason = "numbers or strings")]
pub(super) fn coordinates(values: &[Value], kind: Kind) -> Option<Contents> {
    match kind {
        Kind::Number(dtype) => {
            let mut bytes = Vec::new();
            for value in values {
                let number = match value {
                    Value::Integer(integer) => crate::arrays::Number::Int(*integer),
                    Value::Float(float) => crate::arrays::Number::Float(*float),
                    _ => return None,
                };
                if !push_number(dtype, number, &mut bytes) {
                    return None;
                }
            }
            Some(Contents::Bytes(bytes))
        }
        _ => {
            let is_text = values.iter().all(|value| value.as_text().is_some());
            let text = |value: &Value| match value.as_text() {
                Some(text) if is_text => text.to_owned(),
                _ => value.to_json().to_string(),
            };
            Some(Contents::Strings(values.iter().map(text).collect()))
        }
    }
}

/// The order of the fields as a first number and strides; `None` if it is not regular.
fn regular_order(ordinals: &[Option<u64>], shape: &[u64]) -> Option<Json> {
    let first = (*ordinals.first()?)?;
    let mut strides = Vec::new();
    let mut distance = 1usize;
    for &extent in shape.iter().rev() {
        let stride = if extent > 1 { ordinals.get(distance).copied()??.checked_sub(first)? } else { 0 };
        strides.insert(0, stride);
        distance = distance.checked_mul(usize::try_from(extent).ok()?)?;
    }
    for (position, ordinal) in ordinals.iter().enumerate() {
        let mut rest = position as u64;
        let mut expected = first;
        for (stride, extent) in strides.iter().zip(shape).rev() {
            expected += stride * (rest % extent);
            rest /= extent;
        }
        if *ordinal != Some(expected) {
            return None;
        }
    }
    Some(json!({ "first": first, "strides": strides }))
}

/// A value for missing fields: NaN, or the end of the range of integers.
fn default_fill(dtype: DType) -> Vec<u8> {
    use tercet_core::tensor::f16;
    match dtype {
        DType::F16 => f16::NAN.to_le_bytes().to_vec(),
        DType::BF16 => 0x7fc0u16.to_le_bytes().to_vec(),
        DType::F32 => f32::NAN.to_le_bytes().to_vec(),
        DType::F64 => f64::NAN.to_le_bytes().to_vec(),
        DType::C64 => f32::NAN.to_le_bytes().repeat(2),
        DType::C128 => f64::NAN.to_le_bytes().repeat(2),
        DType::I8 => i8::MIN.to_le_bytes().to_vec(),
        DType::I16 => i16::MIN.to_le_bytes().to_vec(),
        DType::I32 => i32::MIN.to_le_bytes().to_vec(),
        DType::I64 => i64::MIN.to_le_bytes().to_vec(),
        other => vec![0xff; other.size().unwrap_or(1)],
    }
}

fn missing_note(cube: &Cube, dims: &[String], missing: usize) -> String {
    let mut listed = Vec::new();
    for (position, _) in cube.fields.iter().enumerate().filter(|(_, field)| field.is_none()).take(LISTED) {
        let mut rest = position;
        let mut place = Vec::new();
        for (dimension, dim) in cube.dimensions.iter().zip(dims).rev() {
            let count = dimension.values.len();
            place.insert(0, format!("{dim}={}", dimension.values[rest % count].printed()));
            rest /= count;
        }
        listed.push(place.join(" "));
    }
    let more = if missing > LISTED { ", …" } else { "" };
    let total = cube.fields.len();
    format!("{missing} of {total} fields are missing, stored as the fill value: {}{more}", listed.join(", "))
}

impl ArraySource for TgmSource {
    fn name(&self) -> &str {
        self.file.name()
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
        match &self.contents[variable] {
            Contents::Bytes(bytes) => {
                crate::formats::strided::copy_box(bytes, &item.shape, item.item_size(), (start, extents), out)
                    .map_err(|error| Error::new(self.name().into(), error.into()))
            }
            Contents::Objects { fields, outer, fill } => {
                let (outer, size) = (*outer, item.item_size());
                let inner: u64 = extents[outer..].iter().product();
                let inner = usize::try_from(inner).unwrap_or(usize::MAX).saturating_mul(size);
                let is_whole = extents[outer..] == item.shape[outer..];
                let selection = if is_whole {
                    None
                } else {
                    let axes: Vec<AxisSlice> = start[outer..]
                        .iter()
                        .zip(&extents[outer..])
                        .map(|(&start, &extent)| AxisSlice { start, stop: start + extent, step: 1 })
                        .collect();
                    let selection = Selection::new(axes, &item.shape[outer..]);
                    Some(selection.map_err(|error| refused(self.name(), error.to_string()))?)
                };
                let has_missing = fields.iter().any(Option::is_none);
                out.par_chunks_mut(inner.max(1)).enumerate().try_for_each(|(number, part)| {
                    let place = crate::arrays::place_of(&start[..outer], &extents[..outer], number);
                    let linear =
                        place.iter().zip(&item.shape).fold(0, |linear, (at, extent)| linear * extent + at);
                    let field =
                        usize::try_from(linear).ok().and_then(|linear| fields.get(linear).copied().flatten());
                    let Some(field) = field else {
                        part.chunks_exact_mut(size).for_each(|slot| slot.copy_from_slice(fill));
                        return Ok(());
                    };
                    self.decode(field, selection.as_ref(), part)?;
                    if field.masked {
                        let dtype = item.dtype().unwrap_or(DType::U8);
                        super::write::replace(dtype, part, super::write::is_nan, fill);
                    } else if has_missing
                        && !fill_is_nan(item.kind, fill)
                        && part.chunks_exact(size).any(|value| value == fill)
                    {
                        let name = tercet_core::escape::name(&item.name);
                        return Err(refused(
                            self.name(),
                            format!(
                                "`{name}` has missing fields, and a value at {place:?} equals the fill value"
                            ),
                        ));
                    }
                    Ok(())
                })
            }
            Contents::Text { .. } | Contents::Strings(_) => {
                Err(refused(self.name(), format!("`{}` contains strings", item.name)))
            }
        }
    }

    fn zstd(&self, variable: usize) -> Option<ZstdChunks> {
        let Kind::Number(dtype) = self.header.variables.get(variable)?.kind else { return None };
        let Contents::Objects { fields, fill, .. } = &self.contents[variable] else { return None };
        // Values of other fields are compared with the fill value.
        if dtype == DType::Bool
            || fields.iter().any(Option::is_none) && !fill_is_nan(Kind::Number(dtype), fill)
        {
            return None;
        }
        let first = fields.iter().flatten().next()?;
        let message = self.file.message(first.message).ok()?;
        let object = message.object(first.object).ok()?;
        let level = object.descriptor().params.get("zstd_level").and_then(Value::as_i128);
        is_zstd(&object).then_some(ZstdChunks { level: level.and_then(|level| i32::try_from(level).ok()) })
    }

    fn stored_chunk(&self, variable: usize, coords: &[u64]) -> Result<Option<Vec<u8>>, Error> {
        let Contents::Objects { fields, outer, .. } = &self.contents[variable] else { return Ok(None) };
        let shape = &self.header.variables[variable].shape;
        let linear = coords[..*outer].iter().zip(shape).fold(0, |linear, (at, extent)| linear * extent + at);
        let field = usize::try_from(linear).ok().and_then(|linear| fields.get(linear).copied().flatten());
        let Some(field) = field.filter(|field| !field.masked) else { return Ok(None) };
        let message = self.file.message(field.message)?;
        let object = message.object(field.object)?;
        Ok(if is_zstd(&object) { Some(object.payload()?.to_vec()) } else { None })
    }

    fn read_strings(&self, variable: usize) -> Result<Vec<String>, Error> {
        match &self.contents[variable] {
            Contents::Strings(strings) => Ok(strings.clone()),
            Contents::Text { fields, width } => {
                let mut strings = Vec::new();
                let width = usize::try_from(*width).unwrap_or(usize::MAX).max(1);
                for field in fields.iter().flatten() {
                    let bytes = self.file.message(field.message)?.object(field.object)?.decode_to_vec()?;
                    for text in bytes.chunks(width) {
                        let len = text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                        let text = std::str::from_utf8(&text[..len])
                            .map_err(|_| malformed(self.name(), "a string is not UTF-8"))?;
                        strings.push(text.to_owned());
                    }
                }
                Ok(strings)
            }
            _ => Err(refused(self.name(), "the variable does not contain strings")),
        }
    }
}

/// Whether the payload of an object is its values, little-endian, compressed with Zstandard alone.
fn is_zstd(object: &Object<'_>) -> bool {
    let descriptor = object.descriptor();
    let is_little = descriptor.stored_order() == ByteOrder::Little || descriptor.dtype.swap_unit() == 1;
    let has_masks = !object.masks_span().is_empty();
    descriptor.encoding == "none"
        && descriptor.filter == "none"
        && descriptor.compression == "zstd"
        && is_little
        && !has_masks
}

fn fill_is_nan(kind: Kind, fill: &[u8]) -> bool {
    matches!(kind, Kind::Number(dtype) if super::write::is_nan(dtype, fill))
}
