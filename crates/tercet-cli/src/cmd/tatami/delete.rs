//! `tatami delete`: delete documents from a search segment.

use std::io::BufRead as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tercet::Format;
use tercet::core::escape;
use tercet::tatami::search::{DeleteBy, DeleteOptions, Deleted, delete};
use tercet::tatami::{Access, File, ReadOptions};

use super::filter::FilterText;
use crate::args::{JsonArgs, limits};
use crate::failure::{Failure, Outcome};
use crate::input::{check_format, must_be_changeable};
use crate::ui::{Ui, WARN, paint};

/// Maximum number of unknown IDs printed.
const MAX_IDS: usize = 10;

const EXAMPLES: &str = "\
Examples:
  tatami delete docs.tatami --id 9f86d081884c7d65         one document
  tatami delete docs.tatami --where 'url prefix \"http://old.example/\"'
  cut -f1 gone.tsv | tatami delete docs.tatami --ids-from -

Documents are marked as deleted; the file is replaced atomically. `tatami merge` writes a file without them.
Exit code 0: success; 1: an ID was not found.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Search segment
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Document ID (`doc_id`). Repeatable
    #[arg(long, value_name = "DOC_ID", num_args = 1.., required_unless_present_any = ["filter", "ids_from"])]
    id: Vec<String>,
    /// Delete the documents that match a filter
    #[arg(long = "where", value_name = "FILTER", conflicts_with_all = ["id", "ids_from"])]
    filter: Option<FilterText>,
    /// Read document IDs from a file, one per line; `-` reads standard input
    #[arg(long, value_name = "PATH")]
    ids_from: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArgs,
}

/// The JSON summary.
#[derive(Serialize)]
struct DeleteJson<'a> {
    file: String,
    #[serde(flatten)]
    deleted: &'a Deleted,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    must_be_changeable(&args.file, "delete from")?;
    check_format(&args.file, Format::Tatami)?;
    let how = DeleteOptions::new().with_limits(limits());
    let deleted = match &args.filter {
        Some(filter) => {
            let options = ReadOptions::new().with_access(Access::Pread).with_limits(limits());
            let predicate = filter.bind_to(&File::open_with(&args.file, options)?)?;
            delete(&args.file, &DeleteBy::Filter(&predicate), how)?
        }
        None => delete(&args.file, &DeleteBy::Ids(&document_ids(args)?), how)?,
    };
    let name = args.file.to_string_lossy();
    if args.json.json {
        out.json(&DeleteJson { file: name.into_owned(), deleted: &deleted })?;
    } else {
        let (name, all) = (escape::name(&name), deleted.documents);
        out.summary(format_args!(
            "{name}: deleted {}, {} of {all} documents left",
            deleted.deleted, deleted.live
        ))?;
        warn(&name, &deleted.not_found, out)?;
    }
    Ok(if deleted.not_found.is_empty() { Outcome::Done } else { Outcome::CheckFailed })
}

fn warn(name: &str, not_found: &[String], out: &mut Ui) -> Result<(), Failure> {
    let warning = paint(WARN, "warning:");
    for id in not_found.iter().take(MAX_IDS) {
        out.note(format_args!("{warning} {name}: no document `{}`", escape::name(id)))?;
    }
    let more = not_found.len().saturating_sub(MAX_IDS);
    if more > 0 {
        out.note(format_args!("{warning} {name}: and {more} more"))?;
    }
    Ok(())
}

fn document_ids(args: &Args) -> Result<Vec<String>, Failure> {
    let mut ids = args.id.clone();
    if let Some(path) = &args.ids_from {
        ids.extend(lines(path)?);
    }
    ids.sort();
    ids.dedup();
    Ok(ids)
}

/// The non-empty lines of a file.
fn lines(path: &Path) -> Result<Vec<String>, Failure> {
    let display = path.to_string_lossy();
    let failed =
        |error: std::io::Error| Failure::io(&format!("{}: cannot read", escape::name(&display)), &error);
    let bytes: Box<dyn std::io::BufRead> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let opened = std::fs::OpenOptions::new().read(true).open(path).map_err(failed)?;
        Box::new(std::io::BufReader::new(opened))
    };
    let mut out = Vec::new();
    for line in bytes.lines() {
        let line = line.map_err(failed)?;
        let id = line.trim_end_matches('\r');
        if !id.is_empty() {
            out.push(id.to_owned());
        }
    }
    Ok(out)
}
