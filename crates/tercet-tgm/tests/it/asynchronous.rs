//! Async reads and writes give the same events, bytes and errors as the blocking ones.

use std::future::Future;
use std::io::{self, Cursor};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;
use tercet_tgm::{
    AsyncDecoder, AsyncStreamingEncoder, DType, DataObjectDescriptor, Decoder, EncodeError, EncodeOptions,
    ErrorKind, Event, File, GlobalMetadata, PreEncoded, StreamingEncoder, Value, Writer, WriterOptions,
    compat, encode_message,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::samples;

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

/// A stream that returns a few bytes at a time, and is pending before each read.
struct Slow<'a> {
    rest: &'a [u8],
    cuts: Vec<usize>,
    turn: usize,
    is_ready: bool,
}

impl<'a> Slow<'a> {
    fn new(bytes: &'a [u8], cuts: &[usize]) -> Self {
        Self { rest: bytes, cuts: cuts.to_vec(), turn: 0, is_ready: false }
    }
}

impl AsyncRead for Slow<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.is_ready = !self.is_ready;
        if self.is_ready {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let len = self.cuts[self.turn % self.cuts.len()].min(out.remaining()).min(self.rest.len());
        let (piece, rest) = self.rest.split_at(len);
        out.put_slice(piece);
        self.rest = rest;
        self.turn += 1;
        Poll::Ready(Ok(()))
    }
}

/// A sink that accepts a few bytes at a time, and is pending before each write.
#[derive(Default)]
struct LimitedPipe {
    bytes: Vec<u8>,
    most: usize,
    is_ready: bool,
    /// Bytes until it fails.
    full_at: Option<usize>,
}

impl AsyncWrite for LimitedPipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_ready = !self.is_ready;
        if self.is_ready {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.full_at.is_some_and(|full| self.bytes.len() >= full) {
            return Poll::Ready(Err(io::ErrorKind::StorageFull.into()));
        }
        let len = bytes.len().min(self.most);
        self.bytes.extend_from_slice(&bytes[..len]);
        Poll::Ready(Ok(len))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn decoder(resync: bool) -> Decoder {
    Decoder::new().with_resync(resync)
}

/// All events of a stream as text, including errors up to the one that ends it.
fn events(bytes: &[u8], resync: bool) -> Vec<String> {
    let mut decoder = decoder(resync);
    decoder.push(bytes);
    let mut out = Vec::new();
    loop {
        let next = match decoder.next_event() {
            Ok(None) => decoder.finish(),
            next => next,
        };
        match next {
            Ok(Some(event)) => out.push(format!("{event:?}")),
            Ok(None) => return out,
            Err(error) if matches!(error.kind(), ErrorKind::DecoderStopped) => return out,
            Err(fault) => out.push(format!("error: {fault}")),
        }
    }
}

async fn async_events(source: impl AsyncRead + Unpin, resync: bool) -> Vec<String> {
    let mut decoder = AsyncDecoder::with_decoder(source, decoder(resync));
    let mut out = Vec::new();
    loop {
        match decoder.next_event().await {
            Ok(Some(event)) => out.push(format!("{event:?}")),
            Ok(None) => return out,
            Err(error) if matches!(error.kind(), ErrorKind::DecoderStopped) => return out,
            Err(fault) => out.push(format!("error: {fault}")),
        }
    }
}

/// Messages, some damaged, with unrecognized bytes between them.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let unrecognized = prop_oneof![
        3 => Just(Vec::new()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => Just(b"TENSOGRM\0\x03\0\0".to_vec()),
    ];
    let flip = prop::option::weighted(0.2, (any::<usize>(), 1..=255u8));
    let cut = prop::option::weighted(0.2, any::<usize>());
    let part = (any::<usize>(), flip, cut, unrecognized).prop_map(|(which, flip, cut, unrecognized)| {
        let samples = samples::all();
        let sample = &samples[which % samples.len()];
        assert!(!sample.name.is_empty());
        let mut bytes = sample.bytes.clone();
        if let Some((at, mask)) = flip {
            let at = at % bytes.len();
            bytes[at] ^= mask;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut % bytes.len());
        }
        [unrecognized, bytes].concat()
    });
    prop::collection::vec(part, 1..5).prop_map(|parts| parts.concat())
}

/// The pipeline for values that are not all finite.
const MASKED: usize = 3;

/// An object: length, pipeline, and whether metadata precedes it.
type Object = (usize, usize, bool);

