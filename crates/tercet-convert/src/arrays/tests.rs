#![expect(clippy::disallowed_methods, reason = "tests look at the file as other programs do")]

use std::path::{Path, PathBuf};

use tercet_core::DType;
use tercet_core::progress::NoProgress;
use tercet_tet::Compression;

use super::*;

/// A source in memory.
struct Memory {
    header: Header,
    values: Vec<Vec<u8>>,
    strings: Vec<Vec<String>>,
}

impl ArraySource for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }
    fn header(&self) -> &Header {
        &self.header
    }
    fn read_box(
        &self,
        variable: usize,
        start: &[u64],
        extents: &[u64],
        out: &mut [u8],
    ) -> Result<(), crate::Error> {
        let item = &self.header.variables[variable];
        let size = item.item_size();
        for (element, slot) in out.chunks_exact_mut(size).enumerate() {
            let place = super::convert::place_of(start, extents, element);
            let linear = place.iter().zip(&item.shape).fold(0, |linear, (at, extent)| linear * extent + at);
            let at = usize::try_from(linear).unwrap() * size;
            slot.copy_from_slice(&self.values[variable][at..at + size]);
        }
        Ok(())
    }
    fn read_strings(&self, variable: usize) -> Result<Vec<String>, crate::Error> {
        Ok(self.strings[variable].clone())
    }
}

impl Memory {
    fn new() -> Self {
        Self { header: Header::default(), values: Vec::new(), strings: Vec::new() }
    }

    fn with(mut self, name: &str, kind: Kind, dims: &[(&str, u64)], chunks: Option<&[u64]>) -> Self {
        for (dim, len) in dims {
            if self.header.dim(dim).is_none() {
                self.header.dims.push(Dim { name: (*dim).to_owned(), len: *len, unlimited: *dim == "time" });
            }
        }
        let variable = Variable {
            name: name.to_owned(),
            kind,
            dims: dims.iter().map(|(dim, _)| (*dim).to_owned()).collect(),
            shape: dims.iter().map(|(_, len)| *len).collect(),
            chunks: chunks.map(<[u64]>::to_vec),
            attrs: vec![
                Attr::text("units", "K"),
                Attr::text("empty", ""),
                Attr::text("long", "x".repeat(3000)),
                Attr::new("f", AttrData::Numbers(Numbers::parse(DType::F32, &["0.1", "NaN"], true).unwrap())),
                Attr::new("flag_masks", AttrData::Numbers(Numbers::parse(DType::I8, &["1"], false).unwrap())),
                Attr::new("valid_range", AttrData::Text("not a range".to_owned())),
            ],
        };
        let bytes = variable.bytes();
        let is_bool = kind == Kind::Number(DType::Bool);
        let byte = |at: u64| u8::try_from(if is_bool { at % 2 } else { at * 31 % 63 }).unwrap();
        self.values.push((0..bytes).map(byte).collect());
        let strings = (0..variable.elements()).map(|number| format!("text {number}"));
        self.strings.push(if kind == Kind::String { strings.collect() } else { Vec::new() });
        self.header.variables.push(variable);
        self
    }
}

fn every_type() -> Memory {
    let mut memory = Memory::new();
    for dtype in DType::ALL {
        if dtype != DType::Bitmask && dtype != DType::BF16 {
            let dims = [("time", 5), ("y", 4), ("x", 3)];
            memory = memory.with(dtype.name(), Kind::Number(dtype), &dims, Some(&[1, 4, 3]));
        }
    }
    memory
        .with("crs", Kind::Number(DType::I32), &[], None)
        .with("a/b", Kind::Number(DType::F32), &[("a/n", 2)], None)
        .with("name", Kind::Char, &[("time", 5), ("length", 7)], None)
}

fn names_without(source: &Memory, name: &str) -> Vec<String> {
    source
        .header
        .variables
        .iter()
        .map(|variable| variable.name.clone())
        .filter(|found| found != name)
        .collect()
}

fn options() -> ConvertOptions {
    ConvertOptions::default()
}

