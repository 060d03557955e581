//! `tet append --along`, `set`, `unset`, `rename`, `copy` and `merge`.

use std::fmt::Write as _;

use tercet::tet::{AttrType, IntegrityStatus};

use super::npy::{Array, with_header};
use super::{CommandOutput, TestDir};
#[cfg(unix)]
use crate::support::killed::kill_at_every_stage;

/// The arrays of one day: `first` is the first number.
fn field(shape: &[u64], first: u64) -> Vec<u8> {
    let value = |n: u64| f32::from(((n + first) % 50_000) as u16);
    let values = (0..shape.iter().product::<u64>()).flat_map(|n| value(n).to_le_bytes());
    with_header("'<f4'", false, shape, values.collect())
}

fn hours(range: std::ops::Range<i64>) -> Vec<u8> {
    let count = (range.end - range.start) as u64;
    with_header("'<i8'", false, &[count], range.flat_map(i64::to_le_bytes).collect())
}

/// A file with two fields, their coordinates and labels, and arrays to append.
fn weather() -> TestDir {
    let dir = TestDir::new();
    for (name, first) in [("t2m", 0), ("u10", 1000), ("t2m+", 100), ("u10+", 1100)] {
        dir.write(&format!("{name}.npy"), field(&[4, 2, 3], first));
    }
    dir.write("time.npy", hours(0..4));
    dir.write("time+.npy", hours(4..8));
    dir.write("days.txt", "a\nb\nc\nd\n");
    dir.ok(
        "create a.tet --from t2m=t2m.npy --from u10=u10.npy --from time=time.npy --dims t2m:time,lat,lon \
         --dims u10:time,lat,lon --chunk t2m:2,2,2 --compression none --compression u10:zstd --attr t2m:units=K",
    );
    dir
}

fn values(dir: &TestDir, file: &str, dataset: &str) -> Vec<f32> {
    let file = dir.open(file);
    file.dataset(dataset).unwrap().read_all().unwrap().to_vec::<f32>().unwrap()
}

/// The output with the names of files only.
fn output(result: &CommandOutput) -> String {
    format!("{}{}", result.err, result.out)
}

#[test]
fn append_along_an_axis() {
    let dir = weather();
    let result =
        dir.ok("append a.tet --along time --from t2m=t2m+.npy --from u10=u10+.npy --from time=time+.npy");
    insta::assert_snapshot!("append_along", output(&result));
    let expected: Vec<f32> = (0u8..24).chain(100..124).map(f32::from).collect();
    assert_eq!(values(&dir, "a.tet", "t2m"), expected);
    let file = dir.open("a.tet");
    assert_eq!(file.dataset("time").unwrap().shape(), [8]);
    assert!(matches!(file.integrity_status(), IntegrityStatus::Checked { .. }));
    let last = file.history().last().unwrap();
    assert_eq!((last.op.as_str(), last.source.as_str()), ("append", "t2m+.npy, u10+.npy, time+.npy"));
    assert_eq!((&*last.params["along"], &*last.params["positions"]), ("time", "4"));
    assert_eq!(dir.ok("verify --deep a.tet").code, 0);
}

#[test]
fn append_along_a_later_axis() {
    let dir = TestDir::new();
    for (name, kind) in [("f8", ("f8", 8)), ("u1", ("u1", 1))] {
        let array = Array::new(kind, &[3, 4, 2]);
        dir.write("a.npy", array.file(false, false));
        for (axis, shape) in [[5, 4, 2], [3, 3, 2], [3, 4, 1]].iter().enumerate() {
            let more = Array::new(kind, shape);
            // Big-endian and in Fortran order.
            dir.write("b.npy", more.file(true, true));
            dir.ok("create a.tet --from a=a.npy --chunk 3,2,2 --force");
            dir.ok(&format!("append a.tet --along {axis} --from a=b.npy"));
            let outer: u64 = [3, 4, 2][..axis].iter().product();
            let run = |array: &Array, block: u64| {
                let len = array.values().len() / outer as usize;
                array.values()[block as usize * len..(block as usize + 1) * len].to_vec()
            };
            let expected: Vec<u8> =
                (0..outer).flat_map(|block| [run(&array, block), run(&more, block)].concat()).collect();
            let file = dir.open("a.tet");
            let found = file.dataset("a").unwrap().read_all().unwrap();
            assert!(found.bytes() == expected, "{name}, axis {axis}");
            assert_eq!(dir.ok("verify --deep a.tet").code, 0);
        }
    }
}

