//! Rules between the keys of a query that need no file.

mod features;

#[cfg(test)]
mod tests;

use super::document::{
    AxisEntry, AxisObject, Document, MAX_AXES, NAME_BYTES, Position, Selecting, Specified,
};
use super::error::{QueryError, QueryErrorKind, excerpt};
use super::flat::{At, Flat};
use super::operation::Kind;
use super::source::Source;
use super::{Target, Write};

/// The limit of histogram bins.
const MAX_BINS: u32 = 4096;

/// Checks all rules that need no file.
pub(crate) fn check(document: &Document, flat: &Flat, source: &Source) -> Result<(), QueryError> {
    check_dataset(&document.dataset, source)?;
    features::check_align(&document.dataset, flat, source)?;
    if let Some(selection) = &flat.selection {
        check_selection(selection, source)?;
    }
    if let Some(operation) = &flat.operation {
        check_operation(operation, source)?;
    }
    check_output(flat, source)?;
    features::check_filters(flat, source)?;
    features::check_group_by(flat, source)?;
    features::check_window(flat, source)
}

fn check_dataset(name: &str, source: &Source) -> Result<(), QueryError> {
    if name.trim().is_empty() {
        return Err(source.error("dataset", QueryErrorKind::invalid("is blank, but must name a dataset")));
    }
    if name.len() > NAME_BYTES {
        let detail = format!("has {} bytes, at most {NAME_BYTES} are allowed", name.len());
        return Err(source.error("dataset", QueryErrorKind::invalid(detail)));
    }
    Ok(())
}

fn check_selection(selection: &At<Selecting>, source: &Source) -> Result<(), QueryError> {
    let entries: Vec<(String, &AxisEntry)> = match &selection.value {
        Selecting::List(list) => {
            let slices = list.iter().filter(|entry| !matches!(entry, AxisEntry::Text(text) if text == "..."));
            let count = slices.count();
            if count > MAX_AXES {
                let detail = format!("has {count} slices, at most {MAX_AXES} are allowed");
                return Err(source.error(&selection.key, QueryErrorKind::invalid(detail)));
            }
            list.iter().enumerate().map(|(number, entry)| (selection.element(number), entry)).collect()
        }
        Selecting::Named(named) => {
            named.iter().map(|(name, entry)| (selection.member(name), entry)).collect()
        }
    };
    for (path, entry) in entries {
        let AxisEntry::Object(object) = entry else { continue };
        let member = |name: &str| format!("{path}.{name}");
        let both = |number: &str, label: &str| {
            let detail = format!("`{number}` is already given: a number or a label, not both");
            Err(source.key_error(&member(label), QueryErrorKind::invalid(detail)))
        };
        let AxisObject { start, stop, step, start_label, stop_label, nearest, tolerance, .. } = &**object;
        if object.position.is_some() && object.has_range() {
            return Err(source.error(&path, QueryErrorKind::invalid("has both `position` and a range")));
        }
        if object.has_labels() && (object.has_range() || object.position.is_some()) {
            let reason = QueryErrorKind::invalid("has both labels and positions");
            return Err(source.error(&path, reason));
        }
        if nearest.is_some() && (object.from.0.is_some() || object.to.0.is_some()) {
            return Err(source.error(&path, QueryErrorKind::invalid("has both `nearest` and a range")));
        }
        if let Some(distance) = *tolerance {
            let detail = if nearest.is_none() {
                Some("is only for `nearest`".to_owned())
            } else if distance.is_nan() || distance < 0.0 {
                Some(format!("is {distance:?}, but must not be negative"))
            } else {
                None
            };
            if let Some(detail) = detail {
                return Err(source.error(&member("tolerance"), QueryErrorKind::invalid(detail)));
            }
        }
        if start.0.is_some() && start_label.0.is_some() {
            return both("start", "start_label");
        }
        if stop.0.is_some() && stop_label.0.is_some() {
            return both("stop", "stop_label");
        }
        if step.0 == Some(Position(0)) {
            let reason = QueryErrorKind::invalid("is 0, but must be at least 1, or negative");
            return Err(source.error(&member("step"), reason));
        }
        // Negative numbers depend on the axis.
        let unsigned = |number: Option<Position>| number.map(|number| u64::try_from(number.0)).transpose();
        if let (Ok(start), Ok(stop), Ok(step)) = (unsigned(start.0), unsigned(stop.0), unsigned(step.0)) {
            check_order(start, stop, &member("stop"), source)?;
            check_step(start.unwrap_or(0), step.unwrap_or(1), &member("step"), source)?;
        }
    }
    Ok(())
}

