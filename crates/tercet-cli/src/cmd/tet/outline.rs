//! `tet outline`: a file as a tree of named bytes.

use std::sync::Arc;

use tercet::core::{ByteSource, Outline, escape};
use tercet::tet::OpenOptions;

use super::report::warn_of_gaps;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::ui::{DIM, HEADING, Ui, paint};

/// Values longer than this are cut in text; `--json` has them whole.
const VALUE_CHARS: usize = 100;

const EXAMPLES: &str = "\
Examples:
  tet outline era5.tet          every field with its bytes and its value
  tet outline era5.tet -n 0     every row of the chunk index
  tet outline era5.tet --json   for programs";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Print the tree as JSON
    #[arg(long)]
    json: bool,
    /// Print at most ROWS rows of a table; 0 means all
    #[arg(short = 'n', long, value_name = "ROWS", default_value_t = 32)]
    limit: u64,
    /// Draw a file whose checksums are wrong
    #[arg(long)]
    ignore_checksums: bool,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    run_on(args, args.input.source()?, out)
}

pub(crate) fn run_on(args: &Args, source: Arc<dyn ByteSource>, out: &mut Ui) -> Result<Outcome, Failure> {
    let options = OpenOptions::new().with_ignore_checksums(args.ignore_checksums);
    let file = options.open_source(source)?;
    warn_of_gaps(&file, out)?;
    let outline = file.outline((args.limit > 0).then_some(args.limit))?;
    if args.json {
        out.json(&outline)?;
    } else {
        print(&outline, out)?;
    }
    Ok(Outcome::Done)
}

fn print(outline: &Outline, out: &mut Ui) -> Result<(), Failure> {
    let (mut spans, mut lens, mut names) = ("bytes".len(), "length".len(), 0);
    outline.walk(&mut |depth, node| {
        spans = spans.max(node.span.to_string().len());
        lens = lens.max(node.span.len().to_string().len());
        if node.parts.is_empty() {
            names = names.max(2 * depth + escape::name(&node.name).chars().count());
        }
    });
    let mut lines = vec![paint(DIM, format_args!("{:<spans$}  {:>lens$}  field", "bytes", "length"))];
    outline.walk(&mut |depth, node| {
        let place = format!("{:<spans$}  {:>lens$}", node.span.to_string(), node.span.len());
        let indent = " ".repeat(2 * depth);
        let name = escape::name(&node.name);
        lines.push(match &node.value {
            Some(value) => {
                let width = names.saturating_sub(indent.len());
                format!("{place}  {indent}{name:<width$}  {}", short(value))
            }
            None => format!("{place}  {indent}{}", paint(HEADING, name)),
        });
    });
    lines.into_iter().try_for_each(|line| out.line(line))
}

fn short(value: &str) -> String {
    let value = escape::name(value);
    match value.char_indices().nth(VALUE_CHARS) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.into_owned(),
    }
}
