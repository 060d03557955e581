use std::collections::BTreeMap;

use proptest::prelude::*;
use tercet_core::{Element, ElementType};

use super::*;
use crate::metadata::{Coord, DatasetInfo};
use crate::{Compression, Grid};

fn le_bytes<T: Element>(values: &[T]) -> Vec<u8> {
    values.iter().flat_map(|value| bytemuck::bytes_of(&value.swap_le()).to_vec()).collect()
}

fn seen<T: Element>(fill: Option<u64>, values: &[T]) -> ChunkZone {
    Scan { dtype: T::ELEMENT, fill, values: true }.chunk(&le_bytes(values))
}

fn attrs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// One dataset `d` with attributes and labels.
fn metadata(attributes: &[(&str, &str)], coords: &[(&str, &[&str])]) -> Metadata {
    let mut info = DatasetInfo { attrs: attrs(attributes), ..DatasetInfo::default() };
    for &(axis, labels) in coords {
        info.coords.insert(axis.to_owned(), Coord::new(labels.iter().copied().map(str::to_owned).collect()));
    }
    let mut metadata = Metadata::default();
    metadata.datasets.insert("d".to_owned(), info);
    metadata
}

fn planned(dtype: ElementType, shape: &[u64], chunk_shape: &[u64]) -> Planned {
    let grid = Grid::new(dtype, shape, chunk_shape).unwrap();
    Planned { name: "d".to_owned(), grid, compression: Compression::None, rounding: None, origin: None }
}

/// The zone maps of the dataset `d` with one axis, given chunk by chunk.
fn zone_maps<T: Element>(metadata: &Metadata, chunk: usize, values: &[T]) -> ZoneMaps {
    let planned = planned(T::ELEMENT, &[values.len() as u64], &[chunk as u64]);
    let mut zones = ZoneMaps::new(&[planned], metadata).unwrap();
    for (number, chunk) in (0..).zip(values.chunks(chunk)) {
        let chunk = zones.scan(0).chunk(&le_bytes(chunk));
        zones.note(0, number, &chunk);
    }
    zones
}

fn indexes(zones: &ZoneMaps, metadata: &Metadata) -> serde_json::Value {
    let mut text = Vec::new();
    zones.write_indexes(metadata, &mut text).unwrap();
    if text.is_empty() {
        return serde_json::Value::Null;
    }
    serde_json::from_slice::<serde_json::Value>(&text).unwrap()["indexes"].clone()
}

#[test]
fn floats_have_total_order_and_nan_is_null() {
    let chunk = seen(None, &[0.0f32, f32::NAN, -0.0, -f32::NAN]);
    let (minus, plus) = (u64::from((-0.0f32).to_bits()), 0);
    assert_eq!(chunk.zone, Zone { nulls: 2, range: Some((minus, plus)) });
    assert_eq!(chunk.values, Some(vec![plus, minus]), "both zeros are values");

    let infinite = seen(None, &[f64::INFINITY, 1.0, f64::NEG_INFINITY, -5e-324]);
    let expected = (f64::NEG_INFINITY.to_bits(), f64::INFINITY.to_bits());
    assert_eq!(infinite.zone, Zone { nulls: 0, range: Some(expected) });

    let nothing = seen(None, &[f32::NAN; 3]);
    assert_eq!(nothing, ChunkZone { zone: Zone { nulls: 3, range: None }, values: Some(Vec::new()) });
}

#[test]
fn the_ends_of_every_integer_type_are_found() {
    assert_eq!(seen(None, &[i16::MAX, i16::MIN]).zone.range, Some((0x8000, 0x7fff)));
    assert_eq!(seen(None, &[-1i32, 0]).zone.range, Some((0xffff_ffff, 0)));
    assert_eq!(seen(None, &[i64::MIN, i64::MAX]).zone.range, Some((1 << 63, !(1 << 63))));
    assert_eq!(seen(None, &[u64::MAX]).zone.range, Some((u64::MAX, u64::MAX)));
    assert_eq!(seen(None, &[0u8]).zone.range, Some((0, 0)));
}

