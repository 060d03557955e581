use std::io::Cursor;

use tercet_core::progress::NoProgress;
use tercet_core::tensor::IndexSlice;
use tercet_core::{DType, TensorView};
use tercet_tet::{Compression, File, Layout, Op, Results, Select, Writer, WriterOptions};

use super::*;

/// `t`: 2×3 numbers with a quotation mark in a label, and a dataset without names.
fn file() -> File {
    let mut layout = Layout::new();
    let t = layout.dataset("t", DType::F32, [2, 3], [2, 2]).unwrap();
    layout.dims(t, ["city", "x"]).unwrap();
    layout.labels(t, "city", vec!["Oslo, \"N\"".to_owned(), "Rome".to_owned()]).unwrap();
    layout.attr(t, "units", "K").unwrap();
    let x = layout.dataset("x", DType::I16, [3], [3]).unwrap();
    layout.dims(x, ["x"]).unwrap();
    layout.attr(x, "units", "m").unwrap();
    let bare = layout.dataset("bare", DType::U8, [2, 2], [2, 2]).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    let values = [1.0f32, 2.5, f32::NAN, 4.0, 5.0, 6.0];
    writer.array(t, TensorView::from_slice(&[2, 3], &values).unwrap()).unwrap();
    writer.array(x, TensorView::from_slice(&[3], &[10i16, 20, 30]).unwrap()).unwrap();
    writer.array(bare, TensorView::from_slice(&[2, 2], &[1u8, 2, 3, 4]).unwrap()).unwrap();
    File::from_bytes("m.tet", writer.finish().unwrap().output).unwrap()
}

fn results(file: &File, name: &str, ops: &[Op], axes: &[&str]) -> Results {
    let dataset = file.dataset(name).unwrap();
    let axes: Vec<usize> = axes.iter().map(|axis| dataset.axis(axis).unwrap()).collect();
    let reduce = dataset.select().reduce(ops.iter().copied()).over(axes);
    reduce.request().unwrap().results(&NoProgress).unwrap()
}

fn written(results: &Results, format: ResultFormat) -> Result<Vec<u8>, Error> {
    write_results(results, format, Cursor::new(Vec::new()), "out")
}

#[test]
fn csv_has_one_row_for_each_value() {
    let file = file();
    let text = |results: &Results| String::from_utf8(written(results, ResultFormat::Csv).unwrap()).unwrap();
    let both = results(&file, "t", &[Op::Mean, Op::Count], &["x"]);
    assert_eq!(text(&both), "city,mean,count\n\"Oslo, \"\"N\"\"\",1.75,2\nRome,5,3\n");
    let values = file.dataset("t").unwrap().select().isel(0, 0..1).unwrap().results(false).unwrap();
    let expected =
        "city,x,value\n\"Oslo, \"\"N\"\"\",10,1\n\"Oslo, \"\"N\"\"\",20,2.5\n\"Oslo, \"\"N\"\"\",30,NaN\n";
    assert_eq!(text(&values), expected);
    let bins = results(&file, "bare", &[Op::Histogram { bins: 2, range: Some((0.0, 4.0)) }], &[]);
    assert_eq!(text(&bins), "from,to,histogram\n0,2,1\n2,4,3\n");
    let place = results(&file, "t", &[Op::ArgMax], &["x"]);
    assert_eq!(text(&place), "city,arg_max_x,arg_max_x_index\n\"Oslo, \"\"N\"\"\",20,1\nRome,30,2\n");
    let bare = results(&file, "bare", &[Op::Sum], &["0"]);
    assert_eq!(text(&bare), "dim_1,sum\n0,4\n1,6\n");
    let mixed = results(&file, "bare", &[Op::Sum, Op::Histogram { bins: 2, range: None }], &[]);
    assert!(written(&mixed, ResultFormat::Csv).unwrap_err().to_string().contains("different dimensions"));
}

/// Values that are read block by block make the same files.
#[test]
fn selections_are_written_without_holding_them() {
    let file = file();
    let t = file.dataset("t").unwrap();
    let streamed = |select: &Select<'_>, decode, format| {
        let sink = Cursor::new(Vec::new());
        write_selection(select, decode, format, sink, "out", &NoProgress).map(|(bytes, _)| bytes)
    };
    let reversed = t.select().isel("x", IndexSlice::parse("::-2").unwrap()).unwrap();
    for select in [t.select(), reversed.clone(), t.select().sel("city", "Rome").unwrap()] {
        for decode in [false, true] {
            let results = select.results(decode).unwrap();
            for format in [ResultFormat::Npy, ResultFormat::Csv, ResultFormat::Json, ResultFormat::Raw] {
                let expected = written(&results, format).unwrap();
                assert!(streamed(&select, decode, format).unwrap() == expected, "{format:?} {decode}");
            }
            let read = |bytes: Vec<u8>| {
                let file = File::from_bytes("out", bytes).unwrap();
                let t = file.dataset("t").unwrap();
                let coordinates = t.coordinates(t.shape().len() - 1).unwrap();
                let cities = t.labels(0).map(<[String]>::to_vec);
                (t.read_all().unwrap().bytes().to_vec(), coordinates, cities, t.info().cloned())
            };
            let expected = read(written(&results, ResultFormat::Tet).unwrap());
            assert_eq!(read(streamed(&select, decode, ResultFormat::Tet).unwrap()), expected);
        }
    }
    // One value.
    let one = t.select().isel(0, 1u64).unwrap().isel(1, 0u64).unwrap();
    let bytes = streamed(&one, false, ResultFormat::Tet).unwrap();
    let one = File::from_bytes("out", bytes).unwrap();
    assert_eq!(one.dataset("t").unwrap().read_all().unwrap().as_slice::<f32>(), Some(&[4.0][..]));
}

