//! Values of a column in memory.
//!
//! A [`Column`] has one slot per row in [`Values`] of one type, like an Arrow array, and a validity [`Bitmap`] if some rows
//! are null. Null slots are zero or empty.

mod bitmap;
mod strings;

pub use bitmap::Bitmap;
pub use strings::{Strings, View};

use tercet_core::tensor::OutOfMemory;

use crate::schema::{Field, Type};

/// The rows of one column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// One value per row; zero or empty where the row is null.
    pub values: Values,
    /// The validity of the rows; `None` if all are valid.
    pub validity: Option<Bitmap>,
}

/// Values of one type.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the variants are the types")]
pub enum Values {
    Bool(Vec<bool>),
    Int8(Vec<i8>),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    /// Also timestamps in microseconds.
    Int64(Vec<i64>),
    UInt8(Vec<u8>),
    UInt16(Vec<u16>),
    UInt32(Vec<u32>),
    UInt64(Vec<u64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    /// Strings, bytes and blobs.
    Bytes(Strings),
    List(Box<Lists>),
}

impl Default for Values {
    fn default() -> Self {
        Self::UInt8(Vec::new())
    }
}

/// Lists: the elements of row `i` start at the end of row `i - 1` and end at `ends[i]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lists {
    /// The end of the elements of each row.
    pub ends: Vec<u64>,
    /// The concatenated elements of all rows.
    pub elements: Column,
}

impl Lists {
    /// The range of a row in [`elements`](Self::elements).
    pub fn range(&self, row: usize) -> std::ops::Range<usize> {
        let at = |index: usize| usize::try_from(self.ends[index]).unwrap_or(usize::MAX);
        let start = if row == 0 { 0 } else { at(row - 1) };
        start..at(row)
    }
}

/// Runs `$body` with the vector of a fixed-width type; other types have their own arms.
macro_rules! each_values {
    ($values:expr, fixed($fixed:ident) => $body:expr, bool($bools:ident) => $bool:expr, bytes($bytes:ident) => $byte:expr, list($lists:ident) => $list:expr $(,)?) => {
        match $values {
            $crate::column::Values::Int8($fixed) => $body,
            $crate::column::Values::Int16($fixed) => $body,
            $crate::column::Values::Int32($fixed) => $body,
            $crate::column::Values::Int64($fixed) => $body,
            $crate::column::Values::UInt8($fixed) => $body,
            $crate::column::Values::UInt16($fixed) => $body,
            $crate::column::Values::UInt32($fixed) => $body,
            $crate::column::Values::UInt64($fixed) => $body,
            $crate::column::Values::Float32($fixed) => $body,
            $crate::column::Values::Float64($fixed) => $body,
            $crate::column::Values::Bool($bools) => $bool,
            $crate::column::Values::Bytes($bytes) => $byte,
            $crate::column::Values::List($lists) => $list,
        }
    };
}
pub(crate) use each_values;

impl Values {
    /// Empty values of the type of a field.
    pub fn empty(field: &Field) -> Self {
        match field.kind {
            Type::List => {
                let element = Field::new("", field.scalar());
                let elements = Column { values: Self::empty(&element), validity: None };
                Self::List(Box::new(Lists { ends: Vec::new(), elements }))
            }
            kind => Self::for_type(kind),
        }
    }

    /// Empty values of a type other than list.
    fn for_type(kind: Type) -> Self {
        match kind {
            Type::Bool => Self::Bool(Vec::new()),
            Type::Int8 => Self::Int8(Vec::new()),
            Type::Int16 => Self::Int16(Vec::new()),
            Type::Int32 => Self::Int32(Vec::new()),
            Type::Int64 | Type::TimestampMicros => Self::Int64(Vec::new()),
            Type::UInt8 => Self::UInt8(Vec::new()),
            Type::UInt16 => Self::UInt16(Vec::new()),
            Type::UInt32 => Self::UInt32(Vec::new()),
            Type::UInt64 => Self::UInt64(Vec::new()),
            Type::Float32 => Self::Float32(Vec::new()),
            Type::Float64 => Self::Float64(Vec::new()),
            Type::String | Type::Bytes | Type::BlobRef => Self::Bytes(Strings::new()),
            Type::List => Self::List(Box::default()),
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        each_values!(self, fixed(v) => v.len(), bool(v) => v.len(), bytes(v) => v.len(), list(v) => v.ends.len())
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of the type.
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Bool(_) => "bool",
            Self::Int8(_) => "int8",
            Self::Int16(_) => "int16",
            Self::Int32(_) => "int32",
            Self::Int64(_) => "int64",
            Self::UInt8(_) => "uint8",
            Self::UInt16(_) => "uint16",
            Self::UInt32(_) => "uint32",
            Self::UInt64(_) => "uint64",
            Self::Float32(_) => "float32",
            Self::Float64(_) => "float64",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "lists",
        }
    }

