use std::fmt::Write as _;

use tercet::core::DType;
use tercet::tet::{Codec, File, IntegrityStatus};

use super::npy::{self, Array, TYPES};
use super::{TestDir, run_command};

const SHAPES: [&[u64]; 8] = [
    &[11],
    &[7, 5],
    &[3, 4, 5],
    &[2, 3, 3, 4],
    &[2, 2, 3, 2, 3],
    &[2, 1, 2, 3, 1, 3],
    &[2, 1, 2, 1, 2, 2, 3],
    &[1, 2, 1, 2, 2, 1, 2, 3],
];

#[test]
fn every_type_and_rank_round_trips() {
    for (rank, shape) in SHAPES.iter().enumerate() {
        for (big, fortran) in [(false, false), (true, false), (false, true), (true, true)] {
            let dir = TestDir::new();
            let mut args = "create a.tet".to_owned();
            for (kind, size) in TYPES {
                dir.write(&format!("{kind}.npy"), Array::new((kind, size), shape).file(big, fortran));
                write!(args, " --from {kind}={kind}.npy").unwrap();
            }
            // Chunks that do not divide the shape, compressed every other time.
            let chunk: Vec<String> = shape.iter().map(|extent| (extent / 2 + 1).to_string()).collect();
            write!(args, " --chunk {}", chunk.join(",")).unwrap();
            if rank % 2 == 1 {
                args.push_str(" --zstd");
            }
            dir.ok(&args);
            let file = dir.open("a.tet");
            for (kind, size) in TYPES {
                let array = Array::new((kind, size), shape);
                let dataset = file.dataset(kind).unwrap();
                assert_eq!(dataset.shape(), *shape);
                assert_eq!(dataset.dtype().and_then(DType::size), Some(size));
                assert_eq!(
                    dataset.read_all().unwrap().bytes(),
                    array.values(),
                    "{kind} {shape:?}, big-endian {big}, Fortran {fortran}"
                );
            }
            assert!(matches!(file.integrity_status(), IntegrityStatus::Checked { .. }));
        }
    }
}

