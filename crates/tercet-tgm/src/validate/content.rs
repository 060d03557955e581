//! Level 2: CBOR and its contents.

use tercet_core::limits::check_limit;
use tercet_core::{ByteSource, Span};

use super::code::Code;
use super::report::MessageReport;
use crate::cbor;
use crate::consistency;
use crate::descriptor::DataObjectDescriptor;
use crate::error::{Contradiction, ErrorKind};
use crate::frame_body::{Body, budget};
use crate::layout::Layout;
use crate::metadata::{Entry, GlobalMetadata, MetadataErrorKind};
use crate::object::Object;
use crate::options::ReadOptions;
use crate::pipeline::{COMPRESSIONS, ENCODINGS, FILTERS, Pipeline};
use crate::value::Value;
use crate::verification_cache::VerificationCache;
use crate::wire::frame::Frame;
use crate::wire::ids::FrameKind;

/// Parses every frame and compares their contents. Returns the lists for the next level.
pub(super) fn check(
    source: &dyn ByteSource,
    layout: &Layout,
    reading: &ReadOptions,
    canonical: bool,
    report: &mut MessageReport,
) -> Result<Vec<(Frame, Body)>, ErrorKind> {
    let mut lists = Vec::new();
    let mut copies: Vec<GlobalMetadata> = Vec::new();
    // One budget for all frames, as in a reader.
    let budget = budget(reading);
    for frame in &layout.frames {
        if frame.kind == FrameKind::NTensor {
            continue;
        }
        let at = Some(frame.span.start());
        if let Err(error) =
            check_limit("a metadata frame", frame.span.len(), reading.common.limits.metadata_bytes)
        {
            report.add_limit(error, None, at);
            continue;
        }
        let bytes = source.read_at(frame.body())?;
        let codes = codes_of(frame.kind);
        if canonical && let Err(error) = cbor::verify_canonical_cbor(&bytes) {
            report.add(codes.1, None, at, format!("the CBOR of {} is not canonical: {error}", frame.kind));
        }
        let parsed = Body::parse(layout.number, frame, &bytes, &budget);
        if let Ok((_, used)) = &parsed {
            trailing(frame, bytes.len() - used, report);
        }
        match parsed.map(|(body, _)| body) {
            Ok(Body::Metadata(metadata)) => copies.push(metadata),
            Ok(Body::Preceder(_)) => {}
            Ok(list) => {
                contradictions(layout, frame, &list, report);
                lists.push((*frame, list));
            }
            Err(ErrorKind::Metadata { error, .. })
                if matches!(error.reason, MetadataErrorKind::Entries { .. })
                    && frame.kind == FrameKind::PrecederMetadata =>
            {
                report.add(Code::PrecederBaseCountWrong, Some(frame.object.into()), at, error.to_string());
            }
            Err(fault) => match super::limit_of(&fault) {
                Some(limit) => report.add_limit(limit, None, at),
                None if matches!(fault, ErrorKind::Cbor { .. } | ErrorKind::Metadata { .. }) => {
                    report.add(codes.0, None, at, super::one_line(&fault));
                }
                None => return Err(fault),
            },
        }
    }
    let descriptors = descriptors(source, layout, reading, canonical, report)?;
    metadata(layout, &copies, &descriptors, report);
    Ok(lists)
}

/// The codes for a frame whose CBOR does not parse, and for one whose CBOR is not canonical.
fn codes_of(kind: FrameKind) -> (Code, Code) {
    match kind {
        FrameKind::HeaderIndex | FrameKind::FooterIndex => {
            (Code::IndexCborParseFailed, Code::IndexCborNonCanonical)
        }
        FrameKind::HeaderHash | FrameKind::FooterHash => {
            (Code::HashFrameCborParseFailed, Code::HashFrameCborNonCanonical)
        }
        FrameKind::PrecederMetadata => (Code::PrecederCborParseFailed, Code::PrecederCborNonCanonical),
        FrameKind::NTensor => (Code::DescriptorCborParseFailed, Code::DescriptorCborNonCanonical),
        FrameKind::HeaderMetadata | FrameKind::FooterMetadata => {
            (Code::MetadataCborParseFailed, Code::MetadataCborNonCanonical)
        }
    }
}

