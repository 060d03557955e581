//! Containers of any format: open, describe, verify.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use tercet_core::source::Memory;
use tercet_core::{
    ByteSource, Finding, Location, Outline, OutlineOptions, Progress, ReadOptions, VerifyOptions,
};
use tercet_tatami as tatami;
use tercet_tet as tet;
use tercet_tgm as tgm;

use crate::error::Error;
use crate::format::{Format, detect_source};
use crate::summary::Summary;

/// Opens a container of any format: a path or a URL.
///
/// The format is detected by the first bytes. The file is read lazily, by positional reads; checksums are verified.
#[cfg(any(unix, windows))]
pub fn open(location: impl Into<Location>) -> Result<Container, Error> {
    Container::open(location)
}

/// Opens a container of any format with options.
#[cfg(any(unix, windows))]
pub fn open_with(location: impl Into<Location>, options: ReadOptions) -> Result<Container, Error> {
    Container::open_with(location, options)
}

/// The summary of a file of any format: its datasets, messages or columns. Serializes to JSON.
#[cfg(any(unix, windows))]
pub fn summary(location: impl Into<Location>) -> Result<Summary, Error> {
    Container::open(location)?.summary()
}

/// The outline of a file of any format: a tree of its regions with their byte ranges.
#[cfg(any(unix, windows))]
pub fn outline(location: impl Into<Location>, options: OutlineOptions) -> Result<Outline, Error> {
    Container::open(location)?.outline(options)
}

/// An open container of any format. Clones share what was read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Container {
    /// A `.tet` file.
    Tet(tet::File),
    /// A `.tgm` file.
    Tgm(tgm::File),
    /// A `.tatami` file.
    Tatami(tatami::File),
}

impl Container {
    /// Opens a path or a URL with default options.
    #[cfg(any(unix, windows))]
    pub fn open(location: impl Into<Location>) -> Result<Self, Error> {
        Self::open_with(location, ReadOptions::new())
    }

    /// Opens a path or a URL.
    #[cfg(any(unix, windows))]
    pub fn open_with(location: impl Into<Location>, options: ReadOptions) -> Result<Self, Error> {
        let location = location.into();
        let source = crate::source::open_location(&location, options.access)?;
        match detect_source(&source)? {
            // Its partitions name the location.
            Format::Tatami => Ok(Self::Tatami(tatami::File::open_with(location, options.into())?)),
            _ => Self::from_source(source, options),
        }
    }

    /// Opens a file in memory; `name` is used in messages.
    pub fn from_bytes(name: &str, bytes: impl Into<Bytes>) -> Result<Self, Error> {
        Self::from_source(Arc::new(Memory::new(name, bytes)), ReadOptions::new())
    }

    /// Opens a source of bytes.
    pub fn from_source(source: Arc<dyn ByteSource>, options: ReadOptions) -> Result<Self, Error> {
        match detect_source(&source)? {
            Format::Tet => Ok(Self::Tet(tet::File::from_source(source, options)?)),
            Format::Tgm => Ok(Self::Tgm(tgm::File::from_source(source, options.into())?)),
            Format::Tatami => Ok(Self::Tatami(tatami::File::from_source(source, options.into())?)),
        }
    }

    /// The format.
    pub fn format(&self) -> Format {
        match self {
            Self::Tet(_) => Format::Tet,
            Self::Tgm(_) => Format::Tgm,
            Self::Tatami(_) => Format::Tatami,
        }
    }

    /// The summary: datasets, messages or columns. Serializes to JSON.
    pub fn summary(&self) -> Result<Summary, Error> {
        Ok(match self {
            Self::Tet(file) => Summary::Tet(Box::new(file.summary()?)),
            Self::Tgm(file) => Summary::Tgm(Box::new(file.summary()?)),
            Self::Tatami(file) => Summary::Tatami(Box::new(file.summary()?)),
        })
    }

    /// The outline: a tree of the regions of the file with their byte ranges.
    pub fn outline(&self, options: OutlineOptions) -> Result<Outline, Error> {
        match self {
            Self::Tet(file) => Ok(file.outline(options)?),
            Self::Tgm(file) => Ok(file.outline(options)?),
            Self::Tatami(file) => Ok(file.outline(options)?),
        }
    }
}

/// The result of a verification, with the details of the format.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Report {
    /// Report of a `.tet` file.
    Tet(tet::Report),
    /// Report of a `.tgm` file.
    Tgm(tgm::Report),
    /// Report of a `.tatami` file.
    Tatami(tatami::Report),
}

impl Report {
    /// Whether the file is valid.
    pub fn is_ok(&self) -> bool {
        match self {
            Self::Tet(report) => report.ok,
            Self::Tgm(report) => report.ok,
            Self::Tatami(report) => report.ok,
        }
    }

    /// The results of the checks, in order.
    pub fn findings(&self) -> &[Finding] {
        match self {
            Self::Tet(report) => &report.findings,
            Self::Tgm(report) => &report.findings,
            Self::Tatami(report) => &report.findings,
        }
    }

    /// The findings that make the file invalid.
    pub fn failures(&self) -> impl Iterator<Item = &Finding> {
        self.findings().iter().filter(|finding| finding.is_failure())
    }
}

