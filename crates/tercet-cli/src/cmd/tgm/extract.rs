//! `tgm extract`: an array out of a message.

use std::io::Write;
use std::path::PathBuf;

use tercet::convert::npy::{self, Element};
use tercet::core::publish::PublishError;
use tercet::core::{Progress as _, Shape};
use tercet::tgm::{Array, DataObjectDescriptor, Dtype, Object};

use super::open::Reading;
use super::place::{Place, place, told};
use crate::address::of_object;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::{ArrayFormat, Output, atomic_file, shown};
use crate::render::human_size;
use crate::ui::{Bar, Ui};

mod ranges;

use ranges::Span;

/// Bytes between two looks at whether the user wants to stop.
const PIECE: usize = 1 << 20;

const EXAMPLES: &str = "\
Examples:
  tgm extract run.tgm 0.1 -o land.npy               the second object of the first message
  tgm extract run.tgm 7 -o - | xxd                  the only object of message 7, as bytes
  cat run.tgm | tgm extract - 0.0 --as npy -o -     from a pipe into a pipe
  tgm extract run.tgm 0.0 --range 100:50 -o x.npy   50 values, from number 100 on

Messages, objects and values are counted from 0; values through the whole array, the last axis fastest.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// The message and the object, counted from 0: `3.1`. The object may be left out where there is only one
    #[arg(value_name = "MSG[.OBJ]", value_parser = place)]
    place: Place,
    /// The format: a NumPy file, or the values alone (as they are stored, little-endian). Without it, `npy` for
    /// outputs called `*.npy` and `raw` for all others
    #[arg(long = "as", value_name = "FORMAT")]
    format: Option<ArrayFormat>,
    /// The file to write; `-` writes to standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Take only COUNT values from number START on: `100:50`. Several ranges, by commas or by repeating the option, are
    /// written one behind the other, as an array with one axis
    #[arg(long = "range", value_name = "START:COUNT", value_delimiter = ',', value_parser = ranges::span)]
    ranges: Vec<Span>,
    /// Compare the hash of the whole object before ranges are taken out of it
    #[arg(long, conflicts_with = "ignore_checksums")]
    verify: bool,
    /// Leave zeros where values are masked, instead of the NaN and infinities that were there
    #[arg(long)]
    no_restore: bool,
    /// Replace a file that is there already
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    reading: Reading,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let output = Output::of(&args.output, args.force)?;
    if !args.input.is_stdin() {
        output.must_not_be(&args.input.path)?;
    }
    let options = args.reading.options().with_restore_non_finite(!args.no_restore);
    let file = Reading::open_with(args.input.source()?, options, out)?;
    let message = file.message(args.place.message)?;
    let object = message.object(args.place.object_of(&message)?)?;
    if args.verify {
        object.verify()?;
    }
    if args.no_restore && !object.masks_span().is_empty() {
        out.note("note: zeros stand in the places of values that are masked")?;
    }
    let format = ArrayFormat::of(args.format, &args.output);
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
    match output {
        Output::Path(path) => {
            let mut atomic_file = atomic_file(&path, args.force)?;
            write_all(&mut atomic_file, &taken.header, values, &bar, of_file)?;
            atomic_file.publish()?;
            drop(bar);
            let size = human_size((taken.header.len() + values.len()) as u64);
            let (path, what) = (shown(&path), told(&message, &object));
            out.line(format_args!("{path}: {what}, {} {}, {size}", taken.dtype, taken.shape))?;
        }
        Output::Object(mut upload) => {
            write_all(&mut upload, &taken.header, values, &bar, |error| of_object(&error))?;
            let name = upload.name();
            let size = human_size(upload.finish()?);
            drop(bar);
            let what = told(&message, &object);
            out.line(format_args!("{name}: {what}, {} {}, {size}", taken.dtype, taken.shape))?;
        }
        Output::Stdout => write_all(out.bytes()?, &taken.header, values, &bar, |e| Failure::output(&e))?,
    }
    Ok(Outcome::Done)
}

/// What is written, and what it is.
struct Taken {
    header: Vec<u8>,
    dtype: Dtype,
    shape: Shape,
    values: Values,
}

