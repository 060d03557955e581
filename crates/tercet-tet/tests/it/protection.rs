//! Protection cannot be switched off by damage: after any flipped bit and any truncation, a protected file gives the
//! same answers or an error. Unprotected files are read, for any metadata and payloads.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_core::{Class, Diagnostic as _, Outline, OutlineOptions, TensorView};
use tercet_testkit::damage::patched;
use tercet_tet::compat::Answer;
use tercet_tet::{
    ActionState, Compression, DatasetId, File, HistoryRow, IntegrityStatus, Layout, Merge, Query,
    ReadOptions, RepairOptions, Report, Rewrite, RunOptions, SalvageOptions, Syntax, VerifyOptions, Writer,
    WriterOptions, repair, salvage, salvage_file,
};

use crate::verify_path;

const VALUES: [f32; 6] = [280.5, -999.0, 279.0, 281.25, -999.0, 280.0];

/// A small file, and a query that depends on its attributes and labels.
struct Kind {
    name: &'static str,
    bytes: Vec<u8>,
    query: Value,
    /// Bytes of long strings that are not tried, because other bytes of the same strings are.
    skipped: BTreeSet<usize>,
}

/// Writes the dataset `t`: 3×2 with a fill value and axis names.
fn write(
    options: WriterOptions,
    compression: Compression,
    describe: impl FnOnce(&mut Layout, DatasetId),
) -> Vec<u8> {
    let mut layout = Layout::new();
    let id = layout.dataset("t", tercet_core::DType::F32, [3, 2], [2, 2]).unwrap();
    layout.compress(id, compression).unwrap();
    layout.attr(id, "_FillValue", "-999").unwrap();
    layout.dims(id, ["y", "x"]).unwrap();
    describe(&mut layout, id);
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, options.with_history(false)).unwrap();
    writer.array(id, TensorView::from_slice(&[3, 2], &VALUES).unwrap()).unwrap();
    writer.finish().unwrap().output
}

fn filtered_mean() -> Value {
    json!({"dataset": "t", "mean": [], "filter": {"is_not_null": true}})
}

fn raw_with_labels() -> Kind {
    let bytes = write(WriterOptions::new(), Compression::None, |layout, id| {
        layout.labels(id, "x", vec!["a".into(), "b".into()]).unwrap();
        layout.history(HistoryRow::at("create", "test", 1)).unwrap();
    });
    Kind { name: "raw with labels", bytes, query: filtered_mean(), skipped: BTreeSet::new() }
}

fn zstd() -> Kind {
    let bytes = write(WriterOptions::new(), Compression::Zstd { level: 3 }, |_, _| {});
    Kind { name: "zstd", bytes, query: filtered_mean(), skipped: BTreeSet::new() }
}

/// Zone maps, and metadata too large for the footer JSON. Its long attributes are tried at some bytes only.
fn zone_maps_and_spill() -> Kind {
    let filler = "v".repeat(1024);
    let bytes = write(WriterOptions::new().with_zone_maps(true), Compression::None, |layout, id| {
        for number in 0..63 {
            layout.attr(id, &format!("{number:02}"), &filler).unwrap();
        }
        layout.labels(id, "y", ["1", "2", "3"].map(|label| label.repeat(500)).to_vec()).unwrap();
    });
    let file = File::from_bytes("spill", bytes.clone()).unwrap();
    assert!(file.len() - file.payload_end() > 65_536 && file.footer_version() == Some(2));
    let same = |at: &usize| *at > 0 && bytes[at - 1] == bytes[*at] && bytes[*at] == b'v' && at % 997 != 0;
    let digits =
        |at: &usize| *at > 8 && bytes[at - 8..*at].iter().all(|byte| *byte == bytes[*at]) && at % 97 != 0;
    let end = file.payload_end() as usize;
    let skipped = (end..bytes.len()).filter(|at| same(at) || digits(at)).collect();
    Kind { name: "zone maps and spill", query: filtered_mean(), skipped, bytes }
}

