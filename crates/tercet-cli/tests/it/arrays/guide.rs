//! Runs the `tet` commands of the guide on the arrays that its Python lines save.

use std::path::Path;

use super::{TestDir, npy, run_command};
use crate::support::guide::{commands, matches};

/// The arrays that the Python lines of the guide save.
fn save_arrays(dir: &TestDir) {
    let (map, count) = (181 * 360, 24 * 181 * 360);
    let value = |n: u32| (230.0 + f64::from(n) * (80.0 / f64::from(count - 1))) as f32;
    let t2m: Vec<u8> = (0..count).flat_map(|n| value(n).to_le_bytes()).collect();
    let land: Vec<u8> = (0..map).map(|n| u8::from(value(n) > 231.0)).collect();
    dir.write("t2m.npy", npy::with_header("'<f4'", false, &[24, 181, 360], t2m));
    dir.write("land.npy", npy::with_header("'|i1'", false, &[181, 360], land));
    dir.write("c.npy", npy::with_header("'<c8'", false, &[3], vec![0; 24]));
}

#[test]
fn create_and_extract() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/create-and-extract.md");
    let guide = std::fs::read_to_string(path).unwrap();
    let dir = TestDir::new();
    save_arrays(&dir);
    let commands: Vec<_> =
        commands(&guide).into_iter().filter(|(line, _)| !line.starts_with("python ")).collect();
    assert!(commands.len() > 8, "the guide has hardly any commands");
    for (line, expected) in commands {
        let script = format!("exec 2>&1; tet() {{ \"$0\" \"$@\"; }}; {line}");
        let mut command = assert_cmd::Command::new("bash");
        command.current_dir(dir.0.path()).env("SOURCE_DATE_EPOCH", "1700000000");
        command.env("TET_NO_QUERY_HISTORY", "1");
        let output = run_command(command.args(["-c", &script, env!("CARGO_BIN_EXE_tet")])).out;
        let lines: Vec<&str> = output.lines().collect();
        let expected_text = expected.join("\n");
        assert!(
            matches(&expected, &lines),
            "the guide shows for `{line}`:\n{expected_text}\n\nbut it prints:\n{output}"
        );
    }
}
