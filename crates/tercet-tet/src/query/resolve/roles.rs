//! The role of each axis: reduced, kept, grouped or rolling.

#[cfg(test)]
mod tests;

use tercet_core::Selection;

use super::fill::{self, Fill};
use super::{Rules, describe_axis, is_float, selected};
use crate::compute::{WindowSpan, groups_of};
use crate::error::ErrorKind;
use crate::file::Dataset;
use crate::query::Query;
use crate::query::document::{BinAlign, GroupBy, Mode, Pad, Window};
use crate::query::error::{QueryError, QueryErrorKind};
use crate::query::flat::At;
use crate::query::operation::Scalar;
use crate::query::resolved::{Operation, Padding, Role};

impl Query {
    /// The reduced axes, for the echo, and the role of each axis. `listed` are the axes of the operation.
    pub(super) fn resolve_roles(
        &self,
        dataset: &Dataset<'_>,
        selection: &Selection,
        listed: Vec<usize>,
        fill: &Fill<'_>,
        rules: Rules<'_>,
    ) -> Result<(Vec<usize>, Vec<Role>), ErrorKind> {
        if let Some(group_by) = &self.flat.group_by {
            return self.grouped(dataset, selection, listed, group_by, rules);
        }
        if let Some(window) = &self.flat.window {
            return Ok(self.windowed(dataset, selection, listed, window, fill)?);
        }
        let rank = dataset.shape().len();
        if listed.len() == rank && rules.as_reference {
            let reason =
                QueryErrorKind::refused("lists every axis of the dataset", "use `[]` to reduce all of them");
            return Err(self.source.error(self.operation_key(), reason).into());
        }
        let reduced = |axis: usize| listed.is_empty() || listed.contains(&axis);
        let roles = (0..rank).map(|axis| if reduced(axis) { Role::Reduced } else { Role::Kept }).collect();
        Ok((listed, roles))
    }

    fn operation_key(&self) -> &str {
        self.flat.operation.as_ref().map_or("", |operation| &operation.key)
    }

    fn grouped(
        &self,
        dataset: &Dataset<'_>,
        selection: &Selection,
        listed: Vec<usize>,
        group_by: &At<GroupBy>,
        rules: Rules<'_>,
    ) -> Result<(Vec<usize>, Vec<Role>), ErrorKind> {
        let rank = dataset.shape().len();
        let path = if group_by.value.by_labels { group_by.member("axes") } else { group_by.key.clone() };
        let groups = self.resolve_axes(dataset, &group_by.value.axes, &path)?;
        if groups.len() == rank {
            let reason = QueryErrorKind::invalid("lists every axis, but must leave one for the operation");
            return Err(self.source.error(&path, reason).into());
        }
        if let Some(number) = listed.iter().position(|axis| groups.contains(axis)) {
            let detail = format!("{} is in `group_by` as well", describe_axis(dataset, listed[number]));
            let path = self.source.axis_path(self.operation_key(), number);
            return Err(self.source.error(&path, QueryErrorKind::Invalid { detail }).into());
        }
        let others: Vec<usize> = (0..rank).filter(|axis| !groups.contains(axis)).collect();
        let is_listed = |axis: &usize| listed.contains(axis) || rules.dropped.contains(axis);
        if !listed.is_empty() && !others.iter().all(is_listed) {
            let detail = "must list every axis that is not in `group_by`";
            let reason = QueryErrorKind::refused(detail, "or none of them, `[]`");
            return Err(self.source.error(self.operation_key(), reason).into());
        }
        let mut roles = vec![Role::Reduced; rank];
        for (number, &axis) in groups.iter().enumerate() {
            roles[axis] = if group_by.value.by_labels {
                let path = self.source.axis_path(&path, number);
                let labels = self.labels(dataset, axis, &path, rules.as_reference)?;
                Role::Grouped(groups_of(selected(&labels, selection.axes()[axis]).cloned()).0)
            } else {
                Role::Kept
            };
        }
        Ok((if listed.is_empty() { others } else { listed }, roles))
    }

