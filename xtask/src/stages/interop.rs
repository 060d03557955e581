//! Tercet files read by the reference implementations, and the reverse.

use std::process::Command;

use super::scratch::Scratch;
use super::tests::driver;
use crate::context::Context;
use crate::process;
use crate::report::Report;
use crate::tools::{self, CargoTool};

/// How one format is checked: a Tercet program writes every kind of file, a Python script reads them with the
/// reference's package and command line.
#[derive(Debug)]
struct Format {
    name: &'static str,
    /// Program of `tercet-interop`, called with the directory to fill and the argument below.
    maker: &'static str,
    argument: Option<&'static str>,
    /// Program of `tercet-interop` that prints what our reader finds.
    reader: &'static str,
    /// Script in `interop/`, called with `--files DIRECTORY`, `--reader PROGRAM` and the option below.
    script: &'static str,
    /// The command line of the reference and the option that names it, where its package is not enough.
    cli: Option<(&'static str, CargoTool)>,
}

const FORMATS: &[Format] = &[
    Format {
        name: "tet",
        maker: "make_tet",
        argument: None,
        reader: "read_tet",
        script: "interop/tet_check.py",
        cli: Some(("--tet-cli", tools::TET)),
    },
    Format {
        name: "tgm",
        maker: "make_tgm",
        argument: None,
        reader: "read_tgm",
        script: "interop/tgm_check.py",
        cli: None,
    },
    Format {
        name: "tgm pipelines",
        maker: "make_pipelines",
        argument: None,
        reader: "read_pipelines",
        script: "interop/pipeline_check.py",
        cli: None,
    },
    Format {
        name: "packed payloads in GRIB",
        maker: "make_packed",
        argument: None,
        reader: "make_packed",
        script: "interop/grib_check.py",
        cli: None,
    },
];

/// Objects that SZ3 compressed, where that feature is built in.
const SZ3: Format = Format {
    name: "sz3",
    maker: "make_pipelines",
    argument: Some("sz3"),
    reader: "read_pipelines",
    script: "interop/pipeline_check.py",
    cli: None,
};

pub(super) fn interop(context: &Context) -> Report {
    let mut report = Report::default();
    for format in FORMATS {
        check(context, format, &mut report);
    }
    match &context.without_sz3 {
        None => check(context, &SZ3, &mut report),
        Some(reason) => report.skip("interop sz3", reason),
    }
    guides(context, &mut report);
    tables(context, &mut report);
    filters(context, &mut report);
    labels(context, &mut report);
    let script = "interop/xarray_cli_check.py";
    python_with_our_command(context, &mut report, "interop xarray commands", script, "tet");
    let script = "interop/array_check.py";
    python_with_our_command(context, &mut report, "interop arrays", script, "tercet");
    let script = "interop/array_features_check.py";
    python_with_our_command(context, &mut report, "interop array features", script, "tercet");
    let script = "interop/grib_arrays_check.py";
    python_with_our_command(context, &mut report, "interop GRIB", script, "tercet");
    python_with_our_command(context, &mut report, "interop server", "interop/server_check.py", "tercet");
    let script = "interop/terminal_check.py";
    python_with_our_command(context, &mut report, "interop terminal browser", script, "tercet");
    queries(context, &mut report, QUERIES, Some(QUERY_SEED));
    report
}

/// Random `.tet` queries of `test`, the same in every run.
const QUERIES: u32 = 300;
const QUERY_SEED: u32 = 20_261_117;

/// Random `.tet` queries, compared with NumPy and exact rationals. Without a seed every run has other queries, and prints
/// the seed.
pub(super) fn queries(context: &Context, report: &mut Report, cases: u32, seed: Option<u32>) {
    let python = match tools::python(context) {
        Ok(python) => python,
        Err(reason) => return report.lack(context.ci, "interop queries", &reason),
    };
    let script = "interop/tet_fuzz.py";
    let mut command = Command::new(&python.program);
    command.arg(script).arg("--driver").arg(context.program("query_tet"));
    command.args(["--cases", &cases.to_string()]);
    if let Some(seed) = seed {
        command.args(["--seed", &seed.to_string()]);
    }
    driver(report, script, command.current_dir(&context.root).env("PYTHONDONTWRITEBYTECODE", "1"));
}

/// Missing values, packing, coordinates and selections, compared with xarray.
fn labels(context: &Context, report: &mut Report) {
    let python = match tools::python(context) {
        Ok(python) => python,
        Err(reason) => return report.lack(context.ci, "interop xarray", &reason),
    };
    let script = "interop/xarray_check.py";
    let mut command = Command::new(&python.program);
    command.arg(script).arg("--driver").arg(context.program("select_tet")).current_dir(&context.root);
    driver(report, script, command.env("PYTHONDONTWRITEBYTECODE", "1"));
}

/// Tables of other programs, converted by our command and back.
fn tables(context: &Context, report: &mut Report) {
    python_with_our_command(context, report, "interop tables", "interop/table_check.py", "tatami");
}

/// Random filters of `.tatami` files, the same in every run, and CSV files of many dialects.
fn filters(context: &Context, report: &mut Report) {
    python_with_our_command(context, report, "interop csv", "interop/csv_check.py", "tatami");
    let python = match tools::python(context) {
        Ok(python) => python,
        Err(reason) => return report.lack(context.ci, "interop filters", &reason),
    };
    let script = "interop/filter_check.py";
    let mut command = Command::new(&python.program);
    command.arg(script).arg("--tatami").arg(context.program("tatami"));
    command.arg("--driver").arg(context.program("filter_tatami")).current_dir(&context.root);
    driver(report, script, command.env("PYTHONDONTWRITEBYTECODE", "1"));
}

/// The Python of the guides, run with numpy and our command.
fn guides(context: &Context, report: &mut Report) {
    python_with_our_command(context, report, "interop guides", "interop/guide_check.py", "tet");
}

/// Runs a script that gets the path of one of our commands.
fn python_with_our_command(context: &Context, report: &mut Report, what: &str, script: &str, bin: &str) {
    let python = match tools::python(context) {
        Ok(python) => python,
        Err(reason) => return report.lack(context.ci, what, &reason),
    };
    let mut command = Command::new(&python.program);
    command.arg(script).arg(format!("--{bin}")).arg(context.program(bin)).current_dir(&context.root);
    driver(report, script, command.env("PYTHONDONTWRITEBYTECODE", "1"));
}

fn check(context: &Context, format: &Format, report: &mut Report) {
    let install_cli = || {
        let cli = format.cli.as_ref();
        cli.map(|(option, cli)| Ok::<_, String>((*option, tools::cargo_tool(context, cli)?))).transpose()
    };
    let installed = tools::python(context).and_then(|python| Ok((python, install_cli()?)));
    let (python, cli) = match installed {
        Ok(oracles) => oracles,
        Err(reason) => return report.lack(context.ci, &format!("interop {}", format.name), &reason),
    };
    let files = match make_files(context, format) {
        Ok(files) => files,
        Err(reason) => return report.fail(reason),
    };
    let mut command = Command::new(&python.program);
    command
        .arg(format.script)
        .arg("--files")
        .arg(files.path())
        .arg("--reader")
        .arg(context.program(format.reader))
        .current_dir(&context.root)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    if let Some((option, cli)) = cli {
        command.arg(option).arg(&cli.program);
    }
    driver(report, format.script, &mut command);
}

fn make_files(context: &Context, format: &Format) -> Result<Scratch, String> {
    let files = Scratch::new(format.maker)?;
    process::run(Command::new(context.program(format.maker)).arg(files.path()).args(format.argument))?;
    Ok(files)
}