#[test]
fn refused_appends_explain_themselves() {
    let dir = weather();
    dir.ok("set a.tet t2m --labels time=days.txt");
    let before = dir.read("a.tet");
    dir.write("f8.npy", Array::new(("f8", 8), &[4, 2, 3]).file(false, false));
    dir.write("wide.npy", field(&[4, 2, 4], 0));
    let mut text = String::new();
    for args in [
        "--along time --from t2m=t2m+.npy",
        "--along time --from t2m=t2m+.npy --from time=time+.npy",
        "--along time --from t2m=t2m+.npy --from u10=u10+.npy --from time=time+.npy",
        "--along time --from t2m=t2m+.npy --from u10=u10+.npy --from time=time+.npy --labels time=e,f",
        "--along time --from u10=u10+.npy --from time=time+.npy --allow-partial --labels time=e,f,g,h",
        "--along time --from t2m=t2m+.npy --labels lat=e,f,g,h",
        "--along lon --from t2m=t2m.npy",
        "--along lon --from t2m=wide.npy --labels lon=x",
        "--along level --from t2m=t2m+.npy",
        "--along 3 --from t2m=t2m+.npy",
        "--along time --from t2m=f8.npy",
        "--along time --from t2m=wide.npy",
        "--along time --from q=t2m+.npy",
        "--from t2m=t2m+.npy",
    ] {
        let result = dir.tet(&format!("append a.tet {args}"));
        assert_eq!(result.code, if args.contains("lon=x") { 3 } else { 8 }, "{args}: {}", result.err);
        write!(text, "$ tet append a.tet {args}\n{}", result.err).unwrap();
    }
    insta::assert_snapshot!("append_refused", text);
    assert!(dir.read("a.tet") == before);
}

#[test]
fn labels_and_shorter_datasets() {
    let dir = weather();
    dir.ok("set a.tet t2m --labels time=days.txt");
    let result = dir.ok(
        "append a.tet --along time --from t2m=t2m+.npy --from time=time+.npy --labels time=e,f,a,h --allow-partial --json",
    );
    assert_eq!(
        result.err,
        "note: axis `time` keeps its length in `u10`\nwarning: axis `time` has `a` more than once now; `--sel time=a` selects all of \
         them if they are adjacent, and fails if they are not\n"
    );
    let json: serde_json::Value = serde_json::from_str(&result.out).unwrap();
    assert_eq!(
        (&json["along"], &json["positions"], &json["shorter"][0], &json["repeated"]),
        (&"time".into(), &4.into(), &"u10".into(), &"a".into())
    );
    let file = dir.open("a.tet");
    assert_eq!(file.dataset("t2m").unwrap().labels(0).unwrap(), ["a", "b", "c", "d", "e", "f", "a", "h"]);
    drop(file);
    // The other field follows.
    dir.ok("append a.tet --along time --from u10=u10+.npy");
    // Coordinates of a dataset, and labels among the new ones.
    let again = dir.ok("append a.tet --along time --from t2m=t2m.npy --from u10=u10.npy --from time=time.npy --labels time=i,j,k,l");
    assert!(again.err.contains("warning: axis `time` has"), "{}", again.err);
    let twice = dir.ok("append a.tet --along time --from t2m=t2m.npy --from u10=u10.npy --from time=time.npy --labels time=m,m,n,o");
    assert!(twice.err.contains("warning: axis `time` has `m` more than once"), "{}", twice.err);
    let clipped = dir.tet("append a.tet --along lon --from u10=u10.npy");
    assert_eq!(clipped.code, 8, "{}", clipped.err);
    assert_eq!(dir.ok("verify --deep a.tet").code, 0);
}

