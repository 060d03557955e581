//! Dimensions of files whose format has none, or allows several of one name.

use super::model::Dim;

/// The dimensions of a file: one length for each name.
#[derive(Debug, Default)]
pub(crate) struct DimTable(Vec<(String, u64)>);

impl DimTable {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The names of the axes of a variable. Unnamed axes are `dim_0`, `dim_1`, …; a name that has another length already is made unique
    /// with the name of the variable.
    pub(crate) fn resolve(&mut self, variable: &str, names: &[Option<&str>], shape: &[u64]) -> Vec<String> {
        let mut resolved: Vec<String> = Vec::with_capacity(shape.len());
        for (axis, &len) in shape.iter().enumerate() {
            let wanted = match names.get(axis).copied().flatten() {
                Some(name) if !name.is_empty() => name.to_owned(),
                _ => format!("dim_{axis}"),
            };
            let mut name = wanted.clone();
            let mut attempt = 0;
            while self.0.iter().any(|(found, other)| *found == name && *other != len) {
                name = match attempt {
                    0 => format!("{}_{wanted}", variable.replace('/', "_")),
                    _ => format!("{}_{wanted}_{attempt}", variable.replace('/', "_")),
                };
                attempt += 1;
            }
            if !self.contains(&name) {
                self.0.push((name.clone(), len));
            }
            resolved.push(name);
        }
        resolved
    }

    /// Whether there is a dimension of this name.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|(found, _)| found == name)
    }

    /// The dimensions, in the order in which they were found.
    pub(crate) fn into_dims(self, unlimited: impl Fn(&str) -> bool) -> Vec<Dim> {
        let dim = |(name, len): (String, u64)| Dim { unlimited: unlimited(&name), name, len };
        self.0.into_iter().map(dim).collect()
    }
}
