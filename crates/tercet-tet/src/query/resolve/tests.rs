use std::io::Cursor;

use serde_json::{Value, json};
use tercet_core::{Diagnostic as _, ElementType, Tensor};

use crate::error::ErrorKind;
use crate::file::{File, ReadOptions};
use crate::query::Query;
use crate::query::error::QueryError;
use crate::query::operation::{Kind, Scalar};
use crate::query::resolved::{Padding, Resolved, Role};
use crate::query::tree::Syntax;
use crate::{Layout, Writer, WriterOptions};

/// A file of several datasets: `cube` 2×3×4 with names and labels, `plain` without, others with fill values.
pub(in crate::query) fn file() -> File {
    let mut layout = Layout::new();
    let split = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut ids = Vec::new();
    let mut add = |layout: &mut Layout, name: &str, dtype, shape: &[u64]| {
        let id = layout.dataset(name, dtype, shape, shape).unwrap();
        ids.push((id, dtype, shape.to_vec()));
        id
    };
    let cube = add(&mut layout, "cube", ElementType::F32, &[2, 3, 4]);
    layout.dims(cube, ["x", "y", "time"]).unwrap();
    layout.labels(cube, "y", split("u v u")).unwrap();
    layout.labels(cube, "time", split("mon tue wed thu")).unwrap();
    let other = add(&mut layout, "other", ElementType::F64, &[2, 4, 5]);
    layout.dims(other, ["x", "time", "z"]).unwrap();
    layout.labels(other, "time", split("mon tue wed fri")).unwrap();
    add(&mut layout, "plain", ElementType::I32, &[2, 3, 4]);
    let fill = add(&mut layout, "fill", ElementType::I32, &[6]);
    layout.attr(fill, "missing_value", " -999 ").unwrap();
    layout.attr(fill, "fill_value", "7").unwrap();
    let bad = add(&mut layout, "bad", ElementType::U8, &[6]);
    layout.attr(bad, "_FillValue", "oops").unwrap();
    layout.attr(bad, "missing_value", "3").unwrap();
    let twice = add(&mut layout, "twice", ElementType::F32, &[2, 2]);
    layout.dims(twice, ["x", "x"]).unwrap();
    add(&mut layout, "wide", ElementType::U8, &[2, 1025]);
    add(&mut layout, "series", ElementType::F64, &[13]);
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    for (id, dtype, shape) in ids {
        writer.array(id, Tensor::zeros(dtype, shape.into()).unwrap().view()).unwrap();
    }
    File::from_bytes("test", writer.finish().unwrap().output).unwrap()
}

/// The error of a query.
pub(crate) fn query_error(kind: ErrorKind) -> QueryError {
    match kind {
        ErrorKind::Query(error) => *error,
        other => panic!("{other:?} is not an error of a query"),
    }
}

pub(crate) fn resolve(dataset: &str, members: &Value) -> Result<(Query, Resolved), QueryError> {
    let mut document = json!({"dataset": dataset});
    document.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    let query = Query::parse(&document.to_string(), Syntax::Json)
        .unwrap_or_else(|error| panic!("{document}: {error}"));
    let resolved = query.resolve(&file().dataset(dataset).unwrap(), true).map_err(query_error)?;
    Ok((query, resolved))
}

fn resolved(dataset: &str, members: &Value) -> Resolved {
    resolve(dataset, members).unwrap_or_else(|error| panic!("{members}: {error}")).1
}

/// Checks that each query is rejected at this key, with a message that contains this string.
fn refused(cases: &[(&str, Value, &str, &str)]) {
    for (dataset, members, key, expected) in cases {
        let error = resolve(dataset, members).expect_err(&members.to_string());
        let message = format!("{error} {}", error.hint().map(|hint| hint.to_string()).unwrap_or_default());
        assert_eq!(error.key(), *key, "{members}: {message}");
        assert!(message.contains(expected), "{members}: {message}");
    }
}

fn slices(dataset: &str, selection: &Value) -> Vec<(u64, u64, u64)> {
    let resolved = resolved(dataset, &json!({"selection": selection}));
    resolved.selection.axes().iter().map(|slice| (slice.start, slice.stop, slice.step)).collect()
}

