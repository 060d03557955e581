//! The entry of one file in the manifest of a collection.
//!
//! ```text
//! str path │ 16 bytes id │ uvarint rows, bytes │ str sort_column, u8 type, bytes min, bytes max
//! uvarint zones: str column, u8 type, bytes min, bytes max │ u8 tier │ uvarint crawls: str │ uvarint created │ u32 footer CRC
//! ```

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use tercet_core::{FieldReader, Malformed};

use crate::file::File;
use crate::region::Region;
use crate::scalar::Scalar;
use crate::scan::RowSelection;
use crate::schema::Type;
use crate::wire::cursor::{Varints as _, put, put_bytes};

/// The ID of a member.
pub type MemberId = [u8; 16];

/// A member of a collection: path, ID, rows and statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Member {
    /// The path relative to the root of the collection.
    pub path: String,
    /// The ID.
    pub id: MemberId,
    /// Its rows.
    pub rows: u64,
    /// Its bytes.
    pub bytes: u64,
    /// The sort key column; empty if unsorted.
    pub sort_column: String,
    /// The type ID of that column.
    pub sort_type: u8,
    /// The minimum of the sort key.
    pub sort_min: Vec<u8>,
    /// The maximum of the sort key.
    pub sort_max: Vec<u8>,
    /// Statistics of the columns.
    pub zones: Vec<MemberZone>,
    /// The tier.
    pub tier: u8,
    /// Where its rows came from.
    pub crawls: Vec<String>,
    /// Creation time in milliseconds since 1970; 0 if unknown.
    pub created_millis: u64,
    /// The checksum of its footer.
    pub footer_crc: u32,
    /// Deleted rows. They are in the file, but not in the collection.
    pub deleted: Arc<RowSelection>,
    /// Fields of later versions, preserved.
    pub(super) rest: Vec<u8>,
}

/// Statistics of one column of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberZone {
    /// The column.
    pub column: String,
    /// Its type ID.
    pub kind: u8,
    /// The minimum.
    pub min: Vec<u8>,
    /// The maximum.
    pub max: Vec<u8>,
}

impl Member {
    /// The entry of a file at `path` in the collection, from its footer.
    pub fn describe(path: &str, file: &File) -> Self {
        let fields = file.schema().fields();
        let sort_key = file.schema().sort_key();
        let bounds = sort_key.and_then(|column| {
            let kind = fields[column].kind;
            let groups = file.footer().groups.iter();
            let zones = groups.filter_map(|group| group.bounds.as_ref());
            widest(kind, zones.map(|zone| (&zone.min[..], &zone.max[..])))
        });
        let sorted = sort_key.zip(bounds);
        let zones = fields.iter().enumerate().filter_map(|(column, field)| {
            let chunks = file.footer().groups.iter().filter_map(|group| group.chunks.get(column));
            let zones = chunks.filter_map(|chunk| chunk.zone.as_ref());
            let (min, max) = widest(field.scalar(), zones.map(|zone| (&zone.min[..], &zone.max[..])))?;
            Some(MemberZone { column: field.name.to_string(), kind: field.kind.id(), min, max })
        });
        Self {
            path: path.to_owned(),
            id: member_id(path, file),
            rows: file.rows(),
            bytes: file.len(),
            sort_column: sorted.as_ref().map_or_else(String::new, |(key, _)| fields[*key].name.to_string()),
            sort_type: sorted.as_ref().map_or(0, |(key, _)| fields[*key].kind.id()),
            sort_min: sorted.as_ref().map_or_else(Vec::new, |(_, (min, _))| min.clone()),
            sort_max: sorted.map_or_else(Vec::new, |(_, (_, max))| max),
            zones: zones.collect(),
            tier: 0,
            crawls: Vec::new(),
            created_millis: 0,
            footer_crc: file.footer_crc(),
            deleted: Arc::default(),
            rest: Vec::new(),
        }
    }

    /// The path of the file, if it stays inside the collection.
    pub fn location(&self, root: &Path) -> Option<PathBuf> {
        is_inside(&self.path).then(|| root.join(&self.path))
    }

