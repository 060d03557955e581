//! `tgm info`: how many messages files hold.

use std::sync::Arc;

use serde::Serialize;
use tercet::core::{ByteSource, Span, escape};
use tercet::tgm::VERSION;

use super::Form;
use super::open::Reading;
use crate::failure::{Failure, Outcome};
use crate::input::Inputs;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tgm info run.tgm             messages and size
  tgm info --json *.tgm        for programs
  cat run.tgm | tgm info -     a stream that was stored";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    /// Print a JSON array with an entry for each file
    #[arg(short, long)]
    json: bool,
}

/// What is told of a file.
#[derive(Serialize)]
struct Told {
    file: String,
    messages: usize,
    size: u64,
    version: Option<u16>,
    /// Bytes that belong to no message.
    junk: Vec<Span>,
    /// The catalogue at the end of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    catalogue: Option<Catalogue>,
}

/// What is told of a catalogue.
#[derive(Serialize)]
struct Catalogue {
    bytes: Span,
    keys: Vec<String>,
}

impl Told {
    fn of(source: Arc<dyn ByteSource>, out: &mut Ui) -> Result<Self, Failure> {
        let file = Reading::default().open(source, out)?;
        let scan = file.scan()?;
        Ok(Self {
            file: file.name().to_string(),
            messages: scan.messages.len(),
            size: file.len(),
            version: (!scan.messages.is_empty()).then_some(VERSION),
            junk: scan.junk.clone(),
            catalogue: file.index()?.map(|catalogue| Catalogue {
                bytes: catalogue.span(),
                keys: catalogue.keys().map(str::to_owned).collect(),
            }),
        })
    }

    fn print(&self, out: &mut Ui) -> Result<(), Failure> {
        out.line(format_args!("File: {}", escape::name(&self.file)))?;
        out.line(format_args!("  Messages: {}", self.messages))?;
        out.line(format_args!("  Size: {} bytes", self.size))?;
        if let Some(version) = self.version {
            out.line(format_args!("  Version: {version}"))?;
        }
        if let Some(Catalogue { bytes, keys }) = &self.catalogue {
            let keys: Vec<_> = keys.iter().map(|key| escape::name(key)).collect();
            out.line(format_args!("  Catalogue: {} bytes, keys: {}", bytes.len(), keys.join(", ")))?;
        }
        out.line("")
    }
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let mut all = Vec::new();
    for input in args.inputs.each()? {
        let told = Told::of(input.source()?, out)?;
        if args.json {
            all.push(told);
        } else {
            told.print(out)?;
        }
    }
    if args.json {
        out.json(&all)?;
    }
    Ok(Outcome::Done)
}

/// Shows one file that is open already.
pub(crate) fn run_on(form: Form, source: Arc<dyn ByteSource>, out: &mut Ui) -> Result<Outcome, Failure> {
    let told = Told::of(source, out)?;
    match form {
        Form::Text => told.print(out)?,
        Form::OneLine => {
            let Told { file, size, messages, .. } = &told;
            let file = escape::name(file);
            out.line(format_args!("path={file} file_len={size} version={VERSION} messages={messages}"))?;
        }
        Form::Json => out.json(&[told])?,
    }
    Ok(Outcome::Done)
}
