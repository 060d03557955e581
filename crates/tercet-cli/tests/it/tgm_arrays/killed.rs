//! Commands killed while they write, and files created concurrently.

use tercet::tgm::{DType, DataObjectDescriptor, EncodeOptions, GlobalMetadata, Provenance, encode_message};

use super::TestDir;
use crate::support::killed::{created_concurrently, kill_at_every_stage};

/// A file large enough to kill the command while it writes.
const PAYLOAD: usize = 8 << 20;

fn message(seed: u8) -> Vec<u8> {
    let values: Vec<u8> = (0..PAYLOAD).map(|at| (at as u8).wrapping_mul(31) ^ seed).collect();
    let descriptor = DataObjectDescriptor::new(DType::U8, [PAYLOAD as u64]);
    let options = EncodeOptions::new().with_provenance(Provenance::Off);
    encode_message(&GlobalMetadata::default(), &[(&descriptor, &values)], &options).unwrap()
}

/// A file with messages after its index is written again, without the old index.
#[test]
fn a_killed_index_leaves_the_old_or_the_new_file() {
    let dir = TestDir::new();
    dir.write("run.tgm", message(1));
    assert_eq!(dir.run("index run.tgm --reproducible").code, 0);
    let indexed = [dir.read("run.tgm"), message(2)].concat();
    dir.write("run.tgm", &indexed);
    kill_at_every_stage(&dir, "index run.tgm --reproducible", 0, "run.tgm");
    dir.write("run.tgm", &indexed);
    kill_at_every_stage(&dir, "index run.tgm --remove", 0, "run.tgm");
}

#[test]
fn a_killed_merge_leaves_the_old_or_the_new_file() {
    let dir = TestDir::new();
    dir.write("a.tgm", message(1));
    dir.write("b.tgm", message(2));
    dir.write("all.tgm", b"something else");
    kill_at_every_stage(&dir, "merge a.tgm b.tgm -o all.tgm --force --reproducible", 0, "all.tgm");
}

#[test]
fn a_killed_repair_leaves_the_old_or_the_new_file() {
    let dir = TestDir::new();
    let mut bytes = [message(1), message(2), message(3)].concat();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    dir.write("bad.tgm", &bytes);
    dir.write("good.tgm", b"something else");
    kill_at_every_stage(&dir, "repair bad.tgm -o good.tgm --force --reproducible", 1, "good.tgm");
}

/// Without `--force` no file is replaced, even one created after the command started.
#[test]
fn a_concurrently_created_file_is_kept() {
    let dir = TestDir::new();
    dir.write("a.tgm", [message(1), message(2)].concat());
    for args in [
        "merge a.tgm -o new",
        "set -s a=b a.tgm new",
        "repair a.tgm -o new",
        "copy a.tgm new",
        "extract a.tgm 0 -o new",
    ] {
        created_concurrently(&dir, args);
    }
}
