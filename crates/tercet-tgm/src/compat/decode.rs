//! Decoding of buffers, which are borrowed.

use std::io::{Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, ops::Range};

use bytes::Bytes;
use tercet_core::progress::NoProgress;
use tercet_core::{ByteSource, SourceError, Span};

use super::error::{Result, TensogramError};
use super::options::DecodeOptions;
use super::types::{DataObjectDescriptor, GlobalMetadata};
use crate::dtype::{ByteOrder, swap_in_place};
use crate::message_view::MessageView;
use crate::object::Object;
use crate::options::ReadOptions;
use crate::pipeline::MaskKind;
use crate::scan::{ScanOptions, scan_source};

/// The name of a buffer in errors.
pub(super) const BUFFER: &str = "buffer";

/// Descriptor and values of an object.
pub type DecodedObject = (DataObjectDescriptor, Vec<u8>);

/// A decoded message: its metadata, and descriptor and values of each object.
pub type DecodedMessage = (GlobalMetadata, Vec<DecodedObject>);

/// The positions of NaN and infinities in an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecodedMaskSet {
    /// The elements that are NaN.
    pub nan: Option<Vec<bool>>,
    /// The elements that are positive infinity.
    pub pos_inf: Option<Vec<bool>>,
    /// The elements that are negative infinity.
    pub neg_inf: Option<Vec<bool>>,
}

impl DecodedMaskSet {
    /// Whether there is no mask.
    pub fn is_empty(&self) -> bool {
        self.nan.is_none() && self.pos_inf.is_none() && self.neg_inf.is_none()
    }
}

/// An object with zeros in place of NaN and infinities.
#[derive(Clone, Debug)]
pub struct DecodedObjectWithMasks {
    /// The descriptor.
    pub descriptor: DataObjectDescriptor,
    /// The values.
    pub payload: Vec<u8>,
    /// The positions of NaN and infinities.
    pub masks: DecodedMaskSet,
}

/// The messages of a buffer: offset and length of each. Reads only preambles and postambles.
pub fn scan(buffer: &[u8]) -> Vec<(usize, usize)> {
    let pair = |span: &Span| Some((usize::try_from(span.start()).ok()?, span.len_usize()?));
    crate::scan::scan(buffer).iter().filter_map(pair).collect()
}

/// The messages of a seekable reader: offset and length of each. Reads only preambles and postambles of long messages.
pub fn scan_file<R: Read + Seek + Send>(reader: &mut R) -> Result<Vec<(usize, usize)>> {
    let len = reader.seek(SeekFrom::End(0))?;
    let source = Seeking { name: Arc::from("reader"), len, reader: Mutex::new(reader) };
    let scan = scan_source(&source, ScanOptions::default(), &NoProgress).map_err(TensogramError::from)?;
    let pair = |span: &Span| Some((usize::try_from(span.start()).ok()?, span.len_usize()?));
    Ok(scan.messages.iter().filter_map(pair).collect())
}

fn open<'a>(buffer: &'a [u8], options: &DecodeOptions) -> Result<MessageView<'a>> {
    Ok(MessageView::open_with(BUFFER, buffer, ReadOptions::from(options))?)
}

/// Decodes the first message of a buffer.
pub fn decode(buffer: &[u8], options: &DecodeOptions) -> Result<DecodedMessage> {
    let message = open(buffer, options)?;
    let objects = message.each_object(|object| Ok(decoded(object, options)))?;
    let objects = objects.into_iter().collect::<Result<_>>()?;
    Ok((message.into_metadata().into(), objects))
}

/// The metadata of the first message of a buffer.
pub fn decode_metadata(buffer: &[u8]) -> Result<GlobalMetadata> {
    Ok(MessageView::open(BUFFER, buffer)?.into_metadata().into())
}

/// Metadata and descriptors of the first message of a buffer. Nothing is decoded.
pub fn decode_descriptors(buffer: &[u8]) -> Result<(GlobalMetadata, Vec<DataObjectDescriptor>)> {
    let message = MessageView::open(BUFFER, buffer)?;
    let descriptors = message.objects().map(|object| object?.descriptor().clone().try_into());
    let descriptors = descriptors.collect::<Result<_>>()?;
    Ok((message.into_metadata().into(), descriptors))
}

/// Decodes one object of the first message of a buffer.
pub fn decode_object(
    buffer: &[u8],
    index: usize,
    options: &DecodeOptions,
) -> Result<(GlobalMetadata, DataObjectDescriptor, Vec<u8>)> {
    let message = open(buffer, options)?;
    let (descriptor, values) = decoded(&message.object(index as u64)?, options)?;
    Ok((message.into_metadata().into(), descriptor, values))
}

