//! `tgm advise`: recommend a pipeline for an array.

use std::ops::Deref;
use std::time::Instant;

use tercet::convert::npy;
use tercet::core::tensor::Buffer;
use tercet::core::{Shape, escape};
use tercet::tgm::precision::{advise, candidate_count};
use tercet::tgm::{DType, DataObjectDescriptor, Tensor, can_widen_to_f64, widen_to_f64};
use tercet::{Format, detect_source};

use super::Globals;
use super::create::arrays::{read_into_memory, stored_dtype};
use super::object_id::{ObjectId, describe, parse_object_id};
use super::open::ReadArgs;
use super::pipeline::bound;
use crate::args::JsonArgs;
use crate::failure::{Failure, Outcome};
use crate::input::{Input, argument, must_be_npy};
use crate::ui::Ui;

mod report;

use report::Report;

const EXAMPLES: &str = "\
Examples:
  tgm advise t2m.npy                         lossless pipelines
  tgm advise t2m.npy --max-error 0.01        also lossy pipelines within an error bound
  tgm advise run.tgm 0.1 --json              object 1 of message 0, as JSON

Each pipeline runs once: sizes and errors are exact, speeds are estimates. Arrays of more than 4 MiB are judged by a sample \
first; sizes with `~` are estimates.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Message and object of a .tgm input: `3.1`
    #[arg(value_name = "MSG[.OBJ]", value_parser = parse_object_id)]
    object: Option<ObjectId>,
    /// Maximum absolute error [default: 0]
    #[arg(long, value_name = "E", allow_negative_numbers = true, value_parser = bound)]
    max_error: Option<f64>,
    /// Convert other types to float64 if exact; lossy pipelines require float64
    #[arg(long)]
    widen: bool,
    #[command(flatten)]
    json: JsonArgs,
}

/// The array to store.
struct Subject {
    name: String,
    dtype: DType,
    shape: Vec<u64>,
    values: Values,
}

/// The values of an array.
enum Values {
    Read(Buffer),
    Decoded(Tensor),
}

impl Deref for Values {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Read(buffer) => buffer,
            Self::Decoded(array) => array.bytes(),
        }
    }
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Ui) -> Result<Outcome, Failure> {
    let mut subject = args.subject(out)?;
    if args.widen && can_widen_to_f64(subject.dtype) {
        subject.make_float64(out)?;
    }
    let plain = DataObjectDescriptor::new(subject.dtype, subject.shape.clone());
    let options = globals.encode_options(true);
    let count = candidate_count(&plain, &subject.values, args.max_error) as u64;
    let bar = out.bar("trying", (subject.values.len() as u64).saturating_mul(count));
    let started = Instant::now();
    let advice = advise(&plain, &subject.values, args.max_error, &options, &bar);
    let advice = advice.map_err(|_| Failure::Interrupted)?;
    drop(bar);
    let report = Report {
        file: subject.name,
        dtype: subject.dtype,
        shape: subject.shape,
        raw_bytes: subject.values.len() as u64,
        max_error: args.max_error.unwrap_or(0.0),
        threads: rayon::current_num_threads(),
        seconds: started.elapsed().as_secs_f64(),
        advice,
    };
    if args.json.json {
        out.json(&report)?;
    } else {
        report.print(out)?;
    }
    Ok(Outcome::Done)
}

impl Args {
    fn subject(&self, out: &mut Ui) -> Result<Subject, Failure> {
        let Some(id) = self.object else {
            let source = self.input.source()?;
            if matches!(detect_source(&source), Ok(Format::Tgm)) {
                let (name, file) = (escape::name(source.name()), argument(source.name()));
                let failure = Failure::request(format!("{name}: no message is given"));
                return Err(failure.with_hint(format!("add its number: `tgm advise {file} 0`")));
            }
            let array = npy::Array::from_source(must_be_npy(source)?)?;
            let (name, shape) = (array.name().to_owned(), array.shape().to_vec());
            let dtype = stored_dtype(array.dtype());
            return Ok(Subject { name, dtype, shape, values: Values::Read(read_into_memory(&array)?) });
        };
        let file = ReadArgs::default().open(self.input.source()?, out)?;
        let message = file.message(id.message)?;
        let object = message.object(id.object_of(&message)?)?;
        let array = object.decode()?;
        let name = format!("{}: {}", file.name(), describe(&message, &object));
        let (dtype, shape) = (array.dtype(), object.descriptor().shape.clone());
        Ok(Subject { name, dtype, shape, values: Values::Decoded(array) })
    }
}

impl Subject {
    fn make_float64(&mut self, out: &mut Ui) -> Result<(), Failure> {
        let name = escape::name(&self.name);
        let widened = widen_to_f64(self.dtype, &self.values);
        let widened = widened.map_err(|reason| Failure::request(format!("{name}: {reason}")))?;
        out.note(format_args!("note: {name}: {} converted to float64", self.dtype))?;
        (self.dtype, self.values) = (DType::F64, Values::Read(widened));
        Ok(())
    }
}

/// A shape for display.
fn display_shape(shape: &[u64]) -> Shape {
    Shape::new(shape.to_vec())
}
