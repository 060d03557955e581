//! `repair`: what is intact, in a new file; and what is not, told.

use serde_json::Value as Json;

use super::Folder;
use super::recode::{arrays, folder};

/// `run.tgm` with one byte of one object changed.
fn hurt(folder: &Folder, message: u64, object: u64) {
    let mut bytes = folder.read("run.tgm");
    let payload = folder.message("run.tgm", message).object(object).unwrap().payload_span();
    bytes[payload.start() as usize + 2] ^= 0x20;
    folder.write("bad.tgm", bytes);
}

#[test]
fn what_is_intact_is_kept() {
    let folder = folder();
    hurt(&folder, 0, 1);
    let said = folder.tgm("repair bad.tgm -o good.tgm");
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines[..2], ["from: bad.tgm", "into: good.tgm"]);
    assert!(lines[2].starts_with("kept: 3 message(s) with 3 object(s), "), "{}", said.out);
    assert!(lines[2].ends_with("; 2 message(s) were intact"), "{}", said.out);
    assert!(lines[3].starts_with("message 0 (bytes 0.."), "{}", said.out);
    assert!(lines[3].ends_with("): damaged, 1 object(s) kept, now message 0"), "{}", said.out);
    assert!(
        lines[4].starts_with("  lost: object 1 (bytes ") && lines[4].contains(" expected, "),
        "{}",
        said.out
    );
    folder.ok("validate --full good.tgm");
    let mut expected = arrays(&folder, "run.tgm");
    expected.remove(1);
    assert!(arrays(&folder, "good.tgm") == expected);
    // What was intact is kept byte for byte.
    let (whole, good) = (folder.read("run.tgm"), folder.read("good.tgm"));
    let first = folder.message("run.tgm", 0).span().end() as usize;
    assert!(good.ends_with(&whole[first..]));
    assert_eq!(folder.ok("get -p name good.tgm").out, "t\nn\nc\n");
    // Nothing is left to repair.
    let said = folder.ok("repair good.tgm");
    assert!(said.out.ends_with("the file is intact\n"), "{}", said.out);
}

#[test]
fn what_nothing_is_lost_of_is_0() {
    let folder = folder();
    let whole = folder.read("run.tgm");
    // A wrong number in the last postamble, and junk on both sides.
    let mut bytes = whole.clone();
    let at = bytes.len() - 20;
    bytes[at] ^= 1;
    folder.write("bad.tgm", [b"junk", &bytes[..], b"more junk"].concat());
    folder.refused("copy bad.tgm copy.tgm", 5, "postamble");
    let said = folder.ok("repair bad.tgm -o good.tgm --json");
    let told: Json = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&told["has_losses"], &told["output"]), (&false.into(), &"good.tgm".into()));
    assert_eq!((&told["intact_messages"], &told["kept_objects"]), (&2.into(), &4.into()));
    assert_eq!(told["messages"][0]["state"], "repaired");
    assert_eq!(told["junk"][0], serde_json::json!({ "start": 0, "end": 4 }));
    assert!(arrays(&folder, "good.tgm") == arrays(&folder, "run.tgm"));
}

#[test]
fn a_file_that_is_cut_keeps_its_start() {
    let folder = folder();
    let whole = folder.read("run.tgm");
    let last = folder.message("run.tgm", 2).span();
    folder.write("bad.tgm", &whole[..last.start() as usize + 100]);
    let said = folder.tgm("repair bad.tgm -o good.tgm");
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(folder.read("good.tgm") == whole[..last.start() as usize]);
    assert!(said.out.contains("message 2 (bytes "), "{}", said.out);
    assert!(said.out.contains("  lost: the metadata (bytes "), "{}", said.out);
}

#[test]
fn nothing_is_overwritten_unasked() {
    let folder = folder();
    hurt(&folder, 2, 0);
    folder.write("old.tgm", "old");
    folder.refused("repair bad.tgm -o old.tgm", 8, "old.tgm: file exists\n  hint: `--force` replaces it");
    folder.refused("repair bad.tgm -o bad.tgm --force", 8, "bad.tgm: input and output");
    folder.refused("repair none.tgm -o new.tgm", 3, "none.tgm: cannot open");
    folder.refused("repair bad.tgm -o -", 8, "can only be written to a local path");
    assert_eq!(folder.tgm("repair bad.tgm -o old.tgm --force").code, 1);
    // Without a place for it nothing is written.
    let names = folder.names();
    assert_eq!(folder.tgm("repair bad.tgm").code, 1);
    assert_eq!(folder.names(), names);
    folder.write("text.tgm", "TENSOGRM and nothing else of a message");
    let said = folder.tgm("repair text.tgm -o new.tgm");
    assert_eq!((said.code, said.err.as_str()), (1, "nothing could be kept; no file written\n"));
    assert!(said.out.contains("belong to no message, but contain parts of one"), "{}", said.out);
    assert_eq!(folder.names().iter().filter(|name| *name == "new.tgm").count(), 0);
}

#[test]
fn equal_damage_makes_equal_bytes() {
    let folder = folder();
    hurt(&folder, 0, 0);
    for name in ["a.tgm", "b.tgm"] {
        assert_eq!(folder.tgm(&format!("repair bad.tgm -o {name} --reproducible")).code, 1);
    }
    assert!(folder.read("a.tgm") == folder.read("b.tgm"));
    let mut command = folder.command();
    command.args(["repair", "-", "-o", "c.tgm", "--reproducible"]).write_stdin(folder.read("bad.tgm"));
    assert_eq!(super::said(&mut command).code, 1);
    assert!(folder.read("c.tgm") == folder.read("a.tgm"));
}

#[test]
fn a_file_of_which_nothing_can_be_kept_is_1() {
    let folder = Folder::new();
    folder.write("junk.tgm", b"junkjunkjunk");
    for words in ["repair junk.tgm", "repair junk.tgm -o new.tgm"] {
        assert_eq!(folder.tgm(words).code, 1, "{words}");
    }
    assert_eq!(folder.names(), ["junk.tgm"]);
}