/// Damage of the input is an error of the input, in every format.
#[test]
fn damaged_chunks_are_not_written() {
    let mut layout = Layout::new();
    let t = layout.dataset("t", DType::F32, [4, 3], [2, 3]).unwrap();
    layout.compress(t, Compression::None).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    let values: Vec<f32> = (0..12u8).map(|n| f32::from(n) + 0.25).collect();
    writer.array(t, TensorView::from_slice(&[4, 3], &values).unwrap()).unwrap();
    let mut bytes = writer.finish().unwrap().output;
    let at = bytes.windows(4).position(|found| found == 10.25f32.to_le_bytes()).unwrap();
    bytes[at] ^= 1;
    let file = File::from_bytes("in.tet", bytes).unwrap();
    let select = file.dataset("t").unwrap().select();
    for format in [ResultFormat::Tet, ResultFormat::Csv, ResultFormat::Json, ResultFormat::Npy] {
        let sink = Cursor::new(Vec::new());
        let error = write_selection(&select, false, format, sink, "out", &NoProgress).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("in.tet: ") && text.contains("checksum"), "{format:?}: {text}");
    }
}

#[test]
fn npy_holds_one_array() {
    let file = file();
    let bytes = written(&results(&file, "t", &[Op::Max], &["city"]), ResultFormat::Npy).unwrap();
    assert!(bytes[10..].starts_with(b"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }"));
    let expected: Vec<u8> = [4.0f64, 5.0, 6.0].iter().flat_map(|number| number.to_le_bytes()).collect();
    assert!(bytes.ends_with(&expected));
    let flags = written(&results(&file, "t", &[Op::AnyNan], &["city"]), ResultFormat::Npy).unwrap();
    assert!(flags[10..].starts_with(b"{'descr': '|b1'") && flags.ends_with(&[0, 0, 1]));
    // Coordinates that are numbers, else positions.
    let place = written(&results(&file, "t", &[Op::ArgMax], &["x"]), ResultFormat::Npy).unwrap();
    assert!(place.ends_with(&30f64.to_le_bytes()));
    let place = written(&results(&file, "t", &[Op::ArgMax], &["city"]), ResultFormat::Npy).unwrap();
    assert!(place[10..].starts_with(b"{'descr': '<i8'") && place.ends_with(&1i64.to_le_bytes()));
    for (ops, axes) in [(&[Op::Max, Op::Min][..], &["x"][..]), (&[Op::ArgMax], &["city", "x"])] {
        assert!(written(&results(&file, "t", ops, axes), ResultFormat::Npy).is_err());
    }
    let raw = written(&results(&file, "t", &[Op::Max], &["city"]), ResultFormat::Raw).unwrap();
    assert_eq!(raw, expected);
}

#[test]
fn tet_keeps_names_coordinates_and_attributes() {
    let file = file();
    let open = |results: &Results| {
        File::from_bytes("out.tet", written(results, ResultFormat::Tet).unwrap()).unwrap()
    };
    let sums = open(&results(&file, "t", &[Op::Sum, Op::ArgMin], &["city"]));
    let names: Vec<&str> = sums.datasets().map(|dataset| dataset.name()).collect();
    // Labels that are not numbers have positions only.
    assert_eq!(names, ["t_sum", "t_arg_min_city_index", "x"]);
    let sum = sums.dataset("t_sum").unwrap();
    assert_eq!(sum.info().unwrap().attrs["cell_methods"], "city: sum");
    assert_eq!(sum.coordinates(0).unwrap().unwrap().text(2), "30");
    assert_eq!(sums.dataset("x").unwrap().info().unwrap().attrs["units"], "m");
    let all = open(&results(&file, "t", &[Op::Mean], &[]));
    assert_eq!(all.dataset("t").unwrap().shape(), [1]);
    let values = open(&file.dataset("t").unwrap().select().results(false).unwrap());
    let t = values.dataset("t").unwrap();
    assert_eq!(t.labels(0).unwrap()[1], "Rome");
    assert_eq!(t.read_all().unwrap().bytes(), file.dataset("t").unwrap().read_all().unwrap().bytes());
    assert_eq!(values.history()[0].op, "extract");
    let bins = open(&results(&file, "bare", &[Op::Histogram { bins: 2, range: None }], &[]));
    assert_eq!(bins.dataset("bin_edges").unwrap().shape(), [3]);
    let bare = open(&results(&file, "bare", &[Op::Sum], &["0"]));
    assert!(bare.dataset("bare").unwrap().axis_name(0).is_none());
}

#[test]
fn json_is_that_of_results() {
    let file = file();
    let results = results(&file, "t", &[Op::Mean, Op::ArgMax], &["x"]);
    let json: serde_json::Value =
        serde_json::from_slice(&written(&results, ResultFormat::Json).unwrap()).unwrap();
    assert_eq!(json, serde_json::to_value(&results).unwrap());
    assert_eq!(json[0]["values"], serde_json::json!([1.75, 5.0]));
    assert_eq!(json[1]["values"]["x"], serde_json::json!([20, 30]));
    assert_eq!(json[0]["skipped"], 1);
}

#[cfg(any(unix, windows))]
#[test]
fn files_are_replaced_only_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let file = file();
    let results = results(&file, "t", &[Op::Mean], &["x"]);
    let path = directory.path().join("mean.csv");
    save_results(&results, &path, false).unwrap();
    assert!(save_results(&results, &path, false).is_err());
    save_results(&results, &path, true).unwrap();
    let error = save_results(&results, directory.path().join("mean.h5"), false).unwrap_err();
    assert!(error.to_string().contains("cannot write .h5 files"), "{error}");
    assert_eq!(tercet_core::Diagnostic::class(&error), tercet_core::Class::Request);
}
