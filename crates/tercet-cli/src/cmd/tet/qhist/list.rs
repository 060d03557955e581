//! The list of queries.

use std::path::Path;

use serde_json::json;
use tercet::core::escape;

use super::{Entry, History, List, row};
use crate::failure::{Failure, Outcome};
use crate::ui::{DIM, HEADING, Ui, paint};

pub(super) fn print(args: &List, history: &History, out: &mut Ui) -> Result<Outcome, Failure> {
    let all = history.entries()?;
    let kept = all.len();
    let mut entries = args.filter.select(all, args.tet.as_deref());
    let found = entries.len();
    let limit = usize::try_from(args.limit.or(super::LIMIT)).unwrap_or(usize::MAX);
    entries.truncate(if args.all { usize::MAX } else { limit });
    if args.json.json {
        let rows: Vec<_> = entries.iter().enumerate().map(|(at, entry)| as_json(at + 1, entry)).collect();
        out.json(&json!({
            "path": history.path().to_string_lossy(),
            "filter": args.filter.to_text(args.tet.as_deref()),
            "kept": kept,
            "most": history.most(),
            "shown": rows.len(),
            "entries": rows,
        }))?;
        return Ok(Outcome::Done);
    }
    if entries.is_empty() {
        let reason = if kept == 0 { "the history is empty" } else { "no query matches the filter" };
        out.line(format_args!("({reason})"))?;
        return Ok(Outcome::Done);
    }
    let head = format!("{:>3}  {:<4}  {:<18}  {:<10}  {:<8}  tet", "#", "mode", "dataset", "op", "select");
    out.line(paint(HEADING, head))?;
    for (at, entry) in entries.iter().enumerate() {
        out.line(line(at + 1, entry))?;
    }
    if entries.len() < found {
        out.line(paint(DIM, format_args!("(showing {} of {found}; use --all for all)", entries.len())))?;
    }
    Ok(Outcome::Done)
}

fn as_json(number: usize, entry: &Entry) -> serde_json::Value {
    json!({
        "n": number,
        "at": entry.at,
        "mode": if entry.execute { "x" } else { "p" },
        "tet": entry.tet,
        "query": entry.query,
    })
}

fn line(number: usize, entry: &Entry) -> String {
    let mode = if entry.execute { "x" } else { "p" };
    let dataset = escape::name(row::dataset(entry));
    let operation = match row::operation(entry) {
        "" => "-".into(),
        name => escape::name(name),
    };
    let file =
        entry.tet.as_deref().map(Path::new).and_then(Path::file_name).map(std::ffi::OsStr::to_string_lossy);
    let file = file.unwrap_or("-".into());
    let selection = row::selection(entry);
    format!("{number:>3}  {mode:^4}  {dataset:<18}  {operation:<10}  {selection:<8}  {}", escape::name(&file))
}
