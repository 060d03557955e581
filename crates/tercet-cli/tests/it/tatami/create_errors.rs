//! Rejected inputs; errors name the line.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::{TestDir, lines, run_command};

/// Runs `create` on a text and returns the exit code and the error without `error: `.
fn refused(dir: &TestDir, input: &str, text: &str, options: &str) -> (i32, String) {
    dir.write(input, text);
    let output = dir.run(&format!("create out.tatami --from {input} {options}"));
    assert!(!dir.path("out.tatami").exists(), "{text}");
    assert_eq!(output.out, "", "{text}");
    let result = output.err.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    (output.code, result)
}

#[test]
fn rejected_rows_are_named_by_line() {
    let dir = TestDir::new();
    let cases = [
        ("{\"k\":1}\n\n{\"k\":2,}\n", "", 4, "a.jsonl: line 3: expected a quoted key (byte 8)"),
        ("{\"k\":1}\n[1]\n", "", 4, "a.jsonl: line 2: expected a JSON object: `{…}` (byte 1)"),
        ("{\"k\":{}}\n", "", 8, "a.jsonl: no rows to infer a schema from"),
        ("{\"k\":1,\"k\":2}\n", "", 8, "a.jsonl: line 1: column `k`: duplicate column name"),
        (
            "{\"k\":1}\n{\"k\":\"x\"}\n",
            "",
            8,
            "a.jsonl: column `k`: has numbers (line 1) and strings (line 2)",
        ),
        ("{\"k\":18446744073709551616}\n", "", 8, "a.jsonl: column `k`: line 1: integer out of range"),
        (
            "{\"k\":2}\n{\"k\":1}\n",
            "--sort-key k",
            8,
            "a.jsonl: line 2: column `k`: sort key is less than in the previous row",
        ),
        ("{\"k\":300}\n", "--schema k:uint8", 8, "a.jsonl: line 1: column `k`: `300` is not a valid uint8"),
        (
            "{\"k\":1}\n{}\n",
            "--schema k:uint8",
            8,
            "a.jsonl: line 2: column `k`: missing in a non-nullable column",
        ),
        (
            "{\"k\":null}\n",
            "--schema k:uint8",
            8,
            "a.jsonl: line 1: column `k`: null in a non-nullable column",
        ),
        ("{\"k\":1,\"z\":2}\n", "--schema k:uint8", 8, "a.jsonl: line 1: column `z`: not in the schema"),
        ("{\"k\":\"?\"}\n", "--schema k:bytes", 8, "a.jsonl: line 1: column `k`: `?` is not valid base64"),
        ("", "", 8, "a.jsonl: empty input"),
        ("\n", "", 8, "a.jsonl: no rows to infer a schema from"),
        (
            "{\"k\":[1]}\n",
            "--profile interop",
            8,
            "out.tatami: list `k` is not supported by the interop profile",
        ),
        ("{\"k\":1}\n", "--blob k", 8, "`--blob k`: requires string or bytes, found int64"),
        ("{\"k\":1}\n", "--sort-key z", 8, "`--sort-key z`: no such column"),
        ("{\"k\":1}\n", "--null NA", 8, "`--null` applies to CSV only"),
    ];
    for (text, options, code, expected) in cases {
        assert_eq!(refused(&dir, "a.jsonl", text, options), (code, expected.to_owned()), "{text}");
    }
    let cases = [
        ("a,b\n1\n", "", 4, "a.csv: line 2: 1 field, expected 2 columns"),
        ("a,b\n1,\"x\ny\n", "", 4, "a.csv: line 2: unterminated quoted field"),
        ("a,b\n1,\"x\"y\n", "", 4, "a.csv: line 2: expected a delimiter after a closing quote"),
        ("a,b\n1,x\"y\n", "", 4, "a.csv: line 2: quote inside an unquoted field"),
        ("a,a\n", "", 8, "a.csv: line 1: column `a`: duplicate column name"),
        (
            "a,b\n1,\"x\ny\"\nz,\n",
            "--schema a:int8,b:string",
            8,
            "a.csv: line 4: column `a`: `z` is not a valid int8",
        ),
        ("a\n1\n\n", "--schema a:int8", 8, "a.csv: line 3: column `a`: empty value in a non-nullable column"),
        ("b\n1\n", "--schema a:int8", 8, "a.csv: line 1: column `b`: not in the schema"),
        ("b\n", "--schema a:int8", 8, "a.csv: line 1: column `b`: not in the schema"),
    ];
    for (text, options, code, expected) in cases {
        assert_eq!(refused(&dir, "a.csv", text, options), (code, expected.to_owned()), "{text}");
    }
    assert_eq!(dir.names(), ["a.csv", "a.jsonl"], "no temporary file is left");
}

