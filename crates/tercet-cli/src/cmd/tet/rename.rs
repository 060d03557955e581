//! `tet rename`: rename datasets, axes, attributes and labels.

use serde::Serialize;
use tercet::core::escape;
use tercet::tet::Rewrite;

use super::edit::{EditArgs, dataset, history, located, pair, quoted};
use crate::failure::{Failure, Outcome};
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tet rename a.tet t2m t2                      a dataset
  tet rename a.tet --dim time=t                an axis of all datasets, and the dataset with its coordinates
  tet rename a.tet --dim t2m time=t            an axis of one dataset, by name or number
  tet rename a.tet --attr t2m unit=units       an attribute
  tet rename a.tet --file title=name           an attribute of the file
  tet rename a.tet --label station t2m A=B     a label of the axis `station`

Attributes, axis names and labels follow a renamed dataset. Chunks are verified and copied as they are stored.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    edit: EditArgs,
    /// OLD and NEW name of a dataset; or a dataset and OLD=NEW pairs
    #[arg(value_name = "NAMES", required = true)]
    names: Vec<String>,
    /// Rename axes: OLD=NEW for all datasets, or DATASET OLD=NEW
    #[arg(long)]
    dim: bool,
    /// Rename attributes: DATASET OLD=NEW
    #[arg(long, conflicts_with = "dim")]
    attr: bool,
    /// Rename attributes of the file: OLD=NEW
    #[arg(long, conflicts_with_all = ["dim", "attr"])]
    file: bool,
    /// Rename labels of this axis: DATASET OLD=NEW
    #[arg(long, value_name = "AXIS", conflicts_with_all = ["dim", "attr", "file"])]
    label: Option<String>,
}

/// What has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Dataset,
    Axis,
    Attribute,
    FileAttribute,
    Label,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Dataset => "dataset",
            Self::Axis => "axis",
            Self::Attribute => "attribute",
            Self::FileAttribute => "file attribute",
            Self::Label => "label",
        }
    }
}

#[derive(Debug, Serialize)]
struct RenameJson<'a> {
    kind: Kind,
    dataset: Option<&'a str>,
    renamed: Vec<(&'a str, &'a str)>,
    /// The changed datasets, under their new names.
    datasets: Vec<String>,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let plan = args.plan()?;
    let mut rewrite = args.edit.open("change")?;
    let id = match plan.dataset {
        Some(name) => Some(dataset(&rewrite, name)?),
        None => None,
    };
    let refused = located(&args.edit.path);
    let mut changed: Vec<_> = id.into_iter().collect();
    for &(old, new) in &plan.renamed {
        let layout = rewrite.layout();
        match (plan.kind, id) {
            (Kind::Dataset, _) => {
                let id = dataset(&rewrite, old)?;
                rewrite.layout().rename(id, new).map_err(refused)?;
                changed.push(id);
            }
            (Kind::Axis, Some(id)) => layout.rename_axis(id, old, new).map_err(refused)?,
            (Kind::Axis, None) => changed.extend(layout.rename_axis_everywhere(old, new).map_err(refused)?),
            (Kind::Attribute, Some(id)) => layout.rename_attr(id, old, new).map_err(refused)?,
            (Kind::Label, Some(id)) => {
                let axis = args.label.as_deref().unwrap_or_default();
                layout.rename_label(id, axis, old, new).map_err(refused)?;
            }
            _ => layout.rename_file_attr(old, new).map_err(refused)?,
        }
    }
    if plan.kind == Kind::Dataset {
        for (old, new) in &plan.renamed {
            note_coordinates(&mut rewrite, old, new, out)?;
        }
    }
    let names: Vec<String> = rewrite.layout().names().map(str::to_owned).collect();
    let mut datasets: Vec<String> = names
        .iter()
        .filter(|name| changed.iter().any(|id| rewrite.dataset(name).is_ok_and(|found| found == *id)))
        .cloned()
        .collect();
    datasets.dedup();
    let pairs: Vec<String> = plan
        .renamed
        .iter()
        .map(|(old, new)| format!("`{}` to `{}`", escape::name(old), escape::name(new)))
        .collect();
    let within = match (plan.kind, plan.dataset) {
        (Kind::Dataset, _) => String::new(),
        (_, Some(name)) => format!(" of `{}`", escape::name(name)),
        (Kind::Axis, None) => format!(" of {}", quoted(datasets.iter().map(String::as_str))),
        _ => String::new(),
    };
    let line = format!("renamed {}{within} {}", plan.kind.name(), pairs.join(", "));
    let params = plan.renamed.iter().map(|(old, new)| ((*old).to_owned(), (*new).to_owned()));
    let source = plan
        .dataset
        .map_or_else(|| plan.kind.name().to_owned(), |name| format!("{} of {name}", plan.kind.name()));
    let row = history("rename", &source, params);
    let RenamePlan { kind, dataset, renamed } = plan;
    args.edit.finish(rewrite, row, &RenameJson { kind, dataset, renamed, datasets }, &line, out)
}

/// What is renamed.
struct RenamePlan<'a> {
    kind: Kind,
    dataset: Option<&'a str>,
    renamed: Vec<(&'a str, &'a str)>,
}

impl Args {
    fn plan(&self) -> Result<RenamePlan<'_>, Failure> {
        let kind = if self.dim {
            Kind::Axis
        } else if self.attr {
            Kind::Attribute
        } else if self.file {
            Kind::FileAttribute
        } else if self.label.is_some() {
            Kind::Label
        } else {
            let [old, new] = &self.names[..] else {
                let failure = Failure::request("expected the old and the new name of one dataset");
                return Err(failure.with_hint("`tet rename FILE OLD NEW`"));
            };
            return Ok(RenamePlan { kind: Kind::Dataset, dataset: None, renamed: vec![(old, new)] });
        };
        let (dataset, pairs) = match self.names.split_first() {
            Some((name, pairs)) if !(self.file || self.dim && name.contains('=')) => {
                (Some(name.as_str()), pairs)
            }
            _ => (None, &self.names[..]),
        };
        if pairs.is_empty() {
            return Err(Failure::request("nothing to rename: expected OLD=NEW"));
        }
        let renamed = pairs.iter().map(|text| pair(text, "OLD=NEW")).collect::<Result<_, _>>()?;
        Ok(RenamePlan { kind, dataset, renamed })
    }
}

/// Notes that a renamed dataset held the coordinates of an axis.
fn note_coordinates(rewrite: &mut Rewrite, old: &str, new: &str, out: &mut Ui) -> Result<(), Failure> {
    let layout = rewrite.layout();
    let Some(id) = layout.find(new).filter(|id| layout.grid(*id).rank() == 1) else { return Ok(()) };
    let extent = layout.grid(id).shape()[0];
    let names: Vec<String> = layout.names().map(str::to_owned).collect();
    let uses = |name: &&String| {
        let Some(other) = layout.find(name).filter(|other| *other != id) else { return false };
        let shape = layout.grid(other).shape();
        (0..shape.len()).any(|axis| shape[axis] == extent && layout.axis_name(other, axis) == Some(old))
    };
    let left: Vec<&str> = names.iter().filter(uses).map(String::as_str).collect();
    if left.is_empty() {
        return Ok(());
    }
    let (axis, name) = (escape::name(old), escape::name(new));
    out.note(format_args!(
        "note: axis `{axis}` of {} has no coordinates now; `--dim {axis}={name}` renames the axis too",
        quoted(left)
    ))
}