fn descriptor(len: usize, how: usize) -> DataObjectDescriptor {
    let mut descriptor = DataObjectDescriptor::new(DType::F32, [len as u64 / 4]);
    match how {
        1 => "zstd".clone_into(&mut descriptor.compression),
        2 => {
            "shuffle".clone_into(&mut descriptor.filter);
            descriptor.params.insert("shuffle_element_size".to_owned(), 4.into());
            "lz4".clone_into(&mut descriptor.compression);
        }
        _ => {}
    }
    descriptor
}

#[expect(clippy::cast_possible_truncation, reason = "small numbers")]
fn values(len: usize) -> Vec<u8> {
    (0..len / 4).flat_map(|n| f32::from((n % 1000) as u16).to_le_bytes()).collect()
}

/// Values for a pipeline: for the last one some are not finite and have masks.
fn values_for(len: usize, how: usize) -> Vec<u8> {
    let mut values = values(len);
    if how == MASKED {
        for (at, four) in values.chunks_exact_mut(4).enumerate().filter(|(at, _)| at % 7 == 0) {
            four.copy_from_slice(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY][at % 3].to_le_bytes());
        }
    }
    values
}

fn hashed(hash: bool) -> EncodeOptions {
    samples::options().with_hash(hash).with_allowed(true, true)
}

fn metadata() -> GlobalMetadata {
    let mut metadata = GlobalMetadata::default();
    metadata.extra.insert("scale".to_owned(), Value::Float(0.25));
    metadata
}

fn sync_bytes(objects: &[Object]) -> Vec<u8> {
    sync_bytes_with(objects, true)
}

fn sync_bytes_with(objects: &[Object], hash: bool) -> Vec<u8> {
    let mut encoder = StreamingEncoder::new(Vec::new(), &metadata(), hashed(hash)).unwrap();
    for (len, how, preceded) in objects {
        if *preceded {
            encoder.write_preceder([("len".to_owned(), (*len as u64).into())].into()).unwrap();
        }
        encoder.write_object(&descriptor(*len, *how), &values_for(*len, *how)).unwrap();
    }
    encoder.finish().unwrap()
}

async fn async_bytes(objects: &[Object], most: usize, hash: bool) -> Vec<u8> {
    let sink = LimitedPipe { most, ..LimitedPipe::default() };
    let mut encoder = AsyncStreamingEncoder::new(sink, &metadata(), hashed(hash)).await.unwrap();
    for (n, (len, how, preceded)) in objects.iter().enumerate() {
        assert_eq!(encoder.object_count(), n as u64);
        if *preceded {
            encoder.write_preceder([("len".to_owned(), (*len as u64).into())].into()).await.unwrap();
        }
        encoder.write_object(&descriptor(*len, *how), values_for(*len, *how)).await.unwrap();
    }
    encoder.finish().await.unwrap().bytes
}

/// Small objects, and some that go to the blocking pool.
fn objects() -> impl Strategy<Value = Vec<Object>> {
    let len = prop_oneof![4 => 1..500usize, 1 => 40_000..60_000usize].prop_map(|n| n * 4);
    prop::collection::vec((len, 0..=MASKED, any::<bool>()), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(200)))]

    /// Complete, damaged or truncated: the events and errors of the blocking decoder.
    #[test]
    fn async_and_sync_events_are_equal(bytes in stream(), cuts in prop::collection::vec(1..300usize, 1..6), resync: bool) {
        let found = block_on(async_events(Slow::new(&bytes, &cuts), resync));
        prop_assert_eq!(found, events(&bytes, resync));
    }

    /// The bytes of the blocking encoder, for any write size of the sink.
    #[test]
    fn async_and_sync_bytes_are_equal(objects in objects(), most in 1..100_000usize, hash: bool) {
        let found = block_on(async_bytes(&objects, most, hash));
        prop_assert_eq!(found, sync_bytes_with(&objects, hash));
    }

    /// From one end of a pipe to the other.
    #[test]
    fn a_pipe_loses_nothing(objects in objects(), size in 1..5000usize, hash: bool) {
        let expected = events(&sync_bytes_with(&objects, hash), false);
        let found = block_on(async {
            let (near, far) = tokio::io::duplex(size);
            let writing = tokio::spawn(async move {
                let mut encoder = AsyncStreamingEncoder::new(near, &metadata(), hashed(hash)).await?;
                for (len, how, preceded) in objects {
                    if preceded {
                        encoder.write_preceder([("len".to_owned(), (len as u64).into())].into()).await?;
                    }
                    encoder.write_object(&descriptor(len, how), values_for(len, how)).await?;
                }
                encoder.finish().await.map(drop)
            });
            let events = async_events(far, false).await;
            writing.await.unwrap().unwrap();
            events
        });
        prop_assert_eq!(found, expected);
    }
}

