//! [`View`]: a part of a source, with other names and types.

use std::sync::atomic::{AtomicU64, Ordering};

use tercet_core::tensor::{AxisSlice, BoxCopy};
use tercet_core::{DType, Limits, TensorView};
use tercet_tet::{AttrValue, File, LabelSelection, Layout, PositionRange, Writer, WriterOptions};

use super::cast::cast;
use super::convert::place_of;
use super::model::{Attr, AttrData, Header, Kind, Number, Numbers, Variable, number_at, push_number};
use super::source::{ArraySource, ZstdChunks, read_all, refused};
use crate::Error;

/// What a [`View`] selects and changes.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ViewOptions {
    /// The variables, with those that they need: coordinates, bounds, grid mappings. Empty: all.
    pub variables: Vec<String>,
    /// Positions of dimensions: `time=0..24`.
    pub positions: Vec<(String, String)>,
    /// Labels of dimensions: `lat=60..30`.
    pub labels: Vec<(String, String)>,
    /// New names of variables and dimensions.
    pub renames: Vec<(String, String)>,
    /// Decode packed values: `scale_factor`, `add_offset`, missing values become NaN, also of variables that are not packed.
    pub unpack: bool,
    /// Element types of variables; without a name of all float variables that are not coordinates.
    pub dtypes: Vec<(Option<String>, DType)>,
}

/// Integers up to this are exact in float64.
const EXACT: u128 = 1 << 53;

/// A part of a source, with other names and types. It is a source itself.
pub struct View<'s> {
    source: &'s dyn ArraySource,
    header: Header,
    parts: Vec<Part>,
}

struct Part {
    source: usize,
    slices: Vec<AxisSlice>,
    packing: Option<Packing>,
    /// The type of the values before they are cast.
    decoded: DType,
    /// The bits of the largest error of values that were cast to a type that does not hold all of them.
    cast_error: Option<AtomicU64>,
}

/// The packing of a variable by the CF conventions.
struct Packing {
    stored: DType,
    /// The type that the stored bits are read as: NetCDF classic has no unsigned integers but bytes.
    read: DType,
    /// Whether there is a scale or an offset, beside missing values.
    is_scaled: bool,
    scale: f64,
    offset: f64,
    missing: Vec<f64>,
    valid: (f64, f64),
}

impl std::fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("header", &self.header).finish_non_exhaustive()
    }
}

impl<'s> View<'s> {
    /// Selects a part of a source.
    pub fn new(source: &'s dyn ArraySource, options: &ViewOptions) -> Result<Self, Error> {
        let input = source.header();
        let mut header = Header { variables: Vec::new(), ..input.clone() };
        if !options.variables.is_empty() {
            header.unreadable.retain(|(name, _)| options.variables.contains(name));
        }
        let slices = dim_slices(source, options)?;
        for dim in &mut header.dims {
            if let Some((_, slice)) = slices.iter().find(|(name, _)| *name == dim.name) {
                dim.len = slice.count();
            }
        }
        let known = |name: &String| input.variables.iter().any(|variable| variable.name == *name);
        if let Some((_, name)) = options
            .dtypes
            .iter()
            .find_map(|(name, dtype)| name.as_ref().filter(|name| !known(name)).map(|name| (dtype, name)))
        {
            return Err(unknown(source, name));
        }
        let mut parts = Vec::new();
        for number in selected(source, &options.variables)? {
            let variable = &input.variables[number];
            let slices_of: Vec<AxisSlice> = variable
                .dims
                .iter()
                .zip(&variable.shape)
                .map(|(dim, extent)| {
                    let found = slices.iter().find(|(name, _)| name == dim);
                    found.map_or(AxisSlice::full(*extent), |(_, slice)| *slice)
                })
                .collect();
            let is_bounds = input.is_bounds(&variable.name);
            let (item, mut part) = part(variable, number, slices_of, is_bounds, options);
            if let Some(target) = item.dtype().filter(|target| !holds(*target, part.decoded)) {
                header.notes.push((variable.name.clone(), format!("{} stored as {target}", part.decoded)));
                part.cast_error = Some(AtomicU64::new(0));
            }
            header.variables.push(item);
            parts.push(part);
        }
        let used: Vec<&String> = header.variables.iter().flat_map(|variable| &variable.dims).collect();
        if !options.variables.is_empty() {
            let used: Vec<String> = used.into_iter().cloned().collect();
            header.dims.retain(|dim| used.contains(&dim.name));
        }
        rename(source, &mut header, &options.renames)?;
        Ok(Self { source, header, parts })
    }
}

