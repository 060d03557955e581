//! Following a stream takes the memory of one object, for any length of stream and messages.

use tercet_testkit::alloc::{exclusive, measure};
use tercet_tgm::{
    DType, DataObjectDescriptor, EncodeOptions, FollowEvent, Follower, GlobalMetadata, encode_message,
};

/// Bytes of an object.
const OBJECT: usize = 1 << 20;
const PIECE: usize = 64 << 10;

#[test]
fn one_object_at_a_time_is_in_memory() {
    let _exclusive = exclusive();
    let values = vec![7; OBJECT];
    let descriptor = DataObjectDescriptor::new(DType::U8, [OBJECT as u64]);
    let objects = [(&descriptor, &values[..]); 16];
    let message = encode_message(&GlobalMetadata::default(), &objects, &EncodeOptions::new()).unwrap();
    let (messages, memory) = measure(|| {
        let mut follower = Follower::new();
        let mut messages = 0;
        for piece in message.chunks(PIECE).chain(message.chunks(PIECE)).chain(message.chunks(PIECE)) {
            follower.push(piece);
            while let Some(report) = follower.next_event() {
                assert!(matches!(report, FollowEvent::Message(_)), "{report:?}");
                messages += 1;
            }
        }
        messages
    });
    assert_eq!(messages, 3);
    // A growing buffer has twice the capacity it needs, and is copied when it moves.
    assert!(memory.peak_bytes < 4 * OBJECT, "{memory:?}");
    assert!(memory.kept_bytes < 64 << 10, "{memory:?}");
}
