//! Every fault and every power cut leaves the old file or the new file.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tercet_core::progress::{Counter, NoProgress};
use tercet_core::publish::{Disk, PublishError, RealDisk};
use tercet_core::{Class, CommonError, Diagnostic, ElementType, TensorView};
use tercet_testkit::faults::{FaultyDisk, Op, for_each_fault};
use tercet_testkit::old_or_new;
use tercet_testkit::powercut::for_each_cut;
use tercet_tet::{
    ActionState, Append, Compression, Error, ErrorKind, File, HistoryRow, Layout, NewValues, RepairOptions,
    Rewrite, SalvageOptions, VerifyOptions, Writer, WriterOptions, repair_on, salvage_file_on, verify,
};

use crate::samples;

const NAME: &str = "a.tet";

/// A change to the file in a directory, through a disk.
type Change = fn(&Arc<dyn Disk>, &Path) -> Result<(), Error>;

/// The values of the dataset that `create` and `append` write.
const ADDED: [f32; 6] = [0.5, 1.5, -2.5, 3.5, 4.5, f32::INFINITY];

fn real_disk() -> Arc<dyn Disk> {
    Arc::new(RealDisk)
}

fn create(disk: &Arc<dyn Disk>, directory: &Path) -> Result<(), Error> {
    write(disk, directory, WriterOptions::new())
}

fn overwrite(disk: &Arc<dyn Disk>, directory: &Path) -> Result<(), Error> {
    write(disk, directory, WriterOptions::new().with_overwrite(true))
}

fn write(disk: &Arc<dyn Disk>, directory: &Path, options: WriterOptions) -> Result<(), Error> {
    let mut layout = Layout::new();
    let id = layout.dataset("added", ElementType::F32, [2, 3], [1, 2]).unwrap();
    layout.compress(id, Compression::Zstd { level: 3 }).unwrap();
    layout.history(HistoryRow::at("create", "test", 1)).unwrap();
    let mut writer = Writer::create_on(Arc::clone(disk), &directory.join(NAME), layout, options)?;
    writer.array(id, TensorView::from_slice(&[2, 3], &ADDED).unwrap())?;
    writer.finish().map(drop)
}

fn append(disk: &Arc<dyn Disk>, directory: &Path) -> Result<(), Error> {
    let mut rewrite = Rewrite::open_on(Arc::clone(disk), &directory.join(NAME))?;
    let id = rewrite.layout().dataset("added", ElementType::F32, [2, 3], [1, 2]).unwrap();
    let mut writer = rewrite.start(HistoryRow::at("append", "test", 2), WriterOptions::new(), &NoProgress)?;
    writer.array(id, TensorView::from_slice(&[2, 3], &ADDED).unwrap())?;
    writer.finish().map(drop)
}

fn drop_dataset(disk: &Arc<dyn Disk>, directory: &Path) -> Result<(), Error> {
    let mut rewrite = Rewrite::open_on(Arc::clone(disk), &directory.join(NAME))?;
    rewrite.drop_dataset("a")?;
    rewrite.start(HistoryRow::at("drop", "test", 2), WriterOptions::new(), &NoProgress)?.finish().map(drop)
}

/// Appends along the axis of a dataset whose last chunk is clipped, and sets an attribute.
fn append_along(disk: &Arc<dyn Disk>, directory: &Path) -> Result<(), Error> {
    let mut rewrite = Rewrite::open_on(Arc::clone(disk), &directory.join(NAME))?;
    rewrite.append(&Append::along("0").with_array("a", ElementType::U8, [4]).with_rechunk(true))?;
    let id = rewrite.dataset("b")?;
    rewrite.layout().set_attr(id, "level", &850.into()).unwrap();
    let values = |values: &NewValues<'_>, out: &mut [u8]| {
        out.fill(values.start[0] as u8);
        Ok::<(), Error>(())
    };
    let history = HistoryRow::at("append", "test", 2);
    rewrite.start_with(history, WriterOptions::new(), values, &NoProgress)?.finish().map(drop)
}

fn cut_footer(disk: &Arc<dyn Disk>, directory: &Path) -> Result<(), Error> {
    let options = RepairOptions::default().with_apply("footer_invalid");
    let report = repair_on(disk, &directory.join(NAME), &options, &NoProgress)?;
    assert_eq!(report.actions[0].state, ActionState::Applied, "{report:?}");
    assert!(report.ok());
    Ok(())
}

fn recompute_checksums(disk: &Arc<dyn Disk>, directory: &Path) -> Result<(), Error> {
    let options = RepairOptions::default().with_apply("recompute_checksums");
    let report = repair_on(disk, &directory.join(NAME), &options, &NoProgress)?;
    assert_eq!(report.actions[0].state, ActionState::Applied, "{report:?}");
    Ok(())
}

