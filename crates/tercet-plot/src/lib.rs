//! Plots of one-dimensional series and two-dimensional fields: as text for terminals and as PNG images.
//!
//! ```text
//! values, axes, units ──▶ Plot ──▶ text: braille lines, half-block color maps, shades without color
//!                           └────▶ Image: RGB pixels with axes and color bar ──▶ PNG
//! ```
//!
//! ```
//! use tercet_plot::{Axis, Plot, TextOptions};
//!
//! let values = (0..100).map(|n| f64::from(n) * 0.1).map(f64::sin).collect();
//! let plot = Plot::series("sine", None, Axis::new("x", 100), values);
//! let text = plot.to_text(&TextOptions::default());
//! assert!(text.starts_with("sine\n"));
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `plot` | [`Plot`], [`Axis`]: values and what they mean |
//! | `ticks` | tick positions and labels of numbers and times |
//! | `resample` | means of blocks, for fewer pixels than values |
//! | `colormap` | [`Colormap`] |
//! | `text` | output for terminals |
//! | `image` | RGB images and PNG |

mod colormap;
mod image;
mod plot;
mod raster;
mod resample;
mod text;
mod ticks;

pub use colormap::{Colormap, Rgb};
pub use image::{Image, ImageOptions, PngError};
pub use plot::{Axis, Coordinates, Plot};
pub use raster::raster_png;
pub use text::{Colors, TextOptions};
