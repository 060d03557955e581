//! Files of the reference: frames, hashes, metadata and values match the manifest.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use tercet_core::checksum::xxh3;
use tercet_core::progress::NoProgress;
use tercet_core::{ByteSource as _, Severity};
use tercet_testkit::golden;
use tercet_tgm::{
    Code, Decoder, Depth, Direction, Event, File, Message, ReadOptions, ScanOptions, ValidateOptions,
    validate_source,
};

fn manifest() -> Option<(std::path::PathBuf, Vec<Json>)> {
    let dir = golden("tgm")?;
    let text = std::fs::read_to_string(dir.join("manifest.json")).unwrap();
    let manifest: Json = serde_json::from_str(&text).unwrap();
    Some((dir, manifest["files"].as_array().unwrap().clone()))
}

fn each(mut check: impl FnMut(&Path, &str, &Json)) {
    let Some((dir, files)) = manifest() else { return };
    assert_eq!(files.len(), 61);
    for file in &files {
        let name = file["file"].as_str().unwrap();
        check(&dir.join(name), name, file);
    }
}

fn number(json: &Json) -> u64 {
    json.as_u64().unwrap()
}

fn sha256(bytes: &[u8]) -> String {
    let hex = |mut text: String, byte: &u8| {
        let _ = write!(text, "{byte:02x}");
        text
    };
    Sha256::digest(bytes).iter().fold(String::new(), hex)
}

/// The manifest numbers the messages that the reference implementation finds, also after gaps.
fn open(path: &Path) -> File {
    File::open_with(path, ReadOptions::new().with_allow_gaps(true)).unwrap()
}

#[test]
fn message_offsets_match_the_manifest() {
    each(|path, name, expected| {
        let expected: Vec<(u64, u64)> = expected["message_offsets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pair| (number(&pair[0]), number(&pair[1])))
            .collect();
        for direction in [Direction::Forward, Direction::Bidirectional] {
            let options = ScanOptions::default().with_direction(direction);
            let file = File::open(path).unwrap().with_scan_options(options);
            let scan = file.scan().unwrap();
            let found: Vec<(u64, u64)> =
                scan.messages.iter().map(|span| (span.start(), span.len())).collect();
            assert_eq!(found, expected, "{name} {direction:?}");
            let unrecognized: u64 = scan.unrecognized.iter().map(|span| span.len()).sum();
            let messages: u64 = expected.iter().map(|(_, len)| len).sum();
            assert_eq!(unrecognized + messages, file.len(), "{name}");
        }
    });
}

#[test]
fn frames_and_hashes_match_the_manifest() {
    let mut frames = 0;
    each(|path, name, expected| {
        let file = open(path);
        for (index, expected) in expected["messages"].as_array().unwrap().iter().enumerate() {
            let message = file.message(index as u64).unwrap_or_else(|error| panic!("{name}: {error}"));
            let layout = message.layout().unwrap();
            assert_eq!(u64::from(layout.preamble.flags.0), number(&expected["preamble_flags"]), "{name}");
            assert_eq!(layout.preamble.total_length, number(&expected["preamble_total_length"]), "{name}");
            let postamble = layout.postamble;
            assert_eq!(postamble.first_footer_offset, number(&expected["first_footer_offset"]), "{name}");
            assert_eq!(postamble.total_length, number(&expected["postamble_total_length"]), "{name}");
            let listed = expected["frames"].as_array().unwrap();
            assert_eq!(layout.frames.len(), listed.len(), "{name}");
            for (frame, listed) in layout.frames.iter().zip(listed) {
                assert_eq!(frame.span.start() - layout.span.start(), number(&listed["offset"]), "{name}");
                assert_eq!(frame.span.len(), number(&listed["length"]), "{name}");
                assert_eq!(u64::from(frame.header.code), number(&listed["type"]), "{name}");
                assert_eq!(frame.kind.name(), listed["name"], "{name}");
                assert_eq!(u64::from(frame.header.flags.0), number(&listed["flags"]), "{name}");
                if let Some(hash) = frame.hash() {
                    assert_eq!(format!("{hash:016x}"), listed["hash"], "{name}");
                    let body = file.source().read_at(frame.body()).unwrap();
                    assert_eq!(xxh3(&body), hash, "{name}");
                    frames += 1;
                }
            }
        }
    });
    assert!(frames > 600 || golden("tgm").is_none(), "{frames}");
}

/// Compares JSON of the manifest: numbers by value, because the manifest formats floats differently.
fn same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => {
            // The last digit of a float depends on the parser of the manifest.
            let close = |a: f64, b: f64| (a - b).abs() <= 4e-16 * a.abs();
            a == b || a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| close(a, b))
        }
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

#[test]
fn metadata_matches_the_manifest() {
    each(|path, name, expected| {
        let file = open(path);
        for (index, expected) in expected["messages"].as_array().unwrap().iter().enumerate() {
            let message = file.message(index as u64).unwrap();
            let found = serde_json::to_value(message.metadata()).unwrap();
            assert!(same(&found, &expected["metadata"]), "{name}: {found:#} {:#}", expected["metadata"]);
            if let Some(first) = expected.get("metadata_first_frame_only") {
                let found = serde_json::to_value(message.first_metadata()).unwrap();
                assert!(same(&found, first), "{name}: {found:#} {first:#}");
            }
        }
    });
}

