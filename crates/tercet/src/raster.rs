//! [`Raster`]: a selection as 32-bit floats, for display.

use tercet_core::num::saturating_usize;
use tercet_core::tensor::{AxisSlice, IndexSlice, SelectionError, f16};
use tercet_core::{DType, Tensor};
use tercet_plot::{Colormap, PngError, raster_png};
use tercet_tet::{Error, Select};

/// Values that percentiles are taken from: of more values, evenly spaced ones.
const SAMPLE: usize = 1 << 18;

/// A selection as 32-bit floats, reduced to means of blocks if it is large. NaN is missing.
///
/// ```
/// # use tercet::core::{DType, TensorView};
/// # use tercet::tet::{File, Layout, Writer, WriterOptions};
/// # let mut layout = Layout::new();
/// # let id = layout.dataset("t2m", DType::F32, [2, 2], [2, 2])?;
/// # let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), layout, WriterOptions::new())?;
/// # writer.array(id, TensorView::from_slice(&[2, 2], &[1.0f32, 3.0, 2.0, 6.0])?)?;
/// # let file = File::from_bytes("a.tet", writer.finish()?.output)?;
/// use tercet::raster::Raster;
///
/// let whole = Raster::from_tet(&file.dataset("t2m")?.select(), &[1024, 1024])?;
/// assert_eq!((whole.values.as_slice(), whole.is_exact), (&[1.0, 3.0, 2.0, 6.0][..], true));
/// let means = Raster::from_tet(&file.dataset("t2m")?.select(), &[1, 1])?;
/// assert_eq!(means.values, [3.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Raster {
    /// The names of the dimensions; their numbers where they have no names.
    pub dims: Vec<String>,
    /// The number of values on each dimension.
    pub shape: Vec<u64>,
    /// The number of selected positions on each dimension.
    pub selected: Vec<u64>,
    /// The values, row-major.
    pub values: Vec<f32>,
    /// The number of selected elements, and of those that are missing and infinite.
    pub count: u64,
    /// Missing elements of the selection.
    pub missing: u64,
    /// Infinite elements of the selection.
    pub infinite: u64,
    /// Whether the values are the decoded elements themselves: neither means nor rounded.
    pub is_exact: bool,
}

impl Raster {
    /// The decoded values of a selection, at most `most` on each dimension of the result.
    pub fn from_tet(select: &Select<'_>, most: &[u64]) -> Result<Self, Error> {
        let dataset = select.dataset();
        let kept = select.kept_axes();
        let extents = select.selection()?.shape().to_vec();
        let mut limits = vec![u64::MAX; extents.len()];
        for (position, &axis) in kept.iter().enumerate() {
            limits[axis] = most.get(position).copied().unwrap_or(u64::MAX).max(1);
        }
        let selected: Vec<u64> = kept.iter().map(|&axis| extents[axis]).collect();
        let name = |&axis: &usize| dataset.axis_name(axis).map_or_else(|| axis.to_string(), str::to_owned);
        let dims = kept.iter().map(name).collect();
        let fits = extents.iter().zip(&limits).all(|(extent, limit)| extent <= limit);
        if fits {
            let tensor = select.read_decoded()?;
            let is_exact = is_exact(tensor.dtype());
            return Ok(Self::new(dims, selected.clone(), selected, floats(&tensor), is_exact));
        }
        let means = select.block_means(&limits)?;
        let shape = kept.iter().map(|&axis| means.shape[axis]).collect();
        #[expect(clippy::cast_possible_truncation, reason = "rounded for display")]
        let values = means.values.iter().map(|&value| value as f32).collect();
        let raster = Self {
            dims,
            shape,
            selected,
            values,
            count: means.count,
            missing: means.missing,
            infinite: means.infinite,
            is_exact: false,
        };
        Ok(raster)
    }

