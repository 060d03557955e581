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
    pub(crate) fn error(&self, way: &str, reason: QueryErrorKind) -> QueryError {
        QueryError::new(reason, way.to_owned(), self.tree.find(way).1.at.clone(), &self.text)
    }

    /// An error about a key that is not allowed.
    pub(crate) fn key_error(&self, way: &str, reason: QueryErrorKind) -> QueryError {
        QueryError::new(reason, way.to_owned(), self.tree.find(way).0, &self.text)
    }

    /// The offset of a key.
    pub(crate) fn key_start(&self, way: &str) -> usize {
        self.tree.find(way).0.start
    }

    /// Whether a key is present and not null.
    pub(crate) fn is_written(&self, way: &str) -> bool {
        let Some((around, name)) = way.rsplit_once('.') else { return self.keys().any(|key| key == way) };
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
    pub(crate) fn axis_way(&self, way: &str, number: usize) -> String {
        match &self.tree.find(way).1.value {
            Tree::List(_) => format!("{way}[{number}]"),
            Tree::Table(entries) => {
                let axes = entries.iter().find(|entry| entry.key == "axis" || entry.key == "axes");
                axes.map_or(way.to_owned(), |entry| self.axis_way(&format!("{way}.{}", entry.key), number))
            }
            _ => way.to_owned(),
        }
    }
}
