//! Buffers are borrowed: memory grows with the output, not with the buffer.

use tercet_testkit::alloc::{exclusive, measure};
use tercet_tgm::compat::{
    ByteOrder, DataObjectDescriptor, DecodeOptions, Dtype, EncodeOptions, GlobalMetadata, ValidateOptions,
    decode, decode_metadata, decode_range, encode, scan, validate_message,
};

const VALUES: usize = 1 << 20;

fn message(change: impl FnOnce(&mut DataObjectDescriptor)) -> Vec<u8> {
    let values: Vec<u8> = (0..VALUES).flat_map(|i| ((i as f64 * 0.01).sin() * 100.0).to_le_bytes()).collect();
    let mut descriptor = DataObjectDescriptor::new(Dtype::Float64, [VALUES as u64]);
    descriptor.byte_order = ByteOrder::Little;
    change(&mut descriptor);
    encode(&GlobalMetadata::default(), &[(&descriptor, &values)], &EncodeOptions::default()).unwrap()
}

fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let (result, memory) = measure(work);
    (result, memory.peak_bytes)
}

fn packed(descriptor: &mut DataObjectDescriptor) {
    "simple_packing".clone_into(&mut descriptor.encoding);
    descriptor.params.insert("sp_bits_per_value".to_owned(), 16.into());
}

#[test]
fn scans_and_metadata_copy_nothing() {
    let _exclusive = exclusive();
    let plain = message(|_| ());
    let two = [plain.as_slice(), &plain].concat();
    let (found, peak) = peak_of(|| scan(&two));
    assert_eq!(found.len(), 2);
    assert!(peak < 64 << 10, "scan: {peak} bytes");
    let (metadata, peak) = peak_of(|| decode_metadata(&two).unwrap());
    assert_eq!(metadata.base.len(), 1);
    assert!(peak < 256 << 10, "metadata: {peak} bytes");
    let (report, peak) = peak_of(|| validate_message(&plain, &ValidateOptions::default()));
    assert!(report.is_ok(), "{report:?}");
    assert!(peak < 1 << 20, "validation: {peak} bytes");
}

#[test]
fn decoding_takes_the_output_and_one_pipeline_buffer() {
    let _exclusive = exclusive();
    let output = VALUES * 8;
    let extra = 512 << 10;
    let options = DecodeOptions::default();
    let peak = |bytes: &[u8]| {
        let (decoded, peak) = peak_of(|| decode(bytes, &options).unwrap());
        assert_eq!(decoded.1[0].1.len(), output);
        peak
    };
    let plain = peak(&message(|_| ()));
    assert!(plain <= output + extra, "plain: {plain} bytes for {output}");
    let simple = peak(&message(packed));
    assert!(simple <= output + extra, "packed: {simple} bytes for {output}");
    let szip = peak(&message(|descriptor| {
        packed(descriptor);
        descriptor.compression = "szip".to_owned();
        for (key, value) in [("szip_rsi", 128), ("szip_block_size", 16), ("szip_flags", 8)] {
            descriptor.params.insert(key.to_owned(), value.into());
        }
    }));
    assert!(szip <= output + VALUES * 2 + extra, "szip: {szip} bytes for {output}");
    let zstd = peak(&message(|descriptor| {
        descriptor.filter = "shuffle".to_owned();
        descriptor.params.insert("shuffle_element_size".to_owned(), 8.into());
        descriptor.compression = "zstd".to_owned();
    }));
    assert!(zstd <= 2 * output + extra + (1 << 20), "shuffle and zstd: {zstd} bytes for {output}");
    let bytes = message(|_| ());
    let (_, range) = peak_of(|| decode_range(&bytes, 0, &[(1000, 10)], &options).unwrap());
    assert!(range < extra, "ten values: {range} bytes");
}
