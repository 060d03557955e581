//! Standard input, output and error: pipes, color, interrupts.

use std::io::Read as _;
use std::process::Stdio;

use super::support::{TestDir, run, write_many_chunks, write_named};

#[test]
fn standard_input_is_read_like_a_file() {
    let dir = TestDir::with_weather();
    let piped = |args: &[&str]| run(dir.command("tet").args(args).write_stdin(dir.read("weather.tet")));
    let len = dir.read("weather.tet").len();
    let line = format!("path=standard input file_len={len} layout=1 datasets=2 chunks=5 history=1\n");
    assert_eq!(piped(&["info", "-q", "-"]).stdout, line);
    assert!(piped(&["verify", "-"]).stdout.contains("status: ok"));
    assert_eq!(piped(&["outline", "-"]).stdout, dir.tet("outline weather.tet").stdout);
    let any = run(dir.command("tercet").args(["verify", "-q", "-"]).write_stdin(dir.read("weather.tet")));
    assert!(any.stdout.contains("status=ok"), "{}", any.stderr);
    // A plan changes nothing, so it needs no path.
    dir.with_damaged_chunk("bad.tet");
    for program in ["tet", "tercet"] {
        let planned =
            run(dir.command(program).args(["repair", "--plan", "-"]).write_stdin(dir.read("bad.tet")));
        let path = dir.tet("repair --plan bad.tet");
        let stdout =
            planned.stdout.replace("standard input", "bad.tet").replace("repair - ", "repair bad.tet ");
        assert_eq!(stdout, path.stdout);
        assert_eq!((planned.code, path.code), (Some(1), Some(1)), "{}", planned.stderr);
    }
    let refused = piped(&["repair", "-", "--apply", "footer_invalid"]);
    assert_eq!(refused.code, Some(8), "{}", refused.stderr);
    let refused = piped(&["verify", "--repair", "-"]);
    assert_eq!(refused.code, Some(8), "{}", refused.stderr);
    let nothing = run(dir.command("tet").args(["info", "-"]).write_stdin(Vec::new()));
    assert_eq!(nothing.code, Some(4), "{}", nothing.stderr);
}

/// Starts a command whose output is read by this test.
fn start(dir: &TestDir, args: &[&str], stdin: Stdio) -> std::process::Child {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tet"));
    command.current_dir(dir.path("")).args(args).env("TET_NO_QUERY_HISTORY", "1");
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let dir = TestDir::new();
    write_many_chunks(&dir.path("many.tet"), 3000);
    for args in [
        &["outline", "many.tet", "-n", "0"][..],
        &["info", "many.tet", "--chunks", "-n", "0"],
        &["info", "many.tet", "--json"],
    ] {
        let mut child = start(&dir, args, Stdio::null());
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
fn color_is_for_terminals() {
    let dir = TestDir::with_weather();
    dir.damaged("weather.tet", "bad.tet", |bytes| bytes[4] = 9);
    for args in [&["info", "weather.tet"][..], &["verify", "bad.tet"], &["info", "bad.tet"], &["--help"]] {
        let plain = run(dir.command("tet").args(args));
        assert!(!plain.snapshot().contains('\u{1b}'), "{args:?}");
        let forced = run(dir.command("tet").args(args).env("CLICOLOR_FORCE", "1"));
        assert!(forced.snapshot().contains('\u{1b}'), "{args:?}");
        let unwanted = run(dir.command("tet").args(args).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1"));
        assert_eq!(unwanted.snapshot(), plain.snapshot(), "{args:?}");
    }
}

#[test]
fn names_are_escaped_for_terminals() {
    let dir = TestDir::new();
    write_named(&dir.path("evil.tet"), "a\u{1b}[2Jb", "c\u{9b}31m\r\u{202e}d\n");
    dir.damaged("evil.tet", "bad.tet", |bytes| {
        // The payload is found by its values.
        let at = bytes.windows(2).position(|pair| pair == [1, 2]).unwrap();
        bytes[at] ^= 4;
    });
    for args in [
        "info evil.tet --all",
        "info evil.tet --metadata",
        "verify evil.tet",
        "outline evil.tet",
        "verify bad.tet",
        "repair bad.tet",
        "repair bad.tet --salvage saved.tet",
    ] {
        let result = dir.tet(args);
        let text = result.snapshot();
        let is_unsafe = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(is_unsafe), "{args}: {text:?}");
        if !args.starts_with("repair bad.tet") || args.contains("salvage") {
            assert!(text.contains("a\\u{1b}[2Jb"), "{args}: {text}");
        }
    }
    let printed = dir.tet("info evil.tet --json").stdout;
    let json: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(json["summary"]["datasets"][0]["name"], "a\u{1b}[2Jb", "JSON has the name as it is");
    assert_eq!(json["summary"]["history"][0]["op"], "c\u{9b}31m\r\u{202e}d\n");
    assert!(!printed.contains('\u{1b}'), "and escapes it");
}

/// Waits until a process handles SIGTERM: a thread waits for it, and the others block it.
#[cfg(target_os = "linux")]
fn wait_until_listening(pid: u32) {
    for _ in 0..3000 {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        let mask = blocked.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        if mask & (1 << 14) != 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("process {pid} does not listen");
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_is_130() {
    let dir = TestDir::new();
    for args in [&["info", "-"][..], &["query"]] {
        // The pipe has no writer, so the command waits.
        let mut child = start(&dir, args, Stdio::piped());
        wait_until_listening(child.id());
        let sent =
            std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        // `wait_with_output` would close the pipe: keep it open until the process has ended.
        let stdin = child.stdin.take();
        child.wait().unwrap();
        drop(stdin);
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(130), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "interrupted\n", "{args:?}");
    }
}
