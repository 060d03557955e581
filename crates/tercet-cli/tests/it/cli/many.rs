//! Verbs over many files: directories, glob patterns, summaries, exit codes; files of another format.

use serde_json::Value;

use super::support::{TestDir, run};
use super::tgm::sample::write_run;

/// `weather.tet`, `bad.tet` with a damaged chunk, `deep/run.tgm` and `notes.txt`.
fn archive() -> TestDir {
    let dir = TestDir::with_weather();
    dir.with_damaged_chunk("bad.tet");
    std::fs::create_dir(dir.path("deep")).unwrap();
    write_run(&dir.path("deep/run.tgm"));
    dir.write("notes.txt", b"not a container");
    dir
}

#[test]
fn a_directory_is_verified_with_a_summary_and_the_highest_exit_code() {
    let dir = archive();
    let ran = dir.tercet("verify .");
    assert_eq!(ran.code, Some(1), "{}", ran.snapshot());
    let (bad, good) =
        (ran.stdout.find("file: bad.tet").unwrap(), ran.stdout.find("file: weather.tet").unwrap());
    assert!(bad < good && !ran.stdout.contains("run.tgm"), "{}", ran.stdout);
    assert!(
        ran.stderr.starts_with("2 files, ") && ran.stderr.ends_with(": 1 ok, 1 failed\n"),
        "{}",
        ran.stderr
    );
    let ran = dir.tercet("verify --recursive .");
    assert!(ran.stdout.contains("file: deep/run.tgm\nstatus: ok\n"), "{}", ran.stdout);
    assert!(ran.stderr.ends_with(": 2 ok, 1 failed\n"), "{}", ran.stderr);
    let ran = dir.tercet("verify -r . -q");
    let statuses: Vec<&str> = ran.stdout.lines().map(|line| line.split(' ').nth(1).unwrap()).collect();
    assert_eq!(statuses, ["status=failed", "status=ok", "status=ok"], "{}", ran.stdout);
}

#[test]
fn a_file_that_fails_does_not_stop_the_others() {
    let dir = archive();
    let ran = dir.tercet("info -q weather.tet missing.tet notes.txt deep/run.tgm");
    let paths: Vec<&str> = ran.stdout.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(paths, ["path=weather.tet", "path=deep/run.tgm"]);
    assert!(ran.stderr.contains("error: missing.tet: cannot open"), "{}", ran.stderr);
    assert!(ran.stderr.contains("error: notes.txt: unknown file format"), "{}", ran.stderr);
    // I/O is 3, an unknown format 4.
    assert_eq!(ran.code, Some(4));
}

#[test]
fn json_of_several_files_is_one_array() {
    let dir = archive();
    let ran = dir.tercet("info --json weather.tet missing.tet deep/run.tgm");
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    let json = json.as_array().unwrap();
    assert_eq!((json.len(), ran.code, ran.stderr.as_str()), (3, Some(3), ""));
    assert_eq!((&json[0]["path"], &json[2]["summary"]["messages"]), (&"weather.tet".into(), &3.into()));
    assert_eq!(
        (&json[1]["error"]["class"], &json[1]["error"]["location"]),
        (&"io".into(), &"missing.tet".into())
    );
    let one: Value = serde_json::from_str(&dir.tercet("info --json deep/run.tgm").stdout).unwrap();
    assert_eq!(one["summary"]["messages"], 3);
    let one: Value = serde_json::from_str(&dir.tgm("info --json deep/run.tgm").stdout).unwrap();
    assert_eq!(one[0]["messages"], 3, "the output of the reference implementation is an array");
}

/// Every format has the same keys around its summary, and `--quiet` hides nothing of them.
#[test]
fn info_of_any_format_has_the_same_keys() {
    let dir = archive();
    dir.write("rows.jsonl", b"{\"a\":1}\n");
    assert_eq!(dir.tatami("create rows.tatami --from rows.jsonl").code, Some(0));
    let files = [("weather.tet", "tet"), ("deep/run.tgm", "tgm"), ("rows.tatami", "tatami")];
    for (file, format) in files {
        for flags in ["--json", "-q --json"] {
            let ran = dir.tercet(&format!("info {flags} {file}"));
            let json: Value = serde_json::from_str(&ran.stdout).unwrap();
            let keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(keys, ["format", "path", "file_len", "summary"], "{file}");
            let len = std::fs::metadata(dir.path(file)).unwrap().len();
            assert_eq!(
                (&json["format"], &json["path"], &json["file_len"]),
                (&format.into(), &file.into(), &len.into())
            );
        }
    }
}

