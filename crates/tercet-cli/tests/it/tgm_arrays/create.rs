use tercet::tgm::{self, FrameKind, Value};

use super::npy::{self, Array, SHAPES, TYPES};
use super::{TestDir, run_command};

/// Whether the preamble of the first message announces hashes.
fn has_hashes(dir: &TestDir, name: &str) -> bool {
    dir.message(name, 0).object(0).unwrap().frame().hash().is_some()
}

#[test]
fn every_array_is_stored_row_major_and_little_endian() {
    let dir = TestDir::new();
    for (kind, size, dtype) in TYPES {
        for shape in SHAPES {
            let array = Array::new(kind, size, shape);
            dir.write("plain.npy", array.file(false, false));
            dir.write("turned.npy", array.file(true, true));
            for mode in ["", "--stream"] {
                let args = format!("create a.tgm --force {mode} --from a=plain.npy --from b=turned.npy");
                assert_eq!(dir.ok(&args).err, "", "{kind} {shape:?}");
                let message = dir.message("a.tgm", 0);
                assert_eq!(message.object_count(), 2);
                for (object, name) in message.objects().zip(["a", "b"]) {
                    let object = object.unwrap();
                    let descriptor = object.descriptor();
                    assert_eq!((descriptor.dtype.name(), &descriptor.shape[..]), (dtype, shape));
                    assert_eq!(descriptor.stored_order(), tgm::ByteOrder::Little);
                    assert_eq!(object.decode().unwrap().bytes(), array.values(), "{kind} {shape:?} {name}");
                    let entry = &message.metadata().base[object.index() as usize];
                    assert_eq!(entry["name"], name.into());
                }
            }
        }
    }
}

#[test]
fn bools_are_stored_as_uint8_with_a_note() {
    let dir = TestDir::new();
    dir.write("b.npy", npy::with_header("'|b1'", true, &[2, 2], vec![1, 0, 7, 0]));
    let result = dir.ok("create a.tgm --from a=b.npy");
    insta::assert_snapshot!(result.err, @"note: b.npy: bool stored as uint8");
    insta::assert_snapshot!(result.out, @"a.tgm: message 0 with 1 object, 560 B");
    assert_eq!(dir.values("a.tgm", 0, 0), [1, 1, 0, 0]);
}

#[test]
fn bools_become_bits_for_bit_codecs() {
    let dir = TestDir::new();
    dir.write("b.npy", npy::with_header("'|b1'", false, &[3, 3], vec![1, 0, 7, 0, 0, 0, 0, 1, 1]));
    for codec in ["rle", "roaring"] {
        let result = dir.ok(&format!("create a.tgm --force --from a=b.npy --compression {codec}"));
        assert_eq!(result.err, "");
        let message = dir.message("a.tgm", 0);
        let object = message.object(0).unwrap();
        assert_eq!(
            (object.descriptor().dtype, &object.descriptor().shape[..]),
            (tgm::DType::Bitmask, &[3, 3][..])
        );
        assert_eq!(dir.values("a.tgm", 0, 0), [0b1010_0001, 0b1000_0000]);
    }
}

#[test]
fn packing_to_zero_bits_is_reported() {
    let dir = TestDir::new();
    let values = (0..4).flat_map(|n| f64::from(n).to_le_bytes()).collect();
    dir.write("a.npy", npy::with_header("'<f8'", false, &[4], values));
    let result = dir.ok("create a.tgm --from a=a.npy --encoding simple_packing --bits 0");
    assert_eq!(result.err, "note: a.npy: 0 bits store the first value in place of all values\n");
}

#[test]
fn zfp_tolerances_hold_or_are_rejected() {
    let dir = TestDir::new();
    let values = [1e20, 0.5, -0.25, 3.0].iter().flat_map(|n: &f64| n.to_le_bytes()).collect();
    dir.write("a.npy", npy::with_header("'<f8'", false, &[4], values));
    let expected = "value 1 is 0.5, but would decode to 0: neighbouring values are too large";
    dir.refused("create a.tgm --from a=a.npy --compression zfp --zfp-tolerance 0.001", 8, expected);
    let values = [1.0, f64::MAX].iter().flat_map(|n: &f64| n.to_le_bytes()).collect();
    dir.write("b.npy", npy::with_header("'<f8'", false, &[2], values));
    dir.refused("create a.tgm --from a=b.npy --compression zfp --zfp-rate 13.5", 8, "would decode to inf");
}

