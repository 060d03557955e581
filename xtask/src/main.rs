//! The project's own tasks, run as `cargo xtask TASK`.
//!
//! ```text
//! test      everything that must hold before a change is kept (stages.rs)
//! nightly   what takes longer, on the shipped build where that matters
//!   ├─ stages/checks.rs   fmt, layers, clippy, docs, features, wasm, deny
//!   ├─ stages/tests.rs    build, unit, doctest, fuzz, demo
//!   ├─ stages/interop.rs  our files read and verified by the reference implementations, queries by NumPy
//!   └─ stages/nightly.rs  release build, large property counts, long fuzzing, many queries
//! layers    only the layer check (layers.rs)
//! wheel     the Python wheel (stages/python.rs)
//! oracles   only the installation of the reference implementations (tools.rs)
//! ```

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a command for developers: plain output, plain files"
)]

mod cache;
mod context;
mod layers;
mod process;
mod report;
mod stages;
mod tally;
mod tools;

use std::process::ExitCode;

use context::Context;
use stages::{NIGHTLY, Stage, TEST};

const USAGE: &str = "\
usage: cargo xtask TASK

  test [--only STAGE]... [--list]      run all stages, or only those named; --list prints them
  nightly [--only STAGE]... [--list]   the same for what takes longer: release build, fuzzing, cargo-deny
  layers                               check which crate uses which
  oracles                              install the reference implementations into the cache
  wheel [--out DIRECTORY]              build the Python wheel [default directory: target/wheels]

With CI=true a missing golden directory, oracle or compile target is a failure; elsewhere it is
skipped by name. TERCET_GOLDEN names the golden directory if it is not ../shared/golden.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["test", options @ ..] => stages(TEST, options),
        ["nightly", options @ ..] => stages(NIGHTLY, options),
        ["layers"] => finish(layers::check(&context::checkout()), "layers: all crates in order"),
        ["oracles"] => {
            finish(Context::open().and_then(|found| tools::install_oracles(&found)), "oracles: ready")
        }
        ["wheel"] => {
            finish(Context::open().and_then(|found| stages::wheel(&found, "target/wheels")), "wheel: built")
        }
        ["wheel", "--out", out] => {
            finish(Context::open().and_then(|found| stages::wheel(&found, out)), "wheel: built")
        }
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        [] => usage("no task given"),
        [other, ..] => usage(&format!("unknown task `{}`", other.escape_debug())),
    }
}

/// Runs or lists the stages of a task.
fn stages(all: &'static [Stage], options: &[&str]) -> ExitCode {
    match chosen(all, options) {
        Ok(Choice::List) => list(all),
        Ok(Choice::Run(stages)) => run(&stages),
        Err(reason) => usage(&reason),
    }
}

/// The request of a task with stages.
enum Choice {
    List,
    Run(Vec<&'static Stage>),
}

/// Parses the options of a task; stages run in the order of the table.
fn chosen(all: &'static [Stage], options: &[&str]) -> Result<Choice, String> {
    let mut only = Vec::new();
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        match *option {
            "--list" => return Ok(Choice::List),
            "--only" => {
                let name = rest.next().ok_or("`--only` needs the name of a stage")?;
                if !all.iter().any(|stage| stage.name == *name) {
                    return Err(format!("unknown stage `{}`", name.escape_debug()));
                }
                only.push(*name);
            }
            other => return Err(format!("unknown option `{}`", other.escape_debug())),
        }
    }
    // These run programs: without a build they would run old ones.
    if only.iter().any(|name| ["interop", "fuzz", "python", "demo"].contains(name)) {
        only.push("build");
    }
    Ok(Choice::Run(all.iter().filter(|stage| only.is_empty() || only.contains(&stage.name)).collect()))
}

fn list(all: &[Stage]) -> ExitCode {
    for stage in all {
        println!("{:<11}{}", stage.name, stage.about);
    }
    ExitCode::SUCCESS
}

fn run(stages: &[&Stage]) -> ExitCode {
    match Context::open() {
        Ok(context) => stages::run(&context, stages),
        Err(reason) => {
            eprintln!("error: {reason}");
            // Programs that read the log rely on the last line.
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
        Err(reason) => {
            eprintln!("error: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn usage(reason: &str) -> ExitCode {
    eprintln!("error: {reason}\n\n{USAGE}");
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(options: &[&str]) -> Vec<&'static str> {
        match chosen(TEST, options) {
            Ok(Choice::Run(stages)) => stages.iter().map(|stage| stage.name).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn no_option_runs_every_stage() {
        assert_eq!(names(&[]).len(), TEST.len());
    }

    #[test]
    fn named_stages_run_in_table_order() {
        assert_eq!(names(&["--only", "clippy", "--only", "fmt"]), ["fmt", "clippy"]);
        assert_eq!(names(&["--only", "fuzz"]), ["build", "fuzz"]);
    }

    #[test]
    fn unknown_stages_and_options_are_rejected() {
        assert!(chosen(TEST, &["--only", "nonsense"]).is_err());
        assert!(chosen(TEST, &["--only"]).is_err());
        assert!(chosen(TEST, &["--fast"]).is_err());
        assert!(chosen(NIGHTLY, &["--only", "deny"]).is_ok());
        assert!(chosen(TEST, &["--only", "deny"]).is_err());
    }
}
