use serde_json::{Value, json};

use crate::query::Query;
use crate::query::resolve::tests::file;
use crate::query::tree::Syntax;

#[test]
fn axes_of_two_datasets_are_compared() {
    let file = file();
    let align = |members: Value| {
        let text = json!({"dataset": "cube", "align": members}).to_string();
        let query = Query::parse(&text, Syntax::Json).unwrap();
        query.alignment(&file, &file.dataset("cube").unwrap()).map(Option::unwrap)
    };
    let found = align(json!({"with": "other", "axes": ["x", "time"]})).unwrap();
    assert_eq!(
        json!(found),
        json!({"aligned": false, "left": "cube", "with": "other", "axes": [
            {"axis": "x", "ok": true, "extent_left": 2, "extent_right": 2, "dim_name_left": "x", "dim_name_right": "x", "labels_ok": true},
            {"axis": "time", "ok": false, "extent_left": 4, "extent_right": 4, "dim_name_left": "time", "dim_name_right": "time",
             "labels_ok": false, "reason": "coordinate labels mismatch"},
        ]})
    );
    let third = &align(json!({"with": "other", "axes": [2]})).unwrap().axes[0];
    let reasons = "extent mismatch (4 vs 5); dim_names mismatch (`time` vs `z`); \
                   coordinate labels present on only one dataset";
    assert_eq!((third.axis.as_str(), third.reason.as_deref()), ("2", Some(reasons)));
    assert!(align(json!({"with": "other", "axes": ["x"]})).unwrap().aligned);
    let names = align(json!({"with": "plain", "axes": [0]})).unwrap();
    assert_eq!(names.axes[0].reason.as_deref(), Some("dim_names present on only one dataset"));
    assert_eq!(names.axes[0].dim_name_right, None);
    for (members, key, expected) in [
        (json!({"with": "othr", "axes": ["x"]}), "align.with", "no dataset `othr`"),
        (json!({"with": "other", "axes": ["x", "y"]}), "align.axes[1]", "dataset `other` has no axis `y`"),
        (json!({"with": "series", "axes": [1]}), "align.axes[0]", "dataset `series` has 1 axes"),
        (json!({"with": "other", "axes": ["x", 0]}), "align.axes[1]", "listed twice"),
    ] {
        let error = align(members).unwrap_err();
        assert_eq!(error.key(), key);
        assert!(error.to_string().contains(expected), "{error}");
    }
    let none = Query::parse(r#"{"dataset":"cube"}"#, Syntax::Json).unwrap();
    assert_eq!(none.alignment(&file, &file.dataset("cube").unwrap()), Ok(None));
}
