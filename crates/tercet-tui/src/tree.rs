//! The tree: files of a directory and what is in them.

use std::path::{Path, PathBuf};

/// What a line of the tree stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Directory(PathBuf),
    File(PathBuf),
    /// A dataset of a `.tet` file.
    Dataset {
        path: PathBuf,
        name: String,
    },
    /// A message of a `.tgm` file.
    Message {
        path: PathBuf,
        message: u64,
    },
    /// An object of a message.
    Object {
        path: PathBuf,
        message: u64,
        object: u64,
    },
    /// The rows of a `.tatami` file.
    Table(PathBuf),
    /// A column of a `.tatami` file.
    Column {
        path: PathBuf,
        column: usize,
    },
    /// Messages that are not listed yet.
    More {
        path: PathBuf,
        from: u64,
    },
}

impl Item {
    /// The file or directory.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Directory(path)
            | Self::File(path)
            | Self::Table(path)
            | Self::Dataset { path, .. }
            | Self::Message { path, .. }
            | Self::Object { path, .. }
            | Self::Column { path, .. }
            | Self::More { path, .. } => path,
        }
    }

    pub(crate) fn is_directory(&self) -> bool {
        matches!(self, Self::Directory(_))
    }
}

/// Whether the items below a line are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expansion {
    Leaf,
    Closed,
    Loading,
    Open,
}

/// A line of the tree. Its texts are escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) depth: usize,
    pub(crate) label: String,
    /// Shape, size or type.
    pub(crate) note: String,
    pub(crate) item: Item,
    pub(crate) expansion: Expansion,
}

impl Node {
    pub(crate) fn new(label: impl Into<String>, note: impl Into<String>, item: Item) -> Self {
        let expansion = match item {
            Item::Directory(_) | Item::File(_) | Item::Message { .. } | Item::More { .. } => {
                Expansion::Closed
            }
            _ => Expansion::Leaf,
        };
        Self { depth: 0, label: label.into(), note: note.into(), item, expansion }
    }
}

/// The lines of the tree, and the selected one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    pub(crate) cursor: usize,
}

impl Tree {
    pub(crate) fn selected(&self) -> Option<&Node> {
        self.nodes.get(self.cursor)
    }

    /// Moves the cursor; returns whether it moved.
    pub(crate) fn go(&mut self, to: usize) -> bool {
        let to = to.min(self.nodes.len().saturating_sub(1));
        std::mem::replace(&mut self.cursor, to) != to
    }

    /// Starts to expand a line; returns its item if it was closed.
    pub(crate) fn expand(&mut self, at: usize) -> Option<Item> {
        let node = self.nodes.get_mut(at).filter(|node| node.expansion == Expansion::Closed)?;
        node.expansion = Expansion::Loading;
        Some(node.item.clone())
    }

    /// Removes the lines below a line; returns whether there were any.
    pub(crate) fn collapse(&mut self, at: usize) -> bool {
        let Some(node) = self.nodes.get_mut(at).filter(|node| node.expansion == Expansion::Open) else {
            return false;
        };
        node.expansion = Expansion::Closed;
        let depth = node.depth;
        let below = self.nodes[at + 1..].iter().take_while(|node| node.depth > depth).count();
        self.nodes.drain(at + 1..=at + below);
        if self.cursor > at {
            self.cursor = if self.cursor <= at + below { at } else { self.cursor - below };
        }
        true
    }

    /// The line above that contains a line.
    pub(crate) fn parent(&self, at: usize) -> Option<usize> {
        let depth = self.nodes.get(at)?.depth;
        self.nodes[..at].iter().rposition(|node| node.depth < depth)
    }

    /// Inserts the items of a line that was expanded. They replace a line for more messages.
    pub(crate) fn insert(&mut self, item: &Item, children: Vec<Node>) {
        let is_it = |node: &Node| node.expansion == Expansion::Loading && node.item == *item;
        let Some(at) = self.nodes.iter().position(is_it) else { return };
        let depth = self.nodes[at].depth;
        let is_more = matches!(item, Item::More { .. });
        let start = if is_more {
            self.nodes.remove(at);
            at
        } else {
            self.nodes[at].expansion = Expansion::Open;
            at + 1
        };
        let count = children.len();
        let depth = if is_more { depth } else { depth + 1 };
        let children = children.into_iter().map(|child| Node { depth, ..child });
        self.nodes.splice(start..start, children);
        if self.cursor >= start && self.cursor != at {
            self.cursor += if is_more { count.saturating_sub(1) } else { count };
        }
        self.cursor = self.cursor.min(self.nodes.len().saturating_sub(1));
    }

    /// Closes a line whose items could not be read.
    pub(crate) fn fail(&mut self, item: &Item) {
        let is_it = |node: &&mut Node| node.expansion == Expansion::Loading && node.item == *item;
        if let Some(node) = self.nodes.iter_mut().find(is_it) {
            node.expansion = Expansion::Closed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(message: u64) -> Node {
        Node::new(message.to_string(), "", Item::Message { path: "a".into(), message })
    }

    fn labels(tree: &Tree) -> Vec<String> {
        tree.nodes.iter().map(|node| format!("{}{}", " ".repeat(node.depth), node.label)).collect()
    }

    #[test]
    fn lines_are_expanded_and_collapsed() {
        let file = |name: &str| Node::new(name, "", Item::File(name.into()));
        let mut tree = Tree { nodes: vec![file("a"), file("b")], cursor: 1 };
        let item = tree.expand(0).unwrap();
        assert_eq!(tree.expand(0), None);
        let more = Item::More { path: "a".into(), from: 2 };
        tree.insert(&item, vec![message(0), message(1), Node::new("more", "", more.clone())]);
        assert_eq!(labels(&tree), ["a", " 0", " 1", " more", "b"]);
        // The selected line stays selected.
        assert_eq!((tree.cursor, tree.parent(2), tree.parent(0)), (4, Some(0), None));
        assert_eq!(tree.expand(3), Some(more.clone()));
        tree.insert(&more, vec![message(2), message(3)]);
        assert_eq!(labels(&tree), ["a", " 0", " 1", " 2", " 3", "b"]);
        assert_eq!(tree.cursor, 5);
        tree.cursor = 2;
        assert!(tree.collapse(0) && !tree.collapse(0));
        assert_eq!((labels(&tree).len(), tree.cursor), (2, 0));
        // A result that comes late changes nothing.
        tree.insert(&item, vec![message(9)]);
        assert_eq!(labels(&tree), ["a", "b"]);
        tree.expand(0);
        tree.fail(&item);
        assert_eq!(tree.nodes[0].expansion, Expansion::Closed);
        assert!(!tree.go(0) && tree.go(99));
        assert_eq!(tree.cursor, 1);
    }
}
