//! The command line of each program name.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::OnceLock;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use tercet::Format;

use crate::args::{GlobalArgs, ThreadArgs};
use crate::cmd;
use crate::cmd::tgm::Globals;
use crate::failure::{Failure, Outcome};
use crate::input::argument;
use crate::ui::Ui;

/// The name under which the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persona {
    /// Every format; the format of a file is detected by its magic bytes.
    Tercet,
    /// `.tet` files only.
    Tet,
    /// `.tgm` files only.
    Tgm,
    /// `.tgm` files only, under the name of the reference implementation.
    Tensogram,
    /// `.tatami` files only.
    Tatami,
}

/// The reference implementation's name of the command for `.tgm` files.
const TENSOGRAM: &str = "tensogram";

/// A parsed command line.
#[derive(Debug)]
pub(crate) struct CommandLine {
    pub(crate) global: GlobalArgs,
    pub(crate) threads: Option<usize>,
    /// Whether `--json` is given.
    pub(crate) json: bool,
    /// The name of the innermost verb, and its aliases.
    pub(crate) verb: Vec<String>,
    pub(crate) request: Request,
}

/// Whether this process runs under the name of the reference implementation.
static REFERENCE: OnceLock<bool> = OnceLock::new();

/// Whether output has the form of the reference implementation: the program is called `tensogram`.
pub(crate) fn is_reference() -> bool {
    REFERENCE.get().copied().unwrap_or(false)
}

/// Sets the persona of this process, before arguments are parsed.
pub(crate) fn set_persona(persona: Persona) {
    // Set once for each process.
    let _ = REFERENCE.set(persona == Persona::Tensogram);
}

/// The names of the verb of this process, for hints.
static VERB: OnceLock<Vec<String>> = OnceLock::new();

/// Sets the verb that hints for a file of another format name.
pub(crate) fn set_verb(verb: Vec<String>) {
    // Set once for each process.
    let _ = VERB.set(verb);
}

/// The command for a file of this format: the current verb if the format has it, or else `info`.
pub(crate) fn command_for(format: Format, name: &str) -> String {
    let persona = match format {
        Format::Tet => Persona::Tet,
        Format::Tgm => Persona::Tgm,
        Format::Tatami => Persona::Tatami,
    };
    command_line(persona, VERB.get().map_or(&[], Vec::as_slice), name)
}

fn command_line(persona: Persona, verb: &[String], name: &str) -> String {
    let (program, file, command) = (persona.name(), argument(name), persona.command());
    let known = verb.iter().find_map(|verb| Some((verb, command.find_subcommand(verb)?)));
    let Some((verb, subcommand)) = known else { return format!("{program} info {file}") };
    // More than the file is required. The output is required as an argument or as `-o`.
    let is_output = |arg: &clap::Arg| arg.is_positional() && arg.get_id() == "output";
    let required = subcommand.get_arguments().filter(|arg| arg.is_required_set() || is_output(arg)).count();
    let more = if required > 1 { " …" } else { "" };
    format!("{program} {verb} {file}{more}")
}

/// The name of the innermost verb, and its aliases.
fn innermost_verb(command: &clap::Command, matches: &clap::ArgMatches) -> Vec<String> {
    let Some((name, inner)) = matches.subcommand() else {
        return [command.get_name()]
            .into_iter()
            .chain(command.get_all_aliases())
            .map(str::to_owned)
            .collect();
    };
    command.find_subcommand(name).map(|command| innermost_verb(command, inner)).unwrap_or_default()
}

/// Whether the innermost verb has `--json`.
fn has_json_flag(matches: &clap::ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, inner)) => has_json_flag(inner) || matches!(matches.try_get_one("json"), Ok(Some(true))),
        None => matches!(matches.try_get_one("json"), Ok(Some(true))),
    }
}

/// A verb with its arguments.
#[derive(Debug)]
pub(crate) enum Request {
    Tercet(TercetVerb),
    Tet(TetVerb),
    Tgm(Globals, TgmVerb),
    Tatami(TatamiVerb),
}

