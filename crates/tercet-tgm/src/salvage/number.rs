//! Object numbers of the frames of a damaged message.

use super::group::{Broken, Part};
use crate::index_and_hash::{HashFrame, IndexFrame};
use crate::metadata::{GlobalMetadata, RESERVED};
use crate::wire::frame::Frame;
use crate::wire::ids::FrameKind;

/// The information about objects in the intact frames of a damaged message.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) index: Option<IndexFrame>,
    pub(super) hashes: Option<HashFrame>,
    pub(super) metadata: Option<GlobalMetadata>,
}

/// The object numbers of a damaged message.
#[derive(Debug)]
pub(super) struct Numbers {
    /// The number of each object found, intact or not; `None` if unknown.
    pub(super) of: Vec<Option<u64>>,
    /// The number of objects of the original message, if known.
    pub(super) total: Option<u64>,
}

impl Lists {
    /// These values, or those of `other` where they are missing.
    pub(super) fn or(self, others: Self) -> Self {
        Self {
            index: self.index.or(others.index),
            hashes: self.hashes.or(others.hashes),
            metadata: self.metadata.or(others.metadata),
        }
    }

    /// The number of objects of the message.
    fn total(&self) -> Option<u64> {
        // A writer that adds `_reserved_` entries writes one for each object.
        let entries = self.metadata.as_ref().map(|metadata| &metadata.base);
        let entries =
            entries.filter(|base| !base.is_empty() && base.iter().all(|entry| entry.contains_key(RESERVED)));
        let index = self.index.as_ref().map(|index| index.offsets.len() as u64);
        let hashes = self.hashes.as_ref().map(|list| list.hashes.len() as u64);
        index.or(hashes).or(entries.map(|base| base.len() as u64))
    }
}

impl Numbers {
    /// Numbers the object frames of a message, in file order.
    pub(super) fn assign(broken: &Broken, lists: &Lists) -> Self {
        let frames: Vec<&Frame> = broken.objects().collect();
        let (mut of, counted) = count(broken, frames.len());
        let total = lists.total().or(counted);
        if let Some(by_place) = by_index(broken, lists, &frames) {
            return Self { of: by_place, total };
        }
        // If all are present, they are in order, unless a list contradicts.
        if total == Some(frames.len() as u64) && is_in_order(broken, lists, &frames) {
            return Self { of: (0..frames.len() as u64).map(Some).collect(), total };
        }
        from_the_end(broken, total, &mut of);
        by_hash(lists, &frames, total, &mut of);
        if let Some(total) = total {
            for number in &mut of {
                *number = number.filter(|number| *number < total);
            }
        }
        Self { of, total }
    }
}

fn object(part: &Part) -> Option<&Frame> {
    match part {
        Part::Frame { frame, .. } | Part::Damaged { frame, .. } => {
            Some(frame).filter(|frame| frame.kind == FrameKind::NTensor)
        }
        Part::Gap(_) => None,
    }
}

/// Whether the frames may be all objects of a message, from the first to the last.
fn is_in_order(broken: &Broken, lists: &Lists, frames: &[&Frame]) -> bool {
    if let Some(list) = &lists.hashes {
        let fits = |(frame, listed): (&&Frame, &String)| {
            frame.hash().is_none_or(|hash| format!("{hash:016x}") == *listed)
        };
        return frames.iter().zip(&list.hashes).all(fits);
    }
    // An index that matches none of them may belong to another message, with a gap between.
    let has_places = broken.start.is_some() && lists.index.is_some();
    !has_places || !broken.parts.iter().any(is_unclear)
}

/// Whether the number of objects in a part is unknown. The type of a damaged frame may be damaged.
fn is_unclear(part: &Part) -> bool {
    match part {
        Part::Frame { .. } => false,
        Part::Damaged { frame, .. } => frame.kind != FrameKind::NTensor,
        Part::Gap(_) => true,
    }
}

