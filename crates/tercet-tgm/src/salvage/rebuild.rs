//! Rebuilding of a damaged message.

use std::sync::Arc;

use tercet_core::{ByteSource, Span};

use super::group::{Broken, Part};
use super::join::Fragment;
use super::number::{Lists, Numbers};
use super::report::{Loss, Lost, RepairedMessage, State};
use super::tokens::{body, damage_or};
use crate::edit::{MessageBuilder, RawObject};
use crate::encode::EncodeOptions;
use crate::error::{Error, ErrorKind};
use crate::frame_body::Body;
use crate::index_and_hash::{HashFrame, IndexFrame};
use crate::metadata::{Entry, GlobalMetadata, RESERVED};
use crate::object::Object;
use crate::options::ReadOptions;
use crate::verification_cache::VerificationCache;
use crate::wire::frame::Frame;
use crate::wire::ids::{FrameKind, POSTAMBLE_LEN};
use crate::wire::order::DecodePhase;

/// The maximum length of the end of a message without footer frames: padding and postamble.
const MAX_END: u64 = 7 + POSTAMBLE_LEN;

/// An object that is kept.
struct KeptObject {
    raw: RawObject,
    verified: bool,
    span: Span,
    number: Option<u64>,
    /// The preceder before it.
    preceder: Option<Entry>,
}

/// The contents of the intact frames of a damaged message.
#[derive(Debug, Default)]
pub(super) struct FrameContents {
    /// The first before the objects and the last after them: others are in a payload.
    pub(super) header: Lists,
    pub(super) footer: Lists,
    notes: Vec<String>,
}

impl FrameContents {
    /// Adds the contents of later frames.
    pub(super) fn extend(&mut self, next: Self) {
        self.header = std::mem::take(&mut self.header).or(next.header);
        self.footer = next.footer.or(std::mem::take(&mut self.footer));
        self.notes.extend(next.notes);
    }

    /// The index, if any.
    pub(super) fn index(&self) -> Option<&IndexFrame> {
        self.footer.index.as_ref().or(self.header.index.as_ref())
    }

    /// The hash list, if any.
    pub(super) fn hashes(&self) -> Option<&HashFrame> {
        self.footer.hashes.as_ref().or(self.header.hashes.as_ref())
    }
}

/// Builds a message of all intact parts, and lists the others.
pub(super) fn rebuild(
    source: &Arc<dyn ByteSource>,
    number: u64,
    fragment: Fragment,
    reading: &ReadOptions,
    writing: &EncodeOptions,
) -> Result<(RepairedMessage, Option<MessageBuilder>), Error> {
    let Fragment { broken, contents } = fragment;
    let broken = &broken.distrusted();
    // The metadata after the objects includes the preceders.
    let is_footer = contents.footer.metadata.is_some();
    let (lists, notes) = (contents.footer.or(contents.header), contents.notes);
    let numbers = Numbers::assign(broken, &lists);
    let mut lost = Vec::new();
    let kept = keep(source, number, broken, reading, &lists, &numbers, &mut lost)?;
    missing(broken, &lists, &numbers, &mut lost);
    lost.extend(unaccounted(broken, &lost));
    let (metadata, is_hashed) = metadata(broken, &lists, is_footer, &kept, &mut lost);
    let mut repaired = RepairedMessage {
        message: number,
        span: broken.span,
        state: if lost.is_empty() { State::Repaired } else { State::Damaged },
        output: None,
        objects_kept: kept.len() as u64,
        unverified: (0..).zip(&kept).filter(|(_, kept)| !kept.verified).map(|(at, _)| at).collect(),
        lost,
        notes,
    };
    repaired.notes.extend(outer_notes(broken));
    // A message without objects is kept for its metadata, or if it never had objects.
    let has_metadata = !metadata.extra.is_empty() || repaired.lost.is_empty();
    if kept.is_empty() && (lists.metadata.is_none() || broken.start.is_none() || !has_metadata) {
        if repaired.lost.is_empty() {
            repaired.lost.push(Loss {
                what: Lost::Bytes,
                object: None,
                span: broken.span,
                reason: "these are frames of a message of which nothing else is intact".to_owned(),
            });
        }
        repaired.state = State::Lost;
        return Ok((repaired, None));
    }
    let options = writing.clone().with_hash(is_hashed);
    let objects = kept.into_iter().map(|kept| kept.raw).collect();
    let draft = MessageBuilder::new(source.name(), metadata, objects, &options)?;
    Ok((repaired, Some(draft)))
}