#[test]
fn metadata_is_written_where_readers_look() {
    let dir = TestDir::new();
    dir.write("a.npy", Array::new("u1", 1, &[3]).file(false, false));
    for mode in ["", "--stream"] {
        dir.ok(&format!(
            "create a.tgm --force {mode} --from t=a.npy --meta mars.step=6 --meta mars.param=2t --meta ok=true \
             --meta levels=[1000,850.5] --meta id=\"7\""
        ));
        let message = dir.message("a.tgm", 0);
        // A reader that stops at the first frame finds it as well.
        for metadata in [message.metadata(), message.first_metadata()] {
            assert_eq!(
                Value::from(metadata.extra.clone()).printed(),
                r#"{"id":"7","levels":[1000,850.5],"mars":{"step":6,"param":"2t"},"ok":true}"#
            );
            assert_eq!(metadata.base[0]["name"], "t".into());
        }
        assert!(message.metadata().base[0].contains_key("_reserved_"));
        let reserved = Value::from(message.metadata().reserved.clone()).printed();
        assert!(
            reserved.contains("\"time\":\"2023-11-14T22:13:20Z\"") && reserved.contains("tercet"),
            "{reserved}"
        );
    }
}

#[test]
fn reproducible_output_has_equal_bytes() {
    let dir = TestDir::new();
    dir.write("a.npy", Array::new("f4", 4, &[5]).file(false, false));
    for mode in ["", "--stream"] {
        for name in ["1.tgm", "2.tgm"] {
            dir.ok(&format!("create {name} --force --reproducible {mode} --from a=a.npy"));
        }
        assert!(dir.read("1.tgm") == dir.read("2.tgm"));
        assert!(dir.message("1.tgm", 0).metadata().reserved.is_empty());
        dir.ok(&format!("create 2.tgm --force {mode} --from a=a.npy"));
        assert!(dir.read("1.tgm") != dir.read("2.tgm"));
    }
}

#[test]
fn hashes_are_written_by_default() {
    let dir = TestDir::new();
    dir.write("a.npy", Array::new("f4", 4, &[5]).file(false, false));
    for mode in ["", "--stream"] {
        dir.ok(&format!("create a.tgm --force {mode} --from a=a.npy"));
        assert!(has_hashes(&dir, "a.tgm"));
        dir.ok(&format!("create a.tgm --force {mode} --no-hash --from a=a.npy"));
        assert!(!has_hashes(&dir, "a.tgm"));
    }
}

#[test]
fn messages_are_appended_in_order() {
    let dir = TestDir::new();
    let first = Array::new("i2", 2, &[4, 3]);
    dir.write("a.npy", first.file(false, false));
    dir.write("b.npy", Array::new("f8", 8, &[2]).file(false, false));
    let result = dir.ok("create run.tgm --append --reproducible --from a=a.npy");
    insta::assert_snapshot!(result.out, @"run.tgm: message 0 with 1 object, 456 B");
    let before = dir.read("run.tgm");
    let result = dir.ok("create run.tgm --append --reproducible --stream --from a=a.npy --from b=b.npy");
    insta::assert_snapshot!(result.out, @"run.tgm: message 1 with 2 objects, 760 B");
    dir.ok("create run.tgm --append --reproducible --from b=b.npy");
    assert!(dir.read("run.tgm").starts_with(&before), "what was there is changed");
    let file = tgm::File::open(dir.path("run.tgm")).unwrap();
    assert_eq!((file.message_count().unwrap(), file.scan().unwrap().unrecognized.len()), (3, 0));
    assert_eq!(dir.values("run.tgm", 1, 0), first.values());
    // The length of the streamed message in the middle is patched.
    let streamed = file.message(1).unwrap();
    assert_eq!(streamed.layout().unwrap().preamble.total_length, streamed.span().len());
    assert!(streamed.layout().unwrap().frames.iter().any(|frame| frame.kind == FrameKind::FooterIndex));
    assert_eq!(dir.names(), ["a.npy", "b.npy", "run.tgm"]);
}

