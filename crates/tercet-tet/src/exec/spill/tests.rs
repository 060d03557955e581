#![cfg(any(unix, windows))]
#![expect(clippy::disallowed_methods, reason = "these tests look at real files")]

use std::fs;

use tercet_core::progress::NoProgress;
use tercet_core::{Class, Diagnostic as _};

use super::*;
use crate::File;
use crate::exec::target::Outputs;
use crate::exec::testing::{job, layout, plan, resolved};
use crate::query::operation::{Method, Scalar};
use crate::query::resolved::{Filter, Positions};

fn elements<T: Number>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks(size_of::<T>()).map(|slot| bytemuck::pod_read_unaligned::<T>(slot).swap_le()).collect()
}

#[test]
fn plain_spills_hold_the_selection_of_every_type() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("obs.tet");
    for dtype in ElementType::ALL {
        with_element!(dtype, |T| {
            let bytes: Vec<u8> = (0..60 * size_of::<T>()).map(|n| n as u8).collect();
            let values: Vec<T> = bytes.chunks(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect();
            fs::write(&path, layout(&[6, 10], &[4, 3], &values, true)).unwrap();
        });
        let file = File::open(&path).unwrap();
        let dataset = file.dataset("a").unwrap();
        for text in [":", "::2,1:9:3", "5,9"] {
            let resolved = resolved(&dataset.selection(text).unwrap(), &[], Method::Center);
            let plan = plan(&dataset, &resolved.selection);
            let job = job(dataset, &plan, &resolved, 1, &NoProgress);
            let outputs = Outputs::new(Some(&path), &[], 3).unwrap().with_overwrite(true);
            let (spilled, head) = spill(&job, "out.bin", &outputs).unwrap();
            let expected = dataset.read(&resolved.selection).unwrap();
            assert_eq!(fs::read(spilled.path.unwrap()).unwrap(), expected.bytes(), "{dtype} {text}");
            assert_eq!(spilled.bytes, expected.bytes().len() as u64);
            let head = head.unwrap();
            assert_eq!(head.bytes(), &expected.bytes()[..head.bytes().len()]);
            assert!(spill(&job, "obs.tet", &outputs).is_err());
        }
    }
}

#[test]
fn slots_that_do_not_count_are_blank_in_spills_and_buffers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("obs.tet");
    let values: Vec<i32> = (0..24).collect();
    fs::write(&path, layout(&[4, 6], &[3, 4], &values, false)).unwrap();
    let file = File::open(&path).unwrap();
    let dataset = file.dataset("a").unwrap();
    let mut resolved = resolved(&dataset.selection("::2,1:").unwrap(), &[], Method::Center);
    resolved.filter = Some(Filter { gt: Some(Scalar::Whole(2)), ..Filter::default() });
    resolved.positions = Some(Positions { axis: 1, counts: [true, true, false, true, true].into() });
    let outputs = Outputs::new(Some(&path), &[], 4).unwrap();
    let plan = plan(&dataset, &resolved.selection);
    let error = spill(&job(dataset, &plan, &resolved, 1 << 20, &NoProgress), "out", &outputs).unwrap_err();
    assert_eq!(error.class(), Class::Request);
    assert!(matches!(error, ErrorKind::NoFill { .. }), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left");

    resolved.fill = Some(Scalar::Whole(-9));
    let expected = [-9, -9, -9, 4, 5, 13, 14, -9, 16, 17];
    let job = job(dataset, &plan, &resolved, 1 << 20, &NoProgress);
    let (spilled, head) = spill(&job, "out", &outputs).unwrap();
    let bytes = fs::read(spilled.path.unwrap()).unwrap();
    assert_eq!(elements::<i32>(&bytes), expected);
    assert_eq!(head.unwrap().to_vec::<i32>().unwrap(), expected[..4]);

    let mut dense = dataset.read(&resolved.selection).unwrap();
    blank(&job, &resolved.selection, dense.bytes_mut()).unwrap();
    assert_eq!(dense.to_vec::<i32>().unwrap(), expected);
    // A part of the selection keeps the positions of the labels.
    let part = dataset.selection("2:3,2:5").unwrap();
    let mut dense = dataset.read(&part).unwrap();
    blank(&job, &part, dense.bytes_mut()).unwrap();
    assert_eq!(dense.to_vec::<i32>().unwrap(), expected[6..9]);
}

#[test]
fn floats_are_blanked_with_nan() {
    let file = File::from_bytes("m", layout(&[4], &[3], &[1.0f32, 5.0, f32::INFINITY, 2.0], false)).unwrap();
    let dataset = file.dataset("a").unwrap();
    let mut resolved = resolved(&dataset.selection("0:4").unwrap(), &[], Method::Center);
    let plan = plan(&dataset, &resolved.selection);
    resolved.filter = Some(Filter { gt: Some(Scalar::Whole(4)), ..Filter::default() });
    let mut dense = dataset.read(&resolved.selection).unwrap();
    blank(&job(dataset, &plan, &resolved, 1, &NoProgress), &resolved.selection, dense.bytes_mut()).unwrap();
    let values = dense.to_vec::<f32>().unwrap();
    assert!(values[0].is_nan() && values[3].is_nan());
    assert_eq!(values[1..3], [5.0, f32::INFINITY]);
}

#[test]
fn chunks_that_the_plan_leaves_out_are_blank() {
    let values: Vec<f64> = (0..12).map(f64::from).collect();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("obs.tet");
    fs::write(&path, layout(&[12], &[4], &values, true)).unwrap();
    let file = File::open(&path).unwrap();
    let dataset = file.dataset("a").unwrap();
    let mut resolved = resolved(&dataset.selection(":").unwrap(), &[], Method::Center);
    resolved.filter = Some(Filter { gt: Some(Scalar::Whole(9)), ..Filter::default() });
    let mut plan = plan(&dataset, &resolved.selection);
    plan.chunks.drain(..2);
    let job = job(dataset, &plan, &resolved, 1 << 20, &NoProgress);
    let outputs = Outputs::new(Some(&path), &[], 0).unwrap();
    let (spilled, _) = spill(&job, "out", &outputs).unwrap();
    let values = elements::<f64>(&fs::read(spilled.path.unwrap()).unwrap());
    assert!(values[..10].iter().all(|value| value.is_nan()));
    assert_eq!(values[10..], [10.0, 11.0]);
    assert_eq!(job.counters.bytes_read.into_inner(), plan.total_stored_bytes(), "they are not read");
}
