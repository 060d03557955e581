//! Missing and packed values by the CF conventions, and selections by coordinates.

use std::io::Cursor;

use tercet_core::progress::NoProgress;
use tercet_core::tensor::IndexSlice;
use tercet_core::{ElementType, TensorView};
use tercet_tet::compat::Answer;
use tercet_tet::{
    Comparison, File, Group, LabelSelection, Layout, Method, Op, Query, RunOptions, Scalar, Select, Syntax,
    TimePart, Window, Writer, WriterOptions,
};

/// `t`, i16, 2×6: packed with a factor of 0.5 and an offset of 10; −999 is the fill value, values above 100 are invalid.
const PACKED: [i16; 12] = [1, 2, -999, 4, 5, 6, 7, 101, 9, -999, 11, 12];
/// `f`, f32, 6: with NaN and a fill value.
const FLOATS: [f32; 6] = [1.0, 2.0, 3.0, -999.0, f32::NAN, 6.0];

fn file(statistics: bool) -> File {
    let mut layout = Layout::new();
    let t = layout.dataset("t", ElementType::I16, [2, 6], [1, 4]).unwrap();
    layout.dims(t, ["run", "time"]).unwrap();
    for (name, value) in
        [("_FillValue", "-999"), ("valid_max", "100"), ("scale_factor", "0.5"), ("add_offset", "10")]
    {
        layout.attr(t, name, value).unwrap();
    }
    let f = layout.dataset("f", ElementType::F32, [6], [4]).unwrap();
    layout.dims(f, ["time"]).unwrap();
    layout.attr(f, "missing_value", "-999").unwrap();
    let time = layout.dataset("time", ElementType::I32, [6], [6]).unwrap();
    layout.dims(time, ["time"]).unwrap();
    layout.attr(time, "units", "days since 2023-12-30").unwrap();
    let options = WriterOptions::new().with_statistics(statistics);
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, options).unwrap();
    writer.array(t, TensorView::from_slice(&[2, 6], &PACKED).unwrap()).unwrap();
    writer.array(f, TensorView::from_slice(&[6], &FLOATS).unwrap()).unwrap();
    writer.array(time, TensorView::from_slice(&[6], &[0i32, 1, 2, 3, 4, 40]).unwrap()).unwrap();
    File::from_bytes("m", writer.finish().unwrap().output).unwrap()
}

/// Decoded values; `None` for missing ones.
fn decoded() -> Vec<Option<f64>> {
    let valid = |&value: &i16| value != -999 && value <= 100;
    PACKED.iter().map(|value| valid(value).then(|| f64::from(*value) * 0.5 + 10.0)).collect()
}

