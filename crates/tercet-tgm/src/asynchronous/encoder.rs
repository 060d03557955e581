//! Streaming encoder for async sinks.

use std::io::{self, SeekFrom};

use bytes::Bytes;
use tercet_core::CommonError;
use tokio::io::{AsyncSeek, AsyncSeekExt as _, AsyncWrite, AsyncWriteExt as _};

use super::{WORTH_A_THREAD, Worker};
use crate::descriptor::DataObjectDescriptor;
use crate::encode::{EncodeError, EncodeOptions, NAME, PreEncoded, StreamingEncoder};
use crate::error::{Error, ErrorKind};
use crate::metadata::{Entry, GlobalMetadata};

/// Writes one message to an `AsyncWrite`, object by object. Calls, bytes and errors are those of [`StreamingEncoder`];
/// large objects are encoded on the blocking pool.
///
/// An object is encoded completely and then written: one encoded object is in memory, and the next one is encoded when
/// it is written.
///
/// If the future of a write is dropped, its object is either part of the message or not, depending on whether its encoding had
/// started. It is never written in part: the next call writes the rest or returns the error. [`flush`](Self::flush) does only
/// that; [`object_count`](Self::object_count) then shows whether the object is part of the message. If the future of
/// `finish` is dropped, the message is incomplete.
///
/// ```
/// # #[cfg(feature = "async")] {
/// use tercet_tgm::{AsyncStreamingEncoder, DataObjectDescriptor, DType, EncodeOptions, Error, GlobalMetadata, Message};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// let descriptor = DataObjectDescriptor::new(DType::I16, [2]);
/// let metadata = GlobalMetadata::default();
/// let mut encoder = AsyncStreamingEncoder::new(Vec::new(), &metadata, EncodeOptions::new()).await?;
/// encoder.write_preceder([("step".to_owned(), 6.into())].into()).await?;
/// encoder.write_object(&descriptor, vec![1, 0, 254, 255]).await?;
/// let bytes: Vec<u8> = encoder.finish().await?;
/// let message = Message::from_bytes("stream", bytes).unwrap();
/// assert_eq!(message.metadata().base[0]["step"], 6.into());
/// # Ok::<(), Error>(())
/// # })?;
/// # }
/// # Ok::<(), tercet_tgm::Error>(())
/// ```
#[derive(Debug)]
pub struct AsyncStreamingEncoder<W> {
    sink: W,
    /// Its sink holds the bytes to be written.
    encoder: Worker<StreamingEncoder<Vec<u8>>, Result<(), Error>>,
    /// The number of those bytes that are written.
    written: usize,
    objects: u64,
    /// A write failed: the message is incomplete.
    failed: bool,
}

impl<W: AsyncWrite + Unpin> AsyncStreamingEncoder<W> {
    /// Starts a message: writes its preamble and its first metadata frame, which holds `metadata` as it is.
    pub async fn new(sink: W, metadata: &GlobalMetadata, options: EncodeOptions) -> Result<Self, Error> {
        let encoder = Worker::Idle(StreamingEncoder::new(Vec::new(), metadata, options)?);
        let mut this = Self { sink, encoder, written: 0, objects: 0, failed: false };
        this.drain().await.map_err(named)?;
        Ok(this)
    }

    /// The number of objects written, excluding one whose write was cancelled and is not complete.
    pub fn object_count(&self) -> u64 {
        match &self.encoder {
            Worker::Idle(encoder) => encoder.object_count(),
            Worker::Busy(_) | Worker::Lost => self.objects,
        }
    }

    /// Sets metadata of the next object. Its keys override those of the object's entry in `base`.
    pub async fn write_preceder(&mut self, entry: Entry) -> Result<(), Error> {
        self.settle().await.map_err(named)?;
        self.encoder.idle().map_err(|cancelled| named(cancelled.into()))?.write_preceder(entry)?;
        self.drain().await.map_err(named)
    }

    /// Encodes and writes an object. Values given as `Vec<u8>` or `Bytes` are not copied.
    pub async fn write_object(
        &mut self,
        descriptor: &DataObjectDescriptor,
        values: impl Into<Bytes>,
    ) -> Result<(), Error> {
        let (descriptor, values) = (descriptor.clone(), values.into());
        self.work(values.len(), move |encoder| encoder.write_object(&descriptor, &values))
            .await
            .map_err(named)
    }

