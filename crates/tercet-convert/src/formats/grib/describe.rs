//! What a variable of any file is as GRIB fields: its parameter, grid, times, levels and members.

use tercet_core::DType;

use super::grid::gaussian_latitudes;
use super::level::LevelKind;
use super::parameter::{Edition2, Parameter, table};
use super::product::Product;
use crate::Error;
use crate::arrays::cast::cast;
use crate::arrays::{ArraySource, AttrData, Header, Kind, Number, Variable, read_all};

/// The fields of a variable.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Described {
    pub(super) numbers: (u8, u8, u8),
    pub(super) grid: RegularGrid,
    pub(super) level: LevelKind,
    pub(super) statistic: Option<u8>,
    /// The axes before those of the grid.
    pub(super) axes: Vec<Axis>,
    /// Keys without an axis.
    pub(super) time: Option<i64>,
    pub(super) step: f64,
    pub(super) level_value: Option<(f64, Option<f64>)>,
    pub(super) number: Option<i32>,
    /// The start of intervals in hours, or their length.
    pub(super) interval: Option<Interval>,
    pub(super) centre: (u16, u16),
    /// The versions of the master tables and of the local tables, if they are known.
    pub(super) tables: Option<(u8, u8)>,
    /// Variables whose values are in the keys of messages.
    pub(super) coordinates: Vec<usize>,
    /// Values that mean a missing one.
    pub(super) fills: Vec<f64>,
}

/// Where the interval of a statistic starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Interval {
    /// At this step.
    From(f64),
    /// This number of hours before its end.
    Length(f64),
}

/// An axis whose positions are keys of messages.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Axis {
    /// Seconds since 1970.
    Time(Vec<i64>),
    /// Hours.
    Step(Vec<f64>),
    /// Value of a level, and the second one of a layer.
    Level(Vec<(f64, Option<f64>)>),
    Number(Vec<i32>),
}

/// A grid of rows and columns.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RegularGrid {
    /// The number of a Gaussian grid.
    pub(super) gaussian: Option<u32>,
    pub(super) latitudes: Vec<f64>,
    pub(super) longitudes: Vec<f64>,
}

/// What a coordinate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Latitude,
    Longitude,
    /// The reference time, or the only time there is.
    Time,
    /// The time of the values, beside a reference time.
    ValidTime,
    Step,
    Number,
    Level(LevelKind),
}

type Reason = String;

/// Finds out what a variable is, or why it cannot be stored as GRIB fields.
pub(super) fn describe(source: &dyn ArraySource, number: usize) -> Result<Result<Described, Reason>, Error> {
    let header = source.header();
    let variable = &header.variables[number];
    if !matches!(variable.kind, Kind::Number(dtype) if dtype.is_float() || dtype.element().is_some() || dtype == DType::I8)
    {
        return Ok(Err(format!("{} values are not fields", variable.kind)));
    }
    if role(header, variable).is_some() && variable.dims.len() < 2 {
        return Ok(Err("a coordinate of no field that is stored".to_owned()));
    }
    let [outer @ .., rows, columns] = &variable.dims[..] else {
        return Ok(Err("GRIB needs two dimensions of latitude and longitude".to_owned()));
    };
    if variable.attr("scale_factor").is_some() || variable.attr("add_offset").is_some() {
        return Ok(Err(
            "its values are packed with `scale_factor` and `add_offset`; decode them first".to_owned()
        ));
    }
    let find = |dim: &String| header.find(dim).filter(|found| header.variables[*found].dims == [dim.clone()]);
    let mut coordinates = Vec::new();
    let mut side = |dim: &String, wanted: Role| -> Result<Result<Vec<f64>, Reason>, Error> {
        let found = find(dim).filter(|found| role(header, &header.variables[*found]) == Some(wanted));
        let Some(found) = found else {
            let what = if wanted == Role::Latitude { "latitudes" } else { "longitudes" };
            return Ok(Err(format!("the dimension `{dim}` has no coordinate variable with {what}")));
        };
        coordinates.push(found);
        Ok(Ok(numbers(source, found)?))
    };
    let (latitudes, longitudes) = match (side(rows, Role::Latitude)?, side(columns, Role::Longitude)?) {
        (Ok(latitudes), Ok(longitudes)) => (latitudes, longitudes),
        (Err(reason), _) | (_, Err(reason)) => return Ok(Err(reason)),
    };
    let is_narrow = |at: usize| header.variables[at].dtype() == Some(DType::F32);
    let tolerance = if coordinates.iter().any(|at| is_narrow(*at)) { 4e-5 } else { 2e-6 };
    let grid = match RegularGrid::new(latitudes, longitudes, tolerance) {
        Ok(grid) => grid,
        Err(reason) => return Ok(Err(reason)),
    };
    let mut described = Described {
        numbers: (255, 255, 255),
        grid,
        level: LevelKind { first: 255, second: 255 },
        statistic: None,
        axes: Vec::new(),
        time: None,
        step: 0.0,
        level_value: None,
        number: None,
        interval: None,
        centre: (255, 0),
        tables: None,
        coordinates,
        fills: fills(variable),
    };
    for dim in outer {
        let Some(found) = find(dim) else {
            return Ok(Err(format!("the dimension `{dim}` has no coordinate variable")));
        };
        let Some(role) = role(header, &header.variables[found]) else {
            return Ok(Err(format!(
                "`{dim}` is not a time, step, level or member, which GRIB messages have"
            )));
        };
        match axis(source, found, role)? {
            Ok(axis) => {
                if let Role::Level(kind) = role {
                    described.level = kind;
                }
                described.coordinates.push(found);
                described.axes.push(axis);
            }
            Err(reason) => return Ok(Err(reason)),
        }
    }
    if let Err(reason) = scalars(source, variable, &mut described)? {
        return Ok(Err(reason));
    }
    Ok(finish(header, variable, described))
}

