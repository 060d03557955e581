//! Values without an exact representation are rejected or reported, never changed silently.

use super::{CommandOutput, TestDir};

/// The error for a rejected input; no output is written.
fn refused(dir: &TestDir, name: &str, text: impl AsRef<[u8]>, options: &str) -> CommandOutput {
    dir.write(name, text);
    let result = dir.run(&format!("create none.tatami --from {name} {options}"));
    assert_ne!(result.code, 0, "{name}: {}", result.out);
    assert!(!dir.names().contains(&"none.tatami".to_owned()));
    result
}

#[test]
fn inferred_numbers_keep_their_digits() {
    let dir = TestDir::new();
    for number in ["12345678901234567.89", "1.000000000000000000001", "1e-400", "1e400"] {
        let printed = dir.round_trip("a.csv", &format!("x\n0.5\n{number}\n"), "");
        assert_eq!(printed, format!("{{\"x\":\"0.5\"}}\n{{\"x\":\"{number}\"}}\n"));
        let result = refused(&dir, "a.jsonl", format!("{{\"x\":0.5}}\n{{\"x\":{number}}}\n"), "");
        assert!(result.err.contains("column `x`: line 2: number is not exact as float64"), "{}", result.err);
    }
    // An explicit type allows rounding.
    let printed = dir.round_trip("b.csv", "x\n12345678901234567.89\n1e-400\n", "--schema x:float64");
    assert_eq!(printed, "{\"x\":12345678901234568}\n{\"x\":0}\n");
    let result = refused(&dir, "b.jsonl", "{\"x\":1e400}\n", "--schema x:float64");
    assert!(result.err.contains("`1e400` is not a valid float64"), "{}", result.err);
}

#[test]
fn times_are_read_in_the_unit_of_their_type() {
    let dir = TestDir::new();
    let printed = dir.round_trip("a.csv", "t\n5\n1970-01-01T00:00:06\n", "--schema t:timestamp[s]");
    assert_eq!(printed, "{\"t\":\"1970-01-01T00:00:05\"}\n{\"t\":\"1970-01-01T00:00:06\"}\n");
    let result = refused(&dir, "b.csv", "t\n1970-01-01T00:00:06.5\n", "--schema t:timestamp[s]");
    assert!(
        result.err.contains("line 2: column `t`: `1970-01-01T00:00:06.5` has a higher precision"),
        "{}",
        result.err
    );
}

#[test]
fn invalid_utf8_is_reported_with_its_location() {
    let dir = TestDir::new();
    for (bytes, reason) in [
        (&b"\x1f\x8b\x08\0\0"[..], "a.csv: cannot read: unexpected end of file"),
        (b"\xff\xfea\0,\0b\0\n", "a.csv: cannot read: invalid UTF-16LE before byte 9"),
        (b"PAR1\x15\x04", "a.csv: "),
        (b"caf\xe9,b\n", "a.csv: line 1: invalid UTF-8 in the name of column 1"),
        (b"a,b\r1,2\r3,4\r", "a.csv: line 1: lines end with CR only"),
        (b"", "a.csv: empty input"),
    ] {
        let result = refused(&dir, "a.csv", bytes, "");
        assert!(result.err.contains(reason), "{}", result.err);
    }
    assert_eq!(dir.round_trip("b.csv", "a\r\n\"x\ry\"\r\n", ""), "{\"a\":\"x\\ry\"}\n");
}

#[cfg(feature = "arrow")]
#[test]
fn missing_columns_are_reported_with_the_existing_ones() {
    let dir = TestDir::new();
    dir.write("a.jsonl", "{\"a\":1}\n{\"a\":2,\"b\":\"x\"}\n");
    let formats = ["parquet", "arrow", "arrows", "csv", "tatami"];
    for format in formats {
        dir.ok(&format!("convert a.jsonl a.{format}"));
    }
    for format in formats.into_iter().chain(["jsonl"]) {
        for columns in ["nope", "a,nope"] {
            let result = dir.run(&format!("convert a.{format} out.csv --columns {columns}"));
            assert!(result.code == 8 && result.err.contains("no column `nope`"), "{format}: {}", result.err);
            assert!(result.err.contains("columns: `a`, `b`"), "{format}: {}", result.err);
        }
        let args = ["convert", &format!("a.{format}"), "out.csv", "--columns", "b", "--where", "nope = 1"];
        let result = dir.run_args(&args);
        assert!(result.code == 8 && result.err.contains("columns: `a`, `b`"), "{format}: {}", result.err);
    }
    dir.write("packed", b"\x1f\x8b\x08\0");
    let result = dir.run("convert packed out.csv");
    assert!(result.code == 4 && result.err.contains("packed: cannot read"), "{}", result.err);
    dir.write("empty", "");
    let result = dir.run("convert empty out.csv");
    assert!(result.err.contains("empty: empty input"), "{}", result.err);
}

#[cfg(feature = "arrow")]
#[test]
fn types_without_parquet_form_are_rejected() {
    let dir = TestDir::new();
    dir.write("a.csv", "a,b,c\n100,1,200\n");
    let schema = "a:decimal128[5,-2],b:int8,c:decimal128[5,-1]";
    let args = ["convert", "a.csv", "a.parquet", "--schema", schema];
    let result = dir.run_args(&args);
    assert_eq!(result.code, 7, "{}", result.err);
    assert!(result.err.contains("a.parquet: Parquet has no type for `a` ("), "{}", result.err);
    assert!(result.err.contains(", `c` (") && dir.names() == ["a.csv"], "{}", result.err);
}

#[cfg(feature = "arrow")]
#[test]
fn a_truncated_arrow_stream_warns() {
    let dir = TestDir::new();
    dir.write("a.jsonl", "{\"a\":1}\n");
    dir.ok("convert a.jsonl a.arrows");
    assert_eq!(dir.ok("convert a.arrows whole.csv").err, "");
    let bytes = dir.read("a.arrows");
    dir.write("cut.arrows", &bytes[..bytes.len() - 8]);
    let result = dir.ok("convert cut.arrows cut.csv");
    assert!(result.err.contains("warning: cut.arrows: the stream has no end marker"), "{}", result.err);
    assert_eq!(dir.read("cut.csv"), dir.read("whole.csv"));
}