/// The selected variables with their coordinates, bounds and grid mappings.
fn selected(source: &dyn ArraySource, names: &[String]) -> Result<Vec<usize>, Error> {
    let input = source.header();
    if names.is_empty() {
        return Ok((0..input.variables.len()).collect());
    }
    let mut chosen = Vec::new();
    for name in names {
        match input.find(name) {
            Some(number) => chosen.push(number),
            None if input.unreadable.iter().any(|(found, _)| found == name) => {}
            None => return Err(unknown(source, name)),
        }
    }
    let mut next = 0;
    while let Some(&number) = chosen.get(next) {
        next += 1;
        let variable = &input.variables[number];
        let mut related: Vec<String> = variable.dims.clone();
        for key in
            ["coordinates", "bounds", "grid_mapping", "ancillary_variables", "cell_measures", "formula_terms"]
        {
            let names =
                variable.attr(key).and_then(AttrData::as_text).into_iter().flat_map(str::split_whitespace);
            related.extend(names.flat_map(|name| candidates(&variable.name, name)));
        }
        for name in related {
            if let Some(found) = input.find(&name).filter(|found| !chosen.contains(found)) {
                chosen.push(found);
            }
        }
    }
    chosen.sort_unstable();
    chosen.dedup();
    Ok(chosen)
}

/// What a name in an attribute of a variable can refer to: variables of its group and of the groups around it.
fn candidates(variable: &str, name: &str) -> Vec<String> {
    let mut names = vec![name.trim_start_matches('/').to_owned()];
    let mut path = variable;
    while let Some((group, _)) = path.rsplit_once('/') {
        names.push(format!("{group}/{name}"));
        path = group;
    }
    names
}

fn unknown(source: &dyn ArraySource, name: &str) -> Error {
    let known: Vec<&str> =
        source.header().variables.iter().take(20).map(|variable| variable.name.as_str()).collect();
    refused(source.name(), format!("no variable `{name}`; there are {}", known.join(", ")))
}

/// The positions of dimensions that are selected.
fn dim_slices(source: &dyn ArraySource, options: &ViewOptions) -> Result<Vec<(String, AxisSlice)>, Error> {
    let mut slices: Vec<(String, AxisSlice)> = Vec::new();
    let both = options
        .positions
        .iter()
        .map(|item| (item, false))
        .chain(options.labels.iter().map(|item| (item, true)));
    for ((name, text), by_label) in both {
        let header = source.header();
        let Some(dim) = header.dim(name) else {
            let known: Vec<&str> = header.dims.iter().map(|dim| dim.name.as_str()).collect();
            return Err(refused(
                source.name(),
                format!("no dimension `{name}`; there are {}", known.join(", ")),
            ));
        };
        if slices.iter().any(|(found, _)| found == name) {
            return Err(refused(source.name(), format!("the dimension `{name}` is selected twice")));
        }
        // The dataset is not one of the source.
        let failed = |error: tercet_tet::Error| match error.kind() {
            tercet_tet::ErrorKind::Compute { detail, .. } => refused(source.name(), detail.to_string()),
            _ => error.into(),
        };
        let file = axis_file(source, name, dim.len, by_label)?;
        let dataset = file.dataset("axis")?;
        let select = dataset.select();
        let select = if by_label {
            let parsed = match select.coordinates(0).map_err(failed)? {
                Some(coordinates) => coordinates.parse_selection(text),
                None => LabelSelection::parse(text),
            };
            select.sel(0, parsed).map_err(failed)?
        } else {
            let range = PositionRange::parse(text)
                .ok_or_else(|| refused(source.name(), format!("invalid positions `{text}` of `{name}`")))?;
            select.isel(0, range).map_err(failed)?
        };
        if select.is_reversed() {
            return Err(refused(source.name(), format!("`{name}={text}` selects in reverse order")));
        }
        slices.push((name.clone(), select.selection().map_err(failed)?.axes()[0]));
    }
    Ok(slices)
}

