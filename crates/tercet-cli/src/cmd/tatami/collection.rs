//! `tatami collection`: manage a collection of files.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;
use serde_json::json;
use tercet::Format;
use tercet::core::num::counted;
use tercet::core::{Class, Diagnostic as _, SourceError, escape};
use tercet::tatami::collection::{Compacted, ManifestWarning, Member};
use tercet::tatami::{Access, Collection, LogicalType, ReadOptions, Scalar, Type, WriterOptions};

use super::layout::Layout;
use super::scalars;
use crate::args::{ForceArgs, JsonArgs, LimitArgs, limits};
use crate::cmd::tgm::ReportFormat;
use crate::failure::{Failure, Outcome};
use crate::input::{check_format, must_be_on_disk};
use crate::output::display_path;
use crate::ui::{Ui, WARN, paint};

mod append;

const EXAMPLES: &str = "\
Examples:
  tatami collection add crawl crawl/part-0.tatami crawl/part-1.tatami
  tatami collection list crawl
  zcat new.jsonl.gz | tatami collection append crawl --from -
  tatami collection merge crawl -o crawl/all.tatami
  tatami collection verify crawl

A collection is a directory with a `tatami.manifest` file that summarizes its members. Add a rewritten file again to \
update its entry.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Add files
    ///
    /// Reads the footers only. Adding a member again updates its entry.
    Add {
        #[command(flatten)]
        directory: Directory,
        /// Files in the directory of the collection
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// List the members
    #[command(mut_arg("limit", |arg| arg.help("List at most N members; 0 lists all [default: 0]")))]
    List {
        #[command(flatten)]
        directory: Directory,
        #[command(flatten)]
        json: JsonArgs,
        #[command(flatten)]
        limit: LimitArgs,
    },
    /// Remove members from the manifest; the files are not deleted
    Remove {
        #[command(flatten)]
        directory: Directory,
        /// Members, by the paths that `list` prints or file paths
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Set the tier of a member: a number for your own use, such as a storage class
    Tier {
        #[command(flatten)]
        directory: Directory,
        /// Member file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Tier, 0 to 255; new members have tier 0
        #[arg(value_name = "N")]
        tier: u8,
    },
    /// Append rows of JSONL or CSV as new members
    ///
    /// Each new member is visible when it is written; an interrupted append leaves those written so far.
    Append(append::Args),
    /// Merge members into one file, without deleted rows
    ///
    /// The new file replaces its inputs in the manifest in one step. The old files are not deleted.
    Merge {
        #[command(flatten)]
        directory: Directory,
        /// Members [default: all]
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
        /// New member, in the directory of the collection
        #[arg(short, long, value_name = "OUT")]
        output: PathBuf,
        #[command(flatten)]
        force: ForceArgs,
        #[command(flatten)]
        json: JsonArgs,
        #[command(flatten)]
        layout: Layout,
    },
    /// Verify the manifest, deleted rows and all members
    Verify {
        #[command(flatten)]
        directory: Directory,
        /// Also decode all values
        #[arg(long)]
        deep: bool,
        #[command(flatten)]
        json: JsonArgs,
        /// Print a one-line summary
        #[arg(short, long)]
        quiet: bool,
    },
    /// Rewrite the manifest without removed and replaced records
    Compact {
        #[command(flatten)]
        directory: Directory,
        /// Keep all intact records of a damaged manifest
        #[arg(long)]
        salvage: bool,
    },
}

/// Members are not mapped: other programs may change them at any time.
pub(super) fn options() -> ReadOptions {
    ReadOptions::new().with_access(Access::Pread).with_limits(limits())
}

/// The directory of a collection.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Directory {
    /// Directory of the collection
    #[arg(value_name = "DIR")]
    pub(super) directory: PathBuf,
}

impl Directory {
    pub(super) fn open(&self) -> Result<Collection, Failure> {
        self.check()?;
        Ok(Collection::open_with(&self.directory, options())?)
    }

    /// Rejects a path that is not a directory: a missing collection would look empty.
    pub(super) fn check(&self) -> Result<(), Failure> {
        must_be_on_disk(&self.directory, "keep a collection in")?;
        let found = std::fs::metadata(&self.directory);
        let meta = found.map_err(|error| Failure::source(&self.json(), SourceError::Open(error)))?;
        if meta.is_dir() {
            return Ok(());
        }
        Err(Failure::request(format!("{}: not a directory", self.display())))
    }

