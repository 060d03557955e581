use serde_json::{Value, json};

use crate::query::document::{Device, Document, Gpus, Specified, Step, plain_kind};
use crate::query::error::{QueryError, QueryErrorKind};
use crate::query::operation::{Kind, Scalar};
use crate::query::tree::Syntax;
use crate::query::{Query, Target};

fn parse(document: &Value) -> Result<Query, QueryError> {
    Query::parse(&document.to_string(), Syntax::Json)
}

/// A query of dataset `q` with these members.
fn query(members: &Value) -> Result<Query, QueryError> {
    let mut document = json!({"dataset": "q"});
    document.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    parse(&document)
}

fn specified(members: &Value) -> Specified {
    query(members).unwrap_or_else(|error| panic!("{members}: {error}")).flat.operation.unwrap().value
}

/// The path of a rejected member, and the reason.
fn refused(members: &Value) -> (String, QueryErrorKind) {
    let error = query(members).expect_err(&members.to_string());
    (error.key().to_owned(), error.reason().clone())
}

#[test]
fn every_operation_is_a_key() {
    assert_eq!(Document::OPERATIONS, Step::OPERATIONS);
    assert_eq!(Document::OPERATIONS.len(), 26);
    for &key in Document::OPERATIONS {
        let value = match key {
            "quantile" => json!({"q": 0.5}),
            "histogram" => json!({"bins": 3}),
            "transform" => json!({"method": "l1"}),
            "covariance" | "correlation" => json!(0),
            _ => json!([]),
        };
        let found = specified(&json!({key: value}));
        assert_eq!((found.key, found.kind.key()), (key, key));
        let with_parameters = ["null_count", "quantile", "histogram", "transform"].contains(&key);
        assert_eq!(plain_kind(key).is_none(), with_parameters, "{key}");
        assert_eq!(refused(&json!({key: null})), (key.to_owned(), QueryErrorKind::Null));
    }
}

