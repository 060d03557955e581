//! The project's own tasks, run as `cargo xtask TASK`.
//!
//! ```text
//! test      everything that must hold before a change is kept (stages.rs)
//!   ├─ stages/checks.rs   fmt, layers, clippy, docs, features, wasm, deny
//!   ├─ stages/tests.rs    unit, doctest, fuzz, demo
//!   ├─ stages/interop.rs  our files read and verified by the reference implementations
//!   └─ stages/sz3.rs      the feature that needs a C++ compiler
//! layers    only the layer check (layers.rs)
//! oracles   only the installation of the reference implementations (oracles.rs)
//! ```

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a command for developers: it talks to the terminal and stands on std alone"
)]

mod cache;
mod context;
mod layers;
mod oracles;
mod process;
mod report;
mod stages;
mod tally;

use std::process::ExitCode;

use context::Context;
use stages::{STAGES, Stage};

const USAGE: &str = "\
usage: cargo xtask TASK

  test [--only STAGE]... [--list]   run all stages, or only those named; --list names them
  layers                            check which crate uses which
  oracles                           install the reference implementations into the cache

With CI=true a missing golden folder, oracle or compile target is a failure; elsewhere it is
skipped by name. TERCET_GOLDEN names the golden folder when it is not ../shared/golden.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["test", options @ ..] => match chosen(options) {
            Ok(Choice::List) => list(),
            Ok(Choice::Run(stages)) => test(&stages),
            Err(why) => usage(&why),
        },
        ["layers"] => finish(layers::check(&context::checkout()), "layers: all crates in order"),
        ["oracles"] => finish(Context::open().and_then(|found| oracles::install(&found)), "oracles: ready"),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        [] => usage("no task named"),
        [other, ..] => usage(&format!("cannot run `{}`", other.escape_debug())),
    }
}

/// What `test` was asked to do.
enum Choice {
    List,
    Run(Vec<&'static Stage>),
}

/// Reads the options of `test`; stages keep the order of the table, whatever the order they are named in.
fn chosen(options: &[&str]) -> Result<Choice, String> {
    let mut only = Vec::new();
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        match *option {
            "--list" => return Ok(Choice::List),
            "--only" => {
                let name = rest.next().ok_or("`--only` needs the name of a stage")?;
                if !STAGES.iter().any(|stage| stage.name == *name) {
                    return Err(format!("no stage is called `{}`", name.escape_debug()));
                }
                only.push(*name);
            }
            other => return Err(format!("unknown option `{}`", other.escape_debug())),
        }
    }
    Ok(Choice::Run(STAGES.iter().filter(|stage| only.is_empty() || only.contains(&stage.name)).collect()))
}

fn list() -> ExitCode {
    for stage in STAGES {
        println!("{:<9} {}", stage.name, stage.about);
    }
    ExitCode::SUCCESS
}

fn test(stages: &[&Stage]) -> ExitCode {
    match Context::open() {
        Ok(context) => stages::run(&context, stages),
        Err(why) => {
            eprintln!("error: {why}");
            // The last line is a promise to whoever reads the log by machine.
            println!("0 passed, 1 failed, 0 skipped");
            ExitCode::FAILURE
        }
    }
}

fn finish(result: Result<(), String>, success: &str) -> ExitCode {
    match result {
        Ok(()) => {
            println!("{success}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn usage(why: &str) -> ExitCode {
    eprintln!("error: {why}\n\n{USAGE}");
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(options: &[&str]) -> Vec<&'static str> {
        match chosen(options) {
            Ok(Choice::Run(stages)) => stages.iter().map(|stage| stage.name).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn no_option_runs_every_stage() {
        assert_eq!(names(&[]).len(), STAGES.len());
    }

    #[test]
    fn named_stages_run_in_table_order() {
        assert_eq!(names(&["--only", "clippy", "--only", "fmt"]), ["fmt", "clippy"]);
    }

    #[test]
    fn unknown_stages_and_options_are_refused() {
        assert!(chosen(&["--only", "nonsense"]).is_err());
        assert!(chosen(&["--only"]).is_err());
        assert!(chosen(&["--fast"]).is_err());
    }
}
