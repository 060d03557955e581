//! Runs the `tgm` commands of the guides on the arrays that their Python lines save.

use std::path::Path;

use super::{TestDir, npy, run_command};
use crate::support::guide::{commands, matches};

/// The arrays of the guide to messages.
fn save_arrays(dir: &TestDir) {
    let t2m: Vec<u8> = (0..181 * 360).flat_map(|n| (230.0 + 0.001 * f64::from(n)).to_le_bytes()).collect();
    let land: Vec<u8> = (0..181 * 360).map(|n| u8::from(n % 3 == 0)).collect();
    let wave: Vec<u8> =
        [1.0f32, 0.0, 0.0, 1.0, -1.0, 0.0].iter().flat_map(|part| part.to_le_bytes()).collect();
    dir.write("t2m.npy", npy::with_header("'<f8'", false, &[181, 360], t2m));
    dir.write("land.npy", npy::with_header("'|b1'", false, &[181, 360], land));
    dir.write("wave.npy", npy::with_header("'<c8'", false, &[3], wave));
}

/// The arrays of the guide to pipelines.
fn save_fields(dir: &TestDir) {
    let shape = [181, 360];
    let values = || (0..181 * 360i32).map(|n| (n, 273.0 + f64::from(n % 360 * (n / 360 - 90)) / 1000.0));
    #[expect(clippy::cast_possible_truncation, reason = "rounded as NumPy does")]
    let single = |value: f64| value as f32;
    let sea = |(n, value): (i32, f64)| if n % 7 == 0 { f32::NAN } else { single(value) };
    let t2m = values().flat_map(|(_, value)| value.to_le_bytes()).collect();
    let rounded = values().flat_map(|(_, value)| single(value).to_le_bytes()).collect();
    let sst = values().flat_map(|cell| sea(cell).to_le_bytes()).collect();
    let codes = values().flat_map(|(n, _)| i16::try_from(n % 360 / 9).unwrap().to_le_bytes()).collect();
    dir.write("t2m.npy", npy::with_header("'<f8'", false, &shape, t2m));
    dir.write("t2m-f4.npy", npy::with_header("'<f4'", false, &shape, rounded));
    dir.write("sst.npy", npy::with_header("'<f4'", false, &shape, sst));
    dir.write("codes.npy", npy::with_header("'<i2'", false, &shape, codes));
}

/// Runs the commands of a guide and compares their output.
fn check(name: &str, dir: &TestDir) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide").join(name);
    let guide = std::fs::read_to_string(path).unwrap();
    let commands: Vec<_> =
        commands(&guide).into_iter().filter(|(line, _)| !line.starts_with("python ")).collect();
    assert!(commands.len() > 6, "the guide has hardly any commands");
    for (line, expected) in commands {
        let script = format!("exec 2>&1; tgm() {{ \"$0\" \"$@\"; }}; {line}");
        let mut command = assert_cmd::Command::new("bash");
        command.current_dir(dir.0.path());
        let output = run_command(command.args(["-c", &script, env!("CARGO_BIN_EXE_tgm")])).out;
        let lines: Vec<&str> = output.lines().collect();
        assert!(matches(&expected, &lines), "{name} shows something else for `{line}`:\n{output}");
    }
}

#[test]
fn create_and_extract() {
    let dir = TestDir::new();
    save_arrays(&dir);
    check("tgm-create-and-extract.md", &dir);
}

#[test]
fn tail() {
    let dir = TestDir::new();
    save_arrays(&dir);
    check("tgm-tail-and-async.md", &dir);
}

#[test]
fn pipelines() {
    let dir = TestDir::new();
    save_fields(&dir);
    check("tgm-pipeline.md", &dir);
}
