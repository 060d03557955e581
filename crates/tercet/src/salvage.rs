//! Salvage of damaged containers of any format.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tercet_core::publish::AtomicFile;
use tercet_core::{ByteSource, Limits, Location, Progress, ReadOptions};
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
    /// The largest sizes accepted.
    pub limits: Limits,
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

    /// Sets the largest sizes accepted.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
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
    Tgm(tgm::SalvageReport),
    /// Report of a `.tatami` file.
    Tatami(tatami::SalvageReport<PathBuf>),
}

impl SalvageReport {
    /// Whether nothing was lost.
    pub fn is_complete(&self) -> bool {
        match self {
            Self::Tet(report) => {
                report.missing.is_empty() && report.lost_datasets.is_empty() && report.notes.is_empty()
            }
            Self::Tgm(report) => !report.has_losses(),
            Self::Tatami(report) => report.lost.is_empty(),
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
        return Err(Error::OutputIsInput(tercet_core::Error::new(
            location.to_string().into(),
            OutputIsInput,
        )));
    }
    let source = crate::source::open_location(&location, ReadOptions::new().access)?;
    let format = detect_source(&source)?;
    let create = if options.overwrite { AtomicFile::create } else { AtomicFile::create_new };
    let file = create(output).map_err(|error| Error::Publish(error.into()))?;
    salvage_to(format, source, file, options, progress)
}

fn salvage_to(
    format: Format,
    source: Arc<dyn ByteSource>,
    mut file: AtomicFile,
    options: SalvageOptions,
    progress: &dyn Progress,
) -> Result<SalvageReport, Error> {
    match format {
        Format::Tet => {
            let mut with = tet::SalvageOptions::new().with_limits(options.limits);
            with.fill = options.fill;
            Ok(SalvageReport::Tet(tet::salvage(source, file, with, progress)?))
        }
        Format::Tgm => {
            let read = tgm::ReadOptions::new().with_limits(options.limits);
            let with = tgm::SalvageOptions::new().with_read(read);
            let report = tgm::salvage(source, &mut file, &with, progress)?;
            file.publish().map_err(|error| Error::Publish(error.into()))?;
            Ok(SalvageReport::Tgm(report))
        }
        Format::Tatami => {
            let read = tatami::ReadOptions::new().with_limits(options.limits);
            let with = tatami::SalvageOptions::default().with_read(read);
            Ok(SalvageReport::Tatami(tatami::salvage(source, file, with, progress)?))
        }
    }
}
