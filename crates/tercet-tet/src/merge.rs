//! [`Merge`]: the datasets of several files in one.

use std::collections::BTreeMap;
use std::sync::Arc;

use tercet_core::tensor::AxisSlice;
use tercet_core::{DType, Progress, Selection, Shape};

use crate::error::Error;
use crate::file::{Dataset, File};
use crate::layout::{EditError, Layout, LayoutError};

/// Collects the datasets of several files for a new file. Chunks are copied as they are stored.
///
/// ```
/// use std::io::Cursor;
/// use std::sync::Arc;
///
/// use tercet_core::progress::NoProgress;
/// use tercet_tet::{File, Merge, Writer, WriterOptions};
///
/// # use tercet_tet::Layout;
/// # let make = |name: &str| -> Result<Arc<File>, Box<dyn std::error::Error>> {
/// #     let mut layout = Layout::new();
/// #     let id = layout.dataset(name, tercet_core::DType::U8, [2], [2])?;
/// #     let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new())?;
/// #     writer.array(id, tercet_core::TensorView::from_slice(&[2], &[1u8, 2])?)?;
/// #     Ok(Arc::new(File::from_bytes(name, writer.finish()?.output)?))
/// # };
/// # let (first, second) = (make("a")?, make("b")?);
/// let mut merge = Merge::new();
/// merge.add(&first, |name| name.to_owned(), &NoProgress)?;
/// merge.add(&second, |name| name.to_owned(), &NoProgress)?;
/// let (layout, _report) = merge.finish();
/// let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new())?;
/// writer.copy_stored(&NoProgress)?;
/// let bytes = writer.finish()?.output;
/// # assert_eq!(File::from_bytes("c", bytes)?.datasets().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Merge {
    layout: Layout,
    report: MergeReport,
}

/// What a merge did besides copying.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergeReport {
    /// Datasets that are equal in several files, copied once.
    pub equal: Vec<String>,
    /// File attributes with different values; the first is kept.
    pub conflicts: Vec<String>,
    /// Axes with different extents: the name, and for each extent one dataset.
    pub axes: Vec<(String, Vec<(u64, String)>)>,
}

impl Merge {
    /// No files yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds all datasets of a file, under the names that `rename` returns.
    ///
    /// A dataset whose name exists already is an error, unless values, attributes, axis names and labels are equal: then it
    /// is copied once. Datasets must keep their coordinates: a file that would give another one to a dataset is an error.
    pub fn add(
        &mut self,
        file: &Arc<File>,
        rename: impl Fn(&str) -> String,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        for dataset in file.datasets() {
            let name = rename(dataset.name());
            match self.layout.find(&name) {
                None => {
                    self.layout.copy_stored_dataset(file, dataset.id(), &name)?;
                }
                Some(existing) => {
                    if !self.is_equal(existing.0, &dataset, progress)? {
                        let duplicate = self.duplicate(existing.0, &dataset, name);
                        return Err(file.error(duplicate.into()));
                    }
                    if !self.report.equal.contains(&name) {
                        self.report.equal.push(name);
                    }
                }
            }
        }
        self.layout.check_coordinates(&[])?;
        for key in self.layout.copy_file_info(file) {
            if !self.report.conflicts.contains(&key) {
                self.report.conflicts.push(key);
            }
        }
        Ok(())
    }

    /// The layout of the new file, to add history and file attributes.
    pub fn layout(&mut self) -> &mut Layout {
        &mut self.layout
    }

    /// The layout of the new file, and what else was done. Write it with a [`Writer`](crate::Writer) and
    /// [`copy_stored`](crate::Writer::copy_stored).
    pub fn finish(mut self) -> (Layout, MergeReport) {
        self.report.axes = differing_axes(&self.layout);
        self.layout.condense_history();
        (self.layout, self.report)
    }

    /// Whether a dataset of the new file is equal to another: type, values, attributes, axis names and labels.
    fn is_equal(&self, existing: usize, other: &Dataset<'_>, progress: &dyn Progress) -> Result<bool, Error> {
        let planned = &self.layout.datasets[existing];
        let Some(origin) = &planned.origin else { return Ok(false) };
        let first = origin.dataset();
        let (grid, other_grid) = (first.grid()?, other.grid()?);
        let labels = |dataset: &Dataset<'_>| -> Vec<Option<Vec<String>>> {
            (0..dataset.shape().len()).map(|axis| dataset.labels(axis).map(<[String]>::to_vec)).collect()
        };
        let described = |dataset: &Dataset<'_>| {
            let info = dataset.info();
            let attrs = info.map(|info| info.attrs.clone()).unwrap_or_default();
            let names: Vec<Option<String>> =
                (0..dataset.shape().len()).map(|axis| dataset.axis_name(axis).map(str::to_owned)).collect();
            (attrs, names)
        };
        let same_form = grid.element() == other_grid.element() && grid.shape() == other_grid.shape();
        if !same_form || described(&first) != described(other) || labels(&first) != labels(other) {
            return Ok(false);
        }
        for linear in 0..grid.chunk_count() {
            progress.check().map_err(|cancelled| origin.file.error(cancelled.into()))?;
            let coords = grid.coords(linear);
            let coords = &coords[..grid.rank()];
            let slices = (0..grid.rank()).map(|axis| {
                let (start, stop) = grid.window(axis, coords[axis]);
                AxisSlice { start, stop, step: 1 }
            });
            let selection = Selection::new(slices.collect(), grid.shape());
            let selection = selection.map_err(|error| other.file.error(error.into()))?;
            if first.chunk(coords)?.bytes()[..] != *other.read(&selection)?.bytes() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn duplicate(&self, existing: usize, other: &Dataset<'_>, name: String) -> LayoutError {
        let planned = &self.layout.datasets[existing];
        let first = planned.origin.as_ref().map_or("", |origin| origin.file.name()).to_owned();
        let form = |dtype: Option<DType>, shape: &[u64]| {
            format!("{} {}", dtype.map_or("?", DType::short_name), Shape::from(shape))
        };
        let forms =
            (form(Some(planned.grid.dtype()), planned.grid.shape()), form(other.dtype(), other.shape()));
        let forms = (forms.0 != forms.1).then(|| Box::new(forms));
        EditError::NotEqual { name, first, forms }.into()
    }
}

/// The named axes that have several extents.
fn differing_axes(layout: &Layout) -> Vec<(String, Vec<(u64, String)>)> {
    let mut axes: BTreeMap<String, Vec<(u64, String)>> = BTreeMap::new();
    for (position, planned) in layout.datasets.iter().enumerate() {
        let id = crate::DatasetId(position);
        for (axis, &extent) in planned.grid.shape().iter().enumerate() {
            let Some(name) = layout.axis_name(id, axis) else { continue };
            let extents = axes.entry(name.to_owned()).or_default();
            if extents.iter().all(|(other, _)| *other != extent) {
                extents.push((extent, planned.name.clone()));
            }
        }
    }
    axes.into_iter().filter(|(_, extents)| extents.len() > 1).collect()
}
