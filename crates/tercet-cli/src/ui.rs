//! Everything that reaches the user: standard output, notes on standard error, progress, interrupts.

use std::fmt::Write as _;
use std::io::{self, BufWriter, IsTerminal as _, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use tercet::core::escape;

use crate::failure::{Failure, Report};

mod bar;
mod file_limit;
mod interrupt;

pub(crate) use bar::Bar;
pub(crate) use file_limit::survive_file_limits;
pub(crate) use interrupt::{exit_at_once_if_interrupted, is_interrupted, watch_for_interrupts};

/// Names of things: headings, field names.
pub(crate) const HEADING: Style = Style::new().bold();
/// Things that are well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Things worth a look.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
/// Things that are wrong.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// Things of less interest.
pub(crate) const DIM: Style = Style::new().dimmed();

/// Text in a style. Styles reach terminals only: [`Ui`] takes them out everywhere else.
pub(crate) fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Standard output, and how to show progress.
#[derive(Debug)]
pub(crate) struct Ui {
    /// Text: styles are taken out unless this is a terminal.
    text: BufWriter<anstream::AutoStream<io::Stdout>>,
    /// Bytes that are nobody's to touch.
    bytes: BufWriter<io::Stdout>,
    progress: bool,
    /// Notes and errors go to standard output too, in their place among the text.
    one_stream: bool,
}

impl Ui {
    pub(crate) fn new(progress: bool) -> Self {
        let text = BufWriter::new(anstream::stdout());
        let bytes = BufWriter::with_capacity(1 << 16, io::stdout());
        Self { text, bytes, progress: progress && io::stderr().is_terminal(), one_stream: false }
    }

    /// One line of text.
    pub(crate) fn line(&mut self, text: impl std::fmt::Display) -> Result<(), Failure> {
        writeln!(self.text, "{text}").map_err(|error| Failure::output(&error))
    }

    /// A value as indented JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        // As bytes: taking styles out of text could take something out of a value.
        let out = self.bytes()?;
        let text = serde_json::to_string_pretty(value)
            .map_err(|error| Failure::request(format!("cannot be told in JSON: {error}")))?;
        writeln!(out, "{}", escape::json(&text)).map_err(|error| Failure::output(&error))
    }

    /// A value as JSON on one line.
    pub(crate) fn json_line(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let out = self.bytes()?;
        let text = serde_json::to_string(value)
            .map_err(|error| Failure::request(format!("cannot be told in JSON: {error}")))?;
        writeln!(out, "{}", escape::json(&text)).map_err(|error| Failure::output(&error))
    }

    /// Standard output for bytes instead of text.
    pub(crate) fn bytes(&mut self) -> Result<&mut dyn Write, Failure> {
        self.finish()?;
        Ok(&mut self.bytes)
    }

    /// A note on standard error, after everything that was printed before it.
    pub(crate) fn note(&mut self, text: impl std::fmt::Display) -> Result<(), Failure> {
        if self.one_stream {
            return self.line(text);
        }
        self.finish()?;
        print_note(text);
        Ok(())
    }

    /// Writes notes to standard output from here on: for a text that is to be read as one.
    pub(crate) fn join_streams(&mut self) {
        self.one_stream = true;
    }

    /// A bar for work of `total` bytes, or of unknown length if that is 0. It appears after half a second, on a terminal only.
    pub(crate) fn bar(&self, what: &'static str, total: u64) -> Bar {
        Bar::new(what, total, self.progress)
    }

    /// Shows no progress from here on: `--quiet`.
    pub(crate) fn hush(&mut self, quiet: bool) {
        self.progress &= !quiet;
    }

    /// Hands over what is still buffered.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        self.text.flush().and_then(|()| self.bytes.flush()).map_err(|error| Failure::output(&error))
    }
}

/// A note on standard error. If that is closed there is nobody to tell.
pub(crate) fn print_note(text: impl std::fmt::Display) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// An error, and what to do about it.
pub(crate) fn error_text(report: &Report) -> String {
    let mut text = format!("{} {}", paint(BAD, "error:"), safe_lines(&report.message));
    // Writing to a String cannot fail.
    if let Some(excerpt) = &report.excerpt {
        let number = excerpt.number.to_string();
        let (gutter, below) = (format!("{number} |"), format!("{:>1$}", "|", number.len() + 2));
        let _ = write!(text, "\n  {} {}", paint(DIM, gutter), excerpt.line);
        let _ = write!(text, "\n  {} {}", paint(DIM, below), paint_marks(&excerpt.marks));
    }
    if let Some(hint) = &report.hint {
        let _ = write!(text, "\n  {} {}", paint(GOOD, "hint:"), safe_lines(hint));
    }
    text
}

/// Spaces stay as they are, so that nothing but the marks has a colour.
fn paint_marks(marks: &str) -> String {
    let bare = marks.trim_start();
    format!("{}{}", &marks[..marks.len() - bare.len()], paint(BAD, bare))
}

/// Text of the libraries may quote a file in words of a parser: its lines are kept, and nothing else that a terminal
/// would obey.
fn safe_lines(text: &str) -> String {
    text.split('\n').map(escape::name).collect::<Vec<_>>().join("\n")
}
