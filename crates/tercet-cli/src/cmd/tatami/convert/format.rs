//! Table formats.

use std::path::Path;

use clap::ValueEnum;
use serde::Serialize;
use tercet::arrow::{self, read};
use tercet::convert::tables::{self, NonText, TextFormat};
use tercet::core::{ByteSource, Class, Span, escape};

use crate::failure::Failure;
use crate::input::binary_format;
use crate::persona::command_for;

/// Table formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Format {
    Tatami,
    Parquet,
    /// Arrow IPC file format
    Arrow,
    /// Arrow IPC streaming format
    ArrowStream,
    Csv,
    /// Tab-separated values
    Tsv,
    Jsonl,
}

impl Format {
    /// The name in the summary.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tatami => "tatami",
            Self::Parquet => "parquet",
            Self::Arrow | Self::ArrowStream => "arrow",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Jsonl => "jsonl",
        }
    }

    /// The format of the Arrow library, if it is one.
    pub(super) const fn in_arrow(self) -> Option<arrow::Format> {
        match self {
            Self::Parquet => Some(arrow::Format::Parquet),
            Self::Arrow => Some(arrow::Format::ArrowFile),
            Self::ArrowStream => Some(arrow::Format::ArrowStream),
            Self::Tatami | Self::Csv | Self::Tsv | Self::Jsonl => None,
        }
    }

    /// Whether files of the format are text.
    pub(super) const fn is_text(self) -> bool {
        matches!(self, Self::Csv | Self::Tsv | Self::Jsonl)
    }

    /// The delimiter of text formats.
    pub(super) const fn delimiter(self) -> Option<u8> {
        match self {
            Self::Csv => Some(b','),
            Self::Tsv => Some(b'\t'),
            _ => None,
        }
    }

    /// The format of text input, of which only some columns may be read.
    pub(super) fn in_text(self, only: Option<Vec<String>>) -> Option<TextFormat> {
        if let Some(delimiter) = self.delimiter() {
            return Some(TextFormat::Csv { delimiter, has_header: true, nulls: Vec::new() });
        }
        (self == Self::Jsonl).then_some(TextFormat::Jsonl { only })
    }

    fn by_name(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_string_lossy().to_ascii_lowercase();
        Some(match extension.as_str() {
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

    /// The given format, or the one of the file extension.
    pub(super) fn for_output(given: Option<Self>, path: &Path) -> Result<Self, Failure> {
        given.or_else(|| Self::by_name(path)).ok_or_else(|| {
            let message = format!(
                "{}: cannot infer the output format from the file name",
                crate::output::display_path(path)
            );
            let names = "tatami, parquet, arrow, arrow-stream, csv, tsv or jsonl";
            Failure::request(message).with_hint(format!("add `--to FORMAT`: {names}"))
        })
    }

    /// The given format, or the detected one; text formats by file extension.
    pub(super) fn detect(given: Option<Self>, path: &Path, source: &dyn ByteSource) -> Result<Self, Failure> {
        if let Some(given) = given {
            return Ok(given);
        }
        let head = read::head(source)?;
        if head.starts_with(b"TAT1") {
            return Ok(Self::Tatami);
        }
        if let Some(format) = tercet::detect(&head) {
            let message = format!("{}: is a {format} file, not a table", escape::name(source.name()));
            let failure = Failure::new(Class::Unsupported, message).with_location(&**source.name());
            return Err(failure.with_hint(format!("use `{}`", command_for(format, source.name()))));
        }
        match read::detect(&head) {
            Some(arrow::Format::Parquet) => return Ok(Self::Parquet),
            Some(arrow::Format::ArrowFile) => return Ok(Self::Arrow),
            Some(arrow::Format::ArrowStream) => return Ok(Self::ArrowStream),
            None => {}
        }
        if let Some(text) = Self::by_name(path).filter(|format| format.is_text()) {
            return Ok(text);
        }
        if source.is_empty() {
            return Err(Failure::request(format!("{}: empty file", escape::name(source.name()))));
        }
        let start = source.read_at(Span::first(source.len().min(4096)));
        let start = start.map_err(|error| Failure::source(source.name(), error))?;
        if let Some(found) = NonText::detect(&start) {
            let error = tables::Error::new(source.name().clone(), tables::ErrorKind::NonText(found));
            return Err(error.into());
        }
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start);
        let is_text =
            !start.is_empty() && !start.iter().any(|byte| *byte < 0x20 && !byte.is_ascii_whitespace());
        match start.trim_ascii_start().first() {
            Some(b'{') if is_text => Ok(Self::Jsonl),
            Some(_) if is_text => Ok(Self::Csv),
            _ => {
                let name = escape::name(source.name());
                let supported = "supported: .tatami, Parquet, Arrow IPC, CSV and JSONL";
                let (message, hint) = match binary_format(start) {
                    Some(format) => {
                        (format!("{name}: is {format}, which is not supported"), supported.to_owned())
                    }
                    None => (
                        format!("{name}: unknown file format"),
                        format!("{supported}; set it with `--from-format FORMAT`"),
                    ),
                };
                Err(Failure::new(Class::Unsupported, message).with_hint(hint))
            }
        }
    }
}
