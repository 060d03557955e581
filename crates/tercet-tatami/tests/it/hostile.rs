//! Small files that declare large sizes: they are rejected or stay within the limits.

use std::io::Cursor;
use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_core::{Class, Diagnostic as _, Limits};
use tercet_tatami::format::Encoding;
use tercet_tatami::{
    Error, Field, File, ReadOptions, SalvageOptions, Type, VerifyOptions, WriterOptions, salvage,
};
use tercet_testkit::counting::Counting;

use crate::one_page;

/// A page of equal numbers: one run of the run-length encoding.
fn equal_numbers(rows: u32) -> Vec<u8> {
    let mut payload = vec![1];
    let mut number = 2 * u64::from(rows) + 1;
    while number >= 0x80 {
        payload.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    payload.extend([number as u8, 1]);
    one_page::file(Field::new("a", Type::Int64), Encoding::Rle, 0, [rows, 0], &payload, |_| {})
}

fn rejected(result: Result<File, Error>, field: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.class(), Class::Malformed, "{error}");
    assert!(error.to_string().contains(field), "{error}");
}

#[test]
fn rows_without_pages_are_rejected_at_open() {
    let bytes = one_page::file(Field::new("a", Type::Int64), Encoding::Plain, 0, [0, 0], &[], |footer| {
        footer.statistics.rows = u64::MAX;
        footer.groups[0].rows = u64::MAX;
        footer.groups[0].total_bytes = 0;
        footer.groups[0].chunks[0].values = u64::MAX;
        footer.groups[0].chunks[0].pages = 0;
    });
    rejected(File::from_bytes("rows", bytes), "num_values");
}

#[test]
fn pages_in_two_row_groups_are_rejected_at_open() {
    let payload = [7; 8 * 4];
    let bytes =
        one_page::file(Field::new("a", Type::Int64), Encoding::Plain, 0, [4, 0], &payload, |footer| {
            let mut group = footer.groups[0].clone();
            group.first_row = 4;
            footer.groups.push(group);
            footer.statistics.rows = 8;
        });
    rejected(File::from_bytes("shared", bytes), "overlap");
}

#[test]
fn a_small_file_decodes_to_at_most_a_gibibyte_unless_limits_are_raised() {
    let bytes = equal_numbers(1 << 28);
    assert!(bytes.len() < 300, "{}", bytes.len());
    let error = File::from_bytes("equal", bytes.clone()).unwrap().read_column(0).unwrap_err();
    assert_eq!(error.class(), Class::Limit, "{error}");
    let small = equal_numbers(1 << 16);
    assert_eq!(File::from_bytes("equal", small).unwrap().read_column(0).unwrap().len(), 1 << 16);
    // Nothing is decoded here: the limits alone decide.
    let limits = Limits::uniform(64 << 30);
    let file =
        File::from_source(Arc::new(Memory::new("equal", bytes)), ReadOptions::new().with_limits(limits));
    assert_eq!(file.unwrap().rows(), 1 << 28);
}

#[test]
fn an_exceeded_limit_is_not_damage() {
    let limits = Limits::default().with_chunk_bytes(1 << 10);
    let source = || Arc::new(Memory::new("equal", equal_numbers(1 << 16)));
    let options = VerifyOptions::new().with_deep(true).with_limits(limits);
    let error = tercet_tatami::verify(source(), options, &NoProgress).unwrap_err();
    assert_eq!(error.class(), Class::Limit, "{error}");
    let options = SalvageOptions::new().with_read(ReadOptions::new().with_limits(limits));
    let error = salvage(source(), Cursor::new(Vec::new()), options, &NoProgress).unwrap_err();
    assert_eq!(error.class(), Class::Limit, "{error}");
}

#[test]
fn salvage_decodes_a_page_of_many_rows_once() {
    let rows = 1 << 18;
    let source = Arc::new(Counting::new(Memory::new("equal", equal_numbers(rows))));
    let options = SalvageOptions::new().with_writer(WriterOptions::new().with_level(1));
    let report = salvage(Arc::clone(&source) as _, Cursor::new(Vec::new()), options, &NoProgress).unwrap();
    assert_eq!(report.rows_kept, u64::from(rows));
    assert!(report.is_complete());
    assert!(source.reads() < 20, "{} reads", source.reads());
}
