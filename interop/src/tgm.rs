//! Every kind of `.tgm` file, and messages encoded again from their decoded form.

use std::io::Cursor;
use std::path::Path;

use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};
use tercet_core::Span;
use tercet_tgm::edit::{self, Change, Changes, Merge, Strategy};
use tercet_tgm::{
    ByteOrder, DTYPES, DType, DataObjectDescriptor, EncodeOptions, Entry, GlobalMetadata, IndexBuilder,
    IndexKeys, Message, MessageFlags, Object, Placement, PreEncoded, Provenance, Stamp, StreamingEncoder,
    Value, encode_message, encode_pre_encoded,
};

use crate::Failure;

/// Encoding variants of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    OnePiece,
    Stream,
    StreamWithLength,
}

/// An object and its values, little-endian.
struct Sample {
    descriptor: DataObjectDescriptor,
    little: Vec<u8>,
}

impl Sample {
    /// Values that are finite numbers in every type.
    fn new(dtype: DType, shape: &[u64], order: ByteOrder, seed: u64) -> Self {
        let mut descriptor = DataObjectDescriptor::new(dtype, shape);
        descriptor.byte_order = Some(order);
        let elements = descriptor.elements().unwrap_or(0);
        let len = usize::try_from(dtype.byte_len(elements).unwrap_or(0)).unwrap_or(0);
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut little = Vec::with_capacity(len);
        for _ in 0..len {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            little.push((state >> 56).to_le_bytes()[0]);
        }
        let is_float = dtype.name().contains("float") || dtype.name().contains("complex");
        if is_float {
            for element in little.chunks_mut(dtype.swap_unit()) {
                if let Some(last) = element.last_mut() {
                    *last = 0x3f;
                }
            }
        }
        Self { descriptor, little }
    }

    /// The values in the byte order of the descriptor.
    fn payload(&self) -> Vec<u8> {
        if self.descriptor.byte_order != Some(ByteOrder::Big) {
            return self.little.clone();
        }
        self.little
            .chunks(self.descriptor.dtype.swap_unit().max(1))
            .flat_map(|unit| unit.iter().rev().copied())
            .collect()
    }

    fn listed(&self) -> Json {
        json!({
            "dtype": self.descriptor.dtype.name(),
            "shape": self.descriptor.shape,
            "byte_order": self.descriptor.stored_order().name(),
            "sha256": hex(&Sha256::digest(&self.little)),
        })
    }
}

/// Bytes as hex digits.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn rich() -> GlobalMetadata {
    let deep = Value::Map(vec![
        ("list".into(), Value::Array(vec![1.into(), Value::Float(2.5), "three".into(), Value::Null])),
        ("on".into(), true.into()),
        ("lowest".into(), i64::MIN.into()),
        ("highest".into(), i64::MAX.into()),
        ("tenth".into(), Value::Float(0.1)),
    ]);
    GlobalMetadata {
        base: vec![[("mars".to_owned(), deep), ("name".to_owned(), "größe 温度".into())].into()],
        extra: [("source".to_owned(), "tercet".into()), ("step".to_owned(), 6.into())].into(),
        ..GlobalMetadata::default()
    }
}

fn message(
    style: Style,
    metadata: &GlobalMetadata,
    samples: &[Sample],
    preceders: bool,
    options: EncodeOptions,
) -> Result<(Vec<u8>, Json), Failure> {
    let payloads: Vec<Vec<u8>> = samples.iter().map(Sample::payload).collect();
    let pairs = samples.iter().zip(&payloads).map(|(sample, payload)| (&sample.descriptor, &payload[..]));
    let mut expected = metadata.clone();
    expected.base.resize_with(samples.len(), Entry::new);
    let hashed = options.hash;
    let bytes = if style == Style::OnePiece {
        encode_message(metadata, &pairs.collect::<Vec<_>>(), &options)?
    } else {
        let mut encoder = StreamingEncoder::new(Cursor::new(Vec::new()), metadata, options)?;
        for ((descriptor, payload), object) in pairs.zip(0..) {
            if preceders {
                let entry: Entry = [("order".to_owned(), Value::from(object as u64))].into();
                expected.base[object].extend(entry.clone());
                encoder.write_preceder(entry)?;
            }
            encoder.write_object(descriptor, payload)?;
        }
        let sink = if style == Style::Stream { encoder.finish()? } else { encoder.finish_with_length()? };
        sink.into_inner()
    };
    let listed = json!({
        "hashed": hashed,
        "base": expected.base,
        "extra": expected.extra,
        "objects": samples.iter().map(Sample::listed).collect::<Vec<_>>(),
    });
    Ok((bytes, listed))
}

