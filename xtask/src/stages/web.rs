//! The page of the server: whether its types are those of the API, whether the committed bundle is what the sources build, and browser tests.

use std::path::Path;
use std::process::Command;

use super::scratch::Scratch;
use super::tests::driver;
use crate::context::Context;
use crate::process;
use crate::report::Report;
use crate::tools;

/// What is copied next to the installed packages. Nothing is written into the checkout.
const SOURCES: [&str; 8] =
    ["src", "static", "tests", "build.mjs", "land.mjs", "openapi.json", "tsconfig.json", "types.mjs"];

pub(super) fn web(context: &Context) -> Report {
    let mut report = Report::default();
    let modules = match tools::node_modules(context) {
        Ok(modules) => modules,
        Err(reason) => {
            report.lack(context.ci, "page", &reason);
            return report;
        }
    };
    let staged = Scratch::new("web").and_then(|scratch| {
        stage(context, scratch.path(), &modules.program)?;
        Ok(scratch)
    });
    let scratch = match staged {
        Ok(scratch) => scratch,
        Err(reason) => {
            report.fail(reason);
            return report;
        }
    };
    let node = |script: &str| {
        let mut command = Command::new("node");
        command.arg(script).current_dir(scratch.path());
        command
    };
    let assets = context.root.join("crates/tercet-server/assets");
    check(&mut report, node("types.mjs").arg("--check"));
    check(&mut report, node("node_modules/typescript/bin/tsc").args(["--noEmit", "--project", "."]));
    check(&mut report, node("build.mjs").arg("--check").arg(&assets));
    match tools::chromium() {
        Some(Ok(browser)) => {
            let mut tests = node("tests/run.mjs");
            tests.env("TERCET", context.program("tercet")).env("CHROMIUM", browser);
            driver(&mut report, "browser tests", tests.env("TMPDIR", scratch.path()));
        }
        Some(Err(reason)) => report.lack(context.ci, "browser tests", &reason),
        None => report.skip("browser tests", "no `chromium`, and it cannot be installed without root"),
    }
    report
}

fn check(report: &mut Report, command: &mut Command) {
    match process::run(command) {
        Ok(()) => report.tally.passed += 1,
        Err(reason) => report.fail(reason),
    }
}

/// Copies the sources into a directory, beside the packages. Copied packages would take seconds.
fn stage(context: &Context, directory: &Path, modules: &Path) -> Result<(), String> {
    for name in SOURCES.iter().chain(&["package.json"]) {
        let from = context.root.join("web").join(name);
        process::read(Command::new("cp").arg("-R").arg(&from).arg(directory))?;
    }
    process::read(Command::new("ln").arg("-s").arg(modules).arg(directory.join("node_modules"))).map(drop)
}