fn salvage(disk: &Arc<dyn Disk>, directory: &Path) -> Result<(), Error> {
    let (from, to) = (directory.join("damaged.tet"), directory.join(NAME));
    let report = salvage_file_on(Arc::clone(disk), &from, &to, true, SalvageOptions::new(), &NoProgress)?;
    assert_eq!((report.kept, report.missing.len()), (3, 1), "{report:?}");
    Ok(())
}

/// The files after the change, without any fault.
fn sound(prepare: &dyn Fn(&Path), change: Change) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    prepare(directory.path());
    change(&real_disk(), directory.path()).unwrap();
    fs::read(directory.path().join(NAME)).unwrap()
}

/// A new file that differs from `new` at most in the time of its history.
fn is_same_but_for_the_time(found: &[u8], new: &[u8]) -> bool {
    let (Ok(found), Ok(new)) =
        (File::from_bytes("found", found.to_vec()), File::from_bytes("new", new.to_vec()))
    else {
        return false;
    };
    let values = |file: &File| -> Vec<Vec<u8>> {
        file.datasets()
            .map(|dataset| dataset.read_all().map(|all| all.bytes().to_vec()).unwrap_or_default())
            .collect()
    };
    let ops = |file: &File| file.history().iter().map(|row| row.op.clone()).collect::<Vec<_>>();
    found.integrity_status() == new.integrity_status()
        && found.metadata() == new.metadata()
        && found.len() == new.len()
        && values(&found) == values(&new)
        && ops(&found) == ops(&new)
}

/// Runs a change with every fault and every power cut.
fn assert_atomic(old: Option<&[u8]>, damaged: Option<&[u8]>, change: Change) {
    let prepare = |directory: &Path| {
        if let Some(old) = old {
            fs::write(directory.join(NAME), old).unwrap();
        }
        if let Some(damaged) = damaged {
            fs::write(directory.join("damaged.tet"), damaged).unwrap();
        }
    };
    let new = sound(&prepare, change);
    assert_ne!(Some(&new[..]), old);
    // Files may differ in the time of their history.
    let is_new = |found: Option<&[u8]>| match found {
        Some(found) if found != new && Some(found) != old && is_same_but_for_the_time(found, &new) => true,
        found => old_or_new(found, old, &new),
    };
    let runs = for_each_fault(
        prepare,
        |disk, directory| change(&disk, directory),
        |trial| {
            let found = fs::read(trial.directory.join(NAME)).ok();
            assert!(is_new(found.as_deref()) || trial.result.is_err(), "done, but the file is the old one");
            if let Some(damaged) = damaged {
                assert!(
                    fs::read(trial.directory.join("damaged.tet")).unwrap() == damaged,
                    "the source is untouched"
                );
            }
        },
    );
    assert!(runs > 50, "{runs} faults");
    let cuts = for_each_cut(
        prepare,
        |disk, directory| change(&disk, directory).unwrap(),
        |cut| assert!(is_new(cut.file(NAME)) || !cut.complete, "done, but the power cut undoes it"),
    );
    assert!(cuts > 5, "{cuts} cuts");
}

#[test]
fn create_a_new_file() {
    assert_atomic(None, None, create);
    assert_atomic(None, None, overwrite);
}

#[test]
fn a_concurrently_created_file_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(NAME);
    for options in [WriterOptions::new(), WriterOptions::new().with_overwrite(true)] {
        let mut layout = Layout::new();
        let id = layout.dataset("a", ElementType::U8, [1], [1]).unwrap();
        let mut writer = Writer::create(&path, layout.clone(), options).unwrap();
        writer.array(id, TensorView::from_slice(&[1], &[7u8]).unwrap()).unwrap();
        fs::write(&path, b"precious").unwrap();
        let written = writer.finish();
        assert_eq!(written.is_ok(), options.overwrite, "{written:?}");
        assert_eq!(fs::read(&path).unwrap() == b"precious", !options.overwrite);
        assert_eq!(Writer::create(&path, layout, options).is_ok(), options.overwrite);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn replace_an_existing_file() {
    assert_atomic(Some(&samples::raw_inline().bytes), None, overwrite);
}

#[test]
fn append_to_a_protected_file() {
    assert_atomic(Some(&samples::by_reference().bytes), None, append);
}

#[test]
fn append_to_an_unprotected_file() {
    assert_atomic(Some(&samples::interop().bytes), None, append);
}

#[test]
fn append_along_an_axis() {
    assert_atomic(Some(&samples::by_reference().bytes), None, append_along);
}

#[test]
fn drop_one_of_two_datasets() {
    assert_atomic(Some(&samples::by_reference().bytes), None, drop_dataset);
}

#[test]
fn repair_a_footer() {
    let mut bytes = samples::interop().bytes;
    let footer = File::from_bytes("good", bytes.clone()).unwrap().payload_end() as usize;
    bytes[footer] = b'X';
    assert_atomic(Some(&bytes), None, cut_footer);
}

#[test]
fn repair_a_block() {
    let mut bytes = samples::raw_inline().bytes;
    let units = bytes.windows(7).position(|window| window == br#""units""#).unwrap();
    bytes[units + 1] = b'U';
    assert_atomic(Some(&bytes), None, recompute_checksums);
}

#[test]
fn salvage_intact_chunks() {
    let mut bytes = samples::raw_inline().bytes;
    let row = File::from_bytes("good", bytes.clone()).unwrap().row(2).unwrap();
    bytes[row.payload_offset as usize] ^= 1;
    assert_atomic(None, Some(&bytes), salvage);
    assert_atomic(Some(b"something else"), Some(&bytes), salvage);
}

fn is_busy(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Common(CommonError::Publish(PublishError::Busy { .. })))
}

#[test]
fn concurrent_changes_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(NAME);
    let old = samples::by_reference().bytes;
    fs::write(&path, &old).unwrap();

    let first = Rewrite::open(&path).unwrap();
    let error = Rewrite::open(&path).unwrap_err();
    assert!(is_busy(&error), "{error}");
    assert_eq!(error.class(), Class::Io);
    let writer =
        first.start(HistoryRow::at("append", "first", 1), WriterOptions::new(), &NoProgress).unwrap();
    // The file stays locked while chunks are written; readers are not blocked.
    assert!(is_busy(&Rewrite::open(&path).unwrap_err()));
    assert!(is_busy(&overwrite(&real_disk(), directory.path()).unwrap_err()));
    assert!(File::open(&path).is_ok());
    writer.finish().unwrap();

    assert_eq!(File::open(&path).unwrap().history().last().unwrap().source, "first");
    append(&real_disk(), directory.path()).unwrap();
    assert_eq!(File::open(&path).unwrap().datasets().len(), 3);
}

