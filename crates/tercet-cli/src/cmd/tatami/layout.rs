//! Writer options.

use std::ops::RangeInclusive;

use clap::ValueEnum;
use tercet::tatami::format::Codec;
use tercet::tatami::{Provenance, WriterOptions};

use crate::args::ProfileName;
use crate::compression::{Leveled, leveled};
use crate::failure::Failure;
use crate::render::parse_size;

/// The levels of zstd.
const LEVELS: RangeInclusive<i32> = -7..=22;

/// Writer options of the verbs that write a file.
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
    /// Maximum size of a row group before encoding [default: 128MiB, 256MiB with --profile interop]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    row_group_bytes: Option<u64>,
    /// Maximum rows per page [default: 65536]
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..))]
    page_rows: Option<u32>,
    /// Maximum size of a page before encoding, or 0 for no limit [default: 1MiB, 64KiB in search segments, 0 with --profile interop]
    #[arg(long, value_name = "SIZE", value_parser = short_size)]
    page_bytes: Option<u32>,
    /// Page size recorded in the header [default: that of --page-bytes]
    #[arg(long, value_name = "SIZE", value_parser = short_size)]
    page_size_hint: Option<u32>,
    /// Omit the min and max of each page
    #[arg(long)]
    no_page_statistics: bool,
    /// Maximum size of blob runs; runs of 256KiB with a dictionary are tried too [default: 4MiB, 192KiB in search segments, 1MiB with --profile interop]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    blob_run_bytes: Option<u64>,
    /// Maximum values of a value dictionary; 0 for no dictionaries [default: 1048576]
    #[arg(long, value_name = "N")]
    dictionary_values: Option<u32>,
    /// Maximum size of a value dictionary [default: 16MiB]
    #[arg(long, value_name = "SIZE", value_parser = short_size)]
    dictionary_bytes: Option<u32>,
    /// Do not check that rows are sorted by the sort key. Lookups in an unsorted file miss rows
    #[arg(long)]
    allow_unsorted: bool,
    /// Omit creation time, UUID and creator, for reproducible output
    #[arg(long)]
    reproducible: bool,
    /// File UUID, or `random` [default: random, none with --profile interop]
    #[arg(long, value_name = "UUID", value_parser = parse_uuid)]
    uuid: Option<[u8; 16]>,
    /// Creation time: 2024-06-21T12:00:00Z, milliseconds since 1970, or `now` [default: now, none with --profile interop]
    #[arg(long, value_name = "TIME", value_parser = created)]
    created: Option<u64>,
    /// ID of the creating program [default: that of Tercet, none with --profile interop]
    #[arg(long, value_name = "N")]
    creator: Option<u32>,
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
        return Ok(tercet::core::clock::unix_millis());
    }
    if let Ok(millis) = text.parse() {
        return Ok(millis);
    }
    let wrong = || "expected a time like 2024-06-21T12:00:00Z, milliseconds since 1970, or `now`".to_owned();
    let time: jiff::Timestamp = text.parse().map_err(|_| wrong())?;
    u64::try_from(time.as_millisecond()).map_err(|_| wrong())
}

/// A size of less than 4 GiB.
fn short_size(text: &str) -> Result<u32, String> {
    u32::try_from(parse_size(text)?).map_err(|_| "expected less than 4GiB".to_owned())
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
    pub(super) fn profile(&self) -> ProfileName {
        self.profile
    }

    /// Whether the profile is `interop`.
    #[cfg(feature = "arrow")]
    pub(in crate::cmd::tatami) fn is_interop(&self) -> bool {
        self.profile == ProfileName::Interop
    }

    pub(in crate::cmd::tatami) fn options(&self) -> Result<WriterOptions, Failure> {
        let mut options = self.profile.writer_options();
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
        if self.reproducible {
            options = options.with_provenance(Provenance::Off);
        }
        if self.no_page_statistics {
            options = options.with_inline_bounds(false);
        }
        let WriterOptions {
            row_group_max_rows, row_group_max_bytes, page_max_values, page_max_bytes, ..
        } = options;
        options = options
            .with_row_group_max_rows(self.row_group_rows.unwrap_or(row_group_max_rows))
            .with_row_group_max_bytes(self.row_group_bytes.unwrap_or(row_group_max_bytes))
            .with_page_max_values(self.page_rows.unwrap_or(page_max_values))
            .with_page_max_bytes(self.page_bytes.unwrap_or(page_max_bytes))
            .with_page_size_hint(self.page_size_hint)
            .with_require_sorted(!self.allow_unsorted);
        let WriterOptions { blob_run_target_bytes, dictionary_max_values, dictionary_max_bytes, .. } =
            options;
        options = options
            .with_blob_run_target_bytes(self.blob_run_bytes.unwrap_or(blob_run_target_bytes))
            .with_dictionary_max_values(self.dictionary_values.unwrap_or(dictionary_max_values))
            .with_dictionary_max_bytes(self.dictionary_bytes.unwrap_or(dictionary_max_bytes))
            .with_uuid(self.uuid.unwrap_or_default())
            .with_created_millis(self.created.unwrap_or_default())
            .with_creator_id(self.creator.unwrap_or_default());
        for (key, value) in &self.metadata {
            options = options.with_metadata(key, value);
        }
        Ok(options)
    }
}
