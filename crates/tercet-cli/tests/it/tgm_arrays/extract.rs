use tercet::tgm::encode_pre_encoded;
use tercet::tgm::{
    ByteOrder, DTYPES, DType, DataObjectDescriptor, EncodeOptions, GlobalMetadata, PreEncoded, Writer,
    WriterOptions,
};

use super::npy::{self, Array, SHAPES, TYPES};
use super::{TestDir, run_command};

/// Writes one message of these objects.
fn write(dir: &TestDir, name: &str, objects: &[(&DataObjectDescriptor, &[u8])]) {
    let mut writer = Writer::create(dir.path(name), WriterOptions::new().with_overwrite(true)).unwrap();
    writer.message(&GlobalMetadata::default(), objects, &EncodeOptions::new()).unwrap();
    writer.finish().unwrap();
}

/// Two messages: one with a single object, one with two.
fn samples(dir: &TestDir) -> (Array, Array) {
    let (a, b) = (Array::new("f4", 4, &[3, 4]), Array::new("i8", 8, &[5]));
    dir.write("a.npy", a.file(false, false));
    dir.write("b.npy", b.file(false, false));
    dir.ok("create run.tgm --from a=a.npy");
    dir.ok("create run.tgm --append --stream --from a=a.npy --from b=b.npy");
    (a, b)
}

#[test]
fn every_array_round_trips() {
    let dir = TestDir::new();
    for (kind, size, _) in TYPES {
        for shape in SHAPES {
            let array = Array::new(kind, size, shape);
            dir.write("in.npy", array.file(false, false));
            dir.ok("create a.tgm --force --from a=in.npy");
            dir.ok("extract a.tgm 0 -o out.npy --force");
            let file = dir.read("out.npy");
            let (header, values) = npy::parts(&file);
            let order = if size == 1 { '|' } else { '<' };
            let extents: Vec<String> = shape.iter().map(u64::to_string).collect();
            let comma = if shape.len() == 1 { "," } else { "" };
            let extents = format!("({}{comma})", extents.join(", "));
            let expected =
                format!("{{'descr': '{order}{kind}', 'fortran_order': False, 'shape': {extents}, }}");
            assert_eq!((header, values), (expected, &array.values()[..]));
            assert!(dir.ok("extract a.tgm 0.0 -o -").bytes == array.values(), "{kind} {shape:?}");
        }
    }
}

/// NaN and infinities round-trip with the representation of the format. A negative zero is a number.
#[test]
fn nan_and_infinity_round_trip() {
    let dir = TestDir::new();
    let bytes = |bits: [u64; 5]| bits.iter().flat_map(|bits| bits.to_le_bytes()).collect::<Vec<u8>>();
    let (nan, negative_infinity, negative_zero) = (0x7ff8 << 48, 0xfff0 << 48, 1 << 63);
    let given = [nan, 0xfff8_dead_beef_0001, 0x7ff0_0000_0000_0001, negative_infinity, negative_zero];
    dir.write("in.npy", npy::with_header("'<f8'", false, &[5], bytes(given)));
    for mode in ["", "--stream"] {
        dir.ok(&format!("create a.tgm --force {mode} --allow-nan --allow-inf --from a=in.npy"));
        let expected = bytes([nan, nan, nan, negative_infinity, negative_zero]);
        assert_eq!(dir.ok("extract a.tgm 0 -o -").bytes, expected);
    }
}

/// Big-endian messages of other writers.
#[test]
fn every_type_is_extracted_little_endian() {
    let dir = TestDir::new();
    for dtype in DTYPES {
        let mut descriptor = DataObjectDescriptor::new(dtype, [3, 5]);
        let len = dtype.byte_len(15).unwrap() as usize;
        let little: Vec<u8> = (0..len).map(|byte| (byte * 7 + 1) as u8).collect();
        let unit = dtype.swap_unit();
        let big: Vec<u8> = little.chunks(unit).flat_map(|unit| unit.iter().rev().copied()).collect();
        for (order, stored) in
            [(Some(ByteOrder::Little), &little), (None, &little), (Some(ByteOrder::Big), &big)]
        {
            descriptor.byte_order = order;
            write(&dir, "a.tgm", &[(&descriptor, stored)]);
            assert!(dir.ok("extract a.tgm 0.0 -o -").bytes == little, "{dtype} {order:?}");
            let file = dir.ok("extract a.tgm 0.0 --as npy -o -").bytes;
            assert!(npy::parts(&file).1 == little, "{dtype} {order:?}");
        }
    }
}

