//! The fidelity report: what a conversion keeps, changes and does not carry.

use std::fmt;

use serde::Serialize;

/// What a conversion keeps, changes and does not carry.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Fidelity {
    /// Variables, dimensions and attributes. Attributes and dimensions that are exact are not listed.
    pub items: Vec<FidelityItem>,
}

/// One entry of a [`Fidelity`] report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FidelityItem {
    /// What it is.
    pub subject: Subject,
    /// The name in the input: `t2m`, or `t2m:units` for an attribute of a variable.
    pub name: String,
    /// What happens to it.
    pub fate: Fate,
    /// What changes, or why it is not carried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The largest absolute error of the values, measured after writing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_error: Option<f64>,
}

/// The kind of thing an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A variable.
    Variable,
    /// A dimension.
    Dimension,
    /// An attribute of the file or of a variable.
    Attribute,
}

/// What happens to a part of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It is the same.
    Exact,
    /// It is stored in another form.
    Changed,
    /// It is not in the output.
    NotCarried,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Variable => "variable",
            Self::Dimension => "dimension",
            Self::Attribute => "attribute",
        })
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Exact => "exact",
            Self::Changed => "changed",
            Self::NotCarried => "not carried",
        })
    }
}

impl Fidelity {
    /// The number of entries with this fate.
    pub fn count(&self, fate: Fate) -> usize {
        self.items.iter().filter(|item| item.fate == fate).count()
    }

    /// Whether nothing is changed and everything is carried.
    pub fn is_exact(&self) -> bool {
        self.items.iter().all(|item| item.fate == Fate::Exact)
    }

    /// The entries that are not exact.
    pub fn inexact(&self) -> impl Iterator<Item = &FidelityItem> {
        self.items.iter().filter(|item| item.fate != Fate::Exact)
    }

    pub(crate) fn add(
        &mut self,
        subject: Subject,
        name: &str,
        fate: Fate,
        detail: impl Into<Option<String>>,
    ) {
        let name = name.to_owned();
        self.items.push(FidelityItem { subject, name, fate, detail: detail.into(), max_error: None });
    }

    /// The entry of a variable.
    pub(crate) fn variable_mut(&mut self, name: &str) -> Option<&mut FidelityItem> {
        self.items.iter_mut().find(|item| item.subject == Subject::Variable && item.name == name)
    }
}
