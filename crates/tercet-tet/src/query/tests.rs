use proptest::prelude::*;
use serde_json::{Value, json};
use tercet_core::{Class, Diagnostic as _};

use super::Query;
use super::error::QueryErrorKind;
use super::operation::Kind;
use super::tree::{Syntax, TEXT_BYTES};
use crate::file::File;

#[test]
fn both_syntaxes_give_equal_queries() {
    for (json, toml) in [
        (
            json!({"dataset": "q", "mean": ["time", 0], "selection": [{"stop": 2}, {"start_label": "a", "step": 2}]}),
            "dataset = 'q'\nmean = ['time', 0]\n[[selection]]\nstop = 2\n[[selection]]\nstart_label = 'a'\nstep = 2\n",
        ),
        (
            json!({"dataset": "q", "quantile": {"q": 0.95, "axis": 0}, "execution": {"memory_budget_percent": 40}}),
            "# comment\ndataset = 'q'\nexecution.memory_budget_percent = 40\n[quantile]\nq = 0.95\naxis = 0\n",
        ),
        (
            json!({"dataset": "q", "null_count": {"fill": "nan"}, "filter": {"gt": -5}}),
            "dataset = 'q'\nnull_count.fill = nan\nfilter = {gt = -5}\n",
        ),
        (
            json!({"dataset": "q", "pipeline": [{"select": [{}]}, {"sum": 0}]}),
            "dataset = 'q'\n[[pipeline]]\nselect = [{}]\n[[pipeline]]\nsum = 0\n",
        ),
        (
            json!({"dataset": "q", "selection": [{"start_label": "2024-01-01"}]}),
            "dataset = 'q'\nselection = [{start_label = 2024-01-01}]\n",
        ),
    ] {
        let from_json = Query::parse(&json.to_string(), Syntax::Json).unwrap();
        let from_toml = Query::parse(toml, Syntax::Toml).unwrap();
        assert_eq!(from_json, from_toml);
        assert_eq!(from_json.selection_axes(), from_toml.selection_axes());
        assert_eq!(from_json.flat.selection, from_toml.flat.selection);
        assert_eq!(from_json.execution(), from_toml.execution());
        assert_eq!(from_toml.to_json(), &json);
        assert_eq!(serde_json::to_value(&from_json).unwrap(), json);
        let again = Query::parse(&from_toml.to_json().to_string(), Syntax::Json).unwrap();
        assert_eq!(again, from_toml);
    }
}

#[test]
fn a_query_returns_its_parts() {
    fn is_shared<T: Clone + std::fmt::Debug + Send + Sync>(_: &T) {}
    let text = r#"{"dataset": "q", "layout_version": 7, "selection": [{}, {}], "sum": 1}"#;
    let query = Query::parse(text, Syntax::Json).unwrap();
    assert_eq!((query.dataset(), query.layout_version()), ("q", Some(7)));
    assert_eq!((query.selection_axes(), query.operation_kind()), (Some(2), Some(Kind::Sum)));
    assert!(query.has_operation() && query.spill().is_none());
    let spill = Query::parse("dataset = 'q'\nspill = 'x.bin'", Syntax::Toml).unwrap();
    assert_eq!((spill.spill(), spill.has_operation(), spill.selection_axes()), (Some("x.bin"), false, None));
    is_shared(&query);
}

#[test]
fn errors_point_into_the_text() {
    let text = "{\n  \"dataset\": \"q\",\n  \"mean\": [],\n  \"selektion\": [{}]\n}";
    let error = Query::parse(text, Syntax::Json).unwrap_err();
    assert_eq!((error.key(), error.line(), error.column()), ("selektion", 4, 3));
    assert_eq!(&text[error.at()], "\"selektion\"");
    assert_eq!(error.to_string(), "query › selektion (line 4, column 3): unknown key `selektion`");
    assert_eq!(error.hint().unwrap().to_string(), "did you mean `selection`?");
    assert_eq!(error.class(), Class::Request);
    let text = "dataset = 'q'\n[[selection]]\n[[selection]]\nstart = 3\nstop = 2\n[sum]\naxis = 0\n";
    let error = Query::parse(text, Syntax::Toml).unwrap_err();
    assert_eq!((error.key(), error.line(), &text[error.at()]), ("selection[1].stop", 5, "2"));
    let text = "dataset = 'q'\nhistogram = { bins = 3.0 }\n";
    let error = Query::parse(text, Syntax::Toml).unwrap_err();
    assert_eq!((error.line(), error.column(), &text[error.at()]), (2, 22, "3.0"));
    assert!(error.to_string().contains("is `3.0`, but must be an integer"), "{error}");
}

