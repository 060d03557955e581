use super::support::TestDir;

#[test]
fn the_demo_runs_to_its_end() {
    let dir = TestDir::new();
    let output = dir.tercet("demo");
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    assert_eq!(output.stderr, "");
    for line in [
        "Its files are kept in the directory `tercet-demo`.",
        "$ tet info tercet-demo/weather.tet",
        "protected: checksums and chunk statistics present; every read is verified",
        "exactly as written",
        "error: tercet-demo/damaged.tet: dataset `t2m`, chunk [1, 0, 1]",
        "(exit code 5)",
        "tercet_payloads        FAIL (row 5 (dataset `t2m`, chunk [1, 0, 1])",
        "kept: 18 of 19 chunks",
        "(exit code 4)",
        "verify_after: ok",
        "`noon-again.npy` equals `noon.npy`, byte for byte.",
        "$ tgm ls tercet-demo/hours.tgm -p name,hour,units",
        "t2m\t12\tK",
        "tercet-demo/hours.tgm: OK (2 messages, 2 objects, hash verified)",
        "error: tercet-demo/bad-hours.tgm: message 1 › object 0",
        "tercet-demo/bad-hours.tgm: FAILED (1 error, 2 messages, 2 objects)",
        "tercet-demo/cities.tatami: 12 rows, 6 columns, 1 row group",
        "sorted:  by name (sparse primary-key index)",
        "{\"name\":\"Lima\",\"country\":\"Peru\"",
        "error: tercet-demo/bad-cities.tatami: row group 0 › column 0 › page 1",
        "{\"name\":\"Tunis\",\"people\":640000}",
        "kept: 8 of 12 rows",
        "lost: rows 4..8",
        "\nno differences\n",
        "$ tercet find tercet-demo/catalog.tatami",
    ] {
        assert!(output.stdout.contains(line), "{line}\n\n{}", output.stdout);
    }
    let status = |name: &str| dir.tet(&format!("verify -q tercet-demo/{name}")).code;
    let expected = [("weather.tet", 0), ("damaged.tet", 1), ("salvaged.tet", 0), ("cut.tet", 0)];
    for (name, code) in expected {
        assert_eq!(status(name), Some(code), "{name}");
    }
    assert_eq!(dir.tgm("validate --full tercet-demo/hours.tgm").code, Some(0));
    assert_eq!(dir.tgm("validate tercet-demo/bad-hours.tgm").code, Some(1));
    let status = |name: &str| dir.tatami(&format!("verify --deep -q tercet-demo/{name}")).code;
    let expected = [("cities.tatami", 0), ("bad-cities.tatami", 1), ("saved-cities.tatami", 0)];
    for (name, code) in expected {
        assert_eq!(status(name), Some(code), "{name}");
    }
    assert!(!dir.path("tercet-demo/all.npy").exists(), "a failed read leaves no file");
}

#[test]
fn quiet_creates_the_files_only() {
    let dir = TestDir::new();
    let output = dir.tercet("demo -q here");
    assert_eq!(
        (output.code, output.stdout.as_str(), output.stderr.as_str()),
        (Some(0), "", ""),
        "the files are the result"
    );
    assert_eq!(dir.tet("verify -q here/weather.tet").code, Some(0));
    assert!(dir.path("here/saved-cities.tatami").exists());
}

#[test]
fn existing_files_are_not_overwritten() {
    let dir = TestDir::new();
    assert_eq!(dir.tercet("demo").code, Some(0));
    let first = dir.read("tercet-demo/weather.tet");
    let again = dir.tercet("demo");
    assert!(again.stdout.contains("`tercet-demo-2`"), "{}", again.stdout);
    assert_eq!(dir.read("tercet-demo/weather.tet"), first);

    assert_eq!(dir.tercet("demo here/there").code, Some(0));
    assert!(dir.path("here/there/weather.tet").exists());
    let refused = dir.tercet("demo here/there");
    assert_eq!(refused.code, Some(8));
    assert!(refused.stderr.contains("directory is not empty"), "{}", refused.stderr);
    dir.write("file", b"x");
    assert_eq!(dir.tercet("demo file").code, Some(3));
}
