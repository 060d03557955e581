//! Table formats.

use std::path::Path;
use std::sync::Arc;

use clap::ValueEnum;
use serde::Serialize;
#[cfg(feature = "arrow")]
use tercet::arrow;
use tercet::convert::tables::{self, NonText, TableFormat};
use tercet::core::{ByteSource, Class, escape};

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
    pub(in crate::cmd::tatami) const fn name(self) -> &'static str {
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
    #[cfg(feature = "arrow")]
    pub(in crate::cmd::tatami) const fn in_arrow(self) -> Option<arrow::Format> {
        match self {
            Self::Parquet => Some(arrow::Format::Parquet),
            Self::Arrow => Some(arrow::Format::ArrowFile),
            Self::ArrowStream => Some(arrow::Format::ArrowStream),
            Self::Tatami | Self::Csv | Self::Tsv | Self::Jsonl => None,
        }
    }

    /// Whether files of the format are text.
    pub(in crate::cmd::tatami) const fn is_text(self) -> bool {
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

    /// The format of the library.
    pub(in crate::cmd::tatami) const fn in_library(self) -> TableFormat {
        match self {
            Self::Tatami => TableFormat::Tatami,
            Self::Parquet => TableFormat::Parquet,
            Self::Arrow => TableFormat::Arrow,
            Self::ArrowStream => TableFormat::ArrowStream,
            Self::Csv => TableFormat::Csv,
            Self::Tsv => TableFormat::Tsv,
            Self::Jsonl => TableFormat::Jsonl,
        }
    }

    const fn from_library(format: TableFormat) -> Option<Self> {
        Some(match format {
            TableFormat::Tatami => Self::Tatami,
            TableFormat::Parquet => Self::Parquet,
            TableFormat::Arrow => Self::Arrow,
            TableFormat::ArrowStream => Self::ArrowStream,
            TableFormat::Csv => Self::Csv,
            TableFormat::Tsv => Self::Tsv,
            TableFormat::Jsonl => Self::Jsonl,
            _ => return None,
        })
    }

    #[cfg(feature = "arrow")]
    fn by_name(path: &Path) -> Option<Self> {
        TableFormat::for_name(&path.to_string_lossy()).and_then(Self::from_library)
    }

    /// The given format, or the one of the file extension.
    #[cfg(feature = "arrow")]
    pub(in crate::cmd::tatami) fn for_output(given: Option<Self>, path: &Path) -> Result<Self, Failure> {
        given.or_else(|| Self::by_name(path)).ok_or_else(|| {
            let message = format!(
                "{}: cannot infer the output format from the file name",
                crate::output::display_path(path)
            );
            let names = "tatami, parquet, arrow, arrow-stream, csv, tsv or jsonl";
            Failure::request(message).with_hint(format!("add `--to FORMAT`: {names}"))
        })
    }

    /// The given format, or the detected one. An empty file with a declared schema is a table without rows.
    pub(super) fn detect(
        given: Option<Self>,
        source: &Arc<dyn ByteSource>,
        has_schema: bool,
    ) -> Result<Self, Failure> {
        let name = escape::name(source.name());
        if let Some(given) = given {
            return Ok(given);
        }
        let detected = tables::detect(source)?;
        if let Some(format) = tercet::detect(&detected.head)
            && format != tercet::Format::Tatami
        {
            let message = format!("{name}: is a {format} file, not a table");
            let failure = Failure::new(Class::Unsupported, message).with_location(&**source.name());
            return Err(failure.with_hint(format!("use `{}`", command_for(format, source.name()))));
        }
        if let Some(format) = detected.format.and_then(Self::from_library) {
            return Ok(format);
        }
        if source.is_empty() && has_schema {
            return Ok(Self::Jsonl);
        }
        if source.is_empty() {
            let error = tables::Error::new(Arc::clone(source.name()), tables::ErrorKind::Empty);
            return Err(error.into());
        }
        if let Some(found) = NonText::detect(&detected.head) {
            let error = tables::Error::new(Arc::clone(source.name()), tables::ErrorKind::NonText(found));
            return Err(error.into());
        }
        let supported = "supported: .tatami, Parquet, Arrow IPC, CSV and JSONL";
        let (message, hint) = match binary_format(&detected.head) {
            Some(format) => (format!("{name}: is {format}, which is not supported"), supported.to_owned()),
            None => (
                format!("{name}: unknown file format"),
                format!("{supported}; set it with `--from-format FORMAT`"),
            ),
        };
        Err(Failure::new(Class::Unsupported, message).with_hint(hint))
    }
}
