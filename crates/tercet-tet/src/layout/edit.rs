//! Changes of a [`Layout`]: names, attributes, labels, datasets of other files.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use tercet_core::escape;

use super::append::leaf;
use super::{DatasetId, EditError, Layout, LayoutError, NAME_BYTES};
use crate::attribute::{self, AttrError, AttrValue, FILE_ATTRS};
use crate::compute::Coordinates;
use crate::error::Error;
#[cfg(any(unix, windows))]
use crate::error::ErrorKind;
use crate::file::File;
use crate::metadata::{Coord, DatasetInfo};
use crate::stored::{self, Origin};

/// The largest number of attributes of a file: that of a dataset.
const FILE_ATTR_COUNT: usize = 64;

/// Axes whose coordinates change when datasets are copied into a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoordinateChanges {
    /// The names of axes whose coordinates are not copied.
    pub absent: Vec<String>,
    /// The datasets, and names of their axes, that had no coordinates and get some.
    pub gained: Vec<(String, String)>,
}

impl Layout {
    /// The first dataset of this name.
    pub fn find(&self, name: &str) -> Option<DatasetId> {
        self.datasets.iter().position(|planned| planned.name == name).map(DatasetId)
    }

    /// The names of the datasets, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.datasets.iter().map(|planned| planned.name.as_str())
    }

    /// The error of a name that no dataset has.
    #[cfg(any(unix, windows))]
    pub(crate) fn no_such_dataset(&self, name: &str) -> ErrorKind {
        let available = listed(self.names(), 8).into();
        ErrorKind::NoSuchDataset { name: name.into(), available, nearest: None }
    }

    /// The attributes, axis names and labels of a dataset.
    pub fn dataset_info(&self, dataset: DatasetId) -> Option<&DatasetInfo> {
        self.metadata.datasets.get(&self.datasets[dataset.0].name)
    }

    /// Renames a dataset. Its attributes, axis names and labels follow.
    pub fn rename(&mut self, dataset: DatasetId, name: &str) -> Result<(), LayoutError> {
        let old = self.datasets[dataset.0].name.clone();
        if old == name {
            return Ok(());
        }
        self.check_new_name(name)?;
        name.clone_into(&mut self.datasets[dataset.0].name);
        // Metadata of a name that no dataset has would be taken over by the new name.
        self.metadata.datasets.remove(name);
        // Datasets of the same name share their metadata.
        let info = if self.find(&old).is_some() {
            self.metadata.datasets.get(&old).cloned()
        } else {
            self.metadata.datasets.remove(&old)
        };
        if let Some(info) = info {
            self.metadata.datasets.insert(name.to_owned(), info);
        }
        self.check_metadata()
    }

    pub(super) fn check_new_name(&self, name: &str) -> Result<(), LayoutError> {
        if name.is_empty() || name.len() > NAME_BYTES {
            return Err(LayoutError::NameLength { name: name.chars().take(40).collect(), len: name.len() });
        }
        if self.find(name).is_some() {
            return Err(LayoutError::DuplicateName { name: name.to_owned() });
        }
        Ok(())
    }

    /// Sets a typed attribute of a dataset. `_FillValue`, `missing_value`, `scale_factor`, `add_offset`, `valid_range`,
    /// `valid_min` and `valid_max` must be numbers.
    pub fn set_attr(&mut self, dataset: DatasetId, key: &str, value: &AttrValue) -> Result<(), LayoutError> {
        let planned = &self.datasets[dataset.0];
        let wrong = |reason: AttrError| EditError::Attr {
            of: Some(planned.name.clone()),
            key: key.to_owned(),
            reason,
        };
        let value = value.checked(key, planned.grid.element()).map_err(wrong)?;
        let info = self.info(dataset);
        info.attrs.insert(key.to_owned(), value.text().to_owned());
        attribute::record(&mut info.unknown, key, value.recorded_type());
        self.check_metadata()
    }

    /// Removes an attribute of a dataset.
    pub fn remove_attr(&mut self, dataset: DatasetId, key: &str) -> Result<(), LayoutError> {
        let name = self.datasets[dataset.0].name.clone();
        self.attr_value(dataset, key)?;
        let info = self.info(dataset);
        info.attrs.remove(key);
        attribute::record(&mut info.unknown, key, None);
        self.forget_if_empty(&name);
        Ok(())
    }

    /// Renames an attribute of a dataset.
    pub fn rename_attr(&mut self, dataset: DatasetId, key: &str, new: &str) -> Result<(), LayoutError> {
        let value = self.attr_value(dataset, key)?;
        if self.dataset_info(dataset).is_some_and(|info| info.attrs.contains_key(new)) {
            let of = Some(self.datasets[dataset.0].name.clone());
            return Err(EditError::DuplicateAttr { of, key: new.to_owned() }.into());
        }
        self.set_attr(dataset, new, &value)?;
        self.remove_attr(dataset, key)
    }

    /// The value of an attribute of a dataset.
    fn attr_value(&self, dataset: DatasetId, key: &str) -> Result<AttrValue, LayoutError> {
        let info = self.dataset_info(dataset);
        info.and_then(|info| info.attr(key)).ok_or_else(|| {
            let of = Some(self.datasets[dataset.0].name.clone());
            let keys = info.map(|info| listed(info.attrs.keys().map(String::as_str), 16));
            EditError::NoSuchAttr { of, key: key.to_owned(), available: keys.unwrap_or_default() }.into()
        })
    }

    /// Sets an attribute of the file. It is stored as JSON in `metadata.file.attrs`.
    pub fn set_file_attr(&mut self, key: &str, value: &AttrValue) -> Result<(), LayoutError> {
        let wrong = |reason| EditError::Attr { of: None, key: key.to_owned(), reason };
        let json = value.to_json().map_err(wrong)?;
        let limit =
            |what, found, allowed| EditError::FileAttrLimit { what, key: key.to_owned(), found, allowed };
        let most = crate::metadata_limits::STRING_BYTES;
        for (what, len) in [("key", key.len()), ("value", value.text().len())] {
            if len == 0 || len > most {
                return Err(limit(what, len, most).into());
            }
        }
        let attrs = self
            .metadata
            .file
            .unknown
            .entry(FILE_ATTRS)
            .or_insert_with(|| Value::Object(serde_json::Map::new()));
        let Some(attrs) = attrs.as_object_mut() else { return Err(EditError::FileAttrs.into()) };
        if attrs.len() >= FILE_ATTR_COUNT && !attrs.contains_key(key) {
            return Err(limit("attributes", attrs.len() + 1, FILE_ATTR_COUNT).into());
        }
        attrs.insert(key.to_owned(), json);
        Ok(())
    }

    /// Removes an attribute of the file.
    pub fn remove_file_attr(&mut self, key: &str) -> Result<(), LayoutError> {
        let members = &mut self.metadata.file.unknown;
        let attrs = match members.get_mut(FILE_ATTRS).map(Value::as_object_mut) {
            Some(Some(attrs)) => attrs,
            Some(None) => return Err(EditError::FileAttrs.into()),
            None => &mut serde_json::Map::new(),
        };
        // The order of the others is kept.
        if attrs.shift_remove(key).is_none() {
            let available = listed(attrs.keys().map(String::as_str), 16);
            return Err(EditError::NoSuchAttr { of: None, key: key.to_owned(), available }.into());
        }
        if attrs.is_empty() {
            members.shift_remove(FILE_ATTRS);
        }
        Ok(())
    }

    /// Renames an attribute of the file.
    pub fn rename_file_attr(&mut self, key: &str, new: &str) -> Result<(), LayoutError> {
        if self.metadata.file.attr(new).is_some() {
            return Err(EditError::DuplicateAttr { of: None, key: new.to_owned() }.into());
        }
        let Some(value) = self.metadata.file.attr(key) else { return self.remove_file_attr(key) };
        self.set_file_attr(new, &value)?;
        self.remove_file_attr(key)
    }

    /// The number of an axis, from its name or its number.
    pub fn axis(&self, dataset: DatasetId, axis: &str) -> Result<usize, LayoutError> {
        let planned = &self.datasets[dataset.0];
        let rank = planned.grid.rank();
        let names = self.dataset_info(dataset).map_or(&[][..], |info| info.axis_names(rank));
        let by_name = names.iter().position(|name| name == axis);
        let number = by_name.or_else(|| axis.parse().ok()).filter(|&number| number < rank);
        number.ok_or_else(|| LayoutError::NoSuchAxis {
            dataset: planned.name.clone(),
            axis: axis.to_owned(),
            available: if names.is_empty() {
                format!("0 to {}", rank - 1)
            } else {
                listed(names.iter().map(String::as_str), rank)
            },
        })
    }

    /// The name of an axis; `None` if the axes have no names.
    pub fn axis_name(&self, dataset: DatasetId, axis: usize) -> Option<&str> {
        let rank = self.datasets[dataset.0].grid.rank();
        self.dataset_info(dataset)?.axis_names(rank).get(axis).map(String::as_str)
    }

    /// Renames an axis of a dataset. Its labels follow.
    pub fn rename_axis(&mut self, dataset: DatasetId, axis: &str, name: &str) -> Result<(), LayoutError> {
        let number = self.axis(dataset, axis)?;
        let rank = self.datasets[dataset.0].grid.rank();
        let mut names = self.dataset_info(dataset).map_or(&[][..], |info| info.axis_names(rank)).to_vec();
        match (names.is_empty(), rank) {
            (false, _) => {}
            (true, 1) => names.push(String::new()),
            // One name is not enough: the format has names for all axes or for none.
            (true, _) => {
                return Err(EditError::Unnamed { dataset: self.datasets[dataset.0].name.clone() }.into());
            }
        }
        if names.iter().enumerate().any(|(other, found)| other != number && found == name) {
            let dataset = self.datasets[dataset.0].name.clone();
            return Err(EditError::DuplicateAxis { dataset, axis: name.to_owned() }.into());
        }
        name.clone_into(&mut names[number]);
        self.dims(dataset, names.iter().map(String::as_str))
    }

    /// Renames an axis in all datasets that have it, and the datasets with its coordinates: those of one dimension with
    /// its name. Returns the changed datasets.
    pub fn rename_axis_everywhere(&mut self, axis: &str, name: &str) -> Result<Vec<DatasetId>, LayoutError> {
        let mut changed = Vec::new();
        let mut names = BTreeSet::new();
        for position in 0..self.datasets.len() {
            let id = DatasetId(position);
            let rank = self.datasets[position].grid.rank();
            let own = self.dataset_info(id).map_or(&[][..], |info| info.axis_names(rank));
            names.extend(own.iter().cloned());
            let has = own.iter().any(|own| own == axis);
            if has {
                self.rename_axis(id, axis, name)?;
            }
            let coordinate = self.datasets[position].name.clone();
            let holds = rank == 1 && leaf(&coordinate) == axis;
            if holds {
                let group = &coordinate[..coordinate.len() - axis.len()];
                self.rename(id, &format!("{group}{name}"))?;
            }
            if has || holds {
                changed.push(id);
            }
        }
        if changed.is_empty() {
            let available = listed(names.iter().map(String::as_str), 16);
            return Err(EditError::NoAxis { axis: axis.to_owned(), available }.into());
        }
        Ok(changed)
    }

    /// Sets axis names; labels stay with their axes.
    pub(super) fn set_dims(&mut self, dataset: DatasetId, names: Vec<String>) -> Result<(), LayoutError> {
        let planned = &self.datasets[dataset.0];
        let (name, rank) = (planned.name.clone(), planned.grid.rank());
        let info = self.info(dataset);
        let moved: Vec<(String, Coord)> = info
            .axis_names(rank)
            .to_vec()
            .iter()
            .zip(&names)
            .filter(|(old, new)| old != new)
            .filter_map(|(old, new)| Some((new.clone(), info.coords.remove(old)?)))
            .collect();
        for (axis, coord) in moved {
            if info.coords.insert(axis.clone(), coord).is_some() {
                return Err(EditError::DuplicateAxis { dataset: name, axis }.into());
            }
        }
        info.dim_names = names;
        self.check_metadata()
    }

    /// The key of the labels of an axis.
    pub(super) fn labels_key(&self, dataset: DatasetId, axis: usize) -> Option<&str> {
        let grid = &self.datasets[dataset.0].grid;
        let key = self.dataset_info(dataset)?.labels_key(axis, grid.rank(), grid.shape()[axis])?;
        // An axis without labels is found with those of another axis of the same extent; they stay with that axis.
        let is_other = self.axis(dataset, key).is_ok_and(|owner| owner != axis);
        (!is_other).then_some(key)
    }

    /// Removes the labels of an axis.
    pub fn remove_labels(&mut self, dataset: DatasetId, axis: &str) -> Result<(), LayoutError> {
        let number = self.axis(dataset, axis)?;
        let name = self.datasets[dataset.0].name.clone();
        let Some(key) = self.labels_key(dataset, number).map(str::to_owned) else {
            return Err(EditError::NoLabels { dataset: name, axis: axis.to_owned() }.into());
        };
        self.info(dataset).coords.remove(&key);
        self.forget_if_empty(&name);
        Ok(())
    }

    /// Renames a label of an axis: the first that is equal to `label`.
    pub fn rename_label(
        &mut self,
        dataset: DatasetId,
        axis: &str,
        label: &str,
        new: &str,
    ) -> Result<(), LayoutError> {
        let number = self.axis(dataset, axis)?;
        let (name, axis) = (self.datasets[dataset.0].name.clone(), axis.to_owned());
        let Some(key) = self.labels_key(dataset, number).map(str::to_owned) else {
            return Err(EditError::NoLabels { dataset: name, axis }.into());
        };
        let labels = self.info(dataset).coords.get_mut(&key).map(|coord| &mut coord.labels);
        match labels.and_then(|labels| labels.iter_mut().find(|found| *found == label)) {
            Some(found) => new.clone_into(found),
            None => {
                return Err(EditError::NoSuchLabel { dataset: name, axis, label: label.to_owned() }.into());
            }
        }
        self.check_metadata()
    }

    /// Adds a dataset of another file with its attributes, axis names and labels. Its chunks are copied as they are
    /// stored by [`Writer::copy_stored`](crate::Writer::copy_stored).
    pub fn copy_dataset(&mut self, file: &Arc<File>, dataset: &str, name: &str) -> Result<DatasetId, Error> {
        let stored = file.dataset(dataset)?;
        self.copy_stored_dataset(file, stored.id(), name)
    }

    /// Adds the dataset with this position in another file.
    pub(crate) fn copy_stored_dataset(
        &mut self,
        file: &Arc<File>,
        id: usize,
        name: &str,
    ) -> Result<DatasetId, Error> {
        stored::check_block(file)?;
        let stored = crate::file::Dataset { file, id };
        let grid = stored.grid()?.clone();
        let refused = |error: LayoutError| file.error(error.into());
        self.check_new_name(name).map_err(refused)?;
        self.metadata.datasets.remove(name);
        let mut info = stored.info().cloned().unwrap_or_default();
        if let Some(long) = file.long_labels.get(stored.name()) {
            for (axis, labels) in long {
                info.coords.entry(axis.clone()).or_insert_with(|| Coord::new(labels.clone()));
            }
        }
        let target = self.push(name, grid);
        self.datasets[target.0].origin =
            Some(Origin { file: Arc::clone(file), id, grown: None, recoded: false });
        if info != DatasetInfo::default() {
            self.metadata.datasets.insert(name.to_owned(), info);
        }
        self.check_metadata().map_err(refused)?;
        Ok(target)
    }

    /// Adds the datasets with the coordinates of a dataset of another file, unless there are datasets with their names.
    /// Returns the names of the added ones.
    pub fn copy_coordinates(&mut self, file: &Arc<File>, dataset: &str) -> Result<Vec<String>, Error> {
        let stored = file.dataset(dataset)?;
        let mut added = Vec::new();
        for axis in 0..stored.shape().len() {
            let Some(coordinates) = stored.coordinate_dataset(axis) else { continue };
            let name = coordinates.name();
            let is_other = coordinates.id() != stored.id();
            if is_other && stored.labels(axis).is_none() && self.find(name).is_none() {
                self.copy_stored_dataset(file, coordinates.id(), name)?;
                added.push(name.to_owned());
            }
        }
        Ok(added)
    }

    /// Compares the coordinates of copied datasets with those that they have in the new file. Other coordinates are an
    /// error, and so are those of datasets without any, unless they are `expected`: new datasets with coordinates.
    pub fn check_coordinates(&self, expected: &[&str]) -> Result<CoordinateChanges, Error> {
        let mut changes = CoordinateChanges::default();
        for (position, planned) in self.datasets.iter().enumerate() {
            let Some(origin) = &planned.origin else { continue };
            let stored = origin.dataset();
            for (axis, &extent) in planned.grid.shape().iter().enumerate() {
                let Some(name) = self.axis_name(DatasetId(position), axis) else { continue };
                if stored.labels(axis).is_some() {
                    continue;
                }
                let old = stored.coordinate_dataset(axis);
                let new =
                    self.datasets.iter().find(|other| other.name == name && other.grid.shape() == [extent]);
                let names = || (planned.name.clone(), name.to_owned());
                let error = match (&old, new.and_then(|new| new.origin.as_ref())) {
                    (Some(_), None) if new.is_none() => {
                        if !changes.absent.iter().any(|other| other == name) {
                            changes.absent.push(name.to_owned());
                        }
                        continue;
                    }
                    // New datasets are written by the caller.
                    (_, None) => continue,
                    (None, Some(_)) if expected.contains(&name) => {
                        changes.gained.push(names());
                        continue;
                    }
                    (None, Some(_)) => {
                        let (dataset, axis) = names();
                        EditError::GainedCoordinates { dataset, axis }
                    }
                    (Some(old), Some(new)) => {
                        let is_one = Arc::ptr_eq(&new.file, &origin.file) && new.id == old.id();
                        let values = |dataset| Coordinates::from_dataset(&dataset);
                        if is_one || values(*old)? == values(new.dataset())? {
                            continue;
                        }
                        let (dataset, axis) = names();
                        EditError::OtherCoordinates { dataset, axis }
                    }
                };
                return Err(origin.file.error(LayoutError::from(error).into()));
            }
        }
        Ok(changes)
    }

    /// Adds the file attributes, the unknown members and the history of another file, and its memory budget if this
    /// layout has none. Existing values are kept; returns the keys of file attributes with another value.
    pub fn copy_file_info(&mut self, file: &File) -> Vec<String> {
        let mut conflicts = Vec::new();
        let empty = self.history.is_empty();
        if empty {
            self.budget = file.memory_budget();
        }
        self.history.extend(file.history().iter().cloned());
        for (key, value) in file.unknown_members() {
            self.unknown.entry(key).or_insert(value);
        }
        let Some(metadata) = file.metadata() else { return conflicts };
        for (key, value) in &metadata.unknown {
            self.metadata.unknown.entry(key.clone()).or_insert_with(|| value.clone());
        }
        for (key, value) in &metadata.file.unknown {
            let own = self.metadata.file.unknown.entry(key.clone()).or_insert_with(|| value.clone());
            let (Some(own), Some(value)) = (own.as_object_mut(), value.as_object()) else { continue };
            if key != FILE_ATTRS {
                continue;
            }
            for (key, value) in value {
                if own.entry(key.clone()).or_insert_with(|| value.clone()) != value {
                    conflicts.push(key.clone());
                }
            }
        }
        conflicts
    }

    /// Removes the metadata of a dataset that has none left.
    fn forget_if_empty(&mut self, name: &str) {
        if self.metadata.datasets.get(name).is_some_and(|info| *info == DatasetInfo::default()) {
            self.metadata.datasets.remove(name);
        }
    }
}

/// Names separated by commas, at most `most` of them; escaped.
pub(super) fn listed<'n>(names: impl ExactSizeIterator<Item = &'n str>, most: usize) -> String {
    let more = if names.len() > most { ", …" } else { "" };
    let names: Vec<_> = names.take(most).map(escape::name).collect();
    format!("{}{more}", names.join(", "))
}
