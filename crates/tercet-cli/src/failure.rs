//! How a command ends.

use std::io;
use std::ops::Range;

#[cfg(feature = "arrow")]
use tercet::arrow;
use tercet::convert;
use tercet::core::publish::PublishError;
use tercet::core::{Class, Diagnose, Hint, SourceError};
use tercet::{tatami, tet, tgm};

use crate::render::Excerpt;

/// A command that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything is done.
    Done,
    /// A check was made, and the file is bad.
    CheckFailed,
}

/// A command that could not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something to tell the user.
    Error(Report),
    /// The user interrupted the work.
    Interrupted,
    /// Nobody reads standard output any more: not an error, there is nothing left to do.
    BrokenPipe,
}

/// What the user is told about an error.
#[derive(Debug)]
pub(crate) struct Report {
    /// Decides the exit code.
    pub(crate) class: Class,
    /// What went wrong, without `error:`.
    pub(crate) message: String,
    /// The place in a text of the user that it is about.
    pub(crate) excerpt: Option<Excerpt>,
    /// What to do next.
    pub(crate) hint: Option<String>,
}

impl Failure {
    /// An error of a library, with its causes.
    pub(crate) fn of(error: &dyn Diagnose) -> Self {
        Self::for_program(error, "tercet")
    }

    /// An error of a library, with its causes. Hints name the commands of `program`.
    pub(crate) fn for_program(error: &dyn Diagnose, program: &str) -> Self {
        let hint = error.hint().and_then(|hint| hint_text(&hint, program));
        Self::Error(Report { class: error.class(), message: chain(error), excerpt: None, hint })
    }

    /// An error of a class in the command's own words.
    pub(crate) fn new(class: Class, message: impl Into<String>) -> Self {
        Self::Error(Report { class, message: message.into(), excerpt: None, hint: None })
    }

    /// The user asked for something that cannot be.
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self::new(Class::Request, message)
    }

    /// The system refused something that is not a file of a library.
    pub(crate) fn io(what: &str, error: &io::Error) -> Self {
        Self::new(Class::Io, format!("{what}: {error}"))
    }

    /// Standard output took no more bytes.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::BrokenPipe
        } else {
            Self::io("cannot write to standard output", error)
        }
    }

    /// Says what to do next, in place of what the library says.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        if let Self::Error(report) = &mut self {
            report.hint = Some(hint.into());
        }
        self
    }

    /// Shows the place in a text that it is about.
    pub(crate) fn with_excerpt(mut self, text: &str, at: &Range<usize>) -> Self {
        if let Self::Error(report) = &mut self {
            report.excerpt = Excerpt::new(text, at);
        }
        self
    }

    /// The same for a text of one line, at whose end a mark may stand behind it.
    pub(crate) fn with_excerpt_to_end(mut self, text: &str, at: &Range<usize>) -> Self {
        if let Self::Error(report) = &mut self {
            // Of a line without words nothing would be shown.
            report.excerpt = if text.trim().is_empty() {
                Some(Excerpt { number: 1, line: String::new(), marks: "^".to_owned() })
            } else if at.start >= text.len() {
                Excerpt::new(&format!("{text} "), at)
            } else {
                Excerpt::new(text, at)
            };
        }
        self
    }

    /// The exit code.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Error(report) => report.class.exit_code(),
            Self::Interrupted => 130,
            Self::BrokenPipe => 0,
        }
    }
}

/// A hint in the words of the command line: the only place that names flags for the errors of the libraries.
pub(crate) fn hint_text(hint: &Hint, program: &str) -> Option<String> {
    let verify = if program == "tgm" { "validate FILE" } else { "verify" };
    Some(match hint {
        Hint::Overwrite => "`--force` replaces it".to_owned(),
        Hint::Verify => format!("`{program} {verify}` lists everything that is wrong"),
        Hint::VerifyDeep => format!("`{program} {verify} --deep` lists everything that is damaged"),
        Hint::Repair => {
            format!("`{program} {verify}` lists what changed; `{program} repair` lists what can be done")
        }
        Hint::RepairFooter => format!("`{program} repair` can cut a damaged footer off"),
        Hint::Salvage => format!(
            "`{program} {verify} --deep` lists every damaged chunk; `{program} repair --salvage` keeps the good ones"
        ),
        Hint::SalvageManifest => {
            "`tatami collection compact --salvage` keeps every record that is intact".to_owned()
        }
        Hint::SkipChecksums => format!(
            "`{program} {verify}` lists everything that is wrong; `--ignore-checksums` reads it as it is"
        ),
        Hint::AllowNan => "`--allow-nan` keeps them, in a mask beside the values".to_owned(),
        Hint::AllowInf => "`--allow-inf` keeps them, in masks beside the values".to_owned(),
        Hint::ConflictStrategy => "`--strategy first` or `--strategy last` takes one of them".to_owned(),
        Hint::SelectColumns => "`--columns` takes the others; Arrow has such types".to_owned(),
        Hint::FloorTimestamps => {
            "`--floor-timestamps` cuts times to microseconds, `--raw-timestamps` copies the numbers"
                .to_owned()
        }
        Hint::RawTimestamps => "`--raw-timestamps` copies the numbers".to_owned(),
        Hint::SpillDirectories => {
            "results go to the directory of the `.tet` file, or to one named with `--spill-allow`".to_owned()
        }
        Hint::MemoryBudget => {
            "set `write` to `switch`, `spill` or `sidecar`, or raise `execution.memory_budget_bytes`"
                .to_owned()
        }
        Hint::RebuildIndex => "`tgm index FILE --anew` makes it anew".to_owned(),
        Hint::Recode => "`tgm recode` stores values in another way".to_owned(),
        Hint::UpdateMember => "`tatami collection add` takes it in as it is now".to_owned(),
        Hint::ImportArray => "`tet create` and `tgm create` read it".to_owned(),
        Hint::ImportTable => "`tatami convert` reads it".to_owned(),
        Hint::Retry => "run the command again".to_owned(),
        // No option raises a limit.
        Hint::RaiseLimit => return None,
        hint => hint.to_string(),
    })
}