/// The results of a transform are floats: those of the decoded values, in memory and in files.
#[test]
fn transforms_decode_values() {
    let file = file(true);
    let all = file.dataset("t").unwrap().select();
    let same = |found: &[f64], expected: &[f64], name: &str| {
        let equal = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12 || (a.is_nan() && b.is_nan());
        assert!(found.len() == expected.len() && found.iter().zip(expected).all(equal), "{name}: {found:?}");
    };
    let centered = |select: &Select<'_>| {
        let made = select.transform(Method::Center).in_memory().run().unwrap();
        (made.tensor.unwrap().to_vec::<f64>().unwrap(), made.elements, made.skipped)
    };
    let expected = |values: &[Option<f64>]| -> Vec<f64> {
        let present: Vec<f64> = values.iter().copied().flatten().collect();
        let mean = present.iter().sum::<f64>() / present.len() as f64;
        values.iter().map(|value| value.map_or(f64::NAN, |value| value - mean)).collect()
    };
    let (values, elements, skipped) = centered(&all);
    same(&values, &expected(&decoded()), "packed");
    assert_eq!((elements, skipped), (9, 3));
    same(&centered(&all.clone().skipna(false)).0, &[f64::NAN; 12], "with missing values");
    let stored: Vec<Option<f64>> = PACKED.iter().map(|&value| Some(f64::from(value))).collect();
    same(&centered(&all.clone().raw()).0, &expected(&stored), "raw");
    // Every other position of one run, and a filter of decoded values.
    let part = all.clone().isel("run", 0).unwrap().step("time", 2).unwrap();
    let some: Vec<Option<f64>> = decoded()[..6].iter().copied().step_by(2).collect();
    same(&centered(&part).0, &expected(&some), "steps");
    let low = part.filter(Comparison::Lt(Scalar::Float(11.0)));
    let few: Vec<Option<f64>> = some.iter().map(|value| value.filter(|value| *value < 11.0)).collect();
    same(&centered(&low).0, &expected(&few), "filter");
    // Positions by label.
    let labelled = all.with_labels("time", |label| !label.starts_with("2024")).unwrap();
    let early = |number: usize, value: Option<f64>| value.filter(|_| number % 6 < 2);
    let early: Vec<Option<f64>> =
        decoded().into_iter().enumerate().map(|(n, value)| early(n, value)).collect();
    same(&centered(&labelled).0, &expected(&early), "labels");
    // Files have the same values, for any memory budget.
    let dir = tempfile::tempdir().unwrap();
    for (number, budget) in [1u64, 64, 1 << 20].into_iter().enumerate() {
        let path = dir.path().join(format!("{number}.bin"));
        let select = file.dataset("t").unwrap().select().memory_budget(budget);
        let made = select.transform(Method::Zscore).over(["time"]).raw_output(&path).run().unwrap();
        assert_eq!(made.file.unwrap().bytes, 96);
        let bytes = std::fs::read(&path).unwrap();
        let written: Vec<f64> =
            bytes.chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).collect();
        let select = file.dataset("t").unwrap().select();
        let made = select.transform(Method::Zscore).over(["time"]).in_memory().run().unwrap();
        same(&written, &made.tensor.unwrap().to_vec::<f64>().unwrap(), "file");
    }
    // Floats that are not packed keep their type.
    let mut layout = Layout::new();
    let f = layout.dataset("f", ElementType::F32, [4], [2]).unwrap();
    layout.attr(f, "valid_max", "50").unwrap();
    let i = layout.dataset("i", ElementType::I64, [3], [2]).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    writer.array(f, TensorView::from_slice(&[4], &[1.0f32, 99.0, 2.0, 3.0]).unwrap()).unwrap();
    writer.array(i, TensorView::from_slice(&[3], &[3i64, 5, 5]).unwrap()).unwrap();
    let file = File::from_bytes("m", writer.finish().unwrap().output).unwrap();
    let made = file.dataset("f").unwrap().select().transform(Method::Center).run().unwrap();
    let values = made.tensor.unwrap().to_vec::<f32>().unwrap();
    assert_eq!([values[0], values[2], values[3]], [-1.0, 0.0, 1.0]);
    assert!(values[1].is_nan() && made.skipped == 1);
    let i = file.dataset("i").unwrap().select();
    let made = i.transform(Method::Minmax).run().unwrap();
    assert_eq!(made.tensor.unwrap().to_vec::<f64>().unwrap(), [0.0, 1.0, 1.0]);
    let made = i.isel(0, 1..).unwrap().transform(Method::Minmax).run().unwrap();
    assert_eq!((made.zero_divisors, made.zero_divisor_indices), (2, vec![0, 1]));
}