/// Writes every kind of file into a directory, and `manifest.json`.
pub fn make(dir: &Path) -> Result<(), Failure> {
    let mut manifest = Vec::new();
    let mut add = |name: &str, messages: Vec<(Vec<u8>, Json)>, unrecognized: &[u8]| -> Result<(), Failure> {
        let file = format!("{name}.tgm");
        let mut bytes = unrecognized.to_vec();
        for (message, _) in &messages {
            bytes.extend_from_slice(message);
        }
        std::fs::write(dir.join(&file), bytes)?;
        let messages: Vec<Json> = messages.into_iter().map(|(_, listed)| listed).collect();
        manifest.push(json!({ "file": file, "unrecognized": unrecognized.len(), "messages": messages }));
        Ok(())
    };
    let none = GlobalMetadata::default();
    let every = |order: ByteOrder, shape: &[u64]| -> Vec<Sample> {
        DTYPES.into_iter().zip(1..).map(|(dtype, seed)| Sample::new(dtype, shape, order, seed)).collect()
    };
    let floats = |seed| vec![Sample::new(DType::F64, &[5, 3], ByteOrder::Little, seed)];
    for style in [Style::OnePiece, Style::Stream, Style::StreamWithLength] {
        let name = format!("{style:?}").to_lowercase();
        for hash in [true, false] {
            let on = if hash { "hashed" } else { "unhashed" };
            let options = EncodeOptions::new().with_hash(hash);
            for order in [ByteOrder::Little, ByteOrder::Big] {
                let made = message(style, &none, &every(order, &[4, 3]), false, options.clone())?;
                add(&format!("dtypes_{name}_{on}_{order}"), vec![made], b"")?;
            }
            let made = message(style, &rich(), &floats(1), false, options.clone())?;
            add(&format!("metadata_{name}_{on}"), vec![made], b"")?;
            add(&format!("nothing_{name}_{on}"), vec![message(style, &none, &[], false, options)?], b"")?;
        }
        for (label, shape) in
            [("scalar", &[][..]), ("empty", &[3, 0, 2]), ("odd", &[13]), ("four", &[2, 1, 3, 2])]
        {
            let made = message(style, &none, &every(ByteOrder::Little, shape), false, EncodeOptions::new())?;
            add(&format!("{label}_{name}"), vec![made], b"")?;
        }
    }
    for placement in [Placement::None, Placement::Header, Placement::Footer, Placement::Both] {
        let label = format!("{placement:?}").to_lowercase();
        let hashes = EncodeOptions::new().with_hashes(placement);
        add(
            &format!("hashes_{label}"),
            vec![message(Style::OnePiece, &none, &floats(2), false, hashes)?],
            b"",
        )?;
        let index = EncodeOptions::new().with_index(placement);
        add(
            &format!("index_{label}"),
            vec![message(Style::OnePiece, &none, &floats(3), false, index)?],
            b"",
        )?;
    }
    for style in [Style::Stream, Style::StreamWithLength] {
        let made = message(style, &rich(), &every(ByteOrder::Little, &[2]), true, EncodeOptions::new())?;
        add(&format!("preceders_{style:?}").to_lowercase(), vec![made], b"")?;
    }
    for count in [1, 283, 284, 500, 842, 843, 1500] {
        let many: Vec<Sample> =
            (0..count).map(|seed| Sample::new(DType::U8, &[1], ByteOrder::Little, seed)).collect();
        add(
            &format!("objects_{count}"),
            vec![message(Style::OnePiece, &none, &many, false, EncodeOptions::new())?],
            b"",
        )?;
    }
    let mut mixed = Vec::new();
    for (style, seed) in
        [Style::OnePiece, Style::Stream, Style::StreamWithLength, Style::OnePiece].into_iter().zip(10..)
    {
        mixed.push(message(style, &rich(), &floats(seed), false, EncodeOptions::new())?);
    }
    add("mixed", mixed, b"")?;
    let two = (0..2).map(|seed| message(Style::OnePiece, &none, &floats(seed), false, EncodeOptions::new()));
    add("junk", two.collect::<Result<_, _>>()?, b"not a message")?;
    let off = EncodeOptions::new().with_provenance(Provenance::Off);
    add("no_provenance", vec![message(Style::OnePiece, &rich(), &floats(4), false, off)?], b"")?;
    for (name, made) in edited()? {
        add(&format!("edited_{name}"), made, b"")?;
    }
    add("index", indexed()?, b"")?;
    std::fs::write(dir.join("manifest.json"), serde_json::to_vec(&manifest)?)?;
    Ok(())
}

