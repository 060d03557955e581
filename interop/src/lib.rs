//! Every kind of file that our writers make, with reproducible values.
//!
//! `make_tet` fills a directory and describes it in `manifest.json`; `tet_check.py` computes the same values from the manifest
//! alone and compares them with what the reference implementation reads. `read_tet` is the other direction: it prints what our
//! reader finds in a file.
#![expect(clippy::disallowed_methods, reason = "the programs here are about real files")]

pub mod kinds;
pub mod pipelines;
pub mod plan;
pub mod tgm;
pub mod values;

/// Error of the programs.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
