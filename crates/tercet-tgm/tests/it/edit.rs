//! Messages made from other messages: stored bytes, hashes and metadata are kept.

use std::io::Cursor;
use std::path::Path;

use proptest::prelude::*;
use tercet_core::{Class, Diagnostic as _};
use tercet_testkit::{damage, golden};
use tercet_tgm::edit::{Change, Changes, EditError, Merge, Strategy as Winner, check, reshuffle, set, split};
use tercet_tgm::{
    DType, DataObjectDescriptor, Depth, EncodeOptions, Entry, ErrorKind, File, GlobalMetadata, Message,
    PreEncoded, Provenance, StreamingEncoder, ValidateOptions, Value, encode_message, encode_pre_encoded,
    validate_bytes,
};

use crate::samples;

/// The content of an object.
#[derive(Debug, PartialEq)]
struct StoredObject {
    descriptor: DataObjectDescriptor,
    bytes: Vec<u8>,
    hash: Option<u64>,
    entry: Entry,
}

fn users(mut entry: Entry) -> Entry {
    entry.remove("_reserved_");
    entry
}

fn stored(message: &Message) -> Vec<StoredObject> {
    let one = |object: tercet_tgm::Object<'_>| {
        // Wrong szip offsets are corrected; another test checks that.
        let mut descriptor = object.descriptor().clone();
        let repaired = descriptor.params.remove("szip_block_offsets").is_some();
        let is_after = object.frame().header.flags.0 & 1 == 1;
        StoredObject {
            descriptor,
            bytes: object.stored().unwrap().to_vec(),
            hash: object.frame().hash().filter(|_| is_after && !repaired),
            entry: users(message.metadata().base[usize::try_from(object.index()).unwrap()].clone()),
        }
    };
    message.objects().map(|object| one(object.unwrap())).collect()
}

/// As text, so that NaN equals itself.
fn cbor(entry: &Entry) -> Vec<u8> {
    GlobalMetadata { extra: entry.clone(), ..GlobalMetadata::default() }.to_cbor()
}

/// Asserts that objects are unchanged.
fn assert_same(found: &[StoredObject], before: &[&StoredObject], name: &str) {
    assert_eq!(found.len(), before.len(), "{name}");
    for (found, before) in found.iter().zip(before) {
        assert_eq!(found.descriptor, before.descriptor, "{name}");
        assert_eq!(cbor(&found.entry), cbor(&before.entry), "{name}");
        assert!(found.bytes == before.bytes, "{name}");
        if before.hash.is_some() {
            assert_eq!(found.hash, before.hash, "{name}");
        }
    }
}

fn open(bytes: Vec<u8>) -> Message {
    let report =
        validate_bytes(&bytes, &ValidateOptions::new().with_depth(Depth::Default).with_canonical(true));
    assert!(report.is_ok(), "{report:?}");
    let message = Message::from_bytes("new", bytes).unwrap();
    let is_hashed = |frame: &tercet_tgm::Frame| frame.hash().is_some();
    let layout = message.layout().unwrap();
    assert!(layout.frames.iter().all(is_hashed) || !layout.frames.iter().any(is_hashed));
    message
}

/// Every readable message of the reference files.
fn each(mut work: impl FnMut(&str, &Message)) {
    let Some(dir) = golden("tgm") else { return };
    let mut names: Vec<_> = dir.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let is_file = |path: &&std::path::PathBuf| path.extension().is_some_and(|end| end == "tgm");
    let mut messages = 0;
    for path in names.iter().filter(is_file) {
        let file = File::open(Path::new(path)).unwrap();
        for message in file.messages().unwrap() {
            work(&path.file_name().unwrap().to_string_lossy(), &message.unwrap());
            messages += 1;
        }
    }
    assert!(messages > 60, "{messages}");
}

