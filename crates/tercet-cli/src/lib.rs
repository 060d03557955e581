//! The commands `tercet`, `tet`, `tgm` and `tatami`: arguments in, libraries called, results drawn.
//!
//! All binaries are the same program under different names; [`Persona`] says which verbs it has.
//! Nothing here knows a byte of any format: every fact comes from the libraries, and this crate only renders it.
//!
//! | module | what it holds |
//! |---|---|
//! | `persona` | which verbs a binary has |
//! | `run` | the road from `argv` to an exit code |
//! | `cmd` | one file for each verb |
//! | `input` | a path, an address or `-`, opened |
//! | `address` | files at servers and in object stores |
//! | `named_file` | `NAME=FILE` of a command line |
//! | `output` | a new file or standard output, and how arrays are written |
//! | `ui` | standard output, notes, progress bars, interrupts |
//! | `render` | tables, sizes, times |
//! | `failure` | errors as the user sees them |

mod cmd;
mod failure;
mod input;
mod named_file;
mod output;
mod persona;
mod remote;
mod render;
mod run;
mod ui;

pub use persona::Persona;
pub use run::main_as;
