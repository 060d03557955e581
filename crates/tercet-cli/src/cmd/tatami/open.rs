//! Opening `.tatami` files.

use std::sync::Arc;

use tercet::core::{ByteSource, Class, Span, escape};
use tercet::tatami::{File, ReadOptions};
use tercet::{Format, is_plain_text};

use crate::args::limits;
use crate::failure::Failure;
use crate::input::must_be;

/// Opens a file; reads footer and header.
pub(crate) fn open(source: Arc<dyn ByteSource>) -> Result<File, Failure> {
    opened(source, ReadOptions::new())
}

/// Opens a file for printing rows; invalid UTF-8 is allowed.
pub(super) fn open_to_print(source: Arc<dyn ByteSource>) -> Result<File, Failure> {
    opened(source, ReadOptions::new().with_allow_invalid_utf8(true))
}

/// Opens a file; another known format gets a better error message.
fn opened(source: Arc<dyn ByteSource>, options: ReadOptions) -> Result<File, Failure> {
    let source = must_be(source, Format::Tatami)?;
    must_have_magic(&*source)?;
    Ok(File::from_source(source, options.with_limits(limits()))?)
}

/// Rejects a file without the magic bytes at its start and at its end: it is parsed from the end, so that the error of
/// the parser would be about a trailer that was never there.
fn must_have_magic(source: &dyn ByteSource) -> Result<(), Failure> {
    const SHOWN: u64 = 8;
    let (magic, len) = (Format::Tatami.magic(), source.len());
    let read = |span| source.read_at(span).map_err(|error| Failure::source(source.name(), error));
    let Some(tail) = len.checked_sub(magic.len() as u64).and_then(|at| Span::between(at, len)) else {
        return Ok(());
    };
    let head = read(Span::first(len.min(SHOWN)))?;
    if head.starts_with(magic) || *read(tail)? == *magic {
        return Ok(());
    }
    let name = escape::name(source.name());
    let message = if is_plain_text(&head) {
        format!("{name}: is text, not a .tatami file")
    } else {
        format!("{name}: is not a .tatami file: starts with `{}`", head.escape_ascii())
    };
    Err(Failure::new(Class::Malformed, message).with_location(&**source.name()))
}

/// Saturating sum of untrusted numbers.
pub(super) fn total(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}