/// Completes a description: the parameter and what follows from it.
fn finish(header: &Header, variable: &Variable, mut described: Described) -> Result<Described, Reason> {
    let has = |test: fn(&Axis) -> bool| described.axes.iter().any(test);
    if described.time.is_none() && !has(|axis| matches!(axis, Axis::Time(_))) {
        return Err("it has no time".to_owned());
    }
    let text = |name: &str| variable.attr(name).and_then(AttrData::as_text);
    if let Some(name) = text("GRIB_stepType").filter(|name| *name != "instant") {
        let statistic =
            Product::statistic_from_name(name).ok_or_else(|| format!("unknown step type `{name}`"))?;
        described.statistic = Some(statistic);
    }
    if described.level.first == 255
        && let Some(kind) = text("GRIB_typeOfLevel").and_then(LevelKind::from_name)
    {
        described.level = kind;
    }
    let integer = |name: &str| -> Option<u16> {
        let number = variable
            .attr(name)
            .or_else(|| header.attrs.iter().find(|attr| attr.name == name).map(|attr| &attr.value));
        match number.and_then(AttrData::as_number) {
            Some(Number::Int(value)) => u16::try_from(value).ok(),
            _ => None,
        }
    };
    let octet = |name: &str| integer(name).and_then(|value| u8::try_from(value).ok());
    described.centre = (integer("GRIB_centre").unwrap_or(255), integer("GRIB_subCentre").unwrap_or(0));
    described.tables = octet("GRIB_tablesVersion").zip(octet("GRIB_localTablesVersion"));
    let explicit = (octet("GRIB_discipline"), octet("GRIB_parameterCategory"), octet("GRIB_parameterNumber"));
    if let (Some(discipline), Some(category), Some(number)) = explicit {
        described.numbers = (discipline, category, number);
    } else {
        let (parameter, row) = parameter(variable, described.level)?;
        let units = text("units")
            .ok_or_else(|| format!("it has no units; those of {} are {}", parameter.name, parameter.units))?;
        if normal_units(units) != normal_units(parameter.units) {
            return Err(format!(
                "its units are `{units}`; those of {} are `{}`",
                parameter.name, parameter.units
            ));
        }
        described.numbers = row.numbers;
        if let Some((kind, value)) = row.first {
            let fixed = LevelKind { first: kind, second: row.second.map_or(255, |(kind, _)| kind) };
            let is_other = described.level.first != 255 && described.level != fixed;
            // The surface of edition 1 has no height: `2t` is at two metres anyway.
            if is_other && described.level.first != 1 {
                return Err(format!("{} is not on levels of {}", parameter.name, described.level.name()));
            }
            if is_other || described.level.first == 255 {
                described.level = fixed;
                described.level_value = value.map(|value| (value, row.second.and_then(|(_, value)| value)));
            }
        }
        if row.statistic.is_some() && described.statistic.is_none() {
            described.statistic = row.statistic;
        }
    }
    if described.level.first == 255 {
        return Err("it has no level".to_owned());
    }
    if described.statistic.is_some() {
        let float = |name: &str| variable.attr(name).and_then(AttrData::as_number).map(Number::as_f64);
        described.interval =
            float("GRIB_startStep").map(Interval::From).or(float("GRIB_stepLength").map(Interval::Length));
        if described.interval.is_none() {
            return Err("it is a statistic over intervals, and their start is not known (`GRIB_startStep`)"
                .to_owned());
        }
    }
    Ok(described)
}