/// A file in memory with one axis and its coordinates: selections have the meaning that they have for `.tet` files.
fn axis_file(source: &dyn ArraySource, dim: &str, len: u64, by_label: bool) -> Result<File, Error> {
    let failed = |error: tercet_tet::LayoutError| refused(source.name(), error.to_string());
    if len == 0 {
        return Err(refused(source.name(), format!("the dimension `{dim}` is empty")));
    }
    let mut layout = Layout::new();
    let axis = layout.dataset("axis", DType::U8, [len], [len]).map_err(failed)?;
    let axis_name = if dim == "axis" { "axis_" } else { dim };
    layout.dims(axis, [axis_name]).map_err(failed)?;
    let coordinate = source.header().find(dim).filter(|_| by_label);
    let mut numbers = None;
    if let Some(number) = coordinate {
        let variable = &source.header().variables[number];
        if variable.kind == Kind::String {
            layout.labels(axis, axis_name, source.read_strings(number)?).map_err(failed)?;
        } else if let (Kind::Number(dtype), 1) = (variable.kind, variable.shape.len()) {
            let values = read_all(source, number)?;
            let size = dtype.size().unwrap_or(1);
            let wide = if dtype == DType::F32 { DType::F32 } else { DType::F64 };
            let mut bytes = vec![0; values.bytes().len() / size * wide.size().unwrap_or(8)];
            cast(dtype, wide, values.bytes(), &mut bytes)
                .map_err(|_| refused(source.name(), format!("`{dim}` has no numbers")))?;
            let id = layout.dataset(axis_name, wide, [len], [len]).map_err(failed)?;
            layout.dims(id, [axis_name]).map_err(failed)?;
            for key in ["units", "calendar"] {
                if let Some(text) =
                    variable.attr(key).and_then(AttrData::as_text).filter(|text| !text.is_empty())
                {
                    layout.set_attr(id, key, &AttrValue::from(text)).map_err(failed)?;
                }
            }
            numbers = Some((id, wide, bytes));
        }
    }
    let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), layout, WriterOptions::new())?;
    let shape = [len];
    let zeros = vec![0; usize::try_from(len).unwrap_or(0)];
    let view = |dtype, bytes| {
        TensorView::new(dtype, &shape, bytes).map_err(|error| refused(source.name(), error.to_string()))
    };
    writer.array(axis, view(DType::U8, &zeros)?)?;
    if let Some((id, dtype, bytes)) = &numbers {
        writer.array(*id, view(*dtype, bytes)?)?;
    }
    let bytes = writer.finish()?.output;
    Ok(File::from_bytes(source.name(), bytes)?)
}

/// Attributes of packed values, which decoded values do not have.
const DECODED: [&str; 8] = [
    "scale_factor",
    "add_offset",
    "_FillValue",
    "missing_value",
    "valid_min",
    "valid_max",
    "valid_range",
    "_Unsigned",
];

/// Whether every value of one type is a value of another.
fn holds(target: DType, source: DType) -> bool {
    use DType::{BF16, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};

    target == source
        || match source {
            F16 | BF16 => matches!(target, F32 | F64),
            F32 => target == F64,
            U8 => matches!(target, U16 | U32 | U64 | I16 | I32 | I64 | F16 | F32 | F64),
            I8 => matches!(target, I16 | I32 | I64 | F16 | F32 | F64),
            U16 => matches!(target, U32 | U64 | I32 | I64 | F32 | F64),
            I16 => matches!(target, I32 | I64 | F32 | F64),
            U32 => matches!(target, U64 | I64 | F64),
            I32 => matches!(target, I64 | F64),
            _ => false,
        }
}