#[test]
fn non_numpy_types_are_reported() {
    let dir = TestDir::new();
    let bfloat16 = DataObjectDescriptor::new(DType::BF16, [2]);
    let bitmask = DataObjectDescriptor::new(DType::Bitmask, [3, 3]);
    write(&dir, "a.tgm", &[(&bfloat16, &[0x80, 0x3f, 0, 0xc0]), (&bitmask, &[0xa5, 0x80])]);
    let result = dir.ok("extract a.tgm 0.0 -o x.npy");
    insta::assert_snapshot!(result.err, @"note: bfloat16 is not supported by NumPy; bits written as uint16");
    insta::assert_snapshot!(result.out, @"x.npy: message 0, object 0, bfloat16 2, 132 B");
    let file = dir.read("x.npy");
    let (header, values) = npy::parts(&file);
    assert_eq!(header, "{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }");
    assert_eq!(values, [0x80, 0x3f, 0, 0xc0]);
    let result = dir.ok("extract a.tgm 0.1 -o y.npy");
    insta::assert_snapshot!(result.err, @"note: bitmask is not supported by NumPy; 3×3 bits written as 2 bytes of uint8, most significant bit first");
    insta::assert_snapshot!(result.out, @"y.npy: message 0, object 1, bitmask 3×3, 130 B");
    let file = dir.read("y.npy");
    let (header, values) = npy::parts(&file);
    assert_eq!(header, "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }");
    assert_eq!(values, [0xa5, 0x80]);
    assert_eq!(dir.ok("extract a.tgm 0.1 -o y.bin").err, "");
    assert_eq!(dir.read("y.bin"), [0xa5, 0x80]);
}

/// The product of the extents overflows, except that one of them is zero.
#[test]
fn empty_bitmasks_are_empty() {
    let dir = TestDir::new();
    let empty = DataObjectDescriptor::new(DType::Bitmask, [1 << 40, 1 << 40, 0]);
    write(&dir, "a.tgm", &[(&empty, &[])]);
    dir.ok("extract a.tgm 0 -o x.npy");
    assert_eq!(npy::parts(&dir.read("x.npy")).1, [0u8; 0]);
}

#[test]
fn ignored_strides_are_reported() {
    let dir = TestDir::new();
    let mut descriptor = DataObjectDescriptor::new(DType::U8, [2, 3]);
    descriptor.strides = vec![1, 2];
    write(&dir, "a.tgm", &[(&descriptor, &[1, 2, 3, 4, 5, 6])]);
    let result = dir.ok("extract a.tgm 0 -o x.npy");
    insta::assert_snapshot!(result.err, @"note: strides [1, 2] of the object are ignored; values are row-major");
    assert_eq!(npy::parts(&dir.read("x.npy")).1, [1, 2, 3, 4, 5, 6]);
    assert_eq!(dir.ok("extract a.tgm 0 -o -").err, "");
}

#[test]
fn the_output_format_is_the_option_or_the_extension() {
    let dir = TestDir::new();
    let (a, _) = samples(&dir);
    let result = dir.ok("extract run.tgm 0 -o x.NPY");
    insta::assert_snapshot!(result.out, @"x.NPY: message 0, object 0 (`a`), float32 3×4, 176 B");
    dir.ok("extract run.tgm 1.0 -o x.dat");
    dir.ok("extract run.tgm 0 -o y.npy --as raw");
    dir.ok("extract run.tgm 0 -o y.dat --as npy");
    assert!(dir.read("x.dat") == a.values() && dir.read("y.npy") == a.values());
    assert!(dir.read("x.NPY").starts_with(b"\x93NUMPY") && dir.read("y.dat") == dir.read("x.NPY"));
    assert!(dir.ok("extract run.tgm 0 -o - --as npy").bytes == dir.read("x.NPY"));
}

#[test]
fn standard_input_can_be_extracted() {
    let dir = TestDir::new();
    let (_, b) = samples(&dir);
    let mut command = dir.command();
    command.args("extract - 1.1 -o -".split(' ')).write_stdin(dir.read("run.tgm"));
    let piped = run_command(&mut command);
    assert_eq!((piped.code, piped.err.as_str()), (0, ""));
    assert!(piped.bytes == b.values());
}

