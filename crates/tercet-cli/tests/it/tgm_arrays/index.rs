//! `tgm index`: an index at the end of a file.

use serde_json::Value as Json;

use super::{TestDir, npy};

fn dir(messages: usize) -> TestDir {
    let dir = TestDir::new();
    dir.write("a.npy", npy::with_header("'|u1'", false, &[3], vec![1, 2, 3]));
    for step in 0..messages {
        let param = ["2t", "msl"][step % 2];
        add(&dir, step, param);
    }
    dir
}

fn add(dir: &TestDir, step: usize, param: &str) {
    dir.ok(&format!(
        "create run.tgm --append --reproducible --from a=a.npy --meta step={step} --meta mars.param={param}"
    ));
}

fn json(dir: &TestDir, args: &str) -> Json {
    serde_json::from_str(&dir.ok(args).out).unwrap()
}

#[test]
fn output_is_the_same_with_and_without_an_index() {
    let dir = dir(6);
    let commands = [
        "ls run.tgm -p step,mars.param,name",
        "ls run.tgm -w mars.param=2t -p step",
        "ls run.tgm -w mars.param!=2t -p step -j",
        "ls run.tgm -w missing!=2t -p step",
        "ls run.tgm -w version=3 -p step",
        "get run.tgm -w step=4/5 -p step,mars.param",
        "dump run.tgm -w step=3",
    ];
    let outputs = || commands.map(|args| dir.ok(args).out);
    let before = outputs();
    assert!(before[1].contains('4'));
    let plain = dir.read("run.tgm");
    let result = dir.ok("index run.tgm --reproducible");
    assert_eq!(result.out, "run.tgm: indexed 6 messages, keys name, mars.param, step\n");
    assert_eq!(outputs(), before);
    assert_eq!(
        dir.ok("index run.tgm").out,
        "run.tgm: index is up to date: 6 messages, keys name, mars.param, step\n"
    );
    let info = json(&dir, "info --json run.tgm");
    assert_eq!(info[0]["messages"], 6);
    assert_eq!(info[0]["index"]["keys"], serde_json::json!(["name", "mars.param", "step"]));
    assert!(dir.ok("info run.tgm").out.contains("bytes, keys: name, mars.param, step\n"));
    assert!(dir.ok("validate run.tgm").out.contains("OK (6 messages"));
    // Appended messages are added to the index.
    add(&dir, 6, "2t");
    assert_eq!(dir.ok("get run.tgm -w step=6 -p mars.param").out, "2t\n");
    let report = json(&dir, "index run.tgm --json");
    assert_eq!(
        report,
        serde_json::json!({
            "file": "run.tgm", "messages": 7, "entered": 0, "keys": ["name", "mars.param", "step"], "changed": false
        })
    );
    // Copies contain the messages only.
    dir.ok("copy run.tgm copy.tgm -w step!=6");
    assert_eq!(dir.read("copy.tgm"), plain);
    assert_eq!(dir.ok("index run.tgm --remove").out, "run.tgm: index removed\n");
    assert_eq!(dir.ok("index run.tgm --remove").out, "run.tgm: no index\n");
    assert!(dir.read("run.tgm").starts_with(&plain));
}

#[test]
fn an_unused_index_is_reported() {
    let dir = dir(3);
    let plain = dir.read("run.tgm").len();
    dir.ok("index run.tgm --keys step");
    let mut bytes = dir.read("run.tgm");
    // A value in the first frame after the metadata.
    let at = bytes.len() - 24 - 8 - 100;
    assert!(at > plain);
    bytes[at] ^= 1;
    dir.write("run.tgm", &bytes);
    let result = dir.tgm("ls run.tgm -w step=1 -p step");
    assert_eq!((result.code, result.out.as_str()), (0, "step\n1\n"));
    assert!(result.err.starts_with("warning: run.tgm: ignoring the message index: "), "{}", result.err);
    assert_eq!(dir.tgm("validate run.tgm").code, 1);
    dir.ok("index run.tgm");
    assert_eq!(dir.ok("ls run.tgm -w step=1 -p step").err, "");
}

