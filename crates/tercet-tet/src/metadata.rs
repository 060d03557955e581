//! [`Metadata`] and [`HistoryRow`]: provenance, attributes, axis names, labels, history.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::attribute::{self, AttrValue, FILE_ATTRS};
pub use tercet_core::clock::unix_seconds;

/// The metadata of a file: everything in the footer but history.
///
/// Unknown members are kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Metadata {
    /// The program that created the file.
    #[serde(default, skip_serializing_if = "FileInfo::is_empty")]
    pub file: FileInfo,
    /// Metadata of datasets, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub datasets: BTreeMap<String, DatasetInfo>,
    #[serde(flatten)]
    pub(crate) unknown: Map<String, Value>,
    /// The integrity block as JSON. `null` counts as present, with an unknown version.
    #[serde(
        rename = "tercet",
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) block: Option<Value>,
}

/// The program that created a file, and the time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FileInfo {
    /// The name of the program.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// The version of the library.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub library_version: String,
    /// The time in decimal Unix seconds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub created_at: String,
    #[serde(flatten)]
    pub(crate) unknown: Map<String, Value>,
}

/// The metadata of one dataset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DatasetInfo {
    /// Attributes such as `units`; values are strings.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attrs: BTreeMap<String, String>,
    /// Axis names; ignored unless there is one per axis.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dim_names: Vec<String>,
    /// Labels by axis name or decimal axis number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub coords: BTreeMap<String, Coord>,
    #[serde(flatten)]
    pub(crate) unknown: Map<String, Value>,
}

/// The labels of an axis, one per position.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Coord {
    /// The labels, in order.
    pub labels: Vec<String>,
    #[serde(flatten)]
    pub(crate) unknown: Map<String, Value>,
}

impl Coord {
    /// A coordinate with these labels.
    pub fn new(labels: Vec<String>) -> Self {
        Self { labels, unknown: Map::new() }
    }
}

impl FileInfo {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The attributes of the file, in the order in which they were set.
    pub fn attrs(&self) -> impl Iterator<Item = (&str, AttrValue)> {
        let attrs = self.unknown.get(FILE_ATTRS).and_then(Value::as_object);
        attrs.into_iter().flatten().map(|(key, value)| (key.as_str(), AttrValue::from_json(value)))
    }

    /// An attribute of the file.
    pub fn attr(&self, key: &str) -> Option<AttrValue> {
        self.unknown.get(FILE_ATTRS)?.as_object()?.get(key).map(AttrValue::from_json)
    }
}

impl Metadata {
    /// Whether there is no metadata.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl DatasetInfo {
    /// The labels of an axis, if there are `extent` of them: by axis name, by axis number, or the only coordinate of that
    /// length unless its key is another axis.
    pub fn labels(&self, axis: usize, rank: usize, extent: u64) -> Option<&[String]> {
        Some(&self.coords.get(self.labels_key(axis, rank, extent)?)?.labels)
    }

    /// The key in `coords` of the labels of an axis.
    pub(crate) fn labels_key(&self, axis: usize, rank: usize, extent: u64) -> Option<&str> {
        let keys: Vec<&str> = self.fitting(extent).map(|(key, _)| key).collect();
        let axis = LabelledAxis { axis, rank, names: self.axis_names(rank) };
        axis.own(&keys).or_else(|| only(&keys).filter(|key| !axis.is_another(key)))
    }

    /// The labels of an axis by the rules of the format for queries: without its own, the only labels of its length.
    pub(crate) fn query_labels(&self, axis: usize, rank: usize, extent: u64) -> Option<&[String]> {
        let keys: Vec<&str> = self.fitting(extent).map(|(key, _)| key).collect();
        let axis = LabelledAxis { axis, rank, names: self.axis_names(rank) };
        Some(&self.coords.get(axis.own(&keys).or_else(|| only(&keys))?)?.labels)
    }

    /// The labels of this length, by key.
    pub(crate) fn fitting(&self, extent: u64) -> impl Iterator<Item = (&str, &[String])> {
        let labels = self.coords.iter().map(|(key, coord)| (key.as_str(), &coord.labels[..]));
        labels.filter(move |(_, labels)| labels.len() as u64 == extent)
    }

    /// The axis names of an array of this rank; empty unless there is one per axis.
    pub(crate) fn axis_names(&self, rank: usize) -> &[String] {
        if self.dim_names.len() == rank { &self.dim_names } else { &[] }
    }

    /// An attribute with its type.
    pub fn attr(&self, key: &str) -> Option<AttrValue> {
        let text = self.attrs.get(key)?;
        Some(AttrValue::from_stored(text, attribute::recorded(&self.unknown, key)))
    }
}

/// An axis whose labels are looked up.
#[derive(Clone, Copy)]
pub(crate) struct LabelledAxis<'a> {
    pub(crate) axis: usize,
    pub(crate) rank: usize,
    /// The names of all axes, or none.
    pub(crate) names: &'a [String],
}

impl LabelledAxis<'_> {
    /// The key that is the name of the axis, else the one that is its number.
    pub(crate) fn own<'k>(&self, keys: &[&'k str]) -> Option<&'k str> {
        let find = |name: &str| keys.iter().copied().find(|key| *key == name);
        self.names.get(self.axis).and_then(|name| find(name)).or_else(|| find(&self.axis.to_string()))
    }

    /// Whether a key is the name or the number of another axis.
    pub(crate) fn is_another(&self, key: &str) -> bool {
        let is =
            |other: usize| self.names.get(other).is_some_and(|name| name == key) || other.to_string() == key;
        (0..self.rank).any(|other| other != self.axis && is(other))
    }
}

