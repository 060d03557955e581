//! Writes the seeds of `corpus/tet`: small files of every kind, and some damaged ones.
//!
//! Deterministic: the seeds are the same in every run.
#![expect(clippy::disallowed_methods, reason = "the programs here are about real files")]

use std::error::Error;
use std::fs;
use std::io::Cursor;
use std::path::Path;

use tercet_core::checksum::crc32c;
use tercet_core::{ElementType, Shape, TensorView};
use tercet_fuzz::TARGETS;
use tercet_tet::{
    Compression, DatasetId, File, HistoryRow, IntegrityStatus, Layout, MemoryBudget, Writer, WriterOptions,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/tet");
    fs::create_dir_all(&dir)?;
    let mut seeds = Vec::new();
    whole(&mut seeds)?;
    damaged(&mut seeds)?;
    for (name, bytes) in &seeds {
        fs::write(dir.join(format!("{name}.tet")), bytes)?;
    }
    Ok(())
}

type Seeds = Vec<(String, Vec<u8>)>;

/// One array to be written.
struct Array(&'static str, ElementType, &'static [u64], &'static [u64]);

fn file(
    arrays: &[Array],
    options: WriterOptions,
    describe: impl FnOnce(&mut Layout, &[DatasetId]) -> Outcome<()>,
) -> Outcome<Vec<u8>> {
    let mut layout = Layout::new();
    let mut ids = Vec::new();
    for Array(name, dtype, shape, chunk_shape) in arrays {
        ids.push(layout.dataset(name, *dtype, shape, chunk_shape)?);
    }
    describe(&mut layout, &ids)?;
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, options)?;
    for (&id, Array(_, dtype, shape, _)) in ids.iter().zip(arrays) {
        let bytes = Shape::from(*shape).bytes(dtype.size()).unwrap_or(0);
        let values: Vec<u8> = (0..bytes).map(|n| (n * 37 / 5 % 64).to_le_bytes()[0]).collect();
        writer.array(id, TensorView::new(*dtype, shape, &values)?)?;
    }
    Ok(writer.finish()?.output)
}

const NOTHING: fn(&mut Layout, &[DatasetId]) -> Outcome<()> = |_, _| Ok(());

fn zstd(layout: &mut Layout, ids: &[DatasetId]) -> Outcome<()> {
    for &id in ids {
        layout.compress(id, Compression::Zstd { level: 3 })?;
    }
    Ok(())
}

fn labelled(layout: &mut Layout, ids: &[DatasetId]) -> Outcome<()> {
    layout.dims(ids[0], ["time", "x"])?;
    layout.attr(ids[0], "units", "K")?;
    layout.attr(ids[0], "_FillValue", "-999")?;
    layout.labels(ids[0], "time", (0..5).map(|n| format!("t{n}")).collect())?;
    layout.history(HistoryRow::at("create", "seed", 1_700_000_000).with_param("k", "v"))?;
    layout.file_info("seed", "0", 1_700_000_000);
    Ok(layout.memory_budget(MemoryBudget { percent_bps: 5000, bytes: 1 << 20 })?)
}

const PLANE: &[Array] = &[Array("plane", ElementType::F32, &[5, 7], &[2, 3])];

fn whole(seeds: &mut Seeds) -> Outcome<()> {
    let block = || WriterOptions::new().with_history(false);
    let bare = WriterOptions::interop;
    let mut add = |name: String, bytes| seeds.push((name, bytes));
    for dtype in ElementType::ALL {
        let arrays = &[Array("a", dtype, &[7], &[3])];
        let compressed = dtype.size() > 2;
        add(format!("{dtype}"), file(arrays, block(), if compressed { zstd } else { NOTHING })?);
    }
    add("plane-raw".into(), file(PLANE, bare(), NOTHING)?);
    add("plane-zstd".into(), file(PLANE, bare(), zstd)?);
    add("plane-block".into(), file(PLANE, block(), NOTHING)?);
    add("plane-block-zstd".into(), file(PLANE, block(), zstd)?);
    add("plane-no-statistics".into(), file(PLANE, block().with_statistics(false), NOTHING)?);
    add("plane-labels".into(), file(PLANE, bare(), labelled)?);
    add("plane-labels-block".into(), file(PLANE, block(), labelled)?);
    let rank8 = &[Array("r8", ElementType::U16, &[2, 1, 3, 1, 2, 1, 1, 2], &[1, 1, 2, 1, 2, 2, 1, 1])];
    add("rank8".into(), file(rank8, block(), NOTHING)?);
    let larger = &[Array("larger", ElementType::I32, &[3, 5], &[8, 16])];
    add("larger-chunk".into(), file(larger, bare(), NOTHING)?);
    let several = &[
        Array("odd", ElementType::U8, &[3], &[3]),
        Array("grp/f64", ElementType::F64, &[3], &[2]),
        Array("grp/ü", ElementType::F16, &[4], &[4]),
    ];
    add("several".into(), file(several, block(), |layout, ids| zstd(layout, &ids[1..2]))?);
    add("several-bare".into(), file(several, bare(), NOTHING)?);
    add("empty".into(), file(&[], bare(), NOTHING)?);
    add("empty-block".into(), file(&[], block(), NOTHING)?);
    let column = &[Array("long", ElementType::U8, &[70], &[70])];
    let long_labels = |layout: &mut Layout, ids: &[DatasetId]| {
        Ok(layout.labels(ids[0], "0", (0..70).map(|n| n.to_string()).collect())?)
    };
    add("long-labels".into(), file(column, block(), long_labels)?);
    add("by-reference".into(), by_reference(file(larger, bare(), NOTHING)?)?);
    Ok(())
}