/// `start` must be less than `stop`.
pub(crate) fn check_order(
    start: Option<u64>,
    stop: Option<u64>,
    path: &str,
    source: &Source,
) -> Result<(), QueryError> {
    match (start.unwrap_or(0), stop) {
        (start, Some(stop)) if start >= stop => {
            let detail = format!("selects nothing: it starts at {start} and ends before {stop}");
            Err(source.error(path, QueryErrorKind::invalid(detail)))
        }
        _ => Ok(()),
    }
}

/// The position after the first must be a number.
pub(crate) fn check_step(start: u64, step: u64, path: &str, source: &Source) -> Result<(), QueryError> {
    if start.checked_add(step).is_some() {
        return Ok(());
    }
    let detail = format!("is {step}, but the start {start} plus the step overflows");
    Err(source.error(path, QueryErrorKind::invalid(detail)))
}

fn check_operation(operation: &At<Specified>, source: &Source) -> Result<(), QueryError> {
    let Specified { kind, axes, .. } = &operation.value;
    let refuse = |name: &str, detail: String| {
        Err(source.error(&operation.member(name), QueryErrorKind::Invalid { detail }))
    };
    let written = |name: &str| source.is_written(&operation.member(name));
    if written("axis") && written("axes") {
        let reason = QueryErrorKind::invalid("has both `axis` and `axes`, which are aliases");
        return Err(source.error(&operation.key, reason));
    }
    match *kind {
        Kind::Quantile { q } if !(0.0..=1.0).contains(&q) => {
            refuse("q", format!("is {q:?}, but must be from 0 to 1"))
        }
        Kind::Histogram { bins, .. } if !(1..=MAX_BINS).contains(&bins) => {
            refuse("bins", format!("is {bins}, but must be from 1 to {MAX_BINS}"))
        }
        Kind::Histogram { range: None, .. } => match (written("min"), written("max")) {
            (true, false) => refuse("min", "needs `max`".to_owned()),
            (false, true) => refuse("max", "needs `min`".to_owned()),
            _ => Ok(()),
        },
        Kind::Histogram { range: Some((min, max)), .. } => {
            let end = if min.is_finite() { "max" } else { "min" };
            if !min.is_finite() || !max.is_finite() {
                return refuse(end, "must be finite".to_owned());
            }
            if min >= max {
                return refuse("max", format!("is {max:?}, but must be greater than `min`, {min:?}"));
            }
            if !(max - min).is_finite() {
                return refuse("max", format!("is {max:?}, too far from `min`, {min:?}"));
            }
            Ok(())
        }
        Kind::Covariance | Kind::Correlation if axes.len() != 1 => {
            let detail = format!("has {} axes, but must have one: the axis of the observations", axes.len());
            Err(source.error(&operation.key, QueryErrorKind::Invalid { detail }))
        }
        _ => Ok(()),
    }
}

fn check_output(flat: &Flat, source: &Source) -> Result<(), QueryError> {
    let kind = flat.operation.as_ref().map(|operation| operation.value.kind);
    if let Some(spill) = &flat.spill {
        check_path(&spill.value, &spill.key, source)?;
        if let Some(kind) = kind {
            let detail = format!("is for a selection without an operation, but there is `{}`", kind.key());
            let reason = match kind {
                Kind::Transform { .. } => {
                    QueryErrorKind::refused(detail, "use `write` for the result of a transform")
                }
                _ => QueryErrorKind::Invalid { detail },
            };
            return Err(source.key_error(&spill.key, reason));
        }
    }
    let Some(write) = &flat.write else { return Ok(()) };
    if !matches!(kind, Some(Kind::Transform { .. })) {
        let reason = match kind {
            Some(_) => QueryErrorKind::invalid("is only for the result of a `transform`"),
            None => QueryErrorKind::refused(
                "is only for the result of a `transform`",
                "use `spill` for a selection without an operation",
            ),
        };
        return Err(source.key_error(&write.key, reason));
    }
    let Write { target, path, timestamp } = &write.value;
    if let Some(path) = path {
        if !matches!(target, Target::Spill | Target::Sidecar) {
            let reason = QueryErrorKind::invalid("is only for the targets `spill` and `sidecar`");
            return Err(source.key_error(&write.member("path"), reason));
        }
        check_path(path, &write.member("path"), source)?;
    }
    if timestamp.is_some() && *target != Target::Sidecar {
        let reason = QueryErrorKind::invalid("is only for the target `sidecar`");
        return Err(source.key_error(&write.member("timestamp"), reason));
    }
    Ok(())
}

fn check_path(path: &str, key: &str, source: &Source) -> Result<(), QueryError> {
    if path.trim().is_empty() {
        return Err(source.error(key, QueryErrorKind::invalid("is blank, but must be the path of a file")));
    }
    if path.contains('\0') {
        let detail = format!("`{}` has a zero character, which no path can have", excerpt(path));
        return Err(source.error(key, QueryErrorKind::Invalid { detail }));
    }
    Ok(())
}
