//! Messages: metadata and objects.

use std::sync::Arc;

use bytes::Bytes;
use rayon::prelude::*;
use tercet_core::limits::check_limit;
use tercet_core::source::Memory;
use tercet_core::threads::install;
use tercet_core::{Budget, ByteSource, Span};

use crate::consistency::check_hash;
use crate::error::{Error, ErrorKind};
use crate::frame_body::{Body, Contents, budget};
use crate::indexed_message::IndexedMessage;
use crate::layout::Layout;
use crate::metadata::GlobalMetadata;
use crate::object::Object;
use crate::options::ReadOptions;
use crate::verification_cache::VerificationCache;
use crate::window::Window;
use crate::wire::frame::Frame;
use crate::wire::ids::FrameKind;
use tercet_core::Tensor;

/// A message whose framing and metadata are read and verified. Objects are read on request.
///
/// Opening reads headers and tails of frames and the frames around the objects, never a payload.
///
/// ```
/// use tercet_tgm::{DataObjectDescriptor, DType, EncodeOptions, GlobalMetadata, Message, encode_message};
///
/// let descriptor = DataObjectDescriptor::new(DType::U8, [3]);
/// let bytes = encode_message(&GlobalMetadata::default(), &[(&descriptor, &[7, 8, 9])], &EncodeOptions::new())?;
/// let message = Message::from_bytes("example", bytes)?;
/// assert_eq!(message.object(0)?.decode()?.bytes(), [7, 8, 9]);
/// # Ok::<(), tercet_tgm::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Message {
    source: Arc<dyn ByteSource>,
    options: ReadOptions,
    verification_cache: Arc<VerificationCache>,
    frames: Frames,
    /// The first copy of the metadata, if it differs from the final one.
    first_metadata: Option<GlobalMetadata>,
    metadata: GlobalMetadata,
}

/// The frames of a message.
#[derive(Clone, Debug)]
enum Frames {
    /// All frames were read.
    Walked(Layout),
    /// The frames around the objects were read; the index locates the objects.
    IndexedMessage(IndexedMessage),
}

impl Message {
    /// Opens the first message of a buffer. `name` appears in errors.
    pub fn from_bytes(name: &str, bytes: impl Into<Bytes>) -> Result<Self, Error> {
        Self::from_bytes_with(name, bytes, ReadOptions::new())
    }

    /// Opens the first message of a buffer.
    pub fn from_bytes_with(name: &str, bytes: impl Into<Bytes>, options: ReadOptions) -> Result<Self, Error> {
        let source: Arc<dyn ByteSource> = Arc::new(Memory::new(name, bytes));
        let span = Span::first(source.len());
        Self::open(source, 0, span, options)
    }

    /// Opens the message that starts at the start of `span` and ends inside it.
    pub fn open(
        source: Arc<dyn ByteSource>,
        number: u64,
        span: Span,
        options: ReadOptions,
    ) -> Result<Self, Error> {
        Self::open_known(source, number, span, options, Arc::default())
    }

    /// Opens a message of a file with its cache.
    pub(crate) fn open_known(
        source: Arc<dyn ByteSource>,
        number: u64,
        span: Span,
        options: ReadOptions,
        verification_cache: Arc<VerificationCache>,
    ) -> Result<Self, Error> {
        let name = source.name().clone();
        Self::read(source, number, span, options, verification_cache).map_err(|fault| Error::new(name, fault))
    }

    fn read(
        source: Arc<dyn ByteSource>,
        number: u64,
        span: Span,
        options: ReadOptions,
        verification_cache: Arc<VerificationCache>,
    ) -> Result<Self, ErrorKind> {
        let (frames, mut contents) = Self::frames(&*source, number, span, &options)?;
        let (message_span, objects) = match &frames {
            Frames::Walked(layout) => (layout.span, layout.object_count()),
            Frames::IndexedMessage(indexed) => (span, indexed.object_count()),
        };
        let metadata = contents.take_metadata(number, message_span, objects)?;
        let first_metadata = contents.take_first();
        Ok(Self { source, options, verification_cache, frames, first_metadata, metadata })
    }

