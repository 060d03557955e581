//! `tatami stats`: column statistics and storage.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value as Json;
use tercet::core::escape;
use tercet::tatami::format::{Codec, Encoding};
use tercet::tatami::{File, Scalar, Type};

use super::open::open;
use super::scalars;
use crate::args::JsonArgs;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::render::{Table, human_size, ratio};
use crate::ui::{Ui, is_interrupted};

const EXAMPLES: &str = "\
Examples:
  tatami stats crawl.tatami          one row per column
  tatami stats crawl.tatami --json   JSON

Min and max are taken from the zone maps of row groups and omitted if unreliable. `distinct` is the size of the value \
dictionary, a lower bound of the number of distinct values. `raw` is the size of encoded pages before compression.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
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
    min: Json,
    max: Json,
    distinct: Option<u64>,
    raw_bytes: u64,
    stored_bytes: u64,
    /// Pages by encoding and codec.
    pages: Vec<Pages>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob_runs: Option<usize>,
    #[serde(skip)]
    bounds: Option<(Scalar, Scalar)>,
}

#[derive(Serialize)]
struct Pages {
    encoding: Encoding,
    codec: Codec,
    #[serde(rename = "pages")]
    count: u64,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let file = open(args.input.source()?)?;
    let columns: Vec<Column> =
        (0..file.schema().len()).map(|index| column(&file, index)).collect::<Result<_, _>>()?;
    if args.json.json {
        out.json(&StatsJson { file: file.name(), bytes: file.len(), rows: file.rows(), columns })?;
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
    let (name, size) = (escape::name(file.name()), human_size(file.len()));
    let groups = file.group_count();
    let (rows, plural) = (file.rows(), |count: u64| if count == 1 { "" } else { "s" });
    let (one, other) = (plural(rows), plural(groups as u64));
    out.line(format_args!("{name}: {rows} row{one}, {groups} row group{other}, {size}"))?;
    Ok(Outcome::Done)
}

fn column(file: &File, index: usize) -> Result<Column, Failure> {
    let footer = file.footer();
    let field = &footer.schema.fields()[index];
    let kind = field.scalar();
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
    let value = |value: Option<&Scalar>| value.map_or(Json::Null, |value| scalars::json(kind, value));
    Ok(Column {
        name: field.name.to_string(),
        kind: field.kind,
        element: field.element,
        rows,
        nulls,
        min: value(bounds.as_ref().map(|(min, _)| min)),
        max: value(bounds.as_ref().map(|(_, max)| max)),
        distinct: file.dictionary_values(index)?,
        raw_bytes: raw,
        stored_bytes: stored,
        pages: counts
            .into_iter()
            .map(|((encoding, codec), count)| Pages { encoding, codec, count })
            .collect(),
        blob_runs: blob.map(|blob| blob.runs.len()),
        bounds,
    })
}

impl Column {
    fn cells(&self) -> [String; 11] {
        let kind = self.element.unwrap_or(self.kind);
        let display = |value: Option<&Scalar>| {
            value.map_or_else(|| "–".to_owned(), |value| scalars::display(kind, value))
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
