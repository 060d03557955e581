//! Large values, stored in runs apart from the rows.
//!
//! The present values of a BLOBREF column are numbered over the whole file. The pages of the column say which rows are
//! present; a row's number and the run directory of the footer say where its value is.

mod pick;
mod read;
pub(crate) mod run;

pub(crate) use read::BlobReader;
