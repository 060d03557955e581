//! Verification of structure, checksums and values.
//!
//! Every checksum and the structure are verified; with `deep`, every value is decoded and compared with statistics, bloom
//! filters, page indexes and the sort order.

mod layout;
mod values;

use std::sync::Arc;

use rayon::prelude::*;
use serde::Serialize;
pub use tercet_core::VerifyOptions;
use tercet_core::{ByteSource, Class, CommonError, Diagnostic as _, Finding, Progress};

use crate::chunk::number;
use crate::error::{Error, ErrorKind};
use crate::file::{File, ReadOptions};
use crate::region::Region;
use crate::search;
use crate::wire::ids::{Kind, file_flags, requires};

/// The result of a verification.
pub type Report = tercet_core::Report<Checked>;

/// The scope of a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Checked {
    /// Whether every value was decoded.
    pub deep: bool,
    /// Rows of the file.
    pub rows: u64,
    /// Verified pages.
    pub pages: u64,
    /// Other verified records.
    pub records: u64,
}

/// Maximum number of findings per check.
const MAX_FINDINGS: usize = 100;

/// Verifies a file. Fails on I/O errors only; everything else is in the report.
pub fn verify(
    source: Arc<dyn ByteSource>,
    options: VerifyOptions,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let (name, len) = (source.name().to_string(), source.len());
    let checked = Checked { deep: options.deep, ..Checked::default() };
    let read = ReadOptions::new().with_limits(options.limits).with_threads(options.threads);
    let file = match File::from_source(source, read) {
        Ok(file) => file,
        Err(error) if matches!(error.class(), Class::Io | Class::Limit) => return Err(error),
        Err(error) => {
            let finding = finding("open", &error.into_kind());
            return Ok(Report::new(name, len, vec![finding], checked));
        }
    };
    let mut check = Check { file: &file, options, progress, checked, findings: Vec::new() };
    check.checked.rows = file.rows();
    check.findings.extend([Finding::pass("header"), Finding::pass("footer")]);
    file.inner().on_threads(|| check.run())?;
    Ok(Report::new(name, len, check.findings, check.checked))
}

/// A finding of a failed check, with region and byte range.
fn finding(code: &'static str, kind: &ErrorKind) -> Finding {
    let finding = Finding::fail(code, kind.to_string());
    let (region, span) = match kind {
        ErrorKind::Common(CommonError::Malformed(malformed)) => {
            let site = &malformed.site;
            (format!("{} › {}", site.region, site.field), Some(site.span))
        }
        ErrorKind::Common(CommonError::Checksum { region, span, .. })
        | ErrorKind::Codec { region, span, .. } => (region.to_string(), Some(*span)),
        _ => return finding,
    };
    finding.with_site(region, span)
}

struct Check<'a> {
    file: &'a File,
    options: VerifyOptions,
    progress: &'a dyn Progress,
    checked: Checked,
    findings: Vec<Finding>,
}

/// The result of verifying one chunk.
#[derive(Debug, Default)]
struct Part {
    pages: u64,
    records: u64,
    faults: Vec<ErrorKind>,
    /// Features that its pages require.
    requires: u64,
}

impl Check<'_> {
    fn run(&mut self) -> Result<(), Error> {
        let inner = self.file.inner();
        if let Err(fault) = inner.check_features() {
            self.findings.push(finding("features", &fault));
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
                    inner.chunk_reader(*group, *column).verify_values()
                } else {
                    inner.chunk_reader(*group, *column).verify_pages()
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
            self.checked.pages += part.pages;
            self.checked.records += part.records;
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
        self.conclude("blob_runs", faults)?;
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
        records += self.check_search_records(&mut faults);
        self.conclude("indexes", faults)?;
        if self.options.deep && inner.header.has(file_flags::ROLE_SEARCH_SEG) {
            // All terms, posting lists and live documents.
            let segment = self.file.segment();
            let walked = segment
                .and_then(|segment| segment.map_or(Ok(()), |segment| segment.for_each_term(|_, _| {})));
            self.conclude("terms", walked.err().map(Error::into_kind).into_iter().collect())?;
        }
        let is_segment = inner.header.has(file_flags::ROLE_SEARCH_SEG);
        self.findings.push(match (is_segment, inner.footer.inverted.is_some()) {
            (true, false) => {
                Finding::fail("search", "the header declares a search segment, but there is no index")
            }
            (false, true) => {
                Finding::warn("search", "the header does not declare the search index of the file")
            }
            _ => Finding::pass("search"),
        });
        self.checked.records += records;
        let layout = layout::check(inner);
        self.findings.push(layout);
        self.features(used);
        Ok(())
    }

    /// Checks the records of a search segment that only Tercet writes; returns their number.
    fn check_search_records(&self, faults: &mut Vec<ErrorKind>) -> u64 {
        let (footer, deep) = (&self.file.inner().footer, self.options.deep);
        let mut records = 0;
        if let Some(access) = &footer.access {
            records += 1;
            faults.extend(search::access::check(self.file, access, deep).err());
        }
        if let Some(positions) = &footer.positions {
            records += 1;
            faults.extend(search::positions::check(self.file, positions, deep).err());
        }
        if let Some(headers) = &footer.page_headers {
            records += 1;
            faults.extend(search::page_headers::check(self.file, headers, deep).err());
        }
        records
    }

    /// Adds a finding per error, or a passed check. An I/O error or an exceeded limit ends the verification.
    fn conclude(&mut self, check: &'static str, faults: Vec<ErrorKind>) -> Result<(), Error> {
        if faults.is_empty() {
            self.findings.push(Finding::pass(check));
            return Ok(());
        }
        let count = faults.len();
        for fault in faults.into_iter().take(MAX_FINDINGS) {
            if matches!(fault.class(), Class::Io | Class::Limit) {
                return Err(self.file.error(fault));
            }
            self.findings.push(finding(check, &fault));
        }
        if count > MAX_FINDINGS {
            let more = format!("{} more errors", count - MAX_FINDINGS);
            self.findings.push(Finding::fail(check, more));
        }
        Ok(())
    }

    /// Compares the declared features with those that the pages use.
    fn features(&mut self, used: u64) {
        let finding = match &self.file.footer().features {
            None => Finding::warn("features", "record headers have no checksums: written by another program"),
            Some(features) => {
                // The record of a blob dictionary declares whether it is trained.
                let missing = used & !features.requires;
                if missing == 0 {
                    Finding::pass("features")
                } else {
                    let names = requires::names(missing).join(", ");
                    Finding::fail(
                        "features",
                        format!("pages require {names}, which the file does not declare"),
                    )
                }
            }
        };
        self.findings.push(finding);
    }
}
