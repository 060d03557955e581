//! Verification of values against statistics, bloom filters and sort order.

use std::cmp::Ordering;

use tercet_core::Reason;

use super::Part;
use crate::block_codec::fault;
use crate::chunk::{ChunkReader, PageTable};
use crate::column::{Column, Values, each_values};
use crate::file::Inner;
use crate::page::bounds::Bounds;
use crate::page::decode::PageReader;
use crate::prune::bloom::Bloom;
use crate::scalar::Scalar;
use crate::schema::{Field, Type};
use crate::wire::footer::Zone;
use crate::wire::ids::{Codec, Encoding, file_flags, page_flags, requires};

impl ChunkReader<'_> {
    /// Verifies the checksum of every page of a chunk.
    pub(super) fn verify_pages(&self) -> Part {
        let mut part = Part::default();
        let Some(table) = self.start(&mut part) else { return part };
        for (index, entry) in table.pages.iter().enumerate() {
            let page = self.page(index, entry);
            let seen = page.check_header().and_then(|()| page.check_encoding());
            let seen = seen.and_then(|()| page.check_sizes(&page.stored()?));
            part.faults.extend(seen.err());
            part.requires |= required(&page, self.field());
        }
        part
    }

    /// Decodes every page of a chunk and compares its values with zone map, page statistics, bloom filter and sort order.
    pub(super) fn verify_values(&self) -> Part {
        let mut part = Part::default();
        let Some(table) = self.start(&mut part) else { return part };
        let Ok(chunk) = self.entry() else { return part };
        let field = self.field();
        let region = self.region();
        let zone = chunk.zone.as_ref().filter(|zone| self.inner().trusted(field.scalar(), chunk.pages, zone));
        let sorted = field.sort_key && self.inner().header.has(file_flags::SORTED);
        let index = if sorted { self.key_index().ok() } else { None };
        let mut last: Option<Scalar> = None;
        for (number, entry) in table.pages.iter().enumerate() {
            let page = self.page(number, entry);
            part.requires |= required(&page, self.field());
            let mut rows = Column::empty(field);
            let stored = match page.stored() {
                Ok(stored) => stored,
                Err(fault) => {
                    part.faults.push(fault);
                    continue;
                }
            };
            if let Err(fault) = page.check_rows().and_then(|()| page.decode(&stored, &mut rows)) {
                part.faults.push(fault);
                continue;
            }
            let mut broken = |what: &'static str| {
                let reason = Reason::Unexpected { rule: what };
                part.faults.push(fault(page.region, "values", page.offset, 0, reason));
            };
            if zone.is_some_and(|zone| !inside(&rows, field.scalar(), zone)) {
                broken("every value is within the zone map of its chunk");
            }
            let bounds = page.split_bounds(&stored).ok().and_then(|(bounds, _)| bounds);
            if bounds.is_some_and(|bounds| !keeps(&rows, field.scalar(), &bounds)) {
                broken("every value is within the statistics of its page");
            }
            let indexed = index.as_ref().and_then(|index| index.pages.get(number)?.zone.as_ref());
            if indexed.is_some_and(|zone| !inside(&rows, field.scalar(), zone)) {
                broken("every key is within the bounds of its page in the page index");
            }
            if sorted && !ascends(&rows, &mut last) {
                broken("the rows are sorted by the sort key");
            }
            if let Some(false) = filter_holds(self.inner(), chunk.bloom, &rows) {
                broken("the bloom filter contains every value");
            }
        }
        if sorted
            && let (Some(bounds), Some(zone)) =
                (&self.inner().footer.groups[self.group()].bounds, &chunk.zone)
            && bounds != zone
        {
            let reason =
                Reason::Unexpected { rule: "the bounds of a row group equal the zone map of its sort key" };
            part.faults.push(fault(region, "sort_bounds", chunk.offset, 0, reason));
        }
        part
    }

    fn start(&self, part: &mut Part) -> Option<std::sync::Arc<PageTable>> {
        let field = self.field();
        if field.sort_key
            && self.inner().header.has(file_flags::SORTED)
            && self.entry().is_ok_and(|chunk| chunk.page_index.is_some())
        {
            part.records += 1;
            part.faults.extend(self.key_index().err());
        }
        match self.own_page_table() {
            Ok(table) => {
                part.pages += table.pages.len() as u64;
                Some(std::sync::Arc::new(table))
            }
            Err(fault) => {
                part.faults.push(fault);
                None
            }
        }
    }
}