#[test]
fn append_needs_a_file_that_ends_with_a_message() {
    let dir = TestDir::new();
    dir.write("a.npy", Array::new("u1", 1, &[3]).file(false, false));
    dir.write("notes.txt", "these are notes");
    dir.refused("create notes.txt --append --from a=a.npy", 4, "notes.txt: is text, not a .tgm file");
    dir.ok("create run.tgm --stream --from a=a.npy");
    let whole = dir.read("run.tgm");
    let half = [&whole[..], &whole[..whole.len() / 2]].concat();
    dir.write("half.tgm", &half);
    // A part of a message is removed, other bytes are not.
    let args = "create half.tgm --append --from a=a.npy";
    let result = dir.ok(args);
    assert!(result.err.starts_with("warning: half.tgm: file ends inside message 1: "), "{}", result.err);
    assert_eq!(tgm::File::open(dir.path("half.tgm")).unwrap().message_count().unwrap(), 2);
    dir.write("half.tgm", [&whole[..], b"junk"].concat());
    dir.refused(args, 4, "half.tgm: unrecognized bytes");
    dir.write("empty.tgm", "");
    dir.ok("create empty.tgm --append --from a=a.npy");
    assert_eq!(dir.values("empty.tgm", 0, 0), dir.values("run.tgm", 0, 0));
    // Bytes before the first message are harmless but reported.
    dir.write("junk.tgm", [b"junk", &whole[..]].concat());
    let result = dir.ok("create junk.tgm --append --from a=a.npy");
    assert!(result.err.contains("unrecognized bytes 0..4: not part of a message"), "{}", result.err);
    assert_eq!(tgm::File::open(dir.path("junk.tgm")).unwrap().message_count().unwrap(), 2);
}

#[test]
fn messages_are_written_to_standard_output() {
    let dir = TestDir::new();
    let array = Array::new("c16", 16, &[3, 2]);
    dir.write("a.npy", array.file(true, true));
    let whole = dir.ok("create - --from a=a.npy");
    let streamed = dir.ok("create - --from a=a.npy --stream");
    for result in [&whole, &streamed] {
        assert_eq!(result.err, "");
        let message = tgm::Message::from_bytes("pipe", result.bytes.clone()).unwrap();
        assert_eq!(message.object(0).unwrap().decode().unwrap().bytes(), array.values());
    }
    // Messages written to pipes form valid files.
    dir.write("run.tgm", [&streamed.bytes[..], &whole.bytes[..], &streamed.bytes[..]].concat());
    assert_eq!(tgm::File::open(dir.path("run.tgm")).unwrap().message_count().unwrap(), 3);
    dir.refused("create - --append --from a=a.npy", 8, "`--append` requires a file");
}

#[test]
fn invalid_requests_are_rejected_before_writing() {
    let dir = TestDir::new();
    dir.write("a.npy", Array::new("f4", 4, &[2]).file(false, false));
    dir.write("cut.npy", &Array::new("f4", 4, &[2]).file(false, false)[..70]);
    dir.write("text.npy", npy::with_header("'<U3'", false, &[1], vec![0; 12]));
    dir.write("long.npy", npy::with_header("'<c32'", false, &[1], vec![0; 32]));
    dir.write("deep.npy", npy::with_header("'|u1'", false, &[1; 65], vec![0]));
    dir.ok("create old.tgm --from a=a.npy");
    for (args, code, message) in [
        ("old.tgm --from a=a.npy", 8, "old.tgm: file exists\n  hint: `--force` replaces it"),
        ("a.npy --from a=a.npy --force", 8, "a.npy: input and output are the same file"),
        ("a.npy --from a=a.npy --append", 8, "a.npy: input and output are the same file"),
        ("x.tgm --from a=a.npy --from a=a.npy", 8, "duplicate object name `a`"),
        ("x.tgm --from a=a.npy --meta k=1 --meta k.l=2", 8, "`--meta k.l`: `k` already has a value"),
        ("x.tgm --from a=none.npy", 3, "none.npy: cannot open"),
        ("x.tgm --from a=cut.npy", 4, "cut.npy: malformed npy"),
        ("x.tgm --from a=old.tgm", 7, "old.tgm: is a .tgm file, not a NumPy array file"),
        ("x.tgm --from a=text.npy", 7, "text.npy: holds text strings (dtype `<U3`)"),
        ("x.tgm --from a=long.npy", 7, "hint: save `array.astype('complex128')` instead"),
        ("x.tgm --from a=deep.npy", 7, "deep.npy: has 65 axes, but at most 64 are allowed"),
        ("none/x.tgm --from a=a.npy", 3, "does not exist\n  hint: create the directory first"),
        ("none/x.tgm --from a=a.npy --append", 3, "does not exist\n  hint: create the directory first"),
        ("x.tgm", 2, "--from"),
        ("x.tgm --from a.npy", 2, "expected NAME=FILE"),
        ("x.tgm --from a=a.npy --append --force", 2, "cannot be used with"),
        ("x.tgm --from a=a.npy --meta base.x=1", 2, "`base` is a section of the message"),
        ("x.tgm --from a=a.npy --meta step", 2, "expected KEY=VALUE"),
    ] {
        dir.refused(&format!("create {args}"), code, message);
    }
}