fn long_labels() -> Kind {
    let mut layout = Layout::new();
    let id = layout.dataset("t", tercet_core::DType::U8, [66], [33]).unwrap();
    layout.attr(id, "_FillValue", "3").unwrap();
    layout.dims(id, ["s"]).unwrap();
    layout.labels(id, "s", (0..66).map(|n| n.to_string()).collect()).unwrap();
    let options = WriterOptions::new().with_history(false);
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, options).unwrap();
    let values: Vec<u8> = (0..66).map(|n| n % 7).collect();
    writer.array(id, TensorView::from_slice(&[66], &values).unwrap()).unwrap();
    let query = json!({
        "dataset": "t", "mean": [], "selection": [{"start_label": "5", "stop_label": "60"}],
        "filter": {"is_not_null": true},
    });
    let bytes = writer.finish().unwrap().output;
    Kind { name: "long labels", bytes, query, skipped: BTreeSet::new() }
}

/// Two datasets were appended and one dropped; no statistics.
fn appended_and_dropped() -> Kind {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tet");
    let plain = WriterOptions::new().with_statistics(false);
    std::fs::write(&path, write(plain, Compression::None, |_, _| {})).unwrap();
    let mut rewrite = Rewrite::open(&path).unwrap();
    let ids =
        ["u", "w"].map(|name| rewrite.layout().dataset(name, tercet_core::DType::U8, [5], [2]).unwrap());
    let mut writer = rewrite.start(HistoryRow::at("append", "test", 1), plain, &NoProgress).unwrap();
    for id in ids {
        writer.array(id, TensorView::from_slice(&[5], &[1u8, 2, 3, 4, 5]).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    let mut rewrite = Rewrite::open(&path).unwrap();
    rewrite.drop_dataset("u").unwrap();
    rewrite.start(HistoryRow::at("drop", "test", 2), plain, &NoProgress).unwrap().finish().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    Kind { name: "appended and dropped", bytes, query: filtered_mean(), skipped: BTreeSet::new() }
}

fn kinds() -> [Kind; 5] {
    [raw_with_labels(), zstd(), zone_maps_and_spill(), long_labels(), appended_and_dropped()]
}

/// The answers of the library: each a value, or an error.
#[derive(Debug, PartialEq)]
struct Answers {
    summary: Option<Value>,
    values: Vec<Option<Vec<u8>>>,
    query: Option<Value>,
}

fn open(bytes: &[u8]) -> Result<File, tercet_tet::Error> {
    File::from_bytes("a.tet", bytes.to_vec())
}

fn answers(bytes: &[u8], query: &Query) -> Option<Answers> {
    let file = open(bytes).ok()?;
    let options = RunOptions::new().with_parallel(Some(false));
    let answer = query.run(&file, &options, &NoProgress).ok();
    Some(Answers {
        summary: file.summary().ok().map(|summary| serde_json::to_value(summary).unwrap()),
        values: file.datasets().map(|dataset| Some(dataset.read_all().ok()?.bytes().to_vec())).collect(),
        query: answer.map(|result| operation(&Answer::new(&result))),
    })
}

/// The result of a query, without the memory and time it took.
fn operation(answer: &Answer<'_>) -> Value {
    let execution = serde_json::to_value(answer.execution.as_ref().unwrap()).unwrap();
    let members = execution.as_object().unwrap();
    members
        .iter()
        .filter(|(name, _)| name.starts_with("operation_"))
        .map(|(name, value)| json!([name, value]))
        .collect()
}

/// Whether every answer is the expected one or an error.
fn is_right(found: &Answers, expected: &Answers) -> bool {
    let fits = |found: &Option<Vec<u8>>, expected: &Option<Vec<u8>>| found.is_none() || found == expected;
    (found.summary.is_none() || found.summary == expected.summary)
        && found.values.len() == expected.values.len()
        && found.values.iter().zip(&expected.values).all(|(found, expected)| fits(found, expected))
        && (found.query.is_none() || found.query == expected.query)
}

fn verify(bytes: &[u8]) -> Report {
    let source = Arc::new(Memory::new("a.tet", bytes.to_vec()));
    tercet_tet::verify(source, VerifyOptions::default(), &NoProgress).unwrap()
}

/// The bytes that no reader uses.
fn unused(outline: &Outline, bytes: &mut BTreeSet<usize>) {
    if outline.name == "unused bytes" {
        bytes.extend(outline.span.start() as usize..outline.span.end() as usize);
    }
    outline.parts.iter().for_each(|part| unused(part, bytes));
}

/// Runs `check` for `0..count` on two threads, each with its own thread pool: the work is many tiny reads.
fn on_threads(count: usize, check: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        for first in 0..2 {
            let check = &check;
            scope.spawn(move || {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
                pool.install(|| (first..count).step_by(2).for_each(check));
            });
        }
    });
}

