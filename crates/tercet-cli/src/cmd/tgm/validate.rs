//! `tgm validate`: structure, metadata, hashes and values.

use std::path::PathBuf;
use std::sync::Arc;

use tercet::Format;
use tercet::core::{ByteSource, escape};
use tercet::tgm::{Depth, FileReport, ValidateOptions, validate_source};

use super::object_id::{ObjectId, parse_object_id};
use super::pipeline::bound;
use crate::args::{JsonArgs, QuietArgs, limits};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::many::{Files, JsonList};
use crate::output::display_path;
use crate::ui::Ui;

mod against;
mod report;

use against::Comparison;
use report::ValidateJson;

const EXAMPLES: &str = "\
Examples:
  tgm validate run.tgm              structure, metadata, all hashes
  tgm validate --full run.tgm       also decode all objects and find NaN and infinities
  tgm validate --json *.tgm         JSON report
  tgm validate run.tgm --against t2m.npy --message 0.0 --max-error 0.01

Exit code 0: valid, warnings allowed; 1: validation failed, or the error bound is exceeded; others: a check \
could not run.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    #[command(flatten)]
    files: Files,
    /// Validate the structure only
    #[arg(long, group = "depth")]
    quick: bool,
    /// Validate structure and hashes only
    #[arg(long, group = "depth")]
    checksum: bool,
    /// Validate structure, metadata, hashes and values
    #[arg(long, alias = "deep", group = "depth")]
    full: bool,
    /// Warn about non-canonical CBOR
    #[arg(long)]
    canonical: bool,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    quiet: QuietArgs,
    #[command(flatten)]
    against: Against,
}

/// Comparison with the original array.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Comparison with the original")]
struct Against {
    /// Compare shape and values of an object with its original NumPy file; as float64 if one of them is float64
    #[arg(long = "against", value_name = "FILE.npy")]
    original: Option<PathBuf>,
    /// Message and object number to compare: `3.1` [default: the only object of message 0]
    #[arg(long = "message", value_name = "MSG[.OBJ]", value_parser = parse_object_id, requires = "original")]
    object: Option<ObjectId>,
    /// Name of the object to compare; the first match is used
    #[arg(long, value_name = "NAME", requires = "original", conflicts_with = "object")]
    name: Option<String>,
    /// Maximum absolute error [default: as recorded in the metadata, or 0]
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

/// A file and its reports.
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

    fn to_json(&self) -> ValidateJson<'_> {
        ValidateJson::new(self.source.name(), &self.report).with(self.comparison.as_ref())
    }
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let options = options(args.depth()).with_canonical(args.canonical);
    if args.against.original.is_some() && args.files.single().is_none() {
        return Err(Failure::request("`--against` requires a single file"));
    }
    args.files.each(Some(Format::Tgm), JsonList::Always, out, |input, out| {
        let checked = args.one(input, &options, out)?;
        if args.json.json {
            out.json(&checked.to_json())?;
        } else if args.quiet.quiet && checked.comparison.is_none() {
            out.line(report::one_line(checked.source.name(), &checked.report))?;
        } else {
            checked.print(out)?;
        }
        Ok(outcome(checked.is_ok()))
    })
}

impl Args {
    fn one(&self, input: &Input, options: &ValidateOptions, out: &mut Ui) -> Result<Checked, Failure> {
        let source = input.source_of(Format::Tgm)?;
        let report = check(&source, options, out)?;
        // An invalid file is not compared.
        let comparison = match &self.against.original {
            Some(original) if report.is_ok() => {
                Some(against::compare(&self.against, original, &source, out)?)
            }
            Some(original) => {
                let (name, original) = (escape::name(source.name()), display_path(original));
                out.note(format_args!("note: {name}: validation failed; not compared with {original}"))?;
                None
            }
            None => None,
        };
        Ok(Checked { source, report, comparison })
    }
}

/// The options of the library.
pub(super) fn options(depth: Depth) -> ValidateOptions {
    ValidateOptions::new().with_depth(depth).with_limits(limits())
}

pub(super) fn check(
    source: &Arc<dyn ByteSource>,
    options: &ValidateOptions,
    out: &Ui,
) -> Result<FileReport, Failure> {
    Ok(validate_source(source, options, &out.bar("validating", source.len()))?)
}

fn outcome(is_ok: bool) -> Outcome {
    if is_ok { Outcome::Done } else { Outcome::CheckFailed }
}