/// A variable of the view.
fn part(
    variable: &Variable,
    number: usize,
    slices: Vec<AxisSlice>,
    is_bounds: bool,
    options: &ViewOptions,
) -> (Variable, Part) {
    let mut item = variable.clone();
    item.shape = slices.iter().map(|slice| slice.count()).collect();
    if let Some(chunks) = &mut item.chunks {
        let is_shifted = slices.iter().zip(&variable.shape).any(|(slice, extent)| slice.count() != *extent);
        if is_shifted {
            chunks
                .iter_mut()
                .zip(&item.shape)
                .for_each(|(chunk, extent)| *chunk = (*chunk).min((*extent).max(1)));
        }
    }
    let packing = if options.unpack { packing(variable) } else { None };
    if let Some(packing) = &packing {
        let is_float = |name: &str| matches!(variable.attr(name), Some(AttrData::Numbers(numbers)) if numbers.dtype == DType::F32);
        let narrow = matches!(packing.stored, DType::I8 | DType::U8 | DType::I16 | DType::U16 | DType::F32);
        let dtype = match packing.stored {
            // Fill values alone: the narrowest float with all values, as xarray decodes them.
            stored if !packing.is_scaled && stored.is_float() => stored,
            _ if narrow && (!packing.is_scaled || is_float("scale_factor") || is_float("add_offset")) => {
                DType::F32
            }
            _ => DType::F64,
        };
        item.kind = Kind::Number(dtype);
        item.attrs.retain(|attr| !DECODED.contains(&attr.name.as_str()));
        let nan = Numbers::parse(dtype, &["NaN"], false);
        item.attrs.extend(nan.map(|nan| Attr::new("_FillValue", AttrData::Numbers(nan))));
    }
    let decoded = item.dtype().unwrap_or(DType::U8);
    let named = options.dtypes.iter().find(|(name, _)| name.as_deref() == Some(&variable.name));
    let is_data = decoded.is_float() && variable.dims.len() > 1 && !is_bounds;
    let general = options.dtypes.iter().find(|(name, _)| name.is_none() && is_data);
    if let (Some((_, dtype)), Kind::Number(_)) = (named.or(general), item.kind) {
        item.kind = Kind::Number(*dtype);
        for attr in &mut item.attrs {
            if let AttrData::Numbers(numbers) = &attr.value
                && ["_FillValue", "missing_value", "valid_min", "valid_max", "valid_range"]
                    .contains(&attr.name.as_str())
                && numbers.dtype == decoded
            {
                let mut bytes = vec![0; numbers.len() * dtype.size().unwrap_or(1)];
                if cast(decoded, *dtype, &numbers.bytes, &mut bytes).is_ok() {
                    attr.value =
                        AttrData::Numbers(Numbers { dtype: *dtype, bytes, is_list: numbers.is_list });
                }
            }
        }
    }
    (item, Part { source: number, slices, packing, decoded, cast_error: None })
}

