//! `ls` and `get`: selection of messages and keys.

use serde_json::{Value, json};

use super::sample::dir;

#[test]
fn ls_lists_objects_with_the_keys_that_vary() {
    let dir = dir();
    let output = dir.tgm("ls run.tgm");
    let expected = "\
message  object  name     shape   dtype    encoding  size  mars.param  mars.step
      0       0           2×3     float32  none      24 B  2t          0
      1       0           2×3     float32  none      24 B  msl         6
      1       1  quality  scalar  int16    none       2 B  -           -
      2       0           2×3     float32  none      24 B  10u         12
";
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (Some(0), expected, ""));
    let both = dir.tgm("ls run.tgm run.tgm").stdout;
    assert!(both.starts_with("file     message  object"), "{both}");
    assert_eq!(both.lines().count(), 9);
}

#[test]
fn ls_prints_tab_separated_columns() {
    let dir = dir();
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
fn ls_prints_fields_and_statistics() {
    let dir = dir();
    let output = dir.tgm("ls run.tgm -p message,object,shape,dtype,size,ratio,min,max,mean,nans");
    let expected = "message\tobject\tshape\tdtype\tsize\tratio\tmin\tmax\tmean\tnans\n\
                    0\t0\t2×3\tfloat32\t24\t1\t0\t5\t2.5\t0\n\
                    1\t0\t2×3\tfloat32\t24\t1\t0\t5\t2.5\t0\n\
                    1\t1\tscalar\tint16\t2\t1\t7\t7\t7\t0\n\
                    2\t0\t2×3\tfloat32\t24\t1\t0\t5\t2.5\t0\n";
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (Some(0), expected, ""));
    // The rest of the descriptor, and the parameters of the pipeline.
    let packing = "--encoding simple_packing --bits 8 --compression zstd --compression-level 9";
    assert_eq!(dir.tgm(&format!("repack run.tgm packed.tgm --widen --lossy {packing}")).code, Some(0));
    let output = dir.tgm("ls packed.tgm -p strides,byte_order,masks,sp_bits_per_value,zstd_level -n 1");
    let expected = "strides\tbyte_order\tmasks\tsp_bits_per_value\tzstd_level\n[3,1]\tlittle\tN/A\t8\t9\n";
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (Some(0), expected, ""));
    for filter in
        [["-w", "sp_bits_per_value=8,byte_order=little"], ["--where", "zstd_level > 8 and ndim >= 0"]]
    {
        let output =
            dir.command("tgm").args(["ls", "packed.tgm", "-p", "size"]).args(filter).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 5, "{filter:?}");
    }
    assert_eq!(dir.tgm("ls packed.tgm -w sp_bits_per_value=16").code, Some(1));
    let offsets = dir.tgm("ls run.tgm -p offset -w dtype=int16").stdout;
    let at = tercet::tgm::File::open(dir.path("run.tgm")).unwrap();
    let at = at.message(1).unwrap().object(1).unwrap().frame().span.start();
    assert_eq!(offsets, format!("offset\n{at}\n"));
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
        ("mars.step=6", "msl\n"),
        ("extra.scale=1", "2t\nmsl\n10u\n"),
        ("version=3", "2t\nmsl\n10u\n"),
        ("mars.step=6,mars.param=msl", "msl\n"),
        ("mars.step=6/12,mars.param=msl/10u", "msl\n10u\n"),
        ("mars.step>0,mars.step<12", "msl\n"),
        ("mars.step>=12", "10u\n"),
        ("mars.step=6.0", "msl\n"),
    ] {
        assert_eq!(params(clause), expected, "{clause}");
    }
    assert_eq!(params("mars.step>0 -w mars.step<12"), "msl\n", "repeated");
    // An object of the message matches, not its first one.
    assert_eq!(dir.tgm("ls run.tgm -p name,object -w name=quality").stdout, "name\tobject\nquality\t1\n");
}

