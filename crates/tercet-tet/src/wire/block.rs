//! The integrity and statistics block (`docs/spec/tet.md`, integrity block).

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};
use tercet_core::{Span, checksum::parse_hex8};

use super::ids::RUN_ROWS;

/// The bytes before the digits of `footer_crc32c`; they occur exactly once in a footer with a block.
pub(crate) const MARKER: &[u8] = br#""tercet":{"version":1,"footer_crc32c":""#;
/// The digits while the checksum is computed.
pub(crate) const ZERO_DIGITS: &[u8; 8] = b"00000000";
/// Longer columns are stored outside the JSON.
pub(crate) const INLINE_COLUMN_BYTES: u64 = 12_288;
/// Bytes of a statistics row.
pub(crate) const STATS_LEN: u64 = 48;
/// Bytes of a checksum.
pub(crate) const CRC_LEN: u64 = 4;

/// One entry per index row or run: in the JSON, or at a span of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Inline(Vec<u8>),
    At { span: Span, crc32c: u32 },
}

/// Labels of axes with more than 64 of them: dataset → axis → labels.
pub(crate) type LongLabels = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// The members of the block. Unusable columns are `None` and listed in `problems`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) catalog_crc32c: Option<u32>,
    pub(crate) rows: Option<u64>,
    pub(crate) index_crc32c: Option<Column>,
    pub(crate) row_crc32c: Option<Column>,
    pub(crate) row_stats: Option<Column>,
    pub(crate) stats_crc32c: Option<Column>,
    pub(crate) labels: LongLabels,
    pub(crate) problems: Vec<String>,
}

/// The number of runs. The rows of a run share a checksum.
pub(crate) const fn runs(rows: u64) -> u64 {
    rows.div_ceil(RUN_ROWS)
}

impl Block {
    /// Parses a block; `None` for an unknown version.
    ///
    /// Referenced columns must be inside `space`, between the end of the index and the end of the payloads.
    pub(crate) fn parse(value: &Value, rows: u64, space: Span) -> Option<Self> {
        let members = value.as_object()?;
        if members.get("version").and_then(Value::as_u64) != Some(1) {
            return None;
        }
        let hex = |name| members.get(name).and_then(Value::as_str).and_then(parse_hex8);
        let mut block = Self {
            catalog_crc32c: hex("catalog_crc32c"),
            rows: members.get("rows").and_then(Value::as_u64),
            ..Self::default()
        };
        let mut column = |name: &str, row_len: u64, count: u64| {
            let value = members.get(name)?;
            let len = row_len.checked_mul(count)?;
            match parse_column(value, len, space) {
                Ok(column) => Some(column),
                Err(reason) => {
                    block.problems.push(format!("{name}: {reason}"));
                    None
                }
            }
        };
        let index_crc32c = column("index_crc32c", CRC_LEN, runs(rows));
        let row_crc32c = column("row_crc32c", CRC_LEN, rows);
        let row_stats = column("row_stats", STATS_LEN, rows);
        let stats_crc32c = column("stats_crc32c", CRC_LEN, runs(rows));
        for (name, there) in [("index_crc32c", index_crc32c.is_some()), ("row_crc32c", row_crc32c.is_some())]
        {
            if !there && !members.contains_key(name) {
                block.problems.push(format!("{name}: is missing"));
            }
        }
        if row_stats.is_some() != stats_crc32c.is_some() && block.problems.is_empty() {
            block.problems.push("row_stats and stats_crc32c: one is present without the other".to_owned());
        }
        (block.index_crc32c, block.row_crc32c) = (index_crc32c, row_crc32c);
        // Statistics are used only if the block has no problem.
        if block.problems.is_empty() {
            (block.row_stats, block.stats_crc32c) = (row_stats, stats_crc32c);
        }
        match members.get("labels").map(|labels| serde_json::from_value(labels.clone())) {
            Some(Ok(labels)) => block.labels = labels,
            Some(Err(error)) => block.problems.push(format!("labels: {error}")),
            None => {}
        }
        Some(block)
    }

