//! Messages from an async stream.

use std::sync::Arc;

use tercet_core::{SourceError, Span};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::{WORTH_A_THREAD, Worker};
use crate::decoder::{Decoder, Event};
use crate::error::{Error, ErrorKind};

/// Bytes read at a time.
const PIECE: usize = 64 << 10;

/// Decodes messages from an `AsyncRead`.
///
/// Events and errors are those of the [`Decoder`] inside; large frames are hashed on the blocking pool. It reads at most
/// 64 KiB more than the next event needs, so a slow consumer slows the producer down. Memory use is that of
/// the [`Decoder`].
///
/// ```
/// # #[cfg(feature = "async")] {
/// use tercet_tgm::{AsyncDecoder, AsyncStreamingEncoder, DataObjectDescriptor, DType, EncodeOptions};
/// use tercet_tgm::{Error, Event, GlobalMetadata};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// let (near, far) = tokio::io::duplex(64);
/// let write = async {
///     let descriptor = DataObjectDescriptor::new(DType::I16, [2]);
///     let metadata = GlobalMetadata::default();
///     let mut encoder = AsyncStreamingEncoder::new(near, &metadata, EncodeOptions::new()).await?;
///     encoder.write_object(&descriptor, vec![1, 0, 254, 255]).await?;
///     encoder.finish().await.map(drop)
/// };
/// let read = async {
///     let mut decoder = AsyncDecoder::new(far);
///     let mut arrays = Vec::new();
///     while let Some(event) = decoder.next_event().await? {
///         if let Event::Object(object) = event {
///             arrays.push(object.decode_async().await?);
///         }
///     }
///     Ok::<_, Error>(arrays)
/// };
/// # let both = async {
/// #     let writing = tokio::spawn(write);
/// #     let arrays = read.await?;
/// #     writing.await.unwrap()?;
/// #     Ok::<_, Error>(arrays)
/// # };
/// # let arrays = both.await?;
/// assert_eq!(arrays[0].to_vec::<i16>(), Some(vec![1, -2]));
/// # Ok::<(), Error>(())
/// # })?;
/// # }
/// # Ok::<(), tercet_tgm::Error>(())
/// ```
#[derive(Debug)]
pub struct AsyncDecoder<R> {
    /// The name of the stream.
    name: Arc<str>,
    source: R,
    decoder: Worker<Decoder, Result<Option<Event>, Error>>,
    piece: Box<[u8]>,
    /// The read buffer.
    len: u64,
    is_at_end: bool,
}

impl<R: AsyncRead + Unpin> AsyncDecoder<R> {
    /// A decoder that verifies everything and stops at the first error.
    pub fn new(source: R) -> Self {
        Self::with_decoder(source, Decoder::new())
    }

    /// Reads with a configured decoder, for example one that resynchronises.
    pub fn with_decoder(source: R, decoder: Decoder) -> Self {
        let piece = vec![0; PIECE].into_boxed_slice();
        let name = Arc::clone(decoder.name());
        Self { name, source, decoder: Worker::Idle(decoder), piece, len: 0, is_at_end: false }
    }

    /// The next event; `None` at the end of the stream. A stream that ends inside a message is an error.
    ///
    /// Cancellation safe: if the future is dropped, no byte and no event is lost.
    pub async fn next_event(&mut self) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = self.turn().await? {
                return Ok(Some(event));
            }
            if self.is_at_end {
                return self.end();
            }
            let read = self.source.read(&mut self.piece).await;
            let read = read.map_err(|error| SourceError::Read { span: Span::empty(self.len), error });
            let n = read.map_err(|error| self.error(error))?;
            self.len += n as u64;
            self.is_at_end = n == 0;
            idle(&mut self.decoder, &self.name)?.push(&self.piece[..n]);
        }
    }

    /// The next event in the bytes read so far.
    async fn turn(&mut self) -> Result<Option<Event>, Error> {
        if let Some(made) = self.decoder.result().await.map_err(|error| self.error(error))? {
            return made;
        }
        let decoder = idle(&mut self.decoder, &self.name)?;
        match decoder.next_frame() {
            Some((have, need)) if have < need && !self.is_at_end => Ok(None),
            Some((_, need)) if need >= WORTH_A_THREAD => {
                self.decoder.send(Decoder::next_event).map_err(|error| self.error(error))?;
                let made = self.decoder.result().await;
                made.map_err(|error| self.error(error))?.unwrap_or(Ok(None))
            }
            _ => decoder.next_event(),
        }
    }

    /// The last event, at the end of the stream.
    fn end(&mut self) -> Result<Option<Event>, Error> {
        idle(&mut self.decoder, &self.name)?.finish()
    }

    fn error(&self, kind: impl Into<ErrorKind>) -> Error {
        Error::new(Arc::clone(&self.name), kind.into())
    }

    /// The stream. Bytes that were read but not decoded are lost.
    pub fn into_inner(self) -> R {
        self.source
    }
}

/// The decoder, unless a thread works with it.
fn idle<'a>(
    decoder: &'a mut Worker<Decoder, Result<Option<Event>, Error>>,
    name: &Arc<str>,
) -> Result<&'a mut Decoder, Error> {
    decoder.idle().map_err(|error| Error::new(Arc::clone(name), error.into()))
}
