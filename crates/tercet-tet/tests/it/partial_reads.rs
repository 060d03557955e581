//! Partial reads read few bytes, for any number of chunks.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::sync::Arc;

use tercet_core::source::Memory;
use tercet_core::{CommonError, ElementType, Limits, Span, TensorView};
use tercet_testkit::counting::Counting;
use tercet_tet::{Compression, File, IntegrityStatus, Layout, ReadOptions, Writer, WriterOptions};

type CountedSource = Arc<Counting<Memory>>;

fn write(shape: &[u64], chunk_shape: &[u64], compression: Compression, options: WriterOptions) -> Vec<u8> {
    let mut layout = Layout::new();
    let id = layout.dataset("a", ElementType::U16, shape, chunk_shape).unwrap();
    layout.compress(id, compression).unwrap();
    let values: Vec<u16> = (0..shape.iter().product::<u64>()).map(|n| n as u16).collect();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, options.with_history(false)).unwrap();
    writer.array(id, TensorView::from_slice(shape, &values).unwrap()).unwrap();
    writer.finish().unwrap().output
}

/// A source whose reads are counted, with and without copies.
fn sources(bytes: &[u8]) -> [CountedSource; 2] {
    let memory = || Counting::new(Memory::new("m", bytes.to_vec()));
    [memory().shared(), memory().with_copies().shared()]
}

fn open(source: &CountedSource) -> File {
    File::from_source(Arc::<Counting<Memory>>::clone(source), ReadOptions::new()).unwrap()
}

/// Bytes of the index rows that share a checksum.
const RUN: u64 = 1024 * 104;

#[test]
fn clones_share_what_was_read() {
    let bytes = write(&[4_000], &[2], Compression::None, WriterOptions::new());
    for source in sources(&bytes) {
        let file = open(&source);
        file.dataset("a").unwrap().chunk(&[7]).unwrap();
        source.reset();
        file.dataset("a").unwrap().chunk(&[7]).unwrap();
        let again = source.bytes();
        source.reset();
        let clone = file.clone();
        assert_eq!(source.bytes(), 0, "a clone reads nothing");
        drop(file);
        let chunk = clone.dataset("a").unwrap().chunk(&[7]).unwrap();
        assert_eq!(chunk.as_slice::<u16>(), Some(&[14, 15][..]));
        assert_eq!(source.bytes(), again, "a clone knows what the file knew");
    }
}

#[test]
fn open_and_one_chunk_read_the_same_bytes_for_any_chunk_count() {
    for options in [WriterOptions::new(), WriterOptions::interop()] {
        let costs = [1_000u64, 100_000].map(|chunks| {
            let bytes = write(&[chunks], &[1], Compression::None, options);
            sources(&bytes).map(|source| {
                let file = open(&source);
                let opened = source.bytes();
                let last = chunks - 1;
                let chunk = file.dataset("a").unwrap().chunk(&[last]).unwrap();
                assert_eq!(chunk.as_slice::<u16>(), Some(&[last as u16][..]));
                let one_chunk = source.bytes() - opened;
                assert!(
                    one_chunk <= RUN + 64,
                    "one run, its checksum, the chunk and its checksum: {one_chunk}"
                );
                let longest = source.spans().into_iter().map(Span::len).max().unwrap();
                assert!(longest <= RUN, "{longest} bytes at once");
                (opened, one_chunk)
            })
        });
        let [few, many] = costs;
        for ((few_open, few_chunk), (many_open, many_chunk)) in few.into_iter().zip(many) {
            assert!(many_open <= few_open, "opening: {many_open} bytes, {few_open} with few chunks");
            assert!(
                many_chunk <= few_chunk * 11 / 10,
                "a chunk: {many_chunk} bytes, {few_chunk} with few chunks"
            );
            assert!(many_open < 4096, "{many_open}");
        }
    }
}

#[test]
fn statistics_of_one_chunk_read_one_run() {
    let bytes = write(&[20_000], &[1], Compression::None, WriterOptions::new());
    for source in sources(&bytes) {
        let file = open(&source);
        assert_eq!(*file.integrity_status(), IntegrityStatus::Checked { statistics: true });
        source.reset();
        let stats = file.dataset("a").unwrap().chunk_stats(&[12_345]).unwrap().unwrap();
        assert_eq!(stats.count, 1);
        assert!(source.bytes() <= RUN + 1024 * 48 + 128, "{}", source.bytes());
        source.reset();
        file.dataset("a").unwrap().chunk_stats(&[12_346]).unwrap().unwrap();
        // The runs are verified by now; zero-copy sources read theirs again.
        assert!(source.bytes() <= RUN + 128, "{}", source.bytes());
    }
}

/// The same file with its index rows in reverse order, without a block, so that this is valid.
fn reversed(bytes: &[u8]) -> Vec<u8> {
    let file = File::from_bytes("m", bytes.to_vec()).unwrap();
    let superblock = file.superblock();
    let start = superblock.chunk_index_offset as usize + 32;
    let end = start + superblock.chunk_index_length as usize - 32;
    let rows: Vec<u8> = bytes[start..end].chunks(104).rev().flatten().copied().collect();
    [&bytes[..start], &rows, &bytes[end..]].concat()
}