#[test]
fn no_flipped_bit_changes_an_answer() {
    for kind in kinds() {
        let Kind { name, bytes, .. } = &kind;
        let query = Query::parse(&kind.query.to_string(), Syntax::Json).unwrap();
        let expected = answers(bytes, &query).unwrap();
        assert!(is_right(&answers(bytes, &query).unwrap(), &expected), "{name}: the answers are repeatable");
        assert!(expected.summary.is_some() && expected.query.is_some(), "{name}: {expected:?}");
        assert!(verify(bytes).ok, "{name}: {:?}", verify(bytes));
        let mut unread = BTreeSet::new();
        unused(&open(bytes).unwrap().outline(OutlineOptions::new()).unwrap(), &mut unread);
        on_threads(bytes.len(), |offset| {
            if kind.skipped.contains(&offset) {
                return;
            }
            let mut damaged = bytes.clone();
            for bit in 0..8 {
                damaged[offset] = bytes[offset] ^ (1 << bit);
                if let Some(found) = answers(&damaged, &query) {
                    assert!(is_right(&found, &expected), "{name}: byte {offset}, bit {bit}: {found:?}");
                }
                let report = verify(&damaged);
                assert_eq!(
                    report.ok,
                    unread.contains(&offset),
                    "{name}: byte {offset}, bit {bit}: {report:?}"
                );
            }
        });
    }
}

#[test]
fn no_truncation_changes_an_answer() {
    for kind in kinds() {
        let Kind { name, bytes, .. } = &kind;
        let query = Query::parse(&kind.query.to_string(), Syntax::Json).unwrap();
        let expected = answers(bytes, &query).unwrap();
        on_threads(bytes.len(), |len| {
            if kind.skipped.contains(&len) {
                return;
            }
            let cut = &bytes[..len];
            if let Some(found) = answers(cut, &query) {
                assert!(is_right(&found, &expected), "{name}: {len} bytes: {found:?}");
            }
            assert!(!verify(cut).ok, "{name}: {len} bytes");
        });
    }
}

/// A changed copy of a damaged file must not have new checksums over the damage. Every change of a file is a rewrite, so
/// this is true of appending, dropping, renaming and editing as well.
#[test]
fn no_flipped_bit_is_copied_into_a_changed_file() {
    let options = WriterOptions::new().with_history(false);
    let rewritten = |path: &Path, bytes: &[u8]| {
        std::fs::write(path, bytes).unwrap();
        let rewrite = Rewrite::open(path).ok()?;
        rewrite.start(HistoryRow::at("change", "test", 3), options, &NoProgress).ok()?.finish().ok()?;
        Some(std::fs::read(path).unwrap())
    };
    for kind in kinds() {
        let Kind { name, bytes, .. } = &kind;
        let query = Query::parse(&kind.query.to_string(), Syntax::Json).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("intact.tet");
        let expected = answers(&rewritten(&path, bytes).unwrap(), &query).unwrap();
        on_threads(bytes.len(), |offset| {
            if kind.skipped.contains(&offset) {
                return;
            }
            let path = directory.path().join(format!("{}.tet", offset % 2));
            let mut damaged = bytes.clone();
            for bit in 0..8 {
                damaged[offset] = bytes[offset] ^ (1 << bit);
                if let Some(changed) = rewritten(&path, &damaged) {
                    let found = answers(&changed, &query).unwrap();
                    assert_eq!(found, expected, "{name}: byte {offset}, bit {bit}");
                }
            }
        });
    }
}

