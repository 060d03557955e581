//! Queries: a document says what is asked, a file gives the answer.
//!
//! | module | the road |
//! |---|---|
//! | `tree`, `source` | text → a tree that remembers where everything stands |
//! | `de`, `document`, `schema` | the tree → typed values; the types are the JSON Schema as well |
//! | `flat`, `check` | pipelines → the flat form; rules between keys |
//! | `resolve`, `alignment`, `echo` | a query and a dataset → what to compute |

pub(crate) mod alignment;
pub(crate) mod answer;
mod check;
pub(crate) mod de;
pub(crate) mod document;
mod echo;
pub(crate) mod error;
mod flat;
pub(crate) mod operation;
mod resolve;
pub(crate) mod resolved;
pub(crate) mod run;
mod schema;
mod source;
pub(crate) mod tree;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use document::{Document, ExecutionOptions};
use error::QueryError;
use flat::Flat;
use operation::Kind;
use source::Source;
use tree::Syntax;

/// A question to one dataset: a document that was read and checked as far as that is possible without a file.
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
    flat: Flat,
}

impl Query {
    /// Reads a query.
    pub fn parse(text: &str, syntax: Syntax) -> Result<Self, QueryError> {
        let source = Source::parse(text, syntax)?;
        let document: Document = de::from_node(&source.tree, &source.text)?;
        let flat = flat::flatten(&document, &source)?;
        check::check(&document, &flat, &source)?;
        Ok(Self {
            json: Arc::new(source.tree.to_json()),
            source: Arc::new(source),
            dataset: document.dataset,
            layout_version: document.layout_version,
            execution: document.execution.unwrap_or_default(),
            flat,
        })
    }

    /// The name of the dataset.
    pub fn dataset(&self) -> &str {
        &self.dataset
    }

    /// The layout version, which is echoed and means nothing.
    pub fn layout_version(&self) -> Option<u32> {
        self.layout_version
    }

    /// The number of slices of the selection, if there is one.
    pub fn selection_axes(&self) -> Option<usize> {
        self.flat.selection.as_ref().map(|selection| selection.value.len())
    }

    /// The document as JSON, as it was written.
    pub fn to_json(&self) -> &serde_json::Value {
        &self.json
    }

    /// Whether something is computed.
    pub fn has_operation(&self) -> bool {
        self.flat.operation.is_some()
    }

    /// What is computed.
    pub fn operation_kind(&self) -> Option<Kind> {
        self.flat.operation.as_ref().map(|operation| operation.value.kind)
    }

    /// The file that the selection goes to.
    pub fn spill(&self) -> Option<&str> {
        self.flat.spill.as_ref().map(|spill| spill.value.as_str())
    }

    /// How to execute.
    pub(crate) fn execution(&self) -> &ExecutionOptions {
        &self.execution
    }
}

/// Equal queries ask the same in the same form, whatever the syntax.
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

/// Where the result of a transform goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    /// Which way.
    pub(crate) target: Target,
    /// The file, for ways that write one.
    pub(crate) path: Option<String>,
    /// Whether the name of a sidecar tells the time; the default is yes.
    pub(crate) timestamp: Option<bool>,
}

/// The ways a transform's result can go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// Memory.
    Ram,
    /// A raw file.
    Spill,
    /// Memory, or a temporary file where the budget is too small.
    #[default]
    Switch,
    /// A new `.tet` file.
    Sidecar,
}
