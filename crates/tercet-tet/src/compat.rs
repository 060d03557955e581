//! The answers of the reference implementation: how it names and orders the members of its JSON. Nothing is computed
//! here: an [`Answer`] serializes the typed result of a query.
//!
//! | module | contents |
//! |---|---|
//! | `answer` | the answer and its serialization |
//! | `plan` | the serialization of read plans |
//! | `results` | typed results → members of the answer |
//! | `echo` | the operation as the answer repeats it |

mod answer;
mod echo;
mod plan;
mod results;

pub use answer::{Answer, Catalog, Execution, Explain, MatchedDataset, Value};