#[test]
fn message_values_override_the_index() {
    let dir = dir(2);
    dir.ok("index run.tgm");
    let bytes = dir.read("run.tgm");
    let len = bytes.len();
    // The same file with other messages of the same lengths.
    let other = TestDir::new();
    other.write("a.npy", dir.read("a.npy"));
    add(&other, 7, "2t");
    add(&other, 8, "msl");
    let mut mixed = other.read("run.tgm");
    let end = mixed.len();
    mixed.extend(&bytes[end..]);
    assert_eq!(mixed.len(), len);
    dir.write("run.tgm", mixed);
    let result = dir.tgm("get run.tgm -w step=0 -p step");
    assert_eq!((result.code, result.out.as_str()), (5, ""));
    assert!(result.err.contains("the message index does not match message 0"), "{}", result.err);
    assert_eq!(dir.tgm("validate run.tgm").code, 1);
    assert!(dir.ok("index run.tgm --rebuild").out.contains("indexed 2 messages"));
    assert_eq!(dir.ok("ls run.tgm -w step=7 -p step").out, "step\n7\n");
}

#[test]
fn unindexable_files_are_rejected() {
    let dir = dir(1);
    dir.refused("index -", 8, "cannot index standard input");
    dir.refused("index missing.tgm", 3, "missing.tgm");
    dir.refused("index a.npy", 7, "is a NumPy array file, not a Tercet container");
    dir.refused("index run.tgm --keys a,,b", 2, "KEY1,KEY2");
}

/// Concatenated files: the index of the last one does not list the messages before it.
#[test]
fn concatenated_files_list_all_messages() {
    let dir = dir(2);
    let front = dir.read("run.tgm");
    dir.ok("index run.tgm");
    dir.write("both.tgm", [&front[..], &dir.read("run.tgm")].concat());
    let result = dir.ok("get -p step both.tgm");
    assert_eq!(result.out, "0\n1\n0\n1\n");
    assert!(result.err.contains("ignoring the message index: it omits bytes"), "{}", result.err);
    let result = dir.ok("copy both.tgm copied.tgm");
    assert!(result.out.starts_with("copied.tgm: 4 messages"), "{}", result.out);
    assert!(dir.ok("index both.tgm").out.contains("indexed 4 messages"));
    assert_eq!(dir.ok("get -p step both.tgm").out, "0\n1\n0\n1\n");
}

/// An overwritten message is detected when it is read, with any selection.
#[test]
fn a_message_that_contradicts_the_index_is_an_error() {
    let dir = dir(2);
    dir.ok("create other.tgm --reproducible --from a=a.npy --meta step=7 --meta mars.param=2t");
    dir.ok("index run.tgm");
    let (mut bytes, other) = (dir.read("run.tgm"), dir.read("other.tgm"));
    bytes[..other.len()].copy_from_slice(&other);
    dir.write("run.tgm", &bytes);
    for args in ["ls -w step=0 run.tgm", "ls -w step=0/7 run.tgm", "get -w step!=1 -p step run.tgm"] {
        let result = dir.tgm(args);
        assert_eq!(result.code, 5, "{args}: {} {}", result.out, result.err);
        assert!(result.err.contains("does not match message 0"), "{args}: {}", result.err);
    }
}

