//! `tgm extract`: extract an array from a message.

use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;
use tercet::convert::npy;
use tercet::core::publish::PublishError;
use tercet::core::{Progress as _, Shape};
use tercet::tgm::{DType, DataObjectDescriptor, Object, Tensor};

use super::object_id::{ObjectId, describe, parse_object_id};
use super::open::ReadArgs;
use crate::args::ForceArgs;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::{ArrayFormat, Output, atomic_file, display_path, json_path, stream_failure};
use crate::render::human_size;
use crate::ui::{Bar, Ui};

mod ranges;

use ranges::Span;

/// Bytes written between two checks for interrupts.
const PIECE: usize = 1 << 20;

const EXAMPLES: &str = "\
Examples:
  tgm extract run.tgm 0.1 -o land.npy               object 1 of message 0
  tgm extract run.tgm 7 -o - | xxd                  the only object of message 7, raw
  cat run.tgm | tgm extract - 0.0 --as npy -o -     from pipe to pipe
  tgm extract run.tgm 0.0 --range 100:50 -o x.npy   50 values, starting at index 100

Messages, objects and values are numbered from 0; values in row-major order of the whole array.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Message and object number: `3.1`. The object may be omitted if it is the only one
    #[arg(value_name = "MSG[.OBJ]", value_parser = parse_object_id)]
    object: ObjectId,
    /// Output format [default: `npy` for *.npy, else `raw`, also for `-`]
    #[arg(long = "as", value_name = "FORMAT")]
    format: Option<ArrayFormat>,
    /// Output file or URL; `-` writes raw values to standard output, or a .npy file with `--as npy`
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Extract COUNT values from index START: `100:50`. Several ranges, separated by commas or repeated, are
    /// concatenated to a one-dimensional array
    #[arg(long = "range", value_name = "START:COUNT", value_delimiter = ',', value_parser = ranges::span)]
    ranges: Vec<Span>,
    /// Verify the hash of the whole object before extracting ranges
    #[arg(long, conflicts_with = "ignore_checksums")]
    verify: bool,
    /// Write zeros instead of masked NaN and infinities
    #[arg(long)]
    no_restore: bool,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let output = Output::open(&args.output, args.force.force)?;
    if !args.input.is_stdin() {
        output.must_not_be(&args.input.path)?;
    }
    let options = args.read.options().with_restore_non_finite(!args.no_restore);
    let file = ReadArgs::open_with(args.input.source()?, options, out)?;
    let message = file.message(args.object.message)?;
    let object = message.object(args.object.object_of(&message)?)?;
    if args.verify {
        object.verify()?;
    }
    if args.no_restore && !object.masks_span().is_empty() {
        out.note("note: masked values are written as zeros")?;
    }
    let format = ArrayFormat::infer(args.format, &args.output);
    let taken = if args.ranges.is_empty() {
        let header = header(format, &object, &object.descriptor().shape, out)?;
        let array = object.decode()?;
        Taken { header, dtype: array.dtype(), shape: array.shape().clone(), values: array.into() }
    } else {
        let elements = ranges::total(&args.ranges)?;
        let header = header(format, &object, &[elements], out)?;
        let values = ranges::read(&object, &args.ranges, out)?;
        Taken { header, dtype: object.descriptor().dtype, shape: Shape::new(vec![elements]), values }
    };
    let values = taken.values.bytes();
    let bar = out.bar("extracting", values.len() as u64);
    let bytes = match output {
        Output::Path(path) => {
            let mut atomic_file = atomic_file(&path, args.force.force)?;
            write_all(&mut atomic_file, &taken.header, values, &bar, of_file)?;
            atomic_file.publish()?;
            (taken.header.len() + values.len()) as u64
        }
        Output::Stream(mut stream) => {
            write_all(&mut stream, &taken.header, values, &bar, |error| stream_failure(&error))?;
            stream.finish()?
        }
        Output::Stdout => {
            write_all(out.bytes()?, &taken.header, values, &bar, |e| Failure::output(&e))?;
            return Ok(Outcome::Done);
        }
    };
    drop(bar);
    let Taken { dtype, shape, .. } = &taken;
    if out.is_json() {
        out.json(&ExtractJson {
            file: json_path(&args.output),
            message: message.number(),
            object: object.index(),
            dtype: dtype.to_string(),
            shape,
            bytes,
        })?;
    } else {
        let (path, what) = (display_path(&args.output), describe(&message, &object));
        out.summary(format_args!("{path}: {what}, {dtype} {shape}, {}", human_size(bytes)))?;
    }
    Ok(Outcome::Done)
}

/// The JSON summary.
#[derive(Debug, Serialize)]
struct ExtractJson<'a> {
    file: String,
    message: u64,
    object: u64,
    dtype: String,
    shape: &'a Shape,
    bytes: u64,
}

/// The extracted values with dtype and shape.
struct Taken {
    header: Vec<u8>,
    dtype: DType,
    shape: Shape,
    values: Values,
}

/// A complete array, or concatenated ranges.
enum Values {
    Complete(Tensor),
    Joined(Vec<u8>),
}

impl From<Tensor> for Values {
    fn from(array: Tensor) -> Self {
        Self::Complete(array)
    }
}

impl Values {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Complete(array) => array.bytes(),
            Self::Joined(bytes) => bytes,
        }
    }
}

fn header(format: ArrayFormat, object: &Object<'_>, shape: &[u64], out: &mut Ui) -> Result<Vec<u8>, Failure> {
    match format {
        ArrayFormat::Npy => npy_header(object, shape, out),
        ArrayFormat::Raw => Ok(Vec::new()),
    }
}

/// The .npy header of an object. Some dtypes are stored under another NumPy type.
fn npy_header(object: &Object<'_>, shape: &[u64], out: &mut Ui) -> Result<Vec<u8>, Failure> {
    let descriptor = object.descriptor();
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
fn of_file(error: std::io::Error) -> Failure {
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