const EXIT_CODES: &str = "\
Exit codes:
  0  success                       5  corrupt: a checksum does not match
  1  check failed, or no match     6  a reader limit is exceeded
  2  usage error                   7  not supported by this build
  3  I/O error                     8  invalid request
  4  malformed file              130  interrupted";

/// Read, write, query, verify and repair .tet, .tgm and .tatami files
#[derive(Debug, Parser)]
#[command(name = "tercet", version, after_help = EXIT_CODES, arg_required_else_help = true, max_term_width = 100)]
struct TercetLine {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(subcommand)]
    verb: TercetVerb,
}

/// Read, write, query, verify and repair .tet files: chunked, named N-dimensional arrays
#[derive(Debug, Parser)]
#[command(name = "tet", version, after_help = EXIT_CODES, arg_required_else_help = true, max_term_width = 100)]
struct TetLine {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(subcommand)]
    verb: TetVerb,
}

/// Read, write, edit, validate and repair .tgm files: messages of tensors with metadata
#[derive(Debug, Parser)]
#[command(name = "tgm", version, after_help = EXIT_CODES, arg_required_else_help = true, max_term_width = 100)]
struct TgmLine {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    verb: TgmVerb,
}

/// Read, write, search, verify and repair .tatami files: columnar tables and search segments
#[derive(Debug, Parser)]
#[command(name = "tatami", version, after_help = EXIT_CODES, arg_required_else_help = true, max_term_width = 100)]
struct TatamiLine {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(subcommand)]
    verb: TatamiVerb,
}

/// Help of the verbs that `tercet` has for every format: examples of all of them, and a heading for options of one.
fn for_all_formats(command: clap::Command) -> clap::Command {
    const TET_ONLY: &str = "Options for .tet files";
    let examples = [
        (
            "info",
            "\
Examples:
  tercet info era5.tet stream.tgm crawl.tatami   files of any format
  tercet info -r archive -q                      one line for each file of a directory tree
  tercet info stream.tgm --json                  as JSON",
            &[
                "all",
                "layout",
                "execution",
                "datasets",
                "chunks",
                "history",
                "metadata",
                "limit",
                "dataset",
                "grep",
            ][..],
        ),
        (
            "verify",
            "\
Examples:
  tercet verify stream.tgm       verify all checksums
  tercet verify -r archive       all files of a directory tree, in parallel
  tercet verify x.tatami --deep  decode all values, recompute statistics

Exit code 0: valid; 1: verification failed; others: the check could not run.",
            &["repair"][..],
        ),
        (
            "repair",
            "\
Examples:
  tercet repair bad.tgm              list what can be repaired or salvaged; changes nothing
  tercet repair bad.tgm -o good.tgm  copy the intact parts to a new file
  tercet repair --plan -r archive    possible repairs of a directory tree

Exit code 0: nothing is lost, or repaired in place and valid; 1: something is damaged or lost, or verification still \
fails. A plan has the exit code of `-o`.",
            &["apply", "dry_run", "fill"][..],
        ),
        (
            "outline",
            "\
Examples:
  tercet outline stream.tgm       every frame with its byte range
  tercet outline x.tatami -n 0    every row group
  tercet outline x.tatami --pages pages of column chunks
  tercet outline era5.tet --json  the tree as JSON",
            &[][..],
        ),
    ];
    examples.into_iter().fold(command, |command, (verb, examples, tet_only)| {
        command.mut_subcommand(verb, |verb| {
            let verb = verb.after_help(examples);
            let verb = if verb.get_name() == "outline" {
                verb.mut_arg("pages", |arg| arg.hide(false).help_heading("Options for .tatami files"))
            } else {
                verb
            };
            tet_only.iter().fold(verb, |verb, option| verb.mut_arg(option, |arg| arg.help_heading(TET_ONLY)))
        })
    })
}

