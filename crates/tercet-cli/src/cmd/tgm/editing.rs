//! What the verbs share that make messages of other messages.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use tercet::core::{Class, Progress as _, Span};
use tercet::tgm::edit::Draft;
use tercet::tgm::{EncodeOptions, File, Provenance, Writer};

use crate::address::{self, Object};
use crate::failure::Failure;
use crate::input::Input;
use crate::output::Output;
use crate::ui::{Bar, Ui};

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
    pub(super) fn open(output: Output) -> Result<Self, Failure> {
        Ok(match output {
            Output::Stdout => Self::Stdout,
            Output::Path(path) => Self::File(Writer::create(path)?.into()),
            Output::Object(object) => Self::Object(object.into()),
        })
    }

    /// Whether what was done can be told on standard output.
    pub(super) fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout)
    }

    /// Writes a new message.
    pub(super) fn draft(&mut self, draft: &Draft, bar: &Bar, out: &mut Ui) -> Result<(), Failure> {
        match self {
            Self::Stdout => draft.write_to(out.bytes()?, bar)?,
            Self::File(writer) => writer.draft(draft, bar)?,
            Self::Object(object) => draft.write_to(&mut **object, bar)?,
        }
        Ok(())
    }

    /// Writes a message as it is.
    pub(super) fn copy(&mut self, file: &File, span: Span, bar: &Bar, out: &mut Ui) -> Result<(), Failure> {
        match self {
            Self::File(writer) => Ok(writer.copy_from(&**file.source(), span, bar)?),
            Self::Stdout => {
                let sink = out.bytes()?;
                copy_pieces(file, span, bar, |piece| {
                    sink.write_all(piece).map_err(|error| Failure::output(&error))
                })
            }
            Self::Object(object) => copy_pieces(file, span, bar, |piece| {
                object.write_all(piece).map_err(|error| address::of_object(&error))
            }),
        }
    }

    /// Makes the file appear.
    pub(super) fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Stdout => Ok(()),
            Self::File(writer) => Ok(writer.finish().map(drop::<PathBuf>)?),
            Self::Object(object) => object.finish().map(drop::<u64>),
        }
    }
}

/// Hands over bytes of a file, a piece at a time.
fn copy_pieces(
    file: &File,
    span: Span,
    bar: &Bar,
    mut put: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut at = span.start();
    while at < span.end() {
        bar.check().map_err(|_| Failure::Interrupted)?;
        let len = (span.end() - at).min(PIECE);
        let piece = file.source().read_at(Span::at(at, len).unwrap_or(Span::empty(at)));
        put(&piece.map_err(|error| Failure::source(file.name(), error))?)?;
        bar.advance(len);
        at += len;
    }
    Ok(())
}

/// The name of an output in JSON: a path as it is, an address without its secrets.
pub(super) fn told(path: &Path) -> String {
    address::of(path).map_or_else(|| path.to_string_lossy().into_owned(), address::shown)
}

/// Damage is not carried into new messages, whose hashes would vouch for it.
pub(super) fn not_from_damage(failure: Failure) -> Failure {
    match &failure {
        Failure::Error(report) if matches!(report.class, Class::Corrupt | Class::Malformed) => {
            failure.with_hint("`tgm repair FILE -o NEW` keeps what is intact")
        }
        _ => failure,
    }
}
