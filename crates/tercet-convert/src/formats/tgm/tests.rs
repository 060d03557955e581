#![expect(
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "tests make their own files, and their values are small"
)]

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tercet_core::progress::NoProgress;
use tercet_tgm::{
    DType, DataObjectDescriptor, EncodeOptions, Entry, File, GlobalMetadata, Value, Writer, WriterOptions,
};

use crate::arrays::{
    ArraySource, Attr, AttrData, ConvertOptions, Dim, Fate, Header, Kind, Numbers, OutputFormat, Split,
    Variable, convert, open_path, read_all,
};
use crate::content_hash::hash_arrays;
use crate::diff::{DiffOptions, diff_arrays, diff_messages};
use crate::{Error, ErrorKind};

fn values(seed: u32) -> Vec<u8> {
    let value =
        |at: u32| if at == 3 && seed.is_multiple_of(5) { f32::NAN } else { (seed * 100 + at) as f32 / 8.0 };
    (0..12).flat_map(|at| value(at).to_le_bytes()).collect()
}

fn entry(name: &str, step: i64, level: i64, number: u32) -> Entry {
    let mars = Value::Map(vec![
        ("class".into(), "od".into()),
        ("param".into(), name.into()),
        ("step".into(), step.into()),
        ("levelist".into(), level.into()),
    ]);
    [
        ("mars".to_owned(), mars),
        ("name".to_owned(), name.into()),
        ("units".to_owned(), if name == "t" { "K" } else { "m s-1" }.into()),
        ("uuid".to_owned(), format!("field-{number}").into()),
        ("scale".to_owned(), 0.1.into()),
        ("tags".to_owned(), Value::Array(vec!["a".into(), 1.into(), Value::Null])),
    ]
    .into()
}

/// Two variables on three levels at two steps; `skip` leaves fields out, `together` puts both variables in one message.
fn forecast(path: &Path, skip: &[u32], together: bool) {
    let mut writer = Writer::create(path, WriterOptions::new()).unwrap();
    let options = EncodeOptions::new().with_allowed(true, true);
    let descriptor = DataObjectDescriptor::new(DType::F32, [3, 4]);
    let mut number = 0;
    for step in [0, 6] {
        for level in [1000, 850, 500] {
            let mut metadata = GlobalMetadata::default();
            metadata.extra.insert("centre".to_owned(), "ecmf".into());
            metadata.extra.insert("run".to_owned(), step.into());
            let mut payloads = Vec::new();
            for name in ["t", "u"] {
                number += 1;
                if skip.contains(&number) {
                    continue;
                }
                metadata.base.push(entry(name, step, level, number));
                payloads.push(values(number));
                if !together {
                    writer.message(&metadata, &[(&descriptor, &payloads[0])], &options).unwrap();
                    metadata.base.clear();
                    payloads.clear();
                }
            }
            if together {
                let objects: Vec<_> =
                    payloads.iter().map(|payload| (&descriptor, payload.as_slice())).collect();
                writer.message(&metadata, &objects, &options).unwrap();
            }
        }
    }
    writer.finish().unwrap();
}

fn convert_file(from: &Path, to: &Path, options: &ConvertOptions) -> crate::arrays::Plan {
    let source = open_path(from).unwrap();
    convert(&*source, to, OutputFormat::from_path(to).unwrap(), options, &NoProgress).unwrap()
}

#[test]
fn messages_come_back_from_a_cube() {
    for (skip, together) in [(&[][..], false), (&[], true), (&[4, 11], false), (&[4], true)] {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        forecast(&path("a.tgm"), skip, together);
        let plan = convert_file(&path("a.tgm"), &path("a.tet"), &ConvertOptions::new());
        let t = plan.header.variables.iter().find(|variable| variable.name == "t").unwrap();
        assert_eq!(
            (&t.dims[..2], &t.shape[..]),
            (&["step".to_owned(), "levelist".to_owned()][..], &[2, 3, 3, 4][..])
        );
        let changed = plan.fidelity.items.iter().any(|item| item.fate == Fate::Changed && item.name == "u");
        assert_eq!(changed, !skip.is_empty(), "missing fields are reported");
        for between in [vec!["a.tet"], vec!["a.tet", "a.nc"], vec!["a.tet", "a.zarr"]] {
            let mut last = path("a.tgm");
            for name in &between {
                let options = ConvertOptions { overwrite: true, ..ConvertOptions::new() };
                convert_file(&last, &path(name), &options);
                last = path(name);
            }
            let back = path(&format!("back-{}.tgm", between.len() + between[between.len() - 1].len()));
            convert_file(&last, &back, &ConvertOptions { overwrite: true, ..ConvertOptions::new() });
            let (a, b) = (File::open(path("a.tgm")).unwrap(), File::open(&back).unwrap());
            let diff = diff_messages(&a, &b, &DiffOptions::new(), &NoProgress).unwrap();
            assert!(diff.is_empty(), "{skip:?} {together} {between:?}: {:#?}", diff.differences);
        }
    }
}

