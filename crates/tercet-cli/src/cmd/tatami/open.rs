//! Opening `.tatami` files.

use std::sync::Arc;

use tercet::core::{ByteSource, Span, escape};
use tercet::tatami::{File, ReadOptions};

use crate::failure::Failure;

/// Opens a file; reads footer and header.
pub(super) fn open(source: Arc<dyn ByteSource>) -> Result<File, Failure> {
    opened(source, ReadOptions::new())
}

/// Opens a file for printing rows; invalid UTF-8 is allowed.
pub(super) fn open_to_print(source: Arc<dyn ByteSource>) -> Result<File, Failure> {
    opened(source, ReadOptions::new().with_allow_invalid_utf8(true))
}

/// Opens a file; another known format gets a better error message.
fn opened(bytes: Arc<dyn ByteSource>, options: ReadOptions) -> Result<File, Failure> {
    let source = Arc::clone(&bytes);
    let error = match File::from_source(bytes, options) {
        Ok(file) => return Ok(file),
        Err(error) => error,
    };
    let head = source.read_at(Span::first(source.len().min(HEAD_BYTES)));
    let Some(other) = head.ok().and_then(|head| other(&head)) else { return Err(error.into()) };
    let class = tercet::core::Diagnose::class(&error);
    let name = escape::name(source.name()).into_owned();
    let (what, hint) = match other {
        Other::Table(what) => (what, format!("convert it: `tatami convert {name} OUT.tatami`")),
        Other::Packed(what, tool) => (what, format!("decompress it with `{tool}`")),
        Other::Ours(what, verb) => (what, format!("use `{verb} info {name}`")),
    };
    Err(Failure::new(class, format!("{name}: {what}, not a .tatami file")).with_hint(hint))
}

/// Bytes read to detect the format.
const HEAD_BYTES: u64 = 512;

/// A file of another format.
enum Other {
    /// A table format that `convert` reads.
    Table(&'static str),
    /// Compressed data and its decompressor.
    Packed(&'static str, &'static str),
    /// A file of another command.
    Ours(&'static str, &'static str),
}

fn other(head: &[u8]) -> Option<Other> {
    let starts: [(&[u8], Other); 9] = [
        (b"PAR1", Other::Table("a Parquet file")),
        (b"ARROW1", Other::Table("an Arrow file")),
        (b"\xff\xff\xff\xff", Other::Table("an Arrow stream")),
        (b"TETR", Other::Ours("a .tet file", "tet")),
        (b"TENSOGRM", Other::Ours("a .tgm file", "tgm")),
        (b"\x1f\x8b", Other::Packed("gzip-compressed data", "gunzip")),
        (b"\x28\xb5\x2f\xfd", Other::Packed("zstd-compressed data", "unzstd")),
        (b"BZh", Other::Packed("bzip2-compressed data", "bunzip2")),
        (b"PK\x03\x04", Other::Packed("a ZIP archive", "unzip")),
    ];
    if let Some((_, other)) = starts.into_iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some(other);
    }
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let is_text = |byte: &u8| *byte >= 0x20 || byte.is_ascii_whitespace();
    if head.starts_with(b"TAT1") || !text.iter().all(is_text) {
        return None;
    }
    let first_line = text.split(|byte| *byte == b'\n').next()?;
    match text.trim_ascii_start().first()? {
        b'{' => Some(Other::Table("JSON")),
        _ if first_line.len() < text.len() && first_line.contains(&b',') => Some(Other::Table("CSV")),
        _ => None,
    }
}

/// Saturating sum of untrusted numbers.
pub(super) fn total(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}
