//! A file of records, opened.

use std::sync::Arc;

use tercet::core::ByteSource;
use tercet::tatami::{File, OpenOptions};

use crate::failure::Failure;

/// Opens a file: its tail and its header are read.
pub(super) fn open(source: Arc<dyn ByteSource>) -> Result<File, Failure> {
    Ok(File::from_source(source, OpenOptions::new())?)
}

/// Opens a file whose rows are to be printed: text that is no UTF-8 is printed all the same, and told about.
pub(super) fn open_to_print(source: Arc<dyn ByteSource>) -> Result<File, Failure> {
    Ok(File::from_source(source, OpenOptions::new().with_invalid_utf8(true))?)
}

/// The sum of numbers of a footer, which may say anything: at most what fits.
pub(super) fn total(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}
