//! Writes the seeds of `corpus/tgm`, `corpus/pipeline` and `corpus/cbor`: small messages of every kind, and some damaged ones.
//!
//! Deterministic: the seeds are the same in every run.
#![expect(clippy::disallowed_methods, reason = "the programs here are about real files")]

use std::error::Error;
use std::fs;
use std::io::Cursor;
use std::path::Path;

use tercet_tgm::{
    DTYPES, DType, DataObjectDescriptor, EncodeOptions, GlobalMetadata, IndexBuilder, IndexKeys, Message,
    Placement, PreEncoded, Provenance, Stamp, StreamingEncoder, Value, cbor, encode_message,
    encode_pre_encoded,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for dir in ["tgm", "pipeline", "cbor"] {
        fs::create_dir_all(corpus.join(dir))?;
    }
    for (name, bytes) in messages()? {
        fs::write(corpus.join("tgm").join(format!("{name}.tgm")), bytes)?;
    }
    for (name, bytes) in pipelines()? {
        fs::write(corpus.join("pipeline").join(format!("{name}.tgm")), bytes)?;
    }
    for (name, bytes) in items() {
        fs::write(corpus.join("cbor").join(name), bytes)?;
    }
    Ok(())
}

fn options() -> EncodeOptions {
    let stamp = Stamp::fixed(1_700_000_000, "00000000-0000-4000-8000-000000000000");
    EncodeOptions::new().with_provenance(Provenance::Fixed(Box::new(stamp)))
}

fn metadata() -> GlobalMetadata {
    let mars = Value::Map(vec![
        ("param".into(), "2t".into()),
        ("levels".into(), vec![1.into(), Value::Float(0.5)].into()),
    ]);
    GlobalMetadata {
        base: vec![[("mars".to_owned(), mars)].into()],
        extra: [("source".to_owned(), "seed".into())].into(),
        ..GlobalMetadata::default()
    }
}

fn payload(descriptor: &DataObjectDescriptor) -> Vec<u8> {
    let len = descriptor.elements().and_then(|n| descriptor.dtype.byte_len(n)).unwrap_or(0);
    (0..len).map(|n| (n * 37 % 64).to_le_bytes()[0]).collect()
}

fn one_piece(
    descriptors: &[DataObjectDescriptor],
    metadata: &GlobalMetadata,
    options: &EncodeOptions,
) -> Outcome<Vec<u8>> {
    let payloads: Vec<Vec<u8>> = descriptors.iter().map(payload).collect();
    let objects: Vec<(&DataObjectDescriptor, &[u8])> =
        descriptors.iter().zip(&payloads).map(|(descriptor, payload)| (descriptor, &payload[..])).collect();
    Ok(encode_message(metadata, &objects, options)?)
}

fn stream(descriptors: &[DataObjectDescriptor], preceded: bool, with_length: bool) -> Outcome<Vec<u8>> {
    let mut encoder = StreamingEncoder::new(Cursor::new(Vec::new()), &metadata(), options())?;
    for descriptor in descriptors {
        if preceded {
            encoder.write_preceder([("step".to_owned(), 6.into())].into())?;
        }
        encoder.write_object(descriptor, &payload(descriptor))?;
    }
    let sink = if with_length { encoder.finish_with_length()? } else { encoder.finish()? };
    Ok(sink.into_inner())
}

fn messages() -> Outcome<Vec<(String, Vec<u8>)>> {
    let none = GlobalMetadata::default();
    let mut seeds = Vec::new();
    let mut add = |name: &str, bytes: Vec<u8>| seeds.push((name.to_owned(), bytes));
    let plane = DataObjectDescriptor::new(DType::F32, [2, 3]);
    for dtype in DTYPES {
        let mut descriptor = DataObjectDescriptor::new(dtype, [5]);
        descriptor.byte_order = Some(tercet_tgm::ByteOrder::Big);
        add(dtype.name(), one_piece(&[descriptor], &none, &options())?);
    }
    let two = [plane.clone(), DataObjectDescriptor::new(DType::I16, [0, 4])];
    add("two", one_piece(&two, &metadata(), &options())?);
    add("none", one_piece(&[], &none, &options())?);
    add("unhashed", one_piece(&two, &metadata(), &options().with_hash(false))?);
    let both = options().with_hashes(Placement::Both).with_index(Placement::Both);
    add("lists-twice", one_piece(&two, &metadata(), &both)?);
    add("stream", stream(&two, false, false)?);
    add("stream-preceded", stream(&two, true, false)?);
    add("stream-length", stream(&two, true, true)?);
    add("stream-empty", stream(&[], false, false)?);
    let many = [stream(&two, true, false)?, one_piece(&two, &none, &options())?, stream(&two, false, true)?];
    add("three-messages", many.concat());
    let mut indexed = Cursor::new(many.concat());
    let mut index = IndexBuilder::new(&IndexKeys::All);
    for span in tercet_tgm::scan(&many.concat()) {
        index.push(span, &metadata());
    }
    indexed.set_position(many.concat().len() as u64);
    index.write(&mut indexed, Provenance::Off)?;
    add("message_index", indexed.into_inner());
    add("junk", [b"TENSOGRM junk ".to_vec(), many.concat(), b"39277777 more".to_vec()].concat());
    let mut packed = plane.clone();
    "zstd".clone_into(&mut packed.compression);
    let packed = PreEncoded { descriptor: &packed, payload: b"not really zstd" };
    add("pre-encoded", encode_pre_encoded(&none, &[packed], &options())?);
    let good = one_piece(&two, &metadata(), &options())?;
    add("bad-cut", good[..good.len() - 9].to_vec());
    let message = Message::from_bytes("seed", good.clone())?;
    let mut change = |name: &str, at: u64, byte: u8| -> Outcome<()> {
        let mut bytes = good.clone();
        bytes[usize::try_from(at)?] ^= byte;
        add(name, bytes);
        Ok(())
    };
    change("bad-version", 9, 1)?;
    change("bad-flags", 11, 0x20)?;
    change("bad-length", 22, 1)?;
    for frame in &message.layout()?.frames {
        let start = frame.span.start();
        change(&format!("bad-type-{}", frame.index), start + 3, 2)?;
        change(&format!("bad-frame-length-{}", frame.index), start + 15, 8)?;
        change(&format!("bad-body-{}", frame.index), start + 17, 0x40)?;
        change(&format!("bad-end-{}", frame.index), frame.span.end() - 1, 1)?;
    }
    Ok(seeds)
}