#[test]
fn verify_reports_every_format_alike() {
    let dir = archive();
    dir.write("rows.jsonl", b"{\"a\":1}\n");
    assert_eq!(dir.tatami("create rows.tatami --from rows.jsonl").code, Some(0));
    for (file, bad) in
        [("weather.tet", "cut.tet"), ("deep/run.tgm", "cut.tgm"), ("rows.tatami", "cut.tatami")]
    {
        // The last byte before the end: of a footer, a postamble, a trailer.
        dir.damaged(file, bad, |bytes| {
            let at = bytes.len() - 20;
            bytes[at] ^= 1;
        });
        for (file, is_ok) in [(file, true), (bad, false)] {
            let ran = dir.tercet(&format!("verify -q --json {file}"));
            let json: Value = serde_json::from_str(&ran.stdout).unwrap();
            assert_eq!((&json["ok"], &json["path"]), (&is_ok.into(), &file.into()), "{}", ran.snapshot());
            assert!(json["file_len"].is_u64() && json["findings"].is_array(), "{file}: {json}");
            let ran = dir.tercet(&format!("verify {file}"));
            let status = if is_ok { "status: ok" } else { "status: failed" };
            assert!(ran.stdout.starts_with(&format!("file: {file}\n")), "{}", ran.snapshot());
            assert!(ran.stdout.contains(status) && ran.stdout.contains("checks:\n"), "{}", ran.snapshot());
            assert_eq!(ran.stdout.contains(" FAIL ("), !is_ok, "{}", ran.snapshot());
            assert_eq!(ran.stderr, if is_ok { "" } else { "verification failed\n" });
        }
    }
    let json: Value = serde_json::from_str(&dir.tercet("verify --json cut.tgm").stdout).unwrap();
    let failed = json["findings"].as_array().unwrap().iter().find(|finding| finding["ok"] == false).unwrap();
    // Numbers count from 0, bytes from the start of the file.
    assert!(failed["site"]["region"].as_str().unwrap().starts_with("message 2"), "{failed}");
    let old: Value = serde_json::from_str(&dir.tgm("validate --deep --json cut.tgm").stdout).unwrap();
    assert!(old[0]["message_reports"].is_array(), "the report of the reference implementation: {old}");
}

#[test]
fn outlines_of_several_files_name_them() {
    let dir = archive();
    let ran = dir.tercet("outline weather.tet deep/run.tgm");
    for file in ["weather.tet", "deep/run.tgm"] {
        assert!(ran.stdout.lines().any(|line| line == format!("file: {file}")), "{}", ran.snapshot());
        assert!(!dir.tercet(&format!("outline {file}")).stdout.contains("file: "));
    }
    let json: Value =
        serde_json::from_str(&dir.tercet("outline -j weather.tet deep/run.tgm").stdout).unwrap();
    for (json, file) in json.as_array().unwrap().iter().zip(["weather.tet", "deep/run.tgm"]) {
        let len = std::fs::metadata(dir.path(file)).unwrap().len();
        assert_eq!((&json["path"], &json["file_len"]), (&file.into(), &len.into()));
        assert!(json["outline"]["parts"].is_array());
    }
}

/// `-n` is the largest number of items, and 0 means all.
#[test]
fn limits_mean_the_same_everywhere() {
    let dir = archive();
    dir.write("rows.jsonl", b"{\"a\":1,\"b\":2}\n");
    std::fs::create_dir(dir.path("all")).unwrap();
    for name in ["a", "b", "c"] {
        assert_eq!(dir.tatami(&format!("create all/{name}.tatami --from rows.jsonl")).code, Some(0));
        assert_eq!(dir.tatami(&format!("collection add all all/{name}.tatami")).code, Some(0));
    }
    // Lines in all, and lines of an item.
    for (program, args, all, each) in [
        ("tgm", "ls deep/run.tgm", 5, 2),
        ("tgm", "get -p version deep/run.tgm", 3, 1),
        ("tgm", "get -p version deep/run.tgm deep/run.tgm", 6, 1),
        ("tgm", "tail --no-follow deep/run.tgm", 4, 1),
        ("tatami", "inspect --pages all/a.tatami", 18, 1),
        ("tatami", "collection list all", 10, 2),
    ] {
        let lines = |limit: &str| {
            let line = format!("{args} {limit}");
            let ran = run(dir.command(program).args(line.split_whitespace()));
            assert_eq!(ran.code, Some(0), "{line}: {}", ran.stderr);
            ran.stdout.lines().count()
        };
        assert_eq!(lines(""), all, "{args}");
        assert_eq!((lines("-n 0"), lines("--limit 100000")), (lines(""), lines("")), "{args}");
        assert_eq!(lines("-n 1") + each, lines("-n 2"), "{args}");
    }
    for file in ["weather.tet", "deep/run.tgm", "all/a.tatami"] {
        let [all, many] =
            ["0", "100000"].map(|limit| dir.tercet(&format!("outline {file} -n {limit}")).stdout);
        assert_eq!(all, many, "{file}");
    }
    assert_eq!(dir.tgm("dump -n 1 deep/run.tgm").stdout.matches("=== Message").count(), 1);
}

