//! Objects, written.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions};

use super::address::{Address, redacted};
use super::place::{Place, of_store};
use super::runtime::{Started, start, wait};
use super::{RemoteError, RemoteOptions};

/// Bytes of the first parts. Stores want 5 MiB at least.
const PART: usize = 8 << 20;
/// Parts after which they get twice as large: stores take 10,000 of them.
const PARTS_OF_A_SIZE: u64 = 1000;
/// Parts that are on their way at the same time.
const FLYING: usize = 4;

/// Writes an object into a store. It appears whole when [`finish`](Upload::finish) returns; without that call, or when it
/// fails, what was sent is taken back.
///
/// What fits into one part (8 MiB) is sent in one request. More is sent in parts, four of them at a time; so many are held in memory.
/// The size of the parts doubles with every 1000 of them.
pub struct Upload {
    name: Arc<str>,
    store: Arc<dyn ObjectStore>,
    path: Path,
    replace: bool,
    part: Vec<u8>,
    part_size: usize,
    parts: u64,
    written: u64,
    multipart: Option<Box<dyn MultipartUpload>>,
    flying: VecDeque<Started<()>>,
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
    /// Starts an object. Unless `replace` is set, one that is there already is an error.
    ///
    /// Small objects are refused by the store itself if another one appears at the same moment. For those that are sent in
    /// parts it is asked before the first part and once more before the last request.
    pub fn create(
        address: &str,
        options: &RemoteOptions,
        replace: bool,
    ) -> Result<Self, crate::Error<RemoteError>> {
        let name: Arc<str> = redacted(address).into();
        let start = || {
            let place = Place::of(&Address::parse(address)?, options)?;
            let Place::Store { store, path } = place else { return Err(RemoteError::NotWritable) };
            let upload = Self {
                name: Arc::clone(&name),
                store,
                path,
                replace,
                part: Vec::new(),
                part_size: PART,
                parts: 0,
                written: 0,
                multipart: None,
                flying: VecDeque::new(),
                failed: None,
            };
            upload.must_be_free()?;
            Ok(upload)
        };
        start().map_err(|error| crate::Error::new(Arc::clone(&name), error))
    }

    /// The address, without what may be secret.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Sends the rest, and lets the object appear. Answers its length, which the store has confirmed.
    pub fn finish(mut self) -> Result<u64, crate::Error<RemoteError>> {
        let finished = self.close();
        if finished.is_err() {
            self.take_back();
        }
        finished.map_err(|error| crate::Error::new(Arc::clone(&self.name), error))
    }

    /// Takes back what was sent. Dropping does the same.
    pub fn abort(self) {
        drop(self);
    }

    fn close(&mut self) -> Result<u64, RemoteError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.multipart.is_none() {
            let mode = if self.replace { PutMode::Overwrite } else { PutMode::Create };
            let (store, path) = (Arc::clone(&self.store), self.path.clone());
            let bytes = std::mem::take(&mut self.part);
            wait(async move {
                let options = PutOptions { mode, ..PutOptions::default() };
                let put = store.put_opts(&path, bytes.into(), options).await;
                put.map_err(|error| of_store(&error)).map(drop)
            })?;
        } else {
            if !self.part.is_empty() {
                self.send_part()?;
            }
            while let Some(part) = self.flying.pop_front() {
                part.wait()?;
            }
            self.must_be_free()?;
            if let Some(mut multipart) = self.multipart.take() {
                let (multipart, completed) = wait(async move {
                    let completed = multipart.complete().await.map_err(|error| of_store(&error));
                    Ok((multipart, completed))
                })?;
                if let Err(error) = completed {
                    self.multipart = Some(multipart);
                    return Err(error);
                }
            }
        }
        let (place, expected) = (self.place(), self.written);
        let found = wait(async move { place.length().await })?;
        if found == expected { Ok(found) } else { Err(RemoteError::OtherLength { found, expected }) }
    }

    fn place(&self) -> Place {
        Place::Store { store: Arc::clone(&self.store), path: self.path.clone() }
    }

    fn must_be_free(&self) -> Result<(), RemoteError> {
        if self.replace {
            return Ok(());
        }
        let place = self.place();
        match wait(async move { place.length().await }) {
            Ok(_) => Err(RemoteError::Exists),
            Err(RemoteError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn send_part(&mut self) -> Result<(), RemoteError> {
        if self.multipart.is_none() {
            let (store, path) = (Arc::clone(&self.store), self.path.clone());
            let started =
                wait(async move { store.put_multipart(&path).await.map_err(|error| of_store(&error)) });
            self.multipart = Some(started?);
        }
        while self.flying.len() >= FLYING {
            self.flying.pop_front().map_or(Ok(()), Started::wait)?;
        }
        let bytes = std::mem::take(&mut self.part);
        if let Some(multipart) = &mut self.multipart {
            let sent = multipart.put_part(bytes.into());
            self.flying.push_back(start(async move { sent.await.map_err(|error| of_store(&error)) })?);
        }
        self.parts += 1;
        if self.parts.is_multiple_of(PARTS_OF_A_SIZE) {
            self.part_size = self.part_size.saturating_mul(2);
        }
        Ok(())
    }

    fn take_back(&mut self) {
        // A part that arrives later would stay for ever.
        self.flying.drain(..).for_each(|part| drop(part.wait()));
        if let Some(mut multipart) = self.multipart.take() {
            // If the store does not listen there is nobody else to tell: it is told to forget, not asked for something.
            let _ = wait(async move { multipart.abort().await.map_err(|error| of_store(&error)) });
        }
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(error) = &self.failed {
            return Err(io::Error::other(crate::Error::new(Arc::clone(&self.name), error.clone())));
        }
        if self.part.len() == self.part_size {
            // Only when more follows: a last part of nothing is none.
            if let Err(error) = self.send_part() {
                self.failed = Some(error.clone());
                return Err(io::Error::other(crate::Error::new(Arc::clone(&self.name), error)));
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
        self.take_back();
    }
}
