//! Recommendations: what to do about findings.

use serde::Serialize;
use tercet_core::{CommonError, Finding, Severity};

use crate::Region;
use crate::error::ErrorKind;

/// A recommendation of a verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recommendation {
    /// The code of the problem. [`RepairOptions::apply`](crate::RepairOptions::apply) takes the codes in
    /// [`REPAIRABLE`](crate::REPAIRABLE).
    pub code: &'static str,
    /// The problem.
    pub message: String,
    /// How to fix the problem.
    pub fix: Fix,
}

/// How to fix a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// The fix in words.
    pub summary: &'static str,
    /// The operation that does it; `None` if no operation of this crate does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<FixAction>,
}

/// An operation that fixes a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FixAction {
    /// A deep verification.
    VerifyDeep,
    /// The in-place repair of the same code: [`repair`](crate::repair()).
    Repair,
    /// A copy of the intact chunks: [`salvage`](crate::salvage()).
    Salvage,
    /// A copy of the intact chunks with a value for the elements of the missing ones:
    /// [`SalvageOptions::fill`](crate::SalvageOptions::fill).
    Fill,
}

/// What a verification found out beyond its findings.
pub(super) struct Evidence<'a> {
    /// The error of a file that cannot be parsed.
    pub(super) cause: Option<&'a ErrorKind>,
    /// Whether the footer can be cut off.
    pub(super) can_cut: bool,
    /// Whether incomplete datasets only lack chunks, which no copy brings back.
    pub(super) only_missing: bool,
}

/// Cut off a damaged footer.
pub(crate) const FOOTER_INVALID: &str = "footer_invalid";
/// Recompute the integrity block.
pub(crate) const RECOMPUTE_CHECKSUMS: &str = "recompute_checksums";
/// Copy the intact chunks.
pub(crate) const DAMAGED_CHUNKS: &str = "damaged_chunks";

/// The recommendations for findings, each code once.
pub(super) fn recommend(findings: &[Finding], evidence: &Evidence<'_>) -> Vec<Recommendation> {
    let mut list: Vec<Recommendation> = Vec::new();
    // Statistics of a damaged chunk differ because the chunk is damaged: only the chunk needs a repair.
    let damage = ["tercet_payloads", "tercet_index", "chunk_decode"];
    let damaged = findings.iter().any(|finding| finding.is_failure() && damage.contains(&&*finding.code));
    for finding in findings.iter().filter(|finding| !(damaged && finding.code == "tercet_stats")) {
        let Some((code, fix)) = find_fix(finding, evidence) else { continue };
        if list.iter().any(|known| known.code == code) {
            continue;
        }
        let message = finding.message.as_deref().unwrap_or_default();
        list.push(Recommendation { code, message: format!("{}: {message}", finding.code), fix });
    }
    list
}

fn find_fix(finding: &Finding, evidence: &Evidence<'_>) -> Option<(&'static str, Fix)> {
    let &Evidence { cause, can_cut, only_missing } = evidence;
    let manual = |summary| Fix { summary, action: None };
    if finding.ok {
        let warned = finding.severity == Severity::Warning;
        return match (&*finding.code, warned) {
            ("payload_order", true) => Some((
                "non_contiguous_payloads",
                manual("harmless; rewriting the file puts payloads in order"),
            )),
            ("chunk_decode_skipped", true) => {
                let fix = Fix { summary: "decode every chunk", action: Some(FixAction::VerifyDeep) };
                Some(("run_deep_verify", fix))
            }
            _ => None,
        };
    }
    let salvage = Fix { summary: "copy the intact chunks into a new file", action: Some(FixAction::Salvage) };
    let repair = |summary| Fix { summary, action: Some(FixAction::Repair) };
    let recreate = manual("create the file again from its source");
    match &*finding.code {
        "parse" if can_cut => {
            Some((FOOTER_INVALID, repair("truncate the footer: history and metadata are lost")))
        }
        "footer" => Some((FOOTER_INVALID, repair("truncate the footer"))),
        // The catalog is intact, so intact chunks can be found.
        "parse" if cause.is_some_and(|cause| is_about_footer(cause) || is_about_row(cause)) => {
            Some(("invalid_layout", salvage))
        }
        "parse" => Some(("invalid_layout", recreate)),
        "chunk_dataset_ids" => Some(("bad_dataset_id", recreate)),
        "chunk_decode" => Some(("chunk_decode_failed", salvage)),
        "tercet_payloads" | "tercet_index" => Some((DAMAGED_CHUNKS, salvage)),
        "dataset_tensor_bytes" if only_missing => {
            let summary =
                "the missing chunks are lost; copy the others, with a fill value for the lost elements";
            Some(("incomplete_dataset", Fix { summary, action: Some(FixAction::Fill) }))
        }
        "dataset_tensor_bytes" => Some(("incomplete_dataset", salvage)),
        "payload_offsets" => Some(("shared_payloads", recreate)),
        "footer_metadata" => Some(("metadata_limits", manual("write the file again with less metadata"))),
        "dataset_count" => Some(("dataset_count_mismatch", recreate)),
        "chunk_coords" => Some(("duplicate_chunk_coords", salvage)),
        "tercet_catalog" | "tercet_footer" | "tercet_block" | "tercet_stats" => {
            Some((RECOMPUTE_CHECKSUMS, repair("decode every chunk, then recompute the checksums")))
        }
        _ => None,
    }
}

/// Whether an error is about the footer, so that cutting it off repairs the file.
pub(crate) fn is_about_footer(fault: &ErrorKind) -> bool {
    let ErrorKind::Common(CommonError::Malformed(malformed)) = fault else { return false };
    matches!(
        malformed.site.region,
        Region::FooterTail | Region::FooterJson | Region::MetadataSpill | Region::Footer
    )
}

/// Whether an error is about one index row, so that the others can be used.
fn is_about_row(fault: &ErrorKind) -> bool {
    let ErrorKind::Common(CommonError::Malformed(malformed)) = fault else { return false };
    matches!(malformed.site.region, Region::IndexRow { .. })
}
