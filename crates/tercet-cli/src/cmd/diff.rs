//! `tercet diff` and `tercet hash`: contents of files of any format.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tercet::convert::content_hash::{content_hash, hash_arrays};
use tercet::convert::diff::{Aspect, Diff, DiffError, DiffOptions, diff, diff_arrays};
use tercet::core::{ByteSource, escape};

use crate::args::{JsonArgs, LimitArgs, read_options};
use crate::cmd::convert::{open, open_store};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::{display_path, json_path};
use crate::run::{error_message, error_value};
use crate::ui::{GOOD, Ui, WARN, paint};

const EXAMPLES: &str = "\
Examples:
  tercet diff era5.nc era5.tet               the same contents in two formats?
  tercet diff old.tgm new.tgm                messages: metadata and values
  tercet diff a.tet b.tet --rtol 1e-6        floats within a tolerance
  tercet diff a.parquet b.tatami             tables: columns and rows

Exit code 0: no difference; 1: the files differ; others: they could not be compared.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("limit", |arg| arg.help("Print at most N different values of each variable or column; 0 prints all [default: 5]")))]
pub(crate) struct Args {
    /// First file, directory or URL
    #[arg(value_name = "A")]
    left: PathBuf,
    /// Second file, directory or URL
    #[arg(value_name = "B")]
    right: PathBuf,
    /// Relative tolerance of numbers: |a - b| <= ATOL + RTOL * |b|
    #[arg(long, value_name = "RTOL", default_value = "0", value_parser = tolerance)]
    rtol: f64,
    /// Absolute tolerance of numbers
    #[arg(long, value_name = "ATOL", default_value = "0", value_parser = tolerance)]
    atol: f64,
    /// Ignore attributes and message metadata; compare names, types, shapes and values
    #[arg(long)]
    no_metadata: bool,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    json: JsonArgs,
}

fn tolerance(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0);
    value.ok_or_else(|| "expected a number that is not negative".to_owned())
}

#[derive(Serialize)]
struct DiffJson<'a> {
    left: String,
    right: String,
    equal: bool,
    #[serde(flatten)]
    diff: &'a Diff,
}

impl From<DiffError> for Failure {
    fn from(error: DiffError) -> Self {
        match error {
            DiffError::Table(error) => error.into(),
            DiffError::Arrays(error) => error.into(),
            other => Self::request(other.to_string()),
        }
    }
}

/// Opens a file that is not a store.
fn source(path: &Path) -> Result<Arc<dyn ByteSource>, Failure> {
    Input::new(path).source()
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let mut options = DiffOptions::new();
    (options.rtol, options.atol, options.metadata) = (args.rtol, args.atol, !args.no_metadata);
    options.read = read_options();
    options.max_examples = usize::try_from(args.limit.or(5)).unwrap_or(usize::MAX);
    let bar = out.bar("comparing", 0);
    let stores = (open_store(&args.left)?, open_store(&args.right)?);
    let found = if let (None, None) = stores {
        diff(&source(&args.left)?, &source(&args.right)?, &options, &bar)?
    } else {
        let array = |store: Option<_>, path: &Path| store.map_or_else(|| open(path), Ok);
        diff_arrays(&*array(stores.0, &args.left)?, &*array(stores.1, &args.right)?, &options, &bar)?
    };
    drop(bar);
    let outcome = if found.is_empty() { Outcome::Done } else { Outcome::CheckFailed };
    if args.json.json {
        let (left, right) = (json_path(&args.left), json_path(&args.right));
        out.json(&DiffJson { left, right, equal: found.is_empty(), diff: &found })?;
        return Ok(outcome);
    }
    for difference in &found.differences {
        let aspect = match difference.aspect {
            Aspect::Structure => "structure",
            Aspect::Metadata => "metadata",
            Aspect::Values => "values",
        };
        let (name, detail) = (escape::name(&difference.name), escape::name(&difference.detail));
        out.line(format_args!("{}  {name}: {detail}", paint(WARN, format_args!("{aspect:9}"))))?;
        for example in &difference.examples {
            let (left, right) = (escape::name(&example.left), escape::name(&example.right));
            out.line(format_args!("             {:?}: {left} and {right}", example.position))?;
        }
    }
    if found.is_empty() {
        out.summary(format_args!("{}", paint(GOOD, "no differences")))?;
    } else {
        let count = found.differences.len();
        out.summary(format_args!("{count} difference{}", if count == 1 { "" } else { "s" }))?;
    }
    Ok(outcome)
}

const HASH_EXAMPLES: &str = "\
Examples:
  tercet hash era5.nc era5.tet era5.zarr     equal for equal contents

The hash is BLAKE3 over the names, types, shapes and values of all variables, or over the columns of a table. Attributes, chunks and
compression do not count. A file that cannot be read is reported and does not stop the others; the exit code is the highest.";

#[derive(Debug, clap::Args)]
#[command(after_help = HASH_EXAMPLES)]
pub(crate) struct HashArgs {
    /// Files, directories or URLs
    #[arg(value_name = "FILES", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Serialize)]
struct HashJson {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<serde_json::Value>,
}

pub(crate) fn hash(args: &HashArgs, out: &mut Ui) -> Result<Outcome, Failure> {
    let mut all = Vec::new();
    let mut worst = 0;
    for path in &args.files {
        match hash_one(path, out) {
            Ok(hash) if args.json.json => {
                all.push(HashJson { file: json_path(path), hash: Some(hash), error: None });
            }
            Ok(hash) => out.line(format_args!("{hash}  {}", display_path(path)))?,
            // One file that cannot be read does not stop the others.
            Err(failure @ Failure::Error(_)) if args.files.len() > 1 => {
                if args.json.json {
                    let error = error_value(&failure, &display_path(path));
                    let error = error.and_then(|value| value.get("error").cloned());
                    all.push(HashJson { file: json_path(path), hash: None, error });
                } else if let Some(message) = error_message(&failure, out.is_verbose()) {
                    out.note(message)?;
                }
                worst = worst.max(failure.exit_code());
            }
            Err(failure) => return Err(failure),
        }
    }
    if args.json.json {
        out.json(&all)?;
    }
    Ok(if worst == 0 { Outcome::Done } else { Outcome::Exit(worst) })
}

fn hash_one(path: &Path, out: &Ui) -> Result<String, Failure> {
    let bar = out.bar("hashing", 0);
    let hash = match open_store(path)? {
        Some(store) => hash_arrays(&*store, &bar)?,
        None => content_hash(&source(path)?, read_options(), &bar)?,
    };
    Ok(hash.to_string())
}
