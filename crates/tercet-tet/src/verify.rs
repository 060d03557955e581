//! [`verify`]: checks every rule of the format and every checksum.

use std::sync::Arc;

use serde::Serialize;
use tercet_core::limits::check_limit;
use tercet_core::{ByteSource, CommonError, Diagnostic as _, Finding, Progress, Site, Span, threads};

use crate::Region;
use crate::catalog::Catalog;
use crate::error::{Coords, DatasetError, Error, ErrorKind};
use crate::grid::Grid;
use crate::metadata_limits::{self, COORD_LABELS, INLINE_BYTES};
use crate::rows::{RowContext, Rows};
use crate::wire::directory::Record;
use crate::wire::ids::{MAX_RANK, RECORDS_AT, ROW_LEN, RUN_ROWS};
use crate::wire::index::{MemoryBudget, Row};

mod block;
mod footer_cut;
mod payloads;
mod recommendation;

pub(crate) use footer_cut::footer_cut_offset;
use recommendation::Evidence;
pub(crate) use recommendation::is_about_footer;
#[cfg(any(unix, windows))]
pub(crate) use recommendation::{FOOTER_INVALID, RECOMPUTE_CHECKSUMS};
pub use recommendation::{Fix, FixAction, Recommendation};
pub use tercet_core::VerifyOptions;

/// Chunks decoded by a verification that is not deep.
const QUICK_ROWS: usize = 128;

/// The result of a verification.
pub type Report = tercet_core::Report<ReportDetails>;

/// The details of a [`Report`] on a `.tet` file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReportDetails {
    /// What to do about the findings.
    pub recommendations: Vec<Recommendation>,
    /// Numbers of the file; `None` if it cannot be parsed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<ReportSummary>,
}

/// The numbers of a [`Report`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names are those of the report")]
pub struct ReportSummary {
    pub layout_version: u32,
    pub dataset_count: u32,
    pub chunk_count: u64,
    pub history_events: usize,
    pub has_metadata: bool,
    pub history_footer: bool,
    pub deep_chunk_decode: bool,
}

impl ReportDetails {
    /// Whether a repair of this code is recommended.
    pub fn recommends(&self, code: &str) -> bool {
        self.recommendations.iter().any(|recommendation| recommendation.code == code)
    }
}

/// Verifies a file: every rule of the format and every checksum.
///
/// The first 128 chunks are decoded; a deep verification decodes all of them and recomputes statistics. An error means
/// that the bytes cannot be read, or not within the limits; everything else is in the report.
#[expect(clippy::needless_pass_by_value, reason = "takes the same source as `File::from_source`")]
pub fn verify(
    source: Arc<dyn ByteSource>,
    options: VerifyOptions,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let options = options.with_limits(options.limits.for_file(source.len()));
    let mut check =
        Check { source: &source, options, progress, findings: Vec::new(), cause: None, only_missing: false };
    let outcome = threads::install(options.threads, || check.run());
    let Check { findings, cause, only_missing, .. } = check;
    let summary = outcome.map_err(|kind| Error::new(source.name().clone(), kind))?;
    // A footer can be cut off only if all payloads before it are present.
    let can_cut =
        cause.as_ref().is_some_and(is_about_footer) && footer_cut_offset(&source, &options.limits).is_ok();
    let evidence = Evidence { cause: cause.as_ref(), can_cut, only_missing };
    let recommendations = recommendation::recommend(&findings, &evidence);
    let details = ReportDetails { recommendations, summary };
    Ok(Report::new(&**source.name(), source.len(), findings, details))
}

/// A verification in progress.
struct Check<'a> {
    source: &'a dyn ByteSource,
    options: VerifyOptions,
    progress: &'a dyn Progress,
    findings: Vec<Finding>,
    /// The error of a file that cannot be parsed.
    cause: Option<ErrorKind>,
    /// Whether datasets are incomplete only because the index has no rows for some of their chunks.
    only_missing: bool,
}

/// The parsed parts of the file.
struct Context<'a> {
    catalog: &'a Catalog,
    grids: &'a [Result<Grid, DatasetError>],
    rows: &'a Rows,
    /// Every row, in index order.
    table: &'a [Row],
}

