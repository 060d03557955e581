//! Decoding of a part of an object, selected by axis.

use std::ops::Range;

use tercet_core::tensor::Buffer;
use tercet_core::{DType, Selection, Tensor};

use super::{Object, tensor};
use crate::error::{Error, ErrorKind};

/// The maximum number of ranges that are read one by one; more of them are taken from the complete array.
const MAX_RUNS: u64 = 1 << 16;

/// A selected part of an object.
#[derive(Debug)]
pub struct Selected {
    /// The values, in the shape of the selection.
    pub array: Tensor,
    /// Whether the hash of the object is verified; see [`Ranges::verified`](crate::Ranges::verified).
    pub verified: bool,
}

impl Object<'_> {
    /// Decodes the part of the array that a selection describes.
    ///
    /// Like [`decode_ranges`](Self::decode_ranges), this reads and decodes only the required bytes if the pipeline allows
    /// it. Bits cannot be selected by axis.
    ///
    /// ```
    /// use tercet_core::Selection;
    /// use tercet_tgm::{DataObjectDescriptor, DType, EncodeOptions, GlobalMetadata, Message, encode_message};
    ///
    /// let descriptor = DataObjectDescriptor::new(DType::U8, [2, 3]);
    /// let bytes = encode_message(&GlobalMetadata::default(), &[(&descriptor, &[1, 2, 3, 4, 5, 6])], &EncodeOptions::new())?;
    /// let message = Message::from_bytes("example", bytes)?;
    /// let selection = Selection::parse("0:2,1:3", &[2, 3]).expect("inside");
    /// assert_eq!(message.object(0)?.decode_selection(&selection)?.array.bytes(), [2, 3, 5, 6]);
    /// # Ok::<(), tercet_tgm::Error>(())
    /// ```
    pub fn decode_selection(&self, selection: &Selection) -> Result<Selected, Error> {
        let shape = &self.descriptor().shape;
        let width = self.descriptor().dtype.size().filter(|_| self.descriptor().dtype != DType::Bitmask);
        let Some(width) = width.filter(|_| selection.axes().len() == shape.len()) else {
            let (expected, found) = (shape.len() as u64, selection.axes().len() as u64);
            return Err(self.named(ErrorKind::BufferSize { expected, found }));
        };
        let plan = Runs::new(selection, shape);
        let elements = selection.shape().elements().unwrap_or(u64::MAX);
        let (sources, verified) = if plan.count() <= MAX_RUNS {
            let found = self.decode_ranges(&plan.ranges())?;
            (found.arrays, found.verified)
        } else {
            let verified = self.options().common.verify && self.frame().hash().is_some();
            (vec![self.decode()?], verified)
        };
        let fill = || {
            let len = self.descriptor().dtype.byte_len(elements).and_then(|len| usize::try_from(len).ok());
            let mut out = Buffer::zeroed(len.unwrap_or(usize::MAX))?;
            plan.gather(&sources, width, &mut out);
            tensor(self.descriptor().dtype, selection.shape().to_vec(), out)
        };
        let array = fill().map_err(|fault: ErrorKind| self.named(fault))?;
        Ok(Selected { array, verified })
    }
}

/// The contiguous ranges of elements that cover a selection.
///
/// All axes after axis `k` are selected completely, so that a position of the axes before it has one range: from the
/// first to the last position of axis `k`.
struct Runs {
    /// Positions of the axes before `k`, as offsets in elements.
    outer: Vec<Vec<u64>>,
    /// First element, number of blocks, elements per block, and blocks from one selected block to the next.
    first: u64,
    blocks: u64,
    block: u64,
    step: u64,
}

impl Runs {
    fn new(selection: &Selection, shape: &[u64]) -> Self {
        let axes = selection.axes();
        let stride = |axis: usize| shape.iter().skip(axis + 1).product::<u64>();
        let is_full =
            |axis: usize| axes[axis].start == 0 && axes[axis].stop == shape[axis] && axes[axis].step == 1;
        let inner = (0..axes.len()).rev().find(|&axis| !is_full(axis));
        let Some(k) = inner else {
            return Self { outer: Vec::new(), first: 0, blocks: 1, block: shape.iter().product(), step: 1 };
        };
        let offsets = |axis: usize| {
            let slice = axes[axis];
            let step = usize::try_from(slice.step).unwrap_or(usize::MAX);
            (slice.start..slice.stop).step_by(step).map(|position| position * stride(axis)).collect()
        };
        let slice = axes[k];
        let outer = (0..k).map(offsets).collect();
        Self {
            outer,
            first: slice.start * stride(k),
            blocks: slice.count(),
            block: stride(k),
            step: slice.step,
        }
    }

