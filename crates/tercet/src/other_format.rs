//! Files of other formats, recognised by their first bytes.

use std::fmt;
use std::path::Path;

/// A well-known file format that is not a Tercet container.
///
/// Used by the error for unknown formats, so that it can name the format of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OtherFormat {
    /// `NetCDF` classic: CDF-1 or CDF-2.
    NetCdf3,
    /// `NetCDF` with 64-bit sizes: CDF-5.
    Cdf5,
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
    /// Feather version 1. Version 2 is the Arrow IPC file format.
    Feather1,
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

/// How Tercet can read another format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OtherFormatSupport {
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
const MAGIC: [(&[u8], OtherFormat); 18] = [
    (b"CDF\x01", OtherFormat::NetCdf3),
    (b"CDF\x02", OtherFormat::NetCdf3),
    (b"CDF\x05", OtherFormat::Cdf5),
    (HDF5_MAGIC, OtherFormat::Hdf5),
    (b"\x93NUMPY", OtherFormat::Npy),
    (b"\x1f\x8b", OtherFormat::Gzip),
    (b"\x28\xb5\x2f\xfd", OtherFormat::Zstd),
    (b"Obj\x01", OtherFormat::Avro),
    // One header card of 80 columns follows another, without line breaks.
    (b"SIMPLE  =                    T", OtherFormat::Fits),
    (b"II*\0", OtherFormat::Tiff),
    (b"MM\0*", OtherFormat::Tiff),
    (b"II+\0", OtherFormat::Tiff),
    (b"MM\0+", OtherFormat::Tiff),
    (b"SQLite format 3\0", OtherFormat::Sqlite),
    (b"\xfd7zXZ\0", OtherFormat::Xz),
    // An empty and a spanned archive.
    (b"PK\x05\x06", OtherFormat::Zip),
    (b"PK\x07\x08", OtherFormat::Zip),
    (b"\xef\xbb\xbf{", OtherFormat::Json),
];

/// The signature of HDF5, at the start of the file or after a user block of 512, 1024, 2048, … bytes.
pub(crate) const HDF5_MAGIC: &[u8] = b"\x89HDF\r\n\x1a\n";

/// Magic bytes that are printable: a text file may start with them.
const PRINTABLE_MAGIC: [(&[u8], OtherFormat); 7] = [
    (b"BUFR", OtherFormat::Bufr),
    (b"PAR1", OtherFormat::Parquet),
    (b"PARE", OtherFormat::Parquet),
    (b"ARROW1", OtherFormat::ArrowFile),
    (b"FEA1", OtherFormat::Feather1),
    (b"ORC", OtherFormat::Orc),
    (b"TMAN", OtherFormat::TatamiManifest),
];

/// Metadata files of Zarr versions 2 and 3.
const ZARR_FILES: [&str; 5] = ["zarr.json", ".zgroup", ".zarray", ".zattrs", ".zmetadata"];

impl OtherFormat {
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
            [b'G', b'R', b'I', b'B', ..] => grib(head),
            [b'P', b'K', 3, 4, ..] => Some(zip(head)),
            // A continuation marker and the length of the schema message, which is not zero.
            [0xff, 0xff, 0xff, 0xff, a, b, c, 0, ..] if [a, b, c].iter().any(|byte| **byte != 0) => {
                Some(Self::ArrowStream)
            }
            _ => after_wmo_heading(head).and_then(grib_or_bufr).or_else(|| text(head)),
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
            Self::Cdf5 => "a CDF-5 (64-bit NetCDF) file",
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
            Self::Feather1 => "a Feather version 1 file",
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
    pub const fn support(self) -> OtherFormatSupport {
        match self {
            Self::Npy
            | Self::Npz
            | Self::NetCdf3
            | Self::Cdf5
            | Self::Hdf5
            | Self::Grib1
            | Self::Grib2
            | Self::ZarrDirectory
            | Self::ZarrZip => OtherFormatSupport::Array,
            Self::Parquet | Self::ArrowFile | Self::ArrowStream | Self::Json | Self::Csv => {
                OtherFormatSupport::Table
            }
            Self::Gzip | Self::Zstd | Self::Bzip2 | Self::Xz => OtherFormatSupport::Decompress,
            Self::Feather1
            | Self::Bufr
            | Self::Zip
            | Self::Avro
            | Self::Orc
            | Self::Fits
            | Self::Tiff
            | Self::Sqlite => OtherFormatSupport::None,
            Self::Tar => OtherFormatSupport::Unpack,
            Self::TatamiManifest => OtherFormatSupport::Collection,
        }
    }
}