/// Reads the frames that are not objects.
pub(super) fn read_contents(
    source: &Arc<dyn ByteSource>,
    number: u64,
    broken: &Broken,
    reading: &ReadOptions,
) -> Result<FrameContents, ErrorKind> {
    let mut contents = FrameContents::default();
    for part in &broken.parts {
        let frame = match part {
            Part::Frame { frame, .. } => frame,
            Part::Damaged { frame, reason } if frame.kind != FrameKind::NTensor => {
                let (kind, span, reason) = (frame.kind, frame.span, first_line(reason));
                contents.notes.push(format!("frame {kind} at bytes {span} is damaged: {reason}"));
                continue;
            }
            _ => continue,
        };
        if matches!(frame.kind, FrameKind::NTensor | FrameKind::PrecederMetadata) {
            continue;
        }
        let found = match body(&**source, number, frame, reading)? {
            Body::Metadata(metadata) if is_a_list(&metadata) => {
                contents
                    .notes
                    .push(format!("frame {} at bytes {} has a damaged type", frame.kind, frame.span));
                continue;
            }
            Body::Metadata(metadata) => Lists { metadata: Some(metadata), ..Lists::default() },
            Body::Index(index) if index.offsets.is_sorted() => {
                Lists { index: Some(index), ..Lists::default() }
            }
            Body::Hashes(list) if list.algorithm == crate::consistency::ALGORITHM => {
                Lists { hashes: Some(list), ..Lists::default() }
            }
            _ => continue,
        };
        if DecodePhase::for_frame(frame.kind) == DecodePhase::Footer {
            contents.footer = found.or(std::mem::take(&mut contents.footer));
        } else {
            contents.header = std::mem::take(&mut contents.header).or(found);
        }
    }
    Ok(contents)
}

/// Whether metadata is a list in a frame with a damaged type: no hash covers the type.
fn is_a_list(metadata: &GlobalMetadata) -> bool {
    let keys: Vec<&str> = metadata.extra.keys().map(String::as_str).collect();
    let lists: [&[&str]; 2] = [&["algorithm", "hashes"], &["lengths", "offsets"]];
    metadata.base.is_empty() && metadata.reserved.is_empty() && lists.contains(&&*keys)
}

/// Keeps every intact object; reports every other one that has a frame.
fn keep(
    source: &Arc<dyn ByteSource>,
    message: u64,
    broken: &Broken,
    reading: &ReadOptions,
    lists: &Lists,
    numbers: &Numbers,
    lost: &mut Vec<Loss>,
) -> Result<Vec<KeptObject>, Error> {
    let named = |fault: ErrorKind| Error::new(source.name().clone(), fault);
    let verification_cache = VerificationCache::default();
    let mut kept = Vec::new();
    let mut of = numbers.of.iter().copied();
    let mut before: Option<(Span, Entry)> = None;
    for part in &broken.parts {
        let preceder = before.take();
        match part {
            Part::Frame { frame, .. } if frame.kind == FrameKind::PrecederMetadata => {
                if let Body::Preceder(entry) = body(&**source, message, frame, reading).map_err(named)? {
                    before = Some((frame.span, entry));
                }
            }
            Part::Frame { frame, verified } if frame.kind == FrameKind::NTensor => {
                let number = of.next().flatten();
                if number.is_none() && overlaps_listed_object(broken, lists.index.as_ref(), frame) {
                    // It is inside a payload: the index, whose hash was verified, lists no object here.
                    continue;
                }
                let object =
                    Object::open(&**source, reading, &verification_cache, message, *frame).map_err(named);
                let raw = object.and_then(|object| RawObject::from_verified(source, &object));
                match damage_or(raw).map_err(named)? {
                    Ok(raw) => {
                        let preceder =
                            preceder.filter(|(span, _)| is_next(*span, frame)).map(|(_, entry)| entry);
                        let (verified, span) = (*verified, frame.span);
                        kept.push(KeptObject { raw, verified, span, number, preceder });
                    }
                    Err(error) => lost.push(object_lost(frame, number, &error.kind().to_string())),
                }
            }
            Part::Damaged { frame, reason } if frame.kind == FrameKind::NTensor => {
                lost.push(object_lost(frame, of.next().flatten(), reason));
            }
            _ => {}
        }
    }
    Ok(kept)
}

