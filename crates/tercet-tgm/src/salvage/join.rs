//! Joining of fragments into messages.
//!
//! After a gap the next message may have started, with a lost preamble. A fragment after a gap belongs to a fragment
//! before it only if offsets show that both count from the same start; then so does everything between them.
//! Otherwise each fragment becomes a message of its own: no object gets metadata of another message.

use std::collections::{BTreeMap, BTreeSet};

use tercet_core::Span;

use super::group::{Broken, Part};
use super::rebuild::{FrameContents, overlaps_listed_object};
use crate::index_and_hash::IndexFrame;
use crate::wire::frame::Frame;
use crate::wire::ids::{FrameKind, POSTAMBLE_LEN};
use crate::wire::order::DecodePhase;

/// Adjacent frames, and the contents of those that are not objects.
#[derive(Debug)]
pub(super) struct Fragment {
    pub(super) broken: Broken,
    pub(super) contents: FrameContents,
}

/// The number of footer frames that are tried as the first one.
const MAX_FOOTERS: usize = 8;

/// Joins the fragments of each message. They are in file order, with gaps between them.
pub(super) fn join(chain: Vec<Fragment>) -> Vec<Fragment> {
    if chain.len() < 2 {
        return chain;
    }
    // The last fragment with a given start, and the fragments with objects.
    let mut ends: BTreeMap<u64, usize> = BTreeMap::new();
    let mut objects: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    for (at, fragment) in chain.iter().enumerate() {
        ends.extend(fragment.origins().into_iter().map(|origin| (origin, at)));
        objects.extend(fragment.broken.objects().map(|frame| (frame.span.start(), (frame.span.len(), at))));
    }
    let mut last: Vec<usize> = Vec::with_capacity(chain.len());
    for (at, fragment) in chain.iter().enumerate() {
        let by_place = fragment.origin().and_then(|origin| {
            // Offsets alone may match another message, after bytes between them were lost: hashes verify the objects.
            let index = fragment.contents.index().filter(|_| fragment.contents.hashes().is_some());
            let known = index.into_iter().flat_map(|index| index.offsets.iter().zip(&index.lengths));
            let found = known.filter_map(|(offset, len)| {
                let (there, at) = objects.get(&origin.checked_add(*offset)?)?;
                (there == len).then_some(*at)
            });
            found.chain(ends.get(&origin).copied()).max()
        });
        let by_end = chain.get(at + 1).filter(|next| fragment.ends_with(&next.broken)).map(|_| at + 1);
        last.push(by_place.max(by_end).unwrap_or(at).max(at));
    }
    let phases: Vec<_> = chain.iter().map(|fragment| fragment.broken.phases()).collect();
    let mut joined: Vec<Fragment> = Vec::new();
    let mut until = 0;
    for (at, fragment) in chain.into_iter().enumerate() {
        if let Some(open) = joined.last_mut().filter(|_| at <= until && at > 0) {
            open.broken.extend(fragment.broken);
            open.contents.extend(fragment.contents);
            continue;
        }
        until = last.get(at).copied().unwrap_or(at);
        let inside = phases.get(at..=until).unwrap_or_default();
        if !inside.iter().flatten().is_sorted_by(|before, next| before.1 <= next.0) {
            // Phases of a message do not repeat: matching offsets belong to two messages.
            until = at;
        }
        joined.push(fragment);
    }
    joined
}

impl Fragment {
    /// The start of its message, if it is unique.
    fn origin(&self) -> Option<u64> {
        let all: BTreeSet<u64> = self.origins().into_iter().collect();
        self.broken.start.or(all.first().copied().filter(|_| all.len() == 1))
    }

    /// The possible starts of its message.
    fn origins(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.broken.start.into_iter().collect();
        if let Some(postamble) = self.broken.postamble {
            let end = self.broken.span.end();
            all.extend(end.checked_sub(postamble.total_length).filter(|_| postamble.total_length > 0));
            let footers = self.broken.parts.iter().filter(|part| is_footer(part)).take(MAX_FOOTERS);
            all.extend(
                footers.filter_map(|part| part.span().start().checked_sub(postamble.first_footer_offset)),
            );
        }
        all.extend(self.contents.index().and_then(|index| by_index(&self.broken, index)));
        all
    }