#[test]
fn invalid_extracts_are_errors() {
    let dir = TestDir::new();
    samples(&dir);
    write(&dir, "none.tgm", &[]);
    dir.write("empty.tgm", "");
    let zstd =
        DataObjectDescriptor { compression: "zstd".to_owned(), ..DataObjectDescriptor::new(DType::U8, [4]) };
    let packed = PreEncoded { descriptor: &zstd, payload: &[1, 2, 3] };
    let bytes = encode_pre_encoded(&GlobalMetadata::default(), &[packed], &EncodeOptions::new()).unwrap();
    dir.write("packed.tgm", bytes);
    let deep = DataObjectDescriptor::new(DType::U8, vec![1; 65]);
    write(&dir, "deep.tgm", &[(&deep, &[7])]);
    assert_eq!(dir.ok("extract deep.tgm 0 -o -").bytes, [7]);
    for (args, code, message) in [
        ("run.tgm 2 -o x", 8, "run.tgm: has no message 2: it holds 2, numbered from 0"),
        ("run.tgm 1.2 -o x", 8, "message 1 has no object 2: it holds 2, numbered from 0"),
        ("run.tgm 1 -o x", 8, "run.tgm: message 1 has 2 objects\n  hint: select one: `1.0` to `1.1`"),
        ("none.tgm 0 -o x", 8, "none.tgm: message 0 has no objects"),
        ("empty.tgm 0 -o x", 4, "empty.tgm: contains no messages"),
        ("run.tgm first -o x", 8, "run.tgm: no object is named `first`"),
        ("run.tgm 3. -o x", 2, "invalid number `3.`"),
        ("run.tgm -3 -o x", 8, "run.tgm: has no message -3: it holds 2"),
        ("run.tgm 1.-3 -o x", 8, "message 1 has no object -3"),
        ("run.tgm a -o x", 8, "run.tgm: 2 objects selected: 0.0, 1.0"),
        ("run.tgm 0 -o x.nc", 8, "cannot write .nc files; the extensions are .npy, .tet and .csv"),
        ("run.tgm 0 -s 0:9 -o x", 8, "`-s 0:9` of object 0 with shape 3×4"),
        ("run.tgm -o [nosuch].npy", 8, "no key `nosuch` for the file name"),
        ("run.tgm -o [name].npy", 8, "have the same output name"),
        ("run.tgm a --stack nosuch -o x.npy", 8, "no key `nosuch`"),
        ("run.tgm 0", 2, "--output"),
        ("run.tgm 0 -o x --as nc", 2, "possible values: npy, csv, raw, tet"),
        ("packed.tgm 0 -o x", 4, "cannot be decoded\n  zstd"),
        ("packed.tgm 0 -o x.npy", 4, "cannot be decoded\n  zstd"),
        ("deep.tgm 0 -o x.npy", 8, "has 65 axes; NumPy arrays have at most 64"),
        ("run.tgm 0 -o a.npy", 8, "a.npy: file exists"),
        ("run.tgm 0 -o run.tgm --force", 8, "run.tgm: input and output are the same file"),
        ("run.tgm 0 -o none/x", 3, "does not exist\n  hint: create the directory first"),
        ("missing.tgm 0 -o x", 3, "missing.tgm: cannot open"),
        ("a.npy 0 -o x", 7, "a.npy: is a NumPy array file, not a Tercet container"),
    ] {
        dir.refused(&format!("extract {args}"), code, message);
    }
}

#[test]
fn damage_stops_extract_unless_forced() {
    let dir = TestDir::new();
    let (a, b) = samples(&dir);
    let payload = dir.message("run.tgm", 1).object(0).unwrap().payload_span();
    let mut bytes = dir.read("run.tgm");
    bytes[payload.start() as usize + 5] ^= 1;
    dir.write("run.tgm", &bytes);
    dir.write("out.bin", "mine");
    dir.refused("extract run.tgm 1.0 -o out.bin --force", 5, "is damaged or was changed");
    dir.refused("extract run.tgm 1.0 -o -", 5, "is damaged or was changed");
    // Objects outside the damage are readable.
    assert!(dir.ok("extract run.tgm 0 -o -").bytes == a.values());
    assert!(dir.ok("extract run.tgm 1.1 -o -").bytes == b.values());
    let found = dir.ok("extract run.tgm 1.0 -o - --ignore-checksums").bytes;
    let changed: Vec<usize> = (0..found.len()).filter(|&i| found[i] != a.values()[i]).collect();
    assert_eq!((found.len(), changed), (a.values().len(), vec![5]));
}