#[test]
fn computations_decode_and_skip_missing_values() {
    let present: Vec<f64> = decoded().into_iter().flatten().collect();
    let mean = present.iter().sum::<f64>() / present.len() as f64;
    for statistics in [false, true] {
        let file = file(statistics);
        let t = file.dataset("t").unwrap();
        let all = t.select();
        let run = |op| all.reduce([op]).run().unwrap();
        let one = |op| run(op).tensor.as_slice::<f64>().unwrap()[0];
        assert!((one(Op::Mean) - mean).abs() < 1e-12);
        assert!((one(Op::Sum) - present.iter().sum::<f64>()).abs() < 1e-12);
        assert_eq!((one(Op::Max), one(Op::Min), one(Op::Count)), (16.0, 10.5, 9.0));
        assert!((one(Op::Median) - 13.0).abs() < 1e-12, "{}", one(Op::Median));
        assert_eq!((run(Op::Mean).elements, run(Op::Mean).skipped), (9, 3));
        let by_run = all.mean(["time"]).run().unwrap();
        let row = |row: usize| {
            let values: Vec<f64> = decoded()[row * 6..row * 6 + 6].iter().copied().flatten().collect();
            values.iter().sum::<f64>() / values.len() as f64
        };
        let found = by_run.tensor.as_slice::<f64>().unwrap();
        assert!(found.iter().zip([row(0), row(1)]).all(|(found, row)| (found - row).abs() < 1e-12));
        // Filters compare decoded values.
        let high = all.clone().filter(Comparison::Gt(Scalar::Float(13.0))).reduce([Op::Count]).run().unwrap();
        assert_eq!(high.tensor.as_slice::<f64>(), Some(&[4.0][..]));
        assert_eq!(high.skipped, 3);
        // Missing values stay missing, or are ordinary ones.
        let strict = all.clone().skipna(false).reduce([Op::Mean]).run().unwrap();
        assert!(strict.tensor.as_slice::<f64>().unwrap()[0].is_nan());
        let raw = all.clone().raw().reduce([Op::Min]).run().unwrap();
        assert_eq!((raw.tensor.as_slice::<f64>(), raw.skipped), (Some(&[-999.0][..]), 0));
        let windows = all.mean::<&str>([]).window(Window::rolling("time", 3)).run().unwrap();
        assert_eq!(windows.tensor.as_slice::<f64>().unwrap()[0], (10.5 + 11.0 + 13.5 + 14.5) / 4.0);
    }
}

#[test]
fn floats_skip_nan_and_fill_values() {
    for statistics in [false, true] {
        let file = file(statistics);
        let all = file.dataset("f").unwrap().select();
        let several = all.reduce([Op::Mean, Op::Max, Op::Std, Op::Sum]).run_all().unwrap();
        let found: Vec<f64> = several.iter().map(|one| one.tensor.as_slice::<f64>().unwrap()[0]).collect();
        assert_eq!((found[0], found[1], found[3]), (3.0, 6.0, 12.0));
        assert!((found[2] - 3.5f64.sqrt()).abs() < 1e-12);
        assert!(several.iter().all(|one| (one.elements, one.skipped) == (4, 2)));
        // Operations about missing values see them.
        let nan = all.reduce([Op::NanCount]).run().unwrap();
        assert_eq!(nan.tensor.as_slice::<f64>(), Some(&[1.0][..]));
    }
}

#[test]
fn reads_are_stored_or_decoded() {
    let file = file(true);
    let t = file.dataset("t").unwrap();
    assert_eq!(t.select().read().unwrap().as_slice::<i16>(), Some(&PACKED[..]));
    let found = t.select().read_decoded().unwrap();
    let same = found.as_slice::<f64>().unwrap().iter().zip(decoded());
    assert!(same.into_iter().all(|(found, value)| value.map_or(found.is_nan(), |value| *found == value)));
    let floats = file.dataset("f").unwrap().select().read_decoded().unwrap();
    assert_eq!(floats.as_slice::<f32>().unwrap().iter().filter(|value| value.is_nan()).count(), 2);
    let encoding = t.cf_encoding().unwrap();
    assert_eq!((encoding.scale_factor, encoding.valid_max), (Some(0.5), Some(Scalar::Whole(100))));
}

