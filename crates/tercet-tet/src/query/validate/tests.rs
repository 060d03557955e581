use serde_json::{Value, json};
use tercet_core::Diagnostic as _;

use crate::query::Query;
use crate::query::error::QueryError;
use crate::query::tree::Syntax;

fn query(members: &Value) -> Result<Query, QueryError> {
    let mut document = json!({"dataset": "q"});
    document.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    Query::parse(&document.to_string(), Syntax::Json)
}

/// Checks that each query is rejected at this key, with a message that contains this string.
fn refused(cases: &[(Value, &str, &str)]) {
    for (members, key, expected) in cases {
        let error = query(members).expect_err(&members.to_string());
        assert_eq!(error.key(), *key, "{members}: {error}");
        assert!(error.to_string().contains(expected), "{members}: {error}");
    }
}

fn accepted(cases: &[Value]) {
    for members in cases {
        query(members).unwrap_or_else(|error| panic!("{members}: {error}"));
    }
}

#[test]
fn the_dataset_has_a_name() {
    let long = "x".repeat(1025);
    refused(&[
        (json!({"dataset": ""}), "dataset", "is blank"),
        (json!({"dataset": " \t"}), "dataset", "is blank"),
        (json!({"dataset": long}), "dataset", "has 1025 bytes, at most 1024"),
        (json!({"dataset": "é".repeat(513)}), "dataset", "has 1026 bytes"),
        (json!({"dataset": 5}), "dataset", "must be a string"),
    ]);
    accepted(&[json!({"dataset": "x".repeat(1024)}), json!({"dataset": " q "})]);
    assert_eq!(query(&json!({"dataset": " q "})).unwrap().dataset(), " q ", "names are not trimmed");
    let error = Query::parse("{\"mean\": []}", Syntax::Json).unwrap_err();
    assert_eq!(error.to_string(), "query (line 1, column 1): needs the key `dataset`");
}

#[test]
fn slices_select_something() {
    let max = u64::MAX;
    refused(&[
        (json!({"selection": [{"step": 0}]}), "selection[0].step", "is 0, but must be at least 1"),
        (
            json!({"selection": [{}, {"start": 4, "stop": 4}]}),
            "selection[1].stop",
            "starts at 4 and ends before 4",
        ),
        (json!({"selection": [{"stop": 0}]}), "selection[0].stop", "selects nothing"),
        (json!({"selection": [{"start": 1, "start_label": "a"}]}), "selection[0].start_label", "not both"),
        (json!({"selection": [{"stop": 1, "stop_label": "a"}]}), "selection[0].stop_label", "not both"),
        (json!({"selection": [{"start": 1, "step": max}]}), "selection[0].step", "overflows"),
        (json!({"selection": [{"position": 1, "step": 2}]}), "selection[0]", "both `position` and a range"),
        (
            json!({"selection": {"a": {"position": 1, "stop_label": "b"}}}),
            "selection.a",
            "both `position` and",
        ),
        (json!({"selection": [{"position": 1, "nearest": 2}]}), "selection[0]", "both labels and positions"),
        (json!({"selection": [{"position": 1, "from": 2}]}), "selection[0]", "both labels and positions"),
        (json!({"selection": [{"position": 1.5}]}), "selection[0].position", "must be an integer"),
        (json!({"selection": vec![json!({}); 9]}), "selection", "has 9 slices, at most 8"),
        (json!({"pipeline": [{"select": [{"step": 0}]}]}), "pipeline[0].select[0].step", "is 0"),
    ]);
    accepted(&[
        json!({"selection": vec![json!({}); 8]}),
        json!({"selection": []}),
        json!({"selection": [{"start": 3, "stop": 4, "step": 7}]}),
        json!({"selection": [{"position": -1, "start": null, "from": null}, {"from": 1, "to": null}]}),
        json!({"selection": [{"start_label": "b", "stop_label": "a"}, {"start": 1, "stop_label": "c"}]}),
        json!({"selection": [{"step": max}]}),
    ]);
}

#[test]
fn one_operation_at_most() {
    refused(&[
        (json!({"mean": [], "sum": []}), "sum", "there is an operation already, `mean`"),
        (json!({"sum": [], "mean": []}), "mean", "already, `sum`"),
        (json!({"pipeline": [{"sum": 0, "mean": 0}]}), "pipeline[0].mean", "already, `sum`"),
    ]);
    for (key, hint) in [("operation", "a key of its own"), ("output", "use `spill`")] {
        let error = query(&json!({key: {"mean": []}})).unwrap_err();
        assert_eq!(error.key(), key);
        assert!(error.hint().unwrap().to_string().contains(hint), "{error:?}");
    }
}