#[test]
fn int8_and_bool_are_widened_with_a_note() {
    let dir = TestDir::new();
    dir.write("i.npy", npy::with_header("'|i1'", false, &[4], vec![0x80, 0xff, 0, 0x7f]));
    dir.write("b.npy", npy::with_header("'|b1'", true, &[2, 2], vec![1, 0, 0, 1]));
    let result = dir.ok("create a.tet --from i=i.npy --from b=b.npy");
    insta::assert_snapshot!(result.err, @r"
    note: i.npy: int8 is not supported by .tet; stored as int16
    note: b.npy: bool stored as uint8
    ");
    let file = dir.open("a.tet");
    let i = file.dataset("i").unwrap().read_all().unwrap();
    assert_eq!(i.as_slice::<i16>(), Some(&[-128, -1, 0, 127][..]));
    assert_eq!(file.dataset("b").unwrap().read_all().unwrap().bytes(), [1, 0, 0, 1]);
}

#[test]
fn unsupported_dtypes_are_rejected_by_name() {
    let dir = TestDir::new();
    for (descr, reason) in [
        ("'|O'", "Python objects, which are never unpickled"),
        ("[('x', '<f4'), ('y', '<i2')]", "structured records (dtype `[x, y]`)"),
        ("'<U8'", "text strings"),
        ("'|S8'", "byte strings"),
        ("'<c16'", "complex numbers"),
        ("'<M8[ns]'", "dates and times"),
    ] {
        dir.write("a.npy", npy::with_header(descr, false, &[1], vec![0; 8]));
        let result = dir.tet("create a.tet --from a=a.npy");
        assert_eq!(result.code, 7, "{descr}: {}", result.err);
        assert!(result.err.contains(reason), "{descr}: {}", result.err);
    }
    assert_eq!(dir.names(), ["a.npy"]);
}

/// `--zstd` is the former spelling.
#[test]
fn compression_has_a_codec_and_a_level() {
    let dir = TestDir::new();
    dir.write("in.npy", Array::new(("f4", 4), &[20, 30]).file(false, false));
    let made = |options: &str| {
        dir.ok(&format!(
            "create out.tet --profile interop --from a=in.npy --from b=in.npy {options} --force"
        ));
        dir.read("out.tet")
    };
    for (option, former) in [
        ("--compression zstd", "--zstd"),
        ("--compression zstd:19", "--zstd 19"),
        ("--compression zstd:-5", "--zstd -5"),
        ("--compression none", "--zstd none"),
        ("--compression zstd:9 --compression b:none", "--zstd 9 --zstd b:none"),
        ("--compression b:zstd:9", "--zstd b:9"),
    ] {
        assert!(made(option) == made(former), "{option}");
    }
    for (options, code, message) in [
        ("--compression lz4", 2, "unknown codec `lz4`"),
        ("--compression zstd:high", 2, "invalid level `high`"),
        ("--compression c:zstd", 8, "no array `c` in this command"),
        ("--compression zstd --zstd 3", 8, "--zstd"),
        ("--compression zstd:99", 8, "zstd has no level 99"),
    ] {
        let result = dir.tet(&format!("create new.tet --from a=in.npy {options}"));
        assert_eq!(result.code, code, "{options}: {}", result.err);
        assert!(result.err.contains(message), "{options}: {}", result.err);
    }
}

/// Arrays with the names of axes are their coordinates: the axis names of the others do not fit them.
#[test]
fn coordinates_have_their_own_axis() {
    let dir = TestDir::new();
    dir.write("in.npy", Array::new(("f4", 4), &[2, 3]).file(false, false));
    dir.write("lon.npy", Array::new(("f4", 4), &[3]).file(false, false));
    dir.ok("create out.tet --from a=in.npy --from lon=lon.npy --dims lat,lon");
    let file = dir.open("out.tet");
    assert_eq!(file.dataset("lon").unwrap().axis_name(0), Some("lon"));
    assert!(file.dataset("a").unwrap().coordinates(1).unwrap().is_some());
    let result = dir.tet("create bad.tet --from a=in.npy --from b=lon.npy --dims lat,lon");
    assert!(result.err.contains("dataset `b` has 1 axis, but 2 names are given"), "{}", result.err);
}

#[test]
fn options_apply_to_their_arrays() {
    let dir = TestDir::new();
    let array = Array::new(("f4", 4), &[2, 3]);
    dir.write("in.npy", array.file(false, false));
    dir.write("lat.txt", "45.5N\r\nequator\n45.5S");
    dir.write("time.txt", "früh\nspät\n");
    dir.ok(
        "create out.tet --from a=in.npy --from b=in.npy --chunk 1,3 --chunk b:2,2 --zstd 5 --zstd a:none \
         --dims time,lat --dims b:t,lat --attr units=K --attr b:units=m=1 --attr b:note=x --attr :k:l=v \
         --labels lat=lat.txt --labels time=time.txt --memory-budget 12.5%",
    );
    let file = dir.open("out.tet");
    let (a, b) = (file.dataset("a").unwrap(), file.dataset("b").unwrap());
    assert_eq!((a.chunk_shape(), b.chunk_shape()), (&[1, 3][..], &[2, 2][..]));
    let codec = |name: &str| file.dataset(name).unwrap().chunk_ref(&[0, 0]).unwrap().codec;
    assert_eq!((codec("a"), codec("b")), (Codec::Raw, Codec::Zstd));
    let attrs = |name: &str| -> Vec<(String, String)> {
        file.dataset(name).unwrap().info().unwrap().attrs.clone().into_iter().collect()
    };
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(attrs("a"), [pair("k:l", "v"), pair("units", "K")]);
    assert_eq!(attrs("b"), [pair("k:l", "v"), pair("note", "x"), pair("units", "m=1")]);
    assert_eq!((a.axis_name(0), b.axis_name(0)), (Some("time"), Some("t")));
    assert_eq!(a.labels(0).unwrap(), ["früh", "spät"]);
    assert_eq!(a.labels(1).unwrap(), ["45.5N", "equator", "45.5S"]);
    assert_eq!(b.labels(0), None);
    assert_eq!(b.labels(1).unwrap(), ["45.5N", "equator", "45.5S"]);
    assert_eq!((file.memory_budget().percent_bps, file.memory_budget().bytes), (1250, 0));
    let [row] = file.history() else { panic!("one row expected: {:?}", file.history()) };
    assert_eq!(
        (row.op.as_str(), row.source.as_str(), row.at.as_str()),
        ("create", "in.npy, in.npy", "1700000000")
    );
    let info = &file.metadata().unwrap().file;
    assert_eq!((info.tool.as_str(), info.created_at.as_str()), ("tercet", "1700000000"));
}

#[test]
fn directories_are_not_stored_in_the_history() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("secret")).unwrap();
    dir.write("secret/in.npy", Array::new(("u1", 1), &[1]).file(false, false));
    dir.ok("create a.tet --from a=secret/in.npy");
    assert_eq!(dir.open("a.tet").history()[0].source, "in.npy");
    assert!(!dir.read("a.tet").windows(6).any(|bytes| bytes == b"secret"));
}

