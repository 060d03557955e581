//! Packs values and writes the payloads into a directory, with a `manifest.json`: for GRIB readers, whose packing is the same.
#![expect(clippy::disallowed_methods, reason = "the programs here are about real files")]

use std::path::PathBuf;

use serde_json::json;
use tercet_interop::Failure;
use tercet_tgm::{
    DType, DataObjectDescriptor, EncodeOptions, GlobalMetadata, Message, Provenance, Value, encode_message,
};

const ELEMENTS: u64 = 700;

fn main() -> Result<(), Failure> {
    let mut args = std::env::args_os().skip(1);
    let (Some(dir), None) = (args.next().map(PathBuf::from), args.next()) else {
        return Err("usage: make_packed DIR".into());
    };
    std::fs::create_dir_all(&dir)?;
    // GRIB stores the reference value in single precision, so every value here has one.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "small")]
    let value =
        |i: u64| f64::from((280.0 + 15.0 * (i as f64 / 40.0).sin() + (i * 7919 % 101) as f64 / 404.0) as f32);
    let values: Vec<u8> = (0..ELEMENTS).flat_map(|i| value(i).to_le_bytes()).collect();
    let mut listed = Vec::new();
    for bits in [1, 2, 7, 8, 11, 12, 16, 17, 23, 24, 25, 31, 32] {
        for is_szip in [false, true] {
            if is_szip && bits % 8 != 0 {
                continue;
            }
            let mut descriptor = DataObjectDescriptor::new(DType::F64, [ELEMENTS])
                .with_encoding("simple_packing")
                .with_param("sp_bits_per_value", bits);
            if is_szip {
                descriptor = descriptor
                    .with_compression("szip")
                    .with_param("szip_rsi", 128)
                    .with_param("szip_block_size", 32)
                    .with_param("szip_flags", 8);
            }
            let options = EncodeOptions::new().with_provenance(Provenance::Off);
            let bytes = encode_message(&GlobalMetadata::default(), &[(&descriptor, &values)], &options)?;
            let message = Message::from_bytes("packed", bytes)?;
            let object = message.object(0)?;
            let name = format!("packed_{bits}{}", if is_szip { "_szip" } else { "" });
            std::fs::write(dir.join(format!("{name}.payload")), object.payload()?)?;
            std::fs::write(dir.join(format!("{name}.values")), object.decode()?.bytes())?;
            let number = |key: &str| object.descriptor().params.get(key).and_then(Value::as_f64);
            listed.push(json!({
                "name": name,
                "bits": bits,
                "szip": is_szip,
                "elements": ELEMENTS,
                "reference": number("sp_reference_value"),
                "binary_scale": number("sp_binary_scale_factor"),
            }));
        }
    }
    std::fs::write(dir.join("manifest.json"), serde_json::to_vec(&listed)?)?;
    Ok(())
}
