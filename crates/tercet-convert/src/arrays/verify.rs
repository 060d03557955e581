//! Verification: the output is read again and compared.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use tercet_core::{DType, Progress};

use super::cast::difference;
use super::convert::{ConvertOptions, filler, is_carried, place_of, rounding, source_chunks, storages};
use super::model::{AttrData, Kind};
use super::open::open_path;
use super::output::OutputFormat;
use super::plan::{Conversion, Plan};
use super::sink::{Fill, Stored, Values, slabs};
use super::source::ArraySource;
use crate::formats::grib::{self, Precision, Storage};
use crate::{Error, ErrorKind};

/// Reads the output again and compares its structure, attributes and values with the plan and the source.
pub(super) fn verify(
    source: &dyn ArraySource,
    path: &Path,
    plan: &mut Plan,
    options: &ConvertOptions,
    progress: &dyn Progress,
) -> Result<(), Error> {
    if plan.format == OutputFormat::Grib {
        return verify_grib(source, path, plan, options, progress);
    }
    let written = open_path(path)?;
    let name = written.name().to_owned();
    let differs = |detail: String| Error::new(name.as_str().into(), ErrorKind::Differs(detail.into()));
    for (transfer, variable) in plan.transfers.iter().zip(&plan.header.variables) {
        let original = &source.header().variables[transfer.source];
        let shown = tercet_core::escape::name(&variable.name).into_owned();
        // A .npy file has no names.
        let position = match plan.format {
            OutputFormat::Npy => Some(0),
            _ => written.header().find(&variable.name),
        };
        let Some(position) = position else {
            return Err(differs(format!("verification failed: `{shown}` is not in the output")));
        };
        let found = &written.header().variables[position];
        if let Conversion::Strings(strings) | Conversion::Labels(strings) = &transfer.how {
            if written.read_strings(position)? != *strings {
                return Err(differs(format!("verification failed: the strings of `{shown}` differ")));
            }
            continue;
        }
        // Characters that were strings in a .tgm file are strings again.
        if found.kind == Kind::String
            && original.dtype() == Some(DType::U8)
            && original.shape.split_last().is_some_and(|(_, outer)| *outer == found.shape)
        {
            if crate::diff::strings((source, transfer.source))? != written.read_strings(position)? {
                return Err(differs(format!("verification failed: the strings of `{shown}` differ")));
            }
            continue;
        }
        // A format that records types gives the original back.
        let is_original = found.kind == original.kind && found.shape == original.shape;
        let is_planned = found.dtype() == variable.dtype() && found.shape == variable.shape;
        if !is_original && !is_planned {
            return Err(differs(format!(
                "verification failed: `{shown}` is {} {:?}",
                found.kind, found.shape
            )));
        }
        let attrs_differ =
            if plan.format.rules().attributes && rounding(variable, &plan.header, options).is_none() {
                variable.attrs.iter().find(|attr| {
                    !found.attr(&attr.name).is_some_and(|found| is_same(found, &attr.value, plan.format))
                })
            } else {
                None
            };
        if let Some(attr) = attrs_differ {
            return Err(differs(format!(
                "verification failed: the attribute `{}` of `{shown}` differs",
                attr.name
            )));
        }
        let largest = Mutex::new(0.0);
        let converted = filler(source, transfer, variable, &largest);
        let expected: &Fill<'_> = if is_planned {
            &converted
        } else {
            &|start: &[u64], extents: &[u64], out: &mut [u8]| {
                source.read_box(transfer.source, start, extents, out)
            }
        };
        let allowed = rounding(variable, &plan.header, options);
        let stored = |coords: &[u64]| source.stored_chunk(transfer.source, coords);
        let values = Values {
            fill: expected,
            source_chunks: source_chunks(source, transfer, found),
            stored: is_carried(source, transfer, (plan.format, &plan.header), variable, options)
                .then_some(&stored as &Stored<'_>),
        };
        let error = compare(&*written, position, &values, progress)?;
        match (error, allowed) {
            (None, None) => {}
            // The smallest form within the bound keeps every value.
            (None, Some(_)) => {
                if let Some(item) = plan.fidelity.variable_mut(&original.name) {
                    item.detail = item.detail.take().map(|detail| format!("{detail}; every value is kept"));
                }
            }
            (Some((error, _)), Some(allowed)) if error <= allowed => {
                if let Some(item) = plan.fidelity.variable_mut(&original.name) {
                    item.max_error = Some(error);
                }
            }
            (Some((error, place)), _) => {
                return Err(differs(format!(
                    "verification failed: the values of `{shown}` differ by up to {error}, first at {place:?}"
                )));
            }
        }
    }
    Ok(())
}

/// Whether an attribute of the output is the planned one. Metadata of messages that another format stored as a string, or as numbers of
/// another type, have their own type again.
fn is_same(found: &AttrData, planned: &AttrData, format: OutputFormat) -> bool {
    let as_planned = match (found, planned) {
        (AttrData::Numbers(found), AttrData::Numbers(planned)) => {
            found.converted(planned.dtype).is_some_and(|found| found == *planned)
        }
        _ => super::plan::as_text(found).0 == *planned,
    };
    found == planned || format == OutputFormat::Tgm && as_planned
}

