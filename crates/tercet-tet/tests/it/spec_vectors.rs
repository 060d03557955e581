//! Test vectors of `docs/spec/tet.md`: the writer produces the bytes of the document.

use std::io::Cursor;

use tercet_core::checksum::crc32c;
use tercet_core::{ElementType, TensorView};
use tercet_tet::{
    Compression, DatasetId, File, HistoryRow, IntegrityStatus, Layout, Range, Stats, Writer, WriterOptions,
};

use crate::document::{Vector, unhex};

/// The fifteen numbers of V3, V7 and V8.
const BIG: [i32; 15] = [412, 413, -624, 449, -594, -129, -524, 694, 992, 872, 810, 287, -409, 528, 543];

/// The eleven numbers of V4.
const R: [f32; 11] = [
    -23.203_125,
    1.984_375,
    27.328_125,
    -3.468_75,
    13.75,
    -3.796_875,
    18.359_375,
    14.531_25,
    -0.421_875,
    1.921_875,
    8.031_25,
];

/// Writes a file with at most one dataset.
fn write(layout: Layout, array: Option<(DatasetId, TensorView<'_>)>, options: WriterOptions) -> Vec<u8> {
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, options).unwrap();
    if let Some((id, view)) = array {
        writer.array(id, view).unwrap();
    }
    writer.finish().unwrap().output
}

fn big(options: WriterOptions) -> Vec<u8> {
    let mut layout = Layout::new();
    let id = layout.dataset("big", ElementType::I32, [3, 5], [8, 16]).unwrap();
    write(layout, Some((id, TensorView::from_slice(&[3, 5], &BIG).unwrap())), options)
}

/// With the integrity block, without a history row of Tercet.
fn with_block() -> WriterOptions {
    WriterOptions::new().with_history(false)
}

/// The bytes of V3 with the footer flag set.
fn big_with_footer_flag() -> Vec<u8> {
    let mut bytes = Vector::named("V3").bytes();
    bytes[12] = 1;
    bytes
}

#[test]
fn v1_empty() {
    let vector = Vector::named("V1");
    vector.assert_same(&write(Layout::new(), None, WriterOptions::interop()), &vector.bytes());
}

#[test]
fn v2_empty_with_footer() {
    let vector = Vector::named("V2");
    let mut layout = Layout::new();
    layout.history(HistoryRow::at("note", "golden", 1_700_000_000)).unwrap();
    vector.assert_same(&write(layout, None, WriterOptions::interop()), &vector.bytes());
}

#[test]
fn v3_one_clipped_chunk() {
    let vector = Vector::named("V3");
    vector.assert_same(&big(WriterOptions::interop()), &vector.bytes());
}

#[test]
fn v4_three_zstd_rows() {
    let vector = Vector::named("V4");
    let mut layout = Layout::new();
    let r = layout.dataset("r", ElementType::F32, [11], [4]).unwrap();
    layout.compress(r, Compression::Zstd { level: 3 }).unwrap();
    let bytes =
        write(layout, Some((r, TensorView::from_slice(&[11], &R).unwrap())), WriterOptions::interop());
    vector.assert_same(&bytes, &vector.bytes());
    let file = File::from_bytes("v4", bytes).unwrap();
    assert_eq!(file.dataset("r").unwrap().read_all().unwrap().as_slice::<f32>(), Some(&R[..]));
}

#[test]
fn v5_metadata() {
    let vector = Vector::named("V5");
    let expected = vector.bytes();
    let file = File::from_bytes("v5", expected.clone()).unwrap();
    assert_eq!(file.payload_end(), 872);
    let values = file.dataset("temp").unwrap().read_all().unwrap();
    let values = values.as_slice::<f32>().unwrap();
    assert_eq!(values[..5], [5.4375, 11.09375, 6.203_125, 8.046_875, 4.765_625]);

    let mut layout = Layout::new();
    let temp = layout.dataset("temp", ElementType::F32, [6, 5], [4, 2]).unwrap();
    layout.file_info("generator", "0", 1_700_000_000);
    layout.attr(temp, "units", "K").unwrap();
    layout.attr(temp, "long_name", "golden field").unwrap();
    layout.dims(temp, ["time", "station"]).unwrap();
    let days = (0..6).map(|day| format!("2024-01-{day:02}")).collect();
    layout.labels(temp, "time", days).unwrap();
    layout.labels(temp, "station", ["A", "B", "C", "D", "E"].map(str::to_owned).to_vec()).unwrap();
    layout.history(HistoryRow::at("convert", "h5", 1_700_000_001)).unwrap();
    let view = TensorView::from_slice(&[6, 5], values).unwrap();
    vector.assert_same(&write(layout, Some((temp, view)), WriterOptions::interop()), &expected);
}

