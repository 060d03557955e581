//! `extract --range`: parts of an array.

use tercet::tgm::{DType, DataObjectDescriptor, EncodeOptions, GlobalMetadata, encode_message};

use super::npy;
use super::pipeline::dir;

#[test]
fn ranges_equal_slices_of_the_whole() {
    let (dir, _) = dir();
    for options in [
        "",
        "--compression zstd",
        "--filter shuffle --compression lz4",
        "--compression blosc2",
        "--encoding simple_packing --bits 13",
        "--encoding simple_packing --compression szip --szip-rsi 2",
        "--compression zfp --zfp-rate 20",
        "--compression zfp --zfp-tolerance 0.01",
    ] {
        dir.ok(&format!("create a.tgm --force {options} --from t=t.npy"));
        let whole = dir.ok("extract a.tgm 0 -o -").bytes;
        let cut = |start: usize, count: usize| whole[start * 8..(start + count) * 8].to_vec();
        let result = dir.ok("extract a.tgm 0 --range 17:100 -o -");
        assert_eq!(result.err, "", "{options}");
        assert!(result.bytes == cut(17, 100), "{options}");
        // In the requested order, also when ranges overlap.
        let expected = [cut(1190, 10), cut(0, 3), vec![], cut(1, 5)].concat();
        for args in ["--range 1190:10,0:3,5:0,1:5", "--range 1190:10 --range 0:3,5:0 --range 1:5"] {
            let result = dir.ok(&format!("extract a.tgm 0 {args} -o -"));
            assert!(result.bytes == expected, "{options} {args}");
        }
        assert!(dir.ok("extract a.tgm 0 --range 0:1200 --verify -o -").bytes == whole, "{options}");
    }
    let result = dir.ok("extract a.tgm 0 --range 3:4,9:2 -o x.npy");
    insta::assert_snapshot!(result.out, @"x.npy: message 0, object 0 (`t`), float64 6, 176 B");
    let file = dir.read("x.npy");
    assert_eq!(npy::parts(&file).0, "{'descr': '<f8', 'fortran_order': False, 'shape': (6,), }");
}

#[test]
fn bit_ranges_are_concatenated() {
    let (dir, _) = dir();
    let descriptor = DataObjectDescriptor::new(DType::Bitmask, [24]).with_compression("rle");
    let message = encode_message(
        &GlobalMetadata::default(),
        &[(&descriptor, &[0b1010_0110, 0xff, 0x01])],
        &EncodeOptions::new(),
    );
    dir.write("bits.tgm", message.unwrap());
    let result = dir.ok("extract bits.tgm 0 --range 0:3,5:4,23:1 -o -");
    assert_eq!(result.bytes, [0b1011_1011], "101 + 1101 + 1");
    let result = dir.ok("extract bits.tgm 0 --range 0:12 -o x.npy");
    insta::assert_snapshot!(result.err, @"note: bitmask is not supported by NumPy; 12 bits written as 2 bytes of uint8, most significant bit first");
    assert_eq!(npy::parts(&dir.read("x.npy")).1, [0b1010_0110, 0b1111_0000]);
}

#[test]
fn unverified_ranges_are_reported() {
    let (dir, _) = dir();
    dir.ok("create a.tgm --no-hash --from t=t.npy");
    for verify in ["", "--verify"] {
        let result = dir.ok(&format!("extract a.tgm 0 --range 0:2 {verify} -o -"));
        assert_eq!(result.err, "note: hash not verified: the object has no hash\n");
    }
    dir.ok("create b.tgm --from t=t.npy");
    let result = dir.ok("extract b.tgm 0 --range 0:2 --ignore-checksums -o -");
    assert_eq!(result.err, "note: hash not verified: use `--verify`\n");
}

#[test]
fn damage_outside_the_range_is_detected() {
    let (dir, _) = dir();
    dir.ok("create a.tgm --from t=t.npy");
    let payload = dir.message("a.tgm", 0).object(0).unwrap().payload_span();
    let mut bytes = dir.read("a.tgm");
    bytes[payload.end() as usize - 1] ^= 1;
    dir.write("a.tgm", &bytes);
    for verify in ["", "--verify"] {
        let args = format!("extract a.tgm 0 --range 0:2 {verify} -o x.npy");
        dir.refused(&args, 5, "is damaged or was changed");
    }
    dir.ok("extract a.tgm 0 --range 0:2 --ignore-checksums -o -");
}

#[test]
fn out_of_bounds_ranges_are_rejected() {
    let (dir, _) = dir();
    dir.ok("create a.tgm --from t=t.npy");
    for (range, code, message) in [
        ("1200:1", 8, "has no elements 1200 to 1201: it holds 1200, numbered from 0"),
        ("0:1201", 8, "has no elements 0 to 1201"),
        ("0:5,1300:0", 8, "has no elements 1300 to 1300"),
        ("5", 2, "expected START:COUNT, like `100:50`, found `5`"),
        ("5:", 2, "expected START:COUNT"),
        ("1:2:3", 2, "expected START:COUNT"),
        ("18446744073709551615:1", 2, "overflows"),
    ] {
        dir.refused(&format!("extract a.tgm 0 --range {range} -o x.npy"), code, message);
    }
    assert_eq!(dir.ok("extract a.tgm 0 --range 1200:0 -o -").bytes, [0u8; 0]);
    dir.refused("extract a.tgm 0 --verify --ignore-checksums -o x", 2, "cannot be used with");
}