#[test]
fn a_clipped_chunk_needs_rechunk() {
    let dir = TestDir::new();
    dir.write("a.npy", field(&[5], 0));
    dir.write("b.npy", field(&[3], 5));
    dir.ok("create a.tet --from a=a.npy --chunk 4");
    let refused = dir.tet("append a.tet --along 0 --from a=b.npy");
    insta::assert_snapshot!("append_clipped", refused.err);
    dir.ok("append a.tet --along 0 --from a=b.npy --rechunk");
    assert_eq!(values(&dir, "a.tet", "a"), (0u8..8).map(f32::from).collect::<Vec<_>>());
    assert_eq!(dir.open("a.tet").chunk_count(), 2);
}

/// Values in chunks of 2, their coordinates in one chunk: it is clipped after the first append.
#[test]
fn small_coordinates_need_no_rechunk() {
    let dir = TestDir::new();
    for (name, first) in [("a", 0), ("b", 8)] {
        dir.write(&format!("{name}.npy"), field(&[4, 2], first));
    }
    dir.write("t.npy", hours(0..4));
    dir.write("u.npy", hours(4..6));
    dir.write("v.npy", hours(6..8));
    dir.write("c.npy", field(&[2, 2], 8));
    dir.ok("create a.tet --from a=a.npy --from time=t.npy --dims a:time,x --chunk a:2,2");
    dir.ok("append a.tet --along time --from a=c.npy --from time=u.npy");
    dir.ok("append a.tet --along time --from a=c.npy --from time=v.npy");
    let file = dir.open("a.tet");
    let time = file.dataset("time").unwrap();
    assert_eq!(time.read_all().unwrap().to_vec::<i64>().unwrap(), (0..8).collect::<Vec<_>>());
    assert_eq!((time.chunk_shape(), file.dataset("a").unwrap().shape()), (&[4][..], &[8, 2][..]));
    drop(file);
    assert_eq!(dir.ok("verify --deep a.tet").code, 0);
    // Other datasets with one axis need it.
    dir.ok("create b.tet --from a=t.npy --dims a:time --chunk a:3");
    let refused = dir.tet("append b.tet --along time --from a=u.npy");
    assert_eq!(refused.code, 8);
    assert!(
        refused.err.contains("dataset `a`: the last chunk on axis `time` is not complete"),
        "{}",
        refused.err
    );
}

#[test]
fn a_copied_dataset_has_its_coordinates() {
    let dir = weather();
    let selected = |file: &str| {
        let result = dir.ok(&format!("mean {file} t2m --sel time=2 -q"));
        assert_eq!(result.out, "14.5\n", "{file}");
        assert_eq!(dir.ok(&format!("verify --deep {file}")).code, 0);
    };
    let copied = dir.ok("copy a.tet:t2m b.tet");
    assert!(copied.err.contains("note: the coordinates `time` are copied as well"), "{}", copied.err);
    selected("b.tet");
    // Into an existing file.
    dir.ok("create c.tet --from x=t2m+.npy");
    dir.ok("copy a.tet:t2m c.tet");
    selected("c.tet");
    // By themselves, before and after.
    dir.ok("copy a.tet:time d.tet");
    dir.ok("copy a.tet:t2m d.tet");
    selected("d.tet");
    let copied = dir.ok("copy a.tet:t2m e.tet --no-coordinates");
    assert!(copied.err.contains("note: the coordinates `time` are not copied"), "{}", copied.err);
    assert_eq!(dir.tet("mean e.tet t2m --sel time=2").code, 8);
    let copied = dir.ok("copy a.tet:time e.tet");
    assert!(
        copied.err.contains("note: `t2m` had no coordinates for this axis, and has these now"),
        "{}",
        copied.err
    );
    selected("e.tet");
    // Other coordinates are refused, and so are those that another dataset would get.
    let refused = |args: &str, message: &str| {
        let result = dir.tet(args);
        assert_eq!(result.code, 8, "{args}: {}", result.err);
        assert!(result.err.contains(message), "{args}: {}", result.err);
    };
    dir.ok("create f.tet --from time=time+.npy");
    refused("copy a.tet:t2m f.tet", "dataset `t2m` would get other coordinates");
    dir.ok("create g.tet --from x=t2m+.npy --dims x:time,lat,lon");
    let message =
        "dataset `x` has no coordinates for axis `time`, and would get those of the copied dataset `time`";
    refused("copy a.tet:t2m g.tet", message);
    refused("copy a.tet:t2m g.tet", "hint: copy the dataset with `--no-coordinates`");
    dir.ok("copy a.tet:t2m g.tet --no-coordinates");
    refused("merge g.tet b.tet -o h.tet --rename b.tet:t2m=y", "`x` has no coordinates for axis `time`");
}

