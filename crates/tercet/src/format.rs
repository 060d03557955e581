//! Container formats and their detection.

use std::fmt;
use std::path::Path;

use tercet_core::{ByteSource, Span};

use crate::error::{Error, UnknownFormat};
use crate::other_format::{HDF5_MAGIC, OtherFormat};

/// Number of first bytes that [`detect_source`] reads. [`detect`] needs 8 of them, [`OtherFormat::detect`] up to all.
pub const HEAD_LEN: u64 = 512;

/// A container format. Exhaustive on purpose: the compiler finds every `match` that a new format concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `.tet`: chunked arrays.
    Tet,
    /// `.tgm`: messages with tensors, in files and streams.
    Tgm,
    /// `.tatami`: tables in columns.
    Tatami,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Tet, Self::Tgm, Self::Tatami];

    /// The file extension without the dot.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Tet => "tet",
            Self::Tgm => "tgm",
            Self::Tatami => "tatami",
        }
    }

    /// The magic bytes at the start of a file.
    pub const fn magic(self) -> &'static [u8] {
        match self {
            Self::Tet => b"TETR",
            Self::Tgm => b"TENSOGRM",
            Self::Tatami => b"TAT1",
        }
    }

    /// The format of a file name, by its extension.
    pub fn from_extension(path: &Path) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|format| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(format.extension())))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.extension())
    }
}

/// Detects the container format of a file by its first eight bytes.
pub fn detect(head: &[u8]) -> Option<Format> {
    Format::ALL.into_iter().find(|format| head.starts_with(format.magic()))
}

/// Detects the container format of a source: by its magic bytes, else by the extension of its name.
///
/// The extension counts only for files of unknown content, so that a file with damaged first bytes, or a `.tgm` file that
/// starts with unrecognized bytes, still has its format. The magic bytes of another format are an error even with the extension `.tet` or
/// `.tatami`.
pub fn detect_source(source: &dyn ByteSource) -> Result<Format, Error> {
    let name = || source.name().clone();
    let head = Span::first(source.len().min(HEAD_LEN));
    let head = source.read_at(head).map_err(|error| Error::new(name(), error))?;
    if let Some(format) = detect(&head) {
        return Ok(format);
    }
    let format = Format::from_extension(Path::new(&**source.name()));
    let mut other = OtherFormat::detect(&head);
    if other.is_none() && format.is_none() && has_hdf5_user_block(source) {
        other = Some(OtherFormat::Hdf5);
    }
    match format {
        Some(format) if format == Format::Tgm || other.is_none_or(OtherFormat::is_text) => Ok(format),
        _ => Err(Error::new(name(), UnknownFormat::new(&head, other))),
    }
}

/// Whether the signature of HDF5 follows a user block: at byte 512, 1024, 2048, … The largest one looked for is 1 MiB.
fn has_hdf5_user_block(source: &dyn ByteSource) -> bool {
    let starts = (9..=20).map(|power| 1 << power).take_while(|start| *start < source.len());
    let spans = starts.filter_map(|start| Span::at(start, HDF5_MAGIC.len() as u64));
    spans.filter(|span| span.end() <= source.len()).any(|span| {
        let found = source.read_at(span);
        found.is_ok_and(|bytes| *bytes == *HDF5_MAGIC)
    })
}

#[cfg(test)]
mod tests {
    use tercet_core::source::Memory;
    use tercet_core::{Class, Diagnostic, Hint};

    use super::*;

    #[test]
    fn magic_bytes_take_precedence_over_extensions() {
        assert_eq!(detect(b"TETR"), Some(Format::Tet));
        assert_eq!(detect(b"TENSOGRM"), Some(Format::Tgm));
        assert_eq!(detect(b"TAT1"), Some(Format::Tatami));
        assert_eq!(detect(b"TET"), None);
        assert_eq!(detect(b"TENSOGR"), None);
        assert_eq!(detect(b""), None);
        assert_eq!(detect_source(&Memory::new("a.bin", &b"TETR...."[..])).unwrap(), Format::Tet);
        assert_eq!(detect_source(&Memory::new("a.TET", &b"XETR...."[..])).unwrap(), Format::Tet);
        assert_eq!(detect_source(&Memory::new("a.tet", &b"TENSOGRM...."[..])).unwrap(), Format::Tgm);
        assert_eq!(detect_source(&Memory::new("a.tgm", &b"junk before"[..])).unwrap(), Format::Tgm);
        assert_eq!(detect_source(&Memory::new("a.tgm", &b""[..])).unwrap(), Format::Tgm);
    }

    #[test]
    fn extensions_name_formats() {
        for format in Format::ALL {
            assert_eq!(Format::from_extension(Path::new(&format!("a{format}"))), Some(format));
        }
        assert_eq!(Format::from_extension(Path::new("tgm")), None);
    }

    #[test]
    fn unknown_formats_are_named() {
        let error = detect_source(&Memory::new("a.png", &b"\x89PNG\r\n\x1a\n and more"[..])).unwrap_err();
        assert_eq!(error.class(), Class::Malformed);
        assert_eq!(error.to_string(), "a.png: unknown file format: starts with `\\x89PNG\\r\\n\\x1a\\n`");
        let error = detect_source(&Memory::new("nothing", &b""[..])).unwrap_err();
        assert_eq!(error.to_string(), "nothing: empty file");
        let error = detect_source(&Memory::new("a.tet", &b"CDF\x01\0\0\0\0"[..])).unwrap_err();
        assert_eq!(error.to_string(), "a.tet: is a NetCDF-3 file, not a Tercet container");
        assert_eq!((error.class(), error.hint()), (Class::Unsupported, Some(Hint::ImportArray)));
        for user_block in [512, 1024, 1 << 20] {
            let bytes = [&vec![b' '; user_block][..], HDF5_MAGIC, b"and more"].concat();
            let error = detect_source(&Memory::new("a.bin", bytes)).unwrap_err();
            assert_eq!(error.to_string(), "a.bin: is an HDF5 or NetCDF-4 file, not a Tercet container");
        }
        let bytes = [&[b' '; 600][..], HDF5_MAGIC].concat();
        assert_eq!(detect_source(&Memory::new("a.bin", bytes)).unwrap_err().class(), Class::Malformed);
        let error = detect_source(&Memory::new("a", &b"PAR1\x15\x04"[..])).unwrap_err();
        assert_eq!(error.to_string(), "a: is a Parquet file, not a Tercet container");
        assert_eq!(error.hint(), Some(Hint::ImportTable));
    }
}
