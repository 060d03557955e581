//! The formats of extracted arrays.

use std::path::Path;

use clap::ValueEnum;
use tercet::core::escape;

use crate::failure::Failure;
use crate::output::{display_path, is_stdout};

/// The format of an extracted array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ArrayFormat {
    /// NumPy .npy file
    Npy,
    /// Comma-separated values: a row per value, with its position on each axis
    Csv,
    /// Values only: row-major, little-endian
    Raw,
    /// Tetration .tet file: the array with its metadata as attributes
    Tet,
}

impl ArrayFormat {
    /// The given format, or that of the file extension. Other extensions are refused: they name other formats.
    pub(super) fn infer(given: Option<Self>, path: &Path) -> Result<Self, Failure> {
        if let Some(format) = given {
            return Ok(format);
        }
        if is_stdout(path) {
            return Ok(Self::Raw);
        }
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("npy") => Ok(Self::Npy),
            Some("csv") => Ok(Self::Csv),
            Some("tet") => Ok(Self::Tet),
            Some("bin" | "raw" | "dat") | None => Ok(Self::Raw),
            Some(extension) => {
                let (name, extension) = (display_path(path), escape::name(extension));
                let known = "the extensions are .npy, .tet and .csv, and .bin, .raw or .dat for raw values";
                let message = format!("{name}: cannot write .{extension} files; {known}");
                let failure = Failure::request(message).with_location(path);
                Err(failure.with_hint("change the extension, or give the format with `--as`"))
            }
        }
    }
}