fn assert_same(left: &dyn ArraySource, right: &dyn ArraySource) {
    assert_eq!(left.header().attrs, right.header().attrs);
    for (number, variable) in left.header().variables.iter().enumerate() {
        let other = right.header().find(&variable.name).unwrap_or_else(|| panic!("{}", variable.name));
        let found = &right.header().variables[other];
        assert_eq!((found.kind, &found.dims, &found.shape), (variable.kind, &variable.dims, &variable.shape));
        assert_eq!(format!("{:?}", found.attrs), format!("{:?}", variable.attrs), "{}", variable.name);
        if variable.kind == Kind::String {
            assert_eq!(left.read_strings(number).unwrap(), right.read_strings(other).unwrap());
        } else {
            let (left, right) = (read_all(left, number).unwrap(), read_all(right, other).unwrap());
            assert_eq!(left.bytes(), right.bytes(), "{}", variable.name);
        }
    }
}

fn run(source: &dyn ArraySource, directory: &Path, name: &str) -> (PathBuf, Plan) {
    let path = directory.join(name);
    let format = OutputFormat::from_path(&path).unwrap();
    let plan = convert(source, &path, format, &options(), &NoProgress).unwrap();
    (path, plan)
}

#[test]
fn tet_files_give_every_type_back() {
    let source = every_type();
    let directory = tempfile::tempdir().unwrap();
    let (path, plan) = run(&source, directory.path(), "a.tet");
    assert!(plan.fidelity.is_exact(), "{:?}", plan.fidelity.inexact().collect::<Vec<_>>());
    let back = open_path(&path).unwrap();
    assert_same(&source, &*back);
    assert_eq!(back.header().dims.iter().filter(|dim| dim.unlimited).count(), 1);
    // The file is valid, and other programs see attributes.
    let file = tercet_tet::File::open(&path).unwrap();
    let info = file.dataset("float32").unwrap().info().unwrap();
    assert_eq!(info.attrs["units"], "K");
    assert!(!info.attrs.contains_key("valid_range"), "would break queries");
}

#[test]
fn netcdf_reports_what_it_cannot_hold() {
    let source = every_type();
    let directory = tempfile::tempdir().unwrap();
    let (path, plan) = run(&source, directory.path(), "a.nc");
    assert_eq!(plan.format, OutputFormat::NetCdf(Some(NetCdfVersion::Cdf5)));
    let changed: Vec<&str> = plan
        .fidelity
        .inexact()
        .filter(|item| item.subject == Subject::Variable)
        .map(|item| item.name.as_str())
        .collect();
    assert_eq!(changed, ["float16", "complex64", "complex128", "bool", "a/b"]);
    assert!(plan.fidelity.inexact().any(|item| item.name == "a/n"));
    let back = open_path(&path).unwrap();
    assert_eq!(back.header().variables[back.header().find("complex64").unwrap()].shape, [5, 4, 3, 2]);
    // Back to .tet and NetCDF: bit for bit.
    let (tet, plan) = run(&*back, directory.path(), "b.tet");
    assert!(plan.fidelity.is_exact(), "{:?}", plan.fidelity.inexact().collect::<Vec<_>>());
    let tet = open_path(&tet).unwrap();
    assert_same(&*back, &*tet);
    let (again, plan) = run(&*tet, directory.path(), "b.nc");
    assert!(plan.fidelity.is_exact());
    assert_eq!(std::fs::read(path).unwrap(), std::fs::read(again).unwrap());
}

#[test]
fn hdf5_and_netcdf4_give_variables_and_attributes_back() {
    let source = every_type()
        .with("remark", Kind::String, &[("y", 4)], None)
        .with("large", Kind::Number(DType::F32), &[("time", 5), ("row", 70), ("column", 90)], None)
        .with("y", Kind::Number(DType::F64), &[("y", 4)], None)
        .with("x", Kind::Number(DType::F64), &[("time", 5), ("x", 3)], None);
    let directory = tempfile::tempdir().unwrap();
    let (path, plan) = run(&source, directory.path(), "a.h5");
    let changed: Vec<&str> = plan.fidelity.inexact().map(|item| item.name.as_str()).collect();
    assert_eq!(changed, ["float16"]);
    let back = open_path(&path).unwrap();
    let options = ViewOptions { variables: names_without(&source, "float16"), ..ViewOptions::default() };
    assert_same(&View::new(&source, &options).unwrap(), &*back);
    assert_eq!(back.header().dims.iter().filter(|dim| dim.unlimited).count(), 1);
    let (path, plan) = run(&source, directory.path(), "a.nc4");
    let changed: Vec<&str> = plan.fidelity.inexact().map(|item| item.name.as_str()).collect();
    assert_eq!(changed, ["float16", "complex64", "complex128", "bool"]);
    let back = open_path(&path).unwrap();
    assert_eq!(back.header().format, "NetCDF-4");
    let large = back.header().find("large").unwrap();
    assert_eq!(
        read_all(&*back, large).unwrap().bytes(),
        &source.values[source.header.find("large").unwrap()][..]
    );
    assert!(back.header().variables[large].chunks.is_some());
}

