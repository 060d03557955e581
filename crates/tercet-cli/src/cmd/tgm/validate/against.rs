//! `--against`: comparison of an object with its original array.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use tercet::convert::npy;
use tercet::core::{ByteSource, Shape, escape};
use tercet::tgm::precision::{PRECISION, deviation};
use tercet::tgm::{DType, File, Message, Object, can_widen_to_f64, widen_to_f64};

use super::Against;
use crate::cmd::tgm::create::arrays::{read_into_memory, stored_dtype};
use crate::cmd::tgm::object_id::{ObjectId, describe, name_of};
use crate::cmd::tgm::open::ReadArgs;
use crate::failure::Failure;
use crate::input::{self, must_be_npy};
use crate::render::exact;
use crate::ui::{BAD, GOOD, Ui, paint};

/// The comparison of an object with its original.
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    original: String,
    message: u64,
    object: u64,
    #[serde(skip)]
    label: String,
    /// The maximum error.
    bound: f64,
    /// The origin of the bound.
    bound_from: BoundFrom,
    /// The maximum error; `None` if infinite or not comparable.
    measured: Option<f64>,
    /// The first element with the maximum error.
    element: Option<u64>,
    /// The reason the arrays are not comparable.
    #[serde(skip_serializing_if = "Option::is_none")]
    differs: Option<String>,
    holds: bool,
}

/// The origin of an error bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum BoundFrom {
    CommandLine,
    Metadata,
    Default,
}

impl Comparison {
    pub(super) fn holds(&self) -> bool {
        self.holds
    }

    /// Prints the result: on standard output if it holds, else on standard error.
    pub(super) fn print(&self, file: &str, out: &mut Ui) -> Result<(), Failure> {
        let (file, original, label) = (escape::name(file), escape::name(&self.original), &self.label);
        let from = match self.bound_from {
            BoundFrom::CommandLine => "",
            BoundFrom::Metadata => " (recorded)",
            BoundFrom::Default => " (default)",
        };
        let bound = format!("bound {}{from}", exact(self.bound));
        let found = match (&self.differs, self.measured, self.element) {
            (Some(reason), ..) => reason.clone(),
            (None, Some(measured), Some(at)) if measured <= 0.0 && !self.holds => {
                format!("element {at} is zero with the opposite sign, {bound}")
            }
            (None, Some(measured), Some(at)) => {
                format!("max error {} at element {at}, {bound}", exact(measured))
            }
            (None, Some(measured), None) => format!("max error {}, {bound}", exact(measured)),
            (None, None, Some(at)) => format!("element {at} differs by a non-finite value, {bound}"),
            (None, None, None) => format!("the values differ, {bound}"),
        };
        if self.holds {
            return out
                .line(format_args!("{file}: {} ({label} against {original}: {found})", paint(GOOD, "OK")));
        }
        out.note(format_args!("{file}: {} — {label} against {original}: {found}", paint(BAD, "FAILED")))
    }
}

/// Decodes an object and compares it with a `.npy` file.
pub(super) fn compare(
    against: &Against,
    original: &Path,
    source: &Arc<dyn ByteSource>,
    out: &mut Ui,
) -> Result<Comparison, Failure> {
    let file = ReadArgs::default().open(Arc::clone(source), out)?;
    let message = message_of(against, &file)?;
    let object = object_of(against, &message)?;
    let array = npy::Array::from_source(must_be_npy(input::open(original)?)?)?;
    let (bound, bound_from) = bound_of(against, &message, &object);
    let mut comparison = Comparison {
        original: array.name().to_owned(),
        message: message.number(),
        object: object.index(),
        label: describe(&message, &object),
        bound,
        bound_from,
        measured: None,
        element: None,
        differs: differences(&object, &array),
        holds: false,
    };
    if comparison.differs.is_none() {
        let decoded = object.decode()?;
        let (values, found) = (read_into_memory(&array)?, stored_dtype(array.dtype()));
        let found = if found == decoded.dtype() {
            deviation(found, &values, decoded.bytes())
        } else {
            let widened = widen_to_f64(found, &values);
            let label = escape::name(array.name());
            let widened = widened.map_err(|reason| Failure::request(format!("{label}: {reason}")))?;
            deviation(DType::F64, &widened, decoded.bytes())
        };
        comparison.measured = Some(found.max).filter(|error| error.is_finite());
        comparison.element = found.at;
        // A bound of 0 compares the sign of zeros, too.
        comparison.holds = found.max <= bound && (bound > 0.0 || found.is_exact);
    }
    Ok(comparison)
}

fn message_of(against: &Against, file: &File) -> Result<Message, Failure> {
    let Some(name) = &against.name else {
        return Ok(file.message(against.object.unwrap_or(ObjectId::FIRST).message)?);
    };
    for message in file.messages()? {
        let message = message?;
        if find(&message, name)?.is_some() {
            return Ok(message);
        }
    }
    let message = format!("{}: no object `{}`", file.name(), escape::name(name));
    Err(Failure::request(message).with_hint("list the names with `tgm ls -p name FILE`"))
}

fn object_of<'a>(against: &Against, message: &'a Message) -> Result<Object<'a>, Failure> {
    let named = against.name.as_deref().map(|name| find(message, name)).transpose()?.flatten();
    if let Some(object) = named {
        return Ok(object);
    }
    let id = against.object.unwrap_or(ObjectId::FIRST);
    Ok(message.object(id.object_of(message)?)?)
}

/// The first object of a message with this name.
fn find<'a>(message: &'a Message, name: &str) -> Result<Option<Object<'a>>, Failure> {
    for object in message.objects() {
        let object = object?;
        if name_of(message, &object) == Some(name) {
            return Ok(Some(object));
        }
    }
    Ok(None)
}

fn bound_of(against: &Against, message: &Message, object: &Object<'_>) -> (f64, BoundFrom) {
    if let Some(bound) = against.max_error {
        return (bound, BoundFrom::CommandLine);
    }
    let index = usize::try_from(object.index()).unwrap_or(usize::MAX);
    let precision = message.metadata().base.get(index).and_then(|entry| entry.get(PRECISION));
    match precision.and_then(|precision| precision.get("max_error")?.as_f64()) {
        Some(bound) => (bound, BoundFrom::Metadata),
        None => (0.0, BoundFrom::Default),
    }
}

/// The reason two arrays cannot be compared.
fn differences(object: &Object<'_>, original: &npy::Array) -> Option<String> {
    let descriptor = object.descriptor();
    let (shape, found) = (Shape::new(descriptor.shape.clone()), original.shape());
    if shape != *found {
        return Some(format!("the object has shape {shape}, the original {found}"));
    }
    let (dtype, found) = (descriptor.dtype, stored_dtype(original.dtype()));
    let is_widened = dtype == DType::F64 && can_widen_to_f64(found);
    (dtype != found && !is_widened).then(|| format!("the object has dtype {dtype}, the original {found}"))
}
