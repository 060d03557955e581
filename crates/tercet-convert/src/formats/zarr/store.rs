//! Stores: keys and values.

use std::path::{Path, PathBuf};

use tercet_core::limits::check_limit;
use tercet_core::{ByteSource as _, Limits};

use crate::arrays::source::malformed;
use crate::formats::zip::Archive;
use crate::{Error, ErrorKind};

/// A store of keys and values.
#[derive(Debug)]
pub(super) enum Store {
    Directory(PathBuf),
    Zip(Archive),
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
        }
    }

    /// The value of a key; `None` if there is none. Keys that leave the store are rejected.
    pub(super) fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        if key.is_empty()
            || key.split('/').any(|part| matches!(part, "" | "." | ".."))
            || key.contains(['\\', '\0'])
        {
            return Err(malformed(&self.name(), format!("the key `{key}` is not allowed")));
        }
        match self {
            Self::Zip(archive) => archive.read(key),
            Self::Directory(path) => {
                let error = |kind: ErrorKind| Error::new(path.join(key).to_string_lossy().into(), kind);
                let source = match tercet_core::source::File::open(path.join(key)) {
                    Ok(source) => source,
                    Err(missing) if tercet_core::Diagnostic::is_not_found(&missing) => return Ok(None),
                    Err(other) => return Err(error(other.into())),
                };
                check_limit("a chunk", source.len(), Limits::default().chunk_bytes)
                    .map_err(|limit| error(limit.into()))?;
                let bytes = source.read_at(tercet_core::Span::first(source.len()));
                bytes.map(|bytes| Some(bytes.to_vec())).map_err(|source| error(source.into()))
            }
        }
    }

    /// The paths of all nodes with metadata, the root first.
    pub(super) fn nodes(&self) -> Result<Vec<String>, Error> {
        let mut nodes = Vec::new();
        match self {
            Self::Zip(archive) => {
                for name in archive.names() {
                    let (path, file) = name.rsplit_once('/').unwrap_or(("", name));
                    if METADATA.contains(&file) && !nodes.iter().any(|found| found == path) {
                        nodes.push(path.to_owned());
                    }
                }
            }
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