    /// Whether the values fit the type of a field.
    pub fn fits(&self, field: &Field) -> bool {
        match (self, field.kind) {
            (Self::List(lists), Type::List) => lists.elements.values.fits(&Field::new("", field.scalar())),
            (_, Type::List) => false,
            (values, kind) => std::mem::discriminant(values) == std::mem::discriminant(&Self::for_type(kind)),
        }
    }

    /// The number of elements and buffers; see [`grown`](Self::grown).
    pub(crate) fn mark(&self) -> (usize, usize) {
        match self {
            Self::Bytes(strings) => (0, strings.sealed()),
            Self::List(lists) => (lists.elements.len(), lists.elements.values.mark().1),
            _ => (0, 0),
        }
    }

    /// Bytes added since the mark, beyond one slot per row: buffers of strings, elements of lists.
    pub(crate) fn grown(&self, (elements, buffers): (usize, usize)) -> u64 {
        match self {
            Self::Bytes(strings) => strings.sealed_bytes(buffers),
            Self::List(lists) => {
                let added = (lists.elements.len() - elements) as u64;
                added * lists.elements.values.slot_bytes() + lists.elements.values.grown((0, buffers))
            }
            _ => 0,
        }
    }

    /// Bytes of one slot in memory, without string bytes and list elements.
    fn slot_bytes(&self) -> u64 {
        fn element_bytes<T>(_: &[T]) -> u64 {
            size_of::<T>() as u64
        }
        each_values!(self, fixed(v) => element_bytes(v), bool(v) => element_bytes(v), bytes(v) => element_bytes(v.views()), list(v) => element_bytes(&v.ends))
    }

    /// Allocates slots for `rows` more rows, or fails.
    pub(crate) fn try_reserve(&mut self, rows: usize) -> Result<(), OutOfMemory> {
        let bytes = usize::try_from(self.slot_bytes()).unwrap_or(usize::MAX).saturating_mul(rows);
        let reserved = each_values!(
            self,
            fixed(v) => v.try_reserve(rows),
            bool(v) => v.try_reserve(rows),
            bytes(v) => v.views_mut().try_reserve(rows),
            list(v) => v.ends.try_reserve(rows),
        );
        reserved.map_err(|_| OutOfMemory { bytes })
    }

    /// Allocates slots for more rows, with less spare capacity than usual.
    pub(crate) fn reserve_tightly(&mut self, rows: usize) {
        fn vector<T>(values: &mut Vec<T>, rows: usize) {
            if values.len() + rows > values.capacity() {
                values.reserve_exact(rows.max(values.len() / 8));
            }
        }
        each_values!(
            self,
            fixed(v) => vector(v, rows),
            bool(v) => vector(v, rows),
            bytes(v) => vector(v.views_mut(), rows),
            list(v) => vector(&mut v.ends, rows),
        );
    }

    /// Appends zero or empty slots.
    pub fn push_zeros(&mut self, rows: usize) {
        each_values!(
            self,
            fixed(v) => v.resize(v.len() + rows, Default::default()),
            bool(v) => v.resize(v.len() + rows, false),
            bytes(v) => v.push_empty(rows),
            list(v) => {
                let end = v.ends.last().copied().unwrap_or(0);
                v.ends.resize(v.ends.len() + rows, end);
            },
        );
    }