#[test]
fn selections_are_bound() {
    let max = u64::MAX;
    assert_eq!(
        slices("cube", &json!([{}, {"start": 1}, {"stop": 3, "step": 2}])),
        [(0, 2, 1), (1, 3, 1), (0, 3, 2)]
    );
    let labels = json!([{}, {"start_label": "v"}, {"start_label": "tue", "stop_label": "thu"}]);
    assert_eq!(slices("cube", &labels), [(0, 2, 1), (1, 3, 1), (1, 3, 1)]);
    assert_eq!(slices("series", &json!([{"step": max}])), [(0, 13, max)]);
    assert_eq!(resolved("series", &json!({"selection": [{"step": max}]})).selection.shape().to_vec(), [1]);
    assert_eq!(resolved("cube", &json!({})).selection.shape().to_vec(), [2, 3, 4]);
    refused(&[
        ("cube", json!({"selection": [{}]}), "selection", "has 1 slices, but the dataset has 3 axes"),
        ("cube", json!({"selection": []}), "selection", "has 0 slices"),
        (
            "series",
            json!({"selection": [{"start": 13}]}),
            "selection[0].start",
            "is 13, but axis 0 has 13 positions",
        ),
        (
            "series",
            json!({"selection": [{"stop": 14}]}),
            "selection[0].stop",
            "is 14, but axis 0 has 13 positions",
        ),
        (
            "cube",
            json!({"selection": [{}, {"start_label": "w"}, {}]}),
            "selection[1].start_label",
            "axis `y` has no label `w` did you mean `u`?",
        ),
        (
            "cube",
            json!({"selection": [{}, {}, {"stop_label": "sunday"}]}),
            "selection[2].stop_label",
            "available: mon, tue, wed, thu",
        ),
        (
            "cube",
            json!({"selection": [{}, {}, {"start_label": "mno"}]}),
            "selection[2].start_label",
            "did you mean `mon`?",
        ),
        (
            "cube",
            json!({"selection": [{"start_label": "a"}, {}, {}]}),
            "selection[0].start_label",
            "needs labels, but axis 0, `x`, has none",
        ),
        (
            "cube",
            json!({"selection": [{}, {}, {"start_label": "wed", "stop_label": "tue"}]}),
            "selection[2].stop_label",
            "starts at 2 and ends before 1",
        ),
        (
            "cube",
            json!({"selection": [{}, {}, {"start": 2, "stop_label": "mon"}]}),
            "selection[2].stop_label",
            "selects nothing",
        ),
        (
            "cube",
            json!({"selection": [{}, {}, {"start_label": "tue", "step": max}]}),
            "selection[2].step",
            "overflows",
        ),
        (
            "cube",
            json!({"pipeline": [{"select": [{"stop": 9}, {}, {}]}]}),
            "pipeline[0].select[0].stop",
            "is 9",
        ),
    ]);
}

#[test]
fn axes_are_bound() {
    let axes = |value: Value| {
        let operation = resolved("cube", &json!({"mean": value})).operation.unwrap();
        let reduced = operation.roles.iter().map(|role| *role == Role::Reduced).collect::<Vec<_>>();
        (operation.axes, reduced)
    };
    assert_eq!(axes(json!([])), (vec![], vec![true; 3]));
    assert_eq!(axes(json!("time")), (vec![2], vec![false, false, true]));
    assert_eq!(axes(json!(["02", "x"])), (vec![2, 0], vec![true, false, true]));
    refused(&[
        ("cube", json!({"mean": 3}), "mean", "is 3, but dataset `cube` has 3 axes, counted from 0"),
        ("cube", json!({"mean": "99999999999999999999"}), "mean", "has 3 axes"),
        ("cube", json!({"mean": ["x", "tme"]}), "mean[1]", "did you mean `time`?"),
        ("cube", json!({"mean": {"axes": [0, "latitude"]}}), "mean.axes[1]", "available: x, y, time"),
        ("cube", json!({"quantile": {"q": 0, "axis": {"axis": [9]}}}), "quantile.axis.axis[0]", "is 9"),
        ("cube", json!({"mean": [0, "0"]}), "mean[1]", "axis 0, `x`, is listed twice"),
        ("cube", json!({"mean": [2, "time"]}), "mean[1]", "listed twice"),
        ("cube", json!({"mean": [0, 1, 2]}), "mean", "use `[]`"),
        ("series", json!({"mean": 0}), "mean", "use `[]`"),
        ("plain", json!({"mean": "x"}), "mean", "use the number of the axis"),
        ("twice", json!({"mean": "x"}), "mean", "axes 0 and 1 of dataset `twice` both have the name `x`"),
    ]);
    assert_eq!(resolved("twice", &json!({"mean": 1})).operation.unwrap().axes, [1]);
}