/// Decodes ranges of elements, each an offset and a count, of one object of the first message of a buffer.
pub fn decode_range(
    buffer: &[u8],
    index: usize,
    ranges: &[(u64, u64)],
    options: &DecodeOptions,
) -> Result<(DataObjectDescriptor, Vec<Vec<u8>>)> {
    let message = open(buffer, options)?;
    decoded_ranges(&message.object(index as u64)?, ranges, options)
}

/// Decodes the first message of a buffer with zeros in place of NaN and infinities, and their positions.
pub fn decode_with_masks(
    buffer: &[u8],
    options: &DecodeOptions,
) -> Result<(GlobalMetadata, Vec<DecodedObjectWithMasks>)> {
    let message = open(buffer, options)?;
    let objects = message.each_object(|object| Ok(decoded_with_masks(object, options)))?;
    let objects = objects.into_iter().collect::<Result<_>>()?;
    Ok((message.into_metadata().into(), objects))
}

/// The hashes in the frames of the objects of the first message of a buffer. Nothing is decoded.
pub fn data_object_inline_hashes(buffer: &[u8]) -> Result<Vec<Option<u64>>> {
    let message = MessageView::open(BUFFER, buffer)?;
    Ok(message.layout().objects().map(crate::wire::frame::Frame::hash).collect())
}

pub(super) fn decoded(object: &Object<'_>, options: &DecodeOptions) -> Result<DecodedObject> {
    let mut values = object.decode_to_vec()?;
    reorder(object.descriptor(), options, &mut values);
    Ok((object.descriptor().clone().try_into()?, values))
}

pub(super) fn decoded_ranges(
    object: &Object<'_>,
    ranges: &[(u64, u64)],
    options: &DecodeOptions,
) -> Result<(DataObjectDescriptor, Vec<Vec<u8>>)> {
    let range = |&(start, count): &(u64, u64)| -> Range<u64> { start..start.saturating_add(count) };
    let ranges: Vec<_> = ranges.iter().map(range).collect();
    let decoded = object.decode_ranges(&ranges)?.arrays;
    let part = |array: tercet_core::Tensor| {
        let mut values = array.bytes().to_vec();
        reorder(object.descriptor(), options, &mut values);
        values
    };
    Ok((object.descriptor().clone().try_into()?, decoded.into_iter().map(part).collect()))
}

fn decoded_with_masks(object: &Object<'_>, options: &DecodeOptions) -> Result<DecodedObjectWithMasks> {
    let (array, bitmaps) = object.decode_with_masks()?;
    let mut payload = array.bytes().to_vec();
    reorder(object.descriptor(), options, &mut payload);
    let elements = object.descriptor().elements().and_then(|elements| usize::try_from(elements).ok());
    let mut masks = DecodedMaskSet::default();
    for (kind, bits) in bitmaps {
        let bools = (0..elements.unwrap_or(0))
            .map(|at| bits.get(at / 8).is_some_and(|byte| byte << (at % 8) & 0x80 != 0));
        let slot = match kind {
            MaskKind::Nan => &mut masks.nan,
            MaskKind::PosInf => &mut masks.pos_inf,
            MaskKind::NegInf => &mut masks.neg_inf,
        };
        *slot = Some(bools.collect());
    }
    Ok(DecodedObjectWithMasks { descriptor: object.descriptor().clone().try_into()?, payload, masks })
}

/// Converts little-endian values to the requested byte order.
fn reorder(descriptor: &crate::DataObjectDescriptor, options: &DecodeOptions, values: &mut [u8]) {
    let order = if options.native_byte_order { ByteOrder::native() } else { descriptor.stored_order() };
    if order == ByteOrder::Big {
        swap_in_place(values, descriptor.dtype.swap_unit());
    }
}

/// A seekable reader as a source. Reads are serialized.
struct Seeking<'a, R> {
    name: Arc<str>,
    len: u64,
    reader: Mutex<&'a mut R>,
}

impl<R> fmt::Debug for Seeking<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seeking({} bytes)", self.len)
    }
}

impl<R: Read + Seek + Send> ByteSource for Seeking<'_, R> {
    fn name(&self) -> &Arc<str> {
        &self.name
    }
    fn len(&self) -> u64 {
        self.len
    }
    fn read_at(&self, span: Span) -> std::result::Result<Bytes, SourceError> {
        if span.end() > self.len {
            return Err(SourceError::PastEnd { span, len: self.len });
        }
        let mut out = Vec::new();
        let len = span.len_usize().ok_or(SourceError::TooLarge { span })?;
        out.try_reserve_exact(len).map_err(|_| SourceError::TooLarge { span })?;
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let read = reader
            .seek(SeekFrom::Start(span.start()))
            .and_then(|_| Read::take(&mut **reader, span.len()).read_to_end(&mut out));
        match read {
            Ok(read) if read == len => Ok(out.into()),
            Ok(_) => Err(SourceError::PastEnd { span, len: self.len }),
            Err(error) => Err(SourceError::Read { span, error }),
        }
    }
}
