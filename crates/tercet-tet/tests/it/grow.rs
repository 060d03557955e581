//! Appending along an axis, editing, merging and copying: against plain models.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use tercet_core::progress::NoProgress;
use tercet_core::{Class, DType, Diagnostic as _, ElementType, TensorView};
use tercet_tet::{
    Append, AttrValue, Compression, Error, File, HistoryRow, Layout, Merge, NewValues, Rewrite,
    VerifyOptions, Writer, WriterOptions,
};

use crate::arrays::{Array, any_array, assert_stats, naive_stats};
use crate::verify_path;

/// Joins two arrays along an axis, as `numpy.concatenate` does.
fn concatenate(first: &Array, second: &Array, axis: usize) -> Array {
    let size = first.dtype.size();
    let run = |array: &Array| array.shape[axis..].iter().product::<u64>() as usize * size;
    let outer = first.shape[..axis].iter().product::<u64>() as usize;
    let mut bytes = Vec::new();
    for block in 0..outer {
        for array in [first, second] {
            bytes.extend(&array.bytes[block * run(array)..(block + 1) * run(array)]);
        }
    }
    let mut shape = first.shape.clone();
    shape[axis] += second.shape[axis];
    Array { shape, bytes, ..first.clone() }
}

/// An array with the shape of another but for one axis.
fn extension(array: &Array, axis: usize, count: u64, seed: u8) -> Array {
    let mut shape = array.shape.clone();
    shape[axis] = count;
    let bytes = shape.iter().product::<u64>() as usize * array.dtype.size();
    let bytes = (0..bytes).map(|n| (n as u8).wrapping_mul(37).wrapping_add(seed)).collect();
    Array { shape, bytes, ..array.clone() }
}

fn layout_of(arrays: &[&Array]) -> Layout {
    let mut layout = Layout::new();
    for array in arrays {
        let id = layout.dataset(&array.name, array.dtype, &array.shape, &array.chunk_shape).unwrap();
        layout.compress(id, array.compression).unwrap();
    }
    layout
}

fn write(path: &Path, arrays: &[&Array], options: WriterOptions) {
    write_layout(path, &layout_of(arrays), arrays, options);
}

fn write_layout(path: &Path, layout: &Layout, arrays: &[&Array], options: WriterOptions) {
    let mut writer = Writer::create(path, layout.clone(), options.with_overwrite(true)).unwrap();
    for array in arrays {
        writer.array(layout.find(&array.name).unwrap(), array.view()).unwrap();
    }
    writer.finish().unwrap();
}

/// Fills a buffer with a box of one of the arrays.
fn values(arrays: &[&Array]) -> impl Fn(&NewValues<'_>, usize, &mut [u8]) + Sync {
    let arrays: Vec<Array> = arrays.iter().map(|&array| array.clone()).collect();
    move |values, number, out| {
        let slices = values
            .start
            .iter()
            .zip(values.extents)
            .map(|(&start, &extent)| tercet_core::tensor::AxisSlice { start, stop: start + extent, step: 1 });
        out.copy_from_slice(&arrays[number].naive(&slices.collect::<Vec<_>>()));
    }
}

fn append(
    path: &Path,
    plan: &Append,
    arrays: &[&Array],
    options: WriterOptions,
) -> Result<Vec<String>, Error> {
    let mut rewrite = Rewrite::open(path)?;
    let appended = rewrite.append(plan)?;
    let fill = values(arrays);
    let values = |values: &NewValues<'_>, out: &mut [u8]| {
        let number = appended.datasets.iter().position(|id| *id == values.dataset).unwrap();
        fill(values, number, out);
        Ok::<(), Error>(())
    };
    rewrite.start_with(HistoryRow::at("append", "test", 2), options, values, &NoProgress)?.finish()?;
    Ok(appended.shorter)
}

fn plan(axis: &str, arrays: &[&Array]) -> Append {
    arrays
        .iter()
        .fold(Append::along(axis), |plan, array| plan.with_array(&array.name, array.dtype, &array.shape))
}