#[test]
fn operations_fit_their_dataset() {
    refused(&[
        (
            "plain",
            json!({"transform": {"method": "l1"}}),
            "transform",
            "`f16`, `f32` or `f64`, but this one is `i32`",
        ),
        ("cube", json!({"covariance": 0}), "covariance", "needs a dataset of 2 axes, but this one has 3"),
        ("series", json!({"correlation": 0}), "correlation", "needs a dataset of 2 axes"),
        ("wide", json!({"covariance": 0}), "covariance", "has 1025 variables, at most 1024"),
        ("wide", json!({"covariance": 2}), "covariance", "is 2"),
        ("plain", json!({"null_count": []}), "null_count", "needs a fill value"),
        (
            "bad",
            json!({"null_count": []}),
            "null_count",
            "the attribute `_FillValue` of the dataset is `oops`",
        ),
        ("bad", json!({"sum": [], "filter": {"gt": 1}}), "filter", "`_FillValue`"),
        ("bad", json!({"label_filter": {"axis": 0, "eq": "x"}}), "label_filter.axis", "needs labels"),
    ]);
    let table =
        resolved("wide", &json!({"covariance": 0, "selection": [{}, {"stop": 1024}]})).operation.unwrap();
    assert_eq!((table.axes, table.roles), (vec![0], vec![Role::Reduced, Role::Kept]));
    assert!(resolve("wide", &json!({"covariance": 1})).is_ok());
    let kind = |dataset: &str, value: Value| {
        resolved(dataset, &json!({"null_count": value})).operation.unwrap().kind
    };
    assert_eq!(
        kind("fill", json!([])),
        Kind::NullCount { fill: Some(Scalar::Whole(-999)) },
        "the first attribute"
    );
    assert_eq!(kind("bad", json!({"fill": 5})), Kind::NullCount { fill: Some(Scalar::Whole(5)) });
    assert_eq!(resolved("fill", &json!({"sum": []})).fill, Some(Scalar::Whole(-999)));
    assert_eq!(resolved("bad", &json!({"sum": []})).fill, None);
    let transform = resolved("cube", &json!({"transform": {"method": "l1", "axis": "x"}, "write": "ram"}));
    assert_eq!(transform.operation.unwrap().roles, [Role::Reduced, Role::Kept, Role::Kept]);
    assert!(transform.write.is_some());
}

#[test]
fn groups_are_positions_or_labels() {
    let group = |members: Value| {
        let resolved = resolved("cube", &members);
        let operation = resolved.operation.unwrap();
        (
            operation.axes.clone(),
            operation.output_shape(&resolved.selection.shape()),
            resolved.group_count.unwrap(),
        )
    };
    assert_eq!(group(json!({"sum": [], "group_by": ["time", "x"]})), (vec![1], vec![2, 4], 8));
    assert_eq!(group(json!({"sum": [2, 0], "group_by": [1]})), (vec![2, 0], vec![3], 3));
    let labels = json!({"by": "labels", "axes": ["time", "y"]});
    assert_eq!(group(json!({"sum": [], "group_by": labels})), (vec![0], vec![2, 4], 8));
    let groups = |members: Value| match &resolved("cube", &members).operation.unwrap().roles[1] {
        Role::Grouped(groups) => (groups.numbers.to_vec(), groups.count, groups.padding),
        other => panic!("{other:?}"),
    };
    let by_y = json!({"by": "labels", "axes": ["y"]});
    assert_eq!(groups(json!({"sum": [], "group_by": by_y})), (vec![0, 1, 0], 2, None));
    let selection = json!([{}, {"start": 1}, {}]);
    assert_eq!(
        groups(json!({"sum": [], "group_by": by_y, "selection": selection})).0,
        [0, 1],
        "first seen first"
    );
    let selection = json!([{}, {"step": 2}, {}]);
    assert_eq!(groups(json!({"sum": [], "group_by": by_y, "selection": selection})), (vec![0, 0], 1, None));
    refused(&[
        ("cube", json!({"sum": [], "group_by": [0, 1, 2]}), "group_by", "must leave one"),
        ("cube", json!({"sum": [], "group_by": [0, "x"]}), "group_by[1]", "listed twice"),
        (
            "cube",
            json!({"sum": ["x", "y"], "group_by": ["y"]}),
            "sum[1]",
            "axis 1, `y`, is in `group_by` as well",
        ),
        ("cube", json!({"sum": ["x"], "group_by": ["y"]}), "sum", "every axis that is not in `group_by`"),
        (
            "cube",
            json!({"sum": [], "group_by": {"by": "labels", "axes": ["y", "x"]}}),
            "group_by.axes[1]",
            "axis 0, `x`, has none",
        ),
        (
            "cube",
            json!({"sum": [], "group_by": {"by": "labels", "axes": ["z"]}}),
            "group_by.axes[0]",
            "no axis",
        ),
    ]);
}

