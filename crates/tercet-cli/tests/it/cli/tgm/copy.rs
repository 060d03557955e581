//! `copy`: byte for byte, and never elsewhere.

use super::sample::{folder, message_range, with_damaged_payload, write_texts};
use crate::cli::support::{Folder, run};

/// Names in a folder, sorted.
fn names(folder: &Folder, name: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path(name)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn copy(folder: &Folder, args: &[&str]) -> crate::cli::support::Ran {
    run(folder.command("tgm").arg("copy").args(args))
}

#[test]
fn messages_are_copied_as_they_are() {
    let folder = folder();
    let whole = folder.read("run.tgm");
    folder.write("junk.tgm", &[b"before", &*whole, b"behind"].concat());
    let ran = folder.tgm("copy junk.tgm clean.tgm");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("clean.tgm: 3 messages, "), "{}", ran.stdout);
    assert_eq!(folder.read("clean.tgm"), whole);

    assert_eq!(folder.tgm("copy -w mars.param!=msl run.tgm some.tgm").code, Some(0));
    let part = |index| whole[message_range(&folder, "run.tgm", index)].to_vec();
    assert_eq!(folder.read("some.tgm"), [part(0), part(2)].concat());

    let piped =
        folder.command("tgm").args(["copy", "-w", "mars.param=msl", "run.tgm", "-"]).output().unwrap();
    assert_eq!(piped.stdout, part(1));
    let piped = run(folder.command("tgm").args(["copy", "-", "again.tgm"]).write_stdin(whole.clone()));
    assert_eq!((piped.code, folder.read("again.tgm")), (Some(0), whole), "{}", piped.stderr);
    assert_eq!(folder.tgm("copy -w mars.param=zz run.tgm empty.tgm").stdout, "empty.tgm: 0 messages, 0 B\n");
    assert_eq!(folder.read("empty.tgm"), b"");
}

