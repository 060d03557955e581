//! Compares the records with a naive writer and with those of the reference implementation.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::Arc;

use proptest::prelude::*;
use sha2::{Digest as _, Sha256};
use tercet_core::source::Memory;

use super::*;
use crate::{Column, Field, File, ReadOptions, Schema, Type, Values, Writer, WriterOptions};

type Model = BTreeMap<Vec<u8>, Vec<(u32, u32)>>;

fn written(model: &Model, live: Option<Live>) -> Inverted {
    let mut writer = InvertedWriter::new(None);
    for (term, postings) in model {
        writer.begin(term).unwrap();
        for (document, frequency) in postings {
            writer.push(*document, *frequency).unwrap();
        }
    }
    writer.finish(live).unwrap()
}

fn bytes(part: Part) -> Vec<u8> {
    let (len, crc) = (part.len(), part.crc());
    let mut out = Vec::new();
    part.copy_to(&mut out).unwrap();
    assert_eq!(out.len() as u64, len);
    assert_eq!(tercet_core::checksum::crc32c(&out), crc);
    out
}

/// A file with this many rows and this region.
fn segment(inverted: Inverted, rows: u32) -> crate::search::Segment {
    let schema = Schema::new(vec![Field::new("n", Type::UInt32)]).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), schema, WriterOptions::new()).unwrap();
    writer.append(&[Column::new(Values::UInt32((0..rows).collect()))]).unwrap();
    writer.attach(inverted);
    let source = Memory::new("segment", writer.finish().unwrap().output);
    File::from_source(Arc::new(source), ReadOptions::new()).unwrap().segment().unwrap().unwrap()
}