/// An object for every pipeline.
fn pipelines() -> Outcome<Vec<(String, Vec<u8>)>> {
    let double = DataObjectDescriptor::new(DType::F64, [40]);
    let short = DataObjectDescriptor::new(DType::U16, [40]);
    let bits = DataObjectDescriptor::new(DType::Bitmask, [99]);
    let packed = |width: u32| {
        let packed = double.clone().with_encoding("simple_packing");
        packed.with_param("sp_bits_per_value", width)
    };
    let szip = |descriptor: DataObjectDescriptor| {
        let szip = descriptor.with_compression("szip").with_param("szip_rsi", 2);
        szip.with_param("szip_block_size", 8).with_param("szip_flags", 8)
    };
    let shuffled = |descriptor: DataObjectDescriptor, size: u32| {
        descriptor.with_filter("shuffle").with_param("shuffle_element_size", size)
    };
    let zfp = |mode: &str, key: &str| {
        let zfp = double.clone().with_compression("zfp").with_param("zfp_mode", mode);
        if key == "zfp_precision" { zfp.with_param(key, 20) } else { zfp.with_param(key, 12.5) }
    };
    let blosc2 = |codec: &str| double.clone().with_compression("blosc2").with_param("blosc2_codec", codec);
    let mut seeds = Vec::new();
    let cases = [
        ("packed-13", packed(13)),
        ("packed-24", packed(24)),
        ("packed-64", packed(64)),
        ("packed-0", packed(0)),
        ("packed-16-szip", szip(packed(16))),
        ("packed-24-shuffle-lz4", shuffled(packed(24), 3).with_compression("lz4")),
        ("szip", szip(short.clone())),
        ("shuffle-szip", szip(shuffled(short.clone(), 2))),
        ("shuffle", shuffled(double.clone(), 8)),
        ("zstd", double.clone().with_compression("zstd")),
        ("lz4", short.with_compression("lz4")),
        ("blosclz", blosc2("blosclz")),
        ("blosc2-lz4", blosc2("lz4")),
        ("blosc2-zlib", blosc2("zlib")),
        ("blosc2-zstd", blosc2("zstd")),
        ("zfp-rate", zfp("fixed_rate", "zfp_rate")),
        ("zfp-precision", zfp("fixed_precision", "zfp_precision")),
        ("zfp-accuracy", zfp("fixed_accuracy", "zfp_tolerance")),
        ("rle", bits.clone().with_compression("rle")),
        ("roaring", bits.with_compression("roaring")),
    ];
    for (name, descriptor) in cases {
        seeds.push((name.to_owned(), one_piece(&[descriptor], &GlobalMetadata::default(), &options())?));
    }
    let holes = [0.5, f64::NAN, f64::INFINITY, -1.0, f64::NEG_INFINITY];
    let values: Vec<u8> = holes.iter().cycle().take(40).flat_map(|value| value.to_le_bytes()).collect();
    for name in tercet_tgm::MaskMethod::NAMES {
        let options =
            options().with_allowed(true, true).with_masks(name.parse()?).with_small_mask_threshold(0);
        let bytes = encode_message(&GlobalMetadata::default(), &[(&double, &values)], &options)?;
        seeds.push((format!("masks-{name}"), bytes));
    }
    Ok(seeds)
}

fn items() -> Vec<(&'static str, Vec<u8>)> {
    let deep = std::iter::repeat_n(0x81, 256).chain([0x01]).collect();
    vec![
        ("metadata", cbor::encode(&metadata().to_value())),
        ("descriptor", DataObjectDescriptor::new(DType::F64, [4, 5, 6]).to_cbor()),
        ("indefinite", b"\xbf\x61a\x9f\x01\x02\xff\x7f\x61b\x61c\xff\xf5\xff".to_vec()),
        (
            "floats",
            b"\x84\xf9\x3e\x00\xfa\x47\xc3\x50\x00\xfb\x3f\xb9\x99\x99\x99\x99\x99\x9a\xf9\x7e\x00".to_vec(),
        ),
        ("bignums", b"\x82\xc2\x49\x01\x00\x00\x00\x00\x00\x00\x00\x00\xc3\x41\x05".to_vec()),
        ("tags", b"\xd8\x20\x78\x03abc".to_vec()),
        ("duplicates", b"\xa2\x61a\x01\x61a\x02".to_vec()),
        ("long-forms", b"\xa1\x78\x01a\x1b\x00\x00\x00\x00\x00\x00\x00\x05".to_vec()),
        ("deep", deep),
        ("huge-array", b"\x9b\x7f\xff\xff\xff\xff\xff\xff\xff\x00".to_vec()),
    ]
}