#[test]
fn v6_footer_version_2() {
    let vector = Vector::named("V6");
    let Some(directory) = tercet_testkit::golden("tet") else { return };
    #[expect(clippy::disallowed_methods, reason = "a golden file as it is")]
    let bytes = std::fs::read(directory.join("embed_v2.tet")).unwrap();
    vector.assert_matches(&bytes);
    assert_eq!(crc32c(&bytes[896..896 + 1257]), 0x690e_3515, "zone maps");
    assert_eq!(crc32c(&bytes[2153..2153 + 3431]), 0x9fe7_0993, "secondary index");
    let file = File::from_bytes("v6", bytes).unwrap();
    assert_eq!((file.footer_version(), file.payload_end()), (Some(2), 896));
    let values = file.dataset("e").unwrap().read_all().unwrap();
    assert_eq!(values.as_slice::<i16>().unwrap()[..6], [7, 6, 4, 4, 1, 5]);
}

#[test]
fn v7_block_inline() {
    let vector = Vector::named("V7");
    let bytes = big(with_block());
    vector.assert_same(&bytes, &vector.over(&big_with_footer_flag()));
    check_statistics(bytes);
}

#[test]
fn v8_block_by_reference() {
    let vector = Vector::named("V8");
    let bytes = big(with_block().with_inline_column_bytes(0));
    vector.assert_same(&bytes, &vector.over(&big_with_footer_flag()));
    check_statistics(bytes);
}

/// The statistics that V7 and V8 hold.
fn check_statistics(bytes: Vec<u8>) {
    let file = File::from_bytes("big", bytes).unwrap();
    assert_eq!(*file.integrity_status(), IntegrityStatus::Checked { statistics: true });
    let dataset = file.dataset("big").unwrap();
    let range = Range::Signed { min: -624, max: 992, sum: 3720 };
    let expected = Stats { count: 15, nan_count: 0, range };
    assert_eq!(dataset.chunk_stats(&[0, 0]).unwrap(), Some(expected));
    assert_eq!(dataset.read_all().unwrap().as_slice::<i32>(), Some(&BIG[..]));
}

#[test]
fn v9_empty_with_block() {
    let vector = Vector::named("V9");
    let mut head = Vector::named("V1").bytes();
    head[12] = 1;
    for options in [with_block(), with_block().with_inline_column_bytes(0)] {
        let bytes = write(Layout::new(), None, options);
        vector.assert_same(&bytes, &vector.over(&head));
        File::from_bytes("v9", bytes).unwrap();
    }
}

#[test]
fn v10_statistics_rows() {
    fn row(view: TensorView<'_>) -> Vec<u8> {
        Stats::compute(view.dtype().element().unwrap(), view.bytes()).encode().to_vec()
    }
    let f32s = [1.5, f32::NAN, -0.0, 2.25];
    assert_eq!(
        row(TensorView::from_slice(&[4], &f32s).unwrap()),
        unhex(
            "0400000000000000 0100000000000000 0000000000000000 0000000000000240 0000000000000e40
             0000000000000000"
        )
    );
    assert_eq!(
        row(TensorView::from_slice(&[2], &[u64::MAX, u64::MAX]).unwrap()),
        unhex(
            "0200000000000000 0000000000000000 ffffffffffffffff ffffffffffffffff feffffffffffffff
             0100000000000000"
        )
    );
    assert_eq!(
        row(TensorView::from_slice(&[2], &[-5i16, 3]).unwrap()),
        unhex(
            "0200000000000000 0000000000000000 fbffffffffffffff 0300000000000000 feffffffffffffff
             ffffffffffffffff"
        )
    );
}
