//! `tgm extract`: an array out of a message.

use std::io::Write;
use std::path::PathBuf;

use tercet::convert::npy::{self, Element};
use tercet::core::publish::{PublishError, Staged};
use tercet::core::{Progress as _, Shape, escape};
use tercet::tgm::{DataObjectDescriptor, Dtype, Message, Object};

use super::open::Reading;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::{ArrayFormat, Output, shown};
use crate::render::human_size;
use crate::ui::{Bar, Ui};

/// Bytes between two looks at whether the user wants to stop.
const PIECE: usize = 1 << 20;

const EXAMPLES: &str = "\
Examples:
  tgm extract run.tgm 0.1 -o land.npy               the second object of the first message
  tgm extract run.tgm 7 -o - | xxd                  the only object of message 7, as bytes
  cat run.tgm | tgm extract - 0.0 --as npy -o -     from a pipe into a pipe

Messages and objects are counted from 0.";

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
    /// Replace a file that is there already
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    reading: Reading,
}

/// Which array is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    message: u64,
    object: Option<u64>,
}

fn place(text: &str) -> Result<Place, String> {
    let number = |part: &str| {
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse().ok().filter(|_| digits).ok_or_else(|| {
            format!(
                "`{part}` is not a number; write a message like `3`, or a message and an object like `3.1`"
            )
        })
    };
    let (message, object) =
        text.split_once('.').map_or((text, None), |(message, object)| (message, Some(object)));
    Ok(Place { message: number(message)?, object: object.map(number).transpose()? })
}

impl Place {
    /// The number of the object in its message.
    fn object_of(self, message: &Message) -> Result<u64, Failure> {
        match (self.object, message.object_count()) {
            (Some(object), _) => Ok(object),
            (None, 1) => Ok(0),
            (None, count) => {
                let (name, number) = (message.name(), self.message);
                if count == 0 {
                    return Err(Failure::request(format!("{name}: message {number} holds no object")));
                }
                let said = format!("{name}: message {number} holds {count} objects");
                Err(Failure::request(said)
                    .with_hint(format!("say which: `{number}.0` to `{number}.{}`", count - 1)))
            }
        }
    }
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let output = Output::of(&args.output, args.force)?;
    if !args.input.is_stdin() {
        output.must_not_be(&args.input.path)?;
    }
    let file = args.reading.open(args.input.source()?, out)?;
    let message = file.message(args.place.message)?;
    let object = message.object(args.place.object_of(&message)?)?;
    let header = match ArrayFormat::of(args.format, &args.output) {
        ArrayFormat::Npy => npy_header(&object, out)?,
        ArrayFormat::Raw => Vec::new(),
    };
    let array = object.decode()?;
    let bar = out.bar("extracting", array.bytes().len() as u64);
    match output {
        Output::Path(path) => {
            let mut staged = Staged::create(&path)?;
            write_all(&mut staged, &header, array.bytes(), &bar, of_file)?;
            staged.publish()?;
            drop(bar);
            let size = human_size((header.len() + array.bytes().len()) as u64);
            let (path, what) = (shown(&path), told(&message, &object));
            out.line(format_args!("{path}: {what}, {} {}, {size}", array.dtype(), array.shape()))?;
        }
        Output::Stdout => write_all(out.bytes()?, &header, array.bytes(), &bar, |e| Failure::output(&e))?,
    }
    Ok(Outcome::Done)
}

/// The numbers of an object, and its name if it has one.
fn told(message: &Message, object: &Object<'_>) -> String {
    let (number, index) = (message.number(), object.index());
    let entry = usize::try_from(index).ok().and_then(|index| message.metadata().base.get(index));
    match entry.and_then(|entry| entry.get("name")?.as_text()) {
        Some(name) => format!("message {number}, object {index} (`{}`)", escape::name(name)),
        None => format!("message {number}, object {index}"),
    }
}

/// The header of a NumPy file for an object, whose values NumPy may know under another type only.
fn npy_header(object: &Object<'_>, out: &mut Ui) -> Result<Vec<u8>, Failure> {
    let descriptor = object.descriptor();
    let len = object.decoded_len()?;
    let (rank, most) = (descriptor.shape.len(), npy::MAX_RANK);
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
        Some(element) => Ok(npy::header(element, &descriptor.shape)),
        None if descriptor.dtype == Dtype::Bfloat16 => {
            out.note("note: NumPy has no bfloat16: the values are their bits as uint16")?;
            Ok(npy::header(Element::U16, &descriptor.shape))
        }
        None => {
            let shape = Shape::new(descriptor.shape.clone());
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
        other => other.core().map(Element::from),
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
    fn places_are_numbers() {
        assert_eq!(place("3"), Ok(Place { message: 3, object: None }));
        assert_eq!(place("0.12"), Ok(Place { message: 0, object: Some(12) }));
        for text in ["", ".", "3.", ".1", "+3", "-1", "1.2.3", "a", "3,1", "18446744073709551616"] {
            assert!(place(text).is_err(), "{text}");
        }
    }

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