#[test]
fn parameters_have_limits() {
    refused(&[
        (json!({"quantile": {"q": 1.5}}), "quantile.q", "is 1.5, but must be from 0 to 1"),
        (json!({"quantile": {"q": -0.1}}), "quantile.q", "from 0 to 1"),
        (json!({"quantile": {"q": 0.5, "axis": 0, "axes": [0]}}), "quantile", "both `axis` and `axes`"),
        (
            json!({"transform": {"method": "l1", "axis": 0, "axes": [0]}}),
            "transform",
            "both `axis` and `axes`",
        ),
        (json!({"null_count": {"axis": 0, "axes": [0]}}), "null_count", "both `axis` and `axes`"),
        (json!({"histogram": {"bins": 0}}), "histogram.bins", "from 1 to 4096"),
        (json!({"histogram": {"bins": 4097}}), "histogram.bins", "from 1 to 4096"),
        (json!({"histogram": {"bins": 3, "min": 1}}), "histogram.min", "needs `max`"),
        (json!({"histogram": {"bins": 3, "min": null, "max": 1}}), "histogram.max", "needs `min`"),
        (json!({"histogram": {"bins": 3, "min": 2, "max": 1}}), "histogram.max", "greater than `min`"),
        (json!({"histogram": {"bins": 3, "min": 1, "max": 1}}), "histogram.max", "greater than `min`"),
        (json!({"histogram": {"bins": 3, "min": -1e308, "max": 1e308}}), "histogram.max", "too far"),
        (json!({"covariance": []}), "covariance", "has 0 axes, but must have one"),
        (json!({"correlation": [0, 1]}), "correlation", "has 2 axes"),
    ]);
    let toml = "dataset = 'q'\nhistogram = {bins = 3, min = -inf, max = 1}\n";
    assert_eq!(Query::parse(toml, Syntax::Toml).unwrap_err().key(), "histogram.min");
    let toml = "dataset = 'q'\nquantile = {q = nan}\n";
    assert_eq!(Query::parse(toml, Syntax::Toml).unwrap_err().key(), "quantile.q");
    accepted(&[
        json!({"quantile": {"q": 0}}),
        json!({"quantile": {"q": 1.0}}),
        json!({"covariance": {"axis": 0}}),
    ]);
}

#[test]
fn invalid_targets_are_rejected() {
    let center = json!({"method": "center"});
    refused(&[
        (json!({"spill": ""}), "spill", "is blank"),
        (json!({"spill": "  "}), "spill", "is blank"),
        (json!({"spill": "a\0b"}), "spill", "zero character"),
        (json!({"spill": "x", "sum": []}), "spill", "without an operation, but there is `sum`"),
        (json!({"spill": "x", "transform": center}), "spill", "there is `transform`"),
        (json!({"write": "ram"}), "write", "only for the result of a `transform`"),
        (json!({"write": "ram", "mean": []}), "write", "only for the result of a `transform`"),
        (json!({"transform": center, "write": {"path": "x"}}), "write.path", "`spill` and `sidecar`"),
        (
            json!({"transform": center, "write": {"target": "ram", "path": "x"}}),
            "write.path",
            "`spill` and `sidecar`",
        ),
        (json!({"transform": center, "write": {"target": "spill", "path": ""}}), "write.path", "is blank"),
        (
            json!({"transform": center, "write": {"target": "spill", "timestamp": true}}),
            "write.timestamp",
            "`sidecar`",
        ),
        (json!({"pipeline": [{"sum": 0}, {"spill": "x"}]}), "pipeline[1].spill", "there is `sum`"),
        (json!({"pipeline": [{"sum": 0}, {"write": "ram"}]}), "pipeline[1].write", "`transform`"),
    ]);
    accepted(&[
        json!({"spill": "x"}),
        json!({"transform": center}),
        json!({"transform": center, "write": {"target": "spill"}}),
        json!({"transform": center, "write": {"target": "sidecar", "timestamp": false}}),
        json!({"pipeline": [{"transform": center}, {"write": "ram"}]}),
        json!({"pipeline": [{"select": [{}]}, {"spill": "x"}]}),
    ]);
}