/// Numbers objects from the start up to the first unclear part; all of them if there is none.
fn count(broken: &Broken, objects: usize) -> (Vec<Option<u64>>, Option<u64>) {
    let mut of = Vec::with_capacity(objects);
    let mut next = broken.start.map(|_| 0);
    for part in &broken.parts {
        if is_unclear(part) {
            next = None;
        }
        if object(part).is_some() {
            of.push(next);
            next = next.map(|next| next + 1);
        }
    }
    (of, next.filter(|_| broken.is_ended))
}

/// Numbers objects by their offsets in the index; none if the index lists other offsets.
fn by_index(broken: &Broken, lists: &Lists, frames: &[&Frame]) -> Option<Vec<Option<u64>>> {
    let (start, index) = (broken.start?, lists.index.as_ref()?);
    let number = |frame: &&Frame| {
        let offset = frame.span.start().checked_sub(start)?;
        let at = index.offsets.binary_search(&offset).ok()?;
        Some(at as u64).filter(|_| index.lengths.get(at) == Some(&frame.span.len()))
    };
    let of: Vec<Option<u64>> = frames.iter().map(number).collect();
    // After a shift, frames may be at offsets of other objects in the index; hashes decide.
    let fits = |(number, frame): (&Option<u64>, &&Frame)| match (number, frame.hash(), &lists.hashes) {
        (Some(number), Some(hash), Some(list)) => {
            let listed = usize::try_from(*number).ok().and_then(|number| list.hashes.get(number));
            listed.is_none_or(|listed| *listed == format!("{hash:016x}"))
        }
        _ => true,
    };
    let is_right = of.iter().zip(frames).all(fits);
    (is_right && of.iter().any(Option::is_some)).then_some(of)
}

/// Numbers objects from the end, if the end and the number of objects are known.
fn from_the_end(broken: &Broken, total: Option<u64>, of: &mut [Option<u64>]) {
    let footer = |part: &Part| {
        use FrameKind::{FooterHash, FooterIndex, FooterMetadata};
        matches!(part, Part::Frame { frame, .. } if matches!(frame.kind, FooterHash | FooterIndex | FooterMetadata))
    };
    let has_footer = broken.parts.iter().any(footer);
    if !broken.is_ended && !has_footer {
        return;
    }
    let mut next = total;
    let mut numbers = of.iter_mut().rev();
    for part in broken.parts.iter().rev() {
        if is_unclear(part) {
            return;
        }
        if object(part).is_some() {
            next = next.and_then(|next| next.checked_sub(1));
            if let Some(number) = numbers.next() {
                *number = number.or(next);
            }
        }
    }
}

/// Numbers objects by the hash list, if a hash is unique between the numbers around it.
fn by_hash(lists: &Lists, frames: &[&Frame], total: Option<u64>, of: &mut [Option<u64>]) {
    let Some(list) = &lists.hashes else { return };
    let total = total.unwrap_or(list.hashes.len() as u64);
    let mut message_table: std::collections::BTreeMap<&str, Vec<u64>> = std::collections::BTreeMap::new();
    for (hash, number) in list.hashes.iter().zip(0..total) {
        message_table.entry(hash).or_default().push(number);
    }
    let mut above = vec![total; of.len()];
    let mut next = total;
    for (above, number) in above.iter_mut().zip(of.iter()).rev() {
        *above = next;
        next = number.unwrap_or(next);
    }
    let mut below = None;
    for ((number, frame), above) in of.iter_mut().zip(frames).zip(above) {
        if number.is_none()
            && let Some(hash) = frame.hash()
            && let Some(message_table) = message_table.get(&*format!("{hash:016x}"))
        {
            let first = below.map_or(0, |below: u64| below + 1);
            let from = message_table.partition_point(|&offset| offset < first);
            let to = message_table.partition_point(|&offset| offset < above);
            if to.saturating_sub(from) == 1 {
                *number = message_table.get(from).copied();
            }
        }
        below = number.or(below);
    }
}
