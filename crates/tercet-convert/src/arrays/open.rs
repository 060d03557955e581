//! Opening of array files: the format is detected by the content.

use std::path::Path;
use std::sync::Arc;

use tercet_core::source::Access;
use tercet_core::{ByteSource, Location, ReadOptions, Span};

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
    if path.is_dir() {
        return Ok(Box::new(Zarr::open_directory(path)?));
    }
    let name = path.to_string_lossy();
    let source = tercet_core::source::open_location(&Location::Path(path.to_owned()), Access::Pread);
    open_source(source.map_err(|error| Error::new(name.as_ref().into(), error.into()))?)
}

/// Opens a Zarr store whose keys cannot be listed. The metadata of a group must be consolidated.
pub fn open_store(name: &str, open: Box<OpenKey>) -> Result<Box<dyn ArraySource>, Error> {
    Ok(Box::new(Zarr::open_keys(name, open)?))
}

/// Opens an array file from a source of bytes.
pub fn open_source(source: Arc<dyn ByteSource>) -> Result<Box<dyn ArraySource>, Error> {
    let name = source.name().clone();
    let head = source
        .read_at(Span::first(source.len().min(1024)))
        .map_err(|error| Error::new(name.clone(), error.into()))?;
    match head.get(..4) {
        Some(b"CDF\x01" | b"CDF\x02" | b"CDF\x05") => Ok(Box::new(NetCdf::open(source)?)),
        Some(b"TETR") => {
            let file = tercet_tet::File::from_source(source, ReadOptions::new())?;
            Ok(Box::new(TetSource::new(Arc::new(file))))
        }
        Some(b"TENS") if head.starts_with(tercet_tgm::MAGIC.as_slice()) => {
            Ok(Box::new(TgmSource::open(source)?))
        }
        Some(b"\x93NUM") => Ok(Box::new(NpySource::open(source)?)),
        Some(b"PK\x03\x04") => {
            // Members of NumPy archives are `.npy` files; those of Zarr stores are metadata and chunks.
            let is_npy = |name: &str| name.rsplit_once('.').is_some_and(|(_, extension)| extension == "npy");
            let is_npz = Archive::open(source.clone())?.names().all(is_npy);
            if is_npz {
                Ok(Box::new(NpzSource::open(source)?))
            } else {
                Ok(Box::new(Zarr::open_zip(source)?))
            }
        }
        // An archive without members.
        Some(b"PK\x05\x06") => Ok(Box::new(NpzSource::open(source)?)),
        Some(b"GRIB") => Ok(Box::new(Grib::open(source)?)),
        _ if is_hdf5(&*source) => Ok(Box::new(Hdf5::open(source)?)),
        // Bulletins have a header before the message.
        _ if is_grib(&head) => Ok(Box::new(Grib::open(source)?)),
        _ if is_matrix(&head) => Ok(Box::new(Matrix::open(&*source)?)),
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