    /// The path for JSON.
    pub(super) fn json(&self) -> String {
        self.directory.to_string_lossy().into_owned()
    }

    pub(super) fn display(&self) -> String {
        escape::name(&self.directory.to_string_lossy()).into_owned()
    }
}

/// The JSON of `list`.
#[derive(Serialize)]
struct ListJson<'a> {
    collection: String,
    members: Vec<MemberJson<'a>>,
    rows: u64,
    bytes: u64,
    records: u64,
    dead_fraction: f64,
    warnings: &'a [ManifestWarning],
}

#[derive(Serialize)]
struct MemberJson<'a> {
    path: &'a str,
    id: String,
    rows: u64,
    bytes: u64,
    tier: u8,
    /// Deleted rows that the file still has.
    #[serde(skip_serializing_if = "is_zero")]
    deleted: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sort_key: Option<KeyJson<'a>>,
    zones: Vec<&'a str>,
    crawls: &'a [String],
    created_millis: u64,
    footer_crc: String,
}

#[derive(Serialize)]
struct KeyJson<'a> {
    column: &'a str,
    min: String,
    max: String,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    match &args.verb {
        Verb::Add { directory, files } => add(directory, files, out)?,
        Verb::List { directory, json, limit } => list(directory, json.json, limit.or(0), out)?,
        Verb::Remove { directory, files } => {
            let mut collection = directory.open()?;
            warn(&directory.directory, &collection.replay().warnings, out)?;
            let removed = collection.remove(files)?;
            if out.is_json() {
                let paths: Vec<&str> = removed.iter().map(|member| member.path.as_str()).collect();
                out.json(&json!({ "collection": directory.json(), "removed": paths }))?;
            } else {
                for member in &removed {
                    out.summary(format_args!("removed {}", escape::name(&member.path)))?;
                }
            }
        }
        Verb::Tier { directory, file, tier } => {
            let mut collection = directory.open()?;
            warn(&directory.directory, &collection.replay().warnings, out)?;
            let member = collection.set_tier(file, *tier)?;
            if out.is_json() {
                let path = &member.path;
                out.json(&json!({ "collection": directory.json(), "path": path, "tier": tier }))?;
            } else {
                out.summary(format_args!("{}: tier {tier}", escape::name(&member.path)))?;
            }
        }
        Verb::Compact { directory, salvage } => compact(directory, *salvage, out)?,
        Verb::Append(args) => append::run(args, out)?,
        Verb::Merge { directory, files, output, force, json, layout } => {
            let options = layout.options()?.with_overwrite(force.force);
            merge(directory, files, output, options, json.json, out)?;
        }
        Verb::Verify { directory, deep, json, quiet } => {
            directory.check()?;
            out.hush(*quiet);
            return super::verify::run_on_collection(
                *deep,
                ReportFormat::new(json.json, *quiet),
                &directory.directory,
                out,
            );
        }
    }
    Ok(Outcome::Done)
}

/// Adds files one by one: files before a failing one stay added.
fn add(directory: &Directory, files: &[PathBuf], out: &mut Ui) -> Result<(), Failure> {
    let mut collection = directory.open()?;
    warn(&directory.directory, &collection.replay().warnings, out)?;
    let mut paths = Vec::new();
    for file in files {
        let added = match collection.add(&[file]) {
            Ok(added) => added,
            Err(error) => {
                if error.class() == Class::Malformed {
                    check_format(file, Format::Tatami)?;
                }
                return Err(error.into());
            }
        };
        for member in added {
            if !out.is_json() {
                out.summary(format_args!("added {}", escape::name(&member.path)))?;
            }
            paths.push(member.path.clone());
        }
    }
    if out.is_json() {
        return out.json(&json!({ "collection": directory.json(), "added": paths }));
    }
    Ok(())
}

