//! The flat form of a query: pipelines are converted to it.

use super::Write;
use super::document::{
    Align, Document, Filter, GroupBy, LabelFilter, MAX_STEPS, Selecting, Specified, Step, Window,
};
use super::error::{QueryError, QueryErrorKind};
use super::source::Source;

/// The parts of a query with their positions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Flat {
    pub(crate) selection: Option<At<Selecting>>,
    pub(crate) operation: Option<At<Specified>>,
    pub(crate) filter: Option<At<Filter>>,
    pub(crate) label_filter: Option<At<LabelFilter>>,
    pub(crate) group_by: Option<At<GroupBy>>,
    pub(crate) window: Option<At<Window>>,
    pub(crate) spill: Option<At<String>>,
    pub(crate) write: Option<At<Write>>,
    pub(crate) align: Option<At<Align>>,
}

/// A part of a query and the path of its key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct At<T> {
    /// `filter`, or `pipeline[1].filter`.
    pub(crate) key: String,
    pub(crate) value: T,
}

impl<T> At<T> {
    /// The path of a member.
    pub(crate) fn member(&self, name: &str) -> String {
        format!("{}.{name}", self.key)
    }

    /// The path of an element.
    pub(crate) fn element(&self, number: usize) -> String {
        format!("{}[{number}]", self.key)
    }
}

/// Keys allowed beside a pipeline.
const BESIDE_PIPELINE: [&str; 6] = ["dataset", "layout_version", "execution", "skipna", "raw", "pipeline"];

/// Converts a document to the flat form.
pub(crate) fn flatten(document: &Document, source: &Source) -> Result<Flat, QueryError> {
    if let Some(steps) = &document.pipeline {
        if let Some(key) = source.keys().find(|key| !BESIDE_PIPELINE.contains(key)) {
            let reason = QueryErrorKind::invalid("cannot be used together with `pipeline`");
            return Err(source.key_error(key, reason));
        }
        return from_steps(steps, source);
    }
    let at = |name: &str| name.to_owned();
    Ok(Flat {
        selection: at_key(at("selection"), document.selection.as_ref()),
        operation: one_operation(document.operations(), "", source)?,
        filter: at_key(at("filter"), document.filter.as_ref()),
        label_filter: at_key(at("label_filter"), document.label_filter.as_ref()),
        group_by: at_key(at("group_by"), document.group_by.as_ref()),
        window: at_key(at("window"), document.window.as_ref()),
        spill: at_key(at("spill"), document.spill.as_ref()),
        write: at_key(at("write"), document.write.as_ref()),
        align: at_key(at("align"), document.align.as_ref()),
    })
}

fn at_key<T: Clone>(key: String, value: Option<&T>) -> Option<At<T>> {
    value.cloned().map(|value| At { key, value })
}

/// At most one operation. `inside` is the path of the object, with a dot at its end.
fn one_operation(
    mut written: Vec<Specified>,
    inside: &str,
    source: &Source,
) -> Result<Option<At<Specified>>, QueryError> {
    let key_at = |specified: &Specified| source.key_start(&format!("{inside}{}", specified.key));
    written.sort_by_key(key_at);
    if let [first, second, ..] = &written[..] {
        let detail = format!("there is an operation already, `{}`: only one is allowed", first.key);
        return Err(source.key_error(&format!("{inside}{}", second.key), QueryErrorKind::invalid(detail)));
    }
    Ok(written.pop().map(|value| At { key: format!("{inside}{}", value.key), value }))
}

/// The kinds of steps, in the required order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Select,
    Filter,
    Operation,
    Output,
}

fn from_steps(steps: &[Step], source: &Source) -> Result<Flat, QueryError> {
    if steps.is_empty() || steps.len() > MAX_STEPS {
        let detail = format!("has {} steps, but must have 1 to {MAX_STEPS}", steps.len());
        return Err(source.error("pipeline", QueryErrorKind::invalid(detail)));
    }
    let mut flat = Flat::default();
    let mut last = None;
    for (number, step) in steps.iter().enumerate() {
        let path = format!("pipeline[{number}]");
        let operation = one_operation(step.operations(), &format!("{path}."), source)?;
        let stage = stage_of(step, operation.as_ref(), &path, source)?;
        if last.is_some_and(|last| stage <= last) {
            let detail =
                "repeats a step or is out of order: `select`, `filter`, an operation, `spill` or `write`";
            return Err(source.error(&path, QueryErrorKind::invalid(detail)));
        }
        last = Some(stage);
        let key = |name: &str| format!("{path}.{name}");
        match stage {
            Stage::Select => flat.selection = at_key(key("select"), step.select.as_ref()),
            Stage::Filter => flat.filter = at_key(key("filter"), step.filter.as_ref()),
            Stage::Operation => {
                flat.operation = operation;
                flat.group_by = at_key(key("group_by"), step.group_by.as_ref());
                flat.window = at_key(key("window"), step.window.as_ref());
            }
            Stage::Output => {
                flat.spill = at_key(key("spill"), step.spill.as_ref());
                flat.write = at_key(key("write"), step.write.as_ref());
            }
        }
    }
    Ok(flat)
}

fn stage_of(
    step: &Step,
    operation: Option<&At<Specified>>,
    path: &str,
    source: &Source,
) -> Result<Stage, QueryError> {
    let operation = operation.map(|operation| operation.value.key);
    let grouping = step.group_by.as_ref().map(|_| "group_by").or(step.window.as_ref().map(|_| "window"));
    if let (None, Some(name)) = (operation, grouping) {
        let reason = QueryErrorKind::invalid("needs an operation in the same step");
        return Err(source.key_error(&format!("{path}.{name}"), reason));
    }
    let stages = [
        (Stage::Select, step.select.as_ref().map(|_| "select")),
        (Stage::Filter, step.filter.as_ref().map(|_| "filter")),
        (Stage::Operation, operation),
        (Stage::Output, step.spill.as_ref().map(|_| "spill")),
        (Stage::Output, step.write.as_ref().map(|_| "write")),
    ];
    let mut written = stages.into_iter().filter_map(|(stage, name)| Some((stage, name?)));
    match (written.next(), written.next()) {
        (Some((stage, _)), None) => Ok(stage),
        (Some((_, first)), Some((_, second))) => {
            let detail = format!("must be a step of its own, after `{first}`");
            Err(source.key_error(&format!("{path}.{second}"), QueryErrorKind::invalid(detail)))
        }
        (None, _) => Err(source.error(path, QueryErrorKind::invalid("has no key: a step has one"))),
    }
}