/// A field of an index row: name, offset in the row, length.
type RowField = (&'static str, u64, u64);
const DATASET_ID: RowField = ("dataset_id", 0, 8);
const CHUNK_INDEX: RowField = ("chunk_index", 8, 64);
const PAYLOAD_OFFSET: RowField = ("payload_offset", 72, 8);
const RAW_BYTE_LEN: RowField = ("raw_byte_len", 80, 8);

impl Context<'_> {
    /// A finding about a field of row `number`.
    fn at_row(&self, finding: Finding, number: usize, (field, offset, len): RowField) -> Finding {
        let row = number as u64;
        let start = self.rows.row_start(row).saturating_add(offset);
        let span = Span::at(start, len).unwrap_or(Span::empty(start));
        at(finding, Site { region: Region::IndexRow { row }, field, span })
    }

    /// A finding about the stored bytes of row `number`.
    fn at_payload(&self, finding: Finding, number: usize) -> Finding {
        let span = self.table.get(number).and_then(|row| Span::at(row.payload_offset, row.stored_byte_len));
        finding.with_site(Region::Payload { row: number as u64 }.to_string(), span)
    }

    /// A finding about the record of dataset `id`.
    fn at_record(&self, finding: Finding, id: usize) -> Finding {
        let records = &self.catalog.records;
        let start = records.iter().take(id).map(Record::encoded_len).fold(RECORDS_AT, u64::saturating_add);
        let span = records.get(id).and_then(|record| Span::at(start, record.encoded_len()));
        let index = u32::try_from(id).unwrap_or(u32::MAX);
        finding.with_site(Region::Dataset { index }.to_string(), span)
    }

    /// A finding about the metadata: in the footer JSON, or in its spill.
    fn at_metadata(&self, finding: Finding) -> Finding {
        let Some(footer) = &self.catalog.footer else { return finding };
        let (region, span) = match footer.spill {
            Some(spill) => (Region::MetadataSpill, spill),
            None => (Region::FooterJson, footer.json_span),
        };
        at(finding, Site { region, field: "metadata", span })
    }
}

/// A finding about a field.
fn at(mut finding: Finding, site: Site<Region>) -> Finding {
    finding.site = Some(site.into());
    finding
}

/// A failed check with the site of its error, if the error has one.
fn failure(check: &'static str, fault: &ErrorKind) -> Finding {
    let finding = Finding::fail(check, fault.to_string().replace("\n ", ":"));
    match fault {
        ErrorKind::Common(CommonError::Malformed(malformed)) => at(finding, malformed.site),
        ErrorKind::Common(CommonError::Checksum { region, .. })
        | ErrorKind::StaleIntegrityBlock { region, .. } => {
            finding.with_site(region.to_string(), fault.span())
        }
        _ => finding,
    }
}

