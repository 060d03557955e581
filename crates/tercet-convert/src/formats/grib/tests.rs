#![expect(clippy::disallowed_methods, reason = "tests look at the file as other programs do")]

use std::path::Path;

use tercet_core::progress::NoProgress;
use tercet_core::source::Memory as MemorySource;

use super::*;
use crate::arrays::{
    Attr, AttrData, ConvertOptions, Dim, Fate, GribPacking, Kind, OutputFormat, Variable, convert, open_path,
    open_source, plan_conversion, read_all,
};

/// A source in memory.
struct Memory {
    header: Header,
    values: Vec<Vec<f64>>,
}

impl ArraySource for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }
    fn header(&self) -> &Header {
        &self.header
    }
    fn read_box(&self, variable: usize, start: &[u64], extents: &[u64], out: &mut [u8]) -> Result<(), Error> {
        let item = &self.header.variables[variable];
        let narrow = item.dtype() == Some(DType::F32);
        let bytes: Vec<u8> = if narrow {
            self.values[variable].iter().flat_map(|value| (*value as f32).to_le_bytes()).collect()
        } else {
            self.values[variable].iter().flat_map(|value| value.to_le_bytes()).collect()
        };
        copy_box(&bytes, item.item_size(), (&item.shape, start, extents), out)
            .map_err(|detail| refused("memory", detail))
    }
}

impl Memory {
    fn with(
        mut self,
        name: &str,
        dtype: DType,
        dims: &[(&str, u64)],
        attrs: &[(&str, &str)],
        values: Vec<f64>,
    ) -> Self {
        for (dim, len) in dims {
            if self.header.dim(dim).is_none() {
                self.header.dims.push(Dim { name: (*dim).to_owned(), len: *len, unlimited: false });
            }
        }
        self.header.variables.push(Variable {
            name: name.to_owned(),
            kind: Kind::Number(dtype),
            dims: dims.iter().map(|(dim, _)| (*dim).to_owned()).collect(),
            shape: dims.iter().map(|(_, len)| *len).collect(),
            chunks: None,
            attrs: attrs.iter().map(|(name, text)| Attr::text(*name, *text)).collect(),
        });
        self.values.push(values);
        self
    }
}

/// Temperatures at two times and two levels, with two missing values.
fn cube() -> Memory {
    let mut values: Vec<f64> = (0..2 * 2 * 3 * 4).map(|at| 250.0 + f64::from(at * at) / 7.0).collect();
    values[5] = f64::NAN;
    values[30] = f64::NAN;
    let dims = [("time", 2), ("level", 2), ("lat", 3), ("lon", 4)];
    Memory { header: Header::default(), values: Vec::new() }
        .with("time", DType::F64, &dims[..1], &[("units", "hours since 2024-06-21 00:00:00")], vec![0.0, 6.0])
        .with("level", DType::F64, &dims[1..2], &[("units", "hPa")], vec![850.0, 500.0])
        .with("lat", DType::F64, &dims[2..3], &[("units", "degrees_north")], vec![50.0, 49.75, 49.5])
        .with("lon", DType::F64, &dims[3..], &[("units", "degrees_east")], vec![-1.0, -0.5, 0.0, 0.5])
        .with("t", DType::F32, &dims, &[("units", "K"), ("comment", "not a key")], values)
}

fn write(source: &Memory, path: &Path, options: &ConvertOptions) -> Result<crate::arrays::Plan, Error> {
    convert(source, path, OutputFormat::Grib, options, &NoProgress)
}

fn options() -> ConvertOptions {
    ConvertOptions { overwrite: true, ..ConvertOptions::new() }
}

fn floats(source: &dyn ArraySource, name: &str) -> Vec<f64> {
    let number = source.header().find(name).unwrap_or_else(|| panic!("no {name}: {:?}", source.header()));
    let tensor = read_all(source, number).unwrap();
    match source.header().variables[number].dtype() {
        Some(DType::F32) => {
            tensor.bytes().as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four).into()).collect()
        }
        _ => tensor.bytes().as_chunks::<8>().0.iter().map(|eight| f64::from_le_bytes(*eight)).collect(),
    }
}

