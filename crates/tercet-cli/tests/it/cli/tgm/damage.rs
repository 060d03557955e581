//! Damaged and malformed files.

use std::io::Read as _;
use std::process::Stdio;

use super::sample::{dir, message_range, with_damaged_metadata, with_damaged_payload};
use crate::cli::support::TestDir;

#[test]
fn unrecognized_bytes_are_reported() {
    let dir = dir();
    let run = dir.read("run.tgm");
    dir.write("junk.tgm", &[b"before", &*run, b"and after"].concat());
    let (start, end) = (run.len() + 6, run.len() + 15);
    let expected = format!(
        "warning: junk.tgm: unrecognized bytes 0..6: not part of a message\n\
         warning: junk.tgm: unrecognized bytes {start}..{end}: not part of a message\n"
    );
    for args in ["info", "ls", "dump", "get -p mars.param", "outline"] {
        let output = dir.tgm(&format!("{args} junk.tgm"));
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), expected.as_str()), "{args}");
    }
    let json: serde_json::Value = serde_json::from_str(&dir.tgm("info --json junk.tgm").stdout).unwrap();
    assert_eq!(json[0]["unrecognized"][0], serde_json::json!({ "start": 0, "end": 6 }));
    assert_eq!(dir.tgm("ls -p mars.param junk.tgm").stdout, dir.tgm("ls -p mars.param run.tgm").stdout);
}

#[test]
fn many_unrecognized_ranges_are_counted() {
    let dir = dir();
    let first = message_range(&dir, "run.tgm", 0);
    let message = &dir.read("run.tgm")[first];
    dir.write("gaps.tgm", &[message, b"junk"].concat().repeat(7));
    let output = dir.tgm("info gaps.tgm");
    assert!(output.stdout.contains("  Messages: 7\n"), "{}", output.stdout);
    let lines: Vec<&str> = output.stderr.lines().collect();
    assert_eq!(lines.len(), 5, "{}", output.stderr);
    assert_eq!(lines[4], "warning: gaps.tgm: … and 3 more gaps, 12 bytes");
}

#[test]
fn a_missing_file_is_3_and_leaves_standard_output_clean() {
    let dir = dir();
    for args in ["info", "ls", "ls -j", "dump", "get -p a", "validate --json", "outline"] {
        let output = dir.tgm(&format!("{args} missing.tgm"));
        assert_eq!((output.code, output.stdout.as_str()), (Some(3), ""), "{args}");
        let is_json = args.contains("-j");
        let start = if is_json { "{\"error\":{" } else { "error: missing.tgm: cannot open: " };
        assert!(output.stderr.starts_with(start), "{args}: {}", output.stderr);
    }
}

#[test]
fn a_file_without_messages_is_4() {
    let dir = TestDir::new();
    dir.write("text.tgm", b"this is no such file, it only has the name of one");
    for args in ["info", "ls", "dump", "get -p a", "copy"] {
        let target = if args == "copy" { "out.tgm" } else { "" };
        let output = dir.tgm(&format!("{args} text.tgm {target}"));
        let expected =
            "error: text.tgm: contains no messages\n  hint: inspect the bytes with `tgm outline`\n";
        assert_eq!((output.code, output.stderr.as_str()), (Some(4), expected), "{args}");
    }
    assert!(!dir.path("out.tgm").exists());
}

/// The reason is reported for a truncated message and for one of another version.
#[test]
fn a_malformed_message_is_reported_with_the_reason() {
    let dir = dir();
    let whole = dir.read("run.tgm");
    dir.write("cut.tgm", &whole[..200]);
    let output = dir.tgm("ls cut.tgm");
    assert_eq!(output.code, Some(4));
    assert!(output.stderr.contains("file ends inside message 0: 200 of "), "{}", output.stderr);
    let mut newer = whole[..200].to_vec();
    newer[9] = 4;
    dir.write("newer.tgm", &newer);
    let output = dir.tgm("ls newer.tgm");
    assert_eq!(output.code, Some(7));
    assert!(output.stderr.contains("is 4, but this build supports version 3 only"), "{}", output.stderr);
}

#[test]
fn a_broken_frame_is_4() {
    let dir = dir();
    dir.damaged("run.tgm", "bad.tgm", |bytes| bytes[24] = b'X');
    for args in ["ls", "dump", "get -p mars.param"] {
        let output = dir.tgm(&format!("{args} bad.tgm"));
        assert_eq!(output.code, Some(4), "{args}: {}", output.stderr);
        assert!(
            output.stderr.starts_with("error: bad.tgm: malformed message 0 › frame 0"),
            "{}",
            output.stderr
        );
    }
}

