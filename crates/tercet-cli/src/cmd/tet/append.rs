//! `tet append`.

use std::path::PathBuf;

use tercet::Format;
use tercet::core::Diagnose as _;
use tercet::tet::{self, HistoryRow, Rewrite};

use super::arrays::{self, Arrays, Opened, SCOPES, Whole};
use super::written::Written;
use crate::args::JsonArgs;
use crate::failure::{Failure, Outcome};
use crate::input::{check_format, must_be_changeable};
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
#[command(after_long_help = SCOPES)]
pub(crate) struct Args {
    /// File to modify
    #[arg(value_name = "FILE")]
    path: PathBuf,
    #[command(flatten)]
    arrays: Arrays,
    #[command(flatten)]
    whole: Whole,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    must_be_changeable(&args.path, "append to")?;
    check_format(&args.path, Format::Tet)?;
    // Before locking: reading standard input may take long.
    let opened = args.arrays.open(out)?;
    let mut rewrite = Rewrite::open(&args.path).map_err(hint_to_create)?;
    let ids = arrays::plan(&opened, rewrite.layout())?;
    args.whole.apply(rewrite.layout())?;
    let history = HistoryRow::now("append", &args.arrays.origin());
    let total = rewrite.file().len().saturating_add(arrays::total_bytes(&opened));
    let bar = out.bar("writing", total);
    let mut writer = rewrite.start(history, args.whole.style().options(), &bar)?;
    arrays::store(&opened, &ids, &mut writer, &bar)?;
    writer.finish()?;
    drop(bar);
    let names: Vec<&str> = opened.iter().map(Opened::name).collect();
    Written::read(&args.path, &names)?.show(args.json.json, out)?;
    Ok(Outcome::Done)
}

fn hint_to_create(error: tet::Error) -> Failure {
    let missing = error.is_not_found();
    let failure = Failure::from(error);
    if missing { failure.with_hint("create a new file with `tet create`") } else { failure }
}
