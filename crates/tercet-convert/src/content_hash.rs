//! Content hashes that do not depend on the container: BLAKE3 over names, types, shapes and values.
//!
//! The hash of an array file is BLAKE3 over its variables, in the order of the UTF-8 bytes of their names. Lengths and extents
//! are unsigned 64-bit integers, little-endian:
//!
//! ```text
//! "tercet arrays 1\n"
//! for each variable:  length of the name, name
//!                     length of the type name, type name          float32, int16, …, string; characters are uint8
//!                     number of axes, extents
//!                     values, row-major, little-endian            a string: its length in bytes, its bytes
//! ```
//!
//! Attributes, dimension names, chunks, compression and the order of variables do not count. NaN is hashed by its bits.
//!
//! The hash of a table covers its columns in the order of their names:
//!
//! ```text
//! "tercet table 1\n"
//! for each column:    length of the name, name
//!                     length of the type name, type name
//!                     number of rows
//!                     BLAKE3 of the values: 0 for null; else 1, length of the value, value, little-endian
//! ```

use std::sync::Arc;

use blake3::{Hash, Hasher};
use tercet_core::{ByteSource, Progress, ReadOptions};
use tercet_tatami::{Column, Values};

use crate::arrays::sink::slabs;
use crate::arrays::{ArraySource, Kind, Variable};
use crate::diff::{DiffError, open_table};
use crate::tables::{Rows, Table, TableError};
use crate::{Error, ErrorKind, arrays};

fn number(hasher: &mut Hasher, value: u64) {
    hasher.update(&value.to_le_bytes());
}

fn string(hasher: &mut Hasher, text: &[u8]) {
    number(hasher, text.len() as u64);
    hasher.update(text);
}

/// The hash of the variables of an array file.
pub fn hash_arrays(source: &dyn ArraySource, progress: &dyn Progress) -> Result<Hash, Error> {
    let mut hasher = Hasher::new();
    hasher.update(b"tercet arrays 1\n");
    let header = source.header();
    if let Some((name, reason)) = header.unreadable.first() {
        let detail = format!("`{name}` cannot be read: {reason}");
        return Err(Error::new(source.name().into(), ErrorKind::Unsupported(detail.into())));
    }
    let mut order: Vec<usize> = (0..header.variables.len()).collect();
    order.sort_by(|a, b| header.variables[*a].name.as_bytes().cmp(header.variables[*b].name.as_bytes()));
    for variable in order {
        hash_into(source, variable, &mut hasher, progress)?;
    }
    Ok(hasher.finalize())
}

/// The hash of one variable of an array file, as if it were the only one.
pub fn hash_variable(
    source: &dyn ArraySource,
    variable: usize,
    progress: &dyn Progress,
) -> Result<Hash, Error> {
    let mut hasher = Hasher::new();
    hasher.update(b"tercet arrays 1\n");
    hash_into(source, variable, &mut hasher, progress)?;
    Ok(hasher.finalize())
}

fn type_name(variable: &Variable) -> String {
    match variable.kind {
        Kind::Char => "uint8".to_owned(),
        kind => kind.to_string(),
    }
}

fn hash_into(
    source: &dyn ArraySource,
    number_of: usize,
    hasher: &mut Hasher,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let variable = &source.header().variables[number_of];
    string(hasher, variable.name.as_bytes());
    string(hasher, type_name(variable).as_bytes());
    number(hasher, variable.shape.len() as u64);
    variable.shape.iter().for_each(|extent| number(hasher, *extent));
    if variable.kind == Kind::String {
        source.read_strings(number_of)?.iter().for_each(|text| string(hasher, text.as_bytes()));
        return Ok(());
    }
    let size = variable.item_size();
    let mut buffer = Vec::new();
    for (start, extents) in slabs(&variable.shape, size, variable.chunks.as_deref()) {
        progress.check().map_err(|cancelled| Error::new(source.name().into(), cancelled.into()))?;
        let elements: u64 = extents.iter().product();
        buffer.resize(usize::try_from(elements).unwrap_or(0) * size, 0);
        source.read_box(number_of, &start, &extents, &mut buffer)?;
        hasher.update(&buffer);
        progress.advance(buffer.len() as u64);
    }
    Ok(())
}

/// The hash of the columns of a table.
pub fn hash_table(table: &mut Table, progress: &dyn Progress) -> Result<Hash, TableError> {
    let schema = table.schema().clone();
    let mut columns: Vec<Hasher> = schema.fields().iter().map(|_| Hasher::new()).collect();
    let mut rows = 0u64;
    table.read(progress, &mut |_| {}, |batch: Rows| {
        rows += batch.columns.first().map_or(0, Column::len) as u64;
        for (hasher, column) in columns.iter_mut().zip(&batch.columns) {
            (0..column.len()).for_each(|row| cell(column, row, hasher));
        }
        Ok::<(), TableError>(())
    })?;
    let mut order: Vec<usize> = (0..columns.len()).collect();
    order.sort_by(|a, b| schema.fields()[*a].name.as_bytes().cmp(schema.fields()[*b].name.as_bytes()));
    let mut hasher = Hasher::new();
    hasher.update(b"tercet table 1\n");
    for column in order {
        let field = &schema.fields()[column];
        string(&mut hasher, field.name.as_bytes());
        string(&mut hasher, field.kind.name().as_bytes());
        number(&mut hasher, rows);
        hasher.update(columns[column].finalize().as_bytes());
    }
    Ok(hasher.finalize())
}

fn cell(column: &Column, row: usize, hasher: &mut Hasher) {
    if !column.is_present(row) {
        hasher.update(&[0]);
        return;
    }
    hasher.update(&[1]);
    match (&column.values, column.scalar(row)) {
        (_, Some(scalar)) => string(hasher, &scalar.to_bytes()),
        (Values::List(lists), None) => {
            let range = lists.range(row);
            number(hasher, range.len() as u64);
            range.for_each(|item| cell(&lists.elements, item, hasher));
        }
        _ => number(hasher, 0),
    }
}

/// The first damage of a file of messages: an error of its own class, where the stacked file names a field only.
fn damage(source: &Arc<dyn ByteSource>, options: ReadOptions) -> Option<Error> {
    let read = || -> Result<(), tercet_tgm::Error> {
        let file = tercet_tgm::File::from_source(Arc::clone(source), options.into())?;
        for number in 0..file.message_count()? {
            let message = file.message(number)?;
            for object in 0..message.object_count() {
                message.object(object)?.decode_to_vec()?;
            }
        }
        Ok(())
    };
    crate::diff::is_messages(&**source).then(read)?.err().map(Error::from)
}

/// The hash of a file of any format: of its arrays, or of its table.
pub fn content_hash(
    source: &Arc<dyn ByteSource>,
    options: ReadOptions,
    progress: &dyn Progress,
) -> Result<Hash, DiffError> {
    match arrays::open_source_with(Arc::clone(source), options) {
        Ok(arrays) => {
            hash_arrays(&*arrays, progress).map_err(|error| damage(source, options).unwrap_or(error).into())
        }
        Err(error) if matches!(error.kind(), ErrorKind::UnknownFormat) => {
            Ok(hash_table(&mut open_table(source, options, progress)?, progress)?)
        }
        Err(error) => Err(error.into()),
    }
}
