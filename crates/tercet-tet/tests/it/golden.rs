//! Files of the reference implementation: every one is read correctly and rewritten byte for byte.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::PathBuf;

use crate::verify_path;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tercet_core::Selection;
use tercet_core::progress::NoProgress;
use tercet_tet::{
    Access, Codec, Compression, File, HistoryRow, IntegrityStatus, Layout, MemoryBudget, ReadOptions,
    VerifyOptions, Writer, WriterOptions,
};

/// Files with footer version 2, which Tercet writes only on request.
const VERSION_2: [&str; 4] =
    ["embed_v2.tet", "embed_v2_labels.tet", "embed_v2_spill.tet", "python_writer.tet"];

/// Files edited by hand, and their originals.
const PATCHED: [(&str, &str); 7] = [
    ("footer_unknown_keys.tet", "labels.tet"),
    ("history_triples.tet", "labels.tet"),
    ("name_padding_nonzero.tet", "single_chunk.tet"),
    ("payload_gaps.tet", "dtype_f32_zstd.tet"),
    ("reserved_nonzero.tet", "single_chunk.tet"),
    ("rows_reversed.tet", "dtype_i32_raw.tet"),
    ("trailing_bytes.tet", "single_chunk.tet"),
];

#[derive(Deserialize)]
struct Manifest {
    file_count: usize,
    files: BTreeMap<String, Expected>,
}

