//! Every truncation and every flipped byte of small messages: no panic, no hang, no memory beyond the limits, and
//! where a hash covers it no wrong value.

use std::collections::BTreeMap;
use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_core::{ByteSource, Class, Diagnostic as _, Limits};
use tercet_testkit::alloc::measure;
use tercet_testkit::damage;
use tercet_tgm::{
    Decoder, Depth, Event, File, FrameKind, GlobalMetadata, Message, MessageFlags, ReadOptions,
    ValidateOptions, validate_source,
};

use crate::samples;

const MIB: usize = 1 << 20;

fn limits() -> Limits {
    let mib = MIB as u64;
    Limits::small().with_metadata_bytes(mib).with_chunk_bytes(mib).with_array_bytes(mib).with_table_bytes(mib)
}

/// The content of a message as text.
#[derive(Clone, Debug, PartialEq)]
struct Contents {
    metadata: GlobalMetadata,
    objects: Vec<(Vec<u64>, Vec<u8>)>,
}

fn read(bytes: &[u8]) -> Result<Contents, String> {
    let options = ReadOptions::new().with_limits(limits());
    let message = Message::from_bytes_with("damaged", bytes.to_vec(), options).map_err(|e| e.to_string())?;
    let mut objects = Vec::new();
    for object in message.objects() {
        let object = object.map_err(|e| e.to_string())?;
        let array = object.decode().map_err(|e| e.to_string())?;
        objects.push((array.shape().to_vec(), array.bytes().to_vec()));
    }
    Ok(Contents { metadata: message.metadata().clone(), objects })
}

fn stream(bytes: &[u8], piece: usize) -> Result<Vec<Contents>, String> {
    let mut decoder = Decoder::with_options(ReadOptions::new().with_limits(limits()));
    let mut messages = Vec::new();
    let mut objects = Vec::new();
    for piece in bytes.chunks(piece) {
        decoder.push(piece);
        while let Some(event) = decoder.next_event().map_err(|e| e.to_string())? {
            match event {
                Event::Object(object) => {
                    let array = object.decode().map_err(|e| e.to_string())?;
                    objects.push((array.shape().to_vec(), array.bytes().to_vec()));
                }
                Event::End { metadata, .. } => {
                    messages.push(Contents { metadata, objects: std::mem::take(&mut objects) });
                }
                _ => {}
            }
        }
    }
    decoder.finish().map_err(|e| e.to_string())?;
    Ok(messages)
}

/// The content of a file: messages, and whether it passes validation.
fn as_file(bytes: &[u8]) -> (Vec<Result<Contents, String>>, bool) {
    let source: Arc<dyn ByteSource> = Arc::new(Memory::new("damaged", bytes.to_vec()));
    let file = File::from_source(Arc::clone(&source), ReadOptions::new().with_limits(limits())).unwrap();
    let spans = file.scan().unwrap().messages.clone();
    let found = spans.iter().map(|span| {
        let range = span.to_range().unwrap();
        read(&bytes[range])
    });
    let found = found.collect();
    file.outline(tercet_core::OutlineOptions::new()).unwrap();
    let options = ValidateOptions::new().with_depth(Depth::Full).with_canonical(true).with_limits(limits());
    let is_valid = match validate_source(&source, &options, &NoProgress) {
        Ok(report) => report.is_ok() && report.messages.len() == 1,
        Err(error) if error.class() == Class::Limit => false,
        Err(error) => panic!("{error}"),
    };
    (found, is_valid)
}

/// Runs a check and asserts that it takes no more memory than the limits together.
fn measured(name: &str, check: impl FnOnce()) {
    let ((), stats) = measure(check);
    assert!(stats.peak_bytes < 8 * MIB, "{name}: {stats:?}");
    assert!(stats.largest_bytes <= 2 * MIB, "{name}: {stats:?}");
}

#[test]
fn samples_are_valid() {
    for sample in samples::all() {
        let whole = read(&sample.bytes).unwrap_or_else(|error| panic!("{}: {error}", sample.name));
        assert_eq!(stream(&sample.bytes, 7), Ok(vec![whole.clone()]), "{}", sample.name);
        let (found, ok) = as_file(&sample.bytes);
        assert!(ok, "{}", sample.name);
        assert_eq!(found, [Ok(whole)], "{}", sample.name);
    }
}