/// The verbs of `tercet`.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "one is made for each run")]
pub(crate) enum TercetVerb {
    /// Run a demo on generated files
    Demo(cmd::demo::Args),
    /// Show datasets, messages or columns, and metadata
    Info(cmd::tet::info::Args),
    /// Verify structure and checksums
    Verify(cmd::tet::verify::Args),
    /// Repair a damaged file, or salvage its intact parts
    Repair(cmd::tet::repair::Args),
    /// Print the byte layout as a tree
    Outline(cmd::tet::outline::Args),
    /// Convert array files: NetCDF, HDF5, GRIB, Zarr, NumPy, .tet, .tgm
    ///
    /// Any input to any output: dimensions, coordinates, attributes and packed values are kept. What the output format cannot
    /// hold is reported. The output is read again and compared with the input before it appears.
    ///
    /// Messages of a .tgm file are stacked: metadata keys that vary become dimensions. A .tatami output is a catalog of the input.
    Convert(Box<cmd::convert::Args>),
    /// Compare two files of any format: structure, metadata, values
    Diff(cmd::diff::Args),
    /// Print a hash of the contents that does not depend on the format
    Hash(cmd::diff::HashArgs),
    /// Write a catalog of files: a table with metadata, statistics and pointers
    ///
    /// One row for each dataset, message object and table. Metadata keys and attributes are typed columns.
    Catalog(cmd::catalog::Args),
    /// Search a catalog by terms and filters
    Find(cmd::catalog::FindArgs),
    /// Print or write the data that a catalog pointer refers to
    Get(cmd::catalog::GetArgs),
    /// Serve a directory over HTTP: a page, search, arrays, messages, tables
    Serve(Box<cmd::serve::Args>),
    /// Show a file in the browser or in the terminal
    View(Box<cmd::serve::ViewArgs>),
    /// Run a query: reductions, slices, transforms
    #[command(visible_alias = "q")]
    Query(cmd::tet::query::Args),
    /// Run a command for .tet files
    #[command(subcommand, arg_required_else_help = true)]
    Tet(cmd::tet::Verb),
    /// Run a command for .tgm files
    #[command(arg_required_else_help = true)]
    Tgm(cmd::tgm::Line),
    /// Run a command for .tatami files
    #[command(subcommand, arg_required_else_help = true)]
    Tatami(cmd::tatami::Verb),
    #[command(flatten)]
    Shell(cmd::shell::Verb),
}

/// The verbs of `tet`.
#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "one is made for each run")]
pub(crate) enum TetVerb {
    #[command(flatten)]
    Tet(cmd::tet::Verb),
    #[command(flatten)]
    Shell(cmd::shell::Verb),
}

/// The verbs of `tgm`.
#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "one is made for each run")]
pub(crate) enum TgmVerb {
    #[command(flatten)]
    Tgm(cmd::tgm::Verb),
    #[command(flatten)]
    Shell(cmd::shell::Verb),
}

/// The verbs of `tatami`.
#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "one is made for each run")]
pub(crate) enum TatamiVerb {
    #[command(flatten)]
    Tatami(cmd::tatami::Verb),
    /// Print the version
    Version,
    #[command(flatten)]
    Shell(cmd::shell::Verb),
}

impl Persona {
    /// The persona of a program started under this name or path; `Tercet` if it is no other.
    pub fn from_program_name(path: &OsStr) -> Self {
        let stem = Path::new(path).file_stem();
        let others = [Self::Tet, Self::Tgm, Self::Tensogram, Self::Tatami];
        let named = others.into_iter().find(|persona| stem == Some(OsStr::new(persona.name())));
        named.unwrap_or(Self::Tercet)
    }

    /// The clap command of this persona.
    pub(crate) fn command(self) -> clap::Command {
        without_empty_variables(match self {
            Self::Tercet => for_all_formats(TercetLine::command()),
            Self::Tet => TetLine::command(),
            Self::Tgm => TgmLine::command(),
            Self::Tensogram => TgmLine::command().name(TENSOGRAM),
            Self::Tatami => TatamiLine::command(),
        })
    }

