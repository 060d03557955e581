//! The coverage of outlines.

use tercet_core::Outline;

/// Checks that the leaves of an outline partition a file: they start at byte 0, each starts where the one before it
/// ends, and the last one ends at `file_len`. The error names the first leaf that does not fit.
pub fn leaves_partition(outline: &Outline, file_len: u64) -> Result<(), String> {
    let mut end = 0;
    let mut wrong = None;
    outline.walk(&mut |_, node| {
        if !node.parts.is_empty() || wrong.is_some() {
            return;
        }
        if node.span.start() != end {
            wrong = Some(format!(
                "`{}` covers bytes {}, but the leaf before it ends at {end}",
                node.name, node.span
            ));
        }
        end = node.span.end();
    });
    match wrong {
        Some(wrong) => Err(wrong),
        None if end != file_len => Err(format!("the leaves end at byte {end}, but the file at {file_len}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use tercet_core::Span;

    use super::*;

    #[test]
    fn gaps_and_overlaps_are_reported() {
        let mut root = Outline::region("file", Span::first(12));
        root.field("magic", 4, "m");
        root.field("length", 8, 12);
        assert_eq!(leaves_partition(&root, 12), Ok(()));
        assert!(leaves_partition(&root, 13).is_err());
        for start in [3, 5] {
            let mut other = root.clone();
            other.parts[1].span = Span::between(start, 12).unwrap();
            assert!(leaves_partition(&other, 12).unwrap_err().starts_with("`length` covers bytes"));
        }
    }
}
