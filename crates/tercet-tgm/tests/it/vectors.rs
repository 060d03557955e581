//! Test vectors of the format, reproduced by the encoder, and rejected inputs.

use std::io::Cursor;

use tercet_tgm::{
    DType, DataObjectDescriptor, EncodeError, EncodeOptions, ErrorKind, GlobalMetadata, Message, Placement,
    PreEncoded, Provenance, Stamp, StreamingEncoder, Value, encode_message, encode_pre_encoded,
};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

fn stamped(uuid: &str) -> EncodeOptions {
    let stamp = Stamp {
        time: "2026-11-15T19:32:35Z".to_owned(),
        uuid: uuid.to_owned(),
        encoder: "tensogram".to_owned(),
        version: "0.24.0".to_owned(),
    };
    EncodeOptions::new().with_provenance(Provenance::Fixed(Box::new(stamp)))
}

const TV1: &str = "54454e534f47524d 0003 0005 00000000 00000000000001d8
4652 0001 0001 0000 00000000000000d4 a2 646261736581a16a5f72657365727665 645fa16674656e736f72a4646e64696d 016564747970656575696e7438657368 617065810367737472696465738101
6a5f72657365727665645fa36474696d 6574323032362d31312d31355431393a 33323a33355a64757569647824376162 32363532642d636161622d343736652d 396262352d3163333030613665393535 3267656e636f646572a2646e616d6569 74656e736f6772616d6776657273696f 6e66302e32342e30
0000000000000000 454e4446 00000000
4652 0002 0001 0000 0000000000000034 a2 676c656e67746873811896 676f66667365747381190128 0000000000000000 454e4446 00000000
4652 0009 0001 0001 0000000000000096 070809 a9 646e64696d01 6474797065676e74656e736f72 6564747970656575696e7438 6573686170658103 6666696c746572646e6f6e65 67737472696465738101 68656e636f64696e67646e6f6e65
6a627974655f6f72646572666c697474 6c65 6b636f6d7072657373696f6e646e6f6e 65 0000000000000013 0000000000000000 454e4446 0000
00000000000001c0 00000000000001d8 3339323737373737";

#[test]
fn a_message_without_hashes() {
    let descriptor = DataObjectDescriptor::new(DType::U8, [3]);
    let options = stamped("7ab2652d-caab-476e-9bb5-1c300a6e9552").with_hash(false);
    let made = encode_message(&GlobalMetadata::default(), &[(&descriptor, &[7, 8, 9])], &options).unwrap();
    assert_eq!(made, hex(TV1));
}

const TV2: &str = "54454e534f47524d 0003 0095 00000000 0000000000000240
4652 0001 0001 0002 00000000000000f2 a3
646261736581a2646d617273a1657061 72616d6232746a5f7265736572766564 5fa16674656e736f72a4646e64696d01 65647479706565696e74313665736861 7065810267737472696465738101
675f65787472615fa1637372636178
6a5f72657365727665645fa36474696d 6574323032362d31312d31355431393a 33323a33355a64757569647824393736 62663861372d623537652d346262392d 623631322d3939636138653235313736 3967656e636f646572a2646e616d6569 74656e736f6772616d6776657273696f 6e66302e32342e30
a89c70ddbc8fbf2a 454e4446 000000000000
4652 0002 0001 0002 0000000000000034 a2 676c656e67746873811897 676f66667365747381190190 7fb44d799a484883 454e4446 00000000
4652 0003 0001 0002 0000000000000045 a2 66686173686573817066393937306365 353337363261306266 69616c676f726974686d6478786833 4ecc2f0ea9682982 454e4446 000000
4652 0009 0001 0003 0000000000000097 0100feff a9 646e64696d01 6474797065676e74656e736f72 65647479706565696e743136 6573686170658102 6666696c746572646e6f6e65 67737472696465738101 68656e636f64696e67646e6f6e65
6a627974655f6f72646572666c697474 6c65 6b636f6d7072657373696f6e646e6f6e 65 0000000000000014 f9970ce53762a0bf 454e4446 00
0000000000000228 0000000000000240 3339323737373737";

