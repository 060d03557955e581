//! `tet set`: set attributes, axis names and labels.

use std::collections::BTreeMap;

use serde::Serialize;
use tercet::core::{ElementType, escape};
use tercet::tet::{AttrValue, EditError, Layout};

use super::arrays::scope::check_axes_differ;
use super::arrays::{labels, syntax};
use super::edit::{EditArgs, NAME_DATASET, dataset, history, located, pair, quoted};
use crate::failure::{Failure, Outcome};
use crate::named_file::{NamedFile, named_file};
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tet set a.tet t2m units=K level=850 valid_range='[180, 330]'
  tet set a.tet t2m --string version=1.0       a string that looks like a number
  tet set a.tet t2m _FillValue=-999 --type f32
  tet set a.tet --file title='ERA5, June 2024'
  tet set a.tet t2m --dims time,lat,lon --labels time=times.txt

Values are numbers, true, false, JSON lists, JSON objects or strings. `_FillValue`, `missing_value`, `scale_factor`, \
`add_offset`, `valid_min`, `valid_max` and `valid_range` must be numbers. Chunks are verified and copied as they are stored.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    edit: EditArgs,
    /// Dataset, then attributes to set; only attributes with --file
    #[arg(value_name = "DATASET KEY=VALUE")]
    values: Vec<String>,
    /// Set attributes of the file
    #[arg(long, conflicts_with_all = ["dims", "labels"])]
    file: bool,
    /// Set an attribute to a string, also if it looks like a number or JSON. Repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = syntax::pair)]
    string: Vec<(String, String)>,
    /// Type of the numbers, also in lists: f16, f32, f64, i16, i32, i64, u8, u16, u32 or u64. Other values need --string
    #[arg(long = "type", value_name = "TYPE", value_parser = element_type)]
    dtype: Option<ElementType>,
    /// Set all axis names, outermost first: `time,lat,lon`
    #[arg(long, value_name = "AXIS,…")]
    dims: Option<String>,
    /// Set the labels of an axis, from a file with one per line or a list: `time=times.txt`, `level=500,850`
    #[arg(long, value_name = "AXIS=FILE|LIST", value_parser = named_file())]
    labels: Vec<NamedFile>,
}

#[derive(Debug, Serialize)]
struct SetJson<'a> {
    dataset: Option<&'a str>,
    attributes: BTreeMap<&'a str, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dims: Option<Vec<String>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<&'a str, usize>,
}

fn element_type(text: &str) -> Result<ElementType, String> {
    let names = || ElementType::ALL.map(ElementType::name).join(", ");
    let found = ElementType::ALL.into_iter().find(|dtype| dtype.name() == text);
    found.ok_or_else(|| format!("unknown type `{text}`; expected one of {}", names()))
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let (name, pairs) = match args.values.split_first() {
        _ if args.file => (None, &args.values[..]),
        Some((name, pairs)) => (Some(name.as_str()), pairs),
        None => return Err(nothing("a dataset, or `--file`")),
    };
    let mut attributes = Vec::new();
    for text in pairs {
        let (key, value) = pair(text, "KEY=VALUE")?;
        let parsed = match args.dtype {
            Some(dtype) => AttrValue::typed(value, dtype),
            None => AttrValue::parse(value),
        };
        let of = name.map(str::to_owned);
        let wrong = |reason| EditError::Attr { of, key: key.to_owned(), reason };
        attributes.push((key, parsed.map_err(|reason| located(&args.edit.path)(wrong(reason).into()))?));
    }
    attributes.extend(args.string.iter().map(|(key, value)| (key.as_str(), AttrValue::from(value.as_str()))));
    if attributes.is_empty() && args.dims.is_none() && args.labels.is_empty() {
        let failure = nothing("KEY=VALUE, `--dims` or `--labels`");
        return Err(match name {
            Some(name) if name.contains('=') => failure.with_hint(NAME_DATASET),
            _ => failure,
        });
    }
    check_differ(&attributes)?;
    let names = |dims: &String| dims.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>();
    let dims = args.dims.as_ref().map(names);
    if let (Some(text), Some(names)) = (&args.dims, &dims) {
        check_axes_differ(text, names)?;
    }
    let mut labels = Vec::with_capacity(args.labels.len());
    for given in &args.labels {
        labels.push((given.name.as_str(), labels::read_or_split(&given.path)?));
    }

    let mut rewrite = args.edit.open("change")?;
    let id = name.map(|name| dataset(&rewrite, name)).transpose()?;
    let layout: &mut Layout = rewrite.layout();
    let refused = located(&args.edit.path);
    for (key, value) in &attributes {
        match id {
            Some(id) => layout.set_attr(id, key, value),
            None => layout.set_file_attr(key, value),
        }
        .map_err(refused)?;
    }
    let mut json = SetJson {
        dataset: name,
        attributes: attributes.iter().map(|(key, value)| (*key, value.text().to_owned())).collect(),
        dims: dims.clone(),
        labels: labels.iter().map(|(axis, labels)| (*axis, labels.len())).collect(),
    };
    if let Some(id) = id {
        if let Some(names) = &dims {
            layout.dims(id, names.iter().map(String::as_str)).map_err(refused)?;
        }
        for (axis, labels) in labels {
            layout.labels(id, axis, labels).map_err(refused)?;
        }
        // Attributes of known meaning are stored in one form.
        for (key, text) in &mut json.attributes {
            if let Some(value) = layout.dataset_info(id).and_then(|info| info.attr(key)) {
                value.text().clone_into(text);
            }
        }
    }
    let line = json.line();
    let params = json.attributes.iter().map(|(key, text)| ((*key).to_owned(), text.clone()));
    let params = params.chain(json.labels.keys().map(|axis| (format!("labels of {axis}"), "set".to_owned())));
    let params = params.chain(dims.iter().map(|names| ("dims".to_owned(), names.join(","))));
    let row = history("set", name.unwrap_or("file"), params);
    args.edit.finish(rewrite, row, &json, &line, out)
}

impl SetJson<'_> {
    fn line(&self) -> String {
        let of = self.dataset.map_or_else(|| "file".to_owned(), |name| format!("`{}`", escape::name(name)));
        let mut what = Vec::new();
        if !self.attributes.is_empty() {
            what.push(quoted(self.attributes.keys().copied()));
        }
        if let Some(dims) = &self.dims {
            what.push(format!("axes {}", quoted(dims.iter().map(String::as_str))));
        }
        if !self.labels.is_empty() {
            what.push(format!("labels of {}", quoted(self.labels.keys().copied())));
        }
        format!("{of}: set {}", what.join(", "))
    }
}

fn nothing(expected: &str) -> Failure {
    Failure::request(format!("nothing to set: expected {expected}"))
}

fn check_differ(attributes: &[(&str, AttrValue)]) -> Result<(), Failure> {
    let twice = attributes
        .iter()
        .enumerate()
        .find(|(n, (key, _))| attributes[..*n].iter().any(|(other, _)| other == key));
    match twice {
        None => Ok(()),
        Some((_, (key, _))) => {
            Err(Failure::request(format!("attribute `{}` is given more than once", escape::name(key))))
        }
    }
}
