//! `tgm index`: a catalogue at the end of a file.

use serde_json::Value as Json;

use super::{Folder, npy};

fn folder(messages: usize) -> Folder {
    let folder = Folder::new();
    folder.write("a.npy", npy::with_header("'|u1'", false, &[3], vec![1, 2, 3]));
    for step in 0..messages {
        let param = ["2t", "msl"][step % 2];
        add(&folder, step, param);
    }
    folder
}

fn add(folder: &Folder, step: usize, param: &str) {
    folder.ok(&format!(
        "create run.tgm --append --reproducible --from a=a.npy --meta step={step} --meta mars.param={param}"
    ));
}

fn json(folder: &Folder, words: &str) -> Json {
    serde_json::from_str(&folder.ok(words).out).unwrap()
}

#[test]
fn verbs_say_the_same_with_and_without_a_catalogue() {
    let folder = folder(6);
    let questions = [
        "ls run.tgm -p step,mars.param,name",
        "ls run.tgm -w mars.param=2t -p step",
        "ls run.tgm -w mars.param!=2t -p step -j",
        "ls run.tgm -w missing!=2t -p step",
        "ls run.tgm -w version=3 -p step",
        "get run.tgm -w step=4/5 -p step,mars.param",
        "dump run.tgm -w step=3",
    ];
    let ask = || questions.map(|words| folder.ok(words).out);
    let before = ask();
    assert!(before[1].contains('4'));
    let plain = folder.read("run.tgm");
    let said = folder.ok("index run.tgm --reproducible");
    assert_eq!(said.out, "run.tgm: indexed 6 messages, keys name, mars.param, step\n");
    assert_eq!(ask(), before);
    assert_eq!(
        folder.ok("index run.tgm").out,
        "run.tgm: index is up to date: 6 messages, keys name, mars.param, step\n"
    );
    let info = json(&folder, "info --json run.tgm");
    assert_eq!(info[0]["messages"], 6);
    assert_eq!(info[0]["index"]["keys"], serde_json::json!(["name", "mars.param", "step"]));
    assert!(folder.ok("info run.tgm").out.contains("bytes, keys: name, mars.param, step\n"));
    assert!(folder.ok("validate run.tgm").out.contains("OK (7 messages"));
    // What is appended is entered.
    add(&folder, 6, "2t");
    assert_eq!(folder.ok("get run.tgm -w step=6 -p mars.param").out, "2t\n");
    let told = json(&folder, "index run.tgm --json");
    assert_eq!(
        told,
        serde_json::json!({
            "file": "run.tgm", "messages": 7, "entered": 0, "keys": ["name", "mars.param", "step"], "changed": false
        })
    );
    // Copies have the messages only.
    folder.ok("copy run.tgm copy.tgm -w step!=6");
    assert_eq!(folder.read("copy.tgm"), plain);
    assert_eq!(folder.ok("index run.tgm --remove").out, "run.tgm: index removed\n");
    assert_eq!(folder.ok("index run.tgm --remove").out, "run.tgm: no index\n");
    assert!(folder.read("run.tgm").starts_with(&plain));
}

#[test]
fn a_catalogue_that_is_not_used_is_told_of() {
    let folder = folder(3);
    let plain = folder.read("run.tgm").len();
    folder.ok("index run.tgm --keys step");
    let mut bytes = folder.read("run.tgm");
    // In the values of the first frame behind the metadata.
    let at = bytes.len() - 24 - 8 - 100;
    assert!(at > plain);
    bytes[at] ^= 1;
    folder.write("run.tgm", &bytes);
    let said = folder.tgm("ls run.tgm -w step=1 -p step");
    assert_eq!((said.code, said.out.as_str()), (0, "step\n1\n"));
    assert!(said.err.starts_with("warning: run.tgm: ignoring the message index: "), "{}", said.err);
    assert_eq!(folder.tgm("validate run.tgm").code, 1);
    folder.ok("index run.tgm");
    assert_eq!(folder.ok("ls run.tgm -w step=1 -p step").err, "");
}