#[test]
fn unordered_rows_are_read_once() {
    for compression in [Compression::None, Compression::Zstd { level: 1 }] {
        let bytes = write(&[60, 50], &[1, 1], compression, WriterOptions::interop());
        let expected: Vec<u16> = (0..3000).collect();
        for source in sources(&reversed(&bytes)) {
            let file = open(&source);
            let dataset = file.dataset("a").unwrap();
            source.reset();
            assert_eq!(dataset.chunk(&[7, 3]).unwrap().to_vec::<u16>(), Some(vec![353]));
            let first = source.bytes();
            assert!(first >= 3000 * 104, "the table needs every row");
            source.reset();
            assert_eq!(dataset.chunk(&[59, 49]).unwrap().to_vec::<u16>(), Some(vec![2999]));
            assert!(source.bytes() <= RUN + 64, "{}", source.bytes());
            assert_eq!(dataset.read_all().unwrap().to_vec::<u16>().unwrap(), expected);
        }
    }
}

#[test]
fn the_table_of_unordered_rows_has_a_limit() {
    let bytes = reversed(&write(&[3000], &[1], Compression::None, WriterOptions::interop()));
    let limits = Limits::default().with_table_bytes(1000);
    let source = Arc::new(Memory::new("m", bytes));
    let file = File::from_source(source, ReadOptions::new().with_limits(limits)).unwrap();
    let error = file.dataset("a").unwrap().chunk(&[1]).unwrap_err();
    assert!(matches!(error.kind(), tercet_tet::ErrorKind::Common(CommonError::Limit(_))), "{error}");
}

#[test]
fn threads_share_one_table() {
    let bytes = reversed(&write(&[40, 40], &[1, 3], Compression::None, WriterOptions::interop()));
    for source in sources(&bytes) {
        let file = open(&source);
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let file = &file;
                scope.spawn(move || {
                    let dataset = file.dataset("a").unwrap();
                    for row in (0..40).map(|row| (row + thread * 5) % 40) {
                        let selection = dataset.selection(&format!("{row}")).unwrap();
                        let found = dataset.read(&selection).unwrap().to_vec::<u16>().unwrap();
                        let first = row as u16 * 40;
                        assert_eq!(found, (first..first + 40).collect::<Vec<_>>());
                    }
                });
            }
        });
    }
}

/// The payload spans of the chunks of 4×4 that a selection of a 40×40 array intersects.
fn hit(file: &File, rows: impl Fn(u64) -> bool, columns: impl Fn(u64) -> bool) -> BTreeSet<Span> {
    let dataset = file.dataset("a").unwrap();
    let mut spans = BTreeSet::new();
    for position in (0..1600u64).filter(|p| rows(p / 40) && columns(p % 40)) {
        spans.insert(dataset.chunk_ref(&[position / 40 / 4, position % 40 / 4]).unwrap().span);
    }
    spans
}

#[test]
fn selections_read_only_intersecting_chunks() {
    for compression in [Compression::None, Compression::Zstd { level: 1 }] {
        let bytes = write(&[40, 40], &[4, 4], compression, WriterOptions::new());
        for source in sources(&bytes) {
            let file = open(&source);
            let payloads = file.superblock().chunk_index_offset + file.superblock().chunk_index_length;
            let dataset = file.dataset("a").unwrap();
            for (text, expected) in [
                ("5,7", hit(&file, |r| r == 5, |c| c == 7)),
                ("::8,::12", hit(&file, |r| r % 8 == 0, |c| c % 12 == 0)),
                ("3:30:9,39", hit(&file, |r| (3..30).contains(&r) && r % 9 == 3, |c| c == 39)),
                ("2:6,::3", hit(&file, |r| (2..6).contains(&r), |c| c % 3 == 0)),
            ] {
                let selection = dataset.selection(text).unwrap();
                source.reset();
                dataset.read(&selection).unwrap();
                let read: Vec<Span> =
                    source.spans().into_iter().filter(|span| span.start() >= payloads).collect();
                assert_eq!(read.iter().copied().collect::<BTreeSet<_>>(), expected, "{text}");
                assert_eq!(read.len(), expected.len(), "{text}: each chunk once");
            }
        }
    }
}

#[test]
fn a_raw_chunk_in_memory_is_not_copied() {
    let bytes = write(&[40, 40], &[4, 40], Compression::None, WriterOptions::new());
    let source = Memory::new("m", bytes);
    let all = tercet_core::ByteSource::read_at(&source, Span::first(1)).unwrap().as_ptr() as usize;
    let file = File::from_source(Arc::new(source), ReadOptions::new()).unwrap();
    let dataset = file.dataset("a").unwrap();
    let chunk = dataset.chunk(&[3, 0]).unwrap();
    let chunk_ref = dataset.chunk_ref(&[3, 0]).unwrap();
    assert_eq!(chunk.bytes().as_ptr() as usize, all + chunk_ref.span.start() as usize);
    assert!(chunk.as_slice::<u16>().is_some(), "aligned");
}
