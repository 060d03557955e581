//! Writer of GRIB 2 files: one message per field.
//!
//! Without a bound of the error values are stored as IEEE floats, exactly. With one, or with a number of bits, they are packed:
//! `value = reference + integer × 2^E`, the integers with CCSDS or as they are.

use std::io::Write as _;
use std::path::Path;

use rayon::prelude::*;
use tercet_codec::bytes::szip::{self, Szip};
use tercet_core::publish::AtomicFile;
use tercet_core::source::Access;
use tercet_core::{DType, Location, Progress};

use super::describe::{Axis, Described, Interval, RegularGrid, describe};
use super::message::{Field, Messages};
use crate::arrays::cast::cast;
use crate::arrays::plan::{Conversion, Plan, Transfer};
use crate::arrays::sink::Fill;
use crate::arrays::source::refused;
use crate::arrays::{
    ArraySink, ArraySource, Fate, Fidelity, Header, Kind, OutputFormat, Subject, Values, Variable, place_of,
};
use crate::{Error, ErrorKind};

/// How values are packed in a GRIB file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GribPacking {
    /// CCSDS if a precision is given, else IEEE floats.
    #[default]
    Auto,
    /// Integers of a fixed number of bits: the packing that every program reads.
    Simple,
    /// Integers compressed by CCSDS 121.0-B-3.
    Ccsds,
    /// IEEE floats: exact.
    Ieee,
}

/// The precision of packed values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Precision {
    Exact,
    /// The maximum error.
    Error(f64),
    /// The number of bits.
    Bits(u32),
}

/// How the values of a variable are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Storage {
    pub(crate) precision: Precision,
    pub(crate) packing: GribPacking,
}

/// Plans a GRIB file: which variables are fields, which are keys of messages, and which cannot be stored.
pub(crate) fn plan(source: &dyn ArraySource) -> Result<Plan, Error> {
    let input = source.header();
    let format = OutputFormat::Grib;
    let mut header = Header { format: format.name().to_owned(), ..Header::default() };
    let mut fidelity = Fidelity::default();
    for (name, reason) in &input.unreadable {
        let subject = if name.contains(':') { Subject::Attribute } else { Subject::Variable };
        fidelity.add(subject, name, Fate::NotCarried, format!("unreadable: {reason}"));
    }
    let mut described = Vec::new();
    for number in 0..input.variables.len() {
        described.push(describe(source, number)?);
    }
    let keys: Vec<usize> = described.iter().flatten().flat_map(|found| found.coordinates.clone()).collect();
    let mut transfers = Vec::new();
    let mut reasons = Vec::new();
    for (number, variable) in input.variables.iter().enumerate() {
        if keys.contains(&number) {
            fidelity.add(
                Subject::Variable,
                &variable.name,
                Fate::Exact,
                "in the keys of the messages".to_owned(),
            );
            continue;
        }
        if let Err(reason) = &described[number] {
            reasons.push(format!("`{}`: {reason}", variable.name));
            fidelity.add(Subject::Variable, &variable.name, Fate::NotCarried, reason.clone());
            continue;
        }
        let (dtype, how) = match variable.dtype() {
            Some(dtype @ (DType::F32 | DType::F64)) => (dtype, Conversion::Same),
            Some(DType::F16 | DType::BF16) => (DType::F32, Conversion::Cast(DType::F32)),
            _ => (DType::F64, Conversion::Cast(DType::F64)),
        };
        let change = (how != Conversion::Same).then(|| format!("{} stored as {dtype}", variable.kind));
        let fate = if change.is_some() { Fate::Changed } else { Fate::Exact };
        fidelity.add(Subject::Variable, &variable.name, fate, change);
        for attr in variable.attrs.iter().filter(|attr| !keeps_attribute(&attr.name)) {
            let name = format!("{}:{}", variable.name, attr.name);
            fidelity.add(Subject::Attribute, &name, Fate::NotCarried, "GRIB has no attributes".to_owned());
        }
        let target =
            Variable { kind: Kind::Number(dtype), attrs: Vec::new(), chunks: None, ..variable.clone() };
        header.variables.push(target);
        transfers.push(Transfer { source: number, how });
    }
    for attr in input.attrs.iter().filter(|attr| !keeps_attribute(&attr.name)) {
        fidelity.add(Subject::Attribute, &attr.name, Fate::NotCarried, "GRIB has no attributes".to_owned());
    }
    if transfers.is_empty() {
        let reasons = if reasons.is_empty() { "it has no variable".to_owned() } else { reasons.join("; ") };
        return Err(refused(source.name(), format!("nothing can be stored as GRIB fields: {reasons}")));
    }
    Ok(Plan { format, header, transfers, fidelity })
}

