//! Which fragments of frames belong to one message.
//!
//! After a gap the next message may have begun, with a preamble that was lost. So what lies after one belongs to what
//! lies before it only where places tell that they count from the same start, and then so does everything in between.
//! Where nothing states, each fragment becomes a message of its own: no object gets what another message says.

use std::collections::{BTreeMap, BTreeSet};

use tercet_core::Span;

use super::group::{Broken, Part};
use super::rebuild::{FrameContents, is_foreign};
use crate::index_and_hash::IndexFrame;
use crate::wire::frame::Frame;
use crate::wire::ids::{FrameKind, POSTAMBLE_LEN};
use crate::wire::order::DecodePhase;

/// Frames that follow each other, and what those around the objects say.
#[derive(Debug)]
pub(super) struct Fragment {
    pub(super) broken: Broken,
    pub(super) said: FrameContents,
}

/// Footer frames that are tried as the first one.
const MAX_FOOTERS: usize = 8;

/// Puts fragments together that belong to one message. They are one after the other, with gaps in between.
pub(super) fn join(chain: Vec<Fragment>) -> Vec<Fragment> {
    if chain.len() < 2 {
        return chain;
    }
    // The last fragment that counts from a place, and the fragments in which objects are.
    let mut ends: BTreeMap<u64, usize> = BTreeMap::new();
    let mut objects: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    for (at, fragment) in chain.iter().enumerate() {
        ends.extend(fragment.origins().into_iter().map(|origin| (origin, at)));
        objects.extend(fragment.broken.objects().map(|frame| (frame.span.start(), (frame.span.len(), at))));
    }
    let mut last: Vec<usize> = Vec::with_capacity(chain.len());
    for (at, fragment) in chain.iter().enumerate() {
        let by_place = fragment.origin().and_then(|origin| {
            // Places alone may be those of another message, after bytes in between were lost: hashes prove the objects.
            let index = fragment.said.index().filter(|_| fragment.said.hashes().is_some());
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
            open.said.extend(fragment.said);
            continue;
        }
        until = last.get(at).copied().unwrap_or(at);
        let inside = phases.get(at..=until).unwrap_or_default();
        if !inside.iter().flatten().is_sorted_by(|before, next| before.1 <= next.0) {
            // Frames of a message do not come again: places that fit are those of two messages.
            until = at;
        }
        joined.push(fragment);
    }
    joined
}

impl Fragment {
    /// Where its message starts, if only one place fits.
    fn origin(&self) -> Option<u64> {
        let all: BTreeSet<u64> = self.origins().into_iter().collect();
        self.broken.start.or(all.first().copied().filter(|_| all.len() == 1))
    }

    /// The places from which it may count.
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
        all.extend(self.said.index().and_then(|index| by_index(&self.broken, index)));
        all
    }

    /// Whether a postamble of which nothing else is there is the end of this one: its length is not told, and the footer
    /// frames that it lists lie in the gap in between.
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

    /// Takes out objects that are not those of the message around them, by its list of hashes: bytes of another message
    /// are there.
    pub(super) fn take_foreign_objects(&mut self) -> Option<Self> {
        let list = self.said.hashes()?;
        let own: BTreeSet<&str> = list.hashes.iter().map(String::as_str).collect();
        let index = self.said.index();
        let is_stranger = |broken: &Broken, frame: &Frame| {
            let is_other = frame.hash().is_some_and(|hash| !own.contains(&*format!("{hash:016x}")));
            // Frames inside a payload are not of any message; the index knows where payloads are.
            is_other && (is_at_a_place(broken, index, frame) || !is_foreign(broken, index, frame))
        };
        let at: Vec<usize> = (0..)
            .zip(&self.broken.parts)
            .filter_map(|(at, part)| match part {
                Part::Frame { frame, .. }
                    if frame.kind == FrameKind::NTensor && is_stranger(&self.broken, frame) =>
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
        let place = |at: usize| self.broken.parts.get(at).map_or(self.broken.span, Part::span);
        let span = Span::between(place(first).start(), place(last).end()).unwrap_or(self.broken.span);
        let broken = Broken { span, start: None, is_framed: false, is_ended: false, postamble: None, parts };
        Some(Self { broken, said: FrameContents::default() })
    }
}

fn is_footer(part: &Part) -> bool {
    matches!(part, Part::Frame { frame, .. } if DecodePhase::for_frame(frame.kind) == DecodePhase::Footer)
}

/// Whether the index lists an object of this length in this place.
fn is_at_a_place(broken: &Broken, index: Option<&IndexFrame>, frame: &Frame) -> bool {
    let (Some(start), Some(index)) = (broken.start, index) else { return false };
    frame.span.start().checked_sub(start).is_some_and(|offset| fits(index, offset, frame.span.len()))
}

fn fits(index: &IndexFrame, offset: u64, len: u64) -> bool {
    let at = index.offsets.binary_search(&offset).ok();
    at.and_then(|at| index.lengths.get(at)) == Some(&len)
}

/// Where the message starts, by the places of its first and its last object, if only one place fits.
fn by_index(broken: &Broken, index: &IndexFrame) -> Option<u64> {
    let (first, last) = (broken.objects().next()?.span, broken.objects().next_back()?.span);
    let message_table = index.offsets.iter().zip(&index.lengths).filter(|(_, len)| **len == first.len());
    let starts = message_table.filter_map(|(offset, _)| first.start().checked_sub(*offset));
    let mut starts =
        starts.filter(|start| last.start().checked_sub(*start).is_some_and(|at| fits(index, at, last.len())));
    let start = starts.next()?;
    starts.next().is_none().then_some(start)
}