/// Metadata from the command line may contain terminal control sequences.
#[test]
fn names_are_escaped() {
    let dir = TestDir::new();
    dir.write("a.npy", Array::new("u1", 1, &[1]).file(false, false));
    let mut command = dir.command();
    let made = run_command(command.args(["create", "a.tgm", "--from", "\u{1b}[31mred=a.npy"]));
    assert_eq!(made.code, 0, "{}", made.err);
    let result = dir.ok("extract a.tgm 0 -o x.npy");
    assert!(result.out.contains("red") && !result.out.contains('\u{1b}'), "{}", result.out.escape_debug());
}

/// Full files are renamed, in order; `tgm tail` and other readers find the current one under its name.
#[test]
fn full_files_are_rotated() {
    let dir = TestDir::new();
    dir.write("a.npy", npy::with_header("'|u1'", false, &[1000], vec![7; 1000]));
    let mut notes = Vec::new();
    for step in 0..5 {
        let args = format!(
            "create run.tgm --append --max-file-size 2KiB --index-file --from a=a.npy --meta step={step}"
        );
        notes.extend(dir.ok(&args).err.lines().map(str::to_owned));
    }
    assert_eq!(
        notes,
        [
            "note: run.tgm is full: renamed to run-000000.tgm",
            "note: run.tgm is full: renamed to run-000001.tgm",
        ]
    );
    let names = ["run-000000.tgm", "run-000001.tgm", "run.tgm"];
    for (name, steps) in names.iter().zip(["step\n0\n1\n", "step\n2\n3\n", "step\n4\n"]) {
        assert_eq!(dir.ok(&format!("ls {name} -p step")).out, steps);
        assert!(dir.path(&format!("{name}.idx")).exists(), "{name}");
    }
    dir.refused("create run.tgm --max-file-size 2KiB --from a=a.npy", 2, "--append");
}

/// One message for each position on the first axis, as `extract --stack` reads them.
#[test]
fn arrays_are_split_along_their_first_axis() {
    let dir = TestDir::new();
    let values: Vec<u8> = (0..24).collect();
    dir.write("a.npy", npy::with_header("'|u1'", false, &[4, 2, 3], values.clone()));
    dir.write("b.npy", npy::with_header("'|u1'", false, &[4], vec![9, 8, 7, 6]));
    let out = dir.ok("create run.tgm --from a=a.npy --from b=b.npy --split-axis time").out;
    assert_eq!(out, "run.tgm: messages 0 to 3 along `time`\n");
    assert_eq!(
        dir.ok("ls run.tgm -w name=a -p time,shape").out,
        "time\tshape\n0\t2×3\n1\t2×3\n2\t2×3\n3\t2×3\n"
    );
    dir.ok("extract run.tgm a --stack time -o all.npy");
    assert!(dir.read("all.npy").ends_with(&values));
    let out = dir.ok("create run.tgm --append --from b=b.npy --split-axis mars.step=0,6,12,18 --json").out;
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&json["first"], &json["messages"]), (&4.into(), &4.into()));
    dir.ok("extract run.tgm b -w mars.step=12 -o b12.csv");
    assert_eq!(dir.values("run.tgm", 6, 0), [7]);
    dir.write("c.npy", npy::with_header("'|u1'", false, &[3], vec![9, 8, 7]));
    dir.refused("create x.tgm --from b=b.npy --from c=c.npy --split-axis time", 8, "has 4 positions");
    dir.refused("create x.tgm --from b=b.npy --split-axis step=1,2", 8, "2 values, but the first axis has 4");
    dir.refused("create - --from b=b.npy --split-axis step", 8, "requires a file");
}

#[test]
fn the_size_of_decoded_arrays_is_limited() {
    let dir = TestDir::new();
    dir.write("a.npy", npy::with_header("'|u1'", false, &[1000], vec![7; 1000]));
    dir.ok("create a.tgm --from a=a.npy --compression zstd");
    let result = dir.tgm("extract a.tgm 0 -o out.npy --max-array 999");
    assert_eq!(result.code, 6, "{}", result.err);
    dir.ok("extract a.tgm 0 -o out.npy --max-array 1000");
}