fn packing(variable: &Variable) -> Option<Packing> {
    let number = |name: &str| variable.attr(name).and_then(AttrData::as_number).map(Number::as_f64);
    let (scale, offset) = (number("scale_factor"), number("add_offset"));
    let Kind::Number(stored) = variable.kind else { return None };
    let read = read_type(variable, stored);
    // Values of attributes in the type of the stored values.
    let values = |name: &str| -> Vec<f64> {
        let Some(AttrData::Numbers(numbers)) = variable.attr(name) else { return Vec::new() };
        numbers.iter().map(|value| as_stored(value, stored, read)).collect()
    };
    let first = |name: &str| values(name).first().copied();
    let is_scaled = scale.is_some() || offset.is_some();
    let mut missing: Vec<f64> = first("_FillValue").into_iter().collect();
    missing.extend(values("missing_value"));
    let range = match values("valid_range")[..] {
        [low, high] => (low, high),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    };
    let valid = (first("valid_min").unwrap_or(range.0), first("valid_max").unwrap_or(range.1));
    // Coordinates have no missing values, and the valid range of integers may be one of flags.
    let is_coordinate = variable.dims == [variable.name.as_str()];
    let replaces = missing.iter().any(|fill| !fill.is_nan())
        || stored.is_float() && valid != (f64::NEG_INFINITY, f64::INFINITY);
    if !is_scaled && (!replaces || is_coordinate) {
        return None;
    }
    let (scale, offset) = (scale.unwrap_or(1.0), offset.unwrap_or(0.0));
    Some(Packing { stored, read, is_scaled, scale, offset, missing, valid })
}

/// The type that `_Unsigned` declares the values to have.
fn read_type(variable: &Variable, stored: DType) -> DType {
    use DType::{I8, I16, I32, I64, U8, U16, U32, U64};

    let declared = variable.attr("_Unsigned").and_then(AttrData::as_text).map(str::to_ascii_lowercase);
    let pairs = [(I8, U8), (I16, U16), (I32, U32), (I64, U64)];
    let is_unsigned = match declared.as_deref() {
        Some("true") => true,
        Some("false") => false,
        _ => return stored,
    };
    let pair = pairs.into_iter().find(|(signed, unsigned)| [*signed, *unsigned].contains(&stored));
    pair.map_or(stored, |(signed, unsigned)| if is_unsigned { unsigned } else { signed })
}

/// A number of an attribute as a stored value: rounded to a narrower float, and with the bits of the declared type.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the conversion of the attribute to the type of the values"
)]
fn as_stored(value: Number, stored: DType, read: DType) -> f64 {
    let mut bytes = Vec::new();
    match (value, stored) {
        (value, DType::F32) => f64::from(value.as_f64() as f32),
        (value, _) if read != stored && push_number(stored, value, &mut bytes) => {
            number_at(read, &bytes).map_or(value.as_f64(), Number::as_f64)
        }
        (value, _) => value.as_f64(),
    }
}

impl Packing {
    /// Decodes values into float64. The error is the first element that this would round, which is an integer that is not scaled.
    fn decode(&self, bytes: &[u8]) -> Result<Vec<u8>, usize> {
        let size = self.stored.size().unwrap_or(1);
        let mut decoded = Vec::with_capacity(bytes.len() / size * 8);
        for (position, element) in bytes.chunks_exact(size).enumerate() {
            let raw = number_at(self.read, element);
            let value = raw.map_or(f64::NAN, Number::as_f64);
            let is_missing = self.missing.contains(&value) || value < self.valid.0 || value > self.valid.1;
            let is_wide = matches!(raw, Some(Number::Int(whole)) if whole.unsigned_abs() > EXACT);
            if is_wide && !is_missing && !self.is_scaled {
                return Err(position);
            }
            let value = if is_missing { f64::NAN } else { value * self.scale + self.offset };
            decoded.extend(value.to_le_bytes());
        }
        Ok(decoded)
    }
}

/// Renames variables and dimensions, and the references to them in attributes.
fn rename(source: &dyn ArraySource, header: &mut Header, renames: &[(String, String)]) -> Result<(), Error> {
    for (old, new) in renames {
        let mut found = false;
        if header.find(new).is_some() || header.dim(new).is_some() {
            return Err(refused(source.name(), format!("cannot rename `{old}`: there is a `{new}` already")));
        }
        for (name, _) in header.notes.iter_mut().filter(|(name, _)| name == old) {
            name.clone_from(new);
        }
        for dim in header.dims.iter_mut().filter(|dim| dim.name == *old) {
            dim.name.clone_from(new);
            found = true;
        }
        for variable in &mut header.variables {
            if variable.name == *old {
                variable.name.clone_from(new);
                found = true;
            }
            for dim in variable.dims.iter_mut().filter(|dim| *dim == old) {
                dim.clone_from(new);
            }
            for attr in &mut variable.attrs {
                let refers = ["coordinates", "bounds", "grid_mapping", "ancillary_variables"]
                    .contains(&attr.name.as_str());
                if let (true, AttrData::Text(text)) = (refers, &mut attr.value) {
                    let words: Vec<&str> =
                        text.split(' ').map(|word| if word == old { new } else { word }).collect();
                    *text = words.join(" ");
                }
            }
        }
        if !found {
            return Err(refused(source.name(), format!("no variable or dimension `{old}`")));
        }
    }
    Ok(())
}

