//! `tet unset`: remove attributes and labels.

use serde::Serialize;
use tercet::core::escape;

use super::edit::{EditArgs, dataset, history, located, quoted};
use crate::failure::{Failure, Outcome};
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    edit: EditArgs,
    /// Dataset, then attributes to remove; only attributes with --file
    #[arg(value_name = "DATASET KEY")]
    keys: Vec<String>,
    /// Remove attributes of the file
    #[arg(long, conflicts_with = "labels")]
    file: bool,
    /// Remove the labels of an axis. Repeatable
    #[arg(long, value_name = "AXIS")]
    labels: Vec<String>,
}

#[derive(Debug, Serialize)]
struct UnsetJson<'a> {
    dataset: Option<&'a str>,
    removed: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    labels: &'a [String],
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let (name, removed) = match args.keys.split_first() {
        _ if args.file => (None, &args.keys[..]),
        Some((name, keys)) => (Some(name.as_str()), keys),
        None => return Err(Failure::request("nothing to remove: expected a dataset, or `--file`")),
    };
    if removed.is_empty() && args.labels.is_empty() {
        return Err(Failure::request("nothing to remove: expected attributes or `--labels`"));
    }
    let mut rewrite = args.edit.open("change")?;
    let id = name.map(|name| dataset(&rewrite, name)).transpose()?;
    let (layout, refused) = (rewrite.layout(), located(&args.edit.path));
    for key in removed {
        match id {
            Some(id) => layout.remove_attr(id, key),
            None => layout.remove_file_attr(key),
        }
        .map_err(refused)?;
    }
    for axis in &args.labels {
        if let Some(id) = id {
            layout.remove_labels(id, axis).map_err(refused)?;
        }
    }
    let json = UnsetJson { dataset: name, removed, labels: &args.labels };
    let keys = removed.iter().map(String::as_str);
    let of = name.map_or_else(|| "file".to_owned(), |name| format!("`{}`", escape::name(name)));
    let labels: Vec<String> = args.labels.iter().map(|axis| format!("labels of {axis}")).collect();
    let mut what: Vec<String> = keys.clone().map(|key| quoted([key])).collect();
    if !args.labels.is_empty() {
        what.push(format!("labels of {}", quoted(args.labels.iter().map(String::as_str))));
    }
    let line = format!("{of}: removed {}", what.join(", "));
    let params =
        keys.chain(labels.iter().map(String::as_str)).map(|key| (key.to_owned(), "removed".to_owned()));
    let row = history("unset", name.unwrap_or("file"), params);
    args.edit.finish(rewrite, row, &json, &line, out)
}