/// Prints members and columns.
pub(super) fn inspect(directory: &Path, json: bool, out: &mut Ui) -> Result<Outcome, Failure> {
    let directory = Directory { directory: directory.to_owned() };
    list(&directory, json, u64::MAX, out)?;
    let schema = if json { None } else { directory.open()?.schema()? };
    if let Some(schema) = schema {
        out.line("columns:")?;
        for field in schema.fields() {
            let null = if field.nullable { ", nullable" } else { "" };
            let key = if field.sort_key { ", sort key" } else { "" };
            out.line(format_args!("  {:<20} {}{null}{key}", escape::name(&field.name), field.kind))?;
        }
    }
    Ok(Outcome::Done)
}

/// Prints at most `most` members; the sums are those of all.
fn list(directory: &Directory, json: bool, most: u64, out: &mut Ui) -> Result<(), Failure> {
    let collection = directory.open()?;
    let (members, replay) = (collection.members(), collection.replay());
    let shown = usize::try_from(most).unwrap_or(usize::MAX);
    let key_type = key_type(&collection);
    if json {
        return out.json(&ListJson {
            collection: directory.json(),
            members: members.iter().take(shown).map(|member| member_json(member, key_type)).collect(),
            rows: collection.rows(),
            bytes: collection.bytes(),
            records: replay.records,
            dead_fraction: replay.dead_fraction(),
            warnings: &replay.warnings,
        });
    }
    out.line(format_args!("collection: {}", directory.display()))?;
    out.line(format_args!("members:    {}", members.len()))?;
    out.line(format_args!("rows:       {}", collection.rows()))?;
    out.line(format_args!("bytes:      {}", collection.bytes()))?;
    for member in members.iter().take(shown) {
        let Member { path, rows, bytes, tier, deleted, .. } = member;
        let deleted = match deleted.len() {
            0 => String::new(),
            deleted => format!(" deleted={deleted}"),
        };
        let key = match member.sort_column.as_str() {
            "" => String::new(),
            column => {
                let bound = |bytes: &[u8]| match key_text(member, bytes, key_type) {
                    Some(text) => text,
                    None => quoted(bytes),
                };
                let (min, max) = (bound(&member.sort_min), bound(&member.sort_max));
                format!(" key[{}]={min}..{max}", escape::name(column))
            }
        };
        out.line(format_args!(
            "  {:<24} rows={rows} bytes={bytes} tier={tier}{deleted}{key}",
            escape::name(path)
        ))?;
        let columns = zones(member);
        if !columns.is_empty() {
            let columns: Vec<_> = columns.into_iter().map(escape::name).collect();
            out.line(format_args!("  {:24}   zone summary on: {}", "", columns.join(", ")))?;
        }
    }
    warn(&directory.directory, &replay.warnings, out)
}

fn merge(
    directory: &Directory,
    files: &[PathBuf],
    output: &Path,
    options: WriterOptions,
    json: bool,
    out: &mut Ui,
) -> Result<(), Failure> {
    let mut collection = directory.open()?;
    collection.check_records()?;
    warn(&directory.directory, &collection.replay().warnings, out)?;
    let files = match files {
        [] => collection.members().iter().map(|member| PathBuf::from(&member.path)).collect(),
        files => files.to_vec(),
    };
    if files.is_empty() {
        return Err(Failure::request(format!("{}: the collection is empty", directory.display())));
    }
    if !options.overwrite && output.exists() {
        let message = format!("{}: file exists", display_path(output));
        return Err(Failure::request(message).with_hint("add `--force` to overwrite it"));
    }
    let deleted = collection.deleted_rows();
    let bar = out.bar("merging", 0);
    let member = collection.merge(&files, output, options, &bar)?;
    drop(bar);
    let deleted = deleted.saturating_sub(collection.deleted_rows());
    let (path, rows) = (&member.path, member.rows);
    if json {
        let merged = json!({ "collection": directory.json(), "output": path, "members": files.len(),
            "rows": rows, "bytes": member.bytes, "deleted": deleted });
        return out.json(&merged);
    }
    let dropped = if deleted == 0 { String::new() } else { format!(", {deleted} deleted dropped") };
    let (rows, members) = (counted(rows, "row"), counted(files.len() as u64, "member"));
    out.summary(format_args!("{}: {rows} of {members}{dropped}", escape::name(path)))
}

