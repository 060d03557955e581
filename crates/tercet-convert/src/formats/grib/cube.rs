//! Fields stacked to variables: one for each parameter, with dimensions for the keys that vary.
//!
//! ```text
//! t 850 hPa 0 h ┐
//! t 850 hPa 6 h ├─▶ t (step, isobaricInhPa, latitude, longitude)
//! t 500 hPa 0 h ┘     the field of 6 h at 500 hPa is missing: NaN, and reported
//! ```

use std::collections::HashMap;

use tercet_core::DType;

use super::grid::{Grid, GridKind};
use super::level::LevelKind;
use super::message::{Field, Messages};
use super::product::Product;
use crate::arrays::{Attr, AttrData, Dim, Header, Kind, Numbers, Variable};

/// The values of a variable.
#[derive(Debug)]
pub(super) enum Content {
    /// Fields, by their position along the axes before those of the grid; `None` is a missing field.
    Fields(Vec<Option<usize>>),
    /// Little-endian numbers.
    Numbers(Vec<u8>),
    /// Coordinates of a grid.
    Coordinates(usize, Coordinates),
}

/// Coordinates of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coordinates {
    RowLatitudes,
    ColumnLongitudes,
    Latitudes,
    Longitudes,
}

/// A value of an axis, ordered as numbers are.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Label(f64, f64);

impl Eq for Label {}

impl std::hash::Hash for Label {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.0.to_bits(), self.1.to_bits()).hash(state);
    }
}

impl Label {
    fn order(self, other: Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(self.1.total_cmp(&other.1))
    }
}

/// The keys that become dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Number,
    Time,
    Step,
    Level,
}

const KEYS: [Key; 4] = [Key::Number, Key::Time, Key::Step, Key::Level];

impl Key {
    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970")]
    fn label(self, product: &Product) -> Option<Label> {
        // No zero is negative: labels are compared by their bits.
        let label = |value: f64| Label(value + 0.0, 0.0);
        match self {
            Self::Number => product.number.map(|number| label(number.into())),
            Self::Time => Some(label(product.time as f64)),
            Self::Step => Some(label(product.step)),
            Self::Level => Some(Label(product.level.value + 0.0, product.level.bottom.unwrap_or(0.0) + 0.0)),
        }
    }

    fn name(self, kind: LevelKind) -> String {
        match self {
            Self::Number => "number".to_owned(),
            Self::Time => "time".to_owned(),
            Self::Step => "step".to_owned(),
            Self::Level => kind.name(),
        }
    }
}

/// Fields that are one variable: all but the keys of the dimensions is the same.
struct Group {
    fields: Vec<usize>,
    name: String,
}

/// The dimensions before those of the grid with their lengths, the field of each position, the coordinates that are not dimensions.
type Stacked = (Vec<(String, u64)>, Vec<Option<usize>>, Vec<String>);

/// The axes of a variable.
struct Axis {
    key: Key,
    labels: Vec<Label>,
}

/// The variables of a file.
pub(super) struct Cubes<'m> {
    messages: &'m Messages,
    pub(super) header: Header,
    pub(super) contents: Vec<Content>,
    /// Coordinates that exist already: name, level kind, labels, whether they have an axis; and the name that they have.
    coordinates: Vec<(String, Vec<Label>, bool, String)>,
    /// Names of the dimensions of grids.
    grids: HashMap<usize, (Vec<String>, Vec<String>)>,
}

impl<'m> Cubes<'m> {
    /// Stacks the fields.
    pub(super) fn new(messages: &'m Messages) -> Self {
        let mut cubes = Self {
            messages,
            header: Header::default(),
            contents: Vec::new(),
            coordinates: Vec::new(),
            grids: HashMap::new(),
        };
        cubes.header.unreadable.clone_from(&messages.unreadable);
        for group in groups(messages) {
            cubes.add(&group);
        }
        cubes.global_attrs();
        cubes
    }

