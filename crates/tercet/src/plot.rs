//! Plots of selections of `.tet` datasets, as terminal text or PNG.
//!
//! ```
//! # use tercet::core::{DType, TensorView};
//! # use tercet::tet::{File, Layout, Writer, WriterOptions};
//! # let mut layout = Layout::new();
//! # let id = layout.dataset("t2m", DType::F32, [3], [3])?;
//! # let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), layout, WriterOptions::new())?;
//! # writer.array(id, TensorView::from_slice(&[3], &[1.0f32, 3.0, 2.0])?)?;
//! # let file = File::from_bytes("a.tet", writer.finish()?.output)?;
//! use tercet::plot::{self, TextOptions};
//!
//! let plot = plot::from_tet(&file.dataset("t2m")?.select(), 400)?;
//! println!("{}", plot.to_text(&TextOptions::default()));
//! let png: Vec<u8> = plot.to_image(&plot::ImageOptions::default()).to_png()?;
//! # assert!(png.starts_with(b"\x89PNG"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;

use tercet_core::escape;
pub use tercet_plot::{
    Axis, Colormap, Colors, Coordinates, Image, ImageOptions, Plot, PngError, Rgb, TextOptions,
};
use tercet_tet::{CoordinateValues, Dataset, Error, Select};

/// The error of a selection that cannot be drawn.
#[derive(Debug)]
#[non_exhaustive]
pub enum PlotError {
    /// The values cannot be read.
    Tet(Box<Error>),
    /// There are more than two axes with several positions, or none.
    Dimensions {
        /// The name of the dataset.
        dataset: String,
        /// The axes with several positions.
        axes: Vec<LongAxis>,
    },
}

/// An axis with several positions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LongAxis {
    /// The name, or the number.
    pub name: String,
    /// The number of positions.
    pub extent: u64,
    /// The first coordinate or label.
    pub first: Option<String>,
}

impl From<Error> for PlotError {
    fn from(error: Error) -> Self {
        Self::Tet(Box::new(error))
    }
}

impl fmt::Display for PlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tet(error) => error.fmt(f),
            Self::Dimensions { dataset, axes } if axes.is_empty() => {
                write!(
                    f,
                    "dataset `{}`: a single value is selected, but a plot needs more",
                    escape::name(dataset)
                )
            }
            Self::Dimensions { dataset, axes } => {
                let each =
                    axes.iter().map(|axis| format!("`{}` ({})", escape::name(&axis.name), axis.extent));
                let each: Vec<String> = each.collect();
                write!(
                    f,
                    "dataset `{}`: {} axes have several positions, but a plot has one or two: {}",
                    escape::name(dataset),
                    axes.len(),
                    each.join(", ")
                )
            }
        }
    }
}

impl std::error::Error for PlotError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Tet(error) => error.source(),
            Self::Dimensions { .. } => None,
        }
    }
}

/// The plot of a selection with one or two axes of several positions.
///
/// Values are decoded by the CF conventions. At most `most` values are kept on each axis: means of blocks of all values.
pub fn from_tet(select: &Select<'_>, most: u64) -> Result<Plot, PlotError> {
    let dataset = select.dataset();
    let extents = select.selection()?.shape().to_vec();
    let long: Vec<usize> = (0..extents.len()).filter(|&axis| extents[axis] > 1).collect();
    if !(1..=2).contains(&long.len()) {
        let mut axes = Vec::with_capacity(long.len());
        for axis in long {
            let first = select
                .readable_coordinates(axis)?
                .filter(|found| !found.is_empty())
                .map(|found| found.text(0));
            axes.push(LongAxis { name: axis_name(&dataset, axis), extent: extents[axis], first });
        }
        return Err(PlotError::Dimensions { dataset: dataset.name().to_owned(), axes });
    }
    let means = select.block_means(&vec![most; extents.len()])?;
    let attr = |name: &str| dataset.info().and_then(|info| info.attrs.get(name)).cloned();
    let title = title(select, &extents)?;
    let axis = |axis: usize| plot_axis(select, axis, extents[axis]);
    let side = |axis: usize| usize::try_from(means.shape[axis]).unwrap_or(usize::MAX);
    let plot = match long[..] {
        [x] => Plot::series(&title, attr("units"), axis(x)?, means.values),
        [y, x] => {
            let shape = (side(y), side(x));
            Plot::field(&title, attr("units"), (axis(y)?, axis(x)?), shape, means.values)
        }
        _ => unreachable!("one or two axes"),
    };
    let plot = plot.with_missing(means.missing, means.count).with_infinite(means.infinite);
    let unreadable = (0..extents.len())
        .filter_map(|axis| dataset.coordinate_error(axis).map(|error| (axis_name(&dataset, axis), error)));
    Ok(unreadable.fold(plot, |plot, (name, error)| {
        plot.with_remark(format!("axis {name}: the coordinates cannot be read: {}", error.kind()))
    }))
}

fn axis_name(dataset: &Dataset<'_>, axis: usize) -> String {
    dataset.axis_name(axis).filter(|name| !name.is_empty()).map_or_else(|| axis.to_string(), str::to_owned)
}

/// The name of the dataset, its long name, and the selected positions of the other axes.
fn title(select: &Select<'_>, extents: &[u64]) -> Result<String, Error> {
    let dataset = select.dataset();
    let long_name = dataset.info().and_then(|info| info.attrs.get("long_name"));
    let mut parts = vec![match long_name {
        Some(long_name) => format!("{}: {long_name}", dataset.name()),
        None => dataset.name().to_owned(),
    }];
    let selection = select.selection()?;
    for (axis, _) in extents.iter().enumerate().filter(|(_, extent)| **extent == 1) {
        let name = axis_name(&dataset, axis);
        match select.readable_coordinates(axis)?.filter(|found| !found.is_empty()) {
            Some(coordinates) => parts.push(format!("{name} {}", coordinates.text(0))),
            None if dataset.shape()[axis] > 1 => {
                parts.push(format!("{name} at position {}", selection.axes()[axis].start));
            }
            None => {}
        }
    }
    Ok(parts.join(", "))
}

fn plot_axis(select: &Select<'_>, axis: usize, extent: u64) -> Result<Axis, Error> {
    let dataset = select.dataset();
    let name = match dataset.axis_name(axis).filter(|name| !name.is_empty()) {
        Some(name) => name.to_owned(),
        None => format!("axis {axis}"),
    };
    let plain = Axis::new(&name, extent);
    let Some(found) = select.readable_coordinates(axis)? else { return Ok(plain) };
    let coordinates = match found.values {
        CoordinateValues::Numbers(numbers) => Coordinates::Numbers(numbers),
        CoordinateValues::Times(times) => Coordinates::Times(times),
        CoordinateValues::Strings(strings) => Coordinates::Strings(strings),
        _ => Coordinates::Positions,
    };
    Ok(plain.with_units(found.units).with_coordinates(coordinates))
}
