//! The values of extracted objects.

use std::io::Write;

use tercet::convert::npy;
use tercet::core::publish::PublishError;
use tercet::core::tensor::Buffer;
use tercet::core::{Class, Progress as _, Selection, Shape, escape, limits};
use tercet::tgm::{DType, DataObjectDescriptor, File, Message, Object, Tensor, Value};

use super::format::ArrayFormat;
use super::ranges;
use super::target::ObjectNumber;
use super::{Args, csv};
use crate::cmd::tgm::select::{Row, printed};
use crate::failure::Failure;
use crate::output::{Output, Spool, atomic_file, deliver, stream_failure};
use crate::ui::{Bar, Ui};

/// Bytes written between two checks for interrupts.
const PIECE: usize = 1 << 20;

/// The extracted values with dtype and shape.
pub(super) struct ExtractedValues {
    header: Vec<u8>,
    pub(super) dtype: DType,
    pub(super) shape: Shape,
    values: Values,
}

/// A complete array, or concatenated ranges.
pub(super) enum Values {
    Complete(Tensor),
    Joined(Vec<u8>),
}

impl Values {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Complete(array) => array.bytes(),
            Self::Joined(bytes) => bytes,
        }
    }
}

/// The values of an object, or a part of them.
pub(super) fn take(
    args: &Args,
    message: &Message,
    format: ArrayFormat,
    object: u64,
    out: &mut Ui,
) -> Result<ExtractedValues, Failure> {
    let object = open(args, message, object, out)?;
    if !args.ranges.is_empty() {
        let elements = ranges::total(&args.ranges)?;
        let header = header(format, object.descriptor(), &[elements], &object, out)?;
        let values = ranges::read(&object, &args.ranges, out)?;
        let (dtype, shape) = (object.descriptor().dtype, Shape::new(vec![elements]));
        return Ok(ExtractedValues { header, dtype, shape, values });
    }
    let Some(selection) = selection(args, &object)? else {
        let header = header(format, object.descriptor(), &object.descriptor().shape, &object, out)?;
        let array = object.decode()?;
        return Ok(ExtractedValues::new(header, array));
    };
    let header = header(format, object.descriptor(), &selection.shape(), &object, out)?;
    Ok(ExtractedValues::new(header, part(&object, &selection, out)?))
}

/// Several objects along a new first axis.
pub(super) struct Stack {
    pub(super) taken: ExtractedValues,
    /// The first and the last value of the key.
    pub(super) labels: String,
    /// The values of the key and the objects, in order.
    pub(super) axis: Vec<(Value, ObjectNumber)>,
}

