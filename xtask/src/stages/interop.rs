//! Our files in the hands of the reference implementations.

use std::process::Command;

use super::scratch::Scratch;
use super::tests::{cargo_test, driver};
use crate::context::Context;
use crate::oracles::{self, ReferenceCli};
use crate::process;
use crate::report::Report;

/// How one format is checked: a program of ours makes every kind of file, a Python script reads them back
/// through the reference's package and command line.
#[derive(Debug)]
struct Format {
    name: &'static str,
    /// Binary of the `interop` workspace, called with the folder to fill.
    maker: &'static str,
    /// Binary of the `interop` workspace that tells what our reader finds.
    reader: &'static str,
    /// Script in `interop/`, called with `--files FOLDER`, `--reader PROGRAM` and the option below.
    script: &'static str,
    /// The command of the reference and the option that names it, where its package is not enough.
    cli: Option<(&'static str, ReferenceCli)>,
}

const FORMATS: &[Format] = &[
    Format {
        name: "tet",
        maker: "make_tet",
        reader: "read_tet",
        script: "interop/tet_check.py",
        cli: Some(("--tet-cli", oracles::TET)),
    },
    Format { name: "tgm", maker: "make_tgm", reader: "read_tgm", script: "interop/tgm_check.py", cli: None },
    Format {
        name: "tgm pipelines",
        maker: "make_pipelines",
        reader: "read_pipelines",
        script: "interop/pipeline_check.py",
        cli: None,
    },
    Format {
        name: "packed payloads in GRIB",
        maker: "make_packed",
        reader: "make_packed",
        script: "interop/grib_check.py",
        cli: None,
    },
];

pub(super) fn interop(context: &Context) -> Report {
    if !context.has("interop/Cargo.toml") {
        return Report::skipped("interop", "interop/Cargo.toml not found");
    }
    let mut report = Report::default();
    let mut own_tests = context.side_cargo();
    own_tests.args(["test", "--manifest-path", "interop/Cargo.toml", "--lib"]).args(context.locked());
    cargo_test(&mut report, &mut own_tests);
    for format in FORMATS {
        check(context, format, &mut report);
    }
    guides(context, &mut report);
    tables(context, &mut report);
    report
}

/// Tables of other programs, through our command and back.
fn tables(context: &Context, report: &mut Report) {
    python_with_our_command(context, report, "interop tables", "interop/table_check.py", "tatami");
}

/// The Python of the guides, run with numpy and our command.
fn guides(context: &Context, report: &mut Report) {
    python_with_our_command(context, report, "interop guides", "interop/guide_check.py", "tet");
}

/// A script that is told where a command of ours is.
fn python_with_our_command(context: &Context, report: &mut Report, what: &str, script: &str, bin: &str) {
    let python = match oracles::python(context) {
        Ok(python) => python,
        Err(why) => return report.lack(context.ci, what, &why),
    };
    let mut build = context.cargo();
    build.args(["build", "--package", "tercet-cli", "--bin", bin]).args(context.locked());
    if let Err(why) = process::run(&mut build) {
        return report.fail(why);
    }
    let mut command = Command::new(&python.program);
    command.arg(script).arg(format!("--{bin}")).arg(context.program(bin)).current_dir(&context.root);
    driver(report, script, command.env("PYTHONDONTWRITEBYTECODE", "1"));
}

fn check(context: &Context, format: &Format, report: &mut Report) {
    let install_cli = || {
        let cli = format.cli.as_ref();
        cli.map(|(option, cli)| Ok::<_, String>((*option, oracles::reference_cli(context, cli)?))).transpose()
    };
    let installed = oracles::python(context).and_then(|python| Ok((python, install_cli()?)));
    let (python, cli) = match installed {
        Ok(oracles) => oracles,
        Err(why) => return report.lack(context.ci, &format!("interop {}", format.name), &why),
    };
    let files = match make_files(context, format) {
        Ok(files) => files,
        Err(why) => return report.fail(why),
    };
    let mut command = Command::new(&python.program);
    command
        .arg(format.script)
        .arg("--files")
        .arg(files.path())
        .arg("--reader")
        .arg(context.side_program(format.reader))
        .current_dir(&context.root)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    if let Some((option, cli)) = cli {
        command.arg(option).arg(&cli.program);
    }
    driver(report, format.script, &mut command);
}

fn make_files(context: &Context, format: &Format) -> Result<Scratch, String> {
    let files = Scratch::new(format.maker)?;
    let mut build = context.side_cargo();
    build.args(["build", "--manifest-path", "interop/Cargo.toml", "--bins"]).args(context.locked());
    process::run(&mut build)?;
    process::run(Command::new(context.side_program(format.maker)).arg(files.path()))?;
    Ok(files)
}
