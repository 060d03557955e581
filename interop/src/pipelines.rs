//! Every valid pipeline of every type, both byte orders, with and without masks of every method.

use std::io::Write as _;
use std::path::Path;

use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};
use tercet_tgm::{
    ByteOrder, DTYPES, DType, DataObjectDescriptor, EncodeOptions, GlobalMetadata, MaskMethod, Message,
    Provenance, ReadOptions, encode_message,
};

use crate::Failure;
use crate::tgm::hex;

/// Elements of each object: more than one szip interval and more than one word of every bitmap.
const ELEMENTS: u64 = 333;
/// Ranges that are read of each object: offset and count.
pub const RANGES: [(u64, u64); 4] = [(0, 10), (63, 130), (200, 0), (332, 1)];

type Change = Box<dyn Fn(DataObjectDescriptor) -> DataObjectDescriptor>;

fn general() -> Vec<Change> {
    vec![
        Box::new(|d| d),
        Box::new(|d| d.with_compression("zstd")),
        Box::new(|d| d.with_compression("zstd").with_param("zstd_level", 9)),
        Box::new(|d| d.with_compression("lz4")),
    ]
}

fn blosc2() -> Vec<Change> {
    let one = |codec: &'static str, level: i32| -> Change {
        Box::new(move |d| {
            d.with_compression("blosc2").with_param("blosc2_codec", codec).with_param("blosc2_clevel", level)
        })
    };
    vec![
        Box::new(|d| d.with_compression("blosc2")),
        one("blosclz", 5),
        one("lz4", 0),
        one("lz4hc", 9),
        one("zlib", 5),
        one("zstd", 1),
    ]
}

fn szip(rsi: u64, block: u64, flags: u64) -> Change {
    Box::new(move |d| {
        d.with_compression("szip")
            .with_param("szip_rsi", rsi)
            .with_param("szip_block_size", block)
            .with_param("szip_flags", flags)
    })
}

fn shuffle(size: u64) -> impl Fn(DataObjectDescriptor) -> DataObjectDescriptor {
    move |d| d.with_filter("shuffle").with_param("shuffle_element_size", size)
}

/// All valid pipelines for values of a type.
fn pipelines(plain: &DataObjectDescriptor) -> Vec<DataObjectDescriptor> {
    let dtype = plain.dtype;
    let width = u64::from(dtype.bits() / 8).max(1);
    let mut all = Vec::new();
    let mut add = |from: &DataObjectDescriptor, changes: Vec<Change>| {
        all.extend(changes.into_iter().map(|change| change(from.clone())));
    };
    add(plain, general());
    let shuffled = shuffle(width)(plain.clone());
    add(&shuffled, general());
    add(&shuffled, vec![szip(4, 8, 8)]);
    add(&shuffled, blosc2());
    if dtype == DType::Bitmask {
        add(
            plain,
            vec![Box::new(|d| d.with_compression("rle")), Box::new(|d| d.with_compression("roaring"))],
        );
        return all;
    }
    add(plain, blosc2());
    if width <= 4 {
        add(plain, vec![szip(128, 16, 8), szip(1, 8, 0), szip(3, 64, 12), szip(2, 32, 9), szip(5, 6, 72)]);
    }
    if dtype == DType::F64 {
        for bits in [0, 1, 5, 8, 12, 16, 17, 24, 31, 32, 33, 48, 53, 63, 64] {
            for scale in [0, 2, -1] {
                let packed = plain.clone().with_encoding("simple_packing");
                let packed = packed.with_param("sp_bits_per_value", bits);
                let packed = packed.with_param("sp_decimal_scale_factor", scale);
                add(&packed, general());
                if bits > 0 {
                    add(&packed, blosc2());
                }
                if bits > 0 && bits % 8 == 0 {
                    let shuffled = shuffle(bits / 8)(packed.clone());
                    add(&shuffled, general());
                    add(&shuffled, vec![Box::new(|d| d.with_compression("blosc2"))]);
                }
                if [8, 16, 24, 32].contains(&bits) {
                    add(&packed, vec![szip(4, 16, 8), szip(128, 8, 0)]);
                    add(&shuffle(bits / 8)(packed.clone()), vec![szip(2, 8, 8)]);
                }
            }
        }
        for (mode, key, value) in [
            ("fixed_rate", "zfp_rate", 16.0),
            ("fixed_rate", "zfp_rate", 7.3),
            ("fixed_rate", "zfp_rate", 0.5),
            ("fixed_accuracy", "zfp_tolerance", 1e-3),
        ] {
            let zfp = plain.clone().with_compression("zfp").with_param("zfp_mode", mode);
            all.push(zfp.with_param(key, value));
        }
        for precision in [0, 20, 64] {
            let zfp = plain.clone().with_compression("zfp").with_param("zfp_mode", "fixed_precision");
            all.push(zfp.with_param("zfp_precision", precision));
        }
        if cfg!(feature = "sz3") {
            for (mode, bound) in [("abs", 0.01), ("rel", 1e-4), ("psnr", 60.0)] {
                let sz3 = plain.clone().with_compression("sz3").with_param("sz3_error_bound_mode", mode);
                all.push(sz3.with_param("sz3_error_bound", bound));
            }
        }
    }
    all
}

