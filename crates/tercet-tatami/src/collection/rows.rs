//! Scans and key lookups over all members.

use std::sync::Arc;

use serde::Serialize;

use super::{Collection, Member};
use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::lookup::KeyPosition;
use crate::predicate::{Expr, Leaf, Predicate, Summary};
use crate::scalar::Scalar;
use crate::scan::{Batch, Batches, Explain, Partition, Scan};
use crate::schema::Schema;

/// A scan of the rows of a collection. The columns are those of the first member.
#[derive(Clone, Debug)]
pub struct CollectionScan<'a> {
    collection: &'a Collection,
    columns: Option<Vec<String>>,
    filter: Option<Expr>,
    offset: u64,
    limit: Option<u64>,
    batch_rows: u64,
}

/// What a scan of a collection reads and prunes.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CollectionExplain {
    /// The number of members.
    pub files: usize,
    /// Members pruned by the manifest.
    pub files_pruned: usize,
    /// The other members.
    pub members: Vec<MemberExplain>,
}

/// What a scan of a member reads and prunes.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct MemberExplain {
    /// The path of the member in the collection.
    pub file: String,
    /// The scan of the member.
    #[serde(flatten)]
    pub explained: Explain,
}

/// Rows of one member.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemberBatch {
    /// The path of the member in the collection.
    pub member: Arc<str>,
    /// Its rows.
    pub batch: Batch,
}

/// The result of a key lookup in a collection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CollectionLookup {
    /// The member and the row, if there is one.
    pub found: Option<(Member, File, KeyPosition)>,
    /// Files opened by the lookup.
    pub files_opened: u64,
}

impl Collection {
    /// Starts a scan of all columns and all rows.
    pub fn scan(&self) -> CollectionScan<'_> {
        CollectionScan {
            collection: self,
            columns: None,
            filter: None,
            offset: 0,
            limit: None,
            batch_rows: 0,
        }
    }

    /// The columns of the first member; `None` if there is no member.
    pub fn schema(&self) -> Result<Option<Arc<Schema>>, Error> {
        Ok(self.first_member()?.map(|file| Arc::clone(file.schema())))
    }

    /// Opens the first member; `None` if there is no member.
    fn first_member(&self) -> Result<Option<File>, Error> {
        self.check_records()?;
        self.members().first().map(|member| self.open_member(member)).transpose()
    }

    /// The members that may have matching rows, by the statistics in the manifest. Only the first file is opened.
    pub fn prune(&self, filter: &Expr) -> Result<Vec<&Member>, Error> {
        let Some(first) = self.first_member()? else { return Ok(Vec::new()) };
        let predicate = bind(filter, &first)?;
        Ok(self.members().iter().filter(|member| may_hold(member, &predicate, first.schema())).collect())
    }

    /// Parses a value of the sort key of the members; bytes may be written as `x'00ff'`.
    pub fn parse_key(&self, text: &str) -> Result<Scalar, Error> {
        let sorted = self.members().iter().find_map(|member| Some((member, member.sort_kind()?)));
        let Some((member, kind)) = sorted else { return Err(self.error(ErrorKind::NotSorted)) };
        Scalar::parse_key(kind, text).ok_or_else(|| {
            let found = format!("`{}`", tercet_core::escape::name(text)).into();
            self.error(ErrorKind::KeyType {
                column: member.sort_column.as_str().into(),
                expected: kind,
                found,
            })
        })
    }

    /// The first row whose sort key equals `key`, in the order of the members. Members whose key range excludes it
    /// are not opened.
    pub fn lookup(&self, key: &Scalar) -> Result<CollectionLookup, Error> {
        self.check_records()?;
        let mut out = CollectionLookup { found: None, files_opened: 0 };
        for member in self.members() {
            if member.sort_column.is_empty() {
                continue;
            }
            let fits = member.sort_kind().filter(|kind| key.fits(*kind));
            let Some(kind) = fits else {
                let expected = member.sort_kind().unwrap_or(crate::Type::Bytes);
                let column = member.sort_column.as_str().into();
                return Err(self.error(ErrorKind::KeyType {
                    column,
                    expected,
                    found: key.to_string().into(),
                }));
            };
            if is_outside(member, kind, key) {
                continue;
            }
            let file = self.open_member(member)?;
            out.files_opened += 1;
            if let Some(found) = file.lookup(key)? {
                out.found = Some((member.clone(), file, found));
                break;
            }
        }
        Ok(out)
    }
}

/// Whether the key range of a member excludes a key.
fn is_outside(member: &Member, kind: crate::Type, key: &Scalar) -> bool {
    use std::cmp::Ordering::{Greater, Less};

    let bound = |bytes: &[u8]| Scalar::from_bytes(kind, bytes);
    // Without bounds nothing is known; empty bounds of numbers are missing bounds.
    match (bound(&member.sort_min), bound(&member.sort_max)) {
        (Some(min), Some(max)) => key.order(&min) == Some(Less) || key.order(&max) == Some(Greater),
        _ => false,
    }
}