/// Unrecognized bytes are reported when messages are numbered.
#[test]
fn skipped_bytes_are_reported() {
    let dir = TestDir::new();
    let (_, b) = samples(&dir);
    let whole = dir.read("run.tgm");
    let first = dir.message("run.tgm", 0).span();
    dir.write("cut.tgm", [&whole[..first.end() as usize / 2], &whole[first.end() as usize..]].concat());
    // The first message is lost: message 0 of the rest was message 1.
    dir.refused("extract cut.tgm 0.1 -o -", 4, "message 0 follows a gap, in which messages may be lost");
    let result = dir.ok("extract cut.tgm 0.1 -o - --allow-gaps");
    assert!(result.err.contains("a damaged message"), "{}", result.err);
    assert!(result.bytes == b.values());
    // Names select safely.
    assert!(dir.ok("extract cut.tgm b -o -").bytes == b.values());
}

#[test]
fn objects_are_selected_by_name_key_and_from_the_end() {
    let dir = TestDir::new();
    let (a, b) = samples(&dir);
    assert!(dir.ok("extract run.tgm -1.1 -o -").bytes == b.values());
    assert!(dir.ok("extract run.tgm -2 -o -").bytes == a.values());
    assert!(dir.ok("extract run.tgm b -o -").bytes == b.values());
    assert!(dir.ok("extract run.tgm a -w message=0 -o -").bytes == a.values());
    let result = dir.tgm("extract run.tgm -w name=zz -o x.npy");
    assert_eq!((result.code, result.err.as_str()), (1, "no message matches\n"));
    std::fs::create_dir(dir.path("out")).unwrap();
    let result = dir.ok("extract run.tgm -o out/[name]-[message].npy");
    let expected = ["out/a-0.npy", "out/a-1.npy", "out/b-1.npy"];
    assert!(
        expected.iter().all(|name| result.out.contains(name) && dir.path(name).is_file()),
        "{}",
        result.out
    );
    assert!(npy::parts(&dir.read("out/b-1.npy")).1 == b.values());
}

#[test]
fn parts_are_selected_by_axis_and_objects_are_stacked() {
    let dir = TestDir::new();
    let field = DataObjectDescriptor::new(DType::U8, [2, 3]);
    let mut writer =
        tercet::tgm::Writer::create(dir.path("run.tgm"), tercet::tgm::WriterOptions::new()).unwrap();
    for step in [12_u8, 0, 6] {
        let mut metadata = GlobalMetadata::default();
        metadata.base.push([("name".to_owned(), "t".into())].into());
        metadata.extra.insert("step".to_owned(), step.into());
        let values: Vec<u8> = (0..6).map(|value| value + step).collect();
        writer.message(&metadata, &[(&field, &values)], &EncodeOptions::new()).unwrap();
    }
    writer.finish().unwrap();
    assert_eq!(dir.ok("extract run.tgm 1 -s 0:2,1:3 -o -").bytes, [1, 2, 4, 5]);
    assert_eq!(dir.ok("extract run.tgm 1 -s -1 -o -").bytes, [3, 4, 5]);
    assert_eq!(dir.ok("extract run.tgm t -w step=6 -s :,::2 -o -").bytes, [6, 8, 9, 11]);
    let result = dir.ok("extract run.tgm t --stack step -s :,0 -o t.npy");
    insta::assert_snapshot!(result.out, @"t.npy: 3 objects by step (0..12), uint8 3×2×1, 134 B");
    assert_eq!(npy::parts(&dir.read("t.npy")).1, [0, 3, 6, 9, 12, 15]);
    assert_eq!(dir.ok("extract run.tgm t --stack step -o -").bytes[6..12], [6, 7, 8, 9, 10, 11]);
    // One note for all objects.
    let result = dir.ok("extract run.tgm t --stack step -s :,0 --ignore-checksums -o t.npy --force");
    assert_eq!(result.err, "note: hash not verified: use `--verify`\n");
    // A filter that excludes the message matches nothing, with its number as with its name.
    for object in ["0", "0.0", "-1", "t"] {
        let result = dir.run(&format!("extract run.tgm {object} -w step=99 -o x.npy"));
        assert_eq!((result.code, &*result.err), (1, "no message matches\n"), "{object}");
    }
    dir.ok("extract run.tgm 1 -s 1,: -o t.csv");
    assert_eq!(String::from_utf8(dir.read("t.csv")).unwrap(), "dim_0,dim_1,value\n0,0,3\n0,1,4\n0,2,5\n");
    dir.refused("extract run.tgm t --stack name -o x.npy", 8, "both have `name` t");
}

