//! `tatami collection append`: append rows as new members.

use serde_json::json;
use tercet::core::escape;
use tercet::core::num::counted;
use tercet::tatami::collection::AppendOptions;

use super::Directory;
use crate::args::JsonArgs;
use crate::cmd::tatami::layout::Layout;
use crate::cmd::tatami::new_rows::{NewRowsArgs, read};
use crate::cmd::tatami::upsert::schema_of;
use crate::failure::Failure;
use crate::render::parse_size;
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    directory: Directory,
    #[command(flatten)]
    rows: NewRowsArgs,
    /// Maximum size of the rows of a member, before compression
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = parse_size)]
    file_size: u64,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    layout: Layout,
}

pub(super) fn run(args: &Args, out: &mut Ui) -> Result<(), Failure> {
    let mut collection = args.directory.open()?;
    super::warn(&args.directory.directory, &collection.replay().warnings, out)?;
    let first = collection.members().first().map(|member| collection.open_member(member)).transpose()?;
    let table = args.rows.open(first.as_ref())?;
    let schema = schema_of(table.fields())?;
    let bar = out.bar("appending", 0);
    let writer = args.layout.options()?;
    let options = AppendOptions::new().with_writer(writer).with_file_bytes(args.file_size);
    let mut append = collection.append(&schema, options)?;
    read(&table, &schema, &bar, |batch| Ok(append.append(&batch.columns)?))?;
    let done = append.finish()?;
    drop(bar);
    if args.json.json {
        let collection = args.directory.json();
        return out.json(&json!({ "collection": collection, "rows": done.rows, "members": done.members }));
    }
    let (rows, members) = (counted(done.rows, "row"), counted(done.members.len() as u64, "new member"));
    let from = escape::name(&args.rows.path().to_string_lossy()).into_owned();
    out.summary(format_args!("{}: appended {rows} of {from} in {members}", args.directory.display()))
}
