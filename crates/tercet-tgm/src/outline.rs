//! The outline of a file: its byte layout as a tree.

use tercet_core::num::counted;
use tercet_core::{CommonError, Outline, OutlineOptions, Span};

use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::layout::Layout;
use crate::object::Object;
use crate::options::ReadOptions;
use crate::verification_cache::VerificationCache;
use crate::window::Window;
use crate::wire::frame::Frame;
use crate::wire::ids::{FrameKind, MAGIC, MessageFlags, PREAMBLE_LEN, VERSION};
use crate::wire::preamble::Preamble;

impl File {
    /// The byte layout of the file as a tree: messages, frames, fields. Without a row limit the leaves cover every
    /// byte exactly once, also in damaged files.
    pub fn outline(&self, options: OutlineOptions) -> Result<Outline, Error> {
        let scan = self.scan()?;
        let mut root = Outline::region("file", Span::first(self.len()));
        let mut spans: Vec<(Span, Option<u64>)> =
            scan.unrecognized.iter().map(|&span| (span, None)).collect();
        spans.extend(scan.messages.iter().zip(0..).map(|(&span, number)| (span, Some(number))));
        // Those in the middle of the file are of files that were concatenated.
        let mut indexes = scan.indexes.clone();
        indexes.extend(self.index_span()?.filter(|span| !scan.indexes.contains(span)));
        spans.extend(indexes.iter().map(|&span| (span, Some(scan.messages.len() as u64))));
        spans.sort_by_key(|(span, _)| span.start());
        let rows = options.max_rows.map_or(usize::MAX, |rows| usize::try_from(rows).unwrap_or(usize::MAX));
        let left = spans.len().saturating_sub(rows);
        for (span, number) in spans.into_iter().take(rows) {
            root.parts.push(match number {
                Some(number) if indexes.contains(&span) => {
                    Outline { name: "index".into(), ..self.outline_message(number, span, rows)? }
                }
                Some(number) => self.outline_message(number, span, rows)?,
                None => Outline::leaf("unrecognized bytes", span, counted(span.len(), "byte")),
            });
        }
        more(&mut root, left, "more message", self.len());
        root.fill_gaps("unused bytes");
        Ok(root)
    }

    fn outline_message(&self, number: u64, span: Span, rows: usize) -> Result<Outline, Error> {
        let fail = |fault: ErrorKind| Error::new(self.name().clone(), fault);
        let mut message = Outline::region(format!("message {number}"), span);
        let mut window = Window::up_to(&**self.source(), span.end()).map_err(|error| fail(error.into()))?;
        // Damaged files have an outline too, so nothing is verified.
        let reading =
            ReadOptions::new().with_skip_unknown_frames(true).with_limits(self.options().common.limits);
        let mut kept = None;
        let followed = Layout::follow(&mut window, number, span, &reading, &mut kept);
        match followed {
            Ok(layout) => {
                let end = layout.postamble_span().start();
                message.parts.push(preamble(&layout.preamble, layout.preamble_span()));
                self.outline_frames(number, &layout.frames, rows, end, &mut message);
                message.parts.push(postamble(&layout));
            }
            Err(fault @ ErrorKind::Common(CommonError::Malformed(_))) => {
                if let Some(kept) = kept {
                    let head = span.slice(0, PREAMBLE_LEN).unwrap_or(span);
                    message.parts.push(preamble(kept.preamble(), head));
                    let end = kept.frames().last().map_or(head.end(), |frame| frame.span.end());
                    self.outline_frames(number, kept.frames(), rows, end, &mut message);
                }
                let description = fault.to_string().replace("\n  ", ": ");
                let from = message.parts.last().map_or(span.start(), |last| last.span.end());
                let rest = Span::between(from, span.end()).unwrap_or(Span::empty(span.end()));
                message.parts.push(Outline::leaf("damaged", rest, description));
            }
            Err(fault) => return Err(fail(fault)),
        }
        Ok(message)
    }

    /// Adds frames, the padding after each, and other bytes between them.
    fn outline_frames(&self, number: u64, frames: &[Frame], rows: usize, end: u64, message: &mut Outline) {
        let start = message.span.start();
        let between = |message: &mut Outline, until: u64| {
            let from = message.parts.last().map_or(until, |last| last.span.end());
            let aligned = from.saturating_sub(start).next_multiple_of(8).saturating_add(start).min(until);
            if let Some(padding) = Span::between(from, aligned).filter(|padding| !padding.is_empty()) {
                message.parts.push(Outline::leaf("padding", padding, counted(padding.len(), "byte")));
            }
            if let Some(gap) = Span::between(aligned, until).filter(|gap| !gap.is_empty()) {
                let description =
                    format!("{}: zeros, or frames of unknown types", counted(gap.len(), "byte"));
                message.parts.push(Outline::leaf("unrecognized bytes", gap, description));
            }
        };
        for frame in frames.iter().take(rows) {
            between(message, frame.span.start());
            message.parts.push(self.outline_frame(number, frame));
        }
        let left = frames.len().saturating_sub(rows);
        if left == 0 {
            between(message, end);
        }
        more(message, left, "more frame", end);
    }