#[test]
fn attributes_are_typed() {
    let dir = weather();
    let result =
        dir.ok("set a.tet t2m level=850 scale_factor=0.01 ok=true range=[1,2] note=x --string version=1.0");
    assert!(
        result
            .out
            .starts_with("a.tet: `t2m`: set `level`, `note`, `ok`, `range`, `scale_factor`, `version`, "),
        "{}",
        result.out
    );
    dir.ok("set a.tet t2m _FillValue=-999 --type f32");
    dir.ok("set a.tet --file title=ERA5 year=2024 tags=[\"a\"] --json");
    let file = dir.open("a.tet");
    let info = file.dataset("t2m").unwrap().info().unwrap();
    let kind = |key: &str| info.attr(key).unwrap().kind();
    assert_eq!(kind("level"), AttrType::Number(None));
    assert_eq!(
        (kind("version"), kind("note"), kind("units")),
        (AttrType::String, AttrType::String, AttrType::String)
    );
    assert_eq!((kind("ok"), kind("range")), (AttrType::Bool, AttrType::Json));
    assert_eq!(info.attr("_FillValue").unwrap().as_f64(), Some(-999.0));
    let json = serde_json::to_value(&file.metadata().unwrap().file).unwrap();
    assert_eq!(json["attrs"], serde_json::json!({"title": "ERA5", "year": 2024, "tags": ["a"]}));
    drop(file);
    assert!(dir.ok("info a.tet").out.contains("  title:           ERA5\n"));
    dir.ok("unset a.tet t2m version level");
    dir.ok("unset a.tet --file year");
    dir.ok("rename a.tet --attr t2m note=comment");
    dir.ok("rename a.tet --file title=name");
    let file = dir.open("a.tet");
    let keys: Vec<&String> = file.dataset("t2m").unwrap().info().unwrap().attrs.keys().collect();
    assert_eq!(keys, ["_FillValue", "comment", "ok", "range", "scale_factor", "units"]);
    assert_eq!(
        file.metadata().unwrap().file.attrs().map(|(key, _)| key).collect::<Vec<_>>(),
        ["tags", "name"]
    );
    let ops: Vec<&str> = file.history().iter().map(|row| row.op.as_str()).collect();
    assert_eq!(ops, ["create", "set", "set", "set", "unset", "unset", "rename", "rename"]);
    assert_eq!(dir.ok("verify --deep a.tet").code, 0);
}

#[test]
fn names_and_labels_are_changed() {
    let dir = weather();
    dir.ok("set a.tet t2m --labels time=days.txt");
    let result = dir.ok("rename a.tet --dim time=t");
    assert!(
        result.out.starts_with("a.tet: renamed axis of `t2m`, `u10`, `t` `time` to `t`, "),
        "{}",
        result.out
    );
    dir.ok("rename a.tet --label t t2m b=B");
    dir.ok("rename a.tet t2m grp/t2m");
    dir.ok("rename a.tet --dim t 0=t");
    let file = dir.open("a.tet");
    let t2m = file.dataset("grp/t2m").unwrap();
    assert_eq!((t2m.axis_name(0), t2m.labels(0).unwrap()[1].as_str()), (Some("t"), "B"));
    drop(file);
    let note = dir.ok("rename a.tet t time");
    assert!(
        note.err.starts_with("note: axis `t` of `grp/t2m`, `u10` has no coordinates now"),
        "{}",
        note.err
    );
    let unset = dir.ok("unset a.tet grp/t2m --labels t");
    assert!(unset.out.starts_with("a.tet: `grp/t2m`: removed labels of `t`, "), "{}", unset.out);
    assert!(dir.open("a.tet").dataset("grp/t2m").unwrap().labels(0).is_none());
    assert_eq!(values(&dir, "a.tet", "grp/t2m").len(), 24);
    assert_eq!(dir.ok("verify --deep a.tet").code, 0);
}

