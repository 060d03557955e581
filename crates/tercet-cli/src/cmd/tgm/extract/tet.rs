//! Extracted arrays as `.tet` files, with dimensions, coordinates and metadata.

use tercet::convert::arrays::{ConvertOptions, ObjectSource, OutputFormat, convert};
use tercet::core::escape;
use tercet::tgm::{DType, File, Value};

use super::Args;
use super::target::ObjectNumber;
use super::values::ExtractedValues;
use crate::failure::Failure;
use crate::output::Output;
use crate::ui::Ui;

/// Writes values of one object, or of the objects of an axis, and compares the file with them; returns its length.
pub(super) fn write(
    args: &Args,
    file: &File,
    taken: ExtractedValues,
    object: Option<ObjectNumber>,
    axis: Option<&(&str, Vec<(Value, ObjectNumber)>)>,
    output: Output,
    out: &mut Ui,
) -> Result<u64, Failure> {
    let Output::Path(path) = output else {
        return Err(Failure::request("a .tet file is written to a local path"));
    };
    if taken.dtype == DType::Bitmask {
        let failure = Failure::request("bitmasks cannot be written as .tet");
        return Err(failure.with_hint("use `--as raw` for the packed bits"));
    }
    let len = taken.len();
    let (name, array) = (file.name(), taken.into_array(".tet")?);
    let source = match (axis, object) {
        (Some((key, axis)), _) => {
            let mut objects = Vec::new();
            for (_, number) in axis {
                objects.push((number.message(file)?, number.object));
            }
            let objects: Vec<_> =
                objects.iter().map(|(message, object)| (message.metadata(), *object)).collect();
            let values: Vec<Value> = axis.iter().map(|(value, _)| value.clone()).collect();
            ObjectSource::stacked(name, &objects, key, &values, array)
        }
        (None, Some(number)) => {
            ObjectSource::new(name, number.message(file)?.metadata(), number.object, array)
        }
        (None, None) => return Err(Failure::request("nothing to extract")),
    };
    let mut options = ConvertOptions::new();
    options.overwrite = args.force.force;
    let bar = out.bar("writing", len);
    let plan = convert(&source, &path, OutputFormat::Tet, &options, &bar)?;
    drop(bar);
    for item in plan.fidelity.inexact() {
        let detail = item.detail.as_deref().unwrap_or_default();
        out.note(format_args!(
            "note: {} `{}` {}: {detail}",
            item.subject,
            escape::name(&item.name),
            item.fate
        ))?;
    }
    Ok(std::fs::metadata(&path).map_or(0, |meta| meta.len()))
}
