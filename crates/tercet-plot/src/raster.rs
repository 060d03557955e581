//! Values as pixels, without axes: [`raster_png`].

use crate::colormap::Colormap;
use crate::image::PngError;

/// The entry of the palette for missing values, which is transparent.
const MISSING: u8 = 255;

/// Rows of values as a PNG image, one pixel for each value; missing and infinite values are transparent. Values outside of the range have the colors of its
/// ends. Equal values make equal bytes.
pub fn raster_png(
    values: &[f32],
    columns: usize,
    (low, high): (f32, f32),
    colormap: Colormap,
) -> Result<Vec<u8>, PngError> {
    let rows = values.len().checked_div(columns).unwrap_or(0);
    let side = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, side(columns), side(rows));
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    let mut palette: Vec<u8> =
        (0..MISSING).flat_map(|entry| colormap.color(f64::from(entry) / f64::from(MISSING - 1))).collect();
    palette.extend([0, 0, 0]);
    let mut alpha = vec![255u8; usize::from(MISSING)];
    alpha.push(0);
    encoder.set_palette(palette);
    encoder.set_trns(alpha);
    let mut writer = encoder.write_header().map_err(PngError)?;
    // A single value is drawn in the middle of the scale.
    let scale = if high > low { f32::from(MISSING - 1) / (high - low) } else { 0.0 };
    let base = if high > low { 0.0 } else { f32::from(MISSING - 1) / 2.0 };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the palette")]
    let entry = |value: &f32| {
        if value.is_finite() {
            ((value - low) * scale + base + 0.5).clamp(0.0, f32::from(MISSING - 1)) as u8
        } else {
            MISSING
        }
    };
    let pixels: Vec<u8> = values.iter().take(rows * columns).map(entry).collect();
    writer.write_image_data(&pixels).map_err(PngError)?;
    writer.finish().map_err(PngError)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_colors_of_the_palette() {
        let values = [0.0, 1.0, f32::NAN, 2.0, -5.0, f32::INFINITY];
        let file = raster_png(&values, 3, (0.0, 2.0), Colormap::Greys).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (3, 2));
        assert_eq!(&pixels[..6], [0, 127, MISSING, 254, 0, MISSING]);
        let (palette, alpha) = (reader.info().palette.clone().unwrap(), reader.info().trns.clone().unwrap());
        assert_eq!(palette[..3], Colormap::Greys.color(0.0));
        assert_eq!(palette[254 * 3..255 * 3], Colormap::Greys.color(1.0));
        assert_eq!((alpha[0], alpha[255]), (255, 0));
        // One value alone has a color.
        assert!(raster_png(&[3.0], 1, (3.0, 3.0), Colormap::Viridis).is_ok());
    }
}
