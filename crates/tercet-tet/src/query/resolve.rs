//! Binds a query to a dataset: axis names become numbers, labels become positions, shapes are checked.

mod fill;
mod roles;

#[cfg(test)]
pub(crate) mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use tercet_core::tensor::{AxisSlice, IndexSlice, SelectionError};
use tercet_core::{ElementType, Selection, escape};

use super::Query;
use super::document::{AxisEntry, AxisObject, AxisToken, LabelValue, Nullable, Position, Selecting};
use super::error::{QueryError, QueryErrorKind, excerpt};
use super::operation::{Kind, Scalar};
use super::resolved::{Filter, Operation, Positions, Resolved, Values};
use super::validate::{check_order, check_step};
use crate::compute::{Label, LabelSelection};
use crate::error::{Error, ErrorKind};
use crate::file::Dataset;
use fill::Fill;

/// The limit of columns of a covariance.
const MAX_VARIABLES: u64 = 1024;

/// The selection of one axis.
#[derive(Clone, Copy, Debug)]
struct Entry {
    slice: AxisSlice,
    is_reversed: bool,
    /// Whether a number or a label selects a single position.
    is_single: bool,
}

impl Entry {
    fn new(slice: AxisSlice, is_reversed: bool) -> Self {
        Self { slice, is_reversed, is_single: false }
    }

    fn resolve(index: IndexSlice, axis: usize, extent: u64) -> Result<Self, SelectionError> {
        let (slice, is_reversed) = index.resolve(axis, extent)?;
        Ok(Self { slice, is_reversed, is_single: index.is_single })
    }
}

/// The selection of a query.
struct Selected {
    selection: Selection,
    reversed: Vec<bool>,
    /// Axes of which a number or a label selects a single position.
    single: Vec<usize>,
}

/// What differs between the queries of the reference and ours.
#[derive(Clone, Copy, Debug)]
struct Rules<'a> {
    as_reference: bool,
    /// Axes that are not dimensions of the result, because a single position of them is selected.
    dropped: &'a [usize],
}

/// The fill value of a dataset; `None` if there is none, or if it is no number.
pub(crate) fn fill_value_of(dataset: &Dataset<'_>) -> Option<Scalar> {
    Fill::for_dataset(dataset).value().ok().flatten()
}

impl Query {
    /// Binds the query to a dataset.
    /// The reference needs one slice for each axis.
    pub(crate) fn resolve(&self, dataset: &Dataset<'_>, as_reference: bool) -> Result<Resolved, ErrorKind> {
        let selected = self.resolve_selection(dataset, as_reference)?;
        let selection = selected.selection;
        let fill = Fill::for_dataset(dataset);
        // The reference knows slices only, which keep their axes.
        let dropped = if as_reference { Vec::new() } else { selected.single };
        let rules = Rules { as_reference, dropped: &dropped };
        let operation = self.resolve_operation(dataset, &selection, &fill, rules)?;
        let positions = self.resolve_label_filter(dataset, &selection, as_reference)?;
        let group_count = self.flat.group_by.as_ref().and(operation.as_ref()).map(|operation| {
            let shape = operation.output_shape(&selection.shape());
            shape.into_iter().fold(1, u64::saturating_mul)
        });
        let window_count = operation.as_ref().and_then(|operation| self.window_count(operation, &selection));
        let filter = self.flat.filter.as_ref().map(|filter| filter_of(&filter.value));
        Ok(Resolved {
            filter,
            reversed: selected.reversed,
            dropped,
            fill: self.needed_fill(&fill, dataset)?,
            values: Values::default(),
            selection,
            operation,
            positions,
            spill: self.flat.spill.as_ref().map(|spill| spill.value.clone()),
            write: self.flat.write.as_ref().map(|write| write.value.clone()),
            group_count,
            window_count,
        })
    }

    /// The fill value of the dataset. An invalid attribute is an error only if the query needs it.
    fn needed_fill(&self, fill: &Fill<'_>, dataset: &Dataset<'_>) -> Result<Option<Scalar>, QueryError> {
        let dense = self.operation_kind().is_none_or(|kind| matches!(kind, Kind::Transform { .. }));
        let masks_whole_numbers = dense && dataset.element().is_some_and(|dtype| !is_float(dtype));
        let by_labels = self.flat.label_filter.as_ref().filter(|_| masks_whole_numbers);
        let filter = self.flat.filter.as_ref().map(|filter| &filter.key);
        match filter.or(by_labels.map(|filter| &filter.key)) {
            Some(key) => fill.value().map_err(|reason| self.source.error(key, reason)),
            None => Ok(fill.value().ok().flatten()),
        }
    }

