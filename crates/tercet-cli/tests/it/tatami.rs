//! Tests of `tatami` commands: records into `.tatami` files and out of them.

mod collection;
#[cfg(feature = "arrow")]
mod convert;
mod create;
mod create_errors;
mod damage;
mod documents;
mod exactness;
mod golden;
#[cfg(all(target_os = "linux", feature = "arrow"))]
mod hostile;
mod index_fields;
#[cfg(feature = "arrow")]
mod ingest;
#[cfg(unix)]
mod killed;
#[cfg(feature = "arrow")]
mod logical_types;
mod print;
mod scan;
mod search;
mod segments;
mod streams;
#[cfg(feature = "arrow")]
mod text_formats;

use crate::support::test_dir::{self, CommandOutput, run_command};

/// Marker type of this suite's test directories.
enum Tatami {}

type TestDir = test_dir::TestDir<Tatami>;

/// Three rows with every JSON type.
const CITIES: &str = concat!(
    r#"{"name":"Bonn","people":331885,"lat":50.73,"tags":["rhine","beethoven"],"note":null}"#,
    "\n",
    r#"{"name":"Ulm","people":126329,"lat":48.4,"tags":[]}"#,
    "\n\n",
    r#"{"name":"Zürich","people":447082,"lat":47.37,"tags":["lake",null],"note":"<b>&\u2028"}"#,
    "\n",
);

/// One line per number.
fn lines<N>(numbers: impl IntoIterator<Item = N>, line: impl Fn(N) -> String) -> String {
    let lines: Vec<String> = numbers.into_iter().map(line).collect();
    lines.join("\n") + "\n"
}

impl TestDir {
    fn new() -> Self {
        Self::for_program(env!("CARGO_BIN_EXE_tatami"))
    }

    /// A directory with `cities.tatami`, sorted by name.
    fn with_cities() -> Self {
        let dir = Self::new();
        dir.write("cities.jsonl", CITIES);
        dir.ok("create cities.tatami --from cities.jsonl --sort-key name --bloom people");
        dir
    }

    /// Runs the command with arguments that may contain spaces.
    fn run_args(&self, args: &[&str]) -> CommandOutput {
        run_command(self.command().args(args))
    }

    /// The same with a file as standard input.
    fn run_piped(&self, input: &str, args: &[&str]) -> CommandOutput {
        run_command(self.command().args(args).pipe_stdin(self.path(input)).unwrap())
    }

    /// Creates a file from rows and returns the output of `cat`.
    fn round_trip(&self, input: &str, text: &str, options: &str) -> String {
        self.write(input, text);
        self.ok(&format!("create back.tatami --force --from {input} {options}"));
        let verified = self.run("verify --deep back.tatami");
        assert_eq!(verified.code, 0, "{}", verified.out);
        self.ok("cat back.tatami").out
    }
}
