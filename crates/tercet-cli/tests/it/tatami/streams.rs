//! Pipes, standard input, and the commands of `tercet`.

use std::io::Read as _;
use std::process::{Command, Stdio};

use super::{TestDir, lines, run_command};

#[test]
fn a_closed_pipe_is_not_an_error() {
    let dir = TestDir::new();
    let rows = lines(0..100_000, |row| format!("{{\"n\":{row},\"s\":\"some more text\"}}"));
    dir.write("n.jsonl", rows);
    dir.ok("create n.tatami --from n.jsonl --page-rows 100");
    for args in
        [&["cat", "n.tatami"][..], &["inspect", "n.tatami", "--pages"], &["outline", "n.tatami", "--pages"]]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tatami"));
        command.current_dir(dir.0.path()).args(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        // The output is larger than a pipe buffer, so the command still writes when the pipe is closed.
        stdout.read_exact(&mut [0; 16]).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        assert_eq!(output.status.code(), Some(0), "{args:?}");
    }
}

#[test]
fn standard_input_is_read_like_a_file() {
    let dir = TestDir::with_cities();
    let piped = |args: &[&str]| run_command(dir.command().args(args).write_stdin(dir.read("cities.tatami")));
    assert_eq!(piped(&["cat", "-"]).out, dir.ok("cat cities.tatami").out);
    assert!(piped(&["inspect", "-"]).out.starts_with("file:    standard input\nversion: 1.1\nrows:    3\n"));
    assert!(piped(&["lookup", "-", "Ulm"]).out.contains("126329"));
    assert_eq!(piped(&["verify", "-", "--deep"]).code, 0);
    let refused = piped(&["cat", "-", "--max-stdin", "100B"]);
    assert_eq!(refused.code, 6, "{}", refused.err);
}

#[test]
fn tercet_commands_support_tatami() {
    let dir = TestDir::with_cities();
    std::fs::copy(dir.path("cities.tatami"), dir.path("cities.bin")).unwrap();
    let tercet = |args: &str| {
        let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_tercet"));
        run_command(command.current_dir(dir.0.path()).args(args.split_whitespace()))
    };
    assert_eq!(tercet("info cities.tatami").out, dir.ok("inspect cities.tatami").out);
    let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let any = parsed(&tercet("info cities.tatami --json").out);
    assert_eq!(any["summary"], parsed(&dir.ok("inspect cities.tatami --json").out));
    assert!(tercet("info -q cities.bin").out.contains("rows=3 groups=1 columns=5 role=document-store"));
    assert_eq!(tercet("verify cities.tatami --deep").out, dir.ok("verify --deep cities.tatami").out);
    assert_eq!(tercet("outline cities.tatami").out, dir.ok("outline cities.tatami").out);
    assert_eq!(tercet("outline cities.tatami --pages").out, dir.ok("outline --pages cities.tatami").out);
    assert_eq!(tercet("tatami cat cities.tatami").out, dir.ok("cat cities.tatami").out);
    let salvaged = tercet("repair cities.tatami --salvage kept.tatami");
    assert_eq!(salvaged.code, 0, "{}{}", salvaged.out, salvaged.err);
    assert_eq!(dir.ok("cat kept.tatami").out, dir.ok("cat cities.tatami").out);
    for refused in [
        "verify --repair cities.tatami",
        "repair cities.tatami --apply footer_invalid",
        "info --chunks cities.tatami",
    ] {
        let result = tercet(refused);
        assert_eq!(result.code, 8, "{refused}: {}", result.err);
        assert!(result.err.contains("is a .tatami file"), "{refused}: {}", result.err);
    }
}
