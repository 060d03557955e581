//! Input options.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use tercet::convert::tables::{CsvOptions, Nested, OnError, Sample, TextOptions};

use crate::args::{ForceArgs, JsonArgs};
use crate::cmd::tatami::ingest::format::Format;
use crate::failure::Failure;
use crate::input::Input;
use crate::render::parse_size;

/// Output options of the verbs that create a file.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct WriteArgs {
    #[command(flatten)]
    pub(in crate::cmd::tatami) force: ForceArgs,
    #[command(flatten)]
    pub(in crate::cmd::tatami) json: JsonArgs,
    /// Maximum size of standard input, which is buffered in a temporary file
    #[arg(long, value_name = "SIZE", default_value = "64GiB", value_parser = parse_size, display_order = 900)]
    max_stdin: u64,
}

impl WriteArgs {
    /// The input file.
    pub(in crate::cmd::tatami) fn input(&self, path: &Path) -> Input {
        Input { path: path.to_owned(), max_stdin: self.max_stdin }
    }
}

/// Options of text input.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Input")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Text {
    /// CSV delimiter: a character, or `\t` [default: detected]
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    delimiter: Option<u8>,
    /// CSV quote; an empty argument for none [default: detected]
    #[arg(long, value_name = "CHAR", value_parser = quote)]
    quote: Option<Quote>,
    /// The first CSV record has the column names [default: detected]
    #[arg(long, conflicts_with = "no_header")]
    header: bool,
    /// CSV without a header; columns are those of --schema, in order, or column0, column1, …
    #[arg(long)]
    no_header: bool,
    /// Treat this unquoted CSV field as null, like NA. Repeatable
    #[arg(long = "null", value_name = "TEXT")]
    nulls: Vec<String>,
    /// Numbers in CSV have a decimal comma [default: detected]
    #[arg(long)]
    decimal_comma: bool,
    /// Skip the first N lines of CSV, before the header
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    skip: u64,
    /// Skip lines of CSV that start with this character
    #[arg(long, value_name = "CHAR", value_parser = comment)]
    comment: Option<u8>,
    /// Encoding of CSV and JSONL: `windows-1252`, `shift_jis` [default: UTF-8, or UTF-16 with a byte order mark]
    #[arg(long, value_name = "NAME")]
    encoding: Option<String>,
    /// Storage of nested JSON objects, and of structs of Parquet and Arrow
    #[arg(long, value_name = "FORM", default_value = "flatten")]
    nested: NestedName,
    /// Action for records and values that cannot be parsed; `null` replaces the value by null
    #[arg(long, value_name = "ACTION", default_value = "stop")]
    on_error: OnErrorName,
    /// Write the rejected records to this file, as JSON Lines
    #[arg(long, value_name = "FILE")]
    pub(in crate::cmd::tatami) rejects: Option<PathBuf>,
    /// Number of rows per file for type inference, or `all`
    #[arg(long, value_name = "ROWS", default_value = "20000", value_parser = sample)]
    sample: Sample,
    /// Print the inferred schema and write nothing
    #[arg(long)]
    pub(in crate::cmd::tatami) dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NestedName {
    /// One column for each member, named by its path: a.b
    Flatten,
    /// JSON text
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnErrorName {
    Stop,
    Skip,
    Null,
}

/// A quote, or none.
#[derive(Clone, Copy, Debug)]
struct Quote(Option<u8>);

fn quote(text: &str) -> Result<Quote, String> {
    match text.as_bytes() {
        [] => Ok(Quote(None)),
        [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Ok(Quote(Some(*byte))),
        _ => Err("expected one ASCII character, or an empty argument".to_owned()),
    }
}

fn sample(text: &str) -> Result<Sample, String> {
    if text == "all" {
        return Ok(Sample::All);
    }
    match text.parse() {
        Ok(rows @ 1..) => Ok(Sample::Rows(rows)),
        _ => Err("expected a number of rows, or `all`".to_owned()),
    }
}

fn comment(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] if byte.is_ascii_punctuation() && !matches!(byte, b'"' | b',') => Ok(*byte),
        _ => Err("expected one ASCII punctuation character other than a quote or comma".to_owned()),
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err("expected one ASCII character other than a quote, or `\\t`".to_owned()),
    }
}

impl Text {
    /// The options of the library for a format.
    pub(in crate::cmd::tatami) fn options(
        &self,
        format: Format,
        only: Option<Vec<String>>,
    ) -> Result<TextOptions, Failure> {
        let of_csv = [
            ("--delimiter", self.delimiter.is_some()),
            ("--quote", self.quote.is_some()),
            ("--header", self.header),
            ("--no-header", self.no_header),
            ("--null", !self.nulls.is_empty()),
            ("--decimal-comma", self.decimal_comma),
            ("--skip", self.skip > 0),
            ("--comment", self.comment.is_some()),
        ];
        if !matches!(format, Format::Csv | Format::Tsv)
            && let Some((option, _)) = of_csv.iter().find(|(_, is_given)| *is_given)
        {
            return Err(Failure::request(format!("`{option}` applies to CSV only")));
        }
        if !format.is_text() && self.on_error != OnErrorName::Stop {
            return Err(Failure::request("`--on-error` applies to CSV and JSONL only"));
        }
        if !format.is_text() && self.encoding.is_some() {
            return Err(Failure::request("`--encoding` applies to CSV and JSONL only"));
        }
        if self.comment.is_some() && self.comment == self.delimiter {
            return Err(Failure::request("`--comment` and `--delimiter` are the same character"));
        }
        let csv = CsvOptions::new()
            .with_delimiter(self.delimiter)
            .with_quote(self.quote.map(|Quote(quote)| quote))
            .with_header(self.header.then_some(true).or(self.no_header.then_some(false)))
            .with_nulls(self.nulls.clone())
            .with_decimal_comma(self.decimal_comma.then_some(true))
            .with_comment(self.comment)
            .with_skip_lines(self.skip);
        Ok(TextOptions::new()
            .with_csv(csv)
            .with_nested(match self.nested {
                NestedName::Flatten => Nested::Flatten,
                NestedName::Json => Nested::Json,
            })
            .with_on_error(match self.on_error {
                OnErrorName::Stop => OnError::Stop,
                OnErrorName::Skip => OnError::Skip,
                OnErrorName::Null => OnError::Null,
            })
            .with_sample(self.sample)
            .with_encoding(self.encoding.clone())
            .with_only(only))
    }
}