/// The parameter of a variable: by its number, its names, or its standard name.
fn parameter(variable: &Variable, level: LevelKind) -> Result<(&'static Parameter, Edition2), Reason> {
    let text = |name: &str| variable.attr(name).and_then(AttrData::as_text);
    let id = match variable.attr("GRIB_paramId").and_then(AttrData::as_number) {
        Some(Number::Int(id)) => u32::try_from(id).ok(),
        _ => None,
    };
    let last = variable.name.rsplit('/').next().unwrap_or_default();
    let tests: [&dyn Fn(&Parameter) -> bool; 4] = [
        &|parameter| Some(parameter.id) == id,
        &|parameter| Some(parameter.short_name) == text("GRIB_shortName"),
        &|parameter| parameter.variable == last || parameter.short_name == last,
        &|parameter| {
            !parameter.standard_name.is_empty()
                && Some(parameter.standard_name) == text("standard_name")
                && parameter.id < 1000
        },
    ];
    let fits = |row: &&Edition2| {
        row.first.is_none_or(|(kind, _)| level.first == 255 || level.first == 1 || kind == level.first)
    };
    for test in tests {
        // A definition without a surface suits any level; one with a surface is more specific.
        let rows = || {
            table()
                .iter()
                .filter(|parameter| test(parameter))
                .flat_map(|parameter| parameter.edition2.iter().map(move |row| (parameter, row)))
        };
        let best = rows().filter(|(_, row)| fits(row)).max_by_key(|(parameter, row)| {
            let exact = row.first.is_some_and(|(kind, _)| kind == level.first);
            let general = row.first.is_none() && level.first != 255;
            (exact, general, std::cmp::Reverse(parameter.id))
        });
        if let Some((parameter, row)) = best.or_else(|| rows().next()) {
            return Ok((parameter, *row));
        }
    }
    let known = "set `GRIB_discipline`, `GRIB_parameterCategory` and `GRIB_parameterNumber`";
    Err(format!("it is not a parameter of the GRIB 2 table by its name; {known}"))
}

/// Keys of coordinates without an axis.
fn scalars(
    source: &dyn ArraySource,
    variable: &Variable,
    described: &mut Described,
) -> Result<Result<(), Reason>, Error> {
    let header = source.header();
    let listed: Option<Vec<&str>> = variable
        .attr("coordinates")
        .and_then(AttrData::as_text)
        .map(|text| text.split_whitespace().collect());
    for (number, item) in header.variables.iter().enumerate() {
        let is_scalar = item.elements() == 1 && item.dims.iter().all(|dim| !variable.dims.contains(dim));
        let is_listed = listed.as_ref().is_none_or(|names| names.contains(&item.name.as_str()));
        let Some(role) = role(header, item).filter(|_| is_scalar && is_listed) else { continue };
        if matches!(role, Role::ValidTime | Role::Latitude | Role::Longitude) {
            described.coordinates.push(number);
            continue;
        }
        let found = match axis(source, number, role)? {
            Ok(axis) => axis,
            Err(reason) => return Ok(Err(reason)),
        };
        let has_axis =
            described.axes.iter().any(|axis| std::mem::discriminant(axis) == std::mem::discriminant(&found));
        if has_axis {
            continue;
        }
        described.coordinates.push(number);
        match found {
            Axis::Time(times) => described.time = times.first().copied(),
            Axis::Step(steps) => described.step = steps.first().copied().unwrap_or(0.0),
            Axis::Number(numbers) => described.number = numbers.first().copied(),
            Axis::Level(levels) => {
                if let Role::Level(kind) = role {
                    described.level = kind;
                }
                described.level_value = levels.first().copied();
            }
        }
    }
    // Times of values that depend on other times.
    for (number, item) in header.variables.iter().enumerate() {
        if role(header, item) == Some(Role::ValidTime) && !described.coordinates.contains(&number) {
            let is_listed = listed.as_ref().is_some_and(|names| names.contains(&item.name.as_str()));
            if is_listed {
                described.coordinates.push(number);
            }
        }
    }
    let bounds: Vec<usize> = described
        .coordinates
        .iter()
        .filter_map(|number| header.variables[*number].attr("bounds").and_then(AttrData::as_text))
        .filter_map(|name| header.find(name))
        .collect();
    described.coordinates.extend(bounds);
    Ok(Ok(()))
}

