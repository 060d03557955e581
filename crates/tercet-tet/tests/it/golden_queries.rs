//! Queries of the reference implementation: results are correct, and invalid queries are rejected.

use serde::Deserialize;
use serde_json::{Map, Value};
use tercet_core::progress::NoProgress;
use tercet_tet::compat::Answer;
use tercet_tet::{File, Query, RunOptions, Syntax};

#[derive(Deserialize)]
struct Manifest {
    query_count: usize,
    queries: Vec<Case>,
    toml_queries: Vec<TomlCase>,
}

/// A query of the manifest and its expected result.
#[derive(Deserialize)]
struct Case {
    id: String,
    file: String,
    query: Value,
    /// Without it the query is only planned.
    preview: Option<u64>,
    reference: Option<Value>,
    reference_error: Option<String>,
    /// An independent evaluation: the expected result where the reference differs.
    numpy: Option<Map<String, Value>>,
    #[serde(default)]
    disagreeing_fields: Vec<String>,
}

#[derive(Deserialize)]
struct TomlCase {
    file: String,
    toml: String,
    preview: u64,
    reference_execution: Option<Map<String, Value>>,
    reference_error: Option<String>,
}

/// Members in which the result differs from the reference on purpose.
fn differs(case: &Case, path: &str, name: &str) -> bool {
    // Only the dataset's own preview can be truncated.
    let truncated = name.ends_with("_preview_truncated");
    // With a filter, matching elements are counted in every form.
    let filtered = case.query.to_string().contains("\"filter\"") && name == "operation_element_count";
    // Visits are counted as executed: one more here for the range of a histogram, one less for some transforms.
    let visits = (case.id.starts_with("histogram") || case.id.starts_with("transform"))
        && name == "total_bytes_read_from_disk";
    let listed = path.ends_with(".execution") && case.disagreeing_fields.iter().any(|field| field == name);
    truncated || filtered || visits || listed
}

/// Whether `found` has every member of `expected`, numbers within 1e-9.
fn agree(case: &Case, path: &str, expected: &Value, found: &Value, wrong: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            for (name, value) in expected {
                if differs(case, path, name) {
                    continue;
                }
                match found.get(name) {
                    Some(other) => agree(case, &format!("{path}.{name}"), value, other, wrong),
                    None => wrong.push(format!("{path}.{name} is missing")),
                }
            }
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            for (number, (value, other)) in expected.iter().zip(found).enumerate() {
                agree(case, &format!("{path}[{number}]"), value, other, wrong);
            }
        }
        (Value::Number(a), Value::Number(b)) if near(a.as_f64(), b.as_f64()) => {}
        _ if expected == found => {}
        _ => wrong.push(format!("{path}: expected {expected}, found {found}")),
    }
}

fn near(a: Option<f64>, b: Option<f64>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return false };
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

#[test]
fn golden_queries() {
    let Some(directory) = tercet_testkit::golden("tet") else { return };
    let manifest: Manifest =
        serde_json::from_slice(&std::fs::read(directory.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest.queries.len(), manifest.query_count);
    let mut wrong = Vec::new();
    for case in &manifest.queries {
        let file = File::open(directory.join(&case.file)).unwrap();
        let query = Query::parse(&case.query.to_string(), Syntax::Json);
        let options = RunOptions::new().with_preview(case.preview.unwrap_or(0));
        let answer = query.map_err(|error| error.to_string()).and_then(|query| {
            let result = match case.preview {
                _ if file.dataset(query.dataset()).is_err() => {
                    return Ok(serde_json::to_string(&Answer::not_found(&query, &file)).unwrap());
                }
                Some(_) => query.run(&file, &options, &NoProgress),
                None => query.plan(&file, &options),
            };
            let result = result.map_err(|error| error.to_string())?;
            // As text, so that single precision is printed as such.
            Ok(serde_json::to_string(&Answer::new(&result)).unwrap())
        });
        let refused = case.reference_error.is_some() && case.numpy.is_none();
        match answer {
            Ok(_) if refused => wrong.push(format!("{}: not refused", case.id)),
            Err(_) if refused => {}
            Err(error) => wrong.push(format!("{}: {error}", case.id)),
            Ok(answer) => {
                let answer: Value = serde_json::from_str(&answer).unwrap();
                if let Some(reference) = &case.reference {
                    agree(case, &case.id, reference, &answer, &mut wrong);
                }
                if let Some(numpy) = &case.numpy {
                    check_numpy(case, numpy, &answer["execution"], &mut wrong);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

fn check_numpy(case: &Case, numpy: &Map<String, Value>, execution: &Value, wrong: &mut Vec<String>) {
    let no_difference = Case { disagreeing_fields: Vec::new(), ..clone_of(case) };
    for (name, value) in numpy {
        let found = match name.as_str() {
            "preview" => tercet_core::ElementType::ALL
                .iter()
                .map(|dtype| &execution[format!("{dtype}_preview")])
                .find(|preview| preview.as_array().is_some_and(|numbers| !numbers.is_empty()))
                .unwrap_or(&Value::Null),
            _ => &execution[name],
        };
        if name == "preview" {
            // Single precision, printed as such by one side and widened by the other.
            let numbers = |value: &Value| -> Vec<f64> {
                value.as_array().unwrap().iter().map(|cell| cell.as_f64().unwrap_or(f64::NAN)).collect()
            };
            let (a, b) = (numbers(value), numbers(found));
            let close = |(a, b): (&f64, &f64)| {
                (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-6 * a.abs().max(1e-3)
            };
            if a.len() != b.len() || !a.iter().zip(&b).all(close) {
                wrong.push(format!("{}.{name}: expected {a:?}, found {b:?}", case.id));
            }
            continue;
        }
        agree(&no_difference, &format!("{}.numpy.{name}", case.id), value, found, wrong);
    }
}

fn clone_of(case: &Case) -> Case {
    Case {
        id: case.id.clone(),
        file: case.file.clone(),
        query: case.query.clone(),
        preview: case.preview,
        reference: None,
        reference_error: None,
        numpy: None,
        disagreeing_fields: case.disagreeing_fields.clone(),
    }
}

#[test]
fn golden_queries_in_toml() {
    let Some(directory) = tercet_testkit::golden("tet") else { return };
    let manifest: Manifest =
        serde_json::from_slice(&std::fs::read(directory.join("manifest.json")).unwrap()).unwrap();
    let mut wrong = Vec::new();
    for case in &manifest.toml_queries {
        let file = File::open(directory.join(&case.file)).unwrap();
        assert_eq!(Syntax::guess(&case.toml), Syntax::Toml);
        let query = Query::parse(&case.toml, Syntax::Toml);
        match (&case.reference_execution, query) {
            (None, Err(_)) => assert!(case.reference_error.is_some()),
            (None, Ok(_)) => wrong.push(format!("not refused: {}", case.toml)),
            (Some(_), Err(error)) => wrong.push(format!("{}: {error}", case.toml)),
            (Some(expected), Ok(query)) => {
                let options = RunOptions::new().with_preview(case.preview);
                let answer = query.run(&file, &options, &NoProgress).unwrap();
                let execution = serde_json::to_string(&Answer::new(&answer).execution.unwrap()).unwrap();
                let execution: Value = serde_json::from_str(&execution).unwrap();
                let case = Case {
                    id: case.toml.clone(),
                    file: String::new(),
                    query: Value::Null,
                    preview: None,
                    reference: None,
                    reference_error: None,
                    numpy: None,
                    disagreeing_fields: Vec::new(),
                };
                agree(&case, "toml", &Value::Object(expected.clone()), &execution, &mut wrong);
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}
