//! Results of commands: outcomes, errors, exit codes, hints.

use std::ffi::OsString;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

#[cfg(feature = "arrow")]
use tercet::arrow;
use tercet::convert;
use tercet::core::publish::PublishError;
use tercet::core::{Class, CommonError, Diagnostic, Hint, SourceError, Span};
use tercet::{tatami, tet, tgm};

use crate::output::{display_path, json_path};
use crate::render::Excerpt;

/// The result of a command that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Success.
    Done,
    /// A check failed, or a search has no hits.
    CheckFailed,
    /// The highest exit code of several files, which are reported already.
    Exit(u8),
}

impl Outcome {
    /// The worse of two outcomes.
    pub(crate) fn worse(self, other: Self) -> Self {
        if self == Self::Done { other } else { self }
    }
}

/// The result of a command that failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error to report. Boxed, so that results stay small.
    Error(Box<ErrorReport>),
    /// Interrupted by Ctrl-C.
    Interrupted,
    /// The reader of standard output closed the pipe; not an error.
    BrokenPipe,
}

/// An error report: class, message, excerpt and hint.
#[derive(Debug)]
pub(crate) struct ErrorReport {
    /// The error class, which decides the exit code.
    pub(crate) class: Class,
    /// The path or URL of the file, if known.
    pub(crate) location: Option<String>,
    /// The bytes that the error is about, if known.
    pub(crate) span: Option<Span>,
    /// The message, without `error:`.
    pub(crate) message: String,
    /// The excerpt of the user's text that the error is about.
    pub(crate) excerpt: Option<Excerpt>,
    /// The hint: what to do next.
    pub(crate) hint: Option<String>,
}

impl ErrorReport {
    /// The name of the error class in JSON.
    pub(crate) fn class_name(&self) -> &'static str {
        match self.class {
            Class::Io => "io",
            Class::Malformed => "malformed",
            Class::Corrupt => "corrupt",
            Class::Limit => "limit",
            Class::Unsupported => "unsupported",
            Class::Request => "request",
        }
    }
}

impl Failure {
    /// An error of a library, with its causes.
    pub(crate) fn from_error(error: &dyn Diagnostic) -> Self {
        Self::for_program(error, "tercet")
    }

    /// An error of a library, with its causes. Hints name the commands of `program`.
    pub(crate) fn for_program(error: &dyn Diagnostic, program: &str) -> Self {
        let hint = error.hint().map(|hint| hint_text(&hint, program));
        Self::Error(Box::new(ErrorReport {
            class: error.class(),
            location: None,
            span: error.span(),
            message: chain(error),
            excerpt: None,
            hint,
        }))
    }

    /// An error of a class with a message of this crate.
    pub(crate) fn new(class: Class, message: impl Into<String>) -> Self {
        Self::Error(Box::new(ErrorReport {
            class,
            location: None,
            span: None,
            message: message.into(),
            excerpt: None,
            hint: None,
        }))
    }

