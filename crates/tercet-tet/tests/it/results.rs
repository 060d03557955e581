//! Weights, selections by label, and results with names, compared with plain loops.

use std::io::Cursor;

use proptest::prelude::*;
use tercet_core::progress::NoProgress;
use tercet_core::tensor::IndexSlice;
use tercet_core::{ElementType, TensorView};
use tercet_tet::{
    Compression, File, Group, LabelSelection, Layout, Method, Op, Query, Reduce, ResultValues, RunOptions,
    Syntax, TimePart, Weights, Window, Writer, WriterOptions,
};

/// `t`, f32, time × lat × lon, with coordinates.
fn file(shape: [u64; 3], chunks: [u64; 3], values: &[f32]) -> File {
    let mut layout = Layout::new();
    let t = layout.dataset("t", ElementType::F32, shape, chunks).unwrap();
    layout.dims(t, ["time", "lat", "lon"]).unwrap();
    layout.attr(t, "units", "m s-1").unwrap();
    layout.attr(t, "cell_methods", "height: mean").unwrap();
    let time = layout.dataset("time", ElementType::I32, [shape[0]], [shape[0]]).unwrap();
    layout.dims(time, ["time"]).unwrap();
    layout.attr(time, "units", "days since 2023-11-20").unwrap();
    let lat = layout.dataset("lat", ElementType::F64, [shape[1]], [shape[1]]).unwrap();
    layout.dims(lat, ["lat"]).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    writer.array(t, TensorView::from_slice(&shape, values).unwrap()).unwrap();
    let days: Vec<i32> = (0..shape[0]).map(|n| n as i32 * 9).collect();
    writer.array(time, TensorView::from_slice(&shape[..1], &days).unwrap()).unwrap();
    writer.array(lat, TensorView::from_slice(&shape[1..2], &latitudes(shape[1])).unwrap()).unwrap();
    File::from_bytes("m", writer.finish().unwrap().output).unwrap()
}

fn latitudes(count: u64) -> Vec<f64> {
    (0..count).map(|n| 80.0 - n as f64 * 160.0 / count as f64).collect()
}

fn numbers(reduce: Reduce<'_>) -> Vec<Vec<f64>> {
    let results = reduce.run_all().unwrap();
    results.into_iter().map(|one| one.tensor.into_vec::<f64>().unwrap()).collect()
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-10 * expected.abs().max(1.0) || (found.is_nan() && expected.is_nan())
}