    /// The number of ranges.
    fn count(&self) -> u64 {
        self.outer.iter().fold(1, |count, axis| count.saturating_mul(axis.len() as u64))
    }

    /// The length of a range in elements.
    fn len(&self) -> u64 {
        (self.blocks.saturating_sub(1) * self.step + 1) * self.block
    }

    /// The first elements of the ranges, in order.
    fn starts(&self) -> Vec<u64> {
        let mut starts = vec![self.first];
        for axis in &self.outer {
            starts = starts.iter().flat_map(|start| axis.iter().map(move |offset| start + offset)).collect();
        }
        starts
    }

    fn ranges(&self) -> Vec<Range<u64>> {
        self.starts().into_iter().map(|start| start..start + self.len()).collect()
    }

    /// Copies the selected elements out of the ranges, or out of the complete array if there is one source only.
    fn gather(&self, sources: &[Tensor], width: usize, out: &mut [u8]) {
        let bytes = |elements: u64| usize::try_from(elements).unwrap_or(usize::MAX).saturating_mul(width);
        let is_complete = sources.len() == 1 && self.count() > 1;
        let mut pieces = out.chunks_mut(bytes(self.block).max(1));
        for (number, start) in self.starts().into_iter().enumerate() {
            let (source, base) =
                if is_complete { (sources.first(), start) } else { (sources.get(number), 0) };
            let source = source.map_or(&[][..], Tensor::bytes);
            for block in 0..self.blocks {
                let at = bytes(base + block * self.step * self.block);
                let from = source.get(at..at.saturating_add(bytes(self.block)));
                if let (Some(to), Some(from)) = (pieces.next(), from) {
                    to.copy_from_slice(from);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tercet_core::Shape;

    use super::*;
    use crate::{DataObjectDescriptor, EncodeOptions, GlobalMetadata, Message, encode_message};

    /// Every selection equals the elements picked one by one, whatever the pipeline.
    #[test]
    fn selections_equal_the_picked_elements() {
        let shape = [4_u64, 3, 5];
        let values: Vec<u8> = (0..60).collect();
        for compression in ["none", "zstd"] {
            let descriptor = DataObjectDescriptor::new(DType::U8, shape).with_compression(compression);
            let encoded =
                encode_message(&GlobalMetadata::default(), &[(&descriptor, &values)], &EncodeOptions::new());
            let message = Message::from_bytes("m", encoded.unwrap()).unwrap();
            let object = message.object(0).unwrap();
            for text in [
                ":",
                "1",
                "1:3",
                "0:4:2,1",
                ":,1:2,::2",
                "::3,::2,4",
                "2,2,2",
                ":,:,1:4",
                "1:2,:,:",
                "-1,...,-2:",
            ] {
                let selection = Selection::parse(text, &shape).unwrap();
                let found = object.decode_selection(&selection).unwrap();
                let mut expected = Vec::new();
                let axes = selection.axes();
                for a in (axes[0].start..axes[0].stop).step_by(axes[0].step as usize) {
                    for b in (axes[1].start..axes[1].stop).step_by(axes[1].step as usize) {
                        for c in (axes[2].start..axes[2].stop).step_by(axes[2].step as usize) {
                            expected.push(values[(a * 15 + b * 5 + c) as usize]);
                        }
                    }
                }
                assert_eq!(found.array.bytes(), expected, "{text}");
                assert_eq!(*found.array.shape(), selection.shape(), "{text}");
                assert!(found.verified);
            }
        }
    }

    #[test]
    fn many_runs_are_taken_from_the_complete_array() {
        let shape = [70_000_u64, 2];
        let values: Vec<u8> = (0..140_000_u32).map(|n| (n % 251) as u8).collect();
        let descriptor = DataObjectDescriptor::new(DType::U8, shape);
        let encoded =
            encode_message(&GlobalMetadata::default(), &[(&descriptor, &values)], &EncodeOptions::new());
        let message = Message::from_bytes("m", encoded.unwrap()).unwrap();
        let selection = Selection::parse(":,1", &shape).unwrap();
        let found = message.object(0).unwrap().decode_selection(&selection).unwrap();
        let expected: Vec<u8> = values.iter().copied().skip(1).step_by(2).collect();
        assert_eq!(found.array.bytes(), expected);
        assert_eq!(*found.array.shape(), Shape::from([70_000, 1]));
    }
}
