//! `tgm validate`: whether files are well.

use std::path::PathBuf;
use std::sync::Arc;

use tercet::core::{ByteSource, escape};
use tercet::tgm::{Depth, FileReport, ValidateOptions, validate_source};

use super::Form;
use super::pipeline::bound;
use super::place::{Place, place};
use crate::failure::{Failure, Outcome};
use crate::input::{Input, Inputs};
use crate::output::shown;
use crate::ui::Ui;

mod against;
mod report;

use against::Comparison;
use report::Told;

const EXAMPLES: &str = "\
Examples:
  tgm validate run.tgm              structure, metadata, every hash
  tgm validate --full run.tgm       decode every object too, and look for NaN and infinities
  tgm validate --json *.tgm         a report for programs
  tgm validate run.tgm --against t2m.npy --message 0.0 --max-error 0.01

Exit code 0: every file is well, warnings allowed; 1: one is not, or the bound does not hold; others: one \
could not be checked.";

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
    #[command(flatten)]
    against: Against,
}

/// The array that an object was made from.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Comparing with an original")]
struct Against {
    /// Compare an object with the NumPy file that it was made from: shape and values, as float64 where one side is
    /// that and the other a narrower type
    #[arg(long = "against", value_name = "FILE.npy")]
    original: Option<PathBuf>,
    /// Which object, messages and objects counted from 0: `3.1`. Without it, the only one of message 0
    #[arg(long = "message", value_name = "MSG[.OBJ]", value_parser = place, requires = "original")]
    place: Option<Place>,
    /// Which object, by its name: the first that has it
    #[arg(long, value_name = "NAME", requires = "original", conflicts_with = "place")]
    name: Option<String>,
    /// The largest error that is allowed; without it the one that the metadata of the object records, or else 0
    #[arg(long, value_name = "E", allow_negative_numbers = true, value_parser = bound, requires = "original")]
    max_error: Option<f64>,
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

/// A file, and what was found.
struct Checked {
    source: Arc<dyn ByteSource>,
    report: FileReport,
    comparison: Option<Comparison>,
}

impl Checked {
    fn is_ok(&self) -> bool {
        self.report.is_ok() && self.comparison.as_ref().is_none_or(Comparison::holds)
    }

    fn print(&self, out: &mut Ui) -> Result<(), Failure> {
        report::print(self.source.name(), &self.report, out)?;
        match &self.comparison {
            Some(comparison) => comparison.print(self.source.name(), out),
            None => Ok(()),
        }
    }

    fn told(&self) -> Told<'_> {
        Told::of(self.source.name(), &self.report).with(self.comparison.as_ref())
    }
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let options = options(args.depth()).with_canonical(args.canonical);
    let inputs = args.inputs.each()?;
    if args.against.original.is_some() && inputs.len() > 1 {
        return Err(Failure::request("`--against` compares an object of one file, but there are several"));
    }
    let mut all = Vec::new();
    let mut is_ok = true;
    for input in inputs {
        let checked = args.one(&input, &options, out)?;
        is_ok &= checked.is_ok();
        if args.json {
            all.push(checked);
        } else {
            checked.print(out)?;
        }
    }
    if args.json {
        out.json(&all.iter().map(Checked::told).collect::<Vec<_>>())?;
    }
    Ok(outcome(is_ok))
}

impl Args {
    fn one(&self, input: &Input, options: &ValidateOptions, out: &mut Ui) -> Result<Checked, Failure> {
        let source = input.source()?;
        let report = check(&source, options, out)?;
        // What is broken is told as such; comparing it would only say so again.
        let comparison = match &self.against.original {
            Some(original) if report.is_ok() => {
                Some(against::compare(&self.against, original, &source, out)?)
            }
            Some(original) => {
                let (name, original) = (escape::name(source.name()), shown(original));
                out.note(format_args!("note: {name} is bad, so it was not compared with {original}"))?;
                None
            }
            None => None,
        };
        Ok(Checked { source, report, comparison })
    }
}

/// Checks one file that is open already.
pub(crate) fn run_on(
    depth: Depth,
    form: Form,
    source: &Arc<dyn ByteSource>,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let found = check(source, &options(depth), out)?;
    match form {
        Form::Text => report::print(source.name(), &found, out)?,
        Form::OneLine => out.line(report::one_line(source.name(), &found))?,
        Form::Json => out.json(&[Told::of(source.name(), &found)])?,
    }
    Ok(outcome(found.is_ok()))
}

/// What is asked of the library.
fn options(depth: Depth) -> ValidateOptions {
    let options = ValidateOptions::new().with_depth(depth);
    #[cfg(feature = "sz3")]
    let options = options.with_sz3(super::open::sz3());
    options
}

fn check(source: &Arc<dyn ByteSource>, options: &ValidateOptions, out: &Ui) -> Result<FileReport, Failure> {
    Ok(validate_source(source, options, &out.bar("validating", source.len()))?)
}

fn outcome(is_ok: bool) -> Outcome {
    if is_ok { Outcome::Done } else { Outcome::CheckFailed }
}
