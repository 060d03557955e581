//! Remote files: HTTP, S3, Google Cloud Storage and Azure as [`ByteSource`].
//!
//! [`open`] opens a URL, [`open_location`] a path or a URL. [`Upload`] writes an object.
//!
//! ```no_run
//! use tercet_core::ByteSource;
//!
//! let source = tercet_remote::open("s3://bucket/run.tgm")?;
//! println!("{} bytes", source.len());
//! # Ok::<(), tercet_core::SourceError>(())
//! ```
//!
//! Credentials come from the environment variables of the stores' own tools (`AWS_…`, `GOOGLE_…`, `AZURE_…`); HTTP
//! credentials are given in the URL. They never appear in names, errors or debug output.
//!
//! ```text
//! Remote ─▶ block_cache, coalesce      which ranges to request (no I/O)
//!        ─▶ endpoint                   one request: to a web server, or signed for an object store
//!        ─▶ http_client                checks of every response, timeouts, retries
//!        ─▶ runtime, connection_pool   threads and connections, shared by the process
//! Upload ─▶ endpoint …
//! ```
#![cfg(any(unix, windows))]

mod block_cache;
mod coalesce;
mod connection_pool;
mod endpoint;
mod error;
mod http_client;
mod runtime;
mod source;
mod upload;
mod url;

use std::sync::Arc;

use tercet_core::source::Access;
use tercet_core::{ByteSource, Location, SourceError};

pub use crate::error::RemoteError;
pub use crate::source::{Remote, RemoteOptions};
pub use crate::upload::Upload;

/// Opens a remote file with default options.
pub fn open(url: &str) -> Result<Arc<dyn ByteSource>, SourceError> {
    Ok(Arc::new(Remote::open(url, &RemoteOptions::default())?))
}

/// Opens a file on this machine or a remote file.
pub fn open_location(location: &Location, access: Access) -> Result<Arc<dyn ByteSource>, SourceError> {
    match location {
        Location::Path(path) => access.open(path),
        Location::Url(url) => open(url),
    }
}
