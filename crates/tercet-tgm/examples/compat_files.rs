//! Files with the names of the format's documentation: append, random access, batches, streaming, validation, async and
//! remote files.
#![allow(clippy::print_stdout, reason = "an example shows its results")]
#![allow(clippy::host_endian_bytes, reason = "descriptors have the byte order of this host")]
#![allow(clippy::cast_precision_loss, clippy::cast_possible_wrap, reason = "example values are small")]
#![allow(clippy::panic, reason = "an example stops if its result is wrong")]
#![allow(clippy::disallowed_methods, reason = "an example reads its own file")]

use std::collections::BTreeMap;
use std::io::{BufWriter, Cursor, Write as _};

use tercet_tgm::compat::remote::is_remote_url;
use tercet_tgm::compat::streaming::StreamingEncoder;
use tercet_tgm::compat::{
    self, DataObjectDescriptor, DecodeOptions, Dtype, EncodeOptions, GlobalMetadata, Result, TensogramFile,
    ValidateOptions, ValidationLevel, decode, scan_file, validate_buffer, validate_file, validate_message,
};

fn message(step: i64) -> (GlobalMetadata, DataObjectDescriptor, Vec<u8>) {
    let mut metadata = GlobalMetadata::default();
    metadata.extra.insert("step".to_string(), ciborium::Value::Integer(step.into()));
    let values: Vec<u8> = (0..6).flat_map(|i| (i as f32 + step as f32).to_ne_bytes()).collect();
    (metadata, DataObjectDescriptor::new(Dtype::Float32, [2, 3]), values)
}

pub(crate) fn main() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("forecast.tgm");

    // Create and append.
    let mut file = TensogramFile::create(&path)?;
    for step in 0..8 {
        let (metadata, descriptor, values) = message(step);
        file.append(&metadata, &[(&descriptor, &values)], &EncodeOptions::default())?;
    }
    assert_eq!(file.message_count()?, 8);

    // Random access: nothing is read before it is needed.
    let file = TensogramFile::open(&path)?;
    let (metadata, objects) = file.decode_message(3, &DecodeOptions::default())?;
    assert_eq!(metadata.get("step").and_then(|step| step.as_i64()), Some(3));
    assert_eq!(objects[0].1, message(3).2);
    assert_eq!(file.decode_descriptors(0)?.1[0].shape, [2, 3]);
    let (_, _, values) = file.decode_object(7, 0, &DecodeOptions::default())?;
    let (_, parts) = file.decode_range(7, 0, &[(1, 2)], &DecodeOptions::default())?;
    assert_eq!(parts[0], values[4..12]);
    let batch = file.decode_range_batch(&[5, 6, 7], 0, &[(1, 2)], &DecodeOptions::default())?;
    assert_eq!((batch.len(), &batch[2].1[0]), (3, &parts[0]));
    assert_eq!(file.decode_object_batch(&[7], 0, &DecodeOptions::default())?[0].1, values);
    assert_eq!(file.message_layouts()?.len(), 8);
    for (step, raw) in file.iter()?.enumerate() {
        assert_eq!(decode(&raw?, &DecodeOptions::default())?.1[0].1, message(step as i64).2);
    }
    let all = file.messages()?;
    assert_eq!((all.len(), file.path(), &all[3]), (8, path.as_path(), &file.read_message(3)?));
    let iterator = file.iter()?;
    assert_eq!(iterator.len(), 8);
    for raw in iterator {
        for object in compat::objects(&raw?, DecodeOptions::default())? {
            assert_eq!(object?.0.shape, [2, 3]);
        }
    }
    let mapped = TensogramFile::open_mmap(&path)?;
    assert_eq!(mapped.read_message(5)?, file.read_message(5)?);
    assert_eq!(scan_file(&mut std::fs::File::open(&path)?)?.len(), 8);

    // Write object by object.
    let (metadata, descriptor, values) = message(9);
    let mut encoder = StreamingEncoder::new(Vec::new(), &metadata, &EncodeOptions::default())?;
    encoder.write_preceder(BTreeMap::from([("units".to_string(), "K".into())]))?;
    encoder.write_object(&descriptor, &values)?;
    encoder.write_object_pre_encoded(&descriptor, &values)?;
    println!("{} objects, {} bytes", encoder.object_count(), encoder.bytes_written());
    let stream = encoder.finish()?;
    let mut encoder = StreamingEncoder::new(Cursor::new(Vec::new()), &metadata, &EncodeOptions::default())?;
    encoder.write_object(&descriptor, &values)?;
    let backfilled = encoder.finish_backfilled()?.into_inner();
    assert_eq!(
        decode(&stream, &DecodeOptions::default())?.0.get_at(0, "units").and_then(|u| u.as_str()),
        Some("K")
    );

    // To a file through a buffer.
    let streamed = directory.path().join("stream.tgm");
    let sink = BufWriter::new(std::fs::File::create(&streamed)?);
    let mut encoder = StreamingEncoder::new(sink, &metadata, &EncodeOptions::default())?;
    encoder.write_object(&descriptor, &values)?;
    let mut sink = encoder.finish()?;
    sink.flush()?;
    assert_eq!(decode(&std::fs::read(&streamed)?, &DecodeOptions::default())?.1[0].1, values);

    // Validate.
    let options = ValidateOptions { max_level: ValidationLevel::Fidelity, ..ValidateOptions::default() };
    let report = validate_message(&backfilled, &options);
    assert!(report.is_ok() && report.hash_verified, "{report:?}");
    let json = serde_json::to_string_pretty(&report).unwrap_or_default();
    assert!(json.contains("\"hash_verified\": true"), "{json}");
    let quick = ValidateOptions { max_level: ValidationLevel::Structure, ..ValidateOptions::default() };
    let quick = validate_message(&backfilled, &quick);
    assert_eq!((quick.is_ok(), quick.object_count, quick.hash_verified), (true, 1, false));
    let mut wrong = backfilled.clone();
    wrong[..8].copy_from_slice(b"WRONGMAG");
    let report = validate_message(&wrong, &ValidateOptions::default());
    println!("{:?} {}", report.issues[0].code, report.issues[0].description);
    assert!(!report.is_ok());
    assert_eq!(validate_buffer(&[stream, backfilled].concat(), &options).messages.len(), 2);
    assert!(validate_file(&path, &options)?.is_ok());

    // A URL opens like a path, with the feature `remote`.
    assert!(is_remote_url("https://example.org/forecast.tgm") && !is_remote_url("forecast.tgm"));
    let local = TensogramFile::open_source(path.to_string_lossy())?;
    assert!(!local.is_remote() && local.source().ends_with("forecast.tgm"));

    #[cfg(feature = "async")]
    tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
        let file = TensogramFile::open_async(&path).await?;
        let opts = DecodeOptions::default();
        let (meta, objects) = file.decode_message_async(0, &opts).await?;
        assert_eq!((meta.extra.len(), objects.len()), (1, 1));
        assert_eq!(file.read_message_async(0).await?, file.read_message(0)?);
        assert_eq!(file.decode_range_async(0, 0, &[(0, 1)], &opts).await?.1[0].len(), 4);
        Ok::<(), tercet_tgm::compat::TensogramError>(())
    })?;
    Ok(())
}
