//! Lookup of values by path, and metadata that all objects share.

use super::{EXTRA, Entry, GlobalMetadata, RESERVED};
use crate::value::Value;

impl GlobalMetadata {
    /// The value at a path like `mars.param`.
    ///
    /// The prefix `extra.` or `_extra_.` restricts the lookup to [`extra`](Self::extra). Otherwise the first object
    /// that has the path is used, then `extra`. Paths enter maps, not arrays. The `_reserved_` entries of objects are
    /// not found.
    pub fn get(&self, path: &str) -> Option<&Value> {
        if let Some((EXTRA | "extra", path)) = path.split_once('.') {
            return walk(&self.extra, path);
        }
        let in_objects = || self.base.iter().find_map(|entry| walk_object(entry, path));
        in_objects().or_else(|| walk(&self.extra, path))
    }

    /// The value at a path in the entry of one object. `_reserved_` is not found.
    pub fn get_in_object(&self, object: usize, path: &str) -> Option<&Value> {
        walk_object(self.base.get(object)?, path)
    }

    /// The value at a path for some objects: that of the first of them that has it, else that of the message.
    ///
    /// Like [`get`](Self::get) otherwise; the prefix `base.` restricts the lookup to the entries of the objects.
    pub fn get_for_objects(&self, objects: &[u64], path: &str) -> Option<&Value> {
        if let Some((EXTRA | "extra", path)) = path.split_once('.') {
            return walk(&self.extra, path);
        }
        let in_objects = |path: &str| {
            let entries = objects.iter().filter_map(|&object| self.base.get(usize::try_from(object).ok()?));
            entries.into_iter().find_map(|entry| walk_object(entry, path))
        };
        match path.split_once('.') {
            Some(("base", path)) => in_objects(path),
            _ => in_objects(path).or_else(|| walk(&self.extra, path)),
        }
    }

    /// Whether every object has the same value at a path, or none has it. Floats are compared bit by bit.
    pub(crate) fn is_shared(&self, path: &str) -> bool {
        let of = |object: usize| self.get_for_objects(&[object as u64], path);
        let first = of(0);
        (1..self.base.len()).all(|object| match (first, of(object)) {
            (Some(first), Some(other)) => first.is_same(other),
            (first, other) => first.is_none() && other.is_none(),
        })
    }

    /// The metadata that all objects share, and the rest of each.
    ///
    /// Shared are the keys other than `_reserved_` that have the same value in every entry; floats are compared
    /// bit by bit.
    pub fn common(&self) -> (Entry, Vec<Entry>) {
        let Some((first, others)) = self.base.split_first() else { return (Entry::new(), Vec::new()) };
        let is_common = |key: &String, value: &Value| {
            key != RESERVED
                && others.iter().all(|entry| entry.get(key).is_some_and(|other| other.is_same(value)))
        };
        let clone = |(key, value): (&String, &Value)| (key.clone(), value.clone());
        let common: Entry = first.iter().filter(|(key, value)| is_common(key, value)).map(clone).collect();
        let rest =
            |entry: &Entry| entry.iter().filter(|(key, _)| !common.contains_key(*key)).map(clone).collect();
        let rest = self.base.iter().map(rest).collect();
        (common, rest)
    }
}

/// The value at a path of a map.
fn walk<'a>(entry: &'a Entry, path: &str) -> Option<&'a Value> {
    let mut segments = path.split('.');
    let first = entry.get(segments.next()?)?;
    segments.try_fold(first, |value, segment| value.get(segment))
}

/// Like [`walk`], without `_reserved_`.
fn walk_object<'a>(entry: &'a Entry, path: &str) -> Option<&'a Value> {
    if path.split('.').next() == Some(RESERVED) { None } else { walk(entry, path) }
}