fn trailing(frame: &Frame, len: usize, report: &mut MessageReport) {
    if len > 0 {
        let at = frame.body().end().saturating_sub(len as u64);
        let description = format!("{len} bytes after the CBOR of {}", frame.kind);
        report.add(Code::TrailingCborBytes, None, Some(at), description);
    }
}

fn contradictions(layout: &Layout, frame: &Frame, list: &Body, report: &mut MessageReport) {
    let found = match list {
        Body::Index(index) => consistency::index(layout, frame, index),
        Body::Hashes(hashes) => consistency::hashes(layout, frame, hashes),
        Body::Metadata(_) | Body::Preceder(_) => None,
    };
    let Some(found) = found else { return };
    let code = match (&found.what, list) {
        (Contradiction::Count { .. }, Body::Index(_)) => Code::IndexCountMismatch,
        (Contradiction::Count { .. }, _) => Code::HashFrameCountMismatch,
        (Contradiction::Index { .. }, _) => Code::IndexOffsetMismatch,
        // Hashes are compared on the next level.
        _ => return,
    };
    report.add(code, None, Some(frame.span.start()), found.what.to_string());
}

fn descriptors(
    source: &dyn ByteSource,
    layout: &Layout,
    reading: &ReadOptions,
    canonical: bool,
    report: &mut MessageReport,
) -> Result<Vec<Option<DataObjectDescriptor>>, ErrorKind> {
    let mut all = Vec::new();
    for frame in layout.objects() {
        let start = frame.span.start().saturating_add(frame.cbor_offset);
        let (object, at) = (Some(u64::from(frame.object)), Some(start));
        match Object::open(source, reading, &VerificationCache::default(), layout.number, *frame) {
            Ok(opened) => {
                if canonical
                    && let Err(error) =
                        cbor::verify_canonical_cbor(&source.read_at(opened.descriptor_span())?)
                {
                    let description = format!("the CBOR of the descriptor is not canonical: {error}");
                    report.add(Code::DescriptorCborNonCanonical, object, at, description);
                }
                one(opened.descriptor(), layout.number, frame, opened.payload_span(), report);
                all.push(Some(opened.descriptor().clone()));
            }
            Err(fault) if super::limit_of(&fault).is_some() => {
                if let Some(limit) = super::limit_of(&fault) {
                    report.add_limit(limit, object, at);
                }
                all.push(None);
            }
            Err(fault @ (ErrorKind::Cbor { .. } | ErrorKind::Metadata { .. })) => {
                let before = !frame.header.flags.contains(crate::wire::ids::FrameFlags::DESCRIPTOR_AFTER);
                let code = if before && matches!(fault, ErrorKind::Cbor { .. }) {
                    Code::CborBeforeBoundaryUnknown
                } else {
                    Code::DescriptorCborParseFailed
                };
                report.add(code, object, at, super::one_line(&fault));
                all.push(None);
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(all)
}

fn one(
    descriptor: &DataObjectDescriptor,
    message: u64,
    frame: &Frame,
    payload: Span,
    report: &mut MessageReport,
) {
    let (object, at) = (Some(u64::from(frame.object)), Some(frame.span.start()));
    let rank = descriptor.shape.len() as u64;
    if descriptor.ndim != rank {
        let description = format!("ndim is {}, but shape has {rank} extents", descriptor.ndim);
        report.add(Code::NdimShapeMismatch, object, at, description);
    }
    if descriptor.strides.len() as u64 != rank {
        let description = format!("strides has {} numbers, but shape {rank}", descriptor.strides.len());
        report.add(Code::StridesShapeMismatch, object, at, description);
    }
    if descriptor.obj_type.is_empty() {
        report.add(Code::EmptyObjType, object, at, "type is empty".to_owned());
    }
    let stages = [
        ("encoding", &descriptor.encoding, ENCODINGS, Code::UnknownEncoding),
        ("filter", &descriptor.filter, FILTERS, Code::UnknownFilter),
        ("compression", &descriptor.compression, COMPRESSIONS, Code::UnknownCompression),
    ];
    for (stage, name, known, code) in stages {
        if !known.contains(&name.as_str()) {
            report.add(code, object, at, format!("unknown {stage} `{name}`"));
        }
    }
    let elements = descriptor.elements();
    if elements.and_then(|n| descriptor.dtype.byte_len(n)).is_none() {
        report.add(Code::ShapeOverflow, object, at, "the shape has more than 2^64 bytes".to_owned());
    } else if let Ok(Some(expected)) = Pipeline::new(descriptor).map(|pipeline| pipeline.stored_len())
        && expected != payload.len()
    {
        let (region, span, found) = (frame.region(message), payload, payload.len());
        let fault = ErrorKind::PayloadLength { region, span, found, expected, is_compressed: false };
        report.add(Code::PayloadLengthMismatch, object, at, super::one_line(&fault));
    }
}

fn metadata(
    layout: &Layout,
    copies: &[GlobalMetadata],
    descriptors: &[Option<DataObjectDescriptor>],
    report: &mut MessageReport,
) {
    let objects = layout.object_count();
    for copy in copies {
        let found = copy.base.len() as u64;
        // The first copy of a stream may have entries for objects that were never written.
        let is_last = copies.last().is_some_and(|last| std::ptr::eq(last, copy));
        if found > objects && is_last {
            let description = format!("base has {found} entries, but the message has {objects} objects");
            report.add(Code::BaseCountExceedsObjects, None, None, description);
        }
    }
    if let [first, .., last] = copies {
        inconsistencies(first, last, report);
    }
    let Some(last) = copies.last() else { return };
    for ((entry, descriptor), object) in last.base.iter().zip(descriptors).zip(0..) {
        reserved(entry, descriptor.as_ref(), object, report);
    }
}

/// The keys that both copies have with different values.
fn inconsistencies(first: &GlobalMetadata, last: &GlobalMetadata, report: &mut MessageReport) {
    let sections = first.base.iter().zip(&last.base).map(|(a, b)| (a, b, "base"));
    let sections = sections.chain([(&first.extra, &last.extra, "_extra_")]);
    for (a, b, place) in sections {
        for (key, value) in a {
            if b.get(key).is_some_and(|other| !other.is_same(value)) {
                let key = tercet_core::escape::name(key);
                let description = format!("header and footer metadata disagree about `{key}` in {place}");
                report.add(Code::MetadataCopiesDisagree, None, None, description);
            }
        }
    }
}

fn reserved(
    entry: &Entry,
    descriptor: Option<&DataObjectDescriptor>,
    object: u64,
    report: &mut MessageReport,
) {
    let Some(section) = entry.get("_reserved_") else { return };
    if !matches!(section, Value::Map(_)) {
        report.add(Code::ReservedNotAMap, Some(object), None, "`_reserved_` is not a map".to_owned());
        return;
    }
    let Some(tensor) = section.get("tensor") else {
        let description = "`_reserved_` has no `tensor`".to_owned();
        report.add(Code::ReservedMissingTensor, Some(object), None, description);
        return;
    };
    let Some(descriptor) = descriptor else { return };
    let expected = descriptor.tensor_entry();
    for key in ["ndim", "dtype", "shape", "strides"] {
        if let (Some(stored), Some(expected)) = (tensor.get(key), expected.get(key))
            && stored != expected
        {
            let (stored, expected) = (stored.printed(), expected.printed());
            let stored = tercet_core::escape::name(&stored);
            let description =
                format!("`_reserved_.tensor.{key}` is {stored}, but the descriptor has {expected}");
            report.add(Code::ReservedTensorMismatch, Some(object), None, description);
        }
    }
}