    /// Finds the frames and reads those around the objects.
    fn frames(
        source: &dyn ByteSource,
        number: u64,
        span: Span,
        options: &ReadOptions,
    ) -> Result<(Frames, Contents), ErrorKind> {
        let mut window = Window::up_to(source, span.end())?;
        // Reading head and tail of every object is cheap, except for remote files.
        if source.is_remote()
            && let Some((indexed, contents)) = IndexedMessage::open(&mut window, number, span, options)?
        {
            return Ok((Frames::IndexedMessage(indexed), contents));
        }
        let layout = Layout::read(&mut window, number, span, options)?;
        let contents = read_contents(&mut window, &layout, options)?;
        Ok((Frames::Walked(layout), contents))
    }

    /// The location of the file or buffer.
    pub fn name(&self) -> &Arc<str> {
        self.source.name()
    }

    /// The byte source.
    pub(crate) fn source(&self) -> &Arc<dyn ByteSource> {
        &self.source
    }

    /// The number of the message in its file, from 0.
    pub fn number(&self) -> u64 {
        match &self.frames {
            Frames::Walked(layout) => layout.number,
            Frames::IndexedMessage(indexed) => indexed.number(),
        }
    }

    /// The byte range in the file.
    pub fn span(&self) -> Span {
        match &self.frames {
            Frames::Walked(layout) => layout.span,
            Frames::IndexedMessage(indexed) => indexed.span(),
        }
    }

    /// The read options.
    pub fn options(&self) -> &ReadOptions {
        &self.options
    }

    /// The byte layout. The first call for a remote message reads every frame header.
    pub fn layout(&self) -> Result<&Layout, Error> {
        match &self.frames {
            Frames::Walked(layout) => Ok(layout),
            Frames::IndexedMessage(indexed) => {
                indexed.layout(&*self.source, &self.options).map_err(|fault| self.error(fault))
            }
        }
    }

    /// The metadata: the last copy, with an entry of `base` for each object and preceders merged into the
    /// entries.
    pub fn metadata(&self) -> &GlobalMetadata {
        &self.metadata
    }

    /// The metadata of the first metadata frame: what a streaming writer knew before the objects.
    pub fn first_metadata(&self) -> &GlobalMetadata {
        self.first_metadata.as_ref().unwrap_or(&self.metadata)
    }

    /// The number of objects.
    pub fn object_count(&self) -> u64 {
        match &self.frames {
            Frames::Walked(layout) => layout.object_count(),
            Frames::IndexedMessage(indexed) => indexed.object_count(),
        }
    }

    /// The byte range of an object, from the index frame if the frame itself is not read yet.
    pub(crate) fn object_span(&self, index: u64) -> Option<Span> {
        match &self.frames {
            Frames::Walked(layout) => layout.object(index).ok().map(|frame| frame.span),
            Frames::IndexedMessage(indexed) => indexed.object_span(index),
        }
    }

    /// An object. Its descriptor is read, its payload not yet.
    pub fn object(&self, index: u64) -> Result<Object<'_>, Error> {
        let frame = match &self.frames {
            Frames::Walked(layout) => layout.object(index).copied(),
            Frames::IndexedMessage(indexed) => indexed.object(&*self.source, &self.options, index),
        };
        let frame = frame.map_err(|fault| self.error(fault))?;
        let opened =
            Object::open(&*self.source, &self.options, &self.verification_cache, self.number(), frame);
        // This library checks the szip offsets it writes, also in payloads that it did not encode.
        let opened = opened.map(|object| object.with_trusted_offsets(self.metadata.is_ours()));
        opened.map_err(|fault| self.error(fault))
    }

    /// Iterates over all objects.
    pub fn objects(&self) -> impl Iterator<Item = Result<Object<'_>, Error>> {
        (0..self.object_count()).map(|index| self.object(index))
    }

    /// Decodes all objects, in parallel.
    pub fn decode(&self) -> Result<Vec<Tensor>, Error> {
        #[expect(clippy::redundant_closure_for_method_calls, reason = "a method has one lifetime")]
        self.each_object(|object| object.decode())
    }

    /// Calls `work` for all objects, in parallel; the results are in order.
    pub(crate) fn each_object<T: Send>(
        &self,
        work: impl Fn(&Object<'_>) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let one = |index| self.object(index).and_then(|object| work(&object));
        let objects = 0..self.object_count();
        let done: Vec<_> =
            install(self.options.common.threads, || objects.into_par_iter().map(one).collect());
        done.into_iter().collect()
    }

    /// The bytes of the message.
    pub fn bytes(&self) -> Result<Bytes, Error> {
        let read = || {
            check_limit("the message", self.span().len(), self.options.common.limits.array_bytes)?;
            Ok(self.source.read_at(self.span())?)
        };
        read().map_err(|fault| self.error(fault))
    }

    fn error(&self, fault: ErrorKind) -> Error {
        Error::new(self.name().clone(), fault)
    }
}