#[test]
fn strings_become_labels_or_characters() {
    let source = Memory::new()
        .with("v", Kind::Number(DType::F32), &[("station", 3)], None)
        .with("station", Kind::String, &[("station", 3)], None)
        .with("remark", Kind::String, &[("station", 3)], None);
    let directory = tempfile::tempdir().unwrap();
    let (path, plan) = run(&source, directory.path(), "a.tet");
    let inexact: Vec<String> = plan.fidelity.inexact().map(|item| item.name.clone()).collect();
    assert!(inexact.contains(&"station:units".to_owned()) && inexact.contains(&"remark".to_owned()));
    let file = tercet_tet::File::open(&path).unwrap();
    assert_eq!(file.dataset("v").unwrap().labels(0).unwrap(), ["text 0", "text 1", "text 2"]);
    let back = open_path(&path).unwrap();
    let station = back.header().find("station").unwrap();
    assert_eq!(back.read_strings(station).unwrap()[2], "text 2");
    let remark = back.header().find("remark").unwrap();
    assert_eq!(back.header().variables[remark].kind, Kind::Char);
    assert_eq!(read_all(&*back, remark).unwrap().bytes(), b"text 0text 1text 2");
}

#[test]
fn values_that_do_not_fit_are_refused() {
    // 64-bit integers in a format without them.
    let source = Memory::new().with("v", Kind::Number(DType::I64), &[("x", 3)], None);
    let format = OutputFormat::NetCdf(Some(NetCdfVersion::Offset64));
    let plan = plan_conversion(&source, format, &options()).unwrap();
    assert!(plan.has_lost_variables());
}

#[test]
fn rechunking_gives_the_same_values() {
    let dims = [("time", 50), ("y", 40), ("x", 30)];
    let source = Memory::new().with("v", Kind::Number(DType::F32), &dims, Some(&[1, 40, 30]));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tet");
    let chunks = vec![("time".to_owned(), 50), ("y".to_owned(), 7), ("x".to_owned(), 8)];
    let options = ConvertOptions { chunks, ..options() };
    let plan = convert(&source, &path, OutputFormat::Tet, &options, &NoProgress).unwrap();
    assert_eq!(plan.header.variables[0].chunks, Some(vec![50, 7, 8]));
    assert_same(&source, &*open_path(&path).unwrap());
}

#[test]
fn rounding_is_measured() {
    let source = Memory::new().with("v", Kind::Number(DType::F64), &[("y", 40), ("x", 30)], None);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tet");
    let options = ConvertOptions { max_error: vec![(None, 0.01)], ..options() };
    let plan = convert(&source, &path, OutputFormat::Tet, &options, &NoProgress).unwrap();
    let item = plan.fidelity.inexact().next().unwrap();
    assert_eq!(item.fate, Fate::Changed);
}

#[test]
fn narrower_types_are_reported_and_bounds_keep_theirs() {
    let dims = [("time", 3), ("x", 2)];
    let mut source = Memory::new()
        .with("time", Kind::Number(DType::F64), &[("time", 3)], None)
        .with("time_bnds", Kind::Number(DType::F64), &dims, None)
        .with("v", Kind::Number(DType::F64), &dims, None)
        .with("w", Kind::Number(DType::F32), &dims, None);
    source.header.variables[0].attrs = vec![Attr::text("bounds", "time_bnds")];
    let view = |dtype| {
        View::new(&source, &ViewOptions { dtypes: vec![(None, dtype)], ..ViewOptions::default() }).unwrap()
    };
    let narrow = view(DType::F32);
    let types: Vec<Option<DType>> = narrow.header().variables.iter().map(Variable::dtype).collect();
    assert_eq!(types, [DType::F64, DType::F64, DType::F32, DType::F32].map(Some));
    assert_eq!(narrow.header().notes, [("v".to_owned(), "float64 stored as float32".to_owned())]);
    assert_eq!(view(DType::F64).header().notes, []);

    let rounded = ConvertOptions { max_error: vec![(None, 0.5)], ..options() };
    let plan = plan_conversion(&source, OutputFormat::Tet, &rounded).unwrap();
    let changed: Vec<&str> = plan
        .fidelity
        .items
        .iter()
        .filter(|item| item.detail.as_deref().is_some_and(|detail| detail.starts_with("rounded")))
        .map(|item| item.name.as_str())
        .collect();
    assert_eq!(changed, ["v", "w"]);
}

