//! `tatami delete`: delete documents of a search segment, or rows of a file or collection.

use std::io::BufRead as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tercet::Format;
use tercet::core::escape;
use tercet::core::num::counted;
use tercet::tatami::change::{RowsDeleted, delete_rows};
use tercet::tatami::search::{DeleteBy, DeleteOptions, Deleted, delete};
use tercet::tatami::{Access, File, ReadOptions};

use super::collection_scan;
use super::filter::FilterText;
use super::layout::Layout;
use crate::args::{JsonArgs, limits};
use crate::failure::{Failure, Outcome};
use crate::input::{Input, check_format, must_be_changeable};
use crate::ui::{Ui, WARN, paint};

/// Maximum number of unknown IDs printed.
const MAX_IDS: usize = 10;

const EXAMPLES: &str = "\
Examples:
  tatami delete docs.tatami --id 9f86d081884c7d65         one document
  tatami delete docs.tatami --where 'url prefix \"http://old.example/\"'
  tatami delete crawl.tatami --where 'status = 404'       rows of a file
  tatami delete crawl --where 'status = 404'              rows of a collection
  cut -f1 gone.tsv | tatami delete docs.tatami --ids-from -

Documents of a search segment and rows of a collection are marked as deleted; `tatami merge` writes a file without them. \
Other files are rewritten without the rows. The change is atomic.
Exit code 0: success; 1: an ID was not found.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// File, or directory of a collection
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Document ID (`doc_id`). Repeatable
    #[arg(long, value_name = "DOC_ID", num_args = 1.., required_unless_present_any = ["filter", "ids_from"])]
    id: Vec<String>,
    /// Delete the documents or rows that match a filter
    #[arg(long = "where", value_name = "FILTER", conflicts_with_all = ["id", "ids_from"])]
    filter: Option<FilterText>,
    /// Read document IDs from a file, one per line; `-` reads standard input
    #[arg(long, value_name = "PATH")]
    ids_from: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    layout: Layout,
}

/// The JSON summary of deleted rows.
#[derive(Serialize)]
struct RowsJson {
    file: String,
    #[serde(flatten)]
    deleted: RowsDeleted,
}

/// The JSON summary.
#[derive(Serialize)]
struct DeleteJson<'a> {
    file: String,
    #[serde(flatten)]
    deleted: &'a Deleted,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    if let Some(mut collection) = collection_scan::collection(&Input::new(&args.file), out)? {
        let filter = rows_filter(args)?;
        let deleted = match collection_scan::first_of(&collection)? {
            Some(first) => {
                let filter = filter.bind_to(&first)?;
                let bar = out.bar("deleting", 0);
                collection.delete_rows(&filter, &bar)?
            }
            None => RowsDeleted::default(),
        };
        return show_rows(args, deleted, out);
    }
    must_be_changeable(&args.file, "delete from")?;
    check_format(&args.file, Format::Tatami)?;
    let options = ReadOptions::new().with_access(Access::Pread).with_limits(limits());
    let file = File::open_with(&args.file, options)?;
    if file.footer().inverted.is_none() && args.filter.is_some() {
        let filter = rows_filter(args)?.bind_to(&file)?;
        drop(file);
        let bar = out.bar("deleting", 0);
        let deleted = delete_rows(&args.file, &filter, options, args.layout.options()?, &bar)?;
        drop(bar);
        return show_rows(args, deleted, out);
    }
    let how = DeleteOptions::new().with_limits(limits());
    let deleted = match &args.filter {
        Some(filter) => {
            let predicate = filter.bind_to(&file)?;
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

/// The filter of deleted rows; rows have no document ID.
fn rows_filter(args: &Args) -> Result<&FilterText, Failure> {
    let missing =
        || Failure::request("rows of a collection are deleted by a filter").with_hint("add `--where FILTER`");
    args.filter.as_ref().ok_or_else(missing)
}

fn show_rows(args: &Args, deleted: RowsDeleted, out: &mut Ui) -> Result<Outcome, Failure> {
    let name = args.file.to_string_lossy();
    if args.json.json {
        out.json(&RowsJson { file: name.into_owned(), deleted })?;
    } else {
        let (name, rows) = (escape::name(&name), counted(deleted.deleted, "row"));
        out.summary(format_args!("{name}: deleted {rows}, {} left", deleted.rows))?;
    }
    Ok(Outcome::Done)
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