#[test]
fn glob_patterns_are_expanded() {
    let dir = archive();
    let ran = dir.tet("info -q *.tet");
    assert_eq!((ran.stdout.lines().count(), ran.code), (2, Some(0)), "{}", ran.snapshot());
    let ran = dir.tercet("verify -q **/*.tgm");
    assert!(ran.stdout.starts_with("path=deep/run.tgm status=ok"), "{}", ran.snapshot());
    let ran = dir.tet("info nothing-*.tet");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""));
    assert!(ran.stderr.contains("no file matches this pattern"), "{}", ran.stderr);
}

#[test]
fn a_directory_without_files_of_the_format_is_an_error() {
    let dir = archive();
    let ran = dir.tgm("info .");
    assert_eq!(ran.code, Some(8));
    assert!(ran.stderr.contains("is a directory without .tgm files"), "{}", ran.stderr);
    assert!(ran.stderr.contains("`--recursive`"), "{}", ran.stderr);
    assert_eq!(dir.tgm("info -r .").code, Some(0));
}

#[test]
fn repairs_of_several_files_are_planned_but_not_applied() {
    let dir = archive();
    let before = dir.read("bad.tet");
    let ran = dir.tercet("repair --plan -r .");
    assert!(ran.stderr.contains("3 files, "), "{}", ran.snapshot());
    assert!(ran.stdout.contains("(nothing to repair: the file is valid)"), "{}", ran.stdout);
    assert_eq!(dir.read("bad.tet"), before);
    let ran = dir.tercet("repair weather.tet bad.tet -o good.tet");
    assert_eq!(ran.code, Some(8), "{}", ran.snapshot());
    assert!(ran.stderr.contains("`repair` writes one file at a time"), "{}", ran.stderr);
    assert_eq!(dir.tet("repair bad.tet --plan --apply x").code, Some(2));
}

#[test]
fn outlines_of_several_files_are_printed_in_order() {
    let dir = archive();
    let ran = dir.tercet("outline weather.tet deep/run.tgm");
    let both = format!(
        "file: weather.tet\n{}\nfile: deep/run.tgm\n{}",
        dir.tercet("outline weather.tet").stdout,
        dir.tercet("outline deep/run.tgm").stdout
    );
    assert_eq!(ran.stdout, both);
    assert!(ran.stderr.ends_with(": 2 ok\n"), "{}", ran.stderr);
}

