//! Which datasets are shown.

use tercet::tet::{Dataset, File};

/// The words of `--dataset` and `--grep`, compared in lower case.
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

    /// The filter as it is reported: `dataset~t2m grep~kelvin`.
    pub(super) fn to_text(&self) -> Option<String> {
        let dataset = self.dataset.map(|word| format!("dataset~{word}"));
        let grep = self.grep.map(|word| format!("grep~{word}"));
        let parts: Vec<String> = dataset.into_iter().chain(grep).collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    }

    /// The datasets that pass.
    pub(super) fn apply<'f>(&self, file: &'f File) -> Kept<'f> {
        let lower = |word: Option<&str>| word.map(str::to_lowercase);
        let (name, grep) = (lower(self.dataset), lower(self.grep));
        let passes = |dataset: &Dataset<'_>| {
            name.as_deref().is_none_or(|word| holds(dataset.name(), word))
                && grep.as_deref().is_none_or(|word| mentions(dataset, word))
        };
        let datasets: Vec<_> = file.datasets().filter(passes).collect();
        let mut places = vec![None; file.datasets().len()];
        for (place, dataset) in datasets.iter().enumerate() {
            places[dataset.id()] = Some(place);
        }
        Kept { datasets, places }
    }
}

/// The datasets that are shown.
pub(super) struct Kept<'f> {
    pub(super) datasets: Vec<Dataset<'f>>,
    /// By id: the place among those shown.
    places: Vec<Option<usize>>,
}

impl Kept<'_> {
    /// The place of a dataset among those shown, by the id that a row of the index has.
    pub(super) fn place(&self, dataset_id: u64) -> Option<usize> {
        usize::try_from(dataset_id).ok().and_then(|id| *self.places.get(id)?)
    }
}

fn holds(text: &str, word: &str) -> bool {
    text.to_lowercase().contains(word)
}

fn mentions(dataset: &Dataset<'_>, word: &str) -> bool {
    let dtype = dataset.dtype().map(|dtype| dtype.short_name().to_owned());
    if holds(dataset.name(), word) || dtype.is_some_and(|dtype| holds(&dtype, word)) {
        return true;
    }
    let long_labels = || (0..dataset.shape().len()).filter_map(|axis| dataset.labels(axis)).flatten();
    if long_labels().any(|label| holds(label, word)) {
        return true;
    }
    dataset.info().is_some_and(|info| {
        info.dim_names.iter().any(|name| holds(name, word))
            || info.attrs.iter().any(|(key, value)| holds(key, word) || holds(value, word))
            || info
                .coords
                .iter()
                .any(|(axis, coord)| holds(axis, word) || coord.labels.iter().any(|label| holds(label, word)))
    })
}
