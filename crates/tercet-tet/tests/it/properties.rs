//! Written arrays are read back, for every way of writing and reading.

use std::io::Cursor;

use proptest::prelude::*;
use tercet_core::progress::NoProgress;
use tercet_core::{Selection, TensorView};
use tercet_tet::{
    Access, Dataset, DatasetId, File, HistoryRow, IntegrityStatus, Layout, ReadOptions, Rewrite, Writer,
    WriterOptions,
};

use crate::arrays::{Array, any_array, assert_stats, naive_stats};

/// One to three arrays of different names.
fn any_arrays() -> impl Strategy<Value = Vec<Array>> {
    (any_array("a"), any_array("b/long name"), any_array("ç"), 1usize..=3).prop_map(|(a, b, c, count)| {
        let mut all = vec![a, b, c];
        all.truncate(count);
        all
    })
}

/// One triple per axis: start, length and step of a selection.
fn any_slices() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
    prop::collection::vec((any::<u64>(), any::<u64>(), prop_oneof![1u64..6, 1u64..100]), 8)
}

fn layout_of(arrays: &[Array]) -> (Layout, Vec<DatasetId>) {
    let mut layout = Layout::new();
    let ids = arrays.iter().map(|array| add(&mut layout, array)).collect();
    (layout, ids)
}

fn add(layout: &mut Layout, array: &Array) -> DatasetId {
    let id = layout.dataset(&array.name, array.dtype, &array.shape, &array.chunk_shape).unwrap();
    layout.compress(id, array.compression).unwrap();
    id
}

fn options() -> WriterOptions {
    WriterOptions::new().with_history(false)
}

fn write(arrays: &[Array], options: WriterOptions) -> Vec<u8> {
    let (layout, ids) = layout_of(arrays);
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, options).unwrap();
    for (id, array) in ids.into_iter().zip(arrays) {
        writer.array(id, array.view()).unwrap();
    }
    writer.finish().unwrap().output
}

/// Writes chunk by chunk, in the given order.
fn write_chunks(arrays: &[Array], options: WriterOptions, order: u64) -> Vec<u8> {
    let (layout, ids) = layout_of(arrays);
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, options).unwrap();
    let chunks = arrays.iter().zip(ids);
    let mut chunks: Vec<_> = chunks
        .flat_map(|(array, id)| array.chunks().into_iter().map(move |coords| (id, array, coords)))
        .collect();
    let mut state = order | 1;
    for left in (1..=chunks.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (id, array, (coords, axes)) = chunks.swap_remove((state >> 33) as usize % left);
        let shape: Vec<u64> = axes.iter().map(|slice| slice.count()).collect();
        let bytes = array.naive(&axes);
        writer.chunk(id, &coords, TensorView::new(array.dtype, &shape, &bytes).unwrap()).unwrap();
    }
    writer.finish().unwrap().output
}

fn open(bytes: &[u8]) -> File {
    File::from_bytes("m", bytes.to_vec()).unwrap_or_else(|error| panic!("{error}"))
}

/// Asserts that every read of an array equals that of the naive implementation.
fn check_dataset(dataset: &Dataset<'_>, array: &Array, slices: &[(u64, u64, u64)]) {
    assert_eq!(dataset.read_all().unwrap().bytes(), array.bytes);

    let selection = array.selection(slices);
    let expected = array.naive(selection.axes());
    assert_eq!(dataset.read(&selection).unwrap().bytes(), expected, "{selection:?}");
    let mut buffer = vec![0xa5; expected.len()];
    dataset.read_into(&selection, &mut buffer, &NoProgress).unwrap();
    assert_eq!(buffer, expected, "{selection:?}");

    let export = dataset.export(&selection).unwrap();
    assert_eq!(export.bytes(), expected.len() as u64);
    let mut out = Cursor::new(b"head".to_vec());
    export.write_at(&mut out, 4, &NoProgress).unwrap();
    assert_eq!(out.get_ref()[..], [&b"head"[..], &expected].concat());
    if export.is_sequential() {
        let mut out = Vec::new();
        export.stream(&mut out, &NoProgress).unwrap();
        assert_eq!(out, expected);
    }
}