#[test]
fn coordinates_select_by_time() {
    let file = file(true);
    let f = file.dataset("f").unwrap();
    let stored = |select: tercet_tet::Select<'_>| select.read().unwrap().to_vec::<f32>().unwrap();
    assert_eq!(stored(f.select().sel("time", "2023").unwrap()), [1.0, 2.0]);
    assert_eq!(stored(f.select().sel("time", "2023-12-31"..="2024-01-01").unwrap()), [2.0, 3.0]);
    assert_eq!(stored(f.select().sel("time", LabelSelection::nearest("2024-01-25")).unwrap()), [6.0]);
    let reversed = f.select().isel("time", IndexSlice::parse("2::-1").unwrap()).unwrap();
    assert_eq!(stored(reversed.clone()), [3.0, 2.0, 1.0]);
    assert_eq!(stored(reversed.isel("time", 1).unwrap()), [2.0]);
    let error = f.select().sel("time", "2025").unwrap_err().to_string();
    assert!(error.contains("no label `2025`; the nearest is `2024-02-08T00:00:00`"), "{error}");
    let by_month = f.select().reduce([Op::Sum]).group_by(Group::time("time", TimePart::Month)).run().unwrap();
    assert_eq!(by_month.dims[0].labels.as_deref(), Some(&["1", "2", "12"].map(str::to_owned)[..]));
    assert_eq!(by_month.tensor.as_slice::<f64>(), Some(&[3.0, 6.0, 3.0][..]));
}

/// A missing time is no label, but positions need no labels.
#[test]
fn positions_are_selected_without_valid_coordinates() {
    let mut layout = Layout::new();
    let time = layout.dataset("time", ElementType::F64, [3], [3]).unwrap();
    layout.dims(time, ["time"]).unwrap();
    layout.attr(time, "units", "days since 2024-01-01").unwrap();
    let x = layout.dataset("x", ElementType::F32, [3], [3]).unwrap();
    layout.dims(x, ["time"]).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    writer.array(time, TensorView::from_slice(&[3], &[0.0, f64::NAN, 2.0]).unwrap()).unwrap();
    writer.array(x, TensorView::from_slice(&[3], &[1.0f32, 2.0, 3.0]).unwrap()).unwrap();
    let file = File::from_bytes("m", writer.finish().unwrap().output).unwrap();
    let x = file.dataset("x").unwrap();
    let read = x.select().isel("time", 1..).unwrap().read().unwrap();
    assert_eq!(read.as_slice::<f32>(), Some(&[2.0, 3.0][..]));
    let max = x.select().isel("time", 2).unwrap().reduce([Op::Max]).run().unwrap();
    assert_eq!(max.tensor.as_slice::<f64>(), Some(&[3.0][..]));
    let error = x.select().sel("time", "2024-01-03").unwrap_err().to_string();
    assert!(error.contains("missing times, or times out of range; select positions"), "{error}");
}

