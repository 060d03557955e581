//! The terminal browser: `tercet view --tui`.
//!
//! ```text
//! keys, results ──▶ App::update ──▶ jobs ──▶ worker threads ──▶ results
//!                     └──▶ draw ──▶ terminal
//! ```
//!
//! It shows a file, or the files of a directory: a tree of datasets, messages, objects and columns; the attributes of the
//! selected item; arrays as color maps, tables, search results, the byte layout, and the result of a verification. Everything
//! is done with the keyboard.
//!
//! Names and values in files are untrusted: control characters, bidirectional marks and zero-width characters are escaped
//! where they are read.
//!
//! | module | contents |
//! |---|---|
//! | `app` | `App`: the state, and how keys and results change it; no I/O |
//! | `tree` | the items of the tree |
//! | `views` | the states of the views |
//! | `read` | what the jobs read |
//! | `work` | worker threads and cancellation |
//! | `draw` | drawing of the state |
//! | `terminal` | [`run`]: the terminal, signals, panics |

mod app;
mod draw;
mod edit;
mod read;
mod terminal;
mod text;
mod tree;
mod views;
mod work;

#[cfg(test)]
mod tests;

pub use terminal::{Ended, Options, TuiError, run};
