//! Synthetic weather data of the demo.

use std::f64::consts::{PI, TAU};
use std::path::Path;

use tercet::core::{DType, TensorView};
use tercet::tet::{Compression, DatasetId, Layout, Writer, WriterOptions};

use crate::failure::Failure;

const HOURS: usize = 24;
pub(super) const LATS: usize = 37;
pub(super) const LONS: usize = 72;

/// Degrees north: 90, 85, … −90.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn latitude(lat: usize) -> f32 {
    90.0 - 5.0 * lat as f32
}

/// Degrees east: 0, 5, … 355.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn longitude(lon: usize) -> f32 {
    5.0 * lon as f32
}

/// The temperature in kelvin: warm at the equator, and where the sun is high.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "small numbers, rounded")]
pub(super) fn temperature(hour: usize, lat: usize, lon: usize) -> f32 {
    let latitude = f64::from(latitude(lat)) * PI / 180.0;
    let sun = TAU * (hour as f64 / 24.0 + lon as f64 / LONS as f64 - 0.5);
    let kelvin = 252.0 + 48.0 * latitude.cos().powi(2) + 7.0 * latitude.cos() * sun.cos();
    (kelvin * 100.0).round() as f32 / 100.0
}

/// The land mask: a few continents of simple shape.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn land(lat: usize, lon: usize) -> u8 {
    let (y, x) = (lat as f64 / LATS as f64, lon as f64 / LONS as f64);
    u8::from((TAU * 2.0 * x).sin() + (PI * 3.0 * y).cos() > 0.7)
}

/// Writes the file.
pub(super) fn write(path: &Path) -> Result<(), Failure> {
    let shape = [HOURS as u64, LATS as u64, LONS as u64];
    let mut layout = Layout::new();
    let t2m = layout.dataset("t2m", DType::F32, shape, [6, 19, 36])?;
    layout.compress(t2m, Compression::Zstd { level: 3 })?;
    layout.dims(t2m, ["time", "lat", "lon"])?;
    layout.labels(t2m, "time", (0..HOURS).map(|hour| format!("2024-06-21T{hour:02}:00Z")).collect())?;
    layout.attr(t2m, "long_name", "temperature two metres above ground")?;
    layout.attr(t2m, "units", "K")?;
    let mask = layout.dataset("land", DType::U8, &shape[1..], &shape[1..])?;
    layout.dims(mask, ["lat", "lon"])?;
    layout.attr(mask, "long_name", "1 where there is land")?;
    let lat = axis(&mut layout, "lat", LATS, "degrees_north")?;
    let lon = axis(&mut layout, "lon", LONS, "degrees_east")?;
    layout.file_info("tercet demo", env!("CARGO_PKG_VERSION"), tercet::tet::unix_seconds());

    let values: Vec<f32> = (0..HOURS)
        .flat_map(|hour| (0..LATS).flat_map(move |lat| (0..LONS).map(move |lon| temperature(hour, lat, lon))))
        .collect();
    let land_values: Vec<u8> = (0..LATS).flat_map(|lat| (0..LONS).map(move |lon| land(lat, lon))).collect();
    let fits = "the shapes above are those of the values";
    let mut writer = Writer::create(path, layout, WriterOptions::new())?;
    writer.array(t2m, TensorView::from_slice(&shape, &values).expect(fits))?;
    writer.array(mask, TensorView::from_slice(&shape[1..], &land_values).expect(fits))?;
    let latitudes: Vec<f32> = (0..LATS).map(latitude).collect();
    writer.array(lat, TensorView::from_slice(&shape[1..2], &latitudes).expect(fits))?;
    let longitudes: Vec<f32> = (0..LONS).map(longitude).collect();
    writer.array(lon, TensorView::from_slice(&shape[2..], &longitudes).expect(fits))?;
    writer.finish()?;
    Ok(())
}

/// Adds the coordinate dataset of an axis.
fn axis(layout: &mut Layout, name: &str, extent: usize, units: &str) -> Result<DatasetId, Failure> {
    let extent = [extent as u64];
    let id = layout.dataset(name, DType::F32, extent, extent)?;
    layout.dims(id, [name])?;
    layout.attr(id, "units", units)?;
    Ok(id)
}
