//! Exact results of integers, and values outside of the range of a histogram.

use std::io::Cursor;

use tercet_core::tensor::Scalar;
use tercet_core::{Element, TensorView};
use tercet_tet::{Comparison, File, Layout, Op, Select, Weights, Window, Writer, WriterOptions};

/// A file with one dataset `a` in chunks of three values.
fn file<T: Element + Scalar>(values: &[T], attrs: &[(&str, &str)], statistics: bool) -> File {
    let mut layout = Layout::new();
    let a = layout.dataset("a", T::ELEMENT, [values.len() as u64], [3]).unwrap();
    layout.dims(a, ["x"]).unwrap();
    for (name, value) in attrs {
        layout.attr(a, name, value).unwrap();
    }
    let options = WriterOptions::new().with_statistics(statistics);
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, options).unwrap();
    writer.array(a, TensorView::from_slice(&[values.len() as u64], values).unwrap()).unwrap();
    File::from_bytes("m", writer.finish().unwrap().output).unwrap()
}

fn exact<T: Scalar>(part: &Select<'_>, op: Op) -> Option<Vec<T>> {
    part.reduce([op]).run().unwrap().exact.map(|tensor| tensor.to_vec::<T>().expect("of this type"))
}

const BIG: i64 = 1 << 53;

#[test]
fn results_of_64_bit_integers_are_not_rounded() {
    let signed = [BIG + 1, i64::MIN + 1, BIG + 3, -BIG - 1, i64::MAX - 4, BIG + 7, 5];
    let unsigned = [u64::MAX - 2, u64::MAX, (1 << 53) + 1, u64::MAX - 6];
    for statistics in [true, false] {
        let file_i = file(&signed, &[], statistics);
        let part = file_i.dataset("a").unwrap().select();
        let mut sorted = signed;
        sorted.sort_unstable();
        assert_eq!(exact(&part, Op::Min), Some(vec![i64::MIN + 1]));
        assert_eq!(exact(&part, Op::Max), Some(vec![i64::MAX - 4]));
        assert_eq!(exact(&part, Op::Median), Some(vec![sorted[3]]));
        assert_eq!(exact(&part, Op::Quantile { q: 1.0 }), Some(vec![i64::MAX - 4]));
        assert_eq!(exact(&part, Op::Sum), Some(vec![signed.iter().sum::<i64>()]));
        let windows = part.reduce([Op::Max]).window(Window::rolling("x", 2)).run().unwrap().exact.unwrap();
        let expected: Vec<i64> = signed.windows(2).map(|pair| pair[0].max(pair[1])).collect();
        assert_eq!(windows.to_vec::<i64>(), Some(expected));
        let large = part.clone().filter(Comparison::parse("value > 9007199254740993").unwrap().remove(0));
        assert_eq!(exact(&large, Op::Min), Some(vec![BIG + 3]));

        let file_u = file(&unsigned, &[("_FillValue", "18446744073709551615")], statistics);
        let part = file_u.dataset("a").unwrap().select();
        assert_eq!(exact(&part, Op::Max), Some(vec![u64::MAX - 2]));
        assert_eq!(exact(&part, Op::Median), Some(vec![u64::MAX - 6]));
        // The sum does not fit, so there is only the nearest f64.
        assert_eq!(exact::<u64>(&part, Op::Sum), None);
        assert_eq!(exact(&part.clone().raw(), Op::Max), Some(vec![u64::MAX]));
    }
}

