//! Parts of a scan that other processes can read.

use serde::{Deserialize, Serialize};
use tercet_core::Location;

use super::prune::Verdict;
use super::{RowSelection, Scan};
use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::predicate::Expr;

/// A part of a scan: some row groups of a file, which another process can open and read alone.
///
/// A partition is a plain value: it can be serialized, sent and read in any order. It refers to one version of the file; if the file
/// was replaced, [`Partition::open`] fails. A path is absolute. A URL is stored as it was given, with its query.
///
/// ```no_run
/// use tercet_tatami::{Expr, File, ReadOptions};
///
/// let scan = File::open("crawl.tatami")?.scan().columns(&["url"])?.filter(&Expr::parse("status = 404")?)?;
/// for partition in scan.partitions(8)? {
///     // In another process:
///     for batch in partition.open(ReadOptions::new())?.batches() {
///         println!("{} rows", batch?.rows.len());
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Partition {
    /// Where the file is: an absolute path or a URL.
    pub location: String,
    /// The length of the file in bytes.
    pub file_bytes: u64,
    /// The checksum of its footer.
    pub footer_crc: u32,
    /// The row groups.
    pub groups: Vec<usize>,
    /// The rows of these groups, before row numbers and the filter are applied.
    pub group_rows: u64,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The row numbers, if the scan is restricted to some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<RowSelection>,
    /// The filter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Expr>,
    /// The maximum number of rows in a batch; 0 for the default.
    #[serde(default)]
    pub batch_rows: u64,
}

impl Scan {
    /// Divides the scan into at most `count` partitions of about the same number of rows. Row groups are not divided;
    /// those without matching rows by zone maps and bloom filters are in no partition.
    ///
    /// Fails if the scan has an offset or a limit, which are properties of the whole, or if the file was not opened from a path or URL.
    pub fn partitions(&self, count: usize) -> Result<Vec<Partition>, Error> {
        let refuse = |reason| self.file.error(ErrorKind::NoPartitions { reason });
        if self.offset > 0 || self.limit.is_some() {
            return Err(refuse("the scan has an offset or a limit"));
        }
        let location = match self.file.location() {
            Some(Location::Url(url)) => url.to_string(),
            Some(Location::Path(path)) => {
                let path =
                    std::path::absolute(path).map_err(|_| refuse("the working directory is unknown"))?;
                path.into_os_string().into_string().map_err(|_| refuse("the path is not valid UTF-8"))?
            }
            None => return Err(refuse("the file was not opened from a path or URL")),
        };
        self.file.check_columns(&[])?;
        let inner = self.file.inner();
        let plans = inner.on_threads(|| self.plans()).map_err(|fault| self.file.error(fault))?;
        let wanted: Vec<(usize, u64)> = plans
            .iter()
            .filter(|plan| !matches!(plan.verdict, Verdict::Never(_)) && plan.rows() > 0)
            .map(|plan| (plan.group, plan.rows()))
            .collect();
        let names = self.columns.iter().map(|column| inner.field(*column).name.to_string());
        let columns: Vec<String> = names.collect();
        let parts = divide(&wanted, count);
        let rows = self.selected_rows();
        Ok(parts
            .into_iter()
            .map(|groups| Partition {
                location: location.clone(),
                file_bytes: self.file.len(),
                footer_crc: self.file.footer_crc(),
                group_rows: rows_in(&self.file, &groups),
                rows: rows.as_ref().map(|rows| rows_of_groups(&self.file, &groups, rows)),
                groups,
                columns: columns.clone(),
                filter: self.filter.as_ref().map(|filter| filter.expr.clone()),
                batch_rows: self.batch_rows,
            })
            .collect())
    }
}

impl Partition {
    /// Opens the file and returns the scan of this partition. Fails if the file is not the one that was partitioned.
    #[cfg(any(unix, windows))]
    pub fn open(&self, options: crate::ReadOptions) -> Result<Scan, Error> {
        self.scan(&File::open_with(self.location.as_str(), options)?)
    }

    /// The scan of this partition of an open file. Fails if the file is not the one that was partitioned.
    pub fn scan(&self, file: &File) -> Result<Scan, Error> {
        let same_file = (file.len(), file.footer_crc()) == (self.file_bytes, self.footer_crc);
        let groups_exist = self.groups.iter().all(|group| *group < file.group_count());
        if !same_file || (groups_exist && rows_in(file, &self.groups) != self.group_rows) {
            let text = |bytes: u64, crc: u32, rows: u64| {
                format!("{bytes} bytes, footer checksum {crc:08x}, {rows} rows in the groups").into()
            };
            let was = text(self.file_bytes, self.footer_crc, self.group_rows);
            let now = text(file.len(), file.footer_crc(), rows_in(file, &self.groups));
            return Err(file.error(ErrorKind::PartitionChanged { was, now }));
        }
        let mut scan = file.scan().columns(&self.columns)?.groups(&self.groups)?;
        if let Some(rows) = &self.rows {
            scan = scan.rows(rows.clone())?;
        }
        if let Some(filter) = &self.filter {
            scan = scan.filter(filter)?;
        }
        Ok(scan.with_batch_rows(self.batch_rows))
    }
}

/// The rows of some groups.
fn rows_in(file: &File, groups: &[usize]) -> u64 {
    let stored = &file.footer().groups;
    let rows = groups.iter().filter_map(|group| stored.get(*group)).map(|group| group.rows);
    rows.fold(0, u64::saturating_add)
}

/// The selected rows in some groups.
fn rows_of_groups(file: &File, groups: &[usize], rows: &RowSelection) -> RowSelection {
    let inside = groups.iter().filter_map(|group| file.footer().groups.get(*group)).flat_map(|group| {
        let first = group.first_row;
        let relative = rows.relative_to(first..first.saturating_add(group.rows));
        relative.into_iter().map(move |range| first + range.start..first + range.end)
    });
    inside.collect::<Vec<_>>().into()
}

/// Divides groups, in order, into at most `count` parts of about the same number of rows; no part is empty.
fn divide(groups: &[(usize, u64)], count: usize) -> Vec<Vec<usize>> {
    let count = count.clamp(1, groups.len().max(1));
    let total = groups.iter().map(|(_, rows)| u128::from(*rows)).sum::<u128>();
    let mut parts: Vec<Vec<usize>> = Vec::with_capacity(count);
    let (mut before, mut last) = (0u128, None);
    for (group, rows) in groups {
        // The part in which the middle row of the group is.
        let middle = before + u128::from(*rows) / 2;
        let part = middle * count as u128 / total.max(1);
        if last != Some(part) {
            parts.push(Vec::new());
            last = Some(part);
        }
        if let Some(part) = parts.last_mut() {
            part.push(*group);
        }
        before += u128::from(*rows);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::divide;

    #[test]
    fn parts_have_about_the_same_rows_and_all_groups() {
        let even: Vec<(usize, u64)> = (0..10).map(|group| (group, 100)).collect();
        assert_eq!(divide(&even, 3), [vec![0, 1, 2], vec![3, 4, 5, 6], vec![7, 8, 9]]);
        assert_eq!(divide(&even, 1), [(0..10).collect::<Vec<_>>()]);
        assert_eq!(divide(&even, 99).len(), 10);
        assert_eq!(divide(&even, 0).len(), 1);
        assert_eq!(divide(&[(3, 1), (5, 1_000), (9, 1)], 2), [vec![3], vec![5, 9]]);
        assert_eq!(divide(&[], 4), Vec::<Vec<usize>>::new());
        assert_eq!(divide(&[(0, u64::MAX), (1, u64::MAX)], 2), [vec![0], vec![1]]);
    }
}
