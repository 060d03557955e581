//! Recomputes the checksums of a mutated file, so that mutations get past them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tercet_core::checksum::crc32c;

const MARKER: &[u8] = b"\"tercet\":{\"version\":1,\"footer_crc32c\":\"";
const CATALOG: &[u8] = b"\"catalog_crc32c\":\"";
const INDEX: &[u8] = b"\"index_crc32c\":\"";
const ROWS: &[u8] = b"\"row_crc32c\":\"";
const STATS: &[u8] = b"\"row_stats\":\"";
const STATS_CRC: &[u8] = b"\"stats_crc32c\":\"";
const SPILL: &[u8] = b"\"metadata_ref\":{\"offset\":";
const SPILL_LEN: &[u8] = b",\"len\":";

const INDEX_HEADER: usize = 32;
const ROW: usize = 104;
const RUN: usize = 1024;
const STATS_ROW: usize = 48;
const TAIL: usize = 16;

/// Recomputes every inline checksum that can be found. Other bytes are unchanged.
pub(crate) fn recompute(bytes: &mut [u8]) {
    // The footer covers the others, so it comes last.
    let _ = (rows(bytes), statistics(bytes), catalog(bytes));
    let _ = footer(bytes);
}

fn u64_at(bytes: &[u8], at: usize) -> Option<usize> {
    let field = bytes.get(at..)?.first_chunk::<8>()?;
    usize::try_from(u64::from_le_bytes(*field)).ok()
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).rposition(|window| window == what)
}

/// Overwrites text that starts right after `key`, if it ends with the current quote.
fn replace(bytes: &mut [u8], key: &[u8], text: &str) -> Option<()> {
    let start = find(bytes, key)? + key.len();
    let end = start.checked_add(text.len())?;
    if bytes.get(end) != Some(&b'"') {
        return None;
    }
    bytes.get_mut(start..end)?.copy_from_slice(text.as_bytes());
    Some(())
}

fn column(crcs: impl Iterator<Item = u32>) -> String {
    STANDARD.encode(crcs.flat_map(u32::to_le_bytes).collect::<Vec<_>>())
}

fn rows(bytes: &mut [u8]) -> Option<()> {
    let index = u64_at(bytes, 16)?;
    let count = u64_at(bytes, index.checked_add(8)?)?;
    let start = index.checked_add(INDEX_HEADER)?;
    let table = bytes.get(start..start.checked_add(count.checked_mul(ROW)?)?)?;
    let payload = |row: &[u8]| {
        let offset = u64_at(row, 72)?;
        bytes.get(offset..offset.checked_add(u64_at(row, 88)?)?).map(crc32c)
    };
    let runs = column(table.chunks(RUN * ROW).map(crc32c));
    let payloads = column(table.chunks(ROW).map(|row| payload(row).unwrap_or(0)));
    let _ = replace(bytes, INDEX, &runs);
    replace(bytes, ROWS, &payloads)
}

fn statistics(bytes: &mut [u8]) -> Option<()> {
    let start = find(bytes, STATS)? + STATS.len();
    let len = bytes.get(start..)?.iter().position(|&byte| byte == b'"')?;
    let table = STANDARD.decode(&bytes[start..start + len]).ok()?;
    let runs = column(table.chunks(RUN * STATS_ROW).map(crc32c));
    replace(bytes, STATS_CRC, &runs)
}

fn catalog(bytes: &mut [u8]) -> Option<()> {
    let datasets = bytes.get(8..)?.first_chunk::<4>()?;
    let end = if *datasets == [0; 4] { 32 } else { u64_at(bytes, 16)?.checked_add(INDEX_HEADER)? };
    let crc = crc32c(bytes.get(..end)?);
    replace(bytes, CATALOG, &format!("{crc:08x}"))
}

fn footer(bytes: &mut [u8]) -> Option<()> {
    let tail = bytes.len().checked_sub(TAIL)?;
    let json = tail.checked_sub(u64_at(bytes, tail)?)?;
    let start = json.checked_sub(spill_len(bytes.get(json..tail)?).unwrap_or(0))?;
    let covered = bytes.get_mut(start..)?;
    replace(covered, MARKER, "00000000")?;
    let crc = crc32c(covered);
    replace(covered, MARKER, &format!("{crc:08x}"))
}

fn spill_len(json: &[u8]) -> Option<usize> {
    let reference = json.get(find(json, SPILL)?..)?;
    let digits = reference.get(find(reference, SPILL_LEN)? + SPILL_LEN.len()..)?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use tercet_core::{ElementType, TensorView};
    use tercet_tet::{File, IntegrityStatus, Layout, Writer, WriterOptions};

    use super::*;

    fn protected() -> Vec<u8> {
        let mut layout = Layout::new();
        let id = layout.dataset("a", ElementType::U8, [4], [2]).unwrap();
        let sink = std::io::Cursor::new(Vec::new());
        let mut writer = Writer::new(sink, layout, WriterOptions::new()).unwrap();
        writer.array(id, TensorView::from_slice(&[4], &[1_u8, 2, 3, 4]).unwrap()).unwrap();
        writer.finish().unwrap().output
    }

    #[test]
    fn a_valid_file_is_unchanged() {
        let mut bytes = protected();
        recompute(&mut bytes);
        assert_eq!(bytes, protected());
    }

    #[test]
    fn a_changed_payload_gets_a_new_checksum() {
        let mut bytes = protected();
        let file = File::from_bytes("a", bytes.clone()).unwrap();
        let at = usize::try_from(file.row(1).unwrap().payload_offset).unwrap();
        let directory = 40;
        bytes[at] = 9;
        bytes[directory + 16] = b'b';
        assert!(File::from_bytes("a", bytes.clone()).is_err());
        recompute(&mut bytes);
        let file = File::from_bytes("a", bytes).unwrap();
        assert_eq!(*file.integrity_status(), IntegrityStatus::Checked { statistics: true });
        assert_eq!(file.dataset("b").unwrap().read_all().unwrap().bytes(), [1, 2, 9, 4]);
    }

    #[test]
    fn other_bytes_are_unchanged() {
        for bytes in [&b""[..], b"TETR", &[0xff; 200]] {
            let mut changed = bytes.to_vec();
            recompute(&mut changed);
            assert_eq!(changed, bytes);
        }
    }
}