fn mars() -> GlobalMetadata {
    let param = Value::Map(vec![(Value::from("param"), Value::from("2t"))]);
    GlobalMetadata {
        base: vec![[("mars".to_owned(), param)].into()],
        extra: [("src".to_owned(), Value::from("x"))].into(),
        ..GlobalMetadata::default()
    }
}

#[test]
fn a_message_with_hashes_and_metadata() {
    let descriptor = DataObjectDescriptor::new(DType::I16, [2]);
    let options = stamped("976bf8a7-b57e-4bb9-b612-99ca8e251769");
    let made = encode_message(&mars(), &[(&descriptor, &[1, 0, 0xfe, 0xff])], &options).unwrap();
    assert_eq!(made, hex(TV2));
}

const TV3: &str = "54454e534f47524d 0003 00eb 00000000 0000000000000000
4652 0001 0001 0002 000000000000001d a0 2b98bb92609bd6f8 454e4446 000000
4652 0009 0001 0003 0000000000000095 0506 a9 646e64696d01 6474797065676e74656e736f72 6564747970656575696e7438 6573686170658102 6666696c746572646e6f6e65 67737472696465738101 68656e636f64696e67646e6f6e65
6a627974655f6f72646572666c697474 6c65 6b636f6d7072657373696f6e646e6f6e 65 0000000000000012 527533e9984c6e6a 454e4446 000000
4652 0007 0001 0002 00000000000000d4 a2 646261736581a16a5f72657365727665 645fa16674656e736f72a4646e64696d 016564747970656575696e7438657368 617065810267737472696465738101
6a5f72657365727665645fa36474696d 6574323032362d31312d31355431393a 33323a33355a64757569647824623536 66616664362d643136342d343063362d 393430612d6337653066396163386237 3467656e636f646572a2646e616d6569 74656e736f6772616d6776657273696f 6e66302e32342e30
1c458296df4af35b 454e4446 00000000
4652 0005 0001 0002 0000000000000045 a2 66686173686573817035323735333365 393938346336653661 69616c676f726974686d6478786833 1ef59fc0e7b3c020 454e4446 000000
4652 0006 0001 0002 0000000000000033 a2 676c656e67746873811895 676f666673657473811838 fd39e40cfac97076 454e4446 0000000000
00000000000000d0 0000000000000000 3339323737373737";

fn streamed(options: EncodeOptions) -> StreamingEncoder<Cursor<Vec<u8>>> {
    let sink = Cursor::new(Vec::new());
    let mut encoder = StreamingEncoder::new(sink, &GlobalMetadata::default(), options).unwrap();
    encoder.write_object(&DataObjectDescriptor::new(DType::U8, [2]), &[5, 6]).unwrap();
    encoder
}

#[test]
fn a_message_in_a_stream() {
    let options = stamped("b56fafd6-d164-40c6-940a-c7e0f9ac8b74");
    let made = streamed(options.clone()).finish().unwrap().into_inner();
    assert_eq!(made, hex(TV3));
    // Patching the length changes two fields and nothing else.
    let mut expected = hex(TV3);
    let length = (expected.len() as u64).to_be_bytes();
    expected[16..24].copy_from_slice(&length);
    let at = expected.len() - 16;
    expected[at..at + 8].copy_from_slice(&length);
    assert_eq!(streamed(options).finish_with_length().unwrap().into_inner(), expected);
}

/// A message that does not start at offset 0 of its sink gets its length in its own preamble.
#[test]
fn lengths_are_patched_into_the_preamble() {
    let first = hex(TV2);
    let mut sink = Cursor::new(first.clone());
    sink.set_position(first.len() as u64);
    let mut encoder = StreamingEncoder::new(sink, &GlobalMetadata::default(), EncodeOptions::new()).unwrap();
    encoder.write_object(&DataObjectDescriptor::new(DType::U8, [2]), &[5, 6]).unwrap();
    let both = encoder.finish_with_length().unwrap().into_inner();
    assert_eq!(both[..first.len()], first);
    let spans = tercet_tgm::scan(&both);
    assert_eq!(spans.len(), 2);
    let second = Message::from_bytes("second", both[first.len()..].to_vec()).unwrap();
    assert_eq!(second.layout().unwrap().preamble.total_length, second.span().len());
}