/// The features that a page requires.
fn required(page: &PageReader<'_>, field: &Field) -> u64 {
    let mut bits = match page.header.codec {
        Codec::Lz4 => requires::LZ4,
        Codec::ZstdDict => requires::ZSTD_DICT,
        Codec::None if page.header.has(page_flags::BOUNDS) => requires::BOUNDS,
        _ => 0,
    };
    bits |= match page.header.encoding {
        Encoding::Dictionary => requires::DICTIONARY,
        Encoding::Fsst => requires::FSST,
        Encoding::Rle | Encoding::BitpackFor | Encoding::Delta if field.scalar().is_float() => {
            requires::FLOAT
        }
        _ => 0,
    };
    if page.header.has(page_flags::SPLIT) {
        bits |= requires::FLOAT;
    }
    if field.kind == Type::List {
        bits |= requires::LIST;
    }
    bits
}

/// The values that zones cover: list elements, otherwise rows.
fn scalars(rows: &Column) -> &Column {
    match &rows.values {
        Values::List(lists) => scalars(&lists.elements),
        _ => rows,
    }
}

/// Whether every non-null value except NaN is within a zone.
fn inside(rows: &Column, kind: Type, zone: &Zone) -> bool {
    let rows = scalars(rows);
    let bounds = (Scalar::from_bytes(kind, &zone.min), Scalar::from_bytes(kind, &zone.max));
    let (Some(min), Some(max)) = bounds else { return false };
    if let (Values::Bytes(strings), Scalar::Bytes(min), Scalar::Bytes(max)) = (&rows.values, &min, &max) {
        return strings
            .iter()
            .enumerate()
            .all(|(row, text)| !rows.is_present(row) || (text >= &min[..] && text <= &max[..]));
    }
    (0..rows.len()).all(|row| {
        rows.scalar(row).is_none_or(|value| {
            value.is_nan()
                || (value.order(&min) != Some(Ordering::Less) && value.order(&max) != Some(Ordering::Greater))
        })
    })
}

/// Whether the values of a page are within its bounds, and some equal the exact bounds.
fn keeps(rows: &Column, kind: Type, bounds: &Bounds) -> bool {
    let values = scalars(rows);
    let present = || (0..values.len()).filter_map(|row| values.scalar(row));
    let reaches = |bound: &[u8]| {
        Scalar::from_bytes(kind, bound)
            .is_some_and(|bound| present().any(|value| value.order(&bound) == Some(Ordering::Equal)))
    };
    inside(rows, kind, &bounds.zone)
        && (!bounds.min_exact || reaches(&bounds.zone.min))
        && (!bounds.max_exact || reaches(&bounds.zone.max))
        && (!kind.is_float() || bounds.has_nan == present().any(|value| value.is_nan()))
}

/// Whether keys ascend. `last` is the previous key, and is updated.
fn ascends(rows: &Column, last: &mut Option<Scalar>) -> bool {
    let mut well = true;
    each_values!(
        &rows.values,
        fixed(v) => {
            // Most pages have no nulls: consecutive values are compared directly.
            if rows.validity.is_none() {
                well = v.windows(2).all(|pair| pair[0].partial_cmp(&pair[1]) != Some(Ordering::Greater));
                let first = rows.scalar(0);
                well &= match (&*last, &first) {
                    (Some(last), Some(first)) => last.order(first) != Some(Ordering::Greater),
                    _ => true,
                };
                *last = rows.scalar(v.len().saturating_sub(1)).or(last.take());
                return well;
            }
        },
        bool(_v) => (),
        bytes(_v) => (),
        list(_v) => (),
    );
    for key in (0..rows.len()).filter_map(|row| rows.scalar(row)) {
        if last.as_ref().is_some_and(|last| last.order(&key) == Some(Ordering::Greater)) {
            well = false;
        }
        *last = Some(key);
    }
    well
}

/// Whether the bloom filter of a chunk contains every value of a page; `None` without a readable filter.
fn filter_holds(inner: &Inner, bloom: Option<u64>, rows: &Column) -> Option<bool> {
    let index = usize::try_from(bloom?.checked_sub(1)?).ok()?;
    let filter = Bloom::read(inner, index).ok()?;
    let values = scalars(rows);
    Some((0..values.len()).filter_map(|row| values.scalar(row)).all(|value| filter.may_contain(&value)))
}
