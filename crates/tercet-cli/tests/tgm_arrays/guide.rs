//! The guide shows what really happens: its `tgm` commands are run, on the arrays that its Python lines make.

use std::path::Path;

use crate::shown::{commands, matches};
use crate::{Folder, npy, said};

/// What the Python lines of the guide save.
fn save_arrays(folder: &Folder) {
    let t2m: Vec<u8> = (0..181 * 360).flat_map(|n| (230.0 + 0.001 * f64::from(n)).to_le_bytes()).collect();
    let land: Vec<u8> = (0..181 * 360).map(|n| u8::from(n % 3 == 0)).collect();
    let wave: Vec<u8> =
        [1.0f32, 0.0, 0.0, 1.0, -1.0, 0.0].iter().flat_map(|part| part.to_le_bytes()).collect();
    folder.write("t2m.npy", npy::with_header("'<f8'", false, &[181, 360], t2m));
    folder.write("land.npy", npy::with_header("'|b1'", false, &[181, 360], land));
    folder.write("wave.npy", npy::with_header("'<c8'", false, &[3], wave));
}

#[test]
fn create_and_extract() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/tgm-create-and-extract.md");
    let guide = std::fs::read_to_string(path).unwrap();
    let folder = Folder::new();
    save_arrays(&folder);
    let commands: Vec<_> =
        commands(&guide).into_iter().filter(|(line, _)| !line.starts_with("python ")).collect();
    assert!(commands.len() > 8, "the guide has hardly any commands");
    for (line, shown) in commands {
        let script = format!("exec 2>&1; tgm() {{ \"$0\" \"$@\"; }}; {line}");
        let mut command = assert_cmd::Command::new("bash");
        command.current_dir(folder.0.path());
        let output = said(command.args(["-c", &script, env!("CARGO_BIN_EXE_tgm")])).out;
        let lines: Vec<&str> = output.lines().collect();
        assert!(matches(&shown, &lines), "the guide shows something else for `{line}`:\n{output}");
    }
}