#[test]
fn refused_edits_explain_themselves() {
    let dir = weather();
    dir.ok("append a.tet --from mask=t2m.npy");
    let before = dir.read("a.tet");
    let mut text = String::new();
    for args in [
        "set a.tet units=K",
        "set a.tet units=K x=1",
        "set a.tet",
        "set a.tet t2m",
        "set a.tet q x=1",
        "set a.tet t2m x",
        "set a.tet t2m x=",
        "set a.tet t2m x=[K]",
        "set a.tet t2m x=1 x=2",
        "set a.tet t2m x=1.5 --type i16",
        "set a.tet t2m _FillValue=none",
        "set a.tet t2m scale_factor=0",
        "set a.tet t2m --dims time,lat",
        "set a.tet t2m --dims time,lat,lat",
        "set a.tet t2m --labels time=none.txt",
        "set a.tet t2m --labels time=a,b",
        "unset a.tet t2m q",
        "unset a.tet --file q",
        "unset a.tet t2m --labels time",
        "rename a.tet t2m u10",
        "rename a.tet t2m",
        "rename a.tet --dim t2m time=lat",
        "rename a.tet --dim level=z",
        "rename a.tet --dim mask 0=t",
        "rename a.tet --attr t2m units",
        "copy a.tet:q b.tet",
        "copy a.tet:t2m a.tet",
        "copy a.tet b.tet:t2m",
        "merge a.tet none.tet -o b.tet",
        "merge a.tet time.npy -o b.tet",
        "merge a.tet -o a.tet --force",
        "merge a.tet -o b.tet --rename q=r",
    ] {
        let result = dir.tet(args);
        assert_ne!(result.code, 0, "{args}");
        write!(text, "$ tet {args}\n{}", result.err).unwrap();
    }
    insta::assert_snapshot!("edit_refused", text);
    assert!(dir.read("a.tet") == before);
    assert!(!dir.names().contains(&"b.tet".to_owned()));
}

/// The stored bytes of all chunks of a dataset.
fn stored(dir: &TestDir, file: &str, dataset: &str) -> Vec<Vec<u8>> {
    let (bytes, file) = (dir.read(file), dir.open(file));
    let dataset = file.dataset(dataset).unwrap();
    let grid = dataset.grid().unwrap();
    let span = |linear| dataset.chunk_ref(&grid.coords(linear)[..grid.rank()]).unwrap().span;
    (0..grid.chunk_count())
        .map(|n| bytes[span(n).start() as usize..span(n).end() as usize].to_vec())
        .collect()
}

#[test]
fn datasets_are_copied_as_they_are_stored() {
    let dir = weather();
    dir.ok("set a.tet --file title=A");
    dir.ok("copy a.tet:u10 b.tet");
    dir.ok("copy a.tet:u10 b.tet:wind");
    dir.ok("copy b.tet:wind b.tet:again");
    dir.ok("copy a.tet c.tet");
    assert_eq!(
        dir.open("b.tet").datasets().map(|dataset| dataset.name()).collect::<Vec<_>>(),
        ["u10", "time", "wind", "again"]
    );
    for name in ["u10", "wind", "again"] {
        assert!(stored(&dir, "b.tet", name) == stored(&dir, "a.tet", "u10"), "{name}");
    }
    for name in ["t2m", "u10", "time"] {
        assert!(stored(&dir, "c.tet", name) == stored(&dir, "a.tet", name), "{name}");
    }
    let (a, c) = (dir.open("a.tet"), dir.open("c.tet"));
    assert_eq!(a.metadata().unwrap().datasets, c.metadata().unwrap().datasets);
    assert_eq!(c.metadata().unwrap().file.attr("title").unwrap().text(), "A");
    let ops: Vec<&str> = c.history().iter().map(|row| row.op.as_str()).collect();
    assert_eq!(ops, ["create", "set", "copy"]);
    for name in ["b.tet", "c.tet"] {
        assert_eq!(dir.ok(&format!("verify --deep {name}")).code, 0);
    }
}

