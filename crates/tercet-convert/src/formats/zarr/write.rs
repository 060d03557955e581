//! Writer of version 3 stores: a directory with consolidated metadata.
//!
//! The store is built in a temporary directory beside the target and renamed when it is complete.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde_json::{Map, Value, json};
use tercet_codec::bytes::zstd;
use tercet_core::publish::PublishError;
use tercet_core::tensor::BoxCopy;
use tercet_core::{DType, Progress};
use tercet_tet::Compression;

use super::metadata::attribute_json;
use super::store::is_store;
use crate::arrays::source::refused;
use crate::arrays::{ArraySink, Header, Kind, Values, Variable};
use crate::formats::strided::strides;
use crate::{Error, ErrorKind, chunking};

/// Writes a store.
#[derive(Debug)]
pub(crate) struct ZarrSink {
    target: PathBuf,
    /// Removed if the store is not completed.
    temporary: Temporary,
    header: Header,
    level: Option<i32>,
    overwrite: bool,
}

#[derive(Debug)]
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // Best effort: it is gone after the rename.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl ZarrSink {
    /// Starts a store.
    pub(crate) fn create(
        path: &Path,
        header: Header,
        compression: Compression,
        overwrite: bool,
    ) -> Result<Self, Error> {
        let name = path.to_string_lossy().into_owned();
        let error = |kind: ErrorKind| Error::new(name.as_str().into(), kind);
        check_target(path, overwrite)?;
        for variable in &header.variables {
            if variable
                .name
                .split('/')
                .any(|part| part.is_empty() || part.starts_with("__") || part.chars().all(|c| c == '.'))
            {
                return Err(refused(&name, format!("`{}` is not allowed as a name in Zarr", variable.name)));
            }
        }
        let file = path
            .file_name()
            .ok_or_else(|| error(PublishError::NoFileName { path: path.to_owned() }.into()))?;
        let hidden = format!(".{}.{}.tmp", file.to_string_lossy(), std::process::id());
        let temporary = path.with_file_name(hidden);
        let made = std::fs::create_dir(&temporary);
        made.map_err(|io| error(io.into()))?;
        let level = match compression {
            Compression::None => None,
            Compression::Zstd { level } => Some(level),
            Compression::Auto => Some(3),
        };
        Ok(Self { target: path.to_owned(), temporary: Temporary(temporary), header, level, overwrite })
    }

    fn io<T>(&self, result: std::io::Result<T>) -> Result<T, Error> {
        result.map_err(|io| Error::new(self.target.to_string_lossy().into(), ErrorKind::from(io)))
    }

    fn put(&self, key: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.temporary.0.join(key);
        let parent = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        self.io(parent)?;
        #[expect(clippy::disallowed_methods, reason = "inside a temporary directory, which is renamed")]
        let written = std::fs::write(path, bytes);
        self.io(written)
    }

    fn chunk_of(variable: &Variable) -> Vec<u64> {
        let size = variable.item_size();
        let chunk = variable.chunks.clone();
        chunk.unwrap_or_else(|| {
            if variable.kind == Kind::String {
                variable.shape.iter().map(|extent| (*extent).max(1)).collect()
            } else {
                chunking::default_chunk_shape(&variable.shape, size)
            }
        })
    }

    fn compressed(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        match self.level {
            None => Ok(bytes),
            Some(level) => {
                let compressed = ::zstd::bulk::compress(&bytes, level);
                self.io(compressed)
            }
        }
    }

    /// Whether chunks are compressed, and these frames are those of `len` bytes.
    fn is_frame_of(&self, frames: &[u8], len: usize) -> bool {
        self.level.is_some() && zstd::decode_new(frames, len, &mut Vec::new()).is_ok()
    }

    fn codecs(&self, serializer: Value) -> Value {
        let mut codecs = vec![serializer];
        if let Some(level) = self.level {
            codecs.push(json!({"name": "zstd", "configuration": {"level": level, "checksum": false}}));
        }
        codecs.into()
    }

    fn array(&self, variable: &Variable) -> Value {
        let attrs: Map<String, Value> = variable
            .attrs
            .iter()
            .map(|attr| (attr.name.clone(), attribute_json(attr, variable.kind)))
            .collect();
        let (data_type, fill, serializer) = match variable.kind {
            Kind::String => ("string".to_owned(), json!(""), json!({"name": "vlen-utf8"})),
            kind => {
                let dtype = match kind {
                    Kind::Number(dtype) => dtype,
                    _ => DType::U8,
                };
                let fill = match dtype {
                    DType::Bool => json!(false),
                    DType::C64 | DType::C128 => json!([0.0, 0.0]),
                    dtype if dtype.is_float() => json!(0.0),
                    _ => json!(0),
                };
                let endian = if dtype.size() == Some(1) {
                    json!({"name": "bytes"})
                } else {
                    json!({"name": "bytes", "configuration": {"endian": "little"}})
                };
                (dtype.name().to_owned(), fill, endian)
            }
        };
        json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": variable.shape,
            "data_type": data_type,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": Self::chunk_of(variable)}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": fill,
            "codecs": self.codecs(serializer),
            "attributes": attrs,
            "dimension_names": variable.dims,
            "storage_transformers": [],
        })
    }
}

/// The key of a chunk.
fn key(variable: &Variable, coords: &[u64]) -> String {
    coords.iter().fold(format!("{}/c", variable.name), |key, number| format!("{key}/{number}"))
}

