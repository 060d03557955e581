//! Smaller files: the choice of the compression, rounding, `tet advise` and `tet repack`.

use super::{TestDir, npy};

/// A field of floats that do not compress well: every mantissa bit differs.
fn floats(count: u32) -> Vec<u8> {
    let value = |n: u32| 250.0 + (f64::from(n) * 0.7).sin() as f32 * 17.3 + f32::from(noise(n.into())) * 1e-4;
    (0..count).flat_map(|n| value(n).to_le_bytes()).collect()
}

/// Bytes without a pattern.
fn noise(n: u64) -> u8 {
    let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 40) as u8
}

fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.write("t.npy", npy::with_header("'<f4'", false, &[4, 50, 60], floats(12_000)));
    let noise = (0..12_000).map(noise).collect();
    dir.write("noise.npy", npy::with_header("'|u1'", false, &[12_000], noise));
    dir.write("lat.npy", npy::with_header("'<f4'", false, &[50], floats(50)));
    dir.write("zeros.npy", npy::with_header("'<i4'", false, &[3000], vec![0; 12_000]));
    dir
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_sample_decides_the_compression() {
    let dir = dir();
    let result = dir.ok("create a.tet --from noise=noise.npy --from zeros=zeros.npy");
    insta::assert_snapshot!(result.out);
    let found = json(&dir.ok("create b.tet --from noise=noise.npy --from zeros=zeros.npy --json").out);
    let codecs: Vec<&str> = (0..2).map(|n| found["datasets"][n]["codec"].as_str().unwrap()).collect();
    assert_eq!(codecs, ["raw", "zstd"]);
    assert_eq!(found["datasets"][0]["sample"]["bytes"], 12_000);
    assert!(found["datasets"][1]["sample"]["ratio"].as_f64().unwrap() < 0.01);
}

#[test]
fn options_decide_the_compression_by_hand() {
    let dir = dir();
    for (options, codec) in [
        ("--raw", "raw"),
        ("--compression none", "raw"),
        ("--zstd", "zstd"),
        ("--compression zstd:1", "zstd"),
        ("--profile interop", "raw"),
        ("--profile interop --compression auto", "zstd"),
        ("--compression auto", "zstd"),
    ] {
        let found = json(&dir.ok(&format!("create a.tet --from a=zeros.npy --json -f {options}")).out);
        assert_eq!(found["datasets"][0]["codec"], codec, "{options}");
    }
    // Raw chunks of the default are those of the option.
    dir.ok("create chosen.tet --from a=noise.npy");
    dir.ok("create raw.tet --from a=noise.npy --raw");
    let result = dir.ok("extract chosen.tet a -o -");
    assert_eq!(result.bytes, dir.ok("extract raw.tet a -o -").bytes);
    assert_eq!(dir.read("chosen.tet").len(), dir.read("raw.tet").len());
    let refused = dir.tet("create b.tet --from a=zeros.npy --raw --zstd 3");
    assert_eq!(refused.code, 2, "{}", refused.err);
}