fn uvarint(mut value: u64, out: &mut Vec<u8>) {
    while value > 0x7f {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn packed(values: &[u32], width: u32) -> Vec<u8> {
    let mut out = vec![0; (values.len() * width as usize).div_ceil(8)];
    for (index, value) in values.iter().enumerate() {
        for bit in 0..width as usize {
            let at = index * width as usize + bit;
            out[at / 8] |= ((value >> bit & 1) as u8) << (at % 8);
        }
    }
    out
}

/// The PFOR-encoded frequencies of a block, with every width tried.
fn patched(values: &[u32]) -> Vec<u8> {
    let mode = |width: u32| {
        let mut out = vec![width as u8, 0];
        for (position, value) in values.iter().enumerate() {
            if u64::from(*value) >> width != 0 {
                out[1] += 1;
                out.push(position as u8);
                uvarint((*value).into(), &mut out);
            }
        }
        let low: Vec<u32> = values.iter().map(|value| value & (u64::MAX >> (64 - width)) as u32).collect();
        out.extend(packed(&low, width));
        out
    };
    (1..=32).map(mode).min_by_key(Vec::len).unwrap()
}

fn grouped(values: &[u32]) -> Vec<u8> {
    let mut out = Vec::new();
    for four in values.chunks(4) {
        let bytes = |value: &u32| (1..4).find(|len| value >> (8 * len) == 0).unwrap_or(4);
        let control = four.iter().enumerate().map(|(at, value)| ((bytes(value) - 1) << (2 * at)) as u8);
        out.push(control.sum());
        for value in four {
            out.extend(&value.to_le_bytes()[..bytes(value)]);
        }
    }
    out
}

/// The records of postings and skip tables, by independent code.
fn naive(model: &Model) -> (Vec<u8>, Vec<u8>) {
    let lists: Vec<&Vec<(u32, u32)>> = model.values().filter(|postings| postings.len() > 1).collect();
    let (mut payload, mut tables) = (Vec::new(), Vec::new());
    uvarint(lists.len() as u64, &mut payload);
    uvarint(lists.len() as u64, &mut tables);
    for list in lists {
        let mut blocks = Vec::new();
        uvarint(list.len() as u64, &mut tables);
        uvarint(list.len().div_ceil(128) as u64, &mut tables);
        for block in list.chunks(128) {
            let (documents, frequencies): (Vec<u32>, Vec<u32>) = block.iter().copied().unzip();
            let most = *frequencies.iter().max().unwrap();
            let numbers =
                [documents[0], *documents.last().unwrap(), most, blocks.len() as u32, block.len() as u32];
            for number in numbers {
                uvarint(number.into(), &mut tables);
            }
            let gaps: Vec<u32> = documents.windows(2).map(|two| two[1] - two[0]).collect();
            if block.len() == 128 {
                let width = 32 - gaps.iter().max().unwrap().leading_zeros();
                blocks.push(width as u8);
                blocks.extend(packed(&gaps, width));
            } else {
                blocks.extend(grouped(&gaps));
            }
            blocks.extend(patched(&frequencies));
        }
        uvarint(blocks.len() as u64, &mut payload);
        payload.extend(blocks);
    }
    (payload, tables)
}

fn postings() -> impl Strategy<Value = Vec<(u32, u32)>> {
    let gap = prop_oneof![8 => 1u32..4, 3 => 1u32..600, 1 => 1u32..2_000_000];
    let frequency = prop_oneof![8 => 1u32..6, 2 => 1u32..400, 1 => 1u32..=u32::MAX];
    let count = prop_oneof![3 => 1usize..4, 2 => 1usize..130, 1 => 126usize..400];
    count.prop_flat_map(move |count| {
        proptest::collection::vec((gap.clone(), frequency.clone()), count).prop_map(|steps| {
            let mut document = 0;
            let step = |(gap, frequency)| {
                document += gap;
                (document - 1, frequency)
            };
            steps.into_iter().map(step).collect()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(48)))]

    #[test]
    fn records_equal_the_naive_writer(
        model in proptest::collection::btree_map(
            prop_oneof!["[a-c]{0,4}", "[a-z]{1,12}", "\\PC{1,5}"].prop_map(String::into_bytes), postings(), 0..200),
    ) {
        let inverted = written(&model, None);
        prop_assert_eq!(inverted.terms, model.len() as u64);
        let last = model.values().filter_map(|list| list.last()).map(|last| last.0).max();
        prop_assert_eq!(inverted.documents, last.map_or(0, |last| u64::from(last) + 1));
        let (payload, tables) = naive(&model);
        prop_assert_eq!(bytes(inverted.postings), payload);
        prop_assert_eq!(bytes(inverted.skips), tables);
    }

    #[test]
    fn written_postings_round_trip(
        model in proptest::collection::btree_map(
            "[a-f]{0,3}".prop_map(String::into_bytes),
            proptest::collection::btree_map(0u32..3000, 1u32..9, 1..300)
                .prop_map(|list| list.into_iter().collect::<Vec<_>>()),
            0..90,
        ),
        deleted in proptest::option::of(proptest::collection::vec(0u32..3000, 0..50)),
    ) {
        let live = deleted.as_ref().map(|deleted| {
            let mut live = Live::all(3000);
            for document in deleted {
                live.delete(*document);
            }
            live
        });
        let segment = segment(written(&model, live), 3000);
        let mut found = Model::new();
        segment.for_each_term(|term, info| {
            found.insert(term.to_vec(), info.postings);
        }).unwrap();
        prop_assert_eq!(&found, &model);
        let gone: std::collections::BTreeSet<u32> = deleted.into_iter().flatten().collect();
        prop_assert_eq!(segment.live_document_count(), 3000 - gone.len() as u64);
    }
}

#[test]
fn unsorted_input_is_rejected() {
    let mut writer = InvertedWriter::new(None);
    writer.begin(b"b").unwrap();
    writer.push(3, 1).unwrap();
    assert!(writer.push(3, 1).is_err());
    assert!(writer.push(4, 0).is_err());
    assert!(writer.begin(b"b").is_err());
    let mut writer = InvertedWriter::new(None);
    writer.begin(b"b").unwrap();
    assert!(writer.begin(b"a").is_err());
}

/// Documents must also ascend across block boundaries.
#[test]
fn documents_are_compared_across_blocks() {
    let mut writer = InvertedWriter::new(None);
    writer.begin(b"a").unwrap();
    for document in 0..128 {
        writer.push(document, 1).unwrap();
    }
    assert!(writer.push(127, 1).is_err());
}

#[test]
fn reference_postings_are_reproduced() {
    let Some(directory) = tercet_testkit::golden("tatami") else { return };
    let text = std::fs::read_to_string(directory.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut checked = 0;
    for entry in manifest["files"].as_array().unwrap() {
        let expected_layout = &entry["layout"]["inverted"];
        let Some(expected) = expected_layout["postings_payload_sha256"].as_str() else { continue };
        let file = File::open(directory.join(entry["path"].as_str().unwrap())).unwrap();
        let Some(segment) = file.segment().unwrap() else { continue };
        let mut model = Model::new();
        segment.for_each_term(|term, info| drop(model.insert(term.to_vec(), info.postings))).unwrap();
        let inverted = written(&model, None);
        let hash = |part| format!("{:x}", Sha256::digest(bytes(part)));
        assert_eq!(hash(inverted.postings), expected, "{}", entry["path"]);
        assert_eq!(hash(inverted.skips), expected_layout["skips_payload_sha256"].as_str().unwrap());
        checked += 1;
    }
    assert!(checked >= 5, "{checked}");
}
