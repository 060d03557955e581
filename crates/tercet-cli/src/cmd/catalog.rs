//! `tercet catalog`, `tercet find` and `tercet get`: catalogs of many files.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use tercet::convert::arrays::{self, ArraySource, ConvertOptions, View, ViewOptions, number_at};
use tercet::convert::arrays::{Kind, Number};
use tercet::convert::catalog::{
    CatalogOptions, CatalogReport, CatalogRow, FindOptions, Pointer, build_catalog, find as find_rows,
    open_catalog,
};
use tercet::core::escape;

use crate::args::{ForceArgs, JsonArgs, LimitArgs, read_options};
use crate::cmd::convert::{self, Target};
use crate::cmd::tatami::filter::Where;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::{display_path, is_file_or_new, is_stdout, json_path, write_by_path};
use crate::remote;
use crate::render::Table;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tercet catalog runs -o runs.tatami              every file of a directory tree
  tercet catalog --refresh runs -o runs.tatami    read only files that have changed
  tercet find runs.tatami temperature --where 'step = 24 and level >= 500'

Exit code 0: done; 1: a part of a file could not be read; the catalog has the others.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Files and directories. Directories are searched recursively, by file extension and first bytes
    #[arg(value_name = "PATHS", required = true)]
    inputs: Vec<PathBuf>,
    /// Output .tatami file or URL; `-` writes to standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Keep the rows of files that have not changed since the catalog was written
    #[arg(long)]
    refresh: bool,
    /// Read metadata only: no minimum, maximum, mean and number of missing values
    #[arg(long)]
    no_stats: bool,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Serialize)]
struct CatalogJson<'a> {
    file: String,
    #[serde(flatten)]
    report: &'a CatalogReport,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let mut options = CatalogOptions::new();
    options.overwrite = args.force.force;
    options.refresh = args.refresh;
    options.statistics = !args.no_stats;
    options.read = read_options();
    write(&args.inputs, &args.output, &options, args.json.json, out)
}

/// Writes a catalog and prints its summary.
pub(crate) fn write(
    inputs: &[PathBuf],
    output: &Path,
    options: &CatalogOptions,
    json: bool,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let mut options = options.clone();
    if is_stdout(output) || !is_file_or_new(output) {
        if options.refresh {
            let failure = Failure::request(format!("{}: only a file can be refreshed", display_path(output)));
            return Err(failure.with_hint("omit `--refresh`"));
        }
        // Pointers are relative to the directory of the catalog, which a stream does not have.
        options.base = Some(PathBuf::from("."));
    }
    let report = write_by_path(output, "tatami", options.overwrite, out, |path, out| {
        Ok(build_catalog(inputs, path, &options, &out.bar("reading", 0))?)
    })?;
    let outcome = if report.problems.is_empty() { Outcome::Done } else { Outcome::CheckFailed };
    if json {
        out.json(&CatalogJson { file: json_path(output), report: &report })?;
        return Ok(outcome);
    }
    for (path, reason) in &report.problems {
        let lines: Vec<&str> = reason.lines().map(str::trim).collect();
        out.note(format_args!("warning: {}: {}", escape::name(path), escape::name(&lines.join("; "))))?;
    }
    let plural = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let mut parts = vec![plural(report.rows, "row"), format!("{} read", plural(report.read, "file"))];
    if report.unchanged > 0 {
        parts.push(format!("{} unchanged", report.unchanged));
    }
    if report.removed > 0 {
        parts.push(format!("{} removed", report.removed));
    }
    out.summary(format_args!("{}: {}", display_path(output), parts.join(", ")))?;
    Ok(outcome)
}

const FIND_EXAMPLES: &str = "\
Examples:
  tercet find runs.tatami temperature
  tercet find runs.tatami 't ecmwf' --where 'step = 24 and level >= 500'
  tercet find runs.tatami 'wind OR gust*' -n 5
  tercet find runs.tatami --where 'max > 320' --columns pointer,name,max

Rows are printed by relevance; without terms, in the order of the catalog. Exit code 1: no match.";

