//! The blob region: large values, stored in runs outside the row groups.
//!
//! The present values of a BLOBREF column are numbered across the file. The pages of the column record which rows are
//! present; the number of a value and the run directory in the footer locate it.

mod pick;
mod read;
pub(crate) mod run;

pub(crate) use read::BlobReader;
