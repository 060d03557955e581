//! `tatami collection`: many files as one.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;
use tercet::core::escape;
use tercet::tatami::Collection;
use tercet::tatami::collection::{Compacted, ManifestWarning, Member};

use crate::failure::{Failure, Outcome};
use crate::input::must_be_on_disk;
use crate::output::shown;
use crate::ui::{Ui, WARN, paint};

const EXAMPLES: &str = "\
Examples:
  tatami collection add crawl crawl/part-0.tatami crawl/part-1.tatami
  tatami collection list crawl
  tatami collection compact crawl

A collection is a folder with a file `tatami.manifest`, which says what the files in it hold. Files that are written \
anew are added again, which replaces their entries.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Take files in, one after the other
    ///
    /// Only their last bytes are read. A file that was added before takes the place of its old entry.
    Add {
        #[command(flatten)]
        folder: Folder,
        /// Files in the folder of the collection
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// List the files of a collection
    List {
        #[command(flatten)]
        folder: Folder,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Leave files out, all or none; the files themselves stay
    Remove {
        #[command(flatten)]
        folder: Folder,
        /// Files of the collection, by the paths that `list` prints or by their own
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Put a file in a tier
    Tier {
        #[command(flatten)]
        folder: Folder,
        /// A file of the collection
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The tier, from 0 to 255
        #[arg(value_name = "N")]
        tier: u8,
    },
    /// Write the manifest anew, without what was removed and replaced
    Compact {
        #[command(flatten)]
        folder: Folder,
        /// Of a damaged manifest, keep every record that is intact
        #[arg(long)]
        salvage: bool,
    },
}

/// The folder that a collection is in.
#[derive(Clone, Debug, clap::Args)]
struct Folder {
    /// The folder of the collection
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Folder {
    fn open(&self) -> Result<Collection, Failure> {
        self.check()?;
        Ok(Collection::open(&self.folder)?)
    }

    /// Refuses what is no folder: a collection that is not there would look like an empty one.
    fn check(&self) -> Result<(), Failure> {
        must_be_on_disk(&self.folder, "keep a collection in")?;
        let found = std::fs::metadata(&self.folder);
        let meta = found.map_err(|error| Failure::io(&format!("cannot open {}", self.shown()), &error))?;
        if meta.is_dir() {
            return Ok(());
        }
        Err(Failure::request(format!("{}: is no folder", self.shown())))
    }

    fn shown(&self) -> String {
        escape::name(&self.folder.to_string_lossy()).into_owned()
    }
}

/// What `list --json` prints.
#[derive(Serialize)]
struct Told<'a> {
    collection: String,
    members: Vec<ToldMember<'a>>,
    rows: u64,
    bytes: u64,
    records: u64,
    dead_fraction: f64,
    odd: &'a [ManifestWarning],
}

#[derive(Serialize)]
struct ToldMember<'a> {
    path: &'a str,
    id: String,
    rows: u64,
    bytes: u64,
    tier: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    sort_key: Option<ToldKey<'a>>,
    zones: Vec<&'a str>,
    crawls: &'a [String],
    created_millis: u64,
    footer_crc: String,
}

#[derive(Serialize)]
struct ToldKey<'a> {
    column: &'a str,
    min: String,
    max: String,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    match &args.verb {
        Verb::Add { folder, files } => add(folder, files, out)?,
        Verb::List { folder, json } => list(folder, *json, out)?,
        Verb::Remove { folder, files } => {
            let mut collection = folder.open()?;
            warn(&folder.folder, &collection.replay().warnings, out)?;
            for member in collection.remove(files)? {
                out.line(format_args!("removed {}", escape::name(&member.path)))?;
            }
        }
        Verb::Tier { folder, file, tier } => {
            let mut collection = folder.open()?;
            warn(&folder.folder, &collection.replay().warnings, out)?;
            let member = collection.set_tier(file, *tier)?;
            out.line(format_args!("{} is in tier {tier}", escape::name(&member.path)))?;
        }
        Verb::Compact { folder, salvage } => compact(folder, *salvage, out)?,
    }
    Ok(Outcome::Done)
}

/// Each file by itself: what was added before one that fails stays.
fn add(folder: &Folder, files: &[PathBuf], out: &mut Ui) -> Result<(), Failure> {
    let mut collection = folder.open()?;
    warn(&folder.folder, &collection.replay().warnings, out)?;
    for file in files {
        let added = collection.add(&[file])?;
        for member in added {
            out.line(format_args!("added {}", escape::name(&member.path)))?;
        }
    }
    Ok(())
}