/// Verifies every byte.
fn assert_valid(path: &Path) {
    let report = verify_path(path, VerifyOptions::new().with_deep(true), &NoProgress).unwrap();
    let problems: Vec<_> = report.failures().collect();
    assert!(report.ok && problems.is_empty(), "{problems:?}");
}

/// The stored bytes of the chunks of a dataset.
fn stored(path: &Path, name: &str) -> BTreeMap<Vec<u64>, Vec<u8>> {
    let file = File::open(path).unwrap();
    let bytes = std::fs::read(path).unwrap();
    let dataset = file.dataset(name).unwrap();
    let grid = dataset.grid().unwrap();
    let chunk = |linear| {
        let tile = grid.coords(linear)[..grid.rank()].to_vec();
        let span = dataset.chunk_ref(&tile).unwrap().span;
        (tile, bytes[span.start() as usize..span.end() as usize].to_vec())
    };
    (0..grid.chunk_count()).map(chunk).collect()
}

fn check(path: &Path, expected: &[&Array]) {
    let file = File::open(path).unwrap();
    for array in expected {
        let dataset = file.dataset(&array.name).unwrap();
        assert_eq!(dataset.shape(), array.shape, "{}", array.name);
        assert!(dataset.read_all().unwrap().bytes() == array.bytes, "{}", array.name);
        for (coords, axes) in array.chunks() {
            let bytes = array.naive(&axes);
            let stats = dataset.chunk_stats(&coords).unwrap().expect("statistics");
            assert_stats(stats, naive_stats(array.dtype, &bytes), array.dtype, &bytes);
        }
    }
    drop(file);
    assert_valid(path);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(96)))]

    #[test]
    fn appended_arrays_equal_concatenated_arrays(
        array in any_array("a"),
        other in any_array("other"),
        axis in any::<usize>(),
        counts in prop::collection::vec(1u64..9, 1..4),
        interop in any::<bool>(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.tet");
        let axis = axis % array.shape.len();
        write(&path, &[&array, &other], if interop { WriterOptions::interop() } else { WriterOptions::new() });
        let mut model = array.clone();
        for (round, count) in counts.into_iter().enumerate() {
            let next = extension(&array, axis, count, round as u8);
            let before = stored(&path, "a");
            let clipped = model.shape[axis] % model.chunk_shape[axis] != 0;
            let strict = plan(&axis.to_string(), &[&next]);
            if clipped {
                let old = std::fs::read(&path).unwrap();
                let refused = append(&path, &strict, &[&next], WriterOptions::new()).unwrap_err();
                prop_assert_eq!(refused.class(), Class::Request);
                prop_assert!(std::fs::read(&path).unwrap() == old);
            }
            append(&path, &strict.with_rechunk(clipped), &[&next], WriterOptions::new()).unwrap();
            let edge = model.shape[axis] / model.chunk_shape[axis];
            model = concatenate(&model, &next, axis);
            check(&path, &[&model, &other]);
            let after = stored(&path, "a");
            for (tile, bytes) in &before {
                if tile[axis] < edge {
                    prop_assert!(after[tile] == *bytes, "chunk {:?} was changed", tile);
                }
            }
            let report = verify_path(&path, VerifyOptions::new(), &NoProgress).unwrap();
            prop_assert!(report.findings.iter().all(|finding| finding.code != "payload_order"));
        }
        let file = File::open(&path).unwrap();
        prop_assert_eq!(file.history().last().unwrap().op.as_str(), "append");
    }
}

mod edits;

const TIMES: [&str; 4] = ["00", "06", "12", "18"];

