//! Level 1: framing.

use tercet_core::{CommonError, Malformed, Reason, Severity, Span};

use super::code::Code;
use super::report::MessageReport;
use crate::consistency;
use crate::error::{Contradiction, ErrorKind};
use crate::layout::Layout;
use crate::options::ReadOptions;
use crate::region::{Part, Region};
use crate::window::Window;
use crate::wire::ids::{FrameKind, MIN_MESSAGE, MessageFlags, POSTAMBLE_LEN, PREAMBLE_LEN};
use crate::wire::order::OBJECT_AFTER_PRECEDER;

/// Parses the frames. `None` if the end was not reached.
pub(super) fn check(
    window: &mut Window<'_>,
    number: u64,
    span: Span,
    reading: &ReadOptions,
    report: &mut MessageReport,
) -> Result<Option<Layout>, ErrorKind> {
    if span.len() < MIN_MESSAGE {
        let description = format!("{} bytes, but a message has at least {MIN_MESSAGE}", span.len());
        report.add(Code::BufferTooShort, None, None, description);
        return Ok(None);
    }
    let layout = match Layout::read(window, number, span, reading) {
        Ok(layout) => layout,
        Err(ErrorKind::Common(CommonError::Malformed(error))) => {
            let object = match error.site.region.part {
                Part::Object { object } => Some(u64::from(object)),
                _ => None,
            };
            let description = super::one_line(&error);
            report.add(code_of(&error), object, Some(error.site.span.start()), description);
            return Ok(None);
        }
        Err(ErrorKind::Common(CommonError::Limit(error))) => {
            report.add_limit(error, None, None);
            return Ok(None);
        }
        Err(fault) => return Err(fault),
    };
    padding(window, &layout, report)?;
    outer(&layout, report);
    if !layout.frames.iter().any(|frame| is_metadata(frame.kind)) {
        let description = "there is no metadata frame".to_owned();
        report.add(Code::NoMetadataFrame, None, Some(layout.span.start()), description);
    }
    Ok(Some(layout))
}

fn is_metadata(kind: FrameKind) -> bool {
    matches!(kind, FrameKind::HeaderMetadata | FrameKind::FooterMetadata)
}

fn code_of(error: &Malformed<Region>) -> Code {
    match (error.site.region.part, error.site.field, &error.reason) {
        (Part::Preamble, "magic", Reason::BadMagic { .. }) => Code::InvalidMagic,
        (Part::Preamble, "total_length", Reason::OutOfRange { .. }) => Code::TotalLengthTooSmall,
        (Part::Preamble, "total_length", Reason::Truncated { need, .. })
            if need.checked_add(1 << 62).is_none() =>
        {
            Code::TotalLengthOverflow
        }
        (Part::Preamble, "total_length", Reason::Truncated { .. }) => Code::TotalLengthExceedsBuffer,
        (Part::Preamble, ..) => Code::PreambleParseFailed,
        (Part::Postamble, ..) => Code::PostambleInvalid,
        (_, _, Reason::Unexpected { rule }) if *rule == OBJECT_AFTER_PRECEDER => {
            if error.site.span.is_empty() {
                Code::DanglingPreceder
            } else {
                Code::PrecederNotFollowedByObject
            }
        }
        (_, _, Reason::Unexpected { .. }) => Code::FrameOrderViolation,
        (_, "cbor_offset", Reason::OutOfRange { .. }) => Code::CborOffsetInvalid,
        (_, "end_marker", Reason::BadMagic { .. }) => Code::MissingEndMarker,
        (_, "total_length", Reason::OutOfRange { .. }) => Code::FrameTooSmall,
        (_, "total_length", Reason::Overflow { .. }) => Code::FrameLengthOverflow,
        (_, "cbor_offset" | "hash" | "end_marker", _)
        | (_, "total_length", Reason::OutOfBounds { .. } | Reason::Mismatch { .. }) => {
            Code::FrameExceedsMessage
        }
        (_, _, Reason::Truncated { .. }) => Code::TruncatedFrameHeader,
        _ => Code::InvalidFrameHeader,
    }
}

/// Bytes between frames must be zero.
fn padding(window: &mut Window<'_>, layout: &Layout, report: &mut MessageReport) -> Result<(), ErrorKind> {
    let starts = layout.frames.iter().map(|frame| frame.span.start()).skip(1);
    let starts = starts.chain([layout.postamble_span().start()]);
    for (frame, next) in layout.frames.iter().zip(starts) {
        let end = frame.span.end();
        let gap = next.saturating_sub(end).min(8);
        let bytes = window.peek(end, gap)?;
        if bytes.iter().any(|&byte| byte != 0) {
            let description = format!("the padding of frame {} ({}) is not zero", frame.index, frame.kind);
            report.add(Code::NonZeroPadding, None, Some(end), description);
        }
    }
    Ok(())
}

/// Compares preamble and postamble with the frames.
fn outer(layout: &Layout, report: &mut MessageReport) {
    let flag_at = layout.span.start().saturating_add(10);
    for found in consistency::outer(layout) {
        let at = Some(found.span.start());
        let description = found.what.to_string();
        match found.what {
            Contradiction::Flag { .. } => report.add(Code::FlagMismatch, None, Some(flag_at), description),
            Contradiction::SecondMetadata => report.add(Code::DuplicateMetadataFrame, None, at, description),
            Contradiction::Postamble { field: "total_length", .. } => {
                report.add(Code::PostambleLengthMismatch, None, at, description);
            }
            Contradiction::Postamble { found, .. } => {
                let last = layout.span.len().saturating_sub(POSTAMBLE_LEN);
                let inside = (PREAMBLE_LEN..=last).contains(&found);
                let code = if inside { Code::FooterOffsetMismatch } else { Code::FooterOffsetOutOfRange };
                report.add(code, None, at, description);
            }
            _ => {}
        }
    }
    // A frame that a streaming writer announces and does not write is a warning, not a contradiction.
    let flags = layout.preamble.flags;
    let there = |kind| layout.frames.iter().any(|frame| frame.kind == kind);
    let announced = [
        (MessageFlags::PRECEDER_METADATA, FrameKind::PrecederMetadata, "PRECEDER_METADATA"),
        (MessageFlags::FOOTER_HASHES, FrameKind::FooterHash, "FOOTER_HASHES"),
    ];
    for (flag, kind, name) in announced {
        let counted = report.issues.iter().any(|issue| issue.description.starts_with(name));
        if flags.contains(flag) && !there(kind) && !counted {
            let description = format!("{name} is set, but there is no such frame, as streaming writers do");
            report.add_as(Code::FlagMismatch, Severity::Warning, None, Some(flag_at), description);
        }
    }
}
