//! A container of any format, opened.

#[cfg(any(unix, windows))]
use std::path::Path;
use std::sync::Arc;

use tercet_core::{ByteSource, Outline, Progress};
use tercet_tet as tet;

use crate::error::Error;
use crate::format::{Format, format_of};

/// A file of any format.
#[derive(Debug)]
#[non_exhaustive]
pub enum Container {
    /// A `.tet` file.
    Tet(tet::File),
}

impl Container {
    /// Opens a file on disk, whichever format it has, by positional reads.
    #[cfg(any(unix, windows))]
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let source = tercet_core::source::File::open(path);
        let source = source
            .map_err(|error| Error::Source(tercet_core::InFile::new(path.to_string_lossy().into(), error)))?;
        Self::open_source(Arc::new(source))
    }

    /// Opens a file whose bytes come from elsewhere.
    pub fn open_source(source: Arc<dyn ByteSource>) -> Result<Self, Error> {
        match format_of(&source)? {
            Format::Tet => Ok(Self::Tet(tet::OpenOptions::new().open_source(source)?)),
        }
    }

    /// Its format.
    pub fn format(&self) -> Format {
        match self {
            Self::Tet(_) => Format::Tet,
        }
    }

    /// The file as a tree of named bytes. Tables are cut after `max_rows` rows.
    pub fn outline(&self, max_rows: Option<u64>) -> Result<Outline, Error> {
        match self {
            Self::Tet(file) => Ok(file.outline(max_rows)?),
        }
    }
}

/// Checks a file of any format. It need not be fit for opening: that is what the report is about.
pub fn verify(
    source: Arc<dyn ByteSource>,
    options: tet::VerifyOptions,
    progress: &dyn Progress,
) -> Result<tet::Report, Error> {
    match format_of(&source)? {
        Format::Tet => Ok(tet::verify_source(source, options, progress)?),
    }
}

#[cfg(test)]
mod tests {
    use tercet_core::progress::Silent;
    use tercet_core::source::Memory;
    use tercet_core::{Class, Diagnose};

    use super::*;

    fn empty_tet() -> Vec<u8> {
        let sink = std::io::Cursor::new(Vec::new());
        tet::Layout::new().write_to("t", sink, tet::WriterOptions::new()).unwrap().seal().unwrap()
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
    }

    #[test]
    fn a_damaged_file_is_reported_and_a_stranger_refused() {
        let check = |name: &str, bytes: Vec<u8>| {
            verify(Arc::new(Memory::new(name, bytes)), tet::VerifyOptions::default(), &Silent)
        };
        let good = empty_tet();
        assert!(check("a", good.clone()).unwrap().ok);
        let mut bad = good;
        bad[0] = b'X';
        assert!(!check("a.tet", bad.clone()).unwrap().ok);
        assert_eq!(check("a", bad).unwrap_err().class(), Class::Malformed);
    }
}
