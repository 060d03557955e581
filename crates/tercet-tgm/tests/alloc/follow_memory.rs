//! Following a stream takes the memory of one object, however long the stream and its messages are.

use tercet_testkit::alloc::{alone, measure};
use tercet_tgm::{
    DType, DataObjectDescriptor, EncodeOptions, FollowEvent, Follower, GlobalMetadata, encode_message,
};

/// Bytes of an object.
const OBJECT: usize = 1 << 20;
const PIECE: usize = 64 << 10;

#[test]
fn one_object_at_a_time_is_in_memory() {
    let _alone = alone();
    let values = vec![7; OBJECT];
    let descriptor = DataObjectDescriptor::new(DType::U8, [OBJECT as u64]);
    let objects = [(&descriptor, &values[..]); 16];
    let message = encode_message(&GlobalMetadata::default(), &objects, &EncodeOptions::new()).unwrap();
    let (told, memory) = measure(|| {
        let mut follower = Follower::new();
        let mut told = 0;
        for piece in message.chunks(PIECE).chain(message.chunks(PIECE)).chain(message.chunks(PIECE)) {
            follower.push(piece);
            while let Some(report) = follower.next_event() {
                assert!(matches!(report, FollowEvent::Message(_)), "{report:?}");
                told += 1;
            }
        }
        told
    });
    assert_eq!(told, 3);
    // A buffer that grows has room for twice what it holds, and is copied when it moves.
    assert!(memory.peak_bytes < 4 * OBJECT, "{memory:?}");
    assert!(memory.kept_bytes < 64 << 10, "{memory:?}");
}