    fn outline_frame(&self, number: u64, frame: &Frame) -> Outline {
        let name = match frame.kind {
            FrameKind::NTensor => format!("object {}", frame.object),
            kind => format!("frame {} ({kind})", frame.index),
        };
        let mut region = Outline::region(name, frame.span);
        region.field("magic", 2, "FR");
        region.field("type", 2, format_args!("{} ({})", frame.header.code, frame.kind));
        region.field("version", 2, frame.header.version);
        region.field("flags", 2, frame.header.flags);
        region.field("total_length", 8, frame.header.total_length);
        let body = frame.body();
        if frame.kind == FrameKind::NTensor {
            self.outline_object(number, frame, &mut region);
            region.parts.push(Outline::leaf(
                "cbor_offset",
                Span::at(body.end(), 8).unwrap_or(body),
                frame.cbor_offset,
            ));
        } else {
            region.parts.push(Outline::leaf("CBOR", body, counted(body.len(), "byte")));
        }
        region.field(
            "hash",
            8,
            match frame.hash() {
                Some(hash) => format!("{hash:016x}"),
                None => "none".to_owned(),
            },
        );
        region.field("end_marker", 4, "ENDF");
        region
    }

    fn outline_object(&self, number: u64, frame: &Frame, region: &mut Outline) {
        let reading = ReadOptions::new().with_verify(false).with_strict(false);
        let verification_cache = VerificationCache::default();
        let Ok(object) = Object::open(&**self.source(), &reading, &verification_cache, number, *frame) else {
            let body = frame.body();
            region.parts.push(Outline::leaf("body", body, "its descriptor cannot be read"));
            return;
        };
        let descriptor = object.descriptor();
        let shape = tercet_core::Shape::new(descriptor.shape.clone());
        let mut parts = vec![
            Outline::leaf("payload", object.payload_span(), format_args!("{} {shape}", descriptor.dtype)),
            Outline::leaf(
                "descriptor",
                object.descriptor_span(),
                format_args!(
                    "encoding {}, filter {}, compression {}",
                    descriptor.encoding, descriptor.filter, descriptor.compression
                ),
            ),
        ];
        let masks = object.masks_span();
        if !masks.is_empty() {
            parts.push(Outline::leaf("masks", masks, counted(masks.len(), "byte")));
        }
        parts.sort_by_key(|part| part.span.start());
        region.parts.extend(parts);
    }
}

fn preamble(preamble: &Preamble, span: Span) -> Outline {
    let mut region = Outline::region("preamble", span);
    let flags = preamble.flags;
    let set: Vec<&str> = MessageFlags::NAMED
        .into_iter()
        .filter_map(|(flag, name)| flags.contains(flag).then_some(name))
        .collect();
    region.field("magic", 8, MAGIC.escape_ascii());
    region.field("version", 2, VERSION);
    region.field("flags", 2, format_args!("{flags} {}", set.join(" ")));
    region.field("reserved", 4, preamble.reserved);
    region.field(
        "total_length",
        8,
        match preamble.known_length() {
            Some(length) => length.to_string(),
            None => "0 (not known when written)".to_owned(),
        },
    );
    region
}

fn postamble(layout: &Layout) -> Outline {
    let mut region = Outline::region("postamble", layout.postamble_span());
    region.field("first_footer_offset", 8, layout.postamble.first_footer_offset);
    region.field("total_length", 8, layout.postamble.total_length);
    region.field("end_magic", 8, crate::wire::ids::END_MAGIC.escape_ascii());
    region
}

/// Adds a leaf for the parts beyond the row limit; they end at `end`.
fn more(region: &mut Outline, left: usize, what: &str, end: u64) {
    if left > 0 {
        let start = region.parts.last().map_or(region.span.start(), |last| last.span.end());
        let span = Span::between(start, end).unwrap_or(Span::empty(start));
        region.parts.push(Outline::leaf("…", span, counted(left as u64, what)));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tercet_core::source::Memory;

    use super::*;
    use crate::{DType, DataObjectDescriptor, EncodeOptions, GlobalMetadata, encode_message};

    fn names(bytes: Vec<u8>) -> Vec<String> {
        let file = File::from_source(Arc::new(Memory::new("m", bytes)), ReadOptions::new()).unwrap();
        let outline = file.outline(OutlineOptions::new()).unwrap();
        outline.parts[0].parts.iter().map(|part| part.name.clone()).collect()
    }

    /// A damaged message is outlined up to the damage.
    #[test]
    fn an_outline_ends_at_damage() {
        let descriptor = DataObjectDescriptor::new(DType::U8, [1]);
        let objects: [(&DataObjectDescriptor, &[u8]); 2] = [(&descriptor, &[1]), (&descriptor, &[2])];
        let bytes = encode_message(&GlobalMetadata::default(), &objects, &EncodeOptions::new()).unwrap();
        let complete = names(bytes.clone());
        assert_eq!(complete.len(), 12, "{complete:?}");
        let second =
            crate::Message::from_bytes("m", bytes.clone()).unwrap().layout().unwrap().frames[4].span.start();
        let mut bad = bytes;
        bad[usize::try_from(second).unwrap() + 15] ^= 1;
        let drawn = names(bad);
        assert_eq!(drawn[..8], complete[..8]);
        assert_eq!(drawn[8..], ["damaged"]);
    }
}
