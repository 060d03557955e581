//! Finding values by path, and what all objects have in common.

use super::{EXTRA, Entry, GlobalMetadata, RESERVED};
use crate::value::Value;

impl GlobalMetadata {
    /// The value at a path like `mars.param`.
    ///
    /// `extra.` or `_extra_.` in front looks into [`extra`](Self::extra) only. Otherwise the first object that has
    /// the path answers, and after the objects `extra`. Only maps are walked into, not arrays. What the library
    /// added to the objects (`_reserved_`) is not found.
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

    /// What all objects have in common, and what is left of each.
    ///
    /// Common are the keys other than `_reserved_` that are in every entry with the same value; floats are compared
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

/// Walks from a map along the segments of a path.
fn walk<'a>(entry: &'a Entry, path: &str) -> Option<&'a Value> {
    let mut segments = path.split('.');
    let first = entry.get(segments.next()?)?;
    segments.try_fold(first, |value, segment| value.get(segment))
}

/// Like [`walk`], in the entry of an object.
fn walk_object<'a>(entry: &'a Entry, path: &str) -> Option<&'a Value> {
    if path.split('.').next() == Some(RESERVED) { None } else { walk(entry, path) }
}