/// Whether a name is of an attribute that the keys of a message keep.
fn keeps_attribute(name: &str) -> bool {
    let kept =
        ["units", "long_name", "standard_name", "coordinates", "_FillValue", "missing_value", "Conventions"];
    kept.contains(&name) || name.starts_with("GRIB_")
}

/// Writes a GRIB 2 file.
#[derive(Debug)]
pub(crate) struct GribSink {
    file: AtomicFile,
    name: String,
    variables: Vec<(Variable, Described, Storage)>,
}

impl GribSink {
    /// Starts a file. `sources` are the variables of the source for those of the header.
    pub(crate) fn create(
        path: &Path,
        header: &Header,
        source: &dyn ArraySource,
        sources: &[usize],
        storages: Vec<Storage>,
        overwrite: bool,
    ) -> Result<Self, Error> {
        let name = path.to_string_lossy().into_owned();
        let mut variables = Vec::new();
        for ((variable, number), storage) in header.variables.iter().zip(sources).zip(storages) {
            let described = describe(source, *number)?
                .map_err(|reason| refused(source.name(), format!("`{}`: {reason}", variable.name)))?;
            variables.push((variable.clone(), described, storage));
        }
        let file = if overwrite { AtomicFile::create(path) } else { AtomicFile::create_new(path) };
        let file = file.map_err(|publish| Error::new(name.as_str().into(), publish.into()))?;
        Ok(Self { file, name, variables })
    }
}

impl ArraySink for GribSink {
    fn write(&mut self, variable: usize, values: &Values<'_>, progress: &dyn Progress) -> Result<(), Error> {
        let (item, described, storage) = &self.variables[variable];
        let fields = Fields::new(item, described);
        let size = item.item_size();
        let batch = rayon::current_num_threads() as u64 * 2;
        let mut at = 0;
        while at < fields.count {
            progress.check().map_err(|cancelled| Error::new(self.name.as_str().into(), cancelled.into()))?;
            let end = fields.count.min(at + batch);
            let messages: Result<Vec<Vec<u8>>, Error> = (at..end)
                .into_par_iter()
                .map(|number| {
                    let numbers = fields.values(number, values.fill, &self.name)?;
                    progress.advance((numbers.len() * size) as u64);
                    let keys = described.keys(&fields.place(number));
                    message(described, &keys, numbers, item.dtype() == Some(DType::F32), *storage).map_err(
                        |reason| {
                            let place = fields.place(number);
                            refused(&self.name, format!("`{}` at {place:?}: {reason}", item.name))
                        },
                    )
                })
                .collect();
            for bytes in messages? {
                self.file.write_all(&bytes).map_err(|io| Error::new(self.name.as_str().into(), io.into()))?;
            }
            at = end;
        }
        Ok(())
    }

    fn write_strings(&mut self, variable: usize, _strings: &[String]) -> Result<(), Error> {
        let name = &self.variables[variable].0.name;
        Err(refused(&self.name, format!("variable `{name}`: GRIB files have no strings")))
    }

    fn finish(self: Box<Self>) -> Result<(), Error> {
        self.file.publish().map_err(|publish| Error::new(self.name.as_str().into(), publish.into()))?;
        Ok(())
    }
}

/// The fields of a variable: boxes of its last two axes.
struct Fields<'a> {
    variable: &'a Variable,
    fills: &'a [f64],
    outer: &'a [u64],
    inner: &'a [u64],
    count: u64,
}

impl<'a> Fields<'a> {
    fn new(variable: &'a Variable, described: &'a Described) -> Self {
        let (outer, inner) = variable.shape.split_at(variable.shape.len() - 2);
        Self { variable, fills: &described.fills, outer, inner, count: outer.iter().product() }
    }

