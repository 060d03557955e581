//! The Parquet file of the golden set, converted: same pages, zone maps and bloom filters as the reference implementation.

use std::fmt::Write as _;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use crate::pages::Bytes;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tercet_arrow::{ColumnOptions, Format, Options, TableReader, Timestamps};
use tercet_core::source::Memory;
use tercet_tatami::{Writer, WriterOptions};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        write!(out, "{byte:02x}").unwrap();
        out
    })
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn converted(dir: &Path, column_options: ColumnOptions) -> Bytes {
    let bytes = std::fs::read(dir.join("convert/in.parquet")).unwrap();
    let source = Arc::new(Memory::new("in.parquet", bytes));
    let options = Options::new()
        .with_column_options(column_options)
        .with_timestamps(Timestamps::Raw)
        .with_interop(true);
    let rows = TableReader::open(source, Format::Parquet, &options, Some(4096)).unwrap();
    assert_eq!(rows.total(), Some(300));
    let schema = rows.table().schema().clone();
    let mut writer = Writer::new(Cursor::new(Vec::new()), schema, WriterOptions::interop()).unwrap();
    for batch in rows {
        writer.append(&batch.unwrap()).unwrap();
    }
    Bytes::new(writer.finish().unwrap().output)
}

fn compare(made: &Bytes, entry: &Value) {
    for (field, wanted) in made.file.schema().fields().iter().zip(entry["schema"].as_array().unwrap()) {
        assert_eq!(*field.name, *wanted["name"].as_str().unwrap());
        assert_eq!(field.kind.name(), wanted["type"], "{}", field.name);
        for (flag, name) in [
            (field.nullable, "nullable"),
            (field.sort_key, "sort_key"),
            (field.blob_separated, "blob_separated"),
            (field.dictionary_hint, "dict_hint"),
            (field.bloom, "bloom"),
        ] {
            assert_eq!(flag, wanted[name], "{} {name}", field.name);
        }
    }
    let footer = made.file.footer();
    let listed = entry["layout"]["row_groups"].as_array().unwrap();
    assert_eq!(footer.groups.len(), listed.len());
    let mut compared = 0;
    for (group, expected) in footer.groups.iter().zip(listed) {
        assert_eq!(group.rows, expected["num_rows"].as_u64().unwrap());
        for (chunk, expected) in group.chunks.iter().zip(expected["chunks"].as_array().unwrap()) {
            let zone = |name: &str| expected[name].as_str().map(str::to_owned);
            assert_eq!(chunk.zone.as_ref().map(|zone| hex(&zone.min)), zone("zone_min_hex"));
            assert_eq!(chunk.zone.as_ref().map(|zone| hex(&zone.max)), zone("zone_max_hex"));
            let filter = chunk.bloom.map(|number| {
                let entry = &footer.indexes[usize::try_from(number - 1).unwrap()];
                sha256(&made.record(entry.offset).stored)
            });
            assert_eq!(filter.as_deref(), expected["bloom_payload_sha256"].as_str());
            let wanted = expected["pages"].as_array().unwrap();
            let found = made.pages(chunk);
            assert_eq!(found.len(), wanted.len());
            for (page, wanted) in found.iter().zip(wanted) {
                assert_eq!(page.header.encoding.to_string(), wanted["encoding"]);
                assert_eq!(sha256(page.payload.as_ref().unwrap()), wanted["payload_sha256"]);
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 14);
    for (blob, wanted) in footer.blobs.iter().zip(entry["layout"]["blob_columns"].as_array().unwrap()) {
        let sizes: Vec<u64> = blob.runs.iter().map(|run| run.raw_bytes).collect();
        assert_eq!(serde_json::json!(sizes), wanted["run_uncompressed_sizes"]);
    }
}

#[test]
fn golden_conversions_have_the_pages_of_the_reference() {
    let Some(dir) = tercet_testkit::golden("tatami") else { return };
    let text = std::fs::read_to_string(dir.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    let entry = |path: &str| {
        let files = manifest["files"].as_array().unwrap();
        files.iter().find(|entry| entry["path"] == path).unwrap().clone()
    };
    compare(&converted(&dir, ColumnOptions::by_name()), &entry("convert/out.tatami"));
    let list = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let mut column_options = ColumnOptions::by_name();
    (column_options.blob, column_options.bloom, column_options.dict) =
        (list(&["title"]), list(&["host", "status"]), list(&["url"]));
    compare(&converted(&dir, column_options), &entry("convert/out_overrides.tatami"));
}

#[test]
fn millisecond_timestamps_are_scaled_unless_raw() {
    let Some(dir) = tercet_testkit::golden("tatami") else { return };
    let bytes = std::fs::read(dir.join("convert/in.parquet")).unwrap();
    let first = |timestamps: Timestamps| {
        let source = Arc::new(Memory::new("in.parquet", bytes.clone()));
        let options = Options::new().with_timestamps(timestamps);
        let mut rows = TableReader::open(source, Format::Parquet, &options, None).unwrap();
        let fetched = rows.table().schema().index_of("fetched").unwrap();
        let annotations = rows.table().annotations().into_iter().find(|(key, _)| key.ends_with(":fetched"));
        (rows.next().unwrap().unwrap()[fetched].scalar(0).unwrap().to_string(), annotations)
    };
    let (raw, annotations) = first(Timestamps::Raw);
    assert_eq!(annotations, None);
    let (scaled, annotations) = first(Timestamps::Exact);
    assert_eq!(scaled, format!("{raw}000"));
    assert_eq!(annotations, Some(("arrow.type:fetched".to_owned(), "timestamp[ms, UTC]".to_owned())));
}