/// Reads and checks the frames around the objects.
pub(crate) fn read_contents(
    window: &mut Window<'_>,
    layout: &Layout,
    options: &ReadOptions,
) -> Result<Contents, ErrorKind> {
    let budget = budget(options);
    let mut contents = Contents::default();
    for frame in layout.frames.iter().filter(|frame| frame.kind != FrameKind::NTensor) {
        read_frame(window, layout.number, frame, options, &budget, &mut contents)?;
    }
    contents.check(layout, options)?;
    Ok(contents)
}

/// Reads, verifies and parses a frame that is not an object.
pub(crate) fn read_frame(
    window: &mut Window<'_>,
    message: u64,
    frame: &Frame,
    options: &ReadOptions,
    budget: &Budget,
    contents: &mut Contents,
) -> Result<(), ErrorKind> {
    check_limit("a metadata frame", frame.span.len(), options.common.limits.metadata_bytes)?;
    let bytes = window.peek(frame.body().start(), frame.body().len())?;
    if options.common.verify {
        check_hash(message, frame, &bytes)?;
    }
    contents.add(message, frame, Body::parse(message, frame, &bytes, budget)?.0);
    Ok(())
}

/// The metadata of a message, for a caller that does not need its objects.
pub(crate) fn read_metadata(
    source: &dyn ByteSource,
    span: Span,
    options: &ReadOptions,
) -> Result<GlobalMetadata, ErrorKind> {
    read_numbered_metadata(source, 0, span, options)
}

/// [`read_metadata`] of a message whose number appears in errors.
pub(crate) fn read_numbered_metadata(
    source: &dyn ByteSource,
    number: u64,
    span: Span,
    options: &ReadOptions,
) -> Result<GlobalMetadata, ErrorKind> {
    let mut window = Window::up_to(source, span.end())?;
    let layout = Layout::read(&mut window, number, span, options)?;
    read_contents(&mut window, &layout, options)?.take_metadata(number, layout.span, layout.object_count())
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use tercet_core::progress::NoProgress;
    use tercet_testkit::pool_size::PoolSize;

    use super::*;
    use crate::{
        DType, DataObjectDescriptor, EncodeOptions, File, ValidateOptions, encode_message, validate_source,
    };

    #[test]
    fn the_threads_option_sets_the_pool() {
        let threads = NonZeroUsize::new(3);
        let descriptor = DataObjectDescriptor::new(DType::U8, [4]);
        let objects: [(&_, &[u8]); 2] = [(&descriptor, &[1; 4]), (&descriptor, &[2; 4])];
        let options = EncodeOptions::new().with_threads(threads);
        let bytes = encode_message(&GlobalMetadata::default(), &objects, &options).unwrap();
        let source = PoolSize::new("m", bytes);
        let options = ReadOptions::new().with_threads(threads);
        let file = File::from_source(source.clone(), options).unwrap();
        let message = file.messages().unwrap().next().unwrap().unwrap();
        assert_eq!(source.take(), 3, "opening");
        assert_eq!(message.decode().unwrap().len(), 2);
        assert_eq!(source.take(), 3, "message");
        let object = message.object(1).unwrap();
        source.take();
        assert_eq!(object.decode().unwrap().bytes(), [2; 4]);
        assert_eq!(source.take(), 3, "object");
        object.decode_ranges(std::slice::from_ref(&(1..2))).unwrap();
        assert_eq!(source.take(), 3, "ranges");
        let dynamic: Arc<dyn ByteSource> = source.clone();
        let options = ValidateOptions::new().with_threads(threads);
        assert!(validate_source(&dynamic, &options, &NoProgress).unwrap().is_ok());
        assert_eq!(source.take(), 3, "validation");
    }
}
