//! Files of other formats, recognised by their first bytes.

use std::fmt;
use std::path::Path;

/// A well-known file format that is not a Tercet container.
///
/// Used by the error for unknown formats, so that it can name the format of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Foreign {
    /// `NetCDF` classic: CDF-1, CDF-2 or CDF-5.
    NetCdf3,
    /// HDF5, which includes NetCDF-4.
    Hdf5,
    /// GRIB edition 1.
    Grib1,
    /// GRIB edition 2.
    Grib2,
    /// BUFR.
    Bufr,
    /// Zarr store in a directory.
    ZarrDirectory,
    /// Zarr store in a ZIP archive.
    ZarrZip,
    /// ZIP archive.
    Zip,
    /// Parquet.
    Parquet,
    /// Arrow IPC file format.
    ArrowFile,
    /// Arrow IPC streaming format.
    ArrowStream,
    /// NumPy array.
    Npy,
    /// NumPy archive of arrays.
    Npz,
    /// gzip.
    Gzip,
    /// Zstandard frame.
    Zstd,
    /// bzip2.
    Bzip2,
    /// xz.
    Xz,
    /// JSON or JSON Lines.
    Json,
    /// Comma-separated or tab-separated values.
    Csv,
    /// Avro object container file.
    Avro,
    /// ORC.
    Orc,
    /// FITS.
    Fits,
    /// TIFF, which includes `GeoTIFF` and `BigTIFF`.
    Tiff,
    /// `SQLite` database, which includes `GeoPackage`.
    Sqlite,
    /// tar archive.
    Tar,
    /// The manifest of a collection of `.tatami` files.
    TatamiManifest,
}

/// How Tercet can read a foreign format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ForeignSupport {
    /// It can be converted to an array file.
    Array,
    /// It can be converted to a table file.
    Table,
    /// Decompress it first.
    Decompress,
    /// Extract its files first.
    Unpack,
    /// It describes a collection, which is opened by its directory.
    Collection,
    /// Not supported.
    None,
}

/// Magic bytes of formats that need no further look.
const MAGIC: [(&[u8], Foreign); 18] = [
    (b"CDF\x01", Foreign::NetCdf3),
    (b"CDF\x02", Foreign::NetCdf3),
    (b"CDF\x05", Foreign::NetCdf3),
    (HDF5_MAGIC, Foreign::Hdf5),
    (b"\x93NUMPY", Foreign::Npy),
    (b"\x1f\x8b", Foreign::Gzip),
    (b"\x28\xb5\x2f\xfd", Foreign::Zstd),
    (b"Obj\x01", Foreign::Avro),
    // One header card of 80 columns follows another, without line breaks.
    (b"SIMPLE  =                    T", Foreign::Fits),
    (b"II*\0", Foreign::Tiff),
    (b"MM\0*", Foreign::Tiff),
    (b"II+\0", Foreign::Tiff),
    (b"MM\0+", Foreign::Tiff),
    (b"SQLite format 3\0", Foreign::Sqlite),
    (b"\xfd7zXZ\0", Foreign::Xz),
    // An empty and a spanned archive.
    (b"PK\x05\x06", Foreign::Zip),
    (b"PK\x07\x08", Foreign::Zip),
    (b"\xef\xbb\xbf{", Foreign::Json),
];

/// The signature of HDF5, at the start of the file or after a user block of 512, 1024, 2048, … bytes.
pub(crate) const HDF5_MAGIC: &[u8] = b"\x89HDF\r\n\x1a\n";

/// Magic bytes that are printable: a text file may start with them.
const PRINTABLE_MAGIC: [(&[u8], Foreign); 6] = [
    (b"BUFR", Foreign::Bufr),
    (b"PAR1", Foreign::Parquet),
    (b"PARE", Foreign::Parquet),
    (b"ARROW1", Foreign::ArrowFile),
    (b"ORC", Foreign::Orc),
    (b"TMAN", Foreign::TatamiManifest),
];

/// Metadata files of Zarr versions 2 and 3.
const ZARR_FILES: [&str; 5] = ["zarr.json", ".zgroup", ".zarray", ".zattrs", ".zmetadata"];