#[test]
fn an_abandoned_change_leaves_the_file_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(NAME);
    let old = samples::by_reference().bytes;
    fs::write(&path, &old).unwrap();

    let mut rewrite = Rewrite::open(&path).unwrap();
    rewrite.layout().dataset("added", ElementType::U8, [4], [2]).unwrap();
    let writer =
        rewrite.start(HistoryRow::at("append", "test", 1), WriterOptions::new(), &NoProgress).unwrap();
    // The chunks of the new dataset are missing.
    assert_eq!(writer.finish().unwrap_err().class(), Class::Request);
    assert!(fs::read(&path).unwrap() == old);

    let cancelled = Counter::default();
    cancelled.cancel();
    let rewrite = Rewrite::open(&path).unwrap();
    let error =
        rewrite.start(HistoryRow::at("append", "test", 1), WriterOptions::new(), &cancelled).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Common(CommonError::Cancelled(_))), "{error}");
    drop(
        Rewrite::open(&path)
            .unwrap()
            .start(HistoryRow::at("x", "y", 1), WriterOptions::new(), &NoProgress)
            .unwrap(),
    );
    assert!(fs::read(&path).unwrap() == old);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no leftovers");
}

#[test]
fn damage_is_not_copied_into_a_new_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(NAME);
    for sample in [samples::by_reference(), samples::zstd_inline(), samples::raw_inline()] {
        let row = File::from_bytes("good", sample.bytes.clone()).unwrap().row(1).unwrap();
        let mut bytes = sample.bytes;
        bytes[row.payload_offset as usize] ^= 0x10;
        fs::write(&path, &bytes).unwrap();
        let error = append(&real_disk(), directory.path()).unwrap_err();
        assert_eq!(error.class(), Class::Corrupt, "{error}");
        assert!(fs::read(&path).unwrap() == bytes, "the damaged file is as it was");
    }
}

#[test]
fn a_concurrently_repaired_file_is_not_repaired_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(NAME);
    let good = samples::interop().bytes;
    let mut bad = good.clone();
    let footer = File::from_bytes("good", good.clone()).unwrap().payload_end() as usize;
    bad[footer] = b'X';
    fs::write(&path, &bad).unwrap();
    // The file is replaced by a valid one after it was verified and before it is locked.
    let (aside, target, bytes) = (directory.path().join("aside"), path.clone(), good.clone());
    let disk = FaultyDisk::real().concurrently(Op::Entry, move || {
        fs::write(&aside, &bytes).unwrap();
        fs::rename(&aside, &target).unwrap();
    });
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let options = RepairOptions::default().with_apply("footer_invalid");
    // An error or a skipped action: the valid footer stays.
    let _ = repair_on(&disk, &path, &options, &NoProgress);
    assert!(fs::read(&path).unwrap() == good);
}

#[test]
fn written_files_pass_verification() {
    for (old, change) in [
        (samples::by_reference(), append as Change),
        (samples::interop(), append),
        (samples::by_reference(), drop_dataset),
        (samples::by_reference(), append_along),
    ] {
        let new = sound(&|directory| fs::write(directory.join(NAME), &old.bytes).unwrap(), change);
        let source = Arc::new(tercet_core::source::Memory::new(NAME, new));
        let report = verify(source, VerifyOptions::default().with_deep(true), &NoProgress).unwrap();
        assert!(report.ok && report.details.recommendations.is_empty(), "{report:?}");
    }
}