    /// Parses the arguments of this process.
    pub(crate) fn parse(self, args: impl Iterator<Item = OsString>) -> Result<CommandLine, clap::Error> {
        let command = self.command();
        let args: Vec<OsString> = args.collect();
        let matches = command.clone().try_get_matches_from(&args).map_err(|error| with_tip(error, &args))?;
        let (json, verb) = (has_json_flag(&matches), innermost_verb(&command, &matches));
        let (global, threads, request) = match self {
            Self::Tercet => {
                let line = TercetLine::from_arg_matches(&matches)?;
                let threads = match &line.verb {
                    TercetVerb::Tgm(tgm) => tgm.globals.threads(),
                    _ => line.threads.threads,
                };
                (line.global, threads, Request::Tercet(line.verb))
            }
            Self::Tet => {
                let line = TetLine::from_arg_matches(&matches)?;
                (line.global, line.threads.threads, Request::Tet(line.verb))
            }
            Self::Tgm | Self::Tensogram => {
                let line = TgmLine::from_arg_matches(&matches)?;
                (line.global, line.globals.threads(), Request::Tgm(line.globals, line.verb))
            }
            Self::Tatami => {
                let line = TatamiLine::from_arg_matches(&matches)?;
                (line.global, line.threads.threads, Request::Tatami(line.verb))
            }
        };
        Ok(CommandLine { global, threads, json, verb, request })
    }

    /// The name a user types.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tercet => "tercet",
            Self::Tet => "tet",
            Self::Tgm => "tgm",
            Self::Tensogram => TENSOGRAM,
            Self::Tatami => "tatami",
        }
    }
}

/// Ignores environment variables that are empty, which count as unset.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let command = command.mut_args(|arg| {
        if arg.get_env().is_some_and(is_empty) { arg.env(None::<&'static str>) } else { arg }
    });
    command.mut_subcommands(without_empty_variables)
}

/// Adds a tip to an error of clap that would mislead.
fn with_tip(mut error: clap::Error, args: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(arg)) = error.get(ContextKind::InvalidArg) else { return error };
    let has = |flag: &str| args.iter().any(|arg| arg.to_str().is_some_and(|arg| arg.starts_with(flag)));
    let verb = |name: &str| args.iter().any(|arg| arg == name);
    let tip = match error.kind() {
        // Clap names the option, not the variable that it got the value from.
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
            let flag = arg.split([' ', '=']).next().unwrap_or(arg).to_owned();
            let variable = cmd::tgm::environment_variable(&flag).filter(|_| !has(&flag));
            variable.map(|name| format!("the value is that of the environment variable {name}"))
        }
        ErrorKind::UnknownArgument if verb("create") && !has("--from") && !arg.starts_with('-') => {
            let name = if verb("tatami") || args.first().is_some_and(|arg| is_named(arg, "tatami")) {
                arg.clone()
            } else {
                format!("NAME={arg}")
            };
            Some(format!("to read a file, use '--from {name}'"))
        }
        _ => None,
    };
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Whether a program was started under this name.
fn is_named(program: &OsStr, name: &str) -> bool {
    Path::new(program).file_stem() == Some(OsStr::new(name))
}

impl Request {
    /// `--max-array` of the verbs for `.tgm` files.
    pub(crate) fn max_array(&self) -> Option<u64> {
        match self {
            Self::Tercet(TercetVerb::Tgm(line)) => line.globals.max_array(),
            Self::Tgm(globals, _) => globals.max_array(),
            _ => None,
        }
    }

