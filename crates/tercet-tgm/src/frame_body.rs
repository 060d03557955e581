//! The contents of metadata, index, hash and preceder frames.

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

/// The parsed body of a frame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    Metadata(GlobalMetadata),
    Preceder(Entry),
    Index(IndexFrame),
    Hashes(HashFrame),
}

impl Body {
    /// Parses the body of a frame that is not a data object; also returns the length of the CBOR. The format allows bytes
    /// after it.
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

/// The memory budget for the metadata of one message.
pub(crate) fn budget(options: &ReadOptions) -> Budget {
    Budget::new("metadata", options.common.limits.metadata_bytes)
}

/// The contents of all frames except objects, collected in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// The first copy, if there are several.
    first: Option<GlobalMetadata>,
    last: Option<GlobalMetadata>,
    /// The frame of the current metadata.
    position: Option<(Region, Span)>,
    preceders: Vec<(u32, Entry)>,
    lists: Vec<(Frame, Body)>,
}

impl Contents {
    /// Adds the contents of a frame.
    pub(crate) fn add(&mut self, message: u64, frame: &Frame, body: Body) {
        match body {
            Body::Metadata(metadata) => {
                let before = self.last.replace(metadata);
                if self.first.is_none() {
                    self.first = before;
                }
                self.position = Some((frame.region(message), frame.body()));
            }
            Body::Preceder(entry) => self.preceders.push((frame.object, entry)),
            list => self.lists.push((*frame, list)),
        }
    }

    /// The metadata of the message: the last copy, an entry for each object, preceders merged into the entries.
    ///
    /// Moves it out of the collection.
    pub(crate) fn take_metadata(
        &mut self,
        message: u64,
        message_span: Span,
        objects: u64,
    ) -> Result<GlobalMetadata, ErrorKind> {
        let first = if self.has_bare_copy(objects) { self.last.clone() } else { None };
        let Some(mut metadata) = self.last.take() else {
            let (region, span) = (Region { message, part: Part::Preamble }, message_span);
            return Err(ErrorKind::Contradiction { region, span, what: Contradiction::NoMetadata });
        };
        let found = metadata.base.len() as u64;
        if found > objects {
            let (region, span) =
                self.position.unwrap_or((Region { message, part: Part::Preamble }, message_span));
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

    /// Whether the only copy of the metadata lacks entries or preceders.
    fn has_bare_copy(&self, objects: u64) -> bool {
        let entries = self.last.as_ref().map_or(0, |metadata| metadata.base.len() as u64);
        self.first.is_none() && (!self.preceders.is_empty() || entries != objects)
    }

    /// The first copy of the metadata, if it differs from the final one: what is known before the objects.
    pub(crate) fn take_first(&mut self) -> Option<GlobalMetadata> {
        self.first.take()
    }

    /// The index, if all copies are equal.
    pub(crate) fn index(&self) -> Option<&IndexFrame> {
        let mut indexes = self.lists.iter().filter_map(|(_, body)| match body {
            Body::Index(index) => Some(index),
            _ => None,
        });
        let first = indexes.next()?;
        indexes.all(|index| index == first).then_some(first)
    }

    /// The hash lists with their frames.
    pub(crate) fn hash_lists(&self) -> impl Iterator<Item = (&Frame, &HashFrame)> {
        self.lists.iter().filter_map(|(frame, body)| match body {
            Body::Hashes(list) => Some((frame, list)),
            _ => None,
        })
    }

    /// All contradictions of lists, preamble and postamble.
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

    /// Rejects a message with contradictions, unless the options allow them.
    pub(crate) fn check(&self, layout: &Layout, options: &ReadOptions) -> Result<(), ErrorKind> {
        if options.common.verify {
            consistency::check_announced_hash(layout)?;
        }
        if options.strict
            && let Some(found) = self.inconsistencies(layout).into_iter().next()
        {
            return Err(found.into());
        }
        Ok(())
    }
}