#[test]
fn a_cube_has_the_values_of_its_messages() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tgm");
    forecast(&path, &[3], false);
    let source = open_path(&path).unwrap();
    let header = source.header();
    let t = header.find("t").unwrap();
    let all = read_all(&*source, t).unwrap();
    let expected: Vec<u8> = [1, 0, 5, 7, 9, 11]
        .iter()
        .flat_map(|number| if *number == 0 { f32::NAN.to_le_bytes().repeat(12) } else { values(*number) })
        .collect();
    assert_eq!(all.bytes(), expected);
    assert!(
        matches!(header.variables[t].attr("_FillValue"), Some(AttrData::Numbers(numbers)) if numbers.dtype == DType::F32)
    );
    // A part of a field.
    let mut part = [0; 8];
    source.read_box(t, &[1, 2, 1, 2], &[1, 1, 1, 2], &mut part).unwrap();
    assert_eq!(part, expected[(5 * 12 + 6) * 4..][..8]);
    let level = header.find("levelist").unwrap();
    let levels = read_all(&*source, level).unwrap().to_vec::<i64>().unwrap();
    assert_eq!(levels, [1000, 850, 500]);
}

/// A source in memory. `changes` returns other values when they are read again.
struct Memory {
    header: Header,
    values: Vec<Vec<u8>>,
    reads: Mutex<usize>,
    changes: bool,
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
        let mut reads = self.reads.lock().unwrap();
        *reads += 1;
        crate::formats::strided::copy_box(
            &self.values[variable],
            &item.shape,
            item.item_size(),
            (start, extents),
            out,
        )
        .unwrap();
        if self.changes && *reads > self.values.len() {
            out[0] ^= 1;
        }
        Ok(())
    }
    fn read_strings(&self, _: usize) -> Result<Vec<String>, Error> {
        Ok(vec!["x".to_owned(), "yy".to_owned()])
    }
}

fn foreign(changes: bool) -> Memory {
    let variable = |name: &str, kind, dims: &[&str], shape: &[u64], attrs: Vec<Attr>| Variable {
        name: name.to_owned(),
        kind,
        dims: dims.iter().map(|dim| (*dim).to_owned()).collect(),
        shape: shape.to_vec(),
        chunks: None,
        attrs,
    };
    let number = |dtype: DType, text: &str| AttrData::Numbers(Numbers::parse(dtype, &[text], false).unwrap());
    let floats: Vec<u8> = (0..24)
        .flat_map(|at: u8| if at.is_multiple_of(7) { -9999.0f32 } else { f32::from(at) }.to_le_bytes())
        .collect();
    let variables = vec![
        variable(
            "time",
            Kind::Number(DType::I32),
            &["time"],
            &[2],
            vec![Attr::text("units", "hours since 2024-01-01")],
        ),
        variable("lat", Kind::Number(DType::F32), &["lat"], &[3], Vec::new()),
        variable(
            "t2m",
            Kind::Number(DType::F32),
            &["time", "lat", "lon"],
            &[2, 3, 4],
            vec![
                Attr::text("units", "K"),
                Attr::text("name", "hidden"),
                Attr::new("_FillValue", number(DType::F32, "-9999")),
                Attr::new("valid_min", number(DType::I16, "3")),
            ],
        ),
        variable("id", Kind::String, &["station"], &[2], Vec::new()),
        variable("flag", Kind::Number(DType::I8), &[], &[], Vec::new()),
        variable("code", Kind::Char, &["lat", "width"], &[3, 2], Vec::new()),
    ];
    let dims = [("time", 2), ("lat", 3), ("lon", 4), ("station", 2), ("width", 2)];
    let dims = dims.map(|(name, len)| Dim { name: name.to_owned(), len, unlimited: false }).to_vec();
    let attrs = vec![Attr::text("title", "made up"), Attr::new("version", number(DType::U8, "7"))];
    let values = vec![
        [6i32, 12].iter().flat_map(|time| time.to_le_bytes()).collect(),
        [50f32, 60.0, 70.0].iter().flat_map(|lat| lat.to_le_bytes()).collect(),
        floats,
        Vec::new(),
        vec![0x85],
        b"ab\0\0c\0".to_vec(),
    ];
    Memory {
        header: Header { attrs, dims, variables, ..Header::default() },
        values,
        reads: Mutex::new(0),
        changes,
    }
}

#[test]
fn variables_of_other_formats_come_back_from_messages() {
    let splits =
        [Split::Auto, Split::File, Split::Variable, Split::Axes(vec!["time".to_owned(), "lat".to_owned()])];
    for (split, messages) in splits.into_iter().zip([3, 1, 6, 10]) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.tgm");
        let source = foreign(false);
        let options = ConvertOptions { split: split.clone(), ..ConvertOptions::new() };
        let plan = convert(&source, &path, OutputFormat::Tgm, &options, &NoProgress).unwrap();
        assert!(plan.fidelity.is_exact(), "{:?}", plan.fidelity);
        let file = File::open(&path).unwrap();
        assert_eq!(file.message_count().unwrap(), messages, "{split:?}");
        let back = open_path(&path).unwrap();
        let diff = diff_arrays(&source, &*back, &DiffOptions::new(), &NoProgress).unwrap();
        assert!(diff.is_empty(), "{split:?}: {:#?}", diff.differences);
        assert_eq!(hash_arrays(&source, &NoProgress).unwrap(), hash_arrays(&*back, &NoProgress).unwrap());
    }
}

