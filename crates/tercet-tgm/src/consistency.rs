//! Consistency of a message: index, hash lists, flags and postamble compared with the frames.

use tercet_core::checksum::{Mismatch, xxh3};
use tercet_core::{CommonError, Span};

use crate::error::{Contradiction, ErrorKind};
use crate::index_and_hash::{HashFrame, IndexFrame};
use crate::layout::Layout;
use crate::region::{Part, Region};
use crate::wire::frame::Frame;
use crate::wire::ids::{FrameKind, MessageFlags};

/// The algorithm of every hash.
pub(crate) const ALGORITHM: &str = "xxh3";

/// Compares the hash of a frame with its body. Frames without a hash pass.
pub(crate) fn check_hash(message: u64, frame: &Frame, body: &[u8]) -> Result<(), ErrorKind> {
    match frame.hash() {
        Some(expected) => compare(message, frame, expected, xxh3(body)),
        None => Ok(()),
    }
}

/// Compares a stored hash with a computed one.
pub(crate) fn compare(message: u64, frame: &Frame, expected: u64, actual: u64) -> Result<(), ErrorKind> {
    Mismatch::check_xxh3(expected, actual).map_err(|mismatch| {
        CommonError::Checksum { region: frame.region(message), span: frame.body(), mismatch }.into()
    })
}

/// A contradiction between a part of a message and its frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inconsistency {
    pub(crate) region: Region,
    pub(crate) span: Span,
    pub(crate) what: Contradiction,
}

impl From<Inconsistency> for ErrorKind {
    fn from(found: Inconsistency) -> Self {
        Self::Contradiction { region: found.region, span: found.span, what: found.what }
    }
}

/// Rejects a frame without a hash if the preamble announces hashes for all frames.
pub(crate) fn check_announced_hash(layout: &Layout) -> Result<(), ErrorKind> {
    if !layout.preamble.flags.contains(MessageFlags::HASHES_PRESENT) {
        return Ok(());
    }
    match layout.frames.iter().find(|frame| frame.hash().is_none()) {
        Some(frame) => Err(ErrorKind::MissingHash { region: frame.region(layout.number), span: frame.span }),
        None => Ok(()),
    }
}

/// Contradictions of preamble and postamble.
pub(crate) fn outer(layout: &Layout) -> Vec<Inconsistency> {
    let mut found = Vec::new();
    let message = layout.number;
    let mut add =
        |part, span, what| found.push(Inconsistency { region: Region { message, part }, span, what });
    let flags = layout.preamble.flags;
    let flag_span = Span::at(layout.span.start().saturating_add(10), 2).unwrap_or(layout.span);
    for kind in FrameKind::ALL {
        let Some(flag) = kind.flag() else { continue };
        let set = flags.contains(flag);
        let there = layout.frames.iter().any(|frame| frame.kind == kind);
        if set != there && !is_expected(kind, set, layout) {
            add(Part::Preamble, flag_span, Contradiction::Flag { flag: name_of(flag), set });
        }
    }
    for kind in [FrameKind::HeaderMetadata, FrameKind::FooterMetadata] {
        // A second one would replace the first, and a preceder with a damaged type looks like one.
        if let Some(second) = layout.frames.iter().filter(|frame| frame.kind == kind).nth(1) {
            let part = Part::Typed { index: second.index, kind };
            add(part, second.span, Contradiction::SecondMetadata);
        }
    }
    let hashed = layout.frames.iter().any(|frame| frame.hash().is_some());
    if hashed && !flags.contains(MessageFlags::HASHES_PRESENT) {
        let flag = name_of(MessageFlags::HASHES_PRESENT);
        add(Part::Preamble, flag_span, Contradiction::Flag { flag, set: false });
    }
    let postamble = &layout.postamble;
    let base = layout.postamble_span().start();
    let field = |offset: u64| Span::at(base.saturating_add(offset), 8).unwrap_or(Span::empty(base));
    if postamble.first_footer_offset != layout.first_footer {
        let (found, expected) = (postamble.first_footer_offset, layout.first_footer);
        let what = Contradiction::Postamble { field: "first_footer_offset", found, expected };
        add(Part::Postamble, field(0), what);
    }
    // If only the postamble has a length, it must be correct.
    if postamble.total_length != 0 && postamble.total_length != layout.span.len() {
        let (found, expected) = (postamble.total_length, layout.span.len());
        let what = Contradiction::Postamble { field: "total_length", found, expected };
        add(Part::Postamble, field(8), what);
    }
    found
}

/// Streaming writers announce preceders and hash lists before they know whether there will be any.
fn is_expected(kind: FrameKind, set: bool, layout: &Layout) -> bool {
    match kind {
        FrameKind::PrecederMetadata => set && layout.preamble.flags.contains(MessageFlags::FOOTER_METADATA),
        FrameKind::FooterHash => set && layout.object_count() == 0,
        _ => false,
    }
}

fn name_of(flag: MessageFlags) -> &'static str {
    MessageFlags::NAMED.into_iter().find(|(named, _)| *named == flag).map_or("", |(_, name)| name)
}

/// The contradiction of an index, if any.
pub(crate) fn index(layout: &Layout, frame: &Frame, index: &IndexFrame) -> Option<Inconsistency> {
    let here = |what| Some(Inconsistency { region: frame.region(layout.number), span: frame.body(), what });
    let objects = layout.object_count();
    if index.offsets.len() as u64 != objects {
        let found = index.offsets.len() as u64;
        return here(Contradiction::Count { what: "offsets", found, objects });
    }
    let base = layout.span.start();
    for ((object, &offset), &length) in layout.objects().zip(&index.offsets).zip(&index.lengths) {
        let number = u64::from(object.object);
        let checks = [
            ("offsets", offset, object.span.start().saturating_sub(base)),
            ("lengths", length, object.span.len()),
        ];
        for (list, found, expected) in checks {
            if found != expected {
                return here(Contradiction::Index { list, object: number, found, expected });
            }
        }
    }
    None
}

/// The contradiction of a hash list, if any. Lists of unknown algorithms are ignored.
pub(crate) fn hashes(layout: &Layout, frame: &Frame, list: &HashFrame) -> Option<Inconsistency> {
    let here = |what| Some(Inconsistency { region: frame.region(layout.number), span: frame.body(), what });
    if list.algorithm != ALGORITHM {
        return None;
    }
    let objects = layout.object_count();
    if list.hashes.len() as u64 != objects {
        let found = list.hashes.len() as u64;
        return here(Contradiction::Count { what: "hashes", found, objects });
    }
    for (object, found) in layout.objects().zip(&list.hashes) {
        let expected = object.hash_slot;
        if *found != format!("{expected:016x}") {
            let (object, found) = (object.object.into(), found.as_str().into());
            return here(Contradiction::Hash { object, found, expected });
        }
    }
    None
}