#[test]
fn filters_leave_something() {
    refused(&[
        (json!({"filter": {}}), "filter", "is empty"),
        (json!({"filter": {"gt": 1, "ge": 1}}), "filter.ge", "second lower bound"),
        (json!({"filter": {"lt": 1, "le": 2}}), "filter.le", "second upper bound"),
        (json!({"filter": {"gt": 1, "lt": 1}}), "filter.lt", "exclude every number"),
        (json!({"filter": {"ge": 1, "lt": 1}}), "filter.lt", "exclude every number"),
        (json!({"filter": {"gt": 2, "le": 1}}), "filter.le", "exclude every number"),
        (json!({"filter": {"gt": 1.5, "lt": 1}}), "filter.lt", "exclude every number"),
        (json!({"filter": {"ge": 2, "lt": 1.5}}), "filter.lt", "exclude every number"),
        (json!({"filter": {"ge": u64::MAX, "lt": u64::MAX}}), "filter.lt", "exclude every number"),
        (json!({"filter": {"is_null": true, "is_not_null": true}}), "filter.is_not_null", "`is_null`"),
        (json!({"filter": {"is_null": true, "gt": 1}}), "filter.is_null", "`gt`"),
        (json!({"filter": {"is_null": true, "ne": 1}}), "filter.is_null", "`ne`"),
        (json!({"filter": {"gt": 1}, "covariance": 0}), "filter", "`covariance`"),
        (json!({"label_filter": {"axis": 0, "eq": "x"}, "correlation": 0}), "label_filter", "`correlation`"),
        (json!({"pipeline": [{"filter": {}}]}), "pipeline[0].filter", "is empty"),
    ]);
    // Adjacent integers that have the same f64.
    let (low, high) = (9_007_199_254_740_992_u64, 9_007_199_254_740_993_u64);
    accepted(&[
        json!({"filter": {"ge": 1, "le": 1}}),
        json!({"filter": {"gt": low, "lt": high}}),
        json!({"filter": {"gt": 1, "lt": 1.5}}),
        json!({"filter": {"gt": 1.5, "lt": 2}}),
        json!({"filter": {"ge": -1e300, "le": 5}}),
        json!({"filter": {"ge": 5, "le": 1e300}}),
        json!({"filter": {"eq": 1, "ne": 2, "gt": 0, "le": 9, "is_not_null": true}}),
        json!({"filter": {"is_null": true}}),
    ]);
    let toml = "dataset = 'q'\nfilter = {gt = inf}\n";
    assert_eq!(Query::parse(toml, Syntax::Toml).unwrap_err().key(), "filter.gt");
}

#[test]
fn groups_need_an_operation() {
    refused(&[
        (json!({"group_by": [0]}), "group_by", "needs an operation"),
        (json!({"sum": [], "group_by": []}), "group_by", "lists 0 axes, but must list 1 to 8"),
        (json!({"sum": [], "group_by": {"by": "labels", "axes": []}}), "group_by.axes", "lists 0 axes"),
        (json!({"sum": [], "group_by": [0, 1, 2, 3, 4, 5, 6, 7, 8]}), "group_by", "lists 9 axes"),
        (json!({"transform": {"method": "l1"}, "group_by": [0]}), "group_by", "`transform`"),
        (json!({"covariance": 0, "group_by": [0]}), "group_by", "`covariance`"),
        (
            json!({"sum": [], "group_by": [0], "window": {"axis": 0, "size": 2, "mode": "bins"}}),
            "window",
            "`group_by`",
        ),
    ]);
    accepted(&[
        json!({"median": [], "group_by": ["x"]}),
        json!({"pipeline": [{"sum": [], "group_by": [1]}]}),
    ]);
}

#[test]
fn windows_are_consistent() {
    let window = |members: Value| {
        let mut window = json!({"axis": 0, "size": 5, "mode": "rolling"});
        window.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        json!({"sum": [], "window": window})
    };
    refused(&[
        (window(json!({"size": 0})), "window.size", "from 1 to 1048576"),
        (window(json!({"size": 1_048_577})), "window.size", "from 1 to 1048576"),
        (window(json!({"step": 0})), "window.step", "at least 1"),
        (window(json!({"mode": "bins", "step": 5})), "window.step", "mode `rolling`"),
        (window(json!({"min_count": 0})), "window.min_count", "from 1 to the size, 5"),
        (window(json!({"min_count": 6})), "window.min_count", "from 1 to the size, 5"),
        (window(json!({"align": "end"})), "window.align", "requires a `pad`"),
        (window(json!({"align": "end", "pad": "none"})), "window.align", "requires a `pad`"),
        (json!({"window": {"axis": 0, "size": 2, "mode": "bins"}}), "window", "needs an operation"),
        (
            json!({"transform": {"method": "l1"}, "window": {"axis": 0, "size": 2, "mode": "bins"}}),
            "window",
            "`transform`",
        ),
    ]);
    accepted(&[
        window(json!({"size": 1_048_576, "mode": "bins"})),
        window(json!({"align": "end", "pad": "0", "step": 3, "min_count": 5})),
        window(json!({"mode": "bins", "align": "end", "pad": "fill"})),
        window(json!({"pad": "nan", "align": "start"})),
    ]);
}

