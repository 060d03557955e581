//! Adapter from [`ByteSource`] to the reader traits of the parquet crate.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use tercet_core::{ByteSource, SourceError, Span};

use crate::error::Error;

/// A reader at a position of a source.
#[derive(Clone, Debug)]
pub(crate) struct SourceReader {
    source: Arc<dyn ByteSource>,
    at: u64,
    /// The error of the source: parquet keeps only its message.
    failure: Arc<Mutex<Option<Error>>>,
}

impl SourceReader {
    pub(crate) fn new(source: Arc<dyn ByteSource>) -> Self {
        Self { source, at: 0, failure: Arc::default() }
    }

    /// The name of the source.
    pub(crate) fn name(&self) -> &Arc<str> {
        self.source.name()
    }

    /// Stores an error.
    pub(crate) fn fail(&self, error: Error) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// Takes the stored error.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn record(&self, error: SourceError) -> String {
        let message = error.to_string();
        self.fail(Error::new(Arc::clone(self.name()), error.into()));
        message
    }
}

impl Read for SourceReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.source.len().saturating_sub(self.at);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(into.len());
        if len > 0 {
            let read = self.source.read_into(self.at, &mut into[..len]);
            read.map_err(|error| io::Error::other(self.record(error)))?;
            self.at += len as u64;
        }
        Ok(len)
    }
}

impl Seek for SourceReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.source.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

impl Length for SourceReader {
    fn len(&self) -> u64 {
        self.source.len()
    }
}

impl ChunkReader for SourceReader {
    type T = io::BufReader<Self>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        // A small buffer: only headers are read this way, pages are read at once.
        Ok(io::BufReader::with_capacity(1 << 12, Self { at: start, ..self.clone() }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let span = Span::at(start, length as u64).filter(|span| span.end() <= self.source.len()).ok_or_else(
            || ParquetError::EOF(format!("{length} bytes at {start} extend past the end of the file")),
        )?;
        self.source.read_at(span).map_err(|error| ParquetError::General(self.record(error)))
    }
}
