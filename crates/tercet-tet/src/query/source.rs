//! The text of a query, for errors found after parsing.

use super::error::{QueryError, QueryErrorKind};
use super::tree::{self, Node, Syntax, Tree};

/// A query text and its syntax tree.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) text: String,
    pub(crate) tree: Node,
}

impl Source {
    pub(crate) fn parse(text: &str, syntax: Syntax) -> Result<Self, QueryError> {
        let tree = tree::parse(text, syntax)?;
        Ok(Self { text: text.to_owned(), tree })
    }

    /// An error about the value of a key, or about the object around it if the key is absent.
    pub(crate) fn error(&self, path: &str, reason: QueryErrorKind) -> QueryError {
        QueryError::new(reason, path.to_owned(), self.tree.find(path).1.at.clone(), &self.text)
    }

    /// An error about a key that is not allowed.
    pub(crate) fn key_error(&self, path: &str, reason: QueryErrorKind) -> QueryError {
        QueryError::new(reason, path.to_owned(), self.tree.find(path).0, &self.text)
    }

    /// The offset of a key.
    pub(crate) fn key_start(&self, path: &str) -> usize {
        self.tree.find(path).0.start
    }

    /// Whether a key is present and not null.
    pub(crate) fn is_written(&self, path: &str) -> bool {
        let Some((around, name)) = path.rsplit_once('.') else { return self.keys().any(|key| key == path) };
        match &self.tree.find(around).1.value {
            Tree::Table(entries) => {
                entries.iter().any(|entry| entry.key == name && !matches!(entry.node.value, Tree::Null))
            }
            _ => false,
        }
    }

    /// The keys of the document.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let entries = match &self.tree.value {
            Tree::Table(entries) => &entries[..],
            _ => &[],
        };
        entries.iter().map(|entry| entry.key.as_str())
    }

    /// The path of axis `number` in any form of an axis list.
    pub(crate) fn axis_path(&self, path: &str, number: usize) -> String {
        match &self.tree.find(path).1.value {
            Tree::List(_) => format!("{path}[{number}]"),
            Tree::Table(entries) => {
                let axes = entries.iter().find(|entry| entry.key == "axis" || entry.key == "axes");
                axes.map_or(path.to_owned(), |entry| self.axis_path(&format!("{path}.{}", entry.key), number))
            }
            _ => path.to_owned(),
        }
    }
}
