//! Write messages to a file, read them back, decode a stream and verify the file.
#![allow(clippy::print_stdout, reason = "an example shows its results")]
#![allow(clippy::disallowed_methods, reason = "an example reads its own file")]

use std::error::Error;
use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::source::File as FileSource;
use tercet_tgm::{
    DType, DataObjectDescriptor, Decoder, EncodeOptions, Event, File, FollowEvent, Follower, GlobalMetadata,
    Value, VerifyOptions, Writer, WriterOptions, verify,
};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("forecast.tgm");

    // Write two messages, each with one object and metadata.
    let descriptor = DataObjectDescriptor::new(DType::F32, [2, 3]).with_compression("zstd");
    let mut writer = Writer::create(&path, WriterOptions::new())?;
    for step in [6u8, 12] {
        let values: Vec<f32> = (0..6u8).map(|index| f32::from(index) + f32::from(step)).collect();
        let payload: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut metadata = GlobalMetadata::default();
        metadata.extra.insert("step".to_owned(), i64::from(step).into());
        writer.message(&metadata, &[(&descriptor, &payload)], &EncodeOptions::new())?;
    }
    let written = writer.finish()?;
    println!("wrote {} bytes", written.bytes);

    // Read metadata, a whole object, and a range of one.
    let file = File::open(&path)?;
    assert_eq!(file.summary()?.messages, 2);
    let message = file.message(1)?;
    assert_eq!(message.metadata().get("step"), Some(&12.into()));
    let tensor = message.object(0)?.decode()?;
    assert_eq!(tensor.to_vec::<f32>(), Some(vec![12.0, 13.0, 14.0, 15.0, 16.0, 17.0]));
    let ranges = message.object(0)?.decode_ranges(&[1..3, 5..6])?;
    assert_eq!(ranges.arrays[0].to_vec::<f32>(), Some(vec![13.0, 14.0]));
    assert_eq!(ranges.arrays[1].to_vec::<f32>(), Some(vec![17.0]));
    println!("message 1: {} {}", tensor.dtype(), tensor.shape());

    // Follow a stream that arrives in pieces: whole messages.
    let bytes = std::fs::read(&path)?;
    let mut follower = Follower::new();
    let mut steps = Vec::new();
    for piece in bytes.chunks(100) {
        follower.push(piece);
        while let Some(event) = follower.next_event() {
            let FollowEvent::Message(message) = event else { return Err("a damaged stream".into()) };
            steps.push(message.metadata.get("step").and_then(Value::as_i128));
        }
    }
    assert_eq!(steps, [Some(6), Some(12)]);

    // Decode a stream object by object.
    let mut decoder = Decoder::new();
    let mut objects = 0;
    for piece in bytes.chunks(100) {
        decoder.push(piece);
        while let Some(event) = decoder.next_event()? {
            if let Event::Object(object) = event {
                objects += object.decode()?.shape().elements().unwrap_or(0);
            }
        }
    }
    decoder.finish()?;
    assert_eq!(objects, 12);
    println!("streamed {objects} values");

    // Verify structure, metadata and hashes.
    let report = verify(Arc::new(FileSource::open(&path)?), VerifyOptions::new(), &NoProgress)?;
    assert!(report.ok && report.details.hash_verified);
    println!("verified {} messages", report.details.messages);
    Ok(())
}
