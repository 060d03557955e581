//! `create` with a pipeline: every stage, its options, and invalid options.

use tercet::tgm::precision::deviation;
use tercet::tgm::{DType, Value};

use super::TestDir;
use super::npy::{self, Array, TYPES};

/// A smooth field of float64 values.
fn field(len: u32) -> Vec<u8> {
    (0..len).flat_map(|n| (280.0 + 20.0 * (f64::from(n) / 40.0).sin()).to_le_bytes()).collect()
}

/// A directory with `t.npy`, a field of 30×40 float64 values.
pub(crate) fn dir() -> (TestDir, Vec<u8>) {
    let dir = TestDir::new();
    let values = field(1200);
    dir.write("t.npy", npy::with_header("'<f8'", false, &[30, 40], values.clone()));
    (dir, values)
}

/// A descriptor parameter of the first object, printed.
fn param(dir: &TestDir, key: &str) -> Option<String> {
    let message = dir.message("a.tgm", 0);
    let object = message.object(0).unwrap();
    object.descriptor().params.get(key).map(Value::printed)
}

#[test]
fn every_pipeline_round_trips() {
    let (dir, values) = dir();
    let packed = 20.0 * 2.0 / 65535.0;
    for (options, bound) in [
        ("--compression none", 0.0),
        ("--compression zstd", 0.0),
        ("--compression zstd --compression-level -5", 0.0),
        ("--compression lz4", 0.0),
        ("--compression blosc2", 0.0),
        ("--filter shuffle", 0.0),
        ("--filter shuffle --compression zstd --compression-level 19", 0.0),
        ("--filter shuffle --compression lz4", 0.0),
        ("--filter shuffle --compression blosc2", 0.0),
        ("--filter shuffle --compression szip", 0.0),
        ("--encoding simple_packing", packed),
        ("--encoding simple_packing --bits 12", 0.02),
        ("--encoding simple_packing --bits 24 --decimal-scale 2", packed),
        ("--encoding simple_packing --bits 24 --compression szip", packed),
        (
            "--encoding simple_packing --compression szip --szip-rsi 7 --szip-block-size 32 --szip-flags 0",
            packed,
        ),
        ("--encoding simple_packing --filter shuffle --compression zstd", packed),
        ("--encoding simple_packing --compression blosc2 --compression-level 9", packed),
        ("--compression zfp --zfp-rate 40", 0.001),
        ("--compression zfp --zfp-precision 50", 0.001),
        ("--compression zfp --zfp-tolerance 0.01", 0.01),
        ("--max-error 0.01", 0.01),
        ("--max-error 0", 0.0),
        ("--encoding simple_packing --max-error 0.01", 0.01),
    ] {
        for mode in ["", "--stream"] {
            let args = format!("create a.tgm --force {mode} {options} --from t=t.npy");
            assert_eq!(dir.ok(&args).err, "", "{args}");
            dir.ok("validate --full a.tgm");
            let found = dir.ok("extract a.tgm 0 -o -").bytes;
            let error = deviation(DType::F64, &values, &found).max;
            assert!(error <= bound, "{args}: {error}");
        }
    }
    for codec in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"] {
        dir.ok(&format!("create a.tgm --force --compression blosc2 --blosc2-codec {codec} --from t=t.npy"));
        assert_eq!(param(&dir, "blosc2_codec").as_deref(), Some(codec));
        assert!(dir.ok("extract a.tgm 0 -o -").bytes == values, "{codec}");
    }
}

#[test]
fn every_type_round_trips_through_general_codecs() {
    let dir = TestDir::new();
    for (kind, size, dtype) in TYPES {
        let array = Array::new(kind, size, &[6, 50]);
        dir.write("a.npy", array.file(true, true));
        for options in [
            "--compression zstd",
            "--compression lz4",
            "--compression blosc2",
            "--filter shuffle --compression zstd",
            "--max-error 0",
        ] {
            dir.ok(&format!("create a.tgm --force {options} --from a=a.npy"));
            assert!(dir.ok("extract a.tgm 0 -o -").bytes == array.values(), "{dtype} {options}");
        }
    }
    for (kind, size, flags) in
        [("u1", 1, "8"), ("i1", 1, "9"), ("i2", 2, "9"), ("u4", 4, "8"), ("i4", 4, "9")]
    {
        let array = Array::new(kind, size, &[300]);
        dir.write("a.npy", array.file(false, false));
        dir.ok("create a.tgm --force --compression szip --from a=a.npy");
        assert_eq!(param(&dir, "szip_flags").as_deref(), Some(flags), "{kind}");
        assert!(dir.ok("extract a.tgm 0 -o -").bytes == array.values(), "{kind}");
    }
}

