//! Every kind of file our writers make, with values that anyone can compute again.
//!
//! `make_tet` fills a folder and describes it in `manifest.json`; `tet_check.py` computes the same values from the
//! manifest alone and compares what the reference implementation reads. `read_tet` is the other direction: it tells
//! what our reader finds in a file.
#![expect(clippy::disallowed_methods, reason = "the programs here are about real files")]

pub mod kinds;
pub mod pipelines;
pub mod plan;
pub mod tgm;
pub mod values;

/// What ends one of the programs here.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
