//! Damage that a checksum proves is never accepted by a repair, and intact chunks are never lost.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use crate::verify_path;
use tercet_core::progress::NoProgress;
use tercet_core::{Class, Diagnostic as _, ElementType, Limits, TensorView};
use tercet_tet::{
    ActionState, File, FixAction, Layout, RepairOptions, SalvageOptions, VerifyOptions, Writer,
    WriterOptions, repair, salvage_file,
};

const VALUES: [u16; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];

/// Four chunks of three values, with a block.
fn intact() -> Vec<u8> {
    let mut layout = Layout::new();
    let id = layout.dataset("a", ElementType::U16, [12], [3]).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    writer.array(id, TensorView::from_slice(&[12], &VALUES).unwrap()).unwrap();
    writer.finish().unwrap().output
}

fn row_start(row: usize) -> usize {
    let file = File::from_bytes("intact", intact()).unwrap();
    usize::try_from(file.superblock().chunk_index_offset).unwrap() + 32 + 104 * row
}

fn payload(row: u64) -> usize {
    usize::try_from(File::from_bytes("intact", intact()).unwrap().row(row).unwrap().payload_offset).unwrap()
}

#[test]
fn an_exceeded_limit_is_not_damage() {
    let bytes = intact();
    for limit in [1, 64, 200] {
        let source = std::sync::Arc::new(tercet_core::source::Memory::new("a.tet", bytes.clone()));
        let options = VerifyOptions::new().with_limits(Limits::uniform(limit));
        let error = tercet_tet::verify(source, options, &NoProgress).unwrap_err();
        assert_eq!(error.class(), Class::Limit, "{limit}: {error}");
    }
}

/// Changes a digit of the footer's own checksum.
fn break_footer_digit(bytes: &mut [u8]) {
    let key = br#""footer_crc32c":""#;
    let at = bytes.windows(key.len()).position(|window| window == key).unwrap() + key.len();
    bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
}

fn break_name(bytes: &mut [u8]) {
    assert_eq!(bytes[56], b'a');
    bytes[56] = b'b';
}

fn write(directory: &Path, bytes: &[u8]) -> PathBuf {
    let path = directory.join("damaged.tet");
    std::fs::write(&path, bytes).unwrap();
    path
}

/// The readable chunks of a file; `None` for an error.
fn chunks(path: &Path) -> Vec<Option<Vec<u16>>> {
    let file = File::open(path).unwrap();
    let dataset = file.datasets().next().unwrap();
    (0..4).map(|n| dataset.chunk(&[n]).ok().and_then(|chunk| chunk.to_vec())).collect()
}

fn good() -> Vec<Option<Vec<u16>>> {
    VALUES.chunks(3).map(|values| Some(values.to_vec())).collect()
}

fn recompute_checksums(path: &Path) -> ActionState {
    let options = RepairOptions::default().with_apply("recompute_checksums");
    repair(path, &options, &NoProgress).unwrap().actions[0].state
}

#[test]
fn a_damaged_chunk_is_not_salvaged() {
    let directory = tempfile::tempdir().unwrap();
    for break_more in [break_footer_digit as fn(&mut [u8]), break_name] {
        let mut bytes = intact();
        bytes[payload(1)] ^= 4;
        break_more(&mut bytes);
        let path = write(directory.path(), &bytes);
        assert_eq!(recompute_checksums(&path), ActionState::Skipped);
        assert_eq!(std::fs::read(&path).unwrap(), bytes);

        let out = directory.path().join("saved.tet");
        let options = SalvageOptions::new().with_accept_catalog(true);
        let report = salvage_file(&path, &out, true, options, &NoProgress).unwrap();
        assert_eq!((report.kept, report.missing.len()), (3, 1), "{report:?}");
        let mut expected = good();
        expected[1] = None;
        assert_eq!(chunks(&out), expected);
    }
}

#[test]
fn swapped_rows_get_no_new_checksums() {
    let directory = tempfile::tempdir().unwrap();
    let mut bytes = intact();
    // The coordinates of rows 0 and 1.
    let (first, second) = (row_start(0) + 8, row_start(1) + 8);
    bytes.swap(first, second);
    break_footer_digit(&mut bytes);
    let path = write(directory.path(), &bytes);
    assert_eq!(recompute_checksums(&path), ActionState::Skipped);

    let out = directory.path().join("saved.tet");
    salvage_file(&path, &out, true, SalvageOptions::new(), &NoProgress).unwrap();
    let mut expected = good();
    expected[0] = None;
    expected[1] = None;
    assert_eq!(chunks(&out), expected);
}