/// The values of several objects along a new first axis, in the order of a key.
pub(super) fn stack(
    args: &Args,
    file: &File,
    format: ArrayFormat,
    objects: &[ObjectNumber],
    key: &str,
    out: &mut Ui,
) -> Result<Stack, Failure> {
    let name = escape::name(file.name()).into_owned();
    let wrong =
        |number: ObjectNumber, reason: String| Failure::request(format!("{name}: object {number}: {reason}"));
    let mut labelled: Vec<(Value, ObjectNumber)> = Vec::new();
    for &number in objects {
        let message = number.message(file)?;
        let index = [number.object];
        let value = Row::new(message.metadata(), Some(&message), &index).value(key)?;
        let value = value.ok_or_else(|| wrong(number, format!("no key `{}`", escape::name(key))))?;
        labelled.push((value.into_owned(), number));
    }
    sort(&mut labelled).ok_or_else(|| {
        Failure::request(format!(
            "{name}: values of `{}` are neither all numbers nor all strings",
            escape::name(key)
        ))
    })?;
    if let Some(pair) =
        labelled.windows(2).find(|pair| order(&pair[0].0, &pair[1].0) == Some(std::cmp::Ordering::Equal))
    {
        let (value, first, second) = (escape::name(&printed(&pair[0].0)).into_owned(), pair[0].1, pair[1].1);
        let message = format!("{name}: objects {first} and {second} both have `{key}` {value}");
        return Err(Failure::request(message).with_hint("select one of them with `-w` or by name"));
    }
    let labels = match (labelled.first(), labelled.last()) {
        (Some((first, _)), Some((last, _))) => {
            format!("{}..{}", escape::name(&printed(first)), escape::name(&printed(last)))
        }
        _ => String::new(),
    };
    let mut stacked: Option<(DType, Vec<u64>, Buffer, Vec<u8>)> = None;
    for (position, (_, number)) in labelled.iter().enumerate() {
        if crate::ui::is_interrupted() {
            return Err(Failure::Interrupted);
        }
        let message = number.message(file)?;
        let object = open(args, &message, number.object, out)?;
        let dtype = object.descriptor().dtype;
        let selection = selection(args, &object)?;
        let shape = selection
            .as_ref()
            .map_or(object.descriptor().shape.clone(), |selection| selection.shape().to_vec());
        if dtype == DType::Bitmask {
            return Err(wrong(*number, "bitmasks cannot be stacked".to_owned()));
        }
        if stacked.is_none() {
            let whole: Vec<u64> = [objects.len() as u64].into_iter().chain(shape.iter().copied()).collect();
            let len = Shape::new(whole.clone()).elements().and_then(|elements| dtype.byte_len(elements));
            let large =
                |error: &dyn std::fmt::Display| Failure::new(Class::Limit, format!("{name}: {error}"));
            let len = limits::check_limit("the stack", len.unwrap_or(u64::MAX), isize::MAX as u64)
                .map_err(|e| large(&e))?;
            let header = header(format, object.descriptor(), &whole, &object, out)?;
            stacked = Some((dtype, whole, Buffer::zeroed(len).map_err(|error| large(&error))?, header));
        }
        let Some((first, whole, buffer, _)) = &mut stacked else { continue };
        if *first != dtype || whole.get(1..) != Some(&shape[..]) {
            let (one, other) = (Shape::new(whole.get(1..).unwrap_or_default().to_vec()), Shape::new(shape));
            return Err(wrong(*number, format!("is {dtype} {other}, but the first one is {first} {one}")));
        }
        let len = buffer.len() / objects.len().max(1);
        if let Some(to) = buffer.get_mut(position * len..(position + 1) * len) {
            match &selection {
                Some(selection) => to.copy_from_slice(part(&object, selection, out)?.bytes()),
                None => object.decode_into(to)?,
            }
        }
    }
    let Some((dtype, shape, buffer, header)) = stacked else {
        return Err(Failure::request("nothing to stack"));
    };
    let array = Tensor::from_buffer(dtype, Shape::new(shape), buffer)
        .map_err(|error| Failure::request(error.to_string()))?;
    Ok(Stack { taken: ExtractedValues::new(header, array), labels, axis: labelled })
}

/// Sorts by number, or by string; `None` for other and for mixed values.
fn sort(labelled: &mut [(Value, ObjectNumber)]) -> Option<()> {
    let first = labelled.first()?.0.clone();
    if !labelled.iter().all(|(value, _)| order(&first, value).is_some()) {
        return None;
    }
    labelled.sort_by(|a, b| order(&a.0, &b.0).unwrap_or(std::cmp::Ordering::Equal));
    Some(())
}

