//! The array that an option applies to.

use std::collections::{BTreeMap, BTreeSet};

use tercet::core::escape;
use tercet::tet::{Compression, Rounding};

use super::{Arrays, labels, syntax};
use crate::failure::Failure;

/// The options by array.
pub(super) struct Scoped {
    chunk: Values<Vec<u64>>,
    compression: Values<Compression>,
    rounding: Values<Rounding>,
    dims: Values<Vec<String>>,
    attrs: Keyed<String>,
    labels: Keyed<Vec<String>>,
}

impl Scoped {
    /// Assigns the options to arrays and reads the label files.
    pub(super) fn parse(arrays: &Arrays, names: &[&str]) -> Result<Self, Failure> {
        let wrong = |message: String| Failure::request(message);
        let mut scoped = Self {
            chunk: Values::default(),
            compression: Values::default(),
            rounding: Values::default(),
            dims: Values::default(),
            attrs: Keyed::default(),
            labels: Keyed::default(),
        };
        for text in &arrays.chunk {
            let (array, shape) = scope("--chunk", text, names)?;
            scoped.chunk.put("--chunk", array, names, syntax::parse_chunk(shape).map_err(wrong)?)?;
        }
        for text in &arrays.compression {
            // The level follows a colon, too: a codec is not the name of an array.
            let (array, codec) = if let Ok(codec) = syntax::parse_compression(text) {
                (None, codec)
            } else {
                let (array, codec) = scope("--compression", text, names)?;
                (array, syntax::parse_compression(codec).map_err(wrong)?)
            };
            scoped.compression.put("--compression", array, names, codec)?;
        }
        for text in &arrays.zstd {
            let (array, level) = scope("--zstd", text, names)?;
            let level = syntax::parse_zstd(level).map_err(wrong)?;
            scoped.compression.put("--zstd", array, names, level)?;
        }
        for text in &arrays.max_error {
            let (array, error) = scope("--max-error", text, names)?;
            let error = syntax::parse_max_error(error).map_err(wrong)?;
            scoped.rounding.put("--max-error", array, names, error)?;
        }
        for text in &arrays.keep_bits {
            let (array, bits) = scope("--keep-bits", text, names)?;
            let bits = syntax::parse_keep_bits(bits).map_err(wrong)?;
            let both = "`--max-error` and `--keep-bits` are given for the same array";
            scoped.rounding.put("--keep-bits", array, names, bits).map_err(|failure| {
                if arrays.max_error.is_empty() { failure } else { Failure::request(both) }
            })?;
        }
        for text in &arrays.dims {
            let (array, axes) = scope("--dims", text, names)?;
            let axes: Vec<String> = axes.split(',').map(|axis| axis.trim().to_owned()).collect();
            check_axes_differ(text, &axes)?;
            scoped.dims.put("--dims", array, names, axes)?;
        }
        for (key, value) in &arrays.attr {
            let (array, key) = scope("--attr", key, names)?;
            scoped.attrs.entry(key).put(&format!("--attr {key}"), array, names, value.clone())?;
        }
        for file in &arrays.labels {
            let (array, axis) = scope("--labels", &file.name, names)?;
            let lines = labels::read(&file.path)?;
            scoped.labels.entry(axis).put(&format!("--labels {axis}"), array, names, lines)?;
        }
        Ok(scoped)
    }

    pub(super) fn chunk(&self, array: usize) -> Option<Vec<u64>> {
        self.chunk.get(array).cloned()
    }

    pub(super) fn compression(&self, array: usize) -> Option<Compression> {
        self.compression.get(array).copied()
    }

    /// The rounding of this array. Rounding of all arrays does not apply to coordinates.
    pub(super) fn rounding(&self, array: usize, is_coordinate: bool) -> Option<Rounding> {
        let own = self.rounding.one.get(&array);
        own.or_else(|| self.rounding.all.as_ref().filter(|_| !is_coordinate)).copied()
    }

    /// All axis names.
    pub(super) fn all_dims(&self) -> impl Iterator<Item = &str> {
        self.dims.one.values().chain(&self.dims.all).flatten().map(String::as_str)
    }

    /// The axis names of an array. A one-dimensional array with the name of an axis of all arrays holds its coordinates.
    pub(super) fn dims(&self, array: usize, name: &str, rank: usize) -> Vec<String> {
        let is_own = self.dims.one.contains_key(&array);
        let dims = self.dims.get(array).cloned().unwrap_or_default();
        if !is_own && rank == 1 && dims.iter().any(|dim| dim == name) { vec![name.to_owned()] } else { dims }
    }

    pub(super) fn attrs(&self, array: usize) -> Vec<(String, String)> {
        let given = self.attrs.0.iter();
        given.filter_map(|(key, values)| Some((key.clone(), values.get(array)?.clone()))).collect()
    }

