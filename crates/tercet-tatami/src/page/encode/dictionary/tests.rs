use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

fn encode(values: &mut ValueDictionary, page: &[&[u8]], best: u64, out: &mut Vec<u8>) -> bool {
    let trial = values.try_strings(page, best);
    trial.as_ref().inspect(|trial| values.keep(trial, out).unwrap()).is_some()
}

fn strings(options: &WriterOptions) -> ValueDictionary {
    ValueDictionary::new(Type::String, options, 1).unwrap()
}

#[test]
fn records_and_pages_have_the_expected_bytes() {
    let mut values = strings(&WriterOptions::new());
    let mut page = Vec::new();
    assert!(encode(&mut values, &[b"red", b"blue", b"red", b"red"], 17, &mut page));
    assert_eq!(page, [3, 1, 0, 2]);
    assert_eq!(values.payload().unwrap(), b"\x02\x03red\x04blue");
}

#[test]
fn rolled_back_trials_leave_no_values() {
    let mut values = strings(&WriterOptions::new());
    let mut page = Vec::new();
    assert!(!encode(&mut values, &[b"red", b"blue"], 11, &mut page));
    assert_eq!((page.len(), values.entries.len(), values.plain_bytes), (0, 0, 0));
    assert!(values.slots.iter().all(|slot| *slot == 0));
    assert_eq!(values.payload(), None);
}

#[test]
fn limits_are_respected() {
    let mut values = strings(&WriterOptions::new().with_dictionary_max_values(2));
    let mut page = Vec::new();
    assert!(encode(&mut values, &[b"a", b"b"], 100, &mut page));
    assert!(!encode(&mut values, &[b"a", b"c"], 100, &mut page));
    assert!(encode(&mut values, &[b"b", b"a"], 100, &mut page));
    let mut values = strings(&WriterOptions::new().with_dictionary_max_bytes(5));
    assert!(!encode(&mut values, &[b"abc", b"d"], 100, &mut page));
    assert!(encode(&mut values, &[b"ab", b"d"], 100, &mut page));
}

proptest! {
    #[test]
    fn codes_are_in_order_of_first_use(
        pages in prop::collection::vec((prop::collection::vec(0u8..60, 1..200), any::<bool>()), 1..12),
    ) {
        let mut strings = strings(&WriterOptions::new());
        let mut numbers = ValueDictionary::new(Type::UInt16, &WriterOptions::new(), 1).unwrap();
        let mut known: Vec<u8> = Vec::new();
        for (page, keeps) in pages {
            let mut would = known.clone();
            let mut seen: HashMap<u8, u32> = would.iter().copied().zip(0..).collect();
            let codes: Vec<u32> = page
                .iter()
                .map(|value| {
                    *seen.entry(*value).or_insert_with(|| {
                        would.push(*value);
                        would.len() as u32 - 1
                    })
                })
                .collect();
            let slices: Vec<Vec<u8>> = page.iter().map(|value| vec![b'x'; usize::from(*value)]).collect();
            let slices: Vec<&[u8]> = slices.iter().map(Vec::as_slice).collect();
            let shorts: Vec<u16> = page.iter().map(|value| u16::from(*value)).collect();
            for is_string in [true, false] {
                let mut out = Vec::new();
                let values = if is_string { &mut strings } else { &mut numbers };
                let trial = if is_string {
                    values.try_strings(&slices, 1 << 20)
                } else {
                    values.try_numbers(&shorts, 1 << 20)
                };
                let trial = trial.unwrap();
                if keeps {
                    values.keep(&trial, &mut out).unwrap();
                } else {
                    values.roll_back(&trial);
                }
                if keeps {
                    let (inner, len) = ints::choose(&codes, &CODE_CASCADE);
                    prop_assert_eq!(out.len() as u64, len + 1);
                    let mut back: Vec<u32> = Vec::new();
                    ints::decode(inner, &out[1..], codes.len(), &mut back).unwrap();
                    prop_assert_eq!(&back, &codes);
                }
            }
            if keeps {
                known = would;
            }
            prop_assert_eq!(strings.entries.len(), known.len());
            prop_assert_eq!(numbers.entries.len(), known.len());
        }
    }
}

/// Whether a page of numbers below a bound is tried, and whether the dictionary is shorter.
fn outcome(different: u64, best: u64) -> (bool, bool) {
    let mut noise = 1u64;
    let values: Vec<u64> = (0..65_536)
        .map(|_| {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (noise >> 33) % different
        })
        .collect();
    let mut dictionary = ValueDictionary::new(Type::UInt64, &WriterOptions::new(), 1).unwrap();
    let unpromising = dictionary.is_unpromising(
        &values,
        best,
        |this, value| this.find_number(*value),
        |this, value| hash_number(this.seed, *value),
        |_| 8,
    );
    let codes = dictionary.number_codes(&values, best);
    let wins = dictionary.trial((0, 0), codes, best).is_some();
    (!unpromising, wins)
}

#[test]
fn samples_skip_only_pages_that_cannot_win() {
    for best in [100_000, 200_000, 300_000, 524_288] {
        for different in [2, 100, 1000, 5000, 10_000, 20_000, 30_000, 40_000, 60_000] {
            let (tried, wins) = outcome(different, best);
            assert!(tried || !wins, "{different} distinct values, limit {best} bytes");
        }
        assert!(!outcome(1 << 30, best).0, "distinct values, limit {best} bytes");
    }
}
