//! The queries of the reference implementation: every answer right, every refusal refused.

use serde::Deserialize;
use serde_json::{Map, Value};
use tercet_core::progress::NoProgress;
use tercet_tet::{File, Query, RunOptions, Syntax};

#[derive(Deserialize)]
struct Manifest {
    query_count: usize,
    queries: Vec<Asked>,
    toml_queries: Vec<AskedToml>,
}

/// A query of the manifest and what is known of its answer.
#[derive(Deserialize)]
struct Asked {
    id: String,
    file: String,
    query: Value,
    /// Without it the query is only planned.
    preview: Option<u64>,
    reference: Option<Value>,
    reference_error: Option<String>,
    /// An independent evaluation; the answer to give wherever it differs from the reference's.
    numpy: Option<Map<String, Value>>,
    #[serde(default)]
    disagreeing_fields: Vec<String>,
}

#[derive(Deserialize)]
struct AskedToml {
    file: String,
    toml: String,
    preview: u64,
    reference_execution: Option<Map<String, Value>>,
    reference_error: Option<String>,
}

/// Members in which the answer differs from the reference's on purpose.
fn differs(asked: &Asked, path: &str, name: &str) -> bool {
    // Only the dataset's own preview can be cut short.
    let truncated = name.ends_with("_preview_truncated");
    // With a filter, elements that pass are counted for every form.
    let filtered = asked.query.to_string().contains("\"filter\"") && name == "operation_element_count";
    // Visits are counted as they are made: one more here for the range of a histogram, one less for some transforms.
    let visits = (asked.id.starts_with("histogram") || asked.id.starts_with("transform"))
        && name == "total_bytes_read_from_disk";
    let listed = path.ends_with(".execution") && asked.disagreeing_fields.iter().any(|field| field == name);
    truncated || filtered || visits || listed
}

/// Whether `found` has everything that `expected` has, numbers within 1e-9.
fn agree(asked: &Asked, path: &str, expected: &Value, found: &Value, wrong: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            for (name, value) in expected {
                if differs(asked, path, name) {
                    continue;
                }
                match found.get(name) {
                    Some(other) => agree(asked, &format!("{path}.{name}"), value, other, wrong),
                    None => wrong.push(format!("{path}.{name} is missing")),
                }
            }
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            for (number, (value, other)) in expected.iter().zip(found).enumerate() {
                agree(asked, &format!("{path}[{number}]"), value, other, wrong);
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
    for asked in &manifest.queries {
        let file = File::open(directory.join(&asked.file)).unwrap();
        let query = Query::parse(&asked.query.to_string(), Syntax::Json);
        let options = RunOptions::new().with_preview(asked.preview.unwrap_or(0));
        let answer = query.map_err(|error| error.to_string()).and_then(|query| {
            let answer = match asked.preview {
                Some(_) => query.run(&file, &options, &NoProgress),
                None => query.plan(&file, &options),
            };
            answer.map_err(|error| error.to_string())
        });
        let refused = asked.reference_error.is_some() && asked.numpy.is_none();
        match answer {
            Ok(_) if refused => wrong.push(format!("{}: not refused", asked.id)),
            Err(_) if refused => {}
            Err(error) => wrong.push(format!("{}: {error}", asked.id)),
            Ok(answer) => {
                // Through the text, so that single precision is printed as such.
                let answer = serde_json::to_string(&answer).unwrap();
                let answer: Value = serde_json::from_str(&answer).unwrap();
                if let Some(reference) = &asked.reference {
                    agree(asked, &asked.id, reference, &answer, &mut wrong);
                }
                if let Some(numpy) = &asked.numpy {
                    check_numpy(asked, numpy, &answer["execution"], &mut wrong);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

fn check_numpy(asked: &Asked, numpy: &Map<String, Value>, execution: &Value, wrong: &mut Vec<String>) {
    let no_difference = Asked { disagreeing_fields: Vec::new(), ..clone_of(asked) };
    for (name, value) in numpy {
        let found = match name.as_str() {
            "preview" => tercet_core::ElementType::ALL
                .iter()
                .map(|dtype| &execution[format!("{dtype}_preview")])
                .find(|preview| preview.as_array().is_some_and(|cells| !cells.is_empty()))
                .unwrap_or(&Value::Null),
            _ => &execution[name],
        };
        if name == "preview" {
            // Single precision, printed as such by one side and widened by the other.
            let cells = |value: &Value| -> Vec<f64> {
                value.as_array().unwrap().iter().map(|cell| cell.as_f64().unwrap_or(f64::NAN)).collect()
            };
            let (a, b) = (cells(value), cells(found));
            let close = |(a, b): (&f64, &f64)| {
                (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-6 * a.abs().max(1e-3)
            };
            if a.len() != b.len() || !a.iter().zip(&b).all(close) {
                wrong.push(format!("{}.{name}: expected {a:?}, found {b:?}", asked.id));
            }
            continue;
        }
        agree(&no_difference, &format!("{}.numpy.{name}", asked.id), value, found, wrong);
    }
}

fn clone_of(asked: &Asked) -> Asked {
    Asked {
        id: asked.id.clone(),
        file: asked.file.clone(),
        query: asked.query.clone(),
        preview: asked.preview,
        reference: None,
        reference_error: None,
        numpy: None,
        disagreeing_fields: asked.disagreeing_fields.clone(),
    }
}

#[test]
fn golden_queries_in_toml() {
    let Some(directory) = tercet_testkit::golden("tet") else { return };
    let manifest: Manifest =
        serde_json::from_slice(&std::fs::read(directory.join("manifest.json")).unwrap()).unwrap();
    let mut wrong = Vec::new();
    for asked in &manifest.toml_queries {
        let file = File::open(directory.join(&asked.file)).unwrap();
        assert_eq!(Syntax::guess(&asked.toml), Syntax::Toml);
        let query = Query::parse(&asked.toml, Syntax::Toml);
        match (&asked.reference_execution, query) {
            (None, Err(_)) => assert!(asked.reference_error.is_some()),
            (None, Ok(_)) => wrong.push(format!("not refused: {}", asked.toml)),
            (Some(_), Err(error)) => wrong.push(format!("{}: {error}", asked.toml)),
            (Some(expected), Ok(query)) => {
                let options = RunOptions::new().with_preview(asked.preview);
                let answer = query.run(&file, &options, &NoProgress).unwrap();
                let execution = serde_json::to_string(&answer.execution.unwrap()).unwrap();
                let execution: Value = serde_json::from_str(&execution).unwrap();
                let asked = Asked {
                    id: asked.toml.clone(),
                    file: String::new(),
                    query: Value::Null,
                    preview: None,
                    reference: None,
                    reference_error: None,
                    numpy: None,
                    disagreeing_fields: Vec::new(),
                };
                agree(&asked, "toml", &Value::Object(expected.clone()), &execution, &mut wrong);
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}
