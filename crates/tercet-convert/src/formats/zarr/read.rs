//! Reader of stores.

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rayon::prelude::*;
use serde_json::Value;
use tercet_core::limits::check_limit;
use tercet_core::tensor::BoxCopy;
use tercet_core::{ByteSource, DType, Limits};

use super::metadata::{ArrayInfo, attributes, parse_json};
use super::store::{OpenKey, RemoteStore, Store};
use crate::Error;
use crate::arrays::dims::DimTable;
use crate::arrays::source::{check_box, malformed, refused};
use crate::arrays::{ArraySource, Attr, Header, Kind, Variable, ZstdChunks};
use crate::formats::strided::strides;
use crate::formats::unwind::guarded;
use crate::formats::zip::Archive;

/// An open store.
#[derive(Debug)]
pub(crate) struct Zarr {
    name: String,
    store: Store,
    header: Header,
    arrays: Vec<(String, ArrayInfo)>,
    limits: Limits,
    /// Whether the store has enough bytes for the values of each array.
    is_plausible: Vec<OnceLock<bool>>,
}

impl Zarr {
    /// Opens a directory.
    pub(crate) fn open_directory(path: &Path, limits: Limits) -> Result<Self, Error> {
        Self::open(Store::Directory(path.to_owned()), limits)
    }

    /// Opens a ZIP archive.
    pub(crate) fn open_zip(source: Arc<dyn ByteSource>, limits: Limits) -> Result<Self, Error> {
        Self::open(Store::Zip(Archive::open(source, limits)?), limits)
    }

    /// Opens a store by its keys.
    pub(crate) fn open_keys(name: &str, open: Box<OpenKey>, limits: Limits) -> Result<Self, Error> {
        Self::open(Store::Remote(RemoteStore::open(name.into(), open, limits)?), limits)
    }

    fn open(store: Store, limits: Limits) -> Result<Self, Error> {
        let name = store.name();
        let json = |key: &str| -> Result<Option<Value>, Error> {
            let Some(bytes) = store.get(key, limits)? else { return Ok(None) };
            let value = parse_json(&bytes);
            value.map(Some).map_err(|error| malformed(&name, format!("`{key}` is not valid JSON: {error}")))
        };
        let mut header = Header::default();
        let mut dims = DimTable::new();
        let mut arrays = Vec::new();
        let nodes = store.nodes()?;
        let mut version = 0;
        for path in nodes {
            let key = |file: &str| if path.is_empty() { file.to_owned() } else { format!("{path}/{file}") };
            let (info, attrs) = if let Some(node) = json(&key("zarr.json"))? {
                version = 3;
                if node.get("node_type").and_then(Value::as_str) == Some("array") {
                    (Some(ArrayInfo::version_3(&node)), Vec::new())
                } else {
                    (None, attributes(node.get("attributes")))
                }
            } else {
                version = version.max(2);
                let attrs = json(&key(".zattrs"))?;
                match json(&key(".zarray"))? {
                    Some(node) => (Some(ArrayInfo::version_2(&node, attrs.as_ref())), Vec::new()),
                    None => (None, attributes(attrs.as_ref())),
                }
            };
            let shown = if path.is_empty() { "data".to_owned() } else { path.clone() };
            match info {
                None => header
                    .attrs
                    .extend(attrs.into_iter().map(|attr| Attr { name: key(&attr.name), value: attr.value })),
                Some(Err(reason)) => header.unreadable.push((shown, reason)),
                Some(Ok(info)) => {
                    let names: Vec<Option<&str>> = info.dims.iter().map(Option::as_deref).collect();
                    header.variables.push(Variable {
                        dims: dims.resolve(&shown, &names, &info.shape),
                        name: shown,
                        kind: info.kind,
                        shape: info.shape.clone(),
                        chunks: (!info.shape.is_empty()).then(|| info.chunk.clone()),
                        attrs: info.attrs.clone(),
                    });
                    if let (Some(note), Some(variable)) = (&info.note, header.variables.last()) {
                        header.notes.push((variable.name.clone(), note.clone()));
                    }
                    arrays.push((path, info));
                }
            }
        }
        if version == 0 {
            return Err(malformed(&name, "not a Zarr store: there is no metadata"));
        }
        header.format = format!("Zarr version {version}");
        header.dims = dims.into_dims(|_| false);
        let is_plausible = arrays.iter().map(|_| OnceLock::new()).collect();
        Ok(Self { name, store, header, arrays, limits, is_plausible })
    }

