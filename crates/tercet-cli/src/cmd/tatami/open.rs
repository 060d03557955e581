//! Opening `.tatami` files.

use std::sync::Arc;

use tercet::Format;
use tercet::core::ByteSource;
use tercet::tatami::{File, ReadOptions};

use crate::args::limits;
use crate::failure::Failure;
use crate::input::must_be;

/// Opens a file; reads footer and header.
pub(super) fn open(source: Arc<dyn ByteSource>) -> Result<File, Failure> {
    opened(source, ReadOptions::new())
}

/// Opens a file for printing rows; invalid UTF-8 is allowed.
pub(super) fn open_to_print(source: Arc<dyn ByteSource>) -> Result<File, Failure> {
    opened(source, ReadOptions::new().with_allow_invalid_utf8(true))
}

/// Opens a file; another known format gets a better error message.
fn opened(source: Arc<dyn ByteSource>, options: ReadOptions) -> Result<File, Failure> {
    Ok(File::from_source(must_be(source, Format::Tatami)?, options.with_limits(limits()))?)
}

/// Saturating sum of untrusted numbers.
pub(super) fn total(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}
