//! `ls` and `get`: selection of messages and keys.

use serde_json::{Deserializer, Value, json};

use super::sample::dir;

#[test]
fn ls_prints_tab_separated_columns() {
    let dir = dir();
    assert_eq!(dir.tgm("ls run.tgm").stdout, "version\n3\n3\n3\n");
    let output = dir.tgm("ls run.tgm -p mars.param,mars.step,name,centre,scale,version");
    let expected = "mars.param\tmars.step\tname\tcentre\tscale\tversion\n\
                    2t\t0\tN/A\tecmf\t1\t3\n\
                    msl\t6\tquality\tecmf\t1\t3\n\
                    10u\t12\tN/A\tecmf\t1\t3\n";
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (Some(0), expected, ""));
    let both = dir.tgm("ls -p mars.param run.tgm run.tgm").stdout;
    assert_eq!(both, "mars.param\n2t\nmsl\n10u\n2t\nmsl\n10u\n", "one line of keys");
}

#[test]
fn stream_metadata_is_complete() {
    // Its first metadata frame has no entry for the object; preceder and footer do.
    let dir = dir();
    assert_eq!(dir.tgm("get -w mars.step=12 -p mars.param run.tgm").stdout, "10u\n");
}

#[test]
fn clauses_select_messages() {
    let dir = dir();
    let params = |clause: &str| dir.tgm(&format!("get -w {clause} -p mars.param run.tgm")).stdout;
    for (clause, expected) in [
        ("mars.param=2t", "2t\n"),
        ("mars.param=10u/2t", "2t\n10u\n"),
        ("mars.param!=2t/msl", "10u\n"),
        ("name!=quality", "2t\n10u\n"),
        ("name=quality", "msl\n"),
        ("mars.step=6", "msl\n"),
        ("extra.scale=1", "2t\nmsl\n10u\n"),
        ("version=3", "2t\nmsl\n10u\n"),
        ("version!=3", ""),
        ("mars.param=", ""),
    ] {
        assert_eq!(params(clause), expected, "{clause}");
    }
    assert_eq!(dir.tgm("ls -w mars.param=zz run.tgm").stdout, "version\n");
}

#[test]
fn json_is_one_object_per_message() {
    let dir = dir();
    let output = dir.tgm("ls -j -p name,mars.param run.tgm");
    let json: Vec<Value> =
        Deserializer::from_str(&output.stdout).into_iter::<Value>().collect::<Result<_, _>>().unwrap();
    let expected = [
        json!({ "mars.param": "2t" }),
        json!({ "mars.param": "msl", "name": "quality" }),
        json!({ "mars.param": "10u" }),
    ];
    assert_eq!(json, expected);
    assert!(output.stdout.starts_with("{\n  \"mars.param\": \"2t\"\n}\n{\n"), "{}", output.stdout);
    assert_eq!(dir.tgm("ls --json -w mars.param=zz run.tgm").stdout, "");
}

#[test]
fn get_requires_every_key() {
    let dir = dir();
    assert_eq!(dir.tgm("get -p mars.param,mars.step run.tgm").stdout, "2t 0\nmsl 6\n10u 12\n");
    let output = dir.tgm("get -p name run.tgm");
    let expected = "error: run.tgm: message 0: no key `name`\n  \
                hint: `tgm ls` prints N/A for missing keys\n";
    assert_eq!((output.code, output.stderr.as_str()), (Some(8), expected));
}

#[test]
fn invalid_command_lines_exit_2() {
    let dir = dir();
    for args in [
        "ls",
        "get run.tgm",
        "ls -w mars.param run.tgm",
        "ls -w =2t run.tgm",
        "ls -p a,,b run.tgm",
        "dump -p a --reserved run.tgm",
        "copy run.tgm",
        "validate --quick --full run.tgm",
        "validate",
        "frobnicate",
    ] {
        let output = dir.tgm(args);
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{args}: {}", output.stderr);
        assert!(!output.stderr.is_empty(), "{args}");
    }
}
