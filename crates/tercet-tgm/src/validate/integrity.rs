//! Levels 3 and 4: hashes, decoding, values.

use tercet_core::tensor::f16;
use tercet_core::{ByteSource, Class, CommonError, Diagnostic as _};

use super::code::Code;
use super::report::MessageReport;
use crate::consistency::{ALGORITHM, check_hash};
use crate::error::ErrorKind;
use crate::frame_body::Body;
use crate::layout::Layout;
use crate::object::Object;
use crate::options::ReadOptions;
use crate::verification_cache::VerificationCache;
use crate::window::Window;
use crate::wire::frame::Frame;
use crate::wire::ids::{FrameKind, MessageFlags};
use tercet_core::DType;
use tercet_core::Tensor;

/// The input of both levels.
pub(super) struct Work<'a> {
    pub(super) source: &'a dyn ByteSource,
    pub(super) layout: &'a Layout,
    pub(super) reading: &'a ReadOptions,
    /// Whether objects are decoded.
    pub(super) decode: bool,
    /// Whether their values are checked.
    pub(super) fidelity: bool,
}

impl Work<'_> {
    pub(super) fn check(
        &self,
        window: &mut Window<'_>,
        lists: &[(Frame, Body)],
        report: &mut MessageReport,
    ) -> Result<(), ErrorKind> {
        let promised = self.layout.preamble.flags.contains(MessageFlags::HASHES_PRESENT);
        let mut verified = 0u64;
        for frame in &self.layout.frames {
            let is_object = frame.kind == FrameKind::NTensor;
            let (object, at) = (is_object.then_some(u64::from(frame.object)), Some(frame.span.start()));
            if frame.hash().is_none() {
                if promised {
                    let description = format!(
                        "{} has no hash, but the preamble announces hashes for all frames",
                        frame.kind
                    );
                    report.add(Code::HashVerificationError, object, at, description);
                } else if is_object {
                    let description = "there is no hash to compare".to_owned();
                    report.add(Code::NoHashAvailable, object, at, description);
                }
                continue;
            }
            let checked = if is_object {
                self.hash_object(frame)
            } else {
                let bytes = window.peek(frame.body().start(), frame.body().len())?;
                check_hash(self.layout.number, frame, &bytes)
            };
            match checked {
                Ok(()) => verified += u64::from(is_object),
                Err(ErrorKind::Common(CommonError::Checksum { mismatch, .. })) => {
                    let what = if is_object { "the object" } else { frame.kind.name() };
                    report.add(
                        Code::HashMismatch,
                        object,
                        at,
                        format!("{what} is damaged or was changed: {mismatch}"),
                    );
                }
                Err(fault) => return Err(fault),
            }
        }
        compare_lists(self.layout, lists, report);
        if self.decode {
            for frame in self.layout.objects() {
                self.decode(frame, report)?;
            }
        }
        report.hash_verified = verified > 0 && verified == self.layout.object_count() && report.is_ok();
        Ok(())
    }

    /// Hashes the frame without parsing it: the descriptor may be damaged.
    fn hash_object(&self, frame: &Frame) -> Result<(), ErrorKind> {
        crate::object::verify_frame(self.source, self.layout.number, frame)
    }

    fn decode(&self, frame: &Frame, report: &mut MessageReport) -> Result<(), ErrorKind> {
        let (object, at) = (Some(u64::from(frame.object)), Some(frame.span.start()));
        let verification_cache = VerificationCache::default();
        let Ok(opened) =
            Object::open(self.source, self.reading, &verification_cache, self.layout.number, *frame)
        else {
            // Reported on the previous level.
            return Ok(());
        };
        // If values are not checked, an object without a pipeline needs no decoding.
        let decoded = if self.fidelity || !opened.descriptor().is_plain() {
            // Masked values are expected, so they are not restored.
            opened.decode_with_masks().map(|(array, _)| Some(array))
        } else {
            opened.decoded_len().map(|_| None)
        };
        let array = match decoded.map_err(crate::Error::into_kind) {
            Ok(array) => array,
            Err(ErrorKind::PayloadLength { .. }) => return Ok(()),
            Err(fault @ ErrorKind::Common(CommonError::Source(_) | CommonError::Cancelled(_))) => {
                return Err(fault);
            }
            Err(fault) => {
                match super::limit_of(&fault) {
                    Some(limit) => report.add_limit(limit, object, at),
                    // Memory is short.
                    None if fault.class() == Class::Limit => return Err(fault),
                    None => report.add(self.code_of(&fault), object, at, super::one_line(&fault)),
                }
                return Ok(());
            }
        };
        match opened.wrong_szip_offset().map_err(crate::Error::into_kind) {
            Ok(Some(wrong)) => report.add(Code::SzipOffsetWrong, object, at, wrong.to_string()),
            Ok(None) => {}
            Err(fault) => return Err(fault),
        }
        if let Some(array) = array.filter(|_| self.fidelity) {
            let (nan, inf) = not_finite(&array);
            let found = [(nan, Code::NanDetected, "NaN"), (inf, Code::InfDetected, "infinite")];
            for (first, code, name) in found {
                if let Some(element) = first {
                    report.add(code, object, at, format!("element {element} is {name}"));
                }
            }
        }
        Ok(())
    }
}