impl Foreign {
    /// Detects the format of a file by its first bytes; [`HEAD_LEN`](crate::HEAD_LEN) bytes are enough.
    pub fn detect(head: &[u8]) -> Option<Self> {
        if let Some((_, format)) = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)) {
            return Some(*format);
        }
        let printable = PRINTABLE_MAGIC.iter().find(|(magic, _)| head.starts_with(magic));
        if let Some((_, format)) = printable.filter(|_| plain_text(head).is_none()) {
            return Some(*format);
        }
        if head.get(257..262) == Some(b"ustar") {
            return Some(Self::Tar);
        }
        match head {
            [b'B', b'Z', b'h', b'1'..=b'9', b'1' | 0x17, ..] => Some(Self::Bzip2),
            [b'G', b'R', b'I', b'B', _, _, _, 1, ..] => Some(Self::Grib1),
            [b'G', b'R', b'I', b'B', _, _, _, 2, ..] => Some(Self::Grib2),
            [b'P', b'K', 3, 4, ..] => Some(zip(head)),
            // A continuation marker and the length of the schema message, which is not zero.
            [0xff, 0xff, 0xff, 0xff, a, b, c, 0, ..] if [a, b, c].iter().any(|byte| **byte != 0) => {
                Some(Self::ArrowStream)
            }
            _ => text(head),
        }
    }

    /// Detects the format of a directory by the files in it.
    #[cfg(any(unix, windows))]
    pub fn detect_directory(path: &Path) -> Option<Self> {
        ZARR_FILES.iter().any(|name| path.join(name).is_file()).then_some(Self::ZarrDirectory)
    }

    /// The name of the format with its article, for messages: `a NetCDF-3 file`.
    pub const fn description(self) -> &'static str {
        match self {
            Self::NetCdf3 => "a NetCDF-3 file",
            Self::Hdf5 => "an HDF5 or NetCDF-4 file",
            Self::Grib1 => "a GRIB edition 1 file",
            Self::Grib2 => "a GRIB edition 2 file",
            Self::Bufr => "a BUFR file",
            Self::ZarrDirectory => "a Zarr directory",
            Self::ZarrZip => "a Zarr ZIP archive",
            Self::Zip => "a ZIP archive",
            Self::Parquet => "a Parquet file",
            Self::ArrowFile => "an Arrow IPC file",
            Self::ArrowStream => "an Arrow IPC stream",
            Self::Npy => "a NumPy array file",
            Self::Npz => "a NumPy archive",
            Self::Gzip => "gzip-compressed",
            Self::Zstd => "Zstandard-compressed",
            Self::Bzip2 => "bzip2-compressed",
            Self::Xz => "xz-compressed",
            Self::Json => "a JSON file",
            Self::Csv => "a text table such as CSV",
            Self::Avro => "an Avro file",
            Self::Orc => "an ORC file",
            Self::Fits => "a FITS file",
            Self::Tiff => "a TIFF file",
            Self::Sqlite => "an SQLite database",
            Self::Tar => "a tar archive",
            Self::TatamiManifest => "the manifest of a .tatami collection",
        }
    }

    /// Whether the format is detected by plain text rather than by magic bytes.
    pub const fn is_text(self) -> bool {
        matches!(self, Self::Json | Self::Csv)
    }

    /// How Tercet can read the format.
    pub const fn support(self) -> ForeignSupport {
        match self {
            Self::Npy => ForeignSupport::Array,
            Self::Parquet | Self::ArrowFile | Self::ArrowStream | Self::Json | Self::Csv => {
                ForeignSupport::Table
            }
            Self::Gzip | Self::Zstd | Self::Bzip2 | Self::Xz => ForeignSupport::Decompress,
            Self::NetCdf3
            | Self::Hdf5
            | Self::Grib1
            | Self::Grib2
            | Self::Bufr
            | Self::ZarrDirectory
            | Self::ZarrZip
            | Self::Zip
            | Self::Avro
            | Self::Orc
            | Self::Fits
            | Self::Tiff
            | Self::Sqlite => ForeignSupport::None,
            Self::Npz | Self::Tar => ForeignSupport::Unpack,
            Self::TatamiManifest => ForeignSupport::Collection,
        }
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.description())
    }
}

/// The kind of a ZIP archive, by the name of its first entry.
fn zip(head: &[u8]) -> Foreign {
    const NAME_LEN: usize = 26;
    const NAME: usize = 30;
    let name = head.get(NAME_LEN..NAME_LEN + 2).and_then(|len| {
        let len = usize::from(u16::from_le_bytes(len.try_into().ok()?));
        head.get(NAME..NAME + len)
    });
    let Some(name) = name.and_then(|name| std::str::from_utf8(name).ok()) else { return Foreign::Zip };
    let file = name.rsplit('/').next().unwrap_or(name);
    if ZARR_FILES.contains(&file) {
        Foreign::ZarrZip
    } else if Path::new(name).extension().is_some_and(|extension| extension == "npy") {
        Foreign::Npz
    } else {
        Foreign::Zip
    }
}

/// JSON or a delimited text table.
fn text(head: &[u8]) -> Option<Foreign> {
    let valid = plain_text(head)?;
    let start = valid.trim_start();
    let mut rest = start.chars();
    match rest.next() {
        Some('{') => {
            return rest.find(|char| !char.is_whitespace()).is_none_or(is_key_start).then_some(Foreign::Json);
        }
        Some('[') => return Some(Foreign::Json),
        _ => {}
    }
    // A header line and a first row with the same number of delimiters.
    let mut lines = valid.lines();
    let (header, row) = (lines.next()?, lines.next()?);
    [',', '\t', ';'].into_iter().find_map(|delimiter| {
        let count = |line: &str| line.matches(delimiter).count();
        (count(header) > 0 && count(header) <= count(row)).then_some(Foreign::Csv)
    })
}