    /// The values of a tensor at some positions, at most `most` on each dimension that is left.
    ///
    /// # Errors
    ///
    /// The message of a slice that does not fit, or of a second one of the same axis.
    pub fn from_tensor(
        tensor: &Tensor,
        slices: &[(usize, IndexSlice)],
        most: &[u64],
    ) -> Result<Self, String> {
        let extents = tensor.shape().to_vec();
        let mut axes: Vec<Vec<usize>> =
            extents.iter().map(|&extent| (0..saturating_usize(extent)).collect()).collect();
        let mut is_single = vec![false; extents.len()];
        for (number, (axis, slice)) in slices.iter().enumerate() {
            if slices[..number].iter().any(|(other, _)| other == axis) {
                return Err(format!("axis {axis} is selected twice"));
            }
            let extent = *extents.get(*axis).ok_or_else(|| format!("there is no axis {axis}"))?;
            let (resolved, is_reversed) =
                positions(slice, *axis, extent).map_err(|error| error.to_string())?;
            axes[*axis] = (resolved.start..resolved.stop)
                .step_by(saturating_usize(resolved.step))
                .map(saturating_usize)
                .collect();
            if is_reversed {
                axes[*axis].reverse();
            }
            is_single[*axis] = slice.is_single;
        }
        let kept: Vec<usize> = (0..extents.len()).filter(|&axis| !is_single[axis]).collect();
        let all = floats(tensor);
        let mut strides = vec![1usize; extents.len()];
        for axis in (0..extents.len().saturating_sub(1)).rev() {
            strides[axis] = strides[axis + 1] * saturating_usize(extents[axis + 1]);
        }
        let mut chosen = vec![0usize];
        for (axis, positions) in axes.iter().enumerate() {
            let stride = strides[axis];
            chosen =
                chosen.iter().flat_map(|base| positions.iter().map(move |at| base + at * stride)).collect();
        }
        let values: Vec<f32> = chosen.iter().filter_map(|&at| all.get(at)).copied().collect();
        let selected: Vec<u64> = kept.iter().map(|&axis| axes[axis].len() as u64).collect();
        let dims = kept.iter().map(ToString::to_string).collect();
        let whole = Self::new(dims, selected.clone(), selected, values, is_exact(tensor.dtype()));
        Ok(whole.reduced(most))
    }

    fn new(dims: Vec<String>, shape: Vec<u64>, selected: Vec<u64>, values: Vec<f32>, is_exact: bool) -> Self {
        let count = values.len() as u64;
        let missing = values.iter().filter(|value| value.is_nan()).count() as u64;
        let infinite = values.iter().filter(|value| value.is_infinite()).count() as u64;
        Self { dims, shape, selected, values, count, missing, infinite, is_exact }
    }

    /// Means of blocks, at most `most` on each dimension.
    fn reduced(self, most: &[u64]) -> Self {
        let limit = |axis: usize| most.get(axis).copied().unwrap_or(u64::MAX).max(1);
        let shape: Vec<u64> =
            self.shape.iter().enumerate().map(|(axis, &extent)| extent.min(limit(axis))).collect();
        if shape == self.shape {
            return self;
        }
        let len: usize = shape.iter().map(|&extent| saturating_usize(extent)).product();
        let (mut sums, mut counts) = (vec![0.0f64; len], vec![0u32; len]);
        for (at, value) in self.values.iter().enumerate().filter(|(_, value)| value.is_finite()) {
            let (mut rest, mut cell, mut stride) = (at as u64, 0, 1);
            for (&extent, &blocks) in self.shape.iter().zip(&shape).rev() {
                cell += rest % extent * blocks / extent * stride;
                rest /= extent;
                stride *= blocks;
            }
            let cell = saturating_usize(cell);
            sums[cell] += f64::from(*value);
            counts[cell] += 1;
        }
        #[expect(clippy::cast_possible_truncation, reason = "rounded for display")]
        let mean = |(sum, count): (&f64, &u32)| {
            if *count == 0 { f32::NAN } else { (sum / f64::from(*count)) as f32 }
        };
        let values = sums.iter().zip(&counts).map(mean).collect();
        Self { shape, values, is_exact: false, ..self }
    }

    /// The values as little-endian bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    /// The minimum and the maximum; `None` if no value is finite.
    pub fn range(&self) -> Option<(f32, f32)> {
        let finite = self.values.iter().copied().filter(|value| value.is_finite());
        let (low, high) = finite
            .fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        (low <= high).then_some((low, high))
    }