/// What a coordinate is, by the CF conventions or its name.
fn role(header: &Header, variable: &Variable) -> Option<Role> {
    let text = |name: &str| variable.attr(name).and_then(AttrData::as_text).unwrap_or_default();
    let (standard, units) = (text("standard_name"), text("units"));
    let name = variable.name.rsplit('/').next().unwrap_or_default();
    // Numbers after a name distinguish variables of one file.
    let base = name
        .rsplit_once('_')
        .filter(|(_, number)| number.parse::<u32>().is_ok())
        .map_or(name, |(base, _)| base);
    if matches!(units, "degrees_north" | "degree_north" | "degrees_N") || standard == "latitude" {
        return Some(Role::Latitude);
    }
    if matches!(units, "degrees_east" | "degree_east" | "degrees_E") || standard == "longitude" {
        return Some(Role::Longitude);
    }
    match standard {
        "forecast_reference_time" => return Some(Role::Time),
        "forecast_period" => return Some(Role::Step),
        "realization" => return Some(Role::Number),
        _ => {}
    }
    let is_time = units.contains(" since ") || (variable.kind == Kind::String && base == "time");
    if is_time {
        let is_reference = |other: &Variable| {
            matches!(other.attr("standard_name").and_then(AttrData::as_text), Some("forecast_reference_time"))
        };
        let has_reference = header.variables.iter().any(is_reference);
        return Some(if has_reference { Role::ValidTime } else { Role::Time });
    }
    if let Some(kind) = LevelKind::from_name(base) {
        return Some(Role::Level(kind));
    }
    if variable.dims.len() > 1 {
        return None;
    }
    match base {
        "step" | "lead_time" | "leadtime" if !units.is_empty() => Some(Role::Step),
        "number" | "member" | "ensemble" | "realization" => Some(Role::Number),
        _ if standard == "air_pressure"
            || matches!(units, "Pa" | "hPa" | "mbar" | "millibar" | "millibars" | "mb") =>
        {
            Some(Role::Level(LevelKind { first: 100, second: 255 }))
        }
        "height" if units == "m" => Some(Role::Level(LevelKind { first: 103, second: 255 })),
        "depth" if units == "m" => Some(Role::Level(LevelKind { first: 160, second: 255 })),
        _ => None,
    }
}

