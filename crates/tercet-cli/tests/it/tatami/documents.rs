//! Parsing of documents, and rejected documents.

use super::TestDir;

/// Indexes a file and returns the printed columns.
fn indexed(dir: &TestDir, name: &str, text: impl AsRef<[u8]>, columns: &str) -> String {
    dir.write(name, text);
    dir.ok(&format!("index {name} -o out.tatami --force"));
    dir.ok(&format!("cat out.tatami --columns {columns}")).out
}

/// The error for a rejected file; no output is written.
fn refused(dir: &TestDir, name: &str, text: impl AsRef<[u8]>, options: &str) -> String {
    dir.write(name, text);
    let result = dir.run(&format!("index {name} -o none.tatami {options}"));
    assert_ne!(result.code, 0, "{}", result.out);
    assert!(!dir.names().contains(&"none.tatami".to_owned()));
    result.err
}

#[test]
fn trec_documents_are_found_anywhere() {
    let dir = TestDir::new();
    let text = "<DOC>\n<DOCNO>1</DOCNO>\nfirst\n</DOC>\n<DOC><DOCNO>2</DOCNO>second</DOC><doc id=\"x\">\
        <docno>3</docno><TEXT>a</TEXT></doc>";
    assert_eq!(
        indexed(&dir, "a.trec", text, "doc_id"),
        "{\"doc_id\":\"1\"}\n{\"doc_id\":\"2\"}\n{\"doc_id\":\"3\"}\n"
    );
    for (text, reason) in [
        ("<DOC>\n<DOC><DOCNO>2</DOCNO></DOC>", "line 1: unterminated document"),
        ("<DOC><DOCNO>1</DOCNO></DOC>\nlost", "line 2: expected `<DOC>`"),
        ("just text\n", "line 1: expected `<DOC>`"),
        ("<DOC>x</DOC>", "line 1: document without <DOCNO>"),
    ] {
        let result = refused(&dir, "b.trec", text, "");
        assert!(result.contains(reason), "{result}");
    }
}

#[test]
fn jsonl_lines_are_parsed_exactly_or_rejected() {
    let dir = TestDir::new();
    let text = "\u{feff}{\"id\":18446744073709551615,\"text\":\"a\"}\n";
    assert_eq!(indexed(&dir, "a.jsonl", text, "doc_id"), "{\"doc_id\":\"18446744073709551615\"}\n");
    for (text, reason) in [
        ("{\"id\":18446744073709551616}\n", "line 1: field `id`: number is not exact as float64"),
        ("{\"id\":1}\n{\"id\":2,}\n", "line 2, column 9: invalid JSON object"),
    ] {
        let result = refused(&dir, "b.jsonl", text, "");
        assert!(result.contains(reason) && !result.contains("at line"), "{result}");
    }
}

#[test]
fn named_fields_must_exist() {
    let dir = TestDir::new();
    let text = "{\"id\":1,\"words\":\"a\"}\n{\"id\":2,\"late\":\"b\"}\n";
    for option in ["--body-field", "--id-field", "--url-field", "--title-field", "--anchor-field"] {
        let result = refused(&dir, "a.jsonl", text, &format!("{option} nope"));
        let reason = if option == "--id-field" {
            "line 1: no field `nope` or `url`"
        } else {
            "a.jsonl: no line has field `nope`"
        };
        assert!(result.contains(reason), "{result}");
    }
    dir.ok("index a.jsonl -o late.tatami --body-field late");
    let result = dir.ok("index a.jsonl -o out.tatami");
    let note = "2 documents of a.jsonl have no text: no field `body`, `text` or `contents`";
    assert!(result.err.contains(note), "{}", result.err);
    let help = dir.ok("index --help").out;
    for default in ["[default: url]", "[default: title]", "[default: anchor]", "Parquet and TREC"] {
        assert!(help.contains(default), "{default}");
    }
}

#[cfg(feature = "arrow")]
#[test]
fn named_columns_must_exist() {
    let dir = TestDir::new();
    dir.write("a.jsonl", "{\"id\":\"1\",\"words\":\"a\"}\n");
    dir.ok("convert a.jsonl a.parquet");
    for option in ["--body-field", "--id-field", "--url-field", "--title-field", "--anchor-field"] {
        let result = dir.run(&format!("index a.parquet -o out.tatami {option} nope"));
        assert!(result.err.contains("a.parquet: no column `nope`"), "{}", result.err);
    }
    let result = dir.ok("index a.parquet -o out.tatami");
    assert!(result.err.contains("1 document of a.parquet has no text"), "{}", result.err);
    dir.ok("convert a.jsonl b.parquet --columns words");
    let result = dir.run("index b.parquet -o b.tatami");
    assert!(result.err.contains("b.parquet: no ID and no field `url`"), "{}", result.err);
}

