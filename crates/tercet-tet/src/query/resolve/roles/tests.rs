use proptest::prelude::*;

use super::span;
use crate::query::document::{AxisToken, BinAlign, Mode, Pad, Window};
use crate::query::operation::Scalar;
use crate::query::resolved::Padding;

/// The starts of rolling windows, counted one by one.
fn starts(extent: i64, size: i64, step: u64, padded: bool, align: BinAlign) -> Vec<i64> {
    let (first, last) = match (padded, align) {
        (false, _) => (0, extent - size),
        (true, BinAlign::Start) => (1 - size, extent - size),
        (true, BinAlign::End) => (0, extent - 1),
    };
    (first..=last).step_by(step as usize).collect()
}

proptest! {
    #[test]
    fn windows_are_where_the_slow_version_puts_them(
        extent in 1u64..40, size in 1u64..40, step in 1u64..50, padded: bool, end: bool,
    ) {
        prop_assume!(size <= extent && (padded || !end));
        let align = if end { BinAlign::End } else { BinAlign::Start };
        let pad = if padded { Pad::Zero } else { Pad::None };
        let axis = AxisToken::Number(0);
        let window = Window {
            axis, size, mode: Mode::Rolling, pad: Some(pad), step: Some(step), align: Some(align), min_count: None,
        };
        let padding = Padding { value: padded.then_some(Scalar::Whole(0)), min_count: 1 };
        let rolling = span(&window, padding).windows(extent);
        let expected = starts(extent.cast_signed(), size.cast_signed(), step, padded, align);
        let found: Vec<i64> = (0..rolling.count).map(|n| rolling.first + (n * rolling.step).cast_signed()).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn bins_are_full_but_one(extent in 1u64..200, size in 1u64..50, end: bool) {
        prop_assume!(size <= extent);
        let align = if end { BinAlign::End } else { BinAlign::Start };
        let window = Window {
            axis: AxisToken::Number(0), size, mode: Mode::Bins, pad: None, step: None, align: Some(align), min_count: None,
        };
        let groups = span(&window, Padding { value: None, min_count: 1 }).bins(extent);
        let mut lengths = vec![0; groups.count as usize];
        groups.numbers.iter().for_each(|&bin| lengths[bin as usize] += 1);
        prop_assert!(groups.numbers.is_sorted());
        let short = extent % size;
        let full = if short == 0 { lengths.clone() } else if end { lengths.split_off(1) } else {
            let last = lengths.pop().unwrap();
            std::mem::replace(&mut lengths, vec![last])
        };
        prop_assert!(full.iter().all(|&length| length == size));
        if short > 0 {
            prop_assert_eq!(lengths, vec![short]);
        }
    }
}
