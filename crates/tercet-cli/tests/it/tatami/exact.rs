//! Texts and tables that cannot be taken as they are: nothing is lost silently.

use super::{Folder, Said};

/// What is said of an input that is refused; nothing is made of it.
fn refused(folder: &Folder, name: &str, text: impl AsRef<[u8]>, options: &str) -> Said {
    folder.write(name, text);
    let said = folder.run(&format!("create none.tatami --from {name} {options}"));
    assert_ne!(said.code, 0, "{name}: {}", said.out);
    assert!(!folder.names().contains(&"none.tatami".to_owned()));
    said
}

#[test]
fn numbers_that_are_guessed_keep_their_digits() {
    let folder = Folder::new();
    for number in ["12345678901234567.89", "1.000000000000000000001", "1e-400", "1e400"] {
        let told = folder.back("a.csv", &format!("x\n0.5\n{number}\n"), "");
        assert_eq!(told, format!("{{\"x\":\"0.5\"}}\n{{\"x\":\"{number}\"}}\n"));
        let said = refused(&folder, "a.jsonl", format!("{{\"x\":0.5}}\n{{\"x\":{number}}}\n"), "");
        assert!(said.err.contains("column `x`: line 2: number is not exact as float64"), "{}", said.err);
    }
    // Whoever names the type wants it rounded.
    let told = folder.back("b.csv", "x\n12345678901234567.89\n1e-400\n", "--schema x:float64");
    assert_eq!(told, "{\"x\":12345678901234568}\n{\"x\":0}\n");
    let said = refused(&folder, "b.jsonl", "{\"x\":1e400}\n", "--schema x:float64");
    assert!(said.err.contains("`1e400` is not a valid float64"), "{}", said.err);
}

#[test]
fn times_are_read_in_the_unit_of_their_type() {
    let folder = Folder::new();
    let told = folder.back("a.csv", "t\n5\n1970-01-01T00:00:06\n", "--schema t:timestamp[s]");
    assert_eq!(told, "{\"t\":\"1970-01-01T00:00:05\"}\n{\"t\":\"1970-01-01T00:00:06\"}\n");
    let said = refused(&folder, "b.csv", "t\n1970-01-01T00:00:06.5\n", "--schema t:timestamp[s]");
    assert!(
        said.err.contains("line 2: column `t`: `1970-01-01T00:00:06.5` has a higher precision"),
        "{}",
        said.err
    );
}

#[test]
fn bytes_that_are_no_text_are_named() {
    let folder = Folder::new();
    for (bytes, reason) in [
        (&b"\x1f\x8b\x08\0\0"[..], "a.csv: gzip-compressed data"),
        (b"\xff\xfea\0,\0b\0\n\0", "a.csv: UTF-16 text"),
        (b"PAR1\x15\x04", "a.csv: Parquet file"),
        (b"caf\xe9,b\n", "a.csv: line 1: invalid UTF-8 in the name of column 1"),
        (b"a,b\r1,2\r3,4\r", "a.csv: line 1: lines end with CR only"),
        (b"", "a.csv: empty input"),
    ] {
        let said = refused(&folder, "a.csv", bytes, "");
        assert!(said.err.contains(reason), "{}", said.err);
    }
    assert_eq!(folder.back("b.csv", "a\r\n\"x\ry\"\r\n", ""), "{\"a\":\"x\\ry\"}\n");
}

#[cfg(feature = "arrow")]
#[test]
fn columns_that_are_not_there_are_named_with_those_that_are() {
    let folder = Folder::new();
    folder.write("a.jsonl", "{\"a\":1}\n{\"a\":2,\"b\":\"x\"}\n");
    let formats = ["parquet", "arrow", "arrows", "csv", "tatami"];
    for format in formats {
        folder.ok(&format!("convert a.jsonl a.{format}"));
    }
    for format in formats.into_iter().chain(["jsonl"]) {
        for columns in ["nope", "a,nope"] {
            let said = folder.run(&format!("convert a.{format} out.csv --columns {columns}"));
            assert!(said.code == 8 && said.err.contains("no column `nope`"), "{format}: {}", said.err);
            assert!(said.err.contains("columns: `a`, `b`"), "{format}: {}", said.err);
        }
        let words = ["convert", &format!("a.{format}"), "out.csv", "--columns", "b", "--where", "nope = 1"];
        let said = folder.ran(&words);
        assert!(said.code == 8 && said.err.contains("columns: `a`, `b`"), "{format}: {}", said.err);
    }
    folder.write("packed", b"\x1f\x8b\x08\0");
    let said = folder.run("convert packed out.csv");
    assert!(said.code == 7 && said.err.contains("packed: gzip-compressed data"), "{}", said.err);
    folder.write("empty", "");
    let said = folder.run("convert empty out.csv");
    assert!(said.err.contains("empty: empty file"), "{}", said.err);
}

#[cfg(feature = "arrow")]
#[test]
fn parquet_is_not_given_what_it_cannot_tell() {
    let folder = Folder::new();
    folder.write("a.csv", "a,b,c\n100,1,200\n");
    let schema = "a:decimal128[5,-2],b:int8,c:decimal128[5,-1]";
    let words = ["convert", "a.csv", "a.parquet", "--schema", schema];
    let said = folder.ran(&words);
    assert_eq!(said.code, 7, "{}", said.err);
    assert!(said.err.contains("a.parquet: Parquet has no type for `a` ("), "{}", said.err);
    assert!(said.err.contains(", `c` (") && folder.names() == ["a.csv"], "{}", said.err);
}

#[cfg(feature = "arrow")]
#[test]
fn a_stream_without_its_end_is_warned_of() {
    let folder = Folder::new();
    folder.write("a.jsonl", "{\"a\":1}\n");
    folder.ok("convert a.jsonl a.arrows");
    assert_eq!(folder.ok("convert a.arrows whole.csv").err, "");
    let bytes = folder.read("a.arrows");
    folder.write("cut.arrows", &bytes[..bytes.len() - 8]);
    let said = folder.ok("convert cut.arrows cut.csv");
    assert!(said.err.contains("warning: cut.arrows: the stream has no end marker"), "{}", said.err);
    assert_eq!(folder.read("cut.csv"), folder.read("whole.csv"));
}