/// A file in the manifest.
#[derive(Deserialize)]
struct Expected {
    size: u64,
    sha256_file: String,
    flags: u32,
    index_offset: u64,
    index_length: u64,
    datasets: Vec<ExpectedDataset>,
    footer: Option<ExpectedFooter>,
    metadata: Option<Value>,
    #[serde(default)]
    memory_budget_percent_bps: u16,
    #[serde(default)]
    memory_budget_bytes: u32,
    reference_verify_ok: bool,
    #[serde(default)]
    reference_verify_notes: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct ExpectedDataset {
    name: String,
    dtype: String,
    dtype_tag: u32,
    shape: Vec<u64>,
    chunk_shape: Vec<u64>,
    chunks: u64,
    codec: Vec<u32>,
    sha256_array_le: String,
}

#[derive(Deserialize)]
struct ExpectedFooter {
    history_version: u32,
    history: Vec<HistoryRow>,
}

struct Golden {
    name: String,
    path: PathBuf,
    bytes: Vec<u8>,
    expected: Expected,
}

/// Every file of the manifest; none without the golden directory.
fn golden() -> Vec<Golden> {
    let Some(directory) = tercet_testkit::golden("tet") else { return Vec::new() };
    let manifest = std::fs::read(directory.join("manifest.json")).expect("a manifest");
    let manifest: Manifest = serde_json::from_slice(&manifest).expect("a manifest that parses");
    assert_eq!((manifest.file_count, manifest.files.len()), (65, 65));
    let golden = |(name, expected): (String, Expected)| {
        let path = directory.join(&name);
        let bytes = std::fs::read(&path).expect("every file of the manifest exists");
        Golden { name, path, bytes, expected }
    };
    manifest.files.into_iter().map(golden).collect()
}

/// The valid files: name and bytes.
pub(crate) fn valid_files() -> impl Iterator<Item = (String, Vec<u8>)> {
    golden().into_iter().filter(|file| file.expected.reference_verify_ok).map(|file| (file.name, file.bytes))
}

fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

impl Golden {
    fn open(&self) -> File {
        File::from_bytes(&self.name, self.bytes.clone()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Opens the same file through every source.
    fn open_every_way(&self) -> Vec<(&'static str, File)> {
        let open = |access| File::open_with(&self.path, ReadOptions::new().with_access(access)).unwrap();
        let unchecked = File::open_with(&self.path, ReadOptions::new().with_verify(false)).unwrap();
        vec![
            ("memory", self.open()),
            ("mmap", open(Access::Mmap)),
            ("pread", open(Access::Pread)),
            ("unchecked", unchecked),
        ]
    }
}

#[test]
fn files_match_the_manifest() {
    for golden in golden() {
        assert_eq!(golden.bytes.len() as u64, golden.expected.size, "{}", golden.name);
        assert_eq!(sha256(&golden.bytes), golden.expected.sha256_file, "{}", golden.name);
    }
}

#[test]
fn catalogs_match_the_manifest() {
    for golden in golden() {
        let (name, expected, file) = (&golden.name, &golden.expected, golden.open());
        let superblock = file.superblock();
        assert_eq!(file.len(), expected.size, "{name}");
        assert_eq!(superblock.flags, expected.flags, "{name}");
        assert_eq!(superblock.chunk_index_offset, expected.index_offset, "{name}");
        assert_eq!(superblock.chunk_index_length, expected.index_length, "{name}");
        let budget = MemoryBudget {
            percent_bps: expected.memory_budget_percent_bps,
            bytes: expected.memory_budget_bytes,
        };
        assert_eq!(file.memory_budget(), budget, "{name}");
        assert_eq!(*file.integrity_status(), IntegrityStatus::Absent, "{name}");

        assert_eq!(file.datasets().len(), expected.datasets.len(), "{name}");
        assert_eq!(file.chunk_count(), expected.datasets.iter().map(|d| d.chunks).sum::<u64>(), "{name}");
        let mut codecs: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        file.for_each_row(|_, row| codecs.entry(row.dataset_id).or_default().push(row.codec)).unwrap();
        for (id, (dataset, expected)) in (0..).zip(file.datasets().zip(&expected.datasets)) {
            let name = format!("{name} {}", expected.name);
            assert_eq!(dataset.name(), expected.name);
            assert_eq!(file.dataset(&expected.name).unwrap().id(), dataset.id(), "{name}");
            assert_eq!(dataset.dtype_tag(), expected.dtype_tag, "{name}");
            assert_eq!(dataset.dtype().unwrap().short_name(), expected.dtype, "{name}");
            assert_eq!(dataset.shape(), expected.shape, "{name}");
            assert_eq!(dataset.chunk_shape(), expected.chunk_shape, "{name}");
            assert_eq!(dataset.grid().unwrap().chunk_count(), expected.chunks, "{name}");
            let mut found = codecs[&id].clone();
            assert_eq!(found.len() as u64, expected.chunks, "{name}");
            found.sort_unstable();
            found.dedup();
            assert_eq!(found, expected.codec, "{name}");
        }
    }
}

#[test]
fn arrays_match_by_every_read_path() {
    for golden in golden() {
        for (way, file) in golden.open_every_way() {
            for expected in &golden.expected.datasets {
                let name = format!("{} {} by {way}", golden.name, expected.name);
                let dataset = file.dataset(&expected.name).unwrap();
                let tensor = dataset.read_all().unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(sha256(tensor.bytes()), expected.sha256_array_le, "{name}");
                assert_eq!(tensor.shape()[..], expected.shape, "{name}");

                let mut streamed = Vec::new();
                let export = dataset.export(&Selection::full(&expected.shape)).unwrap();
                export.stream(&mut streamed, &NoProgress).unwrap();
                assert_eq!(sha256(&streamed), expected.sha256_array_le, "{name} streamed");
                assert_eq!(dataset.chunk_stats(&vec![0; expected.shape.len()]).unwrap(), None, "{name}");
            }
        }
    }
}

#[test]
fn footers_match_the_manifest() {
    let mut footers = 0;
    for golden in golden() {
        let (name, file) = (&golden.name, golden.open());
        let Some(expected) = &golden.expected.footer else {
            assert_eq!((file.footer_version(), file.metadata()), (None, None), "{name}");
            assert!(file.history().is_empty(), "{name}");
            continue;
        };
        footers += 1;
        assert_eq!(file.footer_version(), Some(expected.history_version), "{name}");
        assert_eq!(VERSION_2.contains(&&**name), expected.history_version == 2, "{name}");
        assert_eq!(file.history(), expected.history, "{name}");
        let metadata = serde_json::to_value(file.metadata()).unwrap();
        match &golden.expected.metadata {
            None => assert_eq!(metadata, Value::Object(serde_json::Map::new()), "{name}"),
            // The manifest has the hash of large metadata only.
            Some(large) if large.get("sha256_compact_json_of_file_spill").is_some() => {
                let text = serde_json::to_vec(file.metadata().unwrap()).unwrap();
                assert_eq!(large["sha256_compact_json_of_file_spill"], sha256(&text), "{name}");
            }
            // The manifest does not list members that readers skip.
            Some(expected) => assert_part_of(expected, &metadata, name),
        }
    }
    assert!(footers == 15 || footers == 0, "{footers} footers");
}

/// Asserts that every member of `part` is one of `whole`, and that arrays and strings are equal.
fn assert_part_of(part: &Value, whole: &Value, name: &str) {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            for (key, value) in part {
                let found = whole.get(key).unwrap_or_else(|| panic!("{name}: no `{key}`"));
                assert_part_of(value, found, &format!("{name} › {key}"));
            }
        }
        _ => assert_eq!(part, whole, "{name}"),
    }
}

#[test]
fn axis_names_and_labels_are_read() {
    for golden in golden() {
        let file = golden.open();
        match &*golden.name {
            "labels.tet" => {
                let dataset = file.dataset("temp").unwrap();
                assert_eq!(dataset.axis_name(1), Some("station"));
                assert_eq!(dataset.labels(1).unwrap(), ["A", "B", "C", "D", "E"]);
                assert_eq!(dataset.labels(0).unwrap().len(), 6);
                assert_eq!(dataset.labels(2), None);
                assert_eq!(dataset.info().unwrap().attrs["units"], "K");
            }
            "coords_no_dimnames.tet" => {
                let dataset = file.dataset("temp").unwrap();
                assert_eq!(dataset.axis_name(0), None);
                assert_eq!(dataset.labels(0).unwrap()[5], "2024-01-05", "the only ones that fit");
                assert_eq!(dataset.labels(1), None);
            }
            _ => {}
        }
    }
}

#[test]
fn verify_agrees_with_the_reference() {
    for golden in golden() {
        let (name, expected) = (&golden.name, &golden.expected);
        let report =
            verify_path(&golden.path, VerifyOptions::default().with_deep(true), &NoProgress).unwrap();
        assert_eq!(report.ok, expected.reference_verify_ok, "{name}: {:?}", report.findings);
        assert_eq!(report.file_len, expected.size, "{name}");
        let warnings: Vec<&str> = report
            .findings
            .iter()
            .filter(|finding| finding.severity == tercet_core::Severity::Warning)
            .map(|finding| &*finding.code)
            .collect();
        let notes: Vec<&str> = expected.reference_verify_notes.iter().map(|(check, _)| &**check).collect();
        assert_eq!(warnings, notes, "{name}");
        let summary = report.details.summary.expect("all stages ran");
        assert_eq!(summary.dataset_count as usize, expected.datasets.len(), "{name}");
        assert_eq!(summary.chunk_count, golden.open().chunk_count(), "{name}");
        assert!(summary.deep_chunk_decode, "{name}");

        let quick = verify_path(&golden.path, VerifyOptions::default(), &NoProgress).unwrap();
        let skipped = quick.findings.iter().any(|finding| finding.code == "chunk_decode_skipped");
        assert_eq!((quick.ok, skipped), (expected.reference_verify_ok, name == "many_chunks.tet"), "{name}");
    }
}

/// Rewrites a file as the reference would.
fn rewrite(file: &File) -> Vec<u8> {
    let mut layout = Layout::new();
    let mut ids = Vec::new();
    for dataset in file.datasets() {
        let dtype = dataset.dtype().unwrap();
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
    let sink = Cursor::new(Vec::new());
    let mut writer = Writer::new(sink, layout, WriterOptions::interop()).unwrap();
    for (id, dataset) in ids.into_iter().zip(file.datasets()) {
        writer.array(id, dataset.read_all().unwrap().view()).unwrap();
    }
    writer.finish().unwrap().output
}

#[test]
fn files_are_rewritten_byte_for_byte() {
    let all = golden();
    let original: BTreeMap<&str, &Golden> = all.iter().map(|golden| (&*golden.name, golden)).collect();
    let mut identical = 0;
    for golden in &all {
        let written = rewrite(&golden.open());
        let before = PATCHED.iter().find(|(patched, _)| *patched == golden.name);
        if golden.name == "footer_unknown_keys.tet" {
            // Members of later versions are kept if they are metadata.
            let text = String::from_utf8_lossy(&written);
            assert!(text.contains(r#""extra":[1,2]"#), "{text}");
        } else if let Some((_, before)) = before {
            assert!(written != golden.bytes, "{} is not patched", golden.name);
            assert!(written == original[before].bytes, "{} is not {before} again", golden.name);
        } else if VERSION_2.contains(&&*golden.name) {
            let file = File::from_bytes(&golden.name, written).unwrap();
            assert_eq!(
                file.metadata().cloned().unwrap_or_default(),
                golden.open().metadata().cloned().unwrap()
            );
            assert_ne!(file.footer_version(), Some(2));
        } else {
            assert!(written == golden.bytes, "{} differs", golden.name);
            identical += 1;
        }
    }
    assert_eq!(identical, all.len().saturating_sub(VERSION_2.len() + PATCHED.len()));
    assert!(identical == 54 || all.is_empty());
}