    fn resolve_selection(&self, dataset: &Dataset<'_>, as_reference: bool) -> Result<Selected, ErrorKind> {
        let shape = dataset.shape();
        let mut slices: Vec<Entry> =
            shape.iter().map(|&extent| Entry::new(AxisSlice::full(extent), false)).collect();
        let Some(selection) = &self.flat.selection else {
            let (selection, reversed) = (Selection::full(shape), vec![false; shape.len()]);
            return Ok(Selected { selection, reversed, single: Vec::new() });
        };
        match &selection.value {
            Selecting::List(list) => {
                let is_rest = |entry: &AxisEntry| matches!(entry, AxisEntry::Text(text) if text == "...");
                let count = list.iter().filter(|entry| !is_rest(entry)).count();
                let rests = list.len() - count;
                let is_short = as_reference && rests == 0 && count < shape.len();
                if count > shape.len() || rests > 1 || is_short {
                    let detail = if rests > 1 {
                        "has several `...`".to_owned()
                    } else {
                        let rank = shape.len();
                        format!("has {count} slices, but the dataset has {rank} axes: one slice for each")
                    };
                    return Err(self.source.error(&selection.key, QueryErrorKind::Invalid { detail }).into());
                }
                let mut axis = 0;
                for (number, entry) in list.iter().enumerate() {
                    if is_rest(entry) {
                        axis += shape.len() - count;
                        continue;
                    }
                    let path = selection.element(number);
                    slices[axis] = self.resolve_entry(dataset, axis, entry, (&path, true), as_reference)?;
                    axis += 1;
                }
            }
            Selecting::Named(named) => {
                let mut seen = Vec::new();
                for (name, entry) in named {
                    let path = selection.member(name);
                    let axis = self.resolve_axis(dataset, &AxisToken::Text(name.clone()), &path)?;
                    if seen.contains(&axis) {
                        let detail = format!("{} is listed twice", describe_axis(dataset, axis));
                        return Err(self.source.error(&path, QueryErrorKind::Invalid { detail }).into());
                    }
                    seen.push(axis);
                    slices[axis] = self.resolve_entry(dataset, axis, entry, (&path, false), as_reference)?;
                }
            }
        }
        let reversed = slices.iter().map(|entry| entry.is_reversed).collect();
        let single = (0..slices.len()).filter(|&axis| slices[axis].is_single).collect();
        let axes = slices.into_iter().map(|entry| entry.slice).collect();
        let selection = Selection::new(axes, shape)
            .map_err(|error| self.source.error(&selection.key, QueryErrorKind::invalid(error.to_string())))?;
        Ok(Selected { selection, reversed, single })
    }

