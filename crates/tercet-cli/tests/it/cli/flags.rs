//! Options that mean the same in every verb: `--json`, `-q`, `-n`.

use serde_json::Value;

use super::support::TestDir;

/// `a.npy`, `a.tet`, `a.tgm`, `rows.tatami` with 20 rows, and `docs.tatami` with 12 documents.
fn files() -> TestDir {
    let dir = TestDir::new();
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (6,), }";
    let mut npy = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    npy.extend(format!("{header:<117}\n").bytes());
    npy.extend([1, 2, 3, 4, 5, 6]);
    dir.write("a.npy", &npy);
    let rows: Vec<String> = (0..20).map(|row| format!("{{\"n\":{row}}}\n")).collect();
    dir.write("rows.jsonl", rows.concat().as_bytes());
    let docs: Vec<String> = (0..12).map(|id| format!("{{\"id\":{id},\"text\":\"same words\"}}\n")).collect();
    dir.write("docs.jsonl", docs.concat().as_bytes());
    assert_eq!(dir.tet("create a.tet --from a=a.npy").code, Some(0));
    assert_eq!(dir.tgm("create a.tgm --from a=a.npy").code, Some(0));
    assert_eq!(dir.tatami("create rows.tatami --from rows.jsonl").code, Some(0));
    assert_eq!(dir.tatami("index docs.jsonl -o docs.tatami").code, Some(0));
    dir
}

#[test]
fn quiet_hides_summaries() {
    let dir = files();
    for args in [
        "tet create b.tet --from a=a.npy",
        "tet append b.tet --from b=a.npy",
        "tet extract a.tet a -o b.npy",
        "tet drop b.tet b",
        "tgm create b.tgm --from a=a.npy",
        "tgm copy a.tgm c.tgm",
        "tgm extract a.tgm 0 -o c.npy",
        "tgm index c.tgm",
        "tatami create c.tatami --from rows.jsonl",
        "tatami index docs.jsonl -o d.tatami",
        "tatami merge rows.tatami c.tatami -o e.tatami",
        #[cfg(feature = "arrow")]
        "tatami convert rows.tatami rows.csv",
    ] {
        let ran = dir.tercet(&format!("{args} -q"));
        let seen = (ran.code, ran.stdout.as_str(), ran.stderr.as_str());
        assert_eq!(seen, (Some(0), "", ""), "{args}");
    }
    let again = dir.tet("create b.tet --from a=a.npy -q");
    assert_eq!(again.stderr, "error: b.tet: file exists\n  hint: `--force` replaces it\n");
    let hits = dir.tatami("search docs.tatami words");
    let quiet = dir.tatami("search docs.tatami words -q");
    assert_eq!((quiet.stdout, quiet.stderr.as_str()), (hits.stdout, ""));
    assert!(hits.stderr.contains("10 hits of 12 in "), "{}", hits.stderr);
    let quiet = dir.tatami("search docs.tatami nothing -q");
    assert_eq!((quiet.code, quiet.stdout.as_str(), quiet.stderr.as_str()), (Some(1), "", ""));
}

#[test]
fn a_limit_of_0_means_all() {
    let dir = files();
    assert_eq!(dir.tatami("head rows.tatami").stdout.lines().count(), 10);
    assert_eq!(dir.tatami("head rows.tatami -n 0").stdout.lines().count(), 20);
    assert_eq!(dir.tatami("cat rows.tatami -n 0").stdout.lines().count(), 20);
    for (limit, hits) in [("", 10), ("-n 3", 3), ("-n 0", 12)] {
        let ran = dir.tatami(&format!("search docs.tatami words --json {limit}"));
        assert_eq!(ran.code, Some(0), "{limit}: {}", ran.stderr);
        let found: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(found["hits"].as_array().unwrap().len(), hits, "{limit}");
    }
}

#[test]
fn every_verb_reports_errors_as_json() {
    let dir = files();
    for args in [
        "tgm create x.tgm --from a=none.npy",
        "tgm copy none.tgm x.tgm",
        "tgm extract none.tgm 0 -o x.npy",
        "tgm get -p name none.tgm",
        "tet extract none.tet a -o x.npy",
        "tatami cat none.tatami",
        "tatami head none.tatami",
        "tatami collection add . none.tatami",
        "tatami collection compact none",
    ] {
        for line in [format!("{args} --json"), format!("--json {args}"), format!("{args} -j")] {
            let ran = dir.tercet(&line);
            assert_eq!(ran.stdout, "", "{line}");
            let error: Value = serde_json::from_str(&ran.stderr).unwrap();
            assert_eq!(error["error"]["exit_code"].as_i64(), ran.code.map(i64::from), "{line}");
        }
    }
}

#[test]
fn summaries_have_a_json_form() {
    let dir = files();
    let json = |args: &str| -> Value {
        let ran = dir.tercet(&format!("{args} --json"));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{args}");
        serde_json::from_str(&ran.stdout).unwrap()
    };
    let made = json("tgm create b.tgm --from a=a.npy --compression zstd");
    assert_eq!((&made["message"], &made["objects"][0]["raw_bytes"]), (&0.into(), &6.into()));
    assert_eq!(made["objects"][0]["pipeline"], "zstd");
    assert_eq!(json("tgm copy a.tgm c.tgm")["messages"], 1);
    assert_eq!(json("tgm copy a.tgm out_[name].tgm")["files"][0]["messages"], 1);
    assert_eq!(json("tgm copy a.tgm d.tgm --compression zstd")["objects_repacked"], 1);
    assert_eq!(json("tgm extract a.tgm 0 -o b.npy")["dtype"], "uint8");
    assert_eq!(json("tgm get -p name a.tgm")["name"], "a");
    assert_eq!(json("tet extract a.tet a -o c.npy")["shape"][0], 6);
    assert_eq!(json("tatami collection add . rows.tatami")["added"][0], "rows.tatami");
    assert_eq!(json("tatami collection tier . rows.tatami 3")["tier"], 3);
    assert_eq!(json("tatami collection compact .")["members"], 1);
    assert_eq!(json("tatami collection remove . rows.tatami")["removed"][0], "rows.tatami");
}
