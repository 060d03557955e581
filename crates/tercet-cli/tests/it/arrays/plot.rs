//! `tet plot`: text without color, PNG files, errors.

use super::{TestDir, npy};

/// A file with a field over three axes, with coordinates, units and missing values.
fn dir() -> TestDir {
    let dir = TestDir::new();
    let value = |n: u16| {
        let (time, lat, lon) = (n / 200, n / 20 % 10, n % 20);
        if lat == 4 && lon < 5 {
            -999.0
        } else {
            270.0 + f32::from(lat) * 3.0 + f32::from(time) - f32::from(lon) * 0.5
        }
    };
    let floats = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let t: Vec<f32> = (0..600).map(value).collect();
    let lat: Vec<f32> = (0..10u8).map(|n| -45.0 + 10.0 * f32::from(n)).collect();
    let lon: Vec<f32> = (0..20u8).map(|n| 18.0 * f32::from(n)).collect();
    dir.write("t.npy", npy::with_header("'<f4'", false, &[3, 10, 20], floats(&t)));
    dir.write("lat.npy", npy::with_header("'<f4'", false, &[10], floats(&lat)));
    dir.write("lon.npy", npy::with_header("'<f4'", false, &[20], floats(&lon)));
    dir.write("times.txt", "2024-06-21T00:00\n2024-06-21T06:00\n2024-06-21T12:00\n");
    dir.ok("create a.tet --from t2m=t.npy --from lat=lat.npy --from lon=lon.npy --dims t2m:time,lat,lon --dims lat:lat \
            --dims lon:lon --attr t2m:units=K --attr t2m:_FillValue=-999 --attr lat:units=degrees_north --attr \
            lon:units=degrees_east --labels t2m:time=times.txt");
    dir
}

#[test]
fn a_field_is_drawn_with_axes_and_scale() {
    let result = dir().ok("plot a.tet t2m --isel time=0 --width 70");
    insta::assert_snapshot!(result.out);
}

#[test]
fn a_series_is_drawn_over_times() {
    let result = dir().ok("plot a.tet t2m --sel lat=45 --sel lon=~20 --width 60 --height 6");
    insta::assert_snapshot!(result.out);
}

#[test]
fn a_png_file_has_the_size_that_was_asked_for() {
    let dir = dir();
    let result = dir.ok("plot a.tet t2m --isel time=0 --png a.png --width 640 --height 400 --cmap magma");
    assert!(result.out.starts_with("a.png: 640×400 pixels, "), "{}", result.out);
    let bytes = dir.read("a.png");
    assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"));
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!((number(16), number(20)), (640, 400));
    // Equal bytes again, also on standard output; an existing file needs an option.
    let again = dir.ok("plot a.tet t2m --isel time=0 --png - --width 640 --height 400 --cmap magma");
    assert_eq!(again.bytes, bytes);
    assert_eq!(dir.tet("plot a.tet t2m --isel time=0 --png a.png").code, 8);
    let json = dir.ok("plot a.tet t2m --isel time=0 --png a.png --force --json").out;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["width"], 1000);
}

#[test]
fn what_cannot_be_drawn_is_an_error() {
    let dir = dir();
    let mut refused = Vec::new();
    for args in [
        "t2m",
        "t2m --isel time=0 --isel lat=0 --isel lon=0",
        "nothing",
        "t2m --sel tim=0",
        "t2m --isel time=x",
        "t2m --sel time",
        "t2m --isel time=0 --range 3..1",
        "t2m --isel time=0 --cmap rainbow",
        "t2m --isel time=0 --json",
    ] {
        let result = dir.tet(&format!("plot a.tet {args}"));
        refused.push(format!("{args}: exit {}\n{}", result.code, result.err));
    }
    insta::assert_snapshot!(refused.join("\n"));
}

#[test]
fn a_png_file_ends_in_png() {
    let dir = dir();
    let result = dir.tet("plot a.tet t2m --isel time=0 --png a.jpg");
    assert!(result.err.contains("use the extension `.png`"), "{}", result.err);
    assert!(!dir.path("a.jpg").exists());
    dir.ok("plot a.tet t2m --isel time=0 --png a.PNG");
}
