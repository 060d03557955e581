//! Footer version 2: zone maps and secondary indexes, as the reference implementation writes them, and next to the
//! integrity block.

use std::io::{Cursor, Seek, SeekFrom, Write};

use tercet_core::checksum::crc32c;
use tercet_core::progress::NoProgress;
use tercet_core::{CommonError, ElementType, Severity, Sink, TensorView};
use tercet_tet::{
    Codec, Compression, ErrorKind, File, HistoryRow, IntegrityStatus, Layout, VerifyOptions, Writer,
    WriterOptions,
};

/// Opens a golden file; `None` without the golden directory.
fn golden(name: &str) -> Option<(Vec<u8>, File)> {
    let directory = tercet_testkit::golden("tet")?;
    #[expect(clippy::disallowed_methods, reason = "golden files are read as they are")]
    let bytes = std::fs::read(directory.join(name)).unwrap();
    let file = File::from_bytes(name, bytes.clone()).unwrap();
    Some((bytes, file))
}

/// Rewrites the values, metadata and history of a file.
fn rewrite(file: &File, options: WriterOptions) -> Vec<u8> {
    let mut layout = Layout::new();
    let mut ids = Vec::new();
    for dataset in file.datasets() {
        let dtype = dataset.dtype().unwrap().element().unwrap();
        let id = layout.dataset(dataset.name(), dtype, dataset.shape(), dataset.chunk_shape()).unwrap();
        let first = vec![0; dataset.shape().len()];
        if dataset.chunk_ref(&first).unwrap().codec == Codec::Zstd {
            layout.compress(id, Compression::Zstd { level: 3 }).unwrap();
        }
        ids.push(id);
    }
    layout.memory_budget(file.memory_budget()).unwrap();
    layout.metadata(file.metadata().cloned().unwrap_or_default()).unwrap();
    for row in file.history() {
        layout.history(row.clone()).unwrap();
    }
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, options).unwrap();
    for (id, dataset) in ids.into_iter().zip(file.datasets()) {
        writer.array(id, dataset.read_all().unwrap().view()).unwrap();
    }
    writer.finish().unwrap().output
}

fn assert_same(name: &str, written: &[u8], expected: &[u8]) {
    let differs = written.iter().zip(expected).position(|(a, b)| a != b);
    assert!(differs.is_none(), "{name} differs at {differs:?}");
    assert_eq!(written.len(), expected.len(), "{name}");
}

#[test]
fn golden_files_are_rewritten_byte_for_byte() {
    for name in ["embed_v2.tet", "embed_v2_labels.tet", "embed_v2_spill.tet", "python_writer.tet"] {
        let Some((bytes, file)) = golden(name) else { return };
        let written = rewrite(&file, WriterOptions::interop().with_zone_maps(true));
        assert_same(name, &written, &bytes);
        assert_ne!(rewrite(&file, WriterOptions::interop()), bytes, "{name} without zone maps");
    }
}

/// The numbers of V6.
const E: [[i16; 6]; 12] = [
    [7, 6, 4, 4, 1, 5],
    [2, 2, 2, 8, 4, 3],
    [6, 6, 0, 4, 8, 1],
    [1, 7, 8, 5, 4, 6],
    [7, 7, 1, 5, 5, 5],
    [2, 0, 6, 4, 2, 4],
    [3, 5, 6, 5, 4, 7],
    [8, 1, 1, 8, 0, 8],
    [6, 7, 8, 6, 1, 3],
    [4, 8, 1, 4, 2, 1],
    [3, 2, 0, 4, 0, 6],
    [4, 5, 4, 6, 8, 0],
];

fn v6(options: WriterOptions) -> Vec<u8> {
    let mut layout = Layout::new();
    let e = layout.dataset("e", ElementType::I16, [12, 6], [5, 4]).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, options).unwrap();
    writer.array(e, TensorView::from_slice(&[12, 6], E.as_flattened()).unwrap()).unwrap();
    writer.finish().unwrap().output
}

#[test]
fn v6_is_written() {
    let bytes = v6(WriterOptions::interop().with_zone_maps(true));
    assert_eq!(bytes.len(), 5705);
    assert_eq!(crc32c(&bytes[896..896 + 1257]), 0x690e_3515, "zone maps");
    assert_eq!(crc32c(&bytes[2153..2153 + 3431]), 0x9fe7_0993, "secondary index");
    assert_eq!(crc32c(&bytes), 0xbb8a_9c56, "the file");
}

