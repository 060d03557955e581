//! Small files of every kind.

use std::io::Cursor;

use tercet_core::{ElementType, TensorView};
use tercet_tet::{Compression, HistoryRow, Layout, Writer, WriterOptions};

/// A small file and its content.
pub(crate) struct Sample {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    /// Dataset names and their dense bytes.
    pub(crate) arrays: Vec<(&'static str, Vec<u8>)>,
}

/// A dataset of integers that compress a little.
struct Plan {
    name: &'static str,
    dtype: ElementType,
    shape: &'static [u64],
    chunk_shape: &'static [u64],
    compression: Compression,
}

const ZSTD: Compression = Compression::Zstd { level: 3 };

fn options() -> WriterOptions {
    WriterOptions::new().with_history(false)
}

fn write(
    name: &'static str,
    plans: &[Plan],
    options: WriterOptions,
    describe: impl FnOnce(&mut Layout, &[tercet_tet::DatasetId]),
) -> Sample {
    let mut layout = Layout::new();
    let mut ids = Vec::new();
    for plan in plans {
        let id = layout.dataset(plan.name, plan.dtype, plan.shape, plan.chunk_shape).unwrap();
        layout.compress(id, plan.compression).unwrap();
        ids.push(id);
    }
    describe(&mut layout, &ids);
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, options).unwrap();
    let mut arrays = Vec::new();
    for (plan, id) in plans.iter().zip(ids) {
        let len = plan.shape.iter().product::<u64>() as usize * plan.dtype.size();
        let bytes: Vec<u8> = (0..len).map(|i| (i * 7 / 3 % 61) as u8).collect();
        writer.array(id, TensorView::new(plan.dtype, plan.shape, &bytes).unwrap()).unwrap();
        arrays.push((plan.name, bytes));
    }
    Sample { name, bytes: writer.finish().unwrap().output, arrays }
}

/// Raw chunks, clipped at the edge, with the block inline.
pub(crate) fn raw_inline() -> Sample {
    let plan = Plan {
        name: "t",
        dtype: ElementType::I32,
        shape: &[3, 5],
        chunk_shape: &[2, 3],
        compression: Compression::None,
    };
    write("raw_inline", &[plan], options(), |layout, ids| {
        layout.attr(ids[0], "units", "K").unwrap();
        layout.history(HistoryRow::at("create", "test", 1)).unwrap();
    })
}

/// Compressed chunks with the block inline.
pub(crate) fn zstd_inline() -> Sample {
    let plan =
        Plan { name: "z", dtype: ElementType::F64, shape: &[40], chunk_shape: &[16], compression: ZSTD };
    write("zstd_inline", &[plan], options(), |_, _| {})
}

/// Two datasets, raw and compressed, with padding between them and the columns after the payloads.
pub(crate) fn by_reference() -> Sample {
    let bytes = Plan {
        name: "a",
        dtype: ElementType::U8,
        shape: &[5],
        chunk_shape: &[2],
        compression: Compression::None,
    };
    let floats =
        Plan { name: "b", dtype: ElementType::F32, shape: &[2, 3], chunk_shape: &[1, 3], compression: ZSTD };
    write("by_reference", &[bytes, floats], options().with_inline_column_bytes(0), |_, _| {})
}

/// Labels of both kinds: a few in the metadata, many in the block.
pub(crate) fn labels() -> Sample {
    let plan = Plan {
        name: "l",
        dtype: ElementType::U16,
        shape: &[2, 66],
        chunk_shape: &[2, 66],
        compression: Compression::None,
    };
    write("labels", &[plan], options(), |layout, ids| {
        layout.dims(ids[0], ["t", "s"]).unwrap();
        layout.labels(ids[0], "t", vec!["x".into(), "y".into()]).unwrap();
        layout.labels(ids[0], "s", (0..66).map(|n| n.to_string()).collect()).unwrap();
    })
}

/// A file as written by the reference: no block.
pub(crate) fn interop() -> Sample {
    let raw = Plan {
        name: "t",
        dtype: ElementType::I16,
        shape: &[3, 5],
        chunk_shape: &[2, 3],
        compression: Compression::None,
    };
    let packed =
        Plan { name: "z", dtype: ElementType::F64, shape: &[20], chunk_shape: &[16], compression: ZSTD };
    write("interop", &[raw, packed], WriterOptions::interop(), |layout, ids| {
        layout.attr(ids[0], "units", "K").unwrap();
        layout.history(HistoryRow::at("create", "test", 1)).unwrap();
    })
}

/// Metadata too large for the footer JSON: a spill, block included.
pub(crate) fn spill() -> Sample {
    let plan = Plan {
        name: "s",
        dtype: ElementType::I32,
        shape: &[4],
        chunk_shape: &[3],
        compression: Compression::None,
    };
    write("spill", &[plan], options(), |layout, ids| {
        for number in 0..63 {
            layout.attr(ids[0], &format!("{number}{}", "k".repeat(60)), &"v".repeat(1000)).unwrap();
        }
        layout.history(HistoryRow::at("create", "test", 1)).unwrap();
    })
}