#[test]
fn the_fill_value_is_parsed_as_the_element_type() {
    let fill = |dtype, text| fill_bits(dtype, &attrs(&[("_FillValue", text)]));
    assert_eq!(fill(ElementType::I16, " -1 "), Some(0xffff));
    assert_eq!(fill(ElementType::I32, "-9999.0"), None, "no integer");
    assert_eq!(fill(ElementType::U8, "256"), None, "out of range");
    assert_eq!(fill(ElementType::F32, "1e20"), Some(1e20f32.to_bits().into()), "rounded");
    assert_eq!(fill(ElementType::F16, "0.1"), Some(0x2e66));
    assert_eq!(fill(ElementType::F64, "n/a"), None);
    let first = attrs(&[("fill_value", "1"), ("missing_value", "2"), ("_FillValue", "3")]);
    assert_eq!(fill_bits(ElementType::U8, &first), Some(3));
    assert_eq!(fill_bits(ElementType::U8, &attrs(&[("units", "1")])), None);

    let chunk = seen(fill(ElementType::I16, "-1"), &[4i16, -1, 7, -1]);
    assert_eq!(chunk, ChunkZone { zone: Zone { nulls: 2, range: Some((4, 7)) }, values: Some(vec![4, 7]) });
    let zero = seen(fill(ElementType::F32, "0"), &[0.0f32, -0.0]);
    assert_eq!(zero.zone.nulls, 1, "bit patterns are compared");
}

#[test]
fn sixty_four_values_are_indexed_and_no_more() {
    let none = Metadata::default();
    let few: Vec<u16> = (0..128).map(|n| n % 64).collect();
    let index = indexes(&zone_maps(&none, 10, &few), &none);
    assert_eq!(index[0]["postings"].as_array().unwrap().len(), 64);
    // One chunk with too many, and too many by the last of several chunks.
    for chunk in [65, 8] {
        let many: Vec<u16> = (0..65).collect();
        assert_eq!(indexes(&zone_maps(&none, chunk, &many), &none), serde_json::Value::Null, "{chunk}");
    }
}