/// The message of an error and of its causes, none of them told twice.
///
/// Some errors of the libraries repeat their cause in their own message, others leave it to `source`.
fn chain(error: &dyn Diagnose) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = error.source();
    }
    text
}

impl From<tet::Error> for Failure {
    fn from(error: tet::Error) -> Self {
        match error.kind() {
            tet::ErrorKind::Cancelled(_) => Self::Interrupted,
            tet::ErrorKind::Write(cause) if cause.kind() == io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            // It names its file itself: the one that is written, which need not be the one that is read.
            tet::ErrorKind::Publish(cause) => Self::of(cause),
            _ => Self::for_program(&error, "tet"),
        }
    }
}

impl From<tgm::Error> for Failure {
    fn from(error: tgm::Error) -> Self {
        match error.kind() {
            tgm::ErrorKind::Cancelled(_) => Self::Interrupted,
            tgm::ErrorKind::Write(cause) if cause.kind() == io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            // It names its file itself: the one that is written, which need not be the one that is read.
            tgm::ErrorKind::Publish(cause) => Self::of(cause),
            _ => Self::for_program(&error, "tgm"),
        }
    }
}

impl From<tatami::Error> for Failure {
    fn from(error: tatami::Error) -> Self {
        match error.kind() {
            tatami::ErrorKind::Cancelled(_) => Self::Interrupted,
            tatami::ErrorKind::Write(cause) if cause.kind() == io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            // It names its file itself: the one that is written, which need not be the one that is read.
            tatami::ErrorKind::Publish(cause) => Self::of(cause),
            _ => Self::for_program(&error, "tatami"),
        }
    }
}

#[cfg(feature = "arrow")]
impl From<arrow::Error> for Failure {
    fn from(error: arrow::Error) -> Self {
        match error {
            arrow::Error::Tatami(error) => error.into(),
            arrow::Error::Write { error, .. } if error.kind() == io::ErrorKind::BrokenPipe => {
                Self::BrokenPipe
            }
            arrow::Error::Write { name, error } => match PublishError::recover(error) {
                Ok(error) => Self::of(&error),
                Err(error) => Self::of(&arrow::Error::Write { name, error }),
            },
            error => Self::of(&error),
        }
    }
}

impl From<convert::Error> for Failure {
    fn from(error: convert::Error) -> Self {
        match error {
            convert::Error::Tet(error) => error.into(),
            error => Self::of(&error),
        }
    }
}

impl From<convert::npy::Error> for Failure {
    fn from(error: convert::npy::Error) -> Self {
        Self::of(&error)
    }
}

impl From<PublishError> for Failure {
    fn from(error: PublishError) -> Self {
        Self::of(&error)
    }
}

impl From<tet::LayoutError> for Failure {
    fn from(error: tet::LayoutError) -> Self {
        Self::request(error.to_string())
    }
}

impl Failure {
    /// A source of bytes that could not be opened or read.
    pub(crate) fn source(name: &str, error: SourceError) -> Self {
        tet::Error::new(name.into(), error.into()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_once() {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let Failure::Error(told) = Failure::source("a.tet", SourceError::Open(missing())) else {
            panic!("an error was expected");
        };
        assert_eq!(told.message.matches(&missing().to_string()).count(), 1, "{}", told.message);
        assert_eq!(told.class, Class::Io);
    }

    #[test]
    fn a_closed_pipe_is_not_an_error() {
        let closed = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(Failure::output(&closed).exit_code(), 0);
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(Failure::output(&full).exit_code(), Class::Io.exit_code());
        let fault = tet::ErrorKind::Write(closed);
        assert_eq!(Failure::from(tet::Error::new("a".into(), fault)).exit_code(), 0);
        let fault = tgm::ErrorKind::Write(io::ErrorKind::BrokenPipe.into());
        assert_eq!(Failure::from(tgm::Error::new("a".into(), fault)).exit_code(), 0);
    }
}