#[test]
fn empty_column_names_are_rejected() {
    let dir = TestDir::new();
    let (code, message) = refused(&dir, "in.jsonl", "{\"a\":1}\n{\"a\":1,\"\":2}\n", "");
    assert_eq!((code, message.as_str()), (8, "in.jsonl: line 2: empty column name"));
    // The index column of pandas has no name.
    assert_eq!(dir.round_trip("in.csv", ",a\n0,x\n", ""), "{\"column0\":0,\"a\":\"x\"}\n");
}

#[test]
fn the_first_unsorted_row_of_many_is_named() {
    let dir = TestDir::new();
    let rows = lines(0..50_000, |row| format!("{{\"k\":{}}}", if row == 41_234 { 5 } else { row }));
    let (code, result) = refused(&dir, "a.jsonl", &rows, "--sort-key k");
    assert_eq!(code, 8);
    assert_eq!(result, "a.jsonl: line 41235: column `k`: sort key is less than in the previous row");
}

#[test]
fn invalid_utf8_is_rejected() {
    let dir = TestDir::new();
    dir.write("a.jsonl", b"{\"k\":\"a\"}\n{\"k\":\"\xff\"}\n");
    let output = dir.run("create out.tatami --from a.jsonl");
    assert_eq!(output.code, 4);
    assert!(output.err.contains("a.jsonl: line 2: invalid UTF-8 (byte 7)"), "{}", output.err);
    dir.write("a.csv", b"k\n\xff\n");
    let output = dir.run("create out.tatami --from a.csv");
    assert!(output.err.contains("a.csv: line 2: column `k`: invalid UTF-8"), "{}", output.err);
}

#[test]
fn files_need_force_and_valid_options() {
    let dir = TestDir::with_cities();
    let output = dir.run("create cities.tatami --from cities.jsonl");
    assert_eq!(output.code, 8);
    assert!(output.err.contains("cities.tatami: file exists"), "{}", output.err);
    dir.write("rows.txt", "{\"a\":1}\n");
    dir.ok("create new.tatami --from rows.txt");
    dir.ok("create new.tatami --from rows.txt --format jsonl --force");
    for wrong in [
        "create x.tatami",
        "create x.tatami --from a.jsonl --schema a",
        "create x.tatami --from a.jsonl --uuid 1",
        "create x.tatami --from a.jsonl --created then",
        "create x.tatami --from a.jsonl --metadata tatami.version=2",
        "create x.tatami --from a.jsonl --page-rows 0",
        "create x.tatami --from a.csv --no-header --header",
    ] {
        assert_eq!(dir.run(wrong).code, 2, "{wrong}");
    }
    let both = run_command(dir.command().args(["create", "-", "--from", "cities.jsonl", "--json"]));
    assert_eq!(both.code, 8);
}

/// Without `--force` no file is replaced, even one created after the command started.
#[test]
fn a_concurrently_created_file_is_kept() {
    let dir = TestDir::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tatami"));
    command.current_dir(dir.0.path()).args(["create", "new.tatami", "--from", "-"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // The input is larger than a pipe buffer: once it is consumed, the output path has been checked.
    input.write_all("{\"n\":1}\n".repeat(1 << 17).as_bytes()).unwrap();
    dir.write("new.tatami", "another file");
    drop(input);
    let done = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(8), "{stderr}");
    assert!(stderr.contains("new.tatami"), "{stderr}");
    assert_eq!(dir.read("new.tatami"), b"another file");
    assert_eq!(dir.names(), ["new.tatami"]);
}