#[test]
fn a_maximum_error_makes_the_file_smaller_and_is_recorded() {
    let dir = dir();
    dir.ok("create plain.tet --from t=t.npy --zstd");
    let command = "create a.tet --from t=t.npy --from lat=lat.npy --dims t:time,lat,lon --max-error 0.01";
    let result = dir.ok(command);
    insta::assert_snapshot!(result.out);
    assert!(dir.read("a.tet").len() * 2 < dir.read("plain.tet").len());
    let info = json(&dir.ok("info a.tet --json").out).to_string();
    assert!(info.contains(r#""quantization_max_error":"0.01""#), "{info}");
    assert!(info.contains(r#""quantization_algorithm":"bitround""#), "{info}");
    let history = dir.ok("info a.tet --history").out;
    assert!(history.contains("create"), "{history}");
    // Coordinates are not rounded unless they are named.
    assert_eq!(dir.ok("extract a.tet lat -o -").bytes, floats(50));
    let values = dir.ok("extract a.tet t -o -").bytes;
    for (value, rounded) in floats(12_000).chunks_exact(4).zip(values.chunks_exact(4)) {
        let number = |bytes: &[u8]| f64::from(f32::from_le_bytes(bytes.try_into().unwrap()));
        assert!((number(value) - number(rounded)).abs() <= 0.01);
    }
    // New values are rounded like the stored ones.
    dir.ok("create one.tet --from t=t.npy --max-error 0.01 --chunk 1,50,60");
    let grown = dir.ok("append one.tet --along 0 --from t=t.npy");
    assert!(
        grown.err.contains("new values of `t` are rounded like the stored ones: max error 0.01"),
        "{}",
        grown.err
    );
    let all = dir.ok("extract one.tet t -o -").bytes;
    assert_eq!(all, [&values[..], &values[..]].concat());
}

#[test]
fn a_maximum_error_of_zero_is_exact() {
    let dir = dir();
    dir.ok("create a.tet --from t=t.npy --max-error 0");
    assert_eq!(dir.ok("extract a.tet t -o -").bytes, floats(12_000));
}

#[test]
fn invalid_roundings_are_refused() {
    let dir = dir();
    let mut refused = Vec::new();
    for options in [
        "--max-error -1",
        "--max-error nan",
        "--max-error inf",
        "--max-error x",
        "--keep-bits 60",
        "--keep-bits 24",
        "--max-error 1 --keep-bits 3",
        "--max-error 1 --attr scale_factor=2",
        "--max-error 1 --attr _FillValue=none",
        "--max-error u:1",
    ] {
        let result = dir.tet(&format!("create x.tet --from t=t.npy {options}"));
        refused.push(format!("{options}: exit {}\n{}", result.code, result.err));
    }
    let result = dir.tet("create x.tet --from t=t.npy --from z=zeros.npy --max-error 1");
    refused.push(format!("integers: exit {}\n{}", result.code, result.err));
    insta::assert_snapshot!(refused.join("\n"));
    assert!(!dir.names().iter().any(|name| name == "x.tet"));
}

#[test]
fn advice_measures_every_option() {
    let dir = dir();
    dir.ok("create a.tet --from t=t.npy --from z=zeros.npy");
    let report = json(&dir.ok("advise a.tet --json").out);
    let t = &report["datasets"][0];
    let options: Vec<&str> =
        t["trials"].as_array().unwrap().iter().map(|trial| trial["options"].as_str().unwrap()).collect();
    assert_eq!(
        options,
        [
            "--compression none",
            "--compression zstd:1",
            "--compression zstd:3",
            "--compression zstd:9",
            "--compression zstd:19",
            "--max-error 0.0001",
            "--max-error 0.001",
            "--max-error 0.01",
            "--max-error 0.1",
        ]
    );
    for trial in t["trials"].as_array().unwrap() {
        let error = trial["max_abs_error"].as_f64().unwrap();
        assert!(error <= trial["max_error"].as_f64().unwrap_or(0.0), "{trial}");
    }
    // Integers are not rounded.
    assert_eq!(report["datasets"][1]["trials"].as_array().unwrap().len(), 5);
    let text = dir.ok("advise a.tet t --max-error 0.5").out;
    assert!(text.contains("--max-error 0.5") && !text.contains("--max-error 0.1"), "{text}");
    assert_eq!(dir.tet("advise a.tet nothing").code, 8);
}

#[test]
fn repacking_keeps_values_metadata_and_history() {
    let dir = dir();
    dir.ok("create a.tet --from t=t.npy --from z=zeros.npy --dims t:time,lat,lon --attr t:units=K --raw");
    dir.ok("repack a.tet b.tet --chunks 2,25,60 --dataset t --compression zstd:9");
    let result = json(&dir.ok("info b.tet --json").out);
    assert!(result.to_string().contains(r#""units":"K""#), "{result}");
    assert_eq!(dir.ok("extract b.tet t -o -").bytes, floats(12_000));
    assert_eq!(dir.ok("verify --deep b.tet").code, 0);
    let history = dir.ok("info b.tet --history").out;
    assert!(history.contains("create") && history.contains("repack"), "{history}");
    // The other dataset is still raw; without a name every dataset is written again.
    let codec = |file: &str| dir.ok(&format!("repack {file} again.tet -f --json")).out;
    let all = json(&codec("b.tet"));
    assert_eq!(all["datasets"].as_array().unwrap().len(), 2);
    // Errors add up, unless rounding again changes nothing.
    dir.ok("repack a.tet c.tet --max-error 0.01");
    dir.ok("repack c.tet d.tet --max-error 0.001");
    dir.ok("repack c.tet e.tet --max-error 0.1");
    let recorded = |file: &str| dir.ok(&format!("info {file} --json")).out;
    assert!(recorded("d.tet").contains(r#""quantization_max_error": "0.01""#));
    assert!(recorded("e.tet").contains(r#""quantization_max_error": "0.11""#), "{}", recorded("e.tet"));
    for (command, code) in [
        ("repack a.tet a.tet -f", 8),
        ("repack a.tet b.tet", 8),
        ("repack a.tet f.tet --dataset z --max-error 1", 8),
        ("repack a.tet f.tet --chunks 1", 8),
        ("repack a.tet f.tet --dataset nothing", 8),
    ] {
        let result = dir.tet(command);
        assert_eq!(result.code, code, "{command}: {}", result.err);
    }
}

#[test]
fn repacking_takes_the_short_options_of_the_compression() {
    let dir = dir();
    dir.ok("create a.tet --from a=zeros.npy -q");
    for (options, codec) in
        [("--raw", "raw"), ("--zstd", "zstd"), ("--zstd 19", "zstd"), ("--zstd=-3", "zstd")]
    {
        let found = json(&dir.ok(&format!("repack a.tet b.tet --json -f {options}")).out);
        assert_eq!(found["datasets"][0]["codec"], codec, "{options}");
    }
    assert_eq!(dir.tet("repack a.tet b.tet -f --raw --zstd").code, 2);
}
