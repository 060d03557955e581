//! Input arrays of a message.

use std::collections::BTreeSet;
use std::ops::Deref;

use tercet::convert::npy::Array;
use tercet::core::tensor::{Buffer, OutOfMemory};
use tercet::core::{ByteSource, Class, Span, escape, limits};
use tercet::tgm::{DType, DataObjectDescriptor, can_widen_to_f64, widen_to_f64};

use crate::cmd::tgm::pipeline::Pipeline;
use crate::failure::Failure;
use crate::input::{self, must_be_npy};
use crate::named_file::NamedFile;
use crate::ui::Ui;

/// An open array and its object descriptor.
#[derive(Debug)]
pub(super) struct Object {
    /// The object name.
    name: String,
    array: Array,
    descriptor: DataObjectDescriptor,
    /// The dtype in the file, if the values are converted to float64.
    widened_from: Option<DType>,
}

/// The values of an array, row-major and little-endian.
#[derive(Debug)]
pub(super) enum Payload<'a> {
    /// Borrowed from the mapped file.
    InPlace(&'a [u8]),
    /// Reordered or converted in memory.
    Read(Buffer),
}

impl Deref for Payload<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::InPlace(bytes) => bytes,
            Self::Read(buffer) => buffer,
        }
    }
}

/// Opens every array. No value is read yet.
pub(super) fn open(from: &[NamedFile], pipeline: &Pipeline, out: &mut Ui) -> Result<Vec<Object>, Failure> {
    let mut seen = BTreeSet::new();
    if let Some(twice) = from.iter().find(|from| !seen.insert(&from.name)) {
        let name = escape::name(&twice.name);
        return Err(Failure::request(format!("duplicate object name `{name}`")));
    }
    from.iter().map(|from| Object::open(from, pipeline, out)).collect()
}

/// The total size of all arrays.
pub(super) fn total_bytes(objects: &[Object]) -> u64 {
    objects.iter().fold(0, |sum, object| sum.saturating_add(object.bytes()))
}

/// The length of the first axis of all arrays, along which they are split.
pub(super) fn split_count(objects: &[Object]) -> Result<u64, Failure> {
    let mut count = None;
    for object in objects {
        let Some(&len) = object.array.shape().first().filter(|len| **len > 0) else {
            return Err(Failure::request(format!("{}: has no first axis to split", object.label())));
        };
        if object.descriptor.dtype == DType::Bitmask {
            return Err(Failure::request(format!("{}: a bitmask cannot be split", object.label())));
        }
        match count {
            Some((first, label)) if first != len => {
                let message = format!("{label} has {first} positions, {} has {len}", object.label());
                let hint = "all arrays are split along their first axis, which must have the same length";
                return Err(Failure::request(message).with_hint(hint));
            }
            _ => count = Some((len, object.label())),
        }
    }
    Ok(count.map_or(0, |(count, _)| count))
}

impl Object {
    /// The descriptor of one position on the first axis.
    pub(super) fn row_descriptor(&self, pipeline: &Pipeline) -> Result<DataObjectDescriptor, Failure> {
        let shape = self.array.shape().get(1..).unwrap_or_default().to_vec();
        let plain = DataObjectDescriptor::new(self.descriptor.dtype, shape);
        pipeline.apply(plain).map_err(|unfit| unfit.failure(&self.label()))
    }

