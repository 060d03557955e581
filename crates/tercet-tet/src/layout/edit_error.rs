//! [`EditError`].

use std::fmt;

use tercet_core::{Hint, escape};

use super::LayoutError;
use crate::attribute::AttrError;

/// The error of a change of an existing file: names, attributes, labels, copied datasets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are the words of the message")]
pub enum EditError {
    NoSuchDataset { name: String, available: String },
    NoAxis { axis: String, available: String },
    DuplicateAxis { dataset: String, axis: String },
    Unnamed { dataset: String },
    NoLabels { dataset: String, axis: String },
    NoSuchLabel { dataset: String, axis: String, label: String },
    Attr { of: Option<String>, key: String, reason: AttrError },
    NoSuchAttr { of: Option<String>, key: String, available: String },
    DuplicateAttr { of: Option<String>, key: String },
    FileAttrLimit { what: &'static str, key: String, found: usize, allowed: usize },
    FileAttrs,
    NoValues { dataset: String },
    NotEqual { name: String, first: String, forms: Option<Box<(String, String)>> },
    OtherCoordinates { dataset: String, axis: String },
    GainedCoordinates { dataset: String, axis: String },
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let q = |name: &str| format!("`{}`", escape::name(name));
        let owner = |of: &Option<String>| {
            of.as_ref().map_or_else(|| "the file".to_owned(), |name| format!("dataset {}", q(name)))
        };
        match self {
            Self::NoSuchDataset { name, .. } => write!(f, "has no dataset {}", q(name)),
            Self::NoAxis { axis, .. } => write!(f, "no dataset has an axis {}", q(axis)),
            Self::DuplicateAxis { dataset, axis } => {
                write!(f, "dataset {} has an axis {} already", q(dataset), q(axis))
            }
            Self::Unnamed { dataset } => write!(f, "the axes of dataset {} have no names", q(dataset)),
            Self::NoLabels { dataset, axis } => {
                write!(f, "axis {} of dataset {} has no labels", q(axis), q(dataset))
            }
            Self::NoSuchLabel { dataset, axis, label } => {
                write!(f, "axis {} of dataset {} has no label {}", q(axis), q(dataset), q(label))
            }
            Self::Attr { of, key, reason } => write!(f, "attribute {} of {}: {reason}", q(key), owner(of)),
            Self::NoSuchAttr { of, key, .. } => write!(f, "{} has no attribute {}", owner(of), q(key)),
            Self::DuplicateAttr { of, key } => write!(f, "{} has an attribute {} already", owner(of), q(key)),
            Self::FileAttrLimit { found: 0, what, .. } => {
                write!(f, "the {what} of a file attribute must not be empty")
            }
            Self::FileAttrLimit { what: "attributes", found, allowed, .. } => {
                write!(f, "a file with {found} attributes: at most {allowed} are allowed")
            }
            Self::FileAttrLimit { what, key, found, allowed } => {
                let key: String = key.chars().take(40).collect();
                write!(
                    f,
                    "the {what} of file attribute {} has {found} bytes, at most {allowed} are allowed",
                    q(&key)
                )
            }
            Self::FileAttrs => write!(f, "the file has a member `attrs` that is not a map of attributes"),
            Self::NoValues { dataset } => {
                write!(f, "dataset {} grows, but there are no new values", q(dataset))
            }
            Self::OtherCoordinates { dataset, axis } => write!(
                f,
                "dataset {} would get other coordinates: the new file has a dataset {} for this axis with other values",
                q(dataset),
                q(axis)
            ),
            Self::GainedCoordinates { dataset, axis } => write!(
                f,
                "dataset {} has no coordinates for axis {}, and would get those of the copied dataset {}",
                q(dataset),
                q(axis),
                q(axis)
            ),
            Self::NotEqual { name, first, forms: Some(forms) } => {
                write!(f, "dataset {} is {}, but {} in {}", q(name), forms.1, forms.0, escape::name(first))
            }
            Self::NotEqual { name, first, forms: None } => {
                write!(f, "dataset {} differs from the one in {}", q(name), escape::name(first))
            }
        }
    }
}

impl std::error::Error for EditError {}

impl From<EditError> for LayoutError {
    fn from(error: EditError) -> Self {
        Self::Edit(Box::new(error))
    }
}

impl EditError {
    /// What to do about it.
    pub(super) fn hint(&self) -> Option<Hint> {
        match self {
            Self::NoSuchDataset { available, .. } => super::error::available("datasets", available),
            Self::NoAxis { available, .. } => super::error::available("axes", available),
            Self::NoSuchAttr { available, .. } => super::error::available("attributes", available),
            Self::Attr { reason: AttrError::Json { .. }, .. } => Some(Hint::StringValue),
            Self::Attr { reason: AttrError::Empty, .. } => Some(Hint::RemoveAttribute),
            Self::NotEqual { .. } => Some(Hint::RenameDataset),
            Self::Unnamed { .. } => Some("set the names of all axes first".into()),
            _ => None,
        }
    }
}
