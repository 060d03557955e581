//! Two hours of the synthetic weather as messages.

use std::path::Path;

use tercet::core::Span;
use tercet::tgm::{
    DType, DataObjectDescriptor, EncodeOptions, Entry, File, GlobalMetadata, Writer, WriterOptions,
};

use super::weather::{LATS, LONS, temperature};
use crate::failure::Failure;

fn payload(hour: usize) -> Vec<u8> {
    let positions = (0..LATS).flat_map(|lat| (0..LONS).map(move |lon| (lat, lon)));
    positions.flat_map(|(lat, lon)| temperature(hour, lat, lon).to_le_bytes()).collect()
}

fn entry(hour: usize) -> Entry {
    [("name".to_owned(), "t2m".into()), ("hour".to_owned(), hour.into())].into()
}

/// Writes a file of two messages. Returns the payload span of the second one.
pub(super) fn write(path: &Path) -> Result<Span, Failure> {
    let descriptor = DataObjectDescriptor::new(DType::F32, [LATS as u64, LONS as u64]);
    let options = EncodeOptions::new();
    let mut metadata = GlobalMetadata::default();
    metadata.extra.insert("units".to_owned(), "K".into());
    let mut writer = Writer::create(path, WriterOptions::new().with_overwrite(true))?;

    let mut whole = metadata.clone();
    whole.base.push(entry(0));
    writer.message(&whole, &[(&descriptor, &payload(0))], &options)?;

    writer.stream(&metadata, options, |stream| {
        stream.write_preceder(entry(12))?;
        stream.write_object(&descriptor, &payload(12))
    })?;
    writer.finish()?;

    let second = File::open(path)?.message(1)?;
    Ok(second.object(0)?.payload_span())
}