    fn open(from: &NamedFile, pipeline: &Pipeline, out: &mut Ui) -> Result<Self, Failure> {
        let array = Array::from_source(must_be_npy(input::open(&from.path)?)?)?;
        let is_bitmask = array.dtype() == DType::Bool && pipeline.makes_bitmasks();
        if array.dtype() == DType::Bool && !is_bitmask {
            let name = escape::name(array.name());
            out.note(format_args!("note: {name}: bool stored as uint8"))?;
        }
        let found = if is_bitmask { DType::Bitmask } else { stored_dtype(array.dtype()) };
        let widened_from = Some(found).filter(|dtype| pipeline.widens() && can_widen_to_f64(*dtype));
        let dtype = if widened_from.is_some() { DType::F64 } else { found };
        let plain = DataObjectDescriptor::new(dtype, array.shape().to_vec());
        let name = from.name.clone();
        let descriptor = pipeline.apply(plain).map_err(|unfit| unfit.failure(&label(&name, &array)))?;
        if let Some(dtype) = widened_from {
            let name = escape::name(array.name());
            out.note(format_args!("note: {name}: {dtype} stored as float64"))?;
        }
        if pipeline.keeps_first_value_only() {
            let name = escape::name(array.name());
            out.note(format_args!("note: {name}: 0 bits store the first value in place of all values"))?;
        }
        Ok(Self { name, array, descriptor, widened_from })
    }

    /// The object name and its file, for messages.
    pub(super) fn label(&self) -> String {
        label(&self.name, &self.array)
    }

    /// The object name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn descriptor(&self) -> &DataObjectDescriptor {
        &self.descriptor
    }

    pub(super) fn bytes(&self) -> u64 {
        self.array.bytes()
    }

    /// The values in storage order; borrowed if the file has them in this order.
    pub(super) fn read(&self) -> Result<Payload<'_>, Failure> {
        let values = self.read_as_found()?;
        if self.descriptor.dtype == DType::Bitmask {
            return packed_bits(&values)
                .map(Payload::Read)
                .map_err(|error| Failure::new(Class::Limit, format!("{}: {error}", self.label())));
        }
        let Some(dtype) = self.widened_from else { return Ok(values) };
        let widened = widen_to_f64(dtype, &values);
        widened.map(Payload::Read).map_err(|reason| Failure::request(format!("{}: {reason}", self.label())))
    }

    /// The values in the file, if they are stored as they are there: they need not be in memory.
    pub(super) fn in_file(&self) -> Option<(&dyn ByteSource, Span)> {
        let is_changed = self.widened_from.is_some() || self.descriptor.dtype == DType::Bitmask;
        let (source, span) = self.array.stored_values().filter(|_| !is_changed)?;
        // A remote file is read once.
        let is_copied = self.descriptor.is_plain() && !source.is_remote() && source.view(span).is_none();
        is_copied.then_some((source, span))
    }

    fn read_as_found(&self) -> Result<Payload<'_>, Failure> {
        if let Some(bytes) = self.array.in_place() {
            return Ok(Payload::InPlace(bytes));
        }
        read_into_memory(&self.array).map(Payload::Read)
    }
}

/// Reads all values of an array, row-major and little-endian.
pub(in crate::cmd::tgm) fn read_into_memory(array: &Array) -> Result<Buffer, Failure> {
    let too_large = |reason: &dyn std::fmt::Display| {
        Failure::new(Class::Limit, format!("{}: {reason}", escape::name(array.name())))
    };
    let len =
        limits::check_limit("the array", array.bytes(), isize::MAX as u64).map_err(|e| too_large(&e))?;
    let mut buffer = Buffer::zeroed(len).map_err(|error| too_large(&error))?;
    array.read_all(&mut buffer)?;
    Ok(buffer)
}

/// Packs bools into bits, most significant bit first.
fn packed_bits(values: &[u8]) -> Result<Buffer, OutOfMemory> {
    let mut bits = Buffer::zeroed(values.len().div_ceil(8))?;
    for (byte, values) in bits.iter_mut().zip(values.chunks(8)) {
        *byte =
            values.iter().enumerate().fold(0, |byte, (at, value)| byte | u8::from(*value != 0) << (7 - at));
    }
    Ok(bits)
}

fn label(name: &str, array: &Array) -> String {
    format!("`{}` from {}", escape::name(name), escape::name(array.name()))
}

/// The dtype in which a message stores a dtype of NumPy: bools become bytes.
pub(in crate::cmd::tgm) fn stored_dtype(dtype: DType) -> DType {
    if dtype == DType::Bool { DType::U8 } else { dtype }
}