    /// An invalid request.
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self::new(Class::Request, message)
    }

    /// An I/O error outside the libraries.
    pub(crate) fn io(what: &str, error: &io::Error) -> Self {
        Self::new(Class::Io, format!("{what}: {error}"))
    }

    /// An error of writing to standard output.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::BrokenPipe
        } else {
            Self::io("cannot write to standard output", error)
        }
    }

    /// Sets the hint; replaces the one of the library.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        if let Self::Error(report) = &mut self {
            report.hint = Some(hint.into());
        }
        self
    }

    /// Adds an excerpt of the user's text.
    pub(crate) fn with_excerpt(mut self, text: &str, at: &Range<usize>) -> Self {
        if let Self::Error(report) = &mut self {
            report.excerpt = Excerpt::new(text, at);
        }
        self
    }

    /// Adds an excerpt of a text of one line; a range at its end is marked after the last character.
    pub(crate) fn with_excerpt_to_end(mut self, text: &str, at: &Range<usize>) -> Self {
        if let Self::Error(report) = &mut self {
            // A blank line has no excerpt.
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

    /// Adds the location of the argument whose name starts the message, if the location is not known.
    ///
    /// A message about a file starts with its name. Files that no argument names have their location already.
    pub(crate) fn located(self, args: impl Iterator<Item = OsString>) -> Self {
        let Self::Error(report) = &self else { return self };
        if report.location.is_some() {
            return self;
        }
        // Also the value of `NAME=FILE` and `--option=FILE`.
        let paths = args.skip(1).flat_map(|arg| {
            let value = arg.to_str().and_then(|text| text.split_once('='));
            let value = value.map(|(_, value)| PathBuf::from(value));
            [Some(PathBuf::from(arg)), value].into_iter().flatten()
        });
        let is_named = |path: &PathBuf| {
            let rest = report.message.strip_prefix(&display_path(path));
            rest.is_some_and(|rest| rest.starts_with(": ")) && !path.as_os_str().is_empty()
        };
        match paths.filter(is_named).max_by_key(|path| path.as_os_str().len()) {
            Some(path) => self.with_location(path),
            None => self,
        }
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
pub(crate) fn hint_text(hint: &Hint, program: &str) -> String {
    let verify = if program == "tgm" { "validate FILE" } else { "verify" };
    match hint {
        Hint::Overwrite => "`--force` replaces it".to_owned(),
        Hint::Verify => format!("list all problems with `{program} {verify}`"),
        Hint::VerifyDeep => format!("list all damage with `{program} {verify} --deep`"),
        Hint::Repair => {
            format!(
                "list all problems with `{program} {verify}`, and possible repairs with `{program} repair`"
            )
        }
        Hint::RepairFooter => format!("remove a damaged footer with `{program} repair`"),
        Hint::Salvage => format!(
            "list damaged chunks with `{program} {verify} --deep`; copy the intact ones with `{program} repair FILE -o NEW`"
        ),
        Hint::SalvageManifest => {
            "keep all intact records with `tatami collection compact --salvage`".to_owned()
        }
        Hint::SkipChecksums => format!(
            "list all problems with `{program} {verify}`; `--ignore-checksums` reads the file without verification"
        ),
        Hint::AllowNan => "add `--allow-nan` to store NaN as a mask".to_owned(),
        Hint::AllowInf => "add `--allow-inf` to store infinities as masks".to_owned(),
        Hint::ConflictStrategy => "choose a value with `--strategy first` or `--strategy last`".to_owned(),
        Hint::SelectColumns => "select other columns with `--columns`, or convert to Arrow".to_owned(),
        Hint::FloorTimestamps => {
            "use `--floor-timestamps` to floor to microseconds, or `--raw-timestamps` to copy the values"
                .to_owned()
        }
        Hint::RawTimestamps => "use `--raw-timestamps` to copy the values".to_owned(),
        Hint::SpillDirectories => {
            "write to the directory of the `.tet` file, or allow another one with `--spill-allow`".to_owned()
        }
        Hint::MemoryBudget => {
            "set `write` to `switch`, `spill` or `sidecar`, or raise `execution.memory_budget_bytes`"
                .to_owned()
        }
        Hint::AllowGaps => {
            "select the message by its keys with `-w`, or allow the gap with `--allow-gaps`".to_owned()
        }
        Hint::RebuildIndex => "rebuild it with `tgm index FILE --rebuild`".to_owned(),
        Hint::Repack => "change encoding, filter or compression with `tgm repack`".to_owned(),
        Hint::UpdateMember => "update its entry with `tatami collection add`".to_owned(),
        Hint::ImportArray => "`tercet convert` reads it".to_owned(),
        Hint::ImportTable => "`tatami convert` reads it".to_owned(),
        Hint::Rechunk => "`--rechunk` encodes the clipped chunks again".to_owned(),
        Hint::AppendLabels { axis } => {
            format!("give the labels of the new positions: `--labels {axis}=FILE`")
        }
        Hint::AppendDatasets { names, optional } => {
            let given: Vec<String> = names.split(", ").map(|name| format!("`--from {name}=FILE`")).collect();
            let partial =
                if *optional { ", or extend only some datasets with `--allow-partial`" } else { "" };
            format!("add {}{partial}", given.join(", "))
        }
        Hint::RenameDataset => "rename one of them with `--rename FILE:OLD=NEW`".to_owned(),
        Hint::StringValue => "`--string KEY=VALUE` stores any text".to_owned(),
        Hint::RemoveAttribute => "remove the attribute with `tet unset`".to_owned(),
        Hint::Retry => "run the command again".to_owned(),
        Hint::RaiseLimit => "raise the limit with `--max-memory SIZE` if the file is trusted".to_owned(),
        hint => hint.to_string(),
    }
}

/// The message of an error and of its causes, without repetition.
///
/// Some errors include their cause in their message, others leave it to `source`.
fn chain(error: &dyn Diagnostic) -> String {
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

impl Failure {
    /// The failure of any library error: cancellation and closed pipes are not errors. Hints name the commands of
    /// `program`.
    fn from_library(error: &dyn Diagnostic, program: &str) -> Self {
        if error.is_cancelled() {
            return Self::Interrupted;
        }
        if error.is_broken_pipe() {
            return Self::BrokenPipe;
        }
        Self::for_program(error, program)
    }

    /// Adds the location of the file: a path, or a URL, of which credentials are removed.
    pub(crate) fn with_location(mut self, location: impl AsRef<Path>) -> Self {
        if let Self::Error(report) = &mut self {
            report.location = Some(json_path(location.as_ref()));
        }
        self
    }
}

/// Conversion of a format's error. An error of publishing names the output file itself, which need not be the input.
macro_rules! impl_from_format_error {
    ($format:ident, $program:literal, |$cause:ident| $publish:pat) => {
        impl From<$format::Error> for Failure {
            fn from(error: $format::Error) -> Self {
                match error.kind() {
                    $publish => Self::from_error($cause).with_location($cause.path()),
                    _ => Self::from_library(&error, $program).with_location(error.location()),
                }
            }
        }
    };
}

impl_from_format_error!(tet, "tet", |cause| tet::ErrorKind::Common(CommonError::Publish(cause)));
impl_from_format_error!(tgm, "tgm", |cause| tgm::ErrorKind::Common(CommonError::Publish(cause)));
impl_from_format_error!(tatami, "tatami", |cause| tatami::ErrorKind::Common(CommonError::Publish(cause)));

#[cfg(feature = "arrow")]
impl_from_format_error!(arrow, "tatami", |cause| arrow::ErrorKind::Common(CommonError::Publish(cause)));

impl From<convert::Error> for Failure {
    fn from(error: convert::Error) -> Self {
        if matches!(error.kind(), convert::ErrorKind::Cancelled(_)) {
            return Self::Interrupted;
        }
        let location: std::sync::Arc<str> = error.location().into();
        if let convert::ErrorKind::Malformed(_)
        | convert::ErrorKind::Unsupported(_)
        | convert::ErrorKind::UnknownFormat
        | convert::ErrorKind::Differs(_)
        | convert::ErrorKind::Source(_)
        | convert::ErrorKind::Limit(_)
        | convert::ErrorKind::OutOfMemory(_) = error.kind()
        {
            return Self::from_error(&error).with_location(&*location);
        }
        match error.into_kind() {
            convert::ErrorKind::Tet(kind) => tet::Error::new(location, kind).into(),
            convert::ErrorKind::Tgm(kind) => tgm::Error::new(location, kind).into(),
            convert::ErrorKind::Tatami(kind) => tatami::Error::new(location, kind).into(),
            convert::ErrorKind::Npy(kind) => convert::npy::Error::new(location, kind).into(),
            kind => Self::from_error(&kind).with_location(&*location),
        }
    }
}

impl From<convert::tables::TableError> for Failure {
    fn from(error: convert::tables::TableError) -> Self {
        use convert::tables::TableError;

        match error {
            TableError::Text(error) => error.into(),
            #[cfg(feature = "arrow")]
            TableError::Arrow(error) => error.into(),
            TableError::Tatami(error) => error.into(),
            error => Self::from_error(&error),
        }
    }
}

impl From<convert::tables::Error> for Failure {
    fn from(error: convert::tables::Error) -> Self {
        use convert::tables::{ErrorKind, NonText};

        if error.is_cancelled() {
            return Self::Interrupted;
        }
        let failure = Self::for_program(&error, "tatami");
        match error.kind() {
            ErrorKind::Empty | ErrorKind::NoRows | ErrorKind::Inference(_) => {
                failure.with_hint("set the schema: `--schema name:type,…`")
            }
            ErrorKind::NonText(NonText::Gzip | NonText::Zstd | NonText::Zip) => {
                failure.with_hint("decompress it first and pass it on standard input with `-`")
            }
            ErrorKind::NonText(NonText::Parquet | NonText::Arrow | NonText::Tatami) => {
                failure.with_hint("use `tatami convert` without `--from-format`")
            }
            _ => failure,
        }
    }
}

impl From<convert::documents::Error> for Failure {
    fn from(error: convert::documents::Error) -> Self {
        use convert::documents::ErrorKind;

        let location: std::sync::Arc<str> = error.location().into();
        match error.into_kind() {
            ErrorKind::Cancelled(_) => Self::Interrupted,
            #[cfg(feature = "arrow")]
            ErrorKind::Parquet(kind) => tercet::arrow::Error::new(location, *kind).into(),
            kind => {
                let error = convert::documents::Error::new(std::sync::Arc::clone(&location), kind);
                Self::for_program(&error, "tatami").with_location(&*location)
            }
        }
    }
}

impl From<convert::npy::Error> for Failure {
    fn from(error: convert::npy::Error) -> Self {
        Self::from_error(&error).with_location(error.location())
    }
}

impl From<PublishError> for Failure {
    fn from(error: PublishError) -> Self {
        Self::from_error(&error).with_location(error.path())
    }
}

impl From<tercet::Error> for Failure {
    fn from(error: tercet::Error) -> Self {
        let location: std::sync::Arc<str> = error.location().into();
        match error.into_kind() {
            tercet::ErrorKind::Tet(kind) => tet::Error::new(location, kind).into(),
            tercet::ErrorKind::Tgm(kind) => tgm::Error::new(location, kind).into(),
            tercet::ErrorKind::Tatami(kind) => tatami::Error::new(location, kind).into(),
            tercet::ErrorKind::Publish(error) => (*error).into(),
            kind => {
                let error = tercet::Error::new(location, kind);
                Self::from_error(&error).with_location(error.location())
            }
        }
    }
}

impl From<tet::LayoutError> for Failure {
    fn from(error: tet::LayoutError) -> Self {
        let failure = Self::request(error.to_string());
        match error.hint() {
            Some(hint) => failure.with_hint(hint_text(&hint, "tet")),
            None => failure,
        }
    }
}

impl Failure {
    /// A byte source that cannot be opened or read.
    pub(crate) fn source(name: &str, error: SourceError) -> Self {
        tet::Error::new(name.into(), error.into()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_reported_once() {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let Failure::Error(report) = Failure::source("a.tet", SourceError::Open(missing())) else {
            panic!("an error was expected");
        };
        assert_eq!(report.message.matches(&missing().to_string()).count(), 1, "{}", report.message);
        assert_eq!(report.class, Class::Io);
    }

    #[test]
    fn the_location_is_the_argument_that_the_message_names() {
        let args = ["tet", "create", "a.tet", "--from", "x=dir/my file.npy", "--labels=a"];
        let location = |message: &str| {
            let failure = Failure::request(message).located(args.iter().map(OsString::from));
            let Failure::Error(report) = failure else { panic!("an error was expected") };
            report.location
        };
        assert_eq!(location("a.tet: file exists").as_deref(), Some("a.tet"));
        assert_eq!(location("dir/my file.npy: empty").as_deref(), Some("dir/my file.npy"));
        assert_eq!(location("a: line 1: empty").as_deref(), Some("a"));
        assert_eq!(location("a.tet is odd"), None);
        assert_eq!(location("tet: odd"), None);
        let known =
            Failure::request("a.tet: x").with_location("b.tet").located(args.iter().map(OsString::from));
        assert!(matches!(known, Failure::Error(report) if report.location.as_deref() == Some("b.tet")));
    }

    #[test]
    fn a_closed_pipe_is_not_an_error() {
        let closed = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(Failure::output(&closed).exit_code(), 0);
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(Failure::output(&full).exit_code(), Class::Io.exit_code());
        let fault = tet::ErrorKind::Common(CommonError::Write(closed));
        assert_eq!(Failure::from(tet::Error::new("a".into(), fault)).exit_code(), 0);
        let fault = tgm::ErrorKind::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(Failure::from(tgm::Error::new("a".into(), fault)).exit_code(), 0);
    }
}
