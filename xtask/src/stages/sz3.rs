//! What the feature `sz3` brings: the only part that needs a C++ compiler, so its tests are a build of their own.

use std::process::Command;

use super::scratch::Scratch;
use super::tests::{cargo_test, driver};
use crate::context::Context;
use crate::oracles;
use crate::process;
use crate::report::Report;

/// The test programs that have something to say about SZ3.
const TESTS: [(&str, &[&str]); 3] = [
    ("tercet-codec", &["--lib"]),
    ("tercet-tgm", &["--test", "golden", "--test", "pipeline"]),
    ("tercet-cli", &["--test", "sz3"]),
];

pub(super) fn sz3(context: &Context) -> Report {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    if process::read(Command::new(&compiler).arg("--version")).is_err() {
        return Report::skipped(
            "sz3",
            &format!("`{compiler}` not found: the feature needs a C++17 compiler"),
        );
    }
    let mut report = Report::default();
    for (package, tests) in TESTS {
        let mut command = context.cargo();
        command.args(["test", "--no-fail-fast", "--package", package, "--features", "sz3"]).args(tests);
        command.args(context.locked()).env("INSTA_UPDATE", "no");
        if let Ok(folder) = context.golden() {
            command.env("TERCET_GOLDEN", folder);
        }
        cargo_test(&mut report, &mut command);
    }
    interop(context, &mut report);
    report
}

/// Objects that SZ3 compressed, through the reference and back.
fn interop(context: &Context, report: &mut Report) {
    let python = match oracles::python(context) {
        Ok(python) => python,
        Err(why) => return report.lack(context.ci, "interop sz3", &why),
    };
    let files = match make_files(context) {
        Ok(files) => files,
        Err(why) => return report.fail(why),
    };
    let script = "interop/pipeline_check.py";
    let mut command = Command::new(&python.program);
    command.arg(script).arg("--files").arg(files.path()).arg("--reader");
    command.arg(context.side_program("read_pipelines")).current_dir(&context.root);
    driver(report, script, command.env("PYTHONDONTWRITEBYTECODE", "1"));
}

fn make_files(context: &Context) -> Result<Scratch, String> {
    let files = Scratch::new("sz3")?;
    let mut build = context.side_cargo();
    build.args(["build", "--manifest-path", "interop/Cargo.toml", "--features", "sz3"]);
    build.args(["--bin", "make_pipelines", "--bin", "read_pipelines"]).args(context.locked());
    process::run(&mut build)?;
    process::run(Command::new(context.side_program("make_pipelines")).arg(files.path()).arg("sz3"))?;
    Ok(files)
}
