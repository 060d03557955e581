//! Values in a file are copied to a message in pieces.

use std::io::Write as _;
use std::sync::Arc;

use tercet_core::source::{File as Source, Memory};
use tercet_core::{ByteSource, Span};
use tercet_testkit::alloc::{exclusive, measure};
use tercet_tgm::{
    DType, DataObjectDescriptor, EncodeOptions, Error, File, GlobalMetadata, ObjectValues, StreamingEncoder,
    Writer, WriterOptions,
};

const LEN: u64 = 32 << 20;

/// Values after a header of 128 bytes.
fn values() -> (tempfile::NamedTempFile, Source, Span) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let values = (0..LEN / 4).flat_map(|n| (n as f32).sqrt().to_le_bytes());
    file.write_all(&[0; 128].into_iter().chain(values).collect::<Vec<u8>>()).unwrap();
    let source = Source::open(file.path()).unwrap();
    (file, source, Span::at(128, LEN).unwrap())
}

#[test]
fn values_in_a_file_need_no_memory() {
    let _exclusive = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.tgm");
    let descriptor = DataObjectDescriptor::new(DType::F32, [LEN / 4]);
    let (metadata, options) = (GlobalMetadata::default(), EncodeOptions::new());
    let (_file, source, span) = values();
    for is_streamed in [false, true] {
        let (written, memory) = measure(|| {
            let mut writer = Writer::create(&path, WriterOptions::new().with_overwrite(true))?;
            if is_streamed {
                writer.stream(&metadata, options.clone(), |encoder: &mut StreamingEncoder<_>| {
                    encoder.write_object_from(&descriptor, &source, span)
                })?;
            } else {
                let values = ObjectValues::Source(&source, span);
                writer.message_from(&metadata, &[(&descriptor, values)], &options)?;
            }
            writer.finish()
        });
        assert!(written.unwrap().bytes > LEN);
        assert!(memory.peak_bytes < 4 << 20, "{is_streamed}: {} bytes", memory.peak_bytes);
        let message = File::open(&path).unwrap().message(0).unwrap();
        let array = message.object(0).unwrap().decode().unwrap();
        assert!(array.bytes() == &*source.read_at(span).unwrap(), "{is_streamed}");
    }
}

/// Values that must be changed are read into memory: NaN becomes a mask, or is refused.
#[test]
fn values_that_are_encoded_are_read_into_memory() {
    let _exclusive = exclusive();
    let bytes: Vec<u8> = [1.0_f32, f32::NAN, 3.0].into_iter().flat_map(f32::to_le_bytes).collect();
    let source: Arc<dyn ByteSource> = Arc::new(Memory::new("values", bytes.clone()));
    let plain = DataObjectDescriptor::new(DType::F32, [3]);
    let shuffled = plain.clone().with_filter("shuffle").with_param("shuffle_element_size", 4);
    let encode = |descriptor: &DataObjectDescriptor, options: EncodeOptions| -> Result<Vec<u8>, Error> {
        let mut encoder = StreamingEncoder::new(Vec::new(), &GlobalMetadata::default(), options)?;
        encoder.write_object_from(descriptor, &*source, Span::first(12))?;
        encoder.finish()
    };
    assert!(encode(&plain, EncodeOptions::new()).unwrap_err().to_string().contains("element 1 is NaN"));
    for descriptor in [&plain, &shuffled] {
        let message = encode(descriptor, EncodeOptions::new().with_allowed(true, true)).unwrap();
        let message = tercet_tgm::Message::from_bytes("new", message).unwrap();
        assert_eq!(message.object(0).unwrap().decode().unwrap().bytes(), bytes);
    }
}

/// A file that changes between the two passes would not match its hash.
#[test]
fn values_that_change_are_detected() {
    let _exclusive = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let changing = Changing { inner: Memory::new("values.npy", vec![0; 64]), reads: 0.into() };
    // Finite numbers, which are checked, without a hash.
    let floats = DataObjectDescriptor::new(DType::F32, [16]);
    let unhashed = EncodeOptions::new().with_hash(false);
    let mut encoder = StreamingEncoder::new(Vec::new(), &GlobalMetadata::default(), unhashed).unwrap();
    let error = encoder.write_object_from(&floats, &changing, Span::first(64)).unwrap_err();
    assert!(error.to_string().contains("the file changed while it was read"), "{error}");
    assert!(encoder.finish().is_err(), "the message is incomplete");
    let descriptor = DataObjectDescriptor::new(DType::U8, [64]);
    let path = dir.path().join("run.tgm");
    let mut writer = Writer::create(&path, WriterOptions::new()).unwrap();
    let values = ObjectValues::Source(&changing, Span::first(64));
    let error =
        writer.message_from(&GlobalMetadata::default(), &[(&descriptor, values)], &EncodeOptions::new());
    let error = error.unwrap_err();
    assert_eq!(error.location(), "values.npy");
    assert!(error.to_string().contains("the file changed while it was read"), "{error}");
    assert!(writer.finish().is_err(), "the message is incomplete");
    assert!(!path.exists());
}

/// Other bytes at each read.
#[derive(Debug)]
struct Changing {
    inner: Memory,
    reads: std::sync::atomic::AtomicU8,
}

impl ByteSource for Changing {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn read_at(&self, span: Span) -> Result<bytes::Bytes, tercet_core::SourceError> {
        self.inner.read_at(span)
    }
    fn read_into(&self, start: u64, out: &mut [u8]) -> Result<(), tercet_core::SourceError> {
        self.inner.read_into(start, out)?;
        out.fill(self.reads.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        Ok(())
    }
}