#[test]
fn edits_of_reference_files_keep_their_objects() {
    let options = samples::options();
    // Objects with hashes keep them among objects with hashes; an object without a hash disables them for the message.
    let mut merges = [(); 2].map(|()| (Merge::new(Winner::First), Vec::new()));
    each(|name, message| {
        let before = stored(message);
        check(message).unwrap();
        for (at, object) in (0..).zip(&before) {
            let part = open(split(message, at, &options).unwrap().to_bytes().unwrap());
            assert_same(&stored(&part), &[object], name);
            assert_eq!(cbor(&part.metadata().extra), cbor(&message.metadata().extra), "{name}");
        }
        if let Some(draft) = reshuffle(message, &options).unwrap() {
            let bytes = draft.to_bytes().unwrap();
            assert_eq!(bytes.len() as u64, draft.len(), "{name}");
            let new = open(bytes);
            assert_same(&stored(&new), &before.iter().collect::<Vec<_>>(), name);
            assert_eq!(cbor(&new.metadata().extra), cbor(&message.metadata().extra), "{name}");
            assert!(reshuffle(&new, &options).unwrap().is_none(), "{name}: once is enough");
        }
        let changes = Changes::new(vec![Change::new("extra.edited", "yes").unwrap()]).unwrap();
        let new = open(set(message, &changes, &options).unwrap().to_bytes().unwrap());
        assert_same(&stored(&new), &before.iter().collect::<Vec<_>>(), name);
        assert_eq!(new.metadata().extra["edited"], "yes".into(), "{name}");
        let is_hashed = message.objects().all(|object| object.unwrap().frame().hash().is_some());
        let (merge, all) = &mut merges[usize::from(is_hashed)];
        merge.add(message).unwrap();
        all.extend(before);
    });
    for (merge, all) in merges {
        let new = open(merge.finish(&options).unwrap().to_bytes().unwrap());
        assert_same(&stored(&new), &all.iter().collect::<Vec<_>>(), "merged");
    }
}

/// Some szip offsets in reference files are wrong; those of Tercet messages are trusted.
#[test]
fn wrong_szip_offsets_are_corrected() {
    let wrong = |bits: u64| {
        DataObjectDescriptor::new(DType::U8, [4096])
            .with_compression("szip")
            .with_param("szip_rsi", 2)
            .with_param("szip_block_size", 8)
            .with_param("szip_flags", 8)
            .with_param("szip_block_offsets", vec![0.into(), bits.into()])
    };
    let values: Vec<u8> = (0..4096u32).map(|n| ((n * n) >> 7).to_le_bytes()[0]).collect();
    let mut plain = wrong(1);
    plain.params.remove("szip_block_offsets");
    let good = encode_message(&GlobalMetadata::default(), &[(&plain, &values)], &samples::options()).unwrap();
    let good = Message::from_bytes("good", good).unwrap();
    let right = good.object(0).unwrap().descriptor().clone();
    // The same length in CBOR, so that only the parameter changes.
    let cbor = right.to_cbor();
    let mut wrong = right.clone();
    let Value::Array(offsets) = wrong.params.get_mut("szip_block_offsets").unwrap() else { panic!() };
    let Value::Integer(second) = &mut offsets[1] else { panic!() };
    *second -= 1;
    assert_eq!(wrong.to_cbor().len(), cbor.len());
    let bytes = good.bytes().unwrap();
    let at = memchr::memmem::find(&bytes, &cbor).unwrap();
    let mut bytes = damage::patched(&bytes, at, &wrong.to_cbor());
    let frame = good.object(0).unwrap().frame().span.to_range().unwrap();
    bytes[frame.start + 7] = 1;
    // Without hashes, because nothing here recomputes them.
    let options = tercet_tgm::ReadOptions::new().with_verify(false).with_strict(false);
    let message = Message::from_bytes_with("wrong", bytes, options).unwrap();
    assert_eq!(message.object(0).unwrap().descriptor(), &wrong);
    let new = open(split(&message, 0, &samples::options()).unwrap().to_bytes().unwrap());
    let object = new.object(0).unwrap();
    assert_eq!(object.descriptor(), &right);
    assert_eq!(object.decode().unwrap().bytes(), values);
}

