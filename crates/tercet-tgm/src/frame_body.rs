//! What the frames around the objects say.

use tercet_core::{Budget, Span};

use crate::cbor;
use crate::consistency;
use crate::error::{Contradiction, ErrorKind};
use crate::index_and_hash::{HashFrame, IndexFrame};
use crate::layout::Layout;
use crate::metadata::{Entry, GlobalMetadata, MetadataError, preceder_entry};
use crate::options::ReadOptions;
use crate::region::{Part, Region};
use crate::wire::frame::Frame;
use crate::wire::ids::FrameKind;

/// The body of a frame, understood.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    Metadata(GlobalMetadata),
    Preceder(Entry),
    Index(IndexFrame),
    Hashes(HashFrame),
}

impl Body {
    /// Understands the body of a frame that is no data object; returns how many of its bytes were the CBOR too. Bytes
    /// after it are allowed by the format.
    pub(crate) fn parse(
        message: u64,
        frame: &Frame,
        bytes: &[u8],
        budget: &Budget,
    ) -> Result<(Self, usize), ErrorKind> {
        let (region, span) = (frame.region(message), frame.body());
        let (value, used) =
            cbor::decode(bytes, budget).map_err(|error| ErrorKind::Cbor { region, span, error })?;
        let wrong = |error: MetadataError| ErrorKind::Metadata { region, span, error };
        let body = match frame.kind {
            FrameKind::HeaderMetadata | FrameKind::FooterMetadata | FrameKind::NTensor => {
                GlobalMetadata::from_value(value).map(Self::Metadata).map_err(wrong)
            }
            FrameKind::PrecederMetadata => preceder_entry(value).map(Self::Preceder).map_err(wrong),
            FrameKind::HeaderIndex | FrameKind::FooterIndex => {
                IndexFrame::from_value(value).map(Self::Index).map_err(wrong)
            }
            FrameKind::HeaderHash | FrameKind::FooterHash => {
                HashFrame::from_value(value).map(Self::Hashes).map_err(wrong)
            }
        };
        body.map(|body| (body, used))
    }
}

/// An allowance for the metadata of one message.
pub(crate) fn budget(options: &ReadOptions) -> Budget {
    Budget::new("metadata", options.limits.metadata_bytes)
}

/// Everything that the frames around the objects say, collected while they come by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// The first copy, if there is more than one.
    first: Option<GlobalMetadata>,
    last: Option<GlobalMetadata>,
    /// The frame of the metadata that counts.
    place: Option<(Region, Span)>,
    preceders: Vec<(u32, Entry)>,
    lists: Vec<(Frame, Body)>,
}

impl Contents {
    /// Adds what a frame says.
    pub(crate) fn add(&mut self, message: u64, frame: &Frame, body: Body) {
        match body {
            Body::Metadata(metadata) => {
                let before = self.last.replace(metadata);
                if self.first.is_none() {
                    self.first = before;
                }
                self.place = Some((frame.region(message), frame.body()));
            }
            Body::Preceder(entry) => self.preceders.push((frame.object, entry)),
            list => self.lists.push((*frame, list)),
        }
    }

    /// The metadata of the message: the last copy, an entry for each object, what preceded each merged into its entry.
    ///
    /// Taken out: what was collected is not needed any more.
    pub(crate) fn take_metadata(
        &mut self,
        message: u64,
        whole: Span,
        objects: u64,
    ) -> Result<GlobalMetadata, ErrorKind> {
        let first = if self.has_bare_copy(objects) { self.last.clone() } else { None };
        let Some(mut metadata) = self.last.take() else {
            let (region, span) = (Region { message, part: Part::Preamble }, whole);
            return Err(ErrorKind::Contradiction { region, span, what: Contradiction::NoMetadata });
        };
        let found = metadata.base.len() as u64;
        if found > objects {
            let (region, span) = self.place.unwrap_or((Region { message, part: Part::Preamble }, whole));
            let what = Contradiction::Count { what: "base", found, objects };
            return Err(ErrorKind::Contradiction { region, span, what });
        }
        metadata.base.resize_with(usize::try_from(objects).unwrap_or(usize::MAX), Entry::new);
        for (object, entry) in std::mem::take(&mut self.preceders) {
            metadata.merge_preceder(object as usize, entry);
        }
        self.first = self.first.take().or(first);
        Ok(metadata)
    }

    /// Whether the only copy of the metadata is not yet what the message says as a whole.
    fn has_bare_copy(&self, objects: u64) -> bool {
        let entries = self.last.as_ref().map_or(0, |metadata| metadata.base.len() as u64);
        self.first.is_none() && (!self.preceders.is_empty() || entries != objects)
    }

    /// The metadata as the first frame has it, where that differs from the whole: what can be known before the objects
    /// came.
    pub(crate) fn take_first(&mut self) -> Option<GlobalMetadata> {
        self.first.take()
    }

    /// What all indexes say, if they say the same.
    pub(crate) fn index(&self) -> Option<&IndexFrame> {
        let mut indexes = self.lists.iter().filter_map(|(_, body)| match body {
            Body::Index(index) => Some(index),
            _ => None,
        });
        let first = indexes.next()?;
        indexes.all(|index| index == first).then_some(first)
    }

    /// The lists of hashes, each with its frame.
    pub(crate) fn hash_lists(&self) -> impl Iterator<Item = (&Frame, &HashFrame)> {
        self.lists.iter().filter_map(|(frame, body)| match body {
            Body::Hashes(list) => Some((frame, list)),
            _ => None,
        })
    }

    /// Every list whose numbers the frames deny, and everything preamble and postamble say that is not so.
    pub(crate) fn inconsistencies(&self, layout: &Layout) -> Vec<consistency::Inconsistency> {
        let mut found = consistency::outer(layout);
        for (frame, body) in &self.lists {
            found.extend(match body {
                Body::Index(index) => consistency::index(layout, frame, index),
                Body::Hashes(list) => consistency::hashes(layout, frame, list),
                Body::Metadata(_) | Body::Preceder(_) => None,
            });
        }
        found
    }

    /// Refuses a message that contradicts itself, unless the options say otherwise.
    pub(crate) fn check(&self, layout: &Layout, options: &ReadOptions) -> Result<(), ErrorKind> {
        if options.verify {
            consistency::check_promise(layout)?;
        }
        if options.strict
            && let Some(found) = self.inconsistencies(layout).into_iter().next()
        {
            return Err(found.into());
        }
        Ok(())
    }
}