/// A `.tet` file has the metadata as attributes, and the values of the stacked key as coordinates.
#[test]
fn arrays_become_tet_files() {
    let dir = TestDir::new();
    let array = Array::new("f4", 4, &[3, 4, 5]);
    dir.write("t2m.npy", array.file(false, false));
    dir.ok(
        "create run.tgm --from t2m=t2m.npy --split-axis step=12,0,6 --meta t2m:units=K --meta mars.class=od",
    );
    let result = dir.ok("extract run.tgm t2m --stack step -o t2m.tet");
    assert!(result.out.starts_with("t2m.tet: 3 objects by step (0..12), float32 3×4×5, "), "{}", result.out);
    let file = tercet::tet::File::open(dir.path("t2m.tet")).unwrap();
    let t2m = file.dataset("t2m").unwrap();
    let values = array.values();
    let row = |row: usize| &values[row * 80..(row + 1) * 80];
    assert_eq!(t2m.select().read().unwrap().bytes(), [row(1), row(2), row(0)].concat());
    assert_eq!((t2m.axis_name(0), t2m.axis_name(1)), (Some("step"), Some("dim_1")));
    let six = t2m.select().sel("step", 6).unwrap().read().unwrap();
    assert_eq!(six.bytes(), row(2));
    let attributes = format!("{:?}", t2m.info().unwrap().attrs);
    assert!(attributes.contains("units") && attributes.contains("mars.class"), "{attributes}");
    // A part of one object, and ranges.
    dir.ok("extract run.tgm 1 -s 1:3,:2 -o part.tet");
    let part = tercet::tet::File::open(dir.path("part.tet")).unwrap();
    let part = part.dataset("t2m").unwrap();
    let cells = [5, 6, 10, 11].map(|at| &row(1)[at * 4..at * 4 + 4]).concat();
    assert_eq!((part.shape(), part.select().read().unwrap().bytes()), (&[2, 2][..], &cells[..]));
    dir.ok("extract run.tgm 2 --range 3:2,0:1 -o range.tet");
    let ranges = tercet::tet::File::open(dir.path("range.tet")).unwrap();
    let read = ranges.dataset("t2m").unwrap().select().read().unwrap();
    assert_eq!(read.bytes(), [&row(2)[12..20], &row(2)[..4]].concat());
    // String keys are labels; existing files and other outputs are refused.
    dir.ok("create names.tgm --from a=t2m.npy --split-axis day=mon,tue,wed");
    dir.ok("extract names.tgm a --stack day -o names.tet");
    let names = tercet::tet::File::open(dir.path("names.tet")).unwrap();
    assert_eq!(names.dataset("a").unwrap().labels(0).unwrap(), ["mon", "tue", "wed"]);
    dir.refused("extract run.tgm 0 -o t2m.tet", 8, "t2m.tet: file exists");
    dir.refused("extract run.tgm 0 --as tet -o -", 8, "a .tet file is written to a local path");
    let bits = DataObjectDescriptor::new(DType::Bitmask, [12]);
    write(&dir, "bits.tgm", &[(&bits, &[0xff, 0xf0])]);
    dir.refused("extract bits.tgm 0 -o bits.tet", 8, "bitmasks cannot be written as .tet");
}

/// Metadata beyond the limit is not malformed.
#[test]
fn a_memory_limit_is_reported_as_such() {
    let dir = TestDir::new();
    dir.write("a.npy", Array::new("f4", 4, &[30]).file(false, false));
    dir.ok("create a.tgm --from a=a.npy --meta key=value --meta other=value --meta third=value");
    let mut limits = 0;
    for limit in (100..2000).step_by(50) {
        let result = dir.tgm(&format!("extract a.tgm 0 -o out.npy --force --max-memory {limit}"));
        if result.code == 0 {
            continue;
        }
        limits += 1;
        assert_eq!(result.code, 6, "{limit}: {}", result.err);
        assert!(!result.err.contains("malformed"), "{limit}: {}", result.err);
        assert!(result.err.contains("but the limit is"), "{limit}: {}", result.err);
        assert!(
            result.err.contains("hint: raise the limit with `--max-memory SIZE`"),
            "{limit}: {}",
            result.err
        );
    }
    assert!(limits > 3);
}