#[derive(Debug, clap::Args)]
#[command(after_help = FIND_EXAMPLES, mut_arg("limit", |arg| arg.help("Print at most N rows; 0 prints all [default: 20]")))]
pub(crate) struct FindArgs {
    /// Catalog, written by `tercet catalog`
    #[arg(value_name = "CATALOG")]
    catalog: PathBuf,
    /// Search query over names, metadata and paths. All terms must occur; also `temp*`, "a phrase", `a OR b`, `-a`
    #[arg(value_name = "TERMS")]
    terms: Vec<String>,
    #[command(flatten)]
    filter: Where,
    /// Columns to print [default: pointer, name, shape and the columns of the filter]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) fn find(args: &FindArgs, out: &mut Ui) -> Result<Outcome, Failure> {
    let catalog = open_catalog(&args.catalog)?;
    let text = args.terms.join(" ");
    let mut options = FindOptions::new(&text).map_err(|error| {
        Failure::request(format!("query: {error}")).with_excerpt_to_end(&text, &(error.at..text.len()))
    })?;
    options.filter = args.filter.bind_to(&catalog)?;
    let limit = args.limit.or(20);
    // One more shows that there are more.
    options.limit = Some(limit.saturating_add(1));
    let mut columns = args.columns.clone();
    if columns.is_empty() {
        columns = ["pointer", "name", "shape"].map(str::to_owned).to_vec();
        for name in options.filter.iter().flat_map(tercet::tatami::Expr::columns) {
            if !columns.iter().any(|column| column == name) {
                columns.push(name.to_owned());
            }
        }
    }
    for column in &columns {
        catalog.column_index(column)?;
    }
    let mut rows = find_rows(&catalog, &options)?;
    let is_cut = rows.len() as u64 > limit;
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let outcome = if rows.is_empty() { Outcome::CheckFailed } else { Outcome::Done };
    if args.json.json {
        for row in &mut rows {
            if args.columns.is_empty() {
                row.remove("text");
            } else {
                row.retain(|name, _| columns.contains(name));
            }
        }
        out.json(&rows)?;
        return Ok(outcome);
    }
    if rows.is_empty() {
        out.note("no match")?;
        return Ok(outcome);
    }
    let heads: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new(&heads);
    for row in &rows {
        table.row(columns.iter().map(|column| cell(row, column)));
    }
    out.line(table)?;
    if is_cut {
        out.note(format_args!("note: only the first {limit} rows; use `-n 0` for all"))?;
    }
    Ok(outcome)
}

fn cell(row: &CatalogRow, column: &str) -> String {
    match row.get(column) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => escape::name(text).into_owned(),
        Some(other) => other.to_string(),
    }
}

const GET_EXAMPLES: &str = "\
Examples:
  tercet get 'runs/a.tgm#3.0'                      object 0 of message 3
  tercet get 'era5.tet#t2m' -o t2m.nc              a dataset with its coordinates
  tercet get --catalog runs.tatami 'a.tgm#3.0'     relative to the directory of the catalog";

#[derive(Debug, clap::Args)]
#[command(after_help = GET_EXAMPLES, mut_arg("limit", |arg| arg.help("Print at most N values; 0 prints all [default: 10]")))]
pub(crate) struct GetArgs {
    /// Pointer to data, as in the column `pointer` of a catalog: `FILE`, `FILE#DATASET` or `FILE#MESSAGE.OBJECT`
    #[arg(value_name = "POINTER")]
    pointer: String,
    /// Write the data to this file or URL; `-` writes to standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Output format [default: by the file extension; required for `-`]
    #[arg(long, value_name = "FORMAT", requires = "output")]
    to: Option<Target>,
    /// Resolve the pointer relative to the directory of this catalog [default: the current directory]
    #[arg(long, value_name = "CATALOG")]
    catalog: Option<PathBuf>,
    /// Allow pointers out of that directory: absolute paths, `..`, symbolic links, URLs
    #[arg(long)]
    allow_outside: bool,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    json: JsonArgs,
}

/// The data of a pointer, as JSON.
#[derive(Serialize)]
struct GetJson<'a> {
    pointer: &'a str,
    name: &'a str,
    dtype: String,
    shape: &'a [u64],
    metadata: serde_json::Map<String, Value>,
    /// The first values, row-major.
    values: Vec<Value>,
}

