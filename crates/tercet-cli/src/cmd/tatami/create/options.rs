//! Input and writer options.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use tercet::convert::tables::{CsvOptions, Nested, OnError, Sample, TextOptions};
use tercet::tatami::WriterOptions;
use tercet::tatami::format::Codec;

use crate::args::{ForceArgs, JsonArgs, ProfileName};
use crate::cmd::tatami::ingest::format::Format;
use crate::compression::{Leveled, leveled};
use crate::failure::Failure;
use crate::input::Input;
use crate::render::parse_size;

/// The levels of zstd.
const LEVELS: RangeInclusive<i32> = -7..=22;

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
    /// How nested JSON objects are stored
    #[arg(long, value_name = "FORM", default_value = "flatten")]
    nested: NestedName,
    /// What to do with records and values that cannot be read; `null` stores null in place of a value
    #[arg(long, value_name = "ACTION", default_value = "stop")]
    on_error: OnErrorName,
    /// Write the rejected records to this file, as JSON Lines
    #[arg(long, value_name = "FILE")]
    pub(in crate::cmd::tatami) rejects: Option<PathBuf>,
    /// Rows of each file from which types are inferred first, or `all`
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
        ];
        if !matches!(format, Format::Csv | Format::Tsv)
            && let Some((option, _)) = of_csv.iter().find(|(_, is_given)| *is_given)
        {
            return Err(Failure::request(format!("`{option}` applies to CSV only")));
        }
        if !format.is_text() && self.on_error != OnErrorName::Stop {
            return Err(Failure::request("`--on-error` applies to CSV and JSONL only"));
        }
        let csv = CsvOptions::new()
            .with_delimiter(self.delimiter)
            .with_quote(self.quote.map(|Quote(quote)| quote))
            .with_header(self.header.then_some(true).or(self.no_header.then_some(false)))
            .with_nulls(self.nulls.clone())
            .with_decimal_comma(self.decimal_comma.then_some(true));
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
            .with_only(only))
    }
}

/// Writer options.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "File")]
pub(crate) struct Layout {
    /// Output profile; `interop` writes only features that other readers support
    #[arg(long, value_name = "PROFILE", default_value = "native")]
    profile: ProfileName,
    /// Page compression; `zstd` has levels -7 to 22: `zstd:9` [default level: 3]
    #[arg(long, alias = "codec", value_name = "CODEC[:LEVEL]", default_value = "zstd", value_parser = leveled::<CodecName>())]
    compression: Leveled<CodecName>,
    /// The former spelling of the level of `--compression zstd:LEVEL`
    #[arg(long, value_name = "LEVEL", allow_negative_numbers = true, hide = true, value_parser = clap::value_parser!(i32).range(-7..=22))]
    level: Option<i32>,
    /// Maximum rows per row group [default: 131072]
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    row_group_rows: Option<u64>,
    /// Maximum rows per page [default: 65536]
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..))]
    page_rows: Option<u32>,
    /// File UUID, or `random` [default: none]
    #[arg(long, value_name = "UUID", value_parser = parse_uuid)]
    uuid: Option<[u8; 16]>,
    /// Creation time: 2024-06-21T12:00:00Z, milliseconds since 1970, or `now` [default: none]
    #[arg(long, value_name = "TIME", value_parser = created)]
    created: Option<u64>,
    /// Set footer metadata: `source=crawl`. Repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    metadata: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CodecName {
    None,
    Lz4,
    Zstd,
}

fn parse_uuid(text: &str) -> Result<[u8; 16], String> {
    if text == "random" {
        return Ok(uuid::Uuid::new_v4().into_bytes());
    }
    text.parse::<uuid::Uuid>()
        .map(uuid::Uuid::into_bytes)
        .map_err(|_| "expected a UUID like 00112233-4455-6677-8899-aabbccddeeff, or `random`".to_owned())
}

fn created(text: &str) -> Result<u64, String> {
    if text == "now" {
        // Reproducible builds set the time.
        return Ok(tercet::tet::unix_seconds().saturating_mul(1000));
    }
    if let Ok(millis) = text.parse() {
        return Ok(millis);
    }
    let wrong = || "expected a time like 2024-06-21T12:00:00Z, milliseconds since 1970, or `now`".to_owned();
    let time: jiff::Timestamp = text.parse().map_err(|_| wrong())?;
    u64::try_from(time.as_millisecond()).map_err(|_| wrong())
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    if key.is_empty() {
        return Err("empty key".to_owned());
    }
    if key.starts_with("tatami.") {
        return Err("keys that start with `tatami.` are reserved".to_owned());
    }
    Ok((key.to_owned(), value.to_owned()))
}

impl Layout {
    /// Whether the profile is `interop`.
    #[cfg(feature = "arrow")]
    pub(in crate::cmd::tatami) fn is_interop(&self) -> bool {
        self.profile == ProfileName::Interop
    }

    pub(in crate::cmd::tatami) fn options(&self) -> Result<WriterOptions, Failure> {
        let mut options = match self.profile {
            ProfileName::Native => WriterOptions::new(),
            ProfileName::Interop => WriterOptions::interop(),
        };
        let Leveled { codec, level } = self.compression;
        options = options.with_codec(match codec {
            CodecName::None => Codec::None,
            CodecName::Lz4 => Codec::Lz4,
            CodecName::Zstd => Codec::Zstd,
        });
        if level.is_some() && self.level.is_some() {
            return Err(Failure::request("the compression level is given twice"));
        }
        if let Some(level) = level.or(self.level) {
            if codec != CodecName::Zstd {
                return Err(Failure::request("only `--compression zstd` has levels"));
            }
            if !LEVELS.contains(&level) {
                let failure = Failure::request(format!("zstd has no level {level}"));
                return Err(failure.with_hint("levels are -7 to 22"));
            }
            options = options.with_level(level);
        }
        if let Some(rows) = self.row_group_rows {
            options = options.with_row_group_max_rows(rows);
        }
        if let Some(rows) = self.page_rows {
            options = options.with_page_max_values(rows);
        }
        if let Some(uuid) = self.uuid {
            options = options.with_uuid(uuid);
        }
        if let Some(millis) = self.created {
            options = options.with_created_millis(millis);
        }
        for (key, value) in &self.metadata {
            options = options.with_metadata(key, value);
        }
        Ok(options)
    }
}
