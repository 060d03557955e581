//! Rules for filters, groups, windows and alignment.

use std::cmp::Ordering;

use crate::query::document::{BinAlign, Filter, MAX_AXES, Mode, Pad};
use crate::query::error::{QueryError, QueryErrorKind};
use crate::query::flat::{At, Flat};
use crate::query::operation::{Kind, Scalar};
use crate::query::source::Source;

/// The largest window, in positions.
const MAX_WINDOW: u64 = 1 << 20;

/// Keys allowed together with `align`.
const BESIDE_ALIGN: [&str; 4] = ["dataset", "layout_version", "execution", "align"];

pub(super) fn check_align(dataset: &str, flat: &Flat, source: &Source) -> Result<(), QueryError> {
    let Some(align) = &flat.align else { return Ok(()) };
    if let Some(key) = source.keys().find(|key| !BESIDE_ALIGN.contains(key)) {
        return Err(source.key_error(key, QueryErrorKind::invalid("cannot be used together with `align`")));
    }
    let with = &align.value.with;
    if with.trim().is_empty() {
        let reason = QueryErrorKind::invalid("is blank, but must name a dataset");
        return Err(source.error(&align.member("with"), reason));
    }
    if with == dataset {
        let reason = QueryErrorKind::invalid("must name another dataset than `dataset`");
        return Err(source.error(&align.member("with"), reason));
    }
    check_axes(align.value.axes.len(), &align.member("axes"), source)
}

/// A list of axes that cannot be empty.
fn check_axes(count: usize, path: &str, source: &Source) -> Result<(), QueryError> {
    if (1..=MAX_AXES).contains(&count) {
        return Ok(());
    }
    let detail = format!("lists {count} axes, but must list 1 to {MAX_AXES}");
    Err(source.error(path, QueryErrorKind::Invalid { detail }))
}

pub(super) fn check_filters(flat: &Flat, source: &Source) -> Result<(), QueryError> {
    if let Some(filter) = &flat.filter {
        check_filter(filter, source)?;
    }
    let kind = flat.operation.as_ref().map(|operation| operation.value.kind);
    let Some(kind @ (Kind::Covariance | Kind::Correlation)) = kind else { return Ok(()) };
    let filter = flat.filter.as_ref().map(|filter| &filter.key);
    let key = filter.or(flat.label_filter.as_ref().map(|filter| &filter.key));
    key.map_or(Ok(()), |key| {
        let detail = format!("cannot be used together with `{}`, which needs every element", kind.key());
        Err(source.key_error(key, QueryErrorKind::Invalid { detail }))
    })
}

fn check_filter(filter: &At<Filter>, source: &Source) -> Result<(), QueryError> {
    let Filter { eq, ne, lt, le, gt, ge, is_null, is_not_null } = filter.value;
    let refuse = |name: &str, detail: String| {
        Err(source.key_error(&filter.member(name), QueryErrorKind::Invalid { detail }))
    };
    let comparisons = [("eq", eq), ("ne", ne), ("lt", lt), ("le", le), ("gt", gt), ("ge", ge)];
    let comparison = comparisons.into_iter().find(|(_, number)| number.is_some()).map(|(name, _)| name);
    if comparison.is_none() && is_null.is_none() && is_not_null.is_none() {
        return Err(
            source.error(&filter.key, QueryErrorKind::invalid("is empty, but must have a comparison"))
        );
    }
    if gt.is_some() && ge.is_some() {
        return refuse("ge", "is a second lower bound in addition to `gt`".to_owned());
    }
    if lt.is_some() && le.is_some() {
        return refuse("le", "is a second upper bound in addition to `lt`".to_owned());
    }
    if is_null.is_some() && is_not_null.is_some() {
        return refuse("is_not_null", "cannot be used together with `is_null`".to_owned());
    }
    if let (Some(_), Some(name)) = (is_null, comparison) {
        return refuse("is_null", format!("cannot be used together with `{name}`"));
    }
    let lower = gt.map(|bound| ("gt", bound.0)).or(ge.map(|bound| ("ge", bound.0)));
    let upper = lt.map(|bound| ("lt", bound.0)).or(le.map(|bound| ("le", bound.0)));
    let (Some((low, from)), Some((high, to))) = (lower, upper) else { return Ok(()) };
    let is_empty = match compare(from, to) {
        Ordering::Less => false,
        Ordering::Equal => (low, high) != ("ge", "le"),
        Ordering::Greater => true,
    };
    if is_empty {
        return refuse(high, format!("and `{low}` exclude every number"));
    }
    Ok(())
}