pub(crate) fn get(args: &GetArgs, out: &mut Ui) -> Result<Outcome, Failure> {
    let parent =
        args.catalog.as_deref().and_then(Path::parent).filter(|parent| !parent.as_os_str().is_empty());
    let pointer = Pointer::parse(&args.pointer);
    let path = pointer.resolve(parent.unwrap_or(Path::new(".")), args.allow_outside).map_err(|error| {
        let is_refused = matches!(error.kind(), tercet::convert::ErrorKind::Refused(_));
        let failure = Failure::from(error);
        if is_refused {
            failure.with_hint("`--allow-outside` allows it, if you trust the catalog")
        } else {
            failure
        }
    })?;
    let opened = match remote::url_of(&path).map_or(Ok(None), remote::open_store)? {
        Some(store) => pointer.with_part(store),
        None if remote::url_of(&path).is_some() => pointer.open_source(Input::new(&path).source()?),
        None => pointer.open(&path),
    };
    let source = match opened {
        Err(error)
            if matches!(error.kind(), tercet::convert::ErrorKind::UnknownFormat)
                && pointer.part.is_none() =>
        {
            let failure = Failure::from(error);
            return Err(failure.with_hint(format!("print a table with `tatami cat {}`", display_path(&path))));
        }
        source => source?,
    };
    let mut view = ViewOptions::default();
    let only = source.header().variables.len() == 1;
    view.variables = pointer.part.clone().filter(|_| !only).into_iter().collect();
    let view = View::new(&*source, &view)?;
    if let Some(output) = &args.output {
        let format = convert::output_format(output, args.to)?;
        let mut options = ConvertOptions::new();
        options.overwrite = args.force.force;
        options.skip_unreadable = false;
        let plan = write_by_path(output, format.extension(), args.force.force, out, |path, out| {
            let bar = out.bar("writing", view.header().bytes());
            Ok(arrays::convert(&view, path, format, &options, &bar)?)
        })?;
        if args.json.json {
            out.json(&plan.fidelity)?;
        } else {
            out.summary(format_args!("{}: {}", display_path(output), plan.format.name()))?;
        }
        return Ok(if plan.has_lost_variables() { Outcome::CheckFailed } else { Outcome::Done });
    }
    let numbers: Vec<usize> = match &pointer.part {
        Some(part) if !only => view.header().find(part).into_iter().collect(),
        _ => (0..view.header().variables.len()).collect(),
    };
    for number in numbers {
        print(args, &view, number, out)?;
    }
    Ok(Outcome::Done)
}

fn print(args: &GetArgs, source: &dyn ArraySource, number: usize, out: &mut Ui) -> Result<(), Failure> {
    let variable = &source.header().variables[number];
    let limit = args.limit.or(10);
    let values = first_values(source, number, limit)?;
    if args.json.json {
        let metadata = variable.attrs.iter().map(|attr| (attr.name.clone(), attr.value.to_json())).collect();
        let (name, dtype, shape) = (&*variable.name, variable.kind.to_string(), &*variable.shape);
        return out.json(&GetJson { pointer: &args.pointer, name, dtype, shape, metadata, values });
    }
    out.line(format_args!("{}  {} {:?}", escape::name(&variable.name), variable.kind, variable.shape))?;
    for attr in &variable.attrs {
        out.line(format_args!("  {}: {}", escape::name(&attr.name), escape::name(&attr.value.to_text())))?;
    }
    let more = if (values.len() as u64) < variable.elements() { ", …" } else { "" };
    let shown: Vec<String> = values
        .iter()
        .map(|value| match value {
            Value::String(text) => escape::name(text).into_owned(),
            other => other.to_string(),
        })
        .collect();
    out.line(format_args!("  {}{more}", shown.join(", ")))
}

/// The first values of a variable, row-major.
fn first_values(source: &dyn ArraySource, number: usize, limit: u64) -> Result<Vec<Value>, Failure> {
    let variable = &source.header().variables[number];
    let count = usize::try_from(limit).unwrap_or(usize::MAX);
    if variable.kind == Kind::String {
        return Ok(source.read_strings(number)?.into_iter().take(count).map(Value::from).collect());
    }
    // Whole rows of the last axes, until there are enough.
    let mut extents = variable.shape.clone();
    let mut inner = 1u64;
    for axis in (0..extents.len()).rev() {
        let needed = limit.div_ceil(inner.max(1)).max(1);
        extents[axis] = extents[axis].min(needed);
        inner = inner.saturating_mul(variable.shape[axis]);
    }
    let tensor = arrays::read_tensor(source, number, &vec![0; extents.len()], &extents)?;
    let dtype = tensor.dtype();
    let value = |element: &[u8]| match number_at(dtype, element) {
        Some(Number::Int(value)) => {
            i64::try_from(value).map_or_else(|_| value.to_string().into(), Value::from)
        }
        Some(Number::Float(value)) if value.is_finite() => shortest(dtype, value),
        Some(Number::Float(value)) => value.to_string().into(),
        None => Value::Null,
    };
    Ok(tensor.bytes().chunks_exact(dtype.size().unwrap_or(1)).take(count).map(value).collect())
}

/// A float with the digits of its type.
#[expect(clippy::cast_possible_truncation, reason = "the number is one of this type")]
fn shortest(dtype: tercet::core::DType, value: f64) -> Value {
    if dtype == tercet::core::DType::F32 {
        let text = (value as f32).to_string();
        return serde_json::from_str(&text).unwrap_or_else(|_| value.into());
    }
    value.into()
}
