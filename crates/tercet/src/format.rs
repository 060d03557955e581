//! Which format a file has.

use std::fmt;
use std::path::Path;

use tercet_core::{ByteSource, Span};

use crate::error::{Error, Unrecognised};

/// How many bytes [`detect`] wants to see.
pub const HEAD_LEN: u64 = 8;

/// A container format. Exhaustive on purpose: the compiler finds every place that a new one concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `.tet`: chunked arrays at rest.
    Tet,
    /// `.tgm`: messages of tensors in motion.
    Tgm,
    /// `.tatami`: records in columns.
    Tatami,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 3] = [Self::Tet, Self::Tgm, Self::Tatami];

    /// The ending of its files, without the dot.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Tet => "tet",
            Self::Tgm => "tgm",
            Self::Tatami => "tatami",
        }
    }

    /// The format whose files end like this path.
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

/// The format of a file that starts with these bytes. Eight bytes are enough.
pub fn detect(head: &[u8]) -> Option<Format> {
    let starts: [(&[u8], Format); 3] =
        [(b"TETR", Format::Tet), (b"TENSOGRM", Format::Tgm), (b"TAT1", Format::Tatami)];
    starts.into_iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, format)| format)
}

/// The format of a source: by its first bytes, or else by the ending of its name, so that a file whose first bytes
/// are damaged is still reported by the format it belongs to. A `.tgm` file may even begin with other bytes.
pub fn format_of(source: &dyn ByteSource) -> Result<Format, Error> {
    let name = || source.name().clone();
    let head = Span::at(0, source.len().min(HEAD_LEN)).unwrap_or(Span::empty(0));
    let head = source.read_at(head).map_err(|error| Error::Source(tercet_core::Error::new(name(), error)))?;
    detect(&head).or_else(|| Format::from_extension(Path::new(&**source.name()))).ok_or_else(|| {
        Error::Unrecognised(tercet_core::Error::new(name(), Unrecognised { head: head.to_vec() }))
    })
}

#[cfg(test)]
mod tests {
    use tercet_core::source::Memory;
    use tercet_core::{Class, Diagnose};

    use super::*;

    #[test]
    fn first_bytes_count_before_names() {
        assert_eq!(detect(b"TETR"), Some(Format::Tet));
        assert_eq!(detect(b"TENSOGRM"), Some(Format::Tgm));
        assert_eq!(detect(b"TAT1"), Some(Format::Tatami));
        assert_eq!(detect(b"TET"), None);
        assert_eq!(detect(b"TENSOGR"), None);
        assert_eq!(detect(b""), None);
        assert_eq!(format_of(&Memory::new("a.bin", &b"TETR...."[..])).unwrap(), Format::Tet);
        assert_eq!(format_of(&Memory::new("a.TET", &b"XETR...."[..])).unwrap(), Format::Tet);
        assert_eq!(format_of(&Memory::new("a.tet", &b"TENSOGRM...."[..])).unwrap(), Format::Tgm);
        assert_eq!(format_of(&Memory::new("a.tgm", &b"junk before"[..])).unwrap(), Format::Tgm);
        assert_eq!(format_of(&Memory::new("a.tgm", &b""[..])).unwrap(), Format::Tgm);
    }

    #[test]
    fn endings_belong_to_formats() {
        for format in Format::ALL {
            assert_eq!(Format::from_extension(Path::new(&format!("a{format}"))), Some(format));
        }
        assert_eq!(Format::from_extension(Path::new("tgm")), None);
    }

    #[test]
    fn a_stranger_is_malformed_and_shown() {
        let error = format_of(&Memory::new("a.png", &b"\x89PNG\r\n\x1a\n and more"[..])).unwrap_err();
        assert_eq!(error.class(), Class::Malformed);
        assert_eq!(
            error.to_string(),
            "a.png: is in no format that is known here: it starts with `\\x89PNG\\r\\n\\x1a\\n`"
        );
        let error = format_of(&Memory::new("nothing", &b""[..])).unwrap_err();
        assert_eq!(error.to_string(), "nothing: is empty");
    }
}