    /// The JSON of the block, with the digits of `footer_crc32c` still zero.
    pub(crate) fn to_value(&self) -> Value {
        let hex = |crc: u32| Value::String(format!("{crc:08x}"));
        let mut members = Map::new();
        members.insert("version".to_owned(), json!(1));
        members.insert("footer_crc32c".to_owned(), hex(0));
        members.insert("catalog_crc32c".to_owned(), hex(self.catalog_crc32c.unwrap_or(0)));
        members.insert("rows".to_owned(), json!(self.rows.unwrap_or(0)));
        let columns = [
            ("index_crc32c", &self.index_crc32c),
            ("row_crc32c", &self.row_crc32c),
            ("row_stats", &self.row_stats),
            ("stats_crc32c", &self.stats_crc32c),
        ];
        for (name, column) in columns {
            let value = match column {
                Some(Column::Inline(bytes)) => Value::String(BASE64.encode(bytes)),
                Some(Column::At { span, crc32c }) => {
                    json!({"offset": span.start(), "len": span.len(), "crc32c": format!("{crc32c:08x}")})
                }
                None => continue,
            };
            members.insert(name.to_owned(), value);
        }
        if !self.labels.is_empty() {
            members.insert("labels".to_owned(), json!(self.labels));
        }
        Value::Object(members)
    }
}

fn parse_column(value: &Value, len: u64, space: Span) -> Result<Column, String> {
    match value {
        Value::String(text) => {
            let bytes = BASE64.decode(text).map_err(|error| format!("bad base64: {error}"))?;
            if u64::try_from(bytes.len()) != Ok(len) {
                return Err(format!("holds {} bytes instead of {len}", bytes.len()));
            }
            Ok(Column::Inline(bytes))
        }
        Value::Object(members) => {
            let number = |name: &str| members.get(name).and_then(Value::as_u64);
            let crc32c = members.get("crc32c").and_then(Value::as_str).and_then(parse_hex8);
            let (Some(offset), Some(found), Some(crc32c)) = (number("offset"), number("len"), crc32c) else {
                return Err("is not `offset`, `len` and `crc32c`".to_owned());
            };
            if found != len {
                return Err(format!("holds {found} bytes instead of {len}"));
            }
            match Span::at(offset, len) {
                Some(span) if space.contains(span) => Ok(Column::At { span, crc32c }),
                _ => Err(format!("bytes {offset} + {len} are outside {space}")),
            }
        }
        _ => Err("is neither a string nor a span of the file".to_owned()),
    }
}

/// The position of the digits of `footer_crc32c`; `None` unless the marker occurs exactly once.
pub(crate) fn find_digits(footer: &[u8]) -> Option<std::ops::Range<usize>> {
    let mut hits = memchr::memmem::find_iter(footer, MARKER);
    let at = hits.next()?;
    if hits.next().is_some() {
        return None;
    }
    let start = at.checked_add(MARKER.len())?;
    let end = start.checked_add(ZERO_DIGITS.len())?;
    footer.get(start..end).map(|_| start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_survives_its_json() {
        let block = Block {
            catalog_crc32c: Some(0xe605_86f3),
            rows: Some(1),
            index_crc32c: Some(Column::Inline(vec![1, 2, 3, 4])),
            row_crc32c: Some(Column::At { span: Span::at(304, 4).unwrap(), crc32c: 5 }),
            row_stats: Some(Column::Inline(vec![0; 48])),
            stats_crc32c: Some(Column::Inline(vec![9; 4])),
            ..Block::default()
        };
        let value = block.to_value();
        let space = Span::between(232, 364).unwrap();
        assert_eq!(Block::parse(&value, 1, space).unwrap(), block);

        let outside = Block::parse(&value, 1, Span::between(305, 364).unwrap()).unwrap();
        assert_eq!(outside.row_crc32c, None);
        assert_eq!(outside.row_stats, None, "no statistics from a doubtful block");
        assert_eq!(outside.problems.len(), 1);
        assert_eq!(Block::parse(&json!({"version": 2}), 1, space), None);
        assert_eq!(Block::parse(&Value::Null, 1, space), None);
    }

    #[test]
    fn digits_must_be_found_once() {
        let once = [MARKER, b"00000000\"}"].concat();
        assert_eq!(find_digits(&once), Some(39..47));
        assert_eq!(find_digits(&[&once[..], &once].concat()), None);
        assert_eq!(find_digits(MARKER), None);
        assert_eq!(find_digits(b""), None);
    }
}
