//! Dataset filters `--dataset` and `--grep`.

use tercet::tet::{Dataset, File};

/// The filters `--dataset` and `--grep`, case-insensitive.
pub(super) struct Filter<'a> {
    dataset: Option<&'a str>,
    grep: Option<&'a str>,
}

impl<'a> Filter<'a> {
    pub(super) fn new(dataset: Option<&'a str>, grep: Option<&'a str>) -> Self {
        Self { dataset, grep }
    }

    pub(super) fn is_active(&self) -> bool {
        self.dataset.is_some() || self.grep.is_some()
    }

    /// The filter as text: `dataset~t2m grep~kelvin`.
    pub(super) fn to_text(&self) -> Option<String> {
        let dataset = self.dataset.map(|word| format!("dataset~{word}"));
        let grep = self.grep.map(|word| format!("grep~{word}"));
        let parts: Vec<String> = dataset.into_iter().chain(grep).collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    }

    /// The matching datasets.
    pub(super) fn apply<'f>(&self, file: &'f File) -> Kept<'f> {
        let lower = |word: Option<&str>| word.map(str::to_lowercase);
        let (name, grep) = (lower(self.dataset), lower(self.grep));
        let passes = |dataset: &Dataset<'_>| {
            name.as_deref().is_none_or(|word| contains(dataset.name(), word))
                && grep.as_deref().is_none_or(|word| matches(dataset, word))
        };
        let datasets: Vec<_> = file.datasets().filter(passes).collect();
        let mut positions = vec![None; file.datasets().len()];
        for (position, dataset) in datasets.iter().enumerate() {
            positions[dataset.id()] = Some(position);
        }
        Kept { datasets, positions }
    }
}

/// The selected datasets.
pub(super) struct Kept<'f> {
    pub(super) datasets: Vec<Dataset<'f>>,
    /// By id: the position among the selected datasets.
    positions: Vec<Option<usize>>,
}

impl Kept<'_> {
    /// The position of a dataset among the selected ones, by the id of an index row.
    pub(super) fn position(&self, dataset_id: u64) -> Option<usize> {
        usize::try_from(dataset_id).ok().and_then(|id| *self.positions.get(id)?)
    }
}

fn contains(text: &str, word: &str) -> bool {
    text.to_lowercase().contains(word)
}

fn matches(dataset: &Dataset<'_>, word: &str) -> bool {
    let dtype = dataset.dtype().map(|dtype| dtype.short_name().to_owned());
    if contains(dataset.name(), word) || dtype.is_some_and(|dtype| contains(&dtype, word)) {
        return true;
    }
    let long_labels = || (0..dataset.shape().len()).filter_map(|axis| dataset.labels(axis)).flatten();
    if long_labels().any(|label| contains(label, word)) {
        return true;
    }
    dataset.info().is_some_and(|info| {
        info.dim_names.iter().any(|name| contains(name, word))
            || info.attrs.iter().any(|(key, value)| contains(key, word) || contains(value, word))
            || info.coords.iter().any(|(axis, coord)| {
                contains(axis, word) || coord.labels.iter().any(|label| contains(label, word))
            })
    })
}
