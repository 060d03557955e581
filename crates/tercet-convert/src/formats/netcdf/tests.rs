#![expect(clippy::disallowed_methods, reason = "tests look at the file as other programs do")]

use std::sync::Arc;

use proptest::prelude::*;
use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;

use super::*;
use crate::arrays::{
    ArraySink, ArraySource, Attr, AttrData, Dim, Header, Numbers, Values, Variable, read_all,
};

fn variable(name: &str, kind: Kind, dims: &[&str], shape: &[u64]) -> Variable {
    Variable {
        name: name.to_owned(),
        kind,
        dims: dims.iter().map(|dim| (*dim).to_owned()).collect(),
        shape: shape.to_vec(),
        chunks: None,
        attrs: vec![Attr::text("units", "K")],
    }
}

/// A file with fixed and record variables of odd sizes.
fn header(version: Version, single: bool) -> Header {
    let dim = |name: &str, len, unlimited| Dim { name: name.to_owned(), len, unlimited };
    let mut variables = vec![
        variable("s", Kind::Number(DType::I16), &[], &[]),
        variable("x", Kind::Number(DType::F64), &["x"], &[3]),
        variable("r", Kind::Number(DType::I8), &["time", "x"], &[5, 3]),
    ];
    if !single {
        variables.push(variable("t", Kind::Number(DType::I16), &["time"], &[5]));
        variables.push(variable("c", Kind::Char, &["time", "x"], &[5, 3]));
    }
    if version == Version::Cdf5 {
        variables.push(variable("u", Kind::Number(DType::U64), &["x"], &[3]));
    }
    Header {
        format: version.name().to_owned(),
        attrs: vec![
            Attr::text("title", "test"),
            Attr::new(
                "list",
                AttrData::Numbers(Numbers::parse(DType::I16, &["1", "-2", "3"], true).unwrap()),
            ),
            Attr::new("scale", AttrData::Numbers(Numbers::parse(DType::F32, &["0.1"], false).unwrap())),
        ],
        dims: vec![dim("time", 5, true), dim("x", 3, false)],
        variables,
        ..Header::default()
    }
}

fn values(variable: &Variable) -> Vec<u8> {
    (0..variable.bytes()).map(|byte| u8::try_from((byte * 7 + 1) % 251).unwrap()).collect()
}

fn write(version: Version, single: bool) -> (Header, Vec<u8>) {
    let header = header(version, single);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.nc");
    let mut sink = Box::new(NetCdfSink::create(&path, header.clone(), version, false).unwrap());
    for (number, variable) in header.variables.iter().enumerate() {
        let all = values(variable);
        let fill = |_: &[u64], _: &[u64], out: &mut [u8]| {
            out.copy_from_slice(&all);
            Ok(())
        };
        sink.write(number, &Values { fill: &fill, source_chunks: None, stored: None }, &NoProgress).unwrap();
    }
    sink.finish().unwrap();
    (header, std::fs::read(&path).unwrap())
}

fn open(bytes: Vec<u8>) -> Result<NetCdf, crate::Error> {
    NetCdf::open(Arc::new(Memory::new("a.nc", bytes)), tercet_core::Limits::default())
}

#[test]
fn every_version_is_read_back() {
    for version in [Version::Classic, Version::Offset64, Version::Cdf5] {
        for single in [false, true] {
            let (header, bytes) = write(version, single);
            let file = open(bytes).unwrap();
            assert_eq!(*file.header(), header);
            for (number, variable) in header.variables.iter().enumerate() {
                assert_eq!(read_all(&file, number).unwrap().bytes(), values(variable), "{}", variable.name);
            }
            // A box inside.
            let mut part = [0; 4];
            file.read_box(2, &[1, 1], &[2, 2], &mut part).unwrap();
            let all = values(&header.variables[2]);
            assert_eq!(part, [all[4], all[5], all[7], all[8]]);
            assert!(file.read_box(2, &[4, 0], &[2, 3], &mut [0; 6]).is_err());
        }
    }
}

#[test]
fn a_streamed_file_has_the_records_that_fit() {
    let (header, mut bytes) = write(Version::Offset64, false);
    bytes[4..8].fill(0xff);
    assert_eq!(open(bytes).unwrap().header().dims, header.dims);
}

#[test]
fn every_truncation_is_an_error() {
    let (_, bytes) = write(Version::Cdf5, false);
    for len in 0..bytes.len() {
        if let Ok(file) = open(bytes[..len].to_vec()) {
            // Only padding is missing.
            assert!(len + 4 > bytes.len(), "{len}");
            for number in 0..file.header().variables.len() {
                read_all(&file, number).unwrap();
            }
        }
    }
}

proptest! {
    #[test]
    fn damaged_files_never_panic(at in 0usize..400, value: u8, extra: u8) {
        let (_, mut bytes) = write(Version::Cdf5, false);
        let len = bytes.len();
        bytes[at % len] = value;
        bytes[(at + usize::from(extra)) % len] ^= extra;
        if let Ok(file) = open(bytes) {
            for number in 0..file.header().variables.len() {
                if file.header().variables[number].bytes() < 1 << 20 {
                    let _ = read_all(&file, number);
                }
            }
        }
    }
}