/// Reads a GRIB file again, message by message.
fn verify_grib(
    source: &dyn ArraySource,
    path: &Path,
    plan: &mut Plan,
    options: &ConvertOptions,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let storages: Vec<Storage> =
        storages(source.name(), plan, options)?.into_iter().map(|(_, storage)| storage).collect();
    let sources: Vec<usize> = plan.transfers.iter().map(|transfer| transfer.source).collect();
    let largest = Mutex::new(0.0);
    let fill = |variable: usize, start: &[u64], extents: &[u64], out: &mut [u8]| {
        filler(source, &plan.transfers[variable], &plan.header.variables[variable], &largest)(
            start, extents, out,
        )
    };
    let errors = grib::verify(source, path, &plan.header, &sources, &storages, &fill, progress)?;
    for ((transfer, storage), error) in plan.transfers.iter().zip(&storages).zip(errors) {
        let name = &source.header().variables[transfer.source].name;
        if storage.precision != Precision::Exact
            && let Some(item) = plan.fidelity.variable_mut(name)
        {
            item.max_error = Some(error);
        }
    }
    Ok(())
}

/// The smallest box that is compared at a time, in bytes.
const BOX_BYTES: u64 = 1 << 20;

/// The largest difference of two variables, and the first place.
type Difference = Option<(f64, Vec<u64>)>;

/// Compares the values of a variable with expected ones: the largest difference and the first place.
fn compare(
    written: &dyn ArraySource,
    position: usize,
    expected: &Values<'_>,
    progress: &dyn Progress,
) -> Result<Difference, Error> {
    let variable = &written.header().variables[position];
    let (size, dtype) = (variable.item_size(), variable.dtype().unwrap_or(DType::U8));
    let found: Mutex<Difference> = Mutex::new(None);
    let compare_box = |start: &[u64], extents: &[u64], expected: &Fill<'_>| -> Result<(), Error> {
        progress.check().map_err(|cancelled| Error::new(written.name().into(), cancelled.into()))?;
        let elements: u64 = extents.iter().product();
        let len = usize::try_from(elements * size as u64).unwrap_or(0);
        let (mut left, mut right) = (vec![0; len], vec![0; len]);
        expected(start, extents, &mut left)?;
        written.read_box(position, start, extents, &mut right)?;
        if let Some((error, element)) = difference(dtype, &left, &right) {
            let parts = if matches!(dtype, DType::C64 | DType::C128) { 2 } else { 1 };
            let place = place_of(start, extents, element / parts);
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            *found = Some(match found.take() {
                Some((largest, first)) => (largest.max(error), first.min(place)),
                None => (error, place),
            });
        }
        Ok(())
    };
    let chunks = variable.chunks.clone().filter(|chunks| {
        written.is_chunked(position) && !chunks.is_empty() && chunks.len() == variable.shape.len()
    });
    let stored = chunks.as_deref().and_then(|chunks| expected.carried(chunks));
    match (chunks, stored) {
        // The same frames have the same values, which were decoded when they were written.
        (Some(chunks), Some(stored)) => {
            expected.each_block(&variable.shape, size, &chunks, &mut |part, fill| {
                (0..part.len()).into_par_iter().try_for_each(|number| {
                    let coords = part.coords(number);
                    if let Some(frames) = stored(&coords)?
                        && written.stored_chunk(position, &coords)?.as_ref() == Some(&frames)
                    {
                        return Ok(());
                    }
                    let (start, extents) = part.window(&coords);
                    compare_box(&start, &extents, fill)
                })
            })?;
        }
        (Some(chunks), None) => {
            let boxes = grown(&chunks, &variable.shape, size);
            expected.each_block(&variable.shape, size, &boxes, &mut |part, fill| {
                (0..part.len()).into_par_iter().try_for_each(|number| {
                    let (start, extents) = part.window(&part.coords(number));
                    compare_box(&start, &extents, fill)
                })
            })?;
        }
        (None, _) => {
            for (start, extents) in slabs(&variable.shape, size, expected.source_chunks.as_deref()) {
                compare_box(&start, &extents, expected.fill)?;
            }
        }
    }
    Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Boxes of several small chunks.
fn grown(chunks: &[u64], shape: &[u64], size: usize) -> Vec<u64> {
    let mut boxes: Vec<u64> = chunks.iter().map(|chunk| (*chunk).max(1)).collect();
    for axis in (0..boxes.len()).rev() {
        let bytes = boxes.iter().fold(size as u64, |bytes, extent| bytes.saturating_mul(*extent)).max(1);
        let count = (BOX_BYTES / bytes).clamp(1, shape[axis].div_ceil(boxes[axis]).max(1));
        boxes[axis] = boxes[axis].saturating_mul(count);
    }
    boxes
}
