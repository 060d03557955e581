//! Descriptors of objects, values for them, and every valid pipeline.

use tercet_tgm::{
    DType, DataObjectDescriptor, EncodeOptions, Error, GlobalMetadata, Message, Provenance, encode_message,
};

/// A message of one object, with reproducible bytes.
pub(crate) fn message_of(
    descriptor: &DataObjectDescriptor,
    values: &[u8],
    options: &EncodeOptions,
) -> Result<Message, Error> {
    let options = options.clone().with_provenance(Provenance::Off);
    let bytes = encode_message(&GlobalMetadata::default(), &[(descriptor, values)], &options)?;
    Message::from_bytes("test", bytes)
}

/// Field-like values: smooth with a little noise, different for each type.
pub(crate) fn field(dtype: DType, elements: usize) -> Vec<u8> {
    let number = |i: usize| {
        let x = i as f64;
        280.0 + 15.0 * (x / 40.0).sin() + 0.25 * ((i * 7919 % 101) as f64 / 101.0)
    };
    let values = (0..elements).map(number);
    match dtype {
        DType::F16 => values.flat_map(|v| tercet_core::tensor::f16::from_f64(v).to_le_bytes()).collect(),
        DType::BF16 => {
            values.flat_map(|v| ((v as f32).to_bits() >> 16).to_le_bytes()[..2].to_vec()).collect()
        }
        DType::F32 => values.flat_map(|v| (v as f32).to_le_bytes()).collect(),
        DType::F64 => values.flat_map(f64::to_le_bytes).collect(),
        DType::C64 => {
            values.flat_map(|v| [(v as f32).to_le_bytes(), (-v as f32).to_le_bytes()].concat()).collect()
        }
        DType::C128 => values.flat_map(|v| [v.to_le_bytes(), (-v).to_le_bytes()].concat()).collect(),
        DType::I8 => values.flat_map(|v| ((v - 280.0) as i8).to_le_bytes()).collect(),
        DType::U8 => values.flat_map(|v| ((v - 200.0) as u8).to_le_bytes()).collect(),
        DType::I16 => values.flat_map(|v| ((v - 280.0) as i16 * 100).to_le_bytes()).collect(),
        DType::U16 => values.flat_map(|v| (v as u16 * 100).to_le_bytes()).collect(),
        DType::I32 => values.flat_map(|v| ((v - 280.0) as i32 * 10_000).to_le_bytes()).collect(),
        DType::U32 => values.flat_map(|v| (v as u32 * 100_000).to_le_bytes()).collect(),
        DType::I64 => values.flat_map(|v| ((v - 280.0) as i64 * 1_000_000_000).to_le_bytes()).collect(),
        DType::U64 => values.flat_map(|v| (v as u64 * 1_000_000_000).to_le_bytes()).collect(),
        DType::Bitmask => {
            let bit =
                |i: usize| u8::from(i < elements && ((i / 5).is_multiple_of(3) || i.is_multiple_of(17)));
            let byte = |at: usize| (0..8).fold(0, |byte, i| byte << 1 | bit(8 * at + i));
            (0..elements.div_ceil(8)).map(byte).collect()
        }
        _ => unreachable!("{dtype} is not in the format"),
    }
}

pub(crate) fn doubles(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}

pub(crate) fn packed(bits: u32) -> impl Fn(DataObjectDescriptor) -> DataObjectDescriptor {
    move |descriptor| descriptor.with_encoding("simple_packing").with_param("sp_bits_per_value", bits)
}

pub(crate) fn szip(
    descriptor: DataObjectDescriptor,
    rsi: u64,
    block: u64,
    flags: u64,
) -> DataObjectDescriptor {
    descriptor
        .with_compression("szip")
        .with_param("szip_rsi", rsi)
        .with_param("szip_block_size", block)
        .with_param("szip_flags", flags)
}

pub(crate) fn shuffled(descriptor: DataObjectDescriptor, size: u64) -> DataObjectDescriptor {
    descriptor.with_filter("shuffle").with_param("shuffle_element_size", size)
}

pub(crate) fn zfp(
    descriptor: DataObjectDescriptor,
    mode: &str,
    key: &str,
    value: f64,
) -> DataObjectDescriptor {
    let descriptor = descriptor.with_compression("zfp").with_param("zfp_mode", mode);
    if key == "zfp_precision" {
        descriptor.with_param(key, value as u64)
    } else {
        descriptor.with_param(key, value)
    }
}

/// Every valid pipeline for values of a type.
pub(crate) fn pipelines(dtype: DType, elements: u64) -> Vec<DataObjectDescriptor> {
    let plain = DataObjectDescriptor::new(dtype, [elements]);
    let width = u64::from(dtype.bits() / 8).max(1);
    let general = |from: &DataObjectDescriptor| {
        let mut all = vec![from.clone()];
        all.push(from.clone().with_compression("zstd"));
        all.push(from.clone().with_compression("zstd").with_param("zstd_level", -5));
        all.push(from.clone().with_compression("lz4"));
        all
    };
    let blosc2 = |from: &DataObjectDescriptor| {
        let inner = ["blosclz", "lz4", "lz4hc", "zlib", "zstd"];
        let one = |name: &str| from.clone().with_compression("blosc2").with_param("blosc2_codec", name);
        inner.into_iter().map(one).collect::<Vec<_>>()
    };
    let mut all = general(&plain);
    let shuffle = shuffled(plain.clone(), width);
    all.extend(general(&shuffle));
    all.push(szip(shuffle.clone(), 4, 8, 8));
    all.extend(blosc2(&shuffle));
    if dtype == DType::Bitmask {
        all.push(plain.clone().with_compression("rle"));
        all.push(plain.with_compression("roaring"));
        return all;
    }
    all.extend(blosc2(&plain));
    if width <= 4 && width != 3 {
        for (rsi, block, flags) in [(128, 16, 8), (1, 8, 0), (3, 64, 12), (2, 32, 9), (5, 6, 72)] {
            all.push(szip(plain.clone(), rsi, block, flags));
        }
    }
    if dtype == DType::F64 {
        for bits in [0, 1, 7, 8, 12, 16, 17, 24, 31, 32, 33, 48, 63, 64] {
            let packed = packed(bits)(plain.clone());
            all.extend(general(&packed));
            if bits > 0 {
                all.push(packed.clone().with_compression("blosc2"));
            }
            if bits % 8 == 0 && bits > 0 {
                let shuffle = shuffled(packed.clone(), u64::from(bits) / 8);
                all.extend(general(&shuffle));
                all.push(shuffle.with_compression("blosc2"));
            }
            if [8, 16, 24, 32].contains(&bits) {
                all.push(szip(packed.clone(), 4, 16, 8));
                all.push(szip(shuffled(packed, u64::from(bits) / 8), 2, 8, 8));
            }
        }
        all.push(zfp(plain.clone(), "fixed_rate", "zfp_rate", 16.0));
        all.push(zfp(plain.clone(), "fixed_rate", "zfp_rate", 15.3));
        all.push(zfp(plain.clone(), "fixed_precision", "zfp_precision", 30.0));
        all.push(zfp(plain, "fixed_accuracy", "zfp_tolerance", 1e-3));
    }
    all
}