/// What is saved or merged from a damaged file is right, or the report names what is missing; safe repairs change no value.
/// One bit of each byte is flipped, every night all of them.
#[test]
fn no_flipped_bit_is_merged_salvaged_or_repaired_into_other_answers() {
    let options = WriterOptions::new().with_history(false);
    let merged = |bytes: &[u8]| {
        let mut merge = Merge::new();
        merge.add(&Arc::new(open(bytes).ok()?), str::to_owned, &NoProgress).ok()?;
        let mut writer = Writer::new(Cursor::new(Vec::new()), merge.finish().0, options).ok()?;
        writer.copy_stored(&NoProgress).ok()?;
        Some(writer.finish().ok()?.output)
    };
    let salvaged = |bytes: &[u8]| {
        let source = Arc::new(Memory::new("a.tet", bytes.to_vec()));
        salvage(source, Cursor::new(Vec::new()), SalvageOptions::new(), &NoProgress).ok()
    };
    let directory = tempfile::tempdir().unwrap();
    for kind in kinds() {
        let Kind { name, bytes, .. } = &kind;
        let query = Query::parse(&kind.query.to_string(), Syntax::Json).unwrap();
        let original = answers(bytes, &query).unwrap();
        let when_merged = answers(&merged(bytes).unwrap(), &query).unwrap();
        let when_saved = salvaged(bytes).unwrap();
        assert!(when_saved.is_complete(), "{name}: {when_saved:?}");
        let when_saved = answers(&when_saved.output, &query).unwrap();
        assert_eq!(when_saved.query, original.query, "{name}");
        on_threads(bytes.len(), |offset| {
            if kind.skipped.contains(&offset) {
                return;
            }
            let path = directory.path().join(format!("{}.tet", offset % 2));
            let mut damaged = bytes.clone();
            let all = tercet_testkit::cases(1) > 1;
            for bit in (0..8).filter(|bit| all || offset * 5 % 8 == *bit) {
                let what = format!("{name}: byte {offset}, bit {bit}");
                damaged[offset] = bytes[offset] ^ (1 << bit);
                if let Some(merged) = merged(&damaged) {
                    assert_eq!(answers(&merged, &query).unwrap(), when_merged, "{what}");
                }
                if let Some(saved) = salvaged(&damaged) {
                    let found = answers(&saved.output, &query).unwrap();
                    if saved.is_complete() {
                        assert_eq!(
                            (&found.values, &found.query),
                            (&when_saved.values, &when_saved.query),
                            "{what}"
                        );
                    } else if saved.lost_datasets.is_empty() {
                        let pairs = found.values.iter().zip(&when_saved.values);
                        assert!(
                            pairs.clone().all(|(found, saved)| found.is_none() || found == saved),
                            "{what}"
                        );
                    }
                }
                let codes = tercet_tet::safe_repairs(&verify(&damaged));
                if !codes.is_empty() {
                    std::fs::write(&path, &damaged).unwrap();
                    let apply = codes.iter().fold(RepairOptions::new(), |apply, code| apply.with_apply(code));
                    if repair(&path, &apply, &NoProgress).is_ok_and(|report| report.ok()) {
                        let found = answers(&std::fs::read(&path).unwrap(), &query).unwrap();
                        assert_eq!(found.values, original.values, "{what}: {codes:?}");
                        // A footer that is cut off takes the attributes with it; the file is unprotected from then on.
                        if codes.contains(&"footer_invalid") {
                            let status = File::open(&path).unwrap().integrity_status().clone();
                            assert_eq!(status, IntegrityStatus::Absent, "{what}: {codes:?}");
                        } else {
                            assert_eq!(found.query, original.query, "{what}: {codes:?}");
                        }
                    }
                }
            }
        });
    }
}

fn find(bytes: &[u8], text: &[u8]) -> usize {
    bytes.windows(text.len()).rposition(|window| window == text).unwrap()
}