#[test]
fn a_file_of_another_format_is_named_with_its_command() {
    let dir = archive();
    dir.write("grid.nc", b"CDF\x02 and more");
    dir.write("field.grib2", b"GRIB\0\0\0\x02 and more");
    dir.write("table.parquet", b"PAR1\x15 and more");
    std::fs::copy(dir.path("deep/run.tgm"), dir.path("run.tgm")).unwrap();
    for (args, command) in [
        ("info run.tgm", "tgm info run.tgm"),
        ("verify run.tgm", "tgm verify run.tgm"),
        ("outline run.tgm", "tgm outline run.tgm"),
        ("repair run.tgm", "tgm repair run.tgm"),
        ("extract run.tgm a -o x.npy", "tgm extract run.tgm …"),
        ("drop run.tgm a", "tgm info run.tgm"),
    ] {
        let ran = dir.tet(args);
        let text = format!("error: run.tgm: is a .tgm file, not a .tet file\n  hint: use `{command}`\n");
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr), (Some(4), "", text), "{args}");
    }
    for (args, command) in [
        ("info weather.tet", "tet info weather.tet"),
        ("ls weather.tet", "tet info weather.tet"),
        ("validate weather.tet", "tet verify weather.tet"),
        ("verify weather.tet", "tet verify weather.tet"),
        ("repair weather.tet", "tet repair weather.tet"),
        ("index weather.tet", "tet info weather.tet"),
        ("tail weather.tet --no-follow", "tet info weather.tet"),
    ] {
        let ran = dir.tgm(args);
        let text = format!("error: weather.tet: is a .tet file, not a .tgm file\n  hint: use `{command}`\n");
        assert_eq!((ran.code, ran.stderr), (Some(4), text), "{args}");
    }
    // The command can be pasted into a shell.
    for (name, word) in [("my run.tgm", "'my run.tgm'"), ("a;b$c'd.tgm", r"'a;b$c'\''d.tgm'")] {
        std::fs::copy(dir.path("run.tgm"), dir.path(name)).unwrap();
        let ran = run(dir.command("tercet").args(["tet", "verify", name]));
        assert!(ran.stderr.ends_with(&format!("hint: use `tgm verify {word}`\n")), "{}", ran.stderr);
    }
    for args in ["inspect weather.tet", "verify weather.tet", "cat weather.tet", "delete weather.tet --id 1"]
    {
        let ran = dir.tatami(args);
        assert_eq!(ran.code, Some(4), "{args}");
        assert!(ran.stderr.contains("is a .tet file, not a .tatami file"), "{args}: {}", ran.stderr);
    }
    dir.write("rows.avro", b"Obj\x01\x04\x14avro.codec");
    dir.write("rows.orc", b"ORC\x11\0\0");
    dir.write("sky.fits", b"SIMPLE  =                    T / FITS");
    dir.write("map.tiff", b"II*\0\x08\0\0\0");
    dir.write("map.gpkg", b"SQLite format 3\0\x10\0");
    dir.write("user.h5", &[&[0; 1024][..], b"\x89HDF\r\n\x1a\n"].concat());
    for (name, description) in [
        ("rows.avro", "is an Avro file, which is not supported"),
        ("rows.orc", "is an ORC file, which is not supported"),
        ("sky.fits", "is a FITS file, which is not supported"),
        ("map.tiff", "is a TIFF file, which is not supported"),
        ("map.gpkg", "is an SQLite database, which is not supported"),
        (
            "user.h5",
            "is an HDF5 or NetCDF-4 file, not a Tercet container\n  hint: convert it: `tercet convert user.h5 OUT.tet`",
        ),
        (
            "grid.nc",
            "is a NetCDF-3 file, not a Tercet container\n  hint: convert it: `tercet convert grid.nc OUT.tet`",
        ),
        (
            "field.grib2",
            "is a GRIB edition 2 file, not a Tercet container\n  hint: convert it: `tercet convert field.grib2 OUT.tet`",
        ),
        ("table.parquet", "is a Parquet file, not a Tercet container"),
    ] {
        for ran in [
            dir.tercet(&format!("info {name}")),
            dir.tet(&format!("info {name}")),
            dir.tgm(&format!("info {name}")),
            dir.tatami(&format!("inspect {name}")),
        ] {
            assert_eq!(ran.code, Some(7), "{name}: {}", ran.stderr);
            assert!(ran.stderr.contains(description), "{name}: {}", ran.stderr);
        }
    }
    let mut tar = vec![0; 512];
    tar[257..262].copy_from_slice(b"ustar");
    dir.write("all.tar", &tar);
    let mut npz = b"PK\x03\x04".to_vec();
    npz.resize(26, 0);
    npz.extend(b"\x05\0\0\0a.npy");
    dir.write("all.npz", &npz);
    dir.write("tatami.manifest", b"TMAN\x01");
    for (name, hint) in [
        ("all.tar", "`tar -xf all.tar`"),
        ("all.npz", "`tercet convert all.npz OUT.tet`"),
        ("tatami.manifest", "`tatami collection list .`"),
    ] {
        let ran = dir.tercet(&format!("info {name}"));
        assert_eq!(ran.code, Some(7), "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains(hint), "{name}: {}", ran.stderr);
    }
    assert!(dir.tatami("cat table.parquet").stderr.contains("`tatami convert table.parquet OUT.tatami`"));
}

#[test]
fn the_memory_limit_of_small_files_can_be_raised_and_lowered() {
    let dir = TestDir::with_weather();
    let ran = dir.tet("extract weather.tet t2m -o all.npy --max-memory 64B");
    assert_eq!(ran.code, Some(6), "{}", ran.snapshot());
    assert!(ran.stderr.contains("`--max-memory SIZE`"), "{}", ran.stderr);
    assert_eq!(dir.tet("extract weather.tet t2m -o all.npy --max-memory 1GiB").code, Some(0));
}