#[test]
fn damaged_metadata_is_5() {
    let dir = dir();
    with_damaged_metadata(&dir, "bad.tgm");
    for args in ["ls", "ls -j", "dump", "get -p centre", "ls -w centre=ecmf"] {
        let output = dir.tgm(&format!("{args} bad.tgm"));
        assert_eq!(output.code, Some(5), "{args}: {}", output.stderr);
        assert!(output.stderr.contains("message 0 › frame 0 (header_metadata)"), "{args}: {}", output.stderr);
        assert!(!output.stdout.contains("ecmg"), "{args}: {}", output.stdout);
    }
    let output = dir.tgm("get -p centre bad.tgm --ignore-checksums");
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "ecmg\necmf\necmf\n"), "{}", output.stderr);
}

#[test]
fn a_damaged_payload_affects_object_commands_only() {
    let dir = dir();
    with_damaged_payload(&dir, "bad.tgm");
    assert_eq!(dir.tgm("ls bad.tgm").code, Some(0));
    let output = dir.tgm("dump bad.tgm");
    assert_eq!(output.code, Some(5));
    assert!(output.stdout.contains("=== Message 0 ===") && !output.stdout.contains("=== Message 1 ==="));
    assert!(output.stderr.starts_with("error: bad.tgm: message 1 › object 0 (bytes "), "{}", output.stderr);
    let output = dir.tgm("dump --ignore-checksums bad.tgm");
    assert_eq!((output.code, output.stdout), (Some(0), dir.tgm("dump run.tgm").stdout));
}

#[test]
fn every_truncation_is_reported() {
    let dir = dir();
    let whole = dir.read("run.tgm");
    let start = message_range(&dir, "run.tgm", 2).start;
    for len in [1, 24, start - 1, start + 1, start + 60, whole.len() - 1] {
        dir.write("cut.tgm", &whole[..len]);
        let output = dir.tgm("ls cut.tgm");
        assert!([Some(1), Some(4)].contains(&output.code), "{len}: {}", output.snapshot());
        assert!(output.stderr.contains("file ends inside message"), "{len}: {}", output.snapshot());
        let output = dir.tgm("validate cut.tgm");
        assert_eq!(output.code, Some(1), "{len}");
        assert!(output.stderr.contains("file ends inside message"), "{len}: {}", output.snapshot());
    }
}

/// A cut tail is named; verbs that write refuse it unless it is allowed.
#[test]
fn a_cut_tail_is_named_and_not_lost() {
    let dir = dir();
    let last = message_range(&dir, "run.tgm", 2);
    dir.write("cut.tgm", &dir.read("run.tgm")[..last.start + 60]);
    let named = "cut.tgm: file ends inside message 2: 60 bytes";
    for args in ["info cut.tgm", "ls cut.tgm", "get -p version cut.tgm", "dump cut.tgm", "outline cut.tgm"] {
        let output = dir.tgm(args);
        assert_eq!(output.code, Some(1), "{args}: {}", output.snapshot());
        assert!(output.stderr.contains(&format!("warning: {named}")), "{args}: {}", output.stderr);
    }
    for args in [
        "copy cut.tgm out.tgm",
        "merge cut.tgm -o out.tgm",
        "split cut.tgm -o out.tgm",
        "set -s a=b cut.tgm out.tgm",
        "reshuffle cut.tgm -o out.tgm",
        "repack cut.tgm out.tgm --compression zstd",
    ] {
        let output = dir.tgm(args);
        assert_eq!(output.code, Some(4), "{args}: {}", output.snapshot());
        assert!(output.stderr.contains(&format!("error: {named}")), "{args}: {}", output.stderr);
        assert!(!dir.path("out.tgm").exists(), "{args}");
    }
    assert_eq!(dir.tgm("copy cut.tgm out.tgm --allow-truncated").code, Some(0));
    assert_eq!(dir.read("out.tgm"), dir.read("run.tgm")[..last.start]);
}

