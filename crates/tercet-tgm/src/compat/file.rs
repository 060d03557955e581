//! The file handle of the documentation.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::source::Access;

use super::decode::{DecodedMessage, DecodedObject, decoded, decoded_ranges};
use super::encode::with_ours;
use super::error::{Result, TensogramError};
use super::options::{DecodeOptions, EncodeOptions, RemoteScanOptions};
use super::types::{DataObjectDescriptor, GlobalMetadata};
use crate::file::{File, Wanted};
use crate::message::Message;
use crate::options::ReadOptions;
use crate::scan::ScanOptions;
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
    pub(super) file: Arc<File>,
}

/// The position of a message in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageLayout {
    /// The offset of the message.
    pub offset: usize,
    /// The length of the message.
    pub length: usize,
}

/// Metadata, descriptor and values of an object.
pub type ObjectOfMessage = (GlobalMetadata, DataObjectDescriptor, Vec<u8>);

/// The documentation numbers the messages that a scan finds, also after bytes that are skipped.
fn options() -> ReadOptions {
    ReadOptions::new().with_allow_gaps(true)
}

impl TensogramFile {
    /// Opens a file. Reads nothing.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Ok(Self { path: path.to_owned(), file: Arc::new(File::open_with(path, options())?) })
    }

    /// Opens a path, or a URL with the feature `remote`. Reads nothing of a local file.
    pub fn open_source(source: impl AsRef<str>) -> Result<Self> {
        let source = source.as_ref();
        Ok(Self { path: PathBuf::from(source), file: Arc::new(File::open_with(source, options())?) })
    }

    /// Opens a URL, with the feature `remote`. `storage` has the options of object stores; they come from the environment
    /// variables of the stores' own tools instead, and any option here is an error.
    pub fn open_remote(
        url: &str,
        storage: &BTreeMap<String, String>,
        scan: Option<RemoteScanOptions>,
    ) -> Result<Self> {
        if let Some(key) = storage.keys().next() {
            let message =
                format!("the storage option `{key}` is not supported: set the variable of the store");
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, message).into());
        }
        let file = File::open_with(url, options())?;
        // A remote file is scanned from both ends unless the direction is given.
        let file = match scan {
            Some(RemoteScanOptions { bidirectional: false }) => {
                file.with_scan_options(ScanOptions::default().with_remote_rounds(false))
            }
            _ => file,
        };
        Ok(Self { path: PathBuf::from(url), file: Arc::new(file) })
    }

    /// Memory-maps a file and scans it for messages. If another program truncates the file, the process is killed.
    pub fn open_mmap(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open_with(path, options().with_access(Access::Mmap))?;
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
        let metadata = metadata.try_into()?;
        with_ours(objects, |objects| {
            let mut writer = Writer::append(&self.path, &NoProgress)?;
            writer.message(&metadata, objects, &options.into())?;
            writer.finish()?;
            Ok(())
        })?;
        *self = Self::open(&self.path)?;
        Ok(())
    }

    /// The path or URL it was opened with.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path or URL it was opened with.
    pub fn source(&self) -> String {
        self.file.name().to_string()
    }

    /// Whether it was opened by a URL.
    pub fn is_remote(&self) -> bool {
        self.file.source().is_remote()
    }

    /// The same file in the API of this crate.
    pub fn as_file(&self) -> &File {
        &self.file
    }

    /// The number of messages. The first call that needs it scans the file.
    pub fn message_count(&self) -> Result<usize> {
        Ok(usize::try_from(self.file.message_count()?).unwrap_or(usize::MAX))
    }

    /// The positions of the messages.
    pub fn message_layouts(&self) -> Result<Vec<MessageLayout>> {
        let scan = self.file.scan()?;
        let spans = scan.messages.iter();
        let layout = |span: &tercet_core::Span| {
            Some(MessageLayout { offset: usize::try_from(span.start()).ok()?, length: span.len_usize()? })
        };
        Ok(spans.filter_map(layout).collect())
    }

    /// Forgets the list of messages and opens the file again: it may have grown.
    pub fn invalidate_offsets(&mut self) -> Result<()> {
        self.file = Arc::new(File::open_with(self.source(), *self.file.options())?);
        Ok(())
    }

    /// The bytes of a message.
    pub fn read_message(&self, index: usize) -> Result<Vec<u8>> {
        Ok(self.file.read_message(index as u64)?.into())
    }

    fn message(&self, index: usize, options: &DecodeOptions) -> Result<Message> {
        Ok(self.file.message_with(
            index as u64,
            ReadOptions::from(options).with_access(self.file.options().common.access).with_allow_gaps(true),
        )?)
    }

    /// Decodes a message.
    pub fn decode_message(&self, index: usize, options: &DecodeOptions) -> Result<DecodedMessage> {
        let message = self.message(index, options)?;
        let objects = message.each_object(|object| Ok(decoded(object, options)))?;
        let objects = objects.into_iter().collect::<Result<_>>()?;
        Ok((message.metadata().clone().into(), objects))
    }

    /// The metadata of a message.
    pub fn decode_metadata(&self, index: usize) -> Result<GlobalMetadata> {
        Ok(self.file.message(index as u64)?.metadata().clone().into())
    }

    /// The metadata of a message and the descriptors of its objects.
    pub fn decode_descriptors(&self, index: usize) -> Result<(GlobalMetadata, Vec<DataObjectDescriptor>)> {
        let message = self.file.message(index as u64)?;
        let descriptors = message.objects().map(|object| object?.descriptor().clone().try_into());
        Ok((message.metadata().clone().into(), descriptors.collect::<Result<_>>()?))
    }

    /// Decodes one object of a message.
    pub fn decode_object(
        &self,
        index: usize,
        object: usize,
        options: &DecodeOptions,
    ) -> Result<ObjectOfMessage> {
        let message = self.message(index, options)?;
        let (descriptor, values) = decoded(&message.object(object as u64)?, options)?;
        Ok((message.metadata().clone().into(), descriptor, values))
    }

    /// Decodes ranges of elements, each an offset and a count, of one object of a message.
    pub fn decode_range(
        &self,
        index: usize,
        object: usize,
        ranges: &[(u64, u64)],
        options: &DecodeOptions,
    ) -> Result<(DataObjectDescriptor, Vec<Vec<u8>>)> {
        let message = self.message(index, options)?;
        decoded_ranges(&message.object(object as u64)?, ranges, options)
    }

    /// Decodes the same object of several messages, in parallel. Reads of a remote file are coalesced.
    pub fn decode_object_batch(
        &self,
        messages: &[usize],
        object: usize,
        options: &DecodeOptions,
    ) -> Result<Vec<DecodedObject>> {
        let wanted = Wanted::Object(object as u64);
        self.batch(messages, options, wanted, |message| decoded(&message.object(object as u64)?, options))
    }

    /// Decodes the same ranges of the same object of several messages, in parallel. Reads of a remote file are coalesced.
    pub fn decode_range_batch(
        &self,
        messages: &[usize],
        object: usize,
        ranges: &[(u64, u64)],
        options: &DecodeOptions,
    ) -> Result<Vec<(DataObjectDescriptor, Vec<Vec<u8>>)>> {
        let spans: Vec<_> = ranges.iter().map(|&(start, count)| start..start.saturating_add(count)).collect();
        self.batch(messages, options, Wanted::Ranges(object as u64, &spans), |message| {
            decoded_ranges(&message.object(object as u64)?, ranges, options)
        })
    }

    fn batch<T: Send>(
        &self,
        messages: &[usize],
        options: &DecodeOptions,
        wanted: Wanted<'_>,
        work: impl Fn(&Message) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let messages: Vec<u64> = messages.iter().map(|&message| message as u64).collect();
        let options = ReadOptions::from(options).with_access(self.file.options().common.access);
        let file = File::clone(&self.file).with_options(options.with_allow_gaps(true));
        let done = file.read_of(&messages, wanted, |message| Ok(work(message)))?;
        done.into_iter().collect()
    }

    /// The bytes of all messages.
    pub fn messages(&self) -> Result<Vec<Vec<u8>>> {
        self.iter()?.collect()
    }

    /// Iterates over the bytes of the messages.
    pub fn iter(&self) -> Result<FileMessageIter<'_>> {
        Ok(FileMessageIter { file: self, numbers: 0..self.message_count()? })
    }
}