impl Check<'_> {
    fn note(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    fn run(&mut self) -> Result<Option<ReportSummary>, ErrorKind> {
        let catalog = match Catalog::read(self.source, &self.options.limits) {
            Ok(catalog) => catalog,
            Err(fault) => return self.unparsable(fault),
        };
        let grids = catalog.grids();
        let rows = Rows::new(&catalog, &grids);
        let table = self.read_rows(&catalog, &grids, &rows)?;
        let context = Context { catalog: &catalog, grids: &grids, rows: &rows, table: &table };
        if let Some(fault) = first_bad_row(&context) {
            self.unparsable(fault)?;
            self.check_block(&context)?;
            return Ok(None);
        }
        for name in ["superblock", "dataset_directory", "chunk_index", "chunk_payloads"] {
            self.note(Finding::pass(name));
        }
        let sound = self.check_dataset_ids(&context) && self.check_tensors(&context);
        if !sound {
            self.check_block(&context)?;
            return Ok(None);
        }
        self.check_budget(&context);
        self.check_offsets(&context);
        self.check_coords(&context);
        self.check_order(&context);
        self.check_decode(&context)?;
        self.note(Finding::pass("dataset_count"));
        self.check_footer(&context);
        self.check_block(&context)?;
        Ok(Some(ReportSummary {
            layout_version: catalog.superblock.layout_version,
            dataset_count: catalog.superblock.dataset_count,
            chunk_count: catalog.index.entry_count,
            history_events: catalog.history().len(),
            has_metadata: catalog.footer.as_ref().is_some_and(|footer| !footer.metadata.is_empty()),
            history_footer: catalog.footer.is_some(),
            deep_chunk_decode: self.options.deep || table.len() <= QUICK_ROWS,
        }))
    }

    /// Reports that the file cannot be parsed. A failed read and an exceeded limit are errors instead.
    fn unparsable(&mut self, fault: ErrorKind) -> Result<Option<ReportSummary>, ErrorKind> {
        if fault.is_not_damage() {
            return Err(fault);
        }
        let mut finding = failure("parse", &fault);
        finding.message = Some(fault.to_string());
        self.note(finding);
        self.cause = Some(fault);
        Ok(None)
    }

    fn read_rows(
        &self,
        catalog: &Catalog,
        grids: &[Result<Grid, DatasetError>],
        rows: &Rows,
    ) -> Result<Vec<Row>, ErrorKind> {
        // The rows, and the keys by which they are sorted.
        let each = (3 * size_of::<Row>()) as u64;
        let bytes = catalog.index.entry_count.saturating_mul(each);
        check_limit("the rows of the chunk index", bytes, self.options.limits.table_bytes)?;
        let limits = &self.options.limits;
        let context = RowContext { source: self.source, checker: None, limits, grids };
        let mut table = Vec::new();
        rows.for_each(&context, |_, row| {
            table.push(row);
            Ok(())
        })?;
        Ok(table)
    }

    fn check_dataset_ids(&mut self, context: &Context<'_>) -> bool {
        let count = context.catalog.records.len() as u64;
        let bad = context.table.iter().position(|row| row.dataset_id >= count);
        self.note(match bad {
            Some(number) => {
                let id = context.table[number].dataset_id;
                let detail = format!("row {number}: dataset {id} of {count}");
                context.at_row(Finding::fail("chunk_dataset_ids", detail), number, DATASET_ID)
            }
            None => Finding::pass("chunk_dataset_ids"),
        });
        bad.is_none()
    }

    fn check_tensors(&mut self, context: &Context<'_>) -> bool {
        let mut sums = vec![(0u64, 0u64, None); context.grids.len()];
        for (number, row) in context.table.iter().enumerate() {
            // Dataset IDs were checked before.
            let id = usize::try_from(row.dataset_id).unwrap_or(usize::MAX);
            let Some((count, bytes, wrong)) = sums.get_mut(id) else { continue };
            *count += 1;
            *bytes = bytes.saturating_add(row.raw_byte_len);
            if let Ok(grid) = &context.grids[id] {
                let coords = &row.chunk_index[..grid.rank()];
                let expected = grid.linear(coords).map_or(0, |_| grid.chunk_bytes_at(coords));
                if row.raw_byte_len != expected && wrong.is_none() {
                    *wrong = Some((number, expected));
                }
            }
        }
        let (mut sound, mut only_missing) = (true, true);
        for (id, (count, bytes, wrong)) in sums.into_iter().enumerate() {
            let name = tercet_core::escape::name(&context.catalog.records[id].name);
            let of = format!("dataset {id} (\"{name}\")");
            let (mut wrong_row, mut is_missing) = (None, false);
            let problem = match (&context.grids[id], wrong) {
                (Err(reason), _) => Some(reason.to_string()),
                (Ok(grid), _) if grid.chunk_count() != count => {
                    is_missing = grid.chunk_count() > count && wrong.is_none();
                    Some(format!("{count} chunks in the index, but its grid has {}", grid.chunk_count()))
                }
                (Ok(_), Some((number, expected))) => {
                    wrong_row = Some(number);
                    let row = &context.table[number];
                    let coords = Coords(&row.chunk_index[..context.catalog.records[id].shape.len()]);
                    Some(format!(
                        "row {number}, chunk {coords}: raw_byte_len is {}, but the chunk has {expected} bytes",
                        row.raw_byte_len
                    ))
                }
                (Ok(grid), None) if grid.bytes() != bytes => {
                    Some(format!("its chunks have {bytes} bytes in total instead of {}", grid.bytes()))
                }
                (Ok(_), None) => None,
            };
            sound &= problem.is_none();
            only_missing &= problem.is_none() || is_missing;
            self.note(match problem {
                Some(problem) => {
                    let finding = Finding::fail("dataset_tensor_bytes", format!("{of}: {problem}"));
                    match wrong_row {
                        Some(number) => context.at_row(finding, number, RAW_BYTE_LEN),
                        None => context.at_record(finding, id),
                    }
                }
                None => Finding::pass("dataset_tensor_bytes")
                    .with_message(format!("{of}: {count} chunk(s), {bytes} B")),
            });
        }
        self.only_missing = only_missing && !sound;
        sound
    }

    fn check_offsets(&mut self, context: &Context<'_>) {
        let mut offsets: Vec<(u64, usize)> =
            context.table.iter().enumerate().map(|(number, row)| (row.payload_offset, number)).collect();
        offsets.sort_unstable();
        if let Some(pair) = offsets.array_windows().find(|[a, b]| a.0 == b.0) {
            let [(offset, first), (_, second)] = pair;
            let detail = format!("rows {first} and {second} share payload_offset {offset}");
            let finding = Finding::fail("payload_offsets", detail);
            self.note(context.at_row(finding, *second, PAYLOAD_OFFSET));
        }
    }

    fn check_coords(&mut self, context: &Context<'_>) {
        let key = |row: &Row| -> (u64, [u64; MAX_RANK]) {
            let rank = context.catalog.records[usize::try_from(row.dataset_id).unwrap_or(0)].shape.len();
            let mut coords = row.chunk_index;
            coords[rank..].fill(0);
            (row.dataset_id, coords)
        };
        let mut keys: Vec<_> =
            context.table.iter().enumerate().map(|(number, row)| (key(row), number)).collect();
        keys.sort_unstable();
        self.note(match keys.array_windows().find(|[a, b]| a.0 == b.0) {
            Some([(_, first), (_, second)]) => {
                let detail = format!("rows {first} and {second} are the same chunk");
                context.at_row(Finding::fail("chunk_coords", detail), *second, CHUNK_INDEX)
            }
            None => Finding::pass("chunk_coords"),
        });
    }

    fn check_order(&mut self, context: &Context<'_>) {
        let follows = |[a, b]: &[Row; 2]| {
            let end = a.payload_offset.saturating_add(a.stored_byte_len);
            let gap = b.payload_offset.checked_sub(end);
            // A dataset may start at the next multiple of 8, after padding.
            let aligned = a.dataset_id != b.dataset_id && b.payload_offset.is_multiple_of(8);
            gap.is_some_and(|gap| gap == 0 || (aligned && gap < 8))
        };
        if let Some(number) = context.table.array_windows().position(|pair| !follows(pair)) {
            let detail = format!("row {} does not follow row {number} in the file", number + 1);
            let finding = Finding::warn("payload_order", detail);
            self.note(context.at_row(finding, number + 1, PAYLOAD_OFFSET));
        }
    }

    fn check_decode(&mut self, context: &Context<'_>) -> Result<(), ErrorKind> {
        let rows = context.table.len();
        let decoded = if self.options.deep { rows } else { rows.min(QUICK_ROWS) };
        if decoded < rows {
            let detail = format!("decoded {decoded} of {rows} chunk(s)");
            self.note(Finding::warn("chunk_decode_skipped", detail));
        }
        let bad = payloads::undecodable(self, context, decoded)?;
        self.note(match bad.first() {
            None => Finding::pass("chunk_decode").with_message(format!("decoded {decoded} chunk(s)")),
            Some(first) => context.at_payload(Finding::fail("chunk_decode", payloads::list(&bad)), first.row),
        });
        Ok(())
    }

    fn check_footer(&mut self, context: &Context<'_>) {
        let Some(footer) = &context.catalog.footer else {
            self.note(Finding::pass("footer").with_message("absent"));
            self.note(Finding::pass("footer_metadata"));
            return;
        };
        self.note(Finding::pass("footer").with_message("history footer valid"));
        let mut violations: Vec<String> = metadata_limits::check_history(&footer.json.history)
            .iter()
            .chain(&metadata_limits::check_metadata(&footer.metadata, false))
            .map(ToString::to_string)
            .collect();
        if footer.json_span.len() > INLINE_BYTES as u64 {
            violations.push(format!(
                "footer JSON: {} bytes, at most {INLINE_BYTES} allowed",
                footer.json_span.len()
            ));
        }
        let ends = context.table.iter().map(|row| row.payload_offset.saturating_add(row.stored_byte_len));
        let rows_end = ends.max().unwrap_or(0);
        if footer.spill.is_some_and(|spill| spill.start() < rows_end) {
            violations.push(format!("metadata spill overlaps payloads, which end at {rows_end}"));
        }
        let more = violations.len().saturating_sub(1);
        self.note(match violations.first() {
            None => Finding::pass("footer_metadata"),
            Some(first) => {
                let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
                context.at_metadata(Finding::fail("footer_metadata", format!("{first}{more}")))
            }
        });
        self.check_label_counts(context, &footer.metadata);
        if footer.tail.history_version == 2 {
            let index_end = context.catalog.head_end();
            for (name, span) in footer.json.zone_spills(index_end, footer.json_span) {
                if span.is_none() {
                    let field = if name == "zone_maps" { "zone_maps_ref" } else { "secondary_index_ref" };
                    let site = Site { region: Region::FooterJson, field, span: footer.json_span };
                    let finding = Finding::warn(name, "its span is outside the file; ignored");
                    self.note(at(finding, site));
                }
            }
        }
    }

    /// More than 64 labels in `coords` are valid and can be read here, but the reference implementation rejects them.
    fn check_label_counts(&mut self, context: &Context<'_>, metadata: &crate::Metadata) {
        let axes = metadata.datasets.iter().flat_map(|(name, info)| {
            info.coords.iter().map(move |(axis, coord)| (name, axis, coord.labels.len()))
        });
        if let Some((name, axis, count)) = axes.into_iter().find(|(_, _, count)| *count > COORD_LABELS) {
            let (name, axis) = (tercet_core::escape::name(name), tercet_core::escape::name(axis));
            let detail = format!(
                "axis `{axis}` of dataset `{name}` has {count} labels; the reference implementation allows at most \
                 {COORD_LABELS}"
            );
            self.note(context.at_metadata(Finding::warn("label_count", detail)));
        }
    }

    fn check_budget(&mut self, context: &Context<'_>) {
        let bps = context.catalog.index.budget.percent_bps;
        if bps > MemoryBudget::MAX_PERCENT_BPS {
            let start = context.catalog.superblock.chunk_index_offset.saturating_add(16);
            let span = Span::at(start, 2).unwrap_or(Span::empty(start));
            let field = "memory_budget_percent_bps";
            let detail =
                format!("{bps} is more than all memory ({}), which counts", MemoryBudget::MAX_PERCENT_BPS);
            let site = Site { region: Region::IndexHeader, field, span };
            self.note(at(Finding::warn("memory_budget", detail), site));
        }
    }
}

/// The error of the first invalid row.
fn first_bad_row(context: &Context<'_>) -> Option<ErrorKind> {
    let payload_end = context.catalog.payload_end;
    (0..).zip(context.table).find_map(|(number, row)| {
        let start = context.rows.row_start(number);
        row.check(number, start, payload_end).err().map(ErrorKind::from)
    })
}

/// The rows of a run as a region, and their bytes.
fn run_site(context: &Context<'_>, run: u64) -> (Region, Span) {
    let first = run.saturating_mul(RUN_ROWS);
    let end = first.saturating_add(RUN_ROWS).min(context.catalog.index.entry_count);
    let start = context.rows.row_start(first);
    let span = Span::at(start, (end - first).saturating_mul(ROW_LEN)).unwrap_or(Span::empty(start));
    (Region::IndexRun { first, end }, span)
}

/// The rows of some runs, as `0..1024`.
fn run_list(runs: &[u64], rows: u64) -> String {
    let text = |run: &u64| {
        let first = run * RUN_ROWS;
        format!("{first}..{}", (first + RUN_ROWS).min(rows))
    };
    runs.iter().take(8).map(text).collect::<Vec<_>>().join(", ")
}