/// Weighted sum, mean and variance of values with weights.
fn weighted(pairs: &[(f64, f64)]) -> [f64; 3] {
    let sum: f64 = pairs.iter().map(|(value, weight)| value * weight).sum();
    let weight: f64 = pairs.iter().map(|(_, weight)| weight).sum();
    if weight == 0.0 {
        return [sum, f64::NAN, f64::NAN];
    }
    let mean = sum / weight;
    let variance = pairs.iter().map(|(value, weight)| weight * (value - mean).powi(2)).sum::<f64>() / weight;
    [sum, mean, variance]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(64)))]
    #[test]
    fn weights_equal_a_plain_loop(
        shape in [1u64..6, 1u64..7, 1u64..5],
        chunks in [1u64..4, 1u64..4, 1u64..4],
        seed in prop::collection::vec(prop_oneof![3 => (-500i16..500).prop_map(f32::from), 1 => Just(f32::NAN)], 180),
        own in prop::collection::vec(0.0f64..3.0, 7),
        over_time: bool,
        cosine: bool,
        reversed: bool,
    ) {
        let [times, lats, lons] = shape.map(|n| n as usize);
        let values = &seed[..times * lats * lons];
        let file = file(shape, chunks, values);
        let mut weights: Vec<f64> = if cosine {
            latitudes(shape[1]).iter().map(|lat| lat.to_radians().cos()).collect()
        } else {
            own[..lats].to_vec()
        };
        let mut select = file.dataset("t").unwrap().select();
        let rule = if cosine { Weights::cos_latitude("lat") } else { Weights::values("lat", weights.clone()) };
        if reversed {
            select = select.isel("lat", tercet_core::tensor::IndexSlice::parse("::-1").unwrap()).unwrap();
            if !cosine {
                weights.reverse();
            }
        }
        let ops = [Op::Sum, Op::Mean, Op::Var, Op::Std, Op::Max, Op::Count];
        let axes: &[&str] = if over_time { &["time", "lat"] } else { &["lat"] };
        let found = numbers(select.reduce(ops).over(axes.iter().copied()).weights(rule));
        let at = |time: usize, lat: usize, lon: usize| f64::from(values[(time * lats + lat) * lons + lon]);
        let outputs: Vec<(Vec<usize>, usize)> = if over_time {
            (0..lons).map(|lon| ((0..times).collect(), lon)).collect()
        } else {
            (0..times).flat_map(|time| (0..lons).map(move |lon| (vec![time], lon))).collect()
        };
        for (number, (times, lon)) in outputs.into_iter().enumerate() {
            let all = times.iter().flat_map(|&time| (0..lats).map(move |lat| (time, lat)));
            let pairs: Vec<(f64, f64)> = all
                .map(|(time, lat)| (at(time, lat, lon), weights[lat]))
                .filter(|(value, _)| !value.is_nan())
                .collect();
            let [sum, mean, variance] = weighted(&pairs);
            prop_assert!(close(found[0][number], sum), "{} {sum}", found[0][number]);
            prop_assert!(close(found[1][number], mean), "{} {mean}", found[1][number]);
            prop_assert!(close(found[2][number], variance) || (found[2][number] - variance).abs() < 1e-6);
            prop_assert!(close(found[3][number], found[2][number].sqrt()));
            let max = pairs.iter().map(|(value, _)| *value).fold(f64::NAN, f64::max);
            prop_assert!(close(found[4][number], max));
            prop_assert_eq!(found[5][number], pairs.len() as f64);
        }
    }

    #[test]
    fn positions_of_maxima_have_coordinates(
        shape in [1u64..5, 1u64..6, 1u64..4],
        seed in prop::collection::vec(-9i8..9, 100),
        lats_only: bool,
    ) {
        let [times, lats, lons] = shape.map(|n| n as usize);
        let values: Vec<f32> = seed[..times * lats * lons].iter().map(|&n| f32::from(n)).collect();
        let file = file(shape, [2, 2, 2], &values);
        let t = file.dataset("t").unwrap();
        let axes: &[&str] = if lats_only { &["lat"] } else { &["time", "lat"] };
        let results = t.select().arg_max(axes.iter().copied()).request().unwrap().results(&NoProgress).unwrap();
        let array = &results.arrays[0];
        let ResultValues::Positions(positions) = &array.values else { panic!("positions were expected") };
        let lat = positions.iter().find(|axis| axis.axis == "lat").unwrap();
        for output in 0..array.len() {
            let (fixed, lon) = (output / lons, output % lons);
            let times: Vec<usize> = if lats_only { vec![fixed] } else { (0..times).collect() };
            let places = times.iter().flat_map(|&time| (0..lats).map(move |lat| (time, lat)));
            let value = |&(time, lat): &(usize, usize)| values[(time * lats + lat) * lons + lon];
            let places: Vec<(usize, usize)> = places.collect();
            let max = places.iter().map(value).fold(f32::MIN, f32::max);
            let first = places.iter().find(|place| value(place) == max).unwrap();
            prop_assert_eq!(lat.index(output), Some(first.1));
            prop_assert_eq!(lat.text(output), Some(latitudes(shape[1])[first.1].to_string()));
            if !lats_only {
                prop_assert_eq!(positions[0].index(output), Some(first.0));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(64)))]
    /// Of equal values the first in the order of the selection is found, also on reversed axes.
    #[test]
    fn positions_of_maxima_on_reversed_axes_equal_a_plain_loop(
        shape in [1u64..6, 1u64..7, 1u64..5],
        chunks in [1u64..4, 1u64..4, 1u64..4],
        seed in prop::collection::vec(prop_oneof![6 => (0i16..4).prop_map(f32::from), 1 => Just(f32::NAN)], 120),
        reversed in prop::array::uniform3(any::<bool>()),
        reduced in prop::array::uniform3(any::<bool>()),
    ) {
        let elements = shape.iter().product::<u64>() as usize;
        let file = file(shape, chunks, &seed[..elements]);
        let mut part = file.dataset("t").unwrap().select();
        for (axis, _) in reversed.iter().enumerate().filter(|(_, reversed)| **reversed) {
            part = part.isel(axis, IndexSlice::parse("::-1").unwrap()).unwrap();
        }
        let axes: Vec<usize> = (0..3).filter(|&axis| reduced[axis]).collect();
        prop_assume!(!axes.is_empty());
        let request = part.arg_max(axes.clone()).request().unwrap();
        let results = request.results(&NoProgress).unwrap();
        let ResultValues::Positions(found) = &results.arrays[0].values else { panic!("positions") };
        let values = part.read().unwrap();
        let values = values.as_slice::<f32>().unwrap();
        let count = |axis: usize, is_reduced: bool| if reduced[axis] == is_reduced { shape[axis] } else { 1 };
        let (mut output, at) = (0, |kept: [u64; 3], inner: [u64; 3]| {
            let place = |axis: usize| kept[axis] + inner[axis];
            values[((place(0) * shape[1] + place(1)) * shape[2] + place(2)) as usize]
        });
        let boxes = |is_reduced: bool| {
            let [a, b, c] = [0, 1, 2].map(|axis| count(axis, is_reduced));
            (0..a).flat_map(move |x| (0..b).flat_map(move |y| (0..c).map(move |z| [x, y, z])))
        };
        for kept in boxes(false) {
            let mut best: Option<([u64; 3], f32)> = None;
            for inner in boxes(true) {
                let value = at(kept, inner);
                if value > best.map_or(f32::NEG_INFINITY, |(_, value)| value) {
                    best = Some((inner, value));
                }
            }
            for (axis, found) in axes.iter().zip(found) {
                let index = best.map(|(place, _)| place[*axis] as usize);
                prop_assert_eq!(found.index(output), index);
                // The coordinate is that of the selected position.
                if let (Some(index), Some(coordinates)) = (index, part.coordinates(*axis).unwrap()) {
                    prop_assert_eq!(found.text(output), Some(coordinates.text(index)));
                }
            }
            output += 1;
        }
    }
}

