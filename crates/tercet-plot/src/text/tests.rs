use super::*;
use crate::plot::{Axis, Coordinates};
use crate::resample::as_f64;

fn map(shape: (usize, usize)) -> Plot {
    let step = |count: usize, from: f64, to: f64| -> Vec<f64> {
        (0..count).map(|n| from + (to - from) * as_f64(n) / as_f64(count - 1)).collect()
    };
    let lat = Axis::new("lat", shape.0 as u64)
        .with_units(Some("degrees_north".to_owned()))
        .with_coordinates(Coordinates::Numbers(step(shape.0, -90.0, 90.0)));
    let lon = Axis::new("lon", shape.1 as u64)
        .with_units(Some("degrees_east".to_owned()))
        .with_coordinates(Coordinates::Numbers(step(shape.1, 0.0, 355.0)));
    let values = (0..shape.0 * shape.1).map(|n| {
        let (row, column) = (n / shape.1, n % shape.1);
        let missing = row == shape.0 / 2 && column < shape.1 / 4;
        if missing { f64::NAN } else { 230.0 + 70.0 * as_f64(row) / as_f64(shape.0 - 1) }
    });
    Plot::field("t2m", Some("K".to_owned()), (lat, lon), shape, values.collect()).with_missing(18, 2664)
}

#[test]
fn a_map_without_colors() {
    insta::assert_snapshot!(map((37, 72)).to_text(&TextOptions::default().with_width(70)));
}

#[test]
fn a_map_in_color_has_two_values_per_character() {
    let text = map((8, 30)).to_text(&TextOptions::default().with_width(40).with_colors(Colors::True));
    // North is up: the largest values are in the first line.
    let first = text.lines().nth(2).unwrap();
    let [red, green, blue] = Colormap::Viridis.color(1.0);
    assert!(first.contains(&format!("\x1b[0;38;2;{red};{green};{blue}")), "{first:?}");
    assert!(
        text.contains('▀')
            && text
                .lines()
                .all(|line| !line.contains('\x1b') || line.ends_with("\x1b[0m") || line.contains("\x1b[0m"))
    );
    let palette = map((8, 30)).to_text(&TextOptions::default().with_width(40).with_colors(Colors::Palette));
    assert!(palette.contains("38;5;") && !palette.contains("38;2;"));
}

#[test]
fn a_series_is_a_line_of_dots() {
    let values: Vec<f64> = (0..200)
        .map(|n| if (90..100).contains(&n) { f64::NAN } else { (f64::from(n) * 0.05).sin() * 10.0 })
        .collect();
    let axis = Axis::new("x", 200).with_units(Some("m".to_owned()));
    let axis = axis.with_coordinates(Coordinates::Numbers((0..200).map(|n| f64::from(n) * 0.5).collect()));
    let plot = Plot::series("wave", Some("m s-1".to_owned()), axis, values).with_missing(10, 200);
    insta::assert_snapshot!(plot.to_text(&TextOptions::default().with_width(60).with_height(Some(9))));
}

#[test]
fn odd_values_are_drawn() {
    let series = |values: Vec<f64>| Plot::series("a", None, Axis::new("x", values.len() as u64), values);
    for values in [
        vec![5.0],
        vec![0.0, 0.0],
        vec![f64::MIN, f64::MAX],
        vec![f64::INFINITY, 1.0, f64::NEG_INFINITY],
        vec![1e-300, 2e-300],
        vec![],
    ] {
        for colors in [Colors::None, Colors::True] {
            let text =
                series(values.clone()).to_text(&TextOptions::default().with_colors(colors).with_width(1));
            assert!(text.lines().count() >= 2, "{values:?}");
            let plot = Plot::field(
                "a",
                None,
                (Axis::new("y", 1), Axis::new("x", values.len() as u64)),
                (1, values.len()),
                values.clone(),
            );
            assert!(plot.to_text(&TextOptions::default().with_colors(colors)).lines().count() >= 2);
        }
    }
    assert!(series(vec![f64::NAN; 3]).to_text(&TextOptions::default()).contains("all are missing"));
    // Names may come from a hostile file.
    let plot = Plot::series("a\x1b[2Jb", Some("\x07".to_owned()), Axis::new("x\n", 1), vec![1.0]);
    assert!(!plot.to_text(&TextOptions::default()).contains(['\x1b', '\x07']));
}

#[test]
fn infinities_are_drawn_as_missing_values() {
    let text = |value: f64| {
        let (y, x) = (Axis::new("y", 2), Axis::new("x", 2));
        let values = vec![1.0, value, 2.0, 3.0];
        Plot::field("a", None, (y, x), (2, 2), values)
            .to_text(&TextOptions::default().with_colors(Colors::True))
    };
    assert_eq!(text(f64::INFINITY), text(f64::NAN));
    assert_eq!(text(f64::NEG_INFINITY), text(f64::NAN));
    assert_ne!(text(3.0), text(f64::NAN));
    let axes = || (Axis::new("y", 2), Axis::new("x", 2));
    let plot = Plot::field("a", None, axes(), (2, 2), vec![1.0, f64::NAN, f64::NAN, 3.0]);
    let text = plot.with_missing(1, 4).with_infinite(1).to_text(&TextOptions::default());
    assert!(text.contains("blank: missing, 1 of 4 values; infinite, 1 of 4 values"), "{text}");
}

#[test]
fn palette_colors_are_near() {
    assert_eq!(palette([0, 0, 0]), 16);
    assert_eq!(palette([255, 255, 255]), 231);
    assert_eq!(palette([128, 128, 128]), 244);
    assert_eq!(palette([255, 0, 0]), 196);
}

#[test]
fn names_and_labels_cannot_control_the_terminal() {
    let bad = "a\u{1b}[31m\u{9b}31m\u{202e}\u{200b}\u{2066}\u{61c}\n";
    let axis = |count| {
        Axis::new(bad, count)
            .with_units(Some(bad.to_owned()))
            .with_coordinates(Coordinates::Strings(vec![bad.to_owned(); usize::try_from(count).unwrap()]))
    };
    let values = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let series = Plot::series(bad, Some(bad.to_owned()), axis(6), values.clone());
    let field = Plot::field(bad, Some(bad.to_owned()), (axis(2), axis(3)), (2, 3), values);
    for plot in [series, field] {
        let text = plot.to_text(&TextOptions::default().with_width(200));
        assert!(text.contains("a\\u{1b}[31m\\u{9b}31m\\u{202e}\\u{200b}"), "{text}");
        let raw = |c: char| c != '\n' && (c.is_control() || bad[2..].contains(c) && !c.is_ascii());
        assert!(!text.contains(raw), "{text:?}");
    }
}