#[test]
fn format_defaults_are_written() {
    let (dir, _) = dir();
    dir.ok("create a.tgm --encoding simple_packing --compression szip --from t=t.npy");
    for (key, value) in [
        ("sp_bits_per_value", "16"),
        ("sp_decimal_scale_factor", "0"),
        ("szip_rsi", "128"),
        ("szip_block_size", "16"),
        ("szip_flags", "8"),
    ] {
        assert_eq!(param(&dir, key).as_deref(), Some(value), "{key}");
    }
    dir.ok("create a.tgm --force --compression blosc2 --from t=t.npy");
    assert_eq!(param(&dir, "blosc2_codec").as_deref(), Some("lz4"));
    assert_eq!(param(&dir, "blosc2_clevel").as_deref(), Some("5"));
    dir.ok("create a.tgm --force --compression zstd --from t=t.npy");
    assert_eq!(param(&dir, "zstd_level"), None);
    dir.ok("create a.tgm --force --compression zstd --compression-level 7 --from t=t.npy");
    assert_eq!(param(&dir, "zstd_level").as_deref(), Some("7"));
    dir.ok("create a.tgm --force --filter shuffle --from t=t.npy");
    assert_eq!(param(&dir, "shuffle_element_size").as_deref(), Some("8"));
    dir.ok("create a.tgm --force --encoding simple_packing --bits 24 --filter shuffle --from t=t.npy");
    assert_eq!(param(&dir, "shuffle_element_size").as_deref(), Some("3"));
}

#[test]
fn the_level_may_follow_the_codec() {
    let dir = TestDir::new();
    dir.write("t.npy", Array::new("f8", 8, &[40, 50]).file(false, false));
    let made = |options: &str| {
        dir.ok(&format!("create out.tgm --reproducible --from t=t.npy {options} --force"));
        dir.read("out.tgm")
    };
    for codec in ["zstd", "blosc2"] {
        let same = made(&format!("--compression {codec}:7"));
        assert!(same == made(&format!("--compression {codec} --compression-level 7")), "{codec}");
        assert!(same != made(&format!("--compression {codec}")), "{codec}");
    }
}