/// Coordinates that are damaged or invalid are not in the results; positions need none.
#[test]
fn damaged_coordinates_do_not_refuse_positions() {
    let values: Vec<f32> = (0..24).map(|n| n as f32).collect();
    let mut layout = Layout::new();
    let t = layout.dataset("t", ElementType::F32, [4, 6], [2, 6]).unwrap();
    layout.dims(t, ["time", "x"]).unwrap();
    let time = layout.dataset("time", ElementType::F64, [4], [4]).unwrap();
    let x = layout.dataset("x", ElementType::F64, [6], [6]).unwrap();
    layout.attr(x, "valid_min", "2").unwrap();
    layout.attr(x, "valid_max", "1").unwrap();
    layout.compress(time, Compression::None).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    writer.array(t, TensorView::from_slice(&[4, 6], &values).unwrap()).unwrap();
    writer.array(time, TensorView::from_slice(&[4], &[1e9, 2e9, 3e9, 4e9]).unwrap()).unwrap();
    writer.array(x, TensorView::from_slice(&[6], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]).unwrap()).unwrap();
    let mut bytes = writer.finish().unwrap().output;
    let at = bytes.windows(8).position(|found| found == 2e9f64.to_le_bytes()).unwrap();
    bytes[at] ^= 1;
    let file = File::from_bytes("m", bytes).unwrap();
    let part = file.dataset("t").unwrap().select().isel("time", 1..3).unwrap();
    let results = part.mean(["x"]).request().unwrap().results(&NoProgress).unwrap();
    let ResultValues::Numbers(means) = &results.arrays[0].values else { panic!("numbers") };
    assert_eq!(means.as_slice::<f64>(), Some(&[8.5, 14.5][..]));
    assert_eq!(results.arrays[0].dims[0].coordinates.as_ref().unwrap().text(0), "1");
    assert_eq!(results.warnings.len(), 1, "{:?}", results.warnings);
    assert!(results.warnings[0].contains("axis `time` cannot be read"), "{:?}", results.warnings);
    let read = part.clone().results(false).unwrap();
    assert_eq!(read.warnings.len(), 2, "{:?}", read.warnings);
    assert!(read.warnings[1].contains("`valid_min` is `2`"), "{:?}", read.warnings);
    let first = part.clone().isel("time", 0).unwrap().arg_max(["x"]).request().unwrap();
    let first = first.results(&NoProgress).unwrap();
    assert_eq!((first.warnings.len(), first.single[0].1.text(0)), (2, "1".to_owned()));
    let error = part.sel("time", 1e9).unwrap_err().to_string();
    assert!(error.contains("checksum"), "{error}");
}