/// A lost preamble shifts numbers: reading by number is refused, and no message is dropped silently.
#[test]
fn gaps_are_reported_and_stop_numbers() {
    let dir = dir();
    let second = message_range(&dir, "run.tgm", 1);
    dir.damaged("run.tgm", "zeros.tgm", |bytes| bytes[second.start..second.start + 512].fill(0));
    dir.damaged("run.tgm", "magic.tgm", |bytes| bytes[second.start] ^= 1);
    for file in ["zeros.tgm", "magic.tgm"] {
        for args in ["ls", "get -p version", "info", "dump"] {
            let output = dir.tgm(&format!("{args} {file}"));
            assert!(output.stderr.contains("not part of a message"), "{args}: {}", output.snapshot());
        }
        let output = dir.tgm(&format!("extract {file} 1 -o x.npy"));
        assert_eq!(output.code, Some(4), "{}", output.snapshot());
        assert!(output.stderr.contains("message 1 follows a gap"), "{}", output.stderr);
        assert!(output.stderr.contains("--allow-gaps"), "{}", output.stderr);
        assert_eq!(dir.tgm(&format!("extract {file} 0 -o x.bin --force")).code, Some(0));
        assert_eq!(dir.tgm(&format!("extract {file} -w mars.param=10u -o x.bin --force")).code, Some(0));
        for verb in ["copy", "reshuffle -o", "merge -o", "set -s a=b"] {
            let args = match verb.split_once(" -o") {
                Some((verb, _)) => format!("{verb} {file} -o out.tgm"),
                None => format!("{verb} {file} out.tgm"),
            };
            let output = dir.tgm(&args);
            assert_eq!(output.code, Some(4), "{args}: {}", output.snapshot());
            assert!(output.stderr.contains("messages may be lost"), "{args}: {}", output.stderr);
            assert!(!dir.path("out.tgm").exists(), "{args}");
        }
    }
    assert_eq!(dir.tgm("copy magic.tgm out.tgm --allow-gaps").code, Some(0));
}

/// An index made after the damage does not hide it.
#[test]
fn an_index_does_not_hide_a_gap() {
    let dir = dir();
    let second = message_range(&dir, "run.tgm", 1);
    for option in ["", "--index-file"] {
        dir.damaged("run.tgm", "zero.tgm", |bytes| bytes[second.start..second.start + 24].fill(0));
        let output = dir.tgm(&format!("index zero.tgm {option}"));
        assert_eq!(output.code, Some(4), "{}", output.snapshot());
        let gap = format!("cannot index: unrecognized bytes {}..{}", second.start, second.end);
        assert!(output.stderr.contains(&gap), "{}", output.stderr);
        assert!(output.stderr.contains("--allow-gaps"), "{}", output.stderr);
        assert_eq!(dir.tgm(&format!("index zero.tgm {option} --allow-gaps")).code, Some(0));
        let output = dir.tgm("extract zero.tgm 1 -o x.bin --force");
        assert_eq!(output.code, Some(4), "{}", output.snapshot());
        assert!(output.stderr.contains("message 1 follows a gap"), "{}", output.stderr);
        assert_eq!(dir.tgm("extract zero.tgm 1 -o x.bin --force --allow-gaps").code, Some(0));
        assert_eq!(dir.tgm("extract zero.tgm -w mars.param=10u -o x.bin --force").code, Some(0));
    }
}

/// Nor does it follow an incomplete message.
#[test]
fn a_file_that_ends_inside_a_message_is_not_indexed() {
    let dir = dir();
    let third = message_range(&dir, "run.tgm", 2);
    dir.write("cut.tgm", &dir.read("run.tgm")[..third.start + 60]);
    for option in ["", "--index-file"] {
        let output = dir.tgm(&format!("index cut.tgm {option}"));
        assert_eq!(output.code, Some(4), "{}", output.snapshot());
        assert!(output.stderr.contains("cannot index: file ends inside message 2: 60 "), "{}", output.stderr);
        assert!(output.stderr.contains("`tgm repair FILE -o NEW`"), "{}", output.stderr);
    }
}

