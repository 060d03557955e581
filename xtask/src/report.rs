//! The result of a stage.

use crate::tally::Tally;

/// Counts of a stage, and a message for every failure and skip.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) tally: Tally,
    pub(crate) failures: Vec<String>,
    pub(crate) skips: Vec<String>,
}

impl Report {
    /// The report of a stage that is one check: passed without failures, otherwise failed once.
    pub(crate) fn from_failures(failures: Vec<String>) -> Self {
        let failed = u64::from(!failures.is_empty());
        Self { tally: Tally { passed: 1 - failed, failed, skipped: 0 }, failures, skips: Vec::new() }
    }

    pub(crate) fn failed(reason: impl Into<String>) -> Self {
        Self::from_failures(vec![reason.into()])
    }

    /// Adds the result of a program that counts its own tests.
    ///
    /// A program that fails without a failed test (it did not compile, it was killed) counts as one failure,
    /// and so does one that ran no test: a wrong filter must not look like success.
    pub(crate) fn add_tests(&mut self, what: &str, tally: Tally, exit: Result<(), String>) {
        self.tally += tally;
        match exit {
            Err(reason) if tally.failed == 0 => self.fail(reason),
            Err(reason) => self.failures.push(reason),
            Ok(()) if tally.failed > 0 => {
                self.failures.push(format!("{what} reports {} failed tests", tally.failed));
            }
            Ok(()) if tally.ran() == 0 => self.fail(format!("{what} ran no test")),
            Ok(()) => {}
        }
    }

    pub(crate) fn fail(&mut self, reason: impl Into<String>) {
        self.tally.failed += 1;
        self.failures.push(reason.into());
    }

    pub(crate) fn skip(&mut self, name: &str, reason: &str) {
        self.tally.skipped += 1;
        self.skips.push(format!("{name} ({reason})"));
    }

    /// Something that is missing on this machine: a failure where everything must be present, else a skip.
    pub(crate) fn lack(&mut self, must_be_present: bool, name: &str, reason: &str) {
        if must_be_present {
            self.fail(format!("{name}: {reason}"));
        } else {
            self.skip(name, reason);
        }
    }

    /// The outcome in the table of stages.
    pub(crate) fn outcome(&self) -> &'static str {
        if !self.failures.is_empty() || self.tally.failed > 0 {
            "FAILED"
        } else if self.tally.passed == 0 {
            "skipped"
        } else {
            "ok"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests(tally: Tally, exit: Result<(), String>) -> Report {
        let mut report = Report::default();
        report.add_tests("tests", tally, exit);
        report
    }

    #[test]
    fn a_check_counts_once_for_any_number_of_findings() {
        assert_eq!(Report::from_failures(Vec::new()).tally.passed, 1);
        let report = Report::from_failures(vec!["a".into(), "b".into()]);
        assert_eq!((report.tally.passed, report.tally.failed), (0, 1));
        assert_eq!(report.outcome(), "FAILED");
    }

    #[test]
    fn running_no_test_is_a_failure() {
        let report = tests(Tally { passed: 0, failed: 0, skipped: 4 }, Ok(()));
        assert_eq!((report.tally.failed, report.outcome()), (1, "FAILED"));
    }

    #[test]
    fn a_crash_without_failed_tests_counts_once() {
        let report = tests(Tally { passed: 9, failed: 0, skipped: 0 }, Err("killed".into()));
        assert_eq!((report.tally.failed, report.outcome()), (1, "FAILED"));
    }

    #[test]
    fn failed_tests_are_not_counted_twice() {
        let report = tests(Tally { passed: 9, failed: 2, skipped: 0 }, Err("exit status 101".into()));
        assert_eq!((report.tally.failed, report.outcome()), (2, "FAILED"));
    }

    #[test]
    fn failed_tests_count_even_when_the_program_claims_success() {
        let report = tests(Tally { passed: 9, failed: 2, skipped: 0 }, Ok(()));
        assert_eq!((report.tally.failed, report.outcome()), (2, "FAILED"));
    }

    #[test]
    fn a_missing_requirement_fails_only_in_strict_mode() {
        let mut strict = Report::default();
        strict.lack(true, "golden", "not found");
        assert_eq!(strict.outcome(), "FAILED");
        let mut lenient = Report::default();
        lenient.lack(false, "golden", "not found");
        assert_eq!(
            (lenient.outcome(), lenient.skips.as_slice()),
            ("skipped", &["golden (not found)".into()][..])
        );
    }
}