#[test]
fn the_pipeline_is_reported() {
    let (dir, _) = dir();
    let result = dir.ok("create a.tgm --reproducible --encoding simple_packing --bits 8 --from t=t.npy");
    insta::assert_snapshot!(result.out, @r"
    a.tgm: message 0 with 1 object, 1.7 KiB
      t: simple_packing 8 bits, 1.2 KiB, ratio 8.00
    ");
    let result = dir.ok("create b.tgm --reproducible --max-error 0.1 --from t=t.npy");
    let smallest = if cfg!(feature = "sz3") { "sz3" } else { "simple_packing" };
    assert!(result.out.contains(&format!("\n  t: {smallest} ")), "{}", result.out);
    assert!(result.out.contains(", max error 0.0"), "{}", result.out);
    let message = dir.message("b.tgm", 0);
    let precision = &message.metadata().base[0]["precision"];
    assert_eq!(precision.get("max_error").unwrap().as_f64(), Some(0.1));
    assert!(precision.get("measured").unwrap().as_f64().unwrap() <= 0.1);
    assert!(precision.get("method").unwrap().as_text().unwrap().starts_with(smallest));
    let plain = dir.ok("create c.tgm --from t=t.npy");
    assert_eq!(plain.out.lines().count(), 1, "{}", plain.out);
}

#[test]
fn other_types_are_converted_to_float64_on_request() {
    let dir = TestDir::new();
    for (descr, dtype, values) in [
        ("'<f4'", "float32", [1.5f32, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>()),
        ("'<f2'", "float16", vec![0, 0x3e, 0, 0xc0]),
        ("'<i2'", "int16", vec![1, 0, 0xfe, 0xff]),
        ("'|u1'", "uint8", vec![1, 2]),
        ("'<i8'", "int64", [1i64, -2].iter().flat_map(|v| v.to_le_bytes()).collect()),
    ] {
        dir.write("a.npy", npy::with_header(descr, false, &[2], values));
        for options in ["--encoding simple_packing", "--compression zfp --zfp-rate 64", "--max-error 0.1"] {
            let args = format!("create a.tgm --force {options} --from a=a.npy");
            if options != "--max-error 0.1" {
                let hint = "hint: add `--widen` to convert to float64 if exact";
                dir.refused(&args, 8, &format!("requires float64, found {dtype}\n  {hint}"));
            }
            let result = dir.ok(&format!("{args} --widen"));
            assert_eq!(result.err, format!("note: a.npy: {dtype} stored as float64\n"), "{args}");
            assert_eq!(dir.message("a.tgm", 0).object(0).unwrap().descriptor().dtype, DType::F64);
        }
        // Types that need no conversion are not converted.
        dir.ok("create a.tgm --force --compression zstd --widen --from a=a.npy");
        let message = dir.message("a.tgm", 0);
        assert_eq!(message.object(0).unwrap().descriptor().dtype.name(), dtype);
    }
    let large = [1i64, (1 << 53) + 1].iter().flat_map(|v| v.to_le_bytes()).collect();
    dir.write("a.npy", npy::with_header("'<i8'", false, &[2], large));
    let args = "create x.tgm --encoding simple_packing --widen --from a=a.npy";
    let result = dir.run(args);
    assert_eq!(result.code, 8);
    assert!(result.err.contains("`a` from a.npy: element 1 has no exact float64 value"), "{}", result.err);
    dir.write("a.npy", Array::new("c8", 8, &[3]).file(false, false));
    dir.refused(args, 8, "`a` from a.npy: encoding `simple_packing` requires float64, found complex64");
}

#[test]
fn invalid_options_are_rejected() {
    let (dir, _) = dir();
    dir.write("i.npy", Array::new("i4", 4, &[3]).file(false, false));
    dir.write(
        "big.npy",
        npy::with_header(
            "'<f8'",
            false,
            &[2],
            [f64::MAX, -f64::MAX].iter().flat_map(|v| v.to_le_bytes()).collect(),
        ),
    );
    for (options, code, message) in [
        ("--bits 8", 8, "`--bits` applies to packed values only\n  hint: add `--encoding simple_packing`"),
        ("--encoding none --decimal-scale 2", 8, "`--decimal-scale` applies to packed values only"),
        ("--compression-level 3", 8, "`--compression-level` applies to `zstd` and `blosc2` only"),
        ("--compression szip --compression-level 3", 8, "`szip` has no levels"),
        ("--compression lz4:3", 8, "`lz4` has no levels"),
        ("--compression none:3", 8, "`none` has no levels"),
        ("--compression zstd:3 --compression-level 3", 8, "the compression level is given twice"),
        ("--compression zstd:high", 2, "invalid level `high`"),
        ("--compression gzip", 2, "invalid value 'gzip'"),
        ("--compression blosc2:10", 8, "invalid level 10 of `blosc2`"),
        ("--compression blosc2 --compression-level 10", 8, "invalid level 10 of `blosc2`"),
        (
            "--blosc2-codec zstd",
            8,
            "`--blosc2-codec` applies to `blosc2` only\n  hint: add `--compression blosc2`",
        ),
        ("--compression zstd --szip-rsi 9", 8, "`--szip-rsi` applies to `szip` only"),
        ("--szip-block-size 8", 8, "`--szip-block-size` applies to `szip` only"),
        ("--szip-flags 8", 8, "`--szip-flags` applies to `szip` only"),
        ("--compression zfp", 8, "hint: add `--zfp-rate R`, `--zfp-precision P` or `--zfp-tolerance T`"),
        ("--zfp-rate 8", 8, "`--zfp-rate` applies to `zfp` only"),
        ("--compression sz3", 8, "hint: add `--sz3-bound B`"),
        ("--sz3-mode abs", 8, "`--sz3-mode` applies to `sz3` only"),
        ("--compression rle", 8, "`t` from t.npy: compression `rle` requires bitmask, found float64"),
        ("--compression roaring", 8, "compression `roaring` requires bitmask, found float64"),
        ("--compression szip", 8, "`t` from t.npy: compression `szip` of float64 values is not defined"),
        ("--encoding simple_packing --bits 12 --compression szip", 8, "would lose their high bits"),
        (
            "--encoding simple_packing --bits 12 --filter shuffle",
            8,
            "packed values have 12 bits\n  hint: use `--bits 16`",
        ),
        (
            "--encoding simple_packing --bits 0 --filter shuffle",
            8,
            "packed values have 0 bits\n  hint: use `--bits 8`",
        ),
        ("--encoding simple_packing --compression zfp --zfp-rate 8", 8, "would take its bytes for numbers"),
        (
            "--encoding simple_packing --bits 4 --max-error 0.01",
            8,
            "the maximum error is 0.01\n  hint: omit the pipeline options",
        ),
        (
            "--encoding simple_packing --from i=i.npy",
            8,
            "`i` from i.npy: encoding `simple_packing` requires float64",
        ),
        ("--encoding simple_packing --from b=big.npy", 8, "`b` from big.npy: "),
        ("--encoding simple_packing --bits 65", 2, "65 is not in 0..=64"),
        ("--encoding packed", 2, "possible values: none, simple_packing"),
        ("--compression gzip", 2, "possible values: none, szip, zstd"),
        ("--compression zfp --zfp-rate 8 --zfp-precision 9", 2, "cannot be used with"),
        ("--max-error -1", 2, "expected a non-negative number"),
        ("--compression zfp --zfp-tolerance 0", 8, "zfp"),
        ("--compression zfp --zfp-rate -3", 8, "zfp"),
        ("--max-error=nan", 2, "expected a non-negative number"),
    ] {
        for mode in ["", "--stream"] {
            dir.refused(&format!("create x.tgm {mode} --from t=t.npy {options}"), code, message);
        }
    }
}

/// The bytes do not depend on the number of threads, for formats that guarantee it.
#[test]
fn bytes_do_not_depend_on_threads() {
    let (dir, _) = dir();
    for options in ["--encoding simple_packing --compression szip", "--filter shuffle --compression lz4"] {
        for threads in ["1", "2", "0"] {
            dir.ok(&format!(
                "--threads {threads} create {threads}.tgm --force --reproducible {options} --from t=t.npy"
            ));
        }
        assert!(dir.read("1.tgm") == dir.read("2.tgm") && dir.read("0.tgm") == dir.read("2.tgm"));
    }
    dir.refused("create x.tgm --threads many --from t=t.npy", 2, "invalid value 'many'");
}