#[test]
fn fields_are_stored_and_stacked_again() {
    let (source, directory) = (cube(), tempfile::tempdir().unwrap());
    let path = directory.path().join("a.grib2");
    let packings = [
        (GribPacking::Auto, None, None, "grid_ieee"),
        (GribPacking::Auto, Some(0.01), None, "grid_ccsds"),
        (GribPacking::Simple, Some(0.01), None, "grid_simple"),
        (GribPacking::Ccsds, None, Some(17), "grid_ccsds"),
        (GribPacking::Simple, None, Some(12), "grid_simple"),
    ];
    for (grib_packing, error, bits, name) in packings {
        let max_error = error.map(|error| (None, error)).into_iter().collect();
        let plan =
            write(&source, &path, &ConvertOptions { max_error, bits, grib_packing, ..options() }).unwrap();
        let item = plan.fidelity.items.iter().find(|item| item.name == "t").unwrap();
        assert_eq!(item.fate, if name == "grid_ieee" { Fate::Exact } else { Fate::Changed });
        assert!(
            plan.fidelity.items.iter().any(|item| item.name == "t:comment" && item.fate == Fate::NotCarried)
        );
        let back = open_path(&path).unwrap();
        let variable = &back.header().variables[back.header().find("t").unwrap()];
        assert_eq!(variable.dims, ["time", "isobaricInhPa", "latitude", "longitude"]);
        assert_eq!(variable.attr("GRIB_packingType"), Some(&AttrData::Text(name.to_owned())));
        assert_eq!(variable.attr("units"), Some(&AttrData::Text("K".to_owned())));
        assert_eq!(floats(&*back, "time"), [1_718_928_000.0, 1_718_949_600.0]);
        assert_eq!(floats(&*back, "isobaricInhPa"), [850.0, 500.0]);
        assert_eq!(floats(&*back, "latitude"), [50.0, 49.75, 49.5]);
        assert_eq!(floats(&*back, "longitude"), [-1.0, -0.5, 0.0, 0.5]);
        let values = floats(&*back, "t");
        let bound = match (error, bits) {
            (Some(error), _) => error,
            (_, Some(bits)) => 200.0 / 2f64.powi(bits.cast_signed()) * 2.0,
            _ => 1e-4,
        };
        for (a, b) in values.iter().zip(&source.values[4]) {
            assert!(a.is_nan() && b.is_nan() || (a - b).abs() <= bound, "{name}: {a} {b}");
        }
    }
}

#[test]
fn what_grib_cannot_hold_is_refused_with_a_reason() {
    let reason = |change: fn(&mut Memory)| {
        let mut source = cube();
        change(&mut source);
        plan_conversion(&source, OutputFormat::Grib, &options()).map(drop).unwrap_err().to_string()
    };
    let t = |source: &mut Memory| source.header.variables.pop().unwrap();
    assert!(
        reason(|source| source.header.variables[4].attrs[0].value = AttrData::Text("degC".to_owned()))
            .contains("its units are `degC`; those of Temperature are `K`")
    );
    assert!(
        reason(|source| source.header.variables[4].name = "nothing".to_owned()).contains("not a parameter")
    );
    assert!(reason(|source| source.header.variables[4].attrs.clear()).contains("no units"));
    assert!(
        reason(|source| source.header.variables[2].attrs.clear())
            .contains("no coordinate variable with latitudes")
    );
    assert!(reason(|source| source.values[2] = vec![50.0, 49.0, 40.0]).contains("unequal distances"));
    assert!(
        reason(|source| source.header.variables[1].attrs.clear())
            .contains("not a time, step, level or member")
    );
    let mut source = cube();
    assert!(!t(&mut source).name.is_empty());
    let error = plan_conversion(&source, OutputFormat::Grib, &options()).map(drop).unwrap_err().to_string();
    assert!(error.contains("nothing can be stored"), "{error}");
    let packing = ConvertOptions { grib_packing: GribPacking::Simple, ..options() };
    let error = plan_conversion(&cube(), OutputFormat::Grib, &packing).map(drop).unwrap_err().to_string();
    assert!(error.contains("needs a precision"), "{error}");
    let mut source = cube();
    source.values[4][0] = f64::INFINITY;
    let directory = tempfile::tempdir().unwrap();
    let error =
        write(&source, &directory.path().join("a.grib2"), &options()).map(drop).unwrap_err().to_string();
    assert!(error.contains("GRIB has no inf"), "{error}");
    assert!(!directory.path().join("a.grib2").exists());
}

fn file_bytes(max_error: Option<f64>, packing: GribPacking) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.grib2");
    let max_error = max_error.map(|error| (None, error)).into_iter().collect();
    write(&cube(), &path, &ConvertOptions { max_error, grib_packing: packing, ..options() }).unwrap();
    std::fs::read(path).unwrap()
}

