//! Validation of messages.
//!
//! There are four levels, each including the previous ones: structure, metadata, integrity, fidelity. Every finding has a
//! stable code. The default reader accepts a message without errors. Findings that the reference ignores, because its
//! readers do not check them, are errors here.

mod code;
mod content;
mod index;
mod integrity;
mod report;
mod structure;

use std::num::NonZeroUsize;
use std::sync::Arc;

use tercet_core::limits::LimitExceeded;
use tercet_core::threads::install;
use tercet_core::{ByteSource, CommonError, Progress, Span};

pub use code::{Code, Level};
pub use report::{FileIssue, FileReport, Issue, MessageReport};

use crate::cbor::CborErrorKind;
use crate::error::{Error, ErrorKind};
use crate::gaps::Gap;
use crate::options::ReadOptions;
use crate::scan::{ScanOptions, scan_source};
use crate::window::Window;

/// The depth of a validation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// Structure.
    Quick,
    /// Structure, metadata and integrity.
    #[default]
    Default,
    /// Structure and hashes. Nothing is decoded.
    Checksum,
    /// Everything: objects are decoded and their values checked.
    Full,
}

/// Options of a validation.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ValidateOptions {
    /// The depth.
    pub depth: Depth,
    /// Whether CBOR must be canonical.
    pub canonical: bool,
    /// The maximum sizes accepted.
    pub limits: tercet_core::Limits,
    /// The number of threads; see [`tercet_core::ReadOptions::threads`].
    pub threads: Option<NonZeroUsize>,
}

impl ValidateOptions {
    /// Structure, metadata and integrity.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the depth.
    pub fn with_depth(mut self, depth: Depth) -> Self {
        self.depth = depth;
        self
    }

    /// Sets whether CBOR must be canonical.
    pub fn with_canonical(mut self, canonical: bool) -> Self {
        self.canonical = canonical;
        self
    }

    /// Sets the maximum sizes accepted.
    pub fn with_limits(mut self, limits: tercet_core::Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the number of threads.
    pub fn with_threads(mut self, threads: Option<NonZeroUsize>) -> Self {
        self.threads = threads;
        self
    }

    fn level(&self, level: Level) -> bool {
        match level {
            Level::Structure => true,
            Level::Metadata => self.canonical || matches!(self.depth, Depth::Default | Depth::Full),
            Level::Integrity => self.depth != Depth::Quick,
            Level::Fidelity => self.depth == Depth::Full,
        }
    }

    /// Lenient read options: the validation itself reports what a reader would reject.
    fn reading(&self) -> ReadOptions {
        ReadOptions::new()
            .with_verify(false)
            .with_strict(false)
            .with_limits(self.limits)
            .with_threads(self.threads)
    }
}

/// Validates every message of a file, and reports unrecognized bytes.
///
/// An exceeded limit is not damage. It is reported as a warning next to errors; a file without errors that could not be
/// checked completely is an error of class [`Limit`](tercet_core::Class::Limit).
pub fn validate_source(
    source: &Arc<dyn ByteSource>,
    options: &ValidateOptions,
    progress: &dyn Progress,
) -> Result<FileReport, Error> {
    install(options.threads, || validate_messages(&**source, options, progress))
}

/// Validates every message of a borrowed buffer; `name` appears in errors.
pub(crate) fn validate_slice(
    name: &str,
    buffer: &[u8],
    options: &ValidateOptions,
) -> Result<FileReport, Error> {
    let source = tercet_core::source::Slice::new(name, buffer);
    install(options.threads, || validate_messages(&source, options, &tercet_core::progress::NoProgress))
}

fn validate_messages(
    source: &dyn ByteSource,
    options: &ValidateOptions,
    progress: &dyn Progress,
) -> Result<FileReport, Error> {
    let fail = |fault: ErrorKind| Error::new(source.name().clone(), fault);
    let scan =
        scan_source(source, ScanOptions::default(), &tercet_core::progress::NoProgress).map_err(fail)?;
    let mut report = FileReport::default();
    let cut_tail = scan.cut_tail(source).map_err(fail)?;
    for &span in &scan.unrecognized {
        let detail = match cut_tail.filter(|cut| cut.span.end() == span.end()) {
            Some(cut) => Some(cut.to_string()),
            None => Gap::find(source, span).map_err(fail)?.map(|gap| gap.to_string()),
        };
        report.file_issues.push(FileIssue::for_unrecognized(span, source.len(), detail));
    }
    let indexes = index::spans(source, &scan, options).map_err(fail)?;
    let mut number = 0;
    for &span in &scan.messages {
        let mut message = validate_message(source, number, span, options).map_err(fail)?;
        // Indexes are not counted: messages have the numbers that readers use.
        let is_index = indexes.contains(&span.start());
        message.number = (!is_index).then_some(number);
        number += u64::from(!is_index);
        report.messages.push(message);
        progress.check().map_err(|stopped| fail(stopped.into()))?;
        progress.advance(span.len());
    }
    if options.level(Level::Metadata) {
        index::check(source, &options.reading(), &mut report).map_err(fail)?;
    }
    match report.messages.iter().find_map(|message| message.limit) {
        Some(limit) if report.is_ok() => Err(fail(limit.into())),
        _ => Ok(report),
    }
}

/// The limit that an error is about.
fn limit_of(fault: &ErrorKind) -> Option<LimitExceeded> {
    match fault {
        ErrorKind::Common(CommonError::Limit(limit)) => Some(*limit),
        ErrorKind::Cbor { error, .. } => match error.reason {
            CborErrorKind::Limit(limit) => Some(limit),
            _ => None,
        },
        _ => None,
    }
}

/// Validates one message.
pub fn validate_bytes(bytes: &[u8], options: &ValidateOptions) -> Result<MessageReport, Error> {
    let source = tercet_core::source::Slice::new("buffer", bytes);
    let span = Span::first(source.len());
    let fail = |fault: ErrorKind| Error::new(source.name().clone(), fault);
    let report = install(options.threads, || validate_message(&source, 0, span, options)).map_err(fail)?;
    match report.limit {
        Some(limit) if report.is_ok() => Err(fail(limit.into())),
        _ => Ok(report),
    }
}

fn validate_message(
    source: &dyn ByteSource,
    number: u64,
    span: Span,
    options: &ValidateOptions,
) -> Result<MessageReport, ErrorKind> {
    let mut report = MessageReport::new(span);
    let mut window = Window::up_to(source, span.end())?;
    let reading = options.reading();
    let layout = structure::check(&mut window, number, span, &reading, &mut report)?;
    if options.depth == Depth::Checksum && !options.canonical {
        report.keep_errors();
    }
    let Some(layout) = layout else {
        report.locate(None);
        return Ok(report);
    };
    report.object_count = layout.object_count();
    let mut lists = Vec::new();
    if options.level(Level::Metadata) {
        lists = content::check(source, &layout, &reading, options.canonical, &mut report)?;
    }
    if options.level(Level::Integrity) {
        let decode = options.depth != Depth::Checksum;
        let fidelity = options.level(Level::Fidelity);
        let work = integrity::Work { source, layout: &layout, reading: &reading, decode, fidelity };
        work.check(&mut window, &lists, &mut report)?;
    }
    report.locate(Some(&layout));
    Ok(report)
}

/// The error message in one line, without the number of the message, which the report contains.
fn one_line(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string().replace("\n  ", ": ");
    let Some((before, rest)) = text.split_once("message ") else { return text };
    match rest.split_once(" › ") {
        Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{before}{rest}")
        }
        _ => text,
    }
}