#[test]
fn expressions_select_messages() {
    let dir = dir();
    let params = |expression: &str| {
        let output =
            dir.command("tgm").args(["get", "--where", expression, "-p", "mars.param", "run.tgm"]).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    assert_eq!(params("mars.step >= 6 and mars.param != \"msl\""), "10u\n");
    assert_eq!(params("mars.param in (\"2t\", \"10u\")"), "2t\n10u\n");
    assert_eq!(params("mars.param like \"%t\" or mars.step = 12"), "2t\n10u\n");
    assert_eq!(params("dtype = \"float32\" and min = 0 and mars.step = 0"), "2t\n");
}

#[test]
fn no_match_is_1_with_a_note() {
    let dir = dir();
    for args in ["ls", "dump", "get -p version", "ls -j"] {
        let output = dir.tgm(&format!("{args} -w mars.param=zz run.tgm"));
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{args}");
        assert_eq!(output.stderr, "no message matches\n", "{args}");
    }
    let run = |expression: &str| {
        let output = dir.command("tgm").args(["ls", "--where", expression, "run.tgm"]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, note) = run("mars.param = zz");
    assert!(code == Some(1) && note.contains("no message has the key `zz`"), "{note}");
    let (code, note) = run("mars.param = 2");
    assert!(code == Some(1) && note.contains("`mars.param` is a string"), "{note}");
    let output = dir.tgm("copy run.tgm out.tgm -w mars.param=zz");
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    assert!(!dir.path("out.tgm").exists());
}

#[cfg(unix)]
#[test]
fn the_reference_name_keeps_the_reference_output() {
    let dir = dir();
    let link = dir.path("tensogram");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tgm"), &link).unwrap();
    let run = |args: &str| {
        let output =
            std::process::Command::new(&link).args(args.split(' ')).current_dir(dir.path("")).output();
        let output = output.unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(run("ls run.tgm"), (Some(0), "version\n3\n3\n3\n".to_owned()));
    assert_eq!(run("ls -w mars.param=zz run.tgm"), (Some(0), "version\n".to_owned()));
    assert_eq!(run("ls -w mars.step=6,mars.param=msl run.tgm"), (Some(0), "version\n".to_owned()));
    assert_eq!(run("ls -w version!=3 run.tgm"), (Some(0), "version\n".to_owned()));
    assert_eq!(run("ls -p shape run.tgm"), (Some(0), "shape\nN/A\nN/A\nN/A\n".to_owned()));
    let json = "{\n  \"mars.step\": \"0\"\n}\n{\n  \"mars.step\": \"6\"\n}\n{\n  \"mars.step\": \"12\"\n}\n";
    assert_eq!(run("ls -j -p mars.step run.tgm"), (Some(0), json.to_owned()));
    let len = dir.read("run.tgm").len();
    let info = format!("File: run.tgm\n  Messages: 3\n  Size: {len} bytes\n  Version: 3\n\n");
    assert_eq!(run("info run.tgm"), (Some(0), info));
    assert_eq!(run("copy run.tgm x-[nosuch].tgm").0, Some(0));
    assert!(dir.path("x-unknown.tgm").exists());
}

#[test]
fn json_is_typed_lines() {
    let dir = dir();
    let lines = |args: &str| -> Vec<Value> {
        let output = dir.tgm(args);
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let expected = [
        json!({ "mars.param": "2t", "mars.step": 0 }),
        json!({ "name": "quality", "mars.param": "msl", "mars.step": 6 }),
        json!({ "mars.param": "10u", "mars.step": 12 }),
    ];
    assert_eq!(lines("ls -j -p name,mars.param,mars.step run.tgm"), expected);
    let all = lines("ls -j run.tgm");
    assert_eq!(all.len(), 4);
    assert_eq!(
        (&all[2]["shape"], &all[2]["name"], &all[2]["size"]),
        (&json!([]), &json!("quality"), &json!(2))
    );
    assert_eq!(
        all[0]["metadata"],
        json!({ "centre": "ecmf", "scale": 1.0, "mars": { "param": "2t", "step": 0 } })
    );
    assert_eq!(lines("ls -j -p shape,min run.tgm")[0], json!({ "shape": [2, 3], "min": 0.0 }));
    assert_eq!(lines("dump -j run.tgm").len(), 3);
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
        "ls -w mars.param=2t,msl run.tgm",
        "ls --where mars.step= run.tgm",
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

#[test]
fn a_key_that_no_message_has_is_named() {
    let dir = dir();
    let output = dir.tgm("ls -w mars.stp=6 run.tgm");
    assert!(
        output.stderr.contains("no message matches: no message has the key `mars.stp`"),
        "{}",
        output.stderr
    );
    let output = dir.tgm("ls -w mars.step=77 run.tgm");
    assert!(output.stderr.contains("no message matches\n"), "{}", output.stderr);
    assert_eq!(dir.tgm("ls -w mars.step==6 run.tgm").stdout, dir.tgm("ls -w mars.step=6 run.tgm").stdout);
    assert_eq!(dir.tgm("ls -w mars.step==6 run.tgm").code, Some(0));
}

/// A filter that matches nothing has one message, also for an object by its name.
#[test]
fn extract_by_name_says_once_that_nothing_matches() {
    let dir = dir();
    let output = dir.tgm("extract run.tgm quality -w mars.step=77 -o x.npy");
    assert_eq!((output.code, output.stderr.as_str()), (Some(1), "no message matches\n"));
    let output = dir.tgm("extract run.tgm nosuch -w mars.step=6 -o x.npy");
    assert_eq!(output.code, Some(8), "{}", output.snapshot());
    assert!(output.stderr.starts_with("error: run.tgm: no object is named `nosuch`"), "{}", output.stderr);
}
