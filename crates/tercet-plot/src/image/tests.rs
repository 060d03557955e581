use super::*;
use crate::plot::{Axis, Coordinates};

fn map(values: Vec<f64>, shape: (usize, usize)) -> Plot {
    let lat = Axis::new("lat", shape.0 as u64)
        .with_coordinates(Coordinates::Numbers((0..shape.0).map(|n| as_f64(n) * 10.0).collect()));
    let lon = Axis::new("lon", shape.1 as u64);
    Plot::field("t2m", Some("K".to_owned()), (lat, lon), shape, values)
}

#[test]
fn an_image_has_the_field_and_a_color_bar() {
    let shape = (20, 40);
    let plot = map((0..800).map(f64::from).collect(), shape);
    let options = ImageOptions::default().with_width(600);
    let image = plot.to_image(&options);
    assert_eq!(image.width(), 600);
    assert!((250..500).contains(&image.height()));
    let count = |color: Rgb| image.pixels.iter().filter(|pixel| **pixel == color).count();
    // All colors of the bar, from the lowest to the highest; text and frame in black.
    for fraction in [0.01, 0.25, 0.5, 0.75, 0.99] {
        let near = |pixel: &Rgb| {
            let color = options.colormap.color(fraction);
            pixel.iter().zip(color).all(|(a, b)| a.abs_diff(b) <= 3)
        };
        assert!(image.pixels.iter().filter(|pixel| near(pixel)).count() >= 22, "{fraction}");
    }
    assert!(count([20, 20, 20]) > 1000);
    // The latitudes ascend: the first row is at the bottom.
    let brightness = |y: usize| {
        let pixel = image.pixel(image.width() / 2, y).unwrap();
        pixel.iter().map(|&value| u32::from(value)).sum::<u32>()
    };
    assert!(brightness(60) > brightness(image.height() - 80));
}

#[test]
fn png_files_are_deterministic_and_can_be_decoded() {
    let plot = map((0..6).map(f64::from).collect(), (2, 3));
    let image = plot.to_image(&ImageOptions::default().with_width(300).with_height(Some(240)));
    let bytes = image.to_png().unwrap();
    assert_eq!(
        bytes,
        plot.to_image(&ImageOptions::default().with_width(300).with_height(Some(240))).to_png().unwrap()
    );
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height), (300, 240));
    assert_eq!(pixels, image.pixels.as_flattened());
}

#[test]
fn missing_values_are_striped_and_none_is_an_image_too() {
    let mut values: Vec<f64> = (0..100).map(f64::from).collect();
    values[..50].fill(f64::NAN);
    let image = map(values, (10, 10)).to_image(&ImageOptions::default());
    assert!(image.pixels.iter().filter(|pixel| **pixel == [222, 222, 222]).count() > 1000);
    let nothing = map(vec![f64::NAN; 4], (2, 2)).to_image(&ImageOptions::default());
    assert_eq!(nothing.width(), 1000);
}

#[test]
fn any_size_and_any_values_make_an_image() {
    let cases = [
        vec![5.0],
        vec![f64::MIN, f64::MAX],
        vec![f64::INFINITY, 0.0],
        vec![f64::NAN, 1.0, f64::NAN],
        vec![],
    ];
    for values in cases {
        for (width, height) in [(0, None), (200, Some(1)), (1000, Some(200)), (usize::MAX, Some(300))] {
            let options = ImageOptions::default().with_width(width).with_height(height);
            let axis = Axis::new("x", values.len() as u64);
            let series =
                Plot::series("a title that is far too long for a small image", None, axis, values.clone());
            assert!(series.to_image(&options).width() >= 200);
        }
    }
}

#[test]
fn a_value_between_gaps_is_a_visible_dot() {
    let axis = Axis::new("x", 5);
    let values = vec![1.0, f64::NAN, 3.0, f64::NAN, 2.0];
    let image = Plot::series("dots", None, axis, values).to_image(&ImageOptions::default());
    let blue = image.pixels.iter().filter(|pixel| **pixel == [31, 98, 168]).count();
    assert!((60..150).contains(&blue), "{blue} pixels for three dots");
}

#[test]
fn a_long_title_ends_before_the_units_of_the_color_bar() {
    let field = |title: &str, units: &str| {
        let axes = (Axis::new("y", 2), Axis::new("x", 2));
        let plot = Plot::field(title, Some(units.to_owned()), axes, (2, 2), vec![0.0, 1.0, 2.0, 3.0]);
        plot.to_image(&ImageOptions::default().with_width(600))
    };
    let is_blank = |image: &Image, columns: std::ops::Range<usize>| {
        columns.clone().all(|x| (0..30).all(|y| image.pixel(x, y) == Some([255; 3])))
    };
    // The units begin above the bar; a gap precedes them.
    let image = field(&"a-long-title-".repeat(20), "kg/m2");
    assert!((400..560).any(|x| is_blank(&image, x - 8..x)));
    assert!(!is_blank(&image, 560..590));
    // Units that are wider than the bar move to the left, into the image.
    let image = field("short", "a unit that is far too long for a bar");
    assert!(is_blank(&image, 598..600));
    assert!(!is_blank(&image, 400..500));
}
