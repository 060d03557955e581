//! Plots as RGB images and PNG files.

use std::fmt;

use crate::colormap::{Colormap, Rgb};
use crate::plot::Plot;
use crate::resample::as_f64;

mod canvas;
mod font;
mod layout;

#[cfg(test)]
mod tests;

/// Options of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageOptions {
    /// The width in pixels.
    pub width: usize,
    /// The height in pixels. By default the shape of the values decides.
    pub height: Option<usize>,
    /// The colors of values.
    pub colormap: Colormap,
}

impl Default for ImageOptions {
    fn default() -> Self {
        Self { width: 1000, height: None, colormap: Colormap::default() }
    }
}

impl ImageOptions {
    /// The width and the height that images can have, in pixels.
    pub const SIZES: std::ops::RangeInclusive<usize> = 200..=8192;

    /// Sets the width.
    pub fn with_width(mut self, width: usize) -> Self {
        self.width = width;
        self
    }

    /// Sets the height.
    pub fn with_height(mut self, height: Option<usize>) -> Self {
        self.height = height;
        self
    }

    /// Sets the colors of values.
    pub fn with_colormap(mut self, colormap: Colormap) -> Self {
        self.colormap = colormap;
        self
    }
}

/// An image: rows of RGB pixels.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    width: usize,
    height: usize,
    pixels: Vec<Rgb>,
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({}×{})", self.width, self.height)
    }
}

/// The error of writing a PNG file.
#[derive(Debug)]
pub struct PngError(pub(crate) png::EncodingError);

impl fmt::Display for PngError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot encode PNG: {}", self.0)
    }
}

impl std::error::Error for PngError {}

impl Image {
    /// The width in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The height in pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// A pixel; `None` outside of the image.
    pub fn pixel(&self, x: usize, y: usize) -> Option<Rgb> {
        (x < self.width).then(|| self.pixels.get(y * self.width + x).copied()).flatten()
    }

    /// The image as a PNG file. Equal images make equal bytes.
    pub fn to_png(&self) -> Result<Vec<u8>, PngError> {
        let mut bytes = Vec::new();
        let side = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
        let mut encoder = png::Encoder::new(&mut bytes, side(self.width), side(self.height));
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(PngError)?;
        writer.write_image_data(self.pixels.as_flattened()).map_err(PngError)?;
        writer.finish().map_err(PngError)?;
        Ok(bytes)
    }
}

impl Plot {
    /// The plot as an image with title, axes and ticks; of a field with a color bar.
    pub fn to_image(&self, options: &ImageOptions) -> Image {
        let clamp = |size: usize| size.clamp(*ImageOptions::SIZES.start(), *ImageOptions::SIZES.end());
        let options =
            ImageOptions { width: clamp(options.width), height: options.height.map(clamp), ..*options };
        layout::draw(self, &options)
    }
}

/// The part of a length.
fn part(fraction: f64, len: usize) -> f64 {
    fraction * as_f64(len)
}
