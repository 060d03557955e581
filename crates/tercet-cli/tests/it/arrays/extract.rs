use super::npy::{self, Array, TYPES};
use super::{TestDir, run_command};

/// Start, stop and step of an axis.
type Steps = (u64, u64, u64);

/// Slices as command-line text, and as start, stop and step of each axis.
const SLICES: [(&str, [Steps; 3]); 8] = [
    (":", [(0, 13, 1), (0, 11, 1), (0, 9, 1)]),
    ("0:10", [(0, 10, 1), (0, 11, 1), (0, 9, 1)]),
    ("::2,1:", [(0, 13, 2), (1, 11, 1), (0, 9, 1)]),
    ("12,10,8", [(12, 13, 1), (10, 11, 1), (8, 9, 1)]),
    (":,:,4", [(0, 13, 1), (0, 11, 1), (4, 5, 1)]),
    ("1:12:5,::3,::4", [(1, 12, 5), (0, 11, 3), (0, 9, 4)]),
    (":,3:9:7", [(0, 13, 1), (3, 9, 7), (0, 9, 1)]),
    ("::13,::11,::9", [(0, 13, 13), (0, 11, 11), (0, 9, 9)]),
];

fn cube(dir: &TestDir) -> Array {
    let array = Array::new(("f8", 8), &[13, 11, 9]);
    dir.write("in.npy", array.file(false, false));
    array
}

#[test]
fn slices_match_a_naive_implementation() {
    let dir = TestDir::new();
    let array = cube(&dir);
    dir.ok("create raw.tet --from a=in.npy --chunk 4,5,2");
    dir.ok("create packed.tet --from a=in.npy --chunk 5,3,9 --zstd");
    for (text, slices) in SLICES {
        let expected = array.slice(&slices);
        for name in ["raw.tet", "packed.tet"] {
            for access in ["mmap", "pread"] {
                dir.ok(&format!("extract {name} a -s {text} --access {access} -o out.bin --force"));
                assert!(dir.read("out.bin") == expected, "{name} {text} {access}");
                let piped = dir.ok(&format!("extract {name} a -s {text} --access {access} -o -"));
                assert!(piped.bytes == expected, "{name} {text} {access} to a pipe");
            }
        }
    }
}

#[test]
fn every_type_is_extracted_as_npy() {
    let dir = TestDir::new();
    for (kind, size) in TYPES {
        let array = Array::new((kind, size), &[6, 5]);
        dir.write("in.npy", array.file(false, false));
        dir.ok("create a.tet --from a=in.npy --chunk 4,2 --force");
        dir.ok("extract a.tet a -s 1:,::2 -o out.npy --force");
        let file = dir.read("out.npy");
        let order = if size == 1 { '|' } else { '<' };
        let header = format!("{{'descr': '{order}{kind}', 'fortran_order': False, 'shape': (5, 3), }}");
        assert!(file[10..].starts_with(header.as_bytes()), "{}", file[..128].escape_ascii());
        assert_eq!(npy::values(&file), array.slice(&[(1, 6, 1), (0, 5, 2)]), "{kind}");
        // Create from the extracted file again.
        dir.ok("create b.tet --from a=out.npy --force");
        assert_eq!(dir.open("b.tet").dataset("a").unwrap().read_all().unwrap().bytes(), npy::values(&file));
    }
}

#[test]
fn the_output_format_is_the_option_or_the_extension() {
    let dir = TestDir::new();
    let array = cube(&dir);
    dir.ok("create a.tet --from a=in.npy");
    let result = dir.ok("extract a.tet a -o x.NPY");
    insta::assert_snapshot!(result.out, @"x.NPY: stored values of `a`, f64 13×11×9, 10.2 KiB");
    dir.ok("extract a.tet a -o x.dat");
    dir.ok("extract a.tet a -o y.npy --as raw");
    dir.ok("extract a.tet a -o y.dat --as npy");
    let raw = array.values();
    assert!(dir.read("x.dat") == raw && dir.read("y.npy") == raw);
    assert!(dir.read("x.NPY").starts_with(b"\x93NUMPY") && dir.read("y.dat") == dir.read("x.NPY"));
    assert!(dir.ok("extract a.tet a -o - --as npy").bytes == dir.read("x.NPY"));
    assert!(dir.ok("extract a.tet a -o -").bytes == raw);
}