fn sample() -> File {
    let values: Vec<f32> = (0..12 * 3 * 2).map(|n| (n * 7 % 31) as f32).collect();
    file([12, 3, 2], [5, 2, 2], &values)
}

#[test]
fn windows_have_the_coordinates_of_their_last_positions() {
    let file = sample();
    let t = file.dataset("t").unwrap();
    let window = Window::rolling("time", 3);
    let request = t.select().mean(["lat", "lon"]).window(window).request().unwrap();
    let results = request.results(&NoProgress).unwrap();
    let dim = &results.arrays[0].dims[0];
    assert_eq!((dim.name.as_str(), dim.len), ("time", 10));
    assert_eq!(dim.coordinates.as_ref().unwrap().text(0), "2023-12-08T00:00:00");
    let stored = dim.stored.as_ref().unwrap();
    assert_eq!(stored.values.as_slice::<i32>().unwrap()[..2], [18, 27]);
    assert_eq!(stored.attrs["units"], "days since 2023-11-20");
    // The positions of maxima in windows are those of the axis.
    let window = Window::rolling("time", 3);
    let request = t.select().arg_max(["lat", "lon"]).window(window).request().unwrap();
    let results = request.results(&NoProgress).unwrap();
    let ResultValues::Positions(positions) = &results.arrays[0].values else { panic!("positions") };
    let values = t.read_all().unwrap();
    let values = values.as_slice::<f32>().unwrap();
    for start in 0..10 {
        let part = &values[start * 6..(start + 3) * 6];
        let max = part.iter().copied().fold(f32::MIN, f32::max);
        let first = part.iter().position(|&value| value == max).unwrap();
        let found: Vec<usize> = positions.iter().map(|axis| axis.index(start).unwrap()).collect();
        assert_eq!(found, [start + first / 6, first / 2 % 3, first % 2], "window {start}");
    }
}

#[test]
fn groups_by_time_are_named_after_the_part() {
    let file = sample();
    let t = file.dataset("t").unwrap();
    let reduce = t.select().mean(["lat", "lon"]).group_by(Group::time("time", TimePart::Season));
    let results = reduce.request().unwrap().results(&NoProgress).unwrap();
    let dim = &results.arrays[0].dims[0];
    assert_eq!(dim.name, "season");
    let json = serde_json::to_value(&results).unwrap();
    assert_eq!(json["coords"]["season"], serde_json::json!(["DJF", "SON"]));
    assert_eq!(json["units"], "m s-1");
    assert_eq!(results.arrays[0].attrs["cell_methods"], "height: mean time: lat: lon: mean");
    let error = t.select().arg_max(["lat"]).group_by(Group::time("time", TimePart::Season));
    let error = error.request().unwrap().results(&NoProgress).unwrap_err();
    assert!(error.to_string().contains("within groups"), "{error}");
}

