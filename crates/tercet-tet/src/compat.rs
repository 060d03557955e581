//! The answers of the reference implementation: how it names and orders the members of its JSON. Nothing is computed
//! here; a [`Request`](crate::Request) is run and its typed outcome is named.
//!
//! | module | contents |
//! |---|---|
//! | `answer` | the answer and its serialization |
//! | `plan` | the serialization of read plans |
//! | `run` | queries: checked, planned, executed |
//! | `results` | typed results → members of the answer |
//! | `echo` | the operation as the answer repeats it |

mod answer;
mod echo;
mod plan;
mod results;
mod run;

pub use answer::{Answer, Catalog, Execution, Explain, MatchedDataset, Value};
pub use run::RunOptions;

pub use crate::compute::Preview;