    fn field(&self, number: usize) -> &'m Field {
        &self.messages.fields[number]
    }

    /// A name that no variable and no dimension has.
    fn unique(&self, name: &str) -> String {
        let is_taken = |name: &str| self.header.find(name).is_some() || self.header.dim(name).is_some();
        let numbered = |number: u32| if number == 0 { name.to_owned() } else { format!("{name}_{number}") };
        (0..u32::MAX).map(numbered).find(|name| !is_taken(name)).unwrap_or_default()
    }

    fn push(&mut self, variable: Variable, content: Content) {
        self.header.variables.push(variable);
        self.contents.push(content);
    }

    /// Adds a variable with its coordinates.
    fn add(&mut self, group: &Group) {
        let first = self.field(group.fields[0]);
        let kind = first.product.level.kind;
        let labels = |key: Key| -> Vec<Label> {
            let mut labels: Vec<Label> =
                group.fields.iter().filter_map(|number| key.label(&self.field(*number).product)).collect();
            labels.sort_by(|a, b| a.order(*b));
            labels.dedup();
            // Pressure is listed from the ground up, as other programs do.
            if key == Key::Level && kind.name().starts_with("isobaric") {
                labels.reverse();
            }
            labels
        };
        let axes: Vec<Axis> = KEYS.into_iter().map(|key| Axis { key, labels: labels(key) }).collect();
        let axes: Vec<Axis> = axes.into_iter().filter(|axis| !axis.labels.is_empty()).collect();
        let product = axes.iter().fold(1usize, |product, axis| product.saturating_mul(axis.labels.len()));
        // Keys that do not vary independently would make a cube of mostly missing fields.
        let is_list = product > group.fields.len().saturating_mul(2).saturating_add(16);
        let (dims, slots, names) =
            if is_list { self.list(group, &axes, kind) } else { self.stack(group, &axes, kind) };
        self.variable(group, dims, slots, &names);
    }

    /// Coordinates for keys that vary independently.
    fn stack(&mut self, group: &Group, axes: &[Axis], kind: LevelKind) -> Stacked {
        let mut dims = Vec::new();
        let mut names = Vec::new();
        let mut key_names: HashMap<&'static str, (String, bool)> = HashMap::new();
        for axis in axes {
            let is_dim = axis.labels.len() > 1;
            let name = self.coordinate(axis.key, kind, &axis.labels, is_dim);
            if is_dim {
                dims.push((name.clone(), axis.labels.len() as u64));
            } else {
                names.push(name.clone());
            }
            match axis.key {
                Key::Time => drop(key_names.insert("time", (name, is_dim))),
                Key::Step => drop(key_names.insert("step", (name, is_dim))),
                _ => {}
            }
        }
        let of = |key: Key| axes.iter().find(|axis| axis.key == key).map_or(&[][..], |axis| &axis.labels);
        if let (Some(time), Some(step)) = (key_names.remove("time"), key_names.remove("step")) {
            let values: Vec<f64> = of(Key::Time)
                .iter()
                .flat_map(|time| of(Key::Step).iter().map(move |step| time.0 + step.0 * 3600.0))
                .collect();
            let mut valid_dims = Vec::new();
            for ((name, is_dim), key) in [(time, Key::Time), (step, Key::Step)] {
                if is_dim {
                    valid_dims.push((name, of(key).len() as u64));
                }
            }
            names.push(self.valid_time(&values, valid_dims));
        }
        let mut slots = vec![None; axes.iter().map(|axis| axis.labels.len()).product()];
        let position = |axis: &Axis, field: &Field| {
            let label = axis.key.label(&field.product);
            axis.labels.iter().position(|found| Some(*found) == label).unwrap_or(0)
        };
        // One lookup table per axis: groups may have many thousand fields.
        let tables: Vec<HashMap<Label, usize>> = axes
            .iter()
            .map(|axis| axis.labels.iter().enumerate().map(|(at, label)| (*label, at)).collect())
            .collect();
        for number in &group.fields {
            let field = self.field(*number);
            let slot = axes.iter().zip(&tables).fold(0, |slot, (axis, table)| {
                let at = axis.key.label(&field.product).and_then(|label| table.get(&label).copied());
                slot * axis.labels.len() + at.unwrap_or_else(|| position(axis, field))
            });
            slots[slot] = Some(*number);
        }
        (dims, slots, names)
    }

    /// One dimension for all fields, whose keys do not vary independently.
    fn list(&mut self, group: &Group, axes: &[Axis], kind: LevelKind) -> Stacked {
        let len = group.fields.len() as u64;
        let dim = self.unique("field");
        self.header.dims.push(Dim { name: dim.clone(), len, unlimited: false });
        let mut names = Vec::new();
        for axis in axes {
            let labels: Vec<Label> = group
                .fields
                .iter()
                .map(|number| axis.key.label(&self.field(*number).product).unwrap_or(Label(f64::NAN, 0.0)))
                .collect();
            let name = self.unique(&axis.key.name(kind));
            self.coordinate_variable(&name, axis.key, kind, &labels, &[(dim.clone(), len)]);
            names.push(name);
        }
        let valid: Vec<f64> = group
            .fields
            .iter()
            .map(|number| {
                let product = &self.field(*number).product;
                Key::Time.label(product).map_or(f64::NAN, |time| time.0 + product.step * 3600.0)
            })
            .collect();
        names.push(self.valid_time(&valid, vec![(dim.clone(), len)]));
        (vec![(dim, len)], group.fields.iter().copied().map(Some).collect(), names)
    }

    /// The name of a coordinate with these labels: one that exists, or a new one.
    fn coordinate(&mut self, key: Key, kind: LevelKind, labels: &[Label], is_dim: bool) -> String {
        let wanted = key.name(kind);
        let found = self
            .coordinates
            .iter()
            .find(|(name, found, has_axis, _)| *name == wanted && found == labels && *has_axis == is_dim);
        if let Some((.., name)) = found {
            return name.clone();
        }
        let name = self.unique(&wanted);
        let len = labels.len() as u64;
        let dims = if is_dim { vec![(name.clone(), len)] } else { Vec::new() };
        if is_dim {
            self.header.dims.push(Dim { name: name.clone(), len, unlimited: false });
        }
        self.coordinate_variable(&name, key, kind, labels, &dims);
        self.coordinates.push((wanted, labels.to_vec(), is_dim, name.clone()));
        name
    }

    fn coordinate_variable(
        &mut self,
        name: &str,
        key: Key,
        kind: LevelKind,
        labels: &[Label],
        dims: &[(String, u64)],
    ) {
        let mut attrs = match key {
            Key::Number => vec![
                Attr::text("long_name", "ensemble member numerical id"),
                Attr::text("units", "1"),
                Attr::text("standard_name", "realization"),
            ],
            Key::Time => vec![
                Attr::text("long_name", "initial time of forecast"),
                Attr::text("standard_name", "forecast_reference_time"),
                Attr::text("units", EPOCH),
                Attr::text("calendar", "proleptic_gregorian"),
            ],
            Key::Step => vec![
                Attr::text("long_name", "time since forecast_reference_time"),
                Attr::text("standard_name", "forecast_period"),
                Attr::text("units", "hours"),
            ],
            Key::Level => level_attrs(kind),
        };
        let has_bounds = key == Key::Level && self.has_bounds(kind);
        let bounds = if has_bounds { self.unique(&format!("{name}_bnds")) } else { String::new() };
        if has_bounds {
            attrs.push(Attr::text("bounds", &bounds));
        }
        let values: Vec<f64> = labels.iter().map(|label| label.0).collect();
        let (dtype, bytes) = if key == Key::Number {
            #[expect(clippy::cast_possible_truncation, reason = "the numbers were int32")]
            let numbers = values.iter().flat_map(|value| (*value as i32).to_le_bytes());
            (DType::I32, numbers.collect())
        } else {
            (DType::F64, le_bytes(&values))
        };
        let (names, shape): (Vec<String>, Vec<u64>) = dims.iter().cloned().unzip();
        let variable = Variable {
            name: name.to_owned(),
            kind: Kind::Number(dtype),
            dims: names.clone(),
            shape: shape.clone(),
            chunks: None,
            attrs,
        };
        self.push(variable, Content::Numbers(bytes));
        if has_bounds {
            let corners = "bnds".to_owned();
            if self.header.dim(&corners).is_none() {
                self.header.dims.push(Dim { name: corners.clone(), len: 2, unlimited: false });
            }
            let values: Vec<f64> = labels.iter().flat_map(|label| [label.0, label.1]).collect();
            let variable = Variable {
                name: bounds,
                kind: Kind::Number(DType::F64),
                dims: names.into_iter().chain([corners]).collect(),
                shape: shape.into_iter().chain([2]).collect(),
                chunks: None,
                attrs: Vec::new(),
            };
            self.push(variable, Content::Numbers(le_bytes(&values)));
        }
    }

    /// Whether levels of a kind are layers.
    fn has_bounds(&self, kind: LevelKind) -> bool {
        let is_layer =
            |field: &Field| field.product.level.kind == kind && field.product.level.bottom.is_some();
        self.messages.fields.iter().any(is_layer)
    }

    fn valid_time(&mut self, values: &[f64], dims: Vec<(String, u64)>) -> String {
        let (dims, shape): (Vec<String>, Vec<u64>) = dims.into_iter().unzip();
        let bytes = le_bytes(values);
        let exists = self.header.variables.iter().zip(&self.contents).find(|(variable, content)| {
            variable.name.starts_with("valid_time")
                && variable.dims == dims
                && matches!(content, Content::Numbers(found) if *found == bytes)
        });
        if let Some((variable, _)) = exists {
            return variable.name.clone();
        }
        let name = self.unique("valid_time");
        let attrs = vec![
            Attr::text("long_name", "time"),
            Attr::text("standard_name", "time"),
            Attr::text("units", EPOCH),
            Attr::text("calendar", "proleptic_gregorian"),
        ];
        let kind = Kind::Number(DType::F64);
        self.push(
            Variable { name: name.clone(), kind, dims, shape, chunks: None, attrs },
            Content::Numbers(bytes),
        );
        name
    }

    /// The dimensions of a grid, and the coordinates that are not dimensions. They are added with the first field of the grid.
    fn grid(&mut self, number: usize) -> (Vec<String>, Vec<String>) {
        if let Some(found) = self.grids.get(&number) {
            return found.clone();
        }
        let grid = &self.messages.grids[number];
        let latitude_attrs = || {
            vec![
                Attr::text("long_name", "latitude"),
                Attr::text("standard_name", "latitude"),
                Attr::text("units", "degrees_north"),
            ]
        };
        let longitude_attrs = || {
            vec![
                Attr::text("long_name", "longitude"),
                Attr::text("standard_name", "longitude"),
                Attr::text("units", "degrees_east"),
            ]
        };
        let coordinate = |name: &str, dims: &[String], shape: &[u64], attrs: Vec<Attr>| Variable {
            name: name.to_owned(),
            kind: Kind::Number(DType::F64),
            dims: dims.to_vec(),
            shape: shape.to_vec(),
            chunks: None,
            attrs,
        };
        let shape = grid.shape();
        let (dims, names) = match &grid.kind {
            GridKind::LatLon | GridKind::Gaussian(_) => {
                let (latitude, longitude) = (self.unique("latitude"), self.unique("longitude"));
                for (name, len) in [(&latitude, shape[0]), (&longitude, shape[1])] {
                    self.header.dims.push(Dim { name: name.clone(), len, unlimited: false });
                }
                let one =
                    coordinate(&latitude, std::slice::from_ref(&latitude), &shape[..1], latitude_attrs());
                self.push(one, Content::Coordinates(number, Coordinates::RowLatitudes));
                let one =
                    coordinate(&longitude, std::slice::from_ref(&longitude), &shape[1..], longitude_attrs());
                self.push(one, Content::Coordinates(number, Coordinates::ColumnLongitudes));
                (vec![latitude, longitude], Vec::new())
            }
            _ => {
                let wanted: &[&str] = if grid.is_reduced() { &["values"] } else { &["y", "x"] };
                let mut dims = Vec::new();
                for (name, len) in wanted.iter().zip(&shape) {
                    let name = self.unique(name);
                    self.header.dims.push(Dim { name: name.clone(), len: *len, unlimited: false });
                    dims.push(name);
                }
                let mut names = Vec::new();
                if has_points(grid) {
                    let (latitude, longitude) = (self.unique("latitude"), self.unique("longitude"));
                    let one = coordinate(&latitude, &dims, &shape, latitude_attrs());
                    self.push(one, Content::Coordinates(number, Coordinates::Latitudes));
                    let one = coordinate(&longitude, &dims, &shape, longitude_attrs());
                    self.push(one, Content::Coordinates(number, Coordinates::Longitudes));
                    names = vec![latitude, longitude];
                } else {
                    let reason = format!("coordinates of a {} grid are not computed", grid.name());
                    self.header
                        .unreadable
                        .push((format!("latitude and longitude of ({})", dims.join(", ")), reason));
                }
                (dims, names)
            }
        };
        self.grids.insert(number, (dims.clone(), names.clone()));
        (dims, names)
    }

    /// Adds the variable of a group.
    fn variable(
        &mut self,
        group: &Group,
        outer: Vec<(String, u64)>,
        slots: Vec<Option<usize>>,
        coordinates: &[String],
    ) {
        let fields: Vec<&Field> = group.fields.iter().map(|number| self.field(*number)).collect();
        let first = fields[0];
        let (grid_dims, grid_names) = self.grid(first.grid);
        let grid = &self.messages.grids[first.grid];
        let missing = slots.iter().filter(|slot| slot.is_none()).count();
        let has_missing =
            missing > 0 || fields.iter().any(|field| field.bitmap.is_some() || field.packing.has_missing());
        let is_narrow = fields.iter().all(|field| field.packing.fits_f32());
        let dtype = if is_narrow { DType::F32 } else { DType::F64 };
        let mut attrs = attributes(&fields, grid);
        let names: Vec<&str> = coordinates.iter().chain(&grid_names).map(String::as_str).collect();
        if !names.is_empty() {
            attrs.push(Attr::text("coordinates", names.join(" ")));
        }
        let name = self.unique(&group.name);
        if missing > 0 {
            let note =
                format!("{missing} of {} fields are not in the file; they are stored as NaN", slots.len());
            self.header.notes.push((name.clone(), note));
        }
        if has_missing {
            let nan = Numbers::parse(dtype, &["NaN"], false);
            attrs.extend(nan.map(|nan| Attr::new("_FillValue", AttrData::Numbers(nan))));
        }
        let shape: Vec<u64> = outer.iter().map(|(_, len)| *len).chain(grid.shape()).collect();
        let chunks = outer.iter().map(|_| 1).chain(grid.shape()).collect();
        let variable = Variable {
            name,
            kind: Kind::Number(dtype),
            dims: outer.into_iter().map(|(name, _)| name).chain(grid_dims).collect(),
            shape,
            chunks: Some(chunks),
            attrs,
        };
        self.push(variable, Content::Fields(slots));
    }

    fn global_attrs(&mut self) {
        let fields = &self.messages.fields;
        let mut attrs = vec![Attr::text("Conventions", "CF-1.7")];
        if let Some(edition) = common(fields.iter().map(|field| field.edition)) {
            attrs.push(Attr::new("GRIB_edition", int(edition.into())));
        }
        if let Some(centre) = common(fields.iter().map(|field| field.product.centre)) {
            attrs.push(Attr::new("GRIB_centre", int(centre.into())));
        }
        if let Some(centre) = common(fields.iter().map(|field| field.product.sub_centre)) {
            attrs.push(Attr::new("GRIB_subCentre", int(centre.into())));
        }
        self.header.attrs = attrs;
    }
}

