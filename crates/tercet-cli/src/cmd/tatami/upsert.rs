//! `tatami upsert`: insert rows, or replace those with the same key.

use std::path::PathBuf;

use serde::Serialize;
use tercet::Format;
use tercet::core::escape;
use tercet::core::num::counted;
use tercet::tatami::change::{FileUpsert, UpsertOptions, Upserted};
use tercet::tatami::collection::AppendOptions;
use tercet::tatami::{Access, ReadOptions};

use super::collection_scan;
use super::layout::Layout;
use super::new_rows::NewRowsArgs;
use crate::args::{JsonArgs, limits};
use crate::failure::{Failure, Outcome};
use crate::input::{Input, check_format, must_be_changeable};
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tatami upsert cities.tatami --key id --from new.jsonl
  tatami upsert crawl --key url --from today.csv          a collection
  tatami upsert crawl --key url --from 'new/*.parquet'
  zcat new.jsonl.gz | tatami upsert crawl --key url --from -

New rows are CSV, TSV, JSONL, Parquet, Arrow IPC or .tatami. New rows replace rows with the same key; of new rows with the same key, the last one wins. A file is rewritten and replaced \
atomically. In a collection, new rows become new members, and replaced rows are marked as deleted; `tatami collection merge` \
drops them. Columns are those of the file; the key is not null and has no float, list or blob type.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// File, or directory of a collection
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Column that identifies rows
    #[arg(long, value_name = "COLUMN")]
    key: String,
    #[command(flatten)]
    rows: NewRowsArgs,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    layout: Layout,
}

/// The JSON summary.
#[derive(Serialize)]
struct UpsertJson {
    file: String,
    #[serde(flatten)]
    upserted: Upserted,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let writer = args.layout.options()?;
    let upserted = if let Some(mut collection) = collection_scan::collection(&Input::new(&args.file), out)? {
        let mut rows = args.rows.open(collection_scan::first_of(&collection)?.as_ref())?;
        let bar = out.bar("upserting", 0);
        let options = AppendOptions::new().with_writer(rows.annotated(writer));
        let mut upsert = collection.upsert(&args.key, rows.schema(), options)?;
        rows.read(&bar, |columns| Ok(upsert.append(columns)?))?;
        let upserted = upsert.finish(&bar)?;
        drop(bar);
        rows.warn(out)?;
        upserted
    } else {
        must_be_changeable(&args.file, "upsert into")?;
        check_format(&args.file, Format::Tatami)?;
        let read_options = ReadOptions::new().with_access(Access::Pread).with_limits(limits());
        let options = UpsertOptions::new().with_read(read_options).with_writer(writer);
        let mut upsert = FileUpsert::open(&args.file, &args.key, options)?;
        let mut rows = args.rows.open(Some(upsert.file()))?;
        let bar = out.bar("upserting", 0);
        rows.read(&bar, |columns| Ok(upsert.append(columns)?))?;
        let upserted = upsert.finish(&bar)?;
        drop(bar);
        rows.warn(out)?;
        upserted
    };
    let name = args.file.to_string_lossy();
    if args.json.json {
        out.json(&UpsertJson { file: name.into_owned(), upserted })?;
        return Ok(Outcome::Done);
    }
    let Upserted { upserted, replaced, duplicates, rows, .. } = upserted;
    let mut text =
        format!("{}: upserted {}, {replaced} replaced", escape::name(&name), counted(upserted, "row"));
    if duplicates > 0 {
        text = format!("{text}, {} in the input dropped", counted(duplicates, "duplicate"));
    }
    out.summary(format_args!("{text}, {} now", counted(rows, "row")))?;
    Ok(Outcome::Done)
}
