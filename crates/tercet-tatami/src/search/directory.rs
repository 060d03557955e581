//! The segments of a directory.

use std::path::{Path, PathBuf};

use super::segment::Segment;
use crate::collection::{Collection, ManifestWarning};
use crate::error::{Error, ErrorKind};
use crate::file::{File, ReadOptions};

/// The segments of a collection, or the `.tatami` files of a directory without a manifest, by name.
#[derive(Debug)]
#[non_exhaustive]
pub struct DirectorySegments {
    /// The segments.
    pub segments: Vec<Segment>,
    /// Warnings of the manifest.
    pub warnings: Vec<ManifestWarning>,
}

impl DirectorySegments {
    /// Opens all segments. A member without an index, and a directory without files and manifest, are errors.
    pub fn open(directory: &Path, options: ReadOptions) -> Result<Self, Error> {
        let collection = Collection::open_with(directory, options)?;
        let (mut files, mut warnings) = (Vec::new(), Vec::new());
        if collection.manifest_path().exists() {
            collection.check_records()?;
            warnings.clone_from(&collection.replay().warnings);
            for member in collection.members() {
                files.push(collection.open_member(member)?);
            }
        } else {
            for path in tatami_files(directory)? {
                files.push(File::open_with(path, options)?);
            }
        }
        let mut segments = Vec::with_capacity(files.len());
        for file in files {
            segments.push(file.segment()?.ok_or_else(|| file.error(ErrorKind::NotASegment))?);
        }
        Ok(Self { segments, warnings })
    }
}

/// The `.tatami` files of a directory, by name.
fn tatami_files(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |kind: ErrorKind| Error::new(directory.display().to_string().into(), kind);
    let mut paths = Vec::new();
    let list = || -> std::io::Result<Vec<PathBuf>> {
        std::fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect()
    };
    for path in list().map_err(|error| failed(error.into()))? {
        if path.extension().is_some_and(|extension| extension == "tatami") && path.is_file() {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        return Err(failed(ErrorKind::NoSegments));
    }
    paths.sort();
    Ok(paths)
}
