//! `copy` copies byte for byte and writes only to its targets.

use super::sample::{dir, message_range, with_damaged_payload, write_texts};
use crate::cli::support::{TestDir, run};

/// Names in a directory, sorted.
fn names(dir: &TestDir, name: &str) -> Vec<String> {
    let entries = std::fs::read_dir(dir.path(name)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn copy(dir: &TestDir, args: &[&str]) -> crate::cli::support::CommandOutput {
    run(dir.command("tgm").arg("copy").args(args))
}

#[test]
fn messages_are_copied_byte_for_byte() {
    let dir = dir();
    let whole = dir.read("run.tgm");
    dir.write("junk.tgm", &[b"before", &*whole, b"after"].concat());
    let result = dir.tgm("copy junk.tgm clean.tgm --allow-gaps");
    assert_eq!(result.code, Some(0), "{}", result.stderr);
    assert!(result.stdout.starts_with("clean.tgm: 3 messages, "), "{}", result.stdout);
    assert_eq!(dir.read("clean.tgm"), whole);

    assert_eq!(dir.tgm("copy -w mars.param!=msl run.tgm some.tgm").code, Some(0));
    let part = |index| whole[message_range(&dir, "run.tgm", index)].to_vec();
    assert_eq!(dir.read("some.tgm"), [part(0), part(2)].concat());

    let piped = dir.command("tgm").args(["copy", "-w", "mars.param=msl", "run.tgm", "-"]).output().unwrap();
    assert_eq!(piped.stdout, part(1));
    let piped = run(dir.command("tgm").args(["copy", "-", "again.tgm"]).write_stdin(whole.clone()));
    assert_eq!((piped.code, dir.read("again.tgm")), (Some(0), whole), "{}", piped.stderr);
}

#[test]
fn placeholders_write_one_file_per_value() {
    let dir = TestDir::new();
    write_texts(&dir.path("in.tgm"), &["a", "b", "a", "[k]"]);
    let result = copy(&dir, &["in.tgm", "[k]/x_[version].tgm"]);
    assert_eq!(result.code, Some(0), "{}", result.stderr);
    assert_eq!(names(&dir, ""), ["[k]", "a", "b", "in.tgm"], "values are put in once");
    assert!(result.stdout.contains("a/x_3.tgm: 2 messages, "), "{}", result.stdout);
    let (whole, file) = (dir.read("in.tgm"), "in.tgm");
    let part = |index| whole[message_range(&dir, file, index)].to_vec();
    assert_eq!(dir.read("a/x_3.tgm"), [part(0), part(2)].concat());
    assert_eq!(dir.read("[k]/x_3.tgm"), part(3));
}

#[test]
fn values_with_path_components_are_rejected() {
    for value in ["../evil", "..", "/evil", "a/b", "a\\b", "", "a\0b", "."] {
        let dir = TestDir::new();
        std::fs::create_dir(dir.path("out")).unwrap();
        write_texts(&dir.path("in.tgm"), &["good", value]);
        for template in ["out/[k]", "out/[k]/x.tgm", "out/[k]/[k]"] {
            let result = copy(&dir, &["in.tgm", template]);
            assert_eq!(result.code, Some(8), "{value:?} in {template}: {}", result.snapshot());
            assert!(result.stderr.starts_with("error: in.tgm: message 1: "), "{}", result.stderr);
            assert!(result.stderr.contains("file name"), "{}", result.stderr);
            assert!(names(&dir, "out").is_empty(), "{value:?} in {template}: nothing is written");
            assert_eq!(names(&dir, ""), ["in.tgm", "out"]);
        }
    }
}

#[test]
fn invalid_templates_are_rejected() {
    let dir = dir();
    for template in ["x_[mars.param.tgm", "x_[].tgm", "[mars.param]/"] {
        let result = copy(&dir, &["run.tgm", template]);
        assert_eq!((result.code, names(&dir, "").len()), (Some(8), 1), "{template}: {}", result.stderr);
    }
    let result = copy(&dir, &["run.tgm", "missing/[mars.param].tgm"]);
    assert_eq!(result.code, Some(3), "a literal directory is not created: {}", result.stderr);
}

#[test]
fn existing_files_need_force() {
    let dir = dir();
    let whole = dir.read("run.tgm");
    dir.write("old.tgm", b"old");
    dir.write("2t.tgm", b"old");
    for output in ["old.tgm", "[mars.param].tgm"] {
        let result = copy(&dir, &["run.tgm", output]);
        assert_eq!(result.code, Some(8), "{output}: {}", result.stderr);
        assert!(result.stderr.contains("file exists\n  hint: `--force` replaces it"), "{}", result.stderr);
        assert_eq!(names(&dir, ""), ["2t.tgm", "old.tgm", "run.tgm"], "{output}");
        assert_eq!((dir.read("old.tgm"), dir.read("2t.tgm")), (b"old".to_vec(), b"old".to_vec()));
    }
    assert_eq!(copy(&dir, &["run.tgm", "old.tgm", "--force"]).code, Some(0));
    assert_eq!(dir.read("old.tgm"), whole);
    assert_eq!(copy(&dir, &["run.tgm", "[mars.param].tgm", "--force"]).code, Some(0));
    assert_eq!(dir.read("2t.tgm"), whole[message_range(&dir, "run.tgm", 0)]);
}

#[test]
fn the_input_is_never_overwritten() {
    let dir = TestDir::new();
    write_texts(&dir.path("in.tgm"), &["in", "other"]);
    let whole = dir.read("in.tgm");
    for output in ["in.tgm", "./in.tgm", "[k].tgm"] {
        let result = copy(&dir, &["in.tgm", output, "--force"]);
        assert_eq!(result.code, Some(8), "{output}: {}", result.stderr);
        assert!(result.stderr.contains("input and output are the same file"), "{}", result.stderr);
        assert_eq!((names(&dir, ""), dir.read("in.tgm")), (vec!["in.tgm".to_owned()], whole.clone()));
    }
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    use std::os::unix::fs::symlink;

    let dir = TestDir::new();
    write_texts(&dir.path("in.tgm"), &["a"]);
    std::fs::create_dir(dir.path("out")).unwrap();
    std::fs::create_dir(dir.path("elsewhere")).unwrap();
    symlink(dir.path("elsewhere"), dir.path("out/a")).unwrap();
    symlink(dir.path("elsewhere/new"), dir.path("out/a.tgm")).unwrap();
    for template in ["out/[k]/x.tgm", "out/[k].tgm"] {
        for force in [&[][..], &["--force"]] {
            let result = copy(&dir, &[&["in.tgm", template], force].concat());
            assert_eq!(result.code, Some(8), "{template}: {}", result.snapshot());
            assert!(result.stderr.contains("is a symbolic link"), "{}", result.stderr);
        }
    }
    assert!(names(&dir, "elsewhere").is_empty());
}

#[test]
fn damage_is_not_copied_by_default() {
    let dir = dir();
    with_damaged_payload(&dir, "bad.tgm");
    for output in ["out.tgm", "[mars.param].tgm"] {
        let result = copy(&dir, &["bad.tgm", output]);
        assert_eq!(result.code, Some(5), "{output}: {}", result.stderr);
        assert_eq!(names(&dir, ""), ["bad.tgm", "run.tgm"], "{output}: nothing is written");
    }
    let good = copy(&dir, &["bad.tgm", "good.tgm", "-w", "mars.param!=msl"]);
    assert_eq!(good.code, Some(0), "the others are well: {}", good.stderr);
    assert_eq!(dir.tgm("validate good.tgm").code, Some(0));
    let result = copy(&dir, &["bad.tgm", "out.tgm", "--ignore-checksums"]);
    assert_eq!((result.code, dir.read("out.tgm")), (Some(0), dir.read("bad.tgm")), "{}", result.stderr);
}