    /// The position of a field on the axes before those of the grid.
    fn place(&self, number: u64) -> Vec<u64> {
        place_of(&vec![0; self.outer.len()], self.outer, usize::try_from(number).unwrap_or(usize::MAX))
    }

    /// The values of a field; missing ones are NaN.
    fn values(&self, number: u64, fill: &Fill<'_>, name: &str) -> Result<Vec<f64>, Error> {
        let start: Vec<u64> = self.place(number).into_iter().chain([0, 0]).collect();
        let extents: Vec<u64> = self.outer.iter().map(|_| 1).chain(self.inner.iter().copied()).collect();
        let count = usize::try_from(self.inner.iter().product::<u64>()).unwrap_or(usize::MAX);
        let dtype = self.variable.dtype().unwrap_or(DType::F64);
        let mut bytes = vec![0; count * dtype.size().unwrap_or(8)];
        fill(&start, &extents, &mut bytes)?;
        let mut wide = vec![0; count * 8];
        cast(dtype, DType::F64, &bytes, &mut wide).map_err(|(_, text)| {
            refused(name, format!("the value {text} of `{}` is not a float64", self.variable.name))
        })?;
        let number = |eight: &[u8; 8]| {
            let value = f64::from_le_bytes(*eight);
            if self.fills.contains(&value) { f64::NAN } else { value }
        };
        Ok(wide.as_chunks::<8>().0.iter().map(number).collect())
    }
}

/// The keys of one field.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Keys {
    time: i64,
    step: f64,
    level: Option<(f64, Option<f64>)>,
    number: Option<i32>,
}

impl Described {
    fn keys(&self, place: &[u64]) -> Keys {
        let mut keys = Keys {
            time: self.time.unwrap_or(0),
            step: self.step,
            level: self.level_value,
            number: self.number,
        };
        for (axis, at) in self.axes.iter().zip(place) {
            let at = usize::try_from(*at).unwrap_or(usize::MAX);
            match axis {
                Axis::Time(times) => keys.time = times.get(at).copied().unwrap_or(0),
                Axis::Step(steps) => keys.step = steps.get(at).copied().unwrap_or(0.0),
                Axis::Level(levels) => keys.level = levels.get(at).copied(),
                Axis::Number(numbers) => keys.number = numbers.get(at).copied(),
            }
        }
        keys
    }
}

/// Octets of a section: its length is set at the end.
struct Section(Vec<u8>);

impl Section {
    fn new(number: u8) -> Self {
        Self(vec![0, 0, 0, 0, number])
    }