#[test]
fn label_filters_are_positions() {
    let counts = |members: Value| {
        let positions = resolved("cube", &members).positions.unwrap();
        (positions.axis, positions.counts.to_vec())
    };
    let filter = json!({"axis": "y", "eq": "u"});
    assert_eq!(counts(json!({"label_filter": filter})), (1, vec![true, false, true]));
    let selection = json!([{}, {"start": 1, "stop": 2}, {}]);
    assert_eq!(counts(json!({"label_filter": filter, "selection": selection})), (1, vec![false]));
    refused(&[
        (
            "cube",
            json!({"label_filter": {"axis": "y", "eq": "q"}}),
            "label_filter.eq",
            "axis `y` has no label `q`",
        ),
        ("cube", json!({"label_filter": {"axis": "x", "eq": "q"}}), "label_filter.axis", "needs labels"),
        ("cube", json!({"label_filter": {"axis": 5, "eq": "q"}}), "label_filter.axis", "is 5"),
    ]);
}

#[test]
fn windows_fit_their_axis() {
    refused(&[
        (
            "series",
            json!({"sum": [], "window": {"axis": 0, "size": 14, "mode": "bins"}}),
            "window.size",
            "is 14, but only 13 positions",
        ),
        (
            "series",
            json!({"sum": [], "selection": [{"step": 2}], "window": {"axis": 0, "size": 8, "mode": "bins"}}),
            "window.size",
            "only 7 positions",
        ),
        (
            "cube",
            json!({"sum": ["x"], "window": {"axis": "y", "size": 2, "mode": "bins"}}),
            "sum",
            "must list the axis of the window, 1",
        ),
        ("cube", json!({"sum": [], "window": {"axis": 3, "size": 2, "mode": "bins"}}), "window.axis", "is 3"),
        (
            "plain",
            json!({"sum": [], "window": {"axis": 0, "size": 2, "mode": "bins", "pad": "nan"}}),
            "window.pad",
            "`i32` cannot be NaN",
        ),
        (
            "plain",
            json!({"sum": [], "window": {"axis": 0, "size": 2, "mode": "bins", "pad": "fill"}}),
            "window.pad",
            "has no fill value",
        ),
        (
            "bad",
            json!({"sum": [], "window": {"axis": 0, "size": 2, "mode": "bins", "pad": "fill"}}),
            "window.pad",
            "`_FillValue`",
        ),
        (
            "cube",
            json!({"pipeline": [{"sum": [], "window": {"axis": 0, "size": 9, "mode": "bins"}}]}),
            "pipeline[0].window.size",
            "is 9",
        ),
    ]);
    let roles = |members: Value| {
        let resolved = resolved("cube", &members);
        let operation = resolved.operation.unwrap();
        (
            operation.axes.clone(),
            operation.output_shape(&resolved.selection.shape()),
            resolved.window_count.unwrap(),
        )
    };
    let window = json!({"axis": "time", "size": 3, "mode": "bins"});
    assert_eq!(roles(json!({"sum": [], "window": window})), (vec![2], vec![2, 3, 2], 2));
    assert_eq!(roles(json!({"sum": ["time", "x"], "window": window})), (vec![2, 0], vec![3, 2], 2));
    assert_eq!(roles(json!({"sum": [0, 1, 2], "window": window})), (vec![0, 1, 2], vec![2], 2));
    let pad = |dataset: &str, pad: &str| {
        let window = json!({"axis": 0, "size": 2, "mode": "rolling", "pad": pad, "min_count": 2});
        match &resolved(dataset, &json!({"sum": [], "window": window})).operation.unwrap().roles[0] {
            Role::Rolling(rolling) => rolling.padding,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(pad("fill", "fill"), Padding { value: Some(Scalar::Whole(-999)), min_count: 2 });
    assert_eq!(pad("plain", "0").value, Some(Scalar::Whole(0)));
    assert_eq!(pad("plain", "none").value, None);
    assert!(pad("cube", "nan").value.unwrap().to_f64().is_nan());
}

#[test]
fn bins_are_no_larger_than_the_limit() {
    let mut layout = Layout::new();
    let id = layout.dataset("a", ElementType::U8, [65], [65]).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    writer.array(id, Tensor::zeros(ElementType::U8, [65].into()).unwrap().view()).unwrap();
    let bytes = writer.finish().unwrap().output;
    let source = std::sync::Arc::new(tercet_core::source::Memory::new("test", bytes));
    let limits = tercet_core::Limits::default().with_table_bytes(64 * 4);
    let file = File::from_source(source, ReadOptions::new().with_limits(limits)).unwrap();
    let query = |stop: u64| {
        let text = json!({"dataset": "a", "sum": [], "selection": [{"stop": stop}], "window": {"axis": 0, "size": 2, "mode": "bins"}});
        Query::parse(&text.to_string(), Syntax::Json).unwrap().resolve(&file.dataset("a").unwrap(), true)
    };
    assert!(query(64).is_ok());
    assert_eq!(query_error(query(65).unwrap_err()).key(), "window.axis");
}