#[test]
fn truncated_messages_are_errors() {
    for sample in samples::all() {
        measured(sample.name, || {
            for cut in damage::truncations(&sample.bytes) {
                assert!(read(cut).is_err(), "{} cut at {}", sample.name, cut.len());
                let streamed = stream(cut, 13);
                // Nothing at all is an empty stream.
                assert!(streamed.is_err() || cut.is_empty(), "{} cut at {}", sample.name, cut.len());
                let (found, ok) = as_file(cut);
                assert!(!ok && found.iter().all(Result::is_err), "{} cut at {}", sample.name, cut.len());
            }
        });
    }
}

/// Bytes whose change may be undetected, because no hash covers them and they have no meaning.
fn is_free(message: &Message, flip: damage::Flip) -> bool {
    let layout = message.layout().unwrap();
    let at = flip.offset as u64;
    // Streaming writers set the flags of preceders and hash lists before they know whether there will be any.
    if at == 11 && (flip.mask == 0x40 || (flip.mask == 0x20 && message.object_count() == 0)) {
        return true;
    }
    // Reserved bytes and unknown flags of the preamble.
    if (12..16).contains(&at) || at == 10 {
        return true;
    }
    let frame = layout.frames.iter().find(|frame| frame.span.start() <= at && at < frame.span.end());
    match frame {
        // Version and unknown flags of a frame.
        Some(frame) => {
            let known = if frame.kind == FrameKind::NTensor { 0x03 } else { 0x02 };
            let offset = at - frame.span.start();
            (4..7).contains(&offset) || (offset == 7 && flip.mask & known == 0)
        }
        // Padding.
        None => at >= 24 && at < layout.postamble_span().start(),
    }
}

#[test]
fn flipped_bytes_are_errors_or_change_nothing() {
    let mut free: BTreeMap<&str, u32> = BTreeMap::new();
    for sample in samples::all() {
        let good = read(&sample.bytes).unwrap();
        let message = Message::from_bytes("good", sample.bytes.clone()).unwrap();
        let hashed = message.layout().unwrap().preamble.flags.contains(MessageFlags::HASHES_PRESENT);
        measured(sample.name, || {
            damage::for_each_flip(&sample.bytes, |flip, bytes| {
                let context = format!("{}: {flip}", sample.name);
                let found = read(bytes);
                let streamed = stream(bytes, 64);
                match &streamed {
                    Ok(messages) => assert_eq!(messages.first(), found.as_ref().ok(), "{context}"),
                    Err(_) => assert!(found.is_err(), "{context}: {found:?}"),
                }
                // Validation is slow compared with reading; two changes of each byte suffice.
                let (in_file, ok) =
                    if [0xff, 0x01].contains(&flip.mask) { as_file(bytes) } else { (vec![], false) };
                // Validation must fail for what readers reject.
                assert!(!(ok && found.is_err()), "{context}: {found:?}");
                if !hashed {
                    return;
                }
                for contents in in_file.iter().chain([&found]).flatten() {
                    assert_eq!(*contents, good, "{context}");
                }
                if found.is_ok() {
                    assert!(is_free(&message, flip), "{context} went unnoticed");
                    *free.entry(sample.name).or_default() += 1;
                }
            });
        });
    }
    assert!(!free.is_empty());
}

/// The hash that covers a flipped byte reports it.
#[test]
fn payload_flips_are_reported_with_their_location() {
    let sample = &samples::all()[1];
    let message = Message::from_bytes("good", sample.bytes.clone()).unwrap();
    let payload = message.object(0).unwrap().payload_span();
    for at in payload.start()..payload.end() {
        let mut bytes = sample.bytes.clone();
        bytes[usize::try_from(at).unwrap()] ^= 0x10;
        let error = read(&bytes).unwrap_err();
        assert!(error.starts_with("damaged: message 0 › object 0 (bytes "), "{error}");
        assert!(error.contains("expected, "), "{error}");
    }
}

/// A changed frame type is detected, although no hash covers it.
#[test]
fn frame_types_cannot_be_changed() {
    for sample in samples::all() {
        let good = read(&sample.bytes).unwrap();
        let message = Message::from_bytes("good", sample.bytes.clone()).unwrap();
        for frame in &message.layout().unwrap().frames {
            let at = usize::try_from(frame.span.start()).unwrap() + 3;
            for kind in 0..=10u8 {
                let mut bytes = sample.bytes.clone();
                bytes[at] = kind;
                if let Ok(found) = read(&bytes) {
                    assert_eq!(found, good, "{}: frame {} as type {kind}", sample.name, frame.index);
                }
            }
        }
    }
}