/// Fields of GRIB files have the keys that archives name them by.
#[test]
fn fields_have_mars_keys() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tgm");
    let mut source = foreign(false);
    // Without characters along a dimension that is divided.
    assert_eq!(source.header.variables.pop().map(|variable| variable.name), Some("code".to_owned()));
    assert_eq!(source.header.dims.pop().map(|dim| dim.name), Some("width".to_owned()));
    let variables = &mut source.header.variables;
    let level = "isobaricInhPa";
    variables[0].attrs = vec![Attr::text("units", "hours since 2024-02-28T18:30:00")];
    variables[1].name = level.to_owned();
    for dim in variables.iter_mut().flat_map(|variable| &mut variable.dims).filter(|dim| *dim == "lat") {
        level.clone_into(dim);
    }
    variables[2].attrs = [
        ("GRIB_shortName", "t"),
        ("GRIB_typeOfLevel", level),
        ("GRIB_dataType", "fc"),
        ("coordinates", "step_1 valid_time"),
    ]
    .map(|(name, text)| Attr::text(name, text))
    .to_vec();
    variables[4].name = "step_1".to_owned();
    variables[4].attrs = vec![Attr::text("units", "hours")];
    source.values[4] = vec![36];
    source.header.dims[1].name = level.to_owned();
    convert(&source, &path, OutputFormat::Tgm, &ConvertOptions::new(), &NoProgress).unwrap();
    // Read as a variable of another format, which has no such attributes.
    let read = open_path(&path).unwrap();
    let diff = diff_arrays(&source, &*read, &DiffOptions::new(), &NoProgress).unwrap();
    assert!(diff.is_empty(), "{:#?}", diff.differences);
    let tet = directory.path().join("a.tet");
    let back = directory.path().join("b.tgm");
    convert_file(&path, &tet, &ConvertOptions::new());
    convert_file(&tet, &back, &ConvertOptions::new());
    for path in [path, back] {
        let file = File::open(&path).unwrap();
        let mut found = Vec::new();
        for number in 0..file.message_count().unwrap() {
            let message = file.message(number).unwrap();
            for entry in &message.metadata().base {
                found.extend(entry.get("mars").map(|keys| keys.to_json().to_string()));
            }
        }
        let mut expected = Vec::new();
        for (date, time) in [(20_240_229, 30), (20_240_229, 630)] {
            for level in [50, 60, 70] {
                expected.push(format!(
                    r#"{{"date":{date},"step":36,"time":{time},"type":"fc","param":"t","levtype":"pl","levelist":{level}}}"#
                ));
            }
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn missing_values_are_masks() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tgm");
    convert(&foreign(false), &path, OutputFormat::Tgm, &ConvertOptions::new(), &NoProgress).unwrap();
    let file = File::open(&path).unwrap();
    let messages: Vec<_> =
        (0..file.message_count().unwrap()).map(|number| file.message(number).unwrap()).collect();
    let field =
        messages.iter().find(|message| message.metadata().get("name") == Some(&"t2m".into())).unwrap();
    let (_, masks) = field.object(0).unwrap().decode_with_masks().unwrap();
    assert_eq!(masks.len(), 1);
    assert_eq!(masks[0].1.iter().map(|byte| byte.count_ones()).sum::<u32>(), 2);
}

#[test]
fn an_output_that_differs_never_appears() {
    for name in ["a.tgm", "a.tet", "a.nc", "a.zarr", "a.npz"] {
        let directory = tempfile::tempdir().unwrap();
        let path: PathBuf = directory.path().join(name);
        let mut source = foreign(true);
        source.header.variables.truncate(3);
        source.values.truncate(3);
        let format = OutputFormat::from_path(&path).unwrap();
        let error = convert(&source, &path, format, &ConvertOptions::new(), &NoProgress).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Differs(_)), "{name}: {error}");
        assert_eq!(error.location(), path.to_string_lossy());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "{name}");
    }
}

#[test]
fn damaged_messages_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tgm");
    forecast(&path, &[], false);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = usize::try_from(File::open(&path).unwrap().message(2).unwrap().span().start()).unwrap();
    // In the metadata of the message.
    bytes[at + 60] ^= 0x40;
    let damaged = directory.path().join("b.tgm");
    std::fs::write(&damaged, bytes).unwrap();
    let source = open_path(&damaged).unwrap();
    assert!(!source.header().unreadable.is_empty());
    let plan = convert(
        &*source,
        &directory.path().join("b.tet"),
        OutputFormat::Tet,
        &ConvertOptions::new(),
        &NoProgress,
    );
    assert!(plan.unwrap().has_lost_variables());
}
