//! A container of any format, opened.

#[cfg(any(unix, windows))]
use std::path::Path;
use std::sync::Arc;

use tercet_core::{ByteSource, Outline, Progress};
use tercet_tatami as tatami;
use tercet_tet as tet;
use tercet_tgm as tgm;

use crate::error::Error;
use crate::format::{Format, format_of};

/// A file of any format.
#[derive(Debug)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "a program has few of them, and a box would stand in the way")]
pub enum Container {
    /// A `.tet` file.
    Tet(tet::File),
    /// A `.tgm` file.
    Tgm(tgm::File),
    /// A `.tatami` file.
    Tatami(tatami::File),
}

impl Container {
    /// Opens a file on disk, whichever format it has, by positional reads.
    #[cfg(any(unix, windows))]
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let source = tercet_core::source::File::open(path);
        let source = source
            .map_err(|error| Error::Source(tercet_core::Error::new(path.to_string_lossy().into(), error)))?;
        Self::open_source(Arc::new(source))
    }

    /// Opens a file whose bytes come from elsewhere.
    pub fn open_source(source: Arc<dyn ByteSource>) -> Result<Self, Error> {
        match format_of(&source)? {
            Format::Tet => Ok(Self::Tet(tet::ReadOptions::new().open_source(source)?)),
            Format::Tgm => Ok(Self::Tgm(tgm::File::from_source(source, tgm::ReadOptions::new()))),
            Format::Tatami => {
                Ok(Self::Tatami(tatami::File::from_source(source, tatami::ReadOptions::new())?))
            }
        }
    }

    /// Its format.
    pub fn format(&self) -> Format {
        match self {
            Self::Tet(_) => Format::Tet,
            Self::Tgm(_) => Format::Tgm,
            Self::Tatami(_) => Format::Tatami,
        }
    }

    /// The file as a tree of named bytes. Tables are cut after `max_rows` rows; the pages of a `.tatami` file are only drawn
    /// without such a bound.
    pub fn outline(&self, max_rows: Option<u64>) -> Result<Outline, Error> {
        match self {
            Self::Tet(file) => Ok(file.outline(max_rows)?),
            Self::Tgm(file) => Ok(file.outline(max_rows)?),
            Self::Tatami(file) => Ok(file.outline(max_rows.is_none())?),
        }
    }
}

/// How a file of any format is checked.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// Decode everything and look at the values.
    pub deep: bool,
}

impl VerifyOptions {
    /// Structure, checksums and a sample of the values, or every value.
    pub fn with_deep(mut self, deep: bool) -> Self {
        self.deep = deep;
        self
    }
}

/// What a check found: the report of the format.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Report {
    /// Of a `.tet` file.
    Tet(tet::Report),
    /// Of a `.tgm` file.
    Tgm(tgm::FileReport),
    /// Of a `.tatami` file.
    Tatami(tatami::Report),
}

impl Report {
    /// Whether the file is well.
    pub fn is_ok(&self) -> bool {
        match self {
            Self::Tet(report) => report.ok,
            Self::Tgm(report) => report.is_ok(),
            Self::Tatami(report) => report.ok,
        }
    }
}

/// Checks a file of any format. It need not be fit for opening: that is what the report is about.
pub fn verify(
    source: Arc<dyn ByteSource>,
    options: VerifyOptions,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    match format_of(&source)? {
        Format::Tet => {
            let options = tet::VerifyOptions::default().with_deep(options.deep);
            Ok(Report::Tet(tet::verify_source(source, options, progress)?))
        }
        Format::Tgm => {
            let depth = if options.deep { tgm::Depth::Full } else { tgm::Depth::Default };
            let options = tgm::ValidateOptions::new().with_depth(depth);
            Ok(Report::Tgm(tgm::validate_source(&source, &options, progress)?))
        }
        Format::Tatami => {
            let options = tatami::VerifyOptions::default().with_deep(options.deep);
            Ok(Report::Tatami(tatami::verify_source(source, options, progress)?))
        }
    }
}

#[cfg(test)]
mod tests {
    use tercet_core::progress::NoProgress;
    use tercet_core::source::Memory;
    use tercet_core::{Class, Diagnose};

    use super::*;

    fn empty_tet() -> Vec<u8> {
        let sink = std::io::Cursor::new(Vec::new());
        tet::Layout::new().write_to("t", sink, tet::WriterOptions::new()).unwrap().seal().unwrap()
    }

    fn small_tgm() -> Vec<u8> {
        let descriptor = tgm::DataObjectDescriptor::new(tgm::Dtype::Uint8, [3]);
        let (metadata, options) = (tgm::GlobalMetadata::default(), tgm::EncodeOptions::new());
        tgm::encode_message(&metadata, &[(&descriptor, &[7, 8, 9])], &options).unwrap()
    }

    fn small_tatami() -> Vec<u8> {
        let schema = tatami::Schema::new(vec![tatami::Field::new("id", tatami::Type::Int32)]).unwrap();
        let sink = std::io::Cursor::new(Vec::new());
        let mut writer = tatami::Writer::create(sink, schema, tatami::WriterOptions::new()).unwrap();
        writer.append(&[tatami::Column::new(tatami::Values::Int32(vec![7, 8, 9]))]).unwrap();
        writer.finish().unwrap().output
    }

    #[test]
    fn a_file_is_opened_by_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("whatever.bin");
        tet::Layout::new().create(&path, tet::WriterOptions::new()).unwrap().seal().unwrap();
        let container = Container::open(&path).unwrap();
        assert_eq!(container.format(), Format::Tet);
        assert!(!container.outline(None).unwrap().parts.is_empty());
        let missing = Container::open(folder.path().join("missing")).unwrap_err();
        assert_eq!(missing.class(), Class::Io);

        let container = Container::open_source(Arc::new(Memory::new("stream", small_tgm()))).unwrap();
        assert_eq!(container.format(), Format::Tgm);
        assert!(!container.outline(None).unwrap().parts.is_empty());
        let Container::Tgm(file) = container else { panic!("a .tgm file was expected") };
        assert_eq!(file.message_count().unwrap(), 1);

        let container = Container::open_source(Arc::new(Memory::new("rows", small_tatami()))).unwrap();
        assert_eq!(container.format(), Format::Tatami);
        assert!(!container.outline(None).unwrap().parts.is_empty());
        let Container::Tatami(file) = container else { panic!("a .tatami file was expected") };
        assert_eq!(file.rows(), 3);
    }

    #[test]
    fn a_damaged_file_is_reported_and_a_stranger_refused() {
        let check = |name: &str, bytes: Vec<u8>| {
            verify(Arc::new(Memory::new(name, bytes)), VerifyOptions::default(), &NoProgress)
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
    fn a_deep_check_looks_at_values() {
        let descriptor = tgm::DataObjectDescriptor::new(tgm::Dtype::Float32, [1]);
        let payload = f32::NAN.to_le_bytes();
        let (metadata, options) = (tgm::GlobalMetadata::default(), tgm::EncodeOptions::new());
        // A writer that looks at its values would have put it into a mask.
        let object = tgm::PreEncoded { descriptor: &descriptor, payload: &payload };
        let bytes = tgm::encode_pre_encoded(&metadata, &[object], &options).unwrap();
        let is_ok = |deep| {
            let source = Arc::new(Memory::new("a", bytes.clone()));
            verify(source, VerifyOptions::default().with_deep(deep), &NoProgress).unwrap().is_ok()
        };
        assert_eq!([is_ok(false), is_ok(true)], [true, false]);
    }
}