fn labels(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn array(name: &str, dtype: ElementType, shape: &[u64], chunk: &[u64]) -> Array {
    let bytes = shape.iter().product::<u64>() as usize * dtype.size();
    Array {
        name: name.to_owned(),
        dtype,
        shape: shape.to_vec(),
        chunk_shape: chunk.to_vec(),
        compression: Compression::None,
        bytes: (0..bytes).map(|n| (n % 61) as u8).collect(),
    }
}

/// Two fields over time with labels and coordinates, and a mask without time.
fn weather(path: &Path) -> [Array; 4] {
    let arrays = [
        array("t2m", ElementType::F32, &[4, 3], &[2, 2]),
        array("u10", ElementType::F32, &[4, 3], &[4, 3]),
        array("time", ElementType::I64, &[4], &[4]),
        array("mask", ElementType::U8, &[4, 3], &[4, 3]),
    ];
    let all: Vec<&Array> = arrays.iter().collect();
    let mut layout = layout_of(&all);
    for name in ["t2m", "u10"] {
        let id = layout.find(name).unwrap();
        layout.dims(id, ["time", "lon"]).unwrap();
        layout.labels(id, "time", labels(&TIMES)).unwrap();
    }
    let mask = layout.find("mask").unwrap();
    layout.dims(mask, ["lat", "lon"]).unwrap();
    write_layout(path, &layout, &all, WriterOptions::new());
    arrays
}

#[test]
fn labels_and_coordinates_grow_with_the_axis() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tet");
    let [t2m, u10, time, mask] = weather(&path);
    let more = [&t2m, &u10, &time].map(|array| extension(array, 0, 2, 7));
    let more: Vec<&Array> = more.iter().collect();
    let new = labels(&["00+1", "06+1"]);
    let left = append(&path, &plan("time", &more).with_labels(new), &more, WriterOptions::new()).unwrap();
    assert_eq!(left, Vec::<String>::new());
    let grown = [(&t2m, more[0]), (&u10, more[1]), (&time, more[2])].map(|(a, b)| concatenate(a, b, 0));
    check(&path, &[&grown[0], &grown[1], &grown[2], &mask]);
    let file = File::open(&path).unwrap();
    for name in ["t2m", "u10"] {
        let expected = labels(&[&TIMES[..], &["00+1", "06+1"]].concat());
        assert_eq!(file.dataset(name).unwrap().labels(0), Some(&expected[..]), "{name}");
    }
}

#[test]
fn long_labels_grow_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tet");
    let a = array("a", ElementType::U8, &[60], &[20]);
    let mut layout = layout_of(&[&a]);
    let id = layout.find("a").unwrap();
    let names = |range: std::ops::Range<u64>| range.map(|n| format!("L{n}")).collect::<Vec<_>>();
    layout.labels(id, "0", names(0..60)).unwrap();
    write_layout(&path, &layout, &[&a], WriterOptions::new());
    let mut model = a.clone();
    for round in 0..3 {
        let next = extension(&a, 0, 20, round);
        let first = 60 + 20 * u64::from(round);
        let plan = plan("0", &[&next]).with_labels(names(first..first + 20));
        append(&path, &plan, &[&next], WriterOptions::new()).unwrap();
        model = concatenate(&model, &next, 0);
        check(&path, &[&model]);
        let file = File::open(&path).unwrap();
        assert_eq!(file.dataset("a").unwrap().labels(0), Some(&names(0..first + 20)[..]));
    }
}