    fn u8(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    fn u16(&mut self, value: u16) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    /// A number whose first bit is its sign.
    fn signed(&mut self, value: i64, octets: usize) -> Result<&mut Self, String> {
        let bits = octets * 8 - 1;
        if value.unsigned_abs() >> bits != 0 {
            return Err(format!("{value} does not fit into {octets} octets"));
        }
        let sign = if value < 0 { 1u64 << bits } else { 0 };
        let word = (value.unsigned_abs() | sign).to_be_bytes();
        self.0.extend(&word[8 - octets..]);
        Ok(self)
    }

    fn finish(mut self, message: &mut Vec<u8>) -> Result<(), String> {
        let len = u32::try_from(self.0.len()).map_err(|_| "a section of more than 4 GiB".to_owned())?;
        self.0[..4].copy_from_slice(&len.to_be_bytes());
        message.append(&mut self.0);
        Ok(())
    }
}

/// A message of one field.
fn message(
    described: &Described,
    keys: &Keys,
    values: Vec<f64>,
    is_narrow: bool,
    storage: Storage,
) -> Result<Vec<u8>, String> {
    if let Some(value) = values.iter().find(|value| value.is_infinite()) {
        return Err(format!("GRIB has no {value}"));
    }
    let points =
        u32::try_from(values.len()).map_err(|_| "a field of more than 4294967295 points".to_owned())?;
    let mut message = b"GRIB\0\0".to_vec();
    message.extend([described.numbers.0, 2]);
    message.extend([0; 8]);
    identification(described, keys)?.finish(&mut message)?;
    grid(&described.grid, points)?.finish(&mut message)?;
    product(described, keys)?.finish(&mut message)?;
    let is_present: Vec<bool> = values.iter().map(|value| !value.is_nan()).collect();
    let has_bitmap = is_present.contains(&false);
    let present: Vec<f64> =
        if has_bitmap { values.into_iter().filter(|value| !value.is_nan()).collect() } else { values };
    let (packing, data) = pack(&present, is_narrow, storage)?;
    packing.finish(&mut message)?;
    let mut bitmap = Section::new(6);
    bitmap.u8(if has_bitmap { 0 } else { 255 });
    if has_bitmap {
        let byte = |bits: &[bool]| {
            bits.iter().enumerate().fold(0, |byte, (at, bit)| byte | u8::from(*bit) << (7 - at))
        };
        bitmap.0.extend(is_present.chunks(8).map(byte));
    }
    bitmap.finish(&mut message)?;
    let mut section = Section::new(7);
    section.0.extend(data);
    section.finish(&mut message)?;
    message.extend(b"7777");
    let total = message.len() as u64;
    message[8..16].copy_from_slice(&total.to_be_bytes());
    Ok(message)
}

/// A date: year, month, day, hour, minute, second.
fn date(section: &mut Section, seconds: i64) -> Result<(), String> {
    let invalid = || "a time outside of the years 0 to 9999".to_owned();
    let stamp = jiff::Timestamp::from_second(seconds).map_err(|_| invalid())?;
    let date = stamp.to_zoned(jiff::tz::TimeZone::UTC).datetime();
    section.u16(u16::try_from(date.year()).map_err(|_| invalid())?);
    for part in [date.month(), date.day(), date.hour(), date.minute(), date.second()] {
        section.u8(part.unsigned_abs());
    }
    Ok(())
}

fn identification(described: &Described, keys: &Keys) -> Result<Section, String> {
    let mut section = Section::new(1);
    let is_forecast = keys.step != 0.0 || described.statistic.is_some();
    let (master, local) = described.tables.unwrap_or((MASTER_TABLES, 0));
    section.u16(described.centre.0).u16(described.centre.1).u8(master).u8(local).u8(u8::from(is_forecast));
    date(&mut section, keys.time)?;
    let kind = match keys.number {
        Some(_) => 4,
        None => u8::from(is_forecast),
    };
    section.u8(0).u8(kind);
    Ok(section)
}

/// The version of the tables of the WMO manual.
const MASTER_TABLES: u8 = 30;

fn grid(grid: &RegularGrid, points: u32) -> Result<Section, String> {
    let mut section = Section::new(3);
    section.u8(0).u32(points).u8(0).u8(0).u16(if grid.gaussian.is_some() { 40 } else { 0 });
    // A sphere of 6,371,229 m, without other figures.
    section.u8(6).u8(255).u32(u32::MAX).u8(255).u32(u32::MAX).u8(255).u32(u32::MAX);
    let side = |len: usize| u32::try_from(len).map_err(|_| "a grid of too many rows".to_owned());
    let (ni, nj) = (side(grid.longitudes.len())?, side(grid.latitudes.len())?);
    section.u32(ni).u32(nj).u32(0).u32(u32::MAX);
    #[expect(clippy::cast_possible_truncation, reason = "degrees of a sphere")]
    let micro = |degrees: f64| (degrees * 1e6).round() as i64;
    // Longitudes of edition 2 are not negative.
    let east = |degrees: f64| micro(degrees).rem_euclid(360_000_000);
    let (first, last) = (|values: &[f64]| values[0], |values: &[f64]| values[values.len() - 1]);
    let (latitudes, longitudes) = (&grid.latitudes, &grid.longitudes);
    let step = |values: &[f64]| -> u32 {
        #[expect(clippy::cast_precision_loss, reason = "at most a million")]
        let count = (values.len().max(2) - 1) as f64;
        let exact = (last(values) - first(values)).abs() * 1e6 / count;
        // An increment that is not a number of microdegrees follows from the ends.
        let is_whole = (exact - exact.round()).abs() < 0.1 && values.len() > 1;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "degrees of a sphere")]
        if is_whole { exact.round() as u32 } else { u32::MAX }
    };
    let (di, dj) = (step(longitudes), if grid.gaussian.is_some() { 0 } else { step(latitudes) });
    let given = (if di == u32::MAX { 0 } else { 0x20 })
        | (if dj == u32::MAX || grid.gaussian.is_some() { 0 } else { 0x10 });
    section.signed(micro(first(latitudes)), 4)?.signed(east(first(longitudes)), 4)?.u8(given);
    section.signed(micro(last(latitudes)), 4)?.signed(east(last(longitudes)), 4)?;
    section.u32(di).u32(grid.gaussian.unwrap_or(dj));
    let to_west = last(longitudes) < first(longitudes);
    let to_north = last(latitudes) > first(latitudes);
    section.u8(u8::from(to_west) << 7 | u8::from(to_north) << 6);
    Ok(section)
}

