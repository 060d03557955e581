//! Self-tests of every pipeline stage.

use tercet::tgm::precision::deviation;
use tercet::tgm::{
    DType, DataObjectDescriptor, EncodeOptions, GlobalMetadata, MaskMethod, Message, encode_message,
};

use super::build::{is_built_in, sample};
use super::selftest::{NAME, Row, Tested, error_text, row, same, skipped};

/// The stages and their maximum errors.
const STAGES: [(&str, &str, f64); 10] = [
    ("encoding", "simple_packing", 0.0),
    ("filter", "shuffle", 0.0),
    ("compression", "szip", 0.0),
    ("compression", "zstd", 0.0),
    ("compression", "lz4", 0.0),
    ("compression", "blosc2", 0.0),
    ("compression", "zfp", 1e-9),
    ("compression", "sz3", 0.001),
    ("compression", "rle", 0.0),
    ("compression", "roaring", 0.0),
];

/// Runs the tests of all built-in stages.
pub(super) fn run() -> Vec<Row> {
    let mut rows = Vec::new();
    for (kind, name, bound) in STAGES {
        let is_there = is_built_in(kind, name);
        for (job, test) in [("pipeline", round_trip as fn(&str, &str, f64) -> Tested), ("ranges", ranges)] {
            let title = format!("{job:<15}{name}");
            rows.push(if is_there { row(title, test(kind, name, bound)) } else { skipped(title) });
        }
    }
    for name in MaskMethod::NAMES {
        let title = format!("masks          {name}");
        let is_there = matches!(name, "none" | "rle") || is_built_in("compression", name);
        rows.push(if is_there { row(title, masks(name)) } else { skipped(title) });
    }
    rows.push(row("known bytes    simple_packing, 12 bits", known_packing()));
    rows.push(row("known bytes    szip, 8 bits", known_szip()));
    rows
}

/// Encodes and opens a message of one object.
fn message(
    descriptor: &DataObjectDescriptor,
    values: &[u8],
    options: &EncodeOptions,
) -> Result<Message, String> {
    let bytes =
        encode_message(&GlobalMetadata::default(), &[(descriptor, values)], options).map_err(error_text)?;
    Message::from_bytes(NAME, bytes).map_err(error_text)
}

fn round_trip(kind: &str, name: &str, bound: f64) -> Tested {
    let (descriptor, values) = sample(kind, name);
    let message = message(&descriptor, &values, &EncodeOptions::new())?;
    let array = message.object(0).and_then(|object| object.decode()).map_err(error_text)?;
    let found = deviation(descriptor.dtype, &values, array.bytes()).max;
    if found <= bound { Ok(()) } else { Err(format!("values changed by {found}")) }
}

/// Decoded ranges equal the slices of the decoded array.
fn ranges(kind: &str, name: &str, _bound: f64) -> Tested {
    let (descriptor, values) = sample(kind, name);
    let message = message(&descriptor, &values, &EncodeOptions::new())?;
    let object = message.object(0).map_err(error_text)?;
    let whole = object.decode().map_err(error_text)?;
    // Starts on byte boundaries for every dtype.
    let ranges = [8..24, 40..48];
    let found = object.decode_ranges(&ranges).map_err(error_text)?;
    for (range, array) in ranges.into_iter().zip(&found.arrays) {
        let byte = |element: u64| {
            let bits = element.saturating_mul(descriptor.dtype.bits().into());
            usize::try_from(bits / 8).unwrap_or(usize::MAX)
        };
        same(&Some(array.bytes()), &whole.bytes().get(byte(range.start)..byte(range.end)))?;
    }
    Ok(())
}

/// NaN and infinities survive masks.
fn masks(method: &str) -> Tested {
    let special = [(3, f32::NAN), (700, f32::INFINITY), (701, f32::NEG_INFINITY), (1999, f32::NAN)];
    let value = |i: u16| special.iter().find(|(at, _)| *at == i).map_or(f32::from(i), |(_, value)| *value);
    let values: Vec<u8> = (0..2000).flat_map(|i| value(i).to_le_bytes()).collect();
    let options = EncodeOptions::new()
        .with_allowed(true, true)
        .with_masks(method.parse()?)
        .with_small_mask_threshold(0);
    let message = message(&DataObjectDescriptor::new(DType::F32, [2000]), &values, &options)?;
    let object = message.object(0).map_err(error_text)?;
    same(&object.descriptor().masks.is_some(), &true)?;
    same(&object.decode().map_err(error_text)?.bytes(), &&*values)
}

/// The payload equals known bytes.
fn known(descriptor: &DataObjectDescriptor, values: &[u8], expected: &[u8]) -> Tested {
    let message = message(descriptor, values, &EncodeOptions::new())?;
    let object = message.object(0).map_err(error_text)?;
    same(&&*object.payload().map_err(error_text)?, &expected)?;
    same(&object.decode().map_err(error_text)?.bytes(), &values)
}

fn known_packing() -> Tested {
    let values: Vec<u8> = [1.5, 2.25, 3.0, 10.0_f64].iter().flat_map(|value| value.to_le_bytes()).collect();
    let descriptor = DataObjectDescriptor::new(DType::F64, [4]).with_encoding("simple_packing");
    let descriptor = descriptor.with_param("sp_bits_per_value", 12);
    known(&descriptor, &values, &[0x00, 0x00, 0xc0, 0x18, 0x08, 0x80])
}

fn known_szip() -> Tested {
    let descriptor = DataObjectDescriptor::new(DType::U8, [10]).with_compression("szip");
    let descriptor = descriptor.with_param("szip_rsi", 2).with_param("szip_block_size", 8);
    let descriptor = descriptor.with_param("szip_flags", 8);
    let expected = [0x41, 0x46, 0x1d, 0x50, 0xe0, 0x20, 0x3f, 0xa3, 0x80, 0, 0, 0, 0];
    known(&descriptor, &[10, 12, 11, 15, 15, 15, 16, 14, 200, 3], &expected)
}