fn order(left: &Value, right: &Value) -> Option<std::cmp::Ordering> {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        (Value::Integer(left), Value::Integer(right)) => Some(left.cmp(right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

/// Opens an object, and verifies it on request.
fn open<'a>(args: &Args, message: &'a Message, object: u64, out: &mut Ui) -> Result<Object<'a>, Failure> {
    let object = message.object(object)?;
    if args.verify {
        object.verify()?;
    }
    if args.no_restore && !object.masks_span().is_empty() {
        out.note_once("note: masked values are written as zeros")?;
    }
    Ok(object)
}

/// The selected part, if slices are given.
fn selection(args: &Args, object: &Object<'_>) -> Result<Option<Selection>, Failure> {
    let Some(slices) = &args.slices else { return Ok(None) };
    let (shape, index) = (&object.descriptor().shape, object.index());
    if object.descriptor().dtype == DType::Bitmask {
        return Err(
            Failure::request("bitmasks cannot be sliced by axis").with_hint("use `--range START:COUNT`")
        );
    }
    let selection = Selection::parse(slices, shape);
    selection.map(Some).map_err(|error| {
        let shape = Shape::new(shape.clone());
        Failure::request(format!(
            "`-s {}` of object {index} with shape {shape}: {error}",
            escape::name(slices)
        ))
    })
}

/// Reads a part. Prints a note if no hash was verified.
fn part(object: &Object<'_>, selection: &Selection, out: &mut Ui) -> Result<Tensor, Failure> {
    let found = object.decode_selection(selection)?;
    if !found.verified {
        ranges::note_unverified(object, out)?;
    }
    Ok(found.array)
}

impl ExtractedValues {
    fn new(header: Vec<u8>, array: Tensor) -> Self {
        Self { header, dtype: array.dtype(), shape: array.shape().clone(), values: Values::Complete(array) }
    }

    /// Writes the values; returns the number of bytes, or `None` on standard output.
    pub(super) fn write(
        &self,
        output: Output,
        format: ArrayFormat,
        force: bool,
        out: &mut Ui,
    ) -> Result<Option<u64>, Failure> {
        if format == ArrayFormat::Csv {
            return self.write_csv(output, force, out);
        }
        let values = self.values.bytes();
        let bar = out.bar("extracting", values.len() as u64);
        match output {
            Output::Path(path) => {
                let mut atomic_file = atomic_file(&path, force)?;
                write_all(&mut atomic_file, &self.header, values, &bar, of_file)?;
                atomic_file.publish()?;
                Ok(Some((self.header.len() + values.len()) as u64))
            }
            Output::Stream(mut stream) => {
                write_all(&mut stream, &self.header, values, &bar, |error| stream_failure(&error))?;
                stream.finish().map(Some)
            }
            Output::Stdout => {
                write_all(out.bytes()?, &self.header, values, &bar, |e| Failure::output(&e))?;
                Ok(None)
            }
        }
    }

    /// The length of the values in bytes.
    pub(super) fn len(&self) -> u64 {
        self.values.bytes().len() as u64
    }

    /// The values as an array; `format` is for errors.
    pub(super) fn into_array(self, format: &str) -> Result<Tensor, Failure> {
        match self.values {
            Values::Complete(array) => Ok(array),
            Values::Joined(bytes) => joined(self.dtype, self.shape, &bytes, format),
        }
    }

    fn write_csv(&self, output: Output, force: bool, out: &mut Ui) -> Result<Option<u64>, Failure> {
        let array;
        let array = match &self.values {
            Values::Complete(array) => array,
            Values::Joined(bytes) => {
                array = joined(self.dtype, self.shape.clone(), bytes, "CSV")?;
                &array
            }
        };
        match output {
            Output::Path(path) => {
                let mut atomic_file = atomic_file(&path, force)?;
                csv::write(array, &mut atomic_file)?;
                atomic_file.publish()?;
                Ok(Some(std::fs::metadata(&path).map_or(0, |meta| meta.len())))
            }
            output => {
                let is_stdout = matches!(output, Output::Stdout);
                let mut spool = Spool::new()?;
                csv::write(array, &mut spool)?;
                let file = tercet::core::Sink::finish(spool)
                    .map_err(|error| Failure::io("cannot write the temporary file", &error))?;
                let bytes = deliver(file, output, out)?;
                Ok(Some(bytes).filter(|_| !is_stdout))
            }
        }
    }
}

/// Concatenated ranges as an array.
fn joined(dtype: DType, shape: Shape, bytes: &[u8], format: &str) -> Result<Tensor, Failure> {
    let buffer = Buffer::zeroed(bytes.len());
    let mut buffer = buffer.map_err(|error| Failure::new(Class::Limit, error.to_string()))?;
    buffer.copy_from_slice(bytes);
    Tensor::from_buffer(dtype, shape, buffer)
        .map_err(|_| Failure::request(format!("{dtype} cannot be written as {format}")))
}

fn header(
    format: ArrayFormat,
    descriptor: &DataObjectDescriptor,
    shape: &[u64],
    object: &Object<'_>,
    out: &mut Ui,
) -> Result<Vec<u8>, Failure> {
    match format {
        ArrayFormat::Npy => npy_header(object, descriptor, shape, out),
        ArrayFormat::Raw | ArrayFormat::Csv | ArrayFormat::Tet => Ok(Vec::new()),
    }
}

/// The .npy header of an object. Some dtypes are stored under another NumPy type.
fn npy_header(
    object: &Object<'_>,
    descriptor: &DataObjectDescriptor,
    shape: &[u64],
    out: &mut Ui,
) -> Result<Vec<u8>, Failure> {
    // Report an unsupported pipeline first.
    object.decoded_len()?;
    let (rank, most) = (shape.len(), npy::MAX_RANK);
    if rank > most && descriptor.dtype != DType::Bitmask {
        let declared = format!("the object has {rank} axes; NumPy arrays have at most {most}");
        return Err(Failure::request(declared).with_hint("use `--as raw` to write the values only"));
    }
    if is_in_another_order(descriptor) {
        out.note(format_args!(
            "note: strides {:?} of the object are ignored; values are row-major",
            descriptor.strides
        ))?;
    }
    let (dtype, shape) = match descriptor.dtype {
        DType::BF16 => {
            out.note("note: bfloat16 is not supported by NumPy; bits written as uint16")?;
            (DType::U16, shape.to_vec())
        }
        DType::Bitmask => {
            let shape = Shape::new(shape.to_vec());
            let len = shape.elements().unwrap_or(0).div_ceil(8);
            out.note(format_args!(
                "note: bitmask is not supported by NumPy; {shape} bits written as {len} bytes of uint8, most significant bit first"
            ))?;
            (DType::U8, vec![len])
        }
        dtype => (dtype, shape.to_vec()),
    };
    npy::header(dtype, &shape).ok_or_else(|| Failure::request(format!("{dtype} is not supported by NumPy")))
}

/// Whether the strides differ from row-major order.
fn is_in_another_order(descriptor: &DataObjectDescriptor) -> bool {
    let row_major = DataObjectDescriptor::row_major_strides(&descriptor.shape);
    // The stride of an axis of extent 1 is irrelevant.
    let matters = |extent: &&u64| **extent > 1;
    let axes = descriptor.shape.iter().zip(descriptor.strides.iter().zip(&row_major));
    descriptor.elements() != Some(0)
        && axes.filter(|(extent, _)| matters(extent)).any(|(_, (declared, taken))| declared != taken)
}

fn write_all(
    sink: &mut dyn Write,
    header: &[u8],
    values: &[u8],
    bar: &Bar,
    to_failure: impl Fn(std::io::Error) -> Failure,
) -> Result<(), Failure> {
    sink.write_all(header).map_err(&to_failure)?;
    for piece in values.chunks(PIECE) {
        bar.check().map_err(|_| Failure::Interrupted)?;
        sink.write_all(piece).map_err(&to_failure)?;
        bar.advance(piece.len() as u64);
    }
    Ok(())
}

/// An error of writing the output file.
pub(super) fn of_file(error: std::io::Error) -> Failure {
    match PublishError::recover(error) {
        Ok(error) => error.into(),
        Err(error) => Failure::io("cannot write the temporary file", &error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_relevant_strides_are_reported() {
        let with = |shape: &[u64], strides: &[u64]| {
            let mut descriptor = DataObjectDescriptor::new(DType::U8, shape.to_vec());
            descriptor.strides = strides.to_vec();
            is_in_another_order(&descriptor)
        };
        assert!(
            !with(&[2, 3], &[3, 1]) && !with(&[1, 3], &[9, 1]) && !with(&[0, 3], &[1, 1]) && !with(&[], &[])
        );
        assert!(with(&[2, 3], &[1, 2]) && with(&[4], &[8]));
    }
}