/// The largest unit of time in which hours are whole numbers, and the factor from hours.
fn time_unit(hours: &[f64]) -> Result<(u8, f64), String> {
    let units = [(1, 1.0), (0, 60.0), (13, 3600.0)];
    let is_whole =
        |factor: f64| hours.iter().all(|hours| (hours * factor - (hours * factor).round()).abs() < 1e-6);
    units
        .into_iter()
        .find(|(_, factor)| is_whole(*factor))
        .ok_or_else(|| "a step that is not a whole second".to_owned())
}

#[expect(clippy::cast_possible_truncation, reason = "checked by `signed`, or seconds")]
fn product(described: &Described, keys: &Keys) -> Result<Section, String> {
    let mut section = Section::new(4);
    let template = match (keys.number, described.statistic) {
        (None, None) => 0,
        (Some(_), None) => 1,
        (None, Some(_)) => 8,
        (Some(_), Some(_)) => 11,
    };
    section.u16(0).u16(template).u8(described.numbers.1).u8(described.numbers.2);
    section.u8(if keys.step == 0.0 { 0 } else { 2 }).u8(255).u8(255).u16(u16::MAX).u8(255);
    let start = match described.interval {
        Some(Interval::From(start)) => start,
        Some(Interval::Length(length)) => keys.step - length,
        None => keys.step,
    };
    let (unit, factor) = time_unit(&[start, keys.step])?;
    section.u8(unit).signed((start * factor).round() as i64, 4)?;
    let (value, bottom) = match keys.level {
        Some((value, bottom)) => {
            (Some(described.level.to_edition2(value)), bottom.map(|value| described.level.to_edition2(value)))
        }
        None => (None, None),
    };
    surface(&mut section, described.level.first, value)?;
    surface(&mut section, described.level.second, bottom)?;
    if let Some(number) = keys.number {
        // Kinds of ensembles are not known: 255.
        section.u8(255).u8(u8::try_from(number).map_err(|_| format!("member {number}"))?).u8(255);
    }
    if let Some(statistic) = described.statistic {
        date(&mut section, keys.time + (keys.step * 3600.0).round() as i64)?;
        section.u8(1).u32(0).u8(statistic).u8(2).u8(unit);
        section.signed(((keys.step - start) * factor).round() as i64, 4)?.u8(255).u32(0);
    }
    Ok(section)
}

/// A surface: its type, and its value as an integer with a decimal scale.
fn surface(section: &mut Section, kind: u8, value: Option<f64>) -> Result<(), String> {
    section.u8(kind);
    let has_value = !matches!(kind, 1..=10 | 101 | 200 | 201 | 255);
    let Some(value) = value.filter(|_| has_value) else {
        section.u8(255).u32(u32::MAX);
        return Ok(());
    };
    for scale in 0..10u8 {
        let scaled = value * 10f64.powi(scale.into());
        if (scaled - scaled.round()).abs() <= scaled.abs() * 1e-12 {
            #[expect(clippy::cast_possible_truncation, reason = "checked by `signed`")]
            return section.u8(scale).signed(scaled.round() as i64, 4).map(drop);
        }
    }
    Err(format!("the level {value} has too many digits"))
}

/// The largest width of integers.
const MAX_BITS: u32 = 32;