#[test]
fn a_message_has_the_last_word() {
    let folder = folder(2);
    folder.ok("index run.tgm");
    let bytes = folder.read("run.tgm");
    let len = bytes.len();
    // The same file with other messages of the same lengths.
    let other = Folder::new();
    other.write("a.npy", folder.read("a.npy"));
    add(&other, 7, "2t");
    add(&other, 8, "msl");
    let mut mixed = other.read("run.tgm");
    let behind = mixed.len();
    mixed.extend(&bytes[behind..]);
    assert_eq!(mixed.len(), len);
    folder.write("run.tgm", mixed);
    let said = folder.tgm("get run.tgm -w step=0 -p step");
    assert_eq!((said.code, said.out.as_str()), (5, ""));
    assert!(said.err.contains("the message index does not match message 0"), "{}", said.err);
    assert_eq!(folder.tgm("validate run.tgm").code, 1);
    assert!(folder.ok("index run.tgm --rebuild").out.contains("indexed 2 messages"));
    assert_eq!(folder.ok("ls run.tgm -w step=7 -p step").out, "step\n7\n");
}

#[test]
fn what_cannot_be_indexed_is_refused() {
    let folder = folder(1);
    folder.refused("index -", 8, "cannot index standard input");
    folder.refused("index missing.tgm", 3, "missing.tgm");
    folder.refused("index a.npy", 8, "holds no message");
    folder.refused("index run.tgm --keys a,,b", 2, "KEY1,KEY2");
}

/// Files that were put together: the catalogue of the last one knows nothing of those before it.
#[test]
fn files_put_together_have_all_their_messages() {
    let folder = folder(2);
    let front = folder.read("run.tgm");
    folder.ok("index run.tgm");
    folder.write("both.tgm", [&front[..], &folder.read("run.tgm")].concat());
    let said = folder.ok("get -p step both.tgm");
    assert_eq!(said.out, "0\n1\n0\n1\n");
    assert!(said.err.contains("ignoring the message index: it omits bytes"), "{}", said.err);
    let said = folder.ok("copy both.tgm copied.tgm");
    assert!(said.out.starts_with("copied.tgm: 4 messages"), "{}", said.out);
    assert!(folder.ok("index both.tgm").out.contains("indexed 4 messages"));
    assert_eq!(folder.ok("get -p step both.tgm").out, "0\n1\n0\n1\n");
}

/// A message that was overwritten is noticed when it is looked at, whatever is asked for.
#[test]
fn a_message_that_says_something_else_is_an_error() {
    let folder = folder(2);
    folder.ok("create other.tgm --reproducible --from a=a.npy --meta step=7 --meta mars.param=2t");
    folder.ok("index run.tgm");
    let (mut bytes, other) = (folder.read("run.tgm"), folder.read("other.tgm"));
    bytes[..other.len()].copy_from_slice(&other);
    folder.write("run.tgm", &bytes);
    for words in ["ls -w step=0 run.tgm", "ls -w step=0/7 run.tgm", "get -w step!=1 -p step run.tgm"] {
        let said = folder.tgm(words);
        assert_eq!(said.code, 5, "{words}: {} {}", said.out, said.err);
        assert!(said.err.contains("does not match message 0"), "{words}: {}", said.err);
    }
}

/// A catalogue that ended up between messages is not taken for data, nor data for a catalogue.
#[test]
fn stray_catalogues_get_into_no_message() {
    let folder = folder(3);
    folder.ok("index run.tgm");
    let once = folder.read("run.tgm");
    folder.write("twice.tgm", [&once[..], &once[..]].concat());
    let merged = folder.ok("merge twice.tgm -o merged.tgm");
    assert!(merged.out.starts_with("Merged 6 objects from 1 file(s)"), "{}", merged.out);
    folder.ok("index merged.tgm");
    assert!(folder.ok("info merged.tgm").out.contains("Messages: 1\n"));
    assert!(folder.ok("split twice.tgm -o part.tgm").out.starts_with("Split into 6 "));
    assert!(folder.ok("set -s a=b twice.tgm set.tgm").out.contains("6 message(s) changed, 0 copied"));
    assert!(folder.ok("reshuffle twice.tgm -o new.tgm").out.starts_with("Reshuffled 6 message(s)"));
    for file in ["set.tgm", "new.tgm"] {
        assert!(folder.ok(&format!("info {file}")).out.contains("Messages: 6\n"), "{file}");
        folder.ok(&format!("validate {file}"));
    }
    folder.refused("set -s extra.tercet_catalogue.version=1 run.tgm x.tgm", 8, "makes a message an index");
}