/// A whole array, or values of ranges.
enum Values {
    Whole(Array),
    Joined(Vec<u8>),
}

impl From<Array> for Values {
    fn from(array: Array) -> Self {
        Self::Whole(array)
    }
}

impl Values {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Whole(array) => array.bytes(),
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

/// The header of a NumPy file for values of an object, which NumPy may know under another type only.
fn npy_header(object: &Object<'_>, shape: &[u64], out: &mut Ui) -> Result<Vec<u8>, Failure> {
    let descriptor = object.descriptor();
    // What cannot be decoded is told before anything else.
    object.decoded_len()?;
    let (rank, most) = (shape.len(), npy::MAX_RANK);
    if rank > most && descriptor.dtype != Dtype::Bitmask {
        let said = format!("the object has {rank} axes, but arrays of NumPy have at most {most}");
        return Err(Failure::request(said).with_hint("`--as raw` writes the values alone"));
    }
    if is_in_another_order(descriptor) {
        out.note(format_args!(
            "note: the object gives the strides {:?}, which readers of messages ignore: its values are taken as row-major",
            descriptor.strides
        ))?;
    }
    match element_of(descriptor.dtype) {
        Some(element) => Ok(npy::header(element, shape)),
        None if descriptor.dtype == Dtype::Bfloat16 => {
            out.note("note: NumPy has no bfloat16: the values are their bits as uint16")?;
            Ok(npy::header(Element::U16, shape))
        }
        None => {
            let shape = Shape::new(shape.to_vec());
            let len = shape.elements().unwrap_or(0).div_ceil(8);
            out.note(format_args!(
                "note: NumPy has no bitmask: the {shape} bits are {len} bytes of uint8, the first in the highest bit"
            ))?;
            Ok(npy::header(Element::U8, &[len]))
        }
    }
}

/// Whether the strides say something else than what readers take them for.
fn is_in_another_order(descriptor: &DataObjectDescriptor) -> bool {
    let row_major = DataObjectDescriptor::row_major_strides(&descriptor.shape);
    // The stride of an axis with one position means nothing.
    let matters = |extent: &&u64| **extent > 1;
    let axes = descriptor.shape.iter().zip(descriptor.strides.iter().zip(&row_major));
    descriptor.elements() != Some(0)
        && axes.filter(|(extent, _)| matters(extent)).any(|(_, (said, taken))| said != taken)
}

fn element_of(dtype: Dtype) -> Option<Element> {
    match dtype {
        Dtype::Int8 => Some(Element::I8),
        Dtype::Complex64 => Some(Element::C64),
        Dtype::Complex128 => Some(Element::C128),
        Dtype::Bfloat16 | Dtype::Bitmask => None,
        other => other.core().and_then(tercet::core::DType::element).map(Element::from),
    }
}

fn write_all(
    sink: &mut dyn Write,
    header: &[u8],
    values: &[u8],
    bar: &Bar,
    told: impl Fn(std::io::Error) -> Failure,
) -> Result<(), Failure> {
    sink.write_all(header).map_err(&told)?;
    for piece in values.chunks(PIECE) {
        bar.check().map_err(|_| Failure::Interrupted)?;
        sink.write_all(piece).map_err(&told)?;
        bar.advance(piece.len() as u64);
    }
    Ok(())
}

/// An error of the file that is written.
fn of_file(error: std::io::Error) -> Failure {
    match PublishError::recover(error) {
        Ok(error) => error.into(),
        Err(error) => Failure::io("cannot write to the temporary file", &error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_strides_that_matter_are_told() {
        let with = |shape: &[u64], strides: &[u64]| {
            let mut descriptor = DataObjectDescriptor::new(Dtype::Uint8, shape.to_vec());
            descriptor.strides = strides.to_vec();
            is_in_another_order(&descriptor)
        };
        assert!(
            !with(&[2, 3], &[3, 1]) && !with(&[1, 3], &[9, 1]) && !with(&[0, 3], &[1, 1]) && !with(&[], &[])
        );
        assert!(with(&[2, 3], &[1, 2]) && with(&[4], &[8]));
    }
}
