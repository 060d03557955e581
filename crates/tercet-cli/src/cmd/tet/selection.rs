//! Selections on the command line: `--sel`, `--isel`, `-s`.

use tercet::tet::{Dataset, LabelSelection, PositionRange, Select};

use crate::failure::Failure;

/// The options that select a part of a dataset.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SelectArgs {
    /// Select by coordinate or label: `level=850`, `lat=60..30` (both ends included), `lat=~52.3` (nearest),
    /// `time=2024-06`; quote a label that contains `..`: `site="a..b"`. Repeatable
    #[arg(long, value_name = "AXIS=LABELS")]
    sel: Vec<String>,
    /// Select by position, from 0: `time=0..24` (without 24), `time=-1`, `lat=::2`. Repeatable
    #[arg(long, value_name = "AXIS=POSITIONS")]
    isel: Vec<String>,
    /// Select by slices, `start:stop:step` or one position per axis: `0:10,::2`, `...,-1`. Omitted axes are selected in full
    #[arg(short, long = "select", value_name = "SLICES", allow_hyphen_values = true)]
    slices: Option<String>,
    /// Maximum distance to the nearest label (`~`), in seconds for times
    #[arg(long, value_name = "DISTANCE", requires = "sel")]
    tolerance: Option<f64>,
}

impl SelectArgs {
    /// The selected part of a dataset. Axes of which one label or position is selected are not dimensions of results.
    pub(crate) fn apply<'f>(&self, dataset: Dataset<'f>) -> Result<Select<'f>, Failure> {
        let mut select = dataset.select();
        let mut given = Vec::new();
        for (option, text) in
            self.isel.iter().map(|text| ("--isel", text)).chain(self.sel.iter().map(|text| ("--sel", text)))
        {
            let (axis, _) = split(text, option, if option == "--sel" { "level=850" } else { "time=0..24" })?;
            let axis = dataset.axis(axis)?;
            if given.contains(&axis) {
                let failure = Failure::request(format!("`{option} {text}`: the axis is selected already"));
                return Err(failure.with_hint("select each axis once"));
            }
            given.push(axis);
        }
        if let Some(slices) = &self.slices {
            select = select.slices(slices)?;
        }
        for text in &self.isel {
            let (axis, positions) = split(text, "--isel", "time=0..24")?;
            let range = PositionRange::parse(positions).ok_or_else(|| {
                let failure = Failure::request(format!("`--isel {text}`: invalid positions `{positions}`"));
                failure.with_hint("write `time=5`, `time=0..24`, `time=-1` or `time=::2`")
            })?;
            select = select.isel(dataset.axis(axis)?, range)?;
        }
        for text in &self.sel {
            let (axis, labels) = split(text, "--sel", "level=850")?;
            let coordinates = select.coordinates(dataset.axis(axis)?)?;
            let parsed = match coordinates {
                Some(coordinates) => coordinates.parse_selection(labels),
                None => LabelSelection::parse(labels),
            };
            let labels = match (parsed, self.tolerance) {
                (LabelSelection::Nearest { label, .. }, tolerance) => {
                    LabelSelection::Nearest { label, tolerance }
                }
                (labels, _) => labels,
            };
            select = select.sel(dataset.axis(axis)?, labels)?;
        }
        Ok(select)
    }
}

/// Splits `AXIS=VALUE`.
pub(super) fn split<'a>(text: &'a str, option: &str, example: &str) -> Result<(&'a str, &'a str), Failure> {
    match text.split_once('=') {
        Some((axis, value)) if !axis.trim().is_empty() && !value.trim().is_empty() => {
            Ok((axis.trim(), value.trim()))
        }
        _ => {
            let failure = Failure::request(format!("`{option} {text}`: expected AXIS=VALUE"));
            Err(failure.with_hint(format!("write `{option} {example}`")))
        }
    }
}