/// Messages with the index at the end of their file, which is one more message to other readers.
fn indexed() -> Result<Listed, Failure> {
    let mut all = Vec::new();
    let mut file = Cursor::new(Vec::new());
    let mut builder = IndexBuilder::new(&IndexKeys::All);
    for (style, seed) in
        [Style::OnePiece, Style::StreamWithLength, Style::Stream, Style::OnePiece].into_iter().zip(20..)
    {
        let samples = [Sample::new(DType::F64, &[5, 3], ByteOrder::Little, seed)];
        let (bytes, listed) =
            message(style, &rich(), &samples, style == Style::Stream, EncodeOptions::new())?;
        let made = Message::from_bytes("made", bytes.clone())?;
        let at = file.get_ref().len() as u64;
        builder.push(Span::at(at, bytes.len() as u64).ok_or("too long")?, made.metadata());
        file.get_mut().extend_from_slice(&bytes);
        all.push((bytes, listed));
    }
    let start = file.get_ref().len();
    file.set_position(start as u64);
    builder.write(&mut file, Provenance::default())?;
    let bytes = file.into_inner().split_off(start);
    let index = Message::from_bytes("index", bytes.clone())?;
    let mut objects = Vec::new();
    for object in index.objects() {
        let object = object?;
        let descriptor = object.descriptor();
        objects.push(json!({
            "dtype": descriptor.dtype.name(),
            "shape": descriptor.shape,
            "byte_order": descriptor.stored_order().name(),
            "sha256": hex(&Sha256::digest(object.decode()?.bytes())),
        }));
    }
    let metadata = index.metadata().without_reserved();
    let listed =
        json!({ "hashed": true, "base": metadata.base, "extra": metadata.extra, "objects": objects });
    all.push((bytes, listed));
    Ok(all)
}

/// Messages with their expected content.
type Listed = Vec<(Vec<u8>, Json)>;