/// Two datasets, one compressed, with labels in the metadata and in the block, and a fill value.
fn with_block(options: WriterOptions) -> Vec<u8> {
    let mut layout = Layout::new();
    let few = layout.dataset("few", ElementType::I16, [5, 3], [2, 3]).unwrap();
    let many = layout.dataset("many", ElementType::F32, [70], [16]).unwrap();
    layout.compress(many, Compression::Zstd { level: 3 }).unwrap();
    layout.dims(few, ["time", "x"]).unwrap();
    layout.labels(few, "time", ["0", "6", "12", "18", "24"].map(str::to_owned).to_vec()).unwrap();
    layout.attr(few, "_FillValue", "3").unwrap();
    layout.labels(many, "0", (0..70).map(|n| n.to_string()).collect()).unwrap();
    layout.history(HistoryRow::at("create", "test", 1)).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, options).unwrap();
    let small: Vec<i16> = (0..15).map(|n| n % 7).collect();
    writer.array(few, TensorView::from_slice(&[5, 3], &small).unwrap()).unwrap();
    let floats: Vec<f32> = (0u8..70).map(f32::from).collect();
    writer.array(many, TensorView::from_slice(&[70], &floats).unwrap()).unwrap();
    writer.finish().unwrap().output
}

fn check_values(file: &File) {
    let small: Vec<i16> = (0..15).map(|n| n % 7).collect();
    let few = file.dataset("few").unwrap();
    assert_eq!(few.read_all().unwrap().as_slice::<i16>(), Some(&small[..]));
    let floats: Vec<f32> = (0u8..70).map(f32::from).collect();
    let many = file.dataset("many").unwrap();
    assert_eq!(many.read_all().unwrap().as_slice::<f32>(), Some(&floats[..]));
}

/// The offset of a string.
fn find(bytes: &[u8], text: &str) -> usize {
    bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap()
}

#[test]
fn block_and_spills_are_compatible() {
    let base = WriterOptions::new().with_zone_maps(true);
    for options in [base, base.with_inline_column_bytes(0), base.with_statistics(false)] {
        let bytes = with_block(options);
        let file = File::from_bytes("block", bytes.clone()).unwrap();
        assert_eq!(file.footer_version(), Some(2));
        let statistics = options.statistics;
        assert_eq!(*file.integrity_status(), IntegrityStatus::Checked { statistics });
        let zones = find(&bytes, "{\n  \"version\": 1,\n  \"generation\": 0,") as u64;
        assert_eq!(file.payload_end(), zones, "the first spill follows payloads and columns");
        check_values(&file);
        assert_eq!(file.dataset("many").unwrap().labels(0).unwrap()[69], "69");

        let source = std::sync::Arc::new(tercet_core::source::Memory::new("block", bytes.clone()));
        let report =
            tercet_tet::verify(source, VerifyOptions::default().with_deep(true), &NoProgress).unwrap();
        assert!(report.ok, "{:?}", report.findings);
        let warnings: Vec<_> =
            report.findings.iter().filter(|finding| finding.severity == Severity::Warning).collect();
        assert!(warnings.is_empty(), "{warnings:?}");
    }
}

#[test]
fn labels_that_only_the_block_holds_are_not_indexed() {
    let text = String::from_utf8_lossy(&with_block(WriterOptions::new().with_zone_maps(true))).into_owned();
    // `few`: values, sorted labels, labels. `many`: too many values, and labels that other readers ignore.
    let kinds: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("\"kind\": ")).collect();
    assert_eq!(kinds, ["\"value_postings\",", "\"sorted_axis_range\",", "\"coord_label_postings\","]);
    assert_eq!(text.matches("\"null_count\": 1,").count(), 2, "the fill value occurs in two chunks");
}

#[test]
fn flips_after_the_payloads_are_detected() {
    let bytes = with_block(WriterOptions::new().with_zone_maps(true));
    let payload_end = File::from_bytes("block", bytes.clone()).unwrap().payload_end() as usize;
    let json = find(&bytes, "{\"history\":");
    let flipped = |at: usize| {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        File::from_bytes("damaged", damaged)
    };
    for at in (payload_end..json).step_by(5) {
        assert!(flipped(at).is_err(), "byte {at}");
    }
    for at in json..bytes.len() {
        // A flip in the name or the version of the block removes the block: the values are correct.
        if let Ok(file) = flipped(at) {
            assert!(
                matches!(file.integrity_status(), IntegrityStatus::Absent | IntegrityStatus::Unknown),
                "byte {at}"
            );
            check_values(&file);
        }
    }
}

#[test]
fn spilled_metadata_follows_the_zone_maps() {
    let mut layout = Layout::new();
    let d = layout.dataset("d", ElementType::U8, [4], [2]).unwrap();
    for number in 0..64 {
        layout.attr(d, &format!("a{number}"), &"v".repeat(1024)).unwrap();
    }
    let options = WriterOptions::new().with_zone_maps(true);
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, options).unwrap();
    writer.array(d, TensorView::from_slice(&[4], &[1u8, 2, 3, 4]).unwrap()).unwrap();
    let bytes = writer.finish().unwrap().output;
    let file = File::from_bytes("spill", bytes.clone()).unwrap();
    assert_eq!(
        (file.footer_version(), file.integrity_status()),
        (Some(2), &IntegrityStatus::Checked { statistics: true })
    );
    assert_eq!(file.metadata().unwrap().datasets["d"].attrs.len(), 64);
    assert_eq!(file.payload_end(), find(&bytes, "{\n  \"version\": 1,") as u64);
    assert!(find(&bytes, "\"kind\": \"value_postings\"") < find(&bytes, "\"attrs\":{"));
    for at in [file.payload_end() as usize + 5, find(&bytes, "\"kind\""), find(&bytes, "vvvv")] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(File::from_bytes("damaged", damaged).is_err(), "byte {at}");
    }
}

