//! `repack`, and `copy` with a pipeline: the same values in another encoding.

use serde_json::Value as Json;
use tercet::tgm::precision::deviation;
use tercet::tgm::{self, DType, DataObjectDescriptor, EncodeOptions, GlobalMetadata, Value};

use super::npy::{self, Array};
use super::pipeline::dir as field;
use super::{TestDir, run_command};

/// Three messages in `run.tgm`: a field and integers; a streamed field with NaN; complex numbers.
pub(crate) fn dir() -> TestDir {
    let (dir, mut values) = field();
    values[80..88].copy_from_slice(&f64::NAN.to_le_bytes());
    values[96..104].copy_from_slice(&f64::NEG_INFINITY.to_le_bytes());
    dir.write("nan.npy", npy::with_header("'<f8'", false, &[1200], values));
    dir.write("i.npy", Array::new("i2", 2, &[7, 30]).file(false, false));
    dir.write("c.npy", Array::new("c16", 16, &[20]).file(false, false));
    dir.ok("create run.tgm --from t=t.npy --from i=i.npy --meta mars.step=6");
    dir.ok("create run.tgm --append --stream --allow-nan --allow-inf --from n=nan.npy --meta mars.step=12");
    dir.ok("create run.tgm --append --compression lz4 --from c=c.npy --meta mars.step=18");
    dir
}

/// Every value of a file, decoded.
pub(crate) fn arrays(dir: &TestDir, name: &str) -> Vec<(DType, Vec<u64>, Vec<u8>)> {
    let file = tgm::File::open(dir.path(name)).unwrap();
    let mut all = Vec::new();
    for message in file.messages().unwrap() {
        for array in message.unwrap().decode().unwrap() {
            all.push((array.dtype(), array.shape().to_vec(), array.bytes().to_vec()));
        }
    }
    all
}

/// The user metadata of every message.
pub(crate) fn metadata(dir: &TestDir, name: &str) -> Vec<GlobalMetadata> {
    let file = tgm::File::open(dir.path(name)).unwrap();
    let users = |message: tgm::Message| {
        let mut metadata = message.metadata().clone();
        metadata.reserved.clear();
        metadata.base.iter_mut().for_each(|entry| drop(entry.remove("_reserved_")));
        metadata
    };
    file.messages().unwrap().map(|message| users(message.unwrap())).collect()
}

#[test]
fn values_and_metadata_are_kept() {
    let dir = dir();
    let (before, described) = (arrays(&dir, "run.tgm"), metadata(&dir, "run.tgm"));
    for options in [
        "--compression none",
        "--compression zstd --compression-level 1",
        "--filter shuffle --compression zstd",
        "--compression blosc2",
        "--compression lz4 --threads 1",
        "--max-error 0",
    ] {
        let result = dir.ok(&format!("repack run.tgm out.tgm --force {options}"));
        assert_eq!(result.err, "", "{options}");
        assert!(result.out.starts_with("out.tgm: 3 messages, ") && result.out.ends_with(", max change 0\n"));
        assert!(arrays(&dir, "out.tgm") == before, "{options}");
        dir.ok("validate --full out.tgm");
        if !options.contains("max-error") {
            assert_eq!(metadata(&dir, "out.tgm"), described, "{options}");
        }
    }
    // And the reverse.
    dir.ok("repack out.tgm back.tgm --compression none");
    assert!(arrays(&dir, "back.tgm") == before);
    let file = tgm::File::open(dir.path("back.tgm")).unwrap();
    assert!(
        file.messages().unwrap().all(|message| message.unwrap().layout().unwrap().preamble.total_length > 0)
    );
    // Selected messages only.
    dir.ok("repack -w mars.step=6/18 run.tgm some.tgm --compression zstd");
    assert!(arrays(&dir, "some.tgm") == [&before[..2], &before[3..]].concat());
}

