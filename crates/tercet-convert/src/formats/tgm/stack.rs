//! Stacking of fields into cubes: which keys are dimensions.

use std::collections::{HashMap, HashSet};

use tercet_core::DType;
use tercet_tgm::Value;

use super::keys::{Keys, last};
use super::special::Special;

/// An object and its metadata.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) message: u64,
    pub(super) object: u64,
    /// The number in the file, over all messages.
    pub(super) ordinal: u64,
    pub(super) dtype: DType,
    pub(super) shape: Vec<u64>,
    pub(super) keys: Keys,
    /// What the variable was in another format.
    pub(super) special: Option<Special>,
    /// The pipeline: encoding, filter, compression and parameters.
    pub(super) pipeline: Value,
}

/// A dimension of a cube.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Dimension {
    /// The key; `None` for a number of repeated fields.
    pub(super) key: Option<String>,
    pub(super) values: Vec<Value>,
}

/// Fields of one name, type and shape.
#[derive(Clone, Debug)]
pub(super) struct Cube {
    pub(super) name: String,
    /// The outer dimensions, slowest first.
    pub(super) dimensions: Vec<Dimension>,
    /// The field at each position of the outer dimensions, row-major.
    pub(super) fields: Vec<Option<usize>>,
}

/// Keys that are dimensions if they vary, slowest first. The last component of a path counts.
const AXES: [&str; 40] = [
    "year",
    "month",
    "day",
    "date",
    "dataDate",
    "hdate",
    "time",
    "dataTime",
    "base_time",
    "forecast_reference_time",
    "number",
    "member",
    "ensemble",
    "realization",
    "perturbationNumber",
    "hour",
    "step",
    "stepRange",
    "endStep",
    "forecast_hour",
    "lead_time",
    "valid_time",
    "validity",
    "frequency",
    "directionNumber",
    "frequencyNumber",
    "direction",
    "channel",
    "band",
    "layer",
    "level",
    "levelist",
    "lev",
    "plev",
    "isobaricInhPa",
    "height",
    "depth",
    "altitude",
    "quantile",
    "threshold",
];

/// Keys that separate variables of one name.
const SEPARATING: [&str; 4] = ["levtype", "typeOfLevel", "stream", "units"];

/// Keys with the name of a variable, in order of preference.
const NAMES: [&str; 10] = [
    "name",
    "shortName",
    "mars.param",
    "param",
    "grib.shortName",
    "netcdf.name",
    "parameter",
    "variable",
    "var",
    "short_name",
];

/// A cube may have this many times more positions than fields; then fields are numbered instead.
const MAX_SPARSE: usize = 8;

/// The name of a variable.
pub(super) fn name_of(keys: &Keys) -> String {
    let name = NAMES.iter().find_map(|key| match keys.get(*key)? {
        Value::Text(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Integer(integer) => Some(format!("param{integer}")),
        _ => None,
    });
    name.unwrap_or_else(|| "data".to_owned())
}

fn rank(key: &str) -> Option<usize> {
    let last = last(key);
    AXES.iter().position(|axis| *axis == last)
}

/// Whether a value can be a coordinate.
fn is_coordinate(value: &Value) -> bool {
    match value {
        Value::Integer(integer) => i64::try_from(*integer).is_ok(),
        Value::Float(float) => float.is_finite(),
        Value::Text(text) => !text.is_empty() && !text.contains('\0'),
        _ => false,
    }
}

/// A value that can be compared and hashed: floats by their bits.
fn identity(value: &Value) -> String {
    match value {
        Value::Float(float) => format!("f{:016x}", float.to_bits()),
        Value::Integer(integer) => format!("i{integer}"),
        Value::Text(text) => format!("t{text}"),
        other => format!("j{}", other.to_json()),
    }
}

/// Stacks fields. Cubes have the order of their first fields.
pub(super) fn stack(fields: &[Field]) -> Vec<Cube> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for (number, field) in fields.iter().enumerate() {
        let name = name_of(&field.keys);
        let axes: Vec<&String> = field.keys.keys().filter(|key| rank(key).is_some()).collect();
        let separating: Vec<String> = field
            .keys
            .iter()
            .filter(|(key, _)| SEPARATING.contains(&last(key).as_str()))
            .map(|(key, value)| format!("{key}={}", identity(value)))
            .collect();
        let special = field.special.as_ref().map(|special| {
            let axes: Vec<_> = special.axes.iter().map(|axis| (&axis.name, axis.kind, &axis.attrs)).collect();
            (&special.dims, special.kind, axes)
        });
        let group =
            format!("{name}\0{}\0{:?}\0{axes:?}\0{separating:?}\0{special:?}", field.dtype, field.shape);
        let position = *known.entry(group).or_insert_with(|| {
            groups.push((name, Vec::new()));
            groups.len() - 1
        });
        groups[position].1.push(number);
    }
    let mut cubes: Vec<Cube> =
        groups.into_iter().map(|(name, members)| cube(name, &members, fields)).collect();
    unique_names(&mut cubes, fields);
    cubes
}

