//! `tgm doctor`: build features and self-test.

use serde::Serialize;
use tercet::core::escape;
use tercet::tgm::VERSION;

use crate::args::JsonArgs;
use crate::failure::{Failure, Outcome};
use crate::ui::{BAD, DIM, GOOD, HEADING, Ui, paint};

mod build;
mod pipelines;
mod selftest;

const EXAMPLES: &str = "\
Exit code 0: healthy; 1: a self-test failed.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    json: JsonArgs,
}

/// The report of `tgm doctor`.
#[derive(Debug, Serialize)]
struct Diagnosis {
    build: build::Build,
    features: Vec<build::Feature>,
    self_test: Vec<selftest::Row>,
    healthy: bool,
}

impl Diagnosis {
    fn make() -> Self {
        Self::new(selftest::run())
    }

    fn new(self_test: Vec<selftest::Row>) -> Self {
        let healthy = self_test.iter().all(|row| row.failed.is_none());
        Self { build: build::Build::this(), features: build::features(), self_test, healthy }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![paint(HEADING, "Build")];
        let build = &self.build;
        let row = |name: &str, value: &str| format!("  {name:<22}{value}");
        lines.push(row("tercet", build.version));
        lines.push(row("wire-format", &VERSION.to_string()));
        lines.push(row("target", &build.target));
        lines.push(row("profile", build.profile));
        lines.extend([String::new(), paint(HEADING, "Features")]);
        for feature in &self.features {
            let state = feature.summary().unwrap_or_else(|| paint(DIM, "not built in"));
            lines.push(row(feature.name, &state));
        }
        lines.extend([String::new(), paint(HEADING, "Self-test")]);
        for test in &self.self_test {
            let verdict = match (test.outcome, &test.failed) {
                (selftest::Outcome::Skipped, _) => paint(DIM, "skipped"),
                (_, None) => paint(GOOD, "ok"),
                (_, Some(reason)) => format!("{} ({})", paint(BAD, "FAILED"), escape::name(reason)),
            };
            lines.push(format!("  {:<44}{verdict}", test.name));
        }
        let status = if self.healthy { paint(GOOD, "HEALTHY") } else { paint(BAD, "UNHEALTHY") };
        lines.extend([String::new(), format!("Status: {status}")]);
        lines
    }
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let diagnosis = Diagnosis::make();
    if args.json.json {
        out.json(&diagnosis)?;
    } else {
        diagnosis.lines().into_iter().try_for_each(|line| out.line(line))?;
    }
    Ok(if diagnosis.healthy { Outcome::Done } else { Outcome::CheckFailed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_is_enough() {
        let rows = [selftest::row("a", Ok(())), selftest::skipped("c")];
        assert!(Diagnosis::new(rows.into()).healthy);
        let rows = [selftest::row("a", Ok(())), selftest::row("b", Err("other\nbytes".to_owned()))];
        let diagnosis = Diagnosis::new(rows.into());
        assert!(!diagnosis.healthy);
        let lines = diagnosis.lines().join("\n");
        assert!(lines.contains("(other\\nbytes)") && lines.contains("UNHEALTHY"), "{lines}");
    }

    #[test]
    fn this_build_is_healthy() {
        let diagnosis = Diagnosis::make();
        assert!(diagnosis.healthy, "{}", diagnosis.lines().join("\n"));
    }
}