/// Whether the statistics of a member allow a matching row.
fn may_hold(member: &Member, predicate: &Predicate, schema: &Schema) -> bool {
    let known = |column: usize| {
        let field = &schema.fields()[column];
        Summary {
            bounds: member.bounds(&field.name, field.kind),
            exact: true,
            nan: false,
            // The manifest has no null counts.
            nulls: None,
            rows: member.rows,
        }
    };
    let tri_state = predicate.tri_state(&mut |leaf| {
        Ok::<_, std::convert::Infallible>(match leaf {
            Leaf::Test(_, column, test) => test.tri_state(&known(column)),
            Leaf::Columns(pair) => pair.tri_state(&known(pair.left), &known(pair.right)),
        })
    });
    let Ok(tri_state) = tri_state;
    !tri_state.is_never()
}

/// Binds a filter to the columns of a file.
fn bind(filter: &Expr, file: &File) -> Result<Predicate, Error> {
    filter
        .bind_with_types(file.schema(), &file.logical_types())
        .map_err(|error| file.error(ErrorKind::Bind(Box::new(error))))
}

impl CollectionScan<'_> {
    /// Selects columns by name, in this order.
    pub fn columns<N: AsRef<str>>(mut self, names: &[N]) -> Result<Self, Error> {
        if let Some(first) = self.collection.first_member()? {
            for name in names {
                first.column_index(name.as_ref())?;
            }
        }
        self.columns = Some(names.iter().map(|name| name.as_ref().to_owned()).collect());
        Ok(self)
    }

    /// Keeps only rows that match the filter.
    pub fn filter(mut self, filter: &Expr) -> Result<Self, Error> {
        if let Some(first) = self.collection.first_member()? {
            bind(filter, &first)?;
        }
        self.filter = Some(filter.clone());
        Ok(self)
    }

    /// Skips this many matching rows of all members together.
    pub fn offset(mut self, rows: u64) -> Self {
        self.offset = rows;
        self
    }

    /// Returns at most this many matching rows.
    pub fn limit(mut self, rows: u64) -> Self {
        self.limit = Some(rows);
        self
    }

    /// Sets the maximum number of rows in a batch.
    pub fn with_batch_rows(mut self, rows: u64) -> Self {
        self.batch_rows = rows;
        self
    }

    /// Divides the scan into partitions, at least one per member that may have matching rows: about `count` in total. See
    /// [`Scan::partitions`]. Deleted rows are in no partition.
    pub fn partitions(&self, count: usize) -> Result<Vec<Partition>, Error> {
        if self.limit.is_some() || self.offset > 0 {
            let reason = "the scan has an offset or a limit";
            return Err(self.collection.error(ErrorKind::NoPartitions { reason }));
        }
        let members = self.members()?;
        let rows = members.iter().map(|member| u128::from(member.rows)).sum::<u128>().max(1);
        let names = self.names()?;
        let mut out = Vec::new();
        for member in members {
            let share = u128::from(member.rows) * count as u128 / rows;
            let file = self.collection.open_member(&member)?;
            let scan = self.scan_member(&file, &names)?;
            out.extend(scan.partitions(usize::try_from(share).unwrap_or(usize::MAX).max(1))?);
        }
        Ok(out)
    }

    /// The names of the columns.
    fn names(&self) -> Result<Vec<String>, Error> {
        Ok(match (&self.columns, self.first_member()?) {
            (Some(names), _) => names.clone(),
            (None, Some(first)) => {
                first.schema().fields().iter().map(|field| field.name.to_string()).collect()
            }
            (None, None) => Vec::new(),
        })
    }

    /// The members that the scan opens.
    pub fn members(&self) -> Result<Vec<Member>, Error> {
        self.collection.check_records()?;
        match &self.filter {
            Some(filter) => Ok(self.collection.prune(filter)?.into_iter().cloned().collect()),
            None => Ok(self.collection.members().to_vec()),
        }
    }

    /// The number of matching rows.
    pub fn count(&self) -> Result<u64, Error> {
        let mut sum = 0u64;
        self.each_member(&[], |scan| {
            sum = sum.saturating_add(scan.count()?);
            Ok(())
        })?;
        Ok(sum.saturating_sub(self.offset).min(self.limit.unwrap_or(u64::MAX)))
    }

    /// Describes what the scan reads and prunes, without reading values. Offset and limit are ignored.
    pub fn explain(&self) -> Result<CollectionExplain, Error> {
        let names = self.names()?;
        let mut members = Vec::new();
        for member in self.members()? {
            let file = self.collection.open_member(&member)?;
            let explained = self.scan_member(&file, &names)?.explain()?;
            members.push(MemberExplain { file: member.path, explained });
        }
        let files = self.collection.members().len();
        Ok(CollectionExplain { files, files_pruned: files - members.len(), members })
    }

    /// Opens the first member; `None` if there is no member.
    pub(crate) fn first_member(&self) -> Result<Option<File>, Error> {
        self.collection.first_member()
    }

    /// Passes the scan of each member with some columns to a function. These columns and those of the filter must have the same types in
    /// all members.
    pub(crate) fn each_member(
        &self,
        names: &[String],
        mut each: impl FnMut(&Scan) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let filtered = self.filter.iter().flat_map(Expr::columns);
        let used: Vec<&str> = filtered.chain(names.iter().map(String::as_str)).collect();
        let mut first = None;
        for member in self.members()? {
            let file = self.collection.open_member(&member)?;
            check_same_schema(first.get_or_insert_with(|| file.clone()), &file, &used)?;
            each(&self.scan_member(&file, names)?)?;
        }
        Ok(())
    }

    /// The matching rows, in order: members sorted by path, rows in file order.
    pub fn batches(&self) -> Result<CollectionBatches, Error> {
        let members = self.members()?;
        let first = self.collection.first_member()?;
        let names = self.names()?;
        Ok(CollectionBatches {
            collection: self.collection.clone(),
            filter: self.filter.clone(),
            offset: self.offset,
            limit: self.limit,
            batch_rows: self.batch_rows,
            first,
            names,
            members: members.into_iter(),
            current: None,
            failed: false,
        })
    }

    fn scan_member(&self, file: &File, names: &[String]) -> Result<Scan, Error> {
        member_scan(file, names, self.filter.as_ref(), self.batch_rows)
    }
}

