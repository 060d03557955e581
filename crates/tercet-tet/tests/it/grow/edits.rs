//! Random sequences of edits, against a model.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use tercet_core::progress::NoProgress;
use tercet_tet::{AttrType, AttrValue, Error, File, HistoryRow, NewValues, Rewrite, WriterOptions};

use super::{check, concatenate, extension, plan, sample_value, write};
use crate::arrays::{Array, any_array};

/// A change, in the model and in the file.
#[derive(Clone, Debug)]
enum Edit {
    Rename(usize, u8),
    Attr(usize, u8, u8),
    Unset(usize, u8),
    FileAttr(u8, u8),
    Dims(usize, u8),
    Labels(usize, usize, u8),
    Append(usize, usize, u64),
    Drop(usize),
    Copy(usize, u8),
}

fn any_edit() -> impl Strategy<Value = Edit> {
    let n = any::<usize>;
    prop_oneof![
        (n(), 0u8..6).prop_map(|(a, b)| Edit::Rename(a, b)),
        (n(), 0u8..4, 0u8..9).prop_map(|(a, b, c)| Edit::Attr(a, b, c)),
        (n(), 0u8..4).prop_map(|(a, b)| Edit::Unset(a, b)),
        (0u8..3, 0u8..9).prop_map(|(a, b)| Edit::FileAttr(a, b)),
        (n(), 0u8..4).prop_map(|(a, b)| Edit::Dims(a, b)),
        (n(), n(), 0u8..9).prop_map(|(a, b, c)| Edit::Labels(a, b, c)),
        (n(), n(), 1u64..4).prop_map(|(a, b, c)| Edit::Append(a, b, c)),
        n().prop_map(Edit::Drop),
        (n(), 0u8..6).prop_map(|(a, b)| Edit::Copy(a, b)),
    ]
}

/// A dataset with its metadata.
#[derive(Clone, Debug)]
struct Described {
    array: Array,
    attrs: BTreeMap<String, AttrValue>,
    dims: Vec<String>,
    labels: BTreeMap<usize, Vec<String>>,
}

/// The expected content of a file.
#[derive(Clone, Debug, Default)]
struct Model {
    datasets: Vec<Described>,
    file: BTreeMap<String, AttrValue>,
}

impl Model {
    fn find(&self, name: &str) -> Option<usize> {
        self.datasets.iter().position(|dataset| dataset.array.name == name)
    }

