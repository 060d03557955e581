//! The file handle of the documentation.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::source::Access;

use super::error::Result;
use super::{DecodeOptions, DecodedMessage, decode_whole};
#[cfg(feature = "async")]
use crate::asynchronous::off_thread;
use crate::descriptor::DataObjectDescriptor;
use crate::encode::EncodeOptions;
use crate::file::File;
use crate::metadata::GlobalMetadata;
use crate::options::ReadOptions;
use crate::writer::{Writer, WriterOptions};

/// A file of messages, with the names of the documentation.
///
/// Memory-mapped:
///
/// ```
/// use tercet_tgm::compat::{Result, TensogramFile};
///
/// fn read(path: &str) -> Result<Vec<u8>> {
///     let file = TensogramFile::open_mmap(path)?;
///     let count = file.message_count()?; // already scanned during open_mmap
///     assert!(count > 42);
///     file.read_message(42) // copies from mmap, no seek
/// }
/// ```
///
/// With the feature `async`:
///
/// ```
/// # #[cfg(feature = "async")] {
/// use tercet_tgm::compat::{DecodeOptions, Result, TensogramFile};
///
/// async fn read(path: &str) -> Result<usize> {
///     let opts = DecodeOptions::default();
///     let file = TensogramFile::open_async(path).await?;
///     let bytes = file.read_message_async(0).await?;
///     let (_meta, objects) = file.decode_message_async(0, &opts).await?;
///     Ok(bytes.len() + objects.len())
/// }
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TensogramFile {
    path: PathBuf,
    file: Arc<File>,
}

impl TensogramFile {
    /// Opens a file. Reads nothing.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Ok(Self { path: path.to_owned(), file: Arc::new(File::open(path)?) })
    }

    /// Memory-maps a file and scans it for messages. If another program truncates the file, the process is killed.
    pub fn open_mmap(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open_with(path, ReadOptions::new().with_access(Access::Mmap))?;
        file.scan()?;
        Ok(Self { path: path.to_owned(), file: Arc::new(file) })
    }

    /// Creates an empty file, replacing an existing one; creates missing directories.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        Writer::create(path, WriterOptions::new().with_overwrite(true))?.finish()?;
        Self::open(path)
    }

    /// Appends a message in place; waits for other appenders.
    pub fn append(
        &mut self,
        metadata: &GlobalMetadata,
        objects: &[(&DataObjectDescriptor, &[u8])],
        options: &EncodeOptions,
    ) -> Result<()> {
        let mut writer = Writer::append(&self.path, &NoProgress)?;
        writer.message(metadata, objects, options)?;
        writer.finish()?;
        *self = Self::open(&self.path)?;
        Ok(())
    }

    /// The path it was opened with.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of messages. The first call that needs it scans the file.
    pub fn message_count(&self) -> Result<usize> {
        Ok(usize::try_from(self.file.message_count()?).unwrap_or(usize::MAX))
    }

    /// The bytes of a message.
    pub fn read_message(&self, index: usize) -> Result<Vec<u8>> {
        Ok(self.file.read_message(index as u64)?.into())
    }

    /// Decodes a message.
    pub fn decode_message(&self, index: usize, options: &DecodeOptions) -> Result<DecodedMessage> {
        let span = self.file.message_span(index as u64)?;
        let source = Arc::clone(self.file.source());
        let message = crate::message::Message::open(source, index as u64, span, *options)?;
        decode_whole(&message)
    }

    /// The metadata of a message.
    pub fn decode_metadata(&self, index: usize) -> Result<GlobalMetadata> {
        Ok(self.file.message(index as u64)?.metadata().clone())
    }

    /// The descriptors of the objects of a message.
    pub fn decode_descriptors(&self, index: usize) -> Result<Vec<DataObjectDescriptor>> {
        let message = self.file.message(index as u64)?;
        message.objects().map(|object| Ok(object?.descriptor().clone())).collect()
    }

    /// Decodes one object of a message.
    pub fn decode_object(&self, index: usize, object: usize) -> Result<(DataObjectDescriptor, Vec<u8>)> {
        let message = self.file.message(index as u64)?;
        let object = message.object(object as u64)?;
        Ok((object.descriptor().clone(), object.decode()?.bytes().to_vec()))
    }

    /// The bytes of each message, in order.
    pub fn messages(&self) -> Result<impl Iterator<Item = Result<Vec<u8>>> + '_> {
        Ok((0..self.message_count()?).map(|index| self.read_message(index)))
    }

    /// Opens a file without blocking the runtime.
    #[cfg(feature = "async")]
    pub async fn open_async(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Ok(Self { path: path.to_owned(), file: Arc::new(File::open_async(path).await?) })
    }

    /// The bytes of a message, read on the blocking pool.
    #[cfg(feature = "async")]
    pub async fn read_message_async(&self, index: usize) -> Result<Vec<u8>> {
        Ok(self.file.read_message_async(index as u64).await?.into())
    }

    /// Decodes a message on the blocking pool.
    #[cfg(feature = "async")]
    pub async fn decode_message_async(
        &self,
        index: usize,
        options: &DecodeOptions,
    ) -> Result<DecodedMessage> {
        let file = File::clone(&self.file).with_options(*options);
        let message = file.message_async(index as u64).await?;
        off_thread(move || decode_whole(&message)).await.map_err(crate::error::ErrorKind::from)?
    }
}