/// The exact order of two numbers that are not NaN.
fn compare(a: Scalar, b: Scalar) -> Ordering {
    match (a, b) {
        (Scalar::Whole(a), Scalar::Whole(b)) => a.cmp(&b),
        (Scalar::Float(a), Scalar::Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (Scalar::Whole(a), Scalar::Float(b)) => whole_to_float(a, b),
        (Scalar::Float(a), Scalar::Whole(b)) => whole_to_float(b, a).reverse(),
    }
}

fn whole_to_float(whole: i128, float: f64) -> Ordering {
    // Whole numbers of a query have 64 bits; the cast stops at the ends of i128, far outside.
    #[expect(clippy::cast_possible_truncation, reason = "only the integer part is needed")]
    let floor = float.floor() as i128;
    let fraction = if float > float.floor() { Ordering::Less } else { Ordering::Equal };
    whole.cmp(&floor).then(fraction)
}

/// The operation that groups and windows apply to.
fn reduction(flat: &Flat, key: &str, source: &Source) -> Result<Kind, QueryError> {
    let Some(operation) = &flat.operation else {
        let reason = QueryErrorKind::refused("needs an operation", "add one, for example `\"mean\": []`");
        return Err(source.key_error(key, reason));
    };
    Ok(operation.value.kind)
}

fn not_with(kind: Kind, key: &str, source: &Source) -> Result<(), QueryError> {
    let detail = format!("cannot be used together with `{}`", kind.key());
    Err(source.key_error(key, QueryErrorKind::Invalid { detail }))
}

pub(super) fn check_group_by(flat: &Flat, source: &Source) -> Result<(), QueryError> {
    let Some(group_by) = &flat.group_by else { return Ok(()) };
    let kind = reduction(flat, &group_by.key, source)?;
    let whole = matches!(kind, Kind::Histogram { .. });
    if whole || matches!(kind, Kind::Transform { .. } | Kind::Covariance | Kind::Correlation) {
        return not_with(kind, &group_by.key, source);
    }
    if let Some(window) = &flat.window {
        let reason = QueryErrorKind::invalid("cannot be used together with `group_by`");
        return Err(source.key_error(&window.key, reason));
    }
    let path = if group_by.value.by_labels { group_by.member("axes") } else { group_by.key.clone() };
    check_axes(group_by.value.axes.len(), &path, source)
}

pub(super) fn check_window(flat: &Flat, source: &Source) -> Result<(), QueryError> {
    let Some(at) = &flat.window else { return Ok(()) };
    let kind = reduction(flat, &at.key, source)?;
    let whole = matches!(kind, Kind::Histogram { .. });
    if whole || matches!(kind, Kind::Transform { .. } | Kind::Covariance | Kind::Correlation) {
        return not_with(kind, &at.key, source);
    }
    let window = &at.value;
    let refuse =
        |name: &str, detail: String| Err(source.error(&at.member(name), QueryErrorKind::Invalid { detail }));
    if !(1..=MAX_WINDOW).contains(&window.size) {
        return refuse("size", format!("is {}, but must be from 1 to {MAX_WINDOW}", window.size));
    }
    if window.step == Some(0) {
        return refuse("step", "is 0, but must be at least 1".to_owned());
    }
    if window.step.is_some() && window.mode != Mode::Rolling {
        let reason = QueryErrorKind::invalid("is only for the mode `rolling`");
        return Err(source.key_error(&at.member("step"), reason));
    }
    if let Some(count) = window.min_count
        && !(1..=window.size).contains(&count)
    {
        return refuse("min_count", format!("is {count}, but must be from 1 to the size, {}", window.size));
    }
    let end = window.align == Some(BinAlign::End);
    if end && window.mode == Mode::Rolling && window.pad.unwrap_or_default() == Pad::None {
        return refuse("align", "`end` requires a `pad` for rolling windows".to_owned());
    }
    Ok(())
}