/// What is extracted from everything, or counted from the end, needs a whole file; a selection by key does not.
#[test]
fn extract_needs_a_whole_file_unless_keys_select() {
    let dir = dir();
    let (second, third) = (message_range(&dir, "run.tgm", 1), message_range(&dir, "run.tgm", 2));
    dir.write("cut.tgm", &dir.read("run.tgm")[..third.start + 60]);
    dir.damaged("run.tgm", "gap.tgm", |bytes| bytes[second.start..second.start + 24].fill(0));
    for (file, named, allow) in [
        ("cut.tgm", "cut.tgm: file ends inside message 2", "--allow-truncated"),
        ("gap.tgm", "gap.tgm: unrecognized bytes", "--allow-gaps"),
    ] {
        for args in ["-1.0 -o x.npy", "--stack mars.step -o x.npy", "-o x-[message]-[object].npy"] {
            let output = dir.tgm(&format!("extract {file} {args}"));
            assert_eq!(output.code, Some(4), "{file} {args}: {}", output.snapshot());
            assert!(output.stderr.contains(&format!("error: {named}")), "{file} {args}: {}", output.stderr);
            assert!(output.stderr.contains(allow), "{file} {args}: {}", output.stderr);
            assert!(!dir.path("x.npy").exists() && !dir.path("x-0-0.npy").exists(), "{file} {args}");
        }
        let args = format!("extract {file} -o x-[message]-[object].npy --force {allow}");
        assert_eq!(dir.tgm(&args).code, Some(0), "{args}");
        std::fs::remove_file(dir.path("x-0-0.npy")).unwrap();
        let output = dir.tgm(&format!("extract {file} -w mars.param=2t -o y.npy --force"));
        assert_eq!(output.code, Some(0), "{}", output.snapshot());
        assert!(output.stderr.contains(&format!("warning: {named}")), "{}", output.stderr);
        assert_eq!(dir.tgm(&format!("extract {file} 0.0 -o y.npy --force")).code, Some(0));
    }
}

/// A message of which no byte is left is a loss.
#[test]
fn repair_reports_a_message_that_is_gone() {
    let dir = dir();
    let second = message_range(&dir, "run.tgm", 1);
    let range = format!("unrecognized: bytes {}..{}", second.start, second.end);
    dir.damaged("run.tgm", "gone.tgm", |bytes| bytes[second].fill(0));
    for args in ["repair gone.tgm", "repair gone.tgm -o kept.tgm"] {
        let output = dir.tgm(args);
        assert_eq!(output.code, Some(1), "{}", output.snapshot());
        assert!(output.stdout.contains(&range), "{}", output.stdout);
        assert!(output.stdout.contains("a message may be lost"), "{}", output.stdout);
    }
    assert!(dir.tgm("info kept.tgm").stdout.contains("  Messages: 2\n"));
}

#[test]
fn other_versions_are_named() {
    let dir = dir();
    let second = message_range(&dir, "run.tgm", 1);
    dir.damaged("run.tgm", "two.tgm", |bytes| bytes[second.start + 9] = 2);
    for args in ["ls two.tgm", "validate two.tgm"] {
        let output = dir.tgm(args);
        assert!(
            output.stderr.contains("a message of version 2; only version 3 is supported"),
            "{}",
            output.stderr
        );
    }
}

#[test]
fn empty_inputs_are_errors() {
    let dir = dir();
    dir.write("none.tgm", b"");
    for args in [
        "copy none.tgm out.tgm",
        "repack none.tgm out.tgm --compression zstd",
        "split none.tgm -o out.tgm",
        "ls none.tgm",
        "get none.tgm -p step",
        "dump none.tgm",
        "extract none.tgm 0 -o out.tgm --as raw",
    ] {
        let output = dir.tgm(args);
        assert_eq!(
            (output.code, output.stderr.as_str()),
            (Some(4), "error: none.tgm: contains no messages\n"),
            "{args}"
        );
        assert!(!dir.path("out.tgm").exists());
    }
    // A file that waits for its first message is valid.
    for args in ["info none.tgm", "validate none.tgm", "tail none.tgm --no-follow"] {
        assert_eq!(dir.tgm(args).code, Some(0), "{args}");
    }
    let output = dir.tgm("copy run.tgm x-[nosuch].tgm");
    assert_eq!(output.code, Some(8), "{}", output.stderr);
    assert!(output.stderr.contains("no key `nosuch` for the file name"), "{}", output.stderr);
}

/// Many false starts are counted, not reported one by one.
#[test]
fn damage_reports_of_tail_are_bounded() {
    let dir = dir();
    dir.write("magic.tgm", &b"TENSOGRM".repeat(1 << 15));
    let output = dir.tgm("tail magic.tgm --no-follow");
    assert!(output.stderr.len() < 16 << 10, "{} bytes", output.stderr.len());
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let dir = dir();
    dir.write("many.tgm", &dir.read("run.tgm").repeat(300));
    for args in
        [&["dump"][..], &["ls", "-j", "-p", "mars,centre,scale,version,mars.param"], &["outline", "-n", "0"]]
    {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_tgm"))
            .args(args)
            .arg(dir.path("many.tgm"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        // The output is larger than a pipe buffer, so the command still writes when the pipe is closed.
        stdout.read_exact(&mut [0; 16]).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        assert_eq!(output.status.code(), Some(0), "{args:?}");
    }
}