impl ArraySource for View<'_> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn limits(&self) -> Limits {
        self.source.limits()
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn is_chunked(&self, variable: usize) -> bool {
        self.source.is_chunked(self.parts[variable].source)
    }

    fn read_box(&self, variable: usize, start: &[u64], extents: &[u64], out: &mut [u8]) -> Result<(), Error> {
        let part = &self.parts[variable];
        let original = &self.source.header().variables[part.source];
        let stored = original.dtype().unwrap_or(DType::U8);
        let target = self.header.variables[variable].dtype().unwrap_or(DType::U8);
        if part.packing.is_none() && target == stored {
            return self.read_stored(part, stored, start, extents, out);
        }
        let count = out.len() / target.size().unwrap_or(1).max(1);
        let mut raw = vec![0; count * stored.size().unwrap_or(1)];
        self.read_stored(part, stored, start, extents, &mut raw)?;
        let (from, values) = match &part.packing {
            Some(packing) => {
                let decoded = packing.decode(&raw).map_err(|element| {
                    let (place, name) =
                        (place_of(start, extents, element), tercet_core::escape::name(&original.name));
                    let detail = format!(
                        "`{name}` at {place:?} is beyond 2^53, and float64 would round it; keep it packed"
                    );
                    refused(self.name(), detail)
                })?;
                (DType::F64, decoded)
            }
            None => (part.decoded, raw),
        };
        let error = cast(from, target, &values, out).map_err(|(element, text)| {
            let place = place_of(start, extents, element);
            let name = tercet_core::escape::name(&original.name);
            refused(self.name(), format!("`{name}` at {place:?} is {text}, which does not fit into {target}"))
        })?;
        if let Some(largest) = &part.cast_error {
            // The bits of floats that are not negative have the order of the floats.
            largest.fetch_max(error.abs().to_bits(), Ordering::Relaxed);
        }
        Ok(())
    }

    fn cast_error(&self, variable: usize) -> Option<f64> {
        let part = &self.parts[variable];
        let largest = part.cast_error.as_ref()?;
        Some(f64::from_bits(largest.load(Ordering::Relaxed)))
    }

    fn zstd(&self, variable: usize) -> Option<ZstdChunks> {
        self.chunk_offset(variable).and_then(|_| self.source.zstd(self.parts[variable].source))
    }

    fn stored_chunk(&self, variable: usize, coords: &[u64]) -> Result<Option<Vec<u8>>, Error> {
        let (part, item) = (&self.parts[variable], &self.header.variables[variable]);
        let original = &self.source.header().variables[part.source];
        let Some(offset) = self.chunk_offset(variable) else { return Ok(None) };
        let of_source: Vec<u64> = coords.iter().zip(&offset).map(|(at, offset)| at + offset).collect();
        // A selection can end inside a chunk.
        let extents = |coords: &[u64], shape: &[u64]| -> Vec<u64> {
            let chunks = original.chunks.iter().flatten();
            let extent =
                |((at, chunk), extent): ((&u64, &u64), &u64)| extent.saturating_sub(at * chunk).min(*chunk);
            coords.iter().zip(chunks).zip(shape).map(extent).collect()
        };
        if extents(coords, &item.shape) != extents(&of_source, &original.shape) {
            return Ok(None);
        }
        self.source.stored_chunk(part.source, &of_source)
    }

    fn read_strings(&self, variable: usize) -> Result<Vec<String>, Error> {
        let part = &self.parts[variable];
        let all = self.source.read_strings(part.source)?;
        let shape = &self.source.header().variables[part.source].shape;
        if part.slices.iter().zip(shape).all(|(slice, extent)| slice.count() == *extent) {
            return Ok(all);
        }
        let counts: Vec<u64> = part.slices.iter().map(|slice| slice.count()).collect();
        let count: u64 = counts.iter().product();
        let origin = vec![0; counts.len()];
        let selected = (0..usize::try_from(count).unwrap_or(0)).map(|number| {
            let place = place_of(&origin, &counts, number);
            let axes = place.iter().zip(&part.slices).zip(shape);
            let linear =
                axes.fold(0, |linear, ((at, slice), extent)| linear * extent + slice.start + at * slice.step);
            all.get(usize::try_from(linear).unwrap_or(usize::MAX)).cloned().unwrap_or_default()
        });
        Ok(selected.collect())
    }
}