#[test]
fn damage_is_never_copied() {
    let descriptor = DataObjectDescriptor::new(DType::I32, [50]).with_compression("zstd");
    let values: Vec<u8> = (0..200u8).collect();
    let objects: [(&DataObjectDescriptor, &[u8]); 2] = [(&descriptor, &values), (&descriptor, &values)];
    let good = encode_message(&GlobalMetadata::default(), &objects, &samples::options()).unwrap();
    let whole = Message::from_bytes("good", good.clone()).unwrap();
    let before = stored(&whole);
    let changes = Changes::new(vec![Change::new("k", "v").unwrap()]).unwrap();
    damage::for_each_flip(&good, |flip, bytes| {
        let Ok(message) = Message::from_bytes("bad", bytes.to_vec()) else { return };
        if let Ok(draft) = set(&message, &changes, &samples::options()) {
            let found = stored(&Message::from_bytes("new", draft.to_bytes().unwrap()).unwrap());
            for (found, before) in found.iter().zip(&before) {
                assert!(found.bytes == before.bytes && found.hash == before.hash, "{flip}");
            }
        }
    });
}

fn message(extra: &[(&str, Value)]) -> Message {
    let descriptor = DataObjectDescriptor::new(DType::U8, [3]).with_param("quality", 0.5);
    let mut metadata = GlobalMetadata::default();
    metadata.extra.extend(extra.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    let mars = Value::Map(vec![("step".into(), 6.into())]);
    metadata.base = vec![[("mars".to_owned(), mars)].into(), Entry::new()];
    let objects: [(&DataObjectDescriptor, &[u8]); 2] = [(&descriptor, &[1, 2, 3]), (&descriptor, &[4, 5, 6])];
    let bytes = encode_message(&metadata, &objects, &samples::options()).unwrap();
    Message::from_bytes("a.tgm", bytes).unwrap()
}

fn changed(message: &Message, pairs: &[(&str, Value)]) -> Result<Message, String> {
    let change = |(path, value): &(&str, Value)| Change::new(path, value.clone());
    let changes = pairs.iter().map(change).collect::<Result<Vec<_>, _>>().and_then(Changes::new);
    let changes = changes.map_err(|error| error.to_string())?;
    let draft = set(message, &changes, &samples::options()).map_err(|error| error.to_string())?;
    Ok(open(draft.to_bytes().unwrap()))
}

#[test]
fn values_are_set_at_their_level() {
    let before = message(&[("centre", "ecmf".into())]);
    let pairs = [
        ("mars.class", "rd".into()),
        ("mars.step", 12.into()),
        ("extra.a.b.c", Value::Null),
        ("_extra_.centre", "98".into()),
        ("objects.1.quality", "good".into()),
        ("objects.1.deep.er", true.into()),
        ("new", vec![1.into(), Value::Float(0.5)].into()),
    ];
    let after = changed(&before, &pairs).unwrap();
    let metadata = after.metadata();
    for entry in &metadata.base {
        assert_eq!(entry["mars"].get("class"), Some(&"rd".into()));
        assert_eq!(entry["mars"].get("step"), Some(&12.into()));
        assert_eq!(entry["new"].printed(), "[1,0.5]");
    }
    assert_eq!(metadata.get("extra.a.b.c"), Some(&Value::Null));
    assert_eq!(metadata.extra["centre"], "98".into());
    let params = |object: u64| after.object(object).unwrap().descriptor().params.clone();
    assert_eq!(params(0), before.object(0).unwrap().descriptor().params);
    assert_eq!(
        (&params(1)["quality"], params(1)["deep"].printed()),
        (&"good".into(), r#"{"er":true}"#.into())
    );
    assert_eq!(after.object(1).unwrap().decode().unwrap().bytes(), [4, 5, 6]);
    // The first object did not change, and neither did its hash.
    let hash = |message: &Message| message.object(0).unwrap().frame().hash();
    assert_eq!(hash(&after), hash(&before));
    // Without objects there is no entry to set anything in.
    let empty = encode_message(&GlobalMetadata::default(), &[], &samples::options()).unwrap();
    let empty = changed(&Message::from_bytes("empty", empty).unwrap(), &[("a.b", "c".into())]).unwrap();
    assert_eq!(empty.metadata().get("extra.a.b"), Some(&"c".into()));
}

#[test]
fn encoding_keys_cannot_be_set() {
    let message = message(&[("number", 7.into())]);
    for (path, reason) in [
        ("shape", "`shape` describes the stored bytes"),
        ("mars.type", "`type` describes the stored bytes"),
        ("extra.hash", "`hash` describes"),
        ("objects.0.dtype", "`dtype` describes"),
        ("objects.0.sp_bits_per_value", "describes"),
        ("objects.0.szip_rsi", "describes"),
        ("objects.0.zstd_level", "describes"),
        ("objects.0.blosc2_codec", "describes"),
        ("objects.0.zfp_tolerance.x", "`zfp_tolerance` describes"),
        ("objects.0.sz3_error_bound", "describes"),
        ("objects.0.masks.nan.offset", "`masks` describes"),
        ("objects.0.byte_order", "describes"),
        ("_reserved_.uuid", "is reserved for the library"),
        ("extra._reserved_.uuid", "is reserved for the library"),
        ("objects.0._reserved_", "is reserved for the library"),
        ("objects.2.a", "a.tgm: message 0 has no object 2"),
        ("objects.x.a", "expected the number of an object"),
        ("objects.0", "not a key in it"),
        ("objects", "not a key in it"),
        ("extra", "not a key in it"),
        ("base.0.a", "`base` is a section"),
        ("a..b", "is empty"),
        ("", "is empty"),
        ("mars.step.x", "a.tgm: `mars.step.x` cannot be set: `base[0].mars.step` is an integer"),
        ("extra.number.x", "`_extra_.number` is an integer, not a map"),
        ("objects.1.quality.x", "`objects.1.quality` is a float, not a map"),
    ] {
        let error = changed(&message, &[(path, "x".into())]).unwrap_err();
        assert!(error.contains(reason), "{path}: {error}");
    }
    for (first, second) in [("a", "a"), ("a", "a.b"), ("a.b", "a"), ("extra.x", "_extra_.x")] {
        let error = changed(&message, &[(first, "1".into()), (second, "2".into())]).unwrap_err();
        assert_eq!(error, format!("`{first}` and `{second}` cannot both be set"));
    }
}

#[test]
fn merge_conflicts_are_resolved_as_requested() {
    let one = message(&[("a", 1.into()), ("b", Value::Float(f64::NAN))]);
    let two = message(&[("a", 2.into()), ("b", Value::Float(f64::NAN)), ("c", 3.into())]);
    let merged = |strategy, messages: &[&Message]| {
        let mut merge = Merge::new(strategy);
        messages.iter().try_for_each(|message| merge.add(message))?;
        merge.finish(&samples::options())
    };
    let a = |strategy| open(merged(strategy, &[&one, &two]).unwrap().to_bytes().unwrap());
    let (first, last) = (a(Winner::First), a(Winner::Last));
    assert_eq!((&first.metadata().extra["a"], &last.metadata().extra["a"]), (&1.into(), &2.into()));
    assert_eq!((first.object_count(), first.metadata().extra["c"].clone()), (4, 3.into()));
    let steps: Vec<bool> = first.metadata().base.iter().map(|entry| entry.contains_key("mars")).collect();
    assert_eq!(steps, [true, false, true, false]);
    let error = merged(Winner::Error, &[&one, &two]).unwrap_err();
    assert_eq!(error.class(), Class::Request);
    let text = error.to_string();
    assert!(text.contains("`a` is `2` in message 0 of a.tgm, but `1` in message 0 of a.tgm"), "{text}");
    let ErrorKind::Edit(edit) = error.kind() else { panic!("{error}") };
    assert!(matches!(**edit, EditError::Conflict { .. }));
    merged(Winner::Error, &[&one, &one]).unwrap();
    assert_eq!(merged(Winner::First, &[]).unwrap().object_count(), 0);
}

#[test]
fn equal_messages_make_equal_bytes() {
    let message = message(&[]);
    let off = EncodeOptions::new().with_provenance(Provenance::Off);
    let make = |options: &EncodeOptions| split(&message, 0, options).unwrap().to_bytes().unwrap();
    assert_eq!(make(&off), make(&off));
    assert_ne!(make(&EncodeOptions::new()), make(&EncodeOptions::new()), "each has its own UUID");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(64)))]

    /// A message builder writes what the encoder writes for the same objects and metadata.
    #[test]
    fn message_builders_write_the_bytes_of_the_encoder(
        lengths in proptest::collection::vec(0..200usize, 0..12),
        streamed: bool,
        hashed: bool,
        key in "[a-z]{1,12}",
    ) {
        let payloads: Vec<Vec<u8>> = lengths.iter().map(|&len| vec![7; len]).collect();
        let descriptors: Vec<_> =
            lengths.iter().map(|&len| DataObjectDescriptor::new(DType::U8, [len as u64])).collect();
        let mut metadata = GlobalMetadata::default();
        metadata.extra.insert(key, 1.into());
        let options = samples::options().with_hash(hashed);
        let bytes = if streamed {
            let mut encoder = StreamingEncoder::new(Cursor::new(Vec::new()), &metadata, options).unwrap();
            for (descriptor, payload) in descriptors.iter().zip(&payloads) {
                encoder.write_object(descriptor, payload).unwrap();
            }
            encoder.finish().unwrap().into_inner()
        } else {
            let objects: Vec<_> = descriptors.iter().zip(payloads.iter().map(|p| &p[..])).collect();
            encode_message(&metadata, &objects, &options).unwrap()
        };
        let message = Message::from_bytes("before", bytes).unwrap();
        let mut merge = Merge::new(Winner::First);
        merge.add(&message).unwrap();
        let made = merge.finish(&samples::options()).unwrap().to_bytes().unwrap();
        let objects: Vec<PreEncoded<'_>> = descriptors
            .iter()
            .zip(&payloads)
            .map(|(descriptor, payload)| PreEncoded { descriptor, payload })
            .collect();
        let options = samples::options().with_hash(hashed || objects.is_empty());
        prop_assert_eq!(made, encode_pre_encoded(&metadata, &objects, &options).unwrap());
    }
}