    fn windowed(
        &self,
        dataset: &Dataset<'_>,
        selection: &Selection,
        listed: Vec<usize>,
        window: &At<Window>,
        fill: &Fill<'_>,
    ) -> Result<(Vec<usize>, Vec<Role>), QueryError> {
        let axis = self.resolve_axis(dataset, &window.value.axis, &window.member("axis"))?;
        if !listed.is_empty() && !listed.contains(&axis) {
            let detail = format!("must list the axis of the window, {axis}");
            let reason = QueryErrorKind::refused(detail, "`[]` means that axis alone");
            return Err(self.source.error(self.operation_key(), reason));
        }
        let extent = selection.axes()[axis].count();
        let size = window.value.size;
        if size > extent {
            let detail = format!("is {size}, but only {extent} positions of axis {axis} are selected");
            return Err(self.source.error(&window.member("size"), QueryErrorKind::Invalid { detail }));
        }
        let value = self.pad_value(dataset, window, fill)?;
        let padding = Padding { value, min_count: window.value.min_count.unwrap_or(1) };
        let rolling = window.value.mode == Mode::Rolling;
        if !rolling {
            // The bins of all positions are a table; its length is determined by the file.
            let most = (dataset.file.options.limits.table_bytes / 4).min(u32::MAX.into());
            if extent > most {
                let detail = format!("has {extent} positions, at most {most} can be cut into bins");
                let reason = QueryErrorKind::refused(detail, "select some of them");
                return Err(self.source.error(&window.member("axis"), reason));
            }
        }
        let role = span(&window.value, padding).role(extent);
        let axes = if listed.is_empty() { vec![axis] } else { listed };
        let plain = |other: usize| if axes.contains(&other) { Role::Reduced } else { Role::Kept };
        let mut roles: Vec<Role> = (0..dataset.shape().len()).map(plain).collect();
        roles[axis] = role;
        Ok((axes, roles))
    }

    fn pad_value(
        &self,
        dataset: &Dataset<'_>,
        window: &At<Window>,
        fill: &Fill<'_>,
    ) -> Result<Option<Scalar>, QueryError> {
        let path = window.member("pad");
        match window.value.pad.unwrap_or_default() {
            Pad::None => Ok(None),
            Pad::Zero => Ok(Some(Scalar::Whole(0))),
            Pad::Nan => match dataset.element().filter(|dtype| !is_float(*dtype)) {
                None => Ok(Some(Scalar::Float(f64::NAN))),
                Some(dtype) => {
                    let detail = format!("is `nan`, but elements of type `{dtype}` cannot be NaN");
                    Err(self.source.error(&path, QueryErrorKind::Invalid { detail }))
                }
            },
            Pad::Fill => {
                let value = fill.value().map_err(|reason| self.source.error(&path, reason))?;
                value.map(Some).ok_or_else(|| {
                    let reason =
                        QueryErrorKind::refused("is `fill`, but the dataset has no fill value", fill::HOW);
                    self.source.error(&path, reason)
                })
            }
        }
    }

    /// The number of windows.
    pub(super) fn window_count(&self, operation: &Operation, selection: &Selection) -> Option<u64> {
        self.flat.window.as_ref()?;
        let windowed = |role: &Role| matches!(role, Role::Grouped(_) | Role::Rolling(_));
        let axis = operation.roles.iter().position(windowed)?;
        operation.roles[axis].output_len(selection.axes()[axis].count())
    }
}

/// Size and position of the windows of a query. Bins are aligned with an end of the axis, the other end has the short
/// one; rolling windows are padded at the end that they are aligned with.
fn span(window: &Window, padding: Padding) -> WindowSpan {
    let align = window.align.unwrap_or_default();
    let rolling = window.mode == Mode::Rolling;
    let at_end = (align == BinAlign::End) == rolling;
    WindowSpan { size: window.size, step: window.step.unwrap_or(1), rolling, at_end, padding }
}