#[test]
fn lossy_changes_need_permission() {
    let dir = dir();
    let pack = "repack run.tgm out.tgm --encoding simple_packing --bits 10";
    dir.refused(pack, 8, "run.tgm: message 0, object 0 (`t`): element ");
    dir.refused(
        pack,
        8,
        "hint: add `--max-error E` to allow changes up to E, or `--lossy` to allow any change",
    );
    dir.refused(
        &format!("{pack} --max-error 0.001"),
        8,
        "; the maximum error is 0.001\n  hint: omit the pipeline options",
    );
    dir.refused(&format!("{pack} --allow-nan=false --lossy"), 8, "object 0 (`n`): element 10 is NaN");
    for allowed in ["--lossy", "--max-error 0.1"] {
        let result = dir.ok(&format!("{pack} --force {allowed}"));
        let notes: Vec<&str> = result.err.lines().collect();
        assert_eq!(notes.len(), 2, "{}", result.err);
        let reason = ": copied unchanged: encoding `simple_packing` requires float64, found";
        assert_eq!(notes[0], format!("note: run.tgm: message 0, object 1 (`i`){reason} int16"));
        assert_eq!(notes[1], format!("note: run.tgm: message 2, object 0 (`c`){reason} complex128"));
        let (before, after) = (arrays(&dir, "run.tgm"), arrays(&dir, "out.tgm"));
        for (number, (before, after)) in before.iter().zip(&after).enumerate() {
            let error = deviation(before.0, &before.2, &after.2).max;
            let is_packed = number % 2 == 0;
            assert!(before.0 == after.0 && (error > 0.0) == is_packed && error <= 0.1, "{number}: {error}");
        }
    }
    dir.refused(&format!("{pack} --force --lossy --strict"), 8, "message 0, object 1 (`i`): encoding");
    let result = dir.ok(&format!("{pack} --force --lossy --widen --strict -w mars.step!=18"));
    assert_eq!(result.err, "");
    assert!(arrays(&dir, "out.tgm").iter().all(|(dtype, ..)| *dtype == DType::F64));
}

/// Library stages that do not apply to an object leave it unchanged as well.
#[test]
fn objects_that_do_not_fit_are_copied_verbatim() {
    let dir = dir();
    let result = dir.ok("repack run.tgm out.tgm --compression szip");
    assert!(
        result.err.contains("message 0, object 0 (`t`): copied unchanged: compression `szip` of float64"),
        "{}",
        result.err
    );
    assert!(arrays(&dir, "out.tgm") == arrays(&dir, "run.tgm"));
    let object = |name: &str| {
        let message = dir.message(name, 1);
        let object = message.object(0).unwrap();
        (object.descriptor().clone(), object.stored().unwrap())
    };
    assert!(object("out.tgm") == object("run.tgm"), "masks and all");
    let message = dir.message("out.tgm", 0);
    assert_eq!(message.object(1).unwrap().descriptor().compression, "szip");
}

#[test]
fn error_bounds_accumulate() {
    let (dir, values) = field();
    dir.ok("create a.tgm --max-error 0.01 --from t=t.npy");
    let precision = |name: &str, key: &str| {
        let message = dir.message(name, 0);
        message.metadata().base[0]["precision"].get(key).unwrap().clone()
    };
    dir.ok("repack a.tgm b.tgm --compression none");
    assert_eq!(precision("b.tgm", "max_error").as_f64(), Some(0.01));
    assert_eq!(precision("b.tgm", "method"), Value::from("none"));
    dir.ok("repack b.tgm c.tgm --max-error 0.1");
    let bound = precision("c.tgm", "max_error").as_f64().unwrap();
    assert!((0.11..0.110_001).contains(&bound), "{bound}");
    dir.ok("repack b.tgm d.tgm --encoding simple_packing --bits 7 --lossy");
    for name in ["c.tgm", "d.tgm"] {
        let error = deviation(DType::F64, &values, &dir.values(name, 0, 0)).max;
        let bounds = ["max_error", "measured"].map(|key| precision(name, key).as_f64().unwrap());
        assert!(error <= bounds[0] && error <= bounds[1], "{name}: {error} {bounds:?}");
        dir.ok(&format!("validate {name} --against t.npy"));
    }
}

