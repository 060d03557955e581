//! Rounded datasets: the bound holds in the file, missing values stay as they are.

use std::io::Cursor;

use proptest::prelude::*;
use tercet_core::progress::NoProgress;
use tercet_core::tensor::f16;
use tercet_core::{DType, Scalar, TensorView};
use tercet_testkit::cases;
use tercet_tet::{
    Compression, Error, File, Layout, LayoutError, Rounding, RoundingError, Writer, WriterOptions,
};

fn written<T: Scalar>(values: &[T], rounding: Rounding, attrs: &[(&str, &str)]) -> File {
    let mut layout = Layout::new();
    let count = values.len() as u64;
    let id = layout.dataset("a", T::DTYPE, [count], [count.div_ceil(3)]).unwrap();
    for (key, value) in attrs {
        layout.attr(id, key, value).unwrap();
    }
    layout.compress(id, Compression::Auto).unwrap();
    layout.round(id, rounding).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    writer.array(id, TensorView::from_slice(&[count], values).unwrap()).unwrap();
    assert!(writer.compression_choice(id).is_some());
    File::from_bytes("a.tet", writer.finish().unwrap().output).unwrap()
}

fn max_abs_error<T: Scalar>(file: &File, values: &[T]) -> f64 {
    let dataset = file.dataset("a").unwrap();
    let chunk = usize::try_from(dataset.chunk_shape()[0]).unwrap();
    let fill = |coords: &[u64], out: &mut [u8]| {
        let start = usize::try_from(coords[0]).unwrap() * chunk;
        let bytes: &[u8] = bytemuck::cast_slice(&values[start..]);
        out.copy_from_slice(&bytes[..out.len()]);
        Ok::<(), Error>(())
    };
    dataset.max_abs_error(fill, &NoProgress).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(100)))]

    #[test]
    fn the_bound_holds_for_every_stored_value(
        bits in prop::collection::vec(any::<u64>(), 1..400),
        exponent in -40i32..40,
    ) {
        let error = 1.7 * 2f64.powi(exponent);
        let halves: Vec<f16> = bits.iter().map(|&bits| f16::from_bits(bits as u16)).collect();
        let singles: Vec<f32> = bits.iter().map(|&bits| f32::from_bits(bits as u32)).collect();
        let doubles: Vec<f64> = bits.iter().map(|&bits| f64::from_bits(bits)).collect();
        let rounding = Rounding::MaxError(error);
        prop_assert!(max_abs_error(&written(&halves, rounding, &[]), &halves) <= error);
        prop_assert!(max_abs_error(&written(&singles, rounding, &[]), &singles) <= error);
        prop_assert!(max_abs_error(&written(&doubles, rounding, &[]), &doubles) <= error);
        // Statistics are those of the rounded values.
        let report = tercet_tet::verify(
            std::sync::Arc::new(tercet_core::source::Memory::new("a.tet", written_bytes(&singles, rounding))),
            tercet_tet::VerifyOptions::default(),
            &NoProgress,
        );
        prop_assert!(report.unwrap().ok);
    }

    #[test]
    fn missing_values_are_kept_and_none_is_added(values in prop::collection::vec(-1010i32..-980, 1..300)) {
        let values: Vec<f32> = values.iter().map(|&value| value as f32 * 1.01).chain([-999.0, 1e20]).collect();
        let attrs = [("_FillValue", "-999"), ("missing_value", "1e20"), ("valid_min", "-1003.7")];
        let file = written(&values, Rounding::MaxError(4.0), &attrs);
        let after = file.dataset("a").unwrap().read_all().unwrap();
        let missing = |value: f32| value == -999.0 || value == 1e20 || value < -1003.7;
        for (&before, &after) in values.iter().zip(after.as_slice::<f32>().unwrap()) {
            prop_assert_eq!(missing(before), missing(after));
            prop_assert!(!missing(before) || before == after);
            prop_assert!((before - after).abs() <= 4.0);
        }
    }
}

fn written_bytes(values: &[f32], rounding: Rounding) -> Vec<u8> {
    let mut layout = Layout::new();
    let count = values.len() as u64;
    let id = layout.dataset("a", DType::F32, [count], [count]).unwrap();
    layout.round(id, rounding).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    writer.array(id, TensorView::from_slice(&[count], values).unwrap()).unwrap();
    writer.finish().unwrap().output
}