/// Iterator over the bytes of the messages of a file: see [`TensogramFile::iter`].
#[derive(Clone, Debug)]
pub struct FileMessageIter<'a> {
    file: &'a TensogramFile,
    numbers: std::ops::Range<usize>,
}

impl Iterator for FileMessageIter<'_> {
    type Item = Result<Vec<u8>, TensogramError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.numbers.next().map(|index| self.file.read_message(index))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.numbers.size_hint()
    }
}

impl ExactSizeIterator for FileMessageIter<'_> {}

/// Async variants, with the feature `async`: the work runs on tokio's blocking pool.
#[cfg(feature = "async")]
impl TensogramFile {
    async fn off_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let file = self.clone();
        crate::asynchronous::off_thread(move || work(&file)).await.map_err(crate::error::ErrorKind::from)?
    }

    /// Opens a file without blocking the runtime.
    pub async fn open_async(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Ok(Self {
            path: path.to_owned(),
            file: Arc::new(File::open_async(path).await?.with_options(options())),
        })
    }

    /// The number of messages.
    pub async fn message_count_async(&self) -> Result<usize> {
        self.off_thread(Self::message_count).await
    }

    /// The bytes of a message.
    pub async fn read_message_async(&self, index: usize) -> Result<Vec<u8>> {
        self.off_thread(move |file| file.read_message(index)).await
    }

    /// Decodes a message.
    pub async fn decode_message_async(
        &self,
        index: usize,
        options: &DecodeOptions,
    ) -> Result<DecodedMessage> {
        let options = *options;
        self.off_thread(move |file| file.decode_message(index, &options)).await
    }

    /// The metadata of a message.
    pub async fn decode_metadata_async(&self, index: usize) -> Result<GlobalMetadata> {
        self.off_thread(move |file| file.decode_metadata(index)).await
    }

    /// The metadata of a message and the descriptors of its objects.
    pub async fn decode_descriptors_async(
        &self,
        index: usize,
    ) -> Result<(GlobalMetadata, Vec<DataObjectDescriptor>)> {
        self.off_thread(move |file| file.decode_descriptors(index)).await
    }

    /// Decodes one object of a message.
    pub async fn decode_object_async(
        &self,
        index: usize,
        object: usize,
        options: &DecodeOptions,
    ) -> Result<ObjectOfMessage> {
        let options = *options;
        self.off_thread(move |file| file.decode_object(index, object, &options)).await
    }

    /// Decodes ranges of elements of one object of a message.
    pub async fn decode_range_async(
        &self,
        index: usize,
        object: usize,
        ranges: &[(u64, u64)],
        options: &DecodeOptions,
    ) -> Result<(DataObjectDescriptor, Vec<Vec<u8>>)> {
        let (options, ranges) = (*options, ranges.to_vec());
        self.off_thread(move |file| file.decode_range(index, object, &ranges, &options)).await
    }
}
