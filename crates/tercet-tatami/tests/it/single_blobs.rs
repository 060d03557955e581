//! Single blob values: a run is decoded only as far as needed, with the same result as a complete decode.

use std::io::Cursor;
use std::sync::Arc;

use tercet_core::source::Memory;
use tercet_tatami::format::Codec;
use tercet_tatami::{Column, Field, File, ReadOptions, Schema, Type, Values, Writer, WriterOptions};

const ROWS: u64 = 2000;

/// Similar pages of 0 to 6,000 bytes; every ninth row is null.
fn bodies() -> Column {
    let mut noise = 9u64;
    let mut next = move || {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        noise >> 33
    };
    let body = |row: u64, words: u64, next: &mut dyn FnMut() -> u64| {
        let text: Vec<String> = (0..words).map(|_| (next() % 5000).to_string()).collect();
        if words == 0 { String::new() } else { format!("<html><title>{row}</title>{}", text.join(" ")) }
    };
    let bodies: Vec<String> = (0..ROWS).map(|row| body(row, next() % 1200, &mut next)).collect();
    let present = (0..ROWS).map(|row| row % 9 != 4).collect();
    Column::new(Values::Bytes(bodies.iter().collect())).with_validity(present)
}

fn written(column: &Column, options: WriterOptions) -> Vec<u8> {
    let schema = Schema::new(vec![Field::new("body", Type::BlobRef).with_nulls()]).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), schema, options).unwrap();
    writer.append(std::slice::from_ref(column)).unwrap();
    writer.finish().unwrap().output
}

fn open(bytes: &[u8]) -> File {
    File::from_source(Arc::new(Memory::new("test", bytes.to_vec())), ReadOptions::default()).unwrap()
}

fn seen(column: &Column) -> Vec<Option<Vec<u8>>> {
    let Values::Bytes(values) = &column.values else { panic!("no strings") };
    let value = |row| column.is_present(row).then(|| values.get(row).to_vec());
    (0..column.len()).map(value).collect()
}

#[test]
fn rows_can_be_read_in_any_order() {
    let column = bodies();
    let all = seen(&column);
    let orders: [Vec<u64>; 7] = [
        vec![0],
        vec![ROWS - 1],
        vec![4],
        vec![17, 4, 17, 17, 1999, 0, 13],
        (0..ROWS).step_by(37).collect(),
        (0..ROWS).rev().step_by(91).collect(),
        (0..ROWS).collect(),
    ];
    for (codec, run) in
        [(Codec::Zstd, 100_000), (Codec::Zstd, 4 << 20), (Codec::Zstd, 500), (Codec::Lz4, 100_000)]
    {
        let options = WriterOptions::new()
            .with_codec(codec)
            .with_blob_run_target_bytes(run)
            .with_row_group_max_rows(700);
        let bytes = written(&column, options);
        for rows in &orders {
            let wanted: Vec<_> = rows.iter().map(|row| all[usize::try_from(*row).unwrap()].clone()).collect();
            let file = open(&bytes);
            for time in ["first", "again"] {
                assert!(seen(&file.take(rows, &[0]).unwrap()[0]) == wanted, "{codec} {run} {rows:?} {time}");
            }
            // One by one, as adjacent rows are read.
            for (row, wanted) in rows.iter().zip(&wanted).take(50) {
                assert!(seen(&file.take(&[*row], &[0]).unwrap()[0])[0] == *wanted, "{codec} {run} row {row}");
            }
        }
    }
}

#[test]
fn damage_anywhere_in_a_blob_run_is_detected() {
    let bytes = written(&bodies(), WriterOptions::new().with_blob_run_target_bytes(1 << 20));
    let run = open(&bytes).footer().blobs[0].runs[0];
    let (start, len) =
        (usize::try_from(run.offset).unwrap() + 32, usize::try_from(run.stored_bytes).unwrap());
    for at in [0, 5, 100, len / 2, len - 1] {
        let mut damaged = bytes.clone();
        damaged[start + at] ^= 0x40;
        assert!(open(&damaged).take(&[0], &[0]).is_err(), "byte {at} of the run");
    }
}