#[test]
fn objects_match_the_manifest() {
    let mut decoded = 0;
    each(|path, name, expected| {
        let file = open(path);
        for (index, expected) in expected["messages"].as_array().unwrap().iter().enumerate() {
            let message = file.message(index as u64).unwrap();
            let listed = expected["objects"].as_array().unwrap();
            assert_eq!(message.object_count(), listed.len() as u64, "{name}");
            for (object, listed) in message.objects().zip(listed) {
                let object = object.unwrap();
                let descriptor = object.descriptor();
                assert_eq!(descriptor.obj_type, listed["type"], "{name}");
                assert_eq!(descriptor.dtype.name(), listed["dtype"], "{name}");
                assert_eq!(Json::from(descriptor.shape.clone()), listed["shape"], "{name}");
                assert_eq!(Json::from(descriptor.strides.clone()), listed["strides"], "{name}");
                for (found, key) in [
                    (&descriptor.encoding, "encoding"),
                    (&descriptor.filter, "filter"),
                    (&descriptor.compression, "compression"),
                ] {
                    assert_eq!(*found, listed[key], "{name}");
                }
                let params = serde_json::to_value(&descriptor.params).unwrap();
                assert!(same(&params, &listed["params"]), "{name}: {params} {}", listed["params"]);
                let payload = object.payload().unwrap();
                assert_eq!(payload.len() as u64, number(&listed["payload_len"]), "{name}");
                assert_eq!(sha256(&payload), listed["payload_sha256"], "{name}");
                let array = object.decode().unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(sha256(array.bytes()), listed["decoded_sha256"], "{name}");
                let mut buffer = vec![0; array.bytes().len()];
                object.decode_into(&mut buffer).unwrap();
                assert_eq!(buffer, array.bytes());
                decoded += 1;
            }
        }
    });
    assert!(decoded > 150 || golden("tgm").is_none(), "{decoded}");
}

#[test]
fn streams_and_files_give_the_same_messages() {
    each(|path, name, _| {
        let file = File::open(path).unwrap();
        let bytes = file.source().read_at(tercet_core::Span::first(file.len())).unwrap();
        let mut decoder = Decoder::new().with_resync(true);
        let mut ends = Vec::new();
        let mut objects = Vec::new();
        let mut skipped = Vec::new();
        let mut take = |event: Event| match event {
            Event::End { metadata, .. } => ends.push(metadata),
            Event::Object(object) => objects.push(object),
            Event::Skipped(span) => skipped.push(span),
            _ => {}
        };
        for piece in bytes.chunks(97) {
            decoder.push(piece);
            while let Some(event) = decoder.next_event().unwrap_or_else(|error| panic!("{name}: {error}")) {
                take(event);
            }
        }
        if let Some(event) = decoder.finish().unwrap() {
            take(event);
        }
        let messages: Vec<Message> = file.messages().unwrap().map(Result::unwrap).collect();
        assert_eq!(ends.len(), messages.len(), "{name}");
        assert!(ends.iter().zip(&messages).all(|(end, message)| same_metadata(end, message)), "{name}");
        let payloads =
            messages.iter().flat_map(|message| message.objects().map(|o| o.unwrap().payload().unwrap()));
        assert!(payloads.eq(objects.iter().map(|object| object.payload())), "{name}");
        assert_eq!(skipped, file.scan().unwrap().unrecognized, "{name}");
    });
}

fn same_metadata(end: &tercet_tgm::GlobalMetadata, message: &Message) -> bool {
    // NaN is not equal to itself; its JSON is.
    serde_json::to_value(end).unwrap() == serde_json::to_value(message.metadata()).unwrap()
}

#[test]
fn validation_agrees_with_the_reference() {
    each(|path, name, expected| {
        let source: Arc<dyn tercet_core::ByteSource> =
            Arc::new(tercet_core::source::File::open(path).unwrap());
        // The manifest lists findings of the deepest level with the canonical check.
        let options = ValidateOptions::new().with_canonical(true);
        let report = validate_source(&source, &options, &NoProgress).unwrap();
        let listed = &expected["reference_validate"];
        let gaps: Vec<(u64, u64)> =
            report.file_issues.iter().map(|gap| (gap.byte_offset, gap.length)).collect();
        let expected_gaps: Vec<(u64, u64)> = listed["file_issues"]
            .as_array()
            .unwrap()
            .iter()
            .map(|gap| (number(&gap["byte_offset"]), number(&gap["length"])))
            .collect();
        assert_eq!(gaps, expected_gaps, "{name}");
        let mut codes: Vec<&str> = Vec::new();
        for issue in report.messages.iter().flat_map(|message| &message.issues) {
            // Findings of Tercet only: missing codecs, and copies of metadata that differ.
            let is_missing = issue.code == Code::PipelineNotBuiltIn;
            assert_eq!(issue.severity == Severity::Error, is_missing, "{name}: {issue:?}");
            if !["pipeline_not_built_in", "metadata_copies_disagree"].contains(&issue.code.name()) {
                codes.push(issue.code.name());
            }
        }
        let mut expected: Vec<&str> =
            listed["codes"].as_array().unwrap().iter().map(|code| code.as_str().unwrap()).collect();
        codes.sort_unstable();
        expected.sort_unstable();
        assert_eq!(codes, expected, "{name}");
        let verified: Vec<bool> = report.messages.iter().map(|message| message.hash_verified).collect();
        assert_eq!(serde_json::to_value(verified).unwrap(), listed["hash_verified"], "{name}");
        let full = ValidateOptions::new().with_depth(Depth::Full);
        validate_source(&source, &full, &NoProgress).unwrap();
    });
}

#[test]
fn verification_can_be_disabled() {
    each(|path, _, _| {
        let options = ReadOptions::new().with_verify(false).with_strict(false);
        let file = File::open_with(path, options).unwrap();
        for message in file.messages().unwrap() {
            message.unwrap();
        }
    });
}
