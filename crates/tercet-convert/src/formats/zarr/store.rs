//! Stores: keys and values.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tercet_core::limits::check_limit;
use tercet_core::{ByteSource, Limits, SourceError};

use super::metadata::parse_json;
use crate::arrays::source::{malformed, unsupported};
use crate::formats::zip::Archive;
use crate::{Error, ErrorKind};

/// A store of keys and values.
#[derive(Debug)]
pub(super) enum Store {
    Directory(PathBuf),
    Zip(Archive),
    Remote(RemoteStore),
}

/// Opens the value of a key of a store; `None` if there is none.
pub type OpenKey = dyn Fn(&str) -> Result<Option<Arc<dyn ByteSource>>, SourceError> + Send + Sync;

/// A store whose keys cannot be listed. Its metadata are consolidated, or it is one array.
pub(super) struct RemoteStore {
    name: Arc<str>,
    open: Box<OpenKey>,
    limits: Limits,
    /// The metadata files of all nodes.
    metadata: BTreeMap<String, Vec<u8>>,
}

impl fmt::Debug for RemoteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteStore").field("name", &self.name).finish_non_exhaustive()
    }
}

impl RemoteStore {
    /// Reads the metadata.
    pub(super) fn open(name: Arc<str>, open: Box<OpenKey>, limits: Limits) -> Result<Self, Error> {
        let mut store = Self { name, open, limits, metadata: BTreeMap::new() };
        let json = |key: &str, bytes: &[u8]| -> Result<Value, Error> {
            let wrong = |error| malformed(&store.name, format!("`{key}` is not valid JSON: {error}"));
            parse_json(bytes).map_err(wrong)
        };
        let mut metadata = BTreeMap::new();
        if let Some(bytes) = store.fetch("zarr.json")? {
            let root = json("zarr.json", &bytes)?;
            let nodes = root.pointer("/consolidated_metadata/metadata").and_then(Value::as_object);
            let is_array = root.get("node_type").and_then(Value::as_str) == Some("array");
            if nodes.is_none() && !is_array {
                let detail =
                    "the metadata of this group are not consolidated, and a remote store cannot be listed";
                return Err(unsupported(&store.name, detail));
            }
            for (path, node) in nodes.into_iter().flatten() {
                metadata.insert(format!("{path}/zarr.json"), node.to_string().into_bytes());
            }
            metadata.insert("zarr.json".to_owned(), bytes);
        } else if let Some(bytes) = store.fetch(".zmetadata")? {
            let root = json(".zmetadata", &bytes)?;
            let nodes = root.get("metadata").and_then(Value::as_object).into_iter().flatten();
            metadata.extend(nodes.map(|(key, node)| (key.clone(), node.to_string().into_bytes())));
        } else if let Some(bytes) = store.fetch(".zarray")? {
            metadata.extend(store.fetch(".zattrs")?.map(|attrs| (".zattrs".to_owned(), attrs)));
            metadata.insert(".zarray".to_owned(), bytes);
        } else if store.fetch(".zgroup")?.is_some() {
            let detail =
                "the metadata of this group are not consolidated, and a remote store cannot be listed";
            return Err(unsupported(&store.name, detail));
        } else {
            return Err(malformed(&store.name, "not a Zarr store: there is no metadata"));
        }
        if metadata.len() > MAX_NODES * 2 {
            return Err(malformed(&store.name, "too many groups and arrays"));
        }
        store.metadata = metadata;
        Ok(store)
    }

    fn fetch(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        let error = |kind: ErrorKind| Error::new(format!("{}/{key}", self.name).into(), kind);
        let Some(source) = (self.open)(key).map_err(|source| error(source.into()))? else { return Ok(None) };
        read_whole(&*source, self.limits).map(Some).map_err(error)
    }

    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        let file = key.rsplit('/').next().unwrap_or_default();
        if METADATA.contains(&file) || file == ".zattrs" {
            return Ok(self.metadata.get(key).cloned());
        }
        self.fetch(key)
    }
}

/// Reads a value whole.
fn read_whole(source: &dyn ByteSource, limits: Limits) -> Result<Vec<u8>, ErrorKind> {
    check_limit("a chunk", source.len(), limits.chunk_bytes)?;
    Ok(source.read_at(tercet_core::Span::first(source.len()))?.to_vec())
}