#[test]
fn placeholders_make_a_file_for_each_value() {
    let folder = Folder::new();
    write_texts(&folder.path("in.tgm"), &["a", "b", "a", "[k]"]);
    let ran = copy(&folder, &["in.tgm", "[k]/x_[nope].tgm"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(names(&folder, ""), ["[k]", "a", "b", "in.tgm"], "values are put in once");
    assert!(ran.stdout.contains("a/x_unknown.tgm: 2 messages, "), "{}", ran.stdout);
    let (whole, file) = (folder.read("in.tgm"), "in.tgm");
    let part = |index| whole[message_range(&folder, file, index)].to_vec();
    assert_eq!(folder.read("a/x_unknown.tgm"), [part(0), part(2)].concat());
    assert_eq!(folder.read("[k]/x_unknown.tgm"), part(3));
}

#[test]
fn values_with_path_components_are_rejected() {
    for value in ["../evil", "..", "/evil", "a/b", "a\\b", "", "a\0b", "."] {
        let folder = Folder::new();
        std::fs::create_dir(folder.path("out")).unwrap();
        write_texts(&folder.path("in.tgm"), &["good", value]);
        for template in ["out/[k]", "out/[k]/x.tgm", "out/[k]/[k]"] {
            let ran = copy(&folder, &["in.tgm", template]);
            assert_eq!(ran.code, Some(8), "{value:?} in {template}: {}", ran.shot());
            assert!(ran.stderr.starts_with("error: in.tgm: message 1: "), "{}", ran.stderr);
            assert!(ran.stderr.contains("file name"), "{}", ran.stderr);
            assert!(names(&folder, "out").is_empty(), "{value:?} in {template}: nothing is written");
            assert_eq!(names(&folder, ""), ["in.tgm", "out"]);
        }
    }
}

#[test]
fn templates_without_sense_are_refused() {
    let folder = folder();
    for template in ["x_[mars.param.tgm", "x_[].tgm", "[mars.param]/"] {
        let ran = copy(&folder, &["run.tgm", template]);
        assert_eq!((ran.code, names(&folder, "").len()), (Some(8), 1), "{template}: {}", ran.stderr);
    }
    let ran = copy(&folder, &["run.tgm", "missing/[mars.param].tgm"]);
    assert_eq!(ran.code, Some(3), "a folder that is typed is not made: {}", ran.stderr);
}

#[test]
fn nothing_is_overwritten_unasked() {
    let folder = folder();
    let whole = folder.read("run.tgm");
    folder.write("old.tgm", b"old");
    folder.write("2t.tgm", b"old");
    for output in ["old.tgm", "[mars.param].tgm"] {
        let ran = copy(&folder, &["run.tgm", output]);
        assert_eq!(ran.code, Some(8), "{output}: {}", ran.stderr);
        assert!(ran.stderr.contains("file exists\n  hint: `--force` replaces it"), "{}", ran.stderr);
        assert_eq!(names(&folder, ""), ["2t.tgm", "old.tgm", "run.tgm"], "{output}");
        assert_eq!((folder.read("old.tgm"), folder.read("2t.tgm")), (b"old".to_vec(), b"old".to_vec()));
    }
    assert_eq!(copy(&folder, &["run.tgm", "old.tgm", "--force"]).code, Some(0));
    assert_eq!(folder.read("old.tgm"), whole);
    assert_eq!(copy(&folder, &["run.tgm", "[mars.param].tgm", "--force"]).code, Some(0));
    assert_eq!(folder.read("2t.tgm"), whole[message_range(&folder, "run.tgm", 0)]);
}

#[test]
fn the_input_is_never_replaced() {
    let folder = Folder::new();
    write_texts(&folder.path("in.tgm"), &["in", "other"]);
    let whole = folder.read("in.tgm");
    for output in ["in.tgm", "./in.tgm", "[k].tgm"] {
        let ran = copy(&folder, &["in.tgm", output, "--force"]);
        assert_eq!(ran.code, Some(8), "{output}: {}", ran.stderr);
        assert!(ran.stderr.contains("input and output are the same file"), "{}", ran.stderr);
        assert_eq!((names(&folder, ""), folder.read("in.tgm")), (vec!["in.tgm".to_owned()], whole.clone()));
    }
}

#[cfg(unix)]
#[test]
fn links_lead_nowhere() {
    use std::os::unix::fs::symlink;

    let folder = Folder::new();
    write_texts(&folder.path("in.tgm"), &["a"]);
    std::fs::create_dir(folder.path("out")).unwrap();
    std::fs::create_dir(folder.path("elsewhere")).unwrap();
    symlink(folder.path("elsewhere"), folder.path("out/a")).unwrap();
    symlink(folder.path("elsewhere/new"), folder.path("out/a.tgm")).unwrap();
    for template in ["out/[k]/x.tgm", "out/[k].tgm"] {
        for force in [&[][..], &["--force"]] {
            let ran = copy(&folder, &[&["in.tgm", template], force].concat());
            assert_eq!(ran.code, Some(8), "{template}: {}", ran.shot());
            assert!(ran.stderr.contains("is a symbolic link"), "{}", ran.stderr);
        }
    }
    assert!(names(&folder, "elsewhere").is_empty());
}

#[test]
fn damage_is_not_copied_unasked() {
    let folder = folder();
    with_damaged_payload(&folder, "bad.tgm");
    for output in ["out.tgm", "[mars.param].tgm"] {
        let ran = copy(&folder, &["bad.tgm", output]);
        assert_eq!(ran.code, Some(5), "{output}: {}", ran.stderr);
        assert_eq!(names(&folder, ""), ["bad.tgm", "run.tgm"], "{output}: nothing is written");
    }
    let good = copy(&folder, &["bad.tgm", "good.tgm", "-w", "mars.param!=msl"]);
    assert_eq!(good.code, Some(0), "the others are well: {}", good.stderr);
    assert_eq!(folder.tgm("validate good.tgm").code, Some(0));
    let ran = copy(&folder, &["bad.tgm", "out.tgm", "--ignore-checksums"]);
    assert_eq!((ran.code, folder.read("out.tgm")), (Some(0), folder.read("bad.tgm")), "{}", ran.stderr);
}