/// Names that several cubes share get the level type, or a number.
fn unique_names(cubes: &mut [Cube], fields: &[Field]) {
    let names: Vec<String> = cubes.iter().map(|cube| cube.name.clone()).collect();
    let mut taken: Vec<String> = Vec::new();
    for cube in cubes.iter_mut() {
        if names.iter().filter(|name| **name == cube.name).count() > 1 {
            let first = cube.fields.iter().flatten().next().and_then(|field| fields.get(*field));
            let level = first.and_then(|field| {
                let found = field
                    .keys
                    .iter()
                    .find(|(key, _)| ["levtype", "typeOfLevel"].contains(&last(key).as_str()));
                found.and_then(|(_, value)| value.as_text())
            });
            if let Some(level) = level.filter(|level| !level.is_empty()) {
                cube.name = format!("{}_{level}", cube.name);
            }
        }
        let base = cube.name.clone();
        let mut attempt = 2;
        while taken.contains(&cube.name) {
            cube.name = format!("{base}_{attempt}");
            attempt += 1;
        }
        taken.push(cube.name.clone());
    }
}

fn cube(name: String, members: &[usize], fields: &[Field]) -> Cube {
    let Some(first) = members.first().and_then(|first| fields.get(*first)) else {
        return Cube { name, dimensions: Vec::new(), fields: Vec::new() };
    };
    if let Some(special) = first.special.as_ref() {
        // The dimensions are recorded, even those of length 1.
        let keys: Vec<String> = special.axes.iter().map(|axis| axis.name.clone()).collect();
        let have = |key: &String| {
            let is_indexed = indices(members, fields, key).is_some();
            members.iter().all(|member| {
                fields[*member].keys.get(key).is_some_and(|value| is_indexed || is_coordinate(value))
            })
        };
        if keys.iter().all(have) {
            return arranged(name, members, fields, &keys);
        }
    }
    let mut candidates: Vec<&String> = first
        .keys
        .iter()
        .filter(|(key, _)| {
            members.iter().all(|member| fields[*member].keys.get(*key).is_some_and(is_coordinate))
        })
        .map(|(key, _)| key)
        .collect();
    candidates.sort_by_key(|key| (rank(key).unwrap_or(usize::MAX), (*key).clone()));
    // Fields of one class agree in all dimensions so far.
    let mut classes = vec![0usize; members.len()];
    let mut count = 1;
    let mut chosen = Vec::new();
    for key in candidates {
        if count == members.len() {
            break;
        }
        let mut refined: HashMap<(usize, String), usize> = HashMap::new();
        let mut next = Vec::with_capacity(members.len());
        for (member, class) in members.iter().zip(&classes) {
            let id = fields[*member].keys.get(key).map(identity).unwrap_or_default();
            let fresh = refined.len();
            next.push(*refined.entry((*class, id)).or_insert(fresh));
        }
        if refined.len() > count {
            count = refined.len();
            classes = next;
            chosen.push(key.clone());
        }
    }
    arranged(name, members, fields, &chosen)
}

/// The recorded positions of fields along a dimension, if all have one, and fields of one position have one value.
fn indices(members: &[usize], fields: &[Field], key: &str) -> Option<Vec<u64>> {
    let mut values: HashMap<u64, String> = HashMap::new();
    let index = |member: &usize| {
        let field = fields.get(*member)?;
        let axes = &field.special.as_ref()?.axes;
        let index = axes.iter().find(|axis| axis.name == key)?.index?;
        let value = field.keys.get(key).map(identity)?;
        (*values.entry(index).or_insert_with(|| value.clone()) == value).then_some(index)
    };
    members.iter().map(index).collect()
}

