//! Whether messages are valid.
//!
//! Four levels, each with the ones before: structure, metadata, integrity, fidelity. Every finding has a stable code.
//! A message without errors is one that the default reader accepts; findings that the reference lets pass, because its
//! readers never look there, are errors here.

mod code;
mod content;
mod index;
mod integrity;
mod report;
mod structure;

use std::sync::Arc;

use tercet_core::{ByteSource, Progress, Span};

pub use code::{Code, Level};
pub use report::{FileIssue, FileReport, Issue, MessageReport};

use crate::error::{Error, ErrorKind};
use crate::options::{ReadOptions, Sz3Decoding};
use crate::scan::{ScanOptions, scan_source};
use crate::window::Window;

/// How deep to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// Structure.
    Quick,
    /// Structure, metadata and integrity.
    #[default]
    Default,
    /// Structure, and the hashes of integrity. Nothing is decoded.
    Checksum,
    /// Everything: objects are decoded and looked through.
    Full,
}

/// What to look at.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ValidateOptions {
    /// How deep.
    pub depth: Depth,
    /// Whether CBOR must be in its canonical form.
    pub canonical: bool,
    /// What happens to payloads that SZ3 compressed.
    pub sz3: Sz3Decoding,
    /// The largest sizes that are believed.
    pub limits: tercet_core::Limits,
}

impl ValidateOptions {
    /// Structure, metadata and integrity.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks so deep.
    pub fn with_depth(mut self, depth: Depth) -> Self {
        self.depth = depth;
        self
    }

    /// Asks for canonical CBOR.
    pub fn with_canonical(mut self, canonical: bool) -> Self {
        self.canonical = canonical;
        self
    }

    /// Has SZ3 payloads decoded like this when values are looked at.
    pub fn with_sz3(mut self, sz3: Sz3Decoding) -> Self {
        self.sz3 = sz3;
        self
    }

    /// Believes sizes up to these.
    pub fn with_limits(mut self, limits: tercet_core::Limits) -> Self {
        self.limits = limits;
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

    /// Readers that stop at nothing: what they would stop at is what is looked for.
    fn reading(&self) -> ReadOptions {
        ReadOptions::new().with_verify(false).with_strict(false).with_limits(self.limits).with_sz3(self.sz3)
    }
}

/// Checks every message of a file, and that there is nothing between them.
pub fn validate_source(
    source: &Arc<dyn ByteSource>,
    options: &ValidateOptions,
    progress: &dyn Progress,
) -> Result<FileReport, Error> {
    let fail = |fault: ErrorKind| Error::new(source.name().clone(), fault);
    let scan =
        scan_source(&**source, ScanOptions::default(), &tercet_core::progress::NoProgress).map_err(fail)?;
    let mut report = FileReport::default();
    report.file_issues.extend(scan.junk.iter().map(|junk| FileIssue::for_junk(*junk, source.len())));
    for (&span, number) in scan.messages.iter().zip(0..) {
        report.messages.push(validate_message(source, number, span, options).map_err(fail)?);
        progress.check().map_err(|stopped| fail(stopped.into()))?;
        progress.advance(span.len());
    }
    if options.level(Level::Metadata) {
        index::check(source, &scan, &options.reading(), &mut report).map_err(fail)?;
    }
    Ok(report)
}

/// Checks one message, given as bytes.
pub fn validate_bytes(bytes: &[u8], options: &ValidateOptions) -> Result<MessageReport, Error> {
    let memory = tercet_core::source::Memory::new("buffer", bytes::Bytes::copy_from_slice(bytes));
    let source: Arc<dyn ByteSource> = Arc::new(memory);
    let span = Span::first(source.len());
    validate_message(&source, 0, span, options).map_err(|fault| Error::new(source.name().clone(), fault))
}

fn validate_message(
    source: &Arc<dyn ByteSource>,
    number: u64,
    span: Span,
    options: &ValidateOptions,
) -> Result<MessageReport, ErrorKind> {
    let mut report = MessageReport::new(span);
    let mut window = Window::up_to(&**source, span.end())?;
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
        lists = content::check(&**source, &layout, &reading, options.canonical, &mut report)?;
    }
    if options.level(Level::Integrity) {
        let decode = options.depth != Depth::Checksum;
        let fidelity = options.level(Level::Fidelity);
        let work =
            integrity::Work { source: &**source, layout: &layout, reading: &reading, decode, fidelity };
        work.check(&mut window, &lists, &mut report)?;
    }
    report.locate(Some(&layout));
    Ok(report)
}

/// The words of a fault in one line, without the number of the message, which the report counts for itself.
fn words(fault: &dyn std::fmt::Display) -> String {
    let text = fault.to_string().replace("\n  ", ": ");
    let Some((before, behind)) = text.split_once("message ") else { return text };
    match behind.split_once(" › ") {
        Some((number, place)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{before}{place}")
        }
        _ => text,
    }
}