    /// Whether two entries describe the same bytes.
    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        (self.rows, self.bytes, self.footer_crc) == (other.rows, other.bytes, other.footer_crc)
    }

    /// The rows that are not deleted.
    pub fn live_rows(&self) -> u64 {
        self.rows.saturating_sub(self.deleted.len())
    }

    /// The type of the sort key, if the member is sorted.
    pub fn sort_kind(&self) -> Option<Type> {
        (!self.sort_column.is_empty()).then(|| Type::from_id(self.sort_type)).flatten()
    }

    /// Minimum and maximum of a column, if reliable; those of floats and lists are not.
    #[cfg(any(unix, windows))]
    pub(super) fn bounds(&self, column: &str, kind: Type) -> Option<(Scalar, Scalar)> {
        if kind.is_float() || kind == Type::List {
            return None;
        }
        let zone = self.zones.iter().find(|zone| zone.column == column && zone.kind == kind.id())?;
        Some((Scalar::from_bytes(kind, &zone.min)?, Scalar::from_bytes(kind, &zone.max)?))
    }

    /// Reads the body of a record.
    pub(super) fn parse(region: Region, start: u64, body: &[u8]) -> Result<Self, Malformed<Region>> {
        let mut fields = FieldReader::new(region, start, body);
        let path = fields.text("path")?.to_owned();
        let id = fields.array("id")?;
        let (rows, bytes) = (fields.uvarint("row_count")?, fields.uvarint("byte_size")?);
        let sort_column = fields.text("sort_column")?.to_owned();
        let sort_type = fields.byte("sort_type")?;
        let (sort_min, sort_max) = (fields.bytes("sort_min")?.to_vec(), fields.bytes("sort_max")?.to_vec());
        let count = fields.count("zone_count", 4)?;
        let mut zones = Vec::with_capacity(count);
        for _ in 0..count {
            zones.push(MemberZone {
                column: fields.text("zone_column")?.to_owned(),
                kind: fields.byte("zone_type")?,
                min: fields.bytes("zone_min")?.to_vec(),
                max: fields.bytes("zone_max")?.to_vec(),
            });
        }
        let tier = fields.byte("tier")?;
        let count = fields.count("crawl_count", 1)?;
        let mut crawls = Vec::with_capacity(count);
        for _ in 0..count {
            crawls.push(fields.text("crawl")?.to_owned());
        }
        let created_millis = fields.uvarint("created_millis")?;
        let footer_crc = fields.u32_le("footer_crc")?;
        let rest = fields.take("rest", fields.remaining() as u64)?.to_vec();
        Ok(Self {
            path,
            id,
            rows,
            bytes,
            sort_column,
            sort_type,
            sort_min,
            sort_max,
            zones,
            tier,
            crawls,
            created_millis,
            footer_crc,
            deleted: Arc::default(),
            rest,
        })
    }

    /// The body of a record.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(self.path.as_bytes(), &mut out);
        out.extend_from_slice(&self.id);
        put(self.rows, &mut out);
        put(self.bytes, &mut out);
        put_bytes(self.sort_column.as_bytes(), &mut out);
        out.push(self.sort_type);
        put_bytes(&self.sort_min, &mut out);
        put_bytes(&self.sort_max, &mut out);
        put(self.zones.len() as u64, &mut out);
        for zone in &self.zones {
            put_bytes(zone.column.as_bytes(), &mut out);
            out.push(zone.kind);
            put_bytes(&zone.min, &mut out);
            put_bytes(&zone.max, &mut out);
        }
        out.push(self.tier);
        put(self.crawls.len() as u64, &mut out);
        for crawl in &self.crawls {
            put_bytes(crawl.as_bytes(), &mut out);
        }
        put(self.created_millis, &mut out);
        out.extend_from_slice(&self.footer_crc.to_le_bytes());
        out.extend_from_slice(&self.rest);
        out
    }
}

/// Whether a path of the manifest stays below the root: relative, with normal components only.
pub(super) fn is_inside(path: &str) -> bool {
    let drive = path.contains(['\\', ':']) && cfg!(windows);
    let mut parts = Path::new(path).components().peekable();
    !drive
        && !path.contains('\0')
        && !path.ends_with('/')
        && parts.peek().is_some()
        && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// The union of zones; zones without values of the type are skipped.
fn widest<'a>(kind: Type, zones: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Option<(Vec<u8>, Vec<u8>)> {
    use std::cmp::Ordering::{Greater, Less};

    let values =
        zones.filter_map(|(min, max)| Some((Scalar::from_bytes(kind, min)?, Scalar::from_bytes(kind, max)?)));
    let all = values.reduce(|(min, max), (low, high)| {
        (
            if low.order(&min) == Some(Less) { low } else { min },
            if high.order(&max) == Some(Greater) { high } else { max },
        )
    });
    all.map(|(min, max)| (min.to_bytes(), max.to_bytes()))
}

/// The UUID of the file, or an ID derived from its path and footer.
fn member_id(path: &str, file: &File) -> MemberId {
    let own = file.header().uuid;
    if own != [0; 16] {
        return own;
    }
    let crc = file.footer_crc().to_le_bytes();
    let mut out = [0; 16];
    out[..8].copy_from_slice(&fnv1a(path.bytes()).to_le_bytes());
    out[8..].copy_from_slice(&fnv1a(path.bytes().chain(crc)).to_le_bytes());
    out
}

/// The 64-bit FNV-1a hash.
fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(14_695_981_039_346_656_037, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_root() {
        for inside in ["a.tatami", "a/b.tatami", "a b", "..a", "ä.tatami"] {
            assert!(is_inside(inside), "{inside}");
        }
        for outside in ["", ".", "..", "/a", "../a", "a/../../b", "a/..", "./a", "a/", "a\0b"] {
            assert!(!is_inside(outside), "{outside}");
        }
    }

    #[test]
    fn fnv1a_matches_the_reference_vectors() {
        assert_eq!(fnv1a(std::iter::empty()), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a".iter().copied()), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar".iter().copied()), 0x8594_4171_f739_67e8);
    }
}
