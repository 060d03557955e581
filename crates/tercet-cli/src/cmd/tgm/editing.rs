//! Shared parts of the verbs that write messages from messages.

use std::fmt::Display;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tercet::core::{Class, Progress as _, Span};
use tercet::tgm::edit::MessageBuilder;
use tercet::tgm::{EncodeOptions, File, Message, Provenance, Writer, WriterOptions};

use crate::args::{ForceArgs, JsonArgs};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::{Output, Stream, json_path, stream_failure};
use crate::ui::{Bar, Ui, is_interrupted};

/// Copy buffer size for standard output.
const PIECE: u64 = 1 << 20;

/// Output options of edited messages.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct WriteArgs {
    #[command(flatten)]
    pub(super) force: ForceArgs,
    /// Omit timestamp, UUID and producer, for reproducible output
    #[arg(long)]
    pub(super) reproducible: bool,
    #[command(flatten)]
    pub(super) json: JsonArgs,
}

impl WriteArgs {
    /// Encoder options. Payloads are copied unchanged.
    pub(super) fn options(self) -> EncodeOptions {
        let options = EncodeOptions::new();
        if self.reproducible { options.with_provenance(Provenance::Off) } else { options }
    }

    /// Opens the output, which must not be one of the inputs.
    pub(super) fn output<'a>(
        self,
        path: &Path,
        inputs: impl IntoIterator<Item = &'a Input>,
    ) -> Result<Output, Failure> {
        let output = Output::open(path, self.force.force)?;
        for input in inputs {
            if !input.is_stdin() {
                output.must_not_be(&input.path)?;
            }
        }
        if self.json.json && matches!(output, Output::Stdout) {
            return Err(Failure::request("cannot write both messages and JSON to standard output"));
        }
        Ok(output)
    }

    /// Publishes the output and prints a summary, unless messages were written to standard output.
    pub(super) fn finish(
        self,
        sink: Sink,
        bar: Bar,
        summary: &impl Serialize,
        line: impl Display,
        out: &mut Ui,
    ) -> Result<Outcome, Failure> {
        let is_stdout = matches!(sink, Sink::Stdout);
        sink.finish()?;
        drop(bar);
        match (is_stdout, self.json.json) {
            (true, _) => {}
            (false, true) => out.json(summary)?,
            (false, false) => out.summary(line)?,
        }
        Ok(Outcome::Done)
    }
}

/// The JSON summary of changed and copied messages.
#[derive(Debug, Serialize)]
pub(super) struct EditJson {
    file: String,
    messages: u64,
    changed: u64,
    copied: u64,
}

impl EditJson {
    pub(super) fn new(path: &Path, messages: u64, changed: u64) -> Self {
        Self { file: json_path(path), messages, changed, copied: messages.saturating_sub(changed) }
    }
}

/// The sink of new messages.
#[derive(Debug)]
pub(super) enum Sink {
    Stdout,
    File(Box<Writer>),
    /// An object in a store, a pipe or a device.
    Stream(Box<Stream>),
}

impl Sink {
    /// Opens the output. Without `force`, a file that appears meanwhile is not replaced.
    pub(super) fn open(output: Output, force: bool) -> Result<Self, Failure> {
        Ok(match output {
            Output::Stdout => Self::Stdout,
            Output::Path(path) => {
                Self::File(Writer::create(path, WriterOptions::new().with_overwrite(force))?.into())
            }
            Output::Stream(stream) => Self::Stream(stream.into()),
        })
    }

    /// Writes a new message.
    pub(super) fn draft(&mut self, draft: &MessageBuilder, bar: &Bar, out: &mut Ui) -> Result<(), Failure> {
        match self {
            Self::Stdout => draft.write_to(out.bytes()?, bar)?,
            Self::File(writer) => writer.write(draft, bar)?,
            Self::Stream(stream) => draft.write_to(&mut **stream, bar)?,
        }
        Ok(())
    }

    /// Writes an encoded message.
    pub(super) fn raw(&mut self, bytes: &[u8], out: &mut Ui) -> Result<(), Failure> {
        match self {
            Self::Stdout => out.bytes()?.write_all(bytes).map_err(|error| Failure::output(&error)),
            Self::File(writer) => Ok(writer.raw(bytes)?),
            Self::Stream(stream) => stream.write_all(bytes).map_err(|error| stream_failure(&error)),
        }
    }

    /// Copies a message unchanged.
    pub(super) fn copy(&mut self, file: &File, span: Span, bar: &Bar, out: &mut Ui) -> Result<(), Failure> {
        if let Self::File(writer) = self {
            return Ok(writer.copy_from(&**file.source(), span, bar)?);
        }
        let mut at = span.start();
        while at < span.end() {
            bar.check().map_err(|_| Failure::Interrupted)?;
            let len = (span.end() - at).min(PIECE);
            let piece = file.source().read_at(Span::at(at, len).unwrap_or(Span::empty(at)));
            self.raw(&piece.map_err(|error| Failure::source(file.name(), error))?, out)?;
            bar.advance(len);
            at += len;
        }
        Ok(())
    }

    /// Publishes the file; returns its path with symbolic links resolved.
    pub(super) fn finish(self) -> Result<Option<PathBuf>, Failure> {
        match self {
            Self::Stdout => Ok(None),
            Self::File(writer) => Ok(Some(writer.finish()?.output)),
            Self::Stream(stream) => stream.finish().map(|_| None),
        }
    }
}

/// Verifies every message before the first byte is written: new hashes must not cover damaged data. Indexes between
/// messages are skipped, because they describe other files.
pub(super) fn check_each(
    file: &File,
    out: &Ui,
    mut check: impl FnMut(&Message) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let bar = out.bar("checking", file.len());
    let mut check_all = || {
        for message in file.messages()? {
            if is_interrupted() {
                return Err(Failure::Interrupted);
            }
            let message = message?;
            if !message.metadata().is_message_index() {
                check(&message)?;
            }
            bar.advance(message.span().len());
        }
        Ok(())
    };
    check_all().map_err(not_from_damage)
}

fn not_from_damage(failure: Failure) -> Failure {
    match &failure {
        Failure::Error(report) if matches!(report.class, Class::Corrupt | Class::Malformed) => {
            failure.with_hint("salvage the intact parts with `tgm repair FILE -o NEW`")
        }
        _ => failure,
    }
}
