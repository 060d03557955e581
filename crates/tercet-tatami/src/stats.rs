//! Column statistics, without decoding values.

use std::cmp::Ordering;

use crate::error::Error;
use crate::file::File;
use crate::region::Region;
use crate::scalar::Scalar;
use crate::wire::ids::Role;

impl File {
    /// Minimum and maximum of a column in one row group, if the footer has them and they are reliable.
    ///
    /// Some writers include NaN in zones of floats, which then do not cover the other values. Such zones are used only if both
    /// bounds are numbers and either the file declares that NaN is excluded or the chunk has a single page.
    pub fn bounds(&self, group: usize, column: usize) -> Option<(Scalar, Scalar)> {
        let is_there = group < self.group_count() && column < self.schema().len();
        is_there.then(|| self.inner().chunk_reader(group, column).bounds()).flatten()
    }

    /// Minimum and maximum of a column, if every row group with values has them.
    pub fn column_bounds(&self, column: usize) -> Option<(Scalar, Scalar)> {
        let mut all: Option<(Scalar, Scalar)> = None;
        for (group, entry) in self.footer().groups.iter().enumerate() {
            let chunk = entry.chunks.get(column)?;
            if chunk.nulls == chunk.values {
                continue;
            }
            let (min, max) = self.bounds(group, column)?;
            all = Some(match all {
                None => (min, max),
                Some((low, high)) => (
                    if min.order(&low) == Some(Ordering::Less) { min } else { low },
                    if max.order(&high) == Some(Ordering::Greater) { max } else { high },
                ),
            });
        }
        all
    }

    /// The number of values in the dictionary of a column, if it has one. Reads the dictionary.
    pub fn dictionary_values(&self, column: usize) -> Result<Option<u64>, Error> {
        let features = self.footer().features.as_ref();
        let mut resources = features.into_iter().flat_map(|features| &features.resources);
        if !resources.any(|used| used.column == column as u64 && used.role == Role::Values) {
            return Ok(None);
        }
        let site = (Region::Chunk { group: 0, column: crate::chunk::number(column) }, 0);
        let values = self.inner().value_dictionary(column, site).map_err(|fault| self.error(fault))?;
        Ok(Some(values.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::Arc;

    use tercet_core::source::Memory;

    use super::*;
    use crate::{Bitmap, Column, Field, ReadOptions, Schema, Type, Values, Writer, WriterOptions};

    /// Two row groups of three rows, one row per page.
    fn file(field: Field, groups: [Column; 2]) -> File {
        let options = WriterOptions::new().with_row_group_max_rows(3).with_page_max_values(1);
        let schema = Schema::new(vec![field]).unwrap();
        let mut writer = Writer::new(Cursor::new(Vec::new()), schema, options).unwrap();
        for group in groups {
            writer.append(&[group]).unwrap();
        }
        let bytes = writer.finish().unwrap().output;
        File::from_source(Arc::new(Memory::new("a", bytes)), ReadOptions::new()).unwrap()
    }

    fn floats(values: [f64; 3]) -> Column {
        Column::new(Values::Float64(values.to_vec()))
    }

    #[test]
    fn column_bounds_are_those_of_all_groups() {
        let nan = f64::NAN;
        let file = file(Field::new("x", Type::Float64), [floats([nan, 2.0, 1.0]), floats([5.0, nan, 3.0])]);
        assert_eq!(file.bounds(0, 0), Some((Scalar::Float64(1.0), Scalar::Float64(2.0))));
        assert_eq!(file.column_bounds(0), Some((Scalar::Float64(1.0), Scalar::Float64(5.0))));
        assert_eq!((file.bounds(2, 0), file.bounds(0, 1)), (None, None));
    }

    #[test]
    fn a_group_without_zone_makes_the_column_unknown() {
        let field = || Field::new("x", Type::Float64).with_nulls();
        let unknown = file(field(), [floats([f64::NAN; 3]), floats([1.0, 2.0, 3.0])]);
        assert_eq!(unknown.column_bounds(0), None, "only NaN: no zone");
        let null = floats([0.0; 3]).with_validity(Bitmap::filled(3, false));
        let known = file(field(), [null, floats([1.0, 2.0, 3.0])]);
        assert_eq!(known.column_bounds(0), Some((Scalar::Float64(1.0), Scalar::Float64(3.0))), "only nulls");
    }

    #[test]
    fn dictionary_values_are_counted() {
        let options = WriterOptions::new();
        let schema = Schema::new(vec![Field::new("s", Type::String), Field::new("n", Type::Int8)]).unwrap();
        let mut writer = Writer::new(Cursor::new(Vec::new()), schema, options).unwrap();
        let names = ["a city with a long name", "another city", "a third one"];
        let text = Values::Bytes((0..3000).map(|row| names[row % 7 % 3]).collect());
        writer.append(&[Column::new(text), Column::new(Values::Int8(vec![0; 3000]))]).unwrap();
        let bytes = writer.finish().unwrap().output;
        let file = File::from_source(Arc::new(Memory::new("a", bytes)), ReadOptions::new()).unwrap();
        assert_eq!(file.dictionary_values(0).unwrap(), Some(3));
        assert_eq!(file.dictionary_values(1).unwrap(), None);
    }
}
