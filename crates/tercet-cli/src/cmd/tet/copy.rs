//! `tet copy`: copy a dataset, or all of them, into a new or an existing file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tercet::Format;
use tercet::core::escape;
use tercet::tet::{File, HistoryRow, Layout, Merge, Rewrite, unix_seconds};

use super::arrays::Style;
use super::edit::quoted;
use super::merge::{file_name, write};
use super::written::Written;
use crate::args::{JsonArgs, read_options};
use crate::failure::{Failure, Outcome};
use crate::input::{self, check_format, is_local, must_be, must_be_changeable};
use crate::output::Output;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tet copy a.tet:t2m b.tet                 a dataset into a new file, or into an existing one
  tet copy a.tet:t2m b.tet:t2m_old         under another name
  tet copy a.tet b.tet                     all datasets

Attributes, axis names and labels are copied too, and so are the datasets with the coordinates of a single dataset. Chunks \
are verified and copied as they are stored. Other datasets of an existing file are kept; a dataset that it has already is an \
error.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// File or URL to copy from, and one of its datasets [default: all datasets]
    #[arg(value_name = "FROM[:DATASET]")]
    from: PathBuf,
    /// File to copy to, and the new name of the dataset
    #[arg(value_name = "TO[:NAME]")]
    to: PathBuf,
    /// Copy the dataset without the datasets that hold its coordinates
    #[arg(long)]
    no_coordinates: bool,
    #[command(flatten)]
    style: Style,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let (from, dataset) = split(&args.from);
    let (to, name) = split(&args.to);
    if name.is_some() && dataset.is_none() {
        let failure = Failure::request("a new name needs one dataset to copy");
        return Err(failure.with_hint("name it: `tet copy FROM:DATASET TO:NAME`"));
    }
    let copied = if is_local(&to) && std::fs::metadata(&to).is_ok() {
        add(args, &from, dataset.as_deref(), &to, name.as_deref(), out)?
    } else {
        create(args, &from, dataset.as_deref(), &to, name.as_deref(), out)?
    };
    if let Some(written) = copied {
        written.show(args.json.json, out)?;
    }
    Ok(Outcome::Done)
}

fn open(path: &Path) -> Result<Arc<File>, Failure> {
    let source = must_be(input::open(path)?, Format::Tet)?;
    Ok(Arc::new(File::from_source(source, read_options())?))
}

/// Copies into an existing file.
fn add(
    args: &Args,
    from: &Path,
    dataset: Option<&str>,
    to: &Path,
    name: Option<&str>,
    out: &mut Ui,
) -> Result<Option<Written>, Failure> {
    must_be_changeable(to, "copy to")?;
    check_format(to, Format::Tet)?;
    let mut rewrite = Rewrite::open_with(to, read_options())?;
    // After locking: both may be the same file.
    let file = open(from)?;
    let all: Vec<String> = file.datasets().map(|dataset| dataset.name().to_owned()).collect();
    let old: Vec<&str> =
        dataset.map_or_else(|| all.iter().map(String::as_str).collect(), |dataset| vec![dataset]);
    let new: Vec<&str> = old.iter().map(|old| name.unwrap_or(old)).collect();
    let taken: Vec<&str> = new.iter().copied().filter(|new| rewrite.layout().find(new).is_some()).collect();
    if !taken.is_empty() {
        let shown = escape::name(&to.to_string_lossy()).into_owned();
        let message = format!("{shown}: has {} already", quoted(taken));
        let hint = "copy it under another name: `tet copy FROM:DATASET TO:NAME`";
        return Err(Failure::request(message).with_location(to).with_hint(hint));
    }
    for (old, new) in old.iter().zip(&new) {
        rewrite.layout().copy_dataset(&file, old, new)?;
    }
    let one = dataset.map(|dataset| (dataset, name.unwrap_or(dataset)));
    let coordinates = add_coordinates(args, rewrite.layout(), &file, one, out)?;
    let new: Vec<&str> = new.into_iter().chain(coordinates.iter().map(String::as_str)).collect();
    let bar = out.bar("writing", rewrite.file().len().saturating_add(file.len()));
    rewrite.start(history(&file, dataset), args.style.options(), &bar)?.finish()?;
    drop(bar);
    Ok(Some(Written::read(to, &new)?))
}