fn member_scan(file: &File, names: &[String], filter: Option<&Expr>, rows: u64) -> Result<Scan, Error> {
    let scan = file.scan().columns(names)?.with_batch_rows(rows);
    filter.map_or(Ok(scan.clone()), |filter| scan.filter(filter))
}

/// The batches of a scan, member by member.
#[derive(Debug)]
pub struct CollectionBatches {
    collection: Collection,
    filter: Option<Expr>,
    /// Rows that are still to be skipped.
    offset: u64,
    /// Rows that are still to be returned.
    limit: Option<u64>,
    batch_rows: u64,
    first: Option<File>,
    names: Vec<String>,
    members: std::vec::IntoIter<Member>,
    current: Option<(Arc<str>, Batches)>,
    failed: bool,
}

impl CollectionBatches {
    /// The column names of a batch.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The columns of the first member.
    pub fn schema(&self) -> Option<&Arc<Schema>> {
        self.first.as_ref().map(File::schema)
    }

    fn advance(&mut self) -> Result<Option<MemberBatch>, Error> {
        loop {
            if let Some((member, batches)) = &mut self.current {
                if let Some(batch) = batches.next() {
                    let batch = batch?;
                    if let Some(limit) = &mut self.limit {
                        *limit = limit.saturating_sub(batch.rows.len() as u64);
                    }
                    return Ok(Some(MemberBatch { member: Arc::clone(member), batch }));
                }
                self.current = None;
            }
            let Some(member) = self.members.next().filter(|_| self.limit != Some(0)) else { return Ok(None) };
            let file = self.collection.open_member(&member)?;
            self.check(&file)?;
            let mut scan = member_scan(&file, &self.names, self.filter.as_ref(), self.batch_rows)?;
            if self.offset > 0 {
                let rows = scan.count()?;
                if rows <= self.offset {
                    self.offset -= rows;
                    continue;
                }
                scan = scan.offset(std::mem::take(&mut self.offset));
            }
            if let Some(limit) = self.limit {
                scan = scan.limit(limit);
            }
            self.current = Some((member.path.as_str().into(), scan.batches()));
        }
    }

    fn check(&self, file: &File) -> Result<(), Error> {
        match &self.first {
            Some(first) => check_same_schema(first, file, &self.names),
            None => Ok(()),
        }
    }
}

/// Checks that columns of the same name have the same type and logical type in all members.
pub(super) fn check_same_schema<N: AsRef<str>>(first: &File, file: &File, names: &[N]) -> Result<(), Error> {
    let (there, here) = (first.schema(), file.schema());
    let logical_types = (first.logical_types(), file.logical_types());
    for name in names {
        let (Some(one), Some(other)) = (there.index_of(name.as_ref()), here.index_of(name.as_ref())) else {
            continue;
        };
        let type_of = |schema: &Schema, at: usize| (schema.fields()[at].kind, schema.fields()[at].element);
        let (one_kind, other_kind) = (type_of(there, one), type_of(here, other));
        let name = tercet_core::escape::name(name.as_ref());
        let reason = if one_kind != other_kind {
            format!("column `{name}` is {} in one file and {} in the other", one_kind.0, other_kind.0)
        } else if logical_types.0.get(one) != logical_types.1.get(other) {
            format!("column `{name}` has different logical types")
        } else {
            continue;
        };
        return Err(
            file.error(ErrorKind::SchemaMismatch { other: (**first.name()).into(), reason: reason.into() })
        );
    }
    Ok(())
}

impl Iterator for CollectionBatches {
    type Item = Result<MemberBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.advance().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}