/// A future that is cancelled after every step: no byte and no event is lost.
#[test]
fn reads_can_be_cancelled() {
    let bytes = [sync_bytes(&[(400_000, 0, true), (80, 1, false)]), samples::all().remove(1).bytes].concat();
    let found = block_on(async {
        let mut decoder = AsyncDecoder::new(Slow::new(&bytes, &[70_000, 3]));
        let mut out = Vec::new();
        let mut cancelled = 0;
        loop {
            let polled = {
                let mut next = pin!(decoder.next_event());
                let waker = Waker::noop();
                next.as_mut().poll(&mut Context::from_waker(waker))
            };
            match polled {
                Poll::Pending => {
                    cancelled += 1;
                    tokio::task::yield_now().await;
                }
                Poll::Ready(event) => match event.unwrap() {
                    Some(event) => out.push(format!("{event:?}")),
                    None => break,
                },
            }
        }
        assert!(cancelled > 10, "{cancelled}");
        out
    });
    assert_eq!(found, events(&bytes, false));
}

/// A cancelled write has started its object or not; in both cases the final message is valid.
#[test]
fn writes_can_be_cancelled() {
    let objects = [(400_000, 0, false), (80, 1, false), (200_000, 2, false), (8_000, 0, false)];
    for patience in [1, 2, 3, 10, 50, 100, 1000] {
        let (found, cancelled) = block_on(async {
            let sink = LimitedPipe { most: 1000, ..LimitedPipe::default() };
            let mut encoder =
                AsyncStreamingEncoder::new(sink, &metadata(), samples::options()).await.unwrap();
            let mut cancelled = 0;
            for (n, (len, how, _)) in objects.into_iter().enumerate() {
                let descriptor = descriptor(len, how);
                while encoder.object_count() == n as u64 {
                    {
                        let mut write = pin!(encoder.write_object(&descriptor, values(len)));
                        for _ in 0..patience {
                            if write.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                                break;
                            }
                            tokio::task::yield_now().await;
                        }
                    }
                    cancelled += 1;
                    encoder.flush().await.unwrap();
                }
            }
            (encoder.finish().await.unwrap().bytes, cancelled)
        });
        assert!(cancelled >= objects.len(), "{cancelled}");
        assert_eq!(found.len(), sync_bytes(&objects).len(), "{patience}");
        assert!(found == sync_bytes(&objects), "{patience}");
    }
}

/// A sink error is reported, and nothing is written after a partial message.
#[test]
fn sink_errors_are_reported() {
    block_on(async {
        let sink = LimitedPipe { most: 100, full_at: Some(1000), ..LimitedPipe::default() };
        let mut encoder = AsyncStreamingEncoder::new(sink, &metadata(), samples::options()).await.unwrap();
        let error = encoder.write_object(&descriptor(4000, 0), values(4000)).await.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Common(tercet_core::CommonError::Write(error)) if error.kind() == io::ErrorKind::StorageFull),
            "{error}"
        );
        let error = encoder.write_object(&descriptor(40, 0), values(40)).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Encode(EncodeError::Unfinished)), "{error}");
        assert!(encoder.finish().await.is_err());
    });
}

/// A stream error is reported with its offset, and reading continues if the stream does.
#[test]
fn stream_errors_are_reported() {
    struct Breaks<'a>(Slow<'a>, Option<usize>);
    impl AsyncRead for Breaks<'_> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            out: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if self.1.is_some_and(|at| self.0.rest.len() <= at) {
                self.1 = None;
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            }
            Pin::new(&mut self.0).poll_read(context, out)
        }
    }
    let bytes = samples::all().remove(0).bytes;
    let left = bytes.len() - 100;
    let source = Breaks(Slow::new(&bytes, &[50]), Some(left));
    let found = block_on(async_events(source, false));
    let (errors, rest): (Vec<_>, Vec<_>) = found.into_iter().partition(|event| event.starts_with("error"));
    assert_eq!(errors.len(), 1);
    assert!(errors[0].contains("100"), "{errors:?}");
    assert_eq!(rest, events(&bytes, false));
}

#[test]
fn rejected_objects_leave_the_message_valid() {
    block_on(async {
        let mut encoder =
            AsyncStreamingEncoder::new(Vec::new(), &metadata(), samples::options()).await.unwrap();
        for len in [10, 300_000] {
            let wrong = descriptor(40, 0);
            let error = encoder.write_object(&wrong, vec![0; len]).await.unwrap_err();
            let mut sync = StreamingEncoder::new(Vec::new(), &metadata(), samples::options()).unwrap();
            assert_eq!(error.to_string(), sync.write_object(&wrong, &vec![0; len]).unwrap_err().to_string());
        }
        encoder.write_preceder([("len".to_owned(), 40.into())].into()).await.unwrap();
        let error = encoder.write_preceder([("len".to_owned(), 40.into())].into()).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Encode(EncodeError::DuplicatePreceder)), "{error}");
        encoder.write_object(&descriptor(40, 0), values(40)).await.unwrap();
        assert_eq!(encoder.object_count(), 1);
        assert_eq!(encoder.finish().await.unwrap(), sync_bytes(&[(40, 0, true)]));
    });
}

