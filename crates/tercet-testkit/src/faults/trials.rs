//! One scenario, run again with a fault at each of its operations.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use tercet_core::publish::Disk;

use super::{Fault, FaultyDisk, Op};
use crate::TrialContext;

/// One run of the scenario with one fault.
#[derive(Debug)]
pub struct Trial<'a, R, E> {
    /// The fault as text.
    pub fault: &'a str,
    /// The result of the scenario.
    pub result: &'a Result<R, E>,
    /// The directory of the run, on the disk without faults.
    pub directory: &'a Path,
}

/// Runs a scenario without faults, and then with every applicable fault at each of its operations; returns the
/// number of runs.
///
/// Every run starts in a new directory that `prepare` fills, and ends with `check`. The faults: each operation
/// refused once, refused together with all later ones (a disconnected disk), and reported as failed although it
/// took effect; short and interrupted writes; a full disk; locks held by others or unsupported.
///
/// # Panics
///
/// If the run without faults fails.
pub fn for_each_fault<R, E: std::fmt::Debug>(
    prepare: impl Fn(&Path),
    scenario: impl Fn(Arc<dyn Disk>, &Path) -> Result<R, E>,
    check: impl Fn(&Trial<'_, R, E>),
) -> usize {
    let run = |fault: &str, disk: &FaultyDisk| {
        let _trying = TrialContext(fault.to_owned());
        let directory =
            tempfile::tempdir().unwrap_or_else(|error| panic!("no directory to work in: {error}"));
        prepare(directory.path());
        let result = scenario(Arc::new(disk.clone()), directory.path());
        check(&Trial { fault, result: &result, directory: directory.path() });
        result
    };

    let sound = FaultyDisk::real();
    if let Err(error) = run("no fault", &sound) {
        panic!("the scenario fails without any fault: {error:?}");
    }
    let operations = sound.operations();
    let written = sound.written_bytes();

    let mut plans: Vec<(String, FaultyDisk)> = Vec::new();
    for (number, &op) in operations.iter().enumerate() {
        for &fault in faults_of(op) {
            let name = format!("operation {number} ({op:?}) {fault}");
            plans.push((name, FaultyDisk::real().at(number, fault)));
        }
        for kind in [ErrorKind::Other, ErrorKind::PermissionDenied] {
            let fault = Fault::Refuse(kind);
            let name = format!("operation {number} ({op:?}) and all later ones {fault}");
            plans.push((name, FaultyDisk::real().from(number, fault)));
        }
    }
    for free in full_points(written) {
        plans.push((format!("room for {free} bytes"), FaultyDisk::real().with_free_bytes(free)));
    }
    plans.push(("short writes".into(), FaultyDisk::real().with_short_writes(7)));
    plans.push(("interrupted writes".into(), FaultyDisk::real().with_interrupted_writes()));
    plans.push(("locks held".into(), FaultyDisk::real().on(Op::Lock, Fault::Held)));
    let no_locks = Fault::Refuse(ErrorKind::Unsupported);
    plans.push(("no locks".into(), FaultyDisk::real().on(Op::Lock, no_locks)));

    for (fault, disk) in &plans {
        // The check has seen the result.
        let _ = run(fault, disk);
    }
    plans.len() + 1
}

/// The faults that one operation can have.
fn faults_of(op: Op) -> &'static [Fault] {
    use Fault::{Held, Late, Refuse, Short};
    match op {
        Op::Entry | Op::ReadLink | Op::List | Op::Seek => &[Refuse(ErrorKind::Other)],
        Op::Open => &[Refuse(ErrorKind::Other), Refuse(ErrorKind::PermissionDenied)],
        Op::Create => {
            &[Refuse(ErrorKind::Other), Refuse(ErrorKind::PermissionDenied), Late(ErrorKind::Other)]
        }
        Op::Rename | Op::Remove | Op::SyncDirectory | Op::SyncFile | Op::SetLen | Op::SetPermissions => {
            &[Refuse(ErrorKind::Other), Late(ErrorKind::Other)]
        }
        Op::Write => &[
            Refuse(ErrorKind::Other),
            Refuse(ErrorKind::StorageFull),
            Refuse(ErrorKind::Interrupted),
            Late(ErrorKind::Other),
            Short,
        ],
        Op::Lock => &[Refuse(ErrorKind::Other), Refuse(ErrorKind::Unsupported), Held],
    }
}

/// Free space for no byte, one byte, half of the bytes, and all but one.
fn full_points(written: u64) -> Vec<u64> {
    let mut points = vec![0, 1, written / 2, written.saturating_sub(1)];
    points.retain(|&free| free < written);
    points.sort_unstable();
    points.dedup();
    points
}