    /// Writes an object whose payload is already encoded.
    pub async fn write_pre_encoded(
        &mut self,
        descriptor: &DataObjectDescriptor,
        payload: impl Into<Bytes>,
    ) -> Result<(), Error> {
        let (descriptor, payload) = (descriptor.clone(), payload.into());
        let len = payload.len();
        let write = move |encoder: &mut StreamingEncoder<Vec<u8>>| {
            encoder.write_pre_encoded(PreEncoded { descriptor: &descriptor, payload: &payload })
        };
        self.work(len, write).await.map_err(named)
    }

    /// Writes everything that was started, and flushes the sink.
    pub async fn flush(&mut self) -> Result<(), Error> {
        self.settle().await.map_err(named)?;
        self.sink.flush().await.map_err(|error| named(written(error)))
    }

    /// Ends the message and flushes the sink. The preamble has no length, because a stream cannot seek.
    pub async fn finish(mut self) -> Result<W, Error> {
        let rest = self.take_encoder().await.map_err(named)?.finish()?;
        self.write_rest(&rest).await.map_err(named)?;
        Ok(self.sink)
    }

    async fn work(
        &mut self,
        len: usize,
        work: impl FnOnce(&mut StreamingEncoder<Vec<u8>>) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), ErrorKind> {
        self.settle().await?;
        self.objects = self.object_count();
        if len >= WORTH_A_THREAD {
            self.encoder.send(work)?;
            self.encoder.result().await?.unwrap_or(Ok(())).map_err(Error::into_kind)?;
        } else {
            work(self.encoder.idle()?).map_err(Error::into_kind)?;
        }
        self.drain().await
    }

    /// Waits until all objects are written.
    async fn settle(&mut self) -> Result<(), ErrorKind> {
        let made = self.encoder.result().await?;
        self.drain().await?;
        made.unwrap_or(Ok(())).map_err(Error::into_kind)
    }

    /// Writes the output of the encoder. Dropping the future neither loses nor repeats bytes.
    async fn drain(&mut self) -> Result<(), ErrorKind> {
        if self.failed {
            return Err(EncodeError::Unfinished.into());
        }
        let made = self.encoder.idle()?.sink_mut();
        while self.written < made.len() {
            match self.sink.write(&made[self.written..]).await {
                Ok(n) if n > 0 => self.written += n,
                other => {
                    self.failed = true;
                    let error = other.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into());
                    return Err(written(error));
                }
            }
        }
        made.clear();
        self.written = 0;
        Ok(())
    }

    async fn take_encoder(&mut self) -> Result<StreamingEncoder<Vec<u8>>, ErrorKind> {
        self.settle().await?;
        match std::mem::replace(&mut self.encoder, Worker::Lost) {
            Worker::Idle(encoder) => Ok(encoder),
            Worker::Busy(_) | Worker::Lost => Err(tercet_core::progress::Cancelled.into()),
        }
    }

    async fn write_rest(&mut self, bytes: &[u8]) -> Result<(), ErrorKind> {
        self.sink.write_all(bytes).await.map_err(written)?;
        self.sink.flush().await.map_err(written)
    }
}

impl<W: AsyncWrite + AsyncSeek + Unpin> AsyncStreamingEncoder<W> {
    /// Ends the message and seeks back to write its length into the preamble.
    pub async fn finish_with_length(mut self) -> Result<W, Error> {
        let (rest, total) = self.take_encoder().await.map_err(named)?.finish_counted()?;
        self.write_rest(&rest).await.map_err(named)?;
        let sink = &mut self.sink;
        let go = async {
            let end = sink.stream_position().await?;
            let start = end.checked_sub(total).ok_or(io::ErrorKind::InvalidInput)?;
            sink.seek(SeekFrom::Start(start + 16)).await?;
            sink.write_all(&total.to_be_bytes()).await?;
            sink.flush().await?;
            sink.seek(SeekFrom::Start(end)).await?;
            Ok(())
        };
        go.await.map_err(|error| named(written(error)))?;
        Ok(self.sink)
    }
}

/// The error of a write to the sink.
fn written(error: io::Error) -> ErrorKind {
    CommonError::Write(error).into()
}

fn named(kind: ErrorKind) -> Error {
    Error::new(NAME.into(), kind)
}
