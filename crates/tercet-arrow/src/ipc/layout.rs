//! Checks of the buffers of a batch against the types of its columns: arrow-ipc panics on buffers that are too short.

use arrow_ipc::{FieldNode, MetadataVersion, RecordBatch};
use arrow_schema::{DataType, Field, Schema, UnionMode};

/// The columns of a batch.
pub(super) enum Columns<'a> {
    /// A record batch.
    Rows(&'a Schema),
    /// A dictionary batch: the values of the dictionary with this ID.
    Dictionary(&'a Schema, i64),
}

/// Checks a batch whose buffers have these uncompressed lengths. Returns the number of the buffer and the problem. Missing buffers
/// are not an error here: arrow-ipc reports them.
pub(super) fn check(
    columns: &Columns<'_>,
    batch: &RecordBatch<'_>,
    lens: &[u64],
    version: MetadataVersion,
) -> Result<(), (usize, String)> {
    let nodes: Vec<FieldNode> = batch.nodes().into_iter().flatten().copied().collect();
    let variadic: Vec<i64> = batch.variadicBufferCounts().into_iter().flatten().collect();
    let mut walk = Walk { nodes: nodes.iter(), lens, next: 0, variadic: variadic.iter(), version };
    let done = match columns {
        Columns::Rows(schema) => schema.fields().iter().try_for_each(|field| walk.array(field.data_type())),
        Columns::Dictionary(schema, id) => {
            #[expect(deprecated, reason = "dictionary batches refer to fields by ID")]
            let fields = schema.fields_with_dict_id(*id);
            match fields.first().map(|field: &&Field| field.data_type()) {
                Some(DataType::Dictionary(_, values)) => walk.array(values),
                _ => Ok(()),
            }
        }
    };
    match done {
        Ok(()) | Err(Stop::Missing) => Ok(()),
        Err(Stop::Short(buffer, message)) => Err((buffer, message)),
    }
}

enum Stop {
    /// A node or a buffer is missing.
    Missing,
    /// A buffer is too short.
    Short(usize, String),
}

struct Walk<'a> {
    nodes: std::slice::Iter<'a, FieldNode>,
    lens: &'a [u64],
    next: usize,
    variadic: std::slice::Iter<'a, i64>,
    version: MetadataVersion,
}

impl Walk<'_> {
    fn array(&mut self, kind: &DataType) -> Result<(), Stop> {
        match kind {
            DataType::Null => self.node().map(drop),
            DataType::Utf8 | DataType::Binary => {
                let rows = self.validity()?;
                self.offsets(rows, 4)?;
                self.skip(1);
                Ok(())
            }
            DataType::LargeUtf8 | DataType::LargeBinary => {
                let rows = self.validity()?;
                self.offsets(rows, 8)?;
                self.skip(1);
                Ok(())
            }
            DataType::Utf8View | DataType::BinaryView => {
                let count = self.variadic.next().and_then(|count| usize::try_from(*count).ok());
                let rows = self.validity()?;
                self.elements(rows, 16)?;
                self.skip(count.ok_or(Stop::Missing)?);
                Ok(())
            }
            DataType::List(element) | DataType::Map(element, _) => {
                let rows = self.validity()?;
                self.offsets(rows, 4)?;
                self.array(element.data_type())
            }
            DataType::LargeList(element) => {
                let rows = self.validity()?;
                self.offsets(rows, 8)?;
                self.array(element.data_type())
            }
            DataType::ListView(element) => {
                let rows = self.validity()?;
                self.elements(rows, 4)?;
                self.elements(rows, 4)?;
                self.array(element.data_type())
            }
            DataType::LargeListView(element) => {
                let rows = self.validity()?;
                self.elements(rows, 8)?;
                self.elements(rows, 8)?;
                self.array(element.data_type())
            }
            DataType::FixedSizeList(element, _) => {
                self.validity()?;
                self.array(element.data_type())
            }
            DataType::Struct(fields) => {
                self.validity()?;
                fields.iter().try_for_each(|field| self.array(field.data_type()))
            }
            DataType::RunEndEncoded(ends, values) => {
                self.node()?;
                self.array(ends.data_type())?;
                self.array(values.data_type())
            }
            DataType::Union(fields, mode) => {
                let (rows, _) = self.node()?;
                if self.version < MetadataVersion::V5 {
                    self.skip(1);
                }
                self.at_least(rows)?;
                if *mode == UnionMode::Dense {
                    self.at_least(rows.saturating_mul(4))?;
                }
                fields.iter().try_for_each(|(_, field)| self.array(field.data_type()))
            }
            DataType::Dictionary(key, _) => {
                let rows = self.validity()?;
                self.elements(rows, key.primitive_width().unwrap_or(1))
            }
            DataType::Boolean => {
                let rows = self.validity()?;
                self.at_least(rows.div_ceil(8)).map(drop)
            }
            DataType::FixedSizeBinary(len) => {
                let rows = self.validity()?;
                self.at_least(rows.saturating_mul(u64::try_from(*len).unwrap_or(0))).map(drop)
            }
            other => {
                let rows = self.validity()?;
                self.elements(rows, other.primitive_width().unwrap_or(1))
            }
        }
    }

    /// The rows and nulls of the next array.
    fn node(&mut self) -> Result<(u64, u64), Stop> {
        let node = self.nodes.next().ok_or(Stop::Missing)?;
        Ok((u64::try_from(node.length()).unwrap_or(0), u64::try_from(node.null_count()).unwrap_or(0)))
    }

    /// The rows of the next array, whose first buffer has a bit for each of them if there are nulls.
    fn validity(&mut self) -> Result<u64, Stop> {
        let (rows, nulls) = self.node()?;
        self.at_least(if nulls > 0 { rows.div_ceil(8) } else { 0 })?;
        Ok(rows)
    }

    /// One more offset than rows; an empty array may have none.
    fn offsets(&mut self, rows: u64, width: usize) -> Result<(), Stop> {
        let count = if rows == 0 { 0 } else { rows.saturating_add(1) };
        self.elements(count, width)
    }

    /// A buffer of whole elements.
    fn elements(&mut self, count: u64, width: usize) -> Result<(), Stop> {
        let (index, width) = (self.next, width as u64);
        let len = self.at_least(count.saturating_mul(width))?;
        if len.is_multiple_of(width) {
            return Ok(());
        }
        Err(Stop::Short(index, format!("{len} bytes are not a multiple of {width}")))
    }

    /// The length of the next buffer, which must be at least `min`.
    fn at_least(&mut self, min: u64) -> Result<u64, Stop> {
        let (index, len) = (self.next, *self.lens.get(self.next).ok_or(Stop::Missing)?);
        self.next += 1;
        if len >= min {
            return Ok(len);
        }
        Err(Stop::Short(index, format!("{len} bytes, but the array needs {min}")))
    }

    fn skip(&mut self, count: usize) {
        self.next = self.next.saturating_add(count);
    }
}