#[test]
fn whole_numbers_beyond_64_bits_are_compared_as_they_are() {
    // Their nearest floats are the minimum of i64 and 2^64.
    for (text, number) in
        [("-9223372036854775809", i128::from(i64::MIN) - 1), ("18446744073709551617", (1 << 64) + 1)]
    {
        let text = format!(r#"{{"dataset": "q", "count": [], "filter": {{"eq": {text}}}}}"#);
        let filter = Query::parse(&text, Syntax::Json).unwrap().flat.filter.unwrap().value;
        assert_eq!(filter.eq.map(|eq| eq.0), Some(Scalar::Whole(number)));
    }
    // In other keys they are ordinary numbers.
    let bins = r#"{"dataset": "q", "histogram": {"bins": 2, "min": 0, "max": 99999999999999999999}}"#;
    assert!(Query::parse(bins, Syntax::Json).is_ok());
    let start = r#"{"dataset": "q", "selection": [{"start": 18446744073709551616}]}"#;
    assert_eq!(Query::parse(start, Syntax::Json).unwrap_err().key(), "selection[0].start");
}

#[test]
fn axes_have_many_forms() {
    let axes = |value: Value| {
        let axes = specified(&json!({"mean": value})).axes;
        axes.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(axes(json!([])), [""; 0]);
    assert_eq!(axes(json!(0)), ["0"]);
    assert_eq!(axes(json!("time")), ["time"]);
    assert_eq!(axes(json!("01")), ["01"]);
    assert_eq!(axes(json!([0, "lat", "_x-9"])), ["0", "lat", "_x-9"]);
    assert_eq!(axes(json!({"axis": 1})), ["1"]);
    assert_eq!(axes(json!({"axes": ["a", 2]})), ["a", "2"]);
    assert_eq!(axes(json!({"axes": []})), [""; 0]);
    assert_eq!(axes(json!("a".repeat(32))), ["a".repeat(32)]);
    assert_eq!(axes(json!([0, 1, 2, 3, 4, 5, 6, 7])).len(), 8);
    assert_eq!(specified(&json!({"quantile": {"q": 1, "axis": {"axes": ["x"]}}})).axes.len(), 1);
}

#[test]
fn invalid_axes_are_rejected_at_their_position() {
    for (value, key) in [
        (json!(null), "mean"),
        (json!({}), "mean"),
        (json!(true), "mean"),
        (json!(-1), "mean"),
        (json!(1.0), "mean"),
        (json!(""), "mean"),
        (json!("a".repeat(1025)), "mean"),
        (json!({"axis": 0, "axes": [1]}), "mean"),
        (json!({"axis": null}), "mean.axis"),
        (json!({"axis": {"axis": 0}}), "mean.axis"),
        (json!({"axis": 0, "ax": 1}), "mean.ax"),
        (json!([0, [1]]), "mean[1]"),
        (json!([0, null]), "mean[1]"),
        (json!([0, 2.5]), "mean[1]"),
        (json!({"axes": ["a", ""]}), "mean.axes[1]"),
        (json!([0, 1, 2, 3, 4, 5, 6, 7, 8]), "mean"),
    ] {
        assert_eq!(refused(&json!({"mean": value})).0, key, "{value}");
    }
}

/// Imported files have such names.
#[test]
fn every_text_is_a_name_of_an_axis() {
    for name in ["+1", " 0", "0x", "é", "b c", "x.y", &"a".repeat(1024)] {
        for axes in [json!(name), json!([0, name]), json!({ "axis": name })] {
            assert!(query(&json!({ "mean": axes })).is_ok(), "{name}");
        }
    }
}

#[test]
fn null_is_rejected_except_in_three_keys() {
    for key in [
        "dataset",
        "layout_version",
        "selection",
        "spill",
        "write",
        "execution",
        "filter",
        "label_filter",
        "group_by",
        "window",
        "align",
        "pipeline",
    ] {
        assert_eq!(refused(&json!({key: null})), (key.to_owned(), QueryErrorKind::Null));
    }
    for (members, key) in [
        (json!({"selection": [null]}), "selection[0]"),
        (json!({"quantile": {"q": null}}), "quantile.q"),
        (json!({"quantile": {"q": 0.5, "axis": null}}), "quantile.axis"),
        (json!({"histogram": {"bins": null}}), "histogram.bins"),
        (json!({"histogram": {"bins": 2, "axes": null}}), "histogram.axes"),
        (json!({"transform": {"method": null}}), "transform.method"),
        (json!({"null_count": {"axis": null}}), "null_count.axis"),
        (json!({"transform": {"method": "l1"}, "write": {"target": null}}), "write.target"),
        (json!({"transform": {"method": "l1"}, "write": {"path": null}}), "write.path"),
        (json!({"transform": {"method": "l1"}, "write": {"timestamp": null}}), "write.timestamp"),
        (json!({"execution": {"memory_budget_bytes": null}}), "execution.memory_budget_bytes"),
        (json!({"execution": {"memory_budget_percent": null}}), "execution.memory_budget_percent"),
        (json!({"execution": {"fold_parallel": null}}), "execution.fold_parallel"),
        (json!({"execution": {"device": null}}), "execution.device"),
        (json!({"filter": {"gt": null}}), "filter.gt"),
        (json!({"filter": {"is_null": null}}), "filter.is_null"),
        (json!({"label_filter": {"axis": null, "eq": "x"}}), "label_filter.axis"),
        (json!({"label_filter": {"axis": 0, "eq": null}}), "label_filter.eq"),
        (json!({"sum": [], "group_by": [null]}), "group_by[0]"),
        (json!({"sum": [], "group_by": {"by": null, "axes": [0]}}), "group_by.by"),
        (json!({"sum": [], "window": {"axis": 0, "size": 2, "mode": null}}), "window.mode"),
        (json!({"sum": [], "window": {"axis": 0, "size": 2, "mode": "bins", "pad": null}}), "window.pad"),
        (json!({"align": {"with": null, "axes": [0]}}), "align.with"),
        (json!({"pipeline": [{"sum": null}]}), "pipeline[0].sum"),
        (json!({"pipeline": [{"select": null}]}), "pipeline[0].select"),
    ] {
        assert_eq!(refused(&members), (key.to_owned(), QueryErrorKind::Null));
    }
    for members in [
        json!({"selection": [{"start": null, "stop": null, "step": null, "start_label": null, "stop_label": null}]}),
        json!({"selection": [{"start": 1, "start_label": null}]}),
        json!({"null_count": {"fill": null}}),
        json!({"histogram": {"bins": 2, "min": null, "max": null}}),
    ] {
        assert!(query(&members).is_ok(), "{members}");
    }
}

#[test]
fn unknown_keys_are_refused_everywhere() {
    for (members, key, nearest) in [
        (json!({"maen": []}), "maen", Some("mean")),
        (json!({"fancy": 1}), "fancy", None),
        (json!({"selection": [{}, {"strat": 1}]}), "selection[1].strat", Some("start")),
        (json!({"quantile": {"q": 0.5, "axs": 0}}), "quantile.axs", Some("axes")),
        (json!({"histogram": {"bins": 2, "mim": 0}}), "histogram.mim", Some("min")),
        (json!({"transform": {"method": "l1", "x": 0}}), "transform.x", None),
        (json!({"null_count": {"fil": 0}}), "null_count.fil", Some("fill")),
        (json!({"mean": {"axiss": 0}}), "mean.axiss", Some("axis")),
        (json!({"execution": {"threads": 0}}), "execution.threads", None),
        (json!({"transform": {"method": "l1"}, "write": {"paht": "x"}}), "write.paht", Some("path")),
        (json!({"filter": {"gte": 1}}), "filter.gte", Some("ge")),
        (json!({"label_filter": {"axis": 0, "eq": "x", "ne": "y"}}), "label_filter.ne", None),
        (json!({"sum": [], "group_by": {"by": "labels", "axis": [0]}}), "group_by.axis", Some("axes")),
        (
            json!({"sum": [], "window": {"axis": 0, "size": 1, "mode": "bins", "sizes": 1}}),
            "window.sizes",
            Some("size"),
        ),
        (json!({"align": {"with": "x", "axes": [0], "y": 1}}), "align.y", None),
        (json!({"pipeline": [{"selection": []}]}), "pipeline[0].selection", None),
        (json!({"pipeline": [{"label_filter": {}}]}), "pipeline[0].label_filter", None),
        (json!({"pipeline": [{"execution": {}}]}), "pipeline[0].execution", None),
    ] {
        let (found, reason) = refused(&members);
        assert_eq!(found, key, "{members}");
        let last = key.rsplit('.').next().unwrap();
        match reason {
            QueryErrorKind::UnknownKey { key, nearest: near } if nearest.is_some() => {
                assert_eq!((key.as_str(), near.as_deref()), (last, nearest), "{members}");
            }
            QueryErrorKind::UnknownKey { key, .. } => assert_eq!(key, last),
            other => panic!("{members}: {other:?}"),
        }
    }
}

#[test]
fn counts_must_be_integers() {
    for (members, key) in [
        (json!({"layout_version": 1.0}), "layout_version"),
        (json!({"layout_version": -1}), "layout_version"),
        (json!({"layout_version": "1"}), "layout_version"),
        (json!({"layout_version": 4_294_967_296_u64}), "layout_version"),
        (json!({"selection": [{"start": 1.0}]}), "selection[0].start"),
        (json!({"selection": [{"stop": -1.5}]}), "selection[0].stop"),
        (json!({"selection": [{"step": "1"}]}), "selection[0].step"),
        (json!({"selection": [{"start_label": 5}]}), "selection[0].start_label"),
        (json!({"selection": [[0, 1]]}), "selection[0]"),
        (json!({"histogram": {"bins": 4.0}}), "histogram.bins"),
        (json!({"histogram": {"bins": -4}}), "histogram.bins"),
        (json!({"histogram": {"bins": 4, "min": "0", "max": 1}}), "histogram.min"),
        (json!({"quantile": {"q": "0.5"}}), "quantile.q"),
        (json!({"quantile": 0.5}), "quantile"),
        (json!({"quantile": [0.5]}), "quantile"),
        (json!({"histogram": 5}), "histogram"),
        (json!({"transform": "l1"}), "transform"),
        (json!({"transform": {"method": 1}}), "transform.method"),
        (json!({"null_count": {"fill": true}}), "null_count.fill"),
        (json!({"null_count": {"fill": "x"}}), "null_count.fill"),
        (json!({"null_count": {"fill": ""}}), "null_count.fill"),
        (json!({"null_count": {"fill": [1]}}), "null_count.fill"),
        (json!({"null_count": 1.5}), "null_count"),
        (json!({"null_count": [1.5]}), "null_count[0]"),
        (json!({"execution": []}), "execution"),
        (json!({"execution": {"memory_budget_bytes": -1}}), "execution.memory_budget_bytes"),
        (json!({"execution": {"memory_budget_bytes": 1.5}}), "execution.memory_budget_bytes"),
        (json!({"execution": {"memory_budget_percent": 100.001}}), "execution.memory_budget_percent"),
        (json!({"execution": {"memory_budget_percent": -1}}), "execution.memory_budget_percent"),
        (json!({"execution": {"memory_budget_percent": "4"}}), "execution.memory_budget_percent"),
        (json!({"execution": {"memory_budget_percent_bps": 10_001}}), "execution.memory_budget_percent_bps"),
        (json!({"execution": {"memory_budget_percent_bps": 1.0}}), "execution.memory_budget_percent_bps"),
        (json!({"execution": {"memory_budget_percent_bps": 1, "memory_budget_percent": 1}}), "execution"),
        (json!({"execution": {"fold_parallel": 1}}), "execution.fold_parallel"),
        (json!({"spill": 5}), "spill"),
        (json!({"filter": [{"gt": 1}]}), "filter"),
        (json!({"filter": {"gt": "1"}}), "filter.gt"),
        (json!({"filter": {"gt": true}}), "filter.gt"),
        (json!({"filter": {"is_null": false}}), "filter.is_null"),
        (json!({"filter": {"is_not_null": 1}}), "filter.is_not_null"),
        (json!({"sum": [], "group_by": "x"}), "group_by"),
        (json!({"sum": [], "group_by": {"by": "labels", "axes": "x"}}), "group_by.axes"),
        (json!({"sum": [], "window": {"axis": [0], "size": 2, "mode": "bins"}}), "window.axis"),
        (json!({"sum": [], "window": {"axis": 0, "size": 2.0, "mode": "bins"}}), "window.size"),
        (json!({"sum": [], "window": {"axis": 0, "size": 2, "mode": "bins", "pad": 0}}), "window.pad"),
        (json!({"align": {"with": "x", "axes": 0}}), "align.axes"),
        (json!({"pipeline": {"sum": 0}}), "pipeline"),
        (json!({"transform": {"method": "l1"}, "write": 5}), "write"),
    ] {
        let (found, reason) = refused(&members);
        assert_eq!(found, key, "{members}: {reason}");
    }
}

#[test]
fn keywords_are_chosen_from_a_list() {
    for (members, key, hint) in [
        (json!({"transform": {"method": "softmix"}}), "transform.method", "did you mean `softmax`?"),
        (json!({"transform": {"method": "l1"}, "write": "side"}), "write", "did you mean `sidecar`?"),
        (
            json!({"transform": {"method": "l1"}, "write": {"target": "rum"}}),
            "write.target",
            "did you mean `ram`?",
        ),
        (
            json!({"sum": [], "group_by": {"by": "label", "axes": [0]}}),
            "group_by.by",
            "did you mean `labels`?",
        ),
        (
            json!({"sum": [], "window": {"axis": 0, "size": 2, "mode": "roll"}}),
            "window.mode",
            "did you mean `rolling`?",
        ),
        (
            json!({"sum": [], "window": {"axis": 0, "size": 2, "mode": "bins", "pad": "zero"}}),
            "window.pad",
            "available: none, 0, nan, fill",
        ),
    ] {
        use tercet_core::Diagnostic as _;
        let error = query(&members).unwrap_err();
        assert_eq!((error.key(), error.hint().unwrap().to_string().as_str()), (key, hint), "{error}");
    }
    for (members, key) in [
        (json!({"quantile": {}}), "quantile"),
        (json!({"histogram": {}}), "histogram"),
        (json!({"transform": {}}), "transform"),
        (json!({"label_filter": {"axis": 0}}), "label_filter"),
        (json!({"sum": [], "window": {"axis": 0, "size": 5}}), "window"),
        (json!({"sum": [], "group_by": {"axes": [0]}}), "group_by"),
        (json!({"sum": [], "group_by": {"by": "labels"}}), "group_by"),
        (json!({"align": {"with": "c"}}), "align"),
    ] {
        let (found, reason) = refused(&members);
        assert!(found == key && matches!(reason, QueryErrorKind::MissingKey { .. }), "{members}: {reason}");
    }
}

#[test]
fn parameters_are_exact() {
    let fill = |value: Value| match specified(&json!({"null_count": {"fill": value}})).kind {
        Kind::NullCount { fill } => fill.unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(fill(json!(u64::MAX)), Scalar::Whole(u64::MAX.into()));
    assert_eq!(fill(json!(i64::MIN)), Scalar::Whole(i64::MIN.into()));
    assert_eq!(fill(json!(" 9007199254740993 ")), Scalar::Whole(9_007_199_254_740_993));
    assert_eq!(fill(json!(-0.5)), Scalar::Float(-0.5));
    assert_eq!(fill(json!("1e20")), Scalar::Float(1e20));
    assert_eq!(fill(json!("-inf")), Scalar::Float(f64::NEG_INFINITY));
    assert!(matches!(fill(json!("NaN")), Scalar::Float(nan) if nan.is_nan()));
    let kind = specified(&json!({"histogram": {"bins": 4096, "min": -2, "max": 2.5}})).kind;
    assert_eq!(kind, Kind::Histogram { bins: 4096, range: Some((-2.0, 2.5)) });
    let filter =
        query(&json!({"filter": {"ge": i64::MIN, "lt": u64::MAX}})).unwrap().flat.filter.unwrap().value;
    assert_eq!(filter.lt.unwrap().0, Scalar::Whole(u64::MAX.into()));
    assert_eq!(filter.ge.unwrap().0, Scalar::Whole(i64::MIN.into()));
}

#[test]
fn execution_options() {
    let options = |value: Value| *query(&json!({"execution": value})).unwrap().execution();
    assert_eq!(options(json!({})), *query(&json!({})).unwrap().execution());
    assert_eq!(options(json!({"memory_budget_bytes": 0})).memory_budget_bytes, Some(1));
    assert_eq!(options(json!({"memory_budget_bytes": u64::MAX})).memory_budget_bytes, Some(u64::MAX));
    for (percent, bps) in [(json!(0), 0), (json!(100), 10_000), (json!(33.337), 3334), (json!(0.004), 0)] {
        assert_eq!(options(json!({"memory_budget_percent": percent})).percent_bps, Some(bps));
    }
    assert_eq!(options(json!({"memory_budget_percent_bps": 10_000})).percent_bps, Some(10_000));
    assert_eq!(options(json!({"fold_parallel": false})).fold_parallel, Some(false));
    assert_eq!(options(json!({})).device, Device::Cpu);
    for (word, device) in [
        ("cpu", Device::Cpu),
        ("auto", Device::Auto),
        ("metal", Device::Metal),
        ("cuda", Device::Cuda(Gpus::Any)),
        ("cuda:3", Device::Cuda(Gpus::Number(3))),
        ("cuda:multi", Device::Cuda(Gpus::Multi)),
        ("rocm", Device::Rocm(Gpus::Any)),
        ("rocm:0", Device::Rocm(Gpus::Number(0))),
    ] {
        assert_eq!(options(json!({"device": word})).device, device);
        assert_eq!(device.to_string(), word);
    }
    for word in ["gpu", "CPU", "", "cuda:", "cuda:x", "cuda:-1", "metal:0", "rocmfoo", "cpu:0", "cuda:+1"] {
        assert_eq!(refused(&json!({"execution": {"device": word}})).0, "execution.device", "{word}");
    }
}

#[test]
fn targets_of_a_transform() {
    let write = |value: Value| {
        query(&json!({"transform": {"method": "center"}, "write": value})).unwrap().flat.write.unwrap().value
    };
    assert_eq!(write(json!("ram")).target, Target::Ram);
    assert_eq!(write(json!({})).target, Target::Switch);
    let sidecar = write(json!({"target": "sidecar", "path": "y.tet", "timestamp": true}));
    assert_eq!((sidecar.path.as_deref(), sidecar.timestamp), (Some("y.tet"), Some(true)));
}
