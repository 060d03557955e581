//! The part of a dataset that is drawn: `--sel`, `--isel`, `-s`.

use tercet::core::tensor::IndexSlice;
use tercet::tet::{Dataset, Label, LabelSelection, Select};

use super::super::edit::pair;
use crate::failure::Failure;

/// The options that select a part of a dataset.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SelectArgs {
    /// Select by coordinate or label: `level=850`, `lat=60..30` (both ends included), `lat=~52.3` (nearest),
    /// `time=2024-06`. Repeatable
    #[arg(long, value_name = "AXIS=LABELS")]
    sel: Vec<String>,
    /// Select by position, from 0: `time=0:24` (without 24), `time=-1`, `lat=::2`. Repeatable
    #[arg(long, value_name = "AXIS=POSITIONS")]
    isel: Vec<String>,
    /// Select by slices, `start:stop:step` per axis: `0:10,::2`, `...,-1`. Omitted axes are selected in full
    #[arg(short, long = "select", value_name = "SLICES", allow_hyphen_values = true)]
    slices: Option<String>,
}

impl SelectArgs {
    /// The selected part of a dataset.
    pub(crate) fn apply<'f>(&self, dataset: Dataset<'f>) -> Result<Select<'f>, Failure> {
        let mut select = dataset.select();
        if let Some(slices) = &self.slices {
            select = select.slices(slices)?;
        }
        for text in &self.isel {
            let (axis, positions) = pair(text, "AXIS=POSITIONS, like `time=0:24`")?;
            // Ranges may be written like those of labels.
            let slice = IndexSlice::parse(&positions.replacen("..", ":", 1)).ok_or_else(|| {
                let failure = Failure::request(format!("`--isel {text}`: invalid positions `{positions}`"));
                failure.with_hint("write `time=5`, `time=0:24`, `time=-1` or `time=::2`")
            })?;
            select = select.isel(axis, slice)?;
        }
        for text in &self.sel {
            let (axis, labels) = pair(text, "AXIS=LABELS, like `level=850`")?;
            let labels = match labels.strip_prefix('~') {
                Some(label) => LabelSelection::nearest(Label::parse(label)),
                None => LabelSelection::parse(labels),
            };
            select = select.sel(axis, labels)?;
        }
        Ok(select)
    }
}
