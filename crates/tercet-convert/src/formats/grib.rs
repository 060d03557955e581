//! GRIB files, editions 1 and 2.
//!
//! The crates that read GRIB each lack a part: edition 1, IEEE floats, reduced grids, or CCSDS without a C library. So sections and packings are read
//! here; JPEG 2000 and PNG images and CCSDS streams are decoded by the crates for them.
//!
//! | file | contents |
//! |---|---|
//! | `message` | messages of a file and their sections |
//! | `product`, `parameter`, `level` | what a field is: parameter, time, level, member |
//! | `grid` | grids and coordinates |
//! | `unpack`, `second_order` | packings |
//! | `cube` | fields stacked to variables |
//! | `describe`, `write` | variables as fields of a GRIB 2 file |

mod cube;
mod describe;
mod grid;
mod level;
mod message;
mod octets;
mod parameter;
mod product;
mod second_order;
#[cfg(test)]
mod tests;
mod unpack;
mod write;

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use tercet_core::tensor::BoxCopy;
use tercet_core::{ByteSource, DType, Limits};

use crate::Error;
use crate::arrays::source::{check_box, malformed, refused};
use crate::arrays::{ArraySource, Header};
use crate::formats::unwind::guarded;
use cube::{Content, Coordinates, Cubes};
pub(crate) use level::is_level_name;
use message::Messages;
pub(crate) use message::is_grib;
pub use write::GribPacking;
pub(crate) use write::{GribSink, Precision, Storage, plan, verify};

/// Latitudes and longitudes.
type Points = (Vec<f64>, Vec<f64>);

/// An open GRIB file.
pub(crate) struct Grib {
    source: Arc<dyn ByteSource>,
    messages: Messages,
    header: Header,
    contents: Vec<Content>,
    /// Latitudes and longitudes of all points of each grid, once they are needed.
    points: Vec<OnceLock<Option<Points>>>,
}

impl Grib {
    /// Opens a file: reads the sections of all messages, but no values.
    pub(crate) fn open(source: Arc<dyn ByteSource>, limits: Limits) -> Result<Self, Error> {
        let messages = Messages::read(&*source, limits)?;
        if messages.fields.is_empty() {
            let reason = messages.unreadable.first().map(|(place, reason)| format!(": {place}: {reason}"));
            let reason = reason.unwrap_or_default();
            return Err(malformed(source.name(), format!("no GRIB field can be read{reason}")));
        }
        let Cubes { mut header, contents, .. } = Cubes::new(&messages);
        let has = |edition: u8| messages.fields.iter().any(|field| field.edition == edition);
        let format = match (has(1), has(2)) {
            (true, true) => "GRIB 1 and 2",
            (true, false) => "GRIB 1",
            _ => "GRIB 2",
        };
        format.clone_into(&mut header.format);
        let points = messages.grids.iter().map(|_| OnceLock::new()).collect();
        Ok(Self { source, messages, header, contents, points })
    }

    /// Coordinates of a grid.
    fn coordinates(&self, grid: usize, which: Coordinates) -> Result<Vec<u8>, Error> {
        let le = |values: &[f64]| values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let missing = || malformed(&self.source.name().clone(), "a grid without coordinates");
        let found = &self.messages.grids[grid];
        match which {
            Coordinates::RowLatitudes => found.row_latitudes().map(|values| le(&values)).ok_or_else(missing),
            Coordinates::ColumnLongitudes => Ok(le(&found.column_longitudes())),
            Coordinates::Latitudes | Coordinates::Longitudes => {
                let points = self.points[grid].get_or_init(|| found.points());
                let (latitudes, longitudes) = points.as_ref().ok_or_else(missing)?;
                Ok(le(if which == Coordinates::Latitudes { latitudes } else { longitudes }))
            }
        }
    }

