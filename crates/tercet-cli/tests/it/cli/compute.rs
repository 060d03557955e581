//! Reductions as verbs: selections, missing values, groups, results as text, JSON and files.

use std::path::Path;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tercet::core::{DType, TensorView};
use tercet::tet::{File, Layout, Writer, WriterOptions};

use super::support::{CommandOutput, TestDir, run};

/// `t`: i16 of 2 times, 3 latitudes, 4 longitudes, packed, with 3 missing values. `a`: 1, 2, 3, −999 with that fill value.
/// `n`: 1, NaN, 3. `time`, `lat` are coordinates.
fn write_fields(path: &Path) {
    let mut layout = Layout::new();
    let t = layout.dataset("t", DType::I16, [2, 3, 4], [1, 2, 4]).unwrap();
    layout.dims(t, ["time", "lat", "lon"]).unwrap();
    for (key, value) in [
        ("_FillValue", "-999"),
        ("scale_factor", "0.5"),
        ("add_offset", "250"),
        ("units", "K"),
        ("long_name", "temperature"),
    ] {
        layout.attr(t, key, value).unwrap();
    }
    let lons = ["0", "90", "180", "270"].map(str::to_owned).to_vec();
    layout.labels(t, "lon", lons).unwrap();
    let a = layout.dataset("a", DType::F32, [4], [4]).unwrap();
    layout.attr(a, "_FillValue", "-999").unwrap();
    let n = layout.dataset("n", DType::F64, [3], [3]).unwrap();
    let time = layout.dataset("time", DType::I32, [2], [2]).unwrap();
    layout.dims(time, ["time"]).unwrap();
    layout.attr(time, "units", "hours since 2024-01-31 12:00").unwrap();
    let lat = layout.dataset("lat", DType::F32, [3], [3]).unwrap();
    layout.dims(lat, ["lat"]).unwrap();
    layout.attr(lat, "units", "degrees_north").unwrap();
    let mut writer = Writer::create(path, layout, WriterOptions::new()).unwrap();
    let values: Vec<i16> = (0..24).map(|i| if [5, 6, 20].contains(&i) { -999 } else { i }).collect();
    writer.array(t, TensorView::from_slice(&[2, 3, 4], &values).unwrap()).unwrap();
    writer.array(a, TensorView::from_slice(&[4], &[1.0f32, 2.0, 3.0, -999.0]).unwrap()).unwrap();
    writer.array(n, TensorView::from_slice(&[3], &[1.0f64, f64::NAN, 3.0]).unwrap()).unwrap();
    writer.array(time, TensorView::from_slice(&[2], &[0i32, 24]).unwrap()).unwrap();
    writer.array(lat, TensorView::from_slice(&[3], &[60.0f32, 0.0, -60.0]).unwrap()).unwrap();
    writer.finish().unwrap();
}

fn fields() -> TestDir {
    let dir = TestDir::new();
    write_fields(&dir.path("f.tet"));
    dir
}

fn tet(dir: &TestDir, args: &[&str]) -> CommandOutput {
    run(dir.command("tet").args(args))
}

fn text(dir: &TestDir, args: &str) -> String {
    let output = dir.tet(args);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{args}");
    output.stdout
}

/// The numbers of nested lists; `None` for null.
fn flattened(values: &Value) -> Vec<Option<f64>> {
    match values {
        Value::Array(list) => list.iter().flat_map(flattened).collect(),
        other => vec![other.as_f64()],
    }
}

fn parsed(dir: &TestDir, args: &str) -> Value {
    serde_json::from_str(&text(dir, &format!("{args} --json"))).unwrap()
}