    /// Two percentiles of the values, from 0 to 100; of more than 262,144 values those of evenly spaced ones. `None` if no value is finite.
    pub fn percentiles(&self, low: f64, high: f64) -> Option<(f32, f32)> {
        let step = self.values.len().div_ceil(SAMPLE).max(1);
        let mut sample: Vec<f32> =
            self.values.iter().step_by(step).copied().filter(|value| value.is_finite()).collect();
        if sample.is_empty() {
            return self.range();
        }
        let last = sample.len() - 1;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "at most the sample"
        )]
        let mut at = |percent: f64| {
            let position = ((percent / 100.0).clamp(0.0, 1.0) * last as f64).round() as usize;
            *sample.select_nth_unstable_by(position.min(last), f32::total_cmp).1
        };
        Some((at(low), at(high)))
    }

    /// One pixel for each value: rows are the second to last dimension, columns the last. `None` unless the result has two
    /// dimensions; a series is one row.
    pub fn to_png(&self, colormap: Colormap, range: Option<(f32, f32)>) -> Option<Result<Vec<u8>, PngError>> {
        let columns = match self.shape[..] {
            [columns] | [_, columns] => saturating_usize(columns),
            _ => return None,
        };
        let range = range.or_else(|| self.range()).unwrap_or((0.0, 1.0));
        Some(raster_png(&self.values, columns, range, colormap))
    }
}

/// The selected positions of an axis of `extent` positions, in ascending order, and whether the slice reverses them. Unlike
/// [`IndexSlice::resolve`], it fails if no position is selected, or one outside of the axis.
pub fn positions(slice: &IndexSlice, axis: usize, extent: u64) -> Result<(AxisSlice, bool), SelectionError> {
    let (resolved, is_reversed) = slice.resolve(axis, extent)?;
    let AxisSlice { start, stop, .. } = resolved;
    if start >= stop {
        return Err(SelectionError::Empty { axis, start, stop });
    }
    if stop > extent {
        return Err(SelectionError::OutOfRange { axis, stop, extent });
    }
    Ok((resolved, is_reversed))
}

/// Whether 32-bit floats have all values of a type.
fn is_exact(dtype: DType) -> bool {
    let exact =
        [DType::F32, DType::F16, DType::BF16, DType::I8, DType::U8, DType::I16, DType::U16, DType::Bool];
    exact.contains(&dtype)
}

/// The elements of a tensor as 32-bit floats; of complex numbers their magnitude, of bitmasks 0 and 1.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "rounded for display")]
fn floats(tensor: &Tensor) -> Vec<f32> {
    fn each<const N: usize>(bytes: &[u8], value: impl Fn([u8; N]) -> f32) -> Vec<f32> {
        bytes.as_chunks::<N>().0.iter().map(|chunk| value(*chunk)).collect()
    }
    let bytes = tensor.bytes();
    match tensor.dtype() {
        DType::F32 => each(bytes, f32::from_le_bytes),
        DType::F64 => each(bytes, |b| f64::from_le_bytes(b) as f32),
        DType::F16 => each(bytes, |b| f16::from_le_bytes(b).to_f32()),
        DType::BF16 => each(bytes, |b| f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16)),
        DType::I8 => each(bytes, |b| f32::from(i8::from_le_bytes(b))),
        DType::I16 => each(bytes, |b| f32::from(i16::from_le_bytes(b))),
        DType::I32 => each(bytes, |b| i32::from_le_bytes(b) as f32),
        DType::I64 => each(bytes, |b| i64::from_le_bytes(b) as f32),
        DType::U8 | DType::Bool => each(bytes, |[byte]| f32::from(byte)),
        DType::U16 => each(bytes, |b| f32::from(u16::from_le_bytes(b))),
        DType::U32 => each(bytes, |b| u32::from_le_bytes(b) as f32),
        DType::U64 => each(bytes, |b| u64::from_le_bytes(b) as f32),
        DType::C64 => {
            let parts = each(bytes, f32::from_le_bytes);
            parts.as_chunks::<2>().0.iter().map(|[re, im]| re.hypot(*im)).collect()
        }
        DType::C128 => each(bytes, |b: [u8; 16]| {
            let [re, im] = [0, 8].map(|at| f64::from_le_bytes(std::array::from_fn(|byte| b[at + byte])));
            re.hypot(im) as f32
        }),
        DType::Bitmask => {
            let bits = saturating_usize(tensor.shape().elements().unwrap_or(0)).min(bytes.len() * 8);
            (0..bits).map(|bit| f32::from(bytes[bit / 8] >> (7 - bit % 8) & 1)).collect()
        }
        // A type that is added later is shown when it is added here.
        _ => Vec::new(),
    }
}