    /// Appends rows `from..to` of `other`, which must be of the same type.
    pub(crate) fn extend_from(&mut self, other: &Self, from: usize, to: usize) {
        match (self, other) {
            (Self::Bool(to_), Self::Bool(v)) => to_.extend_from_slice(&v[from..to]),
            (Self::Int8(to_), Self::Int8(v)) => to_.extend_from_slice(&v[from..to]),
            (Self::Int16(to_), Self::Int16(v)) => to_.extend_from_slice(&v[from..to]),
            (Self::Int32(to_), Self::Int32(v)) => to_.extend_from_slice(&v[from..to]),
            (Self::Int64(to_), Self::Int64(v)) => to_.extend_from_slice(&v[from..to]),
            (Self::UInt8(to_), Self::UInt8(v)) => to_.extend_from_slice(&v[from..to]),
            (Self::UInt16(to_), Self::UInt16(v)) => to_.extend_from_slice(&v[from..to]),
            (Self::UInt32(to_), Self::UInt32(v)) => to_.extend_from_slice(&v[from..to]),
            (Self::UInt64(to_), Self::UInt64(v)) => to_.extend_from_slice(&v[from..to]),
            (Self::Float32(to_), Self::Float32(v)) => to_.extend_from_slice(&v[from..to]),
            (Self::Float64(to_), Self::Float64(v)) => to_.extend_from_slice(&v[from..to]),
            (Self::Bytes(to_), Self::Bytes(v)) => to_.extend_from(v, from, to),
            (Self::List(to_), Self::List(v)) => {
                let start = if from == 0 { 0 } else { v.ends[from - 1] };
                let end = if to == 0 { 0 } else { v.ends[to - 1] };
                let base = to_.ends.last().copied().unwrap_or(0);
                to_.ends.extend(v.ends[from..to].iter().map(|at| at - start + base));
                let at = |end: u64| usize::try_from(end).unwrap_or(usize::MAX);
                to_.elements.extend_from(&v.elements, at(start), at(end));
            }
            (to_, other) => {
                debug_assert!(false, "{} do not hold {}", to_.type_name(), other.type_name());
            }
        }
    }
}

impl Column {
    /// The column without its rows, for reuse; the memory of fixed-width values is kept.
    pub(crate) fn emptied(mut self) -> Self {
        each_values!(
            &mut self.values,
            fixed(v) => v.clear(),
            bool(v) => v.clear(),
            bytes(v) => *v = Strings::new(),
            list(v) => {
                v.ends.clear();
                v.elements = std::mem::take(&mut v.elements).emptied();
            },
        );
        self.validity = None;
        self
    }

    /// A column without rows, of the type of a field.
    pub fn empty(field: &Field) -> Self {
        Self { values: Values::empty(field), validity: None }
    }

    /// A column without nulls.
    pub fn new(values: Values) -> Self {
        Self { values, validity: None }
    }

    /// A column with a validity bitmap.
    pub fn with_validity(mut self, validity: Bitmap) -> Self {
        self.validity = Some(validity);
        self
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a row is not null.
    pub fn is_present(&self, row: usize) -> bool {
        self.validity.as_ref().is_none_or(|validity| validity.get(row))
    }

    /// Bytes in memory, without the validity bitmap.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.values.slot_bytes() * self.len() as u64 + self.values.grown((0, 0))
    }

    /// The number of null rows.
    pub fn nulls(&self) -> usize {
        self.validity.as_ref().map_or(0, |validity| validity.len() - validity.ones())
    }

    /// Appends rows `from..to` of `other`, which must be of the same type.
    pub fn extend_from(&mut self, other: &Self, from: usize, to: usize) {
        let before = self.len();
        self.values.extend_from(&other.values, from, to);
        match (&mut self.validity, &other.validity) {
            (Some(mine), Some(theirs)) => mine.extend_from(theirs, from, to),
            (Some(mine), None) => mine.push_many(true, to - from),
            (None, Some(theirs)) => {
                if theirs.ones_in(from, to) < to - from {
                    let mut mine = Bitmap::filled(before, true);
                    mine.extend_from(theirs, from, to);
                    self.validity = Some(mine);
                }
            }
            (None, None) => {}
        }
    }

    /// Rows `from..to`.
    pub fn slice(&self, from: usize, to: usize) -> Self {
        let mut out = Self { values: self.values.same_empty(), validity: None };
        out.extend_from(self, from, to);
        out
    }