#[test]
fn inconsistent_appends_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tet");
    let [t2m, u10, time, _] = weather(&path);
    let before = std::fs::read(&path).unwrap();
    let grow = |array: &Array, count| extension(array, 0, count, 1);
    let (t, u, c) = (grow(&t2m, 2), grow(&u10, 2), grow(&time, 2));
    let two = labels(&["a", "b"]);
    let wide = Array { shape: vec![2, 4], ..t.clone() };
    let deep = Array { shape: vec![2, 3, 1], ..t.clone() };
    let double = Array { dtype: ElementType::I32, ..t.clone() };
    let cases: [(&str, &str, Append, Option<&str>); 13] = [
        ("time", "has labels, but the new positions have none", plan("time", &[&t, &u, &c]), Some("labels")),
        (
            "time",
            "axis `time` gets 2 new positions, but 1 label is given",
            plan("time", &[&t, &u, &c]).with_labels(labels(&["a"])),
            None,
        ),
        (
            "time",
            "`time` holds the coordinates of axis `time`",
            plan("time", &[&t, &u]).with_labels(two.clone()),
            Some("append to it too: time"),
        ),
        (
            "time",
            "`time` holds the coordinates",
            plan("time", &[&t]).with_labels(two.clone()).with_allow_partial(true),
            None,
        ),
        (
            "time",
            "which would keep their length: `u10`",
            plan("time", &[&t, &c]).with_labels(two.clone()),
            Some("u10"),
        ),
        ("time", "dataset `t2m` is 4×3, but the appended array is 2×4", plan("time", &[&wide]), None),
        ("time", "but the appended array is 2×3×1", plan("time", &[&deep]), None),
        ("time", "dataset `t2m` is f32, but the appended array is i32", plan("time", &[&double]), None),
        (
            "time",
            "has 1 new position, but the one before has 2",
            plan("time", &[&t, &grow(&u10, 1), &c]),
            None,
        ),
        ("time", "dataset `t2m` is given more than once", plan("time", &[&t, &t]), None),
        ("level", "dataset `t2m` has no axis `level`", plan("level", &[&t]), Some("time, lon")),
        (
            "time",
            "has no dataset `q`",
            plan("time", &[&Array { name: "q".into(), ..t.clone() }]),
            Some("t2m"),
        ),
        (
            "lon",
            "the last chunk on axis `lon` is not complete: 3 positions in chunks of 2",
            plan("lon", &[&extension(&t2m, 1, 2, 1)]),
            Some("encoded again"),
        ),
    ];
    for (axis, message, plan, hint) in cases {
        let mut rewrite = Rewrite::open(&path).unwrap();
        let error = rewrite.append(&plan).unwrap_err();
        assert!(error.to_string().contains(message), "{axis}: {error}");
        assert_eq!(error.class(), Class::Request);
        if let Some(hint) = hint {
            assert!(error.hint().unwrap().to_string().contains(hint), "{error}: {:?}", error.hint());
        }
        // Nothing of a refused change is kept.
        rewrite.start(HistoryRow::at("none", "test", 2), WriterOptions::new(), &NoProgress).unwrap();
    }
    assert!(std::fs::read(&path).unwrap() == before);

    // Datasets that kept their length on purpose can follow later.
    let plan1 = plan("time", &[&t, &c]).with_labels(two.clone()).with_allow_partial(true);
    assert_eq!(append(&path, &plan1, &[&t, &c], WriterOptions::new()).unwrap(), ["u10"]);
    let plan2 = plan("time", &[&u]).with_labels(two);
    assert_eq!(append(&path, &plan2, &[&u], WriterOptions::new()).unwrap(), Vec::<String>::new());
    check(&path, &[&concatenate(&t2m, &t, 0), &concatenate(&u10, &u, 0), &concatenate(&time, &c, 0)]);
}

#[test]
fn growth_needs_values() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tet");
    let a = array("a", ElementType::U8, &[4], &[2]);
    write(&path, &[&a], WriterOptions::new());
    let mut rewrite = Rewrite::open(&path).unwrap();
    rewrite.append(&plan("0", &[&a])).unwrap();
    assert!(rewrite.append(&plan("0", &[&a])).is_err(), "it grows already");
    let error = rewrite.start(HistoryRow::now("a", "b"), WriterOptions::new(), &NoProgress).unwrap_err();
    assert!(error.to_string().contains("no new values"), "{error}");
    check(&path, &[&a]);
}

