//! Aggregates of rows: counts, minima, maxima, sums and means, optionally by group.
//!
//! Nulls are skipped, except by [`Aggregate::Count`], which counts rows. Minima and maxima skip NaN; sums and means with a NaN are NaN.
//! Integers and decimals are summed exactly, floats in `f64` with compensation. Rows are added in file order, so results do not depend on the
//! number of threads. Row groups whose statistics prove the result are not read.
//!
//! ```
//! # use std::io::Cursor;
//! # use tercet_tatami::{Column, Field, Schema, Type, Values, Writer, WriterOptions};
//! use tercet_tatami::aggregate::Aggregate;
//! use tercet_tatami::{File, Scalar};
//!
//! # let schema = Schema::new(vec![Field::new("city", Type::String), Field::new("people", Type::UInt32)])?;
//! # let mut writer = Writer::new(Cursor::new(Vec::new()), schema, WriterOptions::new())?;
//! # writer.append(&[Column::new(Values::Bytes(["Bonn", "Ulm", "Bonn"].iter().collect())), Column::new(Values::UInt32(vec![1, 2, 3]))])?;
//! # let file = File::from_bytes("cities", writer.finish()?.output)?;
//! let result = file.scan().aggregate(&["city"], &[Aggregate::Count, Aggregate::sum("people")])?;
//! assert_eq!(result.columns[0].scalar(0), Some(Scalar::Bytes(b"Bonn".to_vec())));
//! assert_eq!(result.columns[2].scalar(0), Some(Scalar::UInt64(4)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod keys;
mod state;

use tercet_core::Budget;

#[cfg(any(unix, windows))]
use crate::collection::CollectionScan;
use crate::column::{Bitmap, Column, Values};
use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::logical_type::LogicalType;
use crate::scalar::Scalar;
use crate::scan::Scan;
use crate::schema::{Field, Type};
use keys::Keys;
use state::State;

/// An aggregate of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Aggregate {
    /// The number of rows.
    Count,
    /// The minimum of a column.
    Min(String),
    /// The maximum of a column.
    Max(String),
    /// The sum of a column of numbers.
    Sum(String),
    /// The mean of a column of numbers, as `f64`.
    Mean(String),
}

impl Aggregate {
    /// The minimum of a column.
    pub fn min(column: impl Into<String>) -> Self {
        Self::Min(column.into())
    }

    /// The maximum of a column.
    pub fn max(column: impl Into<String>) -> Self {
        Self::Max(column.into())
    }

    /// The sum of a column.
    pub fn sum(column: impl Into<String>) -> Self {
        Self::Sum(column.into())
    }

    /// The mean of a column.
    pub fn mean(column: impl Into<String>) -> Self {
        Self::Mean(column.into())
    }

    /// The column, if it has one.
    pub fn column(&self) -> Option<&str> {
        match self {
            Self::Count => None,
            Self::Min(column) | Self::Max(column) | Self::Sum(column) | Self::Mean(column) => Some(column),
        }
    }

    /// The name of the result: `count`, `min(price)`.
    pub fn name(&self) -> String {
        let Some(column) = self.column() else { return "count".to_owned() };
        format!("{}({column})", self.function())
    }

    const fn function(&self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Min(_) => "min",
            Self::Max(_) => "max",
            Self::Sum(_) => "sum",
            Self::Mean(_) => "mean",
        }
    }
}

/// The result: one row per group, ordered by the keys, nulls first. Without keys it has one row.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Aggregation {
    /// The columns of the result: keys, then aggregates.
    pub fields: Vec<Field>,
    /// Their logical types.
    pub logical_types: Vec<Option<LogicalType>>,
    /// Their values.
    pub columns: Vec<Column>,
    /// The number of matching rows.
    pub rows: u64,
    /// Matching rows that were not read: their statistics gave the result.
    pub rows_from_statistics: u64,
}

impl Scan {
    /// Aggregates the rows of the scan by some columns; the columns of the scan itself are ignored.
    pub fn aggregate<N: AsRef<str>>(
        &self,
        group_by: &[N],
        aggregates: &[Aggregate],
    ) -> Result<Aggregation, Error> {
        let mut aggregator = Aggregator::new(self.file(), group_by, aggregates)?;
        let columns = aggregator.columns();
        aggregator.add(&self.clone().column_positions(&columns)?)?;
        aggregator.finish(self.file())
    }
}

