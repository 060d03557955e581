//! Whether a file is well: every rule of the format, every checksum.
//!
//! Without `deep` the checksum of every record is compared and the structure is checked; with it every value is decoded and
//! held against what bounds, filters, indexes and the sort key promise about it.

mod layout;
mod values;

use std::sync::Arc;

use rayon::prelude::*;
use serde::Serialize;
use tercet_core::{ByteSource, Diagnose as _, Finding, Limits, Progress};

use crate::chunk::number;
use crate::error::{Error, ErrorKind};
use crate::file::{File, ReadOptions};
use crate::region::Region;
use crate::wire::ids::{Kind, file_flags, requires};

/// How thoroughly to look.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// Decode every value.
    pub deep: bool,
    /// The largest sizes accepted.
    pub limits: Limits,
}

impl VerifyOptions {
    /// Sets whether every value is decoded.
    pub fn with_deep(mut self, deep: bool) -> Self {
        self.deep = deep;
        self
    }

    /// Sets the limits.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

/// What was checked and found.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Whether no check failed.
    pub ok: bool,
    /// The file.
    pub file: String,
    /// Whether every value was decoded.
    pub deep: bool,
    /// Rows of the file.
    pub rows: u64,
    /// Pages whose checksum was compared.
    pub pages: u64,
    /// Other records whose checksum was compared.
    pub records: u64,
    /// What was found, in file order.
    pub findings: Vec<Finding>,
}

/// At most so many faults of one kind are listed.
const LISTED: usize = 100;

/// Verifies a file whose bytes come from `source`. An error means that its bytes could not be had; everything else is in
/// the report.
pub fn verify_source(
    source: Arc<dyn ByteSource>,
    options: VerifyOptions,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let name = Arc::clone(source.name());
    let mut report = Report {
        ok: false,
        file: name.to_string(),
        deep: options.deep,
        rows: 0,
        pages: 0,
        records: 0,
        findings: Vec::new(),
    };
    let open = ReadOptions::new().with_limits(options.limits);
    let file = match File::from_source(source, open) {
        Ok(file) => file,
        Err(error) if error.class() == tercet_core::Class::Io => return Err(error),
        Err(error) => {
            report.findings.push(Finding::fail("open", error.into_kind().to_string()));
            return Ok(report);
        }
    };
    report.rows = file.rows();
    report.findings.push(Finding::pass("header"));
    report.findings.push(Finding::pass("footer"));
    Check { file: &file, options, progress, report: &mut report }.run()?;
    report.ok = !report.findings.iter().any(Finding::is_failure);
    Ok(report)
}

/// Verifies a file on disk.
#[cfg(any(unix, windows))]
pub fn verify(
    path: &std::path::Path,
    options: VerifyOptions,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    match tercet_core::source::File::open(path) {
        Ok(source) => verify_source(Arc::new(source), options, progress),
        Err(error) => Err(Error::new(path.to_string_lossy().into(), error.into())),
    }
}

struct Check<'a> {
    file: &'a File,
    options: VerifyOptions,
    progress: &'a dyn Progress,
    report: &'a mut Report,
}

/// What came out of one part of the file.
#[derive(Debug, Default)]
struct Part {
    pages: u64,
    records: u64,
    faults: Vec<ErrorKind>,
    /// Bits of what its pages require.
    requires: u64,
}