#[test]
fn a_failed_source_leaves_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tet");
    let a = array("a", ElementType::U8, &[40], &[4]);
    write(&path, &[&a], WriterOptions::new());
    let before = std::fs::read(&path).unwrap();
    let mut rewrite = Rewrite::open(&path).unwrap();
    rewrite.append(&plan("0", &[&a])).unwrap();
    let fail = |values: &NewValues<'_>, _: &mut [u8]| {
        if values.start[0] > 8 { Err(File::from_bytes("input", Vec::new()).unwrap_err()) } else { Ok(()) }
    };
    let error =
        rewrite.start_with(HistoryRow::now("a", "b"), WriterOptions::new(), fail, &NoProgress).unwrap_err();
    assert_eq!(error.location(), "input");
    assert!(std::fs::read(&path).unwrap() == before);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn damage_is_not_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tet");
    let a = array("a", ElementType::U8, &[10], &[4]);
    write(&path, &[&a], WriterOptions::new());
    let span = File::open(&path).unwrap().dataset("a").unwrap().chunk_ref(&[2]).unwrap().span;
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[span.start() as usize] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    // The clipped chunk is decoded; it is checked first.
    let error = append(&path, &plan("0", &[&a]).with_rechunk(true), &[&a], WriterOptions::new()).unwrap_err();
    assert_eq!(error.class(), Class::Corrupt, "{error}");
    assert!(std::fs::read(&path).unwrap() == bytes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(48)))]

    #[test]
    fn merged_files_hold_all_datasets(
        first in any_array("a"),
        second in any_array("b"),
        shared in any_array("time"),
        interop in any::<bool>(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let (one, two) = (directory.path().join("1.tet"), directory.path().join("2.tet"));
        let options = if interop { WriterOptions::interop() } else { WriterOptions::new() };
        write(&one, &[&shared, &first], options);
        // The same values in other chunks.
        let rechunked = Array { chunk_shape: shared.shape.clone(), ..shared.clone() };
        write(&two, &[&second, &rechunked], WriterOptions::new());
        let open = |path: &Path| Arc::new(File::open(path).unwrap());
        let mut merge = Merge::new();
        merge.add(&open(&one), str::to_owned, &NoProgress).unwrap();
        merge.add(&open(&two), str::to_owned, &NoProgress).unwrap();
        let (layout, report) = merge.finish();
        prop_assert_eq!(&report.equal, &["time"]);
        let out = directory.path().join("out.tet");
        let mut writer = Writer::create(&out, layout, WriterOptions::new()).unwrap();
        writer.copy_stored(&NoProgress).unwrap();
        writer.finish().unwrap();
        check(&out, &[&shared, &first, &second]);
        prop_assert!(stored(&out, "a") == stored(&one, "a") && stored(&out, "b") == stored(&two, "b"));

        // A different dataset of the same name.
        let mut other = shared.clone();
        other.bytes[0] ^= 1;
        write(&two, &[&other], WriterOptions::new());
        let mut merge = Merge::new();
        merge.add(&open(&one), str::to_owned, &NoProgress).unwrap();
        let error = merge.add(&open(&two), str::to_owned, &NoProgress).unwrap_err();
        prop_assert!(error.to_string().contains("dataset `time` differs"), "{}", error);
        let mut merge = Merge::new();
        merge.add(&open(&one), str::to_owned, &NoProgress).unwrap();
        merge.add(&open(&two), |name| format!("{name}_2"), &NoProgress).unwrap();
        let (layout, _) = merge.finish();
        prop_assert_eq!(layout.names().collect::<Vec<_>>(), ["time", "a", "time_2"]);
    }
}