/// Edited messages with their expected content: streamed ones, some with preceders, NaN and compression. Messages made of one
/// without hashes have none either: its bytes were not verified.
fn edited() -> Result<Vec<(String, Listed)>, Failure> {
    let options = EncodeOptions::new().with_allowed(true, true);
    let mut masked = Sample::new(DType::F64, &[5, 3], ByteOrder::Little, 7);
    masked.descriptor = masked.descriptor.with_compression("zstd");
    for (at, value) in [(0, f64::NAN), (4, f64::INFINITY), (14, f64::NEG_INFINITY)] {
        masked.little[at * 8..at * 8 + 8].copy_from_slice(&value.to_le_bytes());
    }
    let samples = [
        masked,
        Sample::new(DType::I16, &[4, 3], ByteOrder::Big, 8),
        Sample::new(DType::F32, &[2, 2], ByteOrder::Little, 9),
    ];
    let mut all = Vec::new();
    for (style, hash, preceders) in [
        (Style::OnePiece, true, false),
        (Style::Stream, true, true),
        (Style::StreamWithLength, false, true),
        (Style::Stream, false, false),
    ] {
        let (bytes, listed) = message(style, &rich(), &samples, preceders, options.clone().with_hash(hash))?;
        let before = Message::from_bytes("before", bytes.clone())?;
        let name = format!("{style:?}_{hash}_{preceders}").to_lowercase();
        let with = |change: &dyn Fn(&mut Json)| {
            let mut listed = listed.clone();
            change(&mut listed);
            listed
        };
        let changes = vec![Change::new("mars.class", "rd")?, Change::new("extra.step", 12)?];
        let set = edit::set(&before, &Changes::new(changes)?, &options)?.to_bytes()?;
        let listed_set = with(&|listed| {
            for object in 0..samples.len() {
                listed["base"][object]["mars"]["class"] = "rd".into();
            }
            listed["extra"]["step"] = 12.into();
        });
        all.push((format!("set_{name}"), vec![(set, listed_set)]));
        let mut parts = Vec::new();
        for object in 0..samples.len() {
            let bytes = edit::split(&before, object as u64, &options)?.to_bytes()?;
            let one = |listed: &Json, key: &str| json!([listed[key][object].clone()]);
            parts.push((
                bytes,
                with(&|listed| {
                    listed["base"] = one(listed, "base");
                    listed["objects"] = one(listed, "objects");
                }),
            ));
        }
        all.push((format!("split_{name}"), parts));
        let reshuffled = match edit::reshuffle(&before, &options)? {
            Some(draft) => draft.to_bytes()?,
            None => bytes,
        };
        all.push((format!("reshuffled_{name}"), vec![(reshuffled, with(&|_| ()))]));
        let mut merge = Merge::new(Strategy::Error);
        merge.add(&before)?;
        merge.add(&before)?;
        let merged = merge.finish(&options)?.to_bytes()?;
        let twice = |list: &Json| {
            let one = list.as_array().cloned().unwrap_or_default();
            Json::from([one.clone(), one].concat())
        };
        all.push((
            format!("merged_{name}"),
            vec![(
                merged,
                with(&|listed| {
                    listed["base"] = twice(&listed["base"]);
                    listed["objects"] = twice(&listed["objects"]);
                }),
            )],
        ));
    }
    Ok(all)
}

/// The same message, encoded again from what our reader found.
pub fn again(message: &Message) -> Result<Vec<u8>, Failure> {
    let flags = message.layout()?.preamble.flags;
    let has = |flag| flags.contains(flag);
    let placement = |header, footer| match (has(header), has(footer)) {
        (false, false) => Placement::None,
        (true, false) => Placement::Header,
        (false, true) => Placement::Footer,
        (true, true) => Placement::Both,
    };
    let reserved = &message.metadata().reserved;
    let text = |value: Option<&Value>| value.and_then(Value::as_text).unwrap_or_default().to_owned();
    let encoder = reserved.get("encoder");
    let stamp = Stamp {
        time: text(reserved.get("time")),
        uuid: text(reserved.get("uuid")),
        encoder: text(encoder.and_then(|encoder| encoder.get("name"))),
        version: text(encoder.and_then(|encoder| encoder.get("version"))),
    };
    let options = EncodeOptions::new()
        .with_hash(has(MessageFlags::HASHES_PRESENT))
        .with_hashes(placement(MessageFlags::HEADER_HASHES, MessageFlags::FOOTER_HASHES))
        .with_index(placement(MessageFlags::HEADER_INDEX, MessageFlags::FOOTER_INDEX))
        .with_provenance(Provenance::Fixed(Box::new(stamp)));
    let objects = message.objects().collect::<Result<Vec<_>, _>>()?;
    let payloads = objects.iter().map(Object::stored).collect::<Result<Vec<_>, _>>()?;
    let pre = objects.iter().zip(&payloads);
    let mut pre = pre.map(|(object, payload)| PreEncoded { descriptor: object.descriptor(), payload });
    let mut metadata = message.first_metadata().clone();
    if !has(MessageFlags::FOOTER_METADATA) {
        metadata.reserved.clear();
        for entry in &mut metadata.base {
            entry.remove("_reserved_");
        }
        return Ok(encode_pre_encoded(&metadata, &pre.collect::<Vec<_>>(), &options)?);
    }
    let mut encoder = StreamingEncoder::new(Cursor::new(Vec::new()), &metadata, options)?;
    pre.try_for_each(|object| encoder.write_pre_encoded(object))?;
    let known = message.layout()?.preamble.known_length().is_some();
    let sink = if known { encoder.finish_with_length()? } else { encoder.finish()? };
    Ok(sink.into_inner())
}
