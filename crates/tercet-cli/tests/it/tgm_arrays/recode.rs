//! `recode`, and `copy` with a pipeline: the same values, stored in another way.

use serde_json::Value as Json;
use tercet::tgm::precision::deviation;
use tercet::tgm::{self, DType, DataObjectDescriptor, EncodeOptions, GlobalMetadata, Value};

use super::npy::{self, Array};
use super::pipeline::folder as field;
use super::{Folder, said};

/// Three messages in `run.tgm`: a field and integers; a streamed field with NaN; complex numbers.
pub(crate) fn folder() -> Folder {
    let (folder, mut values) = field();
    values[80..88].copy_from_slice(&f64::NAN.to_le_bytes());
    values[96..104].copy_from_slice(&f64::NEG_INFINITY.to_le_bytes());
    folder.write("nan.npy", npy::with_header("'<f8'", false, &[1200], values));
    folder.write("i.npy", Array::new("i2", 2, &[7, 30]).file(false, false));
    folder.write("c.npy", Array::new("c16", 16, &[20]).file(false, false));
    folder.ok("create run.tgm --from t=t.npy --from i=i.npy --meta mars.step=6");
    folder
        .ok("create run.tgm --append --stream --allow-nan --allow-inf --from n=nan.npy --meta mars.step=12");
    folder.ok("create run.tgm --append --compression lz4 --from c=c.npy --meta mars.step=18");
    folder
}

/// Every value of a file, decoded.
pub(crate) fn arrays(folder: &Folder, name: &str) -> Vec<(DType, Vec<u64>, Vec<u8>)> {
    let file = tgm::File::open(folder.path(name)).unwrap();
    let mut all = Vec::new();
    for message in file.messages().unwrap() {
        for array in message.unwrap().decode().unwrap() {
            all.push((array.dtype(), array.shape().to_vec(), array.bytes().to_vec()));
        }
    }
    all
}

/// The metadata of every message that the user wrote.
pub(crate) fn metadata(folder: &Folder, name: &str) -> Vec<GlobalMetadata> {
    let file = tgm::File::open(folder.path(name)).unwrap();
    let users = |message: tgm::Message| {
        let mut metadata = message.metadata().clone();
        metadata.reserved.clear();
        metadata.base.iter_mut().for_each(|entry| drop(entry.remove("_reserved_")));
        metadata
    };
    file.messages().unwrap().map(|message| users(message.unwrap())).collect()
}

#[test]
fn values_and_metadata_stay() {
    let folder = folder();
    let (before, described) = (arrays(&folder, "run.tgm"), metadata(&folder, "run.tgm"));
    for options in [
        "--compression none",
        "--compression zstd --compression-level 1",
        "--filter shuffle --compression zstd",
        "--compression blosc2",
        "--compression lz4 --threads 1",
        "--max-error 0",
    ] {
        let said = folder.ok(&format!("recode run.tgm out.tgm --force {options}"));
        assert_eq!(said.err, "", "{options}");
        assert!(said.out.starts_with("out.tgm: 3 messages, ") && said.out.ends_with(", max change 0\n"));
        assert!(arrays(&folder, "out.tgm") == before, "{options}");
        folder.ok("validate --full out.tgm");
        if !options.contains("max-error") {
            assert_eq!(metadata(&folder, "out.tgm"), described, "{options}");
        }
    }
    // And back.
    folder.ok("recode out.tgm back.tgm --compression none");
    assert!(arrays(&folder, "back.tgm") == before);
    let file = tgm::File::open(folder.path("back.tgm")).unwrap();
    assert!(
        file.messages().unwrap().all(|message| message.unwrap().layout().unwrap().preamble.total_length > 0)
    );
    // Only these messages.
    folder.ok("recode -w mars.step=6/18 run.tgm some.tgm --compression zstd");
    assert!(arrays(&folder, "some.tgm") == [&before[..2], &before[3..]].concat());
}