#[test]
fn zone_maps_do_not_depend_on_write_order() {
    let options = WriterOptions::interop().with_zone_maps(true);
    let mut layout = Layout::new();
    let e = layout.dataset("e", ElementType::I16, [12, 6], [5, 4]).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, options).unwrap();
    let grid = writer.grid(e).clone();
    for linear in (0..grid.chunk_count()).rev() {
        let coords = grid.coords(linear);
        let coords = &coords[..2];
        let (rows, columns) = (grid.window(0, coords[0]), grid.window(1, coords[1]));
        let values: Vec<i16> = (rows.0..rows.1)
            .flat_map(|row| (columns.0..columns.1).map(move |column| E[row as usize][column as usize]))
            .collect();
        writer
            .chunk(e, coords, TensorView::from_slice(&grid.chunk_shape_at(coords), &values).unwrap())
            .unwrap();
    }
    assert_same("backwards", &writer.finish().unwrap().output, &v6(options));
}

#[test]
#[cfg(any(unix, windows))]
fn a_rewrite_omits_zone_maps() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tet");
    let options = WriterOptions::new().with_zone_maps(true);
    let mut layout = Layout::new();
    let a = layout.dataset("a", ElementType::U8, [3], [2]).unwrap();
    let mut writer = Writer::create(&path, layout, options).unwrap();
    writer.array(a, TensorView::from_slice(&[3], &[1u8, 2, 3]).unwrap()).unwrap();
    writer.finish().unwrap();
    assert_eq!(File::open(&path).unwrap().footer_version(), Some(2));

    let mut rewrite = tercet_tet::Rewrite::open(&path).unwrap();
    let b = rewrite.layout().dataset("b", ElementType::U8, [1], [1]).unwrap();
    let mut writer = rewrite.start(HistoryRow::at("append", "test", 2), options, &NoProgress).unwrap();
    writer.array(b, TensorView::from_slice(&[1], &[9u8]).unwrap()).unwrap();
    writer.finish().unwrap();
    let file = File::open(&path).unwrap();
    assert_eq!(
        (file.footer_version(), file.integrity_status()),
        (Some(1), &IntegrityStatus::Checked { statistics: true })
    );
    assert_eq!(file.dataset("a").unwrap().read_all().unwrap().bytes(), [1, 2, 3]);
}

#[test]
fn a_file_without_datasets_has_an_empty_map() {
    for options in [WriterOptions::interop(), WriterOptions::new().with_history(false)] {
        let writer = Writer::new(Cursor::new(Vec::new()), Layout::new(), options.with_zone_maps(true));
        let bytes = writer.unwrap().finish().unwrap().output;
        let file = File::from_bytes("empty", bytes.clone()).unwrap();
        assert_eq!((file.footer_version(), file.payload_end()), (Some(2), 32));
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(text.contains("\"chunks\": []\n}\n{\"history\":[]"), "{text}");
    }
}

/// A sink that is full at some point.
struct Full(Cursor<Vec<u8>>, u64);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.position() + bytes.len() as u64 > self.1 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Seek for Full {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}

impl Sink for Full {
    type Output = Vec<u8>;

    fn finish(self) -> std::io::Result<Vec<u8>> {
        self.0.finish()
    }
}

#[test]
fn a_full_sink_in_a_spill_is_a_write_error() {
    let write = |room: u64| {
        let mut layout = Layout::new();
        let d = layout.dataset("d", ElementType::U16, [1000], [1]).unwrap();
        let sink = Full(Cursor::new(Vec::new()), room);
        let mut writer = Writer::new(sink, layout, WriterOptions::interop().with_zone_maps(true)).unwrap();
        let values: Vec<u16> = (0..1000).map(|n| n % 64).collect();
        writer.array(d, TensorView::from_slice(&[1000], &values).unwrap()).unwrap();
        writer.finish().map(|written| written.output)
    };
    let whole = write(u64::MAX).unwrap();
    let payload_end = File::from_bytes("full", whole.clone()).unwrap().payload_end();
    let index = find(&whole, "\"indexes\": [") as u64;
    assert!(index > payload_end + (1 << 16), "the text does not come in one piece");
    for room in [payload_end, payload_end + 100_000, index, index + 30_000, whole.len() as u64 - 1] {
        let error = write(room).map(|bytes| bytes.len()).unwrap_err();
        assert!(
            matches!(
                error.kind(),
                ErrorKind::Common(CommonError::Write(reason)) if reason.kind() == std::io::ErrorKind::StorageFull
            ),
            "{error}"
        );
    }
}
