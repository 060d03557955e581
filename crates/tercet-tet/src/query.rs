//! [`Query`]: query documents, bound to a file and executed.
//!
//! | module | contents |
//! |---|---|
//! | `tree`, `source` | text → syntax tree with byte positions |
//! | `de`, `document`, `schema` | syntax tree → typed document; JSON Schema of the same types |
//! | `flat`, `check` | pipelines → flat form; rules between keys |
//! | `resolve`, `alignment`, `lower` | query and dataset → request |
//! | `run` | request → plan and result |

pub(crate) mod alignment;
pub(crate) mod de;
pub(crate) mod document;
pub(crate) mod error;
mod flat;
mod lower;
pub(crate) mod operation;
pub(crate) mod resolve;
pub(crate) mod resolved;
mod run;
mod schema;
mod source;
pub(crate) mod tree;
mod validate;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use document::{Device, Document, ExecutionOptions, UnknownDevice};
use error::{QueryError, QueryErrorKind};
use flat::Flat;
use operation::Kind;
use source::Source;
use tree::Syntax;

pub(crate) use resolve::fill_value_of;
pub use run::{QueryResult, RunOptions};

use crate::compute::ValueMode;

/// A query on one dataset: a parsed document, checked as far as possible without a file.
///
/// ```
/// use tercet_tet::{Query, Syntax};
///
/// let query = Query::parse(r#"{"dataset": "t2m", "mean": ["time"]}"#, Syntax::Json)?;
/// assert_eq!(query.dataset(), "t2m");
///
/// let error = Query::parse("dataset = 't2m'\nmaen = 'time'\n", Syntax::Toml).unwrap_err();
/// assert_eq!((error.key(), error.line()), ("maen", 2));
/// # Ok::<(), tercet_tet::QueryError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Query {
    source: Arc<Source>,
    json: Arc<serde_json::Value>,
    dataset: String,
    layout_version: Option<u32>,
    execution: ExecutionOptions,
    /// The keys `raw` and `skipna`.
    values: Option<ValueMode>,
    flat: Flat,
}

impl Query {
    /// Parses a query document.
    pub fn parse(text: &str, syntax: Syntax) -> Result<Self, QueryError> {
        let source = Source::parse(text, syntax)?;
        let document: Document = de::from_node(&source.tree, &source.text)?;
        let flat = flat::flatten(&document, &source)?;
        validate::check(&document, &flat, &source)?;
        let values = match (document.raw, document.skipna) {
            (Some(true), Some(true)) => {
                let reason = QueryErrorKind::invalid("cannot be used together with `raw`");
                return Err(source.key_error("skipna", reason));
            }
            (Some(true), _) => Some(ValueMode::Stored),
            (_, Some(skip_missing)) => Some(ValueMode::Decoded { skip_missing }),
            _ => None,
        };
        Ok(Self {
            json: Arc::new(source.tree.to_json()),
            source: Arc::new(source),
            dataset: document.dataset,
            layout_version: document.layout_version,
            execution: document.execution.unwrap_or_default(),
            values,
            flat,
        })
    }

    /// The name of the dataset.
    pub fn dataset(&self) -> &str {
        &self.dataset
    }

    /// The key `layout_version`, which is echoed.
    pub fn layout_version(&self) -> Option<u32> {
        self.layout_version
    }

    /// The number of axes of the selection; `None` without one.
    pub fn selection_axes(&self) -> Option<usize> {
        self.flat.selection.as_ref().map(|selection| match &selection.value {
            document::Selecting::List(list) => list.len(),
            document::Selecting::Named(named) => named.len(),
        })
    }

    /// The document as JSON.
    pub fn to_json(&self) -> &serde_json::Value {
        &self.json
    }

    /// Sets the key `execution.device`, which the answer echoes: everything is computed on the CPU.
    pub fn with_device(mut self, device: &str) -> Result<Self, QueryErrorKind> {
        let device: Device =
            device.parse().map_err(|unknown: UnknownDevice| QueryErrorKind::invalid(unknown.to_string()))?;
        self.execution.device = device;
        Ok(self)
    }

    /// Whether the query has an operation.
    pub fn has_operation(&self) -> bool {
        self.flat.operation.is_some()
    }

    /// The kind of the operation.
    pub fn operation_kind(&self) -> Option<Kind> {
        self.flat.operation.as_ref().map(|operation| operation.value.kind)
    }

    /// The axes of the operation as written: names or numbers.
    pub fn operation_axes(&self) -> Vec<String> {
        self.operation()
            .map_or_else(Vec::new, |written| written.axes.iter().map(ToString::to_string).collect())
    }

    /// Why the CPU computes although the key `execution.device` requests another device.
    pub fn device_fallback(&self) -> Option<&'static str> {
        self.execution.device.fallback_reason()
    }

    /// The key `spill`: the path for the selection.
    pub fn spill(&self) -> Option<&str> {
        self.flat.spill.as_ref().map(|spill| spill.value.as_str())
    }

    /// The operation as written.
    pub(crate) fn operation(&self) -> Option<&document::Specified> {
        self.flat.operation.as_ref().map(|operation| &operation.value)
    }

    /// An error at a key of the document.
    pub(crate) fn error_at(&self, path: &str, reason: QueryErrorKind) -> QueryError {
        self.source.error(path, reason)
    }

    /// The key `execution`.
    pub(crate) fn execution(&self) -> &ExecutionOptions {
        &self.execution
    }
}

/// Queries are equal if their documents are equal as JSON.
impl PartialEq for Query {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl Serialize for Query {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

/// The output of a transform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    /// The kind of output.
    pub(crate) target: Target,
    /// The path of the file.
    pub(crate) path: Option<String>,
    /// Whether the name of a sidecar contains the time; true by default.
    pub(crate) timestamp: Option<bool>,
}

/// The output of a transform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// Memory.
    Ram,
    /// A raw file.
    Spill,
    /// Memory, or a temporary file if the memory budget is too small.
    #[default]
    Switch,
    /// A new `.tet` file.
    Sidecar,
}
