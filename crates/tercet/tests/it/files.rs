//! Files of every format through the functions of the façade.

use std::fs;
use std::path::{Path, PathBuf};

use tercet::core::TensorView;
use tercet::prelude::*;
use tercet::{OtherFormat, SalvageOptions, tatami, tet, tgm};

use crate::any_file::describe;

/// One file of each format in a directory.
pub(crate) fn files(directory: &Path) -> [(Format, PathBuf); 3] {
    let path = |name: &str| directory.join(name);
    let mut layout = tet::Layout::new();
    let t2m = layout.dataset("t2m", DType::F32, [2, 3], [1, 3]).unwrap();
    let mut writer = tet::Writer::create(path("a.tet"), layout, tet::WriterOptions::new()).unwrap();
    writer.chunk(t2m, &[0, 0], TensorView::from_slice(&[1, 3], &[1.0f32, 2.0, 3.0]).unwrap()).unwrap();
    writer.chunk(t2m, &[1, 0], TensorView::from_slice(&[1, 3], &[4.0f32, 5.0, 6.0]).unwrap()).unwrap();
    writer.finish().unwrap();

    let descriptor = tgm::DataObjectDescriptor::new(tercet::core::DType::U8, [3]);
    let (metadata, options) = (tgm::GlobalMetadata::default(), tgm::EncodeOptions::new());
    let message = tgm::encode_message(&metadata, &[(&descriptor, &[7, 8, 9])], &options).unwrap();
    fs::write(path("a.tgm"), [&message[..], &message[..]].concat()).unwrap();

    let schema = tatami::Schema::new(vec![tatami::Field::new("id", tatami::Type::Int32)]).unwrap();
    let mut writer = tatami::Writer::create(path("a.tatami"), schema, tatami::WriterOptions::new()).unwrap();
    writer.append(&[tatami::Column::new(tatami::Values::Int32(vec![7, 8, 9]))]).unwrap();
    writer.finish().unwrap();
    [(Format::Tet, path("a.tet")), (Format::Tgm, path("a.tgm")), (Format::Tatami, path("a.tatami"))]
}

#[test]
fn every_format_has_a_summary_an_outline_and_a_report() {
    let directory = tempfile::tempdir().unwrap();
    for (format, path) in files(directory.path()) {
        let container = tercet::open(&path).unwrap();
        assert_eq!(container.format(), format);
        let text = serde_json::to_string(&container.summary().unwrap()).unwrap();
        assert!(text.starts_with('{'), "{text}");
        assert_eq!(serde_json::to_string(&tercet::summary(&path).unwrap()).unwrap(), text);
        let outline = tercet::outline(&path, OutlineOptions::new()).unwrap();
        assert!(!outline.parts.is_empty());
        let report = tercet::verify(&path, VerifyOptions::new(), &NoProgress).unwrap();
        assert!(report.is_ok() && report.failures().next().is_none());
        let unverified = tercet::open_with(&path, ReadOptions::new().with_verify(false)).unwrap();
        assert_eq!(unverified.format(), format);
    }
}

#[test]
fn salvage_copies_the_intact_parts() {
    let directory = tempfile::tempdir().unwrap();
    for (format, path) in files(directory.path()) {
        let output = directory.path().join(format!("salvaged{format}"));
        let report = tercet::salvage(&path, &output, SalvageOptions::new(), &NoProgress).unwrap();
        assert!(report.is_complete(), "{report:?}");
        assert!(tercet::verify(&output, VerifyOptions::new(), &NoProgress).unwrap().is_ok());
        let again = tercet::salvage(&path, &output, SalvageOptions::new(), &NoProgress).unwrap_err();
        assert_eq!(again.hint(), Some(tercet::core::Hint::Overwrite), "{again}");
        let overwrite = SalvageOptions::new().with_overwrite(true);
        tercet::salvage(&path, &output, overwrite, &NoProgress).unwrap();
        let read = ReadOptions::new().with_limits(tercet::core::Limits::uniform(16));
        let limited = tercet::salvage(&path, &output, overwrite.with_read(read), &NoProgress).unwrap_err();
        assert_eq!(limited.class(), Class::Limit, "{limited}");
        let same = tercet::salvage(&path, &path, overwrite, &NoProgress).unwrap_err();
        assert_eq!(same.class(), Class::Request, "{same}");
    }
    // The second message is truncated.
    let path = directory.path().join("a.tgm");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
    let output = directory.path().join("truncated.tgm");
    let report = tercet::salvage(&path, &output, SalvageOptions::new(), &NoProgress).unwrap();
    assert!(!report.is_complete() || tgm::File::open(&output).unwrap().message_count().unwrap() == 2);
    assert!(tercet::verify(&output, VerifyOptions::new(), &NoProgress).unwrap().is_ok());
}

#[test]
fn other_formats_and_missing_files_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let missing = tercet::open(directory.path().join("missing.tet")).unwrap_err();
    assert!(missing.is_not_found());
    fs::write(directory.path().join(".zgroup"), "{}").unwrap();
    let zarr = tercet::open(directory.path()).unwrap_err();
    assert!(zarr.to_string().contains("is a Zarr directory"), "{zarr}");
    let path = directory.path().join("a.nc");
    fs::write(&path, b"CDF\x02\0\0\0\0").unwrap();
    let error = tercet::open(&path).unwrap_err();
    assert_eq!(error.location(), path.to_str().unwrap());
    let tercet::ErrorKind::UnknownFormat(unknown) = error.kind() else { panic!("not a container") };
    assert_eq!(unknown.format, Some(OtherFormat::NetCdf3));
    // The errors of formats keep their location.
    let path = directory.path().join("cut.tet");
    fs::write(&path, b"TETR").unwrap();
    let error = tercet::open(&path).unwrap_err();
    assert!(matches!(error.kind(), tercet::ErrorKind::Tet(_)), "{error}");
    assert_eq!(error.location(), path.to_str().unwrap());
    assert!(error.to_string().starts_with(path.to_str().unwrap()), "{error}");
    let url = tercet::open("https://127.0.0.1:1/a.tet").unwrap_err();
    assert!(matches!(url.class(), Class::Unsupported | Class::Io), "{url}");
}

#[test]
fn the_example_describes_every_file() {
    let directory = tempfile::tempdir().unwrap();
    for (format, path) in files(directory.path()) {
        let mut out = Vec::new();
        assert!(describe(path.to_str().unwrap(), &mut out).unwrap());
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(&format!("{format} file")) && text.ends_with("valid\n"), "{text}");
    }
    assert!(describe("missing.tet", &mut Vec::new()).is_err());
}
