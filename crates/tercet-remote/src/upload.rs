//! Uploads to object stores.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions};

use tercet_core::{Error, redact_url};

use crate::endpoint::{Endpoint, store_error};
use crate::runtime::{Pending, block_on, start};
use crate::url::RemoteUrl;
use crate::{RemoteError, RemoteOptions};

/// Bytes of the first parts. Stores require at least 5 MiB.
const FIRST_PART_BYTES: usize = 8 << 20;
/// The part size doubles after this many parts: stores accept 10,000 parts.
const PARTS_PER_SIZE: u64 = 1000;
/// Parts sent at the same time.
const MAX_CONCURRENT_PARTS: usize = 4;

/// Writes an object to an object store. The object appears when [`finish`](Upload::finish) returns. Without that
/// call, or when it fails, the upload is aborted.
///
/// An object of up to 8 MiB is sent in one request. A larger one is a multipart upload with four concurrent parts,
/// which are held in memory. The part size doubles every 1000 parts.
pub struct Upload {
    name: Arc<str>,
    store: Arc<dyn ObjectStore>,
    path: Path,
    overwrite: bool,
    part: Vec<u8>,
    part_size: usize,
    parts: u64,
    written: u64,
    multipart: Option<Box<dyn MultipartUpload>>,
    in_flight: VecDeque<Pending<()>>,
    failed: Option<RemoteError>,
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upload")
            .field("name", &self.name)
            .field("written", &self.written)
            .finish_non_exhaustive()
    }
}

impl Upload {
    /// Starts an upload. Unless `overwrite` is set, an existing object is an error.
    ///
    /// For small objects the store checks this atomically. For multipart uploads it is checked before the first part
    /// and before completion.
    pub fn create(url: &str, options: &RemoteOptions, overwrite: bool) -> Result<Self, Error<RemoteError>> {
        let name: Arc<str> = redact_url(url).into();
        let start = || {
            let endpoint = Endpoint::new(&RemoteUrl::parse(url)?, options)?;
            let Endpoint::Store { store, path } = endpoint else { return Err(RemoteError::NotWritable) };
            let upload = Self {
                name: Arc::clone(&name),
                store,
                path,
                overwrite,
                part: Vec::new(),
                part_size: FIRST_PART_BYTES,
                parts: 0,
                written: 0,
                multipart: None,
                in_flight: VecDeque::new(),
                failed: None,
            };
            upload.check_overwrite()?;
            Ok(upload)
        };
        start().map_err(|error| Error::new(Arc::clone(&name), error))
    }

    /// The URL without credentials.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Sends the rest and completes the upload. Returns the length of the object, as the store reports it.
    pub fn finish(mut self) -> Result<u64, Error<RemoteError>> {
        let finished = self.complete();
        if finished.is_err() {
            self.cancel();
        }
        finished.map_err(|error| Error::new(Arc::clone(&self.name), error))
    }

    /// Aborts the upload. Dropping does the same.
    pub fn abort(self) {
        drop(self);
    }

    fn complete(&mut self) -> Result<u64, RemoteError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.multipart.is_none() {
            let mode = if self.overwrite { PutMode::Overwrite } else { PutMode::Create };
            let (store, path) = (Arc::clone(&self.store), self.path.clone());
            let bytes = std::mem::take(&mut self.part);
            block_on(async move {
                let options = PutOptions { mode, ..PutOptions::default() };
                let put = store.put_opts(&path, bytes.into(), options).await;
                put.map_err(|error| store_error(&error)).map(drop)
            })?;
        } else {
            if !self.part.is_empty() {
                self.send_part()?;
            }
            while let Some(part) = self.in_flight.pop_front() {
                part.wait()?;
            }
            self.check_overwrite()?;
            if let Some(mut multipart) = self.multipart.take() {
                let (multipart, completed) = block_on(async move {
                    let completed = multipart.complete().await.map_err(|error| store_error(&error));
                    Ok((multipart, completed))
                })?;
                if let Err(error) = completed {
                    self.multipart = Some(multipart);
                    return Err(error);
                }
            }
        }
        let (endpoint, expected) = (self.endpoint(), self.written);
        let found = block_on(async move { endpoint.file_len().await })?;
        if found == expected { Ok(found) } else { Err(RemoteError::WrongLength { found, expected }) }
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::Store { store: Arc::clone(&self.store), path: self.path.clone() }
    }

    fn check_overwrite(&self) -> Result<(), RemoteError> {
        if self.overwrite {
            return Ok(());
        }
        let endpoint = self.endpoint();
        match block_on(async move { endpoint.file_len().await }) {
            Ok(_) => Err(RemoteError::Exists),
            Err(RemoteError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn send_part(&mut self) -> Result<(), RemoteError> {
        if self.multipart.is_none() {
            let (store, path) = (Arc::clone(&self.store), self.path.clone());
            let started =
                block_on(
                    async move { store.put_multipart(&path).await.map_err(|error| store_error(&error)) },
                );
            self.multipart = Some(started?);
        }
        while self.in_flight.len() >= MAX_CONCURRENT_PARTS {
            self.in_flight.pop_front().map_or(Ok(()), Pending::wait)?;
        }
        let bytes = std::mem::take(&mut self.part);
        if let Some(multipart) = &mut self.multipart {
            let sent = multipart.put_part(bytes.into());
            self.in_flight.push_back(start(async move { sent.await.map_err(|error| store_error(&error)) })?);
        }
        self.parts += 1;
        if self.parts.is_multiple_of(PARTS_PER_SIZE) {
            self.part_size = self.part_size.saturating_mul(2);
        }
        Ok(())
    }

    fn cancel(&mut self) {
        // A part that arrives after the abort would stay in the store.
        self.in_flight.drain(..).for_each(|part| drop(part.wait()));
        if let Some(mut multipart) = self.multipart.take() {
            // Best effort: the store discards incomplete uploads by its own rules.
            let _ = block_on(async move { multipart.abort().await.map_err(|error| store_error(&error)) });
        }
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(error) = &self.failed {
            return Err(io::Error::other(Error::new(Arc::clone(&self.name), error.clone())));
        }
        if self.part.len() == self.part_size {
            // Sent only when more follows, so that the last part is never empty.
            if let Err(error) = self.send_part() {
                self.failed = Some(error.clone());
                return Err(io::Error::other(Error::new(Arc::clone(&self.name), error)));
            }
        }
        let taken = bytes.len().min(self.part_size - self.part.len());
        self.part.try_reserve(taken).map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.part.extend_from_slice(&bytes[..taken]);
        self.written += taken as u64;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.cancel();
    }
}
