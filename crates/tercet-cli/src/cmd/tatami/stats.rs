//! `tatami stats`: column statistics and storage.

use std::collections::BTreeMap;

use serde::Serialize;
use tercet::core::escape;
use tercet::core::num::counted;
use tercet::tatami::format::{Codec, Encoding};
use tercet::tatami::{File, LogicalType, Scalar, Type};

use super::collection_scan;
use super::columns::AsStored;
use super::open::open;
use super::scalars::{self, JsonScalar};
use crate::args::JsonArgs;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::render::{Table, human_size, ratio};
use crate::ui::{Ui, is_interrupted};

const EXAMPLES: &str = "\
Examples:
  tatami stats crawl.tatami          one row per column
  tatami stats crawl.tatami --json   JSON
  tatami stats crawl                 all files of a collection

Min and max are taken from the zone maps of row groups and omitted if unreliable. `distinct` is the size of the value \
dictionary, a lower bound of the number of distinct values. `raw` is the size of encoded pages before compression.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    values: AsStored,
    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Serialize)]
struct StatsJson<'a> {
    file: &'a str,
    bytes: u64,
    rows: u64,
    columns: Vec<Column>,
}

#[derive(Serialize)]
struct Column {
    name: String,
    #[serde(rename = "type")]
    kind: Type,
    #[serde(skip_serializing_if = "Option::is_none")]
    element: Option<Type>,
    rows: u64,
    nulls: u64,
    min: Option<JsonScalar>,
    max: Option<JsonScalar>,
    distinct: Option<u64>,
    raw_bytes: u64,
    stored_bytes: u64,
    /// Pages by encoding and codec.
    pages: Vec<Pages>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob_runs: Option<usize>,
    #[serde(skip)]
    logical_type: Option<LogicalType>,
    #[serde(skip)]
    bounds: Option<(Scalar, Scalar)>,
    /// Whether a file of a collection has values, but no bounds.
    #[serde(skip)]
    unbounded: bool,
}

#[derive(Serialize)]
struct Pages {
    encoding: Encoding,
    codec: Codec,
    #[serde(rename = "pages")]
    count: u64,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let (name, files) = if let Some(collection) = collection_scan::collection(&args.input, out)? {
        let members = collection.members().iter();
        let files: Vec<File> =
            members.map(|member| collection.open_member(member)).collect::<Result<_, _>>()?;
        let deleted = collection.deleted_rows();
        if deleted > 0 {
            out.note(format_args!("statistics include {}", counted(deleted, "deleted row")))?;
        }
        (collection_scan::name(&args.input.path), files)
    } else {
        let file = open(args.input.source()?)?;
        (file.name().to_string(), vec![file])
    };
    let mut columns: Vec<Column> = Vec::new();
    for file in &files {
        for index in 0..file.schema().len() {
            let column = column(file, index, args.values.logical_type(file, index))?;
            match columns.iter_mut().find(|known| known.name == column.name) {
                Some(known) => known.add(column),
                None => columns.push(column),
            }
        }
    }
    columns.iter_mut().for_each(Column::print_bounds);
    let total = |of: fn(&File) -> u64| files.iter().map(of).fold(0, u64::saturating_add);
    let (bytes, rows) = (total(File::len), total(File::rows));
    if args.json.json {
        out.json(&StatsJson { file: &name, bytes, rows, columns })?;
        return Ok(Outcome::Done);
    }
    let heads = [
        "column",
        "type",
        ">rows",
        ">nulls",
        "min",
        "max",
        ">distinct",
        ">raw",
        ">stored",
        ">ratio",
        "pages",
    ];
    let mut table = Table::new(&heads);
    for column in &columns {
        table.row(column.cells());
    }
    out.line(table)?;
    let groups = total(|file| file.group_count() as u64);
    let (rows, groups) = (counted(rows, "row"), counted(groups, "row group"));
    out.line(format_args!("{}: {rows}, {groups}, {}", escape::name(&name), human_size(bytes)))?;
    Ok(Outcome::Done)
}

