//! Pipelines and threads with the names of the format's documentation: packing, shuffle, several objects of different
//! types, compressors, and the same bytes with any number of threads.
#![allow(clippy::print_stdout, reason = "an example shows its results")]
#![allow(clippy::host_endian_bytes, reason = "descriptors have the byte order of this host")]

use ciborium::Value;
use tercet_tgm::compat::shuffle::{shuffle, unshuffle};
use tercet_tgm::compat::{
    CompressionBackend, DataObjectDescriptor, DecodeOptions, Dtype, EncodeOptions, GlobalMetadata, Result,
    TensogramError, decode, encode, simple_packing,
};

fn number(value: i64) -> Value {
    Value::Integer(value.into())
}

pub(crate) fn main() -> Result<()> {
    let values: Vec<f64> = (0..20_000).map(|i| 280.0 + (f64::from(i) * 0.01).sin() * 15.0).collect();
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    let plain = DataObjectDescriptor::new(Dtype::Float64, [100, 200]);

    // Packed to 16 bits, without and with a compressor.
    let mut packed = plain.clone();
    packed.encoding = "simple_packing".to_string();
    packed.params = simple_packing::compute_params(&values, 16, 0)?.to_params();
    let mut smaller = packed.clone();
    smaller.compression = "zstd".to_string();
    smaller.params.insert("zstd_level".to_string(), number(3));

    // Bytes grouped by significance, then compressed.
    let mut shuffled = plain.clone();
    shuffled.filter = "shuffle".to_string();
    shuffled.compression = "lz4".to_string();
    shuffled.params.insert("shuffle_element_size".to_string(), number(8));
    let grouped = shuffle(&data, 8)?;
    assert!(grouped.iter().zip(data.iter().step_by(8)).take(values.len()).all(|(found, byte)| found == byte));
    assert_eq!(unshuffle(&grouped, 8)?, data);
    assert!(matches!(shuffle(&data, 7), Err(TensogramError::Encoding(_))));

    // Objects of different types and shapes in one message.
    let mask = DataObjectDescriptor::new(Dtype::Uint8, [5]);
    let objects: [(&DataObjectDescriptor, &[u8]); 5] =
        [(&plain, &data), (&packed, &data), (&smaller, &data), (&shuffled, &data), (&mask, &[1, 0, 1, 1, 0])];
    let metadata = GlobalMetadata { version: 3, ..GlobalMetadata::default() };
    let message = encode(&metadata, &objects, &EncodeOptions::default())?;
    let (_, decoded) = decode(&message, &DecodeOptions::default())?;
    assert_eq!(decoded.len(), 5);
    assert_eq!((&decoded[0].1, &decoded[3].1, &decoded[4].1[..]), (&data, &data, &[1, 0, 1, 1, 0][..]));
    let worst = decoded[2].1.as_chunks().0.iter().zip(&values);
    let worst = worst.map(|(found, value)| (f64::from_ne_bytes(*found) - value).abs()).fold(0.0, f64::max);
    assert!(worst < 30.0 / 65_535.0, "{worst}");
    println!(
        "{} bytes of values, {} bytes of message, error at most {worst:.6}",
        4 * data.len(),
        message.len()
    );

    // Threads and backends change nothing but the time.
    for threads in [0, 1, 4] {
        let backend = CompressionBackend::Pure;
        let options = EncodeOptions { threads, compression_backend: backend, ..EncodeOptions::default() };
        let again = encode(&metadata, &objects, &options)?;
        let options = DecodeOptions { threads, compression_backend: backend, ..DecodeOptions::default() };
        let (_, objects) = decode(&again, &options)?;
        assert!(objects.iter().zip(&decoded).all(|(one, other)| one.1 == other.1));
    }

    // Wrong parameters are errors of the encoding, and so is another version of the metadata.
    let mut wrong = packed;
    wrong.params.insert("sp_bits_per_value".to_string(), number(65));
    let refused = encode(&metadata, &[(&wrong, &data)], &EncodeOptions::default());
    assert!(matches!(refused, Err(TensogramError::Encoding(_))), "{refused:?}");
    let refused = encode(&GlobalMetadata { version: 2, ..metadata }, &[], &EncodeOptions::default());
    assert!(matches!(refused, Err(TensogramError::Metadata(_))), "{refused:?}");
    Ok(())
}