fn list(folder: &Folder, json: bool, out: &mut Ui) -> Result<(), Failure> {
    let collection = folder.open()?;
    let (members, replay) = (collection.members(), collection.replay());
    if json {
        return out.json(&Told {
            collection: folder.folder.to_string_lossy().into_owned(),
            members: members.iter().map(told).collect(),
            rows: collection.rows(),
            bytes: collection.bytes(),
            records: replay.records,
            dead_fraction: replay.dead_fraction(),
            odd: &replay.warnings,
        });
    }
    out.line(format_args!("collection: {}", folder.shown()))?;
    out.line(format_args!("members:    {}", members.len()))?;
    out.line(format_args!("rows:       {}", collection.rows()))?;
    out.line(format_args!("bytes:      {}", collection.bytes()))?;
    for member in members {
        let Member { path, rows, bytes, tier, .. } = member;
        let key = match member.sort_column.as_str() {
            "" => String::new(),
            column => {
                let (min, max) = (quoted(&member.sort_min), quoted(&member.sort_max));
                format!(" key[{}]={min}..{max}", escape::name(column))
            }
        };
        out.line(format_args!("  {:<24} rows={rows} bytes={bytes} tier={tier}{key}", escape::name(path)))?;
        let columns = zones(member);
        if !columns.is_empty() {
            let columns: Vec<_> = columns.into_iter().map(escape::name).collect();
            out.line(format_args!("  {:24}   zone summary on: {}", "", columns.join(", ")))?;
        }
    }
    warn(&folder.folder, &replay.warnings, out)
}

fn compact(folder: &Folder, salvage: bool, out: &mut Ui) -> Result<(), Failure> {
    folder.check()?;
    // A damaged manifest cannot be opened: what is in it is found when it is salvaged.
    let mut collection = if salvage { Collection::for_recovery(&folder.folder) } else { folder.open()? };
    let Compacted { live, warnings: odd, .. } = collection.compact(salvage)?;
    warn(&folder.folder, &odd, out)?;
    out.line(format_args!("compacted manifest at {} ({live} live members)", folder.shown()))
}

/// Tells on standard error what was passed over.
pub(super) fn warn(folder: &Path, odd: &[ManifestWarning], out: &mut Ui) -> Result<(), Failure> {
    let (warning, name) = (paint(WARN, "warning:"), shown(folder));
    for odd in odd {
        let told = match odd {
            ManifestWarning::TornTail { offset, bytes } => format!(
                "the last {bytes} bytes of the manifest (from byte {offset}) are no whole record and are passed over: a \
                 change that did not end, or damage"
            ),
            ManifestWarning::UnknownKind { offset, record_kind } => {
                format!(
                    "a record of the unknown kind {record_kind} is passed over (byte {offset} of the manifest)"
                )
            }
            ManifestWarning::Unreadable { offset, reason } => {
                format!(
                    "a record cannot be understood and is passed over (byte {offset} of the manifest): {reason}"
                )
            }
            ManifestWarning::Damaged { offset, bytes } => {
                format!("{bytes} damaged bytes of the manifest (from byte {offset}) are left out")
            }
            // Another program left an entry of what a file was before; nothing is lost.
            _ => continue,
        };
        out.note(format_args!("{warning} {name}: {told}"))?;
    }
    Ok(())
}

fn told(member: &Member) -> ToldMember<'_> {
    let plain = |bytes: &[u8]| if is_text(bytes) { text(bytes) } else { hex(bytes) };
    let sort_key = (!member.sort_column.is_empty()).then(|| ToldKey {
        column: &member.sort_column,
        min: plain(&member.sort_min),
        max: plain(&member.sort_max),
    });
    ToldMember {
        path: &member.path,
        id: hex(&member.id),
        rows: member.rows,
        bytes: member.bytes,
        tier: member.tier,
        sort_key,
        zones: zones(member),
        crawls: &member.crawls,
        created_millis: member.created_millis,
        footer_crc: format!("{:08x}", member.footer_crc),
    }
}

/// The columns whose span is known, by name.
fn zones(member: &Member) -> Vec<&str> {
    let mut columns: Vec<&str> = member.zones.iter().map(|zone| zone.column.as_str()).collect();
    columns.sort_unstable();
    columns
}

fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| (0x20..=0x7e).contains(byte))
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

/// A bound in quotes: text as it is, other bytes in hex.
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
        assert_eq!(quoted("ü".as_bytes()), "\"c3bc\"");
        assert_eq!(quoted(b""), "\"\"");
    }
}