/// The values of a coordinate in units of GRIB.
fn axis(source: &dyn ArraySource, number: usize, role: Role) -> Result<Result<Axis, Reason>, Error> {
    let variable = &source.header().variables[number];
    let name = &variable.name;
    let units = variable.attr("units").and_then(AttrData::as_text).unwrap_or_default();
    if variable.kind == Kind::String {
        let times: Option<Vec<i64>> =
            source.read_strings(number)?.iter().map(|text| timestamp(text)).collect();
        return Ok(match (times, role) {
            (Some(times), Role::Time) => Ok(Axis::Time(times)),
            _ => Err(format!("the labels of `{name}` are not times")),
        });
    }
    let values = numbers(source, number)?;
    if values.iter().any(|value| !value.is_finite()) {
        return Ok(Err(format!("`{name}` has values that are not finite")));
    }
    let each = |scale: f64| values.iter().map(|value| value * scale).collect::<Vec<f64>>();
    Ok(match role {
        Role::Time | Role::ValidTime => times(variable, units, &values).map(Axis::Time),
        Role::Step => match units {
            "hours" | "hour" | "h" | "hr" => Ok(Axis::Step(values)),
            "minutes" | "minute" | "min" => Ok(Axis::Step(values.iter().map(|value| value / 60.0).collect())),
            "seconds" | "second" | "s" => Ok(Axis::Step(values.iter().map(|value| value / 3600.0).collect())),
            "days" | "day" | "d" => Ok(Axis::Step(each(24.0))),
            _ => Err(format!("the units `{units}` of `{name}` are not known")),
        },
        Role::Number => {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::float_cmp,
                reason = "integers are compared exactly"
            )]
            let fits = values
                .iter()
                .all(|value| f64::from(*value as i32) == *value && (0.0..=254.0).contains(value));
            #[expect(clippy::cast_possible_truncation, reason = "checked")]
            let integers: Vec<i32> = values.iter().map(|value| *value as i32).collect();
            if fits {
                Ok(Axis::Number(integers))
            } else {
                Err(format!("`{name}` has numbers that are not members"))
            }
        }
        Role::Level(kind) => {
            let values = match (kind.units(), units) {
                ("hPa", "Pa") => values.iter().map(|value| value / 100.0).collect(),
                ("hPa", "hPa" | "mbar" | "millibar" | "millibars" | "mb") => values,
                (wanted, found) if wanted == found || found.is_empty() => values,
                (wanted, found) => {
                    return Ok(Err(format!("the units of `{name}` are `{found}` instead of `{wanted}`")));
                }
            };
            let bottoms = match variable
                .attr("bounds")
                .and_then(AttrData::as_text)
                .and_then(|bounds| source.header().find(bounds))
            {
                Some(bounds) if kind.second != 255 => {
                    let corners = numbers(source, bounds)?;
                    if corners.len() != values.len() * 2 {
                        return Ok(Err(format!("the bounds of `{name}` are not pairs")));
                    }
                    corners.as_chunks::<2>().0.iter().map(|pair| Some(pair[1])).collect()
                }
                _ => vec![None; values.len()],
            };
            Ok(Axis::Level(values.into_iter().zip(bottoms).collect()))
        }
        Role::Latitude | Role::Longitude => {
            Err(format!("`{name}` is not the last or next to last dimension"))
        }
    })
}

/// The seconds since 1970 of an ISO time.
fn timestamp(text: &str) -> Option<i64> {
    if let Ok(stamp) = text.parse::<jiff::Timestamp>() {
        return Some(stamp.as_second());
    }
    let date = text.trim_end_matches('Z').parse::<jiff::civil::DateTime>().ok()?;
    Some(date.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second())
}

/// Times in seconds since 1970.
fn times(variable: &Variable, units: &str, values: &[f64]) -> Result<Vec<i64>, Reason> {
    let name = &variable.name;
    let calendar = variable.attr("calendar").and_then(AttrData::as_text).unwrap_or("standard");
    if !matches!(calendar, "standard" | "gregorian" | "proleptic_gregorian") {
        return Err(format!("`{name}` has the calendar `{calendar}`; GRIB has the Gregorian one"));
    }
    let unknown = || format!("the units `{units}` of `{name}` are not known");
    let (unit, epoch) = units.split_once(" since ").ok_or_else(unknown)?;
    let seconds = match unit.trim() {
        "seconds" | "second" | "s" | "sec" => 1.0,
        "minutes" | "minute" | "min" => 60.0,
        "hours" | "hour" | "h" | "hr" => 3600.0,
        "days" | "day" | "d" => 86400.0,
        _ => return Err(unknown()),
    };
    let epoch = epoch.trim().trim_end_matches(" UTC").trim_end_matches(".0");
    let start = timestamp(epoch)
        .or_else(|| timestamp(&epoch.replacen(' ', "T", 1)))
        .or_else(|| timestamp(&format!("{epoch}T00:00:00")))
        .ok_or_else(unknown)?;
    #[expect(clippy::cast_possible_truncation, reason = "rounded and checked")]
    let second = |value: &f64| {
        let exact = value * seconds;
        let whole = exact.round();
        if (whole - exact).abs() > 0.01 || whole.abs() > 1e15 {
            return Err(format!("`{name}` has times that are not whole seconds"));
        }
        Ok(start + whole as i64)
    };
    values.iter().map(second).collect()
}