/// Verifies a file of any format. A damaged file is not an error: the report lists the problems.
#[cfg(any(unix, windows))]
pub fn verify(
    location: impl Into<Location>,
    options: VerifyOptions,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let source = crate::source::open_location(&location.into(), ReadOptions::new().access)?;
    verify_source(source, options, progress)
}

/// Verifies a source of any format.
pub fn verify_source(
    source: Arc<dyn ByteSource>,
    options: VerifyOptions,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    match detect_source(&source)? {
        Format::Tet => Ok(Report::Tet(tet::verify(source, options, progress)?)),
        Format::Tgm => Ok(Report::Tgm(tgm::verify(source, options, progress)?)),
        Format::Tatami => Ok(Report::Tatami(tatami::verify(source, options, progress)?)),
    }
}

#[cfg(test)]
mod tests {
    use tercet_core::progress::NoProgress;
    use tercet_core::{Class, Diagnostic};

    use super::*;

    fn empty_tet() -> Vec<u8> {
        let sink = std::io::Cursor::new(Vec::new());
        tet::Writer::new(sink, tet::Layout::new(), tet::WriterOptions::new())
            .unwrap()
            .finish()
            .unwrap()
            .output
    }

    fn small_tgm() -> Vec<u8> {
        let descriptor = tgm::DataObjectDescriptor::new(tgm::DType::U8, [3]);
        let (metadata, options) = (tgm::GlobalMetadata::default(), tgm::EncodeOptions::new());
        tgm::encode_message(&metadata, &[(&descriptor, &[7, 8, 9])], &options).unwrap()
    }

    fn small_tatami() -> Vec<u8> {
        let schema = tatami::Schema::new(vec![tatami::Field::new("id", tatami::Type::Int32)]).unwrap();
        let sink = std::io::Cursor::new(Vec::new());
        let mut writer = tatami::Writer::new(sink, schema, tatami::WriterOptions::new()).unwrap();
        writer.append(&[tatami::Column::new(tatami::Values::Int32(vec![7, 8, 9]))]).unwrap();
        writer.finish().unwrap().output
    }

    #[test]
    fn files_are_opened_by_their_magic_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data.bin");
        tet::Writer::create(&path, tet::Layout::new(), tet::WriterOptions::new()).unwrap().finish().unwrap();
        let container = Container::open(&path).unwrap();
        assert_eq!(container.format(), Format::Tet);
        assert!(!container.outline(OutlineOptions::new()).unwrap().parts.is_empty());
        let missing = Container::open(directory.path().join("missing")).unwrap_err();
        assert!(missing.is_not_found());
        assert_eq!(missing.class(), Class::Io);

        let container = Container::from_bytes("stream", small_tgm()).unwrap();
        assert_eq!(container.format(), Format::Tgm);
        assert!(!container.outline(OutlineOptions::new()).unwrap().parts.is_empty());
        let Container::Tgm(file) = container else { panic!("a .tgm file was expected") };
        assert_eq!(file.message_count().unwrap(), 1);

        let container = Container::from_bytes("rows", small_tatami()).unwrap();
        assert_eq!(container.format(), Format::Tatami);
        assert!(!container.outline(OutlineOptions::new()).unwrap().parts.is_empty());
        let Container::Tatami(file) = container else { panic!("a .tatami file was expected") };
        assert_eq!(file.rows(), 3);
    }

    #[test]
    fn options_reach_every_format() {
        let threads = std::num::NonZeroUsize::new(1);
        let options = ReadOptions::new().with_threads(threads).with_verify(false);
        let open =
            |bytes: Vec<u8>| Container::from_source(Arc::new(Memory::new("a", bytes)), options).unwrap();
        let Container::Tgm(file) = open(small_tgm()) else { panic!("a .tgm file was expected") };
        let common = file.options().common;
        assert_eq!((common.threads, common.verify), (threads, false));
    }

    #[test]
    fn damaged_files_are_reported_and_unknown_files_rejected() {
        let check = |name: &str, bytes: Vec<u8>| {
            verify_source(Arc::new(Memory::new(name, bytes)), VerifyOptions::new(), &NoProgress)
        };
        for (good, name) in [(empty_tet(), "a.tet"), (small_tgm(), "a.tgm"), (small_tatami(), "a.tatami")] {
            assert!(check("a", good.clone()).unwrap().is_ok(), "{name}");
            let mut bad = good;
            bad[0] = b'X';
            assert!(!check(name, bad.clone()).unwrap().is_ok(), "{name}");
            assert_eq!(check("a", bad).unwrap_err().class(), Class::Malformed, "{name}");
        }
    }

    #[test]
    fn a_deep_verification_decodes_values() {
        let descriptor = tgm::DataObjectDescriptor::new(tgm::DType::F32, [1]);
        let payload = f32::NAN.to_le_bytes();
        let (metadata, options) = (tgm::GlobalMetadata::default(), tgm::EncodeOptions::new());
        // An encoder would store it in a mask.
        let object = tgm::PreEncoded { descriptor: &descriptor, payload: &payload };
        let bytes = tgm::encode_pre_encoded(&metadata, &[object], &options).unwrap();
        let is_ok = |deep| {
            let source = Arc::new(Memory::new("a", bytes.clone()));
            verify_source(source, VerifyOptions::new().with_deep(deep), &NoProgress).unwrap().is_ok()
        };
        assert_eq!([is_ok(false), is_ok(true)], [true, false]);
    }
}