impl ArraySink for ZarrSink {
    fn write(&mut self, variable: usize, values: &Values<'_>, progress: &dyn Progress) -> Result<(), Error> {
        let item = &self.header.variables[variable];
        let (size, chunk) = (item.item_size(), Self::chunk_of(item));
        let carried = values.carried(&chunk);
        let name = || self.target.to_string_lossy();
        let len = |extents: &[u64]| usize::try_from(extents.iter().product::<u64>()).unwrap_or(0) * size;
        values.each_block(&item.shape, size, &chunk, &mut |part, read| {
            (0..part.len()).into_par_iter().try_for_each(|number| {
                progress.check().map_err(|cancelled| Error::new(name().into(), cancelled.into()))?;
                let coords = part.coords(number);
                let (start, extents) = part.window(&coords);
                // Chunks at the edge are stored whole.
                let is_whole = extents == chunk;
                if let Some(stored) = carried.filter(|_| is_whole)
                    && let Some(frames) = stored(&coords)?
                    && self.is_frame_of(&frames, len(&extents))
                {
                    progress.advance(len(&extents) as u64);
                    return self.put(&key(item, &coords), &frames);
                }
                let mut bytes = vec![0; len(&extents)];
                read(&start, &extents, &mut bytes)?;
                progress.advance(bytes.len() as u64);
                if !is_whole {
                    let mut whole = vec![0; len(&chunk)];
                    let counts: Vec<usize> =
                        extents.iter().map(|extent| usize::try_from(*extent).unwrap_or(0)).collect();
                    BoxCopy::new(size, &counts, (0, &strides(&extents, size)), (0, &strides(&chunk, size)))
                        .run(&bytes, &mut whole)
                        .map_err(|error| refused(&name(), error.to_string()))?;
                    bytes = whole;
                }
                self.put(&key(item, &coords), &self.compressed(bytes)?)
            })
        })
    }

    fn write_strings(&mut self, variable: usize, strings: &[String]) -> Result<(), Error> {
        let item = &self.header.variables[variable];
        if strings.is_empty() {
            return Ok(());
        }
        let number = |len: usize| {
            u32::try_from(len).map_err(|_| refused(&self.target.to_string_lossy(), "too many strings"))
        };
        let mut bytes = number(strings.len())?.to_le_bytes().to_vec();
        for text in strings {
            bytes.extend(number(text.len())?.to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        self.put(&key(item, &vec![0; item.shape.len()]), &self.compressed(bytes)?)
    }

    fn finish(self: Box<Self>) -> Result<(), Error> {
        let mut nodes: BTreeMap<String, Value> = BTreeMap::new();
        for variable in &self.header.variables {
            let mut path = variable.name.as_str();
            while let Some((group, _)) = path.rsplit_once('/') {
                let node = || json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
                nodes.entry(group.to_owned()).or_insert_with(node);
                path = group;
            }
        }
        let mut root = Map::new();
        for attr in &self.header.attrs {
            // `group/name` is an attribute of a group.
            let group = attr
                .name
                .rsplit_once('/')
                .and_then(|(group, name)| nodes.get_mut(group).map(|node| (node, name)));
            match group {
                Some((node, name)) => node["attributes"][name] = attr.value.to_json(),
                None => {
                    root.insert(attr.name.clone(), attr.value.to_json());
                }
            }
        }
        for variable in &self.header.variables {
            nodes.insert(variable.name.clone(), self.array(variable));
        }
        for (path, node) in &nodes {
            self.put(&format!("{path}/zarr.json"), node.to_string().as_bytes())?;
        }
        let node = json!({
            "zarr_format": 3,
            "node_type": "group",
            "attributes": root,
            "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": nodes},
        });
        self.put("zarr.json", node.to_string().as_bytes())?;
        let replaced = replace_store(&self.temporary.0, &self.target, self.overwrite);
        self.io(replaced)
    }
}

/// Checks that a store can be written: the target does not exist, or is a store that is replaced.
pub(crate) fn check_target(path: &Path, overwrite: bool) -> Result<(), Error> {
    let name = path.to_string_lossy();
    if path.symlink_metadata().is_ok() {
        if !overwrite {
            let exists = PublishError::Exists { path: path.to_owned() };
            return Err(Error::new(name.as_ref().into(), exists.into()));
        }
        if !is_store(path) {
            return Err(refused(&name, "exists and is not a Zarr store; it is not replaced"));
        }
    }
    Ok(())
}

/// Renames a complete store to its target. An old store is kept until the new one is in place.
#[expect(clippy::disallowed_methods, reason = "a store is a directory, which is published as a whole")]
pub(crate) fn replace_store(complete: &Path, target: &Path, overwrite: bool) -> std::io::Result<()> {
    let old = target.with_file_name(format!(
        ".{}.{}.old",
        target.file_name().unwrap_or_default().to_string_lossy(),
        std::process::id()
    ));
    let replaces = overwrite && target.is_dir();
    if replaces {
        std::fs::rename(target, &old)?;
    }
    let renamed = std::fs::rename(complete, target);
    if renamed.is_err() && replaces {
        let _ = std::fs::rename(&old, target);
    }
    renamed?;
    if replaces { std::fs::remove_dir_all(&old) } else { Ok(()) }
}