#[test]
fn encoded_payloads_and_lengths_are_written() {
    let (descriptor, payload) = (descriptor(400, 0), values(400));
    let mut encoder =
        StreamingEncoder::new(Cursor::new(Vec::new()), &metadata(), samples::options()).unwrap();
    encoder.write_pre_encoded(PreEncoded { descriptor: &descriptor, payload: &payload }).unwrap();
    let expected = encoder.finish_with_length().unwrap().into_inner();
    let found = block_on(async {
        let sink = Cursor::new(Vec::new());
        let mut encoder = AsyncStreamingEncoder::new(sink, &metadata(), samples::options()).await.unwrap();
        encoder.write_pre_encoded(&descriptor, payload.clone()).await.unwrap();
        encoder.finish_with_length().await.unwrap().into_inner()
    });
    assert_eq!(found, expected);
    assert_ne!(found[16..24], [0; 8]);
}

/// Files give the results of the blocking calls, errors included.
#[test]
fn async_and_sync_files_read_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.tgm");
    let mut writer = Writer::create(&path, WriterOptions::new().with_overwrite(true)).unwrap();
    for sample in samples::all() {
        writer.raw(&sample.bytes).unwrap();
    }
    let big = encode_message(
        &metadata(),
        &[(&descriptor(2_000_000, 0), &values(2_000_000))],
        &EncodeOptions::new(),
    );
    writer.raw(&big.unwrap()).unwrap();
    writer.finish().unwrap();
    let sync = File::open(&path).unwrap();
    let compat = compat::TensogramFile::open(&path).unwrap();
    block_on(async {
        let file = File::open_async(&path).await.unwrap();
        assert_eq!(file.scan_async().await.unwrap(), sync.scan().unwrap());
        let count = file.message_count_async().await.unwrap();
        assert_eq!(count, sync.message_count().unwrap());
        let compat_async = compat::TensogramFile::open_async(&path).await.unwrap();
        for index in 0..=count {
            let read = file.read_message_async(index).await.map_err(|error| error.to_string());
            assert_eq!(read, sync.read_message(index).map_err(|error| error.to_string()));
            let decoded = file.decode_message_async(index).await;
            match sync.message(index) {
                Ok(expected) => {
                    let (message, arrays) = decoded.unwrap();
                    assert_eq!(message.metadata(), expected.metadata());
                    let bytes = |arrays: &[tercet_tgm::Tensor]| -> Vec<Vec<u8>> {
                        arrays.iter().map(|array| array.bytes().to_vec()).collect()
                    };
                    assert_eq!(bytes(&arrays), bytes(&expected.decode().unwrap()));
                    let again = file.message_async(index).await.unwrap().decode_async().await.unwrap();
                    assert_eq!(bytes(&again), bytes(&arrays));
                    let index = usize::try_from(index).unwrap();
                    let options = compat::DecodeOptions::default();
                    assert_eq!(
                        compat_async.decode_message_async(index, &options).await.unwrap(),
                        compat.decode_message(index, &options).unwrap()
                    );
                    assert_eq!(
                        compat_async.read_message_async(index).await.unwrap(),
                        compat.read_message(index).unwrap()
                    );
                }
                Err(expected) => assert_eq!(decoded.unwrap_err().to_string(), expected.to_string()),
            }
        }
        let missing = dir.path().join("missing.tgm");
        let error = File::open_async(&missing).await.unwrap_err();
        assert_eq!(error.to_string(), File::open(&missing).unwrap_err().to_string());
    });
}

/// At most one piece is read ahead, so a fast writer is throttled.
#[test]
fn a_slow_reader_applies_backpressure() {
    let bytes = sync_bytes(&[(1_000_000, 0, false), (1_000_000, 0, false)]);
    block_on(async {
        let mut decoder = AsyncDecoder::new(Slow::new(&bytes, &[usize::MAX]));
        loop {
            match decoder.next_event().await.unwrap() {
                Some(Event::Object(_)) => break,
                Some(_) => {}
                None => panic!("no object came"),
            }
        }
        let rest = decoder.into_inner().rest.len();
        assert!(rest > 1_000_000 - (64 << 10), "{rest}");
    });
}
