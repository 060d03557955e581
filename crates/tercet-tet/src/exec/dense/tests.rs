use tercet_core::progress::NoProgress;
use tercet_core::{Class, Diagnostic as _, Selection};

use super::*;
use crate::File;
use crate::exec::testing::{layout, read_by_position};

/// Pieces are compared with the checksum of their chunk when all of it was visited. What remains is checked before the
/// result is used.
#[test]
fn partly_visited_chunks_are_checked() {
    let (shape, size) = ([8u64, 8], size_of::<f32>());
    let values: Vec<f32> = (0..64u8).map(f32::from).collect();
    let intact = layout(&shape, &shape, &values, false);
    let first =
        File::from_bytes("a", intact.clone()).unwrap().dataset("a").unwrap().chunk_ref(&[0, 0]).unwrap();
    // The damage is in the rows that are read, or in the others.
    for damaged in [None, Some(0), Some(255)] {
        let mut bytes = intact.clone();
        if let Some(offset) = damaged {
            bytes[to_usize(first.span.start()) + offset] ^= 1;
        }
        for file in [File::from_bytes("a", bytes.clone()).unwrap(), read_by_position(bytes)] {
            let dataset = file.dataset("a").unwrap();
            let scope = Scope {
                dataset,
                grid: dataset.grid().unwrap(),
                selection: &Selection::full(&shape),
                planned: None,
                positions: None,
                reversed: &[],
                progress: &NoProgress,
                counters: None,
                parallel: false,
            };
            let visitor = visitor(scope);
            let mut out = vec![0; 4 * 8 * size];
            write(&visitor, &[0..4, 0..8], &mut out, &Copy { size }).unwrap();
            let checked = visitor.chunks.finish();
            assert_eq!(checked.err().map(|error| error.class()), damaged.map(|_| Class::Corrupt));
        }
    }
}