#[test]
fn a_damaged_row_loses_one_chunk() {
    let directory = tempfile::tempdir().unwrap();
    let mut bytes = intact();
    bytes[row_start(2) + 72] ^= 2; // payload_offset
    let path = write(directory.path(), &bytes);
    let report = verify_path(&path, VerifyOptions::default(), &NoProgress).unwrap();
    assert!(report.details.recommends("damaged_chunks"), "{report:?}");
    let out = directory.path().join("saved.tet");
    salvage_file(&path, &out, true, SalvageOptions::new(), &NoProgress).unwrap();
    let mut expected = good();
    expected[2] = None;
    assert_eq!(chunks(&out), expected);
}

#[test]
fn a_truncated_file_can_be_salvaged() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), &intact()[..payload(2)]);
    let report = verify_path(&path, VerifyOptions::default(), &NoProgress).unwrap();
    let recommendation = &report.details.recommendations[0];
    assert_eq!(recommendation.code, "invalid_layout");
    assert_eq!(recommendation.fix.action, Some(FixAction::Salvage));
    let out = directory.path().join("saved.tet");
    let report = salvage_file(&path, &out, true, SalvageOptions::new(), &NoProgress).unwrap();
    assert_eq!(report.kept, 2);
    assert_eq!(chunks(&out)[..2], good()[..2]);
}

#[test]
fn duplicate_rows_of_a_chunk_give_the_same_result_in_any_order() {
    let mut layout = Layout::new();
    let id = layout.dataset("a", ElementType::U16, [12], [3]).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::interop()).unwrap();
    writer.array(id, TensorView::from_slice(&[12], &VALUES).unwrap()).unwrap();
    let mut bytes = writer.finish().unwrap().output;
    bytes[row_start(0) + 8] = 2; // row 0 claims to be chunk 2 as well
    let file = File::from_bytes("m", bytes).unwrap();
    let dataset = file.dataset("a").unwrap();
    let read = || dataset.chunk(&[2]).unwrap().to_vec::<u16>().unwrap();
    let before = read();
    assert!(dataset.chunk(&[0]).is_err(), "this looks through all rows");
    assert_eq!(read(), before);
}

#[test]
fn a_missing_chunk_is_named_in_the_error() {
    let directory = tempfile::tempdir().unwrap();
    let mut bytes = intact();
    bytes[payload(3)] ^= 1;
    let path = write(directory.path(), &bytes);
    let out = directory.path().join("saved.tet");
    salvage_file(&path, &out, true, SalvageOptions::new(), &NoProgress).unwrap();
    let file = File::open(&out).unwrap();
    let error = file.dataset("a").unwrap().read_all().unwrap_err();
    assert!(error.to_string().ends_with("chunk [3] is missing from the index"), "{error}");
}

#[test]
fn an_unusable_dataset_can_be_dropped_but_not_kept() {
    let directory = tempfile::tempdir().unwrap();
    let mut layout = Layout::new();
    let bad = layout.dataset("bad", ElementType::U16, [12], [3]).unwrap();
    let good = layout.dataset("good", ElementType::U16, [12], [5]).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::interop()).unwrap();
    for id in [bad, good] {
        writer.array(id, TensorView::from_slice(&[12], &VALUES).unwrap()).unwrap();
    }
    let mut bytes = writer.finish().unwrap().output;
    bytes[44] = 11; // no element type
    let path = write(directory.path(), &bytes);
    let row = || tercet_tet::HistoryRow::at("drop", "test", 1);

    let keep = tercet_tet::Rewrite::open(&path).unwrap();
    assert!(keep.start(row(), WriterOptions::new(), &NoProgress).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), bytes);

    let mut change = tercet_tet::Rewrite::open(&path).unwrap();
    change.drop_dataset("bad").unwrap();
    change.start(row(), WriterOptions::new(), &NoProgress).unwrap().finish().unwrap();
    let file = File::open(&path).unwrap();
    assert_eq!(file.datasets().len(), 1);
    assert_eq!(file.dataset("good").unwrap().read_all().unwrap().as_slice::<u16>(), Some(&VALUES[..]));
    assert!(verify_path(&path, VerifyOptions::default(), &NoProgress).unwrap().ok);
}
