use serde_json::{Value, json};

use crate::query::Query;
use crate::query::resolve::tests::resolve;
use crate::query::tree::Syntax;

#[test]
fn operations_are_echoed() {
    let echo = |dataset: &str, members: Value| {
        let (query, resolved) = resolve(dataset, &members).unwrap();
        query.echo(Some(&resolved)).map(|echo| echo.to_string())
    };
    let is = |text: &str| Some(text.to_owned());
    assert_eq!(echo("cube", json!({})), None);
    assert_eq!(echo("cube", json!({"mean": ["time", "00"]})), is(r#"{"mean":{"axes":["2","0"]}}"#));
    assert_eq!(echo("cube", json!({"quantile": {"q": 1}})), is(r#"{"quantile":{"axes":[],"q":1.0}}"#));
    let histogram = json!({"histogram": {"bins": 5, "min": -2, "max": 2}});
    assert_eq!(echo("cube", histogram), is(r#"{"histogram":{"axes":[],"bins":5,"min":-2.0,"max":2.0}}"#));
    assert_eq!(echo("fill", json!({"null_count": []})), is(r#"{"null_count":{"axes":[],"fill":-999.0}}"#));
    let nan = json!({"null_count": {"fill": "nan"}});
    assert_eq!(echo("fill", nan), is(r#"{"null_count":{"axes":[],"fill":null}}"#));
    let transform = json!({"transform": {"axis": "y", "method": "l1"}});
    assert_eq!(echo("cube", transform), is(r#"{"transform":{"method":"l1","axes":["1"]}}"#));
    assert_eq!(echo("cube", json!({"sum": [], "group_by": ["y"]})), is(r#"{"sum":{"axes":["0","2"]}}"#));
    let query = Query::parse(r#"{"dataset":"zz","max":["lat",0,"01"]}"#, Syntax::Json).unwrap();
    assert_eq!(query.echo(None).map(|echo| echo.to_string()), is(r#"{"max":{"axes":["lat","0","01"]}}"#));
}
