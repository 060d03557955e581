//! `tatami delete`: documents out of a search segment.

use std::io::BufRead as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tercet::core::escape;
use tercet::tatami::search::{DeleteBy, Deleted, delete};
use tercet::tatami::{Access, File, ReadOptions};

use super::condition::Condition;
use crate::failure::{Failure, Outcome};
use crate::input::must_be_on_disk;
use crate::ui::{Ui, WARN, paint};

/// Identities without a document that are named before it is said how many more there are.
const SHOWN: usize = 10;

const EXAMPLES: &str = "\
Examples:
  tatami delete docs.tatami --id 9f86d081884c7d65         one document
  tatami delete docs.tatami --where 'url prefix \"http://old.example/\"'
  cut -f1 gone.tsv | tatami delete docs.tatami --ids-from -

Documents are marked as deleted in a new file, which takes the place of the old one at once; deletes add up. \
`tatami merge` makes a file without them.
Exit code 0: done; 1: some identity belongs to no document.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The search segment
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The identity (`doc_id`) of a document; may be given several times
    #[arg(long, value_name = "DOC_ID", num_args = 1.., required_unless_present_any = ["condition", "ids_from"])]
    id: Vec<String>,
    /// Documents that fulfil a condition on the columns
    #[arg(long = "where", value_name = "CONDITION", conflicts_with_all = ["id", "ids_from"])]
    condition: Option<Condition>,
    /// A file with an identity on each line; `-` reads standard input
    #[arg(long, value_name = "PATH")]
    ids_from: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Told<'a> {
    file: String,
    #[serde(flatten)]
    deleted: &'a Deleted,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    must_be_on_disk(&args.file, "delete from")?;
    let deleted = match &args.condition {
        Some(condition) => {
            let options = ReadOptions::new().with_access(Access::Pread);
            let condition = condition.of(&File::open_with(&args.file, options)?)?;
            delete(&args.file, &DeleteBy::Filter(&condition))?
        }
        None => delete(&args.file, &DeleteBy::Ids(&identities(args)?))?,
    };
    let name = args.file.to_string_lossy();
    if args.json {
        out.json(&Told { file: name.into_owned(), deleted: &deleted })?;
    } else {
        let (name, all) = (escape::name(&name), deleted.documents);
        out.line(format_args!(
            "{name}: {} deleted, {} of {all} documents left",
            deleted.deleted, deleted.live
        ))?;
        warn(&name, &deleted.not_found, out)?;
    }
    Ok(if deleted.not_found.is_empty() { Outcome::Done } else { Outcome::CheckFailed })
}

fn warn(name: &str, not_found: &[String], out: &mut Ui) -> Result<(), Failure> {
    let warning = paint(WARN, "warning:");
    for id in not_found.iter().take(SHOWN) {
        out.note(format_args!("{warning} {name}: has no document `{}`", escape::name(id)))?;
    }
    let more = not_found.len().saturating_sub(SHOWN);
    if more > 0 {
        out.note(format_args!("{warning} {name}: and {more} more"))?;
    }
    Ok(())
}

fn identities(args: &Args) -> Result<Vec<String>, Failure> {
    let mut ids = args.id.clone();
    if let Some(path) = &args.ids_from {
        ids.extend(lines(path)?);
    }
    ids.sort();
    ids.dedup();
    Ok(ids)
}

/// The lines of a file; empty ones are passed over.
fn lines(path: &Path) -> Result<Vec<String>, Failure> {
    let shown = path.to_string_lossy();
    let failed =
        |error: std::io::Error| Failure::io(&format!("{}: cannot be read", escape::name(&shown)), &error);
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