/// Whether the first bytes of a file are text: UTF-8 without control characters, and not the start of magic bytes.
pub fn is_plain_text(head: &[u8]) -> bool {
    let is_cut_magic = crate::Format::ALL.iter().any(|format| format.magic().starts_with(head));
    !is_cut_magic && plain_text(head).is_some()
}

/// The head of a file as text, if it is UTF-8 without control characters.
fn plain_text(head: &[u8]) -> Option<&str> {
    // The head may end inside a character.
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let is_control = |char: char| char.is_control() && !matches!(char, '\n' | '\r' | '\t');
    (!valid.chars().any(is_control)).then_some(valid)
}

fn is_key_start(char: char) -> bool {
    matches!(char, '"' | '}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zip_of(name: &str) -> Vec<u8> {
        let mut head = b"PK\x03\x04".to_vec();
        head.resize(26, 0);
        head.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        head.extend([0, 0]);
        head.extend(name.as_bytes());
        head.extend([0; 16]);
        head
    }

    fn tar_head() -> Vec<u8> {
        let mut head = b"a.txt".to_vec();
        head.resize(257, 0);
        head.extend(b"ustar\x0000");
        head.resize(512, 0);
        head
    }

    #[test]
    fn magic_bytes_name_foreign_formats() {
        for (head, expected) in [
            (&b"CDF\x01\0\0\0\0"[..], Foreign::NetCdf3),
            (b"CDF\x05\0\0\0\0", Foreign::NetCdf3),
            (b"\x89HDF\r\n\x1a\n\0", Foreign::Hdf5),
            (b"GRIB\0\0\x10\x01", Foreign::Grib1),
            (b"GRIB\0\0\0\x02\0", Foreign::Grib2),
            (b"BUFR\0\0\0\x04", Foreign::Bufr),
            (b"PAR1\x15\x04", Foreign::Parquet),
            (b"ARROW1\0\0", Foreign::ArrowFile),
            (b"\xff\xff\xff\xff\x78\0\0\0", Foreign::ArrowStream),
            (b"\xff\xff\xff\xff\x78\x01\0\0\x10\0", Foreign::ArrowStream),
            (b"\x93NUMPY\x01\0", Foreign::Npy),
            (b"\x1f\x8b\x08\0", Foreign::Gzip),
            (b"\x28\xb5\x2f\xfd\x04", Foreign::Zstd),
            (b"BZh91AY", Foreign::Bzip2),
            (b"Obj\x01\x04\x14avro.codec", Foreign::Avro),
            (b"ORC\x11\0\0\x0a", Foreign::Orc),
            (b"SIMPLE  =                    T / conforms to FITS standard", Foreign::Fits),
            (b"II*\0\x08\0\0\0", Foreign::Tiff),
            (b"MM\0*\0\0\0\x08", Foreign::Tiff),
            (b"MM\0+\0\x08\0\0", Foreign::Tiff),
            (b"SQLite format 3\0\x10\0", Foreign::Sqlite),
            (b"TMAN\x01\0\0\0", Foreign::TatamiManifest),
            (&tar_head(), Foreign::Tar),
            (b"\xfd7zXZ\0\0", Foreign::Xz),
            (b"{\"a\": 1}\n", Foreign::Json),
            (b" [1, 2]", Foreign::Json),
            (b"a,b\n1,2\n", Foreign::Csv),
            (b"a\tb\n1\t2\n", Foreign::Csv),
            (&zip_of("a.txt"), Foreign::Zip),
            (&zip_of("arr_0.npy"), Foreign::Npz),
            (&zip_of("group/zarr.json"), Foreign::ZarrZip),
            (&zip_of(".zgroup"), Foreign::ZarrZip),
        ] {
            assert_eq!(Foreign::detect(head), Some(expected), "{}", head.escape_ascii());
        }
        for head in [
            &b""[..],
            b"ORCs are not elves.",
            b"BUFR, a format",
            b"SIMPLE text",
            b"BZhou",
            b"TETR",
            b"TENSOGRM",
            b"TAT1",
            b"plain text",
            b"\xff\xff\xff\xff\0\0\0\0",
            b"PK",
        ] {
            assert_eq!(Foreign::detect(head), None, "{}", head.escape_ascii());
        }
    }

    #[test]
    fn text_is_not_the_start_of_a_container() {
        for head in [&b"root:x:0:0\n"[..], "caf\u{e9}".as_bytes(), b"caf\xc3", b"TERSE"] {
            assert!(is_plain_text(head), "{}", head.escape_ascii());
        }
        for head in [&b""[..], b"TE", b"TENSOG", b"TAT1", b"a\0", b"\x7fELF", b"\xff\xfea"] {
            assert!(!is_plain_text(head), "{}", head.escape_ascii());
        }
    }

    #[cfg(any(unix, windows))]
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test creates a real file")]
    fn zarr_directories_are_recognised() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Foreign::detect_directory(directory.path()), None);
        std::fs::File::create(directory.path().join(".zgroup")).unwrap();
        assert_eq!(Foreign::detect_directory(directory.path()), Some(Foreign::ZarrDirectory));
    }
}
