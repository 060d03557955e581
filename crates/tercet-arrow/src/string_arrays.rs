//! Conversion of string and binary arrays, zero-copy where the layouts allow it.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{BinaryViewType, ByteArrayType, ByteViewType, StringViewType};
use arrow_array::{
    Array, ArrayRef, FixedSizeBinaryArray, GenericByteArray, GenericByteViewArray, LargeBinaryArray,
    LargeStringArray,
};
use arrow_buffer::{ArrowNativeType as _, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::{ByteView, MAX_INLINE_VIEW_LEN};
use arrow_schema::{ArrowError, DataType};
use bytes::Bytes;
use tercet_tatami::Strings;
use tercet_tatami::column::View;

use crate::error::ValueError;
use crate::from_arrow::RowError;

/// An Arrow buffer that owns the bytes of a [`Bytes`].
struct SharedBuffer(Buffer);

impl AsRef<[u8]> for SharedBuffer {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

fn shared(buffer: &Buffer) -> Bytes {
    Bytes::from_owner(SharedBuffer(buffer.clone()))
}

/// Converts a string or binary array; `None` for other types.
pub(crate) fn from_arrow(array: &ArrayRef) -> Option<Strings> {
    match array.data_type() {
        DataType::Utf8 => from_offsets(array.as_string::<i32>()),
        DataType::LargeUtf8 => from_offsets(array.as_string::<i64>()),
        DataType::Binary => from_offsets(array.as_binary::<i32>()),
        DataType::LargeBinary => from_offsets(array.as_binary::<i64>()),
        DataType::Utf8View => from_views(array.as_string_view()),
        DataType::BinaryView => from_views(array.as_binary_view()),
        DataType::FixedSizeBinary(_) => from_fixed(array.as_fixed_size_binary()),
        _ => None,
    }
}

fn from_offsets<T: ByteArrayType>(array: &GenericByteArray<T>) -> Option<Strings> {
    let offsets = array.value_offsets();
    if u32::try_from(array.values().len()).is_err() {
        // View offsets have 32 bits.
        let mut strings = Strings::new();
        for row in 0..array.len() {
            strings.push(if array.is_valid(row) { array.value(row).as_ref() } else { &[] });
        }
        return Some(strings);
    }
    let mut views = Vec::with_capacity(array.len());
    for (row, pair) in offsets.windows(2).enumerate() {
        let (start, end) = (pair[0].as_usize(), pair[1].as_usize());
        views.push(if array.is_valid(row) { view(0, start, end - start)? } else { View::EMPTY });
    }
    Strings::from_parts(vec![shared(array.values())], views)
}

fn from_fixed(array: &FixedSizeBinaryArray) -> Option<Strings> {
    let len = usize::try_from(array.value_length()).ok()?;
    let mut views = Vec::with_capacity(array.len());
    for row in 0..array.len() {
        views.push(if array.is_valid(row) { view(0, row * len, len)? } else { View::EMPTY });
    }
    let bytes = Bytes::copy_from_slice(array.value_data().get(..array.len() * len)?);
    Strings::from_parts(vec![bytes], views)
}

fn from_views<T: ByteViewType>(array: &GenericByteViewArray<T>) -> Option<Strings> {
    let mut buffers: Vec<Bytes> = array.data_buffers().iter().map(shared).collect();
    // Short values are inlined in views; they are copied to one more buffer.
    let mut short = Vec::new();
    let mut views = Vec::with_capacity(array.len());
    for (row, raw) in array.views().iter().enumerate() {
        if array.is_null(row) {
            views.push(View::EMPTY);
            continue;
        }
        let message = ByteView::from(*raw);
        if message.length > MAX_INLINE_VIEW_LEN {
            views.push(View { buffer: message.buffer_index, start: message.offset, len: message.length });
            continue;
        }
        let len = message.length as usize;
        views.push(view(buffers.len(), short.len(), len)?);
        short.extend_from_slice(raw.to_le_bytes().get(4..4 + len)?);
    }
    buffers.push(Bytes::from(short));
    Strings::from_parts(buffers, views)
}

fn view(buffer: usize, start: usize, len: usize) -> Option<View> {
    Some(View {
        buffer: u32::try_from(buffer).ok()?,
        start: u32::try_from(start).ok()?,
        len: u32::try_from(len).ok()?,
    })
}

/// Converts to a view array.
fn to_views<T: ByteViewType>(strings: Strings, nulls: Option<NullBuffer>) -> Result<ArrayRef, RowError> {
    let (buffers, views) = strings.into_parts();
    let mut raw = Vec::with_capacity(views.len());
    for (row, view) in views.iter().enumerate() {
        let (start, len) = (view.start as usize, view.len as usize);
        let bytes = match buffers.get(view.buffer as usize) {
            Some(buffer) if len > 0 => &buffer[start..start + len],
            _ => &[],
        };
        // Arrow defines view fields as signed.
        if len > i32::MAX as usize || start > i32::MAX as usize {
            return Err((row, ValueError::TooLong { len }));
        }
        raw.push(arrow_array::builder::make_view(bytes, view.buffer, view.start));
    }
    let shared: Vec<Buffer> = buffers.iter().cloned().map(Buffer::from).collect();
    let array = GenericByteViewArray::<T>::try_new(ScalarBuffer::from(raw), shared, nulls);
    array.map(|array| Arc::new(array) as ArrayRef).map_err(|_| {
        let strings = Strings::from_parts(buffers, views).unwrap_or_default();
        (first_wrong(&strings), ValueError::InvalidUtf8)
    })
}

fn first_wrong(strings: &Strings) -> usize {
    strings.iter().position(|text| std::str::from_utf8(text).is_err()).unwrap_or(0)
}

/// Converts to a string or binary view array.
pub(crate) fn views(
    strings: Strings,
    nulls: Option<NullBuffer>,
    is_text: bool,
) -> Result<ArrayRef, RowError> {
    if is_text {
        to_views::<StringViewType>(strings, nulls)
    } else {
        to_views::<BinaryViewType>(strings, nulls)
    }
}

/// Converts to a large string or binary array.
pub(crate) fn large(
    strings: &Strings,
    nulls: Option<NullBuffer>,
    is_text: bool,
) -> Result<ArrayRef, RowError> {
    let total = usize::try_from(strings.total_bytes()).unwrap_or(usize::MAX);
    let mut bytes = Vec::with_capacity(total);
    let mut offsets = Vec::with_capacity(strings.len() + 1);
    offsets.push(0i64);
    for value in strings.iter() {
        bytes.extend_from_slice(value);
        offsets.push(i64::try_from(bytes.len()).unwrap_or(i64::MAX));
    }
    let (offsets, values) = (OffsetBuffer::new(ScalarBuffer::from(offsets)), Buffer::from(bytes));
    let made: Result<ArrayRef, ArrowError> = if is_text {
        LargeStringArray::try_new(offsets, values, nulls).map(|array| Arc::new(array) as ArrayRef)
    } else {
        LargeBinaryArray::try_new(offsets, values, nulls).map(|array| Arc::new(array) as ArrayRef)
    };
    made.map_err(|_| (first_wrong(strings), ValueError::InvalidUtf8))
}

/// Converts to a fixed-size binary array.
pub(crate) fn fixed(strings: &Strings, nulls: Option<NullBuffer>, len: i32) -> Result<ArrayRef, RowError> {
    let expected = usize::try_from(len).unwrap_or(0);
    let mut bytes = Vec::with_capacity(strings.len().saturating_mul(expected));
    for (row, value) in strings.iter().enumerate() {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            bytes.resize(bytes.len() + expected, 0);
            continue;
        }
        if value.len() != expected {
            return Err((row, ValueError::LengthMismatch { found: value.len(), expected }));
        }
        bytes.extend_from_slice(value);
    }
    // For a length of zero the number of values must be passed.
    let made = FixedSizeBinaryArray::try_new_with_len(len, Buffer::from(bytes), nulls, strings.len());
    made.map(|array| Arc::new(array) as ArrayRef)
        .map_err(|_| (0, ValueError::LengthMismatch { found: 0, expected }))
}