#[test]
fn options_select_the_footer_sections() {
    let dir = TestDir::new();
    dir.write("in.npy", Array::new(("f4", 4), &[2, 3]).file(false, false));
    dir.ok("create plain.tet --from a=in.npy --profile interop");
    let plain = dir.open("plain.tet");
    assert!(matches!(plain.integrity_status(), IntegrityStatus::Absent));
    assert_eq!((plain.footer_version(), plain.history().len()), (None, 0));
    // Superblock, directory, one row, values: nothing else.
    assert_eq!(plain.len(), 32 + 8 + 24 + 32 + 32 + 104 + 24);
    dir.ok("create bare.tet --from a=in.npy --no-checksums");
    assert!(matches!(dir.open("bare.tet").integrity_status(), IntegrityStatus::Absent));
    dir.ok("create checked.tet --from a=in.npy --no-statistics");
    let checked = dir.open("checked.tet");
    assert!(matches!(checked.integrity_status(), IntegrityStatus::Checked { .. }));
    assert_eq!(checked.dataset("a").unwrap().chunk_stats(&[0, 0]).unwrap(), None);
    dir.ok("create full.tet --from a=in.npy");
    assert!(dir.open("full.tet").dataset("a").unwrap().chunk_stats(&[0, 0]).unwrap().is_some());
}

#[test]
fn zone_maps_are_written_on_request() {
    let dir = TestDir::new();
    dir.write("in.npy", Array::new(("f4", 4), &[2, 3]).file(false, false));
    dir.ok("create plain.tet --from a=in.npy --profile interop --zone-maps");
    let plain = dir.open("plain.tet");
    assert!(matches!(plain.integrity_status(), IntegrityStatus::Absent));
    assert_eq!(plain.footer_version(), Some(2));
    dir.ok("create full.tet --from a=in.npy --zone-maps");
    let full = dir.open("full.tet");
    assert!(matches!(full.integrity_status(), IntegrityStatus::Checked { .. }));
    assert_eq!(full.footer_version(), Some(2));
    assert!(dir.ok("verify full.tet --deep --json").out.contains("\"ok\": true"));
    dir.ok("append full.tet --from b=in.npy");
    assert_eq!(dir.open("full.tet").footer_version(), Some(1), "they would not list `b`");
}