#[test]
fn alignment_stands_alone() {
    let align = json!({"with": "b", "axes": ["t"]});
    refused(&[
        (json!({"align": {"with": " ", "axes": [0]}}), "align.with", "is blank"),
        (json!({"align": {"with": "q", "axes": [0]}}), "align.with", "another dataset"),
        (json!({"align": {"with": "b", "axes": []}}), "align.axes", "lists 0 axes"),
        (json!({"align": align, "mean": []}), "mean", "together with `align`"),
        (json!({"align": align, "selection": []}), "selection", "together with `align`"),
        (json!({"align": align, "filter": {"gt": 1}}), "filter", "together with `align`"),
        (json!({"align": align, "group_by": [0]}), "group_by", "together with `align`"),
        (json!({"align": align, "spill": "x"}), "spill", "together with `align`"),
        (json!({"align": align, "write": "ram"}), "write", "together with `align`"),
        (json!({"align": align, "pipeline": [{"sum": []}]}), "align", "together with `pipeline`"),
    ]);
    accepted(&[json!({"align": align, "execution": {}, "layout_version": 3})]);
}

#[test]
fn steps_have_an_order() {
    let filter = json!({"filter": {"gt": 0}});
    let select = json!({"select": [{}]});
    let sum = json!({"sum": 0});
    let order = "out of order";
    refused(&[
        (json!({"pipeline": []}), "pipeline", "has 0 steps"),
        (json!({"pipeline": vec![&sum; 9]}), "pipeline", "has 9 steps, but must have 1 to 8"),
        (json!({"pipeline": [{}]}), "pipeline[0]", "has no key"),
        (json!({"pipeline": [filter, select]}), "pipeline[1]", order),
        (json!({"pipeline": [sum, filter]}), "pipeline[1]", order),
        (json!({"pipeline": [sum, {"mean": 0}]}), "pipeline[1]", order),
        (json!({"pipeline": [select, select]}), "pipeline[1]", order),
        (json!({"pipeline": [filter, filter]}), "pipeline[1]", order),
        (json!({"pipeline": [{"spill": "x"}, sum]}), "pipeline[1]", order),
        (json!({"pipeline": [{"sum": 0, "filter": {"gt": 0}}]}), "pipeline[0].sum", "a step of its own"),
        (json!({"pipeline": [{"spill": "x", "write": "ram"}]}), "pipeline[0].write", "a step of its own"),
        (json!({"pipeline": [{"group_by": [1]}, sum]}), "pipeline[0].group_by", "in the same step"),
        (
            json!({"pipeline": [sum, {"window": {"axis": 0, "size": 2, "mode": "bins"}}]}),
            "pipeline[1].window",
            "in the same step",
        ),
    ]);
    for (key, value) in [
        ("selection", json!([])),
        ("filter", json!({"gt": 1})),
        ("label_filter", json!({"axis": 0, "eq": "x"})),
        ("mean", json!([])),
        ("group_by", json!([1])),
        ("window", json!({"axis": 0, "size": 2, "mode": "bins"})),
        ("spill", json!("x")),
        ("write", json!("ram")),
    ] {
        refused(&[(json!({"pipeline": [sum], key: value}), key, "together with `pipeline`")]);
    }
    let flat = |members: Value| query(&members).unwrap().flat;
    let lowered = flat(json!({"pipeline": [select, filter, sum], "execution": {"fold_parallel": false}}));
    let written = flat(json!({"selection": [{}], "filter": {"gt": 0}, "sum": 0}));
    assert_eq!(lowered.selection.unwrap().value, written.selection.unwrap().value);
    assert_eq!(lowered.filter.unwrap().value, written.filter.unwrap().value);
    assert_eq!(lowered.operation.unwrap().value, written.operation.unwrap().value);
}