    /// The rows at these positions, in this order.
    pub fn take(&self, rows: &[usize]) -> Self {
        let mut out = Self { values: self.values.same_empty(), validity: None };
        self.take_into(rows, &mut out);
        out
    }

    /// Appends the rows at these positions to `out`, which must be of the same type.
    pub(crate) fn take_into(&self, rows: &[usize], out: &mut Self) {
        // Consecutive rows are copied together.
        if let (Some(first), Some(last)) = (rows.first(), rows.last())
            && last.checked_sub(*first) == Some(rows.len() - 1)
            && rows.is_sorted_by(|a, b| a < b)
        {
            out.extend_from(self, *first, last + 1);
            return;
        }
        let before = out.len();
        self.values.take_into(rows, &mut out.values);
        match (&mut out.validity, &self.validity) {
            (Some(mine), _) => rows.iter().for_each(|row| mine.push(self.is_present(*row))),
            (None, Some(theirs)) if rows.iter().any(|row| !theirs.get(*row)) => {
                let mut mine = Bitmap::filled(before, true);
                for row in rows {
                    mine.push(theirs.get(*row));
                }
                out.validity = Some(mine);
            }
            (None, _) => {}
        }
    }

    /// Truncates the values; validity is unchanged.
    pub(crate) fn values_truncate(&mut self, rows: usize) {
        each_values!(
            &mut self.values,
            fixed(v) => v.truncate(rows),
            bool(v) => v.truncate(rows),
            bytes(v) => v.views_mut().truncate(rows),
            list(v) => v.ends.truncate(rows),
        );
    }
}

impl Values {
    /// Appends the values at these positions to `out`, which must be of the same type.
    fn take_into(&self, rows: &[usize], out: &mut Self) {
        fn pick<T: Copy>(values: &[T], rows: &[usize], out: &mut Vec<T>) {
            out.extend(rows.iter().map(|row| values[*row]));
        }
        match (self, out) {
            (Self::Bool(values), Self::Bool(out)) => pick(values, rows, out),
            (Self::Int8(values), Self::Int8(out)) => pick(values, rows, out),
            (Self::Int16(values), Self::Int16(out)) => pick(values, rows, out),
            (Self::Int32(values), Self::Int32(out)) => pick(values, rows, out),
            (Self::Int64(values), Self::Int64(out)) => pick(values, rows, out),
            (Self::UInt8(values), Self::UInt8(out)) => pick(values, rows, out),
            (Self::UInt16(values), Self::UInt16(out)) => pick(values, rows, out),
            (Self::UInt32(values), Self::UInt32(out)) => pick(values, rows, out),
            (Self::UInt64(values), Self::UInt64(out)) => pick(values, rows, out),
            (Self::Float32(values), Self::Float32(out)) => pick(values, rows, out),
            (Self::Float64(values), Self::Float64(out)) => pick(values, rows, out),
            (Self::Bytes(values), Self::Bytes(out)) => rows.iter().for_each(|row| out.push(values.get(*row))),
            (values, out) => rows.iter().for_each(|row| out.extend_from(values, *row, row + 1)),
        }
    }

    /// Empty values of the same type.
    pub(crate) fn same_empty(&self) -> Self {
        match self {
            Self::Bool(_) => Self::Bool(Vec::new()),
            Self::Int8(_) => Self::Int8(Vec::new()),
            Self::Int16(_) => Self::Int16(Vec::new()),
            Self::Int32(_) => Self::Int32(Vec::new()),
            Self::Int64(_) => Self::Int64(Vec::new()),
            Self::UInt8(_) => Self::UInt8(Vec::new()),
            Self::UInt16(_) => Self::UInt16(Vec::new()),
            Self::UInt32(_) => Self::UInt32(Vec::new()),
            Self::UInt64(_) => Self::UInt64(Vec::new()),
            Self::Float32(_) => Self::Float32(Vec::new()),
            Self::Float64(_) => Self::Float64(Vec::new()),
            Self::Bytes(_) => Self::Bytes(Strings::new()),
            Self::List(lists) => {
                let elements = Column { values: lists.elements.values.same_empty(), validity: None };
                Self::List(Box::new(Lists { ends: Vec::new(), elements }))
            }
        }
    }
}