#[test]
fn single_labels_are_no_dimensions() {
    let file = sample();
    let t = file.dataset("t").unwrap();
    let single = t.select().sel("lat", 80.0).unwrap();
    let kept = single.clone().keep_single();
    assert_eq!(kept.results(false).unwrap().arrays[0].shape(), [12, 1, 2]);
    assert_eq!(kept.read().unwrap().shape()[..], [12, 1, 2]);
    assert_eq!(single.shape(), [12, 2]);
    let results = single.results(false).unwrap();
    assert_eq!(results.arrays[0].shape(), [12, 2]);
    assert_eq!(results.single[0].1.text(0), "80");
    let (read, decoded) = (single.read().unwrap(), single.read_decoded().unwrap());
    assert_eq!((&read.shape()[..], read.bytes()), (&[12, 2][..], decoded.bytes()));
    assert_eq!(decoded.shape(), read.shape());
    let centred = single.transform(Method::Center).over(["time"]).in_memory().run().unwrap();
    assert_eq!(centred.tensor.unwrap().shape()[..], [12, 2]);
    assert_eq!(centred.dims.len(), 2);
    // Matrices have the other axis twice, also if one position of it is selected.
    let two = t.select().isel("lon", 0).unwrap();
    assert_eq!(two.mean(["time"]).run().unwrap().tensor.shape()[..], [3]);
    let by_time = single.mean(["lon"]).request().unwrap().results(&NoProgress).unwrap();
    assert_eq!(by_time.arrays[0].shape(), [12]);
    assert_eq!(by_time.arrays[0].attrs["cell_methods"], "height: mean lon: mean");
    let var = single.var(["lon"]).request().unwrap().results(&NoProgress).unwrap();
    assert_eq!(var.arrays[0].units(), Some("(m s-1)2"));
}