/// Opens a file and reads everything: the values of all variables, or an error.
fn read_everything(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let source = open_source(Arc::new(MemorySource::new("a.grib", bytes.to_vec())))?;
    (0..source.header().variables.len())
        .map(|number| read_all(&*source, number).map(|tensor| tensor.bytes().to_vec()))
        .collect()
}

#[test]
fn cut_files_report_what_is_lost() {
    let bytes = file_bytes(Some(0.01), GribPacking::Auto);
    let whole = read_everything(&bytes).unwrap();
    for len in 0..bytes.len() {
        match open_source(Arc::new(MemorySource::new("a.grib", bytes[..len].to_vec()))) {
            Err(_) => {}
            Ok(source) => {
                let complete = bytes[..len].windows(4).filter(|end| *end == b"7777").count();
                assert!(complete < 4);
                let is_cut = !bytes[..len].ends_with(b"7777");
                assert_eq!(!source.header().unreadable.is_empty(), is_cut, "{len} of {} bytes", bytes.len());
            }
        }
    }
    assert!(whole.iter().any(|values| !values.is_empty()));
}

#[test]
fn changed_bytes_are_errors_or_values_but_never_a_panic() {
    for (error, packing) in
        [(None, GribPacking::Auto), (Some(0.01), GribPacking::Auto), (Some(0.01), GribPacking::Simple)]
    {
        let bytes = file_bytes(error, packing);
        let first = bytes.windows(4).position(|end| end == b"7777").unwrap() + 4;
        for at in 0..first {
            for change in [0xff, 0x80, 0x01] {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                let _ = read_everything(&changed);
            }
        }
    }
}

#[test]
fn missing_fields_are_reported() {
    let bytes = file_bytes(None, GribPacking::Auto);
    let first = bytes.windows(4).position(|end| end == b"7777").unwrap() + 4;
    let source = open_source(Arc::new(MemorySource::new("a.grib", bytes[first..].to_vec()))).unwrap();
    let [(name, note)] = &source.header().notes[..] else { panic!("{:?}", source.header().notes) };
    assert_eq!(
        (name.as_str(), note.as_str()),
        ("t", "1 of 4 fields are not in the file; they are stored as NaN")
    );
    let values = floats(&*source, "t");
    assert!(values[..12].iter().all(|value| value.is_nan()) && values[12].is_finite());
    let variable = &source.header().variables[source.header().find("t").unwrap()];
    assert!(variable.attr("_FillValue").is_some());
}

#[test]
fn fields_with_the_same_keys_are_all_kept() {
    let bytes = file_bytes(None, GribPacking::Auto);
    let twice: Vec<u8> = bytes.iter().chain(&bytes).copied().collect();
    let source = open_source(Arc::new(MemorySource::new("a.grib", twice))).unwrap();
    let bits = |name: &str| floats(&*source, name).iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits("t"), bits("t_copy1"));
}

#[test]
fn garbage_between_messages_is_reported() {
    let bytes = file_bytes(None, GribPacking::Auto);
    let open = |bytes: Vec<u8>| open_source(Arc::new(MemorySource::new("a.grib", bytes))).unwrap();
    let padded: Vec<u8> = bytes.iter().copied().chain([0; 100]).chain(bytes.iter().copied()).collect();
    assert!(open(padded).header().unreadable.is_empty());
    let bulletin: Vec<u8> = b"HTXE85 ECMF 121200\r\r\n".iter().chain(&bytes).copied().collect();
    assert!(open(bulletin).header().unreadable.is_empty());
    let mut lost = bytes.clone();
    lost[0] = b'X';
    assert_eq!(open(lost).header().unreadable.len(), 1);
}

/// The positions of messages in a file.
fn messages(bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len() - 4).filter(|&at| &bytes[at..at + 4] == b"GRIB").collect()
}

