//! Files of messages, read on the blocking pool.

use std::sync::Arc;

use bytes::Bytes;
#[cfg(any(unix, windows))]
use tercet_core::Location;

use super::off_thread;
use crate::error::Error;
use crate::file::File;
use crate::message::Message;
use crate::object::StreamedObject;
#[cfg(any(unix, windows))]
use crate::options::ReadOptions;
use crate::scan::Scan;
use tercet_core::Tensor;

/// Async variants, with the feature `async`: the work runs on tokio's blocking pool for every source. Dropping one of these
/// futures only discards its result; work that was started runs to its end.
///
/// ```
/// # #[cfg(feature = "async")] {
/// use tercet_tgm::{DataObjectDescriptor, DType, EncodeOptions, File, GlobalMetadata, Writer, WriterOptions};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("run.tgm");
/// # let descriptor = DataObjectDescriptor::new(DType::U8, [3]);
/// # let mut writer = Writer::create(&path, WriterOptions::new())?;
/// # writer.message(&GlobalMetadata::default(), &[(&descriptor, &[7, 8, 9])], &EncodeOptions::new())?;
/// # writer.finish()?;
/// # runtime.block_on(async {
/// let file = File::open_async(&path).await?;
/// assert_eq!(file.message_count_async().await?, 1);
/// let (message, arrays) = file.decode_message_async(0).await?;
/// assert_eq!(message.object_count(), 1);
/// assert_eq!(arrays[0].bytes(), [7, 8, 9]);
/// # Ok::<(), tercet_tgm::Error>(())
/// # })?;
/// # }
/// # Ok::<(), tercet_tgm::Error>(())
/// ```
impl File {
    /// Opens a file with positional reads. Reads nothing.
    #[cfg(any(unix, windows))]
    pub async fn open_async(location: impl Into<Location>) -> Result<Self, Error> {
        Self::open_with_async(location, ReadOptions::new()).await
    }

    /// Opens a file with positional reads. Reads nothing.
    #[cfg(any(unix, windows))]
    pub async fn open_with_async(location: impl Into<Location>, options: ReadOptions) -> Result<Self, Error> {
        let location = location.into();
        let name: Arc<str> = location.to_string().into();
        let opened = off_thread(move || Self::open_with(location, options)).await;
        opened.unwrap_or_else(|cancelled| Err(Error::new(name, cancelled.into())))
    }

    /// The byte ranges of the messages: see [`scan`](Self::scan).
    pub async fn scan_async(&self) -> Result<Arc<Scan>, Error> {
        self.with(Self::scan).await
    }

    /// The number of messages.
    pub async fn message_count_async(&self) -> Result<u64, Error> {
        self.with(Self::message_count).await
    }

    /// The bytes of a message.
    pub async fn read_message_async(&self, index: u64) -> Result<Bytes, Error> {
        self.with(move |file| file.read_message(index)).await
    }

    /// A message; its framing and metadata are verified.
    pub async fn message_async(&self, index: u64) -> Result<Message, Error> {
        self.with(move |file| file.message(index)).await
    }

    /// A message and the arrays of all its objects.
    pub async fn decode_message_async(&self, index: u64) -> Result<(Message, Vec<Tensor>), Error> {
        let decode = move |file: &Self| {
            let message = file.message(index)?;
            let arrays = message.decode()?;
            Ok((message, arrays))
        };
        self.with(decode).await
    }

    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let file = self.clone();
        let done = off_thread(move || work(&file)).await;
        done.unwrap_or_else(|cancelled| Err(Error::new(self.name().clone(), cancelled.into())))
    }
}

impl Message {
    /// Decodes all objects on the blocking pool.
    pub async fn decode_async(&self) -> Result<Vec<Tensor>, Error> {
        let message = self.clone();
        let done = off_thread(move || message.decode()).await;
        done.unwrap_or_else(|cancelled| Err(Error::new(self.name().clone(), cancelled.into())))
    }
}

impl StreamedObject {
    /// Decodes the object on the blocking pool.
    pub async fn decode_async(&self) -> Result<Tensor, Error> {
        let object = self.clone();
        let done = off_thread(move || object.decode()).await;
        done.unwrap_or_else(|cancelled| Err(self.error(cancelled.into())))
    }
}