impl Work<'_> {
    /// The code for an object that cannot be decoded.
    fn code_of(&self, fault: &ErrorKind) -> Code {
        match fault {
            ErrorKind::Pipeline { error, .. } if error.is_about_descriptor() => Code::PipelineConfigFailed,
            ErrorKind::Pipeline { error, .. } if error.is_unsupported() => Code::PipelineNotBuiltIn,
            _ if self.fidelity => Code::DecodeObjectFailed,
            _ => Code::DecodePipelineFailed,
        }
    }
}

/// Compares hash lists with the hash slots of the objects, and with each other.
fn compare_lists(layout: &Layout, lists: &[(Frame, Body)], report: &mut MessageReport) {
    for (frame, body) in lists {
        let Body::Hashes(list) = body else { continue };
        let at = Some(frame.span.start());
        if list.algorithm != ALGORITHM {
            let name = tercet_core::escape::name(&list.algorithm).into_owned();
            report.add(Code::UnknownHashAlgorithm, None, at, format!("unknown hash algorithm `{name}`"));
            continue;
        }
        for (object, found) in layout.objects().zip(&list.hashes) {
            let expected = object.hash_slot;
            if *found != format!("{expected:016x}") {
                let found = tercet_core::escape::name(found);
                let description =
                    format!("{} has hash {found}, but the object has {expected:016x}", frame.kind);
                report.add(Code::HashMismatch, Some(object.object.into()), at, description);
            }
        }
    }
}

/// The first NaN and the first infinite element. Both parts of complex numbers are checked.
fn not_finite(array: &Tensor) -> (Option<usize>, Option<usize>) {
    let bytes = array.bytes();
    match array.dtype() {
        DType::F16 => classify(bytes, 1, |b: [u8; 2]| f16::from_le_bytes(b).to_f64()),
        DType::BF16 => {
            classify(bytes, 1, |b: [u8; 2]| f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16).into())
        }
        DType::F32 => classify(bytes, 1, |b: [u8; 4]| f32::from_le_bytes(b).into()),
        DType::F64 => classify(bytes, 1, f64::from_le_bytes),
        DType::C64 => classify(bytes, 2, |b: [u8; 4]| f32::from_le_bytes(b).into()),
        DType::C128 => classify(bytes, 2, f64::from_le_bytes),
        _ => (None, None),
    }
}

fn classify<const N: usize>(
    bytes: &[u8],
    parts: usize,
    number: impl Fn([u8; N]) -> f64,
) -> (Option<usize>, Option<usize>) {
    let (elements, _) = bytes.as_chunks::<N>();
    let first = |test: fn(f64) -> bool| {
        elements.iter().position(|&element| test(number(element))).map(|at| at / parts)
    };
    (first(f64::is_nan), first(f64::is_infinite))
}
