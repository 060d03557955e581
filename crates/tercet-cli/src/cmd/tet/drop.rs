//! `tet drop`.

use std::path::PathBuf;

use serde::Serialize;
use tercet::Format;
use tercet::core::escape;
use tercet::tet::{File, HistoryRow, Rewrite};

use super::arrays::{Style, short_list};
use crate::args::{JsonArgs, read_options};
use crate::failure::{Failure, Outcome};
use crate::input::{check_format, must_be_changeable};
use crate::render::human_size;
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File to modify
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Datasets to remove
    #[arg(value_name = "DATASET", required = true)]
    datasets: Vec<String>,
    #[command(flatten)]
    style: Style,
    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Debug, Serialize)]
struct Change<'a> {
    path: String,
    dropped: &'a [String],
    dataset_count: usize,
    bytes_before: u64,
    bytes: u64,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    must_be_changeable(&args.path, "drop from")?;
    check_format(&args.path, Format::Tet)?;
    let mut rewrite = Rewrite::open_with(&args.path, read_options())?;
    for name in &args.datasets {
        rewrite.drop_dataset(name)?;
    }
    let bytes_before = rewrite.file().len();
    let history = HistoryRow::now("drop", &short_list(args.datasets.iter().cloned()));
    let bar = out.bar("writing", bytes_before);
    rewrite.start(history, args.style.options(), &bar)?.finish()?;
    drop(bar);
    let file = File::open_with(&args.path, read_options())?;
    let change = Change {
        path: args.path.to_string_lossy().into_owned(),
        dropped: &args.datasets,
        dataset_count: file.datasets().len(),
        bytes_before,
        bytes: file.len(),
    };
    if args.json.json {
        out.json(&change)?;
    } else {
        change.show(out)?;
    }
    Ok(Outcome::Done)
}

impl Change<'_> {
    fn show(&self, out: &mut Ui) -> Result<(), Failure> {
        let names: Vec<String> =
            self.dropped.iter().map(|name| format!("`{}`", escape::name(name))).collect();
        let left = match self.dataset_count {
            0 => "no datasets left".to_owned(),
            1 => "1 dataset left".to_owned(),
            count => format!("{count} datasets left"),
        };
        out.summary(format_args!(
            "{}: dropped {}; {left}, {} (before: {})",
            escape::name(&self.path),
            names.join(", "),
            human_size(self.bytes),
            human_size(self.bytes_before),
        ))
    }
}
