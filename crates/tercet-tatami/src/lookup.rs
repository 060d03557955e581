//! Key lookup: rows by sort key.

use std::cmp::Ordering;
use std::sync::Arc;

use tercet_core::Reason;

use crate::block_codec::fault;
use crate::chunk::{ChunkReader, number};
use crate::column::Column;
use crate::error::{Error, ErrorKind};
use crate::file::{File, Inner};
use crate::predicate::{Comparison, Expr, Literal};
use crate::prune::key::PageIndex;
use crate::region::Region;
use crate::scalar::Scalar;
use crate::scan::Scan;
use crate::schema::Type;
use crate::wire::footer::Zone;
use crate::wire::ids::{Kind, file_flags};

/// The position of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPosition {
    /// The row group.
    pub group: usize,
    /// The row in the group.
    pub row_in_group: u64,
    /// The row number in the file.
    pub row: u64,
}

impl File {
    /// The first row whose sort key equals `key`. One page of the sort key is read.
    pub fn lookup(&self, key: &Scalar) -> Result<Option<KeyPosition>, Error> {
        let found = lookup(self.inner(), key).map_err(|fault| self.error(fault))?;
        let deleted = |found: &KeyPosition| self.live().is_some_and(|live| !live.contains(found.row));
        match found {
            Some(found) if deleted(&found) => self.next_live(key),
            found => Ok(found),
        }
    }

    /// A scan of all rows whose sort key equals `key`: [`lookup`](Self::lookup) finds the first.
    pub fn scan_key(&self, key: &Scalar) -> Result<Scan, Error> {
        let column = sort_key(self.inner()).map_err(|fault| self.error(fault))?;
        let name = self.inner().field(column).name.to_string();
        let equal = Expr::Comparison { column: name, test: Comparison::Eq(Literal::Exact(key.clone())) };
        self.scan().filter(&equal)
    }

    /// The first row with a sort key that is not deleted.
    fn next_live(&self, key: &Scalar) -> Result<Option<KeyPosition>, Error> {
        let scan = self.scan_key(key)?.column_positions(&[])?.limit(1);
        let Some(row) = scan.batches().next().transpose()?.and_then(|batch| batch.rows.first().copied())
        else {
            return Ok(None);
        };
        let groups = &self.footer().groups;
        let group = groups.partition_point(|group| group.first_row <= row).saturating_sub(1);
        let first_row = groups.get(group).map_or(0, |group| group.first_row);
        Ok(Some(KeyPosition { group, row_in_group: row - first_row, row }))
    }

    /// Parses a value of the sort key; bytes may be written as `x'00ff'`.
    pub fn parse_key(&self, text: &str) -> Result<Scalar, Error> {
        let key = sort_key(self.inner()).map_err(|fault| self.error(fault))?;
        let field = self.inner().field(key);
        Scalar::parse_key(field.kind, text).ok_or_else(|| {
            let found = format!("`{}`", tercet_core::escape::name(text)).into();
            self.error(ErrorKind::KeyType { column: field.name.as_ref().into(), expected: field.kind, found })
        })
    }
}

/// The position of the sort key.
fn sort_key(inner: &Inner) -> Result<usize, ErrorKind> {
    if !inner.header.has(file_flags::SORTED) {
        return Err(ErrorKind::NotSorted);
    }
    inner.footer.schema.sort_key().ok_or(ErrorKind::NotSorted)
}

