//! Sources of locations.

use std::sync::Arc;

use tercet_core::source::Access;
#[cfg(not(feature = "remote"))]
use tercet_core::source::open_location as open;
use tercet_core::{ByteSource, Location};
#[cfg(feature = "remote")]
use tercet_remote::open_location as open;

use crate::error::{Error, UnknownFormat};
use crate::foreign::Foreign;

/// Opens the bytes of a location: a path, or a URL with the feature `remote`.
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
