//! What the verbs share that make messages of other messages.

use std::fmt::Display;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tercet::core::{Class, Progress as _, Span};
use tercet::tgm::edit::MessageBuilder;
use tercet::tgm::{EncodeOptions, File, Message, Provenance, Writer};

use crate::address::{self, Object};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::Output;
use crate::ui::{Bar, Ui, is_interrupted};

/// Bytes that go to standard output at a time.
const PIECE: u64 = 1 << 20;

/// How new messages are made, and what is said about it.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Making {
    /// Replace files that are there already
    #[arg(long)]
    pub(super) force: bool,
    /// Leave out when and by what new messages were written, so that equal messages make equal bytes
    #[arg(long)]
    pub(super) reproducible: bool,
    /// Print what was done as JSON
    #[arg(short, long)]
    pub(super) json: bool,
}

impl Making {
    /// How messages are written. Values are not touched, so nothing is asked of them.
    pub(super) fn options(self) -> EncodeOptions {
        let options = EncodeOptions::new();
        if self.reproducible { options.with_provenance(Provenance::Off) } else { options }
    }

    /// Where messages go, which must be none of the places that they come from.
    pub(super) fn output<'a>(
        self,
        path: &Path,
        inputs: impl IntoIterator<Item = &'a Input>,
    ) -> Result<Output, Failure> {
        let output = Output::of(path, self.force)?;
        for input in inputs {
            if !input.is_stdin() {
                output.must_not_be(&input.path)?;
            }
        }
        if self.json && matches!(output, Output::Stdout) {
            return Err(Failure::request("`--json` and the messages cannot both go to standard output"));
        }
        Ok(output)
    }

    /// Makes the output appear and tells what was done, unless the messages themselves went to standard output.
    pub(super) fn finish(
        self,
        sink: Sink,
        bar: Bar,
        told: &impl Serialize,
        line: impl Display,
        out: &mut Ui,
    ) -> Result<Outcome, Failure> {
        let is_stdout = matches!(sink, Sink::Stdout);
        sink.finish()?;
        drop(bar);
        match (is_stdout, self.json) {
            (true, _) => {}
            (false, true) => out.json(told)?,
            (false, false) => out.line(line)?,
        }
        Ok(Outcome::Done)
    }
}

/// What `--json` prints where some messages are changed and all others copied.
#[derive(Debug, Serialize)]
pub(super) struct Told {
    file: String,
    messages: u64,
    changed: u64,
    copied: u64,
}

impl Told {
    pub(super) fn new(path: &Path, messages: u64, changed: u64) -> Self {
        Self { file: told(path), messages, changed, copied: messages.saturating_sub(changed) }
    }
}

/// Where new messages go.
#[derive(Debug)]
pub(super) enum Sink {
    Stdout,
    File(Box<Writer>),
    /// An object of a store.
    Object(Box<Object>),
}

impl Sink {
    /// Without `force` a file that appears meanwhile is not replaced either.
    pub(super) fn open(output: Output, force: bool) -> Result<Self, Failure> {
        Ok(match output {
            Output::Stdout => Self::Stdout,
            Output::Path(path) if force => Self::File(Writer::create(path)?.into()),
            Output::Path(path) => Self::File(Writer::create_new(path)?.into()),
            Output::Object(object) => Self::Object(object.into()),
        })
    }

    /// Writes a new message.
    pub(super) fn draft(&mut self, draft: &MessageBuilder, bar: &Bar, out: &mut Ui) -> Result<(), Failure> {
        match self {
            Self::Stdout => draft.write_to(out.bytes()?, bar)?,
            Self::File(writer) => writer.write(draft, bar)?,
            Self::Object(object) => draft.write_to(&mut **object, bar)?,
        }
        Ok(())
    }

    /// Writes a message that is bytes already.
    pub(super) fn raw(&mut self, bytes: &[u8], out: &mut Ui) -> Result<(), Failure> {
        match self {
            Self::Stdout => out.bytes()?.write_all(bytes).map_err(|error| Failure::output(&error)),
            Self::File(writer) => Ok(writer.raw(bytes)?),
            Self::Object(object) => object.write_all(bytes).map_err(|error| address::of_object(&error)),
        }
    }

    /// Writes a message as it is.
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

    /// Makes the file appear; answers its path behind all symbolic links, if it has one.
    pub(super) fn finish(self) -> Result<Option<PathBuf>, Failure> {
        match self {
            Self::Stdout => Ok(None),
            Self::File(writer) => Ok(Some(writer.finish()?)),
            Self::Object(object) => object.finish().map(|_| None),
        }
    }
}

/// Hands over every message before the first byte is written. Damage is not carried into new messages, whose hashes would
/// vouch for it, and neither are catalogues that stand between messages: they tell of files that were.
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

/// The name of an output in JSON: a path as it is, an address without its secrets.
pub(super) fn told(path: &Path) -> String {
    address::of(path).map_or_else(|| path.to_string_lossy().into_owned(), address::shown)
}

fn not_from_damage(failure: Failure) -> Failure {
    match &failure {
        Failure::Error(report) if matches!(report.class, Class::Corrupt | Class::Malformed) => {
            failure.with_hint("`tgm repair FILE -o NEW` keeps what is intact")
        }
        _ => failure,
    }
}
