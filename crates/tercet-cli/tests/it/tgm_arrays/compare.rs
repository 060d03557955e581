//! `validate --against`: compares an object with its source array.

use serde_json::Value as Json;

use super::TestDir;
use super::npy;
use super::pipeline::dir;

#[test]
fn the_error_bound_is_checked() {
    let (dir, _) = dir();
    dir.ok("create a.tgm --encoding simple_packing --bits 12 --from t=t.npy");
    dir.ok("create b.tgm --max-error 0.01 --from t=t.npy");
    dir.ok("create c.tgm --compression zstd --from t=t.npy");
    let result = dir.ok("validate c.tgm --against t.npy");
    insta::assert_snapshot!(result.out, @r"
    c.tgm: OK (1 message, 1 object, hash verified)
    c.tgm: OK (message 0, object 0 (`t`) against t.npy: max error 0, bound 0 (default))
    ");
    let result = dir.ok("verify b.tgm --against t.npy");
    assert!(result.out.contains(", bound 0.01 (recorded))"), "{}", result.out);
    dir.ok("validate a.tgm --against t.npy --max-error 0.1");
    for args in [
        "a.tgm --against t.npy",
        "a.tgm --against t.npy --max-error 0.0001",
        "b.tgm --against t.npy --max-error 0",
    ] {
        let result = dir.run(&format!("validate {args}"));
        assert_eq!(result.code, 1, "{args}: {}", result.err);
        assert!(result.err.contains(".tgm: FAILED — message 0, object 0 (`t`) against t.npy: max error 0.0"));
        assert!(result.err.contains(" at element "), "{}", result.err);
        assert_eq!(result.out.lines().count(), 1, "the file itself is valid: {}", result.out);
    }
}

#[test]
fn json_has_the_numbers() {
    let (dir, _) = dir();
    dir.ok("create a.tgm --encoding simple_packing --bits 12 --from t=t.npy");
    let report = |args: &str| -> Json {
        serde_json::from_str(&dir.run(&format!("validate a.tgm --json --against t.npy {args}")).out).unwrap()
    };
    let good = report("--max-error 0.5");
    assert_eq!((&good[0]["status"], &good[0]["against"]["holds"]), (&"ok".into(), &true.into()));
    assert_eq!(good[0]["against"]["bound_from"], "command_line");
    let bad = report("");
    assert_eq!((&bad[0]["status"], &bad[0]["against"]["holds"]), (&"failed".into(), &false.into()));
    assert_eq!(
        (&bad[0]["against"]["bound"], &bad[0]["against"]["bound_from"]),
        (&0.0.into(), &"default".into())
    );
    assert!(bad[0]["against"]["measured"].as_f64().unwrap() > 0.0);
    let plain: Json = serde_json::from_str(&dir.ok("validate a.tgm --json").out).unwrap();
    assert!(plain[0].get("against").is_none());
}

#[test]
fn the_object_is_found_by_number_or_name() {
    let (dir, values) = dir();
    dir.write(
        "u.npy",
        npy::with_header("'<f8'", false, &[1200], values.iter().rev().copied().map(|b| b & 0x3f).collect()),
    );
    dir.ok("create a.tgm --from t=t.npy");
    dir.ok("create a.tgm --append --from t2=t.npy --from u=u.npy");
    for args in ["", "--message 0", "--message 0.0", "--message 1.0", "--name t2", "--name t"] {
        let result = dir.ok(&format!("validate a.tgm --against t.npy {args}"));
        assert_eq!(result.out.lines().count(), 2, "{args}: {}", result.out);
    }
    let result = dir.ok("validate a.tgm --against u.npy --name u");
    assert!(result.out.contains("(message 1, object 1 (`u`) against u.npy"), "{}", result.out);
    for (args, code, message) in [
        ("a.tgm --against t.npy --message 1", 8, "hint: select one: `1.0` to `1.1`"),
        ("a.tgm --against t.npy --message 5.0", 8, "has no message 5"),
        (
            "a.tgm --against t.npy --name x",
            8,
            "a.tgm: no object `x`\n  hint: list the names with `tgm ls -p name FILE`",
        ),
        ("a.tgm --against none.npy", 3, "none.npy: cannot open"),
        ("a.tgm a.tgm --against t.npy", 8, "`--against` requires a single file"),
        ("a.tgm --name t", 2, "--against"),
        ("a.tgm --max-error 1", 2, "--against"),
        ("a.tgm --against t.npy --name t --message 0", 2, "cannot be used with"),
    ] {
        dir.refused(&format!("validate {args}"), code, message);
    }
}

#[test]
fn zeros_keep_their_sign() {
    let dir = TestDir::new();
    let file = |zero: f64| {
        let values = [zero, 0.0, 1.0].iter().flat_map(|n| n.to_le_bytes()).collect();
        npy::with_header("'<f8'", false, &[3], values)
    };
    dir.write("minus.npy", file(-0.0));
    dir.write("plus.npy", file(0.0));
    dir.ok("create minus.tgm --from a=minus.npy");
    dir.ok("validate minus.tgm --against minus.npy");
    let result = dir.tgm("validate minus.tgm --against plus.npy");
    assert_eq!(result.code, 1);
    assert!(result.err.contains("element 0 is zero with the opposite sign"), "{}", result.err);
    dir.ok("validate minus.tgm --against plus.npy --max-error 1e-300");
    let lossy = "repack minus.tgm packed.tgm --encoding simple_packing --bits 8";
    dir.refused(lossy, 8, "element 0 would change its sign");
    dir.ok(&format!("{lossy} --lossy"));
    // Also where packing would be exact.
    dir.ok("create small.tgm --from a=minus.npy --max-error 0");
    dir.ok("validate small.tgm --against minus.npy");
}

#[test]
fn shapes_and_types_count() {
    let (dir, values) = dir();
    dir.write("flat.npy", npy::with_header("'<f8'", false, &[1200], values.clone()));
    dir.write("c.npy", npy::with_header("'<c16'", false, &[15, 40], values));
    let floats: Vec<u8> = (0..1200u16).flat_map(|n| f32::from(n).to_le_bytes()).collect();
    dir.write("f4.npy", npy::with_header("'<f4'", false, &[30, 40], floats));
    dir.ok("create t.tgm --from t=t.npy");
    for (args, message) in [
        ("t.tgm --against flat.npy", "the object has shape 30×40, the original 1200"),
        ("t.tgm --against c.npy", "the object has shape 30×40, the original 15×40"),
    ] {
        let result = dir.run(&format!("validate {args} --max-error 1000"));
        assert!(result.code == 1 && result.err.contains(message), "{}", result.err);
    }
    // Widened values are compared after widening; narrowing is not supported.
    dir.ok("create f.tgm --encoding simple_packing --bits 24 --widen --from f=f4.npy");
    dir.ok("validate f.tgm --against f4.npy --max-error 0.001");
    dir.ok("create f.tgm --force --from f=f4.npy");
    dir.ok("validate f.tgm --against f4.npy");
    let result = dir.run("validate f.tgm --against t.npy --max-error 1000");
    assert!(
        result.code == 1 && result.err.contains("the object has dtype float32, the original float64"),
        "{}",
        result.err
    );
}

#[test]
fn non_finite_values_must_be_equal() {
    let (dir, mut values) = dir();
    dir.ok("create finite.tgm --from t=t.npy");
    values[16..24].copy_from_slice(&f64::NAN.to_le_bytes());
    dir.write("nan.npy", npy::with_header("'<f8'", false, &[30, 40], values));
    dir.ok("create a.tgm --allow-nan --compression zstd --from t=nan.npy");
    dir.ok("validate a.tgm --against nan.npy");
    let result = dir.run("validate finite.tgm --against nan.npy --max-error 1000");
    assert!(
        result.code == 1 && result.err.contains("element 2 differs by a non-finite value"),
        "{}",
        result.err
    );
}

#[test]
fn an_invalid_file_is_not_compared() {
    let (dir, _) = dir();
    dir.ok("create a.tgm --from t=t.npy");
    let payload = dir.message("a.tgm", 0).object(0).unwrap().payload_span();
    let mut bytes = dir.read("a.tgm");
    bytes[payload.start() as usize] ^= 1;
    dir.write("a.tgm", &bytes);
    let result = dir.run("validate a.tgm --against t.npy");
    assert_eq!((result.code, result.out.as_str()), (1, ""));
    assert!(result.err.contains("note: a.tgm: validation failed; not compared with t.npy"), "{}", result.err);
}