/// Sums of some chunks are beyond f64, sums and means of all values are not.
#[test]
fn sums_of_huge_values_do_not_overflow_on_the_way() {
    let values = [1.5e308, 1.5e308, 1.0e308, -1.5e308, -1.0e308, -1.25e308, 0.25e308];
    for statistics in [true, false] {
        let file = file(&values, &[], statistics);
        let part = file.dataset("a").unwrap().select().statistics(statistics);
        let number =
            |reduce: tercet_tet::Reduce<'_>| reduce.run().unwrap().tensor.to_vec::<f64>().unwrap()[0];
        let sum: f64 = values.iter().map(|x| x / 65_536.0).sum::<f64>() * 65_536.0;
        let found = number(part.reduce([Op::Sum]));
        assert!((found / sum - 1.0).abs() < 1e-14, "{found}, not {sum}");
        assert!((number(part.mean(["x"])) / (sum / 7.0) - 1.0).abs() < 1e-14);
        let several = part.reduce([Op::Max, Op::Mean, Op::Sum]).run_all().unwrap();
        let several: Vec<f64> = several.iter().map(|one| one.tensor.to_vec::<f64>().unwrap()[0]).collect();
        assert_eq!(several[0], 1.5e308);
        assert!((several[2] / sum - 1.0).abs() < 1e-14, "{several:?}");
    }
    let file = file(&[f64::INFINITY, 1.0], &[], true);
    let part = file.dataset("a").unwrap().select();
    assert_eq!(part.reduce([Op::Sum]).run().unwrap().tensor.to_vec::<f64>(), Some(vec![f64::INFINITY]));
}

#[test]
fn integers_with_missing_values_are_not_rounded() {
    let values = [BIG + 1, 7, BIG + 3, -5, BIG + 5, BIG + 9, BIG + 7];
    let range = format!("[7, {}]", BIG + 7);
    for statistics in [true, false] {
        // -5 and 2^53 + 9 are outside of the range.
        let valid = [BIG + 1, 7, BIG + 3, BIG + 5, BIG + 7];
        let file_range = file(&values, &[("valid_range", &range)], statistics);
        let part = file_range.dataset("a").unwrap().select();
        assert_eq!(exact(&part, Op::Min), Some(vec![7i64]));
        assert_eq!(exact(&part, Op::Max), Some(vec![BIG + 7]));
        assert_eq!(exact(&part, Op::Sum), Some(vec![valid.iter().sum::<i64>()]));
        assert_eq!(exact(&part, Op::Median), Some(vec![BIG + 3]));
        let max = part.reduce([Op::Max]).run().unwrap();
        assert_eq!((max.elements, max.skipped), (5, 2));
        let large = part.clone().filter(Comparison::parse("value > 9007199254740995").unwrap().remove(0));
        assert_eq!(exact(&large, Op::Min), Some(vec![BIG + 5]));
        // With a fill value as well.
        let file_fill = file(&values, &[("valid_range", &range), ("_FillValue", "7")], statistics);
        let part = file_fill.dataset("a").unwrap().select();
        assert_eq!(exact(&part, Op::Min), Some(vec![BIG + 1]));
        // Missing values that are not skipped make no integer; without any, results are exact.
        assert_eq!(exact::<i64>(&part.clone().skipna(false), Op::Max), None);
        let present = part.isel("x", 4..5).unwrap().skipna(false);
        for op in [Op::Min, Op::Max, Op::Sum, Op::Median] {
            assert_eq!(exact(&present, op), Some(vec![BIG + 5]), "{op:?}");
        }
        let file_plain = file(&values, &[("valid_max", "9007199254740993")], statistics);
        let part = file_plain.dataset("a").unwrap().select();
        assert_eq!(exact(&part, Op::Max), Some(vec![BIG + 1]));
        let null = part.filter(Comparison::parse("value is null").unwrap().remove(0));
        assert_eq!(null.reduce([Op::Count]).run().unwrap().elements, 4);
    }
}

#[test]
fn extremes_beside_weighted_means_are_not_rounded() {
    let file = file(&[BIG + 1, 3, BIG + 3, BIG + 5], &[], true);
    let part = file.dataset("a").unwrap().select();
    let weights = Weights::values("x", vec![1.0, 0.5, 2.0, 1.0]);
    let results = part.reduce([Op::Mean, Op::Max, Op::Min]).over(["x"]).weights(weights).run_all().unwrap();
    let exact = |number: usize| results[number].exact.as_ref().map(|it| it.to_vec::<i64>().unwrap());
    assert_eq!([exact(0), exact(1), exact(2)], [None, Some(vec![BIG + 5]), Some(vec![3])]);
}

