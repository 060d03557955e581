//! Table formats, detected by content.

use std::io::Read as _;
use std::sync::Arc;

use tercet_core::{ByteSource, Span};

use super::chunks::decompressed;
use super::decode::by_mark;
use super::error::{Error, ErrorKind, NonText};

/// Table file formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the documentation")]
#[non_exhaustive]
pub enum TableFormat {
    Tatami,
    Parquet,
    /// Arrow IPC file format.
    Arrow,
    /// Arrow IPC streaming format.
    ArrowStream,
    /// Values with a delimiter: comma, semicolon, tab, bar.
    Csv,
    /// Tab-separated values.
    Tsv,
    /// One JSON object per line.
    Jsonl,
}

impl TableFormat {
    /// Whether files of the format are text.
    pub const fn is_text(self) -> bool {
        matches!(self, Self::Csv | Self::Tsv | Self::Jsonl)
    }

    /// The format of a file extension; that of `a.csv.gz` is `csv`.
    pub fn for_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let name = [".gz", ".zst", ".zstd"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
        let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
        Some(match file.rsplit_once('.')?.1 {
            "tatami" => Self::Tatami,
            "parquet" | "pq" => Self::Parquet,
            "arrow" | "feather" | "ipc" => Self::Arrow,
            "arrows" => Self::ArrowStream,
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "jsonl" | "ndjson" | "json" => Self::Jsonl,
            _ => return None,
        })
    }
}

/// Compression of a whole file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the documentation")]
#[non_exhaustive]
pub enum Compression {
    #[default]
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// The compression of a file extension: `.gz`, `.zst`, `.zstd`.
    pub fn for_name(name: &str) -> Self {
        match name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).as_deref() {
            Some("gz") => Self::Gzip,
            Some("zst" | "zstd") => Self::Zstd,
            _ => Self::None,
        }
    }

    fn detect(head: &[u8]) -> Self {
        match NonText::detect(head) {
            Some(NonText::Gzip) => Self::Gzip,
            Some(NonText::Zstd) => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// Bytes read for detection.
const HEAD_LEN: u64 = 4096;

/// The format and compression of an input, and its first bytes, decompressed.
#[derive(Clone, Debug)]
pub struct Detected {
    /// The format; `None` if it is unknown.
    pub format: Option<TableFormat>,
    /// The compression of the file.
    pub compression: Compression,
    /// The first bytes, decompressed.
    pub head: Vec<u8>,
}

/// Detects the format of an input by its first bytes. The name decides only between text formats.
pub fn detect(source: &Arc<dyn ByteSource>) -> Result<Detected, Error> {
    let named = |kind| Error::new(Arc::clone(source.name()), kind);
    let head = source.read_at(Span::first(source.len().min(HEAD_LEN)));
    let head = head.map_err(|error| named(ErrorKind::Read(std::io::Error::other(error))))?;
    let compression = Compression::detect(&head);
    let head = if compression == Compression::None {
        head.to_vec()
    } else {
        let (input, _) =
            decompressed(Arc::clone(source), compression).map_err(|error| named(ErrorKind::Read(error)))?;
        let mut head = Vec::new();
        input.take(HEAD_LEN).read_to_end(&mut head).map_err(|error| named(ErrorKind::Read(error)))?;
        head
    };
    let wide = by_mark(&head).map(|encoding| encoding.decode(&head).0.into_owned().into_bytes());
    let by_name = TableFormat::for_name(source.name()).filter(|format| format.is_text());
    let format = match NonText::detect(&head) {
        Some(NonText::Tatami) => Some(TableFormat::Tatami),
        Some(NonText::Parquet) => Some(TableFormat::Parquet),
        Some(NonText::Arrow) => Some(TableFormat::Arrow),
        _ => match &*head {
            // The length of the schema message is not zero.
            [0xff, 0xff, 0xff, 0xff, a, b, c, 0, ..] if [a, b, c] != [&0, &0, &0] => {
                Some(TableFormat::ArrowStream)
            }
            _ => by_name.or_else(|| text_format(wide.as_deref().unwrap_or(&head))),
        },
    };
    Ok(Detected { format, compression, head })
}

/// The text format of the first bytes; `None` if they are not text.
fn text_format(head: &[u8]) -> Option<TableFormat> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let is_text = !head.iter().any(|byte| *byte < 0x20 && !byte.is_ascii_whitespace());
    match head.trim_ascii_start().first()? {
        b'{' if is_text => Some(TableFormat::Jsonl),
        _ if is_text && NonText::detect(head).is_none() => Some(TableFormat::Csv),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use tercet_core::source::Memory;

    use super::*;

    fn found(name: &str, bytes: &[u8]) -> (Option<TableFormat>, Compression) {
        let source: Arc<dyn ByteSource> = Arc::new(Memory::new(name, bytes.to_vec()));
        let detected = detect(&source).unwrap();
        (detected.format, detected.compression)
    }

    #[test]
    fn content_decides_and_names_choose_between_text_formats() {
        let plain = Compression::None;
        assert_eq!(found("a.csv", b"PAR1...."), (Some(TableFormat::Parquet), plain));
        assert_eq!(found("a.parquet", b"a,b\n"), (Some(TableFormat::Csv), plain));
        assert_eq!(found("a.tsv", b"a\n"), (Some(TableFormat::Tsv), plain));
        assert_eq!(found("rows", b" {\"a\":1}\n"), (Some(TableFormat::Jsonl), plain));
        assert_eq!(found("rows", b"\0\x01"), (None, plain));
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"{\"a\":1}\n").unwrap();
        assert_eq!(found("rows.gz", &gzip.finish().unwrap()), (Some(TableFormat::Jsonl), Compression::Gzip));
        let zstd = zstd::encode_all(&b"a,b\n"[..], 1).unwrap();
        assert_eq!(found("a.csv.zst", &zstd), (Some(TableFormat::Csv), Compression::Zstd));
        let zstd = zstd::encode_all(&b"PAR1...."[..], 1).unwrap();
        assert_eq!(found("a.csv.zst", &zstd), (Some(TableFormat::Parquet), Compression::Zstd));
    }
}
