//! The list of pages.

use tercet::core::escape;
use tercet::tatami::File;

use crate::failure::Failure;
use crate::ui::{DIM, Ui, is_interrupted, paint};

/// Prints at most `most` pages, chunk by chunk: a file may have millions.
pub(super) fn print(file: &File, most: u64, out: &mut Ui) -> Result<(), Failure> {
    let mut left = most;
    let fields = file.schema().fields();
    let name = fields.iter().map(|field| escape::name(&field.name).chars().count()).max().unwrap_or(0);
    let name = name.clamp(6, 32);
    out.line("pages:")?;
    let heads = format!(
        "  {:>5} {:<name$} {:>5} {:>8} {:>8} {:<11} {:<9} {:>10} {:>10} {:>12}",
        "group", "column", "page", "rows", "nulls", "encoding", "codec", "stored", "raw", "offset"
    );
    out.line(paint(DIM, heads))?;
    for group in 0..file.group_count() {
        for (column, field) in fields.iter().enumerate() {
            if is_interrupted() {
                return Err(Failure::Interrupted);
            }
            if left == 0 {
                return Ok(());
            }
            let pages = file.pages(group, column)?;
            let shown = usize::try_from(left).unwrap_or(usize::MAX);
            for (page, place) in pages.iter().enumerate().take(shown) {
                left -= 1;
                let header = &place.header;
                out.line(format_args!(
                    "  {group:>5} {:<name$} {page:>5} {:>8} {:>8} {:<11} {:<9} {:>10} {:>10} {:>12}",
                    escape::name(&field.name),
                    header.values,
                    header.nulls,
                    header.encoding.to_string(),
                    header.codec.to_string(),
                    header.stored_bytes,
                    header.raw_bytes,
                    place.offset,
                ))?;
            }
        }
    }
    Ok(())
}