/// Arranges fields by the values of keys. Fields that agree in all of them are numbered by a last dimension.
fn arranged(name: String, members: &[usize], fields: &[Field], keys: &[String]) -> Cube {
    let mut dimensions: Vec<Dimension> = Vec::new();
    let mut positions: Vec<Vec<usize>> = vec![Vec::new(); members.len()];
    for key in keys {
        let mut found: Vec<Value> = Vec::new();
        let mut index: HashMap<String, usize> = HashMap::new();
        let mut at = Vec::with_capacity(members.len());
        let recorded = indices(members, fields, key);
        let mut places: Vec<u64> = Vec::new();
        for (number, member) in members.iter().enumerate() {
            let value = fields[*member].keys.get(key).cloned().unwrap_or(Value::Null);
            let place = recorded.as_ref().and_then(|recorded| recorded.get(number)).copied();
            let id = place.map_or_else(|| identity(&value), |place| place.to_string());
            at.push(*index.entry(id).or_insert_with(|| {
                found.push(value);
                places.extend(place);
                found.len() - 1
            }));
        }
        let order = if recorded.is_some() { ranks(&places) } else { coordinate_order(&found) };
        for (slot, at) in positions.iter_mut().zip(&at) {
            slot.push(order[*at]);
        }
        let mut values = vec![Value::Null; found.len()];
        for (value, position) in found.into_iter().zip(&order) {
            values[*position] = value;
        }
        dimensions.push(Dimension { key: Some(key.clone()), values });
    }
    let size = |dimensions: &[Dimension]| {
        dimensions.iter().fold(1usize, |size, dimension| size.saturating_mul(dimension.values.len()))
    };
    // How many fields have the same position.
    let mut repeats: HashMap<Vec<usize>, usize> = HashMap::new();
    let mut most = 0;
    let copies: Vec<usize> = positions
        .iter()
        .map(|position| {
            let count = repeats.entry(position.clone()).or_default();
            *count += 1;
            most = most.max(*count);
            *count - 1
        })
        .collect();
    let numbers = |count: usize| Dimension { key: None, values: (0..count).map(Value::from).collect() };
    let is_sparse =
        size(&dimensions).saturating_mul(most.max(1)) > members.len().saturating_mul(MAX_SPARSE).max(64);
    if is_sparse {
        return Cube {
            name,
            dimensions: vec![numbers(members.len())],
            fields: members.iter().copied().map(Some).collect(),
        };
    }
    if most > 1 {
        dimensions.push(numbers(most));
        positions.iter_mut().zip(&copies).for_each(|(position, copy)| position.push(*copy));
    }
    let mut fields = vec![None; size(&dimensions)];
    for (member, position) in members.iter().zip(&positions) {
        let linear = position
            .iter()
            .zip(&dimensions)
            .fold(0, |linear, (at, dimension)| linear * dimension.values.len() + at);
        if let Some(field) = fields.get_mut(linear) {
            *field = Some(*member);
        }
    }
    Cube { name, dimensions, fields }
}

/// Whether values have the order that [`stack`] gives to them: strictly ascending or descending numbers, or different strings.
pub(super) fn is_ordered(values: &[Value]) -> bool {
    let numbers: Option<Vec<f64>> = values.iter().map(number).collect();
    if let Some(numbers) = numbers {
        let ascends = numbers.windows(2).all(|pair| pair[0] < pair[1]);
        return ascends || numbers.windows(2).all(|pair| pair[0] > pair[1]);
    }
    let mut seen = HashSet::new();
    values.iter().all(|value| is_coordinate(value) && seen.insert(identity(value)))
}

/// A number as a float.
fn number(value: &Value) -> Option<f64> {
    match value {
        #[expect(clippy::cast_precision_loss, reason = "only the order counts")]
        Value::Integer(integer) => Some(*integer as f64),
        Value::Float(float) => Some(*float),
        _ => None,
    }
}

/// The position of each number in ascending order. Numbers are different.
fn ranks(numbers: &[u64]) -> Vec<usize> {
    numbers.iter().map(|number| numbers.iter().filter(|other| *other < number).count()).collect()
}

