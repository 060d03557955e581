//! Values that break a rule are refused or left alone, and errors say where they are.

use std::io::Cursor;
use std::sync::Arc;

use bytes::Bytes;
use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_tatami::format::{Codec, Encoding, page_flags};
use tercet_tatami::format::{Footer, Zone};
use tercet_tatami::{
    BatchError, Column, ErrorKind, Field, File, ReadOptions, Schema, Type, Values, VerifyOptions, Writer,
    WriterOptions, verify,
};

use crate::one_page;

fn source(bytes: &[u8]) -> Arc<Memory> {
    Arc::new(Memory::new("rules", bytes.to_vec()))
}

fn is_well(bytes: &[u8]) -> bool {
    let options = VerifyOptions::default().with_deep(true);
    verify(source(bytes), options, &NoProgress).unwrap().ok
}

#[test]
fn text_that_is_no_text_is_refused_with_its_row() {
    let payload = b"\x05\x02ab\x02\xc3\x28";
    let field = Field::new("word", Type::String).with_nulls();
    let bytes = one_page::file(field, Encoding::Plain, page_flags::NULLS, [3, 1], payload, |_| ());
    let file = File::from_source(source(&bytes), ReadOptions::new()).unwrap();
    let fault = file.read_column(0).unwrap_err().into_kind();
    assert!(matches!(&fault, ErrorKind::NotUtf8 { column, row: 2 } if &**column == "word"), "{fault:?}");
    assert!(!is_well(&bytes));
    let file = File::from_source(source(&bytes), ReadOptions::new().with_allow_invalid_utf8(true)).unwrap();
    let Values::Bytes(words) = file.read_column(0).unwrap().values else { unreachable!() };
    assert_eq!(words.iter().collect::<Vec<_>>(), [&b"ab"[..], b"", b"\xc3\x28"]);
}

/// Floats NaN, 100: the reference would say NaN..NaN, or what the page before had.
fn floats(zone: [f32; 2]) -> Vec<u8> {
    let payload = [f32::NAN.to_le_bytes(), 100f32.to_le_bytes()].concat();
    one_page::file(Field::new("a", Type::Float32), Encoding::Plain, 0, [2, 0], &payload, |footer| {
        let [min, max] = zone.map(|bound| Bytes::copy_from_slice(&bound.to_le_bytes()));
        footer.groups[0].chunks[0].zone = Some(Zone { min, max });
    })
}

#[test]
fn zones_of_floats_are_believed_where_they_can_be() {
    assert!(is_well(&floats([f32::NAN, f32::NAN])), "no zone is no promise");
    assert!(is_well(&floats([100.0, 100.0])));
    assert!(!is_well(&floats([1.0, 1.0])), "the only page has a value outside");
}

#[test]
fn keys_that_go_down_are_refused() {
    let schema = || Schema::new(vec![Field::new("key", Type::Int32).with_sort_key()]).unwrap();
    let keys = [Column::new(Values::Int32(vec![5, 1, 3]))];
    let mut writer = Writer::new(Cursor::new(Vec::new()), schema(), WriterOptions::new()).unwrap();
    let fault = writer.append(&keys).unwrap_err();
    assert!(
        matches!(fault.kind(), ErrorKind::Batch(batch) if matches!(**batch, BatchError::Unsorted { row: 1, .. })),
        "{fault:?}"
    );
    let options = WriterOptions::new().with_require_sorted(false);
    let mut writer = Writer::new(Cursor::new(Vec::new()), schema(), options).unwrap();
    writer.append(&keys).unwrap();
    assert!(!is_well(&writer.finish().unwrap().output), "verification finds the order broken");
}

/// A page of two bytes of which one is left over, or whose encoding is not one for text.
#[test]
fn pages_that_do_not_fit_their_type_are_refused() {
    let read = |encoding, payload: &[u8], change: fn(&mut Footer)| {
        let bytes = one_page::file(Field::new("a", Type::String), encoding, 0, [1, 0], payload, change);
        let file = File::from_source(source(&bytes), ReadOptions::new())?;
        file.read_column(0)
    };
    assert!(read(Encoding::Plain, b"\x01a", |_| ()).is_ok());
    assert!(read(Encoding::Plain, b"\x01ab", |_| ()).is_err());
    for encoding in [Encoding::Rle, Encoding::Fsst, Encoding::Bitmap, Encoding::Unknown(9)] {
        assert!(read(encoding, b"\x01a", |_| ()).is_err(), "{encoding}");
    }
    assert!(read(Encoding::Plain, b"\x01a", |footer| footer.groups[0].chunks[0].raw_bytes = 3).is_err());
    assert!(read(Encoding::Plain, b"\x01a", |footer| footer.groups[0].chunks[0].nulls = 1).is_err());
    // What the entry says of the codec is information only.
    assert!(read(Encoding::Plain, b"\x01a", |footer| footer.groups[0].chunks[0].codec = Codec::Zstd).is_ok());
}
