//! What one stage has to say when it is over.

use crate::tally::Tally;

/// Counts of a stage, and a sentence for everything that did not simply pass.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) tally: Tally,
    pub(crate) failures: Vec<String>,
    pub(crate) skips: Vec<String>,
}

impl Report {
    /// The report of a stage that is one check: passed when nothing went wrong, failed once otherwise.
    pub(crate) fn of_check(failures: Vec<String>) -> Self {
        let failed = u64::from(!failures.is_empty());
        Self { tally: Tally { passed: 1 - failed, failed, skipped: 0 }, failures, skips: Vec::new() }
    }

    pub(crate) fn failed(why: impl Into<String>) -> Self {
        Self::of_check(vec![why.into()])
    }

    pub(crate) fn skipped(name: &str, why: &str) -> Self {
        let mut report = Self::default();
        report.skip(name, why);
        report
    }

    /// Adds the result of a program that counts its own tests.
    ///
    /// A program that fails without a failed test (it did not compile, it was killed) counts as one failure,
    /// and so does one that ran nothing: a filter gone wrong must not look like success.
    pub(crate) fn add_tests(&mut self, what: &str, tally: Tally, exit: Result<(), String>) {
        self.tally += tally;
        match exit {
            Err(why) if tally.failed == 0 => self.fail(why),
            Err(why) => self.failures.push(why),
            Ok(()) if tally.failed > 0 => {
                self.failures.push(format!("{what} reports {} failed tests", tally.failed));
            }
            Ok(()) if tally.ran() == 0 => self.fail(format!("{what} ran no test")),
            Ok(()) => {}
        }
    }

    pub(crate) fn fail(&mut self, why: impl Into<String>) {
        self.tally.failed += 1;
        self.failures.push(why.into());
    }

    pub(crate) fn skip(&mut self, name: &str, why: &str) {
        self.tally.skipped += 1;
        self.skips.push(format!("{name} ({why})"));
    }

    /// Something the machine lacks: a failure where everything must be present, a named skip elsewhere.
    pub(crate) fn lack(&mut self, must_be_present: bool, name: &str, why: &str) {
        if must_be_present {
            self.fail(format!("{name}: {why}"));
        } else {
            self.skip(name, why);
        }
    }

    /// One word for the table of stages.
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
    fn a_check_counts_once_however_many_things_it_found() {
        assert_eq!(Report::of_check(Vec::new()).tally.passed, 1);
        let report = Report::of_check(vec!["a".into(), "b".into()]);
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
    fn a_lack_fails_only_where_everything_must_be_present() {
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