#[test]
fn local_parameters_keep_the_versions_of_their_tables() {
    let mut bytes = file_bytes(None, GribPacking::Auto);
    for start in messages(&bytes) {
        // Octets 10 and 11 of section 1: the versions of the tables; octet 11 of section 4: the number of the parameter.
        bytes[start + 16 + 9..start + 16 + 11].copy_from_slice(&[27, 5]);
        let mut section = start + 16;
        while bytes[section + 4] != 4 {
            section += u32::from_be_bytes(bytes[section..section + 4].try_into().unwrap()) as usize;
        }
        bytes[section + 10] = 201;
    }
    let source = open_source(Arc::new(MemorySource::new("a.grib", bytes))).unwrap();
    let local =
        source.header().variables.iter().find(|variable| variable.attr("GRIB_localTablesVersion").is_some());
    let local = local.unwrap();
    let number =
        |name: &str| local.attr(name).and_then(AttrData::as_number).map(crate::arrays::Number::as_f64);
    assert_eq!((number("GRIB_tablesVersion"), number("GRIB_localTablesVersion")), (Some(27.0), Some(5.0)));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("b.grib2");
    convert(&*source, &path, OutputFormat::Grib, &ConvertOptions::new(), &NoProgress).unwrap();
    let written = std::fs::read(&path).unwrap();
    let starts = messages(&written);
    assert_eq!(starts.len(), 4);
    assert!(starts.iter().all(|start| written[start + 25..start + 27] == [27, 5]));
    // Other parameters have no such attributes.
    let plain =
        open_source(Arc::new(MemorySource::new("a.grib", file_bytes(None, GribPacking::Auto)))).unwrap();
    assert!(plain.header().variables.iter().all(|variable| variable.attr("GRIB_tablesVersion").is_none()));
}

/// A message of edition 1 with four points, and the flags and the octets from 11 on of its data section.
fn edition1(flags: u8, tail: &[u8]) -> Vec<u8> {
    let mut product = vec![0, 0, 28, 128, 98, 1, 255, 0x80, 130, 100, 1, 0xf4, 24, 1, 1, 0, 0, 1];
    product.resize(24, 0);
    product.extend([21, 0, 0, 0]);
    let mut grid = vec![0, 0, 32, 0, 255, 0, 0, 2, 0, 2, 0, 0x27, 0x10, 0, 0, 0, 0x80];
    grid.extend([0, 0x23, 0x28, 0, 3, 0xe8, 3, 0xe8, 3, 0xe8, 0, 0, 0, 0, 0]);
    let mut data = vec![0, 0, u8::try_from(10 + tail.len()).unwrap(), flags, 0, 0, 0x41, 0x10, 0, 0];
    data.extend(tail);
    let total = u8::try_from(8 + product.len() + grid.len() + data.len() + 4).unwrap();
    let head = [b"GRIB".as_slice(), &[0, 0, total, 1]].concat();
    [head, product, grid, data, b"7777".to_vec()].concat()
}

#[test]
fn flags_distinguish_the_packings_of_edition_1() {
    let open =
        |flags: u8, tail: &[u8]| open_source(Arc::new(MemorySource::new("a.grib", edition1(flags, tail))));
    let values = |flags: u8, tail: &[u8]| -> Vec<f64> {
        let source = open(flags, tail).unwrap();
        let number = source.header().variables.iter().position(|variable| variable.shape == [2, 2]).unwrap();
        let tensor = read_all(&*source, number).unwrap();
        match tensor.dtype() {
            DType::F32 => {
                tensor.bytes().as_chunks().0.iter().map(|four| f32::from_le_bytes(*four).into()).collect()
            }
            _ => tensor.bytes().as_chunks().0.iter().map(|eight| f64::from_le_bytes(*eight)).collect(),
        }
    };
    let expected = [250.25, -1.5, 3.0, 1e-3];
    let wide: Vec<u8> = expected.iter().flat_map(|value: &f64| value.to_be_bytes()).collect();
    assert_eq!(values(0x30, &[&[64, 2], &wide[..]].concat()), expected);
    let narrow: Vec<u8> = expected.iter().flat_map(|value| (*value as f32).to_be_bytes()).collect();
    assert_eq!(
        values(0x30, &[&[32, 1], &narrow[..]].concat()),
        expected.map(|value| f64::from(value as f32))
    );
    // Integers of 8 bits, above 1; also if the values were integers.
    assert_eq!(values(0, &[8, 0, 1, 2, 3]), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(values(0x20, &[8, 0, 1, 2, 3]), [1.0, 2.0, 3.0, 4.0]);
    // One group of second-order packing: first value 5 of 8 bits, others of 4.
    let mut second = vec![8, 0, 0, 0x18, 0, 0, 0, 1, 0, 4, 0, 8, 8, 0, 0];
    second.extend([4, 4, 5, 0x01, 0x23]);
    assert_eq!(values(0x40, &second), [6.0, 7.0, 8.0, 9.0]);
    // Alternating rows.
    second[3] |= 0x04;
    assert_eq!(values(0x50, &second), [6.0, 7.0, 9.0, 8.0]);
    for (flags, tail) in
        [(0x10, &[8, 0, 1, 2, 3][..]), (0x30, &[64, 3, 0, 0, 0, 0]), (0x80, &[8, 0, 1, 2, 3])]
    {
        assert!(open(flags, tail).is_err(), "{flags:#04x}");
    }
}
