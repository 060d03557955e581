//! The segments of a directory.

use std::path::{Path, PathBuf};

use tercet_core::Diagnostic as _;

use super::segment::Segment;
use crate::collection::{Collection, ManifestWarning, segments};
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
        let mut collection = Collection::open_with(directory, options)?;
        if !collection.manifest_path().exists() {
            let open = |path: PathBuf| segment_of(&File::open_with(path, options)?);
            let segments = tatami_files(directory)?.into_iter().map(open).collect::<Result<_, _>>()?;
            return Ok(Self { segments, warnings: Vec::new() });
        }
        for attempts in (0..ATTEMPTS).rev() {
            collection.check_records()?;
            match members_of(&collection) {
                // A merge replaced a member, and its file is gone.
                Err(error) if attempts > 0 && error.is_not_found() => {
                    collection = Collection::open_with(directory, options)?;
                }
                segments => {
                    return Ok(Self { segments: segments?, warnings: collection.replay().warnings.clone() });
                }
            }
        }
        Ok(Self { segments: Vec::new(), warnings: Vec::new() })
    }
}

/// How often a collection is opened if its files disappear meanwhile.
const ATTEMPTS: usize = 4;

fn segment_of(file: &File) -> Result<Segment, Error> {
    file.segment()?.ok_or_else(|| file.error(ErrorKind::NotASegment))
}

/// The segments of a collection, with the mark of updates.
fn members_of(collection: &Collection) -> Result<Vec<Segment>, Error> {
    let mut segments = Vec::new();
    for member in collection.members() {
        let mut segment = segment_of(&collection.open_member(member)?)?;
        segment.mark = segments::mark(segment.file()).map(Into::into);
        segments.push(segment);
    }
    Ok(segments)
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