/// Asserts that every chunk equals a slice of the array, with its statistics.
fn check_chunks(dataset: &Dataset<'_>, array: &Array, with_stats: bool) {
    for (coords, axes) in array.chunks() {
        let expected = array.naive(&axes);
        let chunk = dataset.chunk(&coords).unwrap();
        assert_eq!(chunk.bytes()[..], expected);
        let stats = dataset.chunk_stats(&coords).unwrap();
        assert_eq!(stats.is_some(), with_stats);
        if let Some(stats) = stats {
            assert_stats(stats, naive_stats(array.dtype, &expected), array.dtype, &expected);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(96)))]

    #[test]
    fn written_arrays_round_trip(arrays in any_arrays(), slices in any_slices()) {
        let file = open(&write(&arrays, options()));
        prop_assert_eq!(file.integrity_status(), &IntegrityStatus::Checked { statistics: true });
        for array in &arrays {
            let dataset = file.dataset(&array.name).unwrap();
            check_dataset(&dataset, array, &slices);
            check_chunks(&dataset, array, true);
        }
    }

    #[test]
    fn every_access_mode_reads_the_same_values(arrays in any_arrays(), slices in any_slices()) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.tet");
        let bytes = write(&arrays, options());
        std::fs::write(&path, &bytes).unwrap();
        for access in [Access::Mmap, Access::Pread] {
            for ignore in [false, true] {
                let options = ReadOptions::new().with_access(access).with_verify(!ignore);
                let file = File::open_with(&path, options).unwrap();
                for array in &arrays {
                    let dataset = file.dataset(&array.name).unwrap();
                    check_dataset(&dataset, array, &slices);
                    check_chunks(&dataset, array, !ignore);
                }
            }
        }
    }

    #[test]
    fn every_file_layout_holds_the_same_values(arrays in any_arrays(), slices in any_slices()) {
        let forms = [
            WriterOptions::interop(),
            options().with_checksums(false),
            options().with_statistics(false),
            options().with_inline_column_bytes(0),
        ];
        for form in forms {
            let file = open(&write(&arrays, form));
            for array in &arrays {
                let dataset = file.dataset(&array.name).unwrap();
                check_dataset(&dataset, array, &slices);
                check_chunks(&dataset, array, form.checksums && form.statistics);
            }
        }
        if arrays.len() == 1 {
            let bare = write(&arrays, options().with_checksums(false));
            prop_assert_eq!(bare, write(&arrays, WriterOptions::interop()));
        }
    }

    #[test]
    fn chunks_can_be_written_in_any_order(arrays in any_arrays(), order in any::<u64>()) {
        let bytes = write_chunks(&arrays, options(), order);
        let file = open(&bytes);
        for array in &arrays {
            let dataset = file.dataset(&array.name).unwrap();
            prop_assert!(dataset.read_all().unwrap().bytes() == array.bytes, "{}", array.name);
            check_chunks(&dataset, array, true);
        }
        let raw = arrays.iter().all(|array| array.compression == tercet_tet::Compression::None);
        if raw {
            prop_assert!(bytes == write(&arrays, options()), "raw chunks have their places from the start");
        }
    }

    #[test]
    fn results_do_not_depend_on_threads(arrays in any_arrays(), slices in any_slices()) {
        let mut first = None;
        for threads in [1, 2, 3, 8] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let bytes = pool.install(|| write(&arrays, options()));
            pool.install(|| {
                let file = open(&bytes);
                for array in &arrays {
                    check_dataset(&file.dataset(&array.name).unwrap(), array, &slices);
                }
            });
            prop_assert!(*first.get_or_insert_with(|| bytes.clone()) == bytes, "{} threads", threads);
        }
    }

    #[test]
    fn mismatched_selections_are_rejected(array in any_array("a"), slices in any_slices()) {
        let file = open(&write(std::slice::from_ref(&array), options()));
        let dataset = file.dataset("a").unwrap();
        let larger: Vec<u64> = array.shape.iter().map(|extent| extent + 1).collect();
        prop_assert!(dataset.read(&Selection::full(&larger)).is_err());
        prop_assert!(dataset.export(&Selection::full(&larger)).is_err());
        let deeper = [&array.shape[..], &[1]].concat();
        prop_assert!(dataset.read(&Selection::full(&deeper)).is_err());
        let selection = array.selection(&slices);
        let mut short = vec![0; array.naive(selection.axes()).len() - 1];
        prop_assert!(dataset.read_into(&selection, &mut short, &NoProgress).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(48)))]

    #[test]
    fn append_keeps_every_old_bit(arrays in any_arrays(), interop in any::<bool>(), inline in any::<bool>()) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.tet");
        let (old, new) = arrays.split_at(arrays.len() - 1);
        let form = if interop { WriterOptions::interop() } else { options() };
        std::fs::write(&path, write(old, form)).unwrap();
        let append_options =
            if inline { WriterOptions::new() } else { WriterOptions::new().with_inline_column_bytes(0) };

        let mut rewrite = Rewrite::open(&path).unwrap();
        let id = add(rewrite.layout(), &new[0]);
        let mut writer = rewrite.start(HistoryRow::at("append", "test", 1), append_options, &NoProgress).unwrap();
        writer.array(id, new[0].view()).unwrap();
        writer.finish().unwrap();

        let file = File::open(&path).unwrap();
        prop_assert_eq!(file.integrity_status(), &IntegrityStatus::Checked { statistics: true });
        prop_assert_eq!(file.datasets().len(), arrays.len());
        prop_assert_eq!(&*file.history().last().unwrap().op, "append");
        for array in &arrays {
            let dataset = file.dataset(&array.name).unwrap();
            prop_assert!(dataset.read_all().unwrap().bytes() == array.bytes, "{}", array.name);
            check_chunks(&dataset, array, true);
        }
    }

    #[test]
    fn drop_keeps_every_other_bit(arrays in any_arrays(), which in any::<usize>(), interop in any::<bool>()) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.tet");
        let form = if interop { WriterOptions::interop() } else { options() };
        std::fs::write(&path, write(&arrays, form)).unwrap();
        let dropped = &arrays[which % arrays.len()].name;

        let mut rewrite = Rewrite::open(&path).unwrap();
        rewrite.drop_dataset(dropped).unwrap();
        prop_assert!(rewrite.drop_dataset(dropped).is_err());
        rewrite.start(HistoryRow::at("drop", "test", 1), WriterOptions::new(), &NoProgress).unwrap().finish().unwrap();

        let file = File::open(&path).unwrap();
        prop_assert!(file.dataset(dropped).is_err());
        prop_assert_eq!(file.datasets().len(), arrays.len() - 1);
        for array in arrays.iter().filter(|array| array.name != *dropped) {
            let dataset = file.dataset(&array.name).unwrap();
            prop_assert!(dataset.read_all().unwrap().bytes() == array.bytes, "{}", array.name);
            check_chunks(&dataset, array, true);
        }
        // The rest equals a file written without it.
        let rest: Vec<Array> = arrays.iter().filter(|array| array.name != *dropped).cloned().collect();
        let mut rewrite = Rewrite::open(&path).unwrap();
        prop_assert_eq!(rewrite.layout().chunk_count(), rest.iter().map(|a| a.chunks().len() as u64).sum::<u64>());
    }
}
