#![expect(clippy::cast_precision_loss, reason = "test values are small")]

use proptest::prelude::*;
use tercet_core::with_element;

use super::*;
use crate::exec::number::Number;
use crate::exec::sample::{Sample, Slot, samples};

/// Naive quantile, straight from the definition.
fn naive<T: Number>(slot: &Slot<T>, min_count: u64, q: f64) -> f64 {
    let Some(mut values) = slot.all(min_count) else { return f64::NAN };
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    values.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let position = q * (values.len() - 1) as f64;
    let (low, high) = (values[position.floor() as usize], values[position.ceil() as usize]);
    let fraction = position - position.floor();
    if !T::FLOAT {
        let (low, high) = (low.to_i128(), high.to_i128());
        return if q == 0.5 {
            (low + high) as f64 / 2.0
        } else {
            low as f64 + (high - low) as f64 * fraction
        };
    }
    let (low, high) = (low.to_f64(), high.to_f64());
    match fraction {
        0.0 => low,
        _ if low == high => low,
        0.5 => low / 2.0 + high / 2.0,
        _ => low * (1.0 - fraction) + high * fraction,
    }
}

fn is_close(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
}

fn check(sample: &Sample, q: f64, rooms: &[MemoryLimits]) {
    let (expected, entered) = with_element!(sample.dtype, |T| {
        let (slots, entered) = sample.slots::<T>();
        let min_count = sample.min_count();
        (slots.iter().map(|slot| naive(slot, min_count, q)).collect::<Vec<f64>>(), entered)
    });
    let file = sample.file();
    let mut first: Option<Vec<u64>> = None;
    for (number, room) in rooms.iter().enumerate() {
        let ordered = sample
            .run(&file, 1 << 30, number % 2 == 0, |job| {
                quantile_in(
                    job,
                    &sample.operation,
                    Quantile { q, dtype: job.element(), is_rest: false },
                    room,
                )
            })
            .unwrap();
        if ordered.is_complete {
            assert_eq!(ordered.elements, entered, "{room:?}");
        }
        assert_eq!(ordered.values.len(), expected.len());
        for (slot, (&found, &expected)) in ordered.values.iter().zip(&expected).enumerate() {
            assert!(is_close(found, expected), "slot {slot}: {found} is not {expected}; {room:?}");
        }
        let bits: Vec<u64> = ordered.values.iter().map(|value| value.to_bits()).collect();
        assert_eq!(*first.get_or_insert_with(|| bits.clone()), bits, "{room:?}");
    }
}

/// Room for everything at once; for a few slots at a time; for counting that ends with collecting; for counting to the
/// last digit.
const ROOMS: [MemoryLimits; 5] = [
    MemoryLimits { task: 32 << 20, collected: 1 << 20, counters: 4 << 20, slots: 16 },
    MemoryLimits { task: 600, collected: 1 << 20, counters: 0, slots: 4 },
    MemoryLimits { task: 150, collected: 0, counters: 4 << 20, slots: 3 },
    MemoryLimits { task: 0, collected: 16, counters: 8 << 20, slots: 2 },
    MemoryLimits { task: 0, collected: 0, counters: 0, slots: 1 },
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(96)))]
    #[test]
    fn every_way_gives_the_quantiles_of_the_definition(
        sample in samples(),
        q in prop_oneof![Just(0.5), Just(0.0), Just(1.0), 0.0..1.0f64],
    ) {
        check(&sample, q, &ROOMS);
    }
}

/// Machines have room for more values of one slot than can be numbered.
#[test]
fn slots_of_more_than_32_bits_are_searched() {
    let reduced = Role::Reduced;
    let axis = |extent| Axis { role: &reduced, extent, included: extent, groups: Vec::new() };
    let quantile = Quantile { q: 0.5, dtype: tercet_core::ElementType::F32, is_rest: false };
    let fits = |extent| Kept { quantile, axes: vec![axis(extent)], room: u64::MAX }.fits(u64::MAX);
    assert!(fits(u32::MAX.into()));
    assert!(!fits(1 << 32));
}
