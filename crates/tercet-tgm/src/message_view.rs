//! Messages in borrowed buffers.

use rayon::prelude::*;
use tercet_core::source::Slice;
use tercet_core::threads::install;
use tercet_core::{ByteSource, Span, Tensor};

use crate::error::{Error, ErrorKind};
use crate::layout::Layout;
use crate::message::read_contents;
use crate::metadata::GlobalMetadata;
use crate::object::Object;
use crate::options::ReadOptions;
use crate::verification_cache::VerificationCache;
use crate::window::Window;

/// A message in a borrowed buffer: a [`Message`](crate::Message) without a copy of its bytes.
///
/// ```
/// use tercet_tgm::{DataObjectDescriptor, DType, EncodeOptions, GlobalMetadata, MessageView, encode_message};
///
/// let descriptor = DataObjectDescriptor::new(DType::U8, [3]);
/// let bytes = encode_message(&GlobalMetadata::default(), &[(&descriptor, &[7, 8, 9])], &EncodeOptions::new())?;
/// let message = MessageView::open("example", &bytes)?;
/// assert_eq!(message.object(0)?.decode_to_vec()?, [7, 8, 9]);
/// # Ok::<(), tercet_tgm::Error>(())
/// ```
#[derive(Debug)]
pub struct MessageView<'a> {
    source: Slice<'a>,
    options: ReadOptions,
    verification_cache: VerificationCache,
    layout: Layout,
    metadata: GlobalMetadata,
}

impl<'a> MessageView<'a> {
    /// Opens the first message of a buffer. `name` appears in errors.
    pub fn open(name: &str, buffer: &'a [u8]) -> Result<Self, Error> {
        Self::open_with(name, buffer, ReadOptions::new())
    }

    /// Opens the first message of a buffer.
    pub fn open_with(name: &str, buffer: &'a [u8], options: ReadOptions) -> Result<Self, Error> {
        let source = Slice::new(name, buffer);
        match Self::read(&source, options) {
            Ok((layout, metadata)) => Ok(Self {
                source,
                options,
                verification_cache: VerificationCache::default(),
                layout,
                metadata,
            }),
            Err(fault) => Err(Error::new(source.name().clone(), fault)),
        }
    }

    fn read(source: &Slice<'_>, options: ReadOptions) -> Result<(Layout, GlobalMetadata), ErrorKind> {
        let mut window = Window::up_to(source, source.len())?;
        let layout = Layout::read(&mut window, 0, Span::first(source.len()), &options)?;
        let mut contents = read_contents(&mut window, &layout, &options)?;
        let metadata = contents.take_metadata(0, layout.span, layout.object_count())?;
        Ok((layout, metadata))
    }

    /// The byte layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The metadata: see [`Message::metadata`](crate::Message::metadata).
    pub fn metadata(&self) -> &GlobalMetadata {
        &self.metadata
    }

    /// The metadata, without the message.
    pub fn into_metadata(self) -> GlobalMetadata {
        self.metadata
    }

    /// The number of objects.
    pub fn object_count(&self) -> u64 {
        self.layout.object_count()
    }

    /// An object. Its descriptor is read, its payload not yet.
    pub fn object(&self, index: u64) -> Result<Object<'_>, Error> {
        let open = || {
            let frame = *self.layout.object(index)?;
            Object::open(&self.source, &self.options, &self.verification_cache, 0, frame)
        };
        let opened = open().map(|object| object.with_trusted_offsets(self.metadata.is_ours()));
        opened.map_err(|fault| Error::new(self.source.name().clone(), fault))
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
}
