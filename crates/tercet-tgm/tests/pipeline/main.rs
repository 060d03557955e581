//! Values through their pipelines and back.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::single_range_in_vec_init, reason = "a list of one range is meant")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "test values are small"
)]

mod damaged;
mod golden;
mod legal;
mod masks;
mod matrix;
mod precision;
mod ranges;
#[cfg(feature = "sz3")]
mod sz3;

use tercet_testkit::alloc::CountingAlloc;
use tercet_tgm::{
    DataObjectDescriptor, Dtype, EncodeOptions, Error, GlobalMetadata, Message, Provenance, encode_message,
};

#[global_allocator]
static ALLOC: CountingAlloc = CountingAlloc;

/// A message of one object, always the same bytes.
fn message_of(
    descriptor: &DataObjectDescriptor,
    values: &[u8],
    options: &EncodeOptions,
) -> Result<Message, Error> {
    let options = options.clone().with_provenance(Provenance::Off);
    let bytes = encode_message(&GlobalMetadata::default(), &[(descriptor, values)], &options)?;
    Message::from_bytes("test", bytes)
}

/// Values that look like a field: smooth, with a little noise, different for each type.
fn field(dtype: Dtype, elements: usize) -> Vec<u8> {
    let number = |i: usize| {
        let x = i as f64;
        280.0 + 15.0 * (x / 40.0).sin() + 0.25 * ((i * 7919 % 101) as f64 / 101.0)
    };
    let values = (0..elements).map(number);
    match dtype {
        Dtype::Float16 => values.flat_map(|v| tercet_core::tensor::f16::from_f64(v).to_le_bytes()).collect(),
        Dtype::Bfloat16 => {
            values.flat_map(|v| ((v as f32).to_bits() >> 16).to_le_bytes()[..2].to_vec()).collect()
        }
        Dtype::Float32 => values.flat_map(|v| (v as f32).to_le_bytes()).collect(),
        Dtype::Float64 => values.flat_map(f64::to_le_bytes).collect(),
        Dtype::Complex64 => {
            values.flat_map(|v| [(v as f32).to_le_bytes(), (-v as f32).to_le_bytes()].concat()).collect()
        }
        Dtype::Complex128 => values.flat_map(|v| [v.to_le_bytes(), (-v).to_le_bytes()].concat()).collect(),
        Dtype::Int8 => values.flat_map(|v| ((v - 280.0) as i8).to_le_bytes()).collect(),
        Dtype::Uint8 => values.flat_map(|v| ((v - 200.0) as u8).to_le_bytes()).collect(),
        Dtype::Int16 => values.flat_map(|v| ((v - 280.0) as i16 * 100).to_le_bytes()).collect(),
        Dtype::Uint16 => values.flat_map(|v| (v as u16 * 100).to_le_bytes()).collect(),
        Dtype::Int32 => values.flat_map(|v| ((v - 280.0) as i32 * 10_000).to_le_bytes()).collect(),
        Dtype::Uint32 => values.flat_map(|v| (v as u32 * 100_000).to_le_bytes()).collect(),
        Dtype::Int64 => values.flat_map(|v| ((v - 280.0) as i64 * 1_000_000_000).to_le_bytes()).collect(),
        Dtype::Uint64 => values.flat_map(|v| (v as u64 * 1_000_000_000).to_le_bytes()).collect(),
        Dtype::Bitmask => {
            let bit =
                |i: usize| u8::from(i < elements && ((i / 5).is_multiple_of(3) || i.is_multiple_of(17)));
            let byte = |at: usize| (0..8).fold(0, |byte, i| byte << 1 | bit(8 * at + i));
            (0..elements.div_ceil(8)).map(byte).collect()
        }
    }
}

fn doubles(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}

fn packed(bits: u32) -> impl Fn(DataObjectDescriptor) -> DataObjectDescriptor {
    move |descriptor| descriptor.with_encoding("simple_packing").with_param("sp_bits_per_value", bits)
}

fn szip(descriptor: DataObjectDescriptor, rsi: u64, block: u64, flags: u64) -> DataObjectDescriptor {
    descriptor
        .with_compression("szip")
        .with_param("szip_rsi", rsi)
        .with_param("szip_block_size", block)
        .with_param("szip_flags", flags)
}

fn shuffled(descriptor: DataObjectDescriptor, size: u64) -> DataObjectDescriptor {
    descriptor.with_filter("shuffle").with_param("shuffle_element_size", size)
}

fn zfp(descriptor: DataObjectDescriptor, mode: &str, key: &str, value: f64) -> DataObjectDescriptor {
    let descriptor = descriptor.with_compression("zfp").with_param("zfp_mode", mode);
    if key == "zfp_precision" {
        descriptor.with_param(key, value as u64)
    } else {
        descriptor.with_param(key, value)
    }
}