#[test]
fn postings_are_sorted_by_their_string() {
    let none = Metadata::default();
    let index = indexes(&zone_maps(&none, 2, &[256u16, 1, 1, 2, 256, 256]), &none);
    let postings: Vec<String> = index[0]["postings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|posting| format!("{} {}", posting["value_le"], posting["chunks"]))
        .collect();
    assert_eq!(postings, [r#""0001" [[0],[2]]"#, r#""0100" [[0],[1]]"#, r#""0200" [[1]]"#]);
    assert_eq!((&index[0]["dtype"], &index[0]["dataset_id"]), (&6.into(), &0.into()));
}

#[test]
fn a_dataset_of_nulls_has_an_index_without_values() {
    let none = Metadata::default();
    let zones = zone_maps(&none, 2, &[f64::NAN; 3]);
    assert_eq!(indexes(&zones, &none)[0]["postings"], serde_json::json!([]));
    let mut text = Vec::new();
    zones.write_zones(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let end = r#"    {
      "dataset_id": 0,
      "chunk_index": [
        1
      ],
      "element_count": 1,
      "null_count": 1
    }
  ]
}
"#;
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn numeric_labels_give_segments() {
    let kinds = |labels: &[&str]| {
        let labels = metadata(&[], &[("0", labels)]);
        let zones = zone_maps(&labels, 2, &[0u8; 3]);
        let index = indexes(&zones, &labels);
        let index: Vec<serde_json::Value> = index.as_array().unwrap().clone();
        index.into_iter().find(|index| index["kind"] == "sorted_axis_range")
    };
    let falling = kinds(&["3", "2.5", "-1e1"]).unwrap();
    assert_eq!(falling["ascending"], false);
    assert_eq!(falling["segments"][0]["lo_le"], "0000000000000440", "2.5");
    assert_eq!(falling["segments"][0]["hi_le"], "0000000000000840", "3");
    assert_eq!(falling["segments"][1]["chunks"], serde_json::json!([[1]]));
    assert_eq!(kinds(&["1", "2", "3"]).unwrap()["ascending"], true);
    for labels in [["1", "1", "2"], ["1", "3", "2"], ["1", "2", "x"], ["1", "2", "inf"], [" 1", "2", "3"]] {
        assert_eq!(kinds(&labels), None, "{labels:?}");
    }
}

#[test]
fn repeated_labels_lead_to_every_chunk_once() {
    let labels = metadata(&[], &[("1", &["b", "a", "b", "b", "\"q\"", "b"])]);
    let planned = planned(ElementType::F32, &[2, 6], &[1, 2]);
    let mut zones = ZoneMaps::new(&[planned], &labels).unwrap();
    let too_many: Vec<f32> = (0u8..65).map(f32::from).collect();
    zones.note(0, 0, &seen(None, &too_many));
    let index = indexes(&zones, &labels);
    assert_eq!(index.as_array().unwrap().len(), 1);
    assert_eq!(
        index[0]["postings"],
        serde_json::json!([
            {"label": "\"q\"", "chunks": [[0, 2], [1, 2]]},
            {"label": "a", "chunks": [[0, 0], [1, 0]]},
            {"label": "b", "chunks": [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]},
        ])
    );
}

proptest! {
    #[test]
    fn ranges_are_those_of_the_obvious_way(
        values in prop::collection::vec(prop_oneof![any::<f32>(), Just(-0.0), Just(0.0), Just(9.0)], 1..200)
    ) {
        let fill = 9.0f32.to_bits();
        let mut good: Vec<f32> =
            values.iter().copied().filter(|x| !x.is_nan() && x.to_bits() != fill).collect();
        good.sort_by(f32::total_cmp);
        let bits = |x: &f32| u64::from(x.to_bits());
        let range = good.first().zip(good.last()).map(|(least, most)| (bits(least), bits(most)));
        let mut distinct: Vec<u64> = good.iter().map(bits).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let chunk = seen(Some(fill.into()), &values);
        prop_assert_eq!(chunk.zone, Zone { nulls: (values.len() - good.len()) as u64, range });
        prop_assert_eq!(chunk.values, Some(distinct).filter(|values| values.len() <= 64));
    }

    #[test]
    fn integers_are_ordered_as_numbers(values in prop::collection::vec(any::<i64>(), 1..50)) {
        let bits = |x: Option<&i64>| x.unwrap().cast_unsigned();
        let range = (bits(values.iter().min()), bits(values.iter().max()));
        prop_assert_eq!(seen(None, &values).zone, Zone { nulls: 0, range: Some(range) });
    }

    #[test]
    fn slabs_are_the_chunks_with_a_coordinate(
        axes in prop::collection::vec((1u64..9, 1u64..4), 1..4), axis in 0usize..4, steps: [bool; 9],
    ) {
        let (shape, chunk): (Vec<u64>, Vec<u64>) = axes.into_iter().unzip();
        let grid = Grid::new(ElementType::U8, &shape, &chunk).unwrap();
        let axis = axis % grid.rank();
        let steps: Vec<u64> = (0..grid.counts()[axis]).filter(|&step| steps[step as usize]).collect();
        let all = (0..grid.chunk_count()).map(|linear| grid.coords(linear)[..grid.rank()].to_vec());
        let expected: Vec<Vec<u64>> = all.filter(|chunk| steps.contains(&chunk[axis])).collect();
        prop_assert_eq!(text::slab(&grid, axis, steps).collect::<Vec<_>>(), expected);
    }
}
