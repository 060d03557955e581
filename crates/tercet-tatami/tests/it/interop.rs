//! Rewrites reference files from their rows: the same pages, zones, filters and runs.

use std::io::Cursor;
use std::path::PathBuf;

use crate::pages::Bytes;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tercet_tatami::format::{Kind, file_flags};
use tercet_tatami::{Column, File, Writer, WriterOptions};

fn manifest() -> Option<(PathBuf, Value)> {
    let dir = tercet_testkit::golden("tatami")?;
    let text = std::fs::read_to_string(dir.join("manifest.json")).unwrap();
    Some((dir, serde_json::from_str(&text).unwrap()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The writer options of the file; 0 is the default.
fn options(entry: &Value) -> WriterOptions {
    let mut out = WriterOptions::interop().with_require_sorted(false);
    let listed = &entry["writer_options"];
    let number = |name: &str| listed[name].as_u64().filter(|number| *number > 0);
    let short = |name: &str| number(name).map(|number| u32::try_from(number).unwrap());
    out.row_group_max_rows = number("row_group_max_rows").unwrap_or(out.row_group_max_rows);
    out.row_group_max_bytes = number("row_group_max_bytes").unwrap_or(out.row_group_max_bytes);
    out.page_max_values = short("page_max_values").unwrap_or(out.page_max_values);
    out.page_size_hint = short("page_size_hint");
    out.blob_run_target_bytes = number("blob_run_target_bytes").unwrap_or(out.blob_run_target_bytes);
    out.created_millis = number("created_millis").unwrap_or(0);
    out.creator_id = short("creator_id").unwrap_or(0);
    if let Some(text) = listed["uuid_hex"].as_str() {
        for (byte, place) in out.uuid.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&text[place..place + 2], 16).unwrap();
        }
    }
    // The writer adds the version and the sort key itself.
    let is_sorted = entry["key_value"][1][0] == "tatami.sort_key";
    for pair in &entry["key_value"].as_array().unwrap()[1 + usize::from(is_sorted)..] {
        out = out.with_metadata(pair[0].as_str().unwrap(), pair[1].as_str().unwrap());
    }
    out
}

fn part(column: &Column, from: usize, to: usize) -> Column {
    let mut out = column.take(&[]);
    out.extend_from(column, from, to);
    out
}

/// Writes the rows of a file again, in the original batches.
fn rewrite(file: &File, entry: &Value) -> Vec<u8> {
    let all: Vec<usize> = (0..file.schema().len()).collect();
    let columns = file.read_columns(&all).unwrap();
    let rows = usize::try_from(file.rows()).unwrap();
    let batch = entry["append_batch_rows"].as_u64().filter(|batch| *batch > 0).unwrap_or(4096);
    let batch = usize::try_from(batch).unwrap();
    let schema = (**file.schema()).clone();
    let mut writer = Writer::new(Cursor::new(Vec::new()), schema, options(entry)).unwrap();
    for start in (0..rows).step_by(batch) {
        let end = rows.min(start + batch);
        let piece: Vec<Column> = columns.iter().map(|column| part(column, start, end)).collect();
        writer.append(&piece).unwrap();
    }
    let written = writer.finish().unwrap();
    assert_eq!((written.rows, written.requires), (rows as u64, 0));
    written.output
}

fn is_nan(kind: &str, bound: &str) -> bool {
    let bytes: Vec<u8> = (0..bound.len() / 2)
        .map(|digit| u8::from_str_radix(&bound[2 * digit..2 * digit + 2], 16).unwrap())
        .collect();
    match kind {
        "float32" => f32::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        "float64" => f64::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        _ => false,
    }
}

#[test]
fn reference_files_are_rewritten() {
    let Some((dir, manifest)) = manifest() else { return };
    let (mut files, mut pages, mut zones, mut blooms) = (0, 0, 0, 0);
    for entry in manifest["files"].as_array().unwrap() {
        if entry["how_made"].as_str().unwrap().starts_with("CRAFTED") {
            continue;
        }
        let original = File::open(dir.join(entry["path"].as_str().unwrap())).unwrap();
        let name = original.name().clone();
        let again = Bytes::new(rewrite(&original, entry));
        let is_segment = original.header().has(file_flags::ROLE_SEARCH_SEG);
        let (footer, header) = (again.file.footer(), again.file.header());
        if !is_segment {
            let either = file_flags::HAS_DICT_REGION;
            assert_eq!(header.flags | either, original.header().flags | either, "{name}");
            assert_eq!(footer.pairs, original.footer().pairs, "{name}");
        }
        assert_eq!(header.page_size_hint, original.header().page_size_hint, "{name}");
        assert_eq!(header.uuid, original.header().uuid, "{name}");
        assert_eq!(header.created_millis, original.header().created_millis, "{name}");
        assert_eq!(header.creator_id, original.header().creator_id, "{name}");
        let listed = entry["layout"]["row_groups"].as_array().map_or(&[][..], Vec::as_slice);
        assert_eq!(footer.groups.len(), listed.len(), "{name}");
        for (group, expected) in footer.groups.iter().zip(listed) {
            assert_eq!(group.first_row, expected["first_row"].as_u64().unwrap(), "{name}");
            assert_eq!(group.rows, expected["num_rows"].as_u64().unwrap(), "{name}");
            let bound = |name: &str| expected[name].as_str().map(str::to_owned);
            assert_eq!(group.bounds.as_ref().map(|zone| hex(&zone.min)), bound("sort_min_hex"), "{name}");
            assert_eq!(group.bounds.as_ref().map(|zone| hex(&zone.max)), bound("sort_max_hex"), "{name}");
            let chunks = expected["chunks"].as_array().unwrap();
            for ((chunk, expected), field) in group.chunks.iter().zip(chunks).zip(original.schema().fields())
            {
                let at = format!("{name} column {}", field.name);
                assert_eq!(chunk.encoding.to_string(), expected["encoding"], "{at}");
                assert_eq!(chunk.codec.to_string(), expected["codec"], "{at}");
                let bounds = [&expected["zone_min_hex"], &expected["zone_max_hex"]];
                let strange = bounds
                    .iter()
                    .any(|bound| bound.as_str().is_some_and(|bound| is_nan(field.kind.name(), bound)));
                if !strange {
                    let zone = chunk.zone.as_ref().map(|zone| [hex(&zone.min), hex(&zone.max)]);
                    let wanted = bounds[0]
                        .as_str()
                        .map(|min| [min.to_owned(), bounds[1].as_str().unwrap().to_owned()]);
                    assert_eq!(zone, wanted, "{at}");
                    zones += usize::from(zone.is_some());
                }
                let wanted = expected["pages"].as_array().unwrap();
                let found = again.pages(chunk);
                assert_eq!(found.len(), wanted.len(), "{at}");
                for (page, wanted) in found.iter().zip(wanted) {
                    let header = &page.header;
                    assert_eq!(sha256(page.payload.as_ref().unwrap()), wanted["payload_sha256"], "{at}");
                    assert_eq!(header.encoding.to_string(), wanted["encoding"], "{at}");
                    let number = |name: &str| wanted[name].as_u64().unwrap();
                    assert_eq!(u64::from(header.raw_bytes), number("uncompressed_size"), "{at}");
                    assert_eq!(u64::from(header.nulls), number("null_count"), "{at}");
                    assert_eq!(u64::from(header.values), number("num_values"), "{at}");
                    assert_eq!(u64::from(header.first_row), number("first_row_index"), "{at}");
                    assert_eq!(u64::from(header.flags), number("flags"), "{at}");
                    pages += 1;
                }
                let filter = chunk.bloom.map(|number| {
                    let entry = &footer.indexes[usize::try_from(number - 1).unwrap()];
                    let record = again.record(entry.offset);
                    assert_eq!(record.header.kind, Kind::Index);
                    assert_eq!(entry.payload_bytes, record.stored.len() as u64);
                    sha256(&record.stored)
                });
                let wanted = expected["bloom_payload_sha256"].as_str();
                assert_eq!(filter.as_deref(), wanted, "{at}");
                blooms += usize::from(filter.is_some());
            }
        }
        for (blob, wanted) in footer.blobs.iter().zip(&original.footer().blobs) {
            let runs = |runs: &[tercet_tatami::format::Run]| -> Vec<(u64, u64)> {
                runs.iter().map(|run| (run.values, run.raw_bytes)).collect()
            };
            assert_eq!(runs(&blob.runs), runs(&wanted.runs), "{name}");
        }
        let all: Vec<usize> = (0..original.schema().len()).collect();
        let (before, after) = (original.read_columns(&all).unwrap(), again.file.read_columns(&all).unwrap());
        // The debug format prints every NaN alike, while NaN is not equal to itself.
        assert_eq!(format!("{before:?}"), format!("{after:?}"), "{name}");
        files += 1;
    }
    println!("{files} files, {pages} pages, {zones} zones, {blooms} filters");
    assert!(files >= 30 && pages > 500 && zones > 300 && blooms > 20);
}
