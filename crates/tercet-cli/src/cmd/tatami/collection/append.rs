//! `tatami collection append`: append rows as new members.

use serde_json::json;
use tercet::core::num::counted;
use tercet::tatami::collection::AppendOptions;

use super::Directory;
use crate::args::JsonArgs;
use crate::cmd::tatami::layout::Layout;
use crate::cmd::tatami::new_rows::NewRowsArgs;
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
    let mut rows = args.rows.open(first.as_ref())?;
    let bar = out.bar("appending", 0);
    let writer = rows.annotated(args.layout.options()?);
    let options = AppendOptions::new().with_writer(writer).with_file_bytes(args.file_size);
    let mut append = collection.append(rows.schema(), options)?;
    rows.read(&bar, |columns| Ok(append.append(columns)?))?;
    let done = append.finish()?;
    drop(bar);
    rows.warn(out)?;
    if args.json.json {
        let collection = args.directory.json();
        return out.json(&json!({ "collection": collection, "rows": done.rows, "members": done.members }));
    }
    let (rows, members) = (counted(done.rows, "row"), counted(done.members.len() as u64, "new member"));
    let from = args.rows.names();
    out.summary(format_args!("{}: appended {rows} of {from} in {members}", args.directory.display()))
}