fn compact(directory: &Directory, salvage: bool, out: &mut Ui) -> Result<(), Failure> {
    directory.check()?;
    // A damaged manifest cannot be opened, only salvaged.
    let mut collection =
        if salvage { Collection::for_recovery(&directory.directory, options()) } else { directory.open()? };
    let Compacted { live, warnings, .. } = collection.compact(salvage)?;
    warn(&directory.directory, &warnings, out)?;
    if out.is_json() {
        return out.json(&json!({ "collection": directory.json(), "members": live }));
    }
    out.summary(format_args!(
        "compacted manifest at {} ({})",
        directory.display(),
        counted(live, "live member")
    ))
}

/// Warns about skipped records of the manifest.
pub(super) fn warn(directory: &Path, warnings: &[ManifestWarning], out: &mut Ui) -> Result<(), Failure> {
    let (warning, name) = (paint(WARN, "warning:"), display_path(directory));
    for found in warnings {
        // A stale entry of a replaced file is harmless.
        if matches!(found, ManifestWarning::Superseded { .. }) {
            continue;
        }
        out.note(format_args!("{warning} {name}: {found}"))?;
    }
    Ok(())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "called by serde")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The logical type of the sort key, if a member has one and can be opened: the manifest has stored types.
fn key_type(collection: &Collection) -> Option<LogicalType> {
    let member = collection.members().iter().find(|member| !member.sort_column.is_empty())?;
    let file = collection.open_member(member).ok()?;
    let column = file.schema().index_of(&member.sort_column)?;
    let natural = (member.sort_kind() == Some(Type::TimestampMicros)).then_some(LogicalType::UTC);
    file.logical_types().get(column).copied().flatten().or(natural)
}

/// A bound of the sort key by its type; `None` for strings and bytes.
fn key_text(member: &Member, bytes: &[u8], logical_type: Option<LogicalType>) -> Option<String> {
    let kind = member.sort_kind()?;
    let value = Scalar::from_bytes(kind, bytes)?;
    let is_plain =
        matches!(kind, Type::String | Type::Bytes) && logical_type.is_none_or(LogicalType::is_text);
    (!is_plain).then(|| scalars::display(kind, logical_type, &value))
}

fn member_json(member: &Member, key_type: Option<LogicalType>) -> MemberJson<'_> {
    let plain = |bytes: &[u8]| match key_text(member, bytes, key_type) {
        Some(text) => text,
        None if is_text(bytes) => text(bytes),
        None => hex(bytes),
    };
    let sort_key = (!member.sort_column.is_empty()).then(|| KeyJson {
        column: &member.sort_column,
        min: plain(&member.sort_min),
        max: plain(&member.sort_max),
    });
    MemberJson {
        path: &member.path,
        id: hex(&member.id),
        rows: member.rows,
        bytes: member.bytes,
        tier: member.tier,
        deleted: member.deleted.len(),
        sort_key,
        zones: zones(member),
        crawls: &member.crawls,
        created_millis: member.created_millis,
        footer_crc: format!("{:08x}", member.footer_crc),
    }
}

/// The columns with a zone summary.
fn zones(member: &Member) -> Vec<&str> {
    let mut columns: Vec<&str> = member.zones.iter().map(|zone| zone.column.as_str()).collect();
    columns.sort_unstable();
    columns
}

/// Whether bytes are text that is printed as it is.
fn is_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| matches!(escape::name(text), std::borrow::Cow::Borrowed(_)))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A bound in quotes: text, or hex.
fn quoted(bytes: &[u8]) -> String {
    if !is_text(bytes) {
        return format!("\"{}\"", hex(bytes));
    }
    format!("\"{}\"", text(bytes).replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_text_or_hex_in_quotes() {
        assert_eq!(quoted(b"key-1"), "\"key-1\"");
        assert_eq!(quoted(br#"a"\b"#), r#""a\"\\b""#);
        assert_eq!(quoted(&[0x2a, 0]), "\"2a00\"");
        assert_eq!(quoted("Zürich".as_bytes()), "\"Zürich\"");
        assert_eq!(quoted(b"Z\xfcrich"), "\"5afc72696368\"");
        assert_eq!(quoted("\u{9b}".as_bytes()), "\"c29b\"");
        assert_eq!(quoted(b""), "\"\"");
    }
}
