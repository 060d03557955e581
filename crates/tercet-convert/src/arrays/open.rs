//! Opening of array files: the format is detected by the content.

use std::path::Path;
use std::sync::Arc;

use tercet_core::source::Access;
use tercet_core::{ByteSource, Limits, Location, ReadOptions, Span};

use super::source::ArraySource;
use crate::formats::grib::{Grib, is_grib};
use crate::formats::hdf5::Hdf5;
use crate::formats::matrix::{Matrix, is_matrix};
use crate::formats::netcdf::NetCdf;
use crate::formats::npy::{NpySource, NpzSource};
use crate::formats::tet::TetSource;
use crate::formats::tgm::TgmSource;
use crate::formats::zarr::{OpenKey, Zarr};
use crate::formats::zip::Archive;
use crate::{Error, ErrorKind};

/// Opens an array file.
pub fn open_path(path: &Path) -> Result<Box<dyn ArraySource>, Error> {
    open_path_with(path, ReadOptions::new())
}

/// Opens an array file with options.
pub fn open_path_with(path: &Path, options: ReadOptions) -> Result<Box<dyn ArraySource>, Error> {
    if path.is_dir() {
        return Ok(Box::new(Zarr::open_directory(path, options.limits)?));
    }
    let name = path.to_string_lossy();
    let source = tercet_core::source::open_location(&Location::Path(path.to_owned()), Access::Pread);
    open_source_with(source.map_err(|error| Error::new(name.as_ref().into(), error.into()))?, options)
}

/// Opens a Zarr store whose keys cannot be listed. The metadata of a group must be consolidated.
pub fn open_store(name: &str, open: Box<OpenKey>, limits: Limits) -> Result<Box<dyn ArraySource>, Error> {
    Ok(Box::new(Zarr::open_keys(name, open, limits)?))
}

/// Opens an array file from a source of bytes.
pub fn open_source(source: Arc<dyn ByteSource>) -> Result<Box<dyn ArraySource>, Error> {
    open_source_with(source, ReadOptions::new())
}

/// Opens an array file from a source of bytes, with options.
pub fn open_source_with(
    source: Arc<dyn ByteSource>,
    options: ReadOptions,
) -> Result<Box<dyn ArraySource>, Error> {
    let limits = options.limits;
    let name = source.name().clone();
    let head = source
        .read_at(Span::first(source.len().min(1024)))
        .map_err(|error| Error::new(name.clone(), error.into()))?;
    match head.get(..4) {
        Some(b"CDF\x01" | b"CDF\x02" | b"CDF\x05") => Ok(Box::new(NetCdf::open(source, limits)?)),
        Some(b"TETR") => {
            let file = tercet_tet::File::from_source(source, options)?;
            Ok(Box::new(TetSource::new(Arc::new(file))))
        }
        Some(b"TENS") if head.starts_with(tercet_tgm::MAGIC.as_slice()) => {
            Ok(Box::new(TgmSource::open(source, options)?))
        }
        Some(b"\x93NUM") => Ok(Box::new(NpySource::open(source)?)),
        Some(b"PK\x03\x04") => {
            // Members of NumPy archives are `.npy` files; those of Zarr stores are metadata and chunks.
            let is_npy = |name: &str| name.rsplit_once('.').is_some_and(|(_, extension)| extension == "npy");
            let is_npz = Archive::open(source.clone(), limits)?.names().all(is_npy);
            if is_npz {
                Ok(Box::new(NpzSource::open(source, limits)?))
            } else {
                Ok(Box::new(Zarr::open_zip(source, limits)?))
            }
        }
        // An archive without members.
        Some(b"PK\x05\x06") => Ok(Box::new(NpzSource::open(source, limits)?)),
        Some(b"GRIB") => Ok(Box::new(Grib::open(source, limits)?)),
        _ if is_hdf5(&*source) => Ok(Box::new(Hdf5::open(source, limits)?)),
        // Bulletins have a header before the message.
        _ if is_grib(&head) => Ok(Box::new(Grib::open(source, limits)?)),
        _ if is_matrix(&head) => Ok(Box::new(Matrix::open(&*source, limits)?)),
        _ => Err(Error::new(name, ErrorKind::UnknownFormat)),
    }
}

/// Whether a file has the signature of HDF5: at the start, or after a user block of 512, 1024, 2048, … bytes.
fn is_hdf5(source: &dyn ByteSource) -> bool {
    let mut at = 0;
    while let Some(span) = Span::at(at, 8).filter(|span| span.end() <= source.len()) {
        if source.read_at(span).is_ok_and(|bytes| &bytes[..] == b"\x89HDF\r\n\x1a\n") {
            return true;
        }
        at = if at == 0 { 512 } else { at * 2 };
    }
    false
}
