//! Locations of results, and cleanup after failures.

#![expect(clippy::disallowed_methods, reason = "these tests look at real files")]

use std::fs;
use std::path::Path;

use tercet_core::progress::{Counter, NoProgress};
use tercet_core::{Class, CommonError, Diagnostic as _};

use super::*;
use crate::query::Write;
use crate::{Report, VerifyOptions, verify};

/// A file on disk with 6 rows of 5 numbers, alone in its directory.
fn on_disk() -> (tempfile::TempDir, std::path::PathBuf, Vec<f32>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("obs.tet");
    let values: Vec<f32> = (0..30u8).map(|n| f32::from(n * 7 % 11) - 3.5).collect();
    fs::write(&path, layout(&[6, 5], &[4, 2], &values, false)).unwrap();
    (dir, path, values)
}

fn names(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|item| item.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn verify_deep(path: &std::path::Path) -> Report {
    let source = std::sync::Arc::new(tercet_core::source::File::open(path).unwrap());
    verify(source, VerifyOptions::new().with_deep(true), &NoProgress).unwrap()
}

fn write_to(target: Target, path: Option<&str>, timestamp: Option<bool>) -> Write {
    Write { target, path: path.map(str::to_owned), timestamp }
}

fn bytes_of(transformed: &Transformed) -> Vec<u8> {
    transformed.tensor.as_ref().unwrap().bytes().to_vec()
}

#[test]
fn a_raw_file_holds_the_result() {
    let (dir, path, _) = on_disk();
    let file = File::open(&path).unwrap();
    for (text, axes) in [(":", &[][..]), ("1:6:2,1:", &[0]), ("::5,:", &[1])] {
        let selection = Selection::parse(text, &[6, 5]).unwrap();
        let mut resolved = resolved(&selection, axes, Method::Zscore);
        let settings = Settings { preview: 4, file: Some(&path), ..SETTINGS };
        let expected = bytes_of(&run(&file, &resolved, &settings).unwrap());
        resolved.write = Some(write_to(Target::Spill, Some("sub/out.bin"), None));
        let made = run(&file, &resolved, &settings).unwrap();
        let spilled = made.file.unwrap();
        assert_eq!(fs::read(dir.path().join("sub/out.bin")).unwrap(), expected);
        fs::remove_file(spilled.path.unwrap()).unwrap();
        assert_eq!(spilled.bytes, expected.len() as u64);
        assert_eq!(made.preview.unwrap().bytes(), &expected[..16]);
        assert_eq!((made.is_sidecar, made.tensor.is_none()), (false, true));
    }
    assert_eq!(names(dir.path()), ["obs.tet", "sub"]);
}

#[test]
fn a_sidecar_is_a_sound_file_that_tells_where_it_comes_from() {
    let (dir, path, _) = on_disk();
    let file = File::open(&path).unwrap();
    let selection = Selection::parse("1:6:2,1:", &[6, 5]).unwrap();
    let mut resolved = resolved(&selection, &[0], Method::Softmax);
    let settings = Settings { preview: 4, file: Some(&path), ..SETTINGS };
    let expected = bytes_of(&run(&file, &resolved, &settings).unwrap());
    resolved.write = Some(write_to(Target::Sidecar, None, Some(false)));
    let made = run(&file, &resolved, &settings).unwrap();
    assert_eq!(made.preview.unwrap().bytes(), &expected[..16]);
    assert!(made.is_sidecar);
    let spilled = made.file.unwrap();
    assert_eq!(
        (spilled.bytes, names(dir.path())),
        (48, vec!["obs.softmax.tet".to_owned(), "obs.tet".to_owned()])
    );

    let sidecar = dir.path().join("obs.softmax.tet");
    assert_eq!(fs::canonicalize(spilled.path.unwrap()).unwrap(), fs::canonicalize(&sidecar).unwrap());
    let report = verify_deep(&sidecar);
    assert!(report.ok, "{report:?}");
    let sidecar = File::open(&sidecar).unwrap();
    let dataset = sidecar.dataset("a-softmax").unwrap();
    assert_eq!((dataset.shape(), dataset.chunk_shape()), (&[3, 4][..], &[3, 4][..]));
    assert_eq!(dataset.read_all().unwrap().bytes(), expected);
    assert!(dataset.chunk_stats(&[0, 0]).unwrap().is_some());
    assert_eq!(dataset.labels(0).unwrap(), ["d0-1", "d0-3", "d0-5"]);
    assert_eq!(dataset.labels(1).unwrap(), ["d1-1", "d1-2", "d1-3", "d1-4"]);
    let attrs = &dataset.info().unwrap().attrs;
    assert_eq!((attrs["units"].as_str(), attrs["derived_from"].as_str()), ("K", "a"));
    let row = &sidecar.history()[0];
    assert_eq!((row.op.as_str(), row.source.as_str()), ("transform", file.name()));
    assert_eq!(row.parents, [file.name()]);
    let params = row.params.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    assert_eq!(
        params.collect::<Vec<_>>(),
        [
            ("axes", "0"),
            ("dataset", "a"),
            ("logical_selection_shape", "3x4"),
            ("method", "softmax"),
            ("output_dataset", "a-softmax"),
            ("selection_box_start", "1x1"),
            ("selection_box_stop_exclusive", "6x5"),
            ("selection_step", "2x1"),
        ]
    );
}

#[test]
fn names_of_sidecars_tell_the_time_unless_asked_not_to() {
    let (dir, path, _) = on_disk();
    let file = File::open(&path).unwrap();
    let mut resolved = resolved(&Selection::full(&[6, 5]), &[], Method::L2);
    let settings = Settings { file: Some(&path), ..SETTINGS };
    resolved.write = Some(write_to(Target::Sidecar, None, None));
    run(&file, &resolved, &settings).unwrap();
    let name = names(dir.path()).remove(0);
    let time = name.strip_prefix("obs.l2.").and_then(|rest| rest.strip_suffix("Z.tet")).unwrap();
    let digits: Vec<&str> = time.split('T').collect();
    assert!(matches!(digits[..], [date, time] if date.len() == 8 && time.len() == 6), "{name}");
    resolved.write = Some(write_to(Target::Sidecar, Some("deep/er/x.tet"), None));
    run(&file, &resolved, &settings).unwrap();
    assert_eq!(names(&dir.path().join("deep/er")), ["x.tet"]);
}

#[test]
fn a_sidecar_of_the_same_second_does_not_replace_another() {
    let (dir, path, _) = on_disk();
    let file = File::open(&path).unwrap();
    let settings = Settings { file: Some(&path), ..SETTINGS };
    for text in [":", "1:,:", ":,2:", "::2,:"] {
        let selection = Selection::parse(text, &[6, 5]).unwrap();
        let mut resolved = resolved(&selection, &[], Method::L2);
        resolved.write = Some(write_to(Target::Sidecar, None, None));
        run(&file, &resolved, &settings).unwrap();
    }
    assert_eq!(names(dir.path()).len(), 5, "{:?}", names(dir.path()));
}

#[test]
fn a_sidecar_larger_than_the_budget_is_the_same_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("obs.tet");
    let shape = [300, 700];
    let values: Vec<f32> = (0..210_000u32).map(|n| f32::from((n % 1013) as u16) / 7.0).collect();
    for (chunks, zstd) in [([300, 700], false), ([64, 50], true), ([1, 700], false)] {
        fs::write(&path, layout(&shape, &chunks, &values, zstd)).unwrap();
        let file = File::open(&path).unwrap();
        let mut resolved = resolved(&Selection::full(&shape), &[0], Method::Minmax);
        resolved.write = Some(write_to(Target::Sidecar, Some("out.tet"), None));
        let mut files = Vec::new();
        for (budget, parallel) in [(1 << 30, true), (1, true), (1, false)] {
            let settings = Settings { budget, parallel, file: Some(&path), ..SETTINGS };
            run(&file, &resolved, &settings).unwrap();
            let out = dir.path().join("out.tet");
            assert!(verify_deep(&out).ok);
            files.push(
                File::open(&out).unwrap().dataset("a-minmax").unwrap().read_all().unwrap().bytes().to_vec(),
            );
            fs::remove_file(&out).unwrap();
        }
        assert!(files[0] == files[1] && files[1] == files[2]);
        let expected = bytes_of(&{
            resolved.write = None;
            run(&file, &resolved, &SETTINGS).unwrap()
        });
        assert!(files[0] == expected);
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    let values: Vec<f64> = (0..5000u32).map(|n| f64::from(n * 7919 % 4001) / 3.0).collect();
    for chunks in [[50, 100], [7, 9], [1, 100]] {
        let file = File::from_bytes("m", layout(&[50, 100], &chunks, &values, false)).unwrap();
        for axes in [&[][..], &[0], &[1]] {
            let resolved = resolved(&Selection::full(&[50, 100]), axes, Method::Softmax);
            let serial = run(&file, &resolved, &Settings { parallel: false, ..SETTINGS }).unwrap();
            let parallel = run(&file, &resolved, &SETTINGS).unwrap();
            assert_eq!(bytes_of(&serial), bytes_of(&parallel));
        }
    }
}

#[test]
fn statistics_have_the_names_of_the_answer() {
    let (_dir, path, _) = on_disk();
    let file = File::open(&path).unwrap();
    let all = Selection::full(&[6, 5]);
    let computed =
        |method, axes: &[usize]| run(&file, &resolved(&all, axes, method), &SETTINGS).unwrap().statistics;
    let scalar = |method| computed(method, &[]).into_iter().map(|(op, _)| op).collect::<Vec<_>>();
    assert_eq!(scalar(Method::Zscore), [Kind::Mean, Kind::Std]);
    assert_eq!(scalar(Method::Center), [Kind::Mean]);
    assert_eq!(scalar(Method::Scale), [Kind::Std]);
    assert_eq!(scalar(Method::Minmax), [Kind::Min, Kind::Max]);
    assert_eq!(scalar(Method::L1), [Kind::NormL1]);
    assert_eq!(scalar(Method::L2), [Kind::NormL2]);
    assert_eq!(scalar(Method::Log1p), [Kind::Min]);
    assert_eq!(scalar(Method::Sqrt), [Kind::Min]);
    assert_eq!(scalar(Method::Softmax), [Kind::Max]);
    let lengths = computed(Method::Softmax, &[1]).into_iter().map(|(op, numbers)| (op, numbers.len()));
    assert_eq!(lengths.collect::<Vec<_>>(), [(Kind::Max, 6)]);
}

#[test]
fn what_cannot_be_done_is_refused_before_anything_is_written() {
    let (dir, path, _) = on_disk();
    let file = File::open(&path).unwrap();
    let source = fs::read(&path).unwrap();
    let mut resolved = resolved(&Selection::full(&[6, 5]), &[], Method::Center);
    let settings = Settings { budget: 8, file: Some(&path), ..SETTINGS };
    resolved.write = Some(write_to(Target::Ram, None, None));
    let error = run(&file, &resolved, &settings).unwrap_err();
    assert_eq!(error.class(), Class::Limit);
    assert_eq!(error.to_string(), "the result has 30 elements, 120 bytes, but the memory budget is 8 bytes");
    for target in [Target::Spill, Target::Sidecar] {
        for name in ["obs.tet", "../obs.bin", "/nowhere/x", "new/../../x", "new/"] {
            resolved.write = Some(write_to(target, Some(name), None));
            let error = run(&file, &resolved, &settings).unwrap_err();
            assert!(matches!(error, ErrorKind::Target { .. }), "{name}: {error}");
        }
    }
    assert_eq!(names(dir.path()), ["obs.tet"]);
    assert_eq!(fs::read(&path).unwrap(), source);

    let file = File::from_bytes("m", layout(&[4], &[2], &[1i32, 2, 3, 4], false)).unwrap();
    resolved = self::resolved(&Selection::full(&[4]), &[], Method::Center);
    let error = run(&file, &resolved, &SETTINGS).unwrap_err();
    assert_eq!(
        error.to_string(),
        "dataset `a` has element type i32, but only f16, f32 and f64 can be transformed"
    );
}

#[test]
fn damage_and_cancellation_leave_nothing() {
    let (dir, path, _) = on_disk();
    let clean = fs::read(&path).unwrap();
    let file = File::open(&path).unwrap();
    let spot = file.dataset("a").unwrap().chunk_ref(&[1, 2]).unwrap().span.start() as usize;
    let mut damaged = clean;
    damaged[spot] ^= 1;
    drop(file);
    fs::write(&path, damaged).unwrap();
    let file = File::open(&path).unwrap();
    let mut resolved = resolved(&Selection::full(&[6, 5]), &[], Method::Center);
    let cancelled = Counter::default();
    cancelled.cancel();
    for target in [Target::Spill, Target::Sidecar] {
        resolved.write = Some(write_to(target, Some("new/out"), None));
        let settings = Settings { file: Some(&path), ..SETTINGS };
        assert_eq!(run(&file, &resolved, &settings).unwrap_err().class(), Class::Corrupt);
        let settings = Settings { progress: &cancelled, ..settings };
        assert!(matches!(
            run(&file, &resolved, &settings),
            Err(ErrorKind::Common(CommonError::Cancelled(_)))
        ));
        assert_eq!(names(dir.path()), ["obs.tet"]);
    }
}
