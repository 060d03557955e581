//! Remote messages: the same results, with few reads.

use std::sync::Arc;

use tercet_core::source::Memory;
use tercet_core::{ByteSource as _, Span};
use tercet_testkit::counting::Counting;
use tercet_tgm::{
    DType, DataObjectDescriptor, EncodeOptions, File, GlobalMetadata, Message, ReadOptions, StreamingEncoder,
    encode_message,
};

use crate::samples;

fn remote(bytes: Vec<u8>) -> Arc<Counting<Memory>> {
    Counting::new(Memory::new("remote", bytes)).with_remote().shared()
}

fn open(source: &Arc<Counting<Memory>>) -> Result<Message, tercet_tgm::Error> {
    let span = Span::first(source.len());
    Message::open(Arc::clone(source) as _, 0, span, ReadOptions::new())
}

/// The content of a message as text.
fn describe(message: &Message) -> String {
    let mut lines = vec![format!("{:?} {:?}", message.metadata(), message.first_metadata())];
    for object in message.objects() {
        lines.push(match object.and_then(|object| Ok((object.descriptor().clone(), object.decode()?))) {
            Ok((descriptor, array)) => format!("{descriptor:?} {:?}", array.bytes()),
            Err(error) => error.to_string().replace('\n', ":"),
        });
    }
    lines.join("\n")
}

#[test]
fn remote_messages_read_the_same() {
    for sample in samples::all() {
        let local = Message::from_bytes("remote", sample.bytes.clone()).unwrap();
        let fetched = open(&remote(sample.bytes)).unwrap();
        assert_eq!(describe(&fetched), describe(&local), "{}", sample.name);
        assert_eq!(fetched.layout().unwrap(), local.layout().unwrap(), "{}", sample.name);
        assert_eq!(fetched.span(), local.span(), "{}", sample.name);
    }
}

/// Damage is an error for remote files as for local ones, if the damaged bytes are read.
#[test]
fn no_flipped_byte_changes_a_result() {
    for sample in samples::all().into_iter().filter(|sample| !sample.name.contains("no hashes")) {
        let right = describe(&Message::from_bytes("remote", sample.bytes.clone()).unwrap());
        let right: Vec<&str> = right.lines().collect();
        for at in 0..sample.bytes.len() {
            let mut bytes = sample.bytes.clone();
            bytes[at] ^= 0x10;
            let Ok(message) = open(&remote(bytes)) else { continue };
            let (found, metadata) = (describe(&message), message.metadata());
            for (object, (found, right)) in found.lines().skip(1).zip(right.iter().skip(1)).enumerate() {
                let is_error = found.starts_with("remote: ");
                assert!(is_error || found == *right, "{}, byte {at}, object {object}", sample.name);
            }
            assert!(right[0].starts_with(&format!("{metadata:?}")), "{}, byte {at}", sample.name);
        }
    }
}

fn large(objects: u64, bytes: usize) -> (DataObjectDescriptor, Vec<u8>, u64) {
    (DataObjectDescriptor::new(DType::U8, [bytes as u64]), vec![7; bytes], objects)
}

fn in_one_piece((descriptor, payload, objects): &(DataObjectDescriptor, Vec<u8>, u64)) -> Vec<u8> {
    let objects: Vec<(&DataObjectDescriptor, &[u8])> =
        (0..*objects).map(|_| (descriptor, &payload[..])).collect();
    encode_message(&GlobalMetadata::default(), &objects, &EncodeOptions::new()).unwrap()
}

fn streamed((descriptor, payload, objects): &(DataObjectDescriptor, Vec<u8>, u64)) -> Vec<u8> {
    let mut encoder =
        StreamingEncoder::new(Vec::new(), &GlobalMetadata::default(), EncodeOptions::new()).unwrap();
    for step in 0..*objects {
        encoder.write_preceder([("step".to_owned(), step.into())].into()).unwrap();
        encoder.write_object(descriptor, payload).unwrap();
    }
    encoder.finish().unwrap()
}

/// One object of many: a few reads, and hardly more bytes than it has.
#[test]
fn one_object_of_many_needs_few_reads() {
    let objects = large(100, 300_000);
    for (bytes, most) in [(in_one_piece(&objects), 8), (streamed(&objects), 12)] {
        let source = remote(bytes);
        let message = open(&source).unwrap();
        assert_eq!(message.object_count(), 100);
        let array = message.object(57).unwrap().decode().unwrap();
        assert_eq!(array.bytes(), objects.1);
        let extra = source.bytes() - 300_000;
        assert!(source.reads() <= most, "{} reads: {:?}", source.reads(), source.spans());
        assert!(extra <= 64 << 10, "{extra} bytes more than the object");
    }
}

/// Preceders are read if the only other metadata comes before them.
#[test]
fn preceders_apply_without_footer_metadata() {
    let bytes =
        samples::all().into_iter().find(|sample| sample.name == "stream with preceders").unwrap().bytes;
    let local = Message::from_bytes("near", bytes.clone()).unwrap();
    // Without the metadata after the objects: the flag is cleared, the frame zeroed.
    let layout = local.layout().unwrap();
    let footer =
        layout.frames.iter().find(|frame| frame.kind == tercet_tgm::FrameKind::FooterMetadata).unwrap();
    let mut without = bytes;
    without[11] &= !0x02;
    let padded = footer.span.len().next_multiple_of(8) as usize;
    without[footer.span.start() as usize..][..padded].fill(0);
    let first = (footer.span.start() + padded as u64).to_be_bytes();
    let end = without.len();
    without[end - 24..end - 16].copy_from_slice(&first);
    let local = Message::from_bytes("remote", without.clone()).unwrap();
    assert_eq!(local.metadata().base[1]["step"], 1.into());
    assert_eq!(describe(&open(&remote(without)).unwrap()), describe(&local));
}

/// A wrong frame index is detected when the object is read.
#[test]
fn a_wrong_frame_index_is_detected() {
    let (descriptor, payload, _) = large(3, 100);
    let objects = [(&descriptor, &payload[..]); 3];
    let options = EncodeOptions::new().with_hash(false);
    let mut bytes = encode_message(&GlobalMetadata::default(), &objects, &options).unwrap();
    let local = Message::from_bytes("near", bytes.clone()).unwrap();
    let offsets: Vec<u64> = local.layout().unwrap().objects().map(|frame| frame.span.start()).collect();
    // The second offset, as CBOR writes it: two bytes after 0x19.
    let was = [&[0x19][..], &(offsets[1] as u16).to_be_bytes()].concat();
    let at = bytes.windows(3).position(|window| window == was).unwrap();
    bytes[at + 1..at + 3].copy_from_slice(&(offsets[1] as u16 + 8).to_be_bytes());
    assert!(Message::from_bytes("near", bytes.clone()).is_err());
    let source = remote(bytes);
    let result = open(&source).and_then(|message| message.object(1).map(|_| ()));
    assert!(result.is_err());
}

#[test]
fn remote_files_are_scanned_in_small_steps() {
    let one = in_one_piece(&large(1, 200_000));
    let source = remote(one.repeat(50));
    let file = File::from_source(Arc::clone(&source) as _, ReadOptions::new()).unwrap();
    assert_eq!(file.message_count().unwrap(), 50);
    // The end of a message and the start of the next; the last bytes again, for an index.
    assert!(source.bytes() <= 50 * 100 + (64 << 10), "{}", source.bytes());
    assert!(source.reads() <= 2 * 50 + 2, "{}", source.reads());
}