#[test]
fn any_number_of_objects_can_be_written_and_read() {
    let descriptor = DataObjectDescriptor::new(DType::U8, [1]);
    for count in (0..=2000).step_by(97).chain([283, 284, 500, 842, 843]) {
        let objects: Vec<(&DataObjectDescriptor, &[u8])> =
            (0..count).map(|_| (&descriptor, &b"x"[..])).collect();
        for hash in [true, false] {
            let options = EncodeOptions::new().with_hash(hash);
            let bytes = encode_message(&GlobalMetadata::default(), &objects, &options).unwrap();
            let message = Message::from_bytes("many", bytes).unwrap();
            assert_eq!(message.object_count(), count);
        }
    }
}

#[test]
fn index_and_hash_frames_are_placed_as_requested() {
    let descriptor = DataObjectDescriptor::new(DType::U8, [2]);
    let object: (&DataObjectDescriptor, &[u8]) = (&descriptor, &[5, 6]);
    for (hashes, flags) in [
        (Placement::Auto, 0x95),
        (Placement::None, 0x85),
        (Placement::Header, 0x95),
        (Placement::Footer, 0xa5),
        (Placement::Both, 0xb5),
    ] {
        let options = EncodeOptions::new().with_hashes(hashes);
        let bytes = encode_message(&GlobalMetadata::default(), &[object], &options).unwrap();
        let message = Message::from_bytes("m", bytes).unwrap();
        assert_eq!(message.layout().unwrap().preamble.flags.0, flags, "{hashes:?}");
    }
    for (index, flags) in [(Placement::None, 0x91), (Placement::Footer, 0x99), (Placement::Both, 0x9d)] {
        let options = EncodeOptions::new().with_index(index);
        let bytes = encode_message(&GlobalMetadata::default(), &[object, object], &options).unwrap();
        let message = Message::from_bytes("m", bytes).unwrap();
        assert_eq!(message.layout().unwrap().preamble.flags.0, flags, "{index:?}");
    }
    let without = encode_message(&GlobalMetadata::default(), &[], &EncodeOptions::new()).unwrap();
    assert_eq!(Message::from_bytes("m", without).unwrap().layout().unwrap().preamble.flags.0, 0x81);
}

fn refused(metadata: &GlobalMetadata, objects: &[(&DataObjectDescriptor, &[u8])]) -> EncodeError {
    match encode_message(metadata, objects, &EncodeOptions::new()).unwrap_err().into_kind() {
        ErrorKind::Encode(error) => error,
        fault => panic!("{fault}"),
    }
}

#[test]
fn unrepresentable_values_are_rejected() {
    let none = GlobalMetadata::default();
    let descriptor = DataObjectDescriptor::new(DType::I32, [2]);
    let error = refused(&none, &[(&descriptor, &[0; 7])]);
    assert_eq!(error, EncodeError::PayloadLength { object: 0, found: 7, expected: 8 });
    assert!(matches!(refused(&mars(), &[]), EncodeError::TooManyEntries { entries: 1, objects: 0 }));
    let mut reserved = GlobalMetadata::default();
    reserved.reserved.insert("time".to_owned(), Value::from("now"));
    assert!(matches!(refused(&reserved, &[]), EncodeError::Reserved { .. }));
    let mut reserved = mars();
    reserved.base[0].insert("_reserved_".to_owned(), Value::Null);
    assert!(matches!(refused(&reserved, &[(&descriptor, &[0; 8])]), EncodeError::Reserved { .. }));
    let wrong = DataObjectDescriptor { ndim: 7, ..descriptor.clone() };
    assert!(matches!(refused(&none, &[(&wrong, &[0; 8])]), EncodeError::Descriptor { object: 0, .. }));
    let packed = DataObjectDescriptor { compression: "szip".to_owned(), ..descriptor.clone() };
    assert!(matches!(refused(&none, &[(&packed, &[0; 8])]), EncodeError::Pipeline { .. }));
    // Encoded payloads are stored unchanged, for any length.
    let object = PreEncoded { descriptor: &packed, payload: b"ready-made" };
    let bytes = encode_pre_encoded(&none, &[object], &EncodeOptions::new()).unwrap();
    let message = Message::from_bytes("m", bytes).unwrap();
    assert_eq!(message.object(0).unwrap().payload().unwrap(), &b"ready-made"[..]);
}