impl Check<'_> {
    fn run(&mut self) -> Result<(), Error> {
        let inner = self.file.inner();
        if let Err(fault) = inner.check_features() {
            self.report.findings.push(Finding::fail("features", fault.to_string()));
            return Ok(());
        }
        let columns = self.file.schema().len();
        let work: Vec<(usize, usize)> = (0..self.file.group_count())
            .flat_map(|group| (0..columns).map(move |column| (group, column)))
            .collect();
        let deep = self.options.deep;
        let parts: Vec<Part> = work
            .par_iter()
            .map(|(group, column)| {
                self.progress.check()?;
                let part = if deep {
                    inner.deep_chunk(*group, *column)
                } else {
                    inner.shallow_chunk(*group, *column)
                };
                let bytes = inner.chunk(*group, *column).map_or(0, |chunk| chunk.stored_bytes);
                self.progress.advance(bytes);
                Ok(part)
            })
            .collect::<Result<_, ErrorKind>>()
            .map_err(|fault| self.file.error(fault))?;
        let mut used = 0;
        let mut faults = Vec::new();
        for part in parts {
            used |= part.requires;
            self.report.pages += part.pages;
            self.report.records += part.records;
            faults.extend(part.faults);
        }
        self.conclude("pages", faults)?;
        let mut faults = Vec::new();
        let mut records = 0;
        for blob in &inner.blobs {
            records += blob.run_count();
            blob.verify(inner, &mut |fault| faults.push(fault));
            self.progress.check().map_err(|fault| self.file.error(fault.into()))?;
        }
        self.conclude("blob runs", faults)?;
        let mut faults = Vec::new();
        for index in 0..inner.footer.dictionaries.len() {
            records += 1;
            faults.extend(inner.dictionary_payload(index).err());
        }
        self.conclude("dictionaries", faults)?;
        let mut faults = Vec::new();
        for (index, entry) in inner.footer.indexes.iter().enumerate() {
            records += 1;
            let region = Region::Bloom { index: number(index) };
            faults.extend(inner.record(region, entry.offset, Kind::Index).err());
        }
        if let Some(inverted) = &inner.footer.inverted {
            let mut parts = vec![
                ("term dictionary", inverted.term_dict_offset),
                ("postings", inverted.postings_offset),
                ("skip tables", inverted.skips_offset),
            ];
            if inverted.live_length > 0 {
                parts.push(("live documents", inverted.live_offset));
            }
            for (part, offset) in parts {
                records += 1;
                faults.extend(inner.record(Region::Inverted { part }, offset, Kind::Index).err());
            }
        }
        self.conclude("indexes", faults)?;
        if self.options.deep && inner.header.has(file_flags::ROLE_SEARCH_SEG) {
            // Every word, every list of documents, and which documents are there.
            let segment = self.file.segment();
            let walked = segment
                .and_then(|segment| segment.map_or(Ok(()), |segment| segment.for_each_term(|_, _| {})));
            self.conclude("words", walked.err().map(Error::into_kind).into_iter().collect())?;
        }
        self.report.records += records;
        let layout = layout::check(inner);
        self.report.findings.push(layout);
        self.features(used);
        Ok(())
    }

    /// One line for each fault, or one that all is well. Bytes that cannot be had end the check.
    fn conclude(&mut self, check: &'static str, faults: Vec<ErrorKind>) -> Result<(), Error> {
        if faults.is_empty() {
            self.report.findings.push(Finding::pass(check));
            return Ok(());
        }
        let count = faults.len();
        for fault in faults.into_iter().take(LISTED) {
            if fault.class() == tercet_core::Class::Io {
                return Err(self.file.error(fault));
            }
            self.report.findings.push(Finding::fail(check, fault.to_string()));
        }
        if count > LISTED {
            let more = format!("{} more faults are not listed", count - LISTED);
            self.report.findings.push(Finding::fail(check, more));
        }
        Ok(())
    }

    /// Compares what the file says it requires with what its pages use.
    fn features(&mut self, used: u64) {
        let finding = match &self.file.footer().features {
            None => Finding::warn(
                "features",
                "record headers have no checksums of their own: written by another program",
            ),
            Some(features) => {
                // Whether a blob dictionary was trained is told by its record.
                let missing = used & !features.requires;
                if missing == 0 {
                    Finding::pass("features")
                } else {
                    let names = requires::names(missing).join(", ");
                    Finding::fail("features", format!("pages need {names}, but the file does not say so"))
                }
            }
        };
        self.report.findings.push(finding);
    }
}
