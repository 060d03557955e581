//! Salvage of damaged containers of any format.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tercet_core::publish::AtomicFile;
use tercet_core::{ByteSource, Location, Progress, ReadOptions};
use tercet_tatami as tatami;
use tercet_tet as tet;
use tercet_tgm as tgm;

use crate::error::{Error, OutputIsInput};
use crate::format::{Format, detect_source};

/// Options of [`salvage`].
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SalvageOptions {
    /// Replace an existing output file. The damaged file itself is never replaced.
    pub overwrite: bool,
    /// The value of elements in missing chunks of a `.tet` file. Without it those chunks stay missing.
    pub fill: Option<f64>,
    /// How the damaged file is read: limits, access, threads.
    pub read: ReadOptions,
}

impl SalvageOptions {
    /// No overwriting, no fill value, default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether an existing output file is replaced.
    pub fn with_overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// Sets the value of elements in missing chunks.
    pub fn with_fill(mut self, fill: f64) -> Self {
        self.fill = Some(fill);
        self
    }

    /// Sets how the damaged file is read.
    pub fn with_read(mut self, read: ReadOptions) -> Self {
        self.read = read;
        self
    }
}

/// The result of a salvage, with the details of the format.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum SalvageReport {
    /// Report of a `.tet` file.
    Tet(tet::SalvageReport<PathBuf>),
    /// Report of a `.tgm` file.
    Tgm(tgm::SalvageReport<PathBuf>),
    /// Report of a `.tatami` file.
    Tatami(tatami::SalvageReport<PathBuf>),
}

impl SalvageReport {
    /// Whether nothing was lost.
    pub fn is_complete(&self) -> bool {
        match self {
            Self::Tet(report) => report.is_complete(),
            Self::Tgm(report) => report.is_complete(),
            Self::Tatami(report) => report.is_complete(),
        }
    }
}

/// Copies the intact parts of a damaged file of any format into a new file.
///
/// The new file appears when it is complete; an error leaves none. Rows of a `.tatami` file without footer need its schema: use
/// [`tatami::salvage()`].
pub fn salvage(
    location: impl Into<Location>,
    output: impl AsRef<Path>,
    options: SalvageOptions,
    progress: &dyn Progress,
) -> Result<SalvageReport, Error> {
    let (location, output) = (location.into(), output.as_ref());
    if let Location::Path(input) = &location
        && let (Ok(input), Ok(output)) = (input.canonicalize(), output.canonicalize())
        && input == output
    {
        return Err(Error::new(location.to_string().into(), OutputIsInput));
    }
    let source = crate::source::open_location(&location, options.read.access)?;
    let format = detect_source(&source)?;
    let create = if options.overwrite { AtomicFile::create } else { AtomicFile::create_new };
    let file = create(output)?;
    salvage_to(format, source, file, options, progress)
}

fn salvage_to(
    format: Format,
    source: Arc<dyn ByteSource>,
    file: AtomicFile,
    options: SalvageOptions,
    progress: &dyn Progress,
) -> Result<SalvageReport, Error> {
    Ok(match format {
        Format::Tet => {
            let mut with = tet::SalvageOptions::new().with_read(options.read);
            with.fill = options.fill;
            SalvageReport::Tet(tet::salvage(source, file, with, progress)?)
        }
        Format::Tgm => {
            let with = tgm::SalvageOptions::new().with_read(options.read.into());
            SalvageReport::Tgm(tgm::salvage(source, file, with, progress)?)
        }
        Format::Tatami => {
            let with = tatami::SalvageOptions::new().with_read(options.read.into());
            SalvageReport::Tatami(tatami::salvage(source, file, with, progress)?)
        }
    })
}
