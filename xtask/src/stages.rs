//! The stages of `cargo xtask test`, fastest first, and the loop that runs them.

mod checks;
mod interop;
mod scratch;
mod sz3;
mod tests;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::context::Context;
use crate::report::Report;
use crate::tally::Tally;

/// One step of the test command.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    run: fn(&Context) -> Report,
}

/// Every stage in the order it runs.
pub(crate) const STAGES: &[Stage] = &[
    Stage { name: "fmt", about: "formatting, side workspaces included", run: checks::fmt },
    Stage { name: "layers", about: "which crate uses which", run: checks::layers },
    Stage { name: "clippy", about: "lints, warnings denied", run: checks::clippy },
    Stage { name: "docs", about: "rustdoc, warnings denied", run: checks::docs },
    Stage {
        name: "unit",
        about: "unit, property, golden, snapshot, damage and fault tests",
        run: tests::unit,
    },
    Stage { name: "doctest", about: "examples in the documentation", run: tests::doctest },
    Stage { name: "features", about: "each feature of the lower crates alone", run: checks::features },
    Stage { name: "wasm", about: "core and formats compile for wasm32", run: checks::wasm },
    Stage {
        name: "interop",
        about: "our files through the reference implementations",
        run: interop::interop,
    },
    Stage { name: "sz3", about: "the feature `sz3`, if there is a C++ compiler", run: sz3::sz3 },
    Stage { name: "fuzz", about: "corpus replay and a few seconds of mutation", run: tests::fuzz },
    Stage { name: "demo", about: "release build and `demo`", run: tests::demo },
    Stage {
        name: "deny",
        about: "licences, bans, advisories (if cargo-deny is installed)",
        run: checks::deny,
    },
];

/// Runs the stages, none stopped by the failure of another, and ends with the table and the counts.
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
    println!("{:<10}{:<9}{:>10}{:>9}{:>9}{:>9}", "stage", "outcome", "time", "passed", "failed", "skipped");
    let mut sum = Tally::default();
    let mut total = Duration::ZERO;
    for (stage, report, time) in &finished {
        let Tally { passed, failed, skipped } = report.tally;
        println!(
            "{:<10}{:<9}{:>10}{passed:>9}{failed:>9}{skipped:>9}",
            stage.name,
            report.outcome(),
            seconds(*time)
        );
        sum += report.tally;
        total += *time;
    }
    println!("{:<19}{:>10}", "total", seconds(total));
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
    use super::STAGES;

    #[test]
    fn stage_names_are_unique() {
        for (i, stage) in STAGES.iter().enumerate() {
            assert!(STAGES.iter().skip(i + 1).all(|other| other.name != stage.name), "{}", stage.name);
        }
    }
}