#[test]
fn unknown_members_survive_every_edit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tet");
    let a = array("a", ElementType::U8, &[4], &[2]);
    let mut layout = layout_of(&[&a]);
    let text = r#"{"file":{"tool":"x","y":[1]},"datasets":{"a":{"attrs":{"k":"v"},"dim_names":["t"],"coords":{"t":{"labels":["p","q","r","s"],"u":0}},"z":1}},"later":{"deep":null}}"#;
    layout.metadata(serde_json::from_str(text).unwrap()).unwrap();
    write_layout(&path, &layout, &[&a], WriterOptions::new());
    let rewrite = |change: &dyn Fn(&mut Layout)| {
        let mut rewrite = Rewrite::open(&path).unwrap();
        change(rewrite.layout());
        rewrite
            .start(HistoryRow::at("x", "y", 1), WriterOptions::new(), &NoProgress)
            .unwrap()
            .finish()
            .unwrap();
    };
    let id = |layout: &Layout, name: &str| layout.find(name).unwrap();
    rewrite(&|layout| layout.set_attr(id(layout, "a"), "n", &"1".into()).unwrap());
    rewrite(&|layout| layout.rename(id(layout, "a"), "b").unwrap());
    rewrite(&|layout| layout.rename_axis(id(layout, "b"), "t", "time").unwrap());
    rewrite(&|layout| layout.set_file_attr("title", &"T".into()).unwrap());
    rewrite(&|layout| layout.rename_label(id(layout, "b"), "time", "q", "Q").unwrap());
    rewrite(&|layout| layout.rename_attr(id(layout, "b"), "n", "m").unwrap());
    let next = Array { name: "b".to_owned(), ..extension(&a, 0, 2, 1) };
    let plan = plan("time", &[&next]).with_labels(labels(&["5", "6"]));
    append(&path, &plan, &[&next], WriterOptions::new()).unwrap();
    let file = File::open(&path).unwrap();
    let metadata = serde_json::to_string(file.metadata().unwrap()).unwrap();
    assert_eq!(
        metadata,
        r#"{"file":{"tool":"x","y":[1],"attrs":{"title":"T"}},"datasets":{"b":{"attrs":{"k":"v","m":"1"},"dim_names":["time"],"coords":{"time":{"labels":["p","Q","r","s","5","6"],"u":0}},"z":1,"attr_types":{"m":"string"}}},"later":{"deep":null}}"#
    );
    rewrite(&|layout| layout.remove_attr(id(layout, "b"), "m").unwrap());
    rewrite(&|layout| layout.remove_labels(id(layout, "b"), "time").unwrap());
    rewrite(&|layout| layout.remove_file_attr("title").unwrap());
    let file = File::open(&path).unwrap();
    let metadata = serde_json::to_string(file.metadata().unwrap()).unwrap();
    assert_eq!(
        metadata,
        r#"{"file":{"tool":"x","y":[1]},"datasets":{"b":{"attrs":{"k":"v"},"dim_names":["time"],"z":1}},"later":{"deep":null}}"#
    );
    assert_valid(&path);
}

#[test]
fn axes_and_their_coordinates_are_renamed_together() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tet");
    weather(&path);
    let mut rewrite = Rewrite::open(&path).unwrap();
    let changed = rewrite.layout().rename_axis_everywhere("time", "t").unwrap();
    assert_eq!(changed.len(), 3);
    assert!(rewrite.layout().rename_axis_everywhere("time", "t").is_err());
    rewrite.start(HistoryRow::at("x", "y", 1), WriterOptions::new(), &NoProgress).unwrap().finish().unwrap();
    let file = File::open(&path).unwrap();
    assert_eq!(
        file.datasets().map(|dataset| dataset.name()).collect::<Vec<_>>(),
        ["t2m", "u10", "t", "mask"]
    );
    let t2m = file.dataset("t2m").unwrap();
    assert_eq!((t2m.axis_name(0), t2m.labels(0)), (Some("t"), Some(&labels(&TIMES)[..])));
}

