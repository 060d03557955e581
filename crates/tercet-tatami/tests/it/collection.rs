//! Collections: manifests, changes, scans over all members.

mod changes;
mod damage;
mod faults;
mod golden;
mod model;

use std::path::{Path, PathBuf};

use tercet_tatami::{Bitmap, Column, Field, Schema, Type, Values, Writer, WriterOptions};

/// Writes a file with a sorted key, a nullable string and a float.
fn write(path: &Path, rows: &[(i64, Option<&str>)]) {
    let schema = Schema::new(vec![
        Field::new("key", Type::Int64).with_sort_key(),
        Field::new("note", Type::String).with_nulls(),
        Field::new("weight", Type::Float64),
    ])
    .unwrap();
    let options = WriterOptions::new().with_row_group_max_rows(7).with_page_max_values(3);
    let mut writer = Writer::create(path, schema, options.with_overwrite(true)).unwrap();
    let keys = rows.iter().map(|(key, _)| *key).collect();
    let notes = rows.iter().map(|(_, note)| note.unwrap_or_default().as_bytes()).collect();
    let mut present = Bitmap::default();
    for (_, note) in rows {
        present.push(note.is_some());
    }
    #[expect(clippy::cast_precision_loss, reason = "small")]
    let weights = rows.iter().map(|(key, _)| if key % 5 == 0 { f64::NAN } else { *key as f64 }).collect();
    writer
        .append(&[
            Column::new(Values::Int64(keys)),
            Column::new(Values::Bytes(notes)).with_validity(present),
            Column::new(Values::Float64(weights)),
        ])
        .unwrap();
    writer.finish().unwrap();
}

/// A directory with files `a`, `b` and `c` of some rows each.
fn three() -> (tempfile::TempDir, Vec<PathBuf>) {
    let dir = tempfile::tempdir().unwrap();
    let rows = |from: i64| -> Vec<(i64, Option<&str>)> {
        (from..from + 20).map(|key| (key, (key % 3 != 0).then_some("x"))).collect()
    };
    let paths: Vec<PathBuf> = [("a", 0), ("b", 100), ("c", 200)]
        .iter()
        .map(|(name, from)| {
            let path = dir.path().join(format!("{name}.tatami"));
            write(&path, &rows(*from));
            path
        })
        .collect();
    (dir, paths)
}