/// Whether a frame that the index does not list overlaps an object that it lists.
pub(super) fn overlaps_listed_object(broken: &Broken, index: Option<&IndexFrame>, frame: &Frame) -> bool {
    let (Some(start), Some(index)) = (broken.start.filter(|_| broken.is_framed), index) else {
        return false;
    };
    let offset = frame.span.start().saturating_sub(start);
    let at = index.offsets.partition_point(|&known| known <= offset);
    let around = at.checked_sub(1).and_then(|at| Some((index.offsets.get(at)?, index.lengths.get(at)?)));
    around.is_some_and(|(known, len)| offset < known.saturating_add(*len))
}

/// Whether a preceder belongs to an object: only padding is between them.
fn is_next(preceder: Span, object: &Frame) -> bool {
    object.span.start().checked_sub(preceder.end()).is_some_and(|padding| padding < 8)
}

fn object_lost(frame: &Frame, number: Option<u64>, reason: &str) -> Loss {
    Loss { what: Lost::Object, object: number, span: frame.span, reason: first_line(reason) }
}

/// An error message without the lines that repeat its position.
fn first_line(reason: &str) -> String {
    reason.lines().last().unwrap_or(reason).trim().to_owned()
}

/// Reports objects without a frame.
fn missing(broken: &Broken, lists: &Lists, numbers: &Numbers, lost: &mut Vec<Loss>) {
    let gaps: Vec<Span> =
        broken.parts.iter().filter(|part| matches!(part, Part::Gap(_))).map(Part::span).collect();
    let end = broken.span.end();
    let reason = "its frame is missing or cannot be recognized".to_owned();
    let known: std::collections::BTreeSet<u64> = numbers.of.iter().flatten().copied().collect();
    let has_places = !known.is_empty() || numbers.of.is_empty();
    if let (Some(start), Some(index), true) = (broken.start, &lists.index, has_places) {
        for ((number, &offset), &len) in (0..).zip(&index.offsets).zip(&index.lengths) {
            if !known.contains(&number) {
                let at = start.saturating_add(offset).min(end);
                let span = Span::between(at, at.saturating_add(len).min(end)).unwrap_or(Span::empty(at));
                lost.push(Loss { what: Lost::Object, object: Some(number), span, reason: reason.clone() });
            }
        }
        return;
    }
    let span =
        gaps.first().zip(gaps.last()).and_then(|(first, last)| Span::between(first.start(), last.end()));
    let span = span.unwrap_or(Span::empty(end));
    match numbers.total.map(|total| total.saturating_sub(numbers.of.len() as u64)) {
        Some(0) => {}
        Some(count) => {
            let reason = format!("{count} of {} objects are missing", numbers.total.unwrap_or(0));
            lost.push(Loss { what: Lost::Objects, object: None, span, reason });
        }
        None if gaps.is_empty() => {
            let reason = "the message is truncated here; the rest is lost".to_owned();
            lost.push(Loss { what: Lost::Bytes, object: None, span, reason });
        }
        None => lost.extend(gaps.into_iter().map(|span| {
            let reason = "these bytes cannot be read; they may have contained objects".to_owned();
            Loss { what: Lost::Bytes, object: None, span, reason }
        })),
    }
}

