//! Sources of locations.

use std::sync::Arc;

use tercet_core::source::Access;
#[cfg(not(feature = "remote"))]
use tercet_core::source::open_location as open;
use tercet_core::{ByteSource, Location};
#[cfg(feature = "remote")]
use tercet_remote::open_location as open;

use crate::error::{Error, UnknownFormat};
use crate::other_format::OtherFormat;

/// Opens the bytes of a location: a path, or a URL with the feature `remote`.
pub(crate) fn open_location(location: &Location, access: Access) -> Result<Arc<dyn ByteSource>, Error> {
    let name = || location.to_string().into();
    if let Location::Path(path) = location
        && path.is_dir()
        && let Some(format) = OtherFormat::detect_directory(path)
    {
        let unknown = UnknownFormat::new(&[], Some(format));
        return Err(Error::new(name(), unknown));
    }
    open(location, access).map_err(|error| Error::new(name(), error))
}