/// Field-like values, little-endian; some are not finite if `masked`.
fn values(dtype: DType, masked: bool) -> Vec<u8> {
    #[expect(clippy::cast_precision_loss, reason = "small")]
    let number = |i: u64| 280.0 + 15.0 * (i as f64 / 40.0).sin() + (i * 7919 % 101) as f64 / 404.0;
    let odd = |i: u64| match i % 23 {
        3 => Some(f64::NAN),
        7 if i > 100 => Some(f64::INFINITY),
        11 if i < 50 => Some(f64::NEG_INFINITY),
        _ => None,
    };
    let value = |i: u64| odd(i).filter(|_| masked).unwrap_or_else(|| number(i));
    let mut out = Vec::new();
    if dtype == DType::Bitmask {
        let bit = |i: u64| u8::from(i < ELEMENTS && ((i / 5).is_multiple_of(3) || i.is_multiple_of(17)));
        return (0..ELEMENTS.div_ceil(8)).map(|at| (0..8).fold(0, |b, i| b << 1 | bit(8 * at + i))).collect();
    }
    for i in 0..ELEMENTS {
        #[expect(clippy::cast_possible_truncation, reason = "numbers of few digits")]
        let (value, whole) = (value(i), number(i) as i64);
        #[expect(clippy::cast_possible_truncation, reason = "what the type can hold")]
        let single = value as f32;
        match dtype {
            DType::F16 => out.extend(tercet_core::tensor::f16::from_f64(value).to_le_bytes()),
            DType::BF16 => out.extend(&single.to_le_bytes()[2..]),
            DType::F32 => out.extend(single.to_le_bytes()),
            DType::F64 => out.extend(value.to_le_bytes()),
            DType::C64 => out.extend([single.to_le_bytes(), 1.5f32.to_le_bytes()].concat()),
            DType::C128 => out.extend([1.5f64.to_le_bytes(), value.to_le_bytes()].concat()),
            other => {
                let width = usize::try_from(other.bits() / 8).unwrap_or(1);
                out.extend(&(whole * 31 - 8680).to_le_bytes()[..width]);
            }
        }
    }
    out
}

/// Writes all messages into one file, all values into another, and their description into a manifest; of one compression, or
/// of all.
pub fn make(dir: &Path, compression: Option<&str>) -> Result<(), Failure> {
    let mut messages = std::io::BufWriter::new(std::fs::File::create(dir.join("pipelines.tgm"))?);
    let mut inputs = std::io::BufWriter::new(std::fs::File::create(dir.join("values.bin"))?);
    let mut listed = Vec::new();
    for dtype in DTYPES {
        let plain = DataObjectDescriptor::new(dtype, [ELEMENTS]);
        let has_floats = dtype.is_float() || matches!(dtype, DType::C64 | DType::C128);
        let methods = MaskMethod::NAMES.iter().map(|name| Some(*name)).filter(|_| has_floats);
        for method in [None].into_iter().chain(methods) {
            let little = values(dtype, method.is_some());
            for order in [ByteOrder::Little, ByteOrder::Big] {
                for mut descriptor in pipelines(&plain) {
                    if compression.is_some_and(|only| only != descriptor.compression) {
                        continue;
                    }
                    descriptor.byte_order = Some(order);
                    let mut wire = little.clone();
                    if order == ByteOrder::Big {
                        wire.chunks_exact_mut(dtype.swap_unit()).for_each(<[u8]>::reverse);
                    }
                    let (bytes, about) = one(&descriptor, &wire, method)?;
                    messages.write_all(&bytes)?;
                    inputs.write_all(&wire)?;
                    listed.push(about);
                }
            }
        }
    }
    messages.flush()?;
    inputs.flush()?;
    std::fs::write(dir.join("manifest.json"), serde_json::to_vec(&listed)?)?;
    Ok(())
}

fn one(
    requested: &DataObjectDescriptor,
    wire: &[u8],
    method: Option<&str>,
) -> Result<(Vec<u8>, Json), Failure> {
    let mut options = EncodeOptions::new().with_provenance(Provenance::Off);
    if let Some(name) = method {
        let parsed: MaskMethod = name.parse()?;
        options = options.with_allowed(true, true).with_masks(parsed).with_small_mask_threshold(0);
    }
    let bytes = encode_message(&GlobalMetadata::default(), &[(requested, wire)], &options)?;
    let reading = ReadOptions::new();
    let message = Message::from_bytes_with("ours", bytes.clone(), reading)?;
    let mut about = describe(&message)?;
    about["requested"] = serde_json::to_value(requested.to_value().to_json())?;
    about["method"] = json!(method);
    about["input"] = json!(wire.len());
    Ok((bytes, about))
}

/// What our reader finds in a message of one object.
pub fn describe(message: &Message) -> Result<Json, Failure> {
    let object = message.object(0)?;
    let values = object.decode()?;
    let digest = |bytes: &[u8]| hex(&Sha256::digest(bytes));
    // The reference has no ranges of bits.
    let ranges: Vec<_> = RANGES.iter().map(|(start, count)| *start..start + count).collect();
    let found = object.decode_ranges(&ranges)?;
    let ranges: Vec<u8> = found.arrays.iter().flat_map(|array| array.bytes().to_vec()).collect();
    Ok(json!({
        "descriptor": object.descriptor().to_value().to_json(),
        "values": digest(values.bytes()),
        "stored": digest(&object.stored()?),
        "ranges": digest(&ranges),
        "wrong_offset": object.wrong_szip_offset()?.map(|wrong| wrong.to_string()),
    }))
}