/// Copies into a new file.
fn create(
    args: &Args,
    from: &Path,
    dataset: Option<&str>,
    to: &Path,
    name: Option<&str>,
    out: &mut Ui,
) -> Result<Option<Written>, Failure> {
    let output = Output::open(to, false)?;
    output.reserve_stdout(out)?;
    let file = open(from)?;
    let mut merge = Merge::new();
    let bar = out.bar("writing", file.len());
    match dataset {
        None => merge.add(&file, str::to_owned, &bar)?,
        Some(dataset) => {
            merge.layout().copy_dataset(&file, dataset, name.unwrap_or(dataset))?;
            merge.layout().copy_file_info(&file);
        }
    }
    let one = dataset.map(|dataset| (dataset, name.unwrap_or(dataset)));
    add_coordinates(args, merge.layout(), &file, one, out)?;
    if args.style.records_origin() {
        merge.layout().file_info("tercet", env!("CARGO_PKG_VERSION"), unix_seconds());
        merge.layout().add_history(history(&file, dataset));
    }
    let (layout, _) = merge.finish();
    write(layout, args.style, output, false, &bar, out)
}

/// Adds the coordinates of a copied dataset, given by its old and its new name, and checks those of all datasets. Returns
/// the names of the added ones.
fn add_coordinates(
    args: &Args,
    layout: &mut Layout,
    file: &Arc<File>,
    dataset: Option<(&str, &str)>,
    out: &mut Ui,
) -> Result<Vec<String>, Failure> {
    let mut added = Vec::new();
    let mut expected = Vec::new();
    if let Some((old, new)) = dataset {
        let stored = file.dataset(old)?;
        // Coordinates that are copied by themselves belong to every dataset with their axis.
        if stored.shape().len() == 1 && stored.axis_name(0).is_none_or(|axis| axis == new) {
            expected.push(new);
        }
        if !args.no_coordinates {
            added = layout.copy_coordinates(file, old)?;
        }
    }
    let changes = layout.check_coordinates(&expected).map_err(|error| {
        let failure = Failure::from(error);
        if added.is_empty() { failure } else { failure.with_hint("copy the dataset with `--no-coordinates`") }
    })?;
    if !added.is_empty() {
        let names = quoted(added.iter().map(String::as_str));
        out.note(format_args!("note: the coordinates {names} are copied as well"))?;
    }
    if !changes.absent.is_empty() {
        let names = quoted(changes.absent.iter().map(String::as_str));
        out.note(format_args!(
            "note: the coordinates {names} are not copied; copy them as well to select by label"
        ))?;
    }
    if !changes.gained.is_empty() {
        let names = quoted(changes.gained.iter().map(|(dataset, _)| dataset.as_str()));
        out.note(format_args!("note: {names} had no coordinates for this axis, and has these now"))?;
    }
    Ok(added)
}

fn history(file: &File, dataset: Option<&str>) -> HistoryRow {
    let name = file_name(file.name());
    let row = HistoryRow::now("copy", &name);
    match dataset {
        Some(dataset) => row.with_param("dataset", dataset),
        None => row,
    }
}

/// Splits `FILE:NAME` after the first part that is a file or ends in `.tet`. Paths and names may contain colons.
fn split(text: &Path) -> (PathBuf, Option<String>) {
    let whole = || (text.to_owned(), None);
    let Some(full) = text.to_str() else { return whole() };
    if is_local(text) && std::fs::metadata(text).is_ok() {
        return whole();
    }
    let is_file = |path: &Path| {
        path.extension().is_some_and(|extension| extension == "tet")
            || std::fs::metadata(path).is_ok_and(|meta| meta.is_file())
    };
    let cut = full.match_indices(':').map(|(at, _)| at).find(|&at| is_file(Path::new(&full[..at])));
    match cut {
        Some(at) if at + 1 < full.len() => (full[..at].into(), Some(full[at + 1..].to_owned())),
        _ => whole(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dataset_follows_the_file() {
        let split = |text: &str| {
            let (path, name) = split(Path::new(text));
            (path.to_str().unwrap().to_owned(), name)
        };
        let both = |path: &str, name: &str| (path.to_owned(), Some(name.to_owned()));
        assert_eq!(split("a.tet:t2m"), both("a.tet", "t2m"));
        assert_eq!(split("dir:1/a.tet:grp/x:y"), both("dir:1/a.tet", "grp/x:y"));
        assert_eq!(split("s3://bucket/a.tet:t2m"), both("s3://bucket/a.tet", "t2m"));
        assert_eq!(split("a.tet"), ("a.tet".to_owned(), None));
        assert_eq!(split("no-extension:t2m"), ("no-extension:t2m".to_owned(), None));
    }
}
