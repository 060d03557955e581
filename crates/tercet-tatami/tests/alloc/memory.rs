//! Memory does not grow with the file.

use crate::columns::{Noise, Shape, column};
use tercet_tatami::{Column, Field, File, Schema, Type, Writer, WriterOptions};
use tercet_testkit::alloc::{exclusive, measure};

fn batch(rows: usize, noise: &mut Noise) -> Vec<Column> {
    let text = Field::new("", Type::String);
    let body: Vec<Vec<u8>> = (0..rows)
        .map(|_| {
            let start = noise.next();
            let word = |at: u64| (start.wrapping_mul(at) % 3000).to_string().into_bytes();
            (0..1500).flat_map(word).collect()
        })
        .collect();
    vec![
        column(&Field::new("", Type::UInt64), rows, Shape::Noise, noise),
        column(&text, rows, Shape::Noise, noise),
        Column::new(tercet_tatami::Values::Bytes(body.iter().collect())),
    ]
}

#[test]
fn memory_does_not_grow_with_the_row_count() {
    let _exclusive = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let fields = || {
        vec![
            Field::new("id", Type::UInt64).with_bloom(),
            Field::new("title", Type::String).with_bloom(),
            Field::new("body", Type::BlobRef),
        ]
    };
    let peak_of = |batches: usize| {
        let path = dir.path().join(format!("{batches}.tatami"));
        let batch = batch(1000, &mut Noise(9));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let options = WriterOptions::new().with_row_group_max_bytes(4 << 20);
        let (rows, stats) = measure(|| {
            pool.install(|| {
                let schema = Schema::new(fields()).unwrap();
                let mut writer = Writer::create(&path, schema, options.with_overwrite(true)).unwrap();
                (0..batches).for_each(|_| writer.append(&batch).unwrap());
                writer.finish().unwrap().rows
            })
        });
        let file = File::open(&path).unwrap();
        assert_eq!((rows, file.rows()), (batches as u64 * 1000, rows));
        let some = [0, 999, rows / 2, rows - 1];
        let taken = file.take(&some, &[1, 2]).unwrap();
        for (position, row) in some.into_iter().enumerate() {
            let row = usize::try_from(row % 1000).unwrap();
            assert!(taken[0].scalar(position) == batch[1].scalar(row), "row {row}");
            assert!(taken[1].scalar(position) == batch[2].scalar(row), "row {row}");
        }
        (stats.peak_bytes, file.len())
    };
    // The smaller file has just enough values for the dictionary trial.
    let (few, bytes) = peak_of(15);
    assert!(few < 192 << 20, "{few} bytes for a file of {bytes}");
    let (many, bytes) = peak_of(45);
    assert!(many < few + (4 << 20), "{many} bytes for a file of {bytes}, {few} for a third of it");
}