impl fmt::Display for OtherFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.description())
    }
}

fn grib(message: &[u8]) -> Option<OtherFormat> {
    match message {
        [b'G', b'R', b'I', b'B', _, _, _, 1, ..] => Some(OtherFormat::Grib1),
        [b'G', b'R', b'I', b'B', _, _, _, 2, ..] => Some(OtherFormat::Grib2),
        _ => None,
    }
}

fn grib_or_bufr(message: &[u8]) -> Option<OtherFormat> {
    grib(message).or_else(|| message.starts_with(b"BUFR").then_some(OtherFormat::Bufr))
}

/// The message after a heading of the WMO telecommunication system, `HTXE85 ECMF 121200`, which may follow a start line.
fn after_wmo_heading(head: &[u8]) -> Option<&[u8]> {
    const LONGEST: usize = 80;
    let start = (0..head.len().min(LONGEST)).find(|at| {
        let rest = &head[*at..];
        rest.starts_with(b"GRIB") || rest.starts_with(b"BUFR")
    })?;
    let (before, message) = head.split_at(start);
    let mut lines = before.split(|byte| matches!(byte, b'\r' | b'\n' | 1));
    (before.ends_with(b"\n") && lines.any(is_wmo_heading)).then_some(message)
}

/// Whether a line starts with a data designator and a location: `HTXE85 ECMF`.
fn is_wmo_heading(line: &[u8]) -> bool {
    let (Some(designator), Some(location)) = (line.get(..6), line.get(6..11)) else { return false };
    let (letters, digits) = designator.split_at(4);
    letters.iter().all(u8::is_ascii_uppercase)
        && digits.iter().all(u8::is_ascii_digit)
        && location[0] == b' '
        && location[1..].iter().all(u8::is_ascii_alphanumeric)
}

/// The kind of a ZIP archive, by the name of its first entry.
fn zip(head: &[u8]) -> OtherFormat {
    const NAME_LEN: usize = 26;
    const NAME: usize = 30;
    let name = head.get(NAME_LEN..NAME_LEN + 2).and_then(|len| {
        let len = usize::from(u16::from_le_bytes(len.try_into().ok()?));
        head.get(NAME..NAME + len)
    });
    let Some(name) = name.and_then(|name| std::str::from_utf8(name).ok()) else { return OtherFormat::Zip };
    let file = name.rsplit('/').next().unwrap_or(name);
    if ZARR_FILES.contains(&file) {
        OtherFormat::ZarrZip
    } else if Path::new(name).extension().is_some_and(|extension| extension == "npy") {
        OtherFormat::Npz
    } else {
        OtherFormat::Zip
    }
}

