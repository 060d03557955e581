//! Documents as they come: what is read of them, and what is refused.

use super::Folder;

/// Makes a segment of a file and tells what is printed of its columns.
fn indexed(folder: &Folder, name: &str, text: impl AsRef<[u8]>, columns: &str) -> String {
    folder.write(name, text);
    folder.ok(&format!("index {name} -o out.tatami --force"));
    folder.ok(&format!("cat out.tatami --columns {columns}")).out
}

/// What is said of a file that is refused; nothing is made of it.
fn refused(folder: &Folder, name: &str, text: impl AsRef<[u8]>, options: &str) -> String {
    folder.write(name, text);
    let said = folder.run(&format!("index {name} -o none.tatami {options}"));
    assert_ne!(said.code, 0, "{}", said.out);
    assert!(!folder.names().contains(&"none.tatami".to_owned()));
    said.err
}

#[test]
fn documents_of_trec_are_found_anywhere() {
    let folder = Folder::new();
    let text = "<DOC>\n<DOCNO>1</DOCNO>\nfirst\n</DOC>\n<DOC><DOCNO>2</DOCNO>second</DOC><doc id=\"x\">\
        <docno>3</docno><TEXT>a</TEXT></doc>";
    assert_eq!(
        indexed(&folder, "a.trec", text, "doc_id"),
        "{\"doc_id\":\"1\"}\n{\"doc_id\":\"2\"}\n{\"doc_id\":\"3\"}\n"
    );
    for (text, reason) in [
        ("<DOC>\n<DOC><DOCNO>2</DOCNO></DOC>", "line 1: unterminated document"),
        ("<DOC><DOCNO>1</DOCNO></DOC>\nlost", "line 2: expected `<DOC>`"),
        ("just text\n", "line 1: expected `<DOC>`"),
        ("<DOC>x</DOC>", "line 1: document without <DOCNO>"),
    ] {
        let said = refused(&folder, "b.trec", text, "");
        assert!(said.contains(reason), "{said}");
    }
}

#[test]
fn lines_are_read_exactly_or_refused() {
    let folder = Folder::new();
    let text = "\u{feff}{\"id\":18446744073709551615,\"text\":\"a\"}\n";
    assert_eq!(indexed(&folder, "a.jsonl", text, "doc_id"), "{\"doc_id\":\"18446744073709551615\"}\n");
    for (text, reason) in [
        ("{\"id\":18446744073709551616}\n", "line 1: field `id`: number is not exact as float64"),
        ("{\"id\":1}\n{\"id\":2,}\n", "line 2, column 9: invalid JSON object"),
    ] {
        let said = refused(&folder, "b.jsonl", text, "");
        assert!(said.contains(reason) && !said.contains("at line"), "{said}");
    }
}

#[test]
fn fields_that_are_named_have_to_be_there() {
    let folder = Folder::new();
    let text = "{\"id\":1,\"words\":\"a\"}\n{\"id\":2,\"late\":\"b\"}\n";
    for option in ["--body-field", "--id-field", "--url-field", "--title-field", "--anchor-field"] {
        let said = refused(&folder, "a.jsonl", text, &format!("{option} nope"));
        let reason = if option == "--id-field" {
            "line 1: no field `nope` or `url`"
        } else {
            "a.jsonl: no line has field `nope`"
        };
        assert!(said.contains(reason), "{said}");
    }
    folder.ok("index a.jsonl -o late.tatami --body-field late");
    let said = folder.ok("index a.jsonl -o out.tatami");
    let note = "2 documents of a.jsonl have no text: no field `body`, `text` or `contents`";
    assert!(said.err.contains(note), "{}", said.err);
    let help = folder.ok("index --help").out;
    for default in ["[default: url]", "[default: title]", "[default: anchor]", "Parquet and TREC"] {
        assert!(help.contains(default), "{default}");
    }
}

#[cfg(feature = "arrow")]
#[test]
fn columns_that_are_named_have_to_be_there() {
    let folder = Folder::new();
    folder.write("a.jsonl", "{\"id\":\"1\",\"words\":\"a\"}\n");
    folder.ok("convert a.jsonl a.parquet");
    for option in ["--body-field", "--id-field", "--url-field", "--title-field", "--anchor-field"] {
        let said = folder.run(&format!("index a.parquet -o out.tatami {option} nope"));
        assert!(said.err.contains("a.parquet: no column `nope`"), "{}", said.err);
    }
    let said = folder.ok("index a.parquet -o out.tatami");
    assert!(said.err.contains("1 document of a.parquet has no text"), "{}", said.err);
    folder.ok("convert a.jsonl b.parquet --columns words");
    let said = folder.run("index b.parquet -o b.tatami");
    assert!(said.err.contains("b.parquet: no ID and no field `url`"), "{}", said.err);
}

#[test]
fn bytes_that_are_no_text_are_counted() {
    let folder = Folder::new();
    folder.write("a.html", b"<meta charset=latin1><p>caf\xe9");
    folder.write("b.txt", "caf\u{e9}");
    let said = folder.ok("index a.html b.txt -o out.tatami");
    assert!(said.err.contains("1 file has invalid UTF-8"), "{}", said.err);
}

#[test]
fn titles_are_those_of_the_text() {
    let folder = Folder::new();
    for (name, text, title) in [
        ("a.md", "\u{feff}```\n# no\n```\n\nOne\n===\n", "One"),
        ("b.md", "<!--\n# no\n-->\n#\n## Two", "Two"),
        ("c.html", "<svg><title>no</title></svg><title>Three</title>", "Three"),
    ] {
        assert_eq!(indexed(&folder, name, text, "title"), format!("{{\"title\":\"{title}\"}}\n"));
    }
}
