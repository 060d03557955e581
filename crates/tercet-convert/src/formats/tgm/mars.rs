//! The key `mars` of a GRIB field: the keys that archives name it by.
//!
//! They follow from the attributes of the variable and its coordinates, which the key `tercet` has too: readers of both ignore this one.

use std::collections::BTreeMap;

use tercet_core::cf_time::TimeUnits;
use tercet_tgm::Value;

use crate::arrays::{Attr, AttrData, Number, Variable};

/// The name of the key.
pub(super) const KEY: &str = "mars";

/// Whether the key of an object follows from the attributes of its variable.
pub(super) fn is_derived(attrs: &[Attr]) -> bool {
    attrs.iter().any(|attr| ["GRIB_shortName", "GRIB_paramId"].contains(&attr.name.as_str()))
}

/// The value of a coordinate at the position of a field, and its attributes.
pub(super) type Coordinate<'a> = (f64, &'a [Attr]);

/// Types of levels: the name of a kind, the value of `levtype`, whether there is a `levelist`.
const LEVEL_TYPES: [(&str, &str, bool); 15] = [
    ("isobaricInhPa", "pl", true),
    ("hybrid", "ml", true),
    ("theta", "pt", true),
    ("potentialVorticity", "pv", false),
    ("surface", "sfc", false),
    ("meanSea", "sfc", false),
    ("heightAboveGround", "sfc", false),
    ("entireAtmosphere", "sfc", false),
    ("depthBelowLand", "sfc", false),
    ("depthBelowLandLayer", "sfc", false),
    ("cloudBase", "sfc", false),
    ("nominalTop", "sfc", false),
    ("tropopause", "sfc", false),
    ("soil", "sol", true),
    ("soilLayer", "sol", true),
];

/// The keys of a field of a variable; `None` if it has no GRIB parameter.
pub(super) fn keys<'a>(
    item: &'a Variable,
    coordinate: &dyn Fn(&str) -> Option<Coordinate<'a>>,
) -> Option<Value> {
    let text = |name: &str| item.attr(name).and_then(AttrData::as_text);
    let id = item.attr("GRIB_paramId").and_then(AttrData::as_number).map(Number::as_f64);
    let param = text("GRIB_shortName").map(Value::from).or(id.map(number))?;
    let mut keys: BTreeMap<String, Value> = [("param".to_owned(), param)].into();
    let mut insert = |key: &str, value: Value| drop(keys.insert(key.to_owned(), value));
    for (key, attr) in [
        ("class", "GRIB_class"),
        ("type", "GRIB_dataType"),
        ("stream", "GRIB_stream"),
        ("expver", "GRIB_expver"),
    ] {
        if let Some(text) = text(attr) {
            insert(key, text.into());
        }
    }
    // Coordinates with one of these names, also if a number makes it unique.
    let named = |wanted: &str| {
        let is_wanted = |name: &&str| {
            let rest = name.strip_prefix(wanted).map(|rest| rest.strip_prefix('_').unwrap_or(rest));
            rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let scalars = text("coordinates").unwrap_or_default().split_whitespace();
        let name = item.dims.iter().map(String::as_str).chain(scalars).find(is_wanted)?;
        coordinate(name)
    };
    let units = |attrs: &[Attr]| attribute(attrs, "units").map(str::to_owned);
    if let Some((seconds, attrs)) = named("time")
        && let Some(time) = units(attrs)
            .and_then(|units| TimeUnits::parse(&units, attribute(attrs, "calendar")))
            .and_then(|units| units.decode(seconds))
    {
        let date = i64::from(time.year) * 10_000 + i64::from(time.month) * 100 + i64::from(time.day);
        insert("date", date.into());
        insert("time", (i64::from(time.hour) * 100 + i64::from(time.minute)).into());
    }
    if let Some((step, attrs)) = named("step")
        && units(attrs).as_deref() == Some("hours")
    {
        insert("step", number(step));
    }
    if let Some((member, _)) = named("number") {
        insert("number", number(member));
    }
    let level = text("GRIB_typeOfLevel").and_then(|kind| LEVEL_TYPES.iter().find(|(name, ..)| *name == kind));
    if let Some((kind, level_type, has_levels)) = level {
        insert("levtype", (*level_type).into());
        if let Some((value, _)) = named(kind).filter(|_| *has_levels) {
            insert("levelist", number(value));
        }
    }
    Some(keys.into())
}

fn attribute<'a>(attrs: &'a [Attr], name: &str) -> Option<&'a str> {
    attrs.iter().find(|attr| attr.name == name).and_then(|attr| attr.value.as_text())
}

/// A whole number as an integer.
#[expect(clippy::cast_possible_truncation, clippy::float_cmp, reason = "checked to be whole and small")]
fn number(value: f64) -> Value {
    if value.trunc() == value && value.abs() < 9e15 { (value as i64).into() } else { value.into() }
}