/// Text in another encoding is decoded: as declared, or by a guess that is reported.
#[test]
fn other_encodings_are_decoded() {
    let dir = TestDir::new();
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("日本".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    for (name, bytes, body) in [
        ("a.html", &b"<meta charset=latin1><p>caf\xe9"[..], "caf\u{e9}"),
        ("b.txt", "caf\u{e9}".as_bytes(), "caf\u{e9}"),
        ("c.html", b"<meta charset='shift_jis'><p>\x93\xfa\x96\x7b", "日本"),
        (
            "d.html",
            b"<meta http-equiv=content-type content='text/html; charset=gbk'>\xd6\xd0\xce\xc4",
            "中文",
        ),
        ("e.txt", &utf16, "日本"),
    ] {
        dir.write(name, bytes);
        let result = dir.ok(&format!("index {name} -o out.tatami --force"));
        assert_eq!(result.err, "", "{name}");
        let printed = dir.ok("cat out.tatami --columns body").out;
        assert_eq!(printed, format!("{{\"body\":\"{body}\"}}\n"), "{name}");
    }
    let text: &[u8] = b"Longtemps, je me suis couch\xe9 de bonne heure. \xc0 peine ma bougie \xe9teinte";
    dir.write("guess.txt", text);
    dir.write("damaged.txt", [&"日本".repeat(9).into_bytes()[..], b"\xff"].concat());
    let result = dir.ok("index guess.txt damaged.txt -o out.tatami --force");
    assert!(
        result.err.contains("guess.txt: no declared encoding and not UTF-8; read as windows-1252 by a guess")
    );
    assert!(result.err.contains("1 file has bytes that are invalid in its encoding"), "{}", result.err);
    assert!(dir.ok("cat out.tatami --columns body").out.contains("couché de bonne heure. À peine"));
}

/// Files of a directory that cannot be read are reported; the others are indexed. Named files are an error.
#[test]
fn one_bad_file_does_not_stop_a_directory() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("docs")).unwrap();
    dir.write("docs/a.txt", "first words");
    dir.write("docs/b.sgml", "<!doctype refentry>\n");
    dir.write(
        "docs/c.jsonl",
        "{\"id\":1,\"text\":\"one\"}\nnot json\n{\"id\":2,\"text\":\"two\"}\n{\"x\":1}\n",
    );
    dir.write(
        "docs/d.trec",
        "<DOC><DOCNO>3</DOCNO>three</DOC><DOC>no number</DOC><DOC><DOCNO>4</DOCNO>four</DOC>",
    );
    let made = dir.ok("index docs -o out.tatami --json");
    assert!(made.out.contains("\"problems\": 4"), "{}", made.out);
    for reason in [
        "warning: skipped docs/b.sgml: line 1: expected `<DOC>`\n",
        "warning: skipped docs/c.jsonl: line 2, column 2: invalid JSON object: expected ident\n",
        "warning: skipped docs/c.jsonl: line 4: no ID and no field `url`\n",
        "warning: skipped docs/d.trec: line 1: document without <DOCNO>\n",
    ] {
        assert!(made.err.contains(reason), "{reason}: {}", made.err);
    }
    let bodies = dir.ok("cat out.tatami --columns body").out;
    let expected =
        ["first words", "one", "two", "three", "four"].map(|body| format!("{{\"body\":\"{body}\"}}\n"));
    assert_eq!(bodies, expected.concat());
    for (args, code) in [
        ("index docs -o none.tatami --on-error stop", 4),
        ("index docs/c.jsonl -o none.tatami", 4),
        ("index docs/a.txt docs/none.txt -o none.tatami", 3),
    ] {
        assert_eq!(dir.run(args).code, code, "{args}");
        assert!(!dir.names().contains(&"none.tatami".to_owned()), "{args}");
    }
    dir.ok("index docs/c.jsonl docs/b.sgml -o some.tatami --on-error skip");
    assert_eq!(dir.ok("count some.tatami").out, "2\n");
}

#[test]
fn titles_come_from_the_text() {
    let dir = TestDir::new();
    for (name, text, title) in [
        ("a.md", "\u{feff}```\n# no\n```\n\nOne\n===\n", "One"),
        ("b.md", "<!--\n# no\n-->\n#\n## Two", "Two"),
        ("c.html", "<svg><title>no</title></svg><title>Three</title>", "Three"),
    ] {
        assert_eq!(indexed(&dir, name, text, "title"), format!("{{\"title\":\"{title}\"}}\n"));
    }
}

/// Containers and compressed files are named, not indexed as text.
#[test]
fn binary_files_are_not_documents() {
    let dir = TestDir::with_cities();
    let table = dir.read("cities.tatami");
    for (name, bytes, message) in [
        ("a.txt", &table[..], "a.txt: is a .tatami file, not a document"),
        (
            "b.md",
            b"TETR and more",
            "b.md: is a .tet file, not a document\n  hint: show its content: `tercet info b.md`",
        ),
        ("c.jsonl", b"\x1f\x8b\x08\0", "c.jsonl: cannot read: "),
        ("d.html", b"PAR1\x15\x04", "d.html: is a Parquet file, not a document"),
    ] {
        let result = refused(&dir, name, bytes, "");
        assert!(result.contains(message), "{result}");
    }
    std::fs::remove_file(dir.path("cities.jsonl")).unwrap();
    dir.write("e.txt", "BUFR is the name of a format.");
    let result = dir.ok("index . -o all.tatami");
    assert!(
        result.err.contains("warning: skipped ./a.txt: is a .tatami file, not a document\n"),
        "{}",
        result.err
    );
    assert!(result.err.contains("warning: skipped ./c.jsonl: cannot read: "), "{}", result.err);
    let urls = dir.ok("cat all.tatami --columns url").out;
    assert!(urls.contains("e.txt") && !urls.contains("a.txt"), "{urls}");
}

/// The file is standard output, and the summary standard error.
#[test]
fn a_segment_can_be_standard_output() {
    let dir = TestDir::new();
    dir.write("a.txt", "some words");
    dir.ok("index a.txt -o a.tatami");
    for output in ["-", "/dev/stdout"] {
        let piped = dir.ok(&format!("index a.txt -o {output}"));
        assert!(piped.bytes == dir.read("a.tatami"));
        assert!(piped.err.starts_with("standard output: 1 document, "), "{}", piped.err);
    }
    assert_eq!(dir.run("index a.txt -o - --json").code, 8);
}