#[test]
fn other_precision_parameters_are_kept() {
    let dir = TestDir::new();
    let descriptor = DataObjectDescriptor::new(DType::U8, [3]);
    let mut metadata = GlobalMetadata::default();
    metadata.base.push([("precision".to_owned(), "high".into())].into());
    let bytes = tgm::encode_message(&metadata, &[(&descriptor, &[1, 2, 3])], &EncodeOptions::new());
    dir.write("a.tgm", bytes.unwrap());
    dir.ok("repack a.tgm b.tgm --compression zstd");
    assert_eq!(dir.message("b.tgm", 0).metadata().base[0]["precision"], "high".into());
    let message = "a.tgm: message 0, object 0: metadata key `precision` is already used";
    dir.refused("repack a.tgm c.tgm --max-error 0", 8, message);
}

#[test]
fn user_parameters_are_kept() {
    let dir = TestDir::new();
    let descriptor = DataObjectDescriptor::new(DType::U8, [3]).with_param("quality", 0.5);
    let bytes =
        tgm::encode_message(&GlobalMetadata::default(), &[(&descriptor, &[1, 2, 3])], &EncodeOptions::new());
    dir.write("a.tgm", bytes.unwrap());
    dir.ok("repack a.tgm b.tgm --compression zstd --compression-level 5");
    dir.ok("repack b.tgm c.tgm --compression lz4");
    let message = dir.message("c.tgm", 0);
    let object = message.object(0).unwrap();
    assert_eq!(object.descriptor().params.keys().collect::<Vec<_>>(), ["quality"]);
}

#[test]
fn repack_reports_json() {
    let dir = dir();
    let result = dir.ok("repack run.tgm out.tgm --encoding simple_packing --lossy --json");
    let json: Json = serde_json::from_str(&result.out).unwrap();
    assert_eq!((&json["file"], &json["messages"]), (&"out.tgm".into(), &3.into()));
    assert_eq!((&json["objects_repacked"], &json["objects_copied"]), (&2.into(), &2.into()));
    assert_eq!(json["bytes_before"], dir.read("run.tgm").len());
    assert_eq!(json["bytes_after"], dir.read("out.tgm").len());
    assert!(json["ratio"].as_f64().unwrap() > 1.0 && json["max_change"].as_f64().unwrap() > 0.0);
}

#[test]
fn repack_through_pipes_is_reproducible() {
    let dir = dir();
    let args = "repack run.tgm --reproducible --compression zstd";
    dir.ok(&format!("{args} a.tgm"));
    let piped = dir.ok(&format!("{args} -"));
    assert!(piped.bytes == dir.read("a.tgm"));
    let mut command = dir.command();
    command.args("repack - - --reproducible --compression zstd".split(' ')).write_stdin(dir.read("run.tgm"));
    let through = run_command(&mut command);
    assert_eq!((through.code, through.err.as_str()), (0, ""));
    assert!(through.bytes == piped.bytes);
    dir.refused(
        "repack run.tgm - --compression zstd --json",
        8,
        "cannot write both messages and JSON to standard output",
    );
}

#[test]
fn invalid_repacks_are_rejected() {
    let dir = dir();
    dir.write("old.tgm", "old");
    let mut bad = dir.read("run.tgm");
    let payload = dir.message("run.tgm", 0).object(1).unwrap().payload_span();
    bad[payload.start() as usize] ^= 1;
    dir.write("bad.tgm", &bad);
    for (args, code, message) in [
        ("run.tgm out.tgm", 8, "no encoding, filter or compression given\n  hint: add `--encoding`"),
        ("run.tgm out.tgm --lossy", 8, "no encoding, filter or compression given"),
        ("run.tgm old.tgm --compression zstd", 8, "old.tgm: file exists\n  hint: `--force` replaces it"),
        ("run.tgm run.tgm --compression zstd --force", 8, "run.tgm: input and output"),
        ("bad.tgm out.tgm --compression zstd", 5, "message 0 › object 1"),
        ("run.tgm out.tgm --compression zfp", 8, "hint: add `--zfp-rate R`"),
        ("none.tgm out.tgm --compression zstd", 3, "none.tgm: cannot open"),
        ("run.tgm out.tgm --compression zfp --zfp-tolerance 0", 8, "zfp"),
    ] {
        dir.refused(&format!("repack {args}"), code, message);
    }
    dir.ok("repack bad.tgm out.tgm --compression zstd --ignore-checksums");
}

