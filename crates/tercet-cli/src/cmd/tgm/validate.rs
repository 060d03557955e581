//! `tgm validate`: whether files are well.

use std::sync::Arc;

use tercet::core::ByteSource;
use tercet::tgm::{Depth, FileReport, ValidateOptions, validate_source};

use super::Form;
use crate::failure::{Failure, Outcome};
use crate::input::Inputs;
use crate::ui::Ui;

mod report;

use report::Told;

const EXAMPLES: &str = "\
Examples:
  tgm validate run.tgm              structure, metadata, every hash
  tgm validate --full run.tgm       decode every object too, and look for NaN and infinities
  tgm validate --json *.tgm         a report for programs

Exit code 0: every file is well, warnings allowed; 1: one is not; others: one could not be checked.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    /// Check the structure only
    #[arg(long, group = "depth")]
    quick: bool,
    /// Check the structure and the hashes; decode nothing
    #[arg(long, group = "depth")]
    checksum: bool,
    /// Check everything: structure, metadata, hashes, and the values of every object
    #[arg(long, group = "depth")]
    full: bool,
    /// Warn of CBOR that is not in its canonical form
    #[arg(long)]
    canonical: bool,
    /// Print the reports as a JSON array
    #[arg(short, long)]
    json: bool,
}

impl Args {
    fn depth(&self) -> Depth {
        match self {
            Self { quick: true, .. } => Depth::Quick,
            Self { checksum: true, .. } => Depth::Checksum,
            Self { full: true, .. } => Depth::Full,
            _ => Depth::Default,
        }
    }
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let options = ValidateOptions::new().with_depth(args.depth()).with_canonical(args.canonical);
    let mut all = Vec::new();
    let mut is_ok = true;
    for input in args.inputs.each()? {
        let source = input.source()?;
        let report = check(&source, &options, out)?;
        is_ok &= report.is_ok();
        if args.json {
            all.push((source.name().clone(), report));
        } else {
            report::print(source.name(), &report, out)?;
        }
    }
    if args.json {
        out.json(&all.iter().map(|(name, report)| Told::of(name, report)).collect::<Vec<_>>())?;
    }
    Ok(outcome(is_ok))
}

/// Checks one file that is open already.
pub(crate) fn run_on(
    depth: Depth,
    form: Form,
    source: &Arc<dyn ByteSource>,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let found = check(source, &ValidateOptions::new().with_depth(depth), out)?;
    match form {
        Form::Text => report::print(source.name(), &found, out)?,
        Form::OneLine => out.line(report::one_line(source.name(), &found))?,
        Form::Json => out.json(&[Told::of(source.name(), &found)])?,
    }
    Ok(outcome(found.is_ok()))
}

fn check(source: &Arc<dyn ByteSource>, options: &ValidateOptions, out: &Ui) -> Result<FileReport, Failure> {
    Ok(validate_source(source, options, &out.bar("validating", source.len()))?)
}

fn outcome(is_ok: bool) -> Outcome {
    if is_ok { Outcome::Done } else { Outcome::FoundBad }
}