/// An index between messages is not treated as data, nor data as an index.
#[test]
fn indexes_are_not_copied_into_messages() {
    let dir = dir(3);
    dir.ok("index run.tgm");
    let once = dir.read("run.tgm");
    dir.write("twice.tgm", [&once[..], &once[..]].concat());
    let merged = dir.ok("merge twice.tgm -o merged.tgm");
    assert!(merged.out.starts_with("Merged 6 objects from 1 file(s)"), "{}", merged.out);
    dir.ok("index merged.tgm");
    assert!(dir.ok("info merged.tgm").out.contains("Messages: 1\n"));
    assert!(dir.ok("split twice.tgm -o part.tgm").out.starts_with("Split into 6 "));
    assert!(dir.ok("set -s a=b twice.tgm set.tgm").out.contains("6 message(s) changed, 0 copied"));
    assert!(dir.ok("reshuffle twice.tgm -o new.tgm").out.starts_with("Reshuffled 6 message(s)"));
    for file in ["set.tgm", "new.tgm"] {
        assert!(dir.ok(&format!("info {file}")).out.contains("Messages: 6\n"), "{file}");
        dir.ok(&format!("validate {file}"));
    }
    dir.refused("set -s extra.tercet_catalogue.version=1 run.tgm x.tgm", 8, "is the mark of an index");
}

/// Validation, verification, repair and readers give a message the same number, also after an index.
#[test]
fn numbers_do_not_count_indexes() {
    let dir = dir(2);
    dir.ok("index run.tgm");
    let once = dir.read("run.tgm");
    let mut bytes = [&once[..], &once[..]].concat();
    dir.write("both.tgm", &bytes);
    let valid = dir.ok("validate both.tgm");
    assert!(valid.out.contains("OK (4 messages, 4 objects, hash verified)"), "{}", valid.out);
    let expected = "both.tgm: WARNING — message index (bytes ";
    assert!(valid.err.starts_with(expected) && valid.err.contains("it omits bytes"), "{}", valid.err);
    // The payload of the last message but the index: message 3.
    let second = once.len();
    let offsets = dir.ok("ls both.tgm -p offset -w step=1").out;
    let at: usize = offsets.lines().last().unwrap().parse().unwrap();
    assert!(at > second && bytes[at + 16..].starts_with(&[1, 2, 3]), "{offsets}");
    bytes[at + 16] ^= 1;
    dir.write("both.tgm", &bytes);
    let invalid = dir.tgm("validate both.tgm");
    assert!(invalid.code == 1 && invalid.err.contains("FAILED — message 3 › object 0"), "{}", invalid.err);
    assert!(dir.tgm("extract both.tgm 3 -o x.npy").err.contains("message 3 › object 0"));
    let plan = dir.tgm("repair both.tgm --plan");
    let text = plan.out + &plan.err;
    assert!(
        text.contains("message 3 (bytes ") && text.contains("kept: 4 message(s) with 3 object(s)"),
        "{text}"
    );
    assert!(dir.ok("outline both.tgm").out.matches("  index").count() >= 2);
}

/// An index inside a file, after `cat` or an append by another program, is not a message.
#[test]
fn an_index_inside_a_file_is_not_a_message() {
    let dir = dir(4);
    dir.ok("index run.tgm --reproducible");
    let plain = dir.ok("create - --reproducible --from a=a.npy --meta step=4 --meta mars.param=z").bytes;
    let indexed = dir.read("run.tgm");
    dir.write("two.tgm", [&indexed[..], &indexed[..]].concat());
    dir.write("foreign.tgm", [&indexed[..], &plain[..]].concat());
    for (file, steps) in [("two.tgm", "0\n1\n2\n3\n0\n1\n2\n3\n"), ("foreign.tgm", "0\n1\n2\n3\n4\n")] {
        let count = steps.lines().count() as u64;
        assert_eq!(dir.ok(&format!("get -p step {file}")).out, steps, "{file}");
        let info = dir.ok(&format!("info {file} -q")).out;
        assert!(info.ends_with(&format!("messages={count}\n")), "{info}");
        assert_eq!(tercet::tgm::File::open(dir.path(file)).unwrap().message_count().unwrap(), count);
        let last = dir.ok(&format!("ls {file} -p message,step -w message={}", count - 1)).out;
        assert_eq!(last, format!("message\tstep\n{}\t{}\n", count - 1, steps.lines().last().unwrap()));
        let tail = dir.ok(&format!("tail {file} --no-follow -p step")).out;
        let rows: Vec<&str> = tail.lines().skip(1).collect();
        assert_eq!(rows.len() as u64, count, "{tail}");
        assert!(rows[4].starts_with("4\t"), "{tail}");
        dir.ok(&format!("extract {file} 4 -o -"));
        dir.ok(&format!("copy {file} copy-{file}"));
        assert_eq!(dir.ok(&format!("get -p step copy-{file}")).out, steps, "{file}");
    }
}

