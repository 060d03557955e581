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

/// A remote source that records calls: spans of one call are one request.
#[derive(Debug)]
struct Calls {
    inner: Memory,
    calls: std::sync::Mutex<Vec<usize>>,
}

impl Calls {
    fn take(&self) -> Vec<usize> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }
}

impl tercet_core::ByteSource for Calls {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn read_at(&self, span: Span) -> Result<bytes::Bytes, tercet_core::SourceError> {
        self.calls.lock().unwrap().push(1);
        self.inner.read_at(span)
    }
    fn read_many(&self, spans: &[Span]) -> Result<Vec<bytes::Bytes>, tercet_core::SourceError> {
        self.calls.lock().unwrap().push(spans.len());
        self.inner.read_many(spans)
    }
    fn is_remote(&self) -> bool {
        true
    }
}

/// Batch reads take a few calls for any number of messages, and return what single reads return.
#[test]
fn batch_reads_are_coalesced() {
    let plain = DataObjectDescriptor::new(DType::U16, [30_000]);
    let packed = DataObjectDescriptor::new(DType::U16, [30_000]).with_compression("szip");
    let packed =
        packed.with_param("szip_rsi", 128).with_param("szip_block_size", 16).with_param("szip_flags", 8);
    for descriptor in [plain, packed] {
        for is_streamed in [false, true] {
            let mut bytes = Vec::new();
            for step in 0..50_u16 {
                let payload: Vec<u8> =
                    (0..30_000_u16).flat_map(|n| (n.wrapping_mul(step) ^ (n >> 3)).to_le_bytes()).collect();
                let parts = (descriptor.clone(), payload, 3);
                bytes.extend(if is_streamed { streamed(&parts) } else { in_one_piece(&parts) });
            }
            let local = File::from_bytes("near", bytes.clone()).unwrap();
            let calls =
                Arc::new(Calls { inner: Memory::new("far", bytes), calls: std::sync::Mutex::default() });
            let file = File::from_source(Arc::clone(&calls) as _, ReadOptions::new()).unwrap();
            assert_eq!(file.message_count().unwrap(), 50);
            calls.take();
            let mut counts = Vec::new();
            for messages in [(0..5).collect::<Vec<u64>>(), (0..50).rev().collect()] {
                let all = file.decode_object_of(&messages, 1).unwrap();
                counts.push(("objects", calls.take().len()));
                let ranges = [10..20, 25_000..25_100];
                let some = file.decode_ranges_of(&messages, 2, &ranges).unwrap();
                counts.push(("ranges", calls.take().len()));
                let metadata = file.metadata_of(&messages).unwrap();
                counts.push(("metadata", calls.take().len()));
                for (position, &message) in messages.iter().enumerate() {
                    let right = local.message(message).unwrap();
                    assert_eq!(all[position].bytes(), right.object(1).unwrap().decode().unwrap().bytes());
                    let right_ranges = right.object(2).unwrap().decode_ranges(&ranges).unwrap();
                    for (found, right) in some[position].arrays.iter().zip(&right_ranges.arrays) {
                        assert_eq!(found.bytes(), right.bytes());
                    }
                    assert_eq!(&metadata[position], right.metadata());
                }
            }
            assert!(counts.iter().all(|(_, count)| *count <= 4), "{counts:?}");
            // An iterator opens more and more messages at once.
            for (message, number) in file.messages().unwrap().zip(0..) {
                assert_eq!(message.unwrap().metadata(), local.message(number).unwrap().metadata());
            }
            let calls = calls.take().len();
            assert!(calls <= 14, "{calls} calls for 50 messages");
        }
    }
    let file = File::from_bytes("near", in_one_piece(&large(1, 10))).unwrap();
    assert!(file.decode_object_of(&[0, 1], 0).is_err(), "there is one message");
}

/// A remote file is scanned from both ends at once: one request for two messages.
#[test]
fn remote_files_are_scanned_from_both_ends() {
    for count in [1, 2, 3, 8, 51] {
        let bytes = in_one_piece(&large(1, 200_000)).repeat(count);
        let right = File::from_bytes("near", bytes.clone()).unwrap().scan().unwrap();
        let calls =
            Arc::new(Calls { inner: Memory::new("far", bytes.clone()), calls: std::sync::Mutex::default() });
        let file = File::from_source(Arc::clone(&calls) as _, ReadOptions::new()).unwrap();
        assert_eq!(file.scan().unwrap(), right);
        let requests = calls.take().len();
        assert!(requests <= count / 2 + 4, "{requests} requests for {count} messages");
        // A message of the first half needs only those before it.
        let file = File::from_source(Arc::clone(&calls) as _, ReadOptions::new()).unwrap();
        assert_eq!(file.message(count as u64 / 3).unwrap().span(), right.messages[count / 3]);
        let requests = calls.take().len();
        assert!(requests <= count / 3 + 9, "{requests} requests for message {} of {count}", count / 3);
        // Other bytes between messages: the same result as for a local file.
        let mut bytes = [&bytes[..], b"junk", &bytes[..]].concat();
        let middle = bytes.len() / 3;
        bytes[middle] ^= 1;
        let right = File::from_bytes("near", bytes.clone()).unwrap().scan().unwrap();
        assert_eq!(File::from_source(remote(bytes), ReadOptions::new()).unwrap().scan().unwrap(), right);
    }
}