#[cfg(any(unix, windows))]
impl CollectionScan<'_> {
    /// Aggregates the rows of all members; `None` if the collection has no members.
    pub fn aggregate<N: AsRef<str>>(
        &self,
        group_by: &[N],
        aggregates: &[Aggregate],
    ) -> Result<Option<Aggregation>, Error> {
        let Some(first) = self.first_member()? else { return Ok(None) };
        let mut aggregator = Aggregator::new(&first, group_by, aggregates)?;
        self.each_member(&aggregator.names(&first), |scan| aggregator.add(scan))?;
        aggregator.finish(&first).map(Some)
    }
}

/// Aggregates rows of one or more files with the same schema.
struct Aggregator {
    keys: Keys,
    /// Positions of the key columns in the first file.
    key_columns: Vec<usize>,
    aggregates: Vec<Bound>,
    rows: u64,
    rows_from_statistics: u64,
    budget: Budget,
}

/// An aggregate of a column of the file.
struct Bound {
    aggregate: Aggregate,
    column: Option<usize>,
    state: State,
}

/// Bytes of the state of a group for each aggregate, beside its key.
const STATE_BYTES: u64 = 48;

impl Aggregator {
    fn new<N: AsRef<str>>(file: &File, group_by: &[N], aggregates: &[Aggregate]) -> Result<Self, Error> {
        let logical_types = file.logical_types();
        let column_of = |name: &str| {
            let column = file.column_index(name)?;
            Ok::<_, Error>((column, &file.schema().fields()[column], logical_types[column]))
        };
        let refuse = |function: &'static str, field: &Field, logical_type: Option<LogicalType>| {
            let kind =
                logical_type.map_or_else(|| field.kind.to_string(), |logical_type| logical_type.to_string());
            file.error(ErrorKind::NoAggregate {
                function,
                column: field.name.as_ref().into(),
                kind: kind.into(),
            })
        };
        let mut key_columns = Vec::new();
        for name in group_by {
            let (column, field, logical_type) = column_of(name.as_ref())?;
            if field.kind == Type::List {
                return Err(refuse("group by", field, logical_type));
            }
            key_columns.push(column);
        }
        let mut bound = Vec::new();
        for aggregate in aggregates {
            let Some(name) = aggregate.column() else {
                bound.push(Bound { aggregate: aggregate.clone(), column: None, state: State::count() });
                continue;
            };
            let (column, field, logical_type) = column_of(name)?;
            let state = State::new(aggregate, field, logical_type)
                .ok_or_else(|| refuse(aggregate.function(), field, logical_type))?;
            bound.push(Bound { aggregate: aggregate.clone(), column: Some(column), state });
        }
        let limits = file.inner().options.common.limits;
        let mut out = Self {
            keys: Keys::default(),
            key_columns,
            aggregates: bound,
            rows: 0,
            rows_from_statistics: 0,
            budget: Budget::new("the groups of an aggregation", limits.array_bytes),
        };
        if out.key_columns.is_empty() {
            // One group, also without rows.
            out.keys.insert_empty();
            out.grow();
        }
        Ok(out)
    }

    /// The names of the columns that are read.
    #[cfg(any(unix, windows))]
    fn names(&self, file: &File) -> Vec<String> {
        let fields = file.schema().fields();
        self.columns().iter().map(|column| fields[*column].name.to_string()).collect()
    }

    /// The columns that are read: keys, then those of the aggregates.
    fn columns(&self) -> Vec<usize> {
        let aggregated = self.aggregates.iter().filter_map(|bound| bound.column);
        self.key_columns.iter().copied().chain(aggregated).collect()
    }

    fn grow(&mut self) {
        let groups = self.keys.len();
        self.aggregates.iter_mut().for_each(|bound| bound.state.grow(groups));
    }

    /// Adds the rows of a scan of [`Self::columns`]; in other files their positions differ.
    fn add(&mut self, scan: &Scan) -> Result<(), Error> {
        let rest = self.add_statistics(scan)?;
        let keys = self.key_columns.len();
        let mut groups = Vec::new();
        for batch in rest.batches() {
            let batch = batch?;
            self.rows += batch.rows.len() as u64;
            let (key_columns, values) = batch.columns.split_at(keys);
            groups.clear();
            if key_columns.is_empty() {
                groups.resize(batch.rows.len(), 0);
            } else {
                let per_group = STATE_BYTES.saturating_mul(self.aggregates.len() as u64 + 1);
                self.keys
                    .assign(key_columns, batch.rows.len(), &mut groups, |key_bytes| {
                        self.budget.reserve(per_group.saturating_add(2 * key_bytes))
                    })
                    .map_err(|error| scan.file().error(error.into()))?;
                self.grow();
            }
            let mut values = values.iter();
            for bound in &mut self.aggregates {
                let column = if bound.column.is_some() { values.next() } else { None };
                bound.state.add(&groups, column);
            }
        }
        Ok(())
    }

    /// Adds row groups whose rows all match and whose statistics give all aggregates; returns the scan of the others.
    fn add_statistics(&mut self, scan: &Scan) -> Result<Scan, Error> {
        if !self.key_columns.is_empty() {
            return Ok(scan.clone());
        }
        if !self.aggregates.iter().all(|bound| bound.state.has_statistics()) {
            return Ok(scan.clone());
        }
        let (known, rest) = scan.divide_by_statistics(scan.positions())?;
        for group in known {
            self.rows += group.rows;
            self.rows_from_statistics += group.rows;
            let mut bounds = group.bounds.iter();
            for bound in &mut self.aggregates {
                match bound.column.and_then(|_| bounds.next()) {
                    None => bound.state.add_rows(group.rows),
                    Some(None) => {}
                    Some(Some((min, max))) => {
                        let value = if matches!(bound.aggregate, Aggregate::Min(_)) { min } else { max };
                        bound.state.add_bound(value);
                    }
                }
            }
        }
        Ok(rest)
    }

    fn finish(self, file: &File) -> Result<Aggregation, Error> {
        let logical_types = file.logical_types();
        let is_decimal = |column: &usize| {
            let field = &file.schema().fields()[*column];
            matches!(logical_types[*column], Some(LogicalType::Decimal { .. })) && field.kind == Type::Bytes
        };
        let is_decimal: Vec<bool> = self.key_columns.iter().map(is_decimal).collect();
        let order = self.keys.sorted(&is_decimal);
        let mut out = Aggregation {
            fields: Vec::new(),
            logical_types: Vec::new(),
            columns: Vec::new(),
            rows: self.rows,
            rows_from_statistics: self.rows_from_statistics,
        };
        for (index, column) in self.key_columns.iter().enumerate() {
            let field = &file.schema().fields()[*column];
            let values = order.iter().map(|group| self.keys.value(*group, index).cloned());
            out.columns.push(column_of(field.kind, values));
            out.fields.push(Field::new(&*field.name, field.kind).with_nulls());
            out.logical_types.push(logical_types[*column]);
        }
        for bound in &self.aggregates {
            let (kind, logical_type) = bound.state.result_type();
            let values = order.iter().map(|group| bound.state.result(*group)).collect::<Result<Vec<_>, _>>();
            let Ok(values) = values else {
                let column = bound.aggregate.column().unwrap_or_default().into();
                let decimal = logical_type.filter(|_| kind == Type::Bytes);
                let kind = decimal.map_or_else(|| kind.to_string(), |decimal| decimal.to_string()).into();
                return Err(file.error(ErrorKind::SumOverflow { column, kind }));
            };
            out.columns.push(column_of(kind, values.into_iter()));
            out.fields.push(Field::new(bound.aggregate.name(), kind).with_nulls());
            out.logical_types.push(logical_type);
        }
        Ok(out)
    }
}