#[test]
fn roundings_are_recorded() {
    let file = written(&[1.0f32, 2.5], Rounding::KeepBits(4), &[]);
    let info = file.dataset("a").unwrap().info().unwrap().clone();
    assert_eq!(info.attrs["quantization_algorithm"], "bitround");
    assert_eq!(info.attrs["quantization_nsb"], "4");
    assert_eq!(Rounding::recorded(&info), Some(Rounding::KeepBits(4)));
    let file = written(&[1.0f32, 2.5], Rounding::MaxError(0.01), &[]);
    let info = file.dataset("a").unwrap().info().unwrap().clone();
    assert_eq!(Rounding::recorded(&info), Some(Rounding::MaxError(0.01)));
}

#[test]
fn invalid_roundings_are_refused() {
    let mut layout = Layout::new();
    let ints = layout.dataset("ints", DType::I32, [2], [2]).unwrap();
    let floats = layout.dataset("floats", DType::F32, [2], [2]).unwrap();
    let reason = |error: LayoutError| match error {
        LayoutError::Rounding { reason, .. } => *reason,
        other => panic!("{other}"),
    };
    let found = reason(layout.round(ints, Rounding::MaxError(1.0)).unwrap_err());
    assert_eq!(found, RoundingError::Integers { dtype: DType::I32 });
    for error in [-1.0, f64::NAN, f64::INFINITY] {
        let found = reason(layout.round(floats, Rounding::MaxError(error)).unwrap_err());
        assert!(matches!(found, RoundingError::InvalidError { .. }), "{error}");
    }
    let found = reason(layout.round(floats, Rounding::KeepBits(24)).unwrap_err());
    assert!(matches!(found, RoundingError::TooManyBits { bits: 24, most: 23, .. }));
    layout.attr(floats, "scale_factor", "0.5").unwrap();
    assert_eq!(reason(layout.round(floats, Rounding::KeepBits(4)).unwrap_err()), RoundingError::Packed);
    assert!(layout.dataset_info(floats).unwrap().attrs.keys().all(|key| key == "scale_factor"));
}

#[test]
fn a_sample_decides_the_compression_of_single_chunks_too() {
    for (values, expected) in [
        (vec![0u8; 4096], Compression::Zstd { level: 3 }),
        ((0..4096).map(noise).collect(), Compression::None),
    ] {
        let mut layout = Layout::new();
        let id = layout.dataset("a", DType::U8, [4096], [2048]).unwrap();
        layout.compress(id, Compression::Auto).unwrap();
        let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
        for chunk in [1usize, 0] {
            let part = &values[chunk * 2048..][..2048];
            writer.chunk(id, &[chunk as u64], TensorView::from_slice(&[2048], part).unwrap()).unwrap();
        }
        assert_eq!(writer.compression_choice(id).unwrap().compression, expected);
        let file = File::from_bytes("a.tet", writer.finish().unwrap().output).unwrap();
        assert_eq!(file.dataset("a").unwrap().read_all().unwrap().bytes(), values);
    }
}

/// Bytes without a pattern.
fn noise(n: u64) -> u8 {
    let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 40) as u8
}

#[cfg(any(unix, windows))]
#[test]
fn a_file_that_fails_its_check_does_not_appear() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tet");
    let write = |value: f32, accept: bool| {
        let mut layout = Layout::new();
        let id = layout.dataset("a", DType::F32, [1], [1]).unwrap();
        let mut writer = Writer::create(&path, layout, WriterOptions::new().with_overwrite(true)).unwrap();
        writer.array(id, TensorView::from_slice(&[1], &[value]).unwrap()).unwrap();
        writer.finish_checked(tercet_tet::ReadOptions::new(), |file| {
            let found = file.dataset("a")?.read_all()?;
            assert_eq!(found.as_slice::<f32>(), Some(&[value][..]));
            if accept { Ok(()) } else { file.dataset("b").map(drop) }
        })
    };
    assert!(write(1.0, false).is_err());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    write(2.0, true).unwrap();
    assert!(write(3.0, false).is_err());
    let kept = File::open(&path).unwrap().dataset("a").unwrap().read_all().unwrap();
    assert_eq!(kept.as_slice::<f32>(), Some(&[2.0][..]));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}