/// JSON or a delimited text table.
fn text(head: &[u8]) -> Option<OtherFormat> {
    let valid = plain_text(head)?;
    let start = valid.trim_start();
    let mut rest = start.chars();
    match rest.next() {
        Some('{') => {
            return rest
                .find(|char| !char.is_whitespace())
                .is_none_or(is_key_start)
                .then_some(OtherFormat::Json);
        }
        Some('[') => return Some(OtherFormat::Json),
        _ => {}
    }
    // A header line and a first row with the same number of delimiters.
    let mut lines = valid.lines();
    let (header, row) = (lines.next()?, lines.next()?);
    [',', '\t', ';'].into_iter().find_map(|delimiter| {
        let count = |line: &str| line.matches(delimiter).count();
        (count(header) > 0 && count(header) <= count(row)).then_some(OtherFormat::Csv)
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
    fn magic_bytes_name_other_formats() {
        for (head, expected) in [
            (&b"CDF\x01\0\0\0\0"[..], OtherFormat::NetCdf3),
            (b"CDF\x05\0\0\0\0", OtherFormat::Cdf5),
            (b"FEA1\0\0\0\0", OtherFormat::Feather1),
            (b"HTXE85 ECMF 121200\r\r\nGRIB\0\0\0\x02", OtherFormat::Grib2),
            (b"\x01\r\r\n123\r\r\nYPAA01 KWBC 120000\r\r\nGRIB\0\0\x10\x01", OtherFormat::Grib1),
            (b"ISMD01 EDZW 120000\r\r\nBUFR\0\0\x10\x04", OtherFormat::Bufr),
            (b"\x89HDF\r\n\x1a\n\0", OtherFormat::Hdf5),
            (b"GRIB\0\0\x10\x01", OtherFormat::Grib1),
            (b"GRIB\0\0\0\x02\0", OtherFormat::Grib2),
            (b"BUFR\0\0\0\x04", OtherFormat::Bufr),
            (b"PAR1\x15\x04", OtherFormat::Parquet),
            (b"ARROW1\0\0", OtherFormat::ArrowFile),
            (b"\xff\xff\xff\xff\x78\0\0\0", OtherFormat::ArrowStream),
            (b"\xff\xff\xff\xff\x78\x01\0\0\x10\0", OtherFormat::ArrowStream),
            (b"\x93NUMPY\x01\0", OtherFormat::Npy),
            (b"\x1f\x8b\x08\0", OtherFormat::Gzip),
            (b"\x28\xb5\x2f\xfd\x04", OtherFormat::Zstd),
            (b"BZh91AY", OtherFormat::Bzip2),
            (b"Obj\x01\x04\x14avro.codec", OtherFormat::Avro),
            (b"ORC\x11\0\0\x0a", OtherFormat::Orc),
            (b"SIMPLE  =                    T / conforms to FITS standard", OtherFormat::Fits),
            (b"II*\0\x08\0\0\0", OtherFormat::Tiff),
            (b"MM\0*\0\0\0\x08", OtherFormat::Tiff),
            (b"MM\0+\0\x08\0\0", OtherFormat::Tiff),
            (b"SQLite format 3\0\x10\0", OtherFormat::Sqlite),
            (b"TMAN\x01\0\0\0", OtherFormat::TatamiManifest),
            (&tar_head(), OtherFormat::Tar),
            (b"\xfd7zXZ\0\0", OtherFormat::Xz),
            (b"{\"a\": 1}\n", OtherFormat::Json),
            (b" [1, 2]", OtherFormat::Json),
            (b"a,b\n1,2\n", OtherFormat::Csv),
            (b"a\tb\n1\t2\n", OtherFormat::Csv),
            (&zip_of("a.txt"), OtherFormat::Zip),
            (&zip_of("arr_0.npy"), OtherFormat::Npz),
            (&zip_of("group/zarr.json"), OtherFormat::ZarrZip),
            (&zip_of(".zgroup"), OtherFormat::ZarrZip),
        ] {
            assert_eq!(OtherFormat::detect(head), Some(expected), "{}", head.escape_ascii());
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
            assert_eq!(OtherFormat::detect(head), None, "{}", head.escape_ascii());
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
        assert_eq!(OtherFormat::detect_directory(directory.path()), None);
        std::fs::File::create(directory.path().join(".zgroup")).unwrap();
        assert_eq!(OtherFormat::detect_directory(directory.path()), Some(OtherFormat::ZarrDirectory));
    }
}
