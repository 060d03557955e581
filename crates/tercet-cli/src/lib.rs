//! The commands `tercet`, `tet`, `tgm` and `tatami`: arguments and rendering.
//!
//! All names run the same program; [`Persona`] selects its verbs. This crate is format-independent: every result comes
//! from the libraries and is only rendered here.
//!
//! | module | subject |
//! |---|---|
//! | `args` | options shared by the verbs |
//! | `persona` | the command line of each program name |
//! | `run` | from `argv` to an exit code |
//! | `cmd` | one file per verb |
//! | `compression` | `--compression CODEC[:LEVEL]` |
//! | `input` | input files, URLs and standard input |
//! | `remote` | remote files: HTTP and object stores |
//! | `many` | verbs over many files, directories and glob patterns |
//! | `named_file` | `NAME=FILE` arguments |
//! | `output` | output files, uploads and standard output |
//! | `ui` | standard output, notes, progress bars, interrupts |
//! | `render` | tables, trees, sizes, times, rows |
//! | `failure` | errors, hints and exit codes |

mod args;
mod cmd;
mod compression;
mod failure;
mod input;
mod many;
mod named_file;
mod output;
mod persona;
mod remote;
mod render;
mod run;
mod ui;

pub use persona::Persona;
pub use run::main_as;