/// Sections 5 and the data of section 7.
fn pack(values: &[f64], is_narrow: bool, storage: Storage) -> Result<(Section, Vec<u8>), String> {
    let count =
        u32::try_from(values.len()).map_err(|_| "a field of more than 4294967295 points".to_owned())?;
    let mut section = Section::new(5);
    section.u32(count);
    if storage.precision == Precision::Exact {
        section.u16(4).u8(if is_narrow { 1 } else { 2 });
        #[expect(clippy::cast_possible_truncation, reason = "the values were float32")]
        let data = if is_narrow {
            values.iter().flat_map(|value| (*value as f32).to_be_bytes()).collect()
        } else {
            values.iter().flat_map(|value| value.to_be_bytes()).collect()
        };
        return Ok((section, data));
    }
    let (reference, power, bits) = integers(values, storage.precision)?;
    let is_simple = storage.packing == GribPacking::Simple;
    section.u16(if is_simple { 0 } else { 42 });
    #[expect(clippy::cast_possible_truncation, reason = "the reference was rounded to float32")]
    section.u32((reference as f32).to_bits()).signed(power.into(), 2)?.signed(0, 2)?;
    section.u8(u8::try_from(bits).unwrap_or(0)).u8(0);
    let step = 2f64.powi(power);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to have at most 32 bits"
    )]
    let integers = values.iter().map(|value| ((value - reference) / step).round() as u32);
    if is_simple {
        return Ok((section, bit_string(integers, bits)));
    }
    let flags = szip::flags::THREE_BYTES | szip::flags::MSB | szip::flags::PREPROCESS;
    let (block, rsi) = (32u8, 128u16);
    section.u8(u8::try_from(flags).unwrap_or(0)).u8(block).u16(rsi);
    if bits == 0 || values.is_empty() {
        return Ok((section, Vec::new()));
    }
    let szip = Szip::new(bits, block.into(), rsi.into(), flags).map_err(|error| error.to_string())?;
    let size = szip.sample_bytes();
    let samples: Vec<u8> =
        integers.flat_map(|integer| integer.to_be_bytes().into_iter().skip(4 - size)).collect();
    let mut data = Vec::new();
    szip::encode(&samples, &szip, &mut data).map_err(|error| error.to_string())?;
    Ok((section, data))
}

/// The reference, binary scale and width of integers for values.
fn integers(values: &[f64], precision: Precision) -> Result<(f64, i32, u32), String> {
    let (least, most) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
        (least.min(*value), most.max(*value))
    });
    if values.is_empty() {
        return Ok((0.0, 0, 0));
    }
    let reference = float_below(least)?;
    let range = most - reference;
    if !range.is_finite() {
        return Err("the range of its values is not finite".to_owned());
    }
    let width = |power: i32| {
        let largest = (range / 2f64.powi(power)).round();
        if largest < 4_294_967_296.0 {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 32 bits")]
            Some(u32::BITS - (largest as u32).leading_zeros())
        } else {
            None
        }
    };
    #[expect(clippy::cast_possible_truncation, reason = "powers of doubles")]
    match precision {
        Precision::Exact => Err("values without a precision are not packed".to_owned()),
        Precision::Bits(_) if range == 0.0 => Ok((reference, 0, 0)),
        Precision::Bits(bits) => {
            let steps = 2f64.powi(bits.try_into().unwrap_or(32)) - 1.0;
            let mut power = ((range / steps).log2().ceil() as i32).max(-1000);
            while width(power).is_none_or(|found| found > bits) {
                power += 1;
            }
            Ok((reference, power, bits))
        }
        Precision::Error(error) if range <= error => Ok((reference, 0, 0)),
        Precision::Error(error) => {
            // Sums of doubles are rounded: the step is a little smaller than the error allows.
            let power = ((2.0 * error * (1.0 - 1e-9)).log2().floor() as i32).clamp(-1000, 1000);
            let bits = width(power).filter(|bits| *bits <= MAX_BITS).ok_or_else(|| {
                format!("an error of at most {error} needs more than {MAX_BITS} bits for a range of {range}")
            })?;
            Ok((reference, power, bits))
        }
    }
}

/// The largest float32 that is not larger.
fn float_below(value: f64) -> Result<f64, String> {
    #[expect(clippy::cast_possible_truncation, reason = "the next smaller one is taken if it is larger")]
    let nearest = value as f32;
    let below = if f64::from(nearest) > value { nearest.next_down() } else { nearest };
    if below.is_finite() { Ok(below.into()) } else { Err(format!("{value} is too large for GRIB packing")) }
}