#[test]
fn the_result_is_reported() {
    let dir = TestDir::new();
    dir.write("t.npy", npy::with_header("'<f4'", false, &[30, 200, 300], vec![0; 30 * 200 * 300 * 4]));
    dir.write("m.npy", Array::new(("u2", 2), &[7]).file(false, false));
    let result = dir.ok("create a.tet --from t=t.npy --from mask/land=m.npy --zstd mask/land:");
    insta::assert_snapshot!(result.out, @r#"
    ┌───────────┬──────┬────────────┬────────────┬────────┬───────┬─────────┬────────┬──────────┐
    │ dataset   ┆ type ┆ shape      ┆ chunk      ┆ chunks ┆ codec ┆     raw ┆ stored ┆    ratio │
    ╞═══════════╪══════╪════════════╪════════════╪════════╪═══════╪═════════╪════════╪══════════╡
    │ t         ┆ f32  ┆ 30×200×300 ┆ 15×200×300 ┆      2 ┆ zstd  ┆ 6.9 MiB ┆  254 B ┆ 28346.46 │
    │ mask/land ┆ u16  ┆ 7          ┆ 7          ┆      1 ┆ zstd  ┆    14 B ┆   23 B ┆     0.61 │
    └───────────┴──────┴────────────┴────────────┴────────┴───────┴─────────┴────────┴──────────┘
    t: zstd, because it shrinks a sample of 2.0 MiB to less than 1 %
    a.tet: 2 datasets, 1.3 KiB
    "#);
    let result = dir.ok("create b.tet --from m=m.npy --json");
    let length = format!("\"bytes\": {},\n  \"dataset_count\"", dir.read("b.tet").len());
    insta::assert_snapshot!(result.out.replace(&length, "\"bytes\": LENGTH,\n  \"dataset_count\""), @r#"
    {
      "path": "b.tet",
      "bytes": LENGTH,
      "dataset_count": 1,
      "datasets": [
        {
          "name": "m",
          "dtype": "u16",
          "shape": [
            7
          ],
          "chunk_shape": [
            7
          ],
          "chunks": 1,
          "codec": "raw",
          "raw_bytes": 14,
          "stored_bytes": 14,
          "ratio": 1.0,
          "sample": {
            "bytes": 14,
            "compressed_bytes": 23,
            "ratio": 1.6429
          }
        }
      ]
    }
    "#);
}

#[test]
fn an_existing_file_is_replaced_only_with_force() {
    let dir = TestDir::new();
    dir.write("in.npy", Array::new(("u1", 1), &[3]).file(false, false));
    dir.write("a.tet", "mine");
    let result = dir.tet("create a.tet --from a=in.npy");
    assert_eq!(result.code, 8);
    insta::assert_snapshot!(result.err, @r"
    error: a.tet: file exists
      hint: `--force` replaces it
    ");
    assert_eq!(dir.read("a.tet"), b"mine");
    dir.ok("create a.tet --from a=in.npy --force");
    assert_eq!(dir.open("a.tet").datasets().len(), 1);
    assert_eq!(dir.names(), ["a.tet", "in.npy"]);
}

#[test]
fn an_input_file_is_not_replaced() {
    let dir = TestDir::new();
    dir.write("in.npy", Array::new(("u1", 1), &[2]).file(false, false));
    dir.write("labels.txt", "a\nb\n");
    let before = (dir.read("in.npy"), dir.read("labels.txt"));
    for (args, name) in [
        ("in.npy --from a=in.npy", "in.npy"),
        ("./in.npy --from a=in.npy", "in.npy"),
        ("labels.txt --from a=in.npy --labels 0=labels.txt", "labels.txt"),
    ] {
        let result = dir.tet(&format!("create {args} --force"));
        assert_eq!(result.code, 8, "{args}: {}", result.err);
        assert_eq!(result.err, format!("error: {name}: input and output are the same file\n"), "{args}");
    }
    assert!((dir.read("in.npy"), dir.read("labels.txt")) == before);
    assert_eq!(dir.names(), ["in.npy", "labels.txt"]);
}

#[test]
fn standard_input_and_output_work_like_files() {
    let dir = TestDir::new();
    let array = Array::new(("i4", 4), &[30, 40]);
    for fortran in [false, true] {
        let mut command = dir.command();
        command.args("create - --from a=- --chunk 7,11".split(' ')).write_stdin(array.file(true, fortran));
        let made = run_command(&mut command);
        assert_eq!((made.code, made.err.as_str()), (0, ""));
        let file = File::from_bytes("made", made.bytes).unwrap();
        assert_eq!(file.dataset("a").unwrap().read_all().unwrap().bytes(), array.values());
        assert_eq!(file.history()[0].source, "standard input");
    }
    let mut command = dir.command();
    command.args("create - --from a=- --max-stdin 100".split(' ')).write_stdin(array.file(false, false));
    let refused = run_command(&mut command);
    assert_eq!((refused.code, refused.bytes.len()), (6, 0), "{}", refused.err);
    assert_eq!(dir.names(), Vec::<String>::new());
}

#[test]
fn invalid_arguments_change_nothing() {
    let dir = TestDir::new();
    dir.write("in.npy", Array::new(("u1", 1), &[3, 2]).file(false, false));
    dir.write("two.txt", "a\nb\n");
    dir.write("bad.txt", b"a\n\xff\n");
    for (args, code, message) in [
        ("--from in.npy", 2, "expected NAME=FILE, like `t2m=t2m.npy`"),
        ("--from a=in.npy --chunk 1,x", 2, "invalid extent `x`"),
        ("--from a=in.npy --chunk 0,1", 2, "invalid extent `0`"),
        ("--from a=in.npy --zstd high", 2, "invalid zstd level `high`"),
        ("--from a=in.npy --memory-budget 200%", 2, "invalid percentage `200%`"),
        ("--from a=in.npy --attr units", 2, "expected KEY=VALUE"),
        ("--from a=in.npy --profile other", 2, "possible values"),
        ("", 2, "--from"),
        ("--from a=in.npy --from a=in.npy", 8, "duplicate dataset name `a`"),
        ("--from a=- --from b=-", 8, "only one array can be read from standard input"),
        ("--from a=in.npy --attr _FillValue=none", 8, "`none` is not a number of type"),
        ("--from a=in.npy --attr valid_range=[5,1]", 8, "the minimum of `[5,1]` is greater than the maximum"),
        ("--from a=in.npy --attr scale_factor=0", 8, "the value must not be 0"),
        ("--from a=in.npy --attr b:units=K", 8, "no array `b` in this command"),
        ("--from a=in.npy --chunk 1,1 --chunk 2,2", 8, "`--chunk` is given more than once for all arrays"),
        ("--from a=in.npy --attr a:x=1 --attr a:x=2", 8, "`--attr x` is given more than once for array `a`"),
        ("--from a=in.npy --chunk 1", 8, "dataset `a` has 2 axes, but its chunks have 1"),
        ("--from a=in.npy --dims x", 8, "dataset `a` has 2 axes, but 1 name is given"),
        ("--from a=in.npy --dims x,x", 8, "`--dims x,x` has a duplicate axis name `x`"),
        ("--from a=in.npy --dims a:time,time", 8, "`--dims a:time,time` has a duplicate axis name `time`"),
        ("--from a=in.npy --zstd 99", 8, "zstd has no level 99"),
        ("--from a=in.npy --labels lat=two.txt", 8, "no array has an axis `lat`"),
        ("--from a=in.npy --labels a:lat=two.txt", 8, "dataset `a` has no axis `lat`"),
        ("--from a=in.npy --labels 0=two.txt", 8, "has 3 positions, but 2 labels are given"),
        ("--from a=in.npy --labels 1=bad.txt", 4, "bad.txt: line 2: invalid UTF-8"),
        ("--from a=in.npy --labels 1=none.txt", 3, "none.txt: cannot open"),
        ("--from a=none.npy", 3, "none.npy: cannot open"),
        ("--from a=in.npy --json", 0, ""),
    ] {
        let output = if code == 0 { "a.tet" } else { "never.tet" };
        let result = dir.tet(&format!("create {output} {args}"));
        assert_eq!(result.code, code, "{args}: {}", result.err);
        assert!(result.err.contains(message), "{args}: {}", result.err);
        if code != 0 {
            assert_eq!(result.out, "", "{args}");
        }
    }
    let result = dir.tet("create - --from a=in.npy --json");
    assert_eq!(result.code, 8);
    assert_eq!(dir.names(), ["a.tet", "bad.txt", "in.npy", "two.txt"]);
}

#[test]
fn damaged_input_is_named_in_the_error() {
    let dir = TestDir::new();
    let good = Array::new(("f4", 4), &[5]).file(false, false);
    dir.write("short.npy", &good[..good.len() - 1]);
    dir.write("long.npy", [&good[..], b"xy"].concat());
    let result = dir.tet("create a.tet --from a=short.npy");
    assert_eq!(result.code, 4);
    insta::assert_snapshot!(result.err, @r#"
    error: short.npy: malformed npy data › values (bytes 66..85)
      needs 20 bytes, but only 19 are available
    "#);
    let result = dir.tet("create a.tet --from a=long.npy");
    assert_eq!(result.code, 4);
    insta::assert_snapshot!(result.err, @r#"
    error: long.npy: malformed npy data › values (bytes 86..88)
      2 trailing bytes
      hint: the file may hold several arrays; save each in a separate file
    "#);
}

#[test]
fn many_sources_fit_into_the_history() {
    let dir = TestDir::new();
    dir.write("in.npy", Array::new(("u1", 1), &[1]).file(false, false));
    let long = format!("{}.npy", "é".repeat(120));
    dir.write(&long, dir.read("in.npy"));
    let mut args = "create a.tet".to_owned();
    for number in 0..20 {
        write!(args, " --from a{number}={long}").unwrap();
    }
    dir.ok(&args);
    let source = dir.open("a.tet").history()[0].source.clone();
    assert!(source.ends_with("… (20 in all)") && source.len() <= 1024, "{source}");
}