impl View<'_> {
    /// The coordinates of the first chunk of a variable in the chunk grid of the source; `None` if the values are changed, or if the selection
    /// is not one of chunks.
    fn chunk_offset(&self, variable: usize) -> Option<Vec<u64>> {
        let (part, item) = (&self.parts[variable], &self.header.variables[variable]);
        let original = &self.source.header().variables[part.source];
        let chunks = original.chunks.as_ref().filter(|chunks| item.chunks.as_ref() == Some(*chunks))?;
        if part.packing.is_some() || item.kind != original.kind {
            return None;
        }
        let offset = |(slice, chunk): (&AxisSlice, &u64)| {
            (slice.step == 1 && slice.start.is_multiple_of(*chunk)).then(|| slice.start / chunk)
        };
        part.slices.iter().zip(chunks).map(offset).collect()
    }

    fn read_stored(
        &self,
        part: &Part,
        dtype: DType,
        start: &[u64],
        extents: &[u64],
        out: &mut [u8],
    ) -> Result<(), Error> {
        let from: Vec<u64> =
            start.iter().zip(&part.slices).map(|(start, slice)| slice.start + start * slice.step).collect();
        if extents.contains(&0) {
            return Ok(());
        }
        if part.slices.iter().all(|slice| slice.step == 1) {
            return self.source.read_box(part.source, &from, extents, out);
        }
        // Every position from the first to the last is read, then every step-th is copied.
        let reach: Vec<u64> =
            extents.iter().zip(&part.slices).map(|(extent, slice)| (extent - 1) * slice.step + 1).collect();
        let size = dtype.size().unwrap_or(1);
        let bytes = reach.iter().fold(size as u64, |bytes, extent| bytes.saturating_mul(*extent));
        tercet_core::limits::check_limit("a selection with steps", bytes, 4 << 30)
            .map_err(|limit| Error::new(self.name().into(), limit.into()))?;
        let mut all = vec![0; usize::try_from(bytes).unwrap_or(0)];
        self.source.read_box(part.source, &from, &reach, &mut all)?;
        let fit = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        let (mut from_strides, mut to_strides) = (vec![size; reach.len()], vec![size; reach.len()]);
        for axis in (0..reach.len().saturating_sub(1)).rev() {
            from_strides[axis] = from_strides[axis + 1] * fit(reach[axis + 1]);
            to_strides[axis] = to_strides[axis + 1] * fit(extents[axis + 1]);
        }
        from_strides.iter_mut().zip(&part.slices).for_each(|(stride, slice)| *stride *= fit(slice.step));
        let counts: Vec<usize> = extents.iter().map(|extent| fit(*extent)).collect();
        BoxCopy::new(size, &counts, (0, &from_strides), (0, &to_strides))
            .run(&all, out)
            .map_err(|error| Error::new(self.name().into(), error.into()))
    }
}