/// The key, if there is only one.
pub(crate) fn only<'k>(keys: &[&'k str]) -> Option<&'k str> {
    match keys {
        [only] => Some(only),
        _ => None,
    }
}

/// One row of the history of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HistoryRow {
    /// The operation: `create`, `append`, `convert`, …
    pub op: String,
    /// The program or the input.
    pub source: String,
    /// The time in decimal Unix seconds.
    pub at: String,
    /// Input files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<String>,
    /// Parameters of the operation.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// The agent of the operation (W3C PROV).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The activity (W3C PROV).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// The entity (W3C PROV).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
}

impl HistoryRow {
    /// A row with the current time. `SOURCE_DATE_EPOCH` replaces the clock for reproducible files.
    pub fn now(op: &str, source: &str) -> Self {
        Self::at(op, source, unix_seconds())
    }

    /// A row with a time in Unix seconds.
    pub fn at(op: &str, source: &str, seconds: u64) -> Self {
        Self { op: op.to_owned(), source: source.to_owned(), at: seconds.to_string(), ..Self::default() }
    }

    /// Adds a parameter.
    pub fn with_param(mut self, key: &str, value: impl Into<String>) -> Self {
        self.params.insert(key.to_owned(), value.into());
        self
    }
}

impl<'de> Deserialize<'de> for HistoryRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// The object form; the array form `[op, source, at]` is older.
        #[derive(Deserialize)]
        struct Object {
            op: String,
            source: String,
            at: String,
            #[serde(default)]
            parents: Vec<String>,
            #[serde(default)]
            params: BTreeMap<String, String>,
            agent: Option<String>,
            activity: Option<String>,
            entity: Option<String>,
        }
        struct Row;
        impl<'de> Visitor<'de> for Row {
            type Value = HistoryRow;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a history row: an object or three strings")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<HistoryRow, A::Error> {
                let row = Object::deserialize(MapAccessDeserializer::new(map))?;
                Ok(HistoryRow {
                    op: row.op,
                    source: row.source,
                    at: row.at,
                    parents: row.parents,
                    params: row.params,
                    agent: row.agent,
                    activity: row.activity,
                    entity: row.entity,
                })
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<HistoryRow, A::Error> {
                let mut next =
                    |n| seq.next_element::<String>()?.ok_or_else(|| A::Error::invalid_length(n, &self));
                let (op, source, at) = (next(0)?, next(1)?, next(2)?);
                if seq.next_element::<String>()?.is_some() {
                    return Err(A::Error::invalid_length(4, &self));
                }
                Ok(HistoryRow { op, source, at, ..HistoryRow::default() })
            }
        }
        deserializer.deserialize_any(Row)
    }
}

/// A present member, even `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_history_are_read() {
        let rows: Vec<HistoryRow> =
            serde_json::from_str(r#"[["a","b","1"],{"op":"c","source":"d","at":"2","zzz":3}]"#).unwrap();
        assert_eq!(rows[0], HistoryRow::at("a", "b", 1));
        assert_eq!(rows[1], HistoryRow::at("c", "d", 2));
        for wrong in [
            r#"["a","b"]"#,
            r#"["a","b","c","d"]"#,
            r#"{"op":"a"}"#,
            "null",
            r#"{"op":"a","op":"b","source":"","at":""}"#,
        ] {
            assert!(serde_json::from_str::<HistoryRow>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn unknown_members_survive() {
        let text = r#"{"file":{"tool":"x","y":[1]},"datasets":{"a":{"dim_names":["t"],"coords":{"t":{"labels":["p"],"u":0}},"z":1}},"later":{}}"#;
        let metadata: Metadata = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&metadata).unwrap(), text);
    }

    #[test]
    fn known_members_keep_their_types() {
        for wrong in [
            r#"{"file":null}"#,
            r#"{"datasets":[]}"#,
            "[]",
            r#"{"datasets":{"a":null}}"#,
            r#"{"datasets":{"a":{"attrs":{"k":1}}}}"#,
            r#"{"datasets":{"a":{"coords":{"t":{}}}}}"#,
            r#"{"datasets":{"a":[]}}"#,
            r#"{"file":{},"file":{}}"#,
        ] {
            assert!(serde_json::from_str::<Metadata>(wrong).is_err(), "{wrong}");
        }
        let metadata: Metadata = serde_json::from_str(r#"{"tercet":null}"#).unwrap();
        assert_eq!(metadata.block, Some(Value::Null));
    }

    #[test]
    fn labels_are_found_by_name_number_or_length() {
        let info = |text: &str| serde_json::from_str::<DatasetInfo>(text).unwrap();
        let named = info(r#"{"dim_names":["t","s"],"coords":{"s":{"labels":["a","b"]}}}"#);
        assert_eq!(named.labels(1, 2, 2).map(<[String]>::len), Some(2));
        let numbered = info(r#"{"coords":{"1":{"labels":["a","b"]},"x":{"labels":["a","b"]}}}"#);
        assert_eq!(numbered.labels(1, 2, 2).map(<[String]>::len), Some(2));
        assert_eq!(numbered.labels(0, 2, 2), None, "two coordinates fit");
        let only = info(r#"{"coords":{"x":{"labels":["a","b"]}}}"#);
        assert!(only.labels(0, 2, 2).is_some());
        assert!(only.labels(0, 2, 3).is_none());
        // Axes of the same length: the labels of one are not those of another.
        assert!(named.labels(0, 2, 2).is_none());
        let second = info(r#"{"coords":{"1":{"labels":["a","b"]}}}"#);
        assert!(second.labels(0, 2, 2).is_none());
        assert!(second.labels(1, 2, 2).is_some());
    }
}
