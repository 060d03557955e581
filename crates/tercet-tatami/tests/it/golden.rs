//! Reads the files of the reference implementation.

use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};
use tercet_tatami::{Column, File, Scalar, Type, Values};

fn manifest() -> Option<(PathBuf, Value)> {
    let dir = tercet_testkit::golden("tatami")?;
    let text = std::fs::read_to_string(dir.join("manifest.json")).unwrap();
    Some((dir, serde_json::from_str(&text).unwrap()))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// The canonical dump of a column: 00 for null, 01 and the value otherwise.
fn canonical(column: &Column) -> String {
    let mut hash = Sha256::new();
    for row in 0..column.len() {
        if !column.is_present(row) {
            hash.update([0]);
            continue;
        }
        hash.update([1]);
        let value = column.scalar(row).unwrap().to_bytes();
        if matches!(column.values, Values::Bytes(_)) {
            hash.update((value.len() as u64).to_le_bytes());
        }
        hash.update(value);
    }
    hex(&hash.finalize())
}

/// A value by its bits, so that NaN equals itself.
fn bits(column: &Column, row: usize) -> Option<Vec<u8>> {
    column.scalar(row).map(|value| value.to_bytes())
}

fn files(manifest: &Value) -> &Vec<Value> {
    manifest["files"].as_array().unwrap()
}

fn open(dir: &Path, entry: &Value) -> File {
    File::open(dir.join(entry["path"].as_str().unwrap())).unwrap()
}

#[test]
fn column_values_match_the_reference() {
    let Some((dir, manifest)) = manifest() else { return };
    let mut columns = 0;
    for entry in files(&manifest) {
        let file = open(&dir, entry);
        let expected = entry["columns"].as_array().unwrap();
        assert_eq!(expected.len(), file.schema().len(), "{}", file.name());
        for (index, expected) in expected.iter().enumerate() {
            let column = file.read_column(index).unwrap();
            assert_eq!(column.len() as u64, file.rows(), "{}", file.name());
            assert_eq!(canonical(&column), expected["canonical_sha256"], "{} column {index}", file.name());
            assert_eq!(column.nulls() as u64, expected["nulls"].as_u64().unwrap());
            columns += 1;
        }
    }
    assert!(columns > 200, "{columns}");
}

#[test]
fn scans_and_single_rows_equal_whole_columns() {
    let Some((dir, manifest)) = manifest() else { return };
    for entry in files(&manifest) {
        let file = open(&dir, entry);
        let all: Vec<usize> = (0..file.schema().len()).collect();
        let whole = file.read_columns(&all).unwrap();
        for batch_rows in [1, 7, 64, 1000] {
            let mut rows = 0;
            for batch in file.scan().with_batch_rows(batch_rows).batches() {
                let batch = batch.unwrap().columns;
                let count = batch[0].len();
                for (column, part) in whole.iter().zip(&batch) {
                    for row in 0..count {
                        assert_eq!(bits(part, row), bits(column, rows + row), "{} {rows}+{row}", file.name());
                    }
                }
                rows += count;
            }
            assert_eq!(rows as u64, file.rows());
        }
        let some: Vec<u64> = (0..file.rows()).rev().step_by(7).chain((0..file.rows()).step_by(11)).collect();
        for (column, taken) in whole.iter().zip(file.take(&some, &all).unwrap()) {
            for (position, row) in some.iter().enumerate() {
                let row = usize::try_from(*row).unwrap();
                assert_eq!(bits(&taken, position), bits(column, row), "{} row {row}", file.name());
                assert_eq!(taken.is_present(position), column.is_present(row));
            }
        }
    }
}

#[test]
fn headers_schemas_and_metadata_match_the_reference() {
    let Some((dir, manifest)) = manifest() else { return };
    for entry in files(&manifest) {
        let file = open(&dir, entry);
        let (header, expected) = (file.header(), &entry["header"]);
        assert_eq!(u64::from(header.flags), expected["flags"].as_u64().unwrap());
        assert_eq!(header.rows, expected["row_count"].as_u64().unwrap());
        assert_eq!(header.footer_offset, expected["footer_offset"].as_u64().unwrap());
        assert_eq!(header.created_millis, expected["created_millis"].as_u64().unwrap());
        assert_eq!(u64::from(header.creator_id), expected["creator_id"].as_u64().unwrap());
        assert_eq!(u64::from(header.page_size_hint), expected["page_size_hint"].as_u64().unwrap());
        assert_eq!(hex(&header.uuid), expected["uuid_hex"].as_str().unwrap());
        let pairs: Vec<Value> =
            file.footer().pairs.iter().map(|(key, value)| serde_json::json!([key, value])).collect();
        assert_eq!(Value::from(pairs), entry["key_value"], "{}", file.name());
        let groups = entry["layout"]["row_groups"].as_array().map_or(&[][..], Vec::as_slice);
        assert_eq!(file.group_count(), groups.len());
        for (group, expected) in file.footer().groups.iter().zip(groups) {
            let bound = |name: &str| expected[name].as_str().map(str::to_owned);
            assert_eq!(group.bounds.as_ref().map(|zone| hex(&zone.min)), bound("sort_min_hex"));
            assert_eq!(group.bounds.as_ref().map(|zone| hex(&zone.max)), bound("sort_max_hex"));
            for (chunk, expected) in group.chunks.iter().zip(expected["chunks"].as_array().unwrap()) {
                let zone = |name: &str| expected[name].as_str().map(str::to_owned);
                assert_eq!(chunk.zone.as_ref().map(|zone| hex(&zone.min)), zone("zone_min_hex"));
                assert_eq!(chunk.zone.as_ref().map(|zone| hex(&zone.max)), zone("zone_max_hex"));
                assert_eq!(chunk.encoding.to_string(), expected["encoding"].as_str().unwrap());
                assert_eq!(chunk.pages, expected["pages"].as_array().unwrap().len() as u64);
            }
        }
    }
}

#[test]
fn lookups_match_the_reference() {
    let Some((dir, manifest)) = manifest() else { return };
    let mut lookups = 0;
    for entry in files(&manifest) {
        let Some(expected) = entry["lookups"].as_array() else { continue };
        let file = open(&dir, entry);
        for lookup in expected {
            let key = file.parse_key(lookup["key"].as_str().unwrap()).unwrap();
            let found = file.lookup(&key).unwrap();
            assert_eq!(found.is_some(), lookup["found"].as_bool().unwrap(), "{} {key}", file.name());
            if let Some(found) = found {
                assert_eq!(found.group as u64, lookup["group"].as_u64().unwrap());
                assert_eq!(found.row_in_group, lookup["row"].as_u64().unwrap());
                let sort_key = file.schema().sort_key().unwrap();
                assert_eq!(file.take(&[found.row], &[sort_key]).unwrap()[0].scalar(0), Some(key));
            }
            lookups += 1;
        }
    }
    assert!(lookups > 10, "{lookups}");
}

#[test]
fn a_key_of_another_type_is_refused() {
    let Some((dir, _)) = manifest() else { return };
    let sorted = File::open(dir.join("sorted_i64.tatami")).unwrap();
    assert!(sorted.lookup(&Scalar::Int32(1)).is_err());
    assert!(sorted.parse_key("red").is_err());
    let unsorted = File::open(dir.join("one_int.tatami")).unwrap();
    assert_eq!(unsorted.schema().fields()[0].kind, Type::Int32);
    assert!(unsorted.lookup(&Scalar::Int32(7)).unwrap_err().to_string().contains("no sort key"));
}

#[test]
fn reference_files_pass_verification() {
    use tercet_tatami::VerifyOptions;

    let Some((dir, manifest)) = manifest() else { return };
    for entry in files(&manifest) {
        let path = dir.join(entry["path"].as_str().unwrap());
        for deep in [false, true] {
            let options = VerifyOptions::default().with_deep(deep);
            let source = std::sync::Arc::new(tercet_core::source::File::open(&path).unwrap());
            let report = tercet_tatami::verify(source, options, &tercet_core::progress::NoProgress).unwrap();
            assert!(report.ok, "{} {:#?}", report.location, report.findings);
        }
        let file = File::open(&path).unwrap();
        let mut parts = 0;
        file.outline(tercet_core::OutlineOptions::new()).unwrap().walk(&mut |_, part| {
            parts += 1;
            assert!(part.span.end() <= file.len(), "{part:?}");
        });
        assert!(parts > 20, "{parts}");
    }
}