    /// The selection of one axis, in a list or by name.
    fn resolve_entry(
        &self,
        dataset: &Dataset<'_>,
        axis: usize,
        entry: &AxisEntry,
        (path, in_list): (&str, bool),
        as_reference: bool,
    ) -> Result<Entry, ErrorKind> {
        let extent = dataset.shape()[axis];
        let invalid = |detail: String| self.source.error(path, QueryErrorKind::Invalid { detail });
        let single = |position: i64| {
            let slice = IndexSlice { start: Some(position), is_single: true, ..IndexSlice::FULL };
            Entry::resolve(slice, axis, extent).map_err(|error| invalid(error.to_string()))
        };
        let labels = match entry {
            AxisEntry::Object(object) if !object.has_labels() => match object.position {
                Some(position) => return Ok(single(position.to_i64())?),
                None => return self.resolve_slice(dataset, axis, object, path, as_reference),
            },
            AxisEntry::Object(object) => {
                if let Some(label) = &object.nearest {
                    LabelSelection::Nearest { label: label.0.clone(), tolerance: object.tolerance }
                } else {
                    let label = |value: &Nullable<LabelValue>| value.0.as_ref().map(|label| label.0.clone());
                    LabelSelection::Range(label(&object.from), label(&object.to))
                }
            }
            #[expect(
                clippy::cast_possible_truncation,
                reason = "positions beyond the range are beyond every axis"
            )]
            AxisEntry::Number(number) if in_list => {
                if number.fract() != 0.0 {
                    return Err(invalid(format!("is {number:?}, but a position is a whole number")).into());
                }
                return Ok(single(*number as i64)?);
            }
            AxisEntry::Text(text) if in_list => {
                let slice = IndexSlice::parse(text)
                    .ok_or_else(|| invalid(format!("`{}` is not `start:stop:step`", excerpt(text))))?;
                return Ok(Entry::resolve(slice, axis, extent).map_err(|error| invalid(error.to_string()))?);
            }
            AxisEntry::Number(number) => LabelSelection::One(Label::Number(*number)),
            AxisEntry::Text(text) => match dataset.coordinates(axis).map_err(Error::into_kind)? {
                Some(coordinates) => coordinates.parse_selection(text),
                None => LabelSelection::parse(text),
            },
        };
        let Some(coordinates) = dataset.coordinates(axis).map_err(Error::into_kind)? else {
            let axis = describe_axis(dataset, axis);
            let detail = format!("needs labels, but {axis} has neither labels nor a coordinate dataset");
            return Err(invalid(detail).into());
        };
        let (start, stop) = coordinates.find(&labels).map_err(|error| invalid(error.to_string()))?;
        let is_single = coordinates.is_single(&labels, (start, stop));
        Ok(Entry { is_single, ..Entry::new(AxisSlice { start, stop, step: 1 }, false) })
    }

    fn resolve_slice(
        &self,
        dataset: &Dataset<'_>,
        axis: usize,
        slice: &AxisObject,
        path: &str,
        as_reference: bool,
    ) -> Result<Entry, ErrorKind> {
        let extent = dataset.shape()[axis];
        let is_negative = |number: &Nullable<Position>| number.0.is_some_and(|number| number.0 < 0);
        if [&slice.start, &slice.stop, &slice.step].into_iter().any(is_negative) {
            let invalid = |detail: String| self.source.error(path, QueryErrorKind::Invalid { detail });
            if slice.start_label.0.is_some() || slice.stop_label.0.is_some() {
                return Err(invalid("has both labels and negative numbers".to_owned()).into());
            }
            let number = |number: &Nullable<Position>| number.0.map(Position::to_i64);
            let (start, stop) = (number(&slice.start), number(&slice.stop));
            let step = number(&slice.step).unwrap_or(1);
            let slice = IndexSlice { start, stop, step, is_single: false };
            return Ok(Entry::resolve(slice, axis, extent).map_err(|error| invalid(error.to_string()))?);
        }
        let unsigned =
            |number: &Nullable<Position>| number.0.map(|number| u64::try_from(number.0).unwrap_or(u64::MAX));
        let label = |name: &str, label: &Option<String>| {
            let path = format!("{path}.{name}");
            let find = |label: &String| self.position_of(dataset, axis, label, &path, as_reference);
            label.as_ref().map(find).transpose()
        };
        let start = label("start_label", &slice.start_label.0)?;
        let stop = label("stop_label", &slice.stop_label.0)?;
        let start_key = if start.is_some() { "start_label" } else { "start" };
        let stop_key = if stop.is_some() { "stop_label" } else { "stop" };
        let start = start.or(unsigned(&slice.start)).unwrap_or(0);
        let stop = stop.or(unsigned(&slice.stop));
        let beyond = |name: &str, detail: String| {
            Err(self.source.error(&format!("{path}.{name}"), QueryErrorKind::Invalid { detail }).into())
        };
        if start >= extent {
            return beyond(start_key, format!("is {start}, but axis {axis} has {extent} positions"));
        }
        if let Some(stop) = stop.filter(|stop| *stop > extent) {
            return beyond(stop_key, format!("is {stop}, but axis {axis} has {extent} positions"));
        }
        check_order(Some(start), stop, &format!("{path}.{stop_key}"), &self.source)?;
        let step = unsigned(&slice.step).unwrap_or(1);
        check_step(start, step, &format!("{path}.step"), &self.source)?;
        Ok(Entry::new(AxisSlice { start, stop: stop.unwrap_or(extent), step }, false))
    }

    /// The first position with this label.
    fn position_of(
        &self,
        dataset: &Dataset<'_>,
        axis: usize,
        label: &str,
        path: &str,
        as_reference: bool,
    ) -> Result<u64, ErrorKind> {
        let labels = self.labels(dataset, axis, path, as_reference)?;
        let position = labels.iter().position(|other| other == label);
        let missing = || self.no_such_label(dataset, axis, (label, &labels), path).into();
        position.map(|position| position as u64).ok_or_else(missing)
    }

    /// The labels of an axis; an error without labels.
    fn labels<'d>(
        &self,
        dataset: &Dataset<'d>,
        axis: usize,
        path: &str,
        as_reference: bool,
    ) -> Result<Cow<'d, [String]>, ErrorKind> {
        let labels = dataset.document_labels(axis, as_reference).map_err(Error::into_kind)?;
        labels.ok_or_else(|| {
            let detail = format!("needs labels, but {} has none", describe_axis(dataset, axis));
            self.source.error(path, QueryErrorKind::Invalid { detail }).into()
        })
    }

    fn no_such_label(
        &self,
        dataset: &Dataset<'_>,
        axis: usize,
        (label, labels): (&str, &[String]),
        path: &str,
    ) -> QueryError {
        let labels = labels.iter().map(String::as_str);
        let what = match dataset.axis_name(axis) {
            Some(name) => format!("axis `{}` has no label", escape::name(name)),
            None => format!("axis {axis} has no label"),
        };
        self.source.error(path, QueryErrorKind::not_found(what, label, labels))
    }

    fn resolve_label_filter(
        &self,
        dataset: &Dataset<'_>,
        selection: &Selection,
        as_reference: bool,
    ) -> Result<Option<Positions>, ErrorKind> {
        let Some(filter) = &self.flat.label_filter else { return Ok(None) };
        let axis = self.resolve_axis(dataset, &filter.value.axis, &filter.member("axis"))?;
        let label = &filter.value.eq;
        let labels = self.labels(dataset, axis, &filter.member("axis"), as_reference)?;
        if !labels.contains(label) {
            return Err(self.no_such_label(dataset, axis, (label, &labels), &filter.member("eq")).into());
        }
        let counts: Arc<[bool]> =
            selected(&labels, selection.axes()[axis]).map(|other| other == label).collect();
        Ok(Some(Positions { axis, counts }))
    }

    /// The number of an axis.
    fn resolve_axis(
        &self,
        dataset: &Dataset<'_>,
        token: &AxisToken,
        path: &str,
    ) -> Result<usize, QueryError> {
        let rank = dataset.shape().len();
        let number = match token {
            AxisToken::Number(number) => Some(*number),
            AxisToken::Text(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                // A number that overflows is beyond every rank.
                Some(text.parse().unwrap_or(u64::MAX))
            }
            AxisToken::Text(_) => None,
        };
        let Some(number) = number else { return self.axis_by_name(dataset, &token.to_string(), path) };
        usize::try_from(number).ok().filter(|axis| *axis < rank).ok_or_else(|| {
            let name = escape::name(dataset.name());
            let detail = format!("is {token}, but dataset `{name}` has {rank} axes, counted from 0");
            self.source.error(path, QueryErrorKind::Invalid { detail })
        })
    }

    fn axis_by_name(&self, dataset: &Dataset<'_>, name: &str, path: &str) -> Result<usize, QueryError> {
        let of = escape::name(dataset.name());
        let names = (0..dataset.shape().len()).filter_map(|axis| dataset.axis_name(axis));
        let mut found = names.clone().enumerate().filter(|(_, other)| *other == name).map(|(axis, _)| axis);
        match (found.next(), found.next()) {
            (Some(axis), None) => Ok(axis),
            (Some(first), Some(second)) => {
                let detail =
                    format!("axes {first} and {second} of dataset `{of}` both have the name `{name}`");
                Err(self.source.error(path, QueryErrorKind::refused(detail, "use the number of the axis")))
            }
            (None, _) if names.clone().next().is_none() => {
                let detail = format!("`{name}` is a name, but the axes of dataset `{of}` have none");
                Err(self.source.error(path, QueryErrorKind::refused(detail, "use the number of the axis")))
            }
            (None, _) => {
                let what = format!("dataset `{of}` has no axis");
                Err(self.source.error(path, QueryErrorKind::not_found(what, name, names)))
            }
        }
    }

    /// The numbers of several distinct axes. `path` is the path of the list.
    pub(super) fn resolve_axes(
        &self,
        dataset: &Dataset<'_>,
        tokens: &[AxisToken],
        path: &str,
    ) -> Result<Vec<usize>, QueryError> {
        let mut axes = Vec::with_capacity(tokens.len());
        for (number, token) in tokens.iter().enumerate() {
            let path = self.source.axis_path(path, number);
            let axis = self.resolve_axis(dataset, token, &path)?;
            if axes.contains(&axis) {
                let detail = format!("{} is listed twice", describe_axis(dataset, axis));
                return Err(self.source.error(&path, QueryErrorKind::Invalid { detail }));
            }
            axes.push(axis);
        }
        Ok(axes)
    }

    fn resolve_operation(
        &self,
        dataset: &Dataset<'_>,
        selection: &Selection,
        fill: &Fill<'_>,
        rules: Rules<'_>,
    ) -> Result<Option<Operation>, ErrorKind> {
        let Some(written) = &self.flat.operation else { return Ok(None) };
        let kind = match written.value.kind {
            Kind::NullCount { fill: None } => {
                let value = fill.value().map_err(|reason| self.source.error(&written.key, reason))?;
                let value = value.ok_or_else(|| {
                    let detail = "needs a fill value, but the dataset has none";
                    self.source.error(&written.key, QueryErrorKind::refused(detail, "add `\"fill\": …`"))
                })?;
                Kind::NullCount { fill: Some(value) }
            }
            kind => kind,
        };
        if let Kind::Transform { .. } = kind
            && rules.as_reference
            && let Some(dtype) = dataset.element().filter(|dtype| !is_float(*dtype))
        {
            let detail = format!("needs a dataset of type `f16`, `f32` or `f64`, but this one is `{dtype}`");
            return Err(self.source.key_error(&written.key, QueryErrorKind::Invalid { detail }).into());
        }
        let listed = self.resolve_axes(dataset, &written.value.axes, &written.key)?;
        if let Kind::Covariance | Kind::Correlation = kind {
            self.check_table(selection, &listed, &written.key)?;
        }
        let (axes, roles) = self.resolve_roles(dataset, selection, listed, fill, rules)?;
        Ok(Some(Operation { kind, axes, roles }))
    }

    /// Covariances need a table of observations.
    fn check_table(&self, selection: &Selection, listed: &[usize], path: &str) -> Result<(), QueryError> {
        let shape = selection.shape();
        if shape.len() != 2 {
            let detail = format!("needs a dataset of 2 axes, but this one has {}", shape.len());
            return Err(self.source.key_error(path, QueryErrorKind::Invalid { detail }));
        }
        let variables = (0..2).filter(|axis| !listed.contains(axis)).map(|axis| shape[axis]).product::<u64>();
        if variables > MAX_VARIABLES {
            let detail = format!("has {variables} variables, at most {MAX_VARIABLES} are allowed");
            return Err(self.source.error(path, QueryErrorKind::refused(detail, "select some of them")));
        }
        Ok(())
    }
}

/// The labels of the selected positions.
pub(super) fn selected(labels: &[String], slice: AxisSlice) -> impl Iterator<Item = &String> {
    let position = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let labels = labels.get(position(slice.start)..position(slice.stop)).unwrap_or_default();
    labels.iter().step_by(position(slice.step))
}

/// An axis for messages.
fn describe_axis(dataset: &Dataset<'_>, axis: usize) -> String {
    match dataset.axis_name(axis) {
        Some(name) => format!("axis {axis}, `{name}`,"),
        None => format!("axis {axis}"),
    }
}

pub(super) fn is_float(dtype: ElementType) -> bool {
    matches!(dtype, ElementType::F16 | ElementType::F32 | ElementType::F64)
}

fn filter_of(filter: &super::document::Filter) -> Filter {
    let super::document::Filter { eq, ne, lt, le, gt, ge, is_null, is_not_null } = *filter;
    Filter {
        eq: eq.map(|number| number.0),
        ne: ne.map(|number| number.0),
        lt: lt.map(|number| number.0),
        le: le.map(|number| number.0),
        gt: gt.map(|number| number.0),
        ge: ge.map(|number| number.0),
        is_null: is_null.is_some(),
        is_not_null: is_not_null.is_some(),
    }
}