#[test]
fn every_golden_file_can_be_edited() {
    let directory = tempfile::tempdir().unwrap();
    let mut edited = 0;
    for (name, bytes) in crate::golden::valid_files() {
        let path = directory.path().join("a.tet");
        std::fs::write(&path, &bytes).unwrap();
        let old = File::from_bytes("old", bytes).unwrap();
        let mut rewrite = Rewrite::open(&path).unwrap();
        rewrite.layout().set_file_attr("title", &"x".into()).unwrap();
        for dataset in old.datasets() {
            let id = rewrite.dataset(dataset.name()).unwrap();
            // A file may have as many attributes as the format allows.
            let is_full = dataset.info().is_some_and(|info| info.attrs.len() >= 64);
            if !is_full {
                rewrite.layout().set_attr(id, "n", &7.into()).unwrap();
            }
        }
        let written = rewrite.start(HistoryRow::now("set", "test"), WriterOptions::new(), &NoProgress);
        written.and_then(Writer::finish).unwrap_or_else(|error| panic!("{name}: {error}"));
        let new = File::open(&path).unwrap();
        for (old, new) in old.datasets().zip(new.datasets()) {
            assert_eq!(old.read_all().unwrap().bytes(), new.read_all().unwrap().bytes(), "{name}");
            let is_full = old.info().is_some_and(|info| info.attrs.len() >= 64);
            assert!(is_full || new.info().unwrap().attrs["n"] == "7", "{name}");
        }
        drop(new);
        assert_valid(&path);

        // Each dataset grows along each of its axes.
        for dataset in old.datasets().filter(|dataset| !dataset.name().is_empty()) {
            for axis in 0..dataset.shape().len() {
                // Longer already along the axes before this one.
                let mut shape = File::open(&path).unwrap().dataset(dataset.name()).unwrap().shape().to_vec();
                shape[axis] = 2;
                let mut append = Append::along(&axis.to_string()).with_array(
                    dataset.name(),
                    dataset.dtype().unwrap(),
                    &shape,
                );
                append = append.with_rechunk(true).with_allow_partial(true);
                let mut rewrite = Rewrite::open(&path).unwrap();
                let id = rewrite.dataset(dataset.name()).unwrap();
                let labelled =
                    File::open(&path).unwrap().dataset(dataset.name()).unwrap().labels(axis).is_some();
                if labelled {
                    append = append.with_labels(labels(&["x", "y"]));
                }
                assert!(
                    rewrite.append(&append).unwrap_or_else(|error| panic!("{name}: {error}")).datasets
                        == [id]
                );
                let ones = |_: &NewValues<'_>, out: &mut [u8]| {
                    out.fill(1);
                    Ok::<(), Error>(())
                };
                let history = HistoryRow::at("append", "test", 1);
                let written = rewrite.start_with(history, WriterOptions::new(), ones, &NoProgress);
                written.and_then(Writer::finish).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_valid(&path);
            }
        }
        edited += 1;
    }
    // Without the golden directory there are none.
    assert!(edited == 0 || edited > 50, "{edited} files");
}

/// A value of every type.
fn sample_value(number: u8) -> AttrValue {
    match number {
        0 => 5.into(),
        1 => 0.25.into(),
        2 => true.into(),
        3 => "text".into(),
        4 => "850".into(),
        5 => "[1".into(),
        6 => AttrValue::parse("[1, {\"a\": \"b\"}]").unwrap(),
        7 => AttrValue::number("7", ElementType::I16).unwrap(),
        _ => "\"quoted\"".into(),
    }
}

#[test]
fn typed_attributes_are_read_back() {
    let mut layout = Layout::new();
    let id = layout.dataset("a", DType::I16, [2], [2]).unwrap();
    for number in 0..9 {
        layout.set_attr(id, &format!("k{number}"), &sample_value(number)).unwrap();
    }
    layout.set_attr(id, "_FillValue", &"-999".into()).unwrap();
    assert!(layout.set_attr(id, "_FillValue", &"70000".into()).is_err());
    assert!(layout.set_attr(id, "scale_factor", &"x".into()).is_err());
    layout.set_attr(id, "scale_factor", &0.5.into()).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    writer.array(id, TensorView::from_slice(&[2], &[1i16, 2]).unwrap()).unwrap();
    let file = File::from_bytes("m", writer.finish().unwrap().output).unwrap();
    let info = file.dataset("a").unwrap().info().unwrap();
    for number in 0..9 {
        assert_eq!(info.attr(&format!("k{number}")), Some(sample_value(number)));
    }
    assert_eq!(info.attr("_FillValue").unwrap().as_f64(), Some(-999.0));
    assert_eq!(info.attrs["scale_factor"], "0.5");
}