#[test]
fn copy_repacks_on_request() {
    let dir = dir();
    let before = arrays(&dir, "run.tgm");
    dir.ok("copy run.tgm same.tgm");
    assert!(dir.read("same.tgm") == dir.read("run.tgm"));
    let result = dir.ok("copy run.tgm small.tgm --reproducible --compression zstd --filter shuffle");
    assert!(
        result.out.starts_with("small.tgm: 3 messages, ") && result.out.contains(", ratio "),
        "{}",
        result.out
    );
    assert!(arrays(&dir, "small.tgm") == before);
    dir.ok("repack run.tgm again.tgm --reproducible --compression zstd --filter shuffle");
    assert!(dir.read("small.tgm") == dir.read("again.tgm"));
    let piped = dir.ok("copy run.tgm - --reproducible --compression zstd --filter shuffle");
    assert!(piped.bytes == dir.read("again.tgm"));
    let result = dir.ok("copy run.tgm step_[mars.step].tgm --compression zstd");
    assert_eq!(result.out.lines().count(), 3, "{}", result.out);
    assert!(arrays(&dir, "step_12.tgm") == before[2..3]);
    let args = "copy run.tgm x.tgm --encoding simple_packing --bits 4";
    dir.refused(args, 8, "would change by");
    dir.ok(&format!("{args} --lossy"));
    for option in ["--lossy", "--strict", "--reproducible"] {
        let message = format!("`{option}` requires a pipeline option");
        dir.refused(&format!("copy run.tgm y.tgm {option}"), 8, &message);
    }
}

/// A file of some hundred bytes declares a constant array of 640 MB. Repacking would hold it twice.
#[test]
fn repacking_a_small_file_respects_the_memory_limit() {
    let dir = TestDir::new();
    let descriptor = tgm::DataObjectDescriptor::new(DType::F64, [80_000_000])
        .with_encoding("simple_packing")
        .with_param("sp_bits_per_value", 0)
        .with_param("sp_reference_value", 1.5)
        .with_param("sp_binary_scale_factor", 0)
        .with_param("sp_decimal_scale_factor", 0);
    let object = tgm::PreEncoded { descriptor: &descriptor, payload: &[] };
    let options = tgm::EncodeOptions::new();
    let bytes = tgm::encode_pre_encoded(&tgm::GlobalMetadata::default(), &[object], &options).unwrap();
    assert!(bytes.len() < 1000);
    dir.write("small.tgm", bytes);
    for verb in ["repack", "copy"] {
        let args = format!("{verb} small.tgm out.tgm --compression zstd");
        dir.refused(&args, 6, "repacking an array needs 1280000000 bytes, but the limit is 1073741824");
    }
}

/// The former name of the verb, for scripts.
#[test]
fn recode_is_an_alias() {
    let dir = TestDir::new();
    let descriptor = DataObjectDescriptor::new(DType::U8, [3]);
    let object: &[u8] = &[1, 2, 3];
    let bytes =
        tgm::encode_message(&GlobalMetadata::default(), &[(&descriptor, object)], &EncodeOptions::new());
    dir.write("a.tgm", bytes.unwrap());
    dir.ok("recode a.tgm b.tgm --compression zstd --reproducible");
    dir.ok("repack a.tgm c.tgm --compression zstd --reproducible");
    assert_eq!(dir.read("b.tgm"), dir.read("c.tgm"));
}