    /// Labels of this array; labels for all arrays only if it has the axis.
    pub(super) fn labels(&self, array: usize, dims: &[String], rank: usize) -> Vec<(String, Vec<String>)> {
        let has = |axis: &String| dims.contains(axis) || axis.parse::<usize>().is_ok_and(|n| n < rank);
        let meant = |(axis, values): (&String, &Values<Vec<String>>)| {
            let labels = values.one.get(&array).or_else(|| values.all.as_ref().filter(|_| has(axis)))?;
            Some((axis.clone(), labels.clone()))
        };
        self.labels.0.iter().filter_map(meant).collect()
    }

    /// Rejects labels for an axis that no array has.
    pub(super) fn check_labels_used(&self, used: &[super::Opened]) -> Result<(), Failure> {
        for (axis, values) in &self.labels.0 {
            let found = used.iter().any(|array| array.labels.iter().any(|(name, _)| name == axis));
            if values.all.is_some() && !found {
                let message = format!("no array has an axis `{}`", escape::name(axis));
                return Err(
                    Failure::request(message).with_hint("name axes with `--dims`; axis numbers start at 0")
                );
            }
        }
        Ok(())
    }
}

/// Rejects duplicate axis names: labels and selections would be ambiguous. Axes without a name are allowed.
pub(in super::super) fn check_axes_differ(text: &str, axes: &[String]) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    match axes.iter().find(|axis| !axis.is_empty() && !seen.insert(axis.as_str())) {
        None => Ok(()),
        Some(twice) => {
            let (text, twice) = (escape::name(text), escape::name(twice));
            Err(Failure::request(format!("`--dims {text}` has a duplicate axis name `{twice}`")))
        }
    }
}

/// A default value, and values per array.
struct Values<T> {
    all: Option<T>,
    one: BTreeMap<usize, T>,
}

impl<T> Default for Values<T> {
    fn default() -> Self {
        Self { all: None, one: BTreeMap::new() }
    }
}

impl<T> Values<T> {
    fn put(&mut self, option: &str, array: Option<usize>, names: &[&str], value: T) -> Result<(), Failure> {
        let (before, whom) = match array {
            Some(number) => {
                let name = names.get(number).copied().unwrap_or_default();
                (self.one.insert(number, value), format!("array `{}`", escape::name(name)))
            }
            None => (self.all.replace(value), "all arrays".to_owned()),
        };
        match before {
            None => Ok(()),
            Some(_) => Err(Failure::request(format!(
                "`{}` is given more than once for {whom}",
                escape::name(option)
            ))),
        }
    }

    fn get(&self, array: usize) -> Option<&T> {
        self.one.get(&array).or(self.all.as_ref())
    }
}

/// Values by key: attributes, labels.
struct Keyed<T>(BTreeMap<String, Values<T>>);

impl<T> Default for Keyed<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Keyed<T> {
    fn entry(&mut self, key: &str) -> &mut Values<T> {
        self.0.entry(key.to_owned()).or_default()
    }
}

/// Splits `NAME:VALUE` into the array and the value.
///
/// A colon after an unknown name is rejected: most likely the name is misspelled.
fn scope<'t>(option: &str, text: &'t str, names: &[&str]) -> Result<(Option<usize>, &'t str), Failure> {
    if let Some(rest) = text.strip_prefix(':') {
        return Ok((None, rest));
    }
    let after = |name: &str| text.strip_prefix(name)?.strip_prefix(':');
    // Names may contain colons: the longest match wins.
    let found = names.iter().enumerate().filter_map(|(number, name)| Some((number, after(name)?)));
    if let Some((number, rest)) = found.min_by_key(|(_, rest)| rest.len()) {
        return Ok((Some(number), rest));
    }
    match text.split_once(':') {
        None => Ok((None, text)),
        Some((name, _)) => {
            let (name, text) = (escape::name(name), escape::name(text));
            let message = format!("`{option} {text}`: no array `{name}` in this command");
            let names: Vec<_> = names.iter().map(|name| escape::name(name)).collect();
            Err(Failure::request(message).with_hint(format!("available: {}", names.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_selects_one_array() {
        let names = ["a", "a:b", "c/d"];
        let scope = |text| scope("--attr", text, &names).ok();
        assert_eq!(scope("units"), Some((None, "units")));
        assert_eq!(scope("a:units"), Some((Some(0), "units")));
        assert_eq!(scope("a:b:units"), Some((Some(1), "units")));
        assert_eq!(scope("c/d:x:y"), Some((Some(2), "x:y")));
        assert_eq!(scope(":x:y"), Some((None, "x:y")));
        assert_eq!(scope("e:units"), None);
        assert_eq!(scope("ab:units"), None);
    }

    #[test]
    fn one_array_overrides_all() {
        let mut values = Values::default();
        values.put("--chunk", None, &["a", "b"], 1).unwrap();
        values.put("--chunk", Some(1), &["a", "b"], 2).unwrap();
        assert_eq!((values.get(0), values.get(1)), (Some(&1), Some(&2)));
        assert!(values.put("--chunk", None, &["a", "b"], 3).is_err());
        assert!(values.put("--chunk", Some(1), &["a", "b"], 3).is_err());
    }
}