#[test]
fn files_are_merged() {
    let dir = weather();
    dir.write("v10.npy", field(&[3, 2, 3], 7));
    dir.ok("create b.tet --from v10=v10.npy --from time=time.npy --compression none --dims v10:time,lat,lon");
    dir.ok("set a.tet --file title=A");
    dir.ok("set b.tet --file title=B source=b");
    let result = dir.ok("merge a.tet b.tet -o c.tet");
    insta::assert_snapshot!("merged", output(&result));
    let file = dir.open("c.tet");
    assert_eq!(file.metadata().unwrap().file.attr("title").unwrap().text(), "A");
    assert_eq!(file.metadata().unwrap().file.attr("source").unwrap().text(), "b");
    let last = file.history().last().unwrap();
    assert_eq!((last.op.as_str(), last.source.as_str(), last.parents.len()), ("merge", "a.tet, b.tet", 2));
    drop(file);
    assert!(stored(&dir, "c.tet", "u10") == stored(&dir, "a.tet", "u10"));
    assert_eq!(dir.ok("verify --deep c.tet").code, 0);

    dir.ok("create d.tet --from t2m=t2m+.npy");
    let refused = dir.tet("merge a.tet d.tet -o e.tet");
    insta::assert_snapshot!("merge_refused", refused.err);
    let ambiguous = dir.tet("merge a.tet d.tet -o e.tet --rename t2m=x");
    insta::assert_snapshot!("merge_ambiguous", ambiguous.err);
    dir.ok("merge a.tet d.tet -o e.tet --rename d.tet:t2m=x");
    assert_eq!(values(&dir, "e.tet", "x"), values(&dir, "d.tet", "t2m"));
    let piped = dir.ok("merge a.tet d.tet -o - --rename d.tet:t2m=x");
    assert!(piped.bytes.starts_with(b"TETR") && piped.bytes.len() > 1000);
}

#[test]
fn damaged_inputs_are_not_merged() {
    let dir = weather();
    dir.ok("copy a.tet b.tet");
    let mut bytes = dir.read("b.tet");
    let at = dir.open("b.tet").dataset("u10").unwrap().chunk_ref(&[0, 0, 0]).unwrap().span.start() as usize;
    bytes[at + 3] ^= 4;
    dir.write("b.tet", &bytes);
    for args in ["merge b.tet -o c.tet", "copy b.tet:u10 c.tet", "copy b.tet c.tet", "set b.tet t2m x=1"] {
        let result = dir.tet(args);
        assert_eq!(result.code, 5, "{args}: {}", result.err);
        assert!(result.err.contains("b.tet: dataset `u10`, chunk [0, 0, 0]"), "{args}: {}", result.err);
    }
    assert!(dir.read("b.tet") == bytes);
    for len in [0, 10, 40, 500, bytes.len() - 1] {
        dir.write("t.tet", &bytes[..len]);
        for args in [
            "merge t.tet -o c.tet",
            "copy t.tet:u10 c.tet",
            "set t.tet t2m x=1",
            "append t.tet --along 0 --from t2m=t2m.npy",
        ] {
            let result = dir.tet(args);
            assert!(result.code >= 4 && result.code <= 5, "{len} {args}: {} {}", result.code, result.err);
        }
    }
    assert!(!dir.names().contains(&"c.tet".to_owned()));
}

#[cfg(unix)]
#[test]
fn killed_commands_leave_the_old_file() {
    let dir = TestDir::new();
    let rows = 64u64;
    dir.write("a.npy", field(&[rows, 40_000], 0));
    dir.write("b.npy", field(&[rows, 40_000], 5));
    dir.ok("create a.tet --from a=a.npy --chunk 3,40000 --compression zstd");
    for args in ["append a.tet --along 0 --from a=b.npy --rechunk", "set a.tet a units=K", "rename a.tet a b"]
    {
        let old = dir.read("a.tet");
        kill_at_every_stage(&dir, args, 0, "a.tet");
        dir.write("a.tet", old);
    }
}