#[test]
fn medians_between_two_integers_are_exact_if_they_are_integers() {
    let file_even = file(&[BIG + 1, BIG + 5], &[], true);
    let part = file_even.dataset("a").unwrap().select();
    assert_eq!(exact(&part, Op::Median), Some(vec![BIG + 3]));
    let file_odd = file(&[1i64, 2], &[], true);
    let part = file_odd.dataset("a").unwrap().select();
    let median = part.reduce([Op::Median]).run().unwrap();
    assert_eq!((median.exact.is_none(), median.tensor.to_vec::<f64>()), (true, Some(vec![1.5])));
}

#[test]
fn results_of_small_integers_have_integer_types() {
    let file_small = file(&[3i16, -7, 12, 5], &[("_FillValue", "12")], true);
    let part = file_small.dataset("a").unwrap().select();
    assert_eq!(exact(&part, Op::Min), Some(vec![-7i16]));
    assert_eq!(exact(&part, Op::Max), Some(vec![5i16]));
    assert_eq!(exact(&part, Op::Sum), Some(vec![1i64]));
    let file_packed = file(&[3i16, -7], &[("scale_factor", "0.5")], true);
    let part = file_packed.dataset("a").unwrap().select();
    assert_eq!(exact::<i16>(&part, Op::Min), None);
    // A result without values is missing.
    let file_missing = file(&[12i16, 12], &[("_FillValue", "12")], true);
    let part = file_missing.dataset("a").unwrap().select();
    assert_eq!(exact::<i16>(&part, Op::Min), None);
}

#[test]
fn sums_of_many_32_bit_integers_are_exact() {
    let values = vec![u32::MAX; (1 << 21) + 3];
    let file = file(&values, &[], false);
    let part = file.dataset("a").unwrap().select();
    let total = u64::from(u32::MAX) * values.len() as u64;
    assert!(total > 1 << 53 && total % 2 == 1);
    assert_eq!(exact(&part, Op::Sum), Some(vec![total]));
}

/// The counts of `numpy.histogram`, and the values outside of the range.
fn histogram(values: &[f64], bins: u32, range: Option<(f64, f64)>) -> (Vec<f64>, [u64; 2], Vec<f64>) {
    let file = file(values, &[], true);
    let result = file.dataset("a").unwrap().select().reduce([Op::Histogram { bins, range }]).run().unwrap();
    (result.tensor.to_vec().unwrap(), result.outside.unwrap(), result.edges.unwrap_or_default())
}

#[test]
fn values_outside_of_the_range_are_in_no_bin() {
    let values = [-5.0, 0.0, 1.0, 2.0, 3.0, 4.0, 100.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    assert_eq!(
        histogram(&values, 4, Some((0.0, 4.0))),
        (vec![1.0, 1.0, 1.0, 2.0], [2, 2], vec![0.0, 1.0, 2.0, 3.0, 4.0])
    );
    // Without a range, infinities are outside.
    assert_eq!(histogram(&values[1..], 2, None).1, [1, 1]);
    // One value gets a range of 1 around it, as in NumPy.
    assert_eq!(histogram(&[7.0, 7.0], 2, None), (vec![0.0, 2.0], [0, 0], vec![6.5, 7.0, 7.5]));
    // Bins far narrower than 1e-16.
    assert_eq!(histogram(&[1e-20, 2e-20, 3e-20], 2, None).0, [2.0, 1.0]);
    // 0.3 is the edge 3 · 0.1, which is greater: `numpy.histogram([0.3], 10, (0, 1))` counts it in the third bin.
    assert_eq!(histogram(&[0.3], 10, Some((0.0, 1.0))).0[2], 1.0);
    let (counts, outside, edges) = histogram(&[f64::NAN, f64::INFINITY], 2, None);
    assert_eq!((counts, outside, edges), (vec![0.0, 0.0], [0, 1], vec![]));
}