/// All numbers of a variable as float64.
fn numbers(source: &dyn ArraySource, number: usize) -> Result<Vec<f64>, Error> {
    let values = read_all(source, number)?;
    let dtype = source.header().variables[number].dtype().unwrap_or(DType::U8);
    let mut wide = vec![0; values.bytes().len() / dtype.size().unwrap_or(1).max(1) * 8];
    cast(dtype, DType::F64, values.bytes(), &mut wide).map_err(|(_, text)| {
        let name = &source.header().variables[number].name;
        crate::arrays::source::refused(
            source.name(),
            format!("`{name}` has the value {text}, which is not a float64"),
        )
    })?;
    Ok(wide.as_chunks::<8>().0.iter().map(|eight| f64::from_le_bytes(*eight)).collect())
}

fn fills(variable: &Variable) -> Vec<f64> {
    let mut fills = Vec::new();
    for name in ["_FillValue", "missing_value"] {
        if let Some(AttrData::Numbers(numbers)) = variable.attr(name) {
            fills.extend(numbers.iter().map(Number::as_f64).filter(|value| !value.is_nan()));
        }
    }
    fills
}

/// Units in one spelling.
fn normal_units(units: &str) -> String {
    let units = units.trim().replace("**", "").replace('^', "");
    let units = match units.as_str() {
        "(0 - 1)" | "0-1" | "Fraction" | "fraction" | "Numeric" | "Dimensionless" | "~" | "" => {
            "1".to_owned()
        }
        "kelvin" | "Kelvin" | "degK" => "K".to_owned(),
        "percent" => "%".to_owned(),
        "pascal" => "Pa".to_owned(),
        "gpm" => "gpm".to_owned(),
        _ => units,
    };
    match units.split_once('/') {
        Some((above, below)) if !below.contains('/') => {
            let digit = below.find(|c: char| c.is_ascii_digit()).unwrap_or(below.len());
            let (name, power) = below.split_at(digit);
            format!("{} {}-{}", above.trim(), name.trim(), if power.is_empty() { "1" } else { power })
        }
        _ => units,
    }
}

impl RegularGrid {
    fn new(latitudes: Vec<f64>, longitudes: Vec<f64>, tolerance: f64) -> Result<Self, Reason> {
        if latitudes.is_empty()
            || longitudes.is_empty()
            || latitudes.len() > 1 << 20
            || longitudes.len() > 1 << 20
        {
            return Err("the grid has no points, or too many".to_owned());
        }
        if latitudes.iter().any(|latitude| latitude.is_nan() || latitude.abs() > 90.0 + tolerance) {
            return Err("a latitude is not between -90 and 90".to_owned());
        }
        if longitudes.iter().any(|longitude| longitude.is_nan() || longitude.abs() > 720.0) {
            return Err("a longitude is not between -720 and 720".to_owned());
        }
        if !is_even(&longitudes, tolerance) {
            return Err("its longitudes have unequal distances".to_owned());
        }
        let span = longitudes[longitudes.len() - 1] - longitudes[0];
        if span.abs() >= 360.0 {
            return Err("its longitudes go round the sphere more than once".to_owned());
        }
        if is_even(&latitudes, tolerance) {
            return Ok(Self { gaussian: None, latitudes, longitudes });
        }
        let n = u32::try_from(latitudes.len() / 2).unwrap_or(0);
        if latitudes.len().is_multiple_of(2) && (1..=4000).contains(&n) {
            let mut expected = gaussian_latitudes(n);
            if latitudes[0] < latitudes[latitudes.len() - 1] {
                expected.reverse();
            }
            if latitudes.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-3) {
                return Ok(Self { gaussian: Some(n), latitudes, longitudes });
            }
        }
        Err("its latitudes have unequal distances and are not those of a Gaussian grid".to_owned())
    }
}

/// Whether numbers have equal distances.
fn is_even(values: &[f64], tolerance: f64) -> bool {
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return false };
    #[expect(clippy::cast_precision_loss, reason = "at most a million")]
    let at = |number: usize| number as f64;
    let step = (last - first) / at(values.len().max(2) - 1);
    (values.len() == 1 || step != 0.0)
        && values
            .iter()
            .enumerate()
            .all(|(number, value)| (first + at(number) * step - value).abs() <= tolerance)
}