/// Single flips that hide the block of a file, each with its name.
fn hidden(bytes: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let flipped = |at: usize, mask: u8| {
        let mut bytes = bytes.to_vec();
        bytes[at] ^= mask;
        bytes
    };
    let key: &[u8] =
        if open(bytes).unwrap().len() > 65_536 { br#""metadata_ref""# } else { br#""metadata""# };
    let version = find(bytes, br#""version":1"#);
    vec![
        ("footer flag", flipped(12, 1)),
        ("metadata", flipped(find(bytes, key) + 3, 1)),
        ("tercet", flipped(find(bytes, br#""tercet""#) + 1, 4)),
        ("version", flipped(version + 1, 2)),
        ("version digit", flipped(version + 10, 2)),
    ]
}

/// Every way to hide the block: refused by readers and writers, found by verify, and repaired with everything in it.
#[test]
fn a_hidden_block_is_refused_and_repaired() {
    let directory = tempfile::tempdir().unwrap();
    let (path, out) = (directory.path().join("a.tet"), directory.path().join("saved.tet"));
    for kind in kinds() {
        let intact = open(&kind.bytes).unwrap().summary().unwrap();
        for (place, bytes) in hidden(&kind.bytes) {
            let what = format!("{}: {place}", kind.name);
            let error = open(&bytes).unwrap_err();
            assert_eq!(error.class(), Class::Corrupt, "{what}: {error}");
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(Rewrite::open(&path).unwrap_err().class(), Class::Corrupt, "{what}");
            let unchecked = File::open_with(&path, ReadOptions::new().with_verify(false)).unwrap();
            assert_eq!(*unchecked.integrity_status(), IntegrityStatus::Ignored, "{what}");
            assert!(unchecked.dataset("t").unwrap().read_all().is_ok(), "{what}");

            let report = verify(&bytes);
            let finding = report.failures().next().unwrap();
            assert_eq!(finding.code, "tercet_block", "{what}");
            assert!(finding.site.as_ref().is_some_and(|site| site.span.is_some()), "{what}: {finding:?}");
            assert!(report.details.recommends("recompute_checksums"), "{what}: {report:?}");

            let options = SalvageOptions::new();
            let saved = salvage_file(&path, &out, true, options, &NoProgress).unwrap();
            assert!(saved.missing.is_empty() && !saved.notes.is_empty(), "{what}: {saved:?}");
            assert_same_contents(&out, &intact, &what);

            let options = RepairOptions::default().with_apply("recompute_checksums");
            let repaired = repair(&path, &options, &NoProgress).unwrap();
            assert!(repaired.ok(), "{what}: {repaired:?}");
            assert_same_contents(&path, &intact, &what);
        }
    }
}

/// The file is protected and has the metadata and labels of the summary.
fn assert_same_contents(path: &Path, intact: &tercet_tet::Summary, what: &str) {
    let found = File::open(path).unwrap().summary().unwrap();
    assert!(matches!(found.integrity_status, IntegrityStatus::Checked { .. }), "{what}");
    assert_eq!(found.metadata, intact.metadata, "{what}");
    assert_eq!(found.long_labels, intact.long_labels, "{what}");
    assert_eq!(found.history[..intact.history.len()], intact.history, "{what}");
}

/// A hidden block still proves damage: no repair accepts a damaged chunk, no salvage copies it.
#[test]
fn damage_beside_a_hidden_block_gets_no_new_checksum() {
    let directory = tempfile::tempdir().unwrap();
    let (path, out) = (directory.path().join("a.tet"), directory.path().join("saved.tet"));
    for kind in kinds() {
        let row = open(&kind.bytes).unwrap().row(0).unwrap();
        for (place, mut bytes) in hidden(&kind.bytes) {
            let what = format!("{}: {place}", kind.name);
            bytes[row.payload_offset as usize] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            let report = verify(&bytes);
            assert!(report.failures().any(|finding| finding.code == "tercet_payloads"), "{what}: {report:?}");
            let options = RepairOptions::default().with_apply("recompute_checksums");
            let repaired = repair(&path, &options, &NoProgress).unwrap();
            assert_eq!(repaired.actions[0].state, ActionState::Skipped, "{what}");
            assert!(std::fs::read(&path).unwrap() == bytes, "{what}");
            let options = SalvageOptions::new();
            assert_eq!(
                salvage_file(&path, &out, true, options, &NoProgress).unwrap().missing.len(),
                1,
                "{what}"
            );
        }
    }
}

/// Text that looks like a block, in every place that belongs to users.
fn suspicious(options: WriterOptions) -> Vec<u8> {
    let block = r#""tercet":{"version":1,"footer_crc32c":"00000000","catalog_crc32c":"00000000","rows":1,"#;
    write(options, Compression::None, |layout, id| {
        layout.attr(id, "note", block).unwrap();
        for name in ["footer_crc32c", "catalog_crc32c", "index_crc32c", "row_crc32c", "rows", "tercet"] {
            layout.attr(id, name, "00000000").unwrap();
        }
        layout.labels(id, "x", vec![block.to_owned(), "metadata_ref".to_owned()]).unwrap();
        layout.history(HistoryRow::at("create", block, 1).with_param("footer_crc32c", "00000000")).unwrap();
    })
}

fn assert_unprotected(what: &str, bytes: &[u8]) {
    let file = open(bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(*file.integrity_status(), IntegrityStatus::Absent, "{what}");
    assert!(file.datasets().all(|dataset| dataset.read_all().is_ok()), "{what}");
    assert!(verify(bytes).ok, "{what}: {:?}", verify(bytes));
}

#[test]
fn user_strings_are_no_trace() {
    for options in [WriterOptions::interop(), WriterOptions::interop().with_zone_maps(true)] {
        assert_unprotected("attributes", &suspicious(options));
    }
    let file = open(&suspicious(WriterOptions::new())).unwrap();
    assert!(matches!(file.integrity_status(), IntegrityStatus::Checked { .. }));
    // Datasets with the names of members.
    let mut layout = Layout::new();
    let names = ["footer_crc32c", "catalog_crc32c", "index_crc32c", "row_crc32c", "rows"];
    let ids = names.map(|name| layout.dataset(name, tercet_core::DType::U8, [1], [1]).unwrap());
    for id in ids {
        layout.attr(id, "units", "1").unwrap();
    }
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::interop()).unwrap();
    for id in ids {
        writer.array(id, TensorView::from_slice(&[1], &[7u8]).unwrap()).unwrap();
    }
    assert_unprotected("names of datasets", &writer.finish().unwrap().output);
}

/// A protected file stored as the values of an unprotected one is data.
#[test]
fn a_file_inside_a_payload_is_no_trace() {
    for kind in kinds() {
        for with_footer in [false, true] {
            let mut layout = Layout::new();
            let len = kind.bytes.len() as u64;
            let id = layout.dataset("file", tercet_core::DType::U8, [len], [len]).unwrap();
            if with_footer {
                layout.history(HistoryRow::at("create", "test", 1)).unwrap();
            }
            let options = WriterOptions::interop().with_history(false);
            let mut writer = Writer::new(Cursor::new(Vec::new()), layout, options).unwrap();
            writer.array(id, TensorView::from_slice(&[len], &kind.bytes).unwrap()).unwrap();
            let bytes = writer.finish().unwrap().output;
            assert_unprotected(kind.name, &bytes);
            assert_eq!(bytes.ends_with(&kind.bytes), !with_footer, "{}", kind.name);
        }
    }
}

/// A block whose footer does not parse any more, after its flag was cleared.
#[test]
fn parts_of_a_block_are_a_trace() {
    let bytes = raw_with_labels().bytes;
    let json = open(&bytes).unwrap().payload_end() as usize;
    let mut damaged = patched(&bytes, json, b"[");
    damaged[12] = 0;
    assert_eq!(open(&damaged).unwrap_err().class(), Class::Corrupt);
    assert!(!verify(&damaged).ok);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tet");
    std::fs::write(&path, &damaged).unwrap();
    let options = RepairOptions::default().with_apply("recompute_checksums");
    assert!(repair(&path, &options, &NoProgress).unwrap().ok());
    assert!(verify_path(&path, VerifyOptions::default(), &NoProgress).unwrap().ok);
}

/// An unprotected file with this footer JSON. Its dataset `t` has 70 elements.
fn with_footer(json: &Value) -> Vec<u8> {
    let mut layout = Layout::new();
    let id = layout.dataset("t", tercet_core::DType::U8, [70], [70]).unwrap();
    let options = WriterOptions::interop().with_history(false);
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, options).unwrap();
    writer.array(id, TensorView::from_slice(&[70], &[1u8; 70]).unwrap()).unwrap();
    let mut bytes = writer.finish().unwrap().output;
    bytes[12] = 1;
    let text = json.to_string();
    bytes.extend(text.as_bytes());
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend([1, 0, 0, 0]);
    bytes.extend(b"THST");
    bytes
}

/// A block of a later version has members of its own: the file is read without it.
#[test]
fn a_later_version_is_no_trace() {
    let bytes = with_footer(&json!({
        "metadata": {
            "datasets": {"t": {"attrs": {"units": "K"}}},
            "tercet": {"version": 2, "sha256": "…", "rows": 2},
            "other": {"rows": 2, "row_crc32c": "of another writer"},
        },
        "other_ref": {"offset": 200, "len": 8},
    }));
    assert_eq!(*open(&bytes).unwrap().integrity_status(), IntegrityStatus::Unknown);
    assert!(verify(&bytes).ok);
}

#[test]
fn long_labels_need_no_checksums() {
    let source = Arc::new(Memory::new("a.tet", long_labels().bytes));
    let file = File::from_source(source, ReadOptions::new().with_verify(false)).unwrap();
    let labels = file.dataset("t").unwrap().labels(0).unwrap();
    assert_eq!((labels.len(), &*labels[65]), (66, "65"));
    assert_eq!(file.summary().unwrap().long_labels["t"]["s"].len(), 66);
}

/// Labels in the block are those of their axis, not of another one with the same length.
#[test]
fn long_labels_belong_to_their_axis() {
    let mut layout = Layout::new();
    let id = layout.dataset("t", tercet_core::DType::U8, [66, 67, 66], [33, 67, 66]).unwrap();
    layout.labels(id, "0", (0..66).map(|n| n.to_string()).collect()).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    let values = vec![0u8; 66 * 67 * 66];
    writer.array(id, TensorView::from_slice(&[66, 67, 66], &values).unwrap()).unwrap();
    let file = open(&writer.finish().unwrap().output).unwrap();
    let dataset = file.dataset("t").unwrap();
    let counts = [0, 1, 2].map(|axis| dataset.labels(axis).map(<[String]>::len));
    assert_eq!(counts, [Some(66), None, None]);
}

/// More than 64 labels in `coords`: valid, with a warning.
#[test]
fn many_labels_in_coords_are_valid() {
    let labels: Vec<String> = (0..70).map(|n| n.to_string()).collect();
    let bytes = with_footer(&json!({"metadata": {"datasets": {"t": {"coords": {"0": {"labels": labels}}}}}}));
    let file = open(&bytes).unwrap();
    assert_eq!(file.dataset("t").unwrap().labels(0).unwrap().len(), 70);
    let report = verify(&bytes);
    assert!(report.ok, "{report:?}");
    let warning = report.findings.iter().find(|finding| finding.code == "label_count").unwrap();
    assert!(warning.message.as_ref().unwrap().contains("70 labels"), "{warning:?}");
}

/// A memory budget above 100 % counts as 100 %, and verify warns about it.
#[test]
fn a_budget_beyond_all_memory_is_clamped() {
    let mut bytes = with_footer(&json!({}));
    let at = open(&bytes).unwrap().superblock().chunk_index_offset as usize + 16;
    bytes[at..at + 2].copy_from_slice(&20_000u16.to_le_bytes());
    assert_eq!(open(&bytes).unwrap().memory_budget().percent_bps, 10_000);
    let report = verify(&bytes);
    assert!(report.ok, "{report:?}");
    let warning = report.findings.iter().find(|finding| finding.code == "memory_budget").unwrap();
    let span = warning.site.as_ref().unwrap().span.unwrap();
    assert_eq!(span.start() as usize, at, "{warning:?}");
}
