//! Records into `.tatami` files and out of them, through the commands.

mod collection;
#[cfg(feature = "arrow")]
mod convert;
mod create;
mod damage;
mod documents;
mod doors;
mod exact;
mod golden;
#[cfg(unix)]
mod killed;
#[cfg(feature = "arrow")]
mod meaning;
mod print;
mod refused;
mod scan;
mod search;
mod segments;
#[cfg(feature = "arrow")]
mod texts;

use crate::support::test_dir::{self, CommandOutput, run_command};

/// Marks the directories of this suite.
enum Tatami {}

type TestDir = test_dir::TestDir<Tatami>;

/// Three rows with everything that text can say.
const CITIES: &str = concat!(
    r#"{"name":"Bonn","people":331885,"lat":50.73,"tags":["rhine","beethoven"],"note":null}"#,
    "\n",
    r#"{"name":"Ulm","people":126329,"lat":48.4,"tags":[]}"#,
    "\n\n",
    r#"{"name":"Zürich","people":447082,"lat":47.37,"tags":["lake",null],"note":"<b>&\u2028"}"#,
    "\n",
);

/// A line for each number.
fn lines<N>(numbers: impl IntoIterator<Item = N>, line: impl Fn(N) -> String) -> String {
    let lines: Vec<String> = numbers.into_iter().map(line).collect();
    lines.join("\n") + "\n"
}

impl TestDir {
    fn new() -> Self {
        Self::of(env!("CARGO_BIN_EXE_tatami"))
    }

    /// A directory with `cities.tatami`, sorted by name.
    fn with_cities() -> Self {
        let dir = Self::new();
        dir.write("cities.jsonl", CITIES);
        dir.ok("create cities.tatami --from cities.jsonl --sort-key name --bloom people");
        dir
    }

    /// Runs the command with these words, some of which have spaces.
    fn ran(&self, words: &[&str]) -> CommandOutput {
        run_command(self.command().args(words))
    }

    /// The same with a file as standard input.
    fn fed(&self, input: &str, words: &[&str]) -> CommandOutput {
        run_command(self.command().args(words).pipe_stdin(self.path(input)).unwrap())
    }

    /// Makes a file of rows and tells what `cat` prints of it.
    fn back(&self, input: &str, text: &str, options: &str) -> String {
        self.write(input, text);
        self.ok(&format!("create back.tatami --force --from {input} {options}"));
        let verified = self.run("verify --deep back.tatami");
        assert_eq!(verified.code, 0, "{}", verified.out);
        self.ok("cat back.tatami").out
    }
}