fn column(file: &File, index: usize, logical_type: Option<LogicalType>) -> Result<Column, Failure> {
    let footer = file.footer();
    let field = &footer.schema.fields()[index];
    let mut counts: BTreeMap<(Encoding, Codec), u64> = BTreeMap::new();
    let (mut rows, mut nulls, mut raw, mut stored) = (0u64, 0u64, 0u64, 0u64);
    for (group, entry) in footer.groups.iter().enumerate() {
        if is_interrupted() {
            return Err(Failure::Interrupted);
        }
        let Some(chunk) = entry.chunks.get(index) else { continue };
        rows = rows.saturating_add(chunk.values);
        nulls = nulls.saturating_add(chunk.nulls);
        raw = raw.saturating_add(chunk.raw_bytes);
        stored = stored.saturating_add(chunk.stored_bytes);
        for page in file.pages(group, index)? {
            *counts.entry((page.header.encoding, page.header.codec)).or_default() += 1;
        }
    }
    let blob = footer.blobs.iter().find(|blob| blob.column == index as u64);
    for run in blob.iter().flat_map(|blob| &blob.runs) {
        raw = raw.saturating_add(run.raw_bytes);
        stored = stored.saturating_add(run.stored_bytes);
    }
    let bounds = file.column_bounds(index);
    Ok(Column {
        name: field.name.to_string(),
        kind: field.kind,
        element: field.element,
        rows,
        nulls,
        min: None,
        max: None,
        distinct: file.dictionary_values(index)?,
        raw_bytes: raw,
        stored_bytes: stored,
        pages: counts
            .into_iter()
            .map(|((encoding, codec), count)| Pages { encoding, codec, count })
            .collect(),
        blob_runs: blob.map(|blob| blob.runs.len()),
        logical_type,
        unbounded: bounds.is_none() && nulls < rows,
        bounds,
    })
}

impl Column {
    /// Adds the statistics of the same column of another file.
    fn add(&mut self, other: Self) {
        self.rows = self.rows.saturating_add(other.rows);
        self.nulls = self.nulls.saturating_add(other.nulls);
        self.raw_bytes = self.raw_bytes.saturating_add(other.raw_bytes);
        self.stored_bytes = self.stored_bytes.saturating_add(other.stored_bytes);
        // The largest of lower bounds.
        self.distinct = self.distinct.max(other.distinct);
        self.blob_runs = match (self.blob_runs, other.blob_runs) {
            (None, None) => None,
            (one, other) => Some(one.unwrap_or(0) + other.unwrap_or(0)),
        };
        for added in other.pages {
            let same = |pages: &&mut Pages| (pages.encoding, pages.codec) == (added.encoding, added.codec);
            match self.pages.iter_mut().find(same) {
                Some(pages) => pages.count += added.count,
                None => self.pages.push(added),
            }
        }
        self.unbounded |= other.unbounded || self.kind != other.kind;
        self.bounds = match (self.bounds.take(), other.bounds) {
            (Some((min, max)), Some((lower, upper))) => {
                let less = |a: &Scalar, b: &Scalar| a.order(b).is_some_and(std::cmp::Ordering::is_lt);
                Some((
                    if less(&lower, &min) { lower } else { min },
                    if less(&max, &upper) { upper } else { max },
                ))
            }
            (bounds, others) => bounds.or(others),
        };
    }

    /// Sets the printed minimum and maximum. Those of decimals in bytes are not in the order of numbers.
    fn print_bounds(&mut self) {
        let kind = self.element.unwrap_or(self.kind);
        let is_ordered = !(kind == Type::Bytes && self.logical_type.is_some_and(LogicalType::is_number));
        self.bounds = self.bounds.take().filter(|_| is_ordered && !self.unbounded);
        if let Some((min, max)) = &self.bounds {
            self.min = Some(scalars::typed_json(kind, self.logical_type, min));
            self.max = Some(scalars::typed_json(kind, self.logical_type, max));
        }
    }

    fn cells(&self) -> [String; 11] {
        let kind = self.element.unwrap_or(self.kind);
        let display = |value: Option<&Scalar>| {
            value.map_or_else(|| "–".to_owned(), |value| scalars::display(kind, self.logical_type, value))
        };
        let mut pages: Vec<String> = self
            .pages
            .iter()
            .map(|Pages { encoding, codec, count }| format!("{count} {encoding}/{codec}"))
            .collect();
        if let Some(runs) = self.blob_runs {
            pages.push(format!("{runs} blob run{}", if runs == 1 { "" } else { "s" }));
        }
        let kind = match self.element {
            Some(element) => format!("{} of {element}", self.kind),
            None => self.kind.to_string(),
        };
        [
            escape::name(&self.name).into_owned(),
            kind,
            self.rows.to_string(),
            self.nulls.to_string(),
            display(self.bounds.as_ref().map(|(min, _)| min)),
            display(self.bounds.as_ref().map(|(_, max)| max)),
            self.distinct.map_or_else(|| "–".to_owned(), |distinct| distinct.to_string()),
            human_size(self.raw_bytes),
            human_size(self.stored_bytes),
            ratio(self.raw_bytes, self.stored_bytes),
            pages.join(", "),
        ]
    }
}