    /// Reads a part of a field: a box of the axes of its grid.
    fn read_field(
        &self,
        field: Option<usize>,
        (shape, start, extents): (&[u64], &[u64], &[u64]),
        dtype: DType,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let name = self.source.name();
        let Some(number) = field else {
            match dtype {
                DType::F32 => out.as_chunks_mut::<4>().0.fill(f32::NAN.to_le_bytes()),
                _ => out.as_chunks_mut::<8>().0.fill(f64::NAN.to_le_bytes()),
            }
            return Ok(());
        };
        let field = &self.messages.fields[number];
        let values = guarded(name, || self.messages.decode(&*self.source, field))?;
        let bytes: Vec<u8> = if dtype == DType::F32 {
            let largest = values
                .iter()
                .filter(|value| value.is_finite())
                .fold(0f64, |most, value| most.max(value.abs()));
            if !field.packing.allows_f32(largest) {
                let text = format!("message {}: its values need float64, unlike the others", field.message);
                return Err(refused(name, text));
            }
            #[expect(clippy::cast_possible_truncation, reason = "rounded less than the packing, as checked")]
            values.iter().flat_map(|value| (*value as f32).to_le_bytes()).collect()
        } else {
            values.iter().flat_map(|value| value.to_le_bytes()).collect()
        };
        copy_box(&bytes, dtype.size().unwrap_or(8), (shape, start, extents), out)
            .map_err(|detail| malformed(name, detail))
    }
}

/// Copies a box of an array.
fn copy_box(
    bytes: &[u8],
    size: usize,
    (shape, start, extents): (&[u64], &[u64], &[u64]),
    out: &mut [u8],
) -> Result<(), String> {
    let fit = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let strides = |shape: &[u64]| {
        let mut strides = vec![size; shape.len()];
        for axis in (0..shape.len().saturating_sub(1)).rev() {
            strides[axis] = strides[axis + 1].saturating_mul(fit(shape[axis + 1]));
        }
        strides
    };
    let (from, to) = (strides(shape), strides(extents));
    let offset = start.iter().zip(&from).map(|(at, stride)| fit(*at) * stride).sum();
    let counts: Vec<usize> = extents.iter().map(|extent| fit(*extent)).collect();
    BoxCopy::new(size, &counts, (offset, &from), (0, &to)).run(bytes, out).map_err(|error| error.to_string())
}

impl ArraySource for Grib {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn read_box(&self, variable: usize, start: &[u64], extents: &[u64], out: &mut [u8]) -> Result<(), Error> {
        let item = &self.header.variables[variable];
        let size = item.item_size();
        check_box(self.name(), &item.shape, size, (start, extents), out.len())?;
        if out.is_empty() {
            return Ok(());
        }
        let failed = |detail: String| malformed(self.name(), detail);
        let slots = match &self.contents[variable] {
            Content::Numbers(bytes) => {
                return copy_box(bytes, size, (&item.shape, start, extents), out).map_err(failed);
            }
            Content::Coordinates(grid, which) => {
                let bytes = self.coordinates(*grid, *which)?;
                return copy_box(&bytes, size, (&item.shape, start, extents), out).map_err(failed);
            }
            Content::Fields(slots) => slots,
        };
        let dtype = item.dtype().unwrap_or(DType::F64);
        let first = slots.iter().flatten().next().map_or(0, |number| self.messages.fields[*number].grid);
        let outer = item.shape.len() - self.messages.grids[first].shape().len();
        let inner = (&item.shape[outer..], &start[outer..], &extents[outer..]);
        let piece = extents[outer..].iter().product::<u64>() * size as u64;
        let piece = usize::try_from(piece).unwrap_or(usize::MAX).max(1);
        out.par_chunks_mut(piece).enumerate().try_for_each(|(number, out)| {
            let place = crate::arrays::place_of(&start[..outer], &extents[..outer], number);
            let slot = place.iter().zip(&item.shape).fold(0, |slot, (at, extent)| slot * extent + at);
            let field = slots.get(usize::try_from(slot).unwrap_or(usize::MAX)).copied().flatten();
            self.read_field(field, inner, dtype, out)
        })
    }
}
