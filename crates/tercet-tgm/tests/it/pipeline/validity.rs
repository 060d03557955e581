//! Invalid combinations are rejected on write and on read.

use tercet_core::{Class, Diagnostic as _};
use tercet_tgm::{
    DType, DataObjectDescriptor, EncodeError, EncodeOptions, ErrorKind, GlobalMetadata, Message,
    PipelineError, PreEncoded, encode_pre_encoded,
};

use crate::descriptors::{field, message_of, packed, shuffled, szip, zfp};

fn double() -> DataObjectDescriptor {
    DataObjectDescriptor::new(DType::F64, [64])
}

/// Combinations that the reference accepts but decodes wrongly, and undefined ones.
fn illegal() -> Vec<DataObjectDescriptor> {
    let sz3 = |descriptor: DataObjectDescriptor| {
        let descriptor = descriptor.with_compression("sz3").with_param("sz3_error_bound_mode", "abs");
        descriptor.with_param("sz3_error_bound", 0.01)
    };
    let rate = |descriptor| zfp(descriptor, "fixed_rate", "zfp_rate", 16.0);
    let of = |dtype| DataObjectDescriptor::new(dtype, [64]);
    let mut all = vec![
        rate(shuffled(double(), 8)),
        rate(packed(16)(double())),
        sz3(shuffled(double(), 8)),
        sz3(packed(16)(double())),
        rate(of(DType::I64)),
        rate(of(DType::F32)),
        sz3(of(DType::F32)),
        packed(16)(of(DType::F32)),
        packed(16)(of(DType::I32)),
        szip(double(), 128, 16, 8),
        szip(of(DType::C64), 128, 16, 8),
        szip(of(DType::Bitmask), 128, 16, 8),
        of(DType::Bitmask).with_compression("blosc2"),
        of(DType::U8).with_compression("rle"),
        of(DType::U8).with_compression("roaring"),
        shuffled(of(DType::Bitmask), 1).with_compression("rle"),
        packed(0)(double()).with_compression("blosc2"),
    ];
    for bits in (0..=64).filter(|bits| ![8, 16, 24, 32].contains(bits)) {
        all.push(szip(packed(bits)(double()), 128, 16, 8));
    }
    all
}

fn is_combination(error: &PipelineError) -> bool {
    matches!(error, PipelineError::Combination { .. })
}

#[test]
fn invalid_pipelines_are_rejected_on_write() {
    for descriptor in illegal() {
        let values = field(descriptor.dtype, 64);
        let error = message_of(&descriptor, &values, &EncodeOptions::new()).unwrap_err();
        let combination = match error.kind() {
            ErrorKind::Encode(EncodeError::Pipeline { error, .. }) => is_combination(error),
            _ => false,
        };
        assert!(combination, "{descriptor:?}: {error}");
        assert_eq!(error.class(), Class::Request, "{error}");
    }
}

#[test]
fn invalid_pipelines_are_rejected_on_read() {
    for mut descriptor in illegal() {
        if descriptor.encoding == "simple_packing" {
            descriptor = descriptor
                .with_param("sp_reference_value", 1.5)
                .with_param("sp_binary_scale_factor", 0)
                .with_param("sp_decimal_scale_factor", 0);
        }
        let objects = [PreEncoded { descriptor: &descriptor, payload: &[7; 40] }];
        let bytes = encode_pre_encoded(&GlobalMetadata::default(), &objects, &EncodeOptions::new()).unwrap();
        let message = Message::from_bytes("test", bytes).unwrap();
        let error = message.object(0).unwrap().decode().unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Pipeline { error, .. } if is_combination(error)),
            "{descriptor:?}: {error}"
        );
    }
}

#[test]
fn wrong_parameters_are_named() {
    let cases: Vec<(DataObjectDescriptor, &str)> = vec![
        (double().with_encoding("simple_packing"), "sp_bits_per_value"),
        (packed(65)(double()), "sp_bits_per_value"),
        (double().with_encoding("simple_packing").with_param("sp_bits_per_value", "16"), "sp_bits_per_value"),
        (packed(16)(double()).with_param("sp_reference_value", 1.0), "sp_binary_scale_factor"),
        (packed(16)(double()).with_param("sp_binary_scale_factor", 1), "sp_reference_value"),
        (double().with_filter("shuffle"), "shuffle_element_size"),
        (shuffled(double(), 0), "shuffle_element_size"),
        (shuffled(double(), 7), "shuffle_element_size"),
        (double().with_compression("zstd").with_param("zstd_level", 1.5), "zstd_level"),
        (double().with_compression("blosc2").with_param("blosc2_codec", "lzma"), "blosc2_codec"),
        (double().with_compression("blosc2").with_param("blosc2_clevel", 10), "blosc2_clevel"),
        (double().with_compression("zfp"), "zfp_mode"),
        (zfp(double(), "fixed_rate", "zfp_tolerance", 1.0), "zfp_rate"),
        (zfp(double(), "reversible", "zfp_rate", 1.0), "zfp_mode"),
        (packed(8)(double()).with_compression("szip"), "szip_flags"),
    ];
    for (descriptor, key) in cases {
        let error = message_of(&descriptor, &field(DType::F64, 64), &EncodeOptions::new()).unwrap_err();
        assert!(error.to_string().contains(&format!("`{key}`")), "{key}: {error}");
        assert_eq!(error.class(), Class::Request, "{error}");
    }
}

#[test]
fn irreversible_packings_are_rejected() {
    let values = field(DType::F64, 64);
    for scale in [-400, 400, i32::MAX] {
        let descriptor = packed(16)(double()).with_param("sp_decimal_scale_factor", scale);
        assert!(message_of(&descriptor, &values, &EncodeOptions::new()).is_err(), "{scale}");
    }
    let wide: Vec<u8> = [-1e300, 1e300].iter().flat_map(|v: &f64| v.to_le_bytes()).collect();
    let descriptor = packed(16)(DataObjectDescriptor::new(DType::F64, [2]));
    assert!(message_of(&descriptor, &wide, &EncodeOptions::new()).is_err());
}

#[test]
fn missing_codecs_are_named() {
    if cfg!(feature = "sz3") {
        return;
    }
    let descriptor = double().with_compression("sz3").with_param("sz3_error_bound_mode", "abs");
    let descriptor = descriptor.with_param("sz3_error_bound", 0.01);
    let error = message_of(&descriptor, &field(DType::F64, 64), &EncodeOptions::new()).unwrap_err();
    assert_eq!(error.class(), Class::Unsupported);
    assert!(error.to_string().contains("feature `sz3`"), "{error}");
}

/// The reference crashes decoding its own messages of such fields.
#[test]
fn constant_fields_are_packed_and_compressed() {
    for (elements, bits) in [(126_u64, 53), (7, 12), (1000, 1), (33, 24)] {
        let values: Vec<u8> = (0..elements).flat_map(|_| (-75.2_f64).to_le_bytes()).collect();
        let descriptor = DataObjectDescriptor::new(DType::F64, [elements])
            .with_encoding("simple_packing")
            .with_param("sp_bits_per_value", bits)
            .with_compression("blosc2");
        let bytes = tercet_tgm::encode_message(
            &tercet_tgm::GlobalMetadata::default(),
            &[(&descriptor, &values)],
            &tercet_tgm::EncodeOptions::new(),
        );
        let message = tercet_tgm::Message::from_bytes("constant", bytes.unwrap()).unwrap();
        assert_eq!(message.object(0).unwrap().decode().unwrap().bytes(), values, "{elements} of {bits} bits");
    }
}
