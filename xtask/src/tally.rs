//! Counts of tests, parsed from the output of test programs.

use std::fmt;
use std::ops::AddAssign;

/// Numbers of passed, failed and skipped tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Tally {
    /// Sums the `test result:` lines of `cargo test`, one per test program.
    pub(crate) fn from_cargo_test(output: &str) -> Self {
        let mut sum = Self::default();
        for line in output.lines() {
            let line = without_color(line);
            let Some((_, counts)) =
                line.trim().strip_prefix("test result: ").and_then(|rest| rest.split_once(". "))
            else {
                continue;
            };
            for part in counts.split(';') {
                match part.trim().split_once(' ').and_then(|(n, what)| Some((n.parse::<u64>().ok()?, what))) {
                    Some((n, "passed")) => sum.passed += n,
                    Some((n, "failed")) => sum.failed += n,
                    Some((n, "ignored")) => sum.skipped += n,
                    _ => {}
                }
            }
        }
        sum
    }

    /// Parses the last line of a driver, `N passed, N failed, N skipped`; `None` if it is missing.
    pub(crate) fn from_driver(output: &str) -> Option<Self> {
        let last = without_color(output.lines().rev().find(|line| !line.trim().is_empty())?);
        let mut counts = last.trim().split(", ");
        let mut next = |what: &str| counts.next()?.strip_suffix(what)?.trim_end().parse::<u64>().ok();
        let tally = Self { passed: next("passed")?, failed: next("failed")?, skipped: next("skipped")? };
        counts.next().is_none().then_some(tally)
    }

    /// Tests that ran.
    pub(crate) fn ran(self) -> u64 {
        self.passed + self.failed
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// The line without the escape sequences that `CARGO_TERM_COLOR=always` puts around `ok`.
fn without_color(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            chars.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(c);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_of_all_programs_are_summed() {
        let output = "running 3 tests\n\
            test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
            noise, 7 passed; 7 failed\n\
            test result: FAILED. 4 passed; 5 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s\n";
        assert_eq!(Tally::from_cargo_test(output), Tally { passed: 6, failed: 5, skipped: 1 });
    }

    #[test]
    fn colored_result_lines_are_parsed() {
        let output = "test result: \u{1b}[32mok\u{1b}[0m. 2 passed; 0 failed; 0 ignored; 0 measured\n";
        assert_eq!(Tally::from_cargo_test(output).passed, 2);
    }

    #[test]
    fn a_driver_must_print_its_counts_last() {
        assert_eq!(
            Tally::from_driver("reading…\n3 passed, 0 failed, 2 skipped\n\n"),
            Some(Tally { passed: 3, failed: 0, skipped: 2 })
        );
        assert_eq!(Tally::from_driver("3 passed, 0 failed, 2 skipped\nTraceback\n"), None);
        assert_eq!(Tally::from_driver("3 passed, 0 failed\n"), None);
        assert_eq!(Tally::from_driver("3 passed, 0 failed, 0 skipped, 1 lost\n"), None);
        assert_eq!(Tally::from_driver(""), None);
    }

    #[test]
    fn display_round_trips_through_from_driver() {
        let tally = Tally { passed: 10, failed: 2, skipped: 3 };
        assert_eq!(tally.to_string(), "10 passed, 2 failed, 3 skipped");
        assert_eq!(Tally::from_driver(&tally.to_string()), Some(tally));
    }
}
