//! SZ3 through the commands.

use tercet::tgm::precision::deviation;
use tercet::tgm::{self, DType, DataObjectDescriptor, EncodeOptions, GlobalMetadata, PreEncoded};

use crate::support::test_dir;

type TestDir = test_dir::TestDir<()>;

/// A directory with `t.npy`, a smooth field of 1200 float64 values.
fn dir() -> (TestDir, Vec<u8>) {
    let dir = TestDir::for_program(env!("CARGO_BIN_EXE_tgm"));
    let values: Vec<u8> =
        (0..1200u32).flat_map(|n| (280.0 + 20.0 * (f64::from(n) / 40.0).sin()).to_le_bytes()).collect();
    let mut file = tercet::convert::npy::header(tercet::core::DType::F64, &[1200]).unwrap();
    file.extend(&values);
    dir.write("t.npy", file);
    (dir, values)
}

fn payload_of(dir: &TestDir, name: &str) -> (DataObjectDescriptor, Vec<u8>) {
    let message = tgm::File::open(dir.path(name)).unwrap().message(0).unwrap();
    let object = message.object(0).unwrap();
    (object.descriptor().clone(), object.payload().unwrap().to_vec())
}

#[test]
fn values_round_trip_within_the_bound() {
    let (dir, values) = dir();
    for (options, bound) in [
        ("--sz3-bound 0.001", 0.001),
        ("--sz3-mode abs --sz3-bound 0.5", 0.5),
        ("--sz3-mode rel --sz3-bound 0.001", 0.04),
        ("--sz3-mode psnr --sz3-bound 80", 1.0),
    ] {
        dir.ok(&format!("create a.tgm --force --compression sz3 {options} --from t=t.npy"));
        let found = dir.ok("extract a.tgm 0 -o -").bytes;
        let error = deviation(DType::F64, &values, &found).max;
        assert!(error <= bound, "{options}: {error}");
        assert!(dir.ok("extract a.tgm 0 --range 7:10 -o -").bytes == found[56..136], "{options}");
        dir.ok("validate --full a.tgm");
        dir.ok("repack a.tgm b.tgm --force --compression zstd");
        assert!(dir.ok("extract b.tgm 0 -o -").bytes == found, "{options}");
    }
    assert!(dir.ok("advise t.npy --max-error 0.01").out.contains("sz3 abs 0.01"));
    let doctor = dir.ok("doctor").out;
    assert!(doctor.contains("  sz3                   own               pure Rust "), "{doctor}");
    assert!(doctor.contains("pipeline       sz3                          ok"), "{doctor}");
}

/// Any failure of the decoder is reported as damage of the file.
#[test]
fn damaged_payloads_are_errors() {
    let (dir, _) = dir();
    dir.ok("create a.tgm --compression sz3 --sz3-bound 0.001 --from t=t.npy");
    let (descriptor, payload) = payload_of(&dir, "a.tgm");
    let step = payload.len() / 40 + 1;
    let flipped = (0..payload.len()).step_by(step).map(|at| {
        let mut bytes = payload.clone();
        bytes[at] ^= 0x55;
        bytes
    });
    let cut = (0..payload.len()).step_by(step).map(|len| payload[..len].to_vec());
    for bad in flipped.chain(cut) {
        let object = PreEncoded { descriptor: &descriptor, payload: &bad };
        let bytes = tgm::encode_pre_encoded(&GlobalMetadata::default(), &[object], &EncodeOptions::new());
        dir.write("bad.tgm", bytes.unwrap());
        let result = dir.run("extract bad.tgm 0 -o -");
        assert!([0, 4].contains(&result.code), "exit code {}: {}", result.code, result.err);
        assert!(result.code == 0 || result.err.contains("sz3"), "{}", result.err);
        assert!(result.code != 0 || result.bytes.len() == 9600);
    }
}
