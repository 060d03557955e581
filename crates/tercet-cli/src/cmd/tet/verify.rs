//! `tet verify`: structure, checksums and chunks.

use std::sync::Arc;

use tercet::Format;
use tercet::core::ByteSource;
use tercet::tet::{self, Report, VerifyOptions};

use super::{repair, report};
use crate::args::{JsonArgs, limits};
use crate::failure::{Failure, Outcome};
use crate::input::{Input, must_be_changeable};
use crate::many::{Files, JsonList};
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tet verify era5.tet            verify all checksums, decode the first 128 chunks
  tet verify era5.tet --deep     decode all chunks, recompute statistics
  tet verify era5.tet --repair   apply safe repairs, then verify again
  tet verify -r archive          all .tet files of a directory tree, in parallel

Exit code 0: valid; 1: verification failed; others: the check could not run.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Decode all chunks and recompute statistics [default: decode 128 chunks]
    #[arg(long)]
    pub(crate) deep: bool,
    /// Apply safe repairs if verification fails, then verify again
    #[arg(long)]
    pub(crate) repair: bool,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    /// Print a one-line summary
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    args.files.each(Some(Format::Tet), JsonList::ForMany, out, |input, out| {
        run_on(args, input, input.source_of(Format::Tet)?, out)
    })
}

/// Verifies an open file.
pub(crate) fn run_on(
    args: &Args,
    input: &Input,
    source: Arc<dyn ByteSource>,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    if args.repair {
        must_be_changeable(&input.path, "repair")?;
    }
    out.hush(args.quiet);
    let mut found = verify(source, args.deep, out)?;
    if args.repair && !found.ok && repair::apply_safe_repairs(&input.path, out)? {
        found = verify(input.source()?, args.deep, out)?;
    }
    if args.json.json {
        out.json(&report::ReportJson::new(&found))?;
    } else if args.quiet {
        out.line(report::one_line(&found))?;
    } else {
        report::print(&found, out)?;
    }
    if found.ok {
        return Ok(Outcome::Done);
    }
    out.verdict("verification failed")?;
    Ok(Outcome::CheckFailed)
}

fn verify(source: Arc<dyn ByteSource>, deep: bool, out: &Ui) -> Result<Report, Failure> {
    // Chunks are read twice, for checksums and values, so the total is unknown.
    let bar = out.bar("verifying", 0);
    Ok(tet::verify(source, VerifyOptions::default().with_deep(deep).with_limits(limits()), &bar)?)
}
