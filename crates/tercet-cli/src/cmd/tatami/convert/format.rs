//! What a table is written in.

use std::path::Path;

use clap::ValueEnum;
use serde::Serialize;
use tercet::arrow::{self, read};
use tercet::core::{ByteSource, Class, Span, escape};

use crate::cmd::tatami::create::text::not_text;
use crate::failure::Failure;

/// The formats of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Format {
    Tatami,
    Parquet,
    /// Arrow IPC, the form for files
    Arrow,
    /// Arrow IPC, the form for streams
    ArrowStream,
    Csv,
    /// Values with tabs between them
    Tsv,
    Jsonl,
}

impl Format {
    /// Its name in the summary.
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

    /// The same for the library of tables, where it is one of its formats.
    pub(super) const fn in_arrow(self) -> Option<arrow::Format> {
        match self {
            Self::Parquet => Some(arrow::Format::Parquet),
            Self::Arrow => Some(arrow::Format::ArrowFile),
            Self::ArrowStream => Some(arrow::Format::ArrowStream),
            Self::Tatami | Self::Csv | Self::Tsv | Self::Jsonl => None,
        }
    }

    /// What stands between values, where lines hold them.
    pub(super) const fn delimiter(self) -> Option<u8> {
        match self {
            Self::Csv => Some(b','),
            Self::Tsv => Some(b'\t'),
            _ => None,
        }
    }

    fn by_name(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_string_lossy().to_ascii_lowercase();
        Some(match ending.as_str() {
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

    /// What the user said, or what the ending of the name says.
    pub(super) fn of_output(said: Option<Self>, path: &Path) -> Result<Self, Failure> {
        said.or_else(|| Self::by_name(path)).ok_or_else(|| {
            let said = format!("{}: its name does not tell what it is to be", crate::output::shown(path));
            let names = "tatami, parquet, arrow, arrow-stream, csv, tsv or jsonl";
            Failure::request(said).with_hint(format!("tell it: `--to FORMAT` with {names}"))
        })
    }

    /// What the user said, what the first bytes say, or, of texts, what the ending of the name says.
    pub(super) fn of_input(
        said: Option<Self>,
        path: &Path,
        source: &dyn ByteSource,
    ) -> Result<Self, Failure> {
        if let Some(said) = said {
            return Ok(said);
        }
        let head = read::head(source)?;
        if head.starts_with(b"TAT1") {
            return Ok(Self::Tatami);
        }
        match read::detect(&head) {
            Some(arrow::Format::Parquet) => return Ok(Self::Parquet),
            Some(arrow::Format::ArrowFile) => return Ok(Self::Arrow),
            Some(arrow::Format::ArrowStream) => return Ok(Self::ArrowStream),
            None => {}
        }
        if let Some(text @ (Self::Csv | Self::Tsv | Self::Jsonl)) = Self::by_name(path) {
            return Ok(text);
        }
        if source.is_empty() {
            return Err(Failure::request(format!("{}: is empty", escape::name(source.name()))));
        }
        let start = source.read_at(Span::first(source.len().min(4096)));
        let start = start.map_err(|error| Failure::source(source.name(), error))?;
        if let Some((what, hint)) = not_text(&start) {
            let said = format!("{}: {what}", escape::name(source.name()));
            return Err(Failure::new(Class::Unsupported, said).with_hint(hint));
        }
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start);
        let is_text =
            !start.is_empty() && !start.iter().any(|byte| *byte < 0x20 && !byte.is_ascii_whitespace());
        match start.trim_ascii_start().first() {
            Some(b'{') if is_text => Ok(Self::Jsonl),
            Some(_) if is_text => Ok(Self::Csv),
            _ => {
                let name = escape::name(source.name());
                let said = format!("{name}: its first bytes are those of no table that is known");
                let hint =
                    "known are .tatami, Parquet, Arrow IPC, CSV and JSONL; tell it: `--from-format FORMAT`";
                Err(Failure::new(Class::Unsupported, said).with_hint(hint))
            }
        }
    }
}