#[test]
fn documents_have_limits() {
    let long = |bytes: usize| format!("{}{}", r#"{"dataset":"q"}"#, " ".repeat(bytes - 15));
    assert!(Query::parse(&long(TEXT_BYTES), Syntax::Json).is_ok());
    let error = Query::parse(&long(TEXT_BYTES + 1), Syntax::Json).unwrap_err();
    assert!(matches!(error.reason(), QueryErrorKind::TooLong { found: 1_048_577, allowed: 1_048_576 }));
    let error = Query::parse(&"a".repeat(2_000_000), Syntax::Toml).unwrap_err();
    assert!(matches!(error.reason(), QueryErrorKind::TooLong { .. }));
    // The document itself is level 1.
    let deep = |levels: usize| {
        let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
        format!(r#"{{"dataset":"q","mean":{open}{close}}}"#)
    };
    let is_deep = |levels| {
        matches!(
            Query::parse(&deep(levels), Syntax::Json).unwrap_err().reason(),
            QueryErrorKind::TooDeep { allowed: 64 }
        )
    };
    assert!(!is_deep(64));
    assert!(is_deep(65));
    let toml = format!("dataset = 'q'\nmean = {}{}", "[".repeat(64), "]".repeat(64));
    assert!(matches!(
        Query::parse(&toml, Syntax::Toml).unwrap_err().reason(),
        QueryErrorKind::TooDeep { .. }
    ));
}

#[test]
fn messages_stay_short() {
    let long = "x".repeat(1 << 19);
    for members in [
        json!({long.as_str(): 1}),
        json!({"mean": long}),
        json!({"layout_version": long}),
        json!({"transform": {"method": long}}),
        json!({"null_count": {"fill": long}}),
        json!({"execution": {"device": long}}),
        json!({"quantile": {"q": 0, long.as_str(): 1}}),
    ] {
        let mut document = json!({"dataset": "q"});
        document.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let error = Query::parse(&document.to_string(), Syntax::Json).unwrap_err();
        assert!(error.to_string().len() < 600, "{}", error.to_string().len());
    }
}

#[expect(clippy::disallowed_methods, reason = "golden files are read as they are")]
fn manifest() -> Option<(std::path::PathBuf, Value)> {
    let directory = tercet_testkit::golden("tet")?;
    let manifest = std::fs::read(directory.join("manifest.json")).unwrap();
    Some((directory, serde_json::from_slice(&manifest).unwrap()))
}

/// Whether a query of the manifest must be refused before anything is executed.
fn is_refused(case: &Value) -> bool {
    // Its budget is too small, which is detected during execution.
    case["note"] == "document must be refused" && case["id"] != "budget_too_small"
        || case["id"] == "unknown_label"
}

#[test]
fn golden_queries_are_understood() {
    let Some((directory, manifest)) = manifest() else { return };
    let cases = manifest["queries"].as_array().unwrap();
    let mut refused = Vec::new();
    for case in cases {
        let id = case["id"].as_str().unwrap();
        let file = File::open(directory.join(case["file"].as_str().unwrap())).unwrap();
        let query = Query::parse(&case["query"].to_string(), Syntax::Json);
        let answer = query.and_then(|query| {
            let Ok(dataset) = file.dataset(query.dataset()) else { return Ok(query.echo(None)) };
            let resolved =
                query.resolve(&dataset, true).map_err(crate::query::resolve::tests::query_error)?;
            let alignment = query.alignment(&file, &dataset)?;
            let expected = &case["reference"]["execution"];
            assert_eq!(expected.get("alignment").cloned(), alignment.map(|found| json!(found)), "{id}");
            if expected.is_object() {
                let count = |name: &str| expected.get(name).and_then(Value::as_u64);
                assert_eq!(resolved.group_count, count("group_count"), "{id}");
                assert_eq!(resolved.window_count, count("window_count"), "{id}");
                if let (Some(shape), Some(operation)) =
                    (expected.get("operation_reduced_shape"), &resolved.operation)
                {
                    assert_eq!(json!(operation.output_shape(&resolved.selection.shape())), *shape, "{id}");
                }
                let shape = &case["reference"]["read_plan"]["logical_selection_shape"];
                if !shape.is_null() {
                    assert_eq!(json!(&*resolved.selection.shape()), *shape, "{id}");
                }
            }
            assert_eq!(
                case["reference"]["selection_axes"].as_u64().map(|n| n as usize),
                query.selection_axes().filter(|_| case["reference"].is_object()),
                "{id}"
            );
            Ok(query.echo(Some(&resolved)))
        });
        match answer {
            Ok(echo) => {
                assert!(!is_refused(case), "{id} is not refused");
                if case["reference"].is_object() {
                    let expected = Some(&case["reference"]["operation"]).filter(|echo| !echo.is_null());
                    let text = |echo: &Value| echo.to_string();
                    assert_eq!(echo.as_ref().map(text), expected.map(text), "{id}: members in their order");
                }
            }
            Err(error) => {
                assert!(case["reference"].is_null(), "{id}: {error}");
                refused.push((id, error.to_string()));
            }
        }
    }
    let ids: Vec<&str> = refused.iter().map(|(id, _)| *id).collect();
    assert_eq!(
        ids,
        [
            "sum_all_axes_rejected",
            "sel_rank_mismatch",
            "sel_stop_past_end",
            "unknown_axis_name",
            "unknown_label",
            "transform_int_rejected",
            "bad_unknown_key",
            "bad_two_ops",
            "bad_operation",
            "bad_step0",
            "bad_empty_box"
        ],
        "{refused:#?}"
    );
    assert_eq!(cases.len(), manifest["query_count"].as_u64().unwrap() as usize);
}

#[test]
fn golden_toml_queries_are_understood() {
    let Some((directory, manifest)) = manifest() else { return };
    let cases = manifest["toml_queries"].as_array().unwrap();
    for case in cases {
        let (text, name) = (case["toml"].as_str().unwrap(), case["file"].as_str().unwrap());
        assert_eq!(Syntax::guess(text), Syntax::Toml);
        match Query::parse(text, Syntax::Toml) {
            Ok(query) => {
                let file = File::open(directory.join(name)).unwrap();
                let resolved = query.resolve(&file.dataset(query.dataset()).unwrap(), true).unwrap();
                let shape = &case["reference_execution"]["operation_reduced_shape"];
                let found = resolved.operation.unwrap().output_shape(&resolved.selection.shape());
                assert_eq!(shape.as_array().map_or(json!([]), |_| shape.clone()), json!(found), "{text}");
            }
            Err(error) => assert!(case["reference_error"].is_string(), "{text}: {error}"),
        }
    }
    assert_eq!(cases.len(), 8);
}

/// Documents with all keys, as input for mutation.
const DOCUMENTS: [&str; 4] = [
    r#"{"dataset":"q","selection":[{"start":1,"stop":9,"step":2},{"start_label":"a"}],"histogram":{"bins":4,"min":-2,"max":2.5,"axis":["x",0]}}"#,
    r#"{"dataset":"q","null_count":{"fill":"nan","axes":["0"]},"filter":{"gt":1,"le":2e3},"label_filter":{"axis":1,"eq":"é"},"execution":{"memory_budget_percent":33.3,"device":"cuda:1"}}"#,
    r#"{"dataset":"q","sum":[],"window":{"axis":0,"size":3,"mode":"rolling","pad":"0","step":2,"align":"end","min_count":1},"layout_version":1}"#,
    "dataset = 'q'\nwrite = {target = \"sidecar\", timestamp = false}\n[[pipeline]]\nselect = [{}]\n[transform]\nmethod = 'l1'\n",
];

proptest! {
    #[test]
    fn arbitrary_texts_never_panic(text in "\\PC*") {
        let _ = Query::parse(&text, Syntax::Json);
        let _ = Query::parse(&text, Syntax::Toml);
    }

    #[test]
    fn damaged_documents_never_panic(
        which in 0..DOCUMENTS.len(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..6, "[\\x00-\\x7f]{0,3}|null|\\[|é"), 1..6),
    ) {
        let mut text = DOCUMENTS[which].to_owned();
        for (at, length, put) in cuts {
            let start = text.floor_char_boundary(at.index(text.len() + 1));
            let end = text.floor_char_boundary(start + length).max(start);
            text.replace_range(start..end, &put);
        }
        for syntax in [Syntax::Json, Syntax::Toml] {
            match Query::parse(&text, syntax) {
                Ok(query) => prop_assert_eq!(&Query::parse(&query.to_json().to_string(), Syntax::Json).unwrap(), &query),
                Err(error) => {
                    prop_assert!(error.at().end <= text.len(), "{}", error);
                    prop_assert!(text.get(error.at()).is_some());
                }
            }
        }
    }

    #[test]
    fn arbitrary_trees_never_panic(tree in tree()) {
        let _ = Query::parse(&json!({"dataset": "q", "pipeline": [tree]}).to_string(), Syntax::Json);
        let mut document = json!({"dataset": "q"});
        if let (Some(document), Some(tree)) = (document.as_object_mut(), tree.as_object()) {
            document.extend(tree.clone());
        }
        let _ = Query::parse(&document.to_string(), Syntax::Json);
    }
}

/// Keys and values of documents.
const WORDS: &[&str] = &[
    "axis",
    "axes",
    "start",
    "stop",
    "step",
    "q",
    "bins",
    "min",
    "max",
    "fill",
    "method",
    "target",
    "path",
    "by",
    "labels",
    "size",
    "mode",
    "bins",
    "rolling",
    "pad",
    "with",
    "eq",
    "gt",
    "le",
    "is_null",
    "mean",
    "quantile",
    "histogram",
    "null_count",
    "transform",
    "selection",
    "select",
    "filter",
    "label_filter",
    "group_by",
    "window",
    "align",
    "execution",
    "write",
    "spill",
    "zscore",
    "sidecar",
    "device",
    "cpu",
    "dataset",
];

/// JSON of known keys and values.
fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0u64..4).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(WORDS).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(WORDS), inner), 0..4).prop_map(|members| {
                Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}
