//! Terminal output: standard output, notes on standard error, progress bars, interrupts.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, BufWriter, IsTerminal as _, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use tercet::core::escape;

use crate::args::GlobalArgs;
use crate::failure::{ErrorReport, Failure};

mod bar;
mod file_limit;
mod interrupt;
mod json;
mod signals;

pub(crate) use bar::Bar;
pub(crate) use file_limit::survive_file_limits;
pub(crate) use interrupt::{
    EXIT_CODE, exit_at_once_if_interrupted, is_interrupted, leave_time_to_end, watch_for_interrupts,
};

/// Style of headings and field names.
pub(crate) const HEADING: Style = Style::new().bold();
/// Style of success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Style of warnings.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
/// Style of errors.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// Style of secondary text.
pub(crate) const DIM: Style = Style::new().dimmed();

/// Text in a style. [`Ui`] strips styles unless the stream is a terminal.
pub(crate) fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Standard output, notes and progress of a command.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(crate) struct Ui {
    output: Output,
    progress: bool,
    /// Hide summaries, and lines that start with `note:`.
    quiet: bool,
    /// Print class, exit code and byte range of errors.
    verbose: bool,
    /// The verb prints JSON.
    json: bool,
    /// Write notes and errors to standard output too, in order with the text.
    one_stream: bool,
    /// Write text to standard error: standard output is a file.
    stdout_is_data: bool,
    /// The notes that are printed once.
    noted: BTreeSet<String>,
}

/// Where the output goes.
#[derive(Debug)]
enum Output {
    Process {
        /// Text; styles are stripped unless this is a terminal.
        text: BufWriter<anstream::AutoStream<io::Stdout>>,
        /// Binary output, written unchanged.
        bytes: BufWriter<io::Stdout>,
    },
    /// Kept in order, to be printed later by another `Ui`.
    Captured(Vec<Piece>),
}

/// A piece of captured output.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Text with styles.
    Text(String),
    /// Binary output.
    Bytes(Vec<u8>),
    /// An indented JSON document.
    Json(String),
    /// A note on standard error.
    Note(String),
}

impl Ui {
    pub(crate) fn new(global: GlobalArgs, json: bool) -> Self {
        let GlobalArgs { quiet, verbose, no_progress, .. } = global;
        let text = BufWriter::new(anstream::stdout());
        let bytes = BufWriter::with_capacity(1 << 16, io::stdout());
        let output = Output::Process { text, bytes };
        let progress = !no_progress && !quiet && io::stderr().is_terminal();
        Self {
            output,
            progress,
            quiet,
            verbose,
            json,
            one_stream: false,
            stdout_is_data: false,
            noted: BTreeSet::new(),
        }
    }

    /// A `Ui` with the same settings that keeps its output and shows no progress.
    pub(crate) fn capture(&self) -> Self {
        let Self { quiet, verbose, json, one_stream, stdout_is_data, .. } = *self;
        let output = Output::Captured(Vec::new());
        Self {
            output,
            progress: false,
            quiet,
            verbose,
            json,
            one_stream,
            stdout_is_data,
            noted: BTreeSet::new(),
        }
    }

    /// Whether the output is captured: the file is one of several.
    pub(crate) fn is_captured(&self) -> bool {
        matches!(self.output, Output::Captured(_))
    }

    /// The captured output.
    pub(crate) fn into_pieces(self) -> Vec<Piece> {
        match self.output {
            Output::Captured(pieces) => pieces,
            Output::Process { .. } => Vec::new(),
        }
    }

    /// Prints captured output, except JSON documents.
    pub(crate) fn replay(&mut self, piece: &Piece) -> Result<(), Failure> {
        match piece {
            Piece::Text(text) => self.text(format_args!("{text}")),
            Piece::Bytes(bytes) => self.bytes()?.write_all(bytes).map_err(|error| Failure::output(&error)),
            Piece::Json(_) => Ok(()),
            Piece::Note(note) => self.note(note),
        }
    }

    /// Prints a line of text.
    pub(crate) fn line(&mut self, text: impl std::fmt::Display) -> Result<(), Failure> {
        self.text(format_args!("{text}\n"))
    }

    /// Prints the summary of what a verb wrote or found; `--quiet` hides it.
    pub(crate) fn summary(&mut self, text: impl std::fmt::Display) -> Result<(), Failure> {
        if self.quiet { Ok(()) } else { self.line(text) }
    }

    /// Prints a summary on standard error, where standard output holds the result.
    pub(crate) fn side_summary(&mut self, text: impl std::fmt::Display) -> Result<(), Failure> {
        if self.quiet { Ok(()) } else { self.note(text) }
    }

    fn text(&mut self, text: std::fmt::Arguments<'_>) -> Result<(), Failure> {
        match &mut self.output {
            Output::Process { .. } if self.stdout_is_data => {
                // A closed stream is ignored.
                let _ = anstream::stderr().write_fmt(text);
                Ok(())
            }
            Output::Process { text: out, .. } => out.write_fmt(text).map_err(|error| Failure::output(&error)),
            Output::Captured(pieces) => {
                if let Some(Piece::Text(last)) = pieces.last_mut() {
                    // Writing to a String cannot fail.
                    let _ = last.write_fmt(text);
                } else {
                    pieces.push(Piece::Text(text.to_string()));
                }
                Ok(())
            }
        }
    }

