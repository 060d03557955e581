//! Selections as entered by a user.

use tercet_core::Selection;

/// The first line is a shape, `10,6,3`; the rest is parsed as a selection on it.
pub(super) fn parse(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Some((shape, selection)) = text.split_once('\n') else { return };
    let Ok(shape) = shape.split(',').map(str::parse).collect::<Result<Vec<u64>, _>>() else { return };
    match Selection::parse(selection, &shape) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(selection) => {
            assert_eq!(selection.axes().len(), shape.len());
            for (slice, &extent) in selection.axes().iter().zip(&shape) {
                assert!(slice.count() > 0, "a selection is never empty");
                assert!(slice.start <= slice.last() && slice.last() < extent, "a selection stays inside");
            }
            let whole = shape.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent));
            assert!(
                selection.shape().elements() <= whole || whole.is_none(),
                "a part is not more than the whole"
            );
        }
    }
}
