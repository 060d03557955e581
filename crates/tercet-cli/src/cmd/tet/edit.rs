//! Shared code of the verbs that change a file in place.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tercet::Format;
use tercet::core::escape;
use tercet::tet::{self, DatasetId, File, HistoryRow, LayoutError, Rewrite};

use super::arrays::Style;
use crate::args::{JsonArgs, read_options};
use crate::failure::{Failure, Outcome};
use crate::input::{check_format, must_be_changeable};
use crate::render::human_size;
use crate::ui::Ui;

/// The file that a verb changes, and how it is written.
#[derive(Debug, clap::Args)]
pub(crate) struct EditArgs {
    /// File to modify
    #[arg(value_name = "FILE")]
    pub(super) path: PathBuf,
    #[command(flatten)]
    style: Style,
    #[command(flatten)]
    json: JsonArgs,
}

/// The hint for a command without a dataset.
pub(super) const NAME_DATASET: &str =
    "name the dataset before KEY=VALUE, or use `--file` for attributes of the file";

/// The JSON summary of a change.
#[derive(Debug, Serialize)]
struct ChangeJson<'a, T> {
    path: String,
    #[serde(flatten)]
    change: &'a T,
    bytes_before: u64,
    bytes: u64,
}

impl EditArgs {
    /// Locks and opens the file; `verb` completes error messages.
    pub(super) fn open(&self, verb: &str) -> Result<Rewrite, Failure> {
        must_be_changeable(&self.path, verb)?;
        check_format(&self.path, Format::Tet)?;
        Ok(Rewrite::open_with(&self.path, read_options())?)
    }

    /// Writes the changed file and prints what was done: a line, or JSON.
    pub(super) fn finish(
        &self,
        rewrite: Rewrite,
        history: HistoryRow,
        change: &impl Serialize,
        line: &str,
        out: &mut Ui,
    ) -> Result<Outcome, Failure> {
        let bytes_before = rewrite.file().len();
        let bar = out.bar("writing", bytes_before);
        rewrite.start(history, self.style.options(), &bar)?.finish()?;
        drop(bar);
        let path = self.path.to_string_lossy().into_owned();
        let bytes = File::open_with(&self.path, read_options())?.len();
        if self.json.json {
            out.json(&ChangeJson { path, change, bytes_before, bytes })?;
        } else {
            out.summary(format_args!("{}: {line}, {}", escape::name(&path), human_size(bytes)))?;
        }
        Ok(Outcome::Done)
    }
}

/// An error of a change, with the name of the file.
pub(super) fn located(path: &Path) -> impl Fn(LayoutError) -> Failure + Copy + '_ {
    |error| tet::Error::new(path.to_string_lossy().into(), error.into()).into()
}

/// The dataset that a command names before `KEY=VALUE` pairs.
pub(super) fn dataset(rewrite: &Rewrite, name: &str) -> Result<DatasetId, Failure> {
    rewrite.dataset(name).map_err(|error| {
        let failure = Failure::from(error);
        // Most likely the dataset is missing.
        if name.contains('=') { failure.with_hint(NAME_DATASET) } else { failure }
    })
}

/// `OLD=NEW` or `KEY=VALUE`, cut at the first `=`.
pub(super) fn pair<'t>(text: &'t str, form: &str) -> Result<(&'t str, &'t str), Failure> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key, value)),
        _ => Err(Failure::request(format!("expected {form}, found `{}`", escape::name(text)))),
    }
}

/// A history row with parameters, as many and as long as a row can hold.
pub(super) fn history(
    op: &str,
    source: &str,
    params: impl IntoIterator<Item = (String, String)>,
) -> HistoryRow {
    const MAX_PARAMS: usize = 32;
    const BYTES: usize = 256;
    let cut = |text: String| match text.len() {
        0..=BYTES => text,
        _ => format!("{}…", &text[..text.floor_char_boundary(BYTES)]),
    };
    let mut row = HistoryRow::now(op, &cut(source.to_owned()));
    for (key, value) in params.into_iter().filter(|(_, value)| !value.is_empty()).take(MAX_PARAMS) {
        row = row.with_param(&cut(key), cut(value));
    }
    row
}

/// Names in backticks, separated by commas.
pub(super) fn quoted<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    names.into_iter().map(|name| format!("`{}`", escape::name(name))).collect::<Vec<_>>().join(", ")
}
