//! Zarr stores at URLs.

use std::fmt::Write as _;
use std::sync::Arc;

use tercet_convert::arrays::{ArraySource, open_store};
use tercet_core::{ByteSource, Diagnostic as _, Limits, Location, redact_url};
use tercet_remote::{Remote, RemoteOptions};

/// The first request of a chunk fetches this much: most chunks are read with one request.
const FIRST_READ: u64 = 1 << 20;

/// Whether a URL is that of a Zarr store: its path ends in `.zarr` or in `/`.
pub fn is_store_url(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    Location::is_url(url) && (path.ends_with('/') || path.to_ascii_lowercase().ends_with(".zarr"))
}

/// Opens a Zarr store at a URL. The metadata of a group must be consolidated, because web servers do not list directories.
pub fn open_store_url(url: &str, limits: Limits) -> Result<Box<dyn ArraySource>, tercet_convert::Error> {
    let (base, query) = url.split_at(url.find('?').unwrap_or(url.len()));
    let (base, query) = (base.trim_end_matches('/').to_owned(), query.to_owned());
    let mut options = RemoteOptions::default();
    options.block_bytes = FIRST_READ;
    let open = move |key: &str| match Remote::open(&key_url(&base, key, &query), &options) {
        Ok(source) => Ok(Some(Arc::new(source) as Arc<dyn ByteSource>)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    };
    open_store(&redact_url(url), Box::new(open), limits)
}

/// The URL of a key. Every character with a meaning in URLs is escaped.
fn key_url(base: &str, key: &str, query: &str) -> String {
    let mut url = format!("{base}/");
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            url.push(byte.into());
        } else {
            // A string is always written.
            let _ = write!(url, "%{byte:02X}");
        }
    }
    url + query
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_known_by_their_urls() {
        for (url, expected) in [
            ("https://host/era5.zarr", true),
            ("https://host/era5.zarr/?token=a.nc", true),
            ("s3://bucket/a/", true),
            ("https://host/era5.nc?x=/", false),
            ("https://host/era5.zarr.zip", false),
            ("data/era5.zarr", false),
        ] {
            assert_eq!(is_store_url(url), expected, "{url}");
        }
        assert_eq!(
            key_url("http://h/a.zarr", "a b/c#?%/0", "?t=1"),
            "http://h/a.zarr/a%20b/c%23%3F%25/0?t=1"
        );
    }
}
