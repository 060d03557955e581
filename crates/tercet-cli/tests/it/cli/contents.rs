//! `tercet diff`, `hash`, `catalog`, `find`, `get`, and conversions of messages.

use super::support::TestDir;

fn demo() -> TestDir {
    let dir = TestDir::new();
    assert_eq!(dir.tercet("demo -q d").code, Some(0));
    dir
}

#[test]
fn contents_are_compared_across_formats() {
    let dir = demo();
    for to in ["cube.nc", "cube.zarr", "cube.tgm"] {
        assert_eq!(dir.tercet(&format!("convert d/forecast.tet {to}")).code, Some(0), "{to}");
    }
    let hash = |file: &str| dir.tercet(&format!("hash {file}")).stdout[..64].to_owned();
    let expected = hash("d/forecast.tet");
    for file in ["cube.nc", "cube.zarr", "cube.tgm", "d/forecast.tgm"] {
        assert_eq!(hash(file), expected, "{file}");
        let diff = dir.tercet(&format!("diff --no-metadata d/forecast.tet {file}"));
        assert_eq!(
            (diff.code, diff.stdout.as_str()),
            (Some(0), "no differences\n"),
            "{file} {}",
            diff.stderr
        );
    }
    assert_ne!(hash("d/weather.tet"), expected);
    let diff = dir.tercet("diff d/forecast.tgm d/hours.tgm --json");
    assert_eq!(diff.code, Some(1), "{}", diff.stderr);
    assert!(diff.stdout.contains(r#""compared": "messages""#), "{}", diff.stdout);
    assert_eq!(dir.tercet("diff d/weather.tet d/cities.tatami").code, Some(7));
}

#[test]
fn different_values_are_listed_with_their_places() {
    let dir = demo();
    assert_eq!(dir.tercet("convert d/weather.tet other.tet --max-error 0.1").code, Some(0));
    let diff = dir.tercet("diff --no-metadata -n 1 d/weather.tet other.tet");
    assert_eq!(diff.code, Some(1));
    assert!(
        diff.stdout.contains("values     t2m: ") && diff.stdout.contains("             [0, "),
        "{}",
        diff.stdout
    );
    assert_eq!(dir.tercet("diff --no-metadata --atol 0.1 d/weather.tet other.tet").code, Some(0));
    assert_eq!(dir.tercet("diff d/cities.tatami d/cities.jsonl").code, Some(0));
    assert_eq!(dir.tercet("diff d/cities.tatami d/saved-cities.tatami").code, Some(1));
}

#[test]
fn a_catalog_finds_and_reads() {
    let dir = demo();
    let catalog = dir.tercet("catalog d -o d/all.tatami");
    assert_eq!(catalog.code, Some(1), "damaged files of the demo are reported: {}", catalog.stderr);
    assert!(catalog.stderr.contains("bad-hours.tgm"), "{}", catalog.stderr);
    let found = super::support::run(dir.command("tercet").args([
        "find",
        "d/all.tatami",
        "Temperature",
        "--where",
        "step = 24 and level >= 500 and format = 'tgm' and file = 'forecast.tgm'",
        "--json",
    ]));
    assert_eq!(found.code, Some(0), "{}", found.stderr);
    for pointer in ["forecast.tgm#9.0", "forecast.tgm#10.0"] {
        assert!(found.stdout.contains(pointer), "{}", found.stdout);
    }
    assert_eq!(found.stdout.matches("\"pointer\"").count(), 2);
    assert_eq!(dir.tercet("find d/all.tatami turtles").code, Some(1));
    let again = dir.tercet("catalog --refresh d -o d/all.tatami");
    assert!(again.stdout.contains("unchanged"), "{}", again.stdout);
    let get = dir.tercet("get --catalog d/all.tatami forecast.tgm#9.0 -o field.npy");
    assert_eq!(get.code, Some(0), "{}", get.stderr);
    assert_eq!(dir.tgm("extract d/forecast.tgm 9.0 -o expected.npy").code, Some(0));
    assert_eq!(dir.read("field.npy"), dir.read("expected.npy"));
    let rows = dir.tercet("convert d/forecast.tgm rows.tatami");
    assert!(rows.stdout.contains("rows.tatami: 12 rows"), "{}{}", rows.stdout, rows.stderr);
}

#[test]
fn one_bad_file_does_not_stop_the_hashes_of_others() {
    let dir = demo();
    let both = dir.tercet("hash missing.tet d/bad-hours.tgm d/weather.tet");
    assert_eq!(both.code, Some(5), "{}", both.stderr);
    assert!(
        both.stdout.ends_with("  d/weather.tet\n") && both.stdout.lines().count() == 1,
        "{}",
        both.stdout
    );
    assert!(both.stderr.contains("bad-hours.tgm") && both.stderr.contains("missing.tet"), "{}", both.stderr);
    // A damaged message is damage, alone and among others.
    assert_eq!(dir.tercet("hash d/bad-hours.tgm").code, Some(5));
    assert_eq!(dir.tercet("hash d/weather.tet d/bad-hours.tgm").code, Some(5));
    let json = dir.tercet("hash d/weather.tet d/bad-hours.tgm --json");
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json[0]["hash"].as_str().unwrap().len(), 64);
    assert_eq!((&json[1]["error"]["exit_code"], json[1].get("hash")), (&5.into(), None));
}

#[test]
fn a_refresh_does_not_forget_damage() {
    let dir = demo();
    let first = dir.tercet("catalog d/bad-hours.tgm d/weather.tet -o all.tatami");
    assert_eq!(first.code, Some(1), "{}", first.stderr);
    let again = dir.tercet("catalog --refresh d/bad-hours.tgm d/weather.tet -o all.tatami");
    assert_eq!((again.code, &again.stderr), (Some(1), &first.stderr));
    assert!(again.stdout.contains("1 file read, 1 unchanged"), "{}", again.stdout);
    let rows = dir.tercet("find all.tatami --columns file,problem --json -n 0");
    let rows: serde_json::Value = serde_json::from_str(&rows.stdout).unwrap();
    for row in rows.as_array().unwrap() {
        assert_eq!(row.get("problem").is_some(), row["file"] == "d/bad-hours.tgm", "{row}");
    }
}

#[test]
fn catalogs_have_no_options_of_arrays() {
    let dir = demo();
    for option in ["--zstd", "--chunk time=2", "--dtype f32", "--max-error 1", "--split-by file", "--strict"]
    {
        let refused = dir.tercet(&format!("convert d/forecast.tgm rows.tatami {option}"));
        assert_eq!(refused.code, Some(8), "{option}");
        assert!(refused.stderr.contains("is for array files"), "{}", refused.stderr);
    }
}

#[test]
#[cfg(unix)]
fn pointers_stay_below_the_catalog() {
    let dir = demo();
    dir.write("outside.npy", &dir.read("d/noon.npy"));
    std::os::unix::fs::symlink("../outside.npy", dir.path("d/link.npy")).unwrap();
    let absolute = dir.path("outside.npy").to_string_lossy().into_owned();
    for pointer in ["../outside.npy", "link.npy", "https://example.org/a.tet", &absolute] {
        let refused = dir.tercet(&format!("get --catalog d/all.tatami {pointer}"));
        assert_eq!(refused.code, Some(8), "{pointer}: {}", refused.stderr);
        assert!(refused.stderr.contains("--allow-outside"), "{}", refused.stderr);
    }
    for pointer in ["../outside.npy", "link.npy", &absolute] {
        let allowed = dir.tercet(&format!("get --catalog d/all.tatami {pointer} --allow-outside"));
        assert_eq!(allowed.code, Some(0), "{pointer}: {}", allowed.stderr);
    }
}

#[test]
fn the_names_of_the_existing_tools_work() {
    let dir = demo();
    assert_eq!(dir.tgm("to-netcdf d/forecast.tgm -o a.nc --jobs 1").code, Some(0));
    assert_eq!(dir.tgm("convert-netcdf a.nc -o a.tgm --cf").code, Some(0));
    let both = dir.tgm("convert-netcdf a.nc d/forecast.nc -o b.tgm --split-by variable");
    assert_eq!(both.code, Some(0), "{}", both.stderr);
    assert_eq!(dir.tgm("validate b.tgm").code, Some(0));
    assert_eq!(dir.tercet("diff --no-metadata a.nc a.tgm").code, Some(0));
    assert_eq!(dir.tgm("to-netcdf d/forecast.tgm -o a.tet").code, Some(7));
    assert_eq!(dir.tgm("to-netcdf d/forecast.tgm -o a.nc").code, Some(8), "the file exists");
    assert_eq!(dir.tgm("convert-grib a.nc -o c.tgm").code, Some(8));
}

/// The named conversions write to standard output, not to a file `-`.
#[test]
fn named_conversions_write_to_standard_output() {
    let dir = demo();
    assert_eq!(dir.tgm("to-netcdf d/forecast.tgm -o a.nc").code, Some(0));
    for (args, start) in [("to-netcdf d/forecast.tgm -o -", "CDF"), ("convert-netcdf a.nc -o -", "TENS")] {
        let piped = dir.command("tgm").args(args.split_whitespace()).output().unwrap();
        assert_eq!(piped.status.code(), Some(0), "{args}: {}", String::from_utf8_lossy(&piped.stderr));
        assert!(piped.stdout.starts_with(start.as_bytes()), "{args}");
    }
    assert!(!dir.path("-").exists());
}

/// One damaged chunk costs its variable, not the others.
#[test]
fn a_damaged_variable_does_not_stop_a_conversion() {
    let dir = demo();
    let all = dir.tercet("convert d/damaged.tet all.npz --json");
    assert_eq!(all.code, Some(1), "{}", all.stderr);
    assert!(all.stdout.contains("unreadable: "), "{}", all.stdout);
    assert!(dir.path("all.npz").exists());
    let strict = dir.tercet("convert d/damaged.tet strict.tet --strict");
    assert!(matches!(strict.code, Some(4 | 5)), "{}", strict.stderr);
    assert!(!dir.path("strict.tet").exists());
}
