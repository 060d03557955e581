//! Decoding of stored bytes to values.

use tercet_core::Span;

use crate::descriptor::DataObjectDescriptor;
use crate::dtype::float_type;
use crate::error::ErrorKind;
use crate::options::ReadOptions;
use crate::pipeline::{Mask, MaskKind, NONE, Pipeline, PipelineError};
use crate::region::Region;
use tercet_core::DType;

/// The decoder of an object, checked before its payload is read.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    region: Region,
    payload: Span,
    pub(super) pipeline: Pipeline,
    /// The masks to be applied.
    masks: Vec<Mask>,
    elements: u64,
    options: ReadOptions,
}

impl Values {
    pub(crate) fn new(
        region: Region,
        descriptor: &DataObjectDescriptor,
        payload: Span,
        options: &ReadOptions,
    ) -> Result<Self, ErrorKind> {
        let wrong =
            |error: PipelineError| ErrorKind::Pipeline { region, span: payload, error: Box::new(error) };
        let pipeline = Pipeline::new(descriptor).map_err(wrong)?;
        if let Some(expected) = pipeline.stored_len().filter(|expected| *expected != payload.len()) {
            let (found, is_compressed) = (payload.len(), descriptor.compression != NONE);
            return Err(ErrorKind::PayloadLength { region, span: payload, found, expected, is_compressed });
        }
        let mut masks = Mask::all(descriptor).map_err(|error| wrong(error.into()))?;
        if descriptor.dtype == DType::Bitmask && !masks.is_empty() {
            let what = "masks of a bitmask".into();
            return Err(wrong(PipelineError::Combination { what, reason: "are not defined" }));
        }
        if float_type(descriptor.dtype).is_none() {
            // Types without non-finite values have nothing to restore.
            masks.clear();
        }
        let elements = descriptor.elements().unwrap_or(u64::MAX);
        Ok(Self { region, payload, pipeline, masks, elements, options: *options })
    }

    /// The length of the decoded values in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.pipeline.decoded_len()
    }

    /// Whether the payload is the values themselves, without masks to apply.
    pub(crate) fn is_plain(&self) -> bool {
        self.pipeline.is_plain() && (self.masks.is_empty() || !self.options.restore_non_finite)
    }

    /// Decodes payload and masks in `stored` into exactly [`len`](Self::len) bytes.
    pub(crate) fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), ErrorKind> {
        let masks = if self.options.restore_non_finite { self.bits(stored)? } else { Vec::new() };
        self.decode_payload(stored, &masks, out)
    }

    /// Decodes the payload and applies these masks.
    pub(super) fn decode_payload(
        &self,
        stored: &[u8],
        masks: &[(MaskKind, Vec<u8>)],
        out: &mut [u8],
    ) -> Result<(), ErrorKind> {
        let len = self.payload.len_usize().unwrap_or(usize::MAX).min(stored.len());
        let decoded = self.pipeline.decode(&stored[..len], masks, out);
        decoded.map_err(|error| self.wrong(error))
    }

    /// Restores non-finite values; `out` starts with element `first`.
    pub(super) fn restore(&self, stored: &[u8], first: u64, out: &mut [u8]) -> Result<(), ErrorKind> {
        for mask in &self.masks {
            self.pipeline.restore(mask.kind, &self.bits_of(mask, stored)?, first, out);
        }
        Ok(())
    }

    /// The packed bits of each mask.
    pub(super) fn bits(&self, stored: &[u8]) -> Result<Vec<(MaskKind, Vec<u8>)>, ErrorKind> {
        self.masks.iter().map(|mask| Ok((mask.kind, self.bits_of(mask, stored)?))).collect()
    }

    fn bits_of(&self, mask: &Mask, stored: &[u8]) -> Result<Vec<u8>, ErrorKind> {
        // The range was checked when the descriptor was read.
        let start = usize::try_from(mask.offset).unwrap_or(usize::MAX).min(stored.len());
        let len = usize::try_from(mask.length).unwrap_or(usize::MAX);
        let end = start.saturating_add(len).min(stored.len());
        mask.bits(&stored[start..end], self.elements).map_err(|error| self.wrong(error))
    }

    /// Whether there are masks to apply.
    pub(super) fn has_masks(&self) -> bool {
        self.options.restore_non_finite && !self.masks.is_empty()
    }

    pub(super) fn wrong(&self, error: PipelineError) -> ErrorKind {
        ErrorKind::Pipeline { region: self.region, span: self.payload, error: Box::new(error) }
    }
}
