//! Sources of locations.

use std::sync::Arc;

use tercet_core::source::Access;
use tercet_core::{ByteSource, Location, SourceError};

use crate::error::{Error, UnknownFormat};
use crate::foreign::Foreign;

/// Opens the bytes of a location: a path, or a URL with the feature `object-store`.
pub(crate) fn open_location(location: &Location, access: Access) -> Result<Arc<dyn ByteSource>, Error> {
    let name = || location.to_string().into();
    if let Location::Path(path) = location
        && path.is_dir()
        && let Some(foreign) = Foreign::detect_directory(path)
    {
        let unknown = UnknownFormat::new(&[], Some(foreign));
        return Err(Error::UnknownFormat(tercet_core::Error::new(name(), unknown)));
    }
    open(location, access).map_err(|error| Error::Source(tercet_core::Error::new(name(), error)))
}

#[cfg(feature = "object-store")]
fn open(location: &Location, access: Access) -> Result<Arc<dyn ByteSource>, SourceError> {
    use tercet_core::source::Remote;
    use tercet_core::source::remote::RemoteOptions;

    match location {
        Location::Path(path) => access.open(path),
        Location::Url(url) => Ok(Arc::new(Remote::open(url, &RemoteOptions::default())?)),
    }
}

#[cfg(not(feature = "object-store"))]
fn open(location: &Location, access: Access) -> Result<Arc<dyn ByteSource>, SourceError> {
    tercet_core::source::open_location(location, access)
}
