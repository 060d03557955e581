//! `tgm info`: message count, size and version.

use std::sync::Arc;

use tercet::Format;
use tercet::core::{ByteSource, escape};
use tercet::tgm::{IndexSummary, Summary, VERSION};

use super::Form;
use super::open::ReadArgs;
use crate::args::{JsonArgs, QuietArgs};
use crate::failure::{Failure, Outcome};
use crate::many::{Files, JsonList};
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tgm info run.tgm             message count and size
  tgm info --json *.tgm        JSON for several files
  cat run.tgm | tgm info -     from a pipe";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    quiet: QuietArgs,
}

/// Summarizes a file.
pub(crate) fn summary(source: Arc<dyn ByteSource>, out: &mut Ui) -> Result<Summary, Failure> {
    Ok(ReadArgs::default().open(source, out)?.summary()?)
}

fn print(summary: &Summary, out: &mut Ui) -> Result<(), Failure> {
    out.line(format_args!("File: {}", escape::name(&summary.location)))?;
    out.line(format_args!("  Messages: {}", summary.messages))?;
    out.line(format_args!("  Size: {} bytes", summary.file_len))?;
    if let Some(version) = summary.version {
        out.line(format_args!("  Version: {version}"))?;
    }
    if let Some(IndexSummary { span, keys, .. }) = &summary.index {
        let keys: Vec<_> = keys.iter().map(|key| escape::name(key)).collect();
        out.line(format_args!("  Index: {} bytes, keys: {}", span.len(), keys.join(", ")))?;
    }
    out.line("")
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    args.files.each(Some(Format::Tgm), JsonList::Always, out, |input, out| {
        run_on(Form::new(args.json.json, args.quiet.quiet), input.source()?, out)
    })
}

/// Prints the summary of an open file.
pub(crate) fn run_on(form: Form, source: Arc<dyn ByteSource>, out: &mut Ui) -> Result<Outcome, Failure> {
    let summary = summary(source, out)?;
    match form {
        Form::Text => print(&summary, out)?,
        Form::OneLine => {
            let Summary { location, file_len: size, messages, .. } = &summary;
            let file = escape::name(location);
            out.line(format_args!("path={file} file_len={size} version={VERSION} messages={messages}"))?;
        }
        Form::Json => out.json(&summary)?,
    }
    Ok(Outcome::Done)
}
