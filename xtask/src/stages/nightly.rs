//! Stages that take longer than a change should wait for.

use std::process::Command;

use super::interop;
use super::tests::{cargo_test, replay, run_demo};
use crate::context::Context;
use crate::process;
use crate::report::Report;

/// All names of the one program. The first is the program, the others start it.
const PROGRAMS: [&str; 5] = ["tercet", "tet", "tgm", "tatami", "tensogram"];
const LAUNCHER_BYTES: u64 = 1 << 20;
const ALL_BYTES: u64 = 60_000_000;

/// How many times the usual number of cases property tests draw.
const PROPERTY_FACTOR: u32 = 25;
/// Cases of a property test that names no number: the default of proptest times the factor.
const DEFAULT_CASES: u32 = 256 * PROPERTY_FACTOR;

/// Random `.tet` queries that are compared with NumPy.
const QUERIES: u32 = 6000;

/// How long each fuzz target runs on mutated inputs.
const FUZZ_SECONDS: &str = "120";

/// Checks that the release programs exist, are small, and run.
pub(super) fn release(context: &Context) -> Report {
    let mut build = context.cargo();
    build.args(["build", "--release"]).args(context.locked());
    if let Err(reason) = process::run(&mut build) {
        return Report::failed(reason);
    }
    let mut failures = Vec::new();
    let mut sum = 0;
    for (number, name) in PROGRAMS.into_iter().enumerate() {
        match std::fs::metadata(context.built("release", name)) {
            Ok(metadata) => {
                println!("{name:<10}{:>12} bytes", metadata.len());
                sum += metadata.len();
                if number > 0 && metadata.len() >= LAUNCHER_BYTES {
                    failures
                        .push(format!("`{name}` has {} bytes: it must only start `tercet`", metadata.len()));
                }
            }
            Err(error) => failures.push(format!("`{name}` is missing after the release build: {error}")),
        }
    }
    if sum > ALL_BYTES {
        failures.push(format!("all programs have {sum} bytes, more than {ALL_BYTES}"));
    }
    failures.extend(run_demo(&mut Command::new(context.built("release", "tercet"))).err());
    Report::from_failures(failures)
}

/// The optimized programs with default features, and their errors for missing features.
pub(super) fn shipped(context: &Context) -> Report {
    let mut report = Report::default();
    let mut command = context.cargo();
    command.args(["test", "--release", "--package", "tercet-cli", "--package", "tercet-tgm", "--test", "it"]);
    command.args(context.locked());
    context.prepare_tests(&mut command);
    cargo_test(&mut report, &mut command);
    report
}

pub(super) fn properties(context: &Context) -> Report {
    let mut report = Report::default();
    let mut command = context.workspace_test();
    command.args(["--lib", "--tests"]);
    command.env("TERCET_PROPERTY_FACTOR", PROPERTY_FACTOR.to_string());
    command.env("PROPTEST_CASES", DEFAULT_CASES.to_string());
    // Other cases in every run; a failure prints its case.
    cargo_test(&mut report, command.env_remove("PROPTEST_RNG_SEED"));
    report
}

/// Random `.tet` queries, every night other ones.
pub(super) fn queries(context: &Context) -> Report {
    let mut report = Report::default();
    if let Err(reason) = process::run(&mut context.build()) {
        return Report::failed(reason);
    }
    interop::queries(context, &mut report, QUERIES, None);
    report
}

pub(super) fn fuzz(context: &Context) -> Report {
    let mut report = Report::default();
    if let Err(reason) = process::run(&mut context.build()) {
        return Report::failed(reason);
    }
    replay(context, &mut report, FUZZ_SECONDS);
    report
}
