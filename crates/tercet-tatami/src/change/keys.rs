//! The keys of new rows.

use hashbrown::HashMap;
use tercet_core::{Budget, Progress};

use crate::column::Column;
use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::predicate::{Comparison, Expr, Literal};
use crate::scalar::Scalar;
use crate::scan::RowSelection;
use crate::schema::{Field, Type};

/// Memory per key, in addition to its bytes.
const ENTRY_BYTES: u64 = 48;

/// The newest row of each key: part and row in the part.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    column: String,
    newest: HashMap<Box<[u8]>, (usize, u64)>,
    bounds: Option<(Scalar, Scalar)>,
}

impl Keys {
    /// Keys of a column. Its type must have an equality that everyone agrees on: no floats, lists or blobs.
    pub(super) fn new(field: &Field) -> Result<Self, ErrorKind> {
        let refused = field.kind.is_float() || matches!(field.kind, Type::List | Type::BlobRef);
        if refused {
            return Err(ErrorKind::NoKey { column: (*field.name).into(), kind: field.kind });
        }
        Ok(Self { column: field.name.to_string(), ..Self::default() })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.newest.is_empty()
    }

    /// Adds the key of a row, and returns the older row with the same key.
    pub(super) fn insert(
        &mut self,
        key: Scalar,
        at: (usize, u64),
        budget: &Budget,
    ) -> Result<Option<(usize, u64)>, ErrorKind> {
        let bytes = key.to_bytes();
        if let Some(newest) = self.newest.get_mut(&bytes[..]) {
            return Ok(Some(std::mem::replace(newest, at)));
        }
        budget.reserve(bytes.len() as u64 + ENTRY_BYTES)?;
        self.newest.insert(bytes.into(), at);
        let less = |a: &Scalar, b: &Scalar| a.order(b).is_some_and(std::cmp::Ordering::is_lt);
        match &mut self.bounds {
            Some((min, max)) => {
                if less(&key, min) {
                    *min = key;
                } else if less(max, &key) {
                    *max = key;
                }
            }
            None => self.bounds = Some((key.clone(), key)),
        }
        Ok(None)
    }

    /// The rows of a file with one of the keys. Pages whose statistics exclude all keys are not read.
    pub(crate) fn matching_rows(&self, file: &File, progress: &dyn Progress) -> Result<RowSelection, Error> {
        let Some((min, max)) = &self.bounds else { return Ok(RowSelection::default()) };
        let test = Comparison::Between(Literal::Exact(min.clone()), Literal::Exact(max.clone()));
        let between = Expr::Comparison { column: self.column.clone(), test };
        let mut rows = Vec::new();
        for batch in file.scan().columns(&[&self.column])?.filter(&between)?.batches() {
            progress.check().map_err(|cancelled| file.error(cancelled.into()))?;
            let batch = batch?;
            let Some(column) = batch.columns.first() else { continue };
            let is_key = |row: usize| self.contains(column, row);
            rows.extend(batch.rows.iter().enumerate().filter(|(at, _)| is_key(*at)).map(|(_, row)| *row));
        }
        Ok(rows.into())
    }

    fn contains(&self, column: &Column, row: usize) -> bool {
        column.scalar(row).is_some_and(|key| self.newest.contains_key(&key.to_bytes()[..]))
    }
}