/// The position of each value: as they appear; numbers that are neither ascending nor descending are sorted, from the first one if it is the largest.
fn coordinate_order(values: &[Value]) -> Vec<usize> {
    let as_is: Vec<usize> = (0..values.len()).collect();
    let numbers: Option<Vec<f64>> = values.iter().map(number).collect();
    let Some(numbers) = numbers else { return as_is };
    let ascending = numbers.windows(2).all(|pair| pair[0] <= pair[1]);
    let descending = numbers.windows(2).all(|pair| pair[0] >= pair[1]);
    if ascending || descending {
        return as_is;
    }
    let mut sorted = as_is;
    sorted.sort_by(|a, b| numbers[*a].total_cmp(&numbers[*b]));
    // Levels often descend; the first field of such a file has the largest value.
    if sorted.last() == Some(&0) {
        sorted.reverse();
    }
    let mut order = vec![0; values.len()];
    for (position, index) in sorted.into_iter().enumerate() {
        order[index] = position;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::super::special::Axis;
    use super::*;

    fn field(number: u64, keys: &[(&str, Value)]) -> Field {
        Field {
            message: number,
            object: 0,
            ordinal: number,
            dtype: DType::F32,
            shape: vec![2],
            keys: keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
            special: None,
            pipeline: Value::Null,
        }
    }

    fn dims(cube: &Cube) -> Vec<(Option<&str>, usize)> {
        cube.dimensions.iter().map(|dimension| (dimension.key.as_deref(), dimension.values.len())).collect()
    }

    #[test]
    fn varying_keys_are_dimensions() {
        let mut fields = Vec::new();
        for step in [0, 6] {
            for level in [1000, 850, 500] {
                for name in ["t", "u"] {
                    let number = fields.len() as u64;
                    // The validity is determined by the step.
                    let keys = [
                        ("name", name.into()),
                        ("mars.step", step.into()),
                        ("mars.level", level.into()),
                        ("validity", (step + 100).into()),
                    ];
                    fields.push(field(number, &keys));
                }
            }
        }
        fields.retain(|field| field.ordinal != 10);
        let cubes = stack(&fields);
        assert_eq!(cubes.iter().map(|cube| &*cube.name).collect::<Vec<_>>(), ["t", "u"]);
        assert_eq!(dims(&cubes[0]), [(Some("mars.step"), 2), (Some("mars.level"), 3)]);
        assert_eq!(cubes[0].dimensions[1].values, [1000.into(), 850.into(), 500.into()]);
        assert_eq!(cubes[0].fields.iter().filter(|field| field.is_none()).count(), 1);
        assert_eq!(cubes[0].fields[5], None);
        assert!(cubes[1].fields.iter().all(Option::is_some));
    }

    #[test]
    fn equal_fields_and_sparse_cubes_are_numbered() {
        let same = [field(0, &[("name", "t".into())]), field(1, &[("name", "t".into())])];
        let cubes = stack(&same);
        assert_eq!(dims(&cubes[0]), [(None, 2)]);
        assert_eq!(cubes[0].fields, [Some(0), Some(1)]);
        let sparse: Vec<Field> = (0..100)
            .map(|n: u64| field(n, &[("name", "t".into()), ("step", (n / 2).into()), ("level", n.into())]))
            .collect();
        let cubes = stack(&sparse);
        assert_eq!(dims(&cubes[0]), [(None, 100)]);
    }

    #[test]
    fn recorded_positions_count_more_than_values() {
        let indexed = |number: u64, time: i64, index: u64| {
            let axis = Axis { name: "time".to_owned(), kind: None, attrs: Vec::new(), index: Some(index) };
            let special = Special { axes: vec![axis], ..Special::default() };
            Field { special: Some(special), ..field(number, &[("name", "t".into()), ("time", time.into())]) }
        };
        let values = |cube: &Cube| cube.dimensions[0].values.clone();
        // Unordered and repeated values, read in another order.
        let cubes = stack(&[indexed(0, 0, 3), indexed(1, 0, 0), indexed(2, 30, 1), indexed(3, 15, 2)]);
        assert_eq!(values(&cubes[0]), [0.into(), 30.into(), 15.into(), 0.into()]);
        assert_eq!(cubes[0].fields, [Some(1), Some(2), Some(3), Some(0)]);
        // Positions of two files contradict each other.
        let cubes = stack(&[indexed(0, 7, 0), indexed(1, 3, 0)]);
        assert_eq!(values(&cubes[0]), [7.into(), 3.into()]);
    }

    #[test]
    fn unordered_numbers_are_sorted() {
        assert_eq!(coordinate_order(&[1000.into(), 500.into(), 850.into()]), [0, 2, 1]);
        assert_eq!(coordinate_order(&[6.into(), 0.into(), 12.into()]), [1, 0, 2]);
        assert_eq!(coordinate_order(&[12.into(), 6.into(), 0.into()]), [0, 1, 2]);
        assert_eq!(coordinate_order(&["b".into(), "a".into()]), [0, 1]);
    }
}
