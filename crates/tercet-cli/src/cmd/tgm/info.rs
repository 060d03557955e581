//! `tgm info`: message count, size and version.

use std::sync::Arc;

use serde::Serialize;
use tercet::core::{ByteSource, Span, escape};
use tercet::tgm::VERSION;

use super::Form;
use super::open::ReadArgs;
use crate::args::JsonArgs;
use crate::failure::{Failure, Outcome};
use crate::input::Inputs;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tgm info run.tgm             message count and size
  tgm info --json *.tgm        JSON for several files
  cat run.tgm | tgm info -     a stream that was stored";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    json: JsonArgs,
}

/// The JSON summary of a file.
#[derive(Serialize)]
struct InfoJson {
    file: String,
    messages: usize,
    size: u64,
    version: Option<u16>,
    /// Bytes outside messages.
    junk: Vec<Span>,
    /// The message index at the end of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<IndexInfo>,
}

/// The JSON summary of a message index.
#[derive(Serialize)]
struct IndexInfo {
    bytes: Span,
    keys: Vec<String>,
}

impl InfoJson {
    fn read(source: Arc<dyn ByteSource>, out: &mut Ui) -> Result<Self, Failure> {
        let file = ReadArgs::default().open(source, out)?;
        let scan = file.scan()?;
        Ok(Self {
            file: file.name().to_string(),
            messages: scan.messages.len(),
            size: file.len(),
            version: (!scan.messages.is_empty()).then_some(VERSION),
            junk: scan.junk.clone(),
            index: file.index()?.map(|index| IndexInfo {
                bytes: index.span(),
                keys: index.keys().map(str::to_owned).collect(),
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
        if let Some(IndexInfo { bytes, keys }) = &self.index {
            let keys: Vec<_> = keys.iter().map(|key| escape::name(key)).collect();
            out.line(format_args!("  Index: {} bytes, keys: {}", bytes.len(), keys.join(", ")))?;
        }
        out.line("")
    }
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let mut all = Vec::new();
    for input in args.inputs.each()? {
        let info = InfoJson::read(input.source()?, out)?;
        if args.json.json {
            all.push(info);
        } else {
            info.print(out)?;
        }
    }
    if args.json.json {
        out.json(&all)?;
    }
    Ok(Outcome::Done)
}

/// Prints the summary of an open file.
pub(crate) fn run_on(form: Form, source: Arc<dyn ByteSource>, out: &mut Ui) -> Result<Outcome, Failure> {
    let info = InfoJson::read(source, out)?;
    match form {
        Form::Text => info.print(out)?,
        Form::OneLine => {
            let InfoJson { file, size, messages, .. } = &info;
            let file = escape::name(file);
            out.line(format_args!("path={file} file_len={size} version={VERSION} messages={messages}"))?;
        }
        Form::Json => out.json(&[info])?,
    }
    Ok(Outcome::Done)
}