/// What an axis is by the CF conventions: `lat`, `lon`, `time` or `vertical`; by its units, or else by its name.
pub fn axis_standard(name: &str, units: Option<&str>, is_time: bool) -> Option<&'static str> {
    let name = name.rsplit('/').next().unwrap_or(name).to_lowercase();
    match (units, &*name) {
        (Some("degrees_north" | "degree_north" | "degrees_N" | "degreesN"), _) | (_, "lat" | "latitude") => {
            Some("lat")
        }
        (Some("degrees_east" | "degree_east" | "degrees_E" | "degreesE"), _) | (_, "lon" | "longitude") => {
            Some("lon")
        }
        _ if is_time => Some("time"),
        (_, "time") => Some("time"),
        (Some("hPa" | "Pa" | "mbar" | "millibars" | "mb"), _) => Some("vertical"),
        (_, "level" | "lev" | "plev" | "depth" | "height" | "altitude" | "isobaric" | "pressure") => {
            Some("vertical")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_cut_and_reduced() {
        let tensor = Tensor::from_vec([2, 3], vec![1i16, 2, 3, 4, 5, 6]).unwrap();
        let slice = |text: &str| IndexSlice::parse(text).unwrap();
        let whole = Raster::from_tensor(&tensor, &[], &[]).unwrap();
        assert_eq!(
            (whole.shape.as_slice(), whole.is_exact, whole.range()),
            (&[2, 3][..], true, Some((1.0, 6.0)))
        );
        let row = Raster::from_tensor(&tensor, &[(0, slice("1")), (1, slice("::-1"))], &[]).unwrap();
        assert_eq!(
            (row.dims.as_slice(), row.values.as_slice()),
            (&["1".to_owned()][..], &[6.0, 5.0, 4.0][..])
        );
        let means = Raster::from_tensor(&tensor, &[], &[1, 2]).unwrap();
        // Block 0 has positions 0 and 1, block 1 has position 2.
        assert_eq!((means.values.as_slice(), means.is_exact), (&[3.0, 4.5][..], false));
        assert_eq!((means.selected.as_slice(), means.count), (&[2, 3][..], 6));
        assert!(Raster::from_tensor(&tensor, &[(2, slice("0"))], &[]).is_err());
        assert!(Raster::from_tensor(&tensor, &[(0, slice("2"))], &[]).is_err());
        for text in ["0:4", "2:1", "3:", "0:100000000000"] {
            assert!(Raster::from_tensor(&tensor, &[(1, slice(text))], &[]).is_err(), "{text}");
        }
        let twice = Raster::from_tensor(&tensor, &[(0, slice("0")), (0, slice("1"))], &[]);
        assert_eq!(twice.unwrap_err(), "axis 0 is selected twice");
    }

    #[test]
    fn missing_values_are_counted_and_no_part_of_means() {
        let tensor = Tensor::from_vec([4], vec![1.0f64, f64::NAN, f64::INFINITY, 4.0]).unwrap();
        let means = Raster::from_tensor(&tensor, &[], &[2]).unwrap();
        assert_eq!((means.values.as_slice(), means.missing, means.infinite), (&[1.0, 4.0][..], 1, 1));
        assert_eq!(means.percentiles(0.0, 100.0), Some((1.0, 4.0)));
        let none = Tensor::from_vec([1], vec![f32::NAN]).unwrap();
        assert_eq!(Raster::from_tensor(&none, &[], &[]).unwrap().range(), None);
    }

    #[test]
    fn axes_are_known_by_units_and_names() {
        assert_eq!(axis_standard("y", Some("degrees_north"), false), Some("lat"));
        assert_eq!(axis_standard("group/Longitude", None, false), Some("lon"));
        assert_eq!(axis_standard("valid", None, true), Some("time"));
        assert_eq!(axis_standard("x", Some("m"), false), None);
    }
}
