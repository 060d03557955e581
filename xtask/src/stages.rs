//! The stages of `cargo xtask test` and `cargo xtask nightly`, and the loop that runs them.

mod checks;
mod interop;
mod nightly;
mod python;
mod scratch;
mod tests;
mod web;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::context::Context;
use crate::report::Report;
use crate::tally::Tally;

pub(crate) use python::wheel;

/// One step of a task.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    run: fn(&Context) -> Report,
}

/// Every stage of `test`, in order. All stages from `clippy` to `demo` build the same members with the same features.
pub(crate) const TEST: &[Stage] = &[
    Stage { name: "fmt", about: "formatting, benchmarks included", run: checks::fmt },
    Stage { name: "layers", about: "which crate uses which", run: checks::layers },
    Stage { name: "clippy", about: "lints, all features, warnings denied", run: checks::clippy },
    Stage { name: "docs", about: "rustdoc, warnings denied", run: checks::docs },
    Stage { name: "build", about: "all programs and tests, all features", run: tests::build },
    Stage {
        name: "unit",
        about: "unit, property, golden, snapshot, damage and fault tests",
        run: tests::unit,
    },
    Stage { name: "doctest", about: "examples in the documentation", run: tests::doctest },
    Stage {
        name: "interop",
        about: "our files through the reference implementations",
        run: interop::interop,
    },
    Stage { name: "fuzz", about: "corpus replay and a few seconds of mutation", run: tests::fuzz },
    Stage { name: "python", about: "the Python package with the built module", run: python::python },
    Stage { name: "web", about: "the page: types, bundle, browser tests", run: web::web },
    Stage { name: "demo", about: "`tercet demo`", run: tests::demo },
    Stage { name: "features", about: "each feature of the lower crates alone", run: checks::features },
    Stage { name: "wasm", about: "core and formats compile for wasm32", run: checks::wasm },
];

/// Every stage of `nightly`, in order.
pub(crate) const NIGHTLY: &[Stage] = &[
    Stage { name: "deny", about: "licences, bans and sources of all dependencies", run: checks::deny },
    Stage { name: "release", about: "release build: programs, their sizes, `demo`", run: nightly::release },
    Stage { name: "shipped", about: "tests of the commands as shipped", run: nightly::shipped },
    Stage {
        name: "wheel",
        about: "the Python wheel from its source distribution: size, audits, tests",
        run: python::shipped_wheel,
    },
    Stage {
        name: "properties",
        about: "all tests, property tests with many cases",
        run: nightly::properties,
    },
    Stage {
        name: "queries",
        about: "random `.tet` queries against NumPy and exact rationals",
        run: nightly::queries,
    },
    Stage { name: "fuzz", about: "corpus replay and minutes of mutation", run: nightly::fuzz },
];

/// Runs all stages, also after a failure, and ends with a table and the counts.
pub(crate) fn run(context: &Context, stages: &[&Stage]) -> ExitCode {
    let mut finished = Vec::new();
    for stage in stages {
        println!("\n=== {}: {}", stage.name, stage.about);
        let start = Instant::now();
        let report = (stage.run)(context);
        let time = start.elapsed();
        print_findings(stage, &report);
        println!("=== {}: {} in {}", stage.name, report.outcome(), seconds(time));
        finished.push((*stage, report, time));
    }

    println!();
    for (stage, report, _) in &finished {
        print_findings(stage, report);
    }
    println!("{:<11}{:<9}{:>10}{:>9}{:>9}{:>9}", "stage", "outcome", "time", "passed", "failed", "skipped");
    let mut sum = Tally::default();
    let mut total = Duration::ZERO;
    for (stage, report, time) in &finished {
        let Tally { passed, failed, skipped } = report.tally;
        println!(
            "{:<11}{:<9}{:>10}{passed:>9}{failed:>9}{skipped:>9}",
            stage.name,
            report.outcome(),
            seconds(*time)
        );
        sum += report.tally;
        total += *time;
    }
    println!("{:<20}{:>10}", "total", seconds(total));
    println!("{sum}");
    let flushed = std::io::stdout().flush().is_ok();
    if sum.failed == 0 && flushed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print_findings(stage: &Stage, report: &Report) {
    for failure in &report.failures {
        println!("failed: {}: {failure}", stage.name);
    }
    for skip in &report.skips {
        println!("skipped: {skip}");
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod names {
    use super::{NIGHTLY, TEST};

    #[test]
    fn stage_names_are_unique() {
        for stages in [TEST, NIGHTLY] {
            for (i, stage) in stages.iter().enumerate() {
                assert!(stages.iter().skip(i + 1).all(|other| other.name != stage.name), "{}", stage.name);
            }
        }
    }
}