/// A column of scalars of one type.
fn column_of(kind: Type, scalars: impl Iterator<Item = Option<Scalar>>) -> Column {
    let mut values = Column::empty(&Field::new("", kind)).values;
    let mut validity = Bitmap::default();
    for scalar in scalars {
        validity.push(scalar.is_some());
        match (&mut values, scalar) {
            (Values::Bool(values), Some(Scalar::Bool(value))) => values.push(value),
            (Values::Int8(values), Some(Scalar::Int8(value))) => values.push(value),
            (Values::Int16(values), Some(Scalar::Int16(value))) => values.push(value),
            (Values::Int32(values), Some(Scalar::Int32(value))) => values.push(value),
            (Values::Int64(values), Some(Scalar::Int64(value))) => values.push(value),
            (Values::UInt8(values), Some(Scalar::UInt8(value))) => values.push(value),
            (Values::UInt16(values), Some(Scalar::UInt16(value))) => values.push(value),
            (Values::UInt32(values), Some(Scalar::UInt32(value))) => values.push(value),
            (Values::UInt64(values), Some(Scalar::UInt64(value))) => values.push(value),
            (Values::Float32(values), Some(Scalar::Float32(value))) => values.push(value),
            (Values::Float64(values), Some(Scalar::Float64(value))) => values.push(value),
            (Values::Bytes(values), Some(Scalar::Bytes(value))) => values.push(&value),
            (values, _) => values.push_zeros(1),
        }
    }
    Column::new(values).with_validity(validity)
}