#[test]
fn fill_values_are_not_averaged() {
    let dir = fields();
    assert_eq!(text(&dir, "mean f.tet a"), "mean of a: 2  (3 values, 1 missing value skipped)\n");
    assert_eq!(text(&dir, "mean f.tet a -q"), "2\n");
    assert_eq!(parsed(&dir, "mean f.tet a")["skipped"], 1);
    assert_eq!(parsed(&dir, "mean f.tet a --no-skipna")["values"], Value::Null);
    assert_eq!(parsed(&dir, "mean f.tet a --raw")["values"], -248.25);
    // Query documents follow the same rule, but not in the words of the reference implementation.
    let query = |more: &[&str]| {
        let args = ["query", r#"{"dataset":"a","mean":[]}"#, "-t", "f.tet", "-x"];
        tet(&dir, &[&args[..], more].concat()).stdout
    };
    let full = query(&[]);
    assert!(full.contains("mean, 3 elements of 4 selected, 1 missing value skipped: 2\n"), "{full}");
    assert!(query(&["-q"]).contains(" mean=2 elements=3 skipped=1 "));
    assert!(query(&["--format", "table"]).contains("skipped"));
    let clean: Value = serde_json::from_str(&query(&["--json"])).unwrap();
    assert_eq!((&clean["values"], &clean["skipped"]), (&json!(2.0), &json!(1)));
    for format in ["reference", "json", "stats"] {
        let answer: Value = serde_json::from_str(&query(&["--format", format])).unwrap();
        assert_eq!(answer["execution"]["operation_mean"], -248.25, "{format}");
    }
}

#[test]
fn packed_values_are_decoded() {
    let dir = fields();
    assert_eq!(parsed(&dir, "max f.tet t")["values"], 261.5);
    assert_eq!(parsed(&dir, "max f.tet t --raw")["values"], 23.0);
    assert_eq!(parsed(&dir, "max f.tet t")["units"], "K");
    assert_eq!(parsed(&dir, "max f.tet t --raw")["units"], Value::Null);
    let counted = tet(&dir, &["count", "f.tet", "t", "--where", "value > 255 and value <= 258.5", "--json"]);
    // Stored 11 to 17.
    assert_eq!(serde_json::from_str::<Value>(&counted.stdout).unwrap()["values"], 7);
}

#[test]
fn every_operation_treats_nan_alike() {
    let dir = fields();
    let ops = "max f.tet n --ops mean,min,sum,std,var,median,count,product,quantile_0.5,argmax";
    let all = parsed(&dir, ops);
    let found: Vec<Value> = all.as_array().unwrap().iter().map(|one| one["values"].clone()).collect();
    let expected = json!([3.0, 2.0, 1.0, 4.0, 1.0, 1.0, 2.0, 2, 3.0, 2.0, { "dim_0": 2 }]);
    assert_eq!(json!(found), expected);
    assert!(all.as_array().unwrap().iter().all(|one| one["skipped"] == 1));
    for op in ["max", "mean", "std", "median"] {
        assert_eq!(parsed(&dir, &format!("{op} f.tet n"))["skipped"], 1, "{op}");
    }
}

#[test]
fn an_unknown_dataset_is_8() {
    let dir = fields();
    assert_snapshot!("compute_unknown_dataset", dir.tet("mean f.tet tt").snapshot());
    assert_snapshot!("compute_unknown_axis", dir.tet("mean f.tet t --over lat,lom").snapshot());
    assert_snapshot!("compute_unknown_label", dir.tet("mean f.tet t --sel lat=61").snapshot());
    let filter = ["mean", "f.tet", "t", "--where", "value > 250 or value < 3"];
    assert_snapshot!("compute_wrong_filter", tet(&dir, &filter).snapshot());
    for (args, message) in [
        ("mean f.tet t --sel lat", "`--sel lat`: expected AXIS=VALUE"),
        ("mean f.tet t --isel lat=x", "invalid positions `x`"),
        ("mean f.tet t --isel lat=9", "position 9"),
        ("mean f.tet t --over lat,lat", "axis `lat` is given twice"),
        ("mean f.tet t --group-by time.week", "unknown part of a time `week`"),
        ("mean f.tet t --group-by lon.month", "its coordinates are not times"),
        ("mean f.tet t --rolling time=x", "invalid number of positions `x`"),
        ("mean f.tet t --rolling time=3", "windows of 3 positions are longer than axis `time`: 2 positions"),
        ("mean f.tet t --rolling time=0", "size and step of windows must be at least 1"),
        ("mean f.tet t --isel lat=1:1", "axis `lat`: the selection has no positions"),
        ("mean f.tet t --ops histogram", "use `tet histogram`"),
        ("mean f.tet t --ops maximum", "operations: sum, mean, min, max,"),
        ("mean f.tet t --sel time=~2024-02-02 --tolerance 60", "is 43200 s away"),
        ("mean f.tet t --rolling time=2 --group-by time.month", "axis `time` has both groups and windows"),
        ("mean f.tet a --sel 0=5", "axis 0 has neither labels nor a coordinate dataset"),
        ("mean f.tet t --weights sin(lat)", "unknown weights"),
        ("mean f.tet t --weights cos(lon)", "need latitudes from -90 to 90 degrees, but one is 180"),
        ("median f.tet t --weights cos(lat)", "`median` has no weights"),
        ("mean f.tet t --over time --weights cos(lat)", "weights need an axis that is reduced"),
        ("mean f.tet t --ops maximum", "unknown operation `maximum`"),
        ("count f.tet n --ops null_count", "`null_count` needs a fill value, but the dataset has none"),
        (
            "count f.tet n --ops null_count",
            "hint: count the missing values with a filter, `value is missing`",
        ),
        ("covariance f.tet t --over time", "covariances need 2 axes, one of them reduced"),
        ("mean f.tet t --sel lat=~55 --tolerance 2", "no label near `55`"),
        ("mean f.tet t -o m.nc", "cannot write .nc files"),
        ("mean f.tet t -o f.tet --force", "input and output are the same file"),
        ("quantile f.tet t --q 2", "a quantile is not between 0 and 1"),
        ("histogram f.tet t --range 5", "expected MIN..MAX"),
        ("argmax f.tet t --over lat,lon -o m.npy", "write a .tet, .csv or .json file"),
        ("mean f.tet t --ops max -o m.npy", "a .npy file holds one array, not 2"),
    ] {
        let output = dir.tet(args);
        assert_eq!((output.code, output.stdout.as_str()), (Some(8), ""), "{args}: {}", output.stderr);
        assert!(output.stderr.contains(message), "{args}: {}", output.stderr);
    }
    for name in ["m.nc", "m.npy"] {
        assert!(!dir.path(name).exists(), "{name}");
    }
}

#[test]
fn text_has_units_labels_and_skipped_values() {
    let dir = fields();
    assert_snapshot!("compute_scalars", text(&dir, "mean f.tet t --ops max,count,argmax"));
    assert_snapshot!("compute_series", text(&dir, "mean f.tet t --over lat,lon --ops max,argmax"));
    assert_snapshot!("compute_map", text(&dir, "mean f.tet t --over time -n 2"));
    assert_snapshot!("compute_level", text(&dir, "max f.tet t --over lon --sel lat=0"));
    assert_snapshot!("compute_histogram", text(&dir, "histogram f.tet t --bins 3"));
    assert_snapshot!("compute_months", text(&dir, "mean f.tet t --group-by time.month --over lat,lon"));
}

#[test]
fn a_chunk_that_one_operation_reads_is_not_answered_by_statistics() {
    let dir = fields();
    let read = |args: &str| {
        let results = parsed(&dir, args);
        let read = &results[0]["read"];
        let numbers = ["chunks", "chunks_by_statistics"].map(|key| read[key].as_u64().unwrap());
        assert_eq!(read["bytes"].as_u64().unwrap() > 0, numbers[0] > 0, "{args}: {read}");
        numbers
    };
    // Missing values are only counted by statistics if they are NaN: the mean reads the values.
    assert_eq!(read("mean f.tet t --ops any_nan"), [4, 0]);
    assert_eq!(read("max f.tet n --ops any_nan"), [0, 1]);
    assert_eq!(read("max f.tet n --ops median"), [1, 0]);
    assert_eq!(read("max f.tet n --ops any_nan --no-stats"), [1, 0]);
}

#[test]
fn transforms_and_matrices_are_those_of_documents() {
    let dir = fields();
    let centered = parsed(&dir, "transform f.tet n center");
    assert_eq!((&centered["values"], &centered["skipped"]), (&json!([-1.0, null, 1.0]), &json!(1)));
    let filtered = ["transform", "f.tet", "a", "l1", "--where", "value < 3", "--json"];
    let filtered: Value = serde_json::from_str(&tet(&dir, &filtered).stdout).unwrap();
    let third = f64::from(1.0f32 / 3.0);
    assert_eq!(filtered["values"][0].as_f64().map(|value| (value - third).abs() < 1e-7), Some(true));
    assert_eq!((&filtered["values"][2], &filtered["values"][3]), (&Value::Null, &Value::Null));
    let query = r#"{"dataset":"t","transform":{"method":"zscore","axis":"time"}}"#;
    let document = tet(&dir, &["query", query, "-t", "f.tet", "-x", "--json"]);
    assert_eq!(text(&dir, "transform f.tet t zscore --over time --json"), document.stdout);
    // Packed values are decoded, as `extract` does; with `--raw` the integers are used.
    text(&dir, "extract f.tet t --decode -o x.tet");
    let filter = ["--over", "lat,lon", "--where", "value > 252"];
    let part = ["--isel", "lat=1", "--isel", "lon=1:"];
    for method in ["center", "zscore", "minmax", "softmax", "l1"] {
        for more in [&[][..], &filter[..2], &filter, &part] {
            let transform = |file: &str| {
                let args = [&["transform", file, "t", method, "--json"], more].concat();
                let result = tet(&dir, &args);
                assert_eq!(result.code, Some(0), "{args:?}: {}", result.stderr);
                serde_json::from_str::<Value>(&result.stdout).unwrap()
            };
            let (packed, decoded) = (transform("f.tet"), transform("x.tet"));
            for key in ["dtype", "dims", "coords", "shape", "elements", "skipped", "units"] {
                assert_eq!(packed[key], decoded[key], "{method} {more:?} {key}");
            }
            let close = |(a, b): (&Option<f64>, &Option<f64>)| match (a, b) {
                (Some(a), Some(b)) => (a - b).abs() < 1e-12,
                (a, b) => a == b,
            };
            let (packed, decoded) = (flattened(&packed["values"]), flattened(&decoded["values"]));
            let is_same = packed.len() == decoded.len() && packed.iter().zip(&decoded).all(close);
            assert!(is_same, "{method} {more:?}: {packed:?} {decoded:?}");
        }
    }
    let raw = parsed(&dir, "transform f.tet t center --over time --sel lat=60 --raw");
    assert_eq!((&raw["values"][0], &raw["dtype"]), (&json!([-6.0, -6.0, -6.0, -6.0]), &json!("float64")));
    let line = text(&dir, "transform f.tet t center --over time -o c.tet");
    assert!(line.starts_with("c.tet: transform of `t`, float64 2×3×4, 3 missing values skipped, "), "{line}");
    let file = File::open(dir.path("c.tet")).unwrap();
    let centered = file.dataset("t").unwrap();
    assert!(!centered.info().unwrap().attrs.contains_key("scale_factor"));
    // Also in the file that a document names.
    let query = r#"{"dataset":"t","transform":{"method":"center","axis":"time"},
        "write":{"target":"sidecar","path":"w.tet"}}"#;
    assert_eq!(tet(&dir, &["query", query, "-t", "f.tet", "-x"]).code, Some(0));
    let written = File::open(dir.path("w.tet")).unwrap();
    let written = written.dataset("t-center").unwrap();
    assert!(!written.info().unwrap().attrs.contains_key("_FillValue"));
    assert!(written.read_all().unwrap().bytes() == centered.read_all().unwrap().bytes());
    // The reference implementation transforms stored floats only.
    let query = r#"{"dataset":"t","transform":{"method":"center","axis":"time"}}"#;
    let refused = tet(&dir, &["query", query, "-t", "f.tet", "-x", "--format", "reference"]);
    assert_eq!(refused.code, Some(8));
    assert!(refused.stderr.contains("needs a dataset of type `f16`, `f32` or `f64`"), "{}", refused.stderr);

    let dir = TestDir::with_weather();
    for verb in ["covariance", "correlation"] {
        let query = format!(r#"{{"dataset":"t2m","{verb}":"time"}}"#);
        let document = tet(&dir, &["query", &query, "-t", "weather.tet", "-x", "--json"]);
        let args = format!("{verb} weather.tet t2m --over time");
        assert_eq!(text(&dir, &format!("{args} --json")), document.stdout);
        let table = text(&dir, &args);
        assert!(table.starts_with(verb) && table.contains("station_2"), "{table}");
    }
}

/// A query without an operation writes its selection block by block, as `extract` does.
#[test]
fn selections_of_documents_may_be_larger_than_memory() {
    let dir = TestDir::new();
    let mut layout = Layout::new();
    let a = layout.dataset("a", DType::F32, [300, 1000], [10, 1000]).unwrap();
    layout.dims(a, ["y", "x"]).unwrap();
    let mut writer = Writer::create(dir.path("a.tet"), layout, WriterOptions::new()).unwrap();
    let values: Vec<f32> = (0..300)
        .flat_map(|row: u16| (0..1000u16).map(move |n| f32::from(row) * 1000.0 + f32::from(n)))
        .collect();
    writer.array(a, TensorView::from_slice(&[300, 1000], &values).unwrap()).unwrap();
    writer.finish().unwrap();
    let query = r#"{"dataset":"a","selection":["::-1","1:"]}"#;
    for name in ["x.npy", "x.tet", "x.csv", "x.json"] {
        let written = ["query", query, "-t", "a.tet", "-x", "--max-memory", "256KiB", "-o", name];
        let output = tet(&dir, &written);
        assert_eq!(output.code, Some(0), "{name}: {}", output.stderr);
        let output = dir.tet(&format!("extract a.tet a -s ::-1,1: -o extracted-{name}"));
        assert_eq!(output.code, Some(0), "{name}: {}", output.stderr);
        let values = |name: String| {
            if Path::new(&name).extension().is_none_or(|extension| extension != "tet") {
                return dir.read(&name);
            }
            let file = File::open(dir.path(&name)).unwrap();
            file.dataset("a").unwrap().read_all().unwrap().bytes().to_vec()
        };
        assert!(values(name.to_owned()) == values(format!("extracted-{name}")), "{name}");
    }
    // Filtered values are computed.
    let filtered = r#"{"dataset":"a","filter":{"gt":5}}"#;
    let written = ["query", filtered, "-t", "a.tet", "-x", "--max-memory", "256KiB", "-o", "y.npy"];
    assert_eq!(tet(&dir, &written).code, Some(6));
}

#[test]
fn json_has_dimensions_coordinates_and_values() {
    let dir = fields();
    assert_snapshot!("compute_json", text(&dir, "mean f.tet t --over lat --sel lon=90..180 --json"));
    let one = text(&dir, "argmin f.tet t --over lat,lon --json");
    assert!(!one.contains("_preview") && !one.contains("accepted") && !one.contains("status"), "{one}");
    let one: Value = serde_json::from_str(&one).unwrap();
    assert_eq!(one["values"], json!({ "lat": [60.0, 60.0], "lon": [0, 0] }));
    assert_eq!(one["indices"], json!({ "lat": [0, 0], "lon": [0, 0] }));
    assert_eq!(one["coords"]["time"], json!(["2024-01-31T12:00:00", "2024-02-01T12:00:00"]));
    let flags = parsed(&dir, "max f.tet n --ops any_nan");
    assert_eq!((&flags[1]["values"], &flags[1]["dtype"]), (&json!(true), &json!("bool")));
    let bins = parsed(&dir, "histogram f.tet a --bins 2 --range 0..4");
    assert_eq!((&bins["values"], &bins["edges"]), (&json!([1, 2]), &json!([0.0, 2.0, 4.0])));
    // All histograms have the same bins.
    let bins = parsed(&dir, "histogram f.tet t --bins 2 --over lat,lon");
    assert_eq!(
        (&bins["values"], &bins["edges"]),
        (&json!([[10, 0], [0, 11]]), &json!([250.0, 255.75, 261.5]))
    );
    // A selection of one label is no dimension.
    let level = parsed(&dir, "mean f.tet t --over lon --sel lat=-60");
    assert_eq!((&level["dims"], &level["coords"]["lat"]), (&json!(["time"]), &json!(-60.0)));
}

#[test]
fn groups_windows_and_weights() {
    let dir = fields();
    let months = parsed(&dir, "count f.tet t --group-by time.month");
    assert_eq!((&months["dims"], &months["shape"]), (&json!(["month", "lat", "lon"]), &json!([2, 3, 4])));
    assert_eq!(months["coords"]["month"], json!([1, 2]));
    let by_label = parsed(&dir, "sum f.tet t --group-by lon --over time,lat --raw");
    assert_eq!(by_label["coords"]["lon"], json!([0, 90, 180, 270]));
    let windows = parsed(&dir, "max f.tet t --rolling lon=3 --over time,lat");
    assert_eq!((&windows["coords"]["lon"], &windows["values"]), (&json!([180, 270]), &json!([261.0, 261.5])));
    let weighted = parsed(&dir, "mean f.tet t --weights cos(lat) --isel time=0 --isel lon=0");
    // 250 with weight 0.5, 252 with weight 1, 254 with weight 0.5.
    assert!((weighted["values"].as_f64().unwrap() - 252.0).abs() < 1e-12);
}

#[test]
fn results_are_saved_in_four_formats() {
    let dir = fields();
    for name in ["m.npy", "m.tet", "m.csv", "m.json"] {
        let line = text(&dir, &format!("mean f.tet t --over lon -o {name}"));
        assert!(
            line.starts_with(&format!("{name}: mean of `t`, float64 2×3, 3 missing values skipped, ")),
            "{line}"
        );
        let refused = dir.tet(&format!("mean f.tet t -o {name}"));
        assert_eq!(refused.code, Some(8), "{name}");
        assert!(refused.stderr.contains("`--force` replaces it"), "{}", refused.stderr);
    }
    let json = parsed(&dir, "mean f.tet t --over lon");
    assert_eq!(serde_json::from_slice::<Value>(&dir.read("m.json")).unwrap(), json);
    let expected: Vec<f64> = json["values"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|row| row.as_array().unwrap())
        .map(|v| v.as_f64().unwrap())
        .collect();
    let npy = dir.read("m.npy");
    assert!(npy[10..].starts_with(b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }"));
    let bytes: Vec<u8> = expected.iter().flat_map(|value| value.to_le_bytes()).collect();
    assert!(npy.ends_with(&bytes) && npy.len() == 128 + bytes.len());
    let csv = String::from_utf8(dir.read("m.csv")).unwrap();
    assert!(csv.starts_with("time,lat,mean\n2024-01-31T12:00:00,60,250.75\n"), "{csv}");
    assert_eq!(csv.lines().count(), 7);
    // The file can be queried again: coordinates and attributes are kept, packing is not.
    assert_eq!(parsed(&dir, "mean m.tet t --over lat")["coords"]["time"], json["coords"]["time"]);
    let file = File::open(dir.path("m.tet")).unwrap();
    let t = file.dataset("t").unwrap();
    assert_eq!(t.read_all().unwrap().as_slice::<f64>(), Some(&expected[..]));
    let attrs = &t.info().unwrap().attrs;
    let names: Vec<&str> = attrs.keys().map(String::as_str).collect();
    assert_eq!(names, ["cell_methods", "long_name", "units"]);
    assert_eq!(attrs["cell_methods"], "lon: mean");
    let row = file.history().last().unwrap();
    assert_eq!((row.op.as_str(), row.params["operation"].as_str()), ("compute", "mean"));
    assert_eq!(row.parents, ["f.tet"]);
    assert_eq!(dir.tet("verify m.tet --deep").code, Some(0));
    text(&dir, "mean f.tet t -o one.csv --force");
    assert_eq!(String::from_utf8(dir.read("one.csv")).unwrap().lines().next(), Some("mean"));
    // Several operations, and positions of maxima.
    text(&dir, "max f.tet t --over lat --ops mean,argmax -o many.tet");
    let file = File::open(dir.path("many.tet")).unwrap();
    let names: Vec<&str> = file.datasets().map(|dataset| dataset.name()).collect();
    assert_eq!(names, ["t_max", "t_mean", "t_arg_max_lat", "t_arg_max_lat_index", "time"]);
    text(&dir, "argmax f.tet t --over lat --isel time=0 -o at.csv");
    let csv = String::from_utf8(dir.read("at.csv")).unwrap();
    assert!(csv.starts_with("lon,arg_max_lat,arg_max_lat_index\n0,-60,2\n"), "{csv}");
    text(&dir, "argmax f.tet t --over lat --isel time=0 -o at.npy");
    assert!(dir.read("at.npy").ends_with(&(-60f64).to_le_bytes()));
    let stdout = text(&dir, "mean f.tet t --over lat,lon -o - --as csv");
    assert!(stdout.starts_with("time,mean\n"), "{stdout}");
}

#[test]
fn results_of_documents_are_saved() {
    let dir = fields();
    let query = r#"{"dataset":"t","mean":["lat"],"selection":{"lon":"90..180"}}"#;
    let output = tet(&dir, &["query", query, "-t", "f.tet", "-x", "-o", "q.csv"]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    let verb = text(&dir, "mean f.tet t --over lat --sel lon=90..180 -o - --as csv");
    assert_eq!(String::from_utf8(dir.read("q.csv")).unwrap(), verb);
    let refused = tet(&dir, &["query", query, "-t", "f.tet", "-o", "r.csv"]);
    assert_eq!(refused.code, Some(8), "{}", refused.stderr);
    let refused = tet(&dir, &["query", query, "-t", "f.tet", "-x", "-o", "r.zarr"]);
    assert!(refused.stderr.contains("cannot write .zarr files"), "{}", refused.stderr);
    // A selection without an operation has its stored values.
    let read = tet(&dir, &["query", r#"{"dataset":"t","selection":[0,0]}"#, "-t", "f.tet", "-x", "--json"]);
    let read: Value = serde_json::from_str(&read.stdout).unwrap();
    assert_eq!((&read["values"], &read["decoded"]), (&json!([0, 1, 2, 3]), &json!(false)));
    // A single label is no dimension, as in the command.
    let query = r#"{"dataset":"t","mean":["lat"],"selection":{"lon":90,"time":{"nearest":"2024-01-01"}}}"#;
    let read = tet(&dir, &["query", query, "-t", "f.tet", "-x", "--json"]);
    assert_eq!(
        serde_json::from_str::<Value>(&read.stdout).unwrap(),
        parsed(&dir, "mean f.tet t --over lat --sel lon=90 --sel time=~2024-01-01")
    );
    // Positions of maxima are coordinates in text, too.
    let query = r#"{"dataset":"t","arg_max":["lat","lon"]}"#;
    let shown = tet(&dir, &["query", query, "-t", "f.tet", "-x"]).stdout;
    assert!(shown.contains("│ 2024-02-01T12:00:00 ┆ 11 (lat=-60, lon=270) │"), "{shown}");
    // A transform that writes a file reports it.
    let query =
        r#"{"dataset":"n","transform":{"method":"center"},"write":{"target":"spill","path":"c.bin"}}"#;
    let written = tet(&dir, &["query", query, "-t", "f.tet", "-x", "--json"]);
    let written: Value = serde_json::from_str(&written.stdout).unwrap();
    assert_eq!(written["written"]["bytes"], 24);
}

#[test]
fn extract_decodes_on_request() {
    let dir = fields();
    let line = text(&dir, "extract f.tet t --sel lat=0 --isel time=0 -o stored.csv");
    assert!(line.starts_with("stored.csv: stored values of `t`, int16 4, "), "{line}");
    assert_eq!(
        String::from_utf8(dir.read("stored.csv")).unwrap(),
        "lon,value\n0,4\n90,-999\n180,-999\n270,7\n"
    );
    let line = text(&dir, "extract f.tet t --sel lat=0 --isel time=0 --decode -o decoded.csv");
    assert!(line.starts_with("decoded.csv: decoded values of `t`, float64 4, "), "{line}");
    assert_eq!(
        String::from_utf8(dir.read("decoded.csv")).unwrap(),
        "lon,value\n0,252\n90,NaN\n180,NaN\n270,253.5\n"
    );
    // Every format states how many values are missing.
    for name in ["n.csv", "n.json", "n.tet", "n.npy", "n.raw"] {
        let line = text(&dir, &format!("extract f.tet t --decode -o {name}"));
        assert!(line.contains(", 3 missing values, "), "{name}: {line}");
        let json = parsed(&dir, &format!("extract f.tet t --decode -o {name} --force"));
        assert_eq!(json.get("result").unwrap_or(&json)["skipped"], 3, "{name}");
        let line = text(&dir, &format!("extract f.tet t -o {name} --force"));
        assert!(!line.contains("missing"), "{name}: {line}");
    }
    text(&dir, "extract f.tet t --decode -o n.json --force");
    let json: Value = serde_json::from_slice(&dir.read("n.json")).unwrap();
    assert_eq!((&json["skipped"], &json["elements"]), (&json!(3), &json!(24)));
    let line = text(&dir, "extract f.tet n --decode -o n.npy --force");
    assert!(line.contains(", 1 missing value, "), "{line}");
    text(&dir, "extract f.tet t --sel lat=60..0 --decode -o part.tet");
    let file = File::open(dir.path("part.tet")).unwrap();
    let t = file.dataset("t").unwrap();
    assert!(!t.info().unwrap().attrs.contains_key("scale_factor") && t.shape() == [2, 2, 4]);
    assert_eq!(parsed(&dir, "mean part.tet t")["skipped"], 2);
    text(&dir, "extract f.tet t --isel lat=::-1 -o reversed.tet");
    let reversed = parsed(&dir, "max reversed.tet t --over lon,time");
    assert_eq!(reversed["coords"]["lat"], json!([-60.0, 0.0, 60.0]));
    assert_eq!(reversed["values"], json!([261.5, 259.5, 257.5]));
}

#[test]
fn info_shows_packing_and_coordinates() {
    let dir = fields();
    let shown = text(&dir, "info f.tet --dataset t");
    for line in [
        "coordinates    ┆ time, lat (datasets of these names)",
        "packing        ┆ value = stored × 0.5 + 250",
        "missing values ┆ -999",
    ] {
        assert!(shown.contains(line), "{line}:\n{shown}");
    }
    let json: Value = serde_json::from_str(&text(&dir, "info f.tet --dataset t --json")).unwrap();
    let t = &json["summary"]["datasets"][0];
    assert_eq!(t["coordinates"], json!({ "lat": "dataset", "lon": "labels", "time": "dataset" }));
    let encoding = json!({ "missing_values": [-999.0], "scale_factor": 0.5, "add_offset": 250.0 });
    assert_eq!(t["encoding"], encoding);
}

#[test]
fn explain_goes_to_standard_error() {
    let dir = fields();
    let output = dir.tet("max f.tet a --explain --json");
    assert_eq!(output.code, Some(0));
    serde_json::from_str::<Value>(&output.stdout).unwrap();
    assert!(output.stderr.starts_with("explain: the selection is 4 elements"), "{}", output.stderr);
}

#[test]
fn invalid_dates_are_refused() {
    let dir = fields();
    let output = dir.tet("mean f.tet t --sel time=2024-01-31..2024-02-31");
    assert_eq!(output.code, Some(8), "{}", output.stderr);
    assert!(output.stderr.contains("`2024-02-31` does not exist in the calendar"), "{}", output.stderr);
}

/// `i`: i64 beyond 2⁵³. `h`: values inside and outside of 0..4.
fn numbers() -> TestDir {
    let dir = TestDir::new();
    let mut layout = Layout::new();
    let i = layout.dataset("i", DType::I64, [3], [2]).unwrap();
    layout.dims(i, ["time"]).unwrap();
    let times = ["2024-01-01", "2024-01-02T06:00Z", "2024-01-03"].map(str::to_owned).to_vec();
    layout.labels(i, "time", times).unwrap();
    let h = layout.dataset("h", DType::F64, [7], [7]).unwrap();
    let mut writer = Writer::create(dir.path("n.tet"), layout, WriterOptions::new()).unwrap();
    let big = [(1i64 << 53) + 1, i64::MIN + 1, (1 << 53) + 3];
    writer.array(i, TensorView::from_slice(&[3], &big).unwrap()).unwrap();
    let values = [-5.0, 0.0, 1.0, 2.0, 3.0, 4.0, 100.0];
    writer.array(h, TensorView::from_slice(&[7], &values).unwrap()).unwrap();
    writer.finish().unwrap();
    dir
}

#[test]
fn results_of_integers_are_exact() {
    let dir = numbers();
    assert_eq!(text(&dir, "min n.tet i -q"), "-9223372036854775807\n");
    assert_eq!(text(&dir, "max n.tet i -q"), "9007199254740995\n");
    assert_eq!(text(&dir, "median n.tet i -q"), "9007199254740993\n");
    assert_eq!(text(&dir, "sum n.tet i -q"), "-9205357638345293819\n");
    let median = parsed(&dir, "median n.tet i");
    assert_eq!((&median["dtype"], &median["values"]), (&json!("int64"), &json!(9_007_199_254_740_993_u64)));
    dir.tet("max n.tet i -o max.tet");
    let max = File::open(dir.path("max.tet")).unwrap();
    let max = max.dataset("i").unwrap().read_all().unwrap();
    assert_eq!(max.as_slice::<i64>(), Some(&[(1 << 53) + 3][..]));
}

#[test]
fn histograms_report_values_outside_of_the_range() {
    let dir = numbers();
    let found = parsed(&dir, "histogram n.tet h --bins 4 --range 0..4");
    assert_eq!(found["values"], json!([1, 1, 1, 2]));
    assert_eq!((&found["below"], &found["above"]), (&json!(1), &json!(1)));
    assert!(
        text(&dir, "histogram n.tet h --bins 4 --range 0..4")
            .contains("1 below the range, 1 above the range")
    );
    // The reference counts them in the first and the last bin.
    let query = r#"{"dataset":"h","histogram":{"bins":4,"min":0,"max":4}}"#;
    let answer = tet(&dir, &["query", query, "-t", "n.tet", "-x", "--format", "reference"]);
    let answer: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(answer["execution"]["operation_histogram_counts"], json!([2.0, 1.0, 1.0, 3.0]));
}

#[test]
fn positions_of_documents_have_coordinates() {
    let dir = fields();
    let query = |query: &str, more: &[&str]| {
        let output = tet(&dir, &[&["query", query, "-t", "f.tet", "-x"], more].concat());
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{query}");
        output.stdout
    };
    let window = r#"{"dataset":"t","arg_max":["time"],"selection":{"lat":60,"lon":"0"},
        "window":{"axis":"time","size":1,"mode":"rolling"}}"#;
    let found = query(window, &[]);
    assert!(found.contains("0 (time=2024-01-31T12:00:00)"), "{found}");
    let found = query(window, &["-q"]);
    let times = "at=[(time=2024-01-31T12:00:00),(time=2024-02-01T12:00:00)]";
    assert!(found.contains(times), "{found}");
    let all = r#"{"dataset":"t","arg_max":["time","lat"],"selection":[":","::-1",-1]}"#;
    assert!(query(all, &["-q"]).contains(" at=[(time=2024-02-01T12:00:00,lat=-60)] "));
    assert!(query(all, &["--format", "table"]).contains("time=2024-02-01T12:00:00, lat=-60"));
    assert!(query(r#"{"dataset":"t","mean":[]}"#, &["-q"]).matches("at=").count() == 0);
}

#[test]
fn times_of_minima_are_stored() {
    let dir = numbers();
    dir.tet("argmin n.tet i -o argmin.tet");
    let file = File::open(dir.path("argmin.tet")).unwrap();
    let time = file.dataset("i_arg_min_time").unwrap();
    assert_eq!(time.read_all().unwrap().as_slice::<f64>(), Some(&[1_704_175_200.0][..]));
    let units = &time.info().unwrap().attrs["units"];
    assert_eq!(units, "seconds since 1970-01-01 00:00:00");
}

#[test]
fn stored_values_have_nan_in_every_operation() {
    let dir = fields();
    for op in ["mean", "max", "min", "sum", "median"] {
        assert_eq!(parsed(&dir, &format!("{op} f.tet n --raw"))["values"], Value::Null, "{op}");
    }
    assert_eq!(parsed(&dir, "max f.tet n")["values"], 3.0);
}

#[test]
fn selections_larger_than_the_memory_limit_are_streamed() {
    let dir = TestDir::new();
    let mut layout = Layout::new();
    let a = layout.dataset("a", DType::F64, [1 << 17], [1 << 10]).unwrap();
    let mut writer = Writer::create(dir.path("a.tet"), layout, WriterOptions::new()).unwrap();
    writer.array(a, TensorView::from_slice(&[1 << 17], &vec![1.5f64; 1 << 17]).unwrap()).unwrap();
    writer.finish().unwrap();
    let output = dir.tet("extract a.tet a -o t.csv --max-memory 256KiB");
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let text = std::fs::read_to_string(dir.path("t.csv")).unwrap();
    assert_eq!(text.lines().count(), (1 << 17) + 1);
    assert!(text.lines().skip(1).all(|line| line.ends_with(",1.5")), "{:?}", text.lines().nth(1));
}