#[test]
fn a_change_is_an_error_unless_it_is_allowed() {
    let folder = folder();
    let pack = "recode run.tgm out.tgm --encoding simple_packing --bits 10";
    folder.refused(pack, 8, "run.tgm: message 0, object 0 (`t`): element ");
    folder.refused(
        pack,
        8,
        "hint: add `--max-error E` to allow changes up to E, or `--lossy` to allow any change",
    );
    folder.refused(
        &format!("{pack} --max-error 0.001"),
        8,
        "; the maximum error is 0.001\n  hint: omit the pipeline options",
    );
    folder.refused(&format!("{pack} --allow-nan=false --lossy"), 8, "object 0 (`n`): element 10 is NaN");
    for allowed in ["--lossy", "--max-error 0.1"] {
        let said = folder.ok(&format!("{pack} --force {allowed}"));
        let notes: Vec<&str> = said.err.lines().collect();
        assert_eq!(notes.len(), 2, "{}", said.err);
        let reason = ": copied unchanged: encoding `simple_packing` requires float64, found";
        assert_eq!(notes[0], format!("note: run.tgm: message 0, object 1 (`i`){reason} int16"));
        assert_eq!(notes[1], format!("note: run.tgm: message 2, object 0 (`c`){reason} complex128"));
        let (before, after) = (arrays(&folder, "run.tgm"), arrays(&folder, "out.tgm"));
        for (number, (before, after)) in before.iter().zip(&after).enumerate() {
            let error = deviation(before.0, &before.2, &after.2).largest;
            let is_packed = number % 2 == 0;
            assert!(before.0 == after.0 && (error > 0.0) == is_packed && error <= 0.1, "{number}: {error}");
        }
    }
    folder.refused(&format!("{pack} --force --lossy --strict"), 8, "message 0, object 1 (`i`): encoding");
    let said = folder.ok(&format!("{pack} --force --lossy --widen --strict -w mars.step!=18"));
    assert_eq!(said.err, "");
    assert!(arrays(&folder, "out.tgm").iter().all(|(dtype, ..)| *dtype == DType::F64));
}

/// The stages of the library that do not go with an object leave it alone too.
#[test]
fn what_does_not_fit_is_copied_with_all_its_bytes() {
    let folder = folder();
    let said = folder.ok("recode run.tgm out.tgm --compression szip");
    assert!(
        said.err.contains("message 0, object 0 (`t`): copied unchanged: compression `szip` of float64"),
        "{}",
        said.err
    );
    assert!(arrays(&folder, "out.tgm") == arrays(&folder, "run.tgm"));
    let object = |name: &str| {
        let message = folder.message(name, 1);
        let object = message.object(0).unwrap();
        (object.descriptor().clone(), object.stored().unwrap())
    };
    assert!(object("out.tgm") == object("run.tgm"), "masks and all");
    let message = folder.message("out.tgm", 0);
    assert_eq!(message.object(1).unwrap().descriptor().compression, "szip");
}

#[test]
fn bounds_add_up() {
    let (folder, values) = field();
    folder.ok("create a.tgm --max-error 0.01 --from t=t.npy");
    let precision = |name: &str, key: &str| {
        let message = folder.message(name, 0);
        message.metadata().base[0]["precision"].get(key).unwrap().clone()
    };
    folder.ok("recode a.tgm b.tgm --compression none");
    assert_eq!(precision("b.tgm", "max_error").as_f64(), Some(0.01));
    assert_eq!(precision("b.tgm", "method"), Value::from("none"));
    folder.ok("recode b.tgm c.tgm --max-error 0.1");
    let bound = precision("c.tgm", "max_error").as_f64().unwrap();
    assert!((0.11..0.110_001).contains(&bound), "{bound}");
    folder.ok("recode b.tgm d.tgm --encoding simple_packing --bits 7 --lossy");
    for name in ["c.tgm", "d.tgm"] {
        let error = deviation(DType::F64, &values, &folder.values(name, 0, 0)).largest;
        let said = ["max_error", "measured"].map(|key| precision(name, key).as_f64().unwrap());
        assert!(error <= said[0] && error <= said[1], "{name}: {error} {said:?}");
        folder.ok(&format!("validate {name} --against t.npy"));
    }
}

#[test]
fn what_others_mean_by_precision_stays() {
    let folder = Folder::new();
    let descriptor = DataObjectDescriptor::new(DType::U8, [3]);
    let mut metadata = GlobalMetadata::default();
    metadata.base.push([("precision".to_owned(), "high".into())].into());
    let bytes = tgm::encode_message(&metadata, &[(&descriptor, &[1, 2, 3])], &EncodeOptions::new());
    folder.write("a.tgm", bytes.unwrap());
    folder.ok("recode a.tgm b.tgm --compression zstd");
    assert_eq!(folder.message("b.tgm", 0).metadata().base[0]["precision"], "high".into());
    let message = "a.tgm: message 0, object 0: metadata key `precision` is already used";
    folder.refused("recode a.tgm c.tgm --max-error 0", 8, message);
}

#[test]
fn user_parameters_are_kept() {
    let folder = Folder::new();
    let descriptor = DataObjectDescriptor::new(DType::U8, [3]).with_param("quality", 0.5);
    let bytes =
        tgm::encode_message(&GlobalMetadata::default(), &[(&descriptor, &[1, 2, 3])], &EncodeOptions::new());
    folder.write("a.tgm", bytes.unwrap());
    folder.ok("recode a.tgm b.tgm --compression zstd --compression-level 5");
    folder.ok("recode b.tgm c.tgm --compression lz4");
    let message = folder.message("c.tgm", 0);
    let object = message.object(0).unwrap();
    assert_eq!(object.descriptor().params.keys().collect::<Vec<_>>(), ["quality"]);
}