/// Whether the coordinates of all points can be computed.
fn has_points(grid: &Grid) -> bool {
    match &grid.kind {
        GridKind::RotatedLatLon(..) => true,
        // Cheap: one row is tried.
        GridKind::ReducedLatLon(_) | GridKind::ReducedGaussian(..) => grid.is_global(),
        _ => false,
    }
}

const EPOCH: &str = "seconds since 1970-01-01T00:00:00";

fn int(value: i32) -> AttrData {
    AttrData::Numbers(Numbers::scalar(DType::I32, value.to_le_bytes().to_vec()))
}

fn le_bytes(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The value that all have.
fn common<T: PartialEq>(mut values: impl Iterator<Item = T>) -> Option<T> {
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

fn level_attrs(kind: LevelKind) -> Vec<Attr> {
    let (name, units) = (kind.name(), kind.units());
    let mut attrs = Vec::new();
    match name.as_str() {
        "isobaricInhPa" => {
            attrs.push(Attr::text("long_name", "pressure"));
            attrs.push(Attr::text("standard_name", "air_pressure"));
            attrs.push(Attr::text("positive", "down"));
        }
        "heightAboveGround" => {
            attrs.push(Attr::text("long_name", "height above the surface"));
            attrs.push(Attr::text("standard_name", "height"));
            attrs.push(Attr::text("positive", "up"));
        }
        "hybrid" => {
            attrs.push(Attr::text("long_name", "hybrid level"));
            attrs.push(Attr::text("standard_name", "atmosphere_hybrid_sigma_pressure_coordinate"));
            attrs.push(Attr::text("positive", "down"));
        }
        _ => attrs.push(Attr::text("long_name", format!("original GRIB coordinate for key: level({name})"))),
    }
    attrs.push(Attr::text("units", units));
    attrs
}

/// The attributes of a variable: those of its fields that all of them have.
fn attributes(fields: &[&Field], grid: &Grid) -> Vec<Attr> {
    let product = &fields[0].product;
    let mut attrs = Vec::new();
    let (name, units) = product.parameter.map_or(("unknown", "unknown"), |found| (found.name, found.units));
    attrs.push(Attr::text("long_name", name));
    attrs.push(Attr::text("units", units));
    if let Some(parameter) = product.parameter {
        if !parameter.standard_name.is_empty() {
            attrs.push(Attr::text("standard_name", parameter.standard_name));
        }
        attrs.push(Attr::new("GRIB_paramId", int(i32::try_from(parameter.id).unwrap_or(0))));
        attrs.push(Attr::text("GRIB_shortName", parameter.short_name));
    }
    let numbers: &[(&str, u8)] = match product.code {
        super::parameter::Code::Edition1(_, table, number) => {
            &[("GRIB_table2Version", table), ("GRIB_indicatorOfParameter", number)]
        }
        super::parameter::Code::Edition2(discipline, category, number) => &[
            ("GRIB_discipline", discipline),
            ("GRIB_parameterCategory", category),
            ("GRIB_parameterNumber", number),
        ],
    };
    attrs.extend(numbers.iter().map(|(name, number)| Attr::new(*name, int((*number).into()))));
    // Numbers for local use have a meaning with the tables of the centre only.
    if numbers.iter().any(|(_, number)| *number >= 192)
        && let Some((master, local)) = product.tables
    {
        attrs.push(Attr::new("GRIB_tablesVersion", int(master.into())));
        attrs.push(Attr::new("GRIB_localTablesVersion", int(local.into())));
    }
    attrs.push(Attr::text("GRIB_typeOfLevel", product.level.kind.name()));
    attrs.push(Attr::text("GRIB_stepType", product.step_type()));
    attrs.push(Attr::text("GRIB_gridType", grid.name()));
    if let GridKind::Gaussian(n) | GridKind::ReducedGaussian(n, _) = grid.kind {
        attrs.push(Attr::new("GRIB_N", int(i32::try_from(n).unwrap_or(0))));
    }
    if let Some(name) = common(fields.iter().map(|field| field.packing.name())) {
        attrs.push(Attr::text("GRIB_packingType", name));
    }
    if let Some(bits) = common(fields.iter().map(|field| field.packing.bits())) {
        attrs.push(Attr::new("GRIB_bitsPerValue", int(i32::try_from(bits).unwrap_or(0))));
    }
    for (name, value) in &product.qualifiers {
        attrs.push(Attr::new(format!("GRIB_{name}"), int(i32::try_from(*value).unwrap_or(0))));
    }
    if product.statistic.is_some() {
        let start = common(fields.iter().map(|field| field.product.start_step));
        let length = common(fields.iter().map(|field| field.product.step - field.product.start_step));
        if let Some(start) = start {
            attrs.push(Attr::new("GRIB_startStep", AttrData::f64(start)));
        } else if let Some(length) = length {
            attrs.push(Attr::new("GRIB_stepLength", AttrData::f64(length)));
        }
    }
    let mut mars = |name: &str, get: fn(&Product) -> &Option<String>| {
        if let Some(Some(text)) = common(fields.iter().map(|field| get(&field.product))) {
            attrs.push(Attr::text(name, text));
        }
    };
    mars("GRIB_class", |product| &product.mars.class);
    mars("GRIB_dataType", |product| &product.mars.kind);
    mars("GRIB_stream", |product| &product.mars.stream);
    mars("GRIB_expver", |product| &product.mars.expver);
    attrs
}

/// Divides fields into variables, in the order of the file.
fn groups(messages: &Messages) -> Vec<Group> {
    type GroupKey = (String, super::parameter::Code, LevelKind, Option<u8>, usize, Vec<i64>, u32);
    #[derive(PartialEq, Eq, Hash)]
    struct Same<'a> {
        name: String,
        code: super::parameter::Code,
        level: LevelKind,
        statistic: Option<u8>,
        grid: usize,
        qualifiers: &'a [(&'static str, i64)],
        /// Number 1 is the second field with the same keys.
        copy: u32,
    }
    let mut order: Vec<(Same<'_>, Vec<usize>)> = Vec::new();
    let mut positions: HashMap<GroupKey, usize> = HashMap::new();
    let mut copies: HashMap<(usize, [Option<Label>; 4]), u32> = HashMap::new();
    for (number, field) in messages.fields.iter().enumerate() {
        let product = &field.product;
        let name = product.parameter.map_or_else(|| product.code.text(), |found| found.variable.to_owned());
        let qualifiers: Vec<i64> = product.qualifiers.iter().map(|(_, value)| *value).collect();
        let key = |copy: u32| {
            let level = product.level.kind;
            (name.clone(), product.code, level, product.statistic, field.grid, qualifiers.clone(), copy)
        };
        let same = |copy: u32| Same {
            name: name.clone(),
            code: product.code,
            level: product.level.kind,
            statistic: product.statistic,
            grid: field.grid,
            qualifiers: &product.qualifiers,
            copy,
        };
        let base = *positions.entry(key(0)).or_insert_with(|| {
            order.push((same(0), Vec::new()));
            order.len() - 1
        });
        let labels = KEYS.map(|key| key.label(product));
        let copy = copies.entry((base, labels)).and_modify(|copy| *copy += 1).or_insert(0);
        let position = if *copy == 0 {
            base
        } else {
            *positions.entry(key(*copy)).or_insert_with(|| {
                order.push((same(*copy), Vec::new()));
                order.len() - 1
            })
        };
        order[position].1.push(number);
    }
    // Variables of one name get what distinguishes them.
    let names: Vec<String> = order
        .iter()
        .map(|(same, _)| {
            let namesakes: Vec<&Same<'_>> =
                order.iter().map(|(other, _)| other).filter(|other| other.name == same.name).collect();
            let mut name = same.name.clone();
            if namesakes.iter().any(|other| other.level != same.level) {
                name = format!("{name}_{}", same.level.name());
            }
            if namesakes.iter().any(|other| other.statistic != same.statistic) {
                let product =
                    &messages.fields[order.iter().find(|(other, _)| other == same).map_or(0, |(_, f)| f[0])];
                name = format!("{name}_{}", product.product.step_type());
            }
            if same.copy > 0 {
                name = format!("{name}_copy{}", same.copy);
            }
            name
        })
        .collect();
    order.into_iter().zip(names).map(|((_, fields), name)| Group { fields, name }).collect()
}
