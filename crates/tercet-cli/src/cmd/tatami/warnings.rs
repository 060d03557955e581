//! Warnings about values that a text format cannot represent.

use tercet::core::escape;

use crate::render::{LossCounts, Rows};
use crate::ui::{WARN, paint};

/// A warning with the counts per column; `None` if all counts are zero.
pub(super) fn warning(
    file: &str,
    writer: &impl Rows,
    what: &str,
    count: impl Fn(LossCounts) -> u64,
) -> Option<String> {
    let counted =
        writer.losses().map(|(column, losses)| (column, count(losses))).filter(|(_, count)| *count > 0);
    let counts: Vec<String> =
        counted.map(|(column, count)| format!("{count} in `{}`", escape::name(column))).collect();
    let (warning, file) = (paint(WARN, "warning:"), escape::name(file));
    (!counts.is_empty()).then(|| format!("{warning} {file}: {what}: {}", counts.join(", ")))
}