/// A block with columns outside the footer, which our writer makes only for thousands of chunks.
fn by_reference(mut bytes: Vec<u8>) -> Outcome<Vec<u8>> {
    let row = bytes[bytes.len() - 60 - 104..bytes.len() - 60].to_vec();
    let payload = bytes[bytes.len() - 60..].to_vec();
    let mut columns = Vec::new();
    for covered in [row, payload] {
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let column = crc32c(&covered).to_le_bytes();
        columns.push(format!(r#"{{"offset":{},"len":4,"crc32c":"{:08x}"}}"#, bytes.len(), crc32c(&column)));
        bytes.extend_from_slice(&column);
    }
    let json = format!(
        r#"{{"history":[],"metadata":{{"tercet":{{"version":1,"footer_crc32c":"00000000","catalog_crc32c":"00000000","rows":1,"index_crc32c":{},"row_crc32c":{}}}}}}}"#,
        columns[0], columns[1]
    );
    add_footer(&mut bytes, &json, 1);
    let target = TARGETS.iter().find(|target| target.name == "tet_open");
    target.and_then(|target| target.recompute_checksums).ok_or("the target has no checksums")?(&mut bytes);
    let protection = File::from_bytes("seed", bytes.clone())?.integrity_status().clone();
    if protection != (IntegrityStatus::Checked { statistics: false }) {
        return Err(format!("the block was made wrongly: {protection:?}").into());
    }
    Ok(bytes)
}

/// Files with one defect, or unusual ones: starting points that mutations seldom reach.
fn damaged(seeds: &mut Seeds) -> Outcome<()> {
    let options = || WriterOptions::new().with_history(false);
    let block = file(PLANE, options(), NOTHING)?;
    let bare = file(PLANE, WriterOptions::interop(), NOTHING)?;
    let zipped = file(PLANE, options(), zstd)?;
    let index = usize::try_from(u64::from_le_bytes(bare[16..24].try_into()?))?;
    let rows = index + 32;
    let with = |bytes: &[u8], at: usize, new: &[u8]| {
        let mut bytes = bytes.to_vec();
        bytes[at..at + new.len()].copy_from_slice(new);
        bytes
    };
    let mut add = |name: &str, bytes| seeds.push((format!("bad-{name}"), bytes));
    add("cut-tail", block[..block.len() - 5].to_vec());
    add("cut-payload", bare[..bare.len() - 3].to_vec());
    add("footer-flag", with(&bare, 12, &[1]));
    add("dtype", with(&bare, 44, &[11]));
    add("rank", with(&bare, 48, &[9]));
    add("shape", with(&bare, 64, &[0xff; 8]));
    add("chunk-shape", with(&bare, 80, &[0; 8]));
    add("entry-count", with(&bare, index + 8, &[0xff; 8]));
    add("coordinates", with(&bare, rows + 8, &[0xff; 16]));
    add("offset", with(&bare, rows + 72, &[0xff; 8]));
    add("raw-length", with(&zipped, rows + 80, &[0xff; 6]));
    let payload = usize::try_from(u64::from_le_bytes(zipped[rows + 72..rows + 80].try_into()?))?;
    add("zstd-frame", with(&zipped, payload + 4, &[0xff; 4]));
    add("footer-digits", {
        let key = b"\"footer_crc32c\":\"";
        let at = block.windows(key.len()).position(|window| window == key).ok_or("no block")?;
        with(&block, at + key.len(), b"deadbeef")
    });
    // Rows in another order, which needs a lookup table: valid.
    let mut reversed = bare.clone();
    let count = (index + usize::try_from(u64::from_le_bytes(bare[24..32].try_into()?))? - rows) / 104;
    for n in 0..count {
        let from = rows + (count - 1 - n) * 104;
        reversed[rows + n * 104..rows + (n + 1) * 104].copy_from_slice(&bare[from..from + 104]);
    }
    seeds.push(("rows-reversed".into(), reversed));
    // A footer whose metadata is in a spill, as if it had not fitted: valid.
    seeds.push(("spill".into(), spilled(&bare)));
    seeds.push(("footer-version2".into(), version_2(&bare)));
    Ok(())
}

fn spilled(bare: &[u8]) -> Vec<u8> {
    let mut bytes = bare.to_vec();
    let spill = br#"{"datasets":{"plane":{"attrs":{"units":"K"},"dim_names":["y","x"]}}}"#;
    let reference = format!(
        r#"{{"history":[["note","seed","1700000000"]],"metadata_ref":{{"offset":{},"len":{}}}}}"#,
        bytes.len(),
        spill.len()
    );
    bytes.extend_from_slice(spill);
    add_footer(&mut bytes, &reference, 1);
    bytes
}

/// The newer footer of the reference, with two spills that we do not use.
fn version_2(bare: &[u8]) -> Vec<u8> {
    let mut bytes = bare.to_vec();
    let zones = b"{\"version\":1,\"chunks\":[]}\n";
    let indexes = b"{\"version\":1,\"indexes\":[]}\n";
    let json = format!(
        r#"{{"history":[],"zone_maps_ref":{{"offset":{},"len":{}}},"secondary_index_ref":{{"offset":{},"len":{}}}}}"#,
        bytes.len(),
        zones.len(),
        bytes.len() + zones.len(),
        indexes.len()
    );
    bytes.extend_from_slice(zones);
    bytes.extend_from_slice(indexes);
    add_footer(&mut bytes, &json, 2);
    bytes
}

fn add_footer(bytes: &mut Vec<u8>, json: &str, version: u32) {
    bytes[12] = 1;
    bytes.extend_from_slice(json.as_bytes());
    bytes.extend_from_slice(&(json.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes.extend_from_slice(b"THST");
}