/// Objects of a message with different values are found through an index, too.
#[test]
fn an_index_finds_every_object() {
    let dir = TestDir::new();
    dir.write("a.npy", npy::with_header("'|u1'", false, &[3], vec![1, 2, 3]));
    for step in 0..3 {
        dir.ok(&format!(
            "create run.tgm --append --from t=a.npy --from u=a.npy --meta step={step} --meta u:level={step}"
        ));
    }
    let commands = [
        "ls run.tgm -w name=u -p step,object",
        "ls run.tgm -w name=u,level=1 -p step,object",
        "ls run.tgm -w step>1 -p object",
    ];
    let before = commands.map(|args| dir.ok(args).out);
    assert_eq!(before[0], "step\tobject\n0\t1\n1\t1\n2\t1\n");
    dir.ok("index run.tgm");
    assert_eq!(commands.map(|args| dir.ok(args).out), before);
}

/// An index file is used by every verb, extended by appends, and ignored with a warning when it is stale.
#[test]
fn an_index_file_is_used_and_kept_fresh() {
    let dir = dir(6);
    let before = dir.read("run.tgm");
    let out = dir.ok("index run.tgm --index-file --reproducible").out;
    insta::assert_snapshot!(out, @"run.tgm: indexed 6 messages, keys name, mars.param, step");
    assert_eq!(dir.read("run.tgm"), before);
    insta::assert_snapshot!(dir.ok("index run.tgm --index-file").out, @"run.tgm: index is up to date: 6 messages, keys name, mars.param, step");
    assert_eq!(dir.ok("ls run.tgm -w step=4 -p step").out, "step\n4\n");
    add(&dir, 6, "2t");
    let result = dir.ok("ls run.tgm -w mars.param=2t -p step");
    assert_eq!((&*result.out, &*result.err), ("step\n0\n2\n4\n6\n", ""));
    // Another program appends.
    dir.write("run.tgm", [dir.read("run.tgm"), before[..before.len() / 6].to_vec()].concat());
    for args in ["ls run.tgm -w step=0 -p step", "info run.tgm", "extract run.tgm 6 -o - --as npy"] {
        let result = dir.ok(args);
        let warning = "warning: run.tgm: ignoring the message index: the index file is stale: it covers ";
        assert!(result.err.contains(warning), "{args}: {}", result.err);
    }
    assert_eq!(
        dir.ok("index run.tgm --index-file").out,
        "run.tgm: indexed 8 messages (1 new), keys name, mars.param, step\n"
    );
    assert_eq!(dir.ok("info run.tgm").err, "");
    assert_eq!(dir.ok("index run.tgm --remove").out, "run.tgm: index removed\n");
    assert!(!dir.path("run.tgm.idx").exists());
}

/// A message by number is read before anything after it is looked at.
#[test]
fn messages_by_number_need_no_complete_file() {
    let dir = dir(4);
    let whole = dir.read("run.tgm");
    dir.write("run.tgm", [&whole[..], b"junk and more junk"].concat());
    let result = dir.ok("extract run.tgm 2 -o two.npy");
    assert_eq!(result.err, "");
    dir.refused("extract run.tgm -1 -o last.npy", 4, "messages may be lost");
    let result = dir.ok("extract run.tgm -1 -o last.npy --allow-gaps");
    assert!(result.err.contains("warning"), "all messages are needed");
    assert_eq!(dir.read("two.npy"), dir.read("last.npy"));
    dir.refused("extract run.tgm 4 -o four.npy", 8, "has no message 4");
}