/// The bytes after a message without an end that exceed a message end. They may contain lost messages.
fn unaccounted(broken: &Broken, lost: &[Loss]) -> Option<Loss> {
    if broken.is_framed || broken.is_ended {
        return None;
    }
    let trailing = broken.parts.iter().rev().take_while(|part| matches!(part, Part::Gap(_)));
    let first = trailing.last()?.span();
    let gap = Span::between(first.start(), broken.span.end()).unwrap_or(first);
    let overlaps = |loss: &&Loss| loss.span.end() > gap.start() && loss.span.start() < gap.end();
    let reported = lost.iter().filter(overlaps).map(|loss| loss.span.end()).max().unwrap_or(gap.start());
    let rest = Span::between(reported, gap.end()).filter(|rest| rest.len() > MAX_END)?;
    let reason = "these bytes cannot be read; they may have contained other messages".to_owned();
    Some(Loss { what: Lost::Bytes, object: None, span: rest, reason })
}

/// The metadata of the new message, and whether its frames have hashes: not if any object is unverified.
fn metadata(
    broken: &Broken,
    lists: &Lists,
    is_footer: bool,
    kept: &[KeptObject],
    lost: &mut Vec<Loss>,
) -> (GlobalMetadata, bool) {
    let is_hashed = kept.iter().all(|kept| kept.verified);
    let Some(found) = &lists.metadata else {
        let at = Span::at(broken.span.start(), broken.span.len().min(24)).unwrap_or(broken.span);
        let is_damaged = |part: &&Part| match part {
            Part::Damaged { frame, .. } => {
                matches!(frame.kind, FrameKind::HeaderMetadata | FrameKind::FooterMetadata)
            }
            _ => false,
        };
        let span = broken.parts.iter().find(is_damaged).map_or(at, Part::span);
        let reason = "no metadata frame of the message is intact".to_owned();
        lost.push(Loss { what: Lost::Metadata, object: None, span, reason });
        let base = kept.iter().map(|kept| kept.preceder.clone().unwrap_or_default()).collect();
        return (GlobalMetadata { base, ..GlobalMetadata::default() }.without_reserved(), is_hashed);
    };
    let mut made = GlobalMetadata { base: Vec::new(), extra: found.extra.clone(), reserved: Entry::new() };
    let has_entries = found.base.iter().any(|entry| entry.keys().any(|key| key != RESERVED));
    for kept in kept {
        let fits = |entry: &&Entry| match entry.get(RESERVED).and_then(|section| section.get("tensor")) {
            Some(tensor) => {
                crate::cbor::encode(tensor) == crate::cbor::encode(&kept.raw.descriptor().tensor_entry())
            }
            None => true,
        };
        let number = kept.number.and_then(|number| usize::try_from(number).ok());
        let entry = match number {
            Some(number) if number >= found.base.len() => Some(Entry::new()),
            number => number.and_then(|number| found.base.get(number)).filter(fits).cloned(),
        };
        if entry.is_none() && has_entries {
            let reason = "the metadata entry of this object is unknown".to_owned();
            lost.push(Loss { what: Lost::ObjectMetadata, object: kept.number, span: kept.span, reason });
        }
        let mut entry = entry.unwrap_or_default();
        entry.extend(kept.preceder.clone().unwrap_or_default());
        made.base.push(entry);
    }
    if !is_footer {
        lost.extend(lost_preceders(broken));
    }
    (made.without_reserved(), is_hashed)
}

/// Damaged metadata of objects that are kept, unless a copy after the objects repeats it.
fn lost_preceders(broken: &Broken) -> impl Iterator<Item = Loss> {
    let pairs = broken.parts.windows(2);
    pairs.filter_map(|pair| match pair {
        [Part::Damaged { frame, reason }, Part::Frame { frame: object, .. }]
            if frame.kind == FrameKind::PrecederMetadata && object.kind == FrameKind::NTensor =>
        {
            Some(Loss {
                what: Lost::ObjectMetadata,
                object: None,
                span: frame.span,
                reason: first_line(reason),
            })
        }
        _ => None,
    })
}

/// Damage outside the frames.
fn outer_notes(broken: &Broken) -> impl Iterator<Item = String> {
    let preamble = broken.start.is_none().then(|| "its preamble is damaged or missing".to_owned());
    let postamble = (!broken.is_ended).then(|| "its postamble is damaged or missing".to_owned());
    preamble.into_iter().chain(postamble)
}