/// The same selection in a document and in the typed API has results of the same dimensions: a single number or label, and
/// the nearest label, drop their axis; ranges and parts of times keep it.
#[test]
fn documents_drop_the_same_axes() {
    let file = sample();
    let t = file.dataset("t").unwrap();
    let all = || t.select();
    let slices = |text: &str| all().slices(text).unwrap();
    let cases = [
        (r"[0, {}, -1]", slices("0,:,-1")),
        (r#"["0", "...", ":"]"#, slices("0,...,:")),
        (r#"["0:1", "..."]"#, slices("0:1")),
        (r#"[{"start": 0, "stop": 1}, {}, {}]"#, slices("0:1")),
        (r#"{"lat": 80}"#, all().sel("lat", 80.0).unwrap()),
        (r#"{"lat": "80"}"#, all().sel("lat", "80").unwrap()),
        (r#"{"lat": {"from": 80, "to": 80}}"#, all().sel("lat", 80.0..=80.0).unwrap()),
        (r#"{"lat": {"nearest": 79}}"#, all().sel("lat", LabelSelection::nearest(79.0)).unwrap()),
        (r#"{"lat": {"position": 1}}"#, all().isel("lat", 1).unwrap()),
        (r#"[{}, {"position": -1}, {}]"#, slices(":,-1,:")),
        (r#"{"lat": {"from": 80, "to": null}}"#, all().sel("lat", 80.0..).unwrap()),
        (r#"{"lat": {"from": null, "to": 80}}"#, all().sel("lat", ..=80.0).unwrap()),
        (r#"{"lat": {"from": null, "to": null}}"#, all()),
        (r#"{"time": "2023-11-20"}"#, all().sel("time", "2023-11-20").unwrap()),
        (r#"{"time": "2023-12"}"#, all().sel("time", "2023-12").unwrap()),
        (
            r#"{"time": "2023-11", "lat": 80}"#,
            all().sel("time", "2023-11").unwrap().sel("lat", 80.0).unwrap(),
        ),
    ];
    let text = |results: &tercet_tet::Results| serde_json::to_value(results).unwrap();
    for (selection, select) in cases {
        let document = |members: &str| {
            let document = format!(r#"{{"dataset": "t", "selection": {selection}{members}}}"#);
            let query = Query::parse(&document, Syntax::Json).unwrap();
            text(&query.request(&file).unwrap().results(&NoProgress).unwrap())
        };
        let read = document("");
        assert_eq!(read["shape"], serde_json::json!(select.shape()), "{selection}");
        let typed = text(&select.results(false).unwrap());
        for key in ["dims", "coords", "values"] {
            assert_eq!(read[key], typed[key], "{selection} {key}");
        }
        let reduce = |reduce: Reduce<'_>| text(&reduce.request().unwrap().results(&NoProgress).unwrap());
        for (members, typed) in [
            (r#", "mean": "lon""#, reduce(select.mean(["lon"]))),
            (r#", "arg_max": ["time", "lon"]"#, reduce(select.arg_max(["time", "lon"]))),
            (r#", "mean": []"#, reduce(select.mean([0usize; 0]))),
        ] {
            assert_eq!(document(members), typed, "{selection} {members}");
        }
        let zscore = document(r#", "transform": {"method": "zscore", "axis": "lon"}"#);
        assert_eq!(zscore["shape"], typed["shape"], "{selection}");
        // The reference keeps them.
        let query = format!(r#"{{"dataset": "t", "selection": {selection}, "mean": "lon"}}"#);
        let query = Query::parse(&query, Syntax::Json).unwrap();
        let mut options = RunOptions::new();
        options.reference = true;
        if let Ok(request) = query.request_with(&file, &options) {
            assert_eq!(request.dims().len(), 2, "{selection}");
        }
    }
    // An axis of groups is kept.
    let grouped = r#"{"dataset": "t", "selection": {"lat": 80}, "mean": [], "group_by": ["lat"]}"#;
    let grouped = Query::parse(grouped, Syntax::Json).unwrap();
    let grouped = grouped.request(&file).unwrap().results(&NoProgress).unwrap();
    assert_eq!((grouped.arrays[0].shape(), grouped.single.len()), (vec![1], 0));
}

/// Documents name axes, labels and groups as the command line does.
#[test]
fn documents_name_any_axis_and_coordinate() {
    let (row, column) = ("2d row", "x.y (näme), a name of more than thirty-two bytes");
    let mut layout = Layout::new();
    let v = layout.dataset("v", ElementType::F64, [3, 3], [2, 3]).unwrap();
    layout.dims(v, [row, column]).unwrap();
    layout.labels(v, column, ["a", "b", "c"].map(str::to_owned).to_vec()).unwrap();
    let rows = layout.dataset(row, ElementType::F32, [3], [3]).unwrap();
    layout.dims(rows, [row]).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    let values: Vec<f64> = (0..9).map(f64::from).collect();
    writer.array(v, TensorView::from_slice(&[3, 3], &values).unwrap()).unwrap();
    writer.array(rows, TensorView::from_slice(&[3], &[60.5f32, 50.0, 60.5]).unwrap()).unwrap();
    let file = File::from_bytes("names", writer.finish().unwrap().output).unwrap();
    let select = file.dataset("v").unwrap().select();
    let json = |results: tercet_tet::Results| serde_json::to_value(results).unwrap();
    let typed = |reduce: Reduce<'_>| json(reduce.request().unwrap().results(&NoProgress).unwrap());
    let run = |members: serde_json::Value| {
        let mut document = serde_json::json!({ "dataset": "v" });
        document.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let query = Query::parse(&document.to_string(), Syntax::Json).unwrap();
        query.request(&file)?.results(&NoProgress).map(json)
    };
    let document = |members| run(members).unwrap();
    let all = [0usize; 0];
    assert_eq!(document(serde_json::json!({ "mean": [row] })), typed(select.mean([row])));
    assert_eq!(document(serde_json::json!({ "mean": [row, column] })), typed(select.mean(all)));
    assert_eq!(document(serde_json::json!({ "mean": ["1"] })), typed(select.mean([column])));
    // Labels of the coordinate dataset.
    let filtered = document(serde_json::json!({ "sum": [], "label_filter": { "axis": row, "eq": "60.5" } }));
    assert_eq!((&filtered["values"], &filtered["elements"]), (&24.0.into(), &6.into()));
    let part = serde_json::json!({ "sum": [], "selection": [{ "start_label": "50" }, {}] });
    assert_eq!(document(part)["values"], 33.0);
    let groups = serde_json::json!({ "sum": [], "group_by": { "by": "labels", "axes": [row] } });
    let grouped = select.sum([column]).group_by(Group::labels(row, str::to_owned));
    assert_eq!(document(groups.clone()), typed(grouped));
    assert_eq!(document(groups)["coords"][row], serde_json::json!([60.5, 50]));
    // The labels of one axis are not those of another of the same length.
    let wrong = run(serde_json::json!({ "sum": [], "label_filter": { "axis": row, "eq": "a" } }));
    let wrong = wrong.unwrap_err().to_string();
    assert!(wrong.contains("axis `2d row` has no label `a`"), "{wrong}");
    // An axis of a single label is neither a group nor a dimension.
    let single = serde_json::json!({ "mean": [], "group_by": [row], "selection": { column: "b" } });
    let named = serde_json::json!({ "mean": [column], "group_by": [row], "selection": { column: "b" } });
    let expected = typed(select.clone().sel(column, "b").unwrap().mean([column]));
    assert_eq!((document(single), document(named)), (expected.clone(), expected));
}

/// Every axis but that of the groups is listed, or a single label of it is selected.
#[test]
fn groups_of_documents_need_no_single_axes() {
    let file = sample();
    let document = |selection: &str| {
        let document =
            format!(r#"{{"dataset": "t", "selection": {selection}, "mean": ["lon"], "group_by": ["time"]}}"#);
        Query::parse(&document, Syntax::Json).unwrap()
    };
    let query = document(r#"{"lat": 80}"#);
    let found = query.request(&file).unwrap().results(&NoProgress).unwrap();
    let select = file.dataset("t").unwrap().select().sel("lat", 80.0).unwrap();
    let expected = select.mean(["lon"]).request().unwrap().results(&NoProgress).unwrap();
    assert_eq!(serde_json::to_value(found).unwrap(), serde_json::to_value(expected).unwrap());
    let range = document(r#"{"lat": {"from": 80, "to": 80}}"#);
    assert!(range.request(&file).is_err());
    assert!(query.request_with(&file, &RunOptions::new().with_reference(true)).is_err());
}

#[test]
fn histograms_count_nan_apart() {
    let mut values = vec![1.0f32; 12 * 3 * 2];
    (values[0], values[1], values[2], values[3]) = (f32::NAN, f32::NAN, -5.0, 9.0);
    let file = file([12, 3, 2], [5, 2, 2], &values);
    let all = file.dataset("t").unwrap().select();
    let op = Op::Histogram { bins: 2, range: Some((0.0, 2.0)) };
    for (select, nan, elements) in
        [(all.clone(), 0, 70), (all.clone().raw(), 2, 72), (all.skipna(false), 2, 72)]
    {
        let results = select.reduce([op]).request().unwrap().results(&NoProgress).unwrap();
        assert_eq!((results.elements, results.arrays[0].nan), (elements, Some(nan)));
        let json = serde_json::to_value(&results).unwrap();
        assert_eq!((&json["below"], &json["above"], &json["nan"]), (&1.into(), &1.into(), &nan.into()));
        let attr = results.arrays[0].attrs.get("values_nan").map(String::as_str);
        assert_eq!(attr, (nan > 0).then_some("2"));
    }
}

/// There is a partial result for every value: a small budget computes the results in parts.
#[test]
fn the_budget_does_not_change_weighted_results() {
    let shape = [30u64, 40, 50];
    let value = |n: u32| if n % 97 == 3 { f32::NAN } else { (n * 7919 % 10_007) as f32 - 3000.0 };
    let values: Vec<f32> = (0..60_000).map(value).collect();
    for chunks in [[1, 40, 50], [4, 16, 7], [30, 40, 50]] {
        let file = file(shape, chunks, &values);
        let select = file.dataset("t").unwrap().select().statistics(false);
        let backwards = IndexSlice::parse("28:2:-3").unwrap();
        let some = select.clone().isel("time", backwards).unwrap().isel("lon", 3..).unwrap();
        for select in [select, some] {
            for windows in [false, true] {
                let run = |budget: u64| {
                    let select = select.clone().memory_budget(budget);
                    let ops = [Op::Sum, Op::Mean, Op::Var, Op::Std, Op::Min, Op::Count];
                    let mut reduce = select.reduce(ops).over(["lat"]).weights(Weights::cos_latitude("lat"));
                    if windows {
                        reduce = reduce.window(Window::rolling("lon", 4).step(2));
                    }
                    reduce.with_counts().run_all().unwrap()
                };
                let (small, large) = (run(1), run(1 << 30));
                for (small, large) in small.iter().zip(&large) {
                    let numbers = |one: &tercet_tet::Reduced| {
                        let values = one.tensor.to_vec::<f64>().unwrap();
                        values.into_iter().map(f64::to_bits).collect::<Vec<u64>>()
                    };
                    assert_eq!(numbers(small), numbers(large), "{chunks:?}: {:?}", small.op);
                    assert_eq!((small.elements, small.skipped), (large.elements, large.skipped));
                    let counts = |one: &tercet_tet::Reduced| one.counts.as_ref()?.to_vec::<u64>();
                    assert!(counts(small).is_some() && counts(small) == counts(large));
                }
            }
        }
    }
}

#[test]
fn maxima_beside_weights_are_nan_if_a_value_is() {
    let file = file([1, 3, 2], [1, 3, 2], &[1.0, 2.0, f32::NAN, 4.0, 5.0, 6.0]);
    let select = file.dataset("t").unwrap().select().skipna(false);
    let reduce = select.reduce([Op::Mean, Op::Max]).over(["lat"]);
    let found = numbers(reduce.weights(Weights::cos_latitude("lat")));
    assert!(found[0][0].is_nan() && found[1][0].is_nan(), "{found:?}");
    assert_eq!(found[1][1], 6.0);
}

#[test]
fn wrong_weights_are_refused() {
    let file = sample();
    let all = file.dataset("t").unwrap().select();
    let refused = |reduce: Reduce<'_>| reduce.request().unwrap_err().to_string();
    let values = |weights: &[f64]| Weights::values("lat", weights.to_vec());
    assert!(refused(all.mean(["lat"]).weights(values(&[1.0]))).contains("are 1, but 3 positions"));
    assert!(refused(all.mean(["lat"]).weights(values(&[1.0, f64::NAN, 1.0]))).contains("not finite"));
    assert!(refused(all.mean(["lat"]).weights(Weights::cos_latitude("lon"))).contains("no numbers"));
    assert!(refused(all.mean(["time"]).weights(Weights::cos_latitude("lat"))).contains("reduced"));
    assert!(refused(all.median(["lat"]).weights(Weights::cos_latitude("lat"))).contains("`median`"));
    let padded = Window::rolling("time", 2).min_count(2);
    assert!(
        refused(all.mean(["lat"]).window(padded).weights(Weights::cos_latitude("lat"))).contains("windows")
    );
    // Radians would be taken for small degrees.
    let mut layout = Layout::new();
    let lat = layout.dataset("lat", ElementType::F64, [3], [3]).unwrap();
    layout.dims(lat, ["lat"]).unwrap();
    layout.attr(lat, "units", "radians").unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    writer.array(lat, TensorView::from_slice(&[3], &[0.0, 0.2, 0.4]).unwrap()).unwrap();
    let radians = File::from_bytes("a", writer.finish().unwrap().output).unwrap();
    let lat = radians.dataset("lat").unwrap().select();
    assert!(refused(lat.mean(["lat"]).weights(Weights::cos_latitude("lat"))).contains("are radians"));
    // Weights with windows of another axis.
    let window = || Window::rolling("time", 2);
    let plain = numbers(all.mean(["lat"]).window(window()).weights(values(&[1.0; 3])));
    let expected = numbers(all.mean(["lat"]).window(window()));
    assert!(plain[0].iter().zip(&expected[0]).all(|(a, b)| close(*a, *b)));
}
