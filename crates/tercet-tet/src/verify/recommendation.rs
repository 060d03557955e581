//! What to do about findings.

use serde::Serialize;
use tercet_core::{Finding, Severity};

use crate::Region;
use crate::error::ErrorKind;

/// Something to do about a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recommendation {
    /// The code, as `tet repair --apply` takes it.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// How it can be mended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
}

/// How something can be mended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// What the repair does.
    pub summary: String,
    /// The command that does it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// Cut a damaged footer off.
pub(crate) const FOOTER_INVALID: &str = "footer_invalid";
/// Compute the integrity block anew.
pub(crate) const RESEAL: &str = "reseal_checksums";
/// Keep the good chunks.
pub(crate) const DAMAGED_CHUNKS: &str = "damaged_chunks";

/// The recommendations for findings, each code once. `cause` is why the file could not be parsed.
/// `can_cut` tells whether its footer can be cut off.
pub(super) fn recommend(
    findings: &[Finding],
    cause: Option<&ErrorKind>,
    can_cut: bool,
    file: &str,
) -> Vec<Recommendation> {
    let mut list: Vec<Recommendation> = Vec::new();
    // Statistics of a damaged chunk are wrong because it is damaged: that is what has to be mended.
    let damage = ["tercet_payloads", "tercet_index", "chunk_decode"];
    let damaged = findings.iter().any(|finding| finding.is_failure() && damage.contains(&&*finding.code));
    for finding in findings.iter().filter(|finding| !(damaged && finding.code == "tercet_stats")) {
        let Some((code, fix)) = advise(finding, cause, can_cut, file) else { continue };
        if list.iter().any(|known| known.code == code) {
            continue;
        }
        let detail = finding.message.clone().unwrap_or_default();
        list.push(Recommendation { code, message: format!("{}: {detail}", finding.code), fix });
    }
    list
}

fn advise(
    finding: &Finding,
    cause: Option<&ErrorKind>,
    can_cut: bool,
    file: &str,
) -> Option<(&'static str, Option<Fix>)> {
    let quoted = shell_quoted(file);
    let fix =
        |summary: &str, command: String| Some(Fix { summary: summary.to_owned(), command: Some(command) });
    let manual = |summary: &str| Some(Fix { summary: summary.to_owned(), command: None });
    if finding.ok {
        let warned = finding.severity == Severity::Warning;
        return match (&*finding.code, warned) {
            ("payload_order", true) => Some((
                "non_contiguous_payloads",
                manual("harmless; rewriting the file puts payloads in order"),
            )),
            ("chunk_decode_skipped", true) => {
                Some(("run_deep_verify", fix("decode every chunk", format!("tet verify --deep {quoted}"))))
            }
            _ => None,
        };
    }
    let salvage =
        || fix("write the good chunks to a new file", format!("tet repair {quoted} --salvage OUT.tet"));
    let apply = |code: &str, summary: &str| fix(summary, format!("tet repair {quoted} --apply {code}"));
    let again = "make the file again from its source";
    match &*finding.code {
        "parse" if can_cut => {
            Some((FOOTER_INVALID, apply(FOOTER_INVALID, "cut the footer off: history and metadata are lost")))
        }
        "footer" => Some((FOOTER_INVALID, apply(FOOTER_INVALID, "cut the footer off"))),
        // The catalogue is sound: what is there of the chunks can be had.
        "parse" if cause.is_some_and(|cause| is_about_footer(cause) || is_about_row(cause)) => {
            Some(("invalid_layout", salvage()))
        }
        "parse" => Some(("invalid_layout", manual(again))),
        "chunk_dataset_ids" => Some(("bad_dataset_id", manual(again))),
        "chunk_decode" => Some(("chunk_decode_failed", salvage())),
        "tercet_payloads" | "tercet_index" => Some((DAMAGED_CHUNKS, salvage())),
        "dataset_tensor_bytes" => Some(("incomplete_dataset", salvage())),
        "payload_offsets" => Some(("shared_payloads", manual(again))),
        "footer_metadata" => Some(("metadata_limits", manual("write the file again with less metadata"))),
        "dataset_count" => Some(("dataset_count_mismatch", manual(again))),
        "chunk_coords" => Some(("duplicate_chunk_coords", salvage())),
        "tercet_catalog" | "tercet_footer" | "tercet_block" | "tercet_stats" => {
            Some((RESEAL, apply(RESEAL, "decode every chunk, then compute the checksums anew")))
        }
        _ => None,
    }
}

/// Whether a fault is of the footer, so that cutting it off mends the file.
pub(crate) fn is_about_footer(fault: &ErrorKind) -> bool {
    let ErrorKind::Malformed(malformed) = fault else { return false };
    matches!(
        malformed.site.region,
        Region::FooterTail | Region::FooterJson | Region::MetadataSpill | Region::Footer
    )
}

/// Whether a fault is of one row of the index, so that the others can be had.
fn is_about_row(fault: &ErrorKind) -> bool {
    let ErrorKind::Malformed(malformed) = fault else { return false };
    matches!(malformed.site.region, Region::IndexRow { .. })
}

/// A file name as a shell takes it.
fn shell_quoted(file: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if !file.is_empty() && file.chars().all(plain) {
        return file.to_owned();
    }
    format!("'{}'", file.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_file_names_are_quoted() {
        assert_eq!(shell_quoted("a/b.tet"), "a/b.tet");
        assert_eq!(shell_quoted("my file's.tet"), r"'my file'\''s.tet'");
    }
}