#[test]
fn selections_are_by_position_from_either_end() {
    let dir = TestDir::new();
    let array = cube(&dir);
    dir.ok("create a.tet --from a=in.npy --chunk 4,5,2 --dims t,y,x");
    let all = (0, 11, 1);
    for (args, slices) in [
        ("-s -1", [(12, 13, 1), all, (0, 9, 1)]),
        ("-s ...,2", [(0, 13, 1), all, (2, 3, 1)]),
        ("--isel t=-1", [(12, 13, 1), all, (0, 9, 1)]),
        ("--isel t=2..-1", [(2, 12, 1), all, (0, 9, 1)]),
        ("--isel x=::2 --isel 0=..3", [(0, 3, 1), all, (0, 9, 2)]),
    ] {
        dir.ok(&format!("extract a.tet a {args} -o out.npy --force"));
        assert_eq!(npy::values(&dir.read("out.npy")), array.slice(&slices), "{args}");
    }
    // A single position is no axis of the result; a slice is.
    let shape = |args: &str| {
        let json = dir.ok(&format!("extract a.tet a {args} -o out.npy --force --json")).out;
        serde_json::from_str::<serde_json::Value>(&json).unwrap()["shape"].to_string()
    };
    assert_eq!(shape("--isel t=5"), "[11,9]");
    assert_eq!(shape("--isel t=5..6"), "[1,11,9]");
    // Negative steps reverse an axis.
    dir.ok("extract a.tet a --isel t=::-1 -o reversed.bin");
    let size = 11 * 9 * 8;
    let reversed: Vec<u8> = array.values().chunks(size).rev().flatten().copied().collect();
    assert!(dir.read("reversed.bin") == reversed);
}

#[test]
fn standard_input_can_be_extracted() {
    let dir = TestDir::new();
    let array = cube(&dir);
    dir.ok("create a.tet --from a=in.npy --chunk 4,4,4 --zstd");
    let mut command = dir.command();
    command.args("extract - a -s ::3 -o -".split(' ')).write_stdin(dir.read("a.tet"));
    let piped = run_command(&mut command);
    assert_eq!((piped.code, piped.err.as_str()), (0, ""));
    assert!(piped.bytes == array.slice(&[(0, 13, 3), (0, 11, 1), (0, 9, 1)]));
}

/// Rows of tiles that do not fit into memory at once reach a pipe through a temporary file.
#[test]
fn wide_arrays_are_piped_in_order() {
    let dir = TestDir::new();
    let width = 20_000_000;
    let values: Vec<u8> = (0..2 * width).map(|n: u32| (n % 251) as u8).collect();
    dir.write("in.npy", npy::with_header("'|u1'", false, &[2, width.into()], values.clone()));
    dir.ok("create a.tet --from a=in.npy --chunk 2,5000000 --no-statistics");
    assert!(dir.ok("extract a.tet a -o -").bytes == values);
    dir.ok("extract a.tet a -o out.npy");
    assert!(npy::values(&dir.read("out.npy")) == values);
}

