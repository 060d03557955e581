//! Which object of its message a frame is.

use super::group::{Broken, Part};
use crate::index_and_hash::{HashFrame, IndexFrame};
use crate::metadata::{GlobalMetadata, RESERVED};
use crate::wire::frame::Frame;
use crate::wire::ids::FrameKind;

/// What the intact frames of a damaged message say about its objects.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) index: Option<IndexFrame>,
    pub(super) hashes: Option<HashFrame>,
    pub(super) metadata: Option<GlobalMetadata>,
}

/// The numbers of the objects of a damaged message.
#[derive(Debug)]
pub(super) struct Numbers {
    /// For each object that is there, intact or not, its number; `None` where it is unknown.
    pub(super) of: Vec<Option<u64>>,
    /// How many there were, if that is known.
    pub(super) total: Option<u64>,
}

impl Lists {
    /// What these say, and where they say nothing the others.
    pub(super) fn or(self, others: Self) -> Self {
        Self {
            index: self.index.or(others.index),
            hashes: self.hashes.or(others.hashes),
            metadata: self.metadata.or(others.metadata),
        }
    }

    /// How many objects the message had.
    fn total(&self) -> Option<u64> {
        // A writer that enriches its metadata has an entry for each object, and each says so.
        let entries = self.metadata.as_ref().map(|metadata| &metadata.base);
        let entries =
            entries.filter(|base| !base.is_empty() && base.iter().all(|entry| entry.contains_key(RESERVED)));
        let index = self.index.as_ref().map(|index| index.offsets.len() as u64);
        let hashes = self.hashes.as_ref().map(|list| list.hashes.len() as u64);
        index.or(hashes).or(entries.map(|base| base.len() as u64))
    }
}

impl Numbers {
    /// Numbers the object frames of a message, in the order of their bytes.
    pub(super) fn assign(broken: &Broken, lists: &Lists) -> Self {
        let frames: Vec<&Frame> = broken.objects().collect();
        let (mut of, counted) = count(broken, frames.len());
        let total = lists.total().or(counted);
        if let Some(by_place) = by_index(broken, lists, &frames) {
            return Self { of: by_place, total };
        }
        // If all are there they are in order, unless a list says that these are others.
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

/// Whether nothing speaks against frames being all objects of a message, from the first to the last.
fn is_in_order(broken: &Broken, lists: &Lists, frames: &[&Frame]) -> bool {
    if let Some(list) = &lists.hashes {
        let fits = |(frame, listed): (&&Frame, &String)| {
            frame.hash().is_none_or(|hash| format!("{hash:016x}") == *listed)
        };
        return frames.iter().zip(&list.hashes).all(fits);
    }
    // An index that knows none of them may be that of another message, with a gap in between.
    let has_places = broken.start.is_some() && lists.index.is_some();
    !has_places || !broken.parts.iter().any(is_unclear)
}

/// Whether the number of objects of a part is unknown. A damaged frame may have a damaged type.
fn is_unclear(part: &Part) -> bool {
    match part {
        Part::Frame { .. } => false,
        Part::Damaged { frame, .. } => frame.kind != FrameKind::NTensor,
        Part::Gap(_) => true,
    }
}

/// Counts objects from the start, as far as nothing is unclear; all of them if nothing is up to the end.
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

/// Numbers by the places that the index states; nothing if it lists other places than these.
fn by_index(broken: &Broken, lists: &Lists, frames: &[&Frame]) -> Option<Vec<Option<u64>>> {
    let (start, index) = (broken.start?, lists.index.as_ref()?);
    let number = |frame: &&Frame| {
        let offset = frame.span.start().checked_sub(start)?;
        let at = index.offsets.binary_search(&offset).ok()?;
        Some(at as u64).filter(|_| index.lengths.get(at) == Some(&frame.span.len()))
    };
    let of: Vec<Option<u64>> = frames.iter().map(number).collect();
    // Bytes that moved may be where the index lists others; the hashes know better.
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

/// Counts objects from the end, if that is there and it is known how many there were.
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

/// Numbers by the list of hashes, where there is only one place for a hash between the numbers around it.
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
            let from = message_table.partition_point(|&place| place < first);
            let to = message_table.partition_point(|&place| place < above);
            if to.saturating_sub(from) == 1 {
                *number = message_table.get(from).copied();
            }
        }
        below = number.or(below);
    }
}
