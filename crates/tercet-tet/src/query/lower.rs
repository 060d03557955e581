//! Lowers a query document to the request that the typed API makes.

use super::alignment::Alignment;
use super::run::RunOptions;
use super::{Kind, Query};
use crate::compute::{Request, Settings, check_reversed, dropped_axes, groups_of, reduced_dims};
use crate::error::{Error, ErrorKind};
use crate::file::{Dataset, File};
use crate::query::resolved::{Operation, Resolved, Role};

impl Query {
    /// Binds the query to its dataset: the request that the typed API would make.
    ///
    /// ```no_run
    /// use tercet_tet::{File, Query, Syntax};
    ///
    /// let file = File::open("era5.tet")?;
    /// let query = Query::parse(r#"{"dataset": "t2m", "mean": "time"}"#, Syntax::Json)?;
    /// println!("{}", query.request(&file)?.plan()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn request<'f>(&self, file: &'f File) -> Result<Request<'f>, Error> {
        let dataset = file.dataset(self.dataset())?;
        self.lower(&dataset, Settings::default()).map_err(|kind| file.error(kind))
    }

    /// Binds the query to its dataset, with options. The number of preview elements has no meaning here.
    pub fn request_with<'f>(&self, file: &'f File, options: &RunOptions) -> Result<Request<'f>, Error> {
        let dataset = file.dataset(self.dataset())?;
        self.lower(&dataset, options.settings()).map_err(|kind| file.error(kind))
    }

    /// Compares the axes of two datasets, if the query has `align`.
    pub fn align(&self, file: &File) -> Result<Option<Alignment>, Error> {
        let dataset = file.dataset(self.dataset())?;
        self.alignment(file, &dataset).map_err(|error| file.error(error.into()))
    }

    /// Reduces the axes of which a single position is selected; those of groups and matrices are kept.
    fn drop_single(&self, resolved: &mut Resolved) {
        let single = std::mem::take(&mut resolved.dropped);
        if let Some(operation) = &mut resolved.operation {
            let is_kept = match operation.kind {
                Kind::Transform { .. } | Kind::Covariance | Kind::Correlation => true,
                _ => self.flat.group_by.is_some(),
            };
            for &axis in single.iter().filter(|_| !is_kept) {
                if matches!(operation.roles[axis], Role::Kept) {
                    operation.roles[axis] = Role::Reduced;
                }
            }
        }
        resolved.dropped = dropped_axes(single, resolved.operation.as_ref());
    }

    pub(crate) fn lower<'f>(
        &self,
        dataset: &Dataset<'f>,
        settings: Settings,
    ) -> Result<Request<'f>, ErrorKind> {
        let mut resolved = self.resolve(dataset, settings.as_reference)?;
        self.drop_single(&mut resolved);
        let values = self.values.unwrap_or(settings.values);
        values.apply(dataset, &mut resolved)?;
        let is_transform = |operation: &Operation| matches!(operation.kind, Kind::Transform { .. });
        let is_decoded = resolved.values.decode.is_some();
        if settings.as_reference && is_decoded && resolved.operation.as_ref().is_some_and(is_transform) {
            let detail = "the answer of the reference has no transforms of decoded values".into();
            return Err(ErrorKind::Compute { dataset: dataset.name().into(), detail });
        }
        let settings = Settings { execution: *self.execution(), values, ..settings };
        let ops: Vec<Kind> = resolved.operation.iter().map(|operation| operation.kind).collect();
        if let Some(operation) = &resolved.operation {
            check_reversed(dataset, &resolved.reversed, operation).map_err(Error::into_kind)?;
        } else if resolved.spill.is_some() && resolved.reversed.contains(&true) {
            let detail = "a negative step is not supported for `spill`".into();
            return Err(ErrorKind::Compute { dataset: dataset.name().into(), detail });
        }
        let dims = dims(dataset, &resolved, settings.as_reference).map_err(Error::into_kind)?;
        Ok(Request { dataset: *dataset, resolved, ops, dims, settings, weights: None })
    }
}

/// Dimensions of the result; of the selection without a reduction.
fn dims(
    dataset: &Dataset<'_>,
    resolved: &Resolved,
    as_reference: bool,
) -> Result<Vec<crate::compute::Dim>, Error> {
    let axes = resolved.selection.axes();
    let role = |axis| if resolved.dropped.contains(&axis) { Role::Reduced } else { Role::Kept };
    let kept: Vec<Role> = (0..axes.len()).map(role).collect();
    let roles = match &resolved.operation {
        Some(operation) if !matches!(operation.kind, Kind::Transform { .. }) => &operation.roles,
        _ => &kept,
    };
    let by_labels = |axis: &usize| matches!(&roles[*axis], Role::Grouped(groups) if groups.size == 0);
    let mut names: Vec<(usize, Vec<String>)> = Vec::new();
    for axis in (0..axes.len()).filter(by_labels) {
        if let Some(labels) = dataset.document_labels(axis, as_reference)? {
            let selected = super::resolve::selected(&labels, axes[axis]).cloned();
            names.push((axis, groups_of(selected).1));
        }
    }
    reduced_dims(dataset, axes, &resolved.reversed, roles, &names)
}