    /// The stored bytes of a chunk.
    fn chunk(&self, variable: usize, coords: &[u64]) -> Result<(String, Option<Vec<u8>>), Error> {
        let (path, info) = &self.arrays[variable];
        let key = info.key(coords);
        let key = if path.is_empty() { key } else { format!("{path}/{key}") };
        let bytes = self.store.get(&key, self.limits)?;
        Ok((key, bytes))
    }

    /// Refuses an array that is far larger than the store: chunks that are missing have the fill value, so that a few
    /// bytes of metadata can mean any number of values.
    fn check_expansion(&self, variable: usize) -> Result<(), Error> {
        let bytes = self.header.variables[variable].bytes();
        let small = self.limits.for_file(0).array_bytes;
        let enough = || self.store.has_bytes(bytes.div_ceil(Limits::MAX_EXPANSION)).unwrap_or(true);
        if bytes <= small || *self.is_plausible[variable].get_or_init(enough) {
            return Ok(());
        }
        let limit = check_limit("an array of a small store", bytes, small);
        limit.map(drop).map_err(|limit| Error::new(self.name.as_str().into(), limit.into()))
    }

    /// Refuses a chunk that is far larger than its stored bytes.
    fn check_chunk(&self, stored: &[u8], info: &ArrayInfo, size: usize) -> Result<(), Error> {
        let bytes = info.chunk.iter().fold(size as u64, |bytes, extent| bytes.saturating_mul(*extent));
        let limit = check_limit("a chunk", bytes, self.limits.for_file(stored.len() as u64).chunk_bytes);
        limit.map(drop).map_err(|limit| Error::new(self.name.as_str().into(), limit.into()))
    }
}

/// The numbers of all chunks between two corners, both included.
fn chunks_between(first: &[u64], last: &[u64]) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new()];
    for (first, last) in first.iter().zip(last) {
        all = all
            .into_iter()
            .flat_map(|start: Vec<u64>| {
                (*first..=*last).map(move |number| start.iter().copied().chain([number]).collect())
            })
            .collect();
    }
    all
}

