//! `tatami agg`: aggregates of rows.

use tercet::core::escape;
use tercet::tatami::aggregate::{Aggregate, Aggregation};
use tercet::tatami::{Column, Field, LogicalType, Type};

use super::cat::warn;
use super::collection_scan::{self, deleted_rows, note_deleted};
use super::columns::Columns;
use super::filter::Where;
use super::open::open_to_print;
use super::{names, scalars};
use crate::args::{JsonArgs, LimitArgs};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::render::{RowWriter, Table, pieces};
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tatami agg crawl.tatami --group-by status                      rows per status
  tatami agg crawl.tatami --min date --max date                  answered from statistics
  tatami agg sales.tatami --group-by region,year --sum price --mean price --where 'price > 0'
  tatami agg crawl --group-by lang --json                        all files of a collection, JSON Lines

Without an aggregate, rows are counted. Nulls are skipped, except by --count. --min and --max skip NaN; --sum and --mean with \
a NaN are NaN. Sums of integers and decimals are exact or an error. Groups are ordered by their keys, nulls first.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("limit", |arg| arg.help("Print at most N groups; 0 prints all [default: 0]")))]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Group rows by these columns. Quote names with commas in backticks
    #[arg(short, long, value_name = "COLUMNS")]
    group_by: Option<String>,
    /// Count rows
    #[arg(long)]
    count: bool,
    /// Minima of these columns
    #[arg(long, value_name = "COLUMNS")]
    min: Option<String>,
    /// Maxima of these columns
    #[arg(long, value_name = "COLUMNS")]
    max: Option<String>,
    /// Sums of these columns
    #[arg(long, value_name = "COLUMNS")]
    sum: Option<String>,
    /// Means of these columns
    #[arg(long, value_name = "COLUMNS")]
    mean: Option<String>,
    #[command(flatten)]
    filter: Where,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    json: JsonArgs,
}

/// The names of a list.
fn listed(list: Option<&String>) -> Result<Vec<String>, Failure> {
    list.map_or(Ok(Vec::new()), |list| names::list(list).map_err(Failure::request))
}

/// Makes an aggregate of a column.
type Make = fn(String) -> Aggregate;

impl Args {
    fn aggregates(&self) -> Result<Vec<Aggregate>, Failure> {
        let mut out = Vec::new();
        if self.count {
            out.push(Aggregate::Count);
        }
        let lists: [(_, Make); 4] = [
            (&self.min, Aggregate::Min),
            (&self.max, Aggregate::Max),
            (&self.sum, Aggregate::Sum),
            (&self.mean, Aggregate::Mean),
        ];
        for (list, make) in lists {
            out.extend(listed(list.as_ref())?.into_iter().map(make));
        }
        if out.is_empty() {
            out.push(Aggregate::Count);
        }
        Ok(out)
    }
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let (group_by, aggregates) = (listed(args.group_by.as_ref())?, args.aggregates()?);
    if let Some(collection) = collection_scan::collection(&args.input, out)? {
        let name = collection_scan::name(&args.input.path);
        let Some(first) = collection_scan::first_of(&collection)? else {
            return Err(Failure::request(format!("{}: the collection has no files", escape::name(&name))));
        };
        let scan = collection_scan::scan(&collection, &first, &Columns::default(), &args.filter)?;
        if let Some(result) = scan.aggregate(&group_by, &aggregates)? {
            print(args, &name, &result, out)?;
        }
        note_deleted(&name, collection_scan::deleted_in_all(&scan, &collection, &first)?, out)?;
        return Ok(Outcome::Done);
    }
    let file = open_to_print(args.input.source()?)?;
    let mut scan = file.scan();
    if let Some(filter) = args.filter.bind_to(&file)? {
        scan = scan.filter(&filter)?;
    }
    print(args, file.name(), &scan.aggregate(&group_by, &aggregates)?, out)?;
    note_deleted(file.name(), deleted_rows(&file)?, out)?;
    Ok(Outcome::Done)
}

fn print(args: &Args, name: &str, result: &Aggregation, out: &mut Ui) -> Result<(), Failure> {
    let groups = result.columns.first().map_or(0, Column::len);
    let shown = groups.min(usize::try_from(args.limit.or(0)).unwrap_or(usize::MAX));
    let typed = || result.fields.iter().zip(result.logical_types.iter().copied());
    if args.json.json {
        let mut writer = RowWriter::new(typed());
        for text in pieces(&mut writer, &result.columns, shown) {
            out.bytes()?.write_all(&text).map_err(|error| Failure::output(&error))?;
        }
        return warn(name, &writer, out);
    }
    // Numbers are aligned to the right.
    let head = |field: &Field| {
        let mark = if matches!(field.kind, Type::String | Type::Bytes | Type::BlobRef) { "" } else { ">" };
        format!("{mark}{}", escape::name(&field.name))
    };
    let heads: Vec<String> = result.fields.iter().map(head).collect();
    let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    for row in 0..shown {
        table.row(
            typed()
                .zip(&result.columns)
                .map(|((field, logical_type), column)| cell(field, logical_type, column, row)),
        );
    }
    out.line(table)?;
    if shown < groups {
        out.note(format!("{shown} of {groups} groups shown"))?;
    }
    Ok(())
}

/// A value for people: by its logical type, strings truncated, nulls as `null`.
fn cell(field: &Field, logical_type: Option<LogicalType>, column: &Column, row: usize) -> String {
    let Some(value) = column.scalar(row) else { return "null".to_owned() };
    scalars::display(field.kind, logical_type, &value)
}
