//! `advise` measures every applicable pipeline.

use serde_json::Value as Json;

use super::npy::{self, Array};
use super::pipeline::dir;
use super::run_command as run;

fn names(json: &Json) -> Vec<&str> {
    json["candidates"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
}

fn chosen(json: &Json) -> &Json {
    let all = json["candidates"].as_array().unwrap();
    let chosen: Vec<&Json> = all.iter().filter(|one| one["chosen"] == true).collect();
    assert_eq!(chosen.len(), 1, "{json}");
    chosen[0]
}

#[test]
fn create_uses_the_pipeline_of_advise() {
    let (dir, values) = dir();
    for bound in ["0", "0.001", "0.5"] {
        let result = dir.ok(&format!("advise t.npy --max-error {bound} --json"));
        assert_eq!(result.err, "");
        let json: Json = serde_json::from_str(&result.out).unwrap();
        assert_eq!((&json["file"], &json["dtype"]), (&"t.npy".into(), &"float64".into()));
        assert_eq!(
            (&json["shape"], &json["raw_bytes"]),
            (&serde_json::json!([30, 40]), &values.len().into())
        );
        let best = chosen(&json);
        let bound_number: f64 = bound.parse().unwrap();
        assert!(best["max_abs_error"].as_f64().unwrap() <= bound_number);
        for other in json["candidates"].as_array().unwrap() {
            let holds = other["max_abs_error"].as_f64().unwrap() <= bound_number;
            assert!(!holds || other["bytes"].as_u64() >= best["bytes"].as_u64(), "{other}");
            assert!(
                other["encode_mb_s"].as_f64().unwrap() > 0.0 && other["decode_mb_s"].as_f64().unwrap() > 0.0
            );
            assert!(other["lossless"] == false || other["max_abs_error"] == 0.0, "{other}");
        }
        dir.ok(&format!("create a.tgm --force --max-error {bound} --from t=t.npy"));
        let message = dir.message("a.tgm", 0);
        let method = message.metadata().base[0]["precision"].get("method").unwrap().printed();
        assert_eq!(best["name"], method, "{bound}");
    }
}

#[test]
fn advise_prints_a_table() {
    let (dir, _) = dir();
    let result = dir.ok("advise t.npy --max-error 0.01 --threads 1");
    assert!(result.out.starts_with("t.npy: float64 30×40, 9.4 KiB\n"), "{}", result.out);
    for part in ["pipeline", "max error", "encode MB/s", "simple_packing", "zfp accuracy 0.01", "│ * ┆"] {
        assert!(result.out.contains(part), "{part}\n{}", result.out);
    }
    assert!(result.out.contains("\n* chosen by `tgm create --max-error 0.01`: "), "{}", result.out);
    assert!(result.err.starts_with("note: one run each on 1 thread; total "), "{}", result.err);
}

#[test]
fn advise_accepts_any_array() {
    let (dir, mut values) = dir();
    // Lossy pipelines need float64 and an error bound.
    let json: Json = serde_json::from_str(&dir.ok("advise t.npy --json").out).unwrap();
    assert!(names(&json).iter().all(|name| !name.contains("packing") && !name.contains("zfp")));
    dir.write("i.npy", Array::new("i2", 2, &[300]).file(true, false));
    let json: Json = serde_json::from_str(&dir.ok("advise i.npy --max-error 3 --json").out).unwrap();
    assert!(names(&json).contains(&"szip") && !names(&json).iter().any(|name| name.contains("packing")));
    let result = dir.ok("advise i.npy --max-error 3 --widen --json");
    assert_eq!(result.err, "note: i.npy: int16 converted to float64\n");
    let json: Json = serde_json::from_str(&result.out).unwrap();
    assert!(names(&json).iter().any(|name| name.contains("packing")));
    // Standard input.
    let mut command = dir.command();
    let piped = run(command.args(["advise", "-", "--json"]).write_stdin(dir.read("t.npy")));
    let json: Json = serde_json::from_str(&piped.out).unwrap();
    assert_eq!(json["file"], "standard input");
    // An object of a message.
    dir.ok("create a.tgm --compression zstd --from t=t.npy --from i=i.npy");
    let json: Json = serde_json::from_str(&dir.ok("advise a.tgm 0.1 --json").out).unwrap();
    assert_eq!(
        (&json["file"], &json["dtype"]),
        (&"a.tgm: message 0, object 1 (`i`)".into(), &"int16".into())
    );
    // Non-finite values are allowed and reported.
    values[8..16].copy_from_slice(&f64::INFINITY.to_le_bytes());
    dir.write("inf.npy", npy::with_header("'<f8'", false, &[1200], values));
    let result = dir.ok("advise inf.npy --max-error 0.01");
    assert!(result.err.contains("has NaN or infinities; `tgm create` requires"), "{}", result.err);
    let json: Json = serde_json::from_str(&dir.ok("advise inf.npy --json").out).unwrap();
    assert_eq!((&json["has_masks"], &chosen(&json)["max_abs_error"]), (&true.into(), &0.0.into()));
}

#[test]
fn non_arrays_are_rejected() {
    let (dir, _) = dir();
    dir.ok("create a.tgm --from t=t.npy --from u=t.npy");
    dir.write("big.npy", npy::with_header("'<i8'", false, &[1], i64::MAX.to_le_bytes().to_vec()));
    for (args, code, message) in [
        ("a.tgm", 8, "a.tgm: no message is given\n  hint: add its number: `tgm advise a.tgm 0`"),
        ("a.tgm 0", 8, "hint: select one: `0.0` to `0.1`"),
        ("a.tgm 7", 8, "has no message 7"),
        ("t.npy 0", 7, "t.npy: is a NumPy array file, not a Tercet container"),
        ("none.npy", 3, "none.npy: cannot open"),
        ("t.npy --max-error -3", 2, "--max-error"),
        ("big.npy --widen", 8, "big.npy: element 0 has no exact float64 value"),
    ] {
        dir.refused(&format!("advise {args}"), code, message);
    }
}

#[test]
fn quiet_output_is_the_chosen_pipeline() {
    let (dir, _) = dir();
    let result = dir.ok("advise t.npy --max-error 0.5 -q");
    assert_eq!((result.out.lines().count(), result.err.as_str()), (1, ""), "{}", result.out);
    assert!(result.out.starts_with("chosen by `tgm create --max-error 0.5`: "), "{}", result.out);
}
