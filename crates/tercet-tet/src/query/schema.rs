//! The JSON Schema of the query document.

#[cfg(test)]
mod tests;

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::Query;
use super::document::{Document, Step};

impl Query {
    /// The JSON Schema of the query document, derived from the types of the parser.
    ///
    /// It describes each key; rules between keys, apart from "at most one operation", are checked
    /// by [`Query::parse`].
    ///
    /// ```
    /// let schema = tercet_tet::Query::schema();
    /// assert_eq!(schema["additionalProperties"], false);
    /// ```
    pub fn schema() -> Value {
        let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Document>();
        let schema_object = schema.ensure_object();
        schema_object.insert("oneOf".to_owned(), at_most_one(Document::OPERATIONS));
        let step = schema_object.get_mut("$defs").and_then(|definitions| definitions.get_mut("Step"));
        if let Some(Value::Object(step)) = step {
            step.insert("oneOf".to_owned(), at_most_one(Step::OPERATIONS));
            step.insert("minProperties".to_owned(), 1.into());
        }
        schema.to_value()
    }
}

/// At most one of these keys.
fn at_most_one(keys: &[&str]) -> Value {
    let one = keys.iter().map(|key| json!({"required": [key]}));
    let none = json!({"not": {"anyOf": one.clone().collect::<Vec<_>>()}});
    one.chain([none]).collect()
}