/// Integers of a width, most significant bit first.
fn bit_string(integers: impl Iterator<Item = u32>, bits: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut word, mut filled) = (0u64, 0);
    for integer in integers {
        word = word << bits | u64::from(integer);
        filled += bits;
        while filled >= 8 {
            filled -= 8;
            bytes.push(u8::try_from(word >> filled & 0xff).unwrap_or(0));
        }
    }
    if filled > 0 {
        bytes.push(u8::try_from(word << (8 - filled) & 0xff).unwrap_or(0));
    }
    bytes
}

/// Reads the values of a box of a variable of the output.
pub(crate) type FillVariable<'f> = dyn Fn(usize, &[u64], &[u64], &mut [u8]) -> Result<(), Error> + Sync + 'f;

/// Reads a file again: the keys of all fields, and how far each value is from that of the source. Returns the maximum error of each variable.
pub(crate) fn verify(
    source: &dyn ArraySource,
    path: &Path,
    header: &Header,
    sources: &[usize],
    storages: &[Storage],
    fill: &FillVariable<'_>,
    progress: &dyn Progress,
) -> Result<Vec<f64>, Error> {
    let name = path.to_string_lossy().into_owned();
    let file = tercet_core::source::open_location(&Location::Path(path.to_owned()), Access::Pread)
        .map_err(|error| Error::new(name.as_str().into(), error.into()))?;
    let messages = Messages::read(&*file, tercet_core::Limits::default())?;
    let differs = |detail: String| {
        Error::new(name.as_str().into(), ErrorKind::Differs(format!("verification failed: {detail}").into()))
    };
    if let Some((place, reason)) = messages.unreadable.first() {
        return Err(differs(format!("{place}: {reason}")));
    }
    let mut found = messages.fields.iter();
    let mut errors = Vec::new();
    for (variable, item) in header.variables.iter().enumerate() {
        let described = describe(source, sources[variable])?
            .map_err(|reason| refused(source.name(), format!("`{}`: {reason}", item.name)))?;
        let fields = Fields::new(item, &described);
        let mut largest = 0f64;
        for number in 0..fields.count {
            progress.check().map_err(|cancelled| Error::new(name.as_str().into(), cancelled.into()))?;
            let place = fields.place(number);
            let shown = format!("`{}` at {place:?}", item.name);
            let Some(field) = found.next() else {
                return Err(differs(format!("{shown} is not in the output")));
            };
            if !has_keys(field, &described, &described.keys(&place)) {
                return Err(differs(format!("{shown} has other keys")));
            }
            let read = |start: &[u64], extents: &[u64], out: &mut [u8]| fill(variable, start, extents, out);
            let expected = fields.values(number, &read, &name)?;
            let values = messages.decode(&*file, field)?;
            if values.len() != expected.len() {
                return Err(differs(format!("{shown} has {} points", values.len())));
            }
            for (a, b) in values.iter().zip(&expected) {
                if a.is_nan() != b.is_nan() {
                    return Err(differs(format!("other values of {shown} are missing")));
                }
                largest = largest.max((a - b).abs());
            }
        }
        let allowed = match storages[variable].precision {
            Precision::Exact => Some(0.0),
            Precision::Error(error) => Some(error),
            Precision::Bits(_) => None,
        };
        if allowed.is_some_and(|allowed| largest > allowed) {
            return Err(differs(format!("the values of `{}` differ by up to {largest}", item.name)));
        }
        errors.push(largest);
    }
    if found.next().is_some() {
        return Err(differs("there are more fields than were written".to_owned()));
    }
    Ok(errors)
}

fn has_keys(field: &Field, described: &Described, keys: &Keys) -> bool {
    let product = &field.product;
    let (discipline, category, number) = described.numbers;
    let level = keys.level.filter(|_| !matches!(described.level.first, 1..=10 | 101 | 200 | 201));
    product.code == super::parameter::Code::Edition2(discipline, category, number)
        && product.time == keys.time
        && (product.step - keys.step).abs() < 1e-6
        && product.number == keys.number
        && product.level.kind == described.level
        && level.is_none_or(|(value, _)| (product.level.value - value).abs() <= value.abs() * 1e-9)
}