/// Nodes of a store.
const MAX_NODES: usize = 100_000;

/// Metadata files of both versions.
const METADATA: [&str; 4] = ["zarr.json", ".zgroup", ".zarray", ".zmetadata"];

/// Whether a directory is a Zarr store.
pub(crate) fn is_store(path: &Path) -> bool {
    METADATA.iter().any(|name| path.join(name).is_file())
}

impl Store {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Directory(path) => path.to_string_lossy().into_owned(),
            Self::Zip(archive) => archive.name().to_string(),
            Self::Remote(store) => store.name.to_string(),
        }
    }

    /// The value of a key; `None` if there is none. Keys that leave the store are rejected.
    pub(super) fn get(&self, key: &str, limits: Limits) -> Result<Option<Vec<u8>>, Error> {
        if key.is_empty()
            || key.split('/').any(|part| matches!(part, "" | "." | ".."))
            || key.contains(['\\', '\0'])
        {
            return Err(malformed(&self.name(), format!("the key `{key}` is not allowed")));
        }
        match self {
            Self::Zip(archive) => archive.read(key),
            Self::Remote(store) => store.get(key),
            Self::Directory(path) => {
                let error = |kind: ErrorKind| Error::new(path.join(key).to_string_lossy().into(), kind);
                let source = match tercet_core::source::File::open(path.join(key)) {
                    Ok(source) => source,
                    Err(missing) if tercet_core::Diagnostic::is_not_found(&missing) => return Ok(None),
                    Err(other) => return Err(error(other.into())),
                };
                read_whole(&source, limits).map(Some).map_err(error)
            }
        }
    }

    /// Whether at least `bytes` bytes are stored. Of a remote store only the metadata are known: `None`.
    pub(super) fn has_bytes(&self, bytes: u64) -> Option<bool> {
        match self {
            Self::Zip(archive) => Some(archive.len() >= bytes),
            Self::Remote(_) => None,
            Self::Directory(root) => {
                let (mut found, mut waiting) = (0u64, vec![(root.clone(), 0)]);
                while let Some((directory, depth)) = waiting.pop() {
                    for entry in directory.read_dir().into_iter().flatten().flatten() {
                        // Links are not followed, here and when nodes are listed.
                        match entry.metadata() {
                            Ok(file) if file.is_file() => found = found.saturating_add(file.len()),
                            Ok(file) if file.is_dir() && depth < 128 => {
                                waiting.push((entry.path(), depth + 1));
                            }
                            _ => {}
                        }
                        if found >= bytes {
                            return Some(true);
                        }
                    }
                }
                Some(false)
            }
        }
    }

    /// The paths of all nodes with metadata, the root first.
    pub(super) fn nodes(&self) -> Result<Vec<String>, Error> {
        let mut nodes = Vec::new();
        match self {
            Self::Zip(archive) => nodes.extend(nodes_of(archive.names())),
            Self::Remote(store) => nodes.extend(nodes_of(store.metadata.keys().map(String::as_str))),
            Self::Directory(root) => {
                let mut waiting = vec![String::new()];
                while let Some(path) = waiting.pop() {
                    let directory = root.join(&path);
                    if !is_store(&directory) {
                        continue;
                    }
                    nodes.push(path.clone());
                    if nodes.len() > MAX_NODES || path.matches('/').count() > 64 {
                        return Err(malformed(&self.name(), "too many groups and arrays"));
                    }
                    if directory.join(".zarray").is_file() {
                        continue;
                    }
                    let Ok(entries) = directory.read_dir() else { continue };
                    for entry in entries.flatten() {
                        // Links are not followed.
                        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
                        if let (true, Ok(name)) = (is_directory, entry.file_name().into_string()) {
                            waiting.push(if path.is_empty() { name } else { format!("{path}/{name}") });
                        }
                    }
                }
            }
        }
        nodes.sort();
        Ok(nodes)
    }
}

/// The paths with metadata files.
fn nodes_of<'k>(keys: impl Iterator<Item = &'k str>) -> BTreeSet<String> {
    let split = |key: &'k str| key.rsplit_once('/').unwrap_or(("", key));
    let nodes = keys.map(split).filter(|(_, file)| METADATA.contains(file));
    nodes.map(|(path, _)| path.to_owned()).collect()
}
