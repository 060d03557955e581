//! Values that a text could not tell as they are.

use tercet::core::escape;

use crate::render::{Odd, Rows};
use crate::ui::{WARN, paint};

/// A warning about a file: what was not told, and how often in each column; none if nothing was.
pub(super) fn warning(
    file: &str,
    writer: &impl Rows,
    what: &str,
    count: impl Fn(Odd) -> u64,
) -> Option<String> {
    let counted = writer.odd().map(|(column, odd)| (column, count(odd))).filter(|(_, count)| *count > 0);
    let told: Vec<String> =
        counted.map(|(column, count)| format!("{count} in `{}`", escape::name(column))).collect();
    let (warning, file) = (paint(WARN, "warning:"), escape::name(file));
    (!told.is_empty()).then(|| format!("{warning} {file}: {what}: {}", told.join(", ")))
}
