//! Files and pages printed in the specification.

use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_tatami::format::{Encoding, page_flags, requires};
use tercet_tatami::{Column, Field, File, ReadOptions, Type, Values, VerifyOptions, verify};

use crate::one_page;

/// Bytes as the specification prints them: digits, `"text"`, `00×12` for many.
fn bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for word in text.split_whitespace() {
        if let Some(quoted) = word.strip_prefix('"').and_then(|word| word.strip_suffix('"')) {
            out.extend_from_slice(quoted.as_bytes());
        } else if let Some((byte, count)) = word.split_once('×') {
            let byte = u8::from_str_radix(byte, 16).unwrap();
            out.extend(vec![byte; count.parse().unwrap()]);
        } else {
            out.push(u8::from_str_radix(word, 16).unwrap());
        }
    }
    out
}

fn open(bytes: &[u8]) -> File {
    let source = Arc::new(Memory::new("vector", bytes.to_vec()));
    let options = VerifyOptions::default().with_deep(true);
    let report = verify(Arc::clone(&source) as _, options, &NoProgress).unwrap();
    assert!(report.ok, "{:?}", report.findings);
    File::from_source(source, ReadOptions::new()).unwrap()
}

#[test]
fn a_reference_file_is_read() {
    let file = bytes(
        r#"54 41 54 31 01 00 01 00 00 00 01 02 00 00 00 00 00×16
           03 00 00 00 00 00 00 00 70 00 00 00 00 00 00 00 00×12 5c 4a bd 34
           00 03 02 00 03 00 00 00 03 00 00 00 10 00 00 00
           00 00 00 00 00 00 00 00 dc 7c 0a 2b 00 00 00 00
           28 b5 2f fd 04 00 19 00 00 02 07 24 97 0a 0a 56
           00 01 06 01 01 6e 03 00 00
           02 1a 01 00 03 30 00 01 00 40 10 03 03 00 01 03 02 01
           04 07 00 00 00 04 09 00 00 00
           06 14 01 0e "tatami.version" 03 "1.1"
           07 03 03 03 10
           40 00 00 00 51 e5 06 39 54 41 54 31"#,
    );
    assert_eq!(file.len(), 188);
    let file = open(&file);
    assert_eq!(file.read_column(0).unwrap().values, Values::Int32(vec![7, 8, 9]));
    assert_eq!(file.required_features(), 0);
}

#[test]
fn a_file_with_a_value_dictionary_is_read() {
    let file = bytes(
        r#"54 41 54 31 01 00 01 00 04 00 01 02 00 00 10 00 00×16
           04 00 00 00 00 00 00 00 9b 00 00 00 00 00 00 00 00×12 03 e0 bd f9
           00 02 80 00 04 00 00 00 04 00 00 00 04 00 00 00
           00 00 00 00 00 00 00 00 77 20 3f 6e ee a4 9e 20
           03 01 00 02
           01 02 02 00 01 00 00 00 0a 00 00 00 17 00 00 00
           00 00 00 00 00 00 00 00 43 17 cc 7a d8 4e fb 1a
           28 b5 2f fd 24 0a 51 00 00 02 03 72 65 64 04 62 6c 75 65 1e f5 36 d6
           00 01 06 01 01 73 0b 00 00
           02 19 01 00 04 24 00 01 00 40 04 04 04 00 01 02 00 01 04 "blue" 03 "red"
           04 03 01 64 0a
           06 14 01 0e "tatami.version" 03 "1.1" 07 03 04 0e 1b
           c3 a8 01 07 01 01 03 01 00 01 01
           4f 00 00 00 03 69 3c 4a 54 41 54 31"#,
    );
    assert_eq!(file.len(), 246);
    let file = open(&file);
    let expected = Values::Bytes(["red", "blue", "red", "red"].iter().collect());
    assert_eq!(file.read_column(0).unwrap().values, expected);
    assert_eq!(file.required_features(), requires::DICTIONARY);
}

#[test]
fn a_page_of_lists_is_read() {
    let payload = bytes("0d 03 03 02 00 22 04 01 07 02 07 24");
    let field = Field::list("a", Type::Int32).with_nulls();
    let file =
        open(&one_page::file(field, Encoding::BitpackFor, page_flags::NULLS, [4, 1], &payload, |_| ()));
    let Column { values: Values::List(lists), validity } = file.read_column(0).unwrap() else {
        unreachable!()
    };
    assert_eq!(validity.unwrap().positions().collect::<Vec<_>>(), [0, 2, 3]);
    assert_eq!(lists.ends, [2, 2, 2, 4]);
    assert_eq!(lists.elements.values, Values::Int32(vec![7, 8, 9, 0]));
    assert_eq!(lists.elements.validity.unwrap().positions().collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn split_floats_are_read() {
    let payload = bytes("00 00 00 00 80 00 3f 40");
    let field = Field::new("a", Type::Float32);
    let file = open(&one_page::file(field, Encoding::Plain, page_flags::SPLIT, [2, 0], &payload, |_| ()));
    assert_eq!(file.read_column(0).unwrap().values, Values::Float32(vec![1.0, 2.0]));
}