#[test]
fn the_error_of_narrower_types_is_measured() {
    let mut source = Memory::new().with("v", Kind::Number(DType::F64), &[("y", 2), ("x", 2)], None);
    let values = [0.1f64, 1.0, f64::NAN, -1e9 - 1.0];
    source.values[0] = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let options_of_view = ViewOptions { dtypes: vec![(None, DType::F32)], ..ViewOptions::default() };
    let view = View::new(&source, &options_of_view).unwrap();
    let directory = tempfile::tempdir().unwrap();
    for (number, verify) in [true, false].into_iter().enumerate() {
        let path = directory.path().join(format!("{number}.tet"));
        let options = ConvertOptions { verify, ..options() };
        let plan = convert(&view, &path, OutputFormat::Tet, &options, &NoProgress).unwrap();
        let item = plan.fidelity.items.iter().find(|item| item.name == "v").unwrap();
        assert_eq!((item.fate, item.max_error), (Fate::Changed, Some(1.0)));
    }
}

/// A source whose variables named here cannot be read.
struct Damaged(Memory, Vec<&'static str>, fn() -> crate::ErrorKind);

impl ArraySource for Damaged {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn header(&self) -> &Header {
        self.0.header()
    }
    fn read_box(
        &self,
        variable: usize,
        start: &[u64],
        extents: &[u64],
        out: &mut [u8],
    ) -> Result<(), crate::Error> {
        if self.1.contains(&self.0.header.variables[variable].name.as_str()) {
            return Err(crate::Error::new("memory".into(), self.2()));
        }
        self.0.read_box(variable, start, extents, out)
    }
}

#[test]
fn one_unreadable_variable_does_not_stop_the_others() {
    let memory = || {
        let dims = [("y", 4), ("x", 3)];
        let kind = Kind::Number(DType::F32);
        Memory::new().with("a", kind, &dims, None).with("b", kind, &dims, None).with("c", kind, &dims, None)
    };
    let damaged = || crate::ErrorKind::Malformed("damaged chunk".into());
    let directory = tempfile::tempdir().unwrap();
    let source = Damaged(memory(), vec!["a", "c"], damaged);
    for name in ["a.tet", "a.tgm", "a.nc", "a.nc4", "a.h5", "a.zarr", "a.npz"] {
        let (path, plan) = run(&source, directory.path(), name);
        let fates: Vec<(&str, Fate, Option<&str>)> = plan
            .fidelity
            .items
            .iter()
            .filter(|item| item.subject == Subject::Variable)
            .map(|item| (&*item.name, item.fate, item.detail.as_deref()))
            .collect();
        let lost = Some("unreadable: damaged chunk");
        assert!(fates.contains(&("a", Fate::NotCarried, lost)), "{name}: {fates:?}");
        assert!(fates.contains(&("c", Fate::NotCarried, lost)), "{name}: {fates:?}");
        assert!(plan.has_lost_variables());
        let written = open_path(&path).unwrap();
        assert_eq!(
            written.header().variables.iter().map(|variable| &*variable.name).collect::<Vec<_>>(),
            ["b"]
        );
    }
    // Nothing but a coordinate is left; it is not wanted; it is not the fault of the variable.
    let path = directory.path().join("b.tet");
    let all = memory().with("y", Kind::Number(DType::F32), &[("y", 4)], None);
    let all = Damaged(all, vec!["a", "b", "c"], damaged);
    let system = || crate::ErrorKind::Write(std::io::Error::other("no device"));
    let unreachable = Damaged(memory(), vec!["b"], system);
    let strict = ConvertOptions { skip_unreadable: false, ..options() };
    for (source, options) in [(&all, options()), (&source, strict), (&unreachable, options())] {
        let error = convert(source, &path, OutputFormat::Tet, &options, &NoProgress).unwrap_err();
        assert!(!matches!(error.kind(), crate::ErrorKind::Refused(_)), "{error}");
        assert!(!path.exists());
    }
}

#[test]
fn variables_along_an_axis_may_precede_its_fields() {
    let directory = tempfile::tempdir().unwrap();
    let mut source = Memory::new()
        .with("valid_time", Kind::Number(DType::F64), &[("time", 3)], None)
        .with("time", Kind::Number(DType::F64), &[("time", 3)], None)
        .with("mask", Kind::Number(DType::Bool), &[("y", 4)], None)
        .with("t", Kind::Number(DType::F32), &[("time", 3), ("y", 4), ("x", 2)], None);
    for variable in &mut source.header.variables {
        variable.attrs.clear();
    }
    source.values[1] = [0.0f64, 6.0, 12.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let (path, _) = run(&source, directory.path(), "a.tgm");
    let read = open_path(&path).unwrap();
    let dims = |name: &str| {
        let header = read.header();
        header.variables[header.find(name).unwrap()].dims.clone()
    };
    assert_eq!(dims("t"), ["time", "y", "x"]);
    assert_eq!(dims("valid_time"), ["time"]);
}

#[test]
fn options_are_honoured_or_refused_for_every_format() {
    let mut source = Memory::new().with("v", Kind::Number(DType::F32), &[("time", 3), ("x", 4)], None);
    source.header.variables[0].attrs.clear();
    let formats = [
        (OutputFormat::Tet, "chunk zstd error"),
        (OutputFormat::Tgm, "zstd error split"),
        (OutputFormat::Zarr, "chunk zstd"),
        (OutputFormat::NetCdf4, "chunk"),
        (OutputFormat::Hdf5, "chunk"),
        (OutputFormat::NetCdf(None), ""),
        (OutputFormat::Npy, ""),
        (OutputFormat::Npz, ""),
    ];
    let zstd = Compression::Zstd { level: 3 };
    let cases = [
        ("chunk", ConvertOptions { chunks: vec![("x".to_owned(), 2)], ..options() }),
        ("zstd", ConvertOptions { compression: zstd, ..options() }),
        ("error", ConvertOptions { max_error: vec![(None, 0.5)], ..options() }),
        ("split", ConvertOptions { split: Split::Axes(vec!["time".to_owned()]), ..options() }),
        ("bits", ConvertOptions { bits: Some(8), ..options() }),
        ("packing", ConvertOptions { grib_packing: GribPacking::Ccsds, ..options() }),
    ];
    for (format, accepted) in formats {
        for (name, options) in &cases {
            let planned = plan_conversion(&source, format, options);
            let is_accepted = accepted.split(' ').any(|accepted| accepted == *name);
            match planned {
                Ok(_) => assert!(is_accepted, "{format:?} ignores {name}"),
                Err(error) => assert!(!is_accepted, "{format:?} {name}: {error}"),
            }
        }
    }
}

#[test]
fn fill_values_alone_are_unpacked() {
    let dims = [("time", 3), ("x", 2)];
    let mut source = Memory::new()
        .with("i", Kind::Number(DType::I16), &dims, None)
        .with("l", Kind::Number(DType::I64), &dims, None)
        .with("f", Kind::Number(DType::F32), &dims, None)
        .with("flags", Kind::Number(DType::U8), &dims, None)
        .with("x", Kind::Number(DType::I32), &[("x", 2)], None);
    let fill = |dtype, texts: &[&str]| {
        Attr::new("_FillValue", AttrData::Numbers(Numbers::parse(dtype, texts, false).unwrap()))
    };
    let types = [DType::I16, DType::I64, DType::F32, DType::U8, DType::I32];
    for (variable, dtype) in source.header.variables.iter_mut().zip(types) {
        variable.attrs = vec![Attr::text("units", "K"), fill(dtype, &["7"])];
    }
    let range = Numbers::parse(DType::U8, &["0", "3"], true).unwrap();
    source.header.variables[3].attrs = vec![Attr::new("valid_range", AttrData::Numbers(range))];
    source.values[0] = [1i16, 7, -3, 4, 5, 6].iter().flat_map(|value| value.to_le_bytes()).collect();
    source.values[1] = [1i64, 7, -3, 4, 5, 6].iter().flat_map(|value| value.to_le_bytes()).collect();
    source.values[2] =
        [1f32, 7.0, -3.0, 4.0, 5.0, 6.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let unpacked = ViewOptions { unpack: true, ..ViewOptions::default() };
    let view = View::new(&source, &unpacked).unwrap();
    let found: Vec<Option<DType>> = view.header().variables.iter().map(Variable::dtype).collect();
    // As xarray decodes them; flags and coordinates keep their type.
    assert_eq!(found, [DType::F32, DType::F64, DType::F32, DType::U8, DType::I32].map(Some));
    for variable in [0, 1, 2] {
        let tensor = read_all(&view, variable).unwrap();
        let elements = tensor.bytes().chunks_exact(tensor.dtype().size().unwrap());
        let values: Vec<f64> =
            elements.map(|element| number_at(tensor.dtype(), element).unwrap().as_f64()).collect();
        assert!(values[1].is_nan(), "{variable}: {values:?}");
        assert_eq!((values[0], values[2..].to_vec()), (1.0, vec![-3.0, 4.0, 5.0, 6.0]), "{variable}");
    }
    // An integer that float64 does not have.
    source.values[1][..8].copy_from_slice(&((1i64 << 53) + 1).to_le_bytes());
    let view = View::new(&source, &unpacked).unwrap();
    let error = read_all(&view, 1).unwrap_err().to_string();
    assert!(error.contains("`l` at [0, 0] is beyond 2^53"), "{error}");
}

/// Chunks that are compressed with Zstandard on both sides are stored as they are, if nothing asks for other bytes.
#[test]
fn compressed_chunks_are_carried() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let dims = [("time", 3), ("y", 256), ("x", 600)];
    let memory = Memory::new().with("t", Kind::Number(DType::F32), &dims, Some(&[1, 256, 256]));
    let with = |compression, change: &dyn Fn(&mut ConvertOptions)| {
        let mut options = ConvertOptions { compression, ..options() };
        change(&mut options);
        options
    };
    let run = |source: &dyn ArraySource, to: &Path, format, options: &ConvertOptions| {
        convert(source, to, format, options, &NoProgress).unwrap();
        open_path(to).unwrap()
    };
    let level = |level| Compression::Zstd { level };
    let tet = run(&memory, &path("a.tet"), OutputFormat::Tet, &with(level(19), &|_| {}));
    let frames = |source: &dyn ArraySource, coords: [u64; 3]| source.stored_chunk(0, &coords).unwrap();
    let original = frames(&*tet, [1, 0, 1]).unwrap();

    let zarr = run(&*tet, &path("a.zarr"), OutputFormat::Zarr, &options());
    assert_eq!(std::fs::read(path("a.zarr/t/c/1/0/1")).unwrap(), original);
    assert_eq!(frames(&*zarr, [1, 0, 1]), Some(original.clone()));
    assert_eq!(frames(&*zarr, [1, 0, 2]), None, "a chunk at the edge is stored whole");
    let back = run(&*zarr, &path("b.tet"), OutputFormat::Tet, &options());
    assert_eq!(frames(&*back, [1, 0, 1]), Some(original.clone()));
    // A level that is not recorded, or another one, is not the one that is asked for.
    for source in [&*tet, &*zarr] {
        let other = run(
            source,
            &path("c.tet"),
            OutputFormat::Tet,
            &with(level(1), &|options| options.overwrite = true),
        );
        assert_ne!(frames(&*other, [1, 0, 1]), Some(original.clone()));
        assert!(other.zstd(0).is_some());
        let raw = with(Compression::None, &|options| options.overwrite = true);
        assert!(run(source, &path("c.tet"), OutputFormat::Tet, &raw).zstd(0).is_none());
    }
    let same = run(&*zarr, &path("d.tet"), OutputFormat::Tet, &with(level(3), &|_| {}));
    assert_eq!(frames(&*same, [1, 0, 1]), Some(original.clone()), "the store records level 3");
    let rounded = with(Compression::Auto, &|options| options.max_error = vec![(None, 0.5)]);
    let rounded = run(&*zarr, &path("e.tet"), OutputFormat::Tet, &rounded);
    assert_ne!(frames(&*rounded, [1, 0, 1]), Some(original.clone()));
    let other = with(Compression::Auto, &|options| options.chunks = vec![("x".to_owned(), 300)]);
    let other = run(&*zarr, &path("f.tet"), OutputFormat::Tet, &other);
    assert_eq!(other.header().variables[0].chunks, Some(vec![1, 256, 300]));

    // A selection of whole chunks keeps them, one that ends inside of a chunk keeps the others.
    let select = |positions: &str, dim: &str| ViewOptions {
        positions: vec![(dim.to_owned(), positions.to_owned())],
        ..ViewOptions::default()
    };
    let view = View::new(&*zarr, &select("1..3", "time")).unwrap();
    assert_eq!(frames(&view, [0, 0, 1]), Some(original.clone()));
    let part = run(&view, &path("g.tet"), OutputFormat::Tet, &options());
    assert_eq!(frames(&*part, [0, 0, 1]), Some(original.clone()));
    let view = View::new(&*tet, &select("256..600", "x")).unwrap();
    assert_eq!(frames(&view, [1, 0, 0]), Some(original.clone()));
    let view = View::new(&*tet, &select("256..511", "x")).unwrap();
    assert_eq!(frames(&view, [1, 0, 0]), None);
    assert_eq!(view.zstd(0), None, "chunks of another extent");
    let view = View::new(&*tet, &select("1..600", "x")).unwrap();
    assert_eq!(view.zstd(0), None);

    // A damaged frame is an error of the source, not of the output.
    let mut damaged = original.clone();
    damaged.truncate(original.len() / 2);
    std::fs::write(path("a.zarr/t/c/1/0/1"), damaged).unwrap();
    let damaged = open_path(&path("a.zarr")).unwrap();
    let error = convert(&*damaged, &path("h.tet"), OutputFormat::Tet, &options(), &NoProgress).unwrap_err();
    assert!(error.to_string().contains("a.zarr"), "{error}");
    assert!(!path("h.tet").exists());
}

/// The payloads of messages are chunks of a cube, and chunks are payloads; values that need a mask are encoded again.
#[test]
fn payloads_of_messages_are_carried() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let dims = [("time", 4), ("y", 256), ("x", 256)];
    let mut memory = Memory::new().with("t", Kind::Number(DType::F32), &dims, Some(&[1, 256, 256]));
    // A NaN in the second field.
    let at = 256 * 256 * 4;
    memory.values[0][at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    let zstd = ConvertOptions { compression: Compression::Zstd { level: 19 }, ..options() };
    convert(&memory, &path("a.tet"), OutputFormat::Tet, &zstd, &NoProgress).unwrap();
    let tet = open_path(&path("a.tet")).unwrap();
    convert(&*tet, &path("a.tgm"), OutputFormat::Tgm, &options(), &NoProgress).unwrap();
    let file = tercet_tgm::File::open(path("a.tgm")).unwrap();
    for number in 0..4 {
        let message = file.message(number).unwrap();
        let object = message.object(0).unwrap();
        let frames = tet.stored_chunk(0, &[number, 0, 0]).unwrap().unwrap();
        assert_eq!(object.payload().unwrap()[..] == frames[..], number != 1, "{number}");
        assert_eq!(object.descriptor().filter == "none", number != 1);
    }
    let tgm = open_path(&path("a.tgm")).unwrap();
    convert(&*tgm, &path("b.tet"), OutputFormat::Tet, &options(), &NoProgress).unwrap();
    let back = open_path(&path("b.tet")).unwrap();
    for number in [0, 2, 3] {
        let coords = [number, 0, 0];
        assert_eq!(back.stored_chunk(0, &coords).unwrap(), tet.stored_chunk(0, &coords).unwrap());
    }
    assert_eq!(read_all(&*back, 0).unwrap().bytes(), memory.values[0]);
}

/// Chunks of another shape are read in blocks, and compared in blocks.
#[test]
fn every_sink_takes_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let dims = [("time", 30), ("y", 40), ("x", 50)];
    let memory = Memory::new().with("t", Kind::Number(DType::I16), &dims, Some(&[7, 40, 11]));
    for format in [
        OutputFormat::Tet,
        OutputFormat::Zarr,
        OutputFormat::Tgm,
        OutputFormat::NetCdf4,
        OutputFormat::NetCdf(None),
    ] {
        let path = directory.path().join(format.name().replace([' ', '.'], "_"));
        let mut options = options();
        if format.has_chunk_shapes() {
            options.chunks = vec![("time".to_owned(), 30), ("y".to_owned(), 3), ("x".to_owned(), 8)];
        }
        convert(&memory, &path, format, &options, &NoProgress).unwrap();
        let found = open_path(&path).unwrap();
        let position = found.header().find("t").unwrap();
        assert_eq!(read_all(&*found, position).unwrap().bytes(), memory.values[0], "{}", format.name());
    }
}
