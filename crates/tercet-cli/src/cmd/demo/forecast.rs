//! A small forecast as messages: temperatures of four steps on three levels.

use std::path::Path;

use tercet::tgm::{
    DType, DataObjectDescriptor, EncodeOptions, Entry, GlobalMetadata, Value, Writer, WriterOptions,
};

use super::weather::{LATS, LONS, temperature};
use crate::failure::Failure;

const STEPS: [usize; 4] = [0, 6, 12, 24];
const LEVELS: [u16; 3] = [850, 500, 250];

fn entry(step: usize, level: u16) -> Entry {
    let mars = [
        ("step", Value::from(step)),
        ("level", level.into()),
        ("levtype", "pl".into()),
        ("param", "t".into()),
    ];
    let mars = mars.into_iter().map(|(key, value)| (key.into(), value)).collect();
    [
        ("name".to_owned(), "t".into()),
        ("long_name".to_owned(), "air temperature".into()),
        ("units".to_owned(), "K".into()),
        ("mars".to_owned(), Value::Map(mars)),
    ]
    .into()
}

/// Temperatures fall with the height.
fn payload(step: usize, level: u16) -> Vec<u8> {
    let colder = f32::from(1000 - level) * 0.07;
    let positions = (0..LATS).flat_map(|lat| (0..LONS).map(move |lon| (lat, lon)));
    positions.flat_map(|(lat, lon)| (temperature(step % 24, lat, lon) - colder).to_le_bytes()).collect()
}

/// Writes a message per field, as a model does while it runs.
pub(super) fn write(path: &Path) -> Result<(), Failure> {
    let descriptor = DataObjectDescriptor::new(DType::F32, [LATS as u64, LONS as u64]);
    let mut metadata = GlobalMetadata::default();
    metadata.extra.insert("centre".to_owned(), "demo".into());
    let mut writer = Writer::create(path, WriterOptions::new().with_overwrite(true))?;
    for step in STEPS {
        for level in LEVELS {
            writer.stream(&metadata, EncodeOptions::new(), |stream| {
                stream.write_preceder(entry(step, level))?;
                stream.write_object(&descriptor, &payload(step, level))
            })?;
        }
    }
    writer.finish()?;
    Ok(())
}
