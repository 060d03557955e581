//! Remote files.

pub use super::options::RemoteScanOptions;

/// Whether a location is a URL.
pub fn is_remote_url(location: &str) -> bool {
    matches!(tercet_core::Location::from(location), tercet_core::Location::Url(_))
}