/// Documents compute with stored values, as the reference does, unless they say otherwise.
#[test]
fn documents_opt_in() {
    let file = file(true);
    let mean = |more: &str| {
        let text = format!(
            r#"{{"dataset": "f", "mean": [], "selection": {{"time": "2023-12-30..2024-01-02"}}{more}}}"#
        );
        let query = Query::parse(&text, Syntax::Json).unwrap();
        let answer = query.run(&file, &RunOptions::new(), &NoProgress).unwrap();
        serde_json::to_value(Answer::new(&answer).execution.unwrap()).unwrap()["operation_mean"].as_f64()
    };
    assert_eq!(mean(""), Some(-248.25));
    assert_eq!(mean(r#", "skipna": true"#), Some(2.0));
    assert_eq!(mean(r#", "skipna": false"#), None);
    assert_eq!(mean(r#", "raw": true"#), Some(-248.25));
}

/// `x` with attributes, in chunks of 2.
fn series(values: &[f32], attrs: &[(&str, &str)]) -> File {
    let mut layout = Layout::new();
    let x = layout.dataset("x", ElementType::F32, [values.len() as u64], [2]).unwrap();
    for (name, value) in attrs {
        layout.attr(x, name, value).unwrap();
    }
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    writer.array(x, TensorView::from_slice(&[values.len() as u64], values).unwrap()).unwrap();
    File::from_bytes("m", writer.finish().unwrap().output).unwrap()
}

#[test]
fn bounds_of_valid_values_have_the_element_type() {
    let file = series(&[0.1, 0.2, 0.3, 0.4], &[("valid_range", "0.1, 0.3")]);
    let count = file.dataset("x").unwrap().select().reduce([Op::Count]).run().unwrap();
    assert_eq!((count.tensor.as_slice::<f64>(), count.skipped), (Some(&[3.0][..]), 1));
}

#[test]
fn missing_values_that_are_not_skipped_have_no_extremes() {
    for values in [[1.0, 2.0, 3.0, -999.0], [1.0, f32::NAN, 3.0, 4.0]] {
        let file = series(&values, &[("_FillValue", "-999")]);
        let part = file.dataset("x").unwrap().select().skipna(false);
        for op in [Op::Min, Op::Max, Op::Mean, Op::Sum, Op::Std, Op::Median] {
            let result = part.reduce([op]).run().unwrap();
            assert!(result.tensor.as_slice::<f64>().unwrap()[0].is_nan(), "{op:?}");
        }
        let windows = part.reduce([Op::Max]).window(Window::rolling(0, 2)).run().unwrap();
        let is_nan: Vec<bool> =
            windows.tensor.as_slice::<f64>().unwrap().iter().map(|value| value.is_nan()).collect();
        let missing = |value: &f32| value.is_nan() || *value == -999.0;
        let expected: Vec<bool> = values.windows(2).map(|pair| pair.iter().any(missing)).collect();
        assert_eq!(is_nan, expected);
        let index = part.reduce([Op::ArgMax]).run().unwrap();
        assert_eq!(index.tensor.as_slice::<i64>(), Some(&[-1][..]));
    }
}

#[test]
fn statistics_do_not_hide_missing_values() {
    let file = series(&[1.0, -999.0, 2.0, f32::NAN, 300.0, 301.0], &[("_FillValue", "-999")]);
    for statistics in [true, false] {
        let part = file.dataset("x").unwrap().select().statistics(statistics);
        let count = part.filter(Comparison::Gt(Scalar::Whole(299))).reduce([Op::Count]).run().unwrap();
        assert_eq!((count.tensor.as_slice::<f64>(), count.skipped), (Some(&[2.0][..]), 2));
    }
}

#[test]
fn results_without_coordinates_have_positions_of_the_dataset() {
    let file = series(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], &[]);
    let x = file.dataset("x").unwrap();
    let labels = |request: tercet_tet::Request<'_>| {
        let coordinates = request.dims()[0].coordinates.clone().unwrap();
        (0..coordinates.len()).map(|position| coordinates.text(position)).collect::<Vec<_>>()
    };
    assert_eq!(labels(x.select().isel(0, 2..5).unwrap().request().unwrap()), ["2", "3", "4"]);
    let reversed = x.select().isel(0, IndexSlice::parse("::-2").unwrap()).unwrap();
    assert_eq!(labels(reversed.request().unwrap()), ["5", "3", "1"]);
    let rolling = x.select().reduce([Op::Mean]).window(Window::rolling(0, 4)).request().unwrap();
    assert_eq!(labels(rolling), ["3", "4", "5"]);
    assert!(x.select().request().unwrap().dims()[0].coordinates.is_none());
    let error = x.select().mean([0]).group_by(Group::labels(0, str::to_owned)).run().unwrap_err();
    assert!(error.to_string().contains("neither labels nor a coordinate dataset"), "{error}");
}

#[test]
fn transforms_count_missing_values_and_change_units() {
    let file = series(&[1.0, -999.0, 2.0, 3.0], &[("_FillValue", "-999"), ("units", "K")]);
    let x = file.dataset("x").unwrap();
    let results = x.select().transform(tercet_tet::Method::Zscore).request().unwrap();
    let results = results.results(&NoProgress).unwrap();
    assert_eq!((results.skipped, results.arrays[0].units()), (1, Some("1")));
}

#[test]
fn windows_without_values_have_a_count() {
    for statistics in [false, true] {
        let file = file(statistics);
        let f = file.dataset("f").unwrap().select();
        let window = || Window::rolling("time", 2);
        let count = f.reduce([Op::Count]).window(window()).run().unwrap();
        assert_eq!(count.tensor.as_slice::<f64>().unwrap(), [2.0, 2.0, 1.0, 0.0, 1.0]);
        let all = f.reduce([Op::Sum, Op::Count, Op::Product]).window(window()).run_all().unwrap();
        let numbers = |at: usize| all[at].tensor.as_slice::<f64>().unwrap().to_vec();
        assert_eq!(numbers(1), [2.0, 2.0, 1.0, 0.0, 1.0]);
        for at in [0, 2] {
            assert!(numbers(at)[3].is_nan(), "a window without values has no sum and no product");
            assert_eq!(numbers(at)[4], 6.0);
        }
        let few = f.reduce([Op::Count]).window(window().min_count(2)).run().unwrap();
        assert_eq!(few.tensor.as_slice::<f64>().unwrap(), [2.0, 2.0, 1.0, 0.0, 1.0]);
    }
}

#[test]
fn an_axis_is_reduced_once() {
    let file = file(true);
    let t = file.dataset("t").unwrap().select();
    let error = t.mean(["time", "time"]).run().unwrap_err();
    assert!(error.to_string().contains("axis `time` is given twice"), "{error}");
    assert!(t.reduce([Op::Mean]).over([1, 0, 1]).run().is_err());
    assert!(t.mean(["time", "run"]).run().is_ok());
}

#[test]
fn several_values_are_missing() {
    let mut layout = Layout::new();
    let x = layout.dataset("x", ElementType::I16, [4], [4]).unwrap();
    layout.attr(x, "missing_value", "[1,2]").unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    writer.array(x, TensorView::from_slice(&[4], &[1i16, 2, 3, 5]).unwrap()).unwrap();
    let file = File::from_bytes("m", writer.finish().unwrap().output).unwrap();
    let mean = file.dataset("x").unwrap().select().reduce([Op::Mean]).run().unwrap();
    assert_eq!(mean.tensor.as_slice::<f64>().unwrap(), [4.0]);
}

#[test]
fn decoded_integers_are_exact_unless_some_are_missing() {
    let large = (1i64 << 53) + 1;
    let decoded = |values: [i64; 4]| {
        let mut layout = Layout::new();
        let x = layout.dataset("x", ElementType::I64, [4], [2]).unwrap();
        layout.attr(x, "_FillValue", "-1").unwrap();
        let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
        writer.array(x, TensorView::from_slice(&[4], &values).unwrap()).unwrap();
        let file = File::from_bytes("m", writer.finish().unwrap().output).unwrap();
        let select = file.dataset("x").unwrap().select();
        let mut written = Vec::new();
        select.write_values(true, &mut written, &NoProgress).unwrap();
        let tensor = select.read_decoded().unwrap();
        assert_eq!(tensor.bytes(), written);
        (tensor, select.is_rounded_by_decoding().unwrap())
    };
    let (exact, rounds) = decoded([1, 2, 3, large]);
    assert_eq!((exact.as_slice::<i64>().unwrap(), rounds), (&[1, 2, 3, large][..], false));
    // No value is missing in the first chunk, and its type is that of all.
    let (floats, rounds) = decoded([1, large, 3, -1]);
    let floats = floats.as_slice::<f64>().unwrap();
    assert_eq!((floats[0], floats[3].is_nan(), rounds), (1.0, true, true));
    let (floats, rounds) = decoded([1, 2, 3, -1]);
    assert_eq!((floats.as_slice::<f64>().unwrap()[1], rounds), (2.0, false));
}
