//! Invalid values are rejected or copied unchanged, and errors name their location.

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

fn is_valid(bytes: &[u8]) -> bool {
    let options = VerifyOptions::default().with_deep(true);
    verify(source(bytes), options, &NoProgress).unwrap().ok
}

#[test]
fn invalid_utf8_is_rejected_with_its_row() {
    let payload = b"\x05\x02ab\x02\xc3\x28";
    let field = Field::new("word", Type::String).with_nulls();
    let bytes = one_page::file(field, Encoding::Plain, page_flags::NULLS, [3, 1], payload, |_| ());
    let file = File::from_source(source(&bytes), ReadOptions::new()).unwrap();
    let fault = file.read_column(0).unwrap_err().into_kind();
    assert!(matches!(&fault, ErrorKind::NotUtf8 { column, row: 2 } if &**column == "word"), "{fault:?}");
    assert!(!is_valid(&bytes));
    let file = File::from_source(source(&bytes), ReadOptions::new().with_allow_invalid_utf8(true)).unwrap();
    let Values::Bytes(words) = file.read_column(0).unwrap().values else { unreachable!() };
    assert_eq!(words.iter().collect::<Vec<_>>(), [&b"ab"[..], b"", b"\xc3\x28"]);
}

/// Floats NaN and 100: the reference would store NaN..NaN, or the zone of the previous page.
fn floats(zone: [f32; 2]) -> Vec<u8> {
    let payload = [f32::NAN.to_le_bytes(), 100f32.to_le_bytes()].concat();
    one_page::file(Field::new("a", Type::Float32), Encoding::Plain, 0, [2, 0], &payload, |footer| {
        let [min, max] = zone.map(|bound| Bytes::copy_from_slice(&bound.to_le_bytes()));
        footer.groups[0].chunks[0].zone = Some(Zone { min, max });
    })
}

#[test]
fn verify_checks_float_zones() {
    assert!(is_valid(&floats([f32::NAN, f32::NAN])), "no zone is no promise");
    assert!(is_valid(&floats([100.0, 100.0])));
    assert!(!is_valid(&floats([1.0, 1.0])), "the only page has a value outside");
}

#[test]
fn descending_keys_are_rejected() {
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
    assert!(!is_valid(&writer.finish().unwrap().output), "verification finds the order broken");
}

/// A page with a trailing byte, or with an encoding that strings do not have.
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
    // The codec in the chunk entry is informative only.
    assert!(read(Encoding::Plain, b"\x01a", |footer| footer.groups[0].chunks[0].codec = Codec::Zstd).is_ok());
}
