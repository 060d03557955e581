//! The echo of the operation in answers.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use crate::query::Query;
use crate::query::operation::Kind;
use crate::query::resolved::Resolved;

impl Query {
    /// The operation with axes as decimal strings; as written if the dataset is not found.
    pub(crate) fn echo(&self, resolved: Option<&Resolved>) -> Option<Value> {
        let written = self.operation()?;
        let (kind, axes): (Kind, Vec<String>) =
            match resolved.and_then(|resolved| resolved.operation.as_ref()) {
                Some(operation) => (operation.kind, operation.axes.iter().map(ToString::to_string).collect()),
                None => (written.kind, written.axes.iter().map(ToString::to_string).collect()),
            };
        let mut members = Map::new();
        if let Kind::Transform { method } = kind {
            members.insert("method".to_owned(), method.name().into());
        }
        members.insert("axes".to_owned(), axes.into());
        match kind {
            Kind::Quantile { q } => {
                members.insert("q".to_owned(), q.into());
            }
            Kind::Histogram { bins, range } => {
                members.insert("bins".to_owned(), bins.into());
                members.insert("min".to_owned(), range.map(|(min, _)| min).into());
                members.insert("max".to_owned(), range.map(|(_, max)| max).into());
            }
            Kind::NullCount { fill } => {
                members.insert("fill".to_owned(), json!(fill));
            }
            _ => {}
        }
        Some(json!({ kind.key(): members }))
    }
}
