//! The demo transcript: text, and commands that are executed in this process.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tercet::core::{Class, escape};

use crate::failure::Failure;
use crate::persona::Persona;
use crate::run::{error_message, exit_code};
use crate::ui::{DIM, HEADING, Ui, paint};

/// Prints the transcript and runs its commands.
pub(super) struct Stage<'a> {
    dir: &'a Path,
    out: &'a mut Ui,
    chapter: usize,
    /// Whether the last output was that of a command, so that text needs a blank line before it.
    after_command: bool,
}

impl<'a> Stage<'a> {
    pub(super) fn new(dir: &'a Path, out: &'a mut Ui) -> Self {
        out.join_streams();
        Self { dir, out, chapter: 0, after_command: false }
    }

    pub(super) fn dir(&self) -> &'a Path {
        self.dir
    }

    /// A file of the demo.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Prints a chapter title.
    pub(super) fn title(&mut self, title: &str) -> Result<(), Failure> {
        self.chapter += 1;
        self.after_command = false;
        self.out.line("")?;
        self.out.line(paint(HEADING, format_args!("{}. {title}", self.chapter)))
    }

    /// Prints a line of text.
    pub(super) fn text(&mut self, text: &str) -> Result<(), Failure> {
        if std::mem::take(&mut self.after_command) {
            self.out.line("")?;
        }
        self.out.line(text)
    }

    /// Runs `tet` with these arguments.
    pub(super) fn tet(&mut self, args: &[&str], expected: u8) -> Result<(), Failure> {
        self.command(Persona::Tet, args, expected)
    }

    /// Runs `tercet` with these arguments.
    pub(super) fn tercet(&mut self, args: &[&str], expected: u8) -> Result<(), Failure> {
        self.command(Persona::Tercet, args, expected)
    }

    /// Runs `tgm` with these arguments.
    pub(super) fn tgm(&mut self, args: &[&str], expected: u8) -> Result<(), Failure> {
        self.command(Persona::Tgm, args, expected)
    }

    /// Runs `tatami` with these arguments.
    pub(super) fn tatami(&mut self, args: &[&str], expected: u8) -> Result<(), Failure> {
        self.command(Persona::Tatami, args, expected)
    }

    /// Runs a command; file names are resolved in the demo directory. An unexpected exit code ends the demo.
    fn command(&mut self, program: Persona, args: &[&str], expected: u8) -> Result<(), Failure> {
        let is_file = |arg: &str| {
            let path = Path::new(arg);
            path.extension().is_some_and(|extension| {
                ["tet", "tgm", "tatami", "npy", "nc", "jsonl"].iter().any(|known| extension == *known)
            })
        };
        let mut line = vec![OsString::from(program.name())];
        let placed = |arg: &&str| if is_file(arg) { self.path(arg).into() } else { OsString::from(arg) };
        line.extend(args.iter().map(placed));
        let typed: Vec<String> =
            line.iter().map(|arg| quoted(&escape::name(&arg.to_string_lossy()))).collect();
        let typed = typed.join(" ");

        self.out.line("")?;
        self.out.line(paint(HEADING, format_args!("$ {typed}")))?;
        let parsed = program.parse(line.into_iter());
        let line = parsed.map_err(|error| Failure::request(error.to_string()))?;
        let result = line.request.run(program, self.out);
        // Rows are written as bytes: flush them before text.
        self.out.finish()?;
        if let Err(failure) = &result {
            match (failure, error_message(failure, false)) {
                (Failure::Error(_), Some(text)) => self.out.line(text)?,
                _ => return result.map(|_| ()),
            }
        }
        let code = exit_code(&result);
        if code != 0 {
            self.out.line(paint(DIM, format_args!("(exit code {code})")))?;
        }
        self.after_command = true;
        if code == expected {
            return Ok(());
        }
        if let Err(failure @ Failure::Error(_)) = result {
            // Not the error that the demo shows: the disk is full, or a process limit is reached.
            return Err(failure);
        }
        let message = format!("bug in the demo: `{typed}` ended with exit code {code} instead of {expected}");
        Err(Failure::new(Class::Unsupported, message))
    }
}

/// An argument as it is typed in a shell.
fn quoted(arg: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "-_./=:,#*~%+@".contains(character);
    if arg.chars().all(is_plain) { arg.to_owned() } else { format!("'{arg}'") }
}