/// A new hash would cover bytes that were never verified.
#[test]
fn objects_without_a_hash_get_none() {
    let all = samples::all();
    let find = |name: &str| open(all.iter().find(|sample| sample.name == name).unwrap().bytes.clone());
    let (with, without) = (find("two objects"), find("stream with masks, no hashes"));
    let changes = Changes::new(vec![Change::new("a", "b").unwrap()]).unwrap();
    let options = samples::options();
    let mut both = Merge::new(Winner::First);
    both.add(&with).unwrap();
    both.add(&without).unwrap();
    let drafts = [
        (set(&with, &changes, &options).unwrap(), true),
        (set(&without, &changes, &options).unwrap(), false),
        (split(&with, 1, &options).unwrap(), true),
        (split(&without, 1, &options).unwrap(), false),
        (reshuffle(&without, &options).unwrap().unwrap(), false),
        (both.finish(&options).unwrap(), false),
    ];
    for (draft, is_hashed) in drafts {
        assert_eq!(draft.is_hashed(), is_hashed);
        let message = open(draft.to_bytes().unwrap());
        let frames = &message.layout().unwrap().frames;
        assert!(frames.iter().all(|frame| frame.hash().is_some() == is_hashed), "{frames:?}");
        check(&message).unwrap();
    }
}
