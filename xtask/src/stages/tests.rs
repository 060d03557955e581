//! Stages that run tests of our own.

use std::process::Command;

use super::scratch::Scratch;
use crate::context::Context;
use crate::process;
use crate::report::Report;
use crate::tally::Tally;

/// How long each fuzz target runs on changed inputs.
const FUZZ_SECONDS: &str = "5";

pub(super) fn unit(context: &Context) -> Report {
    let mut report = Report::default();
    let mut command = context.cargo();
    command
        .args(["test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests"])
        .args(context.locked())
        // A snapshot that differs is a failure, never a new snapshot.
        .env("INSTA_UPDATE", "no");
    match context.golden() {
        Ok(folder) => {
            command.env("TERCET_GOLDEN", folder);
        }
        Err(missing) => report.lack(context.ci, "golden", &format!("{} not found", missing.display())),
    }
    cargo_test(&mut report, &mut command);
    // What a feature adds that is not in a plain build.
    let mut command = context.cargo();
    command.args(["test", "--package", "tercet-tgm", "--no-fail-fast", "--features", "async"]);
    cargo_test(&mut report, command.args(["--lib", "--test", "asynchronous"]).args(context.locked()));
    report
}

pub(super) fn doctest(context: &Context) -> Report {
    let mut report = Report::default();
    let mut command = context.cargo();
    command.args(["test", "--workspace", "--no-fail-fast", "--doc"]).args(context.locked());
    cargo_test(&mut report, &mut command);
    let mut command = context.cargo();
    command.args(["test", "--package", "tercet-tgm", "--no-fail-fast", "--features", "async", "--doc"]);
    cargo_test(&mut report, command.args(context.locked()));
    report
}

pub(super) fn cargo_test(report: &mut Report, command: &mut Command) {
    match process::run_captured(command) {
        Ok((output, exit)) => report.add_tests("cargo test", Tally::of_cargo_test(&output), exit),
        Err(why) => report.fail(why),
    }
}

/// Runs a program that ends with `N passed, N failed, N skipped`.
pub(super) fn driver(report: &mut Report, name: &str, command: &mut Command) {
    match process::run_captured(command) {
        Ok((output, exit)) => match Tally::of_driver(&output) {
            Some(tally) => report.add_tests(name, tally, exit),
            None => report.fail(exit.err().unwrap_or_else(|| format!("{name} did not end with its counts"))),
        },
        Err(why) => report.fail(why),
    }
}

pub(super) fn fuzz(context: &Context) -> Report {
    let mut report = Report::default();
    let mut own_tests = context.side_cargo();
    own_tests.args(["test", "--manifest-path", "fuzz/Cargo.toml", "--lib"]).args(context.locked());
    cargo_test(&mut report, &mut own_tests);
    let mut replay = context.side_cargo();
    replay
        .args(["run", "--manifest-path", "fuzz/Cargo.toml", "--bin", "replay"])
        .args(context.locked())
        .args(["--", "--seconds", FUZZ_SECONDS]);
    driver(&mut report, "fuzz replay", &mut replay);
    report
}

pub(super) fn demo(context: &Context) -> Report {
    let scratch = match Scratch::new("demo") {
        Ok(scratch) => scratch,
        Err(why) => return Report::failed(why),
    };
    let mut command = context.cargo();
    command
        .args(["run", "--release", "--manifest-path"])
        .arg(context.root.join("Cargo.toml"))
        .args(context.locked())
        .args(["--", "demo"])
        // The demo leaves its files behind, in the current or the temporary folder.
        .current_dir(scratch.path())
        .env("TMPDIR", scratch.path());
    Report::of_check(process::run(&mut command).err().into_iter().collect())
}