impl ArraySource for Zarr {
    fn name(&self) -> &str {
        &self.name
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn read_box(&self, variable: usize, start: &[u64], extents: &[u64], out: &mut [u8]) -> Result<(), Error> {
        let item = &self.header.variables[variable];
        let size = item.item_size();
        check_box(self.name(), &item.shape, size, (start, extents), out.len())?;
        let Kind::Number(dtype) = item.kind else {
            return Err(refused(self.name(), "strings are not numbers"));
        };
        if out.is_empty() {
            return Ok(());
        }
        self.check_expansion(variable)?;
        let (_, info) = &self.arrays[variable];
        let first: Vec<u64> = start.iter().zip(&info.chunk).map(|(at, chunk)| at / chunk).collect();
        let last: Vec<u64> = start
            .iter()
            .zip(extents)
            .zip(&info.chunk)
            .map(|((at, count), chunk)| (at + count - 1) / chunk)
            .collect();
        let count = first
            .iter()
            .zip(&last)
            .try_fold(1u64, |count, (first, last)| count.checked_mul(last - first + 1));
        if count.is_none_or(|count| count > 1 << 26) {
            return Err(malformed(self.name(), format!("`{}` has too many chunks", item.name)));
        }
        let to = strides(extents, size);
        let fit = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let shared = Mutex::new(out);
        guarded(&self.name, || {
            chunks_between(&first, &last).into_par_iter().try_for_each(|coords| {
                let (key, bytes) = self.chunk(variable, &coords)?;
                let damaged = |reason: String| malformed(&self.name, format!("chunk `{key}`: {reason}"));
                let values = match bytes {
                    Some(bytes) => {
                        self.check_chunk(&bytes, info, size)?;
                        let unit = dtype.swap_unit();
                        let decoded = info.codecs.decode(bytes, &info.chunk, size, unit, &info.fill);
                        Some(decoded.map_err(damaged)?)
                    }
                    None => None,
                };
                // The part of the chunk inside the box.
                let (mut counts, mut from, mut at) = (Vec::new(), 0, 0);
                let chunk_strides = strides(&info.chunk, size);
                for axis in 0..start.len() {
                    let chunk_start = coords[axis] * info.chunk[axis];
                    let low = chunk_start.max(start[axis]);
                    let high = (chunk_start + info.chunk[axis]).min(start[axis] + extents[axis]);
                    counts.push(fit(high - low));
                    from += fit(low - chunk_start) * chunk_strides[axis];
                    at += fit(low - start[axis]) * to[axis];
                }
                let zero_strides = vec![0; counts.len()];
                let (source, copy) = match &values {
                    Some(values) => (values, BoxCopy::new(size, &counts, (from, &chunk_strides), (at, &to))),
                    // Every element is the fill value.
                    None => (&info.fill, BoxCopy::new(size, &counts, (0, &zero_strides), (at, &to))),
                };
                let mut out = shared.lock().unwrap_or_else(PoisonError::into_inner);
                copy.run(source, &mut out).map_err(|error| damaged(error.to_string()))
            })
        })?;
        if dtype == DType::Bool {
            let mut out = shared.lock().unwrap_or_else(PoisonError::into_inner);
            out.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        Ok(())
    }

    fn zstd(&self, variable: usize) -> Option<ZstdChunks> {
        let (_, info) = self.arrays.get(variable)?;
        match info.kind {
            // Any byte but 0 is true.
            Kind::Number(dtype) if dtype != DType::Bool => info.codecs.zstd(dtype.swap_unit()),
            _ => None,
        }
    }

    fn stored_chunk(&self, variable: usize, coords: &[u64]) -> Result<Option<Vec<u8>>, Error> {
        if self.zstd(variable).is_none() {
            return Ok(None);
        }
        // Chunks at the edge are stored whole.
        let (_, info) = &self.arrays[variable];
        let is_whole = |((at, chunk), extent): ((&u64, &u64), &u64)| (at + 1) * chunk <= *extent;
        if !coords.iter().zip(&info.chunk).zip(&info.shape).all(is_whole) {
            return Ok(None);
        }
        Ok(self.chunk(variable, coords)?.1)
    }

    fn read_strings(&self, variable: usize) -> Result<Vec<String>, Error> {
        let item = &self.header.variables[variable];
        let (_, info) = &self.arrays[variable];
        let elements = usize::try_from(item.elements()).ok().filter(|elements| *elements <= 1 << 26);
        let elements = elements.ok_or_else(|| refused(self.name(), "too many strings"))?;
        let fill = String::from_utf8_lossy(&info.fill);
        let mut texts = vec![fill.to_string(); elements];
        if elements == 0 {
            return Ok(texts);
        }
        let last: Vec<u64> =
            item.shape.iter().zip(&info.chunk).map(|(extent, chunk)| (extent - 1) / chunk).collect();
        for coords in chunks_between(&vec![0; last.len()], &last) {
            let (key, Some(bytes)) = self.chunk(variable, &coords)? else { continue };
            let found = guarded(self.name(), || Ok(info.codecs.decode_strings(bytes, &info.chunk, &fill)))?;
            let found = found.map_err(|reason| malformed(self.name(), format!("chunk `{key}`: {reason}")))?;
            for (number, text) in found.into_iter().enumerate() {
                let start: Vec<u64> = coords.iter().zip(&info.chunk).map(|(at, chunk)| at * chunk).collect();
                let place = crate::arrays::place_of(&start, &info.chunk, number);
                if place.iter().zip(&item.shape).all(|(at, extent)| at < extent) {
                    let linear =
                        place.iter().zip(&item.shape).fold(0, |linear, (at, extent)| linear * extent + at);
                    if let Some(slot) = usize::try_from(linear).ok().and_then(|linear| texts.get_mut(linear))
                    {
                        *slot = text;
                    }
                }
            }
        }
        Ok(texts)
    }
}