/// A dataset must not get the coordinates of another file because an axis has the same name.
#[test]
fn merged_datasets_keep_their_coordinates() {
    let make_with = |name: &str, lat: Option<[i32; 2]>, is_named: bool| {
        let mut layout = Layout::new();
        let id = layout.dataset(name, tercet_core::DType::U8, [2], [2]).unwrap();
        layout.dims(id, ["lat"]).unwrap();
        let lat = lat.map(|lat| {
            let id = layout.dataset("lat", tercet_core::DType::I32, [2], [2]).unwrap();
            if is_named {
                layout.dims(id, ["lat"]).unwrap();
            }
            (id, lat)
        });
        let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
        writer.array(id, TensorView::from_slice(&[2], &[1u8, 2]).unwrap()).unwrap();
        if let Some((id, lat)) = lat {
            writer.array(id, TensorView::from_slice(&[2], &lat).unwrap()).unwrap();
        }
        std::sync::Arc::new(File::from_bytes(name, writer.finish().unwrap().output).unwrap())
    };
    let make = |name: &str, lat: Option<[i32; 2]>| make_with(name, lat, true);
    // Coordinate datasets need not name their axis.
    let mut merge = tercet_tet::Merge::new();
    merge.add(&make_with("a", Some([10, 20]), false), str::to_owned, &NoProgress).unwrap();
    let rename = |name: &str| if name == "lat" { "lat2".to_owned() } else { name.to_owned() };
    let other = make_with("b", Some([20, 10]), false);
    let error = merge.add(&other, rename, &NoProgress).unwrap_err().to_string();
    assert!(error.contains("dataset `b` would get other coordinates"), "{error}");
    let first = make("a", Some([10, 20]));
    for (other, is_fine) in
        [(make("b", Some([10, 20])), true), (make("b", Some([20, 10])), false), (make("b", None), false)]
    {
        let mut merge = tercet_tet::Merge::new();
        merge.add(&first, str::to_owned, &NoProgress).unwrap();
        let rename = |name: &str| match name {
            "lat" if !is_fine => "lat2".to_owned(),
            _ => name.to_owned(),
        };
        let added = merge.add(&other, rename, &NoProgress);
        assert_eq!(added.is_ok(), is_fine, "{added:?}");
        if let Err(error) = added {
            let expected = if other.dataset("lat").is_ok() {
                "dataset `b` would get other coordinates"
            } else {
                "dataset `b` has no coordinates for axis `lat`, and would get those of the copied dataset `lat`"
            };
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
    let mut part = tercet_tet::Merge::new();
    part.layout().copy_dataset(&first, "a", "a").unwrap();
    assert_eq!(part.layout().check_coordinates(&[]).unwrap().absent, ["lat"]);
    assert_eq!(part.layout().copy_coordinates(&first, "a").unwrap(), ["lat"]);
    assert!(part.layout().copy_coordinates(&first, "a").unwrap().is_empty());
    assert!(part.layout().check_coordinates(&[]).unwrap().absent.is_empty());
    let mut later = tercet_tet::Merge::new();
    later.layout().copy_dataset(&make("b", None), "b", "b").unwrap();
    later.layout().copy_dataset(&first, "lat", "lat").unwrap();
    assert!(later.layout().check_coordinates(&[]).is_err());
    let changes = later.layout().check_coordinates(&["lat"]).unwrap();
    assert_eq!(changes.gained, [("b".to_owned(), "lat".to_owned())]);
}
