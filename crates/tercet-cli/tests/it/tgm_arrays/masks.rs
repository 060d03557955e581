//! NaN and infinities are rejected by default, and kept on request.

use super::npy;
use super::{CommandOutput, TestDir, run_command};

/// 5000 float32 values, some of which are not finite.
fn values() -> Vec<f32> {
    let mut values: Vec<f32> = (0u16..5000).map(|n| f32::from(n) / 7.0).collect();
    for at in (100..5000).step_by(17) {
        values[at] = f32::NAN;
    }
    for at in (101..5000).step_by(39) {
        values[at] = f32::INFINITY;
    }
    values[7] = f32::NEG_INFINITY;
    values
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn dir() -> (TestDir, Vec<u8>) {
    let dir = TestDir::new();
    let values = bytes(&values());
    dir.write("a.npy", npy::with_header("'<f4'", false, &[50, 100], values.clone()));
    (dir, values)
}

/// Runs `tgm` with environment variables.
fn with_env(dir: &TestDir, args: &str, variables: &[(&str, &str)]) -> CommandOutput {
    let mut command = dir.command();
    command.args(args.split_whitespace()).envs(variables.iter().copied());
    run_command(&mut command)
}

/// The storage of the masks of the first object.
fn methods(dir: &TestDir) -> Vec<(String, String)> {
    let message = dir.message("a.tgm", 0);
    let object = message.object(0).unwrap();
    let masks = object.descriptor().masks.clone().unwrap();
    let text = |value: &tercet::tgm::Value| value.as_text().unwrap().to_owned();
    masks
        .as_map()
        .unwrap()
        .iter()
        .map(|(kind, mask)| (text(kind), text(mask.get("method").unwrap())))
        .collect()
}

#[test]
fn the_first_non_finite_value_is_reported() {
    let (dir, _) = dir();
    for mode in ["", "--stream", "--compression zstd", "--max-error 0.1", "--allow-nan=false"] {
        let args = format!("create x.tgm {mode} --from a=a.npy");
        let hint = "hint: add `--allow-inf` to store infinities as masks";
        dir.refused(&args, 8, &format!("`a` from a.npy: element 7 is -Inf, which is not allowed\n  {hint}"));
        let args = format!("create x.tgm {mode} --allow-inf --from a=a.npy");
        dir.refused(
            &args,
            8,
            "element 100 is NaN, which is not allowed\n  hint: add `--allow-nan` to store NaN as a mask",
        );
    }
    dir.refused("create x.tgm --allow-nan --from a=a.npy", 8, "element 7 is -Inf");
    dir.refused("create - --allow-nan --from a=a.npy", 8, "element 7 is -Inf");
}

#[test]
fn masked_values_round_trip() {
    let (dir, values) = dir();
    for options in [
        "",
        "--stream",
        "--compression zstd",
        "--filter shuffle --compression lz4",
        "--compression blosc2",
        "--max-error 0",
    ] {
        dir.ok(&format!("create a.tgm --force --allow-nan --allow-inf {options} --from a=a.npy"));
        assert!(dir.ok("extract a.tgm 0 -o -").bytes == values, "{options}");
        dir.ok("validate --full a.tgm");
        let result = dir.ok("extract a.tgm 0 -o - --no-restore");
        assert_eq!(result.err, "note: masked values are written as zeros\n");
        let zeros: Vec<f32> =
            self::values().into_iter().map(|v| if v.is_finite() { v } else { 0.0 }).collect();
        assert!(result.bytes == bytes(&zeros), "{options}");
    }
    // Packed and widened values keep their masks.
    let args =
        "create a.tgm --force --allow-nan --allow-inf --encoding simple_packing --widen --from a=a.npy";
    dir.ok(args);
    let found = dir.ok("extract a.tgm 0 -o -").bytes;
    let found = found.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
    for (found, original) in found.zip(self::values()) {
        let original = f64::from(original);
        let is_same = found.total_cmp(&original).is_eq() || found.is_nan() && original.is_nan();
        assert!(is_same || (found - original).abs() < 0.01 && original.is_finite(), "{found} {original}");
    }
}

#[test]
fn masks_use_the_requested_codec() {
    let (dir, values) = dir();
    for method in ["none", "rle", "roaring", "lz4", "zstd", "blosc2"] {
        dir.ok(&format!(
            "create a.tgm --force --allow-nan --allow-inf --nan-mask-method {method} --pos-inf-mask-method {method} \
             --neg-inf-mask-method {method} --from a=a.npy"
        ));
        let expected = ["nan", "inf+", "inf-"].map(|kind| (kind.to_owned(), method.to_owned()));
        assert_eq!(methods(&dir), expected);
        assert!(dir.ok("extract a.tgm 0 -o -").bytes == values, "{method}");
    }
    let create = "create a.tgm --force --allow-nan --allow-inf --from a=a.npy";
    dir.ok(&format!("{create} --nan-mask-method rle"));
    assert_eq!(
        methods(&dir).iter().map(|(_, m)| m.as_str()).collect::<Vec<_>>(),
        ["rle", "roaring", "roaring"]
    );
    // 5000 bits are 625 bytes.
    dir.ok(&format!("{create} --small-mask-threshold 625"));
    assert!(methods(&dir).iter().all(|(_, method)| method == "none"));
    dir.ok(&format!("{create} --small-mask-threshold 624"));
    assert!(methods(&dir).iter().all(|(_, method)| method == "roaring"));
    dir.refused(
        "create x.tgm --nan-mask-method gzip --from a=a.npy",
        2,
        "possible values: none, rle, roaring",
    );
}

#[test]
fn mask_options_are_read_from_the_environment() {
    let (dir, values) = dir();
    let create = "create a.tgm --force --from a=a.npy";
    let allowed = [("TENSOGRAM_ALLOW_NAN", "1"), ("TENSOGRAM_ALLOW_INF", "true")];
    let result = with_env(&dir, create, &allowed);
    assert_eq!(result.code, 0, "{}", result.err);
    assert!(dir.ok("extract a.tgm 0 -o -").bytes == values);
    let methods_by_env = [
        ("TENSOGRAM_NAN_MASK_METHOD", "rle"),
        ("TENSOGRAM_POS_INF_MASK_METHOD", "zstd"),
        ("TENSOGRAM_NEG_INF_MASK_METHOD", "lz4"),
        ("TENSOGRAM_THREADS", "1"),
    ];
    assert_eq!(with_env(&dir, create, &[&allowed[..], &methods_by_env].concat()).code, 0);
    assert_eq!(methods(&dir).iter().map(|(_, m)| m.as_str()).collect::<Vec<_>>(), ["rle", "zstd", "lz4"]);
    let threshold = [("TENSOGRAM_SMALL_MASK_THRESHOLD", "1000")];
    assert_eq!(with_env(&dir, create, &[&allowed[..], &threshold].concat()).code, 0);
    assert!(methods(&dir).iter().all(|(_, method)| method == "none"));
    // Options override the environment.
    assert_eq!(with_env(&dir, &format!("{create} --allow-nan=false"), &allowed).code, 8);
    for (name, value) in [
        ("TENSOGRAM_ALLOW_NAN", "perhaps"),
        ("TENSOGRAM_THREADS", "-1"),
        ("TENSOGRAM_SMALL_MASK_THRESHOLD", "few"),
        ("TENSOGRAM_NAN_MASK_METHOD", "gzip"),
    ] {
        let result = with_env(&dir, create, &[(name, value)]);
        assert_eq!(result.code, 2, "{name}: {}", result.err);
    }
}

/// The options are accepted before the verb, as in the reference command.
#[test]
fn options_are_accepted_before_the_verb() {
    let (dir, values) = dir();
    dir.ok("--allow-nan --allow-inf=yes create a.tgm --from a=a.npy");
    assert!(dir.ok("extract a.tgm 0 -o -").bytes == values);
    let mut tercet = assert_cmd::Command::new(env!("CARGO_BIN_EXE_tercet"));
    tercet.current_dir(dir.0.path());
    let result = run_command(
        tercet.args("tgm --allow-nan --threads 1 create b.tgm --allow-inf --from a=a.npy".split(' ')),
    );
    assert_eq!(result.code, 0, "{}", result.err);
    assert!(dir.ok("extract b.tgm 0 -o -").bytes == values);
}