    /// Prints a value as indented JSON, while it is serialized: results can be large.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        if let Output::Captured(pieces) = &mut self.output {
            let mut text = Vec::new();
            json::write_pretty(&mut text, value)?;
            pieces.push(Piece::Json(String::from_utf8_lossy(&text).into_owned()));
            return Ok(());
        }
        let mut out = self.bytes()?;
        json::write_pretty(&mut out, value)?;
        out.write_all(b"\n").map_err(|error| Failure::output(&error))
    }

    /// Prints a value as JSON on one line.
    pub(crate) fn json_line(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let mut line = Vec::new();
        json::write_line(&mut line, value)?;
        line.push(b'\n');
        self.bytes()?.write_all(&line).map_err(|error| Failure::output(&error))
    }

    /// Prints text as it is: stripping styles could change a value.
    pub(crate) fn raw(&mut self, text: &str) -> Result<(), Failure> {
        self.bytes()?.write_all(text.as_bytes()).map_err(|error| Failure::output(&error))
    }

    /// Standard output for binary data.
    pub(crate) fn bytes(&mut self) -> Result<&mut dyn Write, Failure> {
        self.finish()?;
        match &mut self.output {
            Output::Process { bytes, .. } => Ok(bytes),
            Output::Captured(pieces) => {
                pieces.push(Piece::Bytes(Vec::new()));
                match pieces.last_mut() {
                    Some(Piece::Bytes(bytes)) => Ok(bytes),
                    _ => Err(Failure::request("no captured output")),
                }
            }
        }
    }

    /// Prints a note on standard error, after flushing standard output.
    pub(crate) fn note(&mut self, text: impl std::fmt::Display) -> Result<(), Failure> {
        let text = text.to_string();
        if self.quiet && text.starts_with("note:") {
            return Ok(());
        }
        if self.one_stream {
            return self.line(text);
        }
        if let Output::Captured(pieces) = &mut self.output {
            pieces.push(Piece::Note(text));
            return Ok(());
        }
        self.finish()?;
        print_note(text);
        Ok(())
    }

    /// Prints a note, unless it was printed before: many objects can have the same note.
    pub(crate) fn note_once(&mut self, text: impl std::fmt::Display) -> Result<(), Failure> {
        let text = text.to_string();
        if self.noted.insert(text.clone()) { self.note(text) } else { Ok(()) }
    }

    /// Prints the verdict on a single file. A list of files has a summary instead, and JSON contains the verdict.
    pub(crate) fn verdict(&mut self, text: &str) -> Result<(), Failure> {
        match self.output {
            Output::Process { .. } if !self.json => self.note(text),
            _ => Ok(()),
        }
    }

    /// Writes notes to standard output from here on, so that a transcript stays in order.
    pub(crate) fn join_streams(&mut self) {
        self.one_stream = true;
    }

    /// Writes text to standard error from here on, because standard output is a file.
    pub(crate) fn use_stdout_for_data(&mut self) {
        self.stdout_is_data = true;
    }

    /// A progress bar for `total` bytes, or for an unknown length if 0. It appears after half a second, on a terminal only.
    pub(crate) fn bar(&self, what: &'static str, total: u64) -> Bar {
        Bar::new(what, total, self.progress)
    }

    /// Shows no progress from here on: `--quiet`.
    pub(crate) fn hush(&mut self, quiet: bool) {
        self.progress &= !quiet;
    }

    /// Whether errors are printed with class, exit code and byte range.
    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose
    }

    /// Whether the verb prints JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Rejects `--json` where a verb has no JSON output.
    pub(crate) fn must_not_be_json(&self, verb: &str) -> Result<(), Failure> {
        if self.json { Err(Failure::request(format!("`{verb}` has no JSON output"))) } else { Ok(()) }
    }

    /// Whether notes and summaries are hidden.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Flushes buffered output.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        match &mut self.output {
            Output::Process { text, bytes } => {
                text.flush().and_then(|()| bytes.flush()).map_err(|error| Failure::output(&error))
            }
            Output::Captured(_) => Ok(()),
        }
    }
}

/// Prints a note on standard error; a closed stream is ignored.
pub(crate) fn print_note(text: impl std::fmt::Display) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Formats an error with excerpt and hint.
pub(crate) fn error_text(report: &ErrorReport, verbose: bool) -> String {
    let mut text = format!("{} {}", paint(BAD, "error:"), escape_lines(&report.message));
    // Writing to a String cannot fail.
    if let Some(excerpt) = &report.excerpt {
        let number = excerpt.number.to_string();
        let (gutter, below) = (format!("{number} |"), format!("{:>1$}", "|", number.len() + 2));
        let _ = write!(text, "\n  {} {}", paint(DIM, gutter), excerpt.line);
        let _ = write!(text, "\n  {} {}", paint(DIM, below), paint_marks(&excerpt.marks));
    }
    if let Some(hint) = &report.hint {
        let _ = write!(text, "\n  {} {}", paint(GOOD, "hint:"), escape_lines(hint));
    }
    if verbose {
        let (class, code) = (report.class_name(), report.class.exit_code());
        let span = report.span.map(|span| format!(", bytes {span}")).unwrap_or_default();
        let _ = write!(text, "\n  {}", paint(DIM, format_args!("class: {class}, exit code: {code}{span}")));
    }
    text
}

/// Colors the marks, not the spaces before them.
fn paint_marks(marks: &str) -> String {
    let bare = marks.trim_start();
    format!("{}{}", &marks[..marks.len() - bare.len()], paint(BAD, bare))
}

/// Escapes every line of a message: it may quote untrusted text of a file.
pub(crate) fn escape_lines(text: &str) -> String {
    text.split('\n').map(escape::name).collect::<Vec<_>>().join("\n")
}