#[test]
fn streams_reject_header_placement_and_dangling_preceders() {
    let start = |options| StreamingEncoder::new(Vec::new(), &GlobalMetadata::default(), options);
    for placement in [Placement::Header, Placement::Both] {
        let error = start(EncodeOptions::new().with_hashes(placement)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Encode(EncodeError::Placement { .. })));
        assert!(start(EncodeOptions::new().with_index(placement)).is_err());
    }
    let mut encoder = start(EncodeOptions::new()).unwrap();
    encoder.write_preceder([("a".to_owned(), 1.into())].into()).unwrap();
    let twice = encoder.write_preceder([("b".to_owned(), 1.into())].into());
    assert!(matches!(twice.unwrap_err().kind(), ErrorKind::Encode(EncodeError::DuplicatePreceder)));
    let error = encoder.finish().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Encode(EncodeError::DanglingPreceder)));
    assert_eq!(error.location(), "new message");
    let named =
        StreamingEncoder::named("a.tgm".into(), Vec::new(), &GlobalMetadata::default(), EncodeOptions::new());
    let mut encoder = named.unwrap();
    encoder.write_preceder([("a".to_owned(), 1.into())].into()).unwrap();
    assert_eq!(encoder.finish().unwrap_err().location(), "a.tgm");
    let mut encoder = start(EncodeOptions::new()).unwrap();
    assert!(encoder.write_preceder([("_reserved_".to_owned(), 1.into())].into()).is_err());
}

/// Values that readers would reject are not written.
#[test]
fn unreadable_values_are_rejected() {
    let nested = |levels: usize| (0..levels).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    let with = |value: Value| GlobalMetadata {
        extra: [("x".to_owned(), value)].into(),
        ..GlobalMetadata::default()
    };
    let bytes = encode_message(&with(nested(254)), &[], &EncodeOptions::new()).unwrap();
    assert_eq!(Message::from_bytes("deep", bytes).unwrap().metadata().extra["x"], nested(254));
    for levels in [255, 256, 300, 5000] {
        assert!(matches!(refused(&with(nested(levels)), &[]), EncodeError::Value { .. }), "{levels}");
    }
    let twice = Value::Map(vec![("k".into(), 1.into()), ("k".into(), 2.into())]);
    assert!(matches!(refused(&with(twice.clone()), &[]), EncodeError::Value { .. }));
    let mut entry =
        GlobalMetadata { base: vec![[("x".to_owned(), nested(253))].into()], ..GlobalMetadata::default() };
    let descriptor = DataObjectDescriptor::new(DType::U8, [1]);
    let bytes = encode_message(&entry, &[(&descriptor, &[1])], &EncodeOptions::new()).unwrap();
    Message::from_bytes("deep", bytes).unwrap();
    entry.base[0].insert("x".to_owned(), nested(254));
    assert!(matches!(refused(&entry, &[(&descriptor, &[1])]), EncodeError::Value { .. }));
    let mut params = descriptor.clone();
    params.params.insert("p".to_owned(), twice);
    assert!(matches!(refused(&GlobalMetadata::default(), &[(&params, &[1])]), EncodeError::Value { .. }));
    let mut encoder =
        StreamingEncoder::new(Vec::new(), &GlobalMetadata::default(), EncodeOptions::new()).unwrap();
    assert!(encoder.write_preceder([("x".to_owned(), nested(254))].into()).is_err());
}