    /// Whether a lone postamble is the end of this fragment: its length is unknown, and the footer frames it refers to
    /// are in the gap.
    fn ends_with(&self, next: &Broken) -> bool {
        let (Some(start), Some(Part::Gap(gap)), Some(postamble)) =
            (self.broken.start, self.broken.parts.last(), next.postamble.filter(|_| next.parts.is_empty()))
        else {
            return false;
        };
        let footer = start.saturating_add(postamble.first_footer_offset);
        let postamble_at = next.span.end().saturating_sub(POSTAMBLE_LEN);
        postamble.total_length == 0 && gap.start() <= footer && footer <= postamble_at
    }

    /// Removes objects that do not match the hash list of the message around them: they belong to another
    /// message.
    pub(super) fn take_objects_of_another_message(&mut self) -> Option<Self> {
        let list = self.contents.hashes()?;
        let own: BTreeSet<&str> = list.hashes.iter().map(String::as_str).collect();
        let index = self.contents.index();
        let is_of_another_message = |broken: &Broken, frame: &Frame| {
            let is_other = frame.hash().is_some_and(|hash| !own.contains(&*format!("{hash:016x}")));
            // Frames inside a payload belong to no message; the index locates payloads.
            is_other
                && (is_listed_object(broken, index, frame) || !overlaps_listed_object(broken, index, frame))
        };
        let at: Vec<usize> = (0..)
            .zip(&self.broken.parts)
            .filter_map(|(at, part)| match part {
                Part::Frame { frame, .. }
                    if frame.kind == FrameKind::NTensor && is_of_another_message(&self.broken, frame) =>
                {
                    Some(at)
                }
                _ => None,
            })
            .collect();
        let (first, last) = (*at.first()?, *at.last()?);
        let mut parts = Vec::with_capacity(at.len());
        for at in at {
            if let Some(part) = self.broken.parts.get_mut(at) {
                let gap = Part::Gap(part.span());
                parts.push(std::mem::replace(part, gap));
            }
        }
        let span_of = |at: usize| self.broken.parts.get(at).map_or(self.broken.span, Part::span);
        let span = Span::between(span_of(first).start(), span_of(last).end()).unwrap_or(self.broken.span);
        let broken = Broken { span, start: None, is_framed: false, is_ended: false, postamble: None, parts };
        Some(Self { broken, contents: FrameContents::default() })
    }
}

fn is_footer(part: &Part) -> bool {
    matches!(part, Part::Frame { frame, .. } if DecodePhase::for_frame(frame.kind) == DecodePhase::Footer)
}

/// Whether the index lists an object of this length at this offset.
fn is_listed_object(broken: &Broken, index: Option<&IndexFrame>, frame: &Frame) -> bool {
    let (Some(start), Some(index)) = (broken.start, index) else { return false };
    frame.span.start().checked_sub(start).is_some_and(|offset| fits(index, offset, frame.span.len()))
}

fn fits(index: &IndexFrame, offset: u64, len: u64) -> bool {
    let at = index.offsets.binary_search(&offset).ok();
    at.and_then(|at| index.lengths.get(at)) == Some(&len)
}

/// The start of the message from the offsets of its first and last object, if it is unique.
fn by_index(broken: &Broken, index: &IndexFrame) -> Option<u64> {
    let (first, last) = (broken.objects().next()?.span, broken.objects().next_back()?.span);
    let message_table = index.offsets.iter().zip(&index.lengths).filter(|(_, len)| **len == first.len());
    let starts = message_table.filter_map(|(offset, _)| first.start().checked_sub(*offset));
    let mut starts =
        starts.filter(|start| last.start().checked_sub(*start).is_some_and(|at| fits(index, at, last.len())));
    let start = starts.next()?;
    starts.next().is_none().then_some(start)
}