fn lookup(inner: &Inner, key: &Scalar) -> Result<Option<KeyPosition>, ErrorKind> {
    inner.check_features()?;
    let column = sort_key(inner)?;
    let field = inner.field(column);
    if !key.fits(field.kind) {
        let found = key.to_string().into();
        return Err(ErrorKind::KeyType { column: field.name.as_ref().into(), expected: field.kind, found });
    }
    // Groups without bounds have no keys.
    let groups: Vec<usize> =
        (0..inner.footer.groups.len()).filter(|group| inner.footer.groups[*group].bounds.is_some()).collect();
    let region = |group: usize| Region::Group { group: number(group) };
    let above = |group: usize| match &inner.footer.groups[group].bounds {
        Some(zone) => compare_bounds(region(group), field.kind, zone, key),
        None => Ok(KeyOrder::Above),
    };
    let Some(at) = first(groups.len(), |index| Ok(above(groups[index])? != KeyOrder::Above))? else {
        return Ok(None);
    };
    let group = groups[at];
    if above(group)? == KeyOrder::Below {
        return Ok(None);
    }
    let index = inner.chunk_reader(group, column).key_index()?;
    let pages: Vec<usize> = (0..index.pages.len()).filter(|page| index.pages[*page].zone.is_some()).collect();
    let inside = |page: usize| match &index.pages[page].zone {
        Some(zone) => compare_bounds(Region::PageIndex { group: number(group) }, field.kind, zone, key),
        None => Ok(KeyOrder::Above),
    };
    let Some(at) = first(pages.len(), |index| Ok(inside(pages[index])? != KeyOrder::Above))? else {
        return Ok(None);
    };
    let page = pages[at];
    if inside(page)? == KeyOrder::Below {
        return Ok(None);
    }
    let chunk = inner.chunk_reader(group, column);
    let table = chunk.page_table()?;
    let mut rows = Column::empty(field);
    chunk.decode_page(page, &table, &mut rows)?;
    let start = u64::from(table.pages[page].header.first_row);
    let found = find(&rows, key).map(|row| {
        let row_in_group = start + row as u64;
        KeyPosition { group, row_in_group, row: inner.footer.groups[group].first_row + row_in_group }
    });
    Ok(found)
}

impl ChunkReader<'_> {
    /// The page index of a row group, checked against its page headers; cached.
    pub(crate) fn key_index(&self) -> Result<Arc<PageIndex>, ErrorKind> {
        let (inner, group) = (self.inner(), self.group());
        if let Some(index) = inner.key_indexes.get(group).and_then(|slot| slot.get()) {
            return Ok(Arc::clone(index));
        }
        let chunk = self.entry()?;
        let region = Region::PageIndex { group: number(group) };
        let Some(offset) = chunk.page_index else {
            let rule = "a row group with bounds of the sort key has a page index";
            return Err(fault(region, "page_index_offset", chunk.offset, 0, Reason::Unexpected { rule }));
        };
        let record = inner.record(region, offset, Kind::Index)?;
        let index = PageIndex::parse(number(group), record.span.start(), &record.stored)?;
        let table = self.page_table()?;
        let same = index.pages.len() == table.pages.len()
            && index.pages.iter().zip(&table.pages).all(|(page, entry)| {
                page.offset == entry.offset && page.first_row == u64::from(entry.header.first_row)
            });
        if !same {
            let rule = "the page index lists the pages of its chunk";
            return Err(fault(
                region,
                "pages",
                record.span.start(),
                record.span.len(),
                Reason::Unexpected { rule },
            ));
        }
        let index = Arc::new(index);
        Ok(match inner.key_indexes.get(group) {
            Some(slot) => Arc::clone(slot.get_or_init(|| index)),
            None => index,
        })
    }
}

/// The order of a key relative to bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyOrder {
    /// Key less than the minimum.
    Below,
    /// Key within the bounds.
    Inside,
    /// Key greater than the maximum.
    Above,
}

fn compare_bounds(region: Region, kind: Type, zone: &Zone, key: &Scalar) -> Result<KeyOrder, ErrorKind> {
    let value = |bytes: &[u8]| {
        Scalar::from_bytes(kind, bytes).ok_or_else(|| {
            fault(
                region,
                "sort_bounds",
                0,
                0,
                Reason::Unexpected { rule: "bounds are values of the sort key" },
            )
        })
    };
    let (min, max) = (value(&zone.min)?, value(&zone.max)?);
    Ok(if max.order(key) == Some(Ordering::Less) {
        KeyOrder::Above
    } else if min.order(key) == Some(Ordering::Greater) {
        KeyOrder::Below
    } else {
        KeyOrder::Inside
    })
}

/// The first of `count` positions for which `holds` is true, by binary search.
fn first(count: usize, holds: impl Fn(usize) -> Result<bool, ErrorKind>) -> Result<Option<usize>, ErrorKind> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle)? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok((low < count).then_some(low))
}

/// The first row that equals the key. Null rows are not sorted, so a page with nulls is searched row by row.
fn find(rows: &Column, key: &Scalar) -> Option<usize> {
    let equal = |row: usize| rows.scalar(row).is_some_and(|value| value.order(key) == Some(Ordering::Equal));
    if rows.validity.is_some() {
        return (0..rows.len()).find(|row| equal(*row));
    }
    let (mut low, mut high) = (0, rows.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let less = rows.scalar(middle).is_some_and(|value| value.order(key) == Some(Ordering::Less));
        if less {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    (low < rows.len() && equal(low)).then_some(low)
}