    /// Runs the verb.
    pub(crate) fn run(&self, persona: Persona, out: &mut Ui) -> Result<Outcome, Failure> {
        match self {
            Self::Tercet(TercetVerb::Demo(args)) => cmd::demo::run(args, out),
            Self::Tercet(TercetVerb::Info(args)) => cmd::any::info(args, out),
            Self::Tercet(TercetVerb::Verify(args)) => cmd::any::verify(args, out),
            Self::Tercet(TercetVerb::Repair(args)) => cmd::any::repair(args, out),
            Self::Tercet(TercetVerb::Outline(args)) => cmd::any::outline(args, out),
            Self::Tercet(TercetVerb::Convert(args)) => cmd::convert::run(args, out),
            Self::Tercet(TercetVerb::Diff(args)) => cmd::diff::run(args, out),
            Self::Tercet(TercetVerb::Hash(args)) => cmd::diff::hash(args, out),
            Self::Tercet(TercetVerb::Catalog(args)) => cmd::catalog::run(args, out),
            Self::Tercet(TercetVerb::Find(args)) => cmd::catalog::find(args, out),
            Self::Tercet(TercetVerb::Get(args)) => cmd::catalog::get(args, out),
            Self::Tercet(TercetVerb::Serve(args)) => cmd::serve::run(args, out),
            Self::Tercet(TercetVerb::View(args)) => cmd::serve::view(args, out),
            Self::Tercet(TercetVerb::Query(args)) => cmd::tet::query::run(args, out),
            Self::Tercet(TercetVerb::Tet(verb)) | Self::Tet(TetVerb::Tet(verb)) => verb.run(out),
            Self::Tercet(TercetVerb::Tgm(line)) => line.verb.run(&line.globals, out),
            Self::Tgm(globals, TgmVerb::Tgm(verb)) => verb.run(globals, out),
            Self::Tercet(TercetVerb::Tatami(verb)) | Self::Tatami(TatamiVerb::Tatami(verb)) => verb.run(out),
            Self::Tatami(TatamiVerb::Version) => {
                let (name, version) = (persona.name(), env!("CARGO_PKG_VERSION"));
                if out.is_json() {
                    out.json(&serde_json::json!({ "name": name, "version": version }))?;
                } else {
                    out.line(format_args!("{name} {version}"))?;
                }
                Ok(Outcome::Done)
            }
            Self::Tercet(TercetVerb::Shell(verb))
            | Self::Tet(TetVerb::Shell(verb))
            | Self::Tgm(_, TgmVerb::Shell(verb))
            | Self::Tatami(TatamiVerb::Shell(verb)) => verb.run(persona, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_line_is_sound() {
        for persona in [Persona::Tercet, Persona::Tet, Persona::Tgm, Persona::Tensogram, Persona::Tatami] {
            let command = persona.command();
            assert_eq!(command.get_name(), persona.name());
            command.debug_assert();
        }
    }

    #[test]
    fn hints_name_the_same_verb_where_the_format_has_it() {
        for (persona, verb, name, command) in [
            (Persona::Tgm, "verify", "x.tgm", "tgm verify x.tgm"),
            (Persona::Tet, "validate verify", "x.tet", "tet verify x.tet"),
            (Persona::Tgm, "verify", "my x.tgm", "tgm verify 'my x.tgm'"),
            (Persona::Tatami, "info", "x", "tatami info x"),
            (Persona::Tet, "cat", "x", "tet info x"),
            (Persona::Tgm, "extract", "x.tgm", "tgm extract x.tgm …"),
            (Persona::Tet, "outline", "standard input", "tet outline -"),
        ] {
            let verb: Vec<String> = verb.split(' ').map(str::to_owned).collect();
            assert_eq!(command_line(persona, &verb, name), command);
        }
    }

    #[test]
    fn a_link_changes_the_command() {
        let persona = |path: &str| Persona::from_program_name(OsStr::new(path));
        for named in [Persona::Tercet, Persona::Tet, Persona::Tgm, Persona::Tensogram, Persona::Tatami] {
            assert_eq!(persona(named.name()), named);
            assert_eq!(persona(&format!("/usr/local/bin/{}", named.name())), named);
            assert_eq!(persona(&format!("{}.exe", named.name())), named);
        }
        for other in ["tensogram/tercet", "tensogram2", "Tet", ""] {
            assert_eq!(persona(other), Persona::Tercet, "{other}");
        }
    }
}