    /// Applies a change to model and file; `false` if both refuse it.
    fn apply(&mut self, path: &Path, edit: &Edit) -> bool {
        let mut rewrite = Rewrite::open(path).unwrap();
        let mut next = self.clone();
        if self.datasets.is_empty() {
            return false;
        }
        let added = match self.plan(path, edit, &mut rewrite, &mut next) {
            Ok(added) => added,
            Err(error) => {
                let refusable = matches!(edit, Edit::Rename(..) | Edit::Unset(..) | Edit::Copy(..));
                assert!(refusable, "{edit:?}: {error}");
                return false;
            }
        };
        let history = HistoryRow::at("edit", "test", 3);
        let fill = |values: &NewValues<'_>, out: &mut [u8]| {
            let new = added.as_ref().unwrap();
            let slices = values.start.iter().zip(values.extents).map(|(&start, &extent)| {
                tercet_core::tensor::AxisSlice { start, stop: start + extent, step: 1 }
            });
            out.copy_from_slice(&new.naive(&slices.collect::<Vec<_>>()));
            Ok::<(), Error>(())
        };
        rewrite.start_with(history, WriterOptions::new(), fill, &NoProgress).unwrap().finish().unwrap();
        *self = next;
        true
    }

    /// Plans a change of the file and makes it in the model; returns the array to append.
    fn plan(
        &self,
        path: &Path,
        edit: &Edit,
        rewrite: &mut Rewrite,
        next: &mut Self,
    ) -> Result<Option<Array>, String> {
        let count = self.datasets.len();
        let id = |rewrite: &Rewrite, n: usize, model: &Self| {
            rewrite.dataset(&model.datasets[n].array.name).unwrap()
        };
        let mut added = None;
        let done: Result<(), String> = match *edit {
            Edit::Rename(n, name) => {
                let (n, name) = (n % count, format!("d{name}"));
                let id = id(rewrite, n, self);
                if self.find(&name).is_none_or(|found| found == n) {
                    next.datasets[n].array.name.clone_from(&name);
                }
                rewrite.layout().rename(id, &name).map_err(|error| error.to_string())
            }
            Edit::Attr(n, key, value) => {
                let (n, key, value) = (n % count, format!("k{key}"), sample_value(value));
                next.datasets[n].attrs.insert(key.clone(), value.clone());
                let id = id(rewrite, n, self);
                rewrite.layout().set_attr(id, &key, &value).map_err(|error| error.to_string())
            }
            Edit::Unset(n, key) => {
                let (n, key) = (n % count, format!("k{key}"));
                let id = id(rewrite, n, self);
                let had = next.datasets[n].attrs.remove(&key).is_some();
                let removed = rewrite.layout().remove_attr(id, &key);
                assert_eq!(removed.is_ok(), had);
                removed.map_err(|error| error.to_string())
            }
            Edit::FileAttr(key, value) => {
                let value = sample_value(value);
                // JSON has no element types.
                let kept = match value.kind() {
                    AttrType::Number(Some(_)) => AttrValue::parse(value.text()).unwrap(),
                    _ => value.clone(),
                };
                next.file.insert(format!("f{key}"), kept);
                rewrite.layout().set_file_attr(&format!("f{key}"), &value).map_err(|error| error.to_string())
            }
            Edit::Dims(n, name) => {
                let n = n % count;
                let rank = self.datasets[n].array.shape.len();
                let names: Vec<String> =
                    (0..rank).map(|axis| format!("x{}", (axis as u8 + name) % 8)).collect();
                let id = id(rewrite, n, self);
                next.datasets[n].dims.clone_from(&names);
                rewrite.layout().dims(id, names.iter().map(String::as_str)).map_err(|error| error.to_string())
            }
            Edit::Labels(n, axis, text) => {
                let n = n % count;
                let shape = &self.datasets[n].array.shape;
                let axis = axis % shape.len();
                let all: Vec<String> = (0..shape[axis]).map(|p| format!("{text}-{p}")).collect();
                next.datasets[n].labels.insert(axis, all.clone());
                let id = id(rewrite, n, self);
                let key = match self.datasets[n].dims.get(axis) {
                    Some(name) if text % 2 == 0 => name.clone(),
                    _ => axis.to_string(),
                };
                rewrite.layout().labels(id, &key, all).map_err(|error| error.to_string())
            }
            Edit::Append(n, axis, extent) => {
                let n = n % count;
                let Described { array: old, dims: names, labels: old_labels, .. } = &self.datasets[n];
                let axis = axis % old.shape.len();
                let new = extension(old, axis, extent, 3);
                next.datasets[n].array = concatenate(old, &new, axis);
                let key = names.get(axis).cloned().unwrap_or_else(|| axis.to_string());
                let mut plan = plan(&key, &[&new]).with_rechunk(true).with_allow_partial(true);
                if old_labels.contains_key(&axis) {
                    let more: Vec<String> = (0..extent).map(|p| format!("new{p}")).collect();
                    next.datasets[n].labels.get_mut(&axis).unwrap().extend(more.iter().cloned());
                    plan = plan.with_labels(more);
                }
                added = Some(new);
                rewrite.append(&plan).map(drop).map_err(|error| error.to_string())
            }
            Edit::Drop(n) => {
                let dropped = next.datasets.remove(n % count);
                rewrite.drop_dataset(&dropped.array.name).map_err(|error| error.to_string())
            }
            Edit::Copy(n, name) => {
                let (n, name) = (n % count, format!("d{name}"));
                let mut copy = self.datasets[n].clone();
                copy.array.name.clone_from(&name);
                next.datasets.push(copy);
                let file = Arc::new(File::open(path).unwrap());
                let copied = rewrite.layout().copy_dataset(&file, &self.datasets[n].array.name, &name);
                assert_eq!(copied.is_ok(), self.find(&name).is_none());
                copied.map(drop).map_err(|error| error.to_string())
            }
        };
        done.map(|()| added)
    }

    fn check(&self, path: &Path) {
        let arrays: Vec<&Array> = self.datasets.iter().map(|dataset| &dataset.array).collect();
        check(path, &arrays);
        let file = File::open(path).unwrap();
        assert_eq!(
            file.datasets().map(|dataset| dataset.name()).collect::<Vec<_>>(),
            arrays.iter().map(|array| &array.name).collect::<Vec<_>>()
        );
        for Described { array, attrs, dims, labels } in &self.datasets {
            let dataset = file.dataset(&array.name).unwrap();
            let keys: Vec<&String> =
                dataset.info().map(|info| info.attrs.keys().collect()).unwrap_or_default();
            assert_eq!(keys, attrs.keys().collect::<Vec<_>>());
            for (key, value) in attrs {
                assert_eq!(dataset.info().unwrap().attr(key).as_ref(), Some(value), "{key}");
            }
            for axis in 0..array.shape.len() {
                assert_eq!(dataset.axis_name(axis), dims.get(axis).map(String::as_str));
                if let Some(labels) = labels.get(&axis) {
                    assert_eq!(dataset.labels(axis), Some(&labels[..]), "{} {axis}", array.name);
                }
            }
        }
        let attrs: BTreeMap<String, AttrValue> =
            file.metadata().unwrap().file.attrs().map(|(key, value)| (key.to_owned(), value)).collect();
        assert_eq!(attrs, self.file);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(48)))]

    #[test]
    fn edits_equal_a_model(
        first in any_array("d0"),
        second in any_array("d1"),
        edits in prop::collection::vec(any_edit(), 1..10),
        interop in any::<bool>(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.tet");
        write(&path, &[&first, &second], if interop { WriterOptions::interop() } else { WriterOptions::new() });
        let mut model = Model::default();
        for array in [first, second] {
            model.datasets.push(Described { array, attrs: BTreeMap::new(), dims: Vec::new(), labels: BTreeMap::new() });
        }
        for edit in &edits {
            let before = std::fs::read(&path).unwrap();
            if model.apply(&path, edit) {
                model.check(&path);
            } else {
                prop_assert!(std::fs::read(&path).unwrap() == before, "{:?}", edit);
            }
        }
    }
}
