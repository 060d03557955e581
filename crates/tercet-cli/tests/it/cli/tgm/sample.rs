//! Files of messages.

use std::path::Path;

use tercet::tgm::{
    DType, DataObjectDescriptor, EncodeOptions, Entry, File, GlobalMetadata, Provenance, Stamp,
    StreamingEncoder, Value, Writer, WriterOptions,
};

use crate::cli::support::TestDir;

/// Options whose messages have the same bytes in every run.
pub(super) fn options() -> EncodeOptions {
    let mut stamp = Stamp::fixed(1_700_000_000, "976bf8a7-b57e-4bb9-b612-99ca8e251769");
    "1".clone_into(&mut stamp.version);
    EncodeOptions::new().with_provenance(Provenance::Fixed(Box::new(stamp)))
}

fn mars(param: &str, step: u64) -> Entry {
    let mars: Entry = [("param".to_owned(), param.into()), ("step".to_owned(), step.into())].into();
    [("mars".to_owned(), Value::from(mars))].into()
}

/// Three messages: `2t` of one object, `msl` of two, and `10u` that is streamed, its metadata before its object.
pub(crate) fn write_run(path: &Path) {
    let field = DataObjectDescriptor::new(DType::F32, [2, 3]);
    let values: Vec<u8> = (0u8..6).flat_map(|i| f32::from(i).to_le_bytes()).collect();
    let mut scalar = DataObjectDescriptor::new(DType::I16, []);
    scalar.params.insert("quality".to_owned(), Value::from(0.5));
    let mut common = GlobalMetadata::default();
    common.extra.insert("centre".to_owned(), "ecmf".into());
    common.extra.insert("scale".to_owned(), Value::from(1.0));

    let mut writer = Writer::create(path, WriterOptions::new().with_overwrite(true)).unwrap();
    let mut first = common.clone();
    first.base.push(mars("2t", 0));
    writer.message(&first, &[(&field, &values)], &options()).unwrap();
    let mut second = common.clone();
    second.base = vec![mars("msl", 6), [("name".to_owned(), "quality".into())].into()];
    writer.message(&second, &[(&field, &values), (&scalar, &[7, 0])], &options()).unwrap();
    let mut stream = StreamingEncoder::new(Vec::new(), &common, options()).unwrap();
    stream.write_preceder(mars("10u", 12)).unwrap();
    stream.write_object(&field, &values).unwrap();
    writer.raw(&stream.finish().unwrap()).unwrap();
    writer.finish().unwrap();
}

/// A directory with `run.tgm`.
pub(super) fn dir() -> TestDir {
    let dir = TestDir::new();
    write_run(&dir.path("run.tgm"));
    dir
}

/// One message for each text, with that text under the key `k`.
pub(super) fn write_texts(path: &Path, strings: &[&str]) {
    write_values(path, strings.iter().map(|text| Value::from(*text)));
}

/// One message with a value under the key `k`.
pub(super) fn write_value(path: &Path, value: Value) {
    write_values(path, [value].into_iter());
}

fn write_values(path: &Path, values: impl Iterator<Item = Value>) {
    let mut writer = Writer::create(path, WriterOptions::new().with_overwrite(true)).unwrap();
    for value in values {
        let mut metadata = GlobalMetadata::default();
        metadata.extra.insert("k".to_owned(), value);
        writer.message(&metadata, &[], &options()).unwrap();
    }
    writer.finish().unwrap();
}

/// Where a message of a file is.
pub(super) fn message_range(dir: &TestDir, name: &str, index: u64) -> std::ops::Range<usize> {
    let span = File::open(dir.path(name)).unwrap().message_span(index).unwrap();
    usize::try_from(span.start()).unwrap()..usize::try_from(span.end()).unwrap()
}

/// Flips a bit in the payload of the first object of message 1 of `run.tgm`.
pub(super) fn with_damaged_payload(dir: &TestDir, to: &str) {
    let file = File::open(dir.path("run.tgm")).unwrap();
    let at = file.message(1).unwrap().object(0).unwrap().payload_span().start();
    dir.damaged("run.tgm", to, |bytes| bytes[usize::try_from(at).unwrap() + 3] ^= 1);
}

/// Flips a bit in a metadata value of message 0 of `run.tgm`: `ecmf` becomes `ecmg`.
pub(super) fn with_damaged_metadata(dir: &TestDir, to: &str) {
    dir.damaged("run.tgm", to, |bytes| {
        let at = bytes.windows(4).position(|part| part == b"ecmf").unwrap();
        bytes[at + 3] ^= 1;
    });
}