#[test]
fn it_is_told_to_programs_too() {
    let folder = folder();
    let said = folder.ok("recode run.tgm out.tgm --encoding simple_packing --lossy --json");
    let told: Json = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&told["file"], &told["messages"]), (&"out.tgm".into(), &3.into()));
    assert_eq!((&told["objects_recoded"], &told["objects_copied"]), (&2.into(), &2.into()));
    assert_eq!(told["bytes_before"], folder.read("run.tgm").len());
    assert_eq!(told["bytes_after"], folder.read("out.tgm").len());
    assert!(told["ratio"].as_f64().unwrap() > 1.0 && told["largest_change"].as_f64().unwrap() > 0.0);
}

#[test]
fn pipes_and_equal_bytes() {
    let folder = folder();
    let words = "recode run.tgm --reproducible --compression zstd";
    folder.ok(&format!("{words} a.tgm"));
    let piped = folder.ok(&format!("{words} -"));
    assert!(piped.bytes == folder.read("a.tgm"));
    let mut command = folder.command();
    command
        .args("recode - - --reproducible --compression zstd".split(' '))
        .write_stdin(folder.read("run.tgm"));
    let through = said(&mut command);
    assert_eq!((through.code, through.err.as_str()), (0, ""));
    assert!(through.bytes == piped.bytes);
    folder.refused(
        "recode run.tgm - --compression zstd --json",
        8,
        "cannot write both messages and JSON to standard output",
    );
}

#[test]
fn nothing_is_done_unasked() {
    let folder = folder();
    folder.write("old.tgm", "old");
    let mut bad = folder.read("run.tgm");
    let payload = folder.message("run.tgm", 0).object(1).unwrap().payload_span();
    bad[payload.start() as usize] ^= 1;
    folder.write("bad.tgm", &bad);
    for (words, code, message) in [
        ("run.tgm out.tgm", 8, "no pipeline given\n  hint: add `--encoding`"),
        ("run.tgm out.tgm --lossy", 8, "no pipeline given"),
        ("run.tgm old.tgm --compression zstd", 8, "old.tgm: file exists\n  hint: `--force` replaces it"),
        ("run.tgm run.tgm --compression zstd --force", 8, "run.tgm: input and output"),
        ("bad.tgm out.tgm --compression zstd", 5, "message 0 › object 1"),
        ("run.tgm out.tgm --compression zfp", 8, "hint: add `--zfp-rate R`"),
        ("none.tgm out.tgm --compression zstd", 3, "none.tgm: cannot open"),
        ("run.tgm out.tgm --compression zfp --zfp-tolerance 0", 8, "zfp"),
    ] {
        folder.refused(&format!("recode {words}"), code, message);
    }
    folder.ok("recode bad.tgm out.tgm --compression zstd --ignore-checksums");
}

#[test]
fn copy_recodes_if_it_is_told_how() {
    let folder = folder();
    let before = arrays(&folder, "run.tgm");
    folder.ok("copy run.tgm same.tgm");
    assert!(folder.read("same.tgm") == folder.read("run.tgm"));
    let said = folder.ok("copy run.tgm small.tgm --reproducible --compression zstd --filter shuffle");
    assert!(said.out.starts_with("small.tgm: 3 messages, ") && said.out.contains(", ratio "), "{}", said.out);
    assert!(arrays(&folder, "small.tgm") == before);
    folder.ok("recode run.tgm again.tgm --reproducible --compression zstd --filter shuffle");
    assert!(folder.read("small.tgm") == folder.read("again.tgm"));
    let piped = folder.ok("copy run.tgm - --reproducible --compression zstd --filter shuffle");
    assert!(piped.bytes == folder.read("again.tgm"));
    let said = folder.ok("copy run.tgm step_[mars.step].tgm --compression zstd");
    assert_eq!(said.out.lines().count(), 3, "{}", said.out);
    assert!(arrays(&folder, "step_12.tgm") == before[2..3]);
    let words = "copy run.tgm x.tgm --encoding simple_packing --bits 4";
    folder.refused(words, 8, "would change by");
    folder.ok(&format!("{words} --lossy"));
    for option in ["--lossy", "--strict", "--reproducible"] {
        let message = format!("`{option}` requires a pipeline option");
        folder.refused(&format!("copy run.tgm y.tgm {option}"), 8, &message);
    }
}