#[test]
fn invalid_extracts_are_errors() {
    let dir = TestDir::new();
    cube(&dir);
    dir.ok("create a.tet --from a=in.npy --from b=in.npy");
    let before = dir.read("a.tet");
    for (args, code, message) in [
        ("a.tet c -o x.bin", 8, "has no dataset `c`\n  hint: datasets: a, b"),
        ("a.tet a -s 0:14 -o x.bin", 8, "selection on axis 0 ends at 14, but the axis has 13 positions"),
        ("a.tet a -s 1,2,3,4 -o x.bin", 8, "selection has 4 axes, but the array has 3"),
        ("a.tet a -s 5:5 -o x.bin", 8, "selection `5:5` on axis 0 is empty"),
        ("a.tet a -s x -o x.bin", 8, "is not `start:stop:step` of whole numbers"),
        ("a.tet a -o in.npy", 8, "in.npy: file exists"),
        ("a.tet a -o a.tet --force", 8, "a.tet: input and output are the same file"),
        ("a.tet a -o none/x.bin", 3, "does not exist\n  hint: create the directory first"),
        ("none.tet a -o x.bin", 3, "none.tet: cannot open"),
        ("in.npy a -o x.bin", 7, "in.npy: is a NumPy array file, not a Tercet container"),
        ("a.tet a", 2, "--output"),
        ("a.tet a -o x.bin --as nc", 2, "possible values: npy, tet, csv, json, raw"),
        ("a.tet a -o u.nc", 8, "u.nc: cannot write .nc files; the extensions are .npy, .tet, .csv and .json"),
        ("a.tet a -o u.zarr", 8, "cannot write .zarr files"),
        ("a.tet a -o u.h5", 8, "cannot write .h5 files"),
        ("a.tet a -o u.xyz", 8, "hint: change the extension, or give the format with `--as`"),
        ("a.tet a -o u", 8, "cannot infer the format from a name without an extension"),
    ] {
        let result = dir.tet(&format!("extract {args}"));
        assert_eq!(result.code, code, "{args}: {}", result.err);
        assert!(result.err.contains(message), "{args}: {}", result.err);
        assert_eq!(result.out, "", "{args}");
    }
    assert!(dir.read("a.tet") == before);
    assert_eq!(dir.names(), ["a.tet", "in.npy"]);
}

#[test]
fn damage_stops_extract_unless_forced() {
    let dir = TestDir::new();
    let array = cube(&dir);
    dir.ok("create a.tet --from a=in.npy --chunk 4,11,9");
    let mut bytes = dir.read("a.tet");
    let chunk = dir.open("a.tet").dataset("a").unwrap().chunk_ref(&[1, 0, 0]).unwrap();
    bytes[chunk.span.start() as usize] ^= 1;
    dir.write("a.tet", &bytes);
    dir.write("out.bin", "mine");
    for output in ["out.bin --force", "-"] {
        let result = dir.tet(&format!("extract a.tet a -o {output}"));
        assert_eq!(result.code, 5, "{}", result.err);
        assert!(result.err.contains("dataset `a`, chunk [1, 0, 0]"), "{}", result.err);
    }
    assert_eq!(dir.read("out.bin"), b"mine");
    dir.ok("extract a.tet a -s 8: -o good.bin");
    assert!(dir.read("good.bin") == array.slice(&[(8, 13, 1), (0, 11, 1), (0, 9, 1)]));
    dir.ok("extract a.tet a -o all.bin --ignore-checksums");
    let (found, expected) = (dir.read("all.bin"), array.values());
    let changed: Vec<usize> = (0..expected.len()).filter(|&i| found[i] != expected[i]).collect();
    assert_eq!((found.len(), changed), (expected.len(), vec![4 * 11 * 9 * 8]));
    assert_eq!(dir.names(), ["a.tet", "all.bin", "good.bin", "in.npy", "out.bin"]);
}

/// A closed pipe produces no error message.
#[cfg(unix)]
#[test]
fn a_closed_pipe_is_not_an_error() {
    let dir = TestDir::new();
    dir.write("in.npy", npy::with_header("'|u1'", false, &[4 << 20], vec![7; 4 << 20]));
    dir.ok("create a.tet --from a=in.npy");
    let script = r#""$0" extract a.tet a -o - | head -c 10 >/dev/null; echo "${PIPESTATUS[0]}""#;
    let mut command = assert_cmd::Command::new("bash");
    command.current_dir(dir.0.path()).args(["-c", script, env!("CARGO_BIN_EXE_tet")]);
    let piped = run_command(&mut command);
    assert_eq!((piped.out.as_str(), piped.err.as_str()), ("0\n", ""));
}
