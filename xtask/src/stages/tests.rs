//! Stages that run tests of our own.

use std::process::Command;

use super::scratch::Scratch;
use crate::context::Context;
use crate::process;
use crate::report::Report;
use crate::tally::Tally;

/// How long each fuzz target runs on mutated inputs.
const FUZZ_SECONDS: &str = "5";

/// Builds everything that the following stages run: tests, and the programs of all members.
pub(super) fn build(context: &Context) -> Report {
    Report::from_failures(process::run(&mut context.build()).err().into_iter().collect())
}

pub(super) fn unit(context: &Context) -> Report {
    let mut report = Report::default();
    if let Err(missing) = context.golden() {
        report.lack(context.ci, "golden", &format!("{} not found", missing.display()));
    }
    if let Some(reason) = &context.without_sz3 {
        report.skip("sz3", reason);
    }
    cargo_test(&mut report, context.workspace_test().args(["--lib", "--tests"]));
    report
}

pub(super) fn doctest(context: &Context) -> Report {
    let mut report = Report::default();
    cargo_test(&mut report, context.workspace_test().arg("--doc"));
    report
}

pub(super) fn cargo_test(report: &mut Report, command: &mut Command) {
    match process::run_captured(command) {
        Ok((output, exit)) => report.add_tests("cargo test", Tally::from_cargo_test(&output), exit),
        Err(reason) => report.fail(reason),
    }
}

/// Runs a program that ends with `N passed, N failed, N skipped`.
pub(super) fn driver(report: &mut Report, name: &str, command: &mut Command) {
    match process::run_captured(command) {
        Ok((output, exit)) => match Tally::from_driver(&output) {
            Some(tally) => report.add_tests(name, tally, exit),
            None => report.fail(exit.err().unwrap_or_else(|| format!("{name} did not end with its counts"))),
        },
        Err(reason) => report.fail(reason),
    }
}

pub(super) fn fuzz(context: &Context) -> Report {
    let mut report = Report::default();
    replay(context, &mut report, FUZZ_SECONDS);
    report
}

/// The corpus of every fuzz target, then mutated inputs for some seconds each.
pub(super) fn replay(context: &Context, report: &mut Report, seconds: &str) {
    let mut replay = Command::new(context.program("replay"));
    replay.args(["--seconds", seconds]).current_dir(context.root.join("fuzz"));
    driver(report, "fuzz replay", &mut replay);
}

pub(super) fn demo(context: &Context) -> Report {
    Report::from_failures(run_demo(&mut Command::new(context.program("tercet"))).err().into_iter().collect())
}

/// Runs `demo` in an empty directory: it leaves its files in the current or the temporary directory.
pub(super) fn run_demo(command: &mut Command) -> Result<(), String> {
    let scratch = Scratch::new("demo")?;
    process::run(command.arg("demo").current_dir(scratch.path()).env("TMPDIR", scratch.path()))
}
